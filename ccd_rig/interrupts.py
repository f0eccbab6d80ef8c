# SPDX-License-Identifier: GPL-3.0-or-later
"""Ctrl-C while `python -m ccd_rig` loads its modules; Blender's takes a second or two.

An interrupt raised in an import may be swallowed by an error handler there, or ends in a traceback.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # to load them takes time, in which nobody listens
    from collections.abc import Sequence
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 130


def end_at_interrupt() -> None:
    """Let Ctrl-C end the process at once: nothing can have been written yet."""
    signal.signal(signal.SIGINT, _end)


def is_program(first: str, words: Sequence[str]) -> bool:
    """Whether this package is run as a program, rather than imported by a script or another program.

    Args:
        first: of `sys.argv` while the package is loaded: "-m" where Python looks for a program's modules.
        words: the whole command line, `sys.orig_argv`.
    """
    name = __package__
    if first != "-m" or "-m" not in words:
        return first == "-m" and f"-m{name}" in words
    return words[words.index("-m") + 1] == name


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    print("ccd_rig: error: interrupted, nothing is written", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)
