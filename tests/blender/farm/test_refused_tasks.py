"""Jobs and tasks that lack something, disagree, or are no jobs: they say so, and write nothing."""

from __future__ import annotations

import json
import math
import os
import signal
from pathlib import Path

import bpy
import pytest
from farm_jobs import AGREE, LONG, SHORT, TIMEOUT, Job, process
from shots import keys_in, largest_angle, wander


@pytest.mark.parametrize("harm", ["missing", "half", "other settings"])
def test_a_join_says_which_chunk_it_lacks_and_writes_nothing(cli, tmp_path, capfd, harm):
    file = wander(tmp_path / "long.blend", LONG)
    job = Job(cli, tmp_path / "job", file, words=("--chunk", "200"))
    assert [job.bake(file, 1), job.bake(file, 2)] == [0, 0]
    chunk = job.baked / "chunks/long.201-400.npz"
    if harm == "missing":
        chunk.unlink()
    elif harm == "half":
        chunk.write_bytes(chunk.read_bytes()[:-2000])
    else:
        job = Job(cli, tmp_path / "job", file, words=("--chunk", "200", "--reduce-angle", "1"))
        assert job.bake(file, 1) == 0
    capfd.readouterr()
    assert job.join(file) == 1
    said = capfd.readouterr()
    assert "openjd_fail: long is not joined, and nothing is written: frames 201 to 400 " in said.out
    assert "frames 1 to 200" not in said.out
    assert [path.name for path in job.baked.iterdir()] == ["chunks"]
    assert job.table() == 1
    assert "no result of long" in capfd.readouterr().err
    assert [path.name for path in job.baked.iterdir()] == ["chunks"]


def damaged(whole, step):
    """What a file may have become: nothing, its beginning, or with one byte changed."""
    yield b""
    for place in range(0, len(whole), step):
        yield whole[:place]
        for change in (0x01, 0x80, 0xFF):
            yield whole[:place] + bytes((whole[place] ^ change,)) + whole[place + 1 :]


def test_damaged_chunks_are_solved_again(ext, cli, tmp_path, capfd):
    chunks = ext.module("ccd_rig.blender.farm.results")
    file = wander(tmp_path / "long.blend", LONG)
    job = Job(cli, tmp_path / "job", file, words=("--chunk", "200"))
    assert [job.bake(file, 1), job.bake(file, 2)] == [0, 0]
    chunk = job.baked / "chunks/long.201-400.npz"
    whole = chunk.read_bytes()
    assert chunks.load_chunk(chunk) is not None
    for content in (*damaged(whole, 199), *damaged(whole[-1500:], 7)):
        chunk.write_bytes(content)
        assert chunks.load_chunk(chunk) is None
    chunk.write_bytes(b"")
    capfd.readouterr()
    assert job.join(file) == 1
    assert "frames 201 to 400 are missing" in capfd.readouterr().out
    assert [job.bake(file, 2), job.join(file), job.table()] == [0, 0, 0]
    assert chunk.read_bytes()[-32:] == whole[-32:]


def test_damaged_records_are_made_anew(ext, cli, tmp_path, capfd):
    records = ext.module("ccd_rig.blender.farm.results")
    file = wander(tmp_path / "shot.blend", SHORT)
    job = Job(cli, tmp_path / "job", file)
    assert job.bake(file) == 0
    path = job.baked / "shot.record.json"
    whole = path.read_bytes()
    content = json.loads(whole)
    assert records.load_record(path) is not None
    for changed in (
        {"inputs": []},
        {"outputs": []},
        {"rows": 1},
        {"rows": [[]]},
        {"rows": [{"shot": "shot"}]},
        {"sha256": 1},
        {"inputs": {"/dev/zero": "0" * 64}},
    ):
        path.write_text(json.dumps({**content, **changed}))
        assert records.load_record(path) is None
    for text in (*damaged(whole.rstrip(), 31), b"[" * 100_000, b"[]", b"null", whole.replace(b"1", b"NaN")):
        path.write_bytes(text)
        assert records.load_record(path) is None
    capfd.readouterr()
    assert job.table() == 1
    assert "no result of shot" in capfd.readouterr().out
    assert [job.bake(file), job.table()] == [0, 0]


def test_what_has_no_end_is_not_read(ext):
    records = ext.module("ccd_rig.blender.farm.results")
    path = Path("/dev/zero")
    assert records.load_record(path) is None
    assert not records.Record("", {"zero": "0" * 64}).is_current(path, "")
    assert not records.Record("", {}, {"zero": "0" * 64}).is_whole(path.parent)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": NaN}', '{"format": 1, "format": 1}', "[]"])
def test_settings_that_are_no_json(cli, tmp_path, capfd, text):
    file = wander(tmp_path / "shot.blend", SHORT)
    job = Job(cli, tmp_path / "job", file)
    (job.folder / "settings.json").write_text(text)
    assert [job.bake(file), job.table()] == [1, 1]
    assert capfd.readouterr().out.count("openjd_fail: ") == 2


def test_chunks_that_disagree_are_not_joined(ext, cli, tmp_path, capfd):
    np, chunks = pytest.importorskip("numpy"), ext.module("ccd_rig.blender.farm.results")
    file = wander(tmp_path / "long.blend", LONG)
    job = Job(cli, tmp_path / "job", file, words=("--chunk", "200"))
    assert [job.bake(file, 1), job.bake(file, 2)] == [0, 0]
    path = job.baked / "chunks/long.201-400.npz"
    chunk = chunks.load_chunk(path)
    turn = np.array((math.cos(0.1), math.sin(0.1), 0.0, 0.0))
    chunk.rotations[:, 1] = turn
    chunk.save(path)
    assert job.join(file) == 1
    said = capfd.readouterr().out
    assert "the chunks that meet at frame " in said
    assert "(bone 'bone_1')" in said
    assert not (job.baked / "long.blend").exists()


def test_two_joins_at_once_write_one_whole_result(cli, channels, tmp_path):
    file = wander(tmp_path / "long.blend", LONG)
    job = Job(cli, tmp_path / "job", file, words=("--chunk", "200"))
    assert [job.bake(file, 1), job.bake(file, 2)] == [0, 0]
    both = [process(job, "farm-join", file) for _ in range(2)]
    said = [each.communicate(timeout=TIMEOUT) for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    assert job.table() == 0
    names = {path.name for path in job.baked.iterdir()}
    assert names == {"chunks", "long.blend", "long.json", "long.record.json", "table.csv", "table.txt"}
    keys = keys_in(job.baked / "long.blend", channels)
    single = Job(cli, tmp_path / "single", file)
    single.run_all()
    assert largest_angle(keys, keys_in(single.baked / "long.blend", channels)) <= AGREE


def test_a_result_that_another_process_wrote_last_is_whole(ext, cli, tmp_path, monkeypatch):
    """The other one's file takes its place after ours was looked at, and before our record is written."""
    file = wander(tmp_path / "shot.blend", SHORT)
    job = Job(cli, tmp_path / "job", file)
    records = ext.module("ccd_rig.blender.farm.results")
    other = b"as whole as ours"
    save = records.Record.save

    def late(record, path):
        (job.baked / "shot.blend").write_bytes(other)
        save(record, path)

    monkeypatch.setattr(records.Record, "save", late)
    assert job.bake(file) == 0
    assert (job.baked / "shot.blend").read_bytes() == other
    assert job.table() == 0


@pytest.mark.parametrize("words", [(), ("--chunk", "200")])
def test_a_full_disk_leaves_nothing(cli, tmp_path, words):
    import resource

    file = wander(tmp_path / "long.blend", LONG)
    job = Job(cli, tmp_path / "job", file, words=words)

    def small_files():  # no file may grow beyond this, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a full disk sends no signal

    running = process(job, "farm-bake", "--part=1", file, preexec_fn=small_files)
    said, errors = running.communicate(timeout=TIMEOUT)
    assert running.returncode == 4, said + errors
    assert "openjd_fail: cannot write " in said
    assert [path for path in job.baked.rglob("*") if path.is_file()] == []


def test_files_that_make_no_job(cli, tmp_path, monkeypatch, capfd):
    file = wander(tmp_path / "shot.blend", SHORT)
    (tmp_path / "other").mkdir()
    twin = wander(tmp_path / "other/Shot.blend", SHORT)
    record = wander(tmp_path / "SHOT.record.blend", SHORT)
    odd = wander(tmp_path / "a{{b.blend", SHORT)
    wide = wander(tmp_path / "a\u00a0b.blend", SHORT)  # told from a space by its number
    bare = tmp_path / "bare.blend"
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.ops.wm.save_as_mainfile(filepath=str(bare))
    text = tmp_path / "text.blend"
    text.write_text("no file of Blender's")
    for files, code, words in (
        ([tmp_path / "gone.blend"], 2, "there is no file "),
        ([file, twin], 1, "would be written to the same file"),
        ([file, file], 1, "would be written to the same file"),
        ([file, record], 1, "would be written to the same file, SHOT.record.json"),
        ([record, file], 1, "would be written to the same file, shot.record.json"),
        ([odd], 1, "a{{b.blend: a job cannot name this path: it has '{{'"),
        ([wide], 1, r"a\xa0b.blend: a job cannot name this path: it has line breaks, or spaces of another"),
        ([bare], 1, "no armature in the file's active scene has enabled CCD constraints"),
        ([text], 2, "cannot open "),
    ):
        job = Job(cli, tmp_path / "job", *files)
        assert job.code == code
        assert words in capfd.readouterr().err
        assert not job.folder.exists()


def test_a_file_of_a_newer_blender_is_refused(ext, cli, tmp_path, monkeypatch, capfd):
    file = wander(tmp_path / "shot.blend", SHORT)
    files = ext.module("ccd_rig.blender.cli.files")
    monkeypatch.setattr(files, "newer_than_blender", lambda: ("901.3", "502.12"))
    assert Job(cli, tmp_path / "job", file).code == 2
    assert "is of file version 901.3, that of this Blender is 502.12" in capfd.readouterr().err


def test_tasks_of_another_job(cli, tmp_path, capfd):
    file, other = wander(tmp_path / "shot.blend", SHORT), wander(tmp_path / "other.blend", SHORT)
    job = Job(cli, tmp_path / "job", file)
    assert job.bake(file, 2) == 2
    assert "has the parts 1 to 1, not 2" in capfd.readouterr().out
    assert job.bake(other) == 1
    assert "openjd_fail: other.blend is no shot of this job: shot.blend" in capfd.readouterr().out
    job.baked = tmp_path
    assert job.bake(file) == 2
    assert "would be overwritten" in capfd.readouterr().out
    text = (job.folder / "settings.json").read_text()
    for harm in (
        '{"format": "else"}',
        text.replace('"step": 1', '"step": "1"'),
        text.replace("verify", "v" * 5000),
    ):
        (job.folder / "settings.json").write_text(harm)
        assert job.bake(file) == 1
        said = capfd.readouterr().out
        assert "is no settings file of this version" in said and len(said) < 500


def test_scripts_of_files_do_not_run(cli, tmp_path, capfd):
    file = wander(tmp_path / "shot.blend", SHORT)
    mark = tmp_path / "it ran"
    text = bpy.data.texts.new("run.py")
    text.write(f"open({str(mark)!r}, 'w').close()")
    text.use_module = True
    bpy.ops.wm.save_mainfile()
    filepaths = bpy.context.preferences.filepaths
    before, filepaths.use_scripts_auto_execute = filepaths.use_scripts_auto_execute, True
    try:
        bpy.ops.wm.open_mainfile(filepath=str(file))
        assert mark.exists()  # with these preferences a script would run
        mark.unlink()
        Job(cli, tmp_path / "job", file).run_all()
        assert not mark.exists()
        assert "was not run: scripts of files never are in farm jobs" in capfd.readouterr().err
        assert filepaths.use_scripts_auto_execute
    finally:
        filepaths.use_scripts_auto_execute = before


@pytest.mark.skipif(os.name != "posix", reason="elsewhere names are text")
def test_a_job_in_a_folder_whose_name_is_no_text(cli, tmp_path, capfd):
    file = wander(tmp_path / "shot.blend", SHORT)
    folder = tmp_path / os.fsdecode(b"job\xff")
    job = Job(cli, folder, file)
    assert job.code == 4
    assert "its path is not in UTF-8" in capfd.readouterr().err
    assert not folder.exists()
