"""Knees and elbows bend to the side of their rest, whatever their targets are pulled to."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from mathutils import Vector
from operator_calls import bake as press_bake
from operator_calls import set_up
from playing import in_world
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


def bends(rig: bpy.types.Object, upper: str, lower: str, frames: range) -> list[float]:
    """Radians by which a limb is bent at frames, to the side of its rest."""
    turns = [rig.data.bones[name].matrix_local.to_3x3() for name in (upper, lower)]
    axis = turns[0].inverted() @ turns[0].col[1].cross(turns[1].col[1]).normalized()
    angles = []
    for frame in frames:
        pose = in_world(rig, frame)
        above, below = (pose[name].to_3x3().normalized() for name in (upper, lower))
        across = above @ axis
        along = [way - across * across.dot(way) for way in (above.col[1], below.col[1])]
        angles.append(math.atan2(across.dot(along[0].cross(along[1])), along[0].dot(along[1])))
    return angles


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
