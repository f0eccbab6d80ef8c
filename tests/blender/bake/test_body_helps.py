"""The body helps: spine, clavicles and hips go along where a chain alone misses its target."""

import json
from itertools import pairwise

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Matrix, Vector

SOLVE = 1e-3  # metres
FAR = (0.25, -0.8, 1.3)  # 0.15 m beyond the reach of a left arm
FRAMES = 25
FEET = ("foot.L", "foot.R")
BODY = ("spine", "spine.001", "spine.002", "spine.003", "shoulder.L")


def figure(to, first=None):
    """A human whose left hand goes to a point of the world."""
    rig = rigs.metarig("human")
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.figure_set_up() == {"FINISHED"}
    rigs.update()
    row = next(row for row in rig.ccd_rig.constraints if row.name == "hand.L")
    for frame, place in ((1, first), (FRAMES, to)):
        matrix = row.target.matrix_world.copy()
        if place is not None:
            matrix.translation = Vector(place)
        row.target.matrix_world = matrix
        rigs.update()
        row.target.keyframe_insert("location", frame=frame)
    return rig, row


def bake(rig):
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=FRAMES) == {"FINISHED"}


def played(rig, names, frames=()):
    """{bone: its matrices in the world}."""
    found = {name: [] for name in names}
    for frame in frames or range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        for name in names:
            found[name].append(evaluated.matrix_world @ evaluated.pose.bones[name].matrix)
    return found


def far_off(rig, row):
    """Metres by which a hand misses its target, at each frame."""
    heads = played(rig, [row.tip])[row.tip]
    off = []
    for frame, matrix in enumerate(heads, 1):
        bpy.context.scene.frame_set(frame)
        target = row.target.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world
        off.append((matrix.translation - target.translation).length)
    return off


def largest_step(matrices):
    turns = [a.to_quaternion().rotation_difference(b.to_quaternion()).angle for a, b in pairwise(matrices)]
    return max(min(turn, 2.0 * np.pi - turn) for turn in turns)


def keyed(channels, rig):
    paths = {curve.data_path for curve in channels.fcurves_of(rig)}
    return {name for name in BODY if any(f'"{name}"' in path for path in paths)}


def test_a_hand_beyond_its_reach_takes_the_body_along_and_feet_stand(ext):
    rig, row = figure(FAR)
    assert rig.ccd_rig.body_helps
    base = played(rig, (*FEET, "spine", "spine.003"), [1])
    bake(rig)
    assert max(far_off(rig, row)) < SOLVE
    seen = played(rig, (*FEET, "spine", "spine.003"), [FRAMES])
    for foot in FEET:
        assert (seen[foot][0].translation - base[foot][0].translation).length < SOLVE
    chest = seen["spine.003"][0].translation - base["spine.003"][0].translation
    assert chest.y < -0.05  # it leans to where the hand goes


def test_frames_before_the_range_do_not_count_as_helped(ext):
    """With a preroll the report says the same, also where an influence below 1 leaves a distance."""
    module, told = ext.module("ccd_rig.blender.bake.bake"), []
    for preroll in (0, 9):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig, row = figure(FAR)
        row.influence = 0.9
        settings = module.BakeSettings(1, FRAMES, preroll=preroll, verify=False)
        told.append(module.bake(bpy.context.scene, rig, settings).helped)
    assert told[0] and told[0] == told[1]


def test_without_it_the_hand_stays_short(ext):
    rig, row = figure(FAR)
    rig.ccd_rig.body_helps = False
    bake(rig)
    assert max(far_off(rig, row)) > 0.1


@pytest.mark.parametrize("way", [(0.69, 0.0, 0.2), (0.0, -0.89, -0.2)])
def test_no_bone_jumps_while_a_hand_is_pulled_far(ext, way):
    """Were balance a goal of its own, legs would turn by up to 40 degrees in a frame."""
    rig, row = figure(None)
    bpy.context.scene.frame_set(FRAMES)
    row.target.matrix_world.translation += Vector(way)
    row.target.keyframe_insert("location", frame=FRAMES)
    bake(rig)
    assert max(far_off(rig, row)) < SOLVE
    seen = played(rig, [bone.name for bone in rig.data.bones])
    assert max(np.degrees(largest_step(matrices)) for matrices in seen.values()) < 14.0


def test_where_chains_suffice_the_body_stays_and_gets_no_keys(ext, channels):
    near = (0.5, -0.3, 1.4)
    rig, row = figure(near)
    bake(rig)
    assert max(far_off(rig, row)) < SOLVE
    assert "shoulder.L" not in keyed(channels, rig)
    with_help = played(rig, ("upper_arm.L", "forearm.L"))
    other, _ = figure(near)
    other.ccd_rig.body_helps = False
    bake(other)
    without = played(other, ("upper_arm.L", "forearm.L"))
    for name, matrices in with_help.items():
        for a, b in zip(matrices, without[name], strict=True):
            assert a.to_quaternion().rotation_difference(b.to_quaternion()).angle < 2e-3


def test_the_body_sets_in_without_a_pop(ext):
    """The hand goes out of reach by 4 mm a frame: the body begins to move at that rate."""
    rig, row = figure((0.18, -0.70, 1.55), first=(0.18, -0.60, 1.55))
    bake(rig)
    off = far_off(rig, row)
    assert max(off) < SOLVE
    seen = played(rig, BODY)
    assert any(
        a.to_quaternion().rotation_difference(b.to_quaternion()).angle > 1e-3
        for a, b in pairwise(seen["shoulder.L"])
    )
    assert max(np.degrees(largest_step(matrices)) for matrices in seen.values()) < 3.0


def test_solve_poses_as_the_bake_does(ext):
    rig, row = figure(FAR)
    bake(rig)
    baked = played(rig, (*BODY, "upper_arm.L"), [FRAMES])
    rig.animation_data.action = None
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.scene.frame_set(FRAMES)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    for name, (matrix,) in baked.items():
        now = rig.matrix_world @ rig.pose.bones[name].matrix
        assert (now.translation - matrix.translation).length < 2e-2, name
    assert (
        rig.matrix_world @ rig.pose.bones["hand.L"].head - row.target.matrix_world.translation
    ).length < SOLVE


def test_the_report_says_what_the_body_did(ext):
    rig, _ = figure(FAR)
    module = ext.module("ccd_rig.blender.bake.bake")
    report = module.bake(bpy.context.scene, rig, module.BakeSettings(1, FRAMES))
    assert report.unsolved() == ()
    (helped,) = report.helped
    assert helped.constraints == ("hand.L",)
    assert helped.frame_end == FRAMES
    assert helped.shifted == "spine"
    assert helped.distance > 0.05
    assert helped.gave_way[0] == "spine"
    assert "spine.006" in helped.gave_way
    assert helped.off > 0.05
    assert "the body helps at frames" in report.summary()
    assert json.loads(report.to_json())["helped"][0]["words"] == helped.words()
    gone = {entry.constraint for entry in report.entries if entry.status == "GAVE_WAY"}
    assert "spine" in gone
    assert not gone & {"hand.L", "foot.L", "foot.R"}
    asked = module.BakeSettings(1, FRAMES, body_helps=False)
    assert module.bake(bpy.context.scene, rig, asked).helped == ()


@pytest.mark.parametrize("lowered", [0.0, 0.03])
def test_a_head_that_is_moved_holds_and_one_that_is_not_goes_along(ext, lowered):
    rig, row = figure((0.25, -0.7, 1.35))
    head = next(row for row in rig.ccd_rig.constraints if row.name == "spine.006")
    head.target.keyframe_insert("location", frame=1)
    head.target.location.z -= lowered
    head.target.keyframe_insert("location", frame=FRAMES)
    bake(rig)
    assert max(far_off(rig, row)) < SOLVE
    assert (max(far_off(rig, head)) < SOLVE) is (lowered > 0.0)


@pytest.mark.parametrize("helps", [True, False])
def test_a_set_up_keeps_the_switch_and_a_new_armature_has_it_off(ext, tmp_path, helps):
    rig = rigs.metarig("human")
    assert not rig.ccd_rig.body_helps
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.figure_set_up() == {"FINISHED"}
    assert rig.ccd_rig.body_helps
    rig.ccd_rig.body_helps = helps
    file = str(tmp_path / "setup.json")
    assert bpy.ops.ccd_rig.setup_save(filepath=file) == {"FINISHED"}
    rig.ccd_rig.body_helps = not helps
    assert bpy.ops.ccd_rig.setup_load(filepath=file) == {"FINISHED"}
    assert rig.ccd_rig.body_helps is helps


@pytest.mark.parametrize("influence", [0.5, 0.02])
def test_the_body_goes_as_far_as_the_influence_has_it(ext, influence, monkeypatch):
    """It went all the way for a hand of any influence. Balance would take the hips back again."""
    monkeypatch.setattr(ext.module("ccd_rig.blender.bake.group_solving"), "ROUNDS", 0)
    rig, row = figure(FAR)
    module = ext.module("ccd_rig.blender.bake.bake")
    whole = module.bake(bpy.context.scene, rig, module.BakeSettings(1, FRAMES)).helped[0].distance
    rig.animation_data_clear()
    row.influence = influence
    report = module.bake(bpy.context.scene, rig, module.BakeSettings(1, FRAMES))
    assert report.unsolved() == ()
    assert report.helped[0].distance == pytest.approx(whole * influence, rel=0.1)
    assert max(entry.residual for entry in report.entries if entry.constraint == "hand.L") < SOLVE
    base = played(rig, FEET, [1])
    seen = played(rig, FEET, [FRAMES])
    for foot in FEET:
        assert (seen[foot][0].translation - base[foot][0].translation).length < SOLVE


def test_the_headline_says_what_gave_way(ext):
    rig, _ = figure(FAR)
    module = ext.module("ccd_rig.blender.bake.bake")
    report = module.bake(bpy.context.scene, rig, module.BakeSettings(1, FRAMES))
    head = report.summary().partition("; ")[0]
    gone = report.entries.gave_way(report.tolerance, report.angle_tolerance)
    frames = len({entry.frame for entry in gone})
    assert 0 < frames < FRAMES
    largest = max(entry.residual for entry in gone)
    words = (
        f"{FRAMES} of {FRAMES} frames reached, {frames} with targets that give way by up to {largest:.4f} m"
    )
    assert head == words
    assert json.loads(report.to_json())["frames_gave_way"] == frames


@pytest.mark.parametrize("soft", [0.0, 0.02])
def test_the_body_begins_evenly_where_limbs_are_soft(ext, channels, soft):
    """Without Softness it goes at the target's own rate from one frame to the next."""
    rig, row = figure((0.18, -0.566, 1.55), first=(0.18, -0.47, 1.55))
    for curve in channels.fcurves_of(row.target):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
    for each in rig.ccd_rig.constraints:
        each.soft = soft if each.soft else 0.0
    bake(rig)
    places = np.array([matrix.translation[:] for matrix in played(rig, ["spine"])["spine"]])
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert steps.max() > 1e-3
    change = float(np.abs(np.diff(steps)).max() / steps.max())
    assert (change < 0.5) is (soft > 0.0), change


HOME = (0.5, -0.3, 1.4)


def assert_played_home(rig, row):
    """The hand meets its target as Blender plays it, and the report knows."""
    assert rig.ccd_rig.report.mismatches == 0, rig.ccd_rig.report.check
    assert max(far_off(rig, row)) < SOLVE
    (shoulder,) = played(rig, ["shoulder.L"], [FRAMES])["shoulder.L"]
    rest = rig.matrix_world @ rig.data.bones["shoulder.L"].matrix_local
    assert shoulder.to_quaternion().rotation_difference(rest.to_quaternion()).angle < 1e-3


def bring_home(row):
    row.target.animation_data.action = None
    row.target.matrix_world = Matrix.Translation(HOME)
    rigs.update()


def test_a_body_that_solve_has_left_turned_is_keyed_as_it_was_solved(ext):
    """The bake starts from rest, and keys what else would stay as Solve has left it."""
    rig, row = figure(FAR)
    bpy.context.scene.frame_set(FRAMES)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    assert rig.pose.bones["shoulder.L"].matrix_basis.to_quaternion().angle > 0.05
    bring_home(row)
    bake(rig)
    assert_played_home(rig, row)


@pytest.mark.parametrize("start", ["ACTION", "ORIGINAL", "REST"])
def test_a_body_that_a_bake_has_turned_returns_with_the_target(ext, start):
    rig, row = figure(FAR, first=FAR)
    bake(rig)
    bring_home(row)
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=FRAMES, start=start) == {"FINISHED"}
    assert_played_home(rig, row)


def test_solve_after_a_bake_brings_the_body_back(ext):
    rig, row = figure(FAR, first=FAR)
    bake(rig)
    bring_home(row)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    assert rig.pose.bones["shoulder.L"].matrix_basis.to_quaternion().angle < 1e-3
    hand = rig.matrix_world @ rig.pose.bones["hand.L"].head
    assert (hand - row.target.matrix_world.translation).length < SOLVE


def test_a_body_that_helps_no_more_stays_as_it_is_baked(ext):
    """Arms are solved from where the body plays, not from where it was before."""
    rig, row = figure(FAR, first=FAR)
    bake(rig)
    bring_home(row)
    rig.ccd_rig.body_helps = False
    bake(rig)
    assert rig.ccd_rig.report.mismatches == 0, rig.ccd_rig.report.check
    assert max(far_off(rig, row)) < SOLVE


def pulled(rig, name, way, first=1, last=FRAMES):
    """A constraint whose target goes by a vector of the world."""
    row = rig.ccd_rig.constraints[name]
    row.target.keyframe_insert("location", frame=first)
    row.target.matrix_world = Matrix.Translation(way) @ row.target.matrix_world
    rigs.update()
    row.target.keyframe_insert("location", frame=last)
    return row


def set_up(kind):
    rig = rigs.metarig(kind)
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.figure_set_up() == {"FINISHED"}
    rigs.update()
    return rig


def test_a_hand_that_was_left_at_its_place_pulls_no_shoulder(ext):
    """The head is pulled aside from under it: a clavicle turned by 101 degrees, by 21 in a frame."""
    rig = set_up("human")
    pulled(rig, "spine.006", (0.25, 0.0, 0.0))
    module = ext.module("ccd_rig.blender.bake.bake")
    report = module.bake(bpy.context.scene, rig, module.BakeSettings(1, FRAMES))
    assert {name for helped in report.helped for name in helped.constraints} == {"spine.006"}
    left = {entry.constraint for entry in report.entries if entry.status in ("GAVE_WAY", "EASED")}
    assert "hand.R" in left
    seen = played(rig, ["shoulder.L", "shoulder.R"])
    assert max(np.degrees(largest_step(matrices)) for matrices in seen.values()) < 10.0
    rest = rig.data.bones["shoulder.R"].matrix_local.inverted() @ rig.data.bones["spine.003"].matrix_local
    bpy.context.scene.frame_set(FRAMES)
    bones = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
    turned = bones["shoulder.R"].matrix.inverted() @ bones["spine.003"].matrix
    assert np.degrees(rest.to_quaternion().rotation_difference(turned.to_quaternion()).angle) < 5.0


def test_a_hand_that_is_put_beside_its_place_is_helped(ext):
    rig = set_up("human")
    row = rig.ccd_rig.constraints["hand.L"]
    row.target.matrix_world = Matrix.Translation((0.3, -0.2, 0.0)) @ row.target.matrix_world
    rigs.update()
    module = ext.module("ccd_rig.blender.bake.bake")
    report = module.bake(bpy.context.scene, rig, module.BakeSettings(1, 2))
    assert {name for helped in report.helped for name in helped.constraints} == {"hand.L"}
    assert report.unsolved() == ()


def test_a_neck_and_a_tail_ease_into_straight(ext):
    """They turned by 19 and 11 degrees in the frame at which the body began to help."""
    rig = set_up("horse")
    for name, way in (("tail.005", (0.0, -0.2, -0.5)), ("head", (0.0, -0.48, -1.2))):
        rig.animation_data_clear()
        row = pulled(rig, name, way, last=40)
        module = ext.module("ccd_rig.blender.bake.bake")
        report = module.bake(bpy.context.scene, rig, module.BakeSettings(1, 40))
        assert report.unsolved() == ()
        assert report.helped
        seen = played(rig, [bone.name for bone in rig.data.bones], range(1, 41))
        assert max(np.degrees(largest_step(matrices)) for matrices in seen.values()) < 6.0
        row.target.animation_data_clear()
        bpy.context.scene.frame_set(1)


def out_and_back(rig, name, way):
    """A target that goes by a vector of the world within half a second, and back."""
    row = pulled(rig, name, way, 1, 13)
    row.target.matrix_world = Matrix.Translation(-Vector(way)) @ row.target.matrix_world
    rigs.update()
    row.target.keyframe_insert("location", frame=FRAMES)
    return row


def test_feet_stand_while_a_head_takes_their_legs_along(ext):
    """Front legs hang on the spine that the head bends: they slid by up to 5 cm as it was pulled up."""
    rig = set_up("cat")
    feet = ("r_toe.L", "r_toe.R", "f_toe.L", "f_toe.R")
    base = played(rig, feet, [1])
    out_and_back(rig, "spine.006", (0.0, -0.076, 0.254))
    bake(rig)
    seen = played(rig, feet)
    for foot in feet:
        assert max((m.translation - base[foot][0].translation).length for m in seen[foot]) < 1e-4
