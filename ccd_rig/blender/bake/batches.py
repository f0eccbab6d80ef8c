# SPDX-License-Identifier: GPL-3.0-or-later
"""The frames of a bake solved all at once, group of constraints by group.

Constraints that share joints make a group. A frame's pose is, of those that meet its goals inside the
limits, the one nearest to its base pose (`solvers/least_squares/sequence.py`). It does not depend on the
frames before it. What least squares do not know (reach windows, comfort tolerances, methods of a single
pass) is left to CCD, frame by frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from mathutils import Quaternion, Vector
from numpy.typing import NDArray

from ...goals import Goal, OrientationGoal
from ...limits.shapes import Limit
from ...maths.batch import multiply, unit
from ...settings import Solver
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ...solvers.least_squares.problem import MILD_STEP, PRIORITY_STEP, LeastSquaresProblem
from ...solvers.least_squares.sequence import Sequence as SolvedFrames
from ...solvers.least_squares.sequence import solve_sequence
from ...solvers.least_squares.solve import Limits, solve_batch
from ...solvers.least_squares.state import Bones, Given, Poses, start_state
from ...solvers.least_squares.ways import Frames
from ...solvers.restarts import StartSpace, starts
from ...solvers.solve import solve
from ..scene.evaluation import FrameSample
from ..scene.targets import TargetSample
from ..solve.balance import level
from ..solve.constraint_goals import goals
from ..solve.solving import ShotSolveSettings, frame_settings, groups, scales
from .bake_frames import Array, BakeFrames

Rows = NDArray[np.intp]

STEPS = 40
"""Most steps of a frame."""
GAIN, RANKED_GAIN = 0.005, 1e-3
"""A frame stalls when its square error falls by less than this part in several steps; where goals are served
before others, which then count next to nothing."""
PASSES = 20
"""Most passes of CCD that look for another way to goals that are missed."""
AGAIN = 16
"""In a run of frames that miss their goals other ways are looked for at the first and so many frames later;
after each that has none the next waits twice as long."""


@dataclass(frozen=True)
class Group:
    """Constraints that are solved together, and the joints that they move."""

    joints: frozenset[int]
    members: tuple[int, ...]


@dataclass
class Batch:
    """Frames with the same constraints in force and the same limits.

    Attributes:
        take: where frames and solutions are.
        rows: of the take, in order of time.
        samples: of these rows.
        recipe: how they are solved.
        rotations: (J, 4) of each row, solved as far as groups are; translations likewise (J, 3).
        held: rows that are solved already: those beside them choose their ways to fit.
    """

    take: BakeFrames
    rows: Rows
    samples: Sequence[FrameSample]
    recipe: ShotSolveSettings
    rotations: Array
    translations: Array
    held: NDArray[np.bool_]
    iterations: int = 0  # most steps of a row

    @classmethod
    def of(
        cls, take: BakeFrames, rows: Rows, samples: Sequence[FrameSample], recipe: ShotSolveSettings
    ) -> Batch:
        """A batch that stands at its base poses."""
        held = np.zeros(len(rows), np.bool_)
        return cls(take, rows, samples, recipe, take.base[rows].copy(), take.translations[rows].copy(), held)

    def hold(self, k: int, rotations: Array, translations: Array) -> None:
        """Let a row stand as it was solved before: rotations (J, 4) and translations (J, 3)."""
        self.rotations[k], self.translations[k], self.held[k] = rotations, translations, True

    @property
    def skeleton(self) -> Skeleton:
        return self.samples[0].reading.skeleton

    def groups(self) -> list[Group]:
        """The groups of the constraints in force, parents before children."""
        active = [c for c, influence in enumerate(self.samples[0].influences) if influence > 0.0]
        found = groups(self.skeleton, self.take.constraints, active)
        return [Group(frozenset(joints), tuple(members)) for joints, members in found]

    def takes(self, group: Group) -> bool:
        """Whether least squares know all that a group asks for."""
        solver, joints = self.recipe.solver, self.skeleton.joints
        if solver.solver is Solver.CCD:
            return False
        for c in group.members:
            constraint = self.take.constraints[c]
            if constraint.kind == "BALANCE":
                axes = constraint.balance_axes
                if any(level(sample.matrix_world, axes) != Quaternion() for sample in self.samples):
                    return False
            elif constraint.kind != "REACH" or constraint.method != "CCD" or constraint.max_extension < 1.0:
                return False
        return not (
            solver.comfort and any((own := joints[j].comfort) and own.tolerance > 0.0 for j in group.joints)
        )

    def solve(self, group: Group) -> NDArray[np.bool_]:
        """Solve a group at all rows; (R, members) which constraints are met.

        Comfort regions are the limits first, and goals served later count nearly as much as those served
        first; what is not there then goes on without.
        """
        limits = list(self.take.limits[int(self.rows[0])])
        stages = [limits]
        if self.recipe.solver.comfort and (regions := self._regions(group, limits)) != limits:
            stages = [regions, limits]
        base = self._base(group)
        met = np.zeros((len(self.rows), len(group.members)), np.bool_)
        met[self.held] = True
        for inside in stages:
            for step in (MILD_STEP, PRIORITY_STEP):
                if met.all():
                    break
                some = np.flatnonzero(~met.all(1) | self.held)
                if not self._solve(group, (inside, step), some, met, base):
                    break
        if self.recipe.solver.restarts:
            self._restart(group, met, base)
        return met

    def _base(self, group: Group) -> tuple[Array, Array]:
        """Rotations and translations of all rows with a group's joints at their base poses."""
        rotations, translations = self.rotations.copy(), self.translations.copy()
        rows, joints = np.flatnonzero(self.held), sorted(group.joints)
        places = np.ix_(self.rows[rows], joints)
        rotations[np.ix_(rows, joints)] = self.take.base[places]
        translations[np.ix_(rows, joints)] = self.take.translations[places]
        return rotations, translations

    def _restart(self, group: Group, met: NDArray[np.bool_], base: tuple[Array, Array]) -> None:
        """Look for other ways to goals that are missed, at the first of a run of frames and some of the
        others; what reaches them there is where the frames of the run start once more.

        Targets farther away than their chains are long are left: nothing reaches them.
        """
        limits = self.take.limits[int(self.rows[0])]
        missed = np.flatnonzero(~met.all(1))
        if len(missed):
            asked = self._asked(group, (limits, PRIORITY_STEP), missed, base)
            start = start_state(asked.problem.layout, asked.given, asked.poses)
            far = asked.problem.beyond_reach(asked.given, start, asked.stop.position, asked.stop.angle)
            missed = missed[~far]
        waiting = np.zeros(len(met), np.bool_)
        waiting[missed] = True
        for run in _runs(waiting):
            wait, gap = 0, AGAIN
            for k in run.tolist():
                if met[k].all() or wait > 0:
                    wait -= 1
                    continue
                found = self._another_way(group, k, base)
                if found is None:
                    wait, gap = gap - 1, 2 * gap
                    continue
                wait = AGAIN - 1
                left = run[~met[run].all(1)]
                kept = self.rotations[left].copy(), self.translations[left].copy()
                self._depart(group, left, (k, found), base)
                again = met.copy()
                self._solve(group, (limits, PRIORITY_STEP), left, again, base, from_base=False)
                worse = ~again[left].all(1)
                self.rotations[left[worse]] = kept[0][worse]
                self.translations[left[worse]] = kept[1][worse]
                met[left[~worse]] = True

    def _another_way(self, group: Group, k: int, base: tuple[Array, Array]) -> Pose | None:
        """A pose of a row that meets a group's goals, found from other starts; of several the one nearest to
        the base pose."""
        sample, recipe = self.samples[k], self.recipe
        constraints = self.take.constraints
        wanted = [
            goal for c in group.members for goal in goals(self.skeleton, constraints[c], sample.targets[c])
        ]
        now = Pose(tuple(map(Quaternion, self.rotations[k])), tuple(map(Vector, self.translations[k])))
        skeleton = sample.reading.skeleton
        limits = [joint.limit for joint in skeleton.joints]
        settings = frame_settings(sample, recipe, False).settings
        passes = replace(
            settings, solver=Solver.CCD, restarts=0, max_iterations=min(PASSES, settings.max_iterations)
        )
        first = solve(skeleton, now, wanted, passes).pose
        entries = [
            entry
            for entry in recipe.poses
            if {joint.name for joint in skeleton.joints} & entry.rotations.keys()
        ]
        others = starts(
            StartSpace(skeleton, wanted, limits, sorted(group.joints), entries),
            now,
            settings.seed,
            settings.restarts,
        )
        poses = Poses.of([first, *others])
        size = poses.rotations.shape[-1]
        problem = LeastSquaresProblem(skeleton, wanted, limits, sorted(group.joints))
        here = np.full(size, k)
        reference = self._reference([sample] * size, _poses(base[0][here], base[1][here]))
        given = problem.given(Bones.of(skeleton), poses, problem.own_targets(), reference)
        near = np.full(size, settings.position_tolerance)
        found = solve_batch(
            problem,
            given,
            start_state(problem.layout, given, poses),
            Limits(near, settings.angle_tolerance, min(STEPS, settings.max_iterations)),
        )
        good = np.flatnonzero(found.excess <= 1.0)
        if not len(good):
            return None
        rows = np.array(problem.layout.rows)
        there = (found.state.rotations[..., good] * base[0][k][rows].T[..., None]).sum(0)
        best = good[int(np.argmax(np.abs(there).sum(0)))]
        rotations = list(now.rotations)
        for row, j in enumerate(problem.layout.rows):
            if j in group.joints:
                rotations[j] = Quaternion(found.state.rotations[:, row, best])
        return Pose(tuple(rotations), now.translations)

    def _depart(self, group: Group, rows: Rows, found: tuple[int, Pose], base: tuple[Array, Array]) -> None:
        """Let joints of rows be as far from their base poses as those of another row are."""
        k, pose = found
        for j in group.joints:
            away = Quaternion(base[0][k, j]).conjugated() @ pose.rotations[j]
            numbers = np.array(away[:])[:, None]
            turned = unit(multiply(base[0][rows, j].T, numbers / np.sqrt((numbers * numbers).sum(0))))
            self.rotations[rows, j] = turned.T

    def _regions(self, group: Group, limits: Sequence[Limit | None]) -> list[Limit | None]:
        """The comfort regions of a group's joints, where they have one, in place of their limits."""
        found = list(limits)
        for j in group.joints:
            comfort = self.skeleton.joints[j].comfort
            if comfort is not None and comfort.region is not None:
                found[j] = comfort.region
        return found

    def _solve(
        self,
        group: Group,
        stage: tuple[Sequence[Limit | None], float],
        some: Rows,
        met: NDArray[np.bool_],
        base: tuple[Array, Array],
        from_base: bool = True,
    ) -> bool:
        """Solve a group at some of the rows; whether some goals are served before others.

        A stage is what limits hold, and what goals count beside those served before them. Otherwise than
        from the base, poses start as they stand.
        """
        asked = self._asked(group, stage, some, base)
        problem, given, stop = asked.problem, asked.given, asked.stop
        start = start_state(problem.layout, given, asked.poses)
        held = self.held[some]
        if asked.is_ranked and stage[1] != MILD_STEP:
            # What is served later would give way to the pull to the reference.
            solved = solve_batch(problem, replace(given, reference=None), start, stop)
            found = SolvedFrames(solved.state, solved.excess, held, solved.iterations)
        else:
            times = np.asarray(self.take.frames)[self.rows[some]]
            found = solve_sequence(Frames(problem, given, start, stop, held, times), from_base)
        self._store(problem, found, some)
        self.iterations = max(self.iterations, int(found.iterations.max(initial=0)))
        met[some] = True
        for place, miss in zip(asked.places, problem.evaluate(given, found.state).misses, strict=True):
            met[some, place] &= (miss.distance <= stop.position) & (miss.angle <= stop.angle)
        met[self.held] = True
        return asked.is_ranked

    def _asked(
        self,
        group: Group,
        stage: tuple[Sequence[Limit | None], float],
        some: Rows,
        base: tuple[Array, Array],
    ) -> _Asked:
        """What a group asks for at some of the rows, for least squares; a stage as in `_solve`."""
        limits, step = stage
        samples = [self.samples[k] for k in some.tolist()]
        constraints, rows = self.take.constraints, self.rows[some]
        placed = [
            (place, goal)
            for place, c in enumerate(group.members)
            for goal in goals(self.skeleton, constraints[c], samples[0].targets[c])
        ]
        targets = [
            _targets(goal, [self.take.targets[row][group.members[place]] for row in rows.tolist()])
            for place, goal in placed
        ]
        wanted = [goal for _, goal in placed]
        problem = LeastSquaresProblem(self.skeleton, wanted, limits, sorted(group.joints), step)
        now = _poses(self.rotations[some], self.translations[some])
        before = _poses(base[0][some], base[1][some])
        given = problem.given(self._bones(rows), now, targets, self._reference(samples, before))
        is_ranked = len({goal.priority for goal in wanted}) > 1
        solver = self.recipe.solver
        stop = Limits(
            solver.position_tolerance / scales(samples),
            solver.angle_tolerance,
            min(STEPS, solver.max_iterations),
            RANKED_GAIN if is_ranked and step != MILD_STEP else GAIN,
        )
        return _Asked(problem, given, now, stop, [place for place, _ in placed], is_ranked)

    def _bones(self, rows: Rows) -> Bones:
        take = self.take
        if take.same_bones(int(rows[0]), int(rows[-1])):
            rows = rows[:1]
        rests = take.rests[rows].transpose(2, 1, 0)
        rests = rests / np.sqrt((rests * rests).sum(0))
        return Bones(take.offsets[rows].transpose(2, 1, 0), rests, take.lengths[rows].T)

    def _reference(self, samples: Sequence[FrameSample], base: Poses) -> Poses:
        """The poses that joints are held near to."""
        homes = [self.recipe.reference(sample) or sample.reading.pose for sample in samples]
        if all(home is sample.reading.pose for home, sample in zip(homes, samples, strict=True)):
            return base
        return _poses(
            np.array([[q[:] for q in home.rotations] for home in homes]), base.translations.transpose(2, 1, 0)
        )

    def _store(self, problem: LeastSquaresProblem, found: SolvedFrames, some: Rows) -> None:
        """BakeFrames over what was solved; base poses that stay keep their very bits."""
        layout, changed = problem.layout, np.flatnonzero(~found.kept)
        rows = np.unique(np.concatenate((layout.hinge_rows, layout.ball_rows)))
        joints = np.array(layout.rows)[rows]
        solved = found.state.rotations[:, rows][..., changed]
        self.rotations[np.ix_(some[changed], joints)] = solved.transpose(2, 1, 0)
        for k, (j, slide) in enumerate(layout.slides):
            axis = np.array(slide.axis)
            shift = found.state.slides[k, changed] - self.translations[some[changed], j] @ axis
            self.translations[some[changed], j] += shift[:, None] * axis


@dataclass(frozen=True)
class _Asked:
    """A group's goals at some frames.

    Attributes:
        problem, given: what the frames share, and what each brings.
        poses: as they stand.
        stop: when to stop.
        places: of each goal the place of its constraint in the group.
        is_ranked: whether some goals are served before others.
    """

    problem: LeastSquaresProblem
    given: Given
    poses: Poses
    stop: Limits
    places: list[int]
    is_ranked: bool


def _runs(marked: NDArray[np.bool_]) -> list[Rows]:
    """The places of each run of set entries."""
    edges = np.diff(np.concatenate(([False], marked, [False])).astype(np.int8))
    firsts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return [np.arange(first, end) for first, end in zip(firsts, ends, strict=True)]


def _poses(rotations: Array, translations: Array) -> Poses:
    """Poses from (R, J, 4) and (R, J, 3)."""
    turned = rotations.transpose(2, 1, 0)
    return Poses(
        turned / np.sqrt((turned * turned).sum(0)), np.ascontiguousarray(translations.transpose(2, 1, 0))
    )


def _targets(goal: Goal, aims: Sequence[TargetSample]) -> Array:
    """(3, R), or (4, R) of an orientation: what a goal asks for at each row."""
    name = {"PositionGoal": "point", "BalanceGoal": "point", "PoleGoal": "pole", "DirectionGoal": "direction"}
    found = np.array([getattr(aim, name.get(type(goal).__name__, "rotation"))[:] for aim in aims]).T
    if isinstance(goal, OrientationGoal) or type(goal).__name__ == "DirectionGoal":
        found = found / np.sqrt((found * found).sum(0))
    return np.ascontiguousarray(found, dtype=np.float64)
