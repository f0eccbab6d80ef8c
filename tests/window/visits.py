"""A visit to a real Blender window: a script of this folder, driven on a virtual screen.

`python3 dev.py test --window` makes the folder with Debian's Blender and names it in CCD_RIG_WINDOW_ROOT.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PHOTOGRAPHS = HERE.parents[1] / "output/window"
VISIT = os.environ.get("CCD_RIG_VISIT", "visit")
"""The folder of a run in the place where Debian's Blender is."""
VISIT_TIMEOUT = 900  # [s]
SCREEN = (1600, 900)  # a redraw takes its time by the pixel
HIGH = (1600, 1400)  # the whole sidebar, report included


def go(script: str, size: tuple[int, int]) -> dict[str, Any]:
    """Run a script once in a window of so many pixels; what was seen, step by step. `photographs` says where
    pictures are."""
    root = Path(os.environ["CCD_RIG_WINDOW_ROOT"])
    place = root / VISIT
    shutil.rmtree(place, ignore_errors=True)
    for folder in ("user", "home", "tmp", "out"):
        (place / folder).mkdir(parents=True)
    examples = HERE.parents[1] / "examples"
    for file in (*HERE.glob("drive*.py"), *examples.glob("*.py"), *examples.glob("tutorials/*.py")):
        shutil.copy2(file, place)
    shutil.copy2(os.environ["CCD_RIG_ZIP"], place / "ccd_rig.zip")
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/games",
        "HOME": f"/{VISIT}/home",
        "TMPDIR": f"/{VISIT}/tmp",
        "LANG": "C.UTF-8",
        "LIBGL_ALWAYS_SOFTWARE": "1",
        "LP_NUM_THREADS": "0",  # Mesa draws where Blender waits for it
        "MESA_SHADER_CACHE_DIR": "/var/cache",  # else each visit compiles them anew
        "BLENDER_USER_RESOURCES": f"/{VISIT}/user",
        "CCD_RIG_ZIP": f"/{VISIT}/ccd_rig.zip",
        "CCD_RIG_OUT": f"/{VISIT}/out",
    }
    assignments = [f"{name}={value}" for name, value in environment.items()]
    width, height = size
    screen = f"-screen 0 {width}x{height}x24 -nolisten tcp"
    command = ["chroot", str(root), "env", "-i", *assignments, "xvfb-run", "-a"]
    command += ["-n", os.environ.get("CCD_RIG_SCREEN", "99"), "-s", screen]
    command += ["blender", "--gpu-backend", "opengl", "--window-geometry", "0", "0", str(width), str(height)]
    command += ["--python", f"/{VISIT}/{script}"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=VISIT_TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = f"no end within {VISIT_TIMEOUT} s\n" + process.communicate()[0]
    shutil.rmtree(photographs(script), ignore_errors=True)
    shutil.copytree(place / "out", photographs(script))
    print(output)
    file = place / "out/result.json"
    assert file.is_file(), f"Blender's window told nothing:\n{output}"
    seen = json.loads(file.read_text())
    seen["output"] = output
    return seen


def photographs(script: str) -> Path:
    """The folder with what a visit has photographed."""
    return PHOTOGRAPHS / Path(script).stem


def told_errors(visit: dict) -> list[str]:
    """The lines in which Blender or an operator told of an error."""
    return [line for line in visit["output"].splitlines() if re.search("Error|ERROR", line)]


def saw(visit: dict, step: str) -> dict:
    """What a step noted; a step that never came fails with what stopped the visit."""
    assert step in visit["steps"], f"the visit ended before {step!r}:\n{visit.get('error', visit['output'])}"
    return visit["steps"][step]


def colours(photograph: Path) -> int:
    """How many colours a picture of the last visit has: a black or empty one has very few."""
    root = os.environ["CCD_RIG_WINDOW_ROOT"]
    inside = "/" + str(Path(VISIT, "out") / photograph.name)
    command = ["chroot", root, "convert", inside, "-depth", "8", "rgb:-"]
    parts = subprocess.run(command, capture_output=True, timeout=60, check=True).stdout
    return len({*zip(parts[::3], parts[1::3], parts[2::3], strict=True)})


def pixels(photograph: str, colour: str) -> int:
    """How many pixels of a picture of the last visit have about this colour, as ImageMagick writes it."""
    root = os.environ["CCD_RIG_WINDOW_ROOT"]
    command = [
        "chroot",
        root,
        "convert",
        f"/{VISIT}/out/{photograph}.png",
        "-fuzz",
        "10%",
        "+transparent",
        colour,
    ]
    command += ["-alpha", "extract", "-format", "%[fx:mean*w*h]", "info:"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return round(float(done.stdout))
