"""How much each joint of the target must be turned in the world for its reference pose to be the source's.

A joint's correction M is found from the body outwards. With its bone's direction d in the target's reference
pose and e in the source's, a joint below one with correction M' gets the shortest rotation from M' d to e,
then M'. So what the reference poses differ by, such as arms that hang or are spread, goes into the joint
where it is, and adds no twist. Where both bend clearly at a knee or an elbow, that bend settles the twist.

Hips and spine are aligned by two directions, across the body and up it, hands by the fingers. A foot that
stands is flat for either figure: only its heading is aligned. Then

    target rotation(f) = source rotation(f)  source reference^-1  M  target reference
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...maths import batch
from ...maths.batch import Array
from .figure_map import FigureMap, Limb
from .motions import SourceMotion, TargetFigure, inverse, product, turned

UP = np.array((0.0, 0.0, 1.0))
NO_TURN = np.array((1.0, 0.0, 0.0, 0.0))
CLEAR_BEND = 0.05
"""Sine of the angle of a knee or elbow from which its side is clear."""
TINY = 1e-9


@dataclass(frozen=True, eq=False)
class _Figures:
    """Both reference poses in the world."""

    figure_map: FigureMap
    target: TargetFigure
    source: SourceMotion
    heads: Array
    level: dict[str, Array]

    def target_way(self, a: str, b: str) -> Array:
        """From joint to joint of the target, named by its own."""
        return np.asarray(self.heads[self.target.index(b)] - self.heads[self.target.index(a)])

    def source_way(self, a: str, b: str) -> Array:
        """The same of the source, named by the target's joints."""
        return np.asarray(self.source_head(b) - self.source_head(a))

    def source_head(self, name: str) -> Array:
        place = self.source.index(self.figure_map.sources[name])
        return np.asarray(self.source.reference_heads[place])


def corrections(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, level: dict[str, Array] | None = None
) -> dict[str, Array]:
    """By mapped target joint, (4,) the correction M in the world.

    Args:
        figure_map: what follows what.
        target: its reference pose counts.
        source: likewise.
        level: by foot and by toes of the target, (4,) what turns the source's in its reference pose so that
            it would stand flat; none for those that do.
    """
    heads, _ = target.reference
    figures = _Figures(figure_map, target, source, heads, level or {})
    found = _trunk(figures)
    legs = {limb.end: limb for limb in figure_map.legs}
    tips = {limb.tip: limb for limb in figure_map.legs if limb.tip}
    arms = {limb.end for limb in figure_map.arms}
    bends = {name: limb for limb in figure_map.limbs for name in (limb.upper, limb.middle)}
    heading = _heading(found[figure_map.hips])
    for joint in target.skeleton.joints:
        name = joint.name
        if name not in figure_map.sources or name in found:
            continue
        above = _above(figures, name, found)
        if name == figure_map.head:
            found[name] = heading
        elif name in legs or name in tips:
            found[name] = _foot(figures, name, legs.get(name) or tips[name], heading)
        elif name in arms:
            found[name] = _hand(figures, name, above)
        else:
            found[name] = _segment(figures, name, above, bends.get(name))
    return found


def shortest(a: Array, b: Array) -> Array:
    """(..., 4) shortest rotations from vectors (..., 3) to others, none where one of them is zero."""
    a, b = _unit(a), _unit(b)
    middle = np.concatenate((1.0 + batch.dot(a, b, -1)[..., None], batch.cross(a, b, -1)), axis=-1)
    opposite = batch.length(middle, -1) < 1e-6
    if opposite.any():
        axes = batch.cross(a, np.broadcast_to(np.eye(3)[np.argmin(np.abs(a), axis=-1)], a.shape), -1)
        middle[opposite] = np.concatenate((np.zeros((*a.shape[:-1], 1)), _unit(axes)), -1)[opposite]
    none = (batch.length(a, -1) < 0.5) | (batch.length(b, -1) < 0.5)
    middle[none] = NO_TURN
    return batch.unit(middle, -1)


def _unit(vectors: NDArray[Any]) -> Array:
    lengths = batch.length(vectors, -1)[..., None]
    return np.where(lengths > TINY, vectors / np.maximum(lengths, TINY), 0.0)


# Parts of the body --------------------------------------------------------------------------------


def _trunk(figures: _Figures) -> dict[str, Array]:
    """Hips and spine: their two ends by what is across and up there, what is between by parts of the way.

    A body on four legs lies as its legs are long, and one without legs as it likes: only its heading is
    aligned.
    """
    figure_map = figures.figure_map
    shoulders = list(figure_map.shoulders)
    if not figure_map.legs:
        ways = [
            np.mean([way(figure_map.hips, name) for name in shoulders], axis=0)
            for way in (figures.target_way, figures.source_way)
        ]
        turn = _about(UP, *(way * (1.0, 1.0, 0.0) for way in ways))
        return dict.fromkeys((figure_map.hips, *figure_map.trunk), turn)
    uppers = [limb.upper for limb in figure_map.hind_legs]
    lower = _two_ways(figures, uppers, uppers, shoulders)
    if len(uppers) < len(figure_map.legs):
        return dict.fromkeys((figure_map.hips, *figure_map.trunk), _heading(lower))
    upper = lower if len(shoulders) < 2 else _two_ways(figures, shoulders, uppers, shoulders)
    trunk = tuple(name for name in figure_map.trunk if name != figure_map.hips)
    shares = (np.arange(len(trunk)) + 1.0) / max(len(trunk), 1)
    found = {figure_map.hips: lower}
    for name, share in zip(trunk, shares, strict=True):
        found[name] = batch.slerp(lower[None], upper[None], np.array([share]), -1)[0]
    return found


def _two_ways(figures: _Figures, across: list[str], low: list[str], high: list[str]) -> Array:
    """(4,) from the target's frame, made of a line across and one up, to the source's."""
    frames = []
    for heads in (lambda name: figures.heads[figures.target.index(name)], figures.source_head):
        side = heads(across[-1]) - heads(across[0])
        rise = np.mean([heads(name) for name in high], axis=0) - np.mean(
            [heads(name) for name in low], axis=0
        )
        frames.append((_unit(side), _unit(rise)))
    (side, rise), (own_side, own_rise) = frames
    if np.linalg.norm(np.cross(side, rise)) < TINY or np.linalg.norm(np.cross(own_side, own_rise)) < TINY:
        return shortest(rise, own_rise)
    return product(_quaternion(own_side, own_rise), inverse(_quaternion(side, rise)))


def _quaternion(side: Array, rise: Array) -> Array:
    """(4,) the rotation whose X axis is `side`, and whose Z axis is as near to `rise` as it can be."""
    ahead = _unit(np.cross(rise, side))
    return batch.quaternions(np.stack((side, ahead, np.cross(side, ahead)), axis=1))


def _heading(correction: Array) -> Array:
    """(4,) the part of a rotation that is about the vertical."""
    w, _, _, z = correction
    size = float(np.hypot(w, z))
    return NO_TURN if size < TINY else np.array((w / size, 0.0, 0.0, z / size))


def _above(figures: _Figures, name: str, found: dict[str, Array]) -> Array:
    """The correction of the nearest joint above that has one."""
    joints = figures.target.skeleton.joints
    for i in reversed(figures.target.skeleton.chain(name)[:-1]):
        if joints[i].name in found:
            return found[joints[i].name]
    return found[figures.figure_map.hips]


def _segment(figures: _Figures, name: str, above: Array, limb: Limb | None) -> Array:
    """A bone that leads to one mapped joint; others are turned as the one above."""
    if limb is not None:
        below: tuple[str, ...] = (limb.middle if name == limb.upper else limb.end,)
    else:
        below = figures.figure_map.nearest_mapped_below(figures.target.skeleton, name)
    if len(below) != 1:
        return above
    way, own_way = figures.target_way(name, below[0]), figures.source_way(name, below[0])
    found = product(shortest(turned(above, way), own_way), above)
    if limb is None:
        return found
    bend, own_bend = (_bend(ways, limb) for ways in (figures.target_way, figures.source_way))
    if np.linalg.norm(bend) < CLEAR_BEND or np.linalg.norm(own_bend) < CLEAR_BEND:
        return found
    axis = _unit(own_way)
    return product(_about(axis, turned(found, bend), own_bend), found)


def _bend(way: Callable[[str, str], Array], limb: Limb) -> Array:
    """(3,) axis about which a limb bends, as long as the sine of the bend."""
    upper, lower = _unit(way(limb.upper, limb.middle)), _unit(way(limb.middle, limb.end))
    return np.asarray(np.cross(upper, lower))


def _about(axis: Array, a: Array, b: Array) -> Array:
    """(4,) the rotation about an axis from one vector to another, as seen along it."""
    angle = np.arctan2(np.dot(axis, np.cross(a, b)), np.dot(a, b) - np.dot(a, axis) * np.dot(b, axis))
    return np.concatenate(([np.cos(0.5 * angle)], np.sin(0.5 * angle) * axis))


def _foot(figures: _Figures, name: str, limb: Limb, heading: Array) -> Array:
    """A foot, or its toes, stays as level as it stands; the foot points the same way along the ground."""
    level = figures.level.get(name, NO_TURN)
    found = heading
    if limb.tip:
        way = turned(heading, figures.target_way(limb.end, limb.tip))
        own_way = turned(figures.level.get(limb.end, NO_TURN), figures.source_way(limb.end, limb.tip))
        found = product(_about(UP, way * (1.0, 1.0, 0.0), own_way * (1.0, 1.0, 0.0)), heading)
    return product(inverse(level), found)


def _hand(figures: _Figures, name: str, above: Array) -> Array:
    """A hand is turned so that its fingers start in the same directions, all taken together (Wahba)."""
    fingers = figures.figure_map.nearest_mapped_below(figures.target.skeleton, name)
    if not fingers:
        return above
    ways = np.array([_unit(turned(above, figures.target_way(name, each))) for each in fingers])
    own = np.array([_unit(figures.source_way(name, each)) for each in fingers])
    if len(fingers) < 2:
        return product(shortest(ways[0], own[0]), above)
    left, _, right = np.linalg.svd(own.T @ ways)
    sign = np.diag((1.0, 1.0, np.sign(np.linalg.det(left) * np.linalg.det(right))))
    return product(batch.quaternions(left @ sign @ right), above)
