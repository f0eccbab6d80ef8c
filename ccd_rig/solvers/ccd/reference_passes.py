"""Passes that meet the goals as near to the reference pose as they can be met.

In each step the joint's orientation in the reference pose is one more set of vector pairs, with a weight.
With a fixed weight goals and reference would end in a balance. So the goals aim past their targets by all
that was missed so far (the method of multipliers, Hestenes 1969, Powell 1969). The weight falls from pass to
pass. The end is the nearest of the poses that meet the goals, whatever pose the passes started from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...maths.rotations import angle_of
from ...settings import Sweep
from ..pauses import pause
from .chain_length import length_scale
from .sweeps import visits
from .working_pose import Pull, WorkingPose

STRENGTH, LEAST_STRENGTH = 0.3, 0.003
"""Weight of the reference at first and at last, in parts of a goal's mean squared lever."""
FADE = 0.7
"""What the strength is multiplied by after each pass."""
SETTLED, SETTLING_PASSES = 0.02, 15
"""The first strength is kept until no joint turns by more radians in a pass, for so many passes at most."""
MOST_PASSES = 40
"""Passes at most; what is missing then is left to passes without a reference."""
PATIENCE, GAIN = 8, 0.1
"""Passes over which the squared error must fall by this part of it."""


def passes_near_reference(working: WorkingPose, sweep: Sweep, goals: Sequence[int]) -> Iterator[None]:
    """Makes passes; an item after each. The caller stops them when the goals are met.

    They end by themselves when they win nothing more. Goals aim at their targets again then.
    """
    effectors = [working.effectors[k] for k in goals]
    pulls = _pulls(working, goals)
    strength, settling, errors = STRENGTH, 0, [math.inf]
    try:
        for count in range(MOST_PASSES):
            pause()
            largest = 0.0
            for i in visits(sweep, working.movable, count, working):
                rotation, shift = pulls[i]
                # The whole step: it is short enough beside the reference.
                working.step(i, 1.0 / (working.parts[i] or 1.0), Pull(strength * rotation, strength * shift))
                largest = max(largest, angle_of(working.last_step))
            working.recompute()
            yield
            if sweep is Sweep.ALTERNATING and count % 2 == 0:
                continue  # half of a pass: what it missed is not yet what both ways miss
            if largest > SETTLED and settling < SETTLING_PASSES:
                settling += 1
                continue
            settling = SETTLING_PASSES
            errors.append(working.square())
            if len(errors) > PATIENCE and errors[-1] > (1.0 - GAIN) * min(errors[:-PATIENCE]):
                return
            weaker = max(FADE * strength, LEAST_STRENGTH)
            for effector in effectors:
                # A weaker pull is held in balance by as much less.
                effector.aim_past(weaker / strength)
            strength = weaker
    finally:
        for effector in effectors:
            effector.aim_at_target()


def _pulls(working: WorkingPose, goals: Sequence[int]) -> dict[int, Pull]:
    """Weights of the reference at strength 1: of each joint the goals' mean squared levers, by stiffness.

    A shift by the length of a chain counts as a rotation by a radian.
    """
    rotations = dict.fromkeys(working.movable, 0.0)
    shifts = dict.fromkeys(working.movable, 0.0)
    for k in goals:
        effector = working.effectors[k]
        square = length_scale(working, k) ** 2 / 3.0  # of a straight chain
        for i in effector.moving_joints:
            mobility = 1.0 - working.joints[i].stiffness
            rotations[i] += effector.weight * square / mobility
            shifts[i] += effector.weight / 3.0 / mobility
    return {i: Pull(rotations[i], shifts[i]) for i in working.movable}
