"""The marker fit of an OpenSim model worked out apart from CCD Rig: its own kinematics, numpy alone.

Levenberg-Marquardt over the coordinates with differences for slopes. A coordinate at its bound that would
leave it is held.
"""

from __future__ import annotations

import math

import numpy as np
from _osim import Array, Model, about, rotation

STEP = 1e-6
"""Radians or metres of a difference."""


def bounds(model: Model) -> tuple[list[str], Array, Array]:
    """Names of the coordinates that move, and their bounds."""
    used = {
        function.coordinate
        for joint in model.joints
        for _, function in (*joint.rotations, *joint.translations)
        if function.coordinate
    }
    names = [name for name, each in model.coordinates.items() if name in used and not each.locked]
    lower = np.array([c.lower if (c := model.coordinates[name]).clamped else -math.inf for name in names])
    upper = np.array([c.upper if (c := model.coordinates[name]).clamped else math.inf for name in names])
    return names, lower, upper


def places(model: Model, coordinates: dict[str, float]) -> Array:
    """(markers, 3) in the ground's frame."""
    frames = {"ground": (np.eye(3), np.zeros(3))}
    for joint in model.joints:
        turn, at = frames[joint.parent]
        at = at + turn @ joint.at
        turn = turn @ rotation(joint.turn)
        for axis, function in joint.translations:
            at = at + function(coordinates) * (turn @ axis)
        for axis, function in joint.rotations:
            turn = turn @ about(axis, function(coordinates))
        turn = turn @ rotation(joint.body_turn).T
        frames[joint.body] = turn, at - turn @ joint.body_at
    return np.array([frames[m.body][1] + frames[m.body][0] @ m.at for m in model.markers])


def fit(model: Model, targets: Array, weights: Array, start: Array, steps: int = 300) -> Array:
    """The coordinates (names of `bounds`) with the least weighted square error, from a start."""
    names, lower, upper = bounds(model)
    fixed = {name: each.default for name, each in model.coordinates.items()}
    root = np.sqrt(weights)[:, None]

    def residual(values: Array) -> Array:
        found = places(model, fixed | dict(zip(names, values.tolist(), strict=True)))
        return np.asarray((root * (found - targets)).ravel())

    values, damping = np.clip(start, lower, upper), 1e-3
    now = residual(values)
    for _ in range(steps):
        each = STEP * np.eye(len(names))
        slope = np.array([(residual(values + d) - residual(values - d)) / (2.0 * STEP) for d in each]).T
        gradient = slope.T @ now
        free = ~((values <= lower) & (gradient > 0.0) | (values >= upper) & (gradient < 0.0))
        system = slope[:, free].T @ slope[:, free]
        while damping < 1e8:
            step = np.zeros(len(names))
            step[free] = np.linalg.solve(system + damping * np.diag(np.diag(system)), -gradient[free])
            tried = np.clip(values + step, lower, upper)
            after = residual(tried)
            if after @ after < now @ now:
                break
            damping *= 4.0
        else:
            return values
        won = now @ now - after @ after
        values, now, damping = tried, after, max(1e-9, 0.25 * damping)
        if won < 1e-13 * (now @ now):
            return values
    return values
