"""Bones as joints, and joints back into bones.

`layout` finds what stays the same while an armature is animated, `RigLayout.read` what changes from frame to
frame, and `apply` writes rotations and slides into the bones' own channels. All is in armature space; the
armature object's own transform plays no part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mathutils import Matrix, Vector
from numpy.typing import NDArray

from ...errors import InvalidInput, RigError
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import coupled_translations
from ...skeleton.pose import Pose, check_pose
from . import coupled_offsets, slides
from .bone_space import ZERO, BoneRest
from .placed_bones import PlacedBones
from .pose_values import Seen, Watch, foreach, watch
from .rotation_modes import (
    CHANNELS,
    EULER_MODES,
    channel_values,
    held_angles,
    read_rotations,
    require_finite,
    rotation_channel,
)

NO_SHIFT = Vector((0.0, 0.0, 0.0)).freeze()


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
        free_parts: {joint: (3, 3)} of joints with coupled offsets, see `coupled_offsets.free_part`.
        channels: what the bones' channels hold, as bytes.
    """

    skeleton: Skeleton
    pose: Pose
    bones: tuple[str, ...]
    shifts: NDArray[np.float64] = field(repr=False, compare=False)
    free_parts: Mapping[int, NDArray[np.float64]] = field(repr=False, compare=False)
    channels: bytes = field(repr=False, compare=False)

    def posed(self, pose: Pose) -> RigReading:
        """The same bones in another pose."""
        return RigReading(self.skeleton, pose, self.bones, self.shifts, self.free_parts, self.channels)

    def elsewhere(self, skeleton: Skeleton) -> RigReading:
        """The same bones, whose parents have moved."""
        return RigReading(skeleton, self.pose, self.bones, self.shifts, self.free_parts, self.channels)

    def translation(self, joint: int, location: Sequence[float]) -> Vector:
        """The translation of a joint in the pose, for what its bone's location channel holds."""
        values = np.array(location)
        if joint in self.free_parts:
            values = self.free_parts[joint] @ values
        return Vector(slides.translations_of(self.shifts[joint], values)).freeze()


@dataclass(frozen=True)
class RigLayout:
    """What stays the same from frame to frame, so that reading a frame costs little.

    Make it anew after edits to the armature (bones, rest pose, flags, locks, settings). Changes of scale, of
    the rotation mode and of what moves the chains' parents are seen by `read` itself.
    """

    chains: tuple[tuple[str, int], ...]
    joint_settings: Mapping[str, Mapping[str, Any]]
    names: tuple[str, ...]
    slots: NDArray[np.intp]  # index of each bone in pose.bones
    modes: tuple[str, ...]
    mode_codes: bytes = field(repr=False)  # of all pose bones
    connected: NDArray[np.intp] = field(repr=False)  # bones whose location Blender ignores
    placed: PlacedBones = field(repr=False)  # as they were when the layout was made
    carried: Mapping[str, float]
    free_parts: Mapping[int, NDArray[np.float64]] = field(repr=False)  # of joints with coupled offsets

    @property
    def skeleton(self) -> Skeleton:
        """As it was when the layout was made."""
        return self.placed.skeleton

    def watch(self) -> Watch:
        """A function that looks at all that `read` needs: where nothing has changed, nothing need be read."""
        names = {"rotation_mode": 1, **dict(CHANNELS[mode] for mode in self.modes), "location": 3, "scale": 3}
        if any(bone.parent < 0 <= bone.parent_slot for bone in self.placed.bones):
            names["matrix"] = 16
        return watch(names, self.slots)

    def read(
        self, armature_object: Any, seen: Seen | None = None, before: RigReading | None = None
    ) -> RigReading:
        """The present pose of the armature, original or evaluated.

        As long as neither scale nor the chains' parents change, every reading holds the same skeleton object.

        Args:
            armature_object: the one that is planned for.
            seen: what the function of `watch` has just seen of it, if anyone has looked.
            before: an earlier reading, of which is kept what has not changed.

        Raises:
            RigError: as `layout`; also where a channel holds something that is not a finite number.
        """
        pose_bones = armature_object.pose.bones
        seen = self.watch()(pose_bones) if seen is None else seen
        now = seen.values
        if now["rotation_mode"].tobytes() != self.mode_codes:  # or bones came or went
            layout_now = layout(armature_object, self.chains, self.joint_settings, self.carried)
            return layout_now.read(armature_object)
        same = before is not None and before.channels == seen.channels
        if before is not None and same:
            rotations = list(before.pose.rotations)
        else:
            rotations = read_rotations(pose_bones, self.slots, self.modes, now)
        placed = self.placed.now(pose_bones, now["scale"])
        if before is not None and same and placed.shifts is before.shifts:
            return before.elsewhere(placed.skeleton)
        locations = now["location"][self.slots].astype(np.float64)
        locations[self.connected] = 0.0
        require_finite(pose_bones, self.slots, locations, "location")
        for j, free_part in self.free_parts.items():
            locations[j] = free_part @ locations[j]
        shifts = slides.translations_of(placed.shifts, locations).tolist()
        translations = [Vector(shift).freeze() if any(shift) else NO_SHIFT for shift in shifts]
        # Finite and unit by now, so the pose need not check each number again.
        pose = Pose.trusted(tuple(rotations), tuple(translations))
        return RigReading(placed.skeleton, pose, self.names, placed.shifts, self.free_parts, seen.channels)


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
    return RigLayout(
        chains=tuple((tip, length) for tip, length in chains),
        joint_settings=joint_settings,
        names=tuple(pose_bone.name for pose_bone in ordered),
        slots=np.array([bone.slot for bone in bones], np.intp),
        modes=tuple(pose_bone.rotation_mode for pose_bone in ordered),
        mode_codes=foreach(pose_bones, "rotation_mode", 1).tobytes(),
        connected=np.flatnonzero([bone.connected for bone in bones]),
        placed=PlacedBones.of(pose_bones, foreach(pose_bones, "scale", 3), bones, locked),
        carried=masses,
        free_parts=coupled_offsets.free_parts([bone.keywords for bone in bones]),
    )


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
