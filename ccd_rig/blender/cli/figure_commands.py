# SPDX-License-Identifier: GPL-3.0-or-later
"""`ccd_rig figure`, `retarget` and `walk`: a figure set up, and motion for it from clips or a cycle.

A file of roles maps bones to roles, as the list in Blender's redo panel does:

    {"roles": {"Bip01 L Hand": "left hand", "prop": ""}}

These replace the recognised roles. An empty role removes a bone's role.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy

from ... import json_text
from ...errors import CCDRigError, InvalidInput, RigError
from ...json_text import shown
from ...motion.settings import (
    PAIRED,
    SPACES,
    WEIGHTS,
    ContactThresholds,
    EffectorSpace,
    RetargetSettings,
    WalkSettings,
    Weight,
)
from .. import set_up, walk
from ..atomic_write import read, real_folder
from ..figures.choices import Choices, Group, Ranges
from ..figures.recognition import figure_of, with_roles
from ..retarget import bone_map, clips, retarget
from ..retarget.retarget import RetargetChoice
from ..retarget.sampling import Reference, RestIsNoPose
from ..scene.ground import ground_of_rig, may_have_faces, surfaces
from ..walk import Stands, WalkChoice, walk_along
from . import files
from .files import Check, Exit, Option, UsageError, Words, warn


def add_commands(commands: Any) -> None:
    """Add `figure`, `retarget` and `walk` to the subparsers of the parser."""
    _add_figure(commands)
    _add_retarget(commands)
    _add_walk(commands)


# --- figure -------------------------------------------------------------------------------------------------


FIGURE_EXAMPLES = """\
examples:
  python -m ccd_rig figure hero.blend --report roles.json
  python -m ccd_rig figure hero.blend --roles roles.json --groups hands,feet --output hero_rigged.blend

Without --output nothing is set up: the report then has the roles that bones have. They can be changed
there, and named by --roles.

"""


def _add_figure(commands: Any) -> None:
    words = "recognise a figure and set it up"
    command = files.add_command(commands, "figure", words, FIGURE_EXAMPLES, _run_figure)
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


def _run_figure(options: argparse.Namespace, _check: Check) -> Exit:
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
        report = _set_up_figure(rig, roles, options)
        files.save_as(options.output)
    files.end(options, report, [f"{rig.name}: {report['figure']}"])
    return Exit.DONE


@dataclass(frozen=True)
class _RolesFile:
    roles: Mapping[str, str]  # {bone: role}


def read_roles(path: Path) -> Mapping[str, str]:
    """Read the roles {bone: role} of a file; raises RigError, which names the place in it."""
    return read(path, lambda text: json_text.read(text, _RolesFile, "the list of roles")).roles


def _set_up_figure(
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
    for note in result.messages():
        warn(f"{armature_object.name}: {note}")
    return {
        "figure": result.words(),
        "roles": {bone: role for bone, (role, _) in result.roles.items() if role},
        "constraints": {str(group): names for group, names in result.rows.items()},
        "notes": result.messages(),
    }


# --- retarget -----------------------------------------------------------------------------------------------


RETARGET_EXAMPLES = """\
examples:
  python -m ccd_rig retarget walk.bvh hero.blend --reference frame --output hero_walk.blend
  python -m ccd_rig retarget clips/ hero.blend --map hero.json --output hero_clips.blend --report table.json

Each clip becomes an action of the armature in TARGET, named as its file; the last one is assigned.

"""


RETARGET_OPTIONS = (
    Option(RetargetSettings, "in_place", "take the mean velocity along the ground off"),
    Option(RetargetSettings, "contacts", "do not lock feet that are down"),
    Option(RetargetSettings, "blend", unit="seconds"),
    Option(RetargetSettings, "extension"),
)
"""Options of settings that are numbers and switches."""


def _add_retarget(commands: Any) -> None:
    words = "carry motion over to the armature of a file"
    command = files.add_command(commands, "retarget", words, RETARGET_EXAMPLES, _run_retarget)
    add = command.add_argument
    add("source", type=Path, metavar="SOURCE", help=f"a clip ({', '.join(clips.CLIPS)}), or a folder of them")
    add("target", type=Path, metavar="TARGET", help="the .blend file with the armature that gets the motion")
    add("--armature", metavar="NAME", help="armature object in TARGET (needed if there are several)")
    add_choice_arguments(command)
    files.add_arguments(command, "TARGET", "the actions", "the results")


def add_choice_arguments(command: Words) -> None:
    """Add the settings of a retargeting."""
    add = command.add_argument
    add("--source-armature", metavar="NAME", help="armature object of a clip (needed if there are several)")
    add("--map", type=Path, metavar="FILE", help="JSON file of pairs of bones, before those found by role")
    add(
        "--reference",
        choices=[reference.name.lower() for reference in Reference],
        default=Reference.REST.name.lower(),
        help="the source's pose that is brought in line with the target's rest pose: its rest, or a frame of "
        "the motion where the rest is no pose of a body (default: %(default)s)",
    )
    add("--reference-frame", type=float, metavar="N", help="which frame (default: the first)")
    add("--source-fps", type=float, default=0.0, metavar="N", help="of the keys (default: the file's rate)")
    add("--scale", type=float, default=RetargetSettings.scale, help="of the way (default: by the legs)")
    _add_effectors(add)
    add(
        "--ground",
        type=float,
        metavar="HEIGHT",
        help="world height on which feet are to stand (default: that of the target's Ground below its "
        "origin; where that is At Rest, where the target stands at rest)",
    )
    down = RetargetSettings.thresholds
    for name, value, text in (
        ("--speed", down.speed, "a foot is down where it is slower, in legs per second"),
        ("--height", down.height, "and nearer than this to the ground, in legs"),
    ):
        add(name, type=float, default=value, help=f"{text} (default: {value:.3g})")
    for option in RETARGET_OPTIONS:
        option.add(command)


def _add_effectors(add: Callable[..., Any]) -> None:
    names = ", ".join(WEIGHTS)
    defaults = ", ".join(f"{name}={getattr(RetargetSettings, name):g}" for name in WEIGHTS)
    add(
        "--weight",
        type=_weight,
        action="append",
        default=[],
        metavar="EFFECTOR=W",
        help=f"how far an effector is taken to where the source has it, 0 (off) to 1: {names}; LEFT,RIGHT "
        f"for sides that differ; several times (default: {defaults})",
    )
    spaces = zip(WEIGHTS, SPACES, strict=True)
    defaults = ", ".join(f"{name}={getattr(RetargetSettings, space).name.lower()}" for name, space in spaces)
    add(
        "--space",
        type=_space,
        action="append",
        default=[],
        metavar="EFFECTOR=SPACE",
        help="where it has it: limb, as far from where the limb starts, in its lengths; or world, scaled as "
        f"the way is; several times (default: {defaults})",
    )


def _weight(text: str) -> tuple[str, Weight]:
    """Parse EFFECTOR=W to a field of the settings and its value."""
    name, value = _pair(text)
    most = 2 if name in PAIRED else 1
    try:
        weights = [float(number) for number in value.split(",")]
        if len(weights) > most:
            raise ValueError
    except ValueError:
        wanted = "a number, or two with a comma between," if most == 2 else "a number"
        raise argparse.ArgumentTypeError(f"{text!r}: give {wanted} after {name}=") from None
    return name, weights[0] if len(weights) == 1 else (weights[0], weights[1])


def _space(text: str) -> tuple[str, EffectorSpace]:
    name, value = _pair(text)
    spaces = {space.name.lower(): space for space in EffectorSpace}
    if value not in spaces:
        raise argparse.ArgumentTypeError(f"{text!r}: give {' or '.join(spaces)} after {name}=")
    return SPACES[WEIGHTS.index(name)], spaces[value]


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or name not in WEIGHTS:
        raise argparse.ArgumentTypeError(f"{text!r}: give one of {', '.join(WEIGHTS)}, '=' and its value")
    return name, value


def _run_retarget(options: argparse.Namespace, check: Check) -> Exit:
    """Retarget the clips, save, and print the table."""
    sources, choice = clips_at([options.source]), retarget_choice(options)
    files.open_input(options.target, options)
    read = dict.fromkeys(sources, "a clip") | ({} if options.map is None else {options.map: "the map"})
    files.require(options.target, options, read)
    target = clips.armature(list(bpy.context.scene.objects), options.armature, str(options.target))
    results: dict[str, Any] = {}
    failed = False
    for clip in sources:
        check()
        try:
            with clips.imported(clip) as imported:
                result = clips.carry_over(clip, imported, options.source_armature, target, choice)
        except CCDRigError as error:
            words = _in_options(error)
            warn(f"{clip.name}: {words}")
            results[clip.name], failed = {"error": words}, True
            continue
        results[clip.name] = retarget.as_values(result)
        for warning in retarget.warnings(result):
            warn(f"{clip.name}: {warning}")
    if options.output is not None and any("error" not in values for values in results.values()):
        files.save_as(options.output)
    files.end(options, results, _table(results))
    return Exit.PROBLEMS if failed else Exit.DONE


def _in_options(error: CCDRigError) -> str:
    """Return a clip's error, with the command's options in place of the interface's fields."""
    if isinstance(error, clips.NoTimeOfAFrame):
        return f"Frame Time {error.text} is not the time of a frame; give --source-fps"
    if isinstance(error, RestIsNoPose):
        return (
            f"the rest pose of '{error.source}' is no pose of a body: '{error.foot}' is above the hips; give "
            "--reference frame, and by --reference-frame one in which arms and legs are about straight"
        )
    return str(error)


def clips_at(sources: Sequence[Path]) -> list[Path]:
    """List the clips at paths of files and folders.

    Raises:
        UsageError: there is no clip at a path, or a path is not in UTF-8.
    """
    try:
        paths = [clip for source in sources for clip in clips.clips(source)]
    except RigError as error:
        raise UsageError(str(error)) from error
    for path in paths:
        files.require_text(real_folder(path))
    return paths


def retarget_choice(options: argparse.Namespace) -> RetargetChoice:
    """Make the settings of a retargeting.

    Raises:
        UsageError: a number is out of its range.
        RigError: the map cannot be read.
    """
    try:
        settings = RetargetSettings(
            scale=options.scale,
            ground=options.ground,
            **dict(options.weight),
            **dict(options.space),
            thresholds=ContactThresholds(speed=options.speed, height=options.height),
            **{option.name: option.value(options) for option in RETARGET_OPTIONS},
        )
        return RetargetChoice(
            source_fps=options.source_fps,
            reference=Reference[options.reference.upper()],
            reference_frame=options.reference_frame,
            bones=bone_map.read_map(options.map) if options.map is not None else {},
            settings=settings,
        )
    except InvalidInput as error:
        raise UsageError(str(error)) from error


def _table(results: dict[str, Any]) -> Iterator[str]:
    yield f"{'clip':<24} frames contacts drift, mm slide, mm/s off, % hips, mm"
    for clip, values in results.items():
        if "error" in values:
            yield f"{clip:<24} failed: {values['error']}"
            continue
        stances = values["stances"]
        drift = 1000.0 * max((stance["drift"] for stance in stances), default=0.0)
        slide = 1000.0 * sum(stance["slide"] for stance in stances) / max(len(stances), 1)
        off = 100.0 * max((values["errors"][limb] for limb in values["followed"]), default=0.0)
        yield (
            f"{clip:<24} {values['frames']:>6} {len(stances):>8} {drift:>9.1f} {slide:>11.1f} {off:>6.2f} "
            f"{1000.0 * values['moved']:>8.1f}"
        )


# --- walk ---------------------------------------------------------------------------------------------------


WALK_EXAMPLES = """\
examples:
  python -m ccd_rig walk shot.blend --cycle Walk --along Path --ground Terrain --output walked.blend
  python -m ccd_rig walk shot.blend --along Stairs --ground House --stand Idle --output walked.blend

The walk becomes a new action of the armature; that with the cycle stays.

"""

WALK_OPTIONS = (
    Option(WalkSettings, "fit_steps", "leave steps on stairs and in bends as long as others"),
    *(Option(WalkSettings, name) for name in ("cycles", "stride", "offset", "ease")),
    Option(WalkSettings, "steepest", unit="degrees"),
    *(Option(WalkSettings, name) for name in ("clearance", "extension")),
)
"""Options of settings that are numbers and switches."""


def _add_walk(commands: Any) -> None:
    words = "walk along a curve over the ground"
    command = files.add_command(commands, "walk", words, WALK_EXAMPLES, _run_walk)
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
    for option in WALK_OPTIONS:
        option.add(command)
    files.add_arguments(command, "SHOT", "the walk", "the results")


def _run_walk(options: argparse.Namespace, _check: Check) -> Exit:
    """Walk, save, and print the result."""
    settings = _walk_settings(options)
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
    files.end(options, walk.as_values(result), walk.lines(result))
    return Exit.DONE


def _walk_settings(options: argparse.Namespace) -> WalkSettings:
    try:
        return WalkSettings(
            **{option.name: option.value(options) for option in WALK_OPTIONS},
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
