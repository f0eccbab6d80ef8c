"""The order of the layers, read from the imports: each module imports only from layers to its left."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# As in docs/architecture.md, left to right. Modules that share a layer do not import each other.
CORE = (
    {"errors"},
    {"quaternions", "nearest", "matrices", "states"},
    {"ranges"},
    {"limits"},
    {"nesting", "hinges", "clamping", "samples"},
    {"skeleton"},
    {"goals"},
    {"views", "sweeps", "residuals", "poses"},
    {"windows", "kinematics", "best_moves"},
    {"steps", "refine", "settings"},
    {"reach", "restarts", "single_pass"},
    {"leaf", "passes"},
    {"pushes"},
    {"loop"},
    {"solver"},
    {"analytic"},
    {"triangle", "rerooting", "builders", "retarget", "sampling"},
    {"least_turns"},
    {"inbetweens", "reduction", "smoothing"},
)
BLENDER = (
    {
        "bone_space",
        "constraint",
        "names",
        "overrides",
        "isolation",
        "settings",
        "keyframes",
        "pose_values",
        "report",
        "slides",
        "steady",
        "surfaces",
    },
    {"rotation_modes"},
    {"channels", "armature", "joints", "constraint_group"},
    {"obstacles", "strips"},
    {"bake_settings"},
    {"writing"},
    {"library"},
    {"properties", "rows", "dependence"},
    {"aims", "wanted_frames"},
    {"planting", "methods"},
    {"plant_checks"},
    {"sights"},
    {"evaluation", "row_checks", "capture"},
    {"solving", "tracks"},
    {"checks", "take", "walking"},
    {"march", "standing", "originals", "measuring"},
    {"again"},
    {"shot"},
    {"keying", "playing", "thinning", "arguments"},
    {"bake", "blend_files"},
    {"live", "overlay", "cli"},
)
PUBLIC = "ccd_rig"  # ccd_rig/__init__.py: gathers the core's names, so it stands right of the core
SHELLS = ("operators", "panels")
VERSION_BRANCHES = "ccd_rig.blender.channels"  # the one module that may ask which Blender this is


def _layers() -> list[set[str]]:
    core = [{f"ccd_rig.{name}" for name in layer} for layer in CORE]
    blender = [{f"ccd_rig.blender.{name}" for name in layer} for layer in BLENDER]
    return [*core, {PUBLIC}, *blender, {"ccd_rig.blender"}, {"ccd_rig.__main__", *SHELLS}]


RANK = {name: rank for rank, layer in enumerate(_layers()) for name in layer}


def _modules() -> dict[str, Path]:
    """Dotted name -> file, of everything that goes into the package but the root's __init__.py."""
    found = {}
    for folder in ("ccd_rig", *SHELLS):
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = _modules()
BEYOND_CORE = {m for m in MODULES if m.startswith(("ccd_rig.blender", "ccd_rig.__main__", *SHELLS))}


def _imports(module: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of each import, also in functions; relative ones count from the root."""
    file = MODULES[module]
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # The root's own package has no name here: "from ..ccd_rig" in operators/ climbs to nothing.
            climbed = package[: len(package) - (node.level - 1)] if node.level else []
            base = ".".join([*climbed, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{base}.{alias.name}" if base else alias.name
                yield node.lineno, name if name in MODULES else base


def _layer_of(module: str) -> str:
    """The name under which a module is ranked: all of operators is one layer, and so is all of panels."""
    top = module.partition(".")[0]
    return top if top in SHELLS else module


@pytest.mark.parametrize("module", MODULES)
def test_imports_only_from_the_left(module):
    layer = _layer_of(module)
    assert layer in RANK, f"{module} has no layer: give it a place here and in docs/architecture.md"
    for line, name in _imports(module):
        if name not in MODULES:
            continue
        target = _layer_of(name)
        if layer == target and layer in SHELLS:
            continue  # files of operators/ may share code among themselves, as may those of panels/
        assert target in RANK, f"{module}:{line} imports {name}, which has no layer"
        assert RANK[target] < RANK[layer], f"{module}:{line} imports {name}, which is not to its left"


@pytest.mark.parametrize("module", [m for m in MODULES if m not in BEYOND_CORE])
def test_core_never_imports_blender(module):
    banned = {"bpy", "bpy_extras", "bl_math", "blf", "bmesh", "gpu", "addon_utils"}
    for line, name in _imports(module):
        assert name.partition(".")[0] not in banned, (
            f"{module}:{line} imports {name}, but the core is bpy-free"
        )
        assert not name.startswith("ccd_rig.blender"), f"{module}:{line} imports {name}"


@pytest.mark.parametrize("module", [m for m in MODULES if m != VERSION_BRANCHES])
def test_version_branches_live_in_one_module(module):
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Attribute) and node.attr in {"version", "version_string", "version_file"}:
            dotted = ast.unparse(node)
            assert not dotted.startswith("bpy.app."), f"{module}:{line}: {dotted} outside {VERSION_BRANCHES}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr":
            raise AssertionError(f"{module}:{line}: hasattr outside {VERSION_BRANCHES} is a version branch")


def test_root_imports_inside_functions_only():
    """A root that imports at module level would drag Blender into every test and tool."""
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    assert not [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]


def test_every_layer_was_read():
    """Guards the tests above against an empty list of modules."""
    assert {"ccd_rig.errors", "ccd_rig.quaternions", "ccd_rig.solver", "ccd_rig.skeleton"} <= set(MODULES)


def test_a_wrong_import_is_found(monkeypatch, tmp_path):
    """The reader sees relative, nested and absolute imports."""
    file = tmp_path / "errors.py"
    file.write_text("from . import solver\ndef f():\n    from .blender.bake import x\n    import bpy.types\n")
    monkeypatch.setitem(MODULES, "ccd_rig.errors", file)
    monkeypatch.setitem(MODULES, "ccd_rig.blender.bake", file)
    names = {name for _, name in _imports("ccd_rig.errors")}
    assert names == {"ccd_rig.solver", "ccd_rig.blender.bake", "bpy.types"}
    with pytest.raises(AssertionError, match="not to its left"):
        test_imports_only_from_the_left("ccd_rig.errors")
    with pytest.raises(AssertionError, match=r"bpy-free|imports ccd_rig\.blender"):
        test_core_never_imports_blender("ccd_rig.errors")
