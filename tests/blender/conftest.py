"""The extension as users get it: installed from the zip into an empty user folder, enabled, used, disabled.

Everything is reached through the fixture `ext`. The core exists here under the extension's name only:
importing the top-level `ccd_rig` too would give every enum a second, unequal copy, so that is refused.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from types import ModuleType

# Before bpy: it reads the variables once, when it starts. What Blender, and processes that tests start, leave
# behind goes with the scratch folder; pytest cleans up by itself.
if "bpy" not in sys.modules:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    os.environ["CCD_RIG_SCRATCH"] = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="ccd_rig_tests_")
    tempfile.tempdir = os.environ["TMPDIR"]
    os.environ["BLENDER_USER_RESOURCES"] = tempfile.mkdtemp(prefix="ccd_rig_user_")

import bpy
import pytest
from installed import AS_MODULE, PACKAGE, Extension, leftovers, package_file
from module_alone import MODULE_ALONE
from wheels_only import WheelsOnly

collect_ignore = [] if AS_MODULE else [*MODULE_ALONE]


class _OneCopy:
    """An import finder that refuses the core under its second name."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == "ccd_rig":
            raise ImportError(
                f"{name}: in tests/blender use the fixture `ext`, as in ext.core or ext.module(...)"
            )


sys.meta_path[:0] = [_OneCopy(), WheelsOnly()]


@pytest.fixture(scope="session")
def ext() -> Iterator[Extension]:
    """Install and enable the zip as a user does; disable it at the end and see that nothing of it stays."""
    assert leftovers() == []
    package = str(package_file())
    done = bpy.ops.extensions.package_install_files(
        filepath=package, repo="user_default", enable_on_install=True
    )
    assert done == {"FINISHED"}
    assert PACKAGE in bpy.context.preferences.addons, "installed but not enabled: see the output"
    assert leftovers() != []
    # Blender does this when a user quits: a second Blender on the same folder then knows the extension.
    bpy.ops.wm.save_userpref()
    yield Extension()
    bpy.ops.preferences.addon_disable(module=PACKAGE)
    assert leftovers() == []


@pytest.fixture(scope="session")
def empty_file(ext: Extension, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Path of an empty file as this Blender writes it, with one workspace: read faster than that inside
    Blender."""
    path = str(tmp_path_factory.mktemp("empty") / "empty.blend")
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.data.batch_remove([each for each in bpy.data.workspaces if each != bpy.context.workspace])
    bpy.ops.wm.save_as_mainfile(filepath=path, copy=True)
    return path


@pytest.fixture(autouse=True)
def _empty_file(empty_file: str) -> None:
    """Each test starts in an empty file; preferences, and so the extension, stay."""
    bpy.ops.wm.read_homefile(filepath=empty_file)


# Modules that tests of several folders look at.


@pytest.fixture
def bake(ext: Extension) -> ModuleType:
    return ext.module("ccd_rig.blender.bake.bake")


@pytest.fixture
def channels(ext: Extension) -> ModuleType:
    return ext.module("ccd_rig.blender.keys.channels")


@pytest.fixture
def checks(ext: Extension) -> ModuleType:
    return ext.module("ccd_rig.blender.checks")


@pytest.fixture
def cli(ext: Extension) -> ModuleType:
    return ext.module("ccd_rig.blender.cli.command_line")


@pytest.fixture
def errors(ext: Extension) -> ModuleType:
    return ext.module("ccd_rig.errors")


@pytest.fixture
def rows(ext: Extension) -> ModuleType:
    return ext.module("ccd_rig.blender.properties.constraint_list")
