# SPDX-License-Identifier: GPL-3.0-or-later
"""What listens to Blender, from the first use of the extension until a file without its data is opened.

One handler is always registered, which looks at files that were opened, and at the language then: Blender
runs nothing else of an extension in a file that is opened in the background, where bones are renamed and
files saved all the same. There it looks at files that are to be saved too: of a file that was open before no
event tells.
Data that are linked, appended or written by a script are noticed where they are drawn, changed or used.
"""

from collections.abc import Callable
from types import ModuleType

import bpy

from . import registration
from .languages import translation
from .properties.active_rig import rigs_with_settings, with_settings
from .registration import Handlers

further: list[Callable[[], ModuleType]] = []
"""Functions that import modules of the interface that listen too."""

_listening: list[ModuleType] = []
_looked_through: list[int] = []  # how many armatures the file had at the last look for data, or empty


def _modules() -> list[ModuleType]:
    """Import the modules that listen, in the order in which they are registered."""
    from . import live, setup_files
    from .bake import staleness
    from .properties import active_rig, constraint_list, joints, renamed_bones
    from .scene import isolation

    own = [joints, constraint_list, active_rig, renamed_bones, isolation, setup_files, staleness, live]
    return [*own, *(module() for module in further)]


def begin() -> None:
    """Listen, unless that has begun."""
    registration.waiting.clear()
    for module in _modules():
        if module not in _listening:
            module.register()
            _listening.append(module)


def end() -> None:
    """Listen no more, and wait for the next use."""
    while _listening:
        _listening.pop().unregister()
    registration.waiting[:] = [begin]
    _looked_through.clear()


_HANDLERS, _WITHOUT_TIMERS = Handlers(), Handlers()


@_WITHOUT_TIMERS.on("save_pre")
@_HANDLERS.on("load_post")
def look(*_arguments: object) -> None:
    """Listen in a file with data of the extension, and in no other, and to Blender's language in each.

    Handlers that are added meanwhile are called for the same file.
    """
    translation.register()
    if not is_used():
        end()
    elif not _listening:
        begin()


def notice() -> None:
    """Listen if rigs of the extension came from another file, which views ask at every redraw."""
    count = len(bpy.data.armatures)
    if registration.waiting and _looked_through != [count]:
        _looked_through[:] = [count]
        if is_used():
            begin()


def is_used() -> bool:
    """Whether the file has an armature with settings of the extension, of its own or of a bone."""
    if any(True for _ in rigs_with_settings()):
        return True
    rigs = (obj for obj in bpy.data.objects if obj.type == "ARMATURE" and obj.pose is not None)
    return any(True for rig in rigs for _ in with_settings(rig.pose.bones))


def register() -> None:
    """Wait for the first use."""
    registration.waiting[:] = [begin]
    _HANDLERS.register()
    # Blender hides the file while it enables an extension. Without a window timers do not run.
    if bpy.app.background:
        _WITHOUT_TIMERS.register()
    else:
        bpy.app.timers.register(look, first_interval=0.0)


def unregister() -> None:
    """Listen and wait no more; modules that listen take away what the file has of them."""
    # Blender hides the file while enabling fails, too.
    if registration.waiting and isinstance(bpy.data, bpy.types.BlendData) and is_used():
        begin()
    if bpy.app.timers.is_registered(look):
        bpy.app.timers.unregister(look)
    _WITHOUT_TIMERS.unregister()
    _HANDLERS.unregister()
    end()
    registration.waiting.clear()
