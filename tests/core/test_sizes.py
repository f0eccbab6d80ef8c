"""Classes and functions stay small enough to be read at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    file
    for folder in ("ccd_rig", "operators", "panels", "viewport")
    for file in (ROOT / folder).rglob("*.py")
)

CLASS_LINES, FUNCTION_LINES, PARAMETERS = 200, 60, 6

FIXED_SIGNATURES = {"draw_item"}  # Blender calls these with its own arguments


def too_large(source: str) -> Iterator[str]:
    """What is larger than it may be, in words."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        most = CLASS_LINES if isinstance(node, ast.ClassDef) else FUNCTION_LINES
        if lines > most:
            yield f"line {node.lineno}: {node.name} has {lines} lines, at most {most}"
        if isinstance(node, ast.ClassDef) or node.name in FIXED_SIGNATURES:
            continue
        arguments = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = len([name for name in arguments if name not in ("self", "cls")])
        if count > PARAMETERS:
            yield f"line {node.lineno}: {node.name} has {count} parameters, at most {PARAMETERS}"


@pytest.mark.parametrize("file", FILES, ids=[file.relative_to(ROOT).as_posix() for file in FILES])
def test_nothing_is_too_large(file):
    found = list(too_large(file.read_text(encoding="utf-8")))
    assert not found, "; ".join(found)


def test_what_is_too_large_is_found():
    body = "\n".join("    x = 1" for _ in range(60))
    assert list(too_large(f"def f():\n{body}\n")) == ["line 1: f has 61 lines, at most 60"]
    assert list(too_large("def f(a, b, c, /, d, e, f, *, g): ...")) == [
        "line 1: f has 7 parameters, at most 6"
    ]
    assert list(too_large("class A:\n    def f(self, a, b, c, d, e, f): ...")) == []
    assert list(too_large("class A:\n" + "    x = 1\n" * 200)) == ["line 1: A has 201 lines, at most 200"]
    assert list(too_large("def draw_item(self, a, b, c, d, e, f, g): ...")) == []
