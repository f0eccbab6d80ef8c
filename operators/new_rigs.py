# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user has changed in the preferences goes to new rigs and constraints."""

from typing import Any

import bpy

from .. import __package__ as ROOT  # noqa: N812  (Blender's name of the extension)
from ..ccd_rig.blender.properties import overrides


def chosen(context: bpy.types.Context) -> Any:
    """The choices for new rigs; None in a Blender that runs the extension without having it enabled."""
    addon = context.preferences.addons.get(ROOT)
    return None if addon is None else addon.preferences.new_rigs


def names(rig: bpy.types.Object) -> set[str]:
    """The names of a rig's constraints, as they are before others are added."""
    return {row.name for row in rig.ccd_rig.constraints}


def give(context: bpy.types.Context, rig: bpy.types.Object, before: set[str]) -> None:
    """Give new constraints, and a rig whose first ones they are, what the user has changed.

    Args:
        context: has the preferences.
        rig: that has got constraints.
        before: the names of those that it had.
    """
    wanted = chosen(context)
    if wanted is None:
        return
    new = [row for row in rig.ccd_rig.constraints if row.name not in before]
    if wanted.is_property_set("max_extension"):
        for row in new:
            row.max_extension = wanted.max_extension
    if new and not before:
        for group in ("bake", "solver"):
            copy(getattr(wanted, group), getattr(rig.ccd_rig, group))
    overrides.keep(rig)


def copy(source: Any, target: Any) -> None:
    """What is set in one group of properties, and not yet in another that has properties of these names."""
    names = [each.identifier for each in source.bl_rna.properties if not each.is_readonly]
    for name in names:
        if source.is_property_set(name) and not target.is_property_set(name):
            setattr(target, name, getattr(source, name))
