# SPDX-License-Identifier: GPL-3.0-or-later
"""Dependencies of targets: parents, constraints and drivers that move them, traced to their sources.

A target that moves with the chain that reaches for it recedes from the chain. A target that a simulation
moves cannot be evaluated outside its scene. Both are refused before anything is solved.

In rigs such as Rigify's, switches between FK and IK decide whether the bones of a chain move others. A bone
copies an FK control, and then an IK bone. A property of a control drives the influence of the second
constraint. Keys of the FK control take effect only if it drives this influence to 0. A switch is recognised
by this structure, whatever its name.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import bpy

from ...errors import RigError
from ..keys import channels
from ..keys.channels import animated_components, fcurves_of
from ..properties.constraint_kinds import kind_of
from ..rig import clamps

SIMULATIONS = {"CLOTH": "cloth", "SOFT_BODY": "soft body", "FLUID": "fluid"}
"""Modifiers whose result depends on former frames: type of modifier -> word for it."""


def shapers(obj: bpy.types.Object) -> Iterator[tuple[bpy.types.ID, str]]:
    """Yield the objects and data-blocks that deform an object's surface, with the name of a bone, or empty.

    A curve (by its evaluation time) and shape keys count: their keys and drivers move points.
    """
    data: Any = obj.data
    if data is None or obj.type == "ARMATURE":
        return
    if isinstance(data, bpy.types.Curve):
        yield data, ""
    if getattr(data, "shape_keys", None) is not None:
        yield data.shape_keys, ""
    for modifier in obj.modifiers:
        subtarget = getattr(modifier, "subtarget", "")
        for prop in modifier.bl_rna.properties:
            value = getattr(modifier, prop.identifier) if prop.type == "POINTER" else None
            if not isinstance(value, bpy.types.Object):
                continue
            bones: list[str] = []
            if value.pose is not None:
                bones = [subtarget] if subtarget else [bone.name for bone in value.pose.bones]
                bones = bones if modifier.type == "ARMATURE" or subtarget else []
            yield from ((value, bone) for bone in bones or [""])


def simulation(obj: bpy.types.Object) -> str:
    """Name a simulation without a baked cache that moves an object's surface; empty if there is none."""
    for modifier in obj.modifiers:
        if modifier.type in SIMULATIONS and modifier.show_viewport:
            cache = getattr(modifier, "point_cache", None)
            if cache is None or not cache.is_baked:
                return f"the {SIMULATIONS[modifier.type]} '{modifier.name}'"
    return ""


def unbaked_nodes(obj: bpy.types.Object) -> str:
    """Name a modifier with simulation nodes that are not baked to disk; empty if there is none.

    Blender does not tell whether nodes are baked into the file.
    """
    for modifier in obj.modifiers:
        if modifier.type == "NODES" and modifier.show_viewport and _simulates(modifier.node_group, set()):
            zones = [each for each in modifier.bakes if each.node is not None and each.node.type == _ZONE]
            for zone in zones:
                path = zone.directory if zone.use_custom_path else modifier.bake_directory
                folder = Path(bpy.path.abspath(path, library=obj.library))
                folder = folder if zone.use_custom_path else folder / str(zone.bake_id)
                if not path or not any(folder.glob("meta/*")):  # no frames
                    return str(modifier.name)
            if not zones:
                return str(modifier.name)
    return ""


_ZONE = "SIMULATION_OUTPUT"


def _simulates(group: Any, seen: set[Any]) -> bool:
    """Whether a node group, or one inside it that is not seen yet, has a simulation zone."""
    if group is None or group in seen:
        return False
    seen.add(group)
    return any(
        not node.mute and (node.type == _ZONE or (node.type == "GROUP" and _simulates(node.node_tree, seen)))
        for node in group.nodes
    )


BONE_PATH = re.compile(r'pose\.bones\["((?:[^"\\]|\\.)*)"\]')
_ON_GEOMETRY = {"VERTEX", "VERTEX_3", "LATTICE"}  # kinds of parenting that follow the parent's surface
_ON_SURFACE = {"SHRINKWRAP", "FOLLOW_PATH", "CLAMP_TO", "SPLINE_IK", "GEOMETRY_ATTRIBUTE"}  # constraints


class _Source(NamedTuple):
    """Direct source of motion."""

    data_block: bpy.types.ID | None
    bone: str
    verb: str  # describes the relation: the moved object, verb, source
    surface: bool = False


_Sources: TypeAlias = Iterator[_Source]


class Lookups:
    """IK constraints and drivers of armatures, each read once for many traces of an unchanged file."""

    def __init__(self) -> None:
        self.iks, self.drivers = cache(_iks), cache(drivers_by_bone)


@dataclass(frozen=True)
class Mover:
    """Source of motion: an object, one of its bones, or a data-block that deforms a surface."""

    data_block: Any  # the object or data-block
    bone: str  # name of a bone of the object, or empty
    words: str  # describes it where a trail starts
    surface: bool = False  # whether the points of the object move the target, not only its transform
    # What it moves; None where a trail starts.
    moved: Mover | None = field(default=None, compare=False, repr=False)
    verb: str = ""  # describes how that depends on it

    @property
    def trail(self) -> str:
        """Words on the dependencies that lead to it."""
        mover, steps = self, list[str]()
        while mover.moved is not None:
            steps.append(f"{mover.verb} {mover}")
            mover = mover.moved
        return " ".join([mover.words, *reversed(steps)])

    def __str__(self) -> str:
        return f"bone '{self.bone}' of '{self.data_block.name}'" if self.bone else f"'{self.data_block.name}'"


def target_object(constraint: Any) -> bpy.types.Object | None:
    """Return the target of a constraint, stored or a value; None if a bone is planted without one.

    Raises:
        RigError: the target is missing, and the constraint needs one.
    """
    target = constraint.target
    if not kind_of(constraint).needs_target and not target:
        return None
    obj = bpy.data.objects.get(target) if isinstance(target, str) else target
    if obj is None:
        problem = f"there is no object '{target}'" if target else "it has no target"
        raise RigError(f"Constraint '{constraint.name}': {problem}: choose the object to reach")
    return obj


def pole_object(constraint: Any) -> bpy.types.Object | None:
    """Return the pole target of a constraint, stored or a value; None if it has none.

    Raises:
        RigError: the object is missing.
    """
    pole = constraint.pole_target
    if not pole or not kind_of(constraint).reaches:
        return None
    obj = bpy.data.objects.get(pole) if isinstance(pole, str) else pole
    if obj is None:
        where = f"Constraint '{constraint.name}': there is no object '{pole}' for its pole"
        raise RigError(f"{where}: choose another one, or clear it")
    return obj


def follows(obj: bpy.types.Object, armature_object: bpy.types.Object) -> bool:
    """Whether an object, one of its bones or one of its parents depends on an armature.

    Modifiers, parents and constraints count.
    """
    ancestor: bpy.types.Object | None = obj
    while ancestor is not None:
        if any(getattr(modifier, "object", None) == armature_object for modifier in ancestor.modifiers):
            return True
        bones = () if ancestor.pose is None else ancestor.pose.bones
        constraints = [constraint for owner in (ancestor, *bones) for constraint in owner.constraints]
        targets = [getattr(constraint, "target", None) for constraint in constraints]
        targets += [entry.target for c in constraints for entry in getattr(c, "targets", ())]
        if armature_object in (ancestor.parent, *targets):
            return True
        ancestor = ancestor.parent
    return False


def target_depends_on_chain(
    armature_object: bpy.types.Object,
    constraint: Any,
    bones: Collection[str],
    lookups: Lookups | None = None,
    word: str = "target",
) -> str | None:
    """Say how a target of a constraint depends on the chain that reaches for it; None if it does not.

    The armature object may be its parent: the chain does not move it.

    Args:
        constraint: stored, or a value.
        bones: names of the bones that the solver turns, as a set.
        lookups: of other traces.
        word: "target", or "pole" for the pole target.
    """
    obj = (target_object if word == "target" else pole_object)(constraint)
    places = (
        ()
        if obj is None
        else movers(obj, getattr(constraint, f"{word}_bone"), armature_object, word, lookups)
    )
    for mover in places:
        if mover.data_block != armature_object or not mover.bone:
            continue
        pose_bone = armature_object.pose.bones.get(mover.bone)
        if pose_bone is None:
            continue
        if mover.bone in bones:
            return f"{mover.trail}, which is part of the chain"
        above = next((parent.name for parent in pose_bone.parent_recursive if parent.name in bones), None)
        if above is not None:
            return f"{mover.trail}, which hangs on bone '{above}' of the chain"
    return None


def bones_that_move_targets(armature_object: bpy.types.Object, constraints: Iterable[Any]) -> set[str]:
    """Return the names of an armature's bones on which targets or poles of its constraints depend.

    Args:
        constraints: stored, or values.

    Raises:
        RigError: a target or pole is missing.
    """
    starts = []
    for each in constraints:
        for obj, bone in ((target_object(each), each.target_bone), (pole_object(each), each.pole_bone)):
            starts += [] if obj is None else [Mover(obj, bone, "")]
    traced = (mover for _, mover in _trace(starts, armature_object))
    return {mover.bone for mover in traced if mover.data_block == armature_object}


TURNING = {"COPY_ROTATION", "LIMIT_ROTATION", "DAMPED_TRACK", "TRACK_TO", "LOCKED_TRACK"}
TURNING |= {"COPY_SCALE", "LIMIT_SCALE", "MAINTAIN_VOLUME"}
"""Types of constraints that leave the place of their owner as it is."""


def rides_on(place: tuple[bpy.types.Object, str], carrier: tuple[bpy.types.Object, str]) -> bool:
    """Whether each shift of a bone shifts an object or bone by as much, in every frame.

    Parents lead from one to the other, and constraints of full influence that take the whole place over.

    Args:
        place: an object, with the name of one of its bones, or empty.
        carrier: an armature object, with the name of the bone.
    """
    seen = set()
    while place != carrier:
        if place in seen:  # they follow each other
            return False
        seen.add(place)
        following = _carrier_of(*place)
        if following is None:
            return False
        place = following
    return True


FOLLOWING = {
    *("COPY_TRANSFORMS", "COPY_LOCATION", "COPY_ROTATION", "CHILD_OF", "ARMATURE"),
    *("STRETCH_TO", "DAMPED_TRACK", "TRACK_TO", "LOCKED_TRACK"),
}
"""Constraints that move a bone as one with their targets and its parent, if these move as one."""
SCALING = {"COPY_SCALE", "LIMIT_SCALE", "MAINTAIN_VOLUME"}


@dataclass(frozen=True)
class RigidCarriers:
    """Bones of an armature that carry others as one with them, looked up once for each."""

    armature_object: bpy.types.Object  # the original object
    _known: dict[str, frozenset[str]] = field(default_factory=dict)  # by bone, see `_of`

    def separating(self, bone: bpy.types.PoseBone) -> set[str]:
        """Return the names of the bones above one that do not carry it as one, as its constraints tell."""
        followed = self._followed(bone)
        return set() if followed is None else {each.name for each in bone.parent_recursive} - followed

    def _followed(self, bone: Any) -> frozenset[str] | None:
        """Return the bones that carry all targets of a bone's constraints; None if it has none."""
        followed = _followed(bone)
        if followed is None or any(obj != self.armature_object for obj, _ in followed):
            return frozenset()
        return frozenset.intersection(*(self._of(name) for _, name in followed)) if followed else None

    def _of(self, name: str) -> frozenset[str]:
        """Return the bones with which a bone shifts and turns as one while no other channel changes."""
        bone: Any = self.armature_object.pose.bones.get(name)
        line = []
        while bone is not None and bone.name not in self._known:
            line.append(bone)
            bone = bone.parent
        for each in reversed(line):
            self._known[each.name] = frozenset((each.name,))  # what a circle of constraints finds
            if each.parent is not None and each.bone.use_inherit_rotation:
                followed, above = self._followed(each), self._known[each.parent.name]
                self._known[each.name] |= above if followed is None else above & followed
        return self._known.get(name, frozenset())


def _followed(bone: Any) -> list[tuple[bpy.types.Object | None, str]] | None:
    """Targets of a bone's constraints, as (object, name of the bone or empty); None for other kinds."""
    followed: list[tuple[bpy.types.Object | None, str]] = []
    for each in clamps.acting_constraints(bone):
        if each.type in SCALING:
            continue
        if each.type not in FOLLOWING:
            return None
        several = getattr(each, "targets", None)
        followed += [(end.target, end.subtarget) for end in ([each] if several is None else several)]
    return followed


def _carrier_of(obj: bpy.types.Object, bone: str) -> tuple[bpy.types.Object, str] | None:
    """What alone shifts an object or bone, by as much as it is shifted; None if nothing does."""
    owner: Any = obj.pose.bones[bone] if bone else obj
    placing = [each for each in clamps.user_constraints(owner) if not each.mute and each.type not in TURNING]
    if placing:
        return _taken_over(owner, placing[0]) if len(placing) == 1 else None
    if bone:
        return (obj, "" if owner.parent is None else owner.parent.name)
    if obj.parent is None or obj.parent_type not in ("OBJECT", "BONE"):
        return None
    return obj.parent, obj.parent_bone if obj.parent_type == "BONE" else ""


def _taken_over(owner: Any, constraint: Any) -> tuple[bpy.types.Object, str] | None:
    """The object or bone whose place a constraint gives its owner; None if it does not give all of it."""
    keyed = constraint.path_from_id("influence")
    if constraint.influence < 1.0 or keyed in {path for path, _ in animated_components(owner.id_data)}:
        return None
    in_world = constraint.target_space == "WORLD" and constraint.owner_space == "WORLD"
    kinds = {
        "COPY_TRANSFORMS": lambda: in_world and constraint.mix_mode == "REPLACE",
        "COPY_LOCATION": lambda: in_world
        and not constraint.use_offset
        and all(getattr(constraint, f"use_{axis}") for axis in "xyz")
        and not any(getattr(constraint, f"invert_{axis}") for axis in "xyz"),
        "CHILD_OF": lambda: owner.parent is None
        and all(getattr(constraint, f"use_location_{axis}") for axis in "xyz"),
    }
    if constraint.type not in kinds or constraint.target is None or not kinds[constraint.type]():
        return None
    on_surface = constraint.subtarget and constraint.target.type != "ARMATURE"
    return None if on_surface else (constraint.target, constraint.subtarget)


def require_evaluable(
    scene: bpy.types.Scene, armature_object: bpy.types.Object, constraints: Sequence[Any]
) -> None:
    """Refuse targets whose place in an isolated scene would differ from their place in the user's scene.

    Raises:
        RigError: a target or its bone is missing; rigid body physics moves it or the armature, or a driver
            that reads changing properties of the user's scene does; or what moves them is in Edit Mode.
    """
    starts = [Mover(armature_object, "", f"Armature '{armature_object.name}'")]
    for row in constraints:
        starts.append(Mover(armature_object, row.tip, f"Constraint '{row.name}': bone '{row.tip}'"))
        obj = target_object(row)
        if obj is None:
            continue
        if row.target_bone and (obj.pose is None or row.target_bone not in obj.pose.bones):
            where = f"Constraint '{row.name}': target '{obj.name}'"
            raise RigError(f"{where} has no bone '{row.target_bone}': choose another bone")
        starts.append(Mover(obj, row.target_bone, f"Constraint '{row.name}': target '{obj.name}'"))
        pole = pole_object(row)
        if pole is not None:
            where = f"Constraint '{row.name}': pole target '{pole.name}'"
            if row.pole_bone and (pole.pose is None or row.pole_bone not in pole.pose.bones):
                raise RigError(f"{where} has no bone '{row.pole_bone}': choose another bone")
            starts.append(Mover(pole, row.pole_bone, where))
    _require_evaluable(scene, starts)


def require_evaluable_ground(scene: bpy.types.Scene, objects: Iterable[bpy.types.Object]) -> None:
    """Refuse objects of a ground whose faces in an isolated scene would differ from the user's scene.

    Raises:
        RigError: a simulation moves them or their points, or a driver that reads changing properties of the
            user's scene does.
    """
    _require_evaluable(scene, [Mover(each, "", f"ground '{each.name}'", surface=True) for each in objects])


def _require_evaluable(scene: bpy.types.Scene, starts: Iterable[Mover]) -> None:
    checked = set()
    for start, mover in _trace(starts, None):
        if mover.data_block not in checked:
            checked.add(mover.data_block)
            _refuse_simulated(scene, start, mover.data_block)
            _refuse_scene_drivers(scene, start, mover.data_block)
        _refuse_edited(start, mover)
        if mover.surface:
            _refuse_soft(start, mover.data_block)


def all_movers(armature_object: bpy.types.Object, rows: Iterable[Any] | None = None) -> Iterator[Mover]:
    """Yield the movers of an armature, of its constrained bones, and of their targets and poles.

    Args:
        rows: stored constraints that count; None for all.
    """
    starts = [Mover(armature_object, "", "")]
    for row in armature_object.ccd_rig.constraints if rows is None else rows:
        starts.append(Mover(armature_object, row.tip, ""))
        pairs = ((row.target, row.target_bone), (row.pole_target, row.pole_bone))
        starts += [Mover(obj, bone, "") for obj, bone in pairs if obj is not None]
    for _, mover in _trace(starts, None):
        yield mover


def movers(
    obj: bpy.types.Object,
    bone: str,
    unfollowed: bpy.types.Object | None,
    word: str = "target",
    lookups: Lookups | None = None,
) -> Iterator[Mover]:
    """Yield an object or bone itself, and all its movers, nearest first.

    Args:
        bone: one of its bones, or empty.
        unfollowed: an object whose bones are traced, but not its transform.
        word: name of the first one in trails.
        lookups: of other traces.
    """
    start = Mover(obj, bone, "")
    for _, mover in _trace([replace(start, words=f"{word} {start}")], unfollowed, lookups):
        yield mover


def trail_to_bones(
    obj: bpy.types.Object, word: str, armature_object: bpy.types.Object, moved: Collection[str]
) -> str | None:
    """Describe how an object or its surface depends on bones of an armature; None if it does not.

    Args:
        word: what it is, such as "curve".
        armature_object: its transform does not count.
        moved: names of the bones.
    """
    start = Mover(obj, "", f"{word} '{obj.name}'", surface=True)
    for _, mover in _trace([start], armature_object):
        if mover.data_block == armature_object and mover.bone in moved:
            return mover.trail
    return None


def movers_by_drivers(armature_object: bpy.types.Object, paths: Collection[str]) -> Iterator[Mover]:
    """Yield the sources of the drivers at data paths of an armature object, and their movers, each once."""
    drivers = [curve for curve in _drivers(armature_object) if curve.data_path in paths]
    starts = [Mover(source.data_block, source.bone, source.verb) for source in _sources_of_drivers(drivers)]
    for _, mover in _trace(starts, armature_object):
        yield mover


def _trace(
    starts: Iterable[Mover], unfollowed: bpy.types.Object | None, lookups: Lookups | None = None
) -> Iterator[tuple[Mover, Mover]]:
    """Yield (start, mover) for each start and its movers, the start itself first, then by distance.

    A mover is yielded once for all starts.
    """
    lookups = lookups or Lookups()
    seen = set()
    for start in starts:
        queue = deque([start] if (start.data_block, start.bone, False) not in seen else ())
        seen.add((start.data_block, start.bone, False))
        while queue:
            mover = queue.popleft()
            yield start, mover
            for source in _sources(mover, unfollowed, lookups):
                key = (source.data_block, source.bone, source.surface)
                if source.data_block is not None and key not in seen:
                    seen.add(key)
                    queue.append(
                        Mover(source.data_block, source.bone, "", source.surface, mover, source.verb)
                    )


def _sources(mover: Mover, unfollowed: bpy.types.Object | None, lookups: Lookups) -> _Sources:
    """Yield the direct sources of a mover's motion."""
    data_block = mover.data_block
    if mover.bone:
        yield from _sources_of_bone(data_block, mover.bone, lookups)
        if data_block != unfollowed:
            yield _Source(data_block, "", "belongs to")
    elif data_block != unfollowed:
        if isinstance(data_block, bpy.types.Object):
            if data_block.parent is not None:
                bone = data_block.parent_bone if data_block.parent_type == "BONE" else ""
                yield _Source(
                    data_block.parent, bone, "is parented to", data_block.parent_type in _ON_GEOMETRY
                )
            yield from _sources_of_constraints(data_block.constraints)
        yield from _sources_of_drivers(lookups.drivers(data_block).get("", ()))
    if mover.surface:
        verb = "whose surface is deformed by"
        for shaper, bone in shapers(data_block):
            yield _Source(shaper, bone, verb, isinstance(shaper, bpy.types.Object) and not bone)


def _sources_of_bone(obj: bpy.types.Object, name: str, lookups: Lookups) -> _Sources:
    bone = obj.pose.bones.get(name) if obj.pose is not None else None
    if bone is None:
        return
    if bone.parent is not None:
        yield _Source(obj, bone.parent.name, "is a child of")
    yield from _sources_of_constraints(bone.constraints)
    yield from _sources_of_drivers(lookups.drivers(obj).get(bone.path_from_id(), ()))
    yield from _sources_of_constraints(lookups.iks(obj).get(name, ()))


def _iks(obj: bpy.types.Object) -> dict[str, list[Any]]:
    """Return the IK constraints of Blender by the names of bones above their owners that they turn."""
    iks: dict[str, list[Any]] = {}
    for bone in obj.pose.bones:
        for constraint in bone.constraints:
            if constraint.type in ("IK", "SPLINE_IK"):
                for turned in (bone, *bone.parent_recursive)[1 : constraint.chain_count or None]:
                    iks.setdefault(turned.name, []).append(constraint)
    return iks


def _sources_of_constraints(constraints: Sequence[Any]) -> _Sources:
    for constraint in constraints:
        if constraint.mute:
            continue
        verb = f"follows by its constraint '{constraint.name}'"
        # The Armature constraint has a list of targets; IK has a pole as well.
        pairs = [(target.target, target.subtarget) for target in getattr(constraint, "targets", ())]
        for prefix in ("", "pole_"):
            pairs.append(
                (getattr(constraint, f"{prefix}target", None), getattr(constraint, f"{prefix}subtarget", ""))
            )
        for target, subtarget in pairs:
            if target is None:
                continue
            is_armature = target.type == "ARMATURE"
            on_surface = not is_armature and (bool(subtarget) or constraint.type in _ON_SURFACE)
            yield _Source(target, subtarget if is_armature else "", verb, on_surface)


def _sources_of_drivers(curves: Iterable[bpy.types.FCurve]) -> _Sources:
    """Yield the objects and bones that drivers read."""
    for curve in curves:
        verb = f"has a driver on {curve.data_path.rpartition('.')[2]} that reads"
        for variable in curve.driver.variables:
            for target in variable.targets:
                if not isinstance(target.id, bpy.types.Object):
                    continue
                if variable.type == "SINGLE_PROP":
                    match = BONE_PATH.match(target.data_path)
                    bone = re.sub(r"\\(.)", r"\1", match[1]) if match else ""
                else:
                    bone = target.bone_target
                yield _Source(target.id, bone, verb)


def drivers_by_bone(data_block: bpy.types.ID) -> dict[str, list[bpy.types.FCurve]]:
    """Return the drivers of an object by the path of their bone; "" for the object itself.

    Drivers of custom properties of bones are left out: these properties move nothing.
    """
    by_path: dict[str, list[bpy.types.FCurve]] = {}
    for curve in _drivers(data_block):
        match = BONE_PATH.match(curve.data_path)
        if match is None:
            by_path.setdefault("", []).append(curve)
        elif curve.data_path.startswith(".", match.end()):
            by_path.setdefault(match[0], []).append(curve)
    return by_path


def _drivers(data_block: bpy.types.ID) -> list[bpy.types.FCurve]:
    return [curve for curve in channels.drivers_of(data_block) if not curve.mute]


def _refuse_simulated(scene: bpy.types.Scene, start: Mover, data_block: bpy.types.ID) -> None:
    body, world = getattr(data_block, "rigid_body", None), scene.rigidbody_world
    if body is None or world is None or not world.enabled:
        return
    if body.type == "ACTIVE" and body.enabled and not body.kinematic:
        by = "" if data_block == start.data_block else f" by way of '{data_block.name}'"
        raise RigError(
            f"{start.trail} is moved by a rigid body simulation{by}: turn it into keys with Object > "
            "Rigid Body > Bake To Keyframes"
        )


def _refuse_edited(start: Mover, mover: Mover) -> None:
    """Refuse what Edit Mode shows otherwise: bones at rest, and points without modifiers and shape keys."""
    data = getattr(mover.data_block, "data", None)
    if not getattr(data, "is_editmode", False):
        return
    is_shaped = any(each.show_viewport for each in mover.data_block.modifiers) or getattr(
        data, "shape_keys", None
    )
    if mover.bone or (mover.surface and is_shaped):
        raise RigError(f"{start.trail} follows {mover}, which shows no motion in Edit Mode: leave Edit Mode")


def _refuse_soft(start: Mover, obj: bpy.types.Object) -> None:
    mover = simulation(obj)
    if mover:
        raise RigError(
            f"{start.trail} follows points of '{obj.name}', which {mover} moves: bake its cache (Physics "
            "properties > Cache) first"
        )
    if nodes := unbaked_nodes(obj):
        raise RigError(
            f"{start.trail} follows points of '{obj.name}', which the simulation nodes '{nodes}' move: "
            "bake them to disk (Physics properties > Simulation Nodes) first"
        )


def _refuse_scene_drivers(scene: bpy.types.Scene, start: Mover, data_block: bpy.types.ID) -> None:
    """Refuse drivers that read a changing property of a scene: Blender animates only the evaluated scene."""
    for curve in _drivers(data_block):
        for variable in curve.driver.variables:
            source = variable.targets[0]
            if not _changes(scene, variable):
                continue
            reads = (
                f"the driver on {curve.data_path} of '{data_block.name}' reads {source.data_path} of a scene"
            )
            raise RigError(
                f"{start.trail}: {reads}, which is not seen apart from that scene: let it read a property of "
                "an object, or for the frame write the word frame in its expression"
            )


def _changes(scene: bpy.types.Scene, variable: Any) -> bool:
    """Whether a driver's variable reads a property that differs between the user's and an isolated scene."""
    source = variable.targets[0]
    if variable.type == "CONTEXT_PROP":
        # The isolated scene has the frame of the user's scene, and copies of its custom properties.
        if source.context_property != "ACTIVE_SCENE" or not source.data_path.startswith(("frame_", "[")):
            return True
        return _is_animated(scene, source.data_path)
    if variable.type != "SINGLE_PROP" or not isinstance(source.id, bpy.types.Scene):
        return False
    return source.data_path.startswith("frame_") or _is_animated(source.id, source.data_path)


def _is_animated(scene: bpy.types.Scene, path: str) -> bool:
    """Whether keys or drivers move a property of a scene, or the array that it is a component of."""
    animated = {curve.data_path for curve in (*fcurves_of(scene), *_drivers(scene))}
    return path in animated or path.rpartition("[")[0] in animated


# Switches between FK and IK --------------------------------------------------------------------------------

_FOLLOWS = {"COPY_TRANSFORMS", "COPY_ROTATION"}  # constraints that replace a bone's rotation
_PROPERTY = re.compile(r'\["((?:[^"\\]|\\.)*)"\]')
_NUMBER = r"(\d+(?:\.\d*)?)"
NEAR = 1e-3
"""Distance of a switch from its FK value up to which it counts as switched to FK."""


@dataclass(frozen=True)
class FkSwitch:
    """Property of a bone that lets the bones of chains move others."""

    bone: str  # name of the bone with the property
    name: str  # of the property
    path: str  # data path of the property from the armature object
    value: float  # at which the bones of chains move others (FK)
    chain_bones: tuple[str, ...]  # names of the bones of chains

    def __str__(self) -> str:
        return f"'{self.name}' of bone '{self.bone}'"

    def is_fk(self, value: float) -> bool:
        """Whether a value of the property lets the bones of chains move others."""
        return abs(value - self.value) <= NEAR


def fk_switches(armature_object: bpy.types.Object, bones: Collection[str]) -> tuple[FkSwitch, ...]:
    """Return the switches that decide whether bones move others, in the order of their paths."""
    curves = (curve for curve in _drivers(armature_object) if curve.data_path.endswith(".influence"))
    drivers = {curve.data_path: curve for curve in curves}
    switches: dict[str, FkSwitch] = {}
    for pose_bone in armature_object.pose.bones if drivers else ():
        for path, value, chain_bone in _switches_of(armature_object, pose_bone, set(bones), drivers):
            before = switches.get(path)
            names = (*(before.chain_bones if before else ()), chain_bone)
            bone = BONE_PATH.match(path)
            name = None if bone is None else _PROPERTY.fullmatch(path, bone.end())
            assert bone is not None and name is not None  # see `_linear`
            owner, label = (re.sub(r"\\(.)", r"\1", each[1]) for each in (bone, name))
            switches[path] = FkSwitch(owner, label, path, value, tuple(dict.fromkeys(names)))
    numbers = []
    for path in sorted(switches):
        with suppress(ValueError):  # the property is missing
            if isinstance(armature_object.path_resolve(path), bool | int | float):
                numbers.append(switches[path])
    return tuple(numbers)


def _switches_of(
    armature_object: bpy.types.Object,
    pose_bone: Any,
    bones: Collection[str],
    drivers: Mapping[str, bpy.types.FCurve],
) -> Iterator[tuple[str, float, str]]:
    """Yield (path of a property, value, bone of a chain): at this value `pose_bone` follows the bone.

    If a bone follows bones of chains alone, such a property is a strength, not a switch.
    """
    copies = [
        constraint
        for constraint in clamps.user_constraints(pose_bone)
        if not constraint.mute and constraint.type in _FOLLOWS and constraint.target == armature_object
    ]
    if all(constraint.subtarget in bones for constraint in copies):
        return
    chain_bone = ""
    for constraint in copies:
        is_chain = constraint.subtarget in bones
        chain_bone = constraint.subtarget if is_chain else chain_bone
        curve = drivers.get(constraint.path_from_id("influence"))
        linear = _linear(armature_object, curve) if curve is not None and chain_bone else None
        if linear is not None:
            path, shift, slope = linear
            yield path, (float(is_chain) - shift) / slope, chain_bone


def _linear(armature_object: bpy.types.Object, curve: bpy.types.FCurve) -> tuple[str, float, float] | None:
    """Return (path, shift, slope) of a driver equal to shift + slope * property of a bone; else None."""
    driver = curve.driver
    if len(driver.variables) != 1:
        return None
    variable = driver.variables[0]
    target = variable.targets[0]
    match = BONE_PATH.match(target.data_path)
    if variable.type != "SINGLE_PROP" or target.id != armature_object or match is None:
        return None
    if _PROPERTY.fullmatch(target.data_path, match.end()) is None:
        return None
    shift, slope = 0.0, 1.0
    if driver.type == "SCRIPTED":
        words = re.fullmatch(rf"\s*(?:{_NUMBER}\s*-\s*)?{re.escape(variable.name)}\s*", driver.expression)
        if words is None:
            return None
        shift, slope = (0.0, 1.0) if words[1] is None else (float(words[1]), -1.0)
    if len(curve.keyframe_points) or len(curve.modifiers):  # they map the driver's value
        first, middle, last = (curve.evaluate(at) for at in (0.0, 0.5, 1.0))
        if abs(first + last - 2.0 * middle) > NEAR:
            return None
        shift, slope = first + (last - first) * shift, (last - first) * slope
    return None if slope == 0.0 else (target.data_path, shift, slope)
