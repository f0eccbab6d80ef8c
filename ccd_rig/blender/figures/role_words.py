# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles in words of the interface's language: shown as in the view's labels, and typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from ..languages.translation import translated
from .role import Part, Role, Side, read_role

LIMBS = 12
"""Largest number of a limb on one side whose words are known in other languages than English."""
LANGUAGES = 2  # as many are remembered


def in_language(text: str) -> str:
    """Role in words of the interface's language; words of no role stay."""
    role = read_role(text)
    limb = "" if role is None else translated(role.limb())
    if role is None or limb == role.limb():
        return text
    return f"{limb} {role.index + 1}" if role.index else limb


def in_english(text: str) -> str:
    """Role in English from words of the interface's language; English words, and those of no role, stay."""
    if not text or read_role(text) is not None:
        return text
    known = _limbs(translated(Role(Part.FRONT_FOOT, Side.LEFT).limb()))
    words = " ".join(text.casefold().split())
    if words in known:
        return known[words].words()
    limb, _, count = words.rpartition(" ")
    is_bone = limb in known and count.isdecimal() and int(count) > 0
    role = replace(known[limb], index=int(count) - 1) if is_bone else None
    return text if role is None or read_role(role.words()) != role else role.words()


@lru_cache(maxsize=LANGUAGES)
def _limbs(_foot: str) -> Mapping[str, Role]:
    """Return {words of a limb in the interface's language: role of its first bone}.

    Args:
        _foot: words of one limb, which tell the language.
    """
    known: dict[str, Role] = {}
    for number in range(LIMBS):
        for part in Part:
            for side in Side:
                role = Role(part, side, 0, number)
                known.setdefault(translated(role.limb()).casefold(), role)
    return known
