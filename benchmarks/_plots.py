"""Plots of the manual, from the numbers of `retarget.py` and `walk.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bpy
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from ccd_rig.blender.scene.isolation import isolated_scene, set_frame
from ccd_rig.blender.walk import Walked
from ccd_rig.motion.walking.measures import joints_seen

INK = "#22303c"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": "#8a949c",
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6eaed",
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
}


# Retarget: a clip and the figure that got it, and one foot through its stances ------------------------------

MOMENTS = 8  # moments of the motion
APART = 1.1  # [m] between figures
SIDE_COLOURS = {"L": "#1f77b4", "R": "#d62728", "": "#444444"}


@dataclass
class RetargetLines:
    """Lines of a figure: (F, 2, 3) ends of bones, by side and name, and its balls (F, 3)."""

    bones: dict[str, tuple[str, np.ndarray]]
    foot: list[np.ndarray]  # (F, 3) each: ankle, ball, end of the toes


def draw_retarget(
    source: RetargetLines,
    copied: RetargetLines,
    ours: RetargetLines,
    stances: list[tuple[int, int]],
    file: Path,
) -> None:
    """Write the picture."""
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(12, 7))
        grid = figure.add_gridspec(3, 2, height_ratios=(1.0, 1.0, 0.8))
        for row, (title, drawn) in enumerate((("motion capture", source), ("Rigify's human", ours))):
            _figure_row(figure.add_subplot(grid[row, :]), title, drawn)
        axes = [figure.add_subplot(grid[2, 0])]
        axes.append(figure.add_subplot(grid[2, 1], sharex=axes[0], sharey=axes[0]))
        for ax, (title, drawn) in zip(axes, (("copied", copied), ("retargeted", ours)), strict=True):
            _foot(ax, title, drawn, stances)
        figure.tight_layout()
        figure.savefig(file, dpi=110)
        plt.close(figure)


def _figure_row(ax: Axes, title: str, drawn: RetargetLines) -> None:
    """From the side, one beside the other."""
    frames = len(next(iter(drawn.bones.values()))[1])
    for k, frame in enumerate(np.linspace(0, frames - 1, MOMENTS).astype(int)):
        middle = np.mean([lines[frame].mean(0) for _, lines in drawn.bones.values()], axis=0)
        for side, lines in drawn.bones.values():
            across = middle[1] - lines[frame][:, 1] + APART * k
            ax.plot(across, lines[frame][:, 2], color=SIDE_COLOURS[side], lw=2.0, solid_capstyle="round")
    ax.axhline(0.0, color="black", lw=0.8)
    ax.set_aspect("equal")
    ax.set_title(title, loc="left")
    ax.axis("off")


def _foot(ax: Axes, title: str, drawn: RetargetLines, stances: list[tuple[int, int]]) -> None:
    """Draw a foot from the side in all frames of stances, beside each other."""
    for k, (first, last) in enumerate(stances):
        shades = np.linspace(0.15, 0.9, last - first + 1)
        start = drawn.foot[1][first : last + 1, 1].mean()
        for frame, shade in zip(range(first, last + 1), shades, strict=True):
            points = np.array([point[frame] for point in drawn.foot])
            ax.plot(start - points[:, 1] + 0.35 * k, points[:, 2], color=plt.cm.viridis(shade), lw=1.4)
        balls = drawn.foot[1][first : last + 1]
        ax.plot(start - balls[:, 1] + 0.35 * k, balls[:, 2], "o", color="#d62728", ms=3.0)
    ax.axhline(0.0, color="black", lw=0.8)
    ax.set_aspect("equal")
    ax.set_title(f"{title}: left foot in its stances, ball in red, metres", loc="left")


# Walk: figures on their ways, from the side and from above, with the ground ---------------------------------

WALK_COLOURS = ("#444444", "#1f77b4", "#d62728")  # middle, left, right
GROUND = "#6b5b45"
WALK_MOMENTS = 11  # of a walk, from the side
WALK_ABOVE = ("human, circle", "human, hills", "spider, circle")
WALK_SIDE = ("human, hills", "human, stairs", "cat, stairs", "cat, hills", "spider, stairs", "spider, hills")


@dataclass
class WalkLines:
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
    ) -> WalkLines:
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
    points = []
    for y in np.linspace(*ends, 800):
        x = np.interp(-y, -hips[:, 1], hips[:, 0])
        hit, place, _, _ = ground.ray_cast((x, y, 50.0), (0.0, 0.0, -1.0))
        if hit:
            points.append((-y, place[2]))
    return np.array(points)


def draw_walk(walks: Sequence[WalkLines], file: Path) -> None:
    """Write the picture: from the side those of `WALK_SIDE`, below them from above those of `WALK_ABOVE`."""
    named = {each.title: each for each in walks}
    side, above = ([named[name] for name in names if name in named] for names in (WALK_SIDE, WALK_ABOVE))
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


def _from_side(axes: Axes, drawn: WalkLines) -> None:
    shown = np.linspace(0.22 * len(drawn.bones), 0.8 * len(drawn.bones), WALK_MOMENTS).astype(int)
    for f in shown:
        for bone, side in zip(drawn.bones[f], drawn.sides, strict=True):
            axes.plot(-bone[:, 1], bone[:, 2], color=WALK_COLOURS[side], lw=1.1)
    axes.plot(*drawn.ground.T, color=GROUND, lw=1.6)
    axes.set(title=f"{drawn.title}, from the side", aspect="equal")
    ends = -drawn.bones[shown][..., 1]
    axes.set_xlim(ends.min() - 0.2 * drawn.leg, ends.max() + 0.2 * drawn.leg)
    heights = drawn.bones[shown][..., 2]
    axes.set_ylim(heights.min() - 0.15 * drawn.leg, heights.max() + 0.1 * drawn.leg)


def _from_above(axes: Axes, drawn: WalkLines) -> None:
    for f in np.linspace(0, len(drawn.bones) - 1, 9).astype(int):
        for bone, side in zip(drawn.bones[f], drawn.sides, strict=True):
            axes.plot(bone[:, 0], bone[:, 1], color=WALK_COLOURS[side], lw=0.8)
    axes.plot(drawn.bones[:, 0, 0, 0], drawn.bones[:, 0, 0, 1], color=WALK_COLOURS[0], lw=0.6)
    for side in (1, 2):
        falls = drawn.falls[drawn.fall_sides == side]
        axes.scatter(falls[:, 0], falls[:, 1], s=7, color=WALK_COLOURS[side])
    axes.set(title=f"{drawn.title}, from above", aspect="equal")
