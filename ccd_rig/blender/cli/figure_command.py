# SPDX-License-Identifier: GPL-3.0-or-later
"""`ccd_rig figure`: Set Up Figure on the armature of a .blend file, and the roles of its bones as JSON.

A file of roles maps bones to roles, as the list in Blender's redo panel does:

    {"roles": {"Bip01 L Hand": "left hand", "prop": ""}}

These replace the recognised roles. An empty role removes a bone's role.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy

from ... import json_text
from .. import set_up
from ..atomic_write import read
from ..bake.report import write
from ..figures.recognition import figure_of, with_roles
from ..retarget import clips
from ..set_up import Choices, Group, Ranges
from . import files
from .files import Check, Exit, say, warn

EXAMPLES = """\
examples:
  python -m ccd_rig figure hero.blend --report roles.json
  python -m ccd_rig figure hero.blend --roles roles.json --groups hands,feet --output hero_rigged.blend

Without --output nothing is set up: the report then has the roles that bones have. They can be changed
there, and named by --roles.

"""


def add_command(commands: Any) -> None:
    """Add `figure` to the subparsers of the parser."""
    words = "recognise a figure and set it up"
    command = files.add_command(commands, "figure", words, EXAMPLES, run)
    add = command.add_argument
    add("file", type=Path, metavar="FILE", help="the .blend file with the armature")
    add("--armature", metavar="NAME", help="armature object in FILE (needed if there are several)")
    add("--roles", type=Path, metavar="FILE", help="JSON file of roles of bones, before the recognised ones")
    add(
        "--groups",
        type=_groups,
        default=tuple(Group),
        metavar="GROUP[,GROUP]",
        help=f"what gets targets, of {', '.join(Group)} (default: all)",
    )
    add("--poles", action="store_true", help="poles for all knees and elbows, not for straight ones alone")
    add("--turn-hands", action="store_true", help="hands turn as their targets do")
    add(
        "--ranges",
        choices=[ranges.lower() for ranges in Ranges],
        default=Choices.ranges.lower(),
        help="what joints get of the preset for such a figure (default: %(default)s)",
    )
    add("--plant", action="store_true", help="hold feet where they are instead of giving them targets")
    add("--control-bones", action="store_true", help="targets are bones of the armature, not empties")
    add("--keep-still", action="store_true", help="do not key targets along the motion that the figure has")
    files.add_arguments(command, "FILE", "the set-up", "roles and what was made")


def _groups(text: str) -> tuple[Group, ...]:
    try:
        return tuple(Group(name) for name in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: give some of {', '.join(Group)}") from None


def run(options: argparse.Namespace, _check: Check) -> Exit:
    """Set the figure up and save it, or only report its roles."""
    roles = {} if options.roles is None else read_roles(options.roles)
    files.open_input(options.file, options)
    files.require(options.file, options, {} if options.roles is None else {options.roles: "the roles"})
    rig = clips.armature(list(bpy.context.scene.objects), options.armature, str(options.file))
    report: dict[str, object]
    if options.output is None:
        figure = with_roles(figure_of(rig), rig.data.bones.keys(), roles)
        report = {
            "figure": f"{figure.family} {figure.kind}".strip(),
            "roles": {bone: role.words() for bone, role in figure.roles.items()},
        }
    else:
        report = _set_up(rig, roles, options)
        files.save_as(options.output)
    if options.report is not None:
        write(json.dumps(report, indent=2, ensure_ascii=False) + "\n", options.report)
    if not options.quiet:
        say(f"{rig.name}: {report['figure']}")
    return Exit.DONE


@dataclass(frozen=True)
class _RolesFile:
    roles: Mapping[str, str]  # {bone: role}


def read_roles(path: Path) -> Mapping[str, str]:
    """Read the roles {bone: role} of a file; raises RigError, which names the place in it."""
    return read(path, lambda text: json_text.read(text, _RolesFile, "the list of roles")).roles


def _set_up(
    armature_object: bpy.types.Object,
    roles: Mapping[str, str],
    options: argparse.Namespace,
) -> dict[str, object]:
    choices = Choices(
        options.groups,
        options.poles,
        options.turn_hands,
        Ranges(options.ranges.upper()),
        options.plant,
        not options.keep_still,
        roles,
        options.control_bones,
    )
    result = set_up.set_up(bpy.context, armature_object, choices)
    if choices.follow_motion:
        set_up.follow(bpy.context, armature_object, result)
    for note in result.notes:
        warn(f"{armature_object.name}: {note}")
    return {
        "figure": result.words(),
        "roles": {bone: role for bone, (role, _) in result.roles.items() if role},
        "constraints": {str(group): names for group, names in result.rows.items()},
        "notes": result.notes,
    }
