# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a baked motion, measured after its keys are written, and its findings.

Findings are misses, jumps, slides, bones below the ground, limits, and loops that do not close. `bake_frames`
states the letters of shapes.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...limits.shapes import BatchLimits, Limit, as_hinge
from ...maths import batch
from ...maths.batch import Array, Mask
from ...maths.rotations import FULL_TURN
from ...motion.ground import Ground, LevelGround, seen_below
from ...settings import Solver, SolverSettings, SolveStatus
from ...skeleton.kinematics import bend_sides
from ...solvers.stepping import Work
from ..properties.constraint_values import Constraint
from ..scene.ground import ground_of_rig, rig_ground
from ..solve.methods import chain_joints, groups
from . import body_motion, measuring
from .bake_frames import BakeFrames, Motion, Relative, Rows
from .keyed_motion import KeyedMotion, moved_joints, rotated_joints
from .report import (
    GAVE_WAY,
    MET,
    REACHED,
    SEEN,
    SEEN_PART,
    SLERPED,
    STATUSES,
    BakeReport,
    Entries,
    Entry,
    Finding,
    FootSlip,
    FrameFit,
    Helped,
    LargestRotation,
    Loop,
    Smoothed,
    WeightedFit,
    number,
)
from .shot import Task
from .trouble import Fix, Trouble


@dataclass(frozen=True)
class Baked:
    """A baked motion with its forward kinematics."""

    bake_frames: BakeFrames
    motion: Motion  # the keyed motion
    solver: SolverSettings  # with the tolerances
    misses: tuple[Array, Array]  # (F, C) distances, world metres, and angles, radians, of the solved motion
    ended: NDArray[np.uint8]  # (F, C) numbers of `STATUSES`
    heads: Array  # (F, J, 3) of the keyed joints, armature space
    axes: Array  # (F, J, 4) their rotations, armature space

    @cached_property
    def chains(self) -> tuple[tuple[int, ...], ...]:
        """The joints that each constraint may turn."""
        return tuple(chain_joints(self.bake_frames.skeleton, row) for row in self.bake_frames.constraints)

    @cached_property
    def rotated(self) -> list[int]:
        """The joints with a keyed rotation."""
        return rotated_joints(self.bake_frames)

    @cached_property
    def speeds(self) -> Array:
        """(F - 1, K) radians per frame of these joints."""
        return measuring.speeds(self.motion.rotations[:, self.rotated], self.bake_frames.frames)

    def world(self, points: Array) -> Array:
        """(F, ..., 3) points of armature space in the world."""
        turned: Array = np.einsum("fij,f...j->f...i", self.bake_frames.worlds, points)
        return turned + self.bake_frames.places.reshape(-1, *(1,) * (points.ndim - 2), 3)

    def reached(self, c: int) -> Array:
        """(F, 3) effector of constraint `c`, armature space."""
        return measuring.points(self.bake_frames, self.bake_frames.constraints[c], self.heads, self.axes)

    def targets(self, c: int) -> Array:
        """(F, 3) target of constraint `c`, armature space."""
        return self.bake_frames.targets.points[:, c]

    @cached_property
    def sizes(self) -> list[float]:
        """`measuring.chain_sizes`."""
        return measuring.chain_sizes(self.bake_frames)

    def bone(self, j: int) -> str:
        """The name of a joint's bone."""
        return self.bake_frames.skeleton.joints[j].name


AROUND = 8
"""Steps on either side whose median is the usual speed."""
TIMES = 4.0
"""Ratio of a jump's speed to the usual speed around it."""
LEAST = np.radians(5.0)
"""Least radians per frame by which a jump is faster than usual."""
STRAIGHT = 0.985
"""Extension, as a part of its length, at which a chain bends fastest."""
LIMB = 4
"""Most joints of a limb."""
REACH = 0.98
"""The Max Extension that keeps a limb from that; longer chains would wind instead."""


@dataclass(frozen=True)
class Channels:
    """Keyed channels of bones, K in all: rotations, and then slides and the location of a root bone."""

    turned: list[int]  # joints
    placed: list[int]  # likewise
    movers: list[frozenset[int]]  # the joints that each constraint moves
    sizes: Array  # (placed,) the longest chain of these constraints, armature space

    @classmethod
    def of(cls, bake_frames: BakeFrames) -> Channels:
        """The channels of a bake."""
        tracks = bake_frames.tracks
        moved, placed = moved_joints(bake_frames), [*dict.fromkeys(bake_frames.sliding)]
        if tracks is not None:
            placed += {tracks.support_chains.root_bone}.difference(placed)
        planted = frozenset() if tracks is None else frozenset(tracks.keyed())
        placed = [j for j in placed if j in moved]
        movers, sizes = list[frozenset[int]](), dict.fromkeys(placed, 0.0)
        for c, row in enumerate(bake_frames.constraints):
            movers.append(frozenset(bake_frames.moved_by(c)) | (planted if row.kind.plants else frozenset()))
            for j in movers[-1].intersection(sizes):
                sizes[j] = max(sizes[j], bake_frames.size(c))
        return cls(rotated_joints(bake_frames), placed, movers, np.array(list(sizes.values())))

    @property
    def joints(self) -> list[int]:
        """(K,) the joint of each channel."""
        return [*self.turned, *self.placed]

    @cached_property
    def _places(self) -> dict[int, list[int]]:
        """The channels of each joint."""
        places: dict[int, list[int]] = {}
        for k, j in enumerate(self.joints):
            places.setdefault(j, []).append(k)
        return places

    def columns(self, c: int) -> list[int]:
        """The channels of the joints that constraint `c` moves."""
        return sorted(k for j in self.movers[c] for k in self._places.get(j, ()))

    def speeds(self, rotations: Array, translations: Array, frames: Array) -> Array:
        """(F - 1, K) radians per frame, or parts of the chain's length, of (F, J, 4) and (F, J, 3)."""
        turns = measuring.speeds(rotations[:, self.turned], frames)
        moves = (
            batch.length(np.diff(translations[:, self.placed], axis=0), axis=-1) / np.diff(frames)[:, None]
        )
        return np.hstack((turns, moves / self.sizes))

    def measures(self, k: int, speed: float, world: Array) -> dict[str, float]:
        """A jump of channel `k` as `angle` or `distance` of a finding; `world`: (3, 3) armature to world."""
        if k < len(self.turned):
            return {"angle": speed}
        scale = float(np.cbrt(np.abs(np.linalg.det(world))))
        return {"distance": speed * float(self.sizes[k - len(self.turned)]) * scale}


def jumps(baked: Baked) -> Iterator[Finding]:
    """Runs of frames at which bones of a constraint jump, and their reference poses do not."""
    bake_frames, keyed = baked.bake_frames, Channels.of(baked.bake_frames)
    frames, joints = bake_frames.frames, keyed.joints
    if len(frames) < 3 or not joints:
        return
    speeds = keyed.speeds(baked.motion.rotations, baked.motion.translations, frames)
    sudden = is_sudden(speeds, LEAST)
    if not sudden.any():
        return
    sudden &= keyed.speeds(bake_frames.reference_poses, bake_frames.translations, frames) < 0.5 * speeds
    for c, constraint in enumerate(bake_frames.constraints):
        columns = keyed.columns(c)
        is_active = bake_frames.influences[:, c] > 0.0
        jumping = sudden[:, columns].any(axis=1) & (is_active[1:] | is_active[:-1])
        if not jumping.any():
            continue
        fastest = np.where(sudden[:, columns], speeds[:, columns], 0.0)
        leaps, extension, chain = _target_jumps(baked, c), _extension(baked, c), baked.bake_frames.path(c)
        sides = bend_sides(baked.heads[:, chain], baked.reached(c), baked.bake_frames.size(c))
        for run in batch.runs(jumping):
            first, last, frame, step = measuring.span(frames[1:], run, fastest.max(axis=1))
            k = columns[int(np.argmax(fastest[step]))]
            follows, speed, around = bool(leaps[run].any()), float(fastest[step].max()), slice(step, step + 2)
            is_helped = not follows and k < len(keyed.turned) and joints[k] in baked.chains[c]
            yield Finding(
                Trouble.JUMP,
                constraint.name,
                baked.bone(joints[k]),
                first,
                last,
                frame,
                **keyed.measures(k, speed, bake_frames.worlds[step]),
                more=len({joints[columns[i]] for i in np.flatnonzero(sudden[run][:, columns].any(axis=0))})
                - 1,
                follows=follows,
                fix=_fix(baked, c, speed, extension[around], sides[around]) if is_helped else Fix.NONE,
            )
        sudden[np.ix_(jumping, columns)] = False  # told


def end_jumps(motion: KeyedMotion, way: int, here: Relative, beside: Relative) -> Iterator[Finding]:
    """Jumps of bones from an end of the range to the frame beside it, which the reference pose does not make.

    Args:
        way: -1 for the frame before the range, 1 for the frame after it.
        here, beside: at the end, and beside it.
    """
    bake_frames, keyed = motion.bake_frames, Channels.of(motion.bake_frames)
    row, around = (0, slice(AROUND + 1)) if way < 0 else (-1, slice(-AROUND - 1, None))
    joints, rotations = keyed.joints, here.rotations.T
    solved, reference = (
        batch.unit(each[row].T) for each in (motion.keyed.rotations, bake_frames.reference_poses)
    )
    bases = batch.multiply(rotations, batch.conjugate(solved))
    shifts = batch.rotate(bases, (bake_frames.translations[row] - motion.keyed.translations[row]).T).T
    angles, without = (
        np.concatenate(
            (
                batch.angles_between(turns, beside.rotations.T)[keyed.turned],
                batch.length(places - beside.places, axis=-1)[keyed.placed] / keyed.sizes,
            )
        )
        for turns, places in (
            (rotations, here.places),
            (batch.multiply(bases, reference), here.places + shifts),
        )
    )
    near = (motion.keyed.rotations, motion.keyed.translations, bake_frames.frames)
    speeds = keyed.speeds(*(each[around] for each in near))
    usual = np.median(speeds, axis=0) if len(speeds) else np.zeros(len(joints))
    sudden = (angles > TIMES * usual + LEAST) & (without < 0.5 * angles)
    at = number(bake_frames.frames[row] + max(way, 0))
    for c, constraint in enumerate(bake_frames.constraints):
        columns = [k for k in keyed.columns(c) if sudden[k]]
        if columns and bake_frames.influences[row, c] > 0.0:
            sudden[columns] = False
            k = max(columns, key=lambda k: float(angles[k]))
            measure = keyed.measures(k, float(angles[k]), bake_frames.worlds[row])
            more = len({joints[k] for k in columns}) - 1
            bone = bake_frames.skeleton.joints[joints[k]].name
            yield Finding(Trouble.JUMP, constraint.name, bone, at, at, at, **measure, more=more)


def is_sudden(speeds: Array, least: float) -> Mask:
    """(N, K) mask of speeds far above the medians before and after, by `least` at least.

    The medians leave out the steps next to each, as a jump may take three.
    """
    sudden = np.zeros(speeds.shape, np.bool_)
    fast = np.flatnonzero((speeds > least).any(axis=0))
    if not len(fast):
        return sudden
    skipped, columns = 2, speeds[:, fast]
    padded = np.pad(columns, ((AROUND + skipped - 1, AROUND + skipped - 1), (0, 0)), mode="symmetric")
    medians = np.median(np.lib.stride_tricks.sliding_window_view(padded, AROUND, axis=0), axis=-1)
    before, after = medians[: len(columns)], medians[AROUND + 2 * skipped - 1 :][: len(columns)]
    sudden[:, fast] = columns > TIMES * np.maximum(before, after) + least
    return sudden


def _target_jumps(baked: Baked, c: int) -> Mask:
    """(N,) mask of steps at which the target of a constraint jumps as well."""
    bake_frames, frames = baked.bake_frames, baked.bake_frames.frames
    steps = np.linalg.norm(np.diff(baked.targets(c), axis=0), axis=-1)[:, None] / np.diff(frames)[:, None]
    jumping = is_sudden(steps, LEAST * baked.bake_frames.size(c))[:, 0]
    turns = bake_frames.targets.rotations[:, c]
    if not np.isnan(turns).any():
        speeds = measuring.speeds(turns[:, None], frames)
        jumping |= is_sudden(speeds, LEAST)[:, 0]
    return jumping


def _fix(baked: Baked, c: int, angle: float, extension: Array, sides: Array) -> Fix:
    """The setting that helps against a jump.

    Args:
        angle: of the jump.
        extension: (2,) `_extension` before and after it.
        sides: (2, 3) `bend_sides` before and after it.
    """
    constraint = baked.bake_frames.constraints[c]
    if not constraint.kind.reaches or not constraint.use_position:
        return Fix.NONE
    straight = extension.max() >= STRAIGHT
    if straight and constraint.method == "TWO_BONE" and constraint.soft == 0.0:
        return Fix.SOFT
    is_limb = len(baked.chains[c]) <= LIMB and constraint.method in ("CCD", "TWO_BONE_TIP")
    if straight and is_limb and constraint.max_extension > REACH and constraint.soft == 0.0:
        return Fix.EXTENSION
    swings = sides.any(axis=1).all() and float(batch.dot(*sides)) < np.cos(0.5 * min(angle, np.pi))
    if swings and not constraint.pole_target and constraint.method != "TRIANGLE":
        return Fix.POLE
    if constraint.method == "CCD" and baked.solver.solver is Solver.CCD:
        return Fix.LEAST_SQUARES
    return Fix.NONE


def _extension(baked: Baked, c: int) -> Array:
    """(F,) distance from root to end of a chain, as a part of its length."""
    chain = baked.bake_frames.path(c)
    end = baked.reached(c)  # by the head of the last bone, its tail or another point of it
    links = baked.bake_frames.lengths[:, chain[:-1]].sum(axis=1)
    lengths = links + np.linalg.norm(end - baked.heads[:, chain[-1]], axis=-1)
    ways = np.linalg.norm(end - baked.heads[:, chain[0]], axis=-1)
    return np.asarray(ways / np.maximum(lengths, 1e-30))


NEAR = np.radians(0.5)
"""Radians from its limit within which a bone is held by it."""
STILL_FRAMES = 4
"""Least consecutive frames of a target at rest that hold its bone."""


def findings(
    baked: Baked, foot_slips: Sequence[FootSlip], ground: Ground | None, frames_per_second: float
) -> Work[tuple[Finding, ...]]:
    """All findings, by constraint and then in time; yields after each kind.

    Args:
        foot_slips: slips of planted bones in playback.
        ground: with a row for each frame; None without ground.
        frames_per_second: a limit that holds for a second is reported.
    """
    bake_frames = baked.bake_frames
    kinds = [
        _missed(baked),
        missed_between(bake_frames, baked.misses, bake_frames.influences > 0.0, baked.solver),
        jumps(baked),
        _slides(baked, foot_slips),
        _held_by_limits(baked, frames_per_second),
        () if ground is None else _below(baked, ground),
    ]
    everything: list[Finding] = []
    for kind in kinds:
        everything += kind
        yield
    return in_order(everything, bake_frames.constraints)


def in_order(findings: Iterable[Finding], constraints: Sequence[Constraint]) -> tuple[Finding, ...]:
    """Findings by constraint and then in time; those of none of these come last, in their order."""
    places = {row.name: c for c, row in reversed([*enumerate(constraints)])}
    ours, others = list[Finding](), list[Finding]()
    for each in findings:
        (ours if each.constraint in places else others).append(each)
    ours.sort(key=lambda each: (places[each.constraint], each.frame_start))
    return (*ours, *others)


def _missed(baked: Baked) -> Iterator[Finding]:
    """Runs of solved frames at which a constraint is not reached."""
    bake_frames = baked.bake_frames
    rows = np.array(sorted(bake_frames.states))
    missing = ~np.isin(baked.ended[rows], [STATUSES.index(each) for each in MET])
    tolerances = baked.solver.position_tolerance, baked.solver.angle_tolerance
    for c in np.flatnonzero(missing.any(axis=0)).tolist():
        constraint = bake_frames.constraints[c]
        distances, angles = (each[rows, c] for each in baked.misses)
        over = np.maximum(distances / tolerances[0], angles / tolerances[1])
        beyond = _beyond(baked, c)
        for run in batch.runs(missing[:, c]):
            first, last, frame, k = measuring.span(bake_frames.frames[rows], run, over)
            far = float(distances[k]) if distances[k] > tolerances[0] else 0.0
            wide = float(angles[k]) if angles[k] > tolerances[1] else 0.0
            if far == wide == 0.0:
                continue  # missed by a goal of lower priority alone
            trouble = Trouble.SHORT if far and beyond[rows[k]] else Trouble.OFF
            yield Finding(trouble, constraint.name, constraint.tip, first, last, frame, far, wide)


def missed_between(
    bake_frames: BakeFrames, misses: tuple[Array, Array], counted: Mask, solver: SolverSettings
) -> Iterator[Finding]:
    """Runs of frames between solves at which a constraint is visibly farther off than at the solves beside.

    Args:
        bake_frames: with all frames that are measured, solved or not.
        misses: (F, C) distances, world metres, and angles, radians.
        counted: (F, C) mask of frames that count; others, and solved ones, may have any errors.
        solver: tolerances in world metres and radians.
    """
    frames = bake_frames.frames
    rows = np.flatnonzero(~np.isin(frames, bake_frames.solved_frames))
    if not len(rows):
        return
    beside = bake_frames.solved_beside(rows)
    in_force = bake_frames.influences[beside] > 0.0
    allowed = [np.where(in_force, each[beside], 0.0).max(axis=0) for each in misses]
    present = [each[rows] for each in misses]
    yield from _farther(Trouble.BETWEEN, bake_frames, rows, present, allowed, counted[rows], solver)


def taken_off(
    bake_frames: BakeFrames, before: Sequence[Array], after: Sequence[Array], solver: SolverSettings
) -> Iterator[Finding]:
    """Runs of frames at which a bake of other constraints makes most of a miss.

    Args:
        bake_frames: of the constraints that are not baked.
        before, after: (F, C) distances, world metres, and angles, radians, without and with what is baked.
        solver: tolerances in world metres and radians.
    """
    rows, counted = np.arange(len(bake_frames.frames)), bake_frames.influences > 0.0
    allowed = [2.0 * each for each in before]
    yield from _farther(Trouble.TAKEN, bake_frames, rows, after, allowed, counted, solver)


def _farther(
    trouble: Trouble,
    bake_frames: BakeFrames,
    rows: Rows,
    misses: Sequence[Array],
    allowed: Sequence[Array],
    counted: Mask,
    solver: SolverSettings,
) -> Iterator[Finding]:
    """Runs of rows at which constraints are visibly farther off than is allowed.

    Args:
        rows: (R,) rows of the frames.
        misses, allowed: (R, C) distances, world metres, and angles, radians.
        counted: (R, C) mask of errors that count.
        solver: tolerances in world metres and radians.
    """
    frames, sizes = bake_frames.frames[rows], measuring.chain_sizes(bake_frames)
    for c, constraint in enumerate(bake_frames.constraints):
        least = max(solver.position_tolerance, SEEN_PART * sizes[c]), max(solver.angle_tolerance, SEEN)
        far, wide = (each[:, c] - most[:, c] for each, most in zip(misses, allowed, strict=True))
        over = np.where(counted[:, c], np.maximum(far / least[0], wide / least[1]), 0.0)
        for run in batch.runs(over > 1.0):
            first, last, frame, k = measuring.span(frames, run, over)
            distance, angle = (float(each[k, c]) for each in misses)
            distance, angle = distance * (distance > least[0]), angle * (angle > least[1])
            yield Finding(trouble, constraint.name, constraint.tip, first, last, frame, distance, angle)


def _beyond(baked: Baked, c: int) -> Mask:
    """(F,) mask of frames whose target is farther from the chain's root than the bone gets."""
    targets, reached = baked.targets(c), baked.reached(c)
    if not baked.chains[c] or not baked.bake_frames.constraints[c].kind.reaches:
        return np.zeros(len(targets), dtype=np.bool_)
    root = baked.heads[:, baked.chains[c][0]]
    more = np.linalg.norm(targets - root, axis=-1) - np.linalg.norm(reached - root, axis=-1)
    return np.asarray(more > 0.5 * np.linalg.norm(targets - reached, axis=-1))


def _slides(baked: Baked, foot_slips: Sequence[FootSlip]) -> Iterator[Finding]:
    """Bones that move while they are planted, or while their target is at rest.

    The summary tells of targets that give way to the body's help.
    """
    bake_frames = baked.bake_frames
    frames = bake_frames.frames
    slips = {slip.constraint: slip for slip in foot_slips}
    reaching = [
        c
        for c, constraint in enumerate(bake_frames.constraints)
        if not constraint.kind.plants and constraint.kind.reaches and constraint.use_position
    ]
    targets_in_world = baked.world(bake_frames.targets.points[:, reaching])
    targets_of = dict(zip(reaching, targets_in_world.swapaxes(0, 1), strict=True))
    for c, constraint in enumerate(bake_frames.constraints):
        least = max(2.0 * baked.solver.position_tolerance, SEEN_PART * baked.sizes[c])
        in_force = bake_frames.influences[:, c] > 0.0
        if constraint.kind.plants:
            slip = slips.get(constraint.name)
            if slip is None or slip.played_distance <= least:
                continue
            at = min(int(np.searchsorted(frames, slip.frame)), len(frames) - 1)
            run = next((run for run in batch.runs(in_force) if run.start <= at < run.stop), slice(at, at + 1))
            first, last, *_ = measuring.span(frames, run, frames)
            far = slip.played_distance
            yield Finding(Trouble.SLIDE, constraint.name, constraint.tip, first, last, slip.frame, far)
        elif c in targets_of:
            targets = targets_of[c]
            steps = np.linalg.norm(np.diff(targets, axis=0), axis=-1) <= baked.solver.position_tolerance
            resting = batch.runs(steps & in_force[1:] & in_force[:-1])
            still = [
                slice(run.start, run.stop + 1) for run in resting if run.stop + 1 - run.start >= STILL_FRAMES
            ]
            if not still:
                continue
            misses = baked.world(baked.reached(c)) - targets
            beside = bake_frames.solved_beside(np.arange(len(frames)))
            gives_way = (baked.ended[beside, c] == STATUSES.index(GAVE_WAY)).any(axis=0)
            for run in still:
                held = run.start + np.flatnonzero(~gives_way[run])
                strays = np.zeros(len(frames))
                strays[held] = np.linalg.norm(misses[held] - misses[held[:1]], axis=-1)
                first, last, frame, row = measuring.span(frames, run, strays)
                if strays[row] > least:
                    far = float(strays[row])
                    yield Finding(Trouble.SLIDE, constraint.name, constraint.tip, first, last, frame, far)


def _below(baked: Baked, ground: Ground) -> Iterator[Finding]:
    """Runs of frames with an end of a bone below the ground, seen from the highest bone of its chain."""
    bake_frames = baked.bake_frames
    owners: dict[int, int] = {}  # by joint the first constraint that moves it
    for c in range(len(bake_frames.constraints)):
        owners |= {j: c for j in baked.chains[c] if j not in owners}
    joints = list(owners)
    if not joints:
        return
    ends = np.zeros((len(bake_frames.frames), len(joints), 3))
    ends[..., 1] = bake_frames.lengths[:, joints]
    tails = baked.heads[:, joints] + batch.rotate(baked.axes[:, joints], ends, axis=-1)
    points = baked.world(np.stack((baked.heads[:, joints], tails), axis=2))
    tops = np.empty(points.shape[:3])
    places = {c: [k for k, j in enumerate(joints) if owners[j] == c] for c in sorted(set(owners.values()))}
    for c, columns in places.items():
        line = list(bake_frames.skeleton.chain(bake_frames.constraints[c].tip, 0))
        above = baked.world(baked.heads[:, line])[..., 2].max(axis=1)
        tops[:, columns] = np.maximum(points[:, columns][..., 2].max(axis=(1, 2)), above)[:, None, None]
    # Together, as moving ground is searched frame by frame.
    floors = seen_below(ground, points, tops)
    below = np.where(np.isnan(floors), -np.inf, floors - points[..., 2]).max(axis=2)
    for c, columns in places.items():
        constraint, depths = bake_frames.constraints[c], below[:, columns]
        deepest = depths.max(axis=1)
        least = max(baked.solver.position_tolerance, SEEN_PART * baked.sizes[c])
        for run in batch.runs((deepest > least) & (bake_frames.influences[:, c] > 0.0)):
            first, last, frame, row = measuring.span(bake_frames.frames, run, deepest)
            bone = baked.bone(joints[columns[int(np.argmax(depths[row]))]])
            more = int((depths[run] > least).any(axis=0).sum()) - 1
            far = float(deepest[row])
            yield Finding(Trouble.GROUND, constraint.name, bone, first, last, frame, distance=far, more=more)


def _held_by_limits(baked: Baked, frames_per_second: float) -> Iterator[Finding]:
    """Limits that hold a bone off its base pose for a second or more, one for each constraint."""
    bake_frames = baked.bake_frames
    rotated, limits = set(baked.rotated), bake_frames.limits[0]
    for c, constraint in enumerate(bake_frames.constraints):
        held: list[tuple[float, int, slice]] = []
        for j in baked.chains[c]:
            limit = limits[j]
            if limit is None or j not in rotated:
                continue
            rotated.discard(j)  # reported for the first constraint that moves it
            rotations, base = (
                batch.unit(each[:, j], axis=-1) for each in (baked.motion.rotations, bake_frames.base)
            )
            moved = batch.angles_between(rotations, base, axis=-1) > NEAR
            mask = is_at_limit(limit, rotations) & moved & (bake_frames.influences[:, c] > 0.0)
            longest = max(batch.runs(mask), key=lambda run: run.stop - run.start, default=None)
            if longest is not None:
                frames = bake_frames.frames[[longest.start, longest.stop - 1]]
                held.append((float(frames[1] - frames[0]), j, longest))
        held = [each for each in held if each[0] >= frames_per_second]
        if held:
            _, j, run = max(held, key=lambda each: each[0])
            first, last, *_ = measuring.span(bake_frames.frames, run, bake_frames.frames)
            more = len(held) - 1
            yield Finding(Trouble.LIMIT, constraint.name, baked.bone(j), first, last, first, more=more)


def is_at_limit(limit: Limit, rotations: Array) -> Mask:
    """(F,) mask of rotations (F, 4) within `NEAR` of a limit's border."""
    hinge = as_hinge(limit)
    if hinge is not None:
        width = hinge.upper - hinge.lower
        if width <= 2.0 * NEAR or width >= FULL_TURN:  # fixed, or free
            return np.zeros(len(rotations), dtype=np.bool_)
        middle = 0.5 * (hinge.lower + hinge.upper)
        angles = batch.twist_angles(rotations.T, hinge.axis) - middle
        aside = np.abs((angles + np.pi) % FULL_TURN - np.pi)
        return np.asarray(aside >= 0.5 * width - NEAR)
    vectors = batch.logarithm(rotations.T)
    lengths = np.maximum(batch.length(vectors), 1e-12)
    pushed = batch.exponential(vectors * (1.0 + NEAR / lengths))
    outside = BatchLimits([limit]).violations(pushed[:, None])[0]
    return np.asarray((outside > 0.5 * NEAR) & (lengths > NEAR))


def loop(baked: Baked) -> Loop | None:
    """The range as a loop; None if it is none.

    A loop that repeats after its last frame always closes, as its first frame is keyed already.
    """
    bake_frames = baked.bake_frames
    if not bake_frames.is_loop:
        return None
    joints, frames = baked.rotated, bake_frames.frames
    ends = [0, 0] if bake_frames.repeats_after else [0, -1]
    first, last = batch.unit(baked.motion.rotations[ends][:, joints], axis=-1)
    gaps = batch.angles_between(first, last, axis=-1)
    k = int(np.argmax(gaps))
    name = baked.bone(joints[k])
    return Loop(number(frames[0]), number(frames[-1]), name, float(gaps[k]), bake_frames.repeats_after)


# The report -----------------------------------------------------------------------------------------------


def measured_report(
    task: Task, motion: KeyedMotion, action: str, times: Array, places: Mapping[int, Array]
) -> Work[BakeReport]:
    """Measure the keyed motion and the motion at full influence; yields after each constraint.

    The report is without the check, counts of keys, warnings and time.

    Args:
        action: name of that with the keys.
        times, places: of planted bones in playback, see `foot_slips`.
    """
    bake_frames, settings = motion.bake_frames, task.settings
    solver, body = task.solving.solver, task.ready.body
    placed = measuring.transforms(bake_frames, motion.keyed)
    yield
    keyed = blended = yield from measuring.errors(bake_frames, *placed)
    if motion.keyed is not motion.blended:
        blended = yield from measuring.residuals(bake_frames, motion.blended)
    distances, angles, lost = yield from measuring.misses(motion, solver, blended)
    for row, states in bake_frames.states.items() if lost.any() else ():
        bake_frames.states[row] = {
            c: SolveStatus.OPTIMAL.name if lost[row, c] else state for c, state in states.items()
        }
    codes = {name: code for code, name in enumerate(STATUSES)}
    ended = np.full(bake_frames.influences.shape, codes[SLERPED], np.uint8)
    ended[[*bake_frames.states]] = [
        [codes[states.get(c, REACHED)] for c in range(ended.shape[1])]
        for states in bake_frames.states.values()
    ]
    baked = Baked(bake_frames, motion.keyed, solver, (distances, angles), ended, *placed)
    in_force = np.nonzero(bake_frames.influences > 0.0)  # by frame, then in the order of the constraints
    columns = (distances, keyed[0], bake_frames.influences, angles, keyed[1])
    numbers = zip(*(each[in_force].tolist() for each in (ended, *columns)), strict=True)
    who = zip(bake_frames.frames[in_force[0]].tolist(), in_force[1].tolist(), strict=True)
    names = [constraint.name for constraint in bake_frames.constraints]
    entries = Entries(
        Entry(number(frame), names[c], STATUSES[code], *rest)
        for (frame, c), (code, *rest) in zip(who, numbers, strict=True)
    )
    yield
    slips = foot_slips(bake_frames, keyed, times, places)
    yield
    frames_per_second = task.scene.render.fps / task.scene.render.fps_base
    ground = _ground(task, baked)
    yield
    everything = yield from findings(baked, slips, ground, frames_per_second)
    circle = loop(baked)
    yield
    if circle is not None and not circle.closes:
        ends = circle.frame_start, circle.frame_end, circle.frame_end
        everything += (Finding(Trouble.LOOP, "", circle.bone, *ends, angle=circle.angle),)
    body_report = None
    if body is not None:
        drift = body_motion.body_drift(bake_frames, motion.keyed)
        body_report = body_motion.report_of(bake_frames, body, task.body_obstacle, drift)
        everything += drift.findings()
    return BakeReport(
        armature=task.armature_object.name,
        action=action,
        frame_start=settings.frame_start,
        frame_end=settings.frame_end,
        step=settings.step,
        tolerance=solver.position_tolerance,
        angle_tolerance=solver.angle_tolerance,
        solver=solver.solver,
        start=settings.start.name,
        from_rest=task.start.posed,
        entries=entries,
        largest_rotation=_largest_rotation(baked),
        foot_slips=slips,
        fit=weighted_fit(bake_frames, distances),
        smoothed=_smoothed(bake_frames),
        helped=_helped(bake_frames, distances),
        body=body_report,
        loop=circle,
        findings=everything,
    )


def foot_slips(
    bake_frames: BakeFrames, keyed: tuple[Array, Array], times: Array, places: Mapping[int, Array]
) -> tuple[FootSlip, ...]:
    """Slips of planted bones in playback, one per constraint that plants a bone.

    Args:
        bake_frames: of `keyed_motion`, with the targets of planted bones where these are held.
        keyed: (F, C) errors of the keyed motion, world metres and radians.
        times: (P,) frames that were played.
        places: by constraint that plants a bone, (P, 4, 4) places of the bone in the world.
    """
    slips, frames = [], bake_frames.frames.astype(int).tolist()
    for c in planting(bake_frames):
        every = np.arange(frames[0], frames[-1] + 1)
        baked = np.array([_planted(bake_frames, c, frames, frame) for frame in every.tolist()])
        played, baked = every[baked >= 0], baked[baked >= 0]
        ends = places[c][np.searchsorted(times, played)]
        held = bake_frames.planted_tracks.worlds[baked]
        away = batch.length(ends[:, :3, 3] - batch.move(held, bake_frames.targets.points[baked, c]), axis=-1)
        turned = batch.orthonormals(batch.inverse(held)[:, :3, :3] @ ends[:, :3, :3])
        wanted = batch.unit(bake_frames.targets.rotations[baked, c], axis=-1)
        worst = len(away) - 1 - int(np.argmax(away[::-1])) if len(away) else 0
        distance, angle = (float(each[bake_frames.influences[:, c] > 0.0, c].max()) for each in keyed)
        slips.append(
            FootSlip(
                bake_frames.constraints[c].name,
                distance,
                angle,
                float(away.max(initial=0.0)),
                float(batch.angles_between(turned, wanted, axis=-1).max(initial=0.0)),
                int(played[worst]) if len(away) else frames[0],
            )
        )
    return tuple(slips)


def planting(bake_frames: BakeFrames) -> list[int]:
    """Constraints that plant a bone at any frame."""
    tracks = bake_frames.tracks
    every = () if tracks is None else tracks.support_chains.constraints
    return [c for c in every if (bake_frames.influences[:, c] > 0.0).any()]


def _planted(bake_frames: BakeFrames, c: int, frames: Sequence[int], frame: int) -> int:
    """The row of `bake_frames` with the place of a bone that is planted at a frame; -1 if it is not.

    Between two keys a bone is planted if both hold it, without a target and in all components.
    """
    after = bisect.bisect_left(frames, frame)
    constraint, influences = bake_frames.constraints[c], bake_frames.influences[:, c]
    if frames[after] == frame:
        return after if influences[after] > 0.0 else -1
    is_free = bool(constraint.target) or not all(constraint.holds)
    return -1 if is_free or min(influences[after - 1 : after + 1]) <= 0.0 else after


def weighted_fit(bake_frames: BakeFrames, distances: Array) -> WeightedFit | None:
    """Weighted fit of conflicting constraints at solved frames that miss targets; None without such frames.

    `distances`: (F, C) world metres. A conflict counts at a frame if one of its constraints is missed.
    """
    if not _conflicts(bake_frames, tuple(range(len(bake_frames.constraints)))):
        return None
    fits, square, weights = [], 0.0, 0.0
    known: dict[tuple[int, ...], list[list[int]]] = {}
    for f, states in sorted(bake_frames.states.items()):
        active = tuple(c for c in states if bake_frames.influences[f, c] > 0.0)
        if active not in known:
            known[active] = _conflicts(bake_frames, active)
        missed = {c for c in active if states[c] not in MET}
        members = [c for conflict in known[active] if missed.intersection(conflict) for c in conflict]
        if not members:
            continue
        targets, rows = bake_frames.targets, bake_frames.constraints
        each = np.array([dict(targets.settings(f, c)).get("weight", rows[c].weight) for c in members])
        error = float((each * distances[f, members] ** 2).sum())
        fits.append(FrameFit(number(bake_frames.frames[f]), float(np.sqrt(error / each.sum()))))
        square, weights = square + error, weights + float(each.sum())
    return WeightedFit(float(np.sqrt(square / weights)), tuple(fits)) if fits else None


def _conflicts(bake_frames: BakeFrames, active: tuple[int, ...]) -> list[list[int]]:
    """Constraints with position goals that share joints and a priority, in lists of two or more."""
    sharing: dict[tuple[int, int], list[int]] = defaultdict(list)
    for n, group in enumerate(groups(bake_frames.skeleton, bake_frames.constraints, active)):
        for c in group.members:
            constraint = bake_frames.constraints[c]
            is_placing = constraint.kind.reaches and constraint.use_position
            if is_placing or constraint.kind.balances:
                sharing[n, constraint.priority].append(c)
    return [members for members in sharing.values() if len(members) > 1]


def _largest_rotation(baked: Baked) -> LargestRotation | None:
    """The largest turn between keyed frames; None for one frame."""
    frames = baked.bake_frames.frames
    if len(frames) < 2 or not baked.rotated:
        return None
    f, k = np.unravel_index(int(np.argmax(baked.speeds)), baked.speeds.shape)
    return LargestRotation(float(baked.speeds[f, k]), number(frames[f + 1]), baked.bone(baked.rotated[k]))


def _ground(task: Task, baked: Baked) -> Ground | None:
    """The ground for the report: a level height, or else the ground of the armature."""
    if task.settings.ground is not None:
        return LevelGround(task.settings.ground)
    frames, chains = baked.bake_frames.frames.tolist(), sorted({j for chain in baked.chains for j in chain})
    room = max(baked.sizes, default=0.0)
    if not room > 0.0:
        return None
    _, meshes = ground_of_rig(task.armature_object)
    points = baked.world(baked.heads[:, chains]).reshape(-1, 3) if meshes else np.zeros((0, 3))
    return rig_ground(task.scene, task.armature_object, frames, points, room)


def _helped(bake_frames: BakeFrames, distances: Array) -> tuple[Helped, ...]:
    """Runs of solved frames in which the body helps the same constraints.

    Args:
        bake_frames: solved.
        distances: (F, C) by which constraints miss their targets, world metres.
    """
    spans: list[Helped] = []
    sizes = measuring.chain_sizes(bake_frames)
    names = [joint.name for joint in bake_frames.skeleton.joints]
    before: tuple[int, ...] = ()
    for row in sorted(bake_frames.states) if bake_frames.helped else ():
        here = bake_frames.helped.get(row)
        if here is not None:
            frame = number(bake_frames.frames[row])
            who = tuple(bake_frames.constraints[c].name for c in here.constraints)
            if here.constraints != before:
                size = min(sizes[c] for c in here.constraints)
                spans.append(Helped(who, frame, frame, names[here.turned], 0.0, "", 0.0, size=size))
            span = replace(spans[-1], frame_end=frame)
            if here.angle > span.angle:
                span = replace(span, turned=names[here.turned], angle=here.angle)
            if here.distance > max(span.distance, UNSHIFTED):
                span = replace(span, shifted=names[here.shifted], distance=here.distance)
            left = [c for c, state in bake_frames.states[row].items() if state == GAVE_WAY]
            named = (bake_frames.constraints[c].name for c in left)
            off = max((float(distances[row, c]) for c in left), default=0.0)
            span = replace(span, gave_way=tuple(dict.fromkeys((*span.gave_way, *named))))
            spans[-1] = replace(span, off=max(span.off, off))
        before = () if here is None else here.constraints
    return tuple(spans)


UNSHIFTED = 1e-6
"""World metres of rounding of a bone's place."""


def _smoothed(bake_frames: BakeFrames) -> tuple[Smoothed, ...]:
    """Runs of solved frames in which the same constraints are smoothed."""
    names = [constraint.name for constraint in bake_frames.constraints]
    spans: list[Smoothed] = []
    latest: dict[tuple[int, ...], int] = {}  # places of runs that include the frame before
    for row in sorted(bake_frames.states) if any(bake_frames.smoothed.values()) else ():
        frame, present = number(bake_frames.frames[row]), {}
        for group in bake_frames.smoothed.get(row, ()):
            place = present[group.constraints] = latest.get(group.constraints, len(spans))
            if place == len(spans):
                who = tuple(names[c] for c in group.constraints)
                spans.append(Smoothed(who, frame, frame, group.angle))
            angle = max(spans[place].angle, group.angle)
            spans[place] = replace(spans[place], frame_end=frame, angle=angle)
        latest = present
    return tuple(spans)
