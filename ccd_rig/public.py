"""The public names of the solver, which `ccd_rig` has when one of them is first used."""

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
