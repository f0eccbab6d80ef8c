"""Roles of bones are drawn by colour, while the panel that follows Set Up Figure is the last one."""

from __future__ import annotations

import itertools
import random

import rigs


def drawn(ext, rig, roles):
    made = ext.module("ccd_rig.blender.viewport.sketch").Sketch()
    ext.module("ccd_rig.blender.viewport.sketch").sketch_roles(made, rig, roles)
    return made


def test_each_part_has_its_colour_and_ends_have_words(ext):
    rig = rigs.metarig("basic_human")
    rigs.update()
    roles = ext.module("ccd_rig.blender.figures.recognition").roles_of(rig)
    made = drawn(ext, rig, roles)
    assert {label.words for label in made.labels} >= {"left hand", "right foot", "head", "hips"}
    bones = {}
    for (colour, _), ends in made.lines.items():
        for head in ends[::2]:
            bones[tuple(round(x, 4) for x in head)] = colour

    def colour_of(name):
        head = rig.matrix_world @ rig.pose.bones[name].head
        return bones[tuple(round(x, 4) for x in head)]

    assert colour_of("upper_arm.L") == colour_of("forearm.R") != colour_of("thigh.L") == colour_of("shin.R")
    assert colour_of("spine") != colour_of("spine.003") != colour_of("thigh.L")
    assert sum(len(ends) for ends in made.lines.values()) == 2 * len(roles)


def test_a_bone_that_is_gone_is_left_out(ext):
    rig = rigs.chain(2)
    role = ext.module("ccd_rig.blender.figures.role").read_role
    made = drawn(ext, rig, {"bone_1": role("head"), "gone": role("hips")})
    assert [label.words for label in made.labels] == ["head"]


def test_labels_cover_no_other_label(ext):
    """Feet beside each other, as seen from the side: words of one lay on those of the other."""
    module = ext.module("ccd_rig.blender.viewport.sketch")
    box, spread_out = module.Box, module.spread_out
    alone = box(300.0, 10.0, 50.0, 20.0)
    assert spread_out([box(0.0, 100.0, 80.0, 20.0), alone]) == [box(0.0, 100.0, 80.0, 20.0), alone]
    feet = [box(40.0, 95.0, 80.0, 20.0), box(0.0, 100.0, 80.0, 20.0), box(70.0, 78.0, 80.0, 20.0)]
    placed = spread_out(feet)
    assert placed[1] == feet[1]
    assert [each.x for each in placed] == [each.x for each in feet]
    assert [each.y for each in placed] == [80.0, 100.0, 60.0]
    assert spread_out([]) == []


def test_labels_at_places_that_are_no_whole_pixels_come_to_an_end(ext):
    """A box that was moved below another one still met it by a rounding error, for ever."""
    module = ext.module("ccd_rig.blender.viewport.sketch")
    rng = random.Random(4)
    for _ in range(200):
        boxes = [
            module.Box(rng.uniform(0, 200), rng.uniform(0, 60), rng.uniform(20, 90), 16.9) for _ in range(9)
        ]
        placed = module.spread_out(boxes)
        for one, other in itertools.combinations(placed, 2):
            apart = abs(one.y - other.y) > one.height - 1e-9
            left, right = sorted((one, other), key=lambda box: box.x)
            assert apart or left.x + left.width <= right.x


def test_words_at_a_target_are_clear_of_its_handle(ext):
    """The ring of a handle is the largest, and larger below the pointer."""
    overlay, handles = ext.module("viewport.overlay"), ext.module("viewport.target_handles")
    assert overlay.TEXT_OFFSET - overlay.GROUND_ROOM >= handles.LARGER * handles.RING
