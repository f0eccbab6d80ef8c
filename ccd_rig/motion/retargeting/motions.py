"""Figures in the world: the source's motion, and the target with its placement.

World points are in metres with Z up, rotations unit quaternions (w, x, y, z). Arrays have frames first and
components last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from ...errors import InvalidInput
from ...maths import batch
from ...maths.batch import Array
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import forward_kinematics_of_frames


@dataclass(frozen=True, eq=False)
class SourceMotion:
    """F frames of J joints in the world.

    Attributes:
        names: of the joints.
        times: (F,) seconds, increasing.
        heads: (F, J, 3) world.
        rotations: (F, J, 4) world.
        reference_heads: (J, 3) of the reference pose, which is aligned with the target's.
        reference_rotations: (J, 4) of the reference pose.
        stands: whether the reference pose stands upright on flat feet. If not, as for a frame of the motion,
            contacts tell the flat orientation of a foot.
    """

    names: tuple[str, ...]
    times: Array
    heads: Array
    rotations: Array
    reference_heads: Array
    reference_rotations: Array
    stands: bool = True

    def __post_init__(self) -> None:
        frames, joints = len(self.times), len(self.names)
        shapes = {
            "times": (frames,),
            "heads": (frames, joints, 3),
            "rotations": (frames, joints, 4),
            "reference_heads": (joints, 3),
            "reference_rotations": (joints, 4),
        }
        if frames == 0:
            raise InvalidInput("the source has no frame: give at least one")
        for name, shape in shapes.items():
            values = np.asarray(getattr(self, name), np.float64)
            if values.shape != shape:
                raise InvalidInput(f"{name} of the source must be {shape}, not {values.shape}")
            self._require_finite(name, values)
            if name.endswith("rotations"):
                values = batch.unit(values, -1)
            object.__setattr__(self, name, values)
        if (np.diff(self.times) <= 0.0).any():
            raise InvalidInput("times of the source must increase")

    def _require_finite(self, name: str, values: Array) -> None:
        good = np.isfinite(values)
        if good.all():
            return
        place = np.argwhere(~good)[0].tolist()
        joint = self.names[place[-2]] if values.ndim > 1 else ""
        at = f" at frame {place[0]}" if values.ndim == 3 else ""
        raise InvalidInput(f"joint '{joint}': {name} of the source{at} is not a number: repair its keys")

    def index(self, name: str) -> int:
        """Index of a joint."""
        return self.names.index(name)


@dataclass(frozen=True, eq=False)
class TargetFigure:
    """A skeleton, its reference pose, and the transform from model space to the world.

    Attributes:
        skeleton: the joints.
        rotations: (n, 4) of the reference pose, relative to rest.
        translations: (n, 3).
        turn: (4,) rotation from model space to the world.
        shift: (3,) world position of the model's origin.
        scale: metres per unit of the model.
        ground: height of the ground on which the reference pose stands, world metres.
    """

    skeleton: Skeleton
    rotations: Array
    translations: Array
    turn: Array = field(default_factory=lambda: np.array((1.0, 0.0, 0.0, 0.0)))
    shift: Array = field(default_factory=lambda: np.zeros(3))
    scale: float = 1.0
    ground: float = 0.0

    @classmethod
    def at_rest(cls, skeleton: Skeleton) -> TargetFigure:
        """A figure with its rest as reference pose, and model space as the world."""
        count = len(skeleton)
        return cls(skeleton, np.tile((1.0, 0.0, 0.0, 0.0), (count, 1)), np.zeros((count, 3)))

    def index(self, name: str) -> int:
        """Index of a joint."""
        return self.skeleton.index(name)

    def world(self, rotations: Array, translations: Array) -> tuple[Array, Array]:
        """(F, n, 3) heads and (F, n, 4) rotations in the world, from values relative to rest."""
        offsets = np.array([joint.offset[:] for joint in self.skeleton.joints])[None]
        heads, turned = forward_kinematics_of_frames(
            self.skeleton, offsets, self.rests[None], rotations, translations
        )
        return self.points_to_world(heads), batch.multiply(_like(self.turn, turned), turned, -1)

    @cached_property
    def rests(self) -> Array:
        """(n, 4) rest rotations relative to the parent."""
        return batch.unit(np.array([joint.rest_rotation[:] for joint in self.skeleton.joints]), -1)

    @cached_property
    def reference(self) -> tuple[Array, Array]:
        """(n, 3) heads and (n, 4) rotations of the reference pose, in the world."""
        heads, rotations = self.world(self.rotations[None], self.translations[None])
        return heads[0], rotations[0]

    def points_to_world(self, points: Array) -> Array:
        """(..., 3) points of model space in the world."""
        return self.shift + self.scale * batch.rotate(_like(self.turn, points), points, -1)

    def points_to_model(self, points: Array) -> Array:
        """(..., 3) points of the world in model space."""
        return self.vectors_to_model(points - self.shift)

    def vectors_to_model(self, vectors: Array) -> Array:
        """(..., 3) vectors of the world in model space."""
        return batch.rotate(_like(inverse(self.turn), vectors), vectors, -1) / self.scale

    def rotations_to_model(self, rotations: Array) -> Array:
        """(..., 4) rotations of the world in model space."""
        return batch.multiply(_like(inverse(self.turn), rotations), rotations, -1)


def inverse(rotations: Array) -> Array:
    """Inverses of unit quaternions (..., 4)."""
    return np.asarray(rotations * np.array((1.0, -1.0, -1.0, -1.0)))


def turned(rotations: Array, vectors: Array) -> Array:
    """Vectors (..., 3) rotated by unit quaternions (..., 4), which broadcast."""
    if rotations.shape[:-1] == vectors.shape[:-1]:
        return batch.rotate(rotations, vectors, -1)
    shape = np.broadcast_shapes(rotations.shape[:-1], vectors.shape[:-1])
    return batch.rotate(np.broadcast_to(rotations, (*shape, 4)), np.broadcast_to(vectors, (*shape, 3)), -1)


def product(a: Array, b: Array) -> Array:
    """Products of unit quaternions (..., 4), which broadcast: b first, then a."""
    if a.shape == b.shape:
        return batch.multiply(a, b, -1)
    shape = (*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), 4)
    return batch.multiply(np.broadcast_to(a, shape), np.broadcast_to(b, shape), -1)


def _like(rotation: Array, values: Array) -> Array:
    """Broadcast a rotation (4,) to values (..., k)."""
    return np.broadcast_to(rotation, (*values.shape[:-1], 4))


def path_length(points: Sequence[Array]) -> float:
    """The length of the polyline through points (3,)."""
    return float(sum(np.linalg.norm(b - a) for a, b in pairwise(points)))
