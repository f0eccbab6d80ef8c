# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator has to tell, in the panel that follows it.

An operator keeps that as an attribute of its own, which lives as long as the panel. A property would stand in
Blender's Info log with every call, and be one more argument to scripts.
"""

import unicodedata

import bpy

from ..ccd_rig.blender.languages.line_breaks import broken
from ..ccd_rig.blender.languages.translation import translated

WIDTH = 36  # [letters] that a line of the redo panel takes


def draw(layout: bpy.types.UILayout, words: str) -> None:
    """Draw sentences, a line each, broken where the panel ends."""
    lines = layout.box().column(align=True)
    for line in words.splitlines():
        for part in broken(translated(line), lambda text: _width(text) <= WIDTH):
            lines.label(text=part, translate=False)


def _width(text: str) -> int:
    """In letters; signs of Chinese and Japanese are as wide as two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
