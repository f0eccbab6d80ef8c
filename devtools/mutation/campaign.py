"""Draws mutants of the code by a seed, lets the tests judge them, and tells which survive.

    python3 dev.py mutate                               40 mutants of all parts
    python3 dev.py mutate --part core --count 400       goes on where the last one ended
    python3 dev.py mutate --part core --count 400 --again    survivors once more, after tests were added

A mutant is a file with one small change, made by cosmic-ray in a copy of the project below .cache/mutation.
It is judged by the tests that run the changed statement, those of the mirrored folder and the quick ones
first, until one fails. Which tests run which lines is measured once for each state of the code.

A survivor is answered by a test, or by a reason in `harmless.json`: of each such mutant the file, the line as
it was, and as the mutant has it.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from devtools import checks, environments, kernel
from devtools.environments import ROOT

SUITES = {"core": "tests/core", "plain": "tests/core", "blender": "tests/blender"}
"""Folder of the tests of each suite. `plain` runs the kernel's plain modules, the only ones that a mutant of
them changes and of which it is known which lines a test runs."""
PARTS = {
    "core": ("core", "blender"),
    "kernel": ("plain",),
    "bake": ("blender",),
    "keys": ("blender",),
    "live": ("blender",),
    "retarget": ("blender",),
}
"""Suites that judge each part, one after the other."""
VERSION = "5.2"  # its Python tells which lines run at little cost
MOST = 45.0  # [s] of a processor, as it was measured, for the tests of a folder that run on a mutant
MEASURE_TIMEOUT = 5400  # [s]
FOLDER = ROOT / ".cache/mutation"
TREE = FOLDER / "tree"
HARMLESS = Path(__file__).with_name("harmless.json")


def files_of(part: str) -> list[str]:
    """The sources of a part, from the project's root."""
    if part == "core":
        without = {"blender", "kernel"}
        found = [f for f in (ROOT / "ccd_rig").rglob("*.py") if without.isdisjoint(f.relative_to(ROOT).parts)]
        found.remove(ROOT / "ccd_rig/__main__.py")
    elif part == "kernel":
        sources = kernel.load_fingerprint().source_files(kernel.FOLDER)
        found = [file for file in sources if file.suffix == ".py"]
    else:
        found = list((ROOT / "ccd_rig/blender" / part).rglob("*.py"))
    return sorted(file.relative_to(ROOT).as_posix() for file in found)


def mutate(parts: list[str], count: int, seed: int, again: bool) -> int:
    """Judge mutants and print a table; 0 when each survivor has a reason."""
    environments.require_pythons([environments.BLENDERS[VERSION], environments.MUTATE])
    python = str(environments.prepare_tests(environments.BLENDERS[VERSION]))
    tool = str(environments.prepare(environments.MUTATE))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _alone():
        _copy()
        package = checks.build(VERSION, FOLDER)
        names = [name for name in SUITES if any(name in PARTS[part] for part in parts)]
        maps = {name: _line_map(name, python, package) for name in names}
        job = {
            "tree": str(TREE),
            "package": str(package),
            "python": python,
            "maps": {name: str(path) for name, path in maps.items()},
            "changed": {name: _changed(name, path) for name, path in maps.items()},
            "files": {file: PARTS[part] for part in parts for file in files_of(part)},
            "session": str(FOLDER / "session.sqlite"),
            "results": str(FOLDER / "results.json"),
            "most": MOST,
            "seed": seed,
            "count": count,
            "again": again,
        }
        written = FOLDER / "job.json"
        written.write_text(json.dumps(job), encoding="utf-8")
        command = [tool, "-m", "devtools.mutation.worker", str(written)]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
        if done.returncode:
            return done.returncode
        return _tell(json.loads(Path(job["results"]).read_text(encoding="utf-8")))


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Two campaigns would change one copy."""
    with open(FOLDER / "lock", "w") as file:
        if os.name == "posix":
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise environments.SetupError("another `dev.py mutate` is running") from None
        yield


def _copy() -> None:
    """What Git knows of the project, and what it would: in a folder where mutants may lie."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    shutil.rmtree(TREE, ignore_errors=True)
    for name in listed.stdout.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file() and not source.is_symlink():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, TREE / name)


# --- which tests run which lines ----------------------------------------------------------------------------


def _line_map(suite: str, python: str, package: Path) -> Path:
    """The line map of a suite for the present code; measured unless that was done.

    Raises:
        SetupError: the tests do not pass as they are.
    """
    path = FOLDER / f"lines-{suite}-{_digest()}.json"
    if path.exists():
        return path
    print(f"[mutate] which lines each test of {SUITES[suite]} runs ({suite})", flush=True)
    flags = ["-P"] if suite == "blender" else []
    options = ["-q", "-m", "not mass", "-p", "line_map", "-p", "no:cacheprovider", "-o", "addopts="]
    command = [python, *flags, "-m", "pytest", SUITES[suite], *options]
    unfinished = path.with_suffix(".part")
    plugins = str(Path(__file__).resolve().parent)
    extra = {"CCD_RIG_ZIP": str(package), "LINE_MAP": str(unfinished), "PYTHONPATH": plugins}
    if checks.run(command, MEASURE_TIMEOUT, {**extra, **environment(suite)}, TREE):
        raise environments.SetupError(f"{SUITES[suite]} must pass before mutants are judged by them")
    content = json.loads(unfinished.read_text(encoding="utf-8"))
    content["folder"], content["environment"] = SUITES[suite], environment(suite)
    content["files"] = _test_files(suite)
    path.write_text(json.dumps(content), encoding="utf-8")
    unfinished.unlink()
    return path


def environment(suite: str) -> dict[str, str]:
    """Variables with which the tests of a suite run."""
    return {"CCD_RIG_KERNEL": "plain"} if suite == "plain" else {}


def _changed(suite: str, path: Path) -> list[str]:
    """Files of tests that are not as they were when lines were mapped."""
    before = json.loads(path.read_text(encoding="utf-8"))["files"]
    return sorted(file for file, digest in _test_files(suite).items() if before.get(file) != digest)


def _test_files(suite: str) -> dict[str, str]:
    return {
        file.relative_to(TREE).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted((TREE / SUITES[suite]).rglob("test_*.py"))
    }


def _digest() -> str:
    """Hash of the product's sources."""
    digest = hashlib.sha256()
    for name in checks.SOURCES:
        for file in sorted((TREE / name).rglob("*.py")) or [TREE / name]:
            digest.update(file.relative_to(TREE).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


# --- what came out ------------------------------------------------------------------------------------------


def _tell(results: list[dict[str, Any]]) -> int:
    """Print survivors and the table; 0 when each survivor has a reason."""
    reasons = {
        (each["file"], each["was"], each["mutant"]): each["reason"]
        for each in json.loads(HARMLESS.read_text(encoding="utf-8"))
    }
    survivors = [each for each in results if each["outcome"] == "survived"]
    known = [each for each in survivors if _key(each) in reasons]
    for each in sorted(survivors, key=lambda each: (each["file"], each["line"])):
        print(f"\n{each['file']}:{each['line']} ({reasons.get(_key(each), each['by'])})")
        print(f"  - {each['was']}\n  + {each['mutant']}")
    folders = collections.defaultdict(collections.Counter)
    for each in results:
        for folder in (each["file"].rpartition("/")[0], "all"):
            folders[folder][each["outcome"]] += 1
    outcomes = ("killed", "timed out", "survived")
    print(f"\n{'':40s}" + "".join(f"{name:>11s}" for name in outcomes))
    for folder in sorted(folders, key=lambda name: (name == "all", name)):
        print(f"{folder:40s}" + "".join(f"{folders[folder][name]:11d}" for name in outcomes))
    noticed = len(results) - len(survivors)
    print(
        f"\n{noticed} of {len(results)} noticed ({100.0 * noticed / max(len(results), 1):.1f} %); "
        f"{len(known)} survivors have a reason in {HARMLESS.relative_to(ROOT)}, "
        f"{len(survivors) - len(known)} have none",
        flush=True,
    )
    return 1 if len(known) < len(survivors) else 0


def _key(result: dict[str, Any]) -> tuple[str, str, str]:
    return result["file"], result["was"], result["mutant"]


if __name__ == "__main__":
    sys.exit("use dev.py mutate")
