# SPDX-License-Identifier: GPL-3.0-or-later
"""How far planted bones slide: by the keys, and as Blender plays them."""

from __future__ import annotations

import bpy
import numpy as np

from ..quaternions import angle_between
from . import evaluation
from .report import Slid
from .take import Motion, Take


def slides(
    scene: bpy.types.Scene, armature_object: bpy.types.Object, take: Take, motion: Motion
) -> tuple[Slid, ...]:
    """One per constraint that plants a bone at some frame; the keys are written by now.

    Args:
        scene: in which the armature plays.
        armature_object: plays the keys.
        take: finished, so that the aims of planted bones are where they are held.
        motion: what is keyed.
    """
    if take.tracks is None:
        return ()
    distances, angles = take.residuals(motion)
    rows = [c for c in take.tracks.legs.rows if (take.influences[:, c] > 0.0).any()]
    far, turned = np.zeros_like(distances), np.zeros_like(angles)
    with evaluation.played(scene, armature_object, [take.constraints[c].tip for c in rows]) as at:
        for f in np.flatnonzero((take.influences[:, rows] > 0.0).any(axis=1)).tolist():
            matrices = at(float(take.frames[f]))
            for c in rows:
                if take.influences[f, c] > 0.0:
                    here, aim = matrices[take.constraints[c].tip], take.aims[f][c]
                    assert aim.rotation is not None
                    away = np.array(here.to_translation()[:]) - np.array(aim.point[:])
                    far[f, c] = np.linalg.norm(take.worlds[f] @ away)
                    turned[f, c] = angle_between(here.to_quaternion(), aim.rotation)
    return tuple(
        Slid(
            take.constraints[c].name,
            float(distances[take.influences[:, c] > 0.0, c].max()),
            float(angles[take.influences[:, c] > 0.0, c].max()),
            float(far[:, c].max()),
            float(turned[:, c].max()),
            int(take.frames[int(far[:, c].argmax())]),
        )
        for c in rows
    )
