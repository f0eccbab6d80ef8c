# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones as joints under scales, parents and locked angles, at many frames: what does not change is shared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...limits.shapes import EulerBox
from ...maths.batch import Array, Indices, Mask, matrices, move, multiply, quaternions, unit
from ...skeleton.joints import Skeleton
from . import coupled_offsets, slides
from .bone_space import NOISE, STEADY, BoneRest, PlacedBone, place
from .rotation_modes import EULER_MODES, require_finite

ORDER = "XYZ"
"""Of the angles of bones that are locked as a whole in a mode without angles."""

STILL: Any = Matrix.Identity(4).freeze()


class Cause(NamedTuple):
    """What decides the joints.

    Attributes:
        whole: all of it; what is equal has the same joints.
        scales: (bones, 3), what their channels hold.
        held: of each bone the angles of its locked Euler axes, radians.
        parents: {slot: pose matrix} of the parents of chains' first bones; `STILL` where a parent only moves
            and turns what stands on it.
    """

    whole: bytes
    scales: NDArray[np.float32]
    held: tuple[tuple[float, ...], ...]
    parents: Mapping[int, Any]


@dataclass(frozen=True)
class PlacedBones:
    """Bones and the joints that they are; those on a parent that only moves as if it was at the origin.

    Attributes:
        cause: what decides them.
        skeleton: the joints.
        shifts: (joints, 3, 3), turn what a location channel holds into the translation of a pose.
    """

    cause: Cause
    skeleton: Skeleton
    shifts: Array
    placed: tuple[PlacedBone, ...] = field(repr=False)

    @cached_property
    def offsets(self) -> Array:
        """(J, 3) heads in the parent's frame."""
        return np.array([joint.offset[:] for joint in self.skeleton.joints])

    @cached_property
    def rests(self) -> Array:
        """(J, 4) rest rotations."""
        return np.array([joint.rest_rotation[:] for joint in self.skeleton.joints])

    @cached_property
    def lengths(self) -> Array:
        """(J,) of the bones."""
        return np.array([joint.length for joint in self.skeleton.joints])

    @classmethod
    def of(
        cls,
        pose_bones: Any,
        cause: Cause,
        bones: Sequence[BoneRest],
        locked: Sequence[tuple[int, ...]],
        before: PlacedBones | None = None,
    ) -> PlacedBones:
        """The joints for a cause; what it leaves as it was `before` is the same.

        Args:
            pose_bones: of the armature object.
            cause: what decides them.
            bones: what stays of each.
            locked: of each bone the Euler axes that must stay, if not all must.
            before: the same bones under another cause.

        Raises:
            RigError: as `bone_space.place`; a scale that is not a finite number.
        """
        require_finite(pose_bones, [bone.slot for bone in bones], cause.scales, "scale")
        placed: list[PlacedBone] = []
        for i, bone in enumerate(bones):
            if before is not None and _is_same(bone, i, cause, placed, before):
                placed.append(before.placed[i])
                continue
            parent = cause.parents.get(bone.parent_slot) if bone.parent < 0 else None
            if bone.parent >= 0:
                parent = Matrix.Diagonal(placed[bone.parent].stretch).to_4x4()
            angles = dict(zip(locked[i], cause.held[i], strict=True))
            now = _placed(bone, pose_bones[bone.slot], cause.scales[i].tolist(), parent, angles)
            last = now.stretch if before is None else before.placed[i].stretch
            if all(abs(a - b) <= NOISE * abs(b) for a, b in zip(now.stretch, last, strict=True)):
                now = now._replace(stretch=last)  # then the children need not be placed anew
            placed.append(now)
        shifts = np.array([item.shift for item in placed]).reshape(-1, 3, 3)
        return cls(cause, Skeleton(item.joint for item in placed), shifts, tuple(placed))


def _is_same(bone: BoneRest, i: int, cause: Cause, placed: Sequence[PlacedBone], before: PlacedBones) -> bool:
    """Whether nothing that decides a bone is other than before."""
    old = before.cause
    if old.held[i] != cause.held[i] or not np.array_equal(old.scales[i], cause.scales[i]):
        return False
    if bone.parent >= 0:
        return placed[bone.parent].stretch == before.placed[bone.parent].stretch
    return bool(cause.parents.get(bone.parent_slot) == old.parents.get(bone.parent_slot))


@dataclass(frozen=True)
class BoneRows:
    """Bones at R frames as joints.

    Attributes:
        kinds: bones that differ in more than where their parents are.
        kind: (R,) which of them.
        carried: joints that parents carry along.
        offsets: (R, J, 3) heads in the parent's frame.
        rests: (R, J, 4) rest rotations; both as float32 has them.
    """

    kinds: Sequence[PlacedBones]
    kind: Indices
    carried: tuple[int, ...]
    offsets: Array
    rests: Array

    @cached_property
    def lengths(self) -> Array:
        """(R, J)"""
        return np.array([each.lengths for each in self.kinds])[self.kind]

    @cached_property
    def shifts(self) -> Array:
        """(R, J, 3, 3) turn what location channels hold into translations of poses."""
        return np.array([each.shifts for each in self.kinds])[self.kind]

    def skeleton(self, k: int) -> Skeleton:
        """The joints at a frame."""
        skeleton = self.kinds[int(self.kind[k])].skeleton
        if not self.carried:
            return skeleton
        offsets, rests = self.offsets[k].tolist(), self.rests[k].tolist()
        places = {j: (Vector(offsets[j]).freeze(), Quaternion(rests[j]).freeze()) for j in self.carried}
        return skeleton.moved(places)


@dataclass
class BonePlacer:
    """Places bones at frames.

    Attributes:
        bones: what stays of each.
        locked: of each bone the Euler axes that must stay, if not all must.
    """

    bones: Sequence[BoneRest]
    locked: Sequence[tuple[int, ...]]
    _last: PlacedBones | None = field(default=None, repr=False)

    @cached_property
    def parents(self) -> dict[int, list[int]]:
        """{slot of a parent: the first bones of chains that stand on it}."""
        standing: dict[int, list[int]] = {}
        for i, bone in enumerate(self.bones):
            if bone.parent < 0 <= bone.parent_slot:
                standing.setdefault(bone.parent_slot, []).append(i)
        return standing

    def rows(
        self,
        pose_bones: Any,
        scales: NDArray[np.float32],
        eulers: NDArray[np.float32] | None,
        parents: NDArray[np.float32],
    ) -> BoneRows:
        """The bones at R frames.

        Args:
            pose_bones: of the armature object that is planned for.
            scales: (R, bones, 3) what scale channels hold.
            eulers: (R, bones, 3) angles of bones with locked axes; None where there are none.
            parents: (R, P, 4, 4) pose matrices, in the order of `parents`.

        Raises:
            RigError: as `PlacedBones.of`; a parent that is nowhere; a locked angle that is not a number.
        """
        turns, moves_only = self._turns(parents.astype(np.float64))
        held: NDArray[np.float32] = np.zeros((len(scales), 0), np.float32)
        if eulers is not None:
            places = [(i, axis) for i, axes in enumerate(self.locked) for axis in axes]
            held = eulers[:, [i for i, _ in places], [axis for _, axis in places]]
            members = [i for i, axes in enumerate(self.locked) if axes]
            slots = [self.bones[i].slot for i in members]
            require_finite(pose_bones, slots, eulers[:, members], "rotation")
        deciding = np.where(moves_only[..., None, None], np.float32(0.0), parents)
        flat = [each.reshape(len(scales), -1) for each in (scales, held, moves_only, deciding)]
        causes = np.concatenate(flat, axis=1, dtype=np.float32)
        known: dict[bytes, int] = {}
        kinds: list[PlacedBones] = []
        kind = np.zeros(len(scales), np.intp)
        is_new = np.ones(len(scales), np.bool_)
        is_new[1:] = (causes[1:].view(np.uint32) != causes[:-1].view(np.uint32)).any(axis=1)
        for k in np.flatnonzero(is_new).tolist():
            whole = causes[k].tobytes()
            if whole not in known:
                cause = Cause(whole, scales[k], self._held(held[k]), self._under(parents[k], moves_only[k]))
                if self._last is None or self._last.cause.whole != whole:
                    self._last = PlacedBones.of(pose_bones, cause, self.bones, self.locked, self._last)
                known[whole] = len(kinds)
                kinds.append(self._last)
            kind[k:] = known[whole]
        return self._standing(kinds, kind, parents, turns, moves_only)

    def _turns(self, parents: Array) -> tuple[Array, Mask]:
        """(4, R, P) rotations of parents, and (R, P) which only move and turn what stands on them."""
        with np.errstate(all="ignore"):
            axes = parents[..., :3, :3].transpose(2, 3, 0, 1)
            turns = quaternions(axes)
            rigid: Mask = np.asarray((np.abs(matrices(turns) - axes) <= STEADY).all(axis=(0, 1)))
        for p, standing in enumerate(self.parents.values()):
            if not all(self.bones[i].follows_parent for i in standing):
                rigid[:, p] = False
        return turns, rigid

    def _held(self, angles: NDArray[np.float32]) -> tuple[tuple[float, ...], ...]:
        """Of each bone the angles of its locked Euler axes, from those of all."""
        rest = iter(angles.tolist())
        return tuple(tuple(next(rest) for _ in axes) for axes in self.locked)

    def _under(self, parents: NDArray[np.float32], moves_only: Mask) -> dict[int, Any]:
        """See `Cause.parents`."""
        return {
            slot: STILL if moves_only[p] else Matrix(parents[p].tolist()).freeze()
            for p, slot in enumerate(self.parents)
        }

    def _standing(
        self,
        kinds: Sequence[PlacedBones],
        kind: Indices,
        parents: NDArray[np.float32],
        turns: Array,
        moves_only: Mask,
    ) -> BoneRows:
        """Bones of kinds, moved by their parents where these only move; see `rows`."""
        offsets, rests = (
            getattr(kinds[0], name)[None].repeat(len(kind), axis=0)
            if len(kinds) == 1
            else np.array([getattr(each, name) for each in kinds])[kind]
            for name in ("offsets", "rests")
        )
        standing = [(i, p) for p, joints in enumerate(self.parents.values()) for i in joints]
        carried, under = [i for i, _ in standing], [p for _, p in standing]
        if carried and moves_only.any():
            moving = moves_only[:, under, None]
            moved = move(parents[:, under].astype(np.float64), offsets[:, carried]).astype(np.float32)
            nowhere = moving[..., 0] & ~np.isfinite(moved).all(axis=-1)
            if nowhere.any():
                bone = self.bones[carried[int(np.argmax(nowhere.any(axis=0)))]]
                raise RigError(
                    f"bone '{bone.name}' has a parent '{bone.parent_name}' that is nowhere: clear its "
                    "transform"
                )
            turned = unit(multiply(turns[:, :, under], rests[:, carried].transpose(2, 0, 1)))
            offsets[:, carried] = np.where(moving, moved, offsets[:, carried])
            rounded = turned.astype(np.float32).transpose(1, 2, 0)
            rests[:, carried] = np.where(moving, rounded, rests[:, carried])
        return BoneRows(kinds, kind, tuple(carried), offsets, rests)


def _placed(
    bone: BoneRest, pose_bone: Any, scale: Sequence[float], parent: Any, held: Mapping[int, float]
) -> PlacedBone:
    """A bone under a parent's matrix, with its slides and coupled offsets, and its locked Euler axes at their
    angles."""
    found = place(bone, pose_bone.bone, scale, parent)
    if bone.keywords.get("slides"):
        along = slides.model_slides(bone.name, bone.keywords["slides"], found.shift)
        found = found._replace(joint=replace(found.joint, slides=along))
    if bone.keywords.get("coupled_offsets"):
        offsets = coupled_offsets.model_offsets(bone.keywords["coupled_offsets"], found.shift)
        found = found._replace(joint=replace(found.joint, coupled_offsets=offsets))
    if held:
        found = found._replace(joint=replace(found.joint, limit=_box(_order(pose_bone), held)))
    return found


def _order(pose_bone: Any) -> str:
    return pose_bone.rotation_mode if pose_bone.rotation_mode in EULER_MODES else ORDER


def _box(order: str, held: Mapping[int, float]) -> EulerBox:
    """Holds some Euler axes at their angles and leaves the others free."""
    x, y, z = (
        (math.remainder(held[axis], 2 * math.pi),) * 2 if axis in held else (-math.pi, math.pi)
        for axis in range(3)
    )
    return EulerBox(order, (x[0], y[0], z[0]), (x[1], y[1], z[1]))
