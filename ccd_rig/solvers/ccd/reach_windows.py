"""Reach windows: parts of chains that are never stretched past a set part of their length.

Kenwright 2012, section 10: a chain that comes to its window stops there and hands the motion on to the next
joints up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from mathutils import Quaternion, Vector

from ...goals import PositionGoal
from ...maths.rotations import slerp
from .effector import Effector
from .effectors import PositionEffector

HALVINGS = 12
"""How finely a step is cut that would stretch a window: to 1/4096 of it."""


class ReachWindow(NamedTuple):
    """One window: from the head of joint `top` to the effector of `effector` it is at most `longest`.

    Attributes:
        effector: whose chain it is about.
        top: index of the first joint of the part; its own turns do not stretch it.
        inner: the joints after it, whose turns do.
        below: the first joint of the part and joints below it whose turns stretch it too: those between which
            and the effector a joint does not inherit rotation, so that the part does not turn rigidly.
        longest: in the model's unit.
    """

    effector: PositionEffector
    top: int
    inner: tuple[int, ...]
    below: tuple[int, ...]
    longest: float

    def extent(self, heads: Sequence[Vector]) -> float:
        """How far the part is stretched now, in the model's unit."""
        return (self.effector.position - heads[self.top]).length


def reach_windows_of(effectors: Sequence[Effector], heads: Sequence[Vector]) -> list[ReachWindow]:
    """The windows that goals ask for; `heads` and effectors are those of any pose."""
    found = []
    for effector in effectors:
        goal = effector.goal
        if (
            isinstance(effector, PositionEffector)
            and isinstance(goal, PositionGoal)
            and goal.max_extension < 1.0
        ):
            part = effector.chain[-goal.extension_joints :]
            ends = [heads[i] for i in part] + [effector.position]
            length = math.fsum((after - before).length for before, after in pairwise(ends))
            found.append(
                ReachWindow(
                    effector, part[0], tuple(part[1:]), _below(effector, part[0]), goal.max_extension * length
                )
            )
    return found


def _below(effector: PositionEffector, top: int) -> tuple[int, ...]:
    """Joints from the root to `top` whose turns move the effector otherwise than the head of `top`."""
    if not any(pivot > top for pivot in effector.pivots):
        return ()
    # A joint that does not inherit rotation, on the way to `top` or `top` itself, is shifted by turns below
    # it, and all above it alike.
    return tuple(
        i for i in effector.ancestors if i <= top and not any(i < pivot <= top for pivot in effector.pivots)
    )


class Way(NamedTuple):
    """A joint's way from one rotation to another, as reach windows look at it.

    Attributes:
        now, wanted: rotations relative to rest.
        turn: the turn in model axes that a rotation of the joint amounts to.
        allowed: the nearest rotation inside the joint's limit.
    """

    now: Quaternion
    wanted: Quaternion
    turn: Callable[[Quaternion], Quaternion]
    allowed: Callable[[Quaternion], Quaternion]


def shortened(windows: Sequence[ReachWindow], heads: Sequence[Vector], i: int, way: Way) -> Quaternion:
    """As much of joint `i`'s way as stretches none of its windows further.

    Args:
        windows: those that joint `i` can stretch.
        heads: of all joints up to `i`, model space.
        i: the joint.
        way: where it is, and where it is to go.
    """
    if _fits(windows, heads, i, way.turn(way.wanted)):
        return way.wanted
    fitting, low, high = way.now, 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        tried = way.allowed(slerp(way.now, way.wanted, middle))
        if _fits(windows, heads, i, way.turn(tried)):
            fitting, low = tried, middle
        else:
            high = middle
    return fitting


def _fits(windows: Sequence[ReachWindow], heads: Sequence[Vector], i: int, turn: Quaternion) -> bool:
    head = heads[i]
    for window in windows:
        end, origin = window.effector.position, heads[window.top]
        held = window.effector.hangs_on(i)
        after = end + (head + turn @ (held - head) - held)
        started = head + turn @ (origin - head) if i < window.top else origin
        # A part that starts stretched past its window may only come back.
        if (after - started).length > max(window.longest, (end - origin).length):
            return False
    return True


def shortened_slide(
    windows: Sequence[ReachWindow], heads: Sequence[Vector], i: int, axis: Vector, wanted: float
) -> float:
    """As much of joint `i`'s shift `wanted` (model's unit, along the unit `axis`) as stretches no window
    further."""

    def fits(shift: float) -> bool:
        for window in windows:
            if i > window.top:
                way = window.effector.position - heads[window.top]
                if (way + shift * axis).length > max(window.longest, way.length):
                    return False
        return True

    if fits(wanted):
        return wanted
    fitting, low, high = 0.0, 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if fits(middle * wanted):
            fitting, low = middle * wanted, middle
        else:
            high = middle
    return fitting
