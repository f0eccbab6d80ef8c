"""Another base for the same bones: nothing moves, and no limit changes."""

from __future__ import annotations

import math
import random

import pytest
from chains import EXACT, FLOAT32, SOLVE, bones, legal_pose, random_rotation, random_skeleton, straight
from mathutils import Quaternion, Vector
from seeds import few_of

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import (
    BalanceGoal,
    PoleGoal,
    PositionGoal,
)
from ccd_rig.limits.shapes import (
    Comfort,
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    Slide,
    SwingTwist,
    sample,
    violation,
)
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.skeleton.rerooting import reroot, restore_root, reversed_name
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import solve


def random_tree(rng, count):
    """Mixed limits, comfort, masses and translations; on every path joints inherit rotation."""
    skeleton = random_skeleton(rng, count, tree=True)
    changes = {
        joint.name: {
            "inherit_rotation": True,
            "mass": rng.uniform(0.0, 3.0),
            "comfort": rng.choice((None, Comfort(0.1), Comfort(0.2, inner(joint.limit, rng)))),
            "slides": rng.choice(((), (), (Slide([rng.gauss(0.0, 1.0) for _ in range(3)], -0.5, 2.0),))),
        }
        for joint in skeleton.joints
    }
    skeleton = skeleton.replace(changes)
    rotations = legal_pose(skeleton, rng).rotations
    translations = [[rng.gauss(0.0, 0.3) for _ in range(3)] for _ in skeleton.joints]
    return skeleton, Pose(rotations, tuple(Vector(t) for t in translations))


def inner(limit, rng):
    """A region inside `limit`, for cones and ellipses of either kind."""
    if isinstance(limit, Hinge):
        return Hinge(limit.axis, limit.lower + 0.02, limit.upper - 0.02)
    if isinstance(limit, EulerBox):
        middle = [0.5 * (a + b) for a, b in zip(limit.lower, limit.upper, strict=True)]
        return EulerBox(limit.order, middle, limit.upper)
    if limit is None:
        return rng.choice((None, Hinge((0.0, 0.0, 1.0), 0.1, 0.2), SwingTwist(Ellipse(-0.1, 0.2, -0.1, 0.1))))
    if isinstance(limit.swing, Cone):
        sides = (limit.swing.radius,) * 4
    else:
        sides = (-limit.swing.x_lower, limit.swing.x_upper, -limit.swing.z_lower, limit.swing.z_upper)
    least = 0.5 * min(sides)
    swing = rng.choice((Cone(least), Ellipse(-least, sides[1], -least, least)))
    return SwingTwist(swing, limit.twist, limit.axis)


def assert_same_bones(before, after, tolerance):
    """Every bone of `before` is in `after`, its head and frame where they were."""
    for name, place in before.items():
        assert (place.translation - after[name].translation).length <= tolerance, name
        assert angle_between(place.rotation, after[name].rotation) <= FLOAT32, name


@pytest.mark.parametrize("seed", few_of(range(60), 15))
def test_every_bone_stays_where_it_is(seed):
    rng = random.Random(seed)
    skeleton, pose = random_tree(rng, rng.randrange(1, 12))
    base = rng.choice(skeleton.joints).name
    other, moved = reroot(skeleton, pose, base)
    size = sum(joint.length for joint in skeleton.joints) + 1.0
    assert other.joints[0].name == base
    assert other.joints[0].locked
    assert_same_bones(bones(skeleton, pose), bones(other, moved), EXACT * size)
    assert_same_bones(bones(skeleton, Pose.rest(skeleton)), bones(other, Pose.rest(other)), EXACT * size)
    for joint in skeleton.joints:
        same = other.joints[other.index(joint.name)]
        assert (same.length, same.mass) == (joint.length, joint.mass)


def limits_by_joint(skeleton, pose):
    """Violation and preferred region's violation of each joint, by the bone it once belonged to."""
    found = {}
    for joint, rotation in zip(skeleton.joints, pose.rotations, strict=True):
        region = joint.comfort.region if joint.comfort else None
        found[joint.name] = tuple(
            0.0 if each is None else violation(each, rotation) for each in (joint.limit, region)
        )
    return found


@pytest.mark.parametrize("seed", few_of(range(60), 15))
def test_limits_are_as_far_off_as_before(seed):
    rng = random.Random(1000 + seed)
    skeleton, pose = random_tree(rng, rng.randrange(2, 12))
    wild = pose.with_rotations({i: random_rotation(rng) for i in range(len(skeleton))})
    base = rng.choice(skeleton.joints).name
    path = [skeleton.joints[i].name for i in skeleton.chain(base)][1:]
    other, _ = reroot(skeleton, pose, base)
    other_again, moved = reroot(skeleton, wild, base)
    assert other == other_again  # the new skeleton does not depend on the pose
    before, after = limits_by_joint(skeleton, wild), limits_by_joint(other, moved)
    root = skeleton.joints[skeleton.chain(base)[0]].name
    for joint in skeleton.joints:
        if joint.name == root:
            continue
        name = reversed_name(joint.name) if joint.name in path else joint.name
        assert after[name] == pytest.approx(before[joint.name], abs=FLOAT32), name
        same = other.joints[other.index(name)]
        assert (same.stiffness, same.max_step) == (joint.stiffness, joint.max_step)
        assert (same.comfort is None) == (joint.comfort is None)
        assert joint.comfort is None or same.comfort.tolerance == joint.comfort.tolerance


@pytest.mark.parametrize("seed", few_of(range(60), 15))
def test_rerooting_back_gives_the_original(seed):
    rng = random.Random(2000 + seed)
    skeleton, pose = random_tree(rng, rng.randrange(2, 12))
    base = rng.choice(skeleton.joints).name
    root = skeleton.joints[skeleton.chain(base)[0]].name
    other, moved = reroot(skeleton, pose, base)
    for _ in range(2):  # a detour over another bone of the same tree changes nothing
        names = [j.name for j in skeleton.joints if skeleton.joints[skeleton.chain(j.name)[0]].name == root]
        other, moved = reroot(other, moved, rng.choice(names))
    back, there = reroot(other, moved, root)
    assert {j.name for j in back.joints} == {j.name for j in skeleton.joints}
    for i, joint in enumerate(skeleton.joints):
        k = back.index(joint.name)
        same = back.joints[k]
        parent = skeleton.joints[joint.parent].name if joint.parent >= 0 else None
        assert parent == (back.joints[same.parent].name if same.parent >= 0 else None)
        assert (same.offset - joint.offset).length <= FLOAT32
        assert angle_between(same.rest_rotation, joint.rest_rotation) <= FLOAT32
        assert angle_between(there.rotations[k], pose.rotations[i]) <= FLOAT32
        assert (there.translations[k] - pose.translations[i]).length <= FLOAT32
        assert (same.length, same.mass) == (joint.length, joint.mass)
        if joint.name == root:
            assert same.limit is None and same.comfort is None and same.locked  # as the docstring says
            continue
        assert (same.stiffness, same.max_step) == (joint.stiffness, joint.max_step)
        assert type(same.limit) is type(joint.limit)
        for a, b in zip(same.slides, joint.slides, strict=True):
            assert (Vector(a.axis) - Vector(b.axis)).length <= FLOAT32
            assert (a.lower, a.upper) == (b.lower, b.upper)
        for _ in range(5):
            if joint.limit is None:
                break
            q = random_rotation(rng)
            assert violation(same.limit, q) == pytest.approx(violation(joint.limit, q), abs=FLOAT32)


@pytest.mark.parametrize("seed", few_of(range(60), 15))
def test_a_pose_hangs_back_on_the_original(seed):
    rng = random.Random(2500 + seed)
    skeleton, pose = random_tree(rng, rng.randrange(2, 12))
    base = rng.choice(skeleton.joints).name
    rerooted, there = reroot(skeleton, pose, base)
    same = restore_root(skeleton, rerooted, there)
    for i in range(len(skeleton)):
        assert angle_between(same.rotations[i], pose.rotations[i]) <= FLOAT32
        assert (same.translations[i] - pose.translations[i]).length <= 10 * FLOAT32
    turned = {
        i: joint.allowed(random_rotation(rng)) for i, joint in enumerate(rerooted.joints) if not joint.locked
    }
    moved = there.with_rotations(turned)
    back = restore_root(skeleton, rerooted, moved)
    assert_same_bones(bones(skeleton, back), bones(rerooted, moved), 20 * FLOAT32)


@pytest.mark.parametrize("seed", range(20))
def test_solving_keeps_the_new_base_and_moves_the_old_root(seed):
    """A chain hung up on its tip: the base stays, the old root's bone reaches a legal target, limits hold."""
    rng = random.Random(3000 + seed)
    skeleton = straight(6, SwingTwist(Cone(math.radians(80.0)), (-1.0, 1.0)))
    other, start = reroot(skeleton, legal_pose(skeleton, rng), "joint5")
    held = bones(other, start)["joint5"]
    legal = start.with_rotations(
        {i: sample(j.limit, rng) for i, j in enumerate(other.joints) if not j.locked}
    )
    goal = PositionGoal("joint0", bones(other, legal)["joint0"].translation, offset=(0.0, 0.0, 0.0))
    result = solve(other, start, [goal], SolverSettings(position_tolerance=SOLVE, max_iterations=1000))
    assert result.status is SolveStatus.CONVERGED
    now = bones(other, result.pose)["joint5"]
    assert now == held
    for joint, rotation in zip(other.joints, result.pose.rotations, strict=True):
        assert joint.limit is None or violation(joint.limit, rotation) <= FLOAT32
    # The same pose on the skeleton as it was: legal there too.
    back, there = reroot(other, result.pose, "joint0")
    for joint, rotation in zip(back.joints, there.rotations, strict=True):
        assert joint.limit is None or violation(joint.limit, rotation) <= FLOAT32


def test_a_reversed_slide_slides():
    """A telescope hung up on its inner tube: the outer one slides along it, as far as it could before."""
    slide = Slide((0.0, 1.0, 0.0), -0.5, 1.0)
    turned = Quaternion((1.0, 0.0, 0.0), 0.6)
    joints = [
        Joint("outer", length=2.0),
        Joint("inner", 0, (0.1, 1.0, 0.0), turned, 2.0, Hinge((0.0, 1.0, 0.0), -0.4, 0.4), slides=(slide,)),
        Joint("hand", 1, (0.0, 2.0, 0.0)),
    ]
    skeleton = Skeleton(joints)
    pose = Pose.rest(skeleton)
    other, start = reroot(skeleton, pose, "inner")
    # What the old skeleton can do: slide by 0.8 and turn by 0.3, seen from the inner tube.
    moved = Pose(
        (Quaternion(), Quaternion((0.0, 1.0, 0.0), 0.3), Quaternion()),
        (Vector(), Vector((0.0, 0.8, 0.0)), Vector()),
    )
    places = bones(skeleton, moved)
    seen = places["inner"].rotation.conjugated() @ (places["outer"].translation - places["inner"].translation)
    held = bones(other, start)["inner"]
    goal = PositionGoal("outer", held.point(seen), offset=(0.0, 0.0, 0.0))
    result = solve(other, start, [goal], SolverSettings(position_tolerance=SOLVE))
    assert result.status is SolveStatus.CONVERGED
    assert bones(other, result.pose)["inner"] == held
    back, there = reroot(other, result.pose, "outer")
    i = back.index("inner")
    assert there.translations[i].y == pytest.approx(0.8, abs=10 * SOLVE)
    assert abs(there.translations[i].x) + abs(there.translations[i].z) <= FLOAT32
    assert violation(back.joints[i].limit, there.rotations[i]) <= FLOAT32


def test_goals_mean_the_same_after_rerooting():
    """Names, effectors, poles and centre of mass are those of the bones, which have not changed."""
    rng = random.Random(5)
    skeleton, pose = random_tree(rng, 8)
    skeleton = skeleton.replace({"joint0": {"mass": 1.0}})
    deepest = max(skeleton.joints, key=lambda joint: len(skeleton.chain(joint.name)))
    other, moved = reroot(skeleton, pose, deepest.name)
    goals = [PositionGoal(j.name, (1.0, 2.0, 3.0)) for j in skeleton.joints]
    goals += [PositionGoal(j.name, (1.0, 2.0, 3.0), offset=(0.1, -0.2, 0.3)) for j in skeleton.joints]
    goals.append(BalanceGoal((0.0, 0.0, 0.0), (True, True, True)))
    before, after = forward_kinematics(skeleton, pose), forward_kinematics(other, moved)
    for goal in goals:
        here, there = measure(goal, skeleton, before), measure(goal, other, after)
        assert here.distance == pytest.approx(there.distance, abs=20 * EXACT)
    # A pole needs its root below in the hierarchy: after re-rooting the chain runs the other way.
    assert PoleGoal(deepest.name, "joint0", (1.0, 0.0, 0.0)).chain(other)


def test_branches_and_other_trees_hang_on():
    """A body with two legs and an arm, and a second tree: only the path to the foot is reversed."""
    joints = [
        Joint("pelvis", -1, (0.0, 0.0, 2.0)),
        Joint("leg.L", 0, (-0.3, 0.0, 0.0)),
        Joint("foot.L", 1, (0.0, 1.0, 0.0)),
        Joint("leg.R", 0, (0.3, 0.0, 0.0)),
        Joint("foot.R", 3, (0.0, 1.0, 0.0)),
        Joint("spine", 0, (0.0, 1.0, 0.0)),
        Joint("prop", -1, (5.0, 0.0, 0.0)),
    ]
    skeleton = Skeleton(joints)
    other, pose = reroot(skeleton, Pose.rest(skeleton), "foot.L")
    parents = {j.name: other.joints[j.parent].name if j.parent >= 0 else None for j in other.joints}
    assert parents == {
        "foot.L": None,
        "foot.L (reversed)": "foot.L",
        "leg.L": "foot.L (reversed)",
        "leg.L (reversed)": "leg.L",
        "pelvis": "leg.L (reversed)",
        "leg.R": "pelvis",
        "foot.R": "leg.R",
        "spine": "pelvis",
        "prop": None,
    }
    # From foot to foot the skeleton does not grow.
    swapped, _ = reroot(other, pose, "foot.R")
    assert len(swapped) == len(other)


def test_naming_the_root_only_locks_it():
    skeleton = straight(3, SwingTwist(Cone(1.0)))
    other, pose = reroot(skeleton, Pose.rest(skeleton), "joint0")
    assert [j.name for j in other.joints] == ["joint0", "joint1", "joint2"]
    assert other.joints[0].locked and other.joints[1:] == skeleton.joints[1:]
    free, _ = reroot(skeleton, Pose.rest(skeleton), "joint0", base_stiffness=0.25)
    assert free.joints[0].stiffness == 0.25
    assert pose == Pose.rest(skeleton)


def test_what_cannot_be_rerooted_is_refused():
    skeleton = straight(3)
    with pytest.raises(InvalidInput, match="no joint 'hand'"):
        reroot(skeleton, Pose.rest(skeleton), "hand")
    with pytest.raises(InvalidInput, match="pose is for 3"):
        reroot(straight(4), Pose.rest(skeleton), "joint1")
    with pytest.raises(InvalidInput, match="'joint1' does not inherit rotation"):
        reroot(skeleton.replace({"joint1": {"inherit_rotation": False}}), Pose.rest(skeleton), "joint2")
    taken = Skeleton([*skeleton.joints, Joint("joint2 (reversed)", 0)])
    with pytest.raises(InvalidInput, match="rename it"):
        reroot(taken, Pose.rest(taken), "joint2")


def test_a_branch_that_does_not_inherit_rotation_is_kept():
    rng = random.Random(8)
    skeleton = Skeleton([*straight(3).joints, Joint("hat", 0, (0.0, 0.5, 0.0), inherit_rotation=False)])
    pose = legal_pose(skeleton, rng)
    other, moved = reroot(skeleton, pose, "joint2")
    assert_same_bones(bones(skeleton, pose), bones(other, moved), 4 * EXACT)
