"""A figure whose limits are looked at in a window, and the arrow of the menu that gives them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import bpy
from mathutils import Quaternion, Vector

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import buttons, view
from drive_figures import frame_view, metarig
from drive_menus import DRAWN, choose

RIG = "basic_human"
TAIL = [f"tail.{i}" for i in range(5)]
FINGER = [f"f_index.{i:02d}.L" for i in (1, 2, 3)]
BELOW, BESIDE = 248, 49  # [pixels] from the constraint's Influence and the sidebar's edge to the arrow


def make_figure() -> None:
    """Rigify's basic human with a tail and a finger, and a constraint of the left arm."""
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    rig = metarig("Basic.basic_human")
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.data.edit_bones
    hand = bones["hand.L"]
    rows = (
        (TAIL, bones["spine"], bones["spine"].head.copy(), Vector((0, 0.12, 0.02))),
        (FINGER, hand, hand.tail.copy(), (hand.tail - hand.head) * 0.4),
    )
    for names, parent, head, step in rows:
        for name in names:
            bone = bones.new(name)
            bone.head, bone.tail, bone.parent = head, head + step, parent
            parent, head = bone, bone.tail.copy()
    bpy.ops.object.mode_set(mode="POSE")
    target = bpy.data.objects.new("Target", None)
    bpy.context.scene.collection.objects.link(target)
    target.location = rig.pose.bones["hand.L"].tail
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target, row.chain_length = "Hand", "hand.L", target, 3
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
    frame_view(rig)


def posed(name: str) -> bpy.types.PoseBone:
    return bpy.data.objects[RIG].pose.bones[name]


def select(*names: str) -> Iterator[float]:
    """These bones, the last one active."""
    rig = bpy.data.objects[RIG]
    for bone in rig.pose.bones:
        bone.select = bone.name in names
    rig.data.bones.active = rig.data.bones[names[-1]]
    bpy.ops.ed.undo_push(message="Selected")
    yield DRAWN


def bend(name: str, degrees: float) -> None:
    posed(name).rotation_quaternion = Quaternion((1, 0, 0), math.radians(degrees))


def hinge(*names: str) -> None:
    """Hinges about X from 0 to 90 degrees."""
    for name in names:
        limit = posed(name).ccd_rig.limit
        limit.kind, limit.hinge_lower, limit.hinge_upper = "HINGE", 0.0, math.radians(90.0)


def clear() -> None:
    for bone in bpy.data.objects[RIG].pose.bones:
        bone.property_unset("ccd_rig")


def held(*names: str) -> dict[str, dict[str, object]]:
    """The limits of bones: kind, and what it goes by in degrees."""
    found = {}
    for name in names:
        limit = posed(name).ccd_rig.limit
        seen: dict[str, object] = {"kind": limit.kind, "axis": [round(each, 4) for each in limit.axis]}
        for field in ("hinge", "x", "z", "twist"):
            seen[field] = [math.degrees(getattr(limit, f"{field}_{end}")) for end in ("lower", "upper")]
        seen["cone"], seen["use_twist"] = math.degrees(limit.cone_radius), limit.use_twist
        seen["euler"] = [math.degrees(each) for end in (limit.euler_lower, limit.euler_upper) for each in end]
        found[name] = seen
    return found


arrow: list[int] = []


def find_arrow() -> Iterator[float]:
    """The arrow beside the kind of limit, so far below the constraint's Influence."""
    found: dict[str, tuple[int, int]] = {}
    influence = f'bpy.data.objects["{RIG}"].ccd_rig.constraints[0].influence'
    yield from buttons(influence, found, (594, 626))
    _, _, region = view()
    _, y = found[influence]
    arrow[:] = region.x + region.width - BESIDE, y + BELOW


def menu(entry: str, *subs: int, ends: bool = True) -> Iterator[float]:
    yield from choose((arrow[0], arrow[1]), entry, *subs, ends=ends)
