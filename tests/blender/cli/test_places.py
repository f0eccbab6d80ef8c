"""Where commands write to: folders that are read-only, links, files that are read too, two at once."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import bpy
import pytest
import rigs
import walks
from installed import AS_MODULE, ROOT
from shots import wander

TIMEOUT = 120  # [s]
SHORT = 30  # [frames]

# linux/capability.h
VERSION_3, DAC_OVERRIDE = 0x20080522, 1


class Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextlib.contextmanager
def permissions_bind() -> Iterator[None]:
    """Root gives up what lets it write where permissions forbid it; other users never have that."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = Header(VERSION_3, 0), (Data * 2)()
    assert libc.capget(ctypes.byref(header), data) == 0
    before = data[0].effective
    data[0].effective = before & ~(1 << DAC_OVERRIDE)
    assert libc.capset(ctypes.byref(header), data) == 0
    try:
        yield
    finally:
        data[0].effective = before
        assert libc.capset(ctypes.byref(header), data) == 0


@pytest.fixture
def closed(tmp_path) -> Iterator[Path]:
    """A folder that nobody may write to, with files in it."""
    folder = tmp_path / "closed"
    folder.mkdir()
    for name in ("out.blend", "out.json"):
        (folder / name).write_text("old")
    folder.chmod(0o555)
    with permissions_bind():
        yield folder
    folder.chmod(0o755)


@pytest.fixture
def bakes(ext, monkeypatch):
    """What was asked to be baked or carried over: nothing should be that can't be written."""
    begun = []
    for module, name in (
        ("ccd_rig.blender.cli.bake_command", "bake"),
        ("ccd_rig.blender.cli.farm_commands", "bake"),
        ("ccd_rig.blender.cli.farm_commands", "solve_steps"),
        ("ccd_rig.blender.retarget.clips", "retarget_motion"),
    ):
        whole = ext.module(module)
        work = getattr(whole, name)

        def begin(*words, _work=work, _name=name, **options):
            begun.append(_name)
            return _work(*words, **options)

        monkeypatch.setattr(whole, name, begin)
    return begun


def contents(folder):
    """Every file below a folder."""
    return {
        path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def complaint(capfd):
    (said,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("ccd_rig: error")]
    return said


# --- folders that are read-only -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out.blend", "new.blend"])
@pytest.mark.parametrize("option", ["--output", "--report"])
def test_bake_into_a_folder_that_is_read_only(cli, bakes, tmp_path, closed, capfd, option, name):
    file = wander(tmp_path / "shot.blend", SHORT)
    before = contents(tmp_path)
    assert cli.main(["bake", str(file), option, str(closed / name)]) == 4
    assert complaint(capfd) == f"ccd_rig: error: cannot write {closed / name}: Permission denied"
    assert bakes == []  # said before the work, not after it
    assert contents(tmp_path) == before


def test_a_file_that_is_read_only_is_not_replaced(cli, bakes, tmp_path, capfd):
    file, output = wander(tmp_path / "shot.blend", SHORT), tmp_path / "out.blend"
    output.write_text("old")
    output.chmod(0o444)
    before = contents(tmp_path)
    with permissions_bind():
        assert cli.main(["bake", str(file), "--output", str(output)]) == 4
    assert "out.blend: Permission denied" in complaint(capfd)
    assert (bakes, contents(tmp_path)) == ([], before)


@pytest.fixture
def clip_and_hero(ext, tmp_path):
    """A clip of a walk, and a figure that can take it."""
    walks.walk(ext, cycles=1, in_place=False)
    clip, hero = tmp_path / "clip.blend", tmp_path / "hero.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(clip))
    bpy.ops.wm.read_homefile(use_empty=True)
    rigs.metarig("basic_human")
    bpy.ops.wm.save_as_mainfile(filepath=str(hero))
    return clip, hero


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_retarget_into_a_folder_that_is_read_only(cli, clip_and_hero, bakes, tmp_path, closed, capfd, option):
    before = contents(tmp_path)
    path = closed / "new.blend"
    assert cli.main(["retarget", *map(str, clip_and_hero), option, str(path)]) == 4
    assert complaint(capfd) == f"ccd_rig: error: cannot write {path}: Permission denied"
    assert bakes == []
    assert contents(tmp_path) == before


@pytest.mark.parametrize("place", [".", "job"])
def test_a_job_in_a_folder_that_is_read_only(cli, tmp_path, closed, capfd, place):
    file = wander(tmp_path / "shot.blend", SHORT)
    before = contents(tmp_path)
    assert cli.main(["farm", str(file), "--output", str(closed / place)]) == 4
    assert f"cannot write {closed / place}" in (said := complaint(capfd)) and "Permission denied" in said
    assert contents(tmp_path) == before
    assert {path.name for path in closed.iterdir()} == {"out.blend", "out.json"}


@pytest.mark.parametrize("words", [(), ("--chunk", "15")])
def test_a_task_whose_results_cannot_be_written(cli, bakes, tmp_path, capfd, words):
    file, folder = wander(tmp_path / "shot.blend", 2 * SHORT), tmp_path / "job"
    assert cli.main(["farm", str(file), "--output", str(folder), *words]) == 0
    baked = folder / "baked"
    (baked / "chunks").mkdir()
    common = [f"--settings={folder / 'settings.json'}", f"--output={baked}"]
    for each in (baked / "chunks", baked):
        each.chmod(0o555)
    before = contents(tmp_path)
    capfd.readouterr()
    with permissions_bind():
        assert cli.main(["farm-bake", *common, "--part=1", str(file)]) == 4
        said = capfd.readouterr()
        assert "openjd_fail: cannot write " in said.out and "Permission denied" in said.out
        assert bakes == []
    assert contents(tmp_path) == before


# --- files that are read too --------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--output", "--report"])
@pytest.mark.parametrize("way", ["the clip", "a link to it", "another clip of the folder", "the map"])
def test_retarget_does_not_write_over_what_it_reads(cli, clip_and_hero, bakes, tmp_path, capfd, option, way):
    clip, hero = clip_and_hero
    folder = tmp_path / "clips"
    folder.mkdir()
    (folder / "one.blend").write_bytes(clip.read_bytes())
    bone_map = tmp_path / "map.json"
    bone_map.write_text('{"bones": {}}')
    (tmp_path / "link.blend").symlink_to(clip)
    source, place = {
        "the clip": (clip, clip),
        "a link to it": (clip, tmp_path / "link.blend"),
        "another clip of the folder": (folder, folder / "one.blend"),
        "the map": (clip, bone_map),
    }[way]
    before = contents(tmp_path)
    words = ["retarget", str(source), str(hero), "--map", str(bone_map), option, str(place)]
    assert cli.main(words) == 2
    assert "would take the place of" in (said := complaint(capfd)) and f"give {option} another path" in said
    assert (bakes, contents(tmp_path)) == ([], before)


def with_library(file, library):
    """Let a shot link something of another file."""
    wander(file, SHORT)
    bpy.data.libraries.write(str(library), {bpy.data.objects["Target"]})
    with bpy.data.libraries.load(str(library), link=True, relative=True) as (_, wanted):
        wanted.objects = ["Target"]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    bpy.ops.wm.save_mainfile()


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_a_library_of_the_file_is_not_written_over(cli, bakes, tmp_path, capfd, option):
    file, library = tmp_path / "shot.blend", tmp_path / "library.blend"
    with_library(file, library)
    before = contents(tmp_path)
    assert cli.main(["bake", str(file), option, str(library)]) == 2
    assert "would take the place of a file that it uses" in (said := complaint(capfd))
    assert str(library) in said
    assert (bakes, contents(tmp_path)) == ([], before)


def test_a_task_does_not_write_over_a_library(cli, bakes, tmp_path, capfd):
    file, folder = tmp_path / "shot.blend", tmp_path / "job"
    wander(file, SHORT)
    assert cli.main(["farm", str(file), "--output", str(folder)]) == 0
    library = folder / "baked/shot.blend"
    with_library(file, library)
    before = contents(tmp_path)
    words = [f"--settings={folder / 'settings.json'}", f"--output={library.parent}", "--part=1", str(file)]
    assert cli.main(["farm-bake", *words]) == 2
    assert f"{library} would be overwritten" in complaint(capfd)
    assert (bakes, contents(tmp_path)) == ([], before)


# --- links --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["old", "nothing", "the file itself"])
def test_a_link_as_output_stays_one_and_what_it_leads_to_is_written(cli, tmp_path, target):
    file, link = wander(tmp_path / "shot.blend", SHORT), tmp_path / "link.blend"
    before = file.read_bytes()
    (tmp_path / "deep").mkdir()
    real = file if target == "the file itself" else tmp_path / "deep/real.blend"
    if target == "old":
        real.write_text("old")
    link.symlink_to(os.path.relpath(real, tmp_path))
    assert cli.main(["bake", str(file), "--output", str(link)]) == 0
    assert link.is_symlink() and os.readlink(link) == os.path.relpath(real, tmp_path)
    assert (file.read_bytes() == before) == (target != "the file itself")
    bpy.ops.wm.open_mainfile(filepath=str(real))
    assert bpy.data.objects["Rig"].ccd_rig.report.words
    assert len(list(tmp_path.iterdir())) == 3  # nothing beside the link
    assert len(list((tmp_path / "deep").iterdir())) == (target != "the file itself")


# --- two at once --------------------------------------------------------------------------------------------


def test_two_bakes_at_once_leave_one_whole_file(cli, tmp_path):
    file = wander(tmp_path / "shot.blend", SHORT)
    output, report = tmp_path / "out.blend", tmp_path / "out.json"
    program = [sys.executable, "-m", "ccd_rig"]
    if not AS_MODULE:
        program = [bpy.app.binary_path, "--background", "--command", "ccd_rig"]
    words = ["bake", str(file), "--output", str(output), "--report", str(report)]
    frames = ("1-10", "11-25")
    both = [
        subprocess.Popen(
            [*program, *words, "--frames", each], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for each in frames
    ]
    said = [each.communicate(timeout=TIMEOUT)[0] for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    assert {path.name for path in tmp_path.iterdir()} == {"shot.blend", "out.blend", "out.json"}
    content = json.loads(report.read_text())
    assert (content["frame_start"], content["frame_end"]) in ((1, 10), (11, 25))
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert bpy.data.objects["Rig"].ccd_rig.report.words.startswith(("10 of 10", "15 of 15"))


def test_what_is_flushed_is_open_for_writing(ext, tmp_path, monkeypatch):
    """FlushFileBuffers of Windows: "The file handle must have the GENERIC_WRITE access right"."""
    flush, flushed = os.fsync, []

    def flush_as_windows(descriptor):
        os.write(descriptor, b"")  # EBADF if it is open for reading alone
        flush(descriptor)
        flushed.append(descriptor)

    monkeypatch.setattr(os, "fsync", flush_as_windows)
    file = tmp_path / "report.json"
    with ext.module("ccd_rig.blender.atomic_write").replacing(file) as temporary:
        temporary.write_bytes(b"words")
    assert file.read_bytes() == b"words" and len(flushed) == 1
