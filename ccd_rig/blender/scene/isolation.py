# SPDX-License-Identifier: GPL-3.0-or-later
"""A scene of its own, in which frames are evaluated beside the user's.

It holds an empty for each armature, which refers to everything that is wanted: objects and single bones by
constraints, settings of constraints by a driver. Blender then evaluates these and what they depend on, and
nothing else (of an armature just the bones that are wanted, those above them and what moves these), however
hidden they are and whatever scene they are in; the user's scene is not touched, nor are the values of its
objects.

Application handlers see this scene too: those of frame changes are called for each of its frames. A handler
that has no business there asks `is_isolated`.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

import bpy

T = TypeVar("T")

ISOLATED = "CCD Rig Evaluation"  # name of the temporary scene, and of the mark it carries
PROBED = 64
"""Things that one object depends on: Blender looks through all of an object's when one more is added."""
BLOCK = 64
"""Frames that are read for all armatures before the first of them is worked on."""

_in_use = WeakValueDictionary[int, "SharedScene"]()
"""By `session_uid` the scenes aside in which something is evaluated."""


def is_isolated(scene: bpy.types.Scene) -> bool:
    """Whether a scene is one that `frames` made: handlers of frame changes leave it alone."""
    return scene.get(ISOLATED) is not None


class SharedScene:
    """A scene aside that several armatures may share: each frame is evaluated once for all of them.

    Whoever has said what it wants (`want`) waits until that is read for all (`read_on`). Other frames are
    evaluated when they are asked for.

    Attributes:
        isolated: the scene.
    """

    def __init__(self, isolated: bpy.types.Scene) -> None:
        self.isolated, self._probes = isolated, list[bpy.types.Object]()
        self._readers: dict[bpy.types.Object, _Reader] = {}

    def refer(
        self,
        armature_object: bpy.types.Object,
        things: Sequence[tuple[bpy.types.Object, str]],
        paths: Sequence[str],
    ) -> None:
        """Let it evaluate the armature object's place, things (bones of them where one is named), and the
        armature object's numbers at these data paths. Other bones show no frame's pose in it."""
        whole = list(dict.fromkeys(_referred(armature_object, things)))
        for first in range(0, max(len(whole), len(paths)), PROBED):
            probe = bpy.data.objects.new(ISOLATED, None)
            self._probes.append(probe)
            _refer(probe, armature_object, whole[first : first + PROBED], paths[first : first + PROBED])
            self.isolated.collection.objects.link(probe)

    def clear(self) -> None:
        """Remove what was made for the armatures, at once: each removal looks through the whole file."""
        there = []
        for probe in self._probes:
            with suppress(ReferenceError):  # another file was opened, or undo went back
                if probe.name:
                    there.append(probe)
        bpy.data.batch_remove(there)

    @contextmanager
    def reading(
        self, armature_object: bpy.types.Object, look: Callable[..., T]
    ) -> Iterator[Callable[..., T]]:
        """Within the block, the function it gives reads a frame for an armature.

        Args:
            armature_object: one that this scene evaluates.
            look: reads an evaluated frame. It is given the depsgraph, the frame, and what else the function
                is given.
        """
        reader = self._readers[armature_object] = _Reader(look)

        def read(*asked: Any) -> T:
            if asked not in reader.seen:
                return look(self.at(asked[0]), *asked)
            found, error = reader.seen.pop(asked)
            if error is not None:
                raise error
            return cast(T, found)

        try:
            yield read
        finally:  # an object of a file that was closed is not found by itself
            others = [(each, other) for each, other in self._readers.items() if other is not reader]
            self._readers = dict(others)

    def want(self, armature_object: bpy.types.Object, asked: Iterable[tuple[Any, ...]]) -> None:
        """What an armature that is read will ask for, the arguments of each call, by increasing frames."""
        self._readers[armature_object].wanted.extend(asked)

    def waits(self, armature_object: bpy.types.Object, *asked: Any) -> bool:
        """Whether that is wanted, and was not read yet."""
        reader = self._readers[armature_object]
        return bool(reader.wanted) and asked not in reader.seen

    def read_on(self) -> Generator[list[bpy.types.Object], None, None]:
        """Evaluate the next `BLOCK` frames that are wanted; of each the armatures that it is read for."""
        readers = {each: reader for each, reader in self._readers.items() if reader.wanted}
        ahead = {asked[0] for reader in readers.values() for asked in islice(reader.wanted, BLOCK)}
        for frame in sorted(ahead)[:BLOCK]:
            served = [each for each, reader in readers.items() if reader.wants(frame)]
            depsgraph: bpy.types.Depsgraph | None = None
            for each in served:
                reader = readers[each]
                asked = reader.wanted.popleft()
                try:
                    depsgraph = depsgraph or self.at(frame)
                    reader.seen[asked] = reader.look(depsgraph, *asked), None
                except Exception as error:  # whatever it is, it is for the armature that asks
                    reader.seen[asked] = None, error
            yield served

    def at(self, frame: float) -> bpy.types.Depsgraph:
        """Evaluate a frame."""
        return set_frame(self.isolated, frame)


@dataclass
class _Reader:
    """What is read for an armature.

    Attributes:
        look: see `SharedScene.reading`.
        wanted: what will be asked for, and was not read yet.
        seen: what was read, or the error of it.
    """

    look: Callable[..., Any]
    wanted: deque[tuple[Any, ...]] = field(default_factory=deque)
    seen: dict[tuple[Any, ...], tuple[Any, Exception | None]] = field(default_factory=dict)

    def wants(self, frame: float) -> bool:
        """Whether that frame is the next to be read."""
        return bool(self.wanted) and self.wanted[0][0] == frame


@contextmanager
def shared_scene(scene: bpy.types.Scene) -> Iterator[SharedScene]:
    """A scene aside that evaluates nothing yet."""
    with ExitStack() as made:
        made.callback(remove_left)
        isolated = bpy.data.scenes.new(ISOLATED)
        shared = SharedScene(isolated)
        _in_use[isolated.session_uid] = shared
        made.callback(_in_use.pop, isolated.session_uid, None)
        _copy_settings(scene, isolated)
        made.callback(shared.clear)
        yield shared


@contextmanager
def isolated_scene(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    things: Sequence[tuple[bpy.types.Object, str]],
    paths: Sequence[str],
) -> Iterator[bpy.types.Scene]:
    """A scene that evaluates just this, see `SharedScene.refer`."""
    with shared_scene(scene) as shared:
        shared.refer(armature_object, things, paths)
        yield shared.isolated


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def remove_left(*_arguments: object) -> None:
    """Remove scenes aside that nobody uses, those of files too that were saved while one was there."""
    for scene in list(bpy.data.scenes):
        is_named = re.fullmatch(rf"{ISOLATED}(\.\d+)?", scene.name) is not None
        is_left = is_isolated(scene) or (is_named and not scene.collection.all_objects)
        if is_left and scene.session_uid not in _in_use and scene.is_editable and len(bpy.data.scenes) > 1:
            bpy.data.batch_remove(
                [each for each in scene.collection.objects if each.name.startswith(ISOLATED)]
            )
            bpy.data.scenes.remove(scene)


def _copy_settings(scene: bpy.types.Scene, isolated: bpy.types.Scene) -> None:
    """What animation, drivers and constraints can see of a scene."""
    for name in ("fps", "fps_base", "frame_map_old", "frame_map_new"):
        setattr(isolated.render, name, getattr(scene.render, name))
    for name in ("frame_start", "frame_end", "frame_step", "camera", "active_clip", "gravity", "use_gravity"):
        setattr(isolated, name, getattr(scene, name))
    for key, value in scene.items():
        if isinstance(value, bool | int | float | str):  # what a driver can read of the active scene
            isolated[key] = value
    isolated[ISOLATED] = True


def set_frame(isolated: bpy.types.Scene, frame: float) -> bpy.types.Depsgraph:
    """Evaluate a frame."""
    whole = math.floor(frame)
    isolated.frame_set(whole, subframe=frame - whole)
    depsgraph = isolated.view_layers[0].depsgraph
    assert depsgraph is not None  # frame_set makes it
    return depsgraph


def _refer(
    probe: bpy.types.Object,
    armature_object: bpy.types.Object,
    things: Sequence[tuple[bpy.types.Object, str]],
    paths: Sequence[str],
) -> None:
    """Let an object depend on objects and bones, and on numbers of the armature object.

    Of an object that is not in the scene Blender evaluates only what something in the scene depends on: a
    constraint depends on the object's place or on one bone, a driver on one property.
    """
    for thing, bone in things:
        constraint: Any = probe.constraints.new("COPY_LOCATION")
        constraint.target, constraint.subtarget = thing, bone
    if paths:
        driver = probe.driver_add("location", 0).driver
        driver.type = "SUM"
        for path in paths:
            source = driver.variables.new().targets[0]
            source.id, source.data_path = armature_object, path


def _referred(
    armature_object: bpy.types.Object, things: Sequence[tuple[bpy.types.Object, str]]
) -> Iterator[tuple[bpy.types.Object, str]]:
    """The armature object, things, and what these need to be evaluated; some more than once."""
    for thing in (armature_object, *(thing for thing, _ in things)):
        yield thing, ""
    yield from things
    for thing in dict.fromkeys(thing for thing, bone in things if bone):
        yield from _splines(thing)


def _splines(thing: bpy.types.Object) -> list[tuple[bpy.types.Object, str]]:
    """Bones with a spline IK: Blender prepares it in each frame, and frees that only once it is evaluated."""
    bones = () if thing.pose is None else thing.pose.bones
    return [(thing, bone.name) for bone in bones if any(c.type == "SPLINE_IK" for c in bone.constraints)]


def register() -> None:
    """Remove what is left of scenes aside in files that are opened."""
    bpy.app.handlers.load_post.append(remove_left)


def unregister() -> None:
    """Listen no more."""
    bpy.app.handlers.load_post.remove(remove_left)
