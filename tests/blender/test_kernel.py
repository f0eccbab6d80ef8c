"""The compiled kernel in Blender: it comes with the extension's wheel, changes with it, and goes with it."""

from __future__ import annotations

import os
import platform
import re
import zipfile
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import bpy
import pytest
import rigs
from installed import visit

FOLDER = Path(__file__).parent
SYSTEM = f"'{platform.system()} {platform.machine()}'"

PRELUDE = """
import importlib, os, sys
from pathlib import Path
import bpy
sys.path.insert(0, sys.argv[-1])
from wheels_only import WheelsOnly
sys.meta_path.insert(0, WheelsOnly())
name = "bl_ext.user_default.ccd_rig"
local = Path(os.environ["BLENDER_USER_RESOURCES"], "extensions/.local")

def install(zip):
    bpy.ops.extensions.package_install_files(filepath=zip, repo="user_default", enable_on_install=True)

def kernel():
    return importlib.import_module(f"{name}.ccd_rig.kernel")

def files():
    return sorted(f.name for f in local.rglob("ccd_rig_kernel*") if f.suffix != ".pyc")
"""

# An older version is installed, then this one over it; then Blender starts anew.
UPDATE = (
    PRELUDE
    + """
step, older, this = sys.argv[-4:-1]
if step == "first":
    install(older)
    assert kernel().why_plain() == "", kernel().why_plain()
    old = files()
    assert kernel()._compiled.__file__.endswith(".py") and len(old) == 2, old
    install(this)
    assert kernel().why_plain() == "", kernel().why_plain()
    assert not kernel()._compiled.__file__.endswith(".py")
    assert len(files()) == 2 and not set(files()) & set(old), files()
else:
    bpy.ops.preferences.addon_enable(module=name)
    assert kernel().why_plain() == "", kernel().why_plain()
    assert Path(kernel()._compiled.__file__).is_relative_to(local)
    assert not kernel()._compiled.__file__.endswith(".py")
print("VISITED")
"""
)

# A user's whole visit, in a process that then ends as any script does: on 4.2 a class that is left registered
# crashes the exit, on 4.5 it hangs it.
REMOVE = (
    PRELUDE
    + """
install(sys.argv[-2])
assert len(files()) == 2, files()
bpy.ops.preferences.addon_disable(module=name)
assert files() == []
bpy.ops.preferences.addon_enable(module=name)
assert len(files()) == 2, files()
repositories = [r.module for r in bpy.context.preferences.extensions.repos]
bpy.ops.extensions.package_uninstall(repo_index=repositories.index("user_default"), pkg_id="ccd_rig")
assert files() == []
assert [f for f in local.rglob("*") if f.is_file()] == []
print("VISITED")
"""
)

NO_WHEEL = (
    PRELUDE
    + """
import numpy
sys.path[:] = [folder for folder in sys.path if not list(Path(folder).glob("ccd_rig_kernel_*"))]
install(sys.argv[-2])
assert name in bpy.context.preferences.addons
assert files() == []
print(kernel().why_plain(), file=sys.stderr)
assert "bake" in dir(bpy.ops.ccd_rig)
print("VISITED")
"""
)

STAND_IN = """
import importlib, sys

def __getattr__(name):
    kernel = sys.modules["bl_ext.user_default.ccd_rig.ccd_rig.kernel"]
    for module, names in kernel.ENTRIES:
        if name in names:
            return getattr(importlib.import_module(f"{kernel.__name__}.{module}"), name)
    raise AttributeError(name)
"""


def changed(package: Path, path: Path, change) -> Path:
    """The package with other files: `change` gets and returns their content by name."""
    with zipfile.ZipFile(package) as archive:
        files = change({name: archive.read(name) for name in archive.namelist()})
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def older_version(ext, package: Path, path: Path) -> Path:
    """The package as an older version may be: other sources, and wheels with another version.

    What stands for its compiled kernel is a Python module, which has the names of the plain ones.
    """
    tools = ext.module("ccd_rig.kernel.loading")
    folder = path.parent / "older"
    folder.mkdir()

    def change(files: dict[str, bytes]) -> dict[str, bytes]:
        files["ccd_rig/kernel/older.py"] = b'"""A module that this version no longer has."""\n'
        for name in files:
            if name.startswith("ccd_rig/kernel/"):
                (folder / Path(name).name).write_bytes(files[name])
        module = tools.module_name(folder) + ".py"
        wheels = [name for name in files if name.endswith(".whl")]
        for name in wheels:
            older = re.sub(r"-0\.2\.0\.\d+-", "-0.2.0.1-", name)
            assert older != name
            info = "ccd_rig_kernel-0.2.0.1.dist-info"
            with zipfile.ZipFile(path.parent / "wheel", "w") as wheel:
                wheel.writestr(module, STAND_IN)
                wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\n")
                wheel.writestr(f"{info}/RECORD", f"{module},,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
            del files[name]
            files[older] = (path.parent / "wheel").read_bytes()
            manifest = files["blender_manifest.toml"].decode()
            files["blender_manifest.toml"] = manifest.replace(name, older).encode()
        return files

    return changed(package, path, change)


def test_the_wheel_is_used(ext):
    kernel = ext.module("ccd_rig.kernel")
    assert kernel.why_plain() == ""
    local = Path(os.environ["BLENDER_USER_RESOURCES"], "extensions/.local")
    assert Path(kernel._compiled.__file__).is_relative_to(local)
    fingerprint = ext.module("ccd_rig.kernel.loading").fingerprint(Path(kernel.__file__).parent)
    assert kernel._compiled.__name__ == f"ccd_rig_kernel_{fingerprint}"


def test_an_update_brings_its_kernel(ext, tmp_path):
    older = older_version(ext, ext.zip, tmp_path / "ccd_rig-older.zip")
    for step in ("first", "second"):
        assert "Traceback" not in visit(UPDATE, tmp_path, step, older, ext.zip, FOLDER)


def test_nothing_stays_behind(ext, tmp_path):
    assert "Traceback" not in visit(REMOVE, tmp_path, ext.zip, FOLDER)
    assert not (tmp_path / "user/extensions/user_default/ccd_rig").exists()


def test_a_system_without_wheel_runs_the_plain_modules(ext, tmp_path):
    def change(files: dict[str, bytes]) -> dict[str, bytes]:
        words = re.sub(r'^  "\./wheels/.*\n', "", files["blender_manifest.toml"].decode(), flags=re.MULTILINE)
        assert words.endswith("]\n")
        return {**files, "blender_manifest.toml": words.encode()}

    told = visit(NO_WHEEL, tmp_path, changed(ext.zip, tmp_path / "ccd_rig.zip", change), FOLDER)
    assert f"no compiled kernel for {SYSTEM}: solving is slower" in told


WHY = "This package has no compiled kernel for 'Linux riscv64': solving is slower"


@pytest.fixture
def rig(ext):
    """A chain with a goal, in the scene's four frames."""
    made = rigs.chain(3)
    row = made.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Hand", "bone_2", rigs.empty("Goal", (1.0, 0.0, 1.0))
    rigs.activate(made)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 4
    return made


@pytest.mark.parametrize("why", ["", WHY])
def test_the_panel_says_why_solving_is_slower(ext, rig, monkeypatch, why):
    panel = ext.module("panels.bake")
    told = []
    monkeypatch.setattr(ext.module("ccd_rig.kernel"), "why_plain", lambda: why)
    monkeypatch.setattr(panel, "draw_words", lambda layout, context, words, icon: told.append(words))
    panel.CCD_RIG_PT_bake.draw(SimpleNamespace(layout=MagicMock()), bpy.context)
    assert told == ([why] if why else [])


@pytest.mark.parametrize("why", ["", WHY])
def test_a_bake_says_why_solving_is_slower(ext, rig, bake, monkeypatch, why):
    monkeypatch.setattr(bake, "why_plain", lambda: why)
    settings = ext.module("ccd_rig.blender.bake.settings").BakeSettings(1, 4)
    report = bake.bake(bpy.context.scene, rig, settings)
    assert report.warnings == ((why,) if why else ())


def test_the_line_is_told_in_other_languages(ext):
    catalogue = ext.module("ccd_rig.blender.languages.catalogue")
    folder = Path(catalogue.__file__).parent
    words = catalogue.Catalogue(catalogue.read(folder / "de.json")).translated(WHY)
    assert (
        words
        == "Dieses Paket hat keinen kompilierten Rechenkern für 'Linux riscv64': Das Lösen dauert länger"
    )
