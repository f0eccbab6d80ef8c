"""Whole set-ups in Blender: made at random, baked, checked, undone, redone, saved and opened again.

What is refused changes nothing. What is baked changes nothing else, keeps limits as `angles` understands
them, plays as its report says, and comes back after undo, redo and a file.
"""

from __future__ import annotations

import os
import random
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import bpy
from installed import PACKAGE, package_file  # of tests/blender
from mathutils import Euler, Quaternion, Vector

from devtools.fuzz import angles, contents, setups
from devtools.fuzz.outcome import Outcome

ANGLE = 3e-4
"""Radians that a limit may be broken by: channels are single precision, near gimbal lock they are less."""
LONGEST_WORDS = 600


def prepare() -> None:
    """Install the extension as users do."""
    bpy.ops.extensions.package_install_files(
        filepath=str(package_file()), repo="user_default", enable_on_install=True
    )
    bpy.context.preferences.filepaths.use_scripts_auto_execute = True


def run(seed: int) -> Outcome:
    """Make a set-up, bake it, and judge."""
    outcome, rng = Outcome(), random.Random(seed)
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = setups.make(rng)
    bake = import_module(f"{PACKAGE}.ccd_rig.blender.bake.bake")
    errors = import_module(f"{PACKAGE}.ccd_rig.errors")
    _check(rig, outcome)
    bpy.ops.ed.undo_push(message="before")
    rig = bpy.context.object
    before = contents.content()
    try:
        settings = bake.BakeSettings(**setups.options(rng, bake))
        report = bake.bake(bpy.context.scene, rig, settings)
    except errors.CCDRigError as error:
        outcome.kind = "refused"
        outcome.note(str(error))
        words = contents.changed(before, contents.content())
        if words:
            outcome.faults.append(f"refused ({str(error)[:80]}), but changed: {words[:3]}")
        if len(str(error)) > LONGEST_WORDS:
            outcome.faults.append(f"a refusal of {len(str(error))} letters")
        return outcome
    outcome.kind = f"baked, {settings.destination.name.lower().replace('_', ' ')}"
    after = contents.content()
    outcome.note(sorted(contents.action_content(bpy.data.actions[report.action]).items(), key=repr))
    outcome.faults += _changed_beside(rig, report, settings, before, after)
    outcome.faults += _written(report)
    bpy.ops.ed.undo_push(message="after")
    outcome.faults += _there_and_back(before, after)
    outcome.faults += _played(bpy.context.object, report, settings)
    outcome.faults += _opened_again(report.action)
    return outcome


def _check(rig: Any, outcome: Outcome) -> None:
    """The checks of the panel."""
    checks = import_module(f"{PACKAGE}.ccd_rig.blender.checks.setup")
    for problem in checks.problems(rig, bpy.context.scene):
        outcome.note(problem.message)
        if len(problem.message) > LONGEST_WORDS:
            outcome.faults.append(f"a problem of {len(problem.message)} letters")


def _changed_beside(rig: Any, report: Any, settings: Any, before: Any, after: Any) -> list[str]:
    """What a bake has changed that is not its own."""
    where = f"object {rig.name}"
    own = {f"action {report.action}", f"{where} action", f"{where} strips"}
    keyed = {path for _, path, _ in after.get(f"action {report.action}", {})}
    shared = {
        f"object {thing.name}"
        for thing in bpy.data.objects
        if thing.animation_data is not None and thing.animation_data.action is not None
    }
    found = []
    for key in contents.changed(before, after):
        if key in own or (key.startswith("action ") and key not in before):
            continue
        if " channel " in key:  # what is keyed shows the keys at once, also of others with that action
            bone, _, channel = key.partition(" bone ")[2].rpartition(" channel ")
            path = f"{rig.pose.bones[bone].path_from_id()}.{channel}" if bone in rig.pose.bones else ""
            if key.partition(" bone ")[0] in {where, *shared} and path in keyed:
                continue
        found.append(f"changed beside: {key}")
    if settings.destination.name != "CURRENT_ACTION":
        return found[:3]
    old, new = (state.get(f"action {report.action}") for state in (before, after))
    bones = {bone.path_from_id() for bone in rig.pose.bones}
    for curve, keys in (old or {}).items():
        is_bone = curve[1].rpartition(".")[0] in bones
        if not is_bone and (new or {}).get(curve) != keys and "ccd_rig" not in curve[1]:
            found.append(f"changed beside: F-curve {curve}")
    return found[:3]


def _written(report: Any) -> list[str]:
    """The report as text."""
    with tempfile.TemporaryDirectory() as folder:
        module = import_module(f"{PACKAGE}.ccd_rig.blender.bake.report")
        module.save(report, Path(folder) / "report.json")
    return [] if len(report.summary()) < LONGEST_WORDS else ["a summary that is too long"]


def _played(rig: Any, report: Any, settings: Any) -> list[str]:
    """What Blender shows, frame by frame, against limits and the report."""
    found: list[str] = []
    rows = {row.name: row for row in rig.ccd_rig.constraints}
    by_frame: dict[float, list[Any]] = {}
    for entry in report.entries:
        by_frame.setdefault(entry.frame, []).append(entry)
    keyed = {path for _, path, _ in contents.action_content(bpy.data.actions[report.action])}
    solved = {bone.name for row in rows.values() for bone in _chain(rig, row)}
    limited = [bone for bone in rig.pose.bones if bone.name in solved and _is_limited(rig, bone, keyed)]
    plain = not any(row.kind == "PLANT" for row in rows.values())
    sound = report.check is not None and not report.check.mismatches()
    scene = bpy.context.scene
    bare = not settings.reduces and not settings.keys.is_sparse and not _is_stretched(scene)
    for frame, entries in by_frame.items():
        if frame != int(frame) or not (sound and bare and plain):
            continue
        scene.frame_set(int(frame))
        if all(entry.influence == 1.0 for entry in entries) and len(entries) == len(rows):
            found += [words for bone in limited if (words := _limit_broken(bone, frame))]
        for entry in entries:
            found += _off_the_report(rig, rows[entry.constraint], entry)
        if found:
            break
    return found[:3]


def _chain(rig: Any, row: Any) -> list[Any]:
    """The bones that a constraint may turn."""
    bone, found = rig.pose.bones.get(row.tip), []
    while bone is not None and (row.chain_length == 0 or len(found) < row.chain_length):
        found.append(bone)
        bone = bone.parent
    free = [each for each in found if each.ccd_rig.stiffness < 1.0 and each.ccd_rig.max_step > 0.0]
    # One that is locked stays where the action has it.
    return [each for each in free if not all(each.lock_rotation)]


def _is_stretched(scene: Any) -> bool:
    return bool(scene.render.frame_map_old != scene.render.frame_map_new)


def _is_limited(rig: Any, bone: Any, keyed: set[str]) -> bool:
    """Whether a bone has a limit and a rotation that is keyed, and nothing else drives it."""
    driven = rig.animation_data is not None and any(
        d.data_path.startswith(bone.path_from_id()) for d in rig.animation_data.drivers
    )
    rotated = any(f"{bone.path_from_id()}.{name}" in keyed for name in contents.CHANNELS[1:4])
    return bone.ccd_rig.limit.kind != "NONE" and rotated and not driven


def _limit_broken(bone: Any, frame: float) -> str:
    off = _outside(bone.ccd_rig.limit, _rotation(bone)[:])
    if off <= ANGLE:
        return ""
    return f"frame {frame}: '{bone.name}' ({bone.ccd_rig.limit.kind}) is outside its limit by {off:.2g}"


def _rotation(bone: Any) -> Quaternion:
    """What the bone's rotation channel says."""
    if bone.rotation_mode == "QUATERNION":
        return bone.rotation_quaternion.normalized()
    if bone.rotation_mode == "AXIS_ANGLE":
        angle, *axis = bone.rotation_axis_angle
        return Quaternion(Vector(axis), angle)
    return Euler(bone.rotation_euler, bone.rotation_mode).to_quaternion()


def _outside(limit: Any, rotation: Any) -> float:
    kind = limit.kind
    if kind == "HINGE":
        return angles.hinge(rotation, limit.axis, limit.hinge_lower, limit.hinge_upper)
    if kind == "EULER":
        return angles.euler(rotation, limit.euler_order, limit.euler_lower, limit.euler_upper)
    off = 0.0
    if kind == "TWIST" or limit.use_twist:
        off = angles.twist_range(rotation, limit.twist_lower, limit.twist_upper)
    if kind == "CONE":
        off = max(off, angles.cone(rotation, limit.cone_radius))
    if kind == "ELLIPSE":
        sides = (limit.x_lower, limit.x_upper, limit.z_lower, limit.z_upper)
        off = max(off, angles.ellipse(rotation, sides))
    return off


def _off_the_report(rig: Any, row: Any, entry: Any) -> list[str]:
    """A distance that the report tells otherwise than Blender shows it."""
    odd = any(row.offset) or any(row.effector_offset) or row.target is None
    if row.kind != "REACH" or not row.use_position or entry.influence != 1.0 or odd:
        return []
    depsgraph = bpy.context.evaluated_depsgraph_get()
    seen, target = rig.evaluated_get(depsgraph), row.target.evaluated_get(depsgraph)
    bone = seen.pose.bones[row.tip]
    end = seen.matrix_world @ (bone.tail if row.use_tail else bone.head)
    goal = target.matrix_world.translation
    if row.target_bone:
        goal = target.matrix_world @ target.pose.bones[row.target_bone].head
    distance = (end - goal).length
    size = (
        end.length
        + goal.length
        + max(abs(x) for x in seen.matrix_world.to_scale()) * sum(each.bone.length for each in rig.pose.bones)
    )
    if abs(distance - entry.keyed_residual) > 1e-4 + 1e-4 * size:
        told = entry.keyed_residual
        return [f"frame {entry.frame}: '{row.name}' is {distance:.5g} off, the report says {told:.5g}"]
    return []


def _there_and_back(before: Any, after: Any) -> list[str]:
    """Undo and redo."""
    found = []
    bpy.ops.ed.undo()
    words = contents.changed(before, contents.content())
    if words:
        found.append(f"after undo: {words[:3]}")
    bpy.ops.ed.redo()
    words = contents.changed(after, contents.content())
    if words:
        found.append(f"after redo: {words[:3]}")
    return found


def _opened_again(action: str) -> list[str]:
    """Saved and opened."""
    keys = contents.action_content(bpy.data.actions[action])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.blend")
        bpy.ops.wm.save_as_mainfile(filepath=path)
        bpy.ops.wm.open_mainfile(filepath=path)
    again = contents.action_content(bpy.data.actions[action]) if action in bpy.data.actions else None
    return [] if repr(again) == repr(keys) else ["opened again, keys differ"]
