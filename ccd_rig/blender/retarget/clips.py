# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips in files: which files hold some, how they are read, and how one becomes an action of an armature."""

from __future__ import annotations

import contextlib
import io
import re
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import addon_utils
import bpy

from ... import json_text
from ...errors import RigError
from ...json_text import shown
from ..whole_files import read_text
from .retarget import RetargetChoice, Retargeted, retarget_motion

IMPORTERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    ".bvh": ("io_anim_bvh", lambda path: bpy.ops.import_anim.bvh(filepath=path, global_scale=0.01)),
    ".fbx": ("io_scene_fbx", lambda path: bpy.ops.import_scene.fbx(filepath=path)),
    ".glb": ("io_scene_gltf2", lambda path: bpy.ops.import_scene.gltf(filepath=path)),
    ".gltf": ("io_scene_gltf2", lambda path: bpy.ops.import_scene.gltf(filepath=path)),
}
"""By ending: the add-on that reads such files, and how."""
LONGEST = 200
"""Letters of an importer's reason that a message shows."""
CLIPS = (".blend", *IMPORTERS)


def clips(source: Path) -> list[Path]:
    """The clip at a path, or those of a folder in the order of their names.

    Raises:
        RigError: there is none.
    """
    if source.is_dir():
        found = sorted(file for file in source.iterdir() if file.suffix.lower() in CLIPS)
        if not found:
            raise RigError(f"there is no clip ({', '.join(CLIPS)}) in {source}")
        return found
    if not source.is_file():
        raise RigError(f"there is no file {source}")
    if source.suffix.lower() not in CLIPS:
        raise RigError(f"{source} is no clip: give one of {', '.join(CLIPS)}")
    return [source]


def parts(clip: Path) -> list[Path]:
    """Files beside a clip that hold some of it, if they are there: those that a glTF file names."""
    if clip.suffix.lower() != ".gltf":
        return []
    try:
        content = json_text.parse(read_text(clip))
        named = [each.get("uri") for name in ("buffers", "images") for each in content.get(name, ())]
    except (RigError, json_text.NotJson, AttributeError, TypeError):  # its importer says what is wrong
        return []
    texts = [str(each) for each in named if each and not str(each).startswith("data:")]
    paths = [clip.parent / urllib.parse.unquote(each) for each in texts]
    return sorted({path for path in paths if path.is_file()})


def carry_over(
    clip: Path,
    objects: Sequence[bpy.types.Object],
    name: str | None,
    target: bpy.types.Object,
    choice: RetargetChoice,
) -> Retargeted:
    """The motion of a clip as an action of an armature, named as the file.

    Args:
        clip: the file.
        objects: what was read of it, see `imported`.
        name: of its armature object; None for the only one.
        target: gets the motion.
        choice: a rate of 0 stands for the file's own.

    Raises:
        RigError: names the armature, bone or field and what to do.
    """
    source = armature(objects, name, str(clip))
    choice = replace(choice, source_fps=choice.source_fps or _rate(clip))
    done = retarget_motion(bpy.context.scene, source, target, choice)
    assert done.action is not None
    done.action.name, done.action.use_fake_user = clip.stem, True
    return done


@contextlib.contextmanager
def imported(clip: Path) -> Iterator[list[bpy.types.Object]]:
    """The objects of a clip, in the open file until the block ends.

    Raises:
        RigError: it cannot be read.
    """
    before = set(_data())
    rate = bpy.context.scene.render.fps, bpy.context.scene.render.fps_base
    made: set[Any] = set()
    try:
        try:
            _read(clip)
        finally:
            made = set(_data()) - before
        yield [thing for thing in made if isinstance(thing, bpy.types.Object)]
    finally:
        bpy.context.scene.render.fps, bpy.context.scene.render.fps_base = rate
        bpy.data.batch_remove(made)


def read_source(clip: Path) -> tuple[bpy.types.Object, float]:
    """The armature of a clip, in the open file for good, and its frames per second; 0 for the scene's.

    Raises:
        RigError: it is no clip, cannot be read, or has not one armature. Nothing of it stays then.
    """
    if clip.is_dir():
        raise RigError(f"{clip} is a folder: choose a file in it")
    clips(clip)
    render = bpy.context.scene.render
    before, rate = set(_data()), (render.fps, render.fps_base)
    try:
        try:
            _read(clip)
        except RigError as error:
            raise RigError(f"{clip.name} {error}") from error
        of_file = 0.0 if (render.fps, render.fps_base) == rate else render.fps / render.fps_base
        objects = [thing for thing in set(_data()) - before if isinstance(thing, bpy.types.Object)]
        return armature(objects, None, str(clip)), _rate(clip) or of_file
    except BaseException:
        bpy.data.batch_remove(set(_data()) - before)
        raise
    finally:
        render.fps, render.fps_base = rate


def armature(objects: Sequence[bpy.types.Object], name: str | None, where: str) -> bpy.types.Object:
    """The armature object called `name`, or the only one.

    Raises:
        RigError: there is none, or several; names them, and `where` they are.
    """
    armatures = {thing.name: thing for thing in objects if thing.type == "ARMATURE"}
    names = ", ".join(sorted(armatures)) or "none"
    if name is not None:
        if name not in armatures:
            raise RigError(f"{where} has no armature '{name}'; it has: {names}")
        return armatures[name]
    if len(armatures) != 1:
        raise RigError(f"{where} must have one armature, or name one: it has {names}")
    return next(iter(armatures.values()))


def _data() -> Iterator[Any]:
    """All that an importer may make."""
    data = bpy.data
    yield from (*data.objects, *data.armatures, *data.actions, *data.meshes)
    yield from (*data.materials, *data.images, *data.collections)


def _read(clip: Path) -> None:
    ending = clip.suffix.lower()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            if ending == ".blend":
                with bpy.data.libraries.load(str(clip.resolve())) as (there, here):
                    here.objects = there.objects
                for thing in here.objects:
                    bpy.context.scene.collection.objects.link(thing)
                return
            addon, read = IMPORTERS[ending]
            addon_utils.enable(addon)
            read(str(clip.resolve()))
        except (RuntimeError, OSError, AttributeError) as error:
            said = [line for line in str(error).strip().splitlines() if line and "Location:" not in line]
            raise RigError(
                f"cannot be read: {shown(said[-1], LONGEST) if said else 'unknown reason'}"
            ) from error


def _rate(clip: Path) -> float:
    """Frames per second of a BVH file; 0 for others, which Blender brings to the scene's rate."""
    if clip.suffix.lower() != ".bvh":
        return 0.0
    found = re.search(r"Frame Time:\s*([0-9.eE+-]+)", clip.read_text(encoding="utf-8", errors="replace"))
    seconds = float(found[1]) if found else 0.0
    return round(1.0 / seconds, 3) if seconds > 0.0 else 0.0
