"""Contacts found by the buttons: keys, markers, one root bone, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import numpy as np
import pytest
import rigs
import walks
from mathutils import Vector
from walks import select

FEET = ("toe.L", "toe.R")


def curve_of(ext, rig, name):
    """The F-curve of a constraint's influence."""
    path = f"{rig.ccd_rig.constraints[name].path_from_id()}.influence"
    curves = ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)
    return next(each for each in curves if each.data_path == path)


def influence(ext, rig, name, frames):
    """(F,) of a constraint, by its F-curve."""
    curve = curve_of(ext, rig, name)
    return np.array([curve.evaluate(frame) for frame in frames])


def keys_of(ext, rig, name):
    """Frame, value and interpolation of each key of a constraint's influence."""
    points = curve_of(ext, rig, name).keyframe_points
    return [(*point.co, point.interpolation) for point in points]


def state(ext, rig):
    """Rows, keys and markers, to see that nothing has changed."""
    rows = [(r.name, r.kind, r.tip, r.chain_length, r.influence) for r in rig.ccd_rig.constraints]
    curves = ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)
    keys = [(c.data_path, c.array_index, len(c.keyframe_points)) for c in curves]
    return rows, keys, [(m.name, m.frame) for m in bpy.context.scene.timeline_markers], rig.ccd_rig.body


@pytest.mark.parametrize("in_place", [True, False])
def test_plant_selected_feet(ext, in_place):
    rig = walks.walk(ext, 2, in_place)
    frames = range(1, 2 * walks.PERIOD + 2)
    select(ext, rig, *FEET)
    assert bpy.ops.ccd_rig.feet_plant() == {"FINISHED"}
    assert rig.ccd_rig.body == ("WALK_ON" if in_place else "AUTO")
    for row in rig.ccd_rig.constraints:
        chain = [rig.pose.bones[row.tip], *rig.pose.bones[row.tip].parent_recursive]
        assert chain[: row.chain_length or None][-1].name == "hips"
        assert (row.plant_ground, row.plant_height, row.plant_rotation) == (True, False, False)
        values = influence(ext, rig, row.name, frames)
        stands = np.array([walks.down(row.tip[-1], frame) for frame in frames])
        assert set(values) == {0.0, 1.0}
        assert (values == stands).mean() > 0.85
        # The ball touches down as the foot becomes flat, and leaves with the heel still in the air.
        assert values[[not s for s in stands]].mean() < 0.25


def test_keys_are_constant_and_markers_stand_where_bones_come_down(ext):
    rig = walks.walk(ext, 2)
    select(ext, rig, *FEET)
    bpy.ops.ccd_rig.feet_plant()
    scene = bpy.context.scene
    once = sorted((m.name, m.frame) for m in scene.timeline_markers)
    assert {name for name, _ in once} == {"toe.L down", "toe.L up", "toe.R down", "toe.R up"}
    keys = keys_of(ext, rig, "toe.R")
    assert {interpolation for _, _, interpolation in keys} == {"CONSTANT"}
    downs = [frame for name, frame in once if name == "toe.R down"]
    # What comes into force stays where the frame before has it.
    assert [frame for frame, value, _ in keys if value == 1.0] == [f + (f > 1) for f in downs]
    other = scene.timeline_markers.new("Jump", frame=5)
    assert bpy.ops.ccd_rig.contacts_find() == {"FINISHED"}
    assert keys_of(ext, rig, "toe.R") == keys
    scene.timeline_markers.remove(other)
    assert sorted((m.name, m.frame) for m in scene.timeline_markers) == once


def test_contacts_of_a_part_of_the_range_leave_the_other_keys(ext):
    rig = walks.walk(ext, 3)
    select(ext, rig, *FEET)
    bpy.ops.ccd_rig.feet_plant()
    frames = np.arange(1, 3 * walks.PERIOD + 2)
    before = influence(ext, rig, "toe.L", frames)
    part = (frames >= 20) & (frames <= 50)
    with pytest.raises(RuntimeError, match="frames 20 to 50"):
        bpy.ops.ccd_rig.contacts_find(frame_start=20, frame_end=50, speed=0.001, ground="STILL")
    assert (influence(ext, rig, "toe.L", frames) == before).all()
    assert bpy.ops.ccd_rig.contacts_find(frame_start=20, frame_end=50, height=0.02) == {"FINISHED"}
    after = influence(ext, rig, "toe.L", frames)
    assert (after[~part] == before[~part]).all()
    assert after[part].sum() < before[part].sum()


@pytest.mark.parametrize("interpolation", ["CONSTANT", "LINEAR"])
def test_keys_beside_the_range_keep_the_animation_there(ext, interpolation):
    """One key alone follows the range, or goes before it."""
    rig = walks.walk(ext, 3)
    select(ext, rig, *FEET)
    bpy.ops.ccd_rig.feet_plant()
    row = rig.ccd_rig.constraints["toe.L"]
    for frame, *_ in keys_of(ext, rig, "toe.L"):
        row.keyframe_delete("influence", frame=frame)
    for frame, value in ((1, 0.0), (30, 1.0), (70, 0.25)):
        row.influence = value
        row.keyframe_insert("influence", frame=frame)
    for point in curve_of(ext, rig, "toe.L").keyframe_points:
        point.interpolation = interpolation
    frames = np.arange(-5.0, 80.0, 0.25)
    beside = (frames <= 19.0) | (frames >= 51.0)
    before = influence(ext, rig, "toe.L", frames)
    assert bpy.ops.ccd_rig.contacts_find(frame_start=20, frame_end=50) == {"FINISHED"}
    after = influence(ext, rig, "toe.L", frames)
    assert after[beside] == pytest.approx(before[beside], abs=1e-6)


@pytest.mark.parametrize("new", [50, 200])
def test_contacts_play_when_they_are_told_with_remapped_time(ext, new):
    rig = walks.walk(ext, 4)
    scene = bpy.context.scene
    scene.render.frame_map_old, scene.render.frame_map_new = 100, new
    scene.frame_end = round((scene.frame_end - 1) * new / 100) + 1
    select(ext, rig, *FEET)
    assert bpy.ops.ccd_rig.feet_plant() == {"FINISHED"}
    downs = {m.frame for m in scene.timeline_markers if m.name == "toe.L down"}
    ups = {m.frame for m in scene.timeline_markers if m.name == "toe.L up"}
    shown = []
    for frame in range(1, scene.frame_end + 1):
        scene.frame_set(frame)
        shown.append(rig.ccd_rig.constraints["toe.L"].influence)
    changes = np.flatnonzero(np.diff([0.0, *shown])) + 1
    # What comes into force stays where the frame before has it.
    told = sorted({each + (each > 1) for each in downs} | ups)
    assert changes.tolist() == told and len(downs) >= 2


def test_contacts_are_of_the_motion_without_a_live_preview(ext):
    rig = walks.walk(ext, 2)
    select(ext, rig, *FEET)
    bpy.ops.ccd_rig.feet_plant()
    wanted = keys_of(ext, rig, "toe.R")
    rigs.reach(rig, "foot.R", rigs.empty("Held", (0.1, -0.4, 0.3)), "Held", chain_length=3)
    live = ext.module("ccd_rig.blender.live")
    live.switch(rig, True)
    bpy.context.view_layer.update()
    assert any(len(bone.constraints) for bone in rig.pose.bones)
    assert bpy.ops.ccd_rig.contacts_find() == {"FINISHED"}
    assert keys_of(ext, rig, "toe.R") == wanted
    live.switch(rig, False)


def test_rows_that_bones_have_are_switched_with_one_root_bone_for_all(ext):
    rig = walks.walk(ext)
    target = rigs.empty("Target")
    for tip, kind, length in (("toe.L", "REACH", 3), ("toe.R", "PLANT", 2), ("heel.R", "PLANT", 3)):
        row = rig.ccd_rig.constraints.add()
        row.name, row.tip, row.kind, row.chain_length = f"Row {tip}", tip, kind, length
        if kind == "REACH":
            row.target = target
    select(ext, rig, "toe.L", "toe.R")
    assert bpy.ops.ccd_rig.feet_plant() == {"FINISHED"}
    rows = rig.ccd_rig.constraints
    assert [row.name for row in rows] == ["Row toe.L", "Row toe.R", "Row heel.R"]
    for row in rows:
        chain = [rig.pose.bones[row.tip], *rig.pose.bones[row.tip].parent_recursive]
        assert (row.kind, chain[: row.chain_length or None][-1].name) == ("PLANT", "hips")
    assert rows[0].target is None
    assert rows[1].plant_height  # it was planted as a whole, and stays so


@pytest.mark.parametrize(("given", "held"), [({}, True), ({"hold_height": False}, False)])
def test_feet_that_never_step_keep_their_height_unless_told_otherwise(ext, given, held):
    """Hips that sink take feet along: no foot rests, and all would go into the ground."""
    rig = walks.walk(ext)
    rig.animation_data_clear()
    hips = rig.pose.bones["hips"]
    sink = hips.bone.matrix_local.to_3x3().inverted() @ Vector((0.0, 0.0, -0.2))
    for frame, place in ((1, (0.0, 0.0, 0.0)), (12, sink)):
        hips.location = place
        hips.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_end = 12
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.kind, row.plant_height = "Before", "toe.R", "PLANT", False
    select(ext, rig, "toe.L", "toe.R")
    assert bpy.ops.ccd_rig.feet_plant(**given) == {"FINISHED"}
    heights = {row.tip: row.plant_height for row in rig.ccd_rig.constraints}
    assert heights == {"toe.L": held, "toe.R": False}, "what was planted before stays as it was"


def test_nothing_selected_is_said(ext):
    rig = walks.walk(ext)
    select(ext, rig)
    with pytest.raises(RuntimeError, match="poll"):
        bpy.ops.ccd_rig.feet_plant()
    with pytest.raises(RuntimeError, match="poll"):
        bpy.ops.ccd_rig.contacts_find()


def driver(rig):
    rig.driver_add("ccd_rig.constraints[0].influence").driver.expression = "1"


def locked(rig):
    rig.ccd_rig.constraints[0].keyframe_insert("influence", frame=1)
    bag = getattr(rig.animation_data.action, "fcurves", None)
    if bag is None:
        bag = rig.animation_data.action.layers[0].strips[0].channelbags[0].fcurves
    next(c for c in bag if c.data_path.endswith("influence")).lock = True


def renamed(rig):
    rig.ccd_rig.constraints[0].tip = "paw"


def short(rig):
    rig.ccd_rig.constraints[0].chain_length = 1


@pytest.mark.parametrize(
    ("spoil", "options", "words"),
    [
        (driver, {}, "'toe.L': Influence has a driver"),
        (locked, {}, "'toe.L': Influence has a locked F-curve"),
        (renamed, {}, "'paw' is not in armature"),
        (short, {}, "no leg hangs"),
        (None, {"frame_start": 10, "frame_end": 11}, "2 frames"),
        (None, {"frame_start": 20, "frame_end": 3}, "frames"),
        (None, {"speed": 0.001, "ground": "STILL"}, "raise Speed or Height"),
    ],
)
def test_what_cannot_be_keyed_changes_nothing(ext, spoil, options, words):
    rig = walks.walk(ext)
    for tip in FEET:
        row = rig.ccd_rig.constraints.add()
        row.name, row.tip, row.kind, row.chain_length = tip, tip, "PLANT", 5
    if spoil is not None:
        spoil(rig)
    rigs.update()
    before = state(ext, rig)
    with pytest.raises(RuntimeError, match=words):
        bpy.ops.ccd_rig.contacts_find(**options)
    assert state(ext, rig) == before


def test_feet_of_two_figures_in_one_armature_are_refused(ext):
    rig = rigs.armature(
        [
            rigs.B(f"{name}{part}", (x, 0, 1 - part), (x, 0, 0.2 - part), f"{name}{part - 1}" if part else "")
            for x, name in ((0, "a"), (2, "b"))
            for part in range(3)
        ]
    )
    select(ext, rig, "a2", "b2")
    before = state(ext, rig)
    with pytest.raises(RuntimeError, match="No bone carries 'a2', 'b2'"):
        bpy.ops.ccd_rig.feet_plant()
    assert state(ext, rig) == before


def test_a_refusal_names_some_of_the_selected_feet(ext):
    rig = rigs.chain(9)
    select(ext, rig, *rig.pose.bones.keys())
    with pytest.raises(RuntimeError, match="No bone carries 'bone_0', 'bone_1', 'bone_2' and 6 more: select"):
        bpy.ops.ccd_rig.feet_plant()


def test_a_foot_is_held_against_the_nearest_other_one(ext):
    """A horse stands with its front feet on a bank: the left one is lifted, or not, beside the right one.

    Heel and ball of the left one are one foot, and the hind feet are too far away to count.
    """
    module = ext.module("ccd_rig.blender.scene.contact_search")
    thresholds = ext.module("ccd_rig.motion.contacts").ContactThresholds()
    times = np.arange(120) / 24.0
    places = {"ball": (0.1, 0.0), "heel": (0.1, 0.1), "right": (-0.1, 0.0), "hind": (0.1, 1.5)}
    heads = {name: np.tile((*at, 0.0), (120, 1)) for name, at in places.items()}
    up = np.interp(times, [0.5, 0.9, 1.1, 3.5, 3.7, 4.0], [0.0, 0.7, 0.5, 0.5, 0.7, 0.0])
    for name in ("ball", "heel"):
        heads[name][:, 2] = up
    heads["ball"][30:70, 0] += 0.1  # it may turn
    motion = module.FootMotion(range(1, 121), times, heads, 1.0)
    assert 60 not in _frames(motion.phases("heel", np.zeros(3), thresholds))
    heads["right"][:, 2] = 0.5
    heads["right"][:, 0] -= 0.5
    assert 60 in _frames(motion.phases("heel", np.zeros(3), thresholds))
    assert {1, 115} <= _frames(motion.phases("heel", np.zeros(3), thresholds))


def _frames(phases):
    return {frame for first, last in phases for frame in range(first, last + 1)}


def test_undo_takes_all_of_it_back(ext):
    rig = walks.walk(ext)
    select(ext, rig, *FEET)
    name, before = rig.name, state(ext, rig)
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.ccd_rig.feet_plant("EXEC_DEFAULT", True)
    bpy.ops.ed.undo()
    assert state(ext, bpy.data.objects[name]) == before


class Layout:
    """A layout that keeps what is drawn on it."""

    def __init__(self):
        self.labels, self.fields = [], []

    def box(self, **_):
        return self

    column = box

    def label(self, text="", **_):
        self.labels.append(text)

    def prop(self, operator, field, **_):
        assert field in operator.fields
        self.fields.append(field)


@pytest.mark.parametrize("name", ["feet_plant", "contacts_find"])
def test_the_redo_panel_shows_thresholds_and_ranges(ext, name):
    operator = getattr(ext.module("operators.constraints"), f"CCD_RIG_OT_{name}")
    layout = Layout()
    drawn = SimpleNamespace(
        layout=layout,
        results="toe.L: 1-15\ntoe.R: no contact",
        fields={name for base in operator.__mro__ for name in getattr(base, "__annotations__", ())},
    )
    drawn.draw_thresholds = lambda context: operator.draw_thresholds(drawn, context)
    # Blender has no scale of its interface in the background.
    preferences = SimpleNamespace(
        system=SimpleNamespace(ui_scale=1.0), ui_styles=bpy.context.preferences.ui_styles
    )
    operator.draw(drawn, SimpleNamespace(region=None, preferences=preferences))
    assert layout.labels == ["toe.L: 1-15", "toe.R: no contact"]
    assert {"speed", "height", "release", "shortest", "ground", "walk_on", "markers"} <= set(layout.fields)


def test_a_search_without_contacts_is_not_remembered_as_a_choice(ext):
    """Hold Height is on for that search alone, and not for each one after it."""
    rig = walks.walk(ext, 2)
    scene, last = bpy.context.scene, bpy.context.scene.frame_end
    scene.frame_end = 2
    select(ext, rig, *FEET)
    assert bpy.ops.ccd_rig.feet_plant("INVOKE_DEFAULT", True) == {"FINISHED"}
    assert all(row.plant_height for row in rig.ccd_rig.constraints)
    while len(rig.ccd_rig.constraints):
        bpy.ops.ccd_rig.constraint_remove()
    scene.frame_end = last
    select(ext, rig, *FEET)
    assert bpy.ops.ccd_rig.feet_plant("INVOKE_DEFAULT", True) == {"FINISHED"}
    assert not any(row.plant_height for row in rig.ccd_rig.constraints)


def test_no_keys_are_written_while_a_strip_is_tweaked(ext, channels):
    """Blender would put them at the times of the strip's action."""
    rig = walks.walk(ext, 2)
    data = rig.animation_data
    action, slot, track = data.action, getattr(data, "action_slot", None), data.nla_tracks.new()
    data.action = None
    strip = track.strips.new("walk", 101, action)
    if slot is not None:
        strip.action_slot = slot
    track.select = strip.select = True
    data.nla_tracks.active = track
    data.use_tweak_mode = True
    assert data.use_tweak_mode
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 101, 140
    select(ext, rig, *FEET)
    bpy.ops.ccd_rig.feet_plant(speed=2.0, height=1.0)
    with pytest.raises(RuntimeError, match="an NLA strip is being tweaked: leave tweak mode"):
        bpy.ops.ccd_rig.contacts_find(speed=2.0, height=1.0)
    curves = channels.fcurves_of(rig)
    assert not any("influence" in curve.data_path for curve in curves)
