# SPDX-License-Identifier: GPL-3.0-or-later
"""Live preview of armatures: their state, the detection of edits, and the update of the shown pose.

Blender reports an armature after an update of its clamps exactly as after an edit of a property. Properties
that are keyed, or set by a script, are not reported at all. Edits are therefore detected by comparing values,
which costs a small part of checking a set-up.

Every update solves the frame as Solve and a bake do, from the pose in the channels and with the armature's
settings. Handlers update the previews, and remove them before saves, renders and copies. Blender evaluates
a handler's changes in a second pass without handlers, so an update causes no other. Another evaluation is
needed only where a solve depends on a second armature's clamps, see `catch_up`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import bpy
import numpy as np
from mathutils import Matrix, Quaternion

from ..errors import CCDRigError, RigError
from ..skeleton.kinematics import forward_kinematics
from ..solvers.stepping import result_of
from . import checks, evaluations
from .bake import single_frame
from .bake.single_frame import SolvedFrame
from .keys.channels import addon_properties
from .properties import armature_data, body
from .properties.active_rig import with_settings
from .registration import Handlers
from .rig import clamps
from .rig.rotation_modes import foreach
from .scene.evaluation import FrameReader, Samples, present
from .scene.ground import PresentGround
from .scene.isolation import is_isolated
from .scene.targets import NOTHING_AHEAD, Ahead, objects_of
from .solve.methods import FrameSolveSettings, SolveMemory
from .viewport.constraints import Outcome

POSE_BONES = ("rotation_mode", "lock_rotation", "lock_rotation_w", "lock_rotations_4d", "lock_location")
"""Properties of pose bones that a set-up depends on."""
BONES = (
    "matrix_local",
    "length",
    "use_connect",
    "use_inherit_rotation",
    "inherit_scale",
    "use_local_location",
)
"""Properties of the armature's bones that a set-up depends on."""

UNSEEN = frozenset(
    (
        "influence",
        "known_as",
        "slide_is_made",
        "stiffness_made",
        "start_rotation",
        "start_before",
    )
)
"""Stored settings that no set-up depends on; samples have the influence."""
Values = tuple[Any, ...]


def state_of(armature_object: bpy.types.Object) -> Values:
    """Return values that change with every edit of a set-up; `armature_object`: the original object."""
    pose_bones, poses = armature_object.pose.bones, armature_object.ccd_rig.poses
    names, group = pose_bones.keys(), _stored(armature_object)
    rows = [_settings(row) for row in group.get("constraints", ())]
    joints = [(bone.name, _settings(_stored(bone))) for bone in with_settings(pose_bones)]
    return (
        names,
        rows,
        [
            (
                _target_values(row.get("target"), row.get("target_bone", "")),
                _target_values(row.get("pole_target"), row.get("pole_bone", "")),
            )
            for row in rows
        ],
        [joint for joint in joints if joint[1]],
        [foreach(pose_bones, *each).tobytes() for each in _widths(bpy.types.PoseBone, POSE_BONES)],
        [foreach(armature_object.data.bones, *each).tobytes() for each in _widths(bpy.types.Bone, BONES)],
        _settings(group.get("solver")),
        [(pose.name, foreach(pose.rotations, "rotation", 4).tobytes()) for pose in poses],
        group.get("body"),
        group.get("body_helps"),
        body.body_of(armature_object),
    )


def _stored(owner: Any) -> Any:
    """Return the stored group of an object or bone that has settings; getters take three times as long."""
    return addon_properties(owner)["ccd_rig"]


def _settings(group: Any) -> dict[str, Any]:
    """Return what is set in a stored group; of constraints all but the influence, which samples have.

    Reading a group creates those within it: empty ones are left out.
    """
    return {} if group is None else _filled(group.to_dict())


def _filled(values: dict[str, Any]) -> dict[str, Any]:
    filled = {}
    for name, value in values.items():
        if isinstance(value, dict):
            value = _filled(value)
            if not value:
                continue
        if name not in UNSEEN:
            filled[name] = value
    return filled


@cache
def _widths(kind: type, names: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return properties of a type, each with the number of its values."""
    properties: Any = kind.bl_rna.properties  # type: ignore[attr-defined]
    return [(name, max(1, getattr(properties[name], "array_length", 1))) for name in names]


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


class SetUp(NamedTuple):
    """Checked set-up that updates use until it is edited."""

    ready: checks.Ready  # the constraints and their bones
    settings: FrameSolveSettings  # of the solve of a frame
    reader: FrameReader  # samples the armature and its targets
    state: Values  # see `state_of`

    @classmethod
    def of(cls, armature_object: bpy.types.Object, scene: bpy.types.Scene) -> SetUp:
        """Check an armature; raises CCDRigError if it cannot be solved."""
        ready = result_of(checks.require(armature_object, scene, keyed=False))
        settings = single_frame.settings_of(armature_object, scene, memory=SolveMemory())
        reader = FrameReader.of(armature_object, ready.constraints, ready.layout, with_keyed=False)
        return cls(ready, settings, reader, state_of(armature_object))

    def is_current(self) -> bool:
        """Whether it was not edited since."""
        return self.state == state_of(self.reader.armature_object)

    def plants(self) -> bool:
        """Whether it plants bones."""
        return any(constraint.kind.plants for constraint in self.ready.constraints)


@dataclass
class Preview:
    """State of a live armature."""

    set_up: SetUp | None = None  # None until an update needs it, after `forget`, and while there are errors
    sample: Samples | None = field(default=None, repr=False)  # input of the shown pose, if one is shown
    ground: PresentGround = field(default_factory=PresentGround)  # below planted bones, if they lie on it
    # The shown pose; None if none is shown, or no constraint has influence.
    solved: SolvedFrame | None = field(default=None, repr=False)
    shown: Collection[clamps.Place] = ()  # clamps with influence
    failure: str = ""  # message why no pose is shown; empty if one is shown
    partner: str = ""  # name of another live armature that follows it, and that it follows; or empty

    def forget(self) -> None:
        """Check the set-up and solve again at the next update."""
        self.set_up = self.sample = self.solved = None
        self.ground = PresentGround()

    def is_current(self) -> bool:
        """Whether its set-up was not edited since it was checked."""
        try:
            return self.set_up is not None and self.set_up.is_current()
        except ReferenceError:  # an object of the set-up was deleted
            return False

    @property
    def outcomes(self) -> dict[int, Outcome]:
        """{index of a constraint with influence: how it ended in the shown pose}."""
        if self.sample is None or self.solved is None:
            return {}
        outcomes = dict.fromkeys(self.sample[0].active, Outcome.MISSED)
        outcomes |= dict.fromkeys(self.solved.met, Outcome.MET)
        return outcomes | dict.fromkeys(self.solved.gave_way, Outcome.GAVE_WAY)

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
    if sample is None or solved is None or wanted.isdisjoint(sample.rig.layout.names):
        return {}
    reading, world = sample.rig.reading(0), Matrix(sample.worlds[0].tolist())
    transforms = forward_kinematics(reading.skeleton, solved.pose)
    evaluated = armature_object.evaluated_get(depsgraph).pose.bones
    return {
        (armature_object, name): world
        @ Matrix.LocRotScale(at.translation, at.rotation, evaluated[name].matrix.to_scale())
        for name, at in zip(reading.bones, transforms, strict=True)
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
    sample, ground = set_up.reader.samples([present(set_up.reader, depsgraph, ahead=ahead)]), preview.ground
    lies = any(each.kind.plants and each.on_ground for each in set_up.ready.constraints)
    is_moved = lies and ground.look(armature_object, depsgraph)
    if preview.sample is not None and not is_moved and _is_same(sample, preview.sample):
        return False
    solved, values = None, dict[clamps.Place, clamps.Values]()
    if (sample.influences > 0.0).any():
        solved = single_frame.solve_sample(
            armature_object,
            armature_object.evaluated_get(depsgraph),
            set_up.ready,
            sample,
            set_up.settings,
            lambda _points, _room: ground.ground,
        )
        values = _clamp_values(sample, solved)
    changed = clamps.show(armature_object, values, preview.shown)
    preview.sample, preview.solved, preview.shown = sample, solved, values.keys()
    preview.failure = ""
    return changed


def _require_visible(set_up: SetUp, depsgraph: bpy.types.Depsgraph) -> None:
    """Raise RigError if a target is hidden: Blender does not evaluate hidden objects."""
    hidden = {obj for obj, _ in set_up.reader.hidden(depsgraph)}
    for source in set_up.reader.targets.sources if hidden else ():
        for obj, _ in objects_of([source]):
            if obj in hidden:
                raise RigError(
                    f"Constraint '{source.constraint.name}': Live does not see '{obj.name}' while it is "
                    "hidden: show it, or use Solve Pose and Bake, which do"
                )


def _clamp_values(sample: Samples, solved: SolvedFrame) -> dict[clamps.Place, clamps.Values]:
    """Values of the clamps that show a solved frame."""
    names, rotations = sample.rig.layout.names, solved.motion.keyed.rotations[0].tolist()
    values: dict[clamps.Place, clamps.Values] = {
        (names[j], clamps.ROTATION): clamps.rotation_clamp(Quaternion(rotations[j])) for j in solved.rotated
    }
    for j, location in solved.located.items():
        values[names[j], clamps.LOCATION] = tuple(np.float32(location).tolist())
    return values


def _places(armature_object: bpy.types.Object) -> list[clamps.Place]:
    """Bones and kinds of all clamps of an armature."""
    return [(bone.name, clamps.kind_of(clamp)) for bone, clamp in clamps.clamps_of(armature_object)]


def _is_same(sample: Samples, other: Samples) -> bool:
    """Whether two samples lead to the same pose. Stored curves of a bake depend on the frame number."""
    pairs = zip(_numbers_of(sample), _numbers_of(other), strict=True)
    is_moved = sample.rig is not other.rig and sample.rig.reading(0) != other.rig.reading(0)
    return not is_moved and all(a.tobytes() == b.tobytes() for a, b in pairs)


def _numbers_of(sample: Samples) -> list[Any]:
    """Arrays of a sample, without the bones."""
    unplanted = [] if sample.unplanted is None else [sample.unplanted]
    return [sample.frames, sample.worlds, sample.influences, *sample.targets[:5], *unplanted]


# The previews, and Blender's handlers -----------------------------------------------------------------------


_previews: dict[int, Preview] = {}  # by session_uid: references to objects do not survive undo
_switched_off_by_save: list[int] = []
_late: dict[str, str] = {}  # for `catch_up`: name of a scene -> name of its view layer
_seen: set[int] = set()  # `session_uid` of armature objects checked by `end_copies` while none was live
_catching_up: list[bpy.types.Scene] = []  # the scene that `catch_up` evaluates, or empty
_HANDLERS = Handlers()
_EVALUATIONS = Handlers()  # registered only while an armature is live


def preview_of(armature_object: bpy.types.Object) -> Preview | None:
    """Preview of an armature; None if it is not live."""
    return _previews.get(armature_object.session_uid) if armature_data.is_live(armature_object) else None


def switch(armature_object: bpy.types.Object, on: bool) -> None:
    """Switch the preview of an armature on or off."""
    if on:
        armature_object.ccd_rig.live = True
    else:
        _end(armature_object)


def show_edit(armature_object: bpy.types.Object) -> None:
    """Let the preview show what an operator has set, of which Blender reports nothing.

    Without constraints it ends.
    """
    if not armature_object.is_property_set("ccd_rig") or not armature_object.ccd_rig.live:
        return
    if len(armature_object.ccd_rig.constraints):
        armature_object.update_tag()
    else:
        switch(armature_object, False)


# --- updates ------------------------------------------------------------------------------------------------


@_EVALUATIONS.on("depsgraph_update_pre", "frame_change_pre")
def let_go(scene: bpy.types.Scene, *_depsgraph: object) -> None:
    """Switch off the clamps of edited set-ups before an evaluation.

    A chain whose constraint went, or that became shorter, leaves clamps below other chains. They would be
    solved where these clamps hold them.
    """
    if clamps.is_suspended():
        return
    for armature_object in _armatures(scene.objects):
        preview = _previews.get(armature_object.session_uid)
        if preview is not None and preview.shown and not preview.is_current():
            preview.forget()
            clamps.show(armature_object, {}, preview.shown)


@_EVALUATIONS.on("depsgraph_update_post", "frame_change_post")
def follow(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """Update the previews of a scene after an evaluation or frame change."""
    if clamps.is_suspended() or depsgraph.mode == "RENDER":
        return
    shown = list(_shown(scene, depsgraph))
    if is_rebuilt(depsgraph):
        for armature_object in shown:
            _preview(armature_object).forget()
    before = [_preview(armature_object).set_up for armature_object in shown]
    changed = _follow_all(shown, depsgraph)
    # A target may depend on another armature. A chain that became shorter was solved on clamps now removed.
    is_edited = any(
        _preview(armature_object).set_up is not set_up
        for armature_object, set_up in zip(shown, before, strict=True)
    )
    if changed and (is_edited or len(shown) > 1) and not _catching_up:
        _late[scene.name] = depsgraph.view_layer.name
        _soon(catch_up)


def _soon(function: Callable[[], None]) -> None:
    """Let a timer call a function. Without a window timers do not run, and a left one crashes the exit."""
    if not bpy.app.background and not bpy.app.timers.is_registered(function):
        bpy.app.timers.register(function, first_interval=0.0)


def catch_up() -> None:
    """Update, by a timer, armatures whose solves used clamps that have moved since.

    A handler cannot evaluate clamps that it has changed: Blender crashes.
    """
    late = dict(_late)
    _late.clear()
    for scene_name, layer_name in late.items():
        scene = bpy.data.scenes.get(scene_name)
        layer = scene.view_layers.get(layer_name) if scene is not None else None
        if scene is not None and layer is not None and not clamps.is_suspended():
            _catch_up(scene, layer)


def _catch_up(scene: bpy.types.Scene, layer: bpy.types.ViewLayer) -> None:
    live = [rig for rig in _armatures(scene.objects) if armature_data.is_live(rig)]
    _catching_up.append(scene)
    try:
        for _ in live:  # a chain of followers has at most this length
            before = [_preview(rig).sample for rig in live]
            for rig in live:
                rig.update_tag()
            layer.update()
            if all(_preview(rig).sample is sample for rig, sample in zip(live, before, strict=True)):
                break
    finally:
        _catching_up.pop()


def _shown(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> Iterator[bpy.types.Object]:
    """Live armatures of a scene that can show a pose at present."""
    for armature_object in _armatures(scene.objects):
        uid = armature_object.session_uid
        if uid not in armature_data.switched_on:
            continue
        if not armature_object.ccd_rig.live:
            if uid in _previews:
                _end(armature_object)
        elif _may_show(armature_object, depsgraph):
            yield armature_object
        elif armature_object.data.is_editmode:
            _preview(armature_object).forget()


def _preview(armature_object: bpy.types.Object) -> Preview:
    return _previews.setdefault(armature_object.session_uid, Preview())


def _follow_all(armature_objects: Sequence[bpy.types.Object], depsgraph: bpy.types.Depsgraph) -> bool:
    """Update previews in the order in which armatures depend on each other; whether clamps have changed.

    An armature that follows another uses its bones as the clamps will show them.
    """
    changed = False
    targets: _Targets = {}
    for armature_object in armature_objects:
        rows = armature_object.ccd_rig.constraints if len(armature_objects) > 1 else ()
        bones = {(row.target, row.target_bone) for row in rows}
        bones |= {(row.pole_target, row.pole_bone) for row in rows}
        targets[armature_object] = {(target, bone) for target, bone in bones if target is not None and bone}
    ahead: dict[tuple[bpy.types.Object, str], Matrix] = {}
    for armature_object in _leaders_first(targets):
        preview = _preview(armature_object)
        notes = preview.notes()
        leaders = _leaders_of(targets, armature_object)
        partners = (
            rig.name
            for rig in targets
            if rig != armature_object and rig in leaders and armature_object in _leaders_of(targets, rig)
        )
        preview.partner = next(partners, "")
        if update(armature_object, depsgraph, preview, ahead):
            changed = True
            names = {bone for bones in targets.values() for rig, bone in bones if rig == armature_object}
            ahead |= bones_ahead(armature_object, depsgraph, preview, names)
        if preview.notes() != notes:  # the panel shows them
            for window in bpy.context.window_manager.windows:
                for area in window.screen.areas:
                    if area.type == "VIEW_3D":
                        area.tag_redraw()
    return changed


_Targets: TypeAlias = dict[bpy.types.Object, set[tuple[bpy.types.Object, str]]]
"""{armature object: the bones that are its targets and poles, (armature object, bone)}"""


def _leaders_of(targets: _Targets, armature_object: bpy.types.Object) -> set[bpy.types.Object]:
    """Objects that an armature object follows, directly or through others."""
    leaders, pending = set[bpy.types.Object](), [armature_object]
    while pending:
        for leader, _ in targets.get(pending.pop(), ()):
            if leader not in leaders:
                leaders.add(leader)
                pending.append(leader)
    return leaders


def _leaders_first(targets: _Targets) -> Iterator[bpy.types.Object]:
    """Armature objects after those that they follow; a cycle is broken at its first."""
    pending = list(targets)
    while pending:
        free = (
            rig
            for rig in pending
            if not any(leader != rig and leader in pending for leader, _ in targets[rig])
        )
        armature_object = next(free, pending[0])
        pending.remove(armature_object)
        yield armature_object


def _may_show(armature_object: bpy.types.Object, depsgraph: bpy.types.Depsgraph | None) -> bool:
    """Whether an armature can show a pose at present, and no render of its keys is running."""
    if depsgraph is None or armature_object.mode == "EDIT" or armature_object.data.pose_position == "REST":
        return False
    first = next(clamps.clamps_of(armature_object), None)
    if first is None:  # new clamps would get into the frames of a render
        if bpy.app.is_job_running("RENDER"):
            return False
    elif first[1].mute:
        return False
    evaluated = armature_object.evaluated_get(depsgraph)
    return evaluated.is_evaluated and armature_object.visible_get(view_layer=depsgraph.view_layer)


# --- ends ---------------------------------------------------------------------------------------------------


def _end(armature_object: bpy.types.Object) -> None:
    """Remove the preview of an armature, and switch Live off."""
    uid = armature_object.session_uid
    _previews.pop(uid, None)
    clamps.remove(armature_object)
    if armature_object.is_property_set("ccd_rig") and armature_object.ccd_rig.is_property_set("live"):
        armature_object.ccd_rig.property_unset("live")


def end_copies(
    scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph, armatures: Sequence[bpy.types.Object]
) -> None:
    """Switch Live off for copies of live armatures, and for armatures from other files.

    No handler is called when Blender writes single data-blocks (`bpy.data.libraries.write`), clamps included.
    Clamps of linked armatures are removed in memory, whenever their library is read. A target that files do
    not keep (`ID.is_runtime_data`), without which a clamp does nothing, is no cure: from Blender 4.5 on it is
    written along.
    """
    on = armature_data.switched_on
    for rig in armatures:
        uid = rig.session_uid
        if uid in on or uid in _seen:
            continue
        if depsgraph.mode == "RENDER" or clamps.is_suspended() or is_isolated(scene):
            return
        if not on:
            _seen.add(uid)
        if (rig.is_property_set("ccd_rig") and rig.ccd_rig.live) or any(clamps.clamps_of(rig)):
            _end(rig)


@_HANDLERS.on("frame_change_post")
def end_copies_of_frame(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """Call `end_copies` at a frame change, which may be the first evaluation of data from another file."""
    if clamps.is_suspended():  # as in a bake, which changes many frames
        return
    if armatures := evaluations.armatures_in(depsgraph):
        end_copies(scene, depsgraph, armatures)


def _armatures(objects: Any) -> Iterator[bpy.types.Object]:
    return (candidate for candidate in objects if candidate.type == "ARMATURE")


@_HANDLERS.on("load_post")
def end_all(*_arguments: object) -> None:
    """Switch Live off for all armatures of a file that was opened."""
    _previews.clear()
    _late.clear()
    _seen.clear()
    armature_data.switched_on.clear()
    _EVALUATIONS.unregister()
    for rig in _armatures(bpy.data.objects):
        _end(rig)


def end_left() -> None:
    """Remove, by a timer after the extension was enabled, previews that undo has restored.

    They are from before the extension was disabled.
    """
    for rig in _armatures(bpy.data.objects):
        if rig.session_uid not in armature_data.switched_on:
            _end(rig)


@_HANDLERS.on("undo_post", "redo_post")
def forget_all(*_arguments: object) -> None:
    """Make all previews anew after undo or redo, which replace the objects and evaluate them."""
    _seen.clear()
    for preview in _previews.values():
        preview.forget()


@_HANDLERS.on("save_pre")
def before_save(*_arguments: object) -> None:
    """Remove all previews before a file is saved."""
    editable = [rig for rig in _armatures(bpy.data.objects) if rig.is_editable]
    _switched_off_by_save[:] = [rig.session_uid for rig in editable if armature_data.is_live(rig)]
    for rig in editable:
        _end(rig)


@_HANDLERS.on("save_post", "save_post_fail")
def after_save(*_arguments: object) -> None:
    """Switch Live on again for armatures that were live before the save."""
    for rig in _armatures(bpy.data.objects):
        if rig.session_uid in _switched_off_by_save:
            rig.ccd_rig.live = True
    _switched_off_by_save.clear()


@_HANDLERS.on("render_init")
def before_render(*_arguments: object) -> None:
    """Mute the clamps, so that the render shows the keys. Nothing is solved while they are muted."""
    clamps.mute_all(True)


@_HANDLERS.on("render_complete", "render_cancel")
def after_render(*_arguments: object) -> None:
    """Show the previews again after a render has ended or was cancelled."""
    clamps.mute_all(False)
    forget_all()


def _start_following() -> None:
    """Listen to evaluations from the first switch to Live until another file is opened.

    Undo and redo may switch Live on again.
    """
    _seen.clear()
    evaluations.wake()
    _EVALUATIONS.register()


def register() -> None:
    """Register the handlers; those of all evaluations only while an armature is live."""
    evaluations.add(end_copies, lambda _armature_object: not armature_data.switched_on)
    armature_data.begin.append(_start_following)
    _HANDLERS.register()
    _soon(end_left)  # Blender hides the file while it enables an extension


def unregister() -> None:
    """Unregister the handlers, and remove all previews."""
    _HANDLERS.unregister()
    _EVALUATIONS.unregister()
    armature_data.begin.remove(_start_following)
    evaluations.remove(end_copies)
    for timer in (catch_up, end_left):
        if bpy.app.timers.is_registered(timer):
            bpy.app.timers.unregister(timer)
    armature_data.switched_on.clear()
    # Blender hides the file while it enables an extension: without objects nothing is live.
    for rig in _armatures(getattr(bpy.data, "objects", ())):
        if rig.is_editable:
            _end(rig)
