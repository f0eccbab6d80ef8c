"""Strict reading of JSON from outside, and text from outside in messages."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

LONGEST = 60
"""Letters of a text from outside that a message shows."""
MOST_DIGITS = 300
"""Most digits of a whole number, so that each is one as a float."""


class NotJson(ValueError):
    """A text is no JSON; the message says why in a short line."""


def parse(text: str) -> Any:
    """Read JSON strictly.

    Raises:
        NotJson: it is no JSON, nests too deep, holds a number of more digits than are read, NaN or infinity,
            a field twice in one object, or text that no file can hold.
    """
    try:
        data: Any = json.loads(
            text, object_pairs_hook=_object, parse_constant=_no_number, parse_int=_whole, parse_float=_finite
        )
    except RecursionError:
        raise NotJson("it nests too deep") from None
    except json.JSONDecodeError as error:
        raise NotJson(str(error)) from None
    try:
        # Escapes can spell halves of letters (surrogates), which no UTF-8 holds.
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise NotJson(f"text holds {error.object[error.start : error.end]!a}, which is no letter") from None
    return data


def shown(text: str, longest: int = LONGEST) -> str:
    """A text for a message: the beginning of a long one."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def printable(text: str) -> str:
    """A text as one line: characters without a glyph (line breaks, escapes) as numbers, such as \\x1b."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "surrogatepass").decode()
        for letter in text
    )


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content: dict[str, object] = {}
    for name, value in pairs:
        if name in content:
            raise NotJson(f"the field {shown(json.dumps(name))} stands twice in one object")
        content[name] = value
    return content


def _whole(word: str) -> int:
    if len(word) > MOST_DIGITS:
        raise NotJson("a number has too many digits")
    return int(word)


def _finite(word: str) -> float:
    if math.isinf(number := float(word)):
        raise NotJson(f"{shown(word)} is too large a number")
    return number


def _no_number(word: str) -> NoReturn:
    raise NotJson(f"{word} is no number")
