# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo's motion as curves over frames: steps, a pelvis that follows the feet, hands, and a gaze.

Everything here is a place in armature space, metres: the figure looks along -Y, its left is +X. Only the
pelvis is posed from it; all the rest are targets, and the solver has to find the pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FRAME_START, FRAME_END = 1, 240
FPS = 24

STEPS = 8
FIRST_STEP = 10  # frame at which the first foot leaves the ground
STEP_TIME = 16  # frames from one step to the next
SWING_TIME = 12  # frames that a foot is in the air
STEP_LENGTH = 0.50  # metres
LIFT = 0.07  # metres
STAND = FIRST_STEP + STEP_TIME * (STEPS - 1) + SWING_TIME  # frame from which both feet stay

LEG_USED = 0.984  # of the leg's length at most: knees stay bent
HAND_HANGS = (0.33, -0.02, 0.97)  # left hand beside the body, from the point between the feet
# Where the right hand's ball goes once the figure stands: frame, place from the point between the feet.
BALL = (
    (STAND + 2, (-0.33, -0.02, 0.97)),
    (149, (-0.40, -0.40, 1.26)),
    (163, (-0.20, -0.50, 0.92)),
    (176, (-0.34, -0.46, 1.40)),
    (187, (-0.44, -0.42, 1.78)),
    (198, (-0.68, -0.44, 2.18)),
    (208, (-0.70, -0.40, 2.16)),
    (220, (-0.52, -0.36, 1.82)),
    (230, (-0.32, -0.44, 1.48)),
    (240, (-0.14, -0.46, 1.36)),
)
OTHER_BALL = (
    (STAND + 2, (0.33, -0.02, 0.97)),
    (150, (0.36, 0.02, 1.02)),
    (165, (0.46, 0.10, 1.02)),
    (178, (0.44, -0.12, 1.06)),
    (202, (0.42, -0.16, 1.04)),
    (218, (0.30, -0.36, 1.16)),
    (240, (0.14, -0.46, 1.36)),
)
# How far the pelvis sinks and goes back while the ball is low: frame, (down, back).
CROUCH = (
    (STAND + 4, (0.0, 0.0)),
    (152, (0.02, 0.03)),
    (163, (0.065, 0.12)),
    (180, (0.0, 0.0)),
    (240, (0.0, 0.0)),
)


@dataclass(frozen=True)
class Foot:
    """One foot over all frames."""

    ankle: Array  # (F, 3)
    ball: Array  # (F, 3)
    pitch: Array  # (F,) radians, heel up
    flat: Array  # (F,) bool: sole on the ground
    planted: Array  # (F,) bool: ball of the foot on the ground and not allowed to move
    place: Array  # (F,) y of the sole's origin


@dataclass(frozen=True)
class Motion:
    """All curves; (F, 3) places unless said otherwise."""

    frames: Array  # (F,)
    pelvis: Array  # shift from rest
    pelvis_yaw: Array  # (F,) radians about Z
    pelvis_lean: Array  # (F,) radians, to the front
    feet: dict[str, Foot]
    hands: dict[str, Array]
    gaze: Array


@dataclass(frozen=True)
class Body:
    """Places of the metarig at rest, left side, and lengths."""

    hip: Array
    ankle: Array
    ball: Array
    heel: Array
    neck: Array
    nose: Array
    leg: float  # hip to ankle along the bones


def motion(body: Body) -> Motion:
    """The motion for a body of these measures."""
    frames = np.arange(FRAME_START, FRAME_END + 1, dtype=np.float64)
    feet = {side: _foot(body, frames, side) for side in "LR"}
    apart = feet["R"].place - feet["L"].place  # above 0: the left foot is in front
    between = _smooth((feet["L"].place + feet["R"].place) / 2.0, 6.0)
    pelvis = np.zeros((len(frames), 3))
    pelvis[:, 0] = 0.025 * _smooth(_bearing(frames), 4.0)
    pelvis[:, 1] = between
    crouch = _through(CROUCH, frames)
    pelvis[:, 1] += crouch[:, 1]
    pelvis[:, 2] = _height(body, feet, pelvis) - crouch[:, 0]
    hands = {side: _hand(frames, between, apart, side) for side in "LR"}
    gaze = _gaze(body, pelvis, crouch, hands["R"], frames)
    yaw = -0.10 * _smooth(apart, 3.0) / STEP_LENGTH
    lean = 0.02 * _smooth((frames < STAND).astype(float), 8.0) + 3.0 * crouch[:, 0]
    return Motion(frames, pelvis, yaw, lean, feet, hands, gaze)


def motion_end() -> float:
    """Where the figure stands at the end, y in metres."""
    return -STEP_LENGTH * (STEPS - 1)


# --- feet ---------------------------------------------------------------------------------------------------


def _steps(side: str) -> list[tuple[float, float, float]]:
    """Of one foot: (frame at which it leaves the ground, from y, to y)."""
    found, place = [], 0.0
    for k in range(STEPS):
        if "LR"[k % 2] == side:
            to = -STEP_LENGTH * min(k + 1, STEPS - 1)
            found.append((FIRST_STEP + k * STEP_TIME, place, to))
            place = to
    return found


def _foot(body: Body, frames: Array, side: str) -> Foot:
    place, lift = np.zeros_like(frames), np.zeros_like(frames)
    swinging = np.zeros(len(frames), dtype=bool)
    keys = [(float(FRAME_START), 0.0)]  # frame, pitch in degrees
    for start, before, after in _steps(side):
        part = np.clip((frames - start) / SWING_TIME, 0.0, 1.0)
        place += (after - before) * part * part * part * (part * (part * 6.0 - 15.0) + 10.0)
        size = min(1.0, 0.3 + (before - after) / (2.0 * STEP_LENGTH))  # 1 for a whole stride
        lift += LIFT * size * np.sin(np.pi * part) ** 2
        swinging |= (part > 0.0) & (part < 1.0)
        times = ((-11, 0), (-5, 12), (0, 32), (3, 38), (9, -6), (12, -10), (16, 0))
        push = 1.0 if before < 0.0 else size
        strike = 1.0 if before - after > 1.5 * STEP_LENGTH else 0.0  # a short step lands on a flat foot
        keys += [(start + t, angle * (push if angle > 0 else strike)) for t, angle in times]
    keys.append((float(FRAME_END), 0.0))
    pitch = np.radians(_smooth(np.interp(frames, *np.transpose(keys)), 1.2))
    pitch[np.abs(pitch) < 1e-3] = 0.0
    # The sole rolls over the ball of the foot while the heel is up, over the heel while the toes are.
    pivot = np.where((pitch > 0.0)[:, None], body.ball, body.heel)
    mirror = np.array((1.0 if side == "L" else -1.0, 1.0, 1.0))
    shift = np.stack((np.zeros_like(frames), place, lift), axis=1)

    def at(point: Array) -> Array:
        arm = point - pivot
        c, s = np.cos(pitch), np.sin(pitch)
        turned = np.stack((arm[:, 0], c * arm[:, 1] - s * arm[:, 2], s * arm[:, 1] + c * arm[:, 2]), axis=1)
        return mirror * (pivot + turned) + shift

    planted = ~swinging & (pitch >= 0.0)
    return Foot(at(body.ankle), at(body.ball), pitch, ~swinging & (pitch == 0.0), planted, place)


def _bearing(frames: Array) -> Array:
    """+1 while the left foot bears the body alone, -1 for the right."""
    result = np.zeros_like(frames)
    for side, sign in (("L", -1.0), ("R", 1.0)):
        for start, _, _ in _steps(side):
            result[(frames >= start) & (frames <= start + SWING_TIME)] = sign
    return result


def _height(body: Body, feet: dict[str, Foot], pelvis: Array) -> Array:
    """How far the pelvis has to sink so that both legs reach the ground with bent knees."""
    allowed = np.full(len(pelvis), np.inf)
    for side, foot in feet.items():
        hip = pelvis + body.hip * ((1.0 if side == "L" else -1.0), 1.0, 1.0)
        flat = (foot.ankle - hip)[:, :2]
        reach = LEG_USED * body.leg
        allowed = np.minimum(
            allowed, foot.ankle[:, 2] + np.sqrt(reach**2 - (flat**2).sum(axis=1)) - body.hip[2]
        )
    wide = np.pad(allowed, 2, mode="edge")
    lowest = np.min([wide[i : i + len(allowed)] for i in range(5)], axis=0)
    return _smooth(lowest, 2.5)


# --- hands and head -----------------------------------------------------------------------------------------


def _hand(frames: Array, between: Array, apart: Array, side: str) -> Array:
    sign = 1.0 if side == "L" else -1.0
    forward = sign * 0.30 * _smooth(apart, 4.0)  # the arm goes with the other leg
    walking = np.stack(
        (
            np.full_like(frames, sign * HAND_HANGS[0]) - sign * 0.25 * np.clip(-forward, 0.0, None),
            between + HAND_HANGS[1] + forward,
            HAND_HANGS[2] + 1.2 * forward**2 - 0.18 * forward,
        ),
        axis=1,
    )
    flying = _through(OTHER_BALL if side == "L" else BALL, frames) + np.stack(
        (np.zeros_like(frames), np.full_like(frames, between[-1]), np.zeros_like(frames)), axis=1
    )
    part = np.clip((frames - (STAND - 4)) / 12.0, 0.0, 1.0)[:, None]
    part = part * part * (3.0 - 2.0 * part)
    return (1.0 - part) * walking + part * flying


def _gaze(body: Body, pelvis: Array, crouch: Array, ball: Array, frames: Array) -> Array:
    """Where the nose should be: above the pelvis, turned partly to the ball once the figure stands."""
    shift = np.stack((_smooth(pelvis[:, 0], 3.0), pelvis[:, 1], _smooth(pelvis[:, 2], 4.0)), axis=1)
    shift[:, 1] -= 0.03 + 1.7 * crouch[:, 0] + crouch[:, 1]
    shift[:, 2] -= 0.75 * crouch[:, 0]
    neck = shift + body.neck
    away = ball - neck
    heed = np.clip((frames - (STAND - 6)) / 16.0, 0.0, 1.0)
    heed = heed * heed * (3.0 - 2.0 * heed)
    yaw = heed * np.clip(0.7 * np.arctan2(away[:, 0], -away[:, 1]), -0.7, 0.7)
    pitch = heed * np.clip(0.55 * np.arctan2(away[:, 2], np.hypot(away[:, 0], away[:, 1])), -0.35, 0.45)
    x, y, z = body.nose - body.neck
    y, z = y * np.cos(pitch) + z * np.sin(pitch), z * np.cos(pitch) - y * np.sin(pitch)
    x, y = x * np.cos(yaw) - y * np.sin(yaw), x * np.sin(yaw) + y * np.cos(yaw)
    return neck + np.stack((x, y, z), axis=1)


# --- curves -------------------------------------------------------------------------------------------------


def _smooth(values: Array, sigma: float) -> Array:
    """A Gaussian average over frames; the ends go on as they are."""
    size = int(np.ceil(3.0 * sigma))
    kernel = np.exp(-0.5 * (np.arange(-size, size + 1) / sigma) ** 2)
    return np.convolve(np.pad(values, size, mode="edge"), kernel / kernel.sum(), mode="valid")


def _through(keys: Sequence[tuple[float, Sequence[float]]], frames: Array) -> Array:
    """A smooth curve through (frame, place), at rest at both ends: cubic Hermite with Catmull-Rom slopes."""
    times = np.array([key[0] for key in keys], dtype=np.float64)
    places = np.array([key[1] for key in keys], dtype=np.float64)
    slopes = np.zeros_like(places)
    slopes[1:-1] = (places[2:] - places[:-2]) / (times[2:] - times[:-2])[:, None]
    at = np.clip(frames, times[0], times[-1])
    i = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2)
    span = (times[i + 1] - times[i])[:, None]
    t = (at - times[i])[:, None] / span
    return (
        (1.0 + 2.0 * t) * (1.0 - t) ** 2 * places[i]
        + t * (1.0 - t) ** 2 * span * slopes[i]
        + t * t * (3.0 - 2.0 * t) * places[i + 1]
        + t * t * (t - 1.0) * span * slopes[i + 1]
    )
