"""The picture of `retarget.py`: a clip and the figure that got it, and one foot through its stances."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from _orders_plots import STYLE
from matplotlib.axes import Axes

SHOWN = 8  # moments of the motion
APART = 1.1  # [m] between figures
SIDES = {"L": "#1f77b4", "R": "#d62728", "": "#444444"}


@dataclass
class Drawn:
    """Lines of a figure: (F, 2, 3) ends of bones, by side and name, and its balls (F, 3)."""

    bones: dict[str, tuple[str, np.ndarray]]
    foot: list[np.ndarray]  # (F, 3) each: ankle, ball, end of the toes


def draw(own: Drawn, copied: Drawn, ours: Drawn, stances: list[tuple[int, int]], file: Path) -> None:
    """Write the picture."""
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(12, 7))
        grid = figure.add_gridspec(3, 2, height_ratios=(1.0, 1.0, 0.8))
        for row, (title, drawn) in enumerate((("motion capture", own), ("Rigify's human", ours))):
            _figures(figure.add_subplot(grid[row, :]), title, drawn)
        axes = [figure.add_subplot(grid[2, 0])]
        axes.append(figure.add_subplot(grid[2, 1], sharex=axes[0], sharey=axes[0]))
        for ax, (title, drawn) in zip(axes, (("copied", copied), ("retargeted", ours)), strict=True):
            _foot(ax, title, drawn, stances)
        figure.tight_layout()
        figure.savefig(file, dpi=110)
        plt.close(figure)


def _figures(ax: Axes, title: str, drawn: Drawn) -> None:
    """From the side, one beside the other."""
    frames = len(next(iter(drawn.bones.values()))[1])
    for k, frame in enumerate(np.linspace(0, frames - 1, SHOWN).astype(int)):
        middle = np.mean([lines[frame].mean(0) for _, lines in drawn.bones.values()], axis=0)
        for side, lines in drawn.bones.values():
            across = middle[1] - lines[frame][:, 1] + APART * k
            ax.plot(across, lines[frame][:, 2], color=SIDES[side], lw=2.0, solid_capstyle="round")
    ax.axhline(0.0, color="black", lw=0.8)
    ax.set_aspect("equal")
    ax.set_title(title, loc="left")
    ax.axis("off")


def _foot(ax: Axes, title: str, drawn: Drawn, stances: list[tuple[int, int]]) -> None:
    """One foot from the side in all frames of some stances, each stance beside the one before."""
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
