"""Cycles made by hand: feet that go back evenly while they are down, and swing ahead on an arc."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from mathutils import Vector

from ccd_rig.maths import batch
from ccd_rig.motion.retargeting.figures import FigureMap, SourceMotion, TargetFigure, product, turned
from ccd_rig.motion.walking.cycle import WalkLeg, placed
from ccd_rig.solvers.retarget_goals import add_place, add_turn, goals_met


def gait(
    target: TargetFigure,
    figure_map: FigureMap,
    starts: Mapping[str, float],
    *,
    frames: int = 32,
    fps: float = 30.0,
    stride: float = 1.0,
    duty: float = 0.6,
    lift: float = 0.1,
    sink: float = 0.06,
    ahead: tuple[float, float, float] = (0.0, -1.0, 0.0),
    in_place: bool = True,
    periods: float = 1.0,
) -> SourceMotion:
    """The motion of a figure that faces `ahead` at rest, last frame as the first; arguments as in `pose`."""
    named = {"frames": frames, "stride": stride, "duty": duty, "lift": lift, "sink": sink, "ahead": ahead}
    rotations, translations = pose(target, figure_map, starts, periods=periods, **named)
    heads, world = target.world(rotations, translations)
    if not in_place:
        along = stride * np.arange(len(heads)) / frames
        heads = heads + along[:, None, None] * np.array(ahead)
    names = tuple(joint.name for joint in target.skeleton.joints)
    return SourceMotion(names, np.arange(len(heads)) / fps, heads, batch.unit(world, -1), *target.reference)


def pose(
    target: TargetFigure,
    figure_map: FigureMap,
    starts: Mapping[str, float],
    *,
    frames: int,
    stride: float,
    duty: float,
    lift: float,
    sink: float,
    ahead: tuple[float, float, float],
    periods: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """(F, n, 4) rotations and (F, n, 3) translations of a figure that walks in place, relative to rest.

    Args:
        target: the figure at rest.
        figure_map: of the figure on itself.
        starts: by leg, part of the period at which its foot comes down.
        frames: of a period.
        stride: metres in a period.
        duty: part of the period in which a foot is down.
        lift: metres by which feet are lifted.
        sink: metres by which the hips are below their place at rest.
        ahead: unit direction.
        periods: how many.
    """
    count = round(frames * periods) + 1
    phase = np.arange(count) / frames
    way = np.array(ahead)
    hips = np.tile(target.reference[0][target.index(figure_map.hips)], (count, 1))
    hips[:, 2] -= sink + 0.01 * np.cos(4.0 * np.pi * phase)
    half = 0.03 * np.sin(2.0 * np.pi * phase)
    zeros = np.zeros(count)
    sway = np.stack((np.cos(half), zeros, zeros, np.sin(half)), axis=1)
    turns = product(sway, np.tile(target.reference[1][target.index(figure_map.hips)], (count, 1)))
    rest = np.tile(target.rotations, (count, 1, 1))
    held = placed(figure_map, target, rest, hips, turns)
    goals, targets = [], []
    across = np.cross(way, (0.0, 0.0, 1.0))
    for limb in figure_map.legs:
        leg = WalkLeg.of(target, limb, len(figure_map.legs) <= 4)
        limb = leg.limb
        foot = target.index(limb.end)
        u = (phase - starts[limb.name]) % 1.0
        down = u < duty
        v = np.where(down, 0.0, (u - duty) / (1.0 - duty))
        ease = v - np.sin(2.0 * np.pi * v) / (2.0 * np.pi)
        # The swing sets out and ends at the speed of the ground.
        back = duty * (0.5 - u / duty)
        swing = duty * (-0.5 + ease) - (1.0 - duty) * (v - ease)
        place = stride * np.where(down, back, swing)
        rise = lift * np.sin(np.pi * v) ** 2
        pitch = np.where(down, 0.0, 0.35 * np.sin(2.0 * np.pi * v) * np.sin(np.pi * v)) * leg.flat
        about = np.concatenate((np.cos(0.5 * pitch)[:, None], -np.sin(0.5 * pitch)[:, None] * across), axis=1)
        feet = product(about, np.tile(target.reference[1][foot], (count, 1)))
        ball = target.reference[0][foot] + turned(target.reference[1][foot], leg.sole.ball)
        balls = ball + place[:, None] * way + rise[:, None] * (0.0, 0.0, 1.0)
        chain = target.skeleton.chain(limb.end)
        length = len(chain) - chain.index(target.index(limb.upper))
        if limb.tip or leg.flat:
            add_place(
                goals, targets, limb.end, length, target.points_to_model(balls - turned(feet, leg.sole.ball))
            )
            add_turn(goals, targets, limb.end, length, target.rotations_to_model(feet))
        else:
            point = Vector(leg.sole.ball / target.scale)
            add_place(goals, targets, limb.end, length, target.points_to_model(balls), point)
            if not leg.is_free:
                add_turn(goals, targets, limb.end, length, target.rotations_to_model(feet))
    return goals_met(figure_map, target, held, goals, targets), held[1]
