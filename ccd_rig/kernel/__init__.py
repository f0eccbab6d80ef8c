"""The kernel: all that is done once for each pose, joint or step.

Its modules are plain Python, with C types in the `.pxd` beside each; `devtools/kernel.py` compiles them into
one module. Where that is at hand the names below are the compiled ones, else those of the plain modules.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from .loading import load

ENTRIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("limits", ("LIMIT_WIDTH", "borders_at", "nearest_of_many", "project_rotation")),
    ("skeleton", ("Problem", "place_joints")),
    ("goals", ("LEVER", "POLE_NOISE", "measure_bend")),
    ("pose", ("look_at", "measure_placed", "set_search", "solve_poses")),
)
"""What the rest of the package may use: names of classes, functions and constants, by module. Their types
stand in `__init__.pyi`."""

_compiled, _why_plain = load(Path(__file__).parent)

for _module, _names in ENTRIES:
    _source = _compiled or import_module(f".{_module}", __name__)
    globals().update({name: getattr(_source, name) for name in _names})


def why_plain() -> str:
    """One line that says why the kernel runs uncompiled; empty where it is compiled."""
    return _why_plain
