"""Golden values: results that a change of code must not change, compared bit for bit.

    python3 dev.py golden --store     measure, and store
    python3 dev.py golden             measure, and compare with what is stored
    python3 dev.py golden -- --case walk demo

Cases:
    chain, limits, bones, character   those of `bake.py`, with fewer frames
    walk                              planted feet, tests/blender/solve/test_planting.py
    demo                              the figure of examples/demo.py
    solves                            the 20,000 mixed solves of tests/core/mixtures.py

Keys are compared per channel, solves in blocks of 1,000. Hashes are stored in benchmarks/golden/, one file
per version of Blender; the values themselves in .cache/golden/, from which differences are measured. Values
depend on Blender, NumPy and the processor: on another machine, store those of the unchanged code first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("tests/core", "tests/blender", "tests/blender/solve", "examples")
sys.path[:0] = [str(ROOT), *(str(ROOT / name) for name in FOLDERS)]

import _bake_scenes as scenes
import demo
import mixtures
import stage
import test_planting
import walk
from _bake_pairs import (
    Played,
    add_rows,
    between,
    keys_of,
    played,
    settings,
    shot_of,
)
from _script import machine, run_benchmark

from ccd_rig.blender.bake.bake import bake
from ccd_rig.blender.bake.settings import BakeSettings

HASHES, VALUES = ROOT / "benchmarks" / "golden", ROOT / ".cache" / "golden"
SOLVES, BLOCK = 20_000, 1000

Values = dict[str, np.ndarray]
Quality = dict[str, float]


@dataclass(frozen=True)
class Golden:
    """Result of a case.

    Attributes:
        values: arrays by channel or block; quaternions where the name says "rotation".
        quality: what can be said about them in numbers.
    """

    values: Values
    quality: Quality

    def hashes(self) -> dict[str, str]:
        return {name: hashlib.sha256(each.tobytes()).hexdigest()[:16] for name, each in self.values.items()}


# --- cases --------------------------------------------------------------------------------------------------


def case_chain() -> Golden:
    return _baked(_with_rows(scenes.chain(20, 120)), settings(120))


def case_limits() -> Golden:
    return _baked(_with_rows(scenes.chain(20, 120, (scenes.hinge(), scenes.cone(30.0)), 0.1)), settings(120))


def case_bones() -> Golden:
    return _baked(_with_rows(scenes.chain(50, 60)), settings(60))


def case_character() -> Golden:
    return _baked(_with_rows(scenes.character(120)), settings(120))


def case_walk() -> Golden:
    bpy.ops.wm.read_homefile(use_empty=True)
    return _baked(shot_of(test_planting.walker()), settings(len(test_planting.WALK)))


def case_demo() -> Golden:
    bpy.ops.wm.read_homefile(use_empty=True)
    rig, _ = stage.build()
    chosen = BakeSettings(
        walk.FRAME_START, walk.FRAME_END, error_reduction=demo.ERROR_REDUCTION, verify=False
    )
    return _baked(shot_of(rig), chosen)


def case_solves() -> Golden:
    values: dict[str, list[float]] = {}
    reached = iterations = 0
    wall, cpu = time.perf_counter(), time.process_time()
    for seed in range(SOLVES):
        result = mixtures.mixture(seed).solve()
        block = f"{seed // BLOCK * BLOCK:05d}"
        for name, numbers in (
            ("rotations", (x for each in result.pose.rotations for x in each)),
            ("translations", (x for each in result.pose.translations for x in each)),
            ("errors", (x for error in result.errors for x in (error.distance, error.angle))),
            ("ends", (result.status.value, result.iterations)),
        ):
            values.setdefault(f"{block} {name}", []).extend(map(_number, numbers))
        reached += result.status is mixtures.SolveStatus.CONVERGED
        iterations += result.iterations
    quality = {
        "reached": reached,
        "of": SOLVES,
        "mean iterations": iterations / SOLVES,
        "wall [s]": time.perf_counter() - wall,
        "cpu [s]": time.process_time() - cpu,
    }
    arrays = {name: np.array(each) for name, each in values.items()}
    return Golden(
        {name: a.reshape(-1, 4) if "rotation" in name else a for name, a in arrays.items()}, quality
    )


def _number(value: object) -> float:
    """A number, or one that stands for a word."""
    return float(value) if isinstance(value, (int, float)) else float(sum(map(ord, str(value))))


def _with_rows(shot: scenes.Shot) -> scenes.Shot:
    add_rows(shot)
    return shot


def _baked(shot: scenes.Shot, chosen: BakeSettings) -> Golden:
    frames = chosen.frame_end
    base = played(shot, frames)
    wall, cpu = time.perf_counter(), time.process_time()
    report = bake(bpy.context.scene, shot.rig, chosen)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    paths: dict[str, list[np.ndarray]] = {}
    for (path, _), keys in sorted(keys_of(shot.rig).items()):
        paths.setdefault(path, []).append(keys)
    quality = {
        "reached": frames - len({row.frame for row in report.unsolved()}),
        "of": frames,
        **_quality(played(shot, frames), base),
        "slip [mm]": 1e3 * max((slip.played_distance for slip in report.foot_slips), default=0.0),
        "wall [s]": wall,
        "cpu [s]": cpu,
    }
    return Golden({path: np.stack(each) for path, each in paths.items()}, quality)


def _quality(keys: Played, base: Played) -> Quality:
    departure = np.linalg.norm(between(base.rotations, keys.rotations), axis=-1)
    return {
        "turn [deg]": float(keys.turns.max()),
        "mean departure [deg]": float(departure.mean()),
        "departure [deg]": float(departure.max()),
        "broken [deg]": float(np.nan_to_num(keys.broken)),
    }


CASES: dict[str, Callable[[], Golden]] = {
    name.removeprefix("case_"): function
    for name, function in list(globals().items())
    if name.startswith("case_")
}


# --- stored and compared ------------------------------------------------------------------------------------


def _files() -> tuple[Path, Path]:
    version = ".".join(map(str, bpy.app.version[:2]))
    return HASHES / f"{version}.json", VALUES / f"{version}.npz"


def _arrays(results: dict[str, Golden]) -> Values:
    return {
        f"{case}/{name}": each for case, golden in results.items() for name, each in golden.values.items()
    }


def store(results: dict[str, Golden]) -> None:
    """Put hashes and quality in the one file, values in the other; other cases stay."""
    hashes, values = _files()
    stored = json.loads(hashes.read_text()) if hashes.is_file() else {"cases": {}}
    stored["machine"] = f"{machine()}, NumPy {np.__version__}"
    for case, golden in results.items():
        quality = {name: float(f"{value:.6g}") for name, value in golden.quality.items()}
        stored["cases"][case] = {"quality": quality, "hashes": golden.hashes()}
    hashes.parent.mkdir(exist_ok=True)
    hashes.write_text(json.dumps(stored, indent=1) + "\n")
    values.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(values, **(_load(values) | _arrays(results)))
    print(f"stored: {', '.join(results)}, Blender {bpy.app.version_string}")


def _load(file: Path) -> Values:
    if not file.is_file():
        return {}
    with np.load(file) as arrays:
        return dict(arrays)


def compare(results: dict[str, Golden]) -> int:
    """Print what differs from what is stored; returns how many cases do."""
    hashes, values = _files()
    if not hashes.is_file():
        print(f"nothing is stored for Blender {bpy.app.version_string}: run with --store first")
        return len(results)
    stored, arrays = json.loads(hashes.read_text()), _load(values)
    differing = 0
    for case, golden in results.items():
        before = stored["cases"].get(case)
        if before is None:
            print(f"{case}: not stored")
            differing += 1
            continue
        now = golden.hashes()
        names = sorted(before["hashes"] | now)
        changed = [name for name in names if before["hashes"].get(name) != now.get(name)]
        if not changed:
            print(f"{case}: {len(now)} equal, bit for bit")
            continue
        differing += 1
        print(f"{case}: {len(changed)} of {len(names)} differ")
        old = Golden({name: a for name in names if (a := arrays.get(f"{case}/{name}")) is not None}, {})
        _tell_differences(changed, old.values if old.hashes() == before["hashes"] else {}, golden.values)
        _tell_quality(before["quality"], golden.quality)
    if differing and stored["machine"] != f"{machine()}, NumPy {np.__version__}":
        print(f"The stored values are of another machine: {stored['machine']}")
    return differing


def _tell_differences(changed: list[str], before: Values, now: Values) -> None:
    """The largest difference of each kind of value, and where it is."""
    if not before:
        print("  how much is not known: the values were stored on another machine or at another time")
        return
    worst: dict[str, tuple[float, str]] = {}
    for name in changed:
        if name not in before or name not in now or before[name].shape != now[name].shape:
            print(f"  {name}: there is not the same number of values")
            continue
        unit, difference = _difference(name, before[name], now[name])
        worst[unit] = max(worst.get(unit, (0.0, name)), (difference, name))
    for unit, (difference, name) in worst.items():
        print(f"  largest difference {difference:.3g} {unit} ({name})")


def _difference(name: str, before: np.ndarray, now: np.ndarray) -> tuple[str, float]:
    if name.endswith("rotation_quaternion") and len(now) == 4:
        before, now = (np.moveaxis(each[..., 1], 0, -1).astype(float) for each in (before, now))
    elif not name.endswith(" rotations"):
        difference = float(np.abs(before - now).max())
        if "rotation" in name:
            return "degrees (channel)", float(np.degrees(difference))
        return {"errors": "m or rad", "ends": "passes"}.get(name.split()[-1], "m"), difference
    return "degrees", float(np.linalg.norm(between(before, now), axis=-1).max())


def _tell_quality(before: Quality, now: Quality) -> None:
    print(f"  {'':22s}{'before':>12s}{'after':>12s}")
    for name in before | now:
        print(f"  {name:22s}{before.get(name, np.nan):12.6g}{now.get(name, np.nan):12.6g}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help="store instead of comparing")
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    chosen = parser.parse_args()
    results = {}
    for case in chosen.case:
        results[case] = CASES[case]()
        print(f"[{case}] {results[case].quality['wall [s]']:.1f} s", file=sys.stderr, flush=True)
    if chosen.store:
        store(results)
        return 0
    return 1 if compare(results) else 0


if __name__ == "__main__":
    run_benchmark(main)
