"""In which order joints are visited in one iteration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from mathutils import Quaternion

from ...maths.rotations import angle_of
from ...settings import Sweep

SMART_THRESHOLD = 1e-3
"""Radians: a correction above it sends a smart bounce back to its start (Kenwright 2012, listing 4)."""

SMART_GAIN = 0.64
"""Part of the squared error that may be left since the last time: where joints near the tip win less, they do
not suffice, and the bounce goes on to joints further up."""


class Steps(Protocol):
    """What an order may look at while joints are turned."""

    last_step: Quaternion

    def desired_angle(self, i: int) -> float:
        """The angle (radians) by which joint `i` would turn for its goals if nothing held it."""

    def square(self) -> float:
        """The squared error of all goals."""


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
    return sorted(joints, key=lambda i: (-steps.desired_angle(i), i))


def _bounce(joints: Sequence[int]) -> Iterator[int]:
    for count in range(1, len(joints) + 1):
        yield from joints[:count]


def _smart_bounce(joints: Sequence[int], steps: Steps) -> Iterator[int]:
    place, error = 0, math.inf
    for _ in range(len(joints) * (len(joints) + 1) // 2):
        if place == len(joints):
            return
        yield joints[place]
        # The first joint has just been corrected as far as it goes: to start with it again would change
        # nothing.
        if place > 0 and angle_of(steps.last_step) > SMART_THRESHOLD:
            present = steps.square()
            if present < SMART_GAIN * error:
                place, error = 0, present
                continue
        place += 1
