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
from pathlib import Path
from typing import Any

import bpy
import numpy as np
from _bake_pairs import add_rows, time_ours
from _bake_scenes import BONE, Shot

from ccd_rig.blender import solving

PART = 0.15  # of each step: over 20 joints a pass leaves some 4 % of the way, as our bake's share does
PASSES = 10_000


def tell(make: Callable[[], Shot], frames: int, runs: int) -> None:
    """Print what a joint step costs here and there, medians over the runs."""
    ours = []
    for _ in range(runs):
        shot = make()
        add_rows(shot)
        ours.append(_our_steps(shot, frames))
    steps, seconds = ours[0][0], statistics.median(each[1] for each in ours)
    print(f"{'':10s}{'joint steps':>13s}{'ms':>10s}{'ns a step':>11s}")
    if steps:
        print(f"{'ours':10s}{steps:13d}{seconds * 1e3:10.3f}{seconds / steps * 1e9:11.1f}")
    else:
        print(f"ours: {seconds * 1e3:.3f} ms; the joint steps are not counted any more: look at _our_steps")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        print("C: there is no compiler (cc, gcc or clang), so this line is left out", flush=True)
        return
    shot = make()
    targets = _targets(shot, frames)
    with tempfile.TemporaryDirectory() as folder:
        kernel = _compiled(compiler, Path(folder))
        found = [_c_steps(kernel, len(shot.bones), targets) for _ in range(max(runs, 5))]
    c_steps, worst = found[0][0], found[0][2]
    c_seconds = statistics.median(each[1] for each in found)
    print(f"{'C':10s}{c_steps:13d}{c_seconds * 1e3:10.3f}{c_seconds / c_steps * 1e9:11.1f}")
    print(f"C is off by {worst:.1e} m at worst", flush=True)
    if steps:
        print(f"a step takes {seconds / steps / (c_seconds / c_steps):.1f} times that of C", flush=True)


def _our_steps(shot: Shot, frames: int) -> tuple[int, float]:
    """Joint steps (passes times joints) of a bake, and the seconds that its solver takes for them."""
    steps, seconds = 0, 0.0
    plain = solving.solve

    def counted(skeleton: Any, *args: Any, **keywords: Any) -> Any:
        nonlocal steps, seconds
        began = time.perf_counter()
        result = plain(skeleton, *args, **keywords)
        seconds += time.perf_counter() - began
        steps += result.iterations * len(skeleton.joints)
        return result

    solving.solve = counted
    try:
        whole = time_ours(shot, frames)
    finally:
        solving.solve = plain
    return steps, seconds or whole


def _targets(shot: Shot, frames: int) -> np.ndarray:
    """(F, 3) places of the first target, world space."""
    found = np.empty((frames, 3))
    for f in range(frames):
        bpy.context.scene.frame_set(f + 1)
        found[f] = shot.reaches[0][2].matrix_world.translation
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
