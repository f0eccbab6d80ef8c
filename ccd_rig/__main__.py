"""`python -m ccd_rig`: the command line where Blender is installed as a Python module."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Register what files need, run the command, and leave nothing registered."""
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


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Blender's own shutdown inside a Python process can crash (4.2) or hang (4.5).
    os._exit(code)
