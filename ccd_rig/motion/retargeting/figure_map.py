"""Pairs of joints of two figures, and their limbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...errors import InvalidInput
from ...maths.batch import Array
from ...skeleton.joints import Skeleton

MOST_LEGS = 4
"""Most legs of a figure whose legs lead down from the body rather than aside."""


@dataclass(frozen=True)
class Limb:
    """An arm or a leg, by names of the target's joints.

    Attributes:
        name: in reports, such as "left leg".
        upper: joint at the hip or the shoulder.
        middle: the knee or the elbow.
        end: the ankle or the wrist.
        tip: the ball of the foot; empty where there is none, and for arms.
        girdle: pair of legs, such as "front"; empty for the legs at the hips.
        is_right: whether it is on the right, for weights that differ by side.
        bends: joints between these that bend too, as of a spider's leg.
    """

    name: str
    upper: str
    middle: str
    end: str
    tip: str = ""
    girdle: str = ""
    is_right: bool = False
    bends: tuple[str, ...] = ()

    @property
    def joints(self) -> tuple[str, ...]:
        """Names from the body on."""
        return tuple(name for name in (self.upper, self.middle, self.end, self.tip) if name)


@dataclass(frozen=True)
class FigureMap:
    """The joints of a target that follow joints of a source.

    Attributes:
        sources: by target joint, the source joint that it follows.
        hips: target joint that carries the figure; it gets the motion through the world.
        legs: at least one, but for `legless`.
        arms: may be empty.
        trunk: target joints of the spine, from the hips up, without the neck.
        head: target joint, empty for none.
        legless: whether the figures have no legs in common, as fish and spiders: joints turn as the source's,
            the hips carry the figure, and no foot is locked to the ground.
    """

    sources: Mapping[str, str]
    hips: str
    legs: tuple[Limb, ...]
    arms: tuple[Limb, ...] = ()
    trunk: tuple[str, ...] = ()
    head: str = ""
    legless: bool = False
    limbs: tuple[Limb, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "limbs", (*self.legs, *self.arms))
        if not self.sources:
            raise InvalidInput("no joint of the target follows one of the source: map at least hips and legs")
        if self.hips not in self.sources:
            raise InvalidInput(f"the hips '{self.hips}' follow nothing: map them to the source's hips")
        if not self.legs and not self.legless:
            raise InvalidInput("the map has no legs: map a thigh, a shin and a foot at least")
        named = [name for limb in self.limbs for name in limb.joints]
        for name in (*named, *self.trunk, *([self.head] if self.head else ())):
            if name not in self.sources:
                raise InvalidInput(f"joint '{name}' follows nothing: map it, or leave it out of its limb")

    def require(self, target: Skeleton, source: Sequence[str]) -> None:
        """Raise InvalidInput that names the first joint that a figure lacks, or a limb that is no chain."""
        known = {joint.name for joint in target.joints}
        for ours, theirs in self.sources.items():
            if ours not in known:
                raise InvalidInput(f"the target has no joint '{ours}': take it out of the map")
            if theirs not in source:
                raise InvalidInput(f"the source has no joint '{theirs}', which '{ours}' follows: map another")
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
