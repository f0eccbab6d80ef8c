"""Projection of many rotations into joint limits at once, in double precision.

Arrays carry the batch last: rotations (4, n, B) are the unit quaternions (w, x, y, z) of n joints in B poses,
relative to rest, in the joints' own frames. All angles are radians.

`BatchLimits` sorts the limits of a skeleton into three kinds: a twist range with a cone (Hinge, SwingTwist),
a twist range with an ellipse, and an Euler box. Each kind has two steps. An inside test on every rotation may
suspect a rotation that is inside, but never passes one that is outside. The suspects are then gathered into
arrays (4, K), each with its own column of constants, and projected. A ReversedLimit is the limit in it, with
rotations mapped into that limit's frame and back.

The mathematics and the choice among equally near rotations are those of `projection`, for one rotation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..maths.batch import as_slice, joined_given, select_given
from .batch_cone_twist import cone_twist_constants, cone_twist_suspects, nearest_cone_twist
from .batch_ellipse_twist import ellipse_twist_constants, ellipse_twist_suspects, nearest_ellipse_twist
from .batch_euler_box import euler_box_constants, euler_box_suspects, nearest_euler_box
from .batch_parts import TINY, Array, Mask, Places, broadcast
from .projection import rotate_inverse
from .shapes import Ellipse, EulerBox, Hinge, Limit, ReversedLimit, SwingTwist

__all__ = [
    "BatchLimits",
    "cone_twist_constants",
    "ellipse_twist_constants",
    "euler_box_constants",
    "project_cone_twist",
    "project_ellipse_twist",
    "project_euler_box",
    "rotation_vectors_between",
]

# --- all limits of a skeleton


class BatchLimits:
    """Limits of n joints, for B poses at once."""

    def __init__(self, limits: Sequence[Limit | None]) -> None:
        """`limits`: one per joint; None leaves the joint free."""
        members: dict[tuple[str, bool], list[_Member]] = {}
        for place, limit in enumerate(limits):
            if limit is not None:
                inner, frame = _without_reversed(limit)
                name, constants = _constants(inner)
                members.setdefault((name, frame is None), []).append(_Member(place, constants, frame))
        self._groups = [_Group.of(_KINDS[name], found) for (name, _), found in members.items()]

    @classmethod
    def _of(cls, groups: list[_Group]) -> BatchLimits:
        found = cls(())
        found._groups = groups
        return found

    @classmethod
    def joined(cls, several: Sequence[BatchLimits], sizes: Sequence[int]) -> BatchLimits:
        """Those of several batches of poses, of these sizes, as one: limits of the same forms (`form`)."""
        groups = zip(*(each._groups for each in several), strict=True)
        return cls._of([_Group.joined(group, sizes) for group in groups])

    def at(self, some: Mask | Places) -> BatchLimits:
        """Those of some of the poses."""
        if all(group.constants.shape[-1] == 1 for group in self._groups):
            return self
        return self._of([group.at(some) for group in self._groups])

    def project(self, rotations: Array) -> tuple[Array, Mask | None]:
        """Nearest allowed rotations (4, n, B), and which (n, B) were outside by more than `ROUNDING`.

        Each is on the side of the rotation it replaces (dot product >= 0). Rotations inside are copied
        unchanged. Where all are inside, returns `rotations` itself and None. `limits.clamp` says what
        nearest means, and which of equally near rotations is chosen. Where a whole curve is equally near,
        as at gimbal lock, any rotation of it is returned.
        """
        count = rotations.shape[2]
        projected, outside = rotations, None
        for group in self._groups:
            joints, poses, nearest = group.outside(rotations)
            if len(poses) == 0:
                continue
            if outside is None:
                projected = np.array(rotations, dtype=np.float64, order="C")
                outside = np.zeros(rotations.shape[1:], dtype=np.bool_)
            places = joints * count + poses
            projected.reshape(4, -1)[:, places] = nearest
            outside.reshape(-1)[places] = True
        return projected, outside

    def violations(self, rotations: Array) -> Array:
        """Angles (n, B) in radians by which rotations are outside their limits; 0 up to `ROUNDING`."""
        angles = np.zeros(rotations.shape[1:])
        for group in self._groups:
            joints, poses, nearest = group.outside(rotations)
            vectors = rotation_vectors_between(nearest, rotations[:, joints, poses])
            angles[joints, poses] = np.sqrt((vectors * vectors).sum(0))
        return angles

    def contains(self, rotations: Array, tolerance: float = 0.0) -> Mask:
        """Which rotations (n, B) are outside by at most `tolerance` radians; up to `ROUNDING` is inside."""
        inside: Mask = self.violations(rotations) <= tolerance
        return inside


def project_cone_twist(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    """Nearest rotations (4, ...) with a twist in a range and a swing up to a radius; which were outside.

    Args:
        constants: (11, ...) from `cone_twist_constants`; broadcast to the rotations.
        rotations: (4, ...) unit quaternions.
    """
    return _project(_CONE_TWIST, constants, rotations)


def project_ellipse_twist(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    """Rotations (4, ...) with the nearest twist and the nearest swing in an ellipse; which were outside.

    Args:
        constants: (25, ...) from `ellipse_twist_constants`; broadcast to the rotations.
        rotations: (4, ...) unit quaternions.
    """
    return _project(_ELLIPSE_TWIST, constants, rotations)


def project_euler_box(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    """Nearest rotations (4, ...) whose Euler angles are inside their ranges; which were outside.

    Args:
        constants: (40, ...) from `euler_box_constants`; broadcast to the rotations.
        rotations: (4, ...) unit quaternions.
    """
    return _project(_EULER_BOX, constants, rotations)


def rotation_vectors_between(inside: Array, outside: Array) -> Array:
    """Rotation vectors (3, ...) in radians, in the frames of `inside`, that lead from `inside` to `outside`.

    The outward normal of a projected rotation, times the angle by which it was outside. Alike for q and -q;
    0 to pi long.

    Args:
        inside, outside: (4, ...) unit quaternions.
    """
    aw, ax, ay, az = inside
    bw, bx, by, bz = outside
    vectors = np.empty((3, *np.broadcast_shapes(aw.shape, bw.shape)))
    vectors[0] = aw * bx - bw * ax - (ay * bz - az * by)
    vectors[1] = aw * by - bw * ay - (az * bx - ax * bz)
    vectors[2] = aw * bz - bw * az - (ax * by - ay * bx)
    cosines = aw * bw + ax * bx + ay * by + az * bz
    x, y, z = vectors
    sines = np.sqrt(x * x + y * y + z * z)
    angles = 2.0 * np.arctan2(sines, np.abs(cosines))
    vectors *= np.copysign(np.where(sines > TINY, angles / np.maximum(sines, TINY), 2.0), cosines)
    return vectors


# --- groups of limits of one kind


class _Kind(NamedTuple):
    """The two steps of a projection.

    Attributes:
        suspects: (constants (C, ...), rotations (4, ...)) -> mask: False only where inside.
        nearest: (constants (C, K), rotations (4, K) of suspects) -> nearest (4, K), and which are outside.
    """

    suspects: Callable[[Array, Array], Mask]
    nearest: Callable[[Array, Array], tuple[Array, Mask]]


class _Member(NamedTuple):
    """One joint's limit: the joint's place, its constants (C,), and the frame of a Reversed limit (3, 3)."""

    place: int
    constants: Array
    frame: Array | None


@dataclass(frozen=True)
class _Group:
    """Limits of one kind, all or none of them Reversed.

    Attributes:
        kind: its two steps.
        places: (n,) of the joints. joints: the same, as a slice where they follow each other: a view need not
            be copied.
        constants: (C, n, B or 1).
        frames: (3, 3, n, B or 1) those of Reversed limits; None where none is.
    """

    kind: _Kind
    places: Places
    joints: slice | Places
    constants: Array
    frames: Array | None

    @classmethod
    def of(cls, kind: _Kind, members: Sequence[_Member]) -> _Group:
        """The same for every pose."""
        places = np.array([member.place for member in members], dtype=np.intp)
        constants = np.stack([member.constants for member in members], axis=1)[:, :, None]
        frames = [member.frame for member in members if member.frame is not None]
        stacked = np.stack(frames, axis=2)[:, :, :, None] if frames else None
        return cls(kind, places, as_slice(places), constants, stacked)

    @classmethod
    def joined(cls, groups: Sequence[_Group], sizes: Sequence[int]) -> _Group:
        """Those of several batches of poses, of these sizes, as one."""
        first = groups[0]
        constants = joined_given([group.constants for group in groups], sizes)
        frames = [group.frames for group in groups if group.frames is not None]
        return replace(first, constants=constants, frames=joined_given(frames, sizes) if frames else None)

    def at(self, some: Mask | Places) -> _Group:
        """Those of some of the poses."""
        frames = None if self.frames is None else select_given(self.frames, some)
        return replace(self, constants=select_given(self.constants, some), frames=frames)

    def outside(self, rotations: Array) -> tuple[Places, Places, Array]:
        """Joints (K,) and poses (K,) of rotations outside, and the nearest allowed rotations (4, K)."""
        own = rotations[:, self.joints]
        if self.frames is not None:
            own = _mapped(self.frames, own)
        flat, nearest = _outside(self.kind, self.constants, own)
        members, poses = np.divmod(flat, max(own.shape[2], 1))
        if self.frames is not None and len(flat):
            back = self.frames.swapaxes(0, 1)
            nearest = _mapped(back[:, :, members, poses if back.shape[-1] > 1 else 0], nearest)
        return self.places[members], poses, nearest


def form(limit: Limit) -> Hashable:
    """Limits with equal ones differ in numbers alone, which `BatchLimits` may hold for each pose."""
    inner, frame = _without_reversed(limit)
    return _constants(inner)[0], frame is None


def _constants(limit: Hinge | SwingTwist | EulerBox) -> tuple[str, Array]:
    """The name of a limit's kind, and its constants."""
    if isinstance(limit, EulerBox):
        return "euler box", euler_box_constants(limit)
    if isinstance(limit, SwingTwist) and isinstance(limit.swing, Ellipse):
        return "ellipse twist", ellipse_twist_constants(limit)
    return "cone twist", cone_twist_constants(limit)


def _without_reversed(limit: Limit) -> tuple[Hinge | SwingTwist | EulerBox, Array | None]:
    """The limit inside any number of `Reversed`, and the matrix (3, 3) that maps vector parts into its frame.

    The matrix is orthogonal. None where `limit` is not Reversed.
    """
    frame: Array | None = None
    while isinstance(limit, ReversedLimit):
        columns = [rotate_inverse(limit.frame, -x, -y, -z) for x, y, z in np.eye(3).tolist()]
        step = np.array(columns).T
        frame = step if frame is None else step @ frame
        limit = limit.limit
    return limit, frame


def _mapped(frames: Array, rotations: Array) -> Array:
    """Rotations (4, ...) with their vector parts multiplied by matrices (3, 3, ...)."""
    w, x, y, z = rotations
    mapped = np.empty(rotations.shape)
    mapped[0] = w
    for row, out in zip(frames, mapped[1:], strict=True):
        np.multiply(row[0], x, out=out)
        out += row[1] * y
        out += row[2] * z
    return mapped


def _outside(kind: _Kind, constants: Array, rotations: Array) -> tuple[Places, Array]:
    """Flat indices (K,) of the rotations outside, and the nearest allowed rotations (4, K)."""
    suspects = kind.suspects(constants, rotations)
    flat = np.flatnonzero(suspects)
    if len(flat) == 0:
        return flat, np.empty((4, 0))
    columns = constants.reshape(len(constants), -1)
    own = np.arange(columns.shape[1]).reshape(constants.shape[1:])
    own = np.broadcast_to(own, suspects.shape).reshape(-1)[flat]
    quaternions = broadcast(rotations, suspects.shape).reshape(4, -1)
    nearest, outside = kind.nearest(columns.take(own, axis=1), quaternions.take(flat, axis=1))
    if outside.all():
        return flat, nearest
    return flat[outside], nearest[:, outside]


def _project(kind: _Kind, constants: Array, rotations: Array) -> tuple[Array, Mask]:
    shape = np.broadcast_shapes(constants.shape[1:], rotations.shape[1:])
    projected = broadcast(rotations, shape).copy()
    outside = np.zeros(shape, dtype=np.bool_)
    flat, nearest = _outside(kind, constants, rotations)
    projected.reshape(4, -1)[:, flat] = nearest
    outside.reshape(-1)[flat] = True
    return projected, outside


_CONE_TWIST = _Kind(cone_twist_suspects, nearest_cone_twist)
_ELLIPSE_TWIST = _Kind(ellipse_twist_suspects, nearest_ellipse_twist)
_EULER_BOX = _Kind(euler_box_suspects, nearest_euler_box)
_KINDS = {"cone twist": _CONE_TWIST, "ellipse twist": _ELLIPSE_TWIST, "euler box": _EULER_BOX}
