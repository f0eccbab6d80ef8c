"""Pose library entries: what they take, what they change, and their way through JSON."""

from __future__ import annotations

import json
import random

import pytest
from chains import entry_from_pose, legal_pose, random_rotation, random_skeleton, straight
from mathutils import Quaternion

from ccd_rig.errors import InvalidInput
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.skeleton.pose_library import PoseEntry, apply_entry, from_json, to_json


def test_entry_gives_its_pose_back() -> None:
    rng = random.Random(1)
    skeleton = random_skeleton(rng, 6)
    pose = legal_pose(skeleton, rng)
    entry = entry_from_pose("reach", skeleton, pose)
    assert apply_entry(entry, skeleton, Pose.rest(skeleton)).rotations == pose.rotations


def test_joints_that_an_entry_does_not_know_stay() -> None:
    rng = random.Random(2)
    skeleton = straight(4)
    pose = Pose(tuple(random_rotation(rng) for _ in range(4)), Pose.rest(skeleton).translations)
    turn = random_rotation(rng)
    entry = PoseEntry("elbow", {"joint1": turn, "other": random_rotation(rng)})
    found = apply_entry(entry, skeleton, pose)
    assert found.rotations[1] == turn
    assert [found.rotations[i] for i in (0, 2, 3)] == [pose.rotations[i] for i in (0, 2, 3)]
    assert found.translations == pose.translations


def test_entry_for_other_bones_is_refused() -> None:
    entry = PoseEntry("wave", {"arm.L": Quaternion(), "hand.L": Quaternion()})
    with pytest.raises(InvalidInput, match=r"'wave'.*arm\.L, hand\.L.*joint0, joint1"):
        apply_entry(entry, straight(2), Pose.rest(straight(2)))


def test_entry_cannot_be_changed() -> None:
    rotations = {"a": Quaternion()}
    entry = PoseEntry("p", rotations)
    rotations["b"] = Quaternion()
    assert list(entry.rotations) == ["a"]
    with pytest.raises(TypeError):
        entry.rotations["a"] = Quaternion()  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "rotations", "message"),
    [
        ("", {"a": Quaternion()}, "name"),
        ("p", {}, "'p'.*at least one bone"),
        ("p", {"a": (1.0, 1.0, 0.0, 0.0)}, "'p'.*bone 'a'.*unit"),
        ("p", {"a": (float("nan"), 0.0, 0.0, 0.0)}, "'p'.*bone 'a'.*finite"),
        ("p", {"": Quaternion()}, "'p'.*bone's name"),
    ],
)
def test_bad_entries_are_refused(name: str, rotations: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        PoseEntry(name, rotations)  # type: ignore[arg-type]


def test_json_keeps_every_bit() -> None:
    rng = random.Random(3)
    skeleton = Skeleton([Joint("Ünter", -1), Joint('quote"d', 0)])
    entries = tuple(
        entry_from_pose(
            f"pose {i}",
            skeleton,
            Pose((random_rotation(rng), random_rotation(rng)), Pose.rest(skeleton).translations),
        )
        for i in range(20)
    )
    back = from_json(to_json(entries))
    assert [entry.name for entry in back] == [entry.name for entry in entries]
    assert [dict(entry.rotations) for entry in back] == [dict(entry.rotations) for entry in entries]
    assert from_json(to_json(())) == ()


GOOD = {"format": "ccd_rig.poses", "version": 1, "poses": [{"name": "p", "rotations": {"a": [1, 0, 0, 0]}}]}


def changed(**fields: object) -> str:
    return json.dumps({**GOOD, **fields})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "must be an object with fields"),
        ("{}", "'format' must be .* not null"),
        (changed(format="blend"), "'format' must be .*blend"),
        (changed(version=2), "'version' is 2"),
        (changed(version=True), "'version' is true"),
        (changed(version="1"), "'version' is \"1\""),
        (changed(poses={}), "poses must be a list"),
        (changed(poses=[1]), r"poses\[0\] must be an object"),
        (changed(poses=[{"rotations": {}}]), r"poses\[0\]: the field 'name'"),
        (changed(poses=[{"name": "p", "rotations": []}]), r"poses\[0\]\.rotations must be an object"),
        (
            changed(poses=[{"name": "p", "rotations": {"a": [1, 0, 0]}}]),
            r"poses\[0\]\.rotations\['a'\] must be a list of 4",
        ),
        (
            changed(poses=[{"name": "p", "rotations": {"a": [1, 0, 0, None]}}]),
            r"poses\[0\]\.rotations\['a'\]",
        ),
        (
            changed(poses=[{"name": "p", "rotations": {"a": [2, 0, 0, 0]}}]),
            r"poses\[0\]\.rotations\['a'\].*unit",
        ),
        (
            changed(poses=[{"name": "p", "rotations": {"a": [10**400, 0, 0, 0]}}]),
            "a number has too many digits",
        ),
        (changed(poses=[{"name": "p", "rotations": {}}]), "'p'.*at least one bone"),
    ],
)
def test_bad_json_is_refused_by_field(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        from_json(text)


def test_json_that_is_good_is_read() -> None:
    (entry,) = from_json(json.dumps(GOOD))
    assert entry.name == "p" and entry.rotations["a"] == Quaternion()
