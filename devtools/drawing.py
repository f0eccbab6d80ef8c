"""Draw the imports between packages into docs/development/architecture.md.

Arrows that follow from others are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

PAGE = "docs/development/architecture.md"
FOLDERS = ("ccd_rig", "operators", "panels", "viewport")
LEAVES = {
    *("ccd_rig.errors", "ccd_rig.interrupts", "ccd_rig.json_text"),
    *("ccd_rig.blender.registration", "ccd_rig.blender.evaluations", "ccd_rig.blender.atomic_write"),
}
"""Small modules that many packages import, left out of the drawing."""
BEGIN, END = "```mermaid\n", "```\n"


def modules(root: Path) -> dict[str, Path]:
    """Return {dotted name: file} of everything that goes into the package but the root's `__init__.py`."""
    files = {}
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            path = file.relative_to(root).with_suffix("")
            files[".".join((path.parent if path.name == "__init__" else path).parts)] = file
    return files


@cache
def tree(file: Path) -> ast.Module:
    """Return the syntax of a file."""
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


@cache
def _imports(file: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports of a file, also those in functions."""
    return [each for each in _statements(tree(file).body) if isinstance(each, ast.Import | ast.ImportFrom)]


def _statements(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield statements and those inside them, but no expression."""
    for node in nodes:
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _statements(getattr(node, field, ()))


def imports_of(module: str, file: Path, known: Container[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of each import, also in functions; relative ones count from the root.

    Args:
        module: its dotted name.
        file: its source.
        known: dotted names of modules; of other names the module that has them is given.
    """
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    for node in _imports(file):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        else:
            # The root's own package has no name here: "from ..ccd_rig" in operators/ climbs to nothing.
            climbed = package[: len(package) - (node.level - 1)] if node.level else []
            base = ".".join([*climbed, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{base}.{alias.name}" if base else alias.name
                yield node.lineno, name if name in known else base


def package_of(module: str) -> str:
    """The package or lone module of the drawing that a dotted module belongs to; "" for none."""
    names = module.split(".")
    if names[0] != "ccd_rig":
        return names[0] if names[0] in FOLDERS else ""
    depth = 3 if names[1:2] == ["blender"] else 2
    name = ".".join(names[:depth])
    return "" if len(names) < depth or name in LEAVES else name


@cache
def imports(root: Path) -> dict[str, set[str]]:
    """Return {package: packages that its modules import}.

    Args:
        root: of the project.
    """
    packages: dict[str, set[str]] = {}
    files = modules(root)
    for module, file in files.items():
        if (package := package_of(module)) and not module.endswith("__main__"):
            reads = packages.setdefault(package, set())
            reads |= {package_of(name) for _, name in imports_of(module, file, files)} - {"", package}
    return {package: reads & set(packages) for package, reads in packages.items()}


def reduced(needs: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Remove imports that follow from others. The imports must have no cycle."""
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
    """Return the drawing in Mermaid's language; arrows point to imported packages."""
    lines = ["flowchart TD"]
    for package, reads in sorted(reduced(imports(root)).items()):
        name = package.removeprefix("ccd_rig.").replace(".", "/")
        lines += [f"  {name} --> {each.removeprefix('ccd_rig.').replace('.', '/')}" for each in sorted(reads)]
    return "\n".join(lines) + "\n"


def write(root: Path) -> None:
    """Replace the drawing in the page."""
    page = root / PAGE
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}{drawing(root)}{END}{after}", encoding="utf-8")
