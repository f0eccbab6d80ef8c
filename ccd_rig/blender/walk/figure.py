# SPDX-License-Identifier: GPL-3.0-or-later
"""Figure map of an armature on itself, with any number of legs."""

from __future__ import annotations

from dataclasses import replace

import bpy

from ...errors import InvalidInput, RigError
from ...motion.retargeting.figures import FigureMap, Limb
from ..figures.role import Figure, Part, Side
from ..retarget import sampling
from ..retarget.bone_map import bone_map, figure_map


def walking_map(rig: bpy.types.Object) -> FigureMap:
    """Map an armature on itself, with its legs.

    All descendants of the hips are mapped; of control rigs those with a role alone.

    Raises:
        RigError: no leg is recognised.
    """
    on_itself = bone_map(rig, rig)
    legs = many_legs(on_itself.figure)
    mapped = figure_map(on_itself)
    if legs:
        mapped = _with_legs(mapped, legs, rig)
    if not mapped.legs:
        raise RigError(
            f"'{rig.name}': no leg is recognised: open Set Up Figure and choose what its bones are there"
        )
    if sampling.is_controlled(rig, mapped):
        return mapped
    below = [bone.name for bone in rig.data.bones[mapped.hips].children_recursive]
    whole = replace(mapped, sources={**mapped.sources, **{name: name for name in below}})
    return mapped if sampling.is_controlled(rig, whole) else whole


def many_legs(figure: Figure) -> tuple[Limb, ...]:
    """Return the legs of a figure with more than four legs."""
    groups = sorted(
        {(role.side, role.number) for role in figure.roles.values() if role.part is Part.LEG},
        key=lambda each: (each[1], each[0]),
    )
    limbs = []
    for side, number in groups:
        bones = figure.bones(Part.LEG, side, number)
        if len(bones) < 2:
            continue
        words = {Side.LEFT: "left", Side.RIGHT: "right", Side.MIDDLE: "middle"}[side]
        upper, middle, end = bones[0], bones[len(bones) // 2 if len(bones) > 2 else 1], bones[-1]
        between = tuple(bone for bone in bones[1:-1] if bone != middle)
        is_right = side is not Side.LEFT
        limbs.append(Limb(f"{words} leg {number + 1}", upper, middle, end, "", "", is_right, between))
    return tuple(limbs)


def _with_legs(mapped: FigureMap, legs: tuple[Limb, ...], rig: bpy.types.Object) -> FigureMap:
    names = [name for leg in legs for name in (*leg.joints, *leg.bends)]
    hips = mapped.hips
    above = [rig.data.bones[leg.upper].parent_recursive for leg in legs]
    if not all(hips in [bone.name for bone in line] for line in above):
        common = [bone.name for bone in above[0] if all(bone in line for line in above)]
        if not common:
            raise RigError(f"'{rig.name}': its legs hang on no bone in common: parent them to the body")
        hips = common[0]
    try:
        return replace(
            mapped,
            sources={**mapped.sources, hips: hips, **{name: name for name in names}},
            hips=hips,
            legs=legs,
            arms=(),
            legless=False,
        )
    except InvalidInput as error:
        raise RigError(str(error)) from error
