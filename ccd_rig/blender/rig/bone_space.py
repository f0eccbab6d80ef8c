"""One bone as a rigid joint: where Blender puts it, and whether any rigid joint moves like that.

Blender places a bone by the pose matrix of its parent, the rest matrices and a handful of flags (Inherit
Rotation, Inherit Scale, Local Location, Connected); `Bone.convert_local_to_pose` is Blender's own word on the
result. The core knows rigid joints only: R_i = R_p rest_i rotation_i. So a bone's constants are read off
Blender's answer in the parent's frame without the parent's turn, and then the joint is held against Blender's
answer for other turns of the parent and of the bone. A bone for which they differ, because scale would shear
it, is refused.

A bone's pose matrix is R diag(stretch): R is the joint's rotation in armature space, `stretch` its signed
scale along its own axes. Lengths are in the armature's units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...skeleton.joints import Joint

EXACT = 1e-5
"""How far a joint's head may be from the bone's, relative to its size and distance; further off is
refused."""

RIGID = 2e-4
"""How far an axis of a joint may be from the bone's, relative to its scale; further off is refused as
sheared.

Not less, because Blender's own rest matrices are no better: of bones that point 1 to 20 degrees off -Y they
are up to 8e-5 away from a rotation (M M^T against identity; 6,000 directions on 4.2 and 5.2, and Rigify's
horse).
"""

STEADY = 5e-6
"""How far the entries of a motion may be from a rotation's; further off it is not rigid."""

NOISE = 1e-6
"""Relative noise of a scale in float32: a smaller difference is not a change."""

ZERO = 1e-6
"""Scales and lengths below this cannot be divided by."""

# Arbitrary turns (of the parent, of the bone), far from every axis.
_PROBES = (
    (Quaternion(), Quaternion((0.6, -0.48, 0.48, -0.42)).normalized()),
    (Quaternion((0.3, 0.7, -0.5, 0.4)).normalized(), Quaternion((-0.2, 0.5, 0.3, 0.8)).normalized()),
)
_PROBE_LOCATION = Vector((0.31, -0.47, 0.23)).freeze()  # in lengths of the bone

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class BoneRest:
    """What of a bone stays while its armature is animated.

    Attributes:
        name: of the bone.
        slot: its index in pose.bones.
        parent: index of its parent among the joints; -1 for a chain's first bone, also where Blender has a
            parent.
        parent_name: of Blender's parent, or "".
        parent_slot: index of Blender's parent in pose.bones, or -1.
        length: at rest.
        rest, parent_rest: rest matrices in armature space (`matrix_local`); identity for no parent.
        connected: Blender ignores the bone's location.
        local_location: the location is along the bone's rest axes, not its parent's.
        inherit_rotation: of the joint.
        follows_parent: in Blender it inherits its parent's rotation.
        keywords: of the joint: limit, stiffness and so on.
    """

    name: str
    slot: int
    parent: int
    parent_name: str
    parent_slot: int
    length: float
    rest: Matrix
    parent_rest: Matrix
    connected: bool
    local_location: bool
    inherit_rotation: bool
    follows_parent: bool
    keywords: Mapping[str, Any]


class PlacedBone(NamedTuple):
    """A bone under given scales.

    Attributes:
        joint: the bone as the core takes it.
        stretch: signed scale along the joint's own axes.
        shift: (3, 3), turns what the location channel holds into a shift of the head along the rest axes.
    """

    joint: Joint
    stretch: Triple
    shift: NDArray[np.float64]


def place(bone: BoneRest, blender_bone: Any, scale: Sequence[float], parent: Any) -> PlacedBone:
    """The joint of a bone.

    Args:
        bone: what is fixed.
        blender_bone: the bpy.types.Bone of it.
        scale: what its scale channel holds.
        parent: pose matrix of Blender's parent, or None: as evaluated for a chain's first bone, otherwise
            diag(stretch) of the parent joint.

    Raises:
        RigError: zero scale, or the bone is sheared or mirrored by scale; names the bone.
    """
    name = bone.name
    unposed, columns = _unposed(bone, blender_bone, scale, parent)
    sizes = [column.length for column in columns]
    # A mirrored frame is -1 times a rotation: of all ways to split it, this alone commutes with the bone's
    # turns.
    sign = -1.0 if unposed.to_3x3().determinant() < 0.0 else 1.0
    frame: Any = Matrix([sign / size * column for size, column in zip(sizes, columns, strict=True)])
    rest = nearest_rotation(frame.transposed())
    if bone.parent >= 0:  # rest matrices that are a little off must not grow along a chain
        sizes = [
            _snapped(_snapped(a, b, RIGID), 1.0, RIGID) for a, b in zip(sizes, parent.to_scale(), strict=True)
        ]
    x, y, z = (_snapped(sign * size * factor, 1.0, NOISE) for size, factor in zip(sizes, scale, strict=True))
    offset: Any = unposed.to_translation()
    shift = rest.to_matrix().transposed() @ _location_axes(bone, parent)
    constants = (offset, rest, (x, y, z), shift)
    if not all(_is_rigid(bone, (blender_bone, scale, parent), constants, probe) for probe in _PROBES):
        seen = ", ".join(f"{value:.4g}" for value in parent.to_scale())
        raise RigError(
            f"bone '{name}' inherits non-uniform scale ({seen}) from '{bone.parent_name}', which would shear "
            f"it when it turns: make that scale uniform, or set Inherit Scale of '{name}' to Average or None"
        )
    if y < 0.0:
        raise RigError(
            f"bone '{name}' is mirrored, so that its tail lies behind its head: give it and its parents "
            "positive scale"
        )
    joint = Joint(
        name,
        bone.parent,
        offset,
        rest,
        bone.length * y,
        inherit_rotation=bone.inherit_rotation,
        **bone.keywords,
    )
    # Row by row: NumPy takes an age over a matrix of mathutils.
    return PlacedBone(joint, (x, y, z), np.array([row[:] for row in shift]))


def _unposed(bone: BoneRest, blender_bone: Any, scale: Sequence[float], parent: Any) -> tuple[Any, list[Any]]:
    """The pose matrix of a bone with empty channels, and its axes with their lengths; see `place`."""
    name = bone.name
    if min(map(abs, scale)) < ZERO:
        raise RigError(f"bone '{name}' has zero scale: give it a scale other than 0")
    if not math.isfinite(sum(map(sum, bone.rest)) + bone.length):  # one that is not makes the sum so
        raise RigError(
            f"bone '{name}' has a rest pose that is not a number: give it a head and a tail in Edit Mode"
        )
    unposed: Any = _pose_matrix(bone, blender_bone, Matrix.Identity(4), parent)
    columns = [unposed.col[axis].to_3d() for axis in range(3)]
    sizes = [column.length for column in columns]
    if not all(map(math.isfinite, (*sizes, *unposed.translation))):
        raise RigError(
            f"bone '{name}' has a parent '{bone.parent_name}' that is nowhere: clear its transform"
        )
    if min(sizes) < ZERO:
        raise RigError(
            f"bone '{name}' inherits zero scale from '{bone.parent_name}': give that another scale"
        )
    return unposed, columns


def nearest_rotation(matrix: Any) -> Any:
    """The rotation nearest to an almost orthogonal 3x3 matrix.

    Polar decomposition by Newton's iteration (Higham 1986, "Computing the polar decomposition").

    Of two rest matrices that are a little off, the parent's and the bone's own, it finds the turn between the
    rotations nearest to each, so these errors do not add up along a chain.
    """
    for _ in range(3):  # squares the error each time; it starts below 1e-3, or the bone is refused anyway
        opposite = matrix.inverted(None)
        if opposite is None:
            break
        matrix = (matrix + opposite.transposed()) * 0.5
    return matrix.to_quaternion().normalized()


def _snapped(value: float, exact: float, tolerance: float) -> float:
    """`value`, or a number of its sign and the size of `wanted` if it is that but for `tolerance`."""
    return math.copysign(exact, value) if abs(abs(value) - abs(exact)) <= tolerance * abs(exact) else value


def _location_axes(bone: BoneRest, parent: Any) -> Any:
    """3x3: along which vectors, in the parent's frame, the location channel moves the head."""
    if parent is None:
        return bone.rest.to_3x3() if bone.local_location else Matrix.Identity(3)
    if not bone.local_location:
        return parent.to_3x3()
    return parent.to_3x3() @ (bone.parent_rest.inverted() @ bone.rest).to_3x3()


def _pose_matrix(bone: BoneRest, blender_bone: Any, basis: Matrix, parent: Any) -> Any:
    """Blender's own pose matrix of a bone with the channels `basis` under a parent's pose matrix."""
    if parent is None:
        return blender_bone.convert_local_to_pose(basis, bone.rest)
    return blender_bone.convert_local_to_pose(
        basis, bone.rest, parent_matrix=parent, parent_matrix_local=bone.parent_rest
    )


def _is_rigid(
    bone: BoneRest,
    blender: tuple[Any, Sequence[float], Any],
    constants: tuple[Any, Any, Triple, Any],
    probe: tuple[Any, Any],
) -> bool:
    """Whether the joint is where Blender puts the bone once the parent and the bone are turned.

    Args:
        bone: what is fixed.
        blender: the bone, what its scale channel holds, and its parent; see `place`.
        constants: offset, rest rotation, stretch and shift of the joint.
        probe: rotations of the parent and of the bone.
    """
    (blender_bone, scale, parent), (parent_turn, turn) = blender, probe
    offset, rest, stretch, shift = constants
    location: Any = Vector() if bone.connected else _PROBE_LOCATION * bone.length
    head = offset + rest @ (shift @ location)
    rotation = rest @ turn
    if bone.parent >= 0:  # the parent of a chain's first bone is part of its constants and is not turned
        parent = parent_turn.to_matrix().to_4x4() @ parent
        head = parent_turn @ head
        rotation = parent_turn @ rotation if bone.inherit_rotation else rotation
    seen = _pose_matrix(bone, blender_bone, Matrix.LocRotScale(location, turn, Vector(scale)), parent)
    size = max(bone.length * abs(stretch[1]), offset.length, head.length)
    if not (seen.to_translation() - head).length <= EXACT * size:
        return False
    axes = rotation.to_matrix()
    for axis, factor in enumerate(stretch):
        if not (seen.col[axis].to_3d() - axes.col[axis] * factor).length <= RIGID * abs(factor):
            return False
    return True
