"""Handles of limits, and the frame they stand in: on real bones, with real properties."""

from __future__ import annotations

import math
import random

import bpy
import pytest
import rigs
from mathutils import Quaternion, Vector

FLOAT32 = 1e-5


@pytest.fixture
def bone(ext):
    rig = rigs.chain(2)
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    return rig.pose.bones["bone_1"]


def found(ext, bone):
    viewport = "ccd_rig.blender.viewport"
    axes = ext.module(f"{viewport}.limits")
    limit = axes.drawable_limit(bone, bone.ccd_rig.limit)
    return ext.module(f"{viewport}.limits").handles(bone.ccd_rig.limit, limit, axes.bone_axes(bone).rotation)


FIELDS = {
    "HINGE": [("hinge_lower", -1), ("hinge_upper", -1), ("axis", -1)],
    "CONE": [("cone_radius", -1)],
    "ELLIPSE": [("x_lower", -1), ("x_upper", -1), ("z_lower", -1), ("z_upper", -1)],
    "TWIST": [("twist_lower", -1), ("twist_upper", -1)],
    "EULER": [
        ("euler_lower", 0),
        ("euler_lower", 1),
        ("euler_lower", 2),
        ("euler_upper", 0),
        ("euler_upper", 1),
        ("euler_upper", 2),
    ],
}


def value_of(group, field, component):
    return getattr(group, field)[component] if component >= 0 else getattr(group, field)


@pytest.mark.parametrize("kind", FIELDS)
def test_each_bound_has_a_handle_that_moves_it(ext, bone, kind):
    group = bone.ccd_rig.limit
    group.kind = kind
    drag_to = ext.module("ccd_rig.blender.viewport.limits").drag_to
    names = [(handle.field, handle.component) for handle in found(ext, bone)]
    assert sorted(names) == sorted(FIELDS[kind])
    for i, name in enumerate(names):
        if name[0] == "axis":
            continue
        (handle,) = (each for each in found(ext, bone) if (each.field, each.component) == name)
        assert handle.lower <= handle.value <= handle.upper
        assert handle.value == pytest.approx(value_of(group, *name), abs=FLOAT32)
        wanted = handle.value * (0.5 + 0.05 * i)  # its own for each
        place = handle.dial.point(wanted)
        drag_to(group, handle, wanted)
        assert value_of(group, *name) == pytest.approx(wanted, abs=FLOAT32)
        (moved,) = (each for each in found(ext, bone) if (each.field, each.component) == name)
        assert (moved.point - place).length < FLOAT32
        assert not any(
            abs(value_of(group, *other) - wanted) < FLOAT32
            for other in names
            if other != name and other[0] != "axis"
        )


@pytest.mark.parametrize("kind", ["CONE", "ELLIPSE"])
def test_a_twist_range_adds_its_two(ext, bone, kind):
    bone.ccd_rig.limit.kind, bone.ccd_rig.limit.use_twist = kind, True
    assert [h.field for h in found(ext, bone)][-2:] == ["twist_lower", "twist_upper"]


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("HINGE", "hinge_lower", "hinge_upper"), ("TWIST", "twist_lower", "twist_upper")],
)
def test_no_end_of_a_range_passes_the_other(ext, bone, kind, low, high):
    group = bone.ccd_rig.limit
    group.kind = kind
    setattr(group, low, -0.3), setattr(group, high, 0.4)
    ends = {handle.field: handle for handle in found(ext, bone)}
    assert ends[low].upper == pytest.approx(0.4)
    assert ends[high].lower == pytest.approx(-0.3)


def test_the_rim_handle_of_a_cone_lies_on_the_rim(ext, bone):
    bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.6
    (handle,) = found(ext, bone)
    assert (handle.point - Quaternion((1, 0, 0), 0.6) @ Vector((0, 1, 0))).length < FLOAT32


def test_a_hinges_axis_is_turned_round_the_bone(ext, bone):
    group = bone.ccd_rig.limit
    group.kind, group.axis = "HINGE", (1.0, 0.5, 0.0)
    drag_to = ext.module("ccd_rig.blender.viewport.limits").drag_to
    axis = Vector(group.axis)
    for turn in (0.0, 0.4, math.pi, -2.0):
        group.axis = axis
        (handle,) = (each for each in found(ext, bone) if each.field == "axis")
        assert (handle.point - axis.normalized()).length < FLOAT32
        drag_to(group, handle, handle.value + turn)
        assert (Vector(group.axis) - Quaternion((0, 1, 0), turn) @ axis).length < FLOAT32
    group.axis = (0.0, 1.0, 0.0)
    assert [handle.field for handle in found(ext, bone)] == ["hinge_lower", "hinge_upper"]


def test_a_limit_that_contradicts_itself_is_not_drawn(ext, bone):
    axes = ext.module("ccd_rig.blender.viewport.limits")
    group = bone.ccd_rig.limit
    assert axes.drawable_limit(bone, group) is None
    group.kind, group.hinge_lower, group.hinge_upper = "HINGE", 1.0, 0.5
    assert axes.drawable_limit(bone, group) is None
    group.hinge_upper, group.axis = 1.5, (0.0, 0.0, 0.0)
    assert axes.drawable_limit(bone, group) is None
    group.axis = (1.0, 0.0, 0.0)
    assert axes.drawable_limit(bone, group) is not None
    bone.rotation_quaternion = (math.nan,) * 4
    rigs.update()
    assert axes.drawable_limit(bone, group) is None


@pytest.mark.parametrize("mode", rigs.MODES)
def test_the_frame_holds_what_the_channels_hold(ext, mode):
    """The limit stands still as its bone turns, goes along with its parent, and the bone is seen in it."""
    rng = random.Random(mode)
    rig = rigs.armature(
        [rigs.B("a", (0, 0, 0), (1, 0.3, 0), roll=0.4), rigs.B("b", (1, 0.6, 0.2), (1.5, 1, 1), "a", 0.9)]
    )
    rig.matrix_world = rigs.random_rotation(rng).to_matrix().to_4x4()
    rig.location = (3.0, 1.0, -2.0)
    bone = rig.pose.bones["b"]
    bone.rotation_mode = mode
    rigs.set_rotation(rig.pose.bones["a"], rigs.random_rotation(rng))
    rigs.update()
    axes = ext.module("ccd_rig.blender.viewport.limits")
    unposed = axes.bone_axes(bone).matrix
    assert axes.bone_axes(bone).rotation.angle < 1e-3
    tail = rig.matrix_world @ bone.tail
    scale = axes.SIZE
    assert (unposed @ Vector((0, 1 / scale, 0)) - tail).length < 10 * FLOAT32
    rotation = rigs.random_rotation(rng)
    rigs.set_rotation(bone, rotation)
    rigs.update()
    seen = axes.bone_axes(bone)
    assert abs(seen.rotation.dot(rotation)) > 1.0 - FLOAT32
    assert (
        max(abs(a - b) for u, v in zip(seen.matrix, unposed, strict=True) for a, b in zip(u, v, strict=True))
        < FLOAT32 * 10
    )
    assert (
        seen.matrix @ (rotation @ Vector((0, 1 / scale, 0))) - rig.matrix_world @ bone.tail
    ).length < 10 * FLOAT32


def test_a_bone_that_inherits_no_rotation_keeps_its_frame(ext):
    rig = rigs.chain(2)
    bone = rig.pose.bones["bone_1"]
    bone.bone.use_inherit_rotation = False
    rigs.update()
    axes = ext.module("ccd_rig.blender.viewport.limits")
    before = axes.bone_axes(bone).matrix.to_quaternion()
    rigs.set_rotation(rig.pose.bones["bone_0"], Quaternion((1, 0, 0), 1.0))
    rigs.update()
    assert axes.bone_axes(bone).matrix.to_quaternion().rotation_difference(before).angle < 1e-3
