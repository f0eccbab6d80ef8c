"""Frames solved one after the other: some by the loop, and those between them all at once.

Where each constraint asks for a position of a chain that turns rigidly, with or without a rotation or a
direction of its last joint, only some frames are solved by the loop, each from the one before: every
`STRIDE`-th, or sooner where targets move far. All start from a smooth curve through those and are brought to
their targets together (`inbetweens.py`); what does not arrive so is solved by the loop from there. Everything
else is solved frame by frame.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from mathutils import Quaternion
from numpy.typing import NDArray

from ...limits.shapes import Limit
from ...motion import smoothing
from ...motion.interpolation import Array, slerp
from ...settings import SolveStatus
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ...solvers.ccd.shared_passes import TRAVEL as HOME
from ...solvers.least_squares import inbetweens
from ..properties.constraint_values import Constraint
from ..scene.evaluation import FrameSample
from ..scene.targets import AXES, TargetSample
from ..solve.solving import ShotSolveSettings, Solution, groups, scale, scales, with_tolerances
from ..solve.walking import solve_frame
from .bake_frames import BakeFrames

Rows = NDArray[np.intp]

STRIDE = 32
"""Most frames from one that the loop solves to the next."""
TRAVEL = 0.3
"""Part of the length of its chain that a target moves from one such frame to the next, at most."""
TURN = 0.25
"""Lengths of its chain that a radian counts for by which a target turns, where the chain turns with it."""
LEAP = 1.0
"""Radians by which a joint may turn from one such frame to the next, unless they are neighbours."""
STILL = 1e-6
"""What moves less does not move: components of quaternions, and parts of a chain's length."""
ROUGH = 0.05
"""Part of a chain's length, and radians, within which such a frame need be solved: it is brought to its
target with the others."""
AGAIN = 8
"""Of a row of frames that miss their targets every such one, from the first on, is solved patiently."""
RUN = 128
"""Frames that are settled in one go: few calls, and arrays that stay near the processor."""


class Chain(NamedTuple):
    """One position to reach: the constraint, and the joints from the root to its tip."""

    constraint: int
    path: tuple[int, ...]
    fixed: tuple[int, ...]  # what of the path comes before the first joint that it moves
    moved: list[int]
    mobility: Array
    length: float  # of the bones that it moves, armature space


@dataclass
class March:
    """Solves the frames of a take in order, forwards or backwards, and keeps the solutions there.

    Attributes:
        take: its rows are stored before they come here.
        recipe: how they are solved.
    """

    take: BakeFrames
    recipe: ShotSolveSettings
    _before: Solution | None = None
    _chains: tuple[Chain, ...] = ()
    _limits: tuple[Limit | None, ...] | None = None  # of the frame that was added last
    _influences: tuple[float, ...] = ()  # there
    _samples: dict[int, FrameSample] = field(default_factory=dict)  # of rows that are not settled yet
    _anchors: list[int] = field(default_factory=list)  # those of them that the loop has solved
    _since: list[int] = field(default_factory=list)  # rows that came after the last of these
    _travelled: list[float] = field(default_factory=list)  # by each chain's target since the last of these

    def add(self, row: int, sample: FrameSample) -> Iterator[None]:
        """The next frame to solve; an item after each longer piece of work."""
        if self._goes_otherwise(row, sample):
            yield from self.finish()
            self._chains = self._plain(sample)
        if not self._chains:
            self._before = self._solve(row, sample, self._before)
            return
        far = self._moves_far(row)
        self._samples[row] = sample
        self._since.append(row)
        if far or not self._anchors or len(self._since) >= STRIDE:
            self._anchor(row)

    def finish(self) -> Iterator[None]:
        """Solves the frames that wait for later ones; an item after each longer piece of work."""
        if not self._samples:
            return
        if self._since:
            self._anchor(self._since[-1])
        yield from self._settle()
        self._samples, self._anchors = {}, []

    def _goes_otherwise(self, row: int, sample: FrameSample) -> bool:
        """Whether a frame has other limits than the one before, or other constraints in force."""
        limits, influences = self.take.limits[row], sample.influences
        if limits is self._limits and influences == self._influences:
            return False
        same = limits == self._limits and [i > 0.0 for i in influences] == [i > 0.0 for i in self._influences]
        self._limits, self._influences = limits, influences
        return not same

    def _moves_far(self, row: int) -> bool:
        """Whether a target has moved far since the last frame that the loop solved."""
        if not self._anchors:
            return True
        now, before = self.take.targets[row], self.take.targets[next(reversed(self._samples))]
        far = False
        for k, chain in enumerate(self._chains):
            self._travelled[k] += self._way(chain, before, now)
            far = far or self._travelled[k] > TRAVEL * chain.length
        return far

    def _way(self, chain: Chain, before: Sequence[TargetSample], now: Sequence[TargetSample]) -> float:
        """How far a chain's target went, armature space; its turn counts as well."""
        one, other = before[chain.constraint], now[chain.constraint]
        return (other.point - one.point).length + TURN * chain.length * turn_between(one, other)

    def _anchor(self, row: int) -> None:
        """A frame that waits is solved by the loop; where it leaps, first one half-way there."""
        before = self._before
        start = None if before is None else self._led(row, before)
        found = self._solve(row, self._samples[row], start, ROUGH if self._anchors else 0.0)
        place = self._since.index(row)
        between = self._since[:place]
        if before is not None and between and self._leaps(before, found):
            self._anchor(between[len(between) // 2])
            self._anchor(row)
            return
        self._before = found
        self._anchors.append(row)
        self._since = self._since[place + 1 :]
        self._travelled = [0.0] * len(self._chains)

    def _led(self, row: int, before: Solution) -> Solution:
        """As if the frame before had been solved to where the least turns lead from it to this row, if they
        arrive, joints going home a little as in `pushes`: chains whose last joint is to be turned as well the
        loop, joint by joint, would turn about themselves.
        """
        facing = [c for c in self._chains if self.take.constraints[c.constraint].rotation != "NONE"]
        if not facing:
            return before
        rows, rotations = np.array([row]), list(before.pose.rotations)
        here = self.take.base[row].copy()
        for chain in self._chains:
            here[chain.moved] = [rotations[j][:] for j in chain.moved]
        reference, last = (
            self.recipe.reference(self._samples[row]),
            self._anchors[-1] if self._anchors else row,
        )
        for chain in facing:
            guess = here.copy()
            if reference is not None:
                way = self._way(chain, self.take.targets[last], self.take.targets[row])
                part = chain.mobility[chain.mobility > 0.0] * min(1.0, way / (HOME * chain.length))
                there = np.array([reference.rotations[j][:] for j in chain.moved])
                guess[chain.moved] = slerp(here[chain.moved], there, part)
            guess = guess[list(chain.path)].T[..., None]
            path, aims = self._path(chain, rows, chain.path), self._aims(chain, rows)
            found, off = inbetweens.settle(path, guess, aims)
            if off[0] <= 1.0:
                here[list(chain.path)] = found[..., 0].T
                for j in chain.moved:
                    rotations[j] = Quaternion(here[j])
        return replace(before, pose=Pose(tuple(rotations), before.pose.translations))

    def _leaps(self, before: Solution, after: Solution) -> bool:
        """Whether a joint turns so far that a chain may have gone another way than step by step."""
        least = math.cos(0.5 * LEAP)
        return any(
            abs(before.pose.rotations[j].dot(after.pose.rotations[j])) < least
            for chain in self._chains
            for j in chain.moved
        )

    def _solve(
        self,
        row: int,
        sample: FrameSample,
        before: Solution | None,
        rough: float = 0.0,
        patient: bool = True,
    ) -> Solution:
        """Solve a row by the loop, within the tolerance or a part of the shortest chain's length."""
        recipe = self.recipe._replace(patient=patient)
        if rough > 0.0:
            near = rough * min(chain.length for chain in self._chains) * scale(sample)
            tolerance = max(near, recipe.solver.position_tolerance)
            angle = max(rough, recipe.solver.angle_tolerance)
            recipe = recipe._replace(solver=with_tolerances(recipe.solver, tolerance, angle))
        solution = solve_frame(sample, self.take.constraints, recipe, before)
        states = dict(zip(solution.active, solution.states, strict=True))
        self.take.store_solution(row, solution.pose, states, solution.contact_state)
        return solution

    def _settle(self) -> Iterator[None]:
        """Bring the frames that wait to their targets, together."""
        rows = np.array(sorted(self._samples), dtype=np.intp)
        turned = np.ascontiguousarray(self.take.base[rows].transpose(2, 1, 0))
        reached = np.ones((len(self._chains), len(rows)), np.bool_)
        for chain, here in zip(self._chains, reached, strict=True):
            place, aims = list(chain.path), self._aims(chain, rows)
            turned[:, chain.moved] = self._guesses(chain, rows, turned, aims)
            for start in range(0, len(rows), RUN):
                part = slice(start, start + RUN)
                path = self._path(chain, rows[part], chain.path)
                found, off = inbetweens.settle(path, turned[:, place, part], aims.at(part))
                turned[:, place, part] = found
                here[part] = off <= 1.0
                yield
            self._calm(chain, rows, turned, aims, here)
        states = {chain.constraint: SolveStatus.CONVERGED.name for chain in self._chains}
        rotations, arrived = turned.transpose(2, 1, 0), reached.all(axis=0)
        self.take.store_rotations(rows[arrived], rotations[arrived], states)
        before, missed = None, 0
        for k in np.flatnonzero(~arrived).tolist():
            sample = self._samples[int(rows[k])]
            missed = missed + 1 if k > 0 and not arrived[k - 1] else 0
            if before is not None:
                self._go_on(before, rotations, reached, k)
            patient = missed % AGAIN == 0
            before = self._solve(int(rows[k]), sample, guessed(sample, rotations[k]), patient=patient)
            yield

    def _go_on(self, before: Solution, rotations: Array, reached: NDArray[np.bool_], k: int) -> None:
        """Let chains that miss their targets in a row of frames go on from the frame before, and by degrees
        over to where the curve leads when they reach them again; in place."""
        for chain, here in zip(self._chains, reached, strict=True):
            if k == 0 or here[k - 1] or here[k]:
                continue
            again = np.flatnonzero(here[k:])
            part = np.full(len(chain.moved), 1.0 / (1.0 + again[0]) if len(again) else 0.0)
            was = np.array([before.pose.rotations[j][:] for j in chain.moved])
            rotations[k, chain.moved] = slerp(was, rotations[k, chain.moved], part)

    def _calm(
        self,
        chain: Chain,
        rows: Rows,
        turned: Array,
        aims: inbetweens.Aims,
        arrived: NDArray[np.bool_],
    ) -> None:
        """Take away jolts where joints come to their limits, as far as their target lets them; in place."""
        limited = any(self.take.limits[int(rows[0])][j] is not None for j in chain.moved)
        if not limited or len(set(np.diff(self.take.frames[rows]).tolist())) != 1:
            return
        moved, place = turned[:, chain.moved], list(chain.path)
        parts = smoothing.weights(moved, aims.points, chain.length, arrived)
        some = np.flatnonzero(parts)
        if not len(some):
            return
        guess = turned[:, place][..., some]
        guess[:, chain.mobility > 0.0] = smoothing.smoothed(moved, parts)[..., some]
        path = self._path(chain, rows[some], chain.path)
        found, off = inbetweens.settle(path, guess, aims.at(some))
        calmed = moved.copy()
        calmed[..., some] = found[:, chain.mobility > 0.0]
        before, after = smoothing.bends(moved), smoothing.bends(calmed)
        softer = after.max() <= before.max() and (after * after).sum() < (before * before).sum()
        if softer and (off <= 1.0).all():
            turned[:, chain.moved] = calmed

    def _guesses(self, chain: Chain, rows: Rows, turned: Array, aims: inbetweens.Aims) -> Array:
        """(4, moved, F): a smooth curve through the frames that the loop has solved.

        It is run along as the target moves, seen from where the chain is fixed, not as time goes by: while
        nothing moves the chain rests.
        """
        if chain.fixed:
            path = self._path(chain, rows, (*chain.fixed, chain.moved[0]))
            fixed = turned[:, [*chain.fixed, chain.moved[0]]]
            heads, frames = inbetweens.forward(path, fixed, inbetweens.room(*fixed.shape[1:]))
            aims = aims.seen_from(heads[:, -1], frames[:, :, -2])
        steps = np.linalg.norm(np.diff(aims.points), axis=0) + TURN * chain.length * aims.steps()
        way = np.concatenate(([0.0], np.cumsum(steps)))
        at = np.searchsorted(rows, sorted(self._anchors))
        poses = self.take.solved_rotations(rows[at])[:, chain.moved]
        # Where a chain goes on while its target stands still, as one may that does not reach it, it is time
        # that runs along.
        changed = np.any(np.abs(np.diff(poses, axis=0)) > STILL, axis=(1, 2))
        for k in np.flatnonzero(changed & (np.diff(way[at]) <= STILL * chain.length)):
            ramp = np.clip((np.arange(len(way)) - at[k]) / (at[k + 1] - at[k]), 0.0, 1.0)
            way = way + STILL * chain.length * ramp
        apart = np.concatenate(([True], np.diff(way[at]) > 0.0))
        guesses = inbetweens.guesses(way[at][apart], poses[apart], np.minimum(way, way[at][apart][-1]))
        return guesses.transpose(2, 1, 0)

    def _aims(self, chain: Chain, rows: Rows) -> inbetweens.Aims:
        """What a constraint asks for at some rows, armature space."""
        constraint, solver = self.take.constraints[chain.constraint], self.recipe.solver
        aims = [self.take.targets[row][chain.constraint] for row in rows.tolist()]
        found = inbetweens.Aims(
            np.array([aim.point[:] for aim in aims]).T,
            solver.position_tolerance / scales([self._samples[row] for row in rows.tolist()]),
            angle_tolerance=solver.angle_tolerance,
        )
        if constraint.rotation == "ORIENTATION":
            rotations = np.array([aim.rotation[:] for aim in aims if aim.rotation is not None]).T
            return replace(found, frames=inbetweens.matrices(rotations / np.linalg.norm(rotations, axis=0)))
        if constraint.rotation == "DIRECTION":
            directions = np.array([aim.direction[:] for aim in aims if aim.direction is not None]).T
            unit = directions / np.linalg.norm(directions, axis=0)
            return replace(found, directions=unit, axis=np.array(AXES[constraint.bone_axis]))
        return found

    def _path(self, chain: Chain, rows: Rows, joints: Sequence[int]) -> inbetweens.Path:
        """Joints of a constraint's path, from the root on, at some rows of the take."""
        take, place = self.take, list(joints)
        if take.same_bones(int(rows[0]), int(rows[-1])):
            rows = rows[:1]
        rests = take.rests[np.ix_(rows, place)].transpose(2, 1, 0)
        matrices = inbetweens.matrices(rests / np.linalg.norm(rests, axis=0))
        translations = take.translations[np.ix_(rows, place)].transpose(2, 1, 0)
        shifts = take.offsets[np.ix_(rows, place)].transpose(2, 1, 0)
        shifts = shifts + np.einsum("ijnf,jnf->inf", matrices, translations)
        effectors = np.zeros((3, len(rows)))
        if take.constraints[chain.constraint].use_tail:
            effectors[1] = take.lengths[rows, place[-1]]
        limits = [take.limits[int(rows[0])][j] for j in place]
        return inbetweens.Path(limits, chain.mobility[: len(place)], matrices, shifts, effectors)

    def _plain(self, sample: FrameSample) -> tuple[Chain, ...]:
        """The chains of the active constraints, parents before children; none if one of them asks for more
        than a position, or shares joints with another, or has a joint that does not simply turn, or if bones
        are planted."""
        if not self.recipe.solver.refine or self.take.tracks is not None:
            return ()
        skeleton, constraints = sample.reading.skeleton, self.take.constraints
        active = [c for c, influence in enumerate(sample.influences) if influence > 0.0]
        found = []
        for joints, members in groups(skeleton, constraints, active):
            constraint = constraints[members[0]]
            path = skeleton.chain(constraint.tip)
            if len(members) > 1 or not _asks_for_one_place(constraint):
                return ()
            if not _turns_rigidly(skeleton, path, joints, self.recipe.solver.comfort):
                return ()
            first = min(place for place, j in enumerate(path) if j in joints)
            mobility = [1.0 - skeleton.joints[j].stiffness if j in joints else 0.0 for j in path]
            if not any(mobility):
                return ()
            length = math.fsum(skeleton.joints[j].length for j in joints)
            moved = [j for j in path if j in joints]
            found.append(Chain(members[0], path, path[:first], moved, np.array(mobility), length))
        return tuple(found)


def guessed(sample: FrameSample, rotations: Array) -> Solution:
    """As if the frame before had been solved to these rotations (J, 4)."""
    base = sample.reading.pose
    pose = Pose(tuple(map(Quaternion, rotations)), base.translations)
    active = tuple(c for c, influence in enumerate(sample.influences) if influence > 0.0)
    return Solution(pose, active, None, ())


def turn_between(before: TargetSample, now: TargetSample) -> float:
    """Radians by which a target turns as far as it matters."""
    if before.rotation is not None and now.rotation is not None:
        return 2.0 * math.acos(min(1.0, abs(before.rotation.dot(now.rotation))))
    if before.direction is not None and now.direction is not None:
        return before.direction.angle(now.direction)
    return 0.0


def _asks_for_one_place(constraint: Constraint) -> bool:
    """Whether a constraint asks for a position, and for nothing else but how the last joint is turned, to be
    reached by the loop."""
    return (
        constraint.kind == "REACH"
        and constraint.use_position
        and not constraint.pole_target
        and constraint.max_extension >= 1.0
        and constraint.method == "CCD"
    )


def _turns_rigidly(skeleton: Skeleton, path: Sequence[int], moved: set[int], comfort: bool) -> bool:
    """Whether the joints of a path that move do nothing but turn what is beyond them."""
    first = min(place for place, j in enumerate(path) if j in moved)
    for place, j in enumerate(path):
        joint = skeleton.joints[j]
        if place > first and not joint.inherit_rotation:
            return False
        if j in moved and (
            joint.slide is not None or joint.max_step < math.pi or (comfort and joint.comfort is not None)
        ):
            return False
    return True
