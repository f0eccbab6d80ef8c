# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips in files: which files hold some, how they are read, and how one becomes an action of an armature."""

from __future__ import annotations

import contextlib
import io
import re
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import addon_utils
import bpy
import numpy as np

from ... import json_text
from ...errors import RigError
from ...json_text import shown
from ..atomic_write import read_text, real_folder
from ..keys import keyframes
from ..keys.channels import played, plays
from ..properties.retarget_group import MOST_FPS
from .choices import CLIPS
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
"""Frames per second at most, as of a scene."""
BVH_MOTION = re.compile(r"^\s*motion\s*$.*?^\s*frame\s+time:\s*(\S+)\s*(\S?)", re.I | re.M | re.S)
"""Of a BVH file, what it says that a frame takes, and what its first frame begins with, if it has one."""


class NoTimeOfAFrame(RigError):
    """A BVH file does not tell how fast its motion is.

    Attributes:
        text: that it has for the time of a frame.
    """

    def __init__(self, text: str) -> None:
        super().__init__(f"Frame Time {text} is not the time of a frame: set Source Rate")
        self.text = text


@dataclass(frozen=True)
class Imported:
    """The objects of a clip in the open file."""

    objects: Sequence[bpy.types.Object]  # of the clip
    actions: Sequence[bpy.types.Action]  # of the clip
    fps: float  # frames per second of its keys, as its importer tells; 0 for those of the scene


@dataclass(frozen=True)
class ReadSource:
    """An armature that was read from a clip into the open file for good."""

    armature: bpy.types.Object
    fps: float  # frames per second of its keys; 0 for those of the scene
    doubts: tuple[str, ...]  # what to look at, in words


def clips(source: Path) -> list[Path]:
    """The clip at a path, or those of a folder in the order of their names.

    Raises:
        RigError: there is none.
    """
    if source.is_dir():
        files = sorted(file for file in source.iterdir() if file.suffix.lower() in CLIPS)
        if not files:
            raise RigError(f"there is no clip ({', '.join(CLIPS)}) in {source}")
        return files
    if not source.is_file():
        raise RigError(f"there is no file {source}")
    if source.suffix.lower() not in CLIPS:
        raise RigError(f"{source} is no clip: give one of {', '.join(CLIPS)}")
    return [source]


def files_beside(clip: Path) -> list[Path]:
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
    clip: Path, read: Imported, name: str | None, target: bpy.types.Object, choice: RetargetChoice
) -> Retargeted:
    """The motion of a clip as an action of an armature, named as the file.

    Args:
        read: what was read of it, see `imported`.
        name: of its armature object; None for the only one.
        choice: a rate of 0 stands for the file's own.

    Raises:
        RigError: names the armature, bone or field and what to do.
    """
    source = armature(read.objects, name, str(clip))
    choice = replace(choice, source_fps=choice.source_fps or read.fps or _rate(clip))
    done = retarget_motion(bpy.context.scene, source, target, choice)
    assert done.action is not None
    for action in read.actions:  # importers name theirs as the file
        action.name = ".read"
    done.action.name, done.action.use_fake_user = clip.stem, True
    return done


@contextlib.contextmanager
def imported(clip: Path) -> Iterator[Imported]:
    """A clip, in the open file until the block ends.

    Raises:
        RigError: it cannot be read.
    """
    made, fps = _load(clip)
    try:
        actions = [each for each in made if isinstance(each, bpy.types.Action)]
        yield Imported(_objects(made), actions, fps)
    finally:
        _remove(made)


def read_source(clip: Path) -> ReadSource:
    """The armature of a clip, in the open file for good.

    Raises:
        RigError: it is no clip, cannot be read, or has not one armature. Nothing of it stays then.
    """
    if clip.is_dir():
        raise RigError(f"{clip} is a folder: choose a file in it")
    clips(clip)
    try:
        made, fps = _load(clip)
    except RigError as error:
        raise RigError(f"{clip.name}: {error}") from error
    try:
        source = armature(_objects(made), None, str(clip))
    except RigError:
        _remove(made)
        raise
    doubts = []
    if not _moves(source):
        doubts.append(
            f"{clip.name} has no motion: '{source.name}' stands still. Choose another file or action"
        )
    try:
        fps = fps or _rate(clip)
    except NoTimeOfAFrame as error:
        doubts.append(f"{clip.name}: {error}")
    return ReadSource(source, fps, tuple(doubts))


def _moves(source: bpy.types.Object) -> bool:
    """Whether anything lets an armature that was read be another at another time."""
    if any(len(bone.constraints) for bone in source.pose.bones) or len(source.constraints):
        return True
    animation = source.animation_data
    if animation is not None and len(animation.drivers):
        return True
    curves = (curve for _, curves in played(source) for curve in curves if plays(curve))
    return any(len(curve.modifiers) or np.ptp(keyframes.values(curve)) > 0.0 for curve in curves)


def armature(objects: Sequence[bpy.types.Object], name: str | None, where: str) -> bpy.types.Object:
    """The armature object called `name`, or the only one.

    Raises:
        RigError: there is none, or several; names them, and `where` they are.
    """
    armatures = {obj.name: obj for obj in objects if obj.type == "ARMATURE"}
    names = ", ".join(sorted(armatures)) or "none"
    if name is not None:
        if name not in armatures:
            raise RigError(f"{where} has no armature '{shown(name)}'; it has: {names}")
        return armatures[name]
    if len(armatures) != 1:
        raise RigError(f"{where} must have one armature, or name one: it has {names}")
    return next(iter(armatures.values()))


def _load(clip: Path) -> tuple[set[Any], float]:
    """Import a clip into the open file: its data-blocks, and its frames per second.

    The rate is 0 if the importer does not set the scene's, which is restored.

    Raises:
        RigError: it cannot be read. Nothing of it stays.
    """
    render = bpy.context.scene.render
    before, rate = _everything(), (render.fps, render.fps_base)
    try:
        _read(clip)
        fps = 0.0 if (render.fps, render.fps_base) == rate else render.fps / render.fps_base
    except BaseException:
        _remove(_everything() - before)
        raise
    finally:
        render.fps, render.fps_base = rate
    return _everything() - before, fps


def _everything() -> set[Any]:
    data: Any = bpy.data
    return set(data.user_map())


def _objects(data_blocks: set[Any]) -> list[bpy.types.Object]:
    return [data_block for data_block in data_blocks if isinstance(data_block, bpy.types.Object)]


def _remove(data_blocks: set[Any]) -> None:
    """Take what a clip brought out of the file again."""
    bpy.data.batch_remove(data_blocks)
    # Else the view layer may go on to show objects that are gone, and Blender crashes at the next look.
    bpy.context.view_layer.update()


def renew_context() -> None:
    """Let the context refer to a scene that exists.

    In Blender 4.2 whatever reads `layer_collection`, as Rigify does, leaves its scene in the context. Once
    another file is open that scene is freed, and importers that set the window's scene crash.
    """
    _ = bpy.context.layer_collection


def _read(clip: Path) -> None:
    renew_context()
    ending = clip.suffix.lower()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            if ending == ".blend":
                with bpy.data.libraries.load(str(real_folder(clip))) as (there, here):
                    here.objects = there.objects
                for obj in here.objects:
                    bpy.context.scene.collection.objects.link(obj)
                return
            if ending == ".bvh" and (head := _bvh_motion(clip)) is not None and not head[2]:
                raise RigError("cannot be read: it has no frames")
            addon, read = IMPORTERS[ending]
            addon_utils.enable(addon)
            read(str(real_folder(clip)))
        except (RuntimeError, OSError, AttributeError) as error:
            said = [line for line in str(error).strip().splitlines() if line and "Location:" not in line]
            reason = shown(said[-1], LONGEST) if said else "unknown reason"
            if "Traceback" in str(error):  # the importer has met what it does not expect
                reason = f"it is damaged, or no {ending} file ({reason})"
            raise RigError(f"cannot be read: {reason}") from error


def _bvh_motion(clip: Path) -> re.Match[str] | None:
    return BVH_MOTION.search(clip.read_text(encoding="utf-8", errors="replace"))


def _rate(clip: Path) -> float:
    """Frames per second of a BVH file; 0 for others, which Blender brings to the scene's rate.

    Raises:
        NoTimeOfAFrame: it does not tell them.
    """
    if clip.suffix.lower() != ".bvh":
        return 0.0
    motion = _bvh_motion(clip)
    text = motion[1] if motion else ""
    try:
        rate = round(1.0 / float(text), 3)
    except (ValueError, ZeroDivisionError, OverflowError):
        rate = 0.0
    if not 0.0 < rate <= MOST_FPS:
        raise NoTimeOfAFrame(shown(text, LONGEST))
    return rate
