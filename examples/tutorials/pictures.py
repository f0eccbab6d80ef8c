#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the steps of the tutorials and take their pictures: docs/images/tutorial_NAME.png.

Runs where Blender's module is installed; `python3 dev.py docs --pictures [NAME ...]` calls it.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "examples"))
sys.path.insert(0, str(ROOT / "examples/tutorials"))

NAMES = ("tail", "arm", "quadruped", "spider", "planted_walk", "walk_along", "generated")
NAMES += ("motion_capture",)


def main(names: list[str]) -> int:
    """Take the pictures of the named tutorials, or of all."""
    if unknown := [name for name in names if name not in NAMES]:
        print(f"no tutorial named {unknown[0]}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    os.environ["BLENDER_USER_RESOURCES"] = tempfile.mkdtemp(prefix="ccd_rig_tutorials_")
    import bpy  # reads the variable once, as it is loaded
    import picture

    from devtools import extension

    extension.load()
    for name in names or NAMES:
        bpy.ops.wm.read_homefile(use_empty=True)
        tutorial = importlib.import_module(name)
        rig = tutorial.build()
        tutorial.steps(rig)
        print(f"{name}: {rig.ccd_rig.report.words or rig.ccd_rig.walk.report}", flush=True)
        file = ROOT / f"docs/images/tutorial_{name}.png"
        picture.save_png(tutorial.picture(rig), file)
        print(f"wrote {file.relative_to(ROOT)}, {file.stat().st_size / 1000:.0f} kB", flush=True)
    return 0


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Blender's own shutdown inside a Python process can crash (4.2) or hang (4.5)
