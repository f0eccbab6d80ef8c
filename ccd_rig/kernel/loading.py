"""Find the compiled module that belongs to the sources, or say in one line why there is none."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from pathlib import Path
from types import ModuleType

from .fingerprint import PREFIX, module_name

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
