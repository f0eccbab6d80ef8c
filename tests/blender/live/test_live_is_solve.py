"""The live preview: each pose that it shows is that of Solve, and of a bake of that frame."""

from __future__ import annotations

import math
from itertools import pairwise

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Vector
from operator_calls import set_up
from rigs import setting
from shown import BAKED, REACHED, SHOWN, SOLVED, apart, matrices, off, reach, shows, switch_live

PLACES = [(1.6 - 0.25 * k, 0.6 - 0.1 * k, 2.2 + 0.12 * k) for k in range(10)]


def channels(rig):
    """Of each bone what its channels hold."""
    names = "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "location"
    return [[(name, tuple(getattr(bone, name))) for name in names] for bone in rig.pose.bones]


def solved(rig):
    """Matrices as Solve poses the rig from its channels, which are put back."""
    assert not rig.ccd_rig.live
    before = channels(rig)
    bpy.ops.ccd_rig.solve()
    found = matrices(rig)
    for bone, held in zip(rig.pose.bones, before, strict=True):
        for name, values in held:
            setattr(bone, name, values)
    rigs.update()
    return found


def baked(rig, frame):
    """Matrices at a frame as a bake of it alone keys the rig."""
    bpy.ops.ccd_rig.bake(frame_start=frame, frame_end=frame, start="POSE", verify=False)
    bpy.context.scene.frame_set(frame)
    found = matrices(rig)
    bpy.data.actions.remove(rig.animation_data.action)
    for bone in rig.pose.bones:
        bone.rotation_quaternion = (1.0, 0.0, 0.0, 0.0)
    rigs.update()
    return found


def limited(rig):
    for bone, angle in zip(rig.pose.bones, (40, 60, 80, 30), strict=True):
        bone.ccd_rig.limit.kind = "CONE"
        bone.ccd_rig.limit.cone_radius = math.radians(angle)


def comfortable(rig):
    for bone in rig.pose.bones:
        bone.ccd_rig.comfort.tolerance = math.radians(20)


def poled(rig):
    rig.ccd_rig.constraints[0].pole_target = rigs.empty("Pole", (0.0, -5.0, 2.0))
    rigs.activate(rig)


def half(rig):
    rig.ccd_rig.constraints[0].influence = 0.5
    rig.pose.bones["bone_1"].rotation_quaternion = (0.9, 0.3, 0.2, 0.1)


def eulers(rig):
    for bone, mode in zip(rig.pose.bones, ("XYZ", "ZXY", "AXIS_ANGLE", "YZX"), strict=True):
        bone.rotation_mode = mode
    rig.pose.bones["bone_1"].rotation_euler = (0.4, -0.3, 0.8)


def flagged(rig):
    for bone, scale in zip(rig.data.bones, rigs.INHERIT_SCALES, strict=False):
        bone.inherit_scale = scale
    rig.data.bones["bone_2"].use_inherit_rotation = False
    rig.scale = (1.5, 1.5, 1.5)


def sliding(rig):
    bone = rig.pose.bones["bone_0"]
    bone.ccd_rig.use_slide[2] = bone.ccd_rig.use_slide[0] = True
    bone.ccd_rig.slide_lower, bone.ccd_rig.slide_upper = (-0.5,) * 3, (0.5,) * 3
    rig.ccd_rig.constraints[0].target.location = (2.0, 0.0, 4.0)


def shared(rig):
    reach(rig, "bone_1", (0.5, 0.5, 1.5), weight=2.0)


CASES = (
    limited,
    comfortable,
    poled,
    half,
    eulers,
    flagged,
    sliding,
    setting("ccd_rig.constraints[0]", method="TWO_BONE"),
    setting("ccd_rig.solver", solver="CCD"),
    setting("ccd_rig.constraints[0].target", location=(7.0, 1.0, 3.0)),
    shared,
)


@pytest.mark.parametrize("change", CASES, ids=[change.__name__ for change in CASES])
def test_a_drag_shows_what_solve_gives_and_a_bake_keys(rig, live, change):
    """Steps of 29 cm, there and back; what is shown does not depend on where the target was before."""
    bpy.ops.object.mode_set(mode="OBJECT")
    change(rig)
    rigs.update()
    target = rig.ccd_rig.constraints[0].target
    target.location = PLACES[0]
    switch_live()
    set_up, held, shown = live.preview_of(rig).set_up, channels(rig), []
    for place in (*PLACES, *reversed(PLACES)):
        target.location = place
        shown.append(matrices(rig))
    assert live.preview_of(rig).set_up is set_up
    assert max(apart(a, b) for a, b in zip(shown, reversed(shown), strict=True)) < SOLVED
    switch_live()
    assert channels(rig) == held
    assert np.abs(shown[-1] - matrices(rig)).max() > 0.1
    for place, each in zip(PLACES, shown, strict=False):
        target.location = place
        rigs.update()
        assert apart(each, solved(rig)) < SOLVED
    target.location = PLACES[0]
    assert np.abs(shown[-1] - baked(rig, bpy.context.scene.frame_current)).max() < SHOWN


def test_a_dragged_bone_gives_another_base(rig, live):
    switch_live()
    set_up, shown = live.preview_of(rig).set_up, []
    rotations = [(1.0, 0.1 * k, 0.05 * k, 0.0) for k in range(6)]
    for rotation in rotations:
        rig.pose.bones["bone_1"].rotation_quaternion = rotation
        shown.append(matrices(rig))
    assert live.preview_of(rig).set_up is set_up
    bpy.ops.ccd_rig.live()
    for rotation, each in zip(rotations, shown, strict=True):
        rig.pose.bones["bone_1"].rotation_quaternion = rotation
        rigs.update()
        assert apart(each, solved(rig)) < SOLVED
    assert apart(shown[0], shown[-1]) > 1.0


def test_playback_shows_what_a_bake_of_each_frame_gives(rig, live):
    target, scene = rig.ccd_rig.constraints[0].target, bpy.context.scene
    for k, place in enumerate(PLACES):
        target.location = place
        target.keyframe_insert("location", frame=1 + 3 * k)
    bpy.ops.ccd_rig.live()
    scene.frame_set(1)
    frames, set_up, shown = range(2, 29), live.preview_of(rig).set_up, {}
    for frame in frames:
        scene.frame_set(frame)
        shown[frame] = matrices(rig)
        assert off(rig) < REACHED
    assert live.preview_of(rig).set_up is set_up
    bpy.ops.ccd_rig.live()
    for frame in frames:
        scene.frame_set(frame)
        assert apart(shown[frame], solved(rig)) < SOLVED
    for frame in frames[::5]:
        assert apart(shown[frame], baked(rig, frame)) < BAKED


def test_keyed_settings_count_in_playback(rig, live):
    """A chain length and a limit change while the target stands still."""
    scene, limit = bpy.context.scene, rig.pose.bones["bone_3"].ccd_rig.limit
    row, radius_path = rig.ccd_rig.constraints[0], 'pose.bones["bone_3"].ccd_rig.limit.cone_radius'
    limit.kind = "CONE"
    for frame, length, radius in ((1, 4, 0.1), (5, 4, 0.5), (9, 3, 0.5)):
        row.chain_length, limit.cone_radius = length, radius
        for path in ("ccd_rig.constraints[0].chain_length", radius_path):
            rig.keyframe_insert(path, frame=frame)
    rigs.activate(rig)
    bpy.ops.ccd_rig.live()
    shown = {}
    for frame in range(1, 10):
        scene.frame_set(frame)
        live.catch_up()
        shown[frame] = matrices(rig)
    bpy.ops.ccd_rig.live()
    for frame, each in shown.items():
        scene.frame_set(frame)
        assert apart(each, solved(rig)) < SOLVED


def preferred(rig):
    rig.pose.bones["bone_1"].ccd_rig.comfort.region.kind = "CONE"
    rig.pose.bones["bone_1"].ccd_rig.comfort.region.cone_radius = 0.1


def by_euler_angles(rig):
    rig.pose.bones["bone_0"].rotation_mode = "XYZ"
    rig.pose.bones["bone_0"].lock_rotation = (False, True, True)


def second(rig):
    reach(rig, "bone_1", (-0.4, 0.6, 1.6))
    rigs.activate(rig)


def off_and_on(rig):
    second(rig)
    rig.ccd_rig.constraints[0].enabled = False


def elsewhere(rig):
    rig.ccd_rig.constraints[0].target = rigs.empty("Other", (-1.0, 0.5, 2.5))
    rigs.activate(rig)


def bent_rest(rig):
    with rigs.edit_bones(rig) as bones:
        bones["bone_3"].tail.x += 0.6


def longer(rig):
    """The joint's own matrix stays."""
    with rigs.edit_bones(rig) as bones:
        bones["bone_3"].length = 1.4


ROW, BONE = "ccd_rig.constraints[0]", 'pose.bones["bone_2"]'
EDITS = (
    setting(ROW, chain_length=2),
    setting(ROW, offset=(0.0, 0.0, -0.4)),
    setting(f"{BONE}.ccd_rig.limit", cone_radius=0.1),
    setting(f"{BONE}.ccd_rig.limit", kind="HINGE"),
    setting('pose.bones["bone_1"].ccd_rig', stiffness=1.0),
    setting('pose.bones["bone_1"]', lock_rotation=(True, True, True)),
    setting("ccd_rig.solver", solver="CCD"),
    setting(f"{BONE}.bone", use_inherit_rotation=False),
    preferred,
    by_euler_angles,
    second,
    off_and_on,
    elsewhere,
    bent_rest,
    longer,
)


@pytest.mark.parametrize("edit", EDITS, ids=[edit.__name__ for edit in EDITS])
def test_an_edit_counts_at_the_next_evaluation(rig, live, edit):
    """In the middle of a drag, in which Blender reports the rig after each step."""
    rig.pose.bones["bone_2"].ccd_rig.limit.kind = "CONE"
    rig.pose.bones["bone_2"].ccd_rig.limit.cone_radius = math.radians(50)
    target = rig.ccd_rig.constraints[0].target
    bpy.ops.ccd_rig.live()
    for place in PLACES[:4]:
        target.location = place
        rigs.update()
    before = live.preview_of(rig).set_up
    edit(rig)
    target.location = PLACES[4]
    rigs.update()
    live.catch_up()  # as Blender's timers do, which do not run here
    first = matrices(rig)
    after = live.preview_of(rig).set_up
    assert after is not before
    assert live.preview_of(rig).failure == ""
    target.location = PLACES[5]
    then = matrices(rig)
    assert live.preview_of(rig).set_up is after
    bpy.ops.ccd_rig.live()
    for place, shown in ((PLACES[4], first), (PLACES[5], then)):
        target.location = place
        rigs.update()
        assert apart(shown, solved(rig)) < SOLVED


def test_an_update_says_what_is_wrong_and_shows_again_what_is_right(rig, live):
    row = rig.ccd_rig.constraints[0]
    bpy.ops.ccd_rig.live()
    assert off(rig) < REACHED
    row.weight = math.nan
    row.target.location.x -= 0.1
    assert max(abs(a - b) for a, b in zip(shows(rig), (0.0, 0.0, 4.0), strict=True)) < SHOWN
    assert "Weight is nan" in live.preview_of(rig).notes()[0]
    assert live.preview_of(rig).outcomes == {}
    row.weight = 1.0
    row.target.location.x -= 0.1
    assert off(rig) < REACHED
    assert live.preview_of(rig).notes() == ()


def test_what_is_missed_is_known_while_targets_move(rig, live):
    target = rig.ccd_rig.constraints[0].target
    bpy.ops.ccd_rig.live()
    for x, outcome in ((1.0, "MET"), (5.0, "MISSED"), (6.0, "MISSED"), (1.2, "MET")):
        target.location.x = x
        rigs.update()
        assert {c: each.name for c, each in live.preview_of(rig).outcomes.items()} == {0: outcome}
    target.location.x, rig.ccd_rig.constraints[0].influence = 5.0, 0.0
    rigs.update()
    assert live.preview_of(rig).outcomes == {}


def test_rigs_that_hang_on_one_another_are_up_to_date(rig, live):
    """Three: each one's target is the hand of the one before; also against the order of their names."""
    bpy.ops.object.mode_set(mode="OBJECT")
    made = [rig]
    for name in ("Another", "Zero"):
        other = rigs.chain(4, name=name)
        other.location.x = made[-1].location.x + 1.0
        rigs.reach(other, "bone_3", made[-1], target_bone="bone_3")
        made.append(other)
    for each in made:
        rigs.activate(each)
        rigs.update()
        bpy.ops.ccd_rig.live()
    for place in PLACES:
        rig.ccd_rig.constraints[0].target.location = place
        rigs.update()
        live.catch_up()
        graph = bpy.context.evaluated_depsgraph_get()
        assert off(rig) < REACHED
        for first, then in pairwise(made):
            head = first.matrix_world @ first.evaluated_get(graph).pose.bones["bone_3"].head
            evaluated = then.evaluated_get(graph)
            tail = evaluated.matrix_world @ evaluated.pose.bones["bone_3"].tail
            assert (tail - head).length < REACHED


def remove_by_command(rig):
    rig.ccd_rig.active_index = 0
    bpy.ops.ccd_rig.constraint_remove()


ROW_EDITS = {
    "remove first": lambda rig: rig.ccd_rig.constraints.remove(0),
    "remove last": lambda rig: rig.ccd_rig.constraints.remove(1),
    "remove by command": remove_by_command,
    "move": lambda rig: rig.ccd_rig.constraints.move(0, 1),
}


@pytest.mark.parametrize("edit", ROW_EDITS.values(), ids=ROW_EDITS)
def test_rows_that_go_or_change_places_count_at_the_next_frame(rig, live, edit):
    """No evaluation comes between the edit and the frame change; what it shows stays at rest."""
    reach(rig, "bone_1", (1.0, 0.0, 1.5), chain_length=1)
    for frame in (1, 20):
        target = bpy.data.objects["Target bone_3"]
        target.location.x = 1.0 + 0.03 * frame
        target.keyframe_insert("location", frame=frame)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.ccd_rig.live()
    bpy.context.scene.frame_set(4)
    edit(rig)
    bpy.context.scene.frame_set(5)
    shown = matrices(rig)
    assert live.preview_of(rig).notes() == ()
    live.preview_of(rig).forget()
    rig.update_tag()
    assert apart(shown, matrices(rig)) < 0.01


@pytest.mark.parametrize("chain_length", [2, None])
def test_a_chain_that_stands_on_a_shorter_one_is_right_at_the_next_evaluation(rig, live, chain_length):
    """By a script, without the command's own update: the first chain shrinks, or goes with its constraint."""
    rig.ccd_rig.constraints[0].chain_length = 2
    first = reach(rig, "bone_1", (1.0, 0.5, 1.5), chain_length=2)
    first.name = "first"
    rig.ccd_rig.constraints.move(1, 0)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.ccd_rig.live()
    rigs.update()
    shown = matrices(rig)
    if chain_length is None:
        rig.ccd_rig.constraints.remove(0)
    else:
        rig.ccd_rig.constraints[0].chain_length = 1
    rig.update_tag()
    rigs.update()
    first_look = matrices(rig)
    assert apart(first_look, shown) > 0.1
    live.preview_of(rig).forget()
    rig.update_tag()
    rigs.update()
    assert np.abs(first_look - matrices(rig)).max() < 1e-5


def test_a_rig_that_follows_a_live_bone_is_up_to_date_in_playback(rig, live):
    """At each frame and each step of a drag, without another evaluation, against the order of the scene."""
    bpy.ops.object.mode_set(mode="OBJECT")
    made = [rig]
    for name, followed in (("Another", "bone_3"), ("Zero", "bone_2")):
        other = rigs.chain(4, name=name)
        other.location.x = made[-1].location.x + 1.0
        rigs.reach(other, "bone_3", made[-1], target_bone=followed)
        made.append(other)
    for each in reversed(made):  # the scene has its objects in the order in which they were linked
        bpy.context.scene.collection.objects.unlink(each)
        bpy.context.scene.collection.objects.link(each)
    target = bpy.data.objects["Target bone_3"]
    for frame in (1, 12):
        target.location = 1.5 - 0.1 * frame, 0.5, 2.0 + 0.1 * frame
        target.keyframe_insert("location", frame=frame)
    for each in made:
        each.ccd_rig.live = True
    rigs.update()
    live.catch_up()

    def gaps():
        graph = bpy.context.evaluated_depsgraph_get()
        evaluated = [each.evaluated_get(graph) for each in made]
        tails = [each.matrix_world @ each.pose.bones["bone_3"].tail for each in evaluated]
        leaders = zip(evaluated, ("bone_3", "bone_2"), strict=False)
        heads = [each.matrix_world @ each.pose.bones[bone].head for each, bone in leaders]
        return [(tail - head).length for head, tail in zip(heads, tails[1:], strict=True)]

    for frame in range(2, 13):
        bpy.context.scene.frame_set(frame)
        assert max(gaps()) < REACHED
    target.animation_data_clear()
    for number in range(6):
        target.location.x = 0.1 * number
        rigs.update()
        assert max(gaps()) < REACHED


def test_what_is_keyed_plays_as_a_bake_keys_it(rig, live):
    """Offset, Pole Angle, Weight and Max Extension at several frames."""
    bpy.ops.object.mode_set(mode="OBJECT")
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
    row = rig.ccd_rig.constraints[0]
    row.pole_target, row.offset_space = rigs.empty("Pole", (0.5, 3.0, 1.0)), "WORLD"
    reach(rig, "bone_2", (0.8, 0.9, 1.4))
    row = rig.ccd_rig.constraints[0]
    for frame, offset, number in ((1, (0.0, 0.0, 0.0), 0.4), (20, (0.3, -0.2, 0.4), 0.9)):
        row.offset, row.pole_angle, row.weight, row.max_extension = offset, number, 2.0 * number, number
        for field in ("offset", "pole_angle", "weight", "max_extension"):
            row.keyframe_insert(field, frame=frame)
    shown = {}
    bpy.ops.ccd_rig.live()
    for frame in (1, 7, 13, 20):
        bpy.context.scene.frame_set(frame)
        shown[frame] = matrices(rig)
    bpy.ops.ccd_rig.live()
    assert apart(shown[1], shown[20]) > 10.0
    before = rig.animation_data.action
    bpy.ops.ccd_rig.bake(frame_start=1, frame_end=20, smoothness=0.0)
    assert rig.animation_data.action != before
    for frame, poses in shown.items():
        bpy.context.scene.frame_set(frame)
        assert apart(matrices(rig), poses) < SOLVED, frame


def shown_and_baked(ext, live, rig, last):
    """Of each frame the degrees by which Live and a bake of all frames differ, and the bake's report."""
    scene, shown = bpy.context.scene, []
    bpy.ops.ccd_rig.live()
    for frame in range(1, last + 1):
        scene.frame_set(frame)
        live.catch_up()
        shown.append(matrices(rig))
    bpy.ops.ccd_rig.live()
    module = ext.module("ccd_rig.blender.bake.bake")
    report = module.bake(scene, rig, module.BakeSettings(1, last))
    off = []
    for frame, each in enumerate(shown, 1):
        scene.frame_set(frame)
        off.append(apart(each, matrices(rig)))
    return off, report


def named(report):
    """Frames at which the report says that poses are smoothed."""
    return {
        frame for each in report.smoothed for frame in range(int(each.frame_start), int(each.frame_end) + 1)
    }


def key_target(row, way, first, last):
    row.target.keyframe_insert("location", frame=first)
    rigs.put(row.target, row.target.matrix_world.translation + Vector(way))
    row.target.keyframe_insert("location", frame=last)


def test_where_a_bake_is_smoothed_and_live_is_not_the_report_says_so(ext, live):
    """A target out of reach, and turns of less than 5 degrees: it did not."""
    rig = set_up(rigs.metarig("horse"))
    for row in rig.ccd_rig.constraints:
        row.soft = 0.0
    key_target(rig.ccd_rig.constraints["tail.005"], (0.4, 0.0, 0.0), 1, 40)
    angles, report = shown_and_baked(ext, live, rig, 40)
    off = {frame for frame, angle in enumerate(angles, 1) if angle > BAKED}
    assert off
    assert off <= named(report)
    assert "; smoothed at frame" in report.summary()


def test_a_head_that_moves_later_holds_in_live_and_bake(ext, live):
    """The bake looked at all frames: the head held at frames at which it gave way in Live."""
    rig = set_up(rigs.metarig("human"))
    hand, head = (rig.ccd_rig.constraints[name] for name in ("hand.L", "spine.006"))
    key_target(hand, (0.0, -0.45, 0.0), 1, 10)
    key_target(head, (0.0, 0.0, -0.03), 15, 25)
    angles, report = shown_and_baked(ext, live, rig, 25)
    assert max(angles) < BAKED, report.summary()
    assert not any("spine.006" in helped.gave_way for helped in report.helped)


def test_a_single_armature_is_evaluated_once_at_each_change(rig, live):
    """A second look is for armatures that follow each other, and for what has been edited."""
    target = rig.ccd_rig.constraints[0].target
    switch_live()
    evaluations = []

    def note(scene, depsgraph):
        evaluations.append(scene.name)

    live.catch_up()
    bpy.app.handlers.depsgraph_update_post.append(note)
    try:
        for place in PLACES[:3]:
            target.location = place
            rigs.update()
            shown = len(evaluations)
            live.catch_up()
            assert len(evaluations) == shown > 0
    finally:
        bpy.app.handlers.depsgraph_update_post.remove(note)
