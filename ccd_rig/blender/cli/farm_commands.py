# SPDX-License-Identifier: GPL-3.0-or-later
"""`ccd_rig farm`, and what its jobs run: a shot or a chunk baked, chunks joined, a clip put onto an armature.

A job can run on this machine, its tasks in processes of their own, several at once. However this process
ends, its tasks end with it. Their standard input is a pipe that this process holds open, and that nobody
writes to. Where the pipe ends, a task interrupts itself.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy

from ...errors import CCDRigError, RigError
from .. import whole_files
from ..bake import bake_all, report
from ..bake.bake import bake, bake_solved_steps, solve_steps
from ..bake.progress import Progress, run
from ..bake.report import write
from ..farm import bundle, chunks, job, records, table
from ..farm import clips as clip_jobs
from ..farm.chunks import Chunk, Seam
from ..farm.clips import Clips
from ..farm.job import Shot, Span
from ..farm.records import Record
from ..keys import file_version
from ..retarget import clips, retarget
from ..whole_files import WriteError
from . import arguments, files, retarget_command
from .arguments import COMMAND
from .files import Exit, UsageError, complain, say


def open_blend(path: Path) -> bpy.types.Scene:
    """Open a .blend file, without its scripts; its active scene.

    Raises:
        UsageError: it cannot be opened, or a newer Blender has saved it: what this one does not know of it
            would be lost.
    """
    skipped = files.open_file(path, False)
    if skipped is not None:
        words = f"{path}: {skipped} was not run: scripts of files never are in farm jobs"
        complain(f"{COMMAND}: warning: {words}")
    if versions := file_version.newer_than_blender():
        saved, here = versions
        raise UsageError(
            f"{path} is of file version {saved}, that of this Blender is {here}: what this Blender does not "
            "know would be lost; use a Blender as new as the file for the whole job"
        )
    context: Any = bpy.context  # the stubs allow for a window without a scene
    scene: bpy.types.Scene = context.scene
    return scene


def open_for(name: str, folder: Path, path: Path, others: Sequence[Path] = ()) -> bpy.types.Scene:
    """Open the file that a task changes, and make the folder of the results.

    Args:
        name: of the result.
        folder: of the results.
        path: of the file.
        others: what else the task reads.

    Raises:
        UsageError: one of them, or a library of the file, would be overwritten; or as `open_blend`.
        WriteError: the folder cannot be made, or nothing can be written there.
    """
    result = folder / bundle.names(name).blend
    _require_free(result, (path, *others))
    bundle.status(f"{name}: opening")
    scene = open_blend(path)
    make_folder(folder)
    _require_free(whole_files.require_writable(result), records.linked_files())
    return scene


def _require_free(place: Path, read: Sequence[Path]) -> None:
    """See that a task does not write over what it reads."""
    for each in read:
        if whole_files.is_same(place, each):
            raise UsageError(f"{each} would be overwritten: choose another folder for the results")


def make_folder(folder: Path) -> None:
    """Make a folder and those that it lies in; raises WriteError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {folder}: {error.strerror}") from error


def is_done(folder: Path, path: Path, made_with: str) -> bool:
    """Whether the result of a file is there already, from the same and with the same; says so."""
    record = records.load(folder / bundle.names(path.stem).record)
    if record is None or not record.is_whole(folder) or not record.is_current(path, made_with):
        return False
    say_done(f"{path.stem}: done before, and nothing has changed")
    return True


def save_result(folder: Path, name: str, write_report: Callable[[Path], None], record: Record) -> None:
    """Write the open file and its report, and last the record, which says that both are complete.

    Two processes may do so at once: what each then finds is whole, whosever files were written last.

    Args:
        folder: of the results.
        name: of the result.
        write_report: writes it to a path.
        record: without outputs.
    """
    blend, report, record_path = (folder / each for each in bundle.names(name))
    files.save_as(blend)
    write_report(report)
    while True:
        whole = replace(record, outputs={path.name: records.sha256(path) for path in (blend, report)})
        whole.save(record_path)
        if whole.is_whole(folder):
            return


def say_done(words: str) -> None:
    """Say that a task is through."""
    bundle.progress(100.0)
    bundle.status(words)


def clips_job(options: argparse.Namespace, check: Callable[[], None], how: tuple[str, bool]) -> bundle.Job:
    """The job that puts clips onto the armature of a file.

    Args:
        options: of the command.
        check: raises KeyboardInterrupt if the command is to end.
        how: `program` and `is_module` of the job.

    Raises:
        UsageError, CCDRigError: there is no such clip or armature, or the options are those of bakes.
    """
    others = arguments.given(options, arguments.FARM_BAKE_ARGUMENTS)
    if others:
        raise UsageError(f"{', '.join(others)}: not with --retarget, which takes each clip as a whole")
    paths = [path.resolve() for path in retarget_command.clips_at(options.files)]
    assets: list[Path] = []
    for path in paths:
        check()
        assets += _read_beside(path, options.source_armature)
    open_blend(options.retarget)
    things = list(bpy.context.scene.objects)
    target, file = clips.armature(things, options.armature, str(options.retarget)), options.retarget.resolve()
    job = Clips(
        tuple(path.name for path in paths),
        file.name,
        target.name,
        options.source_armature,
        retarget_command.retarget_choice(options),
    )
    return clip_jobs.bundle_job(job, paths, file, (*assets, *records.linked_files()), how)


def carry_over(options: argparse.Namespace, check: Callable[[], None]) -> Exit:
    """Put a clip onto the armature, as a task does."""
    began = time.perf_counter()
    job = clip_jobs.read(options.settings)
    job.require(options.clip)
    clip, name, folder = options.clip.resolve(), options.clip.stem, options.output
    made_with = records.made_with(job.content(clip.name))
    if is_done(folder, clip, made_with):
        return Exit.DONE
    scene = open_for(name, folder, options.target, (clip,))
    target = clips.armature(list(scene.objects), job.armature, str(options.target))
    try:
        with clips.imported(clip) as objects:
            check()
            read = (clip, options.target, *clips.parts(clip), *records.linked_files())
            inputs = records.inputs(read)
            bundle.progress(10.0)
            bundle.status(f"{name}: carrying over")
            done = clips.carry_over(clip, objects, job.source_armature, target, job.choice)
    except CCDRigError as error:
        raise RigError(f"{clip.name}: {error}") from error
    check()
    values = {"clip": clip.name, "armature": target.name, **retarget.as_values(done)}
    text = json.dumps(values, indent=2) + "\n"
    row = table.row_of_clip(name, target.name, done, time.perf_counter() - began)
    record = Record(made_with, inputs, rows=(row,))
    save_result(folder, name, lambda path: write(text, path), record)
    for words in retarget.warnings(done):
        say(f"{name}: {words}")
    say_done(f"{name}: {retarget.lines(done)[0]}")
    return Exit.DONE


def write_table(path: Path, folder: Path) -> str:
    """Write the table of a job of clips; returns its text."""
    job = clip_jobs.read(path)
    results = {Path(file).stem: records.made_with(job.content(file)) for file in job.files}
    return table.write_table(results, table.CLIP_COLUMNS, folder)


def _read_beside(clip: Path, name: str | None) -> Sequence[Path]:
    """What is read beside a clip; a .blend file is looked into."""
    if clip.suffix.lower() != ".blend":
        return clips.parts(clip)
    open_blend(clip)
    clips.armature([thing for thing in bpy.data.objects if thing.library is None], name, str(clip))
    return records.linked_files()


SAID = "openjd_fail: "
HELD = "CCD_RIG_ENDS_WITH_STDIN"
"""Environment variable that tells a task to end when its standard input does."""
STANDARD_INPUT = 0
PATIENCE = 2.0
"""Seconds after its interrupt in which a task takes its unfinished files away."""


def run_here(job: bundle.Job, folder: Path, count: int) -> None:
    """Run all tasks, `count` at once; each step when the one before it is through, as a farm does.

    Raises:
        RigError: tasks failed; says which and why. Later steps did not run.
    """
    common = [f"--settings={folder / bundle.SETTINGS}", f"--output={folder / bundle.BAKED}"]
    steps = [[[step.command, *common, *words] for words in step.tasks()] for step in job.all_steps()]
    pool = ThreadPoolExecutor(count)
    held, holder = os.pipe()
    try:
        for step in steps:
            failed = [words for words in pool.map(lambda task: _run_task(job, task, held), step) if words]
            if failed:
                raise RigError("; ".join(failed))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        os.close(holder)
        pool.shutdown()
        os.close(held)


def end_with_starter() -> None:
    """In a task that `run` has started: watch for the end of the process that did."""
    if os.environ.get(HELD) == "1":
        threading.Thread(target=_watch, name="end with starter", daemon=True).start()


def _watch() -> None:
    while os.read(STANDARD_INPUT, 1):
        pass
    signal.raise_signal(signal.SIGINT)
    time.sleep(PATIENCE)
    os._exit(Exit.INTERRUPTED)


def _run_task(job: bundle.Job, words: Sequence[str], held: int) -> str:
    """Run a task; why it failed, or nothing.

    Args:
        job: it is one of.
        words: of its command.
        held: the pipe that ends with this process.
    """
    program = bpy.app.binary_path or sys.executable
    done = subprocess.run(
        [program, *job.words(*words)],
        stdin=held,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONUNBUFFERED": "1", HELD: "1"},
        check=False,
    )
    if done.returncode == 0:
        return ""
    reasons = [line.removeprefix(SAID) for line in done.stdout.splitlines() if line.startswith(SAID)]
    told = reasons[-1] if reasons else f"exit code {done.returncode}"
    return f"{words[0]} {' '.join(words[3:])}: {told}"


Check = Callable[[], None]
"""Raises KeyboardInterrupt if the command is to end."""


def run_command(options: argparse.Namespace, check: Check) -> Exit:
    """Run one of the commands; scripts of .blend files do not run, whatever the preferences say.

    Raises:
        UsageError, CCDRigError: it failed; a task has said so in its messages too.
    """
    commands = (_bake, _join, carry_over, _table)
    tasks = dict(zip(arguments.TASKS, commands, strict=True))
    if options.command in tasks:
        end_with_starter()
    filepaths = bpy.context.preferences.filepaths
    trusted, filepaths.use_scripts_auto_execute = filepaths.use_scripts_auto_execute, False
    try:
        return tasks.get(options.command, _farm)(options, check)
    except (UsageError, CCDRigError) as error:
        if options.command in tasks:
            bundle.fail(str(error))
        raise
    finally:
        filepaths.use_scripts_auto_execute = trusted


# --- the job ------------------------------------------------------------------------------------------------


def _farm(options: argparse.Namespace, check: Check) -> Exit:
    is_module = not bpy.app.binary_path
    how = options.program or ("python" if is_module else bundle.PROGRAM), is_module
    written = (_shots_job if options.retarget is None else clips_job)(options, check, how)
    bundle.write(written, options.output)
    if not options.quiet:
        counts = ", ".join(f"{step.name} {step.count}" for step in written.all_steps())
        say(f"{COMMAND}: wrote {options.output / bundle.TEMPLATE}; tasks: {counts}")
    if options.jobs:
        run_here(written, options.output, options.jobs)
        if not options.quiet:
            say((options.output / bundle.BAKED / "table.txt").read_text(encoding="utf-8"))
    return Exit.DONE


def _shots_job(options: argparse.Namespace, check: Check, how: tuple[str, bool]) -> bundle.Job:
    """The job that bakes shots; `how`: its `program` and `is_module`."""
    if others := arguments.given(options, (retarget_command.add_choice_arguments,)):
        raise UsageError(
            f"{', '.join(others)}: only with --retarget, which names the file that gets the clips"
        )
    shots: list[Shot] = []
    paths: list[Path] = []
    assets: list[Path] = []
    for file in options.files:
        check()
        scene = open_blend(file)
        settings = arguments.bake_settings(options, scene)
        things = bake_all.rigs(scene) if options.armature is None else [_armature(scene, options.armature)]
        try:
            shot, reason = job.plan(scene, dict.fromkeys(things, settings), options.chunk)
        except CCDRigError as error:
            raise RigError(f"{file}: {error}") from error
        if reason and not options.quiet:
            say(f"{shot.name}: one task for the whole shot: {reason}")
        shots.append(shot)
        paths.append(file.resolve())
        assets += records.linked_files()
    return bundle.bundle_job(shots, paths, assets, *how)


# --- its tasks ----------------------------------------------------------------------------------------------


def _bake(options: argparse.Namespace, check: Check) -> Exit:
    """Bake a shot, or solve a chunk of it."""
    shot = job.shot_of(job.read(options.settings), options.shot)
    spans = shot.spans()
    if not 1 <= options.part <= len(spans):
        raise UsageError(f"{shot.file} has the parts 1 to {len(spans)}, not {options.part}")
    if shot.is_split:
        return _solve_chunk(options, shot, spans[options.part - 1], check)
    if _is_done(options, shot):
        return Exit.DONE
    scene = open_for(shot.name, options.output, options.shot)
    settings = {_armature(scene, name): own for name, own in shot.armatures.items()}
    inputs, progress = records.inputs_of_open_file(), _progress(check)
    if len(settings) == 1:
        reports = [bake(scene, thing, own, progress) for thing, own in settings.items()]
    else:
        reports = bake_all.bake_all(scene, settings, progress)
    check()
    _save_shot(options.output, shot, reports, inputs)
    return Exit.DONE


def _solve_chunk(options: argparse.Namespace, shot: Shot, span: Span, check: Check) -> Exit:
    path, made_with = _chunk_path(options.output, shot, span), records.made_with(shot.content(), span)
    known = chunks.load(path)
    if known is not None and known.record.is_current(options.shot, made_with):
        say_done(f"{shot.name}, {span.words()}: done before, and nothing has changed")
        return Exit.DONE
    scene = open_for(shot.name, options.output, options.shot)
    make_folder(path.parent)
    whole_files.require_writable(path)
    record = Record(made_with, records.inputs_of_open_file())
    (name, settings), *_ = shot.armatures.items()
    settings = replace(settings, frame_start=span.solve_first, frame_end=span.solve_last)
    solved = run(solve_steps(scene, _armature(scene, name), settings), _progress(check))
    Chunk.of(solved, record).save(path)
    say_done(f"{shot.name}, {span.words()}: solved")
    return Exit.DONE


def _join(options: argparse.Namespace, check: Check) -> Exit:
    """Put the chunks of a shot together."""
    shot = job.shot_of(job.read(options.settings), options.shot)
    if _is_done(options, shot):
        return Exit.DONE
    found: list[tuple[Span, Chunk]] = []
    missing: list[str] = []
    for span in shot.spans():
        chunk = chunks.load(_chunk_path(options.output, shot, span))
        if chunk is None:
            missing.append(f"{span.words()} are missing")
        elif not chunk.record.is_current(options.shot, records.made_with(shot.content(), span)):
            missing.append(f"{span.words()} were made from other files, settings or versions")
        else:
            found.append((span, chunk))
    if missing:
        raise RigError(
            f"{shot.name} is not joined, and nothing is written: {'; '.join(missing)}. Run their tasks again"
        )
    scene = open_for(shot.name, options.output, options.shot)
    inputs = records.inputs_of_open_file()
    (name, settings), *_ = shot.armatures.items()
    seams: list[Seam] = []
    steps = bake_solved_steps(
        scene, _armature(scene, name), settings, lambda frames: chunks.joined(frames, found, seams)
    )
    try:
        result = run(steps, _progress(check))
    except CCDRigError as error:
        raise RigError(f"{shot.name}: {error}") from error
    check()
    _save_shot(options.output, shot, [result], inputs, seams)
    return Exit.DONE


def _table(options: argparse.Namespace, _check: Check) -> Exit:
    """Write the table of all shots or clips."""
    if clip_jobs.is_one(options.settings):
        text = write_table(options.settings, options.output)
    else:
        results = {shot.name: records.made_with(shot.content()) for shot in job.read(options.settings)}
        text = table.write_table(results, table.COLUMNS, options.output)
    say(text.rstrip("\n"))
    say_done("wrote table.csv and table.txt")
    return Exit.DONE


# --- results ------------------------------------------------------------------------------------------------


def _save_shot(
    folder: Path,
    shot: Shot,
    reports: Sequence[report.BakeReport],
    inputs: dict[str, str],
    seams: Sequence[Seam] = (),
) -> None:
    """Write the baked file, its report and its record."""

    def write_report(path: Path) -> None:
        if len(reports) == 1:
            report.save(reports[0], path)
        else:
            report.save_all(reports, path)

    rows = tuple(table.row_of(shot, each, seams) for each in reports)
    record = Record(records.made_with(shot.content()), inputs, rows=rows)
    save_result(folder, shot.name, write_report, record)
    for each in reports:
        say(f"{each.armature}: {each.summary()}")
        for fault in each.check.mismatches() if each.check is not None else ():
            say(f"{each.armature}: {fault}")
    say_done(f"{shot.name}: {'; '.join(each.summary() for each in reports)}")


def _is_done(options: argparse.Namespace, shot: Shot) -> bool:
    return is_done(options.output, options.shot, records.made_with(shot.content()))


def _chunk_path(folder: Path, shot: Shot, span: Span) -> Path:
    return folder / "chunks" / f"{shot.name}.{span.first}-{span.last}.npz"


def _armature(scene: bpy.types.Scene, name: str) -> bpy.types.Object:
    thing = scene.objects.get(name)
    if thing is None or thing.type != "ARMATURE":
        raise RigError(f"there is no armature object '{name}' in the scene")
    return thing


def _progress(check: Check) -> Callable[[Progress], None]:
    say = bundle.ProgressMessages()

    def show(step: Progress) -> None:
        check()
        say(step)

    return show
