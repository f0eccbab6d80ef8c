"""What the tests of the command line share."""

from __future__ import annotations

import bpy
import pytest
import rigs


@pytest.fixture
def shot(ext, tmp_path):
    """A saved file with a rig, a moving target keyed from frame -3, and the frame range 0 to 8."""
    rig = rigs.chain(4, 0.5)
    target = rigs.empty("Target")
    for frame, x in ((-3, 0.2), (8, 0.9)):
        target.location = (x, 0.1, 1.3)
        target.keyframe_insert("location", frame=frame)
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Hand", "bone_3", target
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 0, 8
    path = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


@pytest.fixture
def edit(shot):
    """Change the file: a function that opens it, calls another with the rig, and saves it."""

    def change(function):
        bpy.ops.wm.open_mainfile(filepath=str(shot))
        function(bpy.data.objects["Rig"])
        bpy.ops.wm.save_as_mainfile(filepath=str(shot))

    return change
