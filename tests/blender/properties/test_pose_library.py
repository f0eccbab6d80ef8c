"""The pose library: captured, stored, exchanged as JSON, and what solves and bakes start again from."""

from __future__ import annotations

import json
import math
import signal

import bpy
import pytest
import rigs
from linked_rigs import linked, overridden
from mathutils import Euler, Quaternion
from operator_calls import both_ways, fails, reasons, select, undo_push

SOLVE = 1e-3  # [m]


@pytest.fixture
def library(ext):
    return ext.module("ccd_rig.blender.properties.pose_library")


@pytest.fixture
def rig(ext):
    """Three bones along Z, each in another rotation mode; "Hand" is a constraint of the upper two."""
    made = rigs.chain(3)
    for bone, mode in zip(made.pose.bones, ("QUATERNION", "ZXY", "AXIS_ANGLE"), strict=True):
        bone.rotation_mode = mode
    row = made.ccd_rig.constraints.add()
    row.name, row.tip, row.chain_length = "Hand", "bone_2", 2
    row.target = rigs.empty("Goal", (1.0, 0.5, 1.5))
    select(ext, made, "bone_0")
    rigs.update()
    return made


def turn(degrees, axis="X"):
    return Quaternion([float(axis == each) for each in "XYZ"], math.radians(degrees))


def same(one, other):
    return one.rotation_difference(other).angle < 1e-4 or one.rotation_difference(-other).angle < 1e-4


def stored(library, name="Rig"):
    return library.entries(bpy.data.objects[name])


def read(rig):
    """What the bones' channels mean, whatever their modes."""
    return {bone.name: bone.matrix_basis.to_quaternion() for bone in rig.pose.bones}


def key(rig, bone, frame, rotation):
    """Turn a bone and key its own channel."""
    pose_bone = rig.pose.bones[bone]
    rigs.set_rotation(pose_bone, rotation)
    modes = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    pose_bone.keyframe_insert(modes.get(pose_bone.rotation_mode, "rotation_euler"), frame=frame)


# Capturing --------------------------------------------------------------------------------------------------


def test_capture_the_present_pose(ext, library, rig, capfd):
    wanted = {"bone_0": turn(20), "bone_1": turn(50, "Z"), "bone_2": turn(-70, "Y")}
    for bone, rotation in wanted.items():
        rigs.set_rotation(rig.pose.bones[bone], rotation)
    assert bpy.ops.ccd_rig.pose_capture() == {"FINISHED"}
    assert "Captured 1 pose of 2 bones" in capfd.readouterr().out
    bpy.ops.ccd_rig.pose_capture(bones="SELECTED", name="Pose")
    bpy.ops.ccd_rig.pose_capture(bones="SELECTED", name="Low")
    chains, selected, low = stored(library)
    assert [entry.name for entry in (chains, selected, low)] == ["Pose", "Pose.001", "Low"]
    assert list(chains.rotations) == ["bone_1", "bone_2"]
    assert list(selected.rotations) == ["bone_0"]
    for entry in (chains, selected):
        for bone, rotation in entry.rotations.items():
            assert same(rotation, wanted[bone]), bone
    assert rig.ccd_rig.active_pose == 2


def test_renaming_keeps_names_unique(library, rig):
    for _ in range(2):
        bpy.ops.ccd_rig.pose_capture()
    rig.ccd_rig.poses[1].name = "Pose"
    assert [entry.name for entry in stored(library)] == ["Pose", "Pose.001"]
    rig.ccd_rig.poses[0].name = ""
    assert rig.ccd_rig.poses[0].name == "Pose"


def test_capture_says_what_is_missing(ext, rig):
    select(ext, rig)
    fails(bpy.ops.ccd_rig.pose_capture, "no bone is selected", bones="SELECTED")
    fails(bpy.ops.ccd_rig.pose_capture, "'Rig' has no action", source="ACTION")
    rig.pose.bones["bone_1"].rotation_euler.x = math.nan
    fails(bpy.ops.ccd_rig.pose_capture, "bone 'bone_1' has a rotation that is not a number")
    rig.pose.bones["bone_1"].rotation_euler.x = 0.0
    rig.ccd_rig.constraints.clear()
    fails(bpy.ops.ccd_rig.pose_capture, "has no CCD constraint with bones: choose Selected Bones")
    assert len(rig.ccd_rig.poses) == 0


def test_capture_an_action_without_touching_the_scene(library, rig):
    """Entries are what Blender plays at each frame, though no frame is visited."""
    rng_turns = {1: (10, -20, 5), 9: (60, 30, -80), 21: (-40, 75, 120)}
    for frame, degrees in rng_turns.items():
        for bone, angle, axis in zip(("bone_0", "bone_1", "bone_2"), degrees, "XYZ", strict=True):
            key(rig, bone, frame, turn(angle, axis))
    scene = bpy.context.scene
    scene.frame_set(5)
    before = read(rig)
    assert bpy.ops.ccd_rig.pose_capture(source="ACTION", step=6) == {"FINISHED"}
    assert scene.frame_current == 5
    assert read(rig) == before
    found = stored(library)
    name = rig.animation_data.action.name
    assert [entry.name for entry in found] == [f"{name} {frame}" for frame in (1, 7, 13, 19, 21)]
    for entry, frame in zip(found, (1, 7, 13, 19, 21), strict=True):
        scene.frame_set(frame)
        assert set(entry.rotations) == {"bone_1", "bone_2"}
        for bone, rotation in entry.rotations.items():
            assert same(rotation, read(rig)[bone]), (bone, frame)


def test_an_actions_own_range_and_its_size(ext, library, rig):
    key(rig, "bone_1", 1, turn(10))
    key(rig, "bone_1", 5000, turn(90))
    options = {"source": "ACTION", "step": 4}
    fails(bpy.ops.ccd_rig.pose_capture, "would give 1251 poses, more than 1000", **options)
    action = rig.animation_data.action
    action.use_frame_range = True
    action.frame_start, action.frame_end = 3, 9
    bpy.ops.ccd_rig.pose_capture(**options)
    assert [entry.name for entry in stored(library)] == [f"{action.name} {frame}" for frame in (3, 7, 9)]
    select(ext, rig, "bone_0")
    words = f"action '{action.name}' turns none of the bones bone_0"
    fails(bpy.ops.ccd_rig.pose_capture, words, bones="SELECTED", **options)


def test_what_is_not_animated_or_muted_is_as_it_stands(library, channels, rig):
    """Of the Euler angles of bone_1 only X plays; Y has no keys and Z is muted."""
    bone = rig.pose.bones["bone_1"]
    bone.rotation_euler = (0.0, 0.0, 0.0)
    for frame, angle in ((1, 0.0), (11, 1.0)):
        bone.rotation_euler = (angle, 0.0, angle)
        bone.keyframe_insert("rotation_euler", index=0, frame=frame)
        bone.keyframe_insert("rotation_euler", index=2, frame=frame)
    for curve in channels.fcurves_of(rig):
        curve.mute = curve.array_index == 2
    bone.rotation_euler = (0.0, 0.4, 0.25)
    bpy.ops.ccd_rig.pose_capture(source="ACTION", step=10)
    first, last = stored(library)
    assert same(first.rotations["bone_1"], Euler((0.0, 0.4, 0.25), "ZXY").to_quaternion())
    assert same(last.rotations["bone_1"], Euler((1.0, 0.4, 0.25), "ZXY").to_quaternion())


def test_a_keyed_rotation_mode_is_honoured(library, rig):
    bone = rig.pose.bones["bone_1"]
    bone.rotation_mode = "QUATERNION"
    bone.rotation_quaternion = turn(30)
    bone.keyframe_insert("rotation_quaternion", frame=1)
    bone.keyframe_insert("rotation_mode", frame=1)
    bone.rotation_mode = "XYZ"
    bpy.ops.ccd_rig.pose_capture(source="ACTION")
    (entry,) = stored(library)
    assert same(entry.rotations["bone_1"], turn(30))


@pytest.fixture
def asset(rig):
    """The action "Fist", a pose asset that the armature does not use."""
    key(rig, "bone_1", 4, turn(33))
    key(rig, "bone_0", 4, turn(11))
    action = rig.animation_data.action
    action.name, action.use_fake_user = "Fist", True
    action.asset_mark()
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, Quaternion())
    return action


def test_capture_a_pose_asset(ext, library, rig, asset):
    assert bpy.ops.ccd_rig.pose_capture(source="ASSET", asset="Fist") == {"FINISHED"}
    (entry,) = stored(library)
    assert (entry.name, list(entry.rotations)) == ("Fist", ["bone_1"])
    assert same(entry.rotations["bone_1"], turn(33))
    assert rig.animation_data is None
    assert all(same(each, Quaternion()) for each in read(rig).values())


def test_what_is_no_pose_asset(ext, library, rig, asset):
    bpy.data.actions.new("Plain")
    capture = bpy.ops.ccd_rig.pose_capture
    fails(capture, "choose a pose asset; pose assets in this file: Fist", source="ASSET")
    fails(capture, "there is no action 'Fast'", source="ASSET", asset="Fast")
    fails(capture, "'Plain' is not a pose asset: mark it as an asset", source="ASSET", asset="Plain")
    select(ext, rig, "bone_2")
    words = "action 'Fist' turns none of the bones bone_2"
    fails(capture, words, source="ASSET", asset="Fist", bones="SELECTED")
    other = rigs.chain(3, name="Other")
    rigs.activate(other)
    key(other, "bone_1", 1, turn(1))
    key(other, "bone_1", 9, turn(2))
    other.animation_data.action.name = "Walk"
    other.animation_data.action.asset_mark()
    rigs.activate(rig)
    fails(capture, "has frames 1 to 9, but a pose asset has one", source="ASSET", asset="Walk")
    material = bpy.data.materials.new("Paint")
    material.diffuse_color = (1.0, 0.0, 0.0, 1.0)
    material.keyframe_insert("diffuse_color", frame=1)
    material.animation_data.action.name = "Colour"
    material.animation_data.action.asset_mark()
    fails(capture, "action 'Colour' is not for objects", source="ASSET", asset="Colour")
    assert len(rig.ccd_rig.poses) == 0


# Stored -----------------------------------------------------------------------------------------------------


def test_saved_and_opened_again(library, rig, tmp_path):
    rigs.set_rotation(rig.pose.bones["bone_2"], turn(77))
    bpy.ops.ccd_rig.pose_capture(name="High")
    before = stored(library)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "poses.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "poses.blend"))
    assert stored(library) == before


def test_apply_and_remove(library, rig):
    wanted = {"bone_1": turn(50, "Z"), "bone_2": turn(-70, "Y")}
    for bone, rotation in wanted.items():
        rigs.set_rotation(rig.pose.bones[bone], rotation)
    bpy.ops.ccd_rig.pose_capture()
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, turn(5))
    bpy.ops.ccd_rig.pose_capture(name="Other")
    rig.ccd_rig.active_pose = 0
    assert bpy.ops.ccd_rig.pose_apply() == {"FINISHED"}
    for bone, rotation in {**wanted, "bone_0": turn(5)}.items():
        assert same(read(rig)[bone], rotation), bone
    bpy.ops.ccd_rig.pose_remove()
    assert [entry.name for entry in stored(library)] == ["Other"]
    bpy.ops.ccd_rig.pose_capture()
    bpy.ops.ccd_rig.pose_remove(all=True)
    assert stored(library) == ()


def test_undo(library, rig):
    def state():
        again = bpy.data.objects["Rig"]
        return [e.name for e in stored(library)], [tuple(each) for each in read(again).values()]

    rigs.set_rotation(rig.pose.bones["bone_2"], turn(77))
    undo_push()
    for name in ("pose_capture", "pose_apply", "pose_remove"):
        if name == "pose_apply":
            rigs.set_rotation(bpy.data.objects["Rig"].pose.bones["bone_2"], turn(5))
            undo_push()
        before = state()
        assert getattr(bpy.ops.ccd_rig, name)() == {"FINISHED"}
        undo_push()
        both_ways(before, state(), state)


def test_an_override_keeps_added_poses(library, rig, tmp_path):
    bpy.ops.ccd_rig.pose_capture(name="Theirs")
    bpy.ops.object.mode_set(mode="OBJECT")
    made = overridden(rig, tmp_path)
    rigs.activate(made)
    for name, degrees in (("Mine", 44), ("Mine too", 55)):
        rigs.set_rotation(made.pose.bones["bone_1"], turn(degrees))
        assert bpy.ops.ccd_rig.pose_capture(name=name) == {"FINISHED"}
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (again,) = [o for o in bpy.data.objects if o.override_library and o.type == "ARMATURE"]
    found = library.entries(again)
    assert [entry.name for entry in found] == ["Theirs", "Mine", "Mine too"]
    assert same(found[1].rotations["bone_1"], turn(44))
    assert same(found[2].rotations["bone_1"], turn(55))
    rigs.activate(again)
    again.ccd_rig.active_pose = 0
    fails(bpy.ops.ccd_rig.pose_remove, "pose 'Theirs' comes from the library")
    bpy.ops.ccd_rig.pose_remove(all=True)
    assert [entry.name for entry in library.entries(again)] == ["Theirs"]


def test_an_override_of_a_rig_without_a_library(library, rig, tmp_path):
    bpy.ops.object.mode_set(mode="OBJECT")
    rigs.activate(overridden(rig, tmp_path))
    bpy.ops.ccd_rig.pose_capture(name="Mine")
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (again,) = [o for o in bpy.data.objects if o.override_library and o.type == "ARMATURE"]
    assert [(e.name, list(e.rotations)) for e in library.entries(again)] == [("Mine", ["bone_1", "bone_2"])]


def test_overrides_whose_library_is_missing_leave_the_others_alone(ext, rig, tmp_path):
    """Blender puts placeholders without bones in place of what it does not find."""
    bpy.ops.object.mode_set(mode="OBJECT")
    made = overridden(rig, tmp_path)
    made.data.override_create(remap_local_usages=True)  # so that its bones stay when the library is gone
    rigs.activate(made)
    bpy.ops.ccd_rig.pose_capture(name="Mine")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    for each in tmp_path.glob("*.blend"):
        if each.name != "shot.blend":
            each.unlink()
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (lost,) = [each for each in bpy.data.objects if each.override_library]
    assert lost.pose.bones and lost.override_library.reference.pose is None
    ext.module("ccd_rig.blender.properties.overrides").keep_all()  # as a handler does on opening and saving


# Bones that are gone ----------------------------------------------------------------------------------------


@pytest.fixture
def lost(rig):
    """A pose of bones of which one is renamed, and one of a bone that is gone altogether."""
    bpy.ops.ccd_rig.pose_capture(name="Both")
    bpy.ops.ccd_rig.pose_capture(name="One", bones="SELECTED")
    rigs.forget_names(rig)
    rig.data.bones["bone_1"].name = "elbow"
    rig.data.bones["bone_0"].name = "shoulder"
    rigs.update()
    return rig


def found(ext, rig):
    checks = ext.module("ccd_rig.blender.checks.setup")
    return {p.where: (p.severity, p.message) for p in checks.problems(rig, bpy.context.scene)}


def test_checks_name_missing_bones(ext, library, lost):
    lost.ccd_rig.solver.restarts = 0
    problems = found(ext, lost)
    assert problems["Both"][0] == "WARNING"
    assert "Pose 'Both': bone 'bone_1' is not in armature 'Rig' (renamed or deleted?)" in problems["Both"][1]
    assert problems["One"][0] == "WARNING"
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    lost.ccd_rig.solver.restarts = 1
    problems = found(ext, lost)
    assert (problems["Both"][0], problems["One"][0]) == ("WARNING", "ERROR")
    words = "Pose 'One': none of its bones ('bone_0') is in armature 'Rig'"
    assert words in problems["One"][1]
    fails(bpy.ops.ccd_rig.solve, words)
    fails(bpy.ops.ccd_rig.bake, words, frame_start=1, frame_end=2)
    bpy.ops.ccd_rig.pose_remove()
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}


def test_apply_with_missing_bones(ext, lost, capfd):
    fails(bpy.ops.ccd_rig.pose_apply, "Pose 'One': none of its bones ('bone_0') is in armature 'Rig'")
    lost.ccd_rig.active_pose = 0
    rigs.set_rotation(lost.pose.bones["bone_2"], turn(50))
    assert bpy.ops.ccd_rig.pose_apply() == {"FINISHED"}
    assert "bone 'bone_1' is not in armature 'Rig'" in capfd.readouterr().out
    assert same(read(lost)["bone_2"], Quaternion())


def test_a_rotation_that_is_none(ext, rig):
    bpy.ops.ccd_rig.pose_capture()
    rig.ccd_rig.poses[0].rotations[0].rotation = (0.0, 0.0, 0.0, 0.0)
    words = "pose entry 'Pose': rotation of bone 'bone_1' must be a unit quaternion"
    assert words in found(ext, rig)["Rig"][1]
    fails(bpy.ops.ccd_rig.pose_apply, words)
    assert bpy.ops.ccd_rig.pose_remove() == {"FINISHED"}


# JSON -------------------------------------------------------------------------------------------------------


def test_json_there_and_back(library, rig, tmp_path, capfd):
    rigs.pose_randomly(rig, 5)
    bpy.ops.ccd_rig.pose_capture(name="Ünïcode")
    bpy.ops.ccd_rig.pose_capture(name="Base", bones="SELECTED")
    before, path = stored(library), tmp_path / "poses"
    assert bpy.ops.ccd_rig.poses_export(filepath=str(path) + ".json") == {"FINISHED"}
    text = path.with_suffix(".json").read_text(encoding="utf-8")
    assert json.loads(text)["format"] == "ccd_rig.poses"
    bpy.ops.ccd_rig.pose_remove(all=True)
    assert bpy.ops.ccd_rig.poses_import(filepath=str(path) + ".json") == {"FINISHED"}
    assert f"Read 2 poses from {path}.json" in capfd.readouterr().out
    assert stored(library) == before
    bpy.ops.ccd_rig.poses_export(filepath=str(path) + "2.json")
    assert (tmp_path / "poses2.json").read_text(encoding="utf-8") == text


def test_bad_files_are_named(library, rig, tmp_path, capfd):
    path = tmp_path / "bad.json"
    load = bpy.ops.ccd_rig.poses_import
    fails(load, f"cannot read {path}: No such file or directory", filepath=str(path))
    fails(load, f"cannot read {tmp_path}: Is a directory", filepath=str(tmp_path))
    path.write_bytes(b"\xff\xfe\x00\x01")
    fails(load, f"cannot read {path}: it is not text", filepath=str(path))
    head = {"format": "ccd_rig.poses", "version": 1}
    good = {"name": "A", "rotations": {"bone_1": [1, 0, 0, 0]}}
    bad = {"name": "B", "rotations": {"bone_1": [1, 0, 0]}}
    for content, words in (
        ("{", "the pose library is not JSON"),
        (json.dumps(head), "the pose library: the field 'poses' is missing"),
        (json.dumps({**head, "poses": [good, bad]}), "poses[1].rotations['bone_1'] must be a list of four"),
        (
            json.dumps({**head, "poses": [good, {"name": "C", "rotations": {"tail": [1, 0, 0, 0]}}]}),
            "Pose 'C': none of its bones ('tail') is in armature 'Rig'",
        ),
    ):
        path.write_text(content, encoding="utf-8")
        fails(load, f"{path}: {words}", filepath=str(path))
    assert stored(library) == ()
    both = {"name": "D", "rotations": {"bone_1": [1, 0, 0, 0], "tail": [1, 0, 0, 0]}}
    path.write_text(json.dumps({**head, "poses": [both]}), encoding="utf-8")
    assert load(filepath=str(path)) == {"FINISHED"}
    assert "Pose 'D': bone 'tail' is not in armature 'Rig'" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("poses", "words"),
    [
        ('[{"name": "\\udc80", "rotations": {"bone_1": [1, 0, 0, 0]}}]', "no letter"),
        ('[{"name": "A", "rotations": {"\\udc80": [1, 0, 0, 0]}}]', "no letter"),
        ('[{"name": "A", "rotations": {"bone_1": [1, 0, 0, %s]}}]' % ("1" * 5_000), "too many digits"),
        (
            '[{"name": "A", "rotations": {"bone_1": [1, 0, 0, 0], "bone_1": [0, 1, 0, 0]}}]',
            'the field "bone_1" stands twice',
        ),
        ('[{"name": "%s", "rotations": {"tail": [1, 0, 0, 0]}}]' % ("n" * 100_000), "none of its bones"),
        ('[{"name": "A", "rotations": {"%s": [1, 0, 0]}}]' % ("n" * 100_000), "list of four numbers"),
    ],
)
def test_hostile_files_are_refused_in_a_line(library, rig, tmp_path, capfd, poses, words):
    """The pose before the bad one is not added either."""
    path = tmp_path / "bad.json"
    good = '{"name": "Good", "rotations": {"bone_1": [1, 0, 0, 0]}}'
    path.write_text(
        f'{{"format": "ccd_rig.poses", "version": 1, "poses": [{good}, {poses[1:]}}}', encoding="utf-8"
    )
    with pytest.raises(RuntimeError) as told:
        bpy.ops.ccd_rig.poses_import(filepath=str(path))
    assert words in str(told.value)
    assert "Traceback" not in str(told.value) + capfd.readouterr().err
    assert len(str(told.value)) < 1_000
    assert stored(library) == ()


@pytest.mark.parametrize("names", ["different", "alike"])
def test_many_poses_are_read(ext, rig, tmp_path, monkeypatch, names):
    """No name is compared with all others: that would take a minute."""
    turned = {"bone_1": [1, 0, 0, 0], "bone_2": [1, 0, 0, 0]}
    poses_module = ext.module("ccd_rig.blender.properties.pose_library")
    looked: list[str] = []
    monkeypatch.setattr(poses_module, "unique_name", lambda name, _taken: looked.append(name) or name)
    for count in (1_000, 8_000):
        poses = [
            {"name": f"Pose {i}" if names == "different" else "Pose", "rotations": turned}
            for i in range(count)
        ]
        content = {"format": "ccd_rig.poses", "version": 1, "poses": poses}
        path = tmp_path / "many.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        assert bpy.ops.ccd_rig.poses_import(filepath=str(path)) == {"FINISHED"}
        found = [pose.name for pose in bpy.context.object.ccd_rig.poses]
        assert len(found) == count == len(set(found))
        bpy.ops.ccd_rig.pose_remove(all=True)
    assert looked == []


def test_a_full_disk_leaves_the_old_file(rig, tmp_path):
    import resource

    bpy.ops.ccd_rig.pose_capture()
    path = tmp_path / "poses.json"
    path.write_text("old", encoding="utf-8")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a full disk sends no signal
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, limits[1]))  # no file may grow beyond this
    try:
        fails(bpy.ops.ccd_rig.poses_export, f"cannot write {path}: ", filepath=str(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    nowhere = tmp_path / "no" / "poses.json"
    fails(bpy.ops.ccd_rig.poses_export, f"cannot write {nowhere}: there is no folder", filepath=str(nowhere))
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("poses.json", "old")]


# Starting again ---------------------------------------------------------------------------------------------

AXES = ((1, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 0))
RANGES = ((-1.7, 0.9), (-2.4, 1.0), (-1.3, 1.2), (-0.5, 1.9))  # [radians]
ANGLES = (-1.46, 0.75, 1.19, 1.43)  # [radians] one way to reach BEHIND
BEHIND = (-0.344, 1.203, 1.569)  # [m] a solve that starts at rest ends in a corner of the limits


@pytest.fixture
def stuck(ext):
    """Four hinges at rest, a target that they reach only from elsewhere, and no other starts yet."""
    made = rigs.chain(4)
    made.ccd_rig.solver.restarts = 0
    for bone, axis, (lower, upper) in zip(made.pose.bones, AXES, RANGES, strict=True):
        limit = bone.ccd_rig.limit
        limit.kind, limit.axis, limit.hinge_lower, limit.hinge_upper = "HINGE", axis, lower, upper
    row = made.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Hand", "bone_3", rigs.empty("Goal", BEHIND)
    rigs.activate(made)
    rigs.update()
    return made


def capture_near(rig, off=0.1):
    """A pose near to one that reaches the target; the bones are at rest again."""
    for i, (axis, angle) in enumerate(zip(AXES, ANGLES, strict=True)):
        rigs.set_rotation(rig.pose.bones[f"bone_{i}"], Quaternion(axis, angle + off))
    bpy.ops.ccd_rig.pose_capture(name="Near")
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, Quaternion())
    rigs.update()


def distance(rig):
    rigs.update()
    evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return (evaluated.pose.bones["bone_3"].tail - bpy.data.objects["Goal"].matrix_world.translation).length


def rest(rig):
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, Quaternion())
    rigs.update()


def test_solve_starts_again_from_the_library(stuck):
    for restarts, captured, arrives in (
        (0, False, False),
        (1, False, False),
        (0, True, False),
        (1, True, True),
    ):
        rest(stuck)
        if captured and not stuck.ccd_rig.poses:
            capture_near(stuck)
        stuck.ccd_rig.solver.restarts = restarts
        bpy.ops.ccd_rig.solve()
        assert (distance(stuck) < SOLVE) == arrives, (restarts, captured, distance(stuck))


def test_the_nearest_poses_come_first(stuck):
    """Of five poses only the one that is nearest to the target is tried, wherever it stands in the list."""
    capture_near(stuck)
    for degrees in (10, 20, 30, 40):
        for bone, axis in zip(stuck.pose.bones, AXES, strict=True):
            rigs.set_rotation(bone, Quaternion(axis, math.radians(degrees)))
        bpy.ops.ccd_rig.pose_capture()
    rest(stuck)
    stuck.ccd_rig.solver.restarts = 1
    bpy.ops.ccd_rig.solve()
    assert distance(stuck) < SOLVE


def test_poses_of_other_chains_are_no_starts(ext, stuck):
    """They would use up the only start there is."""
    with rigs.edit_bones(stuck) as bones:
        other = bones.new("tail")
        other.head, other.tail = (5, 0, 0), (6, 0, 0)
    select(ext, stuck, "tail")
    bpy.ops.ccd_rig.pose_capture(bones="SELECTED", name="Tail")
    capture_near(stuck)
    stuck.ccd_rig.solver.restarts = 1
    bpy.ops.ccd_rig.solve()
    assert distance(stuck) < SOLVE


def baked(rig, ext, first=1, last=8, **options):
    bake = ext.module("ccd_rig.blender.bake.bake")
    return bake.bake(bpy.context.scene, rig, bake.BakeSettings(first, last, **options))


def poses_of(rig, frames):
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found.append([tuple(bone.matrix_basis.to_quaternion()) for bone in rig.pose.bones])
    return found


@pytest.fixture
def approaching(stuck):
    """The target goes in one frame from beside the chain's rest to where a following chain gets stuck."""
    goal = bpy.data.objects["Goal"]
    for frame, place in ((1, (0.3, 0.4, 3.5)), (2, BEHIND)):
        goal.location = place
        goal.keyframe_insert("location", frame=frame)
    return stuck


def test_a_bakes_first_frame_starts_from_the_library(ext, stuck):
    assert baked(stuck, ext).unsolved_count() == 8
    stuck.animation_data_clear()
    rest(stuck)
    capture_near(stuck)
    stuck.ccd_rig.solver.restarts = 1
    report = baked(stuck, ext)
    assert report.unsolved_count() == 0
    frames = poses_of(stuck, range(1, 9))
    assert all(frame == frames[0] for frame in frames)  # it is followed, not solved anew


def test_a_bake_that_stalls_starts_again(ext, approaching):
    missed = {row.frame for row in baked(approaching, ext).unsolved()}
    assert missed == set(range(2, 9))
    approaching.animation_data_clear()
    capture_near(approaching, 0.0)
    approaching.ccd_rig.solver.restarts = 1
    report = baked(approaching, ext)
    assert report.unsolved_count() == 0
    assert {row.status for row in report.entries} == {"CONVERGED"}
    frames = poses_of(approaching, range(2, 9))
    assert all(frame == frames[0] for frame in frames)  # once there it is followed


def test_a_bake_never_jumps_without_arriving(ext, approaching):
    """Starts that do not reach the target change no frame that follows another."""
    baked(approaching, ext)
    before = poses_of(approaching, range(1, 9))
    approaching.animation_data_clear()
    rest(approaching)
    bpy.ops.ccd_rig.pose_capture(name="Rest")
    approaching.ccd_rig.solver.restarts = 1
    report = baked(approaching, ext)
    assert report.unsolved_count() == 7
    assert poses_of(approaching, range(1, 9)) == before


def test_the_command_line_bakes_with_the_library(ext, stuck, tmp_path):
    cli = ext.module("ccd_rig.blender.cli.command_line")
    capture_near(stuck)
    stuck.ccd_rig.solver.restarts = 1
    shot, report = tmp_path / "shot.blend", tmp_path / "report.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    words = ["bake", str(shot), "--frames", "1-3", "--report", str(report), "--strict"]
    assert cli.main(words) == 0
    assert json.loads(report.read_text(encoding="utf-8"))["frames_reached"] == 3
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    bpy.data.objects["Rig"].ccd_rig.poses.clear()
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    assert cli.main(words) == 3


# Greyed out -------------------------------------------------------------------------------------------------


def test_grey(ext, library, rig, tmp_path):
    mine = ("pose_capture", "pose_remove", "pose_apply", "poses_export", "poses_import")
    for words in reasons(*mine[1:4]).values():
        assert "The pose library of 'Rig' is empty: capture a pose first" in words
    bpy.ops.ccd_rig.pose_capture()
    rig.ccd_rig.active_pose = 7
    for words in reasons("pose_remove", "pose_apply").values():
        assert "Choose a pose in the list" in words
    bpy.ops.object.mode_set(mode="EDIT")
    for words in reasons(*mine).values():
        assert "Leave Edit Mode" in words
    bpy.ops.object.mode_set(mode="OBJECT")
    rigs.empty("Thing")
    for words in reasons(*mine).values():
        assert "Select an armature" in words
    rigs.activate(linked(rig, tmp_path))
    for words in reasons(*mine).values():
        assert "'Rig' is linked from a library: make a library override of it first" in words
