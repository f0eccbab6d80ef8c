"""What the tests of rigs share."""

from __future__ import annotations

import pytest


@pytest.fixture
def bones(ext):
    """The module under test."""
    return ext.module("ccd_rig.blender.rig.armature")


@pytest.fixture
def modes(ext):
    """The module with rotation modes and their channels."""
    return ext.module("ccd_rig.blender.rig.rotation_modes")
