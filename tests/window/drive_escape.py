"""Esc at random moments of bakes: how long each takes to stop, and what is left behind.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import REDRAW, install, note, open_tab, photograph, sh, start, view

BONES, FRAMES, TRIALS = 40, 2000, 12
LEGS, LINKS = 30, 5  # chains of the other figure, and bones of each
LONGEST = 8.0  # [s] until Esc
POLL = 0.01  # [s]
rng = random.Random(7)


def make_tail() -> bpy.types.Object:
    """A long chain with limits and two targets, whose solve takes much longer than anybody waits."""
    tail = figure("Tail", [(BONES, 0.0)])
    for tip in (BONES // 2, BONES - 1):
        reach(tail, f"bone_0_{tip}", 0)
    return tail


def make_legs() -> bpy.types.Object:
    """Many chains beside one another."""
    legs = figure("Legs", [(LINKS, 0.3 * n) for n in range(LEGS)])
    for n in range(LEGS):
        reach(legs, f"bone_{n}_{LINKS - 1}", LINKS)
    return legs


def figure(name: str, chains: list[tuple[int, float]]) -> bpy.types.Object:
    """Chains of so many bones at such places along X, in cones."""
    rig = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for n, (count, x) in enumerate(chains):
        above = None
        for i in range(count):
            bone = rig.data.edit_bones.new(f"bone_{n}_{i}")
            bone.head, bone.tail, bone.parent, above = (x, 0, 0.1 * i), (x, 0, 0.1 * (i + 1)), above, bone
    bpy.ops.object.mode_set(mode="POSE")
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.4
    return rig


def reach(rig: bpy.types.Object, tip: str, length: int) -> None:
    """A constraint whose target leaps about, turned as well."""
    target = bpy.data.objects.new(f"Target {tip}", None)
    bpy.context.scene.collection.objects.link(target)
    size, x = (3.0, 0.0) if length == 0 else (0.5, rig.data.bones[tip].head_local.x)
    for frame in range(1, FRAMES, 20):
        target.location = [place + rng.uniform(-size, size) for place in (x, 0.0, 0.0)]
        target.keyframe_insert("location", frame=frame)
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target, row.rotation, row.chain_length = tip, tip, target, "ORIENTATION", length


def fill_scene() -> list[bpy.types.Object]:
    """Both figures, of which none is in another mode than Object Mode."""
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    found = []
    for make in (make_tail, make_legs):
        found.append(make())
        bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, FRAMES
    bpy.ops.ed.undo_push(message="Figures")
    return found


def take(rig: bpy.types.Object) -> None:
    """Make a figure the active one, in Pose Mode."""
    if bpy.context.object is not None and bpy.context.object.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for thing in bpy.data.objects:
        thing.select_set(thing == rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")


def share_of_processor() -> float:
    """How much of a processor this program has at present, 0 to 1: others may run beside it."""
    began, used = time.monotonic(), time.thread_time()
    while time.thread_time() < used + 0.1:
        pass
    return (time.thread_time() - used) / (time.monotonic() - began)


def run() -> Iterator[float]:
    install()
    figures = fill_scene()
    take(figures[0])
    yield REDRAW
    yield from open_tab()
    window, area, region = view()
    sh("xdotool", "mousemove", area.x + area.width // 3, window.height - area.y - area.height // 2)
    waits, delays, shares, draws = [], [], [], []
    drawn = [0]

    def count() -> None:
        drawn[0] += 1

    bpy.types.SpaceView3D.draw_handler_add(count, (), "WINDOW", "POST_PIXEL")
    for trial in range(TRIALS):
        with bpy.context.temp_override(window=window, area=area, region=region):
            take(figures[trial % 2])
            bpy.ops.ccd_rig.bake("INVOKE_DEFAULT")
        wait = rng.uniform(0.1, LONGEST)
        before = drawn[0]
        yield wait
        draws.append((drawn[0] - before) / wait)
        if trial == TRIALS - 1:
            photograph("escape_baking")
        assert window.modal_operators, "the bake was over before Esc"
        pressed = time.monotonic()
        sh("xdotool", "key", "Escape")
        while window.modal_operators:
            yield POLL
        waits.append(wait)
        delays.append(time.monotonic() - pressed)
        shares.append(share_of_processor())
        yield REDRAW
    note(
        "escapes",
        waits=waits,
        delays=delays,
        shares=shares,
        draws_per_second=draws,
        actions=[action.name for action in bpy.data.actions if "CCD" in action.name],
        scenes=len(bpy.data.scenes),
        keyed=[rig.name for rig in figures if rig.animation_data is not None],
    )
    photograph("escape_after")


if __name__ == "__main__":
    start(run())
