"""Which tests judge a mutant, in which order, read from line maps."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

WHOLE_FILE = 30.0
"""Seconds that a file of tests is taken to need, where that was not measured."""


@dataclass(frozen=True)
class Choice:
    """Tests that judge a mutant.

    Attributes:
        tests: names, in order.
        seconds: what each took when lines were mapped.
        left_out: how many more there are, beyond the time that was allowed.
    """

    tests: tuple[str, ...]
    seconds: tuple[float, ...]
    left_out: int

    def parts(self, quick: float) -> list[tuple[tuple[str, ...], float]]:
        """Names and their seconds: first the first `quick` seconds of them, so that one that hangs is soon
        ended, then the others."""
        total, k = 0.0, 0
        while k < len(self.tests) and (k == 0 or total + self.seconds[k] <= quick):
            total += self.seconds[k]
            k += 1
        parts = [(self.tests[:k], total), (self.tests[k:], sum(self.seconds[k:]))]
        return [part for part in parts if part[0]]


class Statement(NamedTuple):
    """A statement of a file.

    Attributes:
        lines: without those of its block, if it has one.
        on_import: whether it runs when the file is imported, and not in a function: which tests it matters to
            is then not told by those that run it.
    """

    lines: range
    on_import: bool


class Suite:
    """The tests of a folder of tests/, and which lines they run; see `line_map.LineMap`.

    Attributes:
        name: of the suite, one of `campaign.SUITES`.
        environment: variables with which its tests run.
    """

    def __init__(self, name: str, content: dict[str, Any]) -> None:
        self.name = name
        self.environment: dict[str, str] = content["environment"]
        self._folder: str = content["folder"]
        self._tests: list[str] = content["tests"]
        self._seconds: list[float] = content["seconds"]
        self._lines = {
            file: {int(line): int(bits, 16) for line, bits in rows.items()}
            for file, rows in content["lines"].items()
        }

    @classmethod
    def read(cls, name: str, path: Path) -> Suite:
        """A suite whose lines have been mapped."""
        return cls(name, json.loads(path.read_text(encoding="utf-8")))

    def choose(self, file: str, place: Statement, most: float, changed: Sequence[str] = ()) -> Choice:
        """The tests that run a statement; of one that runs on import those of the file, or all.

        Those of the folder with the file's name come first, and quick ones before slow ones.

        Args:
            file: from the project's root.
            place: the statement.
            most: seconds of tests, as they were measured, that are chosen at most.
            changed: files of tests that are not as they were when lines were mapped. Those of the folder with
                the file's name, and those that ran the statement, come before all, and whole.
        """
        rows = self._lines.get(file, {})
        bits = 0
        for line in rows if place.on_import else place.lines:
            bits |= rows.get(line, 0)
        if place.on_import and not bits:
            bits = (1 << len(self._tests)) - 1
        mirrored = self._mirrored(file)
        chosen = [k for k in range(len(self._tests)) if bits >> k & 1]
        files = {self._tests[k].partition("::")[0] for k in chosen}
        first = [each for each in changed if each in files or each.startswith(mirrored)]
        chosen = [k for k in chosen if self._tests[k].partition("::")[0] not in first]
        chosen.sort(key=lambda k: (not self._tests[k].startswith(mirrored), self._seconds[k]))
        total, kept = 0.0, []
        for k in chosen:
            total += self._seconds[k]
            if total > most:
                break
            kept.append(k)
        left_out = len(chosen) - len(kept)
        names = (*first, *(self._tests[k] for k in kept))
        times = (*(WHOLE_FILE for _ in first), *(self._seconds[k] for k in kept))
        return Choice(names, times, left_out)

    def order(self, words: Collection[str]) -> list[str]:
        """Names of tests of which `words` tell that they have failed, in their order."""
        failed = {each.partition(" ")[2] for each in words}
        return [name for name in self._tests if name in failed]

    def _mirrored(self, file: str) -> str:
        """The beginning of the names of tests that are for a file: the suite's folder and the file's."""
        inside = file.removeprefix("ccd_rig/").removeprefix("blender/")
        folder, _, _ = inside.rpartition("/")
        return f"{self._folder}/{folder}/" if folder else f"{self._folder}/"


def statement(source: str, line: int) -> Statement:
    """The innermost statement around a line."""
    best, shortest = Statement(range(line, line + 1), True), 10**9
    pending: list[tuple[ast.stmt | ast.ExceptHandler, bool]]
    pending = [(node, True) for node in ast.parse(source).body]
    while pending:
        node, on_import = pending.pop()
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
        last = max(last, node.lineno)
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        if first <= line <= last and last - first < shortest:
            best, shortest = Statement(range(first, last + 1), on_import), last - first
        inside = on_import and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        pending += [(each, inside) for each in _blocks(node)]
    return best


def _blocks(node: ast.AST) -> list[ast.stmt | ast.ExceptHandler]:
    """The statements directly below one, and what it catches."""
    kinds = (ast.stmt, ast.ExceptHandler)
    return [each for each in ast.iter_child_nodes(node) if isinstance(each, kinds)] + [
        each for part in ast.iter_child_nodes(node) if isinstance(part, ast.match_case) for each in part.body
    ]
