"""A figure that walks, and Rigify's basic human that is to walk as it does."""

from __future__ import annotations

import pytest
import rigs
import walks


@pytest.fixture
def source(ext):
    return walks.walk(ext, cycles=2, in_place=False)


@pytest.fixture
def target(source):
    rig = rigs.metarig("basic_human")
    rig.ccd_rig.retarget.source = source
    rigs.activate(rig)
    return rig
