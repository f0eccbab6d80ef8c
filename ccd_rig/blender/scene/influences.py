# SPDX-License-Identifier: GPL-3.0-or-later
"""Influences of constraints as they count at a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...maths.batch import Array
from ..properties.constraint_values import Constraint, Kind

PLANTED = 0.5
"""Influence above which a bone is planted; there is no half of it."""


def counted(
    armature_object: Any, constraints: Sequence[Constraint], influences: Array
) -> tuple[Array, Array | None]:
    """(R, C) influences as they count at R frames, and as they would count if nothing was planted.

    The second is None where nothing ever is.
    """
    if not any(constraint.kind is Kind.PLANT for constraint in constraints):
        return influences, None
    rows = [tuple(row) for row in influences.tolist()]
    known = {row: _in_force(armature_object, constraints, row) for row in set(rows)}
    never = np.array([constraint.kind is Kind.PLANT for constraint in constraints])
    return np.array([known[row] for row in rows]), np.where(never, 0.0, influences)


def _in_force(
    armature_object: Any, constraints: Sequence[Constraint], influences: Sequence[float]
) -> tuple[float, ...]:
    """Influences as they count at a frame: a planted bone is held fully, and nothing else reaches with it.

    The end of the bone that it is connected to is a part of it.
    """
    pairs = list(zip(constraints, influences, strict=True))
    planted = {
        constraint.tip
        for constraint, influence in pairs
        if constraint.kind is Kind.PLANT and influence > PLANTED
    }
    bones = [armature_object.pose.bones[name].bone for name in planted]
    above = {bone.parent.name for bone in bones if bone.use_connect and bone.parent is not None}
    influences_now = []
    for constraint, influence in pairs:
        if constraint.kind is Kind.PLANT:
            influences_now.append(1.0 if influence > PLANTED else 0.0)
        else:
            waits = constraint.tip in planted or (constraint.use_tail and constraint.tip in above)
            influences_now.append(0.0 if constraint.kind is Kind.REACH and waits else influence)
    return tuple(influences_now)
