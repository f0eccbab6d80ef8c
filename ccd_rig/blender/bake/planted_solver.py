# SPDX-License-Identifier: GPL-3.0-or-later
"""Solving of frames with planted bones, contact segment by contact segment.

A contact segment is a run of frames with the same active constraints. It starts from the end of the segment
before.

Where the body keeps its animation, a frame's pose is the nearest to its animation that holds the planted
bones. Released joints return to their animation, so consecutive segments are one motion, in which
`solvers.motion` smooths jumps. A bone that comes down on the ground, which may be elsewhere than
its animation, gets there as a released one returns.

Where the body follows planted bones, the root bone is free to move and turn. The reference is the animated
figure, put on its base. If a constraint places the root bone in all frames of a segment, that decides the
pose. Otherwise joints keep their departure from the animation of the frame before. So no change of the base
moves the figure.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Quaternion

from ...limits.shapes import BatchLimits, Limit, Slide
from ...maths.batch import (
    Array,
    Mask,
    alike,
    arctan2,
    compose,
    conjugate,
    inverse,
    length,
    matrices,
    move,
    multiply,
    rotate,
    unit,
)
from ...motion.ground import clearing
from ...motion.interpolation import least_lift
from ...motion.retargeting.feet import raised_ahead, smooth_envelope
from ...skeleton.joints import Joint, Skeleton
from ...skeleton.kinematics import forward_kinematics
from ...skeleton.pose import Pose
from ...solvers.stepping import result_of
from ..properties.constraint_values import Constraint, Holds
from ..solve.methods import FrameSolveSettings, Group, chain_joints, groups
from ..solve.planting import (
    RETURN,
    Contacts,
    GroundNear,
    JointPoses,
    PlantGround,
    affine,
    arriving,
    blended,
    drifted,
    place_of,
    placed,
    returning,
    seen,
    sole_of,
    turned,
)
from .bake_frames import BakeFrames, Rows
from .group_solving import Batch, solve_batches
from .report import REACHED

SHARPER = 0.1
"""Factor on the tolerances while bones are planted, as the error of planted bones beside the base slides."""
ALIKE = 1e-6
"""Radians, and parts of a planted bone's length, by which a foot is not brought out of the ground."""
PASSES = 2
"""Turns of a foot whose heel is in the ground."""
AROUND = 2.0
"""Largest distance of the root bone from its animated place above the base, in lengths of all bones."""


@dataclass(frozen=True)
class ContactSegment:
    """Consecutive frames with the same active constraints, limits and slides.

    A departure is a rotation beside the animation. The attributes from `anchors` on are the start of the
    segment, taken from the end of the segment before.
    """

    first: int  # first row
    last: int  # last row, included
    key: object  # equal for segments that are solved as one batch
    active: tuple[int, ...]  # active constraints of the group
    planted: tuple[int, ...]  # active constraints that plant a bone
    limits: tuple[Limit | None, ...]  # of each joint
    # Joints moved by each active constraint, but for the base, on whose bone the figure stands.
    moves: Mapping[int, frozenset[int]]
    moved: frozenset[int]  # joints of the support chains, and the root bone, that anything moves
    # Joints of the leg on which the figure stands whose animation leaves their limits.
    bounded: tuple[int, ...] = ()
    # (4, 4) places of planted bones without a target, in the world.
    anchors: Mapping[int, Array] = field(default_factory=dict)
    # If the body follows planted bones, departures of released legs.
    turns: Mapping[int, Quaternion] = field(default_factory=dict)
    # (4, 4) in the world, motion of the root bone beside its animation.
    drift: Array = field(default_factory=lambda: np.eye(4))
    # If the body keeps its animation, of released joints the frame in which they were moved last, and their
    # departure then.
    released: Mapping[int, tuple[float, Quaternion]] = field(default_factory=dict)
    carried: Mapping[int, Quaternion] = field(default_factory=dict)  # departures of joints that stay moved
    # Of joints that were released and are moved again, the last frame before that; their reference returns to
    # the animation within `planting.RETURN` frames from there.
    fading: Mapping[int, float] = field(default_factory=dict)

    @property
    def rows(self) -> Rows:
        return np.arange(self.first, self.last + 1)

    @property
    def all_moved(self) -> frozenset[int]:
        """Joints that active constraints move."""
        return frozenset[int]().union(*self.moves.values())


class PlantedFrames:
    """R solved frames of a bake with planted bones, in order of time."""

    def __init__(self, bake_frames: BakeFrames, shifts: Array | None) -> None:
        """Take the frames in their animated poses, with the body shifted."""
        self.bake_frames, self.tracks = bake_frames, bake_frames.planted_tracks
        rows = self.rows = bake_frames.solved_rows  # (R,) rows of the bake
        self.worlds = self.tracks.worlds[rows]  # (R, 4, 4) armature space to world
        self.bones = bake_frames.bones_at(rows)  # at each frame, or once where they are constant
        self.shifts: Array = (
            np.zeros((len(rows), 3)) if shifts is None else shifts
        )  # of the body, armature space
        # Poses without constraints, with the body shifted.
        self.animated = JointPoses(bake_frames.base, bake_frames.translations).at(rows)
        root_bone = self.tracks.support_chains.root_bone
        back = np.broadcast_to(conjugate(self.bones.rests[:, root_bone].T), (4, len(rows)))
        self.animated.translations[:, root_bone] += rotate(back, self.shifts.T).T
        self.solved = self.animated.at(slice(None))  # poses at full influence
        self.keyed = self.animated.at(slice(None))  # keyed poses of the support chains and the root bone
        self.states: list[dict[int, str]] = [{} for _ in rows]  # (R,) constraint -> status
        self.anchors = np.full((len(rows), len(bake_frames.constraints), 4, 4), np.nan)  # see `Contacts`
        # (R, C, 3) heads and (R, C, 4) unit rotations of planted bones, armature space.
        self.held_heads, self.held_rotations = self.anchors[..., :3, 3].copy(), self.anchors[..., 0].copy()
        # (R,) joints of the support chains, and the root bone, that anything moves.
        self.moved = [frozenset[int]()] * len(rows)
        self.bases = [-1] * len(rows)  # (R,) the constraint on whose bone the figure stands, or -1

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return self.bake_frames.constraints

    @property
    def frames(self) -> Array:
        """(R,) frame numbers."""
        return self.bake_frames.frames[self.rows]

    def skeleton(self, row: int) -> Skeleton:
        """The joints at a frame."""
        return self.bake_frames.bones.skeleton(int(self.rows[row]))

    def transforms(self, poses: JointPoses) -> tuple[Array, Array]:
        """(R, J, 3) heads and (R, J, 4) rotations of poses of all rows, armature space."""
        return self.bones.transforms(self.bake_frames.skeleton, *poses)

    def has_target(self, row: int, c: int) -> bool:
        """Whether a planted bone is held at a target at a frame."""
        return not math.isnan(self.bake_frames.targets.rotations[self.rows[row], c, 0])

    def hold(self, rows: Rows, c: int, anchor: Array | None, poses: JointPoses) -> None:
        """Plant a bone: at its target if it has one, else at an anchor, or where it lies on the ground.

        Args:
            rows: (R,) at which the constraint is planted.
            anchor: (4, 4) place of the bone without a target, in the world.
            poses: of the rows, without planted bones, with the body shifted; the shift is taken out.
        """
        constraint, tracks, places = self.constraints[c], self.tracks, self.rows[rows]
        targets = self.bake_frames.targets
        rotations = unit(targets.rotations[places, c], axis=-1)
        held = compose(self.worlds[rows], affine(targets.points[places, c], rotations))
        if anchor is not None:
            held[np.isnan(rotations[:, 0])] = anchor
        ground = tracks.ground if constraint.on_ground and not constraint.target else None
        if ground is not None and constraint.holds.ground:
            held = ground.carried(held[0], max(int(places[0]) - 1, 0), places)
        if not all(constraint.holds):
            self._release(held, rows, c, poses)
        if ground is not None:
            for k, place in enumerate(places.tolist()):
                held[k] = ground.lying(held[k], place, c, constraint.holds.rotation)
        assert not np.isnan(held).any()
        self.anchors[rows, c] = held
        has_target = ~np.isnan(rotations[:, :1])
        heads, turns = seen(held, self.worlds[rows])
        self.held_heads[rows, c] = np.where(has_target, targets.points[places, c], heads)
        self.held_rotations[rows, c] = np.where(has_target, rotations, unit(turns, axis=-1))

    def _release(self, held: Array, rows: Rows, c: int, poses: JointPoses) -> None:
        """Let components of places (R, 4, 4) that are not held follow the animation, in place; see `hold`."""
        constraint, unturned = self.constraints[c], self.tracks.unturned
        skeleton, worlds, bones = self.bake_frames.skeleton, self.worlds[rows], self.bones.at(rows)
        tip = skeleton.index(constraint.tip)
        heads, rotations = (each[:, tip] for each in bones.transforms(skeleton, *poses))
        if constraint.on_ground and unturned is not None:
            animated_poses = JointPoses(unturned[self.rows[rows]], poses.translations)
            rotations = bones.transforms(skeleton, *animated_poses)[1][:, tip]
        animated = compose(worlds, affine(heads - self.shifts[rows], rotations))
        if not constraint.holds.ground:
            held[:, :2, 3] = animated[:, :2, 3]
        if not constraint.holds.height:
            held[:, 2, 3] = animated[:, 2, 3]
        if not constraint.holds.rotation:
            held[:, :3, :3] = animated[:, :3, :3]

    def store(self) -> None:
        """Store everything in the bake's frames."""
        self.bake_frames.store_batch(self.rows, *self.solved, self.states)
        keyed = JointPoses(*(np.float32(each).astype(np.float64) for each in self.keyed))  # as poses are
        self.tracks.contacts = Contacts(self.bases, self.anchors, self.moved, *keyed)


def ground_below(
    armature_object: bpy.types.Object, bake_frames: BakeFrames, rest: Matrix, ground_near: GroundNear
) -> PlantGround | None:
    """The ground below planted bones at all frames; None if no constraint lies on it.

    Args:
        armature_object: the original object.
        rest: armature space to world, as the armature stands at rest.
        ground_near: gives the ground; its rows are the frames.

    Raises:
        RigError: no ground is chosen, or it has no faces.
    """
    tracks, constraints, skeleton = bake_frames.tracks, bake_frames.constraints, bake_frames.skeleton
    planting = [c for c, each in enumerate(constraints) if each.kind.plants and each.on_ground]
    if tracks is None or not planting:
        return None
    heads, _ = bake_frames.transforms(bake_frames.base, bake_frames.translations)
    tips, root_bone = [skeleton.index(constraints[c].tip) for c in planting], tracks.support_chains.root_bone
    points = np.stack([move(tracks.worlds, heads[:, j]) for j in tips], axis=1)
    roots = move(tracks.worlds, heads[:, root_bone])
    room = max(float(np.linalg.norm(points - roots[:, None], axis=2).max()), 1e-3)
    ground = ground_near(points.reshape(-1, 3), room)
    if ground is None:
        return None
    walk, name = armature_object.ccd_rig.walk, skeleton.joints[root_bone].name
    clearance = float(walk.clearance)
    soles = {c: sole_of(armature_object, constraints[c], name, rest, clearance) for c in planting}
    tops = np.maximum(roots[:, 2], points[..., 2].max(axis=1))
    return PlantGround(ground, soles, tops, float(walk.steepest))


@dataclass
class PlantedSolver:
    """Solves the frames of a bake with planted bones, in order of time, into `BakeFrames`."""

    settings: FrameSolveSettings  # of every solve

    def solve(self, bake_frames: BakeFrames, shifts: Array | None = None) -> Generator[float, None, None]:
        """Solve frames; yields counts of solved frames.

        Args:
            bake_frames: of the bake.
            shifts: (S, 3) of the body beside its animation, armature space; None: it is not shifted.
        """
        frames = PlantedFrames(bake_frames, shifts)
        skeleton, constraints = bake_frames.skeleton, bake_frames.constraints
        chains, every = frames.tracks.support_chains, tuple(range(len(bake_frames.constraints)))
        if chains.keeps_body:
            all_groups = groups(skeleton, constraints, every)
        else:
            joints = {j for constraint in constraints for j in chain_joints(skeleton, constraint)}
            all_groups = [Group(frozenset(joints | {chains.root_bone}), every)]
        for group in all_groups:
            solver = _GroupSolver(frames, group, self.settings)
            for count in solver.solve():
                yield count / len(all_groups)
            bake_frames.iterations = max(bake_frames.iterations, solver.iterations)
        frames.store()


class _GroupSolver:
    """Solves the segments of one group of a figure.

    Attributes:
        iterations: the most iterations of any frame.
    """

    def __init__(self, frames: PlantedFrames, group: Group, settings: FrameSolveSettings) -> None:
        self.frames, self.group, self.settings = frames, group, settings
        self.chains, self.joints = frames.tracks.support_chains, sorted(group.joints)
        self.iterations = 0
        self._ended: ContactSegment | None = None  # finished last; from its last frame the next one starts
        self._freed: dict[tuple[int, float], Skeleton] = {}  # see `_free_root`

    def solve(self) -> Generator[float, None, None]:
        """Solve all segments."""
        runs: list[list[ContactSegment]] = []  # those of a run are one motion
        segments = self._segments()
        for segment in segments:
            goes_on = runs and runs[-1][-1].active and segment.active and self.chains.keeps_body
            if goes_on:
                runs[-1].append(segment)
            else:
                runs.append([segment])
        for run in runs:
            bases, continued = [], []
            for k in range(len(run)):
                run[k] = self._started(run[k])
                continued.append(self._continued(run[k]))
                bases.append(self._base(run[k], continued[-1]))
                if k + 1 < len(run):
                    self._predict(run[k], run[k + 1], bases[-1], continued[-1])
            if run[0].active:
                yield from self._solve_run(run, bases)
            for k, segment in enumerate(run):
                if k > 0:  # the segment before is solved by now
                    segment = replace(segment, released=self._released(segment))
                    continued[k] = self._continued(segment)
                self._finish(segment, continued[k])
        if self.chains.keeps_body:
            for before, segment in pairwise(segments):
                self._come_down(before, segment)
            self._clear_ground(segments)

    def _come_down(self, before: ContactSegment, segment: ContactSegment) -> None:
        """Let joints whose bones come down on the ground get there before, while nothing moves them."""
        frames, start, numbers = self.frames, segment.first, self.frames.frames
        lying = [c for c in segment.planted if self._lies(c)]
        joints = frozenset[int]().union(*(segment.moves[c] for c in lying)) - before.moved
        for j in sorted(joints):
            first = start
            while (
                first > 0
                and j not in frames.moved[first - 1]
                and numbers[start] - numbers[first - 1] < RETURN
            ):
                first -= 1
            rows = slice(first, start)
            turn = frames.keyed.rotations[start, j], frames.animated.rotations[start, j]
            for poses in (frames.solved, frames.keyed):
                arriving(
                    poses.rotations[rows, j],
                    frames.animated.rotations[rows, j],
                    (numbers[start] - numbers[rows]) / RETURN,
                    turn,
                    segment.limits[j],
                )

    def _clear_ground(self, segments: Sequence[ContactSegment]) -> None:
        """Bring heels and swinging feet out of the ground, of legs that nothing but it moves."""
        frames, skeleton, ground = self.frames, self.frames.bake_frames.skeleton, self.frames.tracks.ground
        feet: dict[int, list[int]] = {}
        for c in self.group.members:
            if self._lies(c) and ground is not None:
                name = ground.soles[c].foot or frames.constraints[c].tip
                feet.setdefault(skeleton.index(name), []).append(c)
        for foot, planting in feet.items():
            constraint = frames.constraints[planting[0]]
            leg = skeleton.chain(constraint.tip, constraint.chain_length)[1:]
            rolls, swings = np.zeros(len(frames.rows), np.bool_), np.ones(len(frames.rows), np.bool_)
            for segment in segments:
                moving = [c for c, joints in segment.moves.items() if joints.intersection(leg)]
                swings[segment.rows] = not moving
                rolls[segment.rows] = moving == planting[:1]
            if not swings.all():
                self._clear_foot(leg[: leg.index(foot) + 1], planting, rolls, swings)

    def _clear_foot(self, leg: Sequence[int], planting: Sequence[int], rolls: Mask, swings: Mask) -> None:
        """Bring a foot out of the ground.

        A heel in the ground turns the foot about the planted bone. A foot that swings from or to a contact is
        lifted over what lies below it: by the clearance, or as high as its animation lifts it if that is
        less.

        Args:
            leg: joints from below the root bone to the foot.
            planting: the constraints that plant it.
            rolls: (R,) where the first of them alone does, and the foot may turn about its bone.
            swings: (R,) where nothing moves the leg.
        """
        frames, ground, foot, times = self.frames, self.frames.tracks.ground, leg[-1], self.frames.frames
        assert ground is not None
        soles = [ground.soles[c] for c in planting]
        skeleton = frames.bake_frames.skeleton
        tips = [skeleton.index(frames.constraints[c].tip) for c in planting]
        poses = frames.solved.at(slice(None))
        self._put(poses, np.arange(len(times)), frames.keyed.at(slice(None)))
        heads, axes = self._world(poses)
        angles: Array = np.zeros(len(times))
        turns: Array = np.tile(np.eye(3), (len(times), 1, 1))
        still = np.tile((1.0, 0.0, 0.0, 0.0), (len(times), 1))
        if soles[0].heel is not None:
            ball, start = heads[:, tips[0]], axes[:, foot] @ soles[0].heel
            flat = np.maximum(length(start[:, :2], -1), 1e-12)
            elevation, behind = arctan2(start[:, 2], flat), start / flat[:, None]
            for _ in range(PASSES):  # the ground is another one where the heel gets to
                arms = np.einsum("rij,rj->ri", turns, start)
                level = ground.heights((ball + arms)[:, None], frames.rows)[:, 0] - ball[:, 2]
                wanted = np.arcsin(np.clip(level / np.maximum(length(arms, -1), 1e-12), -1.0, 1.0))
                missing = np.where(rolls, np.maximum(0.0, wanted - elevation), 0.0)
                angles = smooth_envelope(missing, times, RETURN) * (rolls | swings)
                turns = matrices(raised_ahead(still, behind, angles).T).transpose(2, 0, 1)

        def points(heads: Array, axes: Array, turns: Array) -> Array:
            """(R, P, 3) of the sole, with the foot turned about the first planted bone."""
            rigid = [
                heads[:, tip, None] + np.einsum("rij,pj->rpi", axes[:, tip], sole.points)
                for tip, sole in zip(tips, soles, strict=True)
            ]
            if soles[0].heel is not None:
                arms = np.einsum("rij,rj->ri", turns, axes[:, foot] @ soles[0].heel)
                rigid.append((heads[:, tips[0]] + arms)[:, None])
            return np.concatenate(rigid, axis=1)

        sole = points(heads, axes, turns)
        animated = points(*self._world(frames.animated), np.broadcast_to(np.eye(3), turns.shape))
        lowest = animated[..., 2].min(axis=1)
        rise = lowest - np.interp(times, times[~swings], lowest[~swings])
        heights = ground.heights(sole, frames.rows)
        missing = clearing(heights.T, sole[..., 2].T, rise, soles[0].clearance)
        lift = least_lift(times, missing, ~swings, RETURN)
        rows = np.flatnonzero((angles > ALIKE) | (lift > ALIKE * soles[0].length))
        if not len(rows):
            return
        arms = np.einsum("rij,rj->ri", turns, heads[:, foot] - heads[:, tips[0]])
        places, turned_axes = heads[:, tips[0]] + arms, turns @ axes[:, foot]
        places[:, 2] += lift
        brought = np.tile(np.eye(4), (len(times), 1, 1))
        brought[:, :3, :3], brought[:, :3, 3] = turned_axes, places
        for same in alike(frames.bake_frames.limits[row] for row in frames.rows[rows].tolist()):
            self._bring(leg, planting[0], rows[same], brought[rows[same]], poses)
        _, rotations = frames.transforms(poses)
        for tip in set(tips) - {foot}:
            rests = np.broadcast_to(frames.bones.rests[:, tip], (len(times), 4))
            _, moved = frames.transforms(frames.solved)
            above = multiply(moved[rows, foot].T, rests[rows].T)
            turned_back = unit(multiply(conjugate(above), rotations[rows, tip].T))
            kept = BatchLimits([skeleton.joints[tip].limit]).project(turned_back[:, None])[0][:, 0].T
            for stored in (frames.solved, frames.keyed):
                stored.rotations[rows, tip] = kept

    def _world(self, poses: JointPoses) -> tuple[Array, Array]:
        """(R, J, 3) heads and (R, J, 3, 3) unit axes as columns, in the world."""
        heads, rotations = self.frames.transforms(poses)
        worlds = self.frames.worlds
        heads = move(worlds[:, None], heads)
        axes = matrices(np.moveaxis(rotations, -1, 0)).transpose(2, 3, 0, 1)
        axes = np.einsum("rij,rkjl->rkil", worlds[:, :3, :3], axes)
        return heads, axes / np.linalg.norm(axes, axis=-2, keepdims=True)

    def _bring(self, leg: Sequence[int], c: int, rows: Rows, anchors: Array, poses: JointPoses) -> None:
        """Bring the last joint of a leg to anchors (R, 4, 4) at rows, from poses of all rows."""
        frames, skeleton = self.frames, self.frames.bake_frames.skeleton
        constraints = list(frames.constraints)
        name = skeleton.joints[leg[-1]].name
        constraints[c] = replace(
            constraints[c],
            tip=name,
            chain_length=len(leg) + 1,
            holds=Holds(*[True] * len(constraints[c].holds)),
        )
        places = frames.rows[rows]
        targets = frames.bake_frames.targets.at(places).copy()
        heads, rotations = seen(anchors, frames.worlds[rows])
        targets.points[:, c], targets.rotations[:, c] = heads, unit(rotations, axis=-1)
        batch = self._solved_alone(
            places, constraints=constraints, active=(c,), targets=targets, base=poses.at(rows)
        )
        at = np.ix_(rows, leg)
        for stored in (frames.solved, frames.keyed):
            stored.rotations[at] = batch.rotations[:, leg]

    def _lies(self, c: int) -> bool:
        """Whether a constraint's bone lies on the ground."""
        constraint = self.frames.constraints[c]
        return self.frames.tracks.ground is not None and constraint.on_ground and not constraint.target

    def stands_on(self, segment: ContactSegment) -> int:
        """The constraint on whose bone the figure stands, or -1."""
        return segment.planted[0] if segment.planted and not self.chains.keeps_body else -1

    # Segments -----------------------------------------------------------------------------------------------

    def _segments(self) -> list[ContactSegment]:
        bake_frames, members, segments = self.frames.bake_frames, self.group.members, []
        for run in bake_frames.solved_runs(members):
            first, last, row = int(run[0]), int(run[-1]), int(self.frames.rows[run[0]])
            active = tuple(c for c in members if bake_frames.influences[row, c] > 0.0)
            key = active, bake_frames.limits[row], bake_frames.shifting[row]
            segments.append(self._segment(first, last, key, active))
        return segments

    def _segment(self, first: int, last: int, key: object, active: tuple[int, ...]) -> ContactSegment:
        frames, root_bone = self.frames, self.chains.root_bone
        constraints, skeleton = frames.constraints, frames.skeleton(first)
        planted = tuple(c for c in active if constraints[c].kind.plants)
        moves = {c: frozenset(chain_joints(skeleton, constraints[c])) for c in active}
        ends = frozenset(self.chains.joints)
        if not self.chains.keeps_body:
            ends |= {root_bone}
        limits = frames.bake_frames.limits[int(frames.rows[first])]
        moved, bounded = frozenset[int](), tuple[int, ...]()
        if not self.chains.keeps_body and planted:
            base = moves.pop(planted[0]) - {root_bone}
            bounded = self._leaving(base, limits, slice(first, last + 1))
            moved = frozenset((root_bone, *bounded))
            # A chain up to the root bone moves the leg that the figure stands on.
            for c, joints in moves.items():
                chain = skeleton.chain(constraints[c].tip, constraints[c].chain_length)
                moves[c] = (joints | base if chain[0] == root_bone else joints) - {root_bone}
        moved |= frozenset[int]().union(*moves.values()) & ends
        return ContactSegment(first, last, key, active, planted, limits, moves, moved, bounded)

    def _leaving(self, joints: Iterable[int], limits: Sequence[Limit | None], rows: slice) -> tuple[int, ...]:
        """Joints whose animation is outside their limits at any of the rows."""
        limited = [j for j in sorted(joints) if limits[j] is not None]
        animated = self.frames.animated.rotations[rows][:, limited]
        _, outside = BatchLimits([limits[j] for j in limited]).project(unit(animated.transpose(2, 1, 0)))
        return () if outside is None else tuple(np.array(limited, np.intp)[outside.any(axis=1)].tolist())

    def _predict(
        self, segment: ContactSegment, after: ContactSegment, base: JointPoses, continued: JointPoses
    ) -> None:
        """Predict the end of a segment, for the start of the segment after it."""
        last = replace(segment, first=segment.last)
        with_target = {c for c in after.planted if self.frames.has_target(after.first, c)}
        if segment.moved - after.moved or set(after.planted) - set(segment.planted) - with_target:
            batch = self._batch(last, last.rows, base.at([-1]), replace(self.settings, smoothness=0.0))
            result_of(solve_batches([batch]))
            self._keep(last, last.rows, batch)
        self._finish(last, continued.at([-1]))

    def _started(self, segment: ContactSegment) -> ContactSegment:
        """A segment that starts from the end of the segment before it."""
        frames, ended, root_bone = self.frames, self._ended, self.chains.root_bone
        skeleton = frames.skeleton(segment.first)
        held = [c for c in segment.planted if not frames.has_target(segment.first, c)]
        tips = {c: skeleton.index(frames.constraints[c].tip) for c in held}
        if ended is None:
            if not held:
                return segment
            placed_joints = forward_kinematics(skeleton, self._unplanted_pose(segment, held))
            world = frames.worlds[segment.first]
            return replace(segment, anchors={c: place_of(placed_joints[tips[c]], world) for c in held})
        last, world = ended.last, frames.worlds[ended.last]
        anchors = {c: frames.anchors[last, c] for c in held if c in ended.planted}
        if len(anchors) < len(held):
            placed_joints = forward_kinematics(skeleton, frames.keyed.pose(last))
            placed_anchors = {c: place_of(placed_joints[tips[c]], world) for c in held}
            anchors = placed_anchors | anchors
        if self.chains.keeps_body:
            return replace(segment, anchors=anchors, released=self._released(segment))
        turns, drift = {**ended.turns, **self._let_go(ended, segment)}, ended.drift
        if not segment.planted and self.stands_on(ended) >= 0:  # the root bone goes on beside its animation
            solved, animated = (
                place_of(forward_kinematics(skeleton, poses.pose(last))[root_bone], world)
                for poses in (frames.keyed, frames.animated)
            )
            drift = solved @ inverse(animated)
        carried: dict[int, Quaternion] = {}
        if not self._is_body_placed(segment):
            legs = {*self.chains.joints, root_bone}
            known = ended.moved | (ended.all_moved - legs)
            carried = self._departures(frames.solved, last, segment.all_moved & known)
        frame = float(frames.frames[last])
        fading = {
            j: ended.fading.get(j, frame) if j in ended.all_moved else frame
            for j in segment.all_moved & turns.keys()
        }
        return replace(segment, anchors=anchors, turns=turns, drift=drift, carried=carried, fading=fading)

    def _released(self, segment: ContactSegment) -> dict[int, tuple[float, Quaternion]]:
        """Joints that nothing moves any more and that have not returned yet."""
        ended, frame = self._ended, float(self.frames.frames[segment.first])
        assert ended is not None
        gone = ended.released.items()
        released = {j: at for j, at in gone if j not in segment.moved and frame - at[0] < RETURN}
        before = float(self.frames.frames[ended.last])
        return released | {j: (before, turn) for j, turn in self._let_go(ended, segment).items()}

    def _let_go(self, ended: ContactSegment, segment: ContactSegment) -> dict[int, Quaternion]:
        """Departures, at the end of a segment, of the joints that the segment after it moves no more."""
        joints = ended.moved - segment.moved - {self.chains.root_bone}
        return self._departures(self.frames.keyed, ended.last, joints)

    def _departures(self, poses: JointPoses, row: int, joints: frozenset[int]) -> dict[int, Quaternion]:
        """Rotations of joints in one of the poses, beside the animation."""
        turned, animated = poses.pose(row).rotations, self.frames.animated.pose(row).rotations
        return {j: (turned[j] @ animated[j].conjugated()).normalized() for j in joints}

    def _unplanted_pose(self, segment: ContactSegment, held: Sequence[int]) -> Pose:
        """The pose that plants bones at the first frame of all.

        It is the evaluated pose. In it the other constraints of chains with planted bones are solved as if
        nothing was planted.
        """
        frames, row = self.frames, segment.first
        bake_frames, constraints, skeleton = frames.bake_frames, frames.constraints, frames.skeleton(row)
        place = frames.rows[[row]]
        evaluated = JointPoses(bake_frames.base, bake_frames.translations).at(place)
        planting = [constraints[c] for c in held]
        legs = {j for each in planting for j in skeleton.chain(each.tip, each.chain_length)[1:]}
        influences, active = np.zeros((1, len(skeleton.joints))), []
        assert bake_frames.unplanted is not None
        unplanted = bake_frames.unplanted[place[0]].tolist()
        for c, constraint in enumerate(constraints):
            chain = list(chain_joints(skeleton, constraint))
            if constraint.kind.reaches and unplanted[c] > 0.0 and legs.intersection(chain):
                active.append(c)
                influences[0, chain] = np.maximum(influences[0, chain], unplanted[c])
        if not active:
            return evaluated.pose(0)
        base = evaluated
        if bake_frames.reference is not None and self.chains.keeps_body:
            base = JointPoses(bake_frames.reference[place], base.translations)
        batch = self._solved_alone(place, active=tuple(active), base=base)
        solved = JointPoses.of([batch.pose(0)]).rotations
        limits = [joint.limit for joint in skeleton.joints]
        rotations = blended(evaluated.rotations, solved, influences, limits)
        return JointPoses(rotations, evaluated.translations).pose(0)

    def _solved_alone(self, rows: Rows, **changed: Any) -> Batch:
        """Rows of the bake, each solved for itself; `changed` are attributes of the batch."""
        settings = replace(self.settings, smoothness=0.0)
        batch = Batch.of(self.frames.bake_frames, rows, settings)
        batch = replace(batch, sharper=SHARPER, influences=None, **changed)
        result_of(solve_batches([batch]))
        return batch

    def _is_body_placed(self, segment: ContactSegment) -> bool:
        """Whether a Reach places and turns the root bone at all frames of a segment."""
        frames, rows = self.frames, self.frames.rows[segment.rows]
        name = frames.bake_frames.skeleton.joints[self.chains.root_bone].name
        placing = [
            c
            for c, constraint in enumerate(frames.constraints)
            if constraint.tip == name
            and constraint.kind.reaches
            and constraint.use_position
            and not constraint.use_tail
            and not any(constraint.effector_offset)
            and constraint.rotation_bone in ("", name)
        ]
        turned_rows = ~np.isnan(frames.bake_frames.targets.rotations[rows][:, placing, 0])
        whole = frames.bake_frames.influences[rows][:, placing] >= 1.0
        return bool((turned_rows & whole).any(axis=1).all())

    # Poses --------------------------------------------------------------------------------------------------

    def _base(self, segment: ContactSegment, continued: JointPoses) -> JointPoses:
        """The reference poses of a segment; plants its bones, of which the first is the base."""
        frames, rows = self.frames, segment.rows
        poses, joints = continued.at(slice(None)), [*segment.fading, *segment.carried]
        if joints:
            poses.rotations[:, joints] = frames.animated.rotations[rows][:, joints]
            back = {j: (frame, segment.turns[j]) for j, frame in segment.fading.items()}
            back = {j: each for j, each in back.items() if j not in segment.carried}
            returning(poses.rotations, frames.frames[rows], back, segment.limits)
            turned(poses.rotations, segment.carried, segment.limits)
        for c in segment.planted:  # the base comes first and carries the others
            frames.hold(rows, c, segment.anchors.get(c), poses)
            if c == self.stands_on(segment):
                self._place(segment, rows, poses)
        return poses

    def _continued(self, segment: ContactSegment) -> JointPoses:
        """The animated poses of a segment, continued from the departures of released joints."""
        frames, rows, joints = self.frames, segment.rows, self.joints
        poses, animated = frames.solved.at(rows), frames.animated.at(rows)
        poses.rotations[:, joints] = animated.rotations[:, joints]
        poses.translations[:, joints] = animated.translations[:, joints]
        if self.chains.keeps_body:
            returning(poses.rotations, frames.frames[rows], segment.released, segment.limits)
        else:
            # Not turned from their animation, but clamped.
            bounded = dict.fromkeys(segment.bounded, Quaternion())
            turned(poses.rotations, {**bounded, **segment.turns}, segment.limits)
            root_bone, bones = self.chains.root_bone, frames.bones.at(rows)
            drifted(poses, bones, root_bone, frames.worlds[rows], segment.drift)
        return poses

    def _place(self, segment: ContactSegment, rows: Rows, poses: JointPoses) -> None:
        """Put the root bone on the base, if the figure stands on one; in place."""
        base, frames = self.stands_on(segment), self.frames
        if base >= 0:
            skeleton = frames.bake_frames.skeleton
            tip = skeleton.index(frames.constraints[base].tip)
            held = frames.held_heads[rows, base], frames.held_rotations[rows, base]
            placed(poses, skeleton, frames.bones.at(rows), self.chains.root_bone, tip, held)

    def _put(self, stored: JointPoses, rows: Rows, poses: JointPoses) -> None:
        """Store the group's joints of poses at rows."""
        places = np.ix_(rows, self.joints)
        stored.rotations[places] = poses.rotations[:, self.joints]
        stored.translations[places] = poses.translations[:, self.joints]

    def _keep(self, segment: ContactSegment, rows: Rows, batch: Batch) -> None:
        """Store a solved batch of rows of segments like `segment`: poses and status of constraints."""
        frames, base = self.frames, self.stands_on(segment)
        poses = JointPoses(batch.rotations, batch.translations)
        self._place(segment, rows, poses)
        self._put(frames.solved, rows, poses)
        for row, ended in zip(rows.tolist(), batch.states, strict=True):
            frames.states[row] |= ended
            if base >= 0:
                frames.states[row][base] = REACHED

    def _finish(self, segment: ContactSegment, continued: JointPoses) -> None:
        """Store the keyed poses of a solved segment, from whose end the next one starts."""
        frames, rows, base = self.frames, segment.rows, self.stands_on(segment)
        keyed = continued.at(slice(None))
        if segment.active:
            influences = np.zeros(keyed.rotations.shape[:2])
            of_constraints = frames.bake_frames.influences[frames.rows[rows]]
            for c, moved in segment.moves.items():
                columns = sorted(moved)
                influences[:, columns] = np.maximum(influences[:, columns], of_constraints[:, c, None])
            solved = frames.solved.rotations[rows]
            keyed.rotations[:] = blended(continued.rotations, solved, influences, segment.limits)
            self._place(segment, rows, keyed)
        else:
            self._put(frames.solved, rows, continued)
        self._put(frames.keyed, rows, keyed)
        for row in rows.tolist():
            frames.moved[row] |= segment.moved
            frames.bases[row] = base
        self._ended = segment

    # Solving ------------------------------------------------------------------------------------------------

    def _solve_run(
        self, run: Sequence[ContactSegment], bases: Sequence[JointPoses]
    ) -> Generator[float, None, None]:
        """Solve segments as one motion."""
        frames = self.frames
        batches, first_of, rows_of = [], [], []
        for places in alike(segment.key for segment in run):
            rows = np.concatenate([run[k].rows for k in places])
            whole = (np.concatenate(each) for each in zip(*(bases[k] for k in places), strict=True))
            batches.append(self._batch(run[places[0]], rows, JointPoses(*whole), self.settings))
            first_of.append(run[places[0]])
            rows_of.append(rows)
        if run[0].active != (self.stands_on(run[0]),):  # a base alone is met by the reference poses
            yield from solve_batches(batches)
        members, known = set(self.group.members), frames.bake_frames.smoothed
        for first, batch, rows in zip(first_of, batches, rows_of, strict=True):
            self.iterations = max(self.iterations, batch.iterations)
            self._keep(first, rows, batch)
            for row, smoothed in zip(frames.rows[rows].tolist(), batch.smoothed, strict=True):
                others = (each for each in known.get(row, ()) if members.isdisjoint(each.constraints))
                known[row] = (*others, *smoothed)

    def _batch(
        self, first: ContactSegment, rows: Rows, base: JointPoses, settings: FrameSolveSettings
    ) -> Batch:
        """Rows of segments like `first` as a batch; `base`: their reference poses."""
        frames, root_bone = self.frames, self.chains.root_bone
        bake_frames, places = frames.bake_frames, frames.rows[rows]
        batch = Batch.of(bake_frames, places, settings)
        limits, skeleton, skeletons = list(first.limits), batch.skeleton, batch.skeletons
        if self.stands_on(first) >= 0:
            limits[root_bone] = None
            shift = float(np.abs(base.translations[:, root_bone]).max())
            skeletons = [self._free_root(each, shift) for each in skeletons]
        if bake_frames.reference is not None and self.chains.keeps_body:
            base = JointPoses(bake_frames.reference[places], base.translations)
        targets = batch.targets.copy()
        for c in first.planted:
            targets.points[:, c] = frames.held_heads[rows, c]
            targets.rotations[:, c] = frames.held_rotations[rows, c]
        return replace(
            batch,
            constraints=self._held_constraints(skeleton, first.planted),
            active=first.active,
            skeletons=skeletons,
            targets=targets,
            limits=tuple(limits),
            base=base,
            sharper=SHARPER if first.planted else 1.0,
            influences=None,
        )

    def _held_constraints(self, skeleton: Skeleton, planted: Sequence[int]) -> tuple[Constraint, ...]:
        """The constraints while bones are planted, which come before all others in priority.

        Of two constraints that plant one bone the first holds it. Where the body follows planted bones, a
        chain with a pole ends below the root bone. Its bend must not move the legs.
        """
        constraints, changed = self.frames.constraints, []
        if not planted:
            return constraints
        tips = [constraints[c].tip for c in planted]
        twice = {c for k, c in enumerate(planted) if tips[k] in tips[:k]}
        for c, constraint in enumerate(constraints):
            if not constraint.kind.plants or c in twice:
                constraint = replace(constraint, priority=constraint.priority + 1)
            if constraint.pole_target and not self.chains.keeps_body:
                chain = skeleton.chain(constraint.tip, constraint.chain_length)
                if chain[0] == self.chains.root_bone and len(chain) > 1:
                    constraint = replace(constraint, chain_length=len(chain) - 1)
            changed.append(constraint)
        return tuple(changed)

    def _free_root(self, skeleton: Skeleton, shift: float) -> Skeleton:
        """The skeleton with a root bone that is free to turn, and to move around shifts up to `shift`."""
        size = shift + AROUND * math.fsum(joint.offset.length for joint in skeleton.joints)
        size = 2.0 ** math.ceil(math.log2(size))  # so that similar figures are solved together
        known = id(skeleton), size
        if known not in self._freed:
            self._freed[known] = with_free_bone(skeleton, self.chains.root_bone, size)
        return self._freed[known]


def with_free_bone(skeleton: Skeleton, j: int, room: float, *, keeps_limit: bool = False) -> Skeleton:
    """The skeleton with a joint that turns, and slides by up to `room` along each axis, at no cost."""
    axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    slides = tuple(Slide(axis, -room, room) for axis in axes)
    free = {"stiffness": 0.0, "slides": slides, "max_step": Joint.max_step}
    if not keeps_limit:
        free |= {"limit": None, "comfort": None}
    return skeleton.replace({skeleton.joints[j].name: free})
