# SPDX-License-Identifier: GPL-3.0-or-later
"""What the solver needs of a frame: base pose, targets and influences, as Blender evaluates them.

Frames are evaluated in a scene of their own (`isolation.py`) that is made for it and removed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import bpy
from mathutils import Matrix, Vector

from ...errors import RigError
from ...skeleton.pose import Pose
from ..properties.constraint_values import Constraint
from ..rig.armature import RigLayout, RigReading
from .dependence import require_evaluable
from .evaluated_rig import (
    InfluenceReader,
    indices_of,
    influence_reader,
    is_evaluated,
    own_bones,
    place_reader,
    pose_reader,
    rig_layout,
    world_matrix,
)
from .isolation import SharedScene, isolated_scene, set_frame, shared_scene
from .targets import (
    NOTHING_AHEAD,
    Ahead,
    ObjectRef,
    TargetSample,
    TargetSource,
    objects_of,
    sample_target,
    sampled_paths,
    sampled_sources,
    target_sources,
)

NOWHERE: Mapping[bpy.types.Object, bpy.types.Depsgraph] = MappingProxyType({})


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
    indices = indices_of(armature_object, constraints)
    sources = sampled_sources(armature_object, constraints, indices)
    things = [*own_bones(armature_object, constraints), *objects_of(sources)]
    read: Callable[[Any, float], RigReading] | None = None
    place, influences_at = place_reader(), influence_reader(armature_object, constraints, indices)
    with ExitStack() as stack:
        aside = shared or stack.enter_context(shared_scene(scene))
        aside.refer(armature_object, things, sampled_paths(sources))

        def look(depsgraph: bpy.types.Depsgraph, frame: float) -> FrameSample:
            nonlocal read
            evaluated = armature_object.evaluated_get(depsgraph)
            if read is None:
                read = pose_reader(layout or rig_layout(armature_object, evaluated, constraints))
            matrix_world, to_armature = place(evaluated, frame)
            graphs = (depsgraph, depsgraph)
            targets = tuple(
                [sample_target(evaluated, to_armature, source, graphs, frame) for source in sources]
            )
            influences, unplanted = influences_at(evaluated, frame)
            return FrameSample(frame, read(evaluated, frame), targets, influences, matrix_world, unplanted)

        evaluate = stack.enter_context(aside.reading(armature_object, look))

        def sample(frame: float) -> FrameSample:
            try:
                return evaluate(frame)
            except ReferenceError:  # something that we hold is not there any more
                raise RigError(
                    "The file was changed by undo, or another one was opened: start again"
                ) from None

        yield sample


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
    if not is_evaluated(armature_object, depsgraph):
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
    influences: InfluenceReader

    @classmethod
    def of(
        cls, armature_object: bpy.types.Object, constraints: Sequence[Constraint], layout: RigLayout
    ) -> Present:
        indices = indices_of(armature_object, constraints)
        sources = target_sources(armature_object, constraints)
        influences = influence_reader(armature_object, constraints, indices)
        return cls(armature_object, sources, pose_reader(layout), influences)

    def hidden(self, depsgraph: bpy.types.Depsgraph) -> list[tuple[bpy.types.Object, str]]:
        """Targets that a depsgraph does not keep up to date, each with the name of its bone, or none."""
        return [pair for pair in objects_of(self.sources) if not is_evaluated(pair[0], depsgraph)]

    def sample(
        self,
        depsgraph: bpy.types.Depsgraph,
        elsewhere: Mapping[bpy.types.Object, bpy.types.Depsgraph] = NOWHERE,
        ahead: Ahead = NOTHING_AHEAD,
    ) -> FrameSample:
        """The present state, with edits that have no keys yet.

        Args:
            depsgraph: an evaluated one.
            elsewhere: those that evaluate targets that are hidden.
            ahead: bones that stand elsewhere than the depsgraphs say.

        Raises:
            RigError: as the function of `frames`.
        """
        frame = depsgraph.scene.original.frame_float
        evaluated = self.armature_object.evaluated_get(depsgraph)
        matrix_world = world_matrix(evaluated, frame)
        to_armature, reading = matrix_world.inverted(), self.read(evaluated, frame)

        def graph_of(ref: ObjectRef | None) -> bpy.types.Depsgraph:
            return depsgraph if ref is None else elsewhere.get(ref.thing, depsgraph)

        targets = tuple(
            sample_target(
                evaluated,
                to_armature,
                source,
                (graph_of(source.target), graph_of(source.pole)),
                frame,
                ahead,
            )
            for source in self.sources
        )
        # Blender writes keyed and driven values back to the original, but does not evaluate the object anew
        # when a script sets a property of ours.
        influences, unplanted = self.influences(self.armature_object, frame)
        return FrameSample(frame, reading, targets, influences, matrix_world, unplanted)
