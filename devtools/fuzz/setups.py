"""Random rigs in the open file: what nobody would make, but Blender lets be."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import bpy
import rigs  # of tests/blender
from mathutils import Matrix, Quaternion, Vector

NAMES = ("b", 'q"uote', "br[ack]et", "back\\slash", "ta\tb", "骨", "كتف", "ÄÖ.L", "a.b.R", "dot.", "{x}", "'")
MODES = ("QUATERNION", "QUATERNION", "AXIS_ANGLE", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
SCALES = ("FULL", "FULL", "FIX_SHEAR", "ALIGNED", "AVERAGE", "NONE", "NONE_LEGACY")
LAST = 12  # frame


@dataclass(frozen=True)
class Draw:
    """Distribution of set-ups.

    Attributes:
        odd: whether scales, strips, drivers, sharing and numbers that are none are among it.
        rows: how many constraints.
        kinds: of constraints.
        influences: of constraints; None: keys that go from 0 to 1.
        limited, turned, locked: parts of all bones that have a limit, a pose, locks of rotation.
        most_turn: of a pose, part of the way to a rotation that is drawn evenly.
        is_animated: whether every pose is keyed, so that it is a base pose.
        is_near: whether chains are long enough for their targets, which are near where tips end at rest.
        bakes: how often each set-up is baked, one bake over the other.
    """

    odd: bool = True
    rows: tuple[int, ...] = (1, 1, 2, 3)
    kinds: tuple[str, ...] = ("REACH",) * 10 + ("BALANCE", "PLANT")
    influences: tuple[float | None, ...] = (1.0, 1.0, 1.0, 0.5, 0.0)
    limited: float = 0.5
    turned: float = 0.5
    most_turn: float = 0.6
    locked: float = 0.04
    is_animated: bool = False
    is_near: bool = False
    bakes: int = 1


ANY = Draw()
INFLUENCES = Draw(
    odd=False,
    rows=(1, 2, 2, 3, 4),
    kinds=("REACH",) * 12 + ("BALANCE",),
    influences=(1.0, 1.0, 1.0, 0.5, 0.25, 0.9, 0.0, None),
    limited=0.1,
    most_turn=0.2,
    locked=0.0,
    is_animated=True,
    is_near=True,
)
"""Influences and priorities of constraints that share bones."""
BASES = Draw(
    odd=False,
    kinds=("REACH", "BALANCE"),
    influences=(1.0, 1.0, 1.0, 1.0, 0.5, None),
    limited=0.8,
    turned=0.9,
    most_turn=1.0,
    locked=0.15,
    is_animated=True,
    bakes=2,
)
"""Base poses outside limits, in every rotation mode; bones that are locked or have no mass."""


def make(rng: random.Random, draw: Draw = ANY) -> Any:
    """A rig with constraints, and all that stands around it."""
    rig = _armature(rng, draw)
    if draw.odd or rng.random() < 0.3:
        _place(rng, rig, draw)
    _pose(rng, rig, draw)
    for _ in range(rng.choice((0, 0, 1, 2))):
        _animate(rng, rig, draw)
    if draw.odd:
        _share(rng, rig)
        _layers(rng, rig)
    for bone in rig.pose.bones:
        _joint(rng, bone, draw)
    for number in range(rng.choice(draw.rows)):
        _row(rng, rig, number, draw)
    _around(rng, rig, draw)
    _solver(rng, rig.ccd_rig.solver)
    rigs.activate(rig)
    rigs.update()
    return rig


def _armature(rng: random.Random, draw: Draw) -> Any:
    count = rng.choice((2, 3, 4, 4, 5, 6, 8, 12, 20, 60)) if rng.random() < 0.97 else 300
    count = count if draw.odd else min(count, 8)
    count = max(count, 5) if draw.is_near else count
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
    for bone in rig.data.bones if draw.odd else ():
        if rng.random() < 0.1:
            bone.use_inherit_rotation = False
        if rng.random() < 0.1:
            bone.use_local_location = False
        bone.inherit_scale = rng.choice(SCALES) if rng.random() < 0.2 else "FULL"
    return rig


def _place(rng: random.Random, rig: Any, draw: Draw) -> None:
    if rng.random() < 0.4:
        rig.location = 5.0 * _direction(rng)
        rig.rotation_euler = [rng.uniform(-3.0, 3.0) for _ in range(3)]
    if draw.odd and rng.random() < 0.2:
        rig.scale = rng.choice(((2.0, 2.0, 2.0), (1.0, 2.0, 0.5), (-1.0, 1.0, 1.0), (1e-3,) * 3))
    if draw.odd and rng.random() < 0.1:
        above = rigs.empty("Above", (1.0, 2.0, 3.0))
        above.scale = (1.0, 3.0, 1.0)
        rig.parent = above


def _pose(rng: random.Random, rig: Any, draw: Draw) -> None:
    for bone in rig.pose.bones:
        bone.rotation_mode = rng.choice(MODES)
        if rng.random() < draw.turned:
            rigs.set_rotation(
                bone, Quaternion().slerp(rigs.random_rotation(rng), rng.random() * draw.most_turn)
            )
        if draw.is_animated:
            bone.keyframe_insert(_rotation_path(bone), frame=rng.choice((1, 6)))
        if rng.random() < 0.1:
            bone.location = 0.2 * _direction(rng)
        if draw.odd and rng.random() < 0.05:
            bone.scale = rng.choice(((1.5,) * 3,) * 5 + ((1.0, 2.0, 1.0),))
        if rng.random() < draw.locked:
            bone.lock_rotation = [rng.random() < 0.5 for _ in range(3)]
            bone.lock_rotation_w = rng.random() < 0.5
            bone.lock_rotations_4d = rng.random() < 0.5
            if not draw.odd:  # wholly, as others have no limit
                bone.lock_rotation, bone.lock_rotation_w = (True,) * 3, True


def _rotation_path(bone: Any) -> str:
    paths = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    return paths.get(bone.rotation_mode, "rotation_euler")


def _animate(rng: random.Random, rig: Any, draw: Draw) -> None:
    bone = rng.choice(rig.pose.bones)
    for frame in (-3, 4, 9):
        rigs.set_rotation(bone, Quaternion().slerp(rigs.random_rotation(rng), 0.4))
        path = rng.choice((_rotation_path(bone), "location", "scale")) if draw.odd else _rotation_path(bone)
        bone.keyframe_insert(path, frame=frame)


def _share(rng: random.Random, rig: Any) -> None:
    """Add other users of the action, its slots, or the armature data."""
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


def _joint(rng: random.Random, bone: Any, draw: Draw) -> None:
    group = bone.ccd_rig
    if rng.random() < draw.limited:
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
    if rng.random() < (0.3 if draw.odd else 0.6):
        group.mass = rng.choice((1.0, 1e-3, 1e6))
    if draw.odd and rng.random() < 0.05 and (rng.random() < 0.1 or not bone.bone.use_connect):
        group.use_slide = [rng.random() < 0.5 for _ in range(3)]
        group.slide_lower, group.slide_upper = (-0.2,) * 3, (0.3,) * 3
    if rng.random() < 0.07:
        group.comfort.tolerance = 0.1


def _range(rng: random.Random) -> tuple[float, float]:
    lower = rng.choice((-1.0, 0.0, rng.uniform(-3.0, 1.0)))
    upper = lower + rng.choice((0.0, 1.0, rng.uniform(0.0, 3.0), 6.3))
    return (upper, lower) if rng.random() < 0.02 else (lower, min(upper, 6.2))


def _row(rng: random.Random, rig: Any, number: int, draw: Draw) -> None:
    row = rig.ccd_rig.constraints.add()
    row.name = f"{rng.choice(NAMES)} {number}"
    row.kind = rng.choice(draw.kinds)
    bones = rig.pose.bones[2 if draw.is_near else 0 :]
    row.tip = rng.choice(bones).name if rng.random() < 0.5 else bones[-1].name
    row.chain_length = rng.choice((0, 0, 3 if draw.is_near else 2, 3, 99))
    row.target, row.target_bone = _target(rng, rig, row.tip, draw)
    row.use_tail = rng.random() < 0.8
    influence = rng.choice(draw.influences)
    row.influence = 1.0 if influence is None else influence
    row.weight = rng.choice((1.0, 1.0, 0.001, 1e4))
    row.priority = rng.choice((0, 0, 0, 1, 3))
    row.method = rng.choice(("CCD",) * (9 if draw.odd else 60) + ("TWO_BONE_TIP", "TWO_BONE", "TRIANGLE"))
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
    if influence is None or (draw.odd and rng.random() < 0.1):
        for frame, value in ((1, 0.0), (6, 1.0)):
            row.influence = value
            row.keyframe_insert("influence", frame=frame)
    if draw.odd and rng.random() < 0.05:
        row.driver_add("influence").driver.expression = "0.5 + 0.1 * sin(frame)"


def _target(rng: random.Random, rig: Any, tip: str, draw: Draw) -> tuple[Any, str]:
    choice = rng.random() if draw.odd else 1.0
    if choice < 0.01:
        return None, ""
    if choice < 0.03:
        return rig, rng.choice(rig.pose.bones).name
    if choice < 0.12:
        other = rigs.chain(2, 0.5, "Other")
        other.location = 2.0 * _direction(rng)
        return other, "bone_1"
    size = sum(bone.length for bone in rig.data.bones) / max(1.0, 0.3 * len(rig.data.bones))
    middle = Vector()
    if draw.is_near:
        middle, size = (
            0.8 * rig.data.bones[tip].tail_local,
            0.2 * size,
        )  # nearer: a straight chain is at its end
    target = rigs.empty("Goal", (0, 0, 0))
    for frame in (-2, 3, 7, LAST):
        target.location = rig.matrix_world @ (middle + size * rng.uniform(0.0, 1.3) * _direction(rng))
        if draw.odd and rng.random() < 0.005:
            target.location = rng.choice(((math.nan, 0, 0), (1e30, 0, 0), (0, 1e16, 0)))
        target.rotation_euler = [rng.uniform(-3.0, 3.0) for _ in range(3)]
        target.keyframe_insert("location", frame=frame)
        target.keyframe_insert("rotation_euler", frame=frame)
    if not draw.odd:
        return target, ""
    if rng.random() < 0.02:
        target.parent, target.parent_type = rig, "BONE"
        target.parent_bone = rng.choice(rig.pose.bones).name
    if rng.random() < 0.05:
        target.matrix_world = Matrix.Diagonal((1.0, 2.0, -1.0, 1.0)) @ target.matrix_world
    return target, ""


def _around(rng: random.Random, rig: Any, draw: Draw) -> None:
    """Blender's constraints and drivers, and the scene."""
    if draw.odd and rng.random() < 0.12:
        constraint = rng.choice(rig.pose.bones).constraints.new(
            rng.choice(("LIMIT_ROTATION", "COPY_ROTATION", "IK"))
        )
        if hasattr(constraint, "target"):
            constraint.target = rigs.empty("Aside", (3.0, 1.0, 0.0))
    if draw.odd and rng.random() < 0.04:
        rng.choice(rig.pose.bones).driver_add("location", 0).driver.expression = "0.01 * frame"
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, LAST
    if draw.odd and rng.random() < 0.05:
        scene.render.frame_map_old, scene.render.frame_map_new = 100, rng.choice((50, 200))
    scene.frame_set(rng.choice((1, 5, -20)))
    scene["kept"] = [1, 2, 3]
    rig["own"] = "text"


def _solver(rng: random.Random, group: Any) -> None:
    group.solver = rng.choice(("CCD_LEAST_SQUARES", "CCD_LEAST_SQUARES", "CCD"))
    group.restarts = rng.choice((0, 0, 2))
    group.max_iterations = rng.choice((5, 30, 100))
    group.position_tolerance = rng.choice((1e-4, 1e-4, 1e-2, 1e-6))


def options(rng: random.Random, bake: Any, draw: Draw = ANY) -> dict[str, Any]:
    """Draw the arguments of `BakeSettings`."""
    if not draw.odd:
        return {
            "frame_start": 1,
            "frame_end": rng.choice((6, 10)),
            "step": rng.choice((1, 1, 1, 3)),
            "destination": rng.choice(list(bake.Destination)),
        }
    first = rng.choice((1, 1, 1, -4, 3, 1_048_560))
    last = first + rng.choice((0, 3, 8, 10))
    chosen: dict[str, Any] = {
        "frame_start": first,
        "frame_end": last,
        "step": rng.choice((1, 1, 1, 2, 5, 100)),
        "destination": rng.choice(list(bake.Destination)),
        "smoothness": rng.choice((5.0, 5.0, 0.0, 1000.0)),
        "preroll": rng.choice((0, 0, 0, 3)),
        "start": rng.choice(list(bake.Start)),
        "verify": rng.random() < 0.9,
    }
    chosen["keys"] = rng.choice((bake.Keys.EVERY_FRAME,) * 12 + tuple(bake.Keys))
    if rng.random() < 0.15 and chosen["keys"] is bake.Keys.EVERY_FRAME:
        chosen["reduce_angle"], chosen["reduce_error"] = 0.02, rng.choice((0.0, 1e-3))
    if rng.random() < 0.02:
        chosen["body"] = rng.choice(("AUTO", "KEEP_ANIMATION", "WALK_ON", "FOLLOW_FEET"))
    return chosen


def _direction(rng: random.Random) -> Vector:
    return Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
