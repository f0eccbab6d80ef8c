# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion of the body, the bone that carries a figure, while bones are planted.

A body that keeps its animation is shifted by as little as lets legs reach planted bones: `leg_reaches` gives
the bounds of the shift, `least_shifts` the smallest smooth shift within them.

A body that walks on travels along the ground, pushed by planted bones. A planted bone must not move along the
ground from one frame to the next. The body therefore goes against the mean animated motion of these bones:

    travel[f] = travel[f - 1] - sum w[f] (animated[f] - animated[f - 1]) / sum w[f]

The weight w of a bone is the number of frames to the nearer end of its contact. The body thus passes smoothly
from one foot to the next. Where nothing is planted the speed is interpolated. The legs take up the rest.
Height and rotation stay animated, so errors of steps never add up to a climb. A walk that already moves
through the world travels only by the slide of its feet.

Where planted bones lie on the ground, such a body goes up and down with it. In the middle of a contact the
ground holds a bone by some distance above its animation, its lift; from one middle to the next that goes
straight. The body's lift is the mean over these bones, smoothed over half a stride. On a slope a bone comes
down about where the animation has it beside the body. Nothing is lifted where the animation follows the
ground itself.

Shapes: S solved frames, F keyed frames, P constraints that plant bones, J joints.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import bpy
import numpy as np
from mathutils import Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...goals import PositionGoal
from ...maths.batch import Array, arctan2, compose, conjugate, inverse, move, rotate, runs, unit
from ...motion.interpolation import second_differences, straight_on
from ...settings import SolverSettings
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import forward_kinematics
from ...skeleton.pose import Pose
from ...solvers.solve import solve
from ..keys.destination import Destination
from ..keys.writer import obstacles
from ..properties.body import FOLLOW_FEET, KEEP_ANIMATION, WALK_ON, Body
from ..rig.rotation_modes import rotation_channel
from ..solve.methods import FrameSolveSettings
from ..solve.planting import affine, seen
from .bake_frames import BakeFrames, Motion
from .planted_solver import PlantedSolver
from .report import BodyDrift, BodyReport, Peak, number

REACHES = 0.9998
"""Part of its largest extension to which a leg is stretched, as a straight knee could bend either way."""
BENT = 0.999
"""Part of its bones' length at which a leg counts as straight."""
FAR = 10.0
"""Distance of a target that is out of reach in any pose, in lengths of a leg."""


def leg_reaches(
    bake_frames: BakeFrames, shifts: Array, extensions: dict[tuple[object, ...], float]
) -> Reaches:
    """Bounds of the body's shift that let legs reach planted bones.

    Args:
        bake_frames: solved with the shifts.
        shifts: (S, 3) of the body, in the solved poses.
        extensions: cache of largest extensions, by constraint and shape of its leg.
    """
    tracks, rows = bake_frames.planted_tracks, bake_frames.solved_rows.tolist()
    # A target that goes along with the body is as near anywhere.
    planted = [c for c in tracks.support_chains.constraints if c not in tracks.riders.targets]
    shape = (len(rows), len(planted))
    centres, radii, origins = np.zeros((*shape, 3)), np.full(shape, np.inf), np.full(shape, -1, np.intp)
    follows = np.array([_follows(bake_frames, c) for c in planted])
    # In armature space where legs take their whole place from the body, which is the same along any axes.
    axes = np.eye(3)
    if not follows.all():  # the world's, in the first frame
        left, _, right = np.linalg.svd(bake_frames.worlds[0])
        axes = left @ right
    contacts = tracks.contacts
    held, _ = seen(contacts.anchors, tracks.worlds[rows][:, None])
    for s, at in enumerate(rows):
        skeleton = bake_frames.bones.skeleton(at)
        pose = Pose.of_arrays(contacts.rotations[s], contacts.translations[s])
        heads = forward_kinematics(skeleton, pose) if contacts.planted[s].any() else ()
        for k, c in enumerate(planted):
            if not contacts.planted[s, c]:
                continue
            row = bake_frames.constraints[c]
            # From the first joint that turns to the planted one, without locked joints between.
            *between, tip = skeleton.chain(row.tip, row.chain_length)[1:]
            leg = [*(j for j in between if not skeleton.joints[j].locked), tip]
            known = (c, *(tuple(skeleton.joints[j].offset) for j in leg[1:]))
            if known not in extensions:
                extensions[known] = _largest_extension(skeleton, pose, leg)
            head = axes @ (np.array(heads[leg[0]].translation[:]) - shifts[s])
            if s > 0:
                origins[s, k] = _origin(bake_frames, skeleton, s, c, int(origins[s - 1, k]))
            origin = int(origins[s, k])
            carried = follows[k] * (axes @ shifts[origin]) if origin >= 0 else 0.0
            centres[s, k] = axes @ held[s, c] - carried - head
            radii[s, k] = extensions[known]
    return Reaches(centres, radii, origins, follows, axes)


def _follows(bake_frames: BakeFrames, c: int) -> tuple[bool, bool, bool]:
    """Along which axes of the world a planted bone is held where the body had it as it came down.

    Components that are not held follow the animation, and the height of a bone on the ground is the ground's.
    """
    row = bake_frames.constraints[c]
    lies = row.on_ground and bake_frames.planted_tracks.ground is not None
    return (row.holds.ground, row.holds.ground, row.holds.height and not lies)


def _origin(bake_frames: BakeFrames, skeleton: Skeleton, s: int, c: int, before: int) -> int:
    """`Reaches.origins` of constraint `c` after the first solved frame; `before`: of the frame before."""
    row, contacts = bake_frames.constraints[c], bake_frames.planted_tracks.contacts
    if row.target:
        return -1
    if contacts.planted[s - 1, c]:
        return before
    leg = skeleton.chain(row.tip, row.chain_length)[1:]
    return s - 1 if contacts.moved[s - 1].isdisjoint(leg) else -1


def _largest_extension(skeleton: Skeleton, pose: Pose, leg: Sequence[int]) -> float:
    """Largest distance between the heads of the first and the last joint of a leg, short of straight."""
    heads = [joint.translation for joint in (forward_kinematics(skeleton, pose)[j] for j in leg)]
    length = math.fsum((after - before).length for before, after in pairwise(heads))
    if all(skeleton.joints[j].limit is None for j in leg[1:-1]):
        return REACHES * length
    free = skeleton.replace({skeleton.joints[leg[0]].name: {"limit": None, "comfort": None}})
    count = len(skeleton.chain(leg[-1])) - len(skeleton.chain(leg[0])) + 1
    way = heads[-1] - heads[0]
    way = way.normalized() if way.length > 0.0 else Vector((0.0, 0.0, -1.0))
    far = heads[0] + FAR * length * way
    goal = PositionGoal(skeleton.joints[leg[-1]].name, far, Vector((0.0, 0.0, 0.0)), chain_length=count)
    settings = SolverSettings(position_tolerance=1e-6 * length, comfort=False)
    stretched = forward_kinematics(free, solve(free, pose, [goal], settings).pose)
    most = (stretched[leg[-1]].translation - stretched[leg[0]].translation).length
    return REACHES * (length if most > BENT * length else most)


SMOOTH = 3000.0
"""Weight of squared second differences: a shift of a twentieth of a leg sets in within 8 frames."""
COUPLING = 200.0
"""Penalty of the method of multipliers (ADMM); any value leads to the same shift."""
STEPS = 600
"""Most iterations of ADMM."""
CLOSE = 1e-7
"""Largest difference of ADMM's copies at the end, as a part of a leg's length."""
MARGIN = 60
"""Frames before and after a short leg in which the body may be moved."""
BLOCK, OVERLAP = 400, 100
"""Frames of a block that is optimised at once, and of the blend between two blocks."""


@dataclass(frozen=True)
class Reaches:
    """Balls of the body's shifts that let K legs reach planted bones."""

    centres: Array  # (S, K, 3) of the balls, along `axes`
    radii: Array  # (S, K); infinite where a bone is not planted
    # (S, K) the frame whose shift moves the ball too, as the leg hung on the body alone when it came down; -1
    # without such a frame.
    origins: NDArray[np.intp]
    follows: NDArray[np.bool_]  # (K, 3) along which axes that shift moves the ball
    axes: Array  # (3, 3) orthogonal, from armature space

    def needs(self) -> NDArray[np.intp]:
        """(N,) frames at which the body must be shifted."""
        return np.flatnonzero((np.linalg.norm(self.centres, axis=2) > self.radii).any(axis=1))

    def between(self, first: int, last: int, shifts: Array) -> Reaches:
        """The balls of frames `first` to `last`, given the shifts (S, 3) along `axes` of those before."""
        origins = self.origins[first:last]
        before = ((origins >= 0) & (origins < first))[..., None]
        centres = self.centres[first:last] + np.where(before & self.follows, shifts[origins], 0.0)
        return replace(
            self,
            centres=centres,
            radii=self.radii[first:last],
            origins=np.maximum(origins - first, -1),
        )


def least_shifts(frames: Array, reaches: Reaches, length: float) -> Array:
    """(S, 3) the smallest smooth shifts of the body, armature space, that let all legs reach.

    They are 0 wherever possible.

    Args:
        frames: (S,) increasing.
        reaches: of these frames.
        length: of a leg.
    """
    shifts, needs = np.zeros((len(frames), 3)), reaches.needs()
    if not len(needs):
        return shifts
    scaled = replace(reaches, centres=reaches.centres / length, radii=reaches.radii / length)
    for group in np.split(needs, np.flatnonzero(np.diff(needs) > 2 * MARGIN) + 1):
        first, last = max(0, int(group[0]) - MARGIN), min(len(frames), int(group[-1]) + MARGIN + 1)
        for start in range(first, max(first + 1, last - OVERLAP), BLOCK - OVERLAP):
            end = min(start + BLOCK, last)
            block = _smooth_shifts(frames[start:end], scaled.between(start, end, shifts))
            # Balls are convex: a blend of two allowed shifts is allowed.
            ramp = np.clip((np.arange(end - start) + 0.5) / OVERLAP, 0.0, 1.0)[:, None]
            weight = ramp if start > first else np.ones_like(ramp)
            shifts[start:end] = (1.0 - weight) * shifts[start:end] + weight * block
    return length * shifts @ reaches.axes


def _smooth_shifts(frames: Array, reaches: Reaches) -> Array:
    """Shifts of one block in lengths of a leg, by the alternating direction method of multipliers (ADMM)."""
    count, legs = reaches.radii.shape
    bends = second_differences(frames)
    held = [np.flatnonzero(reaches.origins[:, k] >= 0) for k in range(legs)]
    origins = [reaches.origins[held[k], k] for k in range(legs)]
    patterns, pattern_of = np.unique(reaches.follows.T, axis=0, return_inverse=True)
    solve_smooth = []
    for follows in patterns:
        system = SMOOTH * bends.T @ bends + COUPLING * np.eye(count)
        for k in range(legs):  # a leg constrains the shift relative to that of its origin
            view = np.eye(count)
            view[held[k], origins[k]] -= float(follows[k])
            system += COUPLING * view.T @ view
        solve_smooth.append(np.linalg.inv(system))
    axes_of = [np.flatnonzero(pattern_of.ravel() == p) for p in range(len(patterns))]
    # Copy 0 is as short as possible, copy 1 + k is inside the balls of leg k.
    copies = np.zeros((1 + legs, count, 3))
    prices = np.zeros_like(copies)
    for _ in range(STEPS):
        pull = copies - prices
        right = pull.sum(axis=0)
        for k in range(legs):
            np.subtract.at(right, origins[k], reaches.follows[k] * pull[1 + k, held[k]])
        smooth = np.empty_like(right)
        for solver, axes in zip(solve_smooth, axes_of, strict=True):
            smooth[:, axes] = COUPLING * (solver @ right[:, axes])
        seen = np.repeat(smooth[None], 1 + legs, axis=0)
        for k in range(legs):
            seen[1 + k, held[k]] -= reaches.follows[k] * smooth[origins[k]]
        priced = seen + prices
        size = np.linalg.norm(priced[0], axis=1, keepdims=True)
        copies[0] = priced[0] * np.maximum(0.0, 1.0 - 1.0 / (COUPLING * np.maximum(size, 1e-30)))
        for k in range(legs):
            offsets, radii = priced[1 + k] - reaches.centres[:, k], reaches.radii[:, k]
            distances = np.linalg.norm(offsets, axis=1)
            outside = distances > radii
            scale = np.where(outside, radii / np.where(outside, distances, 1.0), 1.0)[:, None]
            inside = reaches.centres[:, k] + offsets * scale
            copies[1 + k] = np.where(outside[:, None], inside, priced[1 + k])
        prices += seen - copies
        if np.abs(seen - copies).max() < CLOSE:
            break
    return np.where(np.any(copies[0] != 0.0, axis=1)[:, None], smooth, 0.0)


PASSES = 3
"""Most solves of a shot, as a shift of the body moves feet that come down later."""
SAME = 1e-4
"""Change of shifts, as a part of a leg's length, that needs no further pass."""
SHOWN = 1e-6
"""Least shift of the body that is reported, world metres."""


def move_body(bake_frames: BakeFrames, settings: FrameSolveSettings) -> Generator[float, None, None]:
    """Solve the frames again with the body shifted, where a leg is too short; yields counts of frames.

    Args:
        bake_frames: solved; the body keeps its animation.
    """
    tracks, rows = bake_frames.planted_tracks, bake_frames.solved_rows
    shifts: Array = np.zeros((len(rows), 3))
    frames, unshifted = bake_frames.frames[rows], bake_frames.targets
    extensions: dict[tuple[object, ...], float] = {}
    for _ in range(PASSES):
        reaches = leg_reaches(bake_frames, shifts, extensions)
        length = max((leg for leg in extensions.values()), default=0.0) or 1.0
        planned = least_shifts(frames, reaches, length)
        if np.abs(planned - shifts).max(initial=0.0) <= SAME * length:
            break
        shifts = planned
        if any(tracks.riders):
            by_row = np.zeros((len(bake_frames.frames), 3))
            by_row[rows] = shifts
            bake_frames.targets = tracks.riders.carried(unshifted, by_row)
        yield from PlantedSolver(settings).solve(bake_frames, shifts)
        key_root_bone(bake_frames)


def key_root_bone(bake_frames: BakeFrames) -> None:
    """Mark the root bone as moved in all frames, so that it gets keys."""
    tracks = bake_frames.planted_tracks
    tracks.contacts.moved = [each | {tracks.support_chains.root_bone} for each in tracks.contacts.moved]


def note_short_legs(bake_frames: BakeFrames, preroll: int) -> None:
    """Note the frames after the preroll at which a leg is too short and the body cannot be moved."""
    rows = bake_frames.solved_rows
    short = rows[leg_reaches(bake_frames, np.zeros((len(rows), 3)), {}).needs()]
    bake_frames.planted_tracks.short_rows += (short[short >= preroll] - preroll).tolist()


# Report ----------------------------------------------------------------------------------------------------


def shift_lengths(bake_frames: BakeFrames) -> Array:
    """(S,) distance of the body from its animation at each solved frame, world metres.

    Where it helps, it is the distance before that.
    """
    tracks = bake_frames.planted_tracks
    root_bone = tracks.support_chains.root_bone
    rows, places = bake_frames.solved_rows, tracks.contacts.translations[:, root_bone]
    places = places if tracks.unhelped is None else tracks.unhelped
    shifts = places - bake_frames.translations[rows, root_bone]
    shifts = rotate(unit(bake_frames.rests[rows, root_bone], axis=-1), shifts, axis=-1)
    lengths: Array = np.linalg.norm(np.einsum("sij,sj->si", bake_frames.worlds[rows], shifts), axis=1)
    return lengths


def body_obstacle(armature_object: bpy.types.Object, body: Body, destination: Destination) -> str:
    """Reason why keys of its location cannot move the root bone, in words; empty if they can."""
    bone = armature_object.pose.bones[body.bone]
    if bone.parent is not None and bone.bone.use_connect:
        return "it is connected to its parent"
    if any(bone.lock_location):
        return "its location is locked"
    problems = obstacles(armature_object, [(body.bone, "location")], destination)
    return problems[0].partition(": ")[2] if problems else ""


def is_free(armature_object: bpy.types.Object, body: Body, destination: Destination) -> bool:
    """Whether keys can turn and move the root bone where the body helps."""
    if not body.keeps:
        return True
    bone = armature_object.pose.bones[body.bone]
    if any(bone.lock_rotation) or body_obstacle(armature_object, body, destination):
        return False
    return not obstacles(armature_object, [(body.bone, rotation_channel(bone)[0])], destination)


def report_of(bake_frames: BakeFrames, body: Body, held_by: str, drift: BodyDrift) -> BodyReport:
    """The report on the body."""
    if not body.keeps:
        return BodyReport(body.bone, FOLLOW_FEET, keys_replaced=body.is_keyed, drift=drift)
    lengths = shift_lengths(bake_frames)
    largest = int(np.argmax(lengths))
    frames = int((lengths > SHOWN).sum())
    tracks = bake_frames.planted_tracks
    return BodyReport(
        body.bone,
        WALK_ON if body.walks_on else KEEP_ANIMATION,
        moved_frames=frames,
        distance=float(lengths[largest]) if frames else 0.0,
        frame=number(bake_frames.solved_frames[largest]) if frames else None,
        short_frames=len(tracks.short_rows),
        obstacle=held_by if tracks.short_rows else "",
        travel=tracks.travel,
        drift=drift,
    )


# Travel along the ground ------------------------------------------------------------------------------------


SAMPLES = 15
"""Places of a window over which the body's lift is smoothed."""


def walk_on(bake_frames: BakeFrames) -> None:
    """Move the body of frames by its travel, before anything is solved.

    Raises:
        RigError: no constraint plants a bone along the ground at any of the frames.
    """
    tracks = bake_frames.planted_tracks
    pushing = [
        c
        for c, constraint in enumerate(bake_frames.constraints)
        if constraint.kind.plants and constraint.holds.ground and not constraint.target
    ]
    planted = bake_frames.influences[:, pushing] > 0.0
    if not planted.any():
        raise RigError(
            "Body is Walk On, but no bone is planted along the ground in these frames: press Find Contacts, "
            "or set Body to Keep Animation"
        )
    places = _animated(bake_frames, pushing)
    ways = travel(bake_frames.frames, places[..., :3, 3], planted)
    tracks.travel = float(np.linalg.norm(ways[-1]))
    _move(bake_frames, ways)


def climb(bake_frames: BakeFrames) -> None:
    """Lift the body of frames with the ground below planted bones, before anything is solved.

    `bake_frames`: the body walks on, and has travelled.
    """
    tracks, constraints = bake_frames.planted_tracks, bake_frames.constraints
    planting = tracks.support_chains.constraints
    lying = [c for c in planting if constraints[c].on_ground and not constraints[c].target]
    if tracks.ground is None or not lying:
        return
    frames, planted = bake_frames.frames, bake_frames.influences[:, lying] > 0.0
    places = _animated(bake_frames, lying)
    contacts = [(span.start, span.stop - 1, p) for p in range(len(lying)) for span in runs(planted[:, p])]
    lifts: list[list[tuple[float, float]]] = [[] for _ in lying]
    lifted = 0.0
    for first, last, p in sorted(contacts):
        whole = [b - a for a, b, other in contacts if other == p and a > 0 and b < len(frames) - 1]
        middle = _middle(frames, first, last, 0.5 * float(np.median(whole)) if whole else None)
        row = int(np.abs(frames[first : last + 1] - middle).argmin()) + first
        held, from_row = constraints[lying[p]].holds, max(first - 1, 0)
        anchor = places[row, p]
        if held.ground:
            anchor = places[from_row, p]
            anchor = tracks.ground.carried(anchor, from_row, np.array([row]))[0]
        raised = replace(tracks.ground, tops=tracks.ground.tops + lifted)
        surface = raised.lying(anchor, row, lying[p], held.rotation)
        if surface is not anchor:  # not over a hole
            lifted = float(surface[2, 3] - places[row, p, 2, 3])
            lifts[p].append((middle, lifted))
    ways = np.zeros((len(frames), 3))
    ways[:, 2] = lift(frames, [np.array(each) for each in lifts if each])
    tracks.ground = replace(tracks.ground, tops=tracks.ground.tops + ways[:, 2])
    _move(bake_frames, ways)


def _middle(frames: Array, first: int, last: int, half: float | None) -> float:
    """Frame in the middle of a contact.

    `half`: half of the length of whole contacts, for one that the range cuts off; None without a whole one.
    """
    if half is not None and (first == 0) != (last == len(frames) - 1):
        return float(frames[last] - half if first == 0 else frames[first] + half)
    return float(0.5 * (frames[first] + frames[last]))


def lift(frames: Array, lifts: Sequence[Array]) -> Array:
    """(F,) how far the body is lifted, world metres.

    Args:
        frames: (F,) increasing.
        lifts: by planted bone, (K, 2) of frames, increasing, and lifts then; any count of bones.
    """
    if not lifts:
        return np.zeros(len(frames))
    strides = [float(step) for each in lifts for step in np.diff(each[:, 0])]
    half = 0.25 * float(np.median(strides)) if strides else 0.0
    places = np.linspace(-half, half, SAMPLES + 2)[1:-1]
    weights = np.hanning(SAMPLES + 2)[1:-1]
    wanted = frames[:, None] + places
    means = np.mean([straight_on(wanted, *each.T) for each in lifts], axis=0)
    return np.asarray(means @ (weights / weights.sum()))


def _animated(bake_frames: BakeFrames, constraints: Sequence[int]) -> Array:
    """(F, P, 4, 4) places of constraints' bones in the base poses, in the world."""
    heads, rotations = bake_frames.transforms(bake_frames.base, bake_frames.translations)
    tips = [bake_frames.skeleton.index(bake_frames.constraints[c].tip) for c in constraints]
    frames = affine(heads[:, tips], unit(rotations[:, tips], axis=-1))
    return compose(bake_frames.planted_tracks.worlds[:, None], frames)


def _move(bake_frames: BakeFrames, ways: Array) -> None:
    """Move the body of frames by (F, 3) world metres."""
    tracks = bake_frames.planted_tracks
    root_bone, rests = tracks.support_chains.root_bone, unit(bake_frames.rests, axis=-1)
    shifts = np.einsum("fij,fj->fi", inverse(tracks.worlds)[:, :3, :3], ways)
    bake_frames.targets = tracks.riders.carried(bake_frames.targets, shifts)
    shifts = rotate(conjugate(rests[:, root_bone].T), shifts.T).T
    # Rounded as poses hold it, so that rounding is no shift of the body.
    bake_frames.translations = bake_frames.translations.copy()
    bake_frames.translations[:, root_bone] = np.float32(bake_frames.translations[:, root_bone] + shifts)


def travel(frames: Array, places: Array, planted: NDArray[np.bool_]) -> Array:
    """(F, 3) travel of the body along the ground, world metres; 0 at the first frame.

    Args:
        frames: (F,) increasing.
        places: (F, P, 3) of the animated bones, world metres.
        planted: (F, P) mask.
    """
    steps = np.diff(frames)[:, None]
    speeds = np.diff(places, axis=0) / steps[..., None]
    weights = _weights(planted)[1:]
    sums = weights.sum(axis=1)
    known = np.flatnonzero(sums)
    ways = np.zeros((len(frames), 3))
    if len(known):
        mean = (speeds[known] * weights[known, :, None]).sum(axis=1) / sums[known, None]
        times = (frames[1:] + frames[:-1]) / 2.0
        for axis in range(2):
            along = np.interp(times, times[known], mean[:, axis])
            ways[1:, axis] = -np.cumsum(along * steps[:, 0])
    return ways


def _weights(planted: NDArray[np.bool_]) -> Array:
    """(F, P) frames to the nearer end of a bone's contact; the range cuts off an end."""
    count = len(planted)
    since, until = (np.zeros(planted.shape) for _ in range(2))
    for f in range(count):
        since[f] = np.where(planted[f], since[f - 1] + 1.0 if f else count, 0.0)
        g = count - 1 - f
        until[g] = np.where(planted[g], until[g + 1] + 1.0 if f else count, 0.0)
    return np.minimum(since, until)


# Drift from the animation -----------------------------------------------------------------------------------


def body_drift(bake_frames: BakeFrames, keyed: Motion) -> BodyDrift:
    """Drift of a figure with planted bones from its animation, at frames at which the body does not help.

    Args:
        bake_frames: the base poses of a body that walks on include its travel.
    """
    tracks, skeleton = bake_frames.planted_tracks, bake_frames.skeleton
    worlds = tracks.worlds
    poses = (bake_frames.base, bake_frames.translations), (keyed.rotations, keyed.translations)
    (heads, axes), (keyed_heads, keyed_axes) = (
        bake_frames.transforms(unit(rotations, axis=-1), translations) for rotations, translations in poses
    )
    root_bone, frames = tracks.support_chains.root_bone, [number(each) for each in bake_frames.frames]
    name = skeleton.joints[root_bone].name
    rise = lean = None
    if not tracks.keeps_body and not any(constraint.tip == name for constraint in bake_frames.constraints):
        rises = np.einsum("fj,fj->f", worlds[:, 2, :3], (keyed_heads - heads)[:, root_bone])
        rises -= rises[0]
        helped = sorted(bake_frames.helped)
        rises[helped] = 0.0
        highest = int(np.argmax(np.abs(rises)))
        rise = Peak(name, frames[highest], float(rises[highest]))
        up = inverse(worlds)[:, :3, 2]
        ways = [rotate(conjugate(each[:, root_bone].T), up.T) for each in (axes, keyed_axes)]
        leans = np.linalg.norm(np.cross(*ways, axis=0), axis=0), (ways[0] * ways[1]).sum(axis=0)
        angles = arctan2(*leans)
        angles[helped] = 0.0
        most = int(np.argmax(angles))
        lean = Peak(name, frames[most], float(angles[most]))
    size = float(np.cbrt(abs(np.linalg.det(worlds[0, :3, :3]))))
    lengths = np.linalg.norm(bake_frames.offsets[0], axis=-1)
    planted = [bake_frames.constraints[c] for c in tracks.support_chains.constraints]
    legs = [lengths[list(skeleton.chain(row.tip, row.chain_length)[2:])].sum() for row in planted]
    return BodyDrift(size * float(min(legs)), rise, lean, _hover(bake_frames, worlds, heads))


def _hover(bake_frames: BakeFrames, worlds: Array, heads: Array) -> Peak | None:
    """The planted bone held highest above its animation; `heads`: (F, J, 3) of the base poses."""
    contacts, rows, peaks = bake_frames.planted_tracks.contacts, bake_frames.solved_rows, []
    for c, constraint in enumerate(bake_frames.constraints):
        planted = np.flatnonzero(contacts.planted[:, c])
        if not len(planted) or constraint.target or not constraint.holds.height:
            continue
        at = rows[planted]
        animated = move(worlds[at], heads[at, bake_frames.skeleton.index(constraint.tip)])
        above = contacts.anchors[planted, c, 2, 3] - animated[:, 2]
        highest = int(np.argmax(above))
        frame = number(bake_frames.frames[at[highest]])
        peaks.append(Peak(constraint.tip, frame, float(above[highest])))
    return max(peaks, key=lambda each: each.amount, default=None)
