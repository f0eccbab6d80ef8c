"""Goals of a skeleton, prepared for the kernel once, and solved for any number of poses."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from time import thread_time
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..goals import GOALS, Goal
from ..kernel import Problem, set_search, solve_poses
from ..limits.shapes import Limit
from ..maths.batch import Array, Indices, Mask
from ..maths.validation import shown
from ..settings import Solver, SolverSettings, SolveStatus, Sweep
from ..skeleton.joints import Skeleton
from ..skeleton.pose import Pose
from ..skeleton.pose_library import PoseEntry
from .problem_tables import (
    Bones,
    GoalSettings,
    doubles,
    flat,
    goals_key,
    measure_poses,
    problem_tables,
    reach_of_goals,
    serving_joints,
    target_rows,
    windowed,
)
from .restarts import StartSpace, drawn_starts, library_starts

STATUSES = (SolveStatus.CONVERGED, SolveStatus.STALLED, SolveStatus.OPTIMAL, SolveStatus.ITERATION_LIMIT)
"""By the kernel's numbers."""
OUT_OF_REACH = 4
"""The kernel's number of a first solve whose target is out of reach: other starts are of no use."""
ORDERS = tuple(Sweep)
"""By the kernel's numbers."""
THREADS = min(os.cpu_count() or 1, 8)
"""Most threads that solve poses in parallel."""
PER_THREAD = 3e-3
"""Seconds of the processor from which a thread is worth its start and its own problem, some 0.4 ms."""
USUAL = 5e-5
"""Seconds of a solve, before one is measured."""
ENDLESS = 2**31 - 1
"""More steps than any solve takes."""


@dataclass(frozen=True)
class Starts:
    """Start poses of further tries, as the kernel takes them."""

    rotations: Array  # (K, 4J) relative to rest
    translations: Array  # (K, 3J) relative to rest
    # (K, J) whether the rotation is relative to the best pose of the first try.
    is_turn: np.ndarray[Any, np.dtype[np.int32]]

    @classmethod
    def of(cls, poses: Sequence[Pose], is_turn: np.ndarray[Any, np.dtype[np.int32]]) -> Starts:
        """Start poses with a mask (K, J) of relative rotations, see `is_turn`."""
        joints = is_turn.shape[1]
        return cls(
            np.array([pose.arrays[0] for pose in poses], np.float64).reshape(-1, 4 * joints),
            np.array([pose.arrays[1] for pose in poses], np.float64).reshape(-1, 3 * joints),
            is_turn,
        )


@dataclass
class Solved:
    """B solved poses of J joints."""

    rotations: Array  # (B, J, 4) relative to rest
    translations: Array  # (B, J, 3) relative to rest
    statuses: Indices  # (B,) numbers of `STATUSES`
    steps: Indices  # (B,) of all tries
    distances: Array  # (B, G) errors of goals, model units
    angles: Array  # (B, G) errors of goals, radians
    can_retry: Mask  # (B,) whether other starts may lead to a pose that meets the goals

    @classmethod
    def begun(cls, rotations: Array, translations: Array, goals: int) -> Solved:
        """Copies of start poses, not solved yet."""
        size = len(rotations)
        statuses: Indices = np.zeros(size, np.int32)
        statuses[:] = 1
        errors = np.zeros((size, goals)), np.zeros((size, goals))
        steps: Indices = np.zeros(size, np.int32)
        can_retry: Mask = np.zeros(size, np.bool_)
        return cls(rotations.copy(), translations.copy(), statuses, steps, *errors, can_retry)

    def at(self, rows: Indices | Mask) -> Solved:
        """A copy of a subset of poses."""
        return Solved(*(each[rows] for each in self._arrays()))

    def put(self, rows: Indices | Mask, other: Solved) -> None:
        """Replace a subset of poses by those of another."""
        for mine, theirs in zip(self._arrays(), other._arrays(), strict=True):
            mine[rows] = theirs

    def with_goals(self, count: int) -> Solved:
        """The same with `count` goals; added ones are met."""
        more = count - self.distances.shape[1]
        if more == 0:
            return self
        distances, angles = (np.pad(each, ((0, 0), (0, more))) for each in (self.distances, self.angles))
        return replace(self, distances=distances, angles=angles)

    def _arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        errors = self.distances, self.angles
        return self.rotations, self.translations, self.statuses, self.steps, *errors, self.can_retry


class PoseSearch:
    """The part of a solve that poses share, and the kernel's problems made of it.

    Attributes:
        goal_settings: of the goals.
        movable: indices of the joints that may move, locked ones left out.
        limits: per joint.
        follows_reference: whether solved poses are the nearest to their references. Two-bone tips and comfort
            tolerances exclude it.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        goals: Sequence[Goal],
        settings: SolverSettings,
        joints: Collection[int] | None = None,
        limb_goals: Sequence[Goal] | None = None,
        reach: float | None = None,
    ) -> None:
        """Prepare goals.

        Args:
            goals: at least one.
            joints: indices of joints that may move; None: all that serve a goal.
            limb_goals: see `problem_tables`.
            reach: the unit of length by which shifts count beside turns; None: `reach_of_goals`.

        Raises:
            InvalidInput: names the goal that does not fit the skeleton.
        """
        self.skeleton, self.goals, self.settings = skeleton, tuple(goals), settings
        self._reach = reach
        self._seconds = USUAL  # of the last solves, each
        self.limb_goals = None if limb_goals is None else tuple(limb_goals)
        self._limb_key = None if limb_goals is None else goals_key(limb_goals)
        check_goals(skeleton, self.goals)
        self._key = goals_key(self.goals)
        self.goal_settings = GoalSettings.of([self.goals])
        self._windows, served = skeleton.shape.computed_once(
            ("goals", self._key),
            lambda: (windowed(self.goals), set().union(*serving_joints(skeleton, self.goals))),
        )
        self._problems: dict[bool, _Problems] = {}  # inside comfort regions, inside limits
        self.limits, self.tolerances, self.comforts = skeleton.shape.computed_once(
            ("limits and comforts", settings.comfort),
            lambda: _limits_and_comforts(skeleton, settings.comfort),
        )
        moving = None if joints is None else frozenset(joints)
        self.movable, self.follows_reference, self.regions = skeleton.shape.computed_once(
            ("movable", self._key, moving, settings.comfort),
            lambda: self._movable(served if moving is None else served & moving),
        )
        # The step of CCD is the optimum of a joint that turns alone.
        self._is_single = len(self.movable) < 2 and not any(skeleton.joints[i].slides for i in self.movable)
        self._bones = skeleton.computed_once("bones", lambda: Bones.of(skeleton))
        self._flat_bones = flat(self._bones.offsets), flat(self._bones.rests)
        self._tolerances = np.array([settings.position_tolerance])
        self._steps = (
            ORDERS.index(settings.sweep),
            settings.step_fraction,
            settings.step_feedback,
            settings.error_reduction,
            settings.stall_threshold,
        )

    @property
    def reach(self) -> float:
        """The unit of length by which shifts count beside turns, model units."""
        return self._reach or reach_of_goals(self.skeleton.shape, self.goals)

    def _movable(self, served: Set[int]) -> tuple[tuple[int, ...], bool, list[Limit | None] | None]:
        """`movable` and `follows_reference`, and the limits inside comfort regions; None without regions."""
        movable = tuple(sorted(served - self.skeleton.locked))
        tips = any(goal.two_bone_tip for goal in self.goals)
        tolerant = any(self.tolerances[i] for i in movable)
        if all(self.comforts[i] is None for i in movable):
            return movable, not (tips or tolerant), None
        regions = [region or limit for region, limit in zip(self.comforts, self.limits, strict=True)]
        return movable, not (tips or tolerant), regions

    def solve(
        self,
        rotations: Array,
        translations: Array,
        targets: Sequence[Array],
        reference: tuple[Array, Array] | None = None,
        starts: Callable[[], Starts] | None = None,
        budget: int = ENDLESS,
        bones: Bones | None = None,
        tolerances: Array | None = None,
        settles: bool = False,
        goal_settings: GoalSettings | None = None,
        rounds: bool = False,
        sides: Array | None = None,
    ) -> Solved:
        """Solve B poses, each by itself; of equal ones in a row the first.

        Comfort regions stand for the limits first; a pose leaves them only where its goals are missed inside.

        Args:
            rotations, translations: (B, J, 4) and (B, J, 3) start poses.
            targets: per goal (B or 1, 3) or (B or 1, 4).
            reference: rotations and translations of the reference poses.
            starts: makes start poses of further tries; None: no further tries.
            budget: most steps of a pose, over all tries.
            bones: rest transforms; None: those of the skeleton.
            tolerances: (B or 1) of positions, model units; None: that of the settings.
            settles: whether to minimise the errors from the start pose alone, without a first solve.
            goal_settings: override those of the goals; the goals still tell the reach windows.
            rounds: whether poses are rounded to single precision, and their errors are those of the rounded.
            sides: (B, J, 4) rotations of poses whose limbs may bend to their side; None: the reference.
        """
        none = _no_starts(len(self.skeleton))
        tolerances = self._tolerances if tolerances is None else tolerances
        values = goal_settings or self.goal_settings
        extensions, windows = values.extensions, self._windows
        rows = target_rows(
            self.skeleton, self.goals, targets, translations, bones or self._bones, extensions, windows
        )
        inputs = (
            rows,
            *values.with_windows(len(windows)),
            *(self._flat_bones if bones is None else map(flat, bones)),
            tolerances,
            *((none.rotations, none.translations) if reference is None else map(flat, reference)),
            none.rotations if sides is None else flat(sides),
        )
        fresh = _fresh((rows, rotations, translations, *inputs[1:]), len(rotations))
        if not fresh.all():  # a hold

            def at_fresh(each: Array) -> Array:
                return each if len(each) == 1 else each[fresh]

            return self.solve(
                rotations[fresh],
                translations[fresh],
                [at_fresh(each) for each in targets],
                None if reference is None else (at_fresh(reference[0]), at_fresh(reference[1])),
                starts,
                budget,
                None if bones is None else bones.at(fresh),
                at_fresh(tolerances),
                settles,
                values.at(fresh),
                rounds,
                None if sides is None else at_fresh(sides),
            ).at(np.cumsum(fresh) - 1)
        solved = Solved.begun(rotations, translations, rows.shape[1] // 4)
        missed: Indices = np.arange(len(rotations))
        if not settles:
            if self.regions is not None:
                self._run(self.regions, solved, missed, inputs, None, budget, rounds)
                missed = solved.statuses.nonzero()[0]
                solved.rotations[missed] = rotations[missed]
                solved.translations[missed] = translations[missed]
                solved.distances[missed] = solved.angles[missed] = 0.0
            self._run(self.limits, solved, missed, inputs, None, budget, rounds)
            missed = solved.statuses.nonzero()[0]
        if not len(missed):
            return self._without_windows(solved)
        from_reference: Mask = np.zeros(len(rotations), np.bool_)
        if reference is not None:
            from_reference = (reference[0] == rotations).all(axis=(1, 2))
            from_reference &= (reference[1] == translations).all(axis=(1, 2))
        can_retry: Mask = solved.statuses[missed] != OUT_OF_REACH
        can_retry &= not (settles or self._is_single or any(self.tolerances[i] for i in self.movable))
        solved.can_retry[missed] = can_retry
        others = none if starts is None or not can_retry.any() else starts()
        for which, begun in ((missed[~can_retry], none), (missed[can_retry], others)):
            for is_same in (True, False):
                alike = which[from_reference[which] == is_same]
                self._run(self.limits, solved, alike, inputs, begun, budget, rounds, is_same)
        solved = self._without_windows(solved)
        met = (solved.distances <= tolerances[:, None]) & (solved.angles <= self.settings.angle_tolerance)
        solved.statuses[met.all(1)] = 0
        return solved

    def _without_windows(self, solved: Solved) -> Solved:
        if not self._windows:
            return solved
        distances, angles = (each[:, : len(self.goals)] for each in (solved.distances, solved.angles))
        return replace(solved, distances=distances, angles=angles)

    def measure(
        self,
        heads: Array,
        frames: Array,
        targets: Sequence[Array],
        goal_settings: GoalSettings | None = None,
    ) -> tuple[Array, Array]:
        """Measure (B, G) distances, model units, and angles, radians, by which goals are missed.

        Args:
            heads, frames: (B, J, 3) and (B, J, 4) of joints in model space.
            targets: per goal (B or 1, 3) or (B or 1, 4).
            goal_settings: override those of the goals.
        """
        idle, problem = self._problem(self.limits, of_any_tolerance=True)
        values = goal_settings or self.goal_settings
        measured = measure_poses(
            problem, self.skeleton, self.goals, heads, frames, targets, values, self._windows
        )
        idle.append(problem)
        return measured

    @contextmanager
    def problem(self) -> Iterator[Problem]:
        """A problem of the kernel that is free meanwhile: threads take others."""
        idle, problem = self._problem(self.limits)
        yield problem
        idle.append(problem)

    def _run(
        self,
        limits: Sequence[Limit | None],
        solved: Solved,
        which: Indices,
        inputs: Sequence[Array],
        starts: Starts | None,
        budget: int,
        rounds: bool,
        is_same: bool = False,
    ) -> None:
        """Solve a subset of poses from their present state; with `starts`, retry poses that miss their goals.

        Large subsets are split over threads: the kernel releases Python's lock. `inputs` are those of
        `solve_poses`, from the targets to the reference poses; one with one row is the same for all poses.
        """
        if not len(which):
            return
        others = starts or _no_starts(len(self.skeleton))
        solves = len(which) * (1 + len(others.rotations))
        stays_local, settings = limits is self.regions, self.settings
        most = (settings.max_iterations + 1) // 2 if stays_local else settings.max_iterations
        only_ccd = settings.solver is Solver.CCD

        def solve_share(share: Indices) -> float:
            """Solve a share; returns seconds of the processor: a busy machine needs no more threads.

            The seconds of a single solve are not measured: they tell nothing about many.
            """
            size = len(share)
            poses, rows = solved, inputs
            if size < len(solved.statuses):
                poses = solved.at(share)
                rows = [each if len(each) < 2 else np.ascontiguousarray(each[share]) for each in inputs]
            targets, weights, pole_angles, offsets, rests, tolerances, near, near_shifts, sides = rows
            idle, problem = self._problem(limits)
            set_search(problem, *self._steps, most, budget, only_ccd, stays_local, is_same, rounds)
            began = thread_time() if solves > 1 else 0.0
            solve_poses(
                problem,
                flat(poses.rotations),
                flat(poses.translations),
                targets,
                weights,
                pole_angles,
                offsets,
                rests,
                tolerances,
                near,
                near_shifts,
                sides,
                others.rotations,
                others.translations,
                others.is_turn,
                poses.statuses,
                poses.steps,
                poses.distances,
                poses.angles,
                starts is not None,
            )
            seconds = thread_time() - began if solves > 1 else self._seconds
            idle.append(problem)
            if poses is not solved:
                solved.put(share, poses)
            return seconds

        count = max(1, min(THREADS, len(which), int(solves * self._seconds / PER_THREAD)))
        if count == 1:
            seconds = solve_share(which)
        else:
            with ThreadPoolExecutor(count, "CCD Rig") as pool:
                seconds = sum(pool.map(solve_share, np.array_split(which, count)))
        self._seconds = seconds / solves

    def templates(
        self,
        poses: Sequence[PoseEntry] = (),
        goals: Sequence[Goal] | None = None,
        skeleton: Skeleton | None = None,
    ) -> Starts:
        """Start poses that all poses share: entries of a library, then seeded random poses.

        Random rotations of joints without a limit are relative to the pose.

        Args:
            poses: the library.
            goals: by whose errors the nearest entries are chosen; None: the goals of the search.
            skeleton: with its roots where the goals are; None: that of the search.
        """
        space = StartSpace(skeleton or self.skeleton, goals or self.goals, self.limits, self.movable, poses)
        rest, count = Pose.rest(self.skeleton), self.settings.restarts
        known = library_starts(space, rest, count)
        drawn = drawn_starts(space, rest, self.settings.seed, count - len(known))
        is_turn = np.zeros((len(known) + len(drawn), len(self.skeleton)), np.int32)
        is_turn[len(known) :] = [limit is None or limit.is_free for limit in self.limits]
        return Starts.of([*known, *drawn], is_turn)

    def _problem(
        self, limits: Sequence[Limit | None], of_any_tolerance: bool = False
    ) -> tuple[list[Problem], Problem]:
        """A problem that no thread uses, and the list to which it returns.

        Problems of equal goals are shared; to measure, those of other angle tolerances too.
        """
        in_regions, settings = limits is self.regions, self.settings
        if in_regions not in self._problems:
            key = (
                "kernel problems",
                self._key,
                in_regions,
                self.movable,
                settings.comfort,
                self._limb_key,
                self._reach,
            )
            self._problems[in_regions] = self.skeleton.shape.computed_once(key, _Problems)
        problems = self._problems[in_regions]
        pool = problems.idle.setdefault(settings.angle_tolerance, [])
        for idle in [pool, *problems.idle.values()] if of_any_tolerance else [pool]:
            with suppress(IndexError):  # other threads take from it too
                return idle, idle.pop()
        skeleton = self.skeleton.shape
        if problems.tables is None:
            regions = None if in_regions else self.comforts
            problems.tables = problem_tables(
                skeleton, self.goals, limits, self.movable, self.tolerances, regions, self.limb_goals
            )
            problems.reach = self.reach
        made = Problem(problems.tables, problems.reach, settings.position_tolerance, settings.angle_tolerance)
        return pool, made

    def with_mobility(self, mobility: Mapping[int, float]) -> PoseSearch:
        """The same search with other mobilities of joints that are no limb's middle; it shares all else.

        Args:
            mobility: by joint, above 0: 1 less its stiffness.
        """
        other = copy(self)
        other._problems = {}
        for limits in [self.limits] if self.regions is None else [self.limits, self.regions]:
            idle, problem = self._problem(limits)
            idle.append(problem)
            problems = self._problems[limits is self.regions]
            assert problems.tables is not None
            rows = problems.tables["mobility"].reshape(-1, 3).copy()
            rows[list(mobility)] = np.array(list(mobility.values()))[:, None]
            tables = {**problems.tables, "mobility": doubles(rows)}
            other._problems[limits is self.regions] = _Problems(tables=tables, reach=problems.reach)
        return other


@dataclass
class _Problems:
    """Problems of the same goals and joints."""

    # Those that no thread uses, by angle tolerance.
    idle: dict[float, list[Problem]] = field(default_factory=dict)
    tables: dict[str, Any] | None = None  # of which they are made; None before the first
    reach: float = 1.0  # see `PoseSearch`


def _fresh(inputs: Sequence[Array], size: int) -> Mask:
    """(B,) mask of poses with other inputs than the pose before; inputs with one row are alike for all."""
    fresh: Mask = np.zeros(size, np.bool_)
    fresh[:1] = True
    for each in inputs:
        if size < 2 or fresh.all():
            break
        if len(each) > 1:
            fresh[1:] |= (each[1:] != each[:-1]).reshape(size - 1, -1).any(axis=1)
    return fresh


def shared_search(
    skeleton: Skeleton,
    goals: Sequence[Goal],
    settings: SolverSettings,
    joints: Collection[int] | None = None,
    limb_goals: Sequence[Goal] | None = None,
    reach: float | None = None,
) -> PoseSearch:
    """A search that goals with the same `goals_key` share: arguments of its calls tell their `OF_CALLS`.

    Arguments and errors as of `PoseSearch`.
    """
    if not all(isinstance(goal, GOALS) for goal in goals):
        check_goals(skeleton, goals)
    limbs = None if limb_goals is None else goals_key(limb_goals)
    key = "search", goals_key(goals), settings, None if joints is None else frozenset(joints), limbs, reach

    def made() -> PoseSearch:
        return PoseSearch(skeleton, goals, settings, joints, limb_goals, reach)

    return skeleton.computed_once(key, made)


def _limits_and_comforts(
    skeleton: Skeleton, has_comfort: bool
) -> tuple[list[Limit | None], list[float], list[Limit | None]]:
    """Limits, comfort tolerances [rad] and comfort regions of all joints."""
    comforts = [joint.comfort if has_comfort else None for joint in skeleton.joints]
    return (
        [joint.limit for joint in skeleton.joints],
        [0.0 if each is None else each.tolerance for each in comforts],
        [None if each is None else each.region for each in comforts],
    )


@cache
def _no_starts(joints: int) -> Starts:
    return Starts(np.zeros((0, 4 * joints)), np.zeros((0, 3 * joints)), np.zeros((0, joints), np.int32))


def check_call(skeleton: object, settings: object, **listed: object) -> None:
    """Raise InvalidInput unless a call has a skeleton, settings or None, and sequences by these names."""
    if not isinstance(skeleton, Skeleton):
        raise InvalidInput(f"the skeleton must be a Skeleton, not {shown(skeleton)}")
    if not isinstance(settings, SolverSettings | None):
        raise InvalidInput(f"settings must be SolverSettings or None, not {shown(settings)}")
    for what, values in listed.items():
        if not isinstance(values, Sequence):
            raise InvalidInput(f"{what} must be a sequence, not {shown(values)}")


def check_goals(skeleton: Skeleton, goals: Sequence[object]) -> None:
    """Raise InvalidInput unless there are goals, and all fit the skeleton."""
    if not goals:
        raise InvalidInput("there is nothing to solve: give at least one goal")
    for goal in goals:
        if not isinstance(goal, GOALS):
            allowed = ", ".join(kind.__name__ for kind in GOALS)
            raise InvalidInput(f"a goal must be one of {allowed}, not {shown(goal)}")
        goal.check(skeleton)
