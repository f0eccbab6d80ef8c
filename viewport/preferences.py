# SPDX-License-Identifier: GPL-3.0-or-later
"""Preferences of the extension: what the viewport shows, choices for new rigs, and keys of Live and Drag.

Choices for new rigs have the core's defaults; only those that the user has changed go to a new rig.
Live and Drag have no keys until the user sets one, like Blender's commands.
"""

from typing import Any

import bpy

from .. import __package__ as ROOT  # noqa: N812  (Blender's name of the extension)
from ..ccd_rig.blender.bake.settings import CCD_RIG_PG_bake
from ..ccd_rig.blender.figures.choices import RANGES, Choices
from ..ccd_rig.blender.languages.translation import CONTEXT
from ..ccd_rig.blender.properties.solver_settings import CCD_RIG_PG_solver
from ..ccd_rig.blender.registration import LAST
from ..ccd_rig.blender.viewport.palette import Palette
from ..ccd_rig.defaults import MAX_EXTENSION
from . import online_manual

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
    return LAST.vector(
        label,
        description,
        default=default,
        size=3,
        min=0.0,
        max=1.0,
        subtype="COLOR",
        translation_context=CONTEXT,
    )


BAKE = ("destination", "keys", "step", "start", "reduce_angle", "reduce_error", "verify", "switch_to_fk")
SOLVER = ("solver", "max_iterations", "position_tolerance", "angle_tolerance", "restarts")
FIGURE = ("poles", "follow_motion", "ranges", "control_bones")


class CCD_RIG_PG_new_figure(bpy.types.PropertyGroup):
    """Defaults of Set Up Figure."""

    poles: LAST.of(Choices, "poles")
    follow_motion: LAST.of(Choices, "follow_motion")
    ranges: LAST.of(Choices, "ranges", name="Joints", items=RANGES)
    control_bones: LAST.of(Choices, "control_bones")


class CCD_RIG_PG_new_rigs(bpy.types.PropertyGroup):
    """Choices for new rigs and constraints."""

    bake: LAST.pointer("Bake", "Options of a new rig's bakes", type=CCD_RIG_PG_bake)
    solver: LAST.pointer("Solver", "Solver settings of a new rig", type=CCD_RIG_PG_solver)
    figure: LAST.pointer("Set Up Figure", "What Set Up Figure makes", type=CCD_RIG_PG_new_figure)
    max_extension: LAST.number(
        "Max Extension",
        "Part of its length past which a new constraint's chain is never stretched; 1 is off",
        default=MAX_EXTENSION,
        min=0.01,
        max=1.0,
        subtype="FACTOR",
    )


class CCD_RIG_preferences(bpy.types.AddonPreferences):
    """Preferences of the extension."""

    bl_idname = ROOT

    show_overlay: LAST.boolean(
        "Limits and Constraints",
        "Draw the limit of the active bone with its handles, the active constraint's chain, "
        "lines to targets and planted bones",
        default=True,
    )
    show_chain_limits: LAST.boolean(
        "Limits of the Chain",
        "Draw the limits of all bones of the active constraint's chain, not of the active bone alone",
        default=False,
    )
    follow_selection: LAST.boolean(
        "Constraint Follows Bone",
        "Selecting a bone in Pose Mode makes its constraint the active one, and choosing a "
        "constraint selects its bone",
        default=True,
    )

    new_rigs: LAST.pointer(
        "New Rigs", "What new rigs and constraints get, where it is not the default", type=CCD_RIG_PG_new_rigs
    )

    def draw(self, context: bpy.types.Context) -> None:
        draw_choices(self.layout, self)
        self.layout.prop(self, "follow_selection")
        colours = self.layout.column(heading="Colors")
        colours.use_property_split = True
        for name in Palette._fields:
            colours.prop(self, f"{name}_colour")
        self.layout.label(text="Key of CCD Live")
        _draw_key(self.layout.column(), context, "ccd_rig.live")
        self.layout.label(text="Key of Drag Bones")
        _draw_key(self.layout.column(), context, "ccd_rig.drag")
        self.layout.label(text="New Rigs and Constraints")
        chosen = self.layout.column()
        chosen.use_property_split = True
        _draw_new_rigs(chosen, self.new_rigs)
        self.layout.operator("wm.url_open", text="Manual", icon="HELP").url = online_manual.HOME


# From outside: since Python 3.14 a class has no annotations while its body runs.
CCD_RIG_preferences.__annotations__.update({f"{name}_colour": _colour(name) for name in Palette._fields})


def _draw_new_rigs(layout: bpy.types.UILayout, chosen: Any) -> None:
    """Draw the choices for new rigs in folded panels."""
    layout.prop(chosen, "max_extension")
    for group, names in (("figure", FIGURE), ("bake", BAKE), ("solver", SOLVER)):
        header: Any
        body: Any
        header, body = layout.panel(f"ccd_rig_new_{group}", default_closed=True)
        header.label(text=chosen.bl_rna.properties[group].name)
        if body is not None:
            for name in names:
                body.prop(getattr(chosen, group), name)


COMMANDS = {"ccd_rig.live": ("3D View", "VIEW_3D"), "ccd_rig.drag": ("Pose", "EMPTY")}
"""{command that may have a key: (keymap, space of the keymap)}"""

_keymap_items: list[tuple[Any, Any]] = []
"""(keymap, keymap item) of each command, while the extension is enabled."""


def _draw_key(layout: bpy.types.UILayout, context: bpy.types.Context, command: str) -> None:
    """Draw the keymap item of a command like Blender's preferences do."""
    import rna_keymap_ui  # part of Blender; its imports need a window

    configuration = context.window_manager.keyconfigs.user
    keymap = configuration.keymaps.get(COMMANDS[command][0]) if configuration is not None else None
    items = () if keymap is None else keymap.keymap_items
    entry = next((item for item in items if item.idname == command), None)
    if entry is None or context.region is None:
        layout.label(text="Keys are set in a window of Blender", icon="INFO")
        return
    layout.context_pointer_set("keymap", keymap)
    rna_keymap_ui.draw_kmi([], configuration, keymap, entry, layout, 0)


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
    """Draw the switches of the overlay."""
    lines = layout.column(align=True)
    lines.prop(chosen, "show_overlay")
    below = lines.row()
    below.active = chosen.show_overlay
    below.prop(chosen, "show_chain_limits")


def preferences(context: bpy.types.Context) -> Any:
    """Return the preferences; None in a Blender that runs the extension without having it enabled."""
    addon = context.preferences.addons.get(ROOT)
    return None if addon is None else addon.preferences


def palette(context: bpy.types.Context) -> Palette:
    """Return the colours of the preferences."""
    chosen = preferences(context)
    if chosen is None:
        return Palette()
    return Palette(*(tuple(getattr(chosen, f"{name}_colour")) for name in Palette._fields))


CLASSES = (CCD_RIG_PG_new_figure, CCD_RIG_PG_new_rigs, CCD_RIG_preferences, CCD_RIG_PT_overlay)


def register() -> None:
    """Register the preferences, and keymap items without keys; Blender stores the user's changes to them."""
    for preference_class in CLASSES:
        bpy.utils.register_class(preference_class)
    configuration = bpy.context.window_manager.keyconfigs.addon
    if configuration is None:  # a Blender without keys, as in the background
        return
    for command, (name, space) in COMMANDS.items():
        keymap = configuration.keymaps.new(name=name, space_type=space)
        _keymap_items.append((keymap, keymap.keymap_items.new(command, type="NONE", value="PRESS")))


def unregister() -> None:
    """Remove the keymap items and unregister the preferences."""
    for keymap, entry in _keymap_items:
        keymap.keymap_items.remove(entry)
    _keymap_items.clear()
    for preference_class in reversed(CLASSES):
        bpy.utils.unregister_class(preference_class)
