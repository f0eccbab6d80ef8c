# SPDX-License-Identifier: GPL-3.0-or-later
"""What the solver needs of a frame: base pose, targets and influences, as Blender evaluates them.

Frames are evaluated in a scene of their own (`isolation.py`) that is made for it and removed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ...errors import RigError
from ...maths.batch import Array, cross, dot, length
from ...skeleton.pose import Pose
from ..properties import constraint_list, coupled_offsets, joints
from ..properties.constraint_values import Constraint, Kind
from ..properties.joints import masses
from ..rig import armature
from ..rig.armature import RigLayout, RigReading, RigRows
from .dependence import require_evaluable
from .isolation import SharedScene, isolated_scene, set_frame, shared_scene
from .targets import (
    NOTHING_AHEAD,
    NOWHERE,
    Ahead,
    TargetReader,
    TargetRows,
    TargetSample,
    objects_of,
    sampled_paths,
    target_sources,
)

FLAT = 1e-8  # a length of an axis of the armature object below this cannot be inverted in float32


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
    chains = [(each.tip, getattr(each, "body_length", 0) or each.chain_length) for each in constraints]
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


def own_bones(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint]
) -> list[tuple[bpy.types.Object, str]]:
    """The ends of all that is read of the armature: what is above them is evaluated with them."""
    bones = [constraint.tip for constraint in constraints]
    if any(constraint.kind == Kind.BALANCE for constraint in constraints):
        bones += masses(armature_object)
    chains = {
        bone.name
        for constraint in constraints
        for bone in constraint_list.chain(
            armature_object, constraint.tip, constraint.body_length or constraint.chain_length
        )
    }
    bones += coupled_offsets.followers(armature_object, chains)
    return [(armature_object, bone) for bone in bones]


def is_evaluated(thing: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> bool:
    """Whether a depsgraph keeps an object up to date: hidden objects it leaves as they were."""
    return thing.evaluated_get(depsgraph).is_evaluated and thing.visible_get(view_layer=depsgraph.view_layer)


def world_matrices(
    armature_object: bpy.types.Object, frames: Sequence[float], worlds: Sequence[Matrix]
) -> Array:
    """(R, 4, 4) places of the armature object at R frames, in the world; each must lead back as well."""
    matrices = np.array([[*row] for matrix in worlds for row in matrix]).reshape(-1, 4, 4)
    where = f"Armature '{armature_object.name}'"
    good = np.isfinite(matrices).all(axis=(1, 2))
    if not good.all():
        frame = frames[int(np.argmin(good))]
        raise RigError(f"{where} has a place that is not a number at frame {frame:g}: look at its transform")
    sizes, (x, y, z) = length(matrices[:, :3, :3], axis=1), (matrices[:, :3, k] for k in range(3))
    flat = (sizes < FLAT).any(axis=1) | (dot(x, cross(y, z, axis=-1), axis=-1) == 0.0)
    if flat.any():
        frame = frames[int(np.argmax(flat))]
        raise RigError(f"{where} has a scale of 0 at frame {frame:g}: give it another scale")
    return matrices


PLANTED = 0.5
"""Influence above which a bone is planted; there is no half of it."""


def counted(
    armature_object: Any, constraints: Sequence[Constraint], influences: Array
) -> tuple[Array, Array | None]:
    """(R, C) influences as they count at R frames, and as they would count if nothing was planted.

    The second is None where nothing ever is.
    """
    if not any(constraint.kind is Kind.PLANT for constraint in constraints):
        return influences, None
    rows = [tuple(row) for row in influences.tolist()]
    known = {row: _in_force(armature_object, constraints, row) for row in set(rows)}
    never = np.array([constraint.kind is Kind.PLANT for constraint in constraints])
    return np.array([known[row] for row in rows]), np.where(never, 0.0, influences)


def _in_force(
    armature_object: Any, constraints: Sequence[Constraint], influences: Sequence[float]
) -> tuple[float, ...]:
    """Influences as they count at a frame: a planted bone is held fully, and nothing else reaches with it.

    The end of the bone that it is connected to is a part of it.
    """
    pairs = list(zip(constraints, influences, strict=True))
    planted = {
        constraint.tip
        for constraint, influence in pairs
        if constraint.kind is Kind.PLANT and influence > PLANTED
    }
    bones = [armature_object.pose.bones[name].bone for name in planted]
    above = {bone.parent.name for bone in bones if bone.use_connect and bone.parent is not None}
    influences_now = []
    for constraint, influence in pairs:
        if constraint.kind is Kind.PLANT:
            influences_now.append(1.0 if influence > PLANTED else 0.0)
        else:
            waits = constraint.tip in planted or (constraint.use_tail and constraint.tip in above)
            influences_now.append(0.0 if constraint.kind is Kind.REACH and waits else influence)
    return tuple(influences_now)


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


class Shown(NamedTuple):
    """What Blender shows of a frame, as it stands; `FrameReader.samples` makes something of it.

    Attributes:
        frame: scene frame, may be fractional.
        layout: what bones are read with.
        bones: see `Watched.look`.
        world: from armature space to world space.
        places: see `TargetReader.look`.
        numbers: see `TargetReader.numbers`.
    """

    frame: float
    layout: RigLayout
    bones: NDArray[np.float32]
    world: Matrix
    places: list[float]
    numbers: list[float]

    def shows_bones_of(self, other: Shown) -> bool:
        """Whether all bones are as at another frame, to the bit."""
        return self.layout is other.layout and self.bones.tobytes() == other.bones.tobytes()


@dataclass(frozen=True)
class Samples:
    """The evaluated state of R frames.

    Attributes:
        frames: (R,) scene frames.
        rig: the chains and their base poses.
        targets: of C constraints.
        influences: (R, C) 0 to 1, as they count (`influences.counted`).
        unplanted: (R, C) as they would count if nothing was planted; None where nothing ever is.
        worlds: (R, 4, 4) from armature space to world space.
        matrices: (R,) the same as Blender has it; frames share what stays.
    """

    frames: Array
    rig: RigRows
    targets: TargetRows
    influences: Array
    unplanted: Array | None
    worlds: Array
    matrices: Sequence[Matrix]

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, k: int) -> FrameSample:
        """One of the frames."""
        return FrameSample(
            float(self.frames[k]),
            self.rig.reading(k),
            self.targets.row(k),
            tuple(self.influences[k].tolist()),
            self.matrices[k],
            () if self.unplanted is None else tuple(self.unplanted[k].tolist()),
        )

    def at(self, k: int) -> Samples:
        """One of the frames, as samples of one."""
        row = slice(k, k + 1)
        unplanted = None if self.unplanted is None else self.unplanted[row]
        targets, matrices = self.targets.at(row), self.matrices[row]
        frames, influences, worlds = self.frames[row], self.influences[row], self.worlds[row]
        return Samples(frames, self.rig.at(k), targets, influences, unplanted, worlds, matrices)

    def posed(self, rotations: Array, translations: Array) -> Samples:
        """The same bones in other poses, (R, J, 4) and (R, J, 3)."""
        return replace(self, rig=self.rig.posed(rotations, translations))


@dataclass
class FrameReader:
    """Reads frames of an armature as they are evaluated.

    Attributes:
        armature_object: the original object.
        constraints: those of its list.
        targets: reads what they ask for.
        layout: what bones are read with; made anew where their rotation modes change. None at first, if none
            is known.
    """

    armature_object: bpy.types.Object
    constraints: Sequence[Constraint]
    targets: TargetReader
    layout: RigLayout | None
    _last: tuple[Shown, RigRows] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        armature_object: bpy.types.Object,
        constraints: Sequence[Constraint],
        layout: RigLayout | None,
        with_keyed: bool,
    ) -> FrameReader:
        """See `targets.target_sources` for `with_keyed` and for what is raised."""
        sources = target_sources(armature_object, constraints, with_keyed)
        return cls(armature_object, constraints, TargetReader(armature_object, sources), layout)

    def hidden(self, depsgraph: bpy.types.Depsgraph) -> list[tuple[bpy.types.Object, str]]:
        """Targets that a depsgraph does not keep up to date, each with the name of its bone, or none."""
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
        """What is shown now; see `TargetReader.look` for the arguments.

        Numbers are the evaluated object's, or those of `numbers_of`.
        """
        evaluated = self.armature_object.evaluated_get(depsgraph)
        if self.layout is None:
            self.layout = rig_layout(self.armature_object, evaluated, self.constraints)
        pose_bones = evaluated.pose.bones
        bones = self.layout.watched.look(pose_bones)
        if not self.layout.fits(bones):
            self.layout = self.layout.anew(evaluated)
            bones = self.layout.watched.look(pose_bones)
        places = self.targets.look(evaluated, depsgraph, elsewhere, ahead)
        numbers = self.targets.numbers(numbers_of or evaluated)
        return Shown(frame, self.layout, bones, evaluated.matrix_world.copy(), places, numbers)

    def samples(self, shown: Sequence[Shown]) -> Samples:
        """What was seen at R frames, read with one layout.

        Raises:
            RigError: a target or the armature is nowhere at one of the frames; a number is none; the chains
                have other bones than at the first frame.
        """
        frames = [each.frame for each in shown]
        worlds = world_matrices(self.armature_object, frames, [each.world for each in shown])
        numbers = np.array([each.numbers for each in shown])
        places = np.array([each.places for each in shown])
        targets = self.targets.rows(frames, worlds, places, numbers)
        influences, unplanted = counted(
            self.armature_object, self.constraints, self.targets.influences(frames, numbers)
        )
        rig = self._rig(shown)
        matrices = [shown[0].world]
        for each in shown[1:]:
            matrices.append(matrices[-1] if each.world == matrices[-1] else each.world)
        return Samples(np.array(frames), rig, targets, influences, unplanted, worlds, matrices)

    def _rig(self, shown: Sequence[Shown]) -> RigRows:
        """The bones at R frames; see `samples`."""
        last = self._last
        if len(shown) == 1 and last is not None and last[0].shows_bones_of(shown[0]):
            return last[1]
        seen = [each.bones for each in shown]
        try:
            rig = shown[0].layout.rows(self.armature_object, seen)
            if len(shown) == 1:  # what is shown again and again is read once
                self._last = shown[0], rig
            return rig
        except RigError:  # what is wrong with a bone at a frame is said with the frame
            for each in shown:
                try:
                    each.layout.rows(self.armature_object, [each.bones])
                except RigError as error:
                    raise RigError(f"frame {each.frame:g}: {error}") from error
            raise


@contextmanager
def frames(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    layout: RigLayout | None = None,
    shared: SharedScene | None = None,
) -> Iterator[Frames]:
    """Within the block, what it gives evaluates any frame, in any order.

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
    reader = FrameReader.of(armature_object, constraints, layout, with_keyed=True)
    things = [*own_bones(armature_object, constraints), *objects_of(reader.targets.sources)]
    with ExitStack() as stack:
        aside = shared or stack.enter_context(shared_scene(scene))
        aside.refer(armature_object, things, sampled_paths(reader.targets.sources))
        yield Frames(reader, stack.enter_context(aside.reading(armature_object, reader.look)))


@dataclass(frozen=True)
class Frames:
    """Evaluates frames of an armature.

    Attributes:
        reader: reads them.
    """

    reader: FrameReader
    _evaluate: Callable[[float], Shown]

    def look(self, frame: float) -> Shown:
        """What is shown at a frame."""
        try:
            return self._evaluate(frame)
        except ReferenceError:  # something that we hold is not there any more
            raise RigError("The file was changed by undo, or another one was opened: start again") from None

    def samples(self, shown: Sequence[Shown]) -> Samples:
        """See `FrameReader.samples`."""
        try:
            return self.reader.samples(shown)
        except ReferenceError:
            raise RigError("The file was changed by undo, or another one was opened: start again") from None

    def __call__(self, frame: float) -> FrameSample:
        """The evaluated state of a frame."""
        return self.samples([self.look(frame)])[0]


def current(
    depsgraph: bpy.types.Depsgraph,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    layout: RigLayout | None = None,
) -> Samples:
    """The present state, with edits that have no keys yet: samples of one frame.

    What is hidden has no present state, as Blender does not evaluate it: it is taken at the present frame.

    Args:
        depsgraph: an evaluated one, such as the context's.
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
        elsewhere = depsgraph
        if hidden:
            isolated = stack.enter_context(isolated_scene(scene, armature_object, hidden, ()))
            elsewhere = set_frame(isolated, frame)
        return reader.samples([present(reader, depsgraph, {thing: elsewhere for thing, _ in hidden})])


def present(
    reader: FrameReader,
    depsgraph: bpy.types.Depsgraph,
    elsewhere: Mapping[bpy.types.Object, bpy.types.Depsgraph] = NOWHERE,
    ahead: Ahead = NOTHING_AHEAD,
) -> Shown:
    """The present state, with edits that have no keys yet; see `TargetReader.look` for the arguments."""
    # Blender writes keyed and driven values back to the original, but does not evaluate the object anew when
    # a script sets a property of ours.
    frame = depsgraph.scene.original.frame_float
    return reader.look(depsgraph, frame, elsewhere, ahead, reader.armature_object)
