# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion of the root bone of a figure with planted bones: it keeps its animation, or follows the feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import bpy

from ...errors import InvalidInput
from . import constraint_list
from .constraint_values import PLANT, Constraint

AUTO, KEEP_ANIMATION, FOLLOW_FEET, WALK_ON = "AUTO", "KEEP_ANIMATION", "FOLLOW_FEET", "WALK_ON"

# Files store the numbers: an item keeps its number for good.
BODIES = (
    (
        AUTO,
        "Automatic",
        "The bone that carries the figure keeps its animation where it has one, unless a constraint moves "
        "it; else it follows planted bones",
        0,
    ),
    (
        KEEP_ANIMATION,
        "Keep Animation",
        "The bone that carries the figure stays as it is animated, and legs make up for it; only where a leg "
        "is too short it is moved, by as little as possible",
        1,
    ),
    (
        FOLLOW_FEET,
        "Follow Feet",
        "Planted bones take the bone that carries the figure along; its own keys are replaced",
        2,
    ),
    (
        WALK_ON,
        "Walk On",
        "The bone that carries the figure keeps its height and rotation, and is carried along the ground as "
        "planted bones push back: a walk in place goes through the world",
        3,
    ),
)


class Body(NamedTuple):
    """Motion of the root bone that carries a figure."""

    bone: str  # name of the root bone
    keeps: bool  # whether it keeps its animation; else it follows planted bones
    is_keyed: bool  # whether it has keys that no bake has made from planted bones
    because: str  # reason for the choice, in words; empty if the user chose
    # Whether it keeps its animation except its travel along the ground, which planted bones give.
    walks_on: bool = False

    def words(self) -> str:
        """Return a sentence such as "'hips' keeps its animation: it has keys"."""
        does = "keeps its animation" if self.keeps else "follows planted bones"
        if self.walks_on:
            does = "keeps its animation and walks on over planted bones"
        because = f": {self.because}" if self.because else ""
        return f"'{self.bone}' {does}{because}"


def body_of(
    armature_object: bpy.types.Object, rows: Sequence[Any] | None = None, choice: str = ""
) -> Body | None:
    """Decide how the root bone moves; None if no bone is planted, or the planted bone is missing.

    Args:
        rows: constraints to solve, stored or as values; None: all that are enabled.
        choice: one of `BODIES`; empty: the setting of the armature.
    """
    if rows is None:
        rows = [row for row in armature_object.ccd_rig.constraints if row.enabled]
    chains = (constraint_list.chain_of(armature_object, row) for row in rows if row.kind == PLANT)
    root_bone = next((chain[-1] for chain in chains if chain), None)
    if root_bone is None:
        return None
    choice = choice or armature_object.ccd_rig.body
    keyed = _is_keyed(armature_object, root_bone)
    if choice != AUTO:
        return Body(root_bone.name, choice != FOLLOW_FEET, keyed, "", choice == WALK_ON)
    mover = next((row for row in rows if row.tip == root_bone.name), None)
    if mover is not None:
        does = "plants" if mover.kind == PLANT else "moves"
        return Body(root_bone.name, False, keyed, f"'{mover.name}' {does} it")
    because = _animation(armature_object, root_bone, keyed)
    return Body(root_bone.name, bool(because), keyed, because or "it has no animation")


def with_body_mode(constraints: Sequence[Constraint], keeps: bool) -> tuple[Constraint, ...]:
    """Return the constraints with `keeps_body` set in the ones that plant bones."""
    return tuple(replace(row, keeps_body=keeps) if row.kind.plants else row for row in constraints)


def require_known(choice: str) -> None:
    """Raise InvalidInput unless `choice` is one of `BODIES`, or empty."""
    known = [name for name, *_ in BODIES]
    if choice and choice not in known:
        raise InvalidInput(f"body must be {', '.join(known)} or empty, not '{choice}'")


# Animation of the root bone ---------------------------------------------------------------------------------


def _animation(armature_object: bpy.types.Object, root_bone: bpy.types.PoseBone, keyed: bool) -> str:
    """Name the source of a bone's motion, in words; empty if nothing animates it."""
    from ..rig import clamps

    if keyed:
        return "it has keys"
    if _has_driver(armature_object, root_bone):
        return "it has a driver"
    for above in root_bone.parent_recursive:
        moved = _is_keyed(armature_object, above) or _has_driver(armature_object, above)
        if moved or any(clamps.acting_constraints(above)):
            return f"'{above.name}' above it is animated"
    return ""


def _is_keyed(armature_object: bpy.types.Object, bone: bpy.types.PoseBone) -> bool:
    """Whether location or rotation of a bone has keys that no bake has made from planted bones."""
    from ..keys import channels
    from .stored_poses import followed

    start = bone.path_from_id() + "."
    for action, curves in channels.played(armature_object):
        if any(curve.data_path.startswith(start) and _moves_bone(curve) for curve in curves):
            return bone.name not in followed(action)
    return False


def _has_driver(armature_object: bpy.types.Object, bone: bpy.types.PoseBone) -> bool:
    from ..keys import channels

    start = bone.path_from_id() + "."
    return any(
        driver.data_path.startswith(start) and _moves_bone(driver) and not driver.mute
        for driver in channels.drivers_of(armature_object)
    )


def _moves_bone(curve: bpy.types.FCurve) -> bool:
    """Whether an F-curve or driver plays on location or rotation."""
    from ..keys import channels

    channel = curve.data_path.rpartition(".")[2]
    return channels.plays(curve) and (
        channel == "location" or (channel.startswith("rotation") and channel != "rotation_mode")
    )
