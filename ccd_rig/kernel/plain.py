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
