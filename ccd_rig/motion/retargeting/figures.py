"""Figures in the world: the source's motion, the target with its placement, and the pairs of their joints.

World points are in metres with Z up, rotations unit quaternions (w, x, y, z). Arrays have frames first and
components last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from ...errors import InvalidInput
from ...maths import batch
from ...maths.batch import Array, Mask
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import forward_kinematics_of_frames

STRAIGHT = 0.1
"""Distance of a knee or elbow from its limb's line, in lengths of the limb, from which its side counts fully.

The side of a straight limb is noise.
"""
STEADY = 0.5
"""Part of all bends of a limb that must be to one side for a usual side."""
MOST_LEGS = 4
"""Most legs of a figure whose legs lead down from the body rather than aside."""


@dataclass(frozen=True)
class Limb:
    """An arm or a leg, by names of the target's joints."""

    name: str  # in reports, such as "left leg"
    upper: str  # joint at the hip or the shoulder
    middle: str  # the knee or the elbow
    end: str  # the ankle or the wrist
    tip: str = ""  # the ball of the foot; empty where there is none, and for arms
    girdle: str = ""  # pair of legs, such as "front"; empty for the legs at the hips
    is_right: bool = False  # whether it is on the right, for weights that differ by side
    bends: tuple[str, ...] = ()  # joints between these that bend too, as of a spider's leg
    toes: tuple[str, ...] = ()  # bones of the toes beyond the tip, from it on; they need not be joints

    @property
    def joints(self) -> tuple[str, ...]:
        """Names from the body on."""
        return tuple(name for name in (self.upper, self.middle, self.end, self.tip) if name)


@dataclass(frozen=True)
class FigureMap:
    """The joints of a target that follow joints of a source."""

    sources: Mapping[str, str]  # by target joint, the source joint that it follows; all that are named below
    hips: str  # target joint that carries the figure; it gets the motion through the world
    # Without legs in common, as of fish and spiders, joints turn as the source's, the hips carry the figure,
    # and no foot is locked to the ground.
    legs: tuple[Limb, ...]
    arms: tuple[Limb, ...] = ()  # may be empty
    trunk: tuple[str, ...] = ()  # target joints of the spine, from the hips up, without the neck
    head: str = ""  # target joint, empty for none
    # Target joint that carries the hind legs alone, where `hips` carries it and the trunk; or empty.
    pelvis: str = ""

    @property
    def body(self) -> tuple[str, ...]:
        """Joints of the hips and the trunk."""
        return tuple(name for name in (self.hips, self.pelvis, *self.trunk) if name)

    @property
    def limbs(self) -> tuple[Limb, ...]:
        """Legs and arms."""
        return (*self.legs, *self.arms)

    def require(self, target: Skeleton) -> None:
        """Raise InvalidInput that names the first limb that is no chain below the hips."""
        for limb in self.limbs:
            chain = [target.joints[i].name for i in target.chain(limb.joints[-1])]
            places = [chain.index(name) if name in chain else -1 for name in limb.joints]
            if places != sorted(places) or -1 in places:
                raise InvalidInput(f"{limb.name}: {', '.join(limb.joints)} do not hang on each other")
            if self.hips not in chain and limb in self.legs:
                raise InvalidInput(f"{limb.name}: '{limb.upper}' does not hang on the hips '{self.hips}'")

    def girdle(self, leg: Limb) -> tuple[Limb, ...]:
        """The legs of the same girdle as a leg."""
        return tuple(other for other in self.legs if other.girdle == leg.girdle)

    @property
    def hind_legs(self) -> tuple[Limb, ...]:
        """The legs at the hips; all legs, where none is."""
        return tuple(leg for leg in self.legs if not leg.girdle) or self.legs

    @property
    def shoulders(self) -> tuple[str, ...]:
        """Joints at the start of arms, or of front legs, or the head, or the highest joint of the trunk."""
        limbs = self.arms or tuple(leg for leg in self.legs if leg not in self.hind_legs)
        return tuple(limb.upper for limb in limbs) or (self.head or (self.hips, *self.trunk)[-1],)

    def middles(self, heads: Mapping[str, Array]) -> tuple[Array, Array, Array]:
        """Means of the ankles, of the hip joints and of the points above, of heads (3,) by target joint.

        Above are the shoulders. For a body on two pairs of legs it is the ankles' mean mirrored at the hip
        joints. A figure without legs, or on more than four, which lead aside, has its hips at all three.
        """
        if not 0 < len(self.legs) <= MOST_LEGS:
            return (heads[self.hips],) * 3
        groups = ([leg.end for leg in self.legs], [leg.upper for leg in self.legs], self.shoulders)
        feet, hips, top = (np.mean([heads[name] for name in names], axis=0) for names in groups)
        return feet, hips, top if len(self.hind_legs) == len(self.legs) else 2.0 * hips - feet

    def nearest_mapped_below(self, target: Skeleton, name: str) -> tuple[str, ...]:
        """The mapped joints below a joint without a mapped joint between."""
        below = []
        for each in self.sources:
            above = [target.joints[i].name for i in target.chain(each)[:-1]]
            mapped = [other for other in above if other in self.sources]
            if mapped and mapped[-1] == name:
                below.append(each)
        return tuple(below)


@dataclass(frozen=True, eq=False)
class SourceMotion:
    """F frames of J joints in the world."""

    names: tuple[str, ...]  # of the joints
    times: Array  # (F,) seconds, increasing
    heads: Array  # (F, J, 3) world
    rotations: Array  # (F, J, 4) world
    reference_heads: Array  # (J, 3) of the reference pose, which is aligned with the target's
    reference_rotations: Array  # (J, 4) of the reference pose
    # Whether the reference pose stands upright on flat feet. If not, as for a frame of the motion, contacts
    # tell the flat orientation of a foot.
    stands: bool = True
    # (3,) mean velocity of the figure along the ground, metres per second, in the motion of which these
    # frames are a part, and which begins at 0 s. None: they are all of it.
    velocity: Array | None = None

    def __post_init__(self) -> None:
        for name in ("times", "heads", "rotations", "reference_heads", "reference_rotations"):
            values = np.asarray(getattr(self, name), np.float64)
            self._require(np.isfinite(values), name, "is not a number")
            if name.endswith("rotations"):
                sizes = np.linalg.norm(values, axis=-1, keepdims=True)
                self._require(sizes > 0.0, name, "is no rotation")
                values = batch.unit(values, -1)
            object.__setattr__(self, name, values)
        if (np.diff(self.times) <= 0.0).any():
            raise InvalidInput("times of the source must increase")

    def _require(self, good: Mask, name: str, fault: str) -> None:
        if good.all():
            return
        place = np.argwhere(~good)[0].tolist()
        joint = self.names[place[-2]] if good.ndim > 1 else ""
        at = f" at frame {place[0]}" if good.ndim == 3 else ""
        raise InvalidInput(f"joint '{joint}': {name} of the source{at} {fault}: repair its keys")

    def index(self, name: str) -> int:
        """Index of a joint."""
        return self.names.index(name)


@dataclass(frozen=True, eq=False)
class TargetFigure:
    """A skeleton, its reference pose, and the transform from model space to the world."""

    skeleton: Skeleton
    rotations: Array  # (n, 4) of the reference pose, relative to rest
    translations: Array  # (n, 3)
    # (4,) rotation from model space to the world.
    turn: Array = field(default_factory=lambda: np.array((1.0, 0.0, 0.0, 0.0)))
    shift: Array = field(default_factory=lambda: np.zeros(3))  # (3,) world position of the model's origin
    scale: float = 1.0  # metres per unit of the model
    ground: float = 0.0  # height of the ground on which the reference pose stands, world metres
    # By joint, (k, 3) points at rest of bones that hang on it and are no joints, in its frame, model units.
    hanging: Mapping[str, Array] = field(default_factory=dict)

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
        heads, turns = self.model(rotations, translations)
        return self.points_to_world(heads), product(self.turn, turns)

    def model(self, rotations: Array, translations: Array) -> tuple[Array, Array]:
        """(F, n, 3) heads and (F, n, 4) rotations in model space, from values relative to rest."""
        offsets = np.array([joint.offset[:] for joint in self.skeleton.joints])[None]
        return forward_kinematics_of_frames(self.skeleton, offsets, self.rests[None], rotations, translations)

    def moved_by(self, rotations: Array, translations: Array, name: str, above: str) -> Array:
        """(F, n, 3) translations in which a joint above moves a joint to where it moved by itself."""
        if above == name:
            return translations
        i, j = self.index(name), self.index(above)
        _, turns = self.model(rotations, translations)
        moved = translations.copy()
        moved[:, i] = 0.0
        moved[:, j] += turned(
            inverse(self._rest_axes(turns, j)), turned(self._rest_axes(turns, i), translations[:, i])
        )
        return moved

    def _rest_axes(self, turns: Array, i: int) -> Array:
        """(F, 4) axes of a joint's translations in model space, of rotations (F, n, 4) of joints there."""
        parent = self.skeleton.joints[i].parent
        return product(turns[:, parent], self.rests[i]) if parent >= 0 else self.rests[i]

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
        return self.shift + self.scale * turned(self.turn, points)

    def points_to_model(self, points: Array) -> Array:
        """(..., 3) points of the world in model space."""
        return self.vectors_to_model(points - self.shift)

    def vectors_to_model(self, vectors: Array) -> Array:
        """(..., 3) vectors of the world in model space."""
        return turned(inverse(self.turn), vectors) / self.scale

    def rotations_to_model(self, rotations: Array) -> Array:
        """(..., 4) rotations of the world in model space."""
        return product(inverse(self.turn), rotations)


def limb_length(target: TargetFigure, limb: Limb) -> float:
    """From hip to knee to ankle, or from shoulder to elbow to wrist, in the reference pose; metres."""
    heads, _ = target.reference
    return path_length([heads[target.index(name)] for name in (limb.upper, limb.middle, limb.end)])


def leg_length(source: SourceMotion, figure_map: FigureMap, limb: Limb) -> float:
    """Like `limb_length` for the joints of a source that those of a limb follow."""
    joints = (limb.upper, limb.middle, limb.end)
    return path_length([source.reference_heads[source.index(figure_map.sources[name])] for name in joints])


@dataclass(frozen=True, eq=False)
class Figures:
    """A figure whose joints follow those of another."""

    map: FigureMap  # pairs of joints
    target: TargetFigure  # figure of the result
    source: SourceMotion  # figure of the motion

    def followed(self, name: str) -> int:
        """Index of the source's joint that a joint of the target follows."""
        return self.source.index(self.map.sources[name])

    def source_heads(self, name: str) -> Array:
        """(F, 3) of the joint that a joint of the target follows, world metres."""
        return self.source.heads[:, self.followed(name)]

    def source_head(self, name: str) -> Array:
        """(3,) of the joint that a joint of the target follows, in the reference pose."""
        return np.asarray(self.source.reference_heads[self.followed(name)])

    def target_head(self, name: str) -> Array:
        """(3,) of a joint of the target, in the reference pose."""
        return np.asarray(self.target.reference[0][self.target.index(name)])

    def lengths(self, limb: Limb) -> tuple[float, float]:
        """Lengths of a limb of the target and of the source, metres."""
        return limb_length(self.target, limb), leg_length(self.source, self.map, limb)


def inverse(rotations: Array) -> Array:
    """Inverses of unit quaternions (..., 4)."""
    return np.asarray(rotations * np.array((1.0, -1.0, -1.0, -1.0)))


def turned(rotations: Array, vectors: Array) -> Array:
    """Vectors (..., 3) rotated by unit quaternions (..., 4), which broadcast."""
    return batch.rotate(rotations, vectors, -1)


def product(a: Array, b: Array) -> Array:
    """Products of unit quaternions (..., 4), which broadcast: b first, then a."""
    return batch.multiply(a, b, -1)


def path_length(points: Sequence[Array]) -> float:
    """The length of the polyline through points (3,)."""
    return float(sum(np.linalg.norm(b - a) for a, b in pairwise(points)))


def bend_axes(first: Array, second: Array) -> Array:
    """(F, 3) axes of the bends from links (F, 3) to the next ones (F, 3), as long as their sines."""
    sizes = batch.length(first, -1) * batch.length(second, -1)
    return np.asarray(batch.cross(first, second, -1) / np.maximum(sizes, 1e-12)[:, None])


def past_straight(first: Array, second: Array, uppers: Array) -> Mask:
    """(F,) whether a nearly straight limb bends to the other side than in its other frames.

    The knee of a source may be hyperextended a little. A limb without a usual side is never past straight.

    Args:
        first, second: (F, 3) from the hip to the knee, and on to the ankle.
        uppers: (F, 4) rotations of the upper bone.
    """
    sizes = batch.length(first, -1), batch.length(second, -1)
    # Seen from the upper bone the axis of a knee or elbow stands still.
    local = turned(inverse(uppers), bend_axes(first, second))
    usual, sines = local.sum(axis=0), batch.length(local, -1)
    beyond: Mask = np.zeros(len(first), np.bool_)
    if np.linalg.norm(usual) <= STEADY * sines.sum():
        return beyond
    lines = batch.length(first + second, -1) * (sizes[0] + sizes[1])
    off = sizes[0] * sizes[1] * sines / np.maximum(lines, 1e-12)
    beyond[:] = local @ usual < 0.0
    for run in batch.runs(beyond):
        beyond[run] = off[run].max() < STRAIGHT
    return beyond


def straightest_frame(figure_map: FigureMap, source: SourceMotion) -> int:
    """Index of the frame most like a figure standing in a T or an A pose; the first of equally good ones.

    There arms are straight, and legs straight down.

    Args:
        source: F frames, upright.
    """
    scores: Array = np.zeros(len(source.times))
    for limb in figure_map.limbs:
        names = (limb.upper, limb.middle, limb.end)
        upper, middle, end = (source.heads[:, source.index(figure_map.sources[name])] for name in names)
        length = batch.length(middle - upper, -1) + batch.length(end - middle, -1)
        extent = upper[:, 2] - end[:, 2] if limb in figure_map.legs else batch.length(end - upper, -1)
        scores += extent / np.maximum(length, 1e-12) / len(figure_map.limbs)
    return int(np.argmax(np.round(scores, 6)))
