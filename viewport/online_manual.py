# SPDX-License-Identifier: GPL-3.0-or-later
"""Address of the manual, and of its entries about commands and properties of the extension."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bpy

FOLDER = Path(__file__).resolve().parents[1] / "manual"
"""Manual of this version, built by `python3 dev.py docs`; the extension's package contains it."""

BASE = f"{FOLDER.as_uri()}/"
"""Address of the pages on disk, which need no network."""

HOME = f"{BASE}index.html"

OURS = "CCD_RIG_PG_"


def groups() -> Iterator[Any]:
    """Yield the definitions of property groups of objects, bones and preferences, nested ones too."""
    owners = (bpy.types.Object, bpy.types.PoseBone)
    pending: list[Any] = [owner.bl_rna.properties["ccd_rig"].fixed_type for owner in owners]
    pending.append(bpy.types.AddonPreferences.bl_rna_get_subclass_py("CCD_RIG_preferences").bl_rna)
    seen = set()
    while pending:
        group = pending.pop(0)
        if group.identifier in seen:
            continue
        seen.add(group.identifier)
        yield group
        pending += [prop.fixed_type for prop in group.properties if _is_group(prop)]


def _is_group(prop: Any) -> bool:
    return prop.type in {"POINTER", "COLLECTION"} and prop.fixed_type.identifier.startswith(OURS)


def fields(group: Any) -> list[Any]:
    """Properties of a group or command in the manual: not hidden, not Blender's, and no nested groups."""
    inherited = set() if group.base is None else {prop.identifier for prop in group.base.properties}
    properties = {prop.identifier: prop for prop in group.properties}  # a redefinition comes last
    return [
        prop
        for name, prop in properties.items()
        if name not in ("rna_type", "bl_idname")
        and not prop.is_hidden
        and (name not in inherited or "script" not in prop.description)
        and not _is_group(prop)
    ]


def anchor(group: str, name: str = "") -> str:
    """Return the anchor of a group on the page of settings or, with `name`, of one of its properties."""
    kind = group.removeprefix(OURS).removeprefix("CCD_RIG_").replace("_", "-")
    return f"{kind}-{name}" if name else kind


def addresses() -> tuple[str, list[tuple[str, str]]]:
    """Return the map for Blender: base address, and (name in lower case, page and anchor) of each entry."""
    entries = [
        (f"bpy.ops.ccd_rig.{name}", f"reference/operators.html#{name}") for name in dir(bpy.ops.ccd_rig)
    ]
    for group in groups():
        for prop in fields(group):
            address = f"reference/settings.html#{anchor(group.identifier, prop.identifier)}"
            entries.append((f"bpy.types.{group.identifier}.{prop.identifier}".lower(), address))
    return BASE, entries


def register() -> None:
    """Register the map of the manual."""
    bpy.utils.register_manual_map(addresses)


def unregister() -> None:
    """Unregister the map of the manual."""
    bpy.utils.unregister_manual_map(addresses)
