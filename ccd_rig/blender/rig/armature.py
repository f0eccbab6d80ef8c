# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones as joints at one or many frames, and poses of joints written back to bones.

`layout` collects the constants of an animated armature. `RigLayout.rows` reads the values that change from
frame to frame. `apply` writes rotations and slides to the bones' channels. Values are in armature space; the
transform of the armature object plays no part.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ...errors import InvalidInput, RigError
from ...limits.shapes import EulerBox
from ...maths.batch import (
    Array,
    Indices,
    Mask,
    conjugate,
    matrices,
    move,
    multiply,
    quaternions,
    rotate,
    unit,
)
from ...skeleton.joints import Joint, Skeleton
from ...skeleton.kinematics import coupled_translations
from ...skeleton.pose import Pose, check_pose
from . import bone_space
from .bone_space import NOISE, STEADY, ZERO, BoneRest, PlacedBone, place
from .rotation_modes import (
    CHANNELS,
    EULER_MODES,
    Slots,
    Values,
    Watched,
    foreach,
    locked_angles,
    read_rotations,
    require_finite,
    set_rotation,
)

ORDER = "XYZ"
"""Order of the angles of fully locked bones in a mode without Euler angles."""

STILL: Any = Matrix.Identity(4).freeze()


class PlacementInputs(NamedTuple):
    """Values that determine the constants of joints: scales, locked angles and parents."""

    key: bytes  # all values as bytes; equal keys have the same joints
    scales: NDArray[np.float32]  # (bones, 3) scale channels
    locked_angles: tuple[tuple[float, ...], ...]  # by bone, angles of its locked Euler axes, radians
    # {slot: pose matrix} of the parents of chains' first bones; `STILL` for a rigid parent.
    parents: Mapping[int, Any]


@dataclass(frozen=True)
class PlacedBones:
    """Joints of bones; the children of a rigid parent are relative to it."""

    inputs: PlacementInputs  # the values that determine them
    skeleton: Skeleton
    shifts: Array  # (joints, 3, 3) matrices from location channel to translation of a pose
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
        """(J,) lengths of the bones."""
        return np.array([joint.length for joint in self.skeleton.joints])

    @classmethod
    def of(
        cls,
        pose_bones: Any,
        inputs: PlacementInputs,
        bones: Sequence[BoneRest],
        locked: Sequence[tuple[int, ...]],
        previous: PlacedBones | None = None,
    ) -> PlacedBones:
        """Place the bones; bones whose inputs did not change keep their `previous` joints.

        Args:
            inputs: the values that determine the joints.
            locked: by bone, its locked Euler axes; empty for a bone that is not partly locked.
            previous: the same bones with different inputs.

        Raises:
            RigError: as `bone_space.place`; a scale that is not a finite number.
        """
        require_finite(pose_bones, [bone.slot for bone in bones], inputs.scales, "scale")
        placed: list[PlacedBone] = []
        for i, bone in enumerate(bones):
            if previous is not None and _is_unchanged(bone, i, inputs, placed, previous):
                placed.append(previous.placed[i])
                continue
            parent = inputs.parents.get(bone.parent_slot) if bone.parent < 0 else None
            if bone.parent >= 0:
                parent = Matrix.Diagonal(placed[bone.parent].stretch).to_4x4()
            angles = dict(zip(locked[i], inputs.locked_angles[i], strict=True))
            item = _placed(bone, pose_bones[bone.slot], inputs.scales[i].tolist(), parent, angles)
            last = item.stretch if previous is None else previous.placed[i].stretch
            if all(abs(a - b) <= NOISE * abs(b) for a, b in zip(item.stretch, last, strict=True)):
                item = item._replace(stretch=last)  # the children then keep their joints
            placed.append(item)
        shifts = np.array([item.shift for item in placed]).reshape(-1, 3, 3)
        return cls(inputs, _skeleton_of(tuple([item.joint for item in placed])), shifts, tuple(placed))


@lru_cache(maxsize=4)
def _skeleton_of(joints: tuple[Joint, ...]) -> Skeleton:
    """A skeleton, which keeps what was computed for equal joints at the last solves."""
    return Skeleton(joints)


def _is_unchanged(
    bone: BoneRest, i: int, inputs: PlacementInputs, placed: Sequence[PlacedBone], previous: PlacedBones
) -> bool:
    """Whether the inputs of a bone are equal to the previous ones."""
    before = previous.inputs
    if before.locked_angles[i] != inputs.locked_angles[i]:
        return False
    if not np.array_equal(before.scales[i], inputs.scales[i]):
        return False
    if bone.parent >= 0:
        return placed[bone.parent].stretch == previous.placed[bone.parent].stretch
    return bool(inputs.parents.get(bone.parent_slot) == before.parents.get(bone.parent_slot))


@dataclass(frozen=True)
class BoneRows:
    """Joints of bones at R frames."""

    kinds: Sequence[PlacedBones]  # the different sets of joints, apart from the transforms of rigid parents
    kind: Indices  # (R,) index in `kinds`
    carried: tuple[int, ...]  # joints whose parents are not joints
    offsets: Array  # (R, J, 3) heads in the parent's frame, rounded to float32
    rests: Array  # (R, J, 4) rest rotations, rounded to float32
    _skeletons: dict[int, Skeleton] = field(default_factory=dict, repr=False)

    @cached_property
    def lengths(self) -> Array:
        """(R, J) lengths of the bones."""
        return np.array([placed.lengths for placed in self.kinds])[self.kind]

    @cached_property
    def stretches(self) -> Array:
        """(R, J, 3) signed scales of the bones along their axes, see `bone_space`."""
        return np.array([[each.stretch for each in placed.placed] for placed in self.kinds])[self.kind]

    def shifts(self, joints: Sequence[int]) -> Array:
        """Return (R, K, 3, 3) matrices from location channels to translations of poses, for K joints."""
        return np.array([placed.shifts[list(joints)] for placed in self.kinds])[self.kind]

    @classmethod
    def joined(cls, blocks: Sequence[BoneRows]) -> BoneRows:
        """Join the rows of blocks of frames with the same bones."""
        kinds = list({id(placed): placed for block in blocks for placed in block.kinds}.values())
        numbers = {id(placed): k for k, placed in enumerate(kinds)}
        kind = [np.array([numbers[id(placed)] for placed in block.kinds])[block.kind] for block in blocks]
        offsets, rests = (
            np.concatenate([getattr(block, name) for block in blocks]) for name in ("offsets", "rests")
        )
        return cls(kinds, np.concatenate(kind), blocks[0].carried, offsets, rests)

    def at(self, rows: slice) -> BoneRows:
        """Select frames."""
        return BoneRows(self.kinds, self.kind[rows], self.carried, self.offsets[rows], self.rests[rows])

    def skeleton(self, k: int) -> Skeleton:
        """Return the joints at a frame."""
        skeleton = self.kinds[int(self.kind[k])].skeleton
        if not self.carried:
            return skeleton
        if k not in self._skeletons:
            offsets, rests = self.offsets[k].tolist(), self.rests[k].tolist()
            places = {j: (Vector(offsets[j]).freeze(), Quaternion(rests[j]).freeze()) for j in self.carried}
            self._skeletons[k] = skeleton.moved(places)
        return self._skeletons[k]


@dataclass
class BonePlacer:
    """Places bones at frames: converts them to joints."""

    bones: Sequence[BoneRest]  # constants of the bones
    # By bone, its locked Euler axes; empty for a bone that is not partly locked.
    locked: Sequence[tuple[int, ...]]
    _last: PlacedBones | None = field(default=None, repr=False)

    @cached_property
    def parents(self) -> dict[int, list[int]]:
        """{slot of a parent that is not a joint: its children}, the first bones of chains."""
        children: dict[int, list[int]] = {}
        for i, bone in enumerate(self.bones):
            if bone.parent < 0 <= bone.parent_slot:
                children.setdefault(bone.parent_slot, []).append(i)
        return children

    def rows(
        self,
        pose_bones: Any,
        scales: NDArray[np.float32],
        eulers: NDArray[np.float32] | None,
        parents: NDArray[np.float32],
    ) -> BoneRows:
        """Convert bones to joints at R frames.

        Args:
            scales: (R, bones, 3) scale channels.
            eulers: (R, bones, 3) angles of bones with locked axes; None if there are none.
            parents: (R, P, 4, 4) pose matrices, in the order of `parents`.

        Raises:
            RigError: as `PlacedBones.of`; a parent whose matrix is not finite; a locked angle that is not a
                number.
        """
        rotations, is_rigid = self._parent_rotations(parents.astype(np.float64))
        locked: NDArray[np.float32] = np.zeros((len(scales), 0), np.float32)
        if eulers is not None:
            places = [(i, axis) for i, axes in enumerate(self.locked) for axis in axes]
            locked = eulers[:, [i for i, _ in places], [axis for _, axis in places]]
            members = [i for i, axes in enumerate(self.locked) if axes]
            slots = [self.bones[i].slot for i in members]
            require_finite(pose_bones, slots, eulers[:, members], "rotation")
        deforming = np.where(is_rigid[..., None, None], np.float32(0.0), parents)
        flat = [array.reshape(len(scales), -1) for array in (scales, locked, is_rigid, deforming)]
        keys = np.concatenate(flat, axis=1, dtype=np.float32)
        known: dict[bytes, int] = {}
        kinds: list[PlacedBones] = []
        kind = np.zeros(len(scales), np.intp)
        is_new = np.ones(len(scales), np.bool_)
        is_new[1:] = (keys[1:].view(np.uint32) != keys[:-1].view(np.uint32)).any(axis=1)
        for k in np.flatnonzero(is_new).tolist():
            key = keys[k].tobytes()
            if key not in known:
                angles = iter(locked[k].tolist())
                locked_angles = tuple(tuple(next(angles) for _ in axes) for axes in self.locked)
                parents_now = {
                    slot: STILL if is_rigid[k, p] else Matrix(parents[k, p].tolist()).freeze()
                    for p, slot in enumerate(self.parents)
                }
                inputs = PlacementInputs(key, scales[k], locked_angles, parents_now)
                if self._last is None or self._last.inputs.key != key:
                    self._last = PlacedBones.of(pose_bones, inputs, self.bones, self.locked, self._last)
                known[key] = len(kinds)
                kinds.append(self._last)
            kind[k:] = known[key]
        return self._with_parents(kinds, kind, parents, rotations, is_rigid)

    def _parent_rotations(self, parents: Array) -> tuple[Array, Mask]:
        """Return (4, R, P) rotations of parents, and (R, P) whether they are rigid for their children."""
        with np.errstate(all="ignore"):
            axes = parents[..., :3, :3].transpose(2, 3, 0, 1)
            rotations = quaternions(axes)
            rigid: Mask = np.asarray((np.abs(matrices(rotations) - axes) <= STEADY).all(axis=(0, 1)))
        for p, children in enumerate(self.parents.values()):
            if not all(self.bones[i].follows_parent for i in children):
                rigid[:, p] = False
        return rotations, rigid

    def _with_parents(
        self,
        kinds: Sequence[PlacedBones],
        kind: Indices,
        parents: NDArray[np.float32],
        rotations: Array,
        is_rigid: Mask,
    ) -> BoneRows:
        """Apply the transforms of rigid parents to the joints of `kinds`; see `rows`."""
        offsets, rests = (
            getattr(kinds[0], name)[None].repeat(len(kind), axis=0)
            if len(kinds) == 1
            else np.array([getattr(placed, name) for placed in kinds])[kind]
            for name in ("offsets", "rests")
        )
        pairs = [(i, p) for p, children in enumerate(self.parents.values()) for i in children]
        carried, under = [i for i, _ in pairs], [p for _, p in pairs]
        if carried and is_rigid.any():
            moving = is_rigid[:, under, None]
            moved = move(parents[:, under].astype(np.float64), offsets[:, carried]).astype(np.float32)
            invalid = moving[..., 0] & ~np.isfinite(moved).all(axis=-1)
            if invalid.any():
                bone = self.bones[carried[int(np.argmax(invalid.any(axis=0)))]]
                raise RigError(
                    f"bone '{bone.name}' has a parent '{bone.parent_name}' that is nowhere: clear its "
                    "transform"
                )
            turned = unit(multiply(rotations[:, :, under], rests[:, carried].transpose(2, 0, 1)))
            offsets[:, carried] = np.where(moving, moved, offsets[:, carried])
            rounded = turned.astype(np.float32).transpose(1, 2, 0)
            rests[:, carried] = np.where(moving, rounded, rests[:, carried])
        return BoneRows(kinds, kind, tuple(carried), offsets, rests)


def _placed(
    bone: BoneRest, pose_bone: Any, scale: Sequence[float], parent: Any, locked: Mapping[int, float]
) -> PlacedBone:
    """Place a bone under a parent's matrix, with slides and coupled offsets, and an EulerBox for locked axes.

    `locked`: {locked Euler axis: its angle}, radians.
    """
    placed = place(bone, pose_bone.bone, scale, parent)
    if bone.keywords.get("slides"):
        slides = bone_space.model_slides(bone.name, bone.keywords["slides"], placed.shift)
        placed = placed._replace(joint=replace(placed.joint, slides=slides))
    if placed.joint.mass_point is not None:
        point = Vector([a * b for a, b in zip(placed.joint.mass_point, placed.stretch, strict=True)])
        placed = placed._replace(joint=replace(placed.joint, mass_point=point))
    if bone.keywords.get("coupled_offsets"):
        offsets = bone_space.model_offsets(bone.keywords["coupled_offsets"], placed.shift)
        placed = placed._replace(joint=replace(placed.joint, coupled_offsets=offsets))
    if locked:
        order = pose_bone.rotation_mode if pose_bone.rotation_mode in EULER_MODES else ORDER
        limit = bone.keywords.get("limit")  # a box of the same order, see `_locks`
        free = (
            [(-math.pi, math.pi)] * 3 if limit is None else list(zip(limit.lower, limit.upper, strict=True))
        )
        x, y, z = (
            (math.remainder(locked[axis], 2 * math.pi),) * 2 if axis in locked else free[axis]
            for axis in range(3)
        )
        box = EulerBox(order, (x[0], y[0], z[0]), (x[1], y[1], z[1]))
        placed = placed._replace(joint=replace(placed.joint, limit=box))
    return placed


@dataclass(frozen=True)
class RigReading:
    """Skeleton and pose of the chains of an armature, for the solver."""

    # The joints of all chains, of bones between them, and of bones that only have mass. The latter two have
    # stiffness 1.
    skeleton: Skeleton
    # Rotations of the rotation channels, and translations of the heads along the rest axes: the location
    # channels, with scale and Local Location resolved. Coupled offsets are in `skeleton` instead.
    pose: Pose
    bones: tuple[str, ...]  # name of the bone of each joint
    # (joints, 3, 3) matrices from location channel to translation of the pose.
    shifts: Array = field(repr=False, compare=False)


@dataclass(frozen=True)
class RigRows:
    """Skeletons and poses of the chains of an armature at R frames."""

    layout: RigLayout  # with which they were read
    rotations: Array  # (R, J, 4), rounded to float32; see `RigReading.pose`
    translations: Array  # (R, J, 3), rounded to float32; see `RigReading.pose`
    bones: BoneRows  # the bones as joints
    _readings: dict[int, RigReading] = field(default_factory=dict, repr=False)

    @classmethod
    def joined(cls, blocks: Sequence[RigRows]) -> RigRows:
        """Join the rows of blocks of frames with the same bones."""
        rotations, translations = (
            np.concatenate([getattr(block, name) for block in blocks])
            for name in ("rotations", "translations")
        )
        bones = BoneRows.joined([block.bones for block in blocks])
        return RigRows(blocks[0].layout, rotations, translations, bones)

    def posed(self, rotations: Array, translations: Array) -> RigRows:
        """Return the rows with different poses."""
        return RigRows(self.layout, rotations, translations, self.bones)

    def reading(self, k: int) -> RigReading:
        """Return the chains at a frame."""
        if k not in self._readings:
            bones, pose = self.bones, Pose.of_arrays(self.rotations[k], self.translations[k])
            shifts = bones.kinds[int(bones.kind[k])].shifts
            self._readings[k] = RigReading(bones.skeleton(k), pose, self.layout.names, shifts)
        return self._readings[k]

    def translations_of(self, joint: int, channel: Array) -> Array:
        """Return (R, 3) translations of a joint for values of its bone's location channel, (R, 3) or (3,)."""
        projection = self.layout.projections.get(joint)
        if projection is not None:
            channel = bone_space.translations_of(projection, channel)
        shifts = self.bones.shifts([joint])[:, 0]
        moved = bone_space.translations_of(shifts, np.broadcast_to(channel, (len(shifts), 3)))
        return moved.astype(np.float32).astype(np.float64)


@dataclass(frozen=True)
class RigLayout:
    """Constants of the chains of an armature, with which frames are read quickly.

    Renew it after edits of the armature (bones, rest pose, flags, locks, settings), and if it does not fit
    (`fits`). `rows` itself handles changes of scale and of the parents of chains.
    """

    chains: tuple[tuple[str, int], ...]
    joint_settings: Mapping[str, Mapping[str, Any]]
    names: tuple[str, ...]
    slots: Indices  # index of each bone in pose.bones
    modes: tuple[str, ...]
    mode_codes: bytes = field(repr=False)
    count: int  # of all pose bones
    connected: Indices = field(repr=False)  # bones whose location Blender ignores
    placer: BonePlacer = field(repr=False)
    skeleton: Skeleton = field(repr=False)  # when the layout was made
    masses: Mapping[str, float]
    projections: Mapping[int, Array] = field(repr=False)  # of joints with coupled offsets, see `bone_space`
    shown: tuple[int, ...]  # joints whose poses are read as Blender shows them, see `layout`

    @cached_property
    def watched(self) -> Watched:
        """The properties of pose bones that `rows` needs."""
        names = {"rotation_mode": 1, **dict(CHANNELS[mode] for mode in self.modes), "location": 3, "scale": 3}
        slots: dict[str, Slots] = dict.fromkeys(names, self.slots)
        if self.placed:
            names["matrix"], slots["matrix"] = 16, self.placed
        return Watched(self.count, names, slots)

    @property
    def placed(self) -> list[int]:
        """Slots of the bones whose evaluated matrices `rows` needs; of all others it reads channels."""
        pairs = [j for shown in self.shown for j in (self.placer.bones[shown].parent, shown)]
        return [*self.placer.parents, *self.slots[pairs].tolist()]

    def fits(self, seen: NDArray[np.float32]) -> bool:
        """Whether the values of pose bones can be read with this layout: no rotation mode has changed."""
        return seen[: len(self.slots)].tobytes() == self.mode_codes

    def rows(self, armature_object: Any, seen: Sequence[NDArray[np.float32]]) -> RigRows:
        """Convert the values of R frames to skeletons and poses.

        Args:
            armature_object: of this layout, original or evaluated.
            seen: values that `watched` has read at each frame; all of them fit (`fits`).

        Raises:
            RigError: as `layout`; also if a channel is not a finite number.
        """
        pose_bones, slots = armature_object.pose.bones, self.slots
        values = self.watched.values(np.array(seen))
        rotations = read_rotations(pose_bones, slots, self.modes, values)
        bones = self.bones(pose_bones, values)
        channels = values["location"].astype(np.float64)
        channels[:, self.connected] = 0.0
        require_finite(pose_bones, slots, channels, "location")
        rows = RigRows(self, rotations, np.zeros_like(channels), bones)
        for j in np.flatnonzero(channels.any(axis=(0, 2))).tolist():
            rows.translations[:, j] = rows.translations_of(j, channels[:, j])
        if self.shown:
            self._read_shown(rows, values)
        return rows

    def _read_shown(self, rows: RigRows, values: Values) -> None:
        """Replace the poses of `shown` joints by those that Blender shows beside their parents; in place."""
        whole = values["matrix"].reshape(len(values["matrix"]), -1, 4, 4).swapaxes(2, 3).astype(np.float64)
        for number, j in enumerate(self.shown):
            heads, frames = [], []
            for k in (2 * number, 2 * number + 1):  # its parent and itself, see `placed`
                matrix = whole[:, len(self.placer.parents) + k]
                columns = matrix[:, :3, :3]
                sizes = np.linalg.norm(columns, axis=1) * np.sign(np.linalg.det(columns))[:, None]
                frames.append(quaternions((columns / sizes[:, None]).transpose(1, 2, 0)))
                heads.append(matrix[:, :3, 3])
            rest = conjugate(unit(rows.bones.rests[:, j], axis=-1).T)
            turned = multiply(conjugate(frames[0]), frames[1])
            moved = rotate(conjugate(frames[0]), (heads[1] - heads[0]).T).T - rows.bones.offsets[:, j]
            rows.rotations[:, j] = multiply(rest, turned).T
            rows.translations[:, j] = rotate(rest, moved.T).T

    def bones(self, pose_bones: Any, values: Values) -> BoneRows:
        """Convert bones to joints at R frames, from values of `watched`; errors as of `layout`."""
        parents: NDArray[np.float32] = np.zeros((len(values["scale"]), 0, 4, 4), np.float32)
        if self.placer.parents:
            matrices = values["matrix"][:, : len(self.placer.parents)]
            parents = matrices.reshape(*matrices.shape[:2], 4, 4).swapaxes(2, 3)  # column by column
        eulers = self._eulers(pose_bones, values) if any(self.placer.locked) else None
        return self.placer.rows(pose_bones, values["scale"], eulers, parents)

    def _eulers(self, pose_bones: Any, values: Values) -> NDArray[np.float32]:
        """Return (R, bones, 3) angles of bones with locked axes, in any mode; 0 for the remaining bones."""
        angles = np.zeros((len(values["scale"]), len(self.slots), 3), np.float32)
        for i, axes in enumerate(self.placer.locked):
            if axes and self.modes[i] in EULER_MODES:
                angles[:, i] = values["rotation_euler"][:, i]
            elif axes:  # fully locked
                of_bone = {name: each[:, [i]] for name, each in values.items() if name != "matrix"}
                rotations = read_rotations(pose_bones, self.slots[[i]], [self.modes[i]], of_bone)[:, 0]
                angles[:, i] = [Quaternion(rotation).to_euler(ORDER)[:] for rotation in rotations.tolist()]
        return angles

    def read(self, armature_object: Any) -> RigReading:
        """Read the present pose of the armature, original or evaluated; errors as of `rows`."""
        seen = self.watched.look(armature_object.pose.bones)
        if not self.fits(seen):
            return self.renewed(armature_object).read(armature_object)
        return self.rows(armature_object, [seen]).reading(0)

    def renewed(self, armature_object: Any) -> RigLayout:
        """Return the layout of the same chains of the present armature."""
        shown = [self.names[j] for j in self.shown]
        return layout(armature_object, self.chains, self.joint_settings, self.masses, shown)


def read(
    armature_object: Any,
    chains: Sequence[tuple[str, int]],
    joint_settings: Mapping[str, Mapping[str, Any]],
    masses: Mapping[str, float] | None = None,
) -> RigReading:
    """Read the chains of an armature and their present pose: `layout` and `RigLayout.read`."""
    return layout(armature_object, chains, joint_settings, masses).read(armature_object)


def layout(
    armature_object: Any,
    chains: Sequence[tuple[str, int]],
    joint_settings: Mapping[str, Mapping[str, Any]],
    masses: Mapping[str, float] | None = None,
    shown: Collection[str] = (),
) -> RigLayout:
    """Collect the bones of chains and their constants.

    The joints are the bones of all chains, and the bones between them, which are locked (stiffness 1). The
    first bone of a chain has the evaluated pose matrix of its parent. Animation and constraints outside the
    chains therefore count. Bones of a chain are read from their channels; their constraints are ignored.

    A bone whose rotation is locked on all axes gets stiffness 1 and no limit. If it slides, it gets an
    EulerBox at its present rotation instead, in any mode. In an Euler mode, a bone without a limit, or with
    an EulerBox of this order alone, may be locked on one or two axes: these keep their present angles.

    Args:
        chains: (tip bone, number of bones; 0 or more than there are: to the root) of each chain.
        joint_settings: {bone: keywords of Joint}, such as limit, comfort, stiffness and max_step; slides
            and coupled offsets are in the axes and the unit of the bone's location channel. A bone outside
            the chains whose coupled offset follows a bone of a chain is a locked joint.
        masses: {bone: mass} of bones that count for balance. Outside the chains they are locked joints,
            read from their channels too.
        shown: names of locked bones, read as Blender shows them beside their parents where these are joints
            and they inherit their rotation: constraints place them, and go along with their parents.

    Raises:
        RigError: not an armature, or one in rest position; a missing bone; a bone with zero length or scale;
            one that scale would shear or mirror; partly locked rotation that cannot be kept; a slide or a
            coupled offset that the bone's location cannot make; a coupled offset without a driver.
        InvalidInput: a negative chain length, or joint settings that Joint refuses.
    """
    if armature_object is None or armature_object.type != "ARMATURE":
        name = "nothing" if armature_object is None else f"object '{armature_object.name}'"
        raise RigError(f"{name} is not an armature: choose an armature object")
    if armature_object.data.pose_position == "REST":
        raise RigError(
            f"armature '{armature_object.name}' is shown in Rest Position: switch it to Pose Position"
        )
    pose_bones = armature_object.pose.bones
    masses = dict(masses or {})
    in_chains, between = _collect(armature_object, chains, masses, joint_settings)
    all_slots = {pose_bone.name: slot for slot, pose_bone in enumerate(pose_bones)}
    members = [pose_bones[name] for name in in_chains | between]
    ordered = sorted(members, key=lambda b: (len(b.parent_recursive), all_slots[b.name]))
    settings = dict(joint_settings)
    offsets = bone_space.followers(joint_settings, in_chains)
    for name in between:  # they are never posed, and therefore have no limit
        of_bone = {"mass": masses.get(name, 0.0), "coupled_offsets": offsets.get(name, ())}
        settings[name] = {"stiffness": 1.0, **of_bone}
    for pose_bone in ordered:
        bone_space.require_offsets(pose_bone, settings, in_chains)
    bones, locked = _rests(ordered, all_slots, settings)
    placer = BonePlacer(bones, locked)
    new_layout = RigLayout(
        chains=tuple((tip, length) for tip, length in chains),
        joint_settings=joint_settings,
        names=tuple(pose_bone.name for pose_bone in ordered),
        slots=np.array([bone.slot for bone in bones], np.intp),
        modes=tuple(pose_bone.rotation_mode for pose_bone in ordered),
        mode_codes=foreach(pose_bones, "rotation_mode", 1)[[bone.slot for bone in bones]].tobytes(),
        count=len(pose_bones),
        connected=np.flatnonzero([bone.connected for bone in bones]),
        placer=placer,
        skeleton=Skeleton(()),
        masses=masses,
        projections=bone_space.projections([bone.keywords for bone in bones]),
        shown=tuple(
            j
            for j, bone in enumerate(bones)
            if bone.name in shown and bone.parent >= 0 and bone.inherit_rotation
        ),
    )
    values = new_layout.watched.values(new_layout.watched.look(pose_bones)[None])
    return replace(new_layout, skeleton=new_layout.bones(pose_bones, values).skeleton(0))


def apply(
    armature_object: Any,
    reading: RigReading,
    pose: Pose,
    joints: Sequence[int] | None = None,
    located: Mapping[int, Sequence[float]] | None = None,
) -> None:
    """Write rotations and locations to the bones' channels; angles are the nearest to the present ones.

    Args:
        joints: indices of the joints to rotate; None: all. Scales are not written.
        located: {joint: value of its location channel}; None: the pose's, of the joints to rotate that slide
            or have coupled offsets. The remaining locations are not written.

    Raises:
        RigError: a bone is missing; nothing is written then.
    """
    check_pose(reading.skeleton, pose)
    rotated = range(len(reading.bones)) if joints is None else joints
    if located is None:
        located = location_channels(reading, pose, rotated)
    pose_bones = {j: _pose_bone(armature_object, reading.bones[j]) for j in (*rotated, *located)}
    for joint in rotated:
        locked = locked_angles(pose_bones[joint], (reading.skeleton.joints[joint].limit,))
        set_rotation(pose_bones[joint], pose.rotations[joint], locked)
    for joint, location in located.items():
        pose_bones[joint].location = list(location)


def location_channels(reading: RigReading, pose: Pose, joints: Iterable[int]) -> dict[int, list[float]]:
    """Return the location channels of a pose, for the joints that slide or have coupled offsets."""
    skeleton = reading.skeleton
    translations = coupled_translations(skeleton, pose.rotations, pose.translations)
    return {
        j: bone_space.locations_of(reading.shifts[j], np.array(translations[j][:])).tolist()
        for j in joints
        if skeleton.joints[j].slides or skeleton.joints[j].coupled_offsets
    }


# --- Masses -------------------------------------------------------------------------------------------------

MEETS = 0.01
"""Largest distance of a child's head from a tail that it begins at, as a part of the bone's length."""


class BoneEnd(NamedTuple):
    """The end of a bone whose tail says nothing: its place in the frame of the bone, and how far it is."""

    place: Vector
    length: float


def bone_ends(armature: bpy.types.Armature) -> dict[str, BoneEnd]:
    """The ends of an armature's bones; empty if their tails are the ends.

    Importers invent tails for joints that have none in the file, such as those of glTF, along some axis. So
    tails count where at least half of the bones with children have one that begins there. If not, a bone
    ends in the middle of the heads of its children (of those that deform, if any does), and is as long as
    these are away on average. One without children goes on in the direction from its parent's head, as far
    as this is away, or its own length if that is less; one without a parent keeps its tail.
    """
    children = {bone.name: [each for each in bone.children if each.use_deform] for bone in armature.bones}
    children = {bone.name: children[bone.name] or list(bone.children) for bone in armature.bones}
    parents = [bone for bone in armature.bones if children[bone.name]]
    meeting = [
        bone
        for bone in parents
        if any((child.head_local - bone.tail_local).length <= MEETS * bone.length for child in bone.children)
    ]
    if 2 * len(meeting) >= len(parents):
        return {}
    ends = {}
    for bone in armature.bones:
        heads = [child.head_local for child in children[bone.name]]
        way, length = bone.tail_local - bone.head_local, float(bone.length)
        if heads:
            way = sum(heads, Vector()) / len(heads) - bone.head_local
            length = math.fsum((head - bone.head_local).length for head in heads) / len(heads)
        elif bone.parent is not None:
            on = bone.head_local - bone.parent.head_local
            length = min(length, on.length)
            way = on.normalized() * length
        ends[bone.name] = BoneEnd(bone.matrix_local.to_3x3().inverted() @ way, length)
    return ends


LAST_PART = 0.5
"""Part of the guessed length of a bone without children at which its end is: feet would end in the ground."""


def handle_ends(armature: bpy.types.Armature) -> dict[str, Vector]:
    """The ends at which bones are drawn and held, in their frames; empty if their tails are the ends."""
    return {
        name: end.place if armature.bones[name].children else LAST_PART * end.place
        for name, end in bone_ends(armature).items()
    }


def ends_of(bones: Iterable[bpy.types.Bone]) -> list[tuple[bpy.types.Bone, Vector]]:
    """The points to which bones with parents lead, in armature space, each with the bone that carries it.

    These are their heads, and the tails of the last ones: those of bones that are not connected may be
    invented (`bone_ends`), or mark an end alone.
    """
    points: list[tuple[Any, Vector]] = []
    for bone in bones:
        points.append((bone.parent, bone.head_local))
        if bone.use_connect and not bone.children:
            points.append((bone, bone.tail_local))
    return points


def only_line(bone: bpy.types.Bone) -> list[bpy.types.Bone]:
    """The bones below one, as long as each has one child alone."""
    line = [bone]
    while len(line[-1].children) == 1:
        line.append(line[-1].children[0])
    return line[1:]


def mass_lengths(armature: bpy.types.Armature) -> dict[str, float]:
    """Lengths of the bones that deform, by which these count where no bone has a mass."""
    ends = bone_ends(armature)
    return {
        bone.name: ends[bone.name].length if bone.name in ends else float(bone.length)
        for bone in armature.bones
        if bone.use_deform
    }


def mass_middle(pose_bone: bpy.types.PoseBone) -> Vector:
    """Where the mass of an evaluated bone sits, in armature space."""
    end = bone_ends(pose_bone.id_data.data).get(pose_bone.name)
    place = Vector((0.0, pose_bone.bone.length, 0.0)) if end is None else end.place
    return pose_bone.matrix @ (0.5 * place)


# --- Bones of chains ----------------------------------------------------------------------------------------


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
    masses: Iterable[str],
    joint_settings: Mapping[str, Mapping[str, Any]],
) -> tuple[set[str], set[str]]:
    """Return the names of the bones in chains, and of the bones to add to them.

    The latter have masses, have coupled offsets that follow a bone in a chain, or lie between the rest.
    """
    in_chains: set[str] = set()
    for tip, length in chains:
        if length < 0:
            raise InvalidInput(f"chain length of '{tip}' must be 0 (to the root) or more, not {length}")
        pose_bone = _pose_bone(armature_object, tip)
        upwards = (pose_bone, *pose_bone.parent_recursive)
        in_chains.update(b.name for b in upwards[: length or None])
    between = {*masses, *bone_space.followers(joint_settings, in_chains)} - in_chains
    ends = in_chains | between
    for name in ends:
        line = [b.name for b in _pose_bone(armature_object, name).parent_recursive]
        highest = max((i for i, ancestor in enumerate(line) if ancestor in ends), default=-1)
        between.update(ancestor for ancestor in line[: highest + 1] if ancestor not in in_chains)
    return in_chains, between


def _rests(
    pose_bones: Sequence[Any], slots: Mapping[str, int], joint_settings: Mapping[str, Mapping[str, Any]]
) -> tuple[list[BoneRest], list[tuple[int, ...]]]:
    """Return the constants of bones, and the locked Euler axes of each partly locked one."""
    indices = {pose_bone.name: i for i, pose_bone in enumerate(pose_bones)}
    heavy = any(settings.get("mass", 0.0) != 0.0 for settings in joint_settings.values())
    ends = bone_ends(pose_bones[0].id_data.data) if heavy else {}
    bones, locked = [], []
    for pose_bone in pose_bones:
        settings = joint_settings.get(pose_bone.name, {})
        if pose_bone.name in ends:
            settings = {**settings, "mass_point": 0.5 * ends[pose_bone.name].place}
        bone_space.require_slides(pose_bone, settings.get("slides", ()))
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
    """Return joint keywords that respect the bone's locks, and the Euler axes that an EulerBox must fix."""
    euler = pose_bone.rotation_mode in EULER_MODES
    locks = list(pose_bone.lock_rotation)
    # W counts only among locks by component, as in Blender.
    w_locked = not euler and pose_bone.lock_rotations_4d and pose_bone.lock_rotation_w
    if not (any(locks) or w_locked) or settings.get("stiffness", 0.0) >= 1.0:
        return settings, ()
    # With X, Y and Z locked, W or the angle alone leaves a unit quaternion no neighbouring rotation. A joint
    # with stiffness 1 would not slide either.
    if all(locks) and not settings.get("slides"):
        return {**settings, "stiffness": 1.0, "limit": None, "comfort": None}, ()
    where = " and ".join(axis for axis, lock in zip("XYZW", (*locks, w_locked), strict=True) if lock)
    name = pose_bone.name
    if not (euler or all(locks)):
        raise RigError(
            f"bone '{name}' has rotation locked on {where} in a mode without Euler angles: unlock it, or "
            "give it an Euler rotation mode"
        )
    limit = settings.get("limit")
    is_box = isinstance(limit, EulerBox) and limit.order == pose_bone.rotation_mode
    if limit is not None and (not is_box or settings.get("comfort") is not None):
        raise RigError(
            f"bone '{name}' has rotation locked on {where} and a limit too: unlock it, or remove the limit"
        )
    return settings, tuple(axis for axis in range(3) if locks[axis])
