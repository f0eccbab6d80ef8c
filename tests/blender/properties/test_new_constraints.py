"""What a new constraint and a preset set, and advice on bones that a solve leaves alone."""

from __future__ import annotations

import dataclasses

import bpy
import pytest
import rigs
from rigs import B


@pytest.fixture
def checks(ext):
    return ext.module("ccd_rig.blender.checks.setup")


def game_rig():
    """As game engines have it: a root on the ground that is not joined to the hips."""
    bones = [
        B("root", (0, 0, 0), (0, 0.3, 0)),
        B("hips", (0, 0, 1.0), (0, 0, 1.2), "root"),
        B("spine", (0, 0, 1.2), (0, 0, 1.5), "hips", connect=True),
        B("head", (0, 0, 1.5), (0, 0, 1.8), "spine", connect=True),
    ]
    for side, x in (("L", 1), ("R", -1)):
        bones += [
            B(f"thigh.{side}", (0.1 * x, 0, 1.0), (0.1 * x, -0.03, 0.5), "hips"),
            B(f"twist.{side}", (0.1 * x, 0, 0.8), (0.1 * x, -0.03, 0.6), f"thigh.{side}"),
            B(f"shin.{side}", (0.1 * x, -0.03, 0.5), (0.1 * x, 0, 0.1), f"thigh.{side}", connect=True),
            B(f"foot.{side}", (0.1 * x, 0, 0.1), (0.1 * x, -0.1, 0), f"shin.{side}", connect=True),
            B(f"arm.{side}", (0.1 * x, 0, 1.5), (0.4 * x, 0, 1.5), "spine"),
            B(f"hand.{side}", (0.4 * x, 0, 1.5), (0.6 * x, 0, 1.5), f"arm.{side}", connect=True),
        ]
    return rigs.armature(bones)


def add(rig, bone, **options):
    rigs.activate(rig)
    if rig.mode != "POSE":
        bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones[bone]
    assert bpy.ops.ccd_rig.constraint_add(**options) == {"FINISHED"}
    return rig.ccd_rig.constraints[-1]


@pytest.mark.parametrize(
    ("bone", "kind", "length"),
    [
        ("foot.L", "REACH", 3),  # foot, shin, thigh: the hips carry the rest
        ("hand.R", "REACH", 2),
        ("head", "REACH", 1),  # the spine carries the arms
        ("hips", "REACH", 1),  # the root stands apart
        ("foot.L", "PLANT", 4),  # up to the hips
        ("hips", "PLANT", 0),
        ("foot.L", "BALANCE", 0),
    ],
)
def test_a_new_chain_ends_where_the_limb_does(bone, kind, length):
    assert add(game_rig(), bone, kind=kind).chain_length == length


def test_a_chain_that_is_asked_for_is_kept():
    assert add(game_rig(), "foot.L", chain_length=0).chain_length == 0
    assert add(rigs.chain(4), "bone_3").chain_length == 0  # a tail goes up to its root


def test_a_planted_bone_needs_no_target():
    row = add(game_rig(), "foot.L", kind="PLANT")
    assert row.target is None
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}


@pytest.mark.parametrize("name", ["LIMB", "TAIL", "DEFAULT"])
def test_presets_are_the_core_s(ext, name):
    settings = ext.module("ccd_rig.settings")
    rig = rigs.chain(3)
    solver = rig.ccd_rig.solver
    solver.restarts, solver.step_feedback, solver.sweep = 3, 0.5, "BOUNCE_TIP"
    assert bpy.ops.ccd_rig.solver_preset(preset=name) == {"FINISHED"}
    properties = ext.module("ccd_rig.blender.properties.solver_settings")
    assert properties.present_preset(rig) == name
    found = properties.solver_settings(rig)
    for field in dataclasses.fields(found):
        wanted = getattr(settings.PRESETS[name], field.name)
        if field.name in settings.PRESET_FIELDS:
            assert getattr(found, field.name) == (
                pytest.approx(wanted, abs=1e-6) if isinstance(wanted, float) else wanted
            )
    assert found.restarts == 3  # what a preset is not about stays
    solver.step_fraction *= 0.999
    assert properties.present_preset(rig) == ""


def test_no_advice_on_bones_that_stay_as_they_are(checks):
    """Rigify's own bones are locked and follow by constraints, which must not be muted."""
    rig = game_rig()
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target, row.chain_length = "Hand", "hand.L", rigs.empty("Target"), 3
    for name in ("spine", "arm.L"):
        made = rig.pose.bones[name].constraints.new("COPY_ROTATION")
        made.target, made.subtarget, made.name = rig, "head", f"Follow {name}"
    rig.pose.bones["spine"].lock_rotation = (True, True, True)
    rigs.update()
    words = [problem.message for problem in checks.problems(rig, bpy.context.scene)]
    assert any("'Follow arm.L' acts on top" in each for each in words)
    assert not any("'Follow spine'" in each for each in words)
