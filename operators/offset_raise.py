# SPDX-License-Identifier: GPL-3.0-or-later
"""Raise what a bone reaches for over some frames, without a change to the keys of its target."""

from contextlib import ExitStack

import bpy
from bpy.props import EnumProperty, FloatProperty, IntProperty
from mathutils import Vector

from ..ccd_rig.blender.bake import offset_layer
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_group import AXES, OFFSET_SPACES
from ..ccd_rig.blender.scene.targets import AXES as DIRECTIONS
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons
from .telling import tell

AXIS_NAMES = {item[0]: item[1] for item in AXES}
SPACE_NAMES = {item[0]: item[1] for item in OFFSET_SPACES}


class CCD_RIG_OT_offset_raise(bpy.types.Operator):
    bl_idname = "ccd_rig.offset_raise"
    bl_label = "Raise Over Frames"
    bl_description = (
        "Key Target Offset of the active constraint over some frames, so that its target counts as shifted "
        "there. Keys of the target, and what plays outside of these frames, stay as they are"
    )
    bl_options = {"REGISTER", "UNDO"}

    distance: FloatProperty(
        name="Distance", description="How far, in the unit of Offset Space", default=0.1, subtype="DISTANCE"
    )
    direction: EnumProperty(
        name="Direction", description="Along which axis of Offset Space", items=AXES, default="POS_Z"
    )
    start: IntProperty(
        name="Start Frame",
        description="First frame of the whole shift; when not set, the present frame",
        options={"SKIP_SAVE"},
    )
    end: IntProperty(
        name="End Frame",
        description="Last frame of the whole shift; when not set, a second after the first",
        options={"SKIP_SAVE"},
    )
    falloff: IntProperty(
        name="Falloff",
        description="Frames in which the shift comes before the first frame, and goes after the last",
        default=5,
        min=1,
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_constraint(context))

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig, scene = active_rig(context), context.scene
        row = constraint_list.active(rig)
        if row is None:
            tell(self, {"ERROR"}, "No constraint is active: choose one in the list")
            return {"CANCELLED"}
        # The redo panel shows what was taken.
        if not self.properties.is_property_set("start"):
            self.start = scene.frame_current
        if not self.properties.is_property_set("end"):
            self.end = self.start + round(scene.render.fps / scene.render.fps_base)
        span = offset_layer.Span(self.start, self.end, self.falloff)
        shift = self.distance * Vector(DIRECTIONS[self.direction])
        with ExitStack() as undo:
            try:
                offset_layer.shift_over(scene, row, shift, span, undo)
            except CCDRigError as error:
                tell(self, {"ERROR"}, str(error))
                return {"CANCELLED"}
            undo.pop_all()
        axis, space = AXIS_NAMES[self.direction], SPACE_NAMES[row.offset_space]
        words = f"'{row.name}' raised by {self.distance:.4g} along {axis} of {space}"
        tell(self, {"INFO"}, f"{words} at frames {self.start} to {self.end}")
        return {"FINISHED"}
