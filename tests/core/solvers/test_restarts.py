"""Starting poses: seeded, inside the limits, the library's nearest first, spread over the whole range."""

from __future__ import annotations

import math
import random

import pytest
from chains import FLOAT32, Z, entry_from_pose, legal_pose, random_skeleton, straight, tail, tip
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import Hinge, Slide, violation
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import Solver, SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.skeleton.pose_library import PoseEntry
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.restarts import FIRST_SPREAD, LAST_SPREAD, LIBRARY, StartSpace, starts
from ccd_rig.solvers.solve import solve

CONVERGED = SolveStatus.CONVERGED


def limits_of(skeleton: Skeleton) -> list[object]:
    return [joint.limit for joint in skeleton.joints]


def test_same_seed_same_poses() -> None:
    rng = random.Random(1)
    skeleton = random_skeleton(rng, 8)
    goals = [PositionGoal(tip(skeleton), Vector((1.0, 1.0, 0.0)))]
    entries = [entry_from_pose(f"{i}", skeleton, legal_pose(skeleton, rng)) for i in range(5)]
    arguments = (
        StartSpace(skeleton, goals, limits_of(skeleton), range(8), entries),
        Pose.rest(skeleton),
    )
    first, second, other = (list(starts(*arguments, seed, 12)) for seed in (7, 7, 8))
    assert first == second
    assert first[:LIBRARY] == other[:LIBRARY] and first[LIBRARY:] != other[LIBRARY:]
    assert len(first) == 12
    # Fewer are the beginning of more.
    assert list(starts(*arguments, 7, 5)) == first[:5]


@pytest.mark.parametrize("seed", range(30))
def test_starts_are_inside_and_move_only_what_may_move(seed: int) -> None:
    rng = random.Random(seed)
    skeleton = random_skeleton(rng, 7).replace({"joint3": {"slides": (Slide((1.0, 1.0, 0.0), -0.5, 2.0),)}})
    pose = legal_pose(skeleton, rng)
    movable = sorted(rng.sample(range(7), 4))
    entries = [PoseEntry("wild", {joint.name: Quaternion((0.0, 1.0, 0.0, 0.0)) for joint in skeleton.joints})]
    goals = [PositionGoal(tip(skeleton), Vector((1.0, 1.0, 0.0)))]
    for start in starts(StartSpace(skeleton, goals, limits_of(skeleton), movable, entries), pose, seed, 8):
        for i, joint in enumerate(skeleton.joints):
            if i not in movable or joint.locked:
                assert (
                    start.rotations[i] == pose.rotations[i] and start.translations[i] == pose.translations[i]
                )
                continue
            if joint.limit is not None:
                assert violation(joint.limit, start.rotations[i]) <= FLOAT32
            for slide in joint.slides:
                along = Vector(slide.axis).dot(start.translations[i])
                assert slide.lower - FLOAT32 <= along <= slide.upper + FLOAT32


def test_nearest_entries_come_first_and_twins_once() -> None:
    rng = random.Random(4)
    skeleton = straight(5)
    known = [legal_pose(skeleton, rng) for _ in range(8)]
    goal = PositionGoal(tip(skeleton), tail(skeleton, known[5]))
    entries = [entry_from_pose(f"{i}", skeleton, pose) for i, pose in enumerate([*known, known[5]])]
    found = list(
        starts(StartSpace(skeleton, [goal], [None] * 5, range(5), entries), Pose.rest(skeleton), 0, 10)
    )
    assert found[0] == known[5]
    order = sorted(
        known, key=lambda pose: measure(goal, skeleton, forward_kinematics(skeleton, pose)).distance
    )
    assert found[:LIBRARY] == order[:LIBRARY]
    assert all(pose not in known for pose in found[LIBRARY:])


def test_entry_of_other_bones_is_refused() -> None:
    skeleton = straight(2)
    goal = PositionGoal("joint1", Vector((1.0, 0.0, 0.0)))
    with pytest.raises(InvalidInput, match="'wave'"):
        list(
            starts(
                StartSpace(skeleton, [goal], [None] * 2, range(2), [PoseEntry("wave", {"x": Quaternion()})]),
                Pose.rest(skeleton),
                0,
                3,
            )
        )


def test_nothing_to_start_from() -> None:
    skeleton = straight(2, stiffness=1.0)
    goal = PositionGoal("joint1", Vector((1.0, 0.0, 0.0)))
    assert (
        list(starts(StartSpace(skeleton, [goal], [None] * 2, range(2), ()), Pose.rest(skeleton), 0, 3)) == []
    )
    assert (
        list(starts(StartSpace(straight(2), [goal], [None] * 2, range(2), ()), Pose.rest(skeleton), 0, 0))
        == []
    )


def test_limited_joints_are_spread_over_their_range() -> None:
    skeleton = Skeleton([Joint("knee", limit=Hinge((1.0, 0.0, 0.0), 0.2, 2.2))])
    goal = PositionGoal("knee", Vector((0.0, 0.0, 1.0)))
    found = starts(StartSpace(skeleton, [goal], limits_of(skeleton), [0], ()), Pose.rest(skeleton), 3, 400)
    turns = sorted(2.0 * math.atan2(pose.rotations[0].x, pose.rotations[0].w) for pose in found)
    assert turns[0] >= 0.2 - FLOAT32 and turns[-1] <= 2.2 + FLOAT32
    for part in (0.25, 0.5, 0.75):
        assert turns[int(400 * part)] == pytest.approx(0.2 + 2.0 * part, abs=0.15)


def test_free_joints_leave_the_start_more_and_more() -> None:
    skeleton = straight(20)
    goal = PositionGoal(tip(skeleton), Vector((1.0, 0.0, 0.0)))
    start = legal_pose(skeleton, random.Random(5))
    means = []
    for pose in starts(StartSpace(skeleton, [goal], [None] * 20, range(20), ()), start, 3, 12):
        turns = [angle_between(a, b) for a, b in zip(start.rotations, pose.rotations, strict=True)]
        means.append(sum(turns) / len(turns))
    # The mean length of a vector whose three parts have deviation s is 1.6 s.
    assert means[0] == pytest.approx(1.6 * FIRST_SPREAD, rel=0.3)
    assert sum(means[-3:]) > 2.5 * sum(means[:3])
    assert means[-1] < 1.6 * LAST_SPREAD * 1.3


@pytest.mark.parametrize("seed", [131, 197, 348, 478])
def test_after_a_start_that_cannot_be_bent_into_its_window_others_are_tried(seed: int) -> None:
    """The library's pose has its last hinge bent a little to the wrong side, where its range ends."""
    rng = random.Random(seed)
    root = Hinge(Z, -rng.uniform(0.2, 1.5), rng.uniform(0.2, 1.5))
    hinges = [root, Hinge(Z, -2.0, 2.0), Hinge(Z, -1.0, 1.0), Hinge(Z, -0.1, 2.0)]
    skeleton = straight(4).replace({f"joint{i}": {"limit": hinge} for i, hinge in enumerate(hinges)})

    def drawn() -> Pose:
        turns = [*(rng.uniform(hinge.lower, hinge.upper) for hinge in hinges[:3]), rng.uniform(1.0, 2.0)]
        return Pose.rest(skeleton).with_rotations({i: Quaternion(Z, turn) for i, turn in enumerate(turns)})

    goal = PositionGoal("joint3", tail(skeleton, drawn()), max_extension=0.9, extension_joints=2)
    start = drawn()
    assert (
        solve(skeleton, start, [goal], SolverSettings(solver=Solver.CCD, restarts=0)).status is not CONVERGED
    )
    entry = PoseEntry(
        "stretched", {f"joint{i}": Quaternion(Z, turn) for i, turn in enumerate((0.0, 0.0, 0.0, -0.1))}
    )
    found = solve(skeleton, start, [goal], SolverSettings(solver=Solver.CCD, restarts=8), poses=[entry])
    assert found.status is CONVERGED
    root_of_part = forward_kinematics(skeleton, found.pose)[2].translation
    assert (tail(skeleton, found.pose) - root_of_part).length <= 0.9 * 2.0 + FLOAT32
