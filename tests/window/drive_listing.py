"""The pictures of a listing: whole windows with figures that Set Up Figure has brought under control.

Runs as drive.py says, by `python3 dev.py docs --listing`; no test judges it, a person does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from pathlib import Path

import bpy
from mathutils import Matrix, Quaternion, Vector

sys.path.insert(0, str(Path(__file__).resolve().parent))

import common
import figure
import motion_capture
import picture
import quadruped
import spider
import walk_along
from drive import REDRAW, TAB, buttons, install, maximise, note, photograph, sh, start, view
from drive_figures import press
from drive_rigs import empty_scene, metarig
from drive_viewport import screen

FRONT_LEFT = Quaternion((0.80, 0.50, 0.17, 0.28)).normalized()
FROM_LEFT = Quaternion((0.62, 0.57, 0.36, 0.40)).normalized()
LAST = 24
REACHES = {  # how far targets of hands are from rest by frame, metres; some of it is out of reach
    "hand.L": {1: (0, 0, 0), 20: (-0.1, -0.2, 0.3), 36: (0.15, -0.1, 0.35), 60: (0, 0, 0)},
    "hand.R": {
        1: (0.2, -0.2, -0.1),
        24: (0.1, -0.05, 0.1),
        36: (-0.2, 0, 0),
        48: (0.1, -0.05, 0.1),
        60: (0.2, -0.2, -0.1),
    },
}
STEPS, SETTLED = 12, 0.25  # frames of a film from corner to corner of a way; [s] until one is drawn
RETARGET, WALK = 336, 364  # [pixels] from the top of the button Set Up Figure to headers of panels
PLAYED = range(40, 113)  # frames of the walk that the film shows
BARE = ("breast", "pelvis", "heel.02")  # bones outside the body; with those of the face and of fingers
PATIENT, FOLDED = 5, 100  # clicks on the header of the redo panel, and pixels up to which it is folded


def open_scene(rotation: Quaternion = FRONT_LEFT) -> None:
    """An empty file, whose view shows colours of materials, and shadows."""
    empty_scene()
    _, area, _ = view()
    space = area.spaces.active
    space.shading.color_type, space.shading.show_cavity = "MATERIAL", True
    space.shading.show_shadows, space.shading.shadow_intensity = True, 0.35
    space.overlay.show_axis_x = space.overlay.show_axis_y = False
    space.region_3d.view_perspective, space.region_3d.view_rotation = "ORTHO", rotation
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, LAST


def look(place: tuple[float, float, float], size: float) -> None:
    _, area, _ = view()
    seen = area.spaces.active.region_3d
    seen.view_location, seen.view_distance = place, size
    area.tag_redraw()


def show_tab(shown: bool) -> Iterator[float]:
    _, area, region = view()
    area.spaces.active.show_region_ui = shown
    yield REDRAW
    if shown:
        region.active_panel_category = TAB
    area.tag_redraw()
    yield REDRAW


def activate(rig: bpy.types.Object, mode: str) -> None:
    if bpy.context.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    bpy.ops.object.select_all(action="DESELECT")
    rig.select_set(True)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode=mode)


def human() -> bpy.types.Object:
    """Rigify's human, as a wooden doll."""
    rig = common.metarig("human")
    figure.doll(rig)
    tidy(rig)
    return rig


def tidy(rig: bpy.types.Object) -> None:
    """Hide bones that a wooden body has no part for."""
    for collection in rig.data.collections_all:
        if collection.name.startswith(("Face", "Fingers")):
            collection.is_visible = False
    for bone in rig.pose.bones:
        if bone.name.startswith(BARE):
            bone.bone.hide = True
            if hasattr(bone, "hide"):
                bone.hide = True


def set_up(rig: bpy.types.Object, **choices: object) -> None:
    """Give a figure its constraints."""
    activate(rig, "POSE")
    common.press(bpy.ops.ccd_rig.figure_set_up, **choices)
    rig.data.display_type = "STICK"
    bpy.context.view_layer.update()


def unfold(below: int) -> Iterator[float]:
    """Click the header of a panel that is so many pixels below the button Set Up Figure."""
    window, _, region = view()
    top = window.height - region.y - region.height
    places: dict[str, tuple[int, int]] = {}
    yield from buttons("bpy.ops.ccd_rig.figure_set_up(", places, (top + 130, top + 190))
    button = next(place for name, place in places.items() if "figure_set_up" in name)
    yield from press(region.x + 60, button[1] + below)
    sh("xdotool", "mousemove", 60, window.height - 60)
    yield 2 * REDRAW


def shift(rig: bpy.types.Object, tip: str, way: tuple[float, float, float]) -> None:
    """Move the control bone that a bone reaches for, in armature space."""
    row = next(row for row in rig.ccd_rig.constraints if row.tip == tip)
    bone = rig.pose.bones[row.target_bone]
    bone.matrix = Matrix.Translation(way) @ bone.matrix
    bpy.context.view_layer.update()


def pose_human(rig: bpy.types.Object) -> None:
    """A lunge with one hand up and one to the front, by its targets alone."""
    shift(rig, "spine", (0.0, -0.05, -0.22))
    shift(rig, "foot.L", (0.05, -0.42, 0.0))
    shift(rig, "foot.R", (-0.02, 0.38, 0.03))
    shift(rig, "hand.L", (-0.15, -0.1, 0.55))
    shift(rig, "hand.R", (0.1, -0.2, 0.1))


def featured() -> Iterator[float]:
    """A human in a lunge, live, with its handles."""
    open_scene()
    rig = human()
    set_up(rig, control_bones=True, turn_hands=True)
    bpy.ops.ccd_rig.live()
    pose_human(rig)
    look((0.0, 0.0, 0.85), 2.6)
    rig.ccd_rig.active_index = next(i for i, row in enumerate(rig.ccd_rig.constraints) if row.tip == "hand.L")
    yield from show_tab(True)
    photograph("featured")
    bpy.ops.ccd_rig.live()


def handles() -> Iterator[float]:
    """A paw that the real pointer drags by its handle while the figure is live."""
    open_scene()
    rig = quadruped.build()
    quadruped.dress(rig)
    set_up(rig, control_bones=True)
    bpy.ops.ccd_rig.live()
    shift(rig, "spine.004", (0.0, 0.02, -0.05))
    look((0.1, 0.3, 0.4), 2.1)
    yield from show_tab(True)
    index, row = next((i, row) for i, row in enumerate(rig.ccd_rig.constraints) if row.tip == "front_toe.L")
    rig.data.bones.active, rig.ccd_rig.active_index = rig.data.bones[row.tip], index
    yield REDRAW
    place = rig.matrix_world @ rig.pose.bones[row.target_bone].head
    sh("xdotool", "mousemove", *screen(place))
    yield REDRAW
    sh("xdotool", "mousedown", 1)
    yield 0.3
    for part in (0.3, 0.6, 1.0):
        sh("xdotool", "mousemove", *screen(place + part * Vector((0.0, -0.2, 0.32))))
        yield REDRAW
    photograph("handles")
    sh("xdotool", "mouseup", 1)
    yield REDRAW
    bpy.ops.ccd_rig.live()


def roles() -> Iterator[float]:
    """A cat as Set Up Figure has recognised it: roles by colour, and its redo panel with them in a list."""
    open_scene()
    rig = metarig("Animals.cat")
    activate(rig, "POSE")
    rig.data.display_type = "STICK"
    look((0.1, 0.05, 0.24), 0.95)
    yield from show_tab(True)
    window, area, _ = view()
    region = next(region for region in area.regions if region.type == "WINDOW")
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.ops.ccd_rig.figure_set_up("INVOKE_DEFAULT", True)  # as a user's command, with a redo panel
    yield REDRAW
    for _ in range(PATIENT):
        window, area, _ = view()
        panel = next(region for region in area.regions if region.type == "HUD")
        if panel.height > FOLDED:
            break
        sh("xdotool", "mousemove", panel.x + 30, window.height - panel.y - panel.height + 14)
        yield REDRAW
        sh("xdotool", "click", 1)
        yield 3 * REDRAW
    photograph("roles")
    sh("xdotool", "click", 1)
    yield REDRAW


def limits() -> Iterator[float]:
    """The preset for humans at an arm, drawn with its handles."""
    open_scene()
    rig = human()
    set_up(rig, ranges="LIMITS")
    rig.data.bones.active = rig.data.bones["forearm.L"]
    rig.ccd_rig.active_index = next(i for i, row in enumerate(rig.ccd_rig.constraints) if row.tip == "hand.L")
    preferences = next(
        each.preferences for name, each in bpy.context.preferences.addons.items() if name.endswith("ccd_rig")
    )
    preferences.show_chain_limits = True
    look((0.3, 0.0, 1.3), 1.7)
    yield from show_tab(True)
    rig.data.bones.active = rig.data.bones["forearm.L"]
    yield REDRAW
    photograph("limits")
    preferences.show_chain_limits = False


def report() -> Iterator[float]:
    """A bake whose report names frames: of one hand those out of reach, of the other its snaps too."""
    open_scene()
    rig = human()
    set_up(rig, control_bones=True)
    rig.ccd_rig.body_helps = False
    rows = {row.tip: row for row in rig.ccd_rig.constraints}
    rows["hand.R"].soft, rows["hand.R"].use_tail = 0.0, True
    for tip, ways in REACHES.items():
        for frame, way in ways.items():
            bone = rig.pose.bones[rows[tip].target_bone]
            bone.matrix = Matrix.Translation(way) @ bone.bone.matrix_local
            bone.keyframe_insert("location", frame=frame)
            bpy.context.view_layer.update()
    bpy.context.scene.frame_end = max(REACHES["hand.L"])
    bpy.ops.ccd_rig.bake("EXEC_DEFAULT", smoothness=0.0)
    rig.ccd_rig.active_index = rig.ccd_rig.constraints.find("hand.R")
    rig.ccd_rig.report.show_all = True
    bpy.context.scene.frame_set(36)
    look((0.0, 0.0, 0.95), 3.0)
    yield from show_tab(True)
    yield 2 * REDRAW
    photograph("report")


def many_legs() -> Iterator[float]:
    """A spider on eight targets, live."""
    open_scene()
    rig = spider.build()
    spider.dress(rig)
    set_up(rig, control_bones=True)
    bpy.ops.ccd_rig.live()
    tips = [row.tip for row in rig.ccd_rig.constraints]
    note("spider", rows=tips)
    shift(rig, "body", (0.06, -0.1, -0.1))
    for k, tip in enumerate(each for each in tips if each != "body"):
        if k % 3 == 0:
            shift(rig, tip, (0.0, -0.15, 0.2))
    look((0.0, 0.0, 0.2), 2.0)
    yield from show_tab(True)
    photograph("many_legs")
    bpy.ops.ccd_rig.live()


def walked() -> bpy.types.Object:
    """The human of the tutorial, who walks along a curve over hills; its doll."""
    open_scene(FROM_LEFT)
    rig = walk_along.build()
    walk_along.steps(rig)
    rig.data.display_type = "STICK"
    tidy(rig)
    return figure.doll(rig)


def walk() -> Iterator[float]:
    """A walk over hills at some frames, with the panel Walk Along."""
    doll = walked()
    scene = bpy.context.scene
    first, last = (int(frame) for frame in bpy.context.object.animation_data.action.frame_range)
    for frame in range(first, last, (last - first) // 9):
        scene.frame_set(frame)
        picture.frozen_copy(scene, doll)
    scene.frame_set(last)
    look((0.2, -0.44 * walk_along.LENGTH, 0.5), 7.6)
    yield from show_tab(True)
    yield from unfold(WALK)
    photograph("walk_along")


def retarget() -> Iterator[float]:
    """A captured walk and the character that walks as it does, with the panel Retarget."""
    open_scene()
    rig = motion_capture.build()
    motion_capture.carry_over(rig)
    motion_capture.dress(rig)
    rig.data.display_type = motion_capture.capture().data.display_type = "STICK"
    bpy.context.scene.frame_set(20)
    tidy(rig)
    hips = [(rig, "spine"), (motion_capture.capture(), "Hips")]
    heads = [each.matrix_world @ each.pose.bones[bone].head for each, bone in hips]
    look(0.5 * (heads[0] + heads[1]) + Vector((0.1, 0.0, 0.1)), 3.4)
    yield from show_tab(True)
    yield from unfold(RETARGET)
    photograph("retarget")


def film() -> Iterator[float]:
    """The real pointer pulls a forearm by the tool Drag Bones; then, while Live is on, hand, foot and hips by
    their handles. At last the figure walks over hills. A picture for each frame, of the view alone."""
    open_scene()
    rig = human()
    set_up(rig, control_bones=True, turn_hands=True)
    rows = {row.tip: rig.pose.bones[row.target_bone] for row in rig.ccd_rig.constraints}
    yield from show_tab(False)
    look((0.0, 0.0, 0.9), 3.0)
    shots = count()
    take_tool("ccd_rig.drag_tool")
    yield REDRAW
    forearm = rig.matrix_world @ rig.pose.bones["forearm.R"].center
    yield from pulled(forearm, ((0.1, -0.2, 0.25), (0.2, 0.1, 0.1), (0.05, -0.2, -0.1)), shots)
    take_tool("builtin.select_box")
    bpy.ops.ccd_rig.live()
    for tip, ways in (
        ("hand.L", ((-0.1, -0.3, 0.45), (-0.25, -0.35, 0.75), (-0.05, -0.15, 0.3))),
        ("foot.R", ((0.0, -0.3, 0.25), (-0.05, 0.25, 0.15), (0.0, 0.0, 0.0))),
        ("spine", ((0.0, 0.0, -0.25), (0.12, 0.0, -0.15), (0.0, 0.0, 0.0))),
    ):
        yield from pulled(rig.matrix_world @ rows[tip].head, ways, shots)
    bpy.ops.ccd_rig.live()
    walked()
    for frame in PLAYED:
        bpy.context.scene.frame_set(frame)
        hips = bpy.context.object.pose.bones["spine"].head
        look((0.0, hips.y, 1.1), 4.2)
        yield SETTLED
        photograph(f"film_{next(shots):03d}")
    note("film", frames=next(shots))


def take_tool(name: str) -> None:
    window, area, _ = view()
    region = next(region for region in area.regions if region.type == "WINDOW")
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.ops.wm.tool_set_by_id(name=name)


def pulled(
    place: Vector, ways: Sequence[tuple[float, float, float]], shots: Iterator[int]
) -> Iterator[float]:
    """What lies at a place is dragged along a way with these corners; `shots` numbers frames."""
    corners = [Vector(), *map(Vector, ways)]
    sh("xdotool", "mousemove", *screen(place))
    yield REDRAW
    sh("xdotool", "mousedown", 1)
    yield 0.3
    for before, after in pairwise(corners):
        for step in range(1, STEPS + 1):
            part = step / STEPS
            along = before.lerp(after, part * part * (3.0 - 2.0 * part))
            sh("xdotool", "mousemove", *screen(place + along))
            yield SETTLED
            photograph(f"film_{next(shots):03d}")
    sh("xdotool", "mouseup", 1)
    yield REDRAW


def run() -> Iterator[float]:
    install()
    yield REDRAW
    yield from maximise()
    scenes = (featured, handles, limits, report, many_legs, walk, retarget, film, roles)
    for scene in scenes:  # the panel of the last stays open
        yield from scene()


if __name__ == "__main__":
    start(run())
