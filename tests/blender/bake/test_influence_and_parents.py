"""Influence, constraints that share bones, and parents that move: what a bake makes of them."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Matrix, Quaternion, Vector
from playing import play
from reaching_arms import FLOAT32, arm, assert_report_is_what_plays, circle, key_location, keys_of


def test_influence_blends_from_the_pose_to_the_solve(bake, channels):
    rig, _ = arm(5, 0.5)
    path = "ccd_rig.constraints[0].influence"
    for frame, value in ((1, 0.0), (10, 0.0), (20, 1.0)):
        rig.ccd_rig.constraints[0].influence = value
        rig.keyframe_insert(path, frame=frame)
    for frame, angle in ((1, 0.0), (30, 0.5)):  # the pose underneath moves as well
        for bone in rig.pose.bones:
            bone.rotation_quaternion = Quaternion((1, 0, 0), angle)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    base = {}
    weight = {}
    for frame, evaluated, _ in play(rig, range(1, 31)):
        base[frame] = [b.rotation_quaternion.normalized() for b in evaluated.pose.bones]
        weight[frame] = evaluated.ccd_rig.constraints[0].influence
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 30, smoothness=0.0))
    blended = {
        f: [b.rotation_quaternion.normalized() for b in e.pose.bones] for f, e, _ in play(rig, range(1, 31))
    }
    assert_report_is_what_plays(rig, report)
    assert [row.frame for row in report.entries] == list(range(11, 31))  # left out where the influence is 0
    assert [row.influence for row in report.entries] == pytest.approx(
        [weight[f] for f in range(11, 31)], abs=FLOAT32
    )
    assert report.unsolved() == ()
    assert "20 of 20 frames reached; 10 of 30 frames are not solved; worst" in report.summary()

    # The same solves at full influence, from the same first frame.
    old = next(a for a in bpy.data.actions if a.name != report.action and a.use_fake_user)
    rig.animation_data.action = old
    if "slots" in old.bl_rna.properties:
        rig.animation_data.action_slot = old.slots[0]
    for curve in list(channels.fcurves_of(rig)):
        if curve.data_path == path:
            curve.mute = True
    rig.ccd_rig.constraints[0].influence = 1.0
    full = bake.bake(bpy.context.scene, rig, bake.BakeSettings(11, 30, smoothness=0.0))
    assert [row.residual for row in full.entries] == pytest.approx(
        [row.residual for row in report.entries], abs=1e-6
    )
    solved = {
        f: [b.rotation_quaternion.normalized() for b in e.pose.bones] for f, e, _ in play(rig, range(11, 31))
    }
    for frame in range(1, 31):
        for j in range(5):
            if weight[frame] == 0.0:
                expected = base[frame][j]
            else:
                expected = base[frame][j].slerp(solved[frame][j], weight[frame])
            assert blended[frame][j].rotation_difference(expected).angle % math.tau < 1e-3, (frame, j)
    assert report.entries[0].keyed_residual > 0.1 > report.entries[0].residual


def two_arms():
    """A spine of two bones with an arm of three on each side, and a target for each arm."""
    bones = [
        rigs.B("spine", (0, 0, 0), (0, 0, 1)),
        rigs.B("chest", (0, 0, 1), (0, 0, 2), "spine", connect=True),
    ]
    for side, sign in (("L", 1), ("R", -1)):
        parent = "chest"
        for i in range(3):
            bones.append(
                rigs.B(f"{side}{i}", (sign * i, 0, 2), (sign * (i + 1), 0, 2), parent, connect=i > 0)
            )
            parent = f"{side}{i}"
    rig = rigs.armature(bones)
    for side, sign in (("L", 1), ("R", -1)):
        target = rigs.empty(f"Target{side}")
        key_location(target, [(sign * 2.0 + 0.5, y, 2.5 + 0.3 * y) for y in (0.0, 0.7, -0.5, 0.2)], gap=7)
        rigs.reach(rig, f"{side}2", target, f"Hand {side}")
    return rig


def test_several_constraints_share_bones(bake, channels):
    rig = two_arms()
    rig.pose.bones["spine"].ccd_rig.stiffness = 1.0
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 22))
    assert report.unsolved() == ()
    assert [(row.frame, row.constraint) for row in report.entries[:3]] == [
        (1, "Hand L"),
        (1, "Hand R"),
        (2, "Hand L"),
    ]
    assert_report_is_what_plays(rig, report)
    assert not [path for path, _ in keys_of(channels, rig) if '"spine"' in path]  # locked: no keys
    rig.animation_data_clear()
    only = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5, constraints=("Hand R",)))
    assert {row.constraint for row in only.entries} == {"Hand R"}
    assert not [path for path, _ in keys_of(channels, rig) if '"L' in path]


def test_a_hand_out_of_reach_does_not_keep_the_other_from_its_target(bake):
    rig = two_arms()
    for row in rig.ccd_rig.constraints:
        row.chain_length = 3  # no bone in common
    bpy.data.objects["TargetL"].animation_data_clear()
    bpy.data.objects["TargetL"].location = (9.0, 0.0, 2.0)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 22))
    status = {row.constraint: set() for row in report.entries}
    for row in report.entries:
        status[row.constraint].add(row.status)
    assert status["Hand R"] == {"CONVERGED"}
    assert "CONVERGED" not in status["Hand L"]
    assert report.unsolved_count() == 22
    assert_report_is_what_plays(rig, report)


def test_a_hand_served_later_comes_as_near_as_the_first_one_lets_it(bake):
    """On a line between two targets what one hand gains the other loses: the sum stays what it is."""
    sums = []
    for priority in (0, 1):
        rig = two_arms()
        for name, x in (("Hand L", 3.3), ("Hand R", -3.3)):
            target = rig.ccd_rig.constraints[name].target
            target.animation_data_clear()
            target.location = (x, 1.5 if x > 0.0 else -1.0, 1.0)
        rig.ccd_rig.constraints["Hand R"].weight = 0.2
        rig.ccd_rig.constraints["Hand R"].priority = priority
        report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
        last = {row.constraint: row.keyed_residual for row in report.entries if row.frame == 3}
        assert last["Hand R"] > 0.05
        sums.append(sum(last.values()))
        if priority:
            assert last["Hand L"] < 1e-3
    assert sums[1] < 1.02 * sums[0], sums


def test_animated_parents_above_the_chain(bake, channels):
    rig, target = arm(8, 0.4, chain_length=4)
    key_location(target, circle((0.3, 0.3, 2.2), 0.4))
    for frame, angle, scale in ((1, 0.0, 1.0), (30, 0.4, 1.2), (60, -0.3, 0.9)):
        bone = rig.pose.bones["bone_1"]
        bone.rotation_quaternion = Quaternion((1, 0.3, 0), angle)
        bone.scale = (scale,) * 3
        bone.keyframe_insert("rotation_quaternion", frame=frame)
        bone.keyframe_insert("scale", frame=frame)
        rig.location = (0.0, angle, 0.0)
        rig.keyframe_insert("location", frame=frame)
    before = keys_of(channels, rig)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60))
    assert report.unsolved() == ()
    assert_report_is_what_plays(rig, report)
    after = keys_of(channels, rig)
    assert all(np.array_equal(before[path], after[path]) for path in before)
    baked = {path.split('"')[1] for path, _ in after.keys() - before.keys()}
    assert baked == {"bone_4", "bone_5", "bone_6", "bone_7"}


def test_head_instead_of_tail_offset_and_target_bone(bake):
    rig, _ = arm(6, 0.5, use_tail=False)
    other = rigs.chain(2, 1.0, name="Other")
    other.location = (0.5, 0.5, 0.2)
    rig.ccd_rig.constraints[0].target = other
    rig.ccd_rig.constraints[0].target_bone = "bone_1"
    rig.ccd_rig.constraints[0].offset = (0.1, -0.2, 0.3)
    for frame, angle in ((1, 0.0), (20, 1.0)):
        other.pose.bones["bone_0"].rotation_quaternion = Quaternion((1, 0, 0), angle)
        other.pose.bones["bone_0"].keyframe_insert("rotation_quaternion", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert report.unsolved() == ()
    assert_report_is_what_plays(rig, report)


def test_what_a_part_of_an_influence_carries_off_is_not_reached(bake):
    """A spine that follows its target half way carries the arm, which asks for its own target fully."""
    rig = rigs.chain(6, 0.5)
    spine = rigs.reach(rig, "bone_2", rigs.empty("A", (0.8, 0.3, 1.0)), "Spine", chain_length=0)
    rigs.reach(rig, "bone_5", rigs.empty("B", (0.9, -0.8, 1.4)), "Hand", chain_length=3)
    spine.influence = 0.5
    rigs.update()
    posed = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert_report_is_what_plays(rig, report)
    assert {entry.constraint for entry in report.unsolved()} == {"Hand"}
    assert report.summary().startswith("0 of 5 frames reached")
    assert [(each.constraint, each.frame_end) for each in report.findings] == [("Hand", 5)]
    (miss,) = {entry.residual for entry in report.unsolved() if entry.frame == 1}
    off = {row.name: error for row, error in zip(posed.constraints, posed.result.errors, strict=True)}
    assert off["Hand"].distance == pytest.approx(miss, rel=1e-4)
    assert off["Spine"].distance < 1e-4
    assert posed.result.status.name == "OPTIMAL"
    spine.influence = 1.0
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert report.unsolved() == ()
    posed = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig)
    assert posed.result.status.name == "CONVERGED"


def test_keyed_settings_that_a_bake_does_not_follow_are_told(bake, checks):
    rig, _ = arm(3, 0.5)
    row = rig.ccd_rig.constraints[0]
    for frame, length in ((1, 2), (10, 3)):
        row.chain_length = length
        for field in ("chain_length", "influence", "weight", "pole_angle", "offset"):
            row.keyframe_insert(field, frame=frame)
    (problem,) = checks.problems(rig, bpy.context.scene)
    assert (problem.severity, problem.where) == ("WARNING", row.name)
    assert "takes 'Chain Length' as it is at the present frame" in problem.message


@pytest.mark.parametrize(("spine_influence", "hand_influence"), [(0.5, 1.0), (1.0, 0.3), (0.4, 0.8)])
def test_a_part_of_an_influence_is_judged_at_what_it_asks_to_play(bake, spine_influence, hand_influence):
    """Two constraints share the lower bones, which turn by the larger influence: the other one is off.

    What it asks for is put into channels and measured on Blender's own bones: the lower bones part of the way
    from rest to where both constraints lead at full influence.
    """
    rig = rigs.chain(6, 0.5)
    spine = rigs.reach(rig, "bone_2", rigs.empty("A", (0.8, 0.3, 1.0)), "Spine", chain_length=0)
    hand = rigs.reach(rig, "bone_5", rigs.empty("B", (0.9, -0.8, 1.4)), "Hand", chain_length=0)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
    bpy.context.scene.frame_set(1)
    solved = [bone.rotation_quaternion.copy() for bone in rig.pose.bones]
    rig.animation_data_clear()

    def tails(*influences):
        for bone, rotation, influence in zip(rig.pose.bones, solved, influences, strict=True):
            bone.rotation_quaternion = Quaternion().slerp(rotation, influence)
        rigs.update()
        return [rig.pose.bones[name].tail.copy() for name in ("bone_2", "bone_5")]

    most = max(spine_influence, hand_influence)
    played = tails(*[most] * 3, *[hand_influence] * 3)
    wanted = tails(*[spine_influence] * 3, *[hand_influence] * 3)[0], tails(*[hand_influence] * 6)[1]
    tails(*[0.0] * 6)
    spine.influence, hand.influence = spine_influence, hand_influence
    rigs.update()
    posed = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig)
    for bone in rig.pose.bones:
        bone.rotation_quaternion = Quaternion()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
    assert_report_is_what_plays(rig, report)
    errors = dict(zip((row.name for row in posed.constraints), posed.result.errors, strict=True))
    for k, row in enumerate((spine, hand)):
        off = (played[k] - wanted[k]).length
        for entry in report.entries:
            if entry.constraint == row.name:
                assert entry.residual == pytest.approx(off, abs=3e-4)
        assert errors[row.name].distance == pytest.approx(off, abs=3e-4)
        assert (row.name in {entry.constraint for entry in report.unsolved()}) == (off > 1e-3)
    off_row = "Spine" if spine_influence < hand_influence else "Hand"
    assert {entry.constraint for entry in report.unsolved()} == {off_row}
    assert {each.constraint for each in report.findings if each.trouble.name in ("OFF", "SHORT")} == {off_row}


def test_an_influence_that_fades_in_above_a_moving_spine_is_reached(bake):
    """What carries the chain is no fault of the chain: there is none at influences near 0."""
    rig = rigs.chain(6, 0.5)
    rigs.reach(rig, "bone_2", rigs.empty("A", (0.8, 0.3, 1.0)), "Spine", chain_length=0)
    hand = rigs.reach(rig, "bone_5", rigs.empty("B", (0.9, -0.8, 1.4)), "Hand", chain_length=3)
    for frame, influence in ((1, 0.01), (6, 1.0)):
        hand.influence = influence
        hand.keyframe_insert("influence", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 6))
    assert report.unsolved() == ()


def test_turns_of_a_part_of_an_influence_count_too(bake):
    """The middle asks for half a turn of its own; the end, fully in force, turns its bones all the way."""
    rig = rigs.chain(4, 0.5)
    turned = rigs.empty("A", (0.4, 0.3, 0.8))
    turned.rotation_euler = (0.9, 0.2, 0.1)
    middle = rigs.reach(
        rig, "bone_1", turned, "Middle", chain_length=0, rotation="ORIENTATION", use_position=False
    )
    rigs.reach(rig, "bone_3", rigs.empty("B", (0.6, -0.4, 1.2)), "End", chain_length=0)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
    bpy.context.scene.frame_set(1)
    full = rig.pose.bones["bone_1"].matrix.to_quaternion()
    solved = [bone.rotation_quaternion.copy() for bone in rig.pose.bones]
    rig.animation_data_clear()
    for bone, rotation in zip(rig.pose.bones, solved, strict=True):
        bone.rotation_quaternion = Quaternion().slerp(rotation, 0.5)
    rigs.update()
    half = rig.pose.bones["bone_1"].matrix.to_quaternion()
    for bone in rig.pose.bones:
        bone.rotation_quaternion = Quaternion()
    middle.influence = 0.5
    rigs.update()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
    (angle,) = {round(entry.angle, 5) for entry in report.entries if entry.constraint == "Middle"}
    assert angle > 0.1
    assert angle == pytest.approx(half.rotation_difference(full).angle, abs=3e-3)
    assert {entry.constraint for entry in report.unsolved()} == {"Middle"}


def bent_chain():
    """A spine that turns the lower half of an arm, which has a pole."""
    rig = rigs.chain(6, 0.5)
    spine = rigs.reach(rig, "bone_2", rigs.empty("A", (0.8, 0.3, 1.0)), "Spine", chain_length=0)
    pole = rigs.empty("P", (-1.0, -1.5, 1.0))
    hand = rigs.reach(
        rig, "bone_5", rigs.empty("B", (0.9, -0.8, 1.4)), "Hand", chain_length=0, pole_target=pole
    )
    return rig, spine, hand, pole


def bend_frame(rig, names):
    """Head of a chain, and the axes of its line and bend as columns."""
    heads = [rig.pose.bones[name].head.copy() for name in names]
    line = (rig.pose.bones[names[-1]].tail - heads[0]).normalized()
    bend = sum((head - heads[0] for head in heads[1:]), Vector())
    bend = (bend - line * bend.dot(line)).normalized()
    return heads[0], Matrix((line, bend, line.cross(bend))).transposed()


def posed_by(rig, rotations):
    for bone, rotation in zip(rig.pose.bones, rotations, strict=True):
        bone.rotation_quaternion = rotation
    rigs.update()


def test_a_pole_under_a_part_of_an_influence_is_judged_at_what_it_asks_to_play(bake):
    """The spine turns the lower bones all the way, the hand and its pole ask for the half of it.

    The bend that the hand would have alone is put into channels; the pole stands there as it stands to the
    bend at full influence.
    """
    rig, _, hand, pole = bent_chain()
    names = [bone.name for bone in rig.pose.bones]
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
    bpy.context.scene.frame_set(1)
    solved = [bone.rotation_quaternion.copy() for bone in rig.pose.bones]
    root, full = bend_frame(rig, names)
    rig.animation_data_clear()
    half = [Quaternion().slerp(rotation, 0.5) for rotation in solved]
    posed_by(rig, half)
    _, alone = bend_frame(rig, names)
    wanted = alone @ full.inverted() @ (pole.location - root)
    posed_by(rig, [*solved[:3], *half[3:]])
    _, played = bend_frame(rig, names)
    across = played.inverted() @ wanted
    off = abs(math.atan2(across.z, across.y))
    posed_by(rig, [Quaternion()] * 6)
    hand.influence = 0.5
    rigs.update()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
    assert_report_is_what_plays(rig, report)
    (angle,) = {round(entry.angle, 5) for entry in report.entries if entry.constraint == "Hand"}
    assert angle > 0.1
    assert angle == pytest.approx(off, abs=3e-3)
    assert {entry.constraint for entry in report.unsolved()} == {"Hand"}


def test_a_pole_that_fades_in_above_a_spine_that_carries_it(bake):
    """At the least influence there is no fault of the chain; just below 1 there is that of full influence."""
    rig, spine, hand, _ = bent_chain()
    hand.chain_length, hand.target.location = 2, (1.4, -0.3, 0.9)
    spine.influence = 0.5
    angles = []
    for influence in (1e-3, 0.3, 0.999, 1.0):
        hand.influence = influence
        rigs.update()
        report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
        assert_report_is_what_plays(rig, report)
        angles.append(next(entry.angle for entry in report.entries if entry.constraint == "Hand"))
        rig.animation_data_clear()
        posed_by(rig, [Quaternion()] * 6)
    assert angles[0] < 3e-3
    assert 0.1 < angles[1] < angles[2]
    assert angles[2] == pytest.approx(angles[3], abs=5e-3)
