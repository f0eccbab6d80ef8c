# SPDX-License-Identifier: GPL-3.0-or-later
"""The switch of the live preview, `Object.ccd_rig.live`.

Undo and redo carry it, files do not. A copy of an object has its switch too: only objects that were switched
on by themselves are live.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy
from bpy.props import BoolProperty

from .solver_settings import OVERRIDE

switched_on: set[int] = set()
"""`session_uid` of the armature objects that were switched on since the file was opened."""

begin: list[Callable[[], None]] = []
"""What is called when an armature object is switched on."""


def on_switch(group: Any, _context: bpy.types.Context | None = None) -> None:
    """The switch was set: let Blender evaluate the object, so that the preview begins or ends."""
    armature_object = group.id_data
    if group.live:
        switched_on.add(armature_object.session_uid)
        for listen in begin:
            listen()
    armature_object.update_tag()


def is_live(armature_object: Any) -> bool:
    """Whether an armature object was switched on itself."""
    return armature_object.session_uid in switched_on and armature_object.ccd_rig.live


def register_on(group: type[Any]) -> None:
    """Give a group of properties that is not registered yet the switch."""
    # The bpy module 4.2 crashes at exit if a class then still holds a property that calls a function.
    group.__annotations__["live"] = BoolProperty(
        name="Live",
        description="The rig follows its targets while they move; keys and channels stay as they are. Files "
        "keep nothing of it",
        update=on_switch,
        options={"SKIP_SAVE"},
        override=OVERRIDE,
    )


def unregister_from(group: type[Any]) -> None:
    """Take the switch away again."""
    del group.__annotations__["live"]
