"""What the overlay is to draw, before any graphics card: needles, lines to targets, gaps, planted bones."""

from __future__ import annotations

import math
from itertools import pairwise

import bpy
import pytest
import rigs
from mathutils import Quaternion, Vector

FLOAT32 = 1e-4


@pytest.fixture
def rig(ext):
    return rigs.chain(3)


def reach_row(ext, rig, place, tip="bone_2"):
    row = ext.module("ccd_rig.blender.properties.constraint_list").add(rig, "Reach", tip)
    row.target = rigs.empty("Target", place)
    rigs.update()
    return row


def reach_of(ext, rig, row):
    return ext.module("ccd_rig.blender.viewport.constraints").reach_of(rig, row)


def test_a_line_goes_from_the_tip_to_the_target(ext, rig):
    row = reach_row(ext, rig, (1.0, 0.0, 1.0))
    reach = reach_of(ext, rig, row)
    assert (reach.end - Vector((0, 0, 3))).length < FLOAT32
    assert (reach.target - Vector((1, 0, 1))).length < FLOAT32
    assert reach.gap == 0.0
    row.use_tail, row.effector_offset, row.offset = False, (0.0, 0.25, 0.0), (0.5, 0.0, 0.0)
    reach = reach_of(ext, rig, row)
    assert (reach.end - Vector((0, 0, 2.25))).length < FLOAT32
    assert (reach.target - Vector((1.5, 0, 1))).length < FLOAT32
    row.use_position = False
    assert reach_of(ext, rig, row) is None
    row.use_position, row.target = True, None
    assert reach_of(ext, rig, row) is None


@pytest.mark.parametrize("place", [math.nan, math.inf, 1e30])
def test_a_target_that_is_nowhere_does_not_stop_the_drawing(ext, rig, place):
    row = reach_row(ext, rig, (place, 0.0, 0.0))
    assert reach_of(ext, rig, row) is None
    sketched_rows(ext, rig)


def test_a_bone_of_another_armature_is_a_target(ext, rig):
    row = reach_row(ext, rig, (0, 0, 0))
    other = rigs.chain(1, name="Other")
    other.location = (0.5, 0.0, 0.0)
    rigs.update()
    row.target, row.target_bone = other, "bone_0"
    assert (reach_of(ext, rig, row).target - Vector((0.5, 0, 0))).length < FLOAT32
    row.target_bone = "gone"
    assert reach_of(ext, rig, row) is None


@pytest.mark.parametrize(
    ("length", "extension", "gap"), [(0, 1.0, 2.0), (2, 1.0, 2.0), (0, 0.9, 2.3), (2, 0.9, 2.2)]
)
def test_out_of_reach_by_what_the_chain_lacks(ext, rig, length, extension, gap):
    """The target is 5 m up; the chain's root is at 0 m with three bones, at 1 m with two."""
    row = reach_row(ext, rig, (0.0, 0.0, 5.0))
    row.chain_length, row.max_extension = length, extension
    assert reach_of(ext, rig, row).gap == pytest.approx(gap, abs=FLOAT32)
    rigs.set_rotation(rig.pose.bones["bone_2"], Quaternion((1, 0, 0), 2.0))
    rigs.update()
    assert reach_of(ext, rig, row).gap == pytest.approx(gap, abs=FLOAT32)


def test_a_gap_is_in_the_worlds_metres(ext, rig):
    row = reach_row(ext, rig, (0.0, 0.0, 8.0))
    rig.scale = (2.0, 2.0, 2.0)
    rigs.update()
    assert reach_of(ext, rig, row).gap == pytest.approx(2.0, abs=FLOAT32)


def test_no_gap_is_told_where_bones_shift_or_feet_carry_the_root(ext, rows, rig):
    row = reach_row(ext, rig, (0.0, 0.0, 5.0))
    rig.pose.bones["bone_1"].ccd_rig.use_slide = (False, True, False)
    assert reach_of(ext, rig, row).gap == 0.0
    rig.pose.bones["bone_1"].ccd_rig.use_slide = (False, False, False)
    assert reach_of(ext, rig, row).gap > 0.0
    plant = rows.add(rig, "Plant", "bone_1")
    plant.kind = "PLANT"
    assert reach_of(ext, rig, row).gap == 0.0
    plant.enabled = False
    assert reach_of(ext, rig, row).gap > 0.0


def sketched_rows(ext, rig, shown=None, outcome=""):
    sketch = ext.module("ccd_rig.blender.viewport.sketch").Sketch()
    shown = {bone.name for bone in rig.pose.bones} if shown is None else shown
    module = ext.module("ccd_rig.blender.viewport.constraints")
    outcomes = {0: module.Outcome[outcome]} if outcome else {}
    module.sketch_rows(sketch, rig, shown, "{:.2f} m".format, outcomes)
    return sketch


def colours_of(sketch):
    return {colour[:3] for colour, _ in sketch.lines}


def test_out_of_reach_is_red_with_the_distance(ext, rig):
    red = ext.module("ccd_rig.blender.viewport.sketch").Palette().warning
    row = reach_row(ext, rig, (1.0, 0.0, 1.0))
    sketch = sketched_rows(ext, rig)
    assert red not in colours_of(sketch) and sketch.labels == []
    row.target.location = (0.0, 0.0, 5.0)
    rigs.update()
    sketch = sketched_rows(ext, rig)
    assert red in colours_of(sketch)
    assert [label.words for label in sketch.labels] == ["2.00 m out of reach"]


@pytest.mark.parametrize(
    ("outcome", "place", "words", "is_red"),
    [
        ("MET", (0.0, 0.0, 5.0), [], False),
        ("MISSED", (0.0, 0.0, 5.0), ["2.00 m out of reach"], True),
        ("MISSED", (0.0, 0.0, 2.0), ["1.00 m off"], True),
        ("MISSED", (0.0, 0.0, 3.0), [], False),
        ("GAVE_WAY", (0.0, 0.0, 5.0), ["gives way by 2.00 m"], False),
        ("GAVE_WAY", (0.0, 0.0, 3.0), [], False),
    ],
)
def test_a_shown_solve_says_what_is_missed(ext, rig, outcome, place, words, is_red):
    red = ext.module("ccd_rig.blender.viewport.sketch").Palette().warning
    reach_row(ext, rig, place)
    sketch = sketched_rows(ext, rig, outcome=outcome)
    assert [label.words for label in sketch.labels] == words
    assert (red in colours_of(sketch)) == is_red


def test_where_the_body_helps_only_a_solve_tells_what_is_out_of_reach(ext, rig):
    """A chain without a bone above it has no body."""
    row = reach_row(ext, rig, (0.0, 0.0, 5.0))
    row.chain_length, rig.ccd_rig.body_helps = 2, True
    assert reach_of(ext, rig, row).gap == 0.0
    row.chain_length = 0
    assert reach_of(ext, rig, row).gap > 0.0


def test_hidden_bones_and_constraints_that_are_off_show_nothing(ext, rig):
    row = reach_row(ext, rig, (0.0, 0.0, 5.0))
    assert not sketched_rows(ext, rig, shown=()).lines
    row.enabled = False
    sketch = sketched_rows(ext, rig)
    assert sketch.labels == [] and len(sketch.lines) == 1  # the chain, pale


def test_the_active_chain_is_tinted(ext, rig):
    row = reach_row(ext, rig, (1.0, 0.0, 1.0))
    row.chain_length = 2
    module = ext.module("ccd_rig.blender.viewport.constraints")
    (ends,) = (ends for (_, width), ends in sketched_rows(ext, rig).lines.items() if width == module.CHAIN)
    assert sorted(round(end.z, 3) for end in ends) == [1.0, 2.0, 2.0, 3.0]


@pytest.mark.parametrize(("use_tail", "tip"), [(False, (0.0, -1.25, 1.0)), (True, (0.0, -1.0, 1.5))])
def test_a_chain_lies_along_its_bones_where_tails_say_nothing(ext, use_tail, tip):
    """As importers of glTF make them: the lines stood up from the back of the figure."""
    heads = [(0.0, -0.5 * k, 1.0) for k in range(3)]
    rig = rigs.armature(
        [
            rigs.B(f"bone_{k}", head, (0.0, head[1], 1.5), f"bone_{k - 1}" if k else "")
            for k, head in enumerate(heads)
        ]
    )
    row = reach_row(ext, rig, (1.0, 0.0, 1.0))
    row.use_tail = use_tail
    module = ext.module("ccd_rig.blender.viewport.constraints")
    (ends,) = (ends for (_, width), ends in sketched_rows(ext, rig).lines.items() if width == module.CHAIN)
    expected = [heads[2], tip, heads[1], heads[2], heads[0], heads[1]]
    for end, place in zip(ends, expected, strict=True):
        assert (end - Vector(place)).length < FLOAT32


def test_planted_bones_are_marked_while_they_are_planted(ext, rows, rig):
    plant = rows.add(rig, "Plant", "bone_2")
    plant.kind = "PLANT"
    assert sketched_rows(ext, rig).faces
    plant.influence = 0.4
    sketch = sketched_rows(ext, rig)
    assert not sketch.faces and len(sketch.lines) == 2  # the chain and a thin ring


def test_dashes_begin_and_end_at_the_ends(ext):
    sketch = ext.module("ccd_rig.blender.viewport.sketch").Sketch()
    start, end = Vector((0, 0, 0)), Vector((0, 0, 2))
    sketch.dotted((start, end), 0.1, (1.0, 1.0, 1.0, 1.0), 2.0)
    (pieces,) = sketch.lines.values()
    assert len(pieces) == 2 * 10
    assert pieces[0] == start and (pieces[-1] - end).length < FLOAT32
    lengths = [(b - a).length for a, b in pairwise(pieces)]
    assert max(lengths) - min(lengths) < FLOAT32


KINDS = ("HINGE", "CONE", "ELLIPSE", "TWIST", "EULER")


def sketched_limit(ext, bone):
    rigs.update()
    sketch = ext.module("ccd_rig.blender.viewport.sketch").Sketch()
    ext.module("ccd_rig.blender.viewport.limits").sketch_limits(sketch, bone)
    return sketch


@pytest.mark.parametrize("kind", KINDS)
def test_the_needle_turns_red_at_the_border(ext, rig, kind):
    red = ext.module("ccd_rig.blender.viewport.sketch").Palette().warning
    bone = rig.pose.bones["bone_1"]
    bone.ccd_rig.limit.kind = kind  # each to 45 degrees and more by default, but the hinge's 90
    axis, border = ((0, 1, 0) if kind == "TWIST" else (1, 0, 0)), (90 if kind == "HINGE" else 45)
    for degrees, is_red in ((0, False), (border - 2, False), (border, True), (border + 20, True)):
        rigs.set_rotation(bone, Quaternion(axis, math.radians(degrees)))
        assert (red in colours_of(sketched_limit(ext, bone))) == is_red, degrees


@pytest.mark.parametrize("kind", KINDS)
def test_the_comfort_region_is_drawn_inside(ext, rig, kind):
    bone = rig.pose.bones["bone_1"]
    bone.ccd_rig.limit.kind = kind
    alone = sketched_limit(ext, bone)
    bone.ccd_rig.comfort.region.kind = kind
    both = sketched_limit(ext, bone)
    green = ext.module("ccd_rig.blender.viewport.sketch").Palette().comfort
    assert green not in colours_of(alone) and green in colours_of(both)
    head = rig.matrix_world @ bone.head
    farthest = {
        inside: max(
            (end - head).length
            for (c, _), ends in both.lines.items()
            if (c[:3] == green) == inside
            for end in ends
        )
        for inside in (True, False)
    }
    assert farthest[True] < farthest[False]


def test_a_free_bone_shows_nothing(ext, rig):
    sketch = sketched_limit(ext, rig.pose.bones["bone_1"])
    assert not sketch.lines and not sketch.faces


def test_nothing_is_changed_by_looking(ext, rig, tmp_path):
    reach_row(ext, rig, (0.0, 0.0, 5.0))
    bone = rig.pose.bones["bone_1"]
    before = [tuple(row) for row in bone.matrix]
    sketched_rows(ext, rig)
    sketched_limit(ext, bone)
    assert [tuple(row) for row in bone.matrix] == before
    assert not bpy.context.view_layer.depsgraph.updates
