# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluated frames: base pose, targets and influences for the solver (`frames`), and playback (`playback`).

Frames are evaluated in a temporary scene (`isolation.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ...errors import RigError
from ...maths.batch import Array, cross, dot, length, stacked
from ..properties import constraint_list, joints
from ..properties.constraint_kinds import kind_of
from ..properties.constraint_values import PLANTED, Constraint, TargetSample
from ..properties.joints import masses
from ..rig import armature, clamps
from ..rig.armature import RigLayout, RigReading, RigRows
from .dependence import require_evaluable
from .isolation import SharedScene, isolated_scene, set_frame, shared_scene
from .targets import (
    NOTHING_AHEAD,
    NOWHERE,
    Ahead,
    TargetReader,
    TargetRows,
    objects_of,
    sampled_paths,
    target_sources,
)

FLAT = 1e-8  # an axis of the armature object that is shorter cannot be inverted in float32


def rig_layout(
    armature_object: bpy.types.Object, seen: bpy.types.Object, constraints: Sequence[Any], fixed: str = ""
) -> RigLayout:
    """Build the layout of the bones of constraints.

    Args:
        armature_object: the original object, which has the settings of joints.
        seen: the armature object, original or evaluated.
        constraints: of its list, stored or values.
        fixed: name of a bone that does not move, whatever chains it is in.

    Raises:
        CCDRigError: as `armature.layout`, and for contradictory settings.
    """
    chains = [(row.tip, getattr(row, "body_length", 0) or row.chain_length) for row in constraints]
    bones = [
        bone.name for tip, length in chains for bone in constraint_list.chain(armature_object, tip, length)
    ]
    settings = joints.joint_settings(armature_object, list(dict.fromkeys(bones)))
    for name in joints.followers(armature_object, settings):
        offsets = joints.coupled_offsets(armature_object.pose.bones[name])
        settings[name] = {"stiffness": 1.0, "coupled_offsets": offsets}
    posed = {bone.name for row in constraints for bone in constraint_list.chain_of(armature_object, row)}
    still = {name for row in constraints for name in getattr(row, "body_still", ())} - posed
    settings |= {name: {"stiffness": 1.0, "mass": settings[name]["mass"]} for name in still}
    if fixed in settings:
        kept = {name: settings[fixed][name] for name in ("limit", "comfort", "mass")}
        settings[fixed] = {**kept, "stiffness": 1.0}
    balances = any(kind_of(constraint).balances for constraint in constraints)
    placed = [
        bone.name
        for bone in (armature_object.pose.bones if still else ())
        if bone.name not in posed and any(clamps.acting_constraints(bone))
    ]
    return armature.layout(seen, chains, settings, masses(armature_object) if balances else None, placed)


def read_bones(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint]
) -> list[tuple[bpy.types.Object, str]]:
    """Return the bones to evaluate for constraints; their parents are evaluated with them."""
    bones = [constraint.tip for constraint in constraints]
    if any(kind_of(constraint).balances for constraint in constraints):
        bones += masses(armature_object)
    chains = {
        bone.name
        for constraint in constraints
        for bone in constraint_list.chain(
            armature_object, constraint.tip, constraint.body_length or constraint.chain_length
        )
    }
    bones += joints.followers(armature_object, chains)
    return [(armature_object, bone) for bone in bones]


def shown_range(scene: bpy.types.Scene) -> tuple[int, int]:
    """First and last frame of the preview range if it is used, else of the scene."""
    if scene.use_preview_range:
        return scene.frame_preview_start, scene.frame_preview_end
    return scene.frame_start, scene.frame_end


def is_visible(scene: bpy.types.Scene, frame: float) -> bool:
    """Whether a frame is rendered, or played in the viewport."""
    return any(a <= frame <= b for a, b in ((scene.frame_start, scene.frame_end), shown_range(scene)))


def metres_per_unit(scene: bpy.types.Scene) -> float:
    """Metres of a Blender unit, by the scene's Unit Scale; 1 without a system of units."""
    units = scene.unit_settings
    return 1.0 if units.system == "NONE" else units.scale_length


def is_evaluated(obj: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> bool:
    """Whether a depsgraph keeps an object up to date: it does not evaluate hidden objects."""
    return obj.evaluated_get(depsgraph).is_evaluated and obj.visible_get(view_layer=depsgraph.view_layer)


def world_matrices(
    armature_object: bpy.types.Object, frames: Sequence[float], worlds: Sequence[Matrix]
) -> Array:
    """Return (R, 4, 4) matrices from armature to world space at R frames, checked to be invertible.

    Raises:
        RigError: a matrix is not finite, or flat.
    """
    distinct = {id(matrix): matrix for matrix in worlds}  # frames share equal ones
    places = {key: k for k, key in enumerate(distinct)}
    rows = np.array([places[id(matrix)] for matrix in worlds], np.int64)
    matrices = stacked(distinct.values())[rows]
    where = f"Armature '{armature_object.name}'"
    finite = np.isfinite(matrices).all(axis=(1, 2))
    if not finite.all():
        frame = frames[int(np.argmin(finite))]
        raise RigError(
            f"{where} has a place that is not a number at frame {frame:.7g}: look at its transform"
        )
    sizes, (x, y, z) = length(matrices[:, :3, :3], axis=1), (matrices[:, :3, k] for k in range(3))
    flat = (sizes < FLAT).any(axis=1) | (dot(x, cross(y, z, axis=-1), axis=-1) == 0.0)
    if flat.any():
        frame = frames[int(np.argmax(flat))]
        raise RigError(f"{where} has a scale of 0 at frame {frame:.7g}: give it another scale")
    return matrices


def effective_influences(
    armature_object: Any, constraints: Sequence[Constraint], influences: Array
) -> tuple[Array, Array | None]:
    """Return (R, C) effective influences at R frames, and the ones if no bone were planted.

    The latter are None without constraints that plant bones.
    """
    if not any(constraint.kind.plants for constraint in constraints):
        return influences, None
    rows = [tuple(row) for row in influences.tolist()]
    effective = {row: _effective_row(armature_object, constraints, row) for row in set(rows)}
    plants = np.array([constraint.kind.plants for constraint in constraints])
    return np.array([effective[row] for row in rows]), np.where(plants, 0.0, influences)


def _effective_row(
    armature_object: Any, constraints: Sequence[Constraint], influences: Sequence[float]
) -> tuple[float, ...]:
    """Return the effective influences at a frame: a planted bone is fully planted, and does not reach.

    Nor does the tail of a parent that it is connected to.
    """
    pairs = list(zip(constraints, influences, strict=True))
    planted = {
        constraint.tip for constraint, influence in pairs if constraint.kind.plants and influence > PLANTED
    }
    bones = [armature_object.pose.bones[name].bone for name in planted]
    above = {bone.parent.name for bone in bones if bone.use_connect and bone.parent is not None}
    effective = []
    for constraint, influence in pairs:
        if constraint.kind.plants:
            effective.append(1.0 if influence > PLANTED else 0.0)
        else:
            is_planted = constraint.tip in planted or (constraint.use_tail and constraint.tip in above)
            effective.append(0.0 if constraint.kind.reaches and is_planted else influence)
    return tuple(effective)


class FrameSample(NamedTuple):
    """Evaluated state of one frame."""

    frame: float  # scene frame, may be fractional
    reading: RigReading  # the chains and their base pose
    targets: tuple[TargetSample, ...]  # one per constraint, armature space
    influences: tuple[float, ...]  # effective influences, 0 to 1, one per constraint (`effective_influences`)
    matrix_world: Matrix  # from armature space to world space
    # Effective influences if no bone were planted; empty if no constraint plants one.
    unplanted: tuple[float, ...] = ()

    @property
    def active(self) -> tuple[int, ...]:
        """Indices of the constraints with an influence above 0."""
        return tuple(c for c, influence in enumerate(self.influences) if influence > 0.0)


class Shown(NamedTuple):
    """Values of a frame as read from Blender; `FrameReader.samples` converts them."""

    frame: float  # scene frame, may be fractional
    layout: RigLayout  # with which bones were read
    bones: NDArray[np.float32]  # see `Watched.look`
    world: Matrix  # from armature space to world space
    places: NDArray[np.float32]  # see `TargetReader.look`
    numbers: list[float]  # see `TargetReader.numbers`


@dataclass(frozen=True)
class Samples:
    """Evaluated state of R frames."""

    frames: Array  # (R,) scene frames
    rig: RigRows  # the chains and their base poses
    targets: TargetRows  # of C constraints
    influences: Array  # (R, C) effective influences, 0 to 1 (`effective_influences`)
    # (R, C) effective influences if no bone were planted; None if no constraint plants one.
    unplanted: Array | None
    worlds: Array  # (R, 4, 4) from armature space to world space

    def __getitem__(self, k: int) -> FrameSample:
        """Return the sample of frame `k`."""
        return FrameSample(
            float(self.frames[k]),
            self.rig.reading(k),
            self.targets.row(k),
            tuple(self.influences[k].tolist()),
            Matrix(self.worlds[k].tolist()),
            () if self.unplanted is None else tuple(self.unplanted[k].tolist()),
        )

    @classmethod
    def joined(cls, blocks: Sequence[Samples]) -> Samples:
        """Join blocks of frames.

        Raises:
            RigError: the chains of a block have other bones than those of the first one.
        """
        if len(blocks) == 1:
            return blocks[0]
        names = blocks[0].rig.layout.names
        for block in blocks:
            if block.rig.layout.names != names:
                raise RigError(
                    f"frame {block.frames[0]:.7g}: the chains have other bones than at the first frame"
                )
        frames, influences, worlds = (
            np.concatenate([getattr(block, name) for block in blocks])
            for name in ("frames", "influences", "worlds")
        )
        unplanted = [block.unplanted for block in blocks if block.unplanted is not None]
        return cls(
            frames,
            RigRows.joined([block.rig for block in blocks]),
            TargetRows.joined([block.targets for block in blocks]),
            influences,
            np.concatenate(unplanted) if unplanted else None,
            worlds,
        )

    def posed(self, rotations: Array, translations: Array) -> Samples:
        """Return the samples with different base poses, (R, J, 4) and (R, J, 3)."""
        return replace(self, rig=self.rig.posed(rotations, translations))


@dataclass
class FrameReader:
    """Reads evaluated frames of an armature."""

    armature_object: bpy.types.Object  # the original object
    constraints: Sequence[Constraint]  # of its list
    targets: TargetReader  # reads their targets
    # With which bones are read; replaced when their rotation modes change. None: it is made at the first
    # frame.
    layout: RigLayout | None
    _last: tuple[Shown, RigRows] | None = field(default=None, repr=False)
    _world: Matrix | None = field(default=None, repr=False)  # read last; equal ones are one object
    _last_world: tuple[Matrix, Array] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        armature_object: bpy.types.Object,
        constraints: Sequence[Constraint],
        layout: RigLayout | None,
        with_keyed: bool,
    ) -> FrameReader:
        """Build a reader; see `targets.target_sources` for `with_keyed` and errors."""
        sources = target_sources(armature_object, constraints, with_keyed)
        return cls(armature_object, constraints, TargetReader(armature_object, sources), layout)

    def hidden(self, depsgraph: bpy.types.Depsgraph) -> list[tuple[bpy.types.Object, str]]:
        """Return the targets that a depsgraph does not evaluate, with the name of a bone, or empty."""
        pairs = objects_of(self.targets.sources)
        return [pair for pair in pairs if not is_evaluated(pair[0], depsgraph)]

    def look(
        self,
        depsgraph: bpy.types.Depsgraph,
        frame: float,
        elsewhere: Mapping[bpy.types.Object, bpy.types.Depsgraph] = NOWHERE,
        ahead: Ahead = NOTHING_AHEAD,
        numbers_of: bpy.types.Object | None = None,
    ) -> Shown:
        """Read the present values; see `TargetReader.look` for the arguments.

        Numbers are read from the evaluated object, or from `numbers_of`.
        """
        evaluated = self.armature_object.evaluated_get(depsgraph)
        if self.layout is None:
            self.layout = rig_layout(self.armature_object, evaluated, self.constraints)
        pose_bones = evaluated.pose.bones
        bones = self.layout.watched.look(pose_bones)
        if not self.layout.fits(bones):
            self.layout = self.layout.renewed(evaluated)
            bones = self.layout.watched.look(pose_bones)
        world = evaluated.matrix_world
        if self._world is None or world != self._world:
            self._world = world.copy()
        places = self.targets.look(evaluated, depsgraph, elsewhere, ahead)
        numbers = self.targets.numbers(numbers_of or evaluated)
        return Shown(frame, self.layout, bones, self._world, places, numbers)

    def samples(self, shown: Sequence[Shown]) -> Samples:
        """Convert the values of R frames, read with one layout.

        Raises:
            RigError: the transform of a target or of the armature is not finite at a frame; a setting is not
                a number; a bone cannot be read.
        """
        frames = [row.frame for row in shown]
        worlds = self._worlds(frames, [row.world for row in shown])
        numbers = np.array([row.numbers for row in shown])
        targets = self.targets.rows(frames, worlds, np.array([row.places for row in shown]), numbers)
        influences, unplanted = effective_influences(
            self.armature_object, self.constraints, self.targets.influences(frames, numbers)
        )
        rig = self._rig(shown)
        return Samples(np.array(frames, np.float64), rig, targets, influences, unplanted, worlds)

    def _worlds(self, frames: Sequence[float], worlds: Sequence[Matrix]) -> Array:
        """Convert the world matrices of R frames; see `samples`."""
        if len(worlds) == 1 and self._last_world is not None and self._last_world[0] is worlds[0]:
            return self._last_world[1]
        matrices = world_matrices(self.armature_object, frames, worlds)
        if len(worlds) == 1:  # of a still armature it is checked once
            self._last_world = worlds[0], matrices
        return matrices

    def _rig(self, shown: Sequence[Shown]) -> RigRows:
        """Convert the bones of R frames; see `samples`."""
        if len(shown) == 1 and self._last is not None:
            last, rig = self._last
            if last.layout is shown[0].layout and last.bones.tobytes() == shown[0].bones.tobytes():
                return rig
        seen = [row.bones for row in shown]
        try:
            rig = shown[0].layout.rows(self.armature_object, seen)
            if len(shown) == 1:  # a still armature is converted once
                self._last = shown[0], rig
            return rig
        except RigError:  # look for the first frame with an error, to name it
            for row in shown:
                try:
                    row.layout.rows(self.armature_object, [row.bones])
                except RigError as error:
                    raise RigError(f"frame {row.frame:.7g}: {error}") from error
            raise


@contextmanager
def frames(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    layout: RigLayout | None = None,
    shared: SharedScene | None = None,
) -> Iterator[Frames]:
    """Set up the evaluation of frames, in any order, for the block.

    Channels without keys have their present values, as when the scene is played. Keyed and driven channels
    have their values at the frame.

    Args:
        scene: gives frame rate, time remapping, camera and custom properties; it is not changed.
        armature_object: the original object.
        layout: of their bones (`rig_layout`); None: it is made at the first frame.
        shared: temporary scene that other armatures share; None: a new one.

    Raises:
        RigError: a target, a bone or a constraint is missing, or a simulation moves one of them. `Frames`
            raises it if a transform is not finite, and ReferenceError if the file was replaced.
    """
    require_evaluable(scene, armature_object, constraints)
    reader = FrameReader.of(armature_object, constraints, layout, with_keyed=True)
    if layout is None:
        bones = read_bones(armature_object, constraints)
    else:
        pose_bones = armature_object.pose.bones
        bones = [(armature_object, pose_bones[slot].name) for slot in layout.placed]
    references = [*bones, *objects_of(reader.targets.sources)]
    with ExitStack() as stack:
        shared = shared or stack.enter_context(shared_scene(scene))
        shared.refer(armature_object, references, sampled_paths(reader.targets.sources))
        yield Frames(reader, shared)


@dataclass(frozen=True)
class Frames:
    """Evaluates frames of an armature."""

    reader: FrameReader  # reads evaluated frames
    _scene: SharedScene  # in which they are evaluated

    def look(self, frame: float) -> Shown:
        """Evaluate a frame and read its values."""
        return self.reader.look(self._scene.at(frame), frame)

    def samples(self, shown: Sequence[Shown]) -> Samples:
        """Convert the values of frames; see `FrameReader.samples`."""
        return self.reader.samples(shown)

    def __call__(self, frame: float) -> FrameSample:
        """Return the evaluated state of a frame."""
        return self.samples([self.look(frame)])[0]


def evaluated_influences(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    frames: Sequence[float],
) -> Generator[float, None, Array]:
    """Return (R, C) effective influences at R frames, without bones and targets; yields 1 after each frame.

    Raises:
        RigError: a target, a bone or a constraint is missing, or an influence is not a number.
    """
    reader, numbers = TargetReader(armature_object, target_sources(armature_object, constraints)), []
    with isolated_scene(scene, armature_object, (), sampled_paths(reader.sources)) as isolated:
        for frame in frames:
            numbers.append(reader.numbers(armature_object.evaluated_get(set_frame(isolated, frame))))
            yield 1.0
    influences = reader.influences(frames, np.array(numbers))
    return effective_influences(armature_object, constraints, influences)[0]


def current(
    depsgraph: bpy.types.Depsgraph,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    layout: RigLayout | None = None,
) -> Samples:
    """Read the present state, with edits that have no keys yet, as samples of one frame.

    Blender does not evaluate hidden objects: they are evaluated at the present frame.

    Args:
        depsgraph: an evaluated one, such as the context's.
        armature_object: the original object.
        layout: as for `frames`.

    Raises:
        RigError: as `frames` and `FrameReader.samples`.
    """
    scene = depsgraph.scene.original
    frame = scene.frame_float
    if not is_evaluated(armature_object, depsgraph):
        with frames(scene, armature_object, constraints, layout) as sample:
            return sample.samples([sample.look(frame)])
    require_evaluable(scene, armature_object, constraints)
    evaluated = armature_object.evaluated_get(depsgraph)
    layout = layout or rig_layout(armature_object, evaluated, constraints)
    reader = FrameReader.of(armature_object, constraints, layout, with_keyed=False)
    hidden = reader.hidden(depsgraph)
    with ExitStack() as stack:
        elsewhere = {}
        if hidden:
            isolated = stack.enter_context(isolated_scene(scene, armature_object, hidden, ()))
            elsewhere = dict.fromkeys((obj for obj, _ in hidden), set_frame(isolated, frame))
        return reader.samples([present(reader, depsgraph, elsewhere)])


def present(
    reader: FrameReader,
    depsgraph: bpy.types.Depsgraph,
    elsewhere: Mapping[bpy.types.Object, bpy.types.Depsgraph] = NOWHERE,
    ahead: Ahead = NOTHING_AHEAD,
) -> Shown:
    """Read the present state, with edits that have no keys yet; see `TargetReader.look` for the arguments."""
    # Numbers are read from the original: Blender writes keyed and driven values back to it, but does not
    # evaluate the object again when a script sets a property of the extension.
    frame = depsgraph.scene.original.frame_float
    return reader.look(depsgraph, frame, elsewhere, ahead, reader.armature_object)


# Playback ---------------------------------------------------------------------------------------------------


class PlayedFrame(NamedTuple):
    """Pose and targets of a frame as Blender plays it."""

    frame: float  # of the scene
    # (B, 4, 4) of all pose bones, armature space. Only the bones of `read_bones` and their parents are
    # evaluated at this frame.
    matrices: NDArray[np.float32]
    world: Matrix  # from armature space to world space
    places: NDArray[np.float32]  # see `TargetReader.look`; empty if targets were not read
    numbers: list[float]  # see `TargetReader.numbers`; empty if targets were not read


@dataclass(frozen=True)
class Playback:
    """Reads frames as Blender plays them, without solving."""

    _scene: SharedScene  # in which frames are evaluated
    _constraints: Sequence[Constraint]
    _reader: TargetReader

    def play(self, frame: float, with_targets: bool) -> PlayedFrame:
        """Evaluate a frame and read its pose, with or without targets and influences."""
        depsgraph, rig = self._scene.at(frame), self._reader.armature_object
        evaluated = rig.evaluated_get(depsgraph)
        matrices = np.empty((len(rig.pose.bones), 4, 4), np.float32)  # column by column
        evaluated.pose.bones.foreach_get("matrix", matrices.ravel())
        places = self._reader.look(evaluated, depsgraph) if with_targets else np.empty((0, 16), np.float32)
        numbers = self._reader.numbers(evaluated) if with_targets else []
        world = evaluated.matrix_world.copy()
        return PlayedFrame(frame, matrices.transpose(0, 2, 1), world, places, numbers)

    def pose(self, frame: float) -> tuple[NDArray[np.float32], Array]:
        """Return `PlayedFrame.matrices` of a frame, and (4, 4) from armature to world space.

        Raises:
            RigError: as `worlds`.
        """
        played = self.play(frame, False)
        return played.matrices, self.worlds([played])[0]

    def worlds(self, frames: Sequence[PlayedFrame]) -> Array:
        """Return (R, 4, 4) matrices from armature to world space; errors as `world_matrices`."""
        times, worlds = [played.frame for played in frames], [played.world for played in frames]
        return world_matrices(self._reader.armature_object, times, worlds)

    def targets(self, frames: Sequence[PlayedFrame], worlds: Array) -> tuple[TargetRows, Array]:
        """Return the targets and (R, C) effective influences of R frames that were played with targets.

        Raises:
            RigError: as `TargetReader.rows` and `TargetReader.influences`.
        """
        times = [played.frame for played in frames]
        numbers = np.array([played.numbers for played in frames])
        places = np.array([played.places for played in frames])
        targets = self._reader.rows(times, worlds, places, numbers)
        influences = self._reader.influences(times, numbers)
        return targets, effective_influences(self._reader.armature_object, self._constraints, influences)[0]


@contextmanager
def playback(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    shared: SharedScene | None = None,
) -> Iterator[Playback]:
    """Set up the playback of frames for the block; arguments and errors as of `frames`."""
    reader = TargetReader(armature_object, target_sources(armature_object, constraints))
    references = [*read_bones(armature_object, constraints), *objects_of(reader.sources)]
    with ExitStack() as stack:
        shared = shared or stack.enter_context(shared_scene(scene))
        shared.refer(armature_object, references, sampled_paths(reader.sources))
        yield Playback(shared, constraints, reader)
