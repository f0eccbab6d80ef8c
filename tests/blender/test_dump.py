"""The dump of a file, by which tests see that nothing changed, sees every change."""

from __future__ import annotations

import bpy
import pytest
from sound_rig import hand, keyed_curve, limit, object_mode, sound_rig
from whole_file import differences, dump


@pytest.fixture
def rig(ext):
    return sound_rig(ext)


def change_pose(rig):
    rig.pose.bones["bone_3"].rotation_quaternion.x += 1e-6


def change_key(rig):
    keyed_curve(rig).keyframe_points[1].co.y += 1e-6


def change_handle(rig):
    keyed_curve(rig).keyframe_points[1].handle_left.y += 1e-6


def change_selection(rig):
    bpy.ops.pose.select_all(action="SELECT")


def change_frame(rig):
    bpy.context.scene.frame_set(3, subframe=0.5)


def change_mode(rig):
    object_mode()


def change_row(rig):
    hand(rig).weight = 2.0


def change_limit(rig):
    limit(rig, hinge_lower=-0.1)


def change_ids(rig):
    bpy.data.actions.new("Another")


def change_users(rig):
    rig.animation_data.action.use_fake_user = True


def change_target(rig):
    bpy.data.objects["Goal"].scale.x = 2.0


CHANGES = [
    change_pose,
    change_key,
    change_handle,
    change_selection,
    change_frame,
    change_mode,
    change_row,
    change_limit,
    change_ids,
    change_users,
    change_target,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_dump_sees_every_change(rig, change):
    before = dump()
    assert differences(before, dump()) == []
    change(rig)
    assert differences(before, dump()) != []
