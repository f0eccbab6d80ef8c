# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored limits and comfort regions: their kinds, each with all its answers, and the core's values of them.

Angles are stored in radians and shown in degrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import bpy

from ...errors import InvalidInput, RigError
from ...maths.validation import Triple
from ..languages.translation import CONTEXT
from ..registration import STORED, use
from .active_rig import keep_overrides
from .constraint_values import Line, Shown

if TYPE_CHECKING:
    from ...limits.shapes import Cone, Ellipse, Limit, SwingTwist

TURN = 2.0 * math.pi  # the widest bound of a hinge or Euler angle that the panel offers, radians
_BONE = (0.0, 1.0, 0.0)
_SLACK = 1e-6  # radians by which float32 properties may exceed their bounds


# Kinds ------------------------------------------------------------------------------------------------------


class LimitKind(str):
    """Kind of a stored limit, by its identifier in files: all that differs between kinds.

    The base class stands for no limit. Its subclasses are listed in `LIMIT_KINDS`.

    Attributes:
        number: of the identifier in files, for good.
        label, description: in menus.
        swings: properties of the bounds of a swing, each with the axis about which it turns the bone.
        axis: property of the axis that a handle turns; empty for none.
    """

    __slots__ = ()

    number = 0
    label = "None"
    description = "The bone turns freely"
    swings: tuple[tuple[str, Triple], ...] = ()
    axis = ""

    def value(self, _group: Any) -> Limit | None:
        """The value of a stored limit of this kind; raises InvalidInput on a contradiction."""
        return None

    def values(self, limit: Limit | None) -> Mapping[str, Any] | None:
        """Properties that store a limit, by name, besides the kind; None if it is not of this kind."""
        from ...limits.shapes import SwingTwist

        is_free = isinstance(limit, SwingTwist) and limit.swing is None and limit.twist is None
        if is_free and _twists_bone(limit):
            return {"use_twist": False}
        return {} if limit is None else None

    def bounds(self, _group: Any) -> tuple[str, str] | None:
        """Properties of the lower and upper bounds of angles that are in force; vectors for Euler angles."""
        return None

    def lines(self, _group: Any) -> Iterator[Line]:
        """Yield the lines of the panel."""
        yield from ()


class HingeKind(LimitKind):
    __slots__ = ()

    number = 1
    label = "Hinge"
    description = "The bone turns about one axis, as a knee or an elbow does"
    axis = "axis"

    def value(self, group: Any) -> Limit:
        from ...limits.shapes import Hinge

        return Hinge(tuple(group.axis), group.hinge_lower, group.hinge_upper)

    def values(self, limit: Limit | None) -> Mapping[str, Any] | None:
        from ...limits.shapes import Hinge

        if not isinstance(limit, Hinge):
            return None
        lower, upper = _within(limit.lower, limit.upper)
        return {"axis": limit.axis, "hinge_lower": lower, "hinge_upper": upper}

    def bounds(self, _group: Any) -> tuple[str, str]:
        return "hinge_lower", "hinge_upper"

    def lines(self, group: Any) -> Iterator[Line]:
        yield Line((Shown(group, "axis"),), is_column=True)
        yield _pair(group, "hinge_lower", "hinge_upper")


class TwistKind(LimitKind):
    """A range about the bone's length; swings over it limit the swing too."""

    __slots__ = ()

    number = 5
    label = "Twist"
    description = "The bone swings freely and rolls about its own length within a range"

    def limits_twist(self, _group: Any) -> bool:
        """Whether the range about the bone's length is in force."""
        return True

    def swing(self, _group: Any) -> Cone | Ellipse | None:
        """The value of the swing."""
        return None

    def swing_values(self, swing: Cone | Ellipse | None) -> Mapping[str, Any] | None:
        """Properties that store a swing; None if it is of another shape."""
        return {} if swing is None else None

    def value(self, group: Any) -> Limit:
        from ...limits.shapes import SwingTwist

        twist = (_radians(group.twist_lower), _radians(group.twist_upper))
        return SwingTwist(self.swing(group), twist if self.limits_twist(group) else None)

    def values(self, limit: Limit | None) -> Mapping[str, Any] | None:
        from ...limits.shapes import SwingTwist

        if not isinstance(limit, SwingTwist) or not _twists_bone(limit):
            return None
        swing = self.swing_values(limit.swing)
        if swing is None or (limit.swing is None and limit.twist is None):
            return None
        if limit.twist is None:
            return {"use_twist": False, **swing}
        lower, upper = _within(*limit.twist, 0.5 * TURN)
        return {"use_twist": True, "twist_lower": lower, "twist_upper": upper, **swing}

    def bounds(self, group: Any) -> tuple[str, str] | None:
        return ("twist_lower", "twist_upper") if self.limits_twist(group) else None

    def lines(self, group: Any) -> Iterator[Line]:
        yield _pair(group, "twist_lower", "twist_upper")


class SwingKind(TwistKind):
    """A swing of a shape, and a range about the bone's length if Limit Twist is on."""

    __slots__ = ()

    def limits_twist(self, group: Any) -> bool:
        return bool(group.use_twist)

    def lines(self, group: Any) -> Iterator[Line]:
        names = ("twist_lower", "twist_upper")
        twist = (Shown(group, name, is_active=group.use_twist) for name in names)
        yield Line((Shown(group, "use_twist", "Limit"), *twist), heading="Twist", is_column=True)


class ConeKind(SwingKind):
    __slots__ = ()

    number = 2
    label = "Cone"
    description = "The bone swings by the same angle to all sides"
    swings = (("cone_radius", (1.0, 0.0, 0.0)),)

    def swing(self, group: Any) -> Cone:
        from ...limits.shapes import Cone

        return Cone(_radians(group.cone_radius))

    def swing_values(self, swing: Cone | Ellipse | None) -> Mapping[str, Any] | None:
        from ...limits.shapes import Cone

        return {"cone_radius": swing.radius} if isinstance(swing, Cone) else None

    def lines(self, group: Any) -> Iterator[Line]:
        yield Line((Shown(group, "cone_radius"),))
        yield from super().lines(group)


class EllipseKind(SwingKind):
    __slots__ = ()

    number = 3
    label = "Ellipse"
    description = "The bone swings by another angle to each of four sides, as a shoulder or a hip does"
    swings = (
        ("x_lower", (1.0, 0.0, 0.0)),
        ("x_upper", (1.0, 0.0, 0.0)),
        ("z_lower", (0.0, 0.0, 1.0)),
        ("z_upper", (0.0, 0.0, 1.0)),
    )

    def swing(self, group: Any) -> Ellipse:
        from ...limits.shapes import Ellipse

        return Ellipse(*(_radians(getattr(group, name)) for name, _ in self.swings))

    def swing_values(self, swing: Cone | Ellipse | None) -> Mapping[str, Any] | None:
        from ...limits.shapes import Ellipse

        if not isinstance(swing, Ellipse):
            return None
        return {name: getattr(swing, name) for name, _ in self.swings}

    def lines(self, group: Any) -> Iterator[Line]:
        yield _pair(group, "x_lower", "x_upper")
        yield _pair(group, "z_lower", "z_upper")
        yield from super().lines(group)


class EulerKind(LimitKind):
    __slots__ = ()

    number = 4
    label = "Euler Angles"
    description = "Each Euler angle has a range of its own"

    def value(self, group: Any) -> Limit:
        from ...limits.shapes import EulerBox

        return EulerBox(group.euler_order, tuple(group.euler_lower), tuple(group.euler_upper))

    def values(self, limit: Limit | None) -> Mapping[str, Any] | None:
        from ...limits.shapes import EulerBox

        if not isinstance(limit, EulerBox):
            return None
        ends = [_within(*bounds) for bounds in zip(limit.lower, limit.upper, strict=True)]
        lower, upper = zip(*ends, strict=True)
        return {"euler_order": limit.order, "euler_lower": lower, "euler_upper": upper}

    def bounds(self, _group: Any) -> tuple[str, str]:
        return "euler_lower", "euler_upper"

    def lines(self, group: Any) -> Iterator[Line]:
        yield Line((Shown(group, "euler_order"),))
        yield Line((Shown(group, "euler_lower"),), is_column=True)
        yield Line((Shown(group, "euler_upper"),), is_column=True)


_KINDS = (
    LimitKind("NONE"),
    HingeKind("HINGE"),
    ConeKind("CONE"),
    EllipseKind("ELLIPSE"),
    TwistKind("TWIST"),
    EulerKind("EULER"),
)
LIMIT_KINDS: Mapping[str, LimitKind] = MappingProxyType({kind: kind for kind in _KINDS})
"""The kinds of stored limits by their identifiers, in the order of menus."""


def limit_kind(group: Any) -> LimitKind:
    """Return the kind of a stored limit; no limit for one that this version does not know."""
    return LIMIT_KINDS.get(group.kind, _KINDS[0])


def _pair(group: Any, lower: str, upper: str) -> Line:
    return Line((Shown(group, lower), Shown(group, upper)), is_column=True)


def _twists_bone(limit: SwingTwist) -> bool:
    """Whether the axis of a swing and twist is the bone, as stored ones have it."""
    return max(abs(a - b) for a, b in zip(limit.axis, _BONE, strict=True)) <= _SLACK


def _radians(angle: float) -> float:
    # Properties are float32, whose nearest number to pi is larger than pi. In this order of min and max NaN
    # stays NaN, and the core refuses it.
    return max(min(angle, math.pi), -math.pi)


def _within(lower: float, upper: float, most: float = TURN) -> tuple[float, float]:
    """Return a range of angles. A range that leaves the angle free becomes a full turn about rest."""
    if upper - lower >= TURN and max(-lower, upper) > most:
        return -0.5 * TURN, 0.5 * TURN
    return lower, upper


# The property group -----------------------------------------------------------------------------------------


def _angle(label: str, description: str, default: float, lower: float, upper: float) -> Any:
    return STORED.number(label, description, default=default, min=lower, max=upper, subtype="ANGLE")


EULER_ORDERS = tuple(
    (order, order, f"Euler order {order}") for order in ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
)


def on_kind(_group: Any, _context: bpy.types.Context | None = None) -> None:
    """Note the use of a limit."""
    use()


class CCD_RIG_PG_limit(bpy.types.PropertyGroup):
    """Range of rotations relative to rest, in the bone's axes: a limit, or a comfort region."""

    kind: STORED.enum(
        "Limit",
        "Which shape the range of rotations has",
        items=tuple((str(kind), kind.label, kind.description, kind.number) for kind in LIMIT_KINDS.values()),
        update=on_kind,
        translation_context=CONTEXT,
    )
    axis: STORED.vector(
        "Hinge Axis",
        "The hinge's axis in the bone's own axes at rest; Y points along the bone",
        size=3,
        default=(1.0, 0.0, 0.0),
        subtype="XYZ",
    )
    hinge_lower: _angle(
        "Min",
        "Smallest angle about the axis; above zero, the joint never straightens",
        -math.pi / 2,
        -TURN,
        TURN,
    )
    hinge_upper: _angle("Max", "Largest angle about the axis", math.pi / 2, -TURN, TURN)
    cone_radius: _angle("Radius", "Largest swing away from the rest direction", math.pi / 4, 0.0, math.pi)
    x_lower: _angle("X Min", "Largest swing about the bone's X axis, backwards", -math.pi / 4, -math.pi, 0.0)
    x_upper: _angle("X Max", "Largest swing about the bone's X axis, forwards", math.pi / 4, 0.0, math.pi)
    z_lower: _angle("Z Min", "Largest swing about the bone's Z axis, backwards", -math.pi / 4, -math.pi, 0.0)
    z_upper: _angle("Z Max", "Largest swing about the bone's Z axis, forwards", math.pi / 4, 0.0, math.pi)
    use_twist: STORED.boolean("Limit Twist", "Limit how far the bone rolls about its own length")
    twist_lower: _angle("Min", "Smallest roll about the bone's length", -math.pi / 4, -math.pi, math.pi)
    twist_upper: _angle("Max", "Largest roll about the bone's length", math.pi / 4, -math.pi, math.pi)
    euler_order: STORED.enum("Euler Order", "Order in which the three angles are applied", items=EULER_ORDERS)
    euler_lower: STORED.vector(
        "Min",
        "Smallest Euler angles",
        size=3,
        default=(-math.pi / 4,) * 3,
        min=-TURN,
        max=TURN,
        subtype="EULER",
    )
    euler_upper: STORED.vector(
        "Max",
        "Largest Euler angles",
        size=3,
        default=(math.pi / 4,) * 3,
        min=-TURN,
        max=TURN,
        subtype="EULER",
    )


# Values -----------------------------------------------------------------------------------------------------


def limit_value(group: Any) -> Limit | None:
    """Return the value of a stored limit, None for a free bone; raises InvalidInput on a contradiction."""
    return limit_kind(group).value(group)


def limit_of(bone: str, part: str, group: Any) -> Limit | None:
    """Return the value of a bone's stored limit.

    Raises:
        RigError: the limit is contradictory; says so in the panel's labels and degrees.
    """
    if not group.kind:  # the file has a number that is not in the list
        raise RigError(
            f"bone '{bone}', {part}: its kind is not known to this version: choose one, or update CCD Rig"
        )
    for label, lower, upper in _ranges(group):
        if lower > upper:
            raise RigError(
                f"bone '{bone}', {part}: {label}Min ({math.degrees(lower):.4g}°) is above "
                f"{label}Max ({math.degrees(upper):.4g}°): swap them"
            )
    axis = limit_kind(group).axis
    if axis and not any(getattr(group, axis)):
        raise RigError(f"bone '{bone}', {part}: its axis is zero: let it point along X, as (1, 0, 0)")
    return named_value(bone, part, lambda: limit_value(group))


def _ranges(group: Any) -> list[tuple[str, float, float]]:
    """Return the ranges in force whose bounds may be swapped: (label, lower, upper), radians."""
    names = limit_kind(group).bounds(group)
    if names is None:
        return []
    lower, upper = (getattr(group, name) for name in names)
    if isinstance(lower, float):
        return [("twist " if names[0] == "twist_lower" else "", lower, upper)]
    return [(f"{axis} ", *ends) for axis, *ends in zip("XYZ", lower, upper, strict=True)]


def named_value(bone: str, part: str, make: Callable[[], Any]) -> Any:
    """Return what `make` makes of a bone; a RigError names the bone and its part."""
    try:
        return make()
    except InvalidInput as error:
        raise RigError(f"bone '{bone}', {part}: {error}") from error


def store_limits(
    limits: Mapping[bpy.types.PoseBone, Limit | None],
    regions: Mapping[bpy.types.PoseBone, Limit | None] | None = None,
) -> None:
    """Store limits and comfort regions of bones. Fields of the remaining kinds of limit are kept.

    Raises:
        RigError: names the bone whose limit cannot be stored. Nothing has changed then.
    """
    stored = {bone: _storable(bone, limit) for bone, limit in limits.items()}
    preferred = {bone: _storable(bone, region) for bone, region in (regions or {}).items()}
    for path, values_of in (("limit", stored), ("comfort.region", preferred)):
        for bone, values in values_of.items():
            group = bone.ccd_rig.path_resolve(path)
            for field, value in values.items():
                setattr(group, field, value)
    for armature_object in {bone.id_data for bone in (*stored, *preferred)}:
        keep_overrides(armature_object)


def _storable(pose_bone: bpy.types.PoseBone, limit: Limit | None) -> dict[str, Any]:
    values = next(
        ({"kind": str(kind), **each} for kind in _KINDS if (each := kind.values(limit)) is not None), None
    )
    if values is None:
        raise RigError(
            f"bone '{pose_bone.name}': a limit about an axis askew to the bone cannot be stored; use a hinge"
        )
    for field, value in values.items():
        prop: Any = CCD_RIG_PG_limit.bl_rna.properties[field]
        if prop.type != "FLOAT":
            continue
        for number in value if prop.is_array else (value,):
            if not prop.hard_min - _SLACK <= number <= prop.hard_max + _SLACK:
                least, most = math.degrees(prop.hard_min), math.degrees(prop.hard_max)
                raise RigError(
                    f"bone '{pose_bone.name}': {prop.name} of {math.degrees(number):.4g}° is outside what a "
                    f"limit can hold, {least:.0f}° to {most:.0f}°"
                )
    return values


def copy_limit(source: bpy.types.PoseBone, target: bpy.types.PoseBone) -> None:
    """Copy the limit of a bone to another bone, with the fields of all kinds of limit."""
    for prop in source.ccd_rig.limit.bl_rna.properties:
        if not prop.is_readonly and prop.identifier != "name":
            value = getattr(source.ccd_rig.limit, prop.identifier)
            setattr(target.ccd_rig.limit, prop.identifier, value)
    keep_overrides(target.id_data)
