"""What tests of retargeting share: the operator run and refused, and what a figure plays."""

from __future__ import annotations

import dataclasses
import math

import bpy
import pytest
import rigs
import walks
from installed import visit

FRAMES = range(1, 50)


def run(rig, **choices):
    """The operator, with choices of the panel; what it says is an error otherwise."""
    for name, value in choices.items():
        setattr(rig.ccd_rig.retarget, name, value)
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.retarget() == {"FINISHED"}


def refused(words, rig, **choices):
    """The operator refuses with these words, and the file stays as it is."""
    for name, value in choices.items():
        setattr(rig.ccd_rig.retarget, name, value)
    rigs.activate(rig)
    before = contents(rig)
    with pytest.raises(RuntimeError, match=words):
        bpy.ops.ccd_rig.retarget()
    assert contents(rig) == before


def contents(rig):
    animation = rig.animation_data
    action = animation and animation.action and animation.action.name
    pose = [tuple(value for row in bone.matrix_basis for value in row) for bone in rig.pose.bones]
    return sorted(a.name for a in bpy.data.actions), sorted(s.name for s in bpy.data.scenes), action, pose


def played(rig, bones, frames=FRAMES):
    return walks.heads(rig, bones, frames)


def keys(ext, rig):
    curves = ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)
    return {
        (curve.data_path, curve.array_index): [tuple(point.co) for point in curve.keyframe_points]
        for curve in curves
    }


def legs(rig, thigh, shin, foot):
    heads = [rig.matrix_world @ rig.data.bones[name].head_local for name in (thigh, shin, foot)]
    return (heads[1] - heads[0]).length + (heads[2] - heads[1]).length


def odd_source(target):
    """A source whose legs lead up at rest and down as it plays, about straight at frame 6; mapped by hand."""

    def turned_up(point):
        return point[0], point[1], 1.9 - point[2]

    parts = ("thigh", "shin", "foot", "toe")
    bones = [
        dataclasses.replace(bone, head=turned_up(bone.head), tail=turned_up(bone.tail))
        if bone.name.startswith(parts)
        else bone
        for bone in rigs.biped()
    ]
    odd = rigs.armature(bones, "Odd")
    for side in "LR":
        for part, angles in (("thigh", (math.pi + 0.5, math.pi, math.pi + 0.9)), ("shin", (0.7, 0.0, 0.0))):
            bone = odd.pose.bones[f"{part}.{side}"]
            bone.rotation_mode = "XYZ"
            for frame, angle in zip((1, 6, 10), angles, strict=True):
                bone.rotation_euler = (angle, 0.0, 0.0)
                bone.keyframe_insert("rotation_euler", frame=frame)
    pairs = target.ccd_rig.retarget.pairs
    names = {f"{part}.{side}": f"{part}.{side}" for part in parts for side in "LR"}
    for name, source in {"spine": "hips", "spine.003": "spine", "spine.006": "head", **names}.items():
        pair = pairs.add()
        pair.name, pair.source = name, source
    return odd


EXPORT = """
import bpy, os, sys
import addon_utils
blend, fbx, moves = sys.argv[-3:]
bpy.ops.wm.open_mainfile(filepath=blend)
addon_utils.enable("io_scene_fbx")
options = {"object_types": {"ARMATURE"}, "add_leaf_bones": False, "bake_anim": moves == "True"}
assert bpy.ops.export_scene.fbx(filepath=fbx, **options) == {"FINISHED"}
print("VISITED", flush=True)
os._exit(0)
"""


def as_fbx(path, tmp_path, moves=True):
    """Write the open file's armatures to an FBX file, in a process of its own: what 4.2's exporter leaves
    to Python's garbage collection may crash Blender when another file is open."""
    blend = tmp_path / "exported.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(blend), copy=True)
    visit(EXPORT, tmp_path, blend, path, moves)
