"""Frames between solved ones: what `settle` gives is inside the limits and where it says it is."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from mathutils import Matrix, Quaternion, Vector

from ccd_rig.limits.batch import Limits
from ccd_rig.limits.random_rotations import sample
from ccd_rig.limits.shapes import Cone, Ellipse, EulerBox, Hinge, Limit, SwingTwist, violation
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares import inbetweens
from ccd_rig.solvers.least_squares.inbetweens import Aims, Path, forward, guesses, room, settle
from ccd_rig.solvers.least_squares.least_turns import Facing, axes_of, turns_of

EXACT, SOLVE = 1e-12, 1e-4
WITHIN = 1e-5  # radians by which no limit may be broken
FLOAT32 = 2e-6

LIMITS = {
    "free": lambda r: None,
    "hinge": lambda r: Hinge(
        tuple(r.gauss(0, 1) for _ in range(3)), -r.uniform(0.2, 2.0), r.uniform(0.2, 2.0)
    ),
    "cone": lambda r: SwingTwist(Cone(r.uniform(0.2, 1.0)), (-r.uniform(0.1, 1.0), r.uniform(0.1, 1.0))),
    "ellipse": lambda r: SwingTwist(Ellipse(-r.uniform(0.2, 1.0), 0.5, -0.4, r.uniform(0.2, 1.0))),
    "euler": lambda r: EulerBox("XYZ", (-0.6, -0.3, -0.5), (r.uniform(0.2, 1.0), 0.3, 0.7)),
}


def chain(kinds: list[str], seed: int) -> Skeleton:
    r = random.Random(seed)
    joints = []
    for i, kind in enumerate(kinds):
        limit: Limit | None = LIMITS[kind](r)
        rest = Quaternion(Vector([r.gauss(0, 1) for _ in range(3)]), r.uniform(-0.5, 0.5))
        offset = (0.0, 1.0, 0.0) if i else (0.3, 0.2, 0.1)
        joints.append(Joint(f"j{i}", i - 1, Vector(offset), rest, limit=limit))
    return Skeleton(joints)


def path_of(skeleton: Skeleton, mobility: float = 1.0) -> Path:
    joints = skeleton.joints
    rests = np.array([joint.rest_rotation[:] for joint in joints]).T[..., None]
    shifts = np.array([joint.offset[:] for joint in joints]).T[..., None]
    matrices = inbetweens.matrices(rests / np.linalg.norm(rests, axis=0))
    limits = [joint.limit for joint in joints]
    return Path(limits, np.full(len(joints), mobility), matrices, shifts, np.array([[0.0], [1.0], [0.0]]))


def moving(skeleton: Skeleton, frames: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(4, n, F) legal rotations on the way between two poses, and (3, F) where the tip's end is in others."""
    legal, points, _ = facing(skeleton, frames, seed)
    return legal, points


def facing(skeleton: Skeleton, frames: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same, and (3, 3, F) how the tip is turned there."""
    r = random.Random(seed)
    ends = [
        np.array([sample(joint.limit, r)[:] for joint in skeleton.joints]) for _ in range(3)
    ]  # (n, 4) each
    between = guesses([0.0, 1.0], [ends[0], ends[1]], np.linspace(0.0, 0.4, frames))
    legal = np.array(
        [
            [joint.allowed(Quaternion(q))[:] for joint, q in zip(skeleton.joints, pose, strict=True)]
            for pose in between
        ]
    )
    nudged = guesses([0.0, 1.0], [ends[0], ends[2]], [0.02])[0]
    near = [guesses([0.0, 1.0], [pose, nudged], [0.08])[0] for pose in legal]
    points, turned = [], []
    for pose in near:
        rotations = tuple(
            joint.allowed(Quaternion(q)) for joint, q in zip(skeleton.joints, pose, strict=True)
        )
        transforms = forward_kinematics(skeleton, Pose(rotations, Pose.rest(skeleton).translations))
        points.append(tuple(transforms[-1].translation + transforms[-1].rotation @ Vector((0.0, 1.0, 0.0))))
        turned.append(np.array(transforms[-1].rotation.to_matrix()))
    return legal.transpose(2, 1, 0), np.array(points).T, np.array(turned).transpose(1, 2, 0)


def at(targets: np.ndarray, tolerance: float = SOLVE) -> Aims:
    return Aims(targets, np.full(targets.shape[1], tolerance))


def tip_of(skeleton: Skeleton, rotations: np.ndarray) -> Vector:
    pose = Pose(tuple(map(Quaternion, rotations)), Pose.rest(skeleton).translations)
    transform = forward_kinematics(skeleton, pose)[-1]
    return transform.translation + transform.rotation @ Vector((0.0, 1.0, 0.0))


KINDS = (
    ["free"] * 6,
    ["cone"] * 6,
    ["free", "hinge"] * 4,
    ["ellipse", "hinge"] * 3,
    ["euler"] * 6,
    list(LIMITS) * 2,
)


@pytest.mark.parametrize("kinds", KINDS, ids=" ".join)
@pytest.mark.parametrize("seed", range(8))
def test_what_is_settled_is_legal_and_where_it_says(kinds, seed):
    skeleton = chain(kinds, seed)
    guess, targets = moving(skeleton, 40, seed)
    found, off = settle(path_of(skeleton), guess, at(targets))
    left = off * SOLVE
    assert np.isfinite(found).all()
    for f in range(40):
        for j, joint in enumerate(skeleton.joints):
            assert joint.limit is None or violation(joint.limit, Quaternion(found[:, j, f])) <= WITHIN
        apart = (tip_of(skeleton, found[..., f].T) - Vector(targets[:, f])).length
        assert apart == pytest.approx(left[f], abs=FLOAT32 * len(kinds))
    start = [(tip_of(skeleton, guess[..., f].T) - Vector(targets[:, f])).length for f in range(40)]
    assert (left <= np.array(start) + FLOAT32 * len(kinds)).all()  # never farther off than the guess
    assert np.mean(off <= 1.0) >= 0.85  # the targets are near, and some pose reaches each of them


@pytest.mark.parametrize("kinds", KINDS, ids=" ".join)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("axis", [None, (0.0, 1.0, 0.0), (0.0, 0.6, -0.8)])
def test_last_joints_are_turned_as_well(kinds, seed, axis):
    """To a rotation, or so that an axis points somewhere."""
    skeleton, angle = chain(kinds, seed), 2.0 * SOLVE
    guess, targets, turned = facing(skeleton, 30, seed)
    aims = Aims(targets, np.full(30, SOLVE), frames=turned, angle_tolerance=angle)
    if axis is not None:
        pointing = np.einsum("ijf,j->if", turned, axis)
        aims = Aims(targets, np.full(30, SOLVE), None, pointing, np.array(axis), angle)
    found, off = settle(path_of(skeleton), guess, aims)
    for f in range(30):
        for j, joint in enumerate(skeleton.joints):
            assert joint.limit is None or violation(joint.limit, Quaternion(found[:, j, f])) <= WITHIN
        pose = Pose(tuple(map(Quaternion, found[..., f].T)), Pose.rest(skeleton).translations)
        here = forward_kinematics(skeleton, pose)[-1].rotation
        apart = (tip_of(skeleton, found[..., f].T) - Vector(targets[:, f])).length
        if axis is None:
            away = Quaternion(here).rotation_difference(Matrix(turned[..., f]).to_quaternion()).angle
            away = min(away, math.tau - away)
        else:
            away = (here @ Vector(axis)).angle(Vector(pointing[:, f]))
        assert max(apart / SOLVE, away / angle) == pytest.approx(off[f], abs=0.1, rel=1e-3)
    # Limits take much of the room for six numbers at once; free joints leave it all.
    assert np.mean(off <= 1.0) >= (0.95 if kinds[0] == "free" else 0.3)


def test_turns_are_the_least():
    """Of all turns that do the same to first order: the pseudo-inverse (Penrose 1956) gives them."""
    r = np.random.default_rng(3)
    n, frames = 5, 4
    levers, way, turn = (r.normal(size=size) for size in ((3, n, frames), (3, frames), (3, frames)))
    way, turn = 1e-4 * way, 1e-4 * turn  # so that damping is next to nothing
    mobility, limits = np.array([1.0, 0.5, 1.0, 0.25, 1.0]), Limits([None] * n, np.ones(n))
    rotations = np.tile(np.array([1.0, 0.0, 0.0, 0.0])[:, None, None], (1, n, frames))
    axes = axes_of(limits, rotations, np.tile(np.eye(3)[..., None, None], (1, 1, n, frames)), None)
    for facing_too in (False, True):
        todo = Facing(turn, None, 0.7) if facing_too else None
        found = turns_of(mobility, limits, levers, axes, way, todo)
        for f in range(frames):
            arms = [np.cross(np.eye(3), levers[:, i, f]).T for i in range(n)]  # columns: axis x lever
            moves = np.hstack([np.vstack([a, np.eye(3)]) if facing_too else a for a in arms])
            asked = np.concatenate((way[:, f], turn[:, f])) if facing_too else way[:, f]
            root = np.sqrt(np.repeat(mobility, 3))
            least = root * (np.linalg.pinv(moves * root) @ asked)
            assert np.abs(found[..., f].T.ravel() - least).max() <= 1e-3 * np.abs(least).max()


@pytest.mark.parametrize("given", ["frames", "directions"])
def test_half_a_turn_away_nothing_tells_the_way_round(given):
    """No warning, no NaN, and it does not pass for arrived."""
    skeleton = Skeleton(Joint(f"j{i}", i - 1, Vector((0.0, 1.0 * bool(i), 0.0))) for i in range(4))
    straight = np.zeros((4, 4, 2))
    straight[0] = 1.0
    points, tolerances = np.tile(np.array([[0.0], [4.0], [0.0]]), 2), np.full(2, SOLVE)
    if given == "frames":
        turned = np.tile(np.diag([-1.0, 1.0, -1.0])[..., None], 2)
        aims = Aims(points, tolerances, frames=turned, angle_tolerance=SOLVE)
    else:
        axis = np.array([1.0, 0.0, 0.0])
        aims = Aims(points, tolerances, None, np.tile(-axis[:, None], 2), axis, SOLVE)
    found, off = settle(path_of(skeleton), straight, aims)
    assert np.isfinite(found).all()
    assert (off > 1.0).all()


def test_a_frame_does_not_depend_on_those_beside_it():
    skeleton = chain(list(LIMITS) * 2, 3)
    guess, targets = moving(skeleton, 30, 3)
    together, off = settle(path_of(skeleton), guess, at(targets))
    for f in range(0, 30, 7):
        alone, apart = settle(path_of(skeleton), guess[..., [f]], at(targets[:, [f]]))
        assert np.abs(alone[..., 0] - together[..., f]).max() <= 1e-9
        assert apart[0] * SOLVE == pytest.approx(off[f] * SOLVE, abs=1e-9)


def test_the_same_input_gives_the_same_bits():
    skeleton = chain(["cone"] * 8, 1)
    guess, targets = moving(skeleton, 20, 1)
    one, two = (settle(path_of(skeleton), guess, at(targets))[0] for _ in range(2))
    assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("target", [(0.0, 100.0, 0.0), (0.3, 0.2, 0.1), (0.3, 4.2, 0.1), (0.3, -1.0, 0.1)])
def test_dead_ends_are_told_and_harm_nothing(target):
    """Out of reach, at the root, in line with a straight chain: no warning, no NaN, the distance is true."""
    skeleton = Skeleton(
        Joint(f"j{i}", i - 1, Vector((0.0, 1.0, 0.0) if i else (0.3, 0.2, 0.1))) for i in range(4)
    )
    straight = np.zeros((4, 4, 3))
    straight[0] = 1.0
    targets = np.tile(np.array(target)[:, None], 3)
    found, off = settle(path_of(skeleton), straight, at(targets))
    assert np.isfinite(found).all()
    for f in range(3):
        apart = (tip_of(skeleton, found[..., f].T) - Vector(target)).length
        assert apart == pytest.approx(off[f] * SOLVE, rel=1e-5, abs=FLOAT32 * 4)


@pytest.mark.parametrize("kind", [kind for kind in LIMITS if kind != "free"])
def test_limits_are_clamped_as_they_are_one_by_one(kind):
    """With all tolerance there is, nothing is left to do but to bring the guess inside the limits."""
    skeleton = chain([kind] * 12, 7)
    r = np.random.default_rng(7)
    guess = r.normal(size=(4, 12, 60))
    guess[:, :, 40:] *= np.array([0.0, 1.0, 0.0, 1.0])[:, None, None]  # half-turn swings
    guess[:, :, 50:] = np.array([0.0, 0.0, 1.0, 0.0])[:, None, None]  # half a turn of twist
    guess /= np.sqrt((guess * guess).sum(0))
    found, _ = settle(path_of(skeleton), guess, at(np.zeros((3, 60)), 1e9))
    for j, joint in enumerate(skeleton.joints):
        for f in range(60):
            wanted = joint.limit.project(*guess[:, j, f]) or guess[:, j, f]
            assert np.abs(found[:, j, f] - wanted).max() <= 1e-9, (j, f)


def test_joints_that_stay_are_left_alone():
    skeleton = chain(["cone"] * 5, 2)
    guess, targets = moving(skeleton, 10, 2)
    found, _ = settle(path_of(skeleton, 0.0), guess, at(targets))
    assert np.abs(found - guess).max() <= 1e-7  # but for their lengths, which are made 1


def test_forward_is_forward_kinematics():
    skeleton = chain(["free"] * 7, 5)
    rotations, _ = moving(skeleton, 3, 5)
    heads, frames = forward(path_of(skeleton), rotations, room(7, 3))
    for f in range(3):
        pose = Pose(tuple(map(Quaternion, rotations[..., f].T)), Pose.rest(skeleton).translations)
        for j, transform in enumerate(forward_kinematics(skeleton, pose)):
            assert np.abs(heads[:, j, f] - transform.translation[:]).max() <= 7 * FLOAT32
            assert np.abs(frames[..., j, f] - np.array(transform.rotation.to_matrix())).max() <= 7 * FLOAT32


def test_guesses_go_through_solved_frames_and_are_smooth():
    r = np.random.default_rng(4)
    keys = r.normal(size=(5, 3, 4)) * 0.2 + (1.0, 0.0, 0.0, 0.0)
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    at = [1.0, 4.0, 9.0, 10.0, 30.0]
    assert np.abs(guesses(at, keys, at) - keys).max() <= EXACT
    fine = np.linspace(1.0, 30.0, 5801)
    curve = guesses(at, keys, fine)
    speed = np.diff(curve, axis=0) / (fine[1] - fine[0])
    assert np.abs(np.diff(speed, axis=0)).max() <= 0.01  # no corner at a key: slopes are continuous
    signs = keys * np.where(np.arange(5) % 2, -1.0, 1.0)[:, None, None]
    flipped = guesses(at, signs, fine)
    assert np.abs(np.abs((flipped * curve).sum(-1)) - 1.0).max() <= 1e-9


def test_one_solved_frame_is_the_guess_everywhere():
    key = [[[1.0, 0.0, 0.0, 0.0], [math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0]]]
    assert np.array_equal(guesses([3.0], key, [3.0, 3.0]), np.array(key * 2))
