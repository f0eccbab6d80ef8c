# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames as they play: what Blender shows, whatever brings it about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import bpy
import numpy as np
from numpy.typing import NDArray

from ..properties.constraint_values import Constraint
from .evaluated_rig import indices_of, influence_reader, own_bones, place_reader
from .isolation import SharedScene, shared_scene
from .targets import TargetSample, objects_of, sample_target, sampled_paths, sampled_sources


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
    """Like `evaluation.frames`; the function it gives shows a frame as it plays, with targets if its second
    argument says so, and with influences if its third one does."""
    indices = indices_of(armature_object, constraints)
    sources = sampled_sources(armature_object, constraints, indices)
    things = [*own_bones(armature_object, constraints), *objects_of(sources)]
    bones = len(armature_object.pose.bones)
    influences_at = influence_reader(armature_object, constraints, indices)
    place = place_reader()
    with ExitStack() as stack:
        aside = shared or stack.enter_context(shared_scene(scene))
        aside.refer(armature_object, things, sampled_paths(sources))

        def look(
            depsgraph: bpy.types.Depsgraph, frame: float, with_targets: bool, with_influences: bool
        ) -> PlayedFrame:
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

        yield stack.enter_context(aside.reading(armature_object, look))
