# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of constraints of an armature: the active one, chains, and adding, removing and moving them.

Blender's F-curves and drivers address a constraint by its index. Removing and moving therefore renumber the
drivers, and the F-curves of all actions of the armature. A limb is a branch of the bone tree, see
`limb_length`. Influences get keys in the present action: 1 in spans of frames, 0 between them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import bpy

from ... import json_text
from ...errors import RigError
from .. import evaluations
from ..registration import Handlers
from .active_rig import is_from_library, keep_overrides, linked_reference, rigs_with_settings, with_settings
from .names import named

JOINED = 1e-3
"""Gap between a head and its parent's tail up to which they are joined, as a fraction of the length."""
LIMB = 0.3
"""Extent from which a branch is a limb itself, as a fraction of the extent of the branch beside it."""
TWIN = 0.02
"""Difference in extent up to which two branches, such as arms, are a pair, as a fraction of the extent."""
ALIKE = 1e-4
"""Difference up to which a bone has taken its length from its parent, as a fraction of the length."""
END_WORDS = ("leaf", "end", "nub")
"""Words in names of bones that importers and exporters put at the end of a limb."""
GLTF_COLLECTION = "glTF_not_exported"
"""Collection of the custom shape that Blender's glTF importer gives to bones. It guesses their tails."""

_PATH = re.compile(r"ccd_rig\.constraints\[(\d+)\]\.(.*)", re.DOTALL)


def active(armature_object: bpy.types.Object) -> Any:
    """Return the constraint that is shown below the list, or None."""
    listed, index = armature_object.ccd_rig.constraints, armature_object.ccd_rig.active_index
    return listed[index] if 0 <= index < len(listed) else None


def chain(armature_object: bpy.types.Object, tip: str, length: int = 0) -> tuple[bpy.types.PoseBone, ...]:
    """Return the bones of a chain, tip first; none if there is no bone `tip`.

    Args:
        length: number of bones, counted from the tip; 0, or more than there are, goes to the root.
    """
    bone = armature_object.pose.bones.get(tip)
    return () if bone is None else (bone, *bone.parent_recursive)[: length or None]


def chain_of(armature_object: bpy.types.Object, row: Any) -> tuple[bpy.types.PoseBone, ...]:
    """Return the bones of a constraint's chain, tip first; the constraint may be stored or a value."""
    return chain(armature_object, row.tip, row.chain_length)


def limb_length(armature_object: bpy.types.Object, tip: str) -> int:
    """Return the number of bones from a tip up to where its limb begins; 0 if that is the root, or no bone.

    The bone above a limb also carries another one. A limb has at least two bones, and is not much shorter
    than its neighbour: a mane on a neck or feathers on a wing are none. The chain also ends below a root that
    it is not joined to, as in game rigs.

    The chain of a lone bone that is joined to its parent, such as a head on the chest, continues past the
    first such parent. That of a bone of a pair does not.
    """
    to_root = chain(armature_object, tip)
    if not to_root:
        return 0
    extents = _extents(to_root[0].id_data.data)
    goes_on = _is_single_end(to_root[0], extents)
    for count, bone in enumerate(to_root[1:], 1):
        below = to_root[count - 1]
        least = LIMB * extents[below.name]
        carries = any(c != below and c.children and extents[c.name] >= least for c in bone.children)
        stands_apart = bone.parent is None and not is_joined(below)
        if stands_apart or (carries and (count > 1 or not goes_on)):
            return count
    return 0


def _is_single_end(bone: bpy.types.PoseBone, extents: Mapping[str, float]) -> bool:
    """Whether a bone without children is joined to its parent, which carries no other of the same extent."""
    if bone.children or bone.parent is None or not is_joined(bone):
        return False
    extent = extents[bone.name]
    siblings = (extents[child.name] for child in bone.parent.children if child != bone)
    return not any(abs(sibling - extent) <= TWIN * extent for sibling in siblings)


def _extents(armature: Any) -> dict[str, float]:
    """Return the length of the longest path from the head of each bone to a tip below it, at rest."""
    extents = {bone.name: float(bone.length) for bone in armature.bones}
    for bone in reversed(armature.bones):  # an armature lists parents first
        if bone.parent is not None:
            length = (bone.head_local - bone.parent.head_local).length + extents[bone.name]
            extents[bone.parent.name] = max(extents[bone.parent.name], length)
    return extents


def is_joined(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone starts where its parent ends."""
    gap = (bone.bone.head_local - bone.parent.bone.tail_local).length
    return bool(bone.bone.use_connect) or gap <= JOINED * bone.bone.length


def has_guessed_tail(bone: bpy.types.PoseBone) -> bool:
    """Whether an importer guessed the tail of a bone at the end of a limb: its tail lies past the limb.

    Such a bone is as long as its parent, and one of: its name says that it is an end; it has the custom shape
    of Blender's glTF importer; it does not begin where its parent ends.
    """
    parent = bone.parent
    if bone.children or parent is None:
        return False
    if abs(bone.bone.length - parent.bone.length) > ALIKE * bone.bone.length:
        return False
    words = bone.name.lower().replace(".", "_").replace("-", "_").split("_")
    shape: Any = bone.custom_shape
    has_gltf_shape = shape is not None and any(c.name == GLTF_COLLECTION for c in shape.users_collection)
    return bool(set(words) & set(END_WORDS)) or has_gltf_shape or not is_joined(bone)


def add(armature_object: bpy.types.Object, name: str, tip: str) -> Any:
    """Append a constraint, make it the active one, and return it.

    Its name gets a number if `name` is taken.
    """
    group = armature_object.ccd_rig
    constraint = group.constraints.add()
    constraint.name = name
    constraint.tip = tip
    group.active_index = len(group.constraints) - 1
    _note_order(armature_object)
    return constraint


def remove(armature_object: bpy.types.Object, index: int) -> list[str]:
    """Remove a constraint with its drivers and its keys.

    Returns:
        Names of actions whose keys of constraints keep the former order of the list: they are linked from a
        library, or unused and perhaps another rig's.

    Raises:
        RigError: it comes from the library of an override: Blender keeps it.
    """
    group = armature_object.ccd_rig
    require_local(armature_object, index)
    left = _renumber(armature_object, lambda i: None if i == index else i - (i > index))
    group.constraints.remove(index)
    group.active_index = max(0, min(index, len(group.constraints) - 1))
    _note_order(armature_object)
    return left


def move(armature_object: bpy.types.Object, index: int, new_index: int) -> list[str]:
    """Swap two neighbouring constraints, with their drivers and their keys; returns as `remove`.

    Raises:
        RigError: one of the two comes from the library of an override: Blender keeps its place.
    """
    group = armature_object.ccd_rig
    for i in (index, new_index):
        require_local(armature_object, i)
    left = _renumber(armature_object, lambda i: {index: new_index, new_index: index}.get(i, i))
    group.constraints.move(index, new_index)
    group.active_index = new_index
    _note_order(armature_object)
    return left


def order_kept_in(actions: Sequence[str]) -> str:
    """Return a warning about the actions that `remove` and `move` return."""
    return (
        f"Keys of constraints in {named(actions)} keep the former order of the list: make such actions local "
        "and let the rig use them before a constraint is moved or removed"
    )


def require_local(armature_object: bpy.types.Object, index: int) -> None:
    """Raise RigError, which names the constraint, if it comes from the library of an override."""
    row = armature_object.ccd_rig.constraints[index]
    name = row.name
    if is_from_library(row, "constraints"):
        raise RigError(
            f"constraint '{name}' comes from the library that '{armature_object.name}' overrides: "
            "it can be disabled here, but removed or moved only in the library's file"
        )


def _renumber(armature_object: bpy.types.Object, number: Callable[[int], int | None]) -> list[str]:
    """Give the drivers and F-curves of constraints other indices, or remove them; returns as `remove`.

    Args:
        number: new index of a constraint by the former one; None for one that is removed.
    """

    from ..keys.channels import drivers_of, every_bag, idle_bags

    def changed(curves: Iterable[bpy.types.FCurve]) -> list[tuple[bpy.types.FCurve, int | None, str]]:
        matches = ((curve, _PATH.fullmatch(curve.data_path)) for curve in curves)
        rows = [(curve, int(match[1]), match[2]) for curve, match in matches if match]
        return [(c, number(row), field) for c, row, field in rows if number(row) != row]

    # By path: Blender frees all drivers of a path at once.
    for path in {c.data_path for c, row, _ in changed(drivers_of(armature_object)) if row is None}:
        armature_object.driver_remove(path)
    for driver, row, field in changed(drivers_of(armature_object)):
        driver.data_path = f"ccd_rig.constraints[{row}].{field}"
    is_only = not any(len(rig.ccd_rig.constraints) for rig in rigs_with_settings() if rig != armature_object)
    bags = [(*pair, True) for pair in every_bag(armature_object)]
    bags += [(*pair, is_only) for pair in idle_bags(armature_object)]
    left = set()
    for action, bag, is_own in bags:
        curves = changed(bag.fcurves)
        if curves and not (is_own and action.is_editable):
            left.add(action.name)
            continue
        for curve, row, field in curves:
            if row is not None:
                curve.data_path = f"ccd_rig.constraints[{row}].{field}"
                continue
            group = curve.group
            bag.fcurves.remove(curve)
            if group is not None and not len(group.channels):
                bag.groups.remove(group)
    return sorted(left)


# Orders of overrides ----------------------------------------------------------------------------------------

_HANDLERS = Handlers()


@_HANDLERS.on("save_pre", "load_post")
def follow_orders(*_arguments: object) -> None:
    """Let keys of overrides follow their constraints, see `_follow`, whatever is evaluated."""
    _follow(list(_overrides(bpy.data.objects)))


def follow_reload(
    _scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph, armatures: Sequence[bpy.types.Object]
) -> None:
    """Let keys of overrides follow their constraints, as after the reload of a library."""
    _follow(_overrides(armatures))


def _follow(overrides: Iterable[bpy.types.Object]) -> None:
    """Let keys and drivers of overrides follow the constraints where the library has another order by now.

    Those of a constraint that is gone go with it. A constraint with a new name at its old place was renamed.
    """

    def place(index: int) -> int | None:
        if index >= len(saved):
            return index
        if saved[index] in present:
            return present.index(saved[index])
        is_renamed = index < len(present) and present[index] not in saved
        return index if is_renamed else None

    for armature_object in overrides:
        saved, present = _saved_order(armature_object), armature_object.ccd_rig.constraints.keys()
        if saved != present:
            numbered = _number_doubles(armature_object)
            saved = [numbered.get(name, name) for name in saved]
            present = armature_object.ccd_rig.constraints.keys()
            _renumber(armature_object, place)
            _note_order(armature_object)


def _number_doubles(armature_object: bpy.types.Object) -> dict[str, str]:
    """Give constraints of an override whose names its library has by now a number: {former name: new name}.

    Blender puts those of the library behind them, and would save values of the one as those of the other.
    """
    rows = armature_object.ccd_rig.constraints
    numbered, later = dict[str, str](), set[str]()
    for row in reversed(rows):
        if (name := row.name) in later:
            row.name = name  # which makes it unique
            numbered[name] = row.name
        later.add(name)
    return numbered


def _note_order(armature_object: bpy.types.Object) -> None:
    """Note the order of the constraints of an override, since its library may get another."""
    import json

    if linked_reference(armature_object) is not None:
        armature_object.ccd_rig.saved_order = json.dumps(armature_object.ccd_rig.constraints.keys())
        keep_overrides(armature_object)


def _overrides(objects: Iterable[bpy.types.Object]) -> Iterator[bpy.types.Object]:
    """Yield the overrides of armatures that have constraints, or had some."""
    for obj in with_settings(objects):
        if obj.type == "ARMATURE" and linked_reference(obj) is not None:
            yield obj


def _saved_order(armature_object: bpy.types.Object) -> list[str]:
    """Return the noted order; none where it is missing or damaged."""
    try:
        names = json_text.parse(armature_object.ccd_rig.saved_order or "[]")
    except json_text.NotJson:
        return []
    return names if isinstance(names, list) else []


def register() -> None:
    """Register the handlers."""
    evaluations.add(follow_reload, lambda armature_object: linked_reference(armature_object) is None)
    _HANDLERS.register()


def unregister() -> None:
    """Unregister the handlers."""
    _HANDLERS.unregister()
    evaluations.remove(follow_reload)


def moved_settings(
    armature_object: bpy.types.Object, constraints: Iterable[Any]
) -> Iterator[tuple[Any, Any]]:
    """Yield the animated settings of constraints: the constraint, and the RNA of the property."""
    from ..keys.channels import animated_components

    animated = {path for path, _ in animated_components(armature_object)}
    if not any(path.startswith("ccd_rig.constraints[") for path in animated):
        return
    for constraint in constraints:
        path = constraint.path_from_id()
        for setting in constraint.bl_rna.properties:
            if f"{path}.{setting.identifier}" in animated:
                yield constraint, setting


# Keys of influences -----------------------------------------------------------------------------------------


INFLUENCE = "influence"


def require_keyable_influences(armature_object: bpy.types.Object, constraints: Sequence[Any]) -> None:
    """Raise RigError, which names the constraint, unless influences can be keyed."""
    from ..keys.channels import action_of, drivers_of, fcurves_of

    action = action_of(armature_object)
    if action is not None and not action.is_editable:
        raise RigError(
            f"Action '{action.name}' is linked from a library: make it local to key Influence in it"
        )
    require_no_tweak(armature_object)
    for constraint in constraints:
        path = constraint.path_from_id(INFLUENCE)
        where = f"Constraint '{constraint.name}': Influence"
        if any(driver.data_path == path for driver in drivers_of(armature_object)):
            raise RigError(f"{where} has a driver: remove it, or disable the constraint")
        for curve in fcurves_of(armature_object):
            if curve.data_path == path and (curve.lock or (curve.group is not None and curve.group.lock)):
                raise RigError(f"{where} has a locked F-curve: unlock it in the Graph Editor")


def require_no_tweak(armature_object: bpy.types.Object) -> None:
    """Raise RigError if an NLA strip is tweaked: keys then have the time of its action, not of the scene."""
    if armature_object.animation_data is not None and armature_object.animation_data.use_tweak_mode:
        raise RigError(
            f"Armature '{armature_object.name}': an NLA strip is being tweaked: leave tweak mode (Tab in the "
            "NLA editor) first"
        )


def key_influence(
    constraint: Any, spans: Sequence[tuple[int, int]], start: int, end: int, time: float
) -> None:
    """Key the influence 1 in spans of a range of frames and 0 between them, with constant interpolation.

    Keys in the range are replaced; the animation before and after it stays.

    Args:
        constraint: stored constraint; see `require_keyable_influences`.
        spans: first and last frame of each span, in order, disjoint, inside the range.
        time: factor from frames to the time of keys.
    """
    kept: dict[int, str] = {}  # interpolation of keys that keep the animation beside the range
    before = influence_curve(constraint)
    if before is not None:
        keys = [(point.co[0] / time, str(point.interpolation)) for point in before.keyframe_points]
        earlier = [key for key in keys if key[0] < start]
        later = [frame for frame, _ in keys if frame > end]
        if earlier and earlier[-1][0] < start - 1 and earlier[-1][1] != "CONSTANT":
            kept[start - 1] = earlier[-1][1]
        if later and later[0] > end + 1:
            kept[end + 1] = next((how for frame, how in reversed(keys) if frame <= end + 1), "CONSTANT")
        shown = {frame: before.evaluate(time * frame) for frame in kept}
        for frame in (frame for frame, _ in keys if start <= frame <= end):
            constraint.keyframe_delete(INFLUENCE, frame=time * frame)
        for frame, value in shown.items():
            constraint.influence = value
            constraint.keyframe_insert(INFLUENCE, frame=time * frame)
    values = {start: 0.0} | {last + 1: 0.0 for _, last in spans if last < end}
    values |= {first: 1.0 for first, _ in spans}
    for frame, value in sorted(values.items()):
        constraint.influence = value
        constraint.keyframe_insert(INFLUENCE, frame=time * frame)
    curve: Any = influence_curve(constraint)
    kept |= dict.fromkeys(values, "CONSTANT")
    for point in curve.keyframe_points:
        if (frame := round(point.co[0] / time)) in kept and abs(point.co[0] / time - frame) < 1e-3:
            point.interpolation = kept[frame]
    curve.update()


def planted_spans(constraint: Any, time: float) -> list[tuple[int, int | None]]:
    """Return first and last frame of each span whose keys are above 0.5; None for a span without an end.

    `time` is the factor from frames to the time of keys.
    """
    curve = influence_curve(constraint)
    spans: list[tuple[int, int | None]] = []
    for point in [] if curve is None else curve.keyframe_points:
        frame, is_on = round(point.co[0] / time), point.co[1] > 0.5
        is_open = bool(spans) and spans[-1][1] is None
        if is_on and not is_open:
            spans.append((frame, None))
        elif is_open and not is_on:
            spans[-1] = spans[-1][0], frame - 1
    return spans


def influence_curve(constraint: Any) -> Any | None:
    """Return the F-curve of a constraint's influence in the present action, or None."""
    from ..keys.channels import fcurves_of

    path = constraint.path_from_id(INFLUENCE)
    return next((curve for curve in fcurves_of(constraint.id_data) if curve.data_path == path), None)
