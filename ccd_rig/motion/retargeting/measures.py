"""Quality measures of a retargeted motion beside its source.

Lengths are in world metres, speeds per second, angles in radians. Where several contacts, limbs or frames
count, the largest value is told, and the mean of drift and slide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...limits.shapes import BatchLimits
from ...maths import batch
from ...maths.batch import Array
from ..contacts import Phase
from ..ground import Ground
from ..settings import RetargetSettings
from ..walking.path import STEP_UP
from .feet import FootPath, Sole
from .figures import (
    FigureMap,
    Figures,
    Limb,
    SourceMotion,
    TargetFigure,
    bend_axes,
    limb_length,
    past_straight,
)
from .scaled_way import ScaledWay, head_effector, limb_effectors, poles
from .stances import Stances

JERK_PERCENTILE = 99.0
STRAIGHT = 0.05
"""Sine of the bend of a knee or elbow from which it has a side."""
BROKEN = 1e-3
"""Radians outside a limit that count as outside it."""


@dataclass(frozen=True, eq=False)
class RetargetResult:
    """A motion of the target."""

    rotations: Array  # (F, n, 4) relative to rest
    translations: Array  # (F, n, 3) relative to rest, in the model's unit
    settings: RetargetSettings  # of the retargeting
    stances: Stances  # of the source's feet
    way: ScaledWay  # map from the source's world to the target's
    feet: Mapping[str, FootPath]  # by leg, the planned path of the foot
    # By arm, (F, 3) targets of the wrist, world metres; none where hands have weight 0.
    hands: Mapping[str, Array]
    moved: Array  # (F, 3) shifts of the hips that let legs reach, world metres
    ground: Ground | None = None  # on which feet are laid; None if it is level


@dataclass(frozen=True)
class StanceMeasure:
    """Measures of a contact of a foot."""

    leg: str  # its name
    first: int  # row of its first frame
    last: int  # row of its last frame
    drift: float  # how far the ball gets from where it is on average, metres along the ground
    slide: float  # mean speed of the ball along the ground, metres per second
    source_slide: float  # the same of the source, scaled


@dataclass(frozen=True)
class Measures:
    """Quality of a motion."""

    # By effector, mean over frames of how far it is from where the source has it, in lengths of its limb and
    # in its space. Feet and knees count outside of contacts, feet as seen from the hips' middle. Knees and
    # elbows count as far as they are to another side.
    errors: Mapping[str, float]
    followed: frozenset[str]  # effectors of `errors` that have a weight
    stances: Sequence[StanceMeasure]  # every contact
    penetration: float  # largest depth of a sole below the ground, metres
    hover: float  # smallest height of a sole above the ground, metres; 0 where one gets to it
    # World height of the ground, metres; of the lowest, where there are several; None for ground that is not
    # level.
    ground: float | None
    # Largest turn of a mapped joint from frame to frame, in the world.
    turn: float
    source_turn: float
    # 99th percentile of third differences of the limbs' ends per second cubed, in lengths of the limbs.
    jerk: float
    source_jerk: float
    # Frames in which a knee or an elbow bends to the other side than the source's; without those in which the
    # source's is hyperextended.
    flipped: int
    broken: int  # joints outside their limits, with the frames summed up
    moved_frames: int  # frames in which the hips were moved for legs to reach
    moved: float  # by how much at most, metres
    has_legs: bool = True  # whether legs are mapped; else nothing is told of feet

    def scaled(self, factor: float) -> Measures:
        """Return the same in another unit of length."""
        stances = [
            replace(
                stance,
                drift=factor * stance.drift,
                slide=factor * stance.slide,
                source_slide=factor * stance.source_slide,
            )
            for stance in self.stances
        ]
        return replace(
            self,
            stances=stances,
            penetration=factor * self.penetration,
            hover=factor * self.hover,
            ground=None if self.ground is None else factor * self.ground,
            moved=factor * self.moved,
        )


def measures(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    made: RetargetResult,
    played: tuple[Array, Array] | None = None,
) -> Measures:
    """Measure a result, see `Measures`.

    Args:
        played: (F, n, 3) heads and (F, n, 4) rotations of the target as it plays in the world; None: as made.
    """
    figures = Figures(figure_map, target, source)
    heads, rotations = played or target.world(made.rotations, made.translations)
    places = {name: heads[:, target.index(name)] for name in figure_map.sources}
    source_places = {name: figures.source_heads(name) for name in figure_map.sources}
    mapped = [target.index(name) for name in figure_map.sources]
    followed = [figures.followed(name) for name in figure_map.sources]
    uppers = {limb.name: source.rotations[:, figures.followed(limb.upper)] for limb in figure_map.limbs}
    limits = BatchLimits([joint.limit for joint in target.skeleton.joints])
    broken = limits.violations(np.ascontiguousarray(made.rotations.transpose(2, 1, 0))) > BROKEN
    moved = batch.length(made.moved, -1)
    jerks = [_jerks(figures, places, source_places, limb) for limb in figure_map.limbs]
    return Measures(
        *_errors(figures, made, heads),
        tuple(_stances(figures, made, places)),
        *_depths(figures, made, heads, rotations),
        made.way.ground if made.ground is None else None,
        largest_turn(rotations[:, mapped]),
        largest_turn(source.rotations[:, followed]),
        jerk_percentile([jerk for jerk, _ in jerks]),
        jerk_percentile([jerk for _, jerk in jerks]),
        sum(_flips(limb, places, source_places, uppers[limb.name]) for limb in figure_map.limbs),
        int(broken.sum()),
        int((moved > 1e-4).sum()),
        float(moved.max(initial=0.0)),
        bool(figure_map.legs),
    )


def _errors(figures: Figures, made: RetargetResult, heads: Array) -> tuple[dict[str, float], frozenset[str]]:
    """By effector, and which of them are followed; see `Measures`."""
    ends, bends = limb_effectors(figures, made.settings), poles(figures, made.settings)
    head = head_effector(figures, made.settings)
    errors = {}
    for limb in figures.map.limbs:
        off = ends[limb.name].errors(heads, made.way)
        free = np.ones(len(off), np.bool_)
        if limb in figures.map.legs:
            off = _ankle_errors(figures, heads, limb)
            free = made.feet[limb.name].weights == 0.0
        errors[limb.name] = _mean(off[free])
        _, angles, sides = bends[limb.name].sides(heads, made.way, limb.end)
        errors[bends[limb.name].name] = _mean((2.0 * np.abs(np.sin(0.5 * angles)) * sides)[free])
    if head is not None:
        errors[head.name] = _mean(head.errors(heads, made.way))
    every = (*ends.values(), *bends.values(), *([head] if head is not None else ()))
    return errors, frozenset(each.name for each in every if each.weight > 0.0)


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else 0.0


def _ankle_errors(figures: Figures, heads: Array, leg: Limb) -> Array:
    """(F,) of an ankle, as seen from the middle of the hip joints of its girdle, in lengths of the leg."""
    length, source_length = figures.lengths(leg)
    target, starts = figures.target, [each.upper for each in figures.map.girdle(leg)]
    start = np.mean([heads[:, target.index(name)] for name in starts], axis=0)
    source_start = np.mean([figures.source_heads(name) for name in starts], axis=0)
    off = (heads[:, target.index(leg.end)] - start) / length - (
        figures.source_heads(leg.end) - source_start
    ) / source_length
    return np.asarray(batch.length(off, -1))


def _stances(figures: Figures, made: RetargetResult, places: Mapping[str, Array]) -> list[StanceMeasure]:
    stances = []
    ground = made.way.scale * made.stances.velocity - made.way.drift
    times = figures.source.times
    for leg in figures.map.legs:
        name = leg.tip or leg.end
        source_places = made.way.points(figures.source_heads(name), times)
        for phase in made.stances.phases[leg.name]:
            drift, slide = _drift(places[name], times, ground, phase)
            _, source_slide = _drift(source_places, times, ground, phase)
            stances.append(StanceMeasure(leg.name, *phase, drift, slide, source_slide))
    return stances


def _drift(points: Array, times: Array, ground: Array, phase: Phase) -> tuple[float, float]:
    rows = slice(phase.first, phase.last + 1)
    along = (points[rows] - ground * times[rows, None])[:, :2]
    steps = batch.length(np.diff(along, axis=0), -1)
    seconds = float(times[phase.last] - times[phase.first])
    drift = float(batch.length(along - along.mean(axis=0), -1).max())
    return drift, float(steps.sum()) / seconds if seconds > 0.0 else 0.0


def _depths(figures: Figures, made: RetargetResult, heads: Array, rotations: Array) -> tuple[float, float]:
    """Largest depth of soles below the ground, and their least height above it."""
    target, above = figures.target, []
    for leg in figures.map.legs:
        sole, path = Sole.of(target, leg), made.feet[leg.name]
        foot, tip = target.index(leg.end), target.index(leg.tip or leg.end)
        points = sole.points(rotations[:, foot], rotations[:, tip] if leg.tip else None)
        points += [end - heads[:, tip] for end in sole.ends(heads, rotations)]
        if made.ground is not None:
            above.append(_above(made.ground, points, heads[:, tip], path, limb_length(target, leg)))
            continue
        lowest = np.min([point[:, 2] for point in points], axis=0) + heads[:, tip, 2]
        above.append(lowest - np.maximum(path.ground, made.way.ground))
    nearest = float(np.min(above)) if above else 0.0
    return max(0.0, -nearest), max(0.0, nearest)


def _above(ground: Ground, points: Sequence[Array], balls: Array, path: FootPath, size: float) -> Array:
    """(F,) how far the lowest of points (F, 3) from balls (F, 3) is above the ground."""
    gaps, rows = [], np.arange(len(balls))
    for point in points:
        tops = np.column_stack(((balls + point)[:, :2], path.ground + STEP_UP * size))
        heights, _ = ground.below(tops, rows)
        gaps.append((balls + point)[:, 2] - heights)
    return np.asarray(np.nanmin(np.where(np.isnan(gaps), np.inf, gaps), axis=0))


def largest_turn(rotations: Array) -> float:
    """Largest turn from frame to frame of rotations (F, J, 4), radians."""
    if len(rotations) < 2:
        return 0.0
    return float(batch.angles_between(rotations[1:], rotations[:-1], -1).max())


def _jerks(
    figures: Figures, places: Mapping[str, Array], source_places: Mapping[str, Array], limb: Limb
) -> tuple[Array, Array]:
    """Third differences of a limb's end, the target's and the source's, in lengths of each one's limb."""
    times = figures.source.times
    step = float(np.median(np.diff(times))) if len(times) > 1 else 1.0
    size, source_size = figures.lengths(limb)
    return jerks(places[limb.end], step, size), jerks(source_places[limb.end], step, source_size)


def jerks(points: Array, step: float, size: float) -> Array:
    """Sizes of third differences of points (..., F, 3), by a time step, in a size; 0 for fewer than 4."""
    if points.shape[-2] <= 3:
        return np.zeros((*points.shape[:-2], 1))
    return batch.length(np.diff(points, 3, axis=-2), -1) / (size * step**3)


def jerk_percentile(values: Sequence[Array]) -> float:
    """99th percentile of jerks of several points."""
    return float(np.percentile(np.concatenate(values), JERK_PERCENTILE)) if values else 0.0


def _flips(limb: Limb, places: Mapping[str, Array], source_places: Mapping[str, Array], uppers: Array) -> int:
    """Frames in which a limb bends to the other side than the source's, where both bend.

    A limb that the source (upper bone turned by (F, 4)) hyperextends a little is bent to its usual side.
    """
    ours, theirs = (
        bend_axes(each[limb.middle] - each[limb.upper], each[limb.end] - each[limb.middle])
        for each in (places, source_places)
    )
    clear = (batch.length(ours, -1) > STRAIGHT) & (batch.length(theirs, -1) > STRAIGHT)
    upper, middle, end = (source_places[name] for name in limb.joints[:3])
    usual = ~past_straight(middle - upper, end - middle, uppers)
    return int((clear & usual & (batch.dot(ours, theirs, -1) < 0.0)).sum())
