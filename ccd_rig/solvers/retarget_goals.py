"""The goals of a retargeting and their solve: the head, then feet and hands, then knees and elbows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from mathutils import Quaternion, Vector

from ..goals import Goal, OrientationGoal, PositionGoal
from ..limits.shapes import BatchLimits
from ..maths import batch
from ..maths.batch import Array
from ..motion.retargeting.feet import FootPath
from ..motion.retargeting.figures import (
    STRAIGHT,
    FigureMap,
    Figures,
    Limb,
    TargetFigure,
    bend_axes,
    inverse,
    limb_length,
    past_straight,
    product,
)
from ..motion.retargeting.scaled_way import (
    Effector,
    ScaledWay,
    head_effector,
    limb_effectors,
    poles,
)
from ..motion.settings import RetargetSettings
from ..settings import SolverSettings
from ..skeleton.joints import Skeleton
from .many import solve_many

PRECISION = 1e-5
"""Position tolerance, in lengths of a leg."""
ANGLE_PRECISION = 1e-4
"""Angle tolerance, radians."""

NO_OFFSET = Vector((0.0, 0.0, 0.0))
Pose = tuple[Array, Array]
"""(F, n, 4) rotations and (F, n, 3) translations relative to rest."""


def with_effectors(
    figures: Figures, settings: RetargetSettings, way: ScaledWay, pose: Pose, paths: Mapping[str, FootPath]
) -> tuple[Array, dict[str, Array]]:
    """Solve the effectors of a carried-over pose.

    Args:
        settings: weights and spaces of effectors.
        way: from the source's world to the target's.
        pose: carried over.
        paths: of the feet, by leg.

    Returns:
        (F, n, 4) rotations, and by arm (F, 3) targets of the wrists.
    """
    figure_map, target = figures.map, figures.target
    carried = target.world(*pose)[1]
    with_head = _with_head(figures, settings, way, pose, carried), pose[1]
    effectors = limb_effectors(figures, settings)
    heads, _ = target.world(*with_head)
    moving = [limb for limb in figure_map.limbs if effectors[limb.name].weight > 0.0]
    hands = {arm.name: effectors[arm.name].wanted(heads, way) for arm in moving if arm in figure_map.arms}
    goals: list[Goal] = []
    targets: list[Array] = []
    for limb in moving:
        weight, i, path = effectors[limb.name].weight, target.index(limb.end), paths.get(limb.name)
        points = hands[limb.name] if path is None else path.ankles
        turns = carried[:, i]
        if path is not None:
            turns = batch.slerp(turns, path.feet, np.full(len(turns), weight), -1)
        chain = target.skeleton.chain(limb.end)
        length = len(chain) - chain.index(target.index(limb.upper))
        points = heads[:, i] + weight * (points - heads[:, i])
        add_place(goals, targets, limb.end, length, target.points_to_model(points))
        add_turn(goals, targets, limb.end, length, target.rotations_to_model(turns))
    bent = bent_to_usual_side(target, with_head, moving), pose[1]
    rotations = goals_met(figure_map, target, bent, goals, targets)
    bends = {name: pole for name, pole in poles(figures, settings).items() if pole.weight > 0.0}
    for limb in figure_map.limbs:
        if limb.name in bends:
            rotations = _swivelled(limb, bends[limb.name], way, (rotations, pose[1]))
    if bends:
        rotations = goals_met(figure_map, target, (rotations, pose[1]), goals, targets)
    return rotations, hands


def _with_head(
    figures: Figures, settings: RetargetSettings, way: ScaledWay, pose: Pose, carried: Array
) -> Array:
    """Rotations with the head at its target: the spine bends, its other children keep their rotations."""
    head, target = head_effector(figures, settings), figures.target
    if head is None or head.weight == 0.0:
        return pose[0]
    heads, _ = target.world(*pose)
    i = target.index(head.joint)
    chain = target.skeleton.chain(head.joint)
    bent = chain[chain.index(target.index(head.base)) + 1 :]
    if len(bent) < 2:
        return pose[0]
    goals: list[Goal] = []
    targets: list[Array] = []
    points = heads[:, i] + head.weight * (head.wanted(heads, way) - heads[:, i])
    add_place(goals, targets, head.joint, len(bent), target.points_to_model(points))
    add_turn(goals, targets, head.joint, len(bent), target.rotations_to_model(carried[:, i]))
    rotations = goals_met(figures.map, target, pose, goals, targets)
    joints = enumerate(target.skeleton.joints)
    hanging = {joint.name: carried[:, j] for j, joint in joints if joint.parent in bent and j not in bent}
    return turned_to(target, rotations, hanging)


def _swivelled(limb: Limb, pole: Effector, way: ScaledWay, pose: Pose) -> Array:
    """Rotations with a knee or elbow on the source's side: its limb turns about the line between its ends."""
    target = pole.figures.target
    heads, world = target.world(*pose)
    axis, angle, off = pole.sides(heads, way, limb.end)
    turn = batch.axis_rotation(axis, pole.weight * np.clip(off / STRAIGHT, 0.0, 1.0) * angle)
    upper, end = (world[:, target.index(name)] for name in (limb.upper, limb.end))
    rotations = turned_to(target, pose[0], {limb.upper: product(turn, upper)})
    return turned_to(target, rotations, {limb.end: end})


def bent_to_usual_side(target: TargetFigure, pose: Pose, limbs: Sequence[Limb]) -> Array:
    """Rotations with nearly straight limbs bent to the side of their other frames.

    A straight limb of a source may be hyperextended a little. With its end brought nearer, it would bend on
    to that side, and jump back.
    """
    heads, world = target.world(*pose)
    turns: dict[str, Array] = {}
    for limb in limbs:
        upper, middle, end = (target.index(name) for name in limb.joints[:3])
        first, second = heads[:, middle] - heads[:, upper], heads[:, end] - heads[:, middle]
        beyond = past_straight(first, second, world[:, upper])
        if not beyond.any():
            continue
        sizes = batch.length(first, -1) * batch.length(second, -1)
        across = bend_axes(first, second)
        sine = batch.length(across, -1)
        angle = batch.arctan2(sine, batch.dot(first, second, -1) / np.maximum(sizes, 1e-12))
        axis = across / np.maximum(sine, 1e-12)[:, None]
        turn = batch.axis_rotation(axis, np.where(beyond, -2.0 * angle, 0.0))
        turns[limb.middle] = product(turn, world[:, middle])
    return turned_to(target, pose[0], turns)


def goals_met(
    figure_map: FigureMap, target: TargetFigure, pose: Pose, goals: Sequence[Goal], targets: Sequence[Array]
) -> Array:
    """Rotations that meet goals, with the pose as start and reference."""
    if not goals:
        return pose[0]
    limbs = figure_map.legs or figure_map.limbs
    lengths = [limb_length(target, limb) for limb in limbs] or [target.scale]
    size = min(lengths) / target.scale
    precise = SolverSettings(position_tolerance=PRECISION * size, angle_tolerance=ANGLE_PRECISION, restarts=0)
    skeleton = _bending_at_limbs(figure_map, target)
    return solve_many(skeleton, pose, goals, precise, targets=targets, reference=pose).rotations


def turned_to(target: TargetFigure, rotations: Array, turns: Mapping[str, Array]) -> Array:
    """Rotations (F, n, 4) with world rotations (F, 4) of joints by name, inside their limits.

    No joint of `turns` is an ancestor of another.
    """
    if not turns:
        return rotations
    turned = rotations.copy()
    _, present = target.model(rotations, np.zeros((1, len(target.skeleton), 3)))
    for name, world in turns.items():
        i = target.index(name)
        joint = target.skeleton.joints[i]
        if joint.locked:
            continue
        follows = joint.parent >= 0 and joint.inherit_rotation
        base = product(target.turn, present[:, joint.parent]) if follows else target.turn
        local = product(inverse(product(base, target.rests[i])), world)
        if joint.limit is not None:
            local = BatchLimits([joint.limit]).project(np.ascontiguousarray(local.T[:, None]))[0][:, 0].T
        turned[:, i] = local
    return turned


def add_place(
    goals: list[Goal],
    targets: list[Array],
    joint: str,
    length: int,
    points: Array,
    offset: Vector = NO_OFFSET,
) -> None:
    """Add a goal for a point of a joint, its head by default, at (F, 3) points of model space."""
    goals.append(PositionGoal(joint, NO_OFFSET, offset, chain_length=length))
    targets.append(points)


def add_turn(goals: list[Goal], targets: list[Array], joint: str, length: int, turns: Array) -> None:
    """Add a goal for the rotation of a joint, (F, 4) of model space."""
    goals.append(OrientationGoal(joint, Quaternion((1.0, 0.0, 0.0, 0.0)), chain_length=length))
    targets.append(turns)


def _bending_at_limbs(figure_map: FigureMap, target: TargetFigure) -> Skeleton:
    """The skeleton with joints inside limbs locked that do not bend them: twist bones stay straight."""
    bending = {name for limb in figure_map.limbs for name in (*limb.joints, *limb.bends)}
    locked = {}
    for limb in figure_map.limbs:
        chain = target.skeleton.chain(limb.end)
        for i in chain[chain.index(target.index(limb.upper)) :]:
            joint = target.skeleton.joints[i]
            if joint.name not in bending and not joint.locked:
                locked[joint.name] = {"stiffness": 1.0}
    return target.skeleton.replace(locked) if locked else target.skeleton
