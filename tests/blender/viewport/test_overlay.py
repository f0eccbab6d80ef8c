"""When the overlay shows something: its own switches, Blender's, and what cannot be seen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import bpy
import pytest
import rigs


@pytest.fixture
def rig(ext):
    rig = rigs.chain(3)
    row = ext.module("ccd_rig.blender.properties.constraint_list").add(rig, "Reach", "bone_2")
    row.target = rigs.empty("Target", (0.0, 0.0, 5.0))
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind = "CONE"
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones["bone_1"]
    rigs.update()
    return rig


@contextmanager
def in_view() -> Iterator[bpy.types.SpaceView3D]:
    """A 3D view of Blender's window, which there is without a screen as well."""
    window = bpy.context.window_manager.windows[0]
    area = window.screen.areas[0]
    area.type = "VIEW_3D"
    region = next(region for region in area.regions if region.type == "WINDOW")
    with bpy.context.temp_override(window=window, area=area, region=region):
        yield area.spaces.active


def is_empty(sketch) -> bool:
    return not (sketch.lines or sketch.faces or sketch.labels)


def rims(sketch) -> int:
    """How many cones are drawn: of each, faces all round."""
    return sum(len(corners) for corners in sketch.faces.values()) // (72 * 3)


def test_the_active_bones_limit_and_all_of_the_chain(ext, rig):
    overlay = ext.module("viewport.overlay")
    chosen = bpy.context.preferences.addons[ext.package].preferences
    with in_view():
        made = overlay.sketch(bpy.context)
        assert rims(made) == 1
        assert [label.words for label in made.labels] == ["2 m out of reach"]
        chosen.show_chain_limits = True
        try:
            assert rims(overlay.sketch(bpy.context)) == 3
        finally:
            chosen.show_chain_limits = False


def test_switches(ext, rig):
    overlay = ext.module("viewport.overlay")
    chosen = bpy.context.preferences.addons[ext.package].preferences
    with in_view() as space:
        for owner, switch in (
            (chosen, "show_overlay"),
            (space.overlay, "show_overlays"),
            (space.overlay, "show_bones"),
        ):
            assert not is_empty(overlay.sketch(bpy.context))
            setattr(owner, switch, False)
            assert is_empty(overlay.sketch(bpy.context)), switch
            setattr(owner, switch, True)


def test_what_cannot_be_seen_is_not_drawn(ext, rig):
    overlay = ext.module("viewport.overlay")
    with in_view():
        rig.hide_set(True)
        assert is_empty(overlay.sketch(bpy.context))
        rig.hide_set(False)
        rig.data.pose_position = "REST"
        assert is_empty(overlay.sketch(bpy.context))
        rig.data.pose_position = "POSE"
        hidden = rig.data.collections.new("Hidden")
        for bone in rig.data.bones:
            hidden.assign(bone)
        hidden.is_visible = False
        assert is_empty(overlay.sketch(bpy.context))


def test_a_target_shows_the_rig_that_reaches_for_it(ext, rig):
    bpy.ops.object.mode_set(mode="OBJECT")
    rigs.activate(bpy.data.objects["Target"])
    with in_view():
        made = ext.module("viewport.overlay").sketch(bpy.context)
    assert made.labels and rims(made) == 0


@pytest.mark.parametrize(("system", "words"), [("METRIC", "2 m"), ("IMPERIAL", "6.56'"), ("NONE", "2")])
def test_gaps_are_in_the_scenes_units(ext, rig, system, words):
    bpy.context.scene.unit_settings.system = system
    with in_view():
        (label,) = ext.module("viewport.overlay").sketch(bpy.context).labels
    assert label.words == f"{words} out of reach"


def test_handles_belong_to_what_is_shown(ext, rig):
    module = ext.module("viewport.limit_handles")
    with in_view() as space:
        assert [handle.field for handle in module._handles(bpy.context)] == ["cone_radius"]
        assert module.CCD_RIG_GGT_limit.poll(bpy.context)
        space.overlay.show_bones = False
        assert not module.CCD_RIG_GGT_limit.poll(bpy.context)
        space.overlay.show_bones = True
        rig.pose.bones["bone_1"].ccd_rig.limit.kind = "NONE"
        assert not module.CCD_RIG_GGT_limit.poll(bpy.context)


def test_colours_are_the_users(ext, rig):
    overlay = ext.module("viewport.overlay")
    chosen = bpy.context.preferences.addons[ext.package].preferences
    mine = (0.125, 0.25, 0.5)
    for name in ("limit", "chain", "warning"):
        setattr(chosen, f"{name}_colour", mine)
    try:
        with in_view():
            made = overlay.sketch(bpy.context)
    finally:
        for name in ("limit", "chain", "warning"):
            chosen.property_unset(f"{name}_colour")
    assert {colour[:3] for colour, _ in made.lines} == {mine, (1.0, 1.0, 1.0)}
    assert {label.colour[:3] for label in made.labels} == {mine}


def test_live_says_how_far_limits_keep_a_bone_off_its_target(ext, rig):
    """Near enough for the chain, but not inside cones of 10 degrees: said of each pose that is shown."""
    overlay = ext.module("viewport.overlay")
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.cone_radius = 0.17
    target = bpy.data.objects["Target"]
    target.location = (2.0, 0.0, 1.0)
    rigs.update()
    with in_view():
        assert overlay.sketch(bpy.context).labels == []
        bpy.ops.ccd_rig.live()
        rigs.update()
        (label,) = overlay.sketch(bpy.context).labels
        evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        distance = (evaluated.pose.bones["bone_2"].tail - target.location).length
        assert label.words == f"{distance:.3g} m off"
        target.location = (0.2, 0.0, 2.985)
        rigs.update()
        assert overlay.sketch(bpy.context).labels == []
        bpy.ops.ccd_rig.live()
