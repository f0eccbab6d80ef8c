"""The live preview: what it does not do, and ends, because nothing needs it."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import pytest
import rigs
from shown import REACHED, off, shows, switch_live


@pytest.fixture
def pair(rig):
    """The rig, and another whose target is the bone before the rig's last; both are live."""
    bpy.ops.object.mode_set(mode="OBJECT")
    other = rigs.chain(4, name="Other")
    other.location.x = 2.0
    rigs.reach(other, "bone_3", rig, target_bone="bone_2")
    for each in (rig, other):
        rigs.activate(each)
        rigs.update()
        switch_live()
    return rig, other


class Blender:
    """Blender's module, but for what is named."""

    def __init__(self, **named):
        self.__dict__.update(named)

    def __getattr__(self, name):
        return getattr(bpy, name)


def test_nothing_is_added_while_clamps_are_suspended(rig, live, clamps):
    """A script switches Live on: no clamps are there yet that could be muted."""
    with clamps.suspended():
        rig.ccd_rig.live = True
        rigs.update()
        assert not [*clamps.clamps_of(rig)]
    rig.update_tag()
    rigs.update()
    assert off(rig) < REACHED


def test_views_are_drawn_again_when_the_words_of_their_panels_change(rig, live, monkeypatch):
    drawn = []
    kinds = ("VIEW_3D", "OUTLINER")
    areas = [SimpleNamespace(type=kind, tag_redraw=lambda kind=kind: drawn.append(kind)) for kind in kinds]
    window = SimpleNamespace(screen=SimpleNamespace(areas=areas))
    context = SimpleNamespace(window_manager=SimpleNamespace(windows=[window]))
    switch_live()
    target = rig.ccd_rig.constraints[0].target
    monkeypatch.setattr(live, "bpy", Blender(context=context))
    target.location.x -= 0.1
    rigs.update()
    assert drawn == []
    target.hide_viewport = True
    rig.update_tag()
    rigs.update()
    assert "hidden" in live.preview_of(rig).notes()[0]
    assert drawn == ["VIEW_3D"]


def test_a_second_evaluation_is_asked_for_only_where_clamps_have_moved(pair, live, monkeypatch):
    """It would be scheduled after each, for ever."""
    rig, _ = pair
    live.catch_up()
    scheduled = []
    monkeypatch.setattr(live, "_soon", scheduled.append)
    rig.update_tag()
    rigs.update()
    assert scheduled == []
    rig.ccd_rig.constraints[0].target.location.x -= 0.1
    rigs.update()
    assert scheduled == [live.catch_up]


def test_catching_up_ends_with_the_first_evaluation_that_changes_nothing(pair, live):
    rig, _ = pair
    rig.ccd_rig.constraints[0].target.location.x -= 0.1
    rigs.update()
    live.catch_up()
    live._late[bpy.context.scene.name] = bpy.context.view_layer.name
    evaluated = []

    def count(_scene, depsgraph):
        evaluated.append(depsgraph)

    bpy.app.handlers.depsgraph_update_post.append(count)
    try:
        live.catch_up()
    finally:
        bpy.app.handlers.depsgraph_update_post.remove(count)
    assert len(evaluated) == 1


def test_a_leader_that_no_constraint_moves_any_longer_is_followed(pair, live):
    """Without catching up, the follower is where the leader's bone was."""
    rig, other = pair
    rig.ccd_rig.constraints[0].influence = 0.0
    rigs.update()
    live.catch_up()
    assert (shows(other) - rig.matrix_world @ rig.pose.bones["bone_2"].head).length < REACHED


def test_an_undo_while_a_rig_is_hidden_leaves_nothing_known_of_it(rig, live):
    """Blender has freed objects of before: to read one may crash."""
    switch_live()
    bpy.ops.object.mode_set(mode="OBJECT")
    rig.hide_set(True)
    for x in (0.0, 1.0):
        rig.location.x = x
        rigs.update()
        bpy.ops.ed.undo_push(message="Moved")
    bpy.ops.ed.undo()
    rigs.update()
    again = bpy.data.objects["Rig"]
    assert again.location.x == 0.0
    assert live.preview_of(again).set_up is None
    again.hide_set(False)
    rigs.update()
    assert off(again) < REACHED
