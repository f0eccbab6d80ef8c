# SPDX-License-Identifier: GPL-3.0-or-later
"""`ccd_rig bake` and `check`: their arguments, the settings made from them, and their output."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy

from ...errors import InvalidInput, RigError
from ...json_text import shown
from ...settings import Solver
from .. import checks
from ..bake import bake_all, report
from ..bake.bake import bake
from ..bake.progress import Pace, Progress
from ..bake.settings import PLAIN, BakeSettings, Keys, Start
from ..keys.destination import Destination
from ..properties import body
from ..properties.active_rig import rigs_to_bake
from . import files
from .files import Check, Exit, Option, UsageError, Words

SLOW = 1.0  # [s] a bake that takes longer shows its progress
REDRAW = 0.1  # [s] from one progress line to the next on a terminal
RELOG = 10.0  # [s] the same where standard error goes to a file

KEYS = {
    "every": Keys.EVERY_FRAME,
    "solved": Keys.SOLVED_FRAMES,
    "targets": Keys.TARGET_KEYS,
    "reference": Keys.REFERENCE_KEYS,
}

SOLVERS = {solver.name.lower().replace("_", "-"): solver for solver in Solver}

BODIES = {"auto": body.AUTO, "keep": body.KEEP_ANIMATION, "follow": body.FOLLOW_FEET, "walk": body.WALK_ON}

EXAMPLES = """\
examples:
  blender -b shot.blend --command ccd_rig bake --output baked.blend
  python -m ccd_rig bake shot.blend --frames 1-250 --step 2 --output baked.blend --report baked.json
  python -m ccd_rig bake shot.blend --armature Rig --constraint "Hand L" --constraint "Hand R" \\
      --frames -10-250 --keys solved --current-action --output shot.blend --strict

FILE is changed only if --output names it.

"""
CHECK_EXAMPLES = """\
examples:
  blender -b shot.blend --command ccd_rig check
  python -m ccd_rig check shot.blend --armature Rig

"""


_OPTIONS = (
    Option(
        BakeSettings, "step", "solve every N-th frame, slerp between (default: %(default)s)", "frames", "N"
    ),
    Option(
        BakeSettings,
        "preroll",
        "solve N frames before the first too, without keys: planted bones may have come down there "
        "(default: %(default)s)",
        "frames",
        "N",
    ),
    Option(
        BakeSettings,
        "smoothness",
        "smooth sudden turns between frames, 0 to 1000; 0: each frame for itself (default: %(default)s)",
        "frames",
        "N",
    ),
    Option(
        BakeSettings,
        "reduce_angle",
        "leave out keys where each bone stays this near to the full motion (default: 0, keep all)",
        "keys",
        "DEGREES",
        unit="degrees",
    ),
    Option(
        BakeSettings,
        "reduce_error",
        "leave out keys where the end of each chain stays this near to it (default: 0, keep all)",
        "keys",
        "METRES",
    ),
    Option(
        BakeSettings,
        "switch_to_fk",
        "do not key the rig's switches between IK and FK to FK where baked bones would move nothing",
        "play",
        word="keep_switches",
    ),
    Option(
        BakeSettings,
        "verify",
        "do not evaluate the frames once more after the bake to see what really plays",
        "play",
    ),
)
_NAMED = {*(each.name for each in _OPTIONS), "error_reduction"}  # which is the armature's alone
OPTIONS = (
    *_OPTIONS,
    *(Option(BakeSettings, name, group="play", metavar="N") for name in PLAIN if name not in _NAMED),
)
"""The options of settings that are numbers and switches."""


# --- arguments ----------------------------------------------------------------------------------------------


def add_commands(commands: Any) -> None:
    """Add `bake` and `check` to the subparsers of the parser."""
    words = "bake the CCD constraints of an armature to keys"
    command = files.add_command(commands, "bake", words, EXAMPLES, run)
    _add_file_arguments(command, takes_all=True)
    add_frame_arguments(command)
    add_key_arguments(command)
    add_play_arguments(command)
    files.add_arguments(command, "FILE", "the baked keys", "the report")
    command.add_argument(
        "--strict",
        action="store_true",
        help="exit code 3 if targets are missed at some frames, solved or between them, or keys do not play "
        "as baked or move nothing",
    )
    words = "list what is wrong with the CCD constraints"
    command = files.add_command(commands, "check", words, CHECK_EXAMPLES, run_check)
    _add_file_arguments(command, takes_all=False)
    files.add_trust_arguments(command, "FILE")


def _add_file_arguments(command: argparse.ArgumentParser, takes_all: bool) -> None:
    """Add the file, its armature or all of its armatures, and the constraints."""
    file = "the .blend file (default: the one that is open)"
    command.add_argument("file", nargs="?", metavar="FILE", help=file)
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--armature",
        type=files.valid_name,
        metavar="NAME",
        help="armature object (needed if several have constraints)",
    )
    if takes_all:
        words = "bake every armature of the scene that has constraints, in one pass"
        which.add_argument("--all", action="store_true", help=words)
    add_constraint_argument(command)


def add_constraint_argument(command: Words) -> None:
    command.add_argument(
        "--constraint",
        type=files.valid_name,
        action="append",
        default=[],
        metavar="NAME",
        help="only this constraint; may be given several times (default: all that are enabled)",
    )


def add_frame_arguments(command: Words) -> None:
    """Add the frames and the settings of their solves."""
    add = command.add_argument
    add(
        "--frames",
        type=files.frame_range,
        metavar="FIRST-LAST",
        help="frames to bake, as 1-250, -10-250 or 1:250 (default: the scene's frame range)",
    )
    _add_options(command, "frames")
    add(
        "--solver",
        choices=tuple(SOLVERS),
        help="CCD alone, or CCD and least squares (default: the armature's own setting)",
    )
    add(
        "--body",
        choices=tuple(BODIES),
        help="with planted bones: the bone that carries the figure keeps its animation, follows the feet, "
        "or walks on over them (default: the armature's own setting)",
    )
    add(
        "--body-helps",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="where a chain alone misses its target, spine, clavicles and hips go along (default: the "
        "armature's own setting)",
    )
    add(
        "--start",
        choices=[start.name.lower() for start in Start],
        default=BakeSettings.start.name.lower(),
        help="where frames start from: what plays, and rest for bones without keys; what played before the "
        "first bake; rest; or the pose as it stands (default: %(default)s)",
    )


def add_key_arguments(command: Words) -> None:
    """Add the frames that get keys, the destination of the keys, and key reduction."""
    add = command.add_argument
    add(
        "--keys",
        choices=tuple(KEYS),
        default="every",
        help="keys on every frame, on solved frames only, where targets have keys, or where "
        "--reference-keys has some (default: %(default)s)",
    )
    add(
        "--reference-keys",
        type=files.valid_name,
        metavar="OBJECT[/BONE]",
        help="with --keys reference: the object, or bone of it, whose keys say where to key",
    )
    destination = command.add_mutually_exclusive_group()
    destination.add_argument(
        "--current-action",
        action="store_true",
        help="write into the present action (default: a new one; the old one stays in the file)",
    )
    destination.add_argument(
        "--nla-strip",
        action="store_true",
        help="write a new action into an NLA strip above all others; what is there plays on below it",
    )
    _add_options(command, "keys")


def add_play_arguments(command: Words) -> None:
    """Add the check of the playback, the handling of IK/FK switches, and what belongs to no other group."""
    _add_options(command, "play")


def _add_options(command: Words, group: str) -> None:
    """Add a group of the bake's options."""
    for option in OPTIONS:
        if option.group == group:
            option.add(command)


def bake_settings(options: argparse.Namespace, scene: bpy.types.Scene) -> BakeSettings:
    """Make the settings of a bake; the frame range is the scene's unless an option names one.

    Raises:
        UsageError: options contradict each other.
    """
    first, last = options.frames or (scene.frame_start, scene.frame_end)
    try:
        return BakeSettings(
            frame_start=first,
            frame_end=last,
            keys=KEYS[options.keys],
            **_reference(options),
            destination=_destination(options),
            constraints=tuple(options.constraint),
            start=Start[options.start.upper()],
            solver=SOLVERS[options.solver] if options.solver else None,
            body=BODIES[options.body] if options.body else "",
            body_helps=options.body_helps,
            **{option.name: option.value(options) for option in OPTIONS},
        )
    except InvalidInput as error:
        raise UsageError(str(error)) from error


def _reference(options: argparse.Namespace) -> dict[str, str]:
    """Split --reference-keys at its last slash into object and bone; names of objects may have slashes."""
    if (options.reference_keys is None) == (options.keys == "reference"):
        raise UsageError("--keys reference needs --reference-keys OBJECT, and the other way round")
    name = options.reference_keys or ""
    if name in bpy.data.objects or "/" not in name:
        return {"reference_object": name}
    reference, _, bone = name.rpartition("/")
    return {"reference_object": reference, "reference_bone": bone}


def _destination(options: argparse.Namespace) -> Destination:
    if options.nla_strip:
        return Destination.NLA_STRIP
    return Destination.CURRENT_ACTION if options.current_action else Destination.NEW_ACTION


# --- commands -----------------------------------------------------------------------------------------------


def run(options: argparse.Namespace, check: Check) -> Exit:
    """Bake."""
    _open(options)
    files.require(Path(options.file or bpy.data.filepath), options)
    scene = bpy.context.scene
    settings = bake_settings(options, scene)
    armatures = rigs_to_bake(scene) if options.all else [armature_of(scene, options.armature)]
    with _progress_line(options.quiet, check) as progress:
        if options.all:
            shares = settings_of_rigs(armatures, settings)
            results = bake_all.bake_all(scene, shares, progress)
        else:
            results = [bake(scene, armatures[0], settings, progress)]
    check()
    for warning in (warning for result in results for warning in result.warnings):
        files.warn(warning)
    if options.output is not None:
        files.save_as(options.output)
    if options.report is not None:
        report.save(results if options.all else results[0], options.report)
    for result in results:
        _tell(result, options.quiet)
    is_met = all(result.reaches_all for result in results)
    return Exit.NOT_REACHED if options.strict and not is_met else Exit.DONE


def _tell(result: report.BakeReport, quiet: bool) -> None:
    """Print the outcome of an armature's bake."""
    for fault in result.mismatches():
        files.warn(f"{result.armature}: {fault}")
    if advice := result.advice():
        files.warn(f"{result.armature}: {advice}")
    if not result.is_sound:
        files.warn(f"{result.armature}: {result.summary()}")
    elif not quiet:
        files.say(f"{result.armature}: {result.summary()}")
    if not quiet:
        for run in result.smoothed:
            if run.is_seen:
                files.say(f"{result.armature}: {run.words()}")
        times = f"baked in {result.seconds:.1f} s"
        if result.check is not None:
            times = f"{result.check.words()}; {times}, checked in {result.check.seconds:.1f} s"
        files.say(f"{result.armature}: {times}")


def run_check(options: argparse.Namespace, _check: Check) -> Exit:
    """List the problems of set-ups."""
    _open(options)
    scene = bpy.context.scene
    armatures = [armature_of(scene, options.armature)] if options.armature else _rigged(scene)
    if not armatures:
        raise RigError(_none_rigged())
    errors = 0
    for armature_object, constraints in _constraints_of_rigs(armatures, options.constraint).items():
        problems = checks.problems(armature_object, scene, constraints)
        for problem in problems:
            files.say(f"{problem.severity}: {armature_object.name}: {problem.message}")
        if not problems and not options.quiet:
            files.say(f"{armature_object.name}: no problems")
        errors += sum(problem.severity == "ERROR" for problem in problems)
    return Exit.PROBLEMS if errors else Exit.DONE


def _open(options: argparse.Namespace) -> None:
    if options.file is not None:
        files.open_input(Path(options.file), options)
    elif not bpy.data.filepath:
        raise UsageError("no file is open: name the .blend file to work on")


def _rigged(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """Armature objects of the scene with constraints."""
    return [o for o in scene.objects if o.type == "ARMATURE" and len(o.ccd_rig.constraints)]


def _none_rigged() -> str:
    return "no armature in the file's active scene has CCD constraints: add one in the CCD Rig panel"


def settings_of_rigs(
    armatures: Sequence[bpy.types.Object], settings: BakeSettings
) -> dict[bpy.types.Object, BakeSettings]:
    """Settings of each armature object that has one of the constraints to bake, with those it has.

    Raises:
        RigError: none of several has a constraint of a name.
    """
    shares = _constraints_of_rigs(armatures, settings.constraints)
    return {rig: replace(settings, constraints=names) for rig, names in shares.items()}


def _constraints_of_rigs(
    armatures: Sequence[bpy.types.Object], names: Sequence[str]
) -> dict[bpy.types.Object, tuple[str, ...]]:
    if not names or len(armatures) == 1:
        return dict.fromkeys(armatures, tuple(names))
    shares = {rig: tuple(n for n in names if n in rig.ccd_rig.constraints) for rig in armatures}
    for name in names:
        if not any(name in share for share in shares.values()):
            rigs = shown(", ".join(rig.name for rig in armatures))
            raise RigError(f"no armature has a constraint '{shown(name)}'; with CCD constraints: {rigs}")
    return {rig: share for rig, share in shares.items() if share}


def armature_of(scene: bpy.types.Scene, name: str | None) -> bpy.types.Object:
    """Return the armature object called `name`, or the only one with constraints."""
    rigged = _rigged(scene)
    names = ", ".join(o.name for o in rigged)
    if name is None:
        if not rigged:
            raise RigError(_none_rigged())
        if len(rigged) > 1:
            raise UsageError(
                f"several armatures have CCD constraints ({names}): name one with --armature, or use --all"
            )
        return rigged[0]
    armature_object = scene.objects.get(name)
    if armature_object is None or armature_object.type != "ARMATURE":
        raise RigError(
            f"there is no armature object '{name}' in the scene; with CCD constraints: {names or 'none'}"
        )
    return armature_object


@contextlib.contextmanager
def _progress_line(quiet: bool, check: Check) -> Iterator[Callable[[Progress], None]]:
    """Give a function for `bake`'s progress that checks, and shows a slow bake's on standard error."""
    terminal = sys.stderr.isatty()
    pause = REDRAW if terminal else RELOG
    shown = time.monotonic() + SLOW - pause
    drawn, pace = False, Pace()

    def show(progress: Progress) -> None:
        nonlocal shown, drawn
        check()
        pace.take(progress)
        now = time.monotonic()
        if quiet or now - shown < pause:
            return
        line = pace.words(progress)
        print(
            f"\r\x1b[K{line}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True
        )
        shown, drawn = now, terminal

    try:
        yield show
    finally:
        if drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
