"""Virtual environments: one per Blender version, one per version of Blender's type stubs, one for the manual,
one that compiles the kernel, and one per Python with the pip that fills the others.

Standard library only, and readable by Python 3.9: this runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devtools import kernel

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".venv"
INSTALL_TIMEOUT = 1200  # [s] one wheel of Blender is about 370 MB
PROBE_TIMEOUT = 60  # [s] the first import of bpy reads about 1 GB from disk

CONNECTION = "check the connection to PyPI"

TEST_TOOLS = ("pytest==8.4.2", "hypothesis==6.140.3")
MUTATION_TOOLS = ("cosmic-ray==8.7.0",)
DOCS_TOOLS = ("mkdocs==1.6.1", "mkdocs-material==9.8.1", *TEST_TOOLS)
EXTRAS = {
    "bench": ("matplotlib==3.10.7", "scipy==1.16.2"),  # plots; least squares of a peer
    "farm": ("openjd-cli==0.8.0",),  # runs the jobs that tests write
    "coverage": ("coverage==7.10.7", "pytest-cov==7.0.0"),
}
"""Tools that environments with Blender get as they are needed, by purpose."""
LINT_TOOLS = ("ruff==0.13.3", "mypy==2.4.1", "numpy==2.2.6", *TEST_TOOLS)

SOURCE_ONLY = ("yattag",)  # of Python alone, and published without a wheel

# What the wheels of bpy load and a bare Debian or Ubuntu does not have.
SYSTEM_LIBRARIES = {
    "libXrender.so.1": "libxrender1",
    "libXfixes.so.3": "libxfixes3",
    "libXi.so.6": "libxi6",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libSM.so.6": "libsm6",
    "libICE.so.6": "libice6",
    "libGL.so.1": "libgl1",
    "libgomp.so.1": "libgomp1",
    "libXxf86vm.so.1": "libxxf86vm1",
    "libEGL.so.1": "libegl1",
}


class SetupError(Exception):
    """Something the machine lacks; the message is one line that says what to install."""


@dataclass(frozen=True)
class Environment:
    """Virtual environment: a folder in `.venv`, its Python and its packages."""

    name: str
    pythons: tuple[str, ...]  # accepted minor versions, the preferred one first
    requirements: tuple[str, ...]
    probe: str  # a statement that must run in it
    with_headers: bool = False  # whether Python's own C headers must be there

    @property
    def folder(self) -> Path:
        return VENVS / self.name

    @property
    def python(self) -> Path:
        """Path of the interpreter inside the environment."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def stamp(self) -> str:
        """Hash of everything that decides what the finished folder holds."""
        return hashlib.sha256(repr((self.pythons, self.requirements)).encode()).hexdigest()

    def is_ready(self) -> bool:
        file = self.folder / "ready"
        return self.python.exists() and file.is_file() and file.read_text() == self.stamp


def _blender(name: str, bpy: str, python: str, numpy: str) -> Environment:
    return Environment(name, (python,), (f"bpy=={bpy}", numpy, *TEST_TOOLS), "import bpy, mathutils, pytest")


def _lint(name: str, stubs: str) -> Environment:
    return Environment(f"lint-{name}", ("3.11", "3.13"), (stubs, *LINT_TOOLS), "import mypy, numpy, pytest")


# The oldest and the newest supported release of Blender come first and last.
BLENDERS = {
    e.name: e
    for e in (
        _blender("4.2", "4.2.23", "3.11", "numpy==1.26.4"),
        _blender("4.5", "4.5.15", "3.11", "numpy==1.26.4"),
        _blender("5.0", "5.0.1", "3.11", "numpy==1.26.4"),
        _blender("5.2", "5.2.3", "3.13", "numpy>=2.2,<3"),
    )
}
LINTS = {
    "4.2": _lint("4.2", "fake-bpy-module-4.2==20260730"),
    "5.2": _lint("5.2", "fake-bpy-module-5.2==20260730"),
}

KERNEL = Environment("kernel", ("3.11", "3.13"), kernel.TOOLS, "import Cython, ziglang", with_headers=True)
DOCS = Environment("docs", ("3.11", "3.13"), DOCS_TOOLS, "import material, mkdocs, pytest")
MUTATE = Environment("mutate", ("3.11", "3.13"), MUTATION_TOOLS, "import parso, cosmic_ray.plugins")
PIPS = {version: Environment(f"pip-{version}", (version,), (), "import pip") for version in ("3.11", "3.13")}
"""What installs into all others, by version of Python: to make a pip for each takes five seconds."""


def prepare(environment: Environment, *purposes: str) -> Path:
    """Make the environment unless it is ready, and return its interpreter.

    Environments with Blender get the kernel, compiled from the present sources.

    Args:
        environment: what is made.
        purposes: keys of `EXTRAS`, whose tools are added on their first use. They are no part of its
            requirements: whoever does not use them does not wait for them.

    Raises:
        SetupError: a Python, a system library or a package is missing and could not be installed.
    """

    def lacking() -> list[str]:
        stamps = {purpose: environment.folder / f"ready-{purpose}" for purpose in purposes}
        return [p for p, file in stamps.items() if not file.is_file() or file.read_text() != repr(EXTRAS[p])]

    if not environment.is_ready() or lacking():
        with locked(environment.name):
            if not environment.is_ready():  # another process may have made it while we waited
                _build(environment, purposes)
            elif added := lacking():
                print(f"[setup] {environment.name}: {' '.join(added)}", flush=True)
                _install(environment, added)
    if environment.name in BLENDERS:
        from devtools import compiled

        compiled.install(environment)
    return environment.python


def require_pythons(wanted: Iterable[Environment]) -> None:
    """See that each environment is there or can be made: a Python that is missing shows before downloads.

    Raises:
        SetupError: a Python is missing and could not be installed.
    """
    for environment in wanted:
        if not environment.is_ready():
            find_python(environment.pythons)


def _build(environment: Environment, purposes: Sequence[str]) -> None:
    base = find_python(environment.pythons, environment.with_headers)
    if "bpy" in environment.probe:
        install_system_libraries()
    print(f"[setup] {environment.name}: {base} + {' '.join(environment.requirements)}", flush=True)
    shutil.rmtree(environment.folder, ignore_errors=True)
    hint = f"{base} could not make a virtual environment"
    without = ["--without-pip"] if environment.requirements else []
    run_quietly([base, "-m", "venv", *without, str(environment.folder)], hint, INSTALL_TIMEOUT)
    if environment.requirements:
        _install(environment, purposes)
    hint = f"{environment.name} was installed but does not start: a system library may be missing"
    run_quietly([str(environment.python), "-c", environment.probe], hint, PROBE_TIMEOUT)
    (environment.folder / "ready").write_text(environment.stamp)


def _install(environment: Environment, purposes: Sequence[str]) -> None:
    """Install the requirements and the tools of some purposes."""
    # Tools and requirements in one call: what is there already keeps its version, such as Blender's NumPy.
    packages = [*(tool for purpose in purposes for tool in EXTRAS[purpose]), *environment.requirements]
    configuration = (environment.folder / "pyvenv.cfg").read_text()
    (version,) = re.findall(r"^version = (\d+\.\d+)", configuration, re.MULTILINE)
    pip = [str(prepare(PIPS[version])), "-m", "pip", "--disable-pip-version-check", "-q"]
    # Python compiles what it imports, which is little of what is installed.
    install = ["install", "--no-compile", "--progress-bar=off", "--retries=5"]
    binary = ["--only-binary=:all:", *(f"--no-binary={name}" for name in SOURCE_ONLY)]
    run_quietly(
        [*pip, "--python", str(environment.python), *install, *binary, *packages],
        f"could not install {packages[0]} and its tools: {CONNECTION}",
        INSTALL_TIMEOUT,
    )
    for purpose in purposes:
        (environment.folder / f"ready-{purpose}").write_text(repr(EXTRAS[purpose]))


def run_quietly(command: list[str], complaint: str, timeout: float, **extra: str) -> None:
    """Run a command; show its output only when it fails, then raise `complaint`.

    Args:
        command: program and arguments.
        complaint: words of the error.
        timeout: seconds.
        extra: environment variables beside our own.
    """
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **extra},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"{complaint} (no answer within {timeout:.0f} s)") from error
    if done.returncode:
        sys.stderr.write(done.stdout.decode(errors="replace")[-4000:])
        raise SetupError(complaint)


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Keep two runs of dev.py from building the same thing."""
    VENVS.mkdir(exist_ok=True)
    with open(VENVS / f"lock-{name}", "w") as file:
        if os.name == "posix":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


# --- Python


def find_python(versions: tuple[str, ...], with_headers: bool = False) -> str:
    """Path of a Python of one of `versions` that really runs and can make virtual environments.

    Args:
        versions: minor versions, the preferred one first.
        with_headers: whether it must have C headers, too.

    Raises:
        SetupError: there is none and none could be installed.
    """
    # Debian keeps ensurepip and headers in packages of their own.
    modules = ("venv", "dev") if with_headers else ("venv",)
    for version in versions:
        if (python := _complete(version, modules)) is not None:
            return python
    for version in versions:
        if not has_python((version,)):
            continue
        packages = [f"python{version}-{part}" for part in modules]
        if install_debian_packages(packages) and (python := _complete(version, modules)) is not None:
            return python
        raise SetupError(
            f"Python {version} lacks {' or '.join(modules)}: install {' and '.join(packages)} (Debian, "
            "Ubuntu)"
        )
    wanted = " or ".join(versions)
    raise SetupError(f"Python {wanted} not found: install it from python.org, pyenv or uv and put it on PATH")


def _complete(version: str, modules: tuple[str, ...]) -> str | None:
    """Path of the first Python of a version that lacks none of `modules`."""
    for candidate in _candidates(version):
        lacks = _probe(candidate, version)
        if lacks is not None and lacks.isdisjoint(modules):
            return candidate
    return None


def has_python(versions: tuple[str, ...]) -> bool:
    """Whether a Python of one of `versions` is on this machine."""
    return any(_probe(c, v) is not None for v in versions for c in _candidates(v))


def _candidates(version: str) -> Iterator[str]:
    """Every place where this version of Python is usually found, each path once."""
    name = f"python{version}" + (".exe" if os.name == "nt" else "")
    paths = []
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        paths.append(Path(sys.executable))
    paths += [Path(folder) / name for folder in os.get_exec_path()]
    home = Path.home()
    for parent, pattern in (
        (home / ".pyenv/versions", f"{version}*/bin"),
        (home / ".local/share/uv/python", f"cpython-{version}*/bin"),
        (Path("/opt"), "*/bin"),
        (Path("/opt/python"), "*/bin"),
        (Path("/opt/hostedtoolcache/Python"), f"{version}*/x64/bin"),
    ):
        paths += [folder / name for folder in sorted(parent.glob(pattern))]
    paths += [Path("/usr/bin") / name, Path("/usr/local/bin") / name]
    if os.name == "nt":
        local = Path(os.environ.get("LOCALAPPDATA", "")) / "Programs/Python"
        paths.append(local / ("Python" + version.replace(".", "")) / "python.exe")
    for path in dict.fromkeys(paths):
        if path.is_file():
            yield str(path)


def _probe(candidate: str, version: str) -> set[str] | None:
    """Return the missing ones of 'venv' and 'dev' (headers); None for a shim or a broken install."""
    code = (
        "import os, sys, sysconfig, importlib.util as u\n"
        "header = os.path.join(sysconfig.get_path('include'), 'Python.h')\n"
        "print(*sys.version_info[:2], sep='.', end='.\\n')\n"
        "print('' if u.find_spec('ensurepip') else 'venv', '' if os.path.exists(header) else 'dev')"
    )
    try:
        done = subprocess.run(
            [candidate, "-c", code], capture_output=True, text=True, timeout=PROBE_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode or not done.stdout.startswith(version + "."):
        return None
    return set(done.stdout.splitlines()[1].split())


# --- System packages


def install_system_libraries() -> None:
    """See that the libraries bpy loads are there; as root on Debian install the missing ones.

    Raises:
        SetupError: some are missing.
    """
    missing = _missing_libraries()
    if not missing:
        return
    packages = [SYSTEM_LIBRARIES[library] for library in missing]
    if not install_debian_packages(packages) or _missing_libraries():
        raise SetupError(
            f"missing system libraries {' '.join(missing)}: sudo apt-get install {' '.join(packages)}"
        )


def _missing_libraries() -> list[str]:
    if not sys.platform.startswith("linux"):
        return []  # the wheels for Windows and macOS bring what they load
    code = "import ctypes, sys\nfor n in sys.argv[1:]:\n try: ctypes.CDLL(n)\n except OSError: print(n)"
    done = subprocess.run(
        [sys.executable, "-c", code, *SYSTEM_LIBRARIES], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def install_debian_packages(packages: list[str]) -> bool:
    """Install packages where apt-get and root's rights are at hand; whether that was done."""
    apt = shutil.which("apt-get")
    if apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return False
    print(f"[setup] apt-get install {' '.join(packages)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = [apt, "install", "-y", "-q", "--no-install-recommends", *packages]
    with locked("apt"):
        for command in (install, [apt, "update", "-q"], install):  # package lists may be missing or stale
            done = subprocess.run(
                command, env=environment, capture_output=True, timeout=INSTALL_TIMEOUT, check=False
            )
            if command is install and done.returncode == 0:
                return True
    sys.stderr.write((done.stdout + done.stderr).decode(errors="replace")[-4000:])
    return False
