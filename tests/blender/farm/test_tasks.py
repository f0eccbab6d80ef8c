"""`ccd_rig farm` and the commands that its jobs run, each on its own."""

from __future__ import annotations

import csv
import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import bpy
import pytest
import rigs
from farm_jobs import AGREE, LONG, SHORT, TIMEOUT, Job, listing, process
from installed import AS_MODULE, ROOT
from shots import keys_in, largest_angle, same_bits, wander


def whole(cli, file, tmp_path):
    """What `ccd_rig bake` makes of a file: the .blend file and its report."""
    output, report = tmp_path / f"{file.stem}_whole.blend", tmp_path / f"{file.stem}_whole.json"
    assert cli.main(["bake", str(file), "--output", str(output), "--report", str(report)]) == 0
    return output, json.loads(report.read_text())


# --- what comes out -----------------------------------------------------------------------------------------


def test_a_whole_shot_is_what_a_bake_makes_of_it(cli, channels, tmp_path):
    file = wander(tmp_path / "shot.blend", SHORT)
    before = file.read_bytes()
    job = Job(cli, tmp_path / "job", file)
    job.run_all()
    assert file.read_bytes() == before
    output, report = whole(cli, file, tmp_path)
    assert same_bits(keys_in(job.baked / "shot.blend", channels), keys_in(output, channels))
    told = json.loads((job.baked / "shot.json").read_text())
    assert told["entries"] == report["entries"]
    names = {path.name for path in job.baked.iterdir()}
    assert names == {"shot.blend", "shot.json", "shot.record.json", "table.csv", "table.txt"}


@pytest.mark.parametrize("words", [(), ("--keys", "solved"), ("--reduce-angle", "0.5"), ("--solver", "ccd")])
def test_chunks_joined_agree_with_the_whole(cli, channels, tmp_path, words):
    file = wander(tmp_path / "long.blend", LONG)
    job = Job(cli, tmp_path / "job", file, words=("--chunk", "150", *words))
    assert len(job.parts()) == 3
    job.run_all()
    single = Job(cli, tmp_path / "single", file, words=words)
    single.run_all()
    ours, theirs = (keys_in(each.baked / "long.blend", channels) for each in (job, single))
    if "--reduce-angle" not in words:  # which keys are left out may differ
        assert largest_angle(ours, theirs) <= AGREE
    reports = [json.loads((each.baked / "long.json").read_text()) for each in (job, single)]
    assert [row["frame"] for row in reports[0]["entries"]] == [row["frame"] for row in reports[1]["entries"]]
    same = (
        "action",
        "frame_start",
        "frame_end",
        "step",
        "frames_solved",
        "frames_reached",
        "keys_before",
        "loop",
    )
    assert [reports[0][name] for name in same] == [reports[1][name] for name in same]
    assert reports[0]["check"]["words"].startswith("Plays as baked")


def chunks_and_whole(cli, folder, file):
    """A job of three chunks and one of the whole shot, each when it has run."""
    for name, words in (("chunks", ("--chunk", "150")), ("single", ())):
        job = Job(cli, folder / name, file, words=words)
        assert len(job.parts()) == (3 if words else 1)
        job.run_all()
        yield job


@pytest.mark.parametrize("method", ["TWO_BONE_TIP", "TWO_BONE", "TRIANGLE"])
def test_chunks_of_other_methods_agree_with_the_whole(cli, channels, tmp_path, method):
    file = wander(tmp_path / "long.blend", LONG)
    bpy.data.objects["Rig"].ccd_rig.constraints[0].method = method
    bpy.ops.wm.save_mainfile()
    jobs = chunks_and_whole(cli, tmp_path, file)
    assert largest_angle(*[keys_in(job.baked / "long.blend", channels) for job in jobs]) <= AGREE


def test_chunks_of_keyed_settings_agree_with_the_whole(cli, channels, tmp_path):
    file = wander(tmp_path / "long.blend", LONG)
    row = bpy.data.objects["Rig"].ccd_rig.constraints[0]
    row.pole_target = rigs.empty("Pole", (0.3, 3.0, 0.5))
    for frame, value in ((1, 0.75), (LONG, 0.95)):
        row.weight, row.pole_angle, row.max_extension = value, 4.0 * value - 3.0, value
        row.offset = (0.0, 0.0, 0.5 * value - 0.4)
        for field in ("weight", "pole_angle", "max_extension", "offset"):
            row.keyframe_insert(field, frame=frame)
    bpy.ops.wm.save_mainfile()
    both = []
    for job in chunks_and_whole(cli, tmp_path, file):
        keys = keys_in(job.baked / "long.blend", channels)
        both.append({path: each for path, each in keys.items() if path[0].startswith("pose.bones")})
        report = json.loads((job.baked / "long.json").read_text())
        assert report["check"]["words"].startswith("Plays as baked")
    assert largest_angle(*both) <= AGREE


def test_a_loop_of_chunks_closes_as_the_whole_does(cli, tmp_path):
    file = wander(tmp_path / "loop.blend", 360, loop=True)
    bpy.data.objects["Target"].animation_data_clear()
    target = bpy.data.objects["Target"]
    for frame in range(1, 362, 10):
        angle = math.radians(frame - 1)
        target.location = (0.4 * math.sin(angle), 0.3 * math.cos(angle), 0.5)
        target.keyframe_insert("location", frame=frame)
    bpy.ops.wm.save_mainfile()
    loops = []
    for name, words in (("chunks", ("--chunk", "180")), ("single", ())):
        job = Job(cli, tmp_path / name, file, words=words)
        job.run_all()
        loops.append(json.loads((job.baked / "loop.json").read_text())["loop"])
    assert loops[1] is not None
    assert loops[1]["repeats_after"]
    assert loops[0].pop("angle") == pytest.approx(loops[1].pop("angle"), abs=2.0 * AGREE)
    assert loops[0]["frame_end"] == loops[1]["frame_end"]


def test_the_table_has_a_row_per_armature(cli, tmp_path):
    files = [wander(tmp_path / f"{name}.blend", SHORT, seed=k) for k, name in enumerate("ab")]
    job = Job(cli, tmp_path / "job", *files)
    job.run_all()
    lines = (job.baked / "table.csv").read_text().splitlines()
    assert lines[0].startswith("shot,armature,first,last,frames_solved,frames_reached,")
    assert [line.split(",")[:6] for line in lines[1:]] == [
        [name, "Rig", "1", "30", "30", "30"] for name in ("a", "b")
    ]
    assert len((job.baked / "table.txt").read_text().splitlines()) == 3


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@A1", " =1", "\uff1d1"])
def test_names_are_no_formulas_and_keep_to_their_lines(cli, tmp_path, name):
    file = wander(tmp_path / f"{name}.blend", SHORT)
    bpy.data.objects["Rig"].name = "=Rig\n\x1b[31m"
    bpy.ops.wm.save_mainfile()
    job = Job(cli, tmp_path / "job", file)
    job.run_all()
    with (job.baked / "table.csv").open(newline="") as sheet:
        [row] = csv.DictReader(sheet)
    assert (row["shot"], row["armature"]) == (f"'{name}", r"'=Rig\n\x1b[31m")
    assert row["first"] == "1"
    columns, line = (job.baked / "table.txt").read_text().splitlines()
    assert columns.startswith("shot")
    assert r"=Rig\n\x1b[31m  " in line


def test_a_job_of_an_earlier_version_is_read(ext, cli, tmp_path):
    """It holds an order of frames, which has no meaning any more, and no smoothness."""
    jobs, settings = ext.module("ccd_rig.blender.farm.shots"), ext.module("ccd_rig.blender.bake.settings")
    job = Job(cli, tmp_path / "job", wander(tmp_path / "shot.blend", SHORT), words=("--smoothness", "2.5"))
    path = job.folder / "settings.json"
    content = json.loads(path.read_text())
    own = content["shots"][0]["armatures"]["Rig"]
    assert own.pop("smoothness") == jobs.read_shots(path)[0].settings.smoothness == 2.5
    path.write_text(json.dumps(content))
    without = jobs.read_shots(path)
    assert without[0].settings.smoothness == settings.BakeSettings(1, 2).smoothness
    for order in ("FORWARDS", "BACKWARDS", "BOTH"):
        own["order"] = order
        path.write_text(json.dumps(content))
        assert jobs.read_shots(path) == without


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (("--step", "2"), "its solved frames are not next to each other"),
        (("--preroll", "10"), "it has a preroll"),
        (("--keys", "targets"), "its frames are those of other keys"),
    ],
)
def test_frames_that_hang_on_others_make_one_task(cli, tmp_path, capfd, words, because):
    file = wander(tmp_path / "long.blend", LONG)
    assert cli.main(["farm", str(file), "--output", str(tmp_path), "--chunk", "100", *words]) == 0
    said = capfd.readouterr().out
    assert f"long: one task for the whole shot: {because}" in said
    assert "tasks: Bake 1, Table 1" in said


def test_planted_bones_make_one_task(cli, tmp_path, capfd):
    file = wander(tmp_path / "planted.blend", LONG)
    row = bpy.data.objects["Rig"].ccd_rig.constraints.add()
    row.name, row.tip, row.kind, row.chain_length = "Foot", "bone_2", "PLANT", 0
    bpy.ops.wm.save_mainfile()
    words = ["farm", str(file), "--output", str(tmp_path / "job"), "--chunk", "100"]
    assert cli.main(words) == 0
    assert "planted: one task for the whole shot: where planted bones are held" in capfd.readouterr().out


# --- again --------------------------------------------------------------------------------------------------


def test_a_second_run_skips_what_is_done(cli, tmp_path, capfd):
    short, long = wander(tmp_path / "short.blend", SHORT), wander(tmp_path / "long.blend", LONG)
    job = Job(cli, tmp_path / "job", short, long, words=("--chunk", "200"))
    job.run_all()
    kept = {path: time_ for path, time_ in listing(job.baked).items() if not path.name.startswith("table")}
    capfd.readouterr()
    job.run_all()
    assert {path: listing(job.baked)[path] for path in kept} == kept
    assert capfd.readouterr().out.count("done before, and nothing has changed") == 4
    wander(short, SHORT, seed=7)
    job.run_all()
    changed = {path.name for path, time_ in kept.items() if listing(job.baked)[path] != time_}
    assert changed == {"short.blend", "short.json", "short.record.json"}
    again = Job(cli, tmp_path / "job", short, long, words=("--chunk", "200", "--reduce-angle", "1"))
    capfd.readouterr()
    assert again.bake(long, 2) == 0
    assert "done before" not in capfd.readouterr().out


def test_a_library_that_has_changed_is_noticed(cli, tmp_path, capfd):
    library = tmp_path / "library/set.blend"
    library.parent.mkdir()
    for size in (1.0, 2.0):
        bpy.ops.wm.read_homefile(use_empty=True)
        rigs.empty("Prop").empty_display_size = size
        bpy.ops.wm.save_as_mainfile(filepath=str(library))
        if size == 1.0:
            file = wander(tmp_path / "shot.blend", SHORT)
            with bpy.data.libraries.load(str(library), link=True) as (_, wanted):
                wanted.objects = ["Prop"]
            bpy.context.scene.collection.objects.link(wanted.objects[0])
            bpy.ops.wm.save_mainfile()
            job = Job(cli, tmp_path / "job", file)
            job.run_all()
    assets = json.loads((job.folder / "asset_references.json").read_text())["assetReferences"]
    assert assets["inputs"]["filenames"] == sorted([str(library), str(file)])
    assert assets["outputs"]["directories"] == [str(job.baked)]
    capfd.readouterr()
    assert job.table() == 0  # what is written stays
    assert job.bake(file) == 0
    assert "done before" not in capfd.readouterr().out
    assert job.bake(file) == 0
    assert "done before" in capfd.readouterr().out


def test_files_that_may_move_something_are_inputs(ext, tmp_path):
    """A mesh cache and the image of a texture that displaces, but not the image of a material."""
    floor = rigs.ground(lambda x, y: 0.0, [-1.0, 1.0])
    paths = {name: tmp_path / name for name in ("floor.mdd", "bumps.png", "colour.png")}
    for path in paths.values():
        path.write_bytes(b"0")
    floor.modifiers.new("Cache", "MESH_CACHE").filepath = str(paths["floor.mdd"])
    texture = bpy.data.textures.new("Bumps", "IMAGE")
    for name in ("bumps.png", "colour.png"):
        image = bpy.data.images.new(name, 4, 4)
        image.source, image.filepath = "FILE", str(paths[name])
        if name == "bumps.png":
            texture.image = image
    linked = ext.module("ccd_rig.blender.farm.results").linked_files()
    assert linked == [paths["bumps.png"], paths["floor.mdd"]]


def test_files_that_a_farm_stages_as_links_are_known_again(cli, tmp_path, capfd):
    library, file, store = tmp_path / "set.blend", tmp_path / "shot.blend", tmp_path / "store"
    bpy.ops.wm.read_homefile(use_empty=True)
    rigs.empty("Prop")
    bpy.ops.wm.save_as_mainfile(filepath=str(library))
    wander(file, SHORT)
    with bpy.data.libraries.load(str(library), link=True, relative=True) as (_, wanted):
        wanted.objects = ["Prop"]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    bpy.ops.wm.save_mainfile()
    job = Job(cli, tmp_path / "job", file, words=("--chunk", "15"))
    store.mkdir()
    for node in ("one", "two"):
        (tmp_path / node).mkdir()
        for name, key in (("shot.blend", "9b17"), ("set.blend", "04ce")):  # by their contents
            (store / key).write_bytes((tmp_path / name).read_bytes())
            (tmp_path / node / name).symlink_to(store / key)
    assert job.bake(tmp_path / "one/shot.blend", 1) == 0
    assert job.bake(tmp_path / "two/shot.blend", 2) == 0
    assert job.join(tmp_path / "two/shot.blend") == 0
    capfd.readouterr()
    assert job.join(tmp_path / "one/shot.blend") == 0
    assert "done before" in capfd.readouterr().out
    (tmp_path / "one/set.blend").unlink()
    (tmp_path / "one/set.blend").write_bytes(library.read_bytes() + b"changed")
    assert job.join(tmp_path / "one/shot.blend") == 1  # its chunks were made with another library


def test_a_result_that_was_changed_is_made_again(cli, tmp_path, capfd):
    file = wander(tmp_path / "shot.blend", SHORT)
    job = Job(cli, tmp_path / "job", file)
    job.run_all()
    (job.baked / "shot.json").write_text("{}")
    assert job.table() == 1
    assert "no result of shot" in capfd.readouterr().err
    assert job.bake(file) == 0
    assert json.loads((job.baked / "shot.json").read_text())["armature"] == "Rig"


def test_a_task_that_is_killed_leaves_no_half_file(cli, channels, tmp_path):
    file = wander(tmp_path / "long.blend", 3000, bones=12)
    job = Job(cli, tmp_path / "job", file, words=("--chunk", "2000"))
    running = process(job, "farm-bake", "--part=1", file)
    for line in running.stdout:
        if line.startswith("openjd_progress"):
            break
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=TIMEOUT)
    assert running.returncode != 0
    assert [path for path in job.baked.rglob("*") if path.is_file()] == []
    assert job.join(file) == 1
    job.run_all()
    output, _ = whole(cli, file, tmp_path)
    assert largest_angle(keys_in(job.baked / "long.blend", channels), keys_in(output, channels)) <= AGREE


# --- here, and from the menu --------------------------------------------------------------------------------


@pytest.mark.mass
def test_jobs_at_once_come_to_the_same(cli, channels, tmp_path, capfd):
    file = wander(tmp_path / "long.blend", LONG)
    words = ("--chunk", "200")
    local = Job(cli, tmp_path / "local", file, words=(*words, "--jobs", "2"))
    assert local.code == 0, capfd.readouterr()
    job = Job(cli, tmp_path / "job", file, words=words)
    job.run_all()
    assert same_bits(*(keys_in(each.baked / "long.blend", channels) for each in (local, job)))


def running_tasks(folder):
    """Processes of a job's tasks, by what their command lines name."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if b"farm-bake" in words and any(str(folder).encode() in word for word in words):
            found.append(path.parent.name)
    return found


if Path("/proc/self/cmdline").exists():  # where the system lists its processes

    @pytest.mark.parametrize(
        "number",
        [
            signal.SIGKILL,
            pytest.param(signal.SIGTERM, marks=pytest.mark.mass),
            pytest.param(signal.SIGINT, marks=pytest.mark.mass),
        ],
    )
    def test_tasks_end_with_the_process_that_started_them(cli, tmp_path, number):
        file = wander(tmp_path / "long.blend", 30_000, bones=100)
        folder = tmp_path / "job"
        words = ["farm", str(file), "--output", str(folder), "--chunk", "15000", "--jobs", "2"]
        program = [sys.executable, "-m", "ccd_rig"]
        if not AS_MODULE:
            program = [bpy.app.binary_path, "--background", "--command", "ccd_rig"]
        starter = subprocess.Popen([*program, *words], cwd=ROOT, stdout=subprocess.DEVNULL)
        until = time.monotonic() + TIMEOUT
        while len(running_tasks(folder)) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        assert len(running_tasks(folder)) == 2
        time.sleep(2.0)  # they are at work
        assert len(running_tasks(folder)) == 2
        starter.send_signal(number)
        starter.wait(timeout=TIMEOUT)
        until = time.monotonic() + 30.0  # their frames take half a minute
        while running_tasks(folder) and time.monotonic() < until:
            time.sleep(0.1)
        assert running_tasks(folder) == []
        assert [path for path in (folder / "baked").rglob("*") if path.is_file()] == []


def test_the_menu_writes_the_job_of_the_open_file(cli, tmp_path):
    bpy.ops.wm.read_homefile(use_empty=True)
    assert not bpy.ops.ccd_rig.farm.poll()
    file = wander(tmp_path / "shot.blend", LONG)
    rig = bpy.data.objects["Rig"]
    rig.ccd_rig.bake.step = 2
    rigs.activate(rig)
    bpy.ops.wm.save_mainfile()
    assert bpy.ops.ccd_rig.farm(directory=str(tmp_path), chunk=200) == {"FINISHED"}
    folder = tmp_path / "shot_job"
    content = json.loads((folder / "settings.json").read_text())
    assert [shot["armatures"]["Rig"]["step"] for shot in content["shots"]] == [2]
    template = json.loads((folder / "template.json").read_text())
    onrun = template["steps"][0]["script"]["actions"]["onRun"]
    assert onrun["args"][:3] == ["-b", "--disable-autoexec", "--offline-mode"]
    job = Job(cli, tmp_path / "other", file)
    job.folder, job.baked = folder, folder / "baked"
    job.run_all()
    assert len((folder / "baked/table.csv").read_text().splitlines()) == 2


def test_the_menu_writes_the_job_of_a_file_opened_through_a_link(cli, tmp_path):
    real, link = tmp_path / "version_7.blend", tmp_path / "shot.blend"
    wander(real, SHORT)
    link.symlink_to(real.name)
    bpy.ops.wm.open_mainfile(filepath=str(link))
    assert bpy.ops.ccd_rig.farm(directory=str(tmp_path)) == {"FINISHED"}
    job = Job(cli, tmp_path / "other", link)
    job.folder = tmp_path / "shot_job"
    job.baked = job.folder / "baked"
    job.run_all()
    assert (job.baked / "shot.blend").is_file()
