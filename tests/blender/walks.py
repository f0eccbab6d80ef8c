"""A figure that walks by keys alone, in place or through the world, with feet that roll."""

from __future__ import annotations

import contextlib
import math

import bpy
import numpy as np
import operator_calls
import rigs
from mathutils import Euler, Matrix, Vector
from playing import in_world
from rigs import B

PERIOD, STANCE = 24, 14  # frames of a cycle, and those of them in which a foot is down
STRIDE = 0.7  # [m] per cycle
HEEL, BALL = Vector((0, 0.07, 0)), Vector((0, -0.12, 0.02))
ANKLE = Vector((0, 0.02, 0.08))
PITCH = ((0, -12), (3, 0), (7, 0), (STANCE, 38), (18, 15), (PERIOD, -12))  # degrees, heel up
HIPS = -0.09  # [m] how far the hips sink, so that knees bend


def figure():
    """A biped whose feet have heels too."""
    bones = rigs.biped()
    for side, x in (("L", 0.1), ("R", -0.1)):
        bones.append(B(f"heel.{side}", (x, 0.07, 0.0), (x, 0.07, 0.04), f"foot.{side}"))
    rig = rigs.armature(bones, "Walker")
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
    return rig


def down(side, frame):
    """Whether a foot stands at a frame."""
    return _phase(side, frame) <= STANCE


def walk(ext, cycles=1, in_place=True):
    """The figure with every bone's motion keyed, frames 1 to `PERIOD * cycles + 1`, and no constraint.

    The legs' rotations are solved once, by the extension's own bake, for feet and hips that are known.
    """
    rig, scene = figure(), bpy.context.scene
    scene.frame_start, scene.frame_end = 1, PERIOD * cycles + 1
    frames = range(1, scene.frame_end + 1)
    hips = rig.pose.bones["hips"]
    for frame in frames:
        turn = 2.0 * math.pi * (frame - 1) / PERIOD
        along = 0.0 if in_place else STRIDE * (frame - 1) / PERIOD
        hips.location = (0.01 * math.sin(turn), HIPS + 0.012 * math.cos(2.0 * turn), along)
        hips.rotation_quaternion = Euler((0.0, 0.05 * math.sin(turn), 0.0)).to_quaternion()
        hips.keyframe_insert("location", frame=frame)
        hips.keyframe_insert("rotation_quaternion", frame=frame)
    targets = []
    for side, x in (("L", 0.1), ("R", -0.1)):
        rest = rig.data.bones[f"foot.{side}"].matrix_local.to_3x3().to_4x4()
        target = rigs.empty(f"Foot {side}")
        toe = rig.pose.bones[f"toe.{side}"]
        for frame in frames:
            place, pitch = _foot(side, frame)
            along = 0.0 if in_place else -STRIDE * (frame - 1) / PERIOD
            turn = Matrix.Rotation(pitch, 4, "X")
            target.location = place + Vector((x, along, 0))
            target.rotation_euler = (turn @ rest).to_euler()
            target.keyframe_insert("location", frame=frame)
            target.keyframe_insert("rotation_euler", frame=frame)
            # Toes stay flat while the heel is up.
            own = toe.bone.matrix_local.to_3x3()
            back = own.inverted() @ Matrix.Rotation(-max(pitch, 0.0), 3, "X") @ own
            toe.rotation_quaternion = back.to_quaternion()
            toe.keyframe_insert("rotation_quaternion", frame=frame)
        fields = {"chain_length": 3, "use_tail": False, "rotation": "ORIENTATION"}
        rigs.reach(rig, f"foot.{side}", target, side, **fields)
        targets.append(target)
    rigs.update()
    bake = ext.module("ccd_rig.blender.bake.bake")
    report = bake.bake(scene, rig, bake.BakeSettings(1, scene.frame_end, verify=False))
    assert report.unsolved_count() == 0, report.summary()
    rig.ccd_rig.constraints.clear()
    action = rig.animation_data.action
    for name in [name for name in action.keys() if name.startswith("ccd_rig")]:  # noqa: SIM118
        del action[name]  # from now on this is the motion before any bake
    for target in targets:
        bpy.data.objects.remove(target)
    rigs.update()
    rigs.activate(rig)
    return rig


def select(ext, rig, *bones):
    """Pose Mode with these bones selected alone, the first of them active."""
    rigs.activate(rig)
    operator_calls.select(ext, rig, *reversed(bones))


def plant(rig, tip, spans=(), **fields):
    """A Plant up to the hips, on in these spans of frames, or always."""
    length = [bone.name for bone in rig.pose.bones[tip].parent_recursive].index("hips") + 2
    row = rigs.reach(rig, tip, None, kind="PLANT", chain_length=length, **fields)
    for frame in range(1, bpy.context.scene.frame_end + 1) if spans else ():
        row.influence = float(any(a <= frame <= b for a, b in spans))
        row.keyframe_insert("influence", frame=frame)
    rigs.update()
    return row


def heads(rig, bones, frames):
    """(F, bones, 3) of their heads in the world, as Blender plays them."""
    poses = (in_world(rig, frame) for frame in frames)
    return np.array([[pose[bone].translation for bone in bones] for pose in poses])


def _phase(side, frame):
    return (frame - 1 + (PERIOD // 2 if side == "R" else 0)) % PERIOD


def _foot(side, frame):
    """Ankle of a foot at x = 0 that walks in place, and its pitch [radians, heel up]."""
    phase = _phase(side, frame)
    speed = STRIDE / PERIOD
    front = -speed * STANCE / 2.0
    lift = 0.0
    if phase <= STANCE:
        along = front + speed * phase
    else:  # on to the front, with the ground's speed at both ends
        count = PERIOD - STANCE
        t = (phase - STANCE) / count
        slope = speed * count
        along = (
            (1 + 2 * t) * (1 - t) ** 2 * -front
            + t * (1 - t) ** 2 * slope
            + t * t * (3 - 2 * t) * front
            + t * t * (t - 1) * slope
        )
        lift = 0.09 * math.sin(math.pi * t) ** 2
    pitch = math.radians(float(np.interp(phase, *np.transpose(PITCH))))
    pivot = BALL if pitch > 0.0 else HEEL
    ankle = pivot + Matrix.Rotation(pitch, 3, "X") @ (ANKLE - pivot)
    return ankle + Vector((0, along, lift)), pitch


HIP, WAIST = "CC_Base_Hip", "CC_Base_Waist"


def familiar(rig):
    """The figure with arms and the names of one family of rigs: "hips" are `HIP`, "spine" is `WAIST`."""
    names = {"hips": HIP, "spine": WAIST, "head": "CC_Base_Head"}
    for name, word in (("thigh", "Thigh"), ("shin", "Calf"), ("foot", "Foot"), ("toe", "ToeBase")):
        names |= {f"{name}.{side}": f"CC_Base_{side}_{word}" for side in "LR"}
    for name, other in names.items():
        rig.data.bones[name].name = other
    with edited(rig) as bones:
        for side, x in (("L", 1.0), ("R", -1.0)):
            above = bones[WAIST]
            for k, word in enumerate(("Upperarm", "Forearm", "Hand")):
                bone = bones.new(f"CC_Base_{side}_{word}")
                bone.head, bone.tail = ((0.15 * x, 0.0, 1.55 - 0.25 * each) for each in (k, k + 1))
                bone.parent, above = above, bone
    return rig


def legs_up(rig):
    """A `familiar` figure whose legs lead up at rest, as in many motion files."""
    with edited(rig) as bones:
        legs = [bone for bone in bones if bone.name.endswith(("Thigh", "Calf", "Foot", "ToeBase"))]
        for bone in legs:
            bone.use_connect = False
        for bone in legs:
            bone.head.z, bone.tail.z = 1.9 - bone.head.z, 1.9 - bone.tail.z
    return rig


def hung_beside(rig, connected):
    """The figure with legs and spine beside each other on a "pivot", which its hips' keys move.

    Args:
        connected: whether the hips are connected to it.
    """
    with edited(rig) as bones:
        hips = bones[HIP]
        pivot = bones.new("pivot")
        pivot.head, pivot.tail = hips.head - 0.5 * hips.vector, hips.head
        pivot.roll, pivot.parent = hips.roll, hips.parent
        bones[WAIST].use_connect = False
        bones[WAIST].parent = hips.parent = pivot
        hips.use_connect = connected
    _moved_keys(rig, "pivot", ("location", "rotation_quaternion"))
    return rig


def stood_on(rig):
    """The figure with its hips connected to a "mast" on the ground, which their keys move."""
    with edited(rig) as bones:
        hips = bones[HIP]
        mast = bones.new("mast")
        mast.head, mast.tail = (0.0, 0.0, 0.0), hips.head
        mast.align_roll(hips.z_axis)
        mast.parent, hips.parent, hips.use_connect = hips.parent, mast, True
    _moved_keys(rig, "mast", ("location",))
    return rig


@contextlib.contextmanager
def edited(rig):
    """Yield the figure's edit bones."""
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    yield rig.data.edit_bones
    bpy.ops.object.mode_set(mode="OBJECT")
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"


def _moved_keys(rig, name, channels):
    """Give the keys of the hips' channels, if there are any, to another bone."""
    moved = {f'pose.bones["{HIP}"].{channel}': f'pose.bones["{name}"].{channel}' for channel in channels}
    if rig.animation_data is not None and (action := rig.animation_data.action) is not None:
        curves = action.fcurves if hasattr(action, "fcurves") else None
        curves = curves or action.layers[0].strips[0].channelbags[0].fcurves
        for curve in [each for each in curves if each.data_path in moved]:
            curve.data_path = moved[curve.data_path]
    rigs.update()
