# SPDX-License-Identifier: GPL-3.0-or-later
"""The pose library of an armature object: capturing, storing, applying, and JSON files.

Rotations are unit quaternions (w, x, y, z) relative to rest, whatever rotation mode a bone has.

Actions are read from their F-curves; neither the scene's frame nor any bone changes. Channels without
F-curves keep their present values, as when Blender plays the action.
"""

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import bpy
from mathutils import Quaternion

from ...errors import InvalidInput, RigError
from ...json_text import shown
from ..registration import STORED, UNANIMATED
from . import constraint_list, renamed_bones
from .active_rig import is_from_library, keep_overrides, lost_name
from .names import UniqueNames, named, unique_name

if TYPE_CHECKING:
    from ...skeleton.pose_library import PoseEntry

DEFAULT_NAME = "Pose"


class CCD_RIG_PG_pose_bone(bpy.types.PropertyGroup):
    """Rotation of the bone `name`."""

    # Not animated: rows may be removed, and F-curves would then address a different row.
    name: UNANIMATED.text("Bone", "Name of the bone")
    rotation: UNANIMATED.vector(
        "Rotation",
        "Rotation of the bone relative to rest, as a unit quaternion (w, x, y, z)",
        size=4,
        subtype="QUATERNION",
        default=(1.0, 0.0, 0.0, 0.0),
    )


class CCD_RIG_PG_pose(bpy.types.PropertyGroup):
    """Pose of the library."""

    rotations: STORED.rows(
        "Rotations", "The rotation of each bone that the pose knows", type=CCD_RIG_PG_pose_bone
    )
    name: STORED.text("Name", "Name of the pose")


_unique_already: list[bool] = []  # not empty: the name that is being set is unique


def keep_name_unique(self: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    """Number a name that another pose has, after it was set; poses of an override's library keep theirs."""
    if _unique_already:
        return
    if lost := lost_name(self.id_data, "poses"):
        self.name = lost  # calls this function once more
        return
    taken = {row.name for row in self.id_data.ccd_rig.poses if row != self}
    free = unique_name(self.name or DEFAULT_NAME, taken)
    if free != self.name:
        self.name = free  # calls this function once more, which then changes nothing


# Stored poses -----------------------------------------------------------------------------------------------


def entries(armature_object: bpy.types.Object) -> tuple["PoseEntry", ...]:
    """Return the poses as the core's values, in their order.

    Raises:
        RigError: a pose has no bone, or an invalid rotation.
    """
    from ...skeleton.pose_library import PoseEntry

    done = []
    for row in armature_object.ccd_rig.poses:
        try:
            done.append(PoseEntry(row.name, {line.name: tuple(line.rotation) for line in row.rotations}))
        except InvalidInput as error:
            raise RigError(
                f"armature '{armature_object.name}', pose library: {error}; remove this pose"
            ) from error
    return tuple(done)


def active(armature_object: bpy.types.Object) -> Any:
    """Return the active pose of the list, or None."""
    rows, index = armature_object.ccd_rig.poses, armature_object.ccd_rig.active_pose
    return rows[index] if 0 <= index < len(rows) else None


def add(armature_object: bpy.types.Object, added: "Iterable[PoseEntry]") -> None:
    """Append poses and make the last one active. Names that are taken get a number."""
    group, bones = armature_object.ccd_rig, set[str]()
    names = UniqueNames(row.name for row in group.poses)
    for entry in added:
        row = group.poses.add()
        _unique_already.append(True)  # the check of each of many names would take long
        try:
            row.name = names.take(entry.name)
        finally:
            _unique_already.pop()
        for bone, rotation in entry.rotations.items():
            line = row.rotations.add()
            line.name = bone
            line.rotation = rotation
        group.active_pose = len(group.poses) - 1
        bones.update(entry.rotations)
    renamed_bones.note(armature_object, bones)
    keep_overrides(armature_object)


def remove(armature_object: bpy.types.Object, indices: Iterable[int]) -> None:
    """Remove poses.

    Raises:
        RigError: one of them comes from the library of an override: Blender keeps it. Nothing has changed
            then.
    """
    group, removed = armature_object.ccd_rig, sorted(set(indices), reverse=True)
    for index in removed:
        if is_from_library(group.poses[index], "poses"):
            raise RigError(
                f"pose '{group.poses[index].name}' comes from the library that '{armature_object.name}' "
                "overrides: it can be removed only in the library's file"
            )
    for index in removed:
        group.poses.remove(index)
    group.active_pose = max(0, min(group.active_pose, len(group.poses) - 1))


# Applying a pose --------------------------------------------------------------------------------------------


def missing(armature_object: bpy.types.Object, entry: "PoseEntry") -> tuple[str, ...]:
    """Return the names of the entry's bones that the armature does not have."""
    return tuple(bone for bone in entry.rotations if bone not in armature_object.pose.bones)


def missing_words(armature_object: bpy.types.Object, entry: "PoseEntry") -> str:
    """Return a message that names the entry's missing bones; empty if none is missing."""
    absent = missing(armature_object, entry)
    if not absent:
        return ""
    where = f"armature '{armature_object.name}'"
    if len(absent) == len(entry.rotations):
        return f"Pose '{shown(entry.name)}': none of its bones ({named(absent)}) is in {where}"
    if len(absent) == 1:
        return f"Pose '{shown(entry.name)}': bone {named(absent)} is not in {where}"
    return f"Pose '{shown(entry.name)}': bones {named(absent)} are not in {where}"


def apply(armature_object: bpy.types.Object, entry: "PoseEntry") -> None:
    """Write an entry's rotations to the channels of its bones; the remaining bones do not change.

    Raises:
        RigError: the armature has none of its bones.
    """
    from ..rig.rotation_modes import set_rotation

    bones = [armature_object.pose.bones.get(name) for name in entry.rotations]
    if not any(bones):
        raise RigError(missing_words(armature_object, entry))
    for bone, rotation in zip(bones, entry.rotations.values(), strict=True):
        if bone is not None:
            set_rotation(bone, rotation)


# Files ------------------------------------------------------------------------------------------------------


def save(path: str | os.PathLike[str], saved: "Sequence[PoseEntry]") -> None:
    """Write poses as JSON; the file is replaced at once.

    Raises:
        WriteError: the folder cannot be written, or the disk is full.
    """
    from ...skeleton.pose_library import to_json
    from ..atomic_write import replacing

    with replacing(path) as temporary:
        temporary.write_text(to_json(saved) + "\n", encoding="utf-8")


def load(path: str | os.PathLike[str]) -> tuple["PoseEntry", ...]:
    """Read the poses of a JSON file.

    Raises:
        RigError: names the file, and the invalid field or the reason why it cannot be read.
    """
    from ...skeleton.pose_library import from_json
    from ..atomic_write import read

    return read(path, from_json)


# Capturing a pose -------------------------------------------------------------------------------------------

MOST = 1000
"""Largest number of poses from one action, since a pose stores all its bones."""


def chain_bones(armature_object: bpy.types.Object) -> tuple[str, ...]:
    """Return the names of the bones of all chains, in the order of the armature.

    Raises:
        RigError: there is no chain.
    """
    names = {
        bone.name
        for constraint in armature_object.ccd_rig.constraints
        for bone in constraint_list.chain_of(armature_object, constraint)
    }
    if not names:
        raise RigError(
            f"armature '{armature_object.name}' has no CCD constraint with bones: choose Selected Bones, or "
            "add a constraint"
        )
    return tuple(bone.name for bone in armature_object.pose.bones if bone.name in names)


def selected_bones(armature_object: bpy.types.Object) -> tuple[str, ...]:
    """Return the names of the bones selected in Pose Mode; raises RigError if there is none."""
    from ..keys import channels

    names = tuple(bone.name for bone in armature_object.pose.bones if channels.is_bone_selected(bone))
    if not names:
        raise RigError("no bone is selected: select the bones that the pose is about")
    return names


def from_pose(armature_object: bpy.types.Object, bones: Sequence[str], name: str) -> "PoseEntry":
    """Return the rotations of the bones' channels, or where Live shows others, those.

    Raises:
        RigError: a channel is not a number.
    """
    import numpy as np

    from ...skeleton.pose_library import PoseEntry
    from ..rig import clamps
    from ..rig.rotation_modes import CHANNELS, Watched, read_rotations

    pose_bones = armature_object.pose.bones
    modes = [pose_bones[bone].rotation_mode for bone in bones]
    widths = dict(CHANNELS[mode] for mode in modes)
    slots = np.array([pose_bones.find(bone) for bone in bones])
    watched = Watched(len(pose_bones), widths, dict.fromkeys(widths, slots))
    seen = watched.values(watched.look(pose_bones)[None])
    rotations = read_rotations(pose_bones, slots, modes, seen)
    turned = zip(bones, map(Quaternion, rotations[0].tolist()), strict=True)
    shown_now = clamps.shown_rotations(armature_object)
    return PoseEntry(name, {bone: shown_now.get(bone, rotation).freeze() for bone, rotation in turned})


def from_action(
    armature_object: bpy.types.Object, bones: Sequence[str], step: int
) -> tuple["PoseEntry", ...]:
    """Return poses of every `step`-th frame of the present action, and of its last frame.

    The range is that of the keys of these bones, or of the action if Manual Frame Range is on.

    Raises:
        RigError: there is no action, it turns none of the bones, or there are too many frames.
    """
    from ...motion.interpolation import solve_frames
    from ...skeleton.pose_library import PoseEntry
    from ..keys import channels

    action = channels.action_of(armature_object)
    if action is None:
        raise RigError(f"armature '{armature_object.name}' has no action: choose one in the Action Editor")
    curves = [*channels.fcurves_of(armature_object)]
    turned = turned_bones(armature_object, curves, bones)
    if not turned:
        raise RigError(_turns_none(action, bones))
    if action.use_frame_range:
        first, last = action.frame_start, action.frame_end
    else:
        starts = tuple(armature_object.pose.bones[bone].path_from_id() + "." for bone in turned)
        first, last = channels.span([curve for curve in curves if curve.data_path.startswith(starts)])
    frames = solve_frames(math.floor(first), math.ceil(last), step)
    if len(frames) > MOST:
        raise RigError(
            f"action '{action.name}' would give {len(frames)} poses, more than {MOST}: raise Every Nth Frame"
        )
    return tuple(
        PoseEntry(f"{action.name} {frame}", rotations_at(armature_object, curves, turned, frame))
        for frame in frames
    )


def from_asset(armature_object: bpy.types.Object, bones: Sequence[str], name: str) -> "PoseEntry":
    """Return the pose of a pose asset: an action of one frame, marked as an asset.

    Raises:
        RigError: there is no such action, it is no pose asset, or it turns none of the bones.
    """
    from ...skeleton.pose_library import PoseEntry
    from ..keys import channels

    action = bpy.data.actions.get(name)
    if action is None:
        assets = [action.name for action in bpy.data.actions if action.asset_data is not None]
        known = f"pose assets in this file: {', '.join(assets)}" if assets else "this file has no pose asset"
        raise RigError(f"there is no action '{name}'; {known}" if name else f"choose a pose asset; {known}")
    if action.asset_data is None:
        raise RigError(f"action '{name}' is not a pose asset: mark it as an asset first")
    curves = [*channels.fcurves_for(action, armature_object)]
    turned = turned_bones(armature_object, curves, bones)
    if not turned:
        raise RigError(_turns_none(action, bones))
    first, last = channels.span(curves)
    if first != last:
        raise RigError(
            f"action '{name}' has frames {first:.7g} to {last:.7g}, but a pose asset has one: assign it to "
            "the armature and capture it as an action"
        )
    return PoseEntry(name, rotations_at(armature_object, curves, turned, first))


def turned_bones(
    armature_object: bpy.types.Object, curves: Iterable[bpy.types.FCurve], bones: Iterable[str]
) -> tuple[str, ...]:
    """Return the bones whose rotation has F-curves, whatever their rotation modes."""
    from ..rig.rotation_modes import CHANNELS

    animated = {curve.data_path for curve in curves if len(curve.keyframe_points)}
    names = {channel for channel, _ in CHANNELS.values()}
    pose_bones = armature_object.pose.bones
    return tuple(
        bone for bone in bones if any(pose_bones[bone].path_from_id(name) in animated for name in names)
    )


def _turns_none(action: bpy.types.Action, bones: Sequence[str]) -> str:
    shown = ", ".join(bones[:3]) + (" ..." if len(bones) > 3 else "")
    return f"action '{action.name}' turns none of the bones {shown}: choose other bones or another action"


def rotations_at(
    armature_object: bpy.types.Object,
    curves: Iterable[bpy.types.FCurve],
    bones: Iterable[str],
    frame: float,
) -> dict[str, Quaternion]:
    """Return the rotations of bones that F-curves of an action have at a frame."""
    from ..keys import channels
    from ..rig.rotation_modes import CHANNELS, mode_of_number, rotation_of

    played: dict[str, dict[int, float]] = defaultdict(dict)
    for curve in curves:
        if channels.plays(curve):
            played[curve.data_path][curve.array_index] = curve.evaluate(frame)
    rotations = {}
    for bone in bones:
        pose_bone = armature_object.pose.bones[bone]
        mode = pose_bone.rotation_mode
        keyed_mode = played.get(pose_bone.path_from_id("rotation_mode"))
        if keyed_mode:
            mode = mode_of_number(int(keyed_mode[0])) or mode
        channel, _ = CHANNELS[mode]
        values = list(getattr(pose_bone, channel))
        for index, value in played.get(pose_bone.path_from_id(channel), {}).items():
            values[index] = value
        if not all(map(math.isfinite, values)):
            raise RigError(f"bone '{bone}' has a rotation that is not a number at frame {frame:.7g}")
        rotations[bone] = rotation_of(mode, values)
    return rotations
