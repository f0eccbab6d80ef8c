"""Presets: real rigs may bend as far as bodies do, measured by directions in armature space."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from limit_tools import value
from mathutils import Matrix, Quaternion, Vector
from operator_calls import fails, select

DEGREE = math.radians(1.0)
FRONT, UP = Vector((0, -1, 0)), Vector((0, 0, 1))
OUT = {"L": Vector((1, 0, 0)), "R": Vector((-1, 0, 0))}
NEAR = 4.0
"""Degrees that sides of an ellipse may be off, where the bone's axes are some degrees off the body's."""


def preset(ext, rig, name, *bones):
    select(ext, rig, *(bones or (rig.pose.bones[0].name,)))
    assert bpy.ops.ccd_rig.limits_preset(preset=name, bones="SELECTED" if bones else "ALL") == {"FINISHED"}


def direction(rig, name):
    bone = rig.data.bones[name]
    return (bone.tail_local - bone.head_local).normalized()


def is_allowed(ext, bone, axis, degrees):
    """Whether a bone may turn about an axis of the armature, by degrees from rest."""
    rest = bone.bone.matrix_local.to_quaternion()
    rotation = rest.conjugated() @ Quaternion(axis, degrees * DEGREE) @ rest
    return ext.module("ccd_rig.limits.shapes").contains(value(ext, bone), rotation)


def goes_to(ext, rig, name, toward, degrees, reference):
    """The bone's end goes as far as `degrees` from `reference` towards a direction, and no further."""
    way = direction(rig, name)
    reference = reference if reference is not None else way
    aside = (toward - reference * toward.dot(reference)).normalized()
    now = math.atan2(way.dot(aside), way.dot(reference)) / DEGREE
    axis = way.cross(toward).normalized()
    bone = rig.pose.bones[name]
    assert is_allowed(ext, bone, axis, max(degrees - now - NEAR, 0.0)), (name, toward)
    assert not is_allowed(ext, bone, axis, max(degrees - now, 0.0) + NEAR), (name, toward)


def bends_to(ext, rig, name, above, inside):
    """A limb bends, about the axis in which it is bent at rest, until this angle is left inside the joint."""
    upper, lower = direction(rig, above), direction(rig, name)
    axis, bent = upper.cross(lower).normalized(), upper.angle(lower) / DEGREE
    for degrees, is_inside in ((180 - inside - bent - 1, True), (180 - inside - bent + 1, False)):
        assert is_allowed(ext, rig.pose.bones[name], axis, degrees) is is_inside, (name, inside)


def stretches_to(ext, rig, name, above, inside):
    """And back, until this angle is inside."""
    upper, lower = direction(rig, above), direction(rig, name)
    axis, bent = upper.cross(lower).normalized(), upper.angle(lower) / DEGREE
    for degrees, is_inside in ((180 - inside - bent + 1, True), (180 - inside - bent - 1, False)):
        assert is_allowed(ext, rig.pose.bones[name], axis, degrees) is is_inside, (name, inside)


@pytest.mark.parametrize("kind", ["human", "basic_human"])
def test_a_human_moves_as_far_as_joints_are_measured(ext, kind):
    rig = rigs.metarig(kind)
    preset(ext, rig, "HUMAN")
    for side, out in OUT.items():
        goes_to(ext, rig, f"thigh.{side}", FRONT, 120, -UP)
        goes_to(ext, rig, f"thigh.{side}", -FRONT, 30, -UP)
        goes_to(ext, rig, f"thigh.{side}", out, 45, -UP)
        goes_to(ext, rig, f"thigh.{side}", -out, 30, -UP)
        bends_to(ext, rig, f"shin.{side}", f"thigh.{side}", 180 - 135)
        bends_to(ext, rig, f"forearm.{side}", f"upper_arm.{side}", 180 - 150)
        stretches_to(ext, rig, f"forearm.{side}", f"upper_arm.{side}", 180 - 5)
        goes_to(ext, rig, f"hand.{side}", -UP, 80, None)
        goes_to(ext, rig, f"hand.{side}", UP, 70, None)
        goes_to(ext, rig, f"shoulder.{side}", UP, 45, None)
        goes_to(ext, rig, f"toe.{side}", UP, 70, None)
        foot = rig.pose.bones[f"foot.{side}"]
        lean = math.asin(direction(rig, f"shin.{side}").dot(-FRONT)) / DEGREE
        nod = direction(rig, f"foot.{side}").cross(UP).normalized()
        assert is_allowed(ext, foot, nod, 20 - lean - NEAR)
        assert not is_allowed(ext, foot, nod, 20 - lean + NEAR)
        # The front of an upper arm turns down by 70 degrees, that of a thigh inwards by 45.
        for name, inner, outer in (("upper_arm", 70, 90), ("thigh", 45, 45)):
            bone, way = rig.pose.bones[f"{name}.{side}"], direction(rig, f"{name}.{side}")
            sign = 1.0 if side == "L" else -1.0
            assert is_allowed(ext, bone, way, sign * (inner - 1))
            assert not is_allowed(ext, bone, way, sign * (inner + 1))
            assert is_allowed(ext, bone, way, -sign * (outer - 1))
            assert not is_allowed(ext, bone, way, -sign * (outer + 1))


def test_shares_of_back_and_neck_add_up(ext):
    rig = rigs.metarig("human")
    preset(ext, rig, "HUMAN")
    for count, bones, flexion in ((3, ("001", "002", "003"), 80), (3, ("004", "005", "006"), 45)):
        for number in bones:
            goes_to(ext, rig, f"spine.{number}", FRONT, flexion / count, None)
    assert rig.pose.bones["spine"].ccd_rig.limit.kind == "NONE"


def test_fingers_curl_and_do_not_bend_back(ext):
    rig = rigs.metarig("human")
    preset(ext, rig, "HUMAN")
    for side in "LR":
        for finger in ("f_index", "f_middle", "f_ring", "f_pinky"):
            limit = rig.pose.bones[f"{finger}.01.{side}"].ccd_rig.limit
            sides = (limit.x_lower, limit.x_upper, limit.z_lower, limit.z_upper)
            assert [round(angle / DEGREE) for angle in sides] == [-45, 90, -20, 20]
            for number, most in (("02", 100), ("03", 90)):
                bone = rig.pose.bones[f"{finger}.{number}.{side}"]
                limit = bone.ccd_rig.limit
                assert (limit.hinge_lower / DEGREE, limit.hinge_upper / DEGREE) == pytest.approx((0, most))
                axis = bone.bone.matrix_local.to_3x3() @ Vector(limit.axis)
                curled = Quaternion(axis, 60 * DEGREE) @ direction(rig, bone.name)
                assert curled.dot(-UP) > 0.3
    assert rig.pose.bones["palm.01.L"].ccd_rig.limit.kind == "NONE"


@pytest.mark.parametrize("turn", [90.0, 180.0])
def test_limits_do_not_depend_on_where_the_figure_faces(ext, turn):
    """In a bone's own axes a turn of the whole figure at rest changes nothing."""
    rig = rigs.metarig("human")
    preset(ext, rig, "HUMAN")
    before = {bone.name: value(ext, bone) for bone in rig.pose.bones}
    bpy.ops.object.mode_set(mode="OBJECT")
    rig.data.transform(Matrix.Rotation(turn * DEGREE, 4, "Z"))
    preset(ext, rig, "HUMAN")
    shapes = ext.module("ccd_rig.limits.shapes")
    for bone in rig.pose.bones:
        if before[bone.name] is None:
            continue
        for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0, 0.8)):
            for degrees in (-40, -10, 10, 40):
                rotation = Quaternion(axis, degrees * DEGREE)
                expected = shapes.violation(before[bone.name], rotation)
                assert shapes.violation(value(ext, bone), rotation) == pytest.approx(expected, abs=0.01), (
                    bone.name
                )


@pytest.mark.parametrize(
    ("kind", "figure"),
    [("human", "HUMAN"), ("basic_human", "HUMAN"), ("cat", "QUADRUPED"), ("horse", "QUADRUPED")],
)
def test_both_sides_are_mirror_images_and_rest_is_inside(ext, kind, figure):
    rig = rigs.metarig(kind)
    preset(ext, rig, figure)
    shapes = ext.module("ccd_rig.limits.shapes")
    right = {b.name: value(ext, b) for b in rig.pose.bones if b.name.endswith(".R") and value(ext, b)}
    assert len(right) >= 6
    select(ext, rig, *(bone.name for bone in rig.pose.bones if bone.name.endswith(".L")))
    bpy.ops.ccd_rig.limits_mirror()
    for name, limit in right.items():
        mirrored = value(ext, rig.pose.bones[name])
        assert shapes.contains(limit, Quaternion(), 1e-5), name
        for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0, 0.8), (0.48, 0.6, -0.64)):
            for degrees in (-100, -40, -10, 10, 40, 100):
                rotation = Quaternion(axis, degrees * DEGREE)
                expected = shapes.violation(mirrored, rotation)
                assert shapes.violation(limit, rotation) == pytest.approx(expected, abs=0.01), name


@pytest.mark.parametrize(
    ("kind", "name", "above", "flexed", "extended"),
    [
        ("cat", "forearm", "upper_arm", 36, 165),
        ("cat", "shin", "thigh", 42, 162),
        ("cat", "foot", "shin", 39, 164),
        ("horse", "forearm", "upper_arm", 36, 165),
        ("horse", "lower_leg", "thigh", 42, 162),
        ("basic_quadruped", "shin", "thigh", 42, 162),
        ("basic_quadruped", "foot", "shin", 39, 164),
    ],
)
def test_an_animals_joints_have_the_angles_measured_inside_them(ext, kind, name, above, flexed, extended):
    rig = rigs.metarig(kind)
    preset(ext, rig, "QUADRUPED")
    for side in "LR":
        bends_to(ext, rig, f"{name}.{side}", f"{above}.{side}", flexed)
        stretches_to(ext, rig, f"{name}.{side}", f"{above}.{side}", extended)


@pytest.mark.parametrize(
    ("kind", "thigh"), [("cat", "thigh"), ("horse", "thigh"), ("basic_quadruped", "thigh")]
)
def test_an_animals_hip_swings_from_where_it_stands(ext, kind, thigh):
    rig = rigs.metarig(kind)
    preset(ext, rig, "QUADRUPED")
    for side in "LR":
        way = direction(rig, f"thigh.{side}")
        back = way.cross(-FRONT).normalized()
        bone = rig.pose.bones[f"thigh.{side}"]
        ahead = way.cross(FRONT).normalized()
        swing = [d for d in range(150) if is_allowed(ext, bone, ahead, d)]
        swing_back = [d for d in range(150) if is_allowed(ext, bone, back, d)]
        assert max(swing) + max(swing_back) == pytest.approx(162 - 50, abs=2 * NEAR)


FK = {"thigh.L": "thigh_fk.L", "shin.R": "shin_fk.R", "upper_arm.L": "upper_arm_fk.L", "foot.R": "foot_fk.R"}


def test_a_generated_rig_gets_the_limits_of_its_metarig_on_fk_controls(ext):
    rig = rigs.generated("basic_human")
    metarig = rigs.metarig("basic_human")
    for each in (metarig, rig):
        if bpy.context.mode == "POSE":
            bpy.ops.object.mode_set(mode="OBJECT")
        preset(ext, each, "HUMAN")
    for name, control in FK.items():
        here, there = (each.ccd_rig.limit for each in (metarig.pose.bones[name], rig.pose.bones[control]))
        assert here.kind == there.kind
        # Rigify rolls the arm's controls by some degrees: sides stay as far as they are.
        for bound in (
            "hinge_lower",
            "hinge_upper",
            "x_lower",
            "x_upper",
            "z_lower",
            "z_upper",
            "twist_upper",
        ):
            assert getattr(here, bound) == pytest.approx(getattr(there, bound), abs=0.5 * DEGREE), bound


def test_rows_of_bones(ext):
    rig = rigs.chain(6)
    preset(ext, rig, "TAIL", *(f"bone_{i}" for i in range(6)))
    assert [round(b.ccd_rig.limit.cone_radius / DEGREE) for b in rig.pose.bones] == [45] * 6
    preset(ext, rig, "SPINE", "bone_1", "bone_2", "bone_4")
    limit = rig.pose.bones["bone_1"].ccd_rig.limit  # two in a row; the third is a row of its own
    assert (limit.x_upper / DEGREE, limit.twist_upper / DEGREE) == pytest.approx((40, 22.5))
    assert rig.pose.bones["bone_4"].ccd_rig.limit.x_upper / DEGREE == pytest.approx(80)
    preset(ext, rig, "FINGER", *(f"bone_{i}" for i in range(4)))
    kinds = [bone.ccd_rig.limit.kind for bone in rig.pose.bones]
    assert kinds == ["CONE", "ELLIPSE", "HINGE", "HINGE", "ELLIPSE", "CONE"]
    assert rig.pose.bones["bone_2"].ccd_rig.limit.hinge_upper / DEGREE == pytest.approx(100)


def test_a_preset_for_another_figure_is_refused(ext):
    rig = rigs.metarig("cat")
    select(ext, rig, "spine")
    fails(bpy.ops.ccd_rig.limits_preset, "is recognised as quadruped, not as human", preset="HUMAN")
    fails(bpy.ops.ccd_rig.limits_preset, "None of 'spine' is a part with a range", preset="QUADRUPED")
    select(ext, rigs.chain(3, name="Tail"), "bone_1")
    fails(bpy.ops.ccd_rig.limits_preset, "is no figure that is known", preset="HUMAN")


def test_bones_that_do_not_run_along_their_limb_are_named(ext, capfd):
    rig = rigs.metarig("basic_human")
    with rigs.edit_bones(rig) as bones:
        for bone in bones:
            bone.use_connect = False
        bones["thigh.L"].tail = bones["thigh.L"].head + Vector((0, 0.2, 0))
    preset(ext, rig, "HUMAN")
    assert "'thigh.L' left as before: its Y axis does not run along the limb" in capfd.readouterr().out
    assert rig.pose.bones["thigh.L"].ccd_rig.limit.kind == "NONE"
    assert rig.pose.bones["shin.L"].ccd_rig.limit.kind == "HINGE"


def test_a_preset_holds_the_present_pose_and_says_for_which_bones(ext, capfd):
    rig = rigs.metarig("basic_human")
    rig.pose.bones["shin.L"].rotation_mode = "QUATERNION"
    rig.pose.bones["shin.L"].rotation_quaternion = posed = Quaternion((1, 0, 0), -30 * DEGREE)
    rigs.update()
    preset(ext, rig, "HUMAN")
    assert "Wider than measured, to hold the present pose: 'shin.L'" in capfd.readouterr().out
    contains = ext.module("ccd_rig.limits.shapes").contains
    assert contains(value(ext, rig.pose.bones["shin.L"]), posed)
    assert not contains(value(ext, rig.pose.bones["shin.R"]), posed)


def test_a_joint_past_its_end_at_rest_has_room_there(ext):
    """A paw that is bent back further than a dog's: the rig's rest is not what the range counts from."""
    rig = rigs.metarig("basic_quadruped")
    with rigs.edit_bones(rig) as bones:
        for side in "LR":
            shin, foot = bones[f"front_shin.{side}"], bones[f"front_foot.{side}"]
            way = (shin.tail - shin.head).normalized()
            back = Quaternion(Vector((1, 0, 0)), -40 * DEGREE) @ way
            ahead = Quaternion(Vector((1, 0, 0)), 40 * DEGREE) @ way
            foot.tail = foot.head + foot.length * min(back, ahead, key=lambda each: each.y)
            bones[f"front_toe.{side}"].use_connect = False
    preset(ext, rig, "QUADRUPED")
    room = ext.module("ccd_rig.limits.body_motions").ROOM
    for side in "LR":
        limit = rig.pose.bones[f"front_foot.{side}"].ccd_rig.limit
        assert limit.kind == "HINGE"
        assert limit.hinge_lower == pytest.approx(-room, abs=DEGREE)


def test_rows_are_found_without_comparing_bones(ext):
    """Fingers of one hand, whose bones come finger by finger or joint by joint."""

    class Bone:
        def __init__(self, name, parent):
            self.name, self.parent, self.compared = name, parent, 0

        def __eq__(self, other):
            self.compared += 1
            return self is other

        __hash__ = None

    hand = Bone("hand", None)
    first = [Bone(f"{k}.1", hand) for k in range(30)]
    second = [Bone(f"{k}.2", above) for k, above in enumerate(first)]
    bones = [*first, *second]
    rows = ext.module("ccd_rig.blender.limit_sources.presets").rows_of(bones)
    assert [[bone.name for bone in row] for row in rows] == [[f"{k}.1", f"{k}.2"] for k in range(30)]
    assert sum(bone.compared for bone in [hand, *bones]) <= len(bones)
