"""What really plays after a bake: every frame evaluated by Blender once more, and held against the keys.

What a bake reports is measured on the poses that it has keyed. Drivers, constraints on the bones, the NLA or
interpolation between keys can show something else: that is measured here, and what is in the way is named.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np
from numpy.typing import NDArray

from ...maths.arrays import quaternions
from ...motion.interpolation import Array
from ..keys.obstacles import Destination, obstacles
from ..properties import constraint_list
from ..rig import rotation_modes
from ..scene.evaluation import PlayedFrame, playback
from ..scene.targets import TargetSample
from ..solve.constraint_goals import chain_joints
from . import measuring
from .bake_frames import BakeFrames, Motion
from .report import Check, PlaybackResult

BLOCK = 256
"""Frames whose matrices are kept until they are worked on, all at once."""
ROUNDING = 1e-5
"""Part of a chain's length, and radians times ten, that float32 bones end to end may be off."""


def play_steps(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    take: BakeFrames,
    motion: Motion,
    tolerances: tuple[float, float],
) -> Generator[tuple[float, int, int], None, Check]:
    """Evaluate all whole frames of the range and all keyed ones; gives frame, how many are done, and of how
    many.

    Args:
        take: of the bake.
        motion: what should play at its frames.
        tolerances: world metres and radians that a constraint's bones may be off their keys.
    """
    whole = np.arange(math.ceil(take.frames[0]), math.floor(take.frames[-1]) + 1, dtype=np.float64)
    frames = np.union1d(take.frames, whole)
    film = _Film.empty(armature_object, take, frames, tolerances)
    with playback(scene, armature_object, take.constraints) as play:
        for f, frame in enumerate(frames.tolist()):
            film.store(f, play(frame, True, frame not in film.keyed))
            yield frame, f + 1, len(frames)
    shown, heads, turned = film.shown, film.heads, film.turned
    distances, angles = measuring.errors(shown, heads, turned)
    at = np.searchsorted(frames, take.frames)
    apart, bent = _off(take, motion, heads[at], turned[at])
    found = []
    for c, constraint in enumerate(take.constraints):
        force = shown.influences[:, c]
        where = force >= 1.0 if (force >= 1.0).any() else force > 0.0
        if not where.any():
            continue
        far, turn = (int(np.argmax(np.where(where, each[:, c], -1.0))) for each in (distances, angles))
        chain = list(chain_joints(take.skeleton, constraint))
        size = float(take.lengths[:, chain].sum(axis=1).max()) * float(np.abs(take.worlds).max())
        limits = (tolerances[0] + ROUNDING * size, tolerances[1] + 10.0 * ROUNDING)
        over = np.maximum(apart[:, chain] / limits[0], bent[:, chain] / limits[1])
        over[take.influences[:, c] <= 0.0] = 0.0
        f = int(np.argmax(over.max(axis=1))) if chain else 0
        causes: tuple[str, ...] = ()
        off, deviation_angle = float(apart[f, chain].max(initial=0.0)), float(bent[f, chain].max(initial=0.0))
        strays = np.where(force[:, None] > 0.0, film.strayed[:, c], 0.0)[at]
        if (strays > tolerances).any():
            f = int(np.argmax((strays / tolerances).max(axis=1)))
            off, deviation_angle = strays[f].tolist()
            causes = ("its target or pole moves with the bones that were baked: choose one that does not",)
        elif chain and over[f].max() > 1.0:
            wrong = [
                take.skeleton.joints[j].name for j, each in zip(chain, over[f], strict=True) if each > 1.0
            ]
            causes = tuple(_causes(armature_object, wrong)) or (f"something else moves bone '{wrong[0]}'",)
        found.append(
            PlaybackResult(
                constraint=constraint.name,
                residual=float(distances[far, c]),
                frame=float(frames[far]),
                angle=float(angles[turn, c]),
                angle_frame=float(frames[turn]),
                deviation=off,
                deviation_angle=deviation_angle,
                deviation_frame=float(take.frames[f]),
                causes=causes,
            )
        )
    return Check(len(frames), tuple(found))


@dataclass
class _Film:
    """What was played, frame by frame. F counts the frames, J the take's joints.

    Attributes:
        shown: the take with what was evaluated now: lengths, places, and targets also between the keys.
        keyed: the frames with keys.
        heads: (F, J, 3) armature space.
        turned: (F, J, 4) rotations, armature space.
        slots: (J,) indices in pose.bones.
        lengths: (J,) of the bones, without scale.
        tolerances: world metres and radians that a target is found where it was.
        strayed: (F, C, 2) how far targets are from where they were solved for, at the keys; the same units.
        latest: (BLOCK, J, 4, 4) pose matrices of frames that the others do not have yet.
    """

    shown: BakeFrames
    keyed: frozenset[float]
    heads: Array
    turned: Array
    slots: list[int]
    lengths: Array
    tolerances: tuple[float, float]
    strayed: Array
    latest: NDArray[np.float32]

    @classmethod
    def empty(
        cls,
        armature_object: bpy.types.Object,
        take: BakeFrames,
        frames: Array,
        tolerances: tuple[float, float],
    ) -> _Film:
        indices = {bone.name: i for i, bone in enumerate(armature_object.pose.bones)}
        slots = [indices[joint.name] for joint in take.skeleton.joints]
        lengths = np.array([armature_object.pose.bones[slot].bone.length for slot in slots])
        sizes = ((len(frames), len(slots)), (len(frames), 3, 3), (len(frames), len(take.constraints)))
        scaled, worlds, influences = (np.zeros(size) for size in sizes)
        # At the keys targets should be where they were solved for; where planted bones are held is known.
        aims: list[tuple[TargetSample, ...]] = [()] * len(frames)
        for row, f in enumerate(np.searchsorted(frames, take.frames)):
            aims[f], influences[f] = take.targets[row], take.influences[row]
        shown = replace(
            take, frames=frames, lengths=scaled, worlds=worlds, influences=influences, targets=aims
        )
        heads, turned = (np.empty((len(frames), len(slots), width)) for width in (3, 4))
        latest = np.empty((BLOCK, len(slots), 4, 4), np.float32)
        strayed = np.zeros((len(frames), len(take.constraints), 2))
        keyed = frozenset(take.frames.tolist())
        return cls(shown, keyed, heads, turned, slots, lengths, tolerances, strayed, latest)

    def store(self, f: int, now: PlayedFrame) -> None:
        """Keep the next frame."""
        shown = self.shown
        self.latest[f % BLOCK] = now.matrices[self.slots]
        shown.worlds[f] = now.world[:3, :3]
        if float(shown.frames[f]) in self.keyed:
            self._compare(f, now.targets)
        else:
            shown.targets[f], shown.influences[f] = now.targets, now.influences
            for c, constraint in enumerate(shown.constraints):
                if constraint.kind == "PLANT" and not constraint.target:
                    shown.influences[f, c] = 0.0
        if f % BLOCK == BLOCK - 1 or f == len(shown.frames) - 1:
            self._develop(slice(f - f % BLOCK, f + 1))

    def _compare(self, f: int, now: Sequence[TargetSample]) -> None:
        """Targets at a key as they are now, if they are not where they were solved for."""
        shown, aims = self.shown, list(self.shown.targets[f])
        for c, (before, after) in enumerate(zip(shown.targets[f], now, strict=True)):
            if before != after and shown.constraints[c].kind != "PLANT":
                self.strayed[f, c] = _strayed(before, after, shown.worlds[f])
                if (self.strayed[f, c] > self.tolerances).any():
                    aims[c] = after
        shown.targets[f] = tuple(aims)

    def _develop(self, frames: slice) -> None:
        """The latest matrices as places, rotations and lengths."""
        poses = self.latest[: frames.stop - frames.start].astype(np.float64)
        axes = poses[..., :3, :3]
        sizes = np.sqrt(np.square(axes).sum(axis=-2, keepdims=True))
        rotations = quaternions((axes / np.maximum(sizes, 1e-30)).reshape(-1, 3, 3))
        self.heads[frames] = poses[..., :3, 3]
        self.turned[frames] = rotations.reshape(*poses.shape[:2], 4)
        self.shown.lengths[frames] = self.lengths * sizes[..., 0, 1]


def _strayed(before: TargetSample, after: TargetSample, world: Array) -> tuple[float, float]:
    """How far a target or its pole has moved, and how far it has turned: world metres, radians."""
    moved = [after.point - before.point]
    if before.pole is not None and after.pole is not None:
        moved.append(after.pole - before.pole)
    turn = 0.0
    if before.rotation is not None and after.rotation is not None:
        angle = before.rotation.rotation_difference(after.rotation).angle
        turn = min(angle, 2.0 * math.pi - angle)
    if before.direction is not None and after.direction is not None:
        turn = before.direction.angle(after.direction)
    return max(float(np.linalg.norm(world @ np.array(way))) for way in moved), turn


def _off(take: BakeFrames, motion: Motion, heads: Array, turned: Array) -> tuple[Array, Array]:
    """(F, J) how far joints are from where their keys put them: world metres, radians."""
    wanted_heads, wanted = measuring.transforms(take, motion)
    shift = np.linalg.norm(np.einsum("fij,fkj->fki", take.worlds, heads - wanted_heads), axis=-1)
    wanted = wanted / np.linalg.norm(wanted, axis=-1, keepdims=True)
    chord = np.minimum(np.linalg.norm(turned - wanted, axis=-1), np.linalg.norm(turned + wanted, axis=-1))
    return shift, 4.0 * np.arcsin(np.minimum(1.0, 0.5 * chord))


def _causes(armature_object: bpy.types.Object, bones: Sequence[str]) -> Iterator[str]:
    """What may act on bones instead of their keys, or on top of them."""
    wanted = [(name, rotation_modes.rotation_channel(armature_object.pose.bones[name])[0]) for name in bones]
    wanted += [(name, "location") for name in bones]
    yield from obstacles(armature_object, wanted, Destination.CURRENT_ACTION)
    for bone in armature_object.pose.bones:
        for constraint in bone.constraints:
            if constraint.mute or constraint.influence == 0.0:
                continue
            turned = [bone.name]
            if constraint.type in ("IK", "SPLINE_IK"):
                turned = [
                    b.name for b in constraint_list.chain(armature_object, bone.name, constraint.chain_count)
                ]
            moved = next((name for name in turned if name in bones), None)
            if moved is not None:
                yield f"constraint '{constraint.name}' of bone '{bone.name}' acts on bone '{moved}': mute it"
