"""A pose: rotations and translations of all joints relative to rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from mathutils import Quaternion, Vector

from ..errors import InvalidInput
from ..maths.batch import Array
from ..maths.validation import frozen_rotation, frozen_vector, listed, shown
from .joints import Skeleton


@dataclass(frozen=True, init=False)
class Pose:
    """Rotations and translations relative to rest, one per joint, as Blender's pose bone channels.

    Attributes:
        rotations: unit quaternions (w, x, y, z) in each joint's own rest frame.
        translations: shifts of the head in the joint's own rest frame.
    """

    # A pose of arrays makes both at the first access.
    rotations: tuple[Quaternion, ...] = cast(Any, cached_property(lambda pose: _quaternions(pose.arrays[0])))
    translations: tuple[Vector, ...] = cast(Any, cached_property(lambda pose: _vectors(pose.arrays[1])))

    def __init__(
        self,
        rotations: Iterable[Quaternion | Sequence[float]],
        translations: Iterable[Vector | Sequence[float]],
    ) -> None:
        rotations = listed("Pose.rotations", rotations, "quaternions")
        translations = listed("Pose.translations", translations, "vectors")
        if len(rotations) != len(translations):
            raise InvalidInput(
                f"a pose needs as many translations as rotations, not {len(translations)} "
                f"for {len(rotations)}"
            )
        turns = tuple(frozen_rotation(q, f"rotation {i} of the pose") for i, q in enumerate(rotations))
        object.__setattr__(self, "rotations", turns)
        shifts = tuple(frozen_vector(v, f"translation {i} of the pose") for i, v in enumerate(translations))
        object.__setattr__(self, "translations", shifts)

    @cached_property
    def arrays(self) -> tuple[Array, Array]:
        """(1, J, 4) rotations and (1, J, 3) translations, read-only."""
        rotations = np.array([[q[:] for q in self.rotations]], np.float64).reshape(1, -1, 4)
        translations = np.array([[t[:] for t in self.translations]], np.float64).reshape(1, -1, 3)
        return _read_only(rotations, translations)

    @classmethod
    def rest(cls, skeleton: Skeleton) -> Pose:
        """The pose without rotation and translation."""
        count = len(skeleton.joints)
        return cls.trusted((Quaternion().freeze(),) * count, (Vector().freeze(),) * count)

    @classmethod
    def trusted(cls, rotations: tuple[Quaternion, ...], translations: tuple[Vector, ...]) -> Pose:
        """Make a pose of frozen, finite values, rotations of length 1, without checks."""
        pose = object.__new__(cls)
        object.__setattr__(pose, "rotations", rotations)
        object.__setattr__(pose, "translations", translations)
        return pose

    @classmethod
    def of_arrays(cls, rotations: Array, translations: Array) -> Pose:
        """Make a pose of (J, 4) and (J, 3) finite numbers, rotations of length 1, without checks.

        They are rounded to single precision, as mathutils has it.
        """
        return cls.of_rounded(
            *(each.astype(np.float32).astype(np.float64) for each in (rotations, translations))
        )

    @classmethod
    def of_rounded(cls, rotations: Array, translations: Array) -> Pose:
        """Like `of_arrays`, of numbers in single precision, which become read-only."""
        pose = object.__new__(cls)
        pose.__dict__["arrays"] = _read_only(rotations[None], translations[None])
        return pose

    def with_rotations(self, rotations: Mapping[int, Quaternion]) -> Pose:
        """The same pose with rotations replaced: {joint index: rotation relative to rest}."""
        return Pose(
            tuple(rotations.get(i, rotation) for i, rotation in enumerate(self.rotations)), self.translations
        )


def _quaternions(rotations: Array) -> tuple[Quaternion, ...]:
    return tuple([Quaternion(q).freeze() for q in rotations[0].tolist()])


def _vectors(translations: Array) -> tuple[Vector, ...]:
    return tuple([Vector(t).freeze() for t in translations[0].tolist()])


def _read_only(rotations: Array, translations: Array) -> tuple[Array, Array]:
    for values in (rotations, translations):
        values.setflags(write=False)
    return rotations, translations


def check_pose(skeleton: Skeleton, pose: Pose) -> None:
    """Raise InvalidInput unless `pose` is a Pose with one entry per joint of `skeleton`, a Skeleton."""
    if not isinstance(skeleton, Skeleton):
        raise InvalidInput(f"the skeleton must be a Skeleton, not {shown(skeleton)}")
    if not isinstance(pose, Pose):
        raise InvalidInput(f"the pose must be a Pose, not {shown(pose)}")
    count = pose.arrays[0].shape[1]
    if count != len(skeleton.joints):
        raise InvalidInput(f"the pose is for {count} joints, but the skeleton has {len(skeleton.joints)}")
