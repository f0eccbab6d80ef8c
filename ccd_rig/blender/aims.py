"""What a constraint asks of the solver at one frame: its goals, and the model in which balance is straight.

All is in armature space unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mathutils import Matrix, Quaternion, Vector

from ..errors import RigError
from ..goals import BalanceGoal, DirectionGoal, Goal, OrientationGoal, PoleGoal, PositionGoal
from ..limits import Slide
from ..quaternions import between
from ..skeleton import Joint, Pose, Skeleton
from .properties import Constraint

AXES = {
    f"{name}_{axis}": Vector([sign * (i == k) for i in range(3)]).freeze()
    for name, sign in (("POS", 1.0), ("NEG", -1.0))
    for k, axis in enumerate("XYZ")
}
"""The values of `Constraint.bone_axis` and `target_axis` as unit vectors."""
FLAT = 1e-6
"""Part of its length that an axis must have beside another one to tell a rotation."""
STRAIGHT = 1e-7
"""Radians: model and world agree, but for float32."""


class Aim(NamedTuple):
    """Where the targets of one constraint are at a frame, in armature space.

    Attributes:
        point: where the tip's end should be; for BALANCE the centre of mass.
        rotation: that of the target, where ORIENTATION asks for it (see `orthonormal`).
        direction: unit, where the target's axis points, where DIRECTION asks for it.
        pole: where the pole target is, if there is one.
    """

    point: Vector
    rotation: Quaternion | None = None
    direction: Vector | None = None
    pole: Vector | None = None

    def turned(self, turn: Quaternion) -> Aim:
        """The same aim in a model that is turned about its origin."""
        return Aim(
            turn @ self.point,
            None if self.rotation is None else (turn @ self.rotation).normalized(),
            None if self.direction is None else turn @ self.direction,
            None if self.pole is None else turn @ self.pole,
        )


def orthonormal(axes: Any) -> Quaternion | None:
    """The rotation of a frame whose axes are the columns of a 3x3 matrix, of any length, sheared or mirrored.

    Y points along the second column exactly, Z as near to the third as a right angle allows, and X completes
    them; where the matrix mirrors, X so is the one that points the other way. None for a flat matrix.
    """
    y, z = axes.col[1].copy(), axes.col[2].copy()
    if min(y.length, z.length) == 0.0:
        return None
    y.normalize()
    z.normalize()
    z -= y * z.dot(y)
    if z.length <= FLAT:
        return None
    z.normalize()
    columns: Any = Matrix((y.cross(z), y, z))
    return columns.transposed().to_quaternion().normalized()


def chain_joints(skeleton: Skeleton, constraint: Constraint) -> tuple[int, ...]:
    """Joints that the constraint can move, root first."""
    chain = skeleton.chain(constraint.tip, constraint.chain_length)
    return tuple(j for j in chain if not skeleton.joints[j].locked)


def goals(skeleton: Skeleton, constraint: Constraint, aim: Aim) -> list[Goal]:
    """The goals of a constraint, at least one.

    Priorities are doubled, so that a pole stands between its own position and what is served after that.

    Raises:
        RigError: there is no bend for a pole; names the constraint.
    """
    joint, length, weight = constraint.tip, constraint.chain_length, constraint.weight
    priority = 2 * constraint.priority
    if constraint.kind == "BALANCE":
        return [BalanceGoal(aim.point, constraint.balance_axes, weight, priority)]
    found: list[Goal] = []
    if constraint.use_position:
        end = None if constraint.use_tail else Vector((0.0, 0.0, 0.0))
        window = (constraint.reach, constraint.reach_joints, constraint.method == "LEAF")
        found.append(PositionGoal(joint, aim.point, end, weight, priority, length, *window))
    weight *= constraint.rotation_weight
    if aim.rotation is not None:
        found.append(OrientationGoal(joint, aim.rotation, weight, priority, length))
    if aim.direction is not None:
        axis = AXES[constraint.bone_axis]
        found.append(DirectionGoal(joint, axis, aim.direction, weight, priority, length))
    if aim.pole is not None:
        root, last = pole_chain(skeleton, constraint)
        found.append(PoleGoal(root, last, aim.pole, constraint.weight, priority + 1))
    return found


def pole_chain(skeleton: Skeleton, constraint: Constraint) -> tuple[str, str]:
    """Names of the first joint of the chain that can turn, and of the last one that bends.

    Raises:
        RigError: these are not two joints, so that there is no bend.
    """
    chain = skeleton.chain(constraint.tip, constraint.chain_length)
    if not constraint.use_tail:  # the tip hangs on the end that is brought to the target
        chain = chain[:-1]
    first = next((j for j in chain if not skeleton.joints[j].locked), chain[0] if chain else -1)
    if not chain or first == chain[-1]:
        bones = "two bones that can turn" if constraint.use_tail else "two bones before its last one"
        raise RigError(
            f"Constraint '{constraint.name}': a pole needs a chain of {bones}: make the chain longer, or "
            "clear the pole target"
        )
    return skeleton.joints[first].name, skeleton.joints[chain[-1]].name


# Balance in a turned model --------------------------------------------------------------------------


def level(matrix_world: Any, axes: Sequence[bool]) -> Quaternion:
    """The turn of the model after which the world's `axes` of a centre of mass are right if the model's are.

    With one axis that counts, the points that are right make a plane, with two a line; `matrix_world` (from
    armature space to the world; it may scale, shear and mirror) takes it from there to here. A plane or a
    line is turned to where `BalanceGoal` has it. With all three there is one point, and nothing to turn.
    """
    if all(axes):
        return Quaternion()
    linear = matrix_world.to_3x3()
    if sum(axes) == 1:
        k = axes.index(True)
        there = linear.transposed() @ AXES[f"POS_{'XYZ'[k]}"]  # the plane's normal
    else:
        k = axes.index(False)
        there = linear.inverted() @ AXES[f"POS_{'XYZ'[k]}"]  # along the line
    here = AXES[f"POS_{'XYZ'[k]}"]
    there = (there if there.dot(here) >= 0.0 else -there).normalized()
    turn = between(there, here)
    return turn if Vector(turn[1:]).length > STRAIGHT else Quaternion()


def turned_model(skeleton: Skeleton, pose: Pose, turn: Quaternion) -> tuple[Skeleton, Pose]:
    """The same skeleton and pose in a model that is turned about its origin; rotations stay as they are."""
    if turn == Quaternion():
        return skeleton, pose
    joints = []
    for joint in skeleton.joints:
        if joint.parent == -1:
            rest = (turn @ joint.rest_rotation).normalized()
            joint = replace(joint, offset=turn @ joint.offset, rest_rotation=rest)
        elif not joint.inherit_rotation:
            slide = joint.slide
            if slide is not None:
                slide = Slide(tuple(_own_turn(joint, turn) @ Vector(slide.axis)), slide.lower, slide.upper)
            rest = (turn @ joint.rest_rotation).normalized()
            joint = replace(joint, rest_rotation=rest, slide=slide)
        joints.append(joint)
    return Skeleton(joints), _turned_shifts(skeleton, pose, turn)


def turned_back(skeleton: Skeleton, pose: Pose, turn: Quaternion) -> Pose:
    """A pose of the turned model as one of `skeleton`, the model before it was turned."""
    return pose if turn == Quaternion() else _turned_shifts(skeleton, pose, turn.inverted())


def _own_turn(joint: Joint, turn: Quaternion) -> Quaternion:
    """What undoes the turn in the rest axes of a joint whose rest, but not whose shift, is the model's.

    With R_p' = T R_p and rest' = T rest, T R_p rest t = R_p' rest' t' for t' = rest^-1 T^-1 rest t.
    """
    rest = joint.rest_rotation
    return rest.inverted() @ turn.inverted() @ rest


def _turned_shifts(skeleton: Skeleton, pose: Pose, turn: Quaternion) -> Pose:
    shifts = tuple(
        shift if joint.inherit_rotation or joint.parent == -1 else (_own_turn(joint, turn) @ shift).freeze()
        for joint, shift in zip(skeleton.joints, pose.translations, strict=True)
    )
    return Pose.trusted(pose.rotations, shifts)
