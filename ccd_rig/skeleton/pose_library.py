"""Entries of a pose library: named rotations of bones, and their JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mathutils import Quaternion

from ..errors import InvalidInput
from ..json_text import NotJson, parse, shown
from ..maths.validation import frozen_rotation
from .joints import Skeleton
from .pose import Pose, check_pose

FORMAT = "ccd_rig.poses"
VERSION = 1


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
    rotations: Mapping[str, Quaternion]

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


def entry_from_pose(name: str, skeleton: Skeleton, pose: Pose) -> PoseEntry:
    """The rotations of all joints of `pose` as an entry."""
    check_pose(skeleton, pose)
    return PoseEntry(name, {joint.name: q for joint, q in zip(skeleton.joints, pose.rotations, strict=True)})


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
    try:
        data = parse(text)
    except NotJson as error:
        raise InvalidInput(f"the pose library is not JSON: {error}") from None
    if _field(data, "format", str, "the pose library") != FORMAT:
        value = shown(json.dumps(data["format"]))
        raise InvalidInput(f"the pose library: 'format' must be \"{FORMAT}\", not {value}")
    version = _field(data, "version", int, "the pose library")
    if version != VERSION:
        raise InvalidInput(
            f"the pose library: 'version' is {version}, but this CCD Rig reads {VERSION}; "
            "save it with the same version"
        )
    entries = []
    for at, item in enumerate(_field(data, "poses", list, "the pose library")):
        where = f"poses[{at}]"
        name = _field(item, "name", str, where)
        rotations = {}
        for bone, numbers in _field(item, "rotations", dict, where).items():
            part = f"{where}.rotations['{shown(bone)}']"
            is_list = isinstance(numbers, list) and len(numbers) == 4
            if not is_list or not all(type(n) in (int, float) for n in numbers):
                raise InvalidInput(f"{part} must be a list of four numbers (w, x, y, z)")
            rotations[bone] = frozen_rotation(numbers, part)
        entries.append(PoseEntry(name, rotations))
    return tuple(entries)


def _field(data: object, name: str, kind: type, where: str) -> Any:
    if not isinstance(data, dict):
        raise InvalidInput(f"{where} must be a JSON object with the field '{name}'")
    if name not in data:
        raise InvalidInput(f"{where}: the field '{name}' is missing")
    if not isinstance(data[name], kind) or isinstance(data[name], bool):
        words = {str: "text", int: "a whole number", list: "a list", dict: "an object"}
        raise InvalidInput(f"{where}: '{name}' must be {words[kind]}, not {shown(json.dumps(data[name]))}")
    return data[name]
