# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Blender this is, and which one saved the open file."""

from __future__ import annotations

import bpy


def running() -> str:
    """Such as "4.2.3 LTS"."""
    version: str = bpy.app.version_string
    return version


def newer_than_running() -> str:
    """The version that saved the open file, such as "5.2", if that is newer than this one; else nothing.

    Releases with the same first two numbers read each other's files.
    """
    saved = tuple(bpy.data.version[:2])
    return ".".join(map(str, saved)) if saved > tuple(bpy.app.version[:2]) else ""
