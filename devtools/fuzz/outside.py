"""Faults from outside: after failures, kills, full disks and changes of the file no half result is left.

Exceptions at any step of a bake; full disks, links, two processes on one file; files, undo and the extension
removed in mid-bake; values that no property takes; files of strangers.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import bpy
from installed import PACKAGE  # of tests/blender

from devtools.fuzz import Outcome, command_lines, contents, rigs
from devtools.fuzz.shots import module, shot

CLEANING = {"__exit__", "callback", "_restore", "_remove", "close", "_exit_wrapper", "pop_all"}
"""Functions in which what was done is taken back: a second failure there is not survived, and need not be."""


class Injected(Exception):
    """Exception that is raised on purpose."""


def injected(rng: random.Random) -> list[str]:
    """An exception at a step of a bake, drawn by how many functions were called before."""
    rig, bake = shot(), module("blender.bake.bake")
    settings = bake.BakeSettings(
        0,
        8,
        destination=rng.choice(list(bake.Destination)),
        solver=rng.choice((None, module("settings").Solver.CCD)),
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
    rig, place, seen, where = shot(), rng.randrange(calls), 0, ""
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
    """Whether what was done is being taken back, or all is done and kept and the result handed out."""
    if frame is not None and frame.f_back is not None:
        caller = frame.f_back.f_code
        if caller.co_name == "advance" and frame.f_code.co_name == "__init__":  # of `Ended`
            return True
    while frame is not None:
        if frame.f_code.co_name in CLEANING:
            return True
        frame = frame.f_back
    return False


def changed_meanwhile(rng: random.Random) -> list[str]:
    """The file changes under a bake that is under way."""
    rig, bake, errors = shot(), module("blender.bake.bake"), module("errors")
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
    faults = []
    try:
        for number, _ in enumerate(steps):
            if number == at:
                change()
    except errors.CCDRigError:
        pass
    except Exception as error:
        faults.append(f"change {changes.index(change)} at item {at}: {type(error).__name__}: {error}")
    finally:
        steps.close()
        bpy.ops.preferences.addon_enable(module=PACKAGE)
    left = [scene.name for scene in bpy.data.scenes if "Evaluation" in scene.name]
    return [*faults, *(f"left behind: {name}" for name in left)]


def on_and_off(rng: random.Random) -> list[str]:
    """The extension is disabled and enabled again, with a rig that uses it."""
    shot()
    for _ in range(rng.randrange(1, 6)):
        bpy.ops.preferences.addon_disable(module=PACKAGE)
        if hasattr(bpy.types.Object, "ccd_rig"):
            return ["a property stays"]
        bpy.ops.preferences.addon_enable(module=PACKAGE)
    rig, bake = bpy.data.objects["Rig"], module("blender.bake.bake")
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(0, 8))
    return [] if report.unsolved_count() == 0 else [report.summary()]


def out_of_range(rng: random.Random) -> list[str]:
    """Values that no panel gives: written past the properties, as a script or another version may."""
    rig, bake, errors = shot(), module("blender.bake.bake"), module("errors")
    checks = module("blender.checks")
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


def stranger(rng: random.Random) -> list[str]:
    """A file with scripts that would run, and values of another extension, is opened."""
    mark = Path(tempfile.gettempdir()) / f"ccd_rig_fuzz_mark_{os.getpid()}"
    rig = shot()
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
    faults = ["a script of the file has run"] if mark.exists() else []
    mark.unlink(missing_ok=True)
    return faults + (["something was registered"] if now != known else [])


KINDS: dict[str, Callable[[random.Random], list[str]]] = {
    "exception in a bake": injected,
    "file changed in mid-bake": changed_meanwhile,
    "disabled and enabled": on_and_off,
    "values out of range": out_of_range,
    "full disk": command_lines.full,
    "two processes on one file": command_lines.two_at_once,
    "a stranger's file": stranger,
}


def prepare() -> None:
    """Install the extension."""
    rigs.prepare()


def run(seed: int) -> Outcome:
    """Try one kind of fault."""
    rng = random.Random(seed)
    kind = rng.choice(list(KINDS))
    bpy.ops.wm.read_homefile(use_empty=True)
    return Outcome(kind, [f"{kind}: {words}" for words in KINDS[kind](rng)])
