"""What is recorded of frames is what each of them holds, whatever moved, stayed or was scaled before it."""

from __future__ import annotations

import bpy
import numpy as np
import rigs
from rigs import keyed, reach

LAST = 14


def moving_rig():
    """Two chains on bones that move, stay, are scaled and change their rotation mode at different frames."""
    rig = rigs.chain(4)
    with rigs.edit_bones(rig) as bones:
        for name, parent in (("arm", "bone_0"), ("hand", "arm")):
            bone = bones.new(name)
            bone.head, bone.tail, bone.parent = (0.0, 1.0, 1.0), (0.0, 2.0, 1.0), bones[parent]
    reach(rig, "bone_3", rigs.empty("Goal", (1.0, 1.0, 2.0)), chain_length=2)
    reach(
        rig, "hand", keyed(rigs.empty("Other"), {1: (0.0, 2.0, 1.0), LAST: (1.0, 1.0, 1.0)}), chain_length=1
    )
    pose = rig.pose.bones
    for frame, x in ((1, 0.0), (3, 0.0), (6, 0.4), (8, 0.4), (LAST, -0.2)):
        pose["bone_0"].location.x = x
        pose["bone_0"].keyframe_insert("location", frame=frame)
    for frame, turn in ((1, 0.0), (4, 0.3), (9, 0.3), (11, -0.4)):
        pose["bone_1"].rotation_quaternion = (np.cos(turn), np.sin(turn), 0.0, 0.0)
        pose["bone_1"].keyframe_insert("rotation_quaternion", frame=frame)
    for frame, mode in ((1, "QUATERNION"), (7, "XYZ")):
        pose["bone_2"].rotation_mode = mode
        pose["bone_2"].keyframe_insert("rotation_mode", frame=frame)
    for frame, size in ((9, 1.0), (10, 1.5), (12, 1.5), (13, 1.0)):
        pose["hand"].scale = (size,) * 3
        pose["hand"].keyframe_insert("scale", frame=frame)
    return rig


def test_each_row_holds_its_own_frame(ext):
    evaluation = ext.module("ccd_rig.blender.scene.evaluation")
    bake_frames = ext.module("ccd_rig.blender.bake.bake_frames").BakeFrames
    rig, scene, frames = moving_rig(), bpy.context.scene, list(range(1, LAST + 1))
    rows = ext.module("ccd_rig.blender.properties.constraint_kinds").constraints(rig)
    with evaluation.frames(scene, rig, rows) as sample_at:
        shown = [sample_at.look(frame) for frame in frames]
        layouts = [each.layout for each in shown]
        assert layouts[:6] == layouts[:1] * 6 and layouts[6:] == layouts[6:7] * 8
        assert layouts[5] is not layouts[6]  # a bone has another rotation mode from there on
        samples = [sample_at.samples(shown[:1]), sample_at.samples(shown[1:6]), sample_at.samples(shown[6:])]
        made, moved = bake_frames.of(evaluation.Samples.joined(samples), rows, frames), 0
    for row, frame in enumerate(frames):
        with evaluation.frames(scene, rig, rows) as sample_at:  # nothing was read before it
            reading = sample_at(frame).reading
        joints = reading.skeleton.joints
        assert np.array_equal(made.offsets[row], [joint.offset[:] for joint in joints]), frame
        assert np.array_equal(made.rests[row], [joint.rest_rotation[:] for joint in joints]), frame
        assert np.array_equal(made.lengths[row], [joint.length for joint in joints]), frame
        assert np.array_equal(made.base[row], [rotation[:] for rotation in reading.pose.rotations]), frame
        assert made.limits[row] == tuple(joint.limit for joint in joints)
        moved += row > 0 and not np.array_equal(made.offsets[row], made.offsets[row - 1])
    assert 0 < moved < LAST - 1 and len(np.unique(made.lengths, axis=0)) > 1
