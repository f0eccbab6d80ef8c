# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets and poles that follow the bones: at one frame, as keys over a range, as an offset layer.

Matched targets are where the motion of the bones has them, so a bake of the same motion changes nothing.

An offset layer shifts Target Offset over frames, with a falloff on either side. The target's own keys stay,
and so does Target Offset outside the falloff. Frames are scene frames; shifts are in the axes and the unit of
the constraint's Offset Space.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ...errors import RigError
from ...goals import centre_of_mass
from ...kernel import POLE_NOISE
from ...maths.batch import Array, smooth_step
from ...settings import SolverSettings
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import Transform, bend_sides, chain_bend, forward_kinematics
from ..keys import channels, keyframes, writer
from ..keys.writer import ChannelKeys
from ..properties import constraint_list
from ..properties.constraint_kinds import effector, pole_goal, rotation_chain
from ..properties.constraint_values import AXES, Constraint, TargetSample
from ..rig.rotation_modes import Twin, channel_values, rotation_channel, values_between, within_locks
from ..scene import evaluation, isolation
from ..scene.dependence import pole_object, target_object
from ..scene.evaluation import FrameSample, playback
from ..scene.targets import Carrier
from ..solve.methods import eased_point
from .frame_selection import key_time


@dataclass(frozen=True)
class _Placed:
    """An object, or a bone of one, that is a target or a pole."""

    obj: bpy.types.Object
    bone: str  # name of its bone; empty for the object itself
    point: int  # index of the constraint that decides its place; -1 without one
    turn: int  # index of the constraint that decides its rotation; -1 without one
    is_pole: bool  # whether it is the pole of these

    @property
    def owner(self) -> Any:
        """The pose bone or object with the channels."""
        return self.obj.pose.bones[self.bone] if self.bone else self.obj

    @property
    def name(self) -> str:
        """Its name for messages."""
        return f"bone '{self.bone}' of '{self.obj.name}'" if self.bone else f"'{self.obj.name}'"

    def path(self, channel: str) -> str:
        """The data path of one of its channels."""
        return str(self.owner.path_from_id(channel)) if self.bone else channel

    def channels(self) -> tuple[str, ...]:
        """Names of the channels to set."""
        location = ("location",) if self.point >= 0 else ()
        return (*location, rotation_channel(self.owner)[0]) if self.turn >= 0 else location


def match(
    depsgraph: bpy.types.Depsgraph,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    solver: SolverSettings,
) -> list[tuple[Any, str]]:
    """Put targets and poles where the present pose has them, without keys.

    Args:
        depsgraph: evaluated state to read.
        solver: with the tolerances for targets.

    Returns:
        The pose bones or objects that were set, each with the name of a channel.

    Raises:
        RigError: a target does not arrive at its place. Nothing has changed then.
    """
    placed = _placed(armature_object, constraints)
    wanted = met_targets(evaluation.current(depsgraph, armature_object, constraints)[0], constraints)
    moved: list[tuple[Any, str]] = []
    with ExitStack() as undo:
        undo.callback(depsgraph.update)
        for each in placed:
            seen = each.obj.evaluated_get(depsgraph)
            world = armature_object.evaluated_get(depsgraph).matrix_world
            location, rotation = _local(each, seen, constraints, wanted, world)
            for channel in each.channels():
                present = tuple(getattr(each.owner, channel))
                undo.callback(setattr, each.owner, channel, present)
                values = location[:]
                if channel != "location":
                    mode = each.owner.rotation_mode
                    values = channel_values(mode, [rotation[:]], present)[0].tolist()
                setattr(each.owner, channel, within_locks(each.owner, channel, values))
                moved.append((each.owner, channel))
            depsgraph.update()  # children follow later
        arrived = evaluation.current(depsgraph, armature_object, constraints)[0]
        _require_there(constraints, (arrived.targets, wanted), _scale(arrived.matrix_world), solver, "")
        undo.pop_all()
    return moved


class MetTargets(NamedTuple):
    """Targets and poles that a pose meets, before the pose is changed."""

    armature_object: bpy.types.Object
    solver: SolverSettings  # with the tolerances for targets
    places: Mapping[str, TargetSample]  # {constraint: its target, in armature space}
    constraints: tuple[Constraint, ...]  # of the armature, met or not

    @classmethod
    def of(
        cls,
        depsgraph: bpy.types.Depsgraph,
        armature_object: bpy.types.Object,
        constraints: Sequence[Constraint],
        solver: SolverSettings,
    ) -> MetTargets:
        """Find those of the present pose; a centre of mass has no bone that takes its target along."""
        reaching = tuple(each for each in constraints if each.target and not each.kind.balances)
        if not reaching:
            return cls(armature_object, solver, {}, ())
        sample = evaluation.current(depsgraph, armature_object, reaching)[0]
        places = zip(reaching, met_targets(sample, reaching), _are_met(sample, reaching, solver), strict=True)
        met = {constraint.name: place for constraint, place, is_met in places if is_met}
        return cls(armature_object, solver, met, reaching)

    def follow(self, depsgraph: bpy.types.Depsgraph) -> tuple[list[tuple[Any, str]], list[str]]:
        """Match those whose bones have moved away, and those that hang on such a target.

        Targets that were away from their bones stay, and so do objects that are more than a handle.

        Returns:
            As `match`, and the constraints of such objects.

        Raises:
            RigError: as `match`.
        """
        if not self.places:
            return [], []
        sample = evaluation.current(depsgraph, self.armature_object, self.constraints)[0]
        scale = _scale(sample.matrix_world)
        places = met_targets(sample, self.constraints)
        are_met = _are_met(sample, self.constraints, self.solver)
        left, still = list[Constraint](), list[Constraint]()
        for constraint, place, is_met in zip(self.constraints, places, are_met, strict=True):
            before = self.places.get(constraint.name)
            if is_met:
                still.append(constraint)
            elif before is not None and _differ(constraint, before, place, scale, self.solver):
                left.append(constraint)
        others = [each.name for each in left if not _is_handle(each)]
        left = [each for each in left if _is_handle(each)]
        if not left:
            return [], others
        moved = {(each.obj, each.bone) for each in _placed(self.armature_object, left)}
        left += [each for each in still if any(_hangs_on(*ref, moved) for ref in _refs(each))]
        return match(depsgraph, self.armature_object, left, self.solver), others


def _refs(constraint: Constraint) -> list[tuple[bpy.types.Object, str]]:
    """Target and pole of a constraint: objects, each with the name of a bone or empty."""
    target = target_object(constraint), constraint.target_bone
    pole = pole_object(constraint), constraint.pole_bone
    return [(obj, bone) for obj, bone in (target, pole) if obj is not None]


def _is_handle(constraint: Constraint) -> bool:
    """Whether target and pole are empties, or bones that deform nothing."""
    return all(
        not obj.pose.bones[bone].bone.use_deform if bone else obj.type == "EMPTY"
        for obj, bone in _refs(constraint)
    )


def _hangs_on(obj: bpy.types.Object, bone: str, carriers: Collection[tuple[bpy.types.Object, str]]) -> bool:
    """Whether an object or a bone is below one of several."""
    above = [(obj, each.name) for each in obj.pose.bones[bone].parent_recursive] if bone else []
    parent = (obj, "") if bone else (obj.parent, obj.parent_bone)
    if any(each in carriers for each in above):
        return True
    return parent[0] is not None and (parent in carriers or _hangs_on(*parent, carriers))


class Keyed(NamedTuple):
    """How much was keyed."""

    targets: int  # number of targets and poles
    frames: int  # number of frames


def key_targets(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    frames: Sequence[float],
    solver: SolverSettings,
    undo: ExitStack,
    trims: bool = False,
) -> Keyed:
    """Key targets and poles where the motion has them.

    Args:
        armature_object: carries the constraints, and plays the motion.
        frames: increasing; with gaps, Blender interpolates between them.
        solver: with the tolerances for targets.
        undo: gets the callbacks that take everything back.
        trims: leave out frames before and after the motion that plays, if nothing moves there.

    Raises:
        RigError: a target does not arrive at its place, or cannot take keys. Close `undo` then.
    """
    placed, samples = _placed(armature_object, constraints), []
    with evaluation.frames(scene, armature_object, constraints) as sample_at:
        for frame in frames:
            sample = sample_at(frame)
            samples.append((met_targets(sample, constraints), sample.matrix_world))
    if trims:
        kept = _moving(scene, armature_object, frames, samples)
        frames, samples = frames[kept], samples[kept]
    steps = np.diff(np.array(frames))
    interpolation = "LINEAR" if len(steps) == 0 or steps.max() <= 1.0 else "BEZIER"
    time = key_time(scene)
    times = np.array(frames, dtype=np.float64) * time
    for each in placed:
        locals_ = []
        with isolation.isolated_scene(scene, armature_object, [(each.obj, each.bone)], ()) as isolated:
            for frame, (wanted, world) in zip(frames, samples, strict=True):
                seen = each.obj.evaluated_get(isolation.set_frame(isolated, frame))
                locals_.append(_local(each, seen, constraints, wanted, world))
        group, keys = each.bone or "Object Transforms", list[ChannelKeys]()
        for name in each.channels():
            values, twin = _values(each, name, locals_, times, time)
            keys.append(ChannelKeys(group, each.path(name), times, values, interpolation, twin))
        writer.write_in_place(each.obj, keys, undo, time)
    with evaluation.frames(scene, armature_object, constraints) as sample_at:
        for frame, (wanted, world) in zip(frames, samples, strict=True):
            arrived = sample_at(frame).targets, wanted
            _require_there(constraints, arrived, _scale(world), solver, f" at frame {frame:.7g}")
    return Keyed(len(placed), len(frames))


def _moving(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    frames: Sequence[float],
    samples: Sequence[tuple[Sequence[TargetSample], Matrix]],
) -> slice:
    """The frames in the range of action and strips; all if something moves outside, or none is inside."""
    ranges, time = channels.played_ranges(armature_object), key_time(scene)
    whole = slice(0, len(frames))
    if not ranges:
        return whole
    first, last = min(start for start, _ in ranges) / time, max(end for _, end in ranges) / time
    inside = [k for k, frame in enumerate(frames) if first - 1.0 < frame < last + 1.0]
    if not inside:
        return whole
    start, end = inside[0], inside[-1]
    is_still = all(each == samples[start] for each in samples[:start])
    is_still = is_still and all(each == samples[end] for each in samples[end + 1 :])
    return slice(start, end + 1) if is_still else whole


def keyed_frames(
    scene: bpy.types.Scene, armature_object: bpy.types.Object, bones: Sequence[str], first: int, last: int
) -> list[float]:
    """Scene frames in a range at which bones have keys in the present action."""
    times = channels.present_keys(armature_object, bones) / key_time(scene)
    return [float(time) for time in np.round(times, 4) if first <= time <= last]


def _placed(armature_object: bpy.types.Object, constraints: Sequence[Constraint]) -> list[_Placed]:
    """Each target and pole once, parents first. The first of constraints that share one decides its place.

    Raises:
        RigError: there is none, or one cannot be edited, or a constraint moves it.
    """
    placed: dict[tuple[bpy.types.Object, str], _Placed] = {}
    for c, row in enumerate(constraints):
        target, pole = target_object(row), pole_object(row)
        for obj, bone, is_pole in ((target, row.target_bone, False), (pole, row.pole_bone, True)):
            if obj is None:
                continue
            before = placed.get((obj, bone), _Placed(obj, bone, -1, -1, is_pole))
            places = is_pole or row.use_position
            turns = not is_pole and row.rotation != "NONE"
            placed[obj, bone] = _Placed(
                obj,
                bone,
                c if places and before.point < 0 else before.point,
                c if turns and before.turn < 0 else before.turn,
                is_pole and before.is_pole,
            )
    if not placed:
        raise RigError(f"'{armature_object.name}' has no constraint with a target: choose a Target first")
    for each in placed.values():
        if not each.obj.is_editable:
            raise RigError(
                f"Target {each.name} is linked from a library: make a library override of it first"
            )
        if channels.is_system_override(each.obj):
            raise RigError(
                f"Target {each.name} is an override that is not editable: "
                "use Library Override > Make > Selected first"
            )
        acting = next((c for c in each.owner.constraints if not c.mute and c.influence > 0.0), None)
        if acting is not None:
            raise RigError(f"Target {each.name}: its constraint '{acting.name}' moves it: mute it first")
    return sorted(placed.values(), key=_depth)


def _depth(placed: _Placed) -> int:
    """Depth of a target below its parents."""
    count, obj = 0, placed.obj
    while obj.parent is not None:
        count, obj = count + 1, obj.parent
    return 1000 * count + (len(placed.owner.parent_recursive) + 1 if placed.bone else 0)


def _local(
    placed: _Placed,
    seen: bpy.types.Object,
    constraints: Sequence[Constraint],
    wanted: Sequence[TargetSample],
    to_world: Matrix,
) -> tuple[Vector, Quaternion]:
    """Location and rotation channels of a target that meets the goals; those without a goal stay.

    Args:
        seen: the evaluated object.
        wanted: goals in armature space.
        to_world: from armature space.

    Raises:
        RigError: the target or what carries it is flat.
    """
    in_armature: Any = seen.pose.bones[placed.bone].matrix if placed.bone else Matrix.Identity(4)
    point, space = (seen.matrix_world @ in_armature).to_translation(), to_world.to_3x3()
    try:
        carrier = Carrier.of(seen, placed.bone)
        rotation = carrier.rotation
        if placed.turn >= 0:
            goal, row = wanted[placed.turn], constraints[placed.turn]
            if goal.rotation is not None:
                rotation = carrier.turned(goal.rotation, space) or rotation
            elif goal.direction is not None:
                rotation = carrier.pointed(AXES[row.target_axis], space @ goal.direction)
        if placed.point >= 0:
            goal, row = wanted[placed.point], constraints[placed.point]
            is_pole = (pole_object(row), row.pole_bone) == (placed.obj, placed.bone)
            if placed.is_pole or (goal.pole is not None and is_pole):
                point = to_world @ goal.pole if goal.pole is not None else point
            else:
                row = goal.settings_of(row)
                axes_of = {
                    "TARGET": carrier.shown(rotation),
                    "ARMATURE": space,
                    "WORLD": Matrix.Identity(3),
                }
                point = to_world @ goal.point - axes_of[row.offset_space] @ Vector(row.offset)
        return carrier.channels(point, rotation)
    except ValueError:
        raise RigError(
            f"Target {placed.name}: it or its parent has scale 0 on an axis: set its scale to 1"
        ) from None


def _values(
    placed: _Placed, channel: str, locals_: Sequence[tuple[Vector, Quaternion]], times: Array, time: float
) -> tuple[Array, Twin | None]:
    """(F, C) values of a channel of a target, and what its later keys get.

    Args:
        times: (F,) times of the keys.
        time: length of a scene frame in the time of keys.
    """
    if channel == "location":
        return np.array([location[:] for location, _ in locals_]), None
    key = placed.bone, channel
    previous, later = (
        channels.values_beside(placed.obj, [key], edge, way, time).get(key)
        for edge, way in ((times[0], -1), (times[-1], 1))
    )
    rotations = [rotation[:] for _, rotation in locals_]
    return values_between(placed.owner.rotation_mode, rotations, previous, later)


def _scale(world: Matrix) -> float:
    """Largest factor from lengths in armature space to the world."""
    return float(np.abs(np.array(world.to_3x3())).max())


def _differ(
    constraint: Constraint, one: TargetSample, other: TargetSample, scale: float, solver: SolverSettings
) -> bool:
    """Whether two targets of a constraint, or their poles, differ by more than the tolerances."""
    if not _is_same(constraint, one, other, scale, solver):
        return True
    if one.pole is None or other.pole is None:
        return False
    return scale * (one.pole - other.pole).length > solver.position_tolerance


def _is_same(
    constraint: Constraint, one: TargetSample, other: TargetSample, scale: float, solver: SolverSettings
) -> bool:
    """Whether two targets of a constraint, in armature space, are the same within tolerances."""
    if constraint.use_position and scale * (one.point - other.point).length > solver.position_tolerance:
        return False
    if one.direction is not None and other.direction is not None:
        return one.direction.angle(other.direction) <= solver.angle_tolerance
    if one.rotation is None or other.rotation is None:
        return True
    angle = one.rotation.rotation_difference(other.rotation).angle
    return min(angle, 2.0 * np.pi - angle) <= solver.angle_tolerance


def _require_there(
    constraints: Sequence[Constraint],
    targets: tuple[Sequence[TargetSample], Sequence[TargetSample]],
    scale: float,
    solver: SolverSettings,
    when: str,
) -> None:
    """Refuse targets that drivers, locks or other constraints keep from their places."""
    for constraint, arrived, wanted in zip(constraints, *targets, strict=True):
        if constraint.target and not _is_same(constraint, arrived, wanted, scale, solver):
            raise RigError(
                f"Constraint '{constraint.name}': its target '{constraint.target}' cannot be put where the "
                f"bone is{when}: look for drivers, locks, or another constraint with the same target"
            )


# Offset layer -----------------------------------------------------------------------------------------------


FIELD = "offset"
SIZE = 3
"""Components of Target Offset."""


class Span(NamedTuple):
    """The frames of a layer."""

    start: int  # first frame of the full shift
    end: int  # last frame of the full shift
    falloff: int  # frames of the blend before the start, and after the end; at least 1

    @property
    def first(self) -> int:
        """The last frame before the layer."""
        return self.start - self.falloff

    @property
    def last(self) -> int:
        """The first frame after it."""
        return self.end + self.falloff

    def weights(self, frames: Array) -> Array:
        """(F,) weights of the shift, 0 to 1; smoothstep in the falloff."""
        corners = (self.first, self.start, self.end, self.last)
        return smooth_step(np.interp(frames, corners, (0.0, 1.0, 1.0, 0.0)))


def uses_offset(constraint: Any) -> bool:
    """Whether a Target Offset is not 0 or is animated, so that its space has a meaning."""
    path = f"{constraint.path_from_id()}.{FIELD}"
    return any(constraint.offset) or path in channels.played_paths(constraint.id_data)


def shift_over(
    scene: bpy.types.Scene, constraint: Any, shift: Sequence[float], span: Span, undo: ExitStack
) -> None:
    """Add a shift to a constraint's Target Offset over frames, by keys in the present action.

    A constant Target Offset gets four keys, an animated one a key at each frame up to the keys around. One
    that NLA strips play gets a strip with four keys, which is added to them.

    Args:
        scene: gives the time of keys.
        shift: (3,) added to the offset.
        undo: gets the callbacks that take everything back.

    Raises:
        RigError: Target Offset cannot be keyed, names the constraint. Close `undo` then.
    """
    if span.end < span.start:
        raise RigError(f"Frames {span.start} to {span.end}: the start must not lie after the end")
    rig: bpy.types.Object = constraint.id_data
    path = f"{constraint.path_from_id()}.{FIELD}"
    by_index = {curve.array_index: curve for curve in channels.fcurves_of(rig) if curve.data_path == path}
    curves = [by_index.get(i) for i in range(SIZE)]
    animation = rig.animation_data
    strips = () if animation is None else channels.playing_strips(animation)
    in_strips = any(curve.data_path == path for strip in strips for curve in channels.strip_fcurves(strip))
    _require_shiftable(constraint, path, curves, in_strips)
    time = key_time(scene)
    corners: Array = np.array([span.first, span.start, span.end, span.last], dtype=np.float64)
    if in_strips:
        corners = np.unique(corners)
        shifts = span.weights(corners)[:, None] * np.array(shift, dtype=np.float64)
        writer.add_layer(rig, ChannelKeys(constraint.name, path, corners * time, shifts, "BEZIER"), undo)
        return
    times = [
        np.zeros(0) if curve is None else keyframes.times(curve).astype(np.float64) / time for curve in curves
    ]
    before, after = _edge(times, span.first, -1), _edge(times, span.last, 1)

    def values_at(frames: Array) -> Array:
        columns = [
            np.full(len(frames), constraint.offset[i])
            if curve is None or curve.is_empty
            else np.array([curve.evaluate(frame * time) for frame in frames.tolist()])
            for i, curve in enumerate(curves)
        ]
        return np.stack(columns, axis=1)

    # Keys on either side keep their handles, and thus the curve beyond them.
    low = span.first if before is None else math.floor(before) + 1
    high = span.last if after is None else math.ceil(after) - 1
    every: Array = np.arange(low, high + 1, dtype=np.float64)
    ends = [edge for edge in (before, after) if edge is not None]
    around = values_at(np.array([*every, *ends]))
    interpolation = "LINEAR"
    is_still = (around == around[:1]).all() and not any(
        ((each >= low) & (each <= high)).any() for each in times
    )
    if is_still and low <= span.first and high >= span.last:
        every = np.unique(corners)
        interpolation = "BEZIER"
    values = values_at(every) + span.weights(every)[:, None] * np.array(shift, dtype=np.float64)
    keys = ChannelKeys(constraint.name, path, every * time, values, interpolation)
    writer.write_in_place(rig, [keys], undo, time)


def _edge(times: Sequence[Array], frame: float, way: int) -> float | None:
    """The nearest frame on a side (`way` -1 or 1) with a key of every component keyed there, or None."""
    beyond = [np.unique(way * each[way * each >= way * frame - keyframes.MERGE_DISTANCE]) for each in times]
    beyond = [each for each in beyond if len(each)]
    if not beyond:
        return None
    place = max(float(each[0]) for each in beyond)
    while True:
        # A component whose keys all lie nearer is constant beyond its last one.
        later = [each[each >= place - keyframes.MERGE_DISTANCE] for each in beyond]
        farthest = max((float(each[0]) for each in later if len(each)), default=place)
        if farthest <= place + keyframes.MERGE_DISTANCE:
            return way * place
        place = farthest


def _require_shiftable(
    constraint: Any, path: str, curves: Sequence[bpy.types.FCurve | None], in_strips: bool
) -> None:
    """Refuse a Target Offset with a driver, modifiers or extrapolation, or strips that none can be added to.

    In tweak mode, under a solo track or below keys of the present action, an added strip would not play.
    """
    where = f"Constraint '{constraint.name}': Target Offset"
    if constraint.target is None:
        raise RigError(f"Constraint '{constraint.name}' has no target: choose one first")
    if any(driver.data_path == path for driver in channels.drivers_of(constraint.id_data)):
        raise RigError(f"{where} has a driver: remove it first")
    animation = constraint.id_data.animation_data
    if in_strips and (animation.use_tweak_mode or channels.is_solo(animation) or any(curves)):
        raise RigError(f"{where} plays in NLA strips: mute them, and make their action the present one")
    for curve in curves:
        if curve is not None and (len(curve.modifiers) or curve.extrapolation != "CONSTANT"):
            raise RigError(
                f"{where} has an F-curve that goes on beyond its keys, or has modifiers: remove these, and "
                "set Extrapolation to Constant"
            )


# Poles ------------------------------------------------------------------------------------------------------


class PolePlace(NamedTuple):
    """The place of a pole."""

    bone: str  # the parent of the chain, which carries the pole; empty for the armature object itself
    location: Vector  # from the tail of that bone along its axes, or in armature space


def pole_place(
    scene: bpy.types.Scene, armature_object: bpy.types.Object, constraint: Constraint, frame: float
) -> PolePlace:
    """The place of a pole at a chain's length from the middle of its line, on the side of its bend.

    Args:
        frame: of the bend.

    Raises:
        RigError: the chain is straight there.
    """
    chain = constraint_list.chain_of(armature_object, constraint)
    with playback(scene, armature_object, [constraint]) as playing:
        matrices = playing.pose(frame)[0].astype(np.float64)
    places = matrices[[armature_object.pose.bones.find(bone.name) for bone in reversed(chain)]]
    heads, root, end = places[:, :3, 3], places[0, :3, 3], places[-1, :3, 3]
    if constraint.use_tail:
        end = end + places[-1, :3, 1] * chain[0].bone.length
    size = sum(bone.bone.length for bone in chain)
    side = bend_sides(heads[None], end[None], size)[0]
    if not side.any():
        raise RigError(
            f"Constraint '{constraint.name}': its chain is straight at frame {frame:.7g}, so it has no side: "
            "choose a Pole Target yourself"
        )
    point = 0.5 * (root + end) + size * side
    parent = chain[-1].parent
    if parent is None:
        return PolePlace("", Vector(point))
    carrier = matrices[armature_object.pose.bones.find(parent.name)]
    local = np.linalg.solve(carrier, np.append(point, 1.0))[:3]
    return PolePlace(parent.name, Vector(local) - Vector((0.0, parent.bone.length, 0.0)))


# Targets that a pose meets ----------------------------------------------------------------------------------


def met_targets(sample: FrameSample, constraints: Sequence[Constraint]) -> tuple[TargetSample, ...]:
    """The targets of each constraint that the base pose of a frame meets, in armature space.

    Components without a goal keep their value, and so does the pole of a chain without a clear bend.
    """
    skeleton, pose = sample.reading.skeleton, sample.reading.pose
    transforms = forward_kinematics(skeleton, pose)
    met = []
    for constraint, present in zip(constraints, sample.targets, strict=True):
        goal = _met(skeleton, transforms, constraint, present)
        if constraint.method == "TWO_BONE":
            goal = goal._replace(point=eased_point(skeleton, pose, constraint, goal))
        met.append(goal)
    return tuple(met)


def _met(
    skeleton: Skeleton, transforms: Sequence[Transform], constraint: Constraint, present: TargetSample
) -> TargetSample:
    constraint = present.settings_of(constraint)
    if constraint.kind.balances:
        off = centre_of_mass(skeleton, transforms) - present.point
        if present.direction is not None:
            along = present.direction * present.direction.dot(off)
            off = along if sum(constraint.balance_axes) == 1 else off - along
        return present._replace(point=present.point + off, direction=None)
    point = present.point
    if constraint.use_position:
        point = transforms[skeleton.index(constraint.tip)].point(effector(skeleton, constraint))
    rotation, direction = present.rotation, present.direction
    if rotation is not None or direction is not None:
        turned = transforms[skeleton.index(rotation_chain(skeleton, constraint)[0])].rotation
        rotation = None if rotation is None else turned
        direction = None if direction is None else turned @ AXES[constraint.bone_axis]
    pole = present.pole
    if pole is not None:
        pole = _met_pole(skeleton, transforms, constraint, pole)
    return present._replace(point=point, rotation=rotation, direction=direction, pole=pole)


def _met_pole(
    skeleton: Skeleton, transforms: Sequence[Transform], constraint: Constraint, present: Vector
) -> Vector:
    """A pole on the side of the bend, at its present distance from the line, or half the line's length."""
    sides = _PoleSides.of(skeleton, transforms, constraint, present)
    if sides is None:
        return present
    away = max(sides.pole.length, 0.5 * sides.line.length)
    return sides.start + 0.5 * sides.line + sides.bend.normalized() * away


class _PoleSides(NamedTuple):
    """Sides of a chain's bend and of its pole, across the line to the chain's end, in armature space."""

    start: Vector  # of the line
    line: Vector
    bend: Vector  # with the Pole Angle
    pole: Vector

    @classmethod
    def of(
        cls, skeleton: Skeleton, transforms: Sequence[Transform], constraint: Constraint, pole: Vector
    ) -> _PoleSides | None:
        """Measure them; None without a clear bend."""
        goal = pole_goal(skeleton, constraint, pole)
        heads, end, axis, scale = goal.placed(skeleton, transforms)
        bend = chain_bend(heads, end, axis, scale)
        if bend.length <= POLE_NOISE * scale:
            return None
        line = end - heads[0]
        along = line.normalized()
        side = pole - heads[0]
        across = Quaternion(along, -goal.angle) @ (bend - along * bend.dot(along))
        return cls(heads[0], line, across, side - along * side.dot(along))


def _are_met(sample: FrameSample, constraints: Sequence[Constraint], solver: SolverSettings) -> list[bool]:
    """Whether the base pose of a frame meets the target and pole of each constraint."""
    skeleton, scale = sample.reading.skeleton, _scale(sample.matrix_world)
    transforms = forward_kinematics(skeleton, sample.reading.pose)
    met = []
    wanted = met_targets(sample, constraints)
    for constraint, present, place in zip(constraints, sample.targets, wanted, strict=True):
        is_met = _is_same(constraint, present, place, scale, solver)
        if is_met and present.pole is not None:
            sides = _PoleSides.of(skeleton, transforms, present.settings_of(constraint), present.pole)
            is_met = sides is None or sides.bend.angle(sides.pole, 0.0) <= solver.angle_tolerance
        met.append(is_met)
    return met
