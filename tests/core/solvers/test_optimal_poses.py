"""OPTIMAL is true: random motions, judged by forward kinematics of their own, come no nearer."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from chains import legal_pose
from mathutils import Quaternion, Vector
from seeds import few_and_all

from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import Cone, EulerBox, Hinge, Slide, SwingTwist
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import Solver, SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.many import solve_many
from ccd_rig.solvers.solve import solve

SETTINGS = SolverSettings(restarts=0)
KNEE, CONE = Hinge((0.0, 0.0, 1.0), 0.3, 2.5), SwingTwist(Cone(0.5), (-0.5, 0.5))
LITTLE = 0.005
"""Part of a distance that random motions may win of a pose that is OPTIMAL: its steepness is at most 0.01."""


def torso(seed):
    """One or two limbs of 2 to 4 joints on a spine. The first limb's tip is asked for at about full reach,
    then one or two other points anywhere. Returns the skeleton, a random pose and the goals."""
    rng = random.Random(seed)
    joints, offset = [], Vector((0.0, 0.0, 0.0))

    def add(name, parent, offset):
        joints.append(Joint(name, parent, offset, length=rng.uniform(0.3, 1.0)))
        return len(joints) - 1, Vector((0.0, joints[-1].length, 0.0))

    top, spine = -1, rng.randint(1, 3)
    for k in range(spine):
        top, offset = add(f"spine{k}", top, offset)
    tips, reach = [], 0.0
    for side in range(rng.randint(1, 2)):
        parent, out = (
            top,
            offset + Vector(((-1) ** side * rng.uniform(0.0, 0.4), 0.0, rng.uniform(-0.2, 0.2))),
        )
        for k in range(rng.randint(2, 4)):
            parent, out = add(f"limb{side}{k}", parent, out)
        tips.append(joints[parent].name)
        reach = reach or sum(joint.length for joint in joints[spine:])
    skeleton = Skeleton(joints)
    asked = [tips[0], *rng.sample([f"spine{spine - 1}", *tips[1:]], rng.randint(1, len(tips)))]
    sizes = [rng.uniform(0.8, 1.3) * reach, rng.uniform(0.3, 2.5), rng.uniform(0.3, 2.5)]
    goals = [
        PositionGoal(name, size * Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized(), priority=rank)
        for rank, (name, size) in enumerate(zip(asked, sizes, strict=False))
    ]
    turns = [Quaternion([1.0] + [rng.gauss(0.0, 0.3) for _ in range(3)]) for _ in joints]
    return skeleton, Pose.rest(skeleton).with_rotations(dict(enumerate(q.normalized() for q in turns))), goals


def points_and_slopes(skeleton, turns, goals):
    """Of rotations (S, n, 3, 3): points (S, goals, 3), and how they move with rotation vectors of the joints,
    each about its own axes (S, goals, 3, 3 n)."""
    frames, heads = [], []
    for i, joint in enumerate(skeleton.joints):
        at = np.broadcast_to(np.array(joint.offset), (len(turns), 3))
        whole = joint.parent == -1
        frames.append(turns[:, i] if whole else frames[joint.parent] @ turns[:, i])
        heads.append(at if whole else heads[joint.parent] + np.einsum("sij,sj->si", frames[joint.parent], at))
    points, slopes = [], np.zeros((len(turns), len(goals), 3, 3 * len(frames)))
    for k, goal in enumerate(goals):
        i = skeleton.index(goal.joint)
        points.append(heads[i] + frames[i][:, :, 1] * skeleton.joints[i].length)
        while i != -1:
            arm = (points[k] - heads[i])[:, None]
            slopes[:, k, :, 3 * i : 3 * i + 3] = np.cross(frames[i].swapaxes(1, 2), arm).swapaxes(1, 2)
            i = skeleton.joints[i].parent
    return np.stack(points, 1), slopes


def turned(turns, vectors):
    """Rotations (S, n, 3, 3) followed by rotation vectors (S, 3 n), by Rodrigues' formula."""
    axes = vectors.reshape(len(vectors), -1, 3)
    size = np.linalg.norm(axes, axis=-1, keepdims=True)[..., None]
    x, y, z = np.moveaxis(axes, -1, 0) / np.maximum(size[..., 0, 0], 1e-12)
    zero = np.zeros_like(x)
    cross = np.stack((zero, -z, y, z, zero, -x, -y, x, zero), -1).reshape(*x.shape, 3, 3)
    return turns @ (np.eye(3) + np.sin(size) * cross + (1.0 - np.cos(size)) * cross @ cross)


def nearest_around(skeleton, pose, goals, rank, rng):
    """The least distance of a goal that a random search finds while those before it are not farther off, and
    the distance in the pose."""
    best = np.array([[np.array(q.to_matrix()) for q in pose.rotations]])
    targets = np.array([goal.target[:] for goal in goals])
    begin, _ = points_and_slopes(skeleton, best, goals)
    allowed = np.linalg.norm(begin[0] - targets, axis=1)
    nearest, size, tries = allowed[rank], 0.1, 0
    while size > 1e-3 and tries < 50:  # it shrinks where nothing nearer is found: smaller steps win little
        tries += 1
        tried = turned(np.repeat(best, 40, axis=0), size * rng.normal(size=(40, 3 * len(skeleton))))
        for _ in range(4):  # Newton's steps take the points of earlier goals back to where they were
            points, slopes = points_and_slopes(skeleton, tried, goals[:rank])
            rows = slopes.reshape(40, 3 * rank, -1)
            system = rows @ rows.swapaxes(1, 2) + 1e-9 * np.eye(3 * rank)
            off = (points - begin[:, :rank]).reshape(40, -1, 1)
            tried = turned(tried, -(rows.swapaxes(1, 2) @ np.linalg.solve(system, off))[..., 0])
        points, _ = points_and_slopes(skeleton, tried, goals)
        distances = np.linalg.norm(points - targets, axis=2)
        kept = (distances[:, :rank] <= allowed[:rank] + 1e-6).all(1)
        found = np.where(kept, distances[:, rank], np.inf)
        size *= 1.3 if found.min() < nearest else 0.6
        if found.min() < nearest:
            nearest, best = found.min(), tried[[found.argmin()]]
    return nearest, allowed[rank]


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("kinds", [(None, KNEE, CONE), (CONE,) * 4])
def test_a_pose_inside_limits_does_not_jump_where_a_target_leaves_the_sum_of_the_bones(solver, kinds):
    """The distance of a point from all that a tip can reach changes by no more than the point moves."""
    for seed in range(4):
        rng = random.Random(seed)
        lengths = [rng.uniform(0.5, 1.5) for _ in kinds]
        skeleton = Skeleton(
            Joint(f"bone{i}", i - 1, (0.0, lengths[i - 1] if i else 0.0, 0.0), length=size, limit=kinds[i])
            for i, size in enumerate(lengths)
        )
        aside = Vector((rng.gauss(0.0, 1.0), abs(rng.gauss(0.0, 1.0)), rng.gauss(0.0, 1.0))).normalized()
        start, reach = legal_pose(skeleton, rng), sum(lengths)
        results = []
        for part in (0.999, 1.001):
            goal = PositionGoal(skeleton.joints[-1].name, part * reach * aside)
            results.append(solve(skeleton, start, [goal], replace(SETTINGS, solver=solver)))
        inside, beyond = (result.errors[0].distance for result in results)
        assert abs(beyond - inside) <= 0.002 * reach + SETTINGS.position_tolerance, seed
        if solver is Solver.CCD_LEAST_SQUARES:
            assert results[1].status is SolveStatus.OPTIMAL, seed


@pytest.mark.parametrize("seeds", few_and_all(1, 60, 3))
def test_no_random_motion_beats_an_optimal_pose(seeds):
    """Where a spine serves a later goal, limbs on it have to make way, so that their tips stay."""
    optimal = 0
    for seed in seeds:
        skeleton, pose, goals = torso(seed)
        one, many = solve(skeleton, pose, goals, SETTINGS), solve_many(skeleton, [pose], goals, SETTINGS)
        assert many.statuses[0] is one.status
        assert many.pose(0) == one.pose
        if one.status is SolveStatus.OPTIMAL:
            optimal += 1
            for rank in range(1, len(goals)):
                rng = np.random.default_rng(seed)
                nearest, distance = nearest_around(skeleton, one.pose, goals, rank, rng)
                assert nearest >= (1.0 - LITTLE) * distance - SETTINGS.position_tolerance, (seed, rank)
    assert optimal > len(seeds) // 8


def boxed_point(orders, angles):
    """The tip of bones of length 1 along Y, turned by Euler angles (n, 3) of Blender's orders."""
    point = np.zeros(3)
    for order, turns in zip(orders[::-1], angles[::-1], strict=True):
        point[1] += 1.0
        for axis in map("XYZ".index, order):
            sine, cosine = np.sin(turns[axis]), np.cos(turns[axis])
            y, z = point[(axis + 1) % 3], point[(axis + 2) % 3]
            point[[(axis + 1) % 3, (axis + 2) % 3]] = cosine * y - sine * z, sine * y + cosine * z
    return point


@pytest.mark.parametrize("seeds", few_and_all(30, 400, 3))
def test_an_optimal_pose_in_a_corner_of_its_angles_is_the_nearest_of_its_neighbours(seeds):
    """The distance falls along no angle that has room to the side: a cosine of 0.01 of the lever or less.

    Borders of the first and the last angle meet at an oblique angle.
    """
    optimal, step = 0, 1e-5
    for seed in seeds:
        rng = random.Random(seed)
        orders = [rng.choice(("XYZ", "YXZ", "ZYX")) for _ in range(rng.randint(1, 2))]
        lower = np.array([[rng.uniform(-1.2, 0.0) for _ in range(3)] for _ in orders])
        upper = lower + [[rng.uniform(0.1, 1.0) for _ in range(3)] for _ in orders]
        limits = [EulerBox(*each) for each in zip(orders, lower.tolist(), upper.tolist(), strict=True)]
        skeleton = Skeleton(
            Joint(f"bone{i}", i - 1, (0.0, float(i > 0), 0.0), length=1.0, limit=limit)
            for i, limit in enumerate(limits)
        )
        target = rng.uniform(1.0, 4.0) * Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        start = legal_pose(skeleton, rng)
        goal, reference = PositionGoal(skeleton.joints[-1].name, target), rng.choice((None, start))
        result = solve(skeleton, start, [goal], SETTINGS, reference=reference)
        if result.status is not SolveStatus.OPTIMAL:
            continue
        optimal += 1
        turns = zip(result.pose.rotations, orders, strict=True)
        angles = np.array([turn.to_euler(order)[:] for turn, order in turns])
        for at in np.ndindex(angles.shape):
            for side, room in ((step, upper[at] - angles[at]), (-step, angles[at] - lower[at])):
                if room > 1e-4:
                    beside = angles.copy()
                    beside[at] += side
                    ways = [np.linalg.norm(boxed_point(orders, each) - target) for each in (angles, beside)]
                    assert (ways[0] - ways[1]) / step <= 0.03 * len(orders), (seed, at)
    assert optimal > len(seeds) // 2


@pytest.mark.parametrize("turn", [3.0, -3.0])
def test_a_hinge_of_a_whole_turn_has_no_end(turn):
    """Turned by any angle its poses are the same: its departure goes the shorter way."""
    z, side = Vector((0.0, 0.0, 1.0)), np.sign(turn)
    skeleton = Skeleton(
        Joint(f"joint{i}", i - 1, (0.0, 1.0 if i else 0.0, 0.0), limit=Hinge(z, -np.pi, np.pi))
        for i in range(3)
    )
    poses = []
    for first in (0.0, turn):
        reference, start = (
            Pose.rest(skeleton).with_rotations(
                {0: Quaternion(z, first + off), 1: Quaternion(z, 0.3 * side), 2: Quaternion(z, 0.4 * side)}
            )
            for off in (0.0, 0.6 * side)
        )
        target = Quaternion(z, first) @ Vector((-2.2 * side, -0.5, 0.0))
        result = solve(skeleton, start, [PositionGoal("joint2", target)], SETTINGS, reference=reference)
        assert result.status is SolveStatus.CONVERGED
        poses.append([Quaternion(z, -first) @ result.pose.rotations[0], *result.pose.rotations[1:]])
    for one, other in zip(*poses, strict=True):
        assert angle_between(one, other) < 1e-3


@pytest.mark.parametrize("seed", [40, 58, 60, 62, 74])
def test_oblique_slides_alone_come_as_near_as_their_ranges_allow(seed: int) -> None:
    """Joints that only slide: linear least squares in a box, by projected gradients."""
    rng = random.Random(seed)
    count = rng.choice((1, 2, 3))
    joints, axes, bounds = list[Joint](), list[Vector](), list[tuple[float, float]]()
    for i in range(count):
        axis = Vector([rng.choice((-1, 1)) * rng.uniform(0.3, 1.0) for _ in "xyz"]).normalized()
        bounds.append((-rng.uniform(0.2, 1.0), rng.uniform(0.2, 1.0)))
        axes.append(axis)
        fields = {"limit": Hinge((1, 0, 0), 0.0, 0.0), "slides": (Slide(axis, *bounds[-1]),)}
        joints.append(Joint(f"joint{i}", i - 1, (0.0, float(i > 0), 0.0), **fields))
    target = np.array([rng.gauss(0.0, 0.8), count + rng.gauss(0.0, 0.8), rng.gauss(0.0, 0.8)])
    ways, (lower, upper) = np.array(axes).T, np.array(bounds).T
    off, shifts = target - (0.0, float(count), 0.0), np.zeros(count)
    for _ in range(4000):
        shifts = np.clip(shifts - 0.3 / count * ways.T @ (ways @ shifts - off), lower, upper)
    skeleton = Skeleton(joints)
    goal = PositionGoal(f"joint{count - 1}", target)
    result = solve(skeleton, Pose.rest(skeleton), [goal], SolverSettings(restarts=0))
    assert result.errors[0].distance == pytest.approx(np.linalg.norm(ways @ shifts - off), abs=2e-4)
