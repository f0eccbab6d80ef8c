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
LONGEST = 8.0  # [s] until Esc
POLL = 0.01  # [s]
rng = random.Random(7)


def make_tail() -> None:
    """A long chain with limits and two targets, whose solve takes much longer than anybody waits."""
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    tail = bpy.data.objects.new("Tail", bpy.data.armatures.new("Tail"))
    bpy.context.scene.collection.objects.link(tail)
    bpy.context.view_layer.objects.active = tail
    bpy.ops.object.mode_set(mode="EDIT")
    above = None
    for i in range(BONES):
        bone = tail.data.edit_bones.new(f"bone_{i}")
        bone.head, bone.tail, bone.parent, above = (0, 0, 0.1 * i), (0, 0, 0.1 * (i + 1)), above, bone
    bpy.ops.object.mode_set(mode="POSE")
    for bone in tail.pose.bones:
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.4
    for tip in (BONES // 2, BONES - 1):
        target = bpy.data.objects.new(f"Target {tip}", None)
        bpy.context.scene.collection.objects.link(target)
        for frame in range(1, FRAMES, 20):
            target.location = [rng.uniform(-3.0, 3.0) for _ in range(3)]
            target.keyframe_insert("location", frame=frame)
        row = tail.ccd_rig.constraints.add()
        row.name, row.tip, row.target, row.rotation = tip_name(tip), tip_name(tip), target, "ORIENTATION"
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, FRAMES
    bpy.ops.ed.undo_push(message="Tail")


def tip_name(i: int) -> str:
    return f"bone_{i}"


def share_of_processor() -> float:
    """How much of a processor this program has at present, 0 to 1: others may run beside it."""
    began, used = time.monotonic(), time.thread_time()
    while time.thread_time() < used + 0.1:
        pass
    return (time.thread_time() - used) / (time.monotonic() - began)


def run() -> Iterator[float]:
    install()
    make_tail()
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
    tail = bpy.data.objects["Tail"]
    note(
        "escapes",
        waits=waits,
        delays=delays,
        shares=shares,
        draws_per_second=draws,
        actions=[action.name for action in bpy.data.actions if "CCD" in action.name],
        scenes=len(bpy.data.scenes),
        keyed=tail.animation_data is not None,
    )
    photograph("escape_after")


if __name__ == "__main__":
    start(run())
