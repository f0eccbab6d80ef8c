# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones as joints under the present scales, parents and locked angles: what did not change stays as it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ...limits.shapes import EulerBox
from ...skeleton.joints import Skeleton
from . import coupled_offsets, slides
from .bone_space import NOISE, BoneRest, PlacedBone, moved_by, place, rigid_rotation
from .rotation_modes import EULER_MODES, read_rotations, require_finite

ORDER = "XYZ"
"""Of the angles of bones that are locked as a whole in a mode without angles."""


class BonesNow(NamedTuple):
    """Bones as they are at a frame; see `PlacedBones`."""

    skeleton: Skeleton
    shifts: NDArray[np.float64]


class _Cause(NamedTuple):
    """What decides the joints.

    Attributes:
        scales: (bones, 3), what their channels hold.
        parents: {slot: pose matrix} of the parents of chains' first bones.
        held: of each bone the present angles of its locked Euler axes, radians.
    """

    scales: NDArray[np.float32]
    parents: Mapping[int, Matrix]
    held: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class PlacedBones:
    """Bones and the joints that they are.

    Attributes:
        bones: what stays of each.
        locked: of each bone the Euler axes that must stay, if not all must.
        skeleton: the joints.
        shifts: (joints, 3, 3), turn what a location channel holds into the translation of a pose.
    """

    bones: Sequence[BoneRest]
    locked: Sequence[tuple[int, ...]]
    skeleton: Skeleton
    shifts: NDArray[np.float64]
    _cause: _Cause = field(repr=False)
    _placed: tuple[PlacedBone, ...] = field(repr=False)
    _unmoved: tuple[PlacedBone | None, ...] = field(repr=False)
    """First bones under a parent at the origin, where known."""

    @classmethod
    def of(
        cls,
        pose_bones: Any,
        every_scale: NDArray[np.float32],
        bones: Sequence[BoneRest],
        locked: Sequence[tuple[int, ...]],
    ) -> PlacedBones:
        """The joints as they are now.

        Args:
            pose_bones: of the armature object.
            every_scale: (P, 3) of all of them.
            bones, locked: see the class.

        Raises:
            RigError: as `bone_space.place`; a scale or an angle that is not a finite number.
        """
        return _placed_anew(
            pose_bones, _cause_of(pose_bones, every_scale, bones, locked), bones, locked, None
        )

    def now(self, pose_bones: Any, every_scale: NDArray[np.float32]) -> BonesNow:
        """The joints as they are now; the very same ones where nothing has changed. Arguments and errors as
        of `of`."""
        before = self._cause
        parents = {slot: pose_bones[slot].matrix.copy() for slot in before.parents}
        same_scales = every_scale[self._slots].tobytes() == self._scales
        if same_scales and self._held_now(pose_bones) == before.held:
            if parents == before.parents:
                return BonesNow(self.skeleton, self.shifts)
            moved = self._moved(parents)
            if moved is not None:
                return BonesNow(moved, self.shifts)
        cause = _cause_of(pose_bones, every_scale, self.bones, self.locked)
        placed = _placed_anew(pose_bones, cause, self.bones, self.locked, self)
        return BonesNow(placed.skeleton, placed.shifts)

    def _moved(self, parents: Mapping[int, Matrix]) -> Skeleton | None:
        """The joints under parents, {slot: pose matrix}, that only moved; None where one did more than
        that."""
        before, places = self._cause.parents, {}
        for slot, matrix in parents.items():
            if matrix == before[slot]:
                continue
            rotation = rigid_rotation(matrix)
            for i in self._carried[slot]:
                known = self._unmoved[i]
                if rotation is None or known is None or known.stretch != self._placed[i].stretch:
                    return None
                places[i] = moved_by(self.bones[i], known, (matrix, rotation))
        return self.skeleton.moved(places)

    @cached_property
    def _slots(self) -> NDArray[np.intp]:
        """Indices of the bones in pose.bones."""
        return np.array([bone.slot for bone in self.bones], np.intp)

    @cached_property
    def _scales(self) -> bytes:
        """What the scale channels of the bones held."""
        return self._cause.scales.tobytes()

    @cached_property
    def _carried(self) -> dict[int, list[int]]:
        """{slot of a parent: the first bones of chains that it carries}."""
        carried: dict[int, list[int]] = {slot: [] for slot in self._cause.parents}
        for i, bone in enumerate(self.bones):
            if bone.parent < 0 <= bone.parent_slot:
                carried[bone.parent_slot].append(i)
        return carried

    def _held_now(self, pose_bones: Any) -> tuple[tuple[float, ...], ...]:
        """See `_Cause.held`."""
        return self._cause.held if not any(self.locked) else _held_of(pose_bones, self.bones, self.locked)


def _cause_of(
    pose_bones: Any,
    every_scale: NDArray[np.float32],
    bones: Sequence[BoneRest],
    locked: Sequence[tuple[int, ...]],
) -> _Cause:
    slots = [bone.slot for bone in bones]
    scales = every_scale[slots]
    require_finite(pose_bones, slots, scales, "scale")
    parents = {bone.parent_slot for bone in bones if bone.parent < 0 <= bone.parent_slot}
    return _Cause(
        scales,
        {slot: pose_bones[slot].matrix.copy() for slot in parents},
        _held_of(pose_bones, bones, locked),
    )


def _held_of(
    pose_bones: Any, bones: Sequence[BoneRest], locked: Sequence[tuple[int, ...]]
) -> tuple[tuple[float, ...], ...]:
    """Of each bone the present angles of its locked Euler axes."""
    return tuple(
        [_held(pose_bones, bone.slot, axes) if axes else () for bone, axes in zip(bones, locked, strict=True)]
    )


def _placed_anew(
    pose_bones: Any,
    cause: _Cause,
    bones: Sequence[BoneRest],
    locked: Sequence[tuple[int, ...]],
    old: PlacedBones | None,
) -> PlacedBones:
    """Bones placed one by one; what did not change is that of `old`."""
    placed: list[PlacedBone] = []
    unmoved: list[PlacedBone | None] = []
    before = None if old is None else old._cause
    for i, bone in enumerate(bones):
        stretch = placed[bone.parent].stretch if bone.parent >= 0 else None
        parent = cause.parents.get(bone.parent_slot) if bone.parent < 0 else None
        scale = tuple(cause.scales[i].tolist())
        same_bone = before is not None and (tuple(before.scales[i].tolist()), before.held[i]) == (
            scale,
            cause.held[i],
        )
        known = old._unmoved[i] if old is not None and same_bone else None
        angles = dict(zip(locked[i], cause.held[i], strict=True))
        rotation = None
        if stretch is None and parent is not None and bone.follows_parent:
            rotation = rigid_rotation(parent)
        if old is not None and before is not None and same_bone and _same_parent(old, placed, i, parent):
            placed.append(old._placed[i])
        elif parent is not None and rotation is not None:
            # Most first bones move with their parents: what stays the same is found once.
            known = known or _placed(bone, pose_bones[bone.slot], scale, Matrix.Identity(4), angles)
            place_now = moved_by(bone, known, (parent, rotation))
            placed.append(known._replace(joint=known.joint.at(*place_now)))
        else:
            matrix = parent if stretch is None else Matrix.Diagonal(stretch).to_4x4()
            now = _placed(bone, pose_bones[bone.slot], scale, matrix, angles)
            last = now.stretch if old is None else old._placed[i].stretch
            if all(abs(a - b) <= NOISE * abs(b) for a, b in zip(now.stretch, last, strict=True)):
                now = now._replace(stretch=last)  # then the children need not be placed anew
            placed.append(now)
        unmoved.append(known)
    shifts = np.array([item.shift for item in placed]).reshape(-1, 3, 3)
    skeleton = Skeleton(item.joint for item in placed)
    return PlacedBones(bones, locked, skeleton, shifts, cause, tuple(placed), tuple(unmoved))


def _same_parent(old: PlacedBones, placed: Sequence[PlacedBone], i: int, parent: Matrix | None) -> bool:
    """Whether what a bone stands on is as it was."""
    bone = old.bones[i]
    if bone.parent >= 0:
        return placed[bone.parent].stretch == old._placed[bone.parent].stretch
    return old._cause.parents.get(bone.parent_slot) == parent


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


def _held(pose_bones: Any, slot: int, axes: tuple[int, ...]) -> tuple[float, ...]:
    """Present angles of a bone's locked Euler axes."""
    mode = pose_bones[slot].rotation_mode
    if mode not in EULER_MODES:  # locked as a whole
        (rotation,) = read_rotations(pose_bones, (slot,), (mode,))
        euler = rotation.to_euler(ORDER)
        return tuple(euler[axis] for axis in axes)
    euler = pose_bones[slot].rotation_euler
    require_finite(pose_bones, (slot,), np.array((tuple(euler),)), "rotation")
    return tuple(euler[axis] for axis in axes)


def _box(order: str, held: Mapping[int, float]) -> EulerBox:
    """Holds some Euler axes at their angles and leaves the others free."""
    x, y, z = (
        (math.remainder(held[axis], 2 * math.pi),) * 2 if axis in held else (-math.pi, math.pi)
        for axis in range(3)
    )
    return EulerBox(order, (x[0], y[0], z[0]), (x[1], y[1], z[1]))
