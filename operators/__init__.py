# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user can do: one file per verb. Imports stand inside the functions: nothing loads early."""


def _classes() -> list[type]:
    """The operators of all files here."""
    from importlib import import_module
    from pkgutil import iter_modules

    modules = [import_module(f"{__package__}.{each.name}") for each in iter_modules(__path__)]
    return [
        found
        for module in modules
        for name, found in vars(module).items()
        if name.startswith("CCD_RIG_OT_") and found.__module__ == module.__name__
    ]


def register() -> None:
    """Make the operators known to Blender."""
    import bpy

    for operator in _classes():
        bpy.utils.register_class(operator)


def unregister() -> None:
    """Take them away again."""
    import bpy

    for operator in reversed(_classes()):
        bpy.utils.unregister_class(operator)
