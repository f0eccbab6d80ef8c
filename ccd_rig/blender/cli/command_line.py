"""`ccd_rig bake`, `check` and `farm`: the same words after `blender -b FILE --command` and `python -m`."""

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
from .. import whole_files
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

_handles: list[Any] = []  # what Blender gave for the registered command; it is needed to take it away again


def register() -> None:
    """Make `blender --command ccd_rig` known."""
    _handles.append(bpy.utils.register_cli_command(COMMAND, main))


def unregister() -> None:
    """Take the command away again."""
    while _handles:
        bpy.utils.unregister_cli_command(_handles.pop())


class Interrupt:
    """Ctrl-C: it ends the command at once, or else at the next step of the bake's progress.

    A signal may arrive while Blender runs a handler for a frame change, of any add-on; Blender prints what
    such a handler raises and goes on.
    """

    def __init__(self) -> None:
        self._arrived = False

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        """Take the signal."""
        self._arrived = True
        self.check()

    def check(self) -> None:
        """Raise the KeyboardInterrupt that may have been lost."""
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
    except SystemExit as end:  # argparse has already said why, or has shown the help
        return int(end.code or 0)
    interrupt = Interrupt()
    # A Blender program in the background answers Ctrl-C by ending at once, with exit code 0.
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        if options.command == "figure":
            return int(figure_command.run(options, _warn))
        if options.command == "retarget":
            return int(retarget_command.run(options, _warn))
        if options.command == "walk":
            return int(walk_command.run(options, _warn))
        if options.command in (arguments.FARM, *arguments.TASKS):
            return int(farm_commands.run_command(options, interrupt.check))
        _open(options)
        return int(_bake(options, interrupt) if options.command == "bake" else _check(options))
    except KeyboardInterrupt:
        return _fail("interrupted, nothing is written", Exit.INTERRUPTED)
    except UsageError as error:
        return _fail(str(error), Exit.USAGE)
    except whole_files.WriteError as error:
        return _fail(str(error), Exit.NOT_WRITTEN)
    except CCDRigError as error:
        return _fail(str(error), Exit.PROBLEMS)
    finally:
        if (
            before is not None
        ):  # None: Blender's own, which Python cannot put back; the command ends the program
            signal.signal(signal.SIGINT, before)


# --- commands -----------------------------------------------------------------------------------------------


def _open(options: argparse.Namespace) -> None:
    """Open FILE, if one was named."""
    if options.file is None:
        if not bpy.data.filepath:
            raise UsageError("no file is open: name the .blend file to work on")
        return
    path = Path(options.file)
    skipped = files.open_file(path, options.enable_autoexec)
    if skipped is not None:
        _warn(f"{path}: {skipped} was not run; use --enable-autoexec if you trust the file")


def _bake(options: argparse.Namespace, interrupt: Interrupt) -> Exit:
    if options.output is None and options.report is None:
        raise UsageError("nothing would be kept: name --output, --report or both")
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
    """Say what the bake of an armature came to."""
    for fault in result.check.mismatches() if result.check is not None else ():
        _warn(f"{result.armature}: {fault}")
    if advice := result.advice():
        _warn(f"{result.armature}: {advice}")
    if result.unsolved_count():
        _warn(f"{result.armature}: {result.summary()}")
    elif not quiet:
        say(f"{result.armature}: {result.summary()}")
    if not quiet:
        for each in result.smoothed:
            if each.is_seen:
                say(f"{result.armature}: {each.words()}")
        say(f"{result.armature}: {_times(result)}")


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


def _times(result: report.BakeReport) -> str:
    """What the check came to, and how long everything took."""
    baked = f"baked in {result.seconds:.1f} s"
    if result.check is None:
        return baked
    return f"{result.check.words()}; {baked}, checked in {result.check.seconds:.1f} s"


def _rigged(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """Armature objects of the scene that carry constraints."""
    return [o for o in scene.objects if o.type == "ARMATURE" and len(o.ccd_rig.constraints)]


def _none_rigged() -> str:
    return "no armature in the file's active scene has CCD constraints: add one in the CCD Rig panel"


def _armature(scene: bpy.types.Scene, name: str | None) -> bpy.types.Object:
    """The armature object called `name`, or the only one with constraints."""
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
    """Gives a function for `bake`'s progress: it shows how far a slow bake is, on standard error."""
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
