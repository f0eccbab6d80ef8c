"""Quaternion Cyclic Coordinate Descent: the public names of the solver. Nothing here needs bpy."""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from . import interrupts

if interrupts.is_program(sys.argv[0] if sys.argv else "", sys.orig_argv):
    interrupts.end_at_interrupt()  # before anything that takes time is loaded

try:
    import mathutils  # noqa: F401
except ModuleNotFoundError:
    # Where Blender is a Python module, mathutils is a part of it that can be imported only after it.
    try:
        importlib.import_module("bpy")
    except ModuleNotFoundError:
        raise ModuleNotFoundError("ccd_rig needs mathutils, part of Blender: pip install bpy") from None

if TYPE_CHECKING:
    from .public import *

__all__ = [
    "PRESETS",
    "BalanceGoal",
    "CCDRigError",
    "Comfort",
    "Cone",
    "CoupledOffset",
    "DirectionGoal",
    "Drag",
    "Ellipse",
    "EulerBox",
    "Goal",
    "GoalError",
    "Grab",
    "Hinge",
    "InvalidInput",
    "Joint",
    "Limit",
    "ManyResult",
    "OrientationGoal",
    "Pin",
    "PoleGoal",
    "Pose",
    "PoseEntry",
    "PositionGoal",
    "RigError",
    "Skeleton",
    "Slide",
    "SolveResult",
    "SolveStatus",
    "Solver",
    "SolverSettings",
    "Support",
    "Sweep",
    "SwingTwist",
    "Transform",
    "TwoBoneOptions",
    "clamp",
    "contains",
    "drag",
    "forward_kinematics",
    "iterate",
    "measure",
    "planar_chain",
    "reroot",
    "restore_root",
    "sample",
    "solve",
    "solve_many",
    "split_ball",
    "target_triangle",
    "two_bone",
]


def __getattr__(name: str) -> Any:
    """Return a public name: an extension of Blender that is only enabled loads no solver."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import public

    return getattr(public, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
