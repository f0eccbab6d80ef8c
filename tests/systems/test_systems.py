"""The kernel compiled for other systems starts there, and gives the same bits as here in recorded calls."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ccd_rig import kernel
from devtools import compiled, systems
from devtools.environments import ROOT
from devtools.kernel import TARGETS

RECORDED = (
    "core/limits/batch",
    "core/skeleton/test_builders.py",
    "core/solvers/test_limbs.py",
    "core/solvers/test_retarget_runs.py",
    "core/solvers/test_springs.py",
    "core/test_kernel_bad_tables.py",
    "core/test_kernel_both_ways.py",
    "core/test_kernel_slopes.py",
    "core/test_kernel_targets.py",
    "core/test_poles.py",
)
"""Tests that call each entry of the kernel, and give it what it refuses."""


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The calls of `RECORDED`, made by the kernel of this machine."""
    file = tmp_path_factory.mktemp("calls") / "calls"
    paths = os.pathsep.join((str(ROOT / "devtools/plugins"), str(ROOT)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "kernel_calls", "-m", "not mass"]
    subprocess.run(
        [*command, *(f"tests/{name}" for name in RECORDED)],
        cwd=ROOT,
        env={**os.environ, "CCD_RIG_CALLS": str(file), "PYTHONPATH": paths},
        check=True,
    )
    return file


@pytest.mark.parametrize("system", systems.SYSTEMS, ids=lambda system: system.tag)
def test_kernel_of_another_system_gives_the_same_bits(
    system: systems.System, calls: Path, tmp_path: Path
) -> None:
    (wheel,) = compiled.wheels([target for target in TARGETS if target.tag == system.tag])
    with zipfile.ZipFile(wheel) as files:
        files.extractall(tmp_path)
    lines = systems.run(system, str(ROOT / "tests/systems/replay.py"), str(tmp_path), str(calls)).splitlines()
    *counts, last = [line.split() for line in lines]
    assert last[0] == "0", lines
    assert sum(int(count) for count, _ in counts) == int(last[2])
    entries = {name for _, names in kernel.ENTRIES for name in names if callable(getattr(kernel, name))}
    assert {name for _, name in counts} == entries
