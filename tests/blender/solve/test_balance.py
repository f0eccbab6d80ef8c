"""Balance: the centre of mass that Blender plays of the baked action."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from balanced_rigs import FLOAT32, FRAMES, PLACES, PLAYED, SOLVE, body, centre_of_mass, key, off_axes, played
from mathutils import Vector
from rigs import setting


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("axes", [(True, True, False), (False, True, False), (True, False, True)])
def test_the_centre_of_mass_stays_over_the_target(bake, channels, place, axes):
    rig, row = body(PLACES[place])
    row.balance_axes = axes
    before = max(off_axes(rig, row, evaluated, depsgraph) for _, evaluated, depsgraph in played(rig))
    assert before > 0.05
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    for line, (frame, evaluated, depsgraph) in zip(report.entries, played(rig), strict=True):
        off = off_axes(rig, row, evaluated, depsgraph)
        assert off < SOLVE + PLAYED, frame
        assert off == pytest.approx(line.keyed_residual, abs=PLAYED)
    moved = {c.data_path.split('"')[1] for c in channels.fcurves_of(rig) if "spine" in c.data_path}
    assert moved == {"spine_0", "spine_1", "spine_2"}
    arms = [c for c in channels.fcurves_of(rig) if "arm.L" in c.data_path]
    assert {len(c.keyframe_points) for c in arms} == {3}  # bones outside the chain keep their keys


def test_a_hand_reaches_while_the_body_balances(bake):
    rig, row = body()
    hand = rigs.empty("Hand target")
    key(hand, "location", [(0.9, 0.2, 1.3), (0.7, 0.4, 1.5), (0.9, -0.2, 1.4)])
    rigs.reach(rig, "hand.L", hand, "Hand", chain_length=5)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    for _, evaluated, depsgraph in played(rig):
        apart = centre_of_mass(evaluated) - row.target.evaluated_get(depsgraph).matrix_world.translation
        assert apart.xy.length < SOLVE + PLAYED
        tail = evaluated.pose.bones["hand.L"].tail
        assert (tail - hand.evaluated_get(depsgraph).matrix_world.translation).length < SOLVE + PLAYED
        twisted = evaluated.pose.bones["head"].location - Vector((0.02, 0.01, 0.03))
        assert twisted.length < FLOAT32


@pytest.mark.parametrize("place", PLACES)
def test_two_balances_along_other_axes(bake, place):
    """Each holds the centre of mass in a plane, together over a point."""
    rig, row = body(PLACES[place])
    row.balance_axes = (True, False, False)
    rigs.reach(
        rig, "spine_2", row.target, "Other", chain_length=3, kind="BALANCE", balance_axes=(False, True, False)
    )
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    row.balance_axes = (True, True, False)
    for frame, evaluated, depsgraph in played(rig):
        assert off_axes(rig, row, evaluated, depsgraph) < 2.0 * (SOLVE + PLAYED), frame


def test_a_new_balance_starts_where_the_centre_of_mass_is():
    rig, _ = body(PLACES["turned"])
    rig.ccd_rig.constraints.clear()
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones["spine_2"]
    assert bpy.ops.ccd_rig.constraint_add(kind="BALANCE", chain_length=3) == {"FINISHED"}
    (row,) = rig.ccd_rig.constraints
    _, evaluated, _ = next(played(rig, (1,)))
    assert (row.kind, row.chain_length) == ("BALANCE", 3)
    assert (row.target.matrix_world.translation - centre_of_mass(evaluated)).length < PLAYED


def no_mass(rig):
    for bone in rig.pose.bones:
        bone.ccd_rig.mass = 0.0


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (no_mass, "no bone of armature 'Rig' has a mass"),
        (setting("ccd_rig.constraints[0]", balance_axes=(False,) * 3), "balances along no axis"),
        (setting('pose.bones["hand.L"].ccd_rig', mass=math.nan), "'hand.L'.*mass"),
    ],
)
def test_what_cannot_be_balanced_is_said(bake, errors, spoil, words):
    rig, _ = body()
    spoil(rig)
    rigs.update()
    with pytest.raises(errors.CCDRigError, match=words):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))


@pytest.mark.parametrize("start", ["ACTION", "REST", "POSE"])
def test_heavy_bones_of_a_constraint_without_influence_stay_as_they_play(bake, start):
    """Such bones get no keys, whatever a bake starts from."""
    rig, row = body()
    rigs.reach(rig, "arm.L", rigs.empty("Nowhere", (3.0, 0.0, 3.0)), "Off", chain_length=1, influence=0.0)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES, start=bake.Start[start]))
    lines = [line for line in report.entries if line.constraint == row.name]
    for line, (frame, evaluated, depsgraph) in zip(lines, played(rig), strict=True):
        off = off_axes(rig, row, evaluated, depsgraph)
        assert off == pytest.approx(line.keyed_residual, abs=PLAYED), frame
