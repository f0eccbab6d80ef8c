# SPDX-License-Identifier: GPL-3.0-or-later
"""Solving of a single frame, by the same way as a bake of that frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ...errors import RigError
from ...goals import GoalError
from ...maths.batch import Array, Mask
from ...maths.rotations import angle_of
from ...settings import SolveResult, SolverSettings, SolveStatus
from ...skeleton.pose import Pose
from ...solvers.stepping import result_of
from .. import checks
from ..checks import Ready
from ..keys.destination import Destination
from ..properties import constraint_list, pose_library, renamed_bones, solver_settings, stored_poses
from ..properties.constraint_kinds import SINGLE_PASS
from ..properties.constraint_values import Constraint
from ..rig import armature, rotation_modes
from ..rig.bone_space import nearest_rotation, with_channels
from ..scene import evaluation
from ..scene.evaluation import Samples, metres_per_unit
from ..scene.ground import rig_ground
from ..solve.methods import FrameSolveSettings, SolveMemory, whole_chain
from ..solve.planting import GroundNear
from . import body_motion, frame_selection, measuring, start
from .bake_frames import BakeFrames, carry_riders
from .keyed_motion import KeyedMotion, keyed_joints, keyed_locations, keyed_motion, rotated_joints
from .keying import all_locked
from .planted_help import help_planted
from .planted_solver import PlantedSolver, ground_below
from .playback import disturbances
from .report import EASED, GAVE_WAY, MET, REACHED, two_digits
from .settings import BakeSettings
from .shot import solve_frames

TURNED_ONCE = "TURNED_ONCE"
WORDS = {
    REACHED: "Reached",
    SolveStatus.STALLED.name: "Not reached: stuck, another start may help",
    TURNED_ONCE: "Not reached: its method turns each bone once. Loop may come nearer",
    SolveStatus.OPTIMAL.name: "Not reached: out of reach or held by limits, as near as it gets",
    SolveStatus.ITERATION_LIMIT.name: "Not reached yet: more iterations may help",
    EASED: "Reached, eased short of straight",
    GAVE_WAY: "Reached, with targets that give way to the body",
}
"""By how a solve ended, or of one that meets its targets the constraint that is farthest off."""


@dataclass(frozen=True)
class SolvedFrame:
    """The solution of a frame; its errors are measured when they are first asked for."""

    motion: KeyedMotion  # of this frame alone
    solver: SolverSettings  # tolerances in world metres and radians
    iterations: int  # of the solve
    rotated: Sequence[int]  # joints whose rotation channels change
    located: Mapping[int, Sequence[float]]  # joint -> value of its location channel
    # Those that are written to the bones, each with the name of its bone.
    channels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, bake_frames: BakeFrames, solver: SolverSettings, iterations: int) -> SolvedFrame:
        """The solution of a bake of one frame.

        Raises:
            RigError: no bone of its chains can be changed.
        """
        motion = keyed_motion(bake_frames)
        bake_frames = motion.bake_frames
        joints = keyed_joints(bake_frames)
        if not joints:
            raise RigError(all_locked(bake_frames))
        locations = keyed_locations(bake_frames, motion.keyed)
        located = {j: at[0].tolist() for j, at in locations.items() if j in joints}
        return cls(motion, solver, iterations, rotated_joints(bake_frames), located)

    @cached_property
    def pose(self) -> Pose:
        """The pose of the sample's skeleton, blended by influence."""
        keyed = self.motion.keyed
        return Pose.of_arrays(keyed.rotations[0], keyed.translations[0])

    @property
    def _states(self) -> Mapping[int, str]:
        return self.motion.bake_frames.states[0]

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints with an influence above 0."""
        return tuple(self.motion.bake_frames.constraints[c] for c in sorted(self._states))

    @property
    def states(self) -> tuple[str, ...]:
        """How each of `constraints` ended, see `report.Entry.status`."""
        return tuple(self._states[c] for c in sorted(self._states))

    @cached_property
    def _misses(self) -> tuple[Array, Array, Mask]:
        """The misses of the frame, see `measuring.misses`."""
        motion = self.motion
        blended = result_of(measuring.residuals(motion.bake_frames, motion.keyed))
        return result_of(measuring.misses(motion, self.solver, blended))

    @property
    def met(self) -> frozenset[int]:
        """Places of the constraints that meet their goals."""
        lost = self._misses[2]
        return frozenset(c for c, state in self._states.items() if state in MET and not lost[0, c])

    @property
    def gave_way(self) -> frozenset[int]:
        """Places of the constraints that left their targets to help others."""
        return frozenset(c for c in self.met if self._states[c] == GAVE_WAY)

    @property
    def result(self) -> SolveResult:
        """The solve at full influence, in armature space; its errors are in the order of `constraints`.

        A constraint that others carry off its target has the error that plays.
        """
        distances, angles, lost = self._misses
        active, states, met = sorted(self._states), self._states, self.met
        ended = [
            SolveStatus.OPTIMAL if lost[0, c] else SolveStatus[states[c]] for c in active if c not in met
        ]
        scale = max(abs(each) for each in Matrix(self.motion.bake_frames.worlds[0].tolist()).to_scale())
        errors = tuple(GoalError(float(distances[0, c]) / scale, float(angles[0, c])) for c in active)
        status, full = ended[0] if ended else SolveStatus.CONVERGED, self.motion.full
        pose = Pose.of_arrays(full.rotations[0], full.translations[0])
        return SolveResult(pose, status, self.iterations, errors)

    def words(
        self, rig: bpy.types.Object, scene: bpy.types.Scene, settings: SolverSettings
    ) -> tuple[str, str]:
        """Level and words of the report, with the largest error in metres and degrees."""
        result, scale = self.result, max(abs(each) for each in rig.matrix_world.to_scale())
        is_missed = result.status is not SolveStatus.CONVERGED

        def in_tolerances(error: GoalError) -> float:
            return settings.in_tolerances(GoalError(error.distance * scale, error.angle))

        worst, constraint, state = max(
            zip(result.errors, self.constraints, self.states, strict=True),
            # Of targets that are missed, none that gives way for them is named.
            key=lambda row: (not (is_missed and row[2] in (EASED, GAVE_WAY)), in_tolerances(row[0])),
        )
        turned, name = any(error.angle > 0.0 for error in result.errors), constraint.name
        angle = f" / {two_digits(math.degrees(worst.angle))} degrees" if turned else ""
        miss = f"{two_digits(worst.distance * scale * metres_per_unit(scene))} m{angle}"
        passes = f"{result.iterations} iteration{'' if result.iterations == 1 else 's'}"
        level, ended = "WARNING", result.status.name
        if result.status is SolveStatus.CONVERGED:
            gives_way = in_tolerances(worst) > 1.0 and state in (EASED, GAVE_WAY)
            level, ended = "INFO", state if gives_way else ended
        elif result.status is SolveStatus.STALLED and constraint.method in SINGLE_PASS:
            ended = TURNED_ONCE
        return level, f"{WORDS[ended]}. {miss} off at worst ({name}), {passes}"


def settings_of(
    armature_object: bpy.types.Object,
    scene: bpy.types.Scene,
    solver: SolverSettings | None = None,
    memory: SolveMemory | None = None,
) -> FrameSolveSettings:
    """Settings for the solve of a single frame.

    Args:
        armature_object: the original object.
        scene: gives the time of keys.
        solver: position tolerance in world metres; None for the armature's own.
        memory: of solves of the same constraints with these settings.
    """
    chosen = solver or solver_settings.solver_settings(armature_object)
    poses = pose_library.entries(armature_object) if chosen.restarts else ()
    reference = start.reference_from(armature_object, frame_selection.key_time(scene))
    # The error reduction of a bake, so that both lead to equal poses.
    return FrameSolveSettings(chosen, BakeSettings.error_reduction, poses, reference, memory=memory)


def solve_sample(
    armature_object: Any,
    evaluated: Any,
    ready: Ready,
    samples: Samples,
    settings: FrameSolveSettings,
    ground_near: GroundNear,
) -> SolvedFrame:
    """Solve an evaluated frame; nothing is written.

    Args:
        armature_object: the original object.
        evaluated: the same, as targets were evaluated.
        ready: the checked constraints.
        samples: of one frame, in which a constraint has an influence above 0.
        ground_near: gives the ground of planted bones.

    Raises:
        RigError: the frame cannot be solved, or no bone of its chains can be changed.
    """
    if settings.memory is not None:
        settings.memory.begin_frame()
    based = start.before_solve(armature_object, samples, _returning(armature_object, ready, samples))
    reference = None if settings.reference is None else settings.reference(based)
    bake_frames = BakeFrames.of(based, ready.constraints, samples.frames, reference, samples)
    tracks = bake_frames.tracks
    if tracks is not None:
        root_bone = bake_frames.skeleton.joints[tracks.support_chains.root_bone].name
        shown = np.array(evaluated.pose.bones[root_bone].head)
        carry_riders(armature_object, bake_frames, samples, shown)
    if tracks is not None and any(each.on_ground for each in ready.constraints):
        tracks.ground = ground_below(armature_object, bake_frames, samples[0].matrix_world, ground_near)
        tracks.unturned = bake_frames.reference
        if tracks.unturned is None:
            joints = range(len(bake_frames.skeleton))
            tracks.unturned = start.before_solve(armature_object, samples, joints).rig.rotations
    if tracks is None:
        result_of(solve_frames(bake_frames, settings))
    else:
        result_of(PlantedSolver(settings).solve(bake_frames))
    iterations = bake_frames.iterations
    body, present = ready.body, Destination.CURRENT_ACTION
    if body is not None and body.keeps and not body_motion.body_obstacle(armature_object, body, present):
        result_of(body_motion.move_body(bake_frames, settings))
    if body is not None:
        is_free = body_motion.is_free(armature_object, body, present)
        result_of(help_planted(bake_frames, settings, is_free))
    return SolvedFrame.of(bake_frames, settings.solver, iterations)


def _returning(armature_object: bpy.types.Object, ready: Ready, samples: Samples) -> set[int]:
    """Joints that go from their pose before Solve: those that constraints in force move.

    Planted bones are held where they are now, and legs and body go with them. Where the body helps, these
    return too if all of them hold what Solve has written: then planted bones are where they were before it.
    """
    moved, planted = set[int](), set[int]()
    layout = samples.rig.layout
    in_force = np.flatnonzero(samples.influences[0] > 0.0).tolist()
    for constraint in (ready.constraints[c] for c in in_force):
        if constraint.kind.plants:
            planted.update(layout.skeleton.chain(constraint.tip, constraint.chain_length))
        else:
            moved.update(whole_chain(layout.skeleton, constraint))
    if any(constraint.body_length for constraint in ready.constraints):
        written, root_bone = stored_poses.base_values(armature_object), min(planted, default=-1)
        legs = {layout.names[j] for j in planted if not layout.skeleton.joints[j].locked or j == root_bone}
        if legs and legs <= written.keys() and "location" in written[layout.names[root_bone]]:
            return moved | planted
    return moved - planted


def solve_current(
    depsgraph: bpy.types.Depsgraph,
    armature_object: bpy.types.Object,
    names: Sequence[str] = (),
    settings: SolverSettings | None = None,
) -> SolvedFrame:
    """Solve the present state and pose the bones, without keys.

    Args:
        depsgraph: evaluated state to read.
        names: of the constraints; empty for all that are enabled.
        settings: position tolerance in world metres; None for the armature's own.

    Raises:
        CCDRigError: the set-up cannot be solved. Nothing has changed then.
    """
    renamed_bones.follow(armature_object)
    keyed = depsgraph.scene.tool_settings.use_keyframe_insert_auto
    ready = result_of(checks.require(armature_object, depsgraph.scene, names, keyed=keyed))
    frame_settings = settings_of(armature_object, depsgraph.scene, settings)
    samples = evaluation.current(depsgraph, armature_object, ready.constraints, ready.layout)
    sample = samples[0]
    if not sample.active:
        raise RigError(f"{armature_object.name}: every constraint has influence 0; raise one to solve")
    scene = depsgraph.scene
    near = partial(rig_ground, scene, armature_object, [scene.frame_float], rest=sample.matrix_world)
    seen = armature_object.evaluated_get(depsgraph)
    solved = solve_sample(armature_object, seen, ready, samples, frame_settings, near)
    pose_bones, bones = armature_object.pose.bones, sample.reading.bones
    channels = [(bones[j], rotation_modes.rotation_channel(pose_bones[bones[j]])[0]) for j in solved.rotated]
    channels += [(bones[j], "location") for j in solved.located]
    before = stored_poses.present_values(armature_object, channels)
    for bone, values in stored_poses.base_values(armature_object).items():
        before.get(bone, {}).update(values)
    armature.apply(armature_object, sample.reading, solved.pose, solved.rotated, solved.located)
    stored_poses.note(armature_object, before)
    renamed_bones.note(armature_object, before)
    return replace(solved, channels=tuple(channels))


def overruled(
    armature_object: bpy.types.Object,
    seen: Callable[[], bpy.types.Depsgraph],
    solved: SolvedFrame,
    settings: SolverSettings,
) -> Iterator[str]:
    """Yield Blender's constraints that move a chain or a balanced mass from the solved pose, in words.

    Args:
        armature_object: posed by `solve_current`.
        seen: evaluates it; called if there are constraints on bones of the chains.
        settings: tolerances in world metres and radians.
    """
    chains = [constraint_list.chain_of(armature_object, row) for row in solved.constraints]
    names = list(dict.fromkeys(bone.name for chain in chains for bone in chain))
    if any(constraint.kind.balances for constraint in solved.constraints):
        skeleton = solved.motion.bake_frames.skeleton
        heavy = [j for j, joint in enumerate(skeleton.joints) if joint.mass > 0.0]
        lines = sorted({j for k in heavy for j in skeleton.chain(k)})
        names = list(dict.fromkeys((*names, *(skeleton.joints[j].name for j in lines))))
    if next(disturbances(armature_object, names), None) is None:
        return
    shown = armature_object.evaluated_get(seen())
    scale = max(abs(each) for each in shown.matrix_world.to_scale())
    moved = []
    for name in names:
        bone = shown.pose.bones[name]
        free, end = with_channels(bone, bone.matrix_basis), Vector((0.0, bone.bone.length, 0.0))
        distance = max((bone.matrix @ at - free @ at).length for at in (Vector(), end))
        turn = nearest_rotation(free.to_3x3()).rotation_difference(nearest_rotation(bone.matrix.to_3x3()))
        if distance * scale > settings.position_tolerance or angle_of(turn) > settings.angle_tolerance:
            moved.append(name)
    yield from disturbances(armature_object, moved)
