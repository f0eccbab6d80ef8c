"""A bake gives items throughout: in checks, keys, measures and the check of what plays, for each thing."""

from __future__ import annotations

import itertools
from collections import Counter

import bpy
import pytest
import rigs
from rigs import B, keyed, reach
from whole_file import differences, dump

CHAINS, BONES, FRAMES = 2, 3, 4


@pytest.fixture
def bake(ext, monkeypatch):
    """With an item for each piece of work, however short."""
    monkeypatch.setattr(ext.module("ccd_rig.solvers.motion"), "CHUNK_SECONDS", 0.0)
    return ext.module("ccd_rig.blender.bake.bake")


def limbs(chains, bones, frames):
    """Chains of bones on one armature, each with a target and a pole of its own."""
    bpy.ops.wm.read_homefile(use_empty=True)
    names = [(k, i) for k in range(chains) for i in range(bones)]
    rig = rigs.armature(
        [
            B(
                f"bone_{k}_{i}",
                (3.0 * k, 0.0, i),
                (3.0 * k, 0.0, i + 1),
                parent=f"bone_{k}_{i - 1}" if i else "",
            )
            for k, i in names
        ]
    )
    for k in range(chains):
        path = {1: (3.0 * k, 0.5, 0.7 * bones), frames: (3.0 * k, 0.9, 0.6 * bones)}
        target = keyed(rigs.empty(f"Goal {k}"), path)
        reach(rig, f"bone_{k}_{bones - 1}", target, rotation="ORIENTATION")
    return rig


def counted(bake, chains, bones, frames):
    """How many items come of each sort."""
    rig = limbs(chains, bones, frames)
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, frames))
    items = list(steps)
    assert all(0 <= item.done <= item.total for item in items)
    return Counter(item.verb for item in items)


def test_items_grow_with_what_there_is_to_do(bake):
    small = counted(bake, CHAINS, BONES, FRAMES)
    more_chains = counted(bake, 3 * CHAINS, BONES, FRAMES)
    more_bones = counted(bake, CHAINS, 3 * BONES, FRAMES)
    more_frames = counted(bake, CHAINS, BONES, 3 * FRAMES)
    rows, joints = 2 * CHAINS, 2 * CHAINS * BONES  # that the larger ones have more
    # Of each constraint and bone once or more: checks; keys made, F-curves made and written, read once more;
    # measured at full, as blended, as keyed, and as played.
    for verb, of_each_row, of_each_bone in (("prepared", 2, 1), ("keyed", 0, 6), ("measured", 4, 5)):
        assert more_chains[verb] - small[verb] >= of_each_row * rows + of_each_bone * joints, verb
        assert more_bones[verb] - small[verb] >= of_each_bone * joints, verb
    for verb in ("evaluated", "checked"):
        assert more_frames[verb] - small[verb] >= 2 * FRAMES, verb


@pytest.mark.parametrize(
    "destination",
    [
        "CURRENT_ACTION",
        pytest.param("NEW_ACTION", marks=pytest.mark.mass),
        pytest.param("NLA_STRIP", marks=pytest.mark.mass),
    ],
)
def test_closed_after_any_item_the_file_is_as_it_was(bake, destination):
    """Some bones have keys, others do not, so that keys are replaced, added and taken back."""
    rig = limbs(1, 2, 2)
    bone = rig.pose.bones["bone_0_1"]
    for frame in (1, 3, 9):
        bone.rotation_quaternion = (1.0, 0.02 * frame, 0.0, 0.0)
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    rigs.update()
    settings = bake.BakeSettings(1, 2, destination=bake.Destination[destination])
    before, verbs = dump(), set()
    for count in itertools.count(1):
        steps = bake.bake_steps(bpy.context.scene, rig, settings)
        items = [item.verb for item in itertools.islice(steps, count)]
        if len(items) < count:
            break
        verbs.update(items)
        steps.close()
        assert differences(before, dump()) == [], (count, items[-1])
    assert verbs == {"prepared", "evaluated", "solved", "keyed", "measured", "checked", "done"}
    assert count > 20 * 2  # bones
    assert differences(before, dump()) != []  # the last one went on to its end
