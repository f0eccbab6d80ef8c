"""Bakes whose findings are looked at."""

from __future__ import annotations

import bpy
import rigs

FRAMES = 48


def run(bake, rig, last=FRAMES, **options):
    rigs.update()
    return bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, last, **options))


def of(report, trouble):
    return [each for each in report.findings if each.trouble == trouble]
