# SPDX-License-Identifier: GPL-3.0-or-later
"""Key targets and poles where the motion of the bones has them."""

from contextlib import ExitStack
from typing import Any

import bpy
from bpy.props import EnumProperty, IntProperty

from ..ccd_rig.blender.bake import switches, target_motion
from ..ccd_rig.blender.checks import setup
from ..ccd_rig.blender.properties import constraint_list
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.constraint_values import Kind
from ..ccd_rig.blender.properties.new_targets import new_target
from ..ccd_rig.blender.properties.solver_settings import solver_settings
from ..ccd_rig.errors import CCDRigError, RigError
from ..ccd_rig.solvers.stepping import result_of
from . import poll_reasons
from .telling import tell

FRAMES = (
    ("ALL", "Every Frame", "Key targets at every frame of the range"),
    ("KEYED", "Where Bones Have Keys", "Key targets only at frames at which bones of the chains have keys"),
)


class CCD_RIG_OT_targets_from_motion(bpy.types.Operator):
    bl_idname = "ccd_rig.targets_from_motion"
    bl_label = "Targets from Motion"
    bl_description = (
        "Key each target where the animation has its bone, and each pole on the side of the bend, over the "
        "scene's range. A bake then leaves the motion as it is until a target is moved"
    )
    bl_options = {"REGISTER", "UNDO"}

    frames: EnumProperty(name="Frames", description="Which frames get keys", items=FRAMES)
    every: IntProperty(
        name="More Targets Every",
        description="Also give every n-th bone of the active constraint's chain a target of its own, so that "
        "a tail keeps its shape; 0 adds none",
        default=0,
        min=0,
        soft_max=20,
        options={"SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.none_enabled(context))

    def invoke(self, context: bpy.types.Context, _event: bpy.types.Event) -> set[str]:
        if bpy.app.background:
            return self.execute(context)
        answer: set[str] = set(context.window_manager.invoke_props_dialog(self))
        return answer

    def draw(self, _context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop(self, "frames")
        layout.prop(self, "every")

    def execute(self, context: bpy.types.Context) -> set[str]:
        rig, scene = active_rig(context), context.scene
        with ExitStack() as undo:
            try:
                if self.every:
                    _add_targets(context, rig, self.every, undo)
                ready = result_of(setup.require(rig, scene, ()))
                frames = self._frames(scene, rig, ready.constraints)
                solver = solver_settings(rig)
                count = target_motion.key_targets(scene, rig, ready.constraints, frames, solver, undo)
            except CCDRigError as error:
                tell(self, {"ERROR"}, str(error))
                return {"CANCELLED"}
            undo.pop_all()
        if warning := switches.ik_warning(scene, rig, ready.constraints, frames):
            tell(self, {"WARNING"}, warning)
        words = f"{count} target{'' if count == 1 else 's'} at {len(frames)} frames"
        tell(self, {"INFO"}, f"Keyed {words}")
        return {"FINISHED"}

    def _frames(self, scene: bpy.types.Scene, rig: bpy.types.Object, constraints: Any) -> list[float]:
        preview = scene.use_preview_range
        first = scene.frame_preview_start if preview else scene.frame_start
        last = scene.frame_preview_end if preview else scene.frame_end
        if self.frames == "ALL":
            return [float(frame) for frame in range(first, last + 1)]
        chains = (constraint_list.chain(rig, row.tip, row.chain_length) for row in constraints)
        bones = list({bone.name for chain in chains for bone in chain})
        found = target_motion.keyed_frames(scene, rig, bones, first, last)
        if not found:
            raise RigError(
                f"No bone of the chains has keys in frames {first} to {last}: key one, or all frames"
            )
        return found


def _add_targets(context: bpy.types.Context, rig: bpy.types.Object, every: int, undo: ExitStack) -> None:
    """Constraints with new targets for every n-th bone of the active constraint's chain."""
    row = constraint_list.active(rig)
    if row is None or row.kind != Kind.REACH:
        raise RigError("More Targets Every needs a Reach as the active constraint: choose one in the list")
    chain = constraint_list.chain(rig, row.tip, row.chain_length)
    taken = {each.tip for each in rig.ccd_rig.constraints}
    active_index = rig.ccd_rig.active_index
    undo.callback(setattr, rig.ccd_rig, "active_index", active_index)
    undo.callback(_remove_new_collections, set(bpy.data.collections))
    for k in range(every, len(chain) - 1, every):
        name = chain[k].name
        if name in taken:
            continue
        target = new_target(context, rig, f"Target {name}", name)
        undo.callback(bpy.data.objects.remove, target)
        added = constraint_list.add(rig, name, name)
        undo.callback(constraint_list.remove, rig, len(rig.ccd_rig.constraints) - 1)
        added.target, added.chain_length = target, len(chain) - k
    rig.ccd_rig.active_index = active_index


def _remove_new_collections(before: set[bpy.types.Collection]) -> None:
    for made in set(bpy.data.collections) - before:
        bpy.data.collections.remove(made)
