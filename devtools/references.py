"""Find imports and uses of names that modules of the project do not have.

mypy does not: the stubs of Blender keep it from checking attributes, and it does not read tests, benchmarks
and tools. These reach into the project by imports and by names in text, such as
`ext.module("ccd_rig.goals").PositionGoal`. Only the syntax is read: nothing is imported.
"""

from __future__ import annotations

import ast
import symtable
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

SEARCHED = ("ccd_rig", "operators", "panels", "viewport", "devtools", "benchmarks", "examples", "tests")
PRODUCT = (*SEARCHED[:4], "blender")
"""First packages in names of modules that are loaded."""
PATHS = ("", "benchmarks", "examples", "tests", "tests/blender", "tests/core", "tests/window")
"""Folders from which modules are imported by their bare names, beside the folder of the importing file."""
LOADERS = ("module", "_module", "import_module")
"""Functions that take the name of a module, which may leave out the packages above it."""
ABOVE = ("", "ccd_rig.", "ccd_rig.blender.")

Scope = Mapping[str, Path | None]
"""The file of the module that a name stands for; None for any other value."""


def missing(root: Path) -> list[str]:
    """Return a line for each import or use of a name that a module of the project does not have."""
    files = [file for folder in SEARCHED for file in sorted((root / folder).rglob("*.py"))]
    return [
        f"{file.relative_to(root)}:{line}: {words}"
        for file in files
        for line, words in _File(root, file).missing()
    ]


@cache
def _names(file: Path) -> frozenset[str] | None:
    """Names at the top of a module; None if its text does not tell."""
    names = {"__file__", "__name__", "__doc__", "__package__", "__path__"}
    stub = file.with_suffix(".pyi")
    for source in (file, stub) if stub.exists() else (file,):
        text = source.read_text(encoding="utf-8")
        if not stub.exists() and ("__getattr__" in text or "globals()" in text or "import *" in text):
            return None
        symbols = symtable.symtable(text, str(source), "exec").get_symbols()
        names |= {each.get_name() for each in symbols if each.is_assigned() or each.is_imported()}
    return frozenset(names)


@cache
def _file_of(folder: Path, names: tuple[str, ...]) -> Path | None:
    """The file of the module with these names, from a folder on."""
    place = folder.joinpath(*names)
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if names and file.exists():
            return file
    return None


class _File:
    """The references of a file."""

    def __init__(self, root: Path, file: Path) -> None:
        self.root, self.file = root, file
        self.tree = ast.parse(file.read_text(encoding="utf-8"))
        constants = [node for node in self.tree.body if isinstance(node, ast.Assign)]
        self.texts = {
            node.targets[0].id: node.value.value
            for node in constants
            if isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        }

    def missing(self) -> Iterator[tuple[int, str]]:
        """Yield the line of each reference that leads nowhere, and words on it."""
        yield from self._below(self.tree, {})

    def _below(self, scope: ast.AST, outer: Scope) -> Iterator[tuple[int, str]]:
        """Walk through a scope and the scopes in it; `outer`: the names that are known there."""
        nodes = list(_of_scope(scope))
        known = {**outer, **self._bound(scope, nodes)}
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                module = self._imported(node)
                for alias in node.names if module is not None else ():
                    if alias.name != "*" and not self._has(module, alias.name):
                        yield node.lineno, f"{node.module or '.'} has no {alias.name}"
            elif isinstance(node, ast.Call) and self._is_loader(node) and self._loaded(node) is None:
                yield node.lineno, f"there is no module {ast.unparse(node.args[0])}"
            elif isinstance(node, ast.Attribute):
                module = self._module(node.value, known)
                if module is not None and not self._has(module, node.attr):
                    yield (
                        node.lineno,
                        f"{ast.unparse(node)}: {module.relative_to(self.root)} has no {node.attr}",
                    )
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
                yield from self._below(node, known)

    def _bound(self, scope: ast.AST, nodes: list[ast.AST]) -> dict[str, Path | None]:
        """The names that a scope binds; None for those that are, or may be, no module."""
        modules: dict[str, set[Path | None]] = defaultdict(set)
        others = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        if isinstance(scope, (ast.FunctionDef, ast.Lambda)):
            others |= {each.arg for each in ast.walk(scope.args) if isinstance(each, ast.arg)}
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and (package := self._imported(node)) is not None:
                for alias in node.names:
                    is_value = alias.name in (_names(package) or ())
                    inside = None if is_value else _file_of(package.parent, (alias.name,))
                    modules[alias.asname or alias.name].add(inside)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                modules[node.targets[0].id].add(self._module(node.value, {}))
        known = {name: files.pop() if len(files) == 1 else None for name, files in modules.items()}
        return {**dict.fromkeys(others), **known}

    def _module(self, value: ast.AST, known: Scope) -> Path | None:
        if isinstance(value, ast.Name):
            return known.get(value.id)
        return self._loaded(value) if isinstance(value, ast.Call) and self._is_loader(value) else None

    def _has(self, module: Path, name: str) -> bool:
        names = _names(module)
        is_package = module.name == "__init__.py"
        return names is None or name in names or (is_package and _is_inside(module.parent, name))

    def _imported(self, node: ast.ImportFrom) -> Path | None:
        """The module of the project that names are imported from."""
        names = tuple(node.module.split(".")) if node.module else ()
        if node.level:
            folder = self.file.parents[node.level - 1]
            return _file_of(folder, names) if names else _file_of(folder.parent, (folder.name,))
        folders = (self.file.parent, *(self.root / path for path in PATHS))
        return next(filter(None, (_file_of(folder, names) for folder in folders)), None)

    def _is_loader(self, call: ast.Call) -> bool:
        """Whether a call loads a module of the project by a name that the file tells."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        return name in LOADERS and len(call.args) == 1 and "." in self._text(call.args[0])

    def _loaded(self, call: ast.Call) -> Path | None:
        names = self._text(call.args[0])
        files = (_file_of(self.root, tuple((above + names).split("."))) for above in ABOVE)
        return next(filter(None, files), None)

    def _text(self, node: ast.AST) -> str:
        """The name of a module below the package that a variable holds; empty if the file does not tell."""
        texts = [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
        if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.FormattedValue):
            first, *rest = node.values
            if all(isinstance(each, ast.Constant) for each in rest):
                below = "".join(each.value for each in rest)
                texts = [self.texts.get(getattr(first.value, "id", ""), "") + below, below]
        names = (text.lstrip(".") for text in texts)
        return next((name for name in names if name.split(".")[0] in PRODUCT), "")


def _is_inside(folder: Path, name: str) -> bool:
    return (folder / name).is_dir() or _file_of(folder, (name,)) is not None


def _of_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, without those of the functions and classes in it."""
    waiting = [*ast.iter_child_nodes(scope)]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.Constant, ast.expr_context)):
            waiting += ast.iter_child_nodes(node)
