# SPDX-License-Identifier: GPL-3.0-or-later
"""The entry of all commands.

The words after `blender -b FILE --command` and after `python -m` are the same.
"""

from __future__ import annotations

import argparse
import re
import signal
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import bpy

from ...errors import CCDRigError
from ...json_text import printable
from .. import atomic_write
from ..registration import use
from . import bake_command, farm_commands, figure_commands, files
from .files import COMMAND, Exit, UsageError


class Interrupt:
    """Handler of Ctrl-C: ends the command at once, or at the next step of the bake's progress.

    A signal may arrive while Blender runs any add-on's handler of frame changes, or of saving. Blender prints
    an exception that such a handler raises, and continues: the handler is left to end.
    """

    def __init__(self) -> None:
        self._arrived = False

    def __call__(self, _signal: int, frame: FrameType | None) -> None:
        """Remember the signal, and raise KeyboardInterrupt except inside a handler."""
        self._arrived = True
        if not _is_in_handler(frame):
            self.check()

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has arrived, again if it was lost."""
        if self._arrived:
            raise KeyboardInterrupt


def _is_in_handler(frame: FrameType | None) -> bool:
    """Whether a frame, or one that called it, runs a function that Blender calls on events."""
    events = (getattr(bpy.app.handlers, name) for name in dir(bpy.app.handlers))
    functions = (function for each in events if isinstance(each, list) for function in each)
    codes = {getattr(function, "__code__", None) for function in functions}
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


def main(argv: Sequence[str]) -> int:
    """Run one command.

    Returns:
        The exit code, see `Exit`.
    """
    try:
        options = parse(argv)
    except SystemExit as end:  # argparse has printed the error or the help
        return int(end.code or 0)
    use()
    interrupt = Interrupt()
    # A Blender program in the background answers Ctrl-C by ending at once, with exit code 0.
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        places = [place for name, place in vars(options).items() if name in ("output", "report")]
        if len(places) == 2 and not any(places):
            raise UsageError("nothing would be kept: name --output, --report or both")
        with files.report_alone(options):
            return int(options.run(options, interrupt.check))
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


def _fail(words: str, code: Exit) -> Exit:
    files.complain(f"{COMMAND}: error: {words}")
    return code


RANGES = ("--frames", "--cycle-frames")
"""Options whose value is a range of frames."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the words after `ccd_rig`; `run` of the options runs the command.

    Raises:
        SystemExit: the words are wrong or ask for help; errors and help are printed.
    """
    words: list[str] = []
    for word in argv:
        # "--frames=-10-250" is one word: argparse would take a second word with a minus for an option.
        if words and words[-1] in RANGES and re.match(r"-\d", word):
            words[-1] += f"={word}"
        else:
            words.append(word)
    parser = _Parser(
        prog=COMMAND,
        description="Pose armatures by CCD and bake them to keys.",
        epilog=files.EPILOG,
        **files.LOOK,
    )
    commands = parser.add_subparsers(
        title="commands", required=True, metavar="bake | check | figure | retarget | walk | farm"
    )
    bake_command.add_commands(commands)
    figure_commands.add_commands(commands)
    farm_commands.add_commands(commands)
    return parser.parse_args(words)


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.USAGE, f"{self.prog}: error: {printable(message)} (see {self.prog} --help)\n")
