"""Poses solved in batches of several sizes; as a script with the BLAS kernels that the environment names.

`python batches.py` prints the name of OpenBLAS's kernels, if it is OpenBLAS, and the sizes whose bits differ.
"""

from __future__ import annotations

import ctypes
import random
import sys
from pathlib import Path

import bpy  # noqa: F401  (first of all: importing it makes mathutils importable)
import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[level]) for level in (1, 3)]

from chains import legal_pose, straight, tip  # noqa: E402
from mathutils import Quaternion, Vector  # noqa: E402

from ccd_rig import (  # noqa: E402
    BalanceGoal,
    CoupledOffset,
    Goal,
    Hinge,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
    Slide,
    SolverSettings,
    forward_kinematics,
    solve_many,
)

SIZE, SIZES = 64, (1, 2, 7)


def differing() -> list[int]:
    """Sizes of batches in which poses have other bits than in a batch of 64.

    The goals ask for what adds up over joints: a centre of mass, a pole; and for slides and rotations. A
    joint rolls.
    """
    rng = random.Random(4)
    angles, shifts = (-0.3, 0.1, 0.9, 1.4, 2.1), (0.0, 0.03, 0.07, 0.02, 0.1)
    rolling = CoupledOffset("joint3", (0.0, 0.0, 1.0), angles, shifts)
    skeleton = straight(7, mass=1.0).replace(
        {
            "joint1": {"slides": (Slide((0.6, 0.8, 0.0), -0.5, 0.5),)},
            "joint3": {"limit": Hinge((1.0, 0.0, 0.0), -0.2, 2.0)},
            "joint4": {"coupled_offsets": (rolling,)},
        }
    )
    name, z = tip(skeleton), Vector((0.0, 0.0, 1.0))
    goals: list[Goal] = [
        PositionGoal(name, z),
        OrientationGoal(name, Quaternion()),
        PoleGoal("joint1", "joint5", z),
        BalanceGoal(z, priority=1),
    ]
    poses = [legal_pose(skeleton, rng) for _ in range(SIZE)]
    ends = [forward_kinematics(skeleton, legal_pose(skeleton, rng))[-1] for _ in poses]
    points, rotations = [each.point(z)[:] for each in ends], [each.rotation[:] for each in ends]
    others = [[[rng.gauss(0.0, 1.0) for _ in range(3)] for _ in poses] for _ in range(2)]
    targets, settings = [points, rotations, *others], SolverSettings(max_iterations=8, restarts=1)

    def solved(size: int) -> list[np.ndarray]:
        own = [each[:size] for each in targets]
        found = solve_many(skeleton, poses[:size], goals, settings, targets=own)
        return [found.rotations, found.translations, found.distances, found.angles]

    whole = solved(SIZE)
    pairs = ((size, zip(solved(size), whole, strict=True)) for size in SIZES)
    return [size for size, both in pairs if not all(np.array_equal(a, b[:size]) for a, b in both)]


def kernels() -> str:
    """The name of the kernels that OpenBLAS runs, as OPENBLAS_CORETYPE spells it; else an empty word."""
    folder = Path(np.__file__).resolve().parent
    for path in (*folder.parent.glob("numpy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")):
        library = ctypes.CDLL(str(path))
        for prefix in ("", "scipy_"):
            for suffix in ("64_", ""):
                asked = getattr(library, f"{prefix}openblas_get_corename{suffix}", None)
                if asked is not None:
                    asked.restype = ctypes.c_char_p
                    return str(asked().decode())
    return ""


if __name__ == "__main__":
    print(kernels(), *differing())
