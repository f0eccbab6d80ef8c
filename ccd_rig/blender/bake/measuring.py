"""Errors of constraints in a motion at all frames: distances, angles, and the largest turn.

Forward kinematics of the keyed poses gives them in world metres and radians. `bake_frames` states the letters
of shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ...kernel import POLE_NOISE
from ...maths import batch
from ...maths.batch import Array, Mask
from ...maths.rotations import power
from ...settings import SolverSettings
from ...skeleton.kinematics import Transform, chain_bend
from ...solvers.pose_search import shared_search
from ...solvers.stepping import Work
from ..properties.constraint_kinds import pole_goal
from ..properties.constraint_values import Constraint
from ..scene.targets import TargetRows, orthonormal
from ..solve.methods import chain_ends, chain_joints, goal_targets, goals_of_rows
from .bake_frames import BakeFrames, Motion, Rows, Transforms
from .keyed_motion import KeyedMotion, joint_influences, with_chain_at
from .report import number

MEASURED = SolverSettings()
"""Settings of searches that measure alone."""
ROUNDING = 1e-5
"""Rounding of float32 bones end to end: a part of the chain's length, and ten times that in radians."""


def rounding(bake_frames: BakeFrames, joints: list[int]) -> float:
    """World metres of rounding at the end of joints, at the longest they are in any frame."""
    scale = float(np.abs(bake_frames.worlds).max())
    return ROUNDING * scale * float(bake_frames.lengths[:, joints].sum(axis=1).max())


def residuals(bake_frames: BakeFrames, motion: Motion) -> Work[tuple[Array, Array]]:
    """(F, C) distances from targets in world metres, and angles in radians; 0 without such a goal.

    Yields after each constraint. Distances are world metres whatever the scale of the armature object.
    """
    return (yield from errors(bake_frames, *transforms(bake_frames, motion)))


def misses(
    motion: KeyedMotion, solver: SolverSettings, blended: tuple[Array, Array]
) -> Work[tuple[Array, Array, Mask]]:
    """Errors of constraints by influence, and a mask of constraints that others carry off their targets.

    A constraint at full influence is measured at its target, at less influence at its blended goal
    (`_blended_goals`). Other constraints may turn or carry its chain by another influence; then it is not
    reached, whatever the solve met.

    Args:
        motion: measured before key reduction, whose error is reported separately.
        solver: tolerances in world metres and radians.
        blended: `residuals` of the blended motion.

    Returns:
        (F, C) distances in world metres, (F, C) angles in radians, (F, C) mask: met at full influence alone.
    """
    bake_frames = motion.bake_frames
    pairs = zip(motion.blended, motion.full, strict=True)
    if not are_partial(motion.bake_frames) and all(np.array_equal(a, b) for a, b in pairs):
        return *blended, np.zeros(blended[0].shape, np.bool_)
    at_full = yield from residuals(bake_frames, motion.full)
    partly = are_partial(bake_frames)
    whole = bake_frames.influences >= 1.0
    distances, angles = (np.where(whole, a, b) for a, b in zip(blended, at_full, strict=True))
    of_joints = joint_influences(bake_frames)
    for c in range(len(bake_frames.constraints) if partly else 0):
        rows = _mixed_rows(bake_frames, c, of_joints)
        yield
        if len(rows):
            places = transforms(bake_frames, motion.blended)
            distances[rows, c], angles[rows, c] = yield from _blended_errors(motion, c, rows, places)
    for row, helped in bake_frames.helped.items():
        for c, left in helped.left.items():  # the body goes as far as the influence has it
            for each in (distances, at_full[0]):
                each[row, c] = max(each[row, c] - left, 0.0)
    is_off, was_off = (
        (far > solver.position_tolerance) | (turned > solver.angle_tolerance)
        for far, turned in ((distances, angles), at_full)
    )
    return distances, angles, (bake_frames.influences > 0.0) & is_off & ~was_off


def played_misses(
    motion: KeyedMotion, played: Transforms, at_targets: tuple[Array, Array]
) -> Work[tuple[Array, Array]]:
    """(F, C) distances and angles by influence, like `misses`, of joints as they play.

    Args:
        motion: `motion_between` at these frames.
        at_targets: `errors` of the joints.
    """
    distances, angles = (each.copy() for each in at_targets)
    influences = motion.bake_frames.influences
    for c, constraint in enumerate(motion.bake_frames.constraints):
        rows = np.flatnonzero((influences[:, c] > 0.0) & (influences[:, c] < 1.0))
        if len(rows) and not constraint.kind.plants:
            distances[rows, c], angles[rows, c] = yield from _blended_errors(motion, c, rows, played)
    return distances, angles


def _blended_errors(motion: KeyedMotion, c: int, rows: Rows, places: Transforms) -> Work[tuple[Array, Array]]:
    """(R,) distances and angles of placed joints from the goals of constraint `c` at partial influence."""
    bake_frames = motion.bake_frames
    targets = bake_frames.targets.at(slice(None), [c]).copy()
    targets.put(rows, _blended_goals(motion, c, rows))
    alone = replace(
        bake_frames,
        constraints=(bake_frames.constraints[c],),
        targets=targets,
        influences=bake_frames.influences[:, [c]],
    )
    far, turned = yield from errors(alone, *places)
    return far[rows, 0], turned[rows, 0]


def are_partial(bake_frames: BakeFrames) -> bool:
    """Whether a constraint has an influence between 0 and 1 at a frame."""
    return bool(((bake_frames.influences > 0.0) & (bake_frames.influences < 1.0)).any())


def _mixed_rows(bake_frames: BakeFrames, c: int, of_joints: Array) -> Rows:
    """Rows with constraint `c` at partial influence, whose chain others turn or carry by another influence.

    `of_joints`: (F, J) influences of joints.
    """
    constraint, influences = bake_frames.constraints[c], bake_frames.influences[:, c]
    rows = np.flatnonzero((influences > 0.0) & (influences < 1.0))
    if constraint.kind.plants:
        return rows[:0]
    chain = set(chain_joints(bake_frames.skeleton, constraint))
    skeleton = bake_frames.skeleton
    moving = range(len(skeleton)) if constraint.kind.balances else skeleton.chain(constraint.tip)
    others = of_joints[np.ix_(rows, [j for j in moving if j not in chain])]
    same = of_joints[np.ix_(rows, sorted(chain))] == influences[rows, None]
    return rows[~(same.all(axis=1) & ((others == 0.0) | (others == 1.0)).all(axis=1))]


def _blended_goals(motion: KeyedMotion, c: int, rows: Rows) -> TargetRows:
    """The goals of constraint `c` at rows with partial influence.

    The goal is the effector under the constraint's influence alone, plus two shifts. One is the error of the
    solve, the other the share of influence in the shift by other constraints. At full influence this is the
    target. At the least influence it is the base pose as others carry it. A pole moves and turns likewise
    with the chain's line and bend; without a bend it lies on the line and constrains nothing.
    """
    bake_frames = motion.bake_frames
    constraint, influences = bake_frames.constraints[c], bake_frames.influences[:, c]
    full = transforms(bake_frames, motion.full)
    alone, whole = (
        transforms(bake_frames, with_chain_at(motion, c, each))
        for each in (influences, np.ones_like(influences))
    )
    ends = [points(bake_frames, constraint, *each)[rows] for each in (alone, full, whole)]
    shares = influences[rows]
    moved = ends[0] - ends[1] + shares[:, None] * (ends[1] - ends[2])
    j = bake_frames.skeleton.index(constraint.rotation_bone or constraint.tip) if constraint.tip else 0
    turns = [batch.unit(each[1][rows, j], axis=-1) for each in (alone, full, whole)]
    back = batch.multiply(batch.conjugate(turns[2].T), turns[1].T)
    still = np.zeros_like(turns[0])
    still[:, 0] = 1.0
    back = batch.slerp(still, back.T, shares, axis=-1).T
    turned = batch.multiply(batch.multiply(turns[0].T, back), batch.conjugate(turns[1].T)).T
    wanted = bake_frames.targets.at(rows, [c])
    goals = wanted.rotated(turned[:, None])._replace(points=wanted.points + moved[:, None])
    if not np.isnan(wanted.poles).any():
        for k, row in enumerate(rows.tolist()):
            bends = [_bend_frame(bake_frames, c, row, each) for each in (alone, full, whole)]
            pole = _blended_pole(Vector(wanted.poles[k, 0]), bends, float(influences[row]))
            goals.poles[k, 0] = pole[:]
    return goals


def _bend_frame(
    bake_frames: BakeFrames, c: int, row: int, places: tuple[Array, Array]
) -> tuple[Vector, Quaternion | None]:
    """Root of a pole's chain, and the frame with Y along its line and Z along its bend, armature space.

    The frame is None for a straight chain. `places`: (F, J, 3) heads and (F, J, 4) rotations.
    """
    sample = bake_frames.targets.sample(row, c)
    constraint = sample.settings_of(bake_frames.constraints[c])
    joints = list(bake_frames.skeleton.chain(constraint.tip))
    skeleton = bake_frames.skeleton.part(joints).with_lengths(bake_frames.lengths[row, joints])
    placed = [
        Transform(Vector(head), Quaternion(turn).normalized())
        for head, turn in zip(*(each[row, joints].tolist() for each in places), strict=True)
    ]
    assert sample.pole is not None
    heads, end, axis, scale = pole_goal(skeleton, constraint, sample.pole).placed(skeleton, placed)
    bend = chain_bend(heads, end, axis, scale)
    if bend.length <= POLE_NOISE * scale:
        return heads[0], None
    line = end - heads[0]
    return heads[0], orthonormal(Matrix((line.cross(bend), line, bend)).transposed())


def _blended_pole(pole: Vector, bends: Sequence[tuple[Vector, Quaternion | None]], share: float) -> Vector:
    """A pole moved and turned with the chain, see `_blended_goals`.

    `bends`: `_bend_frame` of the chain at its influence, of all at full, and of the chain alone at full.
    """
    (root, alone), (full_root, full), (whole_root, whole) = bends
    if alone is None or full is None or whole is None:
        return root
    back = power(whole.conjugated() @ full, share)
    moved = root + share * (full_root - whole_root)
    turn: Quaternion = alone @ back @ full.conjugated()
    return moved + turn @ (pole - full_root)


def chain_sizes(bake_frames: BakeFrames) -> list[float]:
    """The largest length of each constraint's chain over all frames, world metres."""
    chains = [list(chain_joints(bake_frames.skeleton, row)) for row in bake_frames.constraints]
    scale = float(np.abs(bake_frames.worlds).max())
    return [float(bake_frames.lengths[:, chain].sum(axis=1).max()) * scale for chain in chains]


def transforms(bake_frames: BakeFrames, motion: Motion) -> Transforms:
    """Transforms of the joints in a motion."""
    return bake_frames.transforms(batch.unit(motion.rotations, axis=-1), motion.translations)


def errors(bake_frames: BakeFrames, heads: Array, axes: Array) -> Work[tuple[Array, Array]]:
    """Like `residuals`, for placed joints: (F, J, 3) heads and (F, J, 4) rotations."""
    constraints, worlds = bake_frames.constraints, bake_frames.worlds
    distances, angles = np.zeros_like(bake_frames.influences), np.zeros_like(bake_frames.influences)
    placing = [c for c, each in enumerate(constraints) if each.use_position and not each.kind.balances]
    if placing:
        ends = [points(bake_frames, constraints[c], heads, axes) for c in placing]
        misses = np.stack(ends, axis=1) - bake_frames.targets.points[:, placing]
        # Transform the difference, not each point, to keep precision far from the origin.
        distances[:, placing] = np.linalg.norm(np.einsum("fij,fkj->fki", worlds, misses), axis=-1)
    for c, constraint in enumerate(constraints):
        yield
        if constraint.kind.balances:
            misses = points(bake_frames, constraint, heads, axes) - bake_frames.targets.points[:, c]
            misses = np.einsum("fij,fj->fi", worlds, misses) * np.array(constraint.balance_axes)
            distances[:, c] = np.linalg.norm(misses, axis=-1)
        elif constraint.rotation != "NONE" or constraint.pole_target:
            in_force = np.flatnonzero(bake_frames.influences[:, c] > 0.0)
            if len(in_force):
                angles[in_force, c] = _angles(bake_frames, c, in_force, heads, axes)
    return distances, angles


def points(bake_frames: BakeFrames, constraint: Constraint, heads: Array, axes: Array) -> Array:
    """(F, 3) effector of a constraint: the tip's end, or the centre of mass."""
    if not constraint.kind.balances:
        return chain_ends(bake_frames.skeleton, constraint, bake_frames.lengths, heads, axes)
    shares, middles = mass_points(bake_frames, heads, axes)
    centre: Array = np.einsum("j,fji->fi", shares, middles)
    return centre


def mass_points(bake_frames: BakeFrames, heads: Array, axes: Array) -> tuple[Array, Array]:
    """(J,) shares of placed joints in the whole mass, and (F, J, 3) points where their masses sit."""
    joints = bake_frames.skeleton.joints
    masses, first = np.array([joint.mass for joint in joints]), [joint.length for joint in joints]
    places = np.array([joint.centre for joint in joints]) * (bake_frames.lengths / first)[..., None]
    return masses / masses.sum(), heads + batch.rotate(axes, places, axis=-1)


def speeds(rotations: Array, frames: Array) -> Array:
    """(F - 1, K) radians per frame of rotations (F, K, 4)."""
    rotations = batch.unit(rotations, axis=-1)
    angles: Array = batch.angles_between(rotations[:-1], rotations[1:], axis=-1)
    return angles / np.diff(frames)[:, None]


def span(frames: Array, run: slice, values: Array) -> tuple[float, float, float, int]:
    """First and last frame of a run, the frame of its largest value of (F,), and that row."""
    row = run.start + int(np.argmax(values[run]))
    return number(frames[run.start]), number(frames[run.stop - 1]), number(frames[row]), row


def _angles(bake_frames: BakeFrames, c: int, rows: Rows, heads: Array, axes: Array) -> Array:
    """(R,) the largest angle error of the goals of a constraint at rows."""
    constraint, angles = bake_frames.constraints[c], np.zeros(len(rows))
    joints = list(bake_frames.skeleton.chain(constraint.tip))
    places = np.ix_(rows, joints)
    lengths, heads, axes = bake_frames.lengths[places], heads[places], axes[places]
    kinds = np.zeros(len(rows), np.intp)
    if (lengths != lengths[:1]).any():
        kinds = np.unique(lengths, axis=0, return_inverse=True)[1].reshape(-1)
    for alike in (np.flatnonzero(kinds == k) for k in range(int(kinds.max()) + 1)):
        skeleton = bake_frames.skeleton.part(joints).shape.with_lengths(lengths[alike[0]].tolist())
        wanted = bake_frames.targets.at(rows[alike])
        goals, goal_settings = goals_of_rows(skeleton, constraint, wanted, c)
        search = shared_search(skeleton, goals, MEASURED)
        targets = [goal_targets(goal, wanted, c) for goal in goals]
        angles[alike] = search.measure(heads[alike], axes[alike], targets, goal_settings)[1].max(axis=1)
    return angles
