"""How far a chain can reach, may reach, and the straightest pose towards a far target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

from mathutils import Vector

from .effectors import PositionView
from .working_pose import Body

ENTRY_PASSES = 40
"""Most passes that bend a chain which starts stretched past its window."""


def _links(body: Body, view: PositionView) -> list[float]:
    """Lengths of the rigid pieces between the joints that may move for a goal, and from the last one to its
    effector; where joints slide or do not turn rigidly, as they are now."""
    known = body.links.get(id(view))
    if known is not None:
        return known
    heads: list[Vector] = [body.heads[i] for i in view.serves] + [view.effector]
    links = [(after - before).length for before, after in pairwise(heads)]
    if not body.sliding and not view.pivots:
        body.links[id(view)] = links
    return links


def levers_of(body: Body, view: PositionView) -> list[float]:
    """Of each joint that may move for a goal the length of the links from it to the effector."""
    return list(accumulate(reversed(_links(body, view))))[::-1]


def reach(body: Body, k: int) -> float:
    """A length to measure goal `k`'s errors against, in the model's unit: that of all bones it can move."""
    view = body.views[k]
    if isinstance(view, PositionView) and view.serves:
        return math.fsum(_links(body, view))
    return math.fsum(body.joints[i].length for i in view.carriers or view.serves) or 1.0


def bound(body: Body, k: int) -> float:
    """A distance between effector and target that goal `k` cannot go below, whatever the joints do; 0 if it
    may be met.

    The effector stays in a shell about the head of the chain's first joint: no further out than the sum of
    the links, no further in than the longest link less all others. 0 also where the shell is not known:
    joints below the chain's base move for other goals, a joint on the way does not inherit rotation (its
    links do not turn rigidly), or one slides.
    """
    view = body.views[k]
    if not isinstance(view, PositionView):
        return 0.0
    chain = view.serves
    below = {i for i in view.carriers if not chain or i < chain[0]}
    others = (other for other in body.views if other is not view)
    if (
        view.pivots
        or any(i in below for other in others for i in other.serves)
        or any(i in view.carriers for i in body.sliding)
    ):
        return 0.0
    if not chain:
        return (view.effector - view.target).length
    links = _links(body, view)
    # A reach window takes away what its part of the chain could be stretched further.
    closed = [window.longest * (1.0 / view.reach - 1.0) for window in body.windows if window.view is view]
    outer = math.fsum(links) - math.fsum(closed)
    inner = max(0.0, 2.0 * max(links) - math.fsum(links))
    distance = (view.target - body.heads[chain[0]]).length
    return max(distance - outer, inner - distance, 0.0)


def stretch(body: Body) -> None:
    """One pass from the root that points every link at its target: the straight chain, at once, where limits
    allow it.

    Sweeps creep towards a stretched chain (their steps grow smaller as it straightens); this does not.
    """
    for i in body.movable:
        for view in body.serves[i]:
            if isinstance(view, PositionView):
                body.stretch(i, _next(view.serves, i), view)
                break
    body.rebuild()


def shares(body: Body, share: float) -> list[float]:
    """The part of its best step that each joint takes when one pass takes `share` (0 to 1) of the way.

    Joint i takes away w_i of the way, `share` times its squared lever in parts of the sum over its chain: it
    turns by its lever times a common factor, which is the step of least squared rotation. Visited from root
    to tip it finds 1 - w_0 - ... - w_(i-1) of the way left, so its part is w_i over that; visited in any
    order 1 - `share` is left in the end. A joint of several goals takes the largest part. With 0 each takes
    the whole step.
    """
    parts = [1.0 if share == 0.0 else 0.0] * len(body.joints)
    if share == 0.0:
        return parts
    for view in {id(view): view for views in body.serves for view in views}.values():
        if isinstance(view, PositionView):
            squares = [lever**2 for lever in levers_of(body, view)]
        else:
            squares = [1.0] * len(view.serves)  # every joint turns a frame alike
        total, left = math.fsum(squares), 1.0
        for i, square in zip(view.serves, squares, strict=True):
            way = share * (square / total if total > 0.0 else 1.0 / len(squares))
            parts[i] = max(parts[i], way / left)
            left -= way
    return parts


def stretched(body: Body) -> list[float]:
    """By how much each reach window is stretched too far, in the model's unit; 0 where it is not."""
    return [max(0.0, window.extent(body.heads) - window.longest) for window in body.windows]


def enter_windows(body: Body) -> None:
    """Bends chains that start stretched past a reach window, as far as their limits let them."""
    for window in body.windows:
        inner = [i for i in window.inner if i in window.view.serves]
        for attempt in range(ENTRY_PASSES):
            origin = body.heads[window.top]
            reach_now = window.view.effector - origin
            if reach_now.length <= window.longest:
                break
            if attempt == 0:
                body.nudge(inner)  # a straight chain sees no side to bend to
                continue
            wanted = origin + reach_now * (0.99 * window.longest / reach_now.length)
            for i in inner:
                body.pull(i, window.view.effector, wanted)
            body.rebuild()


def _next(chain: Sequence[int], i: int) -> int:
    after = [joint for joint in chain if joint > i]
    return after[0] if after else -1
