"""The same chains and targets given to three.js's CCDIKSolver and to CCD Rig.

    python3 dev.py bench threejs                        1,000 targets per chain
    python3 dev.py bench threejs -- --targets 10000

Protocol: 20 joints of length 1, started straight; targets are the effector of a random pose inside the
    limits; tolerance 1e-3; at most 300 iterations (one visits every joint once; in CCD Rig a step of least
    squares counts as one too); seeded, the targets handed over as JSON. Free ball joints; free hinges about
    Z, so a planar chain; Euler boxes of 40 degrees to either side of every axis (three.js's order XYZ is
    Blender's ZYX). CCD Rig runs with its default settings.

    three.js has no tolerance: its solver runs one iteration at a time until the effector is near enough.
    Its times are of code that Node has compiled (each target is solved twice, the second time counts), in
    double precision; ours are of Python on mathutils' C types, in single precision. So times compare what
    a user gets, iterations the methods. "At once" is one call of `solve_many` for all free targets.

Needs node and npm, and once the network: the package `three` is put into .cache/threejs below the project.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import bpy  # noqa: F401 - brings mathutils
import numpy as np
from chains import legal_pose, straight, tail
from mathutils import Vector
from robots import tiled

from ccd_rig import (
    EulerBox,
    Pose,
    PositionGoal,
    SolverSettings,
    SolveStatus,
    solve,
    solve_many,
)
from ccd_rig.limits.shapes import violation

ROOT = Path(__file__).resolve().parent.parent

VERSION = "0.187.0"
CACHE = ROOT / ".cache" / "threejs"
JOINTS, TOLERANCE, CAP = 20, 1e-3, 300
BOX = math.radians(40.0)
LIMITS = {
    "free": None,
    "boxes": EulerBox("ZYX", (-BOX,) * 3, (BOX,) * 3),
}


def three_js() -> tuple[str, Path] | str:
    """The node program and the folder that holds `three`; or, in one line, what is missing."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return "three.js is left out: node and npm are not installed (on Debian: apt-get install nodejs npm)"
    modules = CACHE / "node_modules"
    manifest = modules / "three" / "package.json"
    if not manifest.exists() or json.loads(manifest.read_text())["version"] != VERSION:
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / "package.json").write_text(json.dumps({"private": True}))
        command = [npm, "install", f"three@{VERSION}", "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            return f"three.js is left out: npm could not install three {VERSION}: {last}"
    return node, modules


def theirs(node: str, modules: Path, cases: list[dict[str, object]]) -> list[list[dict[str, float]]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cases.json"
        file.write_text(json.dumps(cases))
        script = ROOT / "benchmarks" / "threejs" / "ccd.mjs"
        done = subprocess.run(
            [node, str(script), str(modules), str(file)],
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"node failed:\n{done.stderr}")
    return json.loads(done.stdout)


def ours(cases: dict[str, object]) -> list[dict[str, float]]:
    limit = LIMITS[cases["kind"]]
    skeleton = straight(JOINTS, limit)
    start = Pose.rest(skeleton)
    settings = SolverSettings(position_tolerance=TOLERANCE, max_iterations=CAP)
    solves = []
    for target in cases["targets"]:
        goal = PositionGoal(f"joint{JOINTS - 1}", target)
        began = time.perf_counter()
        result = solve(skeleton, start, [goal], settings)
        took = time.perf_counter() - began
        distance = (tail(skeleton, result.pose) - goal.target).length
        assert (result.status is SolveStatus.CONVERGED) == (distance <= TOLERANCE)
        over = 0.0 if limit is None else max(violation(limit, rotation) for rotation in result.pose.rotations)
        solves.append(
            {"iterations": result.iterations, "micros": took * 1e6, "distance": distance, "over": over}
        )
    return solves


def at_once(targets: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Share of free targets that one call of `solve_many` meets, and microseconds of each."""
    skeleton, count = straight(JOINTS), len(targets)
    goals = [PositionGoal(f"joint{JOINTS - 1}", (0, 0, 0))]
    settings = SolverSettings(position_tolerance=TOLERANCE, max_iterations=CAP)
    start = tiled(Pose.rest(skeleton), count)
    began = time.process_time()
    result = solve_many(skeleton, start, goals, settings, targets=[np.array(targets)])
    took = time.process_time() - began
    met = sum((tail(skeleton, result.pose(k)) - Vector(targets[k])).length <= TOLERANCE for k in range(count))
    return met / count, 1e6 * took / count


def row(name: str, solves: list[dict[str, float]]) -> str:
    counts = [each["iterations"] for each in solves]
    times = [each["micros"] for each in solves]
    solved = sum(each["distance"] <= TOLERANCE for each in solves) / len(solves)
    return (
        f"{name:24s}{solved:9.2%}{statistics.median(counts):8g}{statistics.fmean(counts):8.1f}{max(counts):6d}"
        f"{statistics.median(times):11.0f}{statistics.fmean(times):11.0f}"
        f"{sum(times) / sum(counts) / JOINTS:10.2f}"
        f"{max(each['over'] for each in solves):11.1e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=1000)
    chosen = parser.parse_args()
    cases = []
    for kind, limit in LIMITS.items():
        rng = random.Random(1)
        skeleton = straight(JOINTS, limit)
        targets = [list(tail(skeleton, legal_pose(skeleton, rng))) for _ in range(chosen.targets)]
        cases.append(
            {
                "joints": JOINTS, "kind": kind, "lower": [-BOX] * 3, "upper": [BOX] * 3,
                "tolerance": TOLERANCE, "cap": CAP, "targets": targets,
            }
        )  # fmt: skip
    ready = three_js()
    if isinstance(ready, str):
        print(ready)
        peers = None
    else:
        peers = theirs(*ready, cases)
    print(
        f"{f'{JOINTS} joints':24s}{'solved':>9s}{'median':>8s}{'mean it':>8s}{'most':>6s}{'median us':>11s}"
        f"{'mean us':>11s}{'us/step':>10s}{'over, rad':>11s}"
    )
    for k, each in enumerate(cases):
        mine = ours(each)
        print(row(f"{each['kind']}, CCD Rig", mine), flush=True)
        if each["kind"] == "free":
            share, micros = at_once(each["targets"])
            print(f"{'free, at once':24s}{share:9.2%}{'':33s}{micros:11.0f}", flush=True)
        if peers is not None:
            print(row(f"{each['kind']}, three.js {VERSION}", peers[k]))
            ratio = statistics.fmean(m["micros"] for m in mine) / statistics.fmean(
                p["micros"] for p in peers[k]
            )
            print(f"{'':24s}mean time of CCD Rig in parts of three.js's: {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
