"""Entries of a pose library: named rotations of bones, and their JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from mathutils import Quaternion

from ..errors import InvalidInput
from ..json_text import decoded, read, shown
from ..maths.validation import frozen_rotation
from .joints import Skeleton
from .pose import Pose, check_pose

FORMAT = "ccd_rig.poses"
VERSION = 1


def _rotation(value: object, place: str) -> Quaternion:
    return frozen_rotation(decoded(tuple[float, float, float, float], value, place), place)


@dataclass(frozen=True)
class PoseEntry:
    """A named pose of a subset of bones.

    Attributes:
        name: in the library.
        rotations: bone name -> unit quaternion (w, x, y, z) relative to rest; at least one.

    Raises:
        InvalidInput: names the entry, and the bone whose rotation is not one.
    """

    name: str
    rotations: Mapping[str, Annotated[Quaternion, _rotation]]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidInput("a pose entry needs a name that is not empty")
        if not isinstance(self.rotations, Mapping) or not self.rotations:
            raise InvalidInput(f"pose entry '{shown(self.name)}': give the rotation of at least one bone")
        rotations = {}
        for bone, rotation in self.rotations.items():
            if not isinstance(bone, str) or not bone:
                what = f"pose entry '{shown(self.name)}': a bone's name"
                raise InvalidInput(f"{what} must be text that is not empty, not {bone!r}")
            what = f"pose entry '{shown(self.name)}': rotation of bone '{shown(bone)}'"
            rotations[bone] = frozen_rotation(rotation, what)
        object.__setattr__(self, "rotations", MappingProxyType(rotations))


def apply_entry(entry: PoseEntry, skeleton: Skeleton, pose: Pose) -> Pose:
    """`pose` with the rotations of `entry`; joints without an entry keep theirs.

    Limits are not applied.

    Raises:
        InvalidInput: the skeleton has none of the entry's bones.
    """
    check_pose(skeleton, pose)
    check_entry(entry, skeleton)
    known = {
        i: entry.rotations[joint.name]
        for i, joint in enumerate(skeleton.joints)
        if joint.name in entry.rotations
    }
    return pose.with_rotations(known)


def check_entry(entry: PoseEntry, skeleton: Skeleton) -> None:
    """Raise InvalidInput unless `entry` is a PoseEntry and has a joint of `skeleton`."""
    if not isinstance(entry, PoseEntry):
        raise InvalidInput(f"a pose library holds PoseEntry, not {entry!r}")
    if not any(joint.name in entry.rotations for joint in skeleton.joints):
        joints = ", ".join(joint.name for joint in skeleton.joints) or "none"
        raise InvalidInput(
            f"pose entry '{shown(entry.name)}' is for other bones: the skeleton has none of "
            f"{', '.join(map(shown, entry.rotations))}; its joints are: {joints}"
        )


def to_json(entries: Iterable[PoseEntry]) -> str:
    """A library as JSON: {"format", "version", "poses": [{"name", "rotations": {bone: [w, x, y, z]}}]}."""
    poses = [
        {"name": entry.name, "rotations": {bone: list(turn[:]) for bone, turn in entry.rotations.items()}}
        for entry in entries
    ]
    return json.dumps({"format": FORMAT, "version": VERSION, "poses": poses}, indent=1, allow_nan=False)


def from_json(text: str) -> tuple[PoseEntry, ...]:
    """Read a library that `to_json` wrote, to the bit.

    Raises:
        InvalidInput: names the field that is missing or wrong.
    """
    return read(text, _Library, "the pose library", (FORMAT, VERSION)).poses


@dataclass(frozen=True)
class _Library:
    poses: tuple[PoseEntry, ...]
