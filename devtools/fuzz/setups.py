"""Random rigs in the open file: what nobody would make, but Blender lets be."""

from __future__ import annotations

import math
import random
from typing import Any

import bpy
import rigs  # of tests/blender
from mathutils import Matrix, Quaternion, Vector

NAMES = ("b", 'q"uote', "br[ack]et", "back\\slash", "ta\tb", "骨", "كتف", "ÄÖ.L", "a.b.R", "dot.", "{x}", "'")
MODES = ("QUATERNION", "QUATERNION", "AXIS_ANGLE", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
SCALES = ("FULL", "FULL", "FIX_SHEAR", "ALIGNED", "AVERAGE", "NONE", "NONE_LEGACY")
LAST = 12  # frame


def make(rng: random.Random) -> Any:
    """A rig with constraints, and all that stands around it."""
    rig = _armature(rng)
    _place(rng, rig)
    _pose(rng, rig)
    for _ in range(rng.choice((0, 0, 1, 2))):
        _animate(rng, rig)
    _share(rng, rig)
    _layers(rng, rig)
    for bone in rig.pose.bones:
        _joint(rng, bone)
    for number in range(rng.choice((1, 1, 2, 3))):
        _row(rng, rig, number)
    _around(rng, rig)
    _solver(rng, rig.ccd_rig.solver)
    rigs.activate(rig)
    rigs.update()
    return rig


def _armature(rng: random.Random) -> Any:
    count = rng.choice((2, 3, 4, 4, 5, 6, 8, 12, 20, 60)) if rng.random() < 0.97 else 300
    made: list[rigs.B] = []
    size = rng.choice((1.0, 1.0, 0.01, 100.0))
    for i in range(count):
        name = f"{rng.choice(NAMES)}{i}"
        parent = (
            made[rng.randrange(i) if rng.random() < 0.2 else i - 1] if i and rng.random() < 0.93 else None
        )
        head = Vector(parent.tail if parent else (0.0, 0.0, 0.0))
        joined = parent is not None and rng.random() < 0.7
        if not joined:
            head = head + 0.3 * size * _direction(rng)
        way = Vector((0.0, 0.0, 1.0)) if rng.random() < 0.6 else _direction(rng)
        tail = head + way * size * rng.choice((1.0, 1.0, rng.uniform(0.05, 2.0)))
        up = parent.name if parent else ""
        made.append(rigs.B(name, head[:], tail[:], up, rng.uniform(-3.2, 3.2), joined))
    rig = rigs.armature(made, rng.choice(("Rig", 'R"i[g]', "Фигура")))
    for bone in rig.data.bones:
        if rng.random() < 0.1:
            bone.use_inherit_rotation = False
        if rng.random() < 0.1:
            bone.use_local_location = False
        bone.inherit_scale = rng.choice(SCALES) if rng.random() < 0.2 else "FULL"
    return rig


def _place(rng: random.Random, rig: Any) -> None:
    if rng.random() < 0.4:
        rig.location = 5.0 * _direction(rng)
        rig.rotation_euler = [rng.uniform(-3.0, 3.0) for _ in range(3)]
    if rng.random() < 0.2:
        rig.scale = rng.choice(((2.0, 2.0, 2.0), (1.0, 2.0, 0.5), (-1.0, 1.0, 1.0), (1e-3,) * 3))
    if rng.random() < 0.1:
        above = rigs.empty("Above", (1.0, 2.0, 3.0))
        above.scale = (1.0, 3.0, 1.0)
        rig.parent = above


def _pose(rng: random.Random, rig: Any) -> None:
    for bone in rig.pose.bones:
        bone.rotation_mode = rng.choice(MODES)
        if rng.random() < 0.5:
            rigs.set_rotation(bone, Quaternion().slerp(rigs.random_rotation(rng), rng.random() * 0.6))
        if rng.random() < 0.1:
            bone.location = 0.2 * _direction(rng)
        if rng.random() < 0.05:
            bone.scale = rng.choice(((1.5,) * 3,) * 5 + ((1.0, 2.0, 1.0),))
        if rng.random() < 0.04:
            bone.lock_rotation = [rng.random() < 0.5 for _ in range(3)]
            bone.lock_rotation_w = rng.random() < 0.5
            bone.lock_rotations_4d = rng.random() < 0.5


def _animate(rng: random.Random, rig: Any) -> None:
    bone = rng.choice(rig.pose.bones)
    channel = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    for frame in (-3, 4, 9):
        rigs.set_rotation(bone, Quaternion().slerp(rigs.random_rotation(rng), 0.4))
        path = rng.choice((channel.get(bone.rotation_mode, "rotation_euler"), "location", "scale"))
        bone.keyframe_insert(path, frame=frame)


def _share(rng: random.Random, rig: Any) -> None:
    """Others that use the same action, data, or a slot of it."""
    animation = rig.animation_data
    if animation is not None and animation.action is not None:
        if rng.random() < 0.2:
            other = bpy.data.objects.new("Twin", rig.data)
            bpy.context.scene.collection.objects.link(other)
            other.animation_data_create().action = animation.action
            if hasattr(animation, "action_slot"):
                other.animation_data.action_slot = animation.action_slot
        if rng.random() < 0.15 and hasattr(animation.action, "slots"):
            extra = rigs.empty("Slotted")
            extra.animation_data_create().action = animation.action
            extra.animation_data.action_slot = animation.action.slots.new("OBJECT", "Slotted")
            extra.keyframe_insert("location", frame=3)
        if rng.random() < 0.1:
            animation.action.use_fake_user = True
    if rng.random() < 0.1:
        twin = bpy.data.objects.new("Same Data", rig.data)
        bpy.context.scene.collection.objects.link(twin)


def _layers(rng: random.Random, rig: Any) -> None:
    """NLA strips."""
    animation = rig.animation_data
    if rng.random() > 0.15 or animation is None or animation.action is None:
        return
    for _ in range(rng.choice((1, 2))):
        track = animation.nla_tracks.new()
        strip = track.strips.new("Strip", rng.randrange(-5, 8), animation.action)
        strip.blend_type = rng.choice(("REPLACE", "COMBINE", "ADD"))
        strip.influence = rng.choice((1.0, 0.5))
        track.mute = rng.random() < 0.2
    if rng.random() < 0.4:
        animation.action = None


def _joint(rng: random.Random, bone: Any) -> None:
    group = bone.ccd_rig
    if rng.random() < 0.5:
        limit = group.limit
        limit.kind = rng.choice(("HINGE", "CONE", "ELLIPSE", "EULER", "TWIST"))
        limit.axis = rng.choice(((1, 0, 0), (0, 0, 1), _direction(rng)[:]))
        limit.hinge_lower, limit.hinge_upper = _range(rng)
        limit.cone_radius = rng.choice((0.0, 0.5, rng.uniform(0.0, math.pi), math.pi))
        for name in ("x_lower", "z_lower"):
            setattr(limit, name, -rng.choice((0.0, rng.uniform(0.0, 3.0))))
        for name in ("x_upper", "z_upper"):
            setattr(limit, name, rng.choice((0.0, rng.uniform(0.0, 3.0))))
        limit.use_twist = rng.random() < 0.5
        limit.twist_lower, limit.twist_upper = (0.5 * bound for bound in _range(rng))
        limit.euler_order = rng.choice(("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"))
        ranges = [_range(rng) for _ in range(3)]
        limit.euler_lower, limit.euler_upper = [a for a, _ in ranges], [b for _, b in ranges]
    if rng.random() < 0.15:
        group.stiffness = rng.choice((0.5, 1.0))
    if rng.random() < 0.05:
        group.max_step = rng.choice((0.0, 0.1))
    if rng.random() < 0.3:
        group.mass = rng.choice((1.0, 1e-3, 1e6))
    if rng.random() < 0.05 and (rng.random() < 0.1 or not bone.bone.use_connect):
        group.use_slide = [rng.random() < 0.5 for _ in range(3)]
        group.slide_lower, group.slide_upper = (-0.2,) * 3, (0.3,) * 3
    if rng.random() < 0.07:
        group.comfort.tolerance = 0.1


def _range(rng: random.Random) -> tuple[float, float]:
    lower = rng.choice((-1.0, 0.0, rng.uniform(-3.0, 1.0)))
    upper = lower + rng.choice((0.0, 1.0, rng.uniform(0.0, 3.0), 6.3))
    return (upper, lower) if rng.random() < 0.02 else (lower, min(upper, 6.2))


def _row(rng: random.Random, rig: Any, number: int) -> None:
    row = rig.ccd_rig.constraints.add()
    row.name = f"{rng.choice(NAMES)} {number}"
    row.kind = rng.choice(("REACH",) * 10 + ("BALANCE", "PLANT"))
    bones = rig.pose.bones
    row.tip = rng.choice(bones).name if rng.random() < 0.5 else bones[-1].name
    row.chain_length = rng.choice((0, 0, 2, 3, 99))
    row.target, row.target_bone = _target(rng, rig, row)
    row.use_tail = rng.random() < 0.8
    row.influence = rng.choice((1.0, 1.0, 1.0, 0.5, 0.0))
    row.weight = rng.choice((1.0, 1.0, 0.001, 1e4))
    row.priority = rng.choice((0, 0, 0, 1, 3))
    row.method = rng.choice(("CCD",) * 9 + ("TWO_BONE_TIP", "TWO_BONE", "TRIANGLE"))
    if row.method == "CCD" or rng.random() < 0.1:
        row.rotation = rng.choice(("NONE", "NONE", "NONE", "ORIENTATION", "DIRECTION"))
        row.max_extension = rng.choice((1.0, 1.0, 1.0, 0.9))
    if row.rotation != "NONE" and rng.random() < 0.3:
        row.use_position = False
    if row.method == "CCD" and rng.random() < 0.1:
        row.effector_offset = 0.3 * _direction(rng)
    if row.chain_length not in (1, 2) and rng.random() < 0.1:
        row.pole_target = rigs.empty("Pole", (3.0 * _direction(rng))[:])
        row.pole_angle = rng.choice((0.0, 1.0))
    if rng.random() < 0.1:
        for frame, value in ((1, 0.0), (6, 1.0)):
            row.influence = value
            row.keyframe_insert("influence", frame=frame)
    if rng.random() < 0.05:
        row.driver_add("influence").driver.expression = "0.5 + 0.1 * sin(frame)"


def _target(rng: random.Random, rig: Any, row: Any) -> tuple[Any, str]:
    choice = rng.random()
    if choice < 0.01:
        return None, ""
    if choice < 0.03:
        return rig, rng.choice(rig.pose.bones).name
    if choice < 0.12:
        other = rigs.chain(2, 0.5, "Other")
        other.location = 2.0 * _direction(rng)
        return other, "bone_1"
    size = sum(bone.length for bone in rig.data.bones) / max(1.0, 0.3 * len(rig.data.bones))
    target = rigs.empty("Goal", (0, 0, 0))
    for frame in (-2, 3, 7, LAST):
        target.location = rig.matrix_world @ (size * rng.uniform(0.0, 1.3) * _direction(rng))
        if rng.random() < 0.005:
            target.location = rng.choice(((math.nan, 0, 0), (1e30, 0, 0), (0, 1e16, 0)))
        target.rotation_euler = [rng.uniform(-3.0, 3.0) for _ in range(3)]
        target.keyframe_insert("location", frame=frame)
        target.keyframe_insert("rotation_euler", frame=frame)
    if rng.random() < 0.02:
        target.parent, target.parent_type = rig, "BONE"
        target.parent_bone = rng.choice(rig.pose.bones).name
    if rng.random() < 0.05:
        target.matrix_world = Matrix.Diagonal((1.0, 2.0, -1.0, 1.0)) @ target.matrix_world
    return target, ""


def _around(rng: random.Random, rig: Any) -> None:
    """Blender's own constraints and drivers, and the scene."""
    if rng.random() < 0.12:
        own = rng.choice(rig.pose.bones).constraints.new(
            rng.choice(("LIMIT_ROTATION", "COPY_ROTATION", "IK"))
        )
        if hasattr(own, "target"):
            own.target = rigs.empty("Aside", (3.0, 1.0, 0.0))
    if rng.random() < 0.04:
        rng.choice(rig.pose.bones).driver_add("location", 0).driver.expression = "0.01 * frame"
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, LAST
    if rng.random() < 0.05:
        scene.render.frame_map_old, scene.render.frame_map_new = 100, rng.choice((50, 200))
    scene.frame_set(rng.choice((1, 5, -20)))
    scene["kept"] = [1, 2, 3]
    rig["own"] = "text"


def _solver(rng: random.Random, group: Any) -> None:
    group.solver = rng.choice(("CCD_LEAST_SQUARES", "CCD_LEAST_SQUARES", "CCD"))
    group.restarts = rng.choice((0, 0, 2))
    group.max_iterations = rng.choice((5, 30, 100))
    group.position_tolerance = rng.choice((1e-4, 1e-4, 1e-2, 1e-6))


def options(rng: random.Random, bake: Any) -> dict[str, Any]:
    """What `BakeSettings` are made of."""
    first = rng.choice((1, 1, 1, -4, 3, 1_048_560))
    last = first + rng.choice((0, 3, 8, 10))
    found: dict[str, Any] = {
        "frame_start": first,
        "frame_end": last,
        "step": rng.choice((1, 1, 1, 2, 5, 100)),
        "destination": rng.choice(list(bake.Destination)),
        "smoothness": rng.choice((5.0, 5.0, 0.0, 1000.0)),
        "preroll": rng.choice((0, 0, 0, 3)),
        "start": rng.choice(list(bake.Start)),
        "verify": rng.random() < 0.9,
    }
    found["keys"] = rng.choice((bake.Keys.EVERY_FRAME,) * 12 + tuple(bake.Keys))
    if rng.random() < 0.15 and found["keys"] is bake.Keys.EVERY_FRAME:
        found["reduce_angle"], found["reduce_error"] = 0.02, rng.choice((0.0, 1e-3))
    if rng.random() < 0.02:
        found["body"] = rng.choice(("AUTO", "KEEP_ANIMATION", "WALK_ON", "FOLLOW_FEET"))
    return found


def _direction(rng: random.Random) -> Vector:
    return Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
