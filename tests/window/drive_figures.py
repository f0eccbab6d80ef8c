"""From an open file to the first bake of a whole figure: each click of the pointer is counted.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import bpy
from mathutils import Matrix, Quaternion, Vector

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import PATIENCE, REDRAW, TAB, buttons, install, note, photograph, sh, start, until, view
from drive_rigs import FRAMES, cat, empty_scene, human, metarig, shifting_quadruped, spider, tail
from drive_viewport import screen

FROM_FRONT_LEFT = Quaternion((0.82, 0.46, 0.15, 0.30)).normalized()
MOVED = 0.25  # part of the way to its chain's root by which a target is dragged
LIMBS = "hand", "foot", "toe", "leg"  # in names of their ends
UPPER = 320  # [pixels] of the sidebar in which buttons of first steps are
FEET_BELOW_SET_UP, FEET_BELOW_INFLUENCE = 33, 163  # [pixels] to the header Feet and Contacts
TABS_STEP = 28  # [pixels] between two places in which a tab of the sidebar is looked for

counted = {"clicks": 0, "keys": 0}
place_of_tab: list[int] = []
FOUR_FEET = [f"{toe}.{side}" for toe in ("front_toe", "toe") for side in "LR"]
SPIDER_FEET = [f"foot{leg}.{side}" for leg in range(4) for side in "LR"]


def press(x: int, y: int) -> Iterator[float]:
    """One click of the pointer, as a user makes it."""
    sh("xdotool", "mousemove", x, y)
    yield 0.4
    sh("xdotool", "click", 1)
    counted["clicks"] += 1
    yield REDRAW


def type_key(name: str) -> Iterator[float]:
    sh("xdotool", "key", name)
    counted["keys"] += 1
    yield REDRAW


def button(command: str, rows: tuple[int, int] = (4, UPPER)) -> Iterator[float]:
    """Look where a button is in the upper part of the sidebar, which a user sees, and click it.

    `rows` says more closely where it may be, in pixels from the sidebar's top.
    """
    found: dict[str, tuple[int, int]] = {}
    window, _, region = view()
    top = window.height - region.y - region.height
    yield from buttons(command, found, (top + rows[0], top + rows[1]), alone=True)
    places = [place for name, place in found.items() if name.startswith(command)]
    if not places:
        raise LookupError(f"no button for {command} in the sidebar; found: {sorted(found)}")
    yield from press(*places[0])


# --- the way of a newcomer ----------------------------------------------------------------------------------


def frame_view(rig: bpy.types.Object) -> None:
    """The whole rig in the view, a little from the front and left."""
    corners = [rig.matrix_world @ Vector(corner) for corner in rig.bound_box]
    middle = sum(corners, Vector()) / 8.0
    _, area, _ = view()
    seen = area.spaces.active.region_3d
    seen.view_perspective, seen.view_rotation = "ORTHO", FROM_FRONT_LEFT
    size = max((corner - middle).length for corner in corners)
    # Beside the sidebar, which lies over the right of the view.
    seen.view_location = middle + seen.view_rotation @ Vector((0.35 * size, 0.0, 0.0))
    seen.view_distance = 2.2 * size


def find_tab() -> Iterator[float]:
    """Where the tab is that a user sees: clicked for, once, and not counted."""
    _, area, region = view()
    area.spaces.active.show_region_ui = True
    yield REDRAW
    window, area, region = view()
    top = window.height - region.y - region.height
    for y in range(top + 20, top + 700, TABS_STEP):
        sh("xdotool", "mousemove", region.x + region.width - 8, y)
        yield 0.1
        sh("xdotool", "click", 1)
        yield 0.3
        if region.active_panel_category == TAB:
            place_of_tab[:] = [region.x + region.width - 8, y]
            return
    raise LookupError(f"no tab {TAB}")


def open_file(make: Callable[[], bpy.types.Object], is_active: bool) -> Iterator[float]:
    """A file as it opens: the sidebar shows another tab, and the rig may be the active object or not."""
    empty_scene()
    rig = make()
    bpy.context.view_layer.update()
    if not is_active:
        rig.select_set(False)
        bpy.context.view_layer.objects.active = None
    frame_view(rig)
    yield REDRAW
    _, area, region = view()
    region.active_panel_category = "View"
    area.tag_redraw()
    bpy.ops.ed.undo_push(message="Opened")
    yield REDRAW
    counted.update(clicks=0, keys=0)


def first_bake(name: str, make: Callable[[], bpy.types.Object], bone: str, moved: str) -> Iterator[float]:
    """Open, set up, move one target, bake.

    Args:
        name: of the visit, for photographs and notes.
        make: makes the figure.
        bone: to click, to make the rig active; empty where it is.
        moved: the bone whose target is dragged; empty for none.
    """
    yield from open_file(make, not bone)
    rig = next(each.name for each in bpy.data.objects if each.type == "ARMATURE")
    if bone:
        posed = bpy.data.objects[rig].pose.bones[bone]
        yield from press(*screen(bpy.data.objects[rig].matrix_world @ ((posed.head + posed.tail) / 2.0)))
    yield from press(*place_of_tab)
    yield from button("bpy.ops.ccd_rig.figure_set_up(")
    yield 2 * REDRAW
    photograph(f"{name}_set_up")
    thing = bpy.data.objects[rig]
    rows = {row.name: row.tip for row in thing.ccd_rig.constraints}
    if moved:
        yield from drag_target(thing, moved)
        photograph(f"{name}_dragged")
    yield from button("bpy.ops.ccd_rig.bake(")
    yield from until(lambda: bpy.data.objects[rig].ccd_rig.report.words, PATIENCE)
    bpy.context.scene.frame_set(FRAMES)
    yield 3 * REDRAW  # panels slide to their places
    photograph(f"{name}_baked")
    words = bpy.data.objects[rig].ccd_rig.report.words
    note(name, rows=rows, words=words, **counted, **measured(bpy.data.objects[rig]))


def drag_target(rig: bpy.types.Object, tip: str) -> Iterator[float]:
    """Click a line of a target and move it towards the chain's root, with G, the pointer and Return."""
    row = next(row for row in rig.ccd_rig.constraints if row.tip == tip)
    target = row.target
    size = target.empty_display_size
    place = target.matrix_world.translation
    if target.empty_display_type == "CUBE":
        line = target.matrix_world.to_quaternion() @ Vector((size, size, size))
    else:
        _, area, _ = view()
        line = area.spaces.active.region_3d.view_rotation @ Vector((size, 0.0, 0.0))
    yield from press(*screen(place + line))
    chosen = bpy.context.view_layer.objects.active
    note(f"chosen_{rig.name}", name=chosen.name if chosen else "", wanted=target.name)
    chain = [rig.pose.bones[tip], *rig.pose.bones[tip].parent_recursive][: row.chain_length or None]
    way = [b - a for a, b in zip(screen(place), screen(rig.matrix_world @ chain[-1].head), strict=True)]
    yield from type_key("g")
    for _ in range(4):
        sh("xdotool", "mousemove_relative", "--", *(round(MOVED / 4 * each) for each in way))
        yield 0.2
    yield from type_key("Return")


def measured(rig: bpy.types.Object) -> dict[str, object]:
    """How far bones are from their targets at the frames, and how far limbs bend about the axis of rest."""
    worst, sides = 0.0, {}
    for frame in range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        graph = bpy.context.evaluated_depsgraph_get()
        posed = rig.evaluated_get(graph)
        for row in rig.ccd_rig.constraints:
            bone = posed.pose.bones[row.tip]
            end = posed.matrix_world @ (bone.tail if row.use_tail else bone.head)
            aim = row.target.evaluated_get(graph).matrix_world.translation
            if row.use_position:
                worst = max(worst, (end - aim).length)
            chain = [bone, *bone.parent_recursive][: row.chain_length]
            if len(chain) > 2 and any(word in row.tip for word in LIMBS):
                joints = chain[:-4:-1]  # from the root of the limb on
                now = bend_axis([each.head for each in joints], joints[1].matrix)
                rest = bend_axis([each.bone.head_local for each in joints], joints[1].bone.matrix_local)
                if rest.length > 0.01 and now.length > 0.01:
                    sides[row.name] = min(sides.get(row.name, 1.0), now.normalized().dot(rest.normalized()))
    return {"worst": worst, "sides": sides, "curves": len(keyed_curves(rig))}


def bend_axis(heads: Sequence[Vector], frame: Matrix) -> Vector:
    """The axis about which a limb bends, as its middle bone has it: as long as the sine of the bend."""
    upper, lower = ((b - a).normalized() for a, b in itertools.pairwise(heads))
    return frame.to_3x3().normalized().inverted() @ upper.cross(lower)


def keyed_curves(rig: bpy.types.Object) -> list[str]:
    """Data paths of the F-curves of the rig's action."""
    data = rig.animation_data
    if data is None or data.action is None:
        return []
    layers = data.action.layers
    return [c.data_path for layer in layers for s in layer.strips for b in s.channelbags for c in b.fcurves]


def plant_after_set_up() -> Iterator[float]:
    """A newcomer's next click: the feet of a set-up figure are selected and planted, the hips go down."""
    yield from open_file(lambda: metarig("Basic.basic_human"), is_active=True)
    rig = bpy.context.object.name
    yield from press(*place_of_tab)
    yield from button("bpy.ops.ccd_rig.figure_set_up(")
    yield from select_bones(bpy.data.objects[rig], "foot.L", "foot.R")
    yield from plant_selected("planted")
    hips = next(row for row in bpy.data.objects[rig].ccd_rig.constraints if row.tip == "spine")
    for frame, drop in ((1, 0.0), (FRAMES // 2, -0.25), (FRAMES, 0.0)):
        hips.target.delta_location = (0.0, 0.0, drop)
        hips.target.keyframe_insert("delta_location", frame=frame)
    yield from bake_planted("planted", rig, ["foot.L", "foot.R"])
    note("planted_drop", drop=shown_drop(bpy.data.objects[rig]))


def plant_animated(
    name: str, make: Callable[[], bpy.types.Object], bone: str, feet: list[str]
) -> Iterator[float]:
    """Plant the feet of a figure whose body is animated, each selected by a click of its own.

    Args:
        name: of the visit, for photographs and notes.
        make: makes the figure.
        bone: to click, to make the rig active.
        feet: bones to plant.
    """
    yield from open_file(make, is_active=False)
    thing = next(each for each in bpy.data.objects if each.type == "ARMATURE")
    rig = thing.name
    yield from press(*on_bone(thing, bone))
    yield from press(*place_of_tab)
    yield from select_bones(thing, *feet)
    yield from plant_selected(name)
    yield from bake_planted(name, rig, feet)


def on_bone(rig: bpy.types.Object, bone: str) -> tuple[int, int]:
    """Where the middle of a bone is on the screen."""
    posed = rig.pose.bones[bone]
    return screen(rig.matrix_world @ ((posed.head + posed.tail) / 2.0))


def select_bones(rig: bpy.types.Object, *names: str) -> Iterator[float]:
    """Go to Pose Mode by its keys, and click bones, the second and further ones with Shift."""
    yield from point(on_bone(rig, names[0]))
    yield from type_key("ctrl+Tab")
    for k, name in enumerate(names):
        yield from point(on_bone(rig, name))
        if k:
            sh("xdotool", "keydown", "shift")
        sh("xdotool", "click", 1)
        counted["clicks"] += 1
        yield 0.3
        if k:
            sh("xdotool", "keyup", "shift")
    yield REDRAW


def point(place: tuple[int, int]) -> Iterator[float]:
    sh("xdotool", "mousemove", *place)
    yield 0.3


def plant_selected(name: str) -> Iterator[float]:
    """Unfold Feet and Contacts and press its button."""
    rig = bpy.context.object
    selected = sorted(bone.name for bone in bpy.context.selected_pose_bones)
    anchor, below, low, high = "bpy.ops.ccd_rig.figure_set_up(", FEET_BELOW_SET_UP, 4, UPPER
    if len(rig.ccd_rig.constraints):
        anchor = f'bpy.data.objects["{rig.name}"].ccd_rig.constraints[{rig.ccd_rig.active_index}].influence'
        below, low, high = FEET_BELOW_INFLUENCE, UPPER, 2 * UPPER
    found: dict[str, tuple[int, int]] = {}
    window, _, region = view()
    top = window.height - region.y - region.height
    yield from buttons(anchor, found, (top + low, top + high), alone=True)
    photograph(f"{name}_selected")
    height = next(place[1] for each, place in found.items() if each.startswith(anchor))
    plant = "bpy.ops.ccd_rig.feet_plant()"
    yield from buttons(plant, found, (height + below + 12, height + below + 36))
    if plant in found:  # left open by the figure before
        counted["clicks"] += 1  # in a file of its own it is folded
    else:
        yield from press(region.x + 60, height + below)
        yield REDRAW
        yield from buttons(plant, found, (height + below + 12, height + below + 60))
    yield from press(*found[plant])
    yield 2 * REDRAW
    rows = bpy.data.objects[rig.name].ccd_rig.constraints
    note(f"{name}_selected", selected=selected, kinds={row.tip: row.kind for row in rows})


def bake_planted(name: str, rig: str, feet: list[str]) -> Iterator[float]:
    """Press Bake, and measure how far feet get from where they are at the first frame, before and after."""
    moved = largest_shift(bpy.data.objects[rig], feet)
    yield from button("bpy.ops.ccd_rig.bake(")
    yield from until(lambda: bpy.data.objects[rig].ccd_rig.report.words, PATIENCE)
    done = bpy.data.objects[rig]
    slips = largest_shift(done, feet)
    bpy.context.scene.frame_set(FRAMES // 2)
    yield 3 * REDRAW  # panels slide to their places
    photograph(f"{name}_baked")
    kinds = {row.tip: row.kind for row in done.ccd_rig.constraints}
    note(name, kinds=kinds, moved=moved, slips=slips, words=done.ccd_rig.report.words, **counted)


def largest_shift(rig: bpy.types.Object, bones: list[str]) -> float:
    """How far a bone's head gets from where it is at the first frame, in metres."""
    places = [heads(rig, bones, frame) for frame in range(1, FRAMES + 1)]
    return max((a - b).length for each in places for a, b in zip(each, places[0], strict=True))


def heads(rig: bpy.types.Object, bones: list[str], frame: int) -> list[Vector]:
    """Where bones begin at a frame."""
    bpy.context.scene.frame_set(frame)
    posed = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return [posed.pose.bones[bone].head.copy() for bone in bones]


def shown_drop(rig: bpy.types.Object) -> float:
    """How far the hips go down from the first frame to the middle."""
    heights = []
    for frame in (1, FRAMES // 2):
        bpy.context.scene.frame_set(frame)
        heights.append(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones["spine"].head.z)
    return heights[0] - heights[1]


def run() -> Iterator[float]:
    install()
    yield REDRAW
    yield from find_tab()
    yield from first_bake("tail", tail, "tail.002", "tail.007")
    yield from first_bake("spider", spider, "body", "")
    yield from first_bake("cat", cat, "spine.002", "f_toe.L")
    yield from first_bake("human", human, "", "hand_fk.L")
    yield from plant_after_set_up()
    yield from plant_animated("planted_quadruped", shifting_quadruped, "spine.008", FOUR_FEET)
    yield from plant_animated("planted_spider", lambda: spider(has_feet=True), "body", SPIDER_FEET)


if __name__ == "__main__":
    start(run())
