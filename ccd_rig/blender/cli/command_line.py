# SPDX-License-Identifier: GPL-3.0-or-later
"""`ccd_rig bake` and `check`, and the entry of all commands.

The words after `blender -b FILE --command` and after `python -m` are the same.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import bpy

from ...errors import CCDRigError, RigError
from .. import atomic_write
from ..bake import bake_all, report
from ..bake.bake import bake
from ..bake.progress import Pace, Progress
from ..checks import setup
from . import arguments, farm_commands, figure_command, files, retarget_command, walk_command
from .arguments import COMMAND
from .files import Exit, UsageError, complain, say

SLOW = 1.0  # [s] a bake that takes longer shows its progress
REDRAW = 0.1  # [s] from one progress line to the next on a terminal
RELOG = 10.0  # [s] the same where standard error goes to a file

_handles: list[Any] = []  # of the registered command, needed to unregister it

KEEPING = ("bake", "figure", "retarget", "walk")
"""Commands with --output and --report, of which they need one."""


def register() -> None:
    """Register `blender --command ccd_rig`."""
    _handles.append(bpy.utils.register_cli_command(COMMAND, main))


def unregister() -> None:
    """Unregister the command."""
    while _handles:
        bpy.utils.unregister_cli_command(_handles.pop())


class Interrupt:
    """Handler of Ctrl-C: ends the command at once, or at the next step of the bake's progress.

    A signal may arrive while Blender runs any add-on's handler of frame changes. Blender prints an exception
    that such a handler raises, and continues.
    """

    def __init__(self) -> None:
        self._arrived = False

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, and remember the signal."""
        self._arrived = True
        self.check()

    def check(self) -> None:
        """Raise the KeyboardInterrupt again that may have been lost."""
        if self._arrived:
            raise KeyboardInterrupt


def main(argv: Sequence[str]) -> int:
    """Run one command.

    Args:
        argv: the words after `ccd_rig`.

    Returns:
        The exit code, see `Exit`.
    """
    try:
        options = arguments.parse(argv)
    except SystemExit as end:  # argparse has printed the error or the help
        return int(end.code or 0)
    interrupt = Interrupt()
    # A Blender program in the background answers Ctrl-C by ending at once, with exit code 0.
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        if options.command in KEEPING and options.output is None and options.report is None:
            raise UsageError("nothing would be kept: name --output, --report or both")
        if options.command == "figure":
            return int(figure_command.run(options, _warn))
        if options.command == "retarget":
            return int(retarget_command.run(options, _warn))
        if options.command == "walk":
            return int(walk_command.run(options, _warn))
        if options.command in (arguments.FARM, *arguments.TASKS):
            return int(farm_commands.run_command(options, interrupt.check))
        if options.file is not None:
            files.open_input(Path(options.file), options, _warn)
        elif not bpy.data.filepath:
            raise UsageError("no file is open: name the .blend file to work on")
        return int(_bake(options, interrupt) if options.command == "bake" else _check(options))
    except KeyboardInterrupt:
        return _fail("interrupted, nothing is written", Exit.INTERRUPTED)
    except UsageError as error:
        return _fail(str(error), Exit.USAGE)
    except atomic_write.WriteError as error:
        return _fail(str(error), Exit.NOT_WRITTEN)
    except CCDRigError as error:
        return _fail(str(error), Exit.PROBLEMS)
    finally:
        if before is not None:  # None: Blender's handler, which Python cannot restore; the program ends
            signal.signal(signal.SIGINT, before)


# --- commands -----------------------------------------------------------------------------------------------


def _bake(options: argparse.Namespace, interrupt: Interrupt) -> Exit:
    files.require(Path(options.file or bpy.data.filepath), options)
    scene = bpy.context.scene
    settings = arguments.bake_settings(options, scene)
    armatures = bake_all.rigs(scene) if options.all else [_armature(scene, options.armature)]
    with _progress_line(options.quiet) as show:

        def progress(step: Progress) -> None:
            interrupt.check()
            show(step)

        if options.all:
            results = bake_all.bake_all(scene, dict.fromkeys(armatures, settings), progress)
        else:
            results = [bake(scene, armatures[0], settings, progress)]
    interrupt.check()
    for warning in (warning for result in results for warning in result.warnings):
        _warn(warning)
    if options.output is not None:
        files.save_as(options.output)
    if options.report is not None and options.all:
        report.save_all(results, options.report)
    elif options.report is not None:
        report.save(results[0], options.report)
    for result in results:
        _tell(result, options.quiet)
    missed = any(result.unsolved_count() for result in results)
    return Exit.NOT_REACHED if missed and options.strict else Exit.DONE


def _tell(result: report.BakeReport, quiet: bool) -> None:
    """Print the outcome of an armature's bake."""
    for fault in result.check.mismatches() if result.check is not None else ():
        _warn(f"{result.armature}: {fault}")
    if advice := result.advice():
        _warn(f"{result.armature}: {advice}")
    if result.unsolved_count():
        _warn(f"{result.armature}: {result.summary()}")
    elif not quiet:
        say(f"{result.armature}: {result.summary()}")
    if not quiet:
        for run in result.smoothed:
            if run.is_seen:
                say(f"{result.armature}: {run.words()}")
        times = f"baked in {result.seconds:.1f} s"
        if result.check is not None:
            times = f"{result.check.words()}; {times}, checked in {result.check.seconds:.1f} s"
        say(f"{result.armature}: {times}")


def _check(options: argparse.Namespace) -> Exit:
    scene = bpy.context.scene
    armatures = [_armature(scene, options.armature)] if options.armature else _rigged(scene)
    if not armatures:
        raise RigError(_none_rigged())
    errors = 0
    for armature_object in armatures:
        problems = setup.problems(armature_object, scene, tuple(options.constraint))
        for problem in problems:
            say(f"{problem.severity}: {armature_object.name}: {problem.message}")
        if not problems and not options.quiet:
            say(f"{armature_object.name}: no problems")
        errors += sum(problem.severity == "ERROR" for problem in problems)
    return Exit.PROBLEMS if errors else Exit.DONE


def _rigged(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """Armature objects of the scene with constraints."""
    return [o for o in scene.objects if o.type == "ARMATURE" and len(o.ccd_rig.constraints)]


def _none_rigged() -> str:
    return "no armature in the file's active scene has CCD constraints: add one in the CCD Rig panel"


def _armature(scene: bpy.types.Scene, name: str | None) -> bpy.types.Object:
    """Return the armature object called `name`, or the only one with constraints."""
    rigged = _rigged(scene)
    names = ", ".join(o.name for o in rigged)
    if name is None:
        if not rigged:
            raise RigError(_none_rigged())
        if len(rigged) > 1:
            raise UsageError(
                f"several armatures have CCD constraints ({names}): name one with --armature, or use --all"
            )
        return rigged[0]
    armature_object = scene.objects.get(name)
    if armature_object is None or armature_object.type != "ARMATURE":
        raise RigError(
            f"there is no armature object '{name}' in the scene; with CCD constraints: {names or 'none'}"
        )
    return armature_object


# --- words --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _progress_line(quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Give a function for `bake`'s progress that shows a slow bake's on standard error."""
    terminal = sys.stderr.isatty()
    pause = REDRAW if terminal else RELOG
    shown = time.monotonic() + SLOW - pause
    drawn, pace = False, Pace()

    def show(progress: Progress) -> None:
        nonlocal shown, drawn
        pace.take(progress)
        now = time.monotonic()
        if quiet or now - shown < pause:
            return
        line = pace.words(progress)
        print(
            f"\r\x1b[K{line}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True
        )
        shown, drawn = now, terminal

    try:
        yield show
    finally:
        if drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _warn(words: str) -> None:
    complain(f"{COMMAND}: warning: {words}")


def _fail(words: str, code: Exit) -> Exit:
    complain(f"{COMMAND}: error: {words}")
    return code
