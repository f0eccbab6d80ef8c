# SPDX-License-Identifier: GPL-3.0-or-later
"""Planted bones: where in the world they are held, and what the other constraints become meanwhile.

The bones between planted ones and the bone at the other end of their chains are the legs; that bone, the
root bone, takes the whole armature along: it alone gets a location. While something is planted
the skeleton hangs on the first planted bone (`rerooting`), and whatever a chain goes up to is that bone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...maths.batch import inverse
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import Transform
from ...skeleton.pose import Pose
from ..properties.constraint_values import Constraint, Holds, Kind
from ..scene.targets import TargetSample, orthonormal

Array = NDArray[np.float64]


# Who carries whom -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SupportChains:
    """What planted bones make of a skeleton.

    Attributes:
        constraints: indices of the constraints of kind PLANT.
        root_bone: the joint that carries all the others.
        joints: between the root bone and the planted bones, these included.
        keeps_body: whether the root bone keeps its animation; else it follows planted bones.
    """

    constraints: tuple[int, ...]
    root_bone: int
    joints: tuple[int, ...]
    keeps_body: bool = False


def support_chains(skeleton: Skeleton, constraints: Sequence[Constraint]) -> SupportChains | None:
    """The legs of a set-up; None if nothing is ever planted.

    Raises:
        RigError: the planted bones have no root bone in common, or something else carries it.
    """
    planted = [c for c, constraint in enumerate(constraints) if constraint.kind is Kind.PLANT]
    if not planted:
        return None
    chains = [skeleton.chain(constraints[c].tip, constraints[c].chain_length) for c in planted]
    root_bone = chains[0][0]
    for c, chain in zip(planted, chains, strict=True):
        if chain[0] != root_bone:
            names = constraints[planted[0]].name, constraints[c].name
            ends = skeleton.joints[root_bone].name, skeleton.joints[chain[0]].name
            raise RigError(different_ends(names, ends))
    parent = skeleton.joints[root_bone].parent
    if parent != -1:
        name, above = skeleton.joints[root_bone].name, skeleton.joints[parent].name
        above_it = next((r for r in constraints if parent in skeleton.chain(r.tip, r.chain_length)), None)
        because = "" if above_it is None else f", which constraint '{above_it.name}' goes up to"
        first = constraints[planted[0]]
        does = "keeps the animation of" if first.keeps_body else "moves the figure by"
        raise RigError(
            f"Constraint '{first.name}' {does} bone '{name}', but that hangs "
            f"on bone '{above}'{because}: let all chains end at '{name}' (Chain Length), "
            f"or plant up to '{above}'"
        )
    joints = sorted({j for chain in chains for j in chain[1:]})
    keeps_body = any(constraints[c].keeps_body for c in planted)
    return SupportChains(tuple(planted), root_bone, tuple(joints), keeps_body)


def different_ends(names: tuple[str, str], bones: tuple[str, str]) -> str:
    """What is wrong with two constraints whose chains end at these two bones, in words."""
    (one, other), (its, others) = names, bones
    return (
        f"Constraints '{one}' and '{other}' plant bones whose chains end at different bones, '{its}' and "
        f"'{others}': set Chain Length so that both end at the bone that carries the whole figure"
    )


# Where a bone is held ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlantAnchor:
    """Where a planted bone stays, in the world, in double precision.

    Attributes:
        head: (3,).
        axes: (3, 3), the bone's axes as columns, as the armature object's matrix has them.
    """

    head: Array
    axes: Array

    @classmethod
    def of(cls, transform: Transform, world: Array) -> PlantAnchor:
        """Where a bone is now.

        Args:
            transform: of the bone, armature space.
            world: (4, 4) from armature space to the world.
        """
        head = world[:3, :3] @ np.array(transform.translation[:]) + world[:3, 3]
        return cls(head, world[:3, :3] @ _axes(transform))

    def equals(self, other: PlantAnchor) -> bool:
        """Whether both are the same to the bit."""
        return np.array_equal(self.head, other.head) and np.array_equal(self.axes, other.axes)

    def held(self, animated: PlantAnchor, holds: Holds) -> PlantAnchor:
        """This anchor, but for the parts that are not held: those are as the bone is animated."""
        keeps = np.array((holds.ground, holds.ground, holds.height))
        head = np.where(keeps, self.head, animated.head)
        return PlantAnchor(head, self.axes if holds.rotation else animated.axes)

    def seen(self, world: Array) -> TargetSample:
        """The same in armature space, wherever the armature object is by now."""
        back = inverse(world)
        head = back[:3, :3] @ self.head + back[:3, 3]
        return TargetSample(Vector(head.tolist()), upright(back[:3, :3] @ self.axes))


@dataclass(frozen=True)
class ContactState:
    """How the figure stands in a solved frame, and what the next one goes on from.

    What a bake keeps of frames that are solved at once leaves out the last four.

    Attributes:
        support_chains: what is planted at some time.
        base: index of the row on whose bone the figure hangs, or -1.
        anchors: of each planted row, where its bone is held.
        pose: what is keyed of the legs and the root bone, influence below 1 blended.
        animated: the pose without constraints.
        world: (4, 4) from armature space to the world.
        moved: joints of the legs, and the root bone, that something moves.
        turns: of a leg that was let go, what it is turned by beside its animation.
        drift: (4, 4) in the world, what the root bone is moved by beside its animation.
        frame: of the scene.
        released: where the body keeps its animation, of a joint that was let go: the frame in which it was
            moved last, and what it was turned by then beside its animation.
    """

    support_chains: SupportChains
    base: int
    anchors: Mapping[int, PlantAnchor]
    pose: Pose
    animated: Pose
    world: Array
    moved: frozenset[int]
    turns: Mapping[int, Quaternion] = field(default_factory=dict)
    drift: Array = field(default_factory=lambda: np.eye(4))
    frame: float = 0.0
    released: Mapping[int, tuple[float, Quaternion]] = field(default_factory=dict)


def upright(axes: Array) -> Quaternion:
    """The rotation of axes that stay unsheared, as near as there is one; see `targets.orthonormal`."""
    rotation = orthonormal(Matrix(axes.tolist()))
    if rotation is None:
        raise RigError("the armature object has a scale of 0: give it another scale")
    return rotation


def homogeneous(transform: Transform) -> Array:
    """(4, 4) of a rigid transform."""
    transformation = np.eye(4)
    transformation[:3, :3] = _axes(transform)
    transformation[:3, 3] = transform.translation[:]
    return transformation


def _axes(transform: Transform) -> Array:
    """(3, 3) of a rigid transform's rotation, in double precision; one at a time plain numbers are faster."""
    rotation = transform.rotation
    w, x, y, z = rotation.w, rotation.x, rotation.y, rotation.z
    double = 2.0 / (w * w + x * x + y * y + z * z)
    return np.array(
        (
            (1.0 - double * (y * y + z * z), double * (x * y - w * z), double * (x * z + w * y)),
            (double * (x * y + w * z), 1.0 - double * (x * x + z * z), double * (y * z - w * x)),
            (double * (x * z - w * y), double * (y * z + w * x), 1.0 - double * (x * x + y * y)),
        )
    )
