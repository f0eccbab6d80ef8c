# SPDX-License-Identifier: GPL-3.0-or-later
"""Handles of targets and poles in Pose Mode: a drag moves a target, its ring turns it.

Both activate its constraint, and so does a click.

A single gizmo draws all handles of a view. It is placed on the screen, not in space, and Blender tests such
gizmos first: a target's handle is preferred to a limit's behind it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import bpy
import gpu
from bpy_extras.view3d_utils import location_3d_to_region_2d, region_2d_to_location_3d
from mathutils import Matrix, Quaternion, Vector

from ..ccd_rig.blender.languages.translation import REPORTS, translated
from ..ccd_rig.blender.viewport.palette import DISC, RING
from .drag_tool import is_chosen
from .overlay import shown_bones, shown_rig

if TYPE_CHECKING:
    from ..ccd_rig.blender.viewport.constraints import Floats, Hit, TargetMark

STILL = 3.0  # [pixels] largest motion of a click
FINE = 0.1  # speed with Shift
STEP, SMALL_STEP = math.radians(5.0), math.radians(1.0)  # of a turn with Ctrl, and with Ctrl and Shift
GRID = 60.0  # [pixels] largest step of a move with Ctrl; the smallest is a tenth of it
THROUGH = 16  # maximum of the rig's skin surfaces that a ray passes through
EDGE, EDGE_ALPHA = (0.0, 0.0, 0.0), 0.75  # outline of marks, for contrast with light views
LARGER = 1.3  # scale of a mark below the pointer, and of the active constraint
CORNERS, RING_CORNERS, POLE_CORNERS = 16, 32, 4

# (radius [pixels at scale 1], whether in the mark's color or the edge's, alpha), from the inside out
Profile = tuple[tuple[float, bool, float], ...]
DISC_PROFILE: Profile = (
    (0.0, True, 1.0),
    (DISC - 2.0, True, 1.0),
    (DISC - 1.0, False, EDGE_ALPHA),
    (DISC, False, EDGE_ALPHA),
    (DISC + 1.0, False, 0.0),
)
RING_PROFILE: Profile = (
    (RING - 2.5, False, 0.0),
    (RING - 1.5, False, EDGE_ALPHA),
    (RING - 0.75, True, 1.0),
    (RING + 0.75, True, 1.0),
    (RING + 1.5, False, EDGE_ALPHA),
    (RING + 2.5, False, 0.0),
)


class CCD_RIG_GT_targets(bpy.types.Gizmo):
    """Marks of all targets in a view."""

    bl_idname = "CCD_RIG_GT_targets"

    __slots__ = (
        "axis",
        "extends",
        "grabbed",
        "grip",
        "is_plane",
        "last",
        "marks",
        "places",
        "pointed",
        "pointer",
        "seen_at",
        "start",
    )

    marks: list[Any]  # TargetMark; Blender reads the types of a class before the module is imported
    places: Any  # of the marks, Floats
    pointed: Any  # Hit of the mark below the pointer, or None
    seen_at: tuple[float, float]  # pointer at the last test [pixels]
    grabbed: Any  # Hit of the dragged mark
    grip: Any  # Grip during a drag, else None
    start: Vector  # of a drag [pixels]
    last: Vector  # pointer at the last event [pixels]
    pointer: Vector  # pointer slowed down by Shift [pixels]
    axis: int  # 0 to 2 for an axis of the world, -1 for none
    is_plane: bool  # whether the motion is in the plane across the axis
    extends: bool  # whether Shift was held at the press

    def setup(self) -> None:
        import numpy as np

        self.marks, self.places = [], np.empty((0, 2))
        self.pointed, self.grabbed, self.grip = None, None, None

    def look(self, context: bpy.types.Context) -> None:
        """Update the marks of the view and their places, and which one is below the pointer at rest."""
        self.marks, self.places = shown_marks(context)
        if self.pointed is not None and self.grip is None:
            self._point(context)

    def _point(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.viewport.constraints import hit

        self.pointed = hit(self.marks, self.places, self.seen_at, context.preferences.system.ui_scale)

    def draw(self, context: bpy.types.Context) -> None:
        # Undo and playback redraw without a call of the group's `draw_prepare`.
        self.look(context)
        below = self.pointed if self.is_highlight else None
        pointed = below if self.grip is None else self.grabbed
        draw_marks(context, self.marks, self.places, pointed)

    def test_select(self, context: bpy.types.Context, place: Any) -> int:
        """Return a number of the mark or ring below the pointer, -1 for none."""
        self.seen_at = tuple(place)
        self._point(context)
        return -1 if self.pointed is None else 2 * self.pointed.place + self.pointed.is_ring

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        from ..ccd_rig.blender.viewport.constraints import Grip
        from ..ccd_rig.blender.viewport.sketch import left_roles

        self.grabbed = self.pointed
        if self.grabbed is None or self.grabbed.place >= len(self.marks):
            return {"CANCELLED"}
        mark = self.marks[self.grabbed.place]
        rig = shown_rig(context)
        left_roles.add(rig.name)
        self.grip = Grip(rig.ccd_rig.constraints[mark.row], mark.target, mark.point, mark.is_pole)
        self.extends = bool(event.shift)
        self.start = self.last = Vector((event.mouse_region_x, event.mouse_region_y))
        self.pointer, self.axis, self.is_plane = self.start.copy(), -1, False
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event, tweak: set[str]) -> set[str]:
        if self.grip is None:
            return {"CANCELLED"}
        if event.type in set("XYZ") and event.value == "PRESS":
            axis, is_plane = "XYZ".index(event.type), bool(event.shift) and not self.grabbed.is_ring
            again = (axis, is_plane) == (self.axis, self.is_plane)
            self.axis, self.is_plane = (-1, False) if again else (axis, is_plane)
        here = Vector((event.mouse_region_x, event.mouse_region_y))
        is_fine = "PRECISE" in tweak
        self.pointer += (here - self.last) * (FINE if is_fine else 1.0)
        self.last = here
        if (here - self.start).length <= STILL and not self.grip.changed():
            return {"RUNNING_MODAL"}
        snaps = ("SNAP" in tweak) != context.scene.tool_settings.use_snap
        words = (
            self._turn(context, "SNAP" in tweak, is_fine)
            if self.grabbed.is_ring
            else self._move(context, snaps)
        )
        context.area.header_text_set(words)
        context.area.tag_redraw()
        return {"RUNNING_MODAL"}

    def exit(self, context: bpy.types.Context, cancel: bool) -> None:
        from ..ccd_rig.blender.keys import auto_keys

        context.area.header_text_set(None)
        grip, self.grip = self.grip, None
        if grip is None:
            return
        changed, is_ring = grip.changed(), self.grabbed.is_ring
        if cancel:
            grip.restore()
        elif changed or (self.last - self.start).length <= STILL:
            step = translated("Select Target")
            if changed:
                step = translated("Rotate Target" if is_ring else "Move Target")
                if refusal := auto_keys.insert(context, changed):
                    _tell(context, refusal)
            choose(context, self.marks[self.grabbed.place], self.extends)
            bpy.ops.ed.undo_push(message=step)

    def _move(self, context: bpy.types.Context, snaps: bool) -> str:
        """Move the grabbed target with the pointer; returns the header's words."""
        mark = self.marks[self.grabbed.place]
        if mark.turns and not mark.moves:
            return translated("Only the rotation of this target counts: drag its ring")
        if not self.grip.can_move:
            return translated("Something else moves this pole")
        start = self.grip.point
        shift = _below(context, self.start, self.pointer, start, self.axis, self.is_plane)
        if snaps:
            shift = _snapped(context, self.pointer, start, shift, self.axis, self.is_plane)
        self.grip.move(shift)
        lengths = "  ".join(f"{name} {part:.4g}" for name, part in zip("XYZ", shift, strict=True))
        return f"{translated('Move Target')}: {lengths}   {_keys_in_words()}"

    def _turn(self, context: bpy.types.Context, snaps: bool, is_fine: bool) -> str:
        """Turn the grabbed target with the pointer; returns the header's words."""
        if not self.grip.can_turn:
            return translated("Something else turns this target")
        centre = location_3d_to_region_2d(context.region, context.region_data, self.grip.point)
        if centre is None:
            return ""
        before, after = self.start - centre, self.pointer - centre
        angle = before.angle_signed(after, 0.0) if before.length and after.length else 0.0
        towards = context.region_data.view_rotation @ Vector((0.0, 0.0, 1.0))
        axis = Vector([float(i == self.axis) for i in range(3)]) if self.axis >= 0 else towards
        if axis.dot(towards) < 0.0:
            angle = -angle  # the target turns with the pointer on the screen
        angle = -angle  # `angle_signed` counts clockwise
        if snaps:
            step = SMALL_STEP if is_fine else STEP
            angle = round(angle / step) * step
        self.grip.turn(Quaternion(axis, angle))
        return f"{translated('Rotate Target')}: {math.degrees(angle):.2f}°   {_keys_in_words()}"


class CCD_RIG_GGT_targets(bpy.types.GizmoGroup):
    bl_idname = "CCD_RIG_GGT_targets"
    bl_label = "Targets of the Rig"
    bl_space_type = "VIEW_3D"
    bl_region_type = "WINDOW"
    bl_options = {"PERSISTENT", "SHOW_MODAL_ALL"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if context.mode != "POSE" or is_chosen(context):
            return False
        rig = shown_rig(context)
        return rig is not None and rig.is_property_set("ccd_rig") and len(rig.ccd_rig.constraints) > 0

    def setup(self, _context: bpy.types.Context) -> None:
        self.gizmos.new(CCD_RIG_GT_targets.bl_idname).use_draw_modal = True

    def draw_prepare(self, context: bpy.types.Context) -> None:
        for gizmo in self.gizmos:
            gizmo.look(context)


def shown_marks(context: bpy.types.Context) -> tuple[list[TargetMark], Floats]:
    """Return the marks of a view and their places, (n, 2) pixels."""
    import numpy as np

    from ..ccd_rig.blender.viewport.constraints import places_on_screen, target_marks

    rig = shown_rig(context)
    if rig is None or not rig.is_property_set("ccd_rig"):
        return [], np.empty((0, 2))
    marks = target_marks(rig, shown_bones(context, rig))
    region = context.region
    points = [mark.point for mark in marks]
    return marks, places_on_screen(
        points, context.region_data.perspective_matrix, (region.width, region.height)
    )


def _tell(context: bpy.types.Context, words: str) -> None:
    """Show a warning beside the pointer: a gizmo has no reports."""
    message = translated(words, REPORTS)
    context.window_manager.popup_menu(
        lambda menu, _context: menu.layout.label(text=message, translate=False), icon="ERROR"
    )


def choose(context: bpy.types.Context, mark: TargetMark, extends: bool) -> None:
    """Activate the constraint of a mark, and its target bone or else its tip.

    With `extends` other bones stay selected.
    """
    from . import active_row

    rig = shown_rig(context)
    rig.ccd_rig.active_index = mark.row
    if mark.target.obj == rig:
        active_row.activate_bone(rig, mark.target.bone, extends)
    elif active_row.is_wanted(context):
        active_row.activate_bone(rig, rig.ccd_rig.constraints[mark.row].tip, extends)


# Pointer ----------------------------------------------------------------------------------------------------


def _below(
    context: bpy.types.Context, first: Vector, pointer: Vector, start: Vector, axis: int, is_plane: bool
) -> Vector:
    """Shift of a point as the pointer moves from `first`: in the view plane, along an axis, or across it."""
    from ..ccd_rig.blender.viewport.pointer import Axes, motion, ray_at

    names = "XYZ"[axis] if not is_plane else "XYZ".replace("XYZ"[axis], "")
    axes = Axes(Matrix.Identity(3), names) if axis >= 0 else None
    forward = context.region_data.view_rotation @ Vector((0.0, 0.0, -1.0))
    return motion(start, (ray_at(context, first), ray_at(context, pointer)), forward, axes)


def _snapped(
    context: bpy.types.Context, pointer: Vector, start: Vector, shift: Vector, axis: int, is_plane: bool
) -> Vector:
    """Snap a shift to a surface or corner below the pointer, as the scene's settings say, else to a grid."""
    from ..ccd_rig.blender.viewport.pointer import stepped

    elements = context.scene.tool_settings.snap_elements
    point = _surface_point(context, pointer, "VERTEX" in elements) if elements & {"FACE", "VERTEX"} else None
    if point is not None:
        to_surface = point - start
        if axis < 0:
            return to_surface
        return Vector([to_surface[i] if (i == axis) != is_plane else 0.0 for i in range(3)])
    region, view = context.region, context.region_data
    ends: Any = [
        region_2d_to_location_3d(region, view, place, start)
        for place in (pointer, pointer + Vector((GRID, 0.0)))
    ]
    width = (ends[1] - ends[0]).length
    step = 10.0 ** math.floor(math.log10(width)) if width > 0.0 else 1.0
    return stepped(shift, step, None)


def _surface_point(context: bpy.types.Context, pointer: Vector, takes_corners: bool) -> Vector | None:
    """Intersect the pointer's ray with surfaces that do not follow the rig; None without intersection."""
    from ..ccd_rig.blender.scene import dependence
    from ..ccd_rig.blender.viewport.pointer import ray_at

    (origin, direction), rig = ray_at(context, pointer), shown_rig(context)
    depsgraph = context.evaluated_depsgraph_get()
    for _ in range(THROUGH):
        is_hit, point, _normal, face, surface, world = context.scene.ray_cast(depsgraph, origin, direction)
        if not is_hit:
            return None
        if dependence.follows(surface.original, rig):
            origin = point + direction * 1e-4 * max(1.0, (point - origin).length)
            continue
        if takes_corners:
            mesh = surface.evaluated_get(depsgraph).data
            corners = [world @ mesh.vertices[i].co for i in mesh.polygons[face].vertices]
            return min(corners, key=lambda corner: (corner - point).length)
        return point
    return None


def _keys_in_words() -> str:
    return translated("X, Y, Z: axis; Ctrl: snap; Shift: fine")


# Drawing ----------------------------------------------------------------------------------------------------


def color_of(context: bpy.types.Context, mark: TargetMark) -> tuple[float, float, float]:
    """Return the theme's color for a mark's side, of active bones if its constraint is active."""
    from ..ccd_rig.blender.figures.role import Side

    sets = {Side.RIGHT: 0, Side.LEFT: 3, Side.MIDDLE: 8}  # red, blue and yellow
    colors = context.preferences.themes[0].bone_color_sets[sets[mark.side]]
    red, green, blue = colors.active if mark.is_active else colors.select
    return red, green, blue


def draw_marks(
    context: bpy.types.Context, marks: list[TargetMark], places: Floats, pointed: Hit | None
) -> None:
    """Draw marks in pixels of the region, by a single draw call."""
    import numpy as np
    from gpu_extras.batch import batch_for_shader

    if not marks:
        return
    scale = context.preferences.system.ui_scale
    kinds = {(mark.side, mark.is_active): mark for mark in marks}
    shades = {kind: color_of(context, mark) for kind, mark in kinds.items()}
    colors = np.array([shades[mark.side, mark.is_active] for mark in marks])
    sizes = np.array([scale * (LARGER if mark.is_active else 1.0) for mark in marks])
    is_pole = np.array([mark.is_pole for mark in marks])
    turns = np.array([mark.turns for mark in marks])
    rings = np.full(len(marks), scale)
    if pointed is not None and pointed.place < len(marks):
        (rings if pointed.is_ring else sizes)[pointed.place] *= LARGER
        colors[pointed.place] = 0.5 * (1.0 + colors[pointed.place])
    shapes = (
        (turns, rings, RING_PROFILE, RING_CORNERS),
        (~is_pole, sizes, DISC_PROFILE, CORNERS),
        (is_pole, sizes, DISC_PROFILE, POLE_CORNERS),
    )
    seen = np.isfinite(places).all(axis=1)
    points, paint = zip(
        *(
            _triangles(places[of & seen], colors[of & seen], radii[of & seen], profile, corners)
            for of, radii, profile, corners in shapes
        ),
        strict=True,
    )
    blend = gpu.state.blend_get()
    gpu.state.blend_set("ALPHA")
    shader = gpu.shader.from_builtin("SMOOTH_COLOR")
    vertices: Any = {"pos": np.concatenate(points), "color": np.concatenate(paint)}
    batch_for_shader(shader, "TRIS", vertices).draw(shader)
    gpu.state.blend_set(blend)


def _triangles(
    places: Floats, colors: Floats, sizes: Floats, profile: Profile, corners: int
) -> tuple[Any, Any]:
    """Return corners of triangles, (m, 3), and their colors, (m, 4), of a shape at several places."""
    import numpy as np

    angles = np.linspace(0.0, 2.0 * np.pi, corners + 1)
    unit = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # Two triangles per step of the profile and spoke: radius and direction of their corners.
    step, spoke = (grid.ravel() for grid in np.mgrid[: len(profile) - 1, :corners])
    radius = (step[:, None] + np.array([0, 1, 1, 0, 1, 0])).ravel()
    direction = (spoke[:, None] + np.array([0, 0, 1, 0, 1, 1])).ravel()
    outline = np.array([size for size, _, _ in profile])[radius, None] * unit[direction]
    points = np.zeros((len(places), len(radius), 3), dtype=np.float32)
    points[..., :2] = places[:, None, :] + sizes[:, None, None] * outline
    is_colored = np.array([colored for _, colored, _ in profile])[radius, None]
    paint = np.empty((len(places), len(radius), 4), dtype=np.float32)
    paint[..., :3] = np.where(is_colored, colors[:, None, :], np.array(EDGE))
    paint[..., 3] = np.array([alpha for _, _, alpha in profile])[radius]
    return points.reshape(-1, 3), paint.reshape(-1, 4)


register, unregister = bpy.utils.register_classes_factory((CCD_RIG_GT_targets, CCD_RIG_GGT_targets))
