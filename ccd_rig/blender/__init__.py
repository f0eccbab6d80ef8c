# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the package that imports bpy, and its registration. Imports are inside the functions."""

from collections.abc import Sequence
from typing import Any

_commands: list[Any] = []  # handle of the registered command, needed to unregister it


def other_copy(package: str) -> str:
    """Return the package of another copy of the extension that is registered; empty if there is none."""
    from bpy import types

    known = types.PropertyGroup.bl_rna_get_subclass_py("CCD_RIG_PG_armature", None)
    module = "" if known is None else known.__module__
    return "" if module.startswith(f"{package}.") else module.partition(".ccd_rig.blender.")[0]


def _modules() -> tuple[Any, ...]:
    """Return the modules that register something, in order."""
    from . import listening
    from .bake import settings
    from .properties import armature_data

    return settings, armature_data, listening


def register() -> None:
    """Register properties and the command line, and wait for the first use."""
    from bpy import utils

    from .properties import retarget_group

    for module in _modules():
        module.register()
    retarget_group.shows.append(_show_retargeted)
    _commands.append(utils.register_cli_command("ccd_rig", _run_command))


def unregister() -> None:
    """Unregister everything in reverse order."""
    from bpy import utils

    from .properties import retarget_group

    utils.unregister_cli_command(_commands.pop())
    retarget_group.shows.remove(_show_retargeted)
    for module in reversed(_modules()):
        module.unregister()


def _run_command(argv: Sequence[str]) -> int:
    from .cli import command_line

    return command_line.main(argv)


def _show_retargeted(target: Any) -> None:
    from .retarget import retarget

    retarget.show(target)
