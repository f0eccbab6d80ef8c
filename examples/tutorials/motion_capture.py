# SPDX-License-Identifier: GPL-3.0-or-later
"""From motion capture: a BVH file, targets along its motion, and one hand that does something else."""

from __future__ import annotations

import tempfile
from pathlib import Path

import bpy
import common
import gait
import studio
from picture import Picture, quiet

FIRST, LAST = 1, 1 + 2 * gait.PERIOD
SPEED = 0.05  # metres per frame
UP = (-0.16, -0.10, 0.70)  # metres
LIFT = {1: (0, 0, 0), 12: (0, 0, 0), 26: UP, 40: UP, 53: (0, 0, 0)}


def build() -> bpy.types.Object:
    """An armature imported from a BVH file, which is written here in place of a captured one."""
    common.set_range(FIRST, LAST)
    source = common.metarig("basic_human")
    gait.key_walk(source, FIRST, LAST, SPEED)
    common.remove_bones(source, "heel.02", "pelvis", "breast")  # captured skeletons have none
    with tempfile.TemporaryDirectory() as folder, quiet():
        file = str(Path(folder) / "walk.bvh")
        bpy.ops.export_anim.bvh(filepath=file, frame_start=FIRST, frame_end=LAST, rotate_mode="NATIVE")
        bpy.data.objects.remove(source)
        bpy.ops.import_anim.bvh(filepath=file, rotate_mode="QUATERNION", axis_forward="Y", axis_up="Z")
    return bpy.context.object


def steps(rig: bpy.types.Object) -> None:
    """What docs/tutorials/motion_capture.md has the reader do."""
    common.select(rig)
    common.press(bpy.ops.ccd_rig.figure_set_up, follow_motion=True)
    common.press(bpy.ops.ccd_rig.bake)
    hand = common.target(rig, "hand.R")
    common.key(hand, "delta_location", LIFT)
    common.press(bpy.ops.ccd_rig.bake)


def picture(rig: bpy.types.Object) -> Picture:
    """Five frames of it."""
    radii = {"spine": 0.12, "spine.001": 0.11, "spine.002": 0.13, "spine.003": 0.13, "spine.004": 0.05,
        "spine.005": 0.05, "spine.006": 0.09}  # fmt: skip
    trunk = list(radii)
    for side in "LR":
        limbs = {"shoulder": 0.05, "upper_arm": 0.05, "forearm": 0.042, "hand": 0.036, "thigh": 0.072,
            "shin": 0.055, "foot": 0.042, "toe": 0.036}  # fmt: skip
        radii |= {f"{name}.{side}": radius for name, radius in limbs.items()}
    studio.body(rig, radii, plain=trunk)
    studio.mark(common.target(rig, "hand.R"), 0.05)
    view = studio.View((-3.0, -1.6, 0.6), (0.0, 0.0, 1.0), 2.2)
    hips = rig.pose.bones["spine"]
    return studio.sheet(
        (1, 12, 26, 38, 53), view, follow=lambda: (rig.matrix_world @ hips.head) * studio.ALONG
    )
