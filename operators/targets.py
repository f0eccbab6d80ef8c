# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets: select, match to the pose, key along the motion, and shift by an offset layer."""

from contextlib import ExitStack
from typing import Any

import bpy
from mathutils import Vector

from ..ccd_rig.blender.languages.translation import CONTEXT
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_kinds import kind_of
from ..ccd_rig.blender.properties.constraint_values import AXES, AXIS_ITEMS, OFFSET_SPACES
from ..ccd_rig.blender.properties.solver_settings import solver_settings
from ..ccd_rig.blender.registration import LAST, ONCE
from ..ccd_rig.errors import RigError
from . import command
from .command import Command, Dialog, active_constraint


class CCD_RIG_OT_target_select(Command, bpy.types.Operator):
    bl_label = "Select Target"
    bl_description = "Select the target of the active constraint, to move it or key it"

    @staticmethod
    @command.after(command.no_active_constraint)
    def why_grey(context: bpy.types.Context) -> str:
        constraint = constraint_list.active(active_rig(context))
        return "" if constraint.target is not None else f"Constraint '{constraint.name}' has no target"

    def run(self, context: bpy.types.Context) -> None:
        constraint = constraint_list.active(active_rig(context))
        _select(context, constraint.target, constraint.target_bone)


class CCD_RIG_OT_rig_select(Command, bpy.types.Operator):
    bl_label = "Back to Rig"
    bl_description = "Select the rig that reaches for this target, in Pose Mode, with the bone that reaches"

    @staticmethod
    def why_grey(context: bpy.types.Context) -> str:
        rig = active_rig(context)
        reason = "" if rig is not None else "Select a target"
        if not reason and rig == context.object:
            reason = "The rig is selected"
        return reason

    def run(self, context: bpy.types.Context) -> None:
        rig, target = active_rig(context), context.object
        rows = rig.ccd_rig.constraints
        index = next(i for i, row in enumerate(rows) if target in (row.target, row.pole_target))
        _select(context, rig, rows[index].tip)
        rig.ccd_rig.active_index = index


def _select(context: bpy.types.Context, obj: Any, bone: str) -> None:
    """Select an object, or a bone of an armature object, alone.

    Raises:
        RigError: it is not visible, or the present object is hidden in its mode.
    """
    from ..ccd_rig.blender.keys import channels

    command.require_visible(context, obj)
    command.leave_mode(context)
    bpy.ops.object.select_all(action="DESELECT")
    obj.select_set(True)
    context.view_layer.objects.active = obj
    if bone and obj.pose is not None and bone in obj.pose.bones:
        bpy.ops.object.mode_set(mode="POSE")
        for pose_bone in obj.pose.bones:
            channels.select_bone(pose_bone, pose_bone.name == bone)
        obj.data.bones.active = obj.data.bones[bone]


class CCD_RIG_OT_targets_match(Command, bpy.types.Operator):
    bl_label = "Match Targets"
    bl_description = (
        "Put each target where its bone is at this frame, and each pole on the side of the bend. Keys are "
        "set only with Auto Keying"
    )

    only_active: ONCE.boolean("Only Active", "Match the active constraint alone")

    why_grey = staticmethod(command.none_enabled)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import checks
        from ..ccd_rig.blender.bake import switches, target_motion
        from ..ccd_rig.blender.keys import auto_keys
        from ..ccd_rig.solvers.stepping import result_of

        rig, scene = active_rig(context), context.scene
        names = (active_constraint(rig).name,) if self.only_active else ()
        ready = result_of(checks.require(rig, scene, names))
        solver = solver_settings(rig)
        moved = target_motion.match(context.evaluated_depsgraph_get(), rig, ready.constraints, solver)
        if warning := switches.ik_warning(scene, rig, ready.constraints, [scene.frame_current]):
            self.tell("WARNING", warning)
        if refusal := auto_keys.insert(context, moved):
            self.tell("WARNING", refusal)
        count = len({owner for owner, _ in moved})
        self.tell("INFO", f"Matched {count} target{'' if count == 1 else 's'}")


FRAMES = (
    ("ALL", "Every Frame", "Key targets at every frame of the range"),
    ("KEYED", "Where Bones Have Keys", "Key targets only at frames at which bones of the chains have keys"),
)


class CCD_RIG_OT_targets_from_motion(Dialog, bpy.types.Operator):
    bl_label = "Targets from Motion"
    bl_description = (
        "Key each target where the animation has its bone, and each pole on the side of the bend, over the "
        "scene's range. A bake then leaves the motion as it is until a target is moved"
    )

    frames: LAST.enum("Frames", "Which frames get keys", items=FRAMES)
    every: ONCE.integer(
        "More Targets Every",
        "Also give every n-th bone of the active constraint's chain a target of its own, so that "
        "a tail keeps its shape; 0 adds none",
        default=0,
        min=0,
        soft_max=20,
    )

    fields = ("frames", "every")

    why_grey = staticmethod(command.none_enabled)

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        return self.ask(context)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender import checks
        from ..ccd_rig.blender.bake import switches, target_motion
        from ..ccd_rig.solvers.stepping import result_of

        rig, scene = active_rig(context), context.scene
        with ExitStack() as undo:
            if self.every:
                _add_targets(context, rig, self.every, undo)
            ready = result_of(checks.require(rig, scene, ()))
            frames = self._frames(scene, rig, ready.constraints)
            solver = solver_settings(rig)
            count, _ = target_motion.key_targets(scene, rig, ready.constraints, frames, solver, undo)
            undo.pop_all()
        if warning := switches.ik_warning(scene, rig, ready.constraints, frames):
            self.tell("WARNING", warning)
        words = f"{count} target{'' if count == 1 else 's'} at {len(frames)} frames"
        self.tell("INFO", f"Keyed {words}")

    def _frames(self, scene: bpy.types.Scene, rig: bpy.types.Object, constraints: Any) -> list[float]:
        from ..ccd_rig.blender.bake import target_motion
        from ..ccd_rig.blender.scene.evaluation import shown_range

        first, last = shown_range(scene)
        if self.frames == "ALL":
            return [float(frame) for frame in range(first, last + 1)]
        chains = (constraint_list.chain_of(rig, row) for row in constraints)
        bones = list({bone.name for chain in chains for bone in chain})
        frames = target_motion.keyed_frames(scene, rig, bones, first, last)
        if not frames:
            raise RigError(
                f"No bone of the chains has keys in frames {first} to {last}: key one, or all frames"
            )
        return frames


def _add_targets(context: bpy.types.Context, rig: bpy.types.Object, every: int, undo: ExitStack) -> None:
    """Add constraints with new targets for every n-th bone of the active constraint's chain."""
    from ..ccd_rig.blender.properties.new_constraints import new_target

    row = constraint_list.active(rig)
    if row is None or not kind_of(row).reaches:
        raise RigError("More Targets Every needs a Reach as the active constraint: choose one in the list")
    chain = constraint_list.chain_of(rig, row)
    taken = {constraint.tip for constraint in rig.ccd_rig.constraints}
    active_index = rig.ccd_rig.active_index
    collections = set(bpy.data.collections)

    def remove_new_collections() -> None:
        for collection in set(bpy.data.collections) - collections:
            bpy.data.collections.remove(collection)

    undo.callback(setattr, rig.ccd_rig, "active_index", active_index)
    undo.callback(remove_new_collections)
    for k in range(every, len(chain) - 1, every):
        name = chain[k].name
        if name in taken:
            continue
        target = new_target(context, rig, f"Target {name}", name)
        undo.callback(bpy.data.objects.remove, target)
        added = constraint_list.add(rig, name, name)
        undo.callback(constraint_list.remove, rig, len(rig.ccd_rig.constraints) - 1)
        added.target, added.chain_length = target, len(chain) - k
    rig.ccd_rig.active_index = active_index


AXIS_NAMES = {item[0]: item[1] for item in AXIS_ITEMS}
SPACE_NAMES = {item[0]: item[1] for item in OFFSET_SPACES}


class CCD_RIG_OT_offset_raise(Command, bpy.types.Operator):
    bl_label = "Raise Over Frames"
    bl_description = (
        "Key Target Offset of the active constraint over some frames, so that its target counts as shifted "
        "there. Keys of the target, and what plays outside of these frames, stay as they are"
    )

    distance: LAST.number("Distance", "How far, in the unit of Offset Space", default=0.1, subtype="DISTANCE")
    direction: LAST.enum("Direction", "Along which axis of Offset Space", items=AXIS_ITEMS, default="POS_Z")
    space: ONCE.enum(
        "Offset Space",
        "Along whose axes; when not set, those of the constraint if chosen or used, else the world's",
        items=OFFSET_SPACES,
        translation_context=CONTEXT,
        default="WORLD",
    )
    start: ONCE.integer("Start Frame", "First frame of the whole shift; when not set, the present frame")
    end: ONCE.integer("End Frame", "Last frame of the whole shift; when not set, a second after the first")
    falloff: LAST.integer(
        "Falloff",
        "Frames in which the shift comes before the first frame, and goes after the last",
        default=5,
        min=1,
    )

    why_grey = staticmethod(command.no_constraint)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.bake import target_motion

        rig, scene = active_rig(context), context.scene
        row = active_constraint(rig)
        # The redo panel shows what was taken.
        if not self.properties.is_property_set("start"):
            self.start = scene.frame_current
        if not self.properties.is_property_set("end"):
            self.end = self.start + round(scene.render.fps / scene.render.fps_base)
        is_used = target_motion.uses_offset(row)
        if not self.properties.is_property_set("space"):
            has_space = is_used or row.is_property_set("offset_space")
            self.space = row.offset_space if has_space else "WORLD"
        elif is_used and self.space != row.offset_space:
            space = SPACE_NAMES[row.offset_space]
            raise RigError(
                f"Constraint '{row.name}': Target Offset is used along {space}: choose that as Offset Space"
            )
        span = target_motion.Span(self.start, self.end, self.falloff)
        shift = self.distance * Vector(AXES[self.direction])
        with ExitStack() as undo:
            target_motion.shift_over(scene, row, shift, span, undo)
            row.offset_space = self.space
            undo.pop_all()
        axis, space = AXIS_NAMES[self.direction], SPACE_NAMES[self.space]
        words = f"'{row.name}' raised by {self.distance:.4g} along {axis} of {space}"
        self.tell("INFO", f"{words} at frames {self.start} to {self.end}")
