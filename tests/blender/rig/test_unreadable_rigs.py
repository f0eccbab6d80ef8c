"""Rigs that cannot be read are refused in words that name the bone."""

from __future__ import annotations

import math

import pytest
from mathutils import Matrix
from rigs import (
    chain,
    empty,
    update,
)


def test_bad_rigs_are_refused_in_words(bones, errors):
    rig, other = chain(3), empty("Cube")
    chains = [("bone_2", 0)]
    with pytest.raises(errors.RigError, match="object 'Cube' is not an armature"):
        bones.read(other, chains, {})
    with pytest.raises(errors.RigError, match="nothing is not an armature"):
        bones.read(None, chains, {})
    with pytest.raises(errors.RigError, match="no bone 'gone' in armature 'Rig'"):
        bones.read(rig, [("gone", 2)], {})
    with pytest.raises(errors.InvalidInput, match="chain length of 'bone_2'"):
        bones.read(rig, [("bone_2", -1)], {})
    rig.data.pose_position = "REST"
    with pytest.raises(errors.RigError, match="'Rig' is shown in Rest Position"):
        bones.read(rig, chains, {})


def test_zero_length_is_refused(bones, errors):
    rig = chain(2)
    rig.data.transform(Matrix.Scale(1e-7, 4))  # Edit Mode would remove such bones, this keeps them
    update()
    with pytest.raises(errors.RigError, match="bone 'bone_0' has zero length"):
        bones.read(rig, [("bone_1", 0)], {})


@pytest.mark.parametrize(
    ("mode", "channel", "what"),
    [
        ("QUATERNION", "rotation_quaternion", "rotation"),
        ("XYZ", "rotation_euler", "rotation"),
        ("AXIS_ANGLE", "rotation_axis_angle", "rotation"),
        ("XYZ", "location", "location"),
        ("XYZ", "scale", "scale"),
    ],
)
def test_values_that_are_not_numbers_are_refused(bones, errors, mode, channel, what):
    rig = chain(2, connect=False)
    rig.pose.bones["bone_1"].rotation_mode = mode
    layout = bones.layout(rig, [("bone_1", 0)], {})
    values = list(getattr(rig.pose.bones["bone_1"], channel))
    setattr(rig.pose.bones["bone_1"], channel, [math.nan, *values[1:]])
    with pytest.raises(errors.RigError, match=f"bone 'bone_1' has a {what} that is not a number"):
        layout.read(rig)


def test_refusal_while_reading_a_plan_names_the_bone(bones, errors):
    rig = chain(3)
    layout = bones.layout(rig, [("bone_2", 0)], {})
    rig.pose.bones["bone_0"].scale = (1, 2, 1)
    with pytest.raises(
        errors.RigError, match=r"bone 'bone_1' inherits non-uniform scale \(1, 2, 1\) from 'bone_0'"
    ):
        layout.read(rig)
    rig.pose.bones["bone_0"].scale = (1, 1, 1)
    assert layout.read(rig).bones == ("bone_0", "bone_1", "bone_2")
