"""Set Up Figure: keys along the motion that a figure has, and what its redo panel and dialog show."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import creatures
import pytest
import rigs
from figures_set_up import set_up
from mathutils import Matrix


def walking(frames=(4, 20)):
    """A human whose hips and hands have keys at frames, in a scene of 60 frames."""
    rig = rigs.metarig("basic_human")
    for frame, angle in zip(frames, (0.0, 0.4), strict=True):
        for name in ("spine", "upper_arm.L", "thigh.R"):
            bone = rig.pose.bones[name]
            bone.rotation_mode, bone.rotation_euler = "XYZ", (angle, 0.0, 0.0)
            bone.keyframe_insert("rotation_euler", frame=frame)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 60
    return rig


def keyed_frames(ext, thing):
    curves = ext.module("ccd_rig.blender.keys.channels").fcurves_of(thing)
    return sorted({point.co[0] for curve in curves for point in curve.keyframe_points})


def curves_of(ext, rig):
    return ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)


def test_targets_get_keys_where_the_motion_has_frames(ext):
    """A clip that is shorter than the scene left keys at all 250 frames of a new scene."""
    made = set_up(walking())
    for row in made.values():
        assert keyed_frames(ext, row.target) == [*range(4, 21)], row.name


def test_a_motion_that_goes_on_outside_its_keys_is_keyed_over_the_whole_range(ext):
    rig = walking()
    for curve in curves_of(ext, rig):
        curve.modifiers.new("CYCLES")
    made = set_up(rig)
    for row in made.values():
        assert keyed_frames(ext, row.target) == [*range(1, 61)], row.name


@pytest.mark.parametrize("frames", [(100, 120), (-5, 400)])
def test_a_motion_outside_or_beyond_the_scene_is_keyed_in_its_range(ext, frames):
    made = set_up(walking(frames))
    for row in made.values():
        assert keyed_frames(ext, row.target) == [*range(1, 61)], row.name


def test_a_bake_right_afterwards_changes_nothing_at_any_frame(ext):
    rig = walking()
    scene = bpy.context.scene

    def poses():
        result = []
        for frame in range(1, 61):
            scene.frame_set(frame)
            result.append([list(bone.matrix) for bone in rig.pose.bones])
        return result

    before = poses()
    set_up(rig)
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    for one, other in zip(before, poses(), strict=True):
        for a, b in zip(one, other, strict=True):
            for row, same in zip(a, b, strict=True):
                assert list(row) == pytest.approx(list(same), abs=1e-5)


def told(ext, rig):
    """What the command says, by level."""
    operator = ext.module("operators.set_up").CCD_RIG_OT_figure_set_up
    said = []
    tell = operator.tell
    operator.tell = lambda self, level, words: said.append((level, words))
    try:
        set_up(rig)
    finally:
        operator.tell = tell
    return said


def test_keys_along_the_motion_are_no_warning(ext):
    said = told(ext, walking())
    assert ("INFO", "Targets follow the motion at 17 frames") in said
    assert [words for level, words in said if level == "WARNING"] == [
        "'spine' keeps its animation and got no target"
    ]


class Drawn:
    """A layout that remembers which options are drawn."""

    def __init__(self):
        self.props, self.labels = [], []

    def column(self, **_):
        return self

    box = column

    def prop(self, _data, name, **_keywords):
        self.props.append(name)

    def label(self, text="", **_):
        self.labels.append(text)

    def template_list(self, *_arguments, **_keywords):
        pass


def options(ext, recognised):
    operator = ext.module("operators.set_up").CCD_RIG_OT_figure_set_up
    layout = Drawn()

    class Panel:
        asks, messages = False, "a word"
        _draw_roles = operator._draw_roles

    panel = Panel()
    panel.layout, panel.recognised = layout, recognised
    operator.draw(panel, bpy.context)
    return layout.props


def test_options_of_hands_and_feet_are_shown_for_figures_that_have_some(ext):
    rig = rigs.armature(creatures.dog())
    guess = ext.module("ccd_rig.blender.set_up").guess(rig)
    assert "hands" not in guess.groups
    assert "turn_hands" not in options(ext, guess.groups)
    assert {"poles", "plant", "follow_motion"} <= {*options(ext, guess.groups)}
    assert "plant" not in options(ext, ("head", "tail"))
    assert "turn_hands" in options(ext, ("hands", "head"))


@pytest.mark.parametrize("width", [400, 250])
def test_words_fill_the_redo_panel(ext, monkeypatch, width):
    """They were broken after 36 letters, at two thirds of the panel."""
    import blf

    command = ext.module("operators.command")
    monkeypatch.setattr(blf, "dimensions", lambda _font, text: (6.0 * len(text), 10.0))

    # Blender has no scale of its interface in the background.
    preferences = SimpleNamespace(
        system=SimpleNamespace(ui_scale=1.0), ui_styles=bpy.context.preferences.ui_styles
    )
    context = SimpleNamespace(region=SimpleNamespace(type="HUD", width=width), preferences=preferences)
    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    layout = Drawn()
    command.draw_lines(layout, context, words)
    room = width - command.MARGIN
    assert " ".join(layout.labels) == words
    longest = max(6.0 * len(line) for line in layout.labels)
    assert room - 6.0 * len(" thirteen") < longest <= room


@pytest.mark.parametrize(("side", "edge"), [(-0.5, 900.0), (0.5, 100.0)])
def test_a_dialog_stands_at_the_edge_of_the_view_beside_the_figure(ext, side, edge):
    """Blender puts a dialog so that its button OK is below the pointer: it stood over figures on the left."""
    module = ext.module("operators.set_up")
    rig = rigs.chain(2)
    rig.location.x = side
    rigs.update()
    region = SimpleNamespace(type="WINDOW", x=100, y=50, width=1100, height=600)
    view = SimpleNamespace(region_3d=SimpleNamespace(perspective_matrix=Matrix.Identity(4)))
    area = SimpleNamespace(type="VIEW_3D", regions=[region], spaces=SimpleNamespace(active=view))
    preferences = SimpleNamespace(system=SimpleNamespace(ui_scale=1.0))
    x, y = module._beside(SimpleNamespace(area=area, preferences=preferences), rig)
    width = ext.module("operators.command").DIALOG
    assert x == pytest.approx(edge + module.CONFIRM * width, abs=1.0)
    assert y == 350


@pytest.mark.parametrize(("height", "scale", "rows"), [(1000, 1.0, 10), (900, 1.5, 6), (600, 1.0, 6)])
def test_the_list_of_a_dialog_leaves_room_for_its_button(ext, height, scale, rows):
    """With an interface of scale 1.5 the button OK was below the end of a window of 900 pixels."""
    operator = ext.module("operators.set_up").CCD_RIG_OT_figure_set_up
    shown = []

    class Layout(Drawn):
        def template_list(self, *_arguments, rows=0, **_keywords):
            shown.append(rows)

    preferences = SimpleNamespace(
        system=SimpleNamespace(ui_scale=scale), ui_styles=bpy.context.preferences.ui_styles
    )
    context = SimpleNamespace(window=SimpleNamespace(height=height), preferences=preferences, region=None)
    operator._draw_roles(SimpleNamespace(asks=True, messages="a word"), Layout(), context)
    assert shown == [rows]
