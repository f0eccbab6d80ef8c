"""Playback and content of a saved file, judged in another process without the extension.

python -m devtools.fuzz.played      takes plans, a line of JSON each; gives the faults of each, as one too

A plan names a `file`; the rest is what its report claims, see `judge`. Frames are played by Blender alone.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import bpy
from mathutils import Euler, Matrix, Quaternion, Vector

from devtools.environments import ROOT
from devtools.fuzz import angles

LIMIT = 3e-4
"""Radians that a limit may be broken by: channels are single precision, near gimbal lock they are less."""
SINGLE = 2e-5
"""Part of all lengths that single precision takes off."""
TURN = 2e-3
"""Radians that a rotation may be off what is told."""
MOST_TURN = 3.0
"""Radians beyond which the shorter way of a slerp is in doubt."""
AXES = ("X", "Y", "Z")
MODES = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
MARKS = ("CCD Rig Live", "CCD Rig Evaluation")
"""How names begin that no file may hold."""

ANSWER = "answer: "
CLAMPS = ("LIMIT_ROTATION", "LIMIT_LOCATION")
"""What previews make; others of such a name are the user's."""

_judges: list[subprocess.Popen[str]] = []


def ask(plan: dict[str, Any]) -> list[str]:
    """Faults of a file, as the other process finds them."""
    if not _judges:
        command = [sys.executable, "-m", "devtools.fuzz.played"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        _judges.append(subprocess.Popen(command, cwd=ROOT, text=True, **pipes))
    (judge_process,) = _judges
    assert judge_process.stdin is not None
    assert judge_process.stdout is not None
    judge_process.stdin.write(json.dumps(plan) + "\n")
    judge_process.stdin.flush()
    for line in judge_process.stdout:
        if line.startswith(ANSWER):  # what else there is was printed by Blender
            faults: list[str] = json.loads(line.removeprefix(ANSWER))
            return faults
    _judges.clear()
    return [f"Blender ends with code {judge_process.wait()} where the file is played"]


def judge(plan: dict[str, Any]) -> list[str]:
    """Faults of a file.

    Args:
        plan: `file`; then either nothing, and the file may hold nothing of a preview, or `rig`, `rows` (by
            name: what each asks for), `limits` (by bone), `tolerance` (world metres, radians), and `frames`:
            of each `entries` (what is told of rows), `limited` (bones that may not leave their limits) and
            `base` (rotations of bones before the bake).
    """
    bpy.ops.wm.open_mainfile(filepath=plan["file"], load_ui=False)
    if "rig" not in plan:
        return list(left_behind())
    rig, faults = bpy.data.objects[plan["rig"]], list[str]()
    for frame in plan["frames"]:
        bpy.context.scene.frame_set(frame["frame"])
        faults += [f"frame {frame['frame']}: {words}" for words in _wrong_at(rig, plan, frame)]
        if faults:
            break
    return faults[:3]


def left_behind() -> Iterator[str]:
    """What of a preview or a bake stands in the open file.

    What is linked, or overrides that, does not count: a library may be written while a rig is live, and
    Blender tells nobody.
    """
    for thing in bpy.data.objects:
        if thing.library is None and thing.override_library is None:
            yield from (f"left behind: {words} of {thing.name}" for words in _marks_of(thing))
    yield from (f"left behind: scene {each.name}" for each in bpy.data.scenes if each.name.startswith(MARKS))


def _marks_of(thing: Any) -> Iterator[str]:
    stored = thing.bl_system_properties_get() if hasattr(thing, "bl_system_properties_get") else thing
    if stored is not None and "live" in (stored.get("ccd_rig") or {}):
        yield "'live'"
    for bone in thing.pose.bones if thing.pose is not None else ():
        for constraint in bone.constraints:
            if constraint.name.startswith(MARKS) and constraint.type in CLAMPS:
                yield f"{constraint.name} of {bone.name}"


def _wrong_at(rig: Any, plan: dict[str, Any], frame: dict[str, Any]) -> Iterator[str]:
    """Yield the faults of the present frame."""
    for bone in frame["limited"]:
        off = angles.outside(plan["limits"][bone], rotation_of(rig.pose.bones[bone])[:])
        if off > LIMIT:
            yield f"'{bone}' is outside its limit by {off:.2g}: {plan['limits'][bone]['kind']}"
    most, widest = plan["tolerance"]
    for entry in frame["entries"]:
        name, row = entry["row"], plan["rows"][entry["row"]]
        distance, angle, size = _misses(rig, row)
        room = SINGLE * (1.0 + size)
        if abs(distance - entry["keyed_residual"]) > 5.0 * room:
            yield f"'{name}' is {distance:.5g} off, the report says {entry['keyed_residual']:.5g}"
        if plan["tells_angles"] and not row["pole"] and abs(angle - entry["keyed_angle"]) > TURN:
            yield f"'{name}' is turned {angle:.5g} off, the report says {entry['keyed_angle']:.5g}"
        missed = distance > 1.01 * most + room or (plan["tells_angles"] and angle > widest + TURN)
        if missed and entry["reached"] and entry["influence"] >= 1.0:
            yield f"'{name}' is called reached, and plays {distance:.5g} and {angle:.3g} off"
    for entry in frame["entries"]:
        if not (entry["reached"] and entry["alone"] and entry["influence"] < 1.0):
            continue
        name, row = entry["row"], plan["rows"][entry["row"]]
        bpy.context.scene.frame_set(frame["frame"])  # as it was before another row was turned on
        if _at_full(rig, row, frame["base"], entry["influence"]):
            distance, _, size = _misses(rig, row)
            room = SINGLE * (1.0 + size)
            if distance > 1.01 * most + room / entry["influence"]:
                yield f"'{name}' is called reached, and is {distance:.5g} off at full influence"


def _misses(rig: Any, row: dict[str, Any]) -> tuple[float, float, float]:
    """Return a row's errors, world metres and radians, and the size of the numbers, metres."""
    depsgraph = bpy.context.evaluated_depsgraph_get()
    seen, target = rig.evaluated_get(depsgraph), bpy.data.objects[row["target"]].evaluated_get(depsgraph)
    world, bones = seen.matrix_world, seen.pose.bones
    goal = target.matrix_world
    if row["target_bone"]:
        goal = goal @ target.pose.bones[row["target_bone"]].matrix
    point = goal @ Vector(row["offset"])
    if row["kind"] == "BALANCE":
        masses, places = row["masses"], row["middles"]
        middles = [mass * (bones[name].matrix @ Vector(places[name])) for name, mass in masses.items()]
        end = world @ (sum(middles, Vector()) / sum(masses.values()))
    else:
        tip = bones[row["tip"]]
        end = tip.tail if row["use_tail"] else tip.head
        end = world @ (end + _axes(tip.matrix) @ Vector(row["effector_offset"]))
    way = Vector(x if counts else 0.0 for x, counts in zip(end - point, row["axes"], strict=True))
    size = end.length + point.length + max(map(abs, world.to_scale())) * row["length"]
    return way.length, _turn_off(bones, world.inverted_safe() @ goal, row), size


def _turn_off(bones: Any, goal: Any, row: dict[str, Any]) -> float:
    """Radians that a row's bone is turned off what it asks for; `goal`: the target in armature space."""
    if row["rotation"] == "NONE":
        return 0.0
    turned = _axes(bones[row["rotation_bone"] or row["tip"]].matrix)
    if row["rotation"] == "ORIENTATION":
        return angles.between(turned.to_quaternion()[:], _axes(goal).to_quaternion()[:])
    (sign, k), (other, m) = (
        (-1.0 if name.startswith("NEG") else 1.0, AXES.index(name[-1]))
        for name in (row["bone_axis"], row["target_axis"])
    )
    wanted: float = (sign * turned.col[k]).angle(other * goal.to_3x3().col[m], 0.0)
    return wanted


def _axes(matrix: Any) -> Any:
    """The 3x3 axes of a matrix at right angles: Y as it is, Z as near as can be."""
    y, z = (matrix.to_3x3().col[k].normalized() for k in (1, 2))
    z = (z - y * z.dot(y)).normalized()
    return Matrix((y.cross(z), y, z)).transposed()


def rotation_of(bone: Any) -> Quaternion:
    """Return the rotation in a bone's channel."""
    if bone.rotation_mode == "QUATERNION":
        return bone.rotation_quaternion.normalized()
    if bone.rotation_mode == "AXIS_ANGLE":
        angle, *axis = bone.rotation_axis_angle
        return Quaternion(Vector(axis), angle)
    return Euler(bone.rotation_euler, bone.rotation_mode).to_quaternion()


def _at_full(rig: Any, row: dict[str, Any], base: dict[str, Any], influence: float) -> bool:
    """Turn the chain on to where full influence has it; whether that is certain."""
    wanted: dict[str, Quaternion] = {}
    for name in row["chain"]:
        before = Quaternion(base[name])
        turn = before.inverted() @ rotation_of(rig.pose.bones[name])
        axis, angle = turn.to_axis_angle()
        angle = (angle + math.pi) % (2.0 * math.pi) - math.pi
        if abs(angle) > MOST_TURN * influence:
            return False
        wanted[name] = before @ Quaternion(axis, angle / influence)
    for name, rotation in wanted.items():
        bone = rig.pose.bones[name]
        axis, angle = rotation.to_axis_angle()
        values = {"QUATERNION": rotation, "AXIS_ANGLE": (angle, *axis)}.get(bone.rotation_mode)
        path = MODES.get(bone.rotation_mode, "rotation_euler")
        setattr(bone, path, values if values is not None else rotation.to_euler(bone.rotation_mode))
    bpy.context.view_layer.update()
    return True


if __name__ == "__main__":
    bpy.context.preferences.filepaths.use_scripts_auto_execute = True
    for text in sys.stdin:
        print(f"\n{ANSWER}{json.dumps(judge(json.loads(text)))}", flush=True)
    os._exit(0)  # Blender's own shutdown inside a Python process can crash (4.2) or hang (4.5)
