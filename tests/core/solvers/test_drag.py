"""Drag: path independent, inside limits, pins first."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest
from chains import FLOAT32, Z, random_limit, straight, tip
from mathutils import Quaternion, Vector

from ccd_rig import (
    Comfort,
    Cone,
    Drag,
    Grab,
    Hinge,
    InvalidInput,
    Joint,
    Pin,
    Pose,
    Skeleton,
    Slide,
    Solver,
    SolverSettings,
    SolveStatus,
    Support,
    SwingTwist,
    drag,
    forward_kinematics,
)
from ccd_rig.limits.shapes import clamp, violation

NEAR = 1e-4
"""How near pulled tails get, in lengths of one bone: a few times single precision on chains of ten."""


def tail(skeleton, pose, name):
    i = skeleton.index(name)
    return forward_kinematics(skeleton, pose)[i].point(Vector((0.0, skeleton.joints[i].length, 0.0)))


def bent(skeleton, angle=0.2):
    """Every joint turned by so much about Z."""
    rest = Pose.rest(skeleton)
    return Pose((Quaternion(Z, angle),) * len(skeleton), rest.translations)


def bits(pose):
    return [q[:] for q in pose.rotations], [t[:] for t in pose.translations]


def star(legs, bones=3):
    """A body that slides freely, with legs of equal bones that point outwards and down."""
    free = tuple(Slide(tuple(float(i == k) for i in range(3)), -50.0, 50.0) for k in range(3))
    joints = [Joint("body", -1, (0.0, 0.0, 2.0), length=0.5, slides=free)]
    for leg in range(legs):
        out = Quaternion(Z, 2.0 * math.pi * leg / legs)
        down = out @ Quaternion((1.0, 0.0, 0.0), -0.5)
        joints.append(Joint(f"leg{leg}.0", 0, out @ Vector((0.0, 0.3, 0.0)), down, 1.0))
        for bone in range(1, bones):
            bend = Quaternion((1.0, 0.0, 0.0), -0.5)
            joints.append(Joint(f"leg{leg}.{bone}", len(joints) - 1, (0.0, 1.0, 0.0), bend, 1.0))
    return Skeleton(joints)


def test_a_pull_in_reach_gets_there():
    skeleton = straight(5)
    pose = bent(skeleton)
    point = tail(skeleton, pose, tip(skeleton)) + Vector((0.5, -0.8, 0.6))
    result = drag(skeleton, pose, {tip(skeleton): point})
    assert result.status is SolveStatus.CONVERGED
    assert (tail(skeleton, result.pose, tip(skeleton)) - point).length < NEAR


def test_where_the_pointer_came_from_makes_no_difference():
    """A way out and back, over places that are out of reach, against each place alone."""
    rng = random.Random(5)
    skeleton = straight(6, SwingTwist(Cone(0.9), (-0.5, 0.5)))
    pose = bent(skeleton)
    going = Drag(skeleton, pose, [Grab(tip(skeleton))])
    places = [going.starts[0] + Vector([rng.uniform(-5.0, 5.0) for _ in range(3)]) for _ in range(25)]
    there = [bits(going.to([place]).pose) for place in places]
    back = [bits(going.to([place]).pose) for place in reversed(places)]
    assert there == back[::-1]
    alone = [bits(Drag(skeleton, pose, [Grab(tip(skeleton))]).to([place]).pose) for place in places]
    assert there == alone


@pytest.mark.parametrize("limit", [None, Hinge((1.0, 0.0, 0.0), 0.5, 1.0)])
def test_back_at_the_start_it_is_the_start_to_the_bit(limit):
    """Also where the pose at the press is outside a limit."""
    skeleton = straight(4, limit)
    pose = bent(skeleton, 0.3)
    going = Drag(skeleton, pose, [Grab(tip(skeleton)), Grab("joint1")], [Pin("joint0")])
    away = going.to([going.starts[0] + Vector((0.4, -0.4, 0.3)), going.starts[1]])
    assert bits(away.pose) != bits(pose)
    again = going.to(going.starts)
    assert bits(again.pose) == bits(pose)
    assert again.status is SolveStatus.CONVERGED


def test_a_small_pull_is_a_small_change():
    """Nothing jumps where the pull begins, and less of a pull turns joints less."""
    skeleton = straight(6)
    pose = bent(skeleton)
    going = Drag(skeleton, pose, [Grab(tip(skeleton))])
    turns = []
    for size in (0.001, 0.01, 0.1):
        found = going.to([going.starts[0] + size * Vector((1.0, 1.0, 1.0))]).pose
        pairs = zip(found.rotations, pose.rotations, strict=True)
        turns.append(max(abs(2.0 * math.acos(min(1.0, abs(a.dot(b))))) for a, b in pairs))
    # The chain is about five units long: a pull by s turns joints by a small multiple of s / 5.
    assert all(turn < 3.0 * size for turn, size in zip(turns, (0.001, 0.01, 0.1), strict=True))
    assert turns == sorted(turns)


@pytest.mark.parametrize("seed", range(8))
def test_limits_are_never_broken(seed):
    rng = random.Random(seed)
    joints = [
        Joint(f"joint{i}", i - 1, (0.0, 1.0 if i else 0.0, 0.0), limit=random_limit(rng)) for i in range(7)
    ]
    skeleton = Skeleton(joints)
    rotations = [
        Quaternion() if each.limit is None else clamp(each.limit, Quaternion()) for each in skeleton.joints
    ]
    pose = Pose(tuple(rotations), Pose.rest(skeleton).translations)
    going = Drag(skeleton, pose, [Grab("joint6"), Grab("joint3")], [Pin("joint1", rotation=seed % 2 == 0)])
    for _ in range(6):
        pulls = [start + Vector([rng.uniform(-4.0, 4.0) for _ in range(3)]) for start in going.starts]
        result = going.to(pulls)
        for joint, rotation in zip(skeleton.joints, result.pose.rotations, strict=True):
            assert joint.limit is None or violation(joint.limit, rotation) <= FLOAT32, joint.name


def test_several_bones_are_pulled_together():
    skeleton = star(4)
    pose = Pose.rest(skeleton)
    names = ("leg0.2", "leg2.2")
    shift = Vector((0.2, 0.3, 0.4))
    points = {name: tail(skeleton, pose, name) + shift for name in names}
    result = drag(skeleton, pose, points)
    assert result.status is SolveStatus.CONVERGED
    for name, point in points.items():
        assert (tail(skeleton, result.pose, name) - point).length < NEAR


def test_a_chain_length_keeps_joints_further_up_to_the_bit():
    skeleton = straight(8)
    pose = bent(skeleton)
    going = Drag(skeleton, pose, [Grab(tip(skeleton), chain_length=3)])
    result = going.to([going.starts[0] + Vector((0.5, 0.2, 0.3))])
    assert result.pose.rotations[:5] == pose.rotations[:5]
    assert result.pose.rotations[5:] != pose.rotations[5:]
    assert going.movable == (5, 6, 7)


def test_pinned_tails_stay_while_the_body_is_pulled():
    """Eight pins: the body goes where it is pulled, the legs bend."""
    skeleton = star(8)
    pose = Pose.rest(skeleton)
    pins = [Pin(f"leg{leg}.2") for leg in range(8)]
    point = tail(skeleton, pose, "body") + Vector((0.3, 0.2, -0.4))
    result = drag(skeleton, pose, {"body": point}, pins)
    assert result.status is SolveStatus.CONVERGED
    assert (tail(skeleton, result.pose, "body") - point).length < NEAR
    for pin in pins:
        moved = tail(skeleton, result.pose, pin.joint) - tail(skeleton, pose, pin.joint)
        assert moved.length < NEAR, pin.joint


def test_a_pin_of_rotation_holds_the_rotation_too():
    skeleton = star(3)
    pose = Pose.rest(skeleton)
    point = tail(skeleton, pose, "body") + Vector((0.0, 0.1, -0.3))
    foot = skeleton.index("leg0.2")
    before = forward_kinematics(skeleton, pose)[foot].rotation

    def turned(rotation):
        pins = [Pin("leg0.2", rotation), Pin("leg1.2"), Pin("leg2.2")]
        result = drag(skeleton, pose, {"body": point}, pins)
        assert result.status is SolveStatus.CONVERGED
        return before.rotation_difference(forward_kinematics(skeleton, result.pose)[foot].rotation).angle

    assert turned(True) < 1.1e-3  # the tolerance of angles
    assert turned(False) > 0.05


def test_a_pull_out_of_reach_gives_way_to_the_pins():
    skeleton = star(4)
    pose = Pose.rest(skeleton)
    pins = [Pin(f"leg{leg}.2") for leg in range(1, 4)]
    start = tail(skeleton, pose, "leg0.2")
    result = drag(skeleton, pose, {"leg0.2": start + Vector((0.0, 30.0, 0.0))}, pins)
    assert result.status is not SolveStatus.CONVERGED
    for pin in pins:
        moved = tail(skeleton, result.pose, pin.joint) - tail(skeleton, pose, pin.joint)
        assert moved.length < 2e-3, pin.joint
    assert tail(skeleton, result.pose, "leg0.2").y > start.y + 1.0


def test_a_point_out_of_reach_is_come_as_near_to_as_bones_are_long():
    skeleton = straight(3)
    pose = bent(skeleton, 0.4)
    result = drag(skeleton, pose, {tip(skeleton): (10.0, 10.0, 0.0)})
    assert result.status is SolveStatus.OPTIMAL
    assert result.errors[0].distance == pytest.approx(math.hypot(10.0, 10.0) - 3.0, abs=1e-4)


def test_a_point_of_the_bone_may_be_pulled():
    skeleton = straight(3)
    pose = bent(skeleton)
    middle = Vector((0.0, 0.5, 0.0))
    going = Drag(skeleton, pose, [Grab(tip(skeleton), middle)])
    point = going.starts[0] + Vector((0.2, -0.3, 0.1))
    found = going.to([point]).pose
    assert (forward_kinematics(skeleton, found)[2].point(middle) - point).length < NEAR


NO_NUMBER = float("nan")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda s, p: drag(s, p, {}), "nothing to drag"),
        (lambda s, p: drag(s, p, {"joint2": (0.0, NO_NUMBER, 0.0)}), "'joint2'.*finite"),
        (lambda s, p: drag(s, p, {"joint2": (0.0, math.inf, 0.0)}), "'joint2'.*finite"),
        (lambda s, p: drag(s, p, {"joint2": (0.0, 1e30, 0.0)}), "'joint2'.*farther away"),
        (lambda s, p: drag(s, p, {"elbow": (0.0, 0.0, 0.0)}), "no joint 'elbow'"),
        (lambda s, p: drag(s, p, [("joint2", (0, 0, 0))]), "points must be a mapping"),
        (lambda s, p: drag(s, p, {"joint2": (0, 0, 0)}, [Pin("joint2")]), "'joint2' is pulled and pinned"),
        (lambda s, p: drag(s, p, {"joint2": (0, 0, 0)}, [Pin("knee")]), "no joint 'knee'"),
        (lambda s, p: drag(s, p, {"joint2": (0, 0, 0)}, [Pin("joint1")] * 2), "'joint1' is pinned twice"),
        (lambda s, p: drag(s, p, {"joint2": (0, 0, 0)}, ["joint1"]), "a pin must be a Pin"),
        (lambda s, p: Pin("joint1", point=(0.0, NO_NUMBER, 0.0)), "pin of joint 'joint1'.*finite"),
        (lambda s, p: Drag(s, p, [Grab("joint2")] * 2), "'joint2' is pulled twice"),
        (lambda s, p: Drag(s, p, [Grab("joint2")]).to([]), "needs as many points"),
        (lambda s, p: Drag(s, p, [Grab("joint2", chain_length=-1)]), "chain_length"),
        (lambda s, p: drag(None, p, {"joint2": (0, 0, 0)}), "must be a Skeleton"),
    ],
)
def test_bad_input_is_refused_by_name(make, words):
    skeleton = straight(3)
    with pytest.raises(InvalidInput, match=words):
        make(skeleton, Pose.rest(skeleton))


def test_a_stiff_body_is_shifted_less():
    """A shift is counted by stiffness as a turn is: a tenth of the mobility, a hundred times the price."""
    shifts = []
    for stiffness in (0.0, 0.9):
        free = tuple(Slide(tuple(float(i == k) for i in range(3)), -9.0, 9.0) for k in range(3))
        body = Joint(
            "body", -1, length=0.2, slides=free, limit=Hinge((0.0, 1.0, 0.0), 0.0, 0.0), stiffness=stiffness
        )
        turned = Quaternion((1.0, 0.0, 0.0), 0.9)
        joints = [body, Joint("upper", 0, length=1.0), Joint("lower", 1, (0.0, 1.0, 0.0), turned, 1.0)]
        skeleton = Skeleton(joints)
        pose = Pose.rest(skeleton)
        away = tail(skeleton, pose, "lower") + Vector((0.0, 0.05, 0.0))
        result = drag(skeleton, pose, {"lower": away})
        assert result.status is SolveStatus.CONVERGED
        shifts.append(result.pose.translations[0].length)
    assert 0.05 * shifts[0] < shifts[1] < 0.4 * shifts[0]


def test_a_body_out_of_reach_of_its_pins_keeps_its_rotation():
    skeleton = star(4)
    pose = Pose.rest(skeleton)
    pins = [Pin(f"leg{k}.2") for k in range(4)]
    going = Drag(skeleton, pose, [Grab("body", Vector((0.4, 0.5, 0.0)), rotation=True)], pins)
    result = going.to([going.starts[0] + Vector((0.0, 0.0, 9.0))])
    assert result.status is SolveStatus.OPTIMAL
    assert result.pose.rotations[0].angle < 1e-3
    assert result.pose.translations[0].z > 0.1


# Even poses -----------------------------------------------------------------------------------------------


def standing_star(bend: float = 0.3) -> tuple[Skeleton, Pose, list[Pin]]:
    """The star on four bent legs that are pinned."""
    skeleton = star(4)
    pose = Pose.rest(skeleton)
    turned = Quaternion((1.0, 0.0, 0.0), -bend)
    pose = pose.with_rotations({i: turned for i in range(1, len(skeleton)) if (i - 1) % 3})
    return skeleton, pose, [Pin(f"leg{k}.2") for k in range(4)]


def test_a_pinned_body_at_the_end_of_its_reach_turns_evenly():
    """Legs of a body that is pulled up become straight at once, faster in each smaller step."""
    skeleton, pose, pins = standing_star()

    def turns(is_even, parts):
        going = Drag(skeleton, pose, [Grab("body")], pins, is_even=is_even)
        ways = [0.05 * k / parts for k in range(1, 40 * parts)]
        return largest_turn(going, [going.starts[0] + Vector((0.2 * way, 0.0, way)) for way in ways])

    plain, even = turns(False, 4), turns(True, 4)
    assert even < 0.5 * plain
    assert 4.0 * turns(True, 4) < 1.5 * turns(True, 1)


@pytest.mark.parametrize("way", [(0.0, 0.1, -0.4), (0.3, 0.0, 0.1), (0.0, 0.0, 9.0), (5.0, 0.0, 2.0)])
def test_even_poses_hold_pins_and_reach_what_can_be_reached(way):
    skeleton, pose, pins = standing_star()
    plain, even = (Drag(skeleton, pose, [Grab("body")], pins, is_even=each) for each in (False, True))
    point = plain.starts[0] + Vector(way)
    nearest, result = plain.to([point]), even.to([point])
    is_reached = nearest.status is SolveStatus.CONVERGED
    assert result.errors[0].distance < nearest.errors[0].distance + (NEAR if is_reached else 0.2)
    assert (result.status is SolveStatus.CONVERGED) == is_reached
    for pin in pins:
        assert (tail(skeleton, result.pose, pin.joint) - tail(skeleton, pose, pin.joint)).length < 2e-3


def test_even_poses_depend_on_the_place_alone():
    skeleton, pose, pins = standing_star()
    going = Drag(skeleton, pose, [Grab("body")], pins, is_even=True)
    rng = random.Random(3)
    places = [going.starts[0] + Vector([rng.uniform(-1.5, 1.5) for _ in range(3)]) for _ in range(12)]
    there = [bits(going.to([place]).pose) for place in places]
    assert there == [bits(going.to([place]).pose) for place in reversed(places)][::-1]
    alone = Drag(skeleton, pose, [Grab("body")], pins, is_even=True)
    assert bits(alone.to(places[-1:]).pose) == there[-1]
    assert bits(going.to(going.starts).pose) == bits(pose)


def test_even_poses_leave_comfort_for_a_pull_that_needs_it():
    skeleton, pose, pins = standing_star()
    region = SwingTwist(Cone(0.35), (-0.02, 0.02))
    cosy = Skeleton(
        [
            replace(each, comfort=Comfort(region=region)) if each.parent >= 0 else each
            for each in skeleton.joints
        ]
    )

    def pulled(joints, height):
        going = Drag(joints, pose, [Grab("body")], pins, is_even=True)
        return going.to([going.starts[0] + Vector((0.0, 0.0, height))])

    assert pulled(cosy, -0.8).errors[0].distance < 1e-3
    assert bits(pulled(cosy, -0.8).pose) == bits(pulled(skeleton, -0.8).pose)
    near = pulled(cosy, -0.02)
    assert near.errors[0].distance < 1e-3
    assert all(violation(region, each) < FLOAT32 for each in near.pose.rotations[1:])


def test_even_poses_need_a_reference():
    """CCD alone would stretch the springs: its drags are as they were."""
    skeleton, pose, pins = standing_star()
    settings = SolverSettings(solver=Solver.CCD)
    plain, even = (Drag(skeleton, pose, [Grab("body")], pins, settings, None, each) for each in (False, True))
    place = plain.starts[0] + Vector((0.0, 0.1, -0.1))
    assert bits(plain.to([place]).pose) == bits(even.to([place]).pose)


# Balance --------------------------------------------------------------------------------------------------

SQUARE = tuple(Vector((x, y, 0.3)) for x in (0.0, 0.5, 1.0) for y in (0.0, 1.0))


@pytest.mark.parametrize(
    ("points", "point", "nearest"),
    [
        (SQUARE, (0.4, 0.7, 5.0), (0.4, 0.7, 5.0)),
        (SQUARE, (1.4, 0.7, 5.0), (1.0, 0.7, 5.0)),
        (SQUARE, (-1.0, -2.0, 0.0), (0.0, 0.0, 0.0)),
        (SQUARE[:1], (3.0, 2.0, 1.0), (0.0, 0.0, 1.0)),
        ((Vector((0, 0, 0)), Vector((2, 0, 0)), Vector((1, 0, 0))), (0.7, 3.0, 1.0), (0.7, 0.0, 1.0)),
    ],
)
def test_the_nearest_place_above_a_support(points, point, nearest):
    assert Support(points).nearest(Vector(point)) == Vector(nearest)
    turned = tuple(Vector((each.x, each.z, each.y)) for each in points)
    found = Support(turned, 1).nearest(Vector((point[0], point[2], point[1])))
    assert found == Vector((nearest[0], nearest[2], nearest[1]))


def heavy_star():
    """Legs in a ring, and a mast on the body that carries all the mass."""
    stand = star(4)
    joints = [
        *stand.joints,
        Joint("mast", 0, (0.0, 0.0, 0.2), Quaternion((1.0, 0.0, 0.0), 1.5), 2.0, mass=1.0),
    ]
    return Skeleton(joints)


def test_a_pull_does_not_take_the_centre_of_mass_off_its_support():
    skeleton = heavy_star()
    pose = Pose.rest(skeleton)
    pins = [Pin(f"leg{k}.2") for k in range(4)]
    feet = tuple(tail(skeleton, pose, pin.joint) for pin in pins)
    edge = max(place.y for place in feet)
    start = tail(skeleton, pose, "mast")

    def pulled(support, away):
        made = Drag(skeleton, pose, [Grab("mast")], pins, support=support)
        result = made.to([start + Vector((0.0, away, -0.3))])
        heads = forward_kinematics(skeleton, result.pose)
        middle = heads[skeleton.index("mast")].point(Vector((0.0, 1.0, 0.0)))
        assert all(
            (tail(skeleton, result.pose, pin.joint) - place).length < 1e-3
            for pin, place in zip(pins, feet, strict=True)
        )
        return middle.y, result

    narrow = tuple(Vector((each.x, min(each.y, 0.4), each.z)) for each in feet)
    free, _ = pulled(None, 1.0)
    assert free > 0.45
    kept, result = pulled(Support(narrow), 1.0)
    assert 0.375 < kept <= 0.4, "eased towards the edge"
    assert len(result.errors) == 6 and result.errors[-1].distance < 2e-3
    wide, plain = pulled(Support(feet), 0.2)
    alone, bare = pulled(None, 0.2)
    assert wide == pytest.approx(alone, abs=2e-3), "above its support the pull is softer, and nothing else"
    assert len(plain.errors) == len(bare.errors) and plain.errors[0].distance < 2e-3
    assert edge > 0.45


@pytest.mark.parametrize("away", [0.02, 0.3, 3.0])
def test_a_centre_of_mass_beside_its_support_goes_no_farther_away(away):
    """A figure in a lunge stays as far out as it stood, and may come back."""
    support, start = Support(SQUARE), Vector((1.0 + away, 0.5, 1.0))
    assert support.eased(start, start) == start
    beyond = support.eased(start + Vector((0.4, 0.0, 0.0)), start)
    assert (beyond - start).length < FLOAT32
    back = Vector((1.0 + 0.5 * away, 0.5, 2.0))
    assert support.eased(back, start) == back
    for aside in (0.2, 0.5, 3.0):
        eased = support.eased(start + Vector((0.1, aside, 0.0)), start)
        assert 0.0 <= eased.x <= start.x + 1e-6 and 0.0 <= eased.y <= 1.0 + 1e-6


def test_the_centre_of_mass_is_eased_towards_an_edge():
    """Places on the way out go on evenly, never back, and never over the edge."""
    support, start = Support(SQUARE), Vector((0.5, 0.4, 1.0))
    assert support.eased(start, start) == start
    assert support.eased(Vector((0.7, 0.45, 2.0)), start) == Vector((0.7, 0.45, 2.0))
    ways = [Vector((0.5 + 0.001 * k, 0.4, 1.0)) for k in range(2000)]
    eased = [support.eased(way, start).x for way in ways]
    steps = [b - a for a, b in pairwise(eased)]
    assert min(steps) >= 0.0 and max(steps) < 0.001 + FLOAT32
    assert max(abs(b - a) for a, b in pairwise(steps)) < 2e-5
    assert 0.999 < eased[-1] <= 1.0
    corner = support.eased(Vector((9.0, 9.0, 1.0)), start)
    assert 0.999 < corner.x <= 1.0 and 0.999 < corner.y <= 1.0


def test_a_support_without_width_eases_nothing():
    line = Support((Vector((0, 0, 0)), Vector((2, 0, 0))))
    assert line.eased(Vector((0.7, 3.0, 1.0)), Vector((1.2, 0.0, 0.0))) == Vector((0.7, 0.0, 1.0))


def mast_over_a_narrow_support() -> Drag:
    """The star stands on four feet and is pulled by its mast; its support ends before two of them."""
    skeleton = heavy_star()
    pose = Pose.rest(skeleton)
    pins = [Pin(f"leg{k}.2") for k in range(4)]
    feet = tuple(tail(skeleton, pose, pin.joint) for pin in pins)
    narrow = Support(tuple(Vector((each.x, min(each.y, 0.4), each.z)) for each in feet))
    return Drag(skeleton, pose, [Grab("mast")], pins, support=narrow)


def test_balance_sets_in_without_a_jerk():
    """A pull past the edge in even steps: the body slows down and comes back, without a corner in its way."""
    going = mast_over_a_narrow_support()
    start = going.starts[0]
    poses = [going.to([start + Vector((0.0, 0.01 * k, 0.0))]).pose for k in range(1, 60)]
    places = [tail(going.skeleton, each, "body") for each in poses]
    steps = [b - a for a, b in pairwise(places)]
    assert max((b - a).length for a, b in pairwise(steps)) < 0.3 * max(step.length for step in steps)


@pytest.mark.parametrize("way", [(0.0, 1.0, -0.3), (0.0, 1.0, 0.0), (0.3, 1.0, 0.5), (1.0, 0.0, 0.0)])
def test_beyond_what_balance_allows_poses_go_on_evenly(way):
    """Exact poses turn legs by 9 to 17 degrees a step where they end, and least errors miss by turns."""
    going = mast_over_a_narrow_support()
    start = going.starts[0]
    places = [start + 0.02 * k * Vector(way) for k in range(1, 90)]
    results = [going.to([place]) for place in places]
    assert results[-1].errors[0].distance > 0.4
    assert {result.status for result in results} == {SolveStatus.CONVERGED, SolveStatus.OPTIMAL}
    assert largest_turn(going, places) < 2.5


@pytest.mark.parametrize("way", [(0.0, 1.0, -0.3), (0.3, 1.0, 0.5)])
def test_small_steps_turn_joints_by_as_much_less(way):
    """Where poses end short of the nearest one, or the balance sets in with a jump, turns stay as large."""
    going = mast_over_a_narrow_support()
    coarse, fine = ([going.starts[0] + 0.02 * k / n * Vector(way) for k in range(1, 30 * n)] for n in (1, 8))
    assert 8.0 * largest_turn(going, fine) < 1.25 * largest_turn(going, coarse)


def test_with_a_support_joints_leave_their_comfort_for_a_pull_that_needs_it():
    skeleton = heavy_star()
    pose = Pose.rest(skeleton)
    pins = [Pin(f"leg{k}.2") for k in range(4)]
    cosy = Comfort(region=SwingTwist(Cone(0.02), (-0.02, 0.02)))
    tight = Skeleton([replace(each, comfort=cosy) for each in skeleton.joints])
    support = Support.of_pins(skeleton, pose, pins)
    start = tail(skeleton, pose, "mast")

    def error(joints, move):
        return drag(joints, pose, {"mast": start + move}, pins, support=support).errors[0].distance

    near, far = Vector((0.0, 0.02, 0.0)), Vector((0.0, 0.2, -0.1))
    assert error(tight, near) < 1e-3 and error(tight, far) == pytest.approx(error(skeleton, far), abs=1e-6)
    kept = drag(tight, pose, {"mast": start + near}, pins, support=support).pose
    assert all(violation(cosy.region, each) < FLOAT32 for each in kept.rotations)
    with_ccd = SolverSettings(solver=Solver.CCD)
    assert drag(skeleton, pose, {"mast": start + near}, pins, with_ccd, support).errors[0].distance < 0.01


def test_a_support_of_pins_is_what_the_figure_stands_on():
    """A foot whose rotation is pinned adds its heel and its toes; the function keeps the balance above it."""
    foot = [
        Joint("leg", -1, (0.0, 0.0, 1.0), Quaternion((1.0, 0.0, 0.0), -0.5 * math.pi), 1.0, mass=1.0),
        Joint("foot", 0, (0.0, 1.0, 0.0), Quaternion((1.0, 0.0, 0.0), 0.5 * math.pi), 0.2),
        Joint("toes", 1, (0.0, 0.2, 0.0), length=0.1),
    ]
    skeleton = Skeleton(foot)
    pose = Pose.rest(skeleton)
    only = Support.of_pins(skeleton, pose, [Pin("foot")])
    assert [tuple(each) for each in only.points] == [pytest.approx((0.0, 0.2, 0.0), abs=1e-6)]
    whole = Support.of_pins(skeleton, pose, [Pin("foot", rotation=True)])
    assert {round(each.y, 5) for each in whole.points} == {0.0, 0.2, 0.3}
    with pytest.raises(InvalidInput, match="nothing to stand on"):
        Support.of_pins(skeleton, pose, [])

    stand = heavy_star()
    pose, pins = Pose.rest(stand), [Pin(f"leg{k}.2") for k in range(4)]
    narrow = Support.of_pins(stand, pose, pins[:1] + pins[2:])
    point = tail(stand, pose, "mast") + Vector((-0.5, 0.0, 0.0))

    def centre(support):
        found = drag(stand, pose, {"mast": point}, pins, support=support).pose
        return forward_kinematics(stand, found)[stand.index("mast")].point(Vector((0.0, 1.0, 0.0)))

    kept, free = centre(narrow), centre(None)
    assert (narrow.nearest(kept) - kept).length < 1e-3 < (narrow.nearest(free) - free).length


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"points": ()}, "nothing to stand on"),
        ({"up": 3}, "up must be"),
        ({"softness": 0.0}, "softness must be above 0"),
        ({"softness": float("nan")}, "softness must be above 0"),
        ({"points": (1,)}, "point of the support"),
    ],
)
def test_a_support_that_is_none_is_refused(change, words):
    with pytest.raises(InvalidInput, match=words):
        Support(**({"points": (Vector(),)} | change))


def test_balance_needs_a_mass():
    skeleton = star(4)
    pins = [Pin(f"leg{k}.2") for k in range(4)]
    with pytest.raises(InvalidInput, match="no joint has a mass"):
        Drag(skeleton, Pose.rest(skeleton), [Grab("body")], pins, support=Support(SQUARE))


def limb(bend: float) -> tuple[Skeleton, Pose]:
    """An arm of two bones on a fixed shoulder, bent at rest."""
    turned = Quaternion((1.0, 0.0, 0.0), bend)
    joints = [Joint("upper", -1, length=0.3), Joint("lower", 0, (0.0, 0.3, 0.0), turned, 0.28)]
    skeleton = Skeleton(joints)
    return skeleton, Pose.rest(skeleton)


def largest_turn(going: Drag, places: list[Vector]) -> float:
    """Degrees of the largest turn of a joint from one place to the next."""
    poses = [going.to([place]).pose for place in places]
    pairs = [zip(a.rotations, b.rotations, strict=True) for a, b in pairwise(poses)]
    return max(math.degrees(2.0 * math.acos(min(1.0, abs(a.dot(b))))) for pair in pairs for a, b in pair)


@pytest.mark.parametrize("bend", [0.4, 0.6, 1.2])
def test_a_soft_limb_does_not_snap_straight(bend):
    """Out past its reach and back: the elbow of a plain one turns at any speed where it becomes straight."""
    skeleton, pose = limb(bend)
    away = tail(skeleton, pose, "lower").normalized()
    turns = []
    for soft in (0.0, 0.02):
        going = Drag(skeleton, pose, [Grab("lower", soft=soft)])
        reach = [away * (0.4 + 0.3 * k / 200) for k in range(201)]
        turns.append(largest_turn(going, reach))
        far = going.to([away * 0.7])
        assert far.status is SolveStatus.OPTIMAL
        assert abs(far.errors[0].distance - 0.12) < 0.02 * 0.58
    assert turns[0] > 5.0
    assert turns[1] < 3.0


@pytest.mark.parametrize("bend", [0.05, 0.6])
def test_a_soft_limb_out_of_reach_turns_as_its_point_does(bend):
    skeleton, pose = limb(bend)
    going = Drag(skeleton, pose, [Grab("lower", soft=0.02)])
    angles = [2.0 * math.pi * k / 1200 for k in range(200)]
    circle = [Vector((0.9 * math.cos(a), 0.9, 0.5 * math.sin(a))) for a in angles]
    explained = max(math.degrees(a.angle(b)) for a, b in pairwise(circle))
    assert largest_turn(going, circle) < 1.5 * explained


@pytest.mark.parametrize(("count", "bend"), [(20, 0.1), (30, 0.1), (20, 0.2)])
def test_a_soft_tail_out_of_reach_turns_as_its_point_does(count, bend):
    """The goals are most curved where a chain is nearly straight: a slide that ends early jumps there."""
    skeleton = straight(count)
    going = Drag(skeleton, bent(skeleton, bend), [Grab(tip(skeleton), soft=0.02)])
    out, up = going.starts[0].normalized(), Vector((0.0, 0.0, 1.0))
    angles = [0.01 * k for k in range(-12, 13)]
    circle = [1.05 * count * (out * math.cos(a) + up * math.sin(a)) for a in angles]
    assert largest_turn(going, circle) < 3.0 * math.degrees(0.01)


def test_softness_leaves_what_a_pose_reaches_and_chains_whose_root_is_moved():
    skeleton, pose = limb(0.05)
    going = Drag(skeleton, pose, [Grab("lower", soft=0.02)])
    beside = going.starts[0] + Vector((1e-6, 0.0, 0.0))
    assert going.to([beside]).status is SolveStatus.CONVERGED
    chain = straight(5)
    stretched = tail(chain, Pose.rest(chain), tip(chain))
    both = Drag(chain, bent(chain), [Grab(tip(chain), chain_length=2, soft=0.02), Grab("joint1")])
    plain = Drag(chain, bent(chain), [Grab(tip(chain), chain_length=2), Grab("joint1")])
    places = [stretched, both.starts[1]]
    assert bits(both.to(places).pose) == bits(plain.to(places).pose)


def test_softness_that_is_no_part_is_refused():
    with pytest.raises(InvalidInput, match=r"soft must be 0 to 1, not 1\.5"):
        Grab("lower", soft=1.5)


@pytest.mark.parametrize("distance", [0.6, 1.0, 1.5])
def test_a_drag_with_other_starts_reaches_what_it_misses_without(distance):
    """Three bones in a plane reach a point behind a stiff shoulder only if they bend to the other side."""
    limits = [Hinge(Z, -bound, bound) for bound in (1.0, 2.4, 2.4)]
    skeleton = straight(3).replace({f"joint{i}": {"limit": limit} for i, limit in enumerate(limits)})
    start = Pose.rest(skeleton).with_rotations(
        {i: Quaternion(Z, a) for i, a in enumerate((-1.0, -1.2, -1.2))}
    )
    point = Vector((distance * math.sin(-2.0), distance * math.cos(-2.0), 0.0))
    alone, others = (
        Drag(skeleton, start, [Grab("joint2")], settings=SolverSettings(restarts=count)) for count in (0, 8)
    )
    assert alone.to([point]).status is SolveStatus.OPTIMAL
    result = others.to([point])
    assert result.status is SolveStatus.CONVERGED
    assert (tail(skeleton, result.pose, "joint2") - point).length < 1e-3
    others.to([0.5 * point])
    assert bits(others.to([point]).pose) == bits(result.pose)


@pytest.mark.parametrize("softness", [0.2, 0.5, 0.9, 1.0])
def test_a_symmetric_support_is_cut_from_both_sides(softness):
    """A generated wolf whose hips go up: the cuts left a segment, and by rounding no corner of it."""
    points = [(3.469446951953614e-18, 0.10737529397010803), (0.0, 0.023310234770178795)]
    points += [(0.11140000075101852, 0.4766008257865906), (0.1088000014424324, 0.4138011932373047)]
    points += [(0.11140000075101852, -0.214700385928154), (0.1088000014424324, -0.24620045721530914)]
    points += [(-x, y) for x, y in points[2:]]
    support = Support(tuple(Vector((x, y, 0.0)) for x, y in points), softness=softness)
    start = Vector((0.0, 0.023310234770178795, 0.6))
    eased = support.eased(Vector((0.0, 0.022704150527715683, 0.601)), start)
    assert abs(eased.x) < 1e-9
    assert 0.0227 <= eased.y <= start.y


def test_a_support_as_narrow_as_rounding_leaves_the_start():
    """From above a line of 10 km: two cuts are nearly parallel, and where they meet is rounded by more."""
    corners = [(5966.318359375, -8267.2900390625), (3.519805432006251e-06, 4.878032996202819e-06)]
    corners.append((0.013507243245840073, 0.00849413126707077))
    support = Support(tuple(Vector((x, y, 0.0)) for x, y in corners), softness=1.0)
    start = Vector((1988.77734375, -2755.760498046875, 4931.33349609375))
    assert support.eased(start, start) == start


@pytest.mark.parametrize("softness", [0.2, 0.5, 0.9, 1.0])
def test_a_centre_of_mass_is_eased_whatever_the_shape_of_its_support(softness):
    """Points in a line or at one place, mirror images, sizes that differ by rounding: corners were lost."""
    rng = random.Random(4)
    for _ in range(2000):
        points = [Vector([rng.uniform(-1.0, 1.0) for _ in range(3)]) for _ in range(rng.choice((1, 2, 3, 5)))]
        points = rng.choice(
            (
                points,
                [Vector((0.0, y, z)) for _, y, z in points],
                points[:1] * 3,
                points + [Vector((-x, y, z)) for x, y, z in points],
                [point * 10.0 ** rng.uniform(-9.0, 6.0) for point in points],
            )
        )
        support, start = Support(tuple(points), softness=softness), rng.choice((Vector(), points[0]))
        point = start + Vector([rng.uniform(-1.0, 1.0) for _ in range(3)]) * 10.0 ** -rng.randint(0, 8)
        eased = support.eased(point, start)
        assert eased.z == point.z
        assert math.isfinite(eased.x + eased.y)
        if softness < 1.0:  # at 1, one that goes outwards from a corner at which it starts is free
            far = max(each.length for each in (*points, start, point))
            within = Support((*points, start)).nearest(eased)
            assert (within - eased).length <= 1e-6 * far
