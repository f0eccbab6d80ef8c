"""A human figure as a skeleton, as a source, and the map between two. Metres, Z up, facing -Y."""

from __future__ import annotations

import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ccd_rig.motion.retargeting.figures import FigureMap, Limb, SourceMotion, TargetFigure
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.solvers.retarget import RetargetResult

HEADS = {
    "hips": ((0.0, 0.0, 0.95), "", (0.0, 0.0, 1.05)),
    "spine": ((0.0, 0.0, 1.05), "hips", (0.0, 0.0, 1.25)),
    "chest": ((0.0, 0.0, 1.25), "spine", (0.0, 0.0, 1.45)),
    "head": ((0.0, 0.0, 1.5), "chest", (0.0, 0.0, 1.7)),
}
SIDES = {
    "shoulder": ((0.03, 0.0, 1.42), "chest", (0.15, 0.0, 1.42)),
    "upper_arm": ((0.17, 0.0, 1.42), "shoulder", (0.45, 0.01, 1.42)),
    "forearm": ((0.45, 0.01, 1.42), "upper_arm", (0.7, 0.0, 1.42)),
    "hand": ((0.7, 0.0, 1.42), "forearm", (0.8, 0.0, 1.42)),
    "thigh": ((0.1, 0.0, 0.92), "hips", (0.1, -0.02, 0.5)),
    "shin": ((0.1, -0.02, 0.5), "thigh", (0.1, 0.0, 0.09)),
    "foot": ((0.1, 0.0, 0.09), "shin", (0.1, -0.14, 0.02)),
    "toe": ((0.1, -0.14, 0.02), "foot", (0.1, -0.22, 0.02)),
}


def places() -> dict[str, tuple[Vector, str, Vector]]:
    """Head, parent and tail of each joint, parents first."""
    found = {name: (Vector(head), parent, Vector(tail)) for name, (head, parent, tail) in HEADS.items()}
    for name, (head, parent, tail) in SIDES.items():
        for side, sign in (("L", 1.0), ("R", -1.0)):
            mirror = Matrix.Diagonal((sign, 1.0, 1.0))
            above = parent if parent in HEADS else f"{parent}.{side}"
            found[f"{name}.{side}"] = (mirror @ Vector(head), above, mirror @ Vector(tail))
    return found


def skeleton(given=None, twists=None, **fields) -> Skeleton:
    """The figure; `twists` turn each joint's own axes, `fields` are keywords of joints by name."""
    given = given or places()
    names = list(given)
    axes = {}
    for name, (head, _, tail) in given.items():
        axes[name] = Vector((0.0, 1.0, 0.0)).rotation_difference(tail - head)
        if twists is not None:
            axes[name] = axes[name] @ twists[name]
    joints = []
    for name, (head, parent, tail) in given.items():
        above = axes[parent] if parent else Quaternion()
        start = given[parent][0] if parent else Vector()
        joints.append(
            Joint(
                name,
                names.index(parent) if parent else -1,
                above.conjugated() @ (head - start),
                (above.conjugated() @ axes[name]).normalized(),
                length=(tail - head).length,
                **fields.get(name.replace(".", "_"), {}),
            )
        )
    return Skeleton(joints)


def figure_map() -> FigureMap:
    """Each joint follows its namesake."""
    legs = tuple(
        Limb(f"{word} leg", f"thigh.{s}", f"shin.{s}", f"foot.{s}", f"toe.{s}", is_right=s == "R")
        for s, word in (("L", "left"), ("R", "right"))
    )
    arms = tuple(
        Limb(f"{word} arm", f"upper_arm.{s}", f"forearm.{s}", f"hand.{s}", is_right=s == "R")
        for s, word in (("L", "left"), ("R", "right"))
    )
    return FigureMap({name: name for name in places()}, "hips", legs, arms, ("spine", "chest"), "head")


def turns(figure: Skeleton, frames: int, seed: int = 1, size: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Smooth rotations (F, n, 4) and translations (F, n, 3) whose knees and elbows bend."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 2.0 * np.pi, frames)[:, None, None]
    waves = rng.normal(size=(len(figure), 3)) * np.sin(t + rng.uniform(0.0, 6.0, (len(figure), 3)))
    vectors = size * 0.4 * waves
    angles = np.linalg.norm(vectors, axis=2, keepdims=True)
    rotations = np.concatenate((np.cos(angles / 2), 0.5 * np.sinc(angles / 2 / np.pi) * vectors), axis=2)
    translations = np.zeros((frames, len(figure), 3))
    translations[:, 0] = np.stack((0.1 * t[:, 0, 0], 0.3 * t[:, 0, 0], 0.02 * np.sin(t[:, 0, 0])), axis=1)
    return rotations, translations


def source_of(figure: Skeleton, rotations, translations, fps: float = 30.0, **fields) -> SourceMotion:
    """The motion of a figure in the world, its rest as the reference."""
    there = TargetFigure.at_rest(figure)
    heads, world = there.world(rotations, translations)
    rest_heads, rest = there.reference
    names = tuple(joint.name for joint in figure.joints)
    return SourceMotion(names, np.arange(len(heads)) / fps, heads, world, rest_heads, rest, **fields)


def heads_of(target: TargetFigure, result: RetargetResult) -> np.ndarray:
    """(F, n, 3) where joints are, world."""
    return target.world(result.rotations, result.translations)[0]
