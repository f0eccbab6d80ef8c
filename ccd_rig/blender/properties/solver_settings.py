# SPDX-License-Identifier: GPL-3.0-or-later
"""The core's solver settings as properties. Defaults and tooltips are read from the core's dataclasses."""

import dataclasses
import enum
import math
from typing import Any

import bpy

from ...errors import InvalidInput, RigError
from ...maths.validation import single
from ...settings import (
    EVEN_REDUCTION,
    PRESET_FIELDS,
    PRESETS,
    Solver,
    SolverSettings,
    Sweep,
)
from ..languages.translation import CONTEXT
from ..registration import STORED, Declare

# Labels, ends of sliders, and tooltips that speak of bones where the core speaks of joints.
_SHOWN: dict[str, dict[str, Any]] = {
    "solver": {
        "name": "Solver",
        "description": "CCD alone, or CCD together with damped least squares of all joints at once",
        "translation_context": CONTEXT,
    },
    "max_iterations": {"name": "Iterations", "soft_max": 500},
    "position_tolerance": {
        "name": "Position Tolerance",
        "description": "A bone has reached its target when it is this near, in the world's unit",
        "min": 1e-6,
        "soft_max": 0.1,
        "precision": 5,
        "step": 0.01,
        "unit": "LENGTH",
    },
    "angle_tolerance": {
        "name": "Angle Tolerance",
        "description": "An orientation, direction or pole goal is met when it is this near",
        "min": 1e-6,
        "max": math.pi,
        "soft_max": 0.1,
        "subtype": "ANGLE",
        "precision": 3,
    },
    "sweep": {"name": "Bone Order"},
    "step_fraction": {"name": "Step Size", "subtype": "FACTOR"},
    "step_feedback": {
        "name": "Exact Near Target",
        "description": "How far steps become exact again as the error falls: at 1, those near the target are",
        "subtype": "FACTOR",
    },
    "error_reduction": {
        "name": "Even Bend",
        "description": "Part of the error that one pass removes, shared out so that long chains bend evenly; "
        "0 leaves it at Step Size",
        "max": EVEN_REDUCTION,
        "subtype": "FACTOR",
    },
    "stall_threshold": {"name": "Least Progress", "soft_max": 1e-3, "precision": 6},
    "restarts": {"soft_max": 30},
    "comfort": {"name": "Use Comfort"},
    "seed": {
        "name": "Random Seed",
        "description": "Another number draws other random poses to start again from",
    },
}
# Files store the numbers: an item keeps its number for good.
_SOLVERS = (
    (Solver.CCD, "CCD", "Joint by joint, from the pose that the action plays", 0),
    (
        Solver.CCD_LEAST_SQUARES,
        "CCD and Least Squares",
        "All joints at once by damped least squares; CCD where these do not reach",
        1,
    ),
)
_ORDERS = (
    (Sweep.TIP_TO_ROOT, "Tip to Root", "Children before parents: bones near the tip move most", 0),
    (Sweep.ROOT_TO_TIP, "Root to Tip", "Parents before children: the motion spreads over the whole chain", 1),
    (Sweep.ALTERNATING, "Alternating", "Tip to root and root to tip by turns", 2),
    (Sweep.BOUNCE_TIP, "Bounce from Tip", "From the tip one bone further each time, and back to the tip", 3),
    (
        Sweep.BOUNCE_ROOT,
        "Bounce from Root",
        "From the root one bone further each time, and back to the root",
        4,
    ),
    (
        Sweep.SMART_BOUNCE,
        "Smart Bounce",
        "From the tip, and back to it after each turn that is not tiny: far bones wait for near ones",
        5,
    ),
    (Sweep.LARGEST_ERROR, "Largest Error", "Bones that would turn furthest come first", 6),
)

_ITEMS: dict[str, tuple[tuple[enum.Enum, str, str, int], ...]] = {"solver": _SOLVERS, "sweep": _ORDERS}

PRESET_WORDS = {
    "DEFAULT": ("Default", "What a new armature has"),
    "LIMB": ("Limb", "Full steps: arms, legs and other chains of up to four bones, in few iterations"),
    "TAIL": (
        "Tail or Spine",
        "Each pass shared out over the chain: tails, spines and necks bend evenly and do not coil",
    ),
}
"""Label and tooltip of each preset of the core."""


def solver_property(declare: Declare, name: str) -> Any:
    """Declare the property of a solver setting."""
    shown = _SHOWN.get(name, {})
    if name in _ITEMS:
        items = tuple((item.name, label, words, number) for item, label, words, number in _ITEMS[name])
        shown = {**shown, "items": items}
    return declare.of(SolverSettings, name, **shown)


class CCD_RIG_PG_solver(bpy.types.PropertyGroup):
    """The core's SolverSettings, field by field."""

    __annotations__ = {
        field.name: solver_property(STORED, field.name) for field in dataclasses.fields(SolverSettings)
    }


def apply_preset(armature_object: bpy.types.Object, name: str) -> None:
    """Set the fields of a preset of the core, and no other."""
    group, preset = armature_object.ccd_rig.solver, PRESETS[name]
    for field in PRESET_FIELDS:
        value = getattr(preset, field)
        setattr(group, field, _stored(value))


def present_preset(armature_object: bpy.types.Object) -> str:
    """Return the name of the preset that the settings are equal to, or an empty text."""
    group = armature_object.ccd_rig.solver
    fits = (
        name
        for name, preset in PRESETS.items()
        if all(_stored(getattr(preset, field)) == getattr(group, field) for field in PRESET_FIELDS)
    )
    return next(fits, "")


def _stored(value: Any) -> Any:
    """Return a value of the core as a property stores it, in single precision."""
    if isinstance(value, enum.Enum):
        return value.name
    return single(value) if isinstance(value, float) else value


def solver_settings(armature_object: bpy.types.Object) -> SolverSettings:
    """Return the solver settings of an armature as a value; raises RigError naming the armature and field."""
    group = armature_object.ccd_rig.solver
    for name in _ITEMS:
        if not getattr(group, name):  # the file has a number that is not in the list
            raise RigError(
                f"armature '{armature_object.name}', solver settings: {_SHOWN[name]['name']} is not known to "
                "this version: choose one, or update CCD Rig"
            )
    values = {field.name: getattr(group, field.name) for field in dataclasses.fields(SolverSettings)}
    try:
        return SolverSettings(**(values | {"solver": Solver[group.solver], "sweep": Sweep[group.sweep]}))
    except InvalidInput as error:
        raise RigError(f"armature '{armature_object.name}', solver settings: {error}") from error
