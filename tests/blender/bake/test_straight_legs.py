"""Figures that walk on legs near straight, with hips that move and turn: beside Blender's own IK.

Where a target passes by a straight limb, the joints of any method that keeps near the rest pose turn fast;
but not where Blender's, which does so frame by frame, turn slowly.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import bpy
import pytest
import rigs
from mathutils import Matrix, Vector
from rigs import B
from seeds import few_of

FRAMES = 32
NEAR = 3
"""Frames: a joint that Blender turns fast may be turned as fast so much sooner or later."""


@dataclass(frozen=True)
class Limb:
    """Two bones that hang straight down, from a place in world space; the knee or elbow at a part of it."""

    upper: str
    lower: str
    parent: str
    x: float
    top: float
    lengths: tuple[float, float]
    bend: float

    def bones(self) -> list[B]:
        """The rest pose, bent by some radians."""
        (first, second), sine, cosine = self.lengths, math.sin(self.bend), math.cos(self.bend)
        knee = (self.x, -first * sine, self.top - first * cosine)
        end = (self.x, knee[1] + second * sine, knee[2] - second * cosine)
        top = (self.x, 0.0, self.top)
        return [B(self.upper, top, knee, self.parent), B(self.lower, knee, end, self.upper, connect=True)]


def limbs(bend: float) -> list[Limb]:
    """Legs whose halves differ from side to side, and arms."""
    return [
        Limb("thigh.L", "shin.L", "hips", 0.1, 1.0, (0.5, 0.45), bend),
        Limb("thigh.R", "shin.R", "hips", -0.1, 1.0, (0.48, 0.47), bend),
        Limb("upper.L", "fore.L", "spine", 0.2, 1.5, (0.3, 0.28), -bend),
        Limb("upper.R", "fore.R", "spine", -0.2, 1.5, (0.3, 0.28), -bend),
    ]


def walk(rng: random.Random) -> tuple[bpy.types.Object, dict[str, bpy.types.Object]]:
    """A figure whose hips sway, sink and turn by up to half a turn, and targets that its limbs hardly reach,
    with a pause or without."""
    made = limbs(rng.choice((0.0, 0.0, 0.002, 0.01, 0.05, 0.15)))
    spine = B("spine", (0, 0, 1.2), (0, 0, 1.5), "hips")
    body = [B("root", (0, 0, 0), (0, 0.3, 0)), B("hips", (0, 0, 1.0), (0, 0, 1.2), "root"), spine]
    rig = rigs.armature([*body, *(bone for limb in made for bone in limb.bones())])
    hips = rig.pose.bones["hips"]
    hips.rotation_mode = "XYZ"
    targets = {limb.lower: rigs.empty(f"Target {limb.lower}") for limb in made}
    turn, sway, speed = rng.choice((0.0, 0.3, math.pi)), rng.uniform(0.0, 0.08), rng.uniform(0.0, 1.5)
    sunk, lift, stride = rng.choice((0.0, 0.02, 0.1)), rng.uniform(0.02, 0.3), rng.uniform(0.1, 0.6)
    beyond = rng.choice((-0.03, -0.005, 0.0, 0.01, 0.05))
    begin, period, pauses = rng.uniform(0.0, 2.0 * math.pi), rng.choice((12, 16, 20)), rng.random() < 0.4
    for frame in range(1, FRAMES + 1, rng.choice((1, 2, 4))):
        moving = frame if not pauses or frame < 12 else max(12, frame - 6)
        angle, part = 2.0 * math.pi * moving / period + begin, (moving - 1) / FRAMES
        place = Vector((sway * math.sin(angle), -speed * part, 0.0))
        body_matrix = Matrix.Translation(place) @ Matrix.Rotation(turn * part, 4, "Z")
        shift = body_matrix @ Vector((0.0, 0.0, 1.0)) - Vector((0.0, 0.0, 1.0))
        shift.z = -0.5 * sunk * (1.0 + math.cos(2.0 * angle))
        hips.location = hips.bone.matrix_local.to_3x3().inverted() @ shift
        hips.rotation_euler = (0.1 * math.sin(angle), turn * part, 0.08 * math.cos(angle))
        hips.keyframe_insert("location", frame=frame)
        hips.keyframe_insert("rotation_euler", frame=frame)
        for limb in made:
            side, length = math.copysign(1.0, limb.x), sum(limb.lengths)
            if limb.parent == "hips":
                goal = body_matrix @ Vector((limb.x, -0.5 * stride * side * math.sin(angle), 0.0))
                raised = max(0.0, lift * side * math.cos(angle))
                stretch = beyond * length * (0.5 + 0.5 * math.cos(angle + side))
                goal.z = limb.top - length + raised - stretch
            else:
                low = limb.top - length * (0.97 + beyond) + 0.1 * max(0.0, side * math.sin(angle))
                goal = body_matrix @ Vector((limb.x + 0.1 * side, 0.2 * side * math.sin(angle), low))
            targets[limb.lower].location = goal
            targets[limb.lower].keyframe_insert("location", frame=frame)
    return rig, targets


def rotations(rig: Any) -> dict[str, list[float]]:
    """Degrees by which each bone of a limb turns beside its parent, from each frame to the next."""
    found: dict[str, list[float]] = {}
    before: dict[str, Any] = {}
    for frame in range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        shown = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        for bone in shown.pose.bones:
            if "." not in bone.name:
                continue
            rest = bone.bone.parent.matrix_local.inverted() @ bone.bone.matrix_local
            present = ((bone.parent.matrix @ rest).inverted() @ bone.matrix).to_quaternion()
            if frame > 1:
                cosine = min(1.0, abs(present.dot(before[bone.name])))
                found.setdefault(bone.name, []).append(math.degrees(2.0 * math.acos(cosine)))
            before[bone.name] = present
    return found


@pytest.mark.parametrize("seed", few_of(range(8), 3))
def test_no_joint_leaps_where_blenders_ik_turns_it_slowly(bake, seed):
    rig, targets = walk(random.Random(seed))
    for lower, target in targets.items():
        constraint = rig.pose.bones[lower].constraints.new("IK")
        constraint.target, constraint.chain_count = target, 2
    beside = rotations(rig)
    for lower, target in targets.items():
        bones = rig.pose.bones[lower].constraints
        bones.remove(bones[0])
        rigs.reach(rig, lower, target, chain_length=2)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES, verify=False))
    for bone, steps in rotations(rig).items():
        for k, step in enumerate(steps):
            slow = max(beside[bone][max(0, k - NEAR) : k + NEAR + 1])
            assert step < 40.0 or slow > 20.0, (
                f"{bone}, frame {k + 2}: {step:.0f} degrees, Blender's {slow:.0f}"
            )
