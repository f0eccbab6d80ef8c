# SPDX-License-Identifier: GPL-3.0-or-later
"""`ccd_rig walk`: a walk cycle of an armature along a curve of its file, over its ground."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import bpy

from ...errors import InvalidInput, RigError
from ...json_text import shown
from ...motion.walking.settings import WalkSettings
from .. import walk
from ..bake.report import write
from ..retarget import clips
from ..scene.ground import ground_of_rig, may_have_faces, surfaces
from ..walk import Stands, WalkChoice, walk_along
from . import files
from .files import Check, Exit, Option, UsageError, say, warn

EXAMPLES = """\
examples:
  python -m ccd_rig walk shot.blend --cycle Walk --along Path --ground Terrain --output walked.blend
  python -m ccd_rig walk shot.blend --along Stairs --ground House --stand Idle --output walked.blend

The walk becomes a new action of the armature; that with the cycle stays.

"""

OPTIONS = (
    Option(WalkSettings, "fit_steps", "leave steps on stairs and in bends as long as others"),
    *(Option(WalkSettings, name) for name in ("cycles", "stride", "offset", "ease")),
    Option(WalkSettings, "steepest", unit="degrees"),
    *(Option(WalkSettings, name) for name in ("clearance", "extension")),
)
"""Options of settings that are numbers and switches."""


def add_command(commands: Any) -> None:
    """Add `walk` to the subparsers of the parser."""
    words = "walk along a curve over the ground"
    command = files.add_command(commands, "walk", words, EXAMPLES, run)
    add = command.add_argument
    add("file", type=Path, metavar="SHOT", help="the .blend file with armature, curve and ground")
    add("--armature", metavar="NAME", help="armature object (needed if there are several)")
    add("--cycle", metavar="ACTION", help="the action with the cycle (default: the one that plays)")
    add(
        "--cycle-frames",
        type=files.frame_range,
        metavar="FIRST-LAST",
        help="frames of the cycle, as 1-32, -10-20 or 1:32 (default: looked for)",
    )
    add("--along", metavar="CURVE", required=True, help="the curve object to walk along")
    add(
        "--ground",
        metavar="NAME|HEIGHT",
        help="an object or a collection whose faces are the ground, or a world height (default: the "
        "armature's own Ground)",
    )
    add("--start", type=int, default=1, metavar="FRAME", help="of the first key (default: %(default)s)")
    add("--end", type=int, metavar="FRAME", help="of the last key at most (default: where the curve ends)")
    add("--keyed", action="store_true", help="go as the curve's Evaluation Time is keyed")
    add(
        "--stand",
        metavar="ACTION",
        help="the action whose first frame is how it stands before and after; 'rest' for the rest pose "
        "(default: as in the cycle on average)",
    )
    add("--no-stand", choices=("start", "end", "both"), help="begin, or end, at full speed")
    for option in OPTIONS:
        option.add(command)
    files.add_arguments(command, "SHOT", "the walk", "the results")


def run(options: argparse.Namespace, _check: Check) -> Exit:
    """Walk, save, and print the result."""
    settings = _settings(options)
    files.open_input(options.file, options)
    files.require(options.file, options)
    scene = bpy.context.scene
    rig = clips.armature(list(scene.objects), options.armature, str(options.file))
    curve = _named(scene.objects, options.along, "curve object", lambda each: each.type == "CURVE")
    cycle = None if options.cycle is None else _action(options.cycle)
    stands, stand_action = Stands.CYCLE, None
    if options.stand is not None:
        stand_action = None if options.stand == "rest" else _action(options.stand)
        stands = Stands.REST if stand_action is None else Stands.ACTION
    height, meshes = _ground(scene, rig, options.ground)
    choice = WalkChoice(
        cycle=cycle,
        cycle_frames=options.cycle_frames,
        height=height,
        meshes=meshes,
        start=options.start,
        end=options.end,
        stands=stands,
        stand_action=stand_action,
        keyed=options.keyed,
        settings=settings,
    )
    result = walk_along(scene, rig, curve, choice)
    for warning in walk.warnings(result):
        warn(warning)
    if options.output is not None:
        files.save_as(options.output)
    if options.report is not None:
        write(json.dumps(walk.as_values(result), indent=2) + "\n", options.report)
    if not options.quiet:
        say("\n".join(walk.lines(result)))
    return Exit.DONE


def _settings(options: argparse.Namespace) -> WalkSettings:
    try:
        return WalkSettings(
            **{option.name: option.value(options) for option in OPTIONS},
            start=options.no_stand not in ("start", "both"),
            stop=options.no_stand not in ("end", "both"),
        )
    except InvalidInput as error:
        raise UsageError(str(error)) from error


def _action(name: str) -> bpy.types.Action:
    action = bpy.data.actions.get(name)
    if action is None:
        names = ", ".join(sorted(each.name for each in bpy.data.actions)) or "none"
        raise RigError(f"there is no action '{shown(name)}'; there are: {names}")
    return action


def _named(
    objects: Iterable[bpy.types.Object], name: str, word: str, fits: Callable[[bpy.types.Object], bool]
) -> bpy.types.Object:
    of_type = {candidate.name: candidate for candidate in objects if fits(candidate)}
    if name not in of_type:
        names = ", ".join(sorted(of_type)) or "none"
        raise RigError(f"there is no {word} '{shown(name)}' in the scene; there are: {names}")
    return of_type[name]


def _ground(
    scene: bpy.types.Scene, rig: bpy.types.Object, name: str | None
) -> tuple[float | None, tuple[bpy.types.Object, ...]]:
    if name is None:
        return ground_of_rig(rig)
    if name in scene.objects:
        return None, (_named(scene.objects, name, "ground with faces", may_have_faces),)
    if name in bpy.data.collections:
        return None, surfaces(bpy.data.collections[name])
    try:
        height = float(name)
    except ValueError:
        height = math.nan
    if not math.isfinite(height):
        raise RigError(
            f"there is no object or collection '{shown(name)}' to be the ground, and it is no height"
        )
    return height, ()
