"""Joints and goals as arrays, and the pose that a solve moves."""

from __future__ import annotations

from array import array
from math import fabs, pi

from .geometry import (
    add,
    axis_rotation,
    dot,
    put_quaternion,
    put_vector,
    quaternion_at,
    scaled,
    twist_angle,
    vector_at,
    wrapped,
)
from .goals import BALANCE, DIRECTION, FIRST, POLE, POSITION, ROWS, WINDOW
from .kinematics import KNOT, LARGEST, zeros
from .limits import LIMIT_WIDTH, are_rows_known, hinge_axis, hinge_range, is_hinge

SLOTS = 8
"""Poses that a problem can save beside the present one: 0 and 1 by steps, 2 and more by searches."""
SMALLEST = 1e-30
"""Least size of a weight, mobility, tolerance or reach."""
UNIT_SLACK = 1e-2
"""By how much the square of a unit vector may differ from 1."""
SINGLE = 1e-6
"""Rounding of a pose in single precision: radians, or parts of the reach."""
PAIRS = 8
"""Last steps of a slide that tell its curvature."""
NORMALS = 3
"""Most borders of a limit on which a rotation stands at once."""


def counts(count):
    return array("i", bytes(4 * max(count, 1)))


def checked_doubles(tables, name, count):
    """A copy of a table of `count` finite doubles; ValueError names the table that is not."""
    view = memoryview(tables[name])
    if view.format != "d" or not view.c_contiguous or view.nbytes != 8 * count:
        raise ValueError(f"kernel: {name} must be {count} doubles")
    values = array("d", view.tobytes() or bytes(8))
    for k in range(count):
        if not -LARGEST <= values[k] <= LARGEST:
            raise ValueError(f"kernel: {name} must be finite, and at most {LARGEST:g}")
    return values


def checked_sizes(tables, name, count):
    """A copy of a table of `count` finite doubles, 0 or more."""
    values = checked_doubles(tables, name, count)
    for k in range(count):
        if values[k] < 0.0:
            raise ValueError(f"kernel: {name} must be 0 or more")
    return values


def check_units(name, values, width, count):
    """Raise ValueError unless the `count` rows of a table have length 1."""
    for row in range(count):
        square = 0.0
        for k in range(width * row, width * (row + 1)):
            square += values[k] * values[k]
        if fabs(square - 1.0) > UNIT_SLACK:
            raise ValueError(f"kernel: rows of {name} must have length 1")


def checked_indices(tables, name, count, least, most):
    """A copy of a table of `count` ints from `least` to `most`; ValueError names the table that is not."""
    view = memoryview(tables[name])
    if view.format != "i" or not view.c_contiguous or view.nbytes != 4 * count:
        raise ValueError(f"kernel: {name} must be {count} ints")
    values = array("i", view.tobytes() or bytes(4))
    for k in range(count):
        if not least <= values[k] <= most:
            raise ValueError(f"kernel: {name} must be {least} to {most}, not {values[k]}")
    return values


class Problem:
    """Inputs and working memory of a solve: joints, goals, degrees of freedom.

    One thread uses it at a time.
    """

    def __init__(self, tables, reach, position_tolerance, angle_tolerance):
        """Copy and check the tables.

        Args:
            tables: {name: array}; int32 and float64, flat. J joints, G goals, S slides, C coupled offsets.
                parent (J), -1 or less than the joint's number; inherits (J) 0 or 1; offset (3J), rest (4J);
                limit, region (LIMIT_WIDTH J): limits and comfort regions;
                width (J) columns of the joint's rotation: 0 fixed, 1 a hinge, 3;
                metric (4J) the axes of `mobility` (3J) in the joint's base, 0 to 1;
                max_step (J) radians of a step of CCD; comfort (J) tolerances, radians;
                mass (J), mass_point (3J) in the joint's frame;
                first_slide (J + 1), slide_axis (3S), slide_range (2S);
                coupled_joint, coupled_driver (C), coupled_axis (3C), first_knot (C + 1), knots (KNOT each);
                goal_kind (G), goal_joint (G), goal_root (G), goal_rank (G), goal_point (3G), goal_weight (G),
                goal_axis (3G), goal_axis_joint (G), goal_scale (G), goal_angle (G);
                goal_axis and goal_scale of a balance: its axis, or 0, and 1 if what is across it counts;
                goal_tip (G) 1 where the last two joints are solved by the law of cosines; 2 where the two
                that move a limb's point start from it, its middle joint about the first axis of its metric,
                and keep its side;
                serves (G J) 0 or 1: whether a joint may move for a goal.
            reach: the model's unit of length for residuals.
            position_tolerance: in the model's unit.
            angle_tolerance: radians.

        Raises:
            ValueError: names the table that is wrong.
        """
        if getattr(self, "is_ready", False):
            raise ValueError("kernel: a Problem is made once")
        joints = len(tables["parent"])
        goals = len(tables["goal_kind"])
        for size in (reach, position_tolerance, angle_tolerance):
            if not SMALLEST <= size <= LARGEST:
                raise ValueError(f"kernel: reach and tolerances must be {SMALLEST:g} to {LARGEST:g}")
        self.joints, self.goals, self.reach = joints, goals, reach
        self.angle_tolerance = angle_tolerance
        set_tolerance(self, position_tolerance)
        self.parent = checked_indices(tables, "parent", joints, -1, joints - 1)
        for i in range(joints):
            if self.parent[i] >= i:
                raise ValueError("kernel: parents must come before their children")
        self.inherits = checked_indices(tables, "inherits", joints, 0, 1)
        self.offset = checked_doubles(tables, "offset", 3 * joints)
        self.rest = checked_doubles(tables, "rest", 4 * joints)
        self.limit = checked_doubles(tables, "limit", LIMIT_WIDTH * joints)
        self.region = checked_doubles(tables, "region", LIMIT_WIDTH * joints)
        if not are_rows_known(self.limit, LIMIT_WIDTH * joints):
            raise ValueError("kernel: limit has a row of an unknown kind")
        if not are_rows_known(self.region, LIMIT_WIDTH * joints):
            raise ValueError("kernel: region has a row of an unknown kind")
        self.width = checked_indices(tables, "width", joints, 0, 3)
        self.metric = checked_doubles(tables, "metric", 4 * joints)
        self.mobility = checked_doubles(tables, "mobility", 3 * joints)
        self.has_comfort, self.likes_regions = False, False
        for i in range(joints):
            self.likes_regions = self.likes_regions or self.region[LIMIT_WIDTH * i] != 0.0
        self.max_step = checked_sizes(tables, "max_step", joints)
        self.comfort = checked_sizes(tables, "comfort", joints)
        for i in range(joints):
            self.has_comfort = self.has_comfort or self.comfort[i] > 0.0
        self.mass = checked_sizes(tables, "mass", joints)
        self.mass_point = checked_doubles(tables, "mass_point", 3 * joints)
        self.total_mass = 0.0
        for i in range(joints):
            self.total_mass += self.mass[i]
        self.slides = len(tables["slide_range"]) // 2
        self.first_slide = checked_starts(tables, "first_slide", joints, self.slides)
        self.slide_axis = checked_doubles(tables, "slide_axis", 3 * self.slides)
        self.slide_range = checked_doubles(tables, "slide_range", 2 * self.slides)
        self.couplings = len(tables["coupled_joint"])
        self.coupled_joint = checked_indices(tables, "coupled_joint", self.couplings, 0, joints - 1)
        self.coupled_driver = checked_indices(tables, "coupled_driver", self.couplings, 0, joints - 1)
        self.coupled_axis = checked_doubles(tables, "coupled_axis", 3 * self.couplings)
        knots = len(tables["knots"]) // KNOT
        self.first_knot = checked_starts(tables, "first_knot", self.couplings, knots)
        self.knots = checked_doubles(tables, "knots", KNOT * knots)
        for k in range(self.couplings):
            if self.first_knot[k + 1] - self.first_knot[k] < 2:
                raise ValueError("kernel: a coupled offset needs two knots")
            for at in range(self.first_knot[k], self.first_knot[k + 1] - 1):
                if not self.knots[KNOT * at + KNOT] > self.knots[KNOT * at]:
                    raise ValueError("kernel: the angles of knots must rise")
        self.check_joints()
        self.take_goals(tables)
        self.lay_out()
        self.is_busy = False
        self.is_ready = True

    def check_joints(self):
        """Raise ValueError unless the joints' tables fit each other."""
        check_units("rest", self.rest, 4, self.joints)
        check_units("metric", self.metric, 4, self.joints)
        check_units("slide_axis", self.slide_axis, 3, self.slides)
        check_units("coupled_axis", self.coupled_axis, 3, self.couplings)
        for i in range(self.joints):
            if self.width[i] == 2 or (self.width[i] == 1 and not is_hinge(self.limit, LIMIT_WIDTH * i)):
                raise ValueError("kernel: width must be 0, 1 for a hinge, or 3")
            for k in range(3 * i, 3 * i + 3):
                if not SMALLEST <= self.mobility[k] <= 1.0 and self.width[i]:
                    raise ValueError(f"kernel: mobility of what moves must be {SMALLEST:g} to 1")
        for k in range(self.slides):
            if self.slide_range[2 * k] > self.slide_range[2 * k + 1]:
                raise ValueError("kernel: slide_range must rise")
        for k in range(self.couplings):
            driver = self.coupled_driver[k]
            if self.width[driver] == 3 or not is_hinge(self.limit, LIMIT_WIDTH * driver):
                raise ValueError("kernel: coupled_driver must be a hinge")

    def take_goals(self, tables):
        """Copy and check the goals' tables."""
        joints, goals = self.joints, self.goals
        self.goal_kind = checked_indices(tables, "goal_kind", goals, 0, len(ROWS) - 1)
        self.goal_joint = checked_indices(tables, "goal_joint", goals, 0, joints - 1)
        self.goal_root = checked_indices(tables, "goal_root", goals, 0, joints - 1)
        self.goal_rank = checked_indices(tables, "goal_rank", goals, -1, goals)
        self.goal_point = checked_doubles(tables, "goal_point", 3 * goals)
        self.goal_weight = checked_sizes(tables, "goal_weight", goals)
        self.goal_axis = checked_doubles(tables, "goal_axis", 3 * goals)
        self.goal_axis_joint = checked_indices(tables, "goal_axis_joint", goals, 0, joints - 1)
        self.goal_scale = checked_sizes(tables, "goal_scale", goals)
        self.goal_angle = checked_doubles(tables, "goal_angle", goals)
        self.goal_tip = checked_indices(tables, "goal_tip", goals, 0, 2)
        self.serves = checked_indices(tables, "serves", goals * joints, 0, 1)
        self.target = zeros(4 * goals)
        ranks = {self.goal_rank[k] for k in range(goals) if self.goal_kind[k] != WINDOW}
        if ranks != set(range(len(ranks))):
            raise ValueError("kernel: goal_rank must count from 0 without gaps")
        for k in range(goals):
            if (self.goal_rank[k] < 0) != (self.goal_kind[k] == WINDOW):
                raise ValueError("kernel: goal_rank must be -1 for reach windows, and for these alone")
            if not self.goal_weight[k] >= SMALLEST:
                raise ValueError(f"kernel: goal_weight must be {SMALLEST:g} or more")
            if self.goal_kind[k] == DIRECTION or self.goal_kind[k] == BALANCE:
                axis = vector_at(self.goal_axis, 3 * k)
                square = dot(axis, axis)
                is_whole = self.goal_kind[k] == BALANCE and square == 0.0
                if fabs(square - 1.0) > UNIT_SLACK and not is_whole:
                    raise ValueError("kernel: goal_axis of a direction or a balance must have length 1")
            if self.goal_kind[k] != BALANCE:
                i = self.goal_joint[k]
                while i > self.goal_root[k]:
                    i = self.parent[i]
                if i != self.goal_root[k]:
                    raise ValueError("kernel: goal_root must be goal_joint or an ancestor of it")
            elif not self.total_mass >= SMALLEST:
                raise ValueError("kernel: balance needs a mass")
        # Rows of each goal.
        self.first_row = counts(goals + 1)
        rows = 0
        for k in range(goals):
            self.first_row[k] = rows
            rows += ROWS[self.goal_kind[k]]
        self.first_row[goals] = rows
        self.rows = rows

    def lay_out(self):
        """Number the columns, choose the joints to evaluate, and allocate memory."""
        joints, columns, self.steps = self.joints, 0, 0
        self.first_column = counts(joints + 1)
        for i in range(joints):
            self.first_column[i] = columns
            columns += self.width[i] + self.first_slide[i + 1] - self.first_slide[i]
        self.first_column[joints] = columns
        self.columns = columns
        self.column_joint, self.column_slide = counts(columns), counts(columns)
        for i in range(joints):
            for column in range(self.first_column[i], self.first_column[i + 1]):
                part = column - self.first_column[i] - self.width[i]
                self.column_joint[column] = i
                self.column_slide[column] = self.first_slide[i] + part if part >= 0 else -1
        self.evaluated, self.evaluated_count = counts(joints), 0
        needed = bytearray(joints)
        for k in range(self.goals):
            if self.goal_kind[k] == BALANCE:
                for i in range(joints):
                    needed[i] = needed[i] or self.mass[i] > 0.0
            else:
                needed[self.goal_joint[k]] = 1
                needed[self.goal_axis_joint[k]] = 1
        for i in range(joints - 1, -1, -1):
            if needed[i] and self.parent[i] >= 0:
                needed[self.parent[i]] = 1
        for i in range(joints):
            if needed[i]:
                self.evaluated[self.evaluated_count] = i
                self.evaluated_count += 1
        self.find_paths()
        list_columns(self)
        rows = self.rows
        self.rotation, self.translation, self.angle = zeros(4 * joints), zeros(3 * joints), zeros(joints)
        self.reference_rotation, self.reference_translation = zeros(4 * joints), zeros(3 * joints)
        self.reference_angle, self.has_reference = zeros(joints), False
        self.side_rotation = zeros(4 * joints)
        self.head, self.frame, self.base = zeros(3 * joints), zeros(4 * joints), zeros(4 * joints)
        self.shift_base, self.below = zeros(4 * joints), zeros(4 * joints)
        self.saved = zeros(SLOTS * 8 * joints)
        self.column_axis = zeros(3 * columns)
        self.slope, self.serving = zeros(rows * columns), zeros(rows * columns)
        self.residual, self.departure_gradient = zeros(rows), zeros(columns)
        self.distance, self.miss = zeros(self.goals), zeros(self.goals)
        self.bend_share, self.play, self.turned = zeros(self.goals), zeros(self.goals), zeros(self.goals)
        self.row_damping, self.row_gain = zeros(rows), zeros(rows)
        self.row_offset, self.first_residual = zeros(rows), zeros(rows)
        self.expected = zeros(rows)
        self.force, self.is_met, self.only_kept = zeros(rows), counts(self.goals), False
        self.is_settling = False
        self.has_missed_earlier, self.is_stationary = False, False
        self.rank_weight, self.earlier_weight = zeros(self.goals), FIRST
        self.row_is_active, self.gradient, self.budget, self.is_equal = counts(rows), zeros(columns), 0, True
        self.to_region, self.by_passes, self.only_ccd, self.stays_local = False, False, False, False
        self.starts_at_reference = False
        self.rounds = False
        self.order, self.most, self.square, self.error_ratio, self.departure_square = 0, 0, 0.0, 0.0, 0.0
        self.fraction, self.feedback, self.reduction, self.stall = 1.0, 0.0, 0.0, 0.0
        self.last_step, self.ran_out = 0, False
        self.score, self.best_score = zeros(self.last_rank + 3), zeros(self.last_rank + 3)
        self.start_distance = zeros(self.goals)
        self.normals, self.normal_count = zeros(3 * NORMALS * joints), counts(joints)
        self.normal_pairs, self.is_active = counts(joints), counts(NORMALS * joints)
        self.active_basis, self.active_count = zeros(9 * joints), counts(joints)
        fours = 4 * ((rows + 3) // 4)
        self.free_slope, self.system = zeros(fours * columns), zeros(fours * rows)
        self.right = zeros(rows)
        self.step, self.fixed_step, self.is_fixed = zeros(columns), zeros(columns), counts(columns)
        self.free_gradient = zeros(columns)
        self.old_gradient, self.old_step, self.return_step = zeros(columns), zeros(columns), zeros(columns)
        self.pair_step, self.pair_change = zeros(PAIRS * columns), zeros(PAIRS * columns)
        self.pair_inverse, self.pair_part, self.pair_count = zeros(PAIRS), zeros(PAIRS), 0
        self.is_free, self.face = False, counts(rows + columns + NORMALS * joints)
        self.right_side, self.remainder, self.direction = zeros(columns), zeros(columns), zeros(columns)
        self.conditioned = zeros(columns)
        self.product, self.turn_of_step, self.border = zeros(columns), zeros(3 * joints), zeros(9 * joints)

    def find_paths(self):
        """Store the paths from joints to goals, and the joints that move."""
        joints, goals = self.joints, self.goals
        self.above, self.lever_joint, self.next_moving = (
            counts(goals * joints),
            counts(goals * joints),
            counts(goals * joints),
        )
        self.tip_first, self.tip_middle, self.in_tip = counts(goals), counts(goals), counts(joints)
        self.limb_first, self.limb_middle, self.has_limbs = counts(goals), counts(goals), False
        self.side_first, self.side_middle, self.side_last = counts(goals), counts(goals), counts(goals)
        self.has_sides = False
        self.masked, self.is_rigid = False, not self.couplings
        self.has_windows, self.has_tips, self.has_poles, self.last_rank = False, False, False, 0
        self.moving, self.moving_count, self.place_of = counts(joints), 0, counts(joints)
        for n in range(self.evaluated_count):
            self.place_of[self.evaluated[n]] = n
        moves = [self.first_column[i + 1] > self.first_column[i] for i in range(joints)]
        for i in range(joints):
            if moves[i] and any(self.serves[k * joints + i] for k in range(goals)):
                self.moving[self.moving_count] = i
                self.moving_count += 1
        for k in range(goals):
            at = k * joints
            self.last_rank = max(self.last_rank, self.goal_rank[k])
            self.tip_first[k] = self.tip_middle[k] = -1
            self.limb_first[k] = self.limb_middle[k] = -1
            self.side_first[k] = self.side_middle[k] = self.side_last[k] = -1
            if self.goal_kind[k] == BALANCE:
                self.is_rigid = False
                for i in range(joints):
                    self.masked = self.masked or (moves[i] and not self.serves[at + i])
                continue
            if self.goal_kind[k] == WINDOW:
                self.has_windows = True
            if self.goal_kind[k] == POLE:
                self.is_rigid, self.has_poles = False, True
            i, lever, after, chain = self.goal_joint[k], -1, -1, []
            while i >= 0:
                self.above[at + i] = 1
                self.lever_joint[at + i], self.next_moving[at + i] = lever, after
                if moves[i] and self.serves[at + i]:
                    chain.append(i)
                    after = i
                self.masked = self.masked or (moves[i] and not self.serves[at + i])
                if not self.inherits[i] and self.parent[i] >= 0:
                    lever, self.is_rigid = i, False
                i = self.parent[i]
            if self.goal_tip[k] == 2:
                point = vector_at(self.goal_point, 3 * k)
                turning = [i for i in chain if i != self.goal_joint[k] or dot(point, point) > 0.0]
                if len(turning) == 2 and self.width[turning[0]] and self.width[turning[1]] == 3:
                    self.limb_first[k], self.limb_middle[k], self.has_limbs = turning[1], turning[0], True
                self.find_side(k, chain)
            elif self.goal_tip[k] and len(chain) >= 2 and all(self.is_plain(i, k) for i in chain[:2]):
                self.tip_first[k], self.tip_middle[k], self.has_tips = chain[1], chain[0], True
                self.in_tip[chain[0]] = self.in_tip[chain[1]] = 1
        self.is_moving, self.mirrored = counts(joints), zeros(3 * joints)
        for n in range(self.moving_count):
            self.is_moving[self.moving[n]] = 1
        # Reach windows come after all goals.
        self.is_single = goals > 0 and self.goal_kind[0] == POSITION
        for k in range(1, goals):
            self.is_single = self.is_single and self.goal_kind[k] == WINDOW
        self.is_alone = self.is_single and goals == 1
        self.can_share = self.is_alone and self.is_rigid and not self.slides and not self.has_tips
        for n in range(self.moving_count):
            i = self.moving[n]
            self.can_share = self.can_share and self.max_step[i] >= pi and self.comfort[i] == 0.0
        self.effector, self.effector_frame = zeros(3 * goals), zeros(4 * goals)
        self.share, self.angle_order, self.hole = zeros(joints), zeros(joints), zeros(joints)
        self.profile, self.first_pair, self.bend = zeros(9), zeros(6), zeros(9)
        self.davenport, self.eigenvectors = zeros(16), zeros(16)
        self.stage, self.placed, self.last_turn = self.last_rank, 0, 0.0

    def find_side(self, k, chain):
        """Store the limb of a position: its middle joint, which turns less across its bend, and its ends.

        Args:
            chain: the joints that move the goal, from its own towards the root.
        """
        for place in range(len(chain) - 1):
            middle, first = chain[place], chain[place + 1]
            turns = self.width[middle] == 3 and self.width[first] == 3
            if turns and self.mobility[3 * middle + 1] < self.mobility[3 * middle]:
                self.side_first[k], self.side_middle[k], self.has_sides = first, middle, True
                self.side_last[k] = chain[place - 1] if place > 0 else -1
                return

    def is_plain(self, i, goal):
        """Whether a joint turns freely, for one goal alone, and changes the lengths of no links."""
        slides = self.first_slide[i + 1] > self.first_slide[i]
        rolls = any(i in (self.coupled_joint[k], self.coupled_driver[k]) for k in range(self.couplings))
        shared = any(self.serves[k * self.joints + i] and k != goal for k in range(self.goals))
        free = self.mobility[3 * i] == 1.0 and self.max_step[i] >= pi and self.comfort[i] == 0.0
        return bool(self.width[i]) and free and not (slides or rolls or shared)


def list_columns(p):
    """List each goal's columns whose slopes may differ from 0, as spans, and the goals of each joint."""
    most = p.goals * p.joints
    p.first_span, p.span_start, p.span_end = counts(p.goals + 1), counts(most), counts(most)
    p.first_goal, p.joint_goal = counts(p.joints + 1), counts(most)
    spans, listed = 0, 0
    for k in range(p.goals):
        for i in range(p.joints):
            start, end = p.first_column[i], p.first_column[i + 1]
            if start < end and may_change(p, k, i):
                if spans > p.first_span[k] and p.span_end[spans - 1] == start:
                    p.span_end[spans - 1] = end
                else:
                    p.span_start[spans], p.span_end[spans] = start, end
                    spans += 1
        p.first_span[k + 1] = spans
    for i in range(p.joints):
        for k in range(p.goals):
            if may_change(p, k, i):
                p.joint_goal[listed] = k
                listed += 1
        p.first_goal[i + 1] = listed


def may_change(p, k, i):
    """Whether a motion of joint `i` may change the error of goal `k`."""
    for n in range(p.couplings):
        if p.coupled_driver[n] == i:
            return True
    joint, axis_joint = p.goal_joint[k], p.goal_axis_joint[k]
    while joint > i:
        joint = p.parent[joint]
    while axis_joint > i:
        axis_joint = p.parent[axis_joint]
    return joint == i or axis_joint == i or p.goal_kind[k] == BALANCE


def checked_starts(tables, name, count, most):
    """A copy of a table of `count` + 1 rising ints from 0 to `most`."""
    starts = checked_indices(tables, name, count + 1, 0, most)
    if starts[0] != 0 or starts[count] != most:
        raise ValueError(f"kernel: {name} must go from 0 to {most}")
    for k in range(count):
        if starts[k + 1] < starts[k]:
            raise ValueError(f"kernel: {name} must rise")
    return starts


# The pose -------------------------------------------------------------------------------------------


def set_tolerance(p, position_tolerance):
    """Set the position tolerance, and the error ratio of a met goal, which leaves room for rounding."""
    p.position_tolerance = position_tolerance
    p.met_ratio = max(0.5, 1.0 - max(SINGLE * p.reach / position_tolerance, SINGLE / p.angle_tolerance))


def angle_in_range(p, i, angle):
    """An angle of a hinge plus the whole turns that bring it nearest to the middle of its range."""
    lower, upper = hinge_range(p.limit, LIMIT_WIDTH * i)
    return angle if upper - lower >= 2.0 * pi else wrapped(angle, 0.5 * (lower + upper))


def set_angle(p, i, angle):
    """Turn a hinge to an angle inside its range."""
    lower, upper = hinge_range(p.limit, LIMIT_WIDTH * i)
    if upper - lower < 2.0 * pi:
        angle = min(max(angle, lower), upper)
    p.angle[i] = angle
    set_rotation(p, i, axis_rotation(hinge_axis(p.limit, LIMIT_WIDTH * i), angle))


def read_angle(p, i):
    """Take a hinge's angle from its rotation."""
    axis = hinge_axis(p.limit, LIMIT_WIDTH * i)
    p.angle[i] = angle_in_range(p, i, twist_angle(quaternion_at(p.rotation, 4 * i), axis))
    note_motion(p, i)


def set_rotation(p, i, rotation):
    """Rotate a joint, relative to rest."""
    put_quaternion(p.rotation, 4 * i, rotation)
    note_motion(p, i)


def set_translation(p, i, translation):
    """Shift a joint, relative to rest."""
    put_vector(p.translation, 3 * i, translation)
    note_motion(p, i)


def note_motion(p, i):
    """Note that a joint has moved: it and those after it are to be placed anew.

    A coupled offset moves joints before its driver too.
    """
    p.placed = 0 if p.couplings else min(p.placed, p.place_of[i])


def save(p, slot):
    """Save the present pose in a slot."""
    joints = p.joints
    at = 8 * joints * slot
    for k in range(4 * joints):
        p.saved[at + k] = p.rotation[k]
    at += 4 * joints
    for k in range(3 * joints):
        p.saved[at + k] = p.translation[k]
    at += 3 * joints
    for k in range(joints):
        p.saved[at + k] = p.angle[k]


def restore(p, slot):
    """Restore the pose of a slot; joints up to the first that has moved since stay placed."""
    joints = p.joints
    at, shifts, angles = 8 * joints * slot, 8 * joints * slot + 4 * joints, 8 * joints * slot + 7 * joints
    for i in range(joints):
        has_moved = p.angle[i] != p.saved[angles + i]
        p.angle[i] = p.saved[angles + i]
        for k in range(4 * i, 4 * i + 4):
            has_moved = has_moved or p.rotation[k] != p.saved[at + k]
            p.rotation[k] = p.saved[at + k]
        for k in range(3 * i, 3 * i + 3):
            has_moved = has_moved or p.translation[k] != p.saved[shifts + k]
            p.translation[k] = p.saved[shifts + k]
        if has_moved:
            note_motion(p, i)


def clamp_slide(p, slide, i):
    """Clamp a shift along a slide to its range."""
    axis, shift = vector_at(p.slide_axis, 3 * slide), vector_at(p.translation, 3 * i)
    place = dot(axis, shift)
    inside = min(max(place, p.slide_range[2 * slide]), p.slide_range[2 * slide + 1])
    if inside != place:
        set_translation(p, i, add(shift, scaled(axis, inside - place)))


def copy_reference_shift(p, slide, i):
    """Set the shift along a slide to that of the reference."""
    axis, shift = vector_at(p.slide_axis, 3 * slide), vector_at(p.translation, 3 * i)
    along = dot(axis, vector_at(p.reference_translation, 3 * i)) - dot(axis, shift)
    set_translation(p, i, add(shift, scaled(axis, along)))
