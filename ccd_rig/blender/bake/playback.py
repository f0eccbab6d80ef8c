"""What really plays after a bake: every frame evaluated by Blender once more, and held against the keys.

What a bake reports is measured on the poses that it has keyed. Drivers, constraints on the bones, the NLA or
interpolation between keys can show something else: that is measured here, and what is in the way is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import bpy
import numpy as np

from ...maths.batch import (
    Array,
    angles_between,
    conjugate,
    cross,
    dot,
    length,
    multiply,
    quaternions,
    rotate,
    unit,
)
from ...solvers.stepping import Work
from ..keys.obstacles import Destination, obstacles
from ..properties import constraint_list
from ..properties.constraint_values import Kind
from ..rig import rotation_modes
from ..scene.evaluation import Playback, PlayedFrame, playback
from ..scene.isolation import SharedScene
from ..scene.targets import TargetRows
from . import measuring
from .bake_frames import BakeFrames, Motion
from .progress import Progress, Steps, paced
from .report import Check, PlaybackResult

BLOCK = 256
"""Frames whose matrices are kept until they are worked on, all at once."""
SAME = 1e-6
"""Part of a bone's length by which it differs by rounding alone."""
ROUNDING = 1e-5
"""Part of a chain's length, and radians times ten, that float32 bones end to end may be off."""


def play_steps(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    bake_frames: BakeFrames,
    motion: Motion,
    tolerances: tuple[float, float],
    shared: SharedScene | None = None,
) -> Steps[Check]:
    """Evaluate all whole frames of the range and all keyed ones.

    Args:
        scene: in which the armature plays.
        armature_object: plays the keys.
        bake_frames: of the bake.
        motion: what should play at its frames.
        tolerances: world metres and radians that a constraint's bones may be off their keys.
        shared: where frames are evaluated for other armatures too, or None.
    """
    first, last = math.ceil(bake_frames.frames[0]), math.floor(bake_frames.frames[-1])
    frames = np.union1d(bake_frames.frames, np.arange(first, last + 1, dtype=np.float64))
    film = _Film.empty(armature_object, bake_frames, frames, tolerances)
    measured = Progress(frames[-1], 0, len(frames), "measured")
    yield measured
    with playback(scene, armature_object, bake_frames.constraints, shared) as playing:
        yield measured
        asked = [(frame, True) for frame in frames.tolist()]
        if shared is not None:
            shared.want(armature_object, asked)
        for f, each in enumerate(asked):
            progress = Progress(each[0], f, len(frames), "checked")
            if shared is not None and shared.waits(armature_object, *each):
                yield progress._replace(meets=True)  # all keys are written before any frame is looked at
            film.store(f, playing.play(*each), playing)
            if shared is None or f == len(frames) - 1:
                yield progress._replace(done=f + 1)
    measuring_all = _results(armature_object, bake_frames, motion, film, tolerances)
    return Check(len(frames), tuple((yield from paced(measuring_all, measured))))


def _results(
    armature_object: bpy.types.Object,
    bake_frames: BakeFrames,
    motion: Motion,
    film: _Film,
    tolerances: tuple[float, float],
) -> Work[list[PlaybackResult]]:
    """How each constraint in force stood in what was played; an item after each."""
    frames = film.shown.frames
    measured = yield from measuring.errors(film.shown, film.heads, film.axes)
    errors = [_numbers(each) for each in measured]
    at = np.searchsorted(frames, bake_frames.frames)
    played = Transforms(film.heads[at], film.axes[at])
    keyed = Transforms(*measuring.transforms(bake_frames, motion))
    results = []
    for c, constraint in enumerate(bake_frames.constraints):
        yield
        influences = film.shown.influences[:, c]
        counted = influences >= 1.0 if (influences >= 1.0).any() else influences > 0.0
        if not counted.any():
            continue
        far, turned = (int(np.argmax(np.where(counted, each[:, c], -1.0))) for each in errors)
        strays = np.where(influences[:, None] > 0.0, film.strayed[:, c], 0.0)[at]
        worst = _worst_deviation(armature_object, bake_frames, c, (played, keyed), (strays, tolerances))
        results.append(
            PlaybackResult(
                constraint=constraint.name,
                residual=float(errors[0][far, c]),
                frame=float(frames[far]),
                angle=float(errors[1][turned, c]),
                angle_frame=float(frames[turned]),
                deviation=worst.distance,
                deviation_angle=worst.angle,
                deviation_frame=float(bake_frames.frames[worst.row]),
                causes=worst.causes,
            )
        )
    return results


class Transforms(NamedTuple):
    """Joints at all frames of the bake, in armature space: (F, J, 3) heads and (F, J, 4) rotations."""

    heads: Array
    axes: Array


class _Deviation(NamedTuple):
    """How far a chain, or its target, is from where it was baked: world metres and radians, at a row of the
    bake's frames; what brings it about, if it is too far."""

    distance: float
    angle: float
    row: int
    causes: tuple[str, ...]


def _worst_deviation(
    armature_object: bpy.types.Object,
    bake_frames: BakeFrames,
    c: int,
    transforms: tuple[Transforms, Transforms],
    targets: tuple[Array, tuple[float, float]],
) -> _Deviation:
    """Where constraint `c` is farthest from what was baked.

    Args:
        armature_object: plays the keys.
        bake_frames: of the bake.
        c: index of the constraint.
        transforms: what plays, and where the keys put the bones.
        targets: (F, 2) how far its targets have strayed, and the tolerances for these and for bones.
    """
    strays, tolerances = targets
    if (strays > tolerances).any():
        row = int(np.argmax((strays / tolerances).max(axis=1)))
        distance, angle = strays[row].tolist()
        cause = "its target or pole moves with the bones that were baked: choose one that does not"
        return _Deviation(distance, angle, row, (cause,))
    # Bones that cannot turn too: what moves them moves the others.
    constraint = bake_frames.constraints[c]
    chain = list(bake_frames.skeleton.chain(constraint.tip, constraint.chain_length))
    distances, angles = _deviations(bake_frames, transforms, chain)
    size = float(bake_frames.lengths[:, chain].sum(axis=1).max()) * float(np.abs(bake_frames.worlds).max())
    most = tolerances[0] + ROUNDING * size, tolerances[1] + 10.0 * ROUNDING
    over = np.maximum(distances / most[0], angles / most[1])
    over[bake_frames.influences[:, c] <= 0.0] = 0.0
    row = int(np.argmax(over.max(axis=1)))
    causes: tuple[str, ...] = ()
    if over[row].max() > 1.0:
        joints = bake_frames.skeleton.joints
        wrong = [joints[j].name for j in _moved_themselves(bake_frames, transforms, (row, chain), most)]
        wrong = wrong or [joints[j].name for j, each in zip(chain, over[row], strict=True) if each > 1.0]
        causes = tuple(_causes(armature_object, wrong)) or (f"something else moves bone '{wrong[0]}'",)
    return _Deviation(float(distances[row].max()), float(angles[row].max()), row, causes)


@dataclass
class _Film:
    """What was played, frame by frame. F counts the frames, J the joints.

    Attributes:
        shown: the frames with what was evaluated now: lengths, places, and targets also between the keys.
        keyed: the frames with keys.
        heads: (F, J, 3) armature space.
        axes: (F, J, 4) rotations, armature space.
        slots: (J,) indices in pose.bones.
        lengths: (J,) of the bones, without scale.
        tolerances: world metres and radians that a target is found where it was.
        strayed: (F, C, 2) how far targets are from where they were solved for, at the keys; the same units.
    """

    shown: BakeFrames
    keyed: frozenset[float]
    heads: Array
    axes: Array
    slots: list[int]
    lengths: Array
    tolerances: tuple[float, float]
    strayed: Array
    _latest: list[PlayedFrame] = field(default_factory=list)  # what the others do not have yet

    @classmethod
    def empty(
        cls,
        armature_object: bpy.types.Object,
        bake_frames: BakeFrames,
        frames: Array,
        tolerances: tuple[float, float],
    ) -> _Film:
        indices = {bone.name: i for i, bone in enumerate(armature_object.pose.bones)}
        slots = [indices[joint.name] for joint in bake_frames.skeleton.joints]
        lengths = np.array([armature_object.pose.bones[slot].bone.length for slot in slots])
        sizes = ((len(frames), len(slots)), (len(frames), 3, 3), (len(frames), len(bake_frames.constraints)))
        scaled, worlds, influences = (np.zeros(size) for size in sizes)
        # At the keys targets should be where they were solved for; where planted bones are held is known.
        at = np.searchsorted(frames, bake_frames.frames)
        targets = TargetRows.empty(len(frames), bake_frames.targets)
        targets.put(at, bake_frames.targets)
        influences[at] = bake_frames.influences
        shown = replace(
            bake_frames, frames=frames, lengths=scaled, worlds=worlds, influences=influences, targets=targets
        )
        heads, axes = (np.empty((len(frames), len(slots), width)) for width in (3, 4))
        strayed = np.zeros((len(frames), len(bake_frames.constraints), 2))
        keyed = frozenset(bake_frames.frames.tolist())
        return cls(shown, keyed, heads, axes, slots, lengths, tolerances, strayed)

    def store(self, f: int, now: PlayedFrame, playing: Playback) -> None:
        """Keep the next frame, which `playing` has shown."""
        self._latest.append(now)
        if len(self._latest) == BLOCK or f == len(self.shown.frames) - 1:
            self._develop(slice(f + 1 - len(self._latest), f + 1), playing)
            self._latest.clear()

    def _compare(self, frames: slice, now: TargetRows, influences: Array) -> None:
        """Take over targets and influences between keys, and at keys those targets that have moved since."""
        shown, tolerances = self.shown, np.array(self.tolerances)
        rows = np.arange(frames.start, frames.stop)
        is_keyed = np.isin(shown.frames[rows], list(self.keyed))
        placing = [each.kind is Kind.PLANT and not each.target for each in shown.constraints]
        between = rows[~is_keyed]
        shown.targets.put(between, now.at(~is_keyed))
        shown.influences[between] = np.where(placing, 0.0, influences[~is_keyed])
        planting = [each.kind is Kind.PLANT for each in shown.constraints]
        strayed = _numbers(_strayed(shown.targets.at(rows), now, shown.worlds[rows]))
        self.strayed[rows] = np.where(is_keyed[:, None, None] & ~np.array(planting)[:, None], strayed, 0.0)
        for k, c in np.argwhere((self.strayed[rows] > tolerances).any(axis=-1)).tolist():
            shown.targets.set(int(rows[k]), c, now.sample(k, c))

    def _develop(self, frames: slice, playing: Playback) -> None:
        """The latest frames as targets, places, rotations and lengths."""
        worlds = playing.worlds(self._latest)
        self.shown.worlds[frames] = worlds[:, :3, :3]
        self._compare(frames, *playing.targets(self._latest, worlds))
        poses = np.array([each.matrices[self.slots] for each in self._latest], np.float64)
        columns = poses[..., :3, :3]
        sizes = np.sqrt(np.square(columns).sum(axis=-2, keepdims=True))
        rotations = np.moveaxis(columns / np.maximum(sizes, 1e-30), (-2, -1), (0, 1))
        self.heads[frames] = poses[..., :3, 3]
        self.axes[frames] = np.moveaxis(quaternions(rotations), 0, -1)
        lengths = self.lengths * sizes[..., 0, 1]
        # What differs by rounding alone is equal: frames whose bones are equally long are measured at once.
        first = self.shown.lengths[0] if frames.start else lengths[0]
        self.shown.lengths[frames] = np.where(np.abs(lengths - first) <= SAME * first, first, lengths)


def _strayed(before: TargetRows, after: TargetRows, worlds: Array) -> Array:
    """(R, C, 2) how far targets or their poles have moved, and how far they have turned.

    World metres, with (R, 3, 3) from armature space to the world, and radians.
    """
    moved, poles = (
        length(np.einsum("rij,rcj->rci", worlds, each), axis=-1)
        for each in (after.points - before.points, after.poles - before.poles)
    )
    turned = angles_between(before.rotations, after.rotations, axis=-1)
    across = length(cross(before.directions, after.directions, axis=-1), axis=-1)
    ways = np.arctan2(across, dot(before.directions, after.directions, axis=-1))
    # What is not asked for is not a number, and has not strayed.
    return np.stack((np.fmax(moved, poles), np.fmax(np.fmax(turned, ways), 0.0)), axis=-1)


def _deviations(
    bake_frames: BakeFrames, transforms: tuple[Transforms, Transforms], chain: Sequence[int]
) -> tuple[Array, Array]:
    """(F, K) how far the joints of a chain are from where their keys put them: world metres, radians."""
    played, keyed = (Transforms(each.heads[:, chain], each.axes[:, chain]) for each in transforms)
    shift = np.linalg.norm(np.einsum("fij,fkj->fki", bake_frames.worlds, played.heads - keyed.heads), axis=-1)
    return _numbers(shift), _numbers(angles_between(played.axes, unit(keyed.axes, axis=-1), axis=-1))


def _moved_themselves(
    bake_frames: BakeFrames,
    transforms: tuple[Transforms, Transforms],
    place: tuple[int, Sequence[int]],
    most: tuple[float, float],
) -> Iterator[int]:
    """The joints of a chain, root first, that are off by more than their parents carry them.

    Args:
        bake_frames: of the bake.
        transforms: what plays, and where the keys put the bones.
        place: the row, and the joints of the chain.
        most: world metres and radians that a bone may be off.
    """
    row, chain = place
    skeleton, world = bake_frames.skeleton, bake_frames.worlds[row]
    seen: list[tuple[Array, Array]] = []
    for each in transforms:
        heads, axes = each.heads[row].copy(), unit(each.axes[row].copy(), axis=-1)
        for j in chain:
            parent = skeleton.joints[j].parent
            if parent < 0:
                continue
            back = conjugate(unit(each.axes[row, parent]))
            heads[j] = rotate(back, each.heads[row, j] - each.heads[row, parent])
            if skeleton.joints[j].inherit_rotation:
                axes[j] = multiply(back, axes[j])
        seen.append((heads, axes))
    (heads, axes), (keyed_heads, keyed_axes) = seen
    for j in chain:
        distance = _numbers(np.linalg.norm(world @ (heads[j] - keyed_heads[j])))
        angle = _numbers(angles_between(axes[j], keyed_axes[j]))
        if distance > most[0] or angle > most[1]:
            yield j


def _numbers(values: Array) -> Array:
    """The same, but infinite where Blender has no number."""
    return np.where(np.isfinite(values), values, np.inf)


def _causes(armature_object: bpy.types.Object, bones: Sequence[str]) -> Iterator[str]:
    """What may act on bones instead of their keys, or on top of them."""
    channels = [
        (name, rotation_modes.rotation_channel(armature_object.pose.bones[name])[0]) for name in bones
    ]
    channels += [(name, "location") for name in bones]
    yield from obstacles(armature_object, channels, Destination.CURRENT_ACTION)
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
