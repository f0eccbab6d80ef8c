"""Modules that the tests of evaluated scenes look at."""

from __future__ import annotations

import pytest


@pytest.fixture
def evaluation(ext):
    return ext.module("ccd_rig.blender.scene.evaluation")


@pytest.fixture
def constraints_of(ext):
    return ext.module("ccd_rig.blender.properties.constraint_kinds").constraints


@pytest.fixture
def dependence(ext):
    return ext.module("ccd_rig.blender.scene.dependence")


@pytest.fixture
def isolation(ext):
    return ext.module("ccd_rig.blender.scene.isolation")


@pytest.fixture
def skeletons(ext):
    return ext.module("ccd_rig.skeleton.kinematics")
