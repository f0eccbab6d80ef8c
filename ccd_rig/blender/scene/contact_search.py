# SPDX-License-Identifier: GPL-3.0-or-later
"""Search for contacts of planted bones; contacts as keys of influences and as markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np

from ...errors import RigError
from ...maths.batch import Array
from ...motion.contacts import Phase, contact_phases, ground_velocity
from ...motion.ground import seen_below
from ...motion.settings import ContactThresholds
from ..properties import constraint_list
from ..properties.constraint_kinds import value_of
from ..properties.constraint_values import Constraint
from ..rig import clamps
from .evaluation import metres_per_unit, playback
from .ground import rig_ground

SAME_FOOT = 0.4
"""Leg lengths: bones that are never farther apart belong to one foot."""
STAYS = 0.25
"""Speed of feet from the first frame to the last, in that of the ground, below which a walk is in place."""


@dataclass(frozen=True)
class FootMotion:
    """Motion of constrained bones over a range of frames."""

    frames: range  # (F,) consecutive frames
    times: Array  # (F,) seconds
    heads: Mapping[str, Array]  # by constraint, (F, 3) head of its bone, world metres
    # Length of a leg, world metres: the smallest of the feet's largest distances from the root bone.
    leg: float
    # By constraint, (F,) world height of the armature's Ground below its bone, NaN where there is none; None
    # if the Ground is At Rest.
    grounds: Mapping[str, Array] | None = None

    @classmethod
    def of(
        cls,
        scene: bpy.types.Scene,
        armature_object: bpy.types.Object,
        constraints: Sequence[Constraint],
        frames: range,
    ) -> FootMotion:
        """Read the motion as Blender plays it, without changing the scene.

        Raises:
            RigError: a bone is missing, its leg has no length, no ground is below one, or something cannot be
                evaluated.
        """
        count, bones = len(constraints), armature_object.pose.bones
        names = [constraint.tip for constraint in constraints]
        names += [_root_bone(armature_object, constraint) for constraint in constraints]
        indices = [bones.find(name) for name in names]
        heads = np.empty((2 * count, len(frames), 3))
        with clamps.suspended(), playback(scene, armature_object, constraints) as playing:
            for f, frame in enumerate(frames):
                matrices, world = playing.pose(float(frame))
                heads[:, f] = (world @ matrices[indices])[:, :3, 3]
        leg = float(np.linalg.norm(heads[:count] - heads[count:], axis=2).max(axis=1).min())
        if not leg > 0.0:
            raise RigError(f"'{names[0]}' never leaves '{names[count]}': set Chain Length to end at the hips")
        seconds = scene.render.fps_base / scene.render.fps
        times = np.arange(len(frames)) * seconds
        rows = [constraint.name for constraint in constraints]
        feet = dict(zip(rows, heads[:count], strict=True))
        if armature_object.ccd_rig.ground.kind == "REST":
            return cls(frames, times, feet, leg)
        at_frames = np.swapaxes(heads, 0, 1)
        points = at_frames[:, :count]
        ground = rig_ground(scene, armature_object, list(frames), points.reshape(-1, 3), leg)
        below = np.full(points.shape[:2], np.nan)
        if ground is not None:
            below = seen_below(ground, points, at_frames[..., 2].max(axis=1)[:, None])
        if np.isnan(below).all():
            raise RigError(
                f"'{armature_object.name}': no ground is below its feet in frames {frames[0]} to "
                f"{frames[-1]}: move one of them, or choose another Ground"
            )
        return cls(frames, times, feet, leg, dict(zip(rows, below.T, strict=True)))

    def ground_velocity(self, thresholds: ContactThresholds, moves: bool) -> Array:
        """Return the velocity of the ground, (3,) world metres per second; see `motion.contacts`."""
        grounds = None if self.grounds is None else list(self.grounds.values())
        return ground_velocity(list(self.heads.values()), self.times, self.leg, thresholds, moves, grounds)

    def in_place(self, thresholds: ContactThresholds, moves: bool) -> FootMotion:
        """Return the motion without a Ground if it walks in place, since it is over other places then.

        Its feet, whose velocity tells that, stay on the whole where they are.
        """
        if self.grounds is None:
            return self
        treadmill = replace(self, grounds=None)
        velocity = treadmill.ground_velocity(thresholds, moves)
        ways = [heads[-1] - heads[0] for heads in self.heads.values()]
        travel = np.mean(ways, axis=0) / (self.times[-1] - self.times[0])
        stays = np.linalg.norm(travel[:2]) < STAYS * np.linalg.norm(velocity)
        return treadmill if stays else self

    def phases(self, name: str, velocity: Array, thresholds: ContactThresholds) -> list[Phase]:
        """Return the contacts of a constraint's bone, as frames; `velocity` is the ground's."""
        nearest = self._nearest_foot(name) if self.grounds is None else None
        ground = None if self.grounds is None else self.grounds[name]
        phases = contact_phases(self.heads[name], self.times, self.leg, velocity, thresholds, nearest, ground)
        return [Phase(self.frames[first], self.frames[last]) for first, last in phases]

    def _nearest_foot(self, name: str) -> Array | None:
        """Return the heads, (F, 3), of the other foot with the smallest mean distance; None without one."""
        foot = self.heads[name]
        distances = {
            other: np.linalg.norm(heads - foot, axis=1)
            for other, heads in self.heads.items()
            if other != name
        }
        means = {
            other: float(distance.mean())
            for other, distance in distances.items()
            if distance.max() > SAME_FOOT * self.leg
        }
        return self.heads[min(means, key=means.__getitem__)] if means else None


def _root_bone(armature_object: bpy.types.Object, constraint: Any) -> str:
    """Return the name of the root bone at the end of a planted bone's chain, which must have a leg."""
    chain = constraint_list.chain_of(armature_object, constraint)
    if not chain:
        raise RigError(
            f"Constraint '{constraint.name}': bone '{constraint.tip}' is not in armature "
            f"'{armature_object.name}' (renamed or deleted?): choose its bone again"
        )
    if len(chain) == 1:
        raise RigError(
            f"Constraint '{constraint.name}': no leg hangs between '{constraint.tip}' and "
            "the bone that carries the figure: set Chain Length to end at that bone"
        )
    return str(chain[-1].name)


DOWN, UP = "down", "up"


@dataclass(frozen=True)
class Contacts:
    """Contacts of planted bones."""

    phases: Mapping[str, Sequence[Phase]]  # by constraint, first and last frame of each contact, in order
    velocity: Array  # (3,) of the ground, Blender units per second; 0 if it stands still
    metres: float = 1.0  # of a Blender unit

    @property
    def ground_moves(self) -> bool:
        """Whether the figure walks in place."""
        return bool(self.velocity.any())

    def words(self) -> tuple[str, ...]:
        """Return a line for each constraint, such as "foot.L: 1-14, 31-44", and one if the ground moves."""
        lines = []
        for name, phases in self.phases.items():
            spans = [f"{first}-{last}" if first != last else f"{first}" for first, last in phases]
            lines.append(f"{name}: {', '.join(spans) or 'no contact'}")
        if self.ground_moves:
            velocity = self.metres * np.linalg.norm(self.velocity)
            lines.append(f"Walks in place: the ground moves at {velocity:.2f} m/s")
        return tuple(lines)


def find_contacts(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    names: Sequence[str],
    frames: range,
    thresholds: ContactThresholds,
    ground: str = "AUTO",
) -> Contacts:
    """Find the contacts of planted bones in the present animation of a range, without changing the file.

    Args:
        frames: consecutive, at least three.
        thresholds: when a foot is down.
        ground: "AUTO", "STILL" or "MOVES".

    Raises:
        RigError: the range is too short, a constraint has no leg, its influence cannot be keyed, or no bone
            is ever down.
    """
    if len(frames) < 3:
        raise RigError(f"A range of {len(frames)} frames shows no contact: set Start Frame and End Frame")
    rows = [armature_object.ccd_rig.constraints[name] for name in names]
    constraint_list.require_keyable_influences(armature_object, rows)
    motion = FootMotion.of(scene, armature_object, [value_of(row) for row in rows], frames)
    if ground != "STILL":
        motion = motion.in_place(thresholds, ground == "MOVES")
    velocity = motion.ground_velocity(thresholds, ground == "MOVES")
    if ground == "STILL":
        velocity = np.zeros(3)
    phases = {name: motion.phases(name, velocity, thresholds) for name in names}
    contacts = Contacts(phases, velocity, metres_per_unit(scene))
    if not any(contacts.phases.values()):
        raise RigError(
            f"No contact of {', '.join(names)} in frames {frames[0]} to {frames[-1]}: raise Speed or Height, "
            "or for quick steps lower Shortest"
        )
    return contacts


def key_contacts(armature_object: bpy.types.Object, contacts: Contacts, frames: range, time: float) -> None:
    """Key the influences of constraints: 1 in contacts, else 0.

    A planted bone keeps its place in the frame before. Its influence therefore starts at the second frame of
    a contact. It starts at the first one only if the range starts there. `time` is the factor from frames to
    the time of keys.
    """
    for name, phases in contacts.phases.items():
        spans = [(p.first + (p.first > frames[0]), p.last) for p in phases]
        spans = [(first, last) for first, last in spans if first <= last]
        row = armature_object.ccd_rig.constraints[name]
        constraint_list.key_influence(row, spans, frames[0], frames[-1], time)


def mark_contacts(scene: bpy.types.Scene, contacts: Contacts, frames: range) -> None:
    """Put markers where bones come down and leave the ground, and remove former markers of these bones."""
    markers: Any = scene.timeline_markers
    for name, phases in contacts.phases.items():
        down, up = f"{name} {DOWN}", f"{name} {UP}"
        for marker in list(markers):
            if marker.name in (down, up) and frames[0] <= marker.frame <= frames[-1] + 1:
                markers.remove(marker)
        for phase in phases:
            markers.new(down, frame=phase.first)
            if phase.last < frames[-1]:
                markers.new(up, frame=phase.last + 1)
