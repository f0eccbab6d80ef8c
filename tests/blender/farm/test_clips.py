"""`ccd_rig farm --retarget`: each clip is a task, and comes to what `ccd_rig retarget` makes of it."""

from __future__ import annotations

import csv
import json
import time

import bpy
import pytest
import rigs
import walks
from farm_jobs import Job, listing
from shots import keys_in, same_bits


def clip(ext, path, cycles, in_place=False):
    """Save a file of a figure that walks."""
    bpy.ops.wm.read_homefile(use_empty=True)
    walks.walk(ext, cycles=cycles, in_place=in_place)
    bpy.ops.wm.save_as_mainfile(filepath=str(path))


@pytest.fixture
def hero(ext, tmp_path):
    """A file with an armature, and beside it a folder of two clips and one that is none."""
    folder = tmp_path / "clips"
    folder.mkdir()
    for name, cycles in (("walk", 1), ("longer", 2)):
        clip(ext, folder / f"{name}.blend", cycles)
    (folder / "notes.txt").write_text("no clip")
    bpy.ops.wm.read_homefile(use_empty=True)
    rigs.metarig("basic_human").name = "Rig"
    path = tmp_path / "hero.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def job_of(cli, tmp_path, hero, *clips, words=(), name="job"):
    return Job(cli, tmp_path / name, *clips, words=("--retarget", str(hero), *words))


def tasks(job):
    """(clip, target) of each task."""
    step, table = job.template()["steps"]
    assert (step["name"], table["name"]) == ("Retarget", "Table")
    assert table["dependencies"] == [{"dependsOn": "Retarget"}]
    return list(
        zip(*(each["range"] for each in step["parameterSpace"]["taskParameterDefinitions"]), strict=True)
    )


def run_all(job):
    assert all(job.carry_over(*task) == 0 for task in tasks(job))
    assert job.table() == 0


def test_a_clip_comes_out_as_the_command_makes_it(cli, channels, hero, tmp_path):
    clips = tmp_path / "clips"
    before = {path: path.read_bytes() for path in (hero, *clips.iterdir())}
    words = ("--in-place", "--source-fps", "30")
    job = job_of(cli, tmp_path, hero, clips, words=words)
    assert tasks(job) == [(str(clips / name), str(hero)) for name in ("longer.blend", "walk.blend")]
    run_all(job)
    assert {path: path.read_bytes() for path in before} == before
    ends = (".blend", ".json", ".record.json")
    names = {f"{name}{end}" for name in ("walk", "longer") for end in ends} | {"table.csv", "table.txt"}
    assert {path.name for path in job.baked.iterdir()} == names
    single, told = tmp_path / "single.blend", tmp_path / "told.json"
    made = ["retarget", str(clips / "walk.blend"), str(hero), "--output", str(single), "--report", str(told)]
    assert cli.main([*made, *words]) == 0
    keys = keys_in(job.baked / "walk.blend", channels)
    assert bpy.data.objects["Rig"].animation_data.action.name == "walk"
    assert same_bits(keys, keys_in(single, channels))
    (values,) = json.loads(told.read_text()).values()
    assert json.loads((job.baked / "walk.json").read_text()) == {
        "clip": "walk.blend",
        "armature": "Rig",
        **values,
    }
    lines = [line.split(",") for line in (job.baked / "table.csv").read_text().splitlines()]
    assert lines[0][:5] == ["clip", "armature", "first", "last", "frames"]
    assert [line[:2] for line in lines[1:]] == [["longer", "Rig"], ["walk", "Rig"]]
    assert [int(line[4]) for line in lines[1:]] == [
        json.loads((job.baked / f"{name}.json").read_text())["frames"] for name in ("longer", "walk")
    ]
    assets = json.loads((job.folder / "asset_references.json").read_text())["assetReferences"]["inputs"]
    assert assets["filenames"] == sorted(map(str, (hero, clips / "longer.blend", clips / "walk.blend")))


def test_a_second_run_does_what_has_changed(cli, ext, hero, tmp_path, capfd):
    clips = tmp_path / "clips"
    job = job_of(cli, tmp_path, hero, clips)
    run_all(job)

    def again(job):
        """Names of the results that a run has made anew."""
        kept = listing(job.baked)
        capfd.readouterr()
        run_all(job)
        said, now = capfd.readouterr().out, listing(job.baked)
        made = {path.stem for path in kept if path.suffix == ".blend" and now[path] != kept[path]}
        assert said.count("done before, and nothing has changed") == 2 - len(made)
        return made

    assert again(job) == set()
    clip(ext, clips / "walk.blend", 1, in_place=True)
    assert again(job) == {"walk"}
    (job.baked / "longer.json").write_text("{}")
    assert again(job) == {"longer"}
    job = job_of(cli, tmp_path, hero, clips, words=("--no-contacts",))
    assert job.table() == 1
    assert "no result of longer, walk for these settings" in capfd.readouterr().err
    assert again(job) == {"walk", "longer"}
    bpy.ops.wm.open_mainfile(filepath=str(hero))
    bpy.data.objects["Rig"].location.x = 1.0
    bpy.ops.wm.save_mainfile()
    assert again(job) == {"walk", "longer"}


def test_files_that_a_farm_stages_as_links_are_known_again(cli, hero, tmp_path, capfd):
    store, staged = tmp_path / "store", tmp_path / "staged"
    clip = tmp_path / "clips/walk.blend"
    job = job_of(cli, tmp_path, hero, clip)
    for folder in (store, staged):
        folder.mkdir()
    for path, key in ((hero, "9b17"), (clip, "04ce")):  # by their contents
        (store / key).write_bytes(path.read_bytes())
        (staged / path.name).symlink_to(store / key)
    assert job.carry_over(staged / clip.name, staged / hero.name) == 0
    assert job.table() == 0
    capfd.readouterr()
    assert job.carry_over(staged / clip.name, staged / hero.name) == 0
    assert "done before, and nothing has changed" in capfd.readouterr().out


def test_a_clip_that_cannot_be_read_fails_alone(cli, hero, tmp_path, capfd):
    broken = tmp_path / "clips/broken.bvh"
    broken.write_text("nothing")
    job = job_of(cli, tmp_path, hero, tmp_path / "clips")
    capfd.readouterr()
    assert job.carry_over(broken, hero) == 1
    assert "openjd_fail: broken.bvh: cannot be read" in capfd.readouterr().out
    assert listing(job.baked) == {}
    assert all(job.carry_over(*task) == 0 for task in tasks(job)[1:])
    assert job.table() == 1
    assert "no result of broken for these settings" in capfd.readouterr().err


def test_jobs_at_once_come_to_the_same(cli, channels, hero, tmp_path, capfd):
    clip = tmp_path / "clips/walk.blend"
    local = job_of(cli, tmp_path, hero, tmp_path / "clips", words=("--jobs", "2"), name="local")
    assert local.code == 0, capfd.readouterr()
    job = job_of(cli, tmp_path, hero, clip)
    run_all(job)
    assert same_bits(*(keys_in(each.baked / "walk.blend", channels) for each in (local, job)))
    assert len((local.baked / "table.csv").read_text().splitlines()) == 3


def test_a_file_of_two_armatures_gets_the_clip_on_the_one_that_is_named(cli, hero, tmp_path, capfd):
    """A task names what the file has if none is named, and takes the time that it takes."""
    bpy.ops.wm.open_mainfile(filepath=str(hero))
    rigs.metarig("basic_human").name = "Double"
    bpy.ops.wm.save_mainfile()
    clip = tmp_path / "clips/walk.blend"
    job = job_of(cli, tmp_path, hero, clip)
    assert job.code == 1
    assert f"{hero} must have one armature, or name one: it has Double, Rig" in capfd.readouterr().err
    job = job_of(cli, tmp_path, hero, clip, words=("--armature", "Double"))
    began = time.perf_counter()
    assert job.carry_over(clip, hero) == 0
    most = time.perf_counter() - began
    assert json.loads((job.baked / "walk.json").read_text())["armature"] == "Double"
    bpy.ops.wm.open_mainfile(filepath=str(job.baked / "walk.blend"))
    moved = [bpy.data.objects[name].animation_data is not None for name in ("Double", "Rig")]
    assert moved == [True, False]
    assert job.table() == 0
    (row,) = csv.DictReader((job.baked / "table.csv").read_text().splitlines())
    assert 0.0 < float(row["seconds"]) <= most + 0.01


def test_words_that_make_no_job(cli, hero, tmp_path, capfd):
    deep, twice = tmp_path / "deep.json", tmp_path / "twice.json"
    deep.write_text('{"bones":' * 100_000)
    twice.write_text('{"bones": {"head": "Head", "head": ""}}')
    clip, other = tmp_path / "clips/walk.blend", tmp_path / "walk.bvh"
    other.write_text("HIERARCHY")
    bare = tmp_path / "bare.blend"
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.ops.wm.save_as_mainfile(filepath=str(bare))
    for target, clips, words, code, said in (
        (hero, [clip], ("--chunk", "100", "--step", "2"), 2, "--chunk, --step: not with --retarget"),
        (hero, [clip], ("--scale", "-1"), 2, "scale must be 0 or more"),
        (hero, [tmp_path / "gone.bvh"], (), 2, "there is no file"),
        (hero, [tmp_path / "clips/notes.txt"], (), 2, "is no clip"),
        (hero, [clip, other], (), 1, "would be written to the same file"),
        (hero, [clip], ("--armature", "Else"), 1, "has no armature 'Else'; it has: Rig"),
        (hero, [clip], ("--armature", 999 * "x"), 1, "xxx...'; it has: Rig"),
        (hero, [bare], (), 1, "must have one armature, or name one: it has none"),
        (bare, [clip], (), 1, "must have one armature, or name one: it has none"),
        (tmp_path / "gone.blend", [clip], (), 2, "there is no file"),
        (hero, [clip], ("--map", str(tmp_path / "gone.json")), 1, "cannot read "),
        (hero, [clip], ("--map", "/dev/zero"), 1, "it is a device, not a file"),
        (hero, [clip], ("--map", str(deep)), 1, "it nests too deep"),
        (hero, [clip], ("--map", str(twice)), 1, 'the field "head" stands twice'),
    ):
        job = job_of(cli, tmp_path, target, *clips, words=words)
        assert (job.code, said in capfd.readouterr().err) == (code, True), said
        assert not job.folder.exists()
    job = Job(cli, tmp_path / "job", hero, words=("--in-place", "--source-fps", "30"))
    assert job.code == 2
    assert "--source-fps, --in-place: only with --retarget" in capfd.readouterr().err


def test_tasks_of_another_job(cli, hero, tmp_path, capfd):
    clip, other = tmp_path / "clips/walk.blend", tmp_path / "clips/longer.blend"
    job = job_of(cli, tmp_path, hero, clip)
    assert job.carry_over(other, hero) == 1
    assert "openjd_fail: longer.blend is no clip of this job: walk.blend" in capfd.readouterr().out
    job.baked = clip.parent
    assert job.carry_over(clip, hero) == 2
    assert "would be overwritten" in capfd.readouterr().out
    text = job.folder / "settings.json"
    for harm in ('{"format": "ccd_rig.farm_clips", "version": 0}', '{"format": "else"}', "[]"):
        text.write_text(harm)
        assert job.carry_over(clip, hero) == 1
        assert "is no settings file of this version" in capfd.readouterr().out
        assert job.table() == 1


def test_files_that_a_gltf_file_names_belong_to_it(ext, tmp_path):
    clips = ext.module("ccd_rig.blender.retarget.clips")
    named = [{"uri": "a%20b.bin"}, {"uri": "gone.bin"}, {"uri": "data:;base64,AA=="}, {}]
    path = tmp_path / "clip.gltf"
    path.write_text(json.dumps({"buffers": named}))
    (tmp_path / "a b.bin").write_bytes(b"0")
    assert clips.files_beside(path) == [tmp_path / "a b.bin"]
    for text in ("no JSON", "[" * 100_000):
        path.write_text(text)
        assert clips.files_beside(path) == []


def test_weights_of_two_sides_reach_the_task(cli, hero, tmp_path):
    job = job_of(cli, tmp_path, hero, tmp_path / "clips/walk.blend", words=("--weight", "feet=0,1"))
    run_all(job)
    report = json.loads((job.baked / "walk.json").read_text())
    assert report["followed"] == ["right leg"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("choice", "bones"), 1.5),
        (("choice", "bones"), [["a", "b"]]),
        (("choice", "frames"), [1]),
        (("choice", "reference"), {"a": {}}),
        (("choice", "settings", "hand_space"), {"a": {}}),
        (("choice", "settings", "thresholds"), [1, 2]),
        (("choice", "x" * 5000), 1),
        (("files",), "walk.blend"),
        (("armature",), 7),
    ],
)
def test_damaged_settings_of_clips(ext, tmp_path, place, value):
    clips, errors = ext.module("ccd_rig.blender.farm.shots"), ext.module("ccd_rig.errors")
    choice = ext.module("ccd_rig.blender.retarget.retarget").RetargetChoice(frames=(1, 9), bones={"a": "b"})
    job = clips.Clips(("walk.blend",), "hero.blend", "Rig", None, choice)
    path = tmp_path / "settings.json"
    path.write_text(job.to_json())
    assert clips.read_clips(path) == job
    content = json.loads(job.to_json())
    part = content
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(errors.RigError, match="is no settings file of this version") as told:
        clips.read_clips(path)
    assert len(str(told.value)) < 500
