"""Quality measures of a walk in playback.

Lengths are in metres, angles in radians. Turns and jerk stand beside those of the cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...maths import batch
from ...maths.batch import Array
from ..ground import Ground
from ..retargeting.alignment import UP
from ..retargeting.figures import STEADY, FigureMap, bend_axes, inverse, product, turned
from ..retargeting.measures import STRAIGHT, jerk_percentile, jerks, largest_turn
from .cycle import Cycle, WalkLeg
from .path import STEP_UP
from .steps import PARTS, WalkPlan

MISSED = 1e-3
"""Lengths of the shortest leg by which a foot may be off its place before its leg counts as too short."""


@dataclass(frozen=True)
class WalkMeasures:
    """Quality of a walk."""

    footfalls: int  # count
    slide: float  # largest distance of a ball from its footfall
    penetration: float  # largest depth of a sole below the ground
    floating: float  # largest height of a sole above the ground while its foot is down
    stretched: int  # count of frames with a planted foot out of its leg's reach
    missed: float  # largest distance out of reach
    flipped: int  # count of frames with a knee on the other side of its average in the cycle
    # Largest turn of a joint, world, per second.
    turn: float
    cycle_turn: float
    # Largest turn of a joint against its parent, per second.
    bend: float
    cycle_bend: float
    # Most feet in the air at once.
    airborne: int
    cycle_airborne: int
    # 99th percentile of third differences of feet per second cubed, in leg lengths.
    jerk: float
    cycle_jerk: float
    moved: float  # largest shift of the hips for legs to reach

    def scaled(self, factor: float) -> WalkMeasures:
        """Return the same in another unit of length."""
        names = ("slide", "penetration", "floating", "missed", "moved")
        return replace(self, **{name: factor * getattr(self, name) for name in names})


def joints_seen(figure_map: FigureMap) -> tuple[str, ...]:
    """The measured joints: of the trunk and of limbs."""
    limbs = (name for limb in figure_map.limbs for name in (*limb.joints, *limb.bends))
    head = (figure_map.head,) if figure_map.head else ()
    return tuple(dict.fromkeys((*figure_map.body, *head, *limbs)))


def walk_measures(
    cycle: Cycle, plan: WalkPlan, ground: Ground, heads: Array, rotations: Array
) -> WalkMeasures:
    """Measure played joints (`joints_seen`): (F, n, 3) heads and (F, n, 4) rotations, world."""
    target = cycle.target
    slides, depths, floats, missed, walk_jerks = [0.0], [0.0], [0.0], np.zeros(len(heads)), []
    step = float(np.diff(plan.times[:2]).sum()) or 1.0
    walked, flipped = _walked(cycle), 0
    for leg in cycle.legs:
        foot, end = plan.feet[leg.limb.name], target.index(leg.limb.end)
        balls = heads[:, end] + turned(rotations[:, end], leg.sole.ball)
        for i, _ in enumerate(foot.footfalls):
            rows = np.flatnonzero(foot.down == i)
            if len(rows):
                still, _ = ground.carried(balls[rows[0]], int(rows[0]), rows)
                off = batch.length((balls[rows] - still)[:, :2], -1)
                slides.append(float(off.max()))
        above, lowest = _above(cycle, leg, ground, plan, balls, (heads, rotations))
        depths.append(-float(above.min()))
        down = foot.down >= 0
        floats.append(float(lowest[down].max(initial=0.0)))
        off = batch.length(balls - foot.balls, -1)
        missed = np.maximum(missed, np.where(down, off, 0.0))
        flipped += _flips(cycle, leg, walked, (heads, rotations))
        walk_jerks.append(jerks(heads[:, end], step, leg.length))
    cycle_heads, cycle_turns = walked
    cycle_jerks = [
        jerks(cycle_heads[:, target.index(leg.limb.end)], cycle.step, leg.length) for leg in cycle.legs
    ]
    seen = [target.index(name) for name in joints_seen(cycle.figure_map)]
    airborne = np.sum([foot.down < 0 for foot in plan.feet.values()], axis=0)
    return WalkMeasures(
        sum(int(i in foot.down) for foot in plan.feet.values() for i in range(len(foot.footfalls))),
        max(slides),
        max(depths),
        max(floats),
        int((missed > MISSED * cycle.leg).sum()),
        float(missed.max(initial=0.0)),
        flipped,
        largest_turn(rotations[:, seen]) / step,
        largest_turn(cycle_turns[:, seen]) / cycle.step,
        largest_turn(_bends(cycle, seen, rotations)) / step,
        largest_turn(_bends(cycle, seen, cycle_turns)) / cycle.step,
        int(airborne.max(initial=0)),
        _cycle_airborne(cycle, plan.phases),
        jerk_percentile(walk_jerks),
        jerk_percentile(cycle_jerks),
        float(batch.length(plan.moved, -1).max(initial=0.0)),
    )


def _walked(cycle: Cycle) -> tuple[Array, Array]:
    """Heads and rotations of one period and a little more, on its straight line."""
    heads, rotations = cycle.joints
    rows = np.arange(len(heads) + 3)
    way = (rows * cycle.step * cycle.speed)[:, None, None] * np.array((1.0, 0.0, 0.0))
    return heads[rows % len(heads)] + way, rotations[rows % len(heads)]


def _above(
    cycle: Cycle, leg: WalkLeg, ground: Ground, plan: WalkPlan, balls: Array, played: tuple[Array, Array]
) -> tuple[Array, Array]:
    """(points, F) how far points of a sole are above the ground, and (F,) how far the sole is; infinite where
    there is none. On an edge it may rest on a part of the toes between these points."""
    rotations = played[1]
    foot = rotations[:, cycle.target.index(leg.limb.end)]
    toes = rotations[:, cycle.target.index(leg.limb.tip)] if leg.limb.tip else None
    points, rows = leg.sole_points(foot, toes), np.arange(len(balls))
    points = [*(end - balls for end in leg.sole.ends(*played)), *points]
    count = len(points)
    if toes is not None and leg.sole.toe is not None:
        under = leg.sole.height * UP
        points += [part * points[-1] - (1.0 - part) * under for part in PARTS]
    gaps = []
    for point in points:
        top = np.column_stack(((balls + point)[:, :2], balls[:, 2] + 0.5 * STEP_UP * cycle.leg))
        heights, _ = ground.below(top, rows)
        gaps.append(np.where(np.isfinite(heights), (balls + point)[:, 2] - heights, np.inf))
    return np.array(gaps[:count]), np.min(gaps, axis=0)


def _flips(cycle: Cycle, leg: WalkLeg, walked: tuple[Array, Array], played: tuple[Array, Array]) -> int:
    """Frames in which a leg bends clearly to another side than in the cycle on average, seen from its upper
    bone; of heads (F, n, 3) and rotations (F, n, 4), the cycle's and those that play."""
    upper, middle, end = (cycle.target.index(name) for name in leg.limb.joints[:3])
    bends = []
    for heads, rotations in (walked, played):
        first, second = heads[:, middle] - heads[:, upper], heads[:, end] - heads[:, middle]
        bends.append(turned(inverse(rotations[:, upper]), bend_axes(first, second)))
    usual = bends[0].sum(axis=0)
    if np.linalg.norm(usual) <= STEADY * batch.length(bends[0], -1).sum():
        return 0
    clear = batch.length(bends[1], -1) > STRAIGHT
    return int((clear & (batch.dot(bends[1], usual, -1) < 0.0)).sum())


def _bends(cycle: Cycle, seen: Sequence[int], rotations: Array) -> Array:
    """(F, J, 4) rotations, of (F, n, 4), of joints against the nearest of them above, where there is one."""
    joints, pairs = cycle.target.skeleton.joints, []
    for i in seen:
        above = joints[i].parent
        while above >= 0 and above not in seen:
            above = joints[above].parent
        if above >= 0:
            pairs.append((above, i))
    above_all, below = ([pair[k] for pair in pairs] for k in (0, 1))
    return product(inverse(rotations[:, above_all]), rotations[:, below])


def _cycle_airborne(cycle: Cycle, phases: Array) -> int:
    """Most feet of the cycle in the air at once, at the phases (F,) that a walk shows of it, seconds.

    Its own frames would miss what is between them, such as the moment from one contact to the next.
    """
    times = phases % cycle.period
    down = [
        np.any(
            [
                (times + k >= each.first - 1e-9) & (times + k <= each.last + 1e-9)
                for each in foot.stances
                for k in (-cycle.period, 0.0, cycle.period)
            ]
            or [np.zeros(len(times), np.bool_)],
            axis=0,
        )
        for foot in cycle.feet.values()
    ]
    return int((len(down) - np.sum(down, axis=0)).max())
