"""Skeletons of hinges: planar chains, and ball joints split into three hinges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mathutils import Quaternion, Vector

from ..errors import InvalidInput
from ..limits.shapes import Comfort, EulerBox, Hinge
from ..maths.rotations import NOISE, between, nearest_turn
from ..maths.validation import finite, frozen_vector, listed, numbers
from .joints import Joint, Skeleton
from .pose import Pose, check_pose

Range = tuple[float, float]
_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
FREE: Range = (-math.pi, math.pi)
RANGES = "(lower, upper) or None for each"


def planar_chain(
    lengths: Sequence[float],
    angles: Sequence[float] | None = None,
    limits: Sequence[Range | None] | None = None,
    axis: Sequence[float] | Vector = (0.0, 0.0, 1.0),
) -> tuple[Skeleton, Pose]:
    """A chain of hinges in a plane through the origin, as in two-dimensional CCD (Juckett 2009, Lander 1998).

    At angle 0 all bones lie along +X of the plane: of the model with `axis` +Z, else where the shortest arc
    from +Z to `axis` takes +X. Joints are called joint0, joint1, ... and turn about +Z of their own frames.

    Juckett's results of a pass correspond to statuses of `solve`. Success is CONVERGED. Failure (no joint
    moved the effector along more than a trivial arc) is STALLED, or OPTIMAL where nothing nearer exists.
    Processing is an item of `iterate` before the last, or ITERATION_LIMIT when the passes ran out. His
    arrival distance is `position_tolerance`, his trivial arc length `stall_threshold` times the chain's
    length. `solve` also perturbs a stalled chain once, and so leaves his folded local minimum.

    Args:
        lengths: of the bones, root first, model units, 0 or more.
        angles: of each joint from the bone before (the first from +X), radians, positive about `axis`; None:
            all 0.
        limits: (lower, upper) of each joint's angle, radians, or None for a free one; None: all free.
        axis: normal of the plane in model space, any length but 0.

    Returns:
        The skeleton, and the pose with these angles (outside its limit where the caller put it there).

    Raises:
        InvalidInput: no lengths, not as many angles or limits as lengths, a number that is not finite, a
            zero axis, a lower limit above the upper.
    """
    lengths = listed("planar_chain: lengths", lengths, "a length for each bone")
    turns, ranges = _per_bone(len(lengths), angles, limits)
    normal = frozen_vector(axis, "planar_chain: axis")
    if normal.length == 0.0:
        raise InvalidInput("planar_chain: axis is zero; give the normal of the plane, such as (0, 0, 1)")
    up = Vector(_AXES["Z"])
    # A bone points along +Y of its frame: a quarter turn back brings it to +X of the plane.
    first = between(up, normal) @ Quaternion(up, -0.5 * math.pi)
    joints = [
        Joint(
            f"joint{i}",
            i - 1,
            (0.0, lengths[i - 1] if i else 0.0, 0.0),
            (1.0, 0.0, 0.0, 0.0) if i else (first.w, first.x, first.y, first.z),
            length,
            _hinge("Z", ranges[i]),
        )
        for i, length in enumerate(lengths)
    ]
    skeleton = Skeleton(joints)
    return skeleton, Pose.rest(skeleton).with_rotations(
        {i: Quaternion(up, turn) for i, turn in enumerate(turns)}
    )


def _per_bone(
    count: int, angles: Sequence[float] | None, limits: Sequence[Range | None] | None
) -> tuple[list[float], list[Range | None]]:
    """The angle and the limit of each bone of a planar chain, checked."""
    if count == 0:
        raise InvalidInput("planar_chain: give the length of at least one bone")
    turns = [0.0] * count if angles is None else listed("planar_chain: angles", angles, "numbers")
    ranges = [None] * count if limits is None else listed("planar_chain: limits", limits, RANGES)
    for what, values in (("angles", turns), ("limits", ranges)):
        if len(values) != count:
            raise InvalidInput(f"planar_chain: {count} lengths need {count} {what}, not {len(values)}")
    return (
        [finite(f"planar_chain: angles[{i}]", turn) for i, turn in enumerate(turns)],
        [_range(f"planar_chain: limits[{i}]", each) for i, each in enumerate(ranges)],
    )


def _range(name: str, value: object) -> Range | None:
    """A range of an angle, or None; InvalidInput names the field."""
    if value is None:
        return None
    lower, upper = numbers(name, value, 2)
    return lower, upper


def hinge_names(joint: str, order: str = "XYZ") -> tuple[str, str, str]:
    """Names of the hinges that `split_ball` makes of `joint`, from the parent on; the last is `joint`."""
    return f"{joint}.{order[2]}", f"{joint}.{order[1]}", joint


def split_ball(
    skeleton: Skeleton,
    pose: Pose,
    joint: str,
    order: str = "XYZ",
    limits: Sequence[Range | None] | EulerBox | None = None,
) -> tuple[Skeleton, Pose]:
    """Split a ball joint into three hinges without length between them (Kenwright 2012, figures 20 and 21).

    `order` is Blender's: "XYZ" turns about X first and about Z last, so that from the parent on the hinges
    are Z, Y, X. The last hinge is the bone itself and keeps its name, length, mass and children.
    `hinge_names` names the two before it. All bones stay in place; a chain_length across the ball must grow
    by 2.

    Args:
        skeleton: the joints.
        pose: of `skeleton`.
        joint: name of the ball joint.
        order: one of XYZ, XZY, YXZ, YZX, ZXY, ZYX.
        limits: (lower, upper) about X, Y and Z (whatever the order), radians, None for a free one; or an
            EulerBox of this order. None takes over the joint's EulerBox of this order; a free joint gives
            free hinges.

    Returns:
        The new skeleton, and its pose. Of the two sets of Euler angles (at gimbal lock: of all) it has the
        one inside the limits. A rotation outside the limits keeps its angles, and is as far outside.

    Raises:
        InvalidInput: no such joint, an unknown order, the pose is for another skeleton, limits that are not
            three, or a joint whose limit is not three angles and no `limits`.
    """
    check_pose(skeleton, pose)
    split = skeleton.index(joint)
    old = skeleton.joints[split]
    if order not in ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"):
        raise InvalidInput(f"split_ball: order must be one of XYZ, XZY, YXZ, YZX, ZXY, ZYX, not {order!r}")
    ranges = _ranges(old, order, limits)
    regions = _regions(old, order)
    angles = _angles(pose.rotations[split], order, [ranges[name] or FREE for name in order])
    joints: list[Joint] = []
    rotations: list[Quaternion] = []
    translations: list[Vector] = []
    places: dict[int, int] = {}
    for i, each in enumerate(skeleton.joints):
        parent = places.get(each.parent, -1)
        if i != split:
            joints.append(replace(each, parent=parent))
            rotations.append(pose.rotations[i])
            translations.append(pose.translations[i])
            places[i] = len(joints) - 1
            continue
        for place, axis in enumerate(reversed(order)):
            hinge = _split_hinge(old, place, order, ranges[axis], regions[axis])
            joints.append(replace(hinge, parent=parent))
            parent = len(joints) - 1
            rotations.append(Quaternion(_AXES[axis], angles[2 - place]))
            translations.append(pose.translations[i] if place == 0 else Vector())
        places[i] = parent
    return Skeleton(joints), Pose(tuple(rotations), tuple(translations))


def _split_hinge(ball: Joint, place: int, order: str, limits: Range | None, region: Range | None) -> Joint:
    """A hinge of a split ball joint; `place` 0 is the first from the parent on."""
    axis = order[2 - place]
    hinge = replace(
        ball,
        name=hinge_names(ball.name, order)[place],
        limit=_hinge(axis, limits),
        comfort=ball.comfort
        and Comfort(ball.comfort.tolerance, None if region is None else _hinge(axis, region)),
        slides=ball.slides if place == 0 else (),
        coupled_offsets=ball.coupled_offsets if place == 0 else (),
    )
    if place > 0:
        identity = (1.0, 0.0, 0.0, 0.0)
        hinge = replace(hinge, offset=(0.0, 0.0, 0.0), rest_rotation=identity, inherit_rotation=True)
    return hinge if place == 2 else replace(hinge, length=0.0, mass=0.0)


def _hinge(axis: str, limits: Range | None) -> Hinge:
    lower, upper = limits or FREE
    return Hinge(_AXES[axis], lower, upper)


def _ranges(
    joint: Joint, order: str, limits: Sequence[Range | None] | EulerBox | None
) -> dict[str, Range | None]:
    """The range about each axis, by its letter."""
    if limits is None:
        if joint.limit is None:
            return dict.fromkeys("XYZ")
        if not isinstance(joint.limit, EulerBox) or joint.limit.order != order:
            raise InvalidInput(
                f"split_ball: the limit of joint '{joint.name}' is not an EulerBox of order {order}; "
                f"give limits: a range about X, Y and Z each"
            )
        limits = joint.limit
    if isinstance(limits, EulerBox):
        if limits.order != order:
            raise InvalidInput(f"split_ball: the limits' order is {limits.order}, but the hinges' is {order}")
        return dict(zip("XYZ", zip(limits.lower, limits.upper, strict=True), strict=True))
    ranges = listed("split_ball: limits", limits, RANGES)
    if len(ranges) != 3:
        raise InvalidInput(f"split_ball: give three limits, about X, Y and Z, not {len(ranges)}")
    return {axis: _range(f"split_ball: limits[{i}]", ranges[i]) for i, axis in enumerate("XYZ")}


def _regions(joint: Joint, order: str) -> dict[str, Range | None]:
    """The preferred range about each axis, from the joint's comfort region."""
    region = joint.comfort.region if joint.comfort is not None else None
    if region is None:
        return dict.fromkeys("XYZ")
    if not isinstance(region, EulerBox) or region.order != order:
        raise InvalidInput(
            f"split_ball: the comfort region of joint '{joint.name}' is not an EulerBox of order {order}; "
            f"leave it out, or give one"
        )
    return dict(zip("XYZ", zip(region.lower, region.upper, strict=True), strict=True))


def _angles(rotation: Quaternion, order: str, ranges: Sequence[Range]) -> tuple[float, float, float]:
    """Euler angles of `rotation`, in the order in which they turn, inside `ranges` if any are."""
    # As pairs of complex numbers, which keep what gimbal lock leaves (Bernardes & Viollet 2022; see
    # `kernel/limits.py`).
    i, j, k = ("XYZ".index(name) for name in order)
    sign = 1.0 if order in ("XYZ", "YZX", "ZXY") else -1.0
    w, v = rotation.w, (rotation.x, rotation.y, rotation.z)
    a, b, c, d = w - v[j], v[i] + sign * v[k], w + v[j], sign * v[k] - v[i]
    half_sum, half_difference = math.atan2(b, a), math.atan2(d, c)
    first, last = half_sum - half_difference, sign * (half_sum + half_difference)
    middle = 2.0 * math.atan2(math.hypot(c, d), math.hypot(a, b)) - 0.5 * math.pi
    candidates = [(first, middle, last), (first + math.pi, math.pi - middle, last + math.pi)]
    if min(math.hypot(a, b), math.hypot(c, d)) <= NOISE:
        # Gimbal lock: first and last may move in step, or against each other. If they fit at all, they fit
        # with one of them at a border.
        coupling = sign if math.hypot(a, b) <= NOISE else -sign
        candidates.extend((border, middle, last + coupling * (border - first)) for border in ranges[0])
        candidates.extend((first + coupling * (border - last), middle, border) for border in ranges[2])
    best, least = candidates[0], math.inf
    for angles in candidates:
        inside = tuple(nearest_turn(angle, *limits) for angle, limits in zip(angles, ranges, strict=True))
        off = sum(
            abs(math.remainder(angle - near, 2.0 * math.pi))
            for angle, near in zip(angles, inside, strict=True)
        )
        if off < least - 1e-6:
            best, least = angles, off
    return best
