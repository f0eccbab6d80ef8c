"""What stands in the 3D viewport: limits and constraints are drawn, and the real pointer drags handles.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import bpy
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Quaternion, Vector

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import PACKAGE, REDRAW, buttons, click, install, note, open_tab, photograph, sh, start, view

KINDS = ("HINGE", "CONE", "ELLIPSE", "TWIST", "EULER")
SIZE = 0.75  # radius of a limit's drawing, in lengths of the bone
FROM_RIGHT = Quaternion((0.5, 0.5, 0.5, 0.5))  # the view along -X
OBLIQUE = Quaternion((0.72, 0.5, 0.25, 0.41)).normalized()


def make_rig() -> None:
    """Three bones upwards, one metre each, and a foot beside them; the middle one is active."""
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    parent = None
    for i in range(3):
        bone = rig.data.edit_bones.new(f"Bone{i}")
        bone.head, bone.tail, bone.parent = (0, 0, i), (0, 0, i + 1), parent
        bone.use_connect, parent = parent is not None, bone
    foot = rig.data.edit_bones.new("Foot")
    foot.head, foot.tail = (0, 1.2, 0.2), (0, 2.0, 0.2)
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones["Bone1"]


def bone(name: str = "Bone1") -> bpy.types.PoseBone:
    return bpy.data.objects["Rig"].pose.bones[name]


def limit():
    return bone().ccd_rig.limit


def look(
    rotation: Quaternion, place: tuple[float, float, float] = (0.0, 0.0, 1.5), size: float = 4.0
) -> None:
    _, area, _ = view()
    seen = area.spaces.active.region_3d
    seen.view_perspective, seen.view_rotation = "ORTHO", rotation
    seen.view_location, seen.view_distance = place, size
    area.tag_redraw()


def pose(axis: tuple[float, float, float], degrees: float) -> None:
    bone().rotation_quaternion = Quaternion(axis, math.radians(degrees))


def screen(point: Vector) -> tuple[int, int]:
    """Where a point of world space is, in pixels of the screen counted from its upper left corner."""
    window, area, _ = view()
    region = next(region for region in area.regions if region.type == "WINDOW")
    place = location_3d_to_region_2d(region, area.spaces.active.region_3d, point)
    return round(region.x + place.x), round(window.height - region.y - place.y)


def on_arc(degrees: float, axis: str = "X") -> Vector:
    """A point of the active bone's dial about its X axis at rest, in world space."""
    angle = math.radians(degrees)
    return (
        bone().head + bone().bone.matrix_local.to_3x3() @ Vector((0, math.cos(angle), math.sin(angle))) * SIZE
    )


def drag(start_at: Vector, places: list[Vector], held: str = "", ends_with: int = 1) -> Iterator[float]:
    """Drag with the left button over places, perhaps with a key held, and let go or press another button."""
    view()[1].tag_redraw()  # handles follow what a script has changed with the next redraw
    sh("xdotool", "mousemove", *screen(start_at + Vector((0.2, 0, 0.2))))
    yield 0.3
    sh("xdotool", "mousemove", *screen(start_at))
    yield REDRAW  # Blender finds the handle below the pointer
    sh("xdotool", "mousedown", 1)
    yield 0.3
    if held:
        sh("xdotool", "keydown", held)
        yield 0.2
    for place in places:
        sh("xdotool", "mousemove", *screen(place))
        yield 0.3
    photograph(f"drag_{held or ends_with}")
    if ends_with != 1:
        sh("xdotool", "click", ends_with)
        yield 0.3
    sh("xdotool", "mouseup", 1)
    yield 0.3
    if held:
        sh("xdotool", "keyup", held)
    yield REDRAW


def key(name: str) -> Iterator[float]:
    """Press a key while the pointer is over an empty part of the view."""
    sh("xdotool", "mousemove", *screen(Vector((0, -0.8, 2.4))))
    yield 0.3
    sh("xdotool", "key", name)
    yield REDRAW


def photograph_limits() -> Iterator[float]:
    look(OBLIQUE)
    region = bone().ccd_rig.comfort.region
    for kind in KINDS:
        limit().kind = region.kind = kind
        region.hinge_lower, region.hinge_upper, region.cone_radius = -0.3, 0.9, 0.4
        region.x_lower, region.x_upper, region.z_lower, region.z_upper = -0.2, 0.6, -0.3, 0.3
        region.twist_lower, region.twist_upper = -0.3, 0.3
        region.euler_lower, region.euler_upper = (-0.4,) * 3, (0.4,) * 3
        limit().x_upper, limit().z_lower = 1.2, -0.5
        limit().use_twist = kind == "ELLIPSE"
        axis, border = ((0, 1, 0), 45) if kind == "TWIST" else ((1, 0, 0), 90 if kind == "HINGE" else 45)
        if kind == "ELLIPSE":
            axis, border = (0, 0, 1), 45
        for name, degrees in (("inside", 20), ("border", border)):
            pose(axis, degrees)
            yield REDRAW
            photograph(f"{kind.lower()}_{name}")
    region.kind = "NONE"
    limit().use_twist = False
    pose((1, 0, 0), 0)


def drag_hinge() -> Iterator[float]:
    look(FROM_RIGHT)
    limit().kind, limit().hinge_lower, limit().hinge_upper = "HINGE", 0.0, math.radians(90.0)
    bpy.ops.ed.undo_push(message="Prepared")
    yield REDRAW
    way = [on_arc(degrees) for degrees in (85, 75, 65, 55, 48, 45)]
    yield from drag(on_arc(90.0), way)
    note("drag", degrees=math.degrees(limit().hinge_upper), lower=math.degrees(limit().hinge_lower))
    yield from key("ctrl+z")
    note("undo", degrees=math.degrees(limit().hinge_upper))
    yield from key("ctrl+shift+z")
    note("redo", degrees=math.degrees(limit().hinge_upper))
    yield from key("ctrl+z")
    yield from drag(on_arc(90.0), way, ends_with=3)
    note("cancel", degrees=math.degrees(limit().hinge_upper))
    yield from drag(on_arc(90.0), [on_arc(degrees) for degrees in (80, 70, 63)], held="ctrl")
    note("snap", degrees=math.degrees(limit().hinge_upper))
    limit().hinge_upper = math.radians(90.0)
    yield REDRAW
    yield from drag(on_arc(90.0), [on_arc(degrees) for degrees in (80, 70)], held="shift")
    note("precise", degrees=math.degrees(limit().hinge_upper))
    limit().hinge_upper = math.radians(90.0)
    yield REDRAW
    yield from drag(on_arc(90.0), [on_arc(degrees) for degrees in (60, 30, 0, -30)])
    note("past_the_other", degrees=math.degrees(limit().hinge_upper))
    limit().hinge_upper = math.radians(90.0)
    yield REDRAW
    yield from drag(on_arc(90.0), [on_arc(degrees) for degrees in (120, 150, 180, 210)])
    note("past_a_half_turn", degrees=math.degrees(limit().hinge_upper))


def drag_others() -> Iterator[float]:
    """A cone's rim, and the axis of a hinge, seen from above."""
    limit().kind, limit().cone_radius = "CONE", math.radians(40.0)
    yield REDRAW
    yield from drag(on_arc(40.0), [on_arc(degrees) for degrees in (50, 60, 70)])
    note("cone", degrees=math.degrees(limit().cone_radius))
    limit().cone_radius = math.radians(40.0)
    look(Quaternion())  # along the bone: the arc on which the radius turns is seen edge-on
    yield REDRAW
    yield from drag(on_arc(40.0), [on_arc(degrees) for degrees in (35, 30, 25)])
    note("cone_from_above", degrees=math.degrees(limit().cone_radius))
    limit().kind, limit().axis = "HINGE", (1.0, 0.0, 0.0)
    limit().hinge_lower, limit().hinge_upper = 0.0, math.radians(90.0)
    yield REDRAW
    axes = bone().bone.matrix_local.to_3x3()
    places = [
        bone().head + axes @ Vector((math.cos(angle), 0.0, -math.sin(angle))) * SIZE
        for angle in map(math.radians, (0, 30, 60, 90))
    ]
    yield from drag(places[0], places[1:])
    note("axis", axis=list(limit().axis))


def show_constraints() -> Iterator[float]:
    """Lines to targets, out of reach, planted bones, and the overlay's switches."""
    look(OBLIQUE, (0.0, -0.3, 1.5), 8.0)
    rig = bpy.data.objects["Rig"]
    target = bpy.data.objects.new("Target", None)
    bpy.context.scene.collection.objects.link(target)
    target.empty_display_size = 0.2
    target.location = (0.0, -1.2, 1.8)
    rows = rig.ccd_rig.constraints
    for name, tip, kind in (("Tip", "Bone2", "REACH"), ("Plant", "Foot", "PLANT")):
        row = rows.add()
        row.name, row.tip, row.kind = name, tip, kind
    rows["Tip"].target = target
    rig.ccd_rig.active_index = 0
    bone().ccd_rig.limit.kind = "NONE"
    yield REDRAW
    photograph("reach")
    target.location = (0.0, -2.6, 2.6)
    yield REDRAW
    photograph("out_of_reach")
    _, area, _ = view()
    for name, owner, switch in (
        ("overlays_off", area.spaces.active.overlay, "show_overlays"),
        ("bones_off", area.spaces.active.overlay, "show_bones"),
        ("switched_off", bpy.context.preferences.addons[PACKAGE].preferences, "show_overlay"),
    ):
        setattr(owner, switch, False)
        yield REDRAW
        photograph(name)
        setattr(owner, switch, True)
    bpy.context.preferences.addons[PACKAGE].preferences.show_chain_limits = True
    for name in ("Bone0", "Bone1", "Bone2"):
        bone(name).ccd_rig.limit.kind = "CONE"
    area.tag_redraw()
    yield REDRAW
    photograph("chain_limits")
    window, area, _ = view()
    region = next(region for region in area.regions if region.type == "WINDOW")
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.ops.wm.call_panel("INVOKE_DEFAULT", name="VIEW3D_PT_overlay", keep_open=False)
    yield 2 * REDRAW
    photograph("popover")
    yield from key("Escape")


def follow_clicks() -> Iterator[float]:
    """A click on a bone chooses its constraint, and a click in the list its bone."""
    rig = bpy.data.objects["Rig"]
    foot = Vector((0.0, 1.6, 0.2))
    sh("xdotool", "mousemove", *screen(foot))
    yield 0.3
    sh("xdotool", "click", 1)
    yield 0.3
    sh("xdotool", "mousemove", *screen(foot + Vector((0.0, 0.0, 0.3))))
    yield REDRAW
    note("click_bone", bone=rig.data.bones.active.name, row=rig.ccd_rig.active_index)
    found: dict[str, tuple[int, int]] = {}
    first_line = 'bpy.data.objects["Rig"].ccd_rig.active_index'
    yield from buttons(first_line, found)
    yield from click(found, first_line)
    photograph("clicked_row")
    note("click_row", bone=rig.data.bones.active.name, row=rig.ccd_rig.active_index)


def come_and_go() -> Iterator[float]:
    """Disabled in the middle of work the extension leaves nothing drawn, and it comes back."""
    bpy.ops.preferences.addon_disable(module=PACKAGE)
    yield REDRAW
    photograph("disabled")
    bpy.ops.preferences.addon_enable(module=PACKAGE)
    _, area, _ = view()
    area.tag_redraw()
    yield REDRAW
    photograph("enabled_again")
    note("come_and_go", limit=limit().kind)


def run() -> Iterator[float]:
    install()
    make_rig()
    yield REDRAW
    yield from open_tab()
    yield from photograph_limits()
    yield from drag_hinge()
    yield from drag_others()
    yield from show_constraints()
    yield from follow_clicks()
    yield from come_and_go()


if __name__ == "__main__":
    start(run())
