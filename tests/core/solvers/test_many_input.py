"""What `solve_many` refuses, and input at the edge of what it takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from chains import straight
from mathutils import Quaternion
from pose_arrays import arrays

from ccd_rig import (
    BalanceGoal,
    DirectionGoal,
    Goal,
    InvalidInput,
    Joint,
    OrientationGoal,
    Pose,
    PositionGoal,
    Skeleton,
    SolveStatus,
    solve_many,
)


def elbow() -> Skeleton:
    return Skeleton([Joint("shoulder"), Joint("elbow", 0, (0.0, 1.0, 0.0))])


def refused(match: str, goals: Sequence[Goal] | None = None, **changes: object) -> None:
    """What `solve_many` says to three rest poses of `elbow`, with changed arguments."""
    skeleton = changes.pop("skeleton", elbow())
    poses = changes.pop("poses", [Pose.rest(skeleton)] * 3)
    goals = [PositionGoal("elbow", (1.0, 1.0, 0.0))] if goals is None else goals
    with pytest.raises(InvalidInput, match=match):
        solve_many(skeleton, poses, goals, **changes)


def test_poses_are_checked() -> None:
    rotations, translations = arrays([Pose.rest(elbow())] * 20)
    bad = rotations.copy()
    bad[17, 1, 2] = np.nan
    refused(r"pose 17: rotation of joint 'elbow' is not finite", poses=(bad, translations))
    bad = rotations * np.where(np.arange(20) == 4, 1.1, 1.0)[:, None, None]
    refused(r"pose 4: rotation of joint 'shoulder' must be a unit", poses=(bad, translations))
    bad = translations.copy()
    bad[3, 0, 0] = np.inf
    refused(r"pose 3: translation of joint 'shoulder' is not finite", poses=(rotations, bad))
    bad[3, 0, 0] = 1e20
    refused(r"pose 3: translation of joint 'shoulder' must not be farther", poses=(rotations, bad))
    refused(
        r"rotations of the poses must be an array \(B, 2, 4\), not", poses=(rotations[:, :1], translations)
    )
    refused(r"array \(B, 2, 4\) of numbers", poses=("no", translations))
    refused(
        r"as many translations as rotations of the poses: 20, not 19", poses=(rotations, translations[1:])
    )
    refused(
        r"pose 1 is for 3 joints, but the skeleton has 2", poses=[Pose.rest(elbow()), Pose.rest(straight(3))]
    )
    refused(r"the poses must be a sequence of Pose", poses=[1, 2])
    refused(r"reference pose for each of 3 poses, not 1", reference=[Pose.rest(elbow())])
    held = arrays([Pose.rest(elbow())] * 3)
    held[0][2, 0] = np.nan
    refused(r"reference pose 2: rotation of joint 'shoulder' is not finite", reference=held)


def test_arguments_of_other_types_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the skeleton must be a Skeleton, not None"):
        solve_many(None, [], [PositionGoal("elbow", (1.0, 1.0, 0.0))])
    refused(r"the poses must be a sequence of Pose", poses=5)
    refused(r"the poses must be a sequence of Pose", poses=(pose for pose in ()))
    refused(r"goals must be a sequence, not 5", goals=5)
    refused(r"goals must be a sequence, not <generator", goals=(goal for goal in ()))
    refused(r"settings must be SolverSettings or None, not 5", settings=5)
    refused(r"targets must be a sequence, not 5", targets=5)
    refused(r"targets must be a sequence, not None", targets=None)
    refused(r"targets must be a sequence, not <generator", targets=(point for point in ()))
    refused(r"the reference poses must be a sequence of Pose", reference=5)


def test_targets_are_checked() -> None:
    goals = [PositionGoal("elbow", (1, 1, 0)), OrientationGoal("elbow", Quaternion())]
    goals.append(DirectionGoal("elbow", (0, 1, 0), (0, 1, 0)))
    points = np.ones((3, 3))
    refused(r"targets or None for each of 3 goals, not 1", goals, targets=[points])
    refused(
        r"position goal on joint 'elbow'.*each of 3 poses, not 2", goals, targets=[points[1:], None, None]
    )
    points[1] = np.nan
    refused(
        r"position goal on joint 'elbow': target of pose 1 is not finite", goals, targets=[points, None, None]
    )
    refused(
        r"orientation goal on joint 'elbow' must be an array \(B, 4\)", goals, targets=[None, points, None]
    )
    unit = 2.0 * np.eye(4)[:3]
    refused(
        r"orientation goal on joint 'elbow': target of pose 0 must be a unit",
        goals,
        targets=[None, unit, None],
    )
    refused(
        r"direction goal on joint 'elbow': target of pose 0 must not be zero",
        goals,
        targets=[None, None, np.zeros((3, 3))],
    )
    refused(r"target of pose 0 must not be farther", goals, targets=[np.full((3, 3), 1e20), None, None])


def test_what_makes_no_sense_is_refused() -> None:
    refused("at least one goal", [])
    refused("a goal must be one of PositionGoal", ["elbow"])
    refused("settings must be SolverSettings", settings=3)
    refused("there is no joint 'hand'", [PositionGoal("hand", (1, 1, 0))])
    refused("no joint has a mass", [BalanceGoal((0, 0, 0))])


def test_no_poses_and_no_freedom() -> None:
    skeleton, goal = elbow(), PositionGoal("elbow", (1.0, 1.0, 0.0))
    none = solve_many(skeleton, [], [goal])
    assert len(none) == 0 and none.rotations.shape == (0, 2, 4) and none.distances.shape == (0, 1)
    stiff = skeleton.replace({name: {"stiffness": 1.0} for name in ("shoulder", "elbow")})
    found = solve_many(stiff, [Pose.rest(stiff)], [goal])
    assert found.pose(0) == Pose.rest(stiff) and found.statuses == (SolveStatus.OPTIMAL,)
