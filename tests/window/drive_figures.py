"""From an open file to the first bake of a whole figure: each click of the pointer is counted.

Runs as drive.py does, and by its helpers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import bpy
from mathutils import Quaternion, Vector

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import PATIENCE, REDRAW, TAB, buttons, install, note, photograph, sh, start, until, view
from drive_viewport import screen

FRAMES = 12
FROM_FRONT_LEFT = Quaternion((0.82, 0.46, 0.15, 0.30)).normalized()
MOVED = 0.25  # part of the way to its chain's root by which a target is dragged
UPPER = 320  # [pixels] of the sidebar in which buttons of first steps are
TABS_STEP = 14  # [pixels] between two places in which a tab of the sidebar is looked for

counted = {"clicks": 0, "keys": 0}
place_of_tab: list[int] = []


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


def button(command: str) -> Iterator[float]:
    """Look where a button is in the upper part of the sidebar, which a user sees, and click it."""
    found: dict[str, tuple[int, int]] = {}
    window, _, region = view()
    top = window.height - region.y - region.height
    yield from buttons(command, found, (top + 4, top + UPPER))
    places = [place for name, place in found.items() if name.startswith(command)]
    if not places:
        raise LookupError(f"no button for {command} in the sidebar; found: {sorted(found)}")
    yield from press(*places[0])


# --- figures ------------------------------------------------------------------------------------------------


def empty_scene() -> None:
    if bpy.context.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    for collection in list(bpy.data.collections):
        bpy.data.collections.remove(collection)
    for action in list(bpy.data.actions):
        bpy.data.actions.remove(action)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, FRAMES
    scene.frame_set(1)


def armature(name: str, bones: list[tuple[str, Vector, Vector, str]]) -> bpy.types.Object:
    """An armature of bones (name, head, tail, parent)."""
    rig = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for bone, head, tail, parent in bones:
        new = rig.data.edit_bones.new(bone)
        new.head, new.tail = head, tail
        if parent:
            new.parent = rig.data.edit_bones[parent]
            new.use_connect = (new.head - new.parent.tail).length < 1e-6
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def tail() -> bpy.types.Object:
    """Eight bones in an arc, straight back and up."""
    points = [Vector((0.0, math.sin(i * 0.16) * 1.6, 1.0 + 0.12 * i * i / 8)) for i in range(9)]
    names = [f"tail.{i:03d}" for i in range(8)]
    return armature(
        "Tail", [(n, points[i], points[i + 1], names[i - 1] if i else "") for i, n in enumerate(names)]
    )


def spider() -> bpy.types.Object:
    """A body with eight legs of three bones; the body walks and bobs by its own keys."""
    bones = [("body", Vector((0, 0.25, 0.5)), Vector((0, -0.25, 0.5)), "")]
    for leg in range(4):
        y = -0.6 + 0.4 * leg
        for side, x in (("L", 1.0), ("R", -1.0)):
            joints = [(0.12, 0.3 * y, 0.5), (0.5, 0.7 * y, 0.85), (0.9, 1.0 * y, 0.5), (1.1, 1.15 * y, 0.0)]
            points = [Vector((x * a, b, c)) for a, b, c in joints]
            for i in range(3):
                parent = f"leg{leg}_{i - 1}.{side}" if i else "body"
                bones.append((f"leg{leg}_{i}.{side}", points[i], points[i + 1], parent))
    rig = armature("Spider", bones)
    body = rig.pose.bones["body"]
    for frame, place in ((1, (0, 0, 0)), (FRAMES // 2, (0, 0.1, -0.12)), (FRAMES, (0, 0.2, 0.05))):
        body.location = place
        body.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(1)
    return rig


def metarig(module: str) -> bpy.types.Object:
    if "rigify" not in bpy.context.preferences.addons:
        bpy.ops.preferences.addon_enable(module="rigify")
    from rigify import metarigs  # part of Blender, importable once it is enabled

    rig = bpy.data.objects.new(module.rpartition(".")[2], bpy.data.armatures.new("metarig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    __import__(f"{metarigs.__name__}.{module}", fromlist=["create"]).create(rig)
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def human() -> bpy.types.Object:
    """What Rigify generates from its human; as it leaves it, the new rig is the active object."""
    source = metarig("human")
    bpy.ops.pose.rigify_generate()
    made = next(each for each in bpy.data.objects if each.type == "ARMATURE" and each != source)
    bpy.data.objects.remove(source)
    bpy.context.view_layer.objects.active = made
    if bpy.context.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    made.select_set(True)
    return made


def cat() -> bpy.types.Object:
    return metarig("Animals.cat")


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
    photograph(f"{name}_opened")
    if bone:
        posed = bpy.data.objects[rig].pose.bones[bone]
        yield from press(*screen(bpy.data.objects[rig].matrix_world @ ((posed.head + posed.tail) / 2.0)))
    yield from press(*place_of_tab)
    yield from button("bpy.ops.ccd_rig.figure_set_up(")
    yield 2 * REDRAW
    photograph(f"{name}_set_up")
    thing = bpy.data.objects[rig]
    rows = {row.name: row.tip for row in thing.ccd_rig.constraints}
    poles = sum(1 for row in thing.ccd_rig.constraints if row.pole_target)
    if moved:
        yield from drag_target(thing, moved)
        photograph(f"{name}_dragged")
    yield from button("bpy.ops.ccd_rig.bake(")
    yield from until(lambda: bpy.data.objects[rig].ccd_rig.report.words, PATIENCE)
    bpy.context.scene.frame_set(FRAMES)
    yield 3 * REDRAW  # panels slide to their places
    photograph(f"{name}_baked")
    words = bpy.data.objects[rig].ccd_rig.report.words
    note(name, rows=rows, poles=poles, words=words, **counted, **measured(bpy.data.objects[rig]))


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
    """How far bones are from their targets at the frames, and on which side of their limbs poles are."""
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
            if row.pole_target:
                chain = [bone, *bone.parent_recursive][: row.chain_length]
                first = posed.matrix_world @ chain[-1].head
                knee = posed.matrix_world @ chain[-2].head
                pole = row.pole_target.evaluated_get(graph).matrix_world.translation
                line = (end - first).normalized()
                bend = (knee - first) - line * (knee - first).dot(line)
                toward = (pole - first) - line * (pole - first).dot(line)
                if bend.length > 0.01 * (end - first).length:
                    sides[row.name] = min(
                        sides.get(row.name, 1.0), bend.normalized().dot(toward.normalized())
                    )
    return {"worst": worst, "sides": sides, "curves": len(keyed_curves(rig))}


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
    rig = bpy.context.object
    yield from press(*place_of_tab)
    yield from button("bpy.ops.ccd_rig.figure_set_up(")
    bpy.ops.object.mode_set(mode="POSE")
    for bone in rig.pose.bones:
        bone.select = bone.name.startswith("foot.")
    rig.data.bones.active = rig.data.bones["foot.L"]
    bpy.ops.ed.undo_push(message="Feet selected")
    window, area, region = view()
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.ops.ccd_rig.feet_plant("INVOKE_DEFAULT", True)
    yield 2 * REDRAW
    photograph("planted")
    rig = bpy.data.objects[rig.name]
    hips = next(row for row in rig.ccd_rig.constraints if row.kind == "REACH" and row.tip == "spine")
    for frame, drop in ((1, 0.0), (FRAMES // 2, -0.25), (FRAMES, 0.0)):
        hips.target.delta_location = (0.0, 0.0, drop)
        hips.target.keyframe_insert("delta_location", frame=frame)
    before = feet(rig, 1)
    yield from button("bpy.ops.ccd_rig.bake(")
    yield from until(lambda: rig.ccd_rig.report.words, PATIENCE)
    slips = [
        max((a - b).length for a, b in zip(feet(rig, f), before, strict=True)) for f in range(1, FRAMES + 1)
    ]
    for frame in (1, FRAMES // 4, FRAMES // 2):
        bpy.context.scene.frame_set(frame)
        yield REDRAW
        photograph(f"planted_frame_{frame}")
    kinds = {row.tip: row.kind for row in rig.ccd_rig.constraints}
    note("planted", kinds=kinds, slips=max(slips), words=rig.ccd_rig.report.words, drop=shown_drop(rig))


def feet(rig: bpy.types.Object, frame: int) -> list[Vector]:
    bpy.context.scene.frame_set(frame)
    posed = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return [posed.pose.bones[f"foot.{side}"].head.copy() for side in "LR"]


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
    yield from plant_after_set_up()
    yield from first_bake("human", human, "", "hand_fk.L")


if __name__ == "__main__":
    start(run())
