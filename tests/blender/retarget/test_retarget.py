"""The motion of one armature on another, as Blender plays it: a figure that walks, and Rigify's metarigs."""

from __future__ import annotations

import dataclasses
import json
import math

import bpy
import numpy as np
import pytest
import rigs
import walks
from mathutils import Matrix, Quaternion, Vector

FEET = ("foot.L", "foot.R")


@pytest.fixture
def source(ext):
    return walks.walk(ext, cycles=2, in_place=False)


@pytest.fixture
def target(source):
    rig = rigs.metarig("basic_human")
    rig.ccd_rig.retarget.source = source
    rigs.activate(rig)
    return rig


def run(rig, **choices):
    """The operator, with choices of the panel; what it says is an error otherwise."""
    for name, value in choices.items():
        setattr(rig.ccd_rig.retarget, name, value)
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.retarget() == {"FINISHED"}


def refused(words, rig, **choices):
    """The operator refuses with these words, and the file stays as it is."""
    for name, value in choices.items():
        setattr(rig.ccd_rig.retarget, name, value)
    rigs.activate(rig)
    before = contents(rig)
    with pytest.raises(RuntimeError, match=words):
        bpy.ops.ccd_rig.retarget()
    assert contents(rig) == before


def contents(rig):
    animation = rig.animation_data
    action = animation and animation.action and animation.action.name
    pose = [tuple(value for row in bone.matrix_basis for value in row) for bone in rig.pose.bones]
    return sorted(a.name for a in bpy.data.actions), sorted(s.name for s in bpy.data.scenes), action, pose


FRAMES = range(1, 50)


def played(rig, bones, frames=FRAMES):
    return walks.heads(rig, bones, frames)


def keys(ext, rig):
    curves = ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)
    return {
        (curve.data_path, curve.array_index): [tuple(point.co) for point in curve.keyframe_points]
        for curve in curves
    }


def legs(rig, thigh, shin, foot):
    heads = [rig.matrix_world @ rig.data.bones[name].head_local for name in (thigh, shin, foot)]
    return (heads[1] - heads[0]).length + (heads[2] - heads[1]).length


def test_a_metarig_walks_as_the_source_does(ext, source, target):
    run(target)
    scale = legs(target, "thigh.L", "shin.L", "foot.L") / legs(source, "thigh.L", "shin.L", "foot.L")
    frames = range(1, 50)
    own, ours = played(source, ("thigh.L", *FEET), frames), played(target, ("thigh.L", *FEET), frames)
    travel, own_travel = np.ptp(ours[:, 0, 1]), np.ptp(own[:, 0, 1])
    assert own_travel > 1.2
    assert travel == pytest.approx(scale * own_travel, rel=0.02)
    # Balls of the feet hold still where the source's feet stand flat; first and last frame of that apart.
    for side in "LR":
        ball = played(target, (f"toe.{side}",), frames)[:, 0]
        flat = np.array([f for f in frames if 4 <= walks._phase(side, f) <= 6])
        for rows in np.split(flat - 1, np.flatnonzero(np.diff(flat) > 1) + 1):
            assert np.ptp(ball[rows], axis=0).max() < 1e-4
    assert "frames" in target.ccd_rig.retarget.report


def test_the_action_before_stays_and_the_source_is_left_alone(ext, source, target):
    own = keys(ext, source)
    target.pose.bones[0].keyframe_insert("location", frame=500)
    old = target.animation_data.action
    run(target)
    assert target.animation_data.action not in (None, old)
    assert old.use_fake_user
    assert keys(ext, source) == own
    assert max(frame for points in keys(ext, target).values() for frame, _ in points) == 49.0


def test_again_with_other_settings_between_gives_the_same_keys(ext, source, target):
    run(target)
    first = keys(ext, target)
    run(target, in_place=True, scale=0.5, contacts=False)
    assert keys(ext, target) != first
    run(target, in_place=False, scale=0.0, contacts=True)
    assert keys(ext, target) == first


def test_any_rotation_mode_plays_the_same(ext, source, target):
    run(target)
    bones = [bone.name for bone in target.pose.bones]
    wanted = played(target, bones, range(1, 50, 7))
    for mode in ("XYZ", "ZXY", "AXIS_ANGLE", "QUATERNION"):
        for bone in target.pose.bones:
            bone.rotation_mode = mode
        run(target)
        np.testing.assert_allclose(played(target, bones, range(1, 50, 7)), wanted, atol=2e-5)


def test_a_source_at_another_rate_keeps_its_speed(ext, source, target):
    fps = bpy.context.scene.render.fps
    run(target, source_fps=2.0 * fps)
    found = keys(ext, target)
    assert {len(points) for points in found.values()} == {25}
    ankles, whole = played(target, FEET, range(1, 26)), played(source, FEET, range(1, 50, 2))
    assert np.corrcoef(ankles[:, 0, 1], whole[:, 0, 1])[0, 1] > 0.999


def test_a_scaled_and_turned_armature_walks_the_same_way_in_the_world(ext, source, target):
    run(target)
    wanted = played(target, FEET)
    target.matrix_world = Matrix.LocRotScale(
        Vector((0.0, 0.0, 0.0)), Quaternion((0.0, 0.0, 1.0), 1.0), Vector((2.0, 2.0, 2.0))
    )
    rigs.update()
    run(target)
    np.testing.assert_allclose(played(target, FEET)[:, :, 2], 2.0 * wanted[:, :, 2], atol=2e-3)
    travel = [np.ptp(feet[:, 0, 1]) for feet in (played(target, FEET), wanted)]
    assert travel[0] == pytest.approx(2.0 * travel[1], rel=0.02)


def test_each_figure_walks_from_where_its_object_is(ext, source, target):
    run(target)
    wanted = played(target, ("spine", *FEET))
    source.location = (4.0, 1.0, 0.0)
    target.location = (-2.0, 0.5, 0.3)
    rigs.update()
    run(target)
    np.testing.assert_allclose(
        played(target, ("spine", *FEET)), wanted + np.array((-2.0, 0.5, 0.3)), atol=1e-4
    )


def test_a_rest_that_lies_walks_upright(ext, source, target):
    run(target)
    wanted = played(target, ("spine", *FEET))
    target.animation_data_clear()
    target.data.transform(Matrix.Rotation(math.radians(-90.0), 4, "X"))
    rigs.update()
    run(target)
    found = played(target, ("spine", *FEET))
    np.testing.assert_allclose(np.diff(found, axis=0), np.diff(wanted, axis=0), atol=0.01)
    assert np.ptp(found[:, :, 2].mean(0)) > 0.7  # metres from feet to hips, upwards


def test_one_frame_is_shown_without_keys(ext, source, target):
    run(target)
    bpy.context.scene.frame_set(20)
    wanted = played(target, FEET, [20])
    target.animation_data_clear()
    for bone in target.pose.bones:
        bone.matrix_basis = Matrix()
    bpy.context.scene.frame_set(20)
    assert bpy.ops.ccd_rig.retarget_preview() == {"FINISHED"}
    rigs.update()
    assert target.animation_data is None or target.animation_data.action is None
    shown = [(target.matrix_world @ target.pose.bones[name].matrix).translation[:] for name in FEET]
    np.testing.assert_allclose(shown, wanted[0], atol=0.02)


def test_a_frame_follows_the_settings_while_they_change(ext, source, target):
    bpy.context.scene.frame_set(20)
    group = target.ccd_rig.retarget

    def hips():
        rigs.update()
        return target.pose.bones["spine"].matrix.translation.copy()

    rest = hips()
    group.scale = 0.9
    assert hips() == rest  # it is off
    group.preview = True
    shown = hips()
    assert (shown - rest).length > 0.1
    group.scale = 0.5
    assert abs(hips().y) < 0.6 * abs(shown.y)
    group.source = target
    assert "is source and target at once" in group.report
    group.source = source
    assert group.report == ""
    source.animation_data_clear()
    group.hands = 0.5
    assert "has no action" in group.report


def test_controls_of_a_generated_rig_get_the_keys(ext, source):
    rig = rigs.generated("basic_human")
    rig.ccd_rig.retarget.source = source
    run(rig)
    keyed = {path.split('"')[1] for path, _ in keys(ext, rig)}
    assert {"torso", "thigh_fk.L", "shin_fk.R", "foot_fk.L"} <= keyed
    assert not any(name.startswith(("MCH", "ORG", "DEF")) for name in keyed)
    for side in "LR":
        parent = rig.pose.bones[f"thigh_parent.{side}"]
        bpy.context.scene.frame_set(10)
        assert parent["IK_FK"] == 1.0
    # What deforms follows: its feet are where those of the controls are, and travel as the source's do.
    feet = played(rig, ("DEF-foot.L", "foot_fk.L"), range(1, 50, 4))
    np.testing.assert_allclose(feet[:, 0], feet[:, 1], atol=1e-4)
    own = played(source, ("foot.L",), range(1, 50, 4))[:, 0]
    assert np.corrcoef(feet[:, 0, 1], own[:, 1])[0, 1] > 0.999


# Maps ---------------------------------------------------------------------------------------------


def test_a_map_is_found_changed_by_hand_and_kept_as_a_file(ext, source, target, tmp_path):
    assert bpy.ops.ccd_rig.retarget_map_fill() == {"FINISHED"}
    pairs = target.ccd_rig.retarget.pairs
    assert pairs["shin.L"].source == "shin.L"
    assert pairs["upper_arm.L"].source == ""
    pairs["head" if "head" in pairs else "spine.006"].source = ""
    path = tmp_path / "map.json"
    assert bpy.ops.ccd_rig.retarget_map_save(filepath=str(path)) == {"FINISHED"}
    saved = json.loads(path.read_text())["bones"]
    assert saved == {pair.name: pair.source for pair in pairs}
    pairs.clear()
    assert bpy.ops.ccd_rig.retarget_map_load(filepath=str(path)) == {"FINISHED"}
    assert {pair.name: pair.source for pair in pairs} == saved
    run(target)


def test_a_map_that_is_no_map_is_refused(ext, source, target, tmp_path):
    path = tmp_path / "map.json"
    path.write_text('{"bones": ["thigh.L"]}')
    with pytest.raises(RuntimeError, match="must hold"):
        bpy.ops.ccd_rig.retarget_map_load(filepath=str(path))


def test_animals_stand_along_the_ground(ext):
    """Their heads are ahead of them: up is where legs lead."""
    bone_map, sampling = (ext.module(f"ccd_rig.blender.retarget.{name}") for name in ("bone_map", "sampling"))
    wolf, other = rigs.metarig("wolf"), rigs.metarig("basic_quadruped")
    joints = bone_map.figure_map(bone_map.bone_map(wolf, other))
    assert [leg.girdle for leg in joints.legs] == ["", "", "front", "front"]
    figure, _ = sampling.target_figure(wolf, joints)
    np.testing.assert_array_equal(figure.rotations, np.tile((1.0, 0.0, 0.0, 0.0), (len(figure.rotations), 1)))
    assert figure.ground == pytest.approx(0.0, abs=1e-6)


def test_legs_of_a_generated_beast_hang_on_each_other_and_front_ones_on_its_chest(ext):
    names = ("bone_map", "controlled_rigs")
    bone_map, controlled = (ext.module(f"ccd_rig.blender.retarget.{name}") for name in names)
    rig, other = rigs.generated("basic_quadruped"), rigs.metarig("wolf")
    joints = controlled.without_carriers(rig, bone_map.figure_map(bone_map.bone_map(rig, other)))
    figure = controlled.figure_of_controls(rig, joints)
    above = {
        joint.name: figure.skeleton.joints[joint.parent].name if joint.parent >= 0 else ""
        for joint in figure.skeleton.joints
    }
    assert above["toe.L"] == "foot_fk.L" and above["front_toe.R"] == "front_foot_fk.R"
    assert above["thigh_fk.L"] == joints.hips
    assert above["front_thigh_fk.L"] != joints.hips
    joints.require(figure.skeleton, tuple(joints.sources.values()))


# Bad input ----------------------------------------------------------------------------------------


def test_no_action_is_refused(ext, source, target):
    source.animation_data_clear()
    refused("has no action: assign the one with its motion", target)


def test_the_same_armature_is_refused(ext, source, target):
    refused("is source and target at once", target, source=target)


def test_a_source_in_rest_position_is_refused(ext, source, target):
    source.data.pose_position = "REST"
    refused("is shown in Rest Position", target)


@pytest.mark.parametrize("which", ["source", "target"])
@pytest.mark.parametrize(("scale", "words"), [((-1, 1, 1), "is mirrored"), ((1, 1, 2), "is scaled unevenly")])
def test_mirrored_and_uneven_armatures_are_refused(ext, source, target, which, scale, words):
    rig = source if which == "source" else target
    rig.scale = scale
    rigs.update()
    refused(f"'{rig.name}' {words}", target)


def test_a_map_without_legs_is_refused(ext, source, target):
    bpy.ops.ccd_rig.retarget_map_fill()
    for name in ("thigh.L", "thigh.R"):
        target.ccd_rig.retarget.pairs[name].source = ""
    refused("has no leg", target)


def test_a_map_without_hips_is_refused(ext, source, target):
    bpy.ops.ccd_rig.retarget_map_fill()
    target.ccd_rig.retarget.pairs["spine"].source = ""
    refused("has no hips", target)


def test_a_bone_that_is_not_there_is_refused(ext, source, target):
    bpy.ops.ccd_rig.retarget_map_fill()
    target.ccd_rig.retarget.pairs["shin.L"].source = "claw"
    refused(f"'{source.name}' has no bone 'claw'", target)


def test_keys_that_are_no_numbers_are_refused(ext, source, target):
    channels = ext.module("ccd_rig.blender.keys.channels")
    curve = next(c for c in channels.fcurves_of(source) if "location" in c.data_path)
    curve.keyframe_points[10].co[1] = math.nan
    refused("is nowhere at frame", target)


def odd_source(target):
    """A source whose legs lead up at rest and down as it plays, about straight at frame 6; mapped by hand."""

    def turned_up(point):
        return point[0], point[1], 1.9 - point[2]

    parts = ("thigh", "shin", "foot", "toe")
    bones = [
        dataclasses.replace(bone, head=turned_up(bone.head), tail=turned_up(bone.tail))
        if bone.name.startswith(parts)
        else bone
        for bone in rigs.biped()
    ]
    odd = rigs.armature(bones, "Odd")
    for side in "LR":
        for part, angles in (("thigh", (math.pi + 0.5, math.pi, math.pi + 0.9)), ("shin", (0.7, 0.0, 0.0))):
            bone = odd.pose.bones[f"{part}.{side}"]
            bone.rotation_mode = "XYZ"
            for frame, angle in zip((1, 6, 10), angles, strict=True):
                bone.rotation_euler = (angle, 0.0, 0.0)
                bone.keyframe_insert("rotation_euler", frame=frame)
    pairs = target.ccd_rig.retarget.pairs
    names = {f"{part}.{side}": f"{part}.{side}" for part in parts for side in "LR"}
    for name, source in {"spine": "hips", "spine.003": "spine", "spine.006": "head", **names}.items():
        pair = pairs.add()
        pair.name, pair.source = name, source
    return odd


def test_a_rest_that_is_no_pose_is_refused_and_a_frame_helps(ext, target):
    odd = odd_source(target)
    refused("'Odd' is no pose of a body: 'foot.L' is above the hips", target, source=odd)
    assert target.ccd_rig.retarget.no_pose == "Odd"
    run(target, reference="FRAME", reference_frame=1.0)
    assert target.ccd_rig.retarget.no_pose == ""


def test_feet_stand_at_the_height_that_is_asked_for(ext, source, target):
    """Half a metre up: all of the figure, to the rounding of keys."""
    bones = ("spine", "hand.L", *FEET, "toe.L", "toe.R")
    run(target)
    before = played(target, bones)
    assert "Ground at a height of 0.000 m" in target.ccd_rig.retarget.report
    run(target, use_ground=True, ground=0.5)
    assert "Ground at a height of 0.500 m" in target.ccd_rig.retarget.report
    np.testing.assert_allclose(played(target, bones), before + np.array((0.0, 0.0, 0.5)), atol=1e-5)
    run(target, use_ground=False)
    np.testing.assert_allclose(played(target, bones), before, atol=1e-7)


@pytest.mark.parametrize(
    ("which", "frames"), [("FIRST", {1.0}), ("CURRENT", {4.0}), ("STRAIGHTEST", {5.0, 6.0, 7.0})]
)
def test_a_frame_of_the_source_becomes_its_reference(ext, target, which, frames):
    target.ccd_rig.retarget.source = odd_source(target)
    bpy.context.scene.frame_set(4)
    rigs.activate(target)
    assert bpy.ops.ccd_rig.retarget_reference(frame=which) == {"FINISHED"}
    group = target.ccd_rig.retarget
    assert group.reference == "FRAME"
    assert group.reference_frame in frames
    assert bpy.context.scene.frame_current == 4
    run(target)


def test_a_reference_is_refused_without_motion(ext, source, target):
    source.animation_data_clear()
    with pytest.raises(RuntimeError, match="has no action"):
        bpy.ops.ccd_rig.retarget_reference(frame="FIRST")
    assert target.ccd_rig.retarget.reference == "REST"


# Effectors ----------------------------------------------------------------------------------------


def test_weights_of_the_panel_bring_head_and_knees_to_the_source(ext, source, target):
    module, chosen = (ext.module(f"ccd_rig.blender.retarget.{name}") for name in ("retarget", "chosen"))
    errors = []
    for weight in (0.0, 1.0):
        group = target.ccd_rig.retarget
        group.head, group.knees, group.elbows = weight, weight, weight
        done = module.retarget_motion(bpy.context.scene, source, target, chosen.choice_of(target))
        errors.append(done.measures.errors)
    assert errors[0]["head"] > 0.005
    assert errors[1]["head"] < 1e-3
    for side in ("left", "right"):
        assert errors[1][f"knee of the {side} leg"] <= errors[0][f"knee of the {side} leg"] + 1e-6
    lines = ext.module("ccd_rig.blender.retarget.report").lines(done)
    assert any("worse knee: 0." in line and "the head: 0." in line for line in lines)


def test_sides_are_weighed_apart(ext, source, target):
    """In the panel's fields, whose right ones count only then."""
    module, chosen = (ext.module(f"ccd_rig.blender.retarget.{name}") for name in ("retarget", "chosen"))
    group = target.ccd_rig.retarget
    group.hands_right, group.knees_right = 0.0, 0.5
    assert chosen.choice_of(target).settings.hands == 1.0
    group.sides_apart, group.feet_right = True, 1.0
    settings = chosen.choice_of(target).settings
    assert (settings.hands, settings.knees, settings.feet) == ((1.0, 0.0), (0.0, 0.5), (1.0, 1.0))
    done = module.retarget_motion(bpy.context.scene, source, target, chosen.choice_of(target))
    assert done.measures.followed == {"left leg", "right leg", "knee of the right leg"}


def test_one_frame_is_enough(ext, source, target):
    module = ext.module("ccd_rig.blender.retarget.retarget")
    done = module.retarget_motion(bpy.context.scene, source, target, module.RetargetChoice(frames=(5, 5)))
    assert list(done.frames) == [5.0]


# The command line ---------------------------------------------------------------------------------


def test_the_command_line_takes_a_folder_of_clips(ext, source, tmp_path, capsys):
    clips = tmp_path / "clips"
    clips.mkdir()
    bpy.ops.wm.save_as_mainfile(filepath=str(clips / "walk.blend"))
    bpy.ops.wm.save_as_mainfile(filepath=str(clips / "again.blend"))
    (clips / "broken.bvh").write_text("nothing")
    bpy.ops.wm.read_homefile(use_empty=True)
    rigs.metarig("basic_human")
    hero, out, table = tmp_path / "hero.blend", tmp_path / "out.blend", tmp_path / "table.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(hero))
    main = ext.module("ccd_rig.blender.cli.command_line").main
    code = main(["retarget", str(clips), str(hero), "--output", str(out), "--report", str(table)])
    said = capsys.readouterr()
    assert code == 1 and "broken.bvh: cannot be read" in said.err
    found = json.loads(table.read_text())
    assert found["walk.blend"]["frames"] == found["again.blend"]["frames"] == 49
    assert "error" in found["broken.bvh"]
    bpy.ops.wm.open_mainfile(filepath=str(out))
    assert {"walk", "again"} <= set(bpy.data.actions.keys())
    assert [thing.type for thing in bpy.data.objects] == ["ARMATURE"]
    assert main(["retarget", str(clips / "walk.blend"), str(hero)]) == 2
    weighed = ["--weight", "head=1", "--weight", "hands=0", "--space", "hands=world", "--report", str(table)]
    assert main(["retarget", str(clips / "walk.blend"), str(hero), *weighed]) == 0
    assert json.loads(table.read_text())["walk.blend"]["errors"]["head"] < 1e-3
    assert set(json.loads(table.read_text())["walk.blend"]["followed"]) == {"left leg", "right leg", "head"}
    sides = ["--weight", "feet=0,1", "--speed", "0.4", "--height", "0.2", "--report", str(table)]
    assert main(["retarget", str(clips / "walk.blend"), str(hero), *sides]) == 0
    assert json.loads(table.read_text())["walk.blend"]["followed"] == ["right leg"]
    for wrong in (
        "--weight head=1,1",
        "--weight feet=1,1,1",
        "--speed 0",
        "--blend -1",
        "--weight hat=1",
        "--weight head=much",
        "--space head=moon",
        "--weight head=2",
    ):
        wrong = wrong.split()
        assert main(["retarget", str(clips / "walk.blend"), str(hero), *wrong, "--report", str(table)]) == 2
    before = hero.read_bytes()
    assert main(["retarget", str(clips / "walk.blend"), str(hero), "--report", str(hero)]) == 2
    assert hero.read_bytes() == before


def test_the_command_line_refuses_a_rest_that_is_no_pose_in_words_of_its_own(ext, target, tmp_path, capsys):
    odd_source(target)
    mapped = tmp_path / "map.json"
    pairs = {pair.name: pair.source for pair in target.ccd_rig.retarget.pairs}
    mapped.write_text(json.dumps({"bones": pairs}))
    clip, hero, table = tmp_path / "clip.blend", tmp_path / "hero.blend", tmp_path / "table.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(clip))
    for thing in [thing for thing in bpy.data.objects if thing != target]:
        bpy.data.objects.remove(thing)
    bpy.ops.wm.save_as_mainfile(filepath=str(hero))
    main = ext.module("ccd_rig.blender.cli.command_line").main
    words = ["--map", str(mapped), "--source-armature", "Odd", "--report", str(table)]
    assert main(["retarget", str(clip), str(hero), *words]) == 1
    said = capsys.readouterr()
    assert "give --reference frame" in said.err + said.out
    assert "Reference: Frame" not in said.err + said.out
