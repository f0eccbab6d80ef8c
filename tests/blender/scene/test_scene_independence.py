"""What is baked depends on the rig and its targets alone, whatever else the scene holds and hides.

Expected values come from the user's scene itself, played by `frame_set`.
"""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Matrix, Vector
from moving_targets import SET_UPS, arm, constrained_base, key, on_a_vertex, plain, reach, weigh_down

FRAMES = range(1, 21)
PLAYED = 1e-5  # metres: float32 bones around 1, and the way through the armature object's inverse
REACHED = 2e-4  # metres: the solver's own tolerance, and float32 bones end to end


def in_main_scene(rig, row, frame):
    """The target in armature space, as the user's scene shows it."""
    bpy.context.scene.frame_set(frame)
    depsgraph = bpy.context.evaluated_depsgraph_get()
    target = row.target.evaluated_get(depsgraph)
    bone = target.pose.bones[row.target_bone].matrix if row.target_bone else Matrix.Identity(4)
    point = target.matrix_world @ bone @ Vector(row.offset)
    return rig.evaluated_get(depsgraph).matrix_world.inverted() @ point


def heads_in_main_scene(rig, frame):
    bpy.context.scene.frame_set(frame)
    shown = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return {bone.name: bone.head.copy() for bone in shown.pose.bones}


@pytest.mark.parametrize("set_up", SET_UPS, ids=lambda set_up: set_up.__name__)
def test_targets_and_base_are_those_of_the_main_scene(ext, evaluation, constraints_of, set_up):
    skeletons = ext.module("ccd_rig.skeleton.kinematics")
    rig = arm()
    row = reach(rig, *set_up(rig), offset=(0.05, -0.1, 0.1))
    bpy.context.scene.frame_set(7)
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample_at:
        samples = {frame: sample_at(frame) for frame in FRAMES}
    places = {tuple(sample.targets[0].point) for sample in samples.values()}
    assert len(places) > len(samples) // 2  # it moves at all
    for frame, sample in samples.items():
        assert (sample.targets[0].point - in_main_scene(rig, row, frame)).length < PLAYED, frame
        heads = heads_in_main_scene(rig, frame)
        placed = skeletons.forward_kinematics(sample.reading.skeleton, sample.reading.pose)
        for bone, transform in zip(sample.reading.bones, placed, strict=True):
            assert (transform.translation - heads[bone]).length < PLAYED, (frame, bone)


@pytest.mark.parametrize("set_up", SET_UPS, ids=lambda set_up: set_up.__name__)
def test_played_keys_are_where_the_main_scene_has_the_target(bake, set_up):
    rig = arm()
    row = reach(rig, *set_up(rig))
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(FRAMES.start, FRAMES.stop - 1))
    assert not report.unsolved(), report.summary()
    for frame in FRAMES:
        target = in_main_scene(rig, row, frame)
        shown = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        assert (shown.pose.bones["bone_8"].tail - target).length < REACHED, frame


def keys_of(channels, rig):
    """Every key of the rig's action, bit by bit."""
    found = {}
    for curve in channels.fcurves_of(rig):
        values = np.empty(2 * len(curve.keyframe_points), np.float32)
        curve.keyframe_points.foreach_get("co", values)
        found[curve.data_path, curve.array_index] = values.tobytes()
    return found


@pytest.mark.parametrize("set_up", SET_UPS, ids=lambda set_up: set_up.__name__)
def test_a_heavy_scene_gives_the_same_bits(bake, channels, set_up):
    baked = []
    for heavy in (False, True):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig = arm()
        reach(rig, *set_up(rig))
        if heavy:
            weigh_down(rig)
        bpy.context.scene.frame_set(4)
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(FRAMES.start, FRAMES.stop - 1))
        baked.append(keys_of(channels, rig))
    light, heavy = baked
    assert len(light) >= 4 * 8
    assert light == heavy


def in_two_scenes(rig):
    """The second one plays other frames at another rate and holds the rig as well."""
    second = bpy.data.scenes.new("Second")
    second.collection.objects.link(rig)
    second.render.fps = 60
    second.frame_set(13)


def in_a_hidden_collection(rig):
    collection = bpy.data.collections.new("Rigs")
    bpy.context.scene.collection.children.link(collection)
    collection.objects.link(rig)
    bpy.context.scene.collection.objects.unlink(rig)
    collection.hide_viewport = True


def in_an_excluded_collection(rig):
    in_a_hidden_collection(rig)
    bpy.data.collections["Rigs"].hide_viewport = False
    bpy.context.view_layer.layer_collection.children["Rigs"].exclude = True


def with_another_user_of_its_data(rig):
    """A second object shares the armature and stands in another pose."""
    twin = rigs.link(rig.data, "Twin")
    rigs.update()  # makes its pose
    key(twin.pose.bones["bone_3"], "rotation_quaternion", [(1, 0, 0, 0), (0.7, 0.7, 0, 0)])


def in_a_second_view_layer(rig):
    bpy.context.scene.view_layers.new("Other").layer_collection.exclude = False


SURROUNDINGS = (
    in_two_scenes,
    in_a_hidden_collection,
    in_an_excluded_collection,
    with_another_user_of_its_data,
    in_a_second_view_layer,
)


@pytest.mark.parametrize("surround", SURROUNDINGS)
@pytest.mark.parametrize("set_up", [plain, on_a_vertex, constrained_base], ids=lambda s: s.__name__)
def test_where_the_rig_is_makes_no_difference(bake, channels, surround, set_up):
    baked = []
    for change in (None, surround):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig = arm()
        reach(rig, *set_up(rig))
        if change is not None:
            change(rig)
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(FRAMES.start, FRAMES.stop - 1))
        baked.append(keys_of(channels, rig))
    assert len(baked[0]) >= 4 * 8
    assert baked[0] == baked[1]


def test_a_bake_in_one_scene_leaves_the_other_as_it_is(bake):
    rig = arm()
    reach(rig, *plain(rig))
    in_two_scenes(rig)
    second = bpy.data.scenes["Second"]
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(FRAMES.start, FRAMES.stop - 1))
    assert second.frame_current == 13
    assert second.render.fps == 60
    assert list(second.collection.objects) == [rig]
    assert {scene.name for scene in bpy.data.scenes} == {bpy.context.scene.name, "Second"}


class Sway(bpy.types.PropertyGroup):
    """How far a script's handler moves a target."""

    far: bpy.props.FloatProperty()


def by_the_scene_of_the_call(scene, _depsgraph):
    bpy.data.objects["Target"].location = sway(scene, scene.frame_current)


def by_the_scene_of_the_context(*_arguments):
    scene = bpy.context.scene
    bpy.data.objects["Target"].location = sway(scene, scene.frame_current)


def with_one_argument(scene):
    bpy.data.objects["Target"].location = sway(scene, bpy.context.scene.frame_current)


def sway(scene, frame):
    return (scene.sway.far * frame, scene["sides"][1], 2.0)


@pytest.mark.parametrize("when", ["frame_change_pre", "frame_change_post"])
@pytest.mark.parametrize(
    "handler", [by_the_scene_of_the_call, by_the_scene_of_the_context, with_one_argument]
)
def test_targets_that_handlers_of_scripts_move(bake, handler, when):
    """They see the baked frames, and the user's frame again in the end, with properties of add-ons too."""
    bpy.utils.register_class(Sway)
    bpy.types.Scene.sway = bpy.props.PointerProperty(type=Sway)
    handlers = getattr(bpy.app.handlers, when)
    handlers.append(handler)
    try:
        rig, target, scene = arm(), rigs.empty("Target", (1, 1, 2)), bpy.context.scene
        scene.sway.far, scene["sides"] = 0.05, [0.0, -0.5]
        row = reach(rig, target, "")
        scene.frame_set(4)
        before = target.location.copy()
        assert before.x == pytest.approx(0.2)
        report = bake.bake(scene, rig, bake.BakeSettings(FRAMES.start, FRAMES.stop - 1))
        assert not report.unsolved(), report.summary()
        assert target.location == before
        for frame in FRAMES:
            at = in_main_scene(rig, row, frame)
            shown = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
            assert (shown.pose.bones["bone_8"].tail - at).length < REACHED, frame
    finally:
        handlers.remove(handler)
        del bpy.types.Scene.sway
        bpy.utils.unregister_class(Sway)
