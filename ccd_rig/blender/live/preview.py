# SPDX-License-Identifier: GPL-3.0-or-later
"""The live preview of one armature: what is known of it, and one update.

Every update solves the frame from the pose in the channels, as Solve and a bake of that frame do. While
things move, an update spends few iterations; one that is `patient` then solves with the armature's own
settings.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import bpy
import numpy as np

from ...errors import CCDRigError, RigError
from ...settings import SolverSettings
from ..bake import single_frame
from ..bake.single_frame import SolvedFrame
from ..checks import setup
from ..properties.constraint_values import Kind
from ..properties.solver_settings import solver_settings
from ..rig import clamps
from ..scene.evaluation import FrameSample, Present
from ..solve.solving import FrameSolveSettings, departed
from .following import Shown, followed_frame

ITERATIONS = (2, 8)
"""Least and most iterations of an update while things move."""
SHORT, LONG = 0.007, 0.012
"""Seconds of solving below which an update may spend one iteration more, and above which it has to spend
less."""


class SetUp(NamedTuple):
    """What an update is made with, until it changes.

    Attributes:
        ready: the constraints and their bones.
        solver: the armature's settings.
        patient: how a frame is solved at rest.
        present: reads the state of the armature.
    """

    ready: setup.Ready
    solver: SolverSettings
    patient: FrameSolveSettings
    present: Present

    @classmethod
    def of(cls, armature_object: bpy.types.Object, scene: bpy.types.Scene) -> SetUp:
        """Raises CCDRigError where the armature cannot be solved."""
        ready = setup.require(armature_object, scene)
        solver = solver_settings(armature_object)
        patient = single_frame.settings_of(armature_object, scene, solver)
        present = Present.of(armature_object, ready.constraints, ready.layout)
        return cls(ready, solver, patient, present)

    def quick(self, iterations: int) -> FrameSolveSettings:
        """How a frame is solved while things move."""
        most = min(iterations, self.solver.max_iterations)
        return replace(self.patient, solver=replace(self.solver, max_iterations=most, restarts=0), poses=())

    def plants(self) -> bool:
        """Whether bones are planted."""
        return any(constraint.kind is Kind.PLANT for constraint in self.ready.constraints)

    def has_bones(self) -> bool:
        """Whether the bones are where they were, with the same names."""
        pose_bones = self.present.armature_object.pose.bones
        count, bones = len(pose_bones), self.ready.layout.placed.bones
        return all(bone.slot < count and pose_bones[bone.slot].name == bone.name for bone in bones)

    def asks_as(self, other: SetUp) -> bool:
        """Whether both ask for the same, so that the same sample has the same solution."""
        return (
            self.ready.constraints == other.ready.constraints
            and self.ready.body == other.ready.body
            and self.ready.layout.joint_settings == other.ready.layout.joint_settings
            and self.ready.layout.placed.bones == other.ready.layout.placed.bones
            and self.solver == other.solver
            and self.patient.poses == other.patient.poses
        )


@dataclass
class Preview:
    """What is known of a live armature.

    Attributes:
        set_up: None until it is needed, and after anything may have made it invalid.
        sample: what is shown was solved for this; None: nothing is shown.
        solved: what was solved then, where the next update starts.
        iterations: of the next update, unless it is patient.
        is_settled: whether what is shown was solved patiently.
        shown: the clamps that have influence.
        has_echo: whether a patient update has changed clamps, which Blender will report as one more change.
        failure: why nothing is shown, in words; empty where something is.
    """

    set_up: SetUp | None = None
    sample: FrameSample | None = field(default=None, repr=False)
    solved: SolvedFrame | None = field(default=None, repr=False)
    shown: Collection[clamps.Place] = ()
    iterations: int = ITERATIONS[1]
    is_settled: bool = False
    has_echo: bool = False
    failure: str = ""

    def forget(self) -> None:
        """Read everything anew at the next update."""
        self.set_up = self.sample = self.solved = None
        self.is_settled = self.has_echo = False

    def note_time(self, seconds: float) -> None:
        """Choose how much the next update may spend by what this one has taken."""
        least, most = ITERATIONS
        if seconds > LONG:
            self.iterations = max(least, self.iterations // 2)
        elif seconds < SHORT:
            self.iterations = min(most, self.iterations + 1)

    @property
    def missed(self) -> frozenset[int]:
        """Places of the constraints that miss their goals in what is shown at rest; none in motion."""
        if self.sample is None or self.solved is None or not self.is_settled:
            return frozenset()
        return frozenset(self.sample.active) - self.solved.met

    def notes(self) -> tuple[str, ...]:
        """What the user should know about what is shown, a sentence each."""
        if self.failure:
            return (self.failure,)
        if self.set_up is not None and self.set_up.plants():
            return ("Planted bones are held where this frame has them; a bake holds them over frames",)
        return ()


def update(
    armature_object: bpy.types.Object, depsgraph: bpy.types.Depsgraph, preview: Preview, patient: bool
) -> bool:
    """Bring the shown pose up to date.

    Args:
        armature_object: the original object, in Pose Position and not in Edit Mode.
        depsgraph: evaluated, and of the user's scene.
        preview: what is known of the armature; it is brought up to date too.
        patient: whether things rest; the set-up is then read anew.

    Returns:
        Whether anything has changed since the update before.
    """
    try:
        return _update(armature_object, depsgraph, preview, patient)
    except ReferenceError:  # an object that we hold was deleted
        preview.forget()
        return True
    except CCDRigError as error:
        preview.forget()
        preview.failure = str(error)
        clamps.show(armature_object, {}, _places(armature_object))
        return True


def _update(
    armature_object: bpy.types.Object, depsgraph: bpy.types.Depsgraph, preview: Preview, patient: bool
) -> bool:
    if preview.failure and not patient:  # asking for the reason at each movement would cost too much
        return True
    if preview.set_up is None or patient or not preview.set_up.has_bones():
        before, preview.set_up = preview.set_up, SetUp.of(armature_object, depsgraph.scene.original)
        if before is None or not preview.set_up.asks_as(before):
            preview.sample = preview.solved = None
    set_up, preview.failure = preview.set_up, ""
    _refuse_hidden(set_up, depsgraph)
    sample = set_up.present.sample(depsgraph)
    is_same = preview.sample is not None and _is_same(sample, preview.sample)
    if is_same and (preview.is_settled or not patient):
        return False
    wanted = _clamps_of(sample, _solved(preview, set_up, sample, patient)) if sample.active else {}
    preview.sample, preview.is_settled = sample, patient
    # A copy of a bone's constraints may have brought clamps elsewhere.
    before_shown = _places(armature_object) if patient else preview.shown
    changed = clamps.show(armature_object, wanted, before_shown)
    preview.shown, preview.has_echo = wanted.keys(), changed and patient
    return True


def _solved(preview: Preview, set_up: SetUp, sample: FrameSample, patient: bool) -> SolvedFrame:
    """The frame solved: patiently as a bake does, or on from where the preview stands.

    What is as far from its base pose as it was before is near to its targets, if these have moved a little.
    """
    rig, ready, before = set_up.present.armature_object, set_up.ready, preview.sample
    goes_on = not patient and before is not None and preview.solved is not None
    if goes_on and abs(sample.frame - before.frame) <= 1.0 and not set_up.plants():
        started = time.perf_counter()
        settings = set_up.quick(preview.iterations)
        solved = followed_frame(ready, sample, settings, _shown(sample, before, preview.solved))
        preview.note_time(time.perf_counter() - started)
    else:
        settings = set_up.patient if patient else set_up.quick(ITERATIONS[1])
        solved = single_frame.solve_sample(rig, ready, sample, settings)
    preview.solved = solved
    return solved


def _shown(sample: FrameSample, before: FrameSample, solved: SolvedFrame) -> Shown:
    """Where a frame goes on from: as far from its base pose as the one that was solved before."""
    skeleton, base = sample.reading.skeleton, sample.reading.pose
    known = before.reading.pose, solved.full
    pose = departed(skeleton, base, known, base, range(len(skeleton.joints)))
    still = frozenset[int]()
    if _has_same_base(sample, before) and sample.active == before.active:
        still = frozenset(c for c in solved.met if sample.targets[c] == before.targets[c])
    return Shown(pose, solved.met, still)


def _refuse_hidden(set_up: SetUp, depsgraph: bpy.types.Depsgraph) -> None:
    """Blender does not evaluate hidden objects, and evaluating them apart would be slow."""
    hidden = {thing for thing, _ in set_up.present.hidden(depsgraph)}
    for source in set_up.present.sources if hidden else ():
        for thing, _ in source.things():
            if thing in hidden:
                raise RigError(
                    f"Constraint '{source.constraint.name}': Live does not see '{thing.name}' while it is "
                    "hidden: show it, or use Solve Pose and Bake, which do"
                )


def _clamps_of(sample: FrameSample, solved: SolvedFrame) -> dict[clamps.Place, clamps.Values]:
    """What the clamps of a solved frame hold."""
    names, single = sample.reading.bones, np.float32
    wanted: dict[clamps.Place, clamps.Values] = {
        (names[j], clamps.ROTATION): clamps.rotation_clamp(solved.pose.rotations[j]) for j in solved.rotated
    }
    for j, location in solved.located.items():
        wanted[names[j], clamps.LOCATION] = tuple(single(location).tolist())
    return wanted


def _places(armature_object: bpy.types.Object) -> list[clamps.Place]:
    """All clamps of an armature."""
    return [(bone.name, each.name) for bone, each in clamps.clamps_of(armature_object)]


def _is_same(sample: FrameSample, other: FrameSample) -> bool:
    """Whether two samples ask for the same pose."""
    return (
        _has_same_base(sample, other)
        and sample.targets == other.targets
        and sample.influences == other.influences
        and sample.unplanted == other.unplanted
    )


def _has_same_base(sample: FrameSample, other: FrameSample) -> bool:
    """Whether two samples have the same base pose at the same place."""
    is_same = sample.reading is other.reading or sample.reading == other.reading
    return is_same and sample.matrix_world == other.matrix_world
