# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator has to tell, in the panel that follows it."""

import textwrap

import bpy

WIDTH = 36  # [letters] that a line of the redo panel takes


def draw(layout: bpy.types.UILayout, words: str) -> None:
    """Draw sentences, a line each, broken where the panel ends."""
    lines = layout.box().column(align=True)
    for line in words.splitlines():
        for part in textwrap.wrap(line, WIDTH):
            lines.label(text=part)
