"""An OpenSim model as a skeleton: one joint per body, more where its angles are not those of an Euler order.

Coordinates along axes are slides. Splines over the angle of a hinge are coupled offsets. A coordinate that is
not clamped has a range too, wide enough never to be met.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from _osim import Array, Coordinate, Function, Model, OsimJoint, rotation
from mathutils import Matrix, Quaternion, Vector

from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import Cone, EulerBox, Hinge, Limit, Slide, SwingTwist
from ccd_rig.skeleton.coupled_offset import CoupledOffset
from ccd_rig.skeleton.joints import Joint, Skeleton

TURN, SHIFT = 3.1, 100.0
"""Radians and metres that a coordinate without bounds never leaves."""
NEVER = SwingTwist(Cone(0.0), (0.0, 0.0))
"""The limit of a body that does not turn."""


@dataclass(frozen=True)
class Figure:
    """The skeleton, and where each marker is: its joint, and the point in the joint's frame."""

    skeleton: Skeleton
    points: tuple[tuple[str, Vector], ...]

    def goals(self, weights: Array) -> list[PositionGoal]:
        """A weighted goal per marker; its own target is its joint's head."""
        pairs = zip(self.points, weights.tolist(), strict=True)
        return [PositionGoal(joint, Vector(), at, weight) for (joint, at), weight in pairs]


def figure(model: Model, rolls: bool = True) -> Figure:
    """The skeleton of a model.

    Args:
        model: what was read.
        rolls: off for joints whose offsets stay as they are at the default angles.

    Raises:
        ValueError: a function that no kind of joint here can say, such as a rotation that follows another.
    """
    builder = _Builder(model, rolls)
    for joint in model.joints:
        builder.add(joint)
    points = []
    for marker in model.markers:
        name, turn, at = builder.bodies[marker.body]
        points.append((name, Vector(turn.T @ (marker.at - at))))
    return Figure(Skeleton(builder.joints), tuple(points))


class _Builder:
    """The joints so far; of each body its last joint, and that joint's frame in the body."""

    def __init__(self, model: Model, rolls: bool) -> None:
        self.model, self.rolls = model, rolls
        self.joints: list[Joint] = []
        self.bodies: dict[str, tuple[str, Array, Array]] = {"ground": ("", np.eye(3), np.zeros(3))}
        self.hinges: dict[str, str] = {}  # coordinate -> joint
        self.defaults = {name: each.default for name, each in model.coordinates.items()}

    def add(self, joint: OsimJoint) -> None:
        parent, turn, at = self.bodies[joint.parent]
        offset, rest = turn.T @ (joint.at - at), turn.T @ rotation(joint.turn)
        names, limits = self._limits(joint)
        slides, coupled = [], []
        for axis, function in joint.translations:
            if function.knots is not None and self.rolls:
                coupled.append(self._coupled(joint, axis, function))
            elif function.coordinate and function.knots is None:
                slides.append(self._slide(axis, function))
                offset = offset + rest @ (function.constant * axis)
            else:
                offset = offset + rest @ (function(self.defaults) * axis)
        places = {each.name: n for n, each in enumerate(self.joints)}
        for n, (name, limit) in enumerate(zip(names, limits, strict=True)):
            first = n == 0
            self.joints.append(
                Joint(
                    name,
                    places.get(parent, -1) if first else len(self.joints) - 1,
                    offset.tolist() if first else (0.0, 0.0, 0.0),
                    Matrix(rest.tolist()).to_quaternion() if first else Quaternion(),
                    0.0,
                    limit,
                    slides=tuple(slides) if first else (),
                    coupled_offsets=tuple(coupled) if first else (),
                )
            )
        self.bodies[joint.body] = names[-1], rotation(joint.body_turn), joint.body_at

    def _limits(self, joint: OsimJoint) -> tuple[list[str], list[Limit]]:
        """Names and limits of the joints, one on the other, that turn as one of the model."""
        turning = [(axis, function) for axis, function in joint.rotations if function.coordinate]
        for axis, function in joint.rotations:
            if function.knots is not None or function.constant != 0.0:
                raise ValueError(f"joint '{joint.name}': a rotation about {axis} follows another")
        if not turning:
            return [joint.body], [NEVER]
        if len(turning) == 3 and (box := self._box(turning)) is not None:
            return [joint.body], [box]
        names = [f"{joint.body} {n}" for n in range(len(turning) - 1)] + [joint.body]
        limits: list[Limit] = []
        for name, (axis, function) in zip(names, turning, strict=True):
            lower, upper = self._range(function, TURN)
            limits.append(Hinge(tuple(axis), lower, upper))
            if function.slope == 1.0:
                self.hinges[function.coordinate] = name
        return names, limits

    def _box(self, turning: list[tuple[Array, Function]]) -> EulerBox | None:
        """Three angles about the frame's own axes, the last one first, or None."""
        order, lower, upper = "", [0.0] * 3, [0.0] * 3
        for axis, function in turning:
            k = int(np.argmax(np.abs(axis)))
            if abs(axis[k]) != np.linalg.norm(axis):
                return None
            order = "XYZ"[k] + order
            lower[k], upper[k] = sorted(float(np.sign(axis[k])) * a for a in self._range(function, TURN))
        if sorted(order) != ["X", "Y", "Z"]:
            return None
        return EulerBox(order, (lower[0], lower[1], lower[2]), (upper[0], upper[1], upper[2]))

    def _slide(self, axis: Array, function: Function) -> Slide:
        lower, upper = self._range(function, SHIFT)
        return Slide(tuple(axis), lower, upper)

    def _range(self, function: Function, wide: float) -> tuple[float, float]:
        each: Coordinate = self.model.coordinates[function.coordinate]
        if each.locked:
            return (function.slope * each.default,) * 2
        ends = (each.lower, each.upper) if each.clamped else (-wide, wide)
        lower, upper = sorted(function.slope * end for end in ends)
        return lower, upper

    def _coupled(self, joint: OsimJoint, axis: Array, function: Function) -> CoupledOffset:
        if function.coordinate not in self.hinges:
            raise ValueError(f"joint '{joint.name}': '{function.coordinate}' is not the angle of a hinge")
        assert function.knots is not None
        assert function.values is not None
        assert function.slopes is not None
        return CoupledOffset(
            self.hinges[function.coordinate],
            tuple(axis),
            tuple(function.knots.tolist()),
            tuple(function.values.tolist()),
            tuple(function.slopes.tolist()),
        )
