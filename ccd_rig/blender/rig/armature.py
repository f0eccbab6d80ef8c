# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones as joints, at one frame and at many, and joints back into bones.

`layout` finds what stays the same while an armature is animated, `RigLayout.rows` what changes from frame to
frame, and `apply` writes rotations and slides into the bones' own channels. All is in armature space; the
armature object's own transform plays no part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ...errors import InvalidInput, RigError
from ...limits.shapes import EulerBox
from ...maths.batch import Array, Indices, Mask, matrices, move, multiply, quaternions, unit
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import coupled_translations
from ...skeleton.pose import Pose, check_pose
from . import coupled_offsets, slides
from .bone_space import NOISE, STEADY, ZERO, BoneRest, PlacedBone, place
from .pose_values import Values, Watched, foreach
from .rotation_modes import (
    CHANNELS,
    EULER_MODES,
    channel_values,
    held_angles,
    read_rotations,
    require_finite,
    rotation_channel,
)

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


@dataclass(frozen=True)
class RigReading:
    """The chains of an armature as the solver takes them.

    Attributes:
        skeleton: the joints of all chains, and the bones between them and those that only carry mass (both
            with stiffness 1).
        pose: of each joint the rotation that its channels hold, and the shift of its head in its own rest
            axes: what the location channel does, with scale and Local Location resolved. What coupled offsets
            say is left out: `skeleton` has it.
        bones: bone name of each joint.
        shifts: (joints, 3, 3), turn what a location channel holds into the translation of the pose.
    """

    skeleton: Skeleton
    pose: Pose
    bones: tuple[str, ...]
    shifts: Array = field(repr=False, compare=False)


@dataclass(frozen=True)
class RigRows:
    """The chains of an armature at R frames.

    Attributes:
        layout: that they were read with.
        rotations: (R, J, 4) what channels hold.
        translations: (R, J, 3); see `RigReading.pose` for both. All is as float32 has it.
        bones: the bones as joints.
        first: (R,) the first frame with all of that as it is at each.
    """

    layout: RigLayout
    rotations: Array
    translations: Array
    bones: BoneRows
    first: Indices
    _known: dict[int, RigReading] = field(default_factory=dict, repr=False)

    def at(self, k: int) -> RigRows:
        """One of the frames."""
        row, bones = slice(k, k + 1), self.bones
        bones = replace(bones, kind=bones.kind[row], offsets=bones.offsets[row], rests=bones.rests[row])
        return RigRows(self.layout, self.rotations[row], self.translations[row], bones, np.zeros(1, np.intp))

    def posed(self, rotations: Array, translations: Array) -> RigRows:
        """The same bones in other poses."""
        return RigRows(self.layout, rotations, translations, self.bones, np.arange(len(rotations)))

    def reading(self, k: int) -> RigReading:
        """The chains at a frame; frames at which nothing about bones changes share it."""
        k = int(self.first[k])
        if k not in self._known:
            self._known[k] = self._reading(k)
        return self._known[k]

    def _reading(self, k: int) -> RigReading:
        pose = Pose.of_arrays(self.rotations[k], self.translations[k])
        return RigReading(self.bones.skeleton(k), pose, self.layout.names, self.bones.shifts[k])

    def translations_of(self, joint: int, locations: Array) -> Array:
        """(R, 3) translations of a joint for what its bone's location channel holds, (R, 3) or (3,)."""
        free_part = self.layout.free_parts.get(joint)
        if free_part is not None:
            locations = slides.translations_of(free_part, locations)
        shifts = self.bones.shifts[:, joint]
        moved = slides.translations_of(shifts, np.broadcast_to(locations, (len(shifts), 3)))
        return moved.astype(np.float32).astype(np.float64)


@dataclass(frozen=True)
class RigLayout:
    """What stays the same from frame to frame, so that reading a frame costs little.

    Make it anew after edits to the armature (bones, rest pose, flags, locks, settings), and where `fits` says
    so. Changes of scale and of what moves the chains' parents are seen by `rows` itself.
    """

    chains: tuple[tuple[str, int], ...]
    joint_settings: Mapping[str, Mapping[str, Any]]
    names: tuple[str, ...]
    slots: Indices  # index of each bone in pose.bones
    modes: tuple[str, ...]
    mode_codes: bytes = field(repr=False)  # of all pose bones
    connected: Indices = field(repr=False)  # bones whose location Blender ignores
    placer: BonePlacer = field(repr=False)
    skeleton: Skeleton = field(repr=False)  # as it was when the layout was made
    carried: Mapping[str, float]
    free_parts: Mapping[int, Array] = field(repr=False)  # of joints with coupled offsets

    @cached_property
    def watched(self) -> Watched:
        """All that `rows` needs of pose bones."""
        names = {"rotation_mode": 1, **dict(CHANNELS[mode] for mode in self.modes), "location": 3, "scale": 3}
        if self.placer.parents:
            names["matrix"] = 16
        return Watched(names)

    def fits(self, seen: NDArray[np.float32]) -> bool:
        """Whether what was seen of pose bones can be read with this layout: all have their rotation modes."""
        return seen[: len(self.mode_codes) // 4].tobytes() == self.mode_codes

    def rows(self, armature_object: Any, seen: Sequence[NDArray[np.float32]]) -> RigRows:
        """The pose of the armature at R frames.

        Args:
            armature_object: the one that is planned for, original or evaluated.
            seen: what `watched` has seen of it at each frame; all `fits`.

        Raises:
            RigError: as `layout`; also where a channel holds something that is not a finite number.
        """
        pose_bones, slots = armature_object.pose.bones, self.slots
        now = self.watched.values(np.array(seen))
        rotations = read_rotations(pose_bones, slots, self.modes, now)
        bones = self.bones(pose_bones, now)
        locations = now["location"][:, slots].astype(np.float64)
        locations[:, self.connected] = 0.0
        require_finite(pose_bones, slots, locations, "location")
        whole = np.array(seen).view(np.uint32)
        is_new = np.ones(len(seen), np.bool_)
        is_new[1:] = (whole[1:] != whole[:-1]).any(axis=1)
        first = np.maximum.accumulate(np.where(is_new, np.arange(len(seen)), 0))
        rows = RigRows(self, rotations, np.zeros_like(locations), bones, first)
        for j in np.flatnonzero(locations.any(axis=(0, 2))).tolist():
            rows.translations[:, j] = rows.translations_of(j, locations[:, j])
        return rows

    def bones(self, pose_bones: Any, now: Values) -> BoneRows:
        """The bones as joints at R frames, of what `watched` has seen there; errors as of `layout`."""
        parents: NDArray[np.float32] = np.zeros((len(now["scale"]), 0, 4, 4), np.float32)
        if self.placer.parents:
            matrices = now["matrix"][:, list(self.placer.parents)]
            parents = matrices.reshape(*matrices.shape[:2], 4, 4).swapaxes(2, 3)  # column by column
        eulers = self._eulers(pose_bones, now) if any(self.placer.locked) else None
        return self.placer.rows(pose_bones, now["scale"][:, self.slots], eulers, parents)

    def _eulers(self, pose_bones: Any, now: Values) -> NDArray[np.float32]:
        """(R, bones, 3) angles of bones with locked axes, in any mode; 0 of others."""
        angles = np.zeros((len(now["scale"]), len(self.slots), 3), np.float32)
        for i, axes in enumerate(self.placer.locked):
            if axes and self.modes[i] in EULER_MODES:
                angles[:, i] = now["rotation_euler"][:, self.slots[i]]
            elif axes:  # locked as a whole
                turns = read_rotations(pose_bones, self.slots[[i]], [self.modes[i]], now)[:, 0]
                angles[:, i] = [Quaternion(turn).to_euler(ORDER)[:] for turn in turns.tolist()]
        return angles

    def read(self, armature_object: Any) -> RigReading:
        """The present pose of the armature, original or evaluated; errors as of `rows`."""
        seen = self.watched.look(armature_object.pose.bones)
        if not self.fits(seen):
            return self.anew(armature_object).read(armature_object)
        return self.rows(armature_object, [seen]).reading(0)

    def anew(self, armature_object: Any) -> RigLayout:
        """The layout of the same chains as the armature is now."""
        return layout(armature_object, self.chains, self.joint_settings, self.carried)


def read(
    armature_object: Any,
    chains: Sequence[tuple[str, int]],
    joint_settings: Mapping[str, Mapping[str, Any]],
    carried: Mapping[str, float] | None = None,
) -> RigReading:
    """The chains of an armature and their present pose: `layout` and `RigLayout.read` in one."""
    return layout(armature_object, chains, joint_settings, carried).read(armature_object)


def layout(
    armature_object: Any,
    chains: Sequence[tuple[str, int]],
    joint_settings: Mapping[str, Mapping[str, Any]],
    carried: Mapping[str, float] | None = None,
) -> RigLayout:
    """Find the chains' bones and their constants.

    The joints are the bones of all chains and the bones that lie between them; the latter are locked
    (stiffness 1). The first bone of a chain stands on the pose matrix of its parent as Blender evaluated it,
    so animation and constraints outside the chains are honoured. Bones of a chain are read from their
    channels; constraints on them are not seen.

    A bone whose rotation is locked on all axes gets stiffness 1 and no limit: it stays as it is. If it
    slides, it gets an EulerBox instead that holds its present rotation, in any mode. One that is locked on
    some axes in an Euler mode and has no limit gets an EulerBox that holds these axes at their present
    angles.

    Args:
        armature_object: original or evaluated.
        chains: (tip bone, number of bones; 0 or more than there are: to the root) of each chain.
        joint_settings: {bone: keywords of Joint}, such as limit, comfort, stiffness and max_step; slides
            and coupled offsets are in the axes and the unit of the bone's location channel. A bone outside
            the chains whose coupled offset follows a bone of them is a locked joint.
        carried: {bone: mass} of bones that count for balance; those outside the chains are locked joints,
            read from their channels too.

    Raises:
        RigError: not an armature, or one in rest position; a missing bone; a bone with zero length or scale;
            one that scale would shear or mirror; partly locked rotation that cannot be kept; a slide or a
            coupled offset that the bone's location cannot make; a coupled offset without a driver.
        InvalidInput: a negative chain length, or joint settings that Joint refuses.
    """
    _require_posed(armature_object)
    pose_bones = armature_object.pose.bones
    masses = dict(carried or {})
    in_chains, between = _collect(armature_object, chains, masses, joint_settings)
    all_slots = {pose_bone.name: slot for slot, pose_bone in enumerate(pose_bones)}
    members = [pose_bones[name] for name in in_chains | between]
    ordered = sorted(members, key=lambda b: (len(b.parent_recursive), all_slots[b.name]))
    settings = {**joint_settings, **_held_settings(joint_settings, in_chains, between, masses)}
    for pose_bone in ordered:
        coupled_offsets.refuse(pose_bone, settings, in_chains)
    bones, locked = _rests(ordered, all_slots, settings)
    placer = BonePlacer(bones, locked)
    made = RigLayout(
        chains=tuple((tip, length) for tip, length in chains),
        joint_settings=joint_settings,
        names=tuple(pose_bone.name for pose_bone in ordered),
        slots=np.array([bone.slot for bone in bones], np.intp),
        modes=tuple(pose_bone.rotation_mode for pose_bone in ordered),
        mode_codes=foreach(pose_bones, "rotation_mode", 1).tobytes(),
        connected=np.flatnonzero([bone.connected for bone in bones]),
        placer=placer,
        skeleton=Skeleton(()),
        carried=masses,
        free_parts=coupled_offsets.free_parts([bone.keywords for bone in bones]),
    )
    seen = made.watched.values(made.watched.look(pose_bones)[None])
    return replace(made, skeleton=made.bones(pose_bones, seen).skeleton(0))


def apply(
    armature_object: Any,
    reading: RigReading,
    pose: Pose,
    joints: Sequence[int] | None = None,
    located: Mapping[int, Sequence[float]] | None = None,
) -> None:
    """Write rotations into the bones' own channels, next to the values that stand there, and locations.

    Args:
        armature_object: the original object.
        reading: tells which bone each joint is.
        pose: of `reading.skeleton`.
        joints: indices of the joints to rotate; None: all. Scales are not touched.
        located: {joint: what its location channel gets}; None: of the joints to rotate those that slide or
            have coupled offsets get what the pose says. Other locations are not touched.

    Raises:
        RigError: a bone is missing; nothing is written then.
    """
    check_pose(reading.skeleton, pose)
    rotated = range(len(reading.bones)) if joints is None else joints
    if located is None:
        located = locations(reading, pose, rotated)
    pose_bones = {j: _pose_bone(armature_object, reading.bones[j]) for j in (*rotated, *located)}
    for joint in rotated:
        pose_bone = pose_bones[joint]
        channel, _ = rotation_channel(pose_bone)
        present = tuple(getattr(pose_bone, channel))
        rotation: Any = pose.rotations[joint]
        held = held_angles(pose_bone, (reading.skeleton.joints[joint].limit,))
        values = channel_values(pose_bone.rotation_mode, [tuple(rotation)], present, held)
        setattr(pose_bone, channel, values[0].tolist())
    for joint, location in located.items():
        pose_bones[joint].location = list(location)


def locations(reading: RigReading, pose: Pose, joints: Iterable[int]) -> dict[int, list[float]]:
    """What location channels hold in a pose, of those joints that slide or have coupled offsets."""
    skeleton = reading.skeleton
    translations = coupled_translations(skeleton, pose.rotations, pose.translations)
    return {
        j: slides.locations_of(reading.shifts[j], np.array(translations[j][:])).tolist()
        for j in joints
        if skeleton.joints[j].slides or skeleton.joints[j].coupled_offsets
    }


# --- Which bones --------------------------------------------------------------------------------------------


def _held_settings(
    joint_settings: Mapping[str, Mapping[str, Any]],
    in_chains: set[str],
    between: set[str],
    masses: Mapping[str, float],
) -> dict[str, Mapping[str, Any]]:
    """Joint keywords of bones between chains: these are never posed, so no limit may ask for that."""
    offsets = coupled_offsets.followers(joint_settings, in_chains)
    return {
        name: {"stiffness": 1.0, "mass": masses.get(name, 0.0), "coupled_offsets": offsets.get(name, ())}
        for name in between
    }


def _require_posed(armature_object: Any) -> None:
    if armature_object is None or armature_object.type != "ARMATURE":
        raise RigError(f"{_label(armature_object)} is not an armature: choose an armature object")
    if armature_object.data.pose_position == "REST":
        raise RigError(
            f"armature '{armature_object.name}' is shown in Rest Position: switch it to Pose Position"
        )


def _label(armature_object: Any) -> str:
    return "nothing" if armature_object is None else f"object '{armature_object.name}'"


def _pose_bone(armature_object: Any, name: str) -> Any:
    pose_bone = armature_object.pose.bones.get(name)
    if pose_bone is None:
        raise RigError(
            f"there is no bone '{name}' in armature '{armature_object.name}': choose one of its bones"
        )
    return pose_bone


def _collect(
    armature_object: Any,
    chains: Sequence[tuple[str, int]],
    carried: Iterable[str],
    joint_settings: Mapping[str, Mapping[str, Any]],
) -> tuple[set[str], set[str]]:
    """Names of the chains' bones, and of those that are carried, that follow and that lie between them
    all."""
    in_chains: set[str] = set()
    for tip, length in chains:
        if length < 0:
            raise InvalidInput(f"chain length of '{tip}' must be 0 (to the root) or more, not {length}")
        pose_bone = _pose_bone(armature_object, tip)
        upwards = (pose_bone, *pose_bone.parent_recursive)
        in_chains.update(b.name for b in upwards[: length or None])
    between = {*carried, *coupled_offsets.followers(joint_settings, in_chains)} - in_chains
    ends = in_chains | between
    for name in ends:
        line = [b.name for b in _pose_bone(armature_object, name).parent_recursive]
        highest = max((i for i, ancestor in enumerate(line) if ancestor in ends), default=-1)
        between.update(ancestor for ancestor in line[: highest + 1] if ancestor not in in_chains)
    return in_chains, between


def _rests(
    pose_bones: Sequence[Any], slots: Mapping[str, int], joint_settings: Mapping[str, Mapping[str, Any]]
) -> tuple[list[BoneRest], list[tuple[int, ...]]]:
    """What stays of each bone, and the Euler axes of it that must stay."""
    indices = {pose_bone.name: i for i, pose_bone in enumerate(pose_bones)}
    bones, locked = [], []
    for pose_bone in pose_bones:
        settings = joint_settings.get(pose_bone.name, {})
        slides.refuse(pose_bone, settings.get("slides", ()))
        keywords, axes = _locks(pose_bone, settings)
        bones.append(_rest(pose_bone, slots, indices, keywords))
        locked.append(axes)
    return bones, locked


def _rest(
    pose_bone: Any, slots: Mapping[str, int], indices: Mapping[str, int], keywords: Mapping[str, Any]
) -> BoneRest:
    bone, parent = pose_bone.bone, pose_bone.parent
    if bone.length < ZERO:
        raise RigError(f"bone '{bone.name}' has zero length: give it a length in Edit Mode")
    return BoneRest(
        name=bone.name,
        slot=slots[bone.name],
        parent=-1 if parent is None else indices.get(parent.name, -1),
        parent_name="" if parent is None else parent.name,
        parent_slot=-1 if parent is None else slots[parent.name],
        length=bone.length,
        rest=bone.matrix_local.copy(),
        parent_rest=Matrix.Identity(4) if parent is None else parent.bone.matrix_local.copy(),
        connected=parent is not None and bone.use_connect,
        local_location=bone.use_local_location,
        inherit_rotation=bone.use_inherit_rotation or parent is None or parent.name not in indices,
        follows_parent=bone.use_inherit_rotation,
        keywords=keywords,
    )


def _locks(pose_bone: Any, settings: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[int, ...]]:
    """Joint keywords with the bone's locks honoured, and the Euler axes that an EulerBox must hold."""
    euler = pose_bone.rotation_mode in EULER_MODES
    locks = list(pose_bone.lock_rotation)
    # W counts only among locks by component, as in Blender.
    w_locked = not euler and pose_bone.lock_rotations_4d and pose_bone.lock_rotation_w
    if not (any(locks) or w_locked) or settings.get("stiffness", 0.0) >= 1.0:
        return settings, ()
    # A joint that is locked as a whole would not slide either.
    if all(locks) and not settings.get(
        "slides"
    ):  # W or the angle alone leaves a unit quaternion no other rotation that is near
        return {**settings, "stiffness": 1.0, "limit": None, "comfort": None}, ()
    where = " and ".join(axis for axis, lock in zip("XYZW", (*locks, w_locked), strict=True) if lock)
    name = pose_bone.name
    if not (euler or all(locks)):
        raise RigError(
            f"bone '{name}' has rotation locked on {where} in a mode without Euler angles: unlock it, or "
            "give it an Euler rotation mode"
        )
    if settings.get("limit") is not None:
        raise RigError(
            f"bone '{name}' has rotation locked on {where} and a limit too: unlock it, or remove the limit"
        )
    return settings, tuple(axis for axis in range(3) if locks[axis])
