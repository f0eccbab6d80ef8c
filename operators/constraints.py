# SPDX-License-Identifier: GPL-3.0-or-later
"""Constraints: add for selected bones, move, change the kind, remove; plant feet and find contacts."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import bpy
from mathutils import Vector

from .. import __package__ as ROOT  # noqa: N812  (Blender's name of the extension)
from ..ccd_rig.blender.languages.translation import CONTEXT
from ..ccd_rig.blender.properties import body, constraint_list, joints
from ..ccd_rig.blender.properties.active_rig import active_rig, is_from_library, keep_overrides
from ..ccd_rig.blender.properties.constraint_kinds import KIND_ITEMS, KINDS, set_kind
from ..ccd_rig.blender.properties.constraint_values import PLANT, Holds
from ..ccd_rig.blender.properties.names import named
from ..ccd_rig.blender.registration import HIDDEN, LAST, ONCE
from ..ccd_rig.errors import CCDRigError, RigError
from ..ccd_rig.motion.settings import ContactThresholds
from . import command
from .command import Command, FrameRange, draw_lines, selected_bones

if TYPE_CHECKING:
    from ..ccd_rig.blender.properties import new_constraints
    from ..ccd_rig.blender.scene.contact_search import Contacts

SELECTED = (
    ("EACH", "Each Reaches", "Each selected bone gets a constraint and a target of its own"),
    ("TARGET", "Other Is Target", "The active bone reaches for the other selected bone"),
)


class CCD_RIG_OT_constraint_add(Command, bpy.types.Operator):
    bl_label = "Add CCD Constraint"
    bl_description = (
        "Let each selected bone reach for a target of its own: a new empty or control bone, or one other "
        "selected object or bone of another armature"
    )

    kind: ONCE.enum("Kind", "What the constraint is about", items=KIND_ITEMS)
    selected: ONCE.enum("Selected Bones", "What several selected bones of one armature are", items=SELECTED)
    chain_length: ONCE.integer(
        "Chain Length",
        "How many bones may turn, counted from the active one, locked ones too; 0 goes up to the "
        "root. At first up to the bone that also carries other limbs, for each bone its own",
        min=0,
        soft_max=255,
    )
    suits: HIDDEN.text("", "Kind that the chain length was chosen for")
    suited: HIDDEN.integer("", "Chain length that was chosen for the active bone", default=-1)
    target_empty: ONCE.boolean(
        "New Target",
        "Where nothing else is selected, make an empty or a control bone as the target: at the "
        "bone's end, or for balance at the centre of mass. A planted bone needs none",
        default=True,
    )
    control_bones: ONCE.boolean(
        "Control Bones",
        "Where a target is made, make it as a bone of the armature instead of an empty",
        default=False,
    )

    @staticmethod
    @command.after(command.no_armature)
    def why_grey(context: bpy.types.Context) -> str:
        if context.mode != "POSE":
            return "Go to Pose Mode and select the bone to move"
        return "Select the bone to move" if context.active_pose_bone is None else ""

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.figures import control_bones
        from ..ccd_rig.blender.properties import new_constraints

        rig, kind = context.object, KINDS[self.kind]
        length = self._chosen_length(context)
        tips = [context.active_pose_bone.name]  # the last one's constraint becomes the active one
        if not kind.balances and self.selected != "TARGET":
            tips = [*(bone for bone in selected_bones(context, rig) if bone not in tips), *tips]
        rows, in_chains = new_constraints.new_rows(rig, tips, kind, length)
        target, target_bone = _selected_target(context, rows, self.selected)
        makes = target is None and self.target_empty and kind.needs_target
        if makes and self.control_bones:
            control_bones.require_editable(context, rig)
        before: set[str] = set(rig.ccd_rig.constraints.keys())
        names = []
        for row in rows:
            added = constraint_list.add(rig, row.tip, row.tip)
            added.kind, added.chain_length, added.use_tail = kind, row.chain_length, row.use_tail
            added.target, added.target_bone = target, target_bone
            names.append(added.name)
        if makes:
            targets = [_new_target(context, row, kind.balances) for row in rows]
            created = new_constraints.make_targets(context, rig, targets, self.control_bones)
            for name, new_target in zip(names, created, strict=True):
                added = rig.ccd_rig.constraints[name]
                added.target, added.target_bone = new_target
        apply_choices(context, rig, before)
        if kind.reaches:
            for words in new_constraints.describe(rig, rows, in_chains):
                self.tell("INFO", words)
            if words := new_constraints.ease_clavicles(rig, rows):
                self.tell("INFO", words)

    def _chosen_length(self, context: bpy.types.Context) -> int | None:
        """Chain length that the user has set; None: the suitable one of each bone.

        The redo panel shows the suitable length of the active bone until the kind is changed.
        """
        if self.suits != self.kind and (self.suits or not self.properties.is_property_set("chain_length")):
            tip = context.active_pose_bone.name
            self.suited = self.chain_length = KINDS[self.kind].chain_length(context.object, tip)
        self.suits = self.kind
        return None if self.chain_length == self.suited else int(self.chain_length)


def _selected_target(
    context: bpy.types.Context, rows: "Sequence[new_constraints.NewRow]", selected: str
) -> tuple[bpy.types.Object | None, str]:
    """Return the other selected object or bone as (object, bone name); (None, "") without one.

    Objects that follow the armature do not count, such as its skin, which importers select.

    Raises:
        RigError: there are several candidates, or one for several bones, or it moves with the chain.
    """
    from ..ccd_rig.blender.scene import dependence

    owner, tip = context.object, context.active_pose_bone
    bones = [
        bone
        for bone in context.selected_pose_bones
        if bone != tip and (bone.id_data != owner or selected == "TARGET")
    ]
    posed = {owner, *(bone.id_data for bone in context.selected_pose_bones), *context.objects_in_mode}
    objects = [
        selection
        for selection in context.selected_objects
        if selection not in posed and not dependence.follows(selection, owner)
    ]
    names = ", ".join(f"'{each.name}'" for each in (*bones, *objects))
    if len(bones) + len(objects) > 1:
        raise RigError(
            f"More than one target is selected ({names}): select the target first, then the bone to move"
        )
    if names and len(rows) > 1:
        tips = ", ".join(f"'{row.tip}'" for row in rows)
        raise RigError(f"{names} can be the target of one bone, not of {tips}: select it and one of them")
    if objects:
        return objects[0], ""
    if not bones:
        return None, ""
    chain = {bone.name for bone in constraint_list.chain_of(owner, rows[0])}
    below = {bone.name for bone in (bones[0], *bones[0].parent_recursive)}
    if bones[0].id_data == owner and chain & below:
        raise RigError(
            f"Bone '{bones[0].name}' moves with the chain of '{tip.name}', so it cannot be its target: "
            "select another bone, or shorten the chain"
        )
    target: Any = bones[0].id_data  # the armature object
    return target, bones[0].name


def _new_target(
    context: bpy.types.Context, row: "new_constraints.NewRow", balances: bool
) -> "new_constraints.NewTarget":
    """Describe a target at the evaluated end of a bone, or at the centre of mass."""
    from ..ccd_rig.blender.properties import new_constraints
    from ..ccd_rig.blender.rig import armature

    owner = context.object
    evaluated = owner.evaluated_get(context.evaluated_depsgraph_get())
    tip = evaluated.pose.bones[row.tip]
    point = tip.tail if row.use_tail else tip.head
    masses = joints.masses(owner) if balances else {}
    if masses:
        bones = [(mass, evaluated.pose.bones[name]) for name, mass in masses.items()]
        middles = [mass * armature.mass_middle(bone) for mass, bone in bones]
        point = sum(middles, Vector()) / sum(masses.values())
    # The bone's name comes last: its ending (.L, .R) stays an ending.
    return new_constraints.NewTarget(f"Target {row.tip}", row.tip, evaluated.matrix_world @ point)


def new_rig_choices(context: bpy.types.Context) -> Any:
    """Preferences for new rigs; None in a Blender that runs the extension without having it enabled."""
    addon = context.preferences.addons.get(ROOT)
    return None if addon is None else addon.preferences.new_rigs


def apply_choices(context: bpy.types.Context, rig: bpy.types.Object, before: set[str]) -> None:
    """Apply the changed preferences for new rigs to new constraints, and to a rig that had none before.

    Args:
        before: names of the constraints that it had.
    """
    choices = new_rig_choices(context)
    if choices is None:
        return
    new = [row for row in rig.ccd_rig.constraints if row.name not in before]
    if choices.is_property_set("max_extension"):
        for row in new:
            row.max_extension = choices.max_extension
    if new and not before:
        for group in ("bake", "solver"):
            copy_changed(getattr(choices, group), getattr(rig.ccd_rig, group))
    keep_overrides(rig)


def copy_changed(source: Any, target: Any) -> None:
    """Copy properties that are set in one group to another that has them, unless they are set there."""
    names = [prop.identifier for prop in source.bl_rna.properties if not prop.is_readonly]
    for name in names:
        if source.is_property_set(name) and not target.is_property_set(name):
            setattr(target, name, getattr(source, name))


class CCD_RIG_OT_constraint_remove(Command, bpy.types.Operator):
    bl_label = "Remove CCD Constraint"
    bl_description = "Remove the active constraint; its bones and its target stay as they are"

    with_target: ONCE.boolean(
        "Remove Target Too",
        "Remove its target and pole as well, if they were made for it and nothing else uses them",
        default=False,
    )

    @staticmethod
    @command.after(command.no_active_constraint)
    def why_grey(context: bpy.types.Context) -> str:
        if is_from_library(constraint_list.active(active_rig(context)), "constraints"):
            return "This constraint comes from the library's file: disable it here, or remove it there"
        return ""

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.properties import new_constraints

        rig = active_rig(context)
        targets = new_constraints.of_row(constraint_list.active(rig))
        if self.with_target:
            _require_editable(context, targets)
        if left := constraint_list.remove(rig, rig.ccd_rig.active_index):
            self.tell("WARNING", constraint_list.order_kept_in(left))
        undone = new_constraints.undo_made(rig)
        if undone.slides:
            names = named(undone.slides)
            self.tell("INFO", f"Slide of {names} switched off: no constraint is left that may use it")
        if undone.stiffness:
            names = named(undone.stiffness)
            self.tell("INFO", f"Stiffness of {names} set back to 0: no constraint is left that may use it")
        if self.with_target:
            new_constraints.remove_left_over(context, targets)
            return
        for row in filter(new_constraints.is_left_over, targets):
            target = row.bone or row.obj.name
            self.tell("INFO", f"Its target '{target}' stays: see Remove Target Too")


class CCD_RIG_OT_constraints_remove(Command, bpy.types.Operator):
    bl_label = "Remove Set-Up of Rig"
    bl_description = (
        "Remove all constraints of the rig, with the targets, poles, slides and Stiffness that were made for "
        "them and that nothing else uses. Bones, their limits and their keys stay as they are"
    )

    why_grey = staticmethod(command.no_constraint)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.properties import new_constraints

        rig = active_rig(context)
        constraints = rig.ccd_rig.constraints
        places = [k for k, row in enumerate(constraints) if not is_from_library(row, "constraints")]
        targets = [target for k in places for target in new_constraints.of_row(constraints[k])]
        _require_editable(context, targets)
        for place in reversed(places):
            constraint_list.remove(rig, place)
        new_constraints.undo_made(rig)
        new_constraints.remove_left_over(context, targets)
        if len(constraints):
            self.tell("WARNING", "Constraints that come from the library's file stay: disable them here")


def _require_editable(context: bpy.types.Context, targets: "Iterable[new_constraints.Target]") -> None:
    """Raise RigError if control bones among targets cannot be removed."""
    from ..ccd_rig.blender.figures import control_bones

    for obj in {target.obj for target in targets if target.bone and control_bones.is_made(*target)}:
        control_bones.require_editable(context, obj)


class CCD_RIG_OT_constraint_move(Command, bpy.types.Operator):
    bl_label = "Move CCD Constraint"
    bl_description = "Move the active constraint up or down in the list"

    direction: ONCE.enum(
        "Direction",
        "Where the constraint goes in the list",
        items=(("UP", "Up", "Towards the top"), ("DOWN", "Down", "Towards the bottom")),
    )

    @staticmethod
    @command.after(command.no_constraint)
    def why_grey(context: bpy.types.Context) -> str:
        if len(active_rig(context).ccd_rig.constraints) < 2:
            return "There is only one constraint"
        return command.no_active_constraint(context)

    def run(self, context: bpy.types.Context) -> set[str] | None:
        index = active_rig(context).ccd_rig.active_index
        new_index = index + (1 if self.direction == "DOWN" else -1)
        if not 0 <= new_index < len(active_rig(context).ccd_rig.constraints):
            return {"CANCELLED"}  # at the end of the list, as Blender's lists do
        if left := constraint_list.move(active_rig(context), index, new_index):
            self.tell("WARNING", constraint_list.order_kept_in(left))
        return None


class CCD_RIG_OT_constraint_kind(Command, bpy.types.Operator):
    bl_label = "Kind of CCD Constraint"
    bl_description = (
        "Change what the constraint is about. Its chain then goes up to the bone that suits the kind; a bone "
        "that becomes planted is held where it is, without a target"
    )

    kind: LAST.enum("Kind", "What the constraint is about", items=KIND_ITEMS)

    why_grey = staticmethod(command.no_active_constraint)

    def run(self, context: bpy.types.Context) -> None:
        constraint = constraint_list.active(active_rig(context))
        target = constraint.target
        set_kind(constraint, KINDS[self.kind])
        chain = constraint_list.chain_of(active_rig(context), constraint)
        if chain:
            cleared = (
                "" if target is None or constraint.target else f"; its target '{target.name}' is cleared"
            )
            words = f"Constraint '{constraint.name}': its chain goes up to '{chain[-1].name}'{cleared}"
            self.tell("INFO", words)


# Contacts of feet -------------------------------------------------------------------------------------------


GROUNDS = (
    ("AUTO", "Automatic", "The ground moves if feet that are down do", 0),
    ("STILL", "Stands Still", "The figure walks through the world", 1),
    ("MOVES", "Moves", "The figure walks in place, as on a treadmill", 2),
)


class ContactCommand(FrameRange):
    """Properties of an operator that finds contacts, and its redo panel."""

    speed: LAST.of(ContactThresholds, "speed", soft_max=2.0)
    height: LAST.of(
        ContactThresholds,
        "height",
        description="A contact begins where the bone is nearer than this to the ground, in lengths of its "
        "leg. That is the armature's Ground; where it is At Rest, the ground is at the bone's lowest height "
        "from one rise to the next",
        soft_max=1.0,
    )
    release: LAST.of(ContactThresholds, "release", soft_max=3.0, translation_context=CONTEXT)
    shortest: LAST.of(
        ContactThresholds, "shortest", soft_max=1.0, subtype="TIME_ABSOLUTE", unit="TIME_ABSOLUTE"
    )
    ground: LAST.enum("Ground", "Whether the ground moves under the feet", items=GROUNDS)
    walk_on: LAST.boolean(
        "Walk On",
        "Where the ground moves, set Body to Walk On: the bake goes through the world",
        default=True,
    )
    markers: LAST.boolean(
        "Markers", "Mark in the timeline where each bone comes down and leaves", default=True
    )
    results: HIDDEN.text("", "What was found, a line each")

    def draw_thresholds(self, context: bpy.types.Context) -> None:
        """Draw thresholds and results in the redo panel."""
        layout = self.layout
        layout.use_property_split = True
        thresholds = ("frame_start", "frame_end", "speed", "height", "release", "shortest")
        for name in (*thresholds, "ground", "walk_on", "markers"):
            layout.prop(self, name)
        draw_lines(layout, context, self.results)

    def find(self, context: bpy.types.Context, rig: bpy.types.Object, names: list[str]) -> "Contacts":
        """Search for contacts, without changes."""
        from ..ccd_rig.blender.scene import contact_search

        scene = context.scene
        self.fill_range(scene)
        thresholds = ContactThresholds(self.speed, self.height, self.release, self.shortest)
        return contact_search.find_contacts(scene, rig, names, self.frames, thresholds, self.ground)

    def keep(self, context: bpy.types.Context, rig: bpy.types.Object, contacts: "Contacts") -> None:
        """Key and mark contacts, and report them."""
        from ..ccd_rig.blender.bake.frame_selection import key_time
        from ..ccd_rig.blender.scene import contact_search

        contact_search.key_contacts(rig, contacts, self.frames, key_time(context.scene))
        if self.markers:
            contact_search.mark_contacts(context.scene, contacts, self.frames)
        lines = list(contacts.words())
        if contacts.ground_moves and self.walk_on and rig.ccd_rig.body != body.WALK_ON:
            rig.ccd_rig.body = body.WALK_ON
            lines.append("Body is set to Walk On")
        self.results = "\n".join(lines)
        for line in lines:
            self.tell("INFO", line)
        missed = [name for name, phases in contacts.phases.items() if not phases]
        if missed:
            self.tell(
                "WARNING",
                f"{', '.join(missed)}: never down, so not planted; raise Speed or Height, or for quick steps "
                "lower Shortest",
            )

    @property
    def frames(self) -> range:
        return range(self.frame_start, self.frame_end + 1)


class CCD_RIG_OT_contacts_find(ContactCommand, bpy.types.Operator):
    bl_label = "Find Contacts"
    bl_description = (
        "Key Influence of the Plant constraints on where their bones rest on the ground, and off between, "
        "from how they move now"
    )

    only_active: LAST.boolean("Only Active Constraint", "Only of the constraint that is shown below the list")

    @staticmethod
    @command.after(command.no_constraint)
    def why_grey(context: bpy.types.Context) -> str:
        if _plants(active_rig(context)):
            return ""
        return "No enabled constraint plants a bone: press Plant Selected Feet, or set a Kind to Plant"

    def run(self, context: bpy.types.Context) -> None:
        rig = active_rig(context)
        names = _plants(rig)
        if self.only_active:
            index = rig.ccd_rig.active_index
            active = rig.ccd_rig.constraints[index].name if index < len(rig.ccd_rig.constraints) else ""
            names = [name for name in names if name == active]
            if not names:
                raise RigError(f"'{active}' is no enabled Plant: choose one in the list")
        contacts = self.find(context, rig, names)
        self.keep(context, rig, contacts)

    def draw(self, context: bpy.types.Context) -> None:
        self.draw_thresholds(context)
        self.layout.prop(self, "only_active")


def _plants(rig: bpy.types.Object) -> list[str]:
    return [row.name for row in rig.ccd_rig.constraints if row.kind == PLANT and row.enabled]


class CCD_RIG_OT_feet_plant(ContactCommand, bpy.types.Operator):
    bl_label = "Plant Selected Feet"
    bl_description = (
        "Plant the selected bones, carried by the bone that carries the whole figure, and key when they rest "
        "on the ground. A constraint that a bone has already becomes a Plant"
    )

    hold_ground: LAST.boolean("Hold Place", "Planted bones keep their place along the ground", default=True)
    hold_height: LAST.boolean(
        "Hold Height",
        "Planted bones keep their height; when off, they rise and sink as they are animated. "
        "When not set, on where no contact is found",
    )
    hold_rotation: LAST.boolean(
        "Hold Rotation",
        "Planted bones keep their rotation; when off, they turn as they are animated, so that feet roll",
    )

    @staticmethod
    @command.after(command.no_armature)
    def why_grey(context: bpy.types.Context) -> str:
        if context.mode != "POSE":
            return "Go to Pose Mode and select the feet"
        if not selected_bones(context, context.object):
            return "Select the feet: the bones that rest on the ground, such as feet or balls of feet"
        return ""

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.properties import new_constraints

        rig = context.object
        holds = Holds(self.hold_ground, self.hold_height, self.hold_rotation)
        if not any(holds):
            raise RigError("Nothing of the feet is held: switch on Hold Place, Hold Height or Hold Rotation")
        planted = new_constraints.plant(rig, selected_bones(context, context.object), holds)
        words = f"'{planted.root_bone}' carries the figure over {', '.join(planted.names)}"
        if planted.switched:
            words += f"; now planted, without their targets: {', '.join(planted.switched)}"
        if planted.moved:
            words += f"; carried by it too: {', '.join(planted.moved)}"
        if planted.stopped:
            words += f"; Slide switched off, as planted feet shift it: {', '.join(planted.stopped)}"
        self.tell("INFO", words)
        try:
            contacts = self.find(context, rig, list(planted.names))
        except CCDRigError as error:
            # Feet without contacts keep their height too: with sinking hips they would go into the ground.
            if not self.properties.is_property_set("hold_height"):
                for name in planted.new:
                    rig.ccd_rig.constraints[name].plant_height = True
                keep_overrides(rig)
            self.results = f"Planted all the time. {error}"
            self.tell("WARNING", self.results)
            return
        self.keep(context, rig, contacts)

    def draw(self, context: bpy.types.Context) -> None:
        self.draw_thresholds(context)
        holds = self.layout.column(heading="Hold")
        holds.prop(self, "hold_ground", text="Ground")
        holds.prop(self, "hold_height", text="Height")
        holds.prop(self, "hold_rotation", text="Rotation")
