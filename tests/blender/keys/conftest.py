"""What the tests of keys share."""

from __future__ import annotations

import pytest


@pytest.fixture
def channels(ext):
    return ext.module("ccd_rig.blender.keys.channels")


@pytest.fixture
def writing(ext):
    return ext.module("ccd_rig.blender.keys.writer")


@pytest.fixture
def errors(ext):
    return ext.module("ccd_rig.errors")
