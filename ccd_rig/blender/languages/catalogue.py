# SPDX-License-Identifier: GPL-3.0-or-later
"""One language's texts, and how a finished English message finds its own among them.

A catalogue is a JSON object from English texts to texts of the language. Texts may have holes: `{bone}`
stands for a name or a number, which stays, and `{*reason}` for words that are looked up in turn. A message is
compared with the texts as a whole, first with those that have most letters outside their holes; if none fits,
its sentences and clauses are looked up one by one. What is not found stays English.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

HOLE = re.compile(r"(?<!\{)\{(\*?)(\w+)\}(?!\})")
SEPARATORS = ("\n", "; ", ". ", ": ", ", ", " / ")
"""What sentences and clauses are joined with, widest first."""
DEPTH = 24
"""Messages inside messages, and clauses behind clauses."""
FEW_LETTERS = 5
"""Templates of fewer letters, such as "{*first} and {*last}", fit much: they are tried last. Those of just so
many, such as "right {*kind}", take no more than one clause."""
_QUOTED = re.compile(r"(?<!\w)'([^'\n]*)'(?!\w)")
_MARK = 0xE000  # Unicode's private use: marks that stand for quoted names while texts are compared
_MARKED = re.compile(r"[\ue000-\uf8ff]")
_PREFIX = re.compile(r"[^\s\ue000-\uf8ff]+: ")
_EDGES = (  # what a clause may be wrapped in: brackets, a joint, the frames that a finding is about
    re.compile(r"([\s;:,.]*\()(.+)(\)\s*)", re.DOTALL),
    re.compile(r"([\s;:,.]+)(.+)()", re.DOTALL),
    re.compile(r"()(.*\S)(\s+)", re.DOTALL),
    re.compile(r"(-?\d[\d.]*(?:--?\d[\d.]*)? )((?!of )[^;\n]+)()"),
)


class _Masked(NamedTuple):
    """A message whose quoted names are marks, so that nothing in them is taken for words."""

    text: str
    names: tuple[str, ...]

    def plain(self, part: str) -> str:
        """A part of the text with its quotes."""
        return _MARKED.sub(lambda mark: f"'{self.name(mark[0])}'", part)

    def name(self, mark: str) -> str:
        """What stands in the quotes at a mark."""
        return self.names[ord(mark) - _MARK]


class _Hole(NamedTuple):
    """A place of a template."""

    name: str
    is_quoted: bool
    is_words: bool


class _Template:
    """One English text with holes, and what it is in the language."""

    def __init__(self, english: str, words: str) -> None:
        self.words = words
        self.holes: list[_Hole] = []
        self.pieces: list[str] = []  # literal text: a message without it does not fit
        self.pattern = ""
        at = 0
        for found in re.finditer(rf"{_QUOTED.pattern}|{HOLE.pattern}", english):
            self._add_literal(english[at : found.start()])
            at = found.end()
            self._add_hole(found[1], found[3], bool(found[2]))
        self._add_literal(english[at:])
        self.letters = sum(map(str.isalpha, HOLE.sub("", english)))
        self.letters += FEW_LETTERS * sum(hole.is_quoted for hole in self.holes)  # quotes tell as much
        self.compiled: re.Pattern[str] | None = None

    def _add_hole(self, quoted: str | None, name: str | None, is_words: bool) -> None:
        inner = HOLE.fullmatch(quoted or "")
        self.pattern += "([\ue000-\uf8ff])" if quoted is not None else "(.*?)" if is_words else "(.+?)"
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
        """A message in the language, or as it is."""
        if not self._templates:
            made = [_Template(*pair) for pair in self.texts.items() if HOLE.search(pair[0])]
            self._templates = sorted(made, key=lambda template: -template.letters)
        found = self._look_up(message, DEPTH)
        return message if found is None else found

    def _look_up(self, message: str, depth: int) -> str | None:
        if depth == 0 or not any(map(str.isalpha, message)):
            return None
        masked = _mask(message)
        found = (
            self._whole(masked, message, depth)
            or self._without_edges(message, depth)
            or self._in_parts(masked, depth)
            or self._from_template(masked, depth, range(FEW_LETTERS))
        )
        if found is None:
            return None
        return found[:1].upper() + found[1:] if message[:1].isupper() else found

    def _whole(self, masked: _Masked, message: str, depth: int) -> str | None:
        """A message that stands in the catalogue as it is, or with holes."""
        first = message[:1]
        other = (first.lower() if first.isupper() else first.upper()) + message[1:]
        found = self.exact.get(message) or self.exact.get(other)
        return found or self._from_template(masked, depth, range(FEW_LETTERS, len(message) + 1))

    def _from_template(self, masked: _Masked, depth: int, letters: range) -> str | None:
        """By the first template of so many letters that fits."""
        for template in self._templates:
            if template.letters not in letters:
                continue
            found = template.match(masked.text)
            values = None if found is None else self._values(masked, template, found.groups(), depth)
            if values is not None:
                return _filled(template.words, values)
        return None

    def _values(
        self, masked: _Masked, template: _Template, parts: Sequence[str], depth: int
    ) -> dict[str, str] | None:
        """What goes into a template's holes; None where a hole would take more than one clause."""
        values: dict[str, str] = {}
        for hole, part in zip(template.holes, parts, strict=True):
            plain = masked.plain(part)
            if hole.is_quoted:
                words: str | None = masked.name(part)
            elif hole.is_words and template.letters == FEW_LETTERS and ": " in part:
                words = None
            elif "; " in part or "\n" in part:
                words = self._whole(_mask(plain), plain, depth - 1) if hole.is_words and depth > 1 else None
            elif hole.is_words:
                words = self._look_up(plain, depth - 1) or plain
            else:
                words = None if any(mark in part for mark in (": ", " / ", ") ")) else plain
            if words is None:
                return None
            values.setdefault(hole.name, words)
        return values

    def _without_edges(self, message: str, depth: int) -> str | None:
        """A clause that is joined to what stands before it: the clause without its commas and spaces."""
        for pattern in _EDGES:
            edges = pattern.fullmatch(message)
            inner = None if edges is None else self._look_up(edges[2], depth - 1)
            if edges is not None and inner is not None:
                return f"{edges[1]}{inner}{edges[3]}"
        return None

    def _in_parts(self, masked: _Masked, depth: int) -> str | None:
        """What stands before and after the first joint; a single word is not looked up: it may be a name."""
        is_prefixed = _PREFIX.match(masked.text)  # a file's path, a field
        for separator in (": ", *SEPARATORS) if is_prefixed else SEPARATORS:
            if separator not in masked.text:
                continue
            parts = [masked.plain(part) for part in masked.text.split(separator, 1)]
            found = [self._look_up(part, depth - 1) if " " in part else None for part in parts]
            if any(part is not None for part in found):
                joint = self.exact.get(separator, separator)
                return joint.join(words or part for words, part in zip(found, parts, strict=True))
        return None


def read(path: Path) -> dict[str, str]:
    """The texts of a catalogue's file."""
    texts: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return texts


def holes(text: str) -> Iterator[str]:
    """Names of a text's holes."""
    return (hole[2] for hole in HOLE.finditer(text))


def _filled(words: str, values: Mapping[str, str]) -> str:
    parts = HOLE.split(words)  # text, asterisk, name, text, asterisk, name and so on
    parts[1::3] = [""] * len(parts[1::3])
    parts[2::3] = [values[name] for name in parts[2::3]]
    parts[0::3] = [text.replace("{{", "{").replace("}}", "}") for text in parts[0::3]]
    return "".join(parts)


def _mask(message: str) -> _Masked:
    names: list[str] = []

    def mark(quoted: re.Match[str]) -> str:
        names.append(quoted[1])
        return chr(_MARK + len(names) - 1)

    return _Masked(_QUOTED.sub(mark, message), tuple(names))
