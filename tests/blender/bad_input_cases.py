"""Set-ups that are refused: what is spoiled, and what the message must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import bpy
from sound_rig import nothing
from spoiled_data import (
    action_linked,
    action_overridden,
    armature_in_a_locked_override,
    armature_linked,
    curve_locked,
    curve_modified,
    curve_muted,
    group_locked,
    no_active_row,
    no_bone_selected,
    on_a_cloth,
    rotation_driven,
    rotation_mode_driven,
    rotation_mode_keyed,
    simulated,
    strip_tweaked,
    two_rows_of_one_name,
)
from spoiled_numbers import (
    chain_length_negative,
    comfort_contradicts_itself,
    comfort_outside_the_limit,
    comfort_tolerance_is_nan,
    cone_is_nan,
    ellipse_is_nan,
    euler_contradicts_itself,
    euler_is_nan,
    euler_order_of_another_version,
    hinge_axis_is_nan,
    hinge_contradicts_itself,
    hinge_is_nan,
    hinge_without_axis,
    influence_becomes_nan,
    influence_is_nan,
    influence_zero,
    kind_of_another_version,
    limit_of_another_version,
    max_step_is_nan,
    method_of_another_version,
    solver_tolerance_is_nan,
    step_fraction_is_nan,
    stiffness_is_nan,
    sweep_of_another_version,
    twist_contradicts_itself,
    weight_is_nan,
    weight_zero,
)
from spoiled_rigs import (
    all_disabled,
    armature_is_nan,
    armature_loses_scale,
    armature_under_a_parent_without_scale,
    armature_under_nan,
    armature_without_scale,
    bone_above_is_nan,
    bone_becomes_nan,
    bone_location_is_nan,
    bone_locked_in_part,
    bone_locked_with_a_limit,
    bone_loses_scale,
    bone_mirrored,
    bone_rotation_is_nan,
    bone_scale_is_nan,
    bone_sheared,
    bone_under_mirror,
    bone_under_one_without_scale,
    bone_without_scale,
    bones_all_locked,
    bones_nowhere,
    bones_without_length,
    edit_mode,
    in_another_scene,
    in_no_scene,
    no_constraint,
    no_tip,
    not_an_armature,
    nothing_active,
    rest_position,
    tip_removed,
    tip_renamed,
    two_rigs,
)
from spoiled_targets import (
    no_target,
    offset_is_nan,
    target_at_infinity,
    target_becomes_nan,
    target_bone_below_the_chain,
    target_bone_in_the_chain,
    target_bone_is_nan,
    target_bone_missing,
    target_bone_on_an_empty,
    target_deleted,
    target_follows_a_bone,
    target_from_a_library,
    target_in_a_rig_that_hangs_on_the_chain,
    target_in_another_scene,
    target_is_nan,
    target_is_the_armature,
    target_matrix_is_nan,
    target_on_a_bone,
    target_removed,
    target_turns_by_nan,
    target_under_nan,
)

WAYS = ("solve", "bake", "cli")


@dataclass(frozen=True)
class Case:
    """One thing that is wrong.

    Attributes:
        spoil: makes it so; gets the armature object, in Pose Mode.
        words: what the message must hold: the name, and what to do.
        ways: in which ways it is tried; left out where the same state is fine, or cannot be.
        said: words in place of `words` by way.
        options: of the operators.
        arguments: of `ccd_rig bake`.
        code: exit code of `ccd_rig bake`.
        outside: the armature is not the active object and is handed to the operators.
    """

    spoil: Callable[[bpy.types.Object], None]
    words: tuple[str, ...]
    ways: tuple[str, ...] = WAYS
    said: dict[str, tuple[str, ...]] = field(default_factory=dict)
    options: dict[str, object] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    code: int = 1
    outside: bool = False


KEYED = {"ways": ("bake", "cli")}
"""Of what only keys need: Solve without Auto Keying poses."""
IN_PLACE = {
    "options": {"destination": "CURRENT_ACTION"},
    "arguments": ("--current-action",),
    "ways": ("bake", "cli"),
}
FAILS_LATER = {"ways": ("bake", "cli")}  # at the present frame all is well
CASES = [
    Case(
        nothing_active,
        ("Select an armature",),
        said={"cli": ("no armature", "has CCD constraints", "add one in the CCD Rig panel")},
    ),
    Case(
        not_an_armature,
        ("Select an armature",),
        said={"cli": ("no armature", "has CCD constraints", "add one in the CCD Rig panel")},
    ),
    Case(
        nothing,
        ("no armature object 'Goal'", "with CCD constraints: Rig"),
        ways=("cli",),
        arguments=("--armature", "Goal"),
    ),
    Case(
        no_constraint,
        ("'Rig' has no CCD constraint", "add one"),
        said={"cli": ("no armature", "has CCD constraints", "add one in the CCD Rig panel")},
    ),
    Case(all_disabled, ("'Rig' are disabled", "enable one")),
    Case(
        all_disabled,
        ("Constraint 'Hand' is disabled", "enable it, or leave it out"),
        ways=("cli",),
        arguments=("--constraint", "Hand"),
    ),
    Case(
        nothing,
        ("no constraint 'Hnad'", "Did you mean 'Hand'?"),
        ways=("cli",),
        arguments=("--constraint", "Hnad"),
    ),
    Case(
        edit_mode,
        ("Leave Edit Mode: go to Pose Mode",),
        said={"cli": ("Armature 'Rig' is in Edit Mode", "go to Pose Mode")},
    ),
    Case(rest_position, ("'Rig' is shown in Rest Position", "switch it to Pose Position")),
    Case(
        in_no_scene,
        ("'Rig' is not in scene 'Scene'", "link it"),
        outside=True,
        said={"cli": ("no armature object 'Rig' in the scene",)},
        arguments=("--armature", "Rig"),
    ),
    Case(
        in_another_scene,
        ("'Rig' is not in scene 'Scene'", "link it"),
        outside=True,
        said={"cli": ("no armature object 'Rig' in the scene",)},
        arguments=("--armature", "Rig"),
    ),
    Case(armature_is_nan, ("'Rig' has a place that is not a number", "clear its transform")),
    Case(armature_under_nan, ("'Rig' has a place that is not a number", "clear its transform")),
    Case(armature_without_scale, ("'Rig' has a scale of 0", "give it another scale")),
    Case(armature_under_a_parent_without_scale, ("'Rig' has a scale of 0", "give it another scale")),
    Case(armature_loses_scale, ("'Rig' has a scale of 0 at frame 4", "give it another"), **FAILS_LATER),
    Case(two_rigs, ("several armatures", "Rig", "Other", "name one with --armature"), ways=("cli",), code=2),
    Case(no_tip, ("'Hand' has no bone", "choose the bone to move")),
    Case(tip_removed, ("'Hand'", "'bone_2' is not in armature 'Rig' (renamed or deleted?)", "Did you mean")),
    Case(tip_renamed, ("'Hand'", "'bone_2' is not in armature 'Rig'", "Did you mean 'Bone-2'")),
    Case(bones_without_length, ("'bone_0' has zero length", "give it a length in Edit Mode")),
    Case(bones_nowhere, ("'bone_0' has a rest pose that is not a number", "in Edit Mode")),
    Case(bone_without_scale, ("'bone_1' has zero scale", "give it a scale other than 0")),
    Case(bone_under_one_without_scale, ("'bone_1' inherits zero scale from 'bone_0'", "another scale")),
    Case(bone_loses_scale, ("frame 4: bone 'bone_1' has zero scale", "give it a scale"), **FAILS_LATER),
    Case(bone_sheared, ("'bone_1' inherits non-uniform scale", "'bone_0'", "make that scale uniform")),
    Case(bone_mirrored, ("'bone_1' is mirrored", "positive scale")),
    Case(bone_under_mirror, ("'bone_2' is mirrored", "positive scale")),
    Case(bone_rotation_is_nan, ("'bone_2'", "rotation", "not a", "number")),
    Case(bone_location_is_nan, ("'bone_0'", "location", "not a", "number")),
    Case(bone_scale_is_nan, ("'bone_2'", "scale", "not a", "number")),
    Case(bone_above_is_nan, ("'bone_1'", "'bone_0'", "nowhere", "clear its transform")),
    Case(
        bone_becomes_nan,
        ("frame 4: bone 'bone_0' has a rotation that is not a number", "clear its rotation"),
        **FAILS_LATER,
    ),
    Case(bone_locked_in_part, ("'bone_1' has rotation locked on Y", "unlock it")),
    Case(bone_locked_with_a_limit, ("'bone_1' has rotation locked on Y and a limit", "unlock it, or remove")),
    Case(
        bones_all_locked,
        ("every bone in the chains of Hand is locked", "unlock the rotation"),
        ways=("solve", "bake", "cli"),
    ),
    Case(no_target, ("'Hand' has no target", "choose the object to reach")),
    Case(target_removed, ("'Hand' has no target", "choose the object to reach")),
    Case(target_deleted, ("'Hand'", "'Goal' is not in scene 'Scene' (deleted?)", "choose another")),
    Case(target_in_another_scene, ("'Hand'", "'Goal' is not in scene 'Scene'", "choose another")),
    Case(target_is_the_armature, ("'Hand'", "is the armature itself", "choose a target bone")),
    Case(target_bone_missing, ("'Hand'", "'bone_9' is not in armature 'Rig'", "Did you mean")),
    Case(target_bone_on_an_empty, ("'Hand'", "'Goal' is not an armature", "clear target bone 'bone_1'")),
    Case(target_bone_in_the_chain, ("'Hand'", "'bone_1' moves with the chain", "shorten the chain")),
    Case(target_bone_below_the_chain, ("'Hand'", "'bone_3' moves with the chain", "shorten the chain")),
    Case(target_on_a_bone, ("'Hand'", "'Goal'", "moves with the chain", "'bone_1'", "unparent it")),
    Case(target_follows_a_bone, ("'Hand'", "'Goal'", "moves with the chain", "'bone_3'", "choose another")),
    Case(
        target_in_a_rig_that_hangs_on_the_chain,
        ("'Hand'", "'Other'", "moves with the chain", "'bone_2'", "choose another target"),
    ),
    Case(target_is_nan, ("'Hand'", "'Goal' has a place that is not a number", "clear its transform")),
    Case(target_matrix_is_nan, ("'Hand'", "'Goal' has a place that is not a number", "clear its transform")),
    Case(target_turns_by_nan, ("'Hand'", "'Goal' has a place that is not a number", "clear its transform")),
    Case(target_under_nan, ("'Hand'", "'Goal' has a place that is not a number", "clear its transform")),
    Case(target_bone_is_nan, ("'Hand'", "bone 'bone_1' of 'Other'", "not a number", "transform and keys")),
    Case(target_becomes_nan, ("'Hand'", "'Goal'", "not a number at frame 4", "keys"), **FAILS_LATER),
    Case(target_at_infinity, ("'Hand'", "'Goal' has a place that is too far away", "look at its transform")),
    Case(offset_is_nan, ("'Hand'", "Target Offset is not a number")),
    Case(target_from_a_library, ("'Hand'", "'Goal' comes from a library", "rename that object")),
    Case(simulated, ("'Hand'", "'Goal'", "rigid body simulation", "'Ball'", "Bake To Keyframes")),
    Case(on_a_cloth, ("'Hand'", "'Goal' follows points of 'Flag'", "cloth 'Wind'", "bake its cache")),
    Case(chain_length_negative, ("'bone_2'", "hain length", "0 (to the root) or more, not -3")),
    Case(weight_zero, ("'Hand'", "Weight is 0", "set it to 0.001 to 10000")),
    Case(weight_is_nan, ("'Hand'", "Weight is nan", "set it to 0.001 to 10000")),
    Case(
        influence_zero,
        ("no constraint (Hand) has influence above 0 in frames 1 to 6", "raise it"),
        said={"solve": ("Rig: every constraint has influence 0", "raise one")},
    ),
    Case(influence_is_nan, ("'Hand'", "Influence is nan", "set it to 0 to 1")),
    Case(
        influence_becomes_nan,
        ("'Hand'", "influence is not a number at frame 4", "look at its keys"),
        **FAILS_LATER,
    ),
    Case(stiffness_is_nan, ("'bone_1'", "stiffness", "nan")),
    Case(max_step_is_nan, ("'bone_1'", "max_step", "nan")),
    Case(solver_tolerance_is_nan, ("position_tolerance", "nan")),
    Case(step_fraction_is_nan, ("step_fraction", "nan")),
    Case(hinge_contradicts_itself, ("'bone_1', limit: Min (57.3°) is above Max (28.65°)", "swap them")),
    Case(hinge_without_axis, ("'bone_1', limit:", "axis")),
    Case(hinge_axis_is_nan, ("'bone_1', limit:", "axis")),
    Case(hinge_is_nan, ("'bone_1', limit:", "upper", "nan")),
    Case(cone_is_nan, ("'bone_1', limit:", "radius", "nan")),
    Case(ellipse_is_nan, ("'bone_1', limit:", "z_lower", "nan")),
    Case(twist_contradicts_itself, ("'bone_1', limit: twist Min (22.92°) is above", "swap them")),
    Case(euler_contradicts_itself, ("'bone_1', limit: Y Min (57.3°) is above Y Max (28.65°)", "swap them")),
    Case(euler_is_nan, ("'bone_1', limit:", "lower", "nan")),
    Case(limit_of_another_version, ("'bone_1', limit: its kind is not known", "choose one, or update")),
    Case(euler_order_of_another_version, ("'bone_1', limit:", "order")),
    Case(kind_of_another_version, ("'Hand': its kind is not known to this version", "choose one")),
    Case(method_of_another_version, ("'Hand': its method is not known to this version", "choose one")),
    Case(
        sweep_of_another_version, ("'Rig', solver settings: Bone Order is not known", "choose one, or update")
    ),
    Case(comfort_outside_the_limit, ("'bone_1'", "comfort", "limit")),
    Case(comfort_contradicts_itself, ("'bone_1', comfort region: Min (28.65°) is above", "swap them")),
    Case(comfort_tolerance_is_nan, ("'bone_1', comfort:", "tolerance", "nan")),
    Case(curve_locked, ("'bone_1'", "rotation_quaternion[0] is locked", "unlock it"), **KEYED),
    Case(group_locked, ("'bone_1'", "is in the locked group 'bone_1'", "unlock the group"), **KEYED),
    Case(curve_muted, ("'bone_1'", "rotation_quaternion[0] is muted", "unmute it"), **KEYED),
    Case(curve_modified, ("'bone_1'", "modifier NOISE", "mute or remove it"), **KEYED),
    Case(rotation_driven, ("'bone_2'", "rotation_quaternion[1] has a driver", "delete or mute the driver")),
    Case(
        rotation_mode_keyed,
        ("'bone_2'", "rotation mode changes by keys", "delete the keys of Rotation Mode"),
        **KEYED,
    ),
    Case(rotation_mode_driven, ("'bone_2'", "rotation mode has a driver", "delete the driver"), **KEYED),
    Case(strip_tweaked, ("'Rig'", "NLA strip is being tweaked", "leave tweak mode"), **KEYED),
    Case(armature_linked, ("'Rig' is linked from", "library override")),
    Case(armature_in_a_locked_override, ("'Rig'", "override", "not editable", "Library Override")),
    Case(action_linked, ("Action 'RigAction' is linked from", "choose New Action"), **IN_PLACE),
    Case(
        action_overridden, ("Action 'RigAction", "' is a library override", "choose New Action"), **IN_PLACE
    ),
    Case(
        nothing,
        ("frame", "5", "2", "empty"),
        ways=("bake", "cli"),
        options={"frame_start": 5, "frame_end": 2},
        arguments=("--frames", "5-2"),
        code=2,
    ),
    Case(
        nothing,
        ("frames 1 to 1500000", "Blender has frames -1048574 to 1048574 only"),
        ways=("bake", "cli"),
        options={"frame_start": 1, "frame_end": 1500000},
        arguments=("--frames", "1-1500000"),
        code=2,
    ),
    Case(nothing, ("step must be 1 or more",), ways=("cli",), arguments=("--step", "0"), code=2),
    Case(
        no_active_row,
        ("No constraint is active", "choose one in the list"),
        ways=("solve",),
        options={"only_active": True},
    ),
    Case(two_rows_of_one_name, ("Two constraints are called 'Hand'", "rename one of them")),
    Case(
        no_bone_selected,
        ("No constraint's chain has a selected bone", "select one"),
        ways=("bake",),
        options={"only_selected": True},
    ),
]
