# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames as they play: what Blender shows, whatever brings it about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ...maths.batch import Array
from ..properties.constraint_values import Constraint
from .evaluation import counted, own_bones, world_matrices
from .isolation import SharedScene, shared_scene
from .targets import TargetReader, TargetRows, objects_of, sampled_paths, target_sources


class PlayedFrame(NamedTuple):
    """What Blender shows at a frame, whatever brings it about.

    Attributes:
        frame: of the scene.
        matrices: (B, 4, 4) of all pose bones, in armature space. Those of the constraints' chains, and of
            bones that carry mass for them, are of this frame.
        world: from armature space to world space.
        places: see `TargetReader.look`; empty if nobody asked.
        numbers: see `TargetReader.numbers`; empty if nobody asked.
    """

    frame: float
    matrices: NDArray[np.float32]
    world: Matrix
    places: list[float]
    numbers: list[float]


@dataclass(frozen=True)
class Playback:
    """Shows frames as they play.

    Attributes:
        play: gives a frame, with targets and influences if its second argument says so.
    """

    play: Callable[[float, bool], PlayedFrame]
    _constraints: Sequence[Constraint]
    _reader: TargetReader

    def pose(self, frame: float) -> tuple[NDArray[np.float32], Array]:
        """`PlayedFrame.matrices` at a frame, and (4, 4) from armature space to world space; errors as of
        `worlds`."""
        played = self.play(frame, False)
        return played.matrices, self.worlds([played])[0]

    def worlds(self, frames: Sequence[PlayedFrame]) -> Array:
        """(R, 4, 4) from armature space to world space.

        Raises:
            RigError: the armature object is nowhere, or flat.
        """
        numbers, worlds = [each.frame for each in frames], [each.world for each in frames]
        return world_matrices(self._reader.armature_object, numbers, worlds)

    def targets(self, frames: Sequence[PlayedFrame], worlds: Array) -> tuple[TargetRows, Array]:
        """The targets, and (R, C) influences, of R frames that were played with them.

        Raises:
            RigError: as `TargetReader.rows` and `TargetReader.influences`.
        """
        times, numbers = [each.frame for each in frames], np.array([each.numbers for each in frames])
        targets = self._reader.rows(times, worlds, np.array([each.places for each in frames]), numbers)
        influences = self._reader.influences(times, numbers)
        return targets, counted(self._reader.armature_object, self._constraints, influences)[0]


@contextmanager
def playback(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    shared: SharedScene | None = None,
) -> Iterator[Playback]:
    """Like `evaluation.frames`, of what plays."""
    reader = TargetReader(armature_object, target_sources(armature_object, constraints))
    things = [*own_bones(armature_object, constraints), *objects_of(reader.sources)]
    bones = len(armature_object.pose.bones)
    with ExitStack() as stack:
        aside = shared or stack.enter_context(shared_scene(scene))
        aside.refer(armature_object, things, sampled_paths(reader.sources))

        def look(depsgraph: bpy.types.Depsgraph, frame: float, with_targets: bool) -> PlayedFrame:
            evaluated = armature_object.evaluated_get(depsgraph)
            matrices = np.empty((bones, 4, 4), np.float32)  # column by column
            evaluated.pose.bones.foreach_get("matrix", matrices.ravel())
            places = reader.look(evaluated, depsgraph) if with_targets else []
            numbers = reader.numbers(evaluated) if with_targets else []
            world = evaluated.matrix_world.copy()
            return PlayedFrame(frame, matrices.transpose(0, 2, 1), world, places, numbers)

        yield Playback(stack.enter_context(aside.reading(armature_object, look)), constraints, reader)
