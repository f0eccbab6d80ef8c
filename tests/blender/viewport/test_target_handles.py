"""Handles of targets: which there are, what lies below the pointer, and targets moved and turned by them."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Matrix, Quaternion, Vector
from operator_calls import select, set_up
from rigs import B, reach

VIEWPORT = "ccd_rig.blender.viewport"
FLOAT32 = 1e-5
TURN = Quaternion((0.2, 0.9, -0.3), 0.8)
SHIFT = Vector((0.3, -0.2, 0.4))


@pytest.fixture
def rig(ext):
    bones = [B("chest", (0, 0, 1), (0, 0, 1.4))]
    for side, x in (("L", 1.0), ("R", -1.0)):
        bones += [
            B(f"arm.{side}", (0.2 * x, 0, 1.3), (0.5 * x, 0.05, 1.3), "chest"),
            B(f"hand.{side}", (0.5 * x, 0.05, 1.3), (0.8 * x, 0, 1.3), f"arm.{side}", connect=True),
        ]
    bones += [B("root", (2, 0, 0), (2, 0, 1)), B("control", (2, 0, 1), (2.3, 0.2, 1.1), "root", roll=0.4)]
    rig = rigs.armature(bones)
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    return rig


def marks_of(ext, rig, hidden=()):
    rigs.update()
    shown = frozenset(bone.name for bone in rig.pose.bones) - set(hidden)
    return ext.module(f"{VIEWPORT}.constraints").target_marks(rig, shown)


def grip_of(ext, row, is_pole=False):
    rigs.update()
    targets = ext.module("ccd_rig.blender.properties.new_constraints").of_row(row)
    target = targets[0] if is_pole else targets[-1]
    point = ext.module(f"{VIEWPORT}.constraints").target_point(row)
    return ext.module(f"{VIEWPORT}.constraints").Grip(row, target, point, is_pole)


def point(ext, row):
    rigs.update()
    return ext.module(f"{VIEWPORT}.constraints").target_point(row)


def world(target, bone=""):
    rigs.update()
    seen = target.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return seen.matrix_world @ seen.pose.bones[bone].matrix if bone else seen.matrix_world.copy()


def test_each_target_and_pole_has_a_mark(ext, rig):
    left = reach(rig, "hand.L", rigs.empty("Left", (1, 0, 1)), rotation="ORIENTATION")
    left.pole_target = rigs.empty("Pole", (0.5, 1, 1))
    reach(rig, "hand.R", rigs.empty("Right", (-1, 0, 1)))
    reach(rig, "chest", rig, target_bone="control")
    rig.ccd_rig.active_index = 1
    marks = {mark.target: mark for mark in marks_of(ext, rig)}
    assert [(t.obj.name, t.bone) for t in marks] == [
        *(("Left", ""), ("Pole", ""), ("Rig", "control"), ("Right", ""))  # the active one is drawn last
    ]
    assert [mark.side for mark in marks.values()] == ["L", "L", "", "R"]
    assert not any(mark.turns for mark in marks.values()), "the active one has no ring"
    assert [mark.is_pole for mark in marks.values()] == [False, True, False, False]
    assert [mark.is_active for mark in marks.values()] == [False, False, False, True]
    rig.ccd_rig.active_index = 0
    assert [mark.turns for mark in marks_of(ext, rig) if mark.is_active] == [True, False]
    assert (marks[rig, "control"].point - world(rig, "control").translation).length < FLOAT32


def test_a_target_whose_rotation_alone_counts_shows_its_ring(ext, rig):
    """As a generated rig's head: it was pulled in vain, and only a click showed that it turns."""
    head = reach(rig, "chest", rigs.empty("Head", (0, 0, 2)), rotation="ORIENTATION", use_position=False)
    reach(rig, "hand.L", rigs.empty("Left", (1, 0, 1)), rotation="ORIENTATION")
    rig.ccd_rig.active_index = 1
    turned, both = marks_of(ext, rig)
    assert (turned.is_active, turned.turns, turned.moves) == (False, True, False)
    assert (both.is_active, both.turns, both.moves) == (True, True, True)
    rig.ccd_rig.active_index = 0
    left, _ = marks_of(ext, rig)
    assert (left.turns, left.moves) == (False, True)
    reach(rig, "hand.R", head.target)  # which uses its place
    for active in (0, 1, 2):
        rig.ccd_rig.active_index = active
        assert all(mark.moves for mark in marks_of(ext, rig))
    head.target.lock_rotation = (True,) * 3
    rig.ccd_rig.constraints.remove(2)
    assert [mark.turns for mark in marks_of(ext, rig) if not mark.moves] == [False]


def test_what_is_off_hidden_or_nowhere_has_none(ext, rig):
    reach(rig, "hand.L", rigs.empty("Off"), enabled=False)
    reach(rig, "hand.R", rigs.empty("Hidden"))
    reach(rig, "chest", rig, target_bone="gone")
    reach(rig, "arm.L", rigs.empty("Far", (1e30, 0, 0)))
    reach(rig, "arm.R", None)
    assert marks_of(ext, rig, hidden=["hand.R"]) == []
    rig.ccd_rig.constraints[0].enabled = True
    assert [mark.row for mark in marks_of(ext, rig, hidden=["hand.R"])] == [0]


def test_a_shared_target_has_one_mark_of_the_active_constraint(ext, rig):
    shared = rigs.empty("Shared", (1, 0, 1))
    for tip in ("hand.L", "hand.R", "chest"):
        reach(rig, tip, shared)
    rig.ccd_rig.constraints[1].rotation = "ORIENTATION"
    rig.ccd_rig.active_index = 1
    (mark,) = marks_of(ext, rig)
    assert (mark.row, mark.side, mark.turns, mark.is_active) == (1, "R", True, True)
    rig.ccd_rig.constraints[0].offset = (0.1, 0.0, 0.0)  # another point
    assert sorted(mark.row for mark in marks_of(ext, rig)) == [0, 1]


def test_the_nearest_mark_is_hit_before_any_ring(ext, rig):
    marks_module = ext.module(f"{VIEWPORT}.constraints")
    for place, tip in enumerate(("hand.L", "hand.R", "chest")):
        reach(rig, tip, rigs.empty(tip, (place, 0, 0)), rotation="ORIENTATION")
    rig.ccd_rig.active_index = 1
    marks = marks_of(ext, rig)
    places = np.array([[mark.point.x * 20.0, 0.0] for mark in marks])
    order = [mark.row for mark in marks]

    def below(x, y, scale=1.0):
        found = marks_module.hit(marks, places, (x, y), scale)
        return None if found is None else (order[found.place], found.is_ring)

    assert below(1, 3) == (0, False)
    assert below(12, 0) == (1, False)  # a disc lies over the ring of another
    assert below(20, marks_module.RING) == (1, True)
    assert below(0, marks_module.RING) is None  # nothing turns that one
    assert below(200, 0) is None
    assert below(20, 2 * marks_module.RING, 2.0) == (1, True)
    assert marks_module.hit([], np.empty((0, 2)), (0, 0), 1.0) is None


def test_points_behind_the_viewer_are_on_no_place(ext):
    on_screen = ext.module(f"{VIEWPORT}.constraints").places_on_screen
    perspective = Matrix(((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, -1, -0.2), (0, 0, -1, 0)))
    places = on_screen([Vector((0, 0, -2)), Vector((1, 0.5, -1)), Vector((0, 0, 2))], perspective, (200, 100))
    assert places[:2] == pytest.approx(np.array([[100, 50], [200, 75]]))
    assert np.isnan(places[2]).all()


def plain(rig):
    return reach(rig, "hand.L", rigs.empty("Goal", (1, 0.2, 1)), rotation="ORIENTATION")


def hanging(rig):
    carrier = rigs.empty("Carrier", (3, 1, 0))
    carrier.rotation_euler, carrier.scale = (0.3, 0.5, -0.7), (2.0, 2.0, 2.0)
    row = plain(rig)
    row.target.parent = carrier
    rigs.update()
    row.target.matrix_parent_inverse = Matrix.LocRotScale((0.2, 0, 0), TURN, None)
    row.target.delta_location, row.target.delta_rotation_euler = (0.1, 0.2, 0.3), (0.4, 0.3, 0.2)
    row.target.rotation_euler = (0.2, 0.3, 0.1)
    return row


def axis_angle(rig):
    row = plain(rig)
    row.target.rotation_mode = "AXIS_ANGLE"
    row.target.rotation_axis_angle = (0.4, 0.0, 0.6, 0.8)
    return row


def control_bone(rig):
    rig.pose.bones["root"].matrix_basis = Matrix.LocRotScale((0.2, 0.1, 0), TURN, (1.5,) * 3)
    rig.pose.bones["control"].rotation_quaternion = (0.9, 0.1, 0.4, 0.1)
    rig.location, rig.rotation_euler, rig.scale = (1, 2, 3), (0.4, 0, 0.9), (0.5,) * 3
    return reach(rig, "hand.L", rig, target_bone="control", rotation="ORIENTATION")


def mirrored(scale, *of_parent):
    def make(rig):
        row = plain(rig)
        row.target.rotation_euler, row.target.scale = (0.3, 0.2, 0.1), scale
        if of_parent:
            carrier = rigs.empty("Carrier", (1, 2, 3))
            carrier.rotation_euler, carrier.scale = (0.3, 0.5, -0.7), of_parent
            row.target.parent = carrier
        return row

    return make


def mirrored_bone(rig):
    row = control_bone(rig)
    rig.pose.bones["control"].scale = (-1.0, 1.0, 1.5)
    rig.scale = (-0.5, 0.5, 0.5)
    return row


def frame(matrix):
    """Y, the direction of the second axis, and Z, the part of the third across it."""
    y, z = (matrix.to_3x3().col[k].normalized() for k in (1, 2))
    return y, (z - y * y.dot(z)).normalized()


@pytest.mark.parametrize("angle", [0.0, 0.02, 2.0])
@pytest.mark.parametrize(
    "make",
    [
        *(mirrored((-1, 1, 1)), mirrored((1, 1, -1)), mirrored((1, -2, 1)), mirrored((-1, -1, -1))),
        *(mirrored((1, 1, 1), -1, 1, 1), mirrored((1, -1, 1), 1, 2, 0.5), mirrored_bone),
    ],
)
def test_a_target_that_is_mirrored_or_sheared_turns_by_what_its_ring_turns(ext, rig, make, angle):
    row = make(rig)
    before = frame(world(row.target, row.target_bone))
    place = world(row.target, row.target_bone).translation
    turn = Quaternion((0.3, -0.5, 0.8), angle)
    grip_of(ext, row).turn(turn)
    after = world(row.target, row.target_bone)
    for axis, was in zip(frame(after), before, strict=True):
        assert (axis - turn @ was).length < 2e-5
    assert (after.translation - place).length < FLOAT32


def test_locked_channels_of_a_target_stay(ext, rig):
    """As by Blender's G and R."""
    row = plain(rig)
    target = row.target
    target.rotation_euler = (0.1, 0.2, 0.3)
    target.lock_location, target.lock_rotation = (False, False, True), (True, True, False)
    before = target.location.copy()
    grip = grip_of(ext, row)
    grip.move(SHIFT)
    assert tuple(target.location) == pytest.approx((*(before + SHIFT)[:2], before.z), abs=FLOAT32)
    grip.turn(TURN)
    assert tuple(target.rotation_euler)[:2] == pytest.approx((0.1, 0.2), abs=1e-7)
    assert abs(target.rotation_euler.z - 0.3) > 0.01
    target.rotation_mode, target.rotation_quaternion = "QUATERNION", (0.9, 0.1, 0.4, 0.1)
    target.lock_rotations_4d = False
    angles = target.rotation_quaternion.to_euler("XYZ")
    grip_of(ext, row).turn(TURN)
    assert tuple(target.rotation_quaternion.to_euler("XYZ"))[:2] == pytest.approx(angles[:2], abs=1e-5)
    before, target.lock_rotations_4d = tuple(target.rotation_quaternion), True
    grip_of(ext, row).turn(TURN)
    assert tuple(target.rotation_quaternion)[1:3] == before[1:3]
    assert tuple(target.rotation_quaternion) != before
    assert [mark.turns for mark in marks_of(ext, rig)] == [True]
    target.lock_rotation = (True,) * 3
    assert not grip_of(ext, row).can_turn and grip_of(ext, row).can_move
    assert [mark.turns for mark in marks_of(ext, rig)] == [False], "no ring where nothing can turn"


@pytest.mark.parametrize("make", [plain, hanging, axis_angle, control_bone])
def test_a_target_goes_where_it_is_dragged(ext, rig, make):
    row = make(rig)
    before = world(row.target, row.target_bone)
    grip = grip_of(ext, row)
    assert grip.can_move and grip.can_turn and not grip.changed()
    grip.move(SHIFT)
    moved = world(row.target, row.target_bone)
    assert (moved.translation - before.translation - SHIFT).length < FLOAT32
    assert moved.to_quaternion().rotation_difference(before.to_quaternion()).angle < 1e-3
    grip.move(Vector())
    grip.turn(TURN)
    turned = world(row.target, row.target_bone)
    assert (turned.translation - before.translation).length < FLOAT32
    wanted = TURN @ before.to_quaternion()
    assert turned.to_quaternion().rotation_difference(wanted).angle < 1e-3
    ((owner, channel),) = [each for each in grip.changed() if each[1] != "location"]
    assert owner == (rig.pose.bones["control"] if row.target_bone else row.target)
    assert channel.startswith("rotation")
    grip.restore()
    assert not grip.changed()
    assert (world(row.target, row.target_bone).translation - before.translation).length < FLOAT32


def constrained(rig, row):
    row.target.constraints.new("LIMIT_LOCATION")


def driven(rig, row):
    row.target.driver_add("location", 0).driver.expression = "1.0"


def locked(rig, row):
    row.target.lock_location = (True,) * 3


def of_another_rig(rig, row):
    row.target, row.target_bone = rigs.chain(2, name="Prop"), "bone_1"
    row.target.rotation_euler = (0.3, 0.4, 0.5)


@pytest.mark.parametrize("space", ["TARGET", "ARMATURE", "WORLD"])
@pytest.mark.parametrize("hold", [constrained, driven, locked, of_another_rig])
def test_where_something_else_moves_the_target_its_offset_goes(ext, rig, hold, space):
    row = plain(rig)
    hold(rig, row)
    rig.rotation_euler, rig.scale = (0.4, 0, 0.9), (0.5,) * 3
    row.offset_space = space
    thing = world(row.target, row.target_bone)
    before = point(ext, row)
    grip = grip_of(ext, row)
    assert grip.can_move and not grip.can_turn
    grip.turn(TURN)
    grip.move(SHIFT)
    assert (point(ext, row) - before - SHIFT).length < FLOAT32
    assert world(row.target, row.target_bone) == thing
    assert grip.changed() == [(row, "offset")]
    grip.restore()
    assert tuple(row.offset) == (0.0, 0.0, 0.0)


def test_a_pole_that_something_else_moves_stays(ext, rig):
    row = plain(rig)
    row.pole_target = rigs.empty("Pole", (0.5, 1, 1))
    assert grip_of(ext, row, is_pole=True).can_move
    row.pole_target.constraints.new("LIMIT_LOCATION")
    grip = grip_of(ext, row, is_pole=True)
    assert not grip.can_move
    grip.move(SHIFT)
    assert not grip.changed() and tuple(row.offset) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("make", [plain, control_bone])
def test_auto_keying_keys_what_was_moved(ext, channels, rig, make):
    row = make(rig)
    if not row.target_bone:
        row.target.lock_location = (True,) * 3  # so that the offset is moved
    settings = bpy.context.scene.tool_settings
    settings.use_keyframe_insert_auto = True
    bpy.context.preferences.edit.use_keyframe_insert_available = False
    grip = grip_of(ext, row)
    grip.move(SHIFT)
    insert = ext.module("ccd_rig.blender.keys.auto_keys").insert
    assert insert(bpy.context, grip.changed()) == ""
    curves = channels.fcurves_of(rig)
    path = 'pose.bones["control"].location' if row.target_bone else "ccd_rig.constraints[0].offset"
    assert {curve.data_path for curve in curves} == {path}
    settings.use_keyframe_insert_auto = False


def test_a_bone_that_is_a_target_chooses_its_constraint(ext, rig):
    row_of = ext.module("viewport.active_row").row_of
    reach(rig, "hand.L", rig, target_bone="control")
    reach(rig, "hand.R", rigs.empty("Right"))
    rig.ccd_rig.active_index = 1
    assert row_of(rig, "control") == 0
    assert row_of(rig, "root") == 1
    rig.ccd_rig.constraints[1].target, rig.ccd_rig.constraints[1].target_bone = rig, "control"
    for active in (0, 1):  # of several the active one stays
        rig.ccd_rig.active_index = active
        assert row_of(rig, "control") == active


def test_the_handle_below_a_pointer_at_rest_stays_the_same_as_marks_change(ext, rig, monkeypatch):
    """The active mark is the last: another constraint became active, and a press took another handle."""
    handles = ext.module("viewport.target_handles")
    for side, x in (("L", 1.0), ("R", -1.0)):
        reach(rig, f"hand.{side}", rigs.empty(side, (x, 0, 1)))
    gizmo = SimpleNamespace(pointed=None, grip=None)
    gizmo._point = lambda context: handles.CCD_RIG_GT_targets._point(gizmo, context)

    def look(active):
        rig.ccd_rig.active_index = active
        marks = marks_of(ext, rig)
        places = np.array([(100.0 * mark.point.x, 0.0) for mark in marks])
        monkeypatch.setattr(handles, "shown_marks", lambda context: (marks, places))
        handles.CCD_RIG_GT_targets.look(gizmo, bpy.context)

    look(0)
    handles.CCD_RIG_GT_targets.test_select(gizmo, bpy.context, (100.0, 0.0))
    for active in (1, 0):
        assert gizmo.marks[gizmo.pointed.place].target.obj.name == "L"
        look(active)
    rig.ccd_rig.constraints.remove(0)
    look(0)
    assert gizmo.pointed is None


@pytest.mark.parametrize("control_bones", [False, True])
def test_sides_of_a_nameless_figure_are_those_of_its_roles(ext, control_bones):
    """As the user has set them up: here arms change places, since nothing tells front from back."""
    rig, names = rigs.nameless_human()
    left, right = names["hand.L"], names["hand.R"]
    figure = ext.module("ccd_rig.blender.figures.recognition").figure_of(rig)
    swapped = {"left": "right", "right": "left"}
    arms = [names[f"{bone}.{side}"] for bone in ("shoulder", "upper_arm", "forearm", "hand") for side in "LR"]
    roles = []
    for name in arms:
        side, _, part = figure.roles[name].words().partition(" ")
        roles.append({"name": name, "role": f"{swapped[side]} {part}"})
    set_up(rig, roles=roles, poles=True, control_bones=control_bones)
    sides = {}
    for mark in marks_of(ext, rig):
        sides.setdefault(rig.ccd_rig.constraints[mark.row].tip, set()).add(str(mark.side))
    assert sides == {
        left: {"R"},
        right: {"L"},
        names["foot.L"]: {"L"},
        names["foot.R"]: {"R"},
        names["spine"]: {""},
        names["spine.006"]: {""},
    }


@pytest.mark.parametrize("control_bones", [False, True])
def test_a_target_that_add_makes_has_the_side_of_a_nameless_bone(ext, control_bones):
    rig, names = rigs.nameless_human()
    select(ext, rig, names["hand.R"])
    assert bpy.ops.ccd_rig.constraint_add(control_bones=control_bones) == {"FINISHED"}
    (mark,) = marks_of(ext, rig)
    assert mark.side == "R"
    made = ext.module("ccd_rig.blender.figures.control_bones")
    if control_bones:
        assert mark.target.owner.color.palette == made.PALETTES["R"]
    (mark.target.owner.bone if control_bones else mark.target.obj)[made.SIDE] = 5  # by another add-on
    assert [each.side for each in marks_of(ext, rig)] == [""]
