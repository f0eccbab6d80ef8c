# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages in the language of Blender's preferences.

Blender itself translates registered texts (labels, tooltips, menus) by catalogues that are registered here.
Texts that are composed at run time go through `translated` where they are shown. The command line and files
stay English.
"""

from __future__ import annotations

import re
from pathlib import Path

import bpy

from . import catalogue
from .catalogue import Catalogue

LOCALES = {"de": "de_DE", "es": "es", "fr": "fr_FR", "ja": "ja_JP", "zh_HANS": "zh_HANS"}
"""Files of this folder, and Blender's names of their languages in 4.2 to 5.2."""
LABEL = 48  # [letters] longest label: longer texts are tooltips, which need only the context "*"
INTERFACE, TOOLTIPS, REPORTS = "interface", "tooltips", "reports"
"""Kinds of texts whose translation can be switched off in Blender's preferences."""
CONTEXT = "CCD Rig"
"""Translation context of labels that have another meaning in Blender's catalogues, which take precedence."""
CONTEXTS = ("*", "Operator", CONTEXT)
"""Translation contexts: default, buttons, and ours."""

_catalogues: dict[str, Catalogue] = {}  # by Blender's name of the language, while the extension is enabled


def translated(text: str, kind: str = INTERFACE) -> str:
    """Translate a message to the user's language; unchanged without a catalogue, or by the preferences.

    Args:
        text: the finished English message.
        kind: INTERFACE, TOOLTIPS or REPORTS.
    """
    text, texts = of_bones(text), _catalogues.get(bpy.app.translations.locale)
    if texts is None or not getattr(bpy.context.preferences.view, f"use_translate_{kind}"):
        return text
    return texts.translated(text)


def of_bones(text: str) -> str:
    """An English message of the core in words of the interface, where joints are bones."""
    return re.sub(r"\b([Jj])oint(?= ')", lambda match: "Bone" if match[1] == "J" else "bone", text)


def register() -> None:
    """Read the catalogues and register their texts in Blender."""
    for name, locale in LOCALES.items():
        _catalogues[locale] = Catalogue(catalogue.read(Path(__file__).with_name(f"{name}.json")))
    entries = {
        locale: {
            (context, english): words
            for english, words in texts.exact.items()
            for context in (CONTEXTS if len(english) <= LABEL else CONTEXTS[:1])
        }
        for locale, texts in _catalogues.items()
    }
    bpy.app.translations.register(__package__, entries)


def unregister() -> None:
    """Unregister the texts."""
    bpy.app.translations.unregister(__package__)
    _catalogues.clear()
