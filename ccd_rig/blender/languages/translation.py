# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages in the language that the user has chosen in Blender's preferences.

Blender itself translates what is registered (labels, tooltips, menus) with the catalogues that it is given
here. What is put together while Blender runs goes through `translated` where a person gets to see it; the
command line and files stay English.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import bpy

from . import catalogue
from .catalogue import Catalogue

LOCALES = {"de": "de_DE", "es": "es", "fr": "fr_FR", "ja": "ja_JP", "zh_HANS": "zh_HANS"}
"""Files of this folder and what Blender calls their languages, 4.2 to 5.2 alike."""
LABEL = 48  # [letters] that a label may have: longer texts are tooltips, which Blender looks up anywhere
INTERFACE, TOOLTIPS, REPORTS = "interface", "tooltips", "reports"
"""What Blender's preferences let a user choose to have translated."""
CONTEXT = "CCD Rig"
"""Of labels whose word means something else in Blender's own catalogues, which come before others."""
CONTEXTS = ("*", "Operator", CONTEXT)
"""Where Blender looks texts up: anywhere, on buttons, and where we say so."""

_catalogues: dict[str, Catalogue] = {}  # by Blender's name of the language, while the extension is enabled


def translated(text: str, what: str = INTERFACE) -> str:
    """A message in the user's language; English where there is no other, or where the user wants it so.

    Args:
        text: the finished English message.
        what: INTERFACE, TOOLTIPS or REPORTS.
    """
    own = _catalogues.get(bpy.app.translations.locale)
    if own is None or not getattr(bpy.context.preferences.view, f"use_translate_{what}"):
        return text
    return own.translated(text)


def register() -> None:
    """Read the catalogues and hand Blender what it translates by itself."""
    for name, locale in LOCALES.items():
        _catalogues[locale] = Catalogue(catalogue.read(Path(__file__).with_name(f"{name}.json")))
    bpy.app.translations.register(
        __package__, {locale: dict(_entries(own)) for locale, own in _catalogues.items()}
    )


def _entries(own: Catalogue) -> Iterator[tuple[tuple[str, str], str]]:
    """What Blender translates by itself, as it wants it: (context, English) and the words."""
    for english, words in own.exact.items():
        for context in CONTEXTS if len(english) <= LABEL else CONTEXTS[:1]:
            yield (context, english), words


def unregister() -> None:
    """Take everything away again."""
    bpy.app.translations.unregister(__package__)
    _catalogues.clear()
