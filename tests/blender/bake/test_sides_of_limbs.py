"""Knees and elbows bend to the side of their rest, whatever their targets are pulled to."""

from __future__ import annotations

import math
import random

import bpy
import pytest
import rigs
from mathutils import Vector
from operator_calls import bake as press_bake
from operator_calls import set_up
from playing import bends
from rigs import B

TURN = 10
"""Frames between two keys of a target."""
FOLDED = math.radians(170.0)
"""Bend of a leg that is as good as folded, and has no side."""


def hound(paws: bool) -> bpy.types.Object:
    """A hound whose legs have two bones each, and paws or none."""
    bones = [
        B("Hips", (0, 0.5, 0.75), (0, 0.3, 0.78)),
        B("Spine", (0, 0.3, 0.78), (0, 0, 0.8), "Hips"),
        B("Chest", (0, 0, 0.8), (0, -0.3, 0.78), "Spine"),
        B("Neck", (0, -0.3, 0.78), (0, -0.5, 0.98), "Chest"),
        B("Head", (0, -0.5, 0.98), (0, -0.75, 0.95), "Neck"),
        B("Tail1", (0, 0.5, 0.75), (0, 0.7, 0.72), "Hips"),
        B("Tail2", (0, 0.7, 0.72), (0, 0.9, 0.65), "Tail1"),
        B("Tail3", (0, 0.9, 0.65), (0, 1.1, 0.6), "Tail2"),
    ]
    for side, x in ((".L", 0.13), (".R", -0.13)):
        for part, carrier, hip, knee, ankle in (
            ("Hind", "Hips", (0.42, 0.72), (0.35, 0.4), (0.46, 0.05)),
            ("Front", "Chest", (-0.22, 0.7), (-0.14, 0.38), (-0.2, 0.05)),
        ):
            upper, lower = f"{part}Upper{side}", f"{part}Lower{side}"
            bones += [B(upper, (x, *hip), (x, *knee), carrier), B(lower, (x, *knee), (x, *ankle), upper)]
            if paws:
                bones.append(B(f"{part}Paw{side}", (x, *ankle), (x, ankle[0] - 0.12, 0.0), lower))
    return set_up(rigs.armature(bones))


@pytest.mark.parametrize("paws", [True, False])
def test_a_leg_whose_foot_goes_past_its_shoulder_bends_to_its_side(ext, paws):
    """Going on through the fold to the other side would turn joints less."""
    rig = hound(paws)
    row = next(
        each for each in rig.ccd_rig.constraints if each.tip == ("FrontPaw.L" if paws else "FrontLower.L")
    )
    bones = [rig.data.bones[name] for name in ("FrontUpper.L", "FrontLower.L")]
    reach, home = sum(bone.length for bone in bones), row.target.matrix_world.translation.copy()
    stops = [(0, 0, 0), (0, 0, 1), (-0.7, -0.7, 0.3), (0, 0.7, 0.5), (0, 0, -0.5), (1, 0, 0), (0, 0, 0)]
    for k, stop in enumerate(stops):
        rigs.put(row.target, home + reach * Vector(stop).normalized())
        row.target.keyframe_insert("location", frame=1 + TURN * k)
    frames = range(1, TURN * (len(stops) - 1) + 2)
    press_bake(frames[0], frames[-1])
    turned = bends(rig, "FrontUpper.L", "FrontLower.L", frames)
    assert [frame for frame, bend in zip(frames, turned, strict=True) if -FOLDED < bend < 0.0] == []


@pytest.mark.parametrize("seed", [6, 8, 11])
def test_legs_pulled_anywhere_bend_to_their_side_while_the_body_helps(ext, seed):
    """Four feet go to places within 0.7 m of their rest and back."""
    rng = random.Random(seed)
    rig = hound(paws=seed % 2 == 0)
    legs = {}
    for row in rig.ccd_rig.constraints:
        if not row.tip.startswith(("Hind", "Front")):
            continue
        upper = row.tip.replace("Paw", "Upper").replace("Lower", "Upper")
        legs[upper] = upper.replace("Upper", "Lower")
        home = row.target.matrix_world.translation.copy()
        ways = [Vector([rng.gauss(0.0, each) for each in (0.5, 1.0, 1.0)]) for _ in range(3)]
        ways = [way.normalized() * rng.uniform(0.07, 0.7) for way in ways]
        for k, way in enumerate([Vector(), *ways, Vector()]):
            rigs.put(row.target, home + way)
            row.target.keyframe_insert("location", frame=1 + TURN * k)
    assert len(legs) == 4 and rig.ccd_rig.body_helps
    frames = range(1, 4 * TURN + 2)
    press_bake(frames[0], frames[-1])
    for upper, lower in legs.items():
        turned = bends(rig, upper, lower, frames)
        assert [frame for frame, bend in zip(frames, turned, strict=True) if -FOLDED < bend < -1e-3] == []
