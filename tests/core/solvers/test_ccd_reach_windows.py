"""How much of one step a reach window leaves, against where a circle and a line meet its sphere."""

from __future__ import annotations

import math
import random

import pytest
from chains import FLOAT32
from mathutils import Quaternion, Vector
from seeds import few_of

from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import Cone, Hinge, Slide, SwingTwist
from ccd_rig.settings import Solver, SolverSettings
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import solve

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
STEP = 2.0**-11
"""How finely a step is cut at least, in parts of it."""
TOLERANCE = 1e-5


def one_step(skeleton: Skeleton, start: Pose, *goals: PositionGoal) -> Pose:
    settings = SolverSettings(
        solver=Solver.CCD, max_iterations=1, step_fraction=1.0, restarts=0, position_tolerance=TOLERANCE
    )
    return solve(skeleton, start, goals, settings).pose


def sliding(axis: object, fold: Quaternion, length: float = 1.0) -> Skeleton:
    """A bone at the end of a link of 1, folded against it; it may shift along an axis and nothing else."""
    still, slide = SwingTwist(Cone(0.0), (0.0, 0.0)), Slide(fold.conjugated() @ Vector(axis), -9.0, 9.0)
    end = Joint("end", 0, Y, fold, length, still, slides=(slide,))
    return Skeleton([Joint("root", stiffness=1.0), end])


def shifted_by(skeleton: Skeleton, *goals: PositionGoal) -> float:
    """How far one step shifts the bone along its slide."""
    (slide,) = skeleton.joints[1].slides
    return one_step(skeleton, Pose.rest(skeleton), *goals).translations[1].dot(Vector(slide.axis))


def windowed(target: Vector, most: float) -> PositionGoal:
    return PositionGoal("end", target, max_extension=most, extension_joints=2)


@pytest.mark.parametrize("seed", range(20))
def test_a_turn_ends_where_the_circle_meets_the_sphere(seed: int) -> None:
    """Two links of a and b: the end is as far away as it may be at an angle that the law of cosines tells."""
    rng = random.Random(seed)
    a, b = rng.uniform(0.5, 2.0), rng.uniform(0.5, 2.0)
    bent, least = rng.uniform(1.5, 2.5), rng.uniform(0.3, 1.0)  # angles off straight
    longest = math.sqrt(a * a + b * b + 2.0 * a * b * math.cos(least))
    limit = (None, Hinge(Z, -3.0, 3.0))[seed % 2]
    skeleton = Skeleton(
        [Joint("root", length=a, stiffness=1.0), Joint("end", 0, (0.0, a, 0.0), length=b, limit=limit)]
    )
    start = Pose.rest(skeleton).with_rotations({1: Quaternion(Z, bent)})
    for angle in (least + 0.05, 0.0):
        target = Vector((0.0, a, 0.0)) + Quaternion(Z, angle) @ Vector((0.0, b, 0.0))
        turned = one_step(skeleton, start, windowed(target, longest / (a + b))).rotations[1]
        ends_at = max(angle, least)
        assert 2.0 * math.asin(turned.z) == pytest.approx(ends_at, abs=bent * STEP + 1e-4)


@pytest.mark.parametrize("seed", few_of(range(40), 10))
def test_a_shift_ends_where_the_line_meets_the_sphere(seed: int) -> None:
    """The window counts the lengths of link and bone at the start."""
    rng = random.Random(seed)
    axis = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
    length, most = rng.uniform(0.3, 1.0), rng.uniform(0.7, 0.95)
    fold = Quaternion(X, rng.uniform(2.0, math.pi))
    end, longest = Vector(Y) + length * (fold @ Vector(Y)), most * (1.0 + length)
    along = end.dot(axis)
    inside = -along + math.sqrt(along**2 - end.length_squared + longest**2)
    for wanted in (0.9 * inside, 3.0 * inside):
        shift = shifted_by(sliding(axis, fold, length), windowed(end + wanted * axis, most))
        best = min(wanted, inside)
        assert shift <= best + 2.0 * TOLERANCE
        assert shift == pytest.approx(best, abs=wanted * STEP + FLOAT32)


def test_the_narrower_of_two_windows_counts() -> None:
    """The bone's end is where the first joint is: it may go as far as the window says."""
    skeleton, target = sliding(Y, Quaternion(X, math.pi)), Vector((0.0, 3.0, 0.0))
    both = [windowed(target, 0.9), windowed(target, 0.6)]
    for goals in (both, both[::-1]):
        assert shifted_by(skeleton, *goals) == pytest.approx(1.2, abs=3.0 * STEP + FLOAT32)


def test_a_part_that_is_stretched_past_its_window_may_only_come_back() -> None:
    skeleton = sliding(Y, Quaternion())
    assert shifted_by(skeleton, windowed(Vector((0.0, 2.5, 0.0)), 0.5)) <= FLOAT32
    assert shifted_by(skeleton, windowed(Vector((0.0, 1.5, 0.0)), 0.5)) == pytest.approx(-0.5, abs=FLOAT32)


def test_a_shift_of_the_windows_own_first_joint_stretches_nothing() -> None:
    """As one of a joint below it: the window goes along."""
    still, slide = SwingTwist(Cone(0.0), (0.0, 0.0)), Slide(Y, -9.0, 9.0)
    joints = [
        Joint("root"),
        Joint("mid", 0, Y),
        Joint("end", 1, Y, Quaternion(X, 2.5)),
    ]
    end = Vector((0.0, 2.0, 0.0)) + Quaternion(X, 2.5) @ Vector(Y)
    for name in ("root", "mid"):
        sliding_one = {"limit": still, "slides": (slide,)}
        fields = {joint.name: {"stiffness": 1.0} for joint in joints} | {name: sliding_one}
        skeleton = Skeleton(joints).replace(fields)
        pose = one_step(skeleton, Pose.rest(skeleton), windowed(end + 5.0 * Vector(Y), 0.6))
        assert pose.translations[skeleton.index(name)].y == pytest.approx(5.0, abs=10.0 * FLOAT32)


@pytest.mark.parametrize("target", [(0.0, 3.9, 0.0), (0.5, 3.7, 0.0)])
@pytest.mark.parametrize("limit", [None, Hinge(Z, -2.0, 2.0)])
def test_a_straight_chain_past_its_window_ends_inside_it(target, limit) -> None:
    """Links of four in all, of which nine tenths may be used: the nearest point of that sphere is reached."""
    joints = [Joint("root", limit=limit), *(Joint(f"link {i}", i - 1, Y, limit=limit) for i in (1, 2))]
    skeleton = Skeleton([*joints, Joint("end", 2, Y, limit=limit)])
    goal = PositionGoal("end", Vector(target), max_extension=0.9, extension_joints=4)
    result = solve(skeleton, Pose.rest(skeleton), [goal], SolverSettings(solver=Solver.CCD, restarts=0))
    turn, end = Quaternion(), Vector()
    for rotation in result.pose.rotations:
        turn = turn @ rotation
        end += turn @ Vector(Y)
    assert end.length == pytest.approx(3.6, abs=1e-3)
    assert (end - Vector(target)).length == pytest.approx(Vector(target).length - 3.6, abs=2e-3)
