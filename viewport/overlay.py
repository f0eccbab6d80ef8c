# SPDX-License-Identifier: GPL-3.0-or-later
"""Overlay of limits and constraints in 3D viewports that show overlays and bones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import blf
import bpy
import gpu
from bpy_extras.view3d_utils import location_3d_to_region_2d

from ..ccd_rig.blender import listening
from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.registration import waiting
from ..ccd_rig.blender.viewport.palette import RING
from .drag_tool import is_chosen
from .preferences import palette, preferences

if TYPE_CHECKING:
    from ..ccd_rig.blender.figures.role import Figure, Role
    from ..ccd_rig.blender.viewport.sketch import Box, Colour, Label, Sketch

TEXT_SIZE = 13  # [points] at interface scale 1
TEXT_OFFSET = RING + 8.0  # [pixels] clear of the handle at the same place, below the pointer too
TEXT_HEIGHT = 1.3  # of a line, in sizes of its text
GROUND = (0.08, 0.08, 0.08, 0.75)  # colour behind words
GROUND_ROOM = 3  # [pixels] beside words
TEXT_RISE = 0.25  # of a line's foot above the line, in the line's height
SET_UP = "CCD_RIG_OT_figure_set_up"

_handlers: list[Any] = []  # handles of the draw functions, needed to remove them
_figures: dict[tuple[int, int], Figure] = {}  # of armatures in Pose Mode, by session_uid and count of bones
_labels: list[Label] = []  # of the view that `_draw_view` drew last; `_draw_words` is called right after


def shown_rig(context: bpy.types.Context) -> bpy.types.Object | None:
    """Armature whose limits and constraints this view draws; None if it draws none."""
    chosen, space = preferences(context), context.space_data
    if chosen is None or not chosen.show_overlay:
        return None
    if not (space.overlay.show_overlays and space.overlay.show_bones):
        return None
    rig = active_rig(context)
    if rig is None or rig.mode == "EDIT" or rig.data.pose_position == "REST":
        return None
    return rig if rig.visible_in_viewport_get(space) else None


def shown_bones(context: bpy.types.Context, rig: bpy.types.Object) -> frozenset[str]:
    """Names of the visible bones in Pose Mode, of all bones in other modes."""
    if context.mode != "POSE":
        return frozenset(bone.name for bone in rig.pose.bones)
    return frozenset(bone.name for bone in context.visible_pose_bones if bone.id_data == rig)


def sketch(context: bpy.types.Context) -> Sketch:
    """Collect the lines, faces and labels of a view."""
    from ..ccd_rig.blender.live import preview_of
    from ..ccd_rig.blender.viewport.constraints import sketch_rows
    from ..ccd_rig.blender.viewport.limits import sketch_limits
    from ..ccd_rig.blender.viewport.sketch import Sketch, sketch_pins, sketch_roles

    drawing, rig = Sketch(palette(context)), shown_rig(context)
    if rig is None or waiting:
        return drawing
    shown = shown_bones(context, rig)
    preview = preview_of(rig)
    outcomes = preview.outcomes if preview is not None else {}
    sketch_rows(drawing, rig, shown, lambda metres: _length_words(context.scene, metres), outcomes)
    pins = {name: rotates for name, rotates in _pins(context, rig).items() if name in shown}
    sketch_pins(drawing, rig, pins)
    for bone in _limited_bones(context, rig):
        if bone.name in shown:
            sketch_limits(drawing, bone)
    sketch_roles(drawing, rig, _listed_roles(context, rig))
    return drawing


def _pins(context: bpy.types.Context, rig: bpy.types.Object) -> dict[str, bool]:
    """Pins of a rig, with the feet that Drag Bones would pin while this tool is active."""
    from ..ccd_rig.blender.drag.session import pins_of, standing_feet
    from ..ccd_rig.blender.figures.recognition import figure_of

    pins = pins_of(rig)
    if context.mode != "POSE":
        _figures.clear()  # rest poses may change
    elif rig.ccd_rig.pin_feet and is_chosen(context):
        key = rig.data.session_uid, len(rig.data.bones)
        if key not in _figures:
            _figures[key] = figure_of(rig)
        return standing_feet(rig, _figures[key]) | pins
    return pins


def _listed_roles(context: bpy.types.Context, rig: bpy.types.Object) -> dict[str, Role]:
    """{bone: role} in the dialog or redo panel of Set Up Figure; empty after another command or a handle."""
    from ..ccd_rig.blender.figures.role import read_role
    from ..ccd_rig.blender.figures.role_words import in_english
    from ..ccd_rig.blender.viewport.sketch import dialog_roles, left_roles

    if rig.name in dialog_roles:
        return {
            name: role
            for name, text in dialog_roles[rig.name].items()
            if (role := read_role(text)) is not None
        }
    commands = context.window_manager.operators
    last = commands[-1] if len(commands) else None
    if last is None or last.bl_idname != SET_UP or last.properties.figure != rig.name:
        return {}
    if rig.name in left_roles:
        return {}
    roles = {item.name: read_role(in_english(item.role)) for item in last.properties.roles}
    return {name: role for name, role in roles.items() if role is not None}


def _limited_bones(context: bpy.types.Context, rig: bpy.types.Object) -> list[bpy.types.PoseBone]:
    """Bones whose limits are drawn."""
    active = context.active_pose_bone
    bones = [active] if active is not None and active.id_data == rig else []
    row = constraint_list.active(rig)
    if row is not None and preferences(context).show_chain_limits:
        bones += [bone for bone in constraint_list.chain_of(rig, row) if bone not in bones]
    return bones


def _length_words(scene: bpy.types.Scene, metres: float) -> str:
    units = scene.unit_settings
    if units.system == "NONE":
        return f"{metres:.3g}"
    return bpy.utils.units.to_string(units.system, "LENGTH", metres * units.scale_length, precision=3)


def _draw_view() -> None:
    listening.notice()
    drawing = sketch(bpy.context)
    _labels[:] = drawing.labels
    if not (drawing.lines or drawing.faces):
        return
    blend, depth_test = gpu.state.blend_get(), gpu.state.depth_test_get()
    depth_mask = gpu.state.depth_mask_get()
    gpu.state.blend_set("ALPHA")
    gpu.state.depth_test_set("NONE")
    gpu.state.depth_mask_set(False)
    _draw_faces(drawing.faces)
    _draw_lines(drawing)
    gpu.state.blend_set(blend)
    gpu.state.depth_test_set(depth_test)
    gpu.state.depth_mask_set(depth_mask)


def _draw_faces(faces: Mapping[Colour, Sequence[Any]]) -> None:
    """Draw triangles: {colour: their corners}."""
    from gpu_extras.batch import batch_for_shader

    shader = gpu.shader.from_builtin("UNIFORM_COLOR")
    shader.bind()
    for colour, corners in faces.items():
        points: dict[str, Any] = {"pos": corners}
        shader.uniform_float("color", colour)
        batch_for_shader(shader, "TRIS", points).draw(shader)


def _draw_lines(drawing: Sketch) -> None:
    from gpu_extras.batch import batch_for_shader

    shader = gpu.shader.from_builtin("POLYLINE_UNIFORM_COLOR")
    shader.bind()
    shader.uniform_float("viewportSize", gpu.state.viewport_get()[2:])
    scale = bpy.context.preferences.system.ui_scale
    for (colour, width), ends in drawing.lines.items():
        points: dict[str, Any] = {"pos": ends}
        shader.uniform_float("lineWidth", width * scale)
        shader.uniform_float("color", colour)
        batch_for_shader(shader, "LINES", points).draw(shader)


def _draw_words() -> None:
    from ..ccd_rig.blender.viewport.sketch import Box, beside, spread_out

    room = _seen(bpy.context.area, bpy.context.region)
    region, view = bpy.context.region, bpy.context.region_data
    scale = bpy.context.preferences.system.ui_scale
    blf.size(0, TEXT_SIZE * scale)
    words, boxes = [], []
    height = TEXT_HEIGHT * TEXT_SIZE * scale
    for label in _labels:
        place = location_3d_to_region_2d(region, view, label.point)
        if place is None:  # behind the viewer
            continue
        other = location_3d_to_region_2d(region, view, label.away_from)
        is_right = other is None or other.x <= place.x
        text = translated(label.words)
        width, offset = blf.dimensions(0, text)[0], TEXT_OFFSET * scale
        x = beside(place.x, width + GROUND_ROOM * scale, offset, is_right, room)
        words.append((text, label.colour))
        boxes.append(Box(x, place.y - 0.5 * height, width, height))
    placed = spread_out(boxes)
    _draw_grounds(placed, GROUND_ROOM * scale)
    for (text, colour), box in zip(words, placed, strict=True):
        blf.color(0, *colour)
        blf.position(0, box.x, box.y + TEXT_RISE * height, 0.0)
        blf.draw(0, text)


def _seen(area: bpy.types.Area, view: bpy.types.Region) -> tuple[float, float]:
    """Left and right edge of the part of a view that no sidebar or toolbar covers, pixels."""
    left, right = 0.0, float(view.width)
    for region in area.regions:
        if region.type not in ("UI", "TOOLS") or region.width <= 1 or region.height <= 1:  # closed
            continue
        if region.alignment == "RIGHT":
            right = min(right, float(region.x - view.x))
        elif region.alignment == "LEFT":
            left = max(left, float(region.x + region.width - view.x))
    return left, right


def _draw_grounds(boxes: Sequence[Box], room: float) -> None:
    """Draw dark grounds of words: bones behind them have the same colour, and a light view is as light."""
    if not boxes:
        return
    corners = [
        (box.x + side * (box.width + room) - (1.0 - side) * room, box.y + up * box.height)
        for box in boxes
        for side, up in ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 0.0), (1.0, 1.0), (0.0, 1.0))
    ]
    blend = gpu.state.blend_get()
    gpu.state.blend_set("ALPHA")
    _draw_faces({GROUND: corners})
    gpu.state.blend_set(blend)


def register() -> None:
    """Add the draw functions, unless Blender has no window."""
    if bpy.app.background:
        return
    view = bpy.types.SpaceView3D
    _handlers.append(view.draw_handler_add(_draw_view, (), "WINDOW", "POST_VIEW"))
    _handlers.append(view.draw_handler_add(_draw_words, (), "WINDOW", "POST_PIXEL"))


def unregister() -> None:
    """Remove the draw functions."""
    while _handlers:
        bpy.types.SpaceView3D.draw_handler_remove(_handlers.pop(), "WINDOW")
