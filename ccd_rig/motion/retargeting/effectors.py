"""Effectors that follow points of the source: head, ankles, wrists, knees and elbows."""

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
    """A joint of the target that follows a joint of the source.

    Attributes:
        name: in reports.
        joint, base: the target's joint, and the joint at the start of its limb.
        source_joint, source_base: the same of the source.
        length, source_length: of the limb, in metres: the scale of `LIMB`.
        weight: 0 to 1.
        space: of its target.
    """

    name: str
    joint: str
    base: str
    source_joint: str
    source_base: str
    length: float
    source_length: float
    weight: float
    space: EffectorSpace

    def wanted(self, target: TargetFigure, heads: Array, source: SourceMotion, way: ScaledWay) -> Array:
        """(F, 3) its targets, world metres; `heads` (F, n, 3) are those of the target."""
        points = source.heads[:, source.index(self.source_joint)]
        if self.space is EffectorSpace.WORLD:
            return way.points(points, source.times)
        ratio = self.length / self.source_length
        start = heads[:, target.index(self.base)]
        return np.asarray(start + ratio * (points - source.heads[:, source.index(self.source_base)]))

    def sides(
        self, target: TargetFigure, heads: Array, source: SourceMotion, way: ScaledWay, end: str
    ) -> tuple[Array, Array, Array]:
        """The swivel of a knee or elbow to its target's side.

        Returns:
            (F, 3) unit axis from its limb's start to the joint `end`; (F,) radians about it; (F,) the smaller
            distance of joint and target from the axis, in lengths of the limb.
        """
        start = heads[:, target.index(self.base)]
        line = heads[:, target.index(end)] - start
        axis = line / np.maximum(batch.length(line, -1), 1e-12)[:, None]
        present = heads[:, target.index(self.joint)] - start
        wanted = self.wanted(target, heads, source, way) - start
        present = present - batch.dot(present, axis, -1)[:, None] * axis
        wanted = wanted - batch.dot(wanted, axis, -1)[:, None] * axis
        sine = batch.dot(axis, batch.cross(present, wanted, -1), -1)
        angle = np.arctan2(sine, batch.dot(present, wanted, -1))
        off = np.minimum(batch.length(present, -1), batch.length(wanted, -1)) / self.length
        return axis, np.asarray(angle), np.asarray(off)

    def errors(self, target: TargetFigure, heads: Array, source: SourceMotion, way: ScaledWay) -> Array:
        """(F,) its distances from its targets, in lengths of the limb."""
        off = heads[:, target.index(self.joint)] - self.wanted(target, heads, source, way)
        return np.asarray(batch.length(off, -1) / self.length)


def limb_effectors(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, settings: RetargetSettings
) -> dict[str, Effector]:
    """The effector at the end of each limb, by the limb's name."""
    effectors = {}
    for limb in figure_map.limbs:
        is_leg = limb in figure_map.legs
        weight = settings.weight("feet" if is_leg else "hands", limb.is_right)
        space = settings.foot_space if is_leg else settings.hand_space
        effectors[limb.name] = _effector(figure_map, target, source, limb, limb.name, limb.end, weight, space)
    return effectors


def poles(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, settings: RetargetSettings
) -> dict[str, Effector]:
    """The effector at the knee or elbow of each limb, by the limb's name."""
    effectors = {}
    for limb in figure_map.limbs:
        is_leg = limb in figure_map.legs
        name = f"{'knee' if is_leg else 'elbow'} of the {limb.name}"
        weight = settings.weight("knees" if is_leg else "elbows", limb.is_right)
        space = settings.knee_space if is_leg else settings.elbow_space
        effectors[limb.name] = _effector(figure_map, target, source, limb, name, limb.middle, weight, space)
    return effectors


def head_effector(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, settings: RetargetSettings
) -> Effector | None:
    """The effector of the head, relative to the hips; None without a head below the hips in the tree."""
    head, hips = figure_map.head, figure_map.hips
    if not head:
        return None
    chain = [target.skeleton.joints[i].name for i in target.skeleton.chain(head)]
    if hips not in chain:
        return None
    heads, _ = target.reference
    source_head, source_hips = figure_map.sources[head], figure_map.sources[hips]
    length = float(np.linalg.norm(heads[target.index(head)] - heads[target.index(hips)]))
    ends = source.reference_heads[[source.index(source_hips), source.index(source_head)]]
    source_length = path_length(list(ends))
    if not (length > 0.0 and source_length > 0.0):
        return None
    return Effector(
        "head",
        head,
        hips,
        source_head,
        source_hips,
        length,
        source_length,
        settings.head,
        settings.head_space,
    )


def _effector(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    limb: Limb,
    name: str,
    joint: str,
    weight: float,
    space: EffectorSpace,
) -> Effector:
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
