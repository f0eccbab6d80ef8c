"""Files that commands are given: of newer versions, behind links, with odd names, in the way."""

from __future__ import annotations

import json
import os
import sys

import bpy
import pytest
from command_processes import keys_in


def test_not_a_blend_file(cli, tmp_path, capfd):
    path = tmp_path / "text.blend"
    path.write_text("hello")
    assert cli.main(["check", str(path)]) == 2
    assert f"cannot open {path}" in capfd.readouterr().err


@pytest.mark.parametrize("start", [b"BLENDER17-01v9902", b"BLENDER99-99v9999"])
def test_a_file_that_a_newer_blender_saved(cli, tmp_path, capfd, start):
    path = tmp_path / "later.blend"
    path.write_bytes(start + bytes(200))
    assert cli.main(["check", str(path)]) == 2
    said = capfd.readouterr().err.splitlines()[-1]
    assert f"cannot open {path}" in said
    assert "newer" in said


def as_if_newer(path):
    """Let a file say that the next version of Blender has saved it."""
    content = path.read_bytes()
    at = content.index(b"v", len(b"BLENDER"))
    end = at + 1
    while content[end : end + 1].isdigit():
        end += 1
    version = int(content[at + 1 : end]) + 1
    path.write_bytes(content[: at + 1] + str(version).zfill(end - at - 1).encode() + content[end:])


def test_what_a_newer_blender_saved_is_not_saved_again(cli, shot, tmp_path, capfd):
    bpy.ops.wm.save_as_mainfile(filepath=str(shot), compress=False)
    as_if_newer(shot)
    output, report = tmp_path / "out.blend", tmp_path / "out.json"
    words = ["bake", str(shot), "--output", str(output), "--report", str(report), "--frames", "1-2"]
    assert cli.main(words) == 2
    said = capfd.readouterr().err.splitlines()[-1]
    assert "would be lost" in said and "--allow-data-loss" in said
    assert not output.exists() and not report.exists()
    assert cli.main([*words[:2], *words[4:]]) == 0  # a report alone loses nothing
    assert cli.main([*words, "--allow-data-loss"]) == 0
    assert output.exists()


@pytest.mark.parametrize("way", ["itself", "link", "hard link", "other spelling"])
@pytest.mark.parametrize("other", ["file", "output"])
def test_a_report_takes_no_other_files_place(cli, shot, tmp_path, capfd, monkeypatch, way, other):
    output = tmp_path / "out.blend"
    place = {"file": shot, "output": output}[other]
    report = tmp_path / "other.blend"
    if way == "itself":
        report = place
    elif way == "link":
        report.symlink_to(place.name)
    elif way == "hard link":
        if other == "output":
            output.write_bytes(b"old")
        os.link(place, report)
    else:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "deep").mkdir()
        report = f"deep/../{place.name}"
    before = {each: each.read_bytes() for each in (shot, output) if each.exists()}
    words = ["bake", str(shot), "--output", str(output), "--report", str(report), "--frames", "1-2"]
    assert cli.main(words) == 2
    assert "the report would take the place of" in capfd.readouterr().err
    assert {each: each.read_bytes() for each in (shot, output) if each.exists()} == before


@pytest.mark.parametrize("option", ["", "--output", "--report"])
def test_links_that_go_round(cli, shot, tmp_path, capfd, option):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    words = [str(shot), option, str(tmp_path / "a")] if option else [str(tmp_path / "a")]
    words += ["--output", str(tmp_path / "out.blend")] if option != "--output" else []
    assert cli.main(["bake", *words]) == (4 if option else 2)
    (said,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("ccd_rig: error")]
    assert "symbolic links" in said


@pytest.mark.parametrize("option", ["", "--output", "--report"])
def test_names_that_are_too_long(cli, shot, tmp_path, capfd, option):
    name = str(tmp_path / ("n" * 300))
    words = [str(shot), option, name] if option else [name, "--output", str(tmp_path / "out.blend")]
    assert cli.main(["bake", *words]) == (4 if option else 2)
    (said,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("ccd_rig: error")]
    assert "too long" in said


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_the_longest_names_that_there_are(cli, shot, tmp_path, option):
    path = tmp_path / ("n" * 249 + ".blend")
    assert cli.main(["bake", str(shot), option, str(path), "--frames", "1-2"]) == 0
    assert path.exists()
    deep = tmp_path
    while len(str(deep)) < 1100:
        deep = deep / ("d" * 200)
    deep.mkdir(parents=True)
    path = deep / "out.blend"
    assert cli.main(["bake", str(shot), option, str(path), "--frames", "1-2"]) == (
        4 if option == "--output" else 0
    )
    assert path.exists() == (option == "--report")


def test_a_file_deeper_than_blender_reads(cli, shot, tmp_path, capfd):
    deep = tmp_path
    while len(str(deep)) < 1100:
        deep = deep / ("d" * 200)
    deep.mkdir(parents=True)
    (deep / "shot.blend").write_bytes(shot.read_bytes())
    assert cli.main(["check", str(deep / "shot.blend")]) == 2
    assert "longer than the 1023 bytes" in capfd.readouterr().err


@pytest.mark.parametrize("option", ["--armature", "--constraint", "--reference-keys"])
def test_names_of_another_encoding(cli, shot, tmp_path, capfd, option):
    words = ["bake", str(shot), "--report", str(tmp_path / "r.json"), option, "R\udcffg"]
    words += ["--keys", "reference"] if option == "--reference-keys" else []
    assert cli.main(words) == 2
    assert "not a name in UTF-8" in capfd.readouterr().err


def test_paths_of_another_encoding(cli, shot, tmp_path, capfd):
    odd = tmp_path / "odd\udcff"
    odd.mkdir()
    for name in ("shot.blend", "clip.bvh"):
        (odd / name).write_bytes(shot.read_bytes())
    for words, code in (
        (["check", odd / "shot.blend"], 2),
        (["bake", odd / "shot.blend", "--report", tmp_path / "r.json"], 2),
        (["bake", shot, "--output", odd / "out.blend"], 4),
        (["farm", odd / "shot.blend", "--output", tmp_path / "job"], 2),
        (["retarget", odd / "clip.bvh", shot, "--report", tmp_path / "r.json"], 2),
        (["retarget", odd, shot, "--report", tmp_path / "r.json"], 2),
    ):
        assert cli.main(list(map(str, words))) == code
        [line] = [line for line in capfd.readouterr().err.splitlines() if "ccd_rig: " in line]
        assert r"odd\udcff" in line
        assert "not in UTF-8" in line
    assert sorted(path.name for path in odd.iterdir()) == ["clip.bvh", "shot.blend"]


def test_names_are_no_commands_to_a_terminal(cli, shot, edit, tmp_path, capfd):
    def rename(rig):
        rig.name = "Rig\x1b[2J\nccd_rig: error"

    edit(rename)
    report = tmp_path / "r.json"
    assert cli.main(["bake", str(shot), "--report", str(report)]) == 0
    assert cli.main(["check", str(shot)]) == 0
    assert cli.main(["check", str(shot), "--armature", "\x1b[2J"]) == 1
    assert cli.main(["bake", str(shot), "--frames", "\x1b[2J"]) == 2
    said = capfd.readouterr()
    assert "\x1b" not in said.out + said.err
    assert r"Rig\x1b[2J" in said.out
    assert json.loads(report.read_text())["armature"] == "Rig\x1b[2J\nccd_rig: error"


def test_the_open_file_is_used_when_none_is_named(cli, shot, tmp_path):
    assert cli.main(["bake", "--report", str(tmp_path / "r.json"), "--frames", "1-2"]) == 0


def test_the_file_itself_is_replaced_only_when_named(channels, cli, shot):
    assert cli.main(["bake", str(shot), "--output", str(shot)]) == 0
    assert keys_in(shot, channels)
    assert [p.name for p in shot.parent.iterdir()] == ["shot.blend"]


def test_relative_paths_in_the_file_still_lead_there(cli, shot, edit, tmp_path):
    library = tmp_path / "library.blend"
    bpy.data.libraries.write(str(library), {bpy.data.objects["Target"]})

    def link(_rig):
        with bpy.data.libraries.load(str(library), link=True, relative=True) as (_, wanted):
            wanted.objects = ["Target"]
        bpy.context.scene.collection.objects.link(wanted.objects[0])

    edit(link)
    (tmp_path / "deep").mkdir()
    output = tmp_path / "deep" / "out.blend"
    assert cli.main(["bake", str(shot), "--output", str(output), "--frames", "1-3"]) == 0
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert [bpy.path.native_pathsep(each.filepath) for each in bpy.data.libraries] == ["//../library.blend"]


def test_a_compressed_file_stays_compressed(cli, shot, tmp_path):
    bpy.ops.wm.save_as_mainfile(filepath=str(shot), compress=True)
    output = tmp_path / "out.blend"
    assert cli.main(["bake", str(shot), "--output", str(output), "--frames", "1-3"]) == 0
    assert output.read_bytes()[:4] == shot.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"


def test_a_folder_that_is_not_there(cli, shot, tmp_path, capfd):
    for option in ("--output", "--report"):
        path = tmp_path / "no" / "out"
        assert cli.main(["bake", str(shot), option, str(path)]) == 4
        assert f"cannot write {path}: there is no folder" in capfd.readouterr().err


def test_a_folder_in_place_of_the_file(cli, shot, tmp_path, capfd):
    (tmp_path / "out").mkdir()
    for option in ("--output", "--report"):
        assert cli.main(["bake", str(shot), option, str(tmp_path / "out"), "--frames", "1-2"]) == 4
        assert "it is a folder" in capfd.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_a_file_in_the_way_stays_when_writing_fails(cli, shot, tmp_path, capfd, option):
    """On a device that is always full; and it stays a device."""
    assert cli.main(["bake", str(shot), option, "/dev/full", "--frames", "1-2"]) == 4
    assert "cannot write /dev/full: " in capfd.readouterr().err
    assert os.path.exists("/dev/full")
    assert not os.path.isfile("/dev/full")


def test_a_link_stays_a_link(cli, shot, tmp_path):
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    assert cli.main(["bake", str(shot), "--report", str(tmp_path / "link.json"), "--frames", "1-2"]) == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["frames_solved"] == 2


def test_a_report_on_standard_output_is_all_that_is_there(cli, shot, tmp_path, monkeypatch, capfd):
    """A pipe takes the place of standard output, as another program reads it.

    It has a name of its own, as /dev/stdout is none where no /proc is mounted.
    """
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writing, before = os.open(path, os.O_WRONLY), os.dup(1)
    os.dup2(writing, 1)
    try:
        with open(1, "w", encoding="utf-8", closefd=False) as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            assert cli.main(["bake", str(shot), "--report", str(path)]) == 0
    finally:
        os.dup2(before, 1)
        for each in (before, writing):
            os.close(each)
    with open(reading, encoding="utf-8") as pipe:
        assert json.load(pipe)["frames_reached"] == 9
    assert "9 of 9 frames reached" in capfd.readouterr().err
