"""The motion of a capture on another figure, by the panel Retarget: source, map, reference, preview, keys.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import bpy
from mathutils import Matrix, Quaternion, Vector

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import PATIENCE, REDRAW, buttons, install, key, note, open_tab, photograph, sh, start, until, view
from drive_figures import press
from drive_rigs import armature, empty_scene, metarig

LAST, PERIOD, STANCE = 33, 16, 0.6  # frames of the clip and of a cycle, part of it in which a foot is down
SPEED = 0.045  # metres per frame
THIGH, SHIN, HIGH = 0.5, 0.48, 1.0  # metres: of the legs, and how high their roots are
SHOWN = 13  # the frame of the photographs
OBLIQUE = Quaternion((0.72, 0.56, 0.24, 0.33)).normalized()

LIMBS = {"thigh.L": "LeftUpLeg", "shin.R": "RightLeg", "upper_arm.L": "LeftArm", "forearm.R": "RightForeArm"}
HEADER = 60  # [pixels] from the button Set Up Figure to the header Retarget
MAP, EFFECTORS, OPTIONS = 33, 59, 85  # [pixels] from the button Retarget to headers below it
FROM_RIGHT_EDGE = 40  # [pixels] where buttons at the end of a line are
GROUP = 'bpy.data.objects["Hero"].ccd_rig.retarget.'
RETARGET = "bpy.ops.ccd_rig.retarget("

places: dict[str, tuple[int, int]] = {}


# --- the capture --------------------------------------------------------------------------------------------


def capture() -> bpy.types.Object:
    """A figure with Mixamo's names, without shoulders, that walks along -Y; at rest its limbs point up."""
    bones = [
        ("Hips", (0, 0, HIGH), (0, 0, 1.15), ""),
        ("Spine", (0, 0, 1.15), (0, 0, 1.35), "Hips"),
        ("Spine1", (0, 0, 1.35), (0, 0, 1.58), "Spine"),
        ("Neck", (0, 0, 1.58), (0, 0, 1.68), "Spine1"),
        ("Head", (0, 0, 1.68), (0, 0, 1.9), "Neck"),
    ]
    for side, x in (("Left", 0.1), ("Right", -0.1)):
        bones += [
            (f"{side}UpLeg", (x, 0, HIGH), (x, 0, HIGH + THIGH), "Hips"),
            (f"{side}Leg", (x, 0, HIGH + THIGH), (x, 0, HIGH + THIGH + SHIN), f"{side}UpLeg"),
            (f"{side}Foot", (x, 0, 1.98), (x, 0, 2.13), f"{side}Leg"),
            (f"{side}ToeBase", (x, 0, 2.13), (x, 0, 2.21), f"{side}Foot"),
            (f"{side}Arm", (1.8 * x, 0, 1.54), (1.8 * x, 0, 1.84), "Spine1"),
            (f"{side}ForeArm", (1.8 * x, 0, 1.84), (1.8 * x, 0, 2.1), f"{side}Arm"),
            (f"{side}Hand", (1.8 * x, 0, 2.1), (1.8 * x, 0, 2.26), f"{side}ForeArm"),
        ]
    made = [(name, Vector(head), Vector(tail), parent) for name, head, tail, parent in bones]
    rig = armature("Capture", made)
    for frame in range(1, LAST + 1):
        key_frame(rig, frame)
    return rig


def key_frame(rig: bpy.types.Object, frame: int) -> None:
    """Key each bone so that it lies along its direction at a frame, and where the hips are."""
    hips = rig.pose.bones["Hips"]
    way = Vector((0.0, -SPEED * (frame - 1), hips_height(frame) - HIGH))
    hips.location = hips.bone.matrix_local.to_3x3().inverted() @ way
    hips.keyframe_insert("location", frame=frame)
    along = directions(frame)
    posed: dict[str, Matrix] = {}
    for bone in rig.data.bones:  # parents come first
        rest = bone.matrix_local.to_3x3()
        posed[bone.name] = upright(along[bone.name]) if bone.name in along else rest
        above, rest_above = Matrix.Identity(3), Matrix.Identity(3)
        if bone.parent is not None:
            above, rest_above = posed[bone.parent.name], bone.parent.matrix_local.to_3x3()
        turned = rest.inverted() @ rest_above @ above.inverted() @ posed[bone.name]
        rig.pose.bones[bone.name].rotation_quaternion = turned.to_quaternion()
        rig.pose.bones[bone.name].keyframe_insert("rotation_quaternion", frame=frame)


def upright(along: Vector) -> Matrix:
    """The axes of a bone along a direction in the plane of the walk."""
    across = Vector((1.0, 0.0, 0.0))
    return Matrix((across, along, across.cross(along))).transposed()


def hips_height(frame: int) -> float:
    return HIGH - 0.06 + 0.015 * math.cos(4.0 * math.pi * (frame - 1) / PERIOD)


def directions(frame: int) -> dict[str, Vector]:
    """The direction in armature space of each bone."""
    found = {name: Vector((0, 0, 1)) for name in ("Hips", "Spine", "Spine1", "Neck", "Head")}
    for side, shift in (("Left", 0.0), ("Right", 0.5)):
        phase = ((frame - 1) / PERIOD + shift) % 1.0
        found |= leg(side, *ankle(phase), hips_height(frame))
        swing = -0.5 * math.cos(2.0 * math.pi * phase)
        for name, bend in (("Arm", 0.0), ("ForeArm", 0.4), ("Hand", 0.4)):
            found[f"{side}{name}"] = Vector((0.0, math.sin(swing - bend), -math.cos(swing - bend)))
    return found


def ankle(phase: float) -> tuple[float, float]:
    """How far an ankle is behind the hips, and its height, in metres."""
    front = -0.5 * SPEED * STANCE * PERIOD
    if phase <= STANCE:
        return front + SPEED * PERIOD * phase, 0.08
    part = (phase - STANCE) / (1.0 - STANCE)
    return front * -math.cos(math.pi * part), 0.08 + 0.12 * math.sin(math.pi * part) ** 2


def leg(side: str, behind: float, height: float, hips: float) -> dict[str, Vector]:
    """Thigh and shin by the law of cosines, the knee in front; a foot that stays level."""
    down = hips - height
    reach = math.hypot(behind, down)
    lean = math.atan2(behind, down)
    bend = math.acos((THIGH**2 + reach**2 - SHIN**2) / (2.0 * THIGH * reach))
    thigh = lean - bend
    knee = Vector((0.0, THIGH * math.sin(thigh), hips - THIGH * math.cos(thigh)))
    return {
        f"{side}UpLeg": Vector((0.0, math.sin(thigh), -math.cos(thigh))),
        f"{side}Leg": (Vector((0.0, behind, height)) - knee).normalized(),
        f"{side}Foot": Vector((0.0, -0.13, -0.06)).normalized(),
        f"{side}ToeBase": Vector((0.0, -1.0, 0.0)),
    }


# --- the panel ----------------------------------------------------------------------------------------------


def hero() -> bpy.types.Object:
    return bpy.data.objects["Hero"]


def chosen():
    return hero().ccd_rig.retarget


def lying(rig: bpy.types.Object, bone: str) -> list[float]:
    """The direction of a bone in the world, as the window shows it."""
    posed = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return list((posed.matrix_world.to_3x3() @ posed.pose.bones[bone].matrix.to_3x3()).col[1].normalized())


def limbs() -> dict[str, list[list[float]]]:
    """The directions of limbs: (of the capture, of the figure)."""
    source = bpy.data.objects["Capture"]
    return {ours: [lying(source, theirs), lying(hero(), ours)] for ours, theirs in LIMBS.items()}


def prepare() -> None:
    """A capture, and Rigify's basic human beside it, which is active."""
    empty_scene()
    bpy.context.scene.frame_end = LAST
    source = capture()
    source.location.x = -0.7
    rig = metarig("Basic.basic_human")
    rig.name, rig.location.x = "Hero", 0.5
    source.select_set(False)
    bpy.context.view_layer.objects.active = rig
    rig.select_set(True)
    _, area, _ = view()
    seen = area.spaces.active.region_3d
    seen.view_perspective, seen.view_rotation = "ORTHO", OBLIQUE
    seen.view_location, seen.view_distance = (0.5, -0.4, 0.9), 4.5
    bpy.context.scene.frame_set(SHOWN)
    bpy.ops.ed.undo_push(message="Prepared")


def find(wanted: str, low: int, high: int) -> Iterator[float]:
    """Look for a button or field between two heights of the screen; `places` gets all that is met."""
    yield from buttons(wanted, places, (low, high))
    if not any(name.startswith(wanted) for name in places):
        raise LookupError(f"no {wanted} in the sidebar; found: {sorted(places)}")


def at(name: str) -> int:
    """How high a button or field is."""
    return next(place[1] for each, place in places.items() if each.startswith(name))


def left(y: int) -> Iterator[float]:
    """Click the left end of the sidebar's panels, where headers are."""
    _, _, region = view()
    yield from press(region.x + 60, y)


def right(y: int) -> Iterator[float]:
    """Click the last button of a line."""
    _, _, region = view()
    yield from press(region.x + region.width - FROM_RIGHT_EDGE, y)


def keys(*names: str) -> Iterator[float]:
    for name in names:
        sh("xdotool", "key", name)
        yield 0.3
    yield REDRAW


def choose_source() -> Iterator[float]:
    """Unfold the panel, choose the source, and press the button, which refuses the capture's rest pose."""
    window, _, region = view()
    top = window.height - region.y - region.height
    yield from find("bpy.ops.ccd_rig.figure_set_up(", top + 130, top + 190)
    yield from left(at("bpy.ops.ccd_rig.figure_set_up(") + HEADER)
    header = at("bpy.ops.ccd_rig.figure_set_up(") + HEADER
    yield from find(RETARGET, header + 18, header + 130)
    yield from press(*places[f"{GROUP}source"])
    sh("xdotool", "type", "Capt")
    yield from keys("Return")
    note("source", name=chosen().source.name if chosen().source else "")
    yield from press(*place_of(RETARGET))
    yield from key("Escape")
    note("refused", action=action(), pose=lying(hero(), "thigh.L"))


def place_of(name: str) -> tuple[int, int]:
    return next(place for each, place in places.items() if each.startswith(name))


def action() -> str:
    data = hero().animation_data
    return data.action.name if data and data.action else ""


def find_button() -> Iterator[float]:
    """Look at the panel's fields down to its button, wherever they are now."""
    header = at("bpy.ops.ccd_rig.figure_set_up(") + HEADER
    for name in [name for name in places if "figure_set_up" not in name]:
        del places[name]
    yield 2 * REDRAW  # panels slide to their places
    yield from find(RETARGET, header + 18, header + 240)


def preview() -> Iterator[float]:
    """Switch the preview on, choose a frame as the reference, and walk in place and on again."""
    yield from find_button()
    yield from right(at(RETARGET))
    yield 2 * REDRAW
    note("preview", on=chosen().preview, report=chosen().report, no_pose=chosen().no_pose)
    photograph("preview_refused")
    yield from press(*places[f"{GROUP}reference"])
    yield from keys("End", "Return")
    seen = {"value": chosen().reference, "limbs": limbs(), "hips": hips(), "report": chosen().report}
    note("reference", action=action(), **seen)
    yield from find_button()
    photograph("preview")
    yield from left(at(RETARGET) + OPTIONS)
    yield 2 * REDRAW
    button = at(RETARGET)
    yield from find(f"{GROUP}in_place", button + OPTIONS + 10, button + OPTIONS + 130)
    yield from press(*places[f"{GROUP}in_place"])
    photograph("in_place")
    note("in_place", on=chosen().in_place, hips=hips(), action=action())
    yield from press(*places[f"{GROUP}in_place"])
    note("walks_on", on=chosen().in_place, hips=hips())
    yield from left(button + OPTIONS)


def effectors() -> Iterator[float]:
    """Unfold the effectors and let the sides have weights of their own."""
    button = at(RETARGET)
    yield from left(button + EFFECTORS)
    yield 2 * REDRAW
    yield from find(f"{GROUP}sides_apart", button + EFFECTORS + 10, button + EFFECTORS + 190)
    yield from press(*places[f"{GROUP}sides_apart"])
    yield 2 * REDRAW
    photograph("effectors")
    note("effectors", apart=chosen().sides_apart)
    chosen().sides_apart = False
    yield from left(button + EFFECTORS)


def hips() -> list[float]:
    posed = hero().evaluated_get(bpy.context.evaluated_depsgraph_get())
    return list(posed.matrix_world @ posed.pose.bones["spine"].head)


def fill_map() -> Iterator[float]:
    """Unfold the map, fill it, and see what it shows."""
    height = at(RETARGET) + MAP
    yield from left(height)
    yield 2 * REDRAW
    yield from find("bpy.ops.ccd_rig.retarget_map_fill(", height + 10, height + 70)
    yield from press(*place_of("bpy.ops.ccd_rig.retarget_map_fill("))
    yield 2 * REDRAW
    photograph("map")
    note("map", pairs={pair.name: pair.source for pair in chosen().pairs})


def carry_over() -> Iterator[float]:
    """Press the button, and look at both figures over the clip; then the step is undone."""
    yield from press(*place_of(RETARGET))
    yield from until(action, PATIENCE)
    yield 2 * REDRAW
    photograph("retargeted")
    followed = {}
    for frame in range(1, LAST + 1, 4):
        bpy.context.scene.frame_set(frame)
        followed[frame] = limbs()
    bpy.context.scene.frame_set(SHOWN + 6)
    yield REDRAW
    photograph("later")
    note("retargeted", report=chosen().report.split("\n"), limbs=followed, action=action())
    bpy.context.preferences.view.language = "de_DE"
    yield 3 * REDRAW
    photograph("german")
    bpy.context.preferences.view.language = "en_US"
    yield from key("ctrl+z")
    note("undone", action=action(), pairs=len(chosen().pairs))


def run() -> Iterator[float]:
    install()
    prepare()
    yield REDRAW
    yield from open_tab()
    yield from choose_source()
    yield from preview()
    yield from effectors()
    yield from fill_map()
    yield from carry_over()


if __name__ == "__main__":
    start(run())
