"""Targets in Pose Mode: the real pointer drags, turns and clicks their handles, above those of limits.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bpy
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Quaternion, Vector

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import PACKAGE, REDRAW, install, note, open_tab, photograph, sh, start, view

FROM_RIGHT = Quaternion((0.5, 0.5, 0.5, 0.5))  # the view along -X: Y to the right, Z up
RING = 16.0  # [pixels] radius of the ring that turns
LIMB = 0.6
MANY = 100
LIGHT = "Blender_Light.xml"


def make_rig() -> None:
    """Two arms that hang on a chest, seen from the right: one to the front, one to the back."""
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    rig.select_set(True)
    bpy.ops.object.mode_set(mode="EDIT")
    chest = rig.data.edit_bones.new("chest")
    chest.head, chest.tail = (0, 0, 0.5), (0, 0, 1.5)
    for side, way in (("L", 1.0), ("R", -1.0)):
        parent = chest
        for i, name in enumerate(("arm", "forearm", "hand")):
            bone = rig.data.edit_bones.new(f"{name}.{side}")
            bone.head = (0, way * (0.3 + LIMB * i), 1.5 - 0.2 * (i == 1))
            bone.tail = (0, way * (0.3 + LIMB * (i + 1)), 1.5 - 0.2 * (i == 0))
            bone.parent, parent = parent, bone
    bpy.ops.object.mode_set(mode="POSE")


def rig() -> bpy.types.Object:
    return bpy.data.objects["Rig"]


def row(name: str):
    return rig().ccd_rig.constraints[name]


def add(bone: str, **options: object) -> None:
    bpy.ops.pose.select_all(action="DESELECT")
    rig().data.bones.active = rig().data.bones[bone]
    bpy.ops.ccd_rig.constraint_add(**options)


def look(place: tuple[float, float, float] = (0.0, 0.8, 1.2), size: float = 7.0) -> None:
    _, area, _ = view()
    seen = area.spaces.active.region_3d
    seen.view_perspective, seen.view_rotation = "ORTHO", FROM_RIGHT
    seen.view_location, seen.view_distance = place, size
    area.tag_redraw()


def screen(point: Vector) -> tuple[int, int]:
    """Where a point of world space is, in pixels of the screen counted from its upper left corner."""
    window, area, _ = view()
    region = next(region for region in area.regions if region.type == "WINDOW")
    place = location_3d_to_region_2d(region, area.spaces.active.region_3d, point)
    return round(region.x + place.x), round(window.height - region.y - place.y)


def point_of(name: str) -> Vector:
    """Where the target of a constraint is."""
    bpy.context.view_layer.update()
    target = row(name)
    thing = target.target
    if target.target_bone:
        return thing.matrix_world @ thing.pose.bones[target.target_bone].head
    return thing.matrix_world.translation.copy()


def to(place: tuple[int, int], pause: float = 0.25) -> Iterator[float]:
    sh("xdotool", "mousemove", *place)
    yield pause


def drag(
    way: list[tuple[int, int]], held: str = "", keys: tuple[str, ...] = (), ends_with: int = 1, name: str = ""
) -> Iterator[float]:
    """Drag with the left button over places of the screen, with a key held and others pressed on the way."""
    (x, y), *rest = way
    view()[1].tag_redraw()  # handles follow what a script has changed with the next redraw
    yield from to((x - 60, y - 60))
    yield from to((x, y), REDRAW)
    sh("xdotool", "mousedown", 1)
    yield 0.3
    if held:
        sh("xdotool", "keydown", held)
        yield 0.2
    yield from to(rest[0])
    for each in keys:
        sh("xdotool", "key", each)
        yield 0.25
    for place in rest:
        yield from to(place)
    if name:
        photograph(name)
    if ends_with != 1:
        sh("xdotool", "click", ends_with)
        yield 0.3
    sh("xdotool", "mouseup", 1)
    yield 0.3
    if held:
        sh("xdotool", "keyup", held)
    yield REDRAW


def between(start_at: Vector, end: Vector, steps: int = 5) -> list[tuple[int, int]]:
    return [screen(start_at.lerp(end, i / steps)) for i in range(steps + 1)]


def key(name: str) -> Iterator[float]:
    yield from to(screen(Vector((0.0, 0.0, 0.1))))
    sh("xdotool", "key", name)
    yield REDRAW


def seen(name: str) -> dict[str, object]:
    """What a test may ask of a constraint's target."""
    return {"place": list(point_of(name)), "mode": bpy.context.mode, "active": rig().ccd_rig.active_index}


def move_empties() -> Iterator[float]:
    """One step of undo, a cancel, an axis, a grid, a precise drag; the rig stays in Pose Mode."""
    add("hand.L")
    add("hand.R")
    look()
    bpy.ops.ed.undo_push(message="Prepared")
    yield REDRAW
    photograph("both_sides")
    home = point_of("hand.L")
    note("before", **seen("hand.L"))
    goal = home + Vector((0.0, -0.4, 0.3))
    yield from drag(between(home, goal), name="moving")
    note("move", goal=list(goal), **seen("hand.L"))
    yield from key("ctrl+z")
    note("undo", **seen("hand.L"))
    yield from key("ctrl+shift+z")
    note("redo", **seen("hand.L"))
    yield from key("ctrl+z")
    yield from drag(between(home, goal), ends_with=3)
    note("cancel", **seen("hand.L"))
    for step, options in (
        ("along_z", {"keys": ("z",), "name": "along_z"}),
        ("across_z", {"keys": ("shift+z",)}),
        ("snap", {"held": "ctrl"}),
        ("precise", {"held": "shift"}),
    ):
        yield from drag(between(home, goal), **options)
        note(step, **seen("hand.L"))
        row("hand.L").target.location = home
        yield REDRAW


def click_one() -> Iterator[float]:
    """A click chooses the constraint, and its bone then follows."""
    rig().ccd_rig.active_index = 1
    yield REDRAW
    yield from to(screen(point_of("hand.L")), REDRAW)
    sh("xdotool", "click", 1)
    yield REDRAW
    yield from to(screen(Vector((0.0, 0.0, 0.1))), REDRAW)
    note("click", bone=rig().data.bones.active.name, **seen("hand.L"))
    photograph("clicked")


def above_a_limit() -> Iterator[float]:
    """Where the handle of a limit lies below that of a target, the target is taken."""
    bone = rig().pose.bones["hand.L"]
    rig().data.bones.active = bone.bone
    bone.ccd_rig.limit.kind = "HINGE"
    bone.ccd_rig.limit.hinge_lower, bone.ccd_rig.limit.hinge_upper = 0.0, math.radians(90.0)
    bpy.ops.ed.undo_push(message="Limited")
    yield REDRAW
    home = point_of("hand.L")
    # The hinge's handle at 0 stands on the bone, three quarters of its length from the head.
    target = row("hand.L").target
    target.location = bone.head + (bone.tail - bone.head) * 0.75
    yield REDRAW
    photograph("above_a_limit")
    start_at = point_of("hand.L")
    yield from drag(between(start_at, start_at + Vector((0.0, 0.0, 0.4))))
    limits = [bone.ccd_rig.limit.hinge_lower, bone.ccd_rig.limit.hinge_upper]
    note("above", start=list(start_at), limits=limits, **seen("hand.L"))
    target.location = home
    bone = rig().pose.bones["hand.L"]
    bone.ccd_rig.limit.kind = "NONE"
    yield REDRAW


def turn_one() -> Iterator[float]:
    """The ring turns the target of a constraint that copies rotation, and there is none without."""
    home = point_of("hand.L")
    x, y = screen(home)
    ring = [
        (round(x + RING * math.cos(a)), round(y - RING * math.sin(a))) for a in (0.0, 0.5, 1.0, math.pi / 2)
    ]
    far = [(round(x + 90 * math.cos(a)), round(y - 90 * math.sin(a))) for a in (0.0, 0.5, 1.0, math.pi / 2)]
    yield from drag(ring[:1] + far[1:])
    note("no_ring", turn=list(row("hand.L").target.rotation_euler), **seen("hand.L"))
    row("hand.L").rotation = "ORIENTATION"
    bpy.ops.ed.undo_push(message="Copies")
    yield REDRAW
    yield from drag(ring[:1] + far[1:], name="turning")
    note("turn", turn=list(row("hand.L").target.rotation_euler), **seen("hand.L"))
    yield from key("ctrl+z")
    note("turn_undone", turn=list(row("hand.L").target.rotation_euler), **seen("hand.L"))
    yield from drag(ring[:1] + far[1:], held="ctrl")
    note("turn_snap", turn=list(row("hand.L").target.rotation_euler), **seen("hand.L"))
    row("hand.L").rotation = "NONE"
    row("hand.L").target.rotation_euler = (0.0, 0.0, 0.0)


def move_others() -> Iterator[float]:
    """Control bones, the offset where something else moves the target, and Live."""
    bpy.ops.object.mode_set(mode="OBJECT")
    make_rig()
    add("hand.L", control_bones=True)
    add("hand.R")
    yield REDRAW
    home = point_of("hand.L")
    goal = home + Vector((0.0, -0.4, 0.3))
    bpy.ops.ed.undo_push(message="Prepared")
    yield from drag(between(home, goal), name="control_bone")
    note("control_bone", goal=list(goal), **seen("hand.L"))
    yield from key("ctrl+z")
    note("control_bone_undone", home=list(home), **seen("hand.L"))
    rig().ccd_rig.active_index = 1
    yield REDRAW
    yield from to(screen(point_of("hand.L")), REDRAW)
    sh("xdotool", "click", 1)
    yield REDRAW
    yield from to(screen(Vector((0.0, 0.0, 0.1))), REDRAW)
    note("click_control_bone", bone=rig().data.bones.active.name, **seen("hand.L"))
    target = row("hand.R").target
    target.constraints.new("LIMIT_LOCATION")
    yield REDRAW
    home = point_of("hand.R")
    yield from drag(between(home, home + Vector((0.0, 0.4, 0.3))))
    note("offset", home=list(home), offset=list(row("hand.R").offset), **seen("hand.R"))
    bpy.ops.ccd_rig.live()
    yield REDRAW
    home = point_of("hand.L")
    yield from drag(between(home, home + Vector((0.0, -0.5, 0.3))), name="live")
    tail = rig().evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones["hand.L"].tail
    note("live", missed=(rig().matrix_world @ tail - point_of("hand.L")).length, **seen("hand.L"))
    bpy.ops.ccd_rig.live()


def many_on_both_themes() -> Iterator[float]:
    """A hundred constraints, some of which turn, with poles: how long it takes, and how it looks."""
    bpy.ops.object.mode_set(mode="OBJECT")
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    made = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(made)
    bpy.context.view_layer.objects.active = made
    made.select_set(True)
    bpy.ops.object.mode_set(mode="EDIT")
    for i in range(MANY):
        bone = made.data.edit_bones.new(f"finger{i}{('.L', '.R', '')[i % 3]}")
        bone.head = (0.0, 0.25 * (i % 20) - 2.5, 0.5 * (i // 20))
        bone.tail = bone.head + Vector((0.0, 0.0, 0.2))
    bpy.ops.object.mode_set(mode="POSE")
    for i, bone in enumerate(made.pose.bones):
        target = bpy.data.objects.new(f"T{i}", None)
        bpy.context.scene.collection.objects.link(target)
        target.empty_display_size = 0.02
        target.location = made.matrix_world @ bone.tail
        added = made.ccd_rig.constraints.add()
        added.name, added.tip, added.target = bone.name, bone.name, target
        added.rotation = "ORIENTATION" if i % 4 == 0 else "NONE"
        if i % 5 == 0:
            added.pole_target = bpy.data.objects.new(f"P{i}", None)
            bpy.context.scene.collection.objects.link(added.pole_target)
            added.pole_target.location = target.location + Vector((0.0, 0.1, -0.1))
            added.pole_target.empty_display_size = 0.02
    look((0.0, 0.8, 1.1), 7.5)
    yield REDRAW
    photograph("many_dark")
    handles = sys.modules[f"{PACKAGE}.viewport.target_handles"]
    window, area, _ = view()
    region = next(region for region in area.regions if region.type == "WINDOW")
    times: dict[str, list[float]] = {"look": [], "draw": [], "poll": []}
    original = handles.CCD_RIG_GT_targets.draw

    def timed(gizmo: object, context: bpy.types.Context) -> None:
        for name, work in (
            ("poll", lambda: handles.CCD_RIG_GGT_targets.poll(context)),
            ("look", lambda: handles.shown_marks(context)),
            ("draw", lambda: original(gizmo, context)),
        ):
            before = time.thread_time()
            work()
            times[name].append(time.thread_time() - before)

    handles.CCD_RIG_GT_targets.draw = timed
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.ops.wm.redraw_timer(type="DRAW_WIN", iterations=20)
    handles.CCD_RIG_GT_targets.draw = original
    middle = {name: sorted(each)[len(each) // 2] * 1e3 for name, each in times.items() if each}
    note("many", milliseconds=middle, count=len(times["draw"]))
    presets = [Path(path) for path in bpy.utils.preset_paths("interface_theme")]
    light = next(path / LIGHT for path in presets if (path / LIGHT).is_file())
    bpy.ops.script.execute_preset(filepath=str(light), menu_idname="USERPREF_MT_interface_theme_presets")
    yield 2 * REDRAW
    photograph("many_light")


def run() -> Iterator[float]:
    install()
    make_rig()
    yield REDRAW
    yield from open_tab()
    yield from move_empties()
    yield from click_one()
    yield from above_a_limit()
    yield from turn_one()
    yield from move_others()
    yield from many_on_both_themes()


if __name__ == "__main__":
    start(run())
