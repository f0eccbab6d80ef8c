# SPDX-License-Identifier: GPL-3.0-or-later
"""A quadruped: Set Up Figure gives a wolf its targets; it crouches, lifts a paw and looks aside."""

from __future__ import annotations

import bpy
import common
import studio
from picture import Picture

FIRST, LAST = 1, 72
THICK = {
    "spine": 0.02, "spine.001": 0.024, "spine.002": 0.028, "spine.003": 0.034,
    "spine.004": 0.10, "spine.005": 0.11, "spine.006": 0.125, "spine.007": 0.13,
    "spine.008": 0.09, "spine.009": 0.08, "spine.010": 0.07, "spine.011": 0.075,
}  # fmt: skip
LIMBS = {
    "thigh": 0.055, "shin": 0.036, "foot": 0.026, "toe": 0.03,
    "front_thigh": 0.05, "front_shin": 0.034, "front_foot": 0.026, "front_toe": 0.03,
}  # fmt: skip


def build() -> bpy.types.Object:
    """Rigify's quadruped."""
    common.set_range(FIRST, LAST)
    return common.metarig("basic_quadruped")


def steps(rig: bpy.types.Object) -> None:
    """What docs/tutorials/quadruped.md has the reader do."""
    common.select(rig)
    common.press(bpy.ops.ccd_rig.figure_set_up, ranges="LIMITS")
    common.move(
        common.target(rig, "spine.004"),
        {1: (0, 0, 0), 24: (0, 0.03, -0.06), 40: (0, 0.03, -0.06), 60: (0, 0, 0)},
    )
    common.move(
        common.target(rig, "front_toe.R"),
        {1: (0, 0, 0), 14: (0, 0, 0), 30: (0, -0.06, 0.14), 48: (0, -0.06, 0.14), 66: (0, 0, 0)},
    )
    common.move(
        common.target(rig, "spine.011"),
        {1: (0, 0, 0), 24: (0.0, 0.01, 0.03), 44: (-0.06, 0.04, 0.02), 66: (0, 0, 0)},
    )
    common.move(
        common.target(rig, "spine"),
        {1: (0, 0, 0), 16: (0.14, -0.1, 0.1), 32: (-0.14, -0.1, 0.14), 48: (0.14, -0.1, 0.14), 66: (0, 0, 0)},
    )
    common.press(bpy.ops.ccd_rig.bake)


def dress(rig: bpy.types.Object) -> None:
    """Give it a wooden body."""
    radii = THICK | {f"{bone}.{side}": radius for bone, radius in LIMBS.items() for side in "LR"}
    studio.body(rig, radii, plain=list(THICK)[4:])


def picture(rig: bpy.types.Object) -> Picture:
    """Five frames of it."""
    dress(rig)
    for bone in ("front_toe.R", "spine.011", "spine"):
        studio.mark(common.target(rig, bone), 0.03)
    return studio.sheet((1, 20, 32, 44, 66), studio.View((1.8, -2.4, 0.4), (0.0, 0.1, 0.45), 1.75))
