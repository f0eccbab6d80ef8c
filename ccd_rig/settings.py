"""Settings, status and result of a solve."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from .errors import InvalidInput
from .maths.validation import SIZES, ranged, require_ranges, shown

if TYPE_CHECKING:
    from .goals import GoalError
    from .skeleton.pose import Pose


class Sweep(enum.Enum):
    """The order of one pass over the joints that may move. Places in this list are the kernel's numbers.

    Kenwright's listings leave out the first joint (`i > 0`); every joint is visited here.
    """

    TIP_TO_ROOT = "TIP_TO_ROOT"
    """Children before parents: joints near the effector move most (Kenwright 2012, listing 1)."""
    ROOT_TO_TIP = "ROOT_TO_TIP"
    """Parents before children: the motion spreads over the whole chain (Kenwright 2012, listing 2)."""
    ALTERNATING = "ALTERNATING"
    """Tip to root and root to tip by turns: the slowest near a target. A pass leaves the product of the
    cosines between neighbours' lines to the effector; others gain that between root and tip too."""
    BOUNCE_TIP = "BOUNCE_TIP"
    """From the tip one joint further each time, and back to the tip (Kenwright 2012, listing 3)."""
    BOUNCE_ROOT = "BOUNCE_ROOT"
    """The same from the root."""
    SMART_BOUNCE = "SMART_BOUNCE"
    """From the tip, and back to it after each correction that is not tiny, as long as that pays: far joints
    stay still where near ones suffice (Kenwright 2012, listing 4). One iteration ends at the root, or after
    as many single steps as a bounce takes."""
    LARGEST_ERROR = "LARGEST_ERROR"
    """Joints that would turn furthest come first."""


class Solver(enum.Enum):
    """Methods of a solve and a bake."""

    CCD = "CCD"
    """Cyclic Coordinate Descent alone."""
    CCD_LEAST_SQUARES = "CCD_LEAST_SQUARES"
    """CCD, and damped least squares of all joints at once. Near a reference pose, as in a bake, least squares
    come first, and CCD where they do not reach."""


LARGEST_REDUCTION = 0.999
"""Largest part of the error that one pass may remove."""
EVEN_REDUCTION = 0.97
"""Largest part of the error removed by a pass, joint by joint, at which no chain coils.

Measured in docs/measurements/orders.md.
"""
SMOOTHNESS = 5.0
"""Weight of changes of departures between frames, beside departures; 0: each frame by itself."""
MOST_SMOOTHNESS = 1000.0
"""Largest smoothness; more would keep departures constant."""
MOST_ITERATIONS, MOST_RESTARTS = 1_000_000, 10_000
"""Largest iterations of a try, and largest number of other starts."""
STEP_RANGE = (0.1, 1.3)
"""Least and largest part of a step."""


class SolveStatus(enum.Enum):
    """Outcomes of a solve."""

    CONVERGED = "CONVERGED"
    """Every goal is met within its tolerance."""
    STALLED = "STALLED"
    """No more progress, though a small motion inside the limits would still come nearer.

    The pose is in a local minimum, or a reach window or comfort tolerance is active.
    """
    OPTIMAL = "OPTIMAL"
    """Out of reach or in conflict, and no small motion inside the limits comes nearer, each
    joint moved for its own goals."""
    ITERATION_LIMIT = "ITERATION_LIMIT"
    """`max_iterations` ran out in the last try while the goals still came nearer."""


@dataclass(frozen=True, kw_only=True)
class SolverSettings:
    """Settings of a solve.

    Attributes:
        solver: CCD alone, or CCD together with damped least squares of all joints at once (Wang & Chen 1991).
        max_iterations: most passes over the joints in one try; a step of least squares counts as one. The
            first solve is a try, each other start is one, and so is the last one, from the nearest of these.
        position_tolerance: a position goal is met when its effector is this near to the target, in the
            model's unit.
        angle_tolerance: an orientation, direction or pole goal is met when it is this near, radians.
        sweep: the order in which joints are visited.
        step_fraction: part of each joint's best step that is taken, 0.1 to 1.3: below 1 the motion is spread
            over more joints, above 1 it overshoots (Kenwright 2012, section 8).
        step_feedback: 0 to 1, how much of what `step_fraction` differs from 1 is taken back as the error
            falls: 1 lets the steps become exact near the target (Kenwright 2012, section 8).
        error_reduction: 0 leaves it at `step_fraction`. Above 0, below 1: instead, one pass removes this part
            of the error. It is shared out over a chain's joints by the square of their lever (the chain's
            length from a joint to the effector), which is the step of least squared rotation: long chains
            bend evenly. For one position and joints that only turn, all joints move at once and take the
            whole way.
        stall_threshold: an iteration that moves no effector along an arc of more than this part of the
            chain's reach counts as no progress (Juckett's trivial arc).
        restarts: how many other starts are tried when the goals are not met, after progress has ended or the
            iterations have run out: entries of a pose library, the nearest first, then random poses inside
            the limits (Kenwright 2012, section 7). Targets out of reach have none.
        seed: of the random poses.
        comfort: whether the joints' comfort tolerances and regions are used.

    Raises:
        InvalidInput: names the field and what would be right.
    """

    solver: Solver = Solver.CCD_LEAST_SQUARES
    max_iterations: int = ranged(300, 1, MOST_ITERATIONS)
    position_tolerance: float = ranged(1e-4, *SIZES)
    angle_tolerance: float = ranged(1e-3, *SIZES)
    sweep: Sweep = Sweep.ROOT_TO_TIP
    step_fraction: float = ranged(0.9, *STEP_RANGE)
    step_feedback: float = ranged(0.0, 0.0, 1.0)
    error_reduction: float = ranged(0.0, 0.0, LARGEST_REDUCTION)
    stall_threshold: float = ranged(1e-6, 0.0, 1.0)
    restarts: int = ranged(8, 0, MOST_RESTARTS)
    seed: int = ranged(0, -math.inf)
    comfort: bool = True

    def __post_init__(self) -> None:
        require_ranges(self)
        for name, kind in (("solver", Solver), ("sweep", Sweep)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                allowed = ", ".join(each.name for each in kind)
                raise InvalidInput(f"{name} must be one of {allowed}, not {shown(value)}")

    def in_tolerances(self, error: GoalError) -> float:
        """The error of a goal in tolerances: it is met at 1 and below."""
        return max(error.distance / self.position_tolerance, error.angle / self.angle_tolerance)


PRESETS: Mapping[str, SolverSettings] = MappingProxyType(
    {
        "DEFAULT": SolverSettings(),
        "LIMB": SolverSettings(step_fraction=1.0),
        "TAIL": SolverSettings(error_reduction=0.95),
    }
)
"""Settings by kind of chain, as measured in docs/measurements/orders.md. Limbs have up to 4 joints."""
PRESET_FIELDS = ("sweep", "step_fraction", "step_feedback", "error_reduction")
"""Fields of a preset: the steps. Solver, tolerances, iterations and comfort are the user's."""


@dataclass(frozen=True)
class SolveResult:
    """Result of a solve.

    Attributes:
        pose: the best pose, inside all limits.
        status: outcome of the solve (inside `iterate`: ITERATION_LIMIT until the last item).
        iterations: passes over the joints so far, of all tries.
        errors: of each goal in `pose`, in the order of the goals.
    """

    pose: Pose
    status: SolveStatus
    iterations: int
    errors: tuple[GoalError, ...]
