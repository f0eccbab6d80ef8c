"""What the tests of keys share."""

from __future__ import annotations

import pytest


@pytest.fixture
def writing(ext):
    return ext.module("ccd_rig.blender.keys.writer")
