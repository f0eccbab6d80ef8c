"""A bake keys the same bits whatever BLAS, NumPy and the C library choose for a processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
    from numpy._core._multiarray_umath import __cpu_features__
else:
    from numpy.core._multiarray_umath import __cpu_features__

ROOT = Path(__file__).resolve().parents[3]
BLAS = {"Nehalem": ("SSE42",), "Haswell": ("AVX2", "FMA3"), "SkylakeX": ("AVX512_SKX",)}
"""Kernels of OpenBLAS, and what of the processor they need."""
WITHOUT = ("AVX512_SKX AVX512F", "AVX2 FMA3 AVX512_SKX AVX512F", "AVX2 FMA3 AVX F16C AVX512_SKX AVX512F")
"""What NumPy is kept from using."""
BAKE = """
import json, os, sys
import bpy
import numpy as np
if "ROUGH" in os.environ:  # sines as those of processors that this one is not
    noise = np.random.default_rng(7)
    def rough(function):
        def other(*values, **more):
            exact = function(*values, **more)
            return exact if "out" in more else np.nextafter(exact, exact + noise.integers(-1, 2, exact.shape))
        return other
    for name in ("sin", "cos", "arctan2", "arccos", "arcsin"):
        setattr(np, name, rough(getattr(np, name)))
    np.linalg.solve = None  # of LAPACK, whose bits depend on its kernels
sys.path[:0] = [{root!r}, {root!r} + "/tests/blender"]
import rigs
from ccd_rig.blender import register
from ccd_rig.blender.bake.bake import BakeSettings, bake
from ccd_rig.blender.keys.channels import fcurves_of
register()
for chosen in json.loads(sys.argv[1]):
    bpy.ops.wm.read_homefile(use_empty=True)
    bones = []
    for i in range(3):
        bones.append(rigs.B(f"spine{{i}}", (0, 0, i), (0, 0.05 * i, i + 1), f"spine{{i - 1}}" if i else ""))
    for side, sign in (("L", 1), ("R", -1)):
        for i in range(3):
            parent = f"{{side}}{{i - 1}}" if i else "spine2"
            bones.append(rigs.B(f"{{side}}{{i}}", (sign * i, 0.1, 3), (sign * (i + 1), 0.1 * i, 3), parent))
    rig = rigs.armature(bones)
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.8
    for side in "LR":
        limit = rig.pose.bones[side + "1"].ccd_rig.limit
        limit.kind, limit.hinge_axis = "HINGE", "Z"
    if "SLIDES" in chosen:
        root = rig.pose.bones["spine0"].ccd_rig
        root.use_slide, root.slide_lower, root.slide_upper = (True, False, False), (-0.02, 0, 0), (0.02, 0, 0)
    for k, (side, sign) in enumerate((("L", 1.0), ("R", -1.0))):
        path = {{1: (2.1 * sign, 0.4, 3.5), 8: (1.6 * sign, 1.3, 2.6), 20: (sign, 0.9 + k, 4.1)}}
        goal = rigs.keyed(rigs.empty("Goal" + side), path)
        row = rigs.reach(rig, side + "2", goal, "Hand " + side, chain_length=0)
        if "REACHED" not in chosen:
            row.rotation, row.influence = ("ORIENTATION", 1.0) if k else ("NONE", 0.9)
            row.pole_target = rigs.empty("Pole" + side, (2.0 * sign, -3.0, 2.0))
    last, smoothness = chosen.get("LAST", 20), chosen.get("SMOOTHNESS", 5.0)
    report = bake(bpy.context.scene, rig, BakeSettings(1, last, smoothness=smoothness))
    values = [point.co[1] for curve in fcurves_of(rig) for point in curve.keyframe_points]
    assert "REACHED" not in chosen or any(report.smoothed), report.summary()
    print("KEYS", np.array(values, np.float32).tobytes().hex(), flush=True)
os._exit(0)
"""


def keys(bakes: Sequence[dict[str, float]], **variables: str) -> list[bytes]:
    """Values of the keys, float32, that each of some bakes writes in a process with environment variables."""
    environment = {name: value for name, value in os.environ.items() if name != "NPY_DISABLE_CPU_FEATURES"}
    command = [sys.executable, "-c", BAKE.format(root=str(ROOT)), json.dumps(bakes)]
    done = subprocess.run(
        command, env=environment | variables, capture_output=True, text=True, timeout=120, check=False
    )
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("KEYS")]
    assert len(lines) == len(bakes), done.stdout + done.stderr
    return [bytes.fromhex(line[1]) for line in lines]


BAKES = ({"SMOOTHNESS": 0.0}, {"REACHED": 1})
"""Hands that miss their targets, frame by frame; hands that reach them, whose motion is smoothed."""


@pytest.fixture(scope="module")
def usual() -> list[bytes]:
    """The keys of `BAKES` with what this processor has."""
    values = keys(BAKES)
    assert [len(each) for each in values] == [20 * 9 * 4 * 4] * 2  # frames, bones, components, bytes
    return values


@pytest.mark.mass
@pytest.mark.parametrize("kernels", BLAS)
def test_keys_have_the_same_bits_with_other_kernels_of_blas(usual: list[bytes], kernels: str) -> None:
    """What this processor lacks is tested with its own instead."""
    able = all(__cpu_features__.get(each) for each in BLAS[kernels])
    assert keys(BAKES, **({"OPENBLAS_CORETYPE": kernels} if able else {})) == usual


@pytest.mark.mass
@pytest.mark.parametrize("without", WITHOUT)
def test_keys_have_the_same_bits_with_other_loops_of_numpy(usual: list[bytes], without: str) -> None:
    """Those that a processor without these features runs."""
    assert keys(BAKES, NPY_DISABLE_CPU_FEATURES=without) == usual


def test_keys_have_the_same_bits_however_numpy_rounds_sines() -> None:
    """As with AVX-512, for which NumPy has sines and arc tangents of its own. Locations need no LAPACK."""
    bakes = ({"SLIDES": 1, "LAST": 10},)
    (values,) = keys(bakes)
    assert len(values) == 10 * (9 * 4 + 3) * 4  # frames, rotations and a location, bytes
    assert keys(bakes, ROUGH="1") == [values]


def test_keys_have_the_same_bits_with_another_c_library(usual: list[bytes]) -> None:
    """One without fused multiply and add, as on processors from before 2013, has other sines.

    Hands that miss their targets jump, hands that reach them are smoothed: last bits could decide on ways.
    """
    without = ",".join(
        f"-{each}" for each in ("FMA", "FMA4", "AVX2", "FMA_Usable", "FMA4_Usable", "AVX2_Usable")
    )
    assert keys(BAKES, GLIBC_TUNABLES=f"glibc.cpu.hwcaps={without}") == usual
