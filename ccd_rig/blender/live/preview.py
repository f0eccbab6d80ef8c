# SPDX-License-Identifier: GPL-3.0-or-later
"""The live preview of one armature: what is known of it, what tells an edit, and one update.

Blender reports the armature after each update of its clamps, in the same way as after an edit of a property.
Its reports alone so cannot tell one from the other. Properties that are keyed, or set by a script, are not
reported at all. Reading the values costs a small part of checking a set-up.

Every update solves the frame from the pose in the channels, with the armature's own settings: as Solve and a
bake of that frame do, while things move as at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix

from ...errors import CCDRigError, RigError
from ...skeleton.kinematics import forward_kinematics
from ...solvers.stepping import result_of
from ..bake import single_frame
from ..bake.single_frame import SolvedFrame
from ..bake.staleness import fields
from ..checks import setup
from ..properties import body
from ..properties.constraint_values import Kind
from ..rig import clamps
from ..rig.pose_values import foreach
from ..scene.evaluation import FrameReader, FrameSample, present
from ..scene.targets import NOTHING_AHEAD, Ahead, objects_of
from ..solve.methods import FrameSolveSettings

POSE_BONES = {
    "rotation_mode": 1,
    "lock_rotation": 3,
    "lock_rotation_w": 1,
    "lock_rotations_4d": 1,
    "lock_location": 3,
}
"""Properties of pose bones that a set-up depends on, with how many values each has."""
BONES = {
    "matrix_local": 16,
    "length": 1,
    "use_connect": 1,
    "use_inherit_rotation": 1,
    "inherit_scale": 1,
    "use_local_location": 1,
}
"""The same of the armature's bones."""

Values = tuple[Any, ...]
_Getter = Callable[[Any], Values]


def state_of(armature_object: bpy.types.Object, names: Iterable[str]) -> Values:
    """Values that change with every edit of a set-up that the user's scene does not report.

    Args:
        armature_object: the original object.
        names: of the bones of its chains.
    """
    group, pose_bones = armature_object.ccd_rig, armature_object.pose.bones
    bones = [pose_bones.get(name) for name in names]
    return (
        pose_bones.keys(),
        [_row_values(row) for row in group.constraints],
        [None if bone is None else _values(bone.ccd_rig) for bone in bones],
        [(bone.ccd_rig.mass, len(bone.ccd_rig.coupled_offsets)) for bone in pose_bones],
        [foreach(pose_bones, name, width).tobytes() for name, width in POSE_BONES.items()],
        [foreach(armature_object.data.bones, name, width).tobytes() for name, width in BONES.items()],
        _values(group.solver),
        list(_library(group.poses)),
        group.body,
        body.body_of(armature_object),
    )


def is_rebuilt(depsgraph: bpy.types.Depsgraph) -> bool:
    """Whether a scene was edited, or what depends on what in it; a key that moves it is no edit.

    Blender reports that when objects, constraints, drivers, actions or their first keys come or go.
    """
    if not depsgraph.id_type_updated("SCENE"):
        return False
    return any(
        isinstance(each.id, bpy.types.Scene) and not each.is_updated_shading for each in depsgraph.updates
    )


def _row_values(row: Any) -> Values:
    """A constraint, but for its influence, which every sample has."""
    return (_values(row), _end(row.target, row.target_bone), _end(row.pole_target, row.pole_bone))


def _end(thing: bpy.types.Object | None, bone: str) -> tuple[int, str, bool] | None:
    """A target or a pole, and whether it has the bone that is meant."""
    if thing is None:
        return None
    return thing.session_uid, thing.name_full, thing.pose is not None and bone in thing.pose.bones


def _library(poses: Any) -> Iterator[tuple[str, bytes]]:
    """The name and the rotations of each pose."""
    for pose in poses:
        rotations = np.empty(4 * len(pose.rotations), np.float32)
        pose.rotations.foreach_get("rotation", rotations)
        yield pose.name, rotations.tobytes()


def _values(group: Any) -> Values:
    """All values of a group of properties. A limit that is none has no others."""
    if getattr(group, "kind", "") == "NONE":
        return ("NONE",)
    single, arrays, groups, lists = _getters(type(group))
    return (
        single(group),
        *map(tuple, arrays(group)),
        *map(_values, groups(group)),
        *([_values(each) for each in rows] for rows in lists(group)),
    )


@lru_cache(maxsize=32)
def _getters(group: type) -> tuple[_Getter, _Getter, _Getter, _Getter]:
    """Functions that read the single values of a group, its arrays, its groups and its collections."""
    properties: Any = group.bl_rna.properties  # type: ignore[attr-defined]
    names: dict[str, list[str]] = {"ARRAY": [], "POINTER": [], "COLLECTION": []}
    single: list[str] = []
    for name, sort in fields(group):
        if name == "influence" or (sort == "POINTER" and not _is_group(properties[name])):
            continue
        names.get(sort, single).append(name)
    return _getter(single), _getter(names["ARRAY"]), _getter(names["POINTER"]), _getter(names["COLLECTION"])


def _is_group(field: Any) -> bool:
    """Whether a pointer leads to a group of properties, not to a data-block."""
    base = field.fixed_type.base
    return base is not None and base.identifier == "PropertyGroup"


def _getter(names: list[str]) -> _Getter:
    """A function that reads these attributes of a thing, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda thing: tuple(getattr(thing, name) for name in names)


class SetUp(NamedTuple):
    """What an update is made with, until it changes.

    Attributes:
        ready: the constraints and their bones.
        settings: how a frame is solved.
        reader: reads the state of the armature.
        state: see `edits.state_of`.
    """

    ready: setup.Ready
    settings: FrameSolveSettings
    reader: FrameReader
    state: Values

    @classmethod
    def of(cls, armature_object: bpy.types.Object, scene: bpy.types.Scene) -> SetUp:
        """Raises CCDRigError where the armature cannot be solved."""
        ready = result_of(setup.require(armature_object, scene))
        settings = single_frame.settings_of(armature_object, scene)
        reader = FrameReader.of(armature_object, ready.constraints, ready.layout, with_keyed=False)
        return cls(ready, settings, reader, state_of(armature_object, ready.layout.names))

    def is_current(self) -> bool:
        """Whether nothing was edited since it was read."""
        return self.state == state_of(self.reader.armature_object, self.ready.layout.names)

    def plants(self) -> bool:
        """Whether bones are planted."""
        return any(constraint.kind is Kind.PLANT for constraint in self.ready.constraints)


@dataclass
class Preview:
    """What is known of a live armature.

    Attributes:
        set_up: None until it is needed, after anything may have made it invalid, and where there is none.
        sample: what is shown was solved for this; None: nothing is shown.
        solved: what is shown; None where nothing is, or no constraint has influence.
        shown: the clamps that have influence.
        failure: why nothing is shown, in words; empty where something is.
        partner: name of another live armature that it follows and that follows it; empty if there is none.
    """

    set_up: SetUp | None = None
    sample: FrameSample | None = field(default=None, repr=False)
    solved: SolvedFrame | None = field(default=None, repr=False)
    shown: Collection[clamps.Place] = ()
    failure: str = ""
    partner: str = ""

    def forget(self) -> None:
        """Read everything anew at the next update."""
        self.set_up = self.sample = self.solved = None

    @property
    def missed(self) -> frozenset[int]:
        """Places of the constraints that miss their goals in what is shown."""
        if self.sample is None or self.solved is None:
            return frozenset()
        return frozenset(self.sample.active) - self.solved.met

    def notes(self) -> tuple[str, ...]:
        """What the user should know about what is shown, a sentence each."""
        if self.failure:
            return (self.failure,)
        if self.partner:
            return (
                f"'{self.partner}' is live and follows this armature too: switch Live off for one of them",
            )
        if self.set_up is not None and self.set_up.plants():
            return ("Planted bones are held where this frame has them; a bake holds them over frames",)
        return ()


def bones_ahead(
    armature_object: bpy.types.Object, depsgraph: bpy.types.Depsgraph, preview: Preview, names: Iterable[str]
) -> dict[tuple[bpy.types.Object, str], Matrix]:
    """World matrices of bones as the clamps show them from the next evaluation on.

    Constraints of the user's that act on top are not in them.

    Args:
        armature_object: the original object.
        depsgraph: what was evaluated before the clamps were changed.
        preview: what is known of the armature.
        names: of bones; those that no chain holds are left out.
    """
    sample, solved = preview.sample, preview.solved
    wanted = set(names)
    if sample is None or solved is None or wanted.isdisjoint(sample.reading.bones):
        return {}
    transforms = forward_kinematics(sample.reading.skeleton, solved.pose)
    evaluated = armature_object.evaluated_get(depsgraph).pose.bones
    return {
        (armature_object, name): sample.matrix_world
        @ Matrix.LocRotScale(at.translation, at.rotation, evaluated[name].matrix.to_scale())
        for name, at in zip(sample.reading.bones, transforms, strict=True)
        if name in wanted
    }


def update(
    armature_object: bpy.types.Object,
    depsgraph: bpy.types.Depsgraph,
    preview: Preview,
    ahead: Ahead = NOTHING_AHEAD,
) -> bool:
    """Bring the shown pose up to date.

    Args:
        armature_object: the original object, in Pose Position and not in Edit Mode.
        depsgraph: evaluated, and of the user's scene.
        preview: what is known of the armature; it is brought up to date too.
        ahead: bones of others whose clamps have changed since.

    Returns:
        Whether clamps have changed.
    """
    try:
        try:
            return _update(armature_object, depsgraph, preview, ahead)
        except ReferenceError:  # an object that we hold was deleted
            preview.forget()
            return _update(armature_object, depsgraph, preview, ahead)
    except CCDRigError as error:
        preview.sample = preview.solved = None
        preview.failure, preview.shown = str(error), ()
        return clamps.show(armature_object, {}, _places(armature_object))


def _update(
    armature_object: bpy.types.Object, depsgraph: bpy.types.Depsgraph, preview: Preview, ahead: Ahead
) -> bool:
    if preview.set_up is not None and not preview.set_up.is_current():
        preview.forget()
    if preview.set_up is None:
        preview.forget()
        preview.set_up = SetUp.of(armature_object, depsgraph.scene.original)
        # A copy of a bone's constraints may have brought clamps elsewhere.
        preview.shown = _places(armature_object)
    set_up = preview.set_up
    _refuse_hidden(set_up, depsgraph)
    samples = set_up.reader.samples([present(set_up.reader, depsgraph, ahead=ahead)])
    sample = samples[0]
    if preview.sample is not None and _is_same(sample, preview.sample):
        return False
    solved, wanted = None, dict[clamps.Place, clamps.Values]()
    if sample.active:
        solved = single_frame.solve_sample(armature_object, set_up.ready, samples, set_up.settings)
        wanted = _clamps_of(sample, solved)
    changed = clamps.show(armature_object, wanted, preview.shown)
    preview.sample, preview.solved, preview.shown = sample, solved, wanted.keys()
    preview.failure = ""
    return changed


def _refuse_hidden(set_up: SetUp, depsgraph: bpy.types.Depsgraph) -> None:
    """Blender does not evaluate hidden objects, and evaluating them apart would be slow."""
    hidden = {thing for thing, _ in set_up.reader.hidden(depsgraph)}
    for source in set_up.reader.targets.sources if hidden else ():
        for thing, _ in objects_of([source]):
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
    return [(bone.name, clamps.kind_of(each)) for bone, each in clamps.clamps_of(armature_object)]


def _is_same(sample: FrameSample, other: FrameSample) -> bool:
    """Whether two samples ask for the same pose. The motion before a bake may be another at another frame."""
    return (
        sample.frame == other.frame
        and (sample.reading is other.reading or sample.reading == other.reading)
        and sample.matrix_world == other.matrix_world
        and sample.targets == other.targets
        and sample.influences == other.influences
        and sample.unplanted == other.unplanted
    )
