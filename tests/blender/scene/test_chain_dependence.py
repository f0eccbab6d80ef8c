"""Targets that move with the chain that reaches for them are told from those that do not."""

from __future__ import annotations

import bpy
import pytest
import rigs
from target_scenes import add_row, make_rig
from target_set_ups import SET_UPS


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
