# SPDX-License-Identifier: GPL-3.0-or-later
"""Handles of the active bone's limit; Ctrl drags in steps, Shift precisely."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import bpy
from mathutils import Matrix, Vector

from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.viewport.palette import EULER_COLOURS
from .overlay import shown_bones, shown_rig
from .preferences import palette

if TYPE_CHECKING:
    from ..ccd_rig.blender.viewport.limits import Handle

MOST = 6  # maximum of handles for numbers (an ellipse with twist), and of handles for vectors (a box)
SIZE = 0.075  # of a handle, in units of Blender's gizmo size
REACH = 1.8  # radius around a handle in which the pointer takes hold of it, in the handle's radii
STEP, SMALL_STEP = math.radians(5.0), math.radians(1.0)  # with Ctrl, and with Ctrl and Shift
COLOURS = {**EULER_COLOURS, "AXIS": (0.85, 0.85, 0.85)}  # {dial: colour}; other dials have the limit's
HIGHLIGHT = (1.0, 0.9, 0.3)


def _disc(radius: float) -> list[tuple[float, float, float]]:
    """Triangles of a disc in the XY plane."""
    angles = [2.0 * math.pi * i / 20 for i in range(21)]
    rim = [(radius * math.cos(angle), radius * math.sin(angle), 0.0) for angle in angles]
    return [point for a, b in pairwise(rim) for point in ((0.0, 0.0, 0.0), a, b)]


class CCD_RIG_GT_limit_handle(bpy.types.Gizmo):
    """Handle of a value of a limit."""

    bl_idname = "CCD_RIG_GT_limit_handle"
    # Values are read and set by name: the target property is there for its tooltip.
    bl_target_properties = (
        {"id": "number", "type": "FLOAT", "array_length": 1},
        {"id": "vector", "type": "FLOAT", "array_length": 3},
    )

    __slots__ = ("component", "drag", "field", "shape", "target_shape", "value_before")

    def setup(self) -> None:
        self.shape = self.new_custom_shape("TRIS", _disc(1.0))
        self.target_shape = self.new_custom_shape("TRIS", _disc(REACH))
        self.field, self.component = "", -1

    def draw(self, _context: bpy.types.Context) -> None:
        self.draw_custom_shape(self.shape)

    def draw_select(self, _context: bpy.types.Context, select_id: int) -> None:
        self.draw_custom_shape(self.target_shape, select_id=select_id)

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        from ..ccd_rig.blender.viewport.limits import stored
        from ..ccd_rig.limits.outlines import Drag

        handle = self._handle(context)
        angle = None if handle is None else _pointer_angle(context, event, handle, handle.value)
        if angle is None:
            return {"CANCELLED"}
        group = context.active_pose_bone.ccd_rig.limit
        self.drag = Drag(handle.value, angle)
        self.value_before = stored(group, handle)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event, tweak: set[str]) -> set[str]:
        from ..ccd_rig.blender.viewport.limits import drag_to

        handle = self._handle(context)
        if handle is None:
            return {"CANCELLED"}
        angle = _pointer_angle(context, event, handle, self.drag.angle)
        if angle is not None:
            self.drag.follow(angle, "PRECISE" in tweak)
        step = (SMALL_STEP if "PRECISE" in tweak else STEP) if "SNAP" in tweak else 0.0
        value = self.drag.bounded(handle.lower, handle.upper, step)
        drag_to(context.active_pose_bone.ccd_rig.limit, handle, value)
        context.active_pose_bone.id_data.update_tag()
        context.area.tag_redraw()
        words = translated(_label(context, handle))
        context.area.header_text_set(f"{words}: {math.degrees(value):.2f}°")
        return {"RUNNING_MODAL"}

    def exit(self, context: bpy.types.Context, cancel: bool) -> None:
        from ..ccd_rig.blender.viewport.limits import restore, stored

        context.area.header_text_set(None)
        handle = self._handle(context)
        if handle is None:
            return
        group = context.active_pose_bone.ccd_rig.limit
        if cancel:
            restore(group, handle, self.value_before)
        elif stored(group, handle) != self.value_before:
            bpy.ops.ed.undo_push(message=translated(f"Limit {_label(context, handle)}"))

    def _handle(self, context: bpy.types.Context) -> Handle | None:
        """Value that this handle presently shows."""
        for handle in _handles(context):
            if (handle.field, handle.component) == (self.field, self.component):
                return handle
        return None


class CCD_RIG_GGT_limit(bpy.types.GizmoGroup):
    bl_idname = "CCD_RIG_GGT_limit"
    bl_label = "Limit of the Bone"
    bl_space_type = "VIEW_3D"
    bl_region_type = "WINDOW"
    bl_options = {"3D", "PERSISTENT", "SHOW_MODAL_ALL"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return context.mode == "POSE" and bool(_handles(context))

    def setup(self, _context: bpy.types.Context) -> None:
        for _ in range(2 * MOST):
            gizmo = self.gizmos.new(CCD_RIG_GT_limit_handle.bl_idname)
            gizmo.use_draw_modal = True
            gizmo.color_highlight, gizmo.alpha_highlight = HIGHLIGHT, 1.0
            gizmo.alpha, gizmo.scale_basis = 0.95, SIZE

    def refresh(self, context: bpy.types.Context) -> None:
        group, limit_colour = context.active_pose_bone.ccd_rig.limit, palette(context).limit
        for gizmo in self.gizmos:
            gizmo.hide = True
        for gizmo, handle in self._pairs(_handles(context)):
            gizmo.hide, gizmo.field, gizmo.component = False, handle.field, handle.component
            gizmo.target_set_prop("vector" if _is_vector(handle) else "number", group, handle.field)
            gizmo.color = COLOURS.get(handle.dial.name, limit_colour)

    def draw_prepare(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.viewport.limits import bone_axes

        values = _handles(context)
        shown = {(gizmo.field, gizmo.component) for gizmo in self.gizmos if not gizmo.hide}
        if shown != {(handle.field, handle.component) for handle in values}:
            self.refresh(context)
        matrix = bone_axes(context.active_pose_bone).matrix
        facing: Any = context.region_data.view_rotation.to_matrix().to_4x4()
        for gizmo, handle in self._pairs(values):
            gizmo.matrix_basis = Matrix.Translation(matrix @ handle.point) @ facing

    def _pairs(self, values: list[Handle]) -> Iterator[tuple[Any, Handle]]:
        """Pair gizmos with values: a gizmo whose target was a number never gets a vector."""
        for is_vector, gizmos in ((False, self.gizmos[:MOST]), (True, self.gizmos[MOST:])):
            of_kind = (handle for handle in values if _is_vector(handle) == is_vector)
            yield from zip(gizmos, of_kind, strict=False)


def _handles(context: bpy.types.Context) -> list[Handle]:
    """Handles of the active bone's limit; none if the view does not show it or it cannot be changed."""
    from ..ccd_rig.blender.viewport.limits import bone_axes, drawable_limit, handles

    bone, rig = context.active_pose_bone, shown_rig(context)
    if bone is None or rig is None or bone.id_data != rig or not rig.is_editable:
        return []
    limit = drawable_limit(bone, bone.ccd_rig.limit)
    if limit is None or bone.name not in shown_bones(context, rig):
        return []
    return handles(bone.ccd_rig.limit, limit, bone_axes(bone).rotation)


def _pointer_angle(
    context: bpy.types.Context, event: bpy.types.Event, handle: Handle, near: float
) -> float | None:
    """Angle of the pointer on a handle's dial, the turn nearest to `near`; None at the dial's centre."""
    from ..ccd_rig.blender.viewport.limits import bone_axes
    from ..ccd_rig.blender.viewport.pointer import ray_at
    from ..ccd_rig.limits.outlines import angle_on

    ray = ray_at(context, Vector((event.mouse_region_x, event.mouse_region_y)))
    inverse = bone_axes(context.active_pose_bone).matrix.inverted_safe()
    return angle_on(handle.dial, inverse @ ray.origin, inverse.to_3x3() @ ray.direction, near)


def _is_vector(handle: Handle) -> bool:
    return handle.field == "axis" or handle.component >= 0


def _label(context: bpy.types.Context, handle: Handle) -> str:
    name = context.active_pose_bone.ccd_rig.limit.bl_rna.properties[handle.field].name
    return f"{name} {'XYZ'[handle.component]}" if handle.component >= 0 else str(name)


register, unregister = bpy.utils.register_classes_factory((CCD_RIG_GT_limit_handle, CCD_RIG_GGT_limit))
