"""The exact best move of one joint for all goals above it.

CCD minimises `E = sum_k w_k |R a_k - b_k|^2` joint by joint, where each goal above a joint gives a pair of vectors seen
from the joint's head: for a position, `a` = effector - head and `b` = target - head. The best rotation of a ball joint
is Davenport's (for one pair the shortest arc), the best hinge angle has a closed form. Limits are applied right after
the step, in the joint's own rest frame.

`Body` is the working copy of a pose that one solve moves about: model transforms are rebuilt lazily while a sweep walks
along, and effectors are carried along with each step, so that an iteration costs O(joints) in any monotone order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from mathutils import Quaternion, Vector

from .errors import InvalidInput
from .goals import Goal
from .limits import Hinge, Limit, clamp
from .quaternions import angle_of, between, perpendicular, power
from .skeleton import Pose, Skeleton, check_pose

Pair = tuple[Vector, Vector, float]
"""`a`, `b` (model axes, seen from the joint's head) and the weight of a goal."""

FULL_TURN = 2.0 * math.pi
NUDGE = 0.1
"""By how much a joint is bent to leave a dead end, radians."""


def best_rotation(pairs: Sequence[Pair]) -> Quaternion:
    """The rotation that minimises `sum w |R a - b|^2`: Davenport's q-method (Horn 1987, eq. 8 ff.).

    For one pair this is the shortest arc from a to b; a pair without length has no say.
    """
    if len(pairs) == 1:
        return between(pairs[0][0], pairs[0][1])
    profile = np.zeros((3, 3))
    for a, b, weight in pairs:
        profile += weight * np.outer(b, a)
    scale = float(np.abs(profile).max())
    if scale == 0.0:
        return Quaternion((1.0, 0.0, 0.0, 0.0))
    profile /= scale
    trace = float(np.trace(profile))
    cross = np.array(
        (profile[2, 1] - profile[1, 2], profile[0, 2] - profile[2, 0], profile[1, 0] - profile[0, 1])
    )
    davenport = np.empty((4, 4))
    davenport[0, 0] = trace
    davenport[0, 1:] = davenport[1:, 0] = cross
    davenport[1:, 1:] = profile + profile.T - trace * np.eye(3)
    values, vectors = np.linalg.eigh(davenport)
    # Of equally good rotations (all pairs on one line) the one that turns least: the part of the identity in the space
    # of the largest eigenvalue.
    best = vectors[:, values >= values[-1] - 1e-7 * max(1.0, abs(float(values[-1])))]
    least = best @ best[0]
    if np.linalg.norm(least) < 1e-6:
        least = best[:, -1]
    w, x, y, z = (float(part) for part in least / np.linalg.norm(least))
    return Quaternion((w, x, y, z) if w >= 0.0 else (-w, -x, -y, -z))


def best_hinge_turn(axis: Vector, pairs: Sequence[Pair]) -> float:
    """The turn about the unit `axis` (radians, -pi..pi) that minimises `sum w |R a - b|^2`.

    It is `atan2(sum w n.(a x b), sum w (a.b - (a.n)(b.n)))`; 0 where every turn is equally good (all pairs on the axis).
    """
    sine = cosine = lever = 0.0
    for a, b, weight in pairs:
        sine += weight * axis.dot(a.cross(b))
        cosine += weight * (a.dot(b) - a.dot(axis) * b.dot(axis))
        lever += weight * a.length * b.length
    # float32 vectors leave about 1e-7 of their length as noise: that is no direction to turn to.
    if math.hypot(sine, cosine) <= 1e-6 * lever:
        return 0.0
    return math.atan2(sine, cosine)


def nearest_turn(angle: float, lower: float, upper: float) -> float:
    """`angle` plus whole turns, brought into [lower, upper]; outside it the end that is nearer on the circle."""
    middle = 0.5 * (lower + upper)
    unwrapped = middle + math.remainder(angle - middle, FULL_TURN)
    return min(max(unwrapped, lower), upper)


def hinge_turn(limit: Hinge, rotation: Quaternion) -> float:
    """The turn of `rotation` about the hinge's axis, brought into its range."""
    x, y, z = limit.axis
    along = rotation.x * x + rotation.y * y + rotation.z * z
    return nearest_turn(2.0 * math.atan2(along, rotation.w), limit.lower, limit.upper)


class Body:
    """The working copy of a pose that one solve moves about.

    Attributes:
        movable: indices of the joints that goals may turn and that are not locked, parents before children.
        goals: the goals, in the caller's order.
        rotations: of every joint, relative to rest.
        effectors: position of each goal's effector, model space, carried along with every step.
    """

    def __init__(self, skeleton: Skeleton, pose: Pose, goals: Sequence[Goal]) -> None:
        check_pose(skeleton, pose)
        if not goals:
            raise InvalidInput("there is nothing to solve: give at least one goal")
        self.skeleton = skeleton
        self.goals = tuple(goals)
        joints = skeleton.joints
        self.joints = joints
        self.parents = [joint.parent for joint in joints]
        self.inherits = [joint.inherit_rotation and joint.parent != -1 for joint in joints]
        self.rests = [joint.rest_rotation for joint in joints]
        self.offsets = [
            joint.offset + joint.rest_rotation @ translation
            for joint, translation in zip(joints, pose.translations, strict=True)
        ]
        self.rotations: list[Quaternion] = list(pose.rotations)
        self.heads: list[Vector] = [Vector()] * len(joints)
        self.bases: list[Quaternion] = [Quaternion()] * len(joints)
        self.frames: list[Quaternion] = [Quaternion()] * len(joints)
        self.targets = [goal.target for goal in goals]
        self.weights = [goal.weight for goal in goals]
        self.tips = [skeleton.index(goal.joint) for goal in goals]
        self.points = [goal.effector(skeleton) for goal in goals]
        self.chains = [
            [i for i in skeleton.chain(goal.joint, goal.chain_length) if not joints[i].locked] for goal in goals
        ]
        self.movable = sorted({i for chain in self.chains for i in chain})
        # Goals that joint i serves; and goals whose effector it carries, which are more where a chain length ends below.
        self.serves: list[list[int]] = [[] for _ in joints]
        self.carries: list[list[int]] = [[] for _ in joints]
        for k, goal in enumerate(goals):
            for i in self.chains[k]:
                self.serves[i].append(k)
            for i in skeleton.chain(goal.joint):
                self.carries[i].append(k)
        # A joint that does not inherit rotation keeps its orientation when joints below it turn: what such a turn
        # carries is the joint's head, and all above it is shifted along. Pivots of goal k, from the tip to the root.
        self.pivots = [
            [i for i in reversed(skeleton.chain(goal.joint)) if not self.inherits[i] and self.parents[i] != -1]
            for goal in goals
        ]
        self.carried: list[list[Vector]] = [[] for _ in goals]
        self.limits: list[Limit | None] = [joint.limit for joint in joints]
        self.tolerances = [0.0] * len(joints)
        # Of hinges: the axis in the joint's frame, and the turn about it, unwrapped into the hinge's range.
        self.axes: list[Vector] = [Vector()] * len(joints)
        self.turns = [0.0] * len(joints)
        self.rebuild()

    # -- state ---------------------------------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Forward kinematics from the rotations: transforms and effectors without the drift of carrying."""
        self.valid = -1
        self._walk_to(len(self.joints) - 1)
        for k, tip in enumerate(self.tips):
            effector = self.heads[tip] + self.frames[tip] @ self.points[k]
            self.carried[k] = [effector] + [self.heads[i] for i in self.pivots[k]]

    def _walk_to(self, last: int) -> None:
        """Makes the transforms of the joints up to index `last` valid."""
        heads, frames, bases = self.heads, self.frames, self.bases
        i = self.valid
        while i < last:
            i += 1
            parent = self.parents[i]
            if parent == -1:
                heads[i] = self.offsets[i]
                bases[i] = self.rests[i]
            else:
                frame = frames[parent]
                heads[i] = heads[parent] + frame @ self.offsets[i]
                bases[i] = frame @ self.rests[i] if self.inherits[i] else self.rests[i]
            frames[i] = (bases[i] @ self.rotations[i]).normalized()
        self.valid = max(self.valid, last)

    def confine(self, limits: Sequence[Limit | None], tolerances: Sequence[float]) -> None:
        """Sets what each joint may do, and brings the joints that may move inside it."""
        self.limits = list(limits)
        self.tolerances = list(tolerances)
        for i in self.movable:
            limit = self.limits[i]
            if limit is not None:
                self.rotations[i] = clamp(limit, self.rotations[i])
        self.restore(self.rotations)

    def restore(self, rotations: Sequence[Quaternion]) -> None:
        """Takes over `rotations` (of all joints, inside the limits)."""
        self.rotations = list(rotations)
        for i in self.movable:
            limit = self.limits[i]
            if isinstance(limit, Hinge):
                self.axes[i] = Vector(limit.axis)
                self.turns[i] = hinge_turn(limit, self.rotations[i])
        self.rebuild()

    def distances(self) -> list[float]:
        """How far each goal's effector is from its target."""
        return [
            (carried[0] - target).length for carried, target in zip(self.carried, self.targets, strict=True)
        ]

    # -- steps ---------------------------------------------------------------------------------------------------

    def step(self, i: int, fraction: float) -> float:
        """Takes the best move of joint `i` for all goals above it, or `fraction` of it.

        Returns:
            The longest arc along which an effector was moved, in the model's unit.
        """
        self._walk_to(i)
        pairs = [self._pair(i, k) for k in self.serves[i]]
        return self._move(i, pairs, fraction)

    def stretch(self, i: int, child: int, k: int) -> float:
        """Turns joint `i` so that its link (to the joint `child`, or with -1 to effector `k`) points at target `k`."""
        self._walk_to(max(i, child))
        head = self.heads[i]
        end = self.heads[child] if child != -1 else self.carried[k][0]
        return self._move(i, [(end - head, self.targets[k] - head, 1.0)], 1.0)

    def _pair(self, i: int, k: int) -> Pair:
        head = self.heads[i]
        carried = self.carried[k]
        if len(carried) == 1:
            return carried[0] - head, self.targets[k] - head, self.weights[k]
        end = carried[self._level(i, k)]
        return end - head, self.targets[k] - (carried[0] - end) - head, self.weights[k]

    def _level(self, i: int, k: int) -> int:
        """How many joints that do not inherit rotation lie above joint `i` on the way to effector `k`."""
        return sum(1 for pivot in self.pivots[k] if pivot > i)

    def _move(self, i: int, pairs: list[Pair], fraction: float) -> float:
        limit = self.limits[i]
        joint = self.joints[i]
        free = fraction * (1.0 - joint.stiffness)
        base = self.bases[i]
        if type(limit) is Hinge:
            axis = base @ self.axes[i]
            turn = best_hinge_turn(axis, pairs)
            turn = nearest_turn(self.turns[i] + turn, limit.lower, limit.upper) - self.turns[i]
            turn = self._within_tolerance(i, turn, pairs) * free
            turn = min(max(turn, -joint.max_step), joint.max_step)
            self.turns[i] = min(max(self.turns[i] + turn, limit.lower), limit.upper)
            rotation = Quaternion(self.axes[i], self.turns[i])
        else:
            best = best_rotation(pairs)
            part = self._part(i, best, pairs, free)
            if part != 1.0:
                best = power(best, part)
            rotation = (base.conjugated() @ best @ self.frames[i]).normalized()
            if limit is not None:
                rotation = clamp(limit, rotation)
        return self._turn_to(i, rotation)

    def _part(self, i: int, best: Quaternion, pairs: list[Pair], free: float) -> float:
        """What part of the rotation `best` is taken, after comfort, stiffness and the largest step."""
        joint = self.joints[i]
        if self.tolerances[i] == 0.0 and joint.max_step >= math.pi:
            return free
        angle = best.angle
        if angle == 0.0:
            return free
        taken = abs(self._within_tolerance(i, angle, pairs)) * free
        return min(taken, joint.max_step) / angle

    def _within_tolerance(self, i: int, angle: float, pairs: list[Pair]) -> float:
        """Kenwright 2012, section 11: no further than to the border of the joint's tolerance region."""
        tolerance = self.tolerances[i]
        if tolerance == 0.0:
            return angle
        return math.copysign(max(0.0, abs(angle) - tolerance), angle)

    def _turn_to(self, i: int, rotation: Quaternion) -> float:
        """Gives joint `i` a new rotation relative to rest and carries the effectors above it along."""
        self.rotations[i] = rotation
        before = self.frames[i]
        after = (self.bases[i] @ rotation).normalized()
        self.frames[i] = after
        self.valid = i
        step = after @ before.conjugated()
        head = self.heads[i]
        longest = 0.0
        for k in self.carries[i]:
            carried = self.carried[k]
            level = self._level(i, k) if len(carried) > 1 else 0
            old = carried[level]
            new = head + step @ (old - head)
            shift = new - old
            carried[level] = new
            for other in range(level):
                carried[other] = carried[other] + shift
            longest = max(longest, shift.length)
        return longest

    # -- dead ends -----------------------------------------------------------------------------------------------

    def nudge(self) -> None:
        """Bends the joints a little, to alternate sides and inside their limits, so that the next steps see a way.

        A straight chain with the target on its line and Juckett's folded pose are left so, and most other dead ends.
        """
        side = 1.0
        for i in self.movable:
            if self.tolerances[i] > 0.0:
                continue  # it stays at the border of its tolerance region on purpose
            self._walk_to(i)
            side = -side
            for turn in (side * NUDGE, -side * NUDGE):
                if self._bend(i, turn):
                    break
        self.rebuild()

    def _bend(self, i: int, turn: float) -> bool:
        """Turns joint `i` by `turn` radians across its first goal's line of sight; whether its limit let it."""
        limit = self.limits[i]
        before = self.rotations[i]
        if type(limit) is Hinge:
            self.turns[i] = min(max(self.turns[i] + turn, limit.lower), limit.upper)
            rotation = Quaternion(self.axes[i], self.turns[i])
        else:
            a, _, _ = self._pair(i, self.serves[i][0])
            best = Quaternion(perpendicular(a), turn)
            rotation = (self.bases[i].conjugated() @ best @ self.frames[i]).normalized()
            if limit is not None:
                rotation = clamp(limit, rotation)
        self._turn_to(i, rotation)
        return angle_of(before.conjugated() @ rotation) > 0.5 * abs(turn)
