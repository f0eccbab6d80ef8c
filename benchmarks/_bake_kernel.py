"""A joint step of our solver beside one in C: the same chain follows the same targets.

`_bake_kernel.c` is compiled into a folder of its own that goes away again; nothing of the product uses it.
"""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from _bake_pairs import add_rows, time_ours
from _bake_scenes import BONE, Shot

from ccd_rig.blender.bake import group_solving
from ccd_rig.blender.solve import solving
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem

PART = 0.15  # of each step: over 20 joints a pass leaves some 4 % of the way, as our bake's share does
PASSES = 10_000


def tell(make: Callable[[], Shot], frames: int, runs: int) -> None:
    """Print what a joint step costs here and there, medians over the runs."""
    rows: dict[str, list[tuple[int, float]]] = {}
    for _ in range(runs):
        shot = make()
        add_rows(shot)
        for name, found in _our_steps(shot, frames).items():
            rows.setdefault(name, []).append(found)
    shot = make()
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        print("There is no C compiler (cc, gcc or clang): the line of C is left out")
    else:
        targets = _targets(shot, frames)
        with tempfile.TemporaryDirectory() as folder:
            kernel = _compiled(compiler, Path(folder))
            found = [_c_steps(kernel, len(shot.bones), targets) for _ in range(max(runs, 5))]
        rows["C"] = [each[:2] for each in found]
    cells = frames * len(shot.bones)
    print(f"{'':24s}{'joint steps':>13s}{'ms':>10s}{'ns a step':>11s}{'ns a bone and frame':>21s}")
    for name, times in rows.items():
        steps, seconds = times[0][0], statistics.median(each[1] for each in times)
        each = f"{seconds / steps * 1e9:11.1f}" if steps else f"{'not counted':>11s}"
        print(f"{name:24s}{steps:13d}{seconds * 1e3:10.3f}{each}{seconds / cells * 1e9:21.1f}")
    if compiler is not None:
        print(f"C is off by {max(each[2] for each in found):.1e} m at worst", flush=True)


def _our_steps(shot: Shot, frames: int) -> dict[str, tuple[int, float]]:
    """Joint steps of a bake, and the seconds they take: of the loop (passes times joints) and of frames
    that are settled at once (joints times frames times steps)."""
    counts = {"loop": [0, 0.0], "at once": [0, 0.0]}

    def timed(plain: Callable[..., Any], name: str, steps: Callable[..., int] | None) -> Callable[..., Any]:
        def run(*args: Any, **keywords: Any) -> Any:
            began = time.perf_counter()
            result = plain(*args, **keywords)
            counts[name][1] += time.perf_counter() - began
            counts[name][0] += steps(result, *args) if steps else 0
            return result

        return run

    def counted(plain: Callable[..., Any]) -> Callable[..., Any]:
        def run(problem: Any, given: Any, residual: Any) -> Any:
            counts["at once"][0] += len(problem.layout.moved) * residual.now.state.size
            return plain(problem, given, residual)

        return run

    with ExitStack() as undo:
        for owner, attribute, change in (
            (solving, "solve", lambda f: timed(f, "loop", lambda r, s, *_: r.iterations * len(s.joints))),
            (group_solving, "solve_sequence", lambda f: timed(f, "at once", None)),
            (LeastSquaresProblem, "jacobian", counted),
        ):
            plain = getattr(owner, attribute)
            setattr(owner, attribute, change(plain))
            undo.callback(setattr, owner, attribute, plain)
        time_ours(shot, frames)
    return {
        "ours, the loop": (int(counts["loop"][0]), counts["loop"][1]),
        "ours, all at once": (int(counts["at once"][0]), counts["at once"][1]),
    }


def _targets(shot: Shot, frames: int) -> np.ndarray:
    """(F, 3) places of the first target, world space."""
    found = np.empty((frames, 3))
    for f in range(frames):
        bpy.context.scene.frame_set(f + 1)
        found[f] = shot.reaches[0].target.matrix_world.translation
    return found


def _compiled(compiler: str, folder: Path) -> ctypes.CDLL:
    library = folder / "kernel.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run(
        [compiler, "-O3", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"], check=True, timeout=60
    )
    kernel = ctypes.CDLL(str(library))
    kernel.follow.restype = ctypes.c_long
    return kernel


def _c_steps(kernel: ctypes.CDLL, joints: int, targets: np.ndarray) -> tuple[int, float, float]:
    """Joint steps, seconds, and the largest distance that was left."""
    rotations = np.tile((1.0, 0.0, 0.0, 0.0), (joints, 1))
    worst = ctypes.c_double()
    began = time.perf_counter()
    steps = kernel.follow(
        joints,
        len(targets),
        ctypes.c_double(BONE),
        targets.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_double(PART),
        ctypes.c_double(1e-4),
        PASSES,
        rotations.ctypes.data_as(ctypes.c_void_p),
        ctypes.byref(worst),
    )
    return steps, time.perf_counter() - began, worst.value
