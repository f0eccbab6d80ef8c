"""Solve Pose tells of constraints that act on top of what it has solved."""

from __future__ import annotations

import bpy
import pytest
import rigs
from mathutils import Vector

REACHED, TURN = 1e-3, 1.0  # metres, radians


def solved(capfd, kind, **fields):
    """Solve a chain whose tip has a constraint; metres from its tail to the target, and what is said."""
    rig = rigs.chain(3)
    target = rigs.empty("Target", (0.8, 0.6, 1.6))
    turned = rigs.empty("Turned", (0.0, 0.0, 0.0))
    turned.rotation_euler.x = TURN
    rigs.reach(rig, "bone_2", target)
    constraint = rig.pose.bones["bone_2"].constraints.new(kind)
    if hasattr(constraint, "target"):
        constraint.target = turned
    for name, value in fields.items():
        setattr(constraint, name, value)
    rigs.activate(rig)
    capfd.readouterr()
    bpy.ops.ccd_rig.solve()
    rigs.update()
    tail = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones["bone_2"].tail
    return (tail - Vector(target.location)).length, capfd.readouterr().out


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("COPY_ROTATION", {}), ("STRETCH_TO", {}), ("DAMPED_TRACK", {"influence": 0.5})],
)
def test_a_constraint_that_moves_the_solved_tip_is_named(ext, capfd, kind, fields):
    off, said = solved(capfd, kind, **fields)
    assert off > REACHED
    name = kind.replace("_", " ").title()
    assert f"not the solved pose: constraint '{name}' of bone 'bone_2' acts on bone 'bone_2'" in said


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("LIMIT_SCALE", {}), ("COPY_ROTATION", {"mute": True}), ("COPY_LOCATION", {})],
)
def test_one_that_moves_nothing_is_not(ext, capfd, kind, fields):
    """Blender does not move a bone that is connected to its parent."""
    off, said = solved(capfd, kind, **fields)
    assert off < REACHED
    assert "not the solved pose" not in said


@pytest.mark.parametrize(("bone", "kind"), [("side_3", "IK"), ("side_0", "COPY_ROTATION")])
def test_a_constraint_that_moves_a_balanced_mass_is_named(ext, capfd, bone, kind):
    """No bone of the chain is moved; the mass hangs on another limb."""
    rig = rigs.balanced()
    constraint = rig.pose.bones[bone].constraints.new(kind)
    constraint.target = rigs.empty("Turned", (4.0, 0.0, 1.0))
    constraint.target.rotation_euler.y = TURN
    if kind == "IK":
        constraint.chain_count = 2
    rigs.activate(rig)
    for is_muted in (False, True):
        constraint.mute = is_muted
        rigs.update()
        capfd.readouterr()
        bpy.ops.ccd_rig.solve()
        said = capfd.readouterr().out
        words = f"not the solved pose: constraint '{constraint.name}' of bone '{bone}' acts on bone 'side_"
        assert (words in said) != is_muted
        assert ("not the solved pose" in said) != is_muted
