"""Tests in a real Blender window: Debian's own Blender in a folder (chroot), on a virtual screen.

The wheels of bpy have no window. Debian sid ships the newest Blender, so a minimal sid with it is put
together once below `.cache`. That needs Debian's tools and root's rights, but no mounts: it works inside a
plain container.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from concurrent.futures import Future
from pathlib import Path

from devtools import checks, environments
from devtools.environments import ROOT, SetupError

SUITE = "sid"
FOLDER = ROOT / ".cache/window-root"
PACKAGES = (
    *("blender", "python3-numpy", "python3-requests", "python3-zstandard", "python3-cattr"),
    *("python3-pytest", "python3-hypothesis", "xvfb", "xauth", "xdotool", "imagemagick"),
    *("libgl1", "libglx-mesa0", "libgl1-mesa-dri", "libegl1", "libegl-mesa0", "mesa-vulkan-drivers"),
)
STEP_TIMEOUT = 900  # [s] debootstrap, or Blender and its 300 packages, on a slow mirror
IN_PROGRAM = (
    "cli",
    "farm",
    "keys",
    "live",
    "properties",
    "viewport",
    "test_grey.py",
    "test_idle.py",
    "test_kernel.py",
    "test_lifecycle.py",
    "test_odd_files.py",
    "test_operators.py",
    "test_panels.py",
    "test_readme.py",
    "test_undo_and_redo.py",
)
"""What of tests/blender runs in the program as well as on the wheel of the same version: how it starts, takes
commands, keeps preferences, saves, undoes and redraws. Poses are worked out alike, and the wheel alone runs
tests marked `mass`."""
FIRST_SCREEN = 90  # number of the first virtual screen
RUN = "suite"  # the folder inside the chroot that belongs to one run
RESULT = FOLDER / RUN / "result.json"
"""How the run of pytest inside Blender ended: Blender ends with 0 even when the script never ran."""
INSIDE = "tests/blender inside Debian's Blender"
NEED = "window"
"""What `checks.prepared` calls the folder with a run's files."""


def test(version: str, pytest_arguments: list[str]) -> int:
    """Run `IN_PROGRAM` of tests/blender inside Debian's Blender, and tests/window in its window; 0 when all
    passed."""
    runs = suites(version, pytest_arguments)
    needs = {name for suite in runs for name in suite.needs}
    with checks.prepared(needs, version) as ready:
        failed = checks.run_all(runs, ready)
    return checks.verdict([*failed, *unfinished(runs, failed)], "window tests")


def suites(version: str, pytest_arguments: list[str]) -> list[checks.Suite]:
    """The runs of `test`: one for each file of tests/window, the longest script first, with a folder and a
    screen of its own; and beside the first, which waits most of its time, that inside Blender."""
    chosen = [a for a in pytest_arguments if a.startswith("tests/window/")]
    options = [a for a in pytest_arguments if not a.startswith("tests/")]
    needs = (version, checks.ZIP, NEED)
    visits = []
    files = chosen or ([] if pytest_arguments else list(map(str, _window_tests())))
    for number, file in enumerate(files):
        places = {
            "CCD_RIG_WINDOW_ROOT": str(FOLDER),
            "CCD_RIG_VISIT": f"visit{number}",
            "CCD_RIG_SCREEN": str(FIRST_SCREEN + number),
        }
        command = [str(environments.BLENDERS[version].python), "-m", "pytest", file, *options]
        visits.append(checks.Suite(file, command, needs, places, waits=True))
    if pytest_arguments and all(a.startswith(("tests/window", "-")) for a in pytest_arguments):
        return visits
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/games",
        "HOME": f"/{RUN}/home",
        "TMPDIR": f"/{RUN}/tmp",
        "LANG": "C.UTF-8",
        "BLENDER_USER_RESOURCES": f"/{RUN}/user",
        "CCD_RIG_ZIP": f"/{RUN}/ccd_rig.zip",
        "CCD_RIG_RESULT": f"/{RESULT.relative_to(FOLDER)}",
    }
    assignments = [f"{name}={value}" for name, value in environment.items()]
    command = ["chroot", str(FOLDER), "env", "-i", *assignments, "blender", "--background"]
    command += ["--python", f"/{RUN}/project/tests/run_in_blender.py", "--"]
    command += pytest_arguments or [*(f"tests/blender/{name}" for name in IN_PROGRAM), "-m", "not mass"]
    return [*visits[:1], checks.Suite(INSIDE, command, (checks.ZIP, NEED)), *visits[1:]]


def unfinished(runs: list[checks.Suite], failed: list[str]) -> list[str]:
    """Name of the run inside Blender, if it is one of `runs`, did not fail, and did not come to its end."""
    if INSIDE in failed or all(suite.name != INSIDE for suite in runs):
        return []
    if RESULT.is_file() and json.loads(RESULT.read_text())["exit"] == 0:
        return []
    print(f"dev.py: {INSIDE}: Blender ended before the tests did", file=sys.stderr)
    return [INSIDE]


def prepare_run(package: Future[Path | None]) -> None:
    """Make the folder with Debian's Blender, and in it that of a run, with the tests and the package.

    Raises:
        SetupError: as `prepare`.
    """
    prepare()
    run, package_file = FOLDER / RUN, package.result()
    assert package_file is not None
    shutil.rmtree(run, ignore_errors=True)
    for folder in ("user", "home", "tmp"):
        (run / folder).mkdir(parents=True)
    shutil.copytree(ROOT / "tests", run / "project/tests", ignore=shutil.ignore_patterns("__pycache__"))
    # Tests run the examples of the README and of docs/.
    for file in (ROOT / "pyproject.toml", ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        copy = run / "project" / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
    shutil.copy2(package_file, run / "ccd_rig.zip")


def _window_tests() -> list[Path]:
    tests = (ROOT / "tests/window").glob("test_*.py")
    return [file.relative_to(ROOT) for file in sorted(tests, key=_script_size, reverse=True)]


def _script_size(test: Path) -> int:
    """Size of the script that a test drives, as an estimate of its time."""
    (script,) = re.findall(r'^SCRIPT = "(.+)"$', test.read_text(encoding="utf-8"), re.MULTILINE)
    return test.with_name(script).stat().st_size


def prepare() -> None:
    """Make the folder with Debian's Blender unless it is there.

    Raises:
        SetupError: this is not Debian, we are not root, or a step of the installation failed.
    """
    with environments.locked("window"):
        _prepare()


def _prepare() -> None:
    stamp = FOLDER / "ready"
    wanted = json.dumps([SUITE, PACKAGES])
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    if shutil.which("apt-get") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        raise SetupError(
            "the window tests need root on Debian: they put Debian's Blender into a folder with debootstrap"
        )
    if shutil.which("debootstrap") is None and not environments.install_debian_packages(["debootstrap"]):
        raise SetupError("debootstrap could not be installed: apt-get install debootstrap")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.parent.mkdir(exist_ok=True)
    folder = str(FOLDER)
    print(f"[setup] Debian {SUITE} with Blender in {FOLDER.relative_to(ROOT)}: about two minutes", flush=True)
    _step(["debootstrap", "--variant=minbase", SUITE, folder, mirror()])
    # No service may start in there, and a snapshot's package lists may be older than apt likes.
    policy = FOLDER / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    (FOLDER / "etc/apt/apt.conf.d/99novalid").write_text('Acquire::Check-Valid-Until "false";\n')
    apt = ["chroot", folder, "apt-get", "-o", "Acquire::Retries=5"]
    _step([*apt, "update"])
    _step([*apt, "install", "-y", "--no-install-recommends", *PACKAGES])
    _step([*apt, "clean"])
    stamp.write_text(wanted)


def mirror() -> str:
    """The Debian mirror this machine uses."""
    for line in _source_lines():
        words = line.split()
        if words[:1] == ["URIs:"]:
            return words[1]
        if words[:1] == ["deb"]:
            return next(word for word in words[1:] if "://" in word)
    return "http://deb.debian.org/debian"


def _source_lines() -> list[str]:
    files = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
    return [line for file in files if file.is_file() for line in file.read_text().splitlines()]


def _step(command: list[str]) -> None:
    locale = {"DEBIAN_FRONTEND": "noninteractive", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    environments.run_quietly(command, f"failed: {' '.join(command[:6])} ...", STEP_TIMEOUT, **locale)
