# SPDX-License-Identifier: GPL-3.0-or-later
"""Catalogue of one language, and the translation of finished English messages by it.

A catalogue is a JSON object from English texts to texts of the language. Texts may have holes: `{bone}` is a
name or a number, which is copied, and `{*reason}` is a text that is translated in turn. A message is matched
against the texts, first the ones with most letters outside their holes. If none matches, its sentences and
clauses are translated separately. Unknown texts stay English.

Lines of sentences are broken at spaces, and between Chinese and Japanese characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

HOLE = re.compile(r"(?<!\{)\{(\*?)(\w+)\}(?!\})")
COUNT = re.compile(r"count\d*")
"""Names of holes for a whole number, or one of things, such as "3 frames": no other text is taken for it."""
LISTS = re.compile(r"(parts|missing)\d*")
"""Names of holes for a list of words, which are translated even if they are single; other lists may be of
names."""
SEPARATORS = ("\n", "; ", ". ", ": ", ", ", " / ")
"""Separators of sentences and clauses, widest first."""
DEPTH = 24
"""Largest depth of recursion, into holes and clauses."""
FEW_LETTERS = 5
"""Templates of fewer letters, such as "{*first} and {*last}", match too much and are tried last. A template
of exactly this number, such as "right {*kind}", takes no more than one clause."""
_QUOTED = re.compile(r"(?<!\w)'([^'\n]*)'(?!\w)")
_MARK = 0xE000  # first character of Unicode's private use area: marks replace quoted names during matching
_MARKED = re.compile(r"[\ue000-\uf8ff]")
_PREFIX = re.compile(r"[^\s\ue000-\uf8ff]+: ")
_EDGES = (  # around a clause: brackets, a separator, spaces, the frames of a finding
    re.compile(r"([\s;:,.]*\()(.+)(\)\s*)", re.DOTALL),
    re.compile(r"([\s;:,.]+)(.+)()", re.DOTALL),
    re.compile(r"()(.*\S)(\s+)", re.DOTALL),
    re.compile(r"(-?\d[\d.]*(?:--?\d[\d.]*)? )((?!of )[^;\n]+)()"),
)


class _Masked(NamedTuple):
    """Message with marks in place of quoted names, which are not translated."""

    text: str
    names: tuple[str, ...]

    def plain(self, clause: str) -> str:
        """Return a clause of the text with its quoted names."""
        return _MARKED.sub(lambda mark: f"'{self.name(mark[0])}'", clause)

    def name(self, mark: str) -> str:
        """Return the quoted name of a mark."""
        return self.names[ord(mark) - _MARK]


class _Hole(NamedTuple):
    """Hole of a template."""

    name: str
    is_quoted: bool
    is_words: bool


class _Template:
    """English text with holes, and its translation."""

    def __init__(self, english: str, words: str) -> None:
        self.words = words
        self.holes: list[_Hole] = []
        self.pieces: list[str] = []  # literal texts: a message without one of them does not match
        self.pattern = ""
        end = 0
        for match in re.finditer(rf"{_QUOTED.pattern}|{HOLE.pattern}", english):
            self._add_literal(english[end : match.start()])
            end = match.end()
            self._add_hole(match[1], match[3], bool(match[2]))
        self._add_literal(english[end:])
        literal = HOLE.sub("", english)
        self.letters = sum(map(str.isalpha, literal)) + literal.count(": ")  # as specific as a letter
        self.letters += FEW_LETTERS * sum(hole.is_quoted for hole in self.holes)  # quotes are as specific
        self.compiled: re.Pattern[str] | None = None

    def _add_hole(self, quoted: str | None, name: str | None, is_words: bool) -> None:
        inner = HOLE.fullmatch(quoted or "")
        if quoted is not None:
            self.pattern += "([\ue000-\uf8ff])"
        elif COUNT.fullmatch(name or ""):
            self.pattern += r"(\d+(?: \w+)?)"
        else:
            self.pattern += "(.*?)" if is_words else "(.+?)"
        self.holes.append(_Hole(inner[2] if inner else name or "", quoted is not None, is_words))

    def _add_literal(self, text: str) -> None:
        text = text.replace("{{", "{").replace("}}", "}")
        if not text:
            return
        first = text[0]
        if not self.pattern and first.isalpha():  # a sentence may begin with a capital letter or not
            self.pattern = f"[{first.upper()}{first.lower()}]"
            text = text[1:]
        self.pattern += re.escape(text)
        self.pieces.append(text)

    def match(self, text: str) -> re.Match[str] | None:
        if not all(piece in text for piece in self.pieces):
            return None
        if self.compiled is None:
            self.compiled = re.compile(self.pattern, re.DOTALL)
        return self.compiled.fullmatch(text)


class Catalogue:
    """The texts of one language."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.exact = {english: words for english, words in texts.items() if "{" not in english}
        self._templates: list[_Template] = []
        self.translated = lru_cache(maxsize=4096)(self._translated)

    def _translated(self, message: str) -> str:
        """Translate a message; unknown ones are returned unchanged."""
        if not self._templates:
            templates = [_Template(*pair) for pair in self.texts.items() if HOLE.search(pair[0])]
            self._templates = sorted(templates, key=lambda template: -template.letters)
        words = self._look_up(message, DEPTH)
        return message if words is None else words

    def _look_up(self, message: str, depth: int) -> str | None:
        if depth == 0 or not any(map(str.isalpha, message)):
            return None
        masked = _mask(message)
        words = (
            self._entire(masked, message, depth)
            or self._without_edges(message, depth)
            or self._by_clauses(masked, depth)
            or self._from_template(masked, depth, False)
        )
        if words is None:
            return None
        return words[:1].upper() + words[1:] if message[:1].isupper() else words

    def _entire(self, masked: _Masked, message: str, depth: int) -> str | None:
        """Translate a message by one text of the catalogue, with holes or without."""
        first = message[:1]
        other_case = (first.lower() if first.isupper() else first.upper()) + message[1:]
        words = self.exact.get(message) or self.exact.get(other_case)
        return words or self._from_template(masked, depth, True)

    def _from_template(self, masked: _Masked, depth: int, is_specific: bool) -> str | None:
        """Translate a message by the first matching template of those with, or without, FEW_LETTERS."""
        for template in self._templates:
            if (template.letters >= FEW_LETTERS) != is_specific:
                continue
            match = template.match(masked.text)
            values = None if match is None else self._values(masked, template, match.groups(), depth)
            if values is not None:
                return _filled(template.words, values)
        return None

    def _values(
        self, masked: _Masked, template: _Template, groups: Sequence[str], depth: int
    ) -> dict[str, str] | None:
        """Return the texts for a template's holes; None if a hole would take more than one clause."""
        values: dict[str, str] = {}
        for hole, group in zip(template.holes, groups, strict=True):
            plain = masked.plain(group)
            if hole.is_quoted:
                words: str | None = masked.name(group)
            elif hole.is_words and template.letters == FEW_LETTERS and ": " in group:
                words = None
            elif "; " in group or "\n" in group:
                words = self._entire(_mask(plain), plain, depth - 1) if hole.is_words and depth > 1 else None
            elif hole.is_words:
                words = (LISTS.fullmatch(hole.name) and self._list(plain, depth - 1)) or None
                words = words or self._look_up(plain, depth - 1) or plain
            else:
                words = None if any(mark in group for mark in (": ", " / ", ") ")) else plain
            if words is None:
                return None
            values.setdefault(hole.name, words)
        return values

    def _list(self, message: str, depth: int) -> str | None:
        """Translate a list of words; None if one of them is unknown."""
        words = [self._look_up(each, depth) for each in message.split(", ")]
        return None if None in words else self.exact.get(", ", ", ").join(filter(None, words))

    def _without_edges(self, message: str, depth: int) -> str | None:
        """Translate a message without the brackets, separators or frames around it."""
        for pattern in _EDGES:
            edges = pattern.fullmatch(message)
            inner = None if edges is None else self._look_up(edges[2], depth - 1)
            if edges is not None and inner is not None:
                return f"{edges[1]}{inner}{edges[3]}"
        return None

    def _by_clauses(self, masked: _Masked, depth: int) -> str | None:
        """Translate the clauses before and after the first separator; single words may be names and stay."""
        is_prefixed = _PREFIX.match(masked.text)  # a file's path, a field
        for separator in (*SEPARATORS[:2], ": ", *SEPARATORS[2:]) if is_prefixed else SEPARATORS:
            if separator not in masked.text:
                continue
            clauses = [masked.plain(clause) for clause in masked.text.split(separator, 1)]
            translations = [self._look_up(clause, depth - 1) if " " in clause else None for clause in clauses]
            if any(words is not None for words in translations):
                joint = self.exact.get(separator, separator)
                return joint.join(
                    words or clause for words, clause in zip(translations, clauses, strict=True)
                )
        return None


def read(path: Path) -> dict[str, str]:
    """Read the texts of a catalogue's file."""
    texts: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return texts


def holes(text: str) -> Iterator[str]:
    """Yield the names of a text's holes."""
    return (hole[2] for hole in HOLE.finditer(text))


def _filled(words: str, values: Mapping[str, str]) -> str:
    pieces = HOLE.split(words)  # text, asterisk, name, text, asterisk, name and so on
    pieces[1::3] = [""] * len(pieces[1::3])
    pieces[2::3] = [values[name] for name in pieces[2::3]]
    pieces[0::3] = [text.replace("{{", "{").replace("}}", "}") for text in pieces[0::3]]
    return "".join(pieces)


def _mask(message: str) -> _Masked:
    names: list[str] = []

    def mark(quoted: re.Match[str]) -> str:
        names.append(quoted[1])
        return chr(_MARK + len(names) - 1)

    return _Masked(_QUOTED.sub(mark, message), tuple(names))


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
