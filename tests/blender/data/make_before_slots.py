"""Make before_slots.blend beside this file: an action with keys, saved by a Blender that knows no slots.

`.venv/4.2/bin/python tests/blender/data/make_before_slots.py`. Newer Blenders cannot save such a file, so it
is kept ready-made: the tests then need no Blender but the one they run in.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "keys")]

import bpy  # noqa: E402  (first of all: importing it makes mathutils importable)
import keyed  # noqa: E402

if bpy.app.version >= (4, 4):
    sys.exit("make_before_slots.py: run it with Blender 4.2: newer ones write slots")

bpy.ops.wm.read_homefile(use_empty=True)
keyed.key_richly(keyed.make_armature())
# The scene and what it uses, without the windows, which would be most of the file and name folders.
bpy.data.libraries.write(str(HERE / "before_slots.blend"), {bpy.context.scene}, compress=True)
sys.stdout.flush()
os._exit(0)
