# SPDX-License-Identifier: GPL-3.0-or-later
"""Retargeting of the motion of one armature to another as keys, its report as text and JSON, and its stored
settings.

source armature -> SourceMotion, target armature -> TargetFigure -> solvers.retarget -> keys

The target's rest pose corresponds to the source's reference pose. All mapped bones of the target and their
parents get keys; in a rig of controls, parents get them where something moved them by keys. Their former
motion therefore does not matter, and a repeated retargeting gives the same result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix

from ...errors import CCDRigError, InvalidInput, RigError
from ...maths import batch
from ...maths.batch import Array
from ...maths.validation import ranged, require_ranges
from ...motion.retargeting.figures import (
    FigureMap,
    SourceMotion,
    TargetFigure,
    inverse,
    product,
    straightest_frame,
)
from ...motion.retargeting.measures import Measures, RetargetResult, measures
from ...motion.settings import (
    PAIRED,
    SPACES,
    WEIGHTS,
    ContactThresholds,
    EffectorSpace,
    RetargetSettings,
    Weight,
)
from ...solvers.retarget import places_of_feet, retarget
from ...solvers.stepping import result_of
from ..bake.frame_selection import key_time
from ..checks import ik_problems
from ..keys import channels
from ..keys.destination import Destination
from ..keys.writer import ChannelKeys, hides_strips, obstacles, write
from ..properties.retarget_group import LAST_FRAME, MOST_FPS
from ..rig import bone_space, clamps, rotation_modes
from ..rig.armature import RigReading
from ..scene.dependence import fk_switches
from ..scene.evaluation import metres_per_unit
from . import sampling
from .bone_map import BoneMap, bone_map, figure_map, left_behind, told_left_behind
from .choices import ReferenceFrame
from .sampling import Channels, Reference, RestIsNoPose, SourceChoice, source_motion, target_figure

MOST_FRAMES = 100_000
MOST_LOOKED_AT = 200
"""Largest number of frames, spread over a motion, among which the straightest is chosen."""
TURNED = math.radians(1.0)
"""Angle from which a bone is told not to play its keys."""
STAYS = 0.5
"""Part of the way of the hips by which a bone that does not go along is off its place at least."""
BESIDE = 1.0
"""Seconds of motion on both sides of a single frame, for its contacts."""


@dataclass(frozen=True, kw_only=True)
class RetargetChoice:
    """Choices of the user for a retargeting.

    Raises:
        InvalidInput: names the field.
    """

    frames: tuple[int, int] | None = None  # first and last frame of the source; None takes its action's
    source_fps: float = ranged(
        0.0, 0.0, MOST_FPS
    )  # frames per second of the source's keys; 0 for the scene's
    # Scene frame of the first key; None for the source's first frame.
    start: int | None = ranged(None, -LAST_FRAME, LAST_FRAME)
    reference: Reference = Reference.REST  # pose of the source that corresponds to the target's rest pose
    # For `Reference.FRAME`; None for the first frame.
    reference_frame: float | None = ranged(None, -LAST_FRAME, LAST_FRAME)
    # Pairs by hand, {target bone: source bone}, see `bone_map`.
    bones: Mapping[str, str] = field(default_factory=dict)
    # Of the retargeting. Without a height of the ground, the target's Ground counts.
    settings: RetargetSettings = field(default_factory=RetargetSettings)

    def __post_init__(self) -> None:
        require_ranges(self)


@dataclass(frozen=True, eq=False)
class Retargeted:
    """Result of a retargeting."""

    action: bpy.types.Action | None  # the action with the keys; None if nothing was written
    bone_map: BoneMap  # target bones and the source bones that they follow
    frames: Array  # (F,) scene frames of the keys
    measures: Measures  # quality of the motion, in metres by the scene's Unit Scale
    is_still: bool  # whether the source stands still in all frames, where not one frame alone was chosen
    turned: Sequence[TurnedBone]  # bones that do not play their keys, the worst first
    left: Sequence[str]  # bones that follow and do not hang on the hips, and stay where they are


class TurnedBone(NamedTuple):
    """A bone that a constraint of Blender turns after its keys."""

    bone: str  # its name
    constraint: str  # name of the first such constraint
    angle: float  # radians in the frame in which it is turned most


@dataclass(frozen=True, eq=False)
class _Motion:
    """Retargeted motion before it is keyed; `reading` is None for a rig of controls."""

    bone_map: BoneMap
    figure_map: FigureMap
    source: SourceMotion
    target: TargetFigure
    reading: RigReading | None
    frames: Array
    result: RetargetResult


def retarget_motion(
    scene: bpy.types.Scene, source: bpy.types.Object, target: bpy.types.Object, choice: RetargetChoice
) -> Retargeted:
    """Write the source's motion as a new action of the target; nothing if an error is raised.

    Raises:
        RigError: names the armature, bone or field and what to do.
    """
    motion = _motion(scene, source, target, choice)
    played = _played(scene, target, motion)
    clip = channels.action_of(source) or source
    with ExitStack() as undo:
        action = write_motion(scene, target, played, motion.frames, f"{target.name} {clip.name}", undo)
        pose = sampling.played_pose(scene, target, motion.target, motion.frames)
        measured = measures(motion.figure_map, motion.target, motion.source, motion.result, pose)
        undo.pop_all()
    measured = measured.scaled(metres_per_unit(scene))
    heads, keyed = motion.target.world(motion.result.rotations, motion.result.translations)
    turned = turned_after_keys(target, motion.target, keyed, pose[1])
    one_pose = choice.frames is not None and choice.frames[0] == choice.frames[1]
    is_still = not one_pose and _is_still(motion.source)
    left = not_carried(target, motion.figure_map, motion.target, motion.reading, heads, pose[0])
    return Retargeted(action, motion.bone_map, motion.frames, measured, is_still, turned, left)


def turned_after_keys(
    target: bpy.types.Object, figure: TargetFigure, keyed: Array, played: Array
) -> list[TurnedBone]:
    """Return the bones that constraints turn after their keys, the worst first.

    Keys of a bone below a turned one may make up for it: its rotation counts in the world and to its parent.

    Args:
        keyed, played: (F, n, 4) rotations of the figure's joints, world, as they should be and as they are.
    """
    turned = []
    for j, joint in enumerate(figure.skeleton.joints):
        acting = clamps.acting_constraints(target.pose.bones[joint.name])
        constraint = next((each for each in acting if each.type not in sampling.HARMLESS), None)
        if constraint is not None:
            angles = batch.angles_between(played[:, j], keyed[:, j], -1)
            if joint.parent >= 0:
                to_parent = (product(inverse(each[:, joint.parent]), each[:, j]) for each in (played, keyed))
                angles = np.minimum(angles, batch.angles_between(*to_parent, axis=-1))
            if (angle := float(angles.max())) > TURNED:
                turned.append(TurnedBone(joint.name, constraint.name, angle))
    return sorted(turned, key=lambda each: -each.angle)


def not_carried(
    target: bpy.types.Object,
    joints: FigureMap,
    figure: TargetFigure,
    reading: RigReading | None,
    keyed: Array,
    played: Array,
) -> tuple[str, ...]:
    """Return the first bones of a figure that stay behind as the bone that carries it is moved.

    In a rig of controls, parents do not tell them: they are those that are farther from their place than half
    of the way of the hips, and of the figure's size.

    Args:
        joints, figure, reading: as returned by `figure_to_move`.
        keyed, played: (F, n, 3) heads of the figure's joints, world, as they should be and as they are.
    """
    if reading is not None:
        return left_behind(target, joints.sources, carrier_of(target, joints))
    gone = batch.length(keyed[:, figure.index(joints.hips)] - keyed[0, figure.index(joints.hips)], -1)
    row, size = int(np.argmax(gone)), float(np.ptp(keyed[0], axis=0).max())
    off = batch.length(played[row] - keyed[row], -1) > STAYS * max(float(gone[row]), size)
    skeleton = figure.skeleton.joints
    return tuple(
        joint.name
        for j, joint in enumerate(skeleton)
        if off[j] and not (joint.parent >= 0 and off[joint.parent])
    )


def _is_still(source: SourceMotion) -> bool:
    """Whether all frames of a motion are the same, or there is one alone."""
    heads, turns = source.heads, source.rotations
    places = float(np.ptp(heads, axis=0).max()) <= sampling.STILL * max(1.0, float(np.abs(heads).max()))
    return places and float(np.ptp(turns, axis=0).max()) <= sampling.STILL


def show_frame(
    scene: bpy.types.Scene, source: bpy.types.Object, target: bpy.types.Object, choice: RetargetChoice
) -> None:
    """Pose the target as retargeted at the scene's present frame, without changing keys.

    For contacts, `BESIDE` seconds on both sides are retargeted too.

    Raises:
        RigError: as `retarget_motion`.
    """
    require_two(source, target)
    require_animated(source)
    frames, _ = _frames(scene, source, choice)
    row = int(np.argmin(np.abs(frames - scene.frame_float)))
    beside = math.ceil(BESIDE * scene.render.fps / scene.render.fps_base)
    first = max(0, row - beside)
    motion = _motion(scene, source, target, choice, (first, row + beside + 1))
    rows = slice(row - first, row - first + 1)
    rotations, translations = (each[rows] for each in (motion.result.rotations, motion.result.translations))
    result = replace(motion.result, rotations=rotations, translations=translations)
    one = replace(motion, frames=np.array([scene.frame_float]), result=result)
    played = _played(scene, target, one)
    view_layer: Any = bpy.context.view_layer
    view_layer.update()  # what is assigned again would be evaluated later, over the pose
    for keys in (*_keys(target, played, one.frames), *_taken_off(target, played, one.frames)):
        setattr(target.pose.bones[keys.group], keys.channel, keys.values[0].tolist())


def _motion(
    scene: bpy.types.Scene,
    source: bpy.types.Object,
    target: bpy.types.Object,
    choice: RetargetChoice,
    rows: tuple[int, int] | None = None,
) -> _Motion:
    """Retarget the rows of the motion from one to before another; None for all, which are to be written."""
    require_two(source, target)
    require_animated(source)
    bones = bone_map(target, source, choice.bones)
    frames, sampled = _frames(scene, source, choice)
    first = float(frames[0])
    frames, sampled = frames[slice(*(rows or (None, None)))], replace(sampled, rows=rows)
    world = sampling.place_at(scene, target, first).world
    joints, figure, reading = figure_to_move(target, world, figure_map(bones))
    if foot := sampling.raised_foot_of(target, world, joints):
        raise RigError(
            f"the rest pose of '{target.name}' is no pose of a body: '{foot}' is above the hips. Pose it "
            "upright, and apply the pose as its rest pose (Ctrl A)"
        )
    for problem in ik_problems(target, set(joints.sources)):
        raise RigError(problem.message)
    if rows is None:
        require_writable(scene, target, joints, reading, frames)
    settings = choice.settings
    if settings.ground is None:
        settings = replace(settings, ground=sampling.chosen_ground(scene, target, world, first))
    played = source_motion(scene, source, joints, sampled)
    try:
        terrain = None
        if choice.settings.ground is None and joints.legs:
            places = places_of_feet(joints, figure, played, settings)
            terrain = sampling.terrain(scene, target, world, frames, places, settings.ground)
        result = retarget(joints, figure, played, settings, terrain)
    except InvalidInput as error:
        raise RigError(error.told(metres_per_unit(scene))) from error
    return _Motion(bones, joints, played, figure, reading, frames, result)


def figure_to_move(
    target: bpy.types.Object, world: Matrix, joints: FigureMap
) -> tuple[FigureMap, TargetFigure, RigReading | None]:
    """Return the map of the joints that can be moved, the target's figure, and the reading of its bones.

    The reading is None if constraints or drivers move bones.

    Raises:
        RigError: the armature is mirrored or unevenly scaled, or cannot be read as joints.
    """
    if sampling.is_controlled(target, joints):
        joints = sampling.without_carriers(target, joints)
        return joints, sampling.figure_of_controls(target, world, joints), None
    with ExitStack() as undo:
        played = _played_paths(target)
        for bone in target.pose.bones if played else ():
            if bone.path_from_id("scale") in played:  # the motion gets keys that take this off
                undo.callback(setattr, bone, "scale", bone.scale.copy())
                bone.scale = (1.0, 1.0, 1.0)
        return joints, *target_figure(target, world, joints)


def require_two(source: bpy.types.Object | None, target: bpy.types.Object | None) -> None:
    """Raise RigError unless source and target are two armatures."""
    for obj, word in ((source, "source"), (target, "target")):
        if obj is None or obj.type != "ARMATURE":
            name = "nothing" if obj is None else f"'{obj.name}'"
            raise RigError(f"The {word} is {name}: choose an armature")
    if source == target:
        raise RigError(f"'{target.name}' is source and target at once: choose another armature as the source")


def require_animated(source: bpy.types.Object) -> None:
    """Raise RigError if an armature has neither an action, strips nor constraints."""
    animation = source.animation_data
    has_keys = animation is not None and (animation.action is not None or len(animation.nla_tracks))
    if not has_keys and not any(len(bone.constraints) for bone in source.pose.bones):
        raise RigError(f"'{source.name}' has no action: assign the one with its motion")


def carrier_of(target: bpy.types.Object, joints: FigureMap) -> str:
    """Return the bone that gets a figure's locations: its hips, or the nearest above that is not connected.

    Args:
        joints: as returned by `figure_to_move`.
    """
    bone = target.data.bones[joints.hips]
    while bone.parent is not None and bone.use_connect:
        bone = bone.parent
    return str(bone.name)


def source_range(scene: bpy.types.Scene, source: bpy.types.Object) -> tuple[int, int]:
    """Return first and last frame of a source's keys, or of its strips, or else of the scene."""
    first, last = keyed_range(scene, source)
    return int(np.floor(first + 1e-3)), int(np.ceil(last - 1e-3))


def keyed_range(scene: bpy.types.Scene, source: bpy.types.Object) -> tuple[float, float]:
    """Like `source_range`, fractional if keys are between frames."""
    spans = channels.played_ranges(source)
    if not spans:
        return float(scene.frame_start), float(scene.frame_end)
    ends = np.array(spans) / key_time(scene)
    return float(ends[:, 0].min()), float(ends[:, 1].max())


def reference_frame(
    scene: bpy.types.Scene,
    source: bpy.types.Object,
    target: bpy.types.Object,
    choice: RetargetChoice,
    which: ReferenceFrame,
) -> float:
    """Return the source's first frame, the scene's, or the one with the straightest arms and legs.

    Raises:
        RigError: the source does not move, or the map is incomplete.
    """
    require_animated(source)
    first, last = choice.frames or source_range(scene, source)
    if which is ReferenceFrame.FIRST:
        return float(first)
    if which is ReferenceFrame.CURRENT:
        return float(min(max(scene.frame_float, first), last))
    joints = figure_map(bone_map(target, source, choice.bones))
    frames = np.unique(np.linspace(first, last, min(last - first + 1, MOST_LOOKED_AT)).round()).tolist()
    played = source_motion(scene, source, joints, SourceChoice(frames, 1.0, Reference.FRAME, frames[0]))
    return float(frames[straightest_frame(joints, played)])


def _frames(
    scene: bpy.types.Scene, source: bpy.types.Object, choice: RetargetChoice
) -> tuple[Array, SourceChoice]:
    """Return the scene frames of the keys, and the frames of the source for them."""
    first, last = choice.frames or source_range(scene, source)
    if last < first:
        raise RigError(f"frames {first} to {last}: the end lies before the start")
    fps = scene.render.fps / scene.render.fps_base
    step = (choice.source_fps or fps) / fps
    count = int((last - first) / step + 1e-6) + 1
    if count > MOST_FRAMES:
        raise RigError(f"frames {first} to {last} come to {count} keys: at most {MOST_FRAMES}")
    start = first if choice.start is None else choice.start
    reference = first if choice.reference_frame is None else choice.reference_frame
    rows = np.arange(count, dtype=np.float64)
    sampled = [float(frame) for frame in first + rows * step]
    return start + rows, SourceChoice(sampled, 1.0 / fps, choice.reference, reference)


# Keys -------------------------------------------------------------------------------------------------------


def _played(scene: bpy.types.Scene, target: bpy.types.Object, motion: _Motion) -> Channels:
    """Return the channels of bones at the frames of a motion."""
    pose = motion.result.rotations, motion.result.translations
    return channels_of_motion(
        scene, target, motion.figure_map, motion.target, motion.reading, motion.frames, pose
    )


def channels_of_motion(
    scene: bpy.types.Scene,
    target: bpy.types.Object,
    joints: FigureMap,
    figure: TargetFigure,
    reading: RigReading | None,
    frames: Array,
    pose: tuple[Array, Array],
) -> Channels:
    """Convert poses of a figure to channels of bones.

    Args:
        joints, figure, reading: as returned by `figure_to_move`.
        frames: (F,) scene frames.
        pose: (F, n, 4) rotations and (F, n, 3) translations of the figure.
    """
    carrier = carrier_of(target, joints)
    if reading is None:

        @contextmanager
        def playing(played: Channels) -> Iterator[None]:
            with ExitStack() as undo:
                write_motion(scene, target, played, frames, target.name, undo)
                yield

        return sampling.channels_of(scene, target, (joints, carrier), figure, pose, frames, playing)
    bone_channels: dict[str, tuple[Array, Array | None]] = {}
    rotations, translations = pose[0], figure.moved_by(*pose, joints.hips, carrier)
    for j, name in enumerate(reading.bones):
        location = None
        if name == carrier:
            location = bone_space.locations_of(reading.shifts[j], translations[:, j])
        bone_channels[name] = rotations[:, j], location
    return bone_channels


def require_writable(
    scene: bpy.types.Scene,
    target: bpy.types.Object,
    joints: FigureMap,
    reading: RigReading | None,
    frames: Array,
) -> None:
    """Raise RigError if a new action with a figure's keys would not play, or would hide strips.

    Args:
        joints, reading: as returned by `figure_to_move`.
        frames: (F,) scene frames of the keys.
    """
    for sentence in obstacles(target, (), Destination.NEW_ACTION):
        raise RigError(sentence)
    time = key_time(scene)
    span = float(frames[0]) * time, float(frames[-1]) * time
    carrier, in_place = carrier_of(target, joints), np.zeros((1, 3))
    names = joints.sources if reading is None else reading.bones
    still = {name: (sampling.AT_REST[0], in_place if name == carrier else None) for name in names}
    bones: Any = target.pose.bones
    pairs = [(name, rotation_modes.rotation_channel(bones[name])[0]) for name in names]
    pairs += (
        (carrier, "location"),
        *((each.group, each.channel) for each in _taken_off(target, still, frames[:1])),
    )
    paths = [bones[bone].path_from_id(channel) for bone, channel in pairs]
    with ExitStack() as undo:
        _set_aside(target, undo)
        for sentence in obstacles(target, pairs, Destination.NEW_ACTION):
            raise RigError(sentence)
        if hides_strips(target, paths, Destination.NEW_ACTION, span, time):
            raise RigError(
                f"Armature '{target.name}': the new action would hide its NLA strips at frames before or "
                "after it: mute their tracks, and choose actions instead of strips"
            )


def _set_aside(target: bpy.types.Object, undo: ExitStack) -> None:
    """Take the action off an armature; it stays in the file."""
    animation = target.animation_data
    if animation is not None and animation.action is not None:
        before, slot = animation.action, channels.slot_of(animation)
        undo.callback(channels.assign, target, before, slot)
        undo.callback(setattr, before, "use_fake_user", before.use_fake_user)
        before.use_fake_user = True
        animation.action = None


OBJECT_GROUP = "Object Transforms"
"""Group of an object's F-curves, as Blender names it."""


def write_motion(
    scene: bpy.types.Scene,
    target: bpy.types.Object,
    played: Channels,
    frames: Array,
    name: str,
    undo: ExitStack,
) -> bpy.types.Action:
    """Write a new action with only these keys, at (F,) frames; the former action stays in the file.

    An object that keys move is held at its place of the first frame, and parents of bones are held at rest.
    """
    time = key_time(scene)
    span = float(frames[0]) * time, float(frames[-1]) * time
    keys = list(_keys(target, played, frames * time))
    keys += _taken_off(target, played, frames[:1] * time)
    moved = channels.keyed_transform(target)
    for path, values in sampling.place_at(scene, target, frames[0]).held.items() if moved else ():
        undo.callback(setattr, target, path, tuple(getattr(target, path)))
        keys.append(ChannelKeys(OBJECT_GROUP, path, frames[:1] * time, np.array([values]), "CONSTANT"))
    for switch in fk_switches(target, tuple(played)):
        value = np.array([[switch.value]])
        keys.append(ChannelKeys(switch.bone, switch.path, frames[:1] * time, value, "CONSTANT"))
    _set_aside(target, undo)
    return result_of(write(target, keys, Destination.NEW_ACTION, span, name, undo, time))


def _keys(target: bpy.types.Object, played: Channels, times: Array) -> Iterator[ChannelKeys]:
    for name, (rotations, location) in played.items():
        bone: Any = target.pose.bones[name]
        channel, _ = rotation_modes.rotation_channel(bone)
        values = rotation_modes.channel_values(bone.rotation_mode, rotations)
        yield ChannelKeys(name, bone.path_from_id(channel), times[: len(values)], values)
        if location is not None:
            yield ChannelKeys(name, bone.path_from_id("location"), times, location)


def _taken_off(target: bpy.types.Object, played: Channels, times: Array) -> Iterator[ChannelKeys]:
    """Keys at rest for channels that would move or scale bones of a motion beside it.

    These are locations of its bones, and what the former action or strips below play on them and their
    parents.
    """
    paths = _played_paths(target)
    driven = {curve.data_path for curve in channels.drivers_of(target)}
    lines = dict.fromkeys(bone.name for name in played for bone in target.pose.bones[name].parent_recursive)
    parents = {name: sampling.AT_REST for name in lines if name not in played}
    for keys in _keys(target, parents, times):
        if keys.path in paths:
            yield keys
    for name, (_, location) in {**played, **parents}.items():
        bone: Any = target.pose.bones[name]
        if location is None and not bone.bone.use_connect:
            path = bone.path_from_id("location")
            is_posed = name in played and path not in driven and any(bone.location)
            if is_posed or path in paths:
                yield ChannelKeys(name, path, times, np.zeros((1, 3)))
        if (path := bone.path_from_id("scale")) in paths:
            yield ChannelKeys(name, path, times, np.ones((1, 3)))


def _played_paths(target: bpy.types.Object) -> set[str]:
    """Data paths that an action or a strip moves and no driver does."""
    return channels.played_paths(target) - {curve.data_path for curve in channels.drivers_of(target)}


NOTICED = 0.02
"""Error of the end of a limb above which the report warns, as a fraction of the limb."""

TOUCHES = 5e-4
"""Largest height of a sole that is on the ground, metres."""

NO_LEGS = "No leg of the two is alike: bones turn as the source's do, and feet are not held"

STILL = (
    "The source has no motion, it stands still in all frames: choose another action or file, or switch on "
    "what is muted"
)

GROUPS = {"knee": "worse knee", "elbow": "worse elbow", "head": "the head"}
"""By starts of names of effectors that the report combines, its words for them."""


def lines(done: Retargeted) -> tuple[str, ...]:
    """Return the report in sentences, the most important first."""
    measured, missing = done.measures, done.bone_map.missing
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    first, last, count = done.frames[0], done.frames[-1], _count(len(done.frames), "frame")
    return (
        f"{count}, {first:.7g} to {last:.7g}; {len(done.bone_map.bones)} bones follow",
        *((f"Nothing to follow for: {', '.join(missing[:4])}{more}",) if missing else ()),
        *told_turned(done.turned),
        *told_left_behind(done.left, done.bone_map.hips),
        *((_feet(measured),) if measured.has_legs else (NO_LEGS,)),
        *((_limbs(measured),) if measured.errors else ()),
        *((_ground(measured), _hips(measured)) if measured.has_legs else ()),
        f"Largest turn {math.degrees(measured.turn):.1f}° a frame, the source's "
        f"{math.degrees(measured.source_turn):.1f}°",
        f"Jerk of hands and feet {_ratio(measured.jerk, measured.source_jerk)} the source's",
        *_faults(measured),
    )


def as_values(done: Retargeted) -> Mapping[str, Any]:
    """Return the report for a JSON file: metres, degrees, seconds."""
    measured = done.measures
    numbers = dict(vars(measured))
    del numbers["has_legs"]
    return {
        "frames": len(done.frames),
        "bones": dict(done.bone_map.bones),
        "missing": list(done.bone_map.missing),
        **numbers,
        "errors": dict(measured.errors),
        "followed": sorted(measured.followed),
        "turned": {each.bone: math.degrees(each.angle) for each in done.turned},
        "left_behind": list(done.left),
        "stances": [vars(stance) for stance in measured.stances],
        "turn": math.degrees(measured.turn),
        "source_turn": math.degrees(measured.source_turn),
    }


def told_turned(turned: Sequence[TurnedBone]) -> tuple[str, ...]:
    """Return a sentence about the worst of the bones that constraints turn, if there are any."""
    if not turned:
        return ()
    worst, others = turned[0], len(turned) - 1
    more = f" (and {others} more)" if others else ""
    return (
        f"Bone '{worst.bone}': Blender's constraint '{worst.constraint}' turns it after its keys, by "
        f"{math.degrees(worst.angle):.0f}° at most{more}: mute it, and press again",
    )


def _feet(measured: Measures) -> str:
    if not measured.stances:
        return "No foot is ever down"
    drift = 1000.0 * max(stance.drift for stance in measured.stances)
    slide = 1000.0 * sum(stance.slide for stance in measured.stances) / len(measured.stances)
    source_slide = 1000.0 * sum(stance.source_slide for stance in measured.stances) / len(measured.stances)
    return (
        f"{_count(len(measured.stances), 'contact')}: feet drift {drift:.1f} mm at most and slide "
        f"{slide:.0f} mm/s, "
        f"the source's {source_slide:.0f} mm/s"
    )


def _limbs(measured: Measures) -> str:
    """Describe the errors of ends of limbs, of the worse knee and elbow, and of the head."""
    worst: dict[str, float] = {}
    for name, error in measured.errors.items():
        group = next((words for start, words in GROUPS.items() if name.startswith(start)), name)
        worst[group] = max(error, worst.get(group, 0.0))
    errors = [f"{name}: {100.0 * error:.1f} %" for name, error in worst.items()]
    return f"Off the source's, in parts of the limb: {', '.join(errors)}"


def _faults(measured: Measures) -> tuple[str, ...]:
    sentences = []
    if measured.flipped:
        sentences.append(f"Knees and elbows bend to another side in {_count(measured.flipped, 'frame')}")
    if measured.broken:
        sentences.append(f"Limits are broken {_count(measured.broken, 'time')}")
    return tuple(sentences) or ("No knee or elbow bends to another side, and no limit is broken",)


def _ground(measured: Measures) -> str:
    start = "Feet are laid on the faces of the Ground: soles "
    if measured.ground is not None:
        start = f"Ground at a height of {measured.ground:.3f} m: soles "
    if measured.hover > TOUCHES:
        return f"{start}stay {1000.0 * measured.hover:.1f} mm above it at least"
    return f"{start}get {1000.0 * measured.penetration:.1f} mm below it at most"


def _hips(measured: Measures) -> str:
    if not measured.moved_frames:
        return "Hips are where the source has them"
    return (
        f"Hips are moved in {_count(measured.moved_frames, 'frame')}, by {1000.0 * measured.moved:.1f} mm "
        "at most, for legs to reach"
    )


def warnings(done: Retargeted) -> tuple[str, ...]:
    """Return the problems that a user should look at, in sentences."""
    measured, sentences = done.measures, []
    if done.is_still:
        sentences.append(STILL)
    sentences += told_turned(done.turned)
    sentences += told_left_behind(done.left, done.bone_map.hips)
    if not measured.has_legs:
        sentences.append(NO_LEGS)
    elif not measured.stances:
        sentences.append("No foot is ever down: raise Speed or Height, or switch Lock Feet off")
    for limb, error in measured.errors.items():
        if error > NOTICED and limb in measured.followed:
            sentences.append(f"{limb}: {100.0 * error:.1f} % of the limb's length off the source's")
    if measured.flipped:
        sentences.append(f"A knee or elbow bends to another side in {_count(measured.flipped, 'frame')}")
    return tuple(sentences)


def _ratio(value: float, source_value: float) -> str:
    return f"{value / source_value:.2f} of" if source_value > 0.0 else "is as"


def _count(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


# Stored settings --------------------------------------------------------------------------------------------


def choice_of(target: bpy.types.Object) -> RetargetChoice:
    """Return the stored settings of an armature.

    Raises:
        RigError: a setting is invalid.
    """
    group: Any = target.ccd_rig.retarget
    weights: dict[str, Weight] = {name: getattr(group, name) for name in WEIGHTS}
    for name in PAIRED if group.sides_apart else ():
        weights[name] = getattr(group, name), getattr(group, f"{name}_right")
    try:
        settings = RetargetSettings(
            scale=group.scale,
            in_place=group.in_place,
            ground=group.ground if group.use_ground else None,
            **weights,
            **{name: EffectorSpace(getattr(group, name)) for name in SPACES},
            contacts=group.contacts,
            thresholds=ContactThresholds(speed=group.speed, height=group.height),
            blend=group.blend,
            extension=group.extension,
        )
        return RetargetChoice(
            source_fps=group.source_fps,
            reference=Reference(group.reference),
            reference_frame=group.reference_frame,
            bones={pair.name: pair.source for pair in group.pairs},
            settings=settings,
        )
    except InvalidInput as error:
        raise RigError(str(error)) from error


def fill_map(target: bpy.types.Object) -> BoneMap:
    """Replace the list of pairs by the map of roles: a pair for each bone of the target with a role.

    Raises:
        RigError: source or target is no armature, or they are the same.
    """
    group: Any = target.ccd_rig.retarget
    require_two(group.source, target)
    mapped = bone_map(target, group.source)
    names = dict.fromkeys((*mapped.figure.roles, *mapped.bones))
    group.pairs.clear()
    for name in names:
        pair = group.pairs.add()
        pair.name, pair.source = name, mapped.bones.get(name, "")
    return mapped


def set_pairs(target: bpy.types.Object, bones: dict[str, str]) -> None:
    """Set pairs {target bone: source bone} in the list; the other pairs are kept."""
    pairs: Any = target.ccd_rig.retarget.pairs
    for name, source in bones.items():
        pair = pairs.get(name) or pairs.add()
        pair.name = name  # first: what is called on setting the source notes both
        pair.source = source


def use_frame(scene: bpy.types.Scene, target: bpy.types.Object, which: ReferenceFrame) -> float:
    """Choose a frame of the source as its reference, and return it.

    Raises:
        RigError: source or target is no armature, the source does not move, or the map is incomplete.
    """
    group: Any = target.ccd_rig.retarget
    require_two(group.source, target)
    frame = reference_frame(scene, group.source, target, choice_of(target), which)
    group.reference_frame = frame
    group.reference = Reference.FRAME.value
    note_refusal(target, None)
    return frame


def note_refusal(target: bpy.types.Object, error: CCDRigError | None) -> None:
    """Store whether an error is about the rest pose, for which the panel offers a remedy; None clears it."""
    group: Any = target.ccd_rig.retarget
    group.no_pose = group.source.name if isinstance(error, RestIsNoPose) else ""


def show(target: bpy.types.Object) -> None:
    """Show the present frame as retargeted.

    An error goes to the report. Without one the report is cleared, since it is of former settings.
    """
    group: Any = target.ccd_rig.retarget
    try:
        require_two(group.source, target)
        show_frame(bpy.context.scene, group.source, target, choice_of(target))
        group.report = ""
    except CCDRigError as error:
        note_refusal(target, error)
        group.report = "" if group.no_pose else str(error)  # the panel reports `no_pose` with a remedy
