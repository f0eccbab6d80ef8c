"""The kernel: all computation per pose, joint or step.

Its modules are plain Python, with C types in the `.pxd` beside each; `devtools/kernel.py` compiles them into
one module. The names below are those of the compiled module, or of the plain modules where it is missing.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from .loading import load

ENTRIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("elementary", ("atan2", "cos", "sin")),
    ("geometry", ("write_locations", "write_rotated", "write_rotations", "write_units")),
    ("targets", ("TARGET_WIDTH", "USE_WIDTH", "write_targets")),
    ("limits", ("LIMIT_WIDTH", "borders_at", "nearest_of_many", "project_rotation")),
    ("kinematics", ("evaluate_spline", "place_joints")),
    ("goals", ("LEVER", "POLE_NOISE", "measure_bend")),
    ("skeleton", ("Problem",)),
    (
        "closed_forms",
        ("FULL_EASING", "LONGEST", "ease_limbs", "soften", "solve_target_triangles", "solve_two_bones"),
    ),
    ("pose", ("evaluate_at", "measure_placed", "set_search", "solve_poses")),
    (
        "motion",
        (
            "carry_departures",
            "sum_departures",
            "sweep_departures",
            "write_departures",
            "write_largest_angles",
        ),
    ),
)
"""Public names of classes, functions and constants, by module; `__init__.pyi` has their types."""

_compiled, _why_plain = load(Path(__file__).parent)

for _module, _names in ENTRIES:
    _source = _compiled or import_module(f".{_module}", __name__)
    globals().update({name: getattr(_source, name) for name in _names})


def why_plain() -> str:
    """The reason why the kernel runs uncompiled, in one line; empty where it is compiled."""
    return _why_plain
