"""Installing, enabling, disabling: the extension comes and goes without a trace, in any order."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import bpy
import pytest
import rigs
from installed import AS_MODULE, PACKAGE, ROOT, leftovers, visit

# The same package from two repositories.
TWO_COPIES = """
import sys, bpy
first, second = "bl_ext.user_default.ccd_rig", "bl_ext.second.ccd_rig"
bpy.context.preferences.extensions.repos.new(name="Second", module="second")
for repository in ("user_default", "second"):
    bpy.ops.extensions.package_install_files(filepath=sys.argv[-1], repo=repository, enable_on_install=False)
for one, other in ((first, second), (second, first)):
    bpy.ops.preferences.addon_enable(module=one)
    assert "bake" in dir(bpy.ops.ccd_rig)
    try:
        bpy.ops.preferences.addon_enable(module=other)
    except RuntimeError as error:
        assert f"enabled as '{one}' already" in str(error), error
    assert "bake" in dir(bpy.ops.ccd_rig)
    assert bpy.types.CCD_RIG_OT_bake.__module__.startswith(one)
    bpy.ops.preferences.addon_disable(module=other)
    assert "bake" in dir(bpy.ops.ccd_rig)
    bpy.ops.preferences.addon_disable(module=one)
    assert dir(bpy.ops.ccd_rig) == []
    assert not hasattr(bpy.types.Object, "ccd_rig")
print("VISITED")
"""

# What Blender imports when it starts with the extension, and what it has left after it was disabled.
STARTS = """
import sys, bpy
bpy.ops.extensions.package_install_files(filepath=sys.argv[-1], repo="user_default", enable_on_install=False)
before = set(sys.modules)
bpy.ops.preferences.addon_enable(module="bl_ext.user_default.ccd_rig")
print("IMPORTED", *sorted(set(sys.modules) - before))
bpy.ops.preferences.addon_disable(module="bl_ext.user_default.ccd_rig")
print("VISITED")
"""
AT_START = {
    *("ccd_rig", "ccd_rig.defaults", "ccd_rig.errors", "ccd_rig.interrupts", "ccd_rig.json_text"),
    *("ccd_rig.settings", "ccd_rig.maths", "ccd_rig.maths.validation", "ccd_rig.limits"),
    *("ccd_rig.limits.settings", "ccd_rig.motion", "ccd_rig.motion.settings"),
    *("ccd_rig.blender", "ccd_rig.blender.evaluations", "ccd_rig.blender.listening"),
    *("ccd_rig.blender.registration", "ccd_rig.blender.bake"),
    *("ccd_rig.blender.bake.settings", "ccd_rig.blender.bake.trouble", "ccd_rig.blender.farm"),
    *("ccd_rig.blender.farm.settings", "ccd_rig.blender.figures", "ccd_rig.blender.figures.choices"),
    *("ccd_rig.blender.keys", "ccd_rig.blender.keys.destination", "ccd_rig.blender.languages"),
    *("ccd_rig.blender.languages.translation", "ccd_rig.blender.limit_sources"),
    *("ccd_rig.blender.limit_sources.preset_files", "ccd_rig.blender.retarget"),
    *("ccd_rig.blender.retarget.choices", "ccd_rig.blender.viewport", "ccd_rig.blender.viewport.palette"),
}
"""Modules of `ccd_rig` that hold what properties and buttons are declared by, beside `blender.properties`."""
SHELLS = ("ccd_rig.blender.properties", "operators", "panels", "viewport")
HEAVY = {"numpy", "json", "argparse", "hashlib", "ctypes", "subprocess", "difflib"}
"""What solves, files and the command line need of others."""

# A later version is used, then this one is installed over it, as who goes back does; then Blender starts.
BACK_TO_THIS = """
import os, sys, bpy
from pathlib import Path
later, this, file, step = sys.argv[-4:]
name = "bl_ext.user_default.ccd_rig"
folder = Path(os.environ["BLENDER_USER_RESOURCES"], "extensions/user_default/ccd_rig")

def install(zip):
    bpy.ops.extensions.package_install_files(filepath=zip, repo="user_default", enable_on_install=True)

def check_this():
    preferences = bpy.context.preferences.addons[name].preferences
    assert preferences.show_chain_limits and not preferences.follow_selection
    assert "later" not in dir(bpy.ops.ccd_rig) and not hasattr(preferences, "of_later")
    assert not hasattr(bpy.types.Object, "ccd_rig_later")
    assert not [file for file in folder.rglob("later*")]
    assert 'version = "0.2.0"' in (folder / "blender_manifest.toml").read_text()
    bpy.ops.wm.open_mainfile(filepath=file)
    [row] = bpy.data.objects["Rig"].ccd_rig.constraints
    assert (row.name, row.tip, row.weight) == ("Hand", "bone", 2.5)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    bpy.ops.wm.save_userpref()  # Blender forgets the preferences of an add-on that is disabled
    for _ in range(2):
        bpy.ops.preferences.addon_disable(module=name)
        assert dir(bpy.ops.ccd_rig) == [] and not hasattr(bpy.types.Object, "ccd_rig")
        bpy.ops.preferences.addon_enable(module=name)
        assert "bake" in dir(bpy.ops.ccd_rig)

if step == "first":
    install(later)
    preferences = bpy.context.preferences.addons[name].preferences
    preferences.show_chain_limits, preferences.follow_selection, preferences.of_later = True, False, 7
    assert "later" in dir(bpy.ops.ccd_rig)
    bpy.ops.wm.read_homefile(use_empty=True)
    armature = bpy.data.armatures.new("Rig")
    rig = bpy.data.objects.new("Rig", armature)
    goal = bpy.data.objects.new("Goal", None)
    for thing in (rig, goal):
        bpy.context.scene.collection.objects.link(thing)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    armature.edit_bones.new("bone").tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="POSE")
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target, row.weight = "Hand", "bone", goal, 2.5
    goal.location, rig.ccd_rig_later = (0, 1, 0), 3
    bpy.ops.wm.save_as_mainfile(filepath=file)
    install(this)
    check_this()
else:
    assert name in bpy.context.preferences.addons
    check_this()
print("VISITED")
"""


def later_version(package, path):
    """The package as a later version may be: another number; a file, a command and settings that are new."""
    new = {
        "operators/later.py": (
            "import bpy\n"
            "class CCD_RIG_OT_later(bpy.types.Operator):\n"
            "    bl_idname, bl_label = 'ccd_rig.later', 'Later'\n"
        ),
    }
    changed = {
        "blender_manifest.toml": ('version = "0.2.0"', 'version = "0.3.0"'),
        "viewport/preferences.py": (
            "    bl_idname = ROOT\n",
            "    bl_idname = ROOT\n    of_later: bpy.props.IntProperty()\n",
        ),
        "viewport/overlay.py": (
            "def register() -> None:\n",
            "def register() -> None:\n    bpy.types.Object.ccd_rig_later = bpy.props.IntProperty()\n",
        ),
        "viewport/online_manual.py": (
            "def unregister() -> None:\n",
            "def unregister() -> None:\n    del bpy.types.Object.ccd_rig_later\n",
        ),
    }
    with zipfile.ZipFile(package) as this, zipfile.ZipFile(path, "w") as later:
        for name in this.namelist():
            content = this.read(name)
            if name in changed:
                before, after = (words.encode() for words in changed[name])
                assert before in content, name
                content = content.replace(before, after)
            later.writestr(name, content)
        for name, text in new.items():
            later.writestr(name, text)
    return path


def test_core_has_one_copy(ext):
    with pytest.raises(ImportError, match="fixture `ext`"):
        __import__("ccd_rig")
    assert ext.core.__name__ == f"{PACKAGE}.ccd_rig"
    assert Path(ext.core.__file__).is_relative_to(os.environ["BLENDER_USER_RESOURCES"])
    assert not Path(ext.core.__file__).is_relative_to(ROOT)


def test_a_start_imports_declarations_alone(ext, tmp_path):
    """Solvers, bakes, files and the command line are imported when they are first used."""
    told = visit(STARTS, tmp_path, ext.zip, is_told=True)
    [imported] = [line.split()[1:] for line in told.splitlines() if line.startswith("IMPORTED ")]
    ours = {name.removeprefix(f"{PACKAGE}.") for name in imported if name.startswith(f"{PACKAGE}.")}
    assert {"operators.bake", "panels.bake", "ccd_rig.blender.properties.limits"} <= ours
    assert {name for name in ours if not name.startswith(SHELLS)} <= AT_START
    assert not HEAVY & set(imported)


def test_disable_and_enable_again(ext):
    for _ in range(3):
        bpy.ops.preferences.addon_disable(module=PACKAGE)
        assert leftovers() == []
        bpy.ops.preferences.addon_enable(module=PACKAGE)
        assert set(dir(bpy.ops.ccd_rig)) >= {"constraint_add", "constraint_remove", "solve", "bake"}


def test_disabled_after_a_bake_by_a_script(ext):
    """It uses no command of the extension's, and stores a report."""
    rig = rigs.chain(3)
    rigs.reach(rig, "bone_2", rigs.empty("Goal", (1.0, 0.5, 1.0)))
    bpy.ops.preferences.addon_disable(module=PACKAGE)
    bpy.ops.preferences.addon_enable(module=PACKAGE)
    bake = ext.module("ccd_rig.blender.bake.bake")
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    bpy.ops.preferences.addon_disable(module=PACKAGE)
    assert leftovers() == []
    bpy.ops.preferences.addon_enable(module=PACKAGE)


def test_disabled_after_another_add_on_cleared_the_handlers(ext):
    lists = [
        each for name in dir(bpy.app.handlers) if isinstance(each := getattr(bpy.app.handlers, name), list)
    ]
    kept = [list(each) for each in lists]
    try:
        for each in lists:
            each.clear()
        bpy.ops.preferences.addon_disable(module=PACKAGE)
        assert leftovers() == []
        bpy.ops.preferences.addon_enable(module=PACKAGE)
        assert "bake" in dir(bpy.ops.ccd_rig)
    finally:
        for each, before in zip(lists, kept, strict=True):
            each += [function for function in before if not function.__module__.startswith(PACKAGE)]


def test_survives_loading_a_file(ext, tmp_path):
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "empty.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "empty.blend"))
    assert {"constraint_add", "bake"} <= set(dir(bpy.ops.ccd_rig))


def test_a_second_copy_is_refused(ext, tmp_path):
    visit(TWO_COPIES, tmp_path, ext.zip)


def test_an_older_version_over_a_later_one(ext, tmp_path):
    later = later_version(ext.zip, tmp_path / "ccd_rig-0.3.0.zip")
    words = (later, ext.zip, tmp_path / "shot.blend")
    assert "Traceback" not in visit(BACK_TO_THIS, tmp_path, *words, "first")
    if not AS_MODULE:  # the module starts without preferences, and crashes where it reads them
        assert "Traceback" not in visit(BACK_TO_THIS, tmp_path, *words, "second")


def test_a_failure_on_the_way_leaves_nothing_registered(ext, monkeypatch):
    bpy.ops.preferences.addon_disable(module=PACKAGE)
    for name in ("viewport", "panels", "operators"):
        monkeypatch.setattr(ext.module(name), "register", lambda: 1 / 0)
        with pytest.raises(RuntimeError, match="division by zero"):
            bpy.ops.preferences.addon_enable(module=PACKAGE)
        monkeypatch.undo()
        assert leftovers() == []
    bpy.ops.preferences.addon_enable(module=PACKAGE)
    assert "bake" in dir(bpy.ops.ccd_rig)
