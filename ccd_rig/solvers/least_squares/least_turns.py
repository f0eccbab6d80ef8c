"""The least turns of many joints, over many frames at once, that move and turn what hangs on them.

As in `shared_passes`: a push v at the effector turns joint i, seen from which the effector is at r_i, by the
rotation vector m_i r_i x v (m_i: its mobility). Where the last joint is to be turned as well a second push w
turns each by m_i w. Together they move the effector by sum m_i (|r_i|^2 - r_i r_i^T) v - m_i r_i x w and turn
the joint by sum m_i (r_i x v + w); of all turns that do so these have the least sum of squares over mobility.

Arrays are in double precision, frames last: (4, n, F) rotations (w, x, y, z), (3, n, F) vectors, (3, 3, n, F)
frames of n joints, model space.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...limits.batch import Array, Limits, Places

LONGEST = 0.3
"""Longest turn of a joint in one step, radians: farther away the linear picture means little."""


class Facing(NamedTuple):
    """How the last joint is still to be turned.

    Attributes:
        turn: (3, F) rotation vector, model space.
        about: (3, F) unit axis about which it may be turned as it likes; None: none.
        length: what a radian counts for beside a way, in the model's unit.
    """

    turn: Array
    about: Array | None
    length: float


class Axes(NamedTuple):
    """Single axes about which some joints turn alone, or do not turn.

    Attributes:
        joints: (k,) their places. along: (3, k, F) in model space. signs: (k, F) 1 where a joint turns about
            this axis alone, -1 where it turns about all others, 0 where it does as it likes.
    """

    joints: Places
    along: Array
    signs: Array


def axes_of(limits: Limits, rotations: Array, frames: Array, normals: Array | None) -> list[Axes]:
    """Of hinges, of single twists, and last of joints that are held at a limit: the normal, outwards."""
    found, size = [], rotations.shape[-1]
    for joints, axes, sign in (
        (limits.hinges, limits.axes, 1.0),
        (limits.locked, limits.locked_axes(rotations), -1.0),
    ):
        if len(joints):
            along = np.einsum("ijnf,jnf->inf", frames[:, :, joints], axes)
            found.append(Axes(joints, along, np.full((len(joints), size), sign)))
    if normals is not None:
        joints = np.flatnonzero(normals.any(axis=(0, 2)))
        own = normals[:, joints]
        along = np.einsum("ijnf,jnf->inf", frames[:, :, joints], own)
        found.append(Axes(joints, along, np.where(own.any(axis=0), -1.0, 0.0)))
    else:
        found.append(Axes(np.empty(0, np.intp), np.empty((3, 0, size)), np.empty((0, size))))
    return found


def turns_of(
    mobility: Array,
    limits: Limits,
    levers: Array,
    axes: Sequence[Axes],
    way: Array,
    facing: Facing | None = None,
) -> Array:
    """(3, n, F) rotation vectors, model space, of the joints.

    A free joint turns by all that it is asked for, others by its part along their axis or by what is left
    without it. A joint that is held at its limit is let go where it would turn back.

    Args:
        mobility: (n,) of the joints, 0 for those that stay.
        limits: of the joints.
        levers: (3, n, F) from their heads to the effector.
        axes: see `axes_of`.
        way: (3, F) that the effector is to be moved.
        facing: how the last joint is to be turned as well.
    """
    balls = mobility.copy()
    balls[limits.hinges] = 0.0
    weighted = levers * balls[:, None]
    plain = -np.einsum("inf,jnf->ijf", weighted, levers)
    square = -(plain[0, 0] + plain[1, 1] + plain[2, 2])
    for k in range(3):
        plain[k, k] += square
    across, wanted = [cross(each.along, levers[:, each.joints]) for each in axes], way
    if facing is not None:
        plain = _with_turns(plain, weighted.sum(1), float(balls.sum()), facing.length)
        across = [
            np.concatenate((arms, facing.length * each.along))
            for arms, each in zip(across, axes, strict=True)
        ]
        wanted = np.concatenate((way, facing.length * facing.turn))
    parts = [mobility[each.joints][:, None] * each.signs for each in axes]
    for _ in range(2):
        system = plain.copy()
        for arms, part in zip(across, parts, strict=True):
            system += np.einsum("inf,jnf->ijf", arms * part, arms)
        push = _push(system, wanted, None if facing is None else facing.about)
        own = [(arms * push[:, None]).sum(0) for arms in across]
        released = (parts[-1] != 0.0) & (own[-1] < 0.0)
        if not released.any():
            break
        parts[-1] = np.where(released, 0.0, parts[-1])
    turns = cross(weighted, push[:3, None])
    if facing is not None:
        turns += facing.length * balls[:, None] * push[3:, None]
    for each, part, turn in zip(axes, parts, own, strict=True):
        turns[:, each.joints] += part * turn * each.along
    angles = np.sqrt((turns * turns).sum(0).max(0))
    turns *= np.minimum(1.0, LONGEST / np.maximum(angles, 1e-300))
    return turns


def _with_turns(plain: Array, lever: Array, mobility: float, length: float) -> Array:
    """(6, 6, F): the system of ways (3, 3, F), and of turns, which count `length`; `lever` (3, F) and
    `mobility` are sums over the joints."""
    x, y, z = length * lever
    found = np.zeros((6, 6, plain.shape[-1]))
    found[:3, :3] = plain
    # A push w moves the effector by w x r, a push v turns the joint by r x v.
    found[3, 1], found[3, 2], found[4, 2] = -z, y, -x
    found[4, 0], found[5, 0], found[5, 1] = z, -y, x
    found[:3, 3:] = found[3:, :3].transpose(1, 0, 2)
    for k in range(3, 6):
        found[k, k] = length * length * mobility
    return found


def _push(system: Array, wanted: Array, about: Array | None) -> Array:
    """What a damped system makes `wanted`: (3, F) or (6, F); no turn `about` an axis is asked for."""
    size = len(wanted)
    trace = np.einsum("iif->f", system)
    damping = DAMPING * (wanted * wanted).sum(0) + LEAST_DAMPING * trace
    diagonal = [system[k, k] + damping for k in range(size)]
    if size == 3:
        return np.array(solved((*diagonal, system[0, 1], system[0, 2], system[1, 2]), wanted))
    whole, asked = system.transpose(2, 0, 1).copy(), wanted.T
    for k in range(size):
        whole[:, k, k] = np.where(diagonal[k] > 0.0, diagonal[k], 1.0)
    if about is not None:
        keep = np.zeros_like(whole)
        keep[:] = np.eye(size)
        keep[:, 3:, 3:] -= np.einsum("if,jf->fij", about, about)
        whole = keep @ whole @ keep + (trace + damping + 1e-300)[:, None, None] * (np.eye(size) - keep)
        asked = np.einsum("fij,fj->fi", keep, asked)
    return np.asarray(np.linalg.solve(whole, asked[..., None])[..., 0].T, dtype=np.float64)


def cross(a: Array, b: Array) -> Array:
    """Of (3, ...) vectors."""
    ax, ay, az = a
    bx, by, bz = b
    return np.stack((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx))


DAMPING, LEAST_DAMPING = 0.1, 1e-6
"""Parts of the square error and of A's trace that are added to A: far away steps are small, and a straight
chain has a push too."""


def solved(system: Sequence[Any], way: Iterable[Any]) -> tuple[Any, Any, Any]:
    """The vector that a symmetric system (xx, yy, zz, xy, xz, yz) makes `way`; of numbers or of arrays.

    By cofactors, and so exact to double precision also where a chain is nearly straight.
    """
    a, b, c, xy, xz, yz = system
    aa, bb, cc = b * c - yz * yz, a * c - xz * xz, a * b - xy * xy
    ab, ac, bc = xz * yz - xy * c, xy * yz - xz * b, xy * xz - yz * a
    scale = 1.0 / (a * aa + xy * ab + xz * ac)
    x, y, z = way
    return (
        scale * (aa * x + ab * y + ac * z),
        scale * (ab * x + bb * y + bc * z),
        scale * (ac * x + bc * y + cc * z),
    )
