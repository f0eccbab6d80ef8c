"""The isolated scene shows what the user's scene shows, and leaves no trace in it."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Matrix, Vector

FRAMES = (1, 2.5, 7, 10, -3.75, 4)
FLOAT32 = 1e-6  # of values around 1
FLOAT32_FAR = 1e-5  # of values around 10, after an inverse


@pytest.fixture
def evaluation(ext):
    return ext.module("ccd_rig.blender.scene.evaluation")


@pytest.fixture
def constraints_of(ext):
    return ext.module("ccd_rig.blender.properties.constraint_values").constraints


@pytest.fixture
def dependence(ext):
    return ext.module("ccd_rig.blender.scene.dependence")


@pytest.fixture
def isolation(ext):
    return ext.module("ccd_rig.blender.scene.isolation")


@pytest.fixture
def errors(ext):
    return ext.module("ccd_rig.errors")


@pytest.fixture
def skeletons(ext):
    return ext.module("ccd_rig.skeleton.kinematics")


def animate(thing, path, frames=(-5, 3, 8, 12), seed=0, spread=1.0):
    """Random keys on a property of an object or a bone."""
    random = np.random.default_rng(seed)
    width = len(getattr(thing, path))
    for frame in frames:
        setattr(thing, path, tuple(random.uniform(-spread, spread, width)))
        thing.keyframe_insert(path, frame=frame)


def make_rig():
    """Three bones on an animated base, and beside them a bone of its own, in an object that moves."""
    rig = rigs.armature(
        [
            rigs.B("base", (0, 0, 0), (0, 0, 0.5)),
            rigs.B("upper", (0, 0, 0.5), (0, 0, 1.5), "base"),
            rigs.B("lower", (0, 0, 1.5), (0, 0.3, 2.5), "upper", 0.3, True),
            rigs.B("tip", (0, 0.3, 2.5), (0, 0.3, 3), "lower", -0.7, True),
            rigs.B("aside", (1, 0, 0), (1, 0, 1)),
        ]
    )
    rig.location, rig.rotation_euler = (0.4, -0.3, 0.2), (0.3, 0.5, -0.8)
    for index, bone in enumerate(("base", "upper", "lower", "aside")):
        animate(rig.pose.bones[bone], "rotation_quaternion", seed=20 + index)
    animate(rig.pose.bones["base"], "location", seed=30)
    animate(rig, "location", seed=31)
    return rig


def add_row(rig, target, bone="", tip="tip", length=3, name="Reach", **values):
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.chain_length, row.target, row.target_bone = name, tip, length, target, bone
    for key, value in values.items():
        setattr(row, key, value)
    return row


def file_state():
    """All that a user could notice: numbers of data-blocks, values, the frame, mode and selection."""
    scene, layer = bpy.context.scene, bpy.context.view_layer
    counts = {
        name: len(getattr(bpy.data, name))
        for name, kind in bpy.data.bl_rna.properties.items()
        if kind.type == "COLLECTION"
    }
    objects = {}
    for item in bpy.data.objects:
        pose = (
            [
                (
                    *map(tuple, (b.location, b.rotation_quaternion, b.rotation_euler, b.scale)),
                    b.matrix.copy().freeze(),
                )
                for b in item.pose.bones
            ]
            if item.pose
            else []
        )
        objects[item.name] = (
            item.users,
            item.matrix_world.copy().freeze(),
            *map(tuple, (item.location, item.rotation_euler, item.scale)),
            item.hide_viewport,
            item.animation_data and item.animation_data.action,
            [row.influence for row in item.ccd_rig.constraints],
            pose,
        )
    return (
        counts,
        objects,
        (
            bpy.context.window.scene if bpy.context.window else None,
            scene,
            scene.frame_current,
            scene.frame_subframe,
        ),
        (layer.objects.active, bpy.context.mode, sorted(o.name for o in layer.objects if o.select_get())),
    )


def in_main_scene(rig, row, frame, scene=None):
    """What the user's scene shows: target in armature space, influence, world matrix, heads of all bones."""
    scene = scene or bpy.context.scene
    scene.frame_set(math.floor(frame), subframe=frame - math.floor(frame))
    depsgraph = scene.view_layers[0].depsgraph
    shown = rig.evaluated_get(depsgraph)
    target = row.target.evaluated_get(depsgraph)
    assert shown.is_evaluated
    assert target.is_evaluated
    world = target.matrix_world.copy()
    if row.target_bone:
        world = world @ target.pose.bones[row.target_bone].matrix
    point = shown.matrix_world.inverted() @ (world @ Vector(row.offset))
    influence = shown.ccd_rig.constraints[row.name].influence
    heads = {bone.name: bone.head.copy() for bone in shown.pose.bones}
    return point, influence, shown.matrix_world.copy(), heads


def assert_same(sample, expected, skeletons, tolerance=FLOAT32_FAR):
    point, influence, matrix_world, heads = expected
    assert list(sample.target_points[0]) == pytest.approx(list(point), abs=tolerance)
    assert sample.influences[0] == influence
    assert sample.matrix_world == matrix_world
    placed = skeletons.forward_kinematics(sample.reading.skeleton, sample.reading.pose)
    for bone, transform in zip(sample.reading.bones, placed, strict=True):
        assert list(transform.translation) == pytest.approx(list(heads[bone]), abs=tolerance), bone


def sample_once(evaluation, rig, rows, frame):
    with evaluation.frames(bpy.context.scene, rig, rows) as sample:
        return sample(frame)


# Set-ups: each makes what a target can be, and returns the target and its bone ------------------------


def plain(rig):
    target = rigs.empty("Target", (1, 2, 3))
    animate(target, "location", seed=1, spread=3)
    return target, ""


def with_offset_scale_and_rotation(rig):
    target, _ = plain(rig)
    animate(target, "rotation_euler", seed=2)
    target.scale = (2, 0.5, -1)
    return target, ""


def parented(rig):
    grandparent, parent = rigs.empty("Grandparent", (1, 0, 0)), rigs.empty("Parent", (0, 1, 0))
    target = rigs.empty("Target", (0, 0, 1))
    for index, thing in enumerate((grandparent, parent, target)):
        animate(thing, "location", seed=index)
        animate(thing, "rotation_euler", seed=index + 7)
    parent.parent, target.parent = grandparent, parent
    target.matrix_parent_inverse = Matrix.Translation((0.1, 0.2, 0.3))
    return target, ""


def constrained(rig):
    other, target = rigs.empty("Other", (1, 1, 1)), rigs.empty("Target", (2, 0, 1))
    animate(other, "location", seed=3)
    animate(other, "rotation_euler", seed=4)
    target.constraints.new("COPY_LOCATION").target = other
    child_of = target.constraints.new("CHILD_OF")
    child_of.target, child_of.influence = other, 0.4
    return target, ""


def on_a_path(rig):
    """The curve itself is needed, not only where it is."""
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.dimensions = "3D"
    spline = curve.splines.new("BEZIER")
    spline.bezier_points.add(3)
    for index, point in enumerate(spline.bezier_points):
        point.co = (index, index % 2, 0.5 * index)
        point.handle_left_type = point.handle_right_type = "AUTO"
    path = rigs.link(curve, "Path")
    path.location = (0.2, 0.1, 0.3)
    target = rigs.empty("Target")
    follow = target.constraints.new("FOLLOW_PATH")
    follow.target, follow.use_fixed_location = path, True
    for frame, offset in ((-5, 0.0), (12, 1.0)):
        follow.offset_factor = offset
        follow.keyframe_insert("offset_factor", frame=frame)
    return target, ""


def on_a_vertex(rig):
    """Parented to a vertex of a mesh that another armature deforms."""
    other = rigs.chain(2, name="Deformer")
    animate(other.pose.bones["bone_0"], "rotation_quaternion", seed=8)
    mesh = bpy.data.meshes.new("Surface")
    mesh.from_pydata([(0, 0, 1), (1, 0, 1), (0, 1, 1)], [], [(0, 1, 2)])
    surface = rigs.link(mesh, "Surface")
    surface.vertex_groups.new(name="bone_0").add([0, 1, 2], 1.0, "REPLACE")
    surface.modifiers.new("Armature", "ARMATURE").object = other
    target = rigs.empty("Target", (0, 0, 0.2))
    target.parent, target.parent_type, target.parent_vertices = surface, "VERTEX", (1, 0, 0)
    return target, ""


def driven(rig):
    other, target = rigs.empty("Other"), rigs.empty("Target", (1, 1, 1))
    animate(other, "location", seed=5)
    for axis, expression in enumerate(("source * 2", "frame / 10", "source + sin(frame)")):
        driver = target.driver_add("location", axis).driver
        variable = driver.variables.new()
        variable.name, variable.type = "source", "TRANSFORMS"
        variable.targets[0].id, variable.targets[0].transform_type = other, "LOC_X"
        driver.expression = expression
    return target, ""


def scene_driver(target, axis, kind, path, expression="{}"):
    """A driver that reads a property of the scene, by name or as the active one."""
    driver = target.driver_add("location", axis).driver
    variable = driver.variables.new()
    variable.type = kind
    if kind == "SINGLE_PROP":
        variable.targets[0].id_type = "SCENE"
        variable.targets[0].id = bpy.context.scene
    variable.targets[0].data_path = path
    driver.expression = expression.format(variable.name)


def driven_by_the_scene(rig):
    bpy.context.scene["way"], bpy.context.scene["here"] = 1.75, 0.625
    target = rigs.empty("Target", (1, 1, 1))
    scene_driver(target, 0, "SINGLE_PROP", '["way"]')
    scene_driver(target, 1, "CONTEXT_PROP", '["here"]', "{} * frame")
    scene_driver(target, 2, "CONTEXT_PROP", "frame_current", "{} / 4")
    return target, ""


def delta_transforms(rig):
    target, _ = plain(rig)
    target.delta_location, target.delta_rotation_euler = (0.3, -0.4, 0.5), (0.2, 0.3, 0.4)
    animate(target, "delta_location", seed=6)
    return target, ""


def nla(rig):
    target, _ = plain(rig)
    action = target.animation_data.action
    track = target.animation_data.nla_tracks.new()
    strip = track.strips.new("Strip", 2, action)
    strip.scale, strip.repeat = 0.7, 2.0
    if hasattr(strip, "action_slot"):
        strip.action_slot = target.animation_data.action_slot
    target.animation_data.action = None
    return target, ""


def bone_of_another_armature(rig):
    other = rigs.chain(3, name="Leader")
    parent = rigs.empty("Parent", (0.5, 0.5, 0))
    animate(parent, "location", seed=9)
    other.parent, other.scale = parent, (1.5, 1.5, 1.5)
    for index, bone in enumerate(other.pose.bones):
        animate(bone, "rotation_quaternion", seed=10 + index)
    return other, "bone_2"


def bone_outside_the_chain(rig):
    animate(rig.pose.bones["aside"], "location", seed=12)
    return rig, "aside"


def bone_by_ik(rig):
    """The target's bone is moved by Blender's own IK, towards an animated object."""
    lead = rigs.empty("Lead", (1, 1, 1))
    animate(lead, "location", seed=13)
    other = rigs.chain(4, name="Leader", length=0.5)
    other.pose.bones["bone_3"].constraints.new("IK").target = lead
    return other, "bone_2"


def mirrored_rig(rig):
    rig.scale = (-1, 1.5, 2)
    return plain(rig)


def rig_with_animated_scale(rig):
    for frame, scale in ((-5, (1, 1, 1)), (12, (2, 0.3, -1.5))):
        rig.scale = scale
        rig.keyframe_insert("scale", frame=frame)
    # Blender's scale passes through zero between two signs, not at the frames looked at.
    return plain(rig)


def rig_under_a_parent(rig):
    parent = rigs.empty("Parent", (3, 2, 1))
    animate(parent, "rotation_euler", seed=14)
    parent.scale = (1, 2, 3)
    rig.parent = parent
    target, _ = plain(rig)
    target.parent = rig
    return target, ""


def other_frame_rates(rig):
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = 30, 1.001
    scene.render.frame_map_old, scene.render.frame_map_new = 80, 200
    return plain(rig)


SET_UPS = (
    plain,
    with_offset_scale_and_rotation,
    parented,
    constrained,
    on_a_path,
    on_a_vertex,
    driven,
    driven_by_the_scene,
    delta_transforms,
    nla,
    bone_of_another_armature,
    bone_outside_the_chain,
    bone_by_ik,
    mirrored_rig,
    rig_with_animated_scale,
    rig_under_a_parent,
    other_frame_rates,
)


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
    assert len({tuple(item.target_points[0]) for item in samples}) == len(FRAMES)  # everything moves
    for item in samples:
        assert_same(item, in_main_scene(rig, row, item.frame), skeletons)


def hide_viewport(thing):
    thing.hide_viewport = True
    return lambda: setattr(thing, "hide_viewport", False)


def hide_set(thing):
    thing.hide_set(True)
    return lambda: thing.hide_set(False)


def excluded_collection(thing):
    collection = bpy.data.collections.new("Excluded")
    bpy.context.scene.collection.children.link(collection)
    collection.objects.link(thing)
    bpy.context.scene.collection.objects.unlink(thing)
    bpy.context.view_layer.layer_collection.children["Excluded"].exclude = True
    return lambda: setattr(bpy.context.view_layer.layer_collection.children["Excluded"], "exclude", False)


def hidden_collection(thing):
    undo = excluded_collection(thing)
    undo()
    bpy.data.collections["Excluded"].hide_viewport = True
    return lambda: setattr(bpy.data.collections["Excluded"], "hide_viewport", False)


def no_collection(thing):
    bpy.context.scene.collection.objects.unlink(thing)
    return lambda: bpy.context.scene.collection.objects.link(thing)


def other_scene(thing):
    scene = bpy.data.scenes.new("Elsewhere")
    scene.frame_set(77)
    scene.collection.objects.link(thing)
    bpy.context.scene.collection.objects.unlink(thing)
    return lambda: bpy.context.scene.collection.objects.link(thing)


def keyed_hide_viewport(thing):
    thing.hide_viewport = True
    thing.keyframe_insert("hide_viewport", frame=1)

    def show():
        thing.keyframe_delete("hide_viewport", frame=1)
        thing.hide_viewport = False

    return show


HIDINGS = (
    hide_viewport,
    keyed_hide_viewport,
    hide_set,
    excluded_collection,
    hidden_collection,
    no_collection,
    other_scene,
)


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
    assert len({tuple(item.target_points[0]) for item in samples}) == len(FRAMES)
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


def test_several_constraints_in_the_order_asked_for(evaluation, constraints_of):
    rig = make_rig()
    places = {"A": (1, 0, 0), "B": (0, 2, 0), "C": (0, 0, 3)}
    for index, (name, place) in enumerate(places.items()):
        add_row(rig, rigs.empty(name, place), name=name, influence=index / 4)
    a, b, c = constraints_of(rig)
    with evaluation.frames(bpy.context.scene, rig, (c, a, b)) as sample:
        item = sample(3)
    assert item.influences == (0.5, 0.0, 0.25)
    for target, name in zip(item.target_points, "CAB", strict=True):
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
        assert tuple(item.target_points[0]) == pytest.approx((2, 3, 4), abs=FLOAT32)
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


def test_file_opened_in_the_middle(evaluation, constraints_of, errors):
    rig = make_rig()
    add_row(rig, *plain(rig))
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        sample(3)
        bpy.ops.wm.read_homefile(use_empty=True)
        with pytest.raises(errors.RigError, match="start again"):
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
    """Frame handlers run for the isolated scene, which is whole, and which they can tell from the user's."""
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
    assert [(isolated, frame) for isolated, frame, _ in seen] == [(True, 3), (False, 4)]
    assert seen[0][2] == 1


def no_target(rig, row):
    row.target = None


def no_bone(rig, row):
    row.target_bone = "gone"


def missing_row(rig, row):
    row.name = "Renamed"


def zero_scale(rig, row):
    rig.scale = (1, 0, 1)


def nan_target(rig, row):
    row.target.location = (0, math.nan, 0)


def simulated(rig, row):
    mesh = bpy.data.meshes.new("Ball")
    mesh.from_pydata(
        [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [], [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    )
    ball = rigs.link(mesh, "Ball")
    bpy.ops.rigidbody.world_add()
    bpy.ops.rigidbody.object_add()
    row.target.parent = ball


def animate_scene():
    for frame in (1, 9):
        bpy.context.scene["way"] = float(frame)
        bpy.context.scene.keyframe_insert('["way"]', frame=frame)


def scene_frame_driver(rig, row):
    scene_driver(row.target, 1, "SINGLE_PROP", "frame_current")


def animated_scene_driver(rig, row):
    animate_scene()
    row.target.parent = rigs.empty("Parent")
    scene_driver(row.target.parent, 1, "SINGLE_PROP", '["way"]')


def active_scene_driver(rig, row):
    animate_scene()
    scene_driver(row.target, 1, "CONTEXT_PROP", '["way"]')


def active_scene_setting_driver(rig, row):
    scene_driver(row.target, 1, "CONTEXT_PROP", "render.resolution_x")


def simulated_base(rig, row):
    """The bone that the chain stands on follows a simulated object."""
    row.target = rigs.empty("Still")
    lead = rigs.empty("Target")
    simulated(rig, type("Row", (), {"target": lead}))
    rig.pose.bones["base"].constraints.new("COPY_LOCATION").target = lead


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (no_target, ["Reach", "no target"]),
        (no_bone, ["Reach", "'Target' has no bone 'gone'"]),
        (missing_row, ["'Rig'", "no constraint 'Reach'"]),
        (zero_scale, ["Armature 'Rig'", "scale of 0", "frame 3"]),
        (nan_target, ["Reach", "'Target'", "not a number", "frame 3"]),
        (simulated, ["Reach", "'Target'", "rigid body", "'Ball'", "Bake To Keyframes"]),
        (simulated_base, ["Reach", "bone 'tip'", "rigid body", "'Ball'", "Bake To Keyframes"]),
        (scene_frame_driver, ["Reach", "'Target'", "frame_current", "the word frame"]),
        (animated_scene_driver, ["Reach", "'Target'", "location of 'Parent'", '["way"]']),
        (active_scene_driver, ["Reach", "'Target'", '["way"]']),
        (active_scene_setting_driver, ["Reach", "'Target'", "render.resolution_x"]),
    ],
)
def test_refused(evaluation, constraints_of, errors, spoil, words):
    rig = make_rig()
    row = add_row(rig, rigs.empty("Target", (1, 2, 3)))
    kept = constraints_of(rig)
    spoil(rig, row)
    rows = kept if spoil is missing_row else constraints_of(rig)
    rigs.update()
    before = file_state()
    with pytest.raises(errors.RigError) as caught:
        sample_once(evaluation, rig, rows, 3)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert repr(file_state()) == repr(before)  # NaN differs from itself


def test_scale_that_becomes_zero(evaluation, constraints_of, errors):
    rig = rigs.chain(2)
    add_row(rig, rigs.empty("Target", (1, 2, 3)), tip="bone_1")
    for frame, size in ((1, 1.0), (5, 0.0)):
        rig.scale = (size, size, size)
        rig.keyframe_insert("scale", frame=frame)
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        assert sample(4.5).matrix_world.to_scale().length > 0
        with pytest.raises(errors.RigError, match="'Rig' has a scale of 0 at frame 5"):
            sample(5)
        sample(1)


def test_simulated_but_not_used(evaluation, constraints_of):
    """Rigid bodies that stand still or go by their keys are evaluated as anything else."""
    rig = make_rig()
    row = add_row(rig, rigs.empty("Target", (1, 2, 3)))
    simulated(rig, row)
    row.target.parent.rigid_body.kinematic = True
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        sample(3)


# The present state ------------------------------------------------------------------------------------


@pytest.mark.parametrize("set_up", SET_UPS)
def test_current(evaluation, constraints_of, skeletons, set_up):
    rig = make_rig()
    row = add_row(rig, *set_up(rig), offset=(0.1, -0.2, 0.3))
    expected = in_main_scene(rig, row, 2.5)
    before = file_state()
    item = evaluation.current(bpy.context.evaluated_depsgraph_get(), rig, constraints_of(rig))
    assert file_state() == before
    assert item.frame == 2.5
    assert_same(item, expected, skeletons)


def test_current_sees_edits_without_keys(evaluation, constraints_of):
    rig = make_rig()
    target, _ = plain(rig)
    add_row(rig, target)
    bpy.context.scene.frame_set(5)
    rig.location, rig.rotation_euler = (0, 0, 0), (0, 0, 0)
    rig.pose.bones["upper"].rotation_quaternion = (0, 1, 0, 0)
    target.location = (7, 8, 9)
    item = evaluation.current(bpy.context.evaluated_depsgraph_get(), rig, constraints_of(rig))
    assert tuple(item.target_points[0]) == pytest.approx((7, 8, 9), abs=FLOAT32_FAR)
    rotations = dict(zip(item.reading.bones, item.reading.pose.rotations, strict=True))
    assert tuple(rotations["upper"]) == (0, 1, 0, 0)


@pytest.mark.parametrize("hide", HIDINGS)
@pytest.mark.parametrize("what", ["target", "armature"])
def test_current_with_hidden_objects(evaluation, constraints_of, skeletons, hide, what):
    """What Blender does not evaluate is not up to date, so it is taken from the isolated scene."""
    rig = make_rig()
    target, _ = plain(rig)
    row = add_row(rig, target)
    add_row(rig, rigs.empty("Second", (3, 2, 1)), name="Second")
    bpy.context.scene.frame_set(1)
    show = hide(target if what == "target" else rig)
    bpy.context.scene.frame_set(10)
    item = evaluation.current(bpy.context.evaluated_depsgraph_get(), rig, constraints_of(rig))
    assert len(bpy.data.scenes) == (2 if hide is other_scene else 1)
    show()
    expected = in_main_scene(rig, row, 10)
    assert_same(item, expected, skeletons)
    assert list(item.matrix_world @ item.target_points[1]) == pytest.approx((3, 2, 1), abs=FLOAT32_FAR)


def test_current_refuses(evaluation, constraints_of, errors):
    rig = make_rig()
    row = add_row(rig, rigs.empty("Target", (1, 2, 3)))
    nan_target(rig, row)
    bpy.context.scene.frame_set(3)
    with pytest.raises(errors.RigError, match="'Target' has a place that is not a number at frame 3"):
        evaluation.current(bpy.context.evaluated_depsgraph_get(), rig, constraints_of(rig))


# Targets that move with the chain ---------------------------------------------------------------------


def by_bone_in_chain(rig):
    return rig, "lower"


def by_bone_below_chain(rig):
    with rigs.edit_bones(rig) as bones:
        finger = bones.new("finger")
        finger.head, finger.tail, finger.parent = (0, 0, 3), (0, 0, 4), bones["tip"]
    return rig, "finger"


def parent_to_bone(rig, bone, name="Held"):
    held = rigs.empty(name)
    held.parent, held.parent_type, held.parent_bone = rig, "BONE", bone
    return held


def by_bone_parent(rig):
    return parent_to_bone(rig, "tip"), ""


def by_grandparent(rig):
    target = rigs.empty("Target")
    target.parent = parent_to_bone(rig, "upper")
    return target, ""


def by_constraint_on_bone(rig):
    target = rigs.empty("Target")
    constraint = target.constraints.new("COPY_LOCATION")
    constraint.target, constraint.subtarget = rig, "tip"
    return target, ""


def by_constraint_of_parent(rig):
    target, parent = rigs.empty("Target"), rigs.empty("Parent")
    target.parent = parent
    parent.constraints.new("COPY_LOCATION").target = parent_to_bone(rig, "tip")
    return target, ""


def by_armature_constraint(rig):
    target = rigs.empty("Target")
    entry = target.constraints.new("ARMATURE").targets.new()
    entry.target, entry.subtarget = rig, "tip"
    return target, ""


def by_constraint_of_bone(rig):
    constraint = rig.pose.bones["aside"].constraints.new("COPY_LOCATION")
    constraint.target, constraint.subtarget = rig, "tip"
    return rig, "aside"


def by_another_armature(rig):
    other = rigs.chain(2, name="Leader")
    other.parent, other.parent_type, other.parent_bone = rig, "BONE", "tip"
    return other, "bone_1"


def by_ik_of_another(rig):
    other = rigs.chain(3, name="Leader")
    other.pose.bones["bone_2"].constraints.new("IK").target = parent_to_bone(rig, "tip")
    return other, "bone_1"


def by_driver(rig):
    target = rigs.empty("Target")
    variable = target.driver_add("location", 0).driver.variables.new()
    variable.type = "TRANSFORMS"
    variable.targets[0].id, variable.targets[0].bone_target = rig, "tip"
    return target, ""


def by_property_driver(rig):
    target = rigs.empty("Target")
    variable = target.driver_add("location", 0).driver.variables.new()
    variable.targets[0].id = rig
    variable.targets[0].data_path = 'pose.bones["tip"].rotation_quaternion[1]'
    return target, ""


def by_surface(rig):
    mesh = bpy.data.meshes.new("Surface")
    mesh.from_pydata([(0, 0, 1), (1, 0, 1), (0, 1, 1)], [], [(0, 1, 2)])
    surface = rigs.link(mesh, "Surface")
    surface.modifiers.new("Armature", "ARMATURE").object = rig
    target = rigs.empty("Target")
    target.parent, target.parent_type, target.parent_vertices = surface, "VERTEX", (1, 0, 0)
    return target, ""


def by_hook(rig):
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.splines.new("POLY").points.add(2)
    path = rigs.link(curve, "Path")
    hook = path.modifiers.new("Hook", "HOOK")
    hook.object, hook.subtarget = rig, "tip"
    target = rigs.empty("Target")
    target.constraints.new("FOLLOW_PATH").target = path
    return target, ""


def by_lattice(rig):
    """The lattice that deforms the surface is deformed by the chain."""
    target, bone = by_surface(rig)
    surface, lattice = target.parent, rigs.link(bpy.data.lattices.new("Cage"), "Cage")
    surface.modifiers.clear()
    surface.modifiers.new("Lattice", "LATTICE").object = lattice
    lattice.modifiers.new("Armature", "ARMATURE").object = rig
    return target, bone


def read_bone(curve, rig):
    variable = curve.driver.variables.new()
    variable.type = "TRANSFORMS"
    variable.targets[0].id, variable.targets[0].bone_target = rig, "tip"


def by_path_driver(rig):
    """How far along its path the target is comes from the chain."""
    target, bone = by_hook(rig)
    path = target.constraints[0].target
    path.modifiers.clear()
    read_bone(path.data.driver_add("eval_time"), rig)
    return target, bone


def by_shape_key(rig):
    target, bone = by_surface(rig)
    target.parent.modifiers.clear()
    target.parent.shape_key_add(name="Basis")
    read_bone(target.parent.shape_key_add(name="Up").driver_add("value"), rig)
    return target, bone


@pytest.mark.parametrize(
    ("set_up", "words"),
    [
        (by_hook, ["'Follow Path' 'Path'", "deformed by bone 'tip'"]),
        (by_lattice, ["'Surface'", "deformed by 'Cage'", "'Rig'"]),
        (by_path_driver, ["'Path'", "driver on eval_time", "'tip'"]),
        (by_shape_key, ["'Surface'", "driver on value", "'tip'"]),
        (by_bone_in_chain, ["'lower' of 'Rig'", "part of the chain"]),
        (by_bone_below_chain, ["'finger'", "hangs on bone 'tip'"]),
        (by_bone_parent, ["'Held'", "parented to bone 'tip' of 'Rig'"]),
        (by_grandparent, ["'Target'", "parented to 'Held'", "bone 'upper'"]),
        (by_constraint_on_bone, ["'Target'", "'Copy Location'", "bone 'tip'"]),
        (by_constraint_of_parent, ["'Parent'", "'Copy Location' 'Held'", "bone 'tip'"]),
        (by_armature_constraint, ["'Target'", "'Armature'", "bone 'tip'"]),
        (by_constraint_of_bone, ["'aside'", "'Copy Location'", "bone 'tip'"]),
        (by_another_armature, ["'Leader'", "bone 'tip'"]),
        (by_ik_of_another, ["'IK'", "'Held'", "bone 'tip'"]),
        (by_driver, ["'Target'", "driver on location", "bone 'tip'"]),
        (by_property_driver, ["'Target'", "driver on location", "bone 'tip'"]),
        (by_surface, ["'Surface'", "deformed by", "'Rig'"]),
    ],
)
def test_depends_on_chain(dependence, constraints_of, set_up, words):
    rig = make_rig()
    row = add_row(rig, *set_up(rig))
    chain = {"upper", "lower", "tip"}
    for given in (row, constraints_of(rig)[0]):
        why = dependence.target_depends_on_chain(rig, given, chain)
        assert why is not None
        assert all(word in why for word in words), why
    assert dependence.target_depends_on_chain(rig, row, {"not", "there"}) is None


@pytest.mark.parametrize("set_up", SET_UPS)
def test_does_not_depend_on_chain(dependence, set_up):
    rig = make_rig()
    row = add_row(rig, *set_up(rig))
    assert dependence.target_depends_on_chain(rig, row, {"upper", "lower", "tip"}) is None


def test_muted_dependencies_and_circles(dependence):
    """A muted constraint moves nothing; and objects that follow each other end the search."""
    rig = make_rig()
    target, other = rigs.empty("Target"), rigs.empty("Other")
    muted = target.constraints.new("COPY_LOCATION")
    muted.target, muted.subtarget, muted.mute = rig, "tip", True
    target.constraints.new("COPY_LOCATION").target = other
    other.constraints.new("COPY_LOCATION").target = target
    row = add_row(rig, target)
    assert dependence.target_depends_on_chain(rig, row, {"upper", "lower", "tip"}) is None
    target.parent, target.parent_type, target.parent_bone = rig, "BONE", "base"
    assert dependence.target_depends_on_chain(rig, row, {"upper", "lower", "tip"}) is None
    assert "bone 'base'" in dependence.target_depends_on_chain(rig, row, {"base"})
