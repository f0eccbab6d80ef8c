"""How far a chain can reach, may reach, and the straightest pose towards a far target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

from mathutils import Vector

from .dead_ends import nudge
from .effectors import PositionEffector
from .working_pose import WorkingPose

ENTRY_PASSES = 40
"""Most passes that bend a chain which starts stretched past its window."""


def _links(working: WorkingPose, effector: PositionEffector) -> list[float]:
    """Lengths of the rigid pieces between the joints that may move for a goal, and from the last one to its
    effector; where joints slide, roll or do not turn rigidly, as they are now."""
    known = working.links.get(id(effector))
    if known is not None:
        return known
    heads: list[Vector] = [working.heads[i] for i in effector.moving_joints] + [effector.position]
    links = [(after - before).length for before, after in pairwise(heads)]
    if not working.sliding and not working.coupled and not effector.pivots:
        working.keep_links(effector, links)
    return links


def levers_of(working: WorkingPose, effector: PositionEffector) -> list[float]:
    """Of each joint that may move for a goal the length of the links from it to the effector."""
    return list(accumulate(reversed(_links(working, effector))))[::-1]


def length_scale(working: WorkingPose, k: int) -> float:
    """A length to measure goal `k`'s errors against, in the model's unit: that of all bones it can move."""
    effector = working.effectors[k]
    if isinstance(effector, PositionEffector) and effector.moving_joints:
        return math.fsum(_links(working, effector))
    return math.fsum(working.joints[i].length for i in effector.ancestors or effector.moving_joints) or 1.0


def bound(working: WorkingPose, k: int) -> float:
    """A distance between effector and target that goal `k` cannot go below, whatever the joints do; 0 if it
    may be met.

    The effector stays in a shell about the head of the chain's first joint: no further out than the sum of
    the links, no further in than the longest link less all others. 0 also where the shell is not known:
    joints below the chain's base move for other goals, a joint on the way does not inherit rotation (its
    links do not turn rigidly), or one slides or has coupled offsets.
    """
    effector = working.effectors[k]
    if not isinstance(effector, PositionEffector):
        return 0.0
    chain = effector.moving_joints
    below = {i for i in effector.ancestors if not chain or i < chain[0]}
    others = (other for other in working.effectors if other is not effector)
    if (
        effector.pivots
        or any(i in below for other in others for i in other.moving_joints)
        or any(i in effector.ancestors for i in (*working.sliding, *working.coupled))
    ):
        return 0.0
    if not chain:
        return (effector.position - effector.target).length
    links = _links(working, effector)
    # A reach window takes away what its part of the chain could be stretched further.
    closed = [
        window.longest * (1.0 / effector.max_extension - 1.0)
        for window in working.windows
        if window.effector is effector
    ]
    outer = math.fsum(links) - math.fsum(closed)
    inner = max(0.0, 2.0 * max(links) - math.fsum(links))
    distance = (effector.target - working.heads[chain[0]]).length
    return max(distance - outer, inner - distance, 0.0)


def stretch(working: WorkingPose) -> None:
    """One pass from the root that points every link at its target: the straight chain, at once, where limits
    allow it.

    Sweeps creep towards a stretched chain (their steps grow smaller as it straightens); this does not.
    """
    for i in working.movable:
        for effector in working.active_effectors[i]:
            if isinstance(effector, PositionEffector):
                working.stretch(i, _next(effector.moving_joints, i), effector)
                break
    working.recompute()


def step_parts(working: WorkingPose, error_reduction: float) -> list[float]:
    """The part of its best step that each joint takes when one pass removes `error_reduction` (0 to 1) of it.

    Joint i removes w_i of the error: `error_reduction` times its squared lever, in parts of the sum over its
    chain. It turns by its lever times a common factor, which is the step of least squared rotation. Visited
    from root to tip it finds 1 - w_0 - ... - w_(i-1) of the error left, so its part is w_i over that; visited
    in any order 1 - `error_reduction` is left in the end. A joint of several goals takes the largest part.
    With 0 each takes the whole step.
    """
    parts = [1.0 if error_reduction == 0.0 else 0.0] * len(working.joints)
    if error_reduction == 0.0:
        return parts
    for effector in {
        id(effector): effector for effectors in working.active_effectors for effector in effectors
    }.values():
        if isinstance(effector, PositionEffector):
            squares = [lever**2 for lever in levers_of(working, effector)]
        else:
            squares = [1.0] * len(effector.moving_joints)  # every joint turns a frame alike
        total, left = math.fsum(squares), 1.0
        for i, square in zip(effector.moving_joints, squares, strict=True):
            way = error_reduction * (square / total if total > 0.0 else 1.0 / len(squares))
            parts[i] = max(parts[i], way / left)
            left -= way
    return parts


def stretched(working: WorkingPose) -> list[float]:
    """By how much each reach window is stretched too far, in the model's unit; 0 where it is not."""
    return [max(0.0, window.extent(working.heads) - window.longest) for window in working.windows]


def enter_windows(working: WorkingPose) -> None:
    """Bends chains that start stretched past a reach window, as far as their limits let them."""
    for window in working.windows:
        inner = [i for i in window.inner if i in window.effector.moving_joints]
        for attempt in range(ENTRY_PASSES):
            origin = working.heads[window.top]
            reach_now = window.effector.position - origin
            if reach_now.length <= window.longest:
                break
            if attempt == 0:
                nudge(working, inner)  # a straight chain sees no side to bend to
                continue
            wanted = origin + reach_now * (0.99 * window.longest / reach_now.length)
            for i in inner:
                working.pull(i, window.effector.position, wanted)
            working.recompute()


def _next(chain: Sequence[int], i: int) -> int:
    after = [joint for joint in chain if joint > i]
    return after[0] if after else -1
