"""Draws which package imports which, from the imports, into docs/development/architecture.md.

An arrow that follows from others is left out: of what bake imports, only that which no other import of it
leads to.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

PAGE = "docs/development/architecture.md"
FOLDERS = ("ccd_rig", "operators", "panels", "viewport")
LEAVES = {
    *("ccd_rig.errors", "ccd_rig.interrupts", "ccd_rig.json_text"),
    *("ccd_rig.blender.classes", "ccd_rig.blender.evaluations", "ccd_rig.blender.whole_files"),
}
"""Small modules that many import: an arrow to one tells nothing."""
BEGIN, END = "```mermaid\n", "```\n"


def package_of(module: str) -> str:
    """The package or lone module of the drawing that a dotted module belongs to; "" for none."""
    parts = module.split(".")
    if parts[0] != "ccd_rig":
        return parts[0] if parts[0] in FOLDERS else ""
    depth = 3 if parts[1:2] == ["blender"] else 2
    name = ".".join(parts[:depth])
    return "" if len(parts) < depth or name in LEAVES or parts[depth - 1].startswith("__") else name


def imports(root: Path) -> dict[str, set[str]]:
    """By package, the packages that its modules import.

    Args:
        root: of the project.
    """
    found: dict[str, set[str]] = {}
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            parts = list(file.relative_to(root).with_suffix("").parts)
            package = package_of(".".join(parts))
            if not package:
                continue
            reads = found.setdefault(package, set())
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.ImportFrom) or not node.level:
                    continue
                climbed = parts[: len(parts) - node.level] + (node.module.split(".") if node.module else [])
                names = [".".join([*climbed, alias.name]) for alias in node.names]
                reads |= {package_of(name) for name in names} - {"", package}
    return {package: reads & set(found) for package, reads in found.items()}


def reduced(needs: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The imports that do not follow from others; no two packages import each other in a circle."""
    beyond: dict[str, set[str]] = {}

    def all_of(package: str) -> set[str]:
        if package not in beyond:
            beyond[package] = needs[package].union(*(all_of(each) for each in needs[package]))
        return beyond[package]

    return {
        package: {each for each in reads if not any(each in all_of(other) for other in reads - {each})}
        for package, reads in needs.items()
    }


def drawing(root: Path) -> str:
    """The drawing in Mermaid's language: who imports stands above what is imported."""
    lines = ["flowchart TD"]
    for package, reads in sorted(reduced(imports(root)).items()):
        name = package.removeprefix("ccd_rig.").replace(".", "/")
        lines += [f"  {name} --> {each.removeprefix('ccd_rig.').replace('.', '/')}" for each in sorted(reads)]
    return "\n".join(lines) + "\n"


def write(root: Path) -> None:
    """Put the drawing into the page, in place of the one before."""
    page = root / PAGE
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}{drawing(root)}{END}{after}", encoding="utf-8")
