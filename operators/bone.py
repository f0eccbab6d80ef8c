# SPDX-License-Identifier: GPL-3.0-or-later
"""Joints of bones: limits from poses, presets, actions, Blender's limits and other bones; coupled offsets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import bpy
from bl_operators.presets import AddPresetBase

from ..ccd_rig.blender.languages.translation import CONTEXT, translated
from ..ccd_rig.blender.limit_sources import preset_files
from ..ccd_rig.blender.properties import joints
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.names import named, sentence
from ..ccd_rig.blender.registration import HIDDEN, LAST, ONCE
from ..ccd_rig.errors import CCDRigError, RigError
from ..ccd_rig.limits.settings import FitSettings
from . import command
from .command import Command, Dialog, draw_lines

if TYPE_CHECKING:
    from ..ccd_rig.blender.limit_sources.bones import Outcome

SCOPES = (
    ("SELECTED", "Selected Bones", "All bones that are selected in Pose Mode; the active one where none is"),
    ("CHAIN", "Chain", "The chain of the active CCD constraint"),
    ("ALL", "All Bones", "All bones of the armature"),
)


class LimitCommand(Dialog):
    """A command that gives limits to bones by its function `give`, in one step of undo."""

    fields: tuple[str, ...] = ("bones",)

    bones: ONCE.enum("Bones", "Which bones it is for", items=SCOPES, translation_context=CONTEXT)

    why_grey = staticmethod(command.no_pose_bone)

    def give(self, context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> "Outcome":
        """Give limits to bones, or take limits from these bones; raises CCDRigError."""
        raise NotImplementedError

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.limit_sources.bones import chosen

        try:
            outcome = self.give(context, chosen(active_rig(context), self.bones))
        except CCDRigError as error:
            raise RigError(sentence(str(error))) from error
        command.redraw_views(context)
        notes = [sentence(note) for note in outcome.notes]
        self.messages = "\n".join([outcome.source, *notes] if outcome.source else notes)
        words = f"Limits of {named(outcome.done)} set"
        self.tell_done(f"{words}. {outcome.source}" if outcome.source else words, notes)


BOUNDS = (
    ("MIN", "Min", "The smallest angle of hinges and twists, and all three of Euler angles"),
    ("MAX", "Max", "The largest angle of hinges and twists, and all three of Euler angles"),
    ("SWING", "Swing", "The border of cones and ellipses, on the side to which the bone swings"),
)


class CCD_RIG_OT_limit_from_pose(LimitCommand, bpy.types.Operator):
    bl_label = "Limit from Pose"
    bl_description = "Let the limits of the selected bones end where the bones are posed now"

    fields = ("bones", "bound")
    bound: ONCE.enum("Bound", "Which end of the limits is set", items=BOUNDS, translation_context=CONTEXT)

    def give(self, context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> "Outcome":
        from ..ccd_rig.blender.limit_sources import bones

        context.view_layer.update()  # a script may have posed the bones without an evaluation
        return bones.set_bounds(pose_bones, self.bound)


PRESETS = (
    ("HUMAN", "Human", "Bones that are parts of a human: back, neck, arms, hands, fingers, legs, feet"),
    ("QUADRUPED", "Quadruped", "Bones that are parts of an animal on four legs, as a dog's joints go"),
    ("SPINE", "Spine", "Rows of bones as a human's back: each takes an equal share"),
    ("TAIL", "Tail", "Rows of bones that bend evenly to all sides and hardly roll"),
    ("FINGER", "Finger", "Rows of bones as fingers: the last three bones of each"),
)


class CCD_RIG_OT_limits_preset(LimitCommand, bpy.types.Operator):
    bl_label = "Limits from Preset"
    bl_description = (
        "Give the selected bones the limits that joints of a body have, less what their rest pose has used up"
    )

    fields = ("bones", "preset")
    preset: ONCE.enum("Preset", "What the bones are", items=PRESETS, translation_context=CONTEXT)

    def give(self, _context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> "Outcome":
        from ..ccd_rig.blender.limit_sources import presets

        return presets.apply_preset(pose_bones, self.preset)


class CCD_RIG_OT_limit_preset_add(Command, AddPresetBase, bpy.types.Operator):
    bl_label = "Add Limit Preset"
    bl_description = "Keep the limit of the active bone under a name, for other bones and files"
    bl_options = AddPresetBase.bl_options

    remove_name: HIDDEN.boolean("Remove", "Remove the preset of this name")
    remove_active: HIDDEN.boolean("Remove Chosen", "Remove the preset that is chosen")
    preset_menu = preset_files.MENU
    preset_subdir = preset_files.FOLDER
    preset_values = preset_files.VALUES

    why_grey = staticmethod(command.no_pose_bone)

    def run(self, context: bpy.types.Context) -> set[str] | None:
        name, bone = self.name.strip(), context.active_pose_bone
        removes = self.remove_active or self.remove_name
        file = AddPresetBase.as_filename(name)
        if not removes:
            if not file:  # as of "%"
                raise RigError("The preset needs a name: type one")
            if bone.ccd_rig.limit.kind == "NONE":
                raise RigError(f"Bone '{bone.name}' has no limit to keep: choose one first")
        result: Any = AddPresetBase.execute(self, context)  # a set; the stubs have no type
        if "FINISHED" in result:
            name = bpy.path.display_name(file)  # as the menu has it
            words = "The preset is removed" if removes else f"Limit of '{bone.name}' kept as '{name}'"
            self.tell("INFO", words)
        return result


class CCD_RIG_OT_limit_preset_apply(LimitCommand, bpy.types.Operator):
    bl_label = "Apply Limit Preset"
    bl_description = "Give the active bone and the selected ones the limit that this preset keeps"

    filepath: ONCE.text("File", "The file of the preset", subtype="FILE_PATH")
    menu_idname: HIDDEN.text("Menu", "The menu that it was chosen in")

    def give(self, context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> "Outcome":
        return preset_files.apply_file(context.active_pose_bone, pose_bones, self.filepath)


class CCD_RIG_OT_limits_from_ik(LimitCommand, bpy.types.Operator):
    bl_label = "Limits from Blender's IK"
    bl_description = (
        "Take over what the selected bones allow Blender's own IK: locked axes, ranges, stiffness"
    )

    def give(self, _context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> "Outcome":
        from ..ccd_rig.blender.limit_sources import blender_limits

        return blender_limits.from_ik(pose_bones)


class CCD_RIG_OT_limits_from_constraints(LimitCommand, bpy.types.Operator):
    bl_label = "Limits from Limit Rotation"
    bl_description = (
        "Take over the ranges of the Limit Rotation constraints of the selected bones. The constraints stay"
    )

    def give(self, _context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> "Outcome":
        from ..ccd_rig.blender.limit_sources import blender_limits

        return blender_limits.from_limit_rotation(pose_bones)


SOURCES = (
    ("ACTION", "Action", "The action below; where none is chosen, the armature's present action"),
    ("ALL", "All Actions", "All actions of the file that turn the bones, together"),
)


class CCD_RIG_OT_limits_from_action(LimitCommand, bpy.types.Operator):
    bl_label = "Limits from Action"
    bl_description = (
        "Learn limits from the motion of the selected bones: a hinge where a bone turns about one axis, else "
        "an ellipse with a twist range"
    )

    source: ONCE.enum("From", "Which motion counts", items=SOURCES)
    action: ONCE.text("Action", "Name of the action; empty: the present one")
    margin: LAST.of(FitSettings, "margin", min=0.0, soft_max=0.5, subtype="ANGLE")
    percentile: LAST.of(FitSettings, "percentile", min=50.0, max=100.0, subtype="PERCENTAGE")
    comfort: LAST.of(FitSettings, "comfort", min=0.0, max=100.0, subtype="PERCENTAGE")
    hinge_tolerance: LAST.of(FitSettings, "hinge_tolerance", min=0.0, soft_max=0.5, subtype="ANGLE")

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        return self.ask(context)

    def draw(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.keys import channels

        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop(self, "bones")
        layout.prop(self, "source")
        if self.source == "ACTION":
            layout.prop_search(self, "action", bpy.data, "actions")
            if not self.action:
                present = channels.action_of(active_rig(context))
                words = f"The present one: '{present.name}'" if present else "The armature has no action now"
                layout.label(text=translated(words), icon="ACTION" if present else "ERROR", translate=False)
        layout.prop(self, "margin")
        layout.prop(self, "percentile")
        layout.prop(self, "comfort")
        layout.prop(self, "hinge_tolerance")
        if self.messages:
            draw_lines(layout, context, self.messages)

    def give(self, _context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> "Outcome":
        from ..ccd_rig.blender.limit_sources import blender_limits

        settings = FitSettings(self.margin, self.percentile, self.hinge_tolerance, comfort=self.comfort)
        if self.source == "ALL":
            return blender_limits.from_all_actions(pose_bones, settings)
        action = bpy.data.actions.get(self.action)
        if self.action and action is None:
            raise RigError(f"there is no action '{self.action}': choose one of the list")
        return blender_limits.from_action(pose_bones, action, settings)


class CCD_RIG_OT_limits_copy(LimitCommand, bpy.types.Operator):
    bl_label = "Copy Limit"
    bl_description = "Give other bones the limit of the active bone, in their own axes"

    def give(self, context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> "Outcome":
        from ..ccd_rig.blender.limit_sources import bones

        return bones.copy(context.active_pose_bone, pose_bones)


class CCD_RIG_OT_limits_mirror(LimitCommand, bpy.types.Operator):
    bl_label = "Mirror Limits"
    bl_description = (
        "Give the bones on the other side the mirrored limits of the selected bones. Where both sides are "
        "selected, the side of the active bone counts"
    )

    def give(self, context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> "Outcome":
        from ..ccd_rig.blender.limit_sources import bones

        return bones.mirror(pose_bones, context.active_pose_bone)


@command.after(command.no_pose_bone)
def no_coupled_offset(context: bpy.types.Context) -> str:
    """Reason if there is no active bone, or it has no coupled offset."""
    if not context.active_pose_bone.ccd_rig.coupled_offsets:
        return f"Bone '{context.active_pose_bone.name}' has no coupled offset: add one"
    return ""


class CCD_RIG_OT_coupled_offset_add(Command, bpy.types.Operator):
    bl_label = "Add Coupled Offset"
    bl_description = "Let the active bone shift as a hinge turns: its own, or that of a parent"

    why_grey = staticmethod(command.no_pose_bone)

    def run(self, context: bpy.types.Context) -> None:
        joints.add(context.active_pose_bone)


class CCD_RIG_OT_coupled_offset_remove(Command, bpy.types.Operator):
    bl_label = "Remove Coupled Offset"
    bl_description = "Remove this coupled offset; the bone stays where it is"

    offset: ONCE.integer("Offset", "Which one, counted from 0", min=0)

    why_grey = staticmethod(no_coupled_offset)

    def run(self, context: bpy.types.Context) -> None:
        joints.remove(context.active_pose_bone, self.offset)


class CCD_RIG_OT_offset_point_add(Command, bpy.types.Operator):
    bl_label = "Add Point"
    bl_description = "Add a point to the curve of this coupled offset, beyond its last one"

    offset: ONCE.integer("Offset", "Of which coupled offset, counted from 0", min=0)

    why_grey = staticmethod(no_coupled_offset)

    def run(self, context: bpy.types.Context) -> None:
        joints.add_point(context.active_pose_bone, self.offset)


class CCD_RIG_OT_offset_point_remove(Command, bpy.types.Operator):
    bl_label = "Remove Point"
    bl_description = "Remove this point from the curve of the coupled offset, which needs two at least"

    offset: ONCE.integer("Offset", "Of which coupled offset, counted from 0", min=0)
    point: ONCE.integer("Point", "Which point, counted from 0", min=0)

    why_grey = staticmethod(no_coupled_offset)

    def run(self, context: bpy.types.Context) -> None:
        joints.remove_point(context.active_pose_bone, self.offset, self.point)
