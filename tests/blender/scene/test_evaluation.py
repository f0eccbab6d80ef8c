"""The isolated scene shows what the user's scene shows, and leaves no trace in it."""

from __future__ import annotations

from contextlib import ExitStack

import bpy
import numpy as np
import pytest
import rigs
from target_scenes import (
    FLOAT32,
    FLOAT32_FAR,
    FRAMES,
    add_row,
    animate,
    assert_same,
    file_state,
    in_main_scene,
    make_rig,
)
from target_set_ups import HIDINGS, SET_UPS, bone_by_ik, bone_of_another_armature, driven, parented, plain


@pytest.mark.parametrize("set_up", SET_UPS)
def test_same_as_main_scene(evaluation, constraints_of, skeletons, set_up):
    rig = make_rig()
    row = add_row(rig, *set_up(rig), offset=(0.1, -0.2, 0.3))
    bpy.context.scene.frame_set(5)
    before = file_state()
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        samples = [sample(frame) for frame in FRAMES]
        again = sample(FRAMES[0])
    assert file_state() == before
    assert again == samples[0]
    assert [item.frame for item in samples] == list(FRAMES)
    assert len({tuple(item.targets[0].point) for item in samples}) == len(FRAMES)  # everything moves
    for item in samples:
        assert_same(item, in_main_scene(rig, row, item.frame), skeletons)


@pytest.mark.parametrize("hide", HIDINGS)
@pytest.mark.parametrize("set_up", [plain, parented, driven, bone_of_another_armature, bone_by_ik])
def test_hidden_target(evaluation, constraints_of, skeletons, hide, set_up):
    rig = make_rig()
    row = add_row(rig, *set_up(rig))
    bpy.context.scene.frame_set(5)
    show = hide(row.target)
    before = file_state()
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        samples = [sample(frame) for frame in FRAMES]
    assert file_state() == before
    show()
    for item in samples:
        assert_same(item, in_main_scene(rig, row, item.frame), skeletons)


@pytest.mark.parametrize("hide", HIDINGS)
def test_hidden_armature(evaluation, constraints_of, skeletons, hide):
    rig = make_rig()
    row = add_row(rig, *plain(rig))
    for frame, influence in ((-5, 0.0), (12, 1.0)):
        row.influence = influence
        row.keyframe_insert("influence", frame=frame)
    show = hide(rig)
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        samples = [sample(frame) for frame in FRAMES]
    show()
    for item in samples:
        assert_same(item, in_main_scene(rig, row, item.frame), skeletons)


def test_linked_target(evaluation, constraints_of, skeletons, tmp_path):
    make_rig()
    parented(None)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "library.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = make_rig()
    with bpy.data.libraries.load(str(tmp_path / "library.blend"), link=True) as (_, wanted):
        wanted.objects = ["Target"]
    [target] = wanted.objects
    bpy.context.scene.collection.objects.link(target)
    row = add_row(rig, target)
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        samples = [sample(frame) for frame in FRAMES]
    assert len({tuple(item.targets[0].point) for item in samples}) == len(FRAMES)
    for item in samples:
        assert_same(item, in_main_scene(rig, row, item.frame), skeletons)


@pytest.mark.parametrize("kind", ["keys", "driver", "driver on a bone's property"])
def test_influence(evaluation, constraints_of, skeletons, kind):
    """The second row's influence changes; nothing else of the armature is animated."""
    rig = rigs.chain(3)
    target = rigs.empty("Target", (1, 0, 1))
    add_row(rig, target, tip="bone_2", name="First", influence=0.25)
    row = add_row(rig, target, tip="bone_1", length=2, name="Second")
    if kind == "keys":
        for frame, influence in ((-5, 0.0), (12, 1.0)):
            row.influence = influence
            row.keyframe_insert("influence", frame=frame)
    else:
        driver = row.driver_add("influence").driver
        driver.expression = "(frame + 5) / 20"
        if kind != "driver":
            bone = rig.pose.bones["bone_0"]
            bone["dial"] = 0.5
            for frame in (-5, 12):
                bone["dial"] = (frame + 5) / 20
                bone.keyframe_insert('["dial"]', frame=frame)
            variable = driver.variables.new()
            variable.name = "dial"
            variable.targets[0].id, variable.targets[0].data_path = rig, 'pose.bones["bone_0"]["dial"]'
            driver.expression = "dial"
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)[1:]) as sample:
        samples = [sample(frame) for frame in FRAMES]
    assert len({item.influences for item in samples}) == len(FRAMES)
    for item in samples:
        assert_same(item, in_main_scene(rig, row, item.frame), skeletons)


@pytest.mark.parametrize("length", [3, 0])
@pytest.mark.parametrize("mover", ["keys", "driver", "strip"])
def test_chains_move_where_none_of_their_bones_is_evaluated(
    ext, evaluation, constraints_of, skeletons, mover, length
):
    """With a layout only the parents of chains are evaluated; a chain to the root has none."""
    rig = make_rig()
    row = add_row(rig, *plain(rig), length=length)
    if mover == "driver":
        driver = rig.pose.bones["upper"].driver_add("location", 0).driver
        variable = driver.variables.new()
        variable.name, variable.type = "turn", "TRANSFORMS"
        source = variable.targets[0]
        source.id, source.bone_target, source.transform_type = rig, "aside", "ROT_X"
        driver.expression = "0.1 + turn"
    elif mover == "strip":
        ext.module("ccd_rig.blender.keys.writer").push_down(rig, (1.0, 10.0), ExitStack())
    layout = evaluation.rig_layout(rig, rig, constraints_of(rig))
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig), layout) as sample:
        samples = [sample(frame) for frame in FRAMES]
    assert len({item.reading.pose.rotations for item in samples}) == len(FRAMES)
    for item in samples:
        assert_same(item, in_main_scene(rig, row, item.frame), skeletons)


def test_several_constraints_in_the_order_asked_for(evaluation, constraints_of):
    rig = make_rig()
    places = {"A": (1, 0, 0), "B": (0, 2, 0), "C": (0, 0, 3)}
    for index, (name, place) in enumerate(places.items()):
        add_row(rig, rigs.empty(name, place), name=name, influence=index / 4)
    a, b, c = constraints_of(rig)
    with evaluation.frames(bpy.context.scene, rig, (c, a, b)) as sample:
        item = sample(3)
    assert item.influences == (0.5, 0.0, 0.25)
    for target, name in zip((each.point for each in item.targets), "CAB", strict=True):
        assert list(item.matrix_world @ target) == pytest.approx(places[name], abs=FLOAT32_FAR)


def test_unkeyed_edits_are_seen(evaluation, constraints_of, skeletons):
    """Bones and a target were moved without keys; as in playback, channels with keys go by their keys."""
    rig = rigs.chain(3)
    target = rigs.empty("Target", (1, 0, 1))
    row = add_row(rig, target, tip="bone_2")
    animate(rig.pose.bones["bone_1"], "rotation_quaternion", seed=3)
    bpy.context.scene.frame_set(5)
    rig.pose.bones["bone_0"].rotation_quaternion = (0.8, 0.6, 0, 0)
    rig.pose.bones["bone_2"].rotation_quaternion = (0.6, 0, 0, 0.8)
    rig.pose.bones["bone_1"].rotation_quaternion = (1, 0, 0, 0)
    target.location = (2, 3, 4)
    before = file_state()
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        samples = [sample(frame) for frame in FRAMES]
    # matrix_world and pose matrices were not up to date before: only the channels are looked at.
    rigs.update()
    assert tuple(rig.pose.bones["bone_1"].rotation_quaternion) == (1, 0, 0, 0)
    assert file_state()[0] == before[0]
    for item in samples:
        rotations = dict(zip(item.reading.bones, item.reading.pose.rotations, strict=True))
        assert tuple(rotations["bone_0"]) == pytest.approx((0.8, 0.6, 0, 0), abs=FLOAT32)
        assert tuple(rotations["bone_2"]) == pytest.approx((0.6, 0, 0, 0.8), abs=FLOAT32)
        assert tuple(item.targets[0].point) == pytest.approx((2, 3, 4), abs=FLOAT32)
        assert_same(item, in_main_scene(rig, row, item.frame), skeletons)


def test_pose_mode_and_selection_stay(evaluation, constraints_of):
    rig = make_rig()
    add_row(rig, *plain(rig))
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones["lower"]
    before = file_state()
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        sample(3)
        assert (rig.mode, bpy.context.mode) == ("POSE", "POSE")
    assert file_state() == before
    assert rig.data.bones.active.name == "lower"


class Failure(Exception):
    pass


def test_nothing_stays_after_failures(evaluation, constraints_of):
    rig = make_rig()
    add_row(rig, *plain(rig))
    rigs.update()
    before = file_state()

    def steps():
        with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
            for frame in FRAMES:
                yield sample(frame)

    def fail():
        with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
            sample(3)
            raise Failure

    with pytest.raises(Failure):
        fail()
    assert file_state() == before
    running = steps()
    next(running)
    assert len(bpy.data.scenes) == 2
    running.close()
    assert file_state() == before
    running = steps()
    next(running)
    del running
    assert file_state() == before


def test_file_opened_in_the_middle(evaluation, constraints_of):
    rig = make_rig()
    add_row(rig, *plain(rig))
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        sample(3)
        bpy.ops.wm.read_homefile(use_empty=True)
        with pytest.raises(ReferenceError, match="has been removed"):
            sample(4)
    assert len(bpy.data.scenes) == 1
    assert len(bpy.data.objects) == 0


def add_aside(bones):
    aside = bones.new("aside")
    aside.head, aside.tail = (1, 0, 0), (1, 0, 1)


def remove_one_of_the_chain(bones):
    bones.remove(bones["bone_2"])


@pytest.mark.parametrize(
    ("edit", "left"),
    [(add_aside, ("bone_1", "bone_2", "bone_3")), (remove_one_of_the_chain, ("bone_0", "bone_1", "bone_3"))],
)
def test_bones_that_come_or_go_between_frames_are_seen(evaluation, constraints_of, edit, left):
    rig = rigs.chain(4)
    add_row(rig, rigs.empty("Target", (1, 1, 1)), tip="bone_3", length=3)
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample_at:
        assert sample_at(1).reading.bones == ("bone_1", "bone_2", "bone_3")
        with rigs.edit_bones(rig) as bones:
            edit(bones)
        assert sample_at(2).reading.bones == sample_at(3).reading.bones == left


def test_only_wanted_bones_are_evaluated(ext, evaluation):
    """And those with a spline IK: Blender loses memory where it has prepared one that is not evaluated."""
    isolation = ext.module("ccd_rig.blender.scene.isolation")
    arms = [
        rigs.B(f"{name}_{i}", (x, 0, i), (x, 0, i + 1), f"{name}_{i - 1}" if i else "base", connect=i > 0)
        for x, name in enumerate(("wanted", "beside", "spline"))
        for i in range(3)
    ]
    rig = rigs.armature([rigs.B("base", (0, -1, 0), (0, -1, 1)), *arms])
    for seed, bone in enumerate(rig.pose.bones):
        animate(bone, "rotation_quaternion", seed=seed)
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.splines.new("POLY").points.add(2)
    for point, place in zip(curve.splines[0].points, ((2, 0, 0), (2, 1, 1), (2, 0, 2)), strict=True):
        point.co = (*place, 1)
    path = rigs.link(curve, "Path")
    animate(path, "location")
    spline = rig.pose.bones["spline_2"].constraints.new("SPLINE_IK")
    spline.target, spline.chain_count = path, 2

    def matrices(evaluated):
        return {bone.name: np.array(bone.matrix) for bone in evaluated.pose.bones}

    shown, stale = set(), set()
    with isolation.isolated_scene(bpy.context.scene, rig, [(rig, "wanted_1")], ()) as isolated:
        for frame in (1, 5, 9):
            here = matrices(rig.evaluated_get(isolation.set_frame(isolated, frame)))
            bpy.context.scene.frame_set(frame)
            there = matrices(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()))
            same = {bone for bone in here if np.array_equal(here[bone], there[bone])}
            stale |= here.keys() - same
            shown = same if frame == 1 else shown & same
    assert {"base", "wanted_0", "wanted_1", "spline_0", "spline_1", "spline_2"} <= shown
    assert {"wanted_2", "beside_0", "beside_1", "beside_2"} == stale


def test_handlers_can_tell(evaluation, isolation, constraints_of):
    """Frame handlers run for the isolated scene, which is whole, and which they can tell from the user's.

    In the end they run for the user's frame, as they may have written what belongs to another.
    """
    rig = make_rig()
    add_row(rig, *plain(rig))
    seen = []

    def handler(scene, depsgraph):
        seen.append((isolation.is_isolated(scene), scene.frame_current, len(depsgraph.view_layer.objects)))

    bpy.app.handlers.frame_change_post.append(handler)
    try:
        with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
            sample(3.5)
        bpy.context.scene.frame_set(4)
    finally:
        bpy.app.handlers.frame_change_post.remove(handler)
    assert [(isolated, frame) for isolated, frame, _ in seen] == [(True, 3), (False, 1), (False, 4)]
    assert seen[0][2] == 1


def test_of_no_frames_there_are_no_matrices(evaluation):
    """A bake in which no frame plants a bone asks for none."""
    assert evaluation.world_matrices(rigs.chain(2), [], []).shape == (0, 4, 4)
