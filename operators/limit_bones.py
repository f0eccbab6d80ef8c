# SPDX-License-Identifier: GPL-3.0-or-later
"""What the operators of the menu "Limits" share: which bones they are for, and how they say what they did."""

from collections.abc import Sequence
from typing import Any

import bpy
from bpy.props import EnumProperty

from ..ccd_rig.blender.languages.translation import CONTEXT
from ..ccd_rig.blender.limit_sources.chosen_bones import Outcome, chosen
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.names_in_words import named
from ..ccd_rig.errors import CCDRigError
from . import poll_reasons, redo_lines
from .telling import tell

SCOPES = (
    ("SELECTED", "Selected Bones", "All bones that are selected in Pose Mode; the active one where none is"),
    ("CHAIN", "Chain", "The chain of the active CCD constraint"),
    ("ALL", "All Bones", "All bones of the armature"),
)


def sentence(words: str) -> str:
    """Words that begin with none of the user's names, with a capital letter."""
    return words[:1].upper() + words[1:]


class LimitOperator:
    """An operator that gives bones limits by its function `give`, in one step of undo.

    Attributes:
        fields: names of the properties that the redo panel shows.
        told: what there is to know about the limits, a line each.
    """

    bl_options = {"REGISTER", "UNDO"}
    fields: tuple[str, ...] = ("bones",)

    bones: EnumProperty(
        name="Bones",
        description="Which bones it is for",
        items=SCOPES,
        options={"SKIP_SAVE"},
        translation_context=CONTEXT,
    )
    told = ""

    @classmethod
    def poll(cls: Any, context: bpy.types.Context) -> bool:
        return poll_reasons.poll(cls, poll_reasons.no_pose_bone(context))

    def give(self, context: bpy.types.Context, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
        """Give limits to bones, or take them over from these bones; raises CCDRigError."""
        raise NotImplementedError

    def execute(self: Any, context: bpy.types.Context) -> set[str]:
        try:
            outcome = self.give(context, chosen(active_rig(context), self.bones))
        except CCDRigError as error:
            tell(self, {"ERROR"}, sentence(str(error)))
            return {"CANCELLED"}
        for area in context.screen.areas if context.screen is not None else ():
            area.tag_redraw()  # handles and rims of limits stand in other areas than the panel
        notes = [sentence(note) for note in outcome.notes]
        self.told = "\n".join([outcome.source, *notes] if outcome.source else notes)
        words = f"Limits of {named(outcome.done)} set"
        tell(self, {"INFO"}, f"{words}. {outcome.source}" if outcome.source else words)
        for note in notes:  # last: the status bar shows the last message alone
            tell(self, {"WARNING"}, note)
        return {"FINISHED"}

    def draw(self: Any, _context: bpy.types.Context) -> None:
        self.layout.use_property_split = True
        for name in self.fields:
            self.layout.prop(self, name)
        if self.told:
            redo_lines.draw(self.layout, self.told)
