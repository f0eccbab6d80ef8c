"""Creatures as game rigs have them: a root on the ground, and tails that an importer has guessed."""

from __future__ import annotations

import math
from itertools import pairwise

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


def snake():
    """One row from the tail on that winds over the ground; its head has a mouth, eyes and a tongue."""
    body = [(0.15 * math.sin(0.9 * k), 1.2 - 0.25 * k, 0.05) for k in range(11)]
    return creature(
        ("root", "", (0, 1.4, 0)),
        *row("Body", "root", *body),
        ("Head", "Body_11", (0, -1.55, 0.1)),
        ("Mouth_Top", "Head", (0, -1.65, 0.12)),
        ("Mouth_Top_tip", "Mouth_Top", (0, -1.8, 0.1)),
        ("Jaw", "Head", (0, -1.65, 0.07)),
        ("Jaw_tip", "Jaw", (0, -1.78, 0.06)),
        *row("Tongue", "Jaw", (0, -1.7, 0.08), (0, -1.76, 0.08), (0, -1.82, 0.08)),
        ("Eye_L", "Head", (0.06, -1.65, 0.15)),
    )


def cobra():
    """Two rows from the root in the middle: a tail, and a raised front with a head and a mouth."""
    return creature(
        ("Root", "", (0, 0, 0.05)),
        *row("Tail", "Root", *((0, 0.1 + 0.2 * k, 0.05) for k in range(7))),
        *row("Body", "Root", *((0, -0.1 - 0.15 * k, 0.06 + 0.1 * k) for k in range(5))),
        ("Head", "Body_5", (0, -0.85, 0.55)),
        ("Jaw", "Head", (0, -0.9, 0.52)),
        ("Jaw_tip", "Jaw", (0, -1.0, 0.5)),
        *row("Hood_L", "Body_4", (0.08, -0.6, 0.4), (0.16, -0.62, 0.42)),
    )


def leg(name, parent, *heads):
    """Bones of a leg, called after their place in it."""
    names = ("Upper", "Lower", "Ankle", "Foot", "Tip", "End")
    rows = []
    for part, head in zip(names, heads, strict=False):
        rows.append((f"{name}_{part}_L", parent, head))
        parent = rows[-1][0]
    return rows


def bird():
    """Two feathers of two bones hang on each bone of a wing; the crest is longer than the head."""
    wing = row(
        "Wing_L", "Spine_2", (0.04, 0.0, 0.5), (0.2, 0.02, 0.52), (0.4, -0.02, 0.52), (0.55, 0.0, 0.51)
    )
    feathers = [
        part
        for bone, x in enumerate((0.15, 0.32, 0.48), 1)
        for part in row(f"Feather{bone}_L", f"Wing_{bone}_L", (x, 0.05, 0.51), (x + 0.02, 0.2, 0.5))
    ]
    return creature(
        ("root", "", (0, 0, 0)),
        ("Hips", "root", (0, 0.1, 0.4)),
        ("Spine_1", "Hips", (0, 0.02, 0.43)),
        ("Spine_2", "Spine_1", (0, -0.06, 0.47)),
        ("Neck_1", "Spine_2", (0, -0.15, 0.55)),
        ("Neck_2", "Neck_1", (0, -0.2, 0.65)),
        ("Head", "Neck_2", (0, -0.22, 0.7)),
        ("Beak", "Head", (0, -0.27, 0.7)),
        ("Beak_tip", "Beak", (0, -0.35, 0.68)),
        *row("Crest", "Neck_2", (0, -0.2, 0.75), (0, -0.12, 0.83), (0, 0.0, 0.88)),
        ("Breast", "Spine_2", (0, -0.14, 0.42)),
        ("Breast_tip", "Breast", (0, -0.16, 0.36)),
        *row("Tail", "Hips", (0, 0.2, 0.4), (0, 0.35, 0.38), (0, 0.5, 0.36)),
        *wing,
        *feathers,
        *leg("Leg", "Hips", (0.06, 0.05, 0.36), (0.06, 0.0, 0.2), (0.06, 0.05, 0.05), (0.06, -0.02, 0.02)),
    )


def horse():
    """A long neck, and a mane that is longer than the head and the ears that hang on it."""
    fore = (
        (0.14, -0.5, 1.2),
        (0.14, -0.45, 0.75),
        (0.14, -0.48, 0.35),
        (0.14, -0.52, 0.1),
        (0.14, -0.56, 0.03),
    )
    hind = ((0.14, 0.6, 1.25), (0.14, 0.5, 0.85), (0.14, 0.68, 0.5), (0.14, 0.62, 0.15), (0.14, 0.58, 0.04))
    return creature(
        ("root", "", (0, 0, 0)),
        ("Hips", "root", (0, 0.7, 1.35)),
        *row("Spine", "Hips", (0, 0.4, 1.38), (0, 0.0, 1.34), (0, -0.35, 1.36)),
        ("Withers", "Spine_3", (0, -0.45, 1.48)),
        ("Withers_tip", "Withers", (0, -0.3, 1.5)),
        *row("Neck", "Spine_3", (0, -0.6, 1.5), (0, -0.8, 1.75), (0, -0.95, 1.95)),
        *row(
            "Mane",
            "Neck_3",
            (0, -0.85, 2.05),
            (0, -0.7, 1.95),
            (0, -0.6, 1.8),
            (0, -0.5, 1.6),
            (0, -0.42, 1.4),
        ),
        ("Head", "Neck_3", (0, -1.05, 2.05)),
        ("Nose", "Head", (0, -1.3, 1.85)),
        ("Jaw", "Head", (0, -1.1, 1.9)),
        ("Jaw_tip", "Jaw", (0, -1.25, 1.75)),
        ("Ear_L", "Neck_3", (0.06, -1.0, 2.15)),
        *row("Tail", "Hips", (0, 0.85, 1.3), (0, 0.95, 1.1), (0, 1.0, 0.8), (0, 1.02, 0.5)),
        *leg("Front_Leg", "Spine_3", *fore),
        *leg("Back_Leg", "Hips", *hind),
    )


def dragon():
    """Four legs, and wings whose feathers hang lower than the feet."""
    wing = ((0.15, -0.3, 1.5), (0.6, -0.2, 1.9), (1.3, 0.0, 1.6), (1.8, 0.1, 1.1))
    feathers = [
        part
        for bone, x in enumerate((0.8, 1.4, 1.9), 2)
        for part in row(
            f"Feather{bone}_L", f"Wing_{bone}_L", (x, 0.2, 0.9), (x + 0.05, 0.5, 0.4), (x + 0.1, 0.7, -0.3)
        )
    ]
    fore = ((0.25, -0.5, 1.2), (0.25, -0.35, 0.7), (0.25, -0.5, 0.3), (0.25, -0.6, 0.05))
    hind = ((0.3, 0.6, 1.2), (0.3, 0.4, 0.75), (0.3, 0.7, 0.35), (0.3, 0.6, 0.06))
    return creature(
        ("root", "", (0, 0, 0)),
        ("Hips", "root", (0, 0.6, 1.35)),
        *row("Spine", "Hips", (0, 0.3, 1.4), (0, -0.1, 1.42), (0, -0.45, 1.4)),
        *row("Neck", "Spine_3", (0, -0.7, 1.5), (0, -0.95, 1.75), (0, -1.15, 2.0)),
        ("Head", "Neck_3", (0, -1.25, 2.1)),
        ("Jaw", "Head", (0, -1.3, 2.0)),
        ("Jaw_tip", "Jaw", (0, -1.55, 1.95)),
        *row("Tail", "Hips", *((0, 0.9 + 0.35 * k, 1.3 - 0.15 * k) for k in range(7))),
        *row("Wing_L", "Spine_3", *wing),
        *feathers,
        *leg("Front_Leg", "Spine_3", *fore),
        *leg("Back_Leg", "Hips", *hind),
    )


def shark():
    """Side fins on the bone of the body that both head and tail hang on, under a root on the ground."""
    return creature(
        ("root", "", (0, 0, 0)),
        ("Body", "root", (0, 0.0, 1.0)),
        *row("Front", "Body", (0, -0.3, 1.0), (0, -0.6, 1.0)),
        ("Head", "Front_2", (0, -0.8, 1.0)),
        ("Jaw", "Head", (0, -0.9, 0.92)),
        ("Jaw_tip", "Jaw", (0, -1.1, 0.92)),
        *row("Tail", "Body", (0, 0.3, 1.0), (0, 0.8, 1.0), (0, 1.3, 1.0), (0, 1.7, 1.0)),
        ("Tail_Fin_Top", "Tail_4", (0, 1.9, 1.3)),
        ("Tail_Fin_Bottom", "Tail_4", (0, 1.85, 0.8)),
        ("Back_Fin", "Body", (0, 0.05, 1.35)),
        *row("Fin_L", "Body", (0.2, -0.1, 0.95), (0.5, 0.1, 0.85), (0.75, 0.3, 0.78)),
    )


def ray():
    """Flat, on the ground: its fins are as low as its body."""
    return creature(
        ("Body", "", (0, 0, 0.2)),
        *row("Spine", "Body", (0, -0.3, 0.2), (0, -0.6, 0.2)),
        ("Head", "Spine_2", (0, -0.9, 0.2)),
        *row("Tail", "Body", *((0, 0.3 * k, 0.2) for k in range(1, 5))),
        *row("Fin_L", "Spine_1", (0.2, -0.3, 0.2), (0.6, -0.3, 0.2), (1.0, -0.2, 0.2)),
    )


def monster():
    """A beast on two legs that leans forwards: arms with claws, a tail, and heels up in the air."""
    arm = row("Arm_L", "Spine_3", (0.25, -0.5, 1.8), (0.4, -0.6, 1.5), (0.4, -0.85, 1.3))
    claws = [
        part
        for k in range(3)
        for part in row(f"Claw{k}_L", "Hand_L", (0.35 + 0.05 * k, -1.1, 1.25), (0.35 + 0.05 * k, -1.2, 1.2))
    ]
    legs = ((0.3, 0, 1.3), (0.35, -0.2, 0.9), (0.35, 0.25, 0.6), (0.35, 0.2, 0.35), (0.35, 0.1, 0.12))
    return creature(
        ("root", "", (0, 0, 0)),
        ("Hips", "root", (0, 0.05, 1.4)),
        *row("Spine", "Hips", (0, -0.1, 1.5), (0, -0.3, 1.65), (0, -0.5, 1.85)),
        ("Neck", "Spine_3", (0, -0.7, 2.0)),
        ("Head", "Neck", (0, -0.85, 2.1)),
        ("Jaw", "Head", (0, -0.9, 2.05)),
        ("Jaw_tip", "Jaw", (0, -1.15, 2.0)),
        *row("Plates", "Neck", (0, -0.6, 2.15), (0, -0.4, 2.3), (0, -0.2, 2.4), (0, 0.0, 2.4)),
        *row("Tail", "Hips", *((0, 0.4 + 0.35 * k, 1.3 - 0.17 * k) for k in range(6))),
        *arm,
        ("Hand_L", "Arm_3_L", (0.4, -1.0, 1.3)),
        *claws,
        *leg("Leg", "Hips", *legs, (0.35, 0.0, 0.05)),
        *(part for k in range(3) for part in row(f"Toe{k}_L", "Leg_End_L", (0.3 + 0.05 * k, -0.15, 0.03))),
    )


def lizard():
    """Four legs whose first bones lead aside, close to the ground."""

    def sprawled(name, parent, y):
        return leg(
            name, parent, (0.08, y, 0.15), (0.25, y, 0.15), (0.28, y - 0.02, 0.04), (0.3, y - 0.08, 0.01)
        )

    return creature(
        ("root", "", (0, 0, 0)),
        ("Hips", "root", (0, 0.3, 0.15)),
        *row("Spine", "Hips", (0, 0.15, 0.15), (0, 0, 0.15), (0, -0.2, 0.15)),
        ("Neck", "Spine_3", (0, -0.3, 0.17)),
        ("Head", "Neck", (0, -0.4, 0.18)),
        *row("Tail", "Hips", *((0, 0.4 + 0.2 * k, 0.12) for k in range(8))),
        *sprawled("Front_Leg", "Spine_3", -0.2),
        *sprawled("Back_Leg", "Hips", 0.3),
    )


def gargoyle():
    """Upright, with wings that are three times as wide as its arms are long."""
    legs = ((0.1, 0, 0.95), (0.1, -0.03, 0.5), (0.1, 0.02, 0.08), (0.1, -0.1, 0.02))
    return creature(
        ("root", "", (0, 0, 0)),
        ("Pelvis", "root", (0, 0, 1)),
        *row("Spine", "Pelvis", (0, 0, 1.1), (0, 0, 1.3)),
        ("Neck", "Spine_2", (0, 0, 1.5)),
        ("Head", "Neck", (0, 0, 1.6)),
        *row("Wing_L", "Spine_2", (0.1, 0.1, 1.4), (0.5, 0.3, 1.8), (1.2, 0.4, 1.7), (1.8, 0.4, 1.2)),
        *row("Arm_L", "Spine_2", (0.15, 0, 1.45), (0.45, 0, 1.4), (0.7, 0, 1.35)),
        ("Hand_L", "Arm_3_L", (0.72, 0, 1.34)),
        *leg("Leg", "Pelvis", *legs),
    )


def arm(name, parent, y, z):
    """A human's arm, stretched out to the side, with three fingers."""
    parts = ("Shoulder", "UpperArm", "ForeArm", "Hand")
    rows = []
    for part, x in zip(parts, (0.03, 0.17, 0.45, 0.72), strict=True):
        rows.append((f"{name}{part}_L", parent, (x, y, z)))
        parent = rows[-1][0]
    for finger in range(3):
        at = y - 0.03 * finger
        rows += row(f"{name}Finger{finger}_L", parent, (0.8, at, z), (0.85, at, z))
    return rows


def centaur():
    """Two arms above four legs, each named as a human's."""
    fore = ((0.15, -0.35, 1.2), (0.15, -0.3, 0.75), (0.15, -0.33, 0.35), (0.15, -0.38, 0.06))
    hind = ((0.15, 0.55, 1.2), (0.15, 0.45, 0.8), (0.15, 0.65, 0.45), (0.15, 0.6, 0.06))
    return creature(
        ("root", "", (0, 0, 0)),
        ("Hips", "root", (0, 0.6, 1.3)),
        *row("Spine", "Hips", (0, 0.3, 1.35), (0, 0, 1.35), (0, -0.3, 1.35)),
        *row("Torso", "Spine_3", (0, -0.45, 1.5), (0, -0.45, 1.8), (0, -0.45, 2.05)),
        ("Neck", "Torso_3", (0, -0.45, 2.25)),
        ("Head", "Neck", (0, -0.47, 2.35)),
        *row("Tail", "Hips", (0, 0.75, 1.3), (0, 0.9, 1.1), (0, 0.95, 0.8)),
        *arm("", "Torso_3", -0.45, 2.15),
        *leg("Front_Leg", "Spine_3", *fore),
        *leg("Back_Leg", "Hips", *hind),
    )


def four_arms():
    """A giant with two pairs of arms."""
    return creature(
        ("Hips", "", (0, 0, 1)),
        *row("Spine", "Hips", (0, 0, 1.1), (0, 0, 1.2), (0, 0, 1.3)),
        ("Neck", "Spine_3", (0, 0, 1.5)),
        ("Head", "Neck", (0, 0, 1.6)),
        *arm("Upper_", "Spine_3", 0, 1.45),
        *arm("Lower_", "Spine_3", 0, 1.25),
        *leg("Leg", "Hips", (0.1, 0, 0.95), (0.1, -0.02, 0.5), (0.1, 0.02, 0.08), (0.1, -0.1, 0.02)),
    )


def naga():
    """A human on a snake's tail, which goes on from the root behind it."""
    return creature(
        ("Root", "", (0, 0, 0)),
        *row("Tail", "Root", *((0, 0.2 + 0.2 * k, 0.08) for k in range(8))),
        *row("Body", "Root", (0, 0, 0.2), (0, -0.05, 0.6), (0, 0, 1.0)),
        ("Neck", "Body_3", (0, 0, 1.35)),
        ("Head", "Neck", (0, 0, 1.45)),
        *row("Arm_L", "Body_3", (0.15, 0, 1.3), (0.4, 0, 1.3), (0.65, 0, 1.3)),
    )


def bat():
    """Legs nearer to the middle than a fiftieth of the size with wings, and ears as long as they are."""
    fingers = [
        part
        for k in range(3)
        for part in row(
            f"Wing_Finger{k}_L",
            "Wing_Hand_L",
            (0.6 + 0.1 * k, 0.1 + 0.1 * k, 0.5),
            (1.0 - 0.1 * k, 0.2 + 0.15 * k, 0.45),
            (1.2 - 0.2 * k, 0.4 + 0.1 * k, 0.4),
        )
    ]
    return creature(
        ("Body", "", (0, 0.1, 0.4)),
        *row("Spine", "Body", (0, 0, 0.45), (0, -0.1, 0.48)),
        ("Head", "Spine_2", (0, -0.2, 0.52)),
        *row("Ear_L", "Head", (0.03, -0.2, 0.58), (0.05, -0.2, 0.7)),
        ("Wing_Upper_L", "Spine_2", (0.06, -0.08, 0.5)),
        ("Wing_Lower_L", "Wing_Upper_L", (0.3, -0.05, 0.52)),
        ("Wing_Hand_L", "Wing_Lower_L", (0.55, -0.1, 0.52)),
        *fingers,
        *leg("Leg", "Body", (0.04, 0.15, 0.38), (0.05, 0.2, 0.3), (0.05, 0.22, 0.22)),
    )


def scorpion():
    """Eight legs, pincers on the head, and a tail that rises over the back."""
    legs = [
        part
        for k, y in enumerate((-0.3, -0.1, 0.1, 0.3))
        for part in row(f"Leg{k}_L", "Body", (0.1, y, 0.2), (0.4, 1.5 * y, 0.3), (0.6, 2 * y, 0.02))
    ]
    return creature(
        ("root", "", (0, 0, 0)),
        ("Body", "root", (0, 0, 0.2)),
        ("Head", "Body", (0, -0.2, 0.2)),
        *row("Pincer_L", "Head", (0.1, -0.3, 0.2), (0.35, -0.45, 0.25), (0.3, -0.7, 0.25)),
        *row("Antenna_L", "Head", (0.03, -0.3, 0.25), (0.1, -0.5, 0.4), (0.2, -0.8, 0.5)),
        *row("Tail", "Body", (0, 0.3, 0.2), (0, 0.6, 0.4), (0, 0.7, 0.7), (0, 0.5, 0.9)),
        *legs,
    )


def hexapod():
    """A machine whose six legs are stretched out to the sides at rest."""
    return creature(
        ("base", "", (0, 0, 0.15)),
        *(
            part
            for k, y in enumerate((-0.15, 0, 0.15))
            for part in row(f"limb{k}_L", "base", (0.1, y, 0.15), (0.15, 1.2 * y, 0.15), (0.25, 1.5 * y, 0.2))
        ),
    )


def six_legs(front=-1.0, tail=False):
    """A body of two bones on six legs, with a long neck and names that say nothing; it faces `front` Y."""
    neck = ((0.6, 0.95), (0.7, 1.15), (0.78, 1.35), (0.82, 1.5), (0.95, 1.5))
    legs = [
        part
        for k, (y, parent) in enumerate(((-0.3, "a"), (0.05, "a"), (0.4, "b")))
        for part in row(
            f"{'pqr'[k]}_L",
            parent,
            *((x, (y + z) * front, h) for x, z, h in ((0.15, 0, 0.75), (0.22, -0.05, 0.4), (0.22, 0, 0.05))),
        )
    ]
    behind = ((-0.45, 0.75), (-0.7, 0.7), (-0.95, 0.65)) if tail else ()
    return creature(
        ("o", "", (0, 0, 0)),
        ("a", "o", (0, 0, 0.8)),
        ("b", "a", (0, 0.4 * front, 0.8)),
        *row("n", "b", *((0, y * front, z) for y, z in neck)),
        *row("t", "a", *((0, y * front, z) for y, z in behind)),
        *legs,
    )


def machine():
    """Four legs, the same in front and behind, that end at their shins; it faces +X."""
    bones = [B("base", (0, 0, 0.4), (0.1, 0, 0.4))]
    for end, x in (("F", 0.18), ("R", -0.18)):
        for side, y in (("L", 1), ("R", -1)):
            hip, knee = (x, 0.13 * y, 0.4), (x, 0.13 * y, 0.2)
            bones.append(B(f"{end}{side}_hip", (x, 0.05 * y, 0.4), hip, "base"))
            bones.append(B(f"{end}{side}_thigh", hip, knee, f"{end}{side}_hip"))
            bones.append(B(f"{end}{side}_calf", knee, (x, 0.13 * y, 0.0), f"{end}{side}_thigh"))
    return bones


def dog():
    """Its root is in the chest: loins and hind legs hang behind, neck and skull ahead of it."""
    fore = ((0.02, -0.22, 0.6), (0.08, -0.35, 0.45), (0.08, -0.25, 0.28), (0.08, -0.27, 0.06))
    names = ("scapula_L", "upper_arm_L", "lower_arm_L", "hand_L")
    hind = (
        ("upper_leg_L", 0.3, 0.5),
        ("lower_leg_L", 0.22, 0.3),
        ("foot_L", 0.38, 0.15),
        ("toe_L", 0.32, 0.02),
    )
    above = ("torso", *names)
    return creature(
        ("torso", "", (0, -0.1, 0.6)),
        *row("lumbar", "torso", (0, 0.0, 0.62), (0, 0.1, 0.62)),
        ("pelvis", "lumbar_2", (0, 0.25, 0.6)),
        *row("caudal", "pelvis", (0, 0.4, 0.58), (0, 0.5, 0.5), (0, 0.6, 0.45), (0, 0.7, 0.45)),
        *row("cervical", "torso", (0, -0.3, 0.65), (0, -0.4, 0.7)),
        ("skull", "cervical_2", (0, -0.5, 0.78)),
        ("jaw", "skull", (0, -0.52, 0.74)),
        *((name, above[k], fore[k]) for k, name in enumerate(names)),
        *(
            (name, "pelvis" if k == 0 else hind[k - 1][0], (0.08, y, z))
            for k, (name, y, z) in enumerate(hind)
        ),
    )


def lizard_with_claws():
    """Its thighs lead level to the sides, with a last bone that marks the end of its toes."""

    def sprawling(name, parent, y):
        heads = [(0.08, 0, 0.15), (0.25, 0, 0.15), (0.28, -0.02, 0.04), (0.3, -0.08, 0.01), (0.31, -0.12, 0)]
        return leg(name, parent, *((x, y + along, z) for x, along, z in heads))

    return creature(
        ("root", "", (0, 0, 0)),
        ("Hips", "root", (0, 0.3, 0.15)),
        *row("Spine", "Hips", (0, 0.15, 0.15), (0, 0, 0.15), (0, -0.2, 0.15)),
        ("Neck", "Spine_3", (0, -0.3, 0.17)),
        ("Head", "Neck", (0, -0.4, 0.18)),
        ("Jaw", "Head", (0, -0.45, 0.15)),
        *row("Tail", "Hips", *((0, 0.4 + 0.2 * k, 0.12) for k in range(8))),
        *sprawling("Front_Leg", "Spine_3", -0.2),
        *sprawling("Back_Leg", "Hips", 0.3),
    )


def frog():
    """Its thighs lead to the front, folded, and no name tells which bone is which."""
    return creature(
        ("root", "", (0, 0, 0)),
        ("Hips", "root", (0, 0.2, 0.2)),
        *row("Spine", "Hips", (0, 0, 0.25), (0, -0.15, 0.3)),
        ("Head", "Spine_2", (0, -0.3, 0.32)),
        ("Jaw", "Head", (0, -0.35, 0.28)),
        *row(
            "Back_Leg_L", "Hips", (0.06, 0.2, 0.18), (0.3, -0.05, 0.15), (0.12, 0.25, 0.1), (0.3, 0.1, 0.02)
        ),
        *row("Front_Leg_L", "Spine_2", (0.1, -0.15, 0.25), (0.2, -0.1, 0.15), (0.2, -0.2, 0.02)),
    )


def centaur_without_shoulders():
    """A human's trunk and arms in front of four legs."""

    def hoofed(name, parent, y):
        heads = ((0.15, y, 1), (0.15, y - 0.03, 0.5), (0.15, y + 0.03, 0.12), (0.15, y - 0.08, 0.02))
        return leg(name, parent, *heads)

    return creature(
        ("root", "", (0, 0, 0)),
        ("Hips", "root", (0, 0.8, 1.1)),
        *row("Spine", "Hips", (0, 0.5, 1.1), (0, 0.1, 1.1)),
        *row("Torso", "Spine_2", (0, -0.1, 1.2), (0, -0.12, 1.5)),
        ("Neck", "Torso_2", (0, -0.12, 1.75)),
        ("Head", "Neck", (0, -0.14, 1.85)),
        *row("Arm_L", "Torso_2", (0.2, -0.1, 1.7), (0.3, -0.1, 1.4), (0.32, -0.2, 1.15)),
        ("Hand_L", "Arm_3_L", (0.33, -0.22, 1.1)),
        *row("Tail", "Hips", (0, 0.95, 1.1), (0, 1.1, 0.9), (0, 1.15, 0.6)),
        *hoofed("Front_Leg", "Spine_2", 0),
        *hoofed("Back_Leg", "Hips", 0.8),
    )


def low_poly(knee=-0.02):
    """A human as old games have it: arms and legs of two bones, no hands, no feet, one bone for the body."""
    bones = [B("Body", (0, 0, 0.9), (0, 0, 1.4)), B("Head", (0, 0, 1.42), (0, 0, 1.75), "Body")]
    for side, sign in (("L", 1.0), ("R", -1.0)):
        limbs = {
            "Arm": ((0.2, 0, 1.38), (0.45, 0.03, 1.38), (0.7, 0, 1.38)),
            "Leg": ((0.1, 0, 0.88), (0.1, knee, 0.45), (0.1, 0, 0.02)),
        }
        for name, (top, middle, end) in limbs.items():
            places = [(sign * x, y, z) for x, y, z in (top, middle, end)]
            bones.append(B(f"{name}_1_{side}", *places[:2], "Body"))
            bones.append(B(f"{name}_2_{side}", *places[1:], f"{name}_1_{side}"))
    return bones


def upright_human():
    """A human with hands, feet and a neck."""
    return creature(
        ("Hips", "", (0, 0, 0.95)),
        *row("Spine", "Hips", (0, 0, 1.1), (0, 0, 1.3)),
        ("Neck", "Spine_2", (0, 0, 1.5)),
        ("Head", "Neck", (0, 0, 1.6)),
        *row("Arm_L", "Spine_2", (0.18, 0.03, 1.43), (0.44, 0.07, 1.3), (0.68, 0.02, 1.18)),
        *row("Leg_L", "Hips", (0.1, 0, 0.9), (0.1, -0.02, 0.48), (0.1, 0.03, 0.08), (0.1, -0.1, 0.02)),
    )


def pterosaur(nudge=lambda: 0.0):
    """Wings of five bones with claws, steep legs, a crest; `nudge` shifts what is beside the middle."""
    rows = {
        "hips": ("", (0, 0.2, 0.9), (0, 0.05, 0.95)),
        "spine": ("hips", (0, 0.05, 0.95), (0, -0.2, 1.0)),
        "neck": ("spine", (0, -0.2, 1.0), (0, -0.45, 1.15), (0, -0.7, 1.3)),
        "head": ("neck_2", (0, -0.7, 1.3), (0, -1.4, 1.3)),
        "crest": ("head", (0, -0.75, 1.35), (0, -0.4, 1.55)),
        "wing_L": (
            *("spine", (0.12, -0.15, 1.0), (0.45, -0.05, 1.05), (0.85, -0.2, 1.05), (1.0, -0.2, 1.05)),
            *((1.6, 0.1, 1.0), (2.1, 0.5, 0.95)),
        ),
        "leg_L": ("hips", (0.1, 0.2, 0.85), (0.14, 0.05, 0.5), (0.14, 0.25, 0.15), (0.14, 0.1, 0.02)),
    }
    for claw in range(3):
        ends = [(1.0, -0.22, 1.05), (1.05 + 0.02 * claw, -0.3, 1.05), (1.08 + 0.03 * claw, -0.36, 1.04)]
        rows[f"claw{claw}_L"] = ("wing_3_L", *ends)
    bones = []
    for name, (parent, *places) in rows.items():
        word, _, side = name.partition("_")
        above = parent
        for k, ends in enumerate(pairwise(places), 1):
            both = [[each + nudge() for each in end] if side else list(end) for end in ends]
            bone = "_".join([word, *([str(k)] if len(places) > 2 else []), *([side] if side else [])])
            bones.append(B(bone, *both, above))
            if side:
                mirrored = [[-end[0], *end[1:]] for end in both]
                other = above[:-2] + "_R" if above.endswith("_L") else above
                bones.append(B(bone[:-2] + "_R", *mirrored, other))
            above = bone
    return bones


def crab():
    """Eight legs, and claws that are held off the ground."""
    legs = [
        part
        for leg, y in enumerate((-0.2, -0.05, 0.1, 0.25))
        for part in row(f"Leg{leg}_L", "Body", (0.15, y * 0.6, 0.2), (0.4, y, 0.35), (0.65, y * 1.3, 0.02))
    ]
    return creature(
        ("root", "", (0, 0, 0)),
        ("Body", "root", (0, 0, 0.2)),
        *row("Claw_L", "Body", (0.15, -0.2, 0.2), (0.4, -0.35, 0.25), (0.3, -0.6, 0.2)),
        ("Pincer_L", "Claw_3_L", (0.25, -0.7, 0.2)),
        ("Eye_L", "Body", (0.05, -0.25, 0.28)),
        *legs,
    )


def mermaid():
    """A human down to the hips, then a fish."""
    return creature(
        ("root", "", (0, 0, 0)),
        ("Hips", "root", (0, 0, 1)),
        *row("Spine", "Hips", (0, 0, 1.15), (0, 0, 1.3)),
        ("Neck", "Spine_2", (0, 0, 1.5)),
        ("Head", "Neck", (0, 0, 1.6)),
        *row("Arm_L", "Spine_2", (0.15, 0, 1.45), (0.45, 0, 1.4), (0.7, 0, 1.35)),
        ("Hand_L", "Arm_3_L", (0.72, 0, 1.34)),
        *row("Tail", "Hips", *((0, 0, 0.9 - 0.2 * k) for k in range(5))),
        *row("Fluke_L", "Tail_5", (0.1, 0, 0.05), (0.2, 0, 0)),
    )


def seahorse():
    """Two rows from its middle; the snout beyond the head is as long as what leads to that."""
    return creature(
        ("root", "", (0, 0, 0.5)),
        ("Body", "root", (0, 0, 0.6)),
        *row("Front", "Body", (0, -0.05, 0.8), (0, -0.05, 0.95)),
        ("Head", "Front_2", (0, -0.08, 1.05)),
        *row("Snout", "Head", (0, -0.2, 1), (0, -0.3, 0.98)),
        *row("Tail", "Body", *((0, 0.02 * k, 0.5 - 0.1 * k) for k in range(6))),
    )


def tyrannosaur():
    """It stands as upright as a human, on its toes."""
    heads = ((0.2, 0, 1.3), (0.22, -0.25, 0.9), (0.22, 0.2, 0.5), (0.22, 0.05, 0.1), (0.22, -0.05, 0.03))
    return creature(
        ("root", "", (0, 0, 0)),
        ("Hips", "root", (0, 0, 1.4)),
        *row("Spine", "Hips", (0, -0.05, 1.6), (0, -0.1, 1.9)),
        ("Neck", "Spine_2", (0, -0.15, 2.2)),
        ("Head", "Neck", (0, -0.2, 2.4)),
        ("Jaw", "Head", (0, -0.3, 2.35)),
        *row("Tail", "Hips", *((0, 0.3 + 0.3 * k, 1.2 - 0.2 * k) for k in range(5))),
        *row("Arm_L", "Spine_2", (0.2, -0.15, 1.9), (0.35, -0.2, 1.6), (0.35, -0.5, 1.5)),
        *leg("Leg", "Hips", *heads),
    )


def dolphin():
    """Its flippers are shorter than its flukes, and both are short beside its body."""
    return creature(
        ("root", "", (0, 0, 0)),
        ("base", "root", (0, 0, 0.9)),
        *row("torso", "base", (0, -0.2, 0.9), (0, -0.5, 0.9)),
        ("head", "torso_2", (0, -0.8, 0.9)),
        ("beak", "head", (0, -1.0, 0.85)),
        *row("flipper_L", "torso_1", (0.2, -0.2, 0.8), (0.35, -0.1, 0.7)),
        *row("tail", "base", (0, 0.4, 0.9), (0, 0.8, 0.9), (0, 1.1, 0.9)),
        *row("fluke_L", "tail_3", (0.1, 1.2, 0.9), (0.4, 1.4, 0.9)),
    )


# Creatures whose bones are called by the roles that they have without names, with "@" for the side where it
# does not come first; "-" begins those without one.


def called(part, parent, *heads):
    """Rows of a chain, called "part", "part 2" and so on, or "1st part, bone 2"."""
    side = "_L" if part.endswith("_L") else ""
    part = part.removesuffix("_L")
    rows = []
    for bone, head in enumerate(heads, 1):
        count = f"{', bone' if part[0].isdigit() else ''} {bone}" if bone > 1 else ""
        rows.append((f"{part}{count}{side}", parent, head))
        parent = rows[-1][0]
    return rows


def joined(parent, parts, heads):
    """Rows of a limb, a bone for each part."""
    rows = []
    for part, head in zip(parts, heads, strict=True):
        rows.append((part, parent, head))
        parent = part
    return rows


ARM = ("shoulder_L", "upper arm_L", "lower arm_L", "hand_L")
LEG = ("thigh_L", "shin_L", "foot_L", "toe_L")
FRONT_LEG = tuple(f"front {part}" for part in LEG)


def upright(arm, leg_heads, extra=()):
    return creature(
        ("hips", "", (0, 0, 1)),
        *called("spine", "hips", (0, 0, 1.1), (0, 0, 1.25), (0, 0, 1.4)),
        ("neck", "spine 3", (0, 0, 1.5)),
        ("head", "neck", (0, 0, 1.6)),
        *joined("spine 3", ARM[-len(arm) :], arm),
        *joined("hips", LEG, leg_heads),
        *extra,
    )


def swan():
    """Its neck rises above a level body, and its wings are two bones stretched out, as simple arms are."""
    neck = ((-0.2, 0.42), (-0.3, 0.5), (-0.33, 0.62), (-0.3, 0.74), (-0.25, 0.85), (-0.24, 0.95))
    return creature(
        ("hips", "", (0, 0.1, 0.4)),
        ("spine", "hips", (0, -0.05, 0.42)),
        *called("neck", "spine", *((0, *place) for place in neck)),
        ("head", "neck 6", (0, -0.3, 1.02)),
        ("-beak", "head", (0, -0.38, 1.0)),
        *called("wing_L", "spine", (0.08, -0.15, 0.46), (0.5, -0.12, 0.5)),
        *called("tail", "hips", (0, 0.12, 0.4), (0, 0.25, 0.4)),
        *joined("hips", LEG[:3], ((0.07, 0.08, 0.36), (0.07, 0.02, 0.22), (0.07, 0.08, 0.05))),
    )


def ogre():
    """Its arms are so long that its legs are short beside its span."""
    arm = ((0.05, 0, 1.4), (0.3, 0, 1.4), (1.3, 0.05, 1.4), (2.3, 0, 1.4))
    return upright(arm, ((0.2, 0, 0.6), (0.2, -0.02, 0.35), (0.2, 0.02, 0.08), (0.2, -0.1, 0.02)))


def fairy():
    """Two pairs of wings on its back, longer than its arms, which have no fingers."""
    arm = ((0.03, 0, 1.42), (0.17, 0, 1.42), (0.45, 0, 1.42), (0.72, 0, 1.42))
    wings = (
        *called("wing_L", "spine 3", (0.05, 0.08, 1.4), (0.4, 0.3, 1.7), (0.9, 0.4, 1.8)),
        *called("2nd @ wing_L", "spine 3", (0.05, 0.081, 1.3), (0.35, 0.3, 1.1), (0.7, 0.4, 0.9)),
    )
    return upright(arm, ((0.1, 0, 0.95), (0.1, -0.02, 0.5), (0.1, 0.02, 0.08), (0.1, -0.1, 0.02)), wings)


def lamia():
    """Arms without fingers on a trunk that rises from a snake's tail."""
    return creature(
        ("hips", "", (0, 0, 0.1)),
        *called("tail", "hips", *((0, 0.25 + 0.2 * k, 0.08) for k in range(8))),
        *called("spine", "hips", (0, 0, 0.2), (0, -0.05, 0.6), (0, 0, 1.0)),
        ("neck", "spine 3", (0, 0, 1.35)),
        ("head", "neck", (0, 0, 1.45)),
        *joined("spine 3", ARM[1:], ((0.15, 0, 1.3), (0.4, 0, 1.3), (0.65, 0, 1.3))),
    )


def ostrich():
    """A long neck whose bones are as long as its head."""
    return creature(
        ("hips", "", (0, 0.3, 1.2)),
        *called("neck", "hips", (0, -0.1, 1.25), (0, -0.35, 1.5), (0, -0.42, 1.75), (0, -0.42, 2.0)),
        ("head", "neck 4", (0, -0.4, 2.2)),
        *called("tail", "hips", (0, 0.35, 1.2), (0, 0.6, 1.3), (0, 0.8, 1.3)),
        *called("wing_L", "hips", (0.2, 0, 1.35), (0.45, 0.2, 1.3), (0.7, 0.35, 1.25)),
        *joined("hips", LEG, ((0.15, 0.15, 1.15), (0.17, -0.02, 0.8), (0.17, 0.2, 0.35), (0.17, 0.1, 0.06))),
    )


def tyrant():
    """It leans forwards on two legs; its arms are short beside its tail."""
    return creature(
        ("hips", "", (0, 0.3, 1.6)),
        *called("spine", "hips", (0, 0, 1.65), (0, -0.4, 1.7), (0, -0.8, 1.8)),
        *called("neck", "spine 3", (0, -1.1, 2.0), (0, -1.3, 2.2)),
        ("head", "neck 2", (0, -1.5, 2.3)),
        ("-jaw", "head", (0, -1.55, 2.2)),
        *joined("spine 3", ARM[1:], ((0.2, -0.8, 1.5), (0.25, -0.75, 1.25), (0.25, -0.95, 1.15))),
        *joined("hips", LEG, ((0.25, 0.25, 1.5), (0.3, -0.1, 1.0), (0.3, 0.3, 0.55), (0.3, 0.2, 0.08))),
        *called("tail", "hips", *((0, 0.7 + 0.4 * k, 1.6 - 0.05 * k) for k in range(6))),
    )


def on_four_legs(fore, hind, *extra, chest="spine 3"):
    return (*joined(chest, FRONT_LEG, fore), *joined("hips", LEG, hind), *extra)


def giraffe(*beyond):
    """A straight neck of equal bones.

    Args:
        beyond: heads of further bones on the head.
    """
    return creature(
        ("hips", "", (0, 0.7, 2.0)),
        *called("spine", "hips", (0, 0.4, 2.05), (0, 0, 2.1), (0, -0.4, 2.15)),
        *called("neck", "spine 3", *((0, -0.7 - 0.08 * k, 2.2 + 0.35 * k) for k in range(6))),
        ("head", "neck 6", (0, -1.18, 4.3)),
        *row("-end", "head", *beyond),
        *called("tail", "hips", (0, 0.85, 2.0), (0, 0.95, 1.7), (0, 1, 1.4)),
        *on_four_legs(
            ((0.2, -0.5, 1.9), (0.2, -0.45, 1.2), (0.2, -0.45, 0.65), (0.2, -0.5, 0.1)),
            ((0.2, 0.65, 1.9), (0.2, 0.5, 1.3), (0.2, 0.75, 0.75), (0.2, 0.7, 0.1)),
        ),
    )


def giraffe_with_an_end():
    return giraffe((0, -1.48, 4.25))


def crocodile():
    """Legs that are short beside its length."""
    return creature(
        ("hips", "", (0, 0.8, 0.22)),
        *called("spine", "hips", (0, 0.5, 0.24), (0, 0.1, 0.25), (0, -0.3, 0.24)),
        ("neck", "spine 3", (0, -0.5, 0.24)),
        ("head", "neck", (0, -0.7, 0.24)),
        ("-jaw", "head", (0, -0.7, 0.2)),
        *called("tail", "hips", *((0, 1 + 0.25 * k, 0.2) for k in range(7))),
        *on_four_legs(
            *(
                ((0.12, y, 0.2), (0.32, y, 0.18), (0.35, y - 0.05, 0.06), (0.36, y - 0.15, 0.02))
                for y in (-0.3, 0.8)
            )
        ),
    )


def seal():
    """A body that slopes down to the hind flippers, and a root on the ground far ahead."""
    return creature(
        ("-ground", "", (0, -1.2, 0)),
        ("hips", "-ground", (0, 0.2, 0.22)),
        ("spine", "hips", (0, -0.1, 0.26)),
        *called("neck", "spine", (0, -0.4, 0.35), (0, -0.55, 0.5)),
        ("head", "neck 2", (0, -0.62, 0.62)),
        ("-jaw", "head", (0, -0.66, 0.6)),
        *row("-loin", "hips", (0, 0.25, 0.22), (0, 0.5, 0.17), (0, 0.75, 0.12)),
        *joined("spine", FRONT_LEG[:3], ((0.16, -0.3, 0.24), (0.3, -0.25, 0.1), (0.42, -0.15, 0.02))),
        *joined("-loin_3", LEG[:3], ((0.03, 0.95, 0.08), (0.07, 1.1, 0.06), (0.12, 1.25, 0.01))),
    )


def wyvern(*extra):
    """Wings without feathers above four legs."""
    return creature(
        ("hips", "", (0, 0.9, 1.3)),
        *called("spine", "hips", (0, 0.5, 1.35), (0, 0, 1.4), (0, -0.6, 1.4)),
        *called("neck", "spine 3", (0, -0.85, 1.55), (0, -1.1, 1.8), (0, -1.25, 2.1)),
        ("head", "neck 3", (0, -1.4, 2.3)),
        *called("tail", "hips", *((0, 1.2 + 0.35 * k, 1.25 - 0.12 * k) for k in range(7))),
        *called("wing_L", "spine 3", (0.15, -0.4, 1.5), (0.8, -0.2, 2.0), (1.8, 0, 1.8), (2.6, 0.3, 1.5)),
        *on_four_legs(
            ((0.25, -0.65, 1.2), (0.3, -0.5, 0.7), (0.3, -0.65, 0.3), (0.3, -0.7, 0.05)),
            ((0.3, 0.85, 1.2), (0.3, 0.65, 0.75), (0.3, 0.95, 0.35), (0.3, 0.85, 0.06)),
        ),
        *extra,
    )


def hydra():
    """Three necks side by side."""
    return wyvern(
        *called("neck_L", "spine 3", (0.15, -0.85, 1.5), (0.4, -1.1, 1.7), (0.6, -1.25, 1.95)),
        ("head_L", "neck 3_L", (0.7, -1.4, 2.1)),
        ("-jaw_L", "head_L", (0.72, -1.6, 2.0)),
    )


def elephant():
    """Ears and tusks beside its trunk."""
    return creature(
        ("hips", "", (0, 1.0, 2.2)),
        *called("spine", "hips", (0, 0.6, 2.3), (0, 0, 2.4), (0, -0.6, 2.3)),
        ("neck", "spine 3", (0, -0.9, 2.4)),
        ("head", "neck", (0, -1.2, 2.5)),
        *called("trunk", "head", *((0, -1.5 - 0.07 * k, 2.1 - 0.3 * k) for k in range(6))),
        *row("-tusk_L", "head", (0.2, -1.4, 2.0), (0.25, -1.8, 1.8)),
        *row("-ear_L", "head", (0.3, -1.1, 2.6), (0.7, -1.0, 2.4)),
        *called("tail", "hips", (0, 1.2, 2.1), (0, 1.3, 1.7), (0, 1.3, 1.3)),
        *on_four_legs(
            ((0.4, -0.7, 2.0), (0.4, -0.65, 1.2), (0.4, -0.7, 0.5), (0.4, -0.8, 0.1)),
            ((0.4, 0.9, 2.0), (0.4, 0.75, 1.2), (0.4, 0.9, 0.5), (0.4, 0.8, 0.1)),
        ),
    )


def armed_horse(arm_names=ARM, front=FRONT_LEG, front_heads=()):
    """A centaur without fingers."""
    arm = ((0.03, -0.45, 2.2), (0.17, -0.45, 2.15), (0.45, -0.45, 2.15), (0.72, -0.45, 2.15))
    leg_heads = ((0.15, -0.35, 1.2), (0.15, -0.3, 0.75), (0.15, -0.33, 0.35), (0.15, -0.38, 0.06))
    return creature(
        ("hips", "", (0, 0.6, 1.3)),
        *called("spine", "hips", (0, 0.3, 1.35), (0, 0, 1.35), (0, -0.3, 1.35)),
        *joined("spine 3", ("spine 4", "spine 5"), ((0, -0.45, 1.5), (0, -0.45, 1.8))),
        *joined(
            "spine 5", ("spine 6", "neck", "head"), ((0, -0.45, 2.05), (0, -0.45, 2.25), (0, -0.47, 2.35))
        ),
        *called("tail", "hips", (0, 0.75, 1.3), (0, 0.9, 1.1), (0, 0.95, 0.8)),
        *joined("spine 6", arm_names, arm),
        *joined("spine 3", front, front_heads or leg_heads),
        *joined("hips", LEG, ((0.15, 0.55, 1.2), (0.15, 0.45, 0.8), (0.15, 0.65, 0.45), (0.15, 0.6, 0.06))),
    )


def armed_horse_with_shoulder_blades():
    """Its arms have shoulders as its front legs have, and are counted after these."""
    heads = (
        (0.1, -0.1, 1.4),
        (0.15, -0.45, 1.1),
        (0.15, -0.2, 0.75),
        (0.15, -0.33, 0.35),
        (0.15, -0.38, 0.06),
    )
    return armed_horse(tuple(f"2nd @ {part}" for part in ARM), ("shoulder_L", *FRONT_LEG), heads)


def drake():
    """Four legs, and wings whose fingers all begin at the wrist."""
    wrist, tips = (1.4, -0.5, 2.5), ((2.6, -0.2, 2.3), (2.4, 0.6, 2.1), (1.9, 1.1, 1.9))
    fingers = [
        called(
            "wing 3_L" if number == 0 else f"-finger{number}_L",
            "wing 2_L",
            wrist,
            tuple(0.5 * (a + b) for a, b in zip(wrist, tip, strict=True)),
        )
        for number, tip in enumerate(tips)
    ]
    return creature(
        ("hips", "", (0, 0.7, 1.4)),
        *called("spine", "hips", (0, 0.4, 1.45), (0, -0.1, 1.5), (0, -0.5, 1.5)),
        ("neck", "spine 3", (0, -0.8, 1.65)),
        ("head", "neck", (0, -1.05, 1.9)),
        *called("tail", "hips", *((0, 1.1 + 0.4 * k, 1.35 - 0.12 * k) for k in range(6))),
        *called("wing_L", "spine 3", (0.15, -0.35, 1.65), (0.6, -0.2, 2.1)),
        *(row for finger in fingers for row in finger),
        *on_four_legs(
            ((0.22, -0.45, 1.4), (0.3, -0.3, 0.85), (0.3, -0.45, 0.4), (0.3, -0.5, 0.08)),
            ((0.25, 0.7, 1.35), (0.32, 0.5, 0.8), (0.32, 0.85, 0.45), (0.32, 0.75, 0.1)),
        ),
    )


def insect_legs(parent, *places):
    """Legs that rise to their knees, each at a place along the body."""
    return [
        part
        for count, (y, spread) in zip(("1st", "2nd", "3rd"), places, strict=False)
        for part in called(
            f"{count} @ leg_L", parent, (0.08, y, 0.48), (0.35, spread, 0.6), (0.5, 1.2 * spread, 0.02)
        )
    ]


def mantis():
    """Arms on its neck, and four legs that begin at one bone."""
    return creature(
        ("hips", "", (0, 0.2, 0.5)),
        *called("neck", "hips", (0, 0, 0.55), (0, -0.25, 0.8)),
        ("head", "neck 2", (0, -0.4, 1.0)),
        *called("tail", "hips", (0, 0.3, 0.5), (0, 0.6, 0.45), (0, 0.9, 0.42)),
        *insect_legs("hips", (-0.1, -0.3), (0.15, 0.2)),
        *joined("neck 2", ARM[1:], ((0.06, -0.25, 0.75), (0.12, -0.5, 0.5), (0.12, -0.55, 0.8))),
    )


def ant():
    """Its head is one bone, with feelers; its abdomen is longer."""
    return creature(
        ("hips", "", (0, 0, 0.5)),
        ("head", "hips", (0, -0.3, 0.52)),
        *row("-feeler_L", "head", (0.05, -0.4, 0.58), (0.1, -0.55, 0.7), (0.15, -0.7, 0.65)),
        *called("tail", "hips", (0, 0.15, 0.5), (0, 0.35, 0.53), (0, 0.7, 0.5)),
        *insect_legs("hips", (-0.12, -0.3), (0, 0.02), (0.12, 0.3)),
    )


def winged_beetle():
    """Six legs at one bone, and wings above them."""
    return creature(
        ("hips", "", (0, 0, 0.5)),
        *called("wing_L", "hips", (0.05, 0.02, 0.6), (0.4, 0.1, 0.8), (0.9, 0.2, 0.9)),
        *insect_legs("hips", (-0.12, -0.3), (0, 0.02), (0.12, 0.3)),
    )
