"""Messages, buttons and fields that the tutorials and docs/troubleshooting.md name are those of the code."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/troubleshooting.md"
LEAST = 4  # letters of a part that is looked for


@cache
def spoken() -> list[str]:
    """All texts of the code; a value that is put into one stands as a line break."""
    found = []
    for folder in ("ccd_rig", "operators", "panels", "viewport"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    parts = (part.value if isinstance(part, ast.Constant) else "\n" for part in node.values)
                    found.append("".join(map(str, parts)))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
    return found


def unspoken(page: str, texts: list[str]) -> list[str]:
    """Parts of quoted messages that no text of the code has."""
    quoted = re.findall(r'"([^"]+)"', " ".join(page.split()))
    parts = [part.strip() for message in quoted for part in message.split("…")]
    return [part for part in parts if len(part) >= LEAST and not any(part in text for text in texts)]


def test_messages_are_those_of_the_code():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count('"') > 80
    assert unspoken(page, spoken()) == []


def test_a_message_that_is_not_there_is_found():
    texts = ["bone '\n' was lost: choose another"]
    assert unspoken('says "bone … was lost" or "is gone for good"', texts) == ["is gone for good"]


STEPS = [PAGE, *sorted((ROOT / "docs/tutorials").glob("*.md"))]
BLENDERS = {
    "Rigify",
    "Delta Location",
    "OK",
    "last",
}  # what Blender itself shows, and what is bold for its own sake


def unknown_labels(page: str, known: set[str]) -> list[str]:
    """Bold words, but for whole sentences, that no button or field has."""
    bold = re.findall(r"\*\*(.+?)\*\*", re.sub(r"`[^`]*`", "", " ".join(page.split())))
    return [words for words in bold if words[-1] not in ".?" and words not in known]


@pytest.mark.parametrize("file", STEPS, ids=[file.stem for file in STEPS])
def test_what_is_to_be_pressed_is_there(file):
    pages = [ROOT / "docs/reference" / name for name in ("settings.md", "operators.md")]
    fields = {
        label for each in pages for label in re.findall(r"</a>(.+?)<br>", each.read_text(encoding="utf-8"))
    }
    assert "Max Extension" in fields
    known = BLENDERS | fields | {text.removesuffix("...") for text in spoken()}
    assert unknown_labels(file.read_text(encoding="utf-8"), known) == []


def test_a_label_that_is_not_there_is_found():
    assert unknown_labels("Press **Bake** and **Fry**. **Then eat.**", {"Bake"}) == ["Fry"]
