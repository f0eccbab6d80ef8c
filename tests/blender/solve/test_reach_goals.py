"""Rotations, poles, priorities and reach windows: held against what Blender plays of the baked action."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Euler, Matrix, Quaternion

SOLVE = 1e-4  # [m] the solver's own tolerance
TURNED = 1e-3  # [rad] the solver's own tolerance
PLAYED = 1e-4  # [m] and [rad]: float32 bones end to end, evaluated by Blender
FRAMES = 25


PLACES = {
    "at home": Matrix(),
    "moved": Matrix.Translation((30.0, -20.0, 5.0)),
    "turned": Euler((0.7, -1.1, 2.0)).to_matrix().to_4x4(),
    "scaled": Matrix.LocRotScale((1, 2, 3), Euler((0.3, 0.2, 0.1)), (2.5, 2.5, 2.5)),
    "mirrored": Matrix.LocRotScale((0, 1, 0), Euler((0.3, 0.2, 0.1)), (-1.0, 1.0, 1.0)),
    "stretched": Matrix.LocRotScale((0, 1, 0), Euler((0.3, 0.2, 0.1)), (1.0, 2.0, 0.5)),
}


def constrain(rig, tip, target, name="Hand", **fields):
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target = name, tip, target
    for field, value in fields.items():
        setattr(row, field, value)
    return row


def key_transforms(thing, matrices, gap=8):
    """Key an object's place and rotation, one matrix every `gap` frames."""
    thing.rotation_mode = "QUATERNION"
    for i, matrix in enumerate(matrices):
        thing.location, thing.rotation_quaternion, thing.scale = matrix.decompose()
        for path in ("location", "rotation_quaternion", "scale"):
            thing.keyframe_insert(path, frame=1 + gap * i)
    rigs.update()


def arm(place=Matrix(), count=6, **fields):  # noqa: B008  (a matrix is not changed)
    """A chain of `count` bones of half a metre, and a target that moves and turns within reach."""
    rig = rigs.chain(count, 0.5)
    rig.matrix_world = place
    target = rigs.empty("Target")
    poses = [
        Matrix.LocRotScale(where, Euler(turn), (1, 1, 1))
        for where, turn in (
            ((0.6, 0.4, 1.6), (0.2, 0.1, 0.0)),
            ((0.2, 0.9, 1.4), (-0.5, 0.4, 0.8)),
            ((-0.7, 0.3, 1.7), (0.6, -0.3, -0.9)),
            ((-0.2, -0.6, 1.3), (1.0, 0.2, 0.3)),
        )
    ]
    turn = place.to_3x3()
    for pose in poses:  # the points go with the armature, the rotations stay those of a rigid object
        pose.translation = place.translation + turn @ pose.translation
    key_transforms(target, poses)
    row = constrain(rig, f"bone_{count - 1}", target, **fields)
    bpy.context.scene.frame_set(1)
    return rig, target, row


def played(rig, frames=()):
    """(frame, evaluated armature object, depsgraph) of each frame, or of all, as Blender plays it."""
    for frame in frames or range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        depsgraph = bpy.context.evaluated_depsgraph_get()
        yield frame, rig.evaluated_get(depsgraph), depsgraph


def world_axes(evaluated, bone):
    """Unit vectors of a bone's axes in the world."""
    matrix = (evaluated.matrix_world @ evaluated.pose.bones[bone].matrix).to_3x3()
    return [matrix.col[axis].normalized() for axis in range(3)]


def apart(a, b):
    return math.atan2(a.cross(b).length, a.dot(b))


def distance(rig, row, evaluated, depsgraph):
    tip = evaluated.matrix_world @ evaluated.pose.bones[row.tip].tail
    return (tip - row.target.evaluated_get(depsgraph).matrix_world.translation).length


# --- rotation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [name for name in PLACES if name != "stretched"])
def test_orientation_is_the_targets_wherever_the_armature_is(bake, place):
    rig, target, row = arm(PLACES[place], rotation="ORIENTATION")
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    for _, evaluated, depsgraph in played(rig):
        wanted = target.evaluated_get(depsgraph).matrix_world.to_3x3()
        axes = world_axes(evaluated, row.tip)
        # A mirrored armature has left-handed bones: Y and Z are the target's, X points the other way.
        sides = (-1.0 if place == "mirrored" else 1.0, 1.0, 1.0)
        for axis, side, k in zip(axes, sides, range(3), strict=True):
            assert apart(axis, side * wanted.col[k]) < TURNED + PLAYED
        assert distance(rig, row, evaluated, depsgraph) < SOLVE + PLAYED


def test_a_mirrored_targets_orientation_in_a_mirrored_armature_is_whole(bake):
    rig, target, row = arm(PLACES["mirrored"], rotation="ORIENTATION")
    target.animation_data_clear()
    target.parent = rig
    target.matrix_parent_inverse = Matrix()
    target.location, target.rotation_quaternion = (0.5, 0.5, 1.5), Euler((0.4, 0.2, -0.6)).to_quaternion()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert report.unsolved() == ()
    for _, evaluated, depsgraph in played(rig, (1, 3)):
        wanted = target.evaluated_get(depsgraph).matrix_world.to_3x3()
        for axis, k in zip(world_axes(evaluated, row.tip), range(3), strict=True):
            assert apart(axis, wanted.col[k]) < TURNED + PLAYED


def test_orientation_under_shear_points_the_bone_exactly(bake):
    """No rigid bone is sheared: its length is along the target's Y, and Z in the plane of the target's."""
    rig, target, row = arm(PLACES["stretched"], rotation="ORIENTATION")
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == ()
    for _, evaluated, depsgraph in played(rig):
        wanted = target.evaluated_get(depsgraph).matrix_world.to_3x3()
        _, y, z = world_axes(evaluated, row.tip)
        assert apart(y, wanted.col[1]) < 4 * TURNED  # a milliradian of armature space, stretched 1 : 4
        normal = wanted.col[1].cross(wanted.col[2]).normalized()
        assert abs(z.dot(normal)) < 4 * TURNED


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("bone_axis", "target_axis"), [("POS_Y", "POS_Z"), ("NEG_X", "POS_Y"), ("POS_Z", "NEG_X")]
)
def test_direction_points_an_axis_along_an_axis(bake, place, bone_axis, target_axis):
    fields = {"rotation": "DIRECTION", "bone_axis": bone_axis, "target_axis": target_axis}
    rig, target, row = arm(PLACES[place], **fields)
    report = bake.bake(
        bpy.context.scene, rig, bake.BakeSettings(1, FRAMES, step=4, keys=bake.Keys.SOLVED_FRAMES)
    )
    assert report.unsolved() == (), report.summary()
    for _, evaluated, depsgraph in played(rig, range(1, FRAMES + 1, 4)):
        axis = world_axes(evaluated, row.tip)["XYZ".index(bone_axis[-1])]
        axis = -axis if bone_axis.startswith("NEG") else axis
        wanted = target.evaluated_get(depsgraph).matrix_world.to_3x3().col["XYZ".index(target_axis[-1])]
        wanted = -wanted if target_axis.startswith("NEG") else wanted
        assert apart(axis, wanted) < (4 if place == "stretched" else 1) * TURNED + PLAYED


def test_rotation_alone_leaves_the_place_free(bake):
    rig, target, _ = arm(use_position=False, rotation="ORIENTATION", chain_length=2)
    target.location = (50.0, 0.0, 0.0)
    target.keyframe_insert("location", frame=1)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == ()
    assert {row.residual for row in report.entries} == {0.0}
    assert "m / " not in report.summary()
    assert "degrees" in report.summary()


def test_the_report_has_the_angle_that_plays(bake):
    """The target's rotation is out of reach of the limits: the angle is reported as it is."""
    rig, target, row = arm(rotation="ORIENTATION", rotation_weight=0.001)
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.7
        bone.ccd_rig.limit.use_twist, bone.ccd_rig.limit.twist_lower, bone.ccd_rig.limit.twist_upper = (
            True,
            0.0,
            0.0,
        )
    target.animation_data_clear()
    target.rotation_quaternion = Euler((0, 0, 3.0)).to_quaternion()
    row.influence = 0.7
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
    assert report.unsolved_count() == 2
    assert report.worst().angle > 0.1
    assert " m / " in report.summary()
    assert f"{math.degrees(report.worst().angle):.1f} degrees" in report.summary()
    for line, (_, evaluated, depsgraph) in zip(report.entries, played(rig, (1, 2)), strict=True):
        wanted = target.evaluated_get(depsgraph).matrix_world.to_quaternion()
        seen = evaluated.pose.bones[row.tip].matrix.to_quaternion()
        angle = seen.rotation_difference(wanted).angle
        assert min(angle, math.tau - angle) == pytest.approx(line.keyed_angle, abs=1e-3)
        assert abs(line.keyed_angle - line.angle) > 1e-3  # blended with the pose at rest


# --- pole ---------------------------------------------------------------------------------------------------


def leg(limits=False):
    """Thigh, shin and foot down from the hip, a little bent; targets for the foot and for the knee."""
    rig = rigs.armature(
        [
            rigs.B("hip", (0, 0, 2), (0, 0, 2.3)),
            rigs.B("thigh", (0, 0, 2), (0, -0.1, 1), "hip"),
            rigs.B("shin", (0, -0.1, 1), (0, 0, 0), "thigh", connect=True),
        ]
    )
    target, pole = rigs.empty("Foot"), rigs.empty("Knee")
    for frame, where in ((1, (0, 0, 0.4)), (9, (0.3, -0.4, 0.6)), (17, (-0.3, 0.5, 0.8)), (25, (0, 0, 0.3))):
        target.location = where
        target.keyframe_insert("location", frame=frame)
    for frame, turn in ((1, -90), (9, -20), (17, 60), (25, 170)):
        pole.location = (2 * math.cos(math.radians(turn)), 2 * math.sin(math.radians(turn)), 1.2)
        pole.keyframe_insert("location", frame=frame)
    if limits:
        rig.pose.bones["thigh"].ccd_rig.limit.kind = "CONE"
        rig.pose.bones["thigh"].ccd_rig.limit.cone_radius = 1.2
        rig.pose.bones["thigh"].ccd_rig.limit.use_twist = True
        rig.pose.bones["thigh"].ccd_rig.limit.twist_lower = -0.6
        rig.pose.bones["thigh"].ccd_rig.limit.twist_upper = 0.6
        shin = rig.pose.bones["shin"].ccd_rig.limit
        shin.kind, shin.axis, shin.hinge_lower, shin.hinge_upper = "HINGE", (1, 0, 0), -0.1, 2.5
    rigs.update()
    row = constrain(rig, "shin", target, "Foot", chain_length=2, pole_target=pole)
    return rig, row


def bend_angle(evaluated, row, depsgraph):
    """The angle between the knee and the pole about the line from hip to foot, in the world."""
    world = evaluated.matrix_world
    thigh, shin = evaluated.pose.bones["thigh"], evaluated.pose.bones["shin"]
    hip, knee, foot = world @ thigh.head, world @ shin.head, world @ shin.tail
    pole = row.pole_target.evaluated_get(depsgraph).matrix_world.translation
    line = (foot - hip).normalized()
    sides = [point - hip - line * (point - hip).dot(line) for point in (knee, pole)]
    return apart(*sides)


@pytest.mark.parametrize("place", ["at home", "turned", "mirrored"])
def test_a_chain_bends_towards_its_pole(bake, place):
    rig, row = leg()
    rig.matrix_world = PLACES[place]
    for thing in (row.target, row.pole_target):  # what they are keyed to is in the armature's own space
        thing.parent = rig
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    for frame, evaluated, depsgraph in played(rig):
        assert distance(rig, row, evaluated, depsgraph) < SOLVE + PLAYED, frame
        assert bend_angle(evaluated, row, depsgraph) < TURNED + 5 * PLAYED, frame


def test_a_pole_never_breaks_a_limit_nor_keeps_the_foot_from_its_target(ext, bake):
    limits = ext.module("ccd_rig.limits.shapes")
    joints = ext.module("ccd_rig.blender.properties.joints")
    rig, row = leg(limits=True)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    alone, other = leg(limits=True)
    other.pole_target = None
    free = bake.bake(bpy.context.scene, alone, bake.BakeSettings(1, FRAMES))
    assert report.unsolved_count() > 0  # the pole goes behind, where the leg's limits do not let it bend
    for with_pole, without in zip(report.entries, free.entries, strict=True):
        assert with_pole.residual <= max(without.residual, 0.0) + 1.2 * SOLVE, with_pole
    for frame, evaluated, depsgraph in played(rig):
        for bone in ("thigh", "shin"):
            limit = joints.limit_value(rig.pose.bones[bone].ccd_rig.limit)
            turned = evaluated.pose.bones[bone].rotation_quaternion.normalized()
            assert limits.violation(limit, turned) < 2e-5, (frame, bone)
        line = next(each for each in report.entries if each.frame == frame)
        assert bend_angle(evaluated, row, depsgraph) == pytest.approx(line.keyed_angle, abs=2e-3)


def test_a_bone_of_another_armature_is_a_pole(bake):
    rig, row = leg()
    other = rigs.chain(2, 1.0, name="Other")
    other.location = (0.0, -2.0, 0.2)
    for frame, angle in ((1, 0.0), (FRAMES, 1.2)):
        other.pose.bones["bone_0"].rotation_quaternion = Quaternion((1, 0, 0), angle)
        other.pose.bones["bone_0"].keyframe_insert("rotation_quaternion", frame=frame)
    row.pole_target, row.pole_bone = other, "bone_1"
    other.hide_viewport = True
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == ()
    other.hide_viewport = False
    for _, evaluated, depsgraph in played(rig, (1, 12, FRAMES)):
        head = other.matrix_world @ other.evaluated_get(depsgraph).pose.bones["bone_1"].head
        thigh, shin = evaluated.pose.bones["thigh"], evaluated.pose.bones["shin"]
        line = (shin.tail - thigh.head).normalized()
        sides = [p - thigh.head - line * (p - thigh.head).dot(line) for p in (shin.head, head)]
        assert apart(*sides) < TURNED + 5 * PLAYED


def test_solve_pose_takes_pole_and_rotation_too(bake):
    rig, row = leg()
    row.rotation, row.bone_axis, row.target_axis = "DIRECTION", "POS_Z", "POS_X"
    row.use_position = True
    row.rotation = "NONE"
    bpy.context.scene.frame_set(9)
    result = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig).result
    rigs.update()
    depsgraph = bpy.context.evaluated_depsgraph_get()
    assert len(result.errors) == 1
    assert bend_angle(rig.evaluated_get(depsgraph), row, depsgraph) < TURNED + 5 * PLAYED


# --- priority and reach -------------------------------------------------------------------------------------


def two_hands():
    """A spine with an arm on each side; each target is met only if the spine leans to its side."""
    bones = [rigs.B("spine", (0, 0, 0), (0, 0, 1))]
    for side, sign in (("L", 1), ("R", -1)):
        bones.append(rigs.B(f"{side}0", (0, 0, 1), (sign * 0.5, 0, 1), "spine"))
        bones.append(rigs.B(f"{side}1", (sign * 0.5, 0, 1), (sign * 1.0, 0, 1), f"{side}0", connect=True))
    rig = rigs.armature(bones)
    for side, sign in (("L", 1), ("R", -1)):
        constrain(rig, f"{side}1", rigs.empty(f"Target {side}", (sign * 1.6, 0.1, 0.6)), side)
    rigs.update()
    return rig


@pytest.mark.parametrize("first", ["L", "R"])
def test_the_hand_that_is_served_first_keeps_its_target(bake, first):
    rig = two_hands()
    for row in rig.ccd_rig.constraints:
        row.priority = 0 if row.name == first else 3
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    states = {(row.constraint == first): row.status for row in report.entries}
    assert states[True] == "CONVERGED"
    assert states[False] != "CONVERGED"
    for row in report.entries:
        assert (row.residual < 1.2 * SOLVE) == (row.constraint == first), row
    rig.animation_data_clear()
    for row in rig.ccd_rig.constraints:
        row.priority = 0
    shared = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert all(row.residual > 0.02 for row in shared.entries)  # they meet halfway


@pytest.mark.parametrize("bones", [0, 3])
def test_an_arm_is_never_stretched_past_its_reach(bake, bones):
    rig, target, row = arm(max_extension=0.8, extension_joints=bones)
    target.animation_data_clear()
    for frame, where in ((1, (0.3, 0.2, 1.5)), (13, (1.25, 0.95, 2.05)), (25, (0.3, 0.2, 1.5))):
        target.location = where
        target.keyframe_insert("location", frame=frame)
    for i, bone in enumerate(rig.pose.bones):  # it does not start stretched
        bone.rotation_quaternion = Quaternion((1, 0, 0), 0.6 * (-1) ** i)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    first = rig.pose.bones[f"bone_{6 - bones}" if bones else "bone_0"].name
    stretches = []
    for _, evaluated, _ in played(rig):
        way = evaluated.pose.bones["bone_5"].tail - evaluated.pose.bones[first].head
        stretches.append(way.length / (0.5 * (bones or 6)))
    assert max(stretches) < 0.8 + 1e-3
    assert max(stretches) > 0.75
    if bones:
        assert report.unsolved() == ()  # the bones further up do the rest
    rig.animation_data_clear()
    row.max_extension = 1.0
    target.location = (1.4, 1.1, 2.25)  # nearly as far as the whole chain is long
    target.keyframe_insert("location", frame=13)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    ways = [
        (e.pose.bones["bone_5"].tail - e.pose.bones[first].head).length / (0.5 * (bones or 6))
        for _, e, _ in played(rig)
    ]
    assert max(ways) > 0.82  # without the window it is


# --- what cannot be -----------------------------------------------------------------------------------------


def pole_in_chain(rig, row):
    row.pole_target, row.pole_bone = rig, "shin"


def pole_hangs_on_chain(rig, row):
    row.pole_target.parent, row.pole_target.parent_type, row.pole_target.parent_bone = rig, "BONE", "thigh"


def pole_is_the_rig(rig, row):
    row.pole_target = rig


def pole_of_one_bone(rig, row):
    row.chain_length = 1


def pole_of_one_bone_before_the_head(rig, row):
    row.use_tail = False


def pole_bone_is_gone(rig, row):
    row.pole_target, row.pole_bone = rigs.chain(2, name="Other"), "nowhere"


def pole_is_nowhere(rig, row):
    row.pole_target.animation_data_clear()
    row.pole_target.location = (math.nan, 0, 0)


def asks_for_nothing(rig, row):
    row.use_position = False


def flat_target(rig, row):
    row.rotation, row.pole_target = "ORIENTATION", None
    row.target.scale = (1, 0, 1)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (pole_in_chain, "pole bone 'shin' moves with the chain"),
        (pole_hangs_on_chain, "pole moves with the chain.*thigh"),
        (pole_is_the_rig, "the pole is the armature itself"),
        (pole_of_one_bone, "pole needs a chain of two bones"),
        (pole_of_one_bone_before_the_head, "pole needs a chain of two bones"),
        (pole_bone_is_gone, "'nowhere'"),
        (pole_is_nowhere, "pole 'Knee' has a place that is not a number"),
        (asks_for_nothing, "asks for nothing"),
        (flat_target, "scale of 0"),
    ],
)
def test_what_cannot_be_is_said(bake, errors, spoil, words):
    rig, row = leg()
    spoil(rig, row)
    rigs.update()
    before = len(bpy.data.actions)
    with pytest.raises(errors.CCDRigError, match=words) as caught:
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert "'Foot'" in str(caught.value)
    assert len(bpy.data.actions) == before
    assert rig.animation_data is None


def test_warnings(ext):
    checks = ext.module("ccd_rig.blender.checks.setup")

    def warned():
        return [p.message for p in checks.problems(rig, bpy.context.scene) if p.severity == "WARNING"]

    rig, row = leg()
    assert warned() == []
    row.max_extension, row.extension_joints = 0.8, 1
    assert "Max Extension is about one bone" in warned()[0]
    row.max_extension = 1.0
    row.rotation = "ORIENTATION"
    twin = constrain(
        rig, "shin", row.target, "Twin", chain_length=2, pole_target=row.pole_target, rotation="DIRECTION"
    )
    assert len(warned()) == 3
    twin.priority = 1
    assert warned() == []
    twin.pole_target, twin.pole_bone = None, "left"
    assert "no pole target" in warned()[0]


def test_a_row_of_before_is_as_it_was(ext):
    """What a file holds that was saved before there were goals: a name, a bone, a target, no more."""
    rig = rigs.chain(3, 0.5)
    row = constrain(rig, "bone_2", rigs.empty("Target", (0.5, 0.5, 0.9)))
    values = ext.module("ccd_rig.blender.properties.constraint_values").constraints(rig)[0]
    assert (values.kind, values.use_position, values.rotation, values.pole_target) == (
        "REACH",
        True,
        "NONE",
        "",
    )
    assert (values.priority, values.max_extension, values.extension_joints) == (0, 1.0, 0)
    assert not any(row.is_property_set(name) for name in ("kind", "rotation", "max_extension"))
    sample = np.array(values.balance_axes)
    assert sample.tolist() == [True, True, False]
