"""Feet planted with the set-up of a figure, and after it."""

from __future__ import annotations

import bpy
import pytest
import rigs
from figures_set_up import FRAMES, SOLVE, bake, move, set_up, target_of
from mathutils import Vector
from playing import angle
from rigs import B


def test_feet_planted(ext):
    rig = rigs.metarig("basic_human")
    made = set_up(rig, plant=True)
    assert [made[f"foot.{side}"].kind for side in "LR"] == ["PLANT", "PLANT"]
    before = {side: rig.pose.bones[f"foot.{side}"].head.copy() for side in "LR"}
    move(made["spine"], (0.05, 0.0, -0.1))
    posed = bake(rig)
    for side, place in before.items():
        assert (posed.pose.bones[f"foot.{side}"].head - place).length < SOLVE
    assert (posed.pose.bones["spine"].head - target_of(made["spine"]).translation).length < SOLVE


def select_bones(rig, *names):
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    for bone in rig.pose.bones:
        (bone if hasattr(bone, "select") else bone.bone).select = bone.name in names
    rig.data.bones.active = rig.data.bones[names[0]]


def test_feet_planted_without_a_target_for_the_hips(ext):
    """What planted feet shift carries no target, as that would hang on its own chain."""
    rig = rigs.metarig("basic_human")
    made = set_up(rig, plant=True, hips=False)
    assert made["spine.006"].target.parent is None
    bake(rig)
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


def plant_feet(rig, *tips):
    """Select bones in Pose Mode and plant them, as a user's next click does."""
    select_bones(rig, *tips)
    done = bpy.ops.ccd_rig.feet_plant("EXEC_DEFAULT", True, hold_height=True, hold_rotation=True)
    bpy.ops.object.mode_set(mode="OBJECT")
    assert done == {"FINISHED"}


PLANTED = [
    ("basic_human", ("foot.L", "foot.R"), "spine", (0.05, 0.0, -0.1)),
    ("human", ("foot.L", "foot.R"), "spine", (0.0, -0.06, -0.12)),
    ("cat", ("r_toe.L", "r_toe.R", "f_toe.L", "f_toe.R"), "spine", (0.0, 0.0, -0.02)),
]


@pytest.mark.parametrize(("kind", "feet", "hips", "drop"), PLANTED)
def test_feet_planted_after_the_set_up(checks, capfd, kind, feet, hips, drop):
    """The hips slid to their target: the planted feet shift them now, and they still go to it."""
    rig = rigs.metarig(kind)
    made = set_up(rig)
    hips = next(name for name, row in made.items() if any(rig.pose.bones[row.tip].ccd_rig.use_slide))
    plant_feet(rig, *feet)
    assert f"Slide switched off, as planted feet shift it: {hips}" in capfd.readouterr().out
    rows = rig.ccd_rig.constraints
    assert {rows[name].kind for name in feet} == {"PLANT"}
    assert not list(checks.constraint_problems(rig, rows[hips], bpy.context.scene))
    before = {name: rig.pose.bones[name].matrix.copy() for name in feet}
    move(rows[hips], drop)
    posed = bake(rig)
    for name, matrix in before.items():
        assert (posed.pose.bones[name].head - matrix.translation).length < SOLVE, name
        assert angle(posed.pose.bones[name].matrix, matrix) < 0.01, name
    assert (posed.pose.bones[hips].head - target_of(rows[hips]).translation).length < SOLVE
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


CAPE = [
    B("cape", (0, 0.4, 1.0), (0, 0.5, 0.7), "root"),
    B("cape.001", (0, 0.5, 0.7), (0, 0.6, 0.4), "cape"),
]


def test_feet_planted_on_keyed_hips_below_a_root_that_carries_more(ext):
    """Targets hang on the bone that carries the figure over planted feet, which keeps its animation."""
    rig = rigs.armature([*rigs.biped(), *CAPE])
    for frame, place in zip(FRAMES, ((0, 0, 0), (0, 0, -0.05)), strict=True):
        rig.pose.bones["hips"].location = place
        rig.pose.bones["hips"].keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES
    bpy.context.scene.frame_set(1)
    made = set_up(rig)
    assert {"foot.L", "foot.R", "head"} <= set(made)
    plant_feet(rig, "foot.L", "foot.R")
    bake(rig)
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


@pytest.mark.parametrize(
    ("root", "length"), [(((0, 0, 0), (0, 0.3, 0)), 4), (((0, 0.3, 0.9), (0, 0, 1.0)), 0)]
)
def test_a_root_that_stands_apart_carries_controls_another_one_the_figure(ext, root, length):
    """Where hips begin at the end of a root that carries more than them, the root is planted over."""
    rig = rigs.armature([B("root", *root), *rigs.biped()[1:], *CAPE])
    kinds = ext.module("ccd_rig.blender.properties.constraint_kinds")
    assert kinds.first_root_bone_chain_length(rig, "foot.L") == length


def test_planting_after_the_set_up_is_undone_in_one_step(ext):
    def state():
        rig = bpy.data.objects["Rig"]
        rows = [(row.name, row.kind, row.chain_length, row.target) for row in rig.ccd_rig.constraints]
        return str(rows), [tuple(bone.ccd_rig.use_slide) for bone in rig.pose.bones]

    rig = rigs.armature(rigs.biped())
    set_up(rig)
    select_bones(rig, "foot.L", "foot.R")
    bpy.ops.ed.undo_push(message="set up")
    before = state()
    bpy.ops.ccd_rig.feet_plant("EXEC_DEFAULT", True)
    assert state() != before
    bpy.ops.ed.undo()
    assert state() == before


STRIDE = ((0.0, 0.0, 0.0), (0.05, 0.15, 0.1), (0.1, 0.0, 0.2))
"""Locations of hips that legs on planted feet cannot follow, frames 1, 3 and 5."""


def striding(ext, kind="basic_human", name="spine", body="KEEP_ANIMATION", **choices):
    """A figure whose targets follow its motion and hang on its hips; its feet are planted later."""
    rig = rigs.armature([*rigs.biped(), *CAPE]) if kind == "cape" else rigs.metarig(kind)
    for frame, place in zip((1, 3, 5), STRIDE, strict=True):
        rig.pose.bones[name].location = place
        rig.pose.bones[name].keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES
    bpy.context.scene.frame_set(1)
    set_up(rig, **choices)
    plant_feet(rig, "foot.L", "foot.R")
    rig.ccd_rig.body = body
    return rig


def plays_as_baked(rig):
    """How far hands and head are from their targets as they play [m], and how far planted feet slip."""
    scene, feet, far = bpy.context.scene, {}, 0.0
    for frame in range(FRAMES[0], FRAMES[1] + 1):
        scene.frame_set(frame)
        graph = bpy.context.evaluated_depsgraph_get()
        posed = rig.evaluated_get(graph)
        for row in rig.ccd_rig.constraints:
            bone = posed.pose.bones[row.tip]
            end = rig.matrix_world @ (bone.tail if row.use_tail else bone.head)
            if row.kind == "PLANT":
                feet.setdefault(row.tip, []).append(end.copy())
                continue
            thing = row.target.evaluated_get(graph)
            place = thing.matrix_world.translation
            if row.target_bone:
                place = thing.matrix_world @ thing.pose.bones[row.target_bone].head
            far = max(far, (end - place).length)
    return far, max((place - places[0]).length for places in feet.values() for place in places)


def moved_most(rig):
    """How far planting shifts the hips at most [m]."""
    words = rig.ccd_rig.report.words
    return float(words.partition("(at most ")[2].partition(" m")[0]) if "moved at" in words else 0.0


@pytest.mark.parametrize("body", ["KEEP_ANIMATION", "WALK_ON"])
@pytest.mark.parametrize("controls", [False, True], ids=["empties", "control bones"])
@pytest.mark.parametrize(("kind", "name"), [("basic_human", "spine"), ("cape", "hips")])
def test_targets_on_hips_that_planted_feet_shift_go_along(ext, kind, name, controls, body):
    """What is solved is what plays: targets ride on the hips, wherever these have to go."""
    rig = striding(ext, kind, name, body, control_bones=controls)
    bake(rig)
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words, rig.ccd_rig.report.words
    assert moved_most(rig) > 0.1
    far, slipped = plays_as_baked(rig)
    assert far < SOLVE and slipped < SOLVE


def test_poles_on_hips_that_planted_feet_shift_go_along(ext):
    """The plane of an arm's bend has its pole where that plays, not where the hips would have had it."""
    rig = striding(ext, poles=True)
    bake(rig)
    assert moved_most(rig) > 0.1
    graph = bpy.context.evaluated_depsgraph_get()
    for frame in range(FRAMES[0], FRAMES[1] + 1):
        bpy.context.scene.frame_set(frame)
        bones = rig.evaluated_get(graph).pose.bones
        for side in "LR":
            pole = rig.ccd_rig.constraints[f"hand.{side}"].pole_target.evaluated_get(graph)
            shoulder, elbow, hand = (
                bones[f"{name}.{side}"].head for name in ("upper_arm", "forearm", "hand")
            )
            line = (hand - shoulder).normalized()
            ways = [
                way - way.project(line)
                for way in (elbow - shoulder, pole.matrix_world.translation - shoulder)
            ]
            assert ways[0].angle(ways[1]) < 0.01, (frame, side)


def by_child_of(rig, target):
    made = target.constraints.new("CHILD_OF")
    made.target, made.subtarget = rig, "spine"
    made.inverse_matrix = (rig.matrix_world @ rig.pose.bones["spine"].matrix).inverted()


def by_copies(rig, target):
    """Over another empty on the hips, and one that copies the place of that."""
    carried = rigs.empty(f"Carried {target.name}")
    carried.parent, carried.parent_type, carried.parent_bone = rig, "BONE", "spine"
    carried.matrix_world = target.matrix_world
    rigs.update()
    made = target.constraints.new("COPY_LOCATION")
    made.target = carried
    target.constraints.new("LIMIT_ROTATION").use_limit_x = True


@pytest.mark.parametrize("hang", [by_child_of, by_copies])
def test_targets_that_constraints_hang_on_the_hips_go_along(ext, hang):
    rig = striding(ext)
    bpy.context.scene.frame_set(FRAMES[0])
    target = rigs.empty("Grip")
    target.matrix_world = rig.matrix_world @ rig.pose.bones["hand.L"].matrix
    rigs.update()
    hang(rig, target)
    rig.ccd_rig.constraints["hand.L"].target = target
    rigs.activate(rig)
    bake(rig)
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words, rig.ccd_rig.report.words
    assert moved_most(rig) > 0.1
    far, slipped = plays_as_baked(rig)
    assert far < SOLVE and slipped < SOLVE


def keyed(rig, made):
    for frame, influence in zip(FRAMES, (1.0, 0.0), strict=True):
        made.influence = influence
        made.keyframe_insert("influence", frame=frame)


def along_two_axes(rig, made):
    made.use_location_z = False


def half(rig, made):
    made.influence = 0.5


def below_another(rig, made):
    made.id_data.parent = rigs.empty("Above")


def beside_another(rig, made):
    made.id_data.constraints.new("LIMIT_LOCATION")


def round_about(rig, made):
    other = rigs.empty("Other")
    made.target, made.subtarget = other, ""
    other.constraints.new("COPY_LOCATION").target = made.id_data


@pytest.mark.parametrize("spoil", [keyed, along_two_axes, half, below_another, beside_another, round_about])
def test_targets_that_go_along_in_part_ride_on_nothing(ext, spoil):
    """They are solved for where they are without the shift, and the report says what does not play so."""
    dependence = ext.module("ccd_rig.blender.scene.dependence")
    rig = rigs.metarig("basic_human")
    target = rigs.empty("Grip")
    by_child_of(rig, target)
    assert dependence.rides_on((target, ""), (rig, "spine"))
    assert not dependence.rides_on((target, ""), (rig, "hand.L"))
    assert dependence.rides_on((rig, "hand.L"), (rig, "spine"))
    assert not dependence.rides_on((rig, "spine"), (rig, "hand.L"))
    spoil(rig, target.constraints[0])
    assert not dependence.rides_on((target, ""), (rig, "spine"))


@pytest.mark.parametrize("start", ["ACTION", "ORIGINAL", "REST"])
def test_riding_targets_of_a_baked_motion_are_baked_again_where_they_are(ext, start):
    """In the second bake the hips play where the first one has shifted them, and so do the targets."""
    rig = striding(ext)
    for chosen in ("ACTION", start, start):
        rigs.activate(rig)
        assert bpy.ops.ccd_rig.bake(start=chosen, frame_start=FRAMES[0], frame_end=FRAMES[1]) == {"FINISHED"}
        assert "5 of 5 frames reached" in rig.ccd_rig.report.words, rig.ccd_rig.report.words
        far, slipped = plays_as_baked(rig)
        assert far < SOLVE and slipped < SOLVE


@pytest.mark.parametrize("presses", [1, 3])
def test_a_single_solve_has_riding_targets_where_it_shifts_the_hips(ext, presses):
    """Feet are held at targets where they were at the start, which the hips have left by now."""
    rig = striding(ext)
    bpy.context.scene.frame_set(FRAMES[0])
    for name in ("foot.L", "foot.R"):
        target = rigs.empty(f"Footprint {name}")
        target.matrix_world = rig.matrix_world @ rig.pose.bones[name].matrix
        rig.ccd_rig.constraints[name].target = target
    bpy.context.scene.frame_set(3)
    for _ in range(presses):
        assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
        graph = bpy.context.evaluated_depsgraph_get()
        posed = rig.evaluated_get(graph)
        for name in ("hand.L", "hand.R"):
            place = target_of(rig.ccd_rig.constraints[name]).translation
            assert (posed.pose.bones[name].head - place).length < SOLVE
    assert (posed.pose.bones["spine"].location - Vector(STRIDE[1])).length > 0.05


def test_a_foot_planted_at_a_target_on_the_hips_asks_nothing_of_them(ext):
    """Its target is as near wherever the hips go: only the other foot pulls."""
    rig, alone = striding(ext), striding(ext)
    for row in list(alone.ccd_rig.constraints):
        if row.tip == "foot.L":
            alone.ccd_rig.constraints.remove(alone.ccd_rig.constraints.find(row.name))
    bpy.context.scene.frame_set(1)
    target = rigs.empty("Stirrup")
    target.parent, target.parent_type, target.parent_bone = rig, "BONE", "spine"
    rigs.update()
    target.matrix_world = rig.matrix_world @ rig.pose.bones["foot.L"].matrix
    rig.ccd_rig.constraints["foot.L"].target = target
    for each in (rig, alone):
        rigs.activate(each)
        bake(each)
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words, rig.ccd_rig.report.words
    for frame in range(FRAMES[0], FRAMES[1] + 1):
        bpy.context.scene.frame_set(frame)
        graph = bpy.context.evaluated_depsgraph_get()
        hips = [each.evaluated_get(graph).pose.bones["spine"].head.copy() for each in (rig, alone)]
        assert (hips[0] - hips[1]).length < SOLVE
        foot = rig.evaluated_get(graph).pose.bones["foot.L"].head
        assert (foot - target.evaluated_get(graph).matrix_world.translation).length < SOLVE


def test_live_has_riding_targets_where_it_shows_the_hips(ext):
    """Feet are held at targets where they were at the start; Live follows the frame, and stays as it is."""
    rig = striding(ext)
    scene = bpy.context.scene
    scene.frame_set(FRAMES[0])
    for name in ("foot.L", "foot.R"):
        target = rigs.empty(f"Footprint {name}")
        target.matrix_world = rig.matrix_world @ rig.pose.bones[name].matrix
        rig.ccd_rig.constraints[name].target = target
    rig.ccd_rig.live = True
    seen = []
    for frame in (3, 3, 4, 3):
        scene.frame_set(frame)
        rigs.update()
        graph = bpy.context.evaluated_depsgraph_get()
        posed = rig.evaluated_get(graph)
        off = {}
        for name in ("hand.L", "hand.R", "spine.006"):
            row = rig.ccd_rig.constraints[name]
            bone = posed.pose.bones[row.tip]
            place = row.target.evaluated_get(graph).matrix_world.translation
            off[name] = ((bone.tail if row.use_tail else bone.head) - place).length
        assert max(off.values()) < SOLVE, off
        if frame == 3:
            seen.append(posed.pose.bones["spine"].head.copy())
    assert max((each - seen[0]).length for each in seen) < SOLVE
