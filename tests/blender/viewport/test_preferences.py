"""The preferences: a key for Live, and what a user wants of new rigs."""

from __future__ import annotations

import dataclasses

import bpy
import pytest
import rigs
from operator_calls import set_up


@pytest.fixture
def chosen(ext):
    """What is chosen for new rigs; unset again after the test."""
    group = bpy.context.preferences.addons[ext.package].preferences.new_rigs
    yield group
    for name in ("bake", "solver", "figure", "max_extension"):
        group.property_unset(name)


def add(rig, bone):
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones[bone]
    assert bpy.ops.ccd_rig.constraint_add() == {"FINISHED"}
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig.ccd_rig.constraints[-1]


def test_nothing_is_set_unless_the_user_does(ext, chosen):
    rig = rigs.chain(4)
    add(rig, "bone_3")
    for group in (rig.ccd_rig.bake, rig.ccd_rig.solver):
        properties = [each.identifier for each in group.bl_rna.properties if not each.is_readonly]
        assert not [name for name in properties if group.is_property_set(name)]
    settings = ext.core.SolverSettings
    for field in dataclasses.fields(settings):
        if isinstance(field.default, int):
            assert getattr(chosen.solver, field.name) == field.default


def test_a_new_rig_gets_what_was_chosen_and_an_old_one_stays(ext, chosen):
    old, new = rigs.chain(4, name="Old"), rigs.chain(4, name="New")
    add(old, "bone_3")
    chosen.bake.step, chosen.bake.destination = 3, "NLA_STRIP"
    chosen.solver.max_iterations = 77
    chosen.max_extension = 0.5
    add(old, "bone_2")
    first = add(new, "bone_3")
    assert (old.ccd_rig.bake.step, old.ccd_rig.solver.max_iterations) != (3, 77)
    assert not old.ccd_rig.bake.is_property_set("step")
    assert (new.ccd_rig.bake.step, new.ccd_rig.bake.destination) == (3, "NLA_STRIP")
    assert new.ccd_rig.solver.max_iterations == 77
    assert not new.ccd_rig.solver.is_property_set("position_tolerance")
    assert first.max_extension == pytest.approx(0.5)
    assert [row.max_extension for row in old.ccd_rig.constraints] == pytest.approx([1.0, 0.5])


class Asked:
    """The properties of an operator that is called: what the call names is set."""

    def is_property_set(self, name):
        return name in vars(self)


def test_set_up_figure_starts_from_what_was_chosen_unless_asked(ext, chosen):
    """Its `invoke`, which a Blender without a window never runs, does this."""
    copy = ext.module("operators.constraints").copy_changed
    nothing, poles = Asked(), Asked()
    copy(chosen.figure, nothing)
    assert vars(nothing) == {}
    chosen.figure.poles, chosen.figure.ranges = False, "COMFORT"
    copy(chosen.figure, nothing)
    assert vars(nothing) == {"poles": False, "ranges": "COMFORT"}
    poles.poles = True
    copy(chosen.figure, poles)
    assert vars(poles) == {"poles": True, "ranges": "COMFORT"}
    properties = bpy.ops.ccd_rig.figure_set_up.get_rna_type().properties
    names = [each.identifier for each in chosen.figure.bl_rna.properties if not each.is_readonly]
    assert set(names) - {"name"} <= {each.identifier for each in properties}


def test_a_script_that_says_nothing_gets_the_defaults(ext, chosen):
    chosen.figure.poles = True
    rig = set_up(rigs.metarig("basic_human"))
    assert not any(row.pole_target for row in rig.ccd_rig.constraints)


def test_live_and_drag_have_an_entry_without_a_key_that_comes_and_goes(ext):
    configuration = bpy.context.window_manager.keyconfigs.addon
    if configuration is None:
        assert ext.module("viewport.preferences")._keymap_items == []
        return

    def entries(keymap, command):
        items = configuration.keymaps[keymap].keymap_items if keymap in configuration.keymaps else ()
        return [(item.type, item.value) for item in items if item.idname == command]

    commands = (("3D View", "ccd_rig.live"), ("Pose", "ccd_rig.drag"))
    assert [entries(*each) for each in commands] == [[("NONE", "PRESS")]] * 2
    bpy.ops.preferences.addon_disable(module=ext.package)
    assert [entries(*each) for each in commands] == [[]] * 2
    bpy.ops.preferences.addon_enable(module=ext.package)
    assert [entries(*each) for each in commands] == [[("NONE", "PRESS")]] * 2
