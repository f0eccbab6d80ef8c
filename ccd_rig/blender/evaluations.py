# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is told of armature objects that Blender has just evaluated.

Blender does not say that data is linked or appended, nor that a script has written it: an evaluation is the
first that tells. One handler therefore always listens. It looks at what was evaluated once for all that are
told, and costs a few microseconds where that is no armature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import bpy
from bpy.types import Object  # to look it up in `bpy.types` takes longer than all else here

Follower = Callable[[Any, Any, Sequence[Any]], None]
"""Is called with a scene, its depsgraph, and the original armature objects that were evaluated in it."""

_followers: list[Follower] = []


def armatures_in(depsgraph: bpy.types.Depsgraph) -> list[bpy.types.Object]:
    """The original armature objects that were evaluated, where an armature was: its bones, or its object."""
    if not depsgraph.id_type_updated("ARMATURE"):
        return []
    found: list[Any] = []
    for each in depsgraph.updates:
        thing = each.id
        if type(thing) is Object and thing.type == "ARMATURE":  # no class stands below it
            found.append(thing.original)
    return found


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def tell(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """After an evaluation: tell all that want to know."""
    if armatures := armatures_in(depsgraph):
        for follower in _followers:
            follower(scene, depsgraph, armatures)


def add(follower: Follower) -> None:
    """Tell one more."""
    if not _followers:
        bpy.app.handlers.depsgraph_update_post.append(tell)
    _followers.append(follower)


def remove(follower: Follower) -> None:
    """Tell one less."""
    _followers.remove(follower)
    if not _followers:
        bpy.app.handlers.depsgraph_update_post.remove(tell)
