"""Bones as joints, and joints back into bones.

Blender places a bone by the pose matrix of its parent, the rest matrices and a handful of flags (Inherit Rotation, Inherit
Scale, Local Location, Connected); `Bone.convert_local_to_pose` is Blender's own word on the result. The core knows rigid
joints only: R_i = R_p rest_i rotation_i. So each bone's constants are read off Blender's answer in the parent's frame without
the parent's scale, and then the rigid joint is held against Blender's answer for other rotations of the parent and of the
bone. A bone for which they differ, because scale would shear it, is refused by name.

In all of this a bone's pose matrix is `R diag(stretch)`: R is the joint's rotation in armature space, `stretch` its signed
scale along its own axes. Lengths are in the armature's units. The armature object's own transform plays no part.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ..errors import InvalidInput, RigError
from ..limits import EulerBox
from ..skeleton import Joint, Pose, Skeleton, check_pose
from .rotation_modes import EULER_MODES, channel_values, foreach, read_rotations, require_finite, rotation_channel

__all__ = ["RigPlan", "RigReading", "apply", "channel_values", "plan", "read", "rotation_channel"]

EXACT = 1e-5
"""How far the joint's head may be from the bone's, relative to the bone's size and distance, before the bone is refused."""

RIGID = 2e-4
"""How far, relative to its scale, an axis of the joint may be from the bone's before the bone is refused as sheared.

Not less, because Blender's own rest matrices are no better: of bones that point within 20 degrees of -Y they are up to 8e-5
away from a rotation (measured on 4.2 and 5.2 over 6,000 directions).
"""

_NOISE = 1e-6  # relative float32 noise of a scale: smaller differences are not a change
_ZERO = 1e-6  # scales and lengths below this cannot be divided by
_IDENTITY = Quaternion()
# Arbitrary turns (of the parent, of the bone) far from every axis, at which the rigid joint is held against Blender.
_PROBES = (
    (_IDENTITY, Quaternion((0.6, -0.48, 0.48, -0.42)).normalized()),
    (Quaternion((0.3, 0.7, -0.5, 0.4)).normalized(), Quaternion((-0.2, 0.5, 0.3, 0.8)).normalized()),
)


@dataclass(frozen=True)
class RigReading:
    """The chains of an armature as the solver takes them.

    Attributes:
        skeleton: the joints of all chains, and the bones between them (those with stiffness 1).
        pose: of each joint the rotation that its channels hold, and the shift of its head in its own rest axes: what the
            location channel does, with scale and Local Location resolved.
        bones: bone name of each joint.
    """

    skeleton: Skeleton
    pose: Pose
    bones: tuple[str, ...]


@dataclass(frozen=True)
class _Bone:
    """What of a bone stays while the armature is animated. `slot` counts in pose.bones, `parent` in the joints."""

    name: str
    slot: int
    parent: int  # -1 for the first bone of a chain, also where Blender has a parent
    parent_name: str  # "" where Blender has none
    parent_slot: int
    length: float
    rest: Matrix
    parent_rest: Matrix
    connected: bool
    local_location: bool
    inherit_rotation: bool
    locked: tuple[int, ...]  # Euler axes that may not turn, if not all are locked
    keywords: Mapping[str, Any]  # of the joint


@dataclass(frozen=True)
class _Placed:
    """A joint under given scales."""

    joint: Joint
    stretch: Vector
    shift: Matrix  # 3x3: location channel -> shift in the joint's rest axes


@dataclass(frozen=True)
class _State:
    """What decides the joints, and the joints."""

    scales: tuple[tuple[float, float, float], ...]
    parents: tuple[Matrix | None, ...]  # pose matrix of the first bones' parents
    held: tuple[tuple[float, ...], ...]  # present angles of locked Euler axes, radians
    placed: tuple[_Placed, ...]
    skeleton: Skeleton
    shifts: NDArray[np.float64]  # (joints, 3, 3)


@dataclass(frozen=True)
class RigPlan:
    """What stays the same from frame to frame, so that reading a frame costs little.

    Make it anew after edits to the armature (bones, rest pose, flags, locks, settings). Changes of scale, of the rotation
    mode and of what moves the chains' parents are seen by `read` itself.
    """

    chains: tuple[tuple[str, int], ...]
    joint_settings: Mapping[str, Mapping[str, Any]]
    bones: tuple[_Bone, ...]
    names: tuple[str, ...]
    modes: tuple[str, ...]
    mode_codes: NDArray[np.int32] = field(repr=False)
    state: _State = field(repr=False)

    def read(self, armature_object: Any) -> RigReading:
        """The present pose of the armature, original or evaluated.

        As long as neither scale nor the chains' parents change, every reading holds the same skeleton object.

        Raises:
            RigError: as `plan`; also where a channel holds something that is not a finite number.
        """
        pose_bones = armature_object.pose.bones
        count = len(self.mode_codes)
        if len(pose_bones) != count or not np.array_equal(foreach(pose_bones, "rotation_mode", 1)[:, 0], self.mode_codes):
            return plan(armature_object, self.chains, self.joint_settings).read(armature_object)
        slots = [bone.slot for bone in self.bones]
        locations = foreach(pose_bones, "location", 3)[slots].astype(np.float64)
        rotations = read_rotations(pose_bones, slots, self.modes)
        state = _update(armature_object, self.bones, self.state)
        locations[[bone.connected for bone in self.bones]] = 0.0  # Blender ignores them
        require_finite(pose_bones, slots, locations, "location")
        shifts = np.einsum("nij,nj->ni", state.shifts, locations).tolist()
        # Finite and unit by now, so the pose need not check each number again.
        pose = Pose.trusted(tuple(rotations), tuple(Vector(shift).freeze() for shift in shifts))
        return RigReading(state.skeleton, pose, self.names)


def read(
    armature_object: Any, chains: Sequence[tuple[str, int]], joint_settings: Mapping[str, Mapping[str, Any]]
) -> RigReading:
    """The chains of an armature and their present pose: `plan` and `RigPlan.read` in one."""
    return plan(armature_object, chains, joint_settings).read(armature_object)


def plan(
    armature_object: Any, chains: Sequence[tuple[str, int]], joint_settings: Mapping[str, Mapping[str, Any]]
) -> RigPlan:
    """Find the chains' bones and their constants.

    The joints are the bones of all chains and the bones that lie between them; the latter are locked (stiffness 1). The
    first bone of a chain stands on the pose matrix of its parent as Blender evaluated it, so animation and constraints
    outside the chains are honoured. Bones of a chain are read from their channels; constraints on them are not seen.

    A bone whose rotation is locked on all axes gets stiffness 1 and no limit: it stays as it is. One that is locked on some
    axes in an Euler mode and has no limit gets an EulerBox that holds these axes at their present angles.

    Args:
        armature_object: original or evaluated.
        chains: (tip bone, number of bones; 0 or more than there are: to the root) of each chain.
        joint_settings: {bone: keywords of Joint}, such as limit, comfort, stiffness and max_step.

    Raises:
        RigError: not an armature, or one in rest position; a missing bone; a bone with zero length or scale; one that scale
            would shear or mirror; partly locked rotation that cannot be kept.
        InvalidInput: a negative chain length, or joint settings that Joint refuses.
    """
    if armature_object is None or armature_object.type != "ARMATURE":
        raise RigError(f"{_label(armature_object)} is not an armature: choose an armature object")
    if armature_object.data.pose_position == "REST":
        raise RigError(f"armature '{armature_object.name}' is shown in Rest Position: switch it to Pose Position")
    pose_bones = armature_object.pose.bones
    codes = foreach(pose_bones, "rotation_mode", 1, np.int32)[:, 0]
    in_chains, between = _collect(armature_object, chains)
    found = sorted(
        (len(pose_bone.parent_recursive), slot, pose_bone)
        for slot, pose_bone in enumerate(pose_bones)
        if pose_bone.name in in_chains or pose_bone.name in between
    )
    slots = {pose_bone.name: slot for slot, pose_bone in enumerate(pose_bones)}
    names = tuple(pose_bone.name for _, _, pose_bone in found)
    indices = {name: i for i, name in enumerate(names)}
    bones = []
    for _, slot, pose_bone in found:
        # Bones between chains are never posed, so no limit may ask for that.
        settings = {"stiffness": 1.0} if pose_bone.name in between else dict(joint_settings.get(pose_bone.name, {}))
        bones.append(_static(pose_bone, slot, slots, indices, settings))
    modes = tuple(pose_bone.rotation_mode for _, _, pose_bone in found)
    state = _update(armature_object, bones, None)
    return RigPlan(tuple(chains), joint_settings, tuple(bones), names, modes, codes, state)


def apply(armature_object: Any, reading: RigReading, pose: Pose, joints: Sequence[int] | None = None) -> None:
    """Write rotations into the bones' own channels, next to the values that stand there.

    Args:
        armature_object: the original object.
        reading: tells which bone each joint is.
        pose: of `reading.skeleton`.
        joints: indices of the joints to write; None: all. Other bones, locations and scales are not touched.

    Raises:
        RigError: a bone is missing; nothing is written then.
    """
    check_pose(reading.skeleton, pose)
    wanted = range(len(reading.bones)) if joints is None else joints
    pose_bones = [_pose_bone(armature_object, reading.bones[joint]) for joint in wanted]
    for joint, pose_bone in zip(wanted, pose_bones, strict=True):
        channel, _ = rotation_channel(pose_bone)
        present = tuple(getattr(pose_bone, channel))
        values = channel_values(pose_bone.rotation_mode, [tuple(pose.rotations[joint])], present)
        setattr(pose_bone, channel, values[0].tolist())


# --- Which bones ------------------------------------------------------------------------------------------------


def _label(armature_object: Any) -> str:
    return "nothing" if armature_object is None else f"object '{armature_object.name}'"


def _pose_bone(armature_object: Any, name: str) -> Any:
    pose_bone = armature_object.pose.bones.get(name)
    if pose_bone is None:
        raise RigError(f"there is no bone '{name}' in armature '{armature_object.name}': choose one of its bones")
    return pose_bone


def _collect(armature_object: Any, chains: Sequence[tuple[str, int]]) -> tuple[set[str], set[str]]:
    """Names of the chains' bones, and of the bones between them."""
    in_chains: set[str] = set()
    for tip, length in chains:
        if length < 0:
            raise InvalidInput(f"chain length of '{tip}' must be 0 (to the root) or more, not {length}")
        pose_bone = _pose_bone(armature_object, tip)
        line = (pose_bone, *pose_bone.parent_recursive)
        in_chains.update(b.name for b in line[: length or None])
    between: set[str] = set()
    for name in in_chains:
        line = [b.name for b in armature_object.pose.bones[name].parent_recursive]
        highest = max((i for i, ancestor in enumerate(line) if ancestor in in_chains), default=-1)
        between.update(ancestor for ancestor in line[: highest + 1] if ancestor not in in_chains)
    return in_chains, between


def _static(
    pose_bone: Any, slot: int, slots: Mapping[str, int], indices: Mapping[str, int], settings: dict[str, Any]
) -> _Bone:
    bone, parent = pose_bone.bone, pose_bone.parent
    if bone.length < _ZERO:
        raise RigError(f"bone '{bone.name}' has zero length: give it a length in Edit Mode")
    settings, locked = _locks(pose_bone, settings)
    return _Bone(
        name=bone.name,
        slot=slot,
        parent=-1 if parent is None else indices.get(parent.name, -1),
        parent_name="" if parent is None else parent.name,
        parent_slot=-1 if parent is None else slots[parent.name],
        length=bone.length,
        rest=bone.matrix_local.copy(),
        parent_rest=Matrix.Identity(4) if parent is None else parent.bone.matrix_local.copy(),
        connected=parent is not None and bone.use_connect,
        local_location=bone.use_local_location,
        inherit_rotation=bone.use_inherit_rotation or parent is None or parent.name not in indices,
        locked=locked,
        keywords=settings,
    )


def _locks(pose_bone: Any, settings: dict[str, Any]) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Joint keywords with the bone's rotation locks honoured, and the Euler axes that an EulerBox must hold."""
    euler = pose_bone.rotation_mode in EULER_MODES
    locks = list(pose_bone.lock_rotation)
    w_locked = not euler and pose_bone.lock_rotations_4d and pose_bone.lock_rotation_w  # else Blender ignores it
    if not (any(locks) or w_locked) or settings.get("stiffness", 0.0) >= 1.0:
        return settings, ()
    if all(locks):  # W or the angle alone leaves a unit quaternion no other rotation that is near
        return {**settings, "stiffness": 1.0, "limit": None, "comfort": None}, ()
    where = " and ".join(axis for axis, lock in zip("XYZW", (*locks, w_locked), strict=True) if lock)
    name = pose_bone.name
    if not euler:
        raise RigError(
            f"bone '{name}' has rotation locked on {where} in a mode without Euler angles: unlock it, or give it an Euler "
            "rotation mode"
        )
    if settings.get("limit") is not None:
        raise RigError(
            f"bone '{name}' has rotation locked on {where} and a limit as well: unlock it, or remove its limit"
        )
    return settings, tuple(axis for axis in range(3) if locks[axis])


# --- Joints under the present scales ----------------------------------------------------------------------------


def _update(armature_object: Any, bones: Sequence[_Bone], old: _State | None) -> _State:
    """The joints under the present scales, parents and locked angles; what did not change is taken from `old`."""
    pose_bones = armature_object.pose.bones
    slots = [bone.slot for bone in bones]
    scale_values = foreach(pose_bones, "scale", 3)[slots]
    require_finite(pose_bones, slots, scale_values, "scale")
    scales = tuple(map(tuple, scale_values.tolist()))
    parents = tuple(
        pose_bones[bone.parent_slot].matrix.copy() if bone.parent < 0 <= bone.parent_slot else None for bone in bones
    )
    held: tuple[tuple[float, ...], ...] = tuple(
        tuple(pose_bones[bone.slot].rotation_euler[axis] for axis in bone.locked) if bone.locked else ()
        for bone in bones
    )
    if old is not None and (old.scales, old.parents, old.held) == (scales, parents, held):
        return old
    placed: list[_Placed] = []
    for i, bone in enumerate(bones):
        stretch = placed[bone.parent].stretch if bone.parent >= 0 else None
        fresh = (
            old is None
            or (old.scales[i], old.parents[i], old.held[i]) != (scales[i], parents[i], held[i])
            or (bone.parent >= 0 and stretch != old.placed[bone.parent].stretch)
        )
        if not fresh:
            placed.append(old.placed[i])
            continue
        matrix = parents[i] if stretch is None else Matrix.Diagonal(stretch).to_4x4()
        now = _place(armature_object, bone, Vector(scales[i]), matrix)
        if held[i]:
            now = replace(now, joint=replace(now.joint, limit=_box(pose_bones[bone.slot], bone.locked)))
        if old is not None and (now.stretch - old.placed[i].stretch).length <= _NOISE * now.stretch.length:
            now = replace(now, stretch=old.placed[i].stretch)  # then the children need not be placed anew
        placed.append(now)
    shifts = np.array([[list(row) for row in item.shift] for item in placed], dtype=np.float64).reshape(-1, 3, 3)
    return _State(scales, parents, held, tuple(placed), Skeleton(item.joint for item in placed), shifts)


def _box(pose_bone: Any, locked: tuple[int, ...]) -> EulerBox:
    """Holds the locked Euler axes at their present angles."""
    angles = [math.remainder(angle, 2 * math.pi) for angle in pose_bone.rotation_euler]
    x, y, z = ((a, a) if axis in locked else (-math.pi, math.pi) for axis, a in enumerate(angles))
    return EulerBox(pose_bone.rotation_mode, (x[0], y[0], z[0]), (x[1], y[1], z[1]))


def _place(armature_object: Any, bone: _Bone, scale: Vector, parent: Matrix | None) -> _Placed:
    """The joint of a bone under a parent whose pose matrix is `parent` (None: no parent at all)."""
    if min(map(abs, scale)) < _ZERO:
        raise RigError(f"bone '{bone.name}' has zero scale: give it a scale other than 0")
    at_rest = _blender(armature_object, bone, Matrix.Identity(4), parent)
    columns = [at_rest.col[axis].to_3d() for axis in range(3)]
    inherited = Vector(column.length for column in columns)
    if not all(math.isfinite(value) for row in at_rest for value in row):
        raise RigError(f"bone '{bone.name}' has a parent '{bone.parent_name}' that is nowhere: clear its transform")
    if min(inherited) < _ZERO:
        raise RigError(f"bone '{bone.name}' inherits zero scale from '{bone.parent_name}': give that a scale other than 0")
    # A mirrored frame is a rotation times -1: of all ways to split it, this alone passes through every turn of the bone.
    if at_rest.to_3x3().determinant() < 0.0:
        inherited.negate()
    rest = _nearest_rotation(Matrix([columns[axis] / inherited[axis] for axis in range(3)]).transposed())
    if bone.parent >= 0:
        inherited = Vector(map(_snapped, inherited, parent.to_scale()))
    stretch = Vector(_snapped(value, 1.0, _NOISE) for value in map(operator.mul, inherited, scale))
    if bone.parent_slot < 0:
        location = bone.rest.to_3x3() if bone.local_location else Matrix.Identity(3)
    else:
        location = parent.to_3x3()
        if bone.local_location:
            location = location @ (bone.parent_rest.inverted() @ bone.rest).to_3x3()
    offset = at_rest.to_translation()
    shift = rest.to_matrix().transposed() @ location
    _verify(armature_object, bone, scale, parent, (offset, rest, stretch, shift))
    if stretch.y < 0.0:
        raise RigError(
            f"bone '{bone.name}' is mirrored, so that its tail lies behind its head: give it and its parents positive scale"
        )
    joint = Joint(
        bone.name,
        bone.parent,
        offset,
        rest,
        bone.length * stretch.y,
        inherit_rotation=bone.inherit_rotation,
        **bone.keywords,
    )
    return _Placed(joint, stretch.freeze(), shift)


def _nearest_rotation(matrix: Matrix) -> Quaternion:
    """The rotation nearest to an almost orthogonal 3x3 matrix (polar decomposition, Higham 1986, Newton's iteration).

    Of two rest matrices that are a little off, the parent's and the bone's own, it finds the turn between the rotations
    nearest to each, so these errors do not add up along a chain.
    """
    for _ in range(3):  # the error is squared each time, and starts below 1e-3 unless the bone is refused anyway
        opposite = matrix.inverted(None)
        if opposite is None:
            break
        matrix = (matrix + opposite.transposed()) * 0.5
    return matrix.to_quaternion().normalized()


def _snapped(value: float, wanted: float, tolerance: float = RIGID) -> float:
    """`value`, or a number of its sign and the size of `wanted` if it is that but for noise."""
    return math.copysign(wanted, value) if abs(abs(value) - abs(wanted)) <= tolerance * abs(wanted) else value


def _blender(armature_object: Any, bone: _Bone, basis: Matrix, parent: Matrix | None) -> Matrix:
    """Blender's own pose matrix of a bone with the channels `basis` under a parent with the pose matrix `parent`."""
    convert = armature_object.pose.bones[bone.slot].bone.convert_local_to_pose
    if parent is None:
        return convert(basis, bone.rest)
    return convert(basis, bone.rest, parent_matrix=parent, parent_matrix_local=bone.parent_rest)


def _verify(
    armature_object: Any,
    bone: _Bone,
    scale: Vector,
    parent: Matrix | None,
    constants: tuple[Vector, Quaternion, Vector, Matrix],
) -> None:
    """Hold the rigid joint against Blender's bone; raises RigError if no rigid joint moves like it."""
    offset, rest, stretch, shift = constants
    location = Vector() if bone.connected else Vector((0.31, -0.47, 0.23)) * bone.length
    for parent_turn, turn in _PROBES:
        # The parent of a chain's first bone is part of its constants.
        moves = bone.parent >= 0
        turned = parent_turn.to_matrix().to_4x4() @ parent if moves and parent is not None else parent
        seen = _blender(armature_object, bone, Matrix.LocRotScale(location, turn, scale), turned)
        head = offset + rest @ (shift @ location)
        rotation = rest @ turn
        if moves:
            head = parent_turn @ head
            rotation = parent_turn @ rotation if bone.inherit_rotation else rotation
        size = max(bone.length * abs(stretch.y), offset.length, head.length)
        axes = rotation.to_matrix()
        wrong = [(seen.col[axis].to_3d() - axes.col[axis] * stretch[axis]).length for axis in range(3)]
        if (seen.to_translation() - head).length > EXACT * size or any(
            error > RIGID * abs(stretch[axis]) for axis, error in enumerate(wrong)
        ):
            sizes = ", ".join(f"{value:.4g}" for value in parent.to_scale()) if parent is not None else ""
            raise RigError(
                f"bone '{bone.name}' inherits non-uniform scale ({sizes}) from '{bone.parent_name}', which would shear it "
                f"when it turns: make that scale uniform, or set Inherit Scale of '{bone.name}' to Average, Aligned or None"
            )
