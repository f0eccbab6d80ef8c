# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets put where the motion of the bones has them: at one frame, or as keys over a range.

A bake from the same motion then finds its goals met, and leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ...errors import RigError
from ...maths.batch import Array
from ...settings import SolverSettings
from ..keys import channels, writer
from ..properties.constraint_values import Constraint
from ..rig.rotation_modes import channel_values, rotation_channel
from ..scene import evaluation, isolation
from ..scene.dependence import pole_object, target_object
from ..scene.targets import AXES, TargetSample, object_channels, orthonormal
from ..solve.met_targets import met_targets
from .frame_selection import key_time


@dataclass(frozen=True)
class _Placed:
    """An object, or a bone of one, that is a target or a pole.

    Attributes:
        thing: the object.
        bone: name of its bone; empty for the object itself.
        point: place of the constraint that says where it is; -1 if none does.
        turn: place of the constraint that says how it is turned; -1 if none does.
        is_pole: whether it is the pole of these.
    """

    thing: bpy.types.Object
    bone: str
    point: int
    turn: int
    is_pole: bool

    @property
    def owner(self) -> Any:
        """What has the channels: the pose bone or the object."""
        return self.thing.pose.bones[self.bone] if self.bone else self.thing

    @property
    def name(self) -> str:
        """As messages call it."""
        return f"bone '{self.bone}' of '{self.thing.name}'" if self.bone else f"'{self.thing.name}'"

    def path(self, channel: str) -> str:
        """The data path of one of its channels."""
        return str(self.owner.path_from_id(channel)) if self.bone else channel

    def channels(self) -> tuple[str, ...]:
        """Those that are set."""
        found = ("location",) if self.point >= 0 else ()
        return (*found, rotation_channel(self.owner)[0]) if self.turn >= 0 else found


def match(
    depsgraph: bpy.types.Depsgraph,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    solver: SolverSettings,
) -> list[tuple[Any, str]]:
    """Put targets and poles where the present pose has them, without keys.

    Args:
        depsgraph: evaluated state to read.
        armature_object: carries the constraints.
        constraints: those to match.
        solver: its tolerances say whether a target has arrived.

    Returns:
        What was set: pose bones or objects, each with the name of a channel.

    Raises:
        RigError: a target does not go where it should. Nothing has changed then.
    """
    placed = _placed(armature_object, constraints)
    wanted = met_targets(evaluation.current(depsgraph, armature_object, constraints)[0], constraints)
    moved: list[tuple[Any, str]] = []
    with ExitStack() as undo:
        undo.callback(depsgraph.update)
        for each in placed:
            seen = each.thing.evaluated_get(depsgraph)
            world = armature_object.evaluated_get(depsgraph).matrix_world
            location, rotation = _local(each, seen, _world(each, seen, constraints, wanted, world))
            for channel in each.channels():
                present = tuple(getattr(each.owner, channel))
                undo.callback(setattr, each.owner, channel, present)
                if channel == "location":
                    each.owner.location = location
                else:
                    mode = each.owner.rotation_mode
                    setattr(each.owner, channel, channel_values(mode, [rotation[:]], present)[0].tolist())
                moved.append((each.owner, channel))
            depsgraph.update()  # those that hang on it come later
        arrived = evaluation.current(depsgraph, armature_object, constraints)[0]
        scale = float(np.abs(np.array(arrived.matrix_world.to_3x3())).max())
        _require_there(constraints, (arrived.targets, wanted), scale, solver, "")
        undo.pop_all()
    return moved


def key_targets(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    frames: Sequence[float],
    solver: SolverSettings,
    undo: ExitStack,
) -> int:
    """Key targets and poles where the motion has them at each of the frames; how many have got keys.

    Args:
        scene: where everything is evaluated.
        armature_object: carries the constraints, and plays the motion.
        constraints: those whose targets are keyed.
        frames: increasing; with gaps, Blender interpolates between them.
        solver: its tolerances say whether a target has arrived.
        undo: gets what takes everything back.

    Raises:
        RigError: a target does not go where it should, or cannot take keys. Close `undo` then.
    """
    placed, samples = _placed(armature_object, constraints), []
    with evaluation.frames(scene, armature_object, constraints) as sample_at:
        for frame in frames:
            sample = sample_at(frame)
            samples.append((met_targets(sample, constraints), sample.matrix_world.copy()))
    steps = np.diff(np.array(frames))
    interpolation = "LINEAR" if len(steps) == 0 or steps.max() <= 1.0 else "BEZIER"
    times = np.array(frames, dtype=np.float64) * key_time(scene)
    for each in placed:
        locals_ = []
        with isolation.isolated_scene(scene, armature_object, [(each.thing, each.bone)], ()) as isolated:
            for frame, (wanted, world) in zip(frames, samples, strict=True):
                seen = each.thing.evaluated_get(isolation.set_frame(isolated, frame))
                locals_.append(_local(each, seen, _world(each, seen, constraints, wanted, world)))
        values = {each.path(name): _values(each, name, locals_) for name in each.channels()}
        writer.write_in_place(
            each.thing, each.bone or "Object Transforms", times, values, interpolation, undo
        )
    with evaluation.frames(scene, armature_object, constraints) as sample_at:
        for frame, (wanted, world) in zip(frames, samples, strict=True):
            scale = float(np.abs(np.array(world.to_3x3())).max())
            arrived = sample_at(frame).targets, wanted
            _require_there(constraints, arrived, scale, solver, f" at frame {frame:g}")
    return len(placed)


def keyed_frames(
    scene: bpy.types.Scene, armature_object: bpy.types.Object, bones: Sequence[str], first: int, last: int
) -> list[float]:
    """Scene frames in a range at which bones have keys in the present action."""
    times = channels.present_keys(armature_object, bones) / key_time(scene)
    return [float(time) for time in np.round(times, 4) if first <= time <= last]


def _placed(armature_object: bpy.types.Object, constraints: Sequence[Constraint]) -> list[_Placed]:
    """Each target and pole once, parents first. Of constraints that share one the first says where it is.

    Raises:
        RigError: there is none, or something else moves one.
    """
    found: dict[tuple[bpy.types.Object, str], _Placed] = {}
    for c, row in enumerate(constraints):
        target, pole = target_object(row), pole_object(row)
        for thing, bone, is_pole in ((target, row.target_bone, False), (pole, row.pole_bone, True)):
            if thing is None:
                continue
            before = found.get((thing, bone), _Placed(thing, bone, -1, -1, is_pole))
            places = is_pole or row.use_position
            turns = not is_pole and row.rotation != "NONE"
            found[thing, bone] = _Placed(
                thing,
                bone,
                c if places and before.point < 0 else before.point,
                c if turns and before.turn < 0 else before.turn,
                is_pole and before.is_pole,
            )
    if not found:
        raise RigError(f"'{armature_object.name}' has no constraint with a target: choose a Target first")
    for each in found.values():
        if not each.thing.is_editable:
            raise RigError(
                f"Target {each.name} is linked from a library: make a library override of it first"
            )
        acting = next((c for c in each.owner.constraints if not c.mute and c.influence > 0.0), None)
        if acting is not None:
            raise RigError(f"Target {each.name}: its constraint '{acting.name}' moves it: mute it first")
    return sorted(found.values(), key=_depth)


def _depth(placed: _Placed) -> int:
    """How many things a target hangs on."""
    count, thing = 0, placed.thing
    while thing.parent is not None:
        count, thing = count + 1, thing.parent
    return 1000 * count + (len(placed.owner.parent_recursive) + 1 if placed.bone else 0)


def _world(
    placed: _Placed,
    seen: bpy.types.Object,
    constraints: Sequence[Constraint],
    wanted: Sequence[TargetSample],
    to_world: Matrix,
) -> Matrix:
    """Where a target should be in the world; what nobody asks for is as it is seen."""
    own = seen.pose.bones[placed.bone].matrix if placed.bone else Matrix.Identity(4)
    present: Any = seen.matrix_world @ own
    point, rotation, scale = present.decompose()
    if placed.turn >= 0:
        goal, row = wanted[placed.turn], constraints[placed.turn]
        if goal.rotation is not None:
            axes: Any = to_world.to_3x3() @ goal.rotation.to_matrix() @ Matrix.Diagonal(scale)
            rotation = orthonormal(axes) or rotation
        elif goal.direction is not None:
            axis = rotation @ AXES[row.target_axis]
            rotation = axis.rotation_difference(to_world.to_3x3() @ goal.direction) @ rotation
    if placed.point >= 0:
        goal, row = wanted[placed.point], constraints[placed.point]
        is_pole = (pole_object(row), row.pole_bone) == (placed.thing, placed.bone)
        if placed.is_pole or (goal.pole is not None and is_pole):
            point = to_world @ goal.pole if goal.pole is not None else point
        else:
            row = goal.settings_of(row)
            axes_of: dict[str, Any] = {
                "TARGET": Matrix.LocRotScale(None, rotation, scale).to_3x3(),
                "ARMATURE": to_world.to_3x3(),
                "WORLD": Matrix.Identity(3),
            }
            point = to_world @ goal.point - axes_of[row.offset_space] @ Vector(row.offset)
    return Matrix.LocRotScale(point, rotation, scale)


def _local(placed: _Placed, seen: bpy.types.Object, world: Matrix) -> tuple[Vector, Quaternion]:
    """Location and rotation of a target's own channels that bring it to a place in the world."""
    if not placed.bone:
        carrier: Any = seen.matrix_world @ seen.matrix_basis.inverted()
        return object_channels(placed.thing, carrier.inverted() @ world)
    pose_bone = seen.pose.bones[placed.bone]
    bone, parent = pose_bone.bone, pose_bone.parent
    above = {}
    if parent is not None:
        above = {"parent_matrix": parent.matrix, "parent_matrix_local": parent.bone.matrix_local}
    pose: Any = seen.matrix_world.inverted() @ world
    basis = bone.convert_local_to_pose(pose, bone.matrix_local, invert=True, **above)
    location, rotation, _ = basis.decompose()
    return location, rotation


def _values(placed: _Placed, channel: str, locals_: Sequence[tuple[Vector, Quaternion]]) -> Array:
    """(F, C) what a channel of a target holds."""
    if channel == "location":
        return np.array([location[:] for location, _ in locals_])
    rotations = [rotation[:] for _, rotation in locals_]
    return channel_values(placed.owner.rotation_mode, rotations, tuple(getattr(placed.owner, channel)))


def _require_there(
    constraints: Sequence[Constraint],
    targets: tuple[Sequence[TargetSample], Sequence[TargetSample]],
    scale: float,
    solver: SolverSettings,
    when: str,
) -> None:
    """Refuse targets that are not where they were put: drivers, locks or other constraints hold them."""
    for constraint, arrived, wanted in zip(constraints, *targets, strict=True):
        if not constraint.target:
            continue
        far = scale * (arrived.point - wanted.point).length if constraint.use_position else 0.0
        turn = 0.0
        if arrived.rotation is not None and wanted.rotation is not None:
            angle = arrived.rotation.rotation_difference(wanted.rotation).angle
            turn = min(angle, 2.0 * np.pi - angle)
        if far > solver.position_tolerance or turn > solver.angle_tolerance:
            raise RigError(
                f"Constraint '{constraint.name}': its target '{constraint.target}' cannot be put where the "
                f"bone is{when}: look for drivers, locks, or another constraint with the same target"
            )
