# SPDX-License-Identifier: GPL-3.0-or-later
"""The ground of a scene: the meshes of objects as Blender evaluates them, at every frame where they move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np

from ...errors import InvalidInput, RigError
from ...maths.batch import Array, Indices
from ...motion.ground import Ground, LevelGround, TriangleGround, require_numbers
from ..properties.armature_data import SURFACES
from .evaluation import is_evaluated
from .isolation import set_frame, shared_scene

STILL = 1e-6
"""Metres up to which vertices stay where they are."""
MOST_CORNERS = 100_000_000
"""Vertices of all frames that are kept at most."""
NEAR_GROUND = 0.1
"""Part of its height by which an armature's lowest bone may be off its origin for that to be the ground."""
FINEST = 1e-3
"""Part of the width of all places that the room beside them has at least."""


def ground_of_rig(rig: bpy.types.Object) -> tuple[float | None, tuple[bpy.types.Object, ...]]:
    """The height of an armature's ground, None for that at rest, and the objects that are it.

    Raises:
        RigError: none is chosen, or it can have no faces.
    """
    ground: Any = rig.ccd_rig.ground
    if ground.kind == "HEIGHT":
        return ground.height, ()
    if ground.kind == "OBJECT":
        each = ground.object
        if each is None:
            raise RigError(f"'{rig.name}': Ground is Object, and none is chosen: choose one")
        if each.type not in SURFACES:
            raise RigError(f"'{each.name}' has no faces: choose a mesh as the ground")
        return None, (each,)
    if ground.kind == "COLLECTION":
        if ground.collection is None:
            raise RigError(f"'{rig.name}': Ground is Collection, and none is chosen: choose one")
        return None, surfaces(ground.collection)
    return None, ()


def surfaces(collection: bpy.types.Collection) -> tuple[bpy.types.Object, ...]:
    """The objects of a collection that have faces.

    Raises:
        RigError: there is none.
    """
    meshes = tuple(thing for thing in collection.all_objects if thing.type in SURFACES)
    if not meshes:
        raise RigError(f"collection '{collection.name}' has no object with faces: choose another ground")
    return meshes


def rig_ground(
    scene: bpy.types.Scene,
    rig: bpy.types.Object,
    frames: Sequence[float],
    points: Array,
    room: float,
    at_rest: bool = False,
) -> Ground | None:
    """The ground that is chosen on an armature; None where nothing of it is near points.

    Args:
        scene: in which it is.
        rig: the armature.
        frames: of the scene; the ground's rows are these.
        points: (P, 3) of the world, metres, beside which it counts.
        room: metres from them.
        at_rest: whether that at rest is level ground, at the height on which it stands; else it is None.

    Raises:
        RigError: as `ground_of_rig` and `mesh_ground`.
    """
    height, meshes = ground_of_rig(rig)
    if meshes:
        # Cells of the search are as wide as the room.
        room = max(room, FINEST * float(np.ptp(points[:, :2], axis=0).max()))
        return mesh_ground(scene, meshes, frames, points[:, :2], room)
    if height is None and at_rest:
        height = ground_of(rig)
    return None if height is None else LevelGround(height)


@dataclass
class PresentGround:
    """The ground of an armature as a depsgraph shows it; faces are read again when they have moved.

    Attributes:
        ground: None before the first look, and while it is hidden.
        hidden: name of an object of the ground that the depsgraph does not evaluate; empty if it does.
    """

    ground: Ground | None = None
    hidden: str = ""
    _state: object = field(default=None, repr=False)

    def look(self, rig: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> bool:
        """Read the ground; whether it has changed since the look before.

        Args:
            rig: the armature object, original.
            depsgraph: evaluated.

        Raises:
            RigError: as `ground_of_rig`; an object has no faces, or a vertex is not a number.
        """
        height, meshes = ground_of_rig(rig)
        hidden = [each.name for each in meshes if not is_evaluated(each, depsgraph)]
        state: object = (hidden, height, ground_of(rig))
        if meshes and not hidden:
            state = [(each.name_full, *_shape(each, depsgraph)) for each in meshes]
        if state == self._state:
            return False
        self._state, self.hidden, self.ground = state, hidden[0] if hidden else "", None
        if meshes and not hidden:
            vertices, triangles = _world(depsgraph, meshes)
            self.ground = _triangles(vertices[None], triangles, meshes)
        elif not meshes:
            self.ground = LevelGround(ground_of(rig) if height is None else height)
        return True


def _shape(thing: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> tuple[bytes, bytes, int]:
    """Place, vertices and count of faces of an evaluated object."""
    evaluated = thing.evaluated_get(depsgraph)
    mesh: Any = evaluated.to_mesh()
    try:
        if mesh is None or not len(mesh.vertices):
            return b"", b"", 0
        vertices = np.empty(3 * len(mesh.vertices), np.float32)
        mesh.attributes["position"].data.foreach_get("vector", vertices)
        count = len(mesh.polygons)
    finally:
        evaluated.to_mesh_clear()
    return np.array(evaluated.matrix_world).tobytes(), vertices.tobytes(), count


def ground_of(target: bpy.types.Object) -> float:
    """World height of the ground on which an armature stands at rest: its origin, or its lowest bone."""
    low, high = extent(target)
    origin = target.matrix_world.translation.z
    return float(origin if abs(low - origin) <= NEAR_GROUND * (high - low) else low)


def extent(target: bpy.types.Object) -> tuple[float, float]:
    """World heights of the lowest and the highest bone's end at rest."""
    world = target.matrix_world
    points = [(world @ point).z for bone in target.data.bones for point in (bone.head_local, bone.tail_local)]
    return min(points), max(points)


def mesh_ground(
    scene: bpy.types.Scene,
    objects: Sequence[bpy.types.Object],
    frames: Sequence[float],
    places: Array,
    room: float,
) -> TriangleGround | None:
    """The faces of objects, with modifiers, whatever their frames; the scene stays as it is.

    None where nothing lies near the places.

    Args:
        scene: in which they are.
        objects: of types in `SURFACES`.
        frames: of the scene; the ground's rows are these.
        places: (P, 2) of the world, metres, near which faces can count.
        room: metres from them.

    Raises:
        RigError: an object has no faces, a vertex is not a number, or the meshes of all frames are too
            many.
    """
    with shared_scene(scene) as shared:
        for each in objects:
            shared.isolated.collection.objects.link(each)
        looks = sorted({0, len(frames) // 2, len(frames) - 1})
        probes = [_world(set_frame(shared.isolated, frames[k]), objects) for k in looks]
        first = probes[0]
        animated = any(_is_animated(each) for each in objects)
        still = not animated and all(_alike(first, each) for each in probes[1:])
        if still or len(frames) == 1:
            states = [first[0]]
        else:
            if len(first[0]) * len(frames) > MOST_CORNERS:
                raise RigError(
                    f"the ground has {len(first[0])} vertices and moves in {len(frames)} frames: choose a "
                    "simpler mesh for what moves"
                )
            every = [_world(set_frame(shared.isolated, frame), objects) for frame in frames]
            for (vertices, triangles), frame in zip(every, frames, strict=True):
                if triangles.shape != first[1].shape or vertices.shape != first[0].shape:
                    raise RigError(
                        f"the ground has other faces at frame {frame:g}: choose one that keeps them"
                    )
            states = [vertices for vertices, _ in every]
            if all(np.abs(each - states[0]).max(initial=0.0) <= STILL for each in states[1:]):
                states = states[:1]
    vertices, triangles = _near(np.array(states), first[1], places, room)
    if not len(triangles):
        return None
    return _triangles(vertices, triangles, objects)


def _triangles(vertices: Array, triangles: Indices, objects: Sequence[bpy.types.Object]) -> TriangleGround:
    try:
        return TriangleGround(vertices, triangles)
    except InvalidInput as error:
        raise _refused(objects, error) from error


def _refused(objects: Sequence[bpy.types.Object], error: InvalidInput) -> RigError:
    names = ", ".join(f"'{each.name}'" for each in objects)
    return RigError(f"the ground {names}: {error}")


def _is_animated(thing: bpy.types.Object) -> bool:
    """Whether something of an object, or of what it hangs on, has keys or drivers."""
    line: list[Any] = [thing, thing.data]
    while line[-1] is not None and isinstance(line[-1], bpy.types.Object) and line[-1].parent is not None:
        line.append(line[-1].parent)
    parent = thing.parent
    while parent is not None:
        line.append(parent)
        parent = parent.parent
    keys = getattr(thing.data, "shape_keys", None)
    return any(each is not None and each.animation_data is not None for each in (*line, keys)) or any(
        len(each.constraints) for each in line if isinstance(each, bpy.types.Object)
    )


def _alike(a: tuple[Array, Indices], b: tuple[Array, Indices]) -> bool:
    return a[0].shape == b[0].shape and bool(np.abs(a[0] - b[0]).max(initial=0.0) <= STILL)


def _world(depsgraph: bpy.types.Depsgraph, objects: Sequence[bpy.types.Object]) -> tuple[Array, Indices]:
    """(V, 3) world vertices and (T, 3) triangles.

    Raises:
        RigError: an object has no faces, or a vertex is not a number.
    """
    corners, faces, count = [], [], 0
    for each in objects:
        evaluated = each.evaluated_get(depsgraph)
        mesh: Any = evaluated.to_mesh()
        try:
            if mesh is None or not len(mesh.polygons):
                raise RigError(f"'{each.name}' has no faces: choose a mesh as the ground")
            mesh.calc_loop_triangles()
            vertices = np.empty(3 * len(mesh.vertices), np.float32)
            mesh.vertices.foreach_get("co", vertices)
            triangles = np.empty(3 * len(mesh.loop_triangles), np.int32)
            mesh.loop_triangles.foreach_get("vertices", triangles)
        finally:
            evaluated.to_mesh_clear()
        world = np.array([row[:] for row in evaluated.matrix_world])
        local = vertices.reshape(-1, 3).astype(np.float64)
        try:
            require_numbers(local)
        except InvalidInput as error:
            raise _refused([each], error) from error
        corners.append(local @ world[:3, :3].T + world[:3, 3])
        faces.append(triangles.reshape(-1, 3).astype(np.int64) + count)
        count += len(local)
    return np.concatenate(corners), np.concatenate(faces)


def _near(states: Array, triangles: Indices, places: Array, room: float) -> tuple[Array, Indices]:
    """The same with those triangles alone that get within about `room` of places, and their corners."""
    bad = ~np.isfinite(states).all(axis=(0, 2))
    corners = np.where(np.isfinite(states), states, 0.0)[..., :2]
    start = places.min(axis=0) - 2.0 * room
    shape = np.floor((places.max(axis=0) + 2.0 * room - start) / room).astype(np.intp) + 1
    # Cells as wide as the room: those of the places and those around them count.
    near = np.zeros(shape, np.bool_)
    for x, y in np.unique(np.floor((places - start) / room).astype(np.intp), axis=0).tolist():
        near[x - 1 : x + 2, y - 1 : y + 2] = True
    lows, highs = corners.min(axis=0)[triangles].min(axis=1), corners.max(axis=0)[triangles].max(axis=1)
    within = ((lows <= start + shape * room) & (highs >= start)).all(axis=1)
    cells = [np.floor((each - start) / room).astype(np.intp).clip(0, shape - 1) for each in (lows, highs)]
    met = [near[a[:, 0], b[:, 1]] for a in cells for b in cells]
    kept = within & (np.any(met, axis=0) | ((highs - lows) > room).any(axis=1)) | bad[triangles].any(axis=1)
    used, order = np.unique(triangles[kept], return_inverse=True)
    return states[:, used], order.reshape(-1, 3)
