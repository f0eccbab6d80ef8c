"""Rigs for tests, made in the open file by Blender's own tools.

Every helper works in object mode, leaves object mode behind and returns the armature object; lengths are
metres in armature space. `update()` after changes of channels, before anything evaluated is read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import bpy
from mathutils import Quaternion

EULER_MODES = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
MODES = ("QUATERNION", "AXIS_ANGLE", *EULER_MODES)
INHERIT_SCALES = ("FULL", "FIX_SHEAR", "ALIGNED", "AVERAGE", "NONE", "NONE_LEGACY")
METARIGS = ("human", "basic_human", "basic_quadruped", "bird", "cat", "horse", "shark", "wolf")


@dataclass(frozen=True)
class B:
    """A bone to make: head and tail in armature space, parent's name, roll [radians], joined to parent."""

    name: str
    head: Sequence[float]
    tail: Sequence[float]
    parent: str = ""
    roll: float = 0.0
    connect: bool = False


def link(data: bpy.types.ID | None, name: str) -> bpy.types.Object:
    """A new object with `data` (None: an Empty) in the scene's collection, active and selected alone."""
    made = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(made)
    activate(made)
    return made


def ground(
    height: Callable[[float, float], float],
    xs: Sequence[float],
    ys: Sequence[float] | None = None,
    name: str = "Ground",
) -> bpy.types.Object:
    """A mesh over a grid of places, along Y as along X without `ys`, with a height for each place."""
    ys = xs if ys is None else ys
    corners = [(x, y, height(x, y)) for x in xs for y in ys]
    places = [i * len(ys) + j for i in range(len(xs) - 1) for j in range(len(ys) - 1)]
    data = bpy.data.meshes.new(name)
    data.from_pydata(corners, [], [(a, a + len(ys), a + len(ys) + 1, a + 1) for a in places])
    return link(data, name)


def reach(
    rig: bpy.types.Object, bone: str, target: bpy.types.Object, name: str = "", **fields: object
) -> Any:
    """A constraint that lets a bone reach for a target."""
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target = name or bone, bone, target
    for field, value in fields.items():
        setattr(row, field, value)
    return row


def tweak(thing: bpy.types.Object, start: int = 1) -> None:
    """Put an object's action into an NLA strip, and tweak that."""
    data = thing.animation_data
    track = data.nla_tracks.new()
    strip = track.strips.new("Strip", start, data.action)
    data.action = None
    track.select = strip.select = True
    data.nla_tracks.active = track
    data.use_tweak_mode = True
    assert data.use_tweak_mode


def keyed(thing: bpy.types.Object, path: Mapping[float, Sequence[float]]) -> bpy.types.Object:
    """The object with its location keyed at frames; the first frame is shown."""
    for frame, place in path.items():
        thing.location = place
        thing.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(1)
    return thing


def interpolate(curves: Iterable[bpy.types.FCurve], kind: str) -> None:
    """Give all keys of F-curves an interpolation."""
    for curve in curves:
        for point in curve.keyframe_points:
            point.interpolation = kind


def put(thing: bpy.types.Object, place: Sequence[float]) -> None:
    """Move an object to a place of the world."""
    update()
    matrix = thing.matrix_world.copy()
    matrix.translation = place
    thing.matrix_world = matrix
    update()


def setting(place: str, **fields: object) -> Callable[[bpy.types.Object], None]:
    """A change of a rig: fields of what lies at a path from it, such as "pose.bones[0]", get values."""

    def change(rig: bpy.types.Object) -> None:
        thing = rig.path_resolve(place) if place else rig
        for name, value in fields.items():
            setattr(thing, name, value)

    change.__name__ = "_".join(fields)
    return change


def forget_names(rig: bpy.types.Object) -> None:
    """Let bones forget the names that they are known by, so that nothing follows a renamed one."""
    for bone in rig.pose.bones:
        bone.ccd_rig.property_unset("known_as")


def activate(thing: bpy.types.Object) -> None:
    """Make an object the active and only selected one.

    To walk through the view layer's objects would crash where one was unlinked: the first selection frees it.
    """
    for other in bpy.context.selected_objects:
        other.select_set(False)
    thing.select_set(True)
    bpy.context.view_layer.objects.active = thing


@contextmanager
def edit_bones(rig: bpy.types.Object) -> Iterator[bpy.types.ArmatureEditBones]:
    """The armature's edit bones, in Edit Mode as long as the block runs."""
    activate(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    try:
        yield rig.data.edit_bones
    finally:
        bpy.ops.object.mode_set(mode="OBJECT")


def armature(bones: Sequence[B], name: str = "Rig") -> bpy.types.Object:
    """An armature with these bones, parents first."""
    rig = link(bpy.data.armatures.new(name), name)
    with edit_bones(rig) as made:
        for bone in bones:
            new = made.new(bone.name)
            new.head, new.tail, new.roll = bone.head, bone.tail, bone.roll
            if bone.parent:
                new.parent = made[bone.parent]
                new.use_connect = bone.connect
    return rig


def chain(count: int, length: float = 1.0, name: str = "Rig", connect: bool = True) -> bpy.types.Object:
    """A straight chain "bone_0", "bone_1", ... upwards along Z from the origin, each bone `length` long."""
    return armature(
        [
            B(
                f"bone_{i}",
                (0, 0, i * length),
                (0, 0, (i + 1) * length),
                parent=f"bone_{i - 1}" if i else "",
                connect=connect and i > 0,
            )
            for i in range(count)
        ],
        name,
    )


def empty(name: str, location: Sequence[float] = (0.0, 0.0, 0.0)) -> bpy.types.Object:
    """An Empty, for example as a target, in world space."""
    made = link(None, name)
    made.location = location
    return made


def metarig(kind: str) -> bpy.types.Object:
    """One of Rigify's metarigs (see METARIGS); the add-on is enabled as a user would do it."""
    if "rigify" not in bpy.context.preferences.addons:
        bpy.ops.preferences.addon_enable(module="rigify")
    from rigify import metarigs  # part of Blender, importable once it is enabled

    folder = {
        "human": "human",
        "basic_human": "Basic.basic_human",
        "basic_quadruped": "Basic.basic_quadruped",
    }
    module = folder.get(kind, f"Animals.{kind}")
    rig = link(bpy.data.armatures.new(kind), kind)
    __import__(f"{metarigs.__name__}.{module}", fromlist=["create"]).create(rig)
    if rig.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    update()
    return rig


def nameless_human():
    """Rigify's human metarig whose names tell nothing; and {former name: name}."""
    rig = metarig("basic_human")
    names = {bone.name: f"bone.{place:03d}" for place, bone in enumerate(rig.data.bones)}
    for bone in rig.pose.bones:
        bone.rigify_type = ""
    for old, new in names.items():
        rig.data.bones[old].name = new
    return rig, names


def generated(kind: str) -> bpy.types.Object:
    """The rig that Rigify generates from one of its metarigs, which is removed."""
    source = metarig(kind)
    activate(source)
    bpy.ops.pose.rigify_generate()
    made = next(each for each in bpy.data.objects if each.type == "ARMATURE" and each != source)
    activate(made)
    if made.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    bpy.data.objects.remove(source)
    update()
    return made


def random_rotation(rng: random.Random) -> Quaternion:
    """A rotation drawn evenly from all rotations."""
    return Quaternion([rng.gauss(0.0, 1.0) for _ in range(4)]).normalized()


def set_rotation(pose_bone: bpy.types.PoseBone, rotation: Quaternion) -> None:
    """Write a rotation (relative to rest) into the channels of the bone's own mode."""
    if pose_bone.rotation_mode == "QUATERNION":
        pose_bone.rotation_quaternion = rotation
    elif pose_bone.rotation_mode == "AXIS_ANGLE":
        axis, angle = rotation.to_axis_angle()
        pose_bone.rotation_axis_angle = (angle, *axis)
    else:
        pose_bone.rotation_euler = rotation.to_euler(pose_bone.rotation_mode)


def pose_randomly(rig: bpy.types.Object, seed: int, location: float = 0.0) -> None:
    """Turn every bone at random, and shift it by up to `location` on each axis."""
    rng = random.Random(seed)
    for pose_bone in rig.pose.bones:
        set_rotation(pose_bone, random_rotation(rng))
        pose_bone.location = [rng.uniform(-location, location) for _ in range(3)]
    update()


def leaves(rig: bpy.types.Object) -> list[str]:
    """Names of the bones without children."""
    return [bone.name for bone in rig.data.bones if not bone.children]


def update() -> None:
    """Bring everything evaluated up to date."""
    bpy.context.view_layer.update()


def balanced() -> bpy.types.Object:
    """An arm that balances masses; half is at the end of a limb that no chain turns, and the arm carries."""
    bones = []
    for limb, x, count, parent in (("arm", 0.0, 3, ""), ("side", 1.0, 4, "arm_0")):
        for k in range(count):
            above = f"{limb}_{k - 1}" if k else parent
            bones.append(B(f"{limb}_{k}", (x, 0.0, k), (x, 0.0, k + 1.0), above))
    rig = armature(bones)
    for name in ("arm_2", "side_2"):
        rig.pose.bones[name].ccd_rig.mass = 1.0
    goal = keyed(empty("Goal"), {1: (0.6, 0.0, 2.2), 11: (0.9, 0.3, 2.0)})
    reach(rig, "arm_2", goal, "Balance", kind="BALANCE", balance_axes=(True, False, True))
    update()
    return rig


def trunk(chest: float = 1.6) -> list[B]:
    """Root on the ground, hips, a spine up to the height of the chest, and a head."""
    return [
        B("root", (0, 0, 0), (0, 0.3, 0)),
        B("hips", (0, 0, 1.0), (0, 0, 1.2), "root"),
        B("spine", (0, 0, 1.2), (0, 0, chest), "hips", connect=True),
        B("head", (0, 0, chest), (0, 0, 1.8), "spine", connect=True),
    ]


def leg(side: str) -> list[B]:
    """Below the hips of `trunk`, on the side "L" or "R": a knee that bends, and a foot with toes along -Y."""
    x = 0.1 if side == "L" else -0.1
    return [
        B(f"thigh.{side}", (x, 0, 0.95), (x, -0.03, 0.5), "hips"),
        B(f"shin.{side}", (x, -0.03, 0.5), (x, 0.02, 0.08), f"thigh.{side}", connect=True),
        B(f"foot.{side}", (x, 0.02, 0.08), (x, -0.12, 0.02), f"shin.{side}", connect=True),
        B(f"toe.{side}", (x, -0.12, 0.02), (x, -0.2, 0.02), f"foot.{side}", connect=True),
    ]


def biped() -> list[B]:
    """The bones of a figure that looks along -Y: root, hips, spine, legs whose knees bend, feet with toes."""
    return [*trunk(), *leg("L"), *leg("R")]


def spider(pairs=4):
    """A body with legs of four bones in pairs, front to back, and an abdomen; looks along -Y."""
    bones = [B("root", (0, 0, 0), (0, 0.2, 0)), B("body", (0, 0.2, 0.5), (0, -0.2, 0.5), "root")]
    bones += [B("abdomen", (0, 0.2, 0.5), (0, 0.8, 0.6), "body")]
    for side, x in (("L", 1.0), ("R", -1.0)):
        for leg in range(pairs):
            y = -0.6 + 1.2 * leg / (pairs - 1)
            joints = [(0.1 * x, 0.2 * y, 0.5), (0.3 * x, 0.4 * y, 0.6), (0.7 * x, 0.8 * y, 0.9)]
            joints += [(1.1 * x, y, 0.5), (1.2 * x, 1.1 * y, 0.0)]
            parent = "body"
            for place in range(4):
                name = f"leg{leg}_{place}.{side}"
                bones.append(B(name, joints[place], joints[place + 1], parent, connect=place > 0))
                parent = name
    return bones
