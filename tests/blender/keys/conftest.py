"""What the tests of keys share."""

from __future__ import annotations

import bpy
import pytest
from keyed import key_richly, make_armature


@pytest.fixture
def writing(ext):
    return ext.module("ccd_rig.blender.keys.writer")


@pytest.fixture
def library(tmp_path):
    """A file with an animated armature."""
    make_armature()
    key_richly(bpy.data.objects["Rig"])
    bpy.data.objects["Rig"].animation_data.action.name = "Stored"
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "library.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    return tmp_path / "library.blend"
