"""What the tests of solving share."""

from __future__ import annotations

import pytest


@pytest.fixture
def bake(ext):
    return ext.module("ccd_rig.blender.bake.bake")


@pytest.fixture
def channels(ext):
    return ext.module("ccd_rig.blender.keys.channels")


@pytest.fixture
def checks(ext):
    return ext.module("ccd_rig.blender.checks.setup")


@pytest.fixture
def errors(ext):
    return ext.module("ccd_rig.errors")
