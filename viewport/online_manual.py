# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the manual is, and which entry of its reference is about a command or a field of ours."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bpy

FOLDER = Path(__file__).resolve().parents[1] / "manual"
"""The manual of this very version, built by `python3 dev.py docs`; the extension's package holds it."""

BASE = f"{FOLDER.as_uri()}/"
"""The manual's address: pages on disk, read without a network."""

HOME = f"{BASE}index.html"

OURS = "CCD_RIG_PG_"


def groups() -> Iterator[Any]:
    """The definition of each group of properties on objects and bones, and of those of the preferences."""
    stored = [bpy.types.Object.bl_rna.properties["ccd_rig"], bpy.types.PoseBone.bl_rna.properties["ccd_rig"]]
    found: list[Any] = [each.fixed_type for each in stored]
    found.append(bpy.types.AddonPreferences.bl_rna_get_subclass_py("CCD_RIG_preferences").bl_rna)
    seen = set()
    while found:
        group = found.pop(0)
        if group.identifier in seen:
            continue
        seen.add(group.identifier)
        yield group
        found += [
            each.fixed_type
            for each in group.properties
            if each.type in {"POINTER", "COLLECTION"} and each.fixed_type.identifier.startswith(OURS)
        ]


def fields(group: Any) -> list[Any]:
    """The fields of a group, or of a command, that the manual has.

    That is all but those that are hidden, what Blender gives to all groups, and groups inside the group.
    """
    inherited = set() if group.base is None else {each.identifier for each in group.base.properties}
    own = {each.identifier: each for each in group.properties}  # a name that is defined anew comes last
    return [
        each
        for name, each in own.items()
        if name != "rna_type"
        and not each.is_hidden
        and (name not in inherited or "script" not in each.description)
        and not (each.type in {"POINTER", "COLLECTION"} and each.fixed_type.identifier.startswith(OURS))
    ]


def anchor(group: str, name: str = "") -> str:
    """The name of a group's entry on the page of settings or, with `name`, of one of its fields' entries."""
    kind = group.removeprefix(OURS).removeprefix("CCD_RIG_").replace("_", "-")
    return f"{kind}-{name}" if name else kind


def addresses() -> tuple[str, list[tuple[str, str]]]:
    """What Blender asks for: the manual's address; per command and field its name and the entry's address.

    Blender compares names in lower case.
    """
    found = [(f"bpy.ops.ccd_rig.{name}", f"reference/operators.html#{name}") for name in dir(bpy.ops.ccd_rig)]
    for group in groups():
        for each in fields(group):
            address = f"reference/settings.html#{anchor(group.identifier, each.identifier)}"
            found.append((f"bpy.types.{group.identifier}.{each.identifier}".lower(), address))
    return BASE, found


def register() -> None:
    """Tell Blender where the manual is."""
    bpy.utils.register_manual_map(addresses)


def unregister() -> None:
    """Take that back."""
    bpy.utils.unregister_manual_map(addresses)
