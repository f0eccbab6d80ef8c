# SPDX-License-Identifier: GPL-3.0-or-later
"""What `python -m ccd_rig` does: the command line in a process whose Python has Blender as a module."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn


def start(register: Callable[[], None], unregister: Callable[[], None]) -> NoReturn:
    """Run the command and end the process with its exit code.

    Args:
        register: puts what files need into Blender.
        unregister: takes it away again.
    """
    code = _run(register, unregister)
    sys.stdout.flush()
    sys.stderr.flush()
    # Blender's own shutdown inside a Python process can crash (4.2) or hang (4.5).
    os._exit(code)


def _run(register: Callable[[], None], unregister: Callable[[], None]) -> int:
    # Until the command itself listens: nothing can have been written yet, and an import cannot be left half
    # done.
    signal.signal(signal.SIGINT, _interrupted)
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
        unregister()


def _interrupted(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Ctrl-C while modules are loaded."""
    print("ccd_rig: error: interrupted, nothing is written", file=sys.stderr, flush=True)
    os._exit(130)
