# SPDX-License-Identifier: GPL-3.0-or-later
"""Temporary scene in which frames are evaluated apart from the user's scene.

Empties in it refer to the objects and bones to evaluate by constraints, and to settings by drivers. Blender
evaluates these and their dependencies, and nothing else, even if they are hidden or in another scene. Of an
armature it evaluates only the referred bones, their parents, and the movers of both. The user's scene and the
values of its objects do not change.

Application handlers see this scene too: frame change handlers are called for each of its frames, and it is
the context's scene then. A handler can ignore it by `is_isolated`. Handlers of scripts write to the user's
objects, so they are called for the user's frame again in the end.
"""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from weakref import WeakValueDictionary

import bpy

from ..keys.channels import addon_properties
from ..registration import Handlers

ISOLATED = "CCD Rig Evaluation"  # name of the temporary scene, and of the mark it carries
PROBED = 64
"""Number of references of one empty: Blender searches all references of an object when one is added."""

_OWN = __name__.rpartition("ccd_rig.blender.")[0] or "ccd_rig."  # how names of the add-on's modules begin
_in_use = WeakValueDictionary[int, "SharedScene"]()
"""Temporary scenes in use, by `session_uid`."""


def is_isolated(scene: bpy.types.Scene) -> bool:
    """Whether a scene is a temporary one, which handlers of frame changes ignore."""
    return scene.get(ISOLATED) is not None


class SharedScene:
    """Temporary scene that several armatures may share: a frame is evaluated once for all of them.

    Attributes:
        isolated: the scene.
    """

    def __init__(self, isolated: bpy.types.Scene) -> None:
        self.isolated, self._probes = isolated, list[bpy.types.Object]()
        self._is_unchanged = False
        self._frame: float | None = None  # evaluated last

    def refer(
        self,
        armature_object: bpy.types.Object,
        references: Sequence[tuple[bpy.types.Object, str]],
        paths: Sequence[str],
    ) -> None:
        """Make the scene evaluate an armature object and everything that is read with it.

        Objects outside of the scene are evaluated only as far as objects in it depend on them: a constraint
        depends on the transform of an object or on one bone, a driver on one property. Bones that are not
        referred to keep no frame's pose in it.

        Args:
            armature_object: its transform is evaluated.
            references: objects, or single bones of them where a name is not empty.
            paths: data paths of numbers of the armature object.
        """
        evaluated = list(dict.fromkeys(_with_dependencies(armature_object, references)))
        for first in range(0, max(len(evaluated), len(paths)), PROBED):
            probe = bpy.data.objects.new(ISOLATED, None)
            self._probes.append(probe)
            for obj, bone in evaluated[first : first + PROBED]:
                constraint: Any = probe.constraints.new("COPY_LOCATION")
                constraint.target, constraint.subtarget = obj, bone
            if numbers := paths[first : first + PROBED]:
                driver = probe.driver_add("location", 0).driver
                driver.type = "SUM"
                for path in numbers:
                    source = driver.variables.new().targets[0]
                    source.id, source.data_path = armature_object, path
            self.isolated.collection.objects.link(probe)

    def show(self, objects: Sequence[bpy.types.Object]) -> None:
        """Make the scene evaluate the surfaces of objects, with modifiers, even if they are hidden."""
        for first in range(0, len(objects), PROBED):
            probe = bpy.data.objects.new(ISOLATED, None)
            self._probes.append(probe)
            for each in objects[first : first + PROBED]:
                constraint: Any = probe.constraints.new("SHRINKWRAP")  # depends on the target's surface
                constraint.target, constraint.influence = each, 0.0
            self.isolated.collection.objects.link(probe)
        for each in objects:  # without this Blender makes no instances
            self.isolated.collection.objects.link(each)

    def clear(self) -> None:
        """Remove the empties, all at once: a removal searches the entire file."""
        probes = []
        for probe in self._probes:
            with suppress(ReferenceError):  # another file was opened, or undo went back
                if probe.name:
                    probes.append(probe)
        bpy.data.batch_remove(probes)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """For the block, in which nothing changes the file, evaluate a frame once for reads in a row."""
        self._is_unchanged, self._frame = True, None
        try:
            yield
        finally:
            self._is_unchanged = False

    def at(self, frame: float) -> bpy.types.Depsgraph:
        """Evaluate a frame."""
        if not self._is_unchanged or frame != self._frame:
            self._frame = frame
            return set_frame(self.isolated, frame)
        depsgraph = self.isolated.view_layers[0].depsgraph
        assert depsgraph is not None  # `set_frame` made it
        return depsgraph


@contextmanager
def shared_scene(scene: bpy.types.Scene) -> Iterator[SharedScene]:
    """Make a temporary scene without references for the block."""
    with ExitStack() as stack:
        stack.callback(remove_left)  # again, should Ctrl-C end the first call
        stack.callback(remove_left)
        isolated = bpy.data.scenes.new(ISOLATED)
        shared = SharedScene(isolated)
        stack.callback(_in_use.pop, isolated.session_uid, None)
        _in_use[isolated.session_uid] = shared
        _copy_settings(scene, isolated)
        stack.callback(_call_handlers, scene.original)
        stack.callback(shared.clear)
        yield shared


@contextmanager
def isolated_scene(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    references: Sequence[tuple[bpy.types.Object, str]],
    paths: Sequence[str],
) -> Iterator[bpy.types.Scene]:
    """Make a temporary scene with references for the block, see `SharedScene.refer`."""
    with shared_scene(scene) as shared:
        shared.refer(armature_object, references, paths)
        yield shared.isolated


_HANDLERS = Handlers()


@_HANDLERS.on("load_post")
def remove_left(*_arguments: object) -> None:
    """Remove temporary scenes that are not in use, such as one that was saved with the file."""
    for scene in list(bpy.data.scenes):
        is_named = re.fullmatch(rf"{ISOLATED}(\.\d+)?", scene.name) is not None
        is_left = is_isolated(scene) or (is_named and not scene.collection.all_objects)
        if is_left and scene.session_uid not in _in_use and scene.is_editable and len(bpy.data.scenes) > 1:
            bpy.data.batch_remove([o for o in scene.collection.objects if o.name.startswith(ISOLATED)])
            bpy.data.scenes.remove(scene)


def _copy_settings(scene: bpy.types.Scene, isolated: bpy.types.Scene) -> None:
    """Copy the settings of a scene that animation, drivers, constraints and modifiers read."""
    for name in ("fps", "fps_base", "frame_map_old", "frame_map_new", "simplify_subdivision"):
        setattr(isolated.render, name, getattr(scene.render, name))
    if scene.render.use_simplify:  # to set it tags every object of the file
        isolated.render.use_simplify = True
    for name in ("frame_start", "frame_end", "frame_step", "camera", "active_clip", "gravity", "use_gravity"):
        setattr(isolated, name, getattr(scene, name))
    for source, copy in zip(_properties(scene.original), _properties(isolated, True), strict=True):
        for key, value in () if source is None else source.items():
            copy[key] = _plain(value)  # drivers and handlers can read it from the active scene
    isolated[ISOLATED] = True


def _properties(scene: Any, is_made: bool = False) -> list[Any]:
    """Custom properties of a scene, and those of add-ons where Blender stores them apart.

    Args:
        is_made: whether the latter are made if there are none; else they are None.
    """
    stored = addon_properties(scene, is_made)
    return [scene] if stored is scene else [scene, stored]


def _plain(value: Any) -> Any:
    """A custom property's value in Python's own types."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    convert = getattr(value, "to_dict", None) or getattr(value, "to_list", None)
    return value if convert is None else convert()


def script_handlers() -> list[Callable[..., Any]]:
    """Return the frame change handlers of scripts, which may write to the user's objects at every frame."""
    handlers = (*bpy.app.handlers.frame_change_pre, *bpy.app.handlers.frame_change_post)
    return [each for each in handlers if not getattr(each, "__module__", "").startswith(_OWN)]


def _call_handlers(scene: bpy.types.Scene) -> None:
    """Call frame change handlers of scripts for the present frame of a scene, as Blender calls them."""
    try:
        depsgraph = next((each.depsgraph for each in scene.view_layers if each.depsgraph is not None), None)
    except ReferenceError:  # another file was opened
        return
    for handler in script_handlers():
        count = getattr(getattr(handler, "__code__", None), "co_argcount", 2)
        try:
            handler(*(scene, depsgraph)[: 1 if count == 1 else 2])
        except Exception:  # of a script, which Blender prints too
            traceback.print_exc()


def set_frame(isolated: bpy.types.Scene, frame: float) -> bpy.types.Depsgraph:
    """Evaluate a frame of a scene."""
    integer = math.floor(frame)
    with bpy.context.temp_override(scene=isolated):  # handlers may ask the context for the frame
        isolated.frame_set(integer, subframe=frame - integer)
    depsgraph = isolated.view_layers[0].depsgraph
    assert depsgraph is not None  # frame_set makes it
    return depsgraph


def _with_dependencies(
    armature_object: bpy.types.Object, references: Sequence[tuple[bpy.types.Object, str]]
) -> Iterator[tuple[bpy.types.Object, str]]:
    """Yield the objects and bones to refer to; some more than once.

    Bones with a spline IK are added: Blender allocates it in each frame, and frees it only if it is
    evaluated.
    """
    for obj in (armature_object, *(obj for obj, _ in references)):
        yield obj, ""
    yield from references
    for obj in dict.fromkeys(obj for obj, bone in references if bone):
        for pose_bone in () if obj.pose is None else obj.pose.bones:
            if any(constraint.type == "SPLINE_IK" for constraint in pose_bone.constraints):
                yield obj, pose_bone.name


register, unregister = _HANDLERS.register, _HANDLERS.unregister
