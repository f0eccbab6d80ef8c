# SPDX-License-Identifier: GPL-3.0-or-later
"""Motion of a source armature as arrays in world space, and the target armature as a figure.

A rig of controls is a target whose bones are moved by constraints or drivers. Rest matrices do not tell the
effect of its channels. So its motion is computed on a skeleton of the mapped bones alone. It is written to
the rig from the hips outwards. Frames are evaluated with the keys written so far, and with all other mapped
bones at rest, for the matrices of the next bones. Their channels are set to the difference. Rigidly connected
bones need no evaluation. `world` leads from armature space to the world.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ...errors import RigError
from ...maths import batch
from ...maths.batch import Array
from ...motion.ground import seen_below
from ...motion.retargeting.figures import (
    MOST_LEGS,
    FigureMap,
    Limb,
    SourceMotion,
    TargetFigure,
    inverse,
    product,
)
from ...motion.retargeting.over_ground import Terrain
from ...skeleton.joints import Joint, Skeleton
from ..checks import uneven_scale
from ..keys import channels
from ..properties.constraint_list import chain
from ..properties.joints import joint_settings
from ..rig import armature, clamps
from ..rig.armature import RigReading
from ..rig.rotation_modes import WIDTHS
from ..scene.ground import extent, ground_of, rig_ground
from ..scene.isolation import isolated_scene, set_frame


class Reference(enum.Enum):
    """Pose of the source that corresponds to the target's rest pose."""

    REST = "REST"
    FRAME = "FRAME"


class RestIsNoPose(RigError):
    """The rest pose of a source is not usable as its reference; a frame may be.

    Attributes:
        source: name of the armature.
        foot: name of a foot that is above the hips at rest.
    """

    def __init__(self, source: str, foot: str) -> None:
        super().__init__(
            f"the rest pose of '{source}' is no pose of a body: '{foot}' is above the hips. Choose "
            "Reference: Frame, and a frame in which arms and legs are about straight"
        )
        self.source, self.foot = source, foot


STILL = 1e-5
"""Largest change of a constant matrix, relative to its size."""


@dataclass(frozen=True)
class SourceChoice:
    """Frames of a source armature to retarget, and its reference."""

    frames: Sequence[float]  # scene frames, may be fractional; one for each keyed frame
    seconds: float  # time between consecutive frames on the target
    reference: Reference = Reference.REST  # pose of the source that corresponds to the target's rest pose
    reference_frame: float = 1.0  # for `FRAME`
    stays: bool = False  # whether an armature object is refused that something else than its keys moves
    # Armature space to world, as if the object were so at the first frame; None: as it is.
    world: Matrix | None = None
    # First row and the one after the last of `frames` to read, a part of the motion; None for all.
    rows: tuple[int, int] | None = None


def source_motion(
    scene: bpy.types.Scene, source: bpy.types.Object, figure_map: FigureMap, choice: SourceChoice
) -> SourceMotion:
    """Read the motion of the mapped bones of an armature as it plays, without changing the scene.

    Points are relative to the armature object at the first frame, along the axes of the world.

    Raises:
        RestIsNoPose: its rest pose is no pose of a body.
        RigError: the armature is in rest position, mirrored or sheared; the matrix of a bone is not finite;
            something else than its keys moves the object and `stays` is set.
    """
    if source.data.pose_position == "REST":
        raise RigError(f"armature '{source.name}' is shown in Rest Position: switch it to Pose Position")
    names = tuple(dict.fromkeys(figure_map.sources.values()))
    rows = slice(*(choice.rows or (None, None)))
    part = choice.frames[rows]
    frames = (choice.frames[0], *part, choice.frames[-1])
    with _playing(scene, source, names) as read:
        played = read(frames)
        world, matrices = played[0, 0], played[:, 2:]
        require_even(Matrix(world), source.name)
        if choice.reference is Reference.FRAME:
            reference = read([choice.reference_frame])[0, 2:]
        else:
            reference = world @ batch.stacked(source.data.bones[name].matrix_local for name in names)
    if choice.stays and _is_carried(source, played[:, 0], played[:, 1]):
        raise RigError(
            f"armature '{source.name}' moves as an object from frame {choice.frames[0]:.7g} to "
            f"{choice.frames[-1]:.7g}, by its parent, a constraint or a driver: take that off, and let its "
            "hips move"
        )
    if choice.world is not None:
        carried = np.array(choice.world @ Matrix(world).inverted())
        world, matrices, reference = np.array(choice.world), carried @ matrices, carried @ reference
    # Parents first: a bone's fault is that of all that hang on it.
    order = sorted(range(len(names)), key=lambda k: source.data.bones.find(names[k]))
    parents_first = [names[k] for k in order]
    _require_finite(matrices[:, order], parents_first, frames)
    _require_finite(reference[None, order], parents_first, [choice.reference_frame])
    heads, rotations = split(np.concatenate((reference[None], matrices)))
    heads -= world[:3, 3]
    rest_heads = {ours: heads[0, names.index(theirs)] for ours, theirs in figure_map.sources.items()}
    feet, hips, top = figure_map.middles(rest_heads)
    up = upward(feet, hips, top)
    if choice.reference is Reference.REST and (foot := raised_foot(figure_map, rest_heads)):
        raise RestIsNoPose(source.name, figure_map.sources[foot])
    turn = np.array(up.rotation_difference(Vector((0.0, 0.0, 1.0)))[:])
    heads = batch.rotate(np.broadcast_to(turn, (*heads.shape[:-1], 4)), heads, -1)
    rotations = batch.multiply(np.broadcast_to(turn, rotations.shape), rotations, -1)
    times, velocity = np.arange(len(choice.frames)) * choice.seconds, None
    if len(part) < len(times):
        hips = heads[[1, -1], names.index(figure_map.sources[figure_map.hips])]
        velocity = (hips[1] - hips[0]) / times[-1] * (1.0, 1.0, 0.0)
    stands = choice.reference is Reference.REST
    return SourceMotion(
        names, times[rows], heads[2:-1], rotations[2:-1], heads[0], rotations[0], stands, velocity
    )


def raised_foot_of(target: bpy.types.Object, world: Matrix, figure_map: FigureMap) -> str:
    """Like `raised_foot`, of an armature at rest; `world`: armature space to world."""
    bones = target.data.bones
    return raised_foot(
        figure_map, {name: np.array(world @ bones[name].head_local) for name in figure_map.sources}
    )


def raised_foot(figure_map: FigureMap, heads: Mapping[str, Array]) -> str:
    """Return a foot at rest if legs do not lead down for any upright, as in many BVH files; else nothing.

    Args:
        heads: of the mapped joints at rest, (3,) each.
    """
    feet, hips, top = figure_map.middles(heads)
    lead_down = 0 < len(figure_map.legs) <= MOST_LEGS
    if lead_down and float((feet - hips) @ np.array(upward(feet, hips, top))) >= 0.0:
        return figure_map.legs[0].end
    return ""


def _is_carried(source: bpy.types.Object, worlds: Array, bases: Array) -> bool:
    """Whether something else than an object's keys moves it.

    Args:
        worlds, bases: (F, 4, 4) of the object at frames: its world matrix, and that of its own channels.
    """
    size = STILL * max(1.0, float(np.abs(worlds).max()))
    if np.abs(worlds - worlds[0]).max() <= size:
        return False
    is_driven = any(driver.data_path in channels.OBJECT_CHANNELS for driver in channels.drivers_of(source))
    carrier = worlds[0] @ np.linalg.inv(bases[0])
    return is_driven or bool(np.abs(worlds - carrier @ bases).max() > size)


class Place(NamedTuple):
    """Place of an armature object at a frame."""

    world: Matrix  # armature space to world
    # Values of those channels of the object that keys move, by data path: they hold it there.
    held: Mapping[str, tuple[float, ...]]


def place_at(scene: bpy.types.Scene, target: bpy.types.Object, frame: float) -> Place:
    """Return the place of an armature object as it plays at a frame, without changing the scene."""
    with isolated_scene(scene, target, (), ()) as isolated:
        evaluated = target.evaluated_get(set_frame(isolated, frame))
        held = {path: tuple(getattr(evaluated, path)) for path in channels.keyed_transform(target)}
        return Place(evaluated.matrix_world.copy(), held)


def target_figure(
    target: bpy.types.Object, world: Matrix, figure_map: FigureMap
) -> tuple[TargetFigure, RigReading]:
    """Return an armature at rest as the figure that gets a motion, and the reading to convert its poses.

    Raises:
        RigError: the armature is mirrored or unevenly scaled, or cannot be read as joints.
    """
    require_even(world, target.name)
    chains = [(name, 0) for name in figure_map.sources]
    bones = dict.fromkeys(bone.name for name in figure_map.sources for bone in chain(target, name))
    reading = armature.read(target, chains, joint_settings(target, list(bones)))
    figure = figure_at_rest(target, world, reading.skeleton)
    hanging = _hanging(target, figure_map.legs, reading.bones)
    return _upright(replace(figure, hanging=hanging), figure_map), reading


def _hanging(target: bpy.types.Object, legs: Iterable[Limb], joints: Collection[str]) -> dict[str, Array]:
    """Return what `TargetFigure.hanging` has of toes, by the joint on which it hangs."""
    points: dict[str, list[Array]] = {}
    for bone, point in armature.ends_of(target.data.bones[name] for leg in legs for name in leg.toes):
        line = [bone.name, *(each.name for each in bone.parent_recursive)]
        joint = next(name for name in line if name in joints)
        rest = target.data.bones[joint].matrix_local.inverted()
        points.setdefault(joint, []).append(np.array(rest @ point))
    return {name: np.array(each) for name, each in points.items()}


def figure_at_rest(target: bpy.types.Object, world: Matrix, skeleton: Skeleton) -> TargetFigure:
    """Return the figure of a skeleton of an armature's bones at rest; `world`: armature space to world."""
    place, turn, scale = world.decompose()
    count = len(skeleton)
    return TargetFigure(
        skeleton,
        np.tile((1.0, 0.0, 0.0, 0.0), (count, 1)),
        np.zeros((count, 3)),
        np.array(turn[:]),
        np.array(place[:]),
        float(np.mean(scale[:])),
        ground_of(target, world),
    )


def _upright(figure: TargetFigure, figure_map: FigureMap) -> TargetFigure:
    """Turn the reference pose of a figure upright if its rest pose lies, as in files with Y up."""
    heads, _ = figure.reference
    names = [joint.name for joint in figure.skeleton.joints]
    up = upward(*figure_map.middles({name: heads[names.index(name)] for name in figure_map.sources}))
    if up.z == 1.0:
        return figure
    turn = np.array(up.rotation_difference(Vector((0.0, 0.0, 1.0)))[:])
    rotations = figure.rotations.copy()
    for i, joint in enumerate(figure.skeleton.joints):
        if joint.parent < 0:
            base = product(figure.turn, figure.rests[i])
            rotations[i] = product(inverse(base), product(turn, base))
    turned = replace(figure, rotations=rotations)
    lowest = min(turned.reference[0][names.index(name), 2] for name in figure_map.sources)
    return replace(turned, ground=float(lowest))


def require_even(matrix: Matrix, name: str) -> None:
    """Raise RigError unless a matrix only moves, turns and scales uniformly."""
    axes = np.array(matrix.to_3x3())
    sizes = np.linalg.norm(axes, axis=0)
    if not np.isfinite(axes).all() or sizes.min() <= 0.0:
        raise RigError(f"armature '{name}' has no size or is nowhere: clear its transform")
    if np.linalg.det(axes) < 0.0:
        raise RigError(f"armature '{name}' is mirrored by its object: apply its scale (Ctrl A)")
    if uneven := uneven_scale(matrix, name):
        raise RigError(uneven)


@contextmanager
def _playing(scene: bpy.types.Scene, source: bpy.types.Object, names: Sequence[str]) -> Iterator[Any]:
    """Yield a function: F frames -> (F, 2 + J, 4, 4) of the object, of its own channels, and of bones.

    The second is in the space of its parent, all others are in the world.
    """
    slots = [source.pose.bones.find(name) for name in names]
    objects = [(source, name) for name in names]
    with clamps.suspended(), isolated_scene(scene, source, objects, ()) as isolated:

        def read(frames: Sequence[float]) -> Array:
            order = {frame: k for k, frame in enumerate(dict.fromkeys(frames))}  # each is evaluated once
            matrices = np.empty((len(order), len(source.pose.bones), 4, 4), np.float32)
            objects: list[Matrix] = []
            for frame, into in zip(order, matrices, strict=True):
                evaluated = source.evaluated_get(set_frame(isolated, frame))
                evaluated.pose.bones.foreach_get("matrix", into.ravel())
                objects += evaluated.matrix_world.copy(), evaluated.matrix_basis.copy()
            places = batch.stacked(objects).reshape(-1, 2, 4, 4)
            bones = places[:, :1] @ matrices.swapaxes(-1, -2)[:, slots].astype(np.float64)
            return np.concatenate((places, bones), axis=1)[[order[frame] for frame in frames]]

        yield read


def split(matrices: Array) -> tuple[Array, Array]:
    """Return the heads (F, J, 3) and nearest rotations (F, J, 4) of matrices (F, J, 4, 4)."""
    axes = np.ascontiguousarray(np.moveaxis(matrices[..., :3, :3], (-2, -1), (0, 1)))
    rotations = batch.quaternions(batch.nearest_rotations(axes))
    return matrices[..., :3, 3].copy(), np.moveaxis(rotations, 0, -1).copy()


def _require_finite(matrices: Array, names: Sequence[str], frames: Collection[float]) -> None:
    finite = np.isfinite(matrices).all(axis=(2, 3))
    if not finite.all():
        f, j = np.argwhere(~finite)[0].tolist()
        raise RigError(
            f"bone '{names[j]}' is nowhere at frame {list(frames)[f]:.7g}: a key of it is not a "
            f"number; delete it"
        )
    x, y, z = (matrices[..., :3, k] for k in range(3))
    mirrored = batch.dot(x, batch.cross(y, z, -1), -1) <= 0.0
    if mirrored.any():
        f, j = np.argwhere(mirrored)[0].tolist()
        raise RigError(
            f"bone '{names[j]}' is mirrored or has no size at frame {list(frames)[f]:.7g}: clear its scale"
        )


def upward(feet: Array, hips: Array, top: Array) -> Vector:
    """Return the world axis that is up for a figure: Z, unless both trunk and legs are along another axis.

    One of them may lie: the trunk of a bird, the legs of a sitting figure.
    """
    up = Vector((0.0, 0.0, 1.0))
    axes = [_axis_along(vector) for vector in (top - hips, hips - feet)]
    return up if up in axes else axes[0]


def _axis_along(vector: Array) -> Vector:
    """Return the world axis nearest to a vector (3,); Z is preferred, and taken for a zero vector."""
    k = int(np.argmax(np.abs(vector) + np.array((0.0, 0.0, 0.3)) * (float(np.linalg.norm(vector)) or 1.0)))
    axis = Vector((0.0, 0.0, 0.0))
    axis[k] = 1.0 if vector[k] >= 0.0 else -1.0
    return axis


def chosen_ground(
    scene: bpy.types.Scene, target: bpy.types.Object, world: Matrix, frame: float
) -> float | None:
    """World height of an armature's Ground below its origin at a frame; None at rest.

    Raises:
        RigError: none is chosen or there, or it has no faces.
    """
    low, high = extent(target, world)
    origin = np.array([[world.translation[:]]])
    ground = rig_ground(scene, target, [frame], origin[0], max(high - low, 1e-3))
    if ground is None and target.ccd_rig.ground.kind == "REST":
        return None
    height = np.nan if ground is None else seen_below(ground, origin, np.array([high])).item()
    if np.isnan(height):
        raise RigError(
            f"'{target.name}': no ground is below its origin: move one of them, or choose another Ground"
        )
    return height


def terrain(
    scene: bpy.types.Scene,
    target: bpy.types.Object,
    world: Matrix,
    frames: Array,
    places: Array,
    level: float | None,
) -> Terrain | None:
    """The faces of an armature's Ground near places (F, legs, 3) of its feet at frames (F,); None if level.

    Args:
        level: height of the ground as `chosen_ground` has it.

    Raises:
        RigError: as `chosen_ground`; nothing of it is near.
    """
    if level is None or target.ccd_rig.ground.kind in ("REST", "HEIGHT"):
        return None
    low, high = extent(target, world)
    ground = rig_ground(scene, target, frames.tolist(), places.reshape(-1, 3), max(high - low, 1e-3))
    if ground is None:
        raise RigError(
            f"'{target.name}': its Ground is nowhere near where it goes: move one of them, or choose another "
            "Ground"
        )
    return Terrain(ground, level, target.ccd_rig.walk.steepest)


HARMLESS = {"COPY_SCALE", "LIMIT_SCALE"}
"""Constraints that neither turn nor move a bone without scale."""

Channels = Mapping[str, tuple[Array, Array | None]]
"""By bone: (F, 4) rotations relative to rest, and (F, 3) locations, or None; one row if it stands still."""

AT_REST = np.array([[1.0, 0.0, 0.0, 0.0]]), None
"""Channels of a bone that stands still at rest."""


def is_controlled(target: bpy.types.Object, figure_map: FigureMap) -> bool:
    """Whether constraints or drivers move a mapped bone or one of its parents."""
    bones = {bone.name for name in figure_map.sources for bone in chain(target, name)}
    return not bones.isdisjoint(moved_bones(target))


def moved_bones(target: bpy.types.Object) -> set[str]:
    """Return the names of bones that constraints or drivers move."""
    driven = _driven(target)
    return {bone.name for bone in target.pose.bones if _is_moved(bone, driven)}


def without_carriers(target: bpy.types.Object, figure_map: FigureMap) -> FigureMap:
    """Return the map without bones of the spine that carry legs, as in rigs with a pivot above the hips.

    Turning them would move the hips.
    """
    carriers = {
        bone.name
        for leg in figure_map.hind_legs
        for bone in chain(target, leg.upper)
        if bone.name in figure_map.trunk and bone.name != figure_map.hips
    }
    if not carriers:
        return figure_map
    sources = {ours: theirs for ours, theirs in figure_map.sources.items() if ours not in carriers}
    trunk = tuple(name for name in figure_map.trunk if name not in carriers)
    return replace(figure_map, sources=sources, trunk=trunk)


def figure_of_controls(target: bpy.types.Object, world: Matrix, figure_map: FigureMap) -> TargetFigure:
    """Return the figure of the mapped bones alone, at rest, with parents as in the body.

    Raises:
        RigError: the armature is mirrored or unevenly scaled, or settings of joints are contradictory.
    """
    require_even(world, target.name)
    names = sorted(figure_map.sources, key=lambda name: len(chain(target, name)))
    parents = {name: _body_parent(target, figure_map, name) for name in names}
    ordered: list[str] = []
    while len(ordered) < len(names):
        ordered += [name for name in names if name not in ordered and parents[name] in ("", *ordered)]
    settings = joint_settings(target, ordered)
    joints = []
    for name in ordered:
        rest, above = target.data.bones[name].matrix_local, Matrix.Identity(4)
        if parents[name]:
            above = target.data.bones[parents[name]].matrix_local
        local = above.inverted() @ rest
        keep = {key: settings[name][key] for key in ("limit", "stiffness")}
        joints.append(
            Joint(
                name,
                ordered.index(parents[name]) if parents[name] else -1,
                local.to_translation(),
                local.to_quaternion().normalized(),
                target.data.bones[name].length,
                **keep,
            )
        )
    return figure_at_rest(target, world, Skeleton(joints))


def channels_of(
    scene: bpy.types.Scene,
    target: bpy.types.Object,
    moved: tuple[FigureMap, str],
    figure: TargetFigure,
    pose: tuple[Array, Array],
    frames: Array,
    playing: Callable[[Channels], AbstractContextManager[Any]],
) -> Channels:
    """Compute the channels for which the bones of a rig of controls have the figure's motion.

    Args:
        moved: the map, and the bone that gets the locations: the hips, or one above to which they are
            connected, which is moved as they are to move and not turned.
        figure: of `figure_of_controls`.
        pose: (F, n, 4) and (F, n, 3) of the figure.
        frames: (F,) scene frames.
        playing: makes the target play channels for a block.
    """
    heads, world = figure.world(*pose)
    heads, turns = figure.points_to_model(heads), figure.rotations_to_model(world)
    driven = _driven(target)
    done: dict[str, tuple[Array, Array | None]] = {}
    waiting = [joint.name for joint in figure.skeleton.joints]
    figure_map, carrier = moved
    if carrier != figure_map.hips:
        with playing({**dict.fromkeys((carrier, *waiting), AT_REST)}):
            bases = _bases(scene, target, (carrier, figure_map.hips), frames)
        way = heads[:, figure.index(figure_map.hips)] - bases[figure_map.hips][:, :3, 3]
        moves = np.linalg.solve(bases[carrier][:, :3, :3], way[..., None])[..., 0]
        done[carrier] = AT_REST[0], np.asarray(moves, np.float64)
    while waiting:
        free = [name for name in waiting if not any(bone.name in waiting for bone in chain(target, name)[1:])]
        evaluated = [name for name in free if not _is_rigid(target, figure, name, driven)]
        for name in free:
            if name not in evaluated:
                done[name] = pose[0][:, figure.index(name)], None
        if evaluated:
            still = {name: AT_REST for name in waiting if name not in done}
            with playing({**done, **still}):
                bases = _bases(scene, target, evaluated, frames)
            for name, base in bases.items():
                j = figure.index(name)
                _, turned = split(base[:, None])
                rotations = product(inverse(turned[:, 0]), turns[:, j])
                location: Array | None = None
                if name == carrier:
                    ends = np.concatenate((heads[:, j], np.ones((len(frames), 1))), axis=1)
                    location = np.asarray(np.linalg.solve(base, ends[..., None])[:, :3, 0], np.float64)
                done[name] = batch.unit(rotations, -1), location
        waiting = [name for name in waiting if name not in free]
    return done


def played_pose(
    scene: bpy.types.Scene, target: bpy.types.Object, figure: TargetFigure, frames: Array
) -> tuple[Array, Array]:
    """Return (F, n, 3) heads and (F, n, 4) rotations of a figure's joints as Blender plays them.

    They are in the world as the armature object is placed in it for `figure`.
    """
    names = [joint.name for joint in figure.skeleton.joints]
    with _playing(scene, target, names) as read:
        played = read(frames.tolist())
    heads, rotations = split(np.linalg.inv(played[:, :1]) @ played[:, 2:])
    return figure.points_to_world(heads), product(figure.turn, rotations)


def _bases(
    scene: bpy.types.Scene, target: bpy.types.Object, names: Sequence[str], frames: Array
) -> dict[str, Array]:
    """Return the matrices (F, 4, 4) of bones with empty channels, armature space."""
    bases: dict[str, Array] = {name: np.empty((len(frames), 4, 4)) for name in names}
    objects = [(target, name) for name in names]
    with clamps.suspended(), isolated_scene(scene, target, objects, ()) as isolated:
        for f, frame in enumerate(frames):
            bones: Any = target.evaluated_get(set_frame(isolated, float(frame))).pose.bones
            for name in names:
                basis = bones[name].matrix_basis.inverted_safe()
                bases[name][f] = [row[:] for row in bones[name].matrix @ basis]
    return bases


def _driven(target: bpy.types.Object) -> set[str]:
    """Return the names of bones with drivers on their transforms."""
    paths = {curve.data_path for curve in channels.drivers_of(target)}
    return {
        bone.name
        for bone in target.pose.bones
        if paths and not paths.isdisjoint(map(bone.path_from_id, WIDTHS))
    }


def _is_moved(bone: Any, driven: set[str]) -> bool:
    constraints = clamps.user_constraints(bone)
    return bone.name in driven or any(not c.mute and c.type not in HARMLESS for c in constraints)


def _is_rigid(target: bpy.types.Object, figure: TargetFigure, name: str, driven: set[str]) -> bool:
    """Whether a bone is rigidly connected to the bone of its parent joint: no bone in between is moved."""
    joint = figure.skeleton.joints[figure.index(name)]
    if joint.parent < 0 or _is_moved(target.pose.bones[name], driven):
        return False
    above = figure.skeleton.joints[joint.parent].name
    for bone in chain(target, name)[1:]:
        if bone.name == above:
            return True
        if _is_moved(bone, driven) or bone.matrix_basis != Matrix.Identity(4):
            return False
    return False


def _body_parent(target: bpy.types.Object, figure_map: FigureMap, name: str) -> str:
    """Return the mapped bone that is the parent of a bone in the body; empty for the hips."""
    if name == figure_map.hips:
        return ""
    trunk = (figure_map.hips, *(member for member in figure_map.trunk if member != figure_map.hips))
    if name in trunk:
        return trunk[trunk.index(name) - 1]
    if name in {leg.upper for leg in figure_map.hind_legs}:
        return figure_map.pelvis or figure_map.hips
    mapped = [bone.name for bone in chain(target, name)[1:] if bone.name in figure_map.sources]
    for limb in figure_map.limbs:
        if name in limb.joints[1:]:
            above = limb.joints[limb.joints.index(name) - 1]
            return mapped[0] if above in mapped else above
    return mapped[0] if mapped else figure_map.hips
