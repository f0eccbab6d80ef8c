"""The motion of animals: bodies that lie, and figures that have no legs in common."""

from __future__ import annotations

import dataclasses

import bpy
import numpy as np
import pytest
import rigs
from retargeting import played, run

FRAMES = range(1, 21, 3)


def waving(rig, names, location=None):
    """A rig with bones keyed to and fro about X, frames 1 to 20, and one of them carried along Y."""
    for k, name in enumerate(names):
        bone = rig.pose.bones[name]
        bone.rotation_mode = "XYZ"
        for frame, part in ((1, -1.0), (10, 1.0), (20, -1.0)):
            bone.rotation_euler = (0.3 * part * (-1) ** k, 0.0, 0.0)
            bone.keyframe_insert("rotation_euler", frame=frame)
    if location:
        for frame, along in ((1, 0.0), (20, 0.7)):
            rig.pose.bones[location].location = (0.0, along, 0.0)
            rig.pose.bones[location].keyframe_insert("location", frame=frame)
    return rig


def test_a_trunk_that_lies_does_not_tell_what_is_up(ext):
    """A bird with its feet ahead of its hips and half a metre below them."""

    def laid(point):
        x, y, z = point
        return (x, 1.0 - z, 1.0 + 0.1 * (z - 1.0)) if z > 1.0 else (x, y, z)

    bird = rigs.armature(
        [dataclasses.replace(bone, head=laid(bone.head), tail=laid(bone.tail)) for bone in rigs.biped()],
        "Bird",
    )
    with rigs.edit_bones(bird) as bones:
        for side in "LR":
            for part in ("foot", "toe"):
                bone = bones[f"{part}.{side}"]
                bone.head.y -= 0.15
                bone.tail.y -= 0.15
    waving(bird, ("thigh.L", "thigh.R"))
    target = rigs.metarig("basic_human")
    target.ccd_rig.retarget.source = bird
    pairs = target.ccd_rig.retarget.pairs
    names = {f"{part}.{side}": f"{part}.{side}" for part in ("thigh", "shin", "foot", "toe") for side in "LR"}
    for name, source in {"spine": "hips", "spine.003": "spine", "spine.006": "head", **names}.items():
        pair = pairs.add()
        pair.name, pair.source = name, source
    run(target)
    hips, foot = played(target, ("spine", "foot.L"), FRAMES).transpose(1, 0, 2)
    assert (hips - foot)[:, 2].min() > 0.5


def of_kind(kind):
    return rigs.armature(rigs.spider(), kind) if kind == "spider" else rigs.metarig(kind)


@pytest.mark.parametrize("kind", ["shark", "spider"])
def test_figures_without_such_legs_turn_as_the_source_does(ext, kind):
    """The same figure beside itself plays the same, where its object stands."""
    source, target = of_kind(kind), of_kind(kind)
    figure = ext.module("ccd_rig.blender.figures.recognition").figure_of(source)
    names = sorted(figure.roles)
    carrier = next(bone.name for bone in source.data.bones if bone.name in figure.roles)
    waving(source, names, carrier)
    target.location = (2.0, 0.0, 0.5)
    rigs.update()
    target.ccd_rig.retarget.source = source
    run(target)
    own, ours = played(source, names, FRAMES), played(target, names, FRAMES)
    assert np.ptp(own, axis=0).max() > 0.5
    np.testing.assert_allclose(ours, own + np.array((2.0, 0.0, 0.5)), atol=2e-3)
    report = target.ccd_rig.retarget.report
    assert "No leg of the two is alike" in report
    assert "contact" not in report and "Ground" not in report


def test_what_a_fish_and_a_horse_have_in_common_is_mapped_and_the_rest_is_said(ext):
    source, target = rigs.metarig("shark"), rigs.metarig("horse")
    roles = ext.module("ccd_rig.blender.figures.recognition").roles_of(source)
    waving(source, sorted(roles))
    target.ccd_rig.retarget.source = source
    run(target)
    report = target.ccd_rig.retarget.report
    missing = ext.module("ccd_rig.blender.retarget.bone_map").bone_map(target, source).missing
    assert len(missing) > 5
    told = f"{missing[0]}, {missing[1]}, {missing[2]}, {missing[3]} and {len(missing) - 4} more"
    assert f"Nothing to follow for: {told}" in report
    assert "No leg of the two is alike" in report
    assert target.animation_data.action is not None


def test_armatures_without_a_bone_in_common_are_refused(ext):
    source, target = rigs.chain(1, name="One"), rigs.metarig("basic_human")
    waving(source, ("bone_0",))
    target.ccd_rig.retarget.source = source
    rigs.activate(target)
    with pytest.raises(RuntimeError, match="No bone of the two is alike"):
        bpy.ops.ccd_rig.retarget()
    assert target.animation_data is None or target.animation_data.action is None
