"""Elementary functions of the kernel: near those of the C library, and the same bits everywhere."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator

import pytest

from ccd_rig import kernel
from ccd_rig.kernel import elementary as plain
from devtools import kernel as tool

EXACT = {"copysign", "fabs", "floor", "fmod", "sqrt", *tool.MATH_CONSTANTS}
"""What IEEE 754 rounds in one way, or needs no rounding."""
WAYS = (kernel, plain)
"""Compiled, unless the plain modules are forced, and plain."""
DIGEST = "b9ffe5dd91ce4ac0"
"""Of the bits of 22,497 values."""


def angles() -> Iterator[float]:
    """Angles of all sizes, some of them next to multiples of a quarter turn."""
    for i in range(2000):
        yield 0.0037 * i - 3.7
        yield math.ldexp(1.0 + 0.00047 * i, i % 69 - 50)
        yield 1.5707963267948966 * (i - 1000) + math.ldexp(1.0, -(i % 50))


def points() -> Iterator[tuple[float, float]]:
    """Points all around, near and far from the axes."""
    for i in range(1, 1500):
        yield float(i), 750.0 - i
        yield 750.0 - i, -float(i)
        yield math.ldexp(1.0 + 0.00061 * i, i % 90 - 45), 750.0 - i


def in_units(value: float, expected: float) -> float:
    """The difference in units of the last place."""
    return abs(value - expected) / math.ulp(expected)


@pytest.mark.parametrize("way", WAYS)
def test_values_are_those_of_the_c_library_but_for_last_places(way) -> None:
    """Its own errors are below one unit; those of the kernel's arc tangent below 1.5."""
    for x in angles():
        assert in_units(way.sin(x), math.sin(x)) <= 1.0
        assert in_units(way.cos(x), math.cos(x)) <= 1.0
    for y, x in points():
        assert in_units(way.atan2(y, x), math.atan2(y, x)) <= 2.0


def test_exponentials_are_those_of_the_c_library_but_for_last_places() -> None:
    for i in range(2000):
        x = -0.3539 * i
        assert in_units(plain.exp(x), math.exp(x)) <= 1.0
    assert plain.exp(0.0) == 1.0
    assert plain.exp(-1e60) == 0.0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("y", [0.0, -0.0, 1.0, -1.0, 1e-300, 1e60])
@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -1.0, 1e-300, -1e60])
def test_arc_tangents_on_the_axes_have_the_signs_of_c(way, y: float, x: float) -> None:
    angle = way.atan2(y, x)
    assert angle == pytest.approx(math.atan2(y, x), rel=4e-16, abs=0.0)
    assert math.copysign(1.0, angle) == math.copysign(1.0, y)


@pytest.mark.parametrize("way", WAYS)
def test_many_turns_leave_a_sine_and_cosine(way) -> None:
    for x in (1e7, -4e7, -1e22, 1e60):
        rest = math.fmod(x, 2.0 * math.pi)
        assert way.sin(x) == pytest.approx(math.sin(rest), abs=1e-15)
        assert way.cos(x) == pytest.approx(math.cos(rest), abs=1e-15)


@pytest.mark.parametrize("way", WAYS)
def test_bits_are_the_same_on_every_system(way) -> None:
    functions: tuple[Callable[[float], float], ...] = (way.sin, way.cos)
    values = [function(x) for x in angles() for function in functions]
    values += [way.atan2(y, x) for y, x in points()]
    values += [plain.exp(-0.117 * i) for i in range(6000)]
    assert hashlib.sha256(struct.pack(f"<{len(values)}d", *values)).hexdigest()[:16] == DIGEST


def test_the_kernel_takes_from_the_c_library_what_is_exact() -> None:
    files = tool.load_names().source_files(tool.FOLDER)
    taken = {name for file in files if file.suffix == ".py" for name in tool.Module(file).from_math}
    assert taken <= EXACT
    assert (
        "-ffp-contract=off" in tool.FLAGS
    )  # else a product and a sum are rounded once, where a processor can
