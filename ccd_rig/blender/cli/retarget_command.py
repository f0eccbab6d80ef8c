# SPDX-License-Identifier: GPL-3.0-or-later
"""`ccd_rig retarget`: clips retargeted to the armature of a .blend file, an action each."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import bpy

from ...errors import CCDRigError, InvalidInput, RigError
from ...motion.contacts import ContactThresholds
from ...motion.retargeting.settings import PAIRED, SPACES, WEIGHTS, EffectorSpace, RetargetSettings, Weight
from ..atomic_write import real_folder
from ..bake.report import write
from ..retarget import bone_map, clips, retarget
from ..retarget.retarget import RetargetChoice
from ..retarget.sampling import Reference, RestIsNoPose
from . import files
from .files import Check, Exit, Option, UsageError, Words, say, warn

EXAMPLES = """\
examples:
  python -m ccd_rig retarget walk.bvh hero.blend --reference frame --output hero_walk.blend
  python -m ccd_rig retarget clips/ hero.blend --map hero.json --output hero_clips.blend --report table.json

Each clip becomes an action of the armature in TARGET, named as its file; the last one is assigned.

"""


OPTIONS = (
    Option(RetargetSettings, "in_place", "take the mean velocity along the ground off"),
    Option(RetargetSettings, "contacts", "do not lock feet that are down"),
    Option(RetargetSettings, "blend", unit="seconds"),
    Option(RetargetSettings, "extension"),
)
"""Options of settings that are numbers and switches."""


def add_command(commands: Any) -> None:
    """Add `retarget` to the subparsers of the parser."""
    words = "carry motion over to the armature of a file"
    command = files.add_command(commands, "retarget", words, EXAMPLES, run)
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
    for option in OPTIONS:
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


def run(options: argparse.Namespace, check: Check) -> Exit:
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
    if options.report is not None:
        write(json.dumps(results, indent=2) + "\n", options.report)
    if not options.quiet:
        say("\n".join(_table(results)))
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
            **{option.name: option.value(options) for option in OPTIONS},
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
