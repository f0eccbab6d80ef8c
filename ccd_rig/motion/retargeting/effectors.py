"""Points of a figure that follow points of the source: head, ankles, wrists, knees and elbows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...maths import batch
from ...maths.batch import Array
from .figure_map import FigureMap, Limb
from .motions import SourceMotion, TargetFigure, path_length
from .scaled_way import ScaledWay, limb_length
from .settings import EffectorSpace, RetargetSettings
from .stances import leg_length


@dataclass(frozen=True)
class Effector:
    """A joint of the target that follows one of the source.

    Attributes:
        name: what reports call it.
        joint, base: the target's, and the one where its limb starts.
        own_joint, own_base: the source's.
        length, own_length: of the limb, in metres, from which `LIMB` has its scale.
        weight: 0 to 1.
        space: where it is to be.
    """

    name: str
    joint: str
    base: str
    own_joint: str
    own_base: str
    length: float
    own_length: float
    weight: float
    space: EffectorSpace

    def wanted(self, target: TargetFigure, heads: Array, source: SourceMotion, way: ScaledWay) -> Array:
        """(F, 3) where it is to be, world metres; `heads` (F, n, 3) are those of the target."""
        own = source.heads[:, source.index(self.own_joint)]
        if self.space is EffectorSpace.WORLD:
            return way.points(own, source.times)
        ratio = self.length / self.own_length
        start = heads[:, target.index(self.base)]
        return np.asarray(start + ratio * (own - source.heads[:, source.index(self.own_base)]))

    def sides(
        self, target: TargetFigure, heads: Array, source: SourceMotion, way: ScaledWay, end: str
    ) -> tuple[Array, Array, Array]:
        """Of a knee or elbow: (F, 3) axis from its limb's start to the joint `end`, (F,) radians about it to
        the side where it is to be, and (F,) the smaller of both distances from that line, in lengths of the
        limb."""
        start = heads[:, target.index(self.base)]
        line = heads[:, target.index(end)] - start
        axis = line / np.maximum(batch.length(line, -1), 1e-12)[:, None]
        own = heads[:, target.index(self.joint)] - start
        wanted = self.wanted(target, heads, source, way) - start
        own = own - batch.dot(own, axis, -1)[:, None] * axis
        wanted = wanted - batch.dot(wanted, axis, -1)[:, None] * axis
        angle = np.arctan2(batch.dot(axis, batch.cross(own, wanted, -1), -1), batch.dot(own, wanted, -1))
        off = np.minimum(batch.length(own, -1), batch.length(wanted, -1)) / self.length
        return axis, np.asarray(angle), np.asarray(off)

    def errors(self, target: TargetFigure, heads: Array, source: SourceMotion, way: ScaledWay) -> Array:
        """(F,) how far it is from there, in lengths of the limb."""
        off = heads[:, target.index(self.joint)] - self.wanted(target, heads, source, way)
        return np.asarray(batch.length(off, -1) / self.length)


def limb_effectors(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, settings: RetargetSettings
) -> dict[str, Effector]:
    """By limb, its end."""
    found = {}
    for limb in figure_map.limbs:
        is_leg = limb in figure_map.legs
        weight = settings.weight("feet" if is_leg else "hands", limb.is_right)
        space = settings.foot_space if is_leg else settings.hand_space
        found[limb.name] = _effector(figure_map, target, source, limb, (limb.name, limb.end, weight, space))
    return found


def poles(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, settings: RetargetSettings
) -> dict[str, Effector]:
    """By limb, its knee or elbow."""
    found = {}
    for limb in figure_map.limbs:
        is_leg = limb in figure_map.legs
        name = f"{'knee' if is_leg else 'elbow'} of the {limb.name}"
        weight = settings.weight("knees" if is_leg else "elbows", limb.is_right)
        space = settings.knee_space if is_leg else settings.elbow_space
        found[limb.name] = _effector(figure_map, target, source, limb, (name, limb.middle, weight, space))
    return found


def head_effector(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, settings: RetargetSettings
) -> Effector | None:
    """The head, from the hips; None for figures without one that hangs on them."""
    head, hips = figure_map.head, figure_map.hips
    if not head:
        return None
    chain = [target.skeleton.joints[i].name for i in target.skeleton.chain(head)]
    if hips not in chain:
        return None
    heads, _ = target.reference
    own_head, own_hips = figure_map.sources[head], figure_map.sources[hips]
    length = float(np.linalg.norm(heads[target.index(head)] - heads[target.index(hips)]))
    own = source.reference_heads[[source.index(own_hips), source.index(own_head)]]
    own_length = path_length(list(own))
    if not (length > 0.0 and own_length > 0.0):
        return None
    return Effector(
        "head", head, hips, own_head, own_hips, length, own_length, settings.head, settings.head_space
    )


def _effector(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    limb: Limb,
    made: tuple[str, str, float, EffectorSpace],
) -> Effector:
    name, joint, weight, space = made
    sources = figure_map.sources
    return Effector(
        name,
        joint,
        limb.upper,
        sources[joint],
        sources[limb.upper],
        limb_length(target, limb),
        leg_length(source, figure_map, limb),
        weight,
        space,
    )
