"""How far poses are from their base poses, and from one another beside these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...maths.batch import Array, Indices, conjugate, logarithm, multiply, select, unit
from .layout import Layout
from .state import Given, State, rebuilt

Departures = tuple[Array, Array, Array]
"""(4, balls, B) rotations from the base, (h, B) angles and (s, B) shifts."""


def departures(layout: Layout, given: Given, state: State) -> Departures:
    """Those of states from the reference poses that are given."""
    assert given.reference is not None
    balls, angles, slides = given.reference
    turned = multiply(conjugate(balls), state.rotations[:, layout.ball_rows])
    return np.where(turned[0] < 0.0, -turned, turned), state.angles - angles, state.slides - slides


def departed_state(layout: Layout, given: Given, base: State, departed: Departures) -> State:
    """The base poses with these departures, inside the limits of hinges and slides."""
    assert given.reference is not None
    balls, angles, slides = given.reference
    return rebuilt(
        layout, given, base, unit(multiply(balls, departed[0])), angles + departed[1], slides + departed[2]
    )


def some_of(departed: Departures, some: Indices) -> Departures:
    """Those of some of the poses."""
    balls, angles, slides = (select(values, some) for values in departed)
    return balls, angles, slides


def joined(parts: Sequence[Departures]) -> Departures:
    """Those of several batches of poses, one after the other."""
    balls, angles, slides = (np.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
    return balls, angles, slides


def sizes(departed: Departures) -> Array:
    """(B,) radians, the root of the sum of squares over joints."""
    balls = logarithm(departed[0])
    return np.asarray(np.sqrt((balls * balls).sum((0, 1)) + (departed[1] * departed[1]).sum(0)))


def distances(a: Departures, b: Departures) -> Array:
    """(B,) radians from departures to others, the root of the sum of squares over joints."""
    balls = logarithm(multiply(conjugate(a[0]), b[0]))
    angles = a[1] - b[1]
    return np.asarray(np.sqrt((balls * balls).sum((0, 1)) + (angles * angles).sum(0)))


def largest_changes(a: Departures, b: Departures) -> Array:
    """(B,) radians, the largest rotation of a joint from departures to others."""
    found = np.zeros(a[0].shape[-1])
    if a[0].shape[1]:
        cosines = np.abs(np.einsum("inb,inb->nb", a[0], b[0])).min(0)
        found = 2.0 * np.arccos(np.minimum(cosines, 1.0))
    if len(a[1]):
        found = np.maximum(found, np.abs(a[1] - b[1]).max(0))
    return np.asarray(found)


def interpolated(at: Array, departed: Departures, wanted: Array) -> Departures:
    """Departures at times on smooth curves through those at other times."""
    balls, angles, slides = (_curve(at, values, wanted) for values in departed)
    return unit(balls), angles, slides


def _curve(at: Array, values: Array, wanted: Array) -> Array:
    """Cubics through values (..., K) at places, with the slopes of the neighbours (Catmull & Rom 1974)."""
    if len(at) == 1:
        return np.repeat(values, len(wanted), axis=-1)
    spans = np.diff(at)
    chords = np.diff(values, axis=-1) / spans
    slopes = np.empty_like(values)
    slopes[..., 0], slopes[..., -1] = chords[..., 0], chords[..., -1]
    slopes[..., 1:-1] = (chords[..., :-1] * spans[1:] + chords[..., 1:] * spans[:-1]) / (
        spans[:-1] + spans[1:]
    )
    if len(at) > 2:  # at the ends as bent as in the middle of the span
        slopes[..., 0] = 2.0 * chords[..., 0] - slopes[..., 1]
        slopes[..., -1] = 2.0 * chords[..., -1] - slopes[..., -2]
    i = np.clip(np.searchsorted(at, wanted, side="right") - 1, 0, len(spans) - 1)
    span = spans[i]
    t = (wanted - at[i]) / span
    found = values[..., i] + t * span * chords[..., i]
    found += (
        t
        * (1.0 - t)
        * span
        * ((1.0 - t) * (slopes[..., i] - chords[..., i]) - t * (slopes[..., i + 1] - chords[..., i]))
    )
    return np.asarray(found)


def neighbours(departed: Departures) -> tuple[Departures, Departures]:
    """All but the last, and all but the first."""
    balls, angles, slides = departed
    return (balls[..., :-1], angles[..., :-1], slides[..., :-1]), (
        balls[..., 1:],
        angles[..., 1:],
        slides[..., 1:],
    )
