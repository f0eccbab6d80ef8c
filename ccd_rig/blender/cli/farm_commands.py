# SPDX-License-Identifier: GPL-3.0-or-later
"""`ccd_rig farm`, and the commands of its tasks: bake a shot or chunk, join chunks, retarget a clip, table.

A job can run on this machine, its tasks in several processes at once. However this process ends, its tasks
end with it. Their standard input is a pipe that this process holds open, and that nobody writes to. When the
pipe ends, a task interrupts itself.
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
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import bpy

from ...errors import CCDRigError, RigError
from .. import atomic_write
from ..atomic_write import WriteError
from ..bake import bake_all, report
from ..bake.bake import bake, bake_steps, solve_steps
from ..bake.progress import run as run_steps
from ..bake.report import write
from ..farm import bundle, results
from ..farm import shots as jobs
from ..farm.results import Chunk, Record, Seam
from ..farm.settings import PROGRAM
from ..farm.shots import Clips, Shot, Span
from ..properties.active_rig import rigs_to_bake
from ..retarget import clips, retarget
from . import bake_command, figure_commands, files
from .files import COMMAND, Check, Exit, Run, UsageError, Words, say, warn

FARM_EXAMPLES = """\
examples:
  blender -b --command ccd_rig farm shots/*.blend --output job --chunk 500
  python -m ccd_rig farm shot_010.blend shot_020.blend --output job --frames 1-250
  python -m ccd_rig farm long.blend --output job --chunk 500 --jobs 2
  python -m ccd_rig farm clips/ more/walk.bvh --retarget hero.blend --output job --reference frame

"""


Add: TypeAlias = Callable[[Words], None]


def _add_chunk_argument(command: Words) -> None:
    command.add_argument(
        "--chunk",
        type=_count,
        default=0,
        metavar="N",
        help="share longer shots out in chunks of at most N frames (default: each shot is one task)",
    )


FARM_BAKE_ARGUMENTS: tuple[Add, ...] = (
    _add_chunk_argument,
    bake_command.add_constraint_argument,
    bake_command.add_frame_arguments,
    bake_command.add_key_arguments,
    bake_command.add_play_arguments,
)
"""Functions that add the options of a farm's bakes."""


def add_commands(commands: Any) -> None:
    """Add `farm` and the commands of its tasks to the subparsers of the parser."""
    words = "write a job for a render farm that bakes .blend files, or puts clips onto an armature"
    farm = files.add_command(commands, "farm", words, FARM_EXAMPLES, partial(_run_untrusted, _farm))
    farm.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="the .blend files, with --retarget clips or folders of them; none is changed",
    )
    _add_job_arguments(farm)
    farm.add_argument(
        "--armature",
        type=files.valid_name,
        metavar="NAME",
        help="armature object (default: all that have constraints; with --retarget the only one of TARGET)",
    )
    baking = farm.add_argument_group("how shots are baked")
    for add_options in FARM_BAKE_ARGUMENTS:
        add_options(baking)
    figure_commands.add_choice_arguments(
        farm.add_argument_group("how clips are carried over, with --retarget")
    )
    for name, words, run_task in (
        ("bake", "bake one part of a job", _bake),
        ("join", "join the chunks of a shot", _join),
        ("retarget", "put a clip onto an armature", _retarget),
        ("table", "write the table", _table),
    ):  # a job runs these; so do people, to learn why a task fails
        described = f"As a job does: {words}."
        task = commands.add_parser(f"farm-{name}", description=described, epilog=files.EPILOG, **files.LOOK)
        task.set_defaults(run=partial(_run_untrusted, partial(_as_task, run_task)))
        if name == "retarget":
            task.add_argument("clip", type=Path, metavar="CLIP", help="the file with the motion")
            task.add_argument("target", type=Path, metavar="TARGET", help="the .blend file with the armature")
        elif name != "table":
            task.add_argument("shot", type=Path, metavar="FILE", help="the .blend file")
        if name == "bake":
            task.add_argument("--part", type=int, required=True, metavar="K", help="of its chunks, from 1")
        task.add_argument("--settings", type=Path, required=True, metavar="FILE", help="of the bundle")
        task.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the results")


def _add_job_arguments(farm: argparse.ArgumentParser) -> None:
    farm.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the job bundle")
    farm.add_argument(
        "--retarget",
        type=Path,
        metavar="TARGET",
        help="put clips onto the armature of this .blend file instead of baking",
    )
    farm.add_argument(
        "--program",
        metavar="PROGRAM",
        help="what runs a task on the farm (default: blender, or python where this is python)",
    )
    farm.add_argument(
        "--jobs",
        type=_count,
        default=0,
        metavar="N",
        help="run the job here too, N tasks at once, each in a Blender of its own",
    )
    farm.add_argument("--quiet", action="store_true", help="only errors and warnings")


def _non_default(options: argparse.Namespace, adders: Sequence[Add]) -> list[str]:
    """Names of the options added by `adders` that differ from their defaults."""
    probe = argparse.ArgumentParser(add_help=False)
    for add_options in adders:
        add_options(probe)
    defaults = vars(probe.parse_args([]))
    return [
        f"--{name.replace('_', '-')}" for name, value in defaults.items() if getattr(options, name) != value
    ]


def _count(words: str) -> int:
    if not words.isdecimal():
        raise argparse.ArgumentTypeError(f"'{words}' is not a whole number of 0 or more")
    return int(words)


def _run_untrusted(run: Run, options: argparse.Namespace, check: Check) -> Exit:
    """Run `farm` or a task. Scripts of .blend files do not run, whatever the preferences say."""
    filepaths = bpy.context.preferences.filepaths
    trusted, filepaths.use_scripts_auto_execute = filepaths.use_scripts_auto_execute, False
    try:
        return run(options, check)
    finally:
        filepaths.use_scripts_auto_execute = trusted


def _as_task(run: Run, options: argparse.Namespace, check: Check) -> Exit:
    """Run a task, whose messages tell the farm too why it fails."""
    if os.environ.get(ENDS_WITH_STDIN) == "1":
        threading.Thread(target=_end_with_starter, name="end with starter", daemon=True).start()
    try:
        return run(options, check)
    except (UsageError, CCDRigError) as error:
        bundle.fail(str(error))
        raise


# --- files --------------------------------------------------------------------------------------------------


def _open_blend(path: Path) -> bpy.types.Scene:
    """Open a .blend file without its scripts, and return its active scene.

    Raises:
        UsageError: the file cannot be opened, or a newer Blender has saved it, whose unknown data would be
            lost.
    """
    skipped = files.open_file(path, False)
    if skipped is not None:
        words = f"{path}: {skipped} was not run: scripts of files never are in farm jobs"
        warn(words)
    if lost := files.lost_in(path):
        raise UsageError(f"{lost}; use a Blender as new as the file for the whole job")
    context: Any = bpy.context  # the stubs allow for a window without a scene
    scene: bpy.types.Scene = context.scene
    return scene


def _open_for(name: str, folder: Path, path: Path, others: Sequence[Path] = ()) -> bpy.types.Scene:
    """Open the file that a task changes, and make the folder of the results.

    Args:
        others: further files that the task reads.

    Raises:
        UsageError: the result would overwrite an input or a library of the file; or as `_open_blend`.
        WriteError: the folder cannot be made or written.
    """
    result = folder / bundle.names(name).blend
    _require_free(result, (path, *others))
    bundle.status(f"{name}: opening")
    scene = _open_blend(path)
    _make_folder(folder)
    _require_free(atomic_write.require_writable(result), results.linked_files())
    return scene


def _require_free(place: Path, inputs: Sequence[Path]) -> None:
    """Raise UsageError if a task would overwrite one of its inputs."""
    for path in inputs:
        if atomic_write.is_same(place, path):
            raise UsageError(f"{path} would be overwritten: choose another folder for the results")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {folder}: {error.strerror}") from error


def _is_done(folder: Path, path: Path, made_with: str) -> bool:
    """Whether the result of a file exists, from the same inputs; says so."""
    record = results.load_record(folder / bundle.names(path.stem).record)
    if record is None or not record.is_whole(folder) or not record.is_current(path, made_with):
        return False
    _say_done(f"{path.stem}: done before, and nothing has changed")
    return True


def _save_result(folder: Path, name: str, write_report: Callable[[Path], None], record: Record) -> None:
    """Write the open file and its report, and last the record, by which both are known to be complete.

    Two processes may do so at once: the result is complete, whichever process wrote last.

    Args:
        write_report: writes the report to a path.
        record: without outputs.
    """
    blend, report, record_path = (folder / file for file in bundle.names(name))
    files.save_as(blend)
    write_report(report)
    while True:
        complete = replace(record, outputs={path.name: results.sha256(path) for path in (blend, report)})
        complete.save(record_path)
        if complete.is_whole(folder):
            return


def _say_done(words: str) -> None:
    bundle.progress(100.0)
    bundle.status(words)


# --- running a job here -------------------------------------------------------------------------------------


FAILURE = "openjd_fail: "
ENDS_WITH_STDIN = "CCD_RIG_ENDS_WITH_STDIN"
"""Environment variable that tells a task to end when its standard input does."""
STANDARD_INPUT = 0
PATIENCE = 2.0
"""Seconds that a task has after its interrupt to remove its unfinished files."""


def _run_here(job: bundle.Job, folder: Path, count: int) -> None:
    """Run all tasks, `count` at once, and step after step, as a farm does.

    Raises:
        RigError: tasks failed; names them and their reasons. Later steps did not run.
    """
    common = [f"--settings={folder / bundle.SETTINGS}", f"--output={folder / bundle.BAKED}"]
    steps = [[[step.command, *common, *words] for words in step.tasks()] for step in job.all_steps()]
    pool = ThreadPoolExecutor(count)
    reading, writing = os.pipe()
    try:
        for step in steps:
            failed = [words for words in pool.map(lambda task: _run_task(job, task, reading), step) if words]
            if failed:
                raise RigError("; ".join(failed))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        os.close(writing)
        pool.shutdown()
        os.close(reading)


def _end_with_starter() -> None:
    """Wait for the end of the process that has started this task, and interrupt the task then."""
    while os.read(STANDARD_INPUT, 1):
        pass
    signal.raise_signal(signal.SIGINT)
    time.sleep(PATIENCE)
    os._exit(Exit.INTERRUPTED)


def _run_task(job: bundle.Job, words: Sequence[str], reading: int) -> str:
    """Run a task and return the reason why it failed; empty if it succeeded.

    Args:
        reading: read end of the pipe that ends with this process.
    """
    program = bpy.app.binary_path or sys.executable
    process = subprocess.run(
        [program, *job.words(*words)],
        stdin=reading,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONUNBUFFERED": "1", ENDS_WITH_STDIN: "1"},
        check=False,
    )
    if process.returncode == 0:
        return ""
    reasons = [line.removeprefix(FAILURE) for line in process.stdout.splitlines() if line.startswith(FAILURE)]
    reason = reasons[-1] if reasons else f"exit code {process.returncode}"
    return f"{words[0]} {' '.join(words[3:])}: {reason}"


# --- the job ------------------------------------------------------------------------------------------------


def _farm(options: argparse.Namespace, check: Check) -> Exit:
    is_module = not bpy.app.binary_path
    program = options.program or ("python" if is_module else PROGRAM)
    make_job = _shots_job if options.retarget is None else _clips_job
    job_bundle = make_job(options, check, program, is_module)
    bundle.write(job_bundle, options.output)
    if not options.quiet:
        counts = ", ".join(f"{step.name} {step.count}" for step in job_bundle.all_steps())
        say(f"{COMMAND}: wrote {options.output / bundle.TEMPLATE}; tasks: {counts}")
    if options.jobs:
        _run_here(job_bundle, options.output, options.jobs)
        if not options.quiet:
            say((options.output / bundle.BAKED / "table.txt").read_text(encoding="utf-8"))
    return Exit.DONE


def _shots_job(options: argparse.Namespace, check: Check, program: str, is_module: bool) -> bundle.Job:
    """Return the job that bakes shots."""
    if others := _non_default(options, (figure_commands.add_choice_arguments,)):
        raise UsageError(
            f"{', '.join(others)}: only with --retarget, which names the file that gets the clips"
        )
    shots: list[Shot] = []
    paths: list[Path] = []
    assets: list[Path] = []
    for file in options.files:
        check()
        scene = _open_blend(file)
        settings = bake_command.bake_settings(options, scene)
        rigs = (
            rigs_to_bake(scene)
            if options.armature is None
            else [bake_command.armature_of(scene, options.armature)]
        )
        try:
            shares = bake_command.settings_of_rigs(rigs, settings)
            shot, reason = jobs.plan(scene, shares, options.chunk)
        except CCDRigError as error:
            raise RigError(f"{file}: {error}") from error
        if reason and not options.quiet:
            say(f"{shot.name}: one task for the whole shot: {reason}")
        shots.append(shot)
        paths.append(atomic_write.real_folder(file))
        assets += results.linked_files()
    return bundle.bundle_job(shots, paths, assets, program, is_module)


def _clips_job(options: argparse.Namespace, check: Check, program: str, is_module: bool) -> bundle.Job:
    """Return the job that retargets clips to the armature of a file."""
    if others := _non_default(options, FARM_BAKE_ARGUMENTS):
        raise UsageError(f"{', '.join(others)}: not with --retarget, which takes each clip as a whole")
    paths = [atomic_write.real_folder(path) for path in figure_commands.clips_at(options.files)]
    assets: list[Path] = []
    for path in paths:
        check()
        if path.suffix.lower() == ".blend":  # its libraries are known when it is open
            _open_blend(path)
            local = [candidate for candidate in bpy.data.objects if candidate.library is None]
            clips.armature(local, options.source_armature, str(path))
            assets += results.linked_files()
        else:
            assets += clips.files_beside(path)
    _open_blend(options.retarget)
    objects = list(bpy.context.scene.objects)
    target = clips.armature(objects, options.armature, str(options.retarget))
    file = atomic_write.real_folder(options.retarget)
    settings = Clips(
        tuple(path.name for path in paths),
        file.name,
        target.name,
        options.source_armature,
        figure_commands.retarget_choice(options),
    )
    assets += results.linked_files()
    return bundle.bundle_clips(settings, paths, file, assets, program, is_module)


# --- its tasks ----------------------------------------------------------------------------------------------


def _bake(options: argparse.Namespace, check: Check) -> Exit:
    """Bake a shot, or solve one of its chunks."""
    shot = jobs.shot_of(jobs.read_shots(options.settings), options.shot)
    spans = shot.spans()
    if not 1 <= options.part <= len(spans):
        raise UsageError(f"{shot.file} has the parts 1 to {len(spans)}, not {options.part}")
    if shot.is_split:
        return _solve_chunk(options, shot, spans[options.part - 1], check)
    if _is_done(options.output, options.shot, results.made_with(shot.content())):
        return Exit.DONE
    scene = _open_for(shot.name, options.output, options.shot)
    rigs = {bake_command.armature_of(scene, name): settings for name, settings in shot.armatures.items()}
    inputs, progress = results.inputs_of_open_file(), bundle.ProgressMessages(check)
    if len(rigs) == 1:
        reports = [bake(scene, rig, settings, progress) for rig, settings in rigs.items()]
    else:
        reports = bake_all.bake_all(scene, rigs, progress)
    check()
    _save_shot(options.output, shot, reports, inputs)
    return Exit.DONE


def _solve_chunk(options: argparse.Namespace, shot: Shot, span: Span, check: Check) -> Exit:
    path, made_with = _chunk_path(options.output, shot, span), results.made_with(shot.content(), span)
    stored = results.load_chunk(path)
    if stored is not None and stored.record.is_current(options.shot, made_with):
        _say_done(f"{shot.name}, {span.words()}: done before, and nothing has changed")
        return Exit.DONE
    scene = _open_for(shot.name, options.output, options.shot)
    _make_folder(path.parent)
    atomic_write.require_writable(path)
    record = Record(made_with, results.inputs_of_open_file())
    (name, settings), *_ = shot.armatures.items()
    settings = replace(settings, frame_start=span.solve_first, frame_end=span.solve_last)
    solved = run_steps(
        solve_steps(scene, bake_command.armature_of(scene, name), settings), bundle.ProgressMessages(check)
    )
    Chunk.of(solved, record).save(path)
    _say_done(f"{shot.name}, {span.words()}: solved")
    return Exit.DONE


def _join(options: argparse.Namespace, check: Check) -> Exit:
    """Join the chunks of a shot."""
    shot = jobs.shot_of(jobs.read_shots(options.settings), options.shot)
    if _is_done(options.output, options.shot, results.made_with(shot.content())):
        return Exit.DONE
    solved: list[tuple[Span, Chunk]] = []
    missing: list[str] = []
    for span in shot.spans():
        chunk = results.load_chunk(_chunk_path(options.output, shot, span))
        if chunk is None:
            missing.append(f"{span.words()} are missing")
        elif not chunk.record.is_current(options.shot, results.made_with(shot.content(), span)):
            missing.append(f"{span.words()} were made from other files, settings or versions")
        else:
            solved.append((span, chunk))
    if missing:
        raise RigError(
            f"{shot.name} is not joined, and nothing is written: {'; '.join(missing)}. Run their tasks again"
        )
    scene = _open_for(shot.name, options.output, options.shot)
    inputs = results.inputs_of_open_file()
    (name, settings), *_ = shot.armatures.items()
    seams: list[Seam] = []
    steps = bake_steps(
        scene,
        bake_command.armature_of(scene, name),
        settings,
        lambda frames: results.joined(frames, solved, seams),
    )
    try:
        result = run_steps(steps, bundle.ProgressMessages(check))
    except CCDRigError as error:
        raise RigError(f"{shot.name}: {error}") from error
    check()
    _save_shot(options.output, shot, [result], inputs, seams)
    return Exit.DONE


def _retarget(options: argparse.Namespace, check: Check) -> Exit:
    """Retarget a clip."""
    began = time.perf_counter()
    settings = jobs.read_clips(options.settings)
    settings.require(options.clip)
    clip, name, folder = atomic_write.real_folder(options.clip), options.clip.stem, options.output
    made_with = results.made_with(settings.content(clip.name))
    if _is_done(folder, clip, made_with):
        return Exit.DONE
    scene = _open_for(name, folder, options.target, (clip,))
    target = clips.armature(list(scene.objects), settings.armature, str(options.target))
    try:
        with clips.imported(clip) as imported:
            check()
            read = (clip, options.target, *clips.files_beside(clip), *results.linked_files())
            inputs = results.inputs(read)
            bundle.progress(10.0)
            bundle.status(f"{name}: carrying over")
            result = clips.carry_over(clip, imported, settings.source_armature, target, settings.choice)
    except CCDRigError as error:
        raise RigError(f"{clip.name}: {error}") from error
    check()
    values = {"clip": clip.name, "armature": target.name, **retarget.as_values(result)}
    text = json.dumps(values, indent=2) + "\n"
    row = results.row_of_clip(name, target.name, result, time.perf_counter() - began)
    record = Record(made_with, inputs, rows=(row,))
    _save_result(folder, name, lambda path: write(text, path), record)
    for words in retarget.warnings(result):
        say(f"{name}: {words}")
    _say_done(f"{name}: {retarget.lines(result)[0]}")
    return Exit.DONE


def _table(options: argparse.Namespace, _check: Check) -> Exit:
    """Write the table of all shots or clips."""
    if jobs.is_clips_job(options.settings):
        settings = jobs.read_clips(options.settings)
        expected = {Path(file).stem: results.made_with(settings.content(file)) for file in settings.files}
    else:
        shots = jobs.read_shots(options.settings)
        expected = {shot.name: results.made_with(shot.content()) for shot in shots}
    say(results.write_table(expected, options.output).rstrip("\n"))
    _say_done("wrote table.csv and table.txt")
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
    saved = reports[0] if len(reports) == 1 else reports
    rows = tuple(results.row_of(shot, rig_report, seams) for rig_report in reports)
    record = Record(results.made_with(shot.content()), inputs, rows=rows)
    _save_result(folder, shot.name, lambda path: report.save(saved, path), record)
    for rig_report in reports:
        say(f"{rig_report.armature}: {rig_report.summary()}")
        for fault in rig_report.mismatches():
            say(f"{rig_report.armature}: {fault}")
    _say_done(f"{shot.name}: {'; '.join(rig_report.summary() for rig_report in reports)}")


def _chunk_path(folder: Path, shot: Shot, span: Span) -> Path:
    return folder / "chunks" / f"{shot.name}.{span.first}-{span.last}.npz"
