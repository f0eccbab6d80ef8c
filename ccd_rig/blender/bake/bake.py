# SPDX-License-Identifier: GPL-3.0-or-later
"""A bake: sample, solve, slerp, blend, write all keys at once, play them back and measure."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import bpy
import numpy as np

from ...errors import CCDRigError, RigError
from ...kernel import why_plain
from ...maths.batch import Array
from ...settings import SolverSettings
from ...solvers.stepping import Items
from .. import checks
from ..checks import Ready
from ..keys.destination import Destination
from ..keys.writer import ChannelKeys, repeated_bones
from ..properties import pose_library, renamed_bones, solver_settings, stored_poses
from ..rig import clamps
from ..scene.evaluation import is_visible, metres_per_unit
from ..scene.ground import require_ground
from ..scene.isolation import SharedScene
from ..solve.methods import FrameSolveSettings
from . import body_motion, frame_selection, shot, start, switches
from .bake_frames import BakeFrames, Relative
from .findings import end_jumps, in_order, measured_report, planting
from .keyed_motion import keyed_joints, keyed_motion
from .keying import keys_of, nothing_to_key, reduce_steps, write_keys
from .playback import check_steps, play_steps
from .progress import Clock, Progress, Steps, paced, run
from .report import BakeReport
from .settings import BakeSettings, Keys, Start
from .single_frame import overruled, solve_current
from .staleness import present_state, store_report
from .start import start_poses

__all__ = [
    "BakeSettings",
    "Destination",
    "Keys",
    "Progress",
    "Start",
    "bake",
    "bake_steps",
    "overruled",
    "solve_current",
]


PER_BONE_STAGES = ("prepared", "keyed", "measured")
"""Stages that iterate over constraints and bones, not over frames."""


def bake(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    settings: BakeSettings,
    progress: Callable[[Progress], None] | None = None,
) -> BakeReport:
    """Solve the constraints over a range of frames and key the result.

    Args:
        scene: where targets and armature are evaluated; its frame and everything in it stay as they are.
        progress: called after each frame to solve, and after longer work on many; may raise to cancel.

    Raises:
        CCDRigError: the set-up cannot be baked, or nothing would be keyed. Nothing has changed then.
    """
    return run(bake_steps(scene, armature_object, settings, can_change=progress is not None), progress)


def bake_steps(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    settings: BakeSettings,
    solved: shot.SolvedElsewhere | None = None,
    can_change: bool = True,
) -> Steps[BakeReport]:
    """Like `bake`, as a generator: yields after each frame to solve, and after longer work on many.

    The set-up is checked first. Keys are written once all frames are solved, then played back and measured.
    Close the generator to cancel: everything written so far is taken back. The live preview is off meanwhile.

    Args:
        scene, armature_object, settings: as of `bake`.
        solved: gives the solutions of `solve_steps` from another process, in place of solving.
        can_change: whether the file may be edited between two items.

    Raises:
        CCDRigError: as `bake`, or what `solved` raises. Nothing has changed then.
    """
    with clamps.suspended():
        return (yield from bake_in_shared_scene(scene, armature_object, settings, None, solved, can_change))


def solve_steps(
    scene: bpy.types.Scene, armature_object: bpy.types.Object, settings: BakeSettings
) -> Steps[BakeFrames]:
    """The first half of `bake_steps`: all frames evaluated and solved, and nothing written.

    Raises:
        CCDRigError: as `bake`.
    """
    require_there(scene, armature_object)
    renamed_bones.follow(armature_object)
    with clamps.suspended():
        task = yield from _prepared(scene, armature_object, settings)
        # Only the whole shot can tell whether a motion was baked before.
        return (yield from shot.solve(task._replace(is_rebake=False)))


def bake_in_shared_scene(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    settings: BakeSettings,
    shared: SharedScene | None,
    solved: shot.SolvedElsewhere | None = None,
    can_change: bool = True,
) -> Steps[BakeReport]:
    """Like `bake_steps` for one of several rigs, which `shared` evaluates; None for a bake alone.

    After the item with `is_last`, nothing can fail.
    """
    require_there(scene, armature_object)
    renamed_bones.follow(armature_object)
    before, addresses = _names(scene, armature_object), _addresses(armature_object)
    changed = f"{before[1]} was changed while it was baked: bake once more"
    preparing = _prepared(scene, armature_object, settings, shared, solved, can_change)
    try:
        with (
            contextlib.ExitStack() as undo,
            contextlib.closing(_written(preparing, undo)) as steps,
        ):
            items = Items(steps)
            for item in items:
                yield item
                # An iterator over constraints or bones must not meet a freed one.
                if item.verb in PER_BONE_STAGES and _addresses(armature_object) != addresses:
                    raise RigError(changed)
            yield Progress(settings.frame_end, 1, 1, "done", is_last=True)
            undo.pop_all()
        return items.result
    except CCDRigError:
        raise
    except Exception as error:  # a script, undo or another file changed the data: not a bug
        if isinstance(error, ReferenceError) or _names(scene, armature_object) != before:
            raise RigError(changed) from error
        raise


def require_there(scene: bpy.types.Scene, *armature_objects: bpy.types.Object) -> None:
    """Raises RigError if the scene or an armature object was removed since it was chosen."""
    try:
        _ = scene.name, [(each.name, each.pose.bones) for each in armature_objects]
    except (ReferenceError, AttributeError):
        raise RigError(
            "The armature or the scene to bake is not in the file any more: choose one that is there"
        ) from None


def _names(scene: bpy.types.Scene, armature_object: bpy.types.Object) -> tuple[object, ...]:
    """Names by which the bake looks up its data; empty where the data is gone."""
    try:
        rows = [
            (row.name, row.tip, *(each and each.name for each in (row.target, row.pole_target)))
            for row in armature_object.ccd_rig.constraints
        ]
        where = f"Armature '{armature_object.name}'"
        return scene.name, where, tuple(armature_object.pose.bones.keys()), tuple(rows)
    except (ReferenceError, AttributeError):
        return "", "The armature"


def _addresses(armature_object: bpy.types.Object) -> list[tuple[int, ...]]:
    """Counts and addresses of constraints and bones: another value once one is added or removed."""
    lists = armature_object.ccd_rig.constraints, armature_object.pose.bones
    return [(len(each), each[0].as_pointer(), each[-1].as_pointer()) for each in lists if len(each)]


def _written(preparing: Steps[shot.Task], undo: contextlib.ExitStack) -> Steps[BakeReport]:
    """Sample, solve, write, measure and check; `undo` gets the callbacks that take everything back."""
    task = yield from preparing
    scene, armature_object, ready, settings, clock = *task[:4], Clock()
    bake_frames = yield from clock.run(shot.solve(task))
    started = time.perf_counter()
    motion = keyed_motion(bake_frames)
    clock.seconds += time.perf_counter() - started
    if not keyed_joints(motion.bake_frames):
        raise RigError(nothing_to_key(motion.bake_frames, settings))

    keying = _begun(settings)._replace(frame=settings.frame_end, verb="keyed")
    making = keys_of(task, motion.bake_frames, motion.keyed)
    keys = yield from clock.run(paced(making, keying))
    keys_before = sum(len(each.frames) for each in keys)
    if settings.reduces:
        reducing = reduce_steps(task, motion.bake_frames, motion.keyed, keys)
        keys, reduced = yield from clock.run(reducing)
        motion = motion._replace(keyed=reduced)
    plays = switches.switch_plays(scene, armature_object, {each.group for each in keys}, settings)
    to_fk = switches.fk_keys(scene, armature_object, plays, settings)
    writing = write_keys(task, keys, to_fk, undo)
    action = yield from clock.run(paced(writing, keying))
    start.store(action, start.SETTINGS, task.fingerprint, undo)
    if ready.body is not None:
        if not ready.body.keeps:  # keys of this bone come from planted bones
            followed = stored_poses.followed(action)
            bones = [*followed, *{ready.body.bone}.difference(followed)]
            start.store(action, stored_poses.FOLLOWED, bones, undo)
        helps = ready.body.bone if motion.bake_frames.helped else ""
        start.note_helped(action, armature_object, helps, undo)

    measuring = keying._replace(verb="measured")
    times: Array = np.zeros(0)  # of playback
    places, ends, checking = dict[int, Array](), list[tuple[int, Relative, Relative]](), Clock()
    is_whole = settings.verify or bool(planting(motion.bake_frames))
    beside = settings.frame_start - 1, settings.frame_end + 1
    if is_whole or any(is_visible(scene, frame) for frame in beside):
        playing = play_steps(task, motion.bake_frames, is_whole)
        played = yield from (checking if settings.verify else clock).run(playing)
        times, places, ends = played.shown.frames, played.planted, [*played.ends()]
    outcome = measured_report(task, motion, action.name, times, places)
    report = yield from clock.run(paced(outcome, measuring))
    started = time.perf_counter()
    findings = (*report.findings, *(jump for each in ends for jump in end_jumps(motion, *each)))
    clock.seconds += time.perf_counter() - started
    if settings.verify:
        check, in_playback = yield from checking.run(check_steps(task, motion, played))
        report = replace(report, check=replace(check, seconds=checking.seconds))
        findings += in_playback
    shown_in_ik = switches.in_ik(armature_object, plays, to_fk, ready.constraints)
    report = replace(
        report,
        findings=(*shown_in_ik, *in_order(findings, ready.constraints)),
        seconds=clock.seconds,
        keys=sum(len(each.frames) for each in keys),
        keys_before=keys_before,
        warnings=(
            *(problem.message for problem in ready.warnings),
            *switches.refusals(plays, settings),
            *_repeated(armature_object, keys, settings.destination),
            *filter(None, [why_plain()]),
        ),
        switched_to_fk=tuple(each.group for each in to_fk),
    ).scaled(metres_per_unit(scene))
    keyed_bones = [ready.layout.names[j] for j in keyed_joints(motion.bake_frames)]
    renamed_bones.note(armature_object, keyed_bones, undo)
    yield from paced(store_report(armature_object, report, undo), measuring)
    return report


def _repeated(
    armature_object: bpy.types.Object, keys: Sequence[ChannelKeys], destination: Destination
) -> Iterator[str]:
    """Yield a warning if the modifier Cycles repeats baked frames."""
    if destination is Destination.NLA_STRIP:  # the strip has F-curves without modifiers
        return
    bones = repeated_bones(armature_object, [(each.group, each.channel) for each in keys])
    if bones:
        more = f" and {len(bones) - 1} more" if len(bones) > 1 else ""
        yield f"Bone '{bones[0]}'{more}: the modifier Cycles repeats what is baked in every turn"


def _begun(settings: BakeSettings) -> Progress:
    """Progress of a bake whose set-up is being checked."""
    return Progress(settings.frame_start, 0, settings.frame_end - settings.frame_start + 1, "prepared")


def _prepared(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    settings: BakeSettings,
    shared: SharedScene | None = None,
    solved: shot.SolvedElsewhere | None = None,
    can_change: bool = True,
) -> Steps[shot.Task]:
    """Check the set-up, and look up everything that the bake needs before its first frame."""
    prepared = _begun(settings)
    checking = checks.require(
        armature_object,
        scene,
        settings.constraints,
        settings.destination,
        settings.body,
        settings.body_helps,
        settings.frame_start,
    )
    ready = yield from paced(checking, prepared)
    state = present_state(armature_object) if can_change else None
    yield prepared
    if settings.ground is None:
        require_ground(scene, armature_object)  # raises now, not when the report needs it
    solver = solver_settings.solver_settings(armature_object)
    if settings.solver is not None:
        solver = replace(solver, solver=settings.solver)
    fingerprint = _fingerprint(ready, settings, solver)
    yield prepared
    poses = pose_library.entries(armature_object) if solver.restarts else ()
    key_time = frame_selection.key_time(scene)
    started = start_poses(armature_object, ready.constraints, ready.layout, settings.start, key_time)
    obstacle, is_body_free = "", True
    if ready.body is not None:
        is_body_free = body_motion.is_free(armature_object, ready.body, settings.destination)
        obstacle = body_motion.body_obstacle(armature_object, ready.body, settings.destination)
        if obstacle and ready.body.walks_on:
            raise RigError(f"Bone '{ready.body.bone}' cannot be carried along the ground: {obstacle}")
    reference = None
    if settings.start in (Start.ACTION, Start.ORIGINAL):
        reference = start.reference_from(armature_object, key_time)
    return shot.Task(
        scene,
        armature_object,
        ready,
        settings,
        FrameSolveSettings(solver, settings.error_reduction, poses, reference, settings.smoothness),
        started,
        fingerprint,
        state,
        settings.start is Start.ACTION and start.was_baked_so(armature_object, fingerprint),
        obstacle,
        is_body_free,
        shared,
        solved,
    )


def _fingerprint(ready: Ready, settings: BakeSettings, solver: SolverSettings) -> str:
    """Hash of all settings of a bake but range, destination, and influences, which may be animated."""
    made_with = replace(
        settings,
        frame_start=0,
        frame_end=0,
        destination=Destination.NEW_ACTION,
        verify=True,
        ground=None,
        switch_to_fk=True,
        solver=None,
        body="",
        body_helps=None,  # constraints hold it as `body_length`
    )
    constraints = [replace(constraint, influence=1.0) for constraint in ready.constraints]
    return start.fingerprint(made_with, solver, constraints, sorted(ready.layout.joint_settings.items()))
