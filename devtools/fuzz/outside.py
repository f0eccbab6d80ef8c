"""Faults from outside: what fails, is killed, full or changed meanwhile, nothing is left half done.

Exceptions at any step of a bake; signals while the command line writes; disks that are full, links, two
processes on one file; files, undo and the extension itself pulled away in mid-bake; values that no property
takes; pose libraries of any kind.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import bpy
import rigs  # of tests/blender
from installed import PACKAGE  # of tests/blender

from devtools.fuzz import contents
from devtools.fuzz import rigs as blends
from devtools.fuzz.outcome import Outcome

CLEANING = {"__exit__", "callback", "_restore", "_remove", "close", "_exit_wrapper", "pop_all"}
"""Functions in which what was done is taken back: a second failure there is not survived, and need not be."""
TIMEOUT = 120.0  # [s] a command line


def prepare() -> None:
    """Install the extension."""
    blends.prepare()


def run(seed: int) -> Outcome:
    """Try one kind of fault."""
    rng = random.Random(seed)
    kind = rng.choice(list(KINDS))
    bpy.ops.wm.read_homefile(use_empty=True)
    return Outcome(kind, [f"{kind}: {words}" for words in KINDS[kind](rng)])


def _module(name: str) -> Any:
    return import_module(f"{PACKAGE}.ccd_rig.{name}")


def _shot() -> Any:
    """A rig that can be baked."""
    rig = rigs.chain(4, 0.5)
    target = rigs.keyed(rigs.empty("Goal"), {-3: (0.2, 0.1, 1.3), 8: (0.9, 0.1, 1.3)})
    rigs.reach(rig, "bone_3", target, "Hand")
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 0, 8
    rig.pose.bones["bone_0"].keyframe_insert("location", frame=2)
    rigs.activate(rig)
    rigs.update()
    return rig


# Inside Blender ---------------------------------------------------------------------------------------------


class Injected(Exception):
    """What is raised on purpose."""


def _injected(rng: random.Random) -> list[str]:
    """An exception at a step of a bake, drawn by how many functions were called before."""
    rig, bake = _shot(), _module("blender.bake.bake")
    settings = bake.BakeSettings(
        0,
        8,
        destination=rng.choice(list(bake.Destination)),
        solver=rng.choice((None, _module("settings").Solver.CCD)),
        step=rng.choice((1, 3)),
    )
    before, calls = contents.content(), 0

    def count(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        if event == "call" and frame.f_globals.get("__name__", "").startswith(PACKAGE):
            calls += 1

    sys.setprofile(count)
    try:
        bake.bake(bpy.context.scene, rig, settings)
    finally:
        sys.setprofile(None)
    bpy.ops.wm.read_homefile(use_empty=True)
    rig, place, seen, where = _shot(), rng.randrange(calls), 0, ""
    before = contents.content()

    def fail(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal seen, where
        if event != "call" or not frame.f_globals.get("__name__", "").startswith(PACKAGE):
            return
        seen += 1
        if seen > place and not where and not _is_cleaning(frame):
            where = f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_code.co_name}"
            sys.setprofile(None)
            raise Injected

    sys.setprofile(fail)
    try:
        bake.bake(bpy.context.scene, rig, settings)
    except Injected:
        words = contents.changed(before, contents.content())
        return [f"after a failure in {where}: {words[:3]}"] if words else []
    except Exception as error:
        return [f"a failure in {where} became {type(error).__name__}: {error}"]
    finally:
        sys.setprofile(None)
    return []  # what failed was optional, or is told otherwise


def _is_cleaning(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in CLEANING:
            return True
        frame = frame.f_back
    return False


def _changed_meanwhile(rng: random.Random) -> list[str]:
    """The file changes under a bake that is under way."""
    rig, bake, errors = _shot(), _module("blender.bake.bake"), _module("errors")
    bpy.ops.ed.undo_push(message="one")
    bpy.ops.ed.undo_push(message="two")
    rig = bpy.data.objects["Rig"]
    changes: list[Callable[[], object]] = [
        lambda: bpy.data.objects.remove(bpy.data.objects["Rig"]),
        lambda: bpy.data.objects.remove(bpy.data.objects["Goal"]),
        lambda: bpy.ops.wm.read_homefile(use_empty=True),
        lambda: bpy.ops.ed.undo(),
        lambda: bpy.data.actions.remove(bpy.data.actions[0]),
        lambda: bpy.data.objects["Rig"].ccd_rig.constraints.clear(),
        lambda: bpy.ops.preferences.addon_disable(module=PACKAGE),
        lambda: bpy.data.orphans_purge(),
    ]
    change, at = rng.choice(changes), rng.randrange(1, 18)
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(0, 8))
    found = []
    try:
        for number, _ in enumerate(steps):
            if number == at:
                change()
    except errors.CCDRigError:
        pass
    except Exception as error:
        found.append(f"change {changes.index(change)} at item {at}: {type(error).__name__}: {error}")
    finally:
        steps.close()
        bpy.ops.preferences.addon_enable(module=PACKAGE)
    left = [scene.name for scene in bpy.data.scenes if "Evaluation" in scene.name]
    return [*found, *(f"left behind: {name}" for name in left)]


def _on_and_off(rng: random.Random) -> list[str]:
    """The extension is disabled and enabled again, with a rig that uses it."""
    _shot()
    for _ in range(rng.randrange(1, 6)):
        bpy.ops.preferences.addon_disable(module=PACKAGE)
        if hasattr(bpy.types.Object, "ccd_rig"):
            return ["a property stays"]
        bpy.ops.preferences.addon_enable(module=PACKAGE)
    rig, bake = bpy.data.objects["Rig"], _module("blender.bake.bake")
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(0, 8))
    return [] if report.unsolved_count() == 0 else [report.summary()]


def _out_of_range(rng: random.Random) -> list[str]:
    """Values that no panel gives: written past the properties, as a script or another version may."""
    rig, bake, errors = _shot(), _module("blender.bake.bake"), _module("errors")
    checks = _module("blender.checks.setup")
    groups = [rig.ccd_rig, rig.ccd_rig.constraints[0], rig.ccd_rig.solver, rig.ccd_rig.report]
    bone = rng.choice(rig.pose.bones).ccd_rig
    groups += [bone, bone.limit, bone.comfort]
    odd = (
        float("nan"),
        float("inf"),
        -1,
        -1.0,
        10**6,
        1e30,
        2**31 - 1,
        99,
        0,
        0.0,
        "",
        "ccd",
        [1.0] * 3,
        [1.0],
    )
    for _ in range(rng.randrange(1, 4)):
        group = rng.choice(groups)
        names = [p.identifier for p in group.bl_rna.properties if not p.is_readonly]
        stored = (
            group.bl_system_properties_get(do_create=True)
            if hasattr(group, "bl_system_properties_get")
            else group
        )
        try:
            stored[rng.choice(names)] = rng.choice(odd)
        except (TypeError, OverflowError, ValueError):
            continue  # Blender does not take it
    before = contents.content()
    try:
        checks.problems(rig, bpy.context.scene)
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(0, 8))
    except errors.CCDRigError as error:
        words = contents.changed(before, contents.content())
        return [f"refused ({error}), but changed: {words[:3]}"] if words else []
    return []


def _pose_files(rng: random.Random) -> list[str]:
    """Pose libraries of any kind."""
    rig = _shot()
    rotation: Any = [1.0, 0.0, 0.0, 0.0]
    poses: list[Any] = [{"name": f"P{i}", "rotations": {"bone_1": rotation}} for i in range(3)]
    data: Any = {"format": "ccd_rig.poses", "version": 1, "poses": poses}
    odd: list[Any] = [
        None,
        True,
        -1,
        1e400,
        10**30,
        "",
        "x" * 1000,
        [],
        {},
        [[]],
        {"a": {}},
        "\ud800",
        "\0",
        [1] * 9,
    ]
    for _ in range(rng.randrange(1, 3)):
        owner: Any = rng.choice((data, poses[1], poses[1].get("rotations") or data, poses))
        key = rng.choice(list(owner)) if isinstance(owner, dict) else rng.randrange(len(owner))
        owner[key] = rng.choice(odd)
        if not isinstance(poses[1], dict):
            break
    text = json.dumps(data)
    if rng.random() < 0.3:
        cut = rng.randrange(len(text))
        text = text[:cut] + rng.choice(("", "{", "[" * 5000, '"', "9" * 6000, "\\ud8")) + text[cut + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "poses.json"
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            bpy.ops.ccd_rig.poses_import(filepath=str(path))
        except RuntimeError as error:
            if "Traceback" in str(error):
                return [str(error)[-300:]]
            if len(rig.ccd_rig.poses):
                return ["refused, but poses were added"]
            if len(str(error)) > 700:
                return [f"a refusal of {len(str(error))} letters"]
    return []


# The command line -------------------------------------------------------------------------------------------


def _saved(folder: Path) -> Path:
    _shot()
    path = folder / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def _command(*words: object, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ccd_rig", *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **options
    )


def _is_whole(path: Path) -> bool:
    """Whether Blender opens a file, with the keys of a bake in it."""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    rig = bpy.data.objects["Rig"]
    return any("rotation" in path_ for _, path_, _ in contents.action_content(rig.animation_data.action))


def _killed(rng: random.Random) -> list[str]:
    """A signal at any time of a bake into a file that is there already."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shot, output = _saved(folder), folder / "out.blend"
        same = rng.random() < 0.3
        output = shot if same else output
        if not same:
            output.write_bytes(b"old")
        source, old = shot.read_bytes(), output.read_bytes()
        process = _command("bake", shot, "--output", output)
        sent = rng.choice((signal.SIGINT, signal.SIGKILL, signal.SIGTERM))
        time.sleep(rng.uniform(0.0, 2.6))
        process.send_signal(sent)
        process.communicate(timeout=TIMEOUT)
        found = []
        if output.read_bytes() != old and not _is_whole(output):
            found.append(f"{sent.name}: the output is torn")
        if not same and shot.read_bytes() != source:
            found.append(f"{sent.name}: the file has changed")
        left = {each.name for each in folder.iterdir()} - {"shot.blend", "out.blend"}
        if sent is signal.SIGINT and left:
            found.append(f"{sent.name}: left behind: {sorted(left)}")
        return found


def _full(rng: random.Random) -> list[str]:
    """A disk that is full after some bytes."""
    size = rng.choice((0, 100, 10_000, 60_000, 100_000, 1_000_000, rng.randrange(1, 200_000)))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shot, output, report = _saved(folder), folder / "out.blend", folder / "out.json"
        output.write_bytes(b"old")
        report.write_bytes(b"old")
        process = _command("bake", shot, "--output", output, "--report", report, preexec_fn=limit)
        process.communicate(timeout=TIMEOUT)
        found = []
        if process.returncode not in (0, 4):
            found.append(f"exit code {process.returncode} with {size} bytes")
        if report.read_bytes() != b"old":
            json.loads(report.read_text(encoding="utf-8"))
        if output.read_bytes() != b"old" and not _is_whole(output):
            found.append(f"{size} bytes: the output is torn")
        left = {each.name for each in folder.iterdir()} - {"shot.blend", "out.blend", "out.json"}
        return [*found, *(f"left behind: {each}" for each in left)]


def _two_at_once(rng: random.Random) -> list[str]:
    """Two processes that write the same file, one of them its own source."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shot = _saved(folder)
        output = rng.choice((shot, folder / "out.blend", folder / "link.blend"))
        if output.name == "link.blend":
            output.symlink_to("shot.blend")
        both = [_command("bake", shot, "--output", output, "--quiet") for _ in range(2)]
        for process in both:
            process.communicate(timeout=TIMEOUT)
        found = [f"exit code {process.returncode}" for process in both if process.returncode]
        if not _is_whole(output):
            found.append("the output is torn")
        if output.name == "link.blend" and not output.is_symlink():
            found.append("the link is gone")
        left = {each.name for each in folder.iterdir()} - {"shot.blend", "out.blend", "link.blend"}
        return [*found, *(f"left behind: {each}" for each in left)]


def _stranger(rng: random.Random) -> list[str]:
    """A file with scripts that would run, and values of another extension, is opened."""
    mark = Path(tempfile.gettempdir()) / f"ccd_rig_fuzz_mark_{os.getpid()}"
    rig = _shot()
    text = bpy.data.texts.new("run.py")
    text.write(f"open({str(mark)!r}, 'w').close()")
    text.use_module = True
    rig["ccd_rig_other"] = {"run": "import os"}
    rig.ccd_rig.constraints[0].name = "__import__('os')"
    known = set(dir(bpy.ops.ccd_rig)), len(bpy.app.handlers.load_post)
    bpy.context.preferences.filepaths.use_scripts_auto_execute = False
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "strange.blend")
            bpy.ops.wm.save_as_mainfile(filepath=path)
            bpy.ops.wm.open_mainfile(filepath=path, use_scripts=False)
        bpy.context.scene.frame_set(rng.randrange(10))
        now = set(dir(bpy.ops.ccd_rig)), len(bpy.app.handlers.load_post)
    finally:
        bpy.context.preferences.filepaths.use_scripts_auto_execute = True
    found = ["a script of the file has run"] if mark.exists() else []
    mark.unlink(missing_ok=True)
    return found + (["something was registered"] if now != known else [])


KINDS: dict[str, Callable[[random.Random], list[str]]] = {
    "exception in a bake": _injected,
    "file changed in mid-bake": _changed_meanwhile,
    "disabled and enabled": _on_and_off,
    "values out of range": _out_of_range,
    "hostile pose library": _pose_files,
    "signal to a headless bake": _killed,
    "full disk": _full,
    "two processes on one file": _two_at_once,
    "a stranger's file": _stranger,
}
