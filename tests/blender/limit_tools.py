"""What tests of limits share."""

from __future__ import annotations

import test_operators


def select(ext, rig, *bones):
    """Pose Mode with these bones selected, the last of them active; the bones."""
    test_operators.select(ext, rig, *bones)
    return [rig.pose.bones[name] for name in bones]


def value(ext, bone):
    """A bone's limit as the core's value."""
    return ext.module("ccd_rig.blender.properties.joints").limit_value(bone.ccd_rig.limit)
