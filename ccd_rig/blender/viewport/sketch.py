# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be drawn, collected by colour: one call of the graphics card for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from mathutils import Vector

Colour = tuple[float, float, float, float]  # red, green, blue, alpha; 0..1
Opaque = tuple[float, float, float]  # red, green, blue

DASHES = (4, 60)  # how many dashes a dotted line has, at least and at most


class Label(NamedTuple):
    """Words at a point of world space, on the side that is away from another point."""

    point: Vector
    away_from: Vector
    words: str
    colour: Colour


class Palette(NamedTuple):
    """The colours of what is drawn.

    Attributes:
        limit: of limits. comfort: of comfort regions.
        needle: of the present rotation in a limit.
        chain: of the active chain and of lines to targets.
        planted: of planted bones.
        warning: of what is at a border or out of reach.
    """

    limit: Opaque = (0.25, 0.62, 1.0)
    comfort: Opaque = (0.35, 0.9, 0.4)
    needle: Opaque = (1.0, 1.0, 1.0)
    chain: Opaque = (1.0, 0.72, 0.2)
    planted: Opaque = (0.1, 0.85, 0.7)
    warning: Opaque = (1.0, 0.18, 0.12)


class Sketch:
    """Lines, faces and words in world space.

    Attributes:
        palette: the colours to draw with.
        lines: (colour, width in pixels) -> ends of straight pieces, two by two.
        faces: colour -> corners of triangles, three by three.
        labels: words.
    """

    def __init__(self, palette: Palette | None = None) -> None:
        self.palette = palette or Palette()
        self.lines: dict[tuple[Colour, float], list[Vector]] = defaultdict(list)
        self.faces: dict[Colour, list[Vector]] = defaultdict(list)
        self.labels: list[Label] = []

    def path(self, points: Iterable[Vector], colour: Colour, width: float) -> None:
        """Straight pieces from point to point."""
        pieces = self.lines[colour, width]
        for a, b in pairwise(points):
            pieces += (a, b)

    def dotted(self, ends: tuple[Vector, Vector], dash: float, colour: Colour, width: float) -> None:
        """A line of dashes about `dash` metres long, with gaps of the same length between them."""
        start, end = ends
        least, most = DASHES
        wanted = (end - start).length / (2.0 * dash) if dash > 0.0 else 0.0
        count = round(min(max(wanted, least), most))
        pieces = self.lines[colour, width]
        for i in range(count):
            pieces += (
                start.lerp(end, (2 * i) / (2 * count - 1)),
                start.lerp(end, (2 * i + 1) / (2 * count - 1)),
            )

    def fan(self, centre: Vector, points: Sequence[Vector], colour: Colour) -> None:
        """Triangles from a centre to the points in turn."""
        corners = self.faces[colour]
        for a, b in pairwise(points):
            corners += (centre, a, b)

    def label(self, point: Vector, away_from: Vector, words: str, colour: Colour) -> None:
        """Words at a point, clear of a line from there to another point."""
        self.labels.append(Label(point, away_from, words, colour))


def placed(matrix: Any, points: Iterable[Vector]) -> list[Vector]:
    """Points moved by a matrix."""
    return [matrix @ point for point in points]
