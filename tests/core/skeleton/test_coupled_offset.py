"""Offsets that follow a hinge's angle: the spline, where joints are, and what is refused."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from chains import FLOAT32, legal_pose, random_couplings, random_skeleton, random_slides, shifted, straight
from mathutils import Quaternion, Vector

from ccd_rig import (
    CoupledOffset,
    Hinge,
    InvalidInput,
    Joint,
    Pose,
    PoseEntry,
    PositionGoal,
    Skeleton,
    Slide,
    forward_kinematics,
    reroot,
    solve,
    target_triangle,
    two_bone,
)
from ccd_rig.settings import Solver, SolverSettings
from ccd_rig.skeleton.pose_library import apply_entry
from ccd_rig.solvers.pose_search import PoseSearch
from ccd_rig.solvers.problem_tables import stored_targets

X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
ANGLES, SHIFTS = (-1.0, -0.4, 0.1, 0.7, 1.5), (0.3, -0.1, 0.2, 0.25, -0.4)
HINGE = Hinge(X, -2.0, 2.0)


def table(**fields: object) -> CoupledOffset:
    return CoupledOffset(**{"hinge": "knee", "axis": Y, "angles": ANGLES, "shifts": SHIFTS, **fields})


# --- the spline -------------------------------------------------------------------------------------


@pytest.mark.parametrize("slopes", [None, (0.1, -0.2, 0.3, 0.0, 1.0)])
def test_spline_goes_through_its_knots_with_its_slopes(slopes: tuple[float, ...] | None) -> None:
    offset = table(slopes=slopes)
    values, rates = offset.evaluate(np.array(ANGLES))
    assert values == pytest.approx(SHIFTS, abs=1e-14)
    if slopes is not None:
        assert rates == pytest.approx(slopes, abs=1e-14)


@pytest.mark.parametrize("slopes", [None, (0.1, -0.2, 0.3, 0.0, 1.0)])
def test_slope_is_that_of_differences(slopes: tuple[float, ...] | None) -> None:
    offset, h = table(slopes=slopes), 1e-6
    angles = np.linspace(-2.0, 2.5, 97)
    difference = (offset.evaluate(angles + h)[0] - offset.evaluate(angles - h)[0]) / (2.0 * h)
    assert offset.evaluate(angles)[1] == pytest.approx(difference, abs=1e-8)


def test_natural_spline_has_one_curvature_at_each_knot_and_none_at_its_ends() -> None:
    offset, h = table(), 1e-5
    at = np.array(ANGLES)
    left = (offset.evaluate(at)[1] - offset.evaluate(at - h)[1]) / h
    right = (offset.evaluate(at + h)[1] - offset.evaluate(at)[1]) / h
    assert left == pytest.approx(right, abs=1e-3)
    assert left[[0, -1]] == pytest.approx((0.0, 0.0), abs=1e-3)


def test_a_parabola_between_ends_of_its_own_slopes_is_that_parabola() -> None:
    angles = (-1.0, 0.0, 2.0)
    offset = table(angles=angles, shifts=[a * a for a in angles], slopes=[2.0 * a for a in angles])
    some = np.linspace(-1.0, 2.0, 31)
    assert offset.evaluate(some)[0] == pytest.approx(some * some, abs=1e-14)


def test_beyond_its_ends_it_is_a_straight_line() -> None:
    offset = table()
    (first, last), (down, up) = offset.evaluate(np.array([-1.0, 1.5]))
    assert offset.shift(-1.5) == pytest.approx(first - 0.5 * down)
    assert offset.shift(3.5) == pytest.approx(last + 2.0 * up)


def test_two_angles_are_a_straight_line() -> None:
    offset = table(angles=(0.0, 2.0), shifts=(1.0, 0.0))
    assert [offset.shift(a) for a in (-2.0, 0.5, 2.0, 3.0)] == pytest.approx([2.0, 0.75, 0.0, -0.5])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"hinge": ""}, "CoupledOffset.hinge is ''"),
        ({"axis": (0, 0, 0)}, "CoupledOffset.axis is zero"),
        ({"angles": (0.0,), "shifts": (0.0,)}, "CoupledOffset.angles is .* two angles"),
        ({"angles": (0.0, 1.0, 1.0), "shifts": (0, 0, 0)}, "CoupledOffset.angles must rise"),
        ({"angles": (0.0, math.nan), "shifts": (0, 0)}, "CoupledOffset.angles is nan"),
        ({"shifts": (0.0, 1.0)}, "CoupledOffset.shifts has 2 numbers; give 5"),
        ({"slopes": (0.0, 1.0)}, "CoupledOffset.slopes has 2 numbers; give 5"),
    ],
)
def test_tables_that_make_no_sense_are_refused_by_field(fields: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        table(**fields)


# --- where joints are -------------------------------------------------------------------------------


def leg(**knee: object) -> Skeleton:
    return Skeleton(
        [
            Joint("hip"),
            Joint("knee", 0, Y, limit=HINGE, coupled_offsets=(table(),), **knee),
            Joint("foot", 1, Y),
        ]
    )


@pytest.mark.parametrize("angle", [-1.7, -0.4, 0.0, 0.9])
def test_a_knee_rolls_along_its_table(angle: float) -> None:
    skeleton = leg()
    turned = Pose.rest(skeleton).with_rotations({1: Quaternion(X, angle)})
    _, knee, foot = forward_kinematics(skeleton, turned)
    assert knee.translation[:] == pytest.approx((0.0, 1.0 + table().shift(angle), 0.0), abs=1e-6)
    arm = foot.translation - knee.translation
    assert arm[:] == pytest.approx((0.0, math.cos(angle), math.sin(angle)), abs=1e-6)


def test_an_offset_may_follow_an_ancestor_and_lies_in_the_parents_frame() -> None:
    joints = [Joint("knee", limit=HINGE), Joint("cap", 0, Y, coupled_offsets=(table(axis=(0, 0, 1)),))]
    skeleton = Skeleton(joints)
    turned = Pose.rest(skeleton).with_rotations({0: Quaternion(X, 0.5)})
    _, cap = forward_kinematics(skeleton, turned)
    wanted = Quaternion(X, 0.5) @ Vector((0.0, 1.0, table().shift(0.5)))
    assert cap.translation[:] == pytest.approx(wanted[:], abs=1e-6)


def test_slides_and_offsets_add_up() -> None:
    skeleton = leg(slides=(Slide(Y, -1.0, 1.0), Slide((0, 0, 1), -1.0, 1.0)))
    pose = Pose(Pose.rest(skeleton).rotations, ((0, 0, 0), (0.0, 0.3, -0.2), (0, 0, 0)))
    knee = forward_kinematics(skeleton, pose)[1]
    assert knee.translation[:] == pytest.approx((0.0, 1.3 + table().shift(0.0), -0.2), abs=1e-6)


def test_an_entry_of_a_pose_library_takes_the_offset_along() -> None:
    skeleton = leg(slides=(Slide(Y, -1.0, 1.0),))
    pose = Pose(Pose.rest(skeleton).rotations, ((0, 0, 0), (0.0, 0.3, 0.0), (0, 0, 0)))
    applied = apply_entry(PoseEntry("bent", {"knee": Quaternion(X, 1.0)}), skeleton, pose)
    assert applied.translations == pose.translations
    knee = forward_kinematics(skeleton, applied)[1]
    assert knee.translation.y == pytest.approx(1.3 + table().shift(1.0), abs=1e-6)


def rolling(seed: int) -> tuple[Skeleton, random.Random]:
    rng = random.Random(seed)
    skeleton = random_skeleton(rng, 8, tree=seed % 2 == 0)
    skeleton = skeleton.replace({joint.name: {"slides": random_slides(rng)} for joint in skeleton.joints})
    return random_couplings(skeleton, rng), rng


@pytest.mark.parametrize("seed", range(12))
def test_arrays_of_poses_are_where_single_ones_are(seed: int) -> None:
    skeleton, rng = rolling(seed)
    poses = [shifted(skeleton, legal_pose(skeleton, rng), rng) for _ in range(5)]
    goals = [PositionGoal(joint.name, (0, 0, 0), (0, 0, 0)) for joint in skeleton.joints]
    search = PoseSearch(skeleton, goals, SolverSettings(solver=Solver.CCD, max_iterations=1), ())
    rotations = np.array([[q[:] for q in pose.rotations] for pose in poses])
    translations = np.array([[t[:] for t in pose.translations] for pose in poses])
    solved = search.solve(rotations, translations, stored_targets(goals))
    for k, pose in enumerate(poses):
        places = [each.translation.length for each in forward_kinematics(skeleton, pose)]
        assert solved.distances[k] == pytest.approx(places, abs=10.0 * FLOAT32)


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("joints", "words"),
    [
        ([Joint("a", coupled_offsets=(table(),))], "'a': .* 'knee', which must be the joint itself or one"),
        (
            [Joint("a"), Joint("knee", 0, limit=HINGE), Joint("b", 0, coupled_offsets=(table(),))],
            "'b': .* 'knee', which must be the joint itself or one of its ancestors",
        ),
        ([Joint("knee", coupled_offsets=(table(),))], "'knee': .* needs a Hinge of less than a full turn"),
        (
            [Joint("knee", limit=Hinge(X, -4.0, 4.0), coupled_offsets=(table(),))],
            "'knee': .* needs a Hinge of less than a full turn",
        ),
    ],
)
def test_offsets_that_follow_nothing_are_refused_by_joint(joints: list[Joint], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Skeleton(joints)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"slides": Slide(X, 0, 1)}, "'a': slides must be a tuple of Slide"),
        ({"slides": (None,)}, "'a': slides must be a tuple of Slide"),
        ({"coupled_offsets": (1.0,)}, "'a': coupled_offsets must be a tuple of CoupledOffset"),
        (
            {"slides": (Slide(X, 0, 1), Slide((1, 1, 0), 0, 1))},
            r"'a': slides must be at right angles .*\(1, 0, 0\) and \(0.7071, 0.7071, 0\)",
        ),
    ],
)
def test_joints_that_make_no_sense_are_refused_by_name(fields: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Joint("a", **fields)


def test_what_cannot_roll_says_so() -> None:
    skeleton = leg()
    rest, goal = Pose.rest(skeleton), PositionGoal("foot", (0.0, 1.5, 1.0))
    for what in (
        lambda: reroot(skeleton, rest, "foot"),
        lambda: two_bone(skeleton, rest, PositionGoal("knee", (0.0, 1.5, 1.0))),
        lambda: target_triangle(skeleton, rest, goal),
        lambda: solve(skeleton, rest, [PositionGoal("foot", (0.0, 1.5, 1.0), max_extension=0.9)]),
    ):
        with pytest.raises(InvalidInput, match="'knee' has coupled offsets"):
            what()


def test_straight_chains_have_none() -> None:
    assert straight(3).couplings == ()
