"""`python -m ccd_rig`: the command line where Blender is installed as a Python module."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> int:
    """Register what files need, run the command, and leave nothing registered."""
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
    from . import blender
    from .blender.cli import command_line

    blender.register()
    try:
        return command_line.main(sys.argv[1:])
    finally:
        blender.unregister()


def _interrupted(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Ctrl-C while modules are loaded."""
    print("ccd_rig: error: interrupted, nothing is written", file=sys.stderr, flush=True)
    os._exit(130)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Blender's own shutdown inside a Python process can crash (4.2) or hang (4.5).
    os._exit(code)
