"""Installing, enabling, disabling: the extension comes and goes without a trace, in any order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import bpy
import pytest
from installed import AS_MODULE, PACKAGE, ROOT, leftovers

# A user's whole visit in a process of its own that then ends as any script does: on 4.2 a class that is still
# registered crashes the exit, on 4.5 it hangs it.
VISIT = """
import sys, bpy
bpy.ops.extensions.package_install_files(filepath=sys.argv[-1], repo="user_default", enable_on_install=True)
assert "bl_ext.user_default.ccd_rig" in bpy.context.preferences.addons
bpy.ops.preferences.addon_disable(module="bl_ext.user_default.ccd_rig")
repositories = [r.module for r in bpy.context.preferences.extensions.repos]
bpy.ops.extensions.package_uninstall(repo_index=repositories.index("user_default"), pkg_id="ccd_rig")
print("VISITED")
"""

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


def test_core_has_one_copy(ext):
    with pytest.raises(ImportError, match="fixture `ext`"):
        __import__("ccd_rig")
    assert ext.core.__name__ == f"{PACKAGE}.ccd_rig"
    assert Path(ext.core.__file__).is_relative_to(os.environ["BLENDER_USER_RESOURCES"])
    assert not Path(ext.core.__file__).is_relative_to(ROOT)


def test_disable_and_enable_again(ext):
    for _ in range(3):
        bpy.ops.preferences.addon_disable(module=PACKAGE)
        assert leftovers() == []
        bpy.ops.preferences.addon_enable(module=PACKAGE)
        assert set(dir(bpy.ops.ccd_rig)) >= {"constraint_add", "constraint_remove", "solve", "bake"}


def test_survives_loading_a_file(ext, tmp_path):
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "empty.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "empty.blend"))
    assert {"constraint_add", "bake"} <= set(dir(bpy.ops.ccd_rig))


def visit(source, package, tmp_path):
    """Run a script in a process of its own, with an empty user folder; what it writes to standard error."""
    if AS_MODULE:
        command = [sys.executable, "-c", source, str(package)]
    else:
        script = tmp_path / "visit.py"
        script.write_text(source)
        command = [bpy.app.binary_path, "--background", "--python", str(script), "--", str(package)]
    environment = {**os.environ, "BLENDER_USER_RESOURCES": str(tmp_path / "user")}
    (tmp_path / "user").mkdir()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert "VISITED" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def test_a_second_copy_is_refused(ext, tmp_path):
    visit(TWO_COPIES, ext.zip, tmp_path)


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


def test_process_ends_cleanly(ext, tmp_path):
    assert "Traceback" not in visit(VISIT, ext.zip, tmp_path)
    assert not (tmp_path / "user/extensions/user_default/ccd_rig").exists()
