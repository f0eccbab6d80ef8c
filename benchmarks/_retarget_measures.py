"""How feet slide, what limbs miss and how smooth a motion is, measured on what Blender plays.

`retarget.py` says what the words mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import bpy
import numpy as np
from _bake_pairs import count_pops
from mathutils import Vector

from ccd_rig.blender.scene.isolation import isolated_scene, set_frame
from ccd_rig.motion.contacts import ground_velocity

FPS = 30
SLOW, SHORTEST, LOW = 0.3, 0.1, 0.1  # m/s, s, legs
HEEL, TOES = 0.3, 0.5  # of the foot from ankle to ball, along the ground


@dataclass
class Played:
    """Heads (F, 3) and rotations (F, 3, 3) in the world, by bone."""

    heads: dict[str, np.ndarray]
    turns: dict[str, np.ndarray]

    @classmethod
    def of(cls, rig: bpy.types.Object, names: list[str], frames: list[float]) -> Played:
        with isolated_scene(bpy.context.scene, rig, [(rig, name) for name in names], ()) as scene:
            matrices = np.empty((len(frames), len(names), 4, 4))
            for f, frame in enumerate(frames):
                evaluated = rig.evaluated_get(set_frame(scene, frame))
                for j, name in enumerate(names):
                    matrices[f, j] = evaluated.matrix_world @ evaluated.pose.bones[name].matrix
        axes = matrices[..., :3, :3] / np.linalg.norm(matrices[..., :3, :3], axis=-2, keepdims=True)
        return cls(
            {name: matrices[:, j, :3, 3] for j, name in enumerate(names)},
            {name: axes[:, j] for j, name in enumerate(names)},
        )

    def upright(self, hips: np.ndarray) -> Played:
        """Turned so that the axis of the world nearest to `hips` points up."""
        k = int(np.argmax(np.abs(hips) + np.array((0.0, 0.0, 0.3)) * np.linalg.norm(hips)))
        up = Vector(np.eye(3)[k] * np.sign(hips[k]))
        turn = np.array(up.rotation_difference(Vector((0.0, 0.0, 1.0))).to_matrix())
        return Played(
            {name: heads @ turn.T for name, heads in self.heads.items()},
            {name: turn @ turns for name, turns in self.turns.items()},
        )


def length(played: Played, names: list[str]) -> float:
    """Of a limb, from its first to its third joint."""
    heads = [played.heads[name] for name in names[:3]]
    return float(sum(np.linalg.norm(b - a, axis=1).mean() for a, b in pairwise(heads)))


def stances(ball: np.ndarray, leg: float, velocity: np.ndarray, metre: float) -> list[tuple[int, int]]:
    """First and last row of each."""
    speed = np.linalg.norm(np.gradient(ball, 1.0 / FPS, axis=0) - velocity, axis=1)
    slow = np.concatenate(([False], speed < SLOW * metre, [False])).astype(int)
    edges = np.flatnonzero(np.diff(slow))
    found = []
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        around = ball[max(0, first - FPS // 2) : end + FPS // 2, 2]
        low = ball[first:end, 2].mean() - around.min() < LOW * leg
        if low and (end - first) / FPS >= SHORTEST:
            found.append((int(first), int(end) - 1))
    return found


def sole_point(
    played: Played, names: list[str], stance: tuple[int, int], step: int, height: float
) -> np.ndarray:
    """(F, 3) the heel for -1, the end of the toes for 1, `height` below the ball.

    It is fixed to its bone as the foot lies where its ankle is lowest in a stance, as far behind the ankle,
    or before the ball, as parts of the foot's length.
    """
    ankle, ball = played.heads[names[2]], played.heads[names[3]]
    flat = stance[0] + int(np.argmin(ankle[stance[0] : stance[1] + 1, 2]))
    foot = (ball[flat] - ankle[flat]) * (1.0, 1.0, 0.0)
    start, bone, way = (ankle, names[2], -HEEL * foot) if step < 0 else (ball, names[3], TOES * foot)
    point = start[flat] + way
    point[2] = ball[flat, 2] - height
    local = played.turns[bone][flat].T @ (point - start[flat])
    return start + played.turns[bone] @ local


def rolls(
    point: np.ndarray, ball: np.ndarray, edge: tuple[int, int], velocity: np.ndarray, metre: float
) -> list[int]:
    """Rows beyond a stance in which the heel or the toes are slow and lower than the ball."""
    speed = np.linalg.norm(np.gradient(point, 1.0 / FPS, axis=0) - velocity, axis=1)
    row, found = edge[0] + edge[1], []
    while 0 <= row < len(ball) and speed[row] < SLOW * metre and point[row, 2] < ball[row, 2]:
        found.append(row)
        row += edge[1]
    return found


def measured(own: Played, ours: Played, limbs: dict[str, tuple[list[str], list[str]]], rest: dict) -> dict:
    """Numbers of one way; `limbs` has the names of joints of the source and the target, `rest` heights."""
    legs = {name: pair for name, pair in limbs.items() if "leg" in name}
    leg = np.mean([length(own, pair[0]) for pair in legs.values()])
    scale = np.mean([length(ours, pair[1]) / length(own, pair[0]) for pair in legs.values()])
    count = len(next(iter(own.heads.values())))
    times = np.arange(count) / FPS
    feet = [own.heads[pair[0][-1]] for pair in legs.values()]
    velocity = ground_velocity(feet, times, float(leg), moves=True)
    if np.linalg.norm(velocity) < SLOW * leg:
        velocity = np.zeros(3)
    drifts, slides, ends, misses, depths, sides, jerks, own_jerks = [], [], [], [], [], 0, [], []
    for name, (theirs, names) in limbs.items():
        sizes = length(own, theirs), length(ours, names)
        free = np.ones(count, bool)
        starts = ([own.heads[theirs[0]]], [ours.heads[names[0]]])
        if name in legs:
            starts = tuple([p.heads[pair[k][0]] for pair in legs.values()] for k, p in enumerate((own, ours)))
            ball = ours.heads[names[-1]]
            for first, last in stances(own.heads[theirs[-1]], leg, velocity, leg / 0.9):
                rows = slice(first, last + 1)
                for edge, step in ((first, -1), (last, 1)) if len(names) > 3 else ():
                    points = [
                        sole_point(p, n, (first, last), step, height)
                        for p, n, height in ((own, theirs, 0.0), (ours, names, rest[names[-1]]))
                    ]
                    rolled = rolls(points[0], own.heads[theirs[-1]], (edge, step), velocity, leg / 0.9)
                    free[rolled] = False
                    along = (points[1] - scale * velocity * times[:, None])[sorted((edge, *rolled)), :2]
                    ends += (np.linalg.norm(np.diff(along, axis=0), axis=1) * FPS).tolist()
                free[rows] = False
                along = (ball[rows] - scale * velocity * times[rows, None])[:, :2]
                drifts.append(np.linalg.norm(along - along.mean(0), axis=1).max())
                slides.append(np.linalg.norm(np.diff(along, axis=0), axis=1).mean() * FPS)
                depths.append(rest[names[-1]] - ball[rows, 2].min())
        start, own_start = np.mean(starts[1], axis=0), np.mean(starts[0], axis=0)
        off = (ours.heads[names[2]] - start) / sizes[1] - (own.heads[theirs[2]] - own_start) / sizes[0]
        misses.append(np.linalg.norm(off, axis=1)[free].mean() if free.any() else 0.0)
        bends = [
            np.cross(p.heads[n[1]] - p.heads[n[0]], p.heads[n[2]] - p.heads[n[1]]) / size**2
            for p, n, size in ((own, theirs, sizes[0]), (ours, names, sizes[1]))
        ]
        clear = np.minimum(*[np.linalg.norm(bend, axis=1) for bend in bends]) > 0.0125
        sides += int((clear & ((bends[0] * bends[1]).sum(1) < 0.0)).sum())
        own_jerks.append(np.linalg.norm(np.diff(own.heads[theirs[2]], 3, axis=0), axis=1) / sizes[0])
        jerks.append(np.linalg.norm(np.diff(ours.heads[names[2]], 3, axis=0), axis=1) / sizes[1])
    return {
        "stances": len(drifts),
        "drift": 1000 * np.mean(drifts) if drifts else 0.0,
        "worst": 1000 * max(drifts, default=0.0),
        "slide": 1000 * np.mean(slides) if slides else 0.0,
        "ends": 1000 * np.mean(ends) if ends else 0.0,
        "miss": 100 * np.mean(misses),
        "depth": max(0.0, 1000 * max(depths, default=0.0)),
        "turn": turns(ours).max() / turns(own).max(),
        "pops": count_pops(turns(ours), turns(own)),
        "jerk": np.percentile(np.concatenate(jerks), 99) / np.percentile(np.concatenate(own_jerks), 99),
        "sides": sides,
    }


def turns(played: Played) -> np.ndarray:
    """(B, F - 1) degrees from frame to frame."""
    axes = np.stack(list(played.turns.values()))
    traces = np.einsum("bfij,bfij->bf", axes[:, 1:], axes[:, :-1])
    return np.degrees(np.arccos(np.clip((traces - 1.0) / 2.0, -1.0, 1.0)))
