"""Built kernels: kept in `.cache/kernel` by what decides their content, and put into Blender's environments.

Standard library only, and readable by Python 3.9, as `environments`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devtools import environments, kernel
from devtools.environments import ROOT, Environment, SetupError

CACHE = ROOT / ".cache/kernel"
BUILD_TIMEOUT = 1800  # [s] wheels for six systems take minutes
TRIES = 5  # builds, if sources change while they are compiled
C = "c"
KEPT = 8  # builds in the cache, and modules in an environment: of several states of the sources


class CompileError(SetupError):
    """The sources cannot be compiled; the message holds what the compiler says."""


def wheels(targets: Sequence[kernel.Target]) -> list[Path]:
    """Paths of the wheels for some systems, made from the sources as they are.

    The wheel for this machine holds what `module` returns; whoever wants it alone does not wait for others.

    Raises:
        CompileError: the sources cannot be compiled.
    """
    here = kernel.target_of_this_machine()
    files = _built("module") if here in targets else []
    files += _built("wheels") if {*targets} - {here} else []
    return [file for file in files if any(file.name.endswith(f"{each.tag}.whl") for each in targets)]


def module() -> Path:
    """Path of the module for this machine, made from the sources as they are.

    Raises:
        CompileError: the sources cannot be compiled.
    """
    return next(file for file in _built("module") if file.suffix != ".whl")


def variant(name: str) -> Path:
    """Path of a module for this machine that checks what it does: `kernel.VARIANTS`.

    Raises:
        CompileError: the sources cannot be compiled, or there is no compiler for it.
    """
    return _built(name)[0]


def _built(what: str) -> list[Path]:
    for _ in range(TRIES):
        state = kernel.build_hash()
        folder = CACHE / f"{what}-{state}"
        if not folder.is_dir():
            with environments.locked(f"build-{what}"):
                if not folder.is_dir():
                    _build(what, folder, state)
        if folder.is_dir():
            os.utime(folder)  # the last ones used are kept
            return sorted(file for file in folder.rglob(f"{kernel.DISTRIBUTION}*") if file.is_file())
    raise SetupError("the kernel's sources change all the time")


def _build(what: str, folder: Path, state: str) -> None:
    """Make `folder`, unless sources were no longer what they are in `state` at the end."""
    python = environments.prepare(environments.KERNEL)
    # What Cython writes serves all but `bounds`, which has checks in it.
    written = [] if what in (C, "bounds") else _built(C)[:1]
    CACHE.mkdir(parents=True, exist_ok=True)
    print(f"[setup] compiling the kernel: {what}", file=sys.stderr, flush=True)
    scratch = Path(tempfile.mkdtemp(prefix="new-", dir=CACHE))
    try:
        done = subprocess.run(
            [str(python), str(ROOT / "devtools/kernel.py"), what, str(scratch), *map(str, written)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BUILD_TIMEOUT,
            check=False,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        if kernel.build_hash() == state:
            if done.returncode:
                raise CompileError(done.stdout.decode(errors="replace").strip())
            os.rename(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _forget(list(CACHE.glob(f"{what}-*")))


def install(environment: Environment) -> None:
    """Put the module for this machine where an environment's Python finds it.

    Sources that cannot be compiled are told and leave the environment without: the plain modules run.
    """
    packages = _site_packages(environment)
    name = kernel.module_name()
    stamp, wanted = environment.folder / "ready-kernel", kernel.build_hash()
    if stamp.is_file() and stamp.read_text() == wanted and any(packages.glob(f"{name}.*")):
        return
    if kernel.target_of_this_machine() is None:
        return
    try:
        built = module()
    except CompileError as error:
        print(f"{error}\n[setup] {environment.name}: without compiled kernel", file=sys.stderr, flush=True)
        return
    with environments.locked(environment.name):
        new = packages / f"{built.name}.{os.getpid()}"
        shutil.copyfile(built, new)
        os.replace(new, packages / built.name)
        stamp.write_text(wanted)
        _forget(list(packages.glob("ccd_rig_kernel_*")))


def _site_packages(environment: Environment) -> Path:
    if os.name == "nt":
        return environment.folder / "Lib/site-packages"
    return next(environment.folder.glob("lib/python3.*/site-packages"))


def _forget(files: list[Path]) -> None:
    """Remove all but the `KEPT` latest."""
    for file in sorted(files, key=lambda file: file.stat().st_mtime)[:-KEPT]:
        if file.is_dir():
            shutil.rmtree(file, ignore_errors=True)
        else:
            file.unlink()
