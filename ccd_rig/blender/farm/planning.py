# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job bakes of the open file, and whether its frames can be shared out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import bpy

from ...errors import RigError
from ...solvers.stepping import result_of
from ..bake.settings import BakeSettings
from ..checks import setup
from ..properties.constraint_values import Constraint, Kind
from .job import Shot


class Plan(NamedTuple):
    """A shot, and why it is baked whole although it is longer than a chunk; empty if it is not."""

    shot: Shot
    whole_because: str


def plan(scene: bpy.types.Scene, settings: Mapping[bpy.types.Object, BakeSettings], chunk: int) -> Plan:
    """What is baked of the open file.

    Args:
        scene: that is baked.
        settings: of each armature object.
        chunk: most frames of a chunk; 0 for whole shots.

    Raises:
        CCDRigError: there is nothing to bake, or the set-up cannot be baked.
    """
    if not settings:
        raise RigError("no armature in the file's active scene has enabled CCD constraints")
    reason = "" if len(settings) == 1 else "several rigs are baked together"
    for thing, own in settings.items():
        ready = result_of(setup.require(thing, scene, own.constraints, own.destination, own.body))
        reason = reason or _one_after_the_other(own, ready.constraints)
    armatures = {thing.name: own for thing, own in settings.items()}
    shot = Shot(Path(bpy.data.filepath).name, armatures, chunk)
    if reason and shot.is_split:
        return Plan(Shot(shot.file, armatures), reason)
    return Plan(shot, "")


def _one_after_the_other(settings: BakeSettings, constraints: tuple[Constraint, ...]) -> str:
    """Why frames hang on those before them, so that no chunk can be solved apart; empty if none do."""
    if any(each.kind is Kind.PLANT for each in constraints):
        return "where planted bones are held depends on all frames before"
    if settings.preroll:
        return "it has a preroll"
    if settings.step > 1:
        return "its solved frames are not next to each other"
    if settings.keys.name not in ("EVERY_FRAME", "SOLVED_FRAMES"):
        return "its frames are those of other keys"
    return ""
