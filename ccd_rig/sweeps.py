"""In which order joints are visited in one iteration."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from mathutils import Quaternion

from .quaternions import angle_of

SMART_THRESHOLD = 1e-3
"""Radians: a correction above it sends a smart bounce back to its start (Kenwright 2012, listing 4)."""


class Sweep(enum.Enum):
    """The order of one pass over the joints that may move.

    Kenwright's listings leave out the first joint (`i > 0`); every joint is visited here.
    """

    TIP_TO_ROOT = "TIP_TO_ROOT"
    """Children before parents: joints near the effector move most (Kenwright 2012, listing 1)."""
    ROOT_TO_TIP = "ROOT_TO_TIP"
    """Parents before children: the motion spreads over the whole chain (Kenwright 2012, listing 2)."""
    ALTERNATING = "ALTERNATING"
    """Tip to root and root to tip by turns."""
    BOUNCE_TIP = "BOUNCE_TIP"
    """From the tip one joint further each time, and back to the tip (Kenwright 2012, listing 3)."""
    BOUNCE_ROOT = "BOUNCE_ROOT"
    """The same from the root."""
    SMART_BOUNCE = "SMART_BOUNCE"
    """From the tip, and back to it after each correction that is not tiny: far joints stay still where near
    ones suffice (Kenwright 2012, listing 4). One iteration ends at the root, or after as many single steps
    as a bounce takes."""
    LARGEST_ERROR = "LARGEST_ERROR"
    """Joints that would turn furthest come first."""


class Steps(Protocol):
    """What an order may look at while joints are turned."""

    last_step: Quaternion

    def sight(self, i: int) -> float:
        """The angle (radians) by which joint `i` would turn for its goals if nothing held it."""


def visits(sweep: Sweep, joints: Sequence[int], iteration: int, steps: Steps) -> Iterable[int]:
    """The joints of one iteration in the order of `sweep`.

    Args:
        sweep: the order.
        joints: indices of the joints that may move, parents before children.
        iteration: how many came before.
        steps: the steps that are taken meanwhile.
    """
    if sweep is Sweep.ROOT_TO_TIP:
        return joints
    if sweep is Sweep.TIP_TO_ROOT:
        return joints[::-1]
    if sweep is Sweep.ALTERNATING:
        return joints if iteration % 2 else joints[::-1]
    if sweep is Sweep.BOUNCE_TIP:
        return _bounce(joints[::-1])
    if sweep is Sweep.BOUNCE_ROOT:
        return _bounce(joints)
    if sweep is Sweep.SMART_BOUNCE:
        return _smart_bounce(joints[::-1], steps)
    return sorted(joints, key=lambda i: (-steps.sight(i), i))


def _bounce(joints: Sequence[int]) -> Iterator[int]:
    for count in range(1, len(joints) + 1):
        yield from joints[:count]


def _smart_bounce(joints: Sequence[int], steps: Steps) -> Iterator[int]:
    place = 0
    for _ in range(len(joints) * (len(joints) + 1) // 2):
        if place == len(joints):
            return
        yield joints[place]
        moved = angle_of(steps.last_step) > SMART_THRESHOLD
        # The first joint has just been corrected as far as it goes: to start with it again would change
        # nothing.
        place = 0 if moved and place > 0 else place + 1
