# SPDX-License-Identifier: GPL-3.0-or-later
"""Constraints in the viewport: their reach, sketches of them, and marks of targets that can be dragged."""

from __future__ import annotations

import enum
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from math import cos, pi, sin
from types import MappingProxyType
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ..figures import words
from ..figures.role import Side
from ..keys import channels
from ..properties import constraint_list
from ..properties.constraint_kinds import kind_of
from ..properties.constraint_values import PLANT, PLANTED
from ..properties.new_constraints import Target
from ..rig.armature import LAST_PART, MEETS
from ..rig.rotation_modes import channel_values, rotation_channel, within_locks
from ..scene.targets import FAR, Carrier, orthonormal
from .palette import DISC, RING
from .sketch import Sketch

SLACK = 1e-4  # fraction of a chain's length by which a target may be too far and still counts as reachable


class Outcome(enum.Enum):
    """How a constraint ends in a solve."""

    MET = enum.auto()
    GAVE_WAY = enum.auto()  # left its target to help others
    MISSED = enum.auto()


class Reach(NamedTuple):
    """Effector and target of a constraint, world space."""

    end: Vector  # the effector
    target: Vector  # the point to reach
    # Metres by which the target is out of reach of the chain; 0 within reach, and if the length of the chain
    # or the place of its root may change, as where the body helps.
    gap: float

    @property
    def deviation(self) -> float:
        """Distance from the effector to the target, metres."""
        return (self.end - self.target).length


def reach_of(armature_object: bpy.types.Object, constraint: Any) -> Reach | None:
    """Return the present reach of a constraint; None without an effector or a target."""
    chain = constraint_list.chain_of(armature_object, constraint)
    if not kind_of(constraint).reaches or not constraint.use_position or not chain:
        return None
    target = target_point(constraint)
    if target is None:
        return None
    world: Any = armature_object.matrix_world
    tip = chain[0]
    start = tip.tail if constraint.use_tail else tip.head
    end = start + tip.matrix.to_quaternion() @ Vector(constraint.effector_offset)
    if not all(abs(value) < FAR for value in (*target, *(world @ end))):  # false for NaN
        return None
    gap = 0.0
    if not _is_open(armature_object, chain):
        root = chain[-1].head
        local_target = world.inverted_safe() @ target
        longest = _longest(chain, end, constraint)
        distance = (local_target - root).length
        if distance > longest * (1.0 + SLACK):
            nearest = root + (local_target - root) * (longest / distance)
            gap = (world @ nearest - target).length
    return Reach(world @ end, target, gap)


def target_point(constraint: Any) -> Vector | None:
    """Return the point of a constraint's target, offset included, world space; None without one."""
    target = constraint.target
    if target is None:
        return None
    matrix: Any = target.matrix_world
    if constraint.target_bone:
        bone = target.pose.bones.get(constraint.target_bone) if target.type == "ARMATURE" else None
        if bone is None:
            return None
        matrix = matrix @ bone.matrix
    offset = Vector(constraint.offset)
    if constraint.offset_space == "TARGET":
        point: Vector = matrix @ offset
        return point
    axes: Any = constraint.id_data.matrix_world.to_3x3()
    return matrix.to_translation() + (axes @ offset if constraint.offset_space == "ARMATURE" else offset)


def is_planted(constraint: Any) -> bool:
    """Whether a constraint plants its bone now."""
    return constraint.kind == PLANT and constraint.enabled and constraint.influence > PLANTED


def _is_open(armature_object: bpy.types.Object, chain: Sequence[bpy.types.PoseBone]) -> bool:
    """Whether bones of a chain can shift or the body above helps, or it has the root bone of planted ones."""
    if armature_object.ccd_rig.body_helps and chain[-1].parent is not None:
        return True
    if any(any(bone.ccd_rig.use_slide) or len(bone.ccd_rig.coupled_offsets) for bone in chain):
        return True
    plants = [row for row in armature_object.ccd_rig.constraints if row.kind == PLANT and row.enabled]
    return any(
        root_bone in chain
        for row in plants
        for root_bone in constraint_list.chain_of(armature_object, row)[-1:]
    )


def _longest(chain: Sequence[bpy.types.PoseBone], end: Vector, constraint: Any) -> float:
    """Return the reach of a chain, tip first, from its root to `end`, without limits; armature units."""
    joints = [end, *(bone.head for bone in chain)]
    lengths = [(a - b).length for a, b in pairwise(joints)]
    count = constraint.extension_joints or len(lengths)
    return constraint.max_extension * sum(lengths[:count]) + sum(lengths[count:])


CHAIN, LINE, PLANT_LINE = 7.0, 2.0, 3.0  # [pixels]
RING_SIZE = 0.35  # radius of the mark of a planted bone, as a fraction of the bone's length
DASH = 0.08  # length of a dash, as a fraction of the tip's length
ACTIVE, PASSIVE = 1.0, 0.4  # alpha of the active constraint, and of the others


def sketch_rows(
    sketch: Sketch,
    armature_object: bpy.types.Object,
    shown: Container[str],
    in_words: Callable[[float], str],
    outcomes: Mapping[int, Outcome] = MappingProxyType({}),
) -> None:
    """Draw the enabled constraints of an armature.

    Args:
        shown: names of the visible bones.
        in_words: formats a length in metres in the scene's units.
        outcomes: {index of a constraint: how it ended in the shown pose}; empty if no solve is shown.
    """
    active = constraint_list.active(armature_object)
    if active is not None:
        _sketch_chain(sketch, armature_object, active, shown)
    tolerance = armature_object.ccd_rig.solver.position_tolerance
    for place, row in enumerate(armature_object.ccd_rig.constraints):
        tip = armature_object.pose.bones.get(row.tip)
        if not row.enabled or tip is None or tip.name not in shown:
            continue
        alpha = ACTIVE if row == active else PASSIVE
        if row.kind == PLANT:
            _sketch_plant(sketch, tip, is_planted(row), alpha)
        reach = reach_of(armature_object, row)
        if reach is not None:
            outcome, words = outcomes.get(place), ""
            is_off = outcome is not None and reach.deviation > tolerance
            if reach.gap > 0.0 and outcome in (None, Outcome.MISSED):
                words = f"{in_words(reach.gap)} out of reach"
            elif is_off and outcome is Outcome.MISSED:
                words = f"{in_words(reach.deviation)} off"
            elif is_off and outcome is Outcome.GAVE_WAY:
                words = f"gives way by {in_words(reach.deviation)}"
            is_missed = bool(words) and outcome is not Outcome.GAVE_WAY
            _sketch_reach(sketch, reach, DASH * _length(tip), alpha, words, is_missed)


def _sketch_chain(sketch: Sketch, armature_object: bpy.types.Object, row: Any, shown: Container[str]) -> None:
    world: Any = armature_object.matrix_world
    colour = (*sketch.palette.chain, 0.4 if row.enabled else 0.15)
    chain = constraint_list.chain_of(armature_object, row)
    for bone, end in zip(chain, _ends(chain, row.use_tail), strict=True):
        if bone.name in shown:
            sketch.path((world @ bone.head, world @ end), colour, CHAIN)


def _ends(chain: Sequence[bpy.types.PoseBone], use_tail: bool) -> list[Vector]:
    """Ends of the bones of a chain, tip first: tails, or the next heads where few tails meet the next bone.

    Importers invent tails. The tip then goes on in the direction from its parent's head, as in `handle_ends`,
    unless its tail is the effector.
    """
    links = [*pairwise(chain)]
    meeting = [
        above
        for bone, above in links
        if (bone.bone.head_local - above.bone.tail_local).length <= MEETS * above.bone.length
    ]
    if 2 * len(meeting) >= len(links):
        return [bone.tail for bone in chain]
    tail, heads = chain[0].tail, [bone.head for bone in chain[:-1]]
    if use_tail:
        return [tail, *heads]
    on = chain[0].head - chain[1].head
    length = min(on.length, (tail - chain[0].head).length)
    return [chain[0].head + on.normalized() * LAST_PART * length, *heads]


def _sketch_reach(
    sketch: Sketch, reach: Reach, dash: float, alpha: float, words: str, is_missed: bool
) -> None:
    colour = sketch.palette.warning if is_missed else sketch.palette.chain
    sketch.dotted((reach.end, reach.target), dash, (*colour, alpha), LINE)
    if words:
        sketch.label(reach.target, reach.end, words, (*colour, 1.0))


def _sketch_plant(sketch: Sketch, tip: bpy.types.PoseBone, is_planted: bool, alpha: float) -> None:
    """Draw a level ring around the head of a bone: with a cross while it is planted, else thin."""
    head, planted = tip.id_data.matrix_world @ tip.head, sketch.palette.planted
    radius = RING_SIZE * _length(tip)
    ring = [
        head + Vector((cos(angle), sin(angle), 0.0)) * radius
        for angle in (2.0 * pi * i / 32 for i in range(33))
    ]
    if not is_planted:
        sketch.path(ring, (*planted, 0.5 * alpha), 1.0)
        return
    colour = (*planted, alpha)
    sketch.path(ring, colour, PLANT_LINE)
    sketch.path((ring[4], ring[20]), colour, PLANT_LINE)
    sketch.path((ring[12], ring[28]), colour, PLANT_LINE)
    sketch.fan(head, ring, (*planted, 0.25 * alpha))


def _length(bone: bpy.types.PoseBone) -> float:
    """Return the length of a bone in the world, metres."""
    world: Any = bone.id_data.matrix_world
    return (world @ bone.tail - world @ bone.head).length


# Marks of targets -------------------------------------------------------------------------------------------


REACH = 3.0
"""Tolerance of a hit beside a mark or ring [pixels at interface scale 1]."""

Floats = NDArray[np.float64]


class TargetMark(NamedTuple):
    """Mark of a target or pole of a constraint."""

    row: int  # index of the constraint; if several share the target, of the active one, else of the first
    target: Target  # the object or bone
    point: Vector  # point of the target, offset included, world
    is_pole: bool  # whether it is a pole
    # Whether it has a ring: the constraint uses the target's rotation, which is not locked, and is active or
    # uses nothing else of it.
    turns: bool
    moves: bool  # whether a constraint uses the target's place
    is_active: bool  # whether the constraint is active
    side: Side  # of the bone that the target was made for, or else by the name of the constraint's


class Hit(NamedTuple):
    """Mark below the pointer, by index, or its ring."""

    place: int
    is_ring: bool


def target_marks(armature_object: bpy.types.Object, shown: Container[str]) -> list[TargetMark]:
    """Return marks of the targets and poles of enabled constraints, each once, the active constraint's last.

    Args:
        shown: names of the visible bones.
    """
    group = armature_object.ccd_rig
    active = group.active_index
    marks: dict[tuple[Target, bool, Vector], TargetMark] = {}
    for place, row in enumerate(group.constraints):
        if not row.enabled or row.tip not in shown:
            continue
        ends = [(row.target, row.target_bone, target_point(row), False)]
        if kind_of(row).reaches and row.pole_target is not None:
            ends.append((row.pole_target, row.pole_bone, _pole_point(row), True))
        for obj, bone, point, is_pole in ends:
            if point is None or not all(abs(value) < FAR for value in point):
                continue
            target = Target(obj, bone)
            # Constraints that share a target but differ in the offset have separate marks.
            key = target, is_pole, point.copy().freeze()
            is_active = place == active
            moves = is_pole or row.use_position or not kind_of(row).reaches
            turns = not is_pole and kind_of(row).reaches and row.rotation != "NONE"
            turns = turns and (is_active or not moves) and not all(target.owner.lock_rotation)
            if (other := marks.get(key)) is not None:
                moves = moves or other.moves
            if other is None or is_active:
                side = _side(row.tip) if target.side is None else target.side
                marks[key] = TargetMark(place, target, point, is_pole, turns, moves, is_active, side)
            else:
                marks[key] = other._replace(moves=moves)
    return sorted(marks.values(), key=lambda mark: mark.is_active)


def _pole_point(row: Any) -> Vector | None:
    if not row.pole_bone:
        return Vector(row.pole_target.matrix_world.translation)
    pose = row.pole_target.pose
    bone = None if pose is None else pose.bones.get(row.pole_bone)
    return None if bone is None else row.pole_target.matrix_world @ bone.head


@lru_cache(maxsize=4096)
def _side(name: str) -> Side:
    return words.read(name).side


def places_on_screen(points: Sequence[Vector], perspective: Matrix, size: tuple[int, int]) -> Floats:
    """Project world points to (n, 2) pixels of a region; NaN behind the viewer.

    Args:
        points: world.
        perspective: matrix of the view, from world to clip space.
        size: of the region, pixels.
    """
    if not points:
        return np.empty((0, 2))
    matrix = np.array(perspective)
    clip = np.array([(*point, 1.0) for point in points]) @ matrix.T
    depth = np.where(clip[:, 3] > 1e-9, clip[:, 3], np.nan)
    return (0.5 + 0.5 * clip[:, :2] / depth[:, None]) * np.array(size, dtype=np.float64)


def hit(
    marks: Sequence[TargetMark], places: Floats, pointer: tuple[float, float], scale: float
) -> Hit | None:
    """Return the nearest mark below the pointer, else the nearest ring, else None.

    Args:
        places: of the marks, (n, 2) pixels.
        pointer: pixels.
    """
    if not marks:
        return None
    distances = np.nan_to_num(np.hypot(*(places - np.array(pointer)).T), nan=np.inf)
    nearest = int(np.argmin(distances))
    if distances[nearest] <= scale * (DISC + REACH):
        return Hit(nearest, False)
    off_ring = np.where([mark.turns for mark in marks], abs(distances - scale * RING), np.inf)
    nearest = int(np.argmin(off_ring))
    return Hit(nearest, True) if off_ring[nearest] <= scale * REACH else None


class Grip:
    """Dragged target or pole.

    A target that has other sources of motion, or belongs to another armature, is not moved: the Target Offset
    of the constraint changes instead. A pole has no offset. Locked channels stay as they are.

    Attributes:
        can_move: whether it can be moved.
        can_turn: whether it can be turned.
        point: its point at the start of the drag, world.
    """

    def __init__(self, row: Any, target: Target, point: Vector, is_pole: bool) -> None:
        obj = target.obj
        self.point = point.copy()
        self._carrier: Carrier | None = None
        with suppress(ValueError):  # what is flat is not moved either
            self._carrier = Carrier.of(obj, target.bone) if is_free(target, row.id_data) else None
        moves = self._carrier is not None
        self.can_turn = moves and not all(target.owner.lock_rotation)
        self.can_move = moves or not is_pole
        world: Any = obj.matrix_world @ target.owner.matrix if target.bone else obj.matrix_world.copy()
        self._place: Any = world.to_translation()
        self._owner: Any = target.owner if moves else row
        self._channels = ["location", rotation_channel(self._owner)[0]] if moves else ["offset"]
        self._rotation = orthonormal(world.to_3x3())
        frames: dict[str, Any] = {"TARGET": world, "ARMATURE": row.id_data.matrix_world, "WORLD": Matrix()}
        self._to_offset: Any = frames[row.offset_space].to_3x3().inverted_safe()
        self._before = {name: tuple(getattr(self._owner, name)) for name in self._channels}

    def move(self, shift: Vector) -> None:
        """Shift the target relative to the start of the drag, world."""
        if self._carrier is not None:
            location, _ = self._carrier.channels(self._place + shift, self._carrier.rotation)
            self._set("location", location)
        elif self.can_move:
            self._owner.offset = Vector(self._before["offset"]) + self._to_offset @ shift
        self._tag()

    def turn(self, rotation: Quaternion) -> None:
        """Turn the target about its origin relative to the start of the drag, world."""
        if self._carrier is None or not self.can_turn or self._rotation is None:
            return
        turned = self._carrier.turned(rotation @ self._rotation)
        if turned is None:
            return
        _, local = self._carrier.channels(self._place, turned)
        name = self._channels[1]
        self._set(name, channel_values(self._owner.rotation_mode, [local[:]], self._before[name])[0].tolist())
        self._tag()

    def _set(self, name: str, values: Sequence[float]) -> None:
        setattr(self._owner, name, self._before[name])
        setattr(self._owner, name, within_locks(self._owner, name, values))

    def restore(self) -> None:
        """Restore the channels of the start of the drag."""
        for name, value in self._before.items():
            setattr(self._owner, name, value)
        self._tag()

    def changed(self) -> list[tuple[Any, str]]:
        """Return the changed channels: bone, object or constraint, and name of the channel."""
        before = self._before.items()
        return [(self._owner, name) for name, value in before if tuple(getattr(self._owner, name)) != value]

    def _tag(self) -> None:
        self._owner.id_data.update_tag()


def is_free(target: Target, armature_object: bpy.types.Object) -> bool:
    """Whether the channels of a target alone move it: an object, or a bone of the constraint's armature.

    It must be editable and have neither constraints nor drivers.
    """
    obj, owner = target.obj, target.owner
    is_same_armature = obj == armature_object
    if not obj.is_editable or channels.is_system_override(obj) or is_same_armature != bool(target.bone):
        return False
    if any(not c.mute and c.influence > 0.0 for c in owner.constraints) or all(owner.lock_location):
        return False
    if target.bone and owner.parent is not None and owner.bone.use_connect:
        return False
    paths = [owner.path_from_id(name) for name in ("location", rotation_channel(owner)[0])]
    return not any(curve.data_path in paths for curve in channels.drivers_of(obj))
