# SPDX-License-Identifier: GPL-3.0-or-later
"""What is stored in the .blend file, and the way from there to the core's values.

`Object.ccd_rig` on an armature object holds the constraints, the solver's settings and the last report;
`PoseBone.ccd_rig` holds what each joint may do. Angles are stored in radians. Defaults and descriptions that
the core has are read from its dataclasses.
"""

import dataclasses
import enum
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ..errors import InvalidInput, RigError
from ..goals import PositionGoal
from ..limits import Comfort, Cone, Ellipse, EulerBox, Hinge, Limit, SwingTwist
from ..skeleton import Joint
from ..solver import SolverSettings, Sweep
from .report import BakeReport

OVERRIDE = {"LIBRARY_OVERRIDABLE"}
DEFAULT_NAME = "CCD"
TURN = 2.0 * math.pi  # the widest bound of a hinge or Euler angle that the panel offers, radians


@dataclass(frozen=True)
class Constraint:
    """One row of the list, as values.

    Attributes:
        name: unique on its armature.
        tip: name of the last bone of the chain.
        chain_length: how many bones, counted from the tip; 0 goes to the root.
        target: name of the target object, empty if there is none.
        target_bone: name of the target's bone, empty for the object itself.
        offset: from the target, in its own axes, in its own unit.
        influence: 0 keeps the pose, 1 is fully solved.
        weight: how much it counts against other constraints, above 0.
        enabled: whether it is solved at all.
        use_tail: whether the tip's tail is brought to the target, or its head.
    """

    name: str
    tip: str
    chain_length: int
    target: str
    target_bone: str
    offset: tuple[float, float, float]
    influence: float
    weight: float
    enabled: bool
    use_tail: bool


def _from_core(value_class: type, name: str, label: str) -> dict[str, Any]:
    """Keywords of a property that is a field of a core dataclass: its default, and its docstring's words."""
    field = next(field for field in dataclasses.fields(value_class) if field.name == name)
    default = field.default.name if isinstance(field.default, enum.Enum) else field.default
    return {
        "name": label,
        "default": default,
        "description": field_help(value_class, name),
        "override": OVERRIDE,
    }


def field_help(value_class: type, name: str) -> str:
    """What the `Attributes` of a dataclass's docstring say of a field, as a tooltip: without a full stop."""
    attributes = (value_class.__doc__ or "").partition("Attributes:")[2]
    found = re.search(rf"^ +{name}: (.*?)(?=^ +\w+: |^ *$|\Z)", attributes, re.MULTILINE | re.DOTALL)
    if found is None:
        raise InvalidInput(f"{value_class.__name__}'s docstring does not say what '{name}' is")
    words = re.sub(r" \([A-Z][^()]*\)", "", " ".join(found[1].split())).rstrip(".")  # without the source
    return words[:1].upper() + words[1:]


def _angle(label: str, description: str, default: float, lower: float, upper: float) -> Any:
    return FloatProperty(
        name=label,
        description=description,
        default=default,
        min=lower,
        max=upper,
        subtype="ANGLE",
        override=OVERRIDE,
    )


def _keep_name_unique(self: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    taken = {row.name for row in self.id_data.ccd_rig.constraints if row != self}
    free = unique_name(self.name, taken)
    if free != self.name:
        self.name = free  # runs this function once more, which then finds nothing to do


def unique_name(name: str, taken: Iterable[str]) -> str:
    """`name`, or with the next free number at its end as Blender counts: "Arm", "Arm.001"."""
    name, taken = name or DEFAULT_NAME, set(taken)
    if name not in taken:
        return name
    stem = re.sub(r"\.\d{3,}$", "", name)
    return next(free for i in range(1, len(taken) + 2) if (free := f"{stem}.{i:03d}") not in taken)


class CCD_RIG_PG_constraint(bpy.types.PropertyGroup):
    """A bone, and where it should be. Its property `name` is added by `register`."""

    tip: StringProperty(
        name="Bone", description="The bone to move: the last one of the chain", override=OVERRIDE
    )
    chain_length: IntProperty(
        **_from_core(PositionGoal, "chain_length", "Chain Length")
        | {"description": "How many bones may turn, counted from this one; 0 goes up to the root"},
        min=0,
        soft_max=255,
    )
    target: PointerProperty(
        name="Target",
        description="The object that the bone should reach",
        type=bpy.types.Object,
        override=OVERRIDE,
    )
    target_bone: StringProperty(
        name="Target Bone",
        description="The bone of the target armature whose head is the target; empty: the object's origin",
        override=OVERRIDE,
    )
    offset: FloatVectorProperty(
        name="Offset",
        description="Shift of the point to reach, along the target's own axes",
        size=3,
        subtype="XYZ_LENGTH",
        override=OVERRIDE,
    )
    influence: FloatProperty(
        name="Influence",
        description="How much of the solved rotations is used: 0 keeps the pose, 1 reaches for the target",
        default=1.0,
        min=0.0,
        max=1.0,
        subtype="FACTOR",
        override=OVERRIDE,
    )
    weight: FloatProperty(
        **_from_core(PositionGoal, "weight", "Weight")
        | {"description": "How much this constraint counts where several pull at the same bones"},
        min=0.001,
        soft_max=10.0,
    )
    enabled: BoolProperty(
        name="Enabled", description="Solve and bake this constraint", default=True, override=OVERRIDE
    )
    use_tail: BoolProperty(
        name="Use Tail",
        description="Bring the bone's tail to the target; when off, its head",
        default=True,
        override=OVERRIDE,
    )


LIMIT_KINDS = (
    ("NONE", "None", "The bone turns freely"),
    ("HINGE", "Hinge", "The bone turns about one axis, as a knee or an elbow does"),
    ("CONE", "Cone", "The bone swings by the same angle to all sides"),
    (
        "ELLIPSE",
        "Ellipse",
        "The bone swings by another angle to each of four sides, as a shoulder or a hip does",
    ),
    ("TWIST", "Twist", "The bone swings freely and rolls about its own length within a range"),
    ("EULER", "Euler Angles", "Each Euler angle has a range of its own"),
)
EULER_ORDERS = tuple(
    (order, order, f"Euler order {order}") for order in ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
)


class CCD_RIG_PG_limit(bpy.types.PropertyGroup):
    """Rotations relative to the bone's rest, in its own axes: what is allowed, or what is preferred."""

    kind: EnumProperty(
        name="Limit",
        description="Which shape the range of rotations has",
        items=LIMIT_KINDS,
        override=OVERRIDE,
    )
    axis: FloatVectorProperty(
        name="Axis",
        description="The hinge's axis in the bone's own axes at rest; Y points along the bone",
        size=3,
        default=(1.0, 0.0, 0.0),
        subtype="XYZ",
        override=OVERRIDE,
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
    use_twist: BoolProperty(
        name="Limit Twist", description="Limit how far the bone rolls about its own length", override=OVERRIDE
    )
    twist_lower: _angle("Min", "Smallest roll about the bone's length", -math.pi / 4, -math.pi, math.pi)
    twist_upper: _angle("Max", "Largest roll about the bone's length", math.pi / 4, -math.pi, math.pi)
    euler_order: EnumProperty(
        name="Order",
        description="Order in which the three angles are applied",
        items=EULER_ORDERS,
        override=OVERRIDE,
    )
    euler_lower: FloatVectorProperty(
        name="Min",
        description="Smallest Euler angles",
        size=3,
        default=(-math.pi / 4,) * 3,
        min=-TURN,
        max=TURN,
        subtype="EULER",
        override=OVERRIDE,
    )
    euler_upper: FloatVectorProperty(
        name="Max",
        description="Largest Euler angles",
        size=3,
        default=(math.pi / 4,) * 3,
        min=-TURN,
        max=TURN,
        subtype="EULER",
        override=OVERRIDE,
    )


class CCD_RIG_PG_comfort(bpy.types.PropertyGroup):
    """What part of the allowed motion looks natural."""

    tolerance: FloatProperty(
        **_from_core(Comfort, "tolerance", "Tolerance")
        | {
            "description": "How far off the target, seen from the bone's head, is near enough to keep still"
        },
        min=0.0,
        max=math.pi / 2,
        subtype="ANGLE",
    )
    region: PointerProperty(
        name="Preferred Region",
        description="The part of the limit that is used as long as the target allows it",
        type=CCD_RIG_PG_limit,
        override=OVERRIDE,
    )


class CCD_RIG_PG_joint(bpy.types.PropertyGroup):
    """What one bone may do."""

    limit: PointerProperty(
        name="Limit",
        description="Rotations that are allowed; they are never left",
        type=CCD_RIG_PG_limit,
        override=OVERRIDE,
    )
    comfort: PointerProperty(
        name="Comfort", description="Rotations that are preferred", type=CCD_RIG_PG_comfort, override=OVERRIDE
    )
    stiffness: FloatProperty(
        **_from_core(Joint, "stiffness", "Stiffness")
        | {"description": "How much the bone resists turning: 0 turns freely, 1 is locked"},
        min=0.0,
        max=1.0,
        subtype="FACTOR",
    )
    max_step: FloatProperty(
        **_from_core(Joint, "max_step", "Max Step")
        | {
            "description": "Largest turn in one step of the solver; small values spread the bend over bones"
        },
        min=0.0,
        max=math.pi,
        subtype="ANGLE",
    )


class CCD_RIG_PG_solver(bpy.types.PropertyGroup):
    """The core's SolverSettings, field by field."""

    max_iterations: IntProperty(
        **_from_core(SolverSettings, "max_iterations", "Iterations"), min=1, soft_max=500
    )
    position_tolerance: FloatProperty(
        **_from_core(SolverSettings, "position_tolerance", "Tolerance"),
        min=1e-6,
        soft_max=0.1,
        precision=5,
        step=0.01,
        unit="LENGTH",
    )
    sweep: EnumProperty(
        **_from_core(SolverSettings, "sweep", "Order"),
        items=tuple((sweep.name, sweep.name.replace("_", " ").title(), "") for sweep in Sweep),
    )
    step_fraction: FloatProperty(
        **_from_core(SolverSettings, "step_fraction", "Step Fraction"), min=0.1, max=1.3, subtype="FACTOR"
    )
    stall_threshold: FloatProperty(
        **_from_core(SolverSettings, "stall_threshold", "Stall Threshold"),
        min=0.0,
        max=1.0,
        soft_max=1e-3,
        precision=6,
    )
    comfort: BoolProperty(**_from_core(SolverSettings, "comfort", "Comfort"))


class CCD_RIG_PG_report(bpy.types.PropertyGroup):
    """What the last bake came to, in words."""

    words: StringProperty(name="Report", description="What the last bake came to", override=OVERRIDE)
    worst_frame: IntProperty(
        name="Worst Frame", description="The frame that is farthest off", override=OVERRIDE
    )
    worst_constraint: StringProperty(
        name="Worst Constraint", description="The constraint that is farthest off", override=OVERRIDE
    )
    unsolved: IntProperty(
        name="Frames Not Reached",
        description="How many frames the last bake left off the target",
        min=0,
        override=OVERRIDE,
    )


class CCD_RIG_PG_armature(bpy.types.PropertyGroup):
    """All that an armature object stores."""

    constraints: CollectionProperty(
        name="CCD Constraints",
        description="The bones that should reach a target",
        type=CCD_RIG_PG_constraint,
        override=OVERRIDE | {"USE_INSERTION"},
    )
    active_index: IntProperty(
        name="Active Constraint", description="The constraint that is shown below the list", override=OVERRIDE
    )
    solver: PointerProperty(
        name="Solver", description="How the armature is solved", type=CCD_RIG_PG_solver, override=OVERRIDE
    )
    report: PointerProperty(
        name="Report", description="What the last bake came to", type=CCD_RIG_PG_report, override=OVERRIDE
    )


CLASSES = (
    CCD_RIG_PG_constraint,
    CCD_RIG_PG_limit,
    CCD_RIG_PG_comfort,
    CCD_RIG_PG_joint,
    CCD_RIG_PG_solver,
    CCD_RIG_PG_report,
    CCD_RIG_PG_armature,
)


def constraints(armature_object: bpy.types.Object) -> tuple[Constraint, ...]:
    """The rows of the list as values, in their order, disabled ones included."""
    return tuple(
        Constraint(
            name=row.name,
            tip=row.tip,
            chain_length=row.chain_length,
            target=row.target.name if row.target else "",
            target_bone=row.target_bone,
            offset=tuple(row.offset),
            influence=row.influence,
            weight=row.weight,
            enabled=row.enabled,
            use_tail=row.use_tail,
        )
        for row in armature_object.ccd_rig.constraints
    )


def limit_value(group: Any) -> Limit | None:
    """A limit's group as a value of the core, None for a free bone; raises InvalidInput on a contradiction."""
    twist = (_radians(group.twist_lower), _radians(group.twist_upper))
    if group.kind == "HINGE":
        return Hinge(tuple(group.axis), group.hinge_lower, group.hinge_upper)
    if group.kind == "CONE":
        return SwingTwist(Cone(_radians(group.cone_radius)), twist if group.use_twist else None)
    if group.kind == "ELLIPSE":
        bounds = (group.x_lower, group.x_upper, group.z_lower, group.z_upper)
        return SwingTwist(Ellipse(*map(_radians, bounds)), twist if group.use_twist else None)
    if group.kind == "TWIST":
        return SwingTwist(None, twist)
    if group.kind == "EULER":
        return EulerBox(group.euler_order, tuple(group.euler_lower), tuple(group.euler_upper))
    return None


def _radians(angle: float) -> float:
    # Blender stores float32, whose nearest number to pi is larger than pi.
    return max(-math.pi, min(math.pi, angle))


def joint_settings(armature_object: bpy.types.Object, bones: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What each bone may do: {bone: keywords of the core's Joint}.

    Raises:
        RigError: names the bone that is missing, or whose limit contradicts itself.
    """
    return {bone: _joint_keywords(armature_object, bone) for bone in bones}


def _joint_keywords(armature_object: bpy.types.Object, bone: str) -> dict[str, Any]:
    pose_bone = armature_object.pose.bones.get(bone)
    if pose_bone is None:
        raise RigError(f"armature '{armature_object.name}' has no bone '{bone}'")
    group = pose_bone.ccd_rig
    limit = _limit_of(bone, "limit", group.limit)
    region = _limit_of(bone, "comfort region", group.comfort.region)
    tolerance = group.comfort.tolerance
    comfort = _named(bone, "comfort", lambda: Comfort(tolerance, region)) if tolerance or region else None
    return {
        "limit": limit,
        "comfort": comfort,
        "stiffness": group.stiffness,
        "max_step": _radians(group.max_step),
    }


def _limit_of(bone: str, part: str, group: Any) -> Limit | None:
    """The limit of a bone; raises RigError, in the panel's words and degrees, if it contradicts itself."""
    for what, lower, upper in _ranges(group):
        if lower > upper:
            raise RigError(
                f"bone '{bone}', {part}: {what}Min ({math.degrees(lower):.4g}°) is above "
                f"{what}Max ({math.degrees(upper):.4g}°): swap them"
            )
    return _named(bone, part, lambda: limit_value(group))


def _ranges(group: Any) -> list[tuple[str, float, float]]:
    """The ranges in force whose ends can be the wrong way round: (label, lower, upper), radians."""
    if group.kind == "HINGE":
        return [("", group.hinge_lower, group.hinge_upper)]
    if group.kind == "EULER":
        ends = zip("XYZ", group.euler_lower, group.euler_upper, strict=True)
        return [(f"{axis} ", lower, upper) for axis, lower, upper in ends]
    if group.kind == "TWIST" or (group.kind in ("CONE", "ELLIPSE") and group.use_twist):
        return [("twist ", group.twist_lower, group.twist_upper)]
    return []


def _named(bone: str, part: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except InvalidInput as error:
        raise RigError(f"bone '{bone}', {part}: {error}") from error


def solver_settings(armature_object: bpy.types.Object) -> SolverSettings:
    """The armature's solver settings as the core's value; raises RigError naming the armature and field."""
    group = armature_object.ccd_rig.solver
    values = {field.name: getattr(group, field.name) for field in dataclasses.fields(SolverSettings)}
    try:
        return SolverSettings(**(values | {"sweep": Sweep[group.sweep]}))
    except InvalidInput as error:
        raise RigError(f"armature '{armature_object.name}', solver settings: {error}") from error


def store_report(armature_object: bpy.types.Object, report: BakeReport) -> None:
    """Keep what a bake came to, in words, for the panel."""
    group, worst = armature_object.ccd_rig.report, report.worst()
    group.words = report.summary()
    group.worst_frame = worst.frame
    group.worst_constraint = worst.constraint
    group.unsolved = len({row.frame for row in report.unsolved()})


def register() -> None:
    """Register the groups and put them on objects and pose bones."""
    # The bpy module 4.2 crashes at exit if a class then still holds a property that calls a function.
    CCD_RIG_PG_constraint.__annotations__["name"] = StringProperty(
        name="Name", description="Name of the constraint", update=_keep_name_unique, override=OVERRIDE
    )
    for group in CLASSES:
        bpy.utils.register_class(group)
    bpy.types.Object.ccd_rig = PointerProperty(
        name="CCD Rig",
        description="Constraints and settings of CCD Rig",
        type=CCD_RIG_PG_armature,
        override=OVERRIDE,
    )
    bpy.types.PoseBone.ccd_rig = PointerProperty(
        name="CCD Rig",
        description="What CCD Rig may do with this bone",
        type=CCD_RIG_PG_joint,
        override=OVERRIDE,
    )


def unregister() -> None:
    """Take the properties away again; what a file has stored stays in it."""
    del bpy.types.PoseBone.ccd_rig
    del bpy.types.Object.ccd_rig
    for group in reversed(CLASSES):
        bpy.utils.unregister_class(group)
    del CCD_RIG_PG_constraint.__annotations__["name"]
