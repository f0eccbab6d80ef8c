"""Planted bones: held against what Blender plays of the baked action."""

from __future__ import annotations

import itertools
import json
import math
import random

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Euler, Matrix, Quaternion, Vector
from rigs import B

STILL = 1e-4  # [m] what a planted bone may slide
SAME = 1e-6  # [m] what a swap may move
FLOAT32 = 2e-6  # of a pose that Blender evaluates end to end


@pytest.fixture
def bake(ext):
    return ext.module("ccd_rig.blender.bake.bake")


@pytest.fixture
def checks(ext):
    return ext.module("ccd_rig.blender.checks.setup")


@pytest.fixture
def errors(ext):
    return ext.module("ccd_rig.errors")


def biped():
    """A figure looking along -Y: root on the ground, hips, spine, legs with knees that bend, feet, arms."""
    bones = [
        B("root", (0, 0, 0), (0, 0.3, 0)),
        B("hips", (0, 0, 1.0), (0, 0, 1.2), "root"),
        B("spine", (0, 0, 1.2), (0, 0, 1.5), "hips", connect=True),
        B("head", (0, 0, 1.5), (0, 0, 1.8), "spine", connect=True),
    ]
    for side, x in (("L", 1), ("R", -1)):
        bones += [
            B(f"thigh.{side}", (0.1 * x, 0, 0.95), (0.1 * x, -0.03, 0.5), "hips"),
            B(f"shin.{side}", (0.1 * x, -0.03, 0.5), (0.1 * x, 0.02, 0.08), f"thigh.{side}", connect=True),
            B(f"foot.{side}", (0.1 * x, 0.02, 0.08), (0.1 * x, -0.12, 0.02), f"shin.{side}", connect=True),
            B(f"toe.{side}", (0.1 * x, -0.12, 0.02), (0.1 * x, -0.2, 0.02), f"foot.{side}", connect=True),
            B(f"arm.{side}", (0.15 * x, 0, 1.45), (0.45 * x, 0, 1.4), "spine"),
            B(f"hand.{side}", (0.45 * x, 0, 1.4), (0.7 * x, 0, 1.4), f"arm.{side}", connect=True),
        ]
    rig = rigs.armature(bones, "Walker")
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
    for side in "LR":
        limit(rig, f"thigh.{side}", "EULER", euler_lower=(-1.4, -0.5, -0.5), euler_upper=(1.4, 0.5, 0.5))
        limit(rig, f"shin.{side}", "EULER", euler_lower=(-0.3, 0, 0), euler_upper=(2.4, 0, 0))
        limit(rig, f"foot.{side}", "CONE", cone_radius=1.0)
    return rig


def limit(rig, bone, kind, **fields):
    group = rig.pose.bones[bone].ccd_rig.limit
    group.kind = kind
    for field, value in fields.items():
        setattr(group, field, value)


def constrain(rig, kind, tip, name, target=None, chain_length=0, **fields):
    row = rig.ccd_rig.constraints.add()
    row.kind, row.name, row.tip, row.target, row.chain_length = kind, name, tip, target, chain_length
    for field, value in fields.items():
        setattr(row, field, value)
    return row


def key_influence(row, spans, frames):
    """Influence 1 in these spans of frames, both ends included, 0 elsewhere; constant between keys."""
    rig = row.id_data
    for frame in frames:
        row.influence = float(any(a <= frame <= b for a, b in spans))
        row.keyframe_insert("influence", frame=frame)
    rigs.update()
    return rig


def played(rig, bones, frames):
    """(frames, bones, 4, 4) world matrices as Blender plays them."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        seen = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        found.append([seen.matrix_world @ seen.pose.bones[bone].matrix for bone in bones])
    return np.array(found)


def angle(a, b):
    """Between the rotations of two matrices, radians."""
    return Matrix(a).to_quaternion().rotation_difference(Matrix(b).to_quaternion()).angle


def keyed_empty(name, places):
    """An empty with a key per (frame, place); linear in between."""
    made = rigs.empty(name)
    for frame, place in places:
        made.location = place
        made.keyframe_insert("location", frame=frame)
    return made


WALK = range(1, 73)
STEP = 12


def stances():
    """Frames in which each foot stands: left first, then by turns, two frames on both."""
    left, right = [], []
    for k, first in enumerate(range(1, 73, STEP)):
        (left, right)[k % 2].append((first, first + STEP + 1))
    right.insert(0, (1, 3))
    return {"L": left, "R": right}


def walker(place=Matrix()):  # noqa: B008  (a matrix is not changed)
    """The biped, walking along -Y for 72 frames: planted feet, hips controller, targets of swung feet."""
    rig = biped()
    rig.matrix_world = place
    stride = 0.4
    hips = keyed_empty("Hips", [])
    for frame in (1, 72):
        hips.matrix_world = place @ Matrix.Translation((0, -stride / 2 * (frame - 1) / STEP, 0.86))
        hips.keyframe_insert("location", frame=frame)
    hips.rotation_euler = (place @ Euler((math.pi / 2, 0, 0)).to_matrix().to_4x4()).to_euler()  # upright
    feet = {"L": 0.0, "R": 0.0}
    tracks = {"L": [(1, 0.0, 0.0)], "R": [(1, 0.0, 0.0)]}
    for k, first in enumerate(range(1, 73, STEP)):
        swung = "RL"[k % 2]
        tracks[swung] += [(first + 2, feet[swung], 0.0), (first + 7, None, 0.1)]
        to = -stride / 2 * (k + 1)
        tracks[swung].append((first + STEP, to, 0.0))
        feet[swung] = to
    for side, x in (("L", 0.1), ("R", -0.1)):
        rows = tracks[side]
        places = []
        for i, (frame, y, z) in enumerate(rows):
            along = y if y is not None else (rows[i - 1][1] + rows[i + 1][1]) / 2
            places.append((frame, place @ Vector((x, 0.02 + along, 0.08 + z))))
        target = keyed_empty(f"Foot {side}", places)
        flat = rig.data.bones[f"foot.{side}"].matrix_local.to_3x3().to_4x4()
        target.rotation_euler = (place @ flat).to_euler()
        plant = constrain(rig, "PLANT", f"foot.{side}", f"Plant {side}", chain_length=4)
        key_influence(plant, stances()[side], WALK)
        constrain(
            rig, "REACH", f"foot.{side}", f"Swing {side}", target, 3, use_tail=False, rotation="ORIENTATION"
        )
    constrain(rig, "REACH", "hips", "Hips", hips, 1, use_tail=False, rotation="ORIENTATION")
    rigs.update()
    return rig


def assert_still(seen, frames, spans):
    """The planted feet stay where they are in each span of frames; (F, 2, 4, 4) matrices, left and right."""
    for k, side in enumerate("LR"):
        for a, b in spans[side]:
            stand = [m for m, f in zip(seen[:, k], frames, strict=True) if a <= f <= b]
            for matrix in stand:
                assert np.linalg.norm(matrix[:3, 3] - stand[0][:3, 3]) < STILL, (side, a, b)
                assert angle(matrix, stand[0]) < 1e-3, (side, a, b)


PLACES = {
    "at home": Matrix(),
    "moved": Matrix.Translation((30.0, -20.0, 5.0)),
    "turned": Euler((0.2, 0.1, 2.0)).to_matrix().to_4x4(),
    "scaled": Matrix.LocRotScale((1, 2, 3), Euler((0.3, 0.2, 0.1)), (2.5, 2.5, 2.5)),
}


@pytest.mark.parametrize("place", PLACES)
def test_walk_keeps_planted_feet_still(ext, bake, place):
    rig = walker(PLACES[place])
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 72))
    assert report.unsolved_count() == 0, report.summary()
    seen = played(rig, ["foot.L", "foot.R", "hips"], WALK)
    assert_still(seen, WALK, stances())
    assert {slid.constraint for slid in report.foot_slips} == {"Plant L", "Plant R"}
    for slid in report.foot_slips:
        assert slid.distance < STILL
        assert slid.played_distance < STILL
        assert max(slid.angle, slid.played_angle) < 1e-3
    assert "; planted bones slide" in report.summary()
    assert "; ;" not in report.summary()
    way = seen[-1, 2, :3, 3] - seen[0, 2, :3, 3]
    assert np.linalg.norm(way) > 1.0  # it walked
    # The figure is carried by the hips; the bone above them stays where it is.
    paths = {curve.data_path for curve in ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)}
    assert 'pose.bones["hips"].location' in paths
    assert not any('"root"' in path for path in paths)
    limits_hold(ext, rig, WALK)


def limits_hold(ext, rig, frames):
    limits, joints = ext.module("ccd_rig.limits.shapes"), ext.module("ccd_rig.blender.properties.joints")
    settings = joints.joint_settings(rig, [bone.name for bone in rig.pose.bones])
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        for bone in rig.pose.bones:
            found = settings[bone.name]["limit"]
            if found is not None:
                assert limits.contains(found, bone.rotation_quaternion, 1e-4), (frame, bone.name)


def test_every_third_frame(bake):
    """Between solved frames the base does not slide either."""
    rig = walker()
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 72, step=3))
    seen = played(rig, ["foot.L", "foot.R"], WALK)
    alone = {"L": [(4, 14), (28, 38), (52, 62)], "R": [(16, 26), (40, 50), (64, 72)]}
    # The left one is the base wherever it stands; the right one is held by goals meanwhile.
    for k, side in enumerate("LR"):
        for a, b in alone[side]:
            stand = seen[a - 1 : b - 2, k, :3, 3]
            assert np.abs(stand - stand[0]).max() < (STILL if side == "L" else 2e-3)


def test_slides_between_keys_are_seen(bake):
    """With keys on solved frames only Blender interpolates each channel by itself: feet slide, it is said."""
    rig = walker()
    keys = bake.BakeSettings(1, 72, step=6, keys=bake.Keys.SOLVED_FRAMES)
    report = bake.bake(bpy.context.scene, rig, keys)
    seen = played(rig, ["foot.L", "foot.R"], WALK)
    slide = max(slid.played_distance for slid in report.foot_slips)
    assert slide > 1e-3
    assert max(slid.distance for slid in report.foot_slips) < STILL
    # The left foot stands from 1 to 13 by the keys.
    own = next(slid for slid in report.foot_slips if slid.constraint == "Plant L")
    assert (
        own.played_distance > np.linalg.norm(seen[:13, 0, :3, 3] - seen[0, 0, :3, 3], axis=-1).max() - STILL
    )


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


def standing(hips=(0.0, 0.0, 0.86), rotation="NONE", **fields):
    """The biped on both feet, with a hips controller."""
    rig = biped()
    target = rigs.empty("Hips", hips)
    for side in "LR":
        constrain(rig, "PLANT", f"foot.{side}", f"Plant {side}", chain_length=4)
    constrain(rig, "REACH", "hips", "Hips", target, 1, use_tail=False, rotation=rotation, **fields)
    rigs.update()
    return rig


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


def test_saved_and_loaded(bake, tmp_path):
    rig = standing()
    first = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    path = str(tmp_path / "walk.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    rig = bpy.data.objects["Walker"]
    assert [row.kind for row in rig.ccd_rig.constraints] == ["PLANT", "PLANT", "REACH"]
    again = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert len(first.foot_slips) == len(again.foot_slips) == 2


def test_the_command_line_reports_slides(ext, tmp_path):
    cli = ext.module("ccd_rig.blender.cli.command_line")
    standing()
    path = str(tmp_path / "stand.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    out, report = tmp_path / "out.blend", tmp_path / "report.json"
    words = ["bake", path, "--frames", "1-6", "--output", str(out), "--report", str(report), "--strict"]
    assert cli.main(words) == 0
    found = json.loads(report.read_text())
    assert [slid["constraint"] for slid in found["foot_slips"]] == ["Plant L", "Plant R"]
    assert all(slid["played_distance"] < STILL for slid in found["foot_slips"])
    bpy.ops.wm.open_mainfile(filepath=str(out))
    feet = played(bpy.data.objects["Walker"], ["foot.L", "foot.R"], range(1, 7))
    assert_still(feet, range(1, 7), {"L": [(1, 6)], "R": [(1, 6)]})


# Where a bone is planted at the first frame -----------------------------------------------------------------


def controlled(feet="L", off=0.1, preroll_span=(1, 20)):
    """The biped, hips lowered by their own pose, feet planted that have a controller `off` beside them."""
    rig = biped()
    rig.pose.bones["hips"].location = (0, -0.12, 0)  # along the bone: the knees have room to bend
    rigs.update()
    for side in feet:
        tip = f"foot.{side}"
        plant = constrain(rig, "PLANT", tip, f"Plant {side}", chain_length=4)
        key_influence(plant, [preroll_span], range(-10, 21))
        place = rig.pose.bones[tip].head + Vector((0, -off, 0.12))
        target = rigs.empty(f"Foot {side}", place)
        target.rotation_euler = rig.data.bones[tip].matrix_local.to_euler()
        constrain(rig, "REACH", tip, f"Reach {side}", target, 3, use_tail=False, rotation="ORIENTATION")
    rigs.update()
    return rig


@pytest.mark.parametrize("feet", ["L", "LR"])
@pytest.mark.parametrize("preroll", [0, 5])
def test_planted_at_the_first_frame_where_its_own_reach_brings_it(bake, feet, preroll):
    """The controller is 0.1 m beside the animated foot: the foot is held at the controller."""
    rig = controlled(feet, preroll_span=(-10, 20))
    before = played(rig, [f"foot.{side}" for side in feet], [1])[0]
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 10, preroll=preroll))
    assert report.unsolved_count() == 0, report.summary()
    seen = played(rig, [f"foot.{side}" for side in feet], range(1, 11))
    for k, side in enumerate(feet):
        wanted = bpy.data.objects[f"Foot {side}"].matrix_world
        assert np.linalg.norm(before[k][:3, 3] - wanted.translation) > 0.09
        assert np.abs(seen[:, k, :3, 3] - np.array(wanted.translation)).max() < STILL
        assert angle(seen[0, k], wanted) < 1e-3


def test_a_reach_with_half_influence_counts_by_half_at_the_first_frame(bake):
    rig = controlled(preroll_span=(2, 20))
    rig.ccd_rig.constraints["Reach L"].influence = 0.5
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 10))
    later = played(rig, ["foot.L"], [1])[0, 0]
    bpy.data.objects["Walker"].animation_data_clear()
    rig = controlled(preroll_span=(-10, 20))
    rig.ccd_rig.constraints["Reach L"].influence = 0.5
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 10))
    assert np.abs(played(rig, ["foot.L"], [1])[0, 0] - later).max() < STILL


def test_planted_later_where_its_own_reach_left_it(bake):
    """It comes into force at frame 6: the foot is held where frame 5 was solved, at the controller there."""
    rig = controlled(preroll_span=(6, 20))
    target = bpy.data.objects["Foot L"]
    for frame, shift in ((1, 0.0), (5, 0.05), (10, 0.15)):
        target.location.x = 0.1 + shift
        target.keyframe_insert("location", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20, start=bake.Start.POSE))
    assert report.unsolved_count() == 0, report.summary()
    seen = played(rig, ["foot.L"], range(1, 21))[:, 0, :3, 3]
    assert abs(seen[4, 0] - 0.15) < STILL
    assert np.abs(seen[4:] - seen[4]).max() < STILL


def test_what_other_chains_do_leaves_feet_where_they_are_animated(bake):
    """A Reach of the hips turns them, which the feet do not follow."""
    rig = standing(rotation="ORIENTATION")
    bpy.data.objects["Hips"].rotation_euler = (math.pi / 2, 0, 0.3)
    before = played(rig, ["foot.L", "foot.R"], [1])[0]
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert np.abs(played(rig, ["foot.L", "foot.R"], [1])[0] - before).max() < STILL


# Bad input --------------------------------------------------------------------------------------------------


def _connected(rig):
    with rigs.edit_bones(rig) as bones:
        bones["hips"].head = bones["root"].tail
        bones["hips"].use_connect = True


def _two_trees(rig):
    with rigs.edit_bones(rig) as bones:
        bones["thigh.R"].parent = None


def _no_rotation(rig):
    rig.data.bones["shin.L"].use_inherit_rotation = False


def _above(rig):
    constrain(rig, "REACH", "head", "Head", rigs.empty("Look"))


def _below(rig):
    target = rigs.empty("Bag")
    target.parent, target.parent_type, target.parent_bone = rig, "BONE", "head"
    rig.ccd_rig.constraints["Plant L"].target = target


def _slides(rig):
    rig.pose.bones["shin.L"].ccd_rig.use_slide = (False, True, False)


def _set(bone, field, value):
    return lambda rig: setattr(rig.pose.bones[bone], field, value)


def _row(field, value):
    return lambda rig: setattr(rig.ccd_rig.constraints["Plant L"], field, value)


BAD = {
    "carrier's location locked": (_set("hips", "lock_location", (True, False, False)), "'hips' carries"),
    "carrier's rotation locked": (_set("hips", "lock_rotation", (True, True, True)), "rotation is locked"),
    "carrier connected": (_connected, "'hips' carries the figure .* connected to its parent"),
    "two trees": (_two_trees, "end at different bones, 'hips' and 'thigh.R'"),
    "other lengths": (_row("chain_length", 3), "end at different bones, 'thigh.L' and 'hips'"),
    "no inherited rotation": (_no_rotation, "'shin.L'"),
    "another chain goes further up": (_above, "hangs on bone 'root', which constraint 'Head'"),
    "target hangs on the figure": (_below, "Plant L"),
    "a leg slides": (_slides, "'shin.L' slides"),
    "no such bone": (_row("tip", "fot.L"), "'fot.L' is not in armature"),
    "influence is no number": (_row("influence", math.nan), "influence is not a number"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_by_name(bake, errors, case):
    spoil, message = BAD[case]
    rig = standing()
    spoil(rig)
    rigs.update()
    poses = [bone.matrix_basis.copy() for bone in rig.pose.bones]
    with pytest.raises(errors.CCDRigError, match=message):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert not bpy.data.actions
    assert rig.animation_data is None or rig.animation_data.action is None
    assert [bone.matrix_basis for bone in rig.pose.bones] == poses


def test_advice(checks):
    rig = standing()
    row = rig.ccd_rig.constraints["Plant L"]
    row.influence = 0.4
    for name in ("shin.L", "thigh.L", "foot.L"):
        rig.pose.bones[name].lock_rotation = (True, True, True)
    limit(rig, "hips", "CONE")
    rigs.update()
    words = [problem.message for problem in checks.problems(rig, bpy.context.scene)]
    assert any("planted while influence is above 0.5" in each for each in words)
    assert any("stands stiffly" in each for each in words)
    assert any("its limit cannot hold" in each for each in words)
