"""The way from constraints to keys: sample, solve, slerp, blend, measure, and write once at the end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import bpy
from mathutils import Quaternion, Vector

from ...errors import RigError
from ...settings import SolveResult, SolverSettings
from ...skeleton.pose import Pose
from ..checks import setup
from ..keys.obstacles import Destination, obstacles
from ..keys.writer import BoneKeys
from ..properties import pose_library, solver_settings
from ..properties.constraint_values import Constraint
from ..rig import armature, rotation_modes
from ..scene import evaluation
from ..solve.constraint_goals import chain_joints
from ..solve.solving import ShotSolveSettings
from . import body_shift, foot_slip, frame_selection, originals, shot
from .bake_frames import BakeFrames, Motion
from .frame_solver import FrameSolver
from .keying import all_locked, keys_of, nothing_to_key, report_of, write_keys
from .playback import play_steps
from .report import BakeReport, Check
from .settings import BakeSettings, Keys, Order
from .shot import Progress
from .thinning import reduce_steps

T = TypeVar("T")

__all__ = ["BakeSettings", "Destination", "Keys", "Order", "Progress", "bake", "bake_steps", "solve_current"]


def bake(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    settings: BakeSettings,
    progress: Callable[[Progress], None] | None = None,
) -> BakeReport:
    """Solve the constraints over a range of frames and key the result.

    Args:
        scene: where targets and armature are evaluated; its frame and everything in it stay as they are.
        armature_object: carries the constraints.
        settings: what to bake.
        progress: called after each frame to solve, and after longer work on many; may raise to cancel.

    Raises:
        CCDRigError: the set-up cannot be baked, or nothing would be keyed. Nothing has changed then.
    """
    with contextlib.closing(bake_steps(scene, armature_object, settings)) as steps:
        while True:
            try:
                item = next(steps)
            except StopIteration as end:
                report: BakeReport = end.value
                return report
            if progress is not None:
                progress(item)


def bake_steps(
    scene: bpy.types.Scene, armature_object: bpy.types.Object, settings: BakeSettings
) -> Generator[Progress, None, BakeReport]:
    """Like `bake`, an item after each frame to solve, and after longer work on many.

    The set-up is checked when the first item is asked for, and everything is written after the last one.
    Close the generator to cancel: until the end all that was written is taken back.
    """
    constraints, layout, figure = setup.require(
        armature_object, scene, settings.constraints, settings.destination, settings.body
    )
    solver = solver_settings.solver_settings(armature_object)
    if settings.solver is not None:
        solver = replace(solver, solver=settings.solver)
    poses = pose_library.entries(armature_object) if solver.restarts else ()
    how = replace(
        settings,
        frame_start=0,
        frame_end=0,
        destination=Destination.NEW_ACTION,
        verify=True,
        solver=None,
        body="",
    )
    rows = [replace(row, influence=1.0) for row in constraints]  # it may be animated
    recipe = originals.fingerprint(how, solver, rows, sorted(layout.joint_settings.items()))
    again = originals.was_baked_so(armature_object, recipe) and not settings.from_original
    stays = "" if figure is None else body_shift.what_holds(armature_object, figure, settings.destination)
    task = shot.Task(constraints, layout, settings, solver, poses, again, stays)
    clock = _Clock()
    solving = shot.solve(
        scene, armature_object, task, lambda take: _refuse_obstacles(armature_object, take, settings)
    )
    take = yield from clock.run(solving)
    started = time.perf_counter()
    motion, full = take.finish()
    joints = take.keyed_joints()
    if not joints:
        raise RigError(nothing_to_key(take, settings))
    keys = keys_of(scene, armature_object, take, motion, joints, settings)
    every = sum(len(each.frames) for each in keys)
    if settings.reduces:
        clock.seconds += time.perf_counter() - started
        keys, motion = yield from clock.run(_reduce_steps(armature_object, take, motion, keys, settings))
        started = time.perf_counter()
    with contextlib.ExitStack() as undo:
        action = write_keys(scene, armature_object, keys, settings, recipe, undo)
        if figure is not None and not figure.keeps:
            originals.note_followed(action, figure.bone, undo)
        report = report_of(armature_object, action, take, motion, full, joints, settings, solver)
        report = replace(report, keys=sum(len(each.frames) for each in keys), keys_before=every)
        if figure is not None:
            report = replace(report, body=body_shift.report_of(take, figure, stays))
        report = replace(
            report, foot_slips=foot_slip.foot_slips(scene, armature_object, take, report.entries)
        )
        report = replace(report, seconds=clock.seconds + time.perf_counter() - started)
        if settings.verify:
            report = replace(
                report, check=(yield from _check_steps(scene, armature_object, take, motion, solver))
            )
        undo.pop_all()
    store_report(armature_object, report)
    return report


def _reduce_steps(
    armature_object: bpy.types.Object,
    take: BakeFrames,
    motion: Motion,
    keys: list[BoneKeys],
    settings: BakeSettings,
) -> Generator[Progress, None, tuple[list[BoneKeys], Motion]]:
    """Leave keys out; an item now and then."""
    steps = reduce_steps(armature_object, take, motion, keys, settings)
    total = len(take.frames)
    with contextlib.closing(steps):
        while True:
            try:
                done = int(total * next(steps))
            except StopIteration as end:
                kept: tuple[list[BoneKeys], Motion] = end.value
                return kept
            yield Progress(float(take.frames[min(done, total - 1)]), done, total, "reduced")


def _check_steps(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    take: BakeFrames,
    motion: Motion,
    solver: SolverSettings,
) -> Generator[Progress, None, Check]:
    """See what plays; an item per frame."""
    clock = _Clock()

    def steps() -> Generator[Progress, None, Check]:
        tolerances = (solver.position_tolerance, solver.angle_tolerance)
        looks = play_steps(scene, armature_object, take, motion, tolerances)
        with contextlib.closing(looks):
            while True:
                try:
                    frame, done, total = next(looks)
                except StopIteration as end:
                    check: Check = end.value
                    return check
                yield Progress(frame, done, total, "checked")

    check = yield from clock.run(steps())
    return replace(check, seconds=clock.seconds)


@dataclass
class _Clock:
    """Measures how long a generator itself runs, without whoever takes its items."""

    seconds: float = 0.0

    def run(self, steps: Generator[Progress, None, T]) -> Generator[Progress, None, T]:
        """The same items and the same end."""
        with contextlib.closing(steps):
            while True:
                started = time.perf_counter()
                try:
                    item = next(steps)
                except StopIteration as end:
                    value: T = end.value
                    return value
                finally:
                    self.seconds += time.perf_counter() - started
                yield item


def solve_current(
    depsgraph: bpy.types.Depsgraph,
    armature_object: bpy.types.Object,
    names: Sequence[str] = (),
    settings: SolverSettings | None = None,
) -> tuple[SolveResult, tuple[Constraint, ...]]:
    """Solve the present state and pose the bones accordingly, without keys.

    Args:
        depsgraph: evaluated state to read.
        armature_object: carries the constraints.
        names: of the constraints; empty for all that are enabled.
        settings: position tolerance in world metres; None for the armature's own.

    Returns:
        The solve at full influence, in armature space, and the constraints in the order of its errors, one
        each (the largest of their goals): those with an influence above 0.

    Raises:
        CCDRigError: the set-up cannot be solved. Nothing has changed then.
    """
    constraints, layout, figure = setup.require(armature_object, depsgraph.scene, names)
    solver = settings or solver_settings.solver_settings(armature_object)
    poses = pose_library.entries(armature_object) if solver.restarts else ()
    sample = evaluation.current(depsgraph, armature_object, constraints, layout)
    # The share of a bake, so that both pose the bones alike.
    reference = originals.reference_from(armature_object, frame_selection.key_time(depsgraph.scene))
    recipe = ShotSolveSettings(solver, BakeSettings.error_reduction, poses, reference)
    active = tuple(c for c, influence in enumerate(sample.influences) if influence > 0.0)
    if not active:
        raise RigError(f"{armature_object.name}: every constraint has influence 0; raise one to solve")
    take = BakeFrames.empty(sample, constraints, [0], [0])
    take.store(0, sample)
    frame_solver = FrameSolver(take, recipe)
    for _ in (*frame_solver.add(0, sample), *frame_solver.finish()):
        pass
    solution = frame_solver.solution(sample)
    present = Destination.CURRENT_ACTION
    if figure is not None and figure.keeps and not body_shift.what_holds(armature_object, figure, present):
        solution = body_shift.moved_solution(take, sample, recipe, solution)
    motion, _ = take.finish()
    joints = take.keyed_joints()
    if not joints:
        raise RigError(all_locked(take))
    pose = Pose(tuple(map(Quaternion, motion.rotations[0])), tuple(map(Vector, motion.translations[0])))
    located = [j for j in take.locations(motion) if j in joints]
    armature.apply(armature_object, sample.reading, pose, joints, located)
    assert solution.result is not None
    return solution.result, tuple(constraints[c] for c in solution.active)


# --- the end ------------------------------------------------------------------------------------------------


def _refuse_obstacles(armature_object: bpy.types.Object, take: BakeFrames, settings: BakeSettings) -> None:
    """Say at the start, not after a long solve, that the keys could not be written or would not play."""
    moved = sorted({j for constraint in take.constraints for j in chain_joints(take.skeleton, constraint)})
    bones = [take.skeleton.joints[j].name for j in moved]
    wanted = [(bone, rotation_modes.rotation_channel(armature_object.pose.bones[bone])[0]) for bone in bones]
    located = list(take.sliding)
    if take.tracks is not None and not take.tracks.keeps_body:
        root_bone = take.tracks.support_chains.root_bone
        pose_bone = armature_object.pose.bones[take.skeleton.joints[root_bone].name]
        wanted.append((pose_bone.name, rotation_modes.rotation_channel(pose_bone)[0]))
        located.append(root_bone)
    wanted += [(take.skeleton.joints[j].name, "location") for j in located]
    found = obstacles(armature_object, wanted, settings.destination)
    if found:
        raise RigError(found[0])


def store_report(armature_object: bpy.types.Object, report: BakeReport) -> None:
    """Keep what a bake came to, in words, for the panel."""
    group, worst = armature_object.ccd_rig.report, report.worst()
    group.words = report.summary()
    group.worst_frame = worst.frame
    group.worst_constraint = worst.constraint
    group.unsolved = report.unsolved_count()
    group.check = "" if report.check is None else report.check.words()
    group.mismatches = 0 if report.check is None else len(report.check.mismatches())
