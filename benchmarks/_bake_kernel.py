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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from _bake_pairs import add_rows, time_ours
from _bake_scenes import BONE, Shot

from ccd_rig.blender.solve import solving
from ccd_rig.settings import Solver
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.solve import _Search

PART = 0.15  # of each step: over 20 joints a pass leaves some 4 % of the way, as our bake's share does
PASSES = 10_000


def tell(make: Callable[[], Shot], frames: int, runs: int) -> None:
    """Print what a joint step costs here and there, medians over the runs."""
    rows: dict[str, list[tuple[int, float]]] = {}
    for _ in range(runs):
        for name, count in (("CCD alone", _steps_of_ccd), ("least squares", _steps_of_least_squares)):
            shot = make()
            add_rows(shot)
            rows.setdefault(name, []).append(count(shot, frames))
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
        of_step, of_cell = seconds / steps * 1e9, seconds / cells * 1e9
        print(f"{name:24s}{steps:13d}{seconds * 1e3:10.3f}{of_step:11.1f}{of_cell:21.1f}")
    if compiler is not None:
        print(f"C is off by {max(each[2] for each in found):.1e} m at worst", flush=True)


def _steps_of_ccd(shot: Shot, frames: int) -> tuple[int, float]:
    """Joint steps of a bake by CCD alone (passes times joints), and the seconds that solving takes."""
    steps, seconds = 0, 0.0

    def counted(plain: Callable[..., Any]) -> Callable[..., Any]:
        def run(skeleton: Any, *args: Any, **keywords: Any) -> Any:
            nonlocal steps, seconds
            began = time.perf_counter()
            result = plain(skeleton, *args, **keywords)
            seconds += time.perf_counter() - began
            steps += result.iterations * len(skeleton.joints)
            return result

        return run

    with _changed((solving, "solve", counted)):
        time_ours(shot, frames, solver=Solver.CCD)
    return steps, seconds


def _steps_of_least_squares(shot: Shot, frames: int) -> tuple[int, float]:
    """The same of frames that are solved all at once: joints times frames times steps."""
    steps, seconds = 0, 0.0

    def timed(plain: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            nonlocal seconds
            began = time.perf_counter()
            result = plain(*args)
            seconds += time.perf_counter() - began
            return result

        return run

    def counted(plain: Callable[..., Any]) -> Callable[..., Any]:
        def run(problem: Any, given: Any, residual: Any) -> Any:
            nonlocal steps
            steps += len(problem.layout.moved) * residual.now.state.size
            return plain(problem, given, residual)

        return run

    with _changed((_Search, "iterate", timed), (LeastSquaresProblem, "jacobian", counted)):
        time_ours(shot, frames)
    return steps, seconds


@contextmanager
def _changed(*changes: tuple[Any, str, Callable[..., Any]]) -> Iterator[None]:
    """Functions of the product in other clothes, for a while."""
    with ExitStack() as undo:
        for owner, attribute, change in changes:
            plain = getattr(owner, attribute)
            setattr(owner, attribute, change(plain))
            undo.callback(setattr, owner, attribute, plain)
        yield


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
