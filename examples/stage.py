# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets the demo's scene: the metarig with its limits, the pelvis' keys, the targets, the constraints."""

from __future__ import annotations

from collections.abc import Sequence

import addon_utils
import bpy
import figure
import human_limits
import numpy as np
import walk
from mathutils import Matrix, Quaternion, Vector
from picture import quiet

# name, tip, chain length (bones that may turn, counted from the tip)
CONSTRAINTS = (
    ("Ankle L", "shin.L", 2),
    ("Foot L", "foot.L", 3),
    ("Ankle R", "shin.R", 2),
    ("Foot R", "foot.R", 3),
    ("Hand L", "hand.L", 4),
    ("Hand R", "hand.R", 4),
    ("Face", "nose", 8),
)
BALL_RADIUS = 0.055  # metres
TOLERANCE = 5e-4  # metres
# The spine and the clavicle give way less than the arm and the neck; the face's own bones do not turn.
STIFFNESS = {
    **dict.fromkeys(human_limits.BACK, 0.5),
    "face": 1.0,
    "nose": 1.0,
    "shoulder.L": 0.7,
    "shoulder.R": 0.7,
    "hand.L": 0.95,
    "hand.R": 0.95,
}
# Preferred parts of the limits, degrees to both sides: knees over the toes, soles flat, wrists straight.
COMFORT = {
    "thigh": {"twist": 4.0},
    "foot": {"y": 4.0, "z": 4.0},
    "hand": {"x": 10.0, "z": 20.0},
}
ARMS_DOWN = 52.0  # degrees: from the metarig's spread arms to hanging ones


def build() -> tuple[bpy.types.Object, walk.Motion]:
    """Fill an empty file; returns the armature object and the curves it is to follow."""
    rig = _metarig()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = walk.FRAME_START, walk.FRAME_END
    scene.render.fps = walk.FPS
    motion = walk.motion(_measures(rig))
    human_limits.apply(rig)
    for bone, stiffness in STIFFNESS.items():
        rig.pose.bones[bone].ccd_rig.stiffness = stiffness
    for side in "LR":
        for bone, easy in COMFORT.items():
            _prefer(rig.pose.bones[f"{bone}.{side}"], easy)
    _key_pelvis(rig, motion)
    _lower_arms(rig)
    targets = _targets(motion)
    for name, tip, length in CONSTRAINTS:
        row = rig.ccd_rig.constraints.add()
        row.name, row.tip, row.chain_length, row.target = name, tip, length, targets[name]
    rig.ccd_rig.solver.position_tolerance = TOLERANCE
    figure.doll(rig)
    return rig, motion


def _metarig() -> bpy.types.Object:
    with quiet():  # Rigify tells what it loads
        addon_utils.enable("rigify", default_set=True)
        bpy.ops.object.armature_human_metarig_add()
    rig = bpy.context.object
    rig.name = "Walker"
    rig.show_in_front = True
    for side in "LR":
        rig.data.bones[f"toe.{side}"].use_inherit_rotation = False  # toes stay flat when the heel rises
    return rig


def _measures(rig: bpy.types.Object) -> walk.Body:
    bones = rig.data.bones

    def at(vector: Vector) -> walk.Array:
        return np.array(vector, dtype=np.float64)

    ankle = at(bones["foot.L"].head_local)
    return walk.Body(
        hip=at(bones["thigh.L"].head_local),
        ankle=ankle,
        ball=at(bones["foot.L"].tail_local),
        heel=np.array((ankle[0], bones["heel.02.L"].head_local.y, 0.0)),
        neck=at(bones["spine.004"].head_local),
        nose=at(bones["nose"].tail_local),
        leg=bones["thigh.L"].length + bones["shin.L"].length,
    )


def _prefer(bone: bpy.types.PoseBone, easy: dict[str, float]) -> None:
    """Prefer the bone's limit with some of its ranges cut to the given number of degrees."""
    limit, region = bone.ccd_rig.limit, bone.ccd_rig.comfort.region
    region.kind, region.use_twist, region.euler_order = limit.kind, limit.use_twist, limit.euler_order
    for axis, name in enumerate("xyz"):
        cut = np.radians(easy.get(name, 360.0))
        region.euler_lower[axis] = max(limit.euler_lower[axis], -cut)
        region.euler_upper[axis] = min(limit.euler_upper[axis], cut)
    for name in ("x", "z", "twist"):
        cut = np.radians(easy.get(name, 360.0))
        setattr(region, f"{name}_lower", max(getattr(limit, f"{name}_lower"), -cut))
        setattr(region, f"{name}_upper", min(getattr(limit, f"{name}_upper"), cut))


def _key_pelvis(rig: bpy.types.Object, motion: walk.Motion) -> None:
    """All that is animated by hand: where the pelvis is and how it is turned."""
    pelvis = rig.pose.bones["spine"]
    rest = rig.data.bones["spine"].matrix_local.to_3x3()
    for frame, shift, yaw, lean in zip(
        motion.frames, motion.pelvis, motion.pelvis_yaw, motion.pelvis_lean, strict=True
    ):
        pelvis.location = rest.inverted() @ Vector(shift)
        turn = Matrix.Rotation(yaw, 3, "Z") @ Matrix.Rotation(lean, 3, "X")
        pelvis.rotation_quaternion = (rest.inverted() @ turn @ rest).to_quaternion()
        pelvis.keyframe_insert("location", frame=frame)
        pelvis.keyframe_insert("rotation_quaternion", frame=frame)


def _lower_arms(rig: bpy.types.Object) -> None:
    """What the arms stay near to: hanging, elbows a little bent."""
    for side in "LR":
        arm, forearm = rig.pose.bones[f"upper_arm.{side}"], rig.pose.bones[f"forearm.{side}"]
        down = arm.ccd_rig.limit
        sign = -1.0 if -down.z_lower < down.z_upper else 1.0
        arm.rotation_quaternion = Quaternion((0.0, 0.0, 1.0), sign * np.radians(ARMS_DOWN))
        hinge = forearm.ccd_rig.limit
        forearm.rotation_quaternion = Quaternion(hinge.axis, np.radians(12.0) + hinge.hinge_lower)
        for bone in (arm, forearm):  # a pose without keys would not count: bakes start from what plays
            bone.keyframe_insert("rotation_quaternion", frame=walk.FRAME_START)


def _targets(motion: walk.Motion) -> dict[str, bpy.types.Object]:
    curves = {f"Ankle {side}": foot.ankle for side, foot in motion.feet.items()}
    curves |= {f"Foot {side}": foot.ball for side, foot in motion.feet.items()}
    curves |= {f"Hand {side}": hand for side, hand in motion.hands.items()}
    curves["Face"] = motion.gaze
    colours = {"Hand R": figure.RED, "Hand L": figure.BLUE}
    targets = {}
    for name, places in curves.items():
        if name in colours:
            target = figure.ball(f"Target {name}", BALL_RADIUS, colours[name])
        else:
            target = bpy.data.objects.new(f"Target {name}", None)
            target.empty_display_size = 0.04
            bpy.context.scene.collection.objects.link(target)
        _key_places(target, motion.frames, places)
        targets[name] = target
    return targets


def _key_places(thing: bpy.types.Object, frames: Sequence[float], places: walk.Array) -> None:
    for frame, place in zip(frames, places, strict=True):
        thing.location = place
        thing.keyframe_insert("location", frame=frame)
