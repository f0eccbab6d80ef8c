# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of the running Blender and of the open file."""

import bpy


def running() -> str:
    """Return the version of the running Blender, such as "4.2.3 LTS"."""
    version: str = bpy.app.version_string
    return version


def newer_than_blender() -> tuple[str, str] | None:
    """Return the file versions of the open file and of this Blender if the file's is newer; else None."""
    saved: tuple[int, ...] = tuple(bpy.data.version)
    here: tuple[int, ...] = tuple(bpy.app.version_file)
    if saved <= here:
        return None
    return ".".join(map(str, saved)), ".".join(map(str, here))
