"""Benchmarks use what there is: none of them runs in the tests, so their imports are looked up here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOOK_UP = """
import ast, importlib, pathlib, sys
import bpy
sys.path[:0] = [{root!r}]
missing = []
for file in sorted(pathlib.Path({root!r}, "benchmarks").glob("*.py")):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ccd_rig":
            try:
                module = importlib.import_module(node.module)
            except ImportError:
                missing.append(f"{{file.name}}: {{node.module}}")
                continue
            for name in node.names:
                if not hasattr(module, name.name):
                    try:
                        importlib.import_module(f"{{node.module}}.{{name.name}}")
                    except ImportError:
                        missing.append(f"{{file.name}}: {{node.module}}.{{name.name}}")
sys.exit(", ".join(missing) or 0)  # Blender says things of its own at the start
"""


def test_what_benchmarks_import_is_there():
    looked = subprocess.run(
        [sys.executable, "-c", LOOK_UP.format(root=str(ROOT))], capture_output=True, text=True, check=False
    )
    assert looked.returncode == 0, looked.stderr
