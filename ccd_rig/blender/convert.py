# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion of Blender's IK, Damped Track and Spline IK constraints to CCD constraints ("rows"), and back.

The originals are muted, never deleted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ..errors import RigError
from .keys import channels
from .limit_sources import blender_limits
from .properties import constraint_list, new_constraints
from .properties.active_rig import keep_overrides
from .properties.names import named
from .properties.new_constraints import new_target
from .rig import clamps
from .rig.rotation_modes import rotation_channel
from .scene import isolation

MakeTarget = Callable[[bpy.types.Context], bpy.types.Object]


class NotConverted(RigError):
    """A Blender constraint has no counterpart; the message says why, without its name."""


@dataclass(frozen=True)
class NewRow:
    """CCD constraint to add."""

    tip: str  # name of its bone
    chain_length: int  # number of bones, counted from the tip
    fields: Mapping[str, Any]  # remaining properties, by name
    make_target: MakeTarget | None = None  # makes an empty as its target; None if `fields` has a target


@dataclass(frozen=True)
class Conversion:
    """Rows that replace a Blender constraint."""

    rows: tuple[NewRow, ...]  # at least one
    notes: tuple[str, ...] = ()  # differences of the rows from the constraint, in sentences without its name
    # Rotations from rest from which bones start, by name, where the goals of the rows leave them a choice.
    starts: Mapping[str, Quaternion] = field(default_factory=dict)


def require_target(armature_object: bpy.types.Object, constraint: Any) -> None:
    """Raise NotConverted unless the target of a constraint is one that a row can have."""
    target, bone = constraint.target, constraint.subtarget
    if target is None:
        raise NotConverted("it has no target")
    if bone and target.pose is None:
        raise NotConverted(f"its target is the vertex group '{bone}' of '{target.name}'")
    if bone and bone not in target.pose.bones:
        raise NotConverted(f"its target '{target.name}' has no bone '{bone}'")
    if target == armature_object and not bone:
        raise NotConverted("its target is the armature itself")


BENT = 1e-3
"""Smallest mean offset of joints from the chain's line that defines a bend, as a fraction of its length."""
AXES = "xyz"


def ik_conversion(armature_object: bpy.types.Object, bone: bpy.types.PoseBone, constraint: Any) -> Conversion:
    """Convert an IK constraint; raises NotConverted if there is no counterpart."""
    require_target(armature_object, constraint)
    tip = bone if constraint.use_tail else bone.parent
    if tip is None:
        raise NotConverted("Use Tail is off, and its bone has no parent to move")
    is_itasc = armature_object.pose.ik_solver == "ITASC"
    if is_itasc and constraint.ik_type == "DISTANCE":
        raise NotConverted("it keeps a distance, for which there is no CCD constraint")
    has_position, has_rotation = constraint.use_location, constraint.use_rotation
    if not has_position and not has_rotation:
        raise NotConverted("it asks for neither a position nor a rotation")
    used = [name for name, has in (("location", has_position), ("rotation", has_rotation)) if has]
    if is_itasc and not all(getattr(constraint, f"lock_{name}_{axis}") for name in used for axis in AXES):
        raise NotConverted("it leaves axes of its target free, which a CCD constraint does not")
    chain = constraint_list.chain(armature_object, tip.name, constraint.chain_count)
    weight = constraint.weight if has_position else constraint.orient_weight
    fields = {
        "target": constraint.target,
        "target_bone": constraint.subtarget,
        "use_position": has_position,
        "weight": weight,
    }
    if has_rotation:
        fields |= {"rotation": "ORIENTATION", "rotation_weight": constraint.orient_weight / weight}
    notes, starts = [], dict[str, Quaternion]()
    stretched = [bone.name for bone in chain if bone.ik_stretch > 0.0]
    if constraint.use_stretch and stretched:
        notes.append(f"bones do not stretch here ({named(stretched)} did)")
    if constraint.pole_target is not None and not is_itasc:
        pole, note = _pole(armature_object, constraint, chain, has_rotation)
        # The target and the pole leave only two bones no choice, beside the one that is turned.
        if "pole_angle" in pole and len(chain) - has_rotation > 2:
            shared = "its pole sets the plane of the bend alone: three or more bones may share it otherwise"
            if constraint.influence == 1.0 and not any(map(new_constraints.is_turned, chain)):
                starts = {bone.name: _shown_rotation(bone) for bone in chain}
                shared = "its bones start as Blender has them at this frame: three or more may share its bend"
            notes.append(shared)
        fields |= pole
        notes += [note] if note else []
    return Conversion((NewRow(tip.name, constraint.chain_count, fields),), tuple(notes), starts)


def _shown_rotation(bone: bpy.types.PoseBone) -> Quaternion:
    """Return the rotation from rest that Blender shows, which its constraints do not leave in the channel."""
    parent, above = bone.parent, dict[str, Any]()
    if parent is not None:
        above = {"parent_matrix": parent.matrix, "parent_matrix_local": parent.bone.matrix_local}
    basis = bone.bone.convert_local_to_pose(bone.matrix, bone.bone.matrix_local, invert=True, **above)
    return basis.to_quaternion()


def _pole(
    armature_object: bpy.types.Object,
    constraint: Any,
    chain: Sequence[bpy.types.PoseBone],
    has_rotation: bool,
) -> tuple[dict[str, Any], str]:
    """Return the fields of a pole, and a note on it."""
    obj, bone = constraint.pole_target, constraint.pole_subtarget
    if (bone and (obj.pose is None or bone not in obj.pose.bones)) or (obj == armature_object and not bone):
        return {}, f"its pole '{obj.name}' is not taken over: choose an object or one of its bones"
    # A bone with a goal for its rotation is not free to bend.
    if len(chain) - has_rotation < 2:
        return {}, "its pole is not taken over, since less than two bones are free to bend"
    fields = {"pole_target": obj, "pole_bone": bone}
    angle = _present_angle(constraint, chain) if has_rotation else _pole_angle(chain, constraint.pole_angle)
    if angle is None:
        return fields, "its chain is straight at rest and now, so Pole Angle is 0: set it by eye"
    note = ""
    if has_rotation:
        note = "its pole bends the bones before the one that is turned, as now: elsewhere it may differ"
    return fields | {"pole_angle": angle}, note


def _pole_angle(chain: Sequence[bpy.types.PoseBone], angle: float) -> float | None:
    """Convert the pole angle of Blender's IK to that of a row, radians; None if the chain has no bend.

    Blender turns the first bone until its axis X cos(angle) + Z sin(angle) points to the pole; a row turns
    the bend there. The result is the angle between the two at rest, or in the present pose if rest is
    straight.

    Args:
        chain: tip first.
        angle: Blender's, radians.
    """
    root, tip = chain[-1], chain[0]
    rest = [Vector(bone.bone.head_local) for bone in reversed(chain)]
    posed = [Vector(bone.head) for bone in reversed(chain)]
    up = Vector((math.cos(angle), 0.0, math.sin(angle)))
    bend = _angle_to_bend(rest, Vector(tip.bone.tail_local), root.bone.matrix_local.to_3x3() @ up)
    return bend if bend is not None else _angle_to_bend(posed, Vector(tip.tail), root.matrix.to_3x3() @ up)


def _present_angle(constraint: Any, chain: Sequence[bpy.types.PoseBone]) -> float | None:
    """Return the present angle from the pole to the bend of the bones before the tip; None without a bend.

    Blender turns such a chain about the line to the tail of the tip. Its pole angle is not an angle of this
    bend.
    """
    obj, bone = constraint.pole_target, constraint.pole_subtarget
    heads = [Vector(pose_bone.head) for pose_bone in reversed(chain[1:])]
    pole = obj.matrix_world @ (obj.pose.bones[bone].head if bone else Vector())
    local: Any = chain[0].id_data.matrix_world.inverted() @ pole
    return _angle_to_bend(heads, Vector(chain[0].head), local - heads[0])


def _angle_to_bend(heads: Sequence[Vector], end: Vector, up: Vector) -> float | None:
    """Return the signed angle from `up` to the bend of a chain, about its line; None if it is straight."""
    line = end - heads[0]
    if line.length == 0.0:
        return None
    line.normalize()
    length = sum((b - a).length for a, b in zip(heads, [*heads[1:], end], strict=True))
    bend = sum((head - heads[0] for head in heads), Vector())
    bend -= line * bend.dot(line)
    if bend.length < BENT * (len(heads) - 1) * length:
        return None
    across: Any = line.cross(up)  # Any: typed as a number too, which it is for two-dimensional vectors
    return math.atan2(across.dot(bend), up.dot(bend))


SAMPLES = 256
"""Number of points at which a curve is sampled."""
MOVED = 1e-3
"""Smallest move of a bone's head that is noted, as a fraction of its length."""


def spline_conversion(
    context: bpy.types.Context, bone: bpy.types.PoseBone, constraint: Any, every: int
) -> Conversion:
    """Convert a Spline IK constraint to a row for its bone and for every n-th one above.

    Args:
        every: n, the number of bones for each target.

    Raises:
        NotConverted: there is no counterpart.
    """
    curve, armature_object = constraint.target, bone.id_data
    if curve is None or curve.type != "CURVE":
        raise NotConverted("it has no curve as its target")
    chain = constraint_list.chain(armature_object, bone.name, constraint.chain_count)
    tips = chain[:: max(every, 1)]
    tails = [armature_object.matrix_world @ tip.tail for tip in tips]
    factors = _path_factors(context.scene, armature_object, curve, tails)

    def make(tip: str, factor: float, context: bpy.types.Context) -> bpy.types.Object:
        empty = new_target(context, armature_object, f"Target {tip}", tip)
        _follow(empty, curve, factor)
        return empty

    rows = [
        NewRow(tip.name, len(chain) - k * max(every, 1), {}, partial(make, tip.name, factor))
        for k, (tip, factor) in enumerate(zip(tips, factors, strict=True))
    ]
    return Conversion(tuple(rows), tuple(_spline_notes(constraint, chain[-1])))


def _spline_notes(constraint: Any, root: bpy.types.PoseBone) -> Iterator[str]:
    if constraint.y_scale_mode == "FIT_CURVE" or constraint.xz_scale_mode != "NONE":
        yield "bones keep their size here, they are not scaled to the curve"
    head = Vector(root.bone.head_local)
    if root.parent is not None:
        place: Any = root.parent.matrix @ root.parent.bone.matrix_local.inverted() @ head
        head = place
    if (root.head - head).length > MOVED * root.bone.length:
        yield f"bone '{root.name}' starts where its parent has it, not where the curve does"


def _path_factors(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    curve: bpy.types.Object,
    points: Sequence[Any],
) -> list[float]:
    """Return the offset factors, 0 to 1 along a curve, of the points on it nearest to world points."""
    with isolation.isolated_scene(scene, armature_object, [(curve, "")], []) as isolated:
        probes = [bpy.data.objects.new("", None) for _ in range(SAMPLES)]
        try:
            for probe, factor in zip(probes, np.linspace(0.0, 1.0, SAMPLES), strict=True):
                _follow(probe, curve, float(factor))
                isolated.collection.objects.link(probe)
            graph = isolation.set_frame(isolated, scene.frame_float)
            places = np.array([probe.evaluated_get(graph).matrix_world.translation for probe in probes])
        finally:
            bpy.data.batch_remove(probes)
    return [_nearest(places, np.array(point[:])) for point in points]


def _nearest(places: NDArray[np.float64], point: NDArray[np.float64]) -> float:
    """Return the parameter, 0 to 1, of a polyline with evenly spaced parameters nearest to a point."""
    steps = places[1:] - places[:-1]
    squares = np.maximum((steps * steps).sum(1), 1e-30)
    along = np.clip(((point - places[:-1]) * steps).sum(1) / squares, 0.0, 1.0)
    gaps = np.linalg.norm(places[:-1] + along[:, None] * steps - point, axis=1)
    k = int(np.argmin(gaps))
    return float((k + along[k]) / len(steps))


def _follow(empty: bpy.types.Object, curve: bpy.types.Object, factor: float) -> None:
    """Constrain an empty to a fixed offset factor of a curve."""
    follows: Any = empty.constraints.new("FOLLOW_PATH")
    follows.target, follows.use_fixed_location, follows.offset_factor = curve, True, factor


LOOKS = "TRACK_Y"
"""Axis of the empty that points to the target."""


def tracking_conversion(
    armature_object: bpy.types.Object, bone: bpy.types.PoseBone, constraint: Any
) -> Conversion:
    """Convert a Damped Track constraint; raises NotConverted if there is no counterpart."""
    require_target(armature_object, constraint)
    axis = constraint.track_axis.removeprefix("TRACK_")
    sign, letter = ("NEG", axis[-1]) if axis.startswith("NEGATIVE") else ("POS", axis)
    fields = {
        "use_position": False,
        "rotation": "DIRECTION",
        "bone_axis": f"{sign}_{letter}",
        "target_axis": f"POS_{LOOKS[-1]}",
    }

    def make(context: bpy.types.Context) -> bpy.types.Object:
        return _looking_empty(context, armature_object, bone.name, constraint)

    return Conversion((NewRow(bone.name, 1, fields, make),))


def _looking_empty(
    context: bpy.types.Context, armature_object: bpy.types.Object, name: str, constraint: Any
) -> bpy.types.Object:
    """Return a new empty at the head of a bone, parented to the bone's parent, that tracks a target."""
    bone = armature_object.data.bones[name]
    empty = new_target(context, armature_object, f"Look {name}", name)
    empty.empty_display_type = "SINGLE_ARROW"
    empty.parent, empty.matrix_parent_inverse = armature_object, Matrix.Identity(4)
    empty.location = bone.head_local
    if bone.parent is not None:
        empty.parent_type, empty.parent_bone = "BONE", bone.parent.name
        # The origin of objects parented to a bone is its tail.
        head: Any = bone.parent.matrix_local.inverted() @ bone.head_local
        empty.location = head - Vector((0.0, bone.parent.length, 0.0))
    looks: Any = empty.constraints.new("DAMPED_TRACK")
    looks.target, looks.subtarget, looks.track_axis = constraint.target, constraint.subtarget, LOOKS
    looks.head_tail, looks.use_bbone_shape = constraint.head_tail, constraint.use_bbone_shape
    return empty


KINDS = ("IK", "DAMPED_TRACK", "SPLINE_IK")
"""Types of Blender constraints that rows can replace."""
MOST = 3
"""Number of reasons that a refusal names."""


Conversions = list[tuple[bpy.types.PoseBone, Any, Conversion]]


@dataclass(frozen=True)
class Converted:
    """Result of a conversion."""

    rows: tuple[str, ...]  # names of the new rows
    originals: int  # number of constraints that they replace
    # Differences, and reasons why constraints were not converted; sentences that name the constraint.
    notes: tuple[str, ...]


def candidates(armature_object: bpy.types.Object, bones: Collection[str] | None = None) -> Iterator[Any]:
    """Yield (bone, constraint) for unmuted constraints of `KINDS`, on bones of these names or on all."""
    pose = armature_object.pose  # a new armature has none until Blender has evaluated it
    for bone in () if pose is None else pose.bones:
        if bones is None or bone.name in bones:
            for constraint in clamps.user_constraints(bone):
                if constraint.type in KINDS and not constraint.mute:
                    yield bone, constraint


def is_offered(armature_object: bpy.types.Object) -> bool:
    """Whether panels offer to convert: a bone with such a constraint has a free rotation.

    A bone whose rotation is locked belongs to the mechanism of a rig, such as one that Rigify generates.
    """
    return any(not all(bone.lock_rotation) for bone, _ in candidates(armature_object))


def convert(
    context: bpy.types.Context,
    armature_object: bpy.types.Object,
    bones: Collection[str] | None,
    every: int,
    takes_limits: bool = True,
) -> Converted:
    """Replace Blender constraints by rows, with their influence and its animation.

    Args:
        context: has the scene and the frame, at which targets on curves are placed.
        bones: names of the bones whose constraints are converted; None: all.
        every: number of bones for each target of a Spline IK.
        takes_limits: whether bones without limits get the limits, locks and stiffness of Blender's IK.

    Raises:
        RigError: nothing can be converted; says why. Nothing has changed then.
    """
    conversions, notes, idle = [], [], []
    for bone, constraint in candidates(armature_object, bones):
        if obeyed := _obeyed_instead(bone, constraint):
            idle.append((bone, constraint, obeyed))
            continue
        try:
            conversions.append((bone, constraint, _conversion(context, bone, constraint, every)))
        except NotConverted as error:
            notes.append(f"{_name(bone, constraint)} is not converted: {error}")
    conversions, refused = _without_carried(armature_object, conversions)
    notes += refused
    if not conversions and not notes:
        where = f"'{armature_object.name}'" if bones is None else "the selected bones"
        kinds = "IK, Damped Track or Spline IK constraint"
        raise RigError(f"No {kinds} of {where} is on: unmute one, or convert other bones")
    if not conversions:
        more = f"; and {len(notes) - MOST} more" if len(notes) > MOST else ""
        raise RigError("; ".join(notes[:MOST]) + more)
    rows = []
    for bone, constraint, conversion in conversions:
        rows += [_add(context, armature_object, bone, constraint, row) for row in conversion.rows]
        constraint.mute = True
        new_constraints.start_from(armature_object, conversion.starts)
        keep_overrides(armature_object)
        notes += [f"{_name(bone, constraint)}: {note}" for note in conversion.notes]
    for bone, constraint, obeyed in idle:
        if obeyed.mute:  # else Blender would obey this one from now on
            constraint.mute = True
            notes.append(f"{_name(bone, constraint)} is muted: Blender obeyed '{obeyed.name}' alone")
    notes += _limits(armature_object, conversions, takes_limits)
    return Converted(tuple(rows), len(conversions), tuple(notes))


def _end_start(bone: bpy.types.PoseBone) -> None:
    """Pose a bone as it was before it got a Start Rotation, unless something else turns it."""
    joint, (channel, width) = bone.ccd_rig, rotation_channel(bone)
    if any(joint.start_rotation) and not new_constraints.is_turned(bone):
        setattr(bone, channel, joint.start_before[:width])
    for name in new_constraints.STARTS:
        joint.property_unset(name)


def _obeyed_instead(bone: bpy.types.PoseBone, constraint: Any) -> Any | None:
    """Return the IK constraint that Blender's standard solver obeys instead of an IK constraint of the bone.

    It obeys the first with a target and an influence above 0 (`initialize_posetree` of its iksolver_plugin).
    """
    armature_object: Any = bone.id_data
    if constraint.type != "IK" or armature_object.pose.ik_solver == "ITASC":
        return None
    acting = set(clamps.acting_constraints(bone))
    for other in takewhile(lambda each: each != constraint, bone.constraints):
        if (
            other not in acting
            or other.type != "IK"
            or other.target is None
            or (other.target.pose and not other.subtarget)
        ):
            continue
        if not any(
            channels.is_moved(armature_object, other.path_from_id(name)) for name in ("influence", "mute")
        ):
            return other
    return None


def _limits(armature_object: bpy.types.Object, conversions: Conversions, takes_limits: bool) -> list[str]:
    """Take over limits, locks and stiffness of Blender's IK in chains of IK constraints; return notes."""
    rows = [row for _, constraint, each in conversions if constraint.type == "IK" for row in each.rows]
    chains = (constraint_list.chain_of(armature_object, row) for row in rows)
    turned = {bone.name for chain in chains for bone in chain}
    bones = [bone for bone in armature_object.pose.bones if bone.name in turned]
    limited = [bone for bone in bones if blender_limits.has_ik_limit(bone)]
    if not takes_limits:
        return [f"IK limits, locks and stiffness of {_named(limited)} are not taken over"] if limited else []
    free = [bone for bone in limited if bone.ccd_rig.limit.kind == "NONE" and bone.ccd_rig.stiffness == 0.0]
    kept = [bone for bone in limited if bone not in free]
    notes = [f"{_named(kept)} keep the limits and the stiffness that they have here"] if kept else []
    if free:
        outcome = blender_limits.from_ik(free)
        notes += [f"IK limits, locks and stiffness taken over: {_named(free)}", *outcome.notes]
    return notes


def _named(bones: Sequence[bpy.types.PoseBone]) -> str:
    return named([bone.name for bone in bones])


def _conversion(
    context: bpy.types.Context, bone: bpy.types.PoseBone, constraint: Any, every: int
) -> Conversion:
    armature_object: Any = bone.id_data
    influence = constraint.path_from_id("influence")
    if channels.is_moved(armature_object, constraint.path_from_id("mute")):
        raise NotConverted("its Mute has keys or a driver: remove them, and animate its Influence")
    if why := channels.obstacle(armature_object, influence):
        raise NotConverted(f"its Influence {why}")
    if constraint.type == "IK":
        conversion = ik_conversion(armature_object, bone, constraint)
    elif constraint.type == "SPLINE_IK":
        conversion = spline_conversion(context, bone, constraint, every)
    else:
        conversion = tracking_conversion(armature_object, bone, constraint)
    notes = list(conversion.notes)
    locked: dict[str, None] = {}  # Blender's IK ignores such locks
    for row in conversion.rows:
        chain = constraint_list.chain_of(armature_object, row)
        names = [bone.name for bone in chain if all(bone.lock_rotation)]
        if len(names) == len(chain):
            raise NotConverted("its bones have locked rotations, as a rig's own mechanism has: unlock them")
        locked |= dict.fromkeys(names)
    if locked:
        notes.append(f"locked rotations hold here: {', '.join(repr(name) for name in locked)}")
    if channels.in_strips(armature_object, influence):
        notes.append(
            "its Influence is also moved by NLA strips, which is not taken over: bring it into the action"
        )
    return replace(conversion, notes=tuple(notes))


def _without_carried(
    armature_object: bpy.types.Object, conversions: Conversions
) -> tuple[Conversions, list[str]]:
    """Return the conversions that can be baked together, and notes on the rest.

    An empty that tracks a target is parented to the parent of its bone, which no row may move.
    """
    chains = {
        bone.name: row.name
        for row in armature_object.ccd_rig.constraints
        if row.enabled
        for bone in constraint_list.chain_of(armature_object, row)
    }
    for _, constraint, conversion in conversions:
        for row in conversion.rows:
            for turned in constraint_list.chain_of(armature_object, row):
                chains.setdefault(turned.name, constraint.name)
    kept, notes = [], []
    for bone, constraint, conversion in conversions:
        above = next((parent.name for parent in bone.parent_recursive if parent.name in chains), "")
        if constraint.type == "DAMPED_TRACK" and above:
            why = f"its bone hangs on '{above}', which '{chains[above]}' turns: bake that first"
            notes.append(f"{_name(bone, constraint)} is not converted: {why}")
        else:
            kept.append((bone, constraint, conversion))
    return kept, notes


def _add(
    context: bpy.types.Context,
    armature_object: bpy.types.Object,
    bone: bpy.types.PoseBone,
    constraint: Any,
    new: NewRow,
) -> str:
    """Add a row with the influence of its original, and return its name."""
    target = None if new.make_target is None else new.make_target(context)
    row = constraint_list.add(armature_object, new.tip, new.tip)
    row.chain_length, row.influence = new.chain_length, constraint.influence
    row.original_bone, row.original_constraint = bone.name, constraint.name
    for name, value in new.fields.items():
        setattr(row, name, value)
    if target is not None:
        row.target = target
    channels.copy(armature_object, constraint.path_from_id("influence"), f"{row.path_from_id()}.influence")
    return str(row.name)


def _name(bone: bpy.types.PoseBone, constraint: Any) -> str:
    return f"'{constraint.name}' of bone '{bone.name}'"


@dataclass(frozen=True)
class Restored:
    """Result of restoring Blender constraints."""

    rows: tuple[str, ...]  # names of the removed rows
    originals: int  # number of Blender constraints that are unmuted
    kept: tuple[str, ...]  # names of the rows whose constraint does not exist any more
    actions: tuple[str, ...]  # as of `constraint_list.remove`


def converted(armature_object: bpy.types.Object, bones: Collection[str] | None = None) -> Iterator[Any]:
    """Yield the rows that replace Blender constraints, of bones of these names or of all."""
    for row in armature_object.ccd_rig.constraints:
        if row.original_constraint and (bones is None or row.original_bone in bones):
            yield row


def restore(armature_object: bpy.types.Object, bones: Collection[str] | None) -> Restored:
    """Remove converted rows with the targets made for them, and unmute their originals.

    Args:
        bones: names of the bones whose constraints are restored; None: all.

    Raises:
        RigError: there is no such row, or one comes from the library of an override. Nothing has changed
            then.
    """
    rows = armature_object.ccd_rig.constraints
    for row in converted(armature_object, bones):
        constraint_list.require_local(armature_object, rows.find(row.name))
    names, kept, originals, targets, started = [], [], set(), set(), set[str]()
    for row in converted(armature_object, bones):
        bone = armature_object.pose.bones.get(row.original_bone)
        original = None if bone is None else bone.constraints.get(row.original_constraint)
        if original is None:
            kept.append(row.name)
            continue
        original.mute = False
        originals.add((row.original_bone, row.original_constraint))
        names.append(row.name)
        targets.add(row.target)
        started.update(bone.name for bone in constraint_list.chain_of(armature_object, row))
    if not names:
        lost = f"; the constraints behind {', '.join(kept)} are gone" if kept else ""
        raise RigError(f"No CCD constraint here comes from Convert IK{lost}")
    actions = set[str]()
    for name in names:
        actions.update(constraint_list.remove(armature_object, rows.find(name)))
    for row in converted(armature_object):
        started.difference_update(each.name for each in constraint_list.chain_of(armature_object, row))
    for name in started:
        _end_start(armature_object.pose.bones[name])
    for target in targets - {None}:
        if new_constraints.is_left_over(new_constraints.Target(target)):
            new_constraints.remove_empty(target)
    return Restored(tuple(names), len(originals), tuple(kept), tuple(sorted(actions)))
