"""README and docs name each benchmark beside what it measures, and no other.

None of them runs in the tests; `dev.py lint` looks up what they import.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Claims -----------------------------------------------------------------------------------------------------

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BENCH = re.compile(r"python3 dev\.py bench\s+([a-z]\w*)((?: --blender [\d.]+)?)((?:\s+-- [^`#\n]*)?)")


def commands():
    """(page, benchmark, its own arguments) of each command in README and docs."""
    for page in PAGES:
        for match in BENCH.finditer(page.read_text(encoding="utf-8")):
            yield page.relative_to(ROOT), match[1], match[3].split()[1:]


def arguments_of(name):
    """{option: its choices or None} of a benchmark, read from its source; positional ones as ""."""
    options = {}
    tree = ast.parse((ROOT / f"benchmarks/{name}.py").read_text(encoding="utf-8"))
    tables = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }

    def words(node):
        if isinstance(node, ast.Name):
            return words(tables[node.id]) if node.id in tables else None
        if any(isinstance(each, ast.comprehension) for each in ast.walk(node)):
            return None  # worked out
        return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}

    for node in ast.walk(tree):  # options that a benchmark shares with another
        if isinstance(node, ast.ImportFrom) and any(each.name.startswith("add_") for each in node.names):
            tree.body += ast.parse((ROOT / f"benchmarks/{node.module}.py").read_text("utf-8")).body
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "add_argument":
            flag = call.args[0].value
            choices = [words(each.value) for each in call.keywords if each.arg == "choices"]
            options[flag if flag.startswith("-") else ""] = choices[0] if choices else None
    return options


def test_every_command_of_the_pages_is_one():
    assert len(list(commands())) > 40
    for page, name, arguments in commands():
        assert (ROOT / f"benchmarks/{name}.py").is_file(), f"{page}: bench {name}"
        options, flag = arguments_of(name), ""
        for word in arguments:
            flag = word if word.startswith("--") else flag
            assert flag in options, f"{page}: bench {name} has no {flag or word}"
            if word != flag and options[flag]:
                assert word in options[flag], f"{page}: bench {name} {flag} {word}"


def test_every_benchmark_is_beside_a_claim():
    names = {file.stem for file in (ROOT / "benchmarks").glob("[a-z]*.py")}
    assert names == {name for _, name, _ in commands()}
