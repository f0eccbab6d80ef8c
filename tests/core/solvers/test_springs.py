"""Pulls with a largest force."""

import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig.goals import PositionGoal
from ccd_rig.maths.batch import angles_between, length
from ccd_rig.settings import Solver, SolverSettings
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers import motion, pose_search
from ccd_rig.solvers import springs as of_springs
from ccd_rig.solvers.motion import Frames, Kind, solve_motion
from ccd_rig.solvers.pose_search import PoseSearch
from ccd_rig.solvers.problem_tables import Bones
from ccd_rig.solvers.stepping import result_of


def searched(solver=Solver.CCD_LEAST_SQUARES, **window):
    """A search for the end of a chain that is curled up at rest, and its reference."""
    turns = [Quaternion((0.0, 0.0, 1.0), 0.9)] * 5
    joints = [
        Joint(f"j{k}", k - 1, (0.0, 1.0, 0.0) if k else (0.0, 0.0, 0.0), turn, length=1.0)
        for k, turn in enumerate(turns)
    ]
    skeleton = Skeleton(joints)
    goals = [PositionGoal(joints[-1].name, Vector(), **window)]
    return PoseSearch(skeleton, goals, SolverSettings(solver=solver)), Pose.rest(skeleton).arrays


def eased(search, near, points):
    """Where targets of the end are eased to, (R, 3)."""
    count = len(points)
    poses = tuple(np.tile(each, (count, 1, 1)) for each in near)
    bones, tolerances = Bones.of(search.skeleton), np.array([1e-6])
    (target,) = of_springs.springs(search, (0,)).eased(
        poses, [points], bones, tolerances, search.goal_settings
    )
    return target


def departure(search, near, point):
    """Sum of squared turns of the nearest pose, and the distance that is left."""
    solved = search.solve(*near, [np.array([point])], near)
    angles = angles_between(near[0], solved.rotations, axis=-1)
    return float((angles**2).sum()), float(solved.distances[0, 0])


def test_targets_that_ask_for_little_stay():
    search, near = searched()
    points = np.array([(1.0, 2.0, 0.5), (2.0, 1.0, -1.0), (-1.0, -1.0, 1.0)])
    assert (eased(search, near, points) == points).all()


def test_where_a_point_stays_behind_resistance_is_the_largest_force(monkeypatch):
    monkeypatch.setattr(of_springs, "FORCE", 20.0)
    search, near = searched()
    reach = search.reach
    for far in (1.0, 1.2, 3.0):
        target = far * reach * np.array((0.6, 0.8, 0.0))
        (end,) = eased(search, near, target[None])
        way = (target - end) / np.linalg.norm(target - end)
        step = 1e-3 * reach
        (more, missed), (less, _) = (departure(search, near, end - part * step * way) for part in (0.0, 1.0))
        assert missed < 1e-3 * reach
        assert (more - less) / (step / reach) == pytest.approx(20.0, rel=0.1)


def test_a_point_goes_steadily_out_of_reach():
    search, near = searched()
    reach = search.reach
    far = np.linspace(0.7, 1.3, 61)
    points = reach * far[:, None] * np.array((0.6, 0.8, 0.0))
    ends = eased(search, near, points)
    steps = length(np.diff(ends, axis=0), axis=-1)
    assert (ends[0] == points[0]).all()
    assert length(ends[-1] - points[-1], axis=-1) > 0.2 * reach
    assert steps.max() < 1.2 * reach * (far[1] - far[0])


def pulled_out_of_reach(steps):
    """The motion of the end as its target goes out of reach in steps, and holds there.

    Its targets before they are eased, after that, and after the solve.
    """
    search, near = searched()
    far = np.concatenate((np.linspace(0.5, 1.4, steps), np.full(10, 1.4)))
    size, whole = len(far), search.reach * far[:, None] * np.array((0.6, 0.8, 0.0))
    target, rows = eased(search, near, whole).copy(), np.arange(size)
    bones, tolerances = Bones.of(search.skeleton), np.array([1e-6])
    kind = Kind(search, (target,), bones, tolerances, None, pulls=((0, whole),))
    poses = (np.tile(each, (size, 1, 1)) for each in near)
    frames = Frames((kind,), np.zeros(size, np.intp), rows, *poses, rows, rows - 1, np.append(rows[1:], -1))
    alone = target.copy()
    solved, _ = result_of(solve_motion(frames, 5.0))
    return solved, whole, alone, target


@pytest.mark.parametrize(("steps", "part"), [(8, 0.6), (10, 0.3), (13, 0.3), (15, 0.3), (18, 0.5), (22, 0.3)])
def test_a_body_does_not_stop_at_once_where_its_point_stays_behind(monkeypatch, steps, part):
    """A joint turned by 15 to 31 degrees in a frame, and by 1 in the next."""
    largest = []
    for slows in (False, True):
        with monkeypatch.context() as at_once:
            if not slows:
                at_once.setattr(motion, "_slow_pulls", lambda *_: (yield 0))
            solved, whole, alone, target = pulled_out_of_reach(steps)
        met = (alone == whole).all(axis=1)
        assert 3 < met.sum() < steps
        assert (target[met] == whole[met]).all()
        assert (solved.statuses == 0).all()
        turns = np.degrees(angles_between(solved.rotations[1:], solved.rotations[:-1], axis=-1)).max(axis=1)
        largest.append((turns.max(), (turns[:-1] - turns[1:]).max()))
    (fastest, stop), (fast, slower) = largest
    assert stop > 14.0
    assert slower < part * stop
    assert fast < fastest + 0.1


def test_frames_far_from_where_a_point_stays_behind_keep_their_bits():
    _, whole, alone, target = pulled_out_of_reach(12)
    changed = (target != alone).any(axis=1)
    assert changed.any()
    assert not changed[(alone == whole).all(axis=1)].any()
    assert not changed[-6:].any()


def test_ccd_alone_pulls_without_end():
    search, near = searched(Solver.CCD)
    points = np.array([(20.0, 3.0, 0.0)])
    assert (eased(search, near, points) == points).all()


def test_a_reach_window_holds_while_springs_measure():
    """The end stops before its window does: the window is of the chain, not of its spring."""
    search, near = searched(max_extension=0.9)
    plain, _ = searched()
    point = np.array([(6.0, 8.0, 0.0)])
    ends = [length(eased(each, near, point), axis=-1)[0] for each in (search, plain)]
    assert ends[0] < 0.9 * 5.0 + 1e-3 < ends[1]


def test_a_hold_is_solved_once(monkeypatch):
    """Poses with the inputs of the pose before are copies of it; others have the same bits as alone."""
    search, near = searched()
    sizes, solve_poses = [], pose_search.solve_poses
    monkeypatch.setattr(
        pose_search, "solve_poses", lambda *inputs: (sizes.append(len(inputs[1])), solve_poses(*inputs))[1]
    )
    points = np.repeat([(1.0, 2.0, 0.5), (2.0, 1.0, -1.0), (9.0, 0.0, 0.0)], (3, 1, 4), axis=0)
    poses = tuple(np.tile(each, (8, 1, 1)) for each in near)
    solved = search.solve(*poses, [points], poses)
    assert max(sizes) == 3
    for k, point in enumerate(points):
        alone = search.solve(*near, [point[None]], near)
        assert (solved.rotations[k] == alone.rotations[0]).all()
        assert (solved.distances[k], solved.statuses[k]) == (alone.distances[0], alone.statuses[0])
