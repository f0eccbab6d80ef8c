# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigify: a generated rig is moved by its FK controls, and its switches are keyed to FK."""

from __future__ import annotations

import bpy
import common
import studio
from picture import Picture, quiet

FIRST, LAST = 1, 60
TRUNK = {"DEF-spine": 0.12, "DEF-spine.001": 0.11, "DEF-spine.002": 0.13, "DEF-spine.003": 0.14,
    "DEF-spine.004": 0.05, "DEF-spine.005": 0.05, "DEF-spine.006": 0.09}  # fmt: skip
LIMBS = {"DEF-shoulder": 0.05, "DEF-upper_arm": 0.052, "DEF-upper_arm.{}.001": 0.046, "DEF-forearm": 0.044,
    "DEF-forearm.{}.001": 0.036, "DEF-hand": 0.036, "DEF-thigh": 0.075, "DEF-thigh.{}.001": 0.064,
    "DEF-shin": 0.056, "DEF-shin.{}.001": 0.044, "DEF-foot": 0.042, "DEF-toe": 0.036}  # fmt: skip


def build() -> bpy.types.Object:
    """The rig that Rigify generates from its basic human."""
    common.set_range(FIRST, LAST)
    metarig = common.metarig("basic_human")
    with quiet():
        bpy.ops.pose.rigify_generate()
    rig = next(each for each in bpy.data.objects if each.type == "ARMATURE" and each != metarig)
    metarig.hide_set(True)
    metarig.hide_render = True
    return rig


def steps(rig: bpy.types.Object) -> None:
    """What docs/tutorials/rigify.md has the reader do."""
    common.select(rig)
    common.press(bpy.ops.ccd_rig.figure_set_up)
    hips = common.target(rig, "torso")
    common.move(hips, {1: (0, 0, 0), 24: (0, 0.10, -0.28), 40: (0, 0.10, -0.28), 60: (0, 0, 0)})
    for side, sign in (("L", 1.0), ("R", -1.0)):
        hand = common.target(rig, f"hand_fk.{side}")
        low, high = (-0.22 * sign, -0.40, 0.06), (-0.16 * sign, -0.20, 0.40)
        common.move(hand, {1: (0, 0, 0), 24: low, 40: low, 60: high})
    common.press(bpy.ops.ccd_rig.bake)


def picture(rig: bpy.types.Object) -> Picture:
    """Five frames of it."""
    radii = dict(TRUNK)
    for name, radius in LIMBS.items():
        for side in "LR":
            radii[name.format(side) if "{}" in name else f"{name}.{side}"] = radius
    inner = [name for name in radii if name.endswith(".001") and "spine" not in name]
    studio.body(rig, radii, plain=[*TRUNK, *inner])
    return studio.sheet((1, 12, 24, 48, 60), studio.View((-1.0, -3.0, 0.5), (0.0, -0.1, 0.98), 2.1))
