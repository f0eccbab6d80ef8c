"""Sources of the compiled kernel, the name of the module made of them, and its import.

Standard library only, and readable by Python 3.9: the tools that build the kernel load this file by itself.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import sys
from pathlib import Path
from types import ModuleType

PREFIX = "ccd_rig_kernel_"
LEFT_OUT = ("__init__.py", "loading.py", "plain.py")
"""Modules that are not compiled."""


def source_files(folder: Path) -> list[Path]:
    """Modules that are compiled, and the files with their C types, by name."""
    files = [file for file in folder.iterdir() if file.suffix in (".py", ".pxd")]
    return sorted((file for file in files if file.name not in LEFT_OUT), key=lambda file: file.name)


def fingerprint(folder: Path) -> str:
    """Hash of all sources, 12 hexadecimal digits; ends of lines do not count."""
    digest = hashlib.sha256()
    for file in source_files(folder):
        content = file.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{file.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def module_name(folder: Path) -> str:
    """The name of the module compiled from these sources.

    Modules of other sources have other names. Two versions never meet: neither in a Blender that runs during
    an update, nor where Windows keeps a file that is in use.
    """
    return PREFIX + fingerprint(folder)


SWITCH = "CCD_RIG_KERNEL"
"""The environment variable that forces the plain modules, with the value `plain`."""


def load(folder: Path) -> tuple[ModuleType | None, str]:
    """The module that was compiled from the sources in `folder`, or None and the reason."""
    if os.environ.get(SWITCH) == "plain":
        return None, "CCD_RIG_KERNEL is 'plain': solving is slower"
    name = module_name(folder)
    try:
        try:
            return importlib.import_module(name), ""
        except ModuleNotFoundError:
            importlib.invalidate_caches()  # it may have been installed since its folder was read
            return importlib.import_module(name), ""
    except ModuleNotFoundError:
        if any(any(Path(each).glob(f"{PREFIX}*")) for each in sys.path if each):
            return None, "The compiled kernel is of another version, so solving is slower: restart Blender"
        system_name = " ".join((platform.system(), platform.machine()))
        return None, f"This package has no compiled kernel for '{system_name}': solving is slower"
    except ImportError as error:
        return None, f"The compiled kernel does not start ('{error}'): solving is slower"
