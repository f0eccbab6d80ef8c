"""Quaternion Cyclic Coordinate Descent: the public names of the solver. Nothing here needs bpy."""

import importlib
import sys

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

from .errors import CCDRigError, InvalidInput, RigError
from .goals import (
    BalanceGoal,
    DirectionGoal,
    Goal,
    GoalError,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
)
from .limits.shapes import (
    Comfort,
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    Limit,
    Slide,
    SwingTwist,
    clamp,
    contains,
    sample,
)
from .settings import PRESETS, Solver, SolveResult, SolverSettings, SolveStatus, Sweep
from .skeleton.builders import planar_chain, split_ball
from .skeleton.joints import CoupledOffset, Joint, Skeleton
from .skeleton.kinematics import Transform, forward_kinematics
from .skeleton.pose import Pose
from .skeleton.pose_library import PoseEntry
from .skeleton.rerooting import reroot, restore_root
from .solvers.closed_forms import TwoBoneOptions, target_triangle, two_bone
from .solvers.drag import Drag, Grab, Pin, Support, drag
from .solvers.many import ManyResult, solve_many
from .solvers.problem_tables import measure
from .solvers.solve import iterate, solve

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
