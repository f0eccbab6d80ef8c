"""Blender's IK taken over: the same tips after a bake, influence with its animation, and the way back."""

from __future__ import annotations

import math
import random

import bpy
import numpy as np
import pytest
import rigs
from linked_rigs import linked, overridden
from mathutils import Quaternion, Vector
from rigs import B

FRAMES = range(1, 13)
CLOSE = 2e-3  # metres: Blender's own IK ends within that of its target


def leg(seed=0):
    """Hips that move, thigh, shin and foot, bent at rest with any roll; the armature stands anywhere."""
    rng = random.Random(seed)
    rig = rigs.armature(
        [
            B("hips", (0, 0, 1.0), (0, 0, 1.2)),
            B("thigh", (0.1, 0, 1.0), (0.1, -0.08, 0.5), "hips", rng.uniform(-3, 3)),
            B("shin", (0.1, -0.08, 0.5), (0.1, 0, 0.05), "thigh", rng.uniform(-3, 3), connect=True),
            B("foot", (0.1, 0, 0.05), (0.1, -0.15, 0), "shin", connect=True),
        ]
    )
    rig.location, rig.scale = (1.0, 2.0, 0.0), (1.5, 1.5, 1.5)
    rig.rotation_mode, rig.rotation_quaternion = "QUATERNION", rigs.random_rotation(rng)
    hips = rig.pose.bones["hips"]
    for frame in (FRAMES[0], FRAMES[-1]):
        hips.rotation_mode, hips.rotation_euler = "XYZ", [rng.uniform(-0.2, 0.2) for _ in range(3)]
        hips.keyframe_insert("rotation_euler", frame=frame)
    rigs.update()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = FRAMES[0], FRAMES[-1]
    return rig


def keyed(name, rig, *places):
    """An empty that goes from place to place of armature space."""
    made = rigs.empty(name)
    made.rotation_mode = "QUATERNION"
    for k, place in enumerate(places):
        frame = FRAMES[0] + k * (len(FRAMES) - 1) / max(len(places) - 1, 1)
        made.location = rig.matrix_world @ Vector(place)
        made.rotation_quaternion = Quaternion((0.3, 1.0, 0.2), 0.4 * k)
        made.keyframe_insert("location", frame=frame)
        made.keyframe_insert("rotation_quaternion", frame=frame)
    return made


def ik(rig, bone, target, count=2, **fields):
    made = rig.pose.bones[bone].constraints.new("IK")
    made.target, made.chain_count = target, count
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def converted(rig, **options):
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.ik_convert(**options) == {"FINISHED"}
    return list(rig.ccd_rig.constraints)


def played(rig, see):
    """What `see` sees of the evaluated rig at each frame."""
    found = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        found.append(see(rig.evaluated_get(bpy.context.evaluated_depsgraph_get())))
    return np.array(found)


def places(*names):
    """Heads and tails of bones in the world."""

    def see(rig):
        bones = [rig.pose.bones[name] for name in names]
        return [tuple(rig.matrix_world @ end) for bone in bones for end in (bone.head, bone.tail)]

    return see


def fails(operator, match, **options):
    with pytest.raises(RuntimeError, match=match):
        operator(**options)


SPOTS = ((0.1, -0.3, 0.25), (0.2, 0.2, 0.2), (0.0, -0.1, 0.35))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("use_tail", [True, False])
def test_a_bake_after_it_is_what_blender_s_ik_shows(ext, seed, use_tail):
    """Knee and ankle at every frame, with a pole and its angle."""
    rng = random.Random(seed)
    rig = leg(seed)
    target, pole = keyed("Goal", rig, *SPOTS), keyed("Pole", rig, (0.4, -1.5, 0.6), (-0.5, -1.5, 0.4))
    original = ik(
        rig,
        "shin" if use_tail else "foot",
        target,
        use_tail=use_tail,
        pole_target=pole,
        pole_angle=rng.uniform(-math.pi, math.pi),
    )
    expected = played(rig, places("thigh", "shin"))
    (row,) = converted(rig)
    assert (row.tip, row.chain_length, original.mute) == ("shin", 2, True)
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert np.abs(played(rig, places("thigh", "shin")) - expected).max() < CLOSE


def test_a_chain_that_is_straight_at_rest_bends_as_it_does_now(ext):
    """Blender's IK leaves it straight unless the knee is posed; its own bend then drifts by a degree."""
    rig = rigs.armature(
        [
            B("thigh", (0, 0, 1), (0, 0, 0.5), roll=0.7),
            B("shin", (0, 0, 0.5), (0, 0, 0), "thigh", connect=True),
        ]
    )
    target, pole = keyed("Goal", rig, (0.1, -0.1, 0.3), (0.2, 0.3, 0.2)), rigs.empty("Pole", (0.5, -2.0, 0.4))
    ik(rig, "shin", target, pole_target=pole, pole_angle=1.3)
    rigs.update()
    told = ext.module("ccd_rig.blender.convert.convert").convert(bpy.context, rig, None, 3)
    assert "straight at rest and now, so Pole Angle is 0" in told.notes[0]
    assert rig.ccd_rig.constraints[0].pole_target == pole
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.ik_restore() == {"FINISHED"}
    rigs.set_rotation(rig.pose.bones["shin"], Quaternion((1.0, 0.0, 0.3), 0.4))
    expected = played(rig, places("thigh", "shin"))
    converted(rig)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES[0], FRAMES[-1]
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert np.abs(played(rig, places("thigh", "shin")) - expected).max() < 0.02


def test_weights_and_rotation(ext):
    rig = leg()
    target = keyed("Goal", rig, (0.1, -0.1, 0.3), (0.1, 0.1, 0.25))
    original = ik(rig, "foot", target, 3, use_rotation=True, weight=0.5, orient_weight=0.2)
    (row,) = converted(rig)
    assert (row.rotation, row.use_position) == ("ORIENTATION", True)
    assert (row.weight, row.rotation_weight) == (pytest.approx(0.5), pytest.approx(0.4))
    assert bpy.ops.ccd_rig.ik_restore() == {"FINISHED"}
    original.use_location = False

    def axes(seen):
        return np.array(seen.matrix_world.to_3x3() @ seen.pose.bones["foot"].matrix.to_3x3())

    expected = played(rig, axes)
    (row,) = converted(rig)
    assert (row.use_position, row.weight) == (False, pytest.approx(0.2))
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert np.abs(played(rig, axes) - expected).max() < CLOSE


def test_influence_comes_with_its_keys_and_its_drivers(ext):
    """The keys are the same bits, modifiers too; a driver reads the same property."""
    rig = leg()
    first = ik(rig, "shin", keyed("Goal", rig, *SPOTS))
    second = ik(rig, "foot", keyed("Other", rig, *SPOTS), 1)
    for frame, value in ((1, 0.0), (6, 1.0), (12, 0.25)):
        first.influence = value
        first.keyframe_insert("influence", frame=frame)
    rig["switch"] = 0.75
    driver = second.driver_add("influence").driver
    driver.type = "AVERAGE"
    source = driver.variables.new().targets[0]
    source.id, source.data_path = rig, '["switch"]'
    curves = {c.data_path: c for c in ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)}
    keyed_curve = curves[first.path_from_id("influence")]
    keyed_curve.keyframe_points[1].interpolation = "CONSTANT"
    keyed_curve.modifiers.new("CYCLES").cycles_after = 3
    rows = converted(rig)
    assert [row.tip for row in rows] == ["shin", "foot"]
    curves = {c.data_path: c for c in ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)}
    copied, keyed_curve = (curves[e.path_from_id("influence")] for e in (rows[0], first))
    for a, b in zip(copied.keyframe_points, keyed_curve.keyframe_points, strict=True):
        assert tuple(a.co) == tuple(b.co) and a.interpolation == b.interpolation
        assert tuple(a.handle_left) == tuple(b.handle_left)
    assert copied.modifiers[0].cycles_after == 3
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        assert rows[0].influence == first.influence
        assert rows[1].influence == second.influence == 0.75


def everything(rig):
    """Constraints of all bones with their values, curves, drivers and objects of the file."""
    found = [
        (bone.name, c.name, c.mute, c.influence, getattr(c, "chain_count", 0), getattr(c, "target", None))
        for bone in rig.pose.bones
        for c in bone.constraints
    ]
    animation = rig.animation_data
    action = animation.action
    curves = [(c.data_path, c.array_index) for c in animation.drivers]
    names = [sorted(each.name for each in data) for data in (bpy.data.objects, bpy.data.collections)]
    return found, curves, action.name, names, len(rig.ccd_rig.constraints)


def snake():
    """Eight bones along X under a Spline IK, and its curve."""
    rig = rigs.armature(
        [
            B(
                f"tail_{i}",
                (0.3 * i, 0, 0),
                (0.3 * i + 0.3, 0, 0),
                f"tail_{i - 1}" if i else "",
                connect=i > 0,
            )
            for i in range(8)
        ]
    )
    data = bpy.data.curves.new("Path", "CURVE")
    data.dimensions = "3D"
    spline = data.splines.new("BEZIER")
    spline.bezier_points.add(2)
    for point, place in zip(
        spline.bezier_points, ((0, 0, 0), (1.2, 0.5, 0.2), (2.3, -0.2, 0.6)), strict=True
    ):
        point.co, point.handle_left_type, point.handle_right_type = place, "AUTO", "AUTO"
    curve = bpy.data.objects.new("Path", data)
    bpy.context.scene.collection.objects.link(curve)
    made = rig.pose.bones["tail_7"].constraints.new("SPLINE_IK")
    made.target, made.chain_count, made.y_scale_mode, made.use_curve_radius = curve, 8, "NONE", False
    rigs.update()
    return rig, curve


def test_the_way_back_leaves_the_file_as_it_was(ext):
    rig, _ = snake()
    rig.rotation_euler.z = 0.3
    rig.keyframe_insert("rotation_euler", frame=1)
    ik(rig, "tail_7", rigs.empty("Goal", (1.0, 1.0, 1.0)), 3).keyframe_insert("influence", frame=3)
    track = rig.pose.bones["tail_0"].constraints.new("DAMPED_TRACK")
    track.target = bpy.data.objects["Goal"]
    track.driver_add("influence")
    before = everything(rig)
    own = rig.ccd_rig.constraints.add()
    own.name = own.tip = "tail_3"
    assert len(converted(rig)) > 4
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.ik_restore() == {"FINISHED"}
    assert [row.tip for row in rig.ccd_rig.constraints] == ["tail_3"]
    rig.ccd_rig.constraints.remove(0)
    assert everything(rig) == before
    curves = ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)
    assert not any("ccd_rig" in curve.data_path for curve in curves)


def test_a_bone_looks_where_damped_track_turns_it(ext):
    """On a moving parent, by any axis, with an influence."""
    for axis in ("TRACK_Y", "TRACK_NEGATIVE_X", "TRACK_Z"):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig = leg(4)
        track = rig.pose.bones["thigh"].constraints.new("DAMPED_TRACK")
        track.target, track.track_axis = keyed("Goal", rig, (1.0, -1.0, 0.3), (-1.0, -0.5, 0.2)), axis

        def axes(seen):
            return np.array(seen.matrix_world.to_3x3() @ seen.pose.bones["thigh"].matrix.to_3x3())

        expected = played(rig, axes)
        (row,) = converted(rig)
        assert row.target.parent_bone == "hips"
        assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
        assert "12 of 12 frames reached" in rig.ccd_rig.report.words
        k = "XYZ".index(axis[-1])
        assert np.abs(played(rig, axes) - expected)[:, :, k].max() < CLOSE


def test_targets_lie_on_the_curve_of_a_spline_ik(ext):
    """The bake ends where the Spline IK had the bones, and a curve that is moved takes targets along."""
    rig, curve = snake()
    see = places(*(f"tail_{i}" for i in range(8)))
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 1
    expected = see(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()))
    rows = converted(rig, every=2)
    assert [(row.tip, row.chain_length) for row in rows] == [
        ("tail_7", 8), ("tail_5", 6), ("tail_3", 4), ("tail_1", 2)
    ]  # fmt: skip
    graph = bpy.context.evaluated_depsgraph_get()
    for row, tip in zip(rows, (7, 5, 3, 1), strict=True):
        there = row.target.evaluated_get(graph).matrix_world.translation
        assert (there - Vector(expected[2 * tip + 1])).length < 2e-3
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    found = see(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()))
    assert np.abs(np.array(found) - np.array(expected)).max() < 0.02
    before = rows[0].target.evaluated_get(graph).matrix_world.translation.copy()
    curve.location.z = 1.0
    rigs.update()
    there = rows[0].target.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world.translation
    assert (there - before - Vector((0.0, 0.0, 1.0))).length < 1e-5


def test_a_pole_beside_a_rotation_bends_as_blender_does_now(ext):
    """The line that Blender turns about goes on to the tail of the bone that is turned."""
    rig = leg(3)
    target, pole = rigs.empty("Goal"), rigs.empty("Pole", rig.matrix_world @ Vector((0.9, -1.0, 0.6)))
    target.matrix_world = rig.matrix_world @ rig.data.bones["foot"].matrix_local
    target.location += rig.matrix_world.to_3x3() @ Vector((0.1, -0.2, 0.2))
    ik(rig, "foot", target, 3, use_rotation=True, pole_target=pole, pole_angle=0.4)
    rigs.update()
    see = places("thigh", "shin")
    expected = see(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()))
    told = ext.module("ccd_rig.blender.convert.convert").convert(bpy.context, rig, None, 3)
    assert "as now: elsewhere it may differ" in told.notes[0]
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    found = see(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()))
    assert np.abs(np.array(found) - np.array(expected)).max() < CLOSE


def no_target(rig, made):
    made.target = None


def vertex_group(rig, made):
    made.target = rigs.link(bpy.data.meshes.new("Body"), "Body")
    made.subtarget = "Group"


def lost_bone(rig, made):
    made.target, made.subtarget = rig, 'no "such" bone'


def itself(rig, made):
    made.target, made.subtarget = rig, ""


def distance(rig, made):
    rig.pose.ik_solver, made.ik_type = "ITASC", "DISTANCE"


def free_axes(rig, made):
    rig.pose.ik_solver, made.lock_location_x = "ITASC", False


def nothing(rig, made):
    made.use_location = False


def driven_mute(rig, made):
    made.driver_add("mute")


def locked(rig, made):
    for name in ("shin", "thigh"):
        rig.pose.bones[name].lock_rotation = (True, True, True)


def shared(rig, made):
    made.keyframe_insert("influence", frame=1)
    other = rig.copy()
    bpy.context.scene.collection.objects.link(other)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (no_target, "has no target"),
        (vertex_group, "vertex group 'Group' of 'Body'"),
        (lost_bone, "has no bone 'no \"such\" bone'"),
        (itself, "the armature itself"),
        (distance, "keeps a distance"),
        (free_axes, "leaves axes of its target free"),
        (nothing, "neither a position nor a rotation"),
        (driven_mute, "its Mute has keys or a driver"),
        (locked, "its bones have locked rotations"),
        (shared, "which moves 'Rig.001' too"),
    ],
)
def test_what_has_no_counterpart_is_said_and_stays(ext, spoil, words):
    """Alone it is an error; beside another one that other is converted."""
    rig = leg()
    target = rigs.empty("Goal", (0.1, 0.0, 0.3))
    made = ik(rig, "shin", target)
    spoil(rig, made)
    rigs.update()
    rigs.activate(rig)
    before = everything(rig)
    fails(bpy.ops.ccd_rig.ik_convert, words)
    assert everything(rig) == before and not made.mute
    rig.pose.ik_solver = "LEGACY"
    ik(rig, "foot", target, 1)
    told = ext.module("ccd_rig.blender.convert.convert").convert(bpy.context, rig, None, 3)
    assert made.mute == (spoil in (distance, free_axes))  # these are for iTaSC alone
    if not made.mute:
        assert (told.rows, told.originals) == (("foot",), 1)
        assert any(words in note and "'shin'" in note for note in told.notes)


def test_what_is_lost_on_the_way_is_said(ext):
    rig = leg()
    made = ik(rig, "shin", rigs.empty("Goal"), use_stretch=True, pole_target=rigs.empty("Pole"))
    rig.pose.bones["thigh"].ik_stretch = 0.1
    rig.pose.bones["shin"].use_ik_limit_x = True
    rig.pose.bones["thigh"].lock_rotation = (True, True, True)
    made.use_rotation = True
    look = rig.pose.bones["foot"].constraints.new("DAMPED_TRACK")
    look.target = bpy.data.objects["Goal"]
    told = ext.module("ccd_rig.blender.convert.convert").convert(bpy.context, rig, None, 3)
    words = "\n".join(told.notes)
    assert "do not stretch here ('thigh' did)" in words
    assert "IK limits, locks and stiffness taken over: 'shin'" in words
    assert "locked rotations hold here: 'thigh'" in words
    assert "less than two bones are free to bend" in words
    assert "hangs on 'shin', which 'IK' turns" in words
    assert told.rows == ("shin",) and not look.mute


@pytest.mark.parametrize("takes", [True, False])
def test_limits_of_blenders_ik_are_taken_over(ext, takes):
    """Where the bones have none here: what a user has set stays."""
    rig = leg()
    ik(rig, "shin", rigs.empty("Goal", (0.1, 0.2, 0.4)))
    thigh, shin = rig.pose.bones["thigh"], rig.pose.bones["shin"]
    for bone in (thigh, shin):
        bone.lock_ik_y = bone.lock_ik_z = True
        bone.use_ik_limit_x, bone.ik_min_x, bone.ik_max_x = True, -0.5, 1.5
    thigh.ccd_rig.limit.kind = "CONE"
    rig.pose.bones["foot"].use_ik_limit_x = True  # in no chain
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.ik_convert(limits=takes) == {"FINISHED"}
    kinds = {bone.name: bone.ccd_rig.limit.kind for bone in rig.pose.bones}
    assert (kinds["thigh"], kinds["foot"]) == ("CONE", "NONE")
    assert kinds["shin"] == ("HINGE" if takes else "NONE")
    if takes:
        limit = shin.ccd_rig.limit
        assert (limit.hinge_lower, limit.hinge_upper) == pytest.approx((-0.5, 1.5))


def test_selected_bones_alone(ext):
    rig = leg()
    target = rigs.empty("Goal", (0.1, 0.0, 0.3))
    shin, foot = ik(rig, "shin", target), ik(rig, "foot", target, 1)
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    select = ext.module("ccd_rig.blender.keys.channels").select_bone
    for bone in rig.pose.bones:
        select(bone, bone.name == "foot")
    assert bpy.ops.ccd_rig.ik_convert(only_selected=True) == {"FINISHED"}
    assert (shin.mute, foot.mute) == (False, True)
    assert bpy.ops.ccd_rig.ik_convert() == {"FINISHED"}
    assert (shin.mute, len(rig.ccd_rig.constraints)) == (True, 2)
    assert not bpy.ops.ccd_rig.ik_convert.poll()
    assert bpy.ops.ccd_rig.ik_restore(only_selected=True) == {"FINISHED"}
    assert (shin.mute, foot.mute) == (True, False)
    for bone in rig.pose.bones:
        select(bone, bone.name == "thigh")
    fails(bpy.ops.ccd_rig.ik_convert, "of the selected bones is on", only_selected=True)


def test_a_row_whose_original_is_gone_stays(ext):
    rig = leg()
    made = ik(rig, "shin", rigs.empty("Goal", (0.1, 0.0, 0.3)))
    converted(rig)
    made.name = "Renamed"
    fails(bpy.ops.ccd_rig.ik_restore, "constraints behind shin are gone")
    assert len(rig.ccd_rig.constraints) == 1


def test_undo_and_redo(ext):
    rig = leg()
    ik(rig, "shin", rigs.empty("Goal", (0.1, 0.0, 0.3)))
    rigs.activate(rig)
    name = rig.name
    bpy.ops.ed.undo_push(message="before")
    assert bpy.ops.ccd_rig.ik_convert() == {"FINISHED"}
    bpy.ops.ed.undo_push(message="converted")

    def state():
        rig = bpy.data.objects[name]
        return rig.pose.bones["shin"].constraints["IK"].mute, len(rig.ccd_rig.constraints)

    bpy.ops.ed.undo()
    assert state() == (False, 0)
    bpy.ops.ed.redo()
    assert state() == (True, 1)


def test_an_override_keeps_what_was_converted_and_linked_rigs_are_refused(ext, tmp_path):
    rig = leg()
    ik(rig, "shin", keyed("Goal", rig, *SPOTS))
    made = overridden(rig, tmp_path)
    converted(made)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (again,) = [each for each in bpy.data.objects if each.override_library and each.type == "ARMATURE"]
    original = again.pose.bones["shin"].constraints["IK"]
    assert (original.mute, [row.tip for row in again.ccd_rig.constraints]) == (True, ["shin"])
    rigs.activate(again)
    assert bpy.ops.ccd_rig.ik_restore() == {"FINISHED"}
    assert (original.mute, len(again.ccd_rig.constraints)) == (False, 0)
    rigs.activate(linked(leg(), tmp_path))
    assert not bpy.ops.ccd_rig.ik_convert.poll()


def test_what_a_library_has_converted_is_restored_there_alone(ext, tmp_path):
    rig = leg()
    ik(rig, "shin", keyed("Goal", rig, *SPOTS))
    converted(rig)
    made = overridden(rig, tmp_path)
    rigs.activate(made)
    fails(bpy.ops.ccd_rig.ik_restore, "comes from the library")
    assert made.pose.bones["shin"].constraints["IK"].mute
