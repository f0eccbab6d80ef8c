# SPDX-License-Identifier: GPL-3.0-or-later
"""Stretches: frames in a row with the same constraints in force, which are solved at once.

Where the body keeps its animation, constraints whose chains share no joint are parts of the figure, each with
stretches of its own. Where it follows planted bones, all hang together: the figure is one part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...limits.shapes import Limit, Slide
from ...skeleton.joints import Skeleton
from ..properties.constraint_values import Constraint, Kind
from ..scene.evaluation import FrameSample
from ..solve.constraint_goals import chain_joints
from ..solve.grouping import groups
from ..solve.planting import SupportChains
from .bake_frames import Rows


@dataclass(frozen=True)
class Part:
    """Constraints that have to do with one another.

    Attributes:
        members: their indices.
        joints: what they may move.
    """

    members: tuple[int, ...]
    joints: frozenset[int]


@dataclass(frozen=True)
class Stretch:
    """Frames in a row with the same constraints in force, the same limits and the same slides.

    Attributes:
        first, last: its rows, both included.
        active: those of the part's constraints that are in force.
        planted: those of them that plant a bone.
        limits, slides: of each joint.
        moves: of each constraint in force, but for the one whose bone the figure stands on, what it moves.
        moved: joints of the support chains, and the root bone, that something moves.
    """

    first: int
    last: int
    active: tuple[int, ...]
    planted: tuple[int, ...]
    limits: tuple[Limit | None, ...]
    slides: tuple[tuple[Slide, ...], ...]
    moves: Mapping[int, frozenset[int]]
    moved: frozenset[int]

    @property
    def rows(self) -> Rows:
        return np.arange(self.first, self.last + 1)


def parts(skeleton: Skeleton, constraints: Sequence[Constraint], chains: SupportChains) -> list[Part]:
    """The parts of a figure with planted bones, what carries others first."""
    every = tuple(range(len(constraints)))
    if not chains.keeps_body:
        joints = {j for constraint in constraints for j in chain_joints(skeleton, constraint)}
        return [Part(every, frozenset(joints | {chains.root_bone}))]
    return [
        Part(tuple(members), frozenset(joints)) for joints, members in groups(skeleton, constraints, every)
    ]


def stretches(
    samples: Sequence[FrameSample],
    limits: Sequence[tuple[Limit | None, ...]],
    constraints: Sequence[Constraint],
    chains: SupportChains,
    part: Part,
) -> list[Stretch]:
    """The stretches of a part.

    Args:
        samples: the frames.
        limits: of each of them, equal ones shared.
        constraints: all of them.
        chains: of the figure.
        part: one of its parts.
    """
    found: list[Stretch] = []
    first, known = 0, None
    for row in range(len(samples) + 1):
        present = None
        if row < len(samples):
            slides = tuple(joint.slides for joint in samples[row].reading.skeleton.joints)
            present = tuple([samples[row].influences[c] > 0.0 for c in part.members]), limits[row], slides
        if row > 0 and present != known:
            assert known is not None
            active = tuple(c for c, is_in_force in zip(part.members, known[0], strict=True) if is_in_force)
            skeleton = samples[first].reading.skeleton
            found.append(_stretch((first, row - 1), active, limits[first], (skeleton, constraints, chains)))
            first = row
        known = present
    return found


def _stretch(
    rows: tuple[int, int],
    active: tuple[int, ...],
    limits: tuple[Limit | None, ...],
    figure: tuple[Skeleton, Sequence[Constraint], SupportChains],
) -> Stretch:
    skeleton, constraints, chains = figure
    slides = tuple(joint.slides for joint in skeleton.joints)
    planted = tuple(c for c in active if constraints[c].kind is Kind.PLANT)
    own = {c: frozenset(chain_joints(skeleton, constraints[c])) for c in active}
    legs = frozenset(chains.joints)
    if chains.keeps_body or not planted:
        moves, ends = own, legs if chains.keeps_body else legs | {chains.root_bone}
        return Stretch(
            *rows, active, planted, limits, slides, moves, frozenset().union(*moves.values()) & ends
        )
    # What moves the root bone moves the leg that the figure stands on.
    base = own.pop(planted[0]) - {chains.root_bone}
    moves = {}
    for c, joints in own.items():
        whole = skeleton.chain(constraints[c].tip, constraints[c].chain_length)[0] == chains.root_bone
        moves[c] = (joints | base if whole else joints) - {chains.root_bone}
    moved = frozenset().union(*moves.values()) & legs | {chains.root_bone}
    return Stretch(*rows, active, planted, limits, slides, moves, moved)


def held_constraints(
    skeleton: Skeleton, constraints: Sequence[Constraint], chains: SupportChains, planted: Sequence[int]
) -> tuple[Constraint, ...]:
    """The constraints while bones are planted: these are held before all else.

    Of two that plant a bone the first holds it. Where the body follows planted bones, a chain with a pole
    ends below the root bone: its bend is no business of the legs.
    """
    tips = [constraints[c].tip for c in planted]
    twice = {c for k, c in enumerate(planted) if tips[k] in tips[:k]}
    later, found = 1 if planted else 0, []
    for c, constraint in enumerate(constraints):
        if constraint.kind is not Kind.PLANT or c in twice:
            constraint = replace(constraint, priority=constraint.priority + later)
        if constraint.pole_target and planted and not chains.keeps_body:
            chain = skeleton.chain(constraint.tip, constraint.chain_length)
            if chain[0] == chains.root_bone and len(chain) > 1:
                constraint = replace(constraint, chain_length=len(chain) - 1)
        found.append(constraint)
    return tuple(found)
