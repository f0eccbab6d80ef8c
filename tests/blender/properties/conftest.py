"""What the tests of stored properties share."""

from __future__ import annotations

import pytest


@pytest.fixture
def library(ext):
    return ext.module("ccd_rig.blender.properties.pose_library")
