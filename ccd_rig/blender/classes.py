# SPDX-License-Identifier: GPL-3.0-or-later
"""The classes that the files of a folder give to Blender."""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def classes_in(folder: ModuleType) -> list[type]:
    """Those of all files of a folder, by file; inside a file as they stand there."""
    modules = [import_module(f"{folder.__name__}.{each.name}") for each in iter_modules(folder.__path__)]
    return [
        found
        for module in modules
        for name, found in vars(module).items()
        if name.startswith("CCD_RIG_") and isinstance(found, type) and found.__module__ == module.__name__
    ]
