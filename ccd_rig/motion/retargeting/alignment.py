"""Carry rotations of the source over to the target, whose reference pose is turned to the source's.

A joint's correction M is computed from the body outwards. Let its bone's direction be d in the target's
reference pose and e in the source's, and M' the correction of the joint above. M is M' followed by the
shortest rotation from M' d to e. Differences between the reference poses, such as hanging or spread arms, go
into the joint concerned, without twist. Where both figures bend clearly at a knee or an elbow, the bend
determines the twist.

Hips and spine are aligned by two directions, across the body and up along it, hands by the fingers. A
standing foot is flat for either figure: only its heading is aligned. Then

    target rotation(f) = source rotation(f)  source reference^-1  M  target reference

Rotations are carried over joint by joint from the hips out. A rotation relative to rest is clamped to its
limit; joints further out compensate for clamped ones. Unmapped joints keep the reference pose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...limits.shapes import BatchLimits
from ...maths import batch
from ...maths.batch import Array
from ..interpolation import same_side
from .figures import (
    FigureMap,
    Figures,
    Limb,
    SourceMotion,
    TargetFigure,
    inverse,
    product,
    turned,
)

UP = np.array((0.0, 0.0, 1.0))
NO_TURN = np.array((1.0, 0.0, 0.0, 0.0))
CLEAR_BEND = 0.05
"""Sine of the angle of a knee or elbow from which its side is clear."""
TINY = 1e-9
STEEPEST = np.radians(75.0)
"""Slope of a trunk on two pairs of legs up to which it is fitted to its legs."""
ON_END = 0.1, 0.5
"""Part of a trunk's length along the ground up to which its slope stays, and from which it is fitted."""


def corrections(figures: Figures, level: Mapping[str, Array]) -> dict[str, Array]:
    """By mapped target joint, (4,) the correction M in the world, by the reference poses.

    Args:
        level: by foot and by toes of the target, (4,) rotation of the source's in its reference pose that
            makes it stand flat; none for feet that do.
    """
    figure_map, turns = figures.map, _trunk(figures)
    legs = {limb.end: limb for limb in figure_map.legs}
    tips = {limb.tip: limb for limb in figure_map.legs if limb.tip}
    arms = {limb.end for limb in figure_map.arms}
    bends = {name: limb for limb in figure_map.limbs for name in (limb.upper, limb.middle)}
    heading = _heading(turns[figure_map.hips])
    for joint in figures.target.skeleton.joints:
        name = joint.name
        if name not in figure_map.sources or name in turns:
            continue
        above = _above(figures, name, turns)
        if name == figure_map.head:
            turns[name] = heading
        elif name in legs or name in tips:
            turns[name] = _foot(figures, level, name, legs.get(name) or tips[name], heading)
        elif name in arms:
            turns[name] = _hand(figures, name, above)
        else:
            turns[name] = _segment(figures, name, above, bends.get(name))
    return turns


def shortest(a: Array, b: Array) -> Array:
    """(..., 4) shortest rotations between vectors (..., 3); identity where one of them is zero."""
    a, b = np.broadcast_arrays(_unit(a), _unit(b))
    middle = np.concatenate((1.0 + batch.dot(a, b, -1)[..., None], batch.cross(a, b, -1)), axis=-1)
    opposite = batch.length(middle, -1) < 1e-6
    if opposite.any():
        axes = batch.cross(a, np.eye(3)[np.argmin(np.abs(a), axis=-1)], -1)
        middle[opposite] = np.concatenate((np.zeros((*a.shape[:-1], 1)), _unit(axes)), -1)[opposite]
    none = (batch.length(a, -1) < 0.5) | (batch.length(b, -1) < 0.5)
    middle[none] = NO_TURN
    return batch.unit(middle, -1)


def _line(head: Callable[[str], Array], a: str, b: str) -> Array:
    """(3,) from one joint to another, whose heads are given by name."""
    return np.asarray(head(b) - head(a))


def _unit(vectors: NDArray[Any]) -> Array:
    lengths = batch.length(vectors, -1)[..., None]
    return np.where(lengths > TINY, vectors / np.maximum(lengths, TINY), 0.0)


# Parts of the body --------------------------------------------------------------------------------


def _trunk(figures: Figures) -> dict[str, Array]:
    """Corrections of hips and spine: both ends by the directions across and up, joints between by slerp.

    The pitch of a body on four legs follows from the lengths of its legs, and a body without legs has none to
    match: only the heading is aligned.
    """
    figure_map = figures.map
    shoulders = list(figure_map.shoulders)
    if not figure_map.legs:
        lines = [
            np.mean([_line(head, figure_map.hips, name) for name in shoulders], axis=0)
            for head in (figures.target_head, figures.source_head)
        ]
        turn = _turn_on_axis(UP, *(line * (1.0, 1.0, 0.0) for line in lines))
        return dict.fromkeys(figure_map.body, turn)
    uppers = [limb.upper for limb in figure_map.hind_legs]
    lower = _two_ways(figures, uppers, uppers, shoulders)
    if len(uppers) < len(figure_map.legs):
        return dict.fromkeys(figure_map.body, _heading(lower))
    upper = lower if len(shoulders) < 2 else _two_ways(figures, shoulders, uppers, shoulders)
    low = [name for name in (figure_map.hips, figure_map.pelvis) if name]
    trunk = tuple(name for name in figure_map.trunk if name not in low)
    shares = (np.arange(len(trunk)) + 1.0) / max(len(trunk), 1)
    turns = dict.fromkeys(low, lower)
    for name, share in zip(trunk, shares, strict=True):
        turns[name] = batch.slerp(lower[None], upper[None], np.array([share]), -1)[0]
    return turns


def _two_ways(figures: Figures, across: list[str], low: list[str], high: list[str]) -> Array:
    """(4,) rotation between the frames of target and source, each made of a line across and a line up."""
    frames = []
    for head in (figures.target_head, figures.source_head):
        side = _line(head, across[0], across[-1])
        top, bottom = (np.mean([head(name) for name in names], axis=0) for names in (high, low))
        rise = top - bottom
        frames.append((_unit(side), _unit(rise)))
    (side, rise), (source_side, source_rise) = frames
    if (
        np.linalg.norm(np.cross(side, rise)) < TINY
        or np.linalg.norm(np.cross(source_side, source_rise)) < TINY
    ):
        return shortest(rise, source_rise)
    return product(_quaternion(source_side, source_rise), inverse(_quaternion(side, rise)))


def _quaternion(side: Array, rise: Array) -> Array:
    """(4,) the rotation with X axis `side`, and Z axis as near to `rise` as possible."""
    ahead = _unit(np.cross(rise, side))
    return batch.quaternions(np.stack((side, ahead, np.cross(side, ahead)), axis=1))


def _heading(correction: Array) -> Array:
    """(4,) the twist of a rotation about the vertical."""
    w, _, _, z = correction
    size = float(np.hypot(w, z))
    return NO_TURN if size < TINY else np.array((w / size, 0.0, 0.0, z / size))


def _above(figures: Figures, name: str, turns: dict[str, Array]) -> Array:
    """The correction of the nearest joint above that has one."""
    joints = figures.target.skeleton.joints
    for i in reversed(figures.target.skeleton.chain(name)[:-1]):
        if joints[i].name in turns:
            return turns[joints[i].name]
    return turns[figures.map.hips]


def _segment(figures: Figures, name: str, above: Array, limb: Limb | None) -> Array:
    """The correction of a bone to a single mapped joint; other bones take over the one above."""
    if limb is not None:
        below: tuple[str, ...] = (limb.middle if name == limb.upper else limb.end,)
    else:
        below = figures.map.nearest_mapped_below(figures.target.skeleton, name)
    if len(below) != 1:
        return above
    line, source_line = (_line(head, name, below[0]) for head in (figures.target_head, figures.source_head))
    correction = product(shortest(turned(above, line), source_line), above)
    if limb is None:
        return correction
    # Axes about which the limbs bend, as long as the sines of the bends.
    bend, source_bend = (
        np.asarray(
            np.cross(_unit(_line(head, limb.upper, limb.middle)), _unit(_line(head, limb.middle, limb.end)))
        )
        for head in (figures.target_head, figures.source_head)
    )
    if np.linalg.norm(bend) < CLEAR_BEND or np.linalg.norm(source_bend) < CLEAR_BEND:
        return correction
    axis = _unit(source_line)
    return product(_turn_on_axis(axis, turned(correction, bend), source_bend), correction)


def _turn_on_axis(axis: Array, a: Array, b: Array) -> Array:
    """(4,) the rotation about an axis between two vectors at right angles to it."""
    return batch.axis_rotation(axis, batch.arctan2(np.dot(axis, np.cross(a, b)), np.dot(a, b)))


def _foot(figures: Figures, level: Mapping[str, Array], name: str, limb: Limb, heading: Array) -> Array:
    """The correction of a foot or of its toes: it stays level, and the foot's heading is aligned."""
    correction = heading
    if limb.tip:
        line = turned(heading, _line(figures.target_head, limb.end, limb.tip))
        source_line = turned(level.get(limb.end, NO_TURN), _line(figures.source_head, limb.end, limb.tip))
        correction = product(
            _turn_on_axis(UP, line * (1.0, 1.0, 0.0), source_line * (1.0, 1.0, 0.0)), heading
        )
    return product(inverse(level.get(name, NO_TURN)), correction)


def _hand(figures: Figures, name: str, above: Array) -> Array:
    """The correction of a hand that aligns the directions of its fingers best (Wahba's problem)."""
    fingers = figures.map.nearest_mapped_below(figures.target.skeleton, name)
    if not fingers:
        return above
    lines = np.array([_unit(turned(above, _line(figures.target_head, name, each))) for each in fingers])
    source_lines = np.array([_unit(_line(figures.source_head, name, each)) for each in fingers])
    if len(fingers) < 2:
        return product(shortest(lines[0], source_lines[0]), above)
    left, _, right = np.linalg.svd(source_lines.T @ lines)
    sign = np.diag((1.0, 1.0, np.sign(np.linalg.det(left) * np.linalg.det(right))))
    return product(batch.quaternions(left @ sign @ right), above)


# Rotations ----------------------------------------------------------------------------------------


def carried_over(
    figure_map: FigureMap,
    target: TargetFigure,
    source: SourceMotion,
    corrections: Mapping[str, Array],
    trunk_turns: Array | None = None,
) -> Array:
    """(F, n, 4) rotations of the target relative to rest, inside the joints' limits.

    Args:
        corrections: by joint, see `corrections`.
        trunk_turns: (F, 4) further rotations of hips and spine in the world; see `trunk_pitch`.
    """
    _, reference = target.reference
    count, rests, joints = len(source.times), target.rests, target.skeleton.joints
    world = np.empty((count, len(joints), 4))
    local_rotations = np.tile(target.rotations, (count, 1, 1))
    mapped = [i for i, joint in enumerate(joints) if joint.name in figure_map.sources and not joint.locked]
    followed = [source.index(figure_map.sources[joints[i].name]) for i in mapped]
    corrected = product(
        inverse(source.reference_rotations[followed]), np.array([corrections[joints[i].name] for i in mapped])
    )
    world[:, mapped] = product(source.rotations[:, followed], product(corrected, reference[mapped]))
    if trunk_turns is not None:
        trunk = [i for i in mapped if joints[i].name in figure_map.body]
        world[:, trunk] = product(trunk_turns[:, None], world[:, trunk])

    def above(places: Sequence[int]) -> Array:
        """(F, K, 4) rotations of joints at rest under their parents."""
        bases = [
            target.turn
            if joints[i].parent < 0 or not joints[i].inherit_rotation
            else world[:, joints[i].parent]
            for i in places
        ]
        return product(np.stack([np.broadcast_to(each, (count, 4)) for each in bases], axis=1), rests[places])

    free = {i for i in mapped if joints[i].limit is None}
    for i in (i for i in range(len(joints)) if i not in free):  # parents first
        at_rest = above([i])[:, 0]
        limit = joints[i].limit
        if i in mapped and limit is not None:
            local = product(inverse(at_rest), world[:, i])
            local_rotations[:, i] = BatchLimits([limit]).project(local.T[:, None])[0][:, 0].T
        world[:, i] = product(at_rest, local_rotations[:, i])
    if free:
        places = sorted(free)
        local_rotations[:, places] = product(inverse(above(places)), world[:, places])
    return same_side(local_rotations)


def trunk_pitch(figures: Figures, rotations: Array, scale: float) -> Array | None:
    """(F, 4) rotations in the world that pitch a trunk on two pairs of legs; None for other figures.

    A trunk that is long for its legs carries one girdle too high and the other too low where it slopes as the
    source's: a sitting cat's hips would be in the ground. With these turns, front legs begin as much higher
    above hind legs than in the reference pose as the source's do, scaled. What both pairs sink is scaled by
    the length of each: where a source crouches, all legs fold alike. Turns fade to none where the trunk
    stands on end.

    Args:
        rotations: (F, n, 4) as carried over.
        scale: of lengths, from source to target.
    """
    figure_map, target, source = figures.map, figures.target, figures.source
    hind = figure_map.hind_legs
    front = [leg for leg in figure_map.legs if leg not in hind]
    if len(hind) != 2 or len(front) != 2 or not source.stands:
        return None

    def trunk(heads: Array, indices: Mapping[str, int]) -> Array:
        """(..., 3) from the middle of the hind hip joints to that of the front ones."""
        ends = [[heads[..., indices[leg.upper], :] for leg in legs] for legs in (hind, front)]
        return np.asarray(np.mean(ends[1], axis=0) - np.mean(ends[0], axis=0))

    def reach(heads: Array, indices: Mapping[str, int], legs: Sequence[Limb]) -> Array:
        """(...) height of the middle of a pair's hip joints above the lower of its ankles."""
        tops, ends = (
            np.array([heads[..., indices[name], 2] for name in names])
            for names in ([leg.upper for leg in legs], [leg.end for leg in legs])
        )
        return np.asarray(tops.mean(axis=0) - ends.min(axis=0))

    names = {name for leg in figure_map.legs for name in (leg.upper, leg.middle, leg.end)}
    ours = {name: target.index(name) for name in names}
    theirs = {name: figures.followed(name) for name in names}
    heads, _ = target.world(rotations, np.zeros((1, len(target.skeleton), 3)))
    lines = trunk(heads, ours)
    rises = trunk(source.heads, theirs)[:, 2] - trunk(source.reference_heads, theirs)[2]
    pairs = front, hind
    sinks = [
        reach(source.heads, theirs, legs) - reach(source.reference_heads, theirs, legs) for legs in pairs
    ]
    ratios = []
    for legs in pairs:
        leg_lengths, source_lengths = np.mean([figures.lengths(leg) for leg in legs], axis=0).tolist()
        ratios.append(leg_lengths / source_lengths)
    crouch = np.minimum(np.maximum(*sinks), 0.0)
    rises = rises + crouch * (ratios[0] - ratios[1]) / np.mean(ratios)
    wanted = trunk(target.reference[0], ours)[2] + scale * rises
    sizes, along = batch.length(lines, -1), batch.length(lines[:, :2], -1)
    steepest = np.sin(STEEPEST)
    pitches = np.arcsin(np.clip(wanted / np.maximum(sizes, TINY), -steepest, steepest))
    level = (along / np.maximum(sizes, TINY) - ON_END[0]) / (ON_END[1] - ON_END[0])
    angles = batch.smooth_step(level) * (pitches - batch.arctan2(lines[:, 2], along))
    axes = np.stack((lines[:, 1], -lines[:, 0], np.zeros(len(lines))), axis=1)
    axes /= np.maximum(along, TINY)[:, None]
    return batch.axis_rotation(axes, angles)


def moved_root(
    figure_map: FigureMap, target: TargetFigure, world: Array, translations: Array, shift: Array
) -> Array:
    """Translations (F, n, 3) with the hips shifted by (F, 3) world metres; `world`: (F, n, 4) of joints."""
    i = target.index(figure_map.hips)
    joint, moved = target.skeleton.joints[i], translations.copy()
    local = target.vectors_to_model(shift)
    if joint.parent >= 0:
        local = turned(inverse(target.rotations_to_model(world[:, joint.parent])), local)
    moved[:, i] += turned(inverse(target.rests[i]), local)
    return moved
