"""A figure that walks, and Rigify's basic human that is to walk as it does."""

from __future__ import annotations

import bpy
import pytest
import rigs
import walks


@pytest.fixture
def retarget(ext):
    return ext.module("ccd_rig.blender.retarget.retarget")


@pytest.fixture
def carried_over(retarget):
    """The motion of a source on a figure by the choices of its panel; what was done, for the report."""
    return lambda source, rig: retarget.retarget_motion(
        bpy.context.scene, source, rig, retarget.choice_of(rig)
    )


@pytest.fixture
def source(ext):
    return walks.walk(ext, cycles=2, in_place=False)


@pytest.fixture
def target(source):
    rig = rigs.metarig("basic_human")
    rig.ccd_rig.retarget.source = source
    rigs.activate(rig)
    return rig
