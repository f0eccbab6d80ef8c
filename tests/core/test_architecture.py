"""docs/development/architecture.md against the code: its drawing, its files, and what a new part takes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devtools import drawing

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / drawing.PAGE
FOLDERS = ("ccd_rig", "panels")
GOALS = ("PositionGoal", "OrientationGoal", "DirectionGoal", "PoleGoal", "BalanceGoal")
GOAL_KINDS = ("POSITION", "ORIENTATION", "DIRECTION", "POLE", "BALANCE")
LIMITS = ("Hinge", "Cone", "Ellipse", "EulerBox")
LIMIT_KINDS = ("HINGE", "CONE", "ELLIPSE", "EULER")

NEW_SETTING = """
import bpy, sys
from ccd_rig import blender
from ccd_rig.blender.properties.solver_settings import solver_settings
from ccd_rig.blender import setup_files
blender.register()
rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
bpy.context.scene.collection.objects.link(rig)
bpy.context.view_layer.update()  # which gives it a pose
group = rig.ccd_rig.solver
assert group.bl_rna.properties["eagerness"].description == "How eager it is", "no tooltip"
assert group.eagerness == 3
group.eagerness = 5
assert solver_settings(rig).eagerness == 5
assert setup_files.setup_of(rig).rig["solver"]["eagerness"] == 5
print("FOLLOWED")
import os
sys.stdout.flush()
os._exit(0)
"""


def rows() -> dict[str, set[str]]:
    """By what is added, the files that the table of the page names, from the project's root."""
    table = PAGE.read_text(encoding="utf-8").partition("## To add")[2]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[1] not in ("", "---"):
            files = re.findall(r"`([\w/]+\.py)`", cells[2])
            found[cells[1]] = {file if file.startswith("panels/") else f"ccd_rig/{file}" for file in files}
    return found


def naming(words: tuple[str, ...], under: str = "") -> set[str]:
    """Files in which each of these words stands."""
    found = set()
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*.py"):
            name, text = file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")
            if name.startswith(under) and all(re.search(rf"\b{word}\b", text) for word in words):
                found.add(name)
    return found


def test_the_drawing_is_up_to_date():
    """`python3 dev.py docs --drawing` draws it anew."""
    shown = PAGE.read_text(encoding="utf-8").partition(drawing.BEGIN)[2].partition(drawing.END)[0]
    assert shown == drawing.drawing(ROOT)


def test_an_arrow_that_follows_from_others_is_left_out():
    needs = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert drawing.reduced(needs) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_imports_are_read_from_all_folders():
    needs = drawing.imports(ROOT)
    assert "ccd_rig.blender.bake" in needs["operators"]
    assert {"ccd_rig.kernel", "ccd_rig.maths"} <= needs["ccd_rig.limits"]
    assert needs["ccd_rig.kernel"] == set()


@pytest.mark.parametrize("added", rows())
def test_named_files_are_there(added):
    assert rows()[added]
    for file in rows()[added]:
        assert (ROOT / file).is_file(), f"architecture.md, to add {added}: there is no {file}"


def test_what_a_goal_takes():
    """The files in which all goals stand, but for those that make goals of constraints."""
    others = rows()["a kind of constraint"] | {"ccd_rig/kernel/skeleton.py"}
    named = naming(GOALS) | naming(GOAL_KINDS, "ccd_rig/kernel/")
    assert named - others == rows()["a goal"]


def test_what_a_limit_takes():
    """The files in which all shapes of limits stand, and the two that have their numbers."""
    numbers = {"ccd_rig/limits/rows.py", "ccd_rig/kernel/limits.py"}
    assert naming(LIMITS) | naming(LIMIT_KINDS) | numbers == rows()["a limit"]


def test_what_a_setting_of_the_solver_takes(tmp_path):
    """Followed on a copy: its property, tooltip, value and place in set-up files come from one file."""
    shutil.copytree(ROOT / "ccd_rig", tmp_path / "ccd_rig", ignore=shutil.ignore_patterns("__pycache__"))
    (name,) = rows()["a setting of the solver"]
    file = tmp_path / name
    text = file.read_text(encoding="utf-8")
    for before, added in (
        ("        comfort: whether", "        eagerness: how eager it is.\n"),
        ("    comfort: bool = True\n", "    eagerness: int = 3\n"),
    ):
        assert text.count(before) == 1
        text = text.replace(before, added + before)
    file.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", NEW_SETTING],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "FOLLOWED" in done.stdout, done.stdout + done.stderr
