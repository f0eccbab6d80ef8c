#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake a walking, reaching figure with CCD Rig, or a file of your own, and show that it works.

Without --file: takes Rigify's human metarig, gives it human joint limits and seven moving goals (an ankle and
a ball of the foot on each side, two hands, the face), bakes 240 frames, and writes demo.blend, demo.json (the
bake's report) and contact_sheet.png.

With --file: bakes every armature of the file's active scene that has CCD constraints, over its frames.
Writes NAME_baked.blend beside it and a report for each armature; the file itself is not changed. No picture.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    import bpy
except ImportError as missing:
    sys.exit(f"demo.py: Blender's Python module is needed; `python3 dev.py demo` sets it up ({missing})")

import sheet
import stage
import walk
from inspection import Findings, inspect
from picture import quiet, save_png

import ccd_rig.blender
from ccd_rig.blender import atomic_write, checks
from ccd_rig.blender.bake import report
from ccd_rig.blender.bake.bake import bake
from ccd_rig.blender.bake.report import BakeReport
from ccd_rig.blender.bake.settings import BakeSettings
from ccd_rig.errors import CCDRigError, InvalidInput, RigError

DONE, NOT_BAKED, USAGE, NOT_WRITTEN = 0, 1, 2, 4  # exit codes, the same as those of `ccd_rig bake`

# Two goals on a leg settle in fewer iterations with larger steps than the bake's own.
ERROR_REDUCTION = 0.97

EPILOG = """\
exit codes:
  0  done
  1  the set-up in FILE cannot be baked, nothing is written
  2  wrong arguments, or FILE cannot be opened
  4  the output could not be written
"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"demo: error: {message} (see {self.prog} --help)\n")


class UsageError(Exception):
    """What was asked for makes no sense."""


def main(arguments: list[str]) -> int:
    """Run the demo; returns the exit code."""
    parser = _Parser(
        prog="dev.py demo",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--file", type=Path, metavar="YOUR.blend", help="bake this file instead of the figure"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="PATH",
        help="folder for the demo's files (default: demo_output); with --file: the baked .blend file",
    )
    parser.add_argument(
        "--no-sheet", action="store_true", help="leave out contact_sheet.png, which takes most of the time"
    )
    try:
        options = parser.parse_args(arguments)
    except SystemExit as end:  # argparse has already said why, or has shown the help
        return int(end.code or 0)
    ccd_rig.blender.register()
    try:
        if options.file is None:
            _demo(options.output or Path("demo_output"), not options.no_sheet)
        else:
            _bake_file(
                options.file, options.output or options.file.with_name(f"{options.file.stem}_baked.blend")
            )
    except UsageError as error:
        return _fail(error, USAGE)
    except atomic_write.WriteError as error:
        return _fail(error, NOT_WRITTEN)
    except CCDRigError as error:
        return _fail(error, NOT_BAKED)
    finally:
        ccd_rig.blender.unregister()
    return DONE


def _fail(error: Exception, code: int) -> int:
    print(f"demo: error: {error}", file=sys.stderr, flush=True)
    return code


# --- the figure ---------------------------------------------------------------------------------------------


def _demo(folder: Path, with_sheet: bool) -> None:
    start = time.perf_counter()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise atomic_write.WriteError(f"cannot make folder {folder}: {error.strerror}") from error
    bpy.ops.wm.read_factory_settings(use_empty=True)
    rig, motion = stage.build()
    limited = [bone for bone in rig.pose.bones if bone.ccd_rig.limit.kind != "NONE"]
    print(
        f"figure: {len(rig.pose.bones)} bones, {len(limited)} of them with limits, "
        f"{len(rig.ccd_rig.constraints)} constraints",
        flush=True,
    )
    settings = BakeSettings(walk.FRAME_START, walk.FRAME_END, error_reduction=ERROR_REDUCTION)
    baking = time.perf_counter()
    result = bake(bpy.context.scene, rig, settings)
    seconds = time.perf_counter() - baking
    print(f"bake:   {seconds:.1f} s; {result.summary()}", flush=True)
    for name, frames in _missed(result).items():
        print(f"        {name} is out of reach in frames {frames[0]} to {frames[-1]} ({len(frames)} of them)")
    findings = inspect(rig, motion, result)
    _tell(findings)
    bpy.context.scene.frame_set(walk.FRAME_START)
    saved, told, pictured = (folder / name for name in ("demo.blend", "demo.json", "contact_sheet.png"))
    _save(saved)
    report.save(result, told)
    words = (
        f"{len(rig.ccd_rig.constraints)} moving goals, human limits on {len(limited)} bones, "
        f"{walk.FRAME_END} frames baked to keys. Planted feet move by "
        f"{1000.0 * findings.slide:.1f} mm at most; {findings.broken or 'no'} limit is broken."
    )
    written = [saved, told]
    if with_sheet:
        drawing = time.perf_counter()
        try:
            picture = sheet.contact_sheet(rig, result, words)
        except RuntimeError as error:
            raise atomic_write.WriteError(
                f"cannot draw {pictured}: Blender could not render ({_reason(error)}); "
                f"{saved} and {told} are written"
            ) from error
        with atomic_write.replacing(pictured) as temporary:
            save_png(picture, temporary)
        written.append(pictured)
        print(f"sheet:  {time.perf_counter() - drawing:.1f} s")
    for path in written:
        print(f"wrote   {path.resolve()}")
    print(f"all in {time.perf_counter() - start:.1f} s", flush=True)


def _missed(result: BakeReport) -> dict[str, list[int]]:
    frames: dict[str, list[int]] = {}
    for row in result.unsolved():
        frames.setdefault(row.constraint, []).append(row.frame)
    return frames


def _tell(findings: Findings) -> None:
    print(f"slide:  planted feet move by {1000.0 * findings.slide:.2f} mm at most ({findings.slide_where})")
    print(
        f"smooth: from one frame to the next a bone turns by {findings.turn:.1f} degrees at most "
        f"({findings.turn_where})"
    )
    print(
        f"limits: {findings.broken or 'none'} broken in the keys; the keys are at most "
        f"{1e6 * findings.disagreement:.1f} µm away from what the report says",
        flush=True,
    )


def _save(path: Path) -> None:
    """Save the open file under another name, as a whole or not at all."""
    with atomic_write.replacing(path) as temporary:
        temporary.unlink()  # Blender would keep the empty file as a backup
        try:
            with quiet():
                bpy.ops.wm.save_as_mainfile(filepath=str(temporary.resolve()), copy=True)
        except RuntimeError as error:
            raise atomic_write.WriteError(f"cannot write {path}: {_reason(error)}") from error


def _reason(error: RuntimeError) -> str:
    """The first line of what a Blender operator reports."""
    reason = str(error).strip().splitlines()[0].removeprefix("Error: ")
    # Blender before 5.0 does not know the header that later ones write.
    return reason + (
        " (or one of a newer Blender than this: see --blender)" if "not a blend file" in reason else ""
    )


# --- a user's file ------------------------------------------------------------------------------------------


def _bake_file(path: Path, output: Path) -> None:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    if output.resolve() == path.resolve():
        raise UsageError(f"--output is {path} itself: name another file")
    if not output.resolve().parent.is_dir():
        raise atomic_write.WriteError(f"cannot write {output}: there is no folder {output.resolve().parent}")
    try:
        with quiet():
            bpy.ops.wm.open_mainfile(filepath=str(path.resolve()), load_ui=False)
    except RuntimeError as error:
        raise UsageError(f"cannot open {path}: {_reason(error)}") from error
    scene = bpy.context.scene
    rigs = [thing for thing in scene.objects if thing.type == "ARMATURE" and len(thing.ccd_rig.constraints)]
    if not rigs:
        raise RigError(
            f"{path}: no armature in scene '{scene.name}' has CCD constraints: add one in the CCD Rig panel"
        )
    try:
        settings = BakeSettings(scene.frame_start, scene.frame_end)
    except InvalidInput as error:
        raise UsageError(f"{path}: {error}") from error
    reports = []
    for rig in rigs:
        for problem in checks.problems(rig, scene):
            if problem.severity == "WARNING":
                print(f"demo: warning: {problem.message}", file=sys.stderr, flush=True)
        start = time.perf_counter()
        reports.append(bake(scene, rig, settings))
        print(f"{rig.name}: {reports[-1].summary()} ({time.perf_counter() - start:.1f} s)", flush=True)
    _save(output)
    print(f"wrote {output.resolve()}")
    for rig, result in zip(rigs, reports, strict=True):
        name = (
            f"{output.stem}.json" if len(rigs) == 1 else f"{output.stem}_{bpy.path.clean_name(rig.name)}.json"
        )
        report.save(result, output.with_name(name))
        print(f"wrote {output.with_name(name).resolve()}")
    print("no contact sheet: that is made for the demo's own figure only", flush=True)


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    # Blender's own shutdown inside a Python process can crash (4.2) or hang (4.5).
    os._exit(code)
