"""Set-ups that are refused: what is spoiled, and what the message must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import bpy
import spoiled_data as data
import spoiled_rigs as rig
import spoiled_targets as target
from rigs import setting
from sound_rig import NAN, nothing, raw

HAND = 'ccd_rig.constraints["Hand"]'
JOINT = 'pose.bones["bone_1"].ccd_rig'
LIMIT = f"{JOINT}.limit"
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
        rig.nothing_active,
        ("Select an armature",),
        said={"cli": ("no armature", "has CCD constraints", "add one in the CCD Rig panel")},
    ),
    Case(
        rig.not_an_armature,
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
        rig.no_constraint,
        ("'Rig' has no CCD constraint", "add one"),
        said={"cli": ("no armature", "has CCD constraints", "add one in the CCD Rig panel")},
    ),
    Case(setting(HAND, enabled=False), ("'Rig' are disabled", "enable one")),
    Case(
        setting(HAND, enabled=False),
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
        rig.edit_mode,
        ("Leave Edit Mode: go to Pose Mode",),
        said={"cli": ("Armature 'Rig' is in Edit Mode", "go to Pose Mode")},
    ),
    Case(
        setting("data", pose_position="REST"),
        ("'Rig' is shown in Rest Position", "switch it to Pose Position"),
    ),
    Case(
        rig.in_no_scene,
        ("'Rig' is not in scene 'Scene'", "link it"),
        outside=True,
        said={"cli": ("no armature object 'Rig' in the scene",)},
        arguments=("--armature", "Rig"),
    ),
    Case(
        rig.in_another_scene,
        ("'Rig' is not in scene 'Scene'", "link it"),
        outside=True,
        said={"cli": ("no armature object 'Rig' in the scene",)},
        arguments=("--armature", "Rig"),
    ),
    Case(setting("location", y=NAN), ("'Rig' has a place that is not a number", "clear its transform")),
    Case(rig.armature_under_nan, ("'Rig' has a place that is not a number", "clear its transform")),
    Case(setting("", scale=(1, 0, 1)), ("'Rig' has a scale of 0", "give it another scale")),
    Case(rig.armature_under_a_parent_without_scale, ("'Rig' has a scale of 0", "give it another scale")),
    Case(rig.armature_loses_scale, ("'Rig' has a scale of 0 at frame 4", "give it another"), **FAILS_LATER),
    Case(
        rig.two_rigs,
        ("several armatures", "Rig", "Other", "name one with --armature"),
        ways=("cli",),
        code=2,
    ),
    Case(setting(HAND, tip=""), ("'Hand' has no bone", "choose the bone to move")),
    Case(
        rig.tip_removed,
        ("'Hand'", "'bone_2' is not in armature 'Rig' (renamed or deleted?)", "Did you mean"),
    ),
    Case(rig.tip_renamed, ("'Hand'", "'bone_2' is not in armature 'Rig'", "Did you mean 'Bone-2'")),
    Case(rig.bones_without_length, ("'bone_0' has zero length", "give it a length in Edit Mode")),
    Case(rig.bones_nowhere, ("'bone_0' has a rest pose that is not a number", "in Edit Mode")),
    Case(
        setting('pose.bones["bone_1"]', scale=(1, 0, 1)),
        ("'bone_1' has zero scale", "give it a scale other than 0"),
    ),
    Case(rig.bone_under_one_without_scale, ("'bone_1' inherits zero scale from 'bone_0'", "another scale")),
    Case(rig.bone_loses_scale, ("frame 4: bone 'bone_1' has zero scale", "give it a scale"), **FAILS_LATER),
    Case(
        setting('pose.bones["bone_0"]', scale=(1, 2, 1)),
        ("'bone_1' inherits non-uniform scale", "'bone_0'", "make that scale uniform"),
    ),
    Case(setting('pose.bones["bone_1"]', scale=(-1, -1, -1)), ("'bone_1' is mirrored", "positive scale")),
    Case(rig.bone_under_mirror, ("'bone_2' is mirrored", "positive scale")),
    Case(
        setting('pose.bones["bone_2"].rotation_quaternion', x=NAN),
        ("'bone_2'", "rotation", "not a", "number"),
    ),
    Case(setting('pose.bones["bone_0"].location', x=NAN), ("'bone_0'", "location", "not a", "number")),
    Case(setting('pose.bones["bone_2"].scale', x=NAN), ("'bone_2'", "scale", "not a", "number")),
    Case(rig.bone_above_is_nan, ("'bone_1'", "'bone_0'", "nowhere", "clear its transform")),
    Case(
        rig.bone_becomes_nan,
        ("frame 4: bone 'bone_0' has a rotation that is not a number", "clear its rotation"),
        **FAILS_LATER,
    ),
    Case(
        setting('pose.bones["bone_1"]', lock_rotation=(False, True, False)),
        ("'bone_1' has rotation locked on Y", "unlock it"),
    ),
    Case(
        rig.bone_locked_with_a_limit,
        ("'bone_1' has rotation locked on Y and a limit", "unlock it, or remove"),
    ),
    Case(
        rig.bones_all_locked,
        ("every bone in the chains of Hand is locked", "unlock the rotation"),
        ways=("solve", "bake", "cli"),
    ),
    Case(setting(HAND, target=None), ("'Hand' has no target", "choose the object to reach")),
    Case(target.target_removed, ("'Hand' has no target", "choose the object to reach")),
    Case(target.target_deleted, ("'Hand'", "'Goal' is not in scene 'Scene' (deleted?)", "choose another")),
    Case(target.target_in_another_scene, ("'Hand'", "'Goal' is not in scene 'Scene'", "choose another")),
    Case(target.target_is_the_armature, ("'Hand'", "is the armature itself", "choose a target bone")),
    Case(target.target_bone_missing, ("'Hand'", "'bone_9' is not in armature 'Rig'", "Did you mean")),
    Case(
        setting(HAND, target_bone="bone_1"),
        ("'Hand'", "'Goal' is not an armature", "clear target bone 'bone_1'"),
    ),
    Case(target.target_bone_in_the_chain, ("'Hand'", "'bone_1' moves with the chain", "shorten the chain")),
    Case(
        target.target_bone_below_the_chain,
        ("'Hand'", "'bone_3' moves with the chain", "shorten the chain"),
    ),
    Case(target.target_on_a_bone, ("'Hand'", "'Goal'", "moves with the chain", "'bone_1'", "unparent it")),
    Case(
        target.target_follows_a_bone,
        ("'Hand'", "'Goal'", "moves with the chain", "'bone_3'", "choose another"),
    ),
    Case(
        target.target_in_a_rig_that_hangs_on_the_chain,
        ("'Hand'", "'Other'", "moves with the chain", "'bone_2'", "choose another target"),
    ),
    Case(target.target_is_nan, ("'Hand'", "'Goal' has a place that is not a number", "clear its transform")),
    Case(
        target.target_matrix_is_nan,
        ("'Hand'", "'Goal' has a place that is not a number", "clear its transform"),
    ),
    Case(
        target.target_turns_by_nan,
        ("'Hand'", "'Goal' has a place that is not a number", "clear its transform"),
    ),
    Case(
        target.target_under_nan,
        ("'Hand'", "'Goal' has a place that is not a number", "clear its transform"),
    ),
    Case(
        target.target_bone_is_nan,
        ("'Hand'", "bone 'bone_1' of 'Other'", "not a number", "transform and keys"),
    ),
    Case(target.target_becomes_nan, ("'Hand'", "'Goal'", "not a number at frame 4", "keys"), **FAILS_LATER),
    Case(
        target.target_at_infinity,
        ("'Hand'", "'Goal' has a place that is too far away", "look at its transform"),
    ),
    Case(setting(HAND, offset=(0, NAN, 0)), ("'Hand'", "Target Offset is not a number")),
    Case(target.target_from_a_library, ("'Hand'", "'Goal' comes from a library", "rename that object")),
    Case(data.simulated, ("'Hand'", "'Goal'", "rigid body simulation", "'Ball'", "Bake To Keyframes")),
    Case(data.on_a_cloth, ("'Hand'", "'Goal' follows points of 'Flag'", "cloth 'Wind'", "bake its cache")),
    Case(raw(HAND, chain_length=-3), ("'bone_2'", "hain length", "0 (to the root) or more, not -3")),
    Case(raw(HAND, weight=0.0), ("'Hand'", "Weight is 0", "set it to 0.001 to 10000")),
    Case(setting(HAND, weight=NAN), ("'Hand'", "Weight is nan", "set it to 0.001 to 10000")),
    Case(
        setting(HAND, influence=0.0),
        ("no constraint (Hand) has influence above 0 in frames 1 to 6", "raise it"),
        said={"solve": ("Rig: every constraint has influence 0", "raise one")},
    ),
    Case(setting(HAND, influence=NAN), ("'Hand'", "Influence is nan", "set it to 0 to 1")),
    Case(
        rig.influence_becomes_nan,
        ("'Hand'", "influence is not a number at frame 4", "look at its keys"),
        **FAILS_LATER,
    ),
    Case(setting(JOINT, stiffness=NAN), ("'bone_1'", "stiffness", "nan")),
    Case(setting(JOINT, max_step=NAN), ("'bone_1'", "max_step", "nan")),
    Case(setting("ccd_rig.solver", position_tolerance=NAN), ("position_tolerance", "nan")),
    Case(setting("ccd_rig.solver", step_fraction=NAN), ("step_fraction", "nan")),
    Case(
        setting(LIMIT, kind="HINGE", hinge_lower=1.0, hinge_upper=0.5),
        ("'bone_1', limit: Min (57.3°) is above Max (28.65°)", "swap them"),
    ),
    Case(setting(LIMIT, kind="HINGE", axis=(0, 0, 0)), ("'bone_1', limit:", "axis")),
    Case(setting(LIMIT, kind="HINGE", axis=(0, NAN, 0)), ("'bone_1', limit:", "axis")),
    Case(setting(LIMIT, kind="HINGE", hinge_upper=NAN), ("'bone_1', limit:", "upper", "nan")),
    Case(setting(LIMIT, kind="CONE", cone_radius=NAN), ("'bone_1', limit:", "radius", "nan")),
    Case(setting(LIMIT, kind="ELLIPSE", z_lower=NAN), ("'bone_1', limit:", "z_lower", "nan")),
    Case(
        setting(LIMIT, kind="TWIST", twist_lower=0.4, twist_upper=0.1),
        ("'bone_1', limit: twist Min (22.92°) is above", "swap them"),
    ),
    Case(
        setting(LIMIT, kind="EULER", euler_lower=(0, 1.0, 0), euler_upper=(1, 0.5, 1)),
        ("'bone_1', limit: Y Min (57.3°) is above Y Max (28.65°)", "swap them"),
    ),
    Case(setting(LIMIT, kind="EULER", euler_lower=(NAN, 0, 0)), ("'bone_1', limit:", "lower", "nan")),
    Case(raw(LIMIT, kind=99), ("'bone_1', limit: its kind is not known", "choose one, or update")),
    Case(rig.euler_order_of_another_version, ("'bone_1', limit:", "order")),
    Case(raw(HAND, kind=99), ("'Hand': its kind is not known to this version", "choose one")),
    Case(raw(HAND, method=99), ("'Hand': its method is not known to this version", "choose one")),
    Case(
        raw("ccd_rig.solver", sweep=99),
        ("'Rig', solver settings: Bone Order is not known", "choose one, or update"),
    ),
    Case(rig.comfort_outside_the_limit, ("'bone_1'", "comfort", "limit")),
    Case(rig.comfort_contradicts_itself, ("'bone_1', comfort region: Min (28.65°) is above", "swap them")),
    Case(
        setting('pose.bones["bone_1"].ccd_rig.comfort', tolerance=NAN),
        ("'bone_1', comfort:", "tolerance", "nan"),
    ),
    Case(data.curve_locked, ("'bone_1'", "rotation_quaternion[0] is locked", "unlock it"), **KEYED),
    Case(data.group_locked, ("'bone_1'", "is in the locked group 'bone_1'", "unlock the group"), **KEYED),
    Case(data.curve_muted, ("'bone_1'", "rotation_quaternion[0] is muted", "unmute it"), **KEYED),
    Case(data.curve_modified, ("'bone_1'", "modifier NOISE", "mute or remove it"), **KEYED),
    Case(
        data.rotation_driven,
        ("'bone_2'", "rotation_quaternion[1] has a driver", "delete or mute the driver"),
    ),
    Case(
        data.rotation_mode_keyed,
        ("'bone_2'", "rotation mode changes by keys", "delete the keys of Rotation Mode"),
        **KEYED,
    ),
    Case(data.rotation_mode_driven, ("'bone_2'", "rotation mode has a driver", "delete the driver"), **KEYED),
    Case(data.strip_tweaked, ("'Rig'", "NLA strip is being tweaked", "leave tweak mode"), **KEYED),
    Case(data.armature_linked, ("'Rig' is linked from", "library override")),
    Case(data.armature_in_a_locked_override, ("'Rig'", "override", "not editable", "Library Override")),
    Case(data.action_linked, ("Action 'RigAction' is linked from", "choose New Action"), **IN_PLACE),
    Case(
        data.action_overridden,
        ("Action 'RigAction", "' is a library override", "choose New Action"),
        **IN_PLACE,
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
        setting("ccd_rig", active_index=5),
        ("No constraint is active", "choose one in the list"),
        ways=("solve",),
        options={"only_active": True},
    ),
    Case(data.two_rows_of_one_name, ("Two constraints are called 'Hand'", "rename one of them")),
    Case(
        data.no_bone_selected,
        ("No constraint's chain has a selected bone", "select one"),
        ways=("bake",),
        options={"only_selected": True},
    ),
]
