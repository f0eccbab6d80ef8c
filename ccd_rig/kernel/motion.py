"""Frames of a motion beside their neighbours: departures, and the references that they make.

Shapes: F frames of J joints, M of which move in any frame; R of the frames. The departure of a joint is
b^-1 q, with b its base rotation and q the solved one, and w >= 0. It is 1 at a frame where the joint does not
move.
"""

from __future__ import annotations

from math import sqrt

from .elementary import atan2
from .geometry import conjugate, multiply, opposite, size_of, subtract, unit
from .kinematics import LARGEST
from .least_squares import slides_square, turn_square
from .plain import Quaternion, Vector, nogil
from .pose import check_numbers, check_ready

UNFIT = "kernel: the arrays do not fit the motion"


def write_departures(base, moves, joints, rows, rotations, turned):
    """Write the departures of R frames.

    Args:
        base: (F, 4J) base rotations, unit quaternions.
        moves: (F, M) 1 where a joint moves at a frame.
        joints: (M) numbers of the joints.
        rows: (R) numbers of the frames.
        rotations: (R, 4J) solved rotations, unit quaternions.
        turned: (R, 4M) written.

    Raises:
        ValueError: arrays that do not fit each other.
    """
    check_motion(base, moves, joints, rows, rotations, turned)
    with nogil:
        for r in range(rows.shape[0]):
            for m in range(joints.shape[0]):
                q = Quaternion(1.0, 0.0, 0.0, 0.0)
                if moves[rows[r], m] != 0:
                    start = conjugate(rotation_in(base, rows[r], joints[m]))
                    q = multiply(start, rotation_in(rotations, r, joints[m]))
                put_rotation(turned, r, m, opposite(q) if q.w < 0.0 else q)


def carry_departures(base, moves, joints, rows, turned, carried):
    """Write base rotations with departures: the inverse of `write_departures`.

    Args:
        base, moves, joints, rows: as there.
        turned: (R, 4M) departures.
        carried: (R, 4J) written.

    Raises:
        ValueError: arrays that do not fit each other.
    """
    check_motion(base, moves, joints, rows, carried, turned)
    with nogil:
        for r in range(rows.shape[0]):
            for n in range(base.shape[1]):
                carried[r, n] = base[rows[r], n]
            for m in range(joints.shape[0]):
                if moves[rows[r], m] != 0:
                    q = multiply(rotation_in(base, rows[r], joints[m]), rotation_in(turned, r, m))
                    put_rotation(carried, r, joints[m], unit(q))


def sweep_departures(turned, moves, before, after, smoothness, relaxes, rows, swept):
    """Write the departures of R frames that their neighbours make optimal, or over-relaxed ones beyond.

    Args:
        turned: (F, 4M) departures.
        moves: (F, M) 1 where a joint moves at a frame.
        before, after: (F) numbers of the neighbouring frames, or -1.
        smoothness: (F) of each frame; the larger one counts between two.
        relaxes: whether they are over-relaxed.
        rows: (R) numbers of the frames.
        swept: (R, 4M) written.

    Raises:
        ValueError: arrays that do not fit each other.
    """
    count = moves.shape[1]
    check_neighbours(moves, before, after, smoothness, turned)
    if swept.shape[0] != rows.shape[0] or swept.shape[1] != 4 * count:
        raise ValueError(UNFIT)
    check_numbers_of_frames(rows, 0, moves.shape[0])
    with nogil:
        for r in range(rows.shape[0]):
            # The optimal over-relaxation of a chain of frames, see `solvers/motion.py`.
            coupled = 2.0 * smoothness[rows[r]] / (1.0 + 2.0 * smoothness[rows[r]])
            relaxation = 2.0 / (1.0 + sqrt(1.0 - coupled * coupled)) if relaxes else 1.0
            for m in range(count):
                q = rotation_in(turned, rows[r], m)
                best = optimal_departure(turned, moves, before, after, smoothness, rows[r], m)
                best = on_same_side(best, q)
                q = Quaternion(
                    q.w + relaxation * (best.w - q.w),
                    q.x + relaxation * (best.x - q.x),
                    q.y + relaxation * (best.y - q.y),
                    q.z + relaxation * (best.z - q.z),
                )
                put_rotation(swept, r, m, unit(q))


def sum_departures(
    p, base, shifts, moves, joints, before, after, smoothness, turned, rows, rotations, translations, sums
):
    """Write of R poses the terms of the motion's sum in which they take part, as solves weigh departures.

    The departure of a pose, and its distances from base poses with the departures of its neighbours.

    Args:
        p: the problem that the R frames are solved by.
        base: (F, 4J) base rotations, unit quaternions.
        shifts: (F, 3J) base translations.
        moves: (F, M) 1 where a joint moves at a frame.
        joints: (M) numbers of the joints.
        before, after: (F) numbers of the neighbouring frames, or -1.
        smoothness: (F) of each frame; the larger one counts between two.
        turned: (F, 4M) departures.
        rows: (R) numbers of the frames.
        rotations, translations: (R, 4J) and (R, 3J) of the poses.
        sums: (R) written.

    Raises:
        ValueError: arrays that do not fit each other, numbers that are out of range.
    """
    check_ready(p)
    check_poses(base, moves, joints, rows, rotations)
    check_neighbours(moves, before, after, smoothness, turned)
    if rotations.shape[1] != 4 * p.joints or sums.shape[0] != rows.shape[0]:
        raise ValueError(UNFIT)
    if shifts.shape[0] != base.shape[0] or shifts.shape[1] != 3 * p.joints:
        raise ValueError(UNFIT)
    if translations.shape[0] != rows.shape[0] or translations.shape[1] != 3 * p.joints:
        raise ValueError(UNFIT)
    check_numbers("rotations", rotations, 4)
    check_numbers("translations", translations, 0)
    for r in range(rows.shape[0]):
        check_frame(base, shifts, before, after, smoothness, turned, rows[r])
    p.is_busy = True
    with nogil:
        for r in range(rows.shape[0]):
            row = rows[r]
            sums[r] = 0.0
            for i in range(p.joints):
                shift = subtract(vector_in(translations, r, i), vector_in(shifts, row, i))
                sums[r] += slides_square(p, i, shift)
            for m in range(joints.shape[0]):
                i = joints[m]
                q, start = rotation_in(rotations, r, i), rotation_in(base, row, i)
                sums[r] += turn_square(p, i, q, start)
                for side in range(2):
                    beside = before[row] if side == 0 else after[row]
                    if beside >= 0 and moves[beside, m] != 0:
                        share = max(smoothness[row], smoothness[beside])
                        carried = multiply(start, rotation_in(turned, beside, m))
                        sums[r] += share * turn_square(p, i, q, carried)
    p.is_busy = False


def write_largest_angles(a, b, largest):
    """Write the largest angles between the rotations of R poses, radians; 0 of poses without joints.

    Args:
        a, b: (R, 4M) unit quaternions.
        largest: (R) written.

    Raises:
        ValueError: arrays that do not fit each other.
    """
    if a.shape[0] != largest.shape[0] or a.shape[1] % 4 != 0:
        raise ValueError(UNFIT)
    if b.shape[0] != a.shape[0] or b.shape[1] != a.shape[1]:
        raise ValueError(UNFIT)
    with nogil:
        for r in range(a.shape[0]):
            largest[r] = 0.0
            for m in range(a.shape[1] // 4):
                largest[r] = max(largest[r], angle_between(rotation_in(a, r, m), rotation_in(b, r, m)))


def check_motion(base, moves, joints, rows, rotations, turned):
    """Raise ValueError unless frames, joints, and rotations and departures of some frames fit each other."""
    check_poses(base, moves, joints, rows, rotations)
    if turned.shape[0] != rows.shape[0] or turned.shape[1] != 4 * joints.shape[0]:
        raise ValueError(UNFIT)


def check_poses(base, moves, joints, rows, rotations):
    """Raise ValueError unless frames, joints, and rotations of some frames fit each other."""
    if base.shape[1] % 4 != 0 or moves.shape[0] != base.shape[0] or moves.shape[1] != joints.shape[0]:
        raise ValueError(UNFIT)
    if rotations.shape[0] != rows.shape[0] or rotations.shape[1] != base.shape[1]:
        raise ValueError(UNFIT)
    for m in range(joints.shape[0]):
        if not 0 <= joints[m] < base.shape[1] // 4:
            raise ValueError(UNFIT)
    check_numbers_of_frames(rows, 0, base.shape[0])


def check_neighbours(moves, before, after, smoothness, turned):
    """Raise ValueError unless departures, neighbours and smoothness of all frames fit each other."""
    frames = moves.shape[0]
    if turned.shape[0] != frames or turned.shape[1] != 4 * moves.shape[1]:
        raise ValueError(UNFIT)
    if before.shape[0] != frames or after.shape[0] != frames or smoothness.shape[0] != frames:
        raise ValueError(UNFIT)
    check_numbers_of_frames(before, -1, frames)
    check_numbers_of_frames(after, -1, frames)


def check_frame(base, shifts, before, after, smoothness, turned, row):
    """Raise ValueError unless the numbers of a frame and of its neighbours are in range."""
    check_numbers("base rotations", base[row : row + 1], 4)
    check_numbers("base translations", shifts[row : row + 1], 0)
    for side in range(3):
        frame = row if side == 0 else before[row] if side == 1 else after[row]
        if frame >= 0:
            check_numbers("departures", turned[frame : frame + 1], 4)
            if not 0.0 <= smoothness[frame] <= LARGEST:
                raise ValueError(f"kernel: smoothness must be 0 to {LARGEST:g}")


def check_numbers_of_frames(numbers, first, end):
    """Raise ValueError unless `first` <= number < `end` for all numbers."""
    for n in range(numbers.shape[0]):
        if not first <= numbers[n] < end:
            raise ValueError(UNFIT)


def optimal_departure(turned, moves, before, after, smoothness, row, m):
    """The departure of least sum beside those of the neighbours, see `solvers/motion.py`; of any length."""
    best, weight = Quaternion(1.0, 0.0, 0.0, 0.0), 1.0
    for side in range(2):
        beside = before[row] if side == 0 else after[row]
        if beside >= 0:
            share = max(smoothness[row], smoothness[beside]) if moves[beside, m] != 0 else 0.0
            q = on_same_side(rotation_in(turned, beside, m), best)
            best = Quaternion(
                best.w + share * q.w, best.x + share * q.x, best.y + share * q.y, best.z + share * q.z
            )
            weight += share
    return Quaternion(best.w / weight, best.x / weight, best.y / weight, best.z / weight)


def angle_between(a, b):
    """The angle between rotations, 0 to pi; exact for tiny ones."""
    near = Quaternion(b.w - a.w, b.x - a.x, b.y - a.y, b.z - a.z)
    far = Quaternion(b.w + a.w, b.x + a.x, b.y + a.y, b.z + a.z)
    chord = min(size_of(near), size_of(far))
    return 4.0 * atan2(chord, sqrt(max(0.0, 4.0 - chord * chord)))


def on_same_side(q, other):
    """`q` with the sign nearer to another quaternion."""
    return opposite(q) if q.w * other.w + q.x * other.x + q.y * other.y + q.z * other.z < 0.0 else q


def rotation_in(rows, row, joint):
    """The rotation of a joint in a row of rotations."""
    return Quaternion(
        rows[row, 4 * joint], rows[row, 4 * joint + 1], rows[row, 4 * joint + 2], rows[row, 4 * joint + 3]
    )


def vector_in(rows, row, joint):
    """The vector of a joint in a row of vectors."""
    return Vector(rows[row, 3 * joint], rows[row, 3 * joint + 1], rows[row, 3 * joint + 2])


def put_rotation(rows, row, joint, q):
    rows[row, 4 * joint] = q.w
    rows[row, 4 * joint + 1] = q.x
    rows[row, 4 * joint + 2] = q.y
    rows[row, 4 * joint + 3] = q.z
