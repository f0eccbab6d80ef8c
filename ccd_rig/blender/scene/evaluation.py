# SPDX-License-Identifier: GPL-3.0-or-later
"""What the solver needs of a frame: base pose, targets and influences, as Blender evaluates them.

Frames are evaluated in a scene of their own (`isolation.py`) that is made for it and removed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...skeleton.pose import Pose
from ..properties import constraint_list, coupled_offsets, joints
from ..properties.constraint_values import Constraint, Kind
from ..properties.joints import masses
from ..rig import armature
from ..rig.armature import RigLayout, RigReading
from .dependence import require_evaluable
from .influences import in_force, unplanted
from .isolation import SharedScene, isolated_scene, set_frame, shared_scene
from .targets import ObjectRef, TargetSample, TargetSource, objects_of, sample_target, target_sources

FLAT = 1e-8  # a length of an axis of the armature object below this cannot be inverted in float32
NOWHERE: Mapping[bpy.types.Object, bpy.types.Depsgraph] = MappingProxyType({})

_Influences = Callable[[bpy.types.Object, float], tuple[tuple[float, ...], tuple[float, ...]]]
"""Reads influences of an armature object, original or evaluated, at a frame; see `_influences`."""


class FrameSample(NamedTuple):
    """The evaluated state of one frame.

    Attributes:
        frame: scene frame, may be fractional.
        reading: the chains and their base pose.
        targets: where the targets are, armature space, one per constraint.
        influences: 0 to 1, one per constraint, as they count (`influences.in_force`).
        matrix_world: from armature space to world space.
        unplanted: influences as they would count if nothing was planted; empty where nothing ever is.
        unmoved: the base pose as it was evaluated, where that of the reading has the body moved; else None.
    """

    frame: float
    reading: RigReading
    targets: tuple[TargetSample, ...]
    influences: tuple[float, ...]
    matrix_world: Matrix
    unplanted: tuple[float, ...] = ()
    unmoved: Pose | None = None

    @property
    def active(self) -> tuple[int, ...]:
        """Indices of the constraints with an influence above 0."""
        return tuple(c for c, influence in enumerate(self.influences) if influence > 0.0)

    @property
    def target_points(self) -> tuple[Vector, ...]:
        """The points to reach, armature space, one per constraint."""
        return tuple(target.point for target in self.targets)


@contextmanager
def frames(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    layout: RigLayout | None = None,
    shared: SharedScene | None = None,
) -> Iterator[Callable[[float], FrameSample]]:
    """Within the block, the function it gives evaluates any frame, in any order.

    Channels without keys have their present values, as they would when the scene is played; keyed and driven
    ones those of the frame.

    Args:
        scene: gives frame rate, time remapping, camera and custom properties; it is not changed.
        armature_object: the original object.
        constraints: those of its list.
        layout: of their bones, if one is made already (`rig_layout`).
        shared: where other armatures are evaluated too; None: in a scene of its own.

    Raises:
        RigError: a target, a bone or a constraint is missing, or something is moved by a simulation; from the
            function: a target or the armature is nowhere at that frame, or the file is not the same any more.
    """
    require_evaluable(scene, armature_object, constraints)
    indices = _indices_of(armature_object, constraints)
    sources = target_sources(armature_object, constraints)
    things = [*_own_bones(armature_object, constraints), *objects_of(sources)]
    read: Callable[[Any, float], RigReading] | None = None
    place, influences_at = _places(), _influences(armature_object, constraints, indices)
    with ExitStack() as stack:
        aside = shared or stack.enter_context(shared_scene(scene))
        aside.refer(armature_object, things, indices)

        def evaluate(frame: float) -> FrameSample:
            nonlocal read
            depsgraph = aside.at(frame, armature_object)
            evaluated = armature_object.evaluated_get(depsgraph)
            if read is None:
                read = _reader(layout or rig_layout(armature_object, evaluated, constraints))
            matrix_world, to_armature = place(evaluated, frame)
            graphs = (depsgraph, depsgraph)
            targets = tuple(
                [sample_target(evaluated, to_armature, source, graphs, frame) for source in sources]
            )
            influences, unplanted = influences_at(evaluated, frame)
            return FrameSample(frame, read(evaluated, frame), targets, influences, matrix_world, unplanted)

        def sample(frame: float) -> FrameSample:
            try:
                return evaluate(frame)
            except ReferenceError:  # something that we hold is not there any more
                raise RigError(
                    "The file was changed by undo, or another one was opened: start again"
                ) from None

        yield sample


class PlayedFrame(NamedTuple):
    """What Blender shows at a frame, whatever brings it about.

    Attributes:
        matrices: (B, 4, 4) of all pose bones, in armature space. Those of the constraints' chains, and of
            bones that carry mass for them, are of this frame.
        world: (4, 4) from armature space to world space.
        targets: where the targets are, armature space, one per constraint; none if nobody asked.
        influences: 0 to 1, one per constraint; none if nobody asked.
    """

    matrices: NDArray[np.float32]
    world: NDArray[np.float64]
    targets: tuple[TargetSample, ...]
    influences: tuple[float, ...]


@contextmanager
def playback(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    shared: SharedScene | None = None,
) -> Iterator[Callable[[float, bool, bool], PlayedFrame]]:
    """Like `frames`; the function it gives shows a frame as it plays, with targets if its second argument
    says so, and with influences if its third one does."""
    indices = _indices_of(armature_object, constraints)
    sources = target_sources(armature_object, constraints)
    things = [*_own_bones(armature_object, constraints), *objects_of(sources)]
    bones, influences_at = len(armature_object.pose.bones), _influences(armature_object, constraints, indices)
    place = _places()
    with ExitStack() as stack:
        aside = shared or stack.enter_context(shared_scene(scene))
        aside.refer(armature_object, things, indices)

        def play(frame: float, with_targets: bool, with_influences: bool) -> PlayedFrame:
            depsgraph = aside.at(frame, armature_object)
            evaluated = armature_object.evaluated_get(depsgraph)
            matrices = np.empty((bones, 4, 4), np.float32)  # column by column
            evaluated.pose.bones.foreach_get("matrix", matrices.ravel())
            world, inverse = place(evaluated, frame)
            graphs = (depsgraph, depsgraph)
            targets = [
                sample_target(evaluated, inverse, source, graphs, frame) for source in sources if with_targets
            ]
            influences = influences_at(evaluated, frame)[0] if with_influences else ()
            placed = np.array([row[:] for row in world])
            return PlayedFrame(matrices.transpose(0, 2, 1), placed, tuple(targets), influences)

        yield play


def current(
    depsgraph: bpy.types.Depsgraph,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    layout: RigLayout | None = None,
) -> FrameSample:
    """The present state, with edits that have no keys yet.

    What is hidden has no present state, as Blender does not evaluate it: it is taken at the present frame.

    Args:
        depsgraph: an evaluated one, such as the context's.
        layout: as for `frames`.

    Raises:
        RigError: as `frames`.
    """
    scene = depsgraph.scene.original
    frame = scene.frame_float
    if not _is_evaluated(armature_object, depsgraph):
        with frames(scene, armature_object, constraints, layout) as sample:
            return sample(frame)
    require_evaluable(scene, armature_object, constraints)
    evaluated = armature_object.evaluated_get(depsgraph)
    layout = layout or rig_layout(armature_object, evaluated, constraints)
    present = Present.of(armature_object, constraints, layout)
    hidden = present.hidden(depsgraph)
    with ExitStack() as stack:
        elsewhere = depsgraph
        if hidden:
            isolated = stack.enter_context(isolated_scene(scene, armature_object, hidden, ()))
            elsewhere = set_frame(isolated, frame)
        return present.sample(depsgraph, {thing: elsewhere for thing, _ in hidden})


class Present(NamedTuple):
    """What the present state of an armature is read with, as long as its set-up stays.

    Attributes:
        armature_object: the original object.
        sources: what is looked at for each constraint.
        read: gives the chains and their pose.
        influences: gives the influences of the constraints.
    """

    armature_object: bpy.types.Object
    sources: Sequence[TargetSource]
    read: Callable[[Any, float], RigReading]
    influences: _Influences

    @classmethod
    def of(
        cls, armature_object: bpy.types.Object, constraints: Sequence[Constraint], layout: RigLayout
    ) -> Present:
        indices = _indices_of(armature_object, constraints)
        sources = target_sources(armature_object, constraints)
        influences = _influences(armature_object, constraints, indices)
        return cls(armature_object, sources, _reader(layout), influences)

    def hidden(self, depsgraph: bpy.types.Depsgraph) -> list[tuple[bpy.types.Object, str]]:
        """Targets that a depsgraph does not keep up to date, each with the name of its bone, or none."""
        return [pair for pair in objects_of(self.sources) if not _is_evaluated(pair[0], depsgraph)]

    def sample(
        self,
        depsgraph: bpy.types.Depsgraph,
        elsewhere: Mapping[bpy.types.Object, bpy.types.Depsgraph] = NOWHERE,
    ) -> FrameSample:
        """The present state, with edits that have no keys yet; `elsewhere` evaluates targets that are hidden.

        Raises:
            RigError: as the function of `frames`.
        """
        frame = depsgraph.scene.original.frame_float
        evaluated = self.armature_object.evaluated_get(depsgraph)
        matrix_world = _matrix_world(evaluated, frame)
        to_armature, reading = matrix_world.inverted(), self.read(evaluated, frame)

        def graph_of(ref: ObjectRef | None) -> bpy.types.Depsgraph:
            return depsgraph if ref is None else elsewhere.get(ref.thing, depsgraph)

        targets = tuple(
            sample_target(
                evaluated, to_armature, source, (graph_of(source.target), graph_of(source.pole)), frame
            )
            for source in self.sources
        )
        # Blender writes keyed and driven values back to the original, but does not evaluate the object anew
        # when a script sets a property of ours.
        influences, unplanted = self.influences(self.armature_object, frame)
        return FrameSample(frame, reading, targets, influences, matrix_world, unplanted)


# Reading evaluated objects --------------------------------------------------------------------------


def _indices_of(armature_object: bpy.types.Object, constraints: Sequence[Constraint]) -> tuple[int, ...]:
    """Where the constraints are in the armature's list."""
    names = [constraint.name for constraint in armature_object.ccd_rig.constraints]
    for constraint in constraints:
        if constraint.name not in names:
            where = f"Armature '{armature_object.name}'"
            raise RigError(f"{where} has no constraint '{constraint.name}': choose another one")
    return tuple(names.index(constraint.name) for constraint in constraints)


def rig_layout(
    armature_object: bpy.types.Object, seen: bpy.types.Object, constraints: Sequence[Any], fixed: str = ""
) -> RigLayout:
    """The layout of the constraints' bones.

    Args:
        armature_object: the original object, which carries the settings of joints.
        seen: itself, or an evaluated copy.
        constraints: those of its list, in either form.
        fixed: name of a bone that stays as it is, whatever chains it is in.

    Raises:
        CCDRigError: as `armature.layout`, and for settings that contradict one another.
    """
    chains = [(constraint.tip, constraint.chain_length) for constraint in constraints]
    bones = [
        bone.name for tip, length in chains for bone in constraint_list.chain(armature_object, tip, length)
    ]
    settings = joints.joint_settings(armature_object, list(dict.fromkeys(bones)))
    for name in coupled_offsets.followers(armature_object, settings):
        offsets = coupled_offsets.coupled_offsets(armature_object.pose.bones[name])
        settings[name] = {"stiffness": 1.0, "coupled_offsets": offsets}
    if fixed in settings:
        settings[fixed] = {"stiffness": 1.0, "mass": settings[fixed]["mass"]}
    balances = any(constraint.kind == Kind.BALANCE for constraint in constraints)
    return armature.layout(seen, chains, settings, masses(armature_object) if balances else None)


def _own_bones(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint]
) -> list[tuple[bpy.types.Object, str]]:
    """The ends of all that is read of the armature: what is above them is evaluated with them."""
    bones = [constraint.tip for constraint in constraints]
    if any(constraint.kind == Kind.BALANCE for constraint in constraints):
        bones += masses(armature_object)
    chains = {
        bone.name
        for constraint in constraints
        for bone in constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    }
    bones += coupled_offsets.followers(armature_object, chains)
    return [(armature_object, bone) for bone in bones]


def _is_evaluated(thing: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> bool:
    """Whether a depsgraph keeps an object up to date: hidden objects it leaves as they were."""
    return thing.evaluated_get(depsgraph).is_evaluated and thing.visible_get(view_layer=depsgraph.view_layer)


def _places() -> Callable[[bpy.types.Object, float], tuple[Matrix, Matrix]]:
    """A function that gives an armature object's matrix and its inverse; while it stays, the same ones."""
    known: list[Matrix] = []

    def read(evaluated: bpy.types.Object, frame: float) -> tuple[Matrix, Matrix]:
        if not known or evaluated.matrix_world != known[0]:
            matrix = _matrix_world(evaluated, frame)
            known[:] = matrix, matrix.inverted()
        return known[0], known[1]

    return read


def _matrix_world(evaluated: bpy.types.Object, frame: float) -> Matrix:
    """Of the armature object; it must lead back as well."""
    matrix = evaluated.matrix_world.copy()
    where = f"Armature '{evaluated.name}'"
    if not _is_finite(matrix):
        raise RigError(f"{where} has a place that is not a number at frame {frame:g}: look at its transform")
    if min(column.to_3d().length for column in matrix.col[:3]) < FLAT or matrix.determinant() == 0.0:
        raise RigError(f"{where} has a scale of 0 at frame {frame:g}: give it another scale")
    return matrix


def _influences(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], indices: Sequence[int]
) -> _Influences:
    """A function that reads the influences of constraints, those with these indices, as they count.

    It takes the armature object, original or evaluated, and the frame. Its second result is
    `FrameSample.unplanted`.
    """
    plants = any(constraint.kind is Kind.PLANT for constraint in constraints)

    def read(seen: bpy.types.Object, frame: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        listed = seen.ccd_rig.constraints
        influences = tuple([listed[index].influence for index in indices])
        if not all(map(math.isfinite, influences)):  # the property's range does not keep NaN out
            wrong = next(
                index for index, value in zip(indices, influences, strict=True) if not math.isfinite(value)
            )
            raise RigError(
                f"Constraint '{listed[wrong].name}': influence is not a number at frame {frame:g}: set it to "
                "0 to 1, and look at its keys"
            )
        if not plants:
            return influences, ()
        return in_force(armature_object, constraints, influences), unplanted(constraints, influences)

    return read


def _reader(layout: RigLayout) -> Callable[[bpy.types.Object, float], RigReading]:
    """A function that reads the pose of a frame; as long as nothing changes, it gives the same reading."""
    look = layout.watch()
    known: bytes | None = None
    reading: RigReading | None = None

    def read(evaluated: bpy.types.Object, frame: float) -> RigReading:
        nonlocal known, reading
        now, seen = look(evaluated.pose.bones)
        if reading is None or now != known:
            try:
                known, reading = now, layout.read(evaluated, seen)
            except RigError as error:  # what is wrong with a bone there is said with the frame
                raise RigError(f"frame {frame:g}: {error}") from error
        return reading

    return read


def _is_finite(matrix: Matrix) -> bool:
    return all(math.isfinite(value) for row in matrix for value in row)
