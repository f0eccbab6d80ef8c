# SPDX-License-Identifier: GPL-3.0-or-later
"""Live preview of an armature: its state, the detection of edits, and the update of the shown pose.

Blender reports an armature after an update of its clamps exactly as after an edit of a property. Properties
that are keyed, or set by a script, are not reported at all. Edits are therefore detected by comparing values,
which costs a small part of checking a set-up.

Every update solves the frame as Solve and a bake do, from the pose in the channels and with the armature's
settings.
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
from ..rig import clamps
from ..rig.rotation_modes import foreach
from ..scene.evaluation import FrameReader, FrameSample, present
from ..scene.ground import PresentGround
from ..scene.targets import NOTHING_AHEAD, Ahead, objects_of
from ..solve.methods import FrameSolveSettings

POSE_BONES = {
    "rotation_mode": 1,
    "lock_rotation": 3,
    "lock_rotation_w": 1,
    "lock_rotations_4d": 1,
    "lock_location": 3,
}
"""{property of pose bones that a set-up depends on: number of its values}"""
BONES = {
    "matrix_local": 16,
    "length": 1,
    "use_connect": 1,
    "use_inherit_rotation": 1,
    "inherit_scale": 1,
    "use_local_location": 1,
}
"""{property of the armature's bones that a set-up depends on: number of its values}"""

Values = tuple[Any, ...]
_Getter = Callable[[Any], Values]


def state_of(armature_object: bpy.types.Object, names: Iterable[str]) -> Values:
    """Return values that change with every edit of a set-up.

    Args:
        armature_object: the original object.
        names: of the bones of its chains.
    """
    group, pose_bones = armature_object.ccd_rig, armature_object.pose.bones
    bones = [pose_bones.get(name) for name in names]
    return (
        pose_bones.keys(),
        [
            (
                _values(row),  # all but the influence, which samples have
                _target_values(row.target, row.target_bone),
                _target_values(row.pole_target, row.pole_bone),
            )
            for row in group.constraints
        ],
        [None if bone is None else _values(bone.ccd_rig) for bone in bones],
        [(bone.ccd_rig.mass, len(bone.ccd_rig.coupled_offsets)) for bone in pose_bones],
        [foreach(pose_bones, name, width).tobytes() for name, width in POSE_BONES.items()],
        [foreach(armature_object.data.bones, name, width).tobytes() for name, width in BONES.items()],
        _values(group.solver),
        list(_library(group.poses)),
        group.body,
        group.body_helps,
        body.body_of(armature_object),
    )


def is_rebuilt(depsgraph: bpy.types.Depsgraph) -> bool:
    """Whether a scene or its dependencies were edited; motion by a key is no edit.

    Blender reports this when objects, constraints, drivers, actions or first keys are added or removed.
    """
    if not depsgraph.id_type_updated("SCENE"):
        return False
    return any(
        isinstance(update.id, bpy.types.Scene) and not update.is_updated_shading
        for update in depsgraph.updates
    )


def _target_values(target: bpy.types.Object | None, bone: str) -> tuple[int, str, bool] | None:
    """Identity of a target or pole, and whether it has the bone."""
    if target is None:
        return None
    return target.session_uid, target.name_full, target.pose is not None and bone in target.pose.bones


def _library(poses: Any) -> Iterator[tuple[str, bytes]]:
    """Names and rotations of poses."""
    for pose in poses:
        rotations = np.empty(4 * len(pose.rotations), np.float32)
        pose.rotations.foreach_get("rotation", rotations)
        yield pose.name, rotations.tobytes()


def _values(group: Any) -> Values:
    """Return all values of a group of properties; of limits without effect the kind alone."""
    if getattr(group, "kind", "") == "NONE":
        return ("NONE",)
    single, arrays, groups, lists = _getters(type(group))
    return (
        single(group),
        *map(tuple, arrays(group)),
        *map(_values, groups(group)),
        *([_values(row) for row in rows] for rows in lists(group)),
    )


@lru_cache(maxsize=32)
def _getters(group: type) -> tuple[_Getter, _Getter, _Getter, _Getter]:
    """Functions that read the single values of a group, its arrays, its groups and its collections."""
    properties: Any = group.bl_rna.properties  # type: ignore[attr-defined]
    names: dict[str, list[str]] = {"ARRAY": [], "POINTER": [], "COLLECTION": []}
    single: list[str] = []
    for name, sort in fields(group):
        if name == "influence":
            continue
        if sort == "POINTER":
            base = properties[name].fixed_type.base
            if base is None or base.identifier != "PropertyGroup":  # a data-block
                continue
        names.get(sort, single).append(name)
    return _getter(single), _getter(names["ARRAY"]), _getter(names["POINTER"]), _getter(names["COLLECTION"])


def _getter(names: list[str]) -> _Getter:
    """Make a function that reads these attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda owner: tuple(getattr(owner, name) for name in names)


class SetUp(NamedTuple):
    """Checked set-up that updates use until it is edited.

    Attributes:
        ready: the constraints and their bones.
        settings: of the solve of a frame.
        reader: samples the armature and its targets.
        state: see `state_of`.
    """

    ready: setup.Ready
    settings: FrameSolveSettings
    reader: FrameReader
    state: Values

    @classmethod
    def of(cls, armature_object: bpy.types.Object, scene: bpy.types.Scene) -> SetUp:
        """Check an armature; raises CCDRigError if it cannot be solved."""
        ready = result_of(setup.require(armature_object, scene))
        settings = single_frame.settings_of(armature_object, scene)
        reader = FrameReader.of(armature_object, ready.constraints, ready.layout, with_keyed=False)
        return cls(ready, settings, reader, state_of(armature_object, ready.layout.names))

    def is_current(self) -> bool:
        """Whether it was not edited since."""
        return self.state == state_of(self.reader.armature_object, self.ready.layout.names)

    def plants(self) -> bool:
        """Whether it plants bones."""
        return any(constraint.kind.plants for constraint in self.ready.constraints)

    def lies_on_ground(self) -> bool:
        """Whether it plants bones on the ground."""
        return any(each.kind.plants and each.on_ground for each in self.ready.constraints)


@dataclass
class Preview:
    """State of a live armature.

    Attributes:
        set_up: None until an update needs it, after `forget`, and while there are errors.
        sample: input of the shown pose; None if none is shown.
        ground: below planted bones, where constraints lie on it.
        solved: the shown pose; None if none is shown, or no constraint has influence.
        shown: clamps with influence.
        failure: message why no pose is shown; empty if one is shown.
        partner: name of another live armature with which it is in a cycle of followers; empty if in none.
    """

    set_up: SetUp | None = None
    sample: FrameSample | None = field(default=None, repr=False)
    ground: PresentGround = field(default_factory=PresentGround)
    solved: SolvedFrame | None = field(default=None, repr=False)
    shown: Collection[clamps.Place] = ()
    failure: str = ""
    partner: str = ""

    def forget(self) -> None:
        """Check the set-up and solve again at the next update."""
        self.set_up = self.sample = self.solved = None
        self.ground = PresentGround()

    @property
    def missed(self) -> frozenset[int]:
        """Indices of the constraints that miss their goals in the shown pose."""
        if self.sample is None or self.solved is None:
            return frozenset()
        return frozenset(self.sample.active) - self.solved.met

    def notes(self) -> tuple[str, ...]:
        """Messages to the user about the shown pose."""
        if self.failure:
            return (self.failure,)
        if self.partner:
            return (
                f"'{self.partner}' is live and follows this armature too: switch Live off for one of them",
            )
        if self.ground.hidden:
            return (
                f"Live does not see the ground '{self.ground.hidden}' while it is hidden: show it, or use "
                "Solve Pose and Bake, which do",
            )
        if self.set_up is not None and self.set_up.plants():
            return ("Planted bones are held where this frame has them; a bake holds them over frames",)
        return ()


def bones_ahead(
    armature_object: bpy.types.Object, depsgraph: bpy.types.Depsgraph, preview: Preview, names: Iterable[str]
) -> dict[tuple[bpy.types.Object, str], Matrix]:
    """Return world matrices of bones as the clamps show them from the next evaluation on.

    The user's constraints on these bones are not included.

    Args:
        armature_object: the original object.
        depsgraph: evaluated before the clamps were changed.
        preview: of the armature.
        names: of bones; bones outside the chains are left out.
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
    """Update the shown pose and the state of its preview.

    Args:
        armature_object: the original object, in Pose Position and not in Edit Mode.
        depsgraph: evaluated, and of the user's scene.
        preview: of the armature; changed.
        ahead: bones of other armatures whose clamps have changed since the evaluation.

    Returns:
        Whether clamps have changed.
    """
    try:
        try:
            return _update(armature_object, depsgraph, preview, ahead)
        except ReferenceError:  # an object of the set-up was deleted
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
        # The user may have copied a bone's constraints with the clamps among them.
        preview.shown = _places(armature_object)
    set_up = preview.set_up
    _require_visible(set_up, depsgraph)
    samples = set_up.reader.samples([present(set_up.reader, depsgraph, ahead=ahead)])
    sample, ground = samples[0], preview.ground
    is_moved = set_up.lies_on_ground() and ground.look(armature_object, depsgraph)
    if preview.sample is not None and not is_moved and _is_same(sample, preview.sample):
        return False
    solved, values = None, dict[clamps.Place, clamps.Values]()
    if sample.active:
        solved = single_frame.solve_sample(
            armature_object, set_up.ready, samples, set_up.settings, lambda _points, _room: ground.ground
        )
        values = _clamp_values(sample, solved)
    changed = clamps.show(armature_object, values, preview.shown)
    preview.sample, preview.solved, preview.shown = sample, solved, values.keys()
    preview.failure = ""
    return changed


def _require_visible(set_up: SetUp, depsgraph: bpy.types.Depsgraph) -> None:
    """Raise RigError if a target is hidden: Blender does not evaluate hidden objects."""
    hidden = {thing for thing, _ in set_up.reader.hidden(depsgraph)}
    for source in set_up.reader.targets.sources if hidden else ():
        for thing, _ in objects_of([source]):
            if thing in hidden:
                raise RigError(
                    f"Constraint '{source.constraint.name}': Live does not see '{thing.name}' while it is "
                    "hidden: show it, or use Solve Pose and Bake, which do"
                )


def _clamp_values(sample: FrameSample, solved: SolvedFrame) -> dict[clamps.Place, clamps.Values]:
    """Values of the clamps that show a solved frame."""
    names = sample.reading.bones
    values: dict[clamps.Place, clamps.Values] = {
        (names[j], clamps.ROTATION): clamps.rotation_clamp(solved.pose.rotations[j]) for j in solved.rotated
    }
    for j, location in solved.located.items():
        values[names[j], clamps.LOCATION] = tuple(np.float32(location).tolist())
    return values


def _places(armature_object: bpy.types.Object) -> list[clamps.Place]:
    """Bones and kinds of all clamps of an armature."""
    return [(bone.name, clamps.kind_of(clamp)) for bone, clamp in clamps.clamps_of(armature_object)]


def _is_same(sample: FrameSample, other: FrameSample) -> bool:
    """Whether two samples lead to the same pose. Stored curves of a bake depend on the frame number."""
    return (
        sample.frame == other.frame
        and (sample.reading is other.reading or sample.reading == other.reading)
        and sample.matrix_world == other.matrix_world
        and sample.targets == other.targets
        and sample.influences == other.influences
        and sample.unplanted == other.unplanted
    )
