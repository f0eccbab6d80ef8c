"""The messages that docs/troubleshooting.md quotes are those of the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/troubleshooting.md"
LEAST = 4  # letters of a part that is looked for


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
