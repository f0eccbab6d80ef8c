"""Bones that are planted, swapped and let go: held against what Blender plays of the baked action."""

from __future__ import annotations

import itertools
import math
import random

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion, Vector
from planted import (
    STILL,
    assert_still,
    biped,
    constrain,
    key_influence,
    keyed_empty,
    limits_hold,
    played,
    standing,
)

SAME = 1e-6  # [m] what a swap may move


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_planted_the_base_stays_still(ext, bake, seed):
    """Feet and hands planted at random, the object moves, targets too: the first planted row never slides."""
    rng = random.Random(seed)
    rig = biped()
    frames = range(1, 31)
    spans = {}
    for tip in ("foot.L", "hand.R", "foot.R", "hand.L"):
        a = rng.randrange(1, 25)
        spans[tip] = (a, a + rng.randrange(2, 12))
        row = constrain(rig, "PLANT", tip, f"Plant {tip}", chain_length=4)
        key_influence(row, [spans[tip]], frames)
    place = lambda: (rng.uniform(-0.1, 0.1), rng.uniform(-0.2, 0.2), rng.uniform(0.75, 0.95))  # noqa: E731
    hips = keyed_empty("Hips", [(frame, place()) for frame in (1, 10, 20, 30)])
    constrain(rig, "REACH", "hips", "Hips", hips, 1, use_tail=False)
    look = keyed_empty("Look", [(frame, (rng.uniform(-1, 1), -1.0, 1.5)) for frame in (1, 15, 30)])
    head = constrain(rig, "REACH", "head", "Look", look, 2, use_position=False, rotation="DIRECTION")
    head.influence = 0.6
    if seed % 2:
        rig.rotation_euler = (0, 0, 0.1)
        rig.keyframe_insert("location", frame=1)
        rig.location = (0.2, 0.1, 0)
        rig.keyframe_insert("location", frame=30)
    rig.ccd_rig.solver.restarts = 1
    rigs.update()
    settings = bake.BakeSettings(1, 30, step=1 + seed % 3)
    bake.bake(bpy.context.scene, rig, settings)
    names = list(spans)
    seen = played(rig, names, frames)
    assert np.isfinite(seen).all()
    solved = settings.solved_frames()
    bases = [next((n for n in names if spans[n][0] <= frame <= spans[n][1]), "") for frame in solved]
    for before, after, base, again in zip(solved, solved[1:], bases, bases[1:], strict=False):
        if base and base == again:
            stand = seen[before - 1 : after, names.index(base), :3, 3]
            assert np.linalg.norm(stand - stand[0], axis=-1).max() < 1e-5, (base, before)
    limits_hold(ext, rig, frames)


@pytest.mark.parametrize("overlap", [0, 2])
def test_a_swap_moves_nothing(bake, overlap):
    """Nothing else changes when the base does: so nothing moves, on one foot as on the other."""
    rig = standing()
    rows = rig.ccd_rig.constraints
    key_influence(rows["Plant L"], [(1, 10 + overlap)], range(1, 21))
    key_influence(rows["Plant R"], [(11, 20)], range(1, 21))
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert report.unsolved_count() == 0
    names = [bone.name for bone in rig.pose.bones]
    seen = played(rig, names, range(1, 21))
    assert np.abs(seen[0, names.index("hips"), :3, 3] - (0, 0, 0.86)).max() < STILL
    for after in seen[1:]:
        assert np.abs(after - seen[0]).max() < SAME


def test_the_base_goes_to_the_pelvis_and_back(bake):
    """A planted pelvis holds the figure; the feet are posed by keys meanwhile, and held again after that."""
    rig = biped()
    for name, tip, length, spans in (
        ("Foot", "foot.L", 4, [(1, 10), (21, 30)]),
        ("Pelvis", "hips", 1, [(11, 20)]),
    ):
        key_influence(constrain(rig, "PLANT", tip, name, chain_length=length), spans, range(1, 31))
    knee = rig.pose.bones["shin.L"]
    for frame, turn in ((1, 0.0), (30, 1.2)):
        knee.rotation_quaternion = Quaternion((1, 0, 0), turn)
        knee.keyframe_insert("rotation_quaternion", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 30))
    assert report.unsolved_count() == 0
    seen = played(rig, ["foot.L", "hips"], range(1, 31))
    heads = seen[:, :, :3, 3]
    for span, k in ((slice(0, 10), 0), (slice(10, 20), 1), (slice(20, 30), 0)):
        assert np.abs(heads[span, k] - heads[span, k][0]).max() < 2 * SAME
        assert np.abs(heads[span, 1 - k] - heads[span, 1 - k][0]).max() > 1e-3  # the other one moves
    steps = np.linalg.norm(np.diff(heads, axis=0), axis=-1)
    assert steps.max() < 0.05  # no jump at a swap


@pytest.mark.parametrize("scale", [(1, 1, 1), (-1, 1, 1)])
def test_held_in_the_world_while_the_object_moves(bake, scale):
    rig = standing()
    rig.scale = scale
    for frame, place in ((1, (0, 0, 0)), (20, (0.1, -0.1, 0.05))):
        rig.location = place
        rig.rotation_euler = (0, 0, 0.02 * frame)
        rig.keyframe_insert("location", frame=frame)
        rig.keyframe_insert("rotation_euler", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert report.unsolved_count() == 0
    seen = played(rig, ["foot.L", "foot.R"], range(1, 21))
    assert_still(seen, range(1, 21), {"L": [(1, 20)], "R": [(1, 20)]})


def test_held_at_a_target(bake):
    """With a target the bone is where that is, and turned as that is."""
    rig = biped()
    target = rigs.empty("Stone")
    for frame, x in ((1, 0.1), (20, 0.5)):
        target.location = (x, 0.3, 0.2)
        target.rotation_euler = (0.3, 0.2 * x, 1.0)
        target.keyframe_insert("location", frame=frame)
        target.keyframe_insert("rotation_euler", frame=frame)
    constrain(rig, "PLANT", "foot.L", "Plant", target, 4)
    rigs.update()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20, step=4))
    assert report.unsolved_count() == 0
    for frame in range(1, 21):
        (foot,) = played(rig, ["foot.L"], [frame])[0]
        wanted = target.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world
        assert np.abs(foot - np.array(wanted)).max() < 1e-5, frame


def test_in_the_air_the_figure_goes_on_from_where_it_stands(bake):
    """A lift does not jump: the figure goes on as it is animated, from where it has been carried."""
    rig = biped()
    key_influence(constrain(rig, "PLANT", "foot.L", "Plant", chain_length=4), [(1, 10)], range(1, 21))
    thigh, hips = rig.pose.bones["thigh.L"], rig.pose.bones["hips"]
    for frame, turn, up in ((1, 0.0, 0.0), (10, 0.5, 0.0), (20, 0.5, 0.5)):
        thigh.rotation_quaternion = Quaternion((1, 0, 0), turn)
        thigh.keyframe_insert("rotation_quaternion", frame=frame)
        hips.location = (0, up, 0)  # along the bone: upwards
        hips.keyframe_insert("location", frame=frame)
    rig.ccd_rig.body = "FOLLOW_FEET"
    animated = played(rig, ["hips"], range(1, 21))[:, 0]
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    seen = played(rig, ["hips"], range(1, 21))[:, 0]
    assert np.linalg.norm(seen[9, :3, 3] - animated[9, :3, 3]) > 0.02  # it was carried
    drift = seen[9] @ np.linalg.inv(animated[9])
    for k in range(10, 20):
        assert np.abs(seen[k] - drift @ animated[k]).max() < 1e-5


def test_an_in_place_cycle_walks(bake):
    """Legs swing by their keys alone: with their feet planted by turns they carry the figure forwards."""
    rig = biped()
    frames = range(1, 50)
    for k, side in enumerate("LR"):
        spans = [(a, a + 11) for a in range(1 + 12 * k, 50, 24)]
        key_influence(constrain(rig, "PLANT", f"foot.{side}", side, chain_length=4), spans, frames)
        for frame in frames:
            turn = 0.3 * (1 if k else -1) * math.cos(math.pi * (frame - 1) / 12)
            for bone, sign in (("thigh", 1.0), ("foot", -1.0)):
                made = rig.pose.bones[f"{bone}.{side}"]
                made.rotation_quaternion = Quaternion((1, 0, 0), sign * turn)
                made.keyframe_insert("rotation_quaternion", frame=frame)
    names = ["hips", "foot.L", "foot.R", "thigh.L"]
    before = played(rig, names, frames)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 49))
    assert max(slid.played_distance for slid in report.foot_slips) < STILL
    seen = played(rig, names, frames)
    assert abs(before[-1, 0, 1, 3] - before[0, 0, 1, 3]) < SAME  # it was in place
    steps = np.diff(seen[:, 0, 1, 3])
    assert seen[-1, 0, 1, 3] < seen[0, 0, 1, 3] - 1.0  # four steps along -Y
    assert np.abs(steps).max() < 0.08  # and none of them jumps
    # The legs keep their own motion, seen from the hips.
    for matrices in (before, seen):
        matrices[:, 3] = np.linalg.inv(matrices[:, 0]) @ matrices[:, 3]
    assert np.abs(seen[:, 3] - before[:, 3]).max() < 1e-5


def test_a_leg_that_is_let_go_follows_its_keys_from_where_it_is(bake):
    rig = standing()
    rows = rig.ccd_rig.constraints
    key_influence(rows["Plant L"], [(1, 10)], range(1, 21))
    shin = rig.pose.bones["shin.L"]
    for frame, turn in ((10, 0.0), (20, 0.5)):
        shin.rotation_quaternion = Quaternion((1, 0, 0), turn)
        shin.keyframe_insert("rotation_quaternion", frame=frame)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    turns = []
    for frame in range(1, 21):
        bpy.context.scene.frame_set(frame)
        turns.append(shin.rotation_quaternion.copy())
    bent = turns[9].angle
    assert bent > 0.3  # the hips sink, so the knee bends
    assert abs(turns[19].angle - bent - 0.5) < 1e-4
    assert max(a.rotation_difference(b).angle for a, b in itertools.pairwise(turns)) < 0.1


def test_solve_holds_the_feet(ext):
    rig = standing(hips=(0.03, -0.05, 0.8))
    before = played(rig, ["foot.L", "foot.R"], [1])[0]
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    seen = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    for k, side in enumerate("LR"):
        assert np.abs(np.array(seen.pose.bones[f"foot.{side}"].matrix) - before[k]).max() < STILL
    assert (seen.pose.bones["hips"].head - Vector((0.03, -0.05, 0.8))).length < STILL
