"""Coverage of a layer by its tests: combine the measurements of suites, print them, and check the floor.

Runs where coverage.py is installed: `python devtools/floors.py LAYER DATA_FILE [DATA_FILE ...]`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTALLED = "bl_ext.user_default.ccd_rig"


@dataclass(frozen=True)
class Layer:
    """A part of the product, and how much of it the tests for it must run.

    Attributes:
        sources: what is measured: folders, or packages of the installed extension.
        include: patterns of the files that count, from the project's root.
        omit: patterns of those that do not.
        floor: least part of lines, percent.
    """

    sources: tuple[str, ...]
    include: tuple[str, ...]
    omit: tuple[str, ...]
    floor: float


# By the folder of tests/ that is for it.
LAYERS = {
    "core": Layer(
        sources=("ccd_rig",),
        include=("ccd_rig/**/*.py",),
        # Of the compiled kernel nothing is measured.
        omit=("ccd_rig/blender/**/*.py", "ccd_rig/__main__.py", "ccd_rig/kernel/*.py"),
        floor=97.0,
    ),
    "blender": Layer(
        sources=tuple(
            f"{INSTALLED}.{name}" for name in ("ccd_rig.blender", "operators", "panels", "viewport")
        ),
        include=("ccd_rig/blender/**/*.py", "operators/**/*.py", "panels/**/*.py", "viewport/**/*.py"),
        omit=(),
        floor=90.0,
    ),
}


def main(name: str, data_files: list[str]) -> int:
    """Print what is not run of a layer; 0 if enough of it is.

    Args:
        name: a key of `LAYERS`.
        data_files: what the runs of its suite have measured.
    """
    import coverage

    layer = LAYERS[name]
    combined = f"{data_files[0]}.combined"
    measured = coverage.Coverage(data_file=combined, config_file=str(ROOT / "pyproject.toml"))
    measured.combine(data_files, keep=True)
    # A module that no test imports is not in the data, but counts.
    left_out = {file for pattern in layer.omit for file in ROOT.glob(pattern)}
    files = {file for pattern in layer.include for file in ROOT.glob(pattern)} - left_out
    measured.get_data().touch_files(map(str, files))
    percent = measured.report(
        include=list(map(str, files)), show_missing=True, skip_covered=True, sort="cover", precision=1
    )
    print(f"{name}: tests/{name} run {percent:.1f} % of lines; the floor is {layer.floor:g} %")
    return 0 if percent >= layer.floor else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
