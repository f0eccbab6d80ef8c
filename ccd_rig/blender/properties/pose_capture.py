# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries for the pose library: from the present pose, from an action's frames, from a pose asset.

Actions are read from their F-curves; neither the scene's frame nor any bone changes. What an action does not
animate is as it stands in the bones' channels now, as when Blender plays it.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import bpy
import numpy as np
from mathutils import Quaternion

from ...errors import RigError
from ...motion.interpolation import solve_frames
from ...skeleton.pose_library import PoseEntry
from ..keys import channels
from ..rig.pose_values import Watched
from ..rig.rotation_modes import CHANNELS, read_rotations, rotation_of
from . import constraint_list

MOST = 1000
"""So many poses are taken from one action at most: each is stored with all its bones."""


def chain_bones(armature_object: bpy.types.Object) -> tuple[str, ...]:
    """Names of the bones of all constraints' chains, in the order of the armature.

    Raises:
        RigError: there is no chain.
    """
    names = {
        bone.name
        for constraint in armature_object.ccd_rig.constraints
        for bone in constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    }
    if not names:
        raise RigError(
            f"armature '{armature_object.name}' has no CCD constraint with bones: choose Selected Bones, or "
            "add a constraint"
        )
    return tuple(bone.name for bone in armature_object.pose.bones if bone.name in names)


def selected_bones(armature_object: bpy.types.Object) -> tuple[str, ...]:
    """Names of the bones that are selected in Pose Mode; raises RigError if there is none."""
    names = tuple(bone.name for bone in armature_object.pose.bones if channels.is_bone_selected(bone))
    if not names:
        raise RigError("no bone is selected: select the bones that the pose is about")
    return names


def from_pose(armature_object: bpy.types.Object, bones: Sequence[str], name: str) -> PoseEntry:
    """What the bones' channels hold now; raises RigError if that is not a number."""
    pose_bones = armature_object.pose.bones
    modes = [pose_bones[bone].rotation_mode for bone in bones]
    watched = Watched(dict(CHANNELS[mode] for mode in modes))
    seen = watched.values(watched.look(pose_bones)[None])
    rotations = read_rotations(pose_bones, np.array([pose_bones.find(bone) for bone in bones]), modes, seen)
    turns = [Quaternion(each).freeze() for each in rotations[0].tolist()]
    return PoseEntry(name, dict(zip(bones, turns, strict=True)))


def from_action(armature_object: bpy.types.Object, bones: Sequence[str], step: int) -> tuple[PoseEntry, ...]:
    """Every `step`-th frame of the present action's range, and its last frame.

    The range is that of the keys of these bones, or the action's own where Manual Frame Range is on.

    Raises:
        RigError: there is no action, it turns none of the bones, or there are too many frames.
    """
    animation = armature_object.animation_data
    action = animation.action if animation is not None else None
    if action is None:
        raise RigError(f"armature '{armature_object.name}' has no action: choose one in the Action Editor")
    curves = [*channels.fcurves_of(armature_object)]
    turned = turned_bones(armature_object, curves, bones)
    if not turned:
        raise RigError(_turns_none(action, bones))
    if action.use_frame_range:
        first, last = action.frame_start, action.frame_end
    else:
        first, last = channels.span([c for c in curves if _is_about(armature_object, c, turned)])
    frames = solve_frames(math.floor(first), math.ceil(last), step)
    if len(frames) > MOST:
        raise RigError(
            f"action '{action.name}' would give {len(frames)} poses, more than {MOST}: raise Every Nth Frame"
        )
    return tuple(
        PoseEntry(f"{action.name} {frame}", rotations_at(armature_object, curves, turned, frame))
        for frame in frames
    )


def from_asset(armature_object: bpy.types.Object, bones: Sequence[str], name: str) -> PoseEntry:
    """A pose asset: an action marked as an asset that has one frame.

    Raises:
        RigError: there is no such action, it is no pose asset, or it turns none of the bones.
    """
    action = bpy.data.actions.get(name)
    if action is None:
        assets = [each.name for each in bpy.data.actions if each.asset_data is not None]
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
            f"action '{name}' has frames {first:g} to {last:g}, but a pose asset has one: assign it to the "
            "armature and capture it as an action"
        )
    return PoseEntry(name, rotations_at(armature_object, curves, turned, first))


def turned_bones(
    armature_object: bpy.types.Object, curves: Iterable[bpy.types.FCurve], bones: Iterable[str]
) -> tuple[str, ...]:
    """Those of the bones whose rotation has F-curves, in whatever mode."""
    animated = {curve.data_path for curve in curves if len(curve.keyframe_points)}
    names = {channel for channel, _ in CHANNELS.values()}
    bones_of = {bone: armature_object.pose.bones[bone] for bone in bones}
    return tuple(
        bone for bone, each in bones_of.items() if any(each.path_from_id(name) in animated for name in names)
    )


def _is_about(armature_object: bpy.types.Object, curve: bpy.types.FCurve, bones: Iterable[str]) -> bool:
    return curve.data_path.startswith(
        tuple(armature_object.pose.bones[bone].path_from_id() + "." for bone in bones)
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
    """The rotations of bones as an action has them at a frame."""
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
            items = pose_bone.bl_rna.properties["rotation_mode"].enum_items
            mode = next((item.identifier for item in items if item.value == int(keyed_mode[0])), mode)
        channel, _ = CHANNELS[mode]
        values = list(getattr(pose_bone, channel))
        for index, value in played.get(pose_bone.path_from_id(channel), {}).items():
            values[index] = value
        if not all(map(math.isfinite, values)):
            raise RigError(f"bone '{bone}' has a rotation that is not a number at frame {frame:g}")
        rotations[bone] = rotation_of(mode, values)
    return rotations
