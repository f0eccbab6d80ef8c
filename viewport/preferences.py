# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user chooses once for all files, in the preferences and in the popover of Blender's overlays."""

from typing import Any

import bpy
from bpy.props import BoolProperty, FloatVectorProperty, PointerProperty

from .. import __package__ as ROOT  # noqa: N812  (Blender's name of the extension)
from ..ccd_rig.blender.languages.translation import CONTEXT
from ..ccd_rig.blender.viewport.sketch import Palette
from . import new_rigs, online_manual, shortcut

COLOURS = {
    "limit": ("Limits", "Limits of bones"),
    "comfort": ("Comfort Regions", "Comfort regions inside limits"),
    "needle": ("Needle", "The present rotation in a limit"),
    "chain": ("Chain", "The active constraint's chain, and lines to targets"),
    "planted": ("Planted Bones", "Rings round planted bones"),
    "warning": ("Warning", "Bones at the border of their limit, and targets out of reach"),
}


def _colour(name: str) -> Any:
    label, description = COLOURS[name]
    default = Palette._field_defaults[name]
    return FloatVectorProperty(
        name=label,
        description=description,
        default=default,
        size=3,
        min=0.0,
        max=1.0,
        subtype="COLOR",
        translation_context=CONTEXT,
    )


class CCD_RIG_preferences(bpy.types.AddonPreferences):
    """Kept with Blender's preferences."""

    bl_idname = ROOT

    show_overlay: BoolProperty(
        name="Limits and Constraints",
        description="Draw the limit of the active bone with its handles, the active constraint's chain, "
        "lines to targets and planted bones",
        default=True,
    )
    show_chain_limits: BoolProperty(
        name="Limits of the Chain",
        description="Draw the limits of all bones of the active constraint's chain, not of the active bone "
        "alone",
        default=False,
    )
    follow_selection: BoolProperty(
        name="Constraint Follows Bone",
        description="Selecting a bone in Pose Mode makes its constraint the active one, and choosing a "
        "constraint selects its bone",
        default=True,
    )

    new_rigs: PointerProperty(
        name="New Rigs",
        description="What new rigs and constraints get, where it is not the default",
        type=new_rigs.CCD_RIG_PG_new_rigs,
    )

    def draw(self, context: bpy.types.Context) -> None:
        draw_choices(self.layout, self)
        self.layout.prop(self, "follow_selection")
        colours = self.layout.column(heading="Colors")
        colours.use_property_split = True
        for name in Palette._fields:
            colours.prop(self, f"{name}_colour")
        self.layout.label(text="Key of CCD Live")
        shortcut.draw(self.layout.column(), context, "ccd_rig.live")
        self.layout.label(text="Key of Drag Bones")
        shortcut.draw(self.layout.column(), context, "ccd_rig.drag")
        self.layout.label(text="New Rigs and Constraints")
        chosen = self.layout.column()
        chosen.use_property_split = True
        new_rigs.draw(chosen, self.new_rigs)
        self.layout.operator("wm.url_open", text="Manual", icon="HELP").url = online_manual.HOME


# From outside: since Python 3.14 a class has no annotations while its body runs.
CCD_RIG_preferences.__annotations__.update({f"{name}_colour": _colour(name) for name in Palette._fields})


class CCD_RIG_PT_overlay(bpy.types.Panel):
    bl_space_type = "VIEW_3D"
    bl_region_type = "HEADER"
    bl_parent_id = "VIEW3D_PT_overlay"
    bl_label = "CCD Rig"

    def draw(self, context: bpy.types.Context) -> None:
        chosen = preferences(context)
        if chosen is not None:
            self.layout.active = context.space_data.overlay.show_overlays
            draw_choices(self.layout, chosen)


def draw_choices(layout: bpy.types.UILayout, chosen: Any) -> None:
    """The switches of what is drawn."""
    lines = layout.column(align=True)
    lines.prop(chosen, "show_overlay")
    below = lines.row()
    below.active = chosen.show_overlay
    below.prop(chosen, "show_chain_limits")


def preferences(context: bpy.types.Context) -> Any:
    """What the user has chosen; None in a Blender that runs the extension without having it enabled."""
    addon = context.preferences.addons.get(ROOT)
    return None if addon is None else addon.preferences


def palette(context: bpy.types.Context) -> Palette:
    """The colours that the user has chosen."""
    chosen = preferences(context)
    if chosen is None:
        return Palette()
    return Palette(*(tuple(getattr(chosen, f"{name}_colour")) for name in Palette._fields))


def register() -> None:
    """Make the choices known to Blender."""
    bpy.utils.register_class(CCD_RIG_preferences)
    bpy.utils.register_class(CCD_RIG_PT_overlay)


def unregister() -> None:
    """Take them away again."""
    bpy.utils.unregister_class(CCD_RIG_PT_overlay)
    bpy.utils.unregister_class(CCD_RIG_preferences)
