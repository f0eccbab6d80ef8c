"""Drag: pull bones to points, with the least motion of their joints.

Each pose is solved from the pose at the press and is the nearest to it. It depends on the pointer's position,
not on its path. Pins are served first: a pull moves a pinned bone only where limits force it to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from mathutils import Vector

from ..errors import InvalidInput
from ..goals import BalanceGoal, Goal, GoalError, OrientationGoal, PositionGoal, centre_of_mass
from ..maths.batch import Array
from ..maths.validation import SIZES, frozen_vector, is_number, listed, shown
from ..settings import Solver, SolveResult, SolverSettings, SolveStatus
from ..skeleton.joints import Skeleton
from ..skeleton.kinematics import forward_kinematics, placed_joints
from ..skeleton.pose import Pose, check_pose
from .led_pulls import LedPulls
from .pose_search import STATUSES, PoseSearch, Solved, Starts, check_call
from .problem_tables import measure_goals, reach_of_goals, stored_targets
from .soft_reach import stretched
from .springs import slack, with_springs

KEPT, PULLED = 1, 2
"""Priorities of kept rotations and of pulled points; pins have 0."""
NEAR = 1e-5
"""Position tolerance in parts of the longest chain: invisible."""
ROUNDING = 1e-12
"""Distance from a line, in parts of the largest coordinate, at which a corner of a support is on it."""
EDGE = 1e-6
"""Part of the way to an edge of a support that the centre of mass leaves: single precision rounds by less."""
SUPPORT_SOFTNESS = 0.2
"""Part of the way to an edge of its support over which the centre of mass is eased."""
FORCE = 45.0
"""Largest force of a pull with a support: square departure, square radians per length of the longest chain.

Without it a hand to the side turned a knee by 40 times what the move explains, and a pulled head the spine by
56 times. Now it is 3.4 and 1.0 times. At 60 it is 3.8. At half of it a lifted foot stays behind by 3 mm.
"""
COMPLIANCE = 1e-3
"""Compliance of a pull's spring by which its force is measured."""
STIFFEST = 1e-6
"""Least mobility of a spring: that of one without length would be 0, for which the kernel knows no step."""


@dataclass(frozen=True)
class Pin:
    """A bone pinned to its place in the pose at the press.

    Attributes:
        joint: name of the joint.
        rotation: whether its rotation is pinned too.
        point: the pinned point in the joint's frame; None means the bone's tail.

    Raises:
        InvalidInput: the point is not three finite numbers.
    """

    joint: str
    rotation: bool = False
    point: Vector | None = None

    def __post_init__(self) -> None:
        _freeze(self, f"pin of joint '{self.joint}'")


@dataclass(frozen=True)
class Grab:
    """A bone pulled by a point of it.

    Attributes:
        joint: name of the joint.
        point: the pulled point in the joint's frame; None means the bone's tail.
        chain_length: number of joints, counted from `joint`, that may move; 0 means all up to the root.
        rotation: whether the bone keeps its rotation, as one that slides should, before it follows the pull.
        soft: fraction of the chain's length over which it eases into straight, 0 to 1; without effect where
            the drag moves the chain's root, or a joint of the chain slides.

    Raises:
        InvalidInput: the point is not three finite numbers, or `soft` is out of range.
    """

    joint: str
    point: Vector | None = None
    chain_length: int = 0
    rotation: bool = False
    soft: float = 0.0

    def __post_init__(self) -> None:
        _freeze(self, f"grab of joint '{self.joint}'")
        if not (is_number(self.soft) and 0.0 <= self.soft <= 1.0):
            raise InvalidInput(f"grab of joint '{self.joint}': soft must be 0 to 1, not {shown(self.soft)}")


@dataclass(frozen=True)
class Support:
    """The support of the centre of mass: the convex hull of points, seen along an axis of the model.

    Attributes:
        points: model space, at least one.
        up: the model's axis that is vertical: 0, 1 or 2.
        softness: part of the way to an edge over which points are eased, above 0 to 1.

    Raises:
        InvalidInput: there is no point, one that is not three finite numbers, another axis, or a softness out
            of range.
    """

    points: tuple[Vector, ...]
    up: int = 2
    softness: float = SUPPORT_SOFTNESS

    def __post_init__(self) -> None:
        points = listed("Support.points", self.points, "at least one point")
        if not points:
            raise InvalidInput("there is nothing to stand on: give at least one point")
        if self.up not in (0, 1, 2):
            raise InvalidInput(f"up must be 0, 1 or 2, not {shown(self.up)}")
        if not (is_number(self.softness) and 0.0 < self.softness <= 1.0):
            raise InvalidInput(f"softness must be above 0 and at most 1, not {shown(self.softness)}")
        corners = tuple([frozen_vector(point, "point of the support") for point in points])
        object.__setattr__(self, "points", corners)

    @classmethod
    def of_pins(cls, skeleton: Skeleton, pose: Pose, pins: Iterable[Pin], up: int = 2) -> Support:
        """The support of a figure that stands on pinned bones, such as feet.

        It spans their pinned points. A bone whose rotation is pinned adds its whole length, and those of all
        bones below it.

        Args:
            pose: at the press.
            pins: at least one.
            up: see `Support`.

        Raises:
            InvalidInput: names the wrong argument.
        """
        check_call(skeleton, None)
        check_pose(skeleton, pose)
        pins = tuple(pins)
        _check_pins(pins, ())
        transforms, points = forward_kinematics(skeleton, pose), list[Vector]()
        for pin in pins:
            index = skeleton.index(pin.joint)
            points.append(transforms[index].point(_point(skeleton, index, pin.point)))
            for j in range(len(skeleton)) if pin.rotation else ():
                if index in skeleton.chain(j):
                    points += [transforms[j].translation, transforms[j].point(_point(skeleton, j, None))]
        return cls(tuple(points), up)

    @property
    def axes(self) -> tuple[bool, bool, bool]:
        """Mask of the model's level axes."""
        return self.up != 0, self.up != 1, self.up != 2

    def eased(self, point: Vector, start: Vector) -> Vector:
        """The place to which a point is eased above the hull of the support and `start`, at its height.

        Along the normal of an edge it slows down evenly and stops before the edge: the quadratic soft knee of
        Giannoulis et al. 2012, "Digital dynamic range compressor design", eq. 4. Points that no edge eases,
        such as `start`, stay. So do those that go outwards from a `start` that is a corner, with softness 1:
        they were not above the support.
        """
        here, begun = self._level(point), self._level(start)
        corners = _hull(sorted({*self._corners, begun}))
        rounding = ROUNDING * max(max(map(abs, corner)) for corner in corners)
        for (ax, ay), (bx, by) in pairwise([*corners, corners[0]]) if len(corners) > 2 else ():
            size = math.hypot(bx - ax, by - ay)
            normal = (by - ay) / size, (ax - bx) / size
            room = (1.0 - EDGE) * (normal[0] * (ax - begun[0]) + normal[1] * (ay - begun[1]))
            along = normal[0] * (here[0] - begun[0]) + normal[1] * (here[1] - begun[1])
            if room > 0.0:
                soft = self.softness * room
                over = min(max(along - room + soft, 0.0), 2.0 * soft)
                kept = room - soft + over * (1.0 - over / (4.0 * soft))
                at = begun[0] + kept * normal[0], begun[1] + kept * normal[1]
                corners = _cut(corners, at, normal, rounding) or [begun]  # no line cuts that off
        return self._nearest(point, corners)

    def nearest(self, point: Vector) -> Vector:
        """The place above the hull that is nearest to a point, at the point's height: itself if it is."""
        return self._nearest(point, self._corners)

    @cached_property
    def _corners(self) -> list[_Level]:
        """Of the hull, counterclockwise."""
        return _hull(sorted({self._level(each) for each in self.points}))

    def _level(self, point: Vector) -> _Level:
        """The level coordinates of a point."""
        x, y = (point[k] for k in range(3) if k != self.up)
        return x, y

    def _nearest(self, point: Vector, corners: list[_Level]) -> Vector:
        """The place above a convex polygon that is nearest to a point."""
        axes = [k for k in range(3) if k != self.up]
        x, y = self._level(point)
        edges = list(zip(corners, corners[1:] + corners[:1], strict=True))
        crosses = [(b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) for a, b in edges]
        if len(corners) > 2 and min(crosses) >= 0.0:
            return point
        best = corners[0]
        for a, b in edges:
            size = (b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2
            along = ((x - a[0]) * (b[0] - a[0]) + (y - a[1]) * (b[1] - a[1])) / size if size > 0.0 else 0.0
            u = min(max(along, 0.0), 1.0)
            place = a[0] + u * (b[0] - a[0]), a[1] + u * (b[1] - a[1])
            if math.dist(place, (x, y)) < math.dist(best, (x, y)):
                best = place
        nearest = Vector(point[:])
        nearest[axes[0]], nearest[axes[1]] = best
        return nearest


_Level = tuple[float, float]


def _cut(corners: list[_Level], at: _Level, normal: _Level, rounding: float) -> list[_Level]:
    """The part of a convex polygon behind a line (Sutherland & Hodgman 1974, "Reentrant polygon clipping").

    Args:
        corners: counterclockwise.
        at: a point of the line.
        normal: of the line, away from what stays.
        rounding: distance at which a corner is on the line. Lines through one point from two sides leave a
            segment, of which rounding may leave nothing.
    """
    heights = [(x - at[0]) * normal[0] + (y - at[1]) * normal[1] for x, y in corners]
    kept: list[_Level] = []
    for (a, above), (b, height) in pairwise(
        [(corners[-1], heights[-1]), *zip(corners, heights, strict=True)]
    ):
        if (above > rounding) != (height > rounding):
            u = min(max(above / (above - height), 0.0), 1.0)
            kept.append((a[0] + u * (b[0] - a[0]), a[1] + u * (b[1] - a[1])))
        if height <= rounding:
            kept.append(b)
    return kept


def _hull(points: list[_Level]) -> list[_Level]:
    """Corners of the convex hull of different points in order of X, then Y, counterclockwise (Andrew 1979,
    "Another efficient algorithm for convex hulls in two dimensions")."""
    if len(points) < 3:
        return points
    chains: list[list[_Level]] = []
    for order in (points, points[::-1]):
        chain: list[_Level] = []
        for x, y in order:
            while len(chain) > 1:
                (ax, ay), (bx, by) = chain[-2:]
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0.0:
                    break
                chain.pop()
            chain.append((x, y))
        chains.append(chain[:-1])
    return chains[0] + chains[1]


@dataclass(frozen=True)
class _Reach:
    """The reach of a chain that eases into straight.

    Attributes:
        root: head of its first joint that turns, model space.
        length: of the straight chain.
        extent: distance from the root to the grab at the press.
        soft: see `Grab`.
    """

    root: Vector
    length: float
    extent: float
    soft: float

    def eased(self, point: Vector, start: Vector) -> Vector:
        """The eased place of a pulled point, which was at `start` at the press."""
        away, apart = point - self.root, (point - start).length
        allowed = float(stretched(away.length, self.length, self.soft, self.extent, apart)[0])
        return point if allowed >= away.length else self.root + away * (allowed / away.length)


class Drag:
    """A drag of bones from one pose, prepared for any number of updates.

    Attributes:
        skeleton: the joints.
        pose: at the press.
        support: what the centre of mass stays above; None: it may go anywhere.
        is_even: whether poses go on evenly, at the price of lagging where the body is stretched.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        pose: Pose,
        grabs: Sequence[Grab],
        pins: Iterable[Pin] = (),
        settings: SolverSettings | None = None,
        support: Support | None = None,
        is_even: bool = False,
    ) -> None:
        """Prepare a drag.

        Args:
            skeleton: the joints.
            pose: at the press.
            grabs: at least one.
            pins: of bones that are not pulled themselves.
            settings: of each solve; None: tolerance `NEAR`, no other starts.
            support: what the centre of mass stays above, with priority over the pulls; None: anything. Pulls
                beside it have a largest force, `FORCE`: where they would bend a body that far, they lag.
            is_even: whether poses go on evenly: each is that to which the nearest poses lead on the straight
                way from the press, and grabs lag where the body is stretched. For bodies that pins hold.
                Without effect beside a support, which has the same, and on searches that take no reference
                (CCD, two-bone tips).

        Raises:
            InvalidInput: names the wrong argument.
        """
        check_call(skeleton, settings)
        check_pose(skeleton, pose)
        grabs = listed("Drag.grabs", grabs, "at least one Grab")
        if not grabs:
            raise InvalidInput("there is nothing to drag: name at least one joint and a point")
        for grab in grabs:
            if not isinstance(grab, Grab):
                raise InvalidInput(f"a grab must be a Grab, not {shown(grab)}")
        pins = tuple(pins)
        _check_pins(pins, [grab.joint for grab in grabs])
        self.skeleton, self.pose = skeleton, pose
        transforms = forward_kinematics(skeleton, pose)
        pulls: list[PositionGoal] = []
        holds: list[Goal] = []
        for grab in grabs:
            index = skeleton.index(grab.joint)
            local = _point(skeleton, index, grab.point)
            start = transforms[index].point(local)
            pulls.append(PositionGoal(grab.joint, start, local, 1.0, PULLED, grab.chain_length))
            if grab.rotation:
                turned = transforms[index].rotation
                holds.append(OrientationGoal(grab.joint, turned, 1.0, KEPT, grab.chain_length))
        for pin in pins:
            index = skeleton.index(pin.joint)
            local = _point(skeleton, index, pin.point)
            holds.append(PositionGoal(pin.joint, transforms[index].point(local), local))
            if pin.rotation:
                holds.append(OrientationGoal(pin.joint, transforms[index].rotation))
        self._pulls, self._holds = tuple(pulls), tuple(holds)
        goals = [*pulls, *holds]
        self._targets = stored_targets(goals)
        self._reach = reach_of_goals(skeleton, goals)
        near = max(NEAR * self._reach, SIZES[0])
        fine = SolverSettings(position_tolerance=near, restarts=0)
        self._search = PoseSearch(skeleton, goals, settings or fine)
        self.support, self.is_even, self._near = support, is_even, near
        self._springs: dict[tuple[bool, bool], PoseSearch] = {}  # by whether they balance, and comfort
        self._reaches = tuple([self._reach_of(grab, goal) for grab, goal in zip(grabs, pulls, strict=True)])
        if support is not None:
            self._centre = centre_of_mass(skeleton, transforms)

    def _reach_of(self, grab: Grab, goal: PositionGoal) -> _Reach | None:
        """The reach of a grab that eases into straight; None without easing."""
        skeleton, movable = self.skeleton, set(self.movable)
        turning = [j for j in skeleton.chain(grab.joint, grab.chain_length) if j in movable]
        if not grab.soft or len(turning) < 2 or any(skeleton.joints[j].slides for j in turning):
            return None
        if movable.intersection(skeleton.chain(skeleton.joints[turning[0]].name)[:-1]):
            return None
        transforms = forward_kinematics(skeleton, self.pose)
        places = [*(transforms[j].translation for j in turning), goal.target]
        length = math.fsum((after - before).length for before, after in pairwise(places))
        return (
            _Reach(places[0], length, (goal.target - places[0]).length, grab.soft) if length > 0.0 else None
        )

    @property
    def _gives(self) -> bool:
        """Whether springs give way to bones: CCD turns joint by joint, and would stretch the spring alone."""
        return self._search.follows_reference and self._search.settings.solver is not Solver.CCD

    @cached_property
    def _led(self) -> LedPulls | None:
        """The pulls whose poses go on evenly; None where they need not."""
        if not self.is_even or self.support is not None or not self._gives:
            return None
        settings = self._search.settings
        return LedPulls(self.skeleton, self.pose, self._pulls, self._holds, settings, self._reach)

    def _sprung(self, has_balance: bool, comfort: bool) -> PoseSearch:
        """The search with pulled points on springs, made at its first use."""
        known = self._springs.get((has_balance, comfort))
        if known is not None:
            return known
        settings = self._search.settings
        mobility, pulled = math.sqrt(COMPLIANCE) if self._gives else 0.0, range(len(self._pulls))
        skeleton, goals = with_springs(self.skeleton, self._pulls, pulled, mobility)
        goals += self._holds
        if has_balance and self.support is not None:
            goals.append(BalanceGoal(self._centre, self.support.axes))
        made = PoseSearch(skeleton, goals, replace(settings, comfort=comfort), reach=self._reach)
        return self._springs.setdefault((has_balance, comfort), made)

    def _solve_sprung(
        self, targets: Sequence[Array], comfort: bool, mobility: Mapping[int, float]
    ) -> tuple[Solved, BalanceGoal | None]:
        """Solve with springs, and again with a balance where the pose would come near the support's edge.

        Args:
            mobility: of springs, by joint; others have the first one.

        Returns:
            The pose, and the balance that acts.
        """
        balance, start = None, self._slack
        while True:
            search = self._sprung(balance is not None, comfort)
            if mobility:
                search = search.with_mobility(mobility)
            solved = search.solve(*start, targets, self._slack, self._starts(search))
            if balance is not None or self.support is None:
                return solved, balance
            centre = centre_of_mass(self.skeleton, forward_kinematics(self.skeleton, self._pose_of(solved)))
            above = self.support.eased(centre, self._centre)
            if (above - centre).length <= self._near:
                return solved, None
            balance = BalanceGoal(above, self.support.axes)
            targets = [*targets, *stored_targets([balance])]
            start = solved.rotations, solved.translations

    def _pose_of(self, solved: Solved) -> Pose:
        """The solved pose, without springs."""
        count = len(self.skeleton)
        return Pose.of_arrays(solved.rotations[0, :count], solved.translations[0, :count])

    @cached_property
    def _slack(self) -> tuple[Array, Array]:
        """The pose at the press, with springs of no length."""
        return slack(self.pose, len(self._pulls))

    def _pull_softly(self, targets: Sequence[Array]) -> tuple[Solved, BalanceGoal | None]:
        """Solve with pulls of at most `FORCE` above the support, inside comfort where that is enough.

        Compliances are those with which springs of that force would be as long as the first ones become
        (iteratively reweighted least squares). Both times the balance is an inequality, so that it sets in
        without a jump.

        Returns:
            The pose, and the balance that acts.
        """
        comfort, count = self._search.regions is not None, len(self.skeleton)
        while True:
            solved, balance = self._solve_sprung(targets, comfort, {})
            lengths = [math.hypot(*shift) / self._reach for shift in solved.translations[0, count:].tolist()]
            if comfort and 2.0 * max(lengths) > FORCE * COMPLIANCE:
                comfort = False
                continue
            if not any(lengths):
                return solved, balance
            mobilities = [min(max(math.sqrt(2.0 * each / FORCE), STIFFEST), 1.0) for each in lengths]
            return self._solve_sprung(targets, comfort, dict(enumerate(mobilities, count)))

    @property
    def starts(self) -> tuple[Vector, ...]:
        """Points of the grabs in the pose at the press, in model space."""
        return tuple(goal.target for goal in self._pulls)

    def places(self, pose: Pose) -> tuple[Vector, ...]:
        """Points of the grabs in a pose, in model space."""
        transforms = forward_kinematics(self.skeleton, pose)
        return tuple(
            transforms[self.skeleton.index(goal.joint)].point(goal.effector(self.skeleton))
            for goal in self._pulls
        )

    @property
    def movable(self) -> tuple[int, ...]:
        """Indices of the joints that may move."""
        return self._search.movable

    def to(self, points: Sequence[Vector | Sequence[float]]) -> SolveResult:
        """Solve for the pose nearest to the pose at the press with the grabs at, or nearest to, `points`.

        With all points at `starts` the result is the pose at the press itself.

        Args:
            points: one per grab, in model space.

        Returns:
            Its errors are those of the grabs, of the kept rotations and of the pins, and of the balance where
            the pose would leave its support.

        Raises:
            InvalidInput: not as many points as grabs, or no point.
        """
        if len(points) != len(self._pulls):
            raise InvalidInput(f"a drag of {len(self._pulls)} joints needs as many points, not {len(points)}")
        pairs = list(zip(self._pulls, points, strict=True))
        pulls = [
            replace(goal, target=frozen_vector(point, f"point for joint '{goal.joint}'"))
            for goal, point in pairs
        ]
        goals = [*pulls, *self._holds]
        if all(goal.target == start for goal, start in zip(pulls, self.starts, strict=True)):
            return SolveResult(self.pose, SolveStatus.CONVERGED, 0, (GoalError(),) * len(goals))
        reference = self.pose.arrays
        eased = [
            goal if reach is None else replace(goal, target=reach.eased(goal.target, start))
            for goal, start, reach in zip(pulls, self.starts, self._reaches, strict=True)
        ]
        targets = [*stored_targets(eased), *self._targets[len(pulls) :]]
        search = self._search
        if self._led is not None:
            solved = self._led.solve([goal.target for goal in pulls])
        elif self.support is None:
            solved = search.solve(*reference, targets, reference, self._starts(search))
        else:
            solved, balance = self._pull_softly(targets)
            goals += [balance] if balance is not None else []
        pose = self._pose_of(solved)
        errors = measure_goals(self.skeleton, goals, *placed_joints(self.skeleton, pose))
        status = STATUSES[solved.statuses[0]]
        if all(search.settings.in_tolerances(error) <= 1.0 for error in errors):
            status = SolveStatus.CONVERGED
        elif status is SolveStatus.CONVERGED:  # eased short of a point
            status = SolveStatus.OPTIMAL
        return SolveResult(pose, status, int(solved.steps[0]), errors)

    def _starts(self, search: PoseSearch) -> Callable[[], Starts] | None:
        """What makes other starts: the same ones for all points."""
        return search.templates if search.settings.restarts else None


def drag(
    skeleton: Skeleton,
    pose: Pose,
    points: Mapping[str, Vector | Sequence[float]],
    pins: Iterable[Pin] = (),
    settings: SolverSettings | None = None,
    support: Support | None = None,
) -> SolveResult:
    """Solve for the pose nearest to `pose` with the tails of bones at, or nearest to, points.

    Pinned bones stay, and the centre of mass stays above its support. All joints up to the root follow inside
    their limits, and inside their comfort where that is enough. The same input gives the same result to the
    bit.

    Args:
        skeleton: the joints. A root that slides follows too.
        pose: at the start of the drag.
        points: {joint: target of its tail in model space}.
        pins: bones that stay in place.
        settings: of the solve; None: tolerance `NEAR`, no other starts.
        support: as in `Drag`, such as `Support.of_pins`; None: the centre of mass may go anywhere.

    Raises:
        InvalidInput: names the wrong argument.
    """
    if not isinstance(points, Mapping):
        raise InvalidInput(f"points must be a mapping of joints to points, not {shown(points)}")
    grabs = [Grab(name) for name in points]
    return Drag(skeleton, pose, grabs, pins, settings, support).to(list(points.values()))


def _check_pins(pins: Sequence[object], grabbed: Sequence[str]) -> None:
    """Raise InvalidInput unless all are pins of different joints, none of which is pulled."""
    taken: set[str] = set()
    for pin in pins:
        if not isinstance(pin, Pin):
            raise InvalidInput(f"a pin must be a Pin, not {shown(pin)}")
        if pin.joint in grabbed:
            raise InvalidInput(f"joint '{pin.joint}' is pulled and pinned: free it, or pull another one")
        if pin.joint in taken:
            raise InvalidInput(f"joint '{pin.joint}' is pinned twice: name it once")
        taken.add(pin.joint)
    for name in grabbed:
        if grabbed.count(name) > 1:
            raise InvalidInput(f"joint '{name}' is pulled twice: name it once")


def _point(skeleton: Skeleton, index: int, point: Vector | None) -> Vector:
    """A point of a joint in its frame, by default the tail."""
    return Vector((0.0, skeleton.joints[index].length, 0.0)) if point is None else point


def _freeze(value: Pin | Grab, what: str) -> None:
    if value.point is not None:
        object.__setattr__(value, "point", frozen_vector(value.point, f"{what}: point"))
