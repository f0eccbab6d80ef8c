"""Targets as bones of the armature itself: made, solved and baked with, shown live, and removed."""

from __future__ import annotations

import bpy
import pytest
import rigs
from figures_set_up import SOLVE, matrices, set_up
from mathutils import Matrix
from playing import shown
from rigs import B

MADE, SHAPE = "ccd_rig_target", "ccd_rig_shape"


def arms(root=True):
    """Two arms on a chest that hangs on a root which stands apart."""
    bones = [B("root", (0, 0, 0), (0, 0.3, 0))] if root else []
    bones.append(B("chest", (0, 0, 1), (0, 0, 1.4), "root" if root else ""))
    for side, x in (("L", 1.0), ("R", -1.0)):
        bones += [
            B(f"arm.{side}", (0.2 * x, 0, 1.3), (0.5 * x, 0.05, 1.3), "chest"),
            B(f"hand.{side}", (0.5 * x, 0.05, 1.3), (0.8 * x, 0, 1.3), f"arm.{side}", connect=True),
        ]
    return rigs.armature(bones)


def add(rig, tip="hand.L", **options):
    rigs.activate(rig)
    if rig.mode != "POSE":
        bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    rig.data.bones.active = rig.data.bones[tip]
    assert bpy.ops.ccd_rig.constraint_add(control_bones=True, **options) == {"FINISHED"}
    return rig.ccd_rig.constraints[rig.ccd_rig.active_index]


def missed(rig, row):
    """Metres from the end of a constraint's bone to the head of its target bone, as Blender shows them."""
    seen = shown(rig)
    tip = seen.pose.bones[row.tip]
    end = tip.tail if row.use_tail else tip.head
    return (seen.matrix_world @ end - seen.matrix_world @ seen.pose.bones[row.target_bone].head).length


def shift(row, offset):
    """Move the target bone of a constraint in armature space."""
    bone = row.id_data.pose.bones[row.target_bone]
    bone.matrix = Matrix.Translation(offset) @ bone.matrix
    rigs.update()


def ours():
    return [thing for thing in bpy.data.objects if thing.get(MADE) or thing.get(SHAPE)]


def test_add_makes_a_bone_at_the_end_of_the_bone(ext):
    rig = arms()
    rig.pose.bones["arm.L"].rotation_quaternion = (0.9, 0.2, 0.3, 0.1)
    rig.location, rig.scale = (1.0, 2.0, 3.0), (0.5,) * 3
    row = add(rig)
    assert (row.target, row.target_bone) == (rig, "Target hand.L")
    bone = rig.pose.bones["Target hand.L"]
    assert missed(rig, row) < 1e-5
    assert not bone.bone.use_deform and bone.parent.name == "root" and bone.custom_shape[SHAPE] == "SPHERE"
    assert [each.name for each in bone.bone.collections] == ["Targets"]
    assert bone.color.palette == "THEME04"
    at_rest = bone.bone.matrix_local, rig.data.bones["hand.L"]
    assert (at_rest[0].translation - at_rest[1].tail_local).length < 1e-5
    assert (bpy.context.mode, bpy.context.object) == ("POSE", rig)
    assert rig.data.bones.active.name == "hand.L" and bpy.context.selected_objects == [rig]


def test_solve_and_bake_follow_it(ext):
    rig = arms()
    row = add(rig)
    bone = rig.pose.bones[row.target_bone]
    bone.keyframe_insert("location", frame=1)
    shift(row, (-0.2, 0.1, 0.1))
    bone.keyframe_insert("location", frame=5)
    bpy.context.scene.frame_set(5)
    assert missed(rig, row) > 0.05
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=5) == {"FINISHED"}
    for frame in (1, 3, 5):
        bpy.context.scene.frame_set(frame)
        assert missed(rig, row) < SOLVE
    bpy.context.scene.frame_set(3)
    shift(row, (0.0, 0.1, -0.1))
    assert missed(rig, row) > 0.05
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    assert missed(rig, row) < SOLVE


def test_live_follows_it(ext):
    rig = arms()
    row = add(rig)
    assert bpy.ops.ccd_rig.live() == {"FINISHED"}
    for _ in range(3):
        shift(row, (-0.05, 0.0, 0.05))
        assert missed(rig, row) < SOLVE
    bpy.ops.ccd_rig.live()


@pytest.mark.parametrize("root", [True, False])
def test_the_character_takes_them_along(ext, root):
    """A root that nothing turns carries them; the chest of a rig without one does not."""
    rig = arms(root)
    row = add(rig)
    parent = rig.pose.bones[row.target_bone].parent
    assert (parent.name if parent else None) == ("root" if root else None)
    top = rig.pose.bones["root" if root else "chest"]
    before = shown(rig).pose.bones[row.target_bone].head.copy()
    top.location.x += 1.0
    moved = (shown(rig).pose.bones[row.target_bone].head - before).length
    assert moved == pytest.approx(1.0 if root else 0.0, abs=1e-5)


def test_a_root_that_a_chain_turns_carries_none(ext):
    row = add(arms(), chain_length=0)
    assert row.id_data.pose.bones[row.target_bone].parent is None
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}


def test_each_selected_bone_gets_one_and_shapes_are_shared(ext):
    rig = arms()
    add(rig)
    add(rig, "hand.R")
    bones = [rig.pose.bones[f"Target hand.{side}"] for side in "LR"]
    assert len({bone.custom_shape for bone in bones}) == 1
    assert [bone.color.palette for bone in bones] == ["THEME04", "THEME01"]
    assert len([each for each in rig.data.collections_all if each.get(MADE)]) == 1


def test_they_go_without_a_trace(channels):
    rig = arms()
    bones = rig.data.bones.keys()
    row = add(rig)
    rig.pose.bones[row.target_bone].keyframe_insert("location", frame=1)
    add(rig, "hand.R")
    for index in (0, 0):
        rig.ccd_rig.active_index = index
        assert bpy.ops.ccd_rig.constraint_remove(with_target=True) == {"FINISHED"}
    assert rig.data.bones.keys() == bones and not ours() and not bpy.data.meshes
    assert not [each for each in rig.data.collections_all if each.get(MADE)]
    curves = list(channels.fcurves_of(rig))
    assert not curves and bpy.context.mode == "POSE"


@pytest.mark.parametrize("use", ["row", "child", "constraint"])
def test_one_that_something_else_uses_stays(rows, use):
    rig = arms()
    row = add(rig)
    if use == "row":
        other = rows.add(rig, "other", "hand.R")
        other.target, other.target_bone = rig, "Target hand.L"
        rig.ccd_rig.active_index = 0
    elif use == "child":
        thing = rigs.empty("Held")
        thing.parent, thing.parent_type, thing.parent_bone = rig, "BONE", row.target_bone
        rigs.activate(rig)
    else:
        copies = rig.pose.bones["hand.R"].constraints.new("COPY_LOCATION")
        copies.target, copies.subtarget = rig, row.target_bone
    assert bpy.ops.ccd_rig.constraint_remove(with_target=True) == {"FINISHED"}
    assert "Target hand.L" in rig.data.bones


def test_a_removed_constraint_says_that_its_bone_stays(ext):
    rig = arms()
    add(rig)
    bpy.ops.ccd_rig.constraint_remove()
    assert "Target hand.L" in rig.data.bones


@pytest.mark.parametrize("kind", ["basic_human", "basic_quadruped", "human"])
def test_a_figure_with_control_bones_stands_as_it_did(ext, kind):
    """Everything is where empties would be, and a solve leaves the pose."""
    rig = rigs.metarig(kind)
    plain = {n: r.target.matrix_world.translation.copy() for n, r in set_up(rig, poles=True).items()}
    bent = [row for row in rig.ccd_rig.constraints if row.pole_target is not None]
    poles = {row.name: row.pole_target.matrix_world.translation.copy() for row in bent}
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = rigs.metarig(kind)
    names = rig.data.bones.keys()
    made = set_up(rig, control_bones=True, poles=True)
    assert made.keys() == plain.keys()
    world, bones = rig.matrix_world, shown(rig).pose.bones
    for name, row in made.items():
        assert row.target == rig
        assert (world @ bones[row.target_bone].head - plain[name]).length < 1e-4
        if name in poles:
            assert (world @ bones[row.pole_bone].head - poles[name]).length < 1e-4
    before = matrices(rig)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    assert max((before[name].translation - rig.pose.bones[name].head).length for name in names) < SOLVE


def test_hands_and_head_go_along_with_the_hips(ext):
    rig = rigs.metarig("basic_human")
    made = set_up(rig, control_bones=True, poles=True)
    hips = made["spine"].target_bone
    assert rig.data.bones[made["hand.L"].target_bone].parent.name == hips
    assert rig.data.bones[made["hand.L"].pole_bone].parent.name == hips
    assert rig.data.bones[made["foot.L"].pole_bone].parent.name == made["foot.L"].target_bone
    assert rig.data.bones[made["foot.L"].target_bone].parent is None
    shift(made["spine"], (0.0, 0.0, -0.1))
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    assert all(missed(rig, made[name]) < SOLVE for name in ("hand.L", "foot.R", "spine"))


def test_names_of_control_bones_are_no_limbs(ext):
    """`Target hand.L` is no hand: the figure is the same as before, and is not set up again."""
    rig = rigs.metarig("basic_human")
    figure_of = ext.module("ccd_rig.blender.figures.recognition").figure_of
    before = figure_of(rig)
    set_up(rig, control_bones=True)
    assert figure_of(rig) == before
    with pytest.raises(RuntimeError, match="nothing is left to set up"):
        bpy.ops.ccd_rig.figure_set_up(control_bones=True)


def test_the_motion_of_a_figure_is_kept(ext):
    """Control bones are keyed along it, and a bake then leaves it as it is."""
    rig = rigs.metarig("basic_human")
    bone = rig.pose.bones["upper_arm.L"]
    for frame, angle in ((1, 0.0), (8, 0.5)):
        bone.rotation_mode = "XYZ"
        bone.rotation_euler.x = angle
        bone.keyframe_insert("rotation_euler", frame=frame)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 8
    names = rig.data.bones.keys()
    made = set_up(rig, control_bones=True)
    bpy.context.scene.frame_set(5)
    rigs.update()
    before = matrices(rig)
    assert missed(rig, made["hand.L"]) < SOLVE
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=8) == {"FINISHED"}
    bpy.context.scene.frame_set(5)
    rigs.update()
    assert max((before[name].translation - rig.pose.bones[name].head).length for name in names) < SOLVE


def test_a_generated_rig_gets_them(ext):
    generated = rigs.generated("basic_human")
    made = set_up(generated, control_bones=True)
    row = made["hand_fk.L"]
    assert generated.data.bones[made["foot_fk.L"].target_bone].parent.name == "root"
    shift(row, (-0.15, -0.1, 0.0))
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    assert missed(generated, row) < SOLVE


@pytest.mark.parametrize("trouble", ["hidden", "linked"])
def test_an_armature_that_cannot_get_bones_is_left_alone(ext, trouble, tmp_path):
    rig = arms()
    if trouble == "hidden":
        rig.hide_set(True)
        bpy.context.view_layer.objects.active = rig
        match = "is hidden or not in this view layer: show it first"
    else:
        path = str(tmp_path / "rig.blend")
        bpy.data.libraries.write(path, {rig.data})
        bpy.data.objects.remove(rig)
        with bpy.data.libraries.load(path, link=True) as (there, here):
            here.armatures = there.armatures
        rig = rigs.link(here.armatures[0], "Rig")
        match = "comes from a library and cannot get control bones"
    command = bpy.ops.ccd_rig.figure_set_up if trouble == "hidden" else lambda **options: add(rig, **options)
    rows = {} if trouble == "linked" else {"control_bones": True}
    with pytest.raises(RuntimeError, match=match):
        command(**rows)
    assert not rig.ccd_rig.constraints


def test_undo_takes_all_back(ext):
    rig = arms()
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.ed.undo_push(message="before")
    add(rig)
    bpy.ops.ed.undo_push(message="Add")
    bpy.ops.ed.undo()
    rig = bpy.data.objects["Rig"]
    assert "Target hand.L" not in rig.data.bones and not rig.ccd_rig.constraints
    bpy.ops.ed.redo()
    rig = bpy.data.objects["Rig"]
    assert rig.ccd_rig.constraints[0].target_bone in rig.data.bones
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
