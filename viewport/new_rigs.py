# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user wants of new rigs and constraints, kept with the preferences.

The defaults are the core's. The preferences hold what the user has changed, and only that goes to a new rig.
"""

from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, PointerProperty

from ..ccd_rig.blender.bake.options import CCD_RIG_PG_bake
from ..ccd_rig.blender.properties.solver_settings import CCD_RIG_PG_solver, from_core
from ..ccd_rig.blender.set_up.plan import RANGES, Choices
from ..ccd_rig.goals import PositionGoal

BAKE = ("destination", "keys", "step", "start", "reduce_angle", "reduce_error", "verify", "switch_to_fk")
SOLVER = ("solver", "max_iterations", "position_tolerance", "angle_tolerance", "restarts")
FIGURE = ("poles", "follow_motion", "ranges", "control_bones")


class CCD_RIG_PG_new_figure(bpy.types.PropertyGroup):
    """What Set Up Figure makes unless it is asked for something else."""

    poles: BoolProperty(
        name="Poles", description="Objects that knees and elbows point at", default=Choices.poles
    )
    follow_motion: BoolProperty(
        name="Follow Motion",
        description="Key targets along the motion that a figure has",
        default=Choices.follow_motion,
    )
    ranges: EnumProperty(
        name="Joints",
        description="What joints get of the preset for such a figure",
        items=RANGES,
        default=Choices.ranges,
    )
    control_bones: BoolProperty(
        name="Control Bones",
        description="Make targets and poles as bones of the armature, with a bone collection and shapes of "
        "their own, instead of empties",
        default=Choices.control_bones,
    )


class CCD_RIG_PG_new_rigs(bpy.types.PropertyGroup):
    """What new rigs and constraints get."""

    bake: PointerProperty(name="Bake", description="Options of a new rig's bakes", type=CCD_RIG_PG_bake)
    solver: PointerProperty(name="Solver", description="Solver settings of a new rig", type=CCD_RIG_PG_solver)
    figure: PointerProperty(
        name="Set Up Figure", description="What Set Up Figure makes", type=CCD_RIG_PG_new_figure
    )
    max_extension: FloatProperty(
        **from_core(
            PositionGoal,
            "max_extension",
            description="Part of its length past which a new constraint's chain is never stretched; 1 is off",
        ),
        min=0.01,
        max=1.0,
        subtype="FACTOR",
    )


CLASSES = (CCD_RIG_PG_new_figure, CCD_RIG_PG_new_rigs)


def draw(layout: bpy.types.UILayout, chosen: Any) -> None:
    """The choices, in folded parts."""
    layout.prop(chosen, "max_extension")
    for group, names in (("figure", FIGURE), ("bake", BAKE), ("solver", SOLVER)):
        header: Any
        body: Any
        header, body = layout.panel(f"ccd_rig_new_{group}", default_closed=True)
        header.label(text=chosen.bl_rna.properties[group].name)
        if body is not None:
            for name in names:
                body.prop(getattr(chosen, group), name)


def register() -> None:
    """Make the groups known to Blender."""
    for group in CLASSES:
        bpy.utils.register_class(group)


def unregister() -> None:
    """Take them away again."""
    for group in reversed(CLASSES):
        bpy.utils.unregister_class(group)
