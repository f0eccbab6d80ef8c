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


def test_process_ends_cleanly(ext, tmp_path):
    if AS_MODULE:
        command = [sys.executable, "-c", VISIT, str(ext.zip)]
    else:
        script = tmp_path / "visit.py"
        script.write_text(VISIT)
        command = [bpy.app.binary_path, "--background", "--python", str(script), "--", str(ext.zip)]
    environment = {**os.environ, "BLENDER_USER_RESOURCES": str(tmp_path / "user")}
    (tmp_path / "user").mkdir()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert "VISITED" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert not (tmp_path / "user/extensions/user_default/ccd_rig").exists()
