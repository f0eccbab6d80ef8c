"""The sidebar's tab in a window: a constraint, Live, a bake, Esc and undo, its report, targets, and feet.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import bpy
from mathutils import Vector

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import (
    BONES,
    FRAMES,
    LONG_FRAMES,
    PACKAGE,
    PATIENCE,
    REDRAW,
    buttons,
    click,
    install,
    key,
    make_rig,
    note,
    open_tab,
    photograph,
    rig,
    sh,
    start,
    until,
    view,
)

FK_HEADER = 57  # [pixels] from the button Bake to the header FK to IK, without a report
FEET_HEADER = 33  # [pixels] from a Plant's Influence to the header Feet and Contacts


def distance(frame: int) -> float:
    """Metres between the tail of the last bone and the target at a frame, as Blender evaluates them."""
    bpy.context.scene.frame_set(frame)
    return shown_error()


def keyed() -> list[tuple[str, int, list[tuple[float, float]]]]:
    """(data path, component, keys) of every F-curve of the rig's action; empty without one."""
    data = rig().animation_data
    if data is None or data.action is None:
        return []
    curves = [
        c for layer in data.action.layers for s in layer.strips for b in s.channelbags for c in b.fcurves
    ]
    return [(c.data_path, c.array_index, [tuple(k.co) for k in c.keyframe_points]) for c in curves]


def run() -> Iterator[float]:
    install()
    make_rig()
    yield REDRAW
    yield from open_tab()

    found: dict[str, tuple[int, int]] = {}
    yield from buttons("bpy.ops.ccd_rig.constraint_add(", found)
    note("buttons_before", found=sorted(found))
    yield from click(found, "bpy.ops.ccd_rig.constraint_add(")
    yield from until(lambda: len(rig().ccd_rig.constraints), PATIENCE)
    yield REDRAW
    photograph("added")
    rows = rig().ccd_rig.constraints
    note("add", count=len(rows), tip=rows[0].tip, target=rows[0].target.name if rows[0].target else None)

    yield from buttons(("bpy.ops.ccd_rig.bake(", "bpy.ops.ccd_rig.constraint_add("), found)
    note("buttons_after", found=sorted(found))
    yield from drag_live(found)
    before = [distance(frame) for frame in range(1, FRAMES + 1)]
    bpy.context.scene.frame_set(1)
    yield from click(found, "bpy.ops.ccd_rig.bake(")
    yield from until(keyed, PATIENCE)
    yield REDRAW
    photograph("baked")
    after = [distance(frame) for frame in range(1, FRAMES + 1)]
    note("bake", before=before, after=after, curves=[[path, i, len(keys)] for path, i, keys in keyed()])

    bpy.context.scene.frame_set(FRAMES // 2)
    yield REDRAW
    photograph("posed")

    # Esc in the middle of a long bake leaves every key as it was.
    before_keys = keyed()
    bpy.context.scene.frame_end = LONG_FRAMES
    yield REDRAW
    yield from click(found, "bpy.ops.ccd_rig.bake(")
    yield from until(lambda: bpy.context.window.modal_operators, PATIENCE)
    yield 10.0  # until the line about the bake before has faded, so that the progress shows
    photograph("baking")
    running = [operator.bl_idname for operator in bpy.context.window.modal_operators]
    yield from key("Escape")
    yield from until(lambda: not bpy.context.window.modal_operators, PATIENCE)
    left = [operator.bl_idname for operator in bpy.context.window.modal_operators]
    yield 2 * REDRAW
    photograph("cancelled")
    scenes = [scene.name for scene in bpy.data.scenes]  # the bake works in a scene of its own
    note("escape", running=running, left=left, keys_unchanged=keyed() == before_keys, scenes=scenes)
    bpy.context.scene.frame_end = FRAMES

    yield from key("ctrl+z")
    yield from until(lambda: not keyed(), PATIENCE)
    yield 2 * REDRAW
    photograph("undone")
    note("undo", curves=len(keyed()))
    yield from fix_from_report(found)
    yield from targets_from_fk(found)
    yield from plant_feet(found)


def below(found: dict[str, tuple[int, int]], command: str, pixels: int) -> Iterator[float]:
    """Click so many pixels below a button, on the left: Blender tells nothing about headers of panels."""
    _, _, region = view()
    places = [place for name, place in found.items() if name.startswith(command)]
    if not places:
        raise LookupError(f"no button for {command} in the sidebar; found: {sorted(found)}")
    found["header"] = region.x + 60, places[0][1] + pixels
    yield from click(found, "header")


def fix_from_report(found: dict[str, tuple[int, int]]) -> Iterator[float]:
    """A report with one finding more than it shows: unfold it, and press the button of the last one."""
    sort = importlib.import_module(f"{PACKAGE}.ccd_rig.blender.bake.report")
    row = rig().ccd_rig.constraints[0]
    jump = sort.Finding(sort.Trouble.JUMP, row.name, row.tip, 9, 9, 9, angle=0.6, fix=sort.Fix.EXTENSION)
    miss = sort.Finding(sort.Trouble.SHORT, row.name, row.tip, 12, 14, 13, distance=0.1)
    report = rig().ccd_rig.report
    report.words = "21 of 24 frames reached; worst 0.1000 m at frame 13 (Bone7)"
    report.unsolved, report.findings = 3, sort.to_json([miss] * 7 + [jump])
    view()[1].tag_redraw()
    yield 2 * REDRAW  # panels slide to their places
    photograph("report")
    y, (_, _, region) = found["bpy.ops.ccd_rig.bake()"][1], view()
    yield from buttons("bpy.ops.ccd_rig.report_markers(", found, (y + 130, y + 190))
    seen = [name for name in found if "go_to_frame" in name or "report_fix" in name]
    marks = next(place for name, place in found.items() if "report_markers" in name)
    found["more"] = region.x + region.width - 60, marks[1]
    yield from click(found, "more")
    yield from buttons("bpy.ops.ccd_rig.report_fix(", found, (y + 180, y + 230))
    photograph("report_unfolded")
    frame = bpy.context.scene.frame_current
    yield from click(found, "bpy.ops.ccd_rig.report_fix(")
    extension = rig().ccd_rig.constraints[0].max_extension
    yield from click(found, "bpy.ops.ccd_rig.go_to_frame(")
    went = bpy.context.scene.frame_current
    unfolded = rig().ccd_rig.report.show_all
    note("fix", folded=seen, unfolded=unfolded, max_extension=extension, frame=frame, went=went)
    rig().ccd_rig.report.words = ""
    rig().ccd_rig.constraints[0].max_extension = 1.0
    view()[1].tag_redraw()
    yield 2 * REDRAW


def targets_from_fk(found: dict[str, tuple[int, int]]) -> Iterator[float]:
    """Pose a bone, match the target to it, and key targets over the range by the dialog's Enter."""
    rig().pose.bones["Bone3"].rotation_quaternion = (0.9, 0.3, 0.3, 0.1)
    rig().pose.bones["Bone3"].keyframe_insert("rotation_quaternion", frame=1)
    bpy.context.scene.frame_set(1)
    bpy.ops.ed.undo_push(message="Posed")
    yield from below(found, "bpy.ops.ccd_rig.bake(", FK_HEADER)
    y = found["bpy.ops.ccd_rig.bake()"][1] + FK_HEADER
    photograph("fk_ik")
    before = distance(1)
    yield from buttons("bpy.ops.ccd_rig.targets_from_motion(", found, (y + 16, y + 60))
    yield from click(found, "bpy.ops.ccd_rig.targets_match(")
    matched = shown_error()
    yield from click(found, "bpy.ops.ccd_rig.targets_from_motion(")
    yield REDRAW
    photograph("targets_dialog")
    sh("xdotool", "key", "Return")
    yield 2 * REDRAW
    photograph("targets_keyed")
    errors = [distance(frame) for frame in range(1, FRAMES + 1)]
    note("targets", before=before, matched=matched, keyed=max(errors))


def plant_feet(found: dict[str, tuple[int, int]]) -> Iterator[float]:
    """Two feet that step by turns are planted by one button, and looked at once more by the other."""
    make_feet()
    yield REDRAW
    row = bpy.data.objects["Feet"].ccd_rig.constraints.add()
    row.name, row.tip, row.kind = "foot.L", "foot.L", "PLANT"
    view()[1].tag_redraw()
    yield 2 * REDRAW
    photograph("feet")
    influence = 'bpy.data.objects["Feet"].ccd_rig.constraints[0].influence'
    y = found["bpy.ops.ccd_rig.bake()"][1]
    yield from buttons(influence, found, (y + 450, y + 560))
    yield from below(found, influence, FEET_HEADER)
    photograph("feet_panel")
    y = found[influence][1] + FEET_HEADER
    yield from buttons("bpy.ops.ccd_rig.feet_plant(", found, (y + 16, y + 60))
    yield from click(found, "bpy.ops.ccd_rig.feet_plant(")
    yield REDRAW
    photograph("feet_planted")
    feet = bpy.data.objects["Feet"]
    kinds = {row.tip: row.kind for row in feet.ccd_rig.constraints}
    marks = sorted((marker.frame, marker.name) for marker in bpy.context.scene.timeline_markers)
    bpy.context.scene.timeline_markers.clear()
    y = found["bpy.ops.ccd_rig.bake()"][1]
    yield from buttons("bpy.ops.ccd_rig.contacts_find(", found, (y + 570, y + 640))
    yield from click(found, "bpy.ops.ccd_rig.contacts_find(")
    yield REDRAW
    again = sorted((marker.frame, marker.name) for marker in bpy.context.scene.timeline_markers)
    note("feet", kinds=kinds, marks=marks, again=again)


def make_feet() -> None:
    """Hips, and two feet that move by their own keys: L steps on from frame 8 to 14, R from 18 to 22."""
    bpy.ops.object.mode_set(mode="OBJECT")
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    bpy.context.scene.timeline_markers.clear()
    feet = bpy.data.objects.new("Feet", bpy.data.armatures.new("Feet"))
    bpy.context.scene.collection.objects.link(feet)
    bpy.context.view_layer.objects.active = feet
    bpy.ops.object.mode_set(mode="EDIT")
    hips = feet.data.edit_bones.new("hips")
    hips.head, hips.tail = (0, 0, 1), (0, 0, 1.3)
    for side, x in (("L", 0.2), ("R", -0.2)):
        bone = feet.data.edit_bones.new(f"foot.{side}")
        bone.head, bone.tail, bone.parent = (x, 0, 0), (x, -0.2, 0), hips
    bpy.ops.object.mode_set(mode="POSE")
    for side, first, last in (("L", 8, 14), ("R", 18, 22)):
        bone = feet.pose.bones[f"foot.{side}"]
        middle = (first + last) // 2
        for frame, place in ((first, (0, 0, 0)), (middle, (0, 0.3, 0.3)), (last, (0, 0.6, 0))):
            bone.location = place
            bone.keyframe_insert("location", frame=frame)
        bone.select = True
    feet.pose.bones["hips"].select = False
    feet.data.bones.active = feet.data.bones["foot.L"]
    bpy.context.scene.frame_set(1)
    bpy.ops.ed.undo_push(message="Feet")


def drag_live(found: dict[str, tuple[int, int]]) -> Iterator[float]:
    """Switch Live on, drag the target with G and the pointer, undo the drag, and switch Live off again."""
    # Blender tells nothing about buttons in a panel's header. This one stands above the list's plus.
    _, _, region = view()
    _, y = found["bpy.ops.ccd_rig.constraint_add()"]
    found["live"] = region.x + region.width - 90, y - 30
    yield from click(found, "live")
    note("live_on", on=rig().ccd_rig.live, off=shown_error())
    bpy.ops.object.mode_set(mode="OBJECT")
    target = bpy.data.objects["Target"]
    held = [tuple(bone.rotation_quaternion) for bone in rig().pose.bones]
    for thing in bpy.data.objects:
        thing.select_set(thing == target)
    bpy.context.view_layer.objects.active = target
    yield REDRAW
    place = tuple(target.location)
    yield from key("g")
    dragged = []
    for _ in range(6):
        sh("xdotool", "mousemove_relative", "--", -8, 4)
        yield 0.2
        dragged.append(shown_error())
    photograph("live_drag")
    moved = (bpy.data.objects["Target"].matrix_world.translation - Vector(place)).length
    sh("xdotool", "click", 1)
    yield 3 * REDRAW
    photograph("live_rest")
    kept = [tuple(bone.rotation_quaternion) for bone in rig().pose.bones] == held
    note(
        "live_drag", moved=moved, dragged=dragged, rest=shown_error(), channels_kept=kept, curves=len(keyed())
    )
    yield from key("ctrl+z")
    yield 2 * REDRAW
    back = (bpy.data.objects["Target"].location - Vector(place)).length
    note("live_undo", back=back, on=rig().ccd_rig.live, off=shown_error())
    yield from click(found, "live")
    bones = [bone for bone in rig().pose.bones if len(bone.constraints)]
    note("live_off", on=rig().ccd_rig.live, clamped=len(bones), off=shown_error())
    bpy.context.view_layer.objects.active = rig()
    rig().select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    yield REDRAW


def shown_error() -> float:
    """Metres between the tail of the last bone and the target, as the window shows them."""
    graph = bpy.context.evaluated_depsgraph_get()
    armature = rig().evaluated_get(graph)
    tail = armature.matrix_world @ armature.pose.bones[f"Bone{BONES - 1}"].tail
    return (tail - bpy.data.objects["Target"].evaluated_get(graph).matrix_world.translation).length


if __name__ == "__main__":
    start(run())
