"""Files that commands read, and Blender's output."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import addon_utils
import bpy
import rigs  # of tests/blender
from installed import PACKAGE  # of tests/blender

CLIP_FRAMES = (1, 8)


def module(name: str) -> Any:
    """A module of the installed extension, by its path in `ccd_rig`."""
    return import_module(f"{PACKAGE}.ccd_rig.{name}")


def shot(last: int = 8) -> Any:
    """A rig that can be baked, in frames 0 to `last`."""
    rig = rigs.chain(4, 0.5)
    target = rigs.keyed(rigs.empty("Goal"), {-3: (0.2, 0.1, 1.3), last: (0.9, 0.1, 1.3)})
    rigs.reach(rig, "bone_3", target, "Hand")
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 0, last
    rig.pose.bones["bone_0"].keyframe_insert("location", frame=2)
    rigs.activate(rig)
    rigs.update()
    return rig


def saved(path: Path, last: int = 8) -> Path:
    """A file with nothing but such a rig."""
    bpy.ops.wm.read_homefile(use_empty=True)
    shot(last)
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def clip_and_figure(folder: Path, last: int = CLIP_FRAMES[1]) -> tuple[Path, Path]:
    """A BVH file of a figure that swings its legs, and a .blend file with one that can get the motion."""
    bpy.ops.wm.read_homefile(use_empty=True)
    figure, clip, target = rigs.armature(rigs.biped(), "Figure"), folder / "clip.bvh", folder / "figure.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(target))
    figure = bpy.data.objects["Figure"]
    for side, sign in (("L", 1.0), ("R", -1.0)):
        bone = figure.pose.bones[f"thigh.{side}"]
        bone.rotation_mode = "XYZ"
        for frame, angle in ((CLIP_FRAMES[0], 0.3), (last, -0.3)):
            bone.rotation_euler = (sign * angle, 0.0, 0.0)
            bone.keyframe_insert("rotation_euler", frame=frame)
    rigs.activate(figure)
    addon_utils.enable("io_anim_bvh")
    bpy.ops.export_anim.bvh(filepath=str(clip), frame_start=CLIP_FRAMES[0], frame_end=last)
    return clip, target


@contextlib.contextmanager
def printed() -> Iterator[Callable[[], str]]:
    """Gives a function that tells what this process has printed since, Blender's own lines too."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace", buffering=1) as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):

        def text() -> str:
            file.flush()
            return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")

        try:
            for descriptor in (1, 2):
                os.dup2(file.fileno(), descriptor)
            yield text
        finally:
            for descriptor, before in zip((1, 2), kept, strict=True):
                os.dup2(before, descriptor)
                os.close(before)


def tracebacks(text: str) -> list[str]:
    """The last line of each traceback in what was printed."""
    faults = []
    for part in text.split("Traceback (most recent call last):")[1:]:
        lines = [line for line in part.splitlines()[1:] if line and not line.startswith((" ", "\t"))]
        faults.append(f"traceback: {(lines or ['?'])[0][:200]}")
    return faults
