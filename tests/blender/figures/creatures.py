"""Creatures as game rigs have them: a root on the ground, and tails that an importer has guessed."""

from __future__ import annotations

import math

from rigs import B


def creature(*rows):
    """Bones to make from rows (name, parent, head); those whose names end in "_L" are mirrored to "_R".

    Tails lie at the first child, or a little further on, as Blender's importer of glTF guesses them.
    """
    both = []
    for name, parent, head in rows:
        both.append((name, parent, head))
        if name.endswith("_L"):
            other = parent[:-2] + "_R" if parent.endswith("_L") else parent
            both.append((name[:-2] + "_R", other, (-head[0], *head[1:])))
    heads = {name: head for name, _, head in both}
    bones = []
    for name, parent, head in both:
        further = next((at for _, above, at in both if above == name and math.dist(at, head) > 1e-3), None)
        back = heads.get(parent, (head[0], head[1] + 0.1, head[2]))
        way = [a - b for a, b in zip(head, back, strict=True)]
        if further is None and math.hypot(*way) < 1e-3:
            way = [0.0, -0.1, 0.0]
        tail = further or tuple(a + 0.5 * b for a, b in zip(head, way, strict=True))
        bones.append(B(name, head, tail, parent))
    return bones


def row(name, parent, *heads):
    """Rows of a chain: "leg_L" at its heads becomes "leg_1_L", "leg_2_L" and so on."""
    side = "_L" if name.endswith("_L") else ""
    rows = []
    for place, head in enumerate(heads, 1):
        rows.append((f"{name.removesuffix('_L')}_{place}{side}", parent, head))
        parent = rows[-1][0]
    return rows


def anchored_spider():
    """Eight legs on a bone of each side, as stiff as the body; with jaws and an abdomen."""
    legs = []
    for leg, y in enumerate((-0.55, -0.2, 0.2, 0.6)):
        heads = ((0.15, 0.3 * y, 0.5), (0.5, 0.7 * y, 0.85), (0.95, y, 0.45), (1.1, 1.1 * y, 0.02))
        legs += row(f"Leg{'ABCD'[leg]}_L", "Anchor_L", *heads)
    return creature(
        ("root", "", (0, 0, 0)),
        ("Body", "root", (0, 0.05, 0.5)),
        ("Abdomen", "Body", (0, 0.3, 0.55)),
        ("Abdomen_tip", "Abdomen", (0, 0.9, 0.5)),
        ("Head", "Body", (0, -0.15, 0.5)),
        *row("Fang_L", "Head", (0.05, -0.3, 0.45), (0.05, -0.35, 0.35)),
        ("Anchor_L", "Body", (0.08, 0.0, 0.5)),
        *legs,
    )
