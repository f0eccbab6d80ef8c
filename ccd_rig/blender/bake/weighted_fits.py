"""How near goals came together that pull against each other: markers on a body, more than it has freedom.

Constraints that share joints and are served alike make a fit. No single one of them tells how good a pose
is. The weighted root mean square of all of them does: it is what least squares bring down.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ...maths.batch import Array
from ...settings import SolveStatus
from ..properties.constraint_values import Constraint, Kind
from ..solve.grouping import groups
from .bake_frames import BakeFrames
from .report_parts import FrameFit, WeightedFit, number


def weighted_fit(bake_frames: BakeFrames, distances: Array) -> WeightedFit | None:
    """The fits of all solved frames that miss their targets, from (F, C) distances in world metres.

    A frame counts with those of its fits of which a constraint is missed. None where there is no such frame.
    """
    if not _fits(bake_frames, tuple(range(len(bake_frames.constraints)))):
        return None
    found, square, weights = [], 0.0, 0.0
    known: dict[tuple[int, ...], list[list[int]]] = {}
    for f, states in sorted(bake_frames.states.items()):
        active = tuple(c for c in states if bake_frames.influences[f, c] > 0.0)
        if active not in known:
            known[active] = _fits(bake_frames, active)
        missed = {c for c in active if states[c] != SolveStatus.CONVERGED.name}
        members = [c for fit in known[active] if missed.intersection(fit) for c in fit]
        if not members:
            continue
        targets, rows = bake_frames.targets, bake_frames.constraints
        each = np.array([dict(targets.settings(f, c)).get("weight", rows[c].weight) for c in members])
        error = float((each * distances[f, members] ** 2).sum())
        found.append(FrameFit(number(bake_frames.frames[f]), float(np.sqrt(error / each.sum()))))
        square, weights = square + error, weights + float(each.sum())
    return WeightedFit(float(np.sqrt(square / weights)), tuple(found)) if found else None


def _fits(bake_frames: BakeFrames, active: tuple[int, ...]) -> list[list[int]]:
    """Constraints that share joints and a priority, and ask for a place; two at least."""
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for n, (_, members) in enumerate(groups(bake_frames.skeleton, bake_frames.constraints, active)):
        for c in members:
            if _has_place(bake_frames.constraints[c]):
                found[n, bake_frames.constraints[c].priority].append(c)
    return [members for members in found.values() if len(members) > 1]


def _has_place(constraint: Constraint) -> bool:
    return constraint.kind is Kind.BALANCE or (constraint.kind is Kind.REACH and constraint.use_position)
