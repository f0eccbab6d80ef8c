"""The loop: what it reaches, how it ends, and that it never breaks a limit."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from chains import (
    FLOAT32,
    SOLVE,
    Z,
    entry_from_pose,
    legal_pose,
    random_rotation,
    straight,
    tail,
    tip,
)
from mathutils import Quaternion, Vector
from reaching import CONVERGED, ITERATION_LIMIT, OPTIMAL, STALLED, reach_for
from seeds import few_and_all

from ccd_rig.goals import (
    DirectionGoal,
    OrientationGoal,
    PositionGoal,
)
from ccd_rig.limits.shapes import Cone, Hinge, SwingTwist
from ccd_rig.maths.rotations import angle_of
from ccd_rig.settings import Solver, SolverSettings, Sweep
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import iterate, solve


def hinged(*angles, offsets=None, lower=-10.0, upper=10.0):
    """A planar chain of free hinges about Z along +X (rest), and the pose with these angles in radians."""
    offsets = offsets or [1.0] * len(angles)
    turned = Quaternion(Z, -math.pi / 2)
    joints = [
        Joint(
            f"joint{i}",
            i - 1,
            (0.0, offsets[i - 1], 0.0) if i else (0.0, 0.0, 0.0),
            Quaternion() if i else turned,
            offsets[i],
            Hinge(Z, lower, upper),
        )
        for i in range(len(angles))
    ]
    skeleton = Skeleton(joints)
    return skeleton, Pose(tuple(Quaternion(Z, a) for a in angles), Pose.rest(skeleton).translations)


@pytest.mark.parametrize("sweep", Sweep)
@pytest.mark.parametrize("cases", few_and_all(60, 200))
def test_free_chain_reaches_what_it_can_reach(sweep, cases):
    rng = random.Random(11 + cases[0])
    skeleton = straight(10)
    for _ in cases:
        target = tail(skeleton, legal_pose(skeleton, rng))
        assert reach_for(skeleton, target, sweep=sweep, max_iterations=2000).status is CONVERGED


@pytest.mark.parametrize("fraction", [0.9, 1.0])
@pytest.mark.parametrize("sweep", Sweep)
def test_every_order_gets_along_alone(sweep, fraction):
    """Sweeps without least squares, from straight, to anywhere inside: none leaves out the far joints."""
    rng = random.Random(13)
    skeleton = straight(8)
    met = 0
    for _ in range(60):
        way = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        target = way * 7.6 * rng.random() ** (1.0 / 3.0)
        alone = {"solver": Solver.CCD, "restarts": 0, "max_iterations": 400, "step_fraction": fraction}
        met += reach_for(skeleton, target, sweep=sweep, **alone).status is CONVERGED
    assert met >= 50


def test_cones_of_30_degrees_reach_nearly_everything():
    rng = random.Random(12)
    skeleton = straight(10, SwingTwist(Cone(math.radians(30.0))))
    missed = 0
    for _ in range(300):
        target = tail(skeleton, legal_pose(skeleton, rng))
        missed += reach_for(skeleton, target).status is not CONVERGED
    assert missed <= 1


def test_unity_chain_reached_and_solving_again_does_nothing():
    skeleton, start = hinged(0.0, 0.0, 0.0, 0.0, offsets=[1.0, 2.0, 3.0, 4.0])
    first = reach_for(skeleton, (9.0, 1.0, 0.0), start, position_tolerance=0.01, max_iterations=500)
    assert first.status is CONVERGED
    again = reach_for(skeleton, (9.0, 1.0, 0.0), first.pose, position_tolerance=0.01, max_iterations=500)
    assert again.iterations == 0 and again.pose == first.pose


def test_unity_chain_out_of_reach_leaves_exactly_the_missing_length():
    skeleton, start = hinged(0.0, 0.0, 0.0, 0.0, offsets=[1.0, 2.0, 3.0, 4.0])
    result = reach_for(skeleton, (0.0, 12.0, 0.0), start, position_tolerance=0.01, max_iterations=500)
    assert result.status is OPTIMAL
    assert result.errors[0].distance == pytest.approx(2.0, abs=1e-5)


@pytest.mark.parametrize(
    ("angles", "target"),
    [((0.0, 0.0), (1.5, 0.5)), ((math.pi / 2, 0.0), (-0.5, -1.0)), ((0.1, -0.1), (1.9, 0.0))],
)
def test_two_links_in_the_plane(angles, target):
    skeleton, start = hinged(*angles)
    assert reach_for(skeleton, (*target, 0.0), start).status is CONVERGED


def test_one_narrow_hinge_stalls_at_its_limit():
    skeleton, start = hinged(0.0, lower=-0.05, upper=0.05)
    result = reach_for(skeleton, (0.0, 1.0, 0.0), start)
    assert result.status is OPTIMAL
    along = result.pose.rotations[0]
    assert 2.0 * math.atan2(along.z, along.w) == pytest.approx(0.05, abs=1e-6)


def test_no_freedom_stalls_where_it_is():
    skeleton = straight(3, stiffness=1.0)
    result = reach_for(skeleton, (1.0, 1.0, 0.0))
    assert result.status is OPTIMAL and result.pose == Pose.rest(skeleton)


def test_error_never_grows_over_changing_targets():
    """closed-chain-ik's case: 20 joints of alternating axes that turn by 0.1 rad."""
    axes = (Vector((1.0, 0.0, 0.0)), Z)
    skeleton = Skeleton(
        Joint(f"joint{i}", i - 1, (0.0, 1.0 if i else 0.0, 0.0), limit=Hinge(axes[i % 2], -0.1, 0.1))
        for i in range(20)
    )
    targets = [(1, 19, 0), (-1, 19, 0), (0, 19, 1), (0, 19, -1), (0.5, 19.5, 0.5)]
    pose = Pose.rest(skeleton)
    for change in range(50):
        goal = PositionGoal("joint19", targets[change % 5])
        before = measure(goal, skeleton, forward_kinematics(skeleton, pose)).distance
        result = solve(skeleton, pose, [goal])
        assert result.errors[0].distance <= before + 1e-6
        pose = result.pose


def test_best_stretch_towards_a_far_target_takes_two_iterations():
    rng = random.Random(5)
    skeleton = straight(20)
    for _ in range(50):
        direction = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        result = reach_for(skeleton, direction * 25.0, legal_pose(skeleton, rng))
        assert result.status is OPTIMAL and result.iterations <= 2
        assert result.errors[0].distance == pytest.approx(5.0, abs=1e-3)


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("lengths", [(3.0, 1.0), (1.0, 3.0), (0.5, 4.0, 1.0), (1.0, 0.5, 0.5, 5.0)])
def test_a_target_inside_the_hole_of_a_long_bone_is_missed_by_no_more_than_the_hole(lengths, solver):
    """All other bones together leave a ball about the root that the tip cannot enter."""
    skeleton = Skeleton(
        Joint(f"bone{i}", i - 1, (0.0, lengths[i - 1] if i else 0.0, 0.0), length=size)
        for i, size in enumerate(lengths)
    )
    rng, hole = random.Random(3), 2.0 * max(lengths) - sum(lengths)
    for reference in (None, *(legal_pose(skeleton, rng) for _ in range(3))):
        target = hole * rng.random() * Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        goal, chosen = PositionGoal(tip(skeleton), target), SolverSettings(solver=solver)
        result = solve(skeleton, legal_pose(skeleton, rng), [goal], chosen, reference=reference)
        assert result.status is OPTIMAL
        assert result.errors[0].distance == pytest.approx(hole - target.length, abs=2e-3)


def test_straight_chain_with_the_target_on_its_line_is_left():
    """The first joint turns both ways; the others may, like knees, bend to one side only."""
    for limit in (None, SwingTwist(Cone(2.0)), Hinge(Z, 0.0, 2.5), Hinge(Z, -2.5, 0.0)):
        skeleton = straight(4, limit).replace({"joint0": {"limit": Hinge(Z, -2.5, 2.5)}})
        assert reach_for(skeleton, (0.0, 2.5, 0.0)).status is CONVERGED, limit


def test_juckett_folded_pose_is_left():
    """Two links, both unturned, the target on the first one: both joints look along the line and see no
    way."""
    skeleton, start = hinged(0.0, 0.0)
    assert reach_for(skeleton, (0.7, 0.0, 0.0), start).status is CONVERGED


def test_iterate_gives_one_item_per_iteration():
    skeleton = straight(5, SwingTwist(Cone(0.5)))
    goal = PositionGoal("joint4", (3.0, 2.0, 1.0))
    items = list(
        iterate(skeleton, Pose.rest(skeleton), [goal], SolverSettings(solver=Solver.CCD, restarts=0))
    )
    counts = [item.iterations for item in items]
    assert counts == list(range(1, len(counts) + 1))
    assert all(item.status is ITERATION_LIMIT for item in items[:-1])
    errors = [item.errors[0].distance for item in items]
    assert all(later <= earlier + 1e-6 for earlier, later in itertools.pairwise(errors))


def test_no_item_of_iterate_gives_back_what_a_goal_served_first_has_won():
    """A place and, served later, a rotation that cannot be met with it."""
    for seed in (8, 11, 13, 16):
        rng = random.Random(seed)
        skeleton = straight(2 + seed % 3)
        start, name = legal_pose(skeleton, rng), tip(skeleton)
        place = PositionGoal(name, [rng.gauss(0.0, 2.0) for _ in range(3)])
        goals = [place, OrientationGoal(name, random_rotation(rng), priority=1)]
        items = list(iterate(skeleton, start, goals, SolverSettings(restarts=0)))
        errors = [item.errors[0].distance for item in items]
        slack = 2.0 * SolverSettings().position_tolerance
        assert all(later <= max(earlier, slack) + slack for earlier, later in itertools.pairwise(errors))
        assert [item.iterations for item in items] == list(range(1, len(items) + 1))


def test_the_closing_phase_ends_what_sweeps_only_creep_towards():
    skeleton = straight(50, SwingTwist(Cone(math.radians(15.0))))
    rng = random.Random(21)
    crept = 0
    for _ in range(12):
        target = tail(skeleton, legal_pose(skeleton, rng))
        closed = reach_for(skeleton, target)
        assert closed.status is CONVERGED
        swept = reach_for(skeleton, target, solver=Solver.CCD, max_iterations=closed.iterations)
        crept += swept.status is not CONVERGED
    assert crept >= 3


def test_restarts_leave_dead_ends_and_repeat_themselves():
    """Hinges that fold the wrong way round: the way to the target leads through poses that are farther
    off."""
    skeleton, start = hinged(1.4, -1.4, 1.4, lower=-1.5, upper=1.5)
    rng = random.Random(31)
    missed = again = 0
    for _ in range(60):
        target = tail(skeleton, legal_pose(skeleton, rng))
        once = reach_for(skeleton, target, start, restarts=0)
        more = reach_for(skeleton, target, start, restarts=20, seed=7)
        missed += once.status is not CONVERGED
        again += more.status is not CONVERGED
        assert more.errors[0].distance <= max(once.errors[0].distance, SOLVE)
        assert more == reach_for(skeleton, target, start, restarts=20, seed=7)
    assert missed > 0 and again == 0


def test_a_pose_library_is_tried_first():
    skeleton = straight(3, Hinge(Z, -2.0, 2.0))
    wanted = Pose.rest(skeleton).with_rotations(
        {0: Quaternion(Z, 1.5), 1: Quaternion(Z, -1.8), 2: Quaternion(Z, -1.7)}
    )
    target = tail(skeleton, wanted)
    stuck = Pose.rest(skeleton).with_rotations(
        {0: Quaternion(Z, -2.0), 1: Quaternion(Z, -2.0), 2: Quaternion(Z, -2.0)}
    )
    goals = [
        PositionGoal("joint2", target),
        DirectionGoal("joint2", (0, 1, 0), wanted_direction(skeleton, wanted)),
    ]
    entry = entry_from_pose("reach", skeleton, wanted)
    settings = SolverSettings(position_tolerance=SOLVE, angle_tolerance=SOLVE, restarts=1)
    result = solve(skeleton, stuck, goals, settings, poses=(entry,))
    assert result.status is CONVERGED
    for a, b in zip(result.pose.rotations, wanted.rotations, strict=True):
        assert angle_of(a.conjugated() @ b) < 0.01


def wanted_direction(skeleton, pose):
    return forward_kinematics(skeleton, pose)[-1].rotation @ Vector((0.0, 1.0, 0.0))


@pytest.mark.parametrize(
    ("solver", "most", "share"), [(Solver.CCD, 5, 0.5), (Solver.CCD_LEAST_SQUARES, 2, 0.0)]
)
def test_restarts_follow_an_iteration_limit_and_each_try_is_bounded(solver, most, share):
    """Chains of hinges whose passes run out from rest; two steps from a far start meet nothing."""
    skeleton = straight(8, Hinge(Z, -2.5, 2.5))
    rng = random.Random(5)
    late = reached = 0
    for _ in range(40):
        turns = {i: Quaternion(Z, rng.uniform(-2.5, 2.5)) for i in range(8)}
        target = tail(skeleton, Pose.rest(skeleton).with_rotations(turns))
        settings = {"solver": solver, "position_tolerance": 1e-5}
        once = reach_for(skeleton, target, max_iterations=most, restarts=0, **settings)
        if once.status is not ITERATION_LIMIT:
            continue
        late += 1
        result = reach_for(skeleton, target, max_iterations=most, restarts=5, **settings)
        reached += result.status is CONVERGED
        # The first try, five other starts, the last try, and what settles the end.
        assert once.iterations <= 2 * most < result.iterations <= 8 * most
    assert late > 5 and reached >= share * late


def test_goals_in_conflict_are_optimal_and_a_pose_that_can_come_nearer_is_not():
    """An arm between two targets; the same, cut off before it has come near."""
    skeleton, far = straight(3), (0.0, 2.0, 2.0)
    goals = [PositionGoal("joint2", (2.0, 1.0, 0.0)), PositionGoal("joint2", (-2.0, 1.0, 1.0))]
    nearest = reach_for(skeleton, None, goal=goals)
    assert nearest.status is OPTIMAL
    middle = (tail(skeleton, nearest.pose) - Vector((0.0, 1.0, 0.5))).length
    assert middle <= SOLVE
    cut = reach_for(skeleton, far, max_iterations=1, restarts=0, solver=Solver.CCD, step_fraction=0.1)
    assert cut.status is ITERATION_LIMIT


def test_a_pose_that_single_precision_rounds_off_its_target_is_not_converged():
    """Single precision has steps of 4.8e-7 near 4, so 1e-9 is met in double precision alone."""
    rng, skeleton = random.Random(1), straight(5)
    for _ in range(5):
        target = tail(skeleton, legal_pose(skeleton, rng))
        result = reach_for(skeleton, target, position_tolerance=1e-9)
        assert 1e-9 < result.errors[0].distance < FLOAT32
        assert result.status is STALLED
