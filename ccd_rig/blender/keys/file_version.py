# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the open file is one that this Blender knows all of."""

import bpy


def newer_than_blender() -> tuple[str, str] | None:
    """The file versions of the open file and of this Blender, if the file's is the newer one; else None."""
    saved: tuple[int, ...] = tuple(bpy.data.version)
    here: tuple[int, ...] = tuple(bpy.app.version_file)
    if saved <= here:
        return None
    return ".".join(map(str, saved)), ".".join(map(str, here))
