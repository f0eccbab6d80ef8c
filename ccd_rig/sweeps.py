"""In which order joints are visited in one iteration."""

from __future__ import annotations

import enum
from collections.abc import Sequence


class Sweep(enum.Enum):
    """The order of one pass over the joints that may move.

    Kenwright's listings leave out the first joint (`i > 0`); every joint is visited here.
    """

    TIP_TO_ROOT = "TIP_TO_ROOT"
    """Children before parents: joints near the effector move most (Kenwright 2012, listing 1)."""
    ROOT_TO_TIP = "ROOT_TO_TIP"
    """Parents before children: the motion spreads over the whole chain (Kenwright 2012, listing 2)."""


def visits(sweep: Sweep, joints: Sequence[int]) -> Sequence[int]:
    """The joints of one iteration in the order of `sweep`.

    Args:
        sweep: the order.
        joints: indices of the joints that may move, parents before children.
    """
    if sweep is Sweep.TIP_TO_ROOT:
        return joints[::-1]
    return joints
