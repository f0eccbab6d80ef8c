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


def test_a_shoulder_blade_has_the_colour_of_its_leg(ext):
    """It had an arm's, in the middle of a front leg."""
    rig = rigs.metarig("cat")
    rigs.update()
    roles = ext.module("ccd_rig.blender.figures.recognition").roles_of(rig)
    colours = {}
    for (colour, _), ends in drawn(ext, rig, roles).lines.items():
        for start in ends[::2]:
            colours[tuple(round(x, 4) for x in start)] = colour

    def colour_of(part):
        name = next(name for name, role in roles.items() if role.part == part and role.side == "L")
        return colours[tuple(round(x, 4) for x in rig.matrix_world @ rig.pose.bones[name].head)]

    assert colour_of("shoulder") == colour_of("front thigh") != colour_of("thigh")


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


def test_words_are_not_cut_off_by_the_sidebar(ext):
    """They go to the other side of their point, if that has room; those of points beyond stay."""
    beside = ext.module("ccd_rig.blender.viewport.sketch").beside
    room = (50.0, 800.0)
    assert beside(400.0, 100.0, 10.0, True, room) == 410.0
    assert beside(400.0, 100.0, 10.0, False, room) == 290.0
    assert beside(750.0, 100.0, 10.0, True, room) == 640.0
    assert beside(90.0, 100.0, 10.0, False, room) == 100.0
    assert beside(850.0, 100.0, 10.0, True, room) == 860.0
    assert beside(400.0, 900.0, 10.0, True, room) == 410.0, "no side has room"


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


def imported(*rows):
    """Bones of (name, parent, head), with tails along an axis that means nothing, as importers of glTF make
    them."""
    return rigs.armature(
        [rigs.B(name, head, (head[0], head[1] - 0.1, head[2] + 0.3), parent) for name, parent, head in rows]
    )


def test_lines_lie_along_limbs_where_tails_say_nothing(ext):
    """They stuck out of the back of a figure that was imported."""
    rig = imported(
        ("root", "", (0.0, 0.0, 0.0)),
        ("pelvis", "root", (0.0, 0.0, 1.0)),
        ("back", "pelvis", (0.0, -0.5, 1.0)),
        ("skull", "back", (0.0, -0.9, 1.1)),
        ("leg", "pelvis", (0.1, 0.0, 0.9)),
        ("twist", "leg", (0.1, 0.0, 0.7)),
        ("calf", "leg", (0.1, 0.1, 0.5)),
        ("paw", "calf", (0.1, 0.0, 0.1)),
        ("big", "paw", (0.08, -0.1, 0.0)),
        ("small", "paw", (0.12, -0.1, 0.0)),
    )
    roles = {
        "pelvis": "hips",
        "back": "spine",
        "skull": "head",
        "leg": "left thigh",
        "calf": "left shin",
        "paw": "left foot",
        "big": "left toe",
        "small": "2nd left toe",
    }
    read_role = ext.module("ccd_rig.blender.figures.role").read_role
    rigs.update()
    made = drawn(ext, rig, {name: read_role(words) for name, words in roles.items()})
    ends = {}
    for points in made.lines.values():
        for head, end in zip(points[::2], points[1::2], strict=True):
            name = min(roles, key=lambda each: (rig.pose.bones[each].head - head).length)
            ends[name] = end
    heads = {name: rig.pose.bones[name].head for name in roles}
    for name, following in (("pelvis", "back"), ("back", "skull"), ("leg", "calf"), ("calf", "paw")):
        assert (ends[name] - heads[following]).length < 1e-6, name
    assert (ends["paw"] - (heads["big"] + heads["small"]) / 2).length < 1e-6
    along = (heads["skull"] - heads["back"]).normalized()
    assert (ends["skull"] - heads["skull"]).normalized().dot(along) > 0.999
