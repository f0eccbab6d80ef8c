"""Balance and slides: the centre of mass and the locations that Blender plays of the baked action."""

from __future__ import annotations

import json
import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Euler, Matrix, Quaternion, Vector

SOLVE = 1e-4  # [m] the solver's own tolerance
PLAYED = 1e-4  # [m] float32 bones end to end, evaluated by Blender
FLOAT32 = 1e-6  # of a location around 1
FRAMES = 17


PLACES = {
    "at home": Matrix(),
    "turned": Matrix.LocRotScale((3, -2, 1), Euler((0.7, -1.1, 2.0)), (1, 1, 1)),
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


def key(thing, path, values, gap=8):
    for i, value in enumerate(values):
        setattr(thing, path, value)
        thing.keyframe_insert(path, frame=1 + gap * i)
    rigs.update()


def played(rig, frames=()):
    for frame in frames or range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        depsgraph = bpy.context.evaluated_depsgraph_get()
        yield frame, rig.evaluated_get(depsgraph), depsgraph


def keyed(channels, rig, path):
    """(K, 3) values of a channel's keys."""
    curves = {c.array_index: c for c in channels.fcurves_of(rig) if c.data_path == path}
    assert sorted(curves) == [0, 1, 2], path
    return np.array([[point.co[1] for point in curves[i].keyframe_points] for i in range(3)]).T


# --- balance ------------------------------------------------------------------------------------------------


def body(place=Matrix()):  # noqa: B008  (a matrix is not changed)
    """A body with a spine of three, two arms and a head that is heavy; what moves it is keyed on the arms."""
    bones = [rigs.B("root", (0, 0, 0), (0, 0, 0.5))]
    for i in range(3):
        bones.append(
            rigs.B(
                f"spine_{i}", (0, 0, 0.5 + 0.4 * i), (0, 0, 0.9 + 0.4 * i), f"spine_{i - 1}" if i else "root"
            )
        )
    for side, sign in (("L", 1), ("R", -1)):
        bones.append(rigs.B(f"arm.{side}", (0.2 * sign, 0, 1.7), (0.9 * sign, 0, 1.6), "spine_2"))
        bones.append(rigs.B(f"hand.{side}", (0.9 * sign, 0, 1.6), (1.2 * sign, 0, 1.6), f"arm.{side}"))
    bones.append(rigs.B("head", (0, 0, 1.7), (0, 0, 2.1), "spine_2"))
    rig = rigs.armature(bones)
    for bone, mass in (("root", 20), ("spine_1", 15), ("arm.L", 4), ("arm.R", 4), ("hand.L", 6), ("head", 5)):
        rig.pose.bones[bone].ccd_rig.mass = mass
    rig.pose.bones["head"].bone.use_inherit_rotation = False
    for bone, turns in (("arm.L", (0.0, 1.2, -0.9)), ("arm.R", (0.3, -0.8, 0.4)), ("head", (0.0, 0.5, 0.0))):
        key(rig.pose.bones[bone], "rotation_quaternion", [Quaternion((0.6, 0, 0.8), a) for a in turns])
    rig.pose.bones["head"].location = (0.02, 0.01, 0.03)
    rig.matrix_world = place
    rigs.update()
    target = rigs.empty("Point")
    key(
        target,
        "location",
        [place @ Vector(p) for p in ((0.05, 0.02, 0.3), (-0.03, 0.05, 0.8), (0.02, -0.06, 0))],
    )
    row = constrain(rig, "spine_2", target, "Balance", chain_length=3, kind="BALANCE")
    bpy.context.scene.frame_set(1)
    return rig, row


def centre_of_mass(evaluated):
    """In the world, of the bones as Blender places them."""
    bones = [(bone, bone.ccd_rig.mass) for bone in evaluated.pose.bones]
    total = sum(mass for _, mass in bones)
    middle = sum((mass * 0.5 * (bone.head + bone.tail) for bone, mass in bones), Vector())
    return evaluated.matrix_world @ (middle / total)


def off_axes(rig, row, evaluated, depsgraph):
    """World metres between the centre of mass and the target, along the axes that count."""
    apart = centre_of_mass(evaluated) - row.target.evaluated_get(depsgraph).matrix_world.translation
    return Vector([each * counts for each, counts in zip(apart, row.balance_axes, strict=True)]).length


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
    constrain(rig, "hand.L", hand, "Hand", chain_length=5)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    for _, evaluated, depsgraph in played(rig):
        apart = centre_of_mass(evaluated) - row.target.evaluated_get(depsgraph).matrix_world.translation
        assert apart.xy.length < SOLVE + PLAYED
        tail = evaluated.pose.bones["hand.L"].tail
        assert (tail - hand.evaluated_get(depsgraph).matrix_world.translation).length < SOLVE + PLAYED
        twisted = evaluated.pose.bones["head"].location - Vector((0.02, 0.01, 0.03))
        assert twisted.length < FLOAT32


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


def no_mass(rig, row):
    for bone in rig.pose.bones:
        bone.ccd_rig.mass = 0.0


def no_axis(rig, row):
    row.balance_axes = (False, False, False)


def bad_mass(rig, row):
    rig.pose.bones["hand.L"].ccd_rig.mass = math.nan


def other_axes(rig, row):
    rig.rotation_euler = (0.4, 0.3, 0.0)
    constrain(
        rig, "spine_2", row.target, "Other", chain_length=3, kind="BALANCE", balance_axes=(True, False, False)
    )


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (no_mass, "no bone of armature 'Rig' has a mass"),
        (no_axis, "balances along no axis"),
        (bad_mass, "'hand.L'.*mass"),
        (other_axes, "'Other' balances along other axes"),
    ],
)
def test_what_cannot_be_balanced_is_said(bake, errors, spoil, words):
    rig, row = body()
    spoil(rig, row)
    rigs.update()
    with pytest.raises(errors.CCDRigError, match=words):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))


# --- all of it together -------------------------------------------------------------------------------------


def everything():
    """A body that balances while its hand reaches, turned as its target, bent towards a pole, on a slide."""
    rig, _ = body()
    hand, elbow = rigs.empty("Hand target"), rigs.empty("Elbow")
    key(hand, "location", [(0.9, 0.2, 1.3), (0.7, 0.4, 1.5), (0.9, -0.2, 1.4)])
    elbow.location = (0.5, -2.0, 1.0)
    fields = {"rotation": "DIRECTION", "target_axis": "POS_X", "rotation_weight": 0.5, "priority": 1}
    constrain(rig, "hand.L", hand, "Hand", chain_length=5, pole_target=elbow, max_extension=0.95, **fields)
    joint = rig.pose.bones["spine_0"].ccd_rig
    joint.use_slide = (False, True, False)
    # Not all of it can be reached at once: what is asked here is whether it comes out alike, not how near.
    rig.ccd_rig.solver.max_iterations, rig.ccd_rig.solver.restarts = 40, 2
    return rig


def test_saved_opened_and_baked_by_the_command_line_alike(ext, bake, channels, tmp_path):
    rig = everything()
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 5
    shot, out, told = (tmp_path / name for name in ("shot.blend", "out.blend", "report.json"))
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    keys = {
        (c.data_path, c.array_index): [tuple(p.co) for p in c.keyframe_points]
        for c in channels.fcurves_of(rig)
    }
    assert any("location" in path for path, _ in keys)
    cli = ext.module("ccd_rig.blender.cli.command_line")
    assert cli.main(["bake", str(shot), "--output", str(out), "--report", str(told), "--quiet"]) == 0
    again = json.loads(told.read_text())
    assert [row["angle"] for row in again["entries"]] == [row.angle for row in report.entries]
    assert max(row["angle"] for row in again["entries"]) > 0.0
    bpy.ops.wm.open_mainfile(filepath=str(out))
    found = channels.fcurves_of(bpy.data.objects["Rig"])
    assert {(c.data_path, c.array_index): [tuple(p.co) for p in c.keyframe_points] for c in found} == keys


def test_undo_takes_slides_and_balance_back():
    rig = everything()

    def state():
        bones = bpy.data.objects["Rig"].pose.bones
        return [(tuple(bone.location), tuple(bone.rotation_quaternion)) for bone in bones]

    rigs.activate(rig)
    bpy.ops.ed.undo_push(message="before")
    before = state()
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    bpy.ops.ed.undo_push(message="after")
    after = state()
    assert before != after
    bpy.ops.ed.undo()
    assert state() == before
    bpy.ops.ed.redo()
    assert state() == after


def test_the_same_input_gives_the_same_bits(bake, channels):
    def keys():
        return [
            (c.data_path, c.array_index, [tuple(p.co) for p in c.keyframe_points])
            for c in channels.fcurves_of(rig)
        ]

    rig = everything()
    before = rig.animation_data.action
    slot = rig.animation_data.action_slot if hasattr(rig.animation_data, "action_slot") else None
    first = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9, step=4))
    found = keys()
    rig.animation_data.action = before
    if slot is not None:
        rig.animation_data.action_slot = slot
    assert bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9, step=4)).entries == first.entries
    assert keys() == found


# --- slides -------------------------------------------------------------------------------------------------


def crane(local=True, along="Y", **fields):
    """A turning foot, a mast that slides, a boom; the target is out of reach of turns alone."""
    rig = rigs.armature(
        [
            rigs.B("foot", (0, 0, 0), (0, 0, 0.5)),
            rigs.B("mast", (0, 0, 0.5), (0, 0, 1.5), "foot", roll=0.4),
            rigs.B("boom", (0, 0, 1.5), (0, 0.8, 1.6), "mast", connect=True),
        ]
    )
    rig.data.bones["mast"].use_local_location = local
    joint = rig.pose.bones["mast"].ccd_rig
    joint.use_slide = [axis in along for axis in "XYZ"]
    joint.slide_lower, joint.slide_upper = (-0.2,) * 3, (0.7,) * 3
    target = rigs.empty("Hook")
    row = constrain(rig, "boom", target, "Hook", **fields)
    return rig, target, row


def along(channels, rig, axis):
    return keyed(channels, rig, 'pose.bones["mast"].location') @ np.array(Vector(axis).normalized())


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("place", ["at home", "turned", "scaled", "mirrored"])
def test_a_slide_is_keyed_and_stays_inside_its_range(bake, channels, local, place):
    axis = (0.0, 1.0, 0.0)  # without Local Location, the parent's, which points the same way
    rig, target, _ = crane(local)
    rig.matrix_world = PLACES[place]
    rig.pose.bones["mast"].location = (0.03, 0.0, 0.02)
    rigs.update()
    points = ((0.3, 0.2, 2.7), (0.2, 0.4, 2.4), (0.1, -0.1, 2.8))
    key(target, "location", [PLACES[place] @ Vector(p) for p in points])
    rig.pose.bones["mast"].ccd_rig.use_slide = (False,) * 3
    without = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert without.unsolved_count() > 0
    rig.animation_data_clear()
    rig.pose.bones["mast"].ccd_rig.use_slide = (False, True, False)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    values = along(channels, rig, axis)
    assert len(values) == FRAMES
    assert values.min() >= -0.2 - FLOAT32
    assert values.max() <= 0.7 + FLOAT32
    assert np.ptp(values) > 0.05
    whole = keyed(channels, rig, 'pose.bones["mast"].location')
    across = whole - values[:, None] * np.array(axis)
    assert np.abs(across - across[0]).max() < FLOAT32
    assert across[0] == pytest.approx((0.03, 0.0, 0.02), abs=FLOAT32)
    for line, (_, evaluated, depsgraph) in zip(report.entries, played(rig), strict=True):
        tip = evaluated.matrix_world @ evaluated.pose.bones["boom"].tail
        off = (tip - target.evaluated_get(depsgraph).matrix_world.translation).length
        assert off < SOLVE + PLAYED
        assert off == pytest.approx(line.keyed_residual, abs=PLAYED)


def test_slides_are_lerped_between_solves_and_blended_by_influence(bake, channels):
    rig, target, row = crane()
    key(target, "location", [(0.3, 0.2, 2.7), (0.2, 0.4, 2.1), (0.1, -0.1, 2.8)])
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES, step=8))
    full = along(channels, rig, (0, 1, 0))
    for start in (0, 8):
        wanted = np.linspace(full[start], full[start + 8], 9)
        assert full[start : start + 9] == pytest.approx(wanted, abs=FLOAT32)
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        bone.rotation_quaternion, bone.location = (1, 0, 0, 0), (0, 0, 0)
    row.influence = 0.25
    rigs.update()
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES, step=8))
    assert along(channels, rig, (0, 1, 0)) == pytest.approx(0.25 * full, abs=FLOAT32)


def test_solve_pose_writes_the_slide(bake):
    rig, target, _ = crane()
    target.location = (0.2, 0.3, 2.7)
    rigs.update()
    result = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig).result
    rigs.update()
    assert result.status.name == "CONVERGED"
    assert 0.1 < rig.pose.bones["mast"].location.y <= 0.7
    assert (rig.pose.bones["boom"].tail - target.location).length < SOLVE + PLAYED
    assert rig.pose.bones["foot"].location.length == 0.0


def test_a_bone_that_only_slides(bake, channels):
    """Rotation locked on all axes: a piston. It needs Euler angles to be held."""
    rig, target, _ = crane()
    rig.pose.bones["mast"].rotation_mode = "XYZ"
    rig.pose.bones["mast"].rotation_euler = (0.1, 0.2, 0.3)
    rig.pose.bones["mast"].lock_rotation = (True, True, True)
    key(target, "location", [(0.3, 0.2, 2.5), (0.2, 0.4, 2.3), (0.1, -0.1, 2.5)])
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    turns = keyed(channels, rig, 'pose.bones["mast"].rotation_euler')
    assert turns == pytest.approx(np.tile((0.1, 0.2, 0.3), (FRAMES, 1)), abs=1e-5)
    assert np.ptp(along(channels, rig, (0, 1, 0))) > 0.01


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("place", ["at home", "turned", "scaled", "mirrored"])
def test_three_slides_carry_a_bone_that_does_not_turn(bake, channels, local, place):
    """A cart: where the ranges allow it the target is met by the three location channels alone."""
    rig, target, _ = crane(local, "XYZ", chain_length=2)
    rig.matrix_world = PLACES[place]
    for bone in ("mast", "boom"):
        rig.pose.bones[bone].rotation_mode = "XYZ"
        rig.pose.bones[bone].lock_rotation = (True, True, True)
    rig.pose.bones["mast"].location = (0.1, -0.1, 0.05)
    rigs.update()
    start = rig.pose.bones["boom"].tail.copy()
    shifts = ((0.1, 0.2, 0.15), (0.25, 0.0, 0.3), (-0.05, 0.1, 0.0), (5.0, 5.0, 5.0))
    key(target, "location", [PLACES[place] @ (start + Vector(shift)) for shift in shifts])
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 25))
    locations = keyed(channels, rig, 'pose.bones["mast"].location')
    assert locations.shape == (25, 3)
    assert locations.min() >= -0.2 - FLOAT32
    assert locations.max() <= 0.7 + FLOAT32
    late = [entry.frame for entry in report.unsolved()]
    assert late, "the last target is out of range"
    assert min(late) > 17
    assert np.ptp(locations, axis=0).min() > 0.05


def connected(rig, bone):
    with rigs.edit_bones(rig) as bones:
        bones["mast"].use_connect = True


def locked(rig, bone):
    bone.lock_location[1] = True


def backwards(rig, bone):
    bone.ccd_rig.slide_lower[1] = 2.0


def locked_quaternion(rig, bone):
    bone.lock_rotation = (True, True, True)


def driven(rig, bone):
    bone.driver_add("location", 1).driver.expression = "0.1"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (connected, "'mast' slides but is connected"),
        (locked, "'mast' slides but its location is locked on Y"),
        (backwards, "'mast', slide: Y Min"),
        (locked_quaternion, "'mast' has rotation locked"),
        (driven, r"'mast': location\[1\] has a driver"),
    ],
)
def test_what_cannot_slide_is_said(ext, bake, errors, spoil, words):
    rig, _, _ = crane()
    spoil(rig, rig.pose.bones["mast"])
    rigs.update()
    checks = ext.module("ccd_rig.blender.checks.setup")
    assert any(p.severity == "ERROR" for p in checks.problems(rig, bpy.context.scene))
    with pytest.raises(errors.CCDRigError, match="(?i)" + words):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert rig.animation_data is None or rig.animation_data.action is None
