"""Keys for actions and armatures that come from another file."""

from __future__ import annotations

import bpy
import pytest
from keyed import assert_keys_play, keys_for, link, make_armature, whole_state, write_keys


def test_linked_action(channels, writing, errors, library):
    armature_object = make_armature()
    action = link(library, "actions", "Stored")
    armature_object.animation_data_create().action = action
    if hasattr(action, "slots"):
        armature_object.animation_data.action_slot = action.slots[0]
    before = whole_state(armature_object)
    keys = keys_for(writing, [5, 15])
    with pytest.raises(errors.RigError, match=r"Action 'Stored' is linked from .*: choose New Action"):
        write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (5, 15), "Baked")
    assert whole_state(armature_object) == before
    written = write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (5, 15), "Baked")
    assert written.library is None
    assert written.name == "Baked"
    assert list(channels.present_keys(armature_object, ['lo"wer'])) == [0, 3, 4, 5, 15, 16, 20, 30]
    assert_keys_play(armature_object, keys)


def test_overridden_action(writing, errors, library):
    armature_object = make_armature()
    action = link(library, "actions", "Stored").override_create()
    assert action.override_library is not None
    armature_object.animation_data_create().action = action
    if hasattr(action, "slots"):
        armature_object.animation_data.action_slot = action.slots[0]
    keys = keys_for(writing, [5, 15])
    with pytest.raises(errors.RigError, match="Action 'Stored' is a library override"):
        write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (5, 15), "Baked")
    written = write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (5, 15), "Baked")
    assert written.override_library is None
    assert_keys_play(armature_object, keys)


def test_linked_armature(writing, errors, library):
    armature_object = link(library, "objects", "Rig")
    bpy.context.scene.collection.objects.link(armature_object)
    keys = keys_for(writing, [5, 15])
    with pytest.raises(errors.RigError, match=r"Armature 'Rig' is linked from .*library override"):
        write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (5, 15), "Baked")


def test_overridden_armature(writing, library):
    linked = link(library, "objects", "Rig")
    armature_object = linked.override_create(remap_local_usages=True)
    armature_object.override_library.is_system_override = False
    bpy.context.scene.collection.objects.link(armature_object)
    keys = keys_for(writing, [5, 15])
    write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (5, 15), "Baked")
    assert armature_object.animation_data.action.name == "Baked"
    assert_keys_play(armature_object, keys)
