"""The picture of `walk.py`: figures on their ways, from the side and from above, with the ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bpy
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from _orders_plots import STYLE
from matplotlib.axes import Axes

from ccd_rig.blender.scene.isolation import isolated_scene, set_frame
from ccd_rig.blender.walk.walk import Walked
from ccd_rig.motion.walking.measures import joints_seen

COLOURS = ("#444444", "#1f77b4", "#d62728")  # middle, left, right
GROUND = "#6b5b45"
MOMENTS = 11  # of a walk, from the side
ABOVE = ("human, circle", "human, hills", "spider, circle")
SIDE = ("human, hills", "human, stairs", "cat, stairs", "cat, hills", "spider, stairs", "spider, hills")


@dataclass
class Drawn:
    """A walk: (F, J, 2, 3) ends of bones, their sides 0 to 2, its footfalls (N, 3) with sides, and the ground
    below the middle of the body as a line (P, 2) of ways ahead and heights."""

    title: str
    bones: np.ndarray
    sides: np.ndarray
    falls: np.ndarray
    fall_sides: np.ndarray
    ground: np.ndarray
    leg: float

    @classmethod
    def of(
        cls, title: str, rig: bpy.types.Object, done: Walked, ground: bpy.types.Object | None, leg: float
    ) -> Drawn:
        names = list(joints_seen(done.cycle.figure_map))
        ends = np.empty((len(done.frames), len(names), 2, 3))
        with isolated_scene(bpy.context.scene, rig, [(rig, name) for name in names], ()) as scene:
            for f, frame in enumerate(done.frames):
                evaluated = rig.evaluated_get(set_frame(scene, float(frame)))
                for j, name in enumerate(names):
                    bone = evaluated.pose.bones[name]
                    ends[f, j] = evaluated.matrix_world @ bone.head, evaluated.matrix_world @ bone.tail
        limbs = {
            name: 1 + limb.is_right
            for limb in done.cycle.figure_map.limbs
            for name in (*limb.joints, *limb.bends)
        }
        feet = [
            (leg.limb.is_right, fall.place)
            for leg in done.cycle.legs
            for fall in done.plan.feet[leg.limb.name].footfalls
        ]
        return cls(
            title,
            ends,
            np.array([limbs.get(name, 0) for name in names]),
            np.array([place for _, place in feet]),
            np.array([1 + side for side, _ in feet]),
            _line(ground, ends[:, 0, 0]),
            leg,
        )


def _line(ground: bpy.types.Object | None, hips: np.ndarray) -> np.ndarray:
    if ground is None:
        return np.array([(-hips[0, 1], 0.0), (-hips[-1, 1], 0.0)])
    ends = hips[0, 1] + 0.5, hips[-1, 1] - 0.5
    found = []
    for y in np.linspace(*ends, 800):
        x = np.interp(-y, -hips[:, 1], hips[:, 0])
        hit, place, _, _ = ground.ray_cast((x, y, 50.0), (0.0, 0.0, -1.0))
        if hit:
            found.append((-y, place[2]))
    return np.array(found)


def draw(walks: Sequence[Drawn], file: Path) -> None:
    """Write the picture: from the side those of `SIDE`, below them from above those of `ABOVE`."""
    named = {each.title: each for each in walks}
    side, above = ([named[name] for name in names if name in named] for names in (SIDE, ABOVE))
    rows = -(-len(side) // 2)
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(13, 3.1 * rows + 3.6), layout="constrained")
        grid = figure.add_gridspec(rows + 1, 6, height_ratios=(*([1.0] * rows), 1.25))
        for k, each in enumerate(side):
            _from_side(figure.add_subplot(grid[k // 2, 3 * (k % 2) : 3 * (k % 2) + 3]), each)
        for k, each in enumerate(above):
            _from_above(figure.add_subplot(grid[rows, 2 * k : 2 * k + 2]), each)
        figure.savefig(file, dpi=90)
        plt.close(figure)


def _from_side(axes: Axes, drawn: Drawn) -> None:
    shown = np.linspace(0.22 * len(drawn.bones), 0.8 * len(drawn.bones), MOMENTS).astype(int)
    for f in shown:
        for bone, side in zip(drawn.bones[f], drawn.sides, strict=True):
            axes.plot(-bone[:, 1], bone[:, 2], color=COLOURS[side], lw=1.1)
    axes.plot(*drawn.ground.T, color=GROUND, lw=1.6)
    axes.set(title=f"{drawn.title}, from the side", aspect="equal")
    ends = -drawn.bones[shown][..., 1]
    axes.set_xlim(ends.min() - 0.2 * drawn.leg, ends.max() + 0.2 * drawn.leg)
    heights = drawn.bones[shown][..., 2]
    axes.set_ylim(heights.min() - 0.15 * drawn.leg, heights.max() + 0.1 * drawn.leg)


def _from_above(axes: Axes, drawn: Drawn) -> None:
    for f in np.linspace(0, len(drawn.bones) - 1, 9).astype(int):
        for bone, side in zip(drawn.bones[f], drawn.sides, strict=True):
            axes.plot(bone[:, 0], bone[:, 1], color=COLOURS[side], lw=0.8)
    axes.plot(drawn.bones[:, 0, 0, 0], drawn.bones[:, 0, 0, 1], color=COLOURS[0], lw=0.6)
    for side in (1, 2):
        falls = drawn.falls[drawn.fall_sides == side]
        axes.scatter(falls[:, 0], falls[:, 1], s=7, color=COLOURS[side])
    axes.set(title=f"{drawn.title}, from above", aspect="equal")
