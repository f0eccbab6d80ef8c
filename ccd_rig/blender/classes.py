# SPDX-License-Identifier: GPL-3.0-or-later
"""Collection of the classes that a package registers in Blender."""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def classes_in(folder: ModuleType) -> list[type]:
    """Return the classes CCD_RIG_* of all modules of a package, in the order of modules and definitions."""
    modules = [import_module(f"{folder.__name__}.{info.name}") for info in iter_modules(folder.__path__)]
    return [
        member
        for module in modules
        for name, member in vars(module).items()
        if name.startswith("CCD_RIG_") and isinstance(member, type) and member.__module__ == module.__name__
    ]
