"""A skeleton some of whose joints stand elsewhere is the same as one that is made so."""

from __future__ import annotations

from mathutils import Quaternion, Vector

from ccd_rig.skeleton.joints import Joint, Skeleton

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
