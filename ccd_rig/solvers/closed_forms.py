"""Closed forms for one chain and one point: two bones by the law of cosines, and target triangles.

They take the skeleton, pose and goal of `solve`, turn each joint once, and return a `SolveResult`. Locked
joints are rigid parts of the bone below them. Limits hold; comfort, stiffness below 1, `max_step` and slides
are not used. A target out of reach is a status, never an exception. `kernel/closed_forms` has the equations
and the degenerate cases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from mathutils import Quaternion, Vector

from ..defaults import SOFT
from ..errors import InvalidInput
from ..goals import PositionGoal
from ..kernel import solve_target_triangles, solve_two_bones
from ..maths.rotations import NOISE
from ..maths.validation import finite, frozen_vector, store
from ..settings import SolveResult, SolverSettings, SolveStatus
from ..skeleton.joints import Skeleton
from ..skeleton.kinematics import forward_kinematics, placed_joints
from ..skeleton.pose import Pose, check_pose
from .problem_tables import Bones, measure_goals, take_problem

NO_POLE = np.zeros((0, 3))


@dataclass(frozen=True, kw_only=True)
class TwoBoneOptions:
    """Options of `two_bone`.

    Attributes:
        pole: a point in model space to which the bend points, or None to keep the bend's plane.
        pole_angle: radians by which the bend is turned from the pole about the line to the target.
        soft: part of the chain's length over which it eases into straight, 0 to 1, see `soft_reach`. The
            chain does not snap at full reach; the effector stays behind targets near it and beyond.
        weight: part of each joint's rotation that is taken (slerp), clamped to 0..1; 0 keeps the pose.
        accept_limited: whether to return a pose that misses the target because of a limit; if not, the start
            is returned.

    Raises:
        InvalidInput: a number is not finite; soft is outside 0..1.
    """

    pole: Vector | None = None
    pole_angle: float = 0.0
    soft: float = SOFT
    weight: float = 1.0
    accept_limited: bool = True

    def __post_init__(self) -> None:
        finite("two_bone: pole_angle", self.pole_angle)
        finite("two_bone: weight", self.weight)
        if not 0.0 <= (soft := finite("two_bone: soft", self.soft)) <= 1.0:
            raise InvalidInput(f"two_bone: soft must be 0 to 1 (a part of the chain's length), not {soft:g}")
        if self.pole is not None:
            store(self, "pole", frozen_vector(self.pole, "two_bone: pole"))


def two_bone(
    skeleton: Skeleton,
    pose: Pose,
    goal: PositionGoal,
    options: TwoBoneOptions | None = None,
    *,
    position_tolerance: float = SolverSettings.position_tolerance,
) -> SolveResult:
    """Bend the middle joint until the effector is as far away as the target, then aim the root joint.

    Let u lead from the root joint to the middle one, v from there to the effector, and d be the distance of
    the target. The middle joint turns about its axis n until u.v = (d^2 - |u|^2 - |v|^2) / 2 (law of cosines;
    the parts of u and v along n do not change). n is a hinge's axis, otherwise the normal of the bend; the
    bend keeps its side. Then the root joint turns by the shortest arc, and about the line to the target until
    the bend points to the pole.

    Limits always hold. Candidates are bends to the present side, to the other, and for a ball joint about
    other axes. For each the root joint swivels about the line to the target, as little off the pole's side
    (or the shortest arc) as its limit allows. The first candidate that meets the target is taken, or the
    nearest.

    Args:
        skeleton: the joints.
        pose: the start; rotations of the chain outside a limit are clamped first.
        goal: the last two joints of its chain that are not locked turn; any effector. Its `max_extension`
            caps the stretch.
        options: None for the defaults.
        position_tolerance: of CONVERGED, in the model's unit.

    Returns:
        CONVERGED or STALLED, 1 iteration, and the error of the returned pose.

    Raises:
        InvalidInput: the chain has no two joints that can turn, or one that does not inherit rotation.
    """
    options = options or TwoBoneOptions()
    chain = _Chain(skeleton, pose, goal, "two_bone", 2)
    solve_two_bones(
        chain.problem,
        *chain.arrays,
        NO_POLE if options.pole is None else np.array([options.pole[:]], np.float64),
        math.remainder(options.pole_angle, math.tau),
        options.soft,
        goal.max_extension,
        min(max(options.weight, 0.0), 1.0),
        not options.accept_limited,
    )
    return chain.result(position_tolerance)


def eased_target(skeleton: Skeleton, pose: Pose, goal: PositionGoal, soft: float) -> Vector:
    """The target for which `two_bone` with this softness leaves the effector in place.

    A straight chain belongs to an infinite distance: its target is at the distance where the rest is noise.

    Args:
        pose: of the whole skeleton.
        goal: its chain and effector are used.
        soft: see `TwoBoneOptions`.

    Raises:
        InvalidInput: as `two_bone`.
    """
    chain = turning_joints(skeleton, pose, goal, "two_bone", 2)
    transforms = forward_kinematics(skeleton, pose)
    root, middle = (transforms[i].translation for i in chain[-2:])
    effector = transforms[skeleton.index(goal.joint)].point(goal.effector(skeleton))
    length = (middle - root).length + (effector - middle).length
    eased, line = soft * length, effector - root
    beyond = line.length - (length - eased)
    if eased <= 0.0 or beyond <= 0.0:
        return effector
    distance = length - eased - eased * math.log(max(1.0 - beyond / eased, NOISE))
    return root + line * (distance / line.length)


def target_triangle(
    skeleton: Skeleton,
    pose: Pose,
    goal: PositionGoal,
    *,
    omega: Mapping[str, float] | None = None,
    position_tolerance: float = SolverSettings.position_tolerance,
) -> SolveResult:
    """Turn each joint once, root first, so that its link, the rest and the target form a triangle.

    Song & Hu 2011, section 3. The head of `kernel/closed_forms` has the equations, and the cases without a
    triangle.

    Args:
        skeleton: the joints.
        pose: the start; rotations of the chain outside a limit are clamped first.
        goal: the joints of its chain that are not locked turn; any effector.
        omega: largest angle between a joint's link and the link before, radians, by joint name (omega_i of
            the paper).
        position_tolerance: of CONVERGED, in the model's unit.

    Returns:
        CONVERGED or STALLED, 1 iteration, and the error. Each joint turns at most once, so limits may keep
        the effector off a target in reach.

    Raises:
        InvalidInput: the chain has no joint that can turn, or one that does not inherit rotation; omega
            names an unknown joint or is outside 0..pi; the goal has a reach window.
    """
    omegas = np.full((1, len(skeleton)), math.pi)
    for name, angle in (omega or {}).items():
        place = skeleton.index(name)
        if not 0.0 <= finite(f"target_triangle: omega of '{name}'", angle) <= math.pi:
            raise InvalidInput(f"target_triangle: omega of '{name}' must be 0 to pi radians, not {angle:g}")
        omegas[0, place] = angle
    chain = _Chain(skeleton, pose, goal, "target_triangle", 1)
    if goal.max_extension < 1.0:
        raise InvalidInput(
            "target_triangle takes no reach window: give the goal max_extension=1, or use solve"
        )
    solve_target_triangles(chain.problem, *chain.arrays, omegas)
    return chain.result(position_tolerance)


class _Chain:
    """A chain and a pose as the kernel takes them.

    Attributes:
        problem: of the goal; the joints that turn move.
        arrays: (1, 4J) rotations, which the kernel overwrites, (1, 3J) translations, (1, 3J) offsets, (1, 4J)
            rests, (1, 3) target.
    """

    def __init__(self, skeleton: Skeleton, pose: Pose, goal: PositionGoal, what: str, least: int) -> None:
        self.turning = turning_joints(skeleton, pose, goal, what, least)
        self.skeleton, self.pose, self.goal = skeleton, pose, goal
        self.idle, self.problem = take_problem(skeleton, (goal,), tuple(self.turning))
        bones = skeleton.computed_once("bones", lambda: Bones.of(skeleton))
        rotations, translations = pose.arrays
        self.arrays = (
            rotations.reshape(1, -1).copy(),
            translations.reshape(1, -1),
            bones.offsets.reshape(1, -1),
            bones.rests.reshape(1, -1),
            np.array([goal.target[:]], np.float64),
        )

    def result(self, position_tolerance: float) -> SolveResult:
        """The result with the rotations of `arrays`; joints that did not turn keep the start's bits."""
        pose, (goal, skeleton) = self.pose, (self.goal, self.skeleton)
        self.idle.append(self.problem)
        turned = self.arrays[0].reshape(-1, 4)
        changed = (turned != pose.arrays[0][0]).any(1).tolist()
        rotations = list(pose.rotations)
        for i in self.turning:
            if changed[i]:
                rotations[i] = Quaternion(turned[i].tolist()).freeze()
        pose = Pose.trusted(tuple(rotations), pose.translations)
        (error,) = measure_goals(skeleton, (goal,), *placed_joints(skeleton, pose))
        met = error.distance <= position_tolerance
        return SolveResult(pose, SolveStatus.CONVERGED if met else SolveStatus.STALLED, 1, (error,))


def turning_joints(skeleton: Skeleton, pose: Pose, goal: PositionGoal, what: str, least: int) -> list[int]:
    """Joints of the goal's chain that can turn, root first; InvalidInput if they do not fit."""
    check_pose(skeleton, pose)
    if not isinstance(goal, PositionGoal):
        raise InvalidInput(
            f"{what} takes a PositionGoal, not {type(goal).__name__}: use solve for other goals"
        )
    joints = skeleton.joints
    chain = skeleton.chain(goal.joint, goal.chain_length)
    turning = [i for i in chain if not joints[i].locked]
    if len(turning) < least:
        raise InvalidInput(
            f"{what}: the chain of joint '{goal.joint}' has {len(turning)} joints that can turn, but {least} "
            f"are needed; unlock a joint (stiffness below 1, max_step above 0) or make chain_length larger"
        )
    first = turning[-2] if least == 2 else turning[0]
    for i in chain[chain.index(first) :]:
        if joints[i].coupled_offsets:
            raise InvalidInput(
                f"{what}: joint '{joints[i].name}' has coupled offsets, so the chain's lengths change: "
                "use solve"
            )
    for i in chain[chain.index(first) + 1 :]:
        if not joints[i].inherit_rotation:
            raise InvalidInput(
                f"{what}: joint '{joints[i].name}' does not inherit rotation, so the bones below do "
                f"not carry it rigidly: use solve"
            )
    return turning
