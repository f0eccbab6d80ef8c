"""The manual in a window: Online Manual of buttons and fields opens their entries.

Runs as drive.py says, and by its helpers. The picture manual_tab.png is docs/images/tab.png.
"""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import bpy
from mathutils import Quaternion, Vector

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import OUT, REDRAW, buttons, install, maximise, note, open_tab, photograph, sh, start, view

BESIDE = 640  # pixels
FROM_FRONT = Quaternion((0.66, 0.72, 0.15, 0.14)).normalized()
WANTED = {  # step -> what Blender calls the button or field
    "command": "bpy.ops.ccd_rig.bake(",
    "field": 'bpy.data.objects["Arm"].ccd_rig.constraints[0].chain_length',
}


def make_arm() -> None:
    """An arm whose hand reaches for a target; the forearm, which is active, is a hinge."""
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    rig = bpy.data.objects.new("Arm", bpy.data.armatures.new("Arm"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    parent = None
    places = ((0, 0, 1.4), (0.28, 0.05, 1.4), (0.52, 0.0, 1.4), (0.64, 0.0, 1.4))
    for name, head, tail in zip(("upper_arm", "forearm", "hand"), places, places[1:], strict=False):
        bone = rig.data.edit_bones.new(name)
        bone.head, bone.tail, bone.parent = head, tail, parent
        bone.use_connect, parent = parent is not None, bone
    bpy.ops.armature.select_all(action="SELECT")
    bpy.ops.armature.calculate_roll(type="GLOBAL_POS_Z")
    bpy.ops.object.mode_set(mode="POSE")
    for bone in rig.pose.bones:
        bone.select = bone.name == "hand"
    rig.data.bones.active = rig.data.bones["hand"]
    bpy.ops.ccd_rig.constraint_add()
    limit = rig.pose.bones["forearm"].ccd_rig.limit
    limit.kind, limit.axis, limit.hinge_lower, limit.hinge_upper = "HINGE", (0, 0, -1), 0.0, 2.6
    bpy.context.scene.frame_end = 24
    target = rig.ccd_rig.constraints[0].target
    start_place = target.location.copy()
    for frame, shift in ((1, (0, 0, 0)), (12, (-0.2, -0.3, 0.15)), (24, (-0.15, -0.2, -0.1))):
        target.location = start_place + Vector(shift)
        target.keyframe_insert("location", frame=frame)
    bpy.ops.ccd_rig.bake()
    bpy.context.scene.frame_set(12)
    for bone in rig.pose.bones:
        bone.select = bone.name == "forearm"
    rig.data.bones.active = rig.data.bones["forearm"]


def look() -> None:
    _, area, _ = view()
    seen = area.spaces.active.region_3d
    seen.view_perspective, seen.view_rotation = "ORTHO", FROM_FRONT
    seen.view_location, seen.view_distance = (0.12, -0.05, 1.4), 1.2


def cut_out(photographed: str, name: str) -> None:
    """The sidebar and what stands beside it in the view, in few colours."""
    window, _, region = view()
    top = window.height - region.y - region.height
    size = f"{region.width + BESIDE}x{region.height + 4}+{region.x - BESIDE}+{top - 4}"
    cut = (OUT / f"{photographed}.png", "-crop", size, "+repage", "+dither", "-colors", 255)
    sh("convert", *cut, OUT / f"{name}.png")


def ask(found: dict[str, tuple[int, int]], name: str) -> Iterator[float]:
    """Online Manual of a button or field of the sidebar, whose menu is photographed too."""
    places = [place for command, place in found.items() if command.startswith(name)]
    if not places:
        raise LookupError(f"no {name} in the sidebar; found: {sorted(found)}")
    sh("xdotool", "mousemove", *places[0])
    yield 0.5
    window, area, region = view()
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.ops.wm.doc_view_manual_ui_context()
    sh("xdotool", "click", 3)
    yield REDRAW
    photograph("menu")
    sh("xdotool", "key", "Escape")
    yield REDRAW


def run() -> Iterator[float]:
    opened: list[str] = []
    webbrowser.open = lambda url, *_arguments, **_options: opened.append(url) or True
    install()
    make_arm()
    yield REDRAW
    yield from maximise()
    look()
    yield from open_tab()
    cut_out("tab", "manual_tab")
    found: dict[str, tuple[int, int]] = {}
    yield from buttons(WANTED["command"], found)
    for step, name in WANTED.items():
        opened.clear()
        yield from ask(found, name)
        note(step, opened=list(opened))


if __name__ == "__main__":
    start(run())
