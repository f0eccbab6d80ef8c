# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m ccd_rig`: the command line in a process whose Python has Blender as a module."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from ...interrupts import end_at_interrupt

FAILED = 1
"""Exit code of a process that ended by an exception, as Python has it."""


def start(register: Callable[[], None], unregister: Callable[[], None]) -> NoReturn:
    """Run the command and end the process with its exit code."""
    code = FAILED
    # A stream may have no reader any more, as when the process that started this one has ended.
    with suppress(OSError):
        try:
            code = _run(register, unregister)
        except BaseException:  # none may lead to Blender's shutdown, see below
            traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    # Blender's own shutdown inside a Python process can crash (4.2) or hang (4.5).
    os._exit(code)


def _run(register: Callable[[], None], unregister: Callable[[], None]) -> int:
    end_at_interrupt()  # until the command itself listens
    try:
        import bpy  # noqa: F401  (first of all: it makes mathutils importable)
    except ImportError as error:
        print(
            f"ccd_rig: error: Blender's Python module is needed: pip install bpy ({error})", file=sys.stderr
        )
        return 2
    from . import command_line

    register()
    try:
        return command_line.main(sys.argv[1:])
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the work is done and reported
        unregister()
