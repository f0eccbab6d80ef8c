"""A walk whose base is swapped from foot to foot: the planted foot stays planted."""

from __future__ import annotations

import math

import pytest
from chains import EXACT, FLOAT32, bones, tail
from mathutils import Quaternion, Vector

from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import Ellipse, EulerBox, Hinge, SwingTwist, violation
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import SolverSettings
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.skeleton.rerooting import reroot
from ccd_rig.solvers.solve import solve

DOWN = Quaternion((0.0, 0.0, 1.0), math.pi)
"""Turns +Y to -Y: legs hang down."""


def walker():
    """Pelvis at height 2 (Y up), legs of two bones of length 1, knees that bend one way, feet along +X."""
    knee = Hinge((0.0, 0.0, 1.0), -2.5, 0.0)
    hip = EulerBox("XYZ", (-0.3, -0.3, -1.2), (0.3, 0.3, 1.2))
    ankle = SwingTwist(Ellipse(-0.4, 0.4, -1.2, 1.2), (-0.2, 0.2))
    joints = [Joint("pelvis", -1, (0.0, 2.0, 0.0), length=0.4, mass=10.0)]
    for side, z in (("L", 0.15), ("R", -0.15)):
        first = len(joints)
        joints += [
            Joint(f"thigh.{side}", 0, (0.0, 0.0, z), DOWN, 1.0, hip, mass=3.0),
            Joint(f"shin.{side}", first, (0.0, 1.0, 0.0), Quaternion(), 1.0, knee, mass=2.0),
            Joint(
                f"foot.{side}",
                first + 1,
                (0.0, 1.0, 0.0),
                Quaternion((0.0, 0.0, 1.0), math.pi / 2),
                0.3,
                ankle,
                mass=1.0,
            ),
        ]
    return Skeleton(joints)


def test_walker_swaps_its_base_from_foot_to_foot():
    """Forty frames of a walk; in each stance the planted foot is the base and does not move at all."""
    skeleton = walker()
    size = 2.4
    bent = {
        skeleton.index("thigh.L"): Quaternion((0.0, 0.0, 1.0), 0.35),
        skeleton.index("thigh.R"): Quaternion((0.0, 0.0, 1.0), 0.35),
        skeleton.index("shin.L"): Quaternion((0.0, 0.0, 1.0), -0.7),
        skeleton.index("shin.R"): Quaternion((0.0, 0.0, 1.0), -0.7),
        skeleton.index("foot.L"): Quaternion((0.0, 0.0, 1.0), 0.35),
        skeleton.index("foot.R"): Quaternion((0.0, 0.0, 1.0), 0.35),
    }
    body, pose = skeleton, Pose.rest(skeleton).with_rotations(bent)
    ground = {side: bones(body, pose)[f"foot.{side}"].translation.copy() for side in "LR"}
    hips = bones(body, pose)["pelvis"].translation.copy()
    planted, slide, jump, worst = "L", 0.0, 0.0, 0.0
    body, pose = reroot(body, pose, "foot.L")
    anchor = bones(body, pose)["foot.L"]
    entries = len(body)
    for frame in range(40):
        phase = frame % 10
        if phase == 0 and frame:
            before = bones(body, pose)
            planted = "R" if planted == "L" else "L"
            body, pose = reroot(body, pose, f"foot.{planted}")
            after = bones(body, pose)
            jump = max(
                jump, *((before[n].translation - after[n].translation).length for n in before if n in after)
            )
            anchor = after[f"foot.{planted}"]
        share = (phase + 1) / 10
        swinging = "R" if planted == "L" else "L"
        # Where the feet and hips should be: each step is 0.6 long but the first, which is half of it.
        steps = frame // 10
        start = 0.0 if steps == 0 else 0.3 * (steps - 1)
        foot = ground[swinging] + Vector(
            (start + (0.3 * (steps + 1) - start) * share, 0.2 * math.sin(math.pi * share), 0.0)
        )
        middle = hips + Vector((0.3 * (steps + share) - 0.15 * min(steps + share, 1.0), 0.0, 0.0))
        goals = [
            PositionGoal("pelvis", middle, offset=(0.0, 0.0, 0.0)),
            PositionGoal("pelvis", middle + Vector((0.0, 0.4, 0.0))),  # upright
            PositionGoal(f"foot.{swinging}", foot, offset=(0.0, 0.0, 0.0)),
            PositionGoal(f"foot.{swinging}", foot + Vector((0.3, 0.0, 0.0))),  # flat
        ]
        result = solve(body, pose, goals, SolverSettings(position_tolerance=0.03, max_iterations=300))
        pose = result.pose
        worst = max(worst, *(error.distance for error in result.errors))
        for joint, rotation in zip(body.joints, pose.rotations, strict=True):
            assert joint.limit is None or violation(joint.limit, rotation) <= FLOAT32
        now = bones(body, pose)[f"foot.{planted}"]
        slide = max(
            slide, (now.translation - anchor.translation).length, angle_between(now.rotation, anchor.rotation)
        )
        assert len(body) == entries
    travelled = bones(body, pose)["pelvis"].translation.x
    print(f"walk: slide {slide:.2e}, jump at a swap {jump:.2e}, goals off by {worst:.3f}, x {travelled:.2f}")
    assert slide <= EXACT * size
    assert jump <= EXACT * size
    assert worst <= 0.1
    assert travelled > 1.0
    # Standing on the pelvis again, nothing is out of its limit.
    back, there = reroot(body, pose, "pelvis")
    assert {j.name for j in back.joints} == {j.name for j in skeleton.joints}
    assert tail(back, there, "pelvis").x == pytest.approx(tail(body, pose, "pelvis").x, abs=EXACT * size)
    for joint, rotation in zip(back.joints, there.rotations, strict=True):
        assert joint.limit is None or violation(joint.limit, rotation) <= FLOAT32
