"""What the tests of farms share."""

import pytest


@pytest.fixture
def cli(ext):
    return ext.module("ccd_rig.blender.cli.command_line")


@pytest.fixture
def channels(ext):
    return ext.module("ccd_rig.blender.keys.channels")
