"""The pose library as JSON: there and back, bad files, and a full disk."""

from __future__ import annotations

import json
import signal

import bpy
import pytest
import rigs
from library_poses import mixed_chain, stored
from operator_calls import fails


@pytest.fixture
def rig(ext):
    return mixed_chain(ext)


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
        (json.dumps({**head, "poses": [good, bad]}), "poses[1].rotations['bone_1'] must be a list of 4"),
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
        (
            '[{"name": "A", "rotations": {"%s": [1, 0, 0]}}]' % ("n" * 100_000),
            "must be a list of 4, not [1, 0, 0]",
        ),
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
