# SPDX-License-Identifier: GPL-3.0-or-later
"""Drag bones with the pointer: their chains follow within limits, and pinned bones stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpy
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Matrix, Vector

from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.properties.armature_data import is_live
from ..ccd_rig.blender.properties.names import named
from ..ccd_rig.blender.properties.solver_settings import solver_settings
from ..ccd_rig.blender.registration import HIDDEN, ONCE
from ..ccd_rig.errors import CCDRigError, RigError
from ..ccd_rig.json_text import printable
from . import command
from .command import Command, selected_bones

if TYPE_CHECKING:
    from ..ccd_rig.blender.bake.target_motion import MetTargets
    from ..ccd_rig.blender.drag.session import Session

PRECISE = 0.1
"""Factor of the pointer's motion with Shift, and of steps with Ctrl and Shift."""


LONGER, SHORTER = {"WHEELUPMOUSE", "PAGE_UP"}, {"WHEELDOWNMOUSE", "PAGE_DOWN"}
CONFIRM = {"RET", "NUMPAD_ENTER", "SPACE"}
SNAP = {"LEFT_CTRL", "RIGHT_CTRL"}
BONE_ORIENTATIONS = {"LOCAL", "NORMAL", "GIMBAL"}  # Blender's orientations whose axes are the bone's


class CCD_RIG_OT_drag(Command, bpy.types.Operator):
    bl_label = "Drag Bones"
    bl_description = (
        "Pull the selected bones: their chains follow inside limits and comfort. Pinned bones stay, and "
        "targets that the pose meets go along with their bones"
    )
    bl_options = {"REGISTER", "UNDO", "BLOCKING"}

    value: ONCE.vector("Move", "How far the bones are pulled, in the world", size=3, subtype="TRANSLATION")
    turning: ONCE.integer(
        "Chain Length", "How many bones turn, counted from the pulled one; 0: as many as its limb has", min=0
    )
    along: ONCE.number(
        "Along Bone",
        "The place on the active bone that is pulled: 0 is its head, 1 its tail",
        default=1.0,
        min=0.0,
        max=1.0,
    )
    names: HIDDEN.text(
        "Bones",
        "Names of the bones that are pulled, one a line, the one under the pointer first; empty: "
        "the selected ones",
    )
    pick: HIDDEN.boolean(
        "Bone under Pointer", "Select the bone under the pointer first, unless it is selected"
    )

    why_grey = staticmethod(command.not_posing)

    def run(self, context: bpy.types.Context) -> None:
        if not self.names:
            self._take_selected(context)
        self._met = _met_targets(context)
        session = self._session(context)
        session.move(self.value)
        self._finish(context, session)

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        from ..ccd_rig.blender.viewport.pointer import place_on, ray_at

        region = context.region
        if context.space_data is None or context.space_data.type != "VIEW_3D" or region.type != "WINDOW":
            self.tell("ERROR", "Drag bones in a 3D viewport: put the pointer over one")
            return {"CANCELLED"}
        self._mouse = self._at = Vector((event.mouse_region_x, event.mouse_region_y))
        if self.pick and not _select_at(context, self._at):
            return {"CANCELLED"}  # Blender would move the selected bones, off their joints
        if self.pick:
            self.along = place_on(*_ends(context.active_pose_bone), ray_at(context, self._at))
        self._take_selected(context)
        self._met = _met_targets(context)
        try:
            self._drag = self._session(context)
        except CCDRigError as error:
            self.tell("ERROR", str(error))
            return {"CANCELLED"}
        bone = context.object.pose.bones[self._names(context)[0]]
        self._place = _place(bone, self.along)
        if not self.pick:  # the pulled point moves as far as the pointer, wherever the pointer began
            self._at = location_3d_to_region_2d(region, context.region_data, self._place) or self._at
        self._press, self._button = ray_at(context, self._at), event.type if self.pick else ""
        self._free, self._is_local, self._refusal = "", False, ""
        self._bone_axes = (bone.id_data.matrix_world @ bone.matrix).to_quaternion().to_matrix()
        self._delta = Vector()
        self._show(context)
        context.window_manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        pressed = event.value == "PRESS"
        if pressed and event.type in {"ESC", "RIGHTMOUSE"}:
            self.cancel(context)
            return {"CANCELLED"}
        let_go = bool(self._button) and event.type == self._button and event.value == "RELEASE"
        clicked = pressed and not self._button and event.type == "LEFTMOUSE"
        if let_go or clicked or (pressed and event.type in CONFIRM):
            self._leave(context)
            self.value, self.turning = self._delta, self._drag.turning
            self._finish(context, self._drag)
            return {"FINISHED"}
        try:
            if event.type == "MOUSEMOVE":
                here = Vector((event.mouse_region_x, event.mouse_region_y))
                self._at = self._at + (here - self._mouse) * (PRECISE if event.shift else 1.0)
                self._mouse = here
            elif pressed and event.type in LONGER | SHORTER:
                change = 1 if event.type in LONGER else -1
                self._drag.lengthen(self._drag.turning + change, self._delta)
            elif pressed and event.type in {"X", "Y", "Z"}:
                self._bind(context, event)
            elif event.type not in SNAP:
                return {"RUNNING_MODAL"}
            self._delta = self._motion(context, event)
            self._drag.move(self._delta)
            self._refusal = ""
        except CCDRigError as error:
            self._refusal = str(error)
        except BaseException:  # a bug shows its traceback, and leaves no half pose and no status text
            self.cancel(context)
            raise
        self._show(context)
        return {"RUNNING_MODAL"}

    def cancel(self, context: bpy.types.Context) -> None:
        """Restore the pose; Blender calls this too when it ends the drag itself."""
        self._drag.cancel()
        self._leave(context)

    def _session(self, context: bpy.types.Context) -> Session:
        """Begin a drag of bones by name; the first is pulled at `along`, others at their tails."""
        from ..ccd_rig.blender.drag.session import Pulled, Session

        bones = context.object.pose.bones
        pulled: list[Pulled] = []
        for name in self._names(context):
            along = 1.0 if pulled else self.along
            # The session refuses unknown bones by name.
            place = _place(bones[name], along) if name in bones else Vector()
            pulled.append(Pulled(name, place))
        return Session(context.object, context.evaluated_depsgraph_get(), pulled, self.turning)

    def _take_selected(self, context: bpy.types.Context) -> None:
        """Store the names of the selected bones, the active first: Redo begins with another selection."""
        active = context.active_pose_bone
        selected = sorted(_selected(context), key=lambda bone: bone != active)
        self.names = "\n".join(printable(bone.name) for bone in selected)

    def _names(self, context: bpy.types.Context) -> list[str]:
        """Names of the pulled bones; the property holds line breaks in a name as messages show them."""
        bones = {printable(bone.name): bone.name for bone in context.object.pose.bones}
        return [bones.get(line, line) for line in self.names.split("\n") if line]

    def _finish(self, context: bpy.types.Context, session: Session) -> None:
        from ..ccd_rig.blender.keys import auto_keys

        moved, still = session.written(), list[str]()
        if moved and self._met is not None:
            context.view_layer.update()
            try:
                targets, still = self._met.follow(context.evaluated_depsgraph_get())
                moved += targets
            except RigError as error:
                self.tell("WARNING", f"The targets stay where they are. {error}")
        if refusal := auto_keys.insert(context, moved):
            self.tell("WARNING", refusal)
        if still:
            words = "no empty and no control bone, so it stays where it is"
            self.tell("WARNING", f"The target of {named(still)} is {words}")
        if session.far_pins:
            self.tell("INFO", _far(session))
        rigs = {bone.id_data.name for bone in context.selected_pose_bones or ()}
        if others := rigs - {context.object.name}:
            self.tell("INFO", f"Bones of the active armature are pulled, and none of {named(sorted(others))}")

    def _bind(self, context: bpy.types.Context, event: bpy.types.Event) -> None:
        """Constrain the motion to an axis, or with Shift to the plane across it.

        A second press changes between global and local axes, a third frees the motion.
        """
        from ..ccd_rig.blender.viewport.pointer import Axes

        names = "XYZ".replace(event.type, "") if event.shift else event.type
        local_first = context.scene.transform_orientation_slots[0].type in BONE_ORIENTATIONS
        if names != self._free:
            self._free, self._is_local = names, local_first
        elif self._is_local == local_first:
            self._is_local = not local_first
        else:
            self._free = ""
        self._axes = Axes(self._bone_axes if self._is_local else Matrix.Identity(3), self._free)

    def _motion(self, context: bpy.types.Context, event: bpy.types.Event) -> Vector:
        """Motion of the pointer since the press, in world space."""
        from ..ccd_rig.blender.viewport.pointer import motion, ray_at, stepped

        forward = context.region_data.view_rotation @ Vector((0.0, 0.0, -1.0))
        axes = self._axes if self._free else None
        delta = motion(self._place, (self._press, ray_at(context, self._at)), forward, axes)
        tools = context.scene.tool_settings
        if event.ctrl != (tools.use_snap and "INCREMENT" in tools.snap_elements):
            step = context.space_data.overlay.grid_scale * (PRECISE if event.shift else 1.0)
            return stepped(delta, step, axes)
        return delta

    def _show(self, context: bpy.types.Context) -> None:
        """Show motion and chain in the header, keys in the status bar."""
        from ..ccd_rig.blender.drag.session import pin_words

        drag = self._drag
        shown = [f"D{axis.lower()}: {part:.4g}" for axis, part in zip("XYZ", self._delta, strict=True)]
        if self._free:
            axes = self._free
            shown.append(f"local {axes}" if self._is_local else f"global {axes}")
        bone, turning, most = printable(drag.name), drag.turning, drag.most
        chain = f"'{bone}': {turning} of {most} bones"
        if drag.pins:
            chain += f", {pin_words(drag.pins)}"
        words = f"{', '.join(shown)}. {chain}"
        if drag.far_pins:
            words += f". {_far(drag)}"
        if self._refusal:
            words += f". {self._refusal}"
        elif not drag.is_reached():
            words += ". As near as limits, pins and lengths allow"
        context.area.header_text_set(translated(words))
        keys = "Wheel: chain length. X, Y, Z: axis. Shift: precise. Ctrl: steps. Esc or right click: cancel"
        context.workspace.status_text_set(translated(keys))
        context.area.tag_redraw()

    def _leave(self, context: bpy.types.Context) -> None:
        context.area.header_text_set(None)
        context.workspace.status_text_set(None)
        context.area.tag_redraw()


def _met_targets(context: bpy.types.Context) -> MetTargets | None:
    """Targets that the pose of the active armature meets; None without any, and where Live goes by them."""
    from ..ccd_rig.blender import checks
    from ..ccd_rig.blender.bake.target_motion import MetTargets
    from ..ccd_rig.solvers.stepping import result_of

    rig = context.object
    if not rig.is_property_set("ccd_rig") or is_live(rig) or command.none_enabled(context):
        return None
    try:
        ready = result_of(checks.require(rig, context.scene, keyed=False))
        depsgraph = context.evaluated_depsgraph_get()
        return MetTargets.of(depsgraph, rig, ready.constraints, solver_settings(rig))
    except CCDRigError:  # nothing follows targets that cannot be solved; whoever solves them says why
        return None


def _far(session: Session) -> str:
    bone, names = printable(session.name), named(session.far_pins)
    return f"Pins out of reach, since nothing carries them together with '{bone}': {names}"


def _selected(context: bpy.types.Context) -> list[bpy.types.PoseBone]:
    """Selected bones of the active armature."""
    rig = context.object
    return [rig.pose.bones[name] for name in selected_bones(context, rig)]


def _select_at(context: bpy.types.Context, at: Vector) -> bool:
    """Activate the bone under the pointer; if it was not selected, deselect the others.

    Returns:
        Whether there is a bone of the active armature under the pointer.
    """
    from ..ccd_rig.blender.keys import channels

    rig, before = context.object, _selected(context)
    if {"CANCELLED"} & set(bpy.ops.view3d.select(location=(round(at.x), round(at.y)))):
        return False
    if context.active_pose_bone is None or context.active_pose_bone.id_data != rig:
        return False
    if context.active_pose_bone in before:
        for bone in before:
            channels.select_bone(bone, True)
    return True


def _ends(bone: bpy.types.PoseBone) -> tuple[Vector, Vector]:
    """Head and tail in world space."""
    world = bone.id_data.matrix_world
    return world @ bone.head, world @ bone.tail


def _place(bone: bpy.types.PoseBone, along: float) -> Vector:
    head, tail = _ends(bone)
    return head.lerp(tail, along)


class CCD_RIG_OT_pin(Command, bpy.types.Operator):
    bl_label = "Pin Bones"
    bl_description = (
        "Pin the place of the selected bones, again their rotation too, again free them: while others are "
        "dragged, pinned bones stay"
    )

    pick: HIDDEN.boolean("Bone under Pointer", "Pin the bone under the pointer, and no other")

    why_grey = staticmethod(command.not_posing)

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if self.pick:
            place = (event.mouse_region_x, event.mouse_region_y)
            if {"CANCELLED"} & set(bpy.ops.view3d.select(location=place)):
                self.tell("WARNING", "No bone is under the pointer: put it over one to pin it")
                return {"CANCELLED"}
        return self.execute(context)

    def run(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.blender.drag.session import NEXT_PIN

        bones = context.selected_pose_bones
        if not bones:
            raise RigError("Select the bones to pin")
        active = context.active_pose_bone
        kind = NEXT_PIN[(active if active in bones else bones[0]).ccd_rig.pin]
        for bone in bones:
            bone.ccd_rig.pin = kind
        names = named([bone.name for bone in bones])
        messages = {
            "NONE": f"Freed: {names}",
            "PLACE": f"Place pinned: {names}",
            "ROTATION": f"Place and rotation pinned: {names}",
        }
        self.tell("INFO", messages[kind])


class CCD_RIG_OT_pins_clear(Command, bpy.types.Operator):
    bl_label = "Free All Pins"
    bl_description = "Free all pinned bones of the armature"

    why_grey = staticmethod(command.not_posing)

    def run(self, context: bpy.types.Context) -> None:
        for bone in context.object.pose.bones:
            bone.ccd_rig.property_unset("pin")
