"""What the tests of the live preview share."""

from __future__ import annotations

import bpy
import pytest
import rigs
from shown import reach


@pytest.fixture(autouse=True)
def no_traceback(capfd):
    """Blender prints what a handler raises, and goes on."""
    yield
    seen = capfd.readouterr()
    assert "Traceback" not in seen.out + seen.err, seen.out + seen.err


@pytest.fixture
def live(ext):
    """The module of the handlers."""
    return ext.module("ccd_rig.blender.live")


@pytest.fixture
def clamps(ext):
    return ext.module("ccd_rig.blender.rig.clamps")


@pytest.fixture
def solved(ext, monkeypatch):
    """The solves since, by the inputs of each."""
    single_frame = ext.module("ccd_rig.blender.bake.single_frame")
    solve, seen = single_frame.solve_sample, []
    monkeypatch.setattr(single_frame, "solve_sample", lambda *a, **k: (seen.append(a), solve(*a, **k))[1])
    return seen


@pytest.fixture
def rig(ext):
    made = rigs.chain(4)
    reach(made, "bone_3", (1.5, 0.5, 2.0))
    bpy.ops.object.mode_set(mode="POSE")
    return made
