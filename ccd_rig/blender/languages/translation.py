# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages in the language of Blender's preferences.

Blender itself translates registered texts (labels, tooltips, menus) by catalogues that are registered here.
Texts that are composed at run time go through `translated` where they are shown. The command line and files
stay English. A catalogue is read when its language is in use: that of the preferences, as it changes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import bpy

if TYPE_CHECKING:
    from .catalogue import Catalogue

LOCALES = {"de": "de_DE", "es": "es", "fr": "fr_FR", "ja": "ja_JP", "zh_HANS": "zh_HANS"}
"""Files of this folder, and Blender's names of their languages in 4.2 to 5.2."""
FONT = 0  # the font of Blender's interface
LABEL = 48  # [letters] longest label: longer texts are tooltips, which need only the context "*"
INTERFACE, TOOLTIPS, REPORTS = "interface", "tooltips", "reports"
"""Kinds of texts whose translation can be switched off in Blender's preferences."""
CONTEXT = "CCD Rig"
"""Translation context of labels that have another meaning in Blender's catalogues, which take precedence."""
CONTEXTS = ("*", "Operator", CONTEXT)
"""Translation contexts: default, buttons, and ours."""


class _Catalogues(dict[str, "Catalogue | None"]):
    """Catalogues by Blender's names of their languages; None for languages without one."""

    def __missing__(self, locale: str) -> Catalogue | None:
        """Read a catalogue when it is first looked for."""
        self[locale] = None
        for name, known in LOCALES.items():
            if known == locale:
                from . import catalogue

                texts = catalogue.read(Path(__file__).with_name(f"{name}.json"))
                self[locale] = catalogue.Catalogue(texts)
        return self[locale]


_catalogues = _Catalogues()
_locale: list[str] = []  # Blender's name of the language whose texts are registered, while enabled
_SUBSCRIBER = object()


def translated(text: str, kind: str = INTERFACE) -> str:
    """Translate a message to the user's language; unchanged without a catalogue, or by the preferences.

    Args:
        text: the finished English message.
        kind: INTERFACE, TOOLTIPS or REPORTS.
    """
    follow()
    text, texts = of_bones(text), _catalogues[bpy.app.translations.locale]
    if texts is None or not getattr(bpy.context.preferences.view, f"use_translate_{kind}"):
        return text
    return texts.translated(text)


def lines_within(preferences: bpy.types.Preferences, words: str, room: float) -> list[str]:
    """Translate a sentence, and break it to a width in pixels, in Blender's font.

    Args:
        words: the sentence, in English.
    """
    import blf

    from .catalogue import broken

    blf.size(FONT, preferences.ui_styles[0].widget.points * preferences.system.ui_scale)
    return broken(translated(words), lambda text: blf.dimensions(FONT, text)[0] <= room)


def of_bones(text: str) -> str:
    """An English message of the core in words of the interface, where joints are bones."""
    return re.sub(r"\b([Jj])oint(?= ')", lambda match: "Bone" if match[1] == "J" else "bone", text)


def follow() -> None:
    """Register the texts of Blender's language in place of those of the language before."""
    locale = bpy.app.translations.locale
    if _locale == [locale]:
        return
    _forget()
    texts = _catalogues[locale]
    entries = {
        (context, english): words
        for english, words in ({} if texts is None else texts.exact).items()
        for context in (CONTEXTS if len(english) <= LABEL else CONTEXTS[:1])
    }
    bpy.app.translations.register(__package__, {locale: entries})
    _locale.append(locale)


def _forget() -> None:
    if _locale:
        _locale.clear()
        bpy.app.translations.unregister(__package__)


def register() -> None:
    """Register the texts of Blender's language, now and whenever it changes.

    To be called again once a file was opened, which ends what was subscribed to, persistent or not.
    """
    follow()
    language = (bpy.types.PreferencesView, "language")
    bpy.msgbus.clear_by_owner(_SUBSCRIBER)
    bpy.msgbus.subscribe_rna(key=language, owner=_SUBSCRIBER, args=(), notify=follow, options={"PERSISTENT"})


def unregister() -> None:
    """Unregister the texts."""
    bpy.msgbus.clear_by_owner(_SUBSCRIBER)
    _forget()
    _catalogues.clear()
