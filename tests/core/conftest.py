"""What the tests of the core need: mathutils, which comes with bpy, and the project root on the path.

No add-on is registered here, and nothing of bpy but its side effect is used.
"""

import sys
from pathlib import Path

import bpy  # noqa: F401  (first of all: importing it makes mathutils importable)

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
