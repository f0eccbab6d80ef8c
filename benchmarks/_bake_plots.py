"""Error and largest turn per frame, ours and Blender's, as `bake.py --plot` measured them."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from _bake_pairs import Pairs
from _orders_plots import COLOURS, STYLE
from matplotlib.axes import Axes

OURS, ITS = COLOURS[0], COLOURS[1]
SIDES = ((OURS, "CCD Rig"), (ITS, "Blender's IK, its own bake"))
LEFT_OUT = ("cones 60", "hinge, cone 60")  # they look much like those of 30 degrees
LEAST = 1e-6  # metres: a float32 chain of 5 m has no better


def draw(found: dict[str, dict[str, Pairs]], folder: Path) -> None:
    """Write one plot per case that was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE | {"svg.hashsalt": "bake"}):
        for case, pairs in found.items():
            shown = {name: pair for name, pair in pairs.items() if name not in LEFT_OUT}
            figure = _figure(shown)
            # Without the version of Matplotlib in it the same numbers give the same file.
            figure.savefig(folder / f"bake_{case}.png", bbox_inches="tight", metadata={"Software": None})
            plt.close(figure)
            print(f"docs/images/bake_{case}.png")


def _figure(pairs: dict[str, Pairs]) -> plt.Figure:
    size = (max(4.4 * len(pairs), 7.0), 5.4)
    figure, grid = plt.subplots(
        2, len(pairs), figsize=size, layout="constrained", squeeze=False, sharex="col"
    )
    for column, (name, pair) in enumerate(pairs.items()):
        _column(grid[0, column], grid[1, column], pair)
        grid[0, column].set_title(name, fontweight="bold")
    grid[0, 0].set_ylabel("off the target, metres")
    grid[1, 0].set_ylabel("largest turn, degrees")
    for errors, turns in grid.T:
        errors.sharey(grid[0, 0])
        turns.set_ylim(bottom=0.0)
    grid[0, 0].set_yscale("log")
    grid[0, 0].set_ylim(auto=True)
    grid[0, 0].autoscale_view()
    handles, labels = grid[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _column(errors: Axes, turns: Axes, pair: Pairs) -> None:
    for keys, (colour, label) in zip((pair.our_keys, pair.its_keys), SIDES, strict=True):
        frames = np.arange(1, len(keys.errors) + 1)
        errors.plot(frames, np.maximum(keys.errors.max(axis=1), LEAST), color=colour, lw=1.6)
        turns.plot(frames[1:], keys.turns.max(axis=1), color=colour, lw=1.6, label=label)
    turns.set_xlabel("frame")
