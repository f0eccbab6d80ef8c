# SPDX-License-Identifier: GPL-3.0-or-later
"""The ground of a scene: the faces of objects as Blender evaluates them, at every frame where they move.

Instances count: those of a collection that an empty shows, and those that modifiers make. Ground that moves
is read frame by frame, and only what gets near the places that count is kept.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from ...errors import InvalidInput, RigError
from ...maths.batch import Array, Indices, Mask
from ...motion.ground import (
    Ground,
    GroundBlock,
    LevelGround,
    MovingGround,
    TriangleGround,
    passed_over,
    require_numbers,
)
from ...solvers.stepping import result_of
from ..properties.armature_data import SURFACES
from .dependence import require_evaluable_ground
from .evaluation import is_evaluated
from .isolation import set_frame, shared_scene

STILL = 1e-6
"""Metres up to which vertices stay where they are."""
MOST_CORNERS = 100_000_000
"""Vertices of all frames that are kept at most."""
ROWS, AT_ONCE = 16, 10_000_000
"""Frames of ground that moves from which the faces that are near are taken together, and vertices at most."""
NEAR_GROUND = 0.1
"""Part of its height by which an armature's lowest bone may be off its origin for that to be the ground."""
BY_TIME = frozenset({"BUILD", "MESH_CACHE", "MESH_SEQUENCE_CACHE", "WAVE"})
"""Modifiers that may move vertices without a key."""
SCENE_NODES = frozenset(
    {
        *("GeometryNodeCollectionInfo", "GeometryNodeInputSceneTime", "GeometryNodeObjectInfo"),
        *("NodeSocketCollection", "NodeSocketObject"),
    }
)
"""Nodes, and sockets of node groups, whose values may change without a key of the group."""
FINE = 4
"""Squares along the room in which triangles near places are looked for."""
FINEST = 2e-3
"""Part of the width of all places that the searched room beside them has at least."""


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
        if not may_have_faces(each):
            raise RigError(f"'{each.name}' has no faces: choose a mesh as the ground")
        return None, (each,)
    if ground.kind == "COLLECTION":
        if ground.collection is None:
            raise RigError(f"'{rig.name}': Ground is Collection, and none is chosen: choose one")
        return None, surfaces(ground.collection)
    return None, ()


def require_ground(scene: bpy.types.Scene, rig: bpy.types.Object) -> None:
    """Raise RigError if an armature's ground is not chosen, or cannot be evaluated apart from its scene."""
    _, meshes = ground_of_rig(rig)
    _require_evaluable(scene, meshes)


def _require_evaluable(scene: bpy.types.Scene, objects: Sequence[bpy.types.Object]) -> None:
    require_evaluable_ground(scene, (shown for each in objects for shown in with_instanced(each)))


def may_have_faces(obj: bpy.types.Object) -> bool:
    """Whether an object has faces, or shows instances, which may."""
    return obj.type in SURFACES or _shows_instances(obj)


def _shows_instances(obj: bpy.types.Object) -> bool:
    return obj.instance_type != "NONE" or any(each.type == "NODES" for each in obj.modifiers)


def surfaces(collection: bpy.types.Collection) -> tuple[bpy.types.Object, ...]:
    """The objects of a collection that have faces, or instances of objects that do.

    Raises:
        RigError: there is none.
    """
    meshes = tuple(obj for obj in collection.all_objects if may_have_faces(obj))
    if not meshes:
        raise RigError(f"collection '{collection.name}' has no object with faces: choose another ground")
    return meshes


def rig_ground(
    scene: bpy.types.Scene,
    rig: bpy.types.Object,
    frames: Sequence[float],
    points: Array,
    room: float,
    rest: Matrix | None = None,
) -> Ground | None:
    """The ground that is chosen on an armature; None where nothing of it is near points.

    Args:
        frames: of the scene; the ground's rows are these.
        points: (P, 3) of the world, metres, beside which it counts.
        room: metres from them.
        rest: armature space to world, as it stands on the ground At Rest; None: that ground is None.

    Raises:
        RigError: as `ground_of_rig` and `mesh_ground`.
    """
    height, meshes = ground_of_rig(rig)
    if meshes:
        return result_of(mesh_ground(scene, meshes, frames, points[:, :2], room))
    if height is None and rest is not None:
        height = ground_of(rig, rest)
    return None if height is None else LevelGround(height)


@dataclass
class PresentGround:
    """The ground of an armature as a depsgraph shows it; faces are read again when they have moved."""

    ground: Ground | None = None  # None before the first look, and while it is hidden
    hidden: str = ""  # name of an object of the ground that the depsgraph does not evaluate; empty if it does
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
        rest = ground_of(rig, rig.matrix_world)
        state: object = (hidden, height, rest)
        pieces: list[_Piece] = []
        if meshes and not hidden:
            pieces = _pieces(depsgraph, meshes)
            state = [
                (each.name, each.world.tobytes(), each.shape.vertices.tobytes(), each.shape.corners.tobytes())
                for each in pieces
            ]
        if state == self._state:
            return False
        self._state, self.hidden, self.ground = state, hidden[0] if hidden else "", None
        if meshes and not hidden:
            self.ground = TriangleGround(_lines(pieces).T, _faces(pieces))
        elif not meshes:
            self.ground = LevelGround(rest if height is None else height)
        return True


def ground_of(target: bpy.types.Object, world: Matrix) -> float:
    """World height of the ground on which an armature stands at rest: its origin, or its lowest bone.

    Args:
        world: armature space to world.
    """
    low, high = extent(target, world)
    origin = world.translation.z
    return float(origin if abs(low - origin) <= NEAR_GROUND * (high - low) else low)


def extent(target: bpy.types.Object, world: Matrix) -> tuple[float, float]:
    """World heights of the lowest and the highest bone's end at rest; `world`: armature space to world."""
    points = [(world @ point).z for bone in target.data.bones for point in (bone.head_local, bone.tail_local)]
    return min(points), max(points)


def mesh_ground(
    scene: bpy.types.Scene,
    objects: Sequence[bpy.types.Object],
    frames: Sequence[float],
    places: Array,
    room: float,
) -> Generator[float, None, Ground | None]:
    """The faces of objects, with modifiers, whatever their frames; the scene stays as it is.

    Yields counts of frames that are read, see `first_ground` for arguments and errors, and returns None where
    nothing lies near the places.
    """
    ground = yield from first_ground(scene, objects, frames, places, room)
    if not isinstance(ground, MovingGround):
        return ground
    return (yield from moving_ground(scene, objects, frames, [places] * len(frames), room, ground))


def first_ground(
    scene: bpy.types.Scene,
    objects: Sequence[bpy.types.Object],
    frames: Sequence[float],
    places: Array,
    room: float,
) -> Generator[float, None, TriangleGround | MovingGround | None]:
    """The faces of objects at the first frame: moving ground if they may move later, None where none is near.

    Args:
        objects: see `may_have_faces`.
        frames: of the scene; the ground's rows are these.
        places: (P, 2) of the world, metres, near which faces can count.
        room: metres from them.

    Raises:
        RigError: an object has no faces, a vertex is not a number, or a simulation without keys moves one.
    """
    _require_evaluable(scene, objects)
    with shared_scene(scene) as shared:
        shared.show(objects)
        pieces = _pieces(set_frame(shared.isolated, frames[0]), objects)
        yield 0.0
        lines, triangles = _lines(pieces), _faces(pieces)
        later = sorted({len(frames) // 2, len(frames) - 1} - {0})
        moves = bool(later) and _may_move(shown for each in objects for shown in with_instanced(each))
        for k in later:
            if not moves:
                seen = _pieces(set_frame(shared.isolated, frames[k]), objects, triangulated=False)
                moves = not _same_faces(pieces, seen) or _moved(lines, _lines(seen))
                yield 0.0
    kept = np.flatnonzero(_near(*passed_over(lines[:2], lines[:2], triangles), places, room))
    if moves:
        used, order = _renumbered(triangles[kept], lines.shape[1])
        return MovingGround([GroundBlock(lines.T[None, used], order, kept)])
    yield 0.0
    if not len(kept):
        return None
    used, order = _renumbered(triangles[kept], lines.shape[1])
    return TriangleGround(lines.T[used], order)


def moving_ground(
    scene: bpy.types.Scene,
    objects: Sequence[bpy.types.Object],
    frames: Sequence[float],
    places: Sequence[Array],
    room: float,
    first: MovingGround,
) -> Generator[float, None, Ground | None]:
    """The faces of objects at every frame, of which those are kept that are near then.

    Args:
        scene, objects, frames, room: as for `first_ground`.
        places: (P, 2) for each frame.
        first: at the first frame; it stands still if nothing moves at all.

    Raises:
        RigError: an object has no faces or others later, a vertex is not a number, or the vertices of all
            frames are too many.
    """
    blocks: list[GroundBlock] = []
    count, moved = 0, False
    with shared_scene(scene) as shared:
        shared.show(objects)
        pieces = _pieces(set_frame(shared.isolated, frames[0]), objects)
        start, triangles = _lines(pieces).astype(np.float32), _faces(pieces)
        yield 0.0
        rows = max(1, min(ROWS, AT_ONCE // start.shape[1]))
        for k in range(0, len(frames), rows):
            states = np.empty((3, len(frames[k : k + rows]), start.shape[1]), np.float32)
            for row, frame in enumerate(frames[k : k + rows]):
                seen = _pieces(set_frame(shared.isolated, frame), objects, triangulated=False)
                if not _same_faces(pieces, seen):
                    names = ", ".join(f"'{each.name}'" for each in objects)
                    raise RigError(
                        f"the ground {names} has other faces at frame {frame:.7g}: choose one that keeps them"
                    )
                states[:, row] = _lines(seen)
                moved = moved or _moved(states[:, row], start)
                yield 1.0
            passed = passed_over(states[:2].min(axis=1), states[:2].max(axis=1), triangles)
            yield 0.0
            kept = np.flatnonzero(_near(*passed, np.concatenate(places[k : k + rows]), room))
            yield 0.0
            used, order = _renumbered(triangles[kept], start.shape[1])
            count += len(used) * states.shape[1]
            if count > MOST_CORNERS:
                raise RigError(
                    f"the ground '{objects[0].name}' moves, and has more than {MOST_CORNERS} vertices near "
                    f"the figure in {k + rows} frames: choose a simpler mesh for what moves"
                )
            vertices = np.ascontiguousarray(np.moveaxis(states[:, :, used], 0, -1))
            blocks.append(GroundBlock(vertices, order, kept))
            if len(kept):
                blocks[-1].prepare()
            yield 0.0
    if not moved:
        (block,) = first.blocks
        return TriangleGround(block.vertices[0], block.triangles) if len(block.faces) else None
    return MovingGround(blocks) if any(len(each.faces) for each in blocks) else None


def with_instanced(obj: bpy.types.Object) -> Iterator[bpy.types.Object]:
    """An object, and those of the collection that it shows, and that they show; each once."""
    seen, left = {obj}, [obj]
    while left:
        each = left.pop()
        yield each
        if each.instance_type == "COLLECTION" and each.instance_collection is not None:
            shown = [other for other in each.instance_collection.all_objects if other not in seen]
            seen.update(shown)
            left += reversed(shown)


def _may_move(objects: Iterable[bpy.types.Object]) -> bool:
    """Whether keys, drivers, constraints or time may move objects, what they hang on, or what shapes them."""
    seen: set[bpy.types.Object] = set()
    left = list(objects)
    while left:
        obj = left.pop()
        if obj in seen:
            continue
        seen.add(obj)
        node_groups = [each.node_group for each in obj.modifiers if each.type == "NODES" and each.node_group]
        keyed = [obj, obj.data, getattr(obj.data, "shape_keys", None), *node_groups]
        if any(each is not None and each.animation_data is not None for each in keyed):
            return True
        bones = obj.pose.bones if obj.pose is not None else ()
        if len(obj.constraints) or any(len(bone.constraints) for bone in bones):
            return True
        if any(each.type in BY_TIME for each in obj.modifiers) or any(map(_reads_scene, node_groups)):
            return True
        if obj.parent is not None:
            left.append(obj.parent)
        for modifier in obj.modifiers:
            for each in modifier.bl_rna.properties:
                if each.type == "POINTER":
                    used = getattr(modifier, each.identifier)
                    if isinstance(used, bpy.types.Object):
                        left.append(used)
                    elif isinstance(used, bpy.types.Collection):
                        left += used.all_objects
    return False


def _reads_scene(tree: Any, above: frozenset[Any] = frozenset()) -> bool:
    """Whether a node group, or one in it, reads the scene's time or other objects."""
    names = [each.bl_idname for each in tree.nodes]
    names += [getattr(each, "socket_type", "") for each in tree.interface.items_tree]
    inner = {getattr(each, "node_tree", None) for each in tree.nodes} - {None, tree} - above
    return not SCENE_NODES.isdisjoint(names) or any(_reads_scene(each, above | {tree}) for each in inner)


def _moved(a: Array, b: Array) -> bool:
    return not bool(np.abs(a - b).max(initial=0.0) <= STILL)


# Faces as they are shown ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Shape:
    """A mesh."""

    vertices: Array  # (V, 3) float32, in its object's space
    corners: Indices  # (C,) vertices of the corners of its faces
    triangles: Indices  # (T, 3); empty where they are not read


@dataclass(frozen=True, eq=False)
class _Piece:
    """A mesh where an object shows it: `name` is that of the object of the ground, `world` (4, 4)."""

    name: str
    shape: _Shape
    world: Array


def _pieces(
    depsgraph: bpy.types.Depsgraph, objects: Sequence[bpy.types.Object], triangulated: bool = True
) -> list[_Piece]:
    """What objects show at an evaluated frame, with their instances, in the objects' order.

    Raises:
        RigError: an object shows no face, or a vertex is not a number.
    """
    shapes: dict[tuple[int, int], _Shape | None] = {}
    shown: dict[str, list[_Piece]] = {each.name_full: [] for each in objects}
    for each in objects:
        if each.type in SURFACES:
            evaluated = each.evaluated_get(depsgraph)
            if shape := _shape(evaluated, each.name, triangulated):
                shown[each.name_full].append(_Piece(each.name, shape, np.array(evaluated.matrix_world)))
    if any(_shows_instances(each) for each in objects):
        for instance in depsgraph.object_instances:
            if not instance.is_instance or instance.parent is None or instance.object.type not in SURFACES:
                continue
            owner = instance.parent.original
            if owner.name_full not in shown:
                continue
            world = np.array(instance.matrix_world)
            # Blender takes one object for all instances that modifiers make, with other data for each.
            key = instance.object.as_pointer(), instance.object.data.as_pointer()
            if key not in shapes:
                shapes[key] = _shape(instance.object, owner.name, triangulated)
            if shape := shapes[key]:
                shown[owner.name_full].append(_Piece(owner.name, shape, world))
    for each in objects:
        if not shown[each.name_full] and each.hide_viewport and _shows_instances(each):
            raise RigError(
                f"'{each.name}' is hidden, and shows no instance: show it, or choose another ground"
            )
        if not shown[each.name_full]:
            raise RigError(f"'{each.name}' has no faces: choose a mesh as the ground")
    return [piece for each in objects for piece in shown[each.name_full]]


def _shape(evaluated: bpy.types.Object, name: str, triangulated: bool) -> _Shape | None:
    mesh: Any = evaluated.to_mesh()
    try:
        if mesh is None or not len(mesh.polygons):
            return None
        places = np.empty(3 * len(mesh.vertices), np.float32)
        mesh.attributes["position"].data.foreach_get("vector", places)
        corners = np.empty(len(mesh.loops), np.int32)
        mesh.attributes[".corner_vert"].data.foreach_get("value", corners)
        triangles = np.empty(0, np.int32)
        if triangulated:
            mesh.calc_loop_triangles()
            triangles = np.empty(3 * len(mesh.loop_triangles), np.int32)
            mesh.loop_triangles.foreach_get("vertices", triangles)
    finally:
        evaluated.to_mesh_clear()
    vertices = places.reshape(-1, 3)
    try:
        require_numbers(vertices)
    except InvalidInput as error:
        raise RigError(f"the ground '{name}': {error}") from error
    return _Shape(vertices, corners, triangles.reshape(-1, 3))


def _same_faces(a: Sequence[_Piece], b: Sequence[_Piece]) -> bool:
    return len(a) == len(b) and all(
        x.name == y.name
        and len(x.shape.vertices) == len(y.shape.vertices)
        and np.array_equal(x.shape.corners, y.shape.corners)
        for x, y in zip(a, b, strict=True)
    )


def _lines(pieces: Sequence[_Piece]) -> Array:
    """(3, V) world vertices."""
    lines = []
    for piece in pieces:
        x, y, z = (np.ascontiguousarray(piece.shape.vertices[:, k], np.float64) for k in range(3))
        lines.append([row[0] * x + row[1] * y + row[2] * z + row[3] for row in piece.world[:3]])
    return np.concatenate(lines, axis=1)


def _faces(pieces: Sequence[_Piece]) -> Indices:
    """(T, 3) indices of world vertices."""
    starts = np.cumsum([0, *(len(each.shape.vertices) for each in pieces)])
    every = [each.shape.triangles.astype(np.int64) for each in pieces]
    return np.concatenate([each + start for each, start in zip(every, starts[:-1], strict=True)])


def _renumbered(triangles: Indices, count: int) -> tuple[Indices, Indices]:
    """Which of so many vertices triangles (T, 3) have, and the triangles by their places in these."""
    is_used = np.zeros(count, np.bool_)
    is_used[triangles] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[triangles]


def _near(lows: Sequence[Array], highs: Sequence[Array], places: Array, room: float) -> Mask:
    """(T,) which triangles get within about the room of places (P, 2); of places far apart more.

    Args:
        lows, highs: (T,) of X and of Y between which they are.
        places: metres.
        room: metres.
    """
    room = max(room, FINEST * float(np.ptp(places, axis=0).max()))
    wide = room / FINE
    start = places.min(axis=0) - room - wide
    shape = np.ceil((places.max(axis=0) + room + wide - start) / wide).astype(np.intp) + 1
    near = np.zeros(shape, np.bool_)
    for x, y in np.unique(np.floor((places - start) / wide).astype(np.intp), axis=0).tolist():
        near[max(x - FINE, 0) : x + FINE + 1, max(y - FINE, 0) : y + FINE + 1] = True
    counts = np.zeros(shape + 1, np.int32)  # of near squares before each, both ways
    counts[1:, 1:] = near.cumsum(axis=0).cumsum(axis=1)
    kept = np.ones(len(lows[0]), np.bool_)
    for axis in (0, 1):
        kept &= (lows[axis] <= start[axis] + shape[axis] * wide) & (highs[axis] >= start[axis])
    rows = np.flatnonzero(kept)
    (x0, x1), (y0, y1) = (
        [
            np.floor((each[axis][rows] - start[axis]) / wide).astype(np.intp).clip(0, shape[axis] - 1)
            for each in (lows, highs)
        ]
        for axis in (0, 1)
    )
    seen = counts[x1 + 1, y1 + 1] - counts[x0, y1 + 1] - counts[x1 + 1, y0] + counts[x0, y0]
    kept[rows] = seen > 0
    return kept
