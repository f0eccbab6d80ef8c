"""A skeleton some of whose joints stand elsewhere is the same as one that is made so."""

from __future__ import annotations

import pytest
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import PoleGoal, PositionGoal
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import solve

PLACES = {
    j: (Vector((0.1 * j, 2.0, -1.0)).freeze(), Quaternion((0.6, 0.0, 0.8, 0.0)).freeze()) for j in range(3)
}


def legs() -> Skeleton:
    """Two roots with a child each."""
    return Skeleton([Joint("hip"), Joint("shin", 0), Joint("arm", stiffness=1.0), Joint("hand", 2)])


def test_moved_joints_are_those_of_a_skeleton_made_anew() -> None:
    moved = legs().moved({0: PLACES[0]}).moved({2: PLACES[2]})
    fields = {
        name: dict(zip(("offset", "rest_rotation"), PLACES[j], strict=True))
        for j, name in ((0, "hip"), (2, "arm"))
    }
    anew = legs().replace(fields)
    assert moved == anew and hash(moved) == hash(anew) and moved != legs()
    assert len(moved) == 4 and moved.locked == {2} and moved.chain("hand") == (2, 3)
    assert repr(moved) == repr(anew)


def test_a_part_and_one_with_masses_have_roots_where_these_are_now() -> None:
    whole, joints, masses = legs(), [2, 3], [1.0, 0.0, 2.0, 3.0]
    for place in (PLACES[1], PLACES[2]):  # the second comes from what the first has left
        moved = whole.moved({2: place})
        anew = legs().replace({"arm": dict(zip(("offset", "rest_rotation"), place, strict=True))})
        assert moved.part(joints) == anew.part(joints) != whole.part(joints)
        assert moved.part(joints).shape is whole.part(joints)
        assert moved.part([0, 1]) is whole.part([0, 1])
        massed = {joint.name: {"mass": mass} for joint, mass in zip(anew.joints, masses, strict=True)}
        assert moved.with_masses(masses) == anew.replace(massed)


def test_only_roots_move() -> None:
    with pytest.raises(InvalidInput, match="'shin' has a parent"):
        legs().moved({1: PLACES[1]})


@pytest.mark.parametrize("inherits", [True, False])
def test_a_moved_skeleton_solves_the_same_whichever_was_solved_before(inherits: bool) -> None:
    """Where the shin keeps its direction, another rest of the hip bends the leg to another side at rest."""

    def leg() -> Skeleton:
        aside = Quaternion((0.9, 0.1, 0.0, 0.3)).normalized()
        shin = Joint("shin", 0, (0.0, 1.0, 0.0), aside, inherit_rotation=inherits)
        return Skeleton([Joint("hip"), shin, Joint("foot", 1, (0.0, 1.0, 0.0))])

    goals = [PositionGoal("shin", (0.3, 1.9, 0.2)), PoleGoal("hip", "shin", (3.0, 0.0, 1.0))]
    place = {0: (Vector((0.0, 0.0, 0.0)).freeze(), Quaternion((0.2, 0.6, 0.5, 0.6)).normalized().freeze())}
    both, alone = leg(), leg().moved(place)
    solve(both, Pose.rest(both), goals)
    after, cold = (solve(each, Pose.rest(each), goals) for each in (both.moved(place), alone))
    assert after == cold
