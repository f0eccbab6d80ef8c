# SPDX-License-Identifier: GPL-3.0-or-later
"""Colours and sizes of what the viewport shows."""

from typing import NamedTuple

Opaque = tuple[float, float, float]  # red, green, blue

EULER_COLOURS = {"X": (1.0, 0.32, 0.35), "Y": (0.55, 0.85, 0.2), "Z": (0.3, 0.55, 1.0)}
DISC, RING = 7.0, 16.0
"""Radii of a mark and of the ring that turns it [pixels at interface scale 1]."""


class Palette(NamedTuple):
    """Colours of sketches."""

    limit: Opaque = (0.25, 0.62, 1.0)
    comfort: Opaque = (0.35, 0.9, 0.4)  # comfort regions
    needle: Opaque = (1.0, 1.0, 1.0)  # present rotation in a limit
    chain: Opaque = (1.0, 0.72, 0.2)  # active chain, and lines to targets
    planted: Opaque = (0.1, 0.85, 0.7)  # planted bones
    warning: Opaque = (1.0, 0.18, 0.12)  # rotations at a border, and targets out of reach
