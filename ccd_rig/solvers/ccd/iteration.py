"""One iteration of the loop: a pass over the joints, and how large its steps are."""

from __future__ import annotations

from ...settings import STEP_RANGE, Solver, SolverSettings, Sweep
from . import passes, shared_passes
from .effectors import PositionEffector
from .sweeps import visits
from .two_bone_tip import solve_two_bone_tip, two_bone_tips_of
from .working_pose import WorkingPose


def run_iteration(
    working: WorkingPose, settings: SolverSettings, iteration: int, fraction: float, calm: bool = False
) -> float:
    """One pass over the joints; returns the longest way that an effector was moved by one step.

    `calm`: joint by joint, to the dead end that is nearest, which moves with the target.
    """
    # Carrying rounds a little: stop a little inside the tolerance, so that the rebuilt pose is inside it too.
    enough = (0.9 * settings.position_tolerance) ** 2
    if settings.sweep is Sweep.ROOT_TO_TIP and fraction <= 1.0:
        if working.pass_plan is None:
            plan = passes.plan_pass(working) if not two_bone_tips_of(working) else []
            shared = (
                shared_passes.plan_pass(working, plan) if shares_passes(working, settings, calm) else None
            )
            working.keep_plan(shared or plan)
        if isinstance(working.pass_plan, shared_passes.PassPlan):
            return shared_passes.run_pass(working, working.pass_plan)
        if working.pass_plan:
            return passes.run_pass(working, working.pass_plan, fraction, enough)
    only = (
        working.effectors[0]
        if len(working.effectors) == 1 and isinstance(working.effectors[0], PositionEffector)
        else None
    )
    longest = 0.0
    joints = working.movable
    tips = two_bone_tips_of(working)
    if tips:
        for effector in tips:
            solve_two_bone_tip(working, effector)
        if only is not None and (only.position - only.target).length_squared <= enough:
            working.recompute()
            return longest
        ends = {i for effector in tips for i in effector.moving_joints[-2:]}
        joints = [i for i in joints if i not in ends]
    for i in visits(settings.sweep, joints, iteration, working):
        longest = max(longest, working.step(i, fraction))
        # Kenwright 2012, listings 1 to 4: done as soon as the target is reached, later joints stay as they
        # are.
        if only is not None and (only.position - only.target).length_squared <= enough:
            break
    for effector in tips:
        solve_two_bone_tip(working, effector)
    working.recompute()
    return longest


def shares_passes(working: WorkingPose, settings: SolverSettings, calm: bool) -> bool:
    """Whether passes may be least squares of all joints at once, which know the reference pose themselves.

    CCD alone goes to a reference pose joint by joint.
    """
    return (
        settings.error_reduction > 0.0
        and not calm
        and settings.sweep is Sweep.ROOT_TO_TIP
        and (settings.solver is not Solver.CCD or working.reference is None)
        and shared_passes.plan_pass(working, passes.plan_pass(working)) is not None
    )


def fraction_of_step(settings: SolverSettings, error: float, start: float) -> float:
    """Kenwright 2012, section 8: the part of a step beside 1 is fed back from the error, and clamped."""
    if settings.error_reduction > 0.0:
        return 1.0
    beside = settings.step_fraction - 1.0
    if settings.step_feedback > 0.0 and start > 0.0:
        beside *= 1.0 - settings.step_feedback * (1.0 - min(1.0, error / start))
    return min(max(1.0 + beside, STEP_RANGE[0]), STEP_RANGE[1])
