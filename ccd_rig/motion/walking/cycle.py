"""A closed period of a cycle in a frame that moves with the figure, and the stances of its feet.

    motion of the figure -> two frames alike -> closed -> velocity over the ground -> stances -> balls locked

The frame of the cycle has X ahead, along the velocity over the ground, Y to the left and Z up from the
ground. It moves at that velocity, so nothing in it travels. `along` of a stance counts from the place of the
frame at time 0. Arrays have frames first and components last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from ...errors import InvalidInput
from ...maths import batch
from ...maths.batch import Array, Indices
from ..contacts import Phase, ground_velocity
from ..interpolation import same_side
from ..retargeting.alignment import NO_TURN, UP, carried_over, moved_root
from ..retargeting.feet import UPRIGHT, Sole, drops
from ..retargeting.figures import (
    MOST_LEGS,
    FigureMap,
    Limb,
    SourceMotion,
    TargetFigure,
    inverse,
    path_length,
    product,
    turned,
)
from ..retargeting.stances import find_stances, yielding_phases
from ..settings import ContactThresholds

ALIKE = 0.03
"""Leg lengths by which joints of legs in the first and last frame may differ for a clip to be one cycle."""
UNLIKE = 0.25
"""The same of the two frames that are most alike, from which a clip is no cycle."""
NEXT = 1.5
"""Usual steps from frame to frame up to which the last frame may be from the first, to lead on to it."""
HELD = 0.25
"""Part of a usual step below which the last step is a frame that is held, and leads nowhere."""
FEWEST = 4
"""Frames of a motion in which a cycle is looked for at least."""
LONGEST_SEARCH = 1200
"""Frames in which a cycle is looked for; longer clips are looked at up to there."""
SHORTEST = 0.25
"""Seconds of a cycle at least."""
STEPS = 0.3
"""Leg lengths that each foot goes in a cycle at least, there and back."""
IN_PLACE = 0.1
"""Leg lengths per second up to which a body that travels walks in place."""
SLOWEST = 0.05
"""Leg lengths per second of a walk at least."""
PREVIEW = 0.1
"""Seconds for which velocities count as much as places where frames are compared."""
PLANTED = 0.5
"""Part of the frames in which a foot is low and does not go ahead of the figure that it rests on the ground
at least; below that it slides."""
GOING = 0.5
"""Part of the figure's speed from which a foot goes ahead: one that stands has none over the ground."""
LONG = 0.35
"""Part of a leg's length from which the bone at its end, without a ball, is one of its links and no foot."""


@dataclass(frozen=True, eq=False)
class WalkLeg:
    """A leg and what of it stands on the ground."""

    limb: Limb  # its joints; `end` is the foot
    sole: Sole  # the ball is what is locked
    flat: bool  # whether the foot lies on the ground with its heel, as that of a person; not that of a cat
    # Whether the last bone turns as the leg needs it, as that of a spider; else as in the cycle.
    is_free: bool
    length: float  # from hip to ankle, metres

    @classmethod
    def of(cls, target: TargetFigure, limb: Limb, has_soles: bool = True) -> WalkLeg:
        """A leg as in the reference pose.

        A leg without a ball stands on the lower end of its last bone, and so does one whose toes stand on
        end: they are its last link then, and its toes begin with the next bone, if there is one. Figures on
        more than four legs have no soles, but ends.
        """
        heads, rotations = target.reference
        if limb.tip and _stands_on_end(target, limb.tip):
            joints = {joint.name for joint in target.skeleton.joints}
            tip = next((name for name in limb.toes if name in joints), "")
            if tip and _stands_on_end(target, tip):
                tip = ""
            toes = limb.toes[limb.toes.index(tip) + 1 :] if tip else ()
            limb = replace(limb, end=limb.tip, tip=tip, bends=(*limb.bends, limb.end), toes=toes)
        sole, foot = Sole.of(target, limb), target.index(limb.end)
        names = [target.skeleton.joints[i].name for i in target.skeleton.chain(limb.end)]
        chain = names[names.index(limb.upper) :]
        length = path_length([heads[target.index(name)] for name in chain])
        if not length > 0.0:
            raise InvalidInput(
                f"{limb.name}: its bones have no length: choose bones from the hip to the foot"
            )
        ball, is_free = turned(rotations[foot], sole.ball), False
        if not limb.tip:
            bone = np.array((0.0, target.scale * target.skeleton.joints[foot].length, 0.0))
            ball = turned(rotations[foot], bone)
            if ball[2] >= 0.0:  # a tail that an importer guessed: it stands on the ground below its joint
                none = np.zeros(3)
                is_free = not has_soles or sole.height > LONG * length
                sole = replace(sole, ball=sole.under, under=none, heel=none, height=0.0)
                return cls(limb, sole, False, is_free, length)
            is_free = not has_soles or float(np.linalg.norm(bone)) > LONG * length
            down = np.array((0.0, 0.0, target.ground - heads[foot, 2] - ball[2]))
            behind = -1.3 * ball * (1.0, 1.0, 0.0) + down
            back = inverse(rotations[foot])
            sole = replace(
                sole, ball=bone, under=turned(back, down), heel=turned(back, behind), height=float(-down[2])
            )
        flat = has_soles and -ball[2] < UPRIGHT * float(np.hypot(*ball[:2]))
        if not flat:  # what is behind the ankle is in the air
            sole = replace(sole, heel=sole.under)
        return cls(limb, sole, flat, is_free and not flat, length)

    def sole_points(self, feet: Array, toes: Array | None) -> list[Array]:
        """(F, 3) each from the ball to a point of the sole, world, of rotations (F, 4) of foot and toes.

        A leg that stands on the end of a bone is round there: it rolls over what is straight below.
        """
        under = turned(feet, self.sole.under)
        if not (self.flat or self.limb.tip):
            under = np.broadcast_to((0.0, 0.0, -self.sole.height), under.shape)
        points = [under]
        if self.flat:
            points.append(turned(feet, self.sole.heel))
        if toes is not None and self.sole.toe is not None:
            points.append(turned(toes, self.sole.toe))
        return points


def _stands_on_end(target: TargetFigure, tip: str) -> bool:
    """Whether a joint at rest leads down to the ground more than along it."""
    i = target.index(tip)
    tail = turned(
        target.reference[1][i], np.array((0.0, target.scale * target.skeleton.joints[i].length, 0.0))
    )
    return bool(-tail[2] > np.hypot(*tail[:2]))


@dataclass(frozen=True)
class Stance:
    """A time in which a foot is down."""

    # Seconds of the cycle; the first lies in its period, the last may lie beyond.
    first: float
    last: float
    # Metres of the straight line on which the ball rests.
    along: float
    aside: float
    turn: float = 0.0  # radians about the vertical by which the foot is turned from its stances of the cycle


@dataclass(frozen=True, eq=False)
class FootCycle:
    """The motion of a foot in a period of K frames."""

    stances: Sequence[Stance]  # in order
    before: float  # metres of the ball ahead of the cycle's frame in the middle of its stances
    # (K, 3) joint at the ball in the cycle's frame, Z from its height in a stance; locked in stances.
    balls: Array
    feet: Array  # (K, 4) rotations
    toes: Array | None  # (K, 4) rotations, or None

    @property
    def aside(self) -> float:
        """Metres of the ball to the left in its stances on average; of one that is never down, in all."""
        return float(np.mean([each.aside for each in self.stances] or self.balls[:, 1]))


@dataclass(frozen=True, eq=False)
class Cycle:
    """K frames of a period, see above."""

    figure_map: FigureMap  # the figure's joints and legs
    target: TargetFigure
    legs: Sequence[WalkLeg]  # that stand on the ground
    step: float  # seconds from one frame to the next
    speed: float  # metres per second over the ground
    rotations: Array  # (K, n, 4) relative to rest; those of the hips are without meaning
    hips: Array  # (K, 3) of the joint
    hip_turns: Array  # (K, 4) its rotation
    feet: Mapping[str, FootCycle]  # by leg
    frames: tuple[int, int]  # first and last frame of the motion that are the period

    @cached_property
    def joints(self) -> tuple[Array, Array]:
        """(K, n, 3) heads and (K, n, 4) rotations of the joints in its frame."""
        return posed(self.figure_map, self.target, self.rotations, self.hips, self.hip_turns)

    @property
    def period(self) -> float:
        """Seconds."""
        return self.step * len(self.hips)

    @property
    def stride_time(self) -> float:
        """Seconds from a step of a foot to its next: a clip may have several in its period."""
        counts = [len(foot.stances) for foot in self.feet.values() if foot.stances]
        return self.period / min(counts, default=1)

    @property
    def stride(self) -> float:
        """Metres in that time."""
        return self.speed * self.stride_time

    @property
    def down(self) -> float:
        """Part of the period in which a foot is down, on average."""
        spans = [each.last - each.first + self.step for foot in self.feet.values() for each in foot.stances]
        return sum(spans) / (self.period * len(self.feet))

    @property
    def leg(self) -> float:
        """Metres of the shortest leg."""
        return min(leg.length for leg in self.legs)


@dataclass(frozen=True, eq=False)
class StandingFoot:
    """A foot that stands, in the cycle's frame."""

    place: Array | None  # (2,) of the ball; None for where the cycle has it then
    foot: Array  # (4,) rotation
    toe: Array | None  # (4,), or None


@dataclass(frozen=True, eq=False)
class Standing:
    """The pose of a figure before and after its walk, in the cycle's frame."""

    rotations: Array  # (n, 4) relative to rest; without meaning for the hips
    hips: Array  # (3,) of the joint
    hip_turn: Array  # (4,) rotation of the hips
    heads: Array  # (n, 3) of all joints
    feet: Mapping[str, StandingFoot]  # by leg


def cycle_of(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, thresholds: ContactThresholds
) -> Cycle:
    """The cycle in a figure's motion.

    Args:
        source: its motion; frames are evenly apart.

    Raises:
        InvalidInput: it does not repeat, stays in place without ground that moves, or no foot is ever down.
    """
    if not figure_map.legs:
        raise InvalidInput("the figure has no legs to walk on: map a leg")
    has_soles = len(figure_map.legs) <= MOST_LEGS
    legs = [WalkLeg.of(target, limb, has_soles) for limb in figure_map.legs]
    figure_map = replace(figure_map, legs=tuple(leg.limb for leg in legs))
    if len(source.times) < FEWEST:
        raise InvalidInput(f"a cycle needs four frames or more, not {len(source.times)}: give its frames")
    step = float(np.median(np.diff(source.times)))
    size = min(leg.length for leg in legs)
    first, count, is_open = _period(figure_map, source, legs, step, size)
    rows = np.arange(first, first + count + (not is_open))
    chosen = replace(
        source, times=source.times[rows], heads=source.heads[rows], rotations=source.rotations[rows]
    )
    still = dict.fromkeys(figure_map.sources, NO_TURN)
    rotations = carried_over(figure_map, target, chosen, still)
    hips = chosen.heads[:, source.index(figure_map.sources[figure_map.hips])]
    turns = chosen.rotations[:, source.index(figure_map.sources[figure_map.hips])]
    if is_open:
        after = 2.0 * hips[-1] - hips[-2]
        hips = np.concatenate((hips, [(*after[:2], hips[0, 2])]))
    else:
        hips, turns = _straightened(chosen, hips, turns)
        turns, rotations = _closed(turns), _closed(rotations)
    hips = hips - np.linspace(0.0, 1.0, count + 1)[:, None] * (hips[-1] - hips[0]) * (0.0, 0.0, 1.0)
    travel = (hips[-1] - hips[0]) / (count * step)
    times = np.arange(count) * step
    hips, turns, rotations = hips[:count] - travel * times[:, None], turns[:count], rotations[:count]
    return _walked(
        figure_map, target, legs, (first, first + count), step, travel, thresholds, (rotations, hips, turns)
    )


def _walked(
    figure_map: FigureMap,
    target: TargetFigure,
    legs: Sequence[WalkLeg],
    frames: tuple[int, int],
    step: float,
    travel: Array,
    thresholds: ContactThresholds,
    pose: tuple[Array, Array, Array],
) -> Cycle:
    """The cycle of a closed motion: (K, n, 4) rotations, (K, 3) hips without their travel, (K, 4) turns."""
    rotations, hips, turns = pose
    count, size = len(hips), min(leg.length for leg in legs)
    heads, world = posed(figure_map, target, rotations, hips, turns)
    times = np.arange(3 * count, dtype=np.float64) * step
    balls = {leg.limb.name: _ball(target, leg, heads, world) for leg in legs}
    still: Array = np.zeros(3)
    if np.linalg.norm(travel) < IN_PLACE * size:
        thrice = [np.tile(each, (3, 1)) for each in balls.values()]
        still = ground_velocity(thrice, times, size, thresholds, moves=True)
    velocity = travel - still
    speed = float(np.linalg.norm(velocity[:2]))
    if speed < SLOWEST * size:
        raise InvalidInput(
            lambda metres: (
                f"the cycle goes nowhere: {metres * speed:.3g} m/s over the ground, on which its feet stay "
                "or go ahead as far as back; choose a motion that walks, in place or along the ground, or "
                "the frames of one period alone"
            )
        )
    yaw_turn = batch.axis_rotation(UP, -batch.arctan2(velocity[1], velocity[0]))
    middle = hips.mean(axis=0) * (1.0, 1.0, 0.0)
    heads, hips = turned(yaw_turn, heads - middle), turned(yaw_turn, hips - middle)
    world, turns = product(yaw_turn, world), product(yaw_turn, turns)
    balls = {name: turned(yaw_turn, each - middle) for name, each in balls.items()}
    way = np.array((speed, 0.0, 0.0)) * times[:, None]
    walked = np.tile(heads, (3, 1, 1)) + way[:, None]
    for leg in legs:
        if not leg.limb.tip:
            walked[:, target.index(leg.limb.end)] = np.tile(balls[leg.limb.name], (3, 1)) + way
    names = tuple(joint.name for joint in target.skeleton.joints)
    reference = target.reference
    motion = SourceMotion(names, times, walked, np.tile(world, (3, 1, 1)), *reference)
    themselves = replace(figure_map, sources={name: name for name in figure_map.sources})
    ahead = np.array((1.0, 0.0, 0.0))
    lows = {leg.limb.name: float(balls[leg.limb.name][:, 2].min()) - leg.sole.height for leg in legs}

    def stances_of(thresholds: ContactThresholds) -> Mapping[str, Sequence[Phase]]:
        phases = find_stances(motion, themselves, thresholds).phases
        yielding = {  # a foot that is held up all the time is none of them
            name: yielding_phases(np.tile(each, (3, 1)), times, size, ahead, thresholds)
            if lows[name] - min(lows.values()) < thresholds.height * size
            else []
            for name, each in balls.items()
        }
        if any(_length(phases[name], count) < PLANTED * _length(yielding[name], count) for name in balls):
            phases = {name: yielding[name] or each for name, each in phases.items()}
        return phases

    phases = stances_of(thresholds)
    if any(_is_endless(each, count) for each in phases.values()):
        # Long legs that take small steps, such as an insect's, are slow even where they go ahead.
        slow = min(thresholds.speed, GOING * speed / size)
        phases = stances_of(replace(thresholds, speed=slow))
    spans: dict[str, list[tuple[int, int]]] = {}
    for leg in legs:
        name = leg.limb.name
        period_spans = [
            (p.first - count, p.last - count) for p in phases[name] if count <= p.first < 2 * count
        ]
        if _is_endless(phases[name], count):
            raise InvalidInput(f"the {name} never leaves the ground in the cycle: choose a motion that walks")
        spans[name] = period_spans
    if not any(spans.values()):
        raise InvalidInput("no foot is ever down in the cycle: choose a motion that walks")
    _require_steps(balls, spans, speed * count * step)
    if still.any():
        speed = _speed(balls, spans, step, speed)
    low = [
        float(np.median(balls[leg.limb.name][np.arange(first, last + 1) % count, 2])) - leg.sole.height
        for leg in legs
        for first, last in spans[leg.limb.name]
    ]
    up = np.array((0.0, 0.0, float(np.mean(low))))
    feet = {}
    for leg in legs:
        name, limb = leg.limb.name, leg.limb
        rise = balls[name] - up - np.array((0.0, 0.0, leg.sole.height))
        toes = world[:, target.index(limb.tip)] if limb.tip else None
        locked, stances = _locked(rise, spans[name], step, speed)
        middles = [each.along - 0.5 * speed * (each.first + each.last) for each in stances]
        before = float(np.mean(middles)) if middles else float(locked[:, 0].mean())
        feet[name] = FootCycle(stances, before, locked, world[:, target.index(limb.end)], toes)
    return Cycle(figure_map, target, legs, step, speed, same_side(rotations), hips - up, turns, feet, frames)


def _require_steps(
    balls: Mapping[str, Array], spans: Mapping[str, Sequence[tuple[int, int]]], way: float
) -> None:
    """Raise InvalidInput if every foot goes farther there and back in a step than the figure goes ahead.

    A foot that stands goes back as far as the figure goes ahead meanwhile, and that is less than in a step.

    Args:
        balls: by leg (K, 3) of the cycle's frame.
        spans: by leg, first and last row of its stances.
        way: metres of the figure in the period.
    """
    parts = {name: np.ptp(balls[name][:, 0]) * len(each) / way for name, each in spans.items() if each}
    name = min(parts, key=lambda each: parts[each])
    if parts[name] > 1.0:
        far, ahead = (float(each) / len(spans[name]) for each in (parts[name] * way, way))
        raise InvalidInput(
            lambda metres: (
                f"the motion does not walk: in a step the figure goes {metres * ahead:.2g} m, and its feet "
                f"{metres * far:.2g} m or more there and back; choose a motion that walks, or the frames of "
                "one period alone"
            )
        )


def _is_endless(phases: Sequence[Phase], count: int) -> bool:
    """Whether a phase takes all frames of a period."""
    return any(last - first >= count for first, last in phases)


def _length(phases: Sequence[Phase], count: int) -> int:
    """Frames of the phases that begin in the second of three periods."""
    return sum(last - first + 1 for first, last in phases if count <= first < 2 * count)


def standing_on_average(cycle: Cycle) -> Standing:
    """The average pose of a cycle, with feet as in stances.

    Its height is the largest of the cycle, but no more than legs as long as there allow: a run is in the air.
    """
    hips = np.array((*cycle.hips[:, :2].mean(axis=0), cycle.hips[:, 2].max()))
    turn = mean_rotation(cycle.hip_turns)
    rotations = mean_rotation(cycle.rotations)
    heads, world = posed(cycle.figure_map, cycle.target, rotations[None], hips[None], turn[None])
    walked, _ = cycle.joints
    feet, lack = {}, 0.0
    for leg in cycle.legs:
        name, limb = leg.limb.name, leg.limb
        foot, upper, end = cycle.feet[name], *(cycle.target.index(each) for each in (limb.upper, limb.end))
        rotation = world[0, end]
        toe = world[0, cycle.target.index(limb.tip)] if limb.tip else None
        if foot.stances:
            middle = np.array([0.5 * (foot.stances[0].first + foot.stances[0].last) / cycle.step])
            rotation = sampled(foot.feet, middle)[0]
            toe = None if foot.toes is None else sampled(foot.toes, middle)[0]
        feet[name] = StandingFoot(None, rotation, toe)
        below = np.array((foot.before, foot.aside, leg.sole.height)) - turned(rotation, leg.sole.ball)
        reach = batch.length(walked[:, end] - walked[:, upper], -1).max(keepdims=True)
        lack = max(lack, float(drops(heads[:, upper], below[None], reach, np.ones(1))[0]))
    down = np.array((0.0, 0.0, lack))
    hips, heads = hips - down, heads - down
    return Standing(rotations, hips, turn, heads[0], feet)


def standing_of(cycle: Cycle, source: SourceMotion) -> Standing:
    """The pose of a motion of one frame, turned to face as in the cycle, its feet centred on footfalls."""
    figure_map, target = cycle.figure_map, cycle.target
    still = dict.fromkeys(figure_map.sources, NO_TURN)
    rotations = carried_over(figure_map, target, source, still)
    at = source.index(figure_map.sources[figure_map.hips])
    turn, hips = source.rotations[:1, at], source.heads[:1, at]
    yaw_turn = batch.axis_rotation(UP, yaw_of(product(mean_rotation(cycle.hip_turns), inverse(turn[0]))))
    turn, hips = product(yaw_turn, turn), turned(yaw_turn, hips)
    heads, world = posed(figure_map, target, rotations, hips, turn)
    balls = {leg.limb.name: _ball(target, leg, heads, world)[0] for leg in cycle.legs}
    over = [balls[leg.limb.name] - np.array((0.0, 0.0, leg.sole.height)) for leg in cycle.legs]
    beside = [np.mean([each.aside for each in foot.stances] or [0.0]) for foot in cycle.feet.values()]
    middle = np.array((np.mean([foot.before for foot in cycle.feet.values()]), np.mean(beside), 0.0))
    shift = middle - np.mean(over, axis=0)
    feet = {}
    for leg in cycle.legs:
        toe = world[0, target.index(leg.limb.tip)] if leg.limb.tip else None
        place = (balls[leg.limb.name] + shift)[:2]
        feet[leg.limb.name] = StandingFoot(place, world[0, target.index(leg.limb.end)], toe)
    return Standing(rotations[0], hips[0] + shift, turn[0], heads[0] + shift, feet)


def mean_rotation(rotations: Array) -> Array:
    """(..., 4) of (K, ..., 4) near each other."""
    total = same_side(rotations).sum(axis=0)
    sizes = batch.length(total, -1)[..., None]
    return np.where(sizes > 1e-9, total / np.maximum(sizes, 1e-9), rotations[0])


def yaw_of(rotation: Array) -> float:
    """Radians between -pi and pi by which a rotation (4,) turns about the vertical; 0 where it turns over."""
    w, _, _, z = rotation if rotation[0] >= 0.0 else -rotation
    return float(2.0 * batch.arctan2(z, w)) if w or z else 0.0


def with_stride(cycle: Cycle, factor: float) -> Cycle:
    """The cycle with steps that are longer by a factor, in the same time."""
    if factor == 1.0:
        return cycle
    feet = {}
    for name, foot in cycle.feet.items():
        middle, balls = foot.before, foot.balls.copy()
        balls[:, 0] = middle + factor * (balls[:, 0] - middle)
        stances = [replace(each, along=middle + factor * (each.along - middle)) for each in foot.stances]
        feet[name] = replace(foot, balls=balls, stances=stances)
    return replace(cycle, speed=factor * cycle.speed, feet=feet)


def posed(
    figure_map: FigureMap, target: TargetFigure, rotations: Array, hips: Array, turns: Array
) -> tuple[Array, Array]:
    """(F, n, 3) heads and (F, n, 4) rotations in the world, of (F, n, 4) rotations relative to rest with the
    hips at (F, 3) turned as (F, 4)."""
    return target.world(*placed(figure_map, target, rotations, hips, turns))


def placed(
    figure_map: FigureMap, target: TargetFigure, rotations: Array, hips: Array, turns: Array
) -> tuple[Array, Array]:
    """The same as rotations and (F, n, 3) translations relative to rest."""
    i = target.index(figure_map.hips)
    joint, rotations = target.skeleton.joints[i], rotations.copy()
    translations = np.tile(target.translations, (len(hips), 1, 1))
    heads, turned_model = target.model(rotations, translations)
    world = product(target.turn, turned_model)
    follows = joint.parent >= 0 and joint.inherit_rotation
    base = world[:, joint.parent] if follows else target.turn
    rotations[:, i] = product(inverse(product(base, target.rests[i])), turns)
    return rotations, moved_root(
        figure_map, target, world, translations, hips - target.points_to_world(heads[:, i])
    )


def sampled(values: Array, at: Array) -> Array:
    """Values (K, ...) of a period at places (F,) in frames, of any size: cubic through neighbours (Catmull
    and Rom 1974, "A Class of Local Interpolating Splines"). Unit quaternions stay unit."""
    count = len(values)
    start = np.floor(at)
    u = (at - start).reshape(-1, *(1,) * (values.ndim - 1))
    k = start.astype(np.intp)
    a, b, c, d = (values[(k + j) % count] for j in (-1, 0, 1, 2))
    is_rotation = values.shape[-1] == 4
    if is_rotation:
        a, c = (np.where(batch.dot(each, b, -1)[..., None] < 0.0, -each, each) for each in (a, c))
        d = np.where(batch.dot(d, c, -1)[..., None] < 0.0, -d, d)
    values = b + 0.5 * u * (c - a + u * (2.0 * a - 5.0 * b + 4.0 * c - d + u * (3.0 * (b - c) + d - a)))
    return batch.unit(values, -1) if is_rotation else np.asarray(values)


def _ball(target: TargetFigure, leg: WalkLeg, heads: Array, world: Array) -> Array:
    foot = target.index(leg.limb.end)
    return np.asarray(heads[:, foot] + turned(world[:, foot], leg.sole.ball))


def _period(
    figure_map: FigureMap, source: SourceMotion, legs: Sequence[WalkLeg], step: float, size: float
) -> tuple[int, int, bool]:
    """First frame of the period, its count of frames, and whether the frame after it is missing."""
    count = min(len(source.times), LONGEST_SEARCH)
    hips = source.heads[:count, source.index(figure_map.sources[figure_map.hips])]
    names = dict.fromkeys(name for leg in legs for name in leg.limb.joints)
    joints = [source.index(figure_map.sources[name]) for name in names]
    ends = {leg.limb.name: joints[list(names).index(leg.limb.end)] for leg in legs}
    seen = (source.heads[:count, joints] - hips[:, None]) / size
    rates = np.gradient(seen, step, axis=0) * PREVIEW
    flat = np.concatenate((seen.reshape(count, -1), rates.reshape(count, -1)), axis=1)

    def apart(a: Array, b: Array) -> float:
        return float(np.sqrt(((a - b) ** 2).sum() / len(joints)))

    gap, after = apart(seen[0], seen[-1]), seen[-1] + (seen[-1] - seen[-2])
    ahead, is_whole = apart(seen[0], after), count == len(source.times)
    if is_whole and ahead < min(ALIKE, gap):
        return 0, count, True
    if is_whole and gap < ALIKE:
        return 0, count - 1, False
    squares = (flat**2).sum(axis=1)
    errors = np.sqrt(np.maximum(0.0, squares[:, None] + squares[None] - 2.0 * flat @ flat.T) / len(joints))
    shortest = max(3, round(SHORTEST / step))
    allowed = np.subtract.outer(np.arange(count), np.arange(count)) <= -shortest
    for leg in legs:
        foot = seen[:, joints.index(ends[leg.limb.name])]
        gone = np.concatenate(([0.0], np.cumsum(batch.length(np.diff(foot, axis=0), -1))))
        allowed &= gone[None] - gone[:, None] >= STEPS
    errors[~allowed] = np.inf
    best = float(errors.min())
    steps = [apart(a, b) for a, b in pairwise(seen)]
    usual = float(np.median(steps))
    leads_on = ahead < gap or steps[-1] < HELD * usual
    if not best < UNLIKE and is_whole and gap <= NEXT * usual and leads_on:
        return 0, count, True  # few frames of a fast cycle, of which the last leads on to the first
    if not best < UNLIKE:
        raise InvalidInput(
            "the motion does not repeat: no two of its frames are alike with a step of each foot between; "
            "choose a cycle, or the frames of one"
        )
    # Of frames about as much alike those nearest to each other are one period rather than several.
    a, b = np.argwhere(errors <= 1.25 * best + 0.1 * ALIKE).T
    k = int(np.lexsort((a, b - a))[0])
    return int(a[k]), int(b[k] - a[k]), False


def _straightened(source: SourceMotion, hips: Array, turns: Array) -> tuple[Array, Array]:
    """Hips and their rotations with the turn from the first frame to the last (Kabsch 1976, in the plane)
    taken off evenly, so that the path is straight."""
    a, b = ((source.heads[k] - hips[k])[:, :2] for k in (0, -1))
    yaw = float(batch.arctan2((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum(), (a * b).sum()))
    shares: Array = np.linspace(0.0, 1.0, len(hips), dtype=np.float64)
    yaw_turn = batch.axis_rotation(UP, -yaw * shares)
    mid = batch.slerp(yaw_turn[:-1], yaw_turn[1:], np.full(len(hips) - 1, 0.5), -1)
    steps = turned(mid, np.diff(hips, axis=0))
    return hips[0] + np.concatenate((np.zeros((1, 3)), np.cumsum(steps, axis=0))), product(yaw_turn, turns)


def _closed(rotations: Array) -> Array:
    """Rotations (F, ..., 4) whose last is their first; the gap is spread evenly, half to both sides."""
    gap = product(rotations[0], inverse(rotations[-1]))
    vector = batch.logarithm(np.moveaxis(np.where(gap[..., :1] < 0.0, -gap, gap), -1, 0))
    shares = np.linspace(-0.5, 0.5, len(rotations), dtype=np.float64).reshape(-1, *(1,) * (gap.ndim - 1))
    return product(
        np.ascontiguousarray(np.moveaxis(batch.exponential(vector[:, None] * shares), 0, -1)), rotations
    )


def _speed(
    balls: Mapping[str, Array], spans: Mapping[str, Sequence[tuple[int, int]]], step: float, speed: float
) -> float:
    """Metres per second at which feet that are down go back, on average over their frames."""
    ways, seconds = 0.0, 0.0
    for name, each in spans.items():
        for first, last in each:
            edges = balls[name][[first % len(balls[name]), last % len(balls[name])], 0]
            ways += float(edges[0] - edges[1])
            seconds += (last - first) * step
    return ways / seconds if seconds > 0.0 and ways > 0.0 else speed


BLEND = 0.15
"""Seconds beyond a stance in which a foot blends into its motion."""


def _locked(
    balls: Array, spans: Sequence[tuple[int, int]], step: float, speed: float
) -> tuple[Array, list[Stance]]:
    """(K, 3) balls that rest in each span, and the stances.

    The shift that locks them fades beyond as in `retargeting.feet`: a cubic that starts with its value and
    its velocity.
    """
    count = len(balls)
    over = balls + np.array((speed * step, 0.0, 0.0)) * np.arange(count)[:, None]

    def at(k: Indices) -> Array:
        shift = np.zeros((len(k), 3))
        shift[:, 0] = speed * step * count * np.floor_divide(k, count)
        return np.asarray(over[k % count] + shift)

    offsets, stances = np.zeros_like(balls), []
    for i, (first, last) in enumerate(spans):
        rows = np.arange(first, last + 1)
        rest = at(rows).mean(axis=0) * (1.0, 1.0, 0.0)
        offsets[rows % count] = rest - at(rows)
        stances.append(Stance(first * step, last * step, float(rest[0]), float(rest[1])))
        before = spans[i - 1][1] - (count if i == 0 else 0)
        after = spans[(i + 1) % len(spans)][0] + (count if i + 1 == len(spans) else 0)
        for edge, end, sign in ((first, before, -1), (last, after, 1)):
            room = min(max(2, round(BLEND / step)), abs(end - edge))
            k = np.arange(1, room)
            u = (k / room)[:, None]
            way = rest - at(np.array([edge]))
            rate = -0.5 * (at(np.array([edge + 1])) - at(np.array([edge - 1]))) * sign
            offsets[(edge + sign * k) % count] += (1.0 + 2.0 * u) * (1.0 - u) ** 2 * way + room * u * (
                1.0 - u
            ) ** 2 * rate
    return balls + offsets, stances
