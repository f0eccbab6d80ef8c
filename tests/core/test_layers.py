"""The order of the folders, read from the imports: each imports only what stands above it.

Inside a folder files may import each other, as long as no two do so in a circle.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

from devtools import drawing

ROOT = Path(__file__).resolve().parents[2]

# As docs/development/architecture.md draws them, from the top. What shares a line does not import each other.
CORE = (
    ("kernel",),
    ("defaults", "errors", "interrupts"),
    ("json_text",),
    ("maths",),
    ("limits",),
    ("skeleton",),
    ("goals",),
    ("settings",),
    ("motion",),
    ("solvers.stepping", "solvers.problem_tables", "solvers.soft_reach"),
    ("solvers.closed_forms", "solvers.restarts"),
    ("solvers.pose_search",),
    ("solvers.motion", "solvers.solve", "solvers.springs"),
    ("solvers.led_pulls",),
    ("solvers.drag",),
    ("solvers.many",),
    ("solvers.retarget_goals",),
    ("solvers.retarget", "solvers.walk"),
    ("public",),
)
BLENDER = (
    ("atomic_write", "languages", "registration"),
    ("evaluations",),
    ("rig",),
    ("keys",),
    ("figures",),
    ("properties",),
    ("scene",),
    ("viewport",),
    ("limit_sources", "setup_files"),
    ("convert",),
    ("solve",),
    ("checks",),
    ("bake",),
    ("retarget",),
    ("walk",),
    ("farm",),
    ("drag", "live", "set_up"),
    ("cli", "listening"),
)
PUBLIC = "ccd_rig"  # ccd_rig/__init__.py: hands out the core's names, so it stands below the core
SHELLS = ("operators", "panels", "viewport")
VERSION_BRANCHES = "ccd_rig.blender.keys"  # the one folder that may ask which Blender this is


def _order() -> list[set[str]]:
    core = [{f"ccd_rig.{name}" for name in line} for line in CORE]
    blender = [{f"ccd_rig.blender.{name}" for name in line} for line in BLENDER]
    return [*core, {PUBLIC}, *blender, {"ccd_rig.blender"}, {"ccd_rig.__main__", *SHELLS}]


RANK = {name: rank for rank, line in enumerate(_order()) for name in line}


MODULES = drawing.modules(ROOT)
BEYOND_CORE = {m for m in MODULES if m.startswith(("ccd_rig.blender", "ccd_rig.__main__", *SHELLS))}


def _imports(module: str) -> list[tuple[int, str]]:
    return _imports_of_file(module, MODULES[module])


@cache
def _imports_of_file(module: str, file: Path) -> list[tuple[int, str]]:
    return list(drawing.imports_of(module, file, MODULES))


def _place_of(module: str) -> str:
    """The folder or file under which a module is ranked: the longest ranked name that it begins with."""
    parts = module.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    # A folder without a place must not pass for the package that it lies in.
    packages = {PUBLIC, "ccd_rig.blender"}
    return next((name for name in names if name in RANK and (name not in packages or name == module)), "")


def _is_empty(module: str) -> bool:
    """Whether a module is nothing but a docstring, as the folders' __init__.py are."""
    body = drawing.tree(MODULES[module]).body
    return all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in body)


def test_imports_only_from_above():
    wrong = []
    for module in MODULES:
        place = _place_of(module)
        if not place:
            if not _is_empty(module):
                wrong.append(
                    f"{module} lies in no folder of the order: give it a place here and in architecture.md"
                )
            continue
        for line, name in _imports(module):
            target = _place_of(name)
            if name in MODULES and place != target:
                if not target:
                    wrong.append(f"{module}:{line} imports {name}, which lies in no folder of the order")
                elif RANK[target] >= RANK[place]:
                    wrong.append(f"{module}:{line} imports {name}, which is not above it")
    assert not wrong, "\n".join(wrong)


def test_the_kernel_stands_alone():
    """It imports nothing but the standard library and itself, or it could not be compiled into one module."""
    for module in MODULES:
        if module.startswith("ccd_rig.kernel"):
            for line, name in _imports(module):
                known = name.partition(".")[0] in sys.stdlib_module_names or name.startswith("ccd_rig.kernel")
                assert known, f"{module}:{line} imports {name}"


def test_the_kernel_is_entered_by_what_it_offers():
    """Modules of the kernel are imported by each other alone, others take the names of its `__init__.py`."""
    for module in MODULES:
        if not module.startswith("ccd_rig.kernel"):
            for line, name in _imports(module):
                assert not name.startswith("ccd_rig.kernel."), f"{module}:{line} imports {name}"


def test_no_circles():
    """Modules can be laid out in a row in which each imports only from those before it."""
    needs = {
        module: {n for _, n in _imports(module) if n in MODULES and n != module and not _is_empty(n)}
        for module in MODULES
    }
    while free := [module for module, needed in needs.items() if not needed & set(needs)]:
        for module in free:
            del needs[module]
    assert not needs, f"these import each other in a circle: {', '.join(sorted(needs))}"


def test_core_never_imports_blender():
    banned = {"bpy", "bpy_extras", "bl_math", "blf", "bmesh", "gpu", "addon_utils"}
    wrong = [
        f"{module}:{line} imports {name}, but the core is bpy-free"
        for module in MODULES
        if module not in BEYOND_CORE
        for line, name in _imports(module)
        if name.partition(".")[0] in banned or name.startswith("ccd_rig.blender")
    ]
    assert not wrong, "\n".join(wrong)
    assert not banned & {name.partition(".")[0] for _, name in _imports("ccd_rig.__main__")}


def test_version_branches_live_in_one_folder():
    versions, wrong = {"version", "version_string", "version_file"}, []
    for module, file in MODULES.items():
        text = "" if module.startswith(VERSION_BRANCHES) else file.read_text(encoding="utf-8")
        if not any(word in text for word in ("hasattr", "version", "bl_rna")):
            continue
        for node in ast.walk(drawing.tree(file)):
            if isinstance(node, ast.Attribute) and node.attr in versions:
                if ast.unparse(node).startswith("bpy.app."):
                    wrong.append(f"{module}:{node.lineno}: {ast.unparse(node)} outside {VERSION_BRANCHES}")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr":
                wrong.append(
                    f"{module}:{node.lineno}: hasattr outside {VERSION_BRANCHES} is a version branch"
                )
            elif isinstance(node, ast.Compare) and "bl_rna" in ast.unparse(node.comparators[0]):
                words = ast.unparse(node)
                wrong.append(
                    f"{module}:{node.lineno}: {words} outside {VERSION_BRANCHES} is a version branch"
                )
    assert not wrong, "\n".join(wrong)


def test_folders_export_nothing():
    """Each name has one address: an __init__.py registers, or gathers the kernel's or the public names."""
    speaking = {m for m in MODULES if MODULES[m].name == "__init__.py" and not _is_empty(m)}
    assert speaking <= {PUBLIC, "ccd_rig.kernel", "ccd_rig.blender", *SHELLS}


def test_root_imports_inside_functions_only():
    """A root that imports at module level would drag Blender into every test and tool."""
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    assert not [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]


def test_every_folder_was_read():
    """Guards the tests above against an empty list of modules, and the orders against names of nothing."""
    assert {"ccd_rig.errors", "ccd_rig.maths.rotations", "ccd_rig.solvers.solve"} <= set(MODULES)
    assert {name for name in RANK if name not in SHELLS} <= set(MODULES)


def test_a_wrong_import_is_found(monkeypatch, tmp_path):
    """The reader sees relative, nested and absolute imports."""
    file = tmp_path / "errors.py"
    file.write_text(
        "from .solvers import solve\ndef f():\n    from .blender.bake.bake import x\n    import bpy.types\n"
    )
    monkeypatch.setitem(MODULES, "ccd_rig.errors", file)
    names = {name for _, name in _imports("ccd_rig.errors")}
    assert names == {"ccd_rig.solvers.solve", "ccd_rig.blender.bake.bake", "bpy.types"}
    with pytest.raises(AssertionError, match=r"ccd_rig\.errors:.*not above it"):
        test_imports_only_from_above()
    with pytest.raises(AssertionError, match=r"ccd_rig\.errors:.*bpy-free"):
        test_core_never_imports_blender()
    with pytest.raises(AssertionError, match="in a circle"):
        test_no_circles()


def test_a_folder_without_a_place_is_found(monkeypatch, tmp_path):
    file = tmp_path / "new.py"
    file.write_text("x = 1\n")
    monkeypatch.setitem(MODULES, "ccd_rig.other.new", file)
    with pytest.raises(AssertionError, match=r"ccd_rig\.other\.new lies in no folder"):
        test_imports_only_from_above()
