# SPDX-License-Identifier: GPL-3.0-or-later
"""Line breaks in sentences: at spaces, and between Chinese and Japanese characters."""

from __future__ import annotations

import re
from collections.abc import Callable

_SIGN = r"[\u2e80-\u2fff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
_CLOSING = r"[\u3001\u3002\uff0c\uff0e\uff1a\uff1b\uff01\uff1f\uff09\u300d\u300f\u3011\u30fc,.:;!?)]"
_UNITS = re.compile(rf"{_SIGN}{_CLOSING}*|(?:(?!{_SIGN}).)+")


def broken(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """Break a sentence into lines.

    Args:
        sentence: any text; line feeds count as spaces.
        fits: whether a text is short enough for a line. A word that does not fit is broken anywhere.
    """
    lines: list[str] = []
    for word in sentence.split():
        glue = " "
        for unit in _UNITS.findall(word):
            longer = f"{lines[-1]}{glue}{unit}" if lines else unit
            if lines and fits(longer):
                lines[-1] = longer
            else:
                lines += _cut(unit, fits)
            glue = ""
    return lines


def _cut(unit: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a word into pieces that fit: the name of a bone may be longer than a line."""
    pieces = []
    while len(unit) > 1 and not fits(unit):
        count = max(n for n in range(1, len(unit)) if n == 1 or fits(unit[:n]))
        pieces.append(unit[:count])
        unit = unit[count:]
    return [*pieces, unit]
