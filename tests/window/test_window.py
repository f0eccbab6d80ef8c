"""A visit to a real Blender window: the tab, the constraint, the bake, Esc and undo, by pointer and keyboard.

`python3 dev.py test --window` makes the folder with Debian's Blender and names it in CCD_RIG_WINDOW_ROOT.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PHOTOGRAPHS = HERE.parents[1] / "output/window"
VISIT_TIMEOUT = 900  # [s]
SCREEN = (1600, 1400)  # high enough for the whole sidebar, report included
REACHED = 1e-3  # [m] between a bone's tail and its target, in a rig four metres long


@pytest.fixture(scope="module")
def visit() -> dict:
    """Drive the window once; what was seen, step by step."""
    root = Path(os.environ["CCD_RIG_WINDOW_ROOT"])
    place = root / "visit"
    shutil.rmtree(place, ignore_errors=True)
    for folder in ("user", "home", "tmp", "out"):
        (place / folder).mkdir(parents=True)
    shutil.copy2(HERE / "drive.py", place)
    shutil.copy2(os.environ["CCD_RIG_ZIP"], place / "ccd_rig.zip")
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/games",
        "HOME": "/visit/home",
        "TMPDIR": "/visit/tmp",
        "LANG": "C.UTF-8",
        "LIBGL_ALWAYS_SOFTWARE": "1",
        "BLENDER_USER_RESOURCES": "/visit/user",
        "CCD_RIG_ZIP": "/visit/ccd_rig.zip",
        "CCD_RIG_OUT": "/visit/out",
    }
    assignments = [f"{name}={value}" for name, value in environment.items()]
    width, height = SCREEN
    screen = f"-screen 0 {width}x{height}x24 -nolisten tcp"
    command = ["chroot", str(root), "env", "-i", *assignments, "xvfb-run", "-a", "-s", screen]
    command += ["blender", "--gpu-backend", "opengl", "--window-geometry", "0", "0", str(width), str(height)]
    command += ["--python", "/visit/drive.py"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=VISIT_TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = f"no end within {VISIT_TIMEOUT} s\n" + process.communicate()[0]
    shutil.rmtree(PHOTOGRAPHS, ignore_errors=True)
    shutil.copytree(place / "out", PHOTOGRAPHS)
    print(output)
    file = place / "out/result.json"
    assert file.is_file(), f"Blender's window told nothing:\n{output}"
    seen = json.loads(file.read_text())
    seen["output"] = output
    return seen


def saw(visit: dict, step: str) -> dict:
    """What a step noted; a step that never came fails with what stopped the visit."""
    assert step in visit["steps"], f"the visit ended before {step!r}:\n{visit.get('error', visit['output'])}"
    return visit["steps"][step]


def colours(photograph: Path) -> int:
    """How many colours a picture has: a black or empty one has very few."""
    root = os.environ["CCD_RIG_WINDOW_ROOT"]
    inside = "/" + str(Path("visit/out") / photograph.name)
    command = ["chroot", root, "identify", "-format", "%k", inside]
    return int(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)


def test_visit_came_to_its_end(visit):
    assert visit.get("finished"), visit.get("error", visit["output"])
    assert "Traceback" not in visit["output"], visit["output"]


def test_extension_is_installed_and_enabled(visit):
    step = saw(visit, "install")
    assert step["finished"]
    assert step["enabled"]


def test_tab_is_shown(visit):
    assert saw(visit, "tab")["active"] == "CCD Rig"
    assert colours(PHOTOGRAPHS / "tab.png") > 500


def test_pointer_adds_a_constraint(visit):
    step = saw(visit, "add")
    assert (step["count"], step["tip"], step["target"]) == (1, "Bone7", "Target")


def test_the_rig_follows_a_dragged_target(visit):
    assert saw(visit, "live_on")["on"]
    assert saw(visit, "live_on")["off"] < REACHED
    step = saw(visit, "live_drag")
    assert step["moved"] > 0.3
    assert max(step["dragged"]) < 0.05
    assert step["rest"] < REACHED
    assert step["channels_kept"]
    assert step["curves"] == 0
    step = saw(visit, "live_undo")
    assert step["on"]
    assert max(step["back"], step["off"]) < REACHED
    step = saw(visit, "live_off")
    assert not step["on"]
    assert step["clamped"] == 0
    assert step["off"] > 0.1


def test_pointer_bakes(visit):
    step = saw(visit, "bake")
    assert max(step["before"]) > 1.0  # else the bake would have nothing to do
    assert max(step["after"]) < REACHED
    assert len(step["curves"]) >= 8 * 4
    assert {keys for _, _, keys in step["curves"]} == {24}


def test_escape_leaves_the_action_as_it_was(visit):
    step = saw(visit, "escape")
    assert "CCD_RIG_OT_bake" in step["running"], "the bake was not running when Esc was pressed"
    assert step["left"] == []
    assert step["keys_unchanged"]
    assert step["scenes"] == ["Scene"]


def test_undo_takes_the_bake_back(visit):
    assert saw(visit, "undo")["curves"] == 0
