# SPDX-License-Identifier: GPL-3.0-or-later
"""Learn limits from an action, or from all actions."""

from collections.abc import Sequence

import bpy
from bpy.props import EnumProperty, FloatProperty, StringProperty

from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.limit_sources import motion
from ..ccd_rig.blender.limit_sources.chosen_bones import Outcome
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.errors import InvalidInput, RigError
from ..ccd_rig.limits.fitting import FitSettings
from . import redo_lines
from .limit_bones import LimitOperator

SOURCES = (
    ("ACTION", "Action", "The action below; where none is chosen, the armature's present action"),
    ("ALL", "All Actions", "All actions of the file that turn the bones, together"),
)


class CCD_RIG_OT_limits_from_action(LimitOperator, bpy.types.Operator):
    bl_idname = "ccd_rig.limits_from_action"
    bl_label = "Limits from Action"
    bl_description = (
        "Learn limits from the motion of the selected bones: a hinge where a bone turns about one axis, else "
        "an ellipse with a twist range"
    )

    source: EnumProperty(name="From", description="Which motion counts", items=SOURCES, options={"SKIP_SAVE"})
    action: StringProperty(
        name="Action", description="Name of the action; empty: the present one", options={"SKIP_SAVE"}
    )
    margin: FloatProperty(
        name="Margin",
        description="By how much limits go beyond the motion",
        default=FitSettings.margin,
        min=0.0,
        soft_max=0.5,
        subtype="ANGLE",
    )
    percentile: FloatProperty(
        name="Percentile",
        description="Part of the motion's frames that limits hold, before the margin; less than 100 leaves "
        "out rare extremes",
        default=FitSettings.percentile,
        min=50.0,
        max=100.0,
        subtype="PERCENTAGE",
    )
    comfort: FloatProperty(
        name="Comfort",
        description="Part of the motion's frames, those in the middle of each range, that becomes the "
        "comfort region; 0 leaves comfort as it is",
        default=FitSettings.comfort,
        min=0.0,
        max=100.0,
        subtype="PERCENTAGE",
    )
    hinge_tolerance: FloatProperty(
        name="Hinge Tolerance",
        description="How far a bone may turn off one axis and still get a hinge",
        default=FitSettings.hinge_tolerance,
        min=0.0,
        soft_max=0.5,
        subtype="ANGLE",
    )

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        if bpy.app.background:
            done: set[str] = self.execute(context)
            return done
        answer: set[str] = set(context.window_manager.invoke_props_dialog(self))
        return answer

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop(self, "bones")
        layout.prop(self, "source")
        if self.source == "ACTION":
            layout.prop_search(self, "action", bpy.data, "actions")
            if not self.action:
                animation = active_rig(context).animation_data
                present = animation.action if animation is not None else None
                words = f"The present one: '{present.name}'" if present else "The armature has no action now"
                layout.label(text=translated(words), icon="ACTION" if present else "ERROR", translate=False)
        layout.prop(self, "margin")
        layout.prop(self, "percentile")
        layout.prop(self, "comfort")
        layout.prop(self, "hinge_tolerance")
        if self.told:
            redo_lines.draw(layout, self.told)

    def give(self, _context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
        try:
            settings = FitSettings(self.margin, self.percentile, self.hinge_tolerance, comfort=self.comfort)
        except InvalidInput as error:
            raise RigError(str(error)) from error
        if self.source == "ALL":
            return motion.from_all_actions(pose_bones, settings)
        action = bpy.data.actions.get(self.action)
        if self.action and action is None:
            raise RigError(f"there is no action '{self.action}': choose one of the list")
        return motion.from_action(pose_bones, action, settings)
