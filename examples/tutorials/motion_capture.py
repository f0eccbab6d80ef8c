# SPDX-License-Identifier: GPL-3.0-or-later
"""From motion capture: a BVH file, its motion on a character, and one hand that does something else."""

from __future__ import annotations

import tempfile
from math import pi
from pathlib import Path

import bpy
import common
import gait
import studio
from mathutils import Matrix
from picture import Picture, quiet

FIRST, LAST = 1, 1 + 2 * gait.PERIOD
SPEED = 0.05  # metres per frame
SIZE = 0.85  # of the captured person, beside the character
ASIDE = 1.2  # metres between the two
UP = (-0.16, -0.10, 0.70)  # metres
LIFT = {1: (0, 0, 0), 12: (0, 0, 0), 26: UP, 40: UP, 53: (0, 0, 0)}
MIDDLE = ("Hips", "Spine", "Spine1", "Spine2", "Neck", "Neck1", "Head")
LIMBS = {
    "shoulder": "Shoulder",
    "upper_arm": "Arm",
    "forearm": "ForeArm",
    "hand": "Hand",
    "thigh": "UpLeg",
    "shin": "Leg",
    "foot": "Foot",
    "toe": "ToeBase",
}


def build() -> bpy.types.Object:
    """A character alone."""
    common.set_range(FIRST, LAST)
    return common.metarig("basic_human")


def record(file: Path) -> None:
    """Write a walk as a BVH file in centimetres with Y upwards, in place of a captured one."""
    captured = common.metarig("basic_human")
    gait.key_walk(captured, FIRST, LAST, SPEED)
    common.remove_bones(captured, "heel.02", "pelvis", "breast")  # captured skeletons have none
    for k, name in enumerate(MIDDLE):
        captured.data.bones["spine" if k == 0 else f"spine.{k:03d}"].name = name
    for ours, name in LIMBS.items():
        for side, word in (("L", "Left"), ("R", "Right")):
            captured.data.bones[f"{ours}.{side}"].name = word + name
    captured.data.transform(Matrix.Rotation(-pi / 2.0, 4, "X"))  # keys are in the bones' own axes
    with quiet():
        bpy.ops.export_anim.bvh(
            filepath=str(file),
            frame_start=FIRST,
            frame_end=LAST,
            rotate_mode="NATIVE",
            global_scale=100.0 * SIZE,
        )
    bpy.data.objects.remove(captured)


def capture() -> bpy.types.Object:
    """The imported armature."""
    return bpy.data.objects["walk"]


def carry_over(rig: bpy.types.Object) -> None:
    """The first steps of docs/tutorials/motion_capture.md: the walk on the character."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "walk.bvh"
        record(file)
        common.select(rig)
        common.press(bpy.ops.ccd_rig.retarget_source_import, filepath=str(file))
    capture().location.x = ASIDE
    common.select(rig)
    common.press(bpy.ops.ccd_rig.retarget)


def lift_hand(rig: bpy.types.Object) -> None:
    """The other steps: one hand goes elsewhere."""
    common.press(bpy.ops.ccd_rig.figure_set_up)
    common.press(bpy.ops.ccd_rig.bake)
    hand = common.target(rig, "hand.R")
    common.key(hand, "delta_location", LIFT)
    common.press(bpy.ops.ccd_rig.bake)


def steps(rig: bpy.types.Object) -> None:
    """What docs/tutorials/motion_capture.md has the reader do."""
    carry_over(rig)
    lift_hand(rig)


def dress(rig: bpy.types.Object) -> None:
    """Give both wooden bodies, a thin one to the captured person."""
    studio.body(capture(), dict.fromkeys(capture().data.bones.keys(), 0.02), to_children=True)
    radii = {"spine": 0.12, "spine.001": 0.11, "spine.002": 0.13, "spine.003": 0.13, "spine.004": 0.05,
        "spine.005": 0.05, "spine.006": 0.09}  # fmt: skip
    trunk = list(radii)
    for side in "LR":
        limbs = {"shoulder": 0.05, "upper_arm": 0.05, "forearm": 0.042, "hand": 0.036, "thigh": 0.072,
            "shin": 0.055, "foot": 0.042, "toe": 0.036}  # fmt: skip
        radii |= {f"{name}.{side}": radius for name, radius in limbs.items()}
    studio.body(rig, radii, plain=trunk)


def picture(rig: bpy.types.Object) -> Picture:
    """Five frames of both."""
    dress(rig)
    studio.mark(common.target(rig, "hand.R"), 0.05)
    view = studio.View((-3.0, -1.6, 0.6), (0.0, 0.0, 1.0), 2.2)
    hips = rig.pose.bones["spine"]
    return studio.sheet(
        (1, 12, 26, 38, 53), view, follow=lambda: (rig.matrix_world @ hips.head) * studio.ALONG
    )
