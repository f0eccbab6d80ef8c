# SPDX-License-Identifier: GPL-3.0-or-later
"""`ccd_rig farm --retarget`, and the task that puts one clip onto the armature."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import bpy

from ...errors import CCDRigError, RigError
from ..bake.report import write
from ..farm import bundle, messages, records, table
from ..farm import clips as clip_jobs
from ..farm.clips import Clips
from ..farm.records import Record
from ..retarget import clips, report
from . import arguments, farm_arguments, farm_files, retarget_command
from .exits import Exit, UsageError
from .terminal import say


def clips_job(options: argparse.Namespace, check: Callable[[], None], how: tuple[str, bool]) -> bundle.Job:
    """The job that puts clips onto the armature of a file.

    Args:
        options: of the command.
        check: raises KeyboardInterrupt if the command is to end.
        how: `program` and `is_module` of the job.

    Raises:
        UsageError, CCDRigError: there is no such clip or armature, or the options are those of bakes.
    """
    others = farm_arguments.given(options, arguments.FARM_BAKE_ARGUMENTS)
    if others:
        raise UsageError(f"{', '.join(others)}: not with --retarget, which takes each clip as a whole")
    paths = [path.resolve() for path in retarget_command.clips_at(options.files)]
    assets: list[Path] = []
    for path in paths:
        check()
        assets += _read_beside(path, options.source_armature)
    farm_files.open_blend(options.retarget)
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
    if farm_files.is_done(folder, clip, made_with):
        return Exit.DONE
    scene = farm_files.open_for(name, folder, options.target, (clip,))
    target = clips.armature(list(scene.objects), job.armature, str(options.target))
    try:
        with clips.imported(clip) as objects:
            check()
            read = (clip, options.target, *clips.parts(clip), *records.linked_files())
            inputs = records.inputs(read)
            messages.progress(10.0)
            messages.status(f"{name}: carrying over")
            done = clips.carry_over(clip, objects, job.source_armature, target, job.choice)
    except CCDRigError as error:
        raise RigError(f"{clip.name}: {error}") from error
    check()
    values = {"clip": clip.name, "armature": target.name, **report.as_values(done)}
    text = json.dumps(values, indent=2) + "\n"
    row = table.row_of_clip(name, target.name, done, time.perf_counter() - began)
    record = Record(made_with, inputs, rows=(row,))
    farm_files.save_result(folder, name, lambda path: write(text, path), record)
    for words in report.warnings(done):
        say(f"{name}: {words}")
    farm_files.say_done(f"{name}: {report.lines(done)[0]}")
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
    farm_files.open_blend(clip)
    clips.armature([thing for thing in bpy.data.objects if thing.library is None], name, str(clip))
    return records.linked_files()
