"""Whole set-ups in Blender: made at random, baked, checked, undone, redone, and played by another process.

What is refused changes nothing. What is baked changes nothing else, keeps limits as `angles` understands
them, plays as its report says (see `played`), and comes back after undo and redo.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import bpy
from installed import PACKAGE, package_file  # of tests/blender
from mathutils import Vector

from devtools.fuzz import Outcome, angles, contents, played, setups

LONGEST_WORDS = 600


def prepare() -> None:
    """Install the extension as users do."""
    bpy.ops.extensions.package_install_files(
        filepath=str(package_file()), repo="user_default", enable_on_install=True
    )
    bpy.context.preferences.filepaths.use_scripts_auto_execute = True


def run(seed: int) -> Outcome:
    """Try a set-up of any kind."""
    return _run(seed, setups.ANY)


def run_influences(seed: int) -> Outcome:
    """Try influences and priorities of constraints that share bones."""
    return _run(seed, setups.INFLUENCES)


def run_bases(seed: int) -> Outcome:
    """Try base poses outside limits, and a second bake over the first."""
    return _run(seed, setups.BASES)


def _run(seed: int, draw: setups.Draw) -> Outcome:
    """Make a set-up, bake it, and judge."""
    outcome, rng = Outcome(), random.Random(seed)
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = setups.make(rng, draw)
    _check(rig, outcome)
    bake = import_module(f"{PACKAGE}.ccd_rig.blender.bake.bake")
    for number in range(draw.bakes):
        settings = bake.BakeSettings(**setups.options(rng, bake, draw))
        faults = _baked(bpy.context.object, settings, outcome, draw)
        outcome.faults += [f"bake {number + 1}: {each}" if number else each for each in faults]
        if faults or outcome.kind == "refused":
            break
    return outcome


def _baked(rig: Any, settings: Any, outcome: Outcome, draw: setups.Draw) -> list[str]:
    """Return the faults of a bake."""
    bake = import_module(f"{PACKAGE}.ccd_rig.blender.bake.bake")
    errors = import_module(f"{PACKAGE}.ccd_rig.errors")
    scene = bpy.context.scene
    here, bases = scene.frame_current, {}
    if draw.is_animated:
        bases = {frame: _base_at(rig, frame) for frame in range(settings.frame_start, setups.LAST + 1)}
        scene.frame_set(here)
    bpy.ops.ed.undo_push(message="before")
    rig = bpy.context.object
    before, held = contents.content(), list(_held_outside(rig))
    try:
        report = bake.bake(scene, rig, settings)
    except errors.CCDRigError as error:
        outcome.kind = "refused"
        outcome.note(str(error))
        words = contents.changed(before, contents.content())
        faults = [f"refused ({str(error)[:80]}), but changed: {words[:3]}"] if words else []
        return faults + (
            [f"a refusal of {len(str(error))} letters"] if len(str(error)) > LONGEST_WORDS else []
        )
    outcome.kind = f"baked, {settings.destination.name.lower().replace('_', ' ')}"
    after = contents.content()
    outcome.note(sorted(contents.action_content(bpy.data.actions[report.action]).items(), key=repr))
    faults = _changed_beside(rig, report, settings, before, after) + _written(report)
    for name in held if draw.is_animated else ():
        if not any(f"'{name}'" in words for words in report.warnings):
            faults.append(f"'{name}' is locked outside its limit, and nothing says so")
    bpy.ops.ed.undo_push(message="after")
    faults += _there_and_back(before, after)
    return faults + _played(bpy.context.object, report, settings, bases, draw)


def _held_outside(rig: Any) -> Iterator[str]:
    """Bones of chains that cannot turn, and stand outside their limits."""
    chains = {name for row in rig.ccd_rig.constraints for name in _row(rig, row)["chain"]}
    for bone in rig.pose.bones:
        is_held = bone.name in chains and bone.ccd_rig.limit.kind != "NONE" and not _is_free(bone)
        if is_held and angles.outside(_limit(bone), played.rotation_of(bone)) > played.TURN:
            yield bone.name


def _base_at(rig: Any, frame: int) -> dict[str, list[float]]:
    """Rotations of all bones before a bake, at a frame."""
    bpy.context.scene.frame_set(frame)
    return {bone.name: list(played.rotation_of(bone)) for bone in rig.pose.bones}


def _check(rig: Any, outcome: Outcome) -> None:
    """The checks of the panel."""
    checks = import_module(f"{PACKAGE}.ccd_rig.blender.checks")
    for problem in checks.problems(rig, bpy.context.scene):
        outcome.note(problem.message)
        if len(problem.message) > LONGEST_WORDS:
            outcome.faults.append(f"a problem of {len(problem.message)} letters")


def _changed_beside(rig: Any, report: Any, settings: Any, before: Any, after: Any) -> list[str]:
    """Return changes outside a bake's destination."""
    where = f"object {rig.name}"
    own = {f"action {report.action}", f"{where} action", f"{where} strips"}
    keyed = {path for _, path, _ in after.get(f"action {report.action}", {})}
    shared = {
        f"object {thing.name}"
        for thing in bpy.data.objects
        if thing.animation_data is not None and thing.animation_data.action is not None
    }
    faults = []
    for key in contents.changed(before, after):
        if key in own or (key.startswith("action ") and key not in before):
            continue
        if " channel " in key:  # what is keyed shows the keys at once, also of others with that action
            bone, _, channel = key.partition(" bone ")[2].rpartition(" channel ")
            path = f"{rig.pose.bones[bone].path_from_id()}.{channel}" if bone in rig.pose.bones else ""
            if key.partition(" bone ")[0] in {where, *shared} and path in keyed:
                continue
        faults.append(f"changed beside: {key}")
    if settings.destination.name != "CURRENT_ACTION":
        return faults[:3]
    old, new = (state.get(f"action {report.action}") for state in (before, after))
    bones = {bone.path_from_id() for bone in rig.pose.bones}
    for curve, keys in (old or {}).items():
        is_bone = curve[1].rpartition(".")[0] in bones
        if not is_bone and (new or {}).get(curve) != keys and "ccd_rig" not in curve[1]:
            faults.append(f"changed beside: F-curve {curve}")
    return faults[:3]


def _written(report: Any) -> list[str]:
    """The report as text."""
    with tempfile.TemporaryDirectory() as folder:
        module = import_module(f"{PACKAGE}.ccd_rig.blender.bake.report")
        module.save(report, Path(folder) / "report.json")
    return [] if len(report.summary()) < LONGEST_WORDS else ["a summary that is too long"]


def _played(rig: Any, report: Any, settings: Any, bases: dict[int, Any], draw: setups.Draw) -> list[str]:
    """Check the playback in another process against limits and the report."""
    plan = _plan(rig, report, settings, bases, draw)
    with tempfile.TemporaryDirectory() as folder:
        plan["file"] = os.path.join(folder, "file.blend")
        bpy.ops.wm.save_as_mainfile(filepath=plan["file"], copy=True)
        return played.ask(plan)


def _plan(rig: Any, report: Any, settings: Any, bases: dict[int, Any], draw: setups.Draw) -> dict[str, Any]:
    """Return the plan for `played.judge`."""
    rows = {row.name: _row(rig, row) for row in rig.ccd_rig.constraints}
    keyed = {path for _, path, _ in contents.action_content(bpy.data.actions[report.action])}
    planted = {bone for row in rows.values() if row["kind"] == "PLANT" for bone in row["chain"]}
    limits = {bone.name: _limit(bone) for bone in rig.pose.bones if _is_limited(rig, bone, keyed, planted)}
    free = {bone.name for bone in rig.pose.bones if _is_free(bone)}
    told = report.check is not None and not report.check.mismatches()
    # No limit holds a body that follows planted bones, or keeps its animation.
    bodies = {row["chain"][-1] for row in rows.values() if row["kind"] == "PLANT" and row["chain"]}
    bare = not settings.reduces and not settings.keys.is_sparse and not _is_stretched(bpy.context.scene)
    by_frame: dict[float, list[Any]] = {}
    for entry in report.entries if told and bare else ():
        by_frame.setdefault(entry.frame, []).append(entry)
    frames = []
    for frame, entries in by_frame.items():
        if frame != int(frame):
            continue
        influences: dict[str, float] = {}
        for entry in entries:
            for bone in rows[entry.constraint]["chain"]:
                influences[bone] = max(influences.get(bone, 0.0), entry.influence)
        base = bases.get(int(frame), {})
        limited = [
            bone
            for bone in limits.keys() & influences.keys() & free - bodies
            if influences[bone] >= 1.0 or (base and angles.outside(limits[bone], base[bone]) == 0.0)
        ]
        chains = [{*rows[entry.constraint]["chain"]} for entry in entries]
        told_of = [
            {
                "row": entry.constraint,
                "keyed_residual": entry.keyed_residual,
                "keyed_angle": entry.keyed_angle,
                "influence": entry.influence,
                "reached": entry.status == "CONVERGED",
                "alone": bool(base) and _is_alone(rows[entry.constraint], chains, limits),
            }
            for entry in entries
            if rows[entry.constraint]["target"] and rows[entry.constraint]["kind"] != "PLANT"
        ]
        frames.append({"frame": int(frame), "limited": sorted(limited), "entries": told_of, "base": base})
    return {
        "rig": rig.name,
        "rows": rows,
        "limits": limits,
        "tolerance": (report.tolerance, report.angle_tolerance),
        "tells_angles": not draw.odd or _is_rigid(rig),
        "frames": frames,
    }


def _is_rigid(rig: Any) -> bool:
    """Whether no bone, target or object is scaled or sheared: rotations are then beyond doubt."""
    targets = [row.target for row in rig.ccd_rig.constraints if row.target is not None]
    for action in bpy.data.actions:
        if any(path.endswith("scale") for _, path, _ in contents.action_content(action)):
            return False
    driven = rig.animation_data is not None and any(
        each.data_path.endswith("scale") for each in rig.animation_data.drivers
    )
    plain = all(bone.scale == Vector((1.0, 1.0, 1.0)) for bone in rig.pose.bones)
    return plain and not driven and all(map(_is_upright, (rig, *targets)))


def _is_upright(thing: Any) -> bool:
    """Whether the axes of an object are at right angles, equally long, and not mirrored."""
    axes = thing.matrix_world.to_3x3()
    size = axes.col[0].length
    square = axes @ axes.transposed()
    even = all(
        abs(square[i][k] - (size * size if i == k else 0.0)) <= 1e-5 * size * size
        for i in range(3)
        for k in range(3)
    )
    return size > 0.0 and even and axes.determinant() > 0.0


def _is_alone(row: dict[str, Any], chains: list[set[str]], limits: dict[str, Any]) -> bool:
    """Whether what plays tells full influence: no other row moves the chain, and no limit holds it."""
    others = list(chains)
    others.remove({*row["chain"]})
    plain = row["kind"] == "REACH" and limits.keys().isdisjoint(row["chain"])
    return plain and all(other.isdisjoint(row["above"]) for other in others)


def _row(rig: Any, row: Any) -> dict[str, Any]:
    """Return a row as values."""
    above, bone = [], rig.pose.bones.get(row.tip)
    while bone is not None:
        above.append(bone.name)
        bone = bone.parent
    is_balance = row.kind == "BALANCE"
    heavy = [each for each in rig.pose.bones if each.ccd_rig.mass > 0.0]
    return {
        "kind": row.kind,
        "tip": row.tip,
        "above": above,
        "chain": above[: row.chain_length or None],
        "use_tail": row.use_tail,
        "effector_offset": row.effector_offset[:],
        "target": row.target.name if row.target else "",
        "target_bone": row.target_bone,
        "offset": row.offset[:],
        "axes": row.balance_axes[:] if is_balance else (row.use_position,) * 3,
        "rotation": "NONE" if is_balance else row.rotation,
        "rotation_bone": row.rotation_bone,
        "bone_axis": row.bone_axis,
        "target_axis": row.target_axis,
        "pole": row.pole_target is not None,
        "length": sum(each.bone.length for each in rig.pose.bones),
        "masses": {each.name: each.ccd_rig.mass for each in heavy},
        "middles": {each.name: _middle(each)[:] for each in heavy},
    }


def _middle(bone: Any) -> Vector:
    """Where the mass of a pose bone sits, in its frame at rest, as its tooltip says."""
    rest, parent = bone.bone, bone.bone.parent
    end, heads = rest.tail_local, [child.head_local for child in rest.children]
    if tails_say_nothing(bone.id_data.data):
        if heads:
            end = sum(heads, Vector()) / len(heads)
        elif parent is not None:
            way = rest.head_local - parent.head_local
            end = rest.head_local + way * min(1.0, rest.length / way.length if way.length > 0.0 else 0.0)
    return rest.matrix_local.inverted() @ ((rest.head_local + end) / 2.0)


def tails_say_nothing(armature: Any) -> bool:
    """Whether children of fewer than half of the bones that have some begin at the tail."""
    gaps = [
        min((child.head_local - bone.tail_local).length for child in bone.children) / bone.length
        for bone in armature.bones
        if bone.children
    ]
    return sum(gap <= 0.01 for gap in gaps) < len(gaps) / 2


def _is_free(bone: Any) -> bool:
    """Whether a bone can turn; one that is locked stays where the action has it."""
    return bone.ccd_rig.stiffness < 1.0 and bone.ccd_rig.max_step > 0.0 and not all(bone.lock_rotation)


def _is_stretched(scene: Any) -> bool:
    return bool(scene.render.frame_map_old != scene.render.frame_map_new)


def _is_limited(rig: Any, bone: Any, keyed: set[str], planted: set[str]) -> bool:
    """Whether a bone has a limit, it is keyed or of a planted leg, and nothing else drives it."""
    driven = rig.animation_data is not None and any(
        d.data_path.startswith(bone.path_from_id()) for d in rig.animation_data.drivers
    )
    rotated = any(f"{bone.path_from_id()}.{name}" in keyed for name in contents.CHANNELS[1:4])
    rotated |= bone.name in planted
    return bone.ccd_rig.limit.kind != "NONE" and rotated and not driven


def _limit(bone: Any) -> dict[str, Any]:
    limit = bone.ccd_rig.limit
    values = {name: getattr(limit, name) for name in type(limit).__annotations__}
    return {name: value[:] if hasattr(value, "__len__") else value for name, value in values.items()}


def _there_and_back(before: Any, after: Any) -> list[str]:
    """Undo and redo."""
    faults = []
    bpy.ops.ed.undo()
    words = contents.changed(before, contents.content())
    if words:
        faults.append(f"after undo: {words[:3]}")
    bpy.ops.ed.redo()
    words = contents.changed(after, contents.content())
    if words:
        faults.append(f"after redo: {words[:3]}")
    return faults
