# SPDX-License-Identifier: GPL-3.0-or-later
"""Which constraints are solved together, and by what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...skeleton.joints import Skeleton
from ..properties.constraint_values import Constraint, Kind
from .constraint_goals import chain_joints
from .methods import SINGLE_PASS


def groups(
    skeleton: Skeleton, constraints: Sequence[Constraint], active: Sequence[int]
) -> list[tuple[set[int], list[int]]]:
    """Joints and indices of the constraints that must be solved together: those with a joint in common.

    Nothing is lost by solving the groups in this order: chains are paths, so of two groups that share no
    joint at most one carries the other, and it comes first. A balance moves with all joints that carry mass.
    """
    group_of: dict[int, tuple[set[int], list[int]]] = {}  # by joint
    for c in active:
        joints = _moved(skeleton, constraints, active, c)
        met = {id(group_of[j]): group_of[j] for j in joints if j in group_of}
        # The largest takes the others in, so that no joint changes its group often.
        whole, *others = sorted((*met.values(), (joints, [c])), key=lambda group: -len(group[0]))
        for other_joints, members in others:
            whole[0].update(other_joints)
            whole[1].extend(members)
            group_of.update(dict.fromkeys(other_joints, whole))
        group_of.update(dict.fromkeys(joints, whole))
    distinct = {id(group): group for group in group_of.values()}.values()
    # Parents come before children.
    return [
        (joints, sorted(members)) for joints, members in sorted(distinct, key=lambda group: min(group[0]))
    ]


def _moved(skeleton: Skeleton, constraints: Sequence[Constraint], active: Sequence[int], c: int) -> set[int]:
    """Joints that are solved together with constraint `c`."""
    constraint = constraints[c]
    joints = set(chain_joints(skeleton, constraint))
    if constraint.kind is Kind.BALANCE:
        heavy = {j for i, joint in enumerate(skeleton.joints) if joint.mass > 0.0 for j in skeleton.chain(i)}
        joints |= {j for a in active for j in chain_joints(skeleton, constraints[a]) if j in heavy}
    return joints or set(skeleton.chain(constraint.tip, constraint.chain_length))


def are_solved_at_once(group: Iterable[Constraint]) -> bool:
    """Whether no method of a group's constraints poses a chain by itself."""
    return all(each.kind is Kind.BALANCE or each.method not in SINGLE_PASS for each in group)
