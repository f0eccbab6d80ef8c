"""`ccd_rig farm`, and what its jobs run: a shot or a chunk baked, chunks joined, a clip put onto an armature,
the table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import bpy

from ...errors import CCDRigError, RigError
from .. import whole_files
from ..bake import bake_all, report
from ..bake.bake import bake, bake_solved_steps, solve_steps
from ..bake.progress import Progress, run
from ..farm import bundle, chunks, clips, job, messages, records, table
from ..farm.chunks import Chunk, Seam
from ..farm.job import Shot, Span
from ..farm.records import Record
from . import arguments, farm_arguments, farm_clips, farm_files, local_jobs, retarget_command
from .arguments import COMMAND
from .exits import Exit, UsageError
from .terminal import say

Check = Callable[[], None]
"""Raises KeyboardInterrupt if the command is to end."""


def run_command(options: argparse.Namespace, check: Check) -> Exit:
    """Run one of the commands; scripts of .blend files do not run, whatever the preferences say.

    Raises:
        UsageError, CCDRigError: it failed; a task has said so in its messages too.
    """
    commands = (_bake, _join, farm_clips.carry_over, _table)
    tasks = dict(zip(farm_arguments.TASKS, commands, strict=True))
    if options.command in tasks:
        local_jobs.end_with_starter()
    filepaths = bpy.context.preferences.filepaths
    trusted, filepaths.use_scripts_auto_execute = filepaths.use_scripts_auto_execute, False
    try:
        return tasks.get(options.command, _farm)(options, check)
    except (UsageError, CCDRigError) as error:
        if options.command in tasks:
            messages.fail(str(error))
        raise
    finally:
        filepaths.use_scripts_auto_execute = trusted


# --- the job ------------------------------------------------------------------------------------------------


def _farm(options: argparse.Namespace, check: Check) -> Exit:
    is_module = not bpy.app.binary_path
    how = options.program or ("python" if is_module else bundle.PROGRAM), is_module
    written = (_shots_job if options.retarget is None else farm_clips.clips_job)(options, check, how)
    bundle.write(written, options.output)
    if not options.quiet:
        counts = ", ".join(f"{step.name} {step.count}" for step in written.all_steps())
        say(f"{COMMAND}: wrote {options.output / bundle.TEMPLATE}; tasks: {counts}")
    if options.jobs:
        local_jobs.run(written, options.output, options.jobs)
        if not options.quiet:
            say((options.output / bundle.BAKED / "table.txt").read_text(encoding="utf-8"))
    return Exit.DONE


def _shots_job(options: argparse.Namespace, check: Check, how: tuple[str, bool]) -> bundle.Job:
    """The job that bakes shots; `how`: its `program` and `is_module`."""
    if others := farm_arguments.given(options, (retarget_command.add_choice_arguments,)):
        raise UsageError(
            f"{', '.join(others)}: only with --retarget, which names the file that gets the clips"
        )
    shots: list[Shot] = []
    paths: list[Path] = []
    assets: list[Path] = []
    for file in options.files:
        check()
        scene = farm_files.open_blend(file)
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
    scene = farm_files.open_for(shot.name, options.output, options.shot)
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
        farm_files.say_done(f"{shot.name}, {span.words()}: done before, and nothing has changed")
        return Exit.DONE
    scene = farm_files.open_for(shot.name, options.output, options.shot)
    farm_files.make_folder(path.parent)
    whole_files.require_writable(path)
    record = Record(made_with, records.inputs_of_open_file())
    (name, settings), *_ = shot.armatures.items()
    settings = replace(settings, frame_start=span.solve_first, frame_end=span.solve_last)
    solved = run(solve_steps(scene, _armature(scene, name), settings), _progress(check))
    Chunk.of(solved, record).save(path)
    farm_files.say_done(f"{shot.name}, {span.words()}: solved")
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
    scene = farm_files.open_for(shot.name, options.output, options.shot)
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
    if clips.is_one(options.settings):
        text = farm_clips.write_table(options.settings, options.output)
    else:
        results = {shot.name: records.made_with(shot.content()) for shot in job.read(options.settings)}
        text = table.write_table(results, table.COLUMNS, options.output)
    say(text.rstrip("\n"))
    farm_files.say_done("wrote table.csv and table.txt")
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
    farm_files.save_result(folder, shot.name, write_report, record)
    for each in reports:
        say(f"{each.armature}: {each.summary()}")
        for fault in each.check.mismatches() if each.check is not None else ():
            say(f"{each.armature}: {fault}")
    farm_files.say_done(f"{shot.name}: {'; '.join(each.summary() for each in reports)}")


def _is_done(options: argparse.Namespace, shot: Shot) -> bool:
    return farm_files.is_done(options.output, options.shot, records.made_with(shot.content()))


def _chunk_path(folder: Path, shot: Shot, span: Span) -> Path:
    return folder / "chunks" / f"{shot.name}.{span.first}-{span.last}.npz"


def _armature(scene: bpy.types.Scene, name: str) -> bpy.types.Object:
    thing = scene.objects.get(name)
    if thing is None or thing.type != "ARMATURE":
        raise RigError(f"there is no armature object '{name}' in the scene")
    return thing


def _progress(check: Check) -> Callable[[Progress], None]:
    say = messages.ProgressMessages()

    def show(step: Progress) -> None:
        check()
        say(step)

    return show
