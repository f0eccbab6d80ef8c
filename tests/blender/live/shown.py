"""What a rig shows while it is live, for the tests of the preview."""

from __future__ import annotations

import math

import bpy
import numpy as np
import rigs
from playing import shown as shown_now

SHOWN = 2e-5  # between matrices of bones shown by clamps and by channels, in rigs a few metres long
REACHED = 1e-3  # [m]
SOLVED, BAKED = 0.5, 1.0  # degrees between a bone as Live shows it and as Solve, or a bake of the frame, does


def reach(rig, tip, location, **fields):
    """A constraint with an empty of its own as the target."""
    row = rigs.reach(rig, tip, rigs.empty(f"Target {tip}", location), **fields)
    rigs.activate(rig)
    rigs.update()
    return row


def two_arms():
    """A spine of one bone with two arms of three, and targets for all three tips."""
    bones = [rigs.B("spine", (0, 0, 0), (0, 0, 1))]
    for side, x in (("L", 1.0), ("R", -1.0)):
        for i in range(3):
            parent = f"arm_{i - 1}.{side}" if i else "spine"
            ends = (x * (i + 0.2), 0, 1 - 0.1 * i), (x * (i + 1.2), 0, 0.9 - 0.1 * i)
            bones.append(rigs.B(f"arm_{i}.{side}", *ends, parent))
    made = rigs.armature(bones)
    reach(made, "spine", (0.6, 0.0, 0.8), chain_length=1)
    for side, x in (("L", 1.0), ("R", -1.0)):
        reach(made, f"arm_2.{side}", (2.2 * x, 0.8, 1.2), chain_length=3)
    return made


def switch_live():
    """Press Live, and let Blender evaluate what it then shows."""
    assert bpy.ops.ccd_rig.live() == {"FINISHED"}
    rigs.update()


def matrices(rig):
    """(bones, 4, 4) as Blender shows them, in armature space."""
    return np.array([bone.matrix for bone in shown_now(rig).pose.bones])


def shows(rig, bone="bone_3"):
    """The place of a bone's tail in the world, as Blender shows it."""
    evaluated = shown_now(rig)
    return evaluated.matrix_world @ evaluated.pose.bones[bone].tail


def off(rig, bone="bone_3", target="Target bone_3"):
    """Metres between a bone's tail and its target."""
    return (shows(rig, bone) - bpy.data.objects[target].matrix_world.translation).length


def apart(shown, others):
    """Degrees by which a bone is turned between two arrays of matrices, at most."""
    turns = np.einsum("bij,bik->bjk", unit(shown), unit(others))
    cosines = (np.trace(turns, axis1=1, axis2=2) - 1.0) / 2.0
    return math.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)).max())


def unit(matrices):
    """The axes of matrices, of length 1."""
    axes = matrices[:, :3, :3]
    return axes / np.linalg.norm(axes, axis=1, keepdims=True)
