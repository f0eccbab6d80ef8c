"""Bones that are pulled in Pose Mode: channels, pins, what is moved on rigs of controls, what is refused."""

from __future__ import annotations

import math
import struct
from contextlib import contextmanager
from types import SimpleNamespace

import bpy
import pytest
import rigs
from linked_rigs import linked
from mathutils import Euler, Matrix, Quaternion, Vector
from operator_calls import fails, select
from rigs import B

CHANNELS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")
NEAR = 1e-3  # [m]
PINNED = 2e-3  # [m]
FEET = "foot.L", "foot.R"


def bits(rig):
    """All channels of all bones, as they are stored."""
    values = [value for bone in rig.pose.bones for name in CHANNELS for value in getattr(bone, name)]
    return struct.pack(f"{len(values)}f", *values)


def tail(rig, name):
    rigs.update()
    return (rig.matrix_world @ rig.pose.bones[name].tail).copy()


def head(rig, name):
    rigs.update()
    return (rig.matrix_world @ rig.pose.bones[name].head).copy()


def pull(drag, delta, near=NEAR):
    """Move the pointer by `delta` from the press: the bone's tail, as Blender shows it, comes along."""
    goal = tail(drag.armature_object, drag.name) + Vector(delta)
    drag.move(delta)
    assert (tail(drag.armature_object, drag.name) - goal).length < near


@contextmanager
def staying(rig, *names):
    """Inside, the tails of bones stay where they are."""
    places = {name: tail(rig, name) for name in names}
    yield
    for name, place in places.items():
        assert (tail(rig, name) - place).length < PINNED


@pytest.fixture
def begin(ext):
    """Begins a drag of bones by their tails."""
    module = ext.module("ccd_rig.blender.drag.session")

    def begin(rig, *names, turning=0):
        rigs.update()
        pulled = [module.Pulled(name, tail(rig, name)) for name in names]
        return module.Session(rig, bpy.context.evaluated_depsgraph_get(), pulled, turning)

    return begin


def bent(count=5, angle=0.2):
    """A chain of bones of 1 m that can give."""
    rig = rigs.chain(count)
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, Quaternion((1.0, 0.0, 0.0), angle))
    return rig


@pytest.mark.parametrize("mode", rigs.MODES)
def test_a_bone_is_pulled_to_a_place_in_the_world(begin, mode):
    """Under an object that is moved, turned and scaled; each mode of rotation in its own channel."""
    rig = rigs.chain(5)
    rig.matrix_world = Matrix.LocRotScale(Vector((1, -2, 3)), Euler((0.4, 0.2, -0.9)), Vector((2, 2, 2)))
    for bone in rig.pose.bones:
        bone.rotation_mode = mode
        rigs.set_rotation(bone, Quaternion((1.0, 0.0, 0.0), 0.3))
    drag = begin(rig, "bone_4")
    pull(drag, (0.8, 0.5, -1.2))
    assert drag.is_reached()
    channel = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    assert {name for _, name in drag.written()} == {channel.get(mode, "rotation_euler")}


def test_where_the_pointer_was_before_makes_no_difference_to_the_bit(begin):
    rig = bent()
    for bone in rig.pose.bones:
        bone.rotation_mode = "XYZ"  # whose angles go on by whole turns
    rigs.update()
    drag = begin(rig, "bone_4")
    drag.move((0.5, 0.4, -0.3))
    alone = bits(rig)
    for k in range(12):
        drag.move((3.0 * math.cos(k), 3.0 * math.sin(k), -2.0))
    drag.move((0.5, 0.4, -0.3))
    assert bits(rig) == alone


def test_back_at_the_press_and_cancelled_channels_are_as_they_were_to_the_bit(begin):
    """Quaternions that are not of length 1, and angles past a whole turn, too."""
    rig = bent()
    rig.pose.bones["bone_1"].rotation_quaternion = (2.0, 0.3, 0.1, 0.0)
    rig.pose.bones["bone_2"].rotation_mode = "ZXY"
    rig.pose.bones["bone_2"].rotation_euler = (7.0, 0.1, -9.0)
    before = bits(rig)
    drag = begin(rig, "bone_4")
    drag.move((0.5, 0.4, -0.3))
    assert bits(rig) != before
    drag.move((0.0, 0.0, 0.0))
    assert bits(rig) == before
    assert drag.written() == []
    drag.move((0.5, 0.4, -0.3))
    drag.cancel()
    assert bits(rig) == before


def test_limits_hold(begin):
    rig = bent(4, 0.1)
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind = "HINGE"
        bone.ccd_rig.limit.axis = (1.0, 0.0, 0.0)
        bone.ccd_rig.limit.hinge_lower, bone.ccd_rig.limit.hinge_upper = 0.0, 0.5
    drag = begin(rig, "bone_3")
    for delta in ((0.0, -6.0, 0.0), (0.0, 6.0, -6.0), (4.0, 0.0, 0.0)):
        drag.move(delta)
        for bone in rig.pose.bones:
            x, *others = bone.rotation_quaternion.to_exponential_map()
            assert -1e-5 <= x <= 0.5 + 1e-5
            assert max(map(abs, others)) < 1e-5


def test_blenders_limit_rotation_holds_where_a_bone_has_no_other(begin):
    rig = bent(3, 0.1)
    bound = rig.pose.bones["bone_1"].constraints.new("LIMIT_ROTATION")
    bound.owner_space, bound.use_limit_x, bound.max_x = "LOCAL", True, 0.2
    drag = begin(rig, "bone_2")
    solved = drag.starts[0] + Vector((0.0, -2.0, -1.0))
    result = drag.move((0.0, -2.0, -1.0))
    assert rig.pose.bones["bone_1"].rotation_quaternion.to_euler().x <= 0.2 + 1e-5
    # Blender shows what was solved, so the constraint changes nothing on top of it.
    assert (tail(rig, "bone_2") - solved).length == pytest.approx(result.errors[0].distance, abs=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        {"owner_space": "WORLD", "use_limit_x": False},  # as Blender makes it
        {"use_limit_x": False},
        {"min_x": 1.0},  # above the other end
        {"influence": 0.0},
    ],
)
def test_a_limit_rotation_that_is_no_range_at_rest_holds_nothing(begin, change):
    rig = bent(3, 0.1)
    bound = rig.pose.bones["bone_1"].constraints.new("LIMIT_ROTATION")
    bound.owner_space, bound.use_limit_x, bound.max_x = "LOCAL", True, 0.01
    for name, value in change.items():
        setattr(bound, name, value)
    drag = begin(rig, "bone_2")
    assert drag.move((0.0, -1.0, -0.8)).errors[0].distance < 1e-3
    assert rig.pose.bones["bone_1"].rotation_quaternion.angle > 0.03


@pytest.mark.parametrize("order", ["AUTO", "ZYX"])
def test_a_knee_with_locks_and_a_limit_rotation(begin, order):
    """Of locked axes none turns, and the free one keeps inside its range if that is of the same order."""
    rig = bent(3, 0.1)
    knee = rig.pose.bones["bone_1"]
    knee.rotation_mode, knee.rotation_euler, knee.lock_rotation = "XYZ", (0.1, 0.0, 0.2), (False, True, True)
    bound = knee.constraints.new("LIMIT_ROTATION")
    bound.owner_space, bound.use_limit_x, bound.max_x, bound.euler_order = "LOCAL", True, 0.4, order
    rigs.update()
    drag = begin(rig, "bone_2")
    for delta in ((0.0, -2.0, -1.0), (0.0, 2.0, -1.0), (2.0, 0.0, -0.5)):
        drag.move(delta)
        assert tuple(knee.rotation_euler)[1:] == pytest.approx((0.0, 0.2), abs=1e-6)
        assert order == "ZYX" or -1e-5 <= knee.rotation_euler.x <= 0.4 + 1e-5
    assert abs(knee.rotation_euler.x - 0.1) > 0.05


@pytest.mark.parametrize("scale", [(-1, 1, 1), (1, 1, -1), (-1, 1, -1), (-2, 1, 3)])
def test_the_pulled_point_of_a_mirrored_bone_goes_along(begin, scale):
    """What Blender shows is at the pointer."""
    rig = bent(3, 0.3)
    rig.pose.bones["bone_2"].scale = scale
    rigs.update()
    shift = Vector((0.1, 0.3, -0.5))
    drag = begin(rig, "bone_2")
    pull(drag, shift, near=2e-3)
    assert drag.result.errors[0].distance < 1e-3


def biped():
    rig = rigs.armature(rigs.biped())
    for name in ("thigh.L", "thigh.R"):
        rigs.set_rotation(rig.pose.bones[name], Quaternion((1.0, 0.0, 0.0), 0.3))
    for name in ("shin.L", "shin.R"):
        rigs.set_rotation(rig.pose.bones[name], Quaternion((1.0, 0.0, 0.0), -0.5))
    rigs.update()
    return rig


def test_a_chain_goes_up_to_where_its_limb_begins_and_the_wheel_changes_it(begin):
    rig = biped()
    drag = begin(rig, "toe.L")
    assert set(drag.chain) == {"toe.L", "foot.L", "shin.L", "thigh.L"}
    assert drag.turning == 4
    drag.move((0.0, -0.1, 0.2))
    rigs.update()
    assert drag.lengthen(2, (0.0, 0.0, 0.02))
    assert set(drag.chain) == {"toe.L", "foot.L"}
    assert {bone.name for bone, _ in drag.written()} == {"toe.L", "foot.L"}
    found = bits(rig)
    drag.cancel()
    rigs.update()
    begin(rig, "toe.L", turning=2).move((0.0, 0.0, 0.02))
    assert bits(rig) == found  # as if the chain had had that length at the press
    assert drag.lengthen(99, (0.0, 0.0, 0.02))
    assert drag.turning == drag.most
    assert not drag.lengthen(99, (0.0, 0.0, 0.02))
    drag.cancel()
    assert drag.lengthen(1, (0.0, 0.0, 0.0))
    assert drag.written() == []


def test_a_longer_chain_that_cannot_be_moved_is_refused_and_the_shorter_goes_on(errors, begin):
    rig = bent(5)
    rig.pose.bones["bone_1"].lock_rotation = (True, False, False)
    drag = begin(rig, "bone_4", turning=2)
    drag.move((0.2, 0.1, -0.2))
    before = bits(rig)
    with pytest.raises(errors.RigError, match="'bone_1' has rotation locked on X"):
        drag.lengthen(4, (0.2, 0.1, -0.2))
    assert bits(rig) == before
    assert drag.turning == 2
    drag.cancel()


def test_a_press_beside_all_bones_is_taken_and_moves_none(ext, monkeypatch):
    """Blender took the press on: pulling moved the bone of the last drag off its joint."""
    module = ext.module("operators.drag")
    monkeypatch.setattr(module, "_select_at", lambda *_: False)
    region = SimpleNamespace(type="WINDOW")
    context = SimpleNamespace(region=region, space_data=SimpleNamespace(type="VIEW_3D"))
    event = SimpleNamespace(mouse_region_x=10, mouse_region_y=10)
    pressed = SimpleNamespace(pick=True, _mouse=None, _at=None)
    assert module.CCD_RIG_OT_drag.invoke(pressed, context, event) == {"CANCELLED"}


def test_hips_are_moved_and_not_turned(begin):
    rig = biped()
    turned = rig.pose.bones["hips"].rotation_quaternion.copy()
    drag = begin(rig, "hips")
    pull(drag, (0.1, 0.2, -0.1), near=1e-5)
    assert rig.pose.bones["hips"].rotation_quaternion == turned
    assert drag.written() == [(rig.pose.bones["hips"], "location")]


def test_standing_feet_stay_if_that_is_switched_on(begin):
    rig = biped()
    rig.ccd_rig.pin_feet = True
    turned = {name: rig.pose.bones[name].matrix.to_quaternion() for name in FEET}
    drag = begin(rig, "hips")
    assert drag.pins == {"foot.L": True, "foot.R": True}
    with staying(rig, *FEET):
        drag.move((0.03, 0.05, -0.1))
    assert drag.is_reached()
    for name in FEET:
        angle = turned[name].rotation_difference(rig.pose.bones[name].matrix.to_quaternion()).angle
        assert min(angle, 2.0 * math.pi - angle) < 2e-3
    drag.cancel()
    rig.pose.bones["thigh.L"].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), 1.2)
    assert begin(rig, "hips").pins == {"foot.R": True}  # the other is lifted


def test_paws_of_one_bone_stand_beside_feet_with_toes(begin):
    """Tails that an importer guessed point anywhere, and a wrist is higher than a toe."""
    bones = [B("hips", (0, 0.5, 1), (0, 0.5, 1.2)), B("spine", (0, 0.5, 1.2), (0, -0.4, 1.2), "hips")]
    for side, x in (("L", 0.1), ("R", -0.1)):
        bones += [
            B(f"thigh.{side}", (x, 0.5, 1.0), (x, 0.4, 0.6), "hips"),
            B(f"shin.{side}", (x, 0.4, 0.6), (x, 0.6, 0.3), f"thigh.{side}"),
            B(f"foot.{side}", (x, 0.6, 0.3), (x, 0.7, 0.4), f"shin.{side}"),
            B(f"toe.{side}", (x, 0.55, 0.02), (x, 0.5, 0.3), f"foot.{side}"),
            B(f"upper_arm.{side}", (x, -0.4, 1.0), (x, -0.35, 0.6), "spine"),
            B(f"forearm.{side}", (x, -0.35, 0.6), (x, -0.4, 0.15), f"upper_arm.{side}"),
            B(f"hand.{side}", (x, -0.4, 0.15), (x, -0.5, 0.4), f"forearm.{side}"),
        ]
    rig = rigs.armature(bones)
    rig.ccd_rig.pin_feet = True
    every = {"foot.L", "foot.R", "hand.L", "hand.R"}
    assert set(begin(rig, "hips").pins) == every
    rig.pose.bones["upper_arm.L"].rotation_mode = "QUATERNION"
    rig.pose.bones["upper_arm.L"].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), 0.8)
    rigs.update()
    assert set(begin(rig, "hips").pins) == every - {"hand.L"}


def centre(rig):
    """Of mass, in the world: bones count by their length."""
    bones = [bone for bone in rig.pose.bones if bone.bone.use_deform]
    sizes = [bone.bone.length for bone in bones]
    middles = [0.5 * (bone.head + bone.tail) for bone in bones]
    return sum((size * middle for size, middle in zip(sizes, middles, strict=True)), Vector()) / sum(sizes)


def test_the_centre_of_mass_stays_above_the_feet_if_that_is_switched_on(begin):
    rig = biped()
    rig.ccd_rig.pin_feet = True
    outside, delta = tail(rig, "foot.L").x, (0.25, 0.0, -0.15)
    free = begin(rig, "hips")
    free.move(delta)
    rigs.update()
    assert centre(rig).x > outside + 0.02
    free.cancel()
    rigs.update()
    before = rig.pose.bones["hips"].matrix_basis.copy()
    rig.ccd_rig.keep_balance = True
    kept = begin(rig, "hips")
    with staying(rig, *FEET):
        kept.move(delta)
    assert 0.85 * outside < centre(rig).x < outside, "eased towards the edge"
    kept.move((0.0, 0.0, 0.0))
    assert rig.pose.bones["hips"].matrix_basis == before


def test_balance_knows_where_bones_end_whose_tails_an_importer_has_invented(ext, begin):
    """All tails point aside, as long as they were; the joints are where they were."""
    armature = ext.module("ccd_rig.blender.rig.armature")
    rig = biped()
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in rig.data.edit_bones:
        bone.use_connect = False
    for bone in rig.data.edit_bones:
        bone.tail = bone.head + Vector((bone.length, 0.0, 0.0))
    bpy.ops.object.mode_set(mode="OBJECT")
    rig.ccd_rig.pin_feet = rig.ccd_rig.keep_balance = True
    rigs.update()
    outside = head(rig, "foot.L").x
    drag = begin(rig, "hips")
    drag.move((0.25, 0.0, -0.15))
    rigs.update()
    sizes = armature.mass_lengths(rig.data)
    middles = [size * armature.mass_middle(rig.pose.bones[name]) for name, size in sizes.items()]
    assert 0.85 * outside < sum(middles, Vector()).x / sum(sizes.values()) < outside + PINNED


def test_balance_on_a_tilted_object_is_refused(ext, begin):
    rig = biped()
    rig.ccd_rig.pin_feet = rig.ccd_rig.keep_balance = True
    rig.rotation_euler = (0.3, 0.0, 0.0)
    rigs.update()
    with pytest.raises(ext.core.RigError, match="is tilted"):
        begin(rig, "head")


def test_with_pins_the_whole_body_takes_part(begin):
    rig = biped()
    for name in FEET:
        rig.pose.bones[name].ccd_rig.pin = "PLACE"
    drag = begin(rig, "head")
    with staying(rig, *FEET):
        pull(drag, (0.0, -0.3, -0.25))
    moved = {bone.name for bone, _ in drag.written()}
    assert {"hips", "spine", "head", "shin.L", "shin.R"} <= moved
    assert "root" not in moved


def turned(rig, names):
    """Degrees by which bones are turned from rest."""
    rigs.update()
    return {name: math.degrees(rig.pose.bones[name].matrix_basis.to_quaternion().angle) for name in names}


def test_a_pulled_hand_bends_the_elbow_and_does_not_shrug(begin):
    """Clavicles give as much as their ranges are beside the arm's."""
    rig = rigs.metarig("basic_human")
    drag = begin(rig, "hand.R")
    drag.move((0.15, 0.15, 0.06))
    assert drag.is_reached()
    turns = turned(rig, ("shoulder.R", "upper_arm.R", "forearm.R"))
    assert turns["shoulder.R"] < min(10.0, 0.3 * turns["upper_arm.R"], 0.3 * turns["forearm.R"])


def test_with_pins_a_small_pull_moves_the_arm_rather_than_the_spine(begin):
    """Bones of the spine count by the weight that they carry, as the hips do."""
    rig = rigs.metarig("basic_human")
    for name in FEET:
        rig.pose.bones[name].ccd_rig.pin = "ROTATION"
    drag = begin(rig, "hand.R")
    drag.move((0.0, -0.15, 0.0))
    assert drag.is_reached()
    assert drag.body == "spine"
    turns = turned(rig, ("spine.001", "spine.002", "spine.003", "upper_arm.R"))
    assert 2.0 * max(turns[f"spine.00{k}"] for k in (1, 2, 3)) < turns["upper_arm.R"]


def largest_turn(drag, delta, steps):
    """Degrees of the largest turn of a bone in a step on the straight way from the press."""
    bones, turns = drag.armature_object.pose.bones, [0.0]
    before = None
    for k in range(1, steps + 1):
        drag.move(Vector(delta) * (k / steps))
        rigs.update()
        now = {name: bones[name].matrix.to_quaternion() for name in drag.chain}
        for name in now if before else ():
            angle = before[name].rotation_difference(now[name]).angle
            turns.append(min(angle, 2.0 * math.pi - angle))
        before = now
    return math.degrees(max(turns))


@pytest.mark.parametrize(
    ("pulled", "delta", "most"),
    [
        (("hand.L", "hand.R"), (-0.1, 0.0, 0.35), 7.0),
        (("hand.L", "hand.R"), (0.0, 0.0, 0.45), 7.0),
        (("spine.006",), (0.0, -0.7, 0.0), 2.0),
        (("spine.006",), (0.0, 0.0, 0.3), 5.0),
    ],
)
def test_with_pins_bodies_go_on_evenly(begin, pulled, delta, most):
    """Nearest poses jumped from one bend of arms to another, and by 10 degrees at the end of their reach."""
    rig = rigs.metarig("human")
    rig.ccd_rig.pin_feet = True
    drag = begin(rig, *pulled)
    assert largest_turn(drag, delta, 40) < most


def test_a_pinned_bone_that_is_pulled_is_free(begin):
    rig = biped()
    for name in FEET:
        rig.pose.bones[name].ccd_rig.pin = "ROTATION"
    drag = begin(rig, "foot.L")
    assert drag.pins == {"foot.R": True}
    pull(drag, (0.0, -0.2, 0.1))
    assert rig.pose.bones["foot.L"].ccd_rig.pin == "ROTATION"


def test_a_pin_on_another_tree_of_bones_is_out_of_reach_and_named(begin):
    rig = rigs.armature([*rigs.biped(), B("lamp", (2, 0, 0), (2, 0, 1))])
    rig.pose.bones["lamp"].ccd_rig.pin = "PLACE"
    drag = begin(rig, "toe.L")
    assert (drag.pins, drag.far_pins) == ({}, ["lamp"])
    assert set(drag.chain) == {"toe.L", "foot.L", "shin.L", "thigh.L"}


def test_eight_pinned_legs_of_a_spider(begin):
    rig = rigs.armature(rigs.spider())
    names = [f"leg{leg}_3.{side}" for leg in range(4) for side in "LR"]
    for name in names:
        rig.pose.bones[name].ccd_rig.pin = "PLACE"
    drag = begin(rig, "body")
    assert set(drag.pins) == set(names)
    with staying(rig, *names):
        pull(drag, (0.1, -0.1, -0.15))


@pytest.mark.parametrize("mode", ["QUATERNION", "ZXY"])
def test_a_control_with_locked_rotation_is_shifted(begin, mode):
    """As poles and targets are locked in many rigs."""
    rig = rigs.armature([B("pole", (0, 0, 1), (0, 0, 1.3)), B("lamp", (1, 0, 0), (1, 0, 1))])
    bone = rig.pose.bones["pole"]
    bone.rotation_mode = mode
    rigs.set_rotation(bone, Quaternion((0.3, 0.5, -0.4), 1.1))
    bone.lock_rotation = (True,) * 3
    drag = begin(rig, "pole")
    pull(drag, (0.3, -0.2, 0.5), near=1e-5)
    assert drag.written() == [(bone, "location")]


def test_several_bones_are_pulled_together(begin):
    rig = biped()
    goals = {name: tail(rig, name) + Vector((0.02, -0.1, 0.1)) for name in ("foot.L", "foot.R")}
    begin(rig, *goals).move((0.02, -0.1, 0.1))
    for name, goal in goals.items():
        assert (tail(rig, name) - goal).length < NEAR


def test_of_selected_bones_in_one_line_the_pressed_one_is_pulled(begin):
    rig = biped()
    drag = begin(rig, "shin.L", "foot.L", "thigh.L")
    pull(drag, (0.0, -0.1, 0.1))
    assert set(drag.chain) == {"shin.L", "thigh.L"}


def test_x_mirror_pulls_the_other_side_as_a_mirror_image(begin):
    rig = biped()
    rig.pose.use_mirror_x = True
    begin(rig, "foot.L").move((0.1, -0.2, 0.15))
    left, right = tail(rig, "foot.L"), tail(rig, "foot.R")
    assert (Vector((-left.x, left.y, left.z)) - right).length < NEAR
    for name in ("thigh", "shin", "foot"):
        a, b = (rig.pose.bones[f"{name}.{side}"].rotation_quaternion for side in "LR")
        assert list(b) == pytest.approx([a.w, a.x, -a.y, -a.z], abs=1e-3)


def test_x_mirror_leaves_a_pinned_bone_of_the_other_side(begin):
    rig = biped()
    rig.pose.use_mirror_x = True
    rig.pose.bones["foot.R"].ccd_rig.pin = "PLACE"
    drag = begin(rig, "foot.L")
    with staying(rig, "foot.R"):
        pull(drag, (0.05, -0.1, 0.1))


@pytest.mark.parametrize("influence", [1.0, 0.5])
@pytest.mark.parametrize("angle", [0.7, 2.0])
def test_the_grabbed_point_stays_on_a_chain_that_limit_rotation_holds(begin, angle, influence):
    """As Blender's own Rotate leaves it: the channel is past the limit, the bone is shown inside."""
    rig = bent(4)
    bone = rig.pose.bones["bone_1"]
    rigs.set_rotation(bone, Quaternion((1.0, 0.0, 0.0), angle))
    limit = bone.constraints.new("LIMIT_ROTATION")
    limit.owner_space, limit.use_limit_x, limit.min_x, limit.max_x = "LOCAL", True, -0.5, 0.5
    limit.influence = influence
    before = bits(rig)
    drag = begin(rig, "bone_3")
    pull(drag, (0.0, 0.1, -0.1))
    assert drag.is_reached()
    drag.move((0.0, 0.0, 0.0))
    assert bits(rig) == before


# Rigs of controls -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def human_file(ext, tmp_path_factory):
    """A file with the rig that Rigify generates from its basic human."""
    bpy.ops.wm.read_homefile(use_empty=True)
    rigs.generated("basic_human").name = "human"
    path = tmp_path_factory.mktemp("human") / "human.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


@pytest.fixture
def human(human_file):
    bpy.ops.wm.open_mainfile(filepath=str(human_file), use_scripts=True)
    rig = bpy.data.objects["human"]
    rigs.update()
    return rig


UPPER_SPINE = "spine_fk.002", "spine_fk.003"
"""Controls of a generated human's spine above its torso control."""


@pytest.mark.parametrize(
    ("pulled", "moved", "channels"),
    [
        ("hand_ik.L", "hand_ik.L", {"location"}),
        ("foot_ik.R", "foot_ik.R", {"location"}),
        ("torso", "torso", {"location"}),
        ("upper_arm_ik_target.L", "upper_arm_ik_target.L", {"location"}),
        ("ORG-forearm.L", "hand_ik.L", {"location"}),
        ("ORG-foot.L", "foot_ik.L", {"location"}),
        ("DEF-hand.L", "hand_tweak.L", {"location"}),
        ("chest", "chest", {"rotation_quaternion"}),
    ],
)
def test_on_a_generated_rig_controls_are_moved(begin, human, pulled, moved, channels):
    """What hangs on a control by constraints is followed to it."""
    drag = begin(human, pulled)
    drag.move((0.03, -0.04, 0.02))
    assert drag.name == moved
    assert {(bone.name, channel) for bone, channel in drag.written()} == {(moved, each) for each in channels}


def test_on_a_generated_rig_a_hand_is_carried_by_its_fk_controls(begin, human):
    human.pose.bones["upper_arm_parent.L"]["IK_FK"] = 1.0
    drag = begin(human, "hand_fk.L")
    assert set(drag.chain) == {"hand_fk.L", "forearm_fk.L", "upper_arm_fk.L"}
    delta = Vector((-0.15, -0.1, 0.0))
    skin = tail(human, "DEF-hand.L") + delta
    pull(drag, delta)
    assert drag.is_reached()
    assert (tail(human, "DEF-hand.L") - skin).length < NEAR
    drag.cancel()
    assert begin(human, "ORG-forearm.L").name == "forearm_fk.L"


@pytest.mark.parametrize("follow", [0.0, 0.3, 1.0])
def test_a_pulled_head_of_a_generated_rig_leans_neck_and_spine(begin, human, follow):
    """Neck and head may keep the torso's rotation, or a part of it: what Blender shows is what was solved."""
    rig = human
    torso = rig.pose.bones["torso"]
    torso["neck_follow"], torso["head_follow"] = follow, 1.0 - follow
    rigs.set_rotation(torso, Quaternion((0.2, 0.1, 0.3), 0.5))
    rigs.set_rotation(rig.pose.bones["chest"], Quaternion((1.0, 0.0, 0.0), 0.4))
    rigs.set_rotation(rig.pose.bones["neck"], Quaternion((0.0, 0.0, 1.0), 0.3))
    rig.matrix_world = Matrix.LocRotScale(Vector((1, -2, 3)), Euler((0.4, 0.2, -0.9)), Vector((2, 2, 2)))
    rig.update_tag()
    before, delta = bits(rig), rig.matrix_world.to_3x3() @ Vector((0.05, 0.05, -0.1))
    goal, skin = tail(rig, "head") + delta, tail(rig, "DEF-spine.006") + delta
    drag = begin(rig, "head")
    assert drag.chain == (*UPPER_SPINE, "neck", "head")
    drag.move(delta)
    assert drag.is_reached()
    assert (tail(rig, "head") - goal).length < NEAR
    assert (tail(rig, "DEF-spine.006") - skin).length < NEAR
    assert min(turned(rig, UPPER_SPINE).values()) > 2.0
    drag.lengthen(drag.turning + 1, delta)
    assert "torso" in drag.chain
    assert (tail(rig, "head") - goal).length < NEAR
    drag.move((0.0, 0.0, 0.0))
    assert bits(rig) == before


def test_mechanisms_between_controls_of_any_rig_are_gone_through(begin):
    """Two copy rotations, of a bone below and of one aside; one copies the channels of a further control."""
    names = ("a", "b", "c", "d")
    bones = [B("root", (0, 0, 0), (0, 0, 0.5))]
    for k, name in enumerate(names):
        place = (0, 0, 0.5 + k), (0, 0, 1.5 + k)
        bones += [B(f"M{name}", *place, f"{names[k - 1]}" if k else "root"), B(name, *place, f"M{name}")]
    rig = rigs.armature([*bones, B("aside", (1, 0, 0), (1, 0.5, 0.5)), B("whole", (2, 0, 0), (2, 0, 1))])
    for name in names:
        rigs.set_rotation(rig.pose.bones[name], Quaternion((1.0, 0.0, 0.0), 0.2))
        rig.pose.bones[f"M{name}"].lock_rotation = (True,) * 3
    for name, kind, source, influence, space in (
        ("Mb", "COPY_ROTATION", "a", 0.6, "WORLD"),
        ("Mc", "COPY_ROTATION", "aside", 0.5, "POSE"),
        ("Md", "COPY_TRANSFORMS", "whole", 0.5, "LOCAL"),
    ):
        made = rig.pose.bones[name].constraints.new(kind)
        made.target, made.subtarget, made.influence = rig, source, influence
        made.owner_space = made.target_space = space
    rigs.set_rotation(rig.pose.bones["whole"], Quaternion((0.3, 1.0, 0.2), 0.6))
    drag = begin(rig, "d", turning=4)
    assert drag.chain == names
    pull(drag, (0.3, 0.3, -0.4))
    assert drag.is_reached()


def test_a_chain_ends_at_a_mechanism_that_follows_another_pulled_chain(begin):
    """Alone, the left leg takes its thigh along, and the shin keeps what it copies."""
    rig = biped()
    made = rig.pose.bones["shin.L"].constraints.new("COPY_ROTATION")
    made.target, made.subtarget, made.influence = rig, "shin.R", 0.5
    made.owner_space = made.target_space = "LOCAL"
    assert set(begin(rig, "foot.L").chain) == {"foot.L", "thigh.L"}
    delta = Vector((0.0, -0.02, 0.02))
    goals = {name: tail(rig, name) + delta for name in ("foot.L", "foot.R")}
    drag = begin(rig, *goals)
    drag.move(delta)
    assert set(drag.chain) == {"foot.L", "foot.R", "shin.R", "thigh.R"}
    assert (tail(rig, "foot.R") - goals["foot.R"]).length < NEAR
    assert not drag.is_reached()


def test_a_pin_behind_a_mechanism_that_the_pulled_bone_turns_is_named(begin, human):
    rig = with_feet_pinned(human, ("upper_arm_parent.R",))
    rig.pose.bones["hand_fk.R"].ccd_rig.pin = "PLACE"
    assert begin(rig, "head").far_pins == []
    assert begin(rig, "chest").far_pins == ["hand_fk.R"]


def test_bones_that_child_of_carries_are_moved_in_its_frame(begin):
    """Hips carried by an object, alone and with pins; with influence in part, what they follow is moved."""
    carrier = rigs.empty("Carrier", (1.0, 2.0, 3.0))
    carrier.rotation_euler = (0.3, 0.5, 1.2)
    rig = biped()
    rig.matrix_world = Matrix.LocRotScale(Vector((0, 1, 0)), Euler((0.2, 0.1, 0.4)), None)
    made = rig.pose.bones["hips"].constraints.new("CHILD_OF")
    made.target = carrier
    rigs.update()
    before = bits(rig)
    drag = begin(rig, "hips")
    pull(drag, (0.0, -0.05, 0.1))
    assert drag.written() == [(rig.pose.bones["hips"], "location")]
    drag.move((0.0, 0.0, 0.0))
    assert bits(rig) == before
    rig.pose.bones["foot.L"].ccd_rig.pin = "PLACE"
    drag = begin(rig, "head")
    with staying(rig, "foot.L"):
        pull(drag, (0.05, -0.1, -0.2))
    assert drag.body == "hips"


def test_an_ik_control_that_child_of_carries_is_moved_and_not_what_carries_it(begin):
    bones = [B("hips", (0, 0, 1), (0, 0, 1.2)), B("up", (0, 0, 1.2), (0.5, 0.1, 1.2), "hips")]
    bones += [B("low", (0.5, 0.1, 1.2), (1, 0, 1.2), "up"), B("hand", (1, 0, 1.2), (1.2, 0, 1.2))]
    rig = rigs.armature(bones)
    reach = rig.pose.bones["low"].constraints.new("IK")
    reach.target, reach.subtarget, reach.chain_count = rig, "hand", 2
    made = rig.pose.bones["hand"].constraints.new("CHILD_OF")
    made.target, made.subtarget = rig, "hips"
    rigs.set_rotation(rig.pose.bones["hips"], Quaternion((0.2, 0.3, 1.0), 0.7))
    rig.pose.bones["hand"].location = (0.05, 0.02, 0.03)
    drag = begin(rig, "low")
    assert drag.name == "hand"
    drag.cancel()
    pull(begin(rig, "hand"), (-0.1, -0.1, 0.1))
    made.influence = 0.5
    assert begin(rig, "hand").name == "hips"


def test_what_copies_a_heel_leads_to_the_foot_that_carries_it(begin):
    rig = rigs.armature(
        [
            B("thigh", (0, 0, 2), (0, -0.1, 1)),
            B("shin", (0, -0.1, 1), (0, 0, 0), "thigh"),
            B("foot", (0, 0, 0), (0, -0.3, 0)),
            B("heel", (0, 0, 0), (0, 0.2, 0), "foot"),
            B("target", (0, 0, 0), (0, 0, 0.2), "heel"),
            B("instep", (0, 0, 0), (0, 0.2, 0)),
        ]
    )
    rig.pose.bones["heel"].lock_location = (True,) * 3
    for name, kind, source in (("shin", "IK", "target"), ("instep", "COPY_TRANSFORMS", "heel")):
        made = rig.pose.bones[name].constraints.new(kind)
        made.target, made.subtarget = rig, source
    assert begin(rig, "instep").name == "foot"
    assert begin(rig, "heel").name == "heel"


def test_a_pulled_tweak_leaves_the_body_where_pins_are(begin, human):
    rig = with_feet_pinned(human)
    drag = begin(rig, "tweak_spine.003")
    drag.move((0.05, -0.05, 0.0))
    assert [(bone.name, channel) for bone, channel in drag.written()] == [("tweak_spine.003", "location")]


def test_a_chain_ends_at_a_mechanism_that_would_take_part(begin):
    """Copied channels of a bone in the chain, and a copied rotation whose bone has a limit."""
    rig = bent(4)
    made = rig.pose.bones["bone_2"].constraints.new("COPY_ROTATION")
    made.target, made.subtarget, made.owner_space, made.target_space = rig, "bone_1", "LOCAL", "LOCAL"
    assert begin(rig, "bone_3").most == 1
    made.owner_space = made.target_space = "WORLD"
    rig.pose.bones["bone_3"].ccd_rig.limit.kind = "CONE"
    assert begin(rig, "bone_3").most == 1


def test_a_bone_that_follows_several_is_refused_with_their_names(errors, begin, human):
    before = bits(human)
    with pytest.raises(errors.RigError, match=r"forearm_tweak.*forearm_tweak"):
        begin(human, "DEF-forearm.L")
    assert bits(human) == before


def with_feet_pinned(rig, fk=()):
    """The rig with standing feet pinned, and limbs of these names moved by FK."""
    rig.ccd_rig.pin_feet = True
    for name in fk:
        rig.pose.bones[name]["IK_FK"] = 1.0
    rig.update_tag()
    rigs.update()
    return rig


@pytest.mark.parametrize(
    ("pulled", "fk", "moved"),
    [
        ("hand_ik.L", (), {"torso", *UPPER_SPINE, "hand_ik.L"}),
        (
            "hand_fk.L",
            ("upper_arm_parent.L",),
            {"torso", *UPPER_SPINE, "upper_arm_fk.L", "forearm_fk.L", "hand_fk.L"},
        ),
        ("chest", (), {"torso", "chest"}),
        ("head", (), {"torso", *UPPER_SPINE, "neck", "head"}),
    ],
)
def test_pins_take_the_body_of_a_generated_rig_along(begin, human, pulled, fk, moved):
    """Past the arm's reach: torso and spine follow, no leg is stretched, IK limbs reach their controls."""
    rig = with_feet_pinned(human, fk)
    before = bits(rig)
    feet = {name: head(rig, name) for name in ("ORG-foot.L", "ORG-foot.R")}
    thigh = (head(rig, "ORG-shin.L") - head(rig, "ORG-thigh.L")).length
    drag = begin(rig, pulled)
    assert drag.pins == {"ORG-foot.L": True, "ORG-foot.R": True} and drag.far_pins == []
    assert drag.body == "torso"
    delta = Vector((0.2, -0.25, -0.35))
    pull(drag, delta)
    assert {bone.name for bone, _ in drag.written()} == moved
    assert drag.is_reached()
    if not fk:
        assert (head(rig, "ORG-hand.L") - head(rig, "hand_ik.L")).length < NEAR
    for name, place in feet.items():
        assert (head(rig, name) - place).length < PINNED
    assert (head(rig, "ORG-shin.L") - head(rig, "ORG-thigh.L")).length < thigh + 1e-3
    there = bits(rig)
    drag.move((0.5, 0.3, 0.2))
    drag.move(delta)
    assert bits(rig) == there
    drag.move((0.0, 0.0, 0.0))
    assert bits(rig) == before


def test_a_small_pull_of_a_hand_is_the_arms(begin, human):
    """The body counts by its weight."""
    rig = with_feet_pinned(human)
    drag = begin(rig, "hand_ik.L")
    drag.move((-0.05, -0.05, -0.05))
    rigs.update()
    assert rig.pose.bones["torso"].location.length < 0.03


def test_a_generated_body_goes_no_farther_than_pinned_legs_reach(begin, human):
    rig = with_feet_pinned(human)
    place = head(rig, "ORG-foot.L")
    start = tail(rig, "torso")
    drag = begin(rig, "torso")
    drag.move((0.0, 0.0, 0.4))
    assert not drag.is_reached()
    assert (tail(rig, "torso") - start).length < 0.1
    assert rig.pose.bones["torso"].rotation_quaternion.angle < 0.02
    assert (head(rig, "ORG-foot.L") - place).length < PINNED


def test_feet_of_a_generated_rig_that_stand_by_fk_are_pinned_too(begin, human):
    rig = with_feet_pinned(human, ("thigh_parent.L", "thigh_parent.R", "upper_arm_parent.L"))
    feet = {name: (head(rig, name), tail(rig, name)) for name in ("ORG-foot.L", "ORG-foot.R")}
    drag = begin(rig, "hand_fk.L")
    drag.move((0.1, -0.2, -0.3))
    rigs.update()
    assert rig.pose.bones["torso"].location.length > 0.05
    for name, places in feet.items():
        assert (head(rig, name) - places[0]).length < PINNED
        assert (tail(rig, name) - places[1]).length < PINNED


def test_a_shorter_chain_leaves_the_body_of_a_generated_rig(begin, human):
    drag = begin(with_feet_pinned(human), "hand_ik.L")
    assert (drag.turning, drag.most) == (2, 2)
    drag.move((0.3, 0.0, 0.0))
    assert drag.lengthen(1, (0.3, 0.0, 0.0))
    assert {bone.name for bone, _ in drag.written()} == {"hand_ik.L"}


def test_a_pulled_foot_is_free_and_a_hand_that_hangs_on_the_torso_is_no_pin(begin, human):
    rig = with_feet_pinned(human)
    rig.pose.bones["hand_ik.R"].ccd_rig.pin = "PLACE"
    rig.pose.bones["upper_arm_parent.R"]["IK_parent"] = 2  # the torso
    rig.update_tag()
    drag = begin(rig, "foot_ik.L")
    assert drag.pins == {"ORG-foot.R": True} and drag.far_pins == ["hand_ik.R"]
    drag.move((0.0, -0.2, 0.2))
    rigs.update()
    assert {bone.name for bone, _ in drag.written()} == {"torso", "spine_fk", "spine_fk.001", "foot_ik.L"}


@pytest.mark.parametrize("kind", ["basic_quadruped", pytest.param("wolf", marks=pytest.mark.mass)])
def test_paws_of_a_generated_beast_stay_where_the_body_is_pulled(begin, kind):
    """Legs of three bones: one IK constraint hangs on another, and a control turns the heel."""
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = with_feet_pinned(rigs.generated(kind))
    paws = {name: head(rig, name) for name in ("ORG-toe.L", "ORG-toe.R", "ORG-front_toe.L")}
    start = tail(rig, "torso")
    drag = begin(rig, "torso")
    assert drag.far_pins == [] and len(drag.pins) == 4
    drag.move((0.0, 0.0, 0.4))
    assert not drag.is_reached()
    assert (tail(rig, "torso") - start).length < 0.15
    for name, place in paws.items():
        assert (head(rig, name) - place).length < PINNED


@pytest.mark.parametrize(
    ("by_fk", "pulled", "side", "most"),
    [
        (("upper_arm_parent.L",), "hand_fk.L", 0.3, 0.007),
        (("upper_arm_parent.L", "thigh_parent.L", "thigh_parent.R"), "hand_fk.L", 0.3, 0.007),
        ((), "hand_ik.L", 0.8, 0.02),  # beyond reach: Blender's IK would stretch the arm
    ],
)
def test_balance_holds_where_constraints_hang_limbs_on_the_body(ext, begin, human, by_fk, pulled, side, most):
    """Limbs by IK or FK. The centre is that of the bones that deform, as Blender shows them."""
    rig, armature = with_feet_pinned(human, by_fk), ext.module("ccd_rig.blender.rig.armature")
    lengths = armature.mass_lengths(rig.data)

    def centre():
        rigs.update()
        evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
        shares = [length * armature.mass_middle(evaluated[name]) for name, length in lengths.items()]
        return sum(shares, Vector()) / sum(lengths.values())

    def moved(balance):
        rig.ccd_rig.keep_balance = balance
        drag = begin(rig, pulled)
        drag.move((side, 0.0, 0.0))
        place = centre()
        drag.cancel()
        rigs.update()
        return drag, place

    drag, kept = moved(True)
    support = drag._support()
    off = (support.nearest(kept) - kept).length
    _, free = moved(False)
    assert off < most and (support.nearest(free) - free).length > 0.01, (off, kept, free)


# Refused --------------------------------------------------------------------------------------------


def lock(rig):
    for bone in rig.pose.bones:
        bone.lock_rotation, bone.lock_location = (True,) * 3, (True,) * 3


def follow(rig, **fields):
    made = rig.pose.bones["bone_2"].constraints.new("COPY_TRANSFORMS")
    made.target = rigs.empty("Goal")
    rigs.activate(rig)


def lock_in_part(rig):
    rig.pose.bones["bone_1"].lock_rotation = (True, False, False)


def scale(rig, value):
    rig.pose.bones["bone_1"].scale = value


def drive(rig):
    for bone in rig.pose.bones:
        for curve in bone.driver_add("rotation_quaternion"):
            curve.driver.expression = "1.0"
        bone.lock_location = (True,) * 3


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lock, "'bone_2' is locked"),
        (drive, "'bone_2' is locked"),
        (follow, "'bone_2' is placed by Blender's constraint 'Copy Transforms'.*'Goal'"),
        (lock_in_part, "'bone_1' has rotation locked on X"),
        (lambda rig: scale(rig, (0.0, 0.0, 0.0)), "zero scale"),
        (lambda rig: scale(rig, (1.0, -1.0, 1.0)), "'bone_1' is mirrored"),
        (lambda rig: scale(rig, (1.0, 3.0, 1.0)), "'bone_2' inherits non-uniform scale"),
        (lambda rig: setattr(rig, "scale", (0.0, 1.0, 1.0)), "zero scale"),
        (lambda rig: setattr(rig.pose.bones["bone_1"], "rotation_quaternion", (math.nan,) * 4), "'bone_1'"),
    ],
)
def test_what_cannot_be_dragged_is_refused_by_name_and_nothing_changes(errors, begin, spoil, words):
    rig = rigs.chain(3)
    spoil(rig)
    rigs.update()
    before = bits(rig)
    with pytest.raises(errors.CCDRigError, match=words):
        begin(rig, "bone_2")
    assert bits(rig) == before


def test_a_bone_that_live_poses_is_refused(errors, begin):
    rig = rigs.chain(3)
    target = rigs.empty("Goal", (1.0, 0.5, 1.5))
    rigs.activate(rig)
    rigs.reach(rig, "bone_2", target)
    rigs.update()
    assert bpy.ops.ccd_rig.live() == {"FINISHED"}
    rigs.update()
    with pytest.raises(errors.RigError, match="Live poses bone 'bone_2'"):
        begin(rig, "bone_2")
    bpy.ops.ccd_rig.live()


def test_no_number_is_refused_and_the_pose_stays(errors, begin):
    rig = bent()
    drag = begin(rig, "bone_4")
    drag.move((0.1, 0.1, 0.0))
    before = bits(rig)
    with pytest.raises(errors.InvalidInput, match=r"'bone_4'.*finite"):
        drag.move((math.nan, 0.0, 0.0))
    assert bits(rig) == before


def test_a_linked_armature_is_refused(errors, begin, tmp_path):
    rig = linked(rigs.chain(3), tmp_path)
    rigs.update()
    with pytest.raises(errors.RigError, match="linked from a library"):
        begin(rig, "bone_2")


# The command ----------------------------------------------------------------------------------------


def test_the_command_pulls_the_selected_bones(ext):
    rig = bent(3)
    select(ext, rig, "bone_2")
    goal = tail(rig, "bone_2") + Vector((0.2, 0.3, -0.4))
    assert bpy.ops.ccd_rig.drag(value=(0.2, 0.3, -0.4)) == {"FINISHED"}
    assert (tail(rig, "bone_2") - goal).length < NEAR
    assert rig.animation_data is None
    bone = rig.pose.bones["bone_0"].rotation_quaternion.copy()
    assert bpy.ops.ccd_rig.drag(value=(0.1, 0.0, 0.0), turning=2) == {"FINISHED"}
    assert rig.pose.bones["bone_0"].rotation_quaternion == bone


@pytest.fixture
def auto_keying():
    """Tool settings with auto keying on."""
    tools = bpy.context.scene.tool_settings
    bpy.context.preferences.edit.use_keyframe_insert_available = False
    tools.use_keyframe_insert_auto = True
    yield tools
    tools.use_keyframe_insert_auto = tools.use_keyframe_insert_keyingset = False


@pytest.mark.parametrize("keying_set", [False, True])
def test_auto_keying_keys_what_was_moved(ext, channels, auto_keying, keying_set):
    """As the active keying set asks, also for bones that are not selected, and for no others."""
    rig = bent(3)
    select(ext, rig, "bone_2")
    auto_keying.use_keyframe_insert_keyingset = keying_set
    sets = bpy.context.scene.keying_sets_all
    sets.active = next(each for each in sets if each.bl_idname == "BUILTIN_KSI_LocRot")
    assert bpy.ops.ccd_rig.drag(value=(0.2, 0.3, -0.4), turning=2) == {"FINISHED"}
    keyed = {curve.data_path for curve in channels.fcurves_of(rig)}
    names = ("location", "rotation_quaternion") if keying_set else ("rotation_quaternion",)
    assert keyed == {f'pose.bones["bone_{i}"].{name}' for i in (1, 2) for name in names}


def test_a_pull_to_nowhere_keys_nothing(ext, auto_keying):
    rig = bent(3)
    select(ext, rig, "bone_2")
    assert bpy.ops.ccd_rig.drag(value=(0.0, 0.0, 0.0)) == {"FINISHED"}
    assert rig.animation_data is None


def test_redo_pulls_the_bones_of_the_call_whatever_is_selected(ext):
    rig = bent(3)
    select(ext, rig, "bone_2")
    goal = tail(rig, "bone_1") + Vector((0.1, 0.2, -0.1))
    assert bpy.ops.ccd_rig.drag(value=(0.1, 0.2, -0.1), names="bone_1") == {"FINISHED"}
    assert (tail(rig, "bone_1") - goal).length < NEAR
    fails(bpy.ops.ccd_rig.drag, "has no bone 'gone'", value=(0.1, 0.0, 0.0), names="bone_1\ngone")


def test_names_with_line_breaks_are_pulled_and_told_in_one_line(ext):
    rig = bent(3)
    rig.pose.bones["bone_2"].name = "the\nend"
    rig.pose.bones["bone_1"].lock_rotation = (True,) * 3
    select(ext, rig, "the\nend")
    goal = tail(rig, "the\nend") + Vector((0.1, 0.2, -0.1))
    assert bpy.ops.ccd_rig.drag(value=(0.1, 0.2, -0.1), turning=3) == {"FINISHED"}
    assert (tail(rig, "the\nend") - goal).length < NEAR
    names = ext.module("ccd_rig.blender.properties.names")
    assert names.named(["the\nend"]) == r"'the\nend'"


def test_without_a_selected_bone_the_command_says_so(ext):
    rig = bent(3)
    select(ext, rig)
    before = bits(rig)
    fails(bpy.ops.ccd_rig.drag, "There is no bone to drag", value=(0.1, 0.0, 0.0))
    assert bits(rig) == before


def test_pins_of_all_armatures_in_pose_mode(ext, channels):
    other, rig = rigs.chain(2, name="Other"), bent(3)
    rigs.activate(rig)
    other.select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    select(ext, rig, "bone_2")
    channels.select_bone(other.pose.bones["bone_1"], True)
    assert bpy.ops.ccd_rig.pin() == {"FINISHED"}
    assert other.pose.bones["bone_1"].ccd_rig.pin == rig.pose.bones["bone_2"].ccd_rig.pin == "PLACE"


def test_pins_go_round_place_rotation_free_and_are_kept_in_the_file(ext, tmp_path):
    rig = bent(3)
    select(ext, rig, "bone_1", "bone_2")
    kinds = []
    for _ in range(4):
        assert bpy.ops.ccd_rig.pin() == {"FINISHED"}
        kinds.append([bone.ccd_rig.pin for bone in rig.pose.bones])
    assert kinds == [["NONE", each, each] for each in ("PLACE", "ROTATION", "NONE", "PLACE")]
    path = tmp_path / "pins.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))
    rig = bpy.data.objects["Rig"]
    assert [bone.ccd_rig.pin for bone in rig.pose.bones] == ["NONE", "PLACE", "PLACE"]
    assert bpy.ops.ccd_rig.pins_clear() == {"FINISHED"}
    assert not any(bone.ccd_rig.is_property_set("pin") for bone in rig.pose.bones)


def test_looking_for_pins_makes_no_settings(ext):
    """The overlay looks at each redraw: bones without settings get none."""
    rig = bent(3)
    rig.pose.bones["bone_1"].ccd_rig.pin = "PLACE"
    assert ext.module("ccd_rig.blender.drag.session").pins_of(rig) == {"bone_1": False}
    ext.module("ccd_rig.blender.properties.joints").masses(rig)
    assert [bone.is_property_set("ccd_rig") for bone in rig.pose.bones] == [False, True, False]


def test_pins_are_drawn(ext):
    rig = bent(3)
    sketch = ext.module("ccd_rig.blender.viewport.sketch").Sketch()
    draw = ext.module("ccd_rig.blender.viewport.sketch").sketch_pins
    pins_of = ext.module("ccd_rig.blender.drag.session").pins_of
    draw(sketch, rig, pins_of(rig))
    assert not sketch.lines
    assert not sketch.faces
    rig.pose.bones["bone_1"].ccd_rig.pin = "PLACE"
    rigs.update()
    draw(sketch, rig, pins_of(rig))
    place_alone = sum(map(len, sketch.lines.values()))
    points = [point for each in sketch.lines.values() for point in each]
    assert max((point - tail(rig, "bone_1")).length for point in points) < 0.2
    rig.pose.bones["bone_1"].ccd_rig.pin = "ROTATION"
    draw(sketch, rig, pins_of(rig))
    assert sum(map(len, sketch.lines.values())) > 2 * place_alone


def imported_arm():
    """An arm with tails along an axis that means nothing, as importers of glTF make them."""
    heads = {
        "base": (0.0, 0.0, 0.0),
        "upper": (0.0, 0.0, 1.0),
        "lower": (1.0, 0.1, 1.0),
        "wrist": (2.0, 0.0, 1.0),
        "finger": (2.4, 0.0, 1.0),
    }
    rig = rigs.armature(
        [
            B(name, at, (at[0], at[1], at[2] + 0.5), parent)
            for (name, at), parent in zip(heads.items(), ("", *heads), strict=False)
        ]
    )
    rig.matrix_world = Matrix.LocRotScale(Vector((1, -2, 3)), Euler((0.0, 0.0, -0.9)), Vector((2, 2, 2)))
    return rig


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_a_pin_holds_a_bone_where_its_limb_goes_on_if_tails_say_nothing(ext, begin, scale):
    """It held, and was drawn at, the end of a tail that stood up from the hand."""
    rig = imported_arm()
    rig.pose.bones["wrist"].ccd_rig.pin = "PLACE"
    rig.pose.bones["wrist"].scale = (scale,) * 3
    place = head(rig, "finger")
    sketch = ext.module("ccd_rig.blender.viewport.sketch").Sketch()
    ext.module("ccd_rig.blender.viewport.sketch").sketch_pins(sketch, rig, {"wrist": False})
    points = [point for each in sketch.lines.values() for point in each]
    assert max((point - place).length for point in points) < 0.2 * scale
    drag = begin(rig, "lower")
    drag.move((0.2, 0.3, -0.4))
    assert (head(rig, "finger") - place).length < PINNED
    assert (tail(rig, "wrist") - place).length > 0.5


# The pointer ----------------------------------------------------------------------------------------


@pytest.fixture
def pointer(ext):
    return ext.module("ccd_rig.blender.viewport.pointer")


FORWARD = Vector((0.0, 1.0, 0.0))


def eye(pointer, x, z):
    """A ray of a view from (0, -10, 0) along Y through a place in the plane y = 0."""
    origin = Vector((0.0, -10.0, 0.0))
    return pointer.Ray(origin, (Vector((x, 0.0, z)) - origin).normalized())


def test_the_grabbed_depth_is_kept(pointer):
    place = Vector((0.0, 10.0, 0.0))  # twice as far from the eye as the plane y = 0
    rays = eye(pointer, 0.0, 0.0), eye(pointer, 1.0, 0.5)
    assert list(pointer.motion(place, rays, FORWARD, None)) == pytest.approx([2.0, 0.0, 1.0], abs=1e-5)


def test_axes_and_planes_bind_the_motion(pointer):
    rays = eye(pointer, 0.0, 0.0), eye(pointer, 1.0, 0.5)

    def along(names, matrix=None):
        axes = pointer.Axes(matrix or Matrix.Identity(3), names)
        return list(pointer.motion(Vector(), rays, FORWARD, axes))

    assert along("X") == pytest.approx([1.0, 0.0, 0.0], abs=0.01)
    assert along("Z") == pytest.approx([0.0, 0.0, 0.5], abs=0.01)
    assert along("XZ") == pytest.approx([1.0, 0.0, 0.5], abs=1e-5)
    assert along("Y") == pytest.approx([0.0, 0.0, 0.0], abs=1e-5)  # along the view: nothing to be seen
    turned = Matrix.Rotation(math.radians(45.0), 3, "Y")
    x, y, z = along("X", turned)
    assert (y, z) == pytest.approx((0.0, -x), abs=1e-5)


def test_steps_are_whole_along_the_axes(pointer):
    assert list(pointer.stepped(Vector((0.94, 0.26, -0.6)), 0.5, None)) == pytest.approx([1.0, 0.5, -0.5])
    axes = pointer.Axes(Matrix.Rotation(math.radians(90.0), 3, "Z"), "X")
    assert list(pointer.stepped(Vector((0.0, 0.8, 0.0)), 0.5, axes)) == pytest.approx([0, 1, 0], abs=1e-6)


def test_the_place_on_a_bone_is_the_nearest_to_the_pointer(pointer):
    head, end = Vector((-1.0, 0.0, 0.0)), Vector((3.0, 0.0, 0.0))
    assert pointer.place_on(head, end, eye(pointer, 0.0, 0.0)) == pytest.approx(0.25)
    assert pointer.place_on(head, end, eye(pointer, 9.0, 0.0)) == 1.0
    assert pointer.place_on(head, end, eye(pointer, -9.0, 0.0)) == 0.0
    assert pointer.place_on(head, head, eye(pointer, 0.0, 0.0)) == 0.0
