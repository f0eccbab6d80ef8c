"""Figures whose left hand goes beyond its reach, and how far it misses its target."""

from __future__ import annotations

import bpy
import rigs
from operator_calls import set_up
from playing import in_world, target_in_world

SOLVE = 1e-3  # metres
FAR = (0.25, -0.8, 1.3)  # 0.15 m beyond the reach of a human's left arm
FRAMES = range(1, 26)
FEET = ("foot.L", "foot.R")


def key_way(row, *places):
    """Key a target evenly over the frames at places of the world; None is where it stands."""
    for k, place in enumerate(places):
        if place is not None:
            rigs.put(row.target, place)
        row.target.keyframe_insert("location", frame=1 + k * (len(FRAMES) - 1) // (len(places) - 1))


def figure(to=FAR, first=None, **choices):
    """A human whose left hand goes to a point of the world, and the hand's constraint."""
    rig = set_up(rigs.metarig("human"), **choices)
    row = rig.ccd_rig.constraints["hand.L"]
    key_way(row, first, to)
    return rig, row


def planted(to=FAR, keeps=False):
    """The same with planted feet.

    `keeps`: the bone that carries it has keys, and its body keeps its animation; else hips have a target.
    """
    rig, row = figure(to, plant=True, hips=not keeps)
    for channel in ("location", "rotation_quaternion") if keeps else ():
        rig.pose.bones["spine"].keyframe_insert(channel, frame=1)
    return rig, row


def missed(rig, row, frames=FRAMES):
    """The most metres by which a bone's head misses its target at frames."""
    return max(
        (in_world(rig, frame)[row.tip].translation - target_in_world(row).translation).length
        for frame in frames
    )


def shift(before, after, *names):
    """The most metres between places of bones in two poses, which hold matrices by name."""
    return max((after[name].translation - before[name].translation).length for name in names)


def report_of(bake, rig, last=FRAMES[-1], **settings):
    return bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, last, **settings))
