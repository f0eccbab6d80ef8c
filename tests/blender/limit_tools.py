"""What tests of limits share."""

from __future__ import annotations


def value(ext, bone):
    """A bone's limit as the core's value."""
    return ext.module("ccd_rig.blender.properties.limits").limit_value(bone.ccd_rig.limit)
