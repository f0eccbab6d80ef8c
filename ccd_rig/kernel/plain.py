"""Stand-ins for C types, for modules of the kernel that run uncompiled."""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

nogil = nullcontext()
"""Releases the interpreter's lock where the module is compiled."""


class Vector(NamedTuple):
    """A point or direction; a struct of doubles in C."""

    x: float
    y: float
    z: float


class Quaternion(NamedTuple):
    """A rotation (w, x, y, z); a struct of doubles in C."""

    w: float
    x: float
    y: float
    z: float


class Placed(NamedTuple):
    """A joint's rotation relative to rest, and whether limits allow the one that was wanted."""

    rotation: Quaternion
    fits: bool


class Stand(NamedTuple):
    """The state before a joint turns: its head and base, and link and axis of the joint before, or zero."""

    head: Vector
    base: Quaternion
    direction: Vector
    axis: Vector
