"""The check after a bake: every frame evaluated by Blender once more, and compared with the keys.

Drivers, constraints on bones, the NLA or interpolation between keys can show other poses than the keys. The
check measures these poses, and names the causes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import bpy
import numpy as np

from ...errors import RigError
from ...maths.batch import (
    Array,
    angles_between,
    arctan2,
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
from .. import checks
from ..keys.destination import Destination
from ..keys.writer import driver_obstacles, obstacles
from ..properties import constraint_list
from ..properties.constraint_kinds import value_of
from ..properties.constraint_values import Constraint
from ..rig import clamps, rotation_modes
from ..scene import evaluation
from ..scene.evaluation import Playback, PlayedFrame, Samples, Shown, is_visible, playback
from ..scene.targets import TargetRows
from . import measuring
from .bake_frames import BakeFrames, Relative, Transforms
from .findings import missed_between, taken_off
from .keyed_motion import KeyedMotion, base_motion, keyed_joints, motion_between
from .progress import Progress, Steps, paced
from .report import Check, Finding, PlaybackResult
from .shot import Task

BLOCK = 256
"""Frames whose matrices are kept until they are converted at once."""
SAME = 1e-5
"""Rounding of a played bone's length, as a part of it; six bones from the root of a human it is 3e-6."""


def play_steps(task: Task, bake_frames: BakeFrames, is_whole: bool) -> Steps[_PlaybackSamples]:
    """Evaluate whole and keyed frames of the range, and visible ones beside it; the keys are written.

    `is_whole`: else only the ends of the range, and the frames beside it.
    """
    armature_object, shared, solver = task.armature_object, task.shared, task.solving.solver
    tolerances = solver.position_tolerance, solver.angle_tolerance
    first, last = math.ceil(bake_frames.frames[0]), math.floor(bake_frames.frames[-1])
    frames = np.unique(bake_frames.frames[[0, -1]])
    if is_whole:
        frames = np.union1d(bake_frames.frames, np.arange(first, last + 1, dtype=np.float64))
    samples = _PlaybackSamples(armature_object, bake_frames, frames, tolerances)
    measured = Progress(frames[-1], 0, len(frames), "measured")
    yield measured if shared is None else measured._replace(next_frame=math.inf)  # until all have their keys
    with playback(task.scene, armature_object, bake_frames.constraints, shared) as playing:
        yield measured
        requests = [(frame, True) for frame in frames.tolist()]
        # Without targets, which may be invalid there.
        requests += [(each, False) for each in (requests[0][0] - 1.0, requests[-1][0] + 1.0)]
        requests = sorted(each for each in requests if each[1] or is_visible(task.scene, each[0]))
        done = 0
        for frame, is_in_range in requests:
            if shared is not None:
                yield Progress(frame, done, len(frames), "checked", next_frame=frame)
            now = playing.play(frame, is_in_range)
            if not is_in_range:
                samples.beside.append(now)
                continue
            samples.store(done, now, playing)
            done += 1
            if shared is None or done == len(frames):
                yield Progress(frame, done, len(frames), "checked")
    return samples


def check_steps(
    task: Task, motion: KeyedMotion, samples: _PlaybackSamples
) -> Steps[tuple[Check, tuple[Finding, ...]]]:
    """The check of a played bake, and what it finds between keys and of other constraints."""
    frames = samples.shown.frames
    measured = Progress(frames[-1], 0, len(frames), "measured")
    results, between = yield from paced(_results(task, motion, samples), measured)
    taken = yield from paced(_taken_off(task, motion), measured)
    return Check(len(frames), tuple(results)), (*between, *taken)


def _taken_off(task: Task, motion: KeyedMotion) -> Work[tuple[Finding, ...]]:
    """Find enabled constraints that are not baked, and are taken off their targets; yields after each frame.

    Constraints with errors are left out.
    """
    armature_object, baked = task.armature_object, motion.bake_frames
    keyed = {baked.skeleton.joints[j].name for j in keyed_joints(baked)}
    chosen = {constraint.name for constraint in task.constraints}
    others: list[Constraint] = []
    for row in armature_object.ccd_rig.constraints:
        yield
        line = {bone.name for bone in constraint_list.chain(armature_object, row.tip)}
        if row.enabled and row.name not in chosen and not keyed.isdisjoint(line):
            problems = checks.problems(armature_object, task.scene, [row.name])
            others += () if any(each.severity == "ERROR" for each in problems) else (value_of(row),)
    if not others:
        return ()
    try:
        now = yield from _evaluated(task, others, baked.frames.tolist())
    except RigError:
        return ()
    after = now.transforms(unit(now.base, axis=-1), now.translations)
    before = _carried_back(armature_object, motion, now, after)
    for c, constraint in enumerate(others):
        if constraint.kind.plants and not constraint.target:  # it is to stay where it was
            now.targets.points[:, c] = measuring.points(now, constraint, *before)
            now.targets.rotations[:, c] = before.axes[:, now.skeleton.index(constraint.tip)]
    missed_before = yield from measuring.errors(now, *before)
    missed_after = yield from measuring.errors(now, *after)
    return tuple(taken_off(now, missed_before, missed_after, task.solving.solver))


def _carried_back(
    armature_object: bpy.types.Object, motion: KeyedMotion, now: BakeFrames, after: Transforms
) -> Transforms:
    """The joints of frames where the base poses of the baked bones that carry them have them."""
    baked = motion.bake_frames
    keyed, base = (measuring.transforms(baked, each) for each in (motion.keyed, base_motion(baked)))
    places = {joint.name: j for j, joint in enumerate(baked.skeleton.joints)}
    heads, axes = after.heads.copy(), after.axes.copy()
    for k, joint in enumerate(now.skeleton.joints):
        line = (bone.name for bone in constraint_list.chain(armature_object, joint.name))
        j = next((places[name] for name in line if name in places), None)
        if j is not None:
            back = multiply(base.axes[:, j].T, conjugate(unit(keyed.axes[:, j], axis=-1).T))
            heads[:, k] = base.heads[:, j] + rotate(back, (after.heads[:, k] - keyed.heads[:, j]).T).T
            axes[:, k] = multiply(back, after.axes[:, k].T).T
    return Transforms(heads, axes)


def _evaluated(task: Task, constraints: Sequence[Constraint], times: Sequence[float]) -> Work[BakeFrames]:
    """Frames with targets of constraints and base poses that play; yields after each.

    Raises:
        RigError: a target or a bone of theirs cannot be read at a frame.
    """
    with evaluation.frames(task.scene, task.armature_object, constraints) as frames:
        shown: list[Shown] = []
        for frame in times:
            shown.append(frames.look(frame))
            yield
        blocks = [frames.samples([*block]) for _, block in groupby(shown, lambda look: id(look.layout))]
    return BakeFrames.of(Samples.joined(blocks), constraints, times)


def _results(
    task: Task, motion: KeyedMotion, samples: _PlaybackSamples
) -> Work[tuple[list[PlaybackResult], tuple[Finding, ...]]]:
    """Errors of each active constraint in playback, and findings between keys; yields after each."""
    armature_object, solver = task.armature_object, task.solving.solver
    bake_frames, frames = motion.bake_frames, samples.shown.frames
    measured = yield from measuring.errors(samples.shown, samples.heads, samples.axes)
    errors = _numbers(measured[0]), _numbers(measured[1])
    placed = Transforms(samples.heads, samples.axes)
    is_keyed = np.isin(frames, bake_frames.frames)
    between: Iterable[Finding] = ()
    if not is_keyed.all():  # of keyed frames the report tells already
        misses = measured
        if measuring.are_partial(samples.shown):
            now = yield from _evaluated(task, task.constraints, frames.tolist())
            misses = yield from measuring.played_misses(motion_between(bake_frames, now), placed, measured)
        is_told = (samples.shown.influences > 0.0) & np.isfinite(misses[0]) & np.isfinite(misses[1])
        between = missed_between(samples.shown, misses, is_told & ~is_keyed[:, None], solver)
    at = np.searchsorted(frames, bake_frames.frames)
    shown = replace(bake_frames, lengths=samples.shown.lengths[at])
    played = Transforms(samples.heads[at], samples.axes[at])
    keyed = measuring.transforms(bake_frames, motion.keyed)
    results = []
    for c, constraint in enumerate(bake_frames.constraints):
        yield
        influences = samples.shown.influences[:, c]
        counted = influences >= 1.0 if (influences >= 1.0).any() else influences > 0.0
        if not counted.any():
            continue
        far, turned = (int(np.argmax(np.where(counted, each[:, c], -1.0))) for each in errors)
        strays = np.where(influences[:, None] > 0.0, samples.strayed[:, c], 0.0)[at]
        distance, angle, row, causes = _worst_deviation(
            armature_object, bake_frames, c, shown, played, keyed, strays, samples.tolerances
        )
        results.append(
            PlaybackResult(
                constraint=constraint.name,
                residual=float(errors[0][far, c]),
                frame=float(frames[far]),
                angle=float(errors[1][turned, c]),
                angle_frame=float(frames[turned]),
                deviation=distance,
                deviation_angle=angle,
                deviation_frame=float(bake_frames.frames[row]),
                causes=causes,
            )
        )
    return results, tuple(between)


def _worst_deviation(
    armature_object: bpy.types.Object,
    bake_frames: BakeFrames,
    c: int,
    shown: BakeFrames,
    played: Transforms,
    keyed: Transforms,
    strays: Array,
    tolerances: tuple[float, float],
) -> tuple[float, float, int, tuple[str, ...]]:
    """The largest deviation of constraint `c` from the bake: world metres, radians, row and causes.

    Args:
        shown: the frames with the lengths of bones that play.
        strays: (F, 2) deviations of its targets, world metres and radians.
        tolerances: of targets and of bones, world metres and radians.
    """
    if (strays > tolerances).any():
        row = int(np.argmax((strays / tolerances).max(axis=1)))
        distance, angle = strays[row].tolist()
        cause = "its target or pole moves with the bones that were baked: choose one that does not"
        return distance, angle, row, (cause,)
    # Locked bones too, as they carry the others.
    constraint, skeleton = bake_frames.constraints[c], bake_frames.skeleton
    chain = list(skeleton.chain(constraint.tip, constraint.chain_length))
    distances, angles = _deviations(bake_frames, constraint, shown, played, keyed, chain)
    most = (
        tolerances[0] + measuring.rounding(bake_frames, chain),
        tolerances[1] + 10.0 * measuring.ROUNDING,
    )
    over = np.maximum(distances / most[0], angles / most[1])
    joints = np.broadcast_to(chain, over.shape)  # (F, K) what deviates
    if constraint.kind.balances:  # and the bone whose mass moves the balanced point most
        shifts, heaviest = _shifts_of_masses(bake_frames, constraint, shown, played, keyed)
        widest = tolerances[0] + measuring.rounding(bake_frames, list(range(len(skeleton))))
        over = np.column_stack((over, shifts / widest))
        joints, distances = np.column_stack((joints, heaviest)), np.column_stack((distances, shifts))
    over[bake_frames.influences[:, c] <= 0.0] = 0.0
    row = int(np.argmax(over.max(axis=1)))
    causes: tuple[str, ...] = ()
    if over[row].max() > 1.0:
        off = joints[row, over[row] > 1.0].tolist()
        line = sorted({*chain, *(k for j in off for k in skeleton.chain(j))})
        moved = _moved_themselves(bake_frames, played, keyed, row, line, most)
        wrong = [skeleton.joints[j].name for j in [*moved] or off]
        causes = tuple(_causes(armature_object, wrong)) or tuple(_scaled(armature_object, wrong))
        causes = causes or (f"something else moves bone '{wrong[0]}'",)
    return float(distances[row].max()), float(angles[row].max()), row, causes


class _PlaybackSamples:
    """Playback samples of F frames and J joints.

    Attributes:
        shown: the frames with evaluated lengths, worlds, and targets between keys too.
        heads: (F, J, 3) armature space.
        axes: (F, J, 4) rotations, armature space.
        tolerances: within which a target is unchanged, world metres and radians.
        strayed: (F, C, 2) deviations of targets since the solve, at keyed frames; the same units.
        planted: by constraint that plants a bone, (F, 4, 4) places of the bone in the world.
        beside: played frames beside the range.
    """

    def __init__(
        self, rig: bpy.types.Object, bake_frames: BakeFrames, frames: Array, tolerances: tuple[float, float]
    ) -> None:
        count, constraints, bones = len(frames), len(bake_frames.constraints), rig.pose.bones
        self.tolerances, self._latest = tolerances, list[PlayedFrame]()  # not converted yet
        self.beside: list[PlayedFrame] = []
        self._keyed = bake_frames.frames
        self.slots = [bones.find(joint.name) for joint in bake_frames.skeleton.joints]
        self.lengths = np.array([bones[slot].bone.length for slot in self.slots])  # without scale
        # At keyed frames targets should be unchanged; the places of planted bones are known.
        keyed = np.flatnonzero(np.isin(bake_frames.frames, frames))
        at = np.searchsorted(frames, bake_frames.frames[keyed])
        targets = TargetRows.empty(count, bake_frames.targets)
        targets.put(at, bake_frames.targets.at(keyed))
        influences = np.zeros((count, constraints))
        influences[at] = bake_frames.influences[keyed]
        self.shown = replace(
            bake_frames,
            frames=frames,
            lengths=np.zeros((count, len(self.slots))),
            worlds=np.zeros((count, 3, 3)),
            influences=influences,
            targets=targets,
        )
        self.heads, self.axes = (np.empty((count, len(self.slots), width)) for width in (3, 4))
        self.strayed = np.zeros((count, constraints, 2))
        planting = [c for c, each in enumerate(bake_frames.constraints) if each.kind.plants]
        self._tips = [bones.find(bake_frames.constraints[c].tip) for c in planting]
        self.planted: dict[int, Array] = {c: np.empty((count, 4, 4)) for c in planting}
        rows = np.searchsorted(bake_frames.frames, frames).clip(max=len(bake_frames.frames) - 1)
        # Signs of scales, and lengths; between keys those of the next key.
        self.signs, self.known = np.sign(bake_frames.bones.stretches)[rows], bake_frames.lengths[rows]

    def store(self, f: int, now: PlayedFrame, playing: Playback) -> None:
        """Store the next frame that `playing` has shown."""
        self._latest.append(now)
        if len(self._latest) == BLOCK or f == len(self.shown.frames) - 1:
            self._convert(slice(f + 1 - len(self._latest), f + 1), playing)
            self._latest.clear()

    def ends(self) -> Iterator[tuple[int, Relative, Relative]]:
        """Yield the arguments of `end_jumps`, after the motion, for the frames beside the range."""
        for beside in self.beside:
            row, way = (0, -1) if beside.frame < self.shown.frames[0] else (-1, 1)
            poses = beside.matrices[None, self.slots].astype(np.float64)
            turns, _ = _turns(poses, self.signs[[row]])
            here = self._relative(self.heads[row], self.axes[row])
            yield way, here, self._relative(poses[0, :, :3, 3], turns[0])

    def _relative(self, heads: Array, axes: Array) -> Relative:
        """Joints (J, 3) and (J, 4) relative to their parents."""
        joints, root = self.shown.skeleton.joints, (1.0, 0.0, 0.0, 0.0)
        parents = [joint.parent for joint in joints]
        turning = [joint.parent if joint.inherit_rotation else -1 for joint in joints]
        back = conjugate(np.vstack((axes, root)).T)
        places = rotate(back[:, parents], (heads - np.vstack((heads, np.zeros(3)))[parents]).T)
        return Relative(multiply(back[:, turning], axes.T).T, places.T)

    def _compare(self, frames: slice, now: TargetRows, influences: Array) -> None:
        """Store targets and influences between keys, and targets at keys that have moved since the solve."""
        shown, tolerances = self.shown, np.array(self.tolerances)
        rows = np.arange(frames.start, frames.stop)
        is_keyed = np.isin(shown.frames[rows], self._keyed)
        placing = [each.kind.plants and not each.target for each in shown.constraints]
        between = rows[~is_keyed]
        shown.targets.put(between, now.at(~is_keyed))
        shown.influences[between] = np.where(placing, 0.0, influences[~is_keyed])
        planting = [each.kind.plants for each in shown.constraints]
        strayed = _numbers(_strayed(shown.targets.at(rows), now, shown.worlds[rows]))
        self.strayed[rows] = np.where(is_keyed[:, None, None] & ~np.array(planting)[:, None], strayed, 0.0)
        for k, c in np.argwhere((self.strayed[rows] > tolerances).any(axis=-1)).tolist():
            shown.targets.set(int(rows[k]), c, now.sample(k, c))

    def _convert(self, frames: slice, playing: Playback) -> None:
        """Convert the latest frames to targets, places, rotations and lengths."""
        worlds = playing.worlds(self._latest)
        self.shown.worlds[frames] = worlds[:, :3, :3]
        self._compare(frames, *playing.targets(self._latest, worlds))
        for (_, places), tip in zip(self.planted.items(), self._tips, strict=True):
            places[frames] = worlds @ np.array([each.matrices[tip] for each in self._latest])
        poses = np.array([each.matrices[self.slots] for each in self._latest], np.float64)
        self.heads[frames] = poses[..., :3, 3]
        self.axes[frames], sizes = _turns(poses, self.signs[frames])
        lengths, known = self.lengths * sizes[..., 1], self.known[frames]
        # Rounding is removed, as frames with equal lengths are measured at once.
        self.shown.lengths[frames] = np.where(np.abs(lengths - known) <= SAME * known, known, lengths)


def _turns(poses: Array, signs: Array) -> tuple[Array, Array]:
    """(R, J, 4) rotations and (R, J, 3) sizes of the axes of matrices (R, J, 4, 4).

    `signs`: (R, J, 3) of the scales along the axes.
    """
    columns = poses[..., :3, :3]
    sizes = np.sqrt(np.square(columns).sum(axis=-2))
    turned = columns * (signs / np.maximum(sizes, 1e-30))[:, :, None]
    return np.moveaxis(quaternions(np.moveaxis(turned, (-2, -1), (0, 1))), 0, -1), sizes


def _strayed(before: TargetRows, after: TargetRows, worlds: Array) -> Array:
    """(R, C, 2) distances of moved targets and poles, world metres, and their turns, radians.

    `worlds`: (R, 3, 3) armature space to world.
    """
    moved, poles = (
        length(np.einsum("rij,rcj->rci", worlds, each), axis=-1)
        for each in (after.points - before.points, after.poles - before.poles)
    )
    turned = angles_between(before.rotations, after.rotations, axis=-1)
    across = length(cross(before.directions, after.directions, axis=-1), axis=-1)
    directed = arctan2(across, dot(before.directions, after.directions, axis=-1))
    # Goals that a constraint lacks are NaN, and have not strayed.
    return np.stack((np.fmax(moved, poles), np.fmax(np.fmax(turned, directed), 0.0)), axis=-1)


def _deviations(
    bake_frames: BakeFrames,
    constraint: Constraint,
    shown: BakeFrames,
    played: Transforms,
    keyed: Transforms,
    chain: Sequence[int],
) -> tuple[Array, Array]:
    """(F, K) deviations of the joints of a constraint's chain from their keys: world metres, radians.

    A joint deviates as its head does, the tip also as the point that is brought to the target: a driver may
    change the tip's length with the bones that were baked.
    """
    shifts = played.heads[:, chain] - keyed.heads[:, chain]
    distances = _numbers(np.linalg.norm(np.einsum("fij,fkj->fki", bake_frames.worlds, shifts), axis=-1))
    if not constraint.kind.balances:
        ends = measuring.points(shown, constraint, *played)
        ends -= measuring.points(bake_frames, constraint, *keyed)
        off = np.linalg.norm(np.einsum("fij,fj->fi", bake_frames.worlds, ends), axis=-1)
        distances[:, -1] = np.maximum(distances[:, -1], _numbers(off))
    angles = angles_between(played.axes[:, chain], unit(keyed.axes[:, chain], axis=-1), axis=-1)
    return distances, _numbers(angles)


def _shifts_of_masses(
    bake_frames: BakeFrames, constraint: Constraint, shown: BakeFrames, played: Transforms, keyed: Transforms
) -> tuple[Array, Array]:
    """(F,) deviations of the centre of mass along the balanced axes, world metres, and the joints to blame.

    The joint to blame is the one whose mass adds most. It may be outside the chain, where another bone's
    inverse kinematics turns it.
    """
    shares, middles = measuring.mass_points(shown, *played)
    moved = middles - measuring.mass_points(bake_frames, *keyed)[1]
    axes = np.array(constraint.balance_axes)
    added = np.einsum("fij,fkj->fki", bake_frames.worlds, moved) * axes * shares[:, None]
    heaviest = np.argmax(_numbers(np.linalg.norm(added, axis=-1)), axis=1)
    return _numbers(np.linalg.norm(added.sum(axis=1), axis=-1)), heaviest


def _moved_themselves(
    bake_frames: BakeFrames,
    played: Transforms,
    keyed: Transforms,
    row: int,
    chain: Sequence[int],
    most: tuple[float, float],
) -> Iterator[int]:
    """Joints of a chain, root first, that deviate by more than their parents carry them.

    Args:
        most: tolerances of a bone, world metres and radians.
    """
    skeleton, world = bake_frames.skeleton, bake_frames.worlds[row]
    seen: list[tuple[Array, Array]] = []
    for each in (played, keyed):
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
    """The values, infinite in place of NaN."""
    return np.where(np.isfinite(values), values, np.inf)


def _causes(armature_object: bpy.types.Object, bones: Sequence[str]) -> Iterator[str]:
    """Causes that act on bones instead of their keys, or on top of them, in words."""
    channels = [
        (name, rotation_modes.rotation_channel(armature_object.pose.bones[name])[0]) for name in bones
    ]
    channels += [(name, "location") for name in bones]
    yield from obstacles(armature_object, channels, Destination.CURRENT_ACTION)
    yield from disturbances(armature_object, bones)


def _scaled(armature_object: bpy.types.Object, bones: Sequence[str]) -> Iterator[str]:
    """Drivers of the scale of bones or their parents, in words: it may change with the baked bones."""
    pose_bones = [armature_object.pose.bones[name] for name in bones]
    names = {each.name: None for bone in pose_bones for each in (bone, bone.parent) if each is not None}
    yield from driver_obstacles(armature_object, [(name, "scale") for name in names])


def disturbances(armature_object: bpy.types.Object, bones: Sequence[str]) -> Iterator[str]:
    """Yield Blender's constraints that act on bones of these names, in words."""
    for bone in armature_object.pose.bones:
        for constraint in clamps.acting_constraints(bone):
            turned = [bone.name]
            if constraint.type in ("IK", "SPLINE_IK"):
                turned = [
                    b.name for b in constraint_list.chain(armature_object, bone.name, constraint.chain_count)
                ]
            moved = next((name for name in turned if name in bones), None)
            if moved is not None:
                yield f"constraint '{constraint.name}' of bone '{bone.name}' acts on bone '{moved}': mute it"
