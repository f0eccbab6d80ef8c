"""The loop with several goals, and the settings and input that it refuses."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest
from chains import Z, legal_pose, straight, tail
from mathutils import Quaternion
from reaching import CONVERGED, reach_for

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import BalanceGoal, DirectionGoal, OrientationGoal, PositionGoal
from ccd_rig.limits.shapes import Hinge, Slide
from ccd_rig.settings import PRESET_FIELDS, PRESETS, Solver, SolverSettings, SolveStatus, Sweep
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import iterate, solve


def test_a_joint_that_does_not_inherit_rotation_is_carried_along():
    joints = [
        Joint("a"),
        Joint("b", 0, (0, 1, 0)),
        Joint("c", 1, (0, 1, 0), Quaternion(Z, 0.3), inherit_rotation=False),
        Joint("d", 2, (0, 1, 0)),
    ]
    skeleton = Skeleton(joints)
    rng = random.Random(9)
    for sweep in Sweep:
        for _ in range(20):
            target = tail(skeleton, legal_pose(skeleton, rng))
            assert reach_for(skeleton, target, sweep=sweep, max_iterations=2000).status is CONVERGED


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_iterations": 0}, "max_iterations"),
        ({"position_tolerance": 0.0}, "position_tolerance"),
        ({"position_tolerance": math.nan}, "position_tolerance"),
        ({"step_fraction": 2.0}, "step_fraction"),
        ({"stall_threshold": -1.0}, "stall_threshold"),
        ({"restarts": -1}, "restarts"),
        ({"step_feedback": 1.5}, "step_feedback"),
        ({"angle_tolerance": math.inf}, "angle_tolerance"),
        ({"sweep": "ROOT_TO_TIP"}, "sweep"),
    ],
)
def test_settings_refuse_what_makes_no_sense(fields, named):
    with pytest.raises(InvalidInput, match=named):
        SolverSettings(**fields)


def test_input_is_refused_by_name():
    skeleton = straight(2)
    rest = Pose.rest(skeleton)
    with pytest.raises(InvalidInput, match="at least one goal"):
        solve(skeleton, rest, [])
    with pytest.raises(InvalidInput, match="hand"):
        solve(skeleton, rest, [PositionGoal("hand", (0, 0, 0))])
    with pytest.raises(InvalidInput, match=r"joint1.*target"):
        PositionGoal("joint1", (0.0, math.nan, 0.0))
    with pytest.raises(InvalidInput, match="weight"):
        PositionGoal("joint1", (0.0, 0.0, 0.0), weight=0.0)
    with pytest.raises(InvalidInput, match="2 joints"):
        solve(straight(3), rest, [PositionGoal("joint1", (0, 0, 0))])


def test_presets_are_settings_that_differ_in_their_steps_alone():
    default = SolverSettings()
    assert PRESETS["DEFAULT"] == default
    assert PRESETS["LIMB"].step_fraction == 1.0
    assert 0.0 < PRESETS["TAIL"].error_reduction < 1.0
    for preset in PRESETS.values():
        steps = {name: getattr(default, name) for name in PRESET_FIELDS}
        assert dataclasses.replace(preset, **steps) == default


def test_a_start_that_meets_its_goals_is_converged_though_the_search_leads_away():
    """A reference pose and few short steps: what they lead to is farther, and the start is what counts."""
    skeleton = Skeleton([Joint("bone", limit=Hinge(Z, -2.0, 2.0))])
    start, reference = (
        Pose((Quaternion(Z, angle),), Pose.rest(skeleton).translations) for angle in (5e-4, 1.0)
    )
    goals = [PositionGoal("bone", (0.0, 1.0, 0.0), priority=number) for number in (1, 2)]
    chosen = SolverSettings(
        position_tolerance=1e-3, solver=Solver.CCD, max_iterations=2, step_fraction=0.35, restarts=0
    )
    result = solve(skeleton, start, goals, chosen, reference=reference)
    assert result.errors[0].distance <= 1e-3
    assert result.status is SolveStatus.CONVERGED


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"skeleton": None}, "the skeleton must be a Skeleton, not None"),
        ({"pose": 5}, "pose"),
        ({"goals": 5}, "goals must be a sequence, not 5"),
        ({"goals": (goal for goal in ())}, "goals must be a sequence, not <generator"),
        ({"settings": 5}, "settings must be SolverSettings or None, not 5"),
        ({"poses": 5}, "poses must be a sequence, not 5"),
        ({"poses": [5]}, "pose"),
        ({"reference": 5}, "pose"),
    ],
)
def test_arguments_of_other_types_are_refused(changes, said):
    skeleton = straight(2)
    known = {
        "skeleton": skeleton,
        "pose": Pose.rest(skeleton),
        "goals": [PositionGoal(skeleton.joints[-1].name, (1.0, 0.0, 0.0))],
    }
    for function in (solve, iterate):
        with pytest.raises(InvalidInput, match=said):
            list(function(**(known | changes)))


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("kind", ["direction", "balance"])
def test_a_goal_on_bones_without_length_weighs_as_much_in_any_unit(kind, solver):
    """Powers of two change no digit: one pose in metres, kilometres and millimetres."""
    poses = set()
    for unit in (2.0**-10, 1.0, 2.0**10):
        root = Joint("root", length=0.0, mass=1.0, mass_point=(0.3 * unit, 0.5 * unit, 0.0))
        arm = Joint(
            "arm",
            0,
            (0.0, unit, 0.0),
            length=unit * (kind == "direction"),
            mass=2.0,
            mass_point=(0.0, 0.4 * unit, 0.0),
        )
        skeleton = Skeleton([root, arm])
        goals = [
            PositionGoal("arm", (unit, 1.3 * unit, 0.2 * unit), weight=0.5),
            DirectionGoal("root", (0.0, 1.0, 0.0), (0.3, 1.0, 0.5)),
        ]
        if kind == "balance":
            goals = [BalanceGoal((0.2 * unit, 0.1 * unit, 0.0))]
        settings = SolverSettings(solver=solver, position_tolerance=unit * 2.0**-13, restarts=0)
        result = solve(skeleton, Pose.rest(skeleton), goals, settings)
        poses.add(tuple(turn[:] for turn in result.pose.rotations))
    assert len(poses) == 1


def test_slides_of_no_length_but_for_rounding_are_no_unit_of_length():
    slide = Slide((0.0, 1.0, 0.0), -5e-324, 5e-324)
    skeleton = Skeleton([Joint("root", length=0.0, slides=(slide,))])
    goal = OrientationGoal("root", Quaternion((0.8, 0.6, 0.0, 0.0)))
    result = solve(skeleton, Pose.rest(skeleton), [goal])
    assert result.status is SolveStatus.CONVERGED
