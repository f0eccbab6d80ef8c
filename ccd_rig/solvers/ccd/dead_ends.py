"""What leads out of a dead end."""

from __future__ import annotations

from collections.abc import Sequence

from mathutils import Vector

from ...maths.alignment import Pair
from ...maths.rotations import angle_of, perpendicular
from .working_pose import WorkingPose

NUDGE = 0.1
"""By how much a joint is bent to leave a dead end, radians."""


def nudge(working: WorkingPose, joints: Sequence[int]) -> None:
    """Bends the joints a little, to alternate sides and inside their limits, so that the next steps see
    a way.

    A straight chain with the target on its line and Juckett's folded pose are left so, and most other
    dead ends.
    """
    side = 1.0
    working.active_limits.clear()
    for i in joints:
        if working.tolerances[i] > 0.0:
            continue  # it stays at the border of its tolerance region on purpose
        working.update_to(i)
        side = -side
        for turn in (side * NUDGE, -side * NUDGE):
            if _bend(working, i, turn):
                break
    working.recompute()


def _bend(working: WorkingPose, i: int, turn: float) -> bool:
    """Turns joint `i` by `turn` radians across its line of sight; whether its limit let it."""
    before = working.rotations[i]
    pairs: list[Pair] = []
    for effector in working.active_effectors[i]:
        effector.vector_pairs(working, i, pairs)
    working.turn(
        i, perpendicular(pairs[0][0] if pairs else working.frames[i] @ Vector((0.0, 1.0, 0.0))), turn
    )
    return angle_of(before.conjugated() @ working.rotations[i]) > 0.5 * abs(turn)
