"""Make the pictures and the film of docs/listing from windows of Debian's Blender.

    python3 dev.py docs --listing

Needs what `dev.py test --window` needs. The pictures are for a person to look at before they are used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from devtools import checks, environments, window
from devtools.environments import ROOT

FOLDER = ROOT / "docs/listing"
SCRIPT = "drive_listing.py"
VISIT, SCREEN = "listing", "89"
SIZE = (1920, 1080)
"""Pixels of a picture: what the platform shows at most."""
PICTURES = ("featured", "roles", "handles", "limits", "report", "many_legs", "retarget", "walk_along")
FILM, RATE, WIDTH = "film.mp4", 24, 1280
"""The film, its frames a second, and pixels of its width."""
TIMEOUT = 300  # [s]


def make(version: str) -> int:
    """Take all pictures; 0 when all are there."""
    window.prepare()
    package = checks.build_here(version)
    os.environ.update(
        CCD_RIG_WINDOW_ROOT=str(window.FOLDER),
        CCD_RIG_ZIP=str(package),
        CCD_RIG_VISIT=VISIT,
        CCD_RIG_SCREEN=SCREEN,
    )
    sys.path.insert(0, str(ROOT / "tests/window"))
    import visits

    seen = visits.go(SCRIPT, SIZE)
    FOLDER.mkdir(exist_ok=True)
    taken = sorted(visits.photographs(SCRIPT).glob("film_*.png"))
    missing = [] if taken and _film(taken) else [FILM]
    for name in PICTURES:
        taken = visits.photographs(SCRIPT) / f"{name}.png"
        if taken.is_file():
            _shrink(taken, FOLDER / f"{name}.png")
        else:
            missing.append(name)
    if missing or not seen.get("finished"):
        print(f"dev.py: no picture of {', '.join(missing)}: {seen.get('error', '')}", file=sys.stderr)
        return 1
    return 0


def _film(frames: list[Path]) -> bool:
    """Let Debian's Blender make a film of pictures; whether it is there."""
    scratch = window.FOLDER / "tmp/film"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    for frame in frames:
        shutil.copy2(frame, scratch)
    height = WIDTH * SIZE[1] // SIZE[0]
    script = f"""
import bpy, pathlib
names = sorted(p.name for p in pathlib.Path("/tmp/film").glob("*.png"))
scene = bpy.context.scene
strip = scene.sequence_editor_create().strips.new_image("Film", "/tmp/film/" + names[0], 1, 1)
for name in names[1:]:
    strip.elements.append(name)
strip.frame_final_duration = len(names)
render = scene.render
render.resolution_x, render.resolution_y, render.fps = {WIDTH}, {height}, {RATE}
strip.transform.scale_x = strip.transform.scale_y = {WIDTH / SIZE[0]!r}
scene.frame_start, scene.frame_end = 1, len(names)
scene.view_settings.view_transform = "Standard"
render.image_settings.media_type = "VIDEO"
render.image_settings.file_format, render.ffmpeg.format, render.ffmpeg.codec = "FFMPEG", "MPEG4", "H264"
render.ffmpeg.constant_rate_factor, render.ffmpeg.gopsize = "MEDIUM", 48
render.filepath, render.use_file_extension = "/tmp/film/{FILM}", False
bpy.ops.render.render(animation=True)
"""
    command = ["chroot", str(window.FOLDER), "blender", "--background", "--factory-startup"]
    subprocess.run(
        [*command, "--python-exit-code", "1", "--python-expr", script], timeout=TIMEOUT, check=False
    )
    if not (scratch / FILM).is_file():
        return False
    shutil.copy2(scratch / FILM, FOLDER / FILM)
    return True


def _shrink(taken: Path, picture: Path) -> None:
    """Fewer colors, which a window has anyway, by ImageMagick in the same folder: a third of the bytes."""
    scratch = window.FOLDER / "tmp"
    shutil.copy2(taken, scratch / "taken.png")
    words = ["-strip", "+dither", "-colors", "255", f"PNG8:/tmp/{picture.name}"]
    command = ["chroot", str(window.FOLDER), "convert", "/tmp/taken.png", *words]
    subprocess.run(command, check=True, timeout=TIMEOUT)
    shutil.copy2(scratch / picture.name, picture)


if __name__ == "__main__":
    sys.exit(make(next(iter(environments.BLENDERS))))
