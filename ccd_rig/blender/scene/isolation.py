# SPDX-License-Identifier: GPL-3.0-or-later
"""A scene of its own, in which frames are evaluated beside the user's.

It holds an empty for each armature, which refers to everything that is wanted: objects and single bones by
constraints, the influences by a driver. Blender then evaluates these and what they depend on, and nothing
else (of an armature just the bones that are wanted, those above them and what moves these), however hidden
they are and whatever scene they are in; the user's scene is not touched, nor are the values of its objects.

Application handlers see this scene too: those of frame changes are called for each of its frames. A handler
that has no business there asks `is_isolated`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import bpy

ISOLATED = "CCD Rig Evaluation"  # name of the temporary scene, and of the mark it carries


def is_isolated(scene: bpy.types.Scene) -> bool:
    """Whether a scene is one that `frames` made: handlers of frame changes leave it alone."""
    return scene.get(ISOLATED) is not None


class SharedScene:
    """A scene aside that several armatures may share: each frame is evaluated once for all of them.

    Attributes:
        isolated: the scene.
    """

    def __init__(self, isolated: bpy.types.Scene) -> None:
        self.isolated, self._probes = isolated, list[bpy.types.Object]()
        self._frame, self._served = math.nan, set[bpy.types.Object]()

    def refer(
        self,
        armature_object: bpy.types.Object,
        things: Sequence[tuple[bpy.types.Object, str]],
        indices: Sequence[int],
    ) -> None:
        """Let it evaluate the armature object's place, things (bones of them where one is named), and the
        influences of the constraints with these indices. Other bones show no frame's pose in it."""
        probe = bpy.data.objects.new(ISOLATED, None)
        self._probes.append(probe)
        _refer(probe, armature_object, things, indices)
        self.isolated.collection.objects.link(probe)
        self._frame = math.nan

    def clear(self) -> None:
        """Remove what was made for the armatures, at once: each removal looks through the whole file."""
        there = []
        for probe in self._probes:
            with suppress(ReferenceError):  # another file was opened, or undo went back
                if probe.name:
                    there.append(probe)
        bpy.data.batch_remove(there)

    def at(self, frame: float, armature_object: bpy.types.Object) -> bpy.types.Depsgraph:
        """A frame, evaluated unless it is there for another armature already."""
        if frame != self._frame or armature_object in self._served:
            set_frame(self.isolated, frame)
            self._frame = frame
            self._served.clear()
        self._served.add(armature_object)
        depsgraph = self.isolated.view_layers[0].depsgraph
        assert depsgraph is not None
        return depsgraph


@contextmanager
def shared_scene(scene: bpy.types.Scene) -> Iterator[SharedScene]:
    """A scene aside that evaluates nothing yet."""
    with ExitStack() as made:
        isolated = bpy.data.scenes.new(ISOLATED)
        made.callback(_remove, bpy.data.scenes, isolated)
        _copy_settings(scene, isolated)
        shared = SharedScene(isolated)
        made.callback(shared.clear)
        yield shared


@contextmanager
def isolated_scene(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    things: Sequence[tuple[bpy.types.Object, str]],
    indices: Sequence[int],
) -> Iterator[bpy.types.Scene]:
    """A scene that evaluates just this, see `SharedScene.refer`."""
    with shared_scene(scene) as shared:
        shared.refer(armature_object, things, indices)
        yield shared.isolated


def _remove(collection: Any, made: bpy.types.ID) -> None:
    with suppress(ReferenceError):  # another file was opened, or undo went back: what we made is gone already
        collection.remove(made)


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
    indices: Sequence[int],
) -> None:
    """Let an object depend on all that is to be evaluated.

    Of an object that is not in the scene Blender evaluates only what something in the scene depends on: a
    constraint depends on the object's place or on one bone, a driver on one property.
    """
    referred = [(thing, "") for thing in (armature_object, *(thing for thing, _ in things))]
    armatures = dict.fromkeys(thing for thing, bone in things if bone)
    referred += [*things, *(pair for thing in armatures for pair in _splines(thing))]
    for thing, bone in dict.fromkeys(referred):
        constraint: Any = probe.constraints.new("COPY_LOCATION")
        constraint.target, constraint.subtarget = thing, bone
    if indices:
        driver = probe.driver_add("location", 0).driver
        driver.type = "SUM"
        for index in indices:
            source = driver.variables.new().targets[0]
            source.id = armature_object
            source.data_path = f"ccd_rig.constraints[{index}].influence"


def _splines(thing: bpy.types.Object) -> list[tuple[bpy.types.Object, str]]:
    """Bones with a spline IK: Blender prepares it in each frame, and frees that only once it is evaluated."""
    bones = () if thing.pose is None else thing.pose.bones
    return [(thing, bone.name) for bone in bones if any(c.type == "SPLINE_IK" for c in bone.constraints)]
