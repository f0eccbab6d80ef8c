# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of findings of a bake, and the settings that help against them."""

from __future__ import annotations

import enum


class Trouble(enum.StrEnum):
    """The kind of a finding."""

    SHORT = "SHORT"  # the target is out of reach
    OFF = "OFF"  # the target is missed, by limits or other constraints
    JUMP = "JUMP"  # a bone turns or moves far more from one frame to the next than in the frames around
    SLIDE = "SLIDE"  # a bone that should be held in the world moves
    GROUND = "GROUND"  # a bone is below the ground
    LIMIT = "LIMIT"  # a limit holds a bone for long
    LOOP = "LOOP"  # base poses and targets end as they begin, the bake does not
    CLIMB = "CLIMB"  # a body over planted bones climbs beside its animation
    SINK = "SINK"  # a body over planted bones sinks beside its animation
    TIP = "TIP"  # a body over planted bones leans beside its animation
    FLOAT = "FLOAT"  # a planted bone is held above its animation
    IK = "IK"  # a switch of the rig is at IK, so the baked bones move nothing
    BETWEEN = "BETWEEN"  # the target is missed farther between solved frames than at them
    TAKEN = "TAKEN"  # an enabled constraint that is not baked is taken off its target by what is baked


class Fix(enum.StrEnum):
    """A setting that helps against a finding."""

    NONE = ""
    EXTENSION = "EXTENSION"  # Max Extension: the chain is never quite straight
    SOFT = "SOFT"  # Softness, the equivalent for the method Two Bones
    POLE = "POLE"  # a pole, so that the chain does not swing about the line to its target
    LEAST_SQUARES = "LEAST_SQUARES"  # the solver that spreads sudden changes over the frames around
    FK = "FK"  # the rig's switch to FK

    @classmethod
    def _missing_(cls, value: object) -> Fix:
        """NONE for values of other versions, as reports are stored in files."""
        return cls.NONE
