"""Random solves of every kind, drawn from one number, and what must never be wrong with their results.

Shared by the tests and by `benchmarks/solve.py`. Skeletons are small and iterations few, so that very many
solves are feasible; nothing that the solver offers is left out: every kind of limit, slides, comfort, every
kind of goal, priorities, reach windows, chains and trees, every order, every setting, pose libraries, starts
outside the limits.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chains import (
    FLOAT32,
    entry_from_pose,
    legal_pose,
    random_couplings,
    random_limit,
    random_rotation,
    random_skeleton,
    random_slides,
)
from mathutils import Quaternion, Vector

from ccd_rig.goals import (
    BalanceGoal,
    DirectionGoal,
    Goal,
    GoalError,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
)
from ccd_rig.limits.shapes import (
    Comfort,
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    Limit,
    ReversedLimit,
    Slide,
    SwingTwist,
    violation,
)
from ccd_rig.settings import Solver, SolveResult, SolverSettings, SolveStatus, Sweep
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import Transform, forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.skeleton.pose_library import PoseEntry
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import solve

POSITION, ANGLE = 1e-3, 1e-3
"""Tolerances of the solves: model units and radians."""


@dataclass(frozen=True)
class Mixture:
    """The arguments of one solve."""

    skeleton: Skeleton
    start: Pose
    goals: tuple[Goal, ...]
    settings: SolverSettings
    poses: tuple[PoseEntry, ...]
    reference: Pose | None = None

    def solve(self) -> SolveResult:
        return solve(self.skeleton, self.start, self.goals, self.settings, self.poses, self.reference)

    def scaled(self, size: float) -> Mixture:
        """The same solve with all lengths `size` times as large."""

        def pose(each: Pose) -> Pose:
            return Pose(each.rotations, tuple(size * shift for shift in each.translations))

        return replace(
            self,
            skeleton=Skeleton(_scaled_joint(joint, size) for joint in self.skeleton.joints),
            start=pose(self.start),
            goals=tuple(_scaled_goal(goal, size) for goal in self.goals),
            settings=replace(self.settings, position_tolerance=size * self.settings.position_tolerance),
            reference=None if self.reference is None else pose(self.reference),
        )

    def beside_idle_joints(self) -> Mixture:
        """The same solve with idle joints before and between the others, which are at 3, 5, 7 .. then."""
        count = 2 * len(self.skeleton) + 3
        idle = [Joint(f"idle{i}", -1, Vector((0.3, 0.1 * i, 0.0)), length=0.5) for i in range(count)]
        for i, joint in enumerate(self.skeleton.joints):
            idle[2 * i + 3] = replace(joint, parent=2 * joint.parent + 3 if joint.parent >= 0 else -1)

        def pose(each: Pose) -> Pose:
            rotations, shifts = [Quaternion((0.8, 0.6, 0.0, 0.0))] * count, [Vector()] * count
            rotations[3::2], shifts[3::2] = each.rotations, each.translations
            return Pose(tuple(rotations), tuple(shifts))

        return replace(
            self,
            skeleton=Skeleton(idle),
            start=pose(self.start),
            reference=None if self.reference is None else pose(self.reference),
        )


def _scaled_joint(joint: Joint, size: float) -> Joint:
    return replace(
        joint,
        offset=size * joint.offset,
        length=size * joint.length,
        slides=tuple(replace(s, lower=size * s.lower, upper=size * s.upper) for s in joint.slides),
        coupled_offsets=tuple(
            replace(
                each,
                shifts=tuple(size * shift for shift in each.shifts),
                slopes=None if each.slopes is None else tuple(size * slope for slope in each.slopes),
            )
            for each in joint.coupled_offsets
        ),
        mass_point=None if joint.mass_point is None else size * joint.mass_point,
    )


def _scaled_goal(goal: Goal, size: float) -> Goal:
    if isinstance(goal, OrientationGoal | DirectionGoal):
        return goal
    fields: dict[str, object] = {"target": size * goal.target}
    if isinstance(goal, PositionGoal | PoleGoal) and goal.offset is not None:
        fields["offset"] = size * goal.offset
    return replace(goal, **fields)


def mixture(seed: int, rolls: bool = False) -> Mixture:
    """The random solve number `seed`; if it `rolls`, joints have up to three slides and coupled offsets."""
    rng = random.Random(seed)
    skeleton = random_skeleton(rng, rng.randrange(1, 9), tree=rng.random() < 0.5)
    skeleton = Skeleton(_furnished(joint, rng) for joint in skeleton.joints)
    if rolls:
        skeleton = _rolling(skeleton, random.Random(-seed))
    start, reachable = _pose(skeleton, rng), _pose(skeleton, rng)
    if rng.random() < 0.1:
        start = Pose(tuple(random_rotation(rng) for _ in skeleton.joints), start.translations)
    transforms = forward_kinematics(skeleton, reachable)
    goals = tuple(_goal(skeleton, transforms, rng) for _ in range(rng.choice((1, 1, 2, 2, 3, 4))))
    if rolls:  # chains whose links change have no reach windows
        goals = tuple(replace(g, max_extension=1.0) if isinstance(g, PositionGoal) else g for g in goals)
    settings = SolverSettings(
        max_iterations=rng.choice((1, 2, 5, 15, 40)),
        position_tolerance=POSITION,
        angle_tolerance=ANGLE,
        sweep=rng.choice(list(Sweep)),
        step_fraction=rng.choice((0.9, 1.0, rng.uniform(0.1, 1.3))),
        step_feedback=rng.choice((0.0, 0.0, 1.0)),
        error_reduction=rng.choice((0.0, 0.0, 0.9)),
        stall_threshold=rng.choice((1e-6, 1e-6, 0.0, 1e-3)),
        solver=Solver.CCD_LEAST_SQUARES if rng.random() < 0.5 else Solver.CCD,
        restarts=rng.choice((0, 0, 0, 0, 2)),
        seed=rng.randrange(1000),
        comfort=rng.random() < 0.8,
    )
    poses: tuple[PoseEntry, ...] = ()
    if settings.restarts and rng.random() < 0.5:
        poses = tuple(entry_from_pose(f"pose{k}", skeleton, legal_pose(skeleton, rng)) for k in range(2))
    reference = _pose(skeleton, rng) if rng.random() < 0.5 else None
    return Mixture(skeleton, start, goals, settings, poses, reference)


def _furnished(joint: Joint, rng: random.Random) -> Joint:
    """`joint` with some of what `random_skeleton` leaves out."""
    limit = joint.limit
    if limit is not None and rng.random() < 0.1:
        limit = ReversedLimit(limit, random_rotation(rng)[:])
    fields: dict[str, object] = {"limit": limit, "mass": rng.choice((0.0, 0.0, rng.uniform(0.1, 3.0)))}
    if rng.random() < 0.15:
        lower = rng.uniform(-0.6, 0.3)
        axis = [rng.gauss(0.0, 1.0) for _ in range(3)]
        fields["slides"] = (Slide(axis, lower, lower + rng.choice((0.0, rng.uniform(0.0, 0.8)))),)
    if rng.random() < 0.15:
        tolerance = rng.choice((0.0, rng.uniform(0.0, 0.3)))
        region = (random_limit(rng) if limit is None else _inside(limit, rng)) if rng.random() < 0.7 else None
        fields["comfort"] = Comfort(tolerance, region)
    if rng.random() < 0.04:
        fields["length"] = 0.0
    return replace(joint, **fields)


def _rolling(skeleton: Skeleton, rng: random.Random) -> Skeleton:
    slides = {joint.name: {"slides": random_slides(rng)} for joint in skeleton.joints if rng.random() < 0.5}
    return random_couplings(skeleton.replace(slides), rng)


def _inside(limit: Limit, rng: random.Random) -> Limit:
    """A limit of the same kind that lies inside `limit`."""

    def part(lower: float, upper: float) -> tuple[float, float]:
        a, b = sorted((rng.uniform(lower, upper), rng.uniform(lower, upper)))
        return a, b

    if isinstance(limit, ReversedLimit):
        return ReversedLimit(_inside(limit.limit, rng), limit.frame)
    if isinstance(limit, Hinge):
        return Hinge(limit.axis, *part(limit.lower, limit.upper))
    if isinstance(limit, EulerBox):
        ranges = [part(a, b) for a, b in zip(limit.lower, limit.upper, strict=True)]
        return EulerBox(limit.order, [a for a, _ in ranges], [b for _, b in ranges])
    swing, share = limit.swing, rng.random()
    if isinstance(swing, Cone):
        swing = Cone(share * swing.radius)
    elif isinstance(swing, Ellipse):
        sides = (swing.x_lower, swing.x_upper, swing.z_lower, swing.z_upper)
        swing = Ellipse(*(share * side for side in sides))
    return SwingTwist(swing, None if limit.twist is None else part(*limit.twist), limit.axis)


def _pose(skeleton: Skeleton, rng: random.Random) -> Pose:
    """Inside all limits and slides; joints without a slide may be shifted too."""
    translations = []
    for joint in skeleton.joints:
        shift = Vector([rng.uniform(-0.2, 0.2) for _ in range(3)]) if rng.random() < 0.1 else Vector()
        for slide in joint.slides:
            axis = Vector(slide.axis)
            shift += (rng.uniform(slide.lower, slide.upper) - axis.dot(shift)) * axis
        translations.append(shift)
    return Pose(legal_pose(skeleton, rng).rotations, tuple(translations))


def _goal(skeleton: Skeleton, transforms: tuple[Transform, ...], rng: random.Random) -> Goal:
    """A goal of any kind that `transforms` meet, or one that they do not."""
    i = rng.randrange(len(skeleton))
    joint = skeleton.joints[i]
    common = {"weight": rng.choice((1.0, rng.uniform(0.1, 5.0))), "priority": rng.choice((0, 0, 1, 2))}
    length = rng.choice((0, 0, 1, 2))
    met = rng.random() < 0.6
    anywhere = Vector([rng.uniform(-6.0, 6.0) for _ in range(3)])
    kind = rng.randrange(8)
    above = skeleton.chain(i)[:-1]
    if kind == 0:
        target = transforms[i].rotation if met else random_rotation(rng)
        return OrientationGoal(joint.name, target, chain_length=length, **common)
    if kind == 1:
        axis = random_rotation(rng) @ Vector((0.0, 1.0, 0.0))
        target = transforms[i].rotation @ axis if met else random_rotation(rng) @ axis
        return DirectionGoal(joint.name, axis, target, chain_length=length, **common)
    if kind == 2 and above:
        return PoleGoal(skeleton.joints[rng.choice(above)].name, joint.name, anywhere, **common)
    if kind == 3 and any(each.mass > 0.0 for each in skeleton.joints):
        axes = rng.choice(((True, True, False), (True, False, False), (True, True, True)))
        of = (joint.name, length) if rng.random() < 0.4 else (None, 0)
        return BalanceGoal(0.3 * anywhere, axes, joint=of[0], chain_length=of[1], **common)
    offset = None if rng.random() < 0.7 else Vector([rng.uniform(-0.5, 0.5) for _ in range(3)])
    goal = PositionGoal(
        joint.name,
        anywhere,
        offset,
        chain_length=length,
        max_extension=rng.choice((1.0, 1.0, rng.uniform(0.3, 1.0))),
        extension_joints=rng.choice((0, 2, 3)),
        two_bone_tip=rng.random() < 0.2,
        **common,
    )
    return replace(goal, target=transforms[i].point(goal.effector(skeleton))) if met else goal


def faults(case: Mixture, result: SolveResult) -> list[str]:
    """What is wrong with a result, in words; it should be nothing.

    Limits hold to 1e-5 rad, slides to float32. No number is infinite or NaN. What is reported is what forward
    kinematics gives. Joints that no goal may turn keep their bits. And it is not worse than the start, inside
    its limits and reach windows: of the goals' weighted squares, summed per priority, the first sum that
    differs by more than the tolerance is smaller; goals within their tolerance count 0. (Comfort regions and
    comfort tolerances together may give some of that up.)
    """
    found: list[str] = []
    pose, skeleton = result.pose, case.skeleton
    numbers = [number for each in (*pose.rotations, *pose.translations) for number in each]
    if not all(math.isfinite(number) for number in (*numbers, *(n for e in result.errors for n in e))):
        return ["not finite"]
    moving = moving_joints(case)
    for i, (joint, rotation, shift) in enumerate(
        zip(skeleton.joints, pose.rotations, pose.translations, strict=True)
    ):
        if i not in moving:
            if rotation != case.start.rotations[i] or shift != case.start.translations[i]:
                found.append(f"'{joint.name}' was to stay")
            continue
        if abs(rotation.magnitude - 1.0) > FLOAT32:
            found.append(f"'{joint.name}' has no unit rotation")
        if joint.limit is not None and violation(joint.limit, rotation) > FLOAT32:
            found.append(f"'{joint.name}' is outside its limit by {violation(joint.limit, rotation):g}")
        for slide in joint.slides:
            along = Vector(slide.axis).dot(shift)
            if not slide.lower - FLOAT32 <= along <= slide.upper + FLOAT32:
                found.append(f"'{joint.name}' slides out of its range to {along:g}")
        if not joint.slides and shift != case.start.translations[i]:
            found.append(f"'{joint.name}' was shifted")
    transforms = forward_kinematics(skeleton, pose)
    errors = tuple(measure(goal, skeleton, transforms) for goal in case.goals)
    pairs = [pair for each in zip(errors, result.errors, strict=True) for pair in zip(*each, strict=True)]
    # Forward kinematics rounds coupled offsets to single precision.
    if errors != result.errors and not (
        skeleton.couplings and all(math.isclose(*pair, rel_tol=FLOAT32, abs_tol=FLOAT32) for pair in pairs)
    ):
        found.append("reports other errors than forward kinematics gives")
    met = all(map(_is_met, errors))
    if met != (result.status is SolveStatus.CONVERGED):
        found.append(f"{result.status.name}, but the goals are{' ' if met else ' not '}met")
    found += _stretched(case, pose)
    tries = case.settings.restarts + 3 if case.settings.comfort else case.settings.restarts + 2
    if result.iterations > tries * case.settings.max_iterations:
        found.append(f"{result.iterations} iterations in {tries} tries")
    if case.settings.comfort and _eased([skeleton.joints[i] for i in moving]):
        return found
    before, after = scores(case, confined(case)), scores(case, pose)
    for was, now in zip(before, after, strict=True):
        if abs(math.sqrt(now) - math.sqrt(was)) > POSITION or (now == 0.0) != (was == 0.0):
            if now > was:
                found.append(f"worse than the start: {before} before, {after} after")
            break
    return found


def _eased(joints: list[Joint]) -> bool:
    comforts = [joint.comfort for joint in joints if joint.comfort is not None]
    return any(each.tolerance for each in comforts) and any(each.region for each in comforts)


def _is_met(error: GoalError) -> bool:
    return error.distance <= POSITION and error.angle <= ANGLE


def moving_joints(case: Mixture) -> set[int]:
    """The joints that may move for a goal."""
    skeleton = case.skeleton
    moving: set[int] = set()
    for goal in case.goals:
        if isinstance(goal, PoleGoal):
            chain: Sequence[int] = (skeleton.index(goal.root),)
        elif isinstance(goal, BalanceGoal):
            chain = goal.joints(skeleton)
        else:
            chain = skeleton.chain(goal.joint, goal.chain_length)
        if isinstance(goal, OrientationGoal | DirectionGoal):
            # Below a joint that does not inherit rotation nothing turns the frame.
            above = skeleton.chain(goal.joint)
            last = max((i for i in above if not skeleton.joints[i].inherit_rotation), default=0)
            chain = [i for i in chain if i >= last]
        moving.update(chain)
    return {i for i in moving if not skeleton.joints[i].locked}


def inside_limits(case: Mixture) -> Pose:
    """The start with the joints that may move inside their limits and slides."""
    rotations, translations = list(case.start.rotations), list(case.start.translations)
    for i in moving_joints(case):
        joint = case.skeleton.joints[i]
        rotations[i] = joint.allowed(rotations[i])
        for slide in joint.slides:
            axis = Vector(slide.axis)
            along = axis.dot(translations[i])
            translations[i] = translations[i] + (min(max(along, slide.lower), slide.upper) - along) * axis
    return Pose(tuple(rotations), tuple(translations))


def confined(case: Mixture) -> Pose | None:
    """The start inside the limits; None if it stretches a reach window, which has to be mended first."""
    pose = inside_limits(case)
    return None if any(now > longest for now, longest in _extents(case, pose)) else pose


def scores(case: Mixture, pose: Pose | None) -> list[float]:
    """Per priority the weighted squares of the goals that are not met; infinite without a pose.

    Weights are parts of the largest of a priority. A radian counts as 0.3 of the length of the longest chain,
    or of 1 where none has a length.
    """
    most = {goal.priority: 0.0 for goal in case.goals}
    for goal in case.goals:
        most[goal.priority] = max(most[goal.priority], goal.weight)
    lever = 0.3 * (max(goal.reach(case.skeleton) for goal in case.goals) or 1.0)
    sums = dict.fromkeys(sorted({goal.priority for goal in case.goals}), 0.0)
    transforms = forward_kinematics(case.skeleton, pose or case.start)
    for goal in case.goals:
        error = measure(goal, case.skeleton, transforms)
        if pose is None:
            sums[goal.priority] = math.inf
        elif not _is_met(error):
            weight = goal.weight / most[goal.priority]
            sums[goal.priority] += weight * (error.distance**2 + (lever * error.angle) ** 2)
    return list(sums.values())


def _extents(case: Mixture, pose: Pose) -> list[tuple[float, float]]:
    """How far the part of each reach window is stretched, and how far it may be by its links."""
    transforms, joints = forward_kinematics(case.skeleton, pose), case.skeleton.joints
    found = []
    for goal in case.goals:
        if isinstance(goal, PositionGoal) and goal.max_extension < 1.0:
            part = case.skeleton.chain(goal.joint, goal.chain_length)[-goal.extension_joints :]
            links = [
                (joints[i].offset + joints[i].rest_rotation @ case.start.translations[i]).length
                for i in part[1:]
            ]
            effector = goal.effector(case.skeleton)
            end = transforms[part[-1]].point(effector)
            longest = goal.max_extension * (math.fsum(links) + effector.length)
            found.append(((end - transforms[part[0]].translation).length, longest))
    return found


def _stretched(case: Mixture, pose: Pose) -> list[str]:
    """Reach windows that are stretched further than at the start and than allowed."""
    before, after = _extents(case, inside_limits(case)), _extents(case, pose)
    # A chain that starts stretched too far may be unable to come back.
    return [
        f"a reach window is stretched to {now:g} instead of {longest:g}"
        for (was, longest), (now, _) in zip(before, after, strict=True)
        if now > max(longest, was) + 1e-4
    ]
