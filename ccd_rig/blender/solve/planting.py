# SPDX-License-Identifier: GPL-3.0-or-later
"""Planted bones: support chains, anchors in the world, contacts, and the root bone.

Legs are the bones from planted bones up to the root bone, at the other end of their chains. The root bone
carries the whole armature and alone gets a location. While a bone is planted the skeleton hangs on the first
planted bone (`rerooting`). Soles of planted bones lie on the ground of their armature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple, TypeAlias

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ...errors import RigError
from ...limits.shapes import BatchLimits, Limit
from ...maths.batch import (
    Array,
    Indices,
    Mask,
    compose,
    conjugate,
    inverse,
    matrices,
    move,
    multiply,
    orthonormals,
    rotate,
    slerp,
    smooth_step,
    unit,
)
from ...motion.ground import Ground, grade_of, plane_of, seen_below
from ...motion.retargeting.alignment import shortest
from ...motion.retargeting.feet import heel_from_ball
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import Transform
from ...skeleton.pose import Pose
from ...solvers.problem_tables import Bones
from ..properties.constraint_kinds import different_ends
from ..properties.constraint_values import Constraint
from ..rig.armature import ends_of, only_line
from ..scene.ground import ground_of

SIDE = 0.25
"""Part of a planted bone's length beside it at which its roll is read off the ground."""
LEVEL = 0.3
"""Part of its length that a bone leads along the ground at least for the slope along it to count."""


@dataclass(frozen=True, eq=False)
class PlantSole:
    """The sole of a bone, as the armature stands at rest."""

    # World metres from the ground up to the bone's head; 0 for a bone above its own length, such as a hand.
    height: float
    up: Array  # (3,) the world's Z in the bone's axes
    length: float  # of the bone, world metres
    points: Array  # (P, 3) of the sole from the bone's head, in its axes, world metres
    foot: str  # name of the bone above, if that lies on the ground with a heel; else empty
    heel: Array | None  # (3,) of that from the bone's head, in the axes of the foot; None without one
    clearance: float  # world metres by which it stays above what it swings over


@dataclass(frozen=True, eq=False)
class PlantGround:
    """The ground below planted bones."""

    ground: Ground  # its rows are the frames of the bake
    soles: Mapping[int, PlantSole]  # of the constraints that plant a bone on it
    tops: Array  # (F,) world heights from which it is looked for
    steepest: float  # radians up to which bones are turned to it

    def carried(self, anchor: Array, row: int, rows: Array) -> Array:
        """(R, 4, 4) the anchor (4, 4) of a row at other rows, carried by moving ground."""
        carried = np.tile(anchor, (len(rows), 1, 1))
        if self.ground.moves:
            carried[:, :3, 3], turns = self.ground.carried(anchor[:3, 3], row, rows)
            axes = matrices(np.ascontiguousarray(turns.T)).transpose(2, 0, 1)
            carried[:, :3, :3] = axes @ anchor[:3, :3]
        return carried

    def heights(self, points: Array, rows: Indices) -> Array:
        """(R, P) heights of the ground below points (R, P, 3) at rows; minus infinity where there is none."""
        heights = seen_below(self.ground, points, self.tops[rows, None], rows)
        return np.where(np.isnan(heights), -np.inf, heights)

    def lying(self, anchor: Array, row: int, c: int, is_held: bool) -> Array:
        """The anchor (4, 4) with its sole on the surface, turned to its slope; unchanged over a hole.

        Args:
            row: of the bake's frames.
            is_held: whether its rotation is held, flat on the ground; else the slope turns its animation.
        """
        sole, start = self.soles[c], anchor[:3, 3]
        axes = anchor[:3, :3] / np.linalg.norm(anchor[:3, :3], axis=0)
        ahead, size = axes[:, 1] * (1.0, 1.0, 0.0), float(np.linalg.norm(axes[:2, 1]))
        ahead = ahead / size if size > 0.0 else np.array((1.0, 0.0, 0.0))
        left, side = np.array((-ahead[1], ahead[0], 0.0)), SIDE * sole.length
        reach = max(size, LEVEL) * sole.length
        places = start + np.stack((0.0 * ahead, reach * ahead, side * left, -side * left))
        places[:, 2] = self.tops[row]
        heights, normals = self.ground.below(places, np.full(4, row))
        if not np.isfinite(heights[0]):  # all of the figure may be below it
            places[:, 2] = np.inf
            heights, normals = self.ground.below(places, np.full(4, row))
        if not np.isfinite(heights[0]):
            return anchor
        lean = float(heights[1] - heights[0]) / reach
        roll = float(heights[2] - heights[3]) / (2.0 * side)
        grade = grade_of(normals[0], ahead, left, (lean, roll), self.steepest)
        plane = plane_of(grade, ahead, left)
        up = axes @ sole.up if is_held else np.array((0.0, 0.0, 1.0))
        lying = anchor.copy()
        lying[:3, :3] = matrices(shortest(up[None], plane[None]).T)[..., 0] @ anchor[:3, :3]
        lying[2, 3] = heights[0] + sole.height * float(np.linalg.norm(plane))
        return lying


GroundNear: TypeAlias = Callable[[Array, float], Ground | None]
"""Gives the ground near points (P, 3) of the world, within metres of them; None without any there."""


def sole_of(
    armature_object: bpy.types.Object,
    constraint: Constraint,
    root_bone: str,
    world: Matrix,
    clearance: float,
) -> PlantSole:
    """The sole of a planted bone as the armature stands at rest; `clearance` is in lengths of its leg."""
    low = ground_of(armature_object, world)
    scale = float(np.mean([abs(each) for each in world.to_scale()]))
    bone = armature_object.data.bones[constraint.tip]
    leg = [bone]
    while len(leg) < constraint.chain_length - 1 or not constraint.chain_length:
        parent = leg[-1].parent
        if parent is None or parent.name == root_bone:
            break
        leg.append(parent)
    head, tail = (np.array(world @ end) for end in (bone.head_local, bone.tail_local))
    height, length = float(head[2]) - low, scale * bone.length
    if height > length:
        height = 0.0
    axes = _axes(world, bone)
    down = np.array((0.0, 0.0, -height))
    ends = [down]
    if height > 0.0 and tail[2] < low + length:
        ends.append((tail - head) * (1.0, 1.0, 0.0) + down)
    foot, heel = "", None
    if height > 0.0 and len(leg) > 2:
        ankle = np.array(world @ leg[1].head_local) - head
        behind = heel_from_ball(ankle, -height, scale * sum(each.length for each in leg[2:]))
        # Toes of several bones end with the farthest of them.
        below = [np.array(world @ point) - head for _, point in ends_of(only_line(bone))]
        ends += [(end * (1.0, 1.0, 0.0) + down) for end in below if end[2] < length - height]
        if behind[2] < ankle[2]:  # not in the air
            foot, heel = leg[1].name, behind @ _axes(world, leg[1])
    room = clearance * scale * sum(each.length for each in leg[1:] or leg)
    up = axes.T @ np.array((0.0, 0.0, 1.0))
    return PlantSole(height, up, length, np.array(ends) @ axes, foot, heel, room)


def _axes(world: Matrix, bone: bpy.types.Bone) -> Array:
    """(3, 3) unit axes of a bone at rest in the world, as columns."""
    axes = np.array((world @ bone.matrix_local).to_3x3())
    return np.asarray(axes / np.linalg.norm(axes, axis=0))


# Support chains ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SupportChains:
    """The support chains of a skeleton with planted bones."""

    constraints: tuple[int, ...]  # indices of the constraints of kind PLANT
    root_bone: int  # the joint that carries all others
    joints: tuple[int, ...]  # from below the root bone to the planted bones
    keeps_body: bool = False  # whether the root bone keeps its animation; otherwise it follows planted bones


def support_chains(skeleton: Skeleton, constraints: Sequence[Constraint]) -> SupportChains | None:
    """The support chains of constraints; None without a planted bone.

    Raises:
        RigError: the planted bones have no common root bone, or that has a parent.
    """
    planted = [c for c, constraint in enumerate(constraints) if constraint.kind.plants]
    if not planted:
        return None
    chains = [skeleton.chain(constraints[c].tip, constraints[c].chain_length) for c in planted]
    root_bone = chains[0][0]
    for c, chain in zip(planted, chains, strict=True):
        if chain[0] != root_bone:
            names = constraints[planted[0]].name, constraints[c].name
            ends = skeleton.joints[root_bone].name, skeleton.joints[chain[0]].name
            raise RigError(different_ends(names, ends))
    parent = skeleton.joints[root_bone].parent
    if parent != -1:
        name, above = skeleton.joints[root_bone].name, skeleton.joints[parent].name
        above_it = next((r for r in constraints if parent in skeleton.chain(r.tip, r.chain_length)), None)
        because = "" if above_it is None else f", which constraint '{above_it.name}' goes up to"
        first = constraints[planted[0]]
        does = "keeps the animation of" if first.keeps_body else "moves the figure by"
        raise RigError(
            f"Constraint '{first.name}' {does} bone '{name}', but that hangs "
            f"on bone '{above}'{because}: let all chains end at '{name}' (Chain Length), "
            f"or plant up to '{above}'"
        )
    joints = sorted({j for chain in chains for j in chain[1:]})
    keeps_body = any(constraints[c].keeps_body for c in planted)
    return SupportChains(tuple(planted), root_bone, tuple(joints), keeps_body)


# Anchors and contacts ---------------------------------------------------------------------------------------


def place_of(transform: Transform, world: Array) -> Array:
    """(4, 4) place of a bone in the world, in double precision; its axes are columns.

    Args:
        transform: of the bone, armature space.
        world: (4, 4) armature space to world.
    """
    rotation = unit(np.array(transform.rotation[:]))
    return compose(world, affine(np.array(transform.translation[:]), rotation))


def affine(heads: Array, rotations: Array) -> Array:
    """(..., 4, 4) matrices of heads (..., 3) and unit rotations (..., 4)."""
    frames = np.zeros((*heads.shape[:-1], 4, 4))
    frames[..., :3, :3] = np.moveaxis(matrices(np.moveaxis(rotations, -1, 0)), (0, 1), (-2, -1))
    frames[..., :3, 3], frames[..., 3, 3] = heads, 1.0
    return frames


def seen(anchors: Array, worlds: Array) -> tuple[Array, Array]:
    """Heads (..., 3) and rotations (..., 4) of anchors (..., 4, 4) in armature space, rounded as targets are.

    Rotations are the nearest, see `targets.orthonormals`. Anchors that are NaN give NaN.

    Args:
        worlds: (..., 4, 4) armature space to world.

    Raises:
        RigError: the armature object is flat.
    """
    frames = compose(inverse(worlds), anchors).astype(np.float32).astype(np.float64)
    rotations = orthonormals(frames[..., :3, :3])
    if (np.isnan(rotations) & ~np.isnan(anchors[..., :1, 0])).any():
        raise RigError("the armature object has a scale of 0: give it another scale")
    return frames[..., :3, 3], rotations.astype(np.float32).astype(np.float64)


@dataclass
class Contacts:
    """Contacts and keyed poses of a figure in S solved frames."""

    bases: list[int]  # index of the constraint on whose bone the figure hangs, or -1
    # (S, C, 4, 4) places of planted bones in the world, in double precision; NaN where nothing is planted.
    anchors: Array
    moved: list[frozenset[int]]  # joints of the legs, and the root bone, that anything moves
    rotations: Array  # (S, J, 4) of legs and root bone, blended by influence
    translations: Array  # (S, J, 3) likewise

    @cached_property
    def planted(self) -> Mask:
        """(S, C) whether a constraint holds its bone."""
        return ~np.isnan(self.anchors[..., 0, 0])

    def without_first(self, count: int) -> Contacts:
        """A copy without the first frames."""
        return Contacts(*(getattr(self, each.name)[count:] for each in fields(self)))


RETURN = 8.0
"""Frames in which a released leg returns to its animation, if the body keeps its animation."""


class JointPoses(NamedTuple):
    """Poses of all joints at R frames: (R, J, 4) rotations and (R, J, 3) translations."""

    rotations: Array
    translations: Array

    @classmethod
    def of(cls, poses: Sequence[Pose]) -> JointPoses:
        """Poses as arrays."""
        rotations = np.array([[q[:] for q in pose.rotations] for pose in poses], dtype=np.float64)
        translations = np.array([[t[:] for t in pose.translations] for pose in poses], dtype=np.float64)
        return cls(rotations, translations)

    def pose(self, row: int) -> Pose:
        """The pose of one frame."""
        rotations, translations = self.rotations[row].tolist(), self.translations[row].tolist()
        return Pose.trusted(
            tuple([Quaternion(each).freeze() for each in rotations]),
            tuple([Vector(each).freeze() for each in translations]),
        )

    def at(self, rows: object) -> JointPoses:
        """A copy of the poses of rows."""
        return JointPoses(self.rotations[rows].copy(), self.translations[rows].copy())  # type: ignore[index]


def turned(rotations: Array, turns: Mapping[int, Quaternion], limits: Sequence[Limit | None]) -> None:
    """Turn joints of animated rotations (R, J, 4) by departures, inside their limits; in place."""
    if turns:
        joints = list(turns)
        added = np.array([turns[j][:] for j in joints]).T[..., None]
        turned_by = unit(multiply(added, rotations[:, joints].transpose(2, 1, 0)))
        rotations[:, joints] = _allowed(turned_by, limits, joints).transpose(2, 1, 0)


def returning(
    rotations: Array,
    frames: Array,
    released: Mapping[int, tuple[float, Quaternion]],
    limits: Sequence[Limit | None],
) -> None:
    """Let released joints return to their animation within `RETURN` frames; in place.

    Args:
        rotations: (R, J, 4) animated.
        frames: (R,)
        released: by joint, the frame in which it was moved last, and its departure then.
    """
    for j, (last, turn) in released.items():
        rows = np.flatnonzero(frames - last < RETURN)
        part = (frames[rows] - last) / RETURN
        departure = unit(np.array(turn[:]))[:, None].repeat(len(rows), axis=1)
        identity = np.zeros_like(departure)
        identity[0] = 1.0
        left = slerp(departure, identity, smooth_step(part))
        back = unit(multiply(left, rotations[rows, j].T))
        rotations[rows, j] = _allowed(back[:, None], limits, [j])[:, 0].T


def arriving(
    rotations: Array, animated: Array, left: Array, there: tuple[Array, Array], limit: Limit | None
) -> None:
    """Let a released joint get to a departure from its animation, as it returns to that; in place.

    Args:
        rotations: (R, 4) as they are.
        animated: (R, 4)
        left: (R,) time until it is there, in parts of `RETURN`.
        there: (4,) rotations then, with the departure and animated.
    """
    if not len(rotations):
        return
    held, before = (unit(each) for each in there)
    turn = multiply(held, conjugate(before))[:, None].repeat(len(left), axis=1)
    goal = unit(multiply(turn, animated.T))
    near = slerp(unit(rotations.T), goal, 1.0 - smooth_step(left))
    rotations[:] = _allowed(near[:, None], [limit], [0])[:, 0].T


def blended(base: Array, solved: Array, influences: Array, limits: Sequence[Limit | None]) -> Array:
    """(R, J, 4) rotations from base to solved by (R, J) influences, inside the limits."""
    rotations = np.where(influences[..., None] >= 1.0, solved, base)
    partly = (influences > 0.0) & (influences < 1.0)
    for j in np.flatnonzero(partly.any(0)).tolist():
        rows = np.flatnonzero(partly[:, j])
        between = slerp(unit(base[rows, j].T), unit(solved[rows, j].T), influences[rows, j])
        rotations[rows, j] = _allowed(between[:, None], limits, [j])[:, 0].T
    return rotations


def _allowed(rotations: Array, limits: Sequence[Limit | None], joints: Sequence[int]) -> Array:
    """(4, K, R) rotations of joints, projected onto their limits."""
    return BatchLimits([limits[j] for j in joints]).project(rotations)[0]


# The root bone ----------------------------------------------------------------------------------------------


def drifted(poses: JointPoses, bones: Bones, root_bone: int, worlds: Array, drift: Array) -> None:
    """Move the root bone by a drift beside its animation; in place.

    Args:
        poses: animated.
        bones: of the same frames.
        root_bone: a joint without a parent.
        worlds: (R, 4, 4) armature space to world.
        drift: (4, 4) in the world.
    """
    if np.array_equal(drift, np.eye(4)):
        return
    offsets, rests = bones.offsets[:, root_bone], bones.rests[:, root_bone]
    frames = matrices(multiply(*np.broadcast_arrays(rests.T, poses.rotations[:, root_bone].T)))
    heads = offsets + rotate(rests, poses.translations[:, root_bone], axis=-1)
    moves = inverse(worlds) @ drift @ worlds
    axes = moves[:, :3, :3] @ frames.transpose(2, 0, 1)
    put_root(poses, bones, root_bone, (move(moves, heads), unit(orthonormals(axes), axis=-1)))


def placed(
    poses: JointPoses,
    skeleton: Skeleton,
    bones: Bones,
    root_bone: int,
    tips: Sequence[int] | int,
    targets: tuple[Array, Array],
) -> None:
    """Put the root bone so that a planted bone of each frame is at its target; in place.

    Quaternions in double precision keep the bone there within the rounding of keys.

    Args:
        bones: of the same frames.
        root_bone: a joint without a parent that carries the planted bones.
        tips: (R,) the planted bone of each frame, or one for all.
        targets: (R, 3) heads and (R, 4) unit rotations of the planted bone, armature space.
    """
    heads, axes = bones.transforms(skeleton, *poses)
    rows = np.arange(len(heads))
    turn = multiply(targets[1].T, conjugate(axes[rows, tips].T))
    lever = heads[rows, root_bone] - heads[rows, tips]
    head = targets[0] + rotate(turn, lever.T).T
    put_root(poses, bones, root_bone, (head, multiply(turn, axes[rows, root_bone].T).T))


def put_root(poses: JointPoses, bones: Bones, root_bone: int, to: tuple[Array, Array]) -> None:
    """Put the root bone at (R, 3) heads with (R, 4) rotations in armature space; in place."""
    back = np.broadcast_to(conjugate(bones.rests[:, root_bone].T), to[1].T.shape)
    poses.rotations[:, root_bone] = unit(multiply(back, to[1].T)).T
    shift = to[0] - bones.offsets[:, root_bone]
    poses.translations[:, root_bone] = rotate(back, shift.T).T
