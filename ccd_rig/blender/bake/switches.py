# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches between FK and IK over a bake's range, and keys that hold them at FK."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import bpy
import numpy as np
from numpy.typing import NDArray

from ...maths.batch import Array, runs
from ..keys import channels
from ..keys.destination import Destination
from ..keys.writer import ChannelKeys, curve_obstacles, plays_below
from ..properties import constraint_list
from ..properties.constraint_values import Constraint
from ..scene import isolation
from ..scene.dependence import FkSwitch, fk_switches
from .frame_selection import key_time
from .report import Finding
from .settings import BakeSettings
from .trouble import Fix, Trouble


@dataclass(frozen=True)
class SwitchPlay:
    """The values of a switch in playback."""

    switch: FkSwitch  # the property
    first: int  # the first frame of the range
    values: Array  # (F + 2,) at the frame before the range, at all its frames, and at the frame after it
    obstacle: str  # reason why it cannot be keyed, in words; else empty

    @property
    def is_ik(self) -> NDArray[np.bool_]:
        """(F,) mask of frames of the range at which it disables the chains."""
        return ~np.array([self.switch.is_fk(value) for value in self.values[1:-1].tolist()])


def switch_plays(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    bones: Collection[str],
    settings: BakeSettings,
) -> list[SwitchPlay]:
    """Playback of the switches of bones over a range, with their obstacles."""
    switches = fk_switches(armature_object, bones)
    if not switches:
        return []
    first, time = settings.frame_start, key_time(scene)
    values = _values(scene, armature_object, switches, range(first - 1, settings.frame_end + 2))
    span = first * time, settings.frame_end * time
    return [
        SwitchPlay(switch, first, row, _obstacle(armature_object, switch, settings.destination, span))
        for switch, row in zip(switches, values, strict=True)
    ]


def _values(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    switches: Sequence[FkSwitch],
    frames: Sequence[int],
) -> Array:
    """(S, F) values of switches. Only drivers and strips need evaluation; curves are read directly."""
    values, animation = np.empty((len(switches), len(frames))), armature_object.animation_data
    paths = {switch.path for switch in switches}
    if animation is not None and (
        channels.has_strips(animation)
        or any(driver.data_path in paths and not driver.mute for driver in animation.drivers)
    ):
        objects = [(armature_object, switch.bone) for switch in switches]
        with isolation.isolated_scene(scene, armature_object, objects, ()) as isolated:
            for k, frame in enumerate(frames):
                seen = armature_object.evaluated_get(isolation.set_frame(isolated, frame))
                values[:, k] = [float(seen.path_resolve(switch.path)) for switch in switches]
        return values
    curves = {curve.data_path: curve for curve in channels.fcurves_of(armature_object)}
    time = key_time(scene)
    for row, switch in zip(values, switches, strict=True):
        curve = curves.get(switch.path)
        if curve is not None and channels.plays(curve) and not curve.is_empty:
            row[:] = [curve.evaluate(frame * time) for frame in frames]
        else:
            row[:] = float(armature_object.path_resolve(switch.path))
    return values


def fk_keys(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    plays: Sequence[SwitchPlay],
    settings: BakeSettings,
) -> list[ChannelKeys]:
    """Keys that hold FK over the range for switches at IK; frames outside keep their values."""
    keys, time = [], key_time(scene)
    for play in plays if settings.switch_to_fk else ():
        if play.obstacle or not play.is_ik.any():
            continue
        frames, values = np.array([play.first]), np.array([[play.switch.value]])
        beside = play.values[:1], play.values[-1:]
        switch = play.switch
        keys.append(ChannelKeys(switch.bone, switch.path, frames * time, values, "CONSTANT", beside=beside))
    return keys


def in_ik(
    armature_object: bpy.types.Object,
    plays: Sequence[SwitchPlay],
    keyed: Sequence[ChannelKeys],
    constraints: Sequence[Constraint],
) -> Iterator[Finding]:
    """Runs of frames at which switches that are not keyed disable chains."""
    paths = {each.path for each in keyed}
    for row in constraints:
        chain = set(_chain(armature_object, row))
        for play in plays:
            if play.switch.path in paths or chain.isdisjoint(play.switch.chain_bones):
                continue
            fix = Fix.NONE if play.obstacle else Fix.FK
            for run in runs(play.is_ik):
                ends = play.first + run.start, play.first + run.stop - 1
                yield Finding(Trouble.IK, row.name, play.switch.bone, *ends, ends[0], fix=fix)


def refusals(plays: Sequence[SwitchPlay], settings: BakeSettings) -> Iterator[str]:
    """Sentences on switches at IK that cannot be keyed."""
    for play in plays if settings.switch_to_fk else ():
        if play.obstacle and play.is_ik.any():
            yield play.obstacle


def ik_warning(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    frames: Sequence[float],
) -> str:
    """A warning for limbs at IK at any frame, whose FK bones are elsewhere; or empty."""
    settings = BakeSettings(int(min(frames)), int(max(frames)))
    bones = {bone for row in constraints for bone in _chain(armature_object, row)}
    plays = switch_plays(scene, armature_object, bones, settings)
    names = ", ".join(play.switch.bone for play in plays if play.is_ik.any())
    return f"Targets go with the FK bones, but these limbs show IK: {names}" if names else ""


def _chain(armature_object: bpy.types.Object, row: Constraint) -> list[str]:
    return [bone.name for bone in constraint_list.chain_of(armature_object, row)]


def _obstacle(
    armature_object: bpy.types.Object, switch: FkSwitch, destination: Destination, span: tuple[float, float]
) -> str:
    for driver in channels.drivers_of(armature_object):
        if driver.data_path == switch.path and not driver.mute:
            return f"Switch {switch} has a driver, so it stays as it is: switch to FK by hand"
    if destination is Destination.NLA_STRIP:
        return ""
    animation = armature_object.animation_data
    has_strips = animation is not None and channels.has_strips(animation)
    is_new = not channels.is_animated(armature_object)
    if has_strips and is_new and not plays_below(armature_object, [switch.path], span):
        return (
            f"Switch {switch} stays as it is: no NLA strip plays it, so its keys would hide the strips "
            "outside the range: choose NLA Strip Above"
        )
    for curve in channels.fcurves_of(armature_object):
        if curve.data_path == switch.path:
            for words in curve_obstacles(curve, span):
                return f"Switch {switch} stays as it is: {words}"
    return ""
