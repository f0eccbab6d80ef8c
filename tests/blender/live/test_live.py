"""The live preview: what it shows."""

from __future__ import annotations

import math
from functools import partial
from itertools import count, pairwise
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Matrix, Vector
from operator_calls import set_up
from playing import shown as shown_now
from shown import REACHED, SHOWN, matrices, off, reach, shows, switch_live, two_arms


def channels(rig):
    return [
        (*b.rotation_quaternion, *b.rotation_euler, *b.rotation_axis_angle, *b.location, *b.scale)
        for b in rig.pose.bones
    ]


def test_the_rig_follows_a_target(rig, live):
    before = channels(rig)
    assert off(rig) > 1.0
    assert bpy.ops.ccd_rig.live() == {"FINISHED"}
    for place in ((1.0, 1.0, 2.0), (0.0, -2.0, 2.5), (-1.0, 0.5, 3.0)):
        rig.ccd_rig.constraints[0].target.location = place
        assert off(rig) < 0.01
    rigs.update()
    assert off(rig) < REACHED
    assert channels(rig) == before
    assert rig.animation_data is None
    assert bpy.ops.ccd_rig.live() == {"FINISHED"}
    assert (shows(rig) - Vector((0.0, 0.0, 4.0))).length < SHOWN


def test_what_an_operator_changes_shows_at_once(rig):
    """Blender evaluates nothing after a script or an operator has removed a constraint."""
    rigs.reach(rig, "bone_1", rigs.empty("Second", (0.5, 1.0, 1.0)))
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.ccd_rig.live()
    rig.ccd_rig.active_index = 1
    rigs.update()
    both = matrices(rig)
    assert bpy.ops.ccd_rig.constraint_remove() == {"FINISHED"}
    rigs.update()
    shown = matrices(rig)
    assert np.abs(shown - both).max() > 0.1
    rig.update_tag()
    rigs.update()
    assert np.abs(shown - matrices(rig)).max() < SHOWN


def test_live_ends_with_the_last_constraint(rig):
    """Else the next one would be live without having been switched on."""
    switch_live()
    assert any(len(bone.constraints) for bone in rig.pose.bones)
    assert bpy.ops.ccd_rig.constraint_remove() == {"FINISHED"}
    assert not rig.ccd_rig.live
    assert not any(len(bone.constraints) for bone in rig.pose.bones)


def test_chains_follow_together_and_apart(ext, live):
    """Three chains of a rig: all follow; while one target is dragged the chains that it cannot move stay."""
    rig = two_arms()
    bpy.ops.ccd_rig.live()
    arms = "arm_2.L", "arm_2.R"
    for y in (0.8, 0.9, 1.0):
        for arm in arms:
            bpy.data.objects[f"Target {arm}"].location.y = y
        assert max(off(rig, arm, f"Target {arm}") for arm in arms) < 0.01
    rigs.update()
    before = matrices(rig)
    bpy.data.objects["Target arm_2.L"].location.z += 0.1
    shown = matrices(rig)
    assert off(rig, "arm_2.L", "Target arm_2.L") < 0.01
    left = [bone.name.endswith(".L") for bone in rig.pose.bones]
    assert np.array_equal(shown[~np.array(left)], before[~np.array(left)])
    bpy.data.objects["Target spine"].location.x -= 0.1  # it carries the arms
    assert max(off(rig, arm, f"Target {arm}") for arm in arms) < 0.01
    rigs.update()
    assert max(off(rig, arm, f"Target {arm}") for arm in arms) < REACHED


def departure(rig):
    """Degrees by which joints are off their rest pose, as the root of the sum of their squares."""
    shown = [Matrix(matrix).to_quaternion() for matrix in matrices(rig)]
    rests = [bone.matrix_local.to_quaternion() for bone in rig.data.bones]
    square = 0.0
    for i in range(1, len(shown)):
        turned, straight = (frames[i - 1].inverted() @ frames[i] for frames in (shown, rests))
        square += math.degrees(2.0 * math.acos(min(1.0, abs(straight.dot(turned))))) ** 2
    return math.sqrt(square)


def largest_bend(rig):
    """Degrees between the Y axes of neighbours, and of the first bone and its rest."""
    ways = np.concatenate(([(0.0, 0.0, 1.0)], matrices(rig)[:, :3, 1]))
    return math.degrees(max(math.acos(min(1.0, float(a @ b))) for a, b in pairwise(ways)))


def test_it_does_not_wander_off(ext, live):
    """A target goes round and round: bends do not grow with each round."""
    rig = rigs.chain(6)
    reach(rig, "bone_5", (2.0, 0.0, 3.0))
    bpy.ops.ccd_rig.live()
    target, rounds = rig.ccd_rig.constraints[0].target, []
    for step in range(6 * 24):
        angle = math.tau * (step + 1) / 24
        target.location = 2.0 * math.cos(angle), 2.0 * math.sin(angle), 3.0 + math.sin(2.0 * angle)
        assert off(rig, "bone_5", "Target bone_5") < 0.02
        if step % 24 == 23:
            rounds.append(departure(rig))
    rigs.update()
    assert max(rounds) < 1.3 * departure(rig)


def test_comfort_is_kept_while_targets_move(ext, live):
    """Joints leave their comfort regions only for targets that cannot be met inside."""
    rig = rigs.chain(4)
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind = "CONE"
        bone.ccd_rig.limit.cone_radius = math.radians(70)
        bone.ccd_rig.comfort.region.kind = "CONE"
        bone.ccd_rig.comfort.region.cone_radius = math.radians(20)
    reach(rig, "bone_3", (1.6, 0.0, 3.4))
    bpy.ops.ccd_rig.live()
    target = rig.ccd_rig.constraints[0].target
    for step in range(40):
        target.location = 1.6, 0.02 * step, 3.4
        assert off(rig) < REACHED
        assert largest_bend(rig) < 20.1  # 22 without the regions
    target.location = 2.4, 0.6, 0.8
    assert off(rig) < 0.05
    assert 25.0 < largest_bend(rig) < 70.1


def test_planted_feet(ext, live):
    """Two legs on a pelvis that a target pulls down: feet stay, the pelvis goes by its location."""
    rig = rigs.armature(
        [
            rigs.B("hips", (0, 0, 2), (0, 0, 2.4)),
            *(
                bone
                for side, x in (("L", 0.3), ("R", -0.3))
                for bone in (
                    rigs.B(f"thigh.{side}", (x, 0, 2), (x, -0.1, 1), "hips"),
                    rigs.B(f"shin.{side}", (x, -0.1, 1), (x, 0, 0.1), f"thigh.{side}", connect=True),
                    rigs.B(f"foot.{side}", (x, 0, 0.1), (x, -0.3, 0), f"shin.{side}", connect=True),
                )
            ),
        ]
    )
    for side in "LR":
        rigs.reach(rig, f"foot.{side}", None, kind="PLANT", chain_length=0)
    reach(rig, "hips", (0.1, 0.2, 2.1), chain_length=1)
    feet = [shows(rig, f"foot.{side}") for side in "LR"]
    switch_live()
    assert off(rig, "hips", "Target hips") < REACHED
    for side, foot in zip("LR", feet, strict=True):
        assert (shows(rig, f"foot.{side}") - foot).length < REACHED
    assert any("Planted" in note for note in live.preview_of(rig).notes())
    shown = matrices(rig)
    bpy.ops.ccd_rig.live()
    bpy.ops.ccd_rig.solve()
    assert np.abs(shown - matrices(rig)).max() < SHOWN


def test_it_follows_keys_and_drivers(rig, live):
    target = rig.ccd_rig.constraints[0].target
    for frame, place in ((1, (1.0, 0.0, 3.0)), (11, (-1.0, 1.0, 2.0))):
        target.location = place
        target.keyframe_insert("location", frame=frame)
    other = rigs.empty("Driven")
    driver = other.driver_add("location", 1).driver
    driver.expression = "frame * 0.1"
    rig.ccd_rig.constraints[0].pole_target = other
    row = rig.ccd_rig.constraints[0]
    row.keyframe_insert("influence", frame=1)
    rigs.activate(rig)
    bpy.ops.ccd_rig.live()
    for frame in (1, 4, 11):
        bpy.context.scene.frame_set(frame)
        assert off(rig) < 0.01
    row.influence = 0.0
    rig.animation_data_clear()
    bpy.context.scene.frame_set(12)
    rigs.update()
    assert (shows(rig) - Vector((0.0, 0.0, 4.0))).length < SHOWN


def test_own_constraints_act_on_top(rig, live):
    copy = rig.pose.bones["bone_3"].constraints.new("LIMIT_ROTATION")
    copy.use_limit_x = copy.use_limit_y = copy.use_limit_z = True
    copy.owner_space = "LOCAL"
    switch_live()
    assert rig.pose.bones["bone_3"].constraints[-1] == copy
    shown = matrices(rig)
    bpy.ops.ccd_rig.live()
    bpy.ops.ccd_rig.solve()
    assert np.abs(shown - matrices(rig)).max() < SHOWN


def test_several_armatures(rig, live):
    """The second one's target hangs on the first one's hand."""
    bpy.ops.object.mode_set(mode="OBJECT")
    other = rigs.chain(4, name="Other")
    other.location.x = 2.0
    rigs.reach(other, "bone_3", rig, target_bone="bone_3")
    for each in (rig, other):
        rigs.activate(each)
        rigs.update()
        bpy.ops.ccd_rig.live()
    rigs.update()
    live.catch_up()
    hand = rig.matrix_world @ shown_now(rig).pose.bones["bone_3"].head
    assert off(rig) < REACHED
    assert (shows(other) - hand).length < REACHED


@pytest.mark.parametrize("gone", ["view layer", "scene"])
def test_what_is_gone_when_the_timer_comes_is_not_caught_up(rig, live, gone):
    """Two live rigs, the second hanging on the first, were solved in turns."""
    bpy.ops.object.mode_set(mode="OBJECT")
    other = rigs.chain(4, name="Other")
    rigs.reach(other, "bone_3", rig, target_bone="bone_3")
    for each in (rig, other):
        rigs.activate(each)
        rigs.update()
        bpy.ops.ccd_rig.live()
    rig.ccd_rig.constraints[0].target.location.x -= 0.2
    rigs.update()
    thing = bpy.context.view_layer if gone == "view layer" else bpy.context.scene
    thing.name = "Renamed"
    live.catch_up()
    assert off(rig) < REACHED


def test_rigs_that_are_not_live_keep_none_from_being_so(rig, live):
    """Of three in a scene the first never was, and the second is switched off again."""
    bpy.ops.object.mode_set(mode="OBJECT")
    second, last = (rigs.chain(4, name=name) for name in ("Second", "Last"))
    for k, each in enumerate((second, last)):
        reach(each, "bone_3", (1.0 + k, 0.5, 2.0))
    rigs.activate(second)
    switch_live()
    bpy.ops.ccd_rig.live()
    rigs.activate(last)
    bpy.ops.ccd_rig.live()
    for place in ((1.0, 1.0, 2.0), (-1.0, 0.5, 3.0)):
        target = last.ccd_rig.constraints[0].target
        target.location = place
        assert off(last, target=target.name) < 0.01
    assert all((shows(each) - Vector((0.0, 0.0, 4.0))).length < SHOWN for each in (rig, second))


def test_what_asks_for_the_same_is_not_solved_again(rig, solved):
    """Blender tells of many updates that change nothing of a rig's targets."""
    switch_live()
    solved.clear()
    for _ in range(3):
        rig.ccd_rig.constraints[0].target.update_tag()
        rigs.update()
    assert solved == []
    rig.ccd_rig.constraints[0].target.location.x += 0.1
    rigs.update()
    assert len(solved) == 1


def test_nothing_new_is_shown_while_a_render_runs(ext, rig, live, monkeypatch):
    """A render is a job in a window alone, so Blender's word for it is put in its place here."""
    handlers = ext.module("ccd_rig.blender.live")
    depsgraph = bpy.context.evaluated_depsgraph_get()
    for is_rendering in (False, True):
        app = SimpleNamespace(is_job_running=lambda kind, runs=is_rendering: runs and kind == "RENDER")
        monkeypatch.setattr(handlers, "bpy", SimpleNamespace(app=app))
        assert handlers._may_show(rig, depsgraph) is not is_rendering


def test_an_update_tells_whether_anything_is_shown_anew(ext, rig, live):
    preview = ext.module("ccd_rig.blender.live")
    known, depsgraph = preview.Preview(), bpy.context.evaluated_depsgraph_get()
    assert preview.update(rig, depsgraph, known)
    rigs.update()
    assert not preview.update(rig, depsgraph, known)
    rig.ccd_rig.constraints[0].target.location.x += 0.1
    rigs.update()
    assert preview.update(rig, depsgraph, known)


def changes(group, path=""):
    """(name, function that changes it, function that takes it back) of each value of a group."""
    for prop in group.bl_rna.properties:
        name, value = prop.identifier, getattr(group, prop.identifier)
        if prop.identifier == "rna_type" or (path and prop.identifier == "name"):
            continue
        if prop.type == "POINTER":
            if isinstance(value, bpy.types.PropertyGroup):
                yield from changes(value, f"{path}{name}.")
            continue
        if prop.is_readonly or prop.type == "COLLECTION":
            continue
        if getattr(prop, "is_array", False):
            other = [not each if prop.type == "BOOLEAN" else 0.5 * each + 0.1 for each in value]
            value = tuple(value)
        elif prop.type == "ENUM":
            other = next((item.identifier for item in prop.enum_items if item.identifier != value), value)
        elif prop.type == "STRING":
            other = f"{value}."
        else:
            other = (
                not value
                if prop.type == "BOOLEAN"
                else value + 1
                if prop.type == "INT"
                else 0.5 * value + 0.1
            )
        try:
            setattr(group, name, other)
        except TypeError:  # an enumeration whose items depend on other values
            continue
        changed = getattr(group, name) != value
        setattr(group, name, value)
        if changed:
            yield path + name, partial(setattr, group, name, other), partial(setattr, group, name, value)


def test_every_setting_is_looked_at(ext, rig, live):
    """Of a constraint, a bone and the solver. Influence is in a sample; known_as and what is made are not."""
    preview, row = ext.module("ccd_rig.blender.live"), rig.ccd_rig.constraints[0]
    bone = rig.pose.bones["bone_1"].ccd_rig
    bone.limit.kind = bone.comfort.region.kind = "CONE"  # else its other settings have no effect
    seen = []
    for group in (row, bone, rig.ccd_rig.solver):
        for name, change, back in changes(group):
            set_up = preview.SetUp.of(rig, bpy.context.scene)
            assert set_up.is_current()
            change()
            unseen = (
                "influence",
                "known_as",
                "slide_is_made",
                "stiffness_made",
                "start_rotation",
                "start_before",
            )
            assert set_up.is_current() == (name in unseen), name
            back()
            seen.append(name)
    assert {"influence", "chain_length", "rotation", "limit.cone_radius", "slide_lower"} <= set(seen)


def test_every_property_of_blenders_bones_is_looked_at(ext, rig, live):
    preview, bone = ext.module("ccd_rig.blender.live"), rig.pose.bones["bone_3"]
    edits = [
        partial(setattr, bone, "rotation_mode", "ZYX"),
        partial(setattr, bone, "lock_rotation", (False, False, True)),
        partial(setattr, bone, "lock_rotations_4d", not bone.lock_rotations_4d),
        partial(setattr, bone, "lock_rotation_w", True),
        partial(setattr, bone, "lock_location", (False, False, True)),
        partial(setattr, bone.bone, "use_inherit_rotation", False),
        partial(setattr, bone.bone, "inherit_scale", "NONE"),
        partial(setattr, bone.bone, "use_local_location", False),
        partial(setattr, bone.ccd_rig, "mass", 2.0),
        partial(setattr, rig.ccd_rig, "body_helps", not rig.ccd_rig.body_helps),
        partial(setattr, rig.ccd_rig, "body", "KEEP_ANIMATION"),
    ]
    for edit in edits:
        state = preview.state_of(rig)
        assert state == preview.state_of(rig)
        edit()
        assert state != preview.state_of(rig), edit
    for change in ({"tail": (0.0, 0.3, 4.0)}, {"roll": 0.5}, {"use_connect": False}):
        state = preview.state_of(rig)
        with rigs.edit_bones(rig) as bones:
            for name, value in change.items():
                setattr(bones["bone_3"], name, value)
        assert state != preview.state_of(rig), change


def test_a_set_up_stays_the_same_whatever_was_in_the_memory_it_is_read_into(ext, rig, live, monkeypatch):
    preview, numbers = ext.module("ccd_rig.blender.live"), count(1)

    def used(shape, kind=float):
        return np.full(shape, next(numbers)).astype(kind)

    entry = rig.ccd_rig.poses.add().rotations.add()
    entry.name, entry.rotation = "bone_1", (0.8, 0.6, 0.0, 0.0)
    monkeypatch.setattr(np, "empty", used)
    assert preview.state_of(rig) == preview.state_of(rig)


def test_poses_of_the_library_are_looked_at(ext, rig, live):
    preview = ext.module("ccd_rig.blender.live")
    states = [preview.state_of(rig)]
    pose = rig.ccd_rig.poses.add()
    pose.name = "Pose"
    states.append(preview.state_of(rig))
    entry = pose.rotations.add()
    entry.name = "bone_1"
    states.append(preview.state_of(rig))
    entry.rotation = (0.8, 0.6, 0.0, 0.0)
    states.append(preview.state_of(rig))
    pose.name = "Other"
    states.append(preview.state_of(rig))
    assert all(one != other for one, other in pairwise(states))


def test_what_makes_a_target_depend_on_the_chain_is_told_at_once(rig, live):
    """Nothing of the rig is edited; undone, it is shown again."""
    target = bpy.data.objects["Target bone_3"]
    switch_live()
    assert live.preview_of(rig).notes() == () and off(rig) < REACHED
    constraint = target.constraints.new("COPY_LOCATION")
    constraint.target, constraint.subtarget = rig, "bone_3"
    rigs.update()
    assert len(live.preview_of(rig).notes()) == 1 and target.name in live.preview_of(rig).notes()[0]
    target.constraints.remove(constraint)
    rigs.update()
    rig.update_tag()
    assert live.preview_of(rig).notes() == () and off(rig) < REACHED


def test_the_body_helps_while_the_switch_is_on(ext, live):
    """Switched off and on again while Live is: the hips stay, then go along."""
    rig = set_up(rigs.metarig("human"))
    target = rig.ccd_rig.constraints["hand.L"].target
    target.matrix_world = Matrix.Translation((0.25, -0.8, 1.3))  # 0.15 m beyond the reach of the arm
    bpy.ops.ccd_rig.live()
    hand = {}
    for helps in (True, False, True):
        rig.ccd_rig.body_helps = helps
        rig.update_tag()  # as a click on the switch does
        hand.setdefault(helps, []).append((shows(rig, "forearm.L") - target.matrix_world.translation).length)
    bpy.ops.ccd_rig.live()
    assert max(hand[True]) < REACHED < 0.1 < hand[False][0], hand
