"""`ccd_rig farm`, and what its jobs run: a shot or a chunk baked, chunks joined, the table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy

from ...errors import CCDRigError, RigError
from .. import whole_files
from ..bake import bake_all, report
from ..bake.bake import bake, bake_solved_steps, solve_steps
from ..bake.progress import Progress, run
from ..farm import bundle, chunks, job, messages, planning, records, table
from ..farm.chunks import Chunk, Seam
from ..farm.job import Shot
from ..farm.records import Record
from ..farm.spans import Span
from ..keys import file_version
from ..whole_files import WriteError
from . import arguments, blend_files, farm_arguments, local_jobs
from .arguments import COMMAND
from .exits import Exit, UsageError

Check = Callable[[], None]
"""Raises KeyboardInterrupt if the command is to end."""


def run_command(options: argparse.Namespace, check: Check) -> Exit:
    """Run one of the commands; scripts of .blend files do not run, whatever the preferences say.

    Raises:
        UsageError, CCDRigError: it failed; a task has said so in its messages too.
    """
    commands = (_bake, _join, _table)
    tasks = dict(zip(farm_arguments.TASKS, commands, strict=True))
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
    shots: list[Shot] = []
    paths: list[Path] = []
    assets: list[Path] = []
    for file in options.files:
        check()
        _open(file)
        scene = bpy.context.scene
        settings = arguments.bake_settings(options, scene)
        things = bake_all.rigs(scene) if options.armature is None else [_armature(scene, options.armature)]
        try:
            shot, reason = planning.plan(scene, dict.fromkeys(things, settings), options.chunk)
        except CCDRigError as error:
            raise RigError(f"{file}: {error}") from error
        if reason and not options.quiet:
            print(f"{shot.name}: one task for the whole shot: {reason}", flush=True)
        shots.append(shot)
        paths.append(file.resolve())
        assets += records.linked_files()
    is_module = not bpy.app.binary_path
    program = options.program or ("python" if is_module else bundle.PROGRAM)
    written = bundle.Job(shots, paths, assets, program, is_module)
    bundle.write(written, options.output)
    if not options.quiet:
        counts = f"{len(shots)} shots, {len(written.tasks())} tasks and {len(written.joins())} joins"
        print(f"{COMMAND}: wrote {options.output / bundle.TEMPLATE}: {counts}", flush=True)
    if options.jobs:
        local_jobs.run(written, options.output, options.jobs)
        if not options.quiet:
            print((options.output / bundle.BAKED / "table.txt").read_text(encoding="utf-8"), flush=True)
    return Exit.DONE


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
    scene = _open_shot(options, shot)
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
    path, made_with = _chunk_path(options.output, shot, span), records.made_with(shot, span)
    known = chunks.load(path)
    if known is not None and known.record.is_current(options.shot, made_with):
        _say_done(f"{shot.name}, {span.words()}: done before, and nothing has changed")
        return Exit.DONE
    scene = _open_shot(options, shot)
    _make_folder(path.parent)
    whole_files.require_writable(path)
    record = Record(made_with, records.inputs_of_open_file())
    (name, settings), *_ = shot.armatures.items()
    settings = replace(settings, frame_start=span.solve_first, frame_end=span.solve_last)
    solved = run(solve_steps(scene, _armature(scene, name), settings), _progress(check))
    Chunk.of(solved, record).save(path)
    _say_done(f"{shot.name}, {span.words()}: solved")
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
        elif not chunk.record.is_current(options.shot, records.made_with(shot, span)):
            missing.append(f"{span.words()} were made from other files, settings or versions")
        else:
            found.append((span, chunk))
    if missing:
        raise RigError(
            f"{shot.name} is not joined, and nothing is written: {'; '.join(missing)}. Run their tasks again"
        )
    scene = _open_shot(options, shot)
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
    """Write the table of all shots."""
    text = table.write_table(job.read(options.settings), options.output)
    print(text, end="", flush=True)
    _say_done("wrote table.csv and table.txt")
    return Exit.DONE


# --- files --------------------------------------------------------------------------------------------------


def _open(path: Path) -> None:
    """Open a .blend file, without its scripts.

    Raises:
        UsageError: it cannot be opened, or a newer Blender has saved it: what this one does not know of it
            would be lost.
    """
    skipped = blend_files.open_file(path, False)
    if skipped is not None:
        words = f"{path}: {skipped} was not run: scripts of files never are in farm jobs"
        print(f"{COMMAND}: warning: {words}", file=sys.stderr, flush=True)
    if versions := file_version.newer_than_blender():
        saved, here = versions
        raise UsageError(
            f"{path} is of file version {saved}, that of this Blender is {here}: what this Blender does not "
            "know would be lost; use a Blender as new as the file for the whole job"
        )


def _open_shot(options: argparse.Namespace, shot: Shot) -> bpy.types.Scene:
    if whole_files.is_same(options.output / f"{shot.name}.blend", options.shot):
        raise UsageError(f"{options.shot} would be overwritten: choose another folder for the results")
    messages.status(f"{shot.name}: opening")
    _open(options.shot)
    _make_folder(options.output)
    place = whole_files.require_writable(options.output / f"{shot.name}.blend")
    if any(whole_files.is_same(place, each) for each in records.linked_files()):
        raise UsageError(
            f"{place} is used by {options.shot}, and would be overwritten: choose another folder for the "
            "results"
        )
    context: Any = bpy.context  # the stubs allow for a window without a scene
    scene: bpy.types.Scene = context.scene
    return scene


def _is_done(options: argparse.Namespace, shot: Shot) -> bool:
    """Whether the shot is baked already, from the same and with the same."""
    record = records.load(_record_path(options.output, shot))
    if record is None or not record.is_whole(options.output):
        return False
    if not record.is_current(options.shot, records.made_with(shot)):
        return False
    _say_done(f"{shot.name}: done before, and nothing has changed")
    return True


def _save_shot(
    folder: Path,
    shot: Shot,
    reports: Sequence[report.BakeReport],
    inputs: dict[str, str],
    seams: Sequence[Seam] = (),
) -> None:
    """Write the baked file and its report, and last the record, which says that they are complete."""
    blend, reported = folder / f"{shot.name}.blend", folder / f"{shot.name}.json"
    blend_files.save_as(blend)
    if len(reports) == 1:
        report.save(reports[0], reported)
    else:
        report.save_all(reports, reported)
    outputs = {path.name: records.sha256(path) for path in (blend, reported)}
    rows = tuple(table.row_of(shot, each, seams) for each in reports)
    Record(records.made_with(shot), inputs, outputs, rows).save(_record_path(folder, shot))
    for each in reports:
        print(f"{each.armature}: {each.summary()}", flush=True)
        for fault in each.check.mismatches() if each.check is not None else ():
            print(f"{each.armature}: {fault}", flush=True)
    _say_done(f"{shot.name}: {'; '.join(each.summary() for each in reports)}")


def _record_path(folder: Path, shot: Shot) -> Path:
    return folder / f"{shot.name}.record.json"


def _chunk_path(folder: Path, shot: Shot, span: Span) -> Path:
    return folder / "chunks" / f"{shot.name}.{span.first}-{span.last}.npz"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {folder}: {error.strerror}") from error


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


def _say_done(words: str) -> None:
    messages.progress(100.0)
    messages.status(words)
