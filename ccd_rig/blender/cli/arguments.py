# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments of the commands, and the settings of a bake made from them."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

import bpy

from ...errors import InvalidInput
from ...json_text import printable
from ...settings import Solver
from ..bake.settings import DEFAULTS, PLAIN, BakeSettings, Keys, Start
from ..keys.writer import Destination
from ..properties import body
from ..properties.solver_settings import field_help
from . import figure_command, files, retarget_command, walk_command
from .files import Exit, UsageError
from .retarget_command import Words

COMMAND = "ccd_rig"
FARM = "farm"
TASKS = {
    "farm-bake": "bake one part of a job",
    "farm-join": "join the chunks of a shot",
    "farm-retarget": "put a clip onto an armature",
    "farm-table": "write the table",
}
"""{command of a farm job: its help}; people run these to learn why a task fails."""

KEYS = {
    "every": Keys.EVERY_FRAME,
    "solved": Keys.SOLVED_FRAMES,
    "targets": Keys.TARGET_KEYS,
    "reference": Keys.REFERENCE_KEYS,
}

SOLVERS = {solver.name.lower().replace("_", "-"): solver for solver in Solver}

BODIES = {"auto": body.AUTO, "keep": body.KEEP_ANIMATION, "follow": body.FOLLOW_FEET, "walk": body.WALK_ON}

EPILOG = """\
exit codes:
  0    done (bake: also when frames are not reached, with a warning; see --strict)
  1    check: found errors; bake: the set-up in the file cannot be baked, nothing is written
  2    wrong arguments, or FILE cannot be opened
  3    bake --strict: written, but some frames are not reached
  4    the output or the report could not be written
  130  interrupted, nothing is written
"""

EXAMPLES = {
    "bake": """\
examples:
  blender -b shot.blend --command ccd_rig bake --output baked.blend
  python -m ccd_rig bake shot.blend --frames 1-250 --step 2 --output baked.blend --report baked.json
  python -m ccd_rig bake shot.blend --armature Rig --constraint "Hand L" --constraint "Hand R" \\
      --frames -10-250 --keys solved --current-action --output shot.blend --strict

FILE is changed only if --output names it.

""",
    "check": """\
examples:
  blender -b shot.blend --command ccd_rig check
  python -m ccd_rig check shot.blend --armature Rig

""",
}

FARM_EXAMPLES = """\
examples:
  blender -b --command ccd_rig farm shots/*.blend --output job --chunk 500
  python -m ccd_rig farm shot_010.blend shot_020.blend --output job --frames 1-250
  python -m ccd_rig farm long.blend --output job --chunk 500 --jobs 2
  python -m ccd_rig farm clips/ more/walk.bvh --retarget hero.blend --output job --reference frame

"""

Add: TypeAlias = Callable[[Words], None]


class Word(NamedTuple):
    """A setting of a bake on the command line.

    Attributes:
        name: of the setting.
        word: its option; of a setting that is on by default, what switches it off.
        help: of the option.
        group: "frames", "keys" or "play", in which it stands in the help.
        metavar: for its value.
        is_angle: whether it takes degrees.
    """

    name: str
    word: str
    help: str
    group: str = "play"
    metavar: str = "N"
    is_angle: bool = False

    @classmethod
    def of(cls, name: str) -> Word:
        """The word that follows from the field of a setting, and from its line of help."""
        default, help_line = DEFAULTS[name], field_help(BakeSettings, name)
        if default is True:
            return cls(name, f"--no-{name.replace('_', '-')}", f"switch off: {help_line}")
        shown = "" if default is False else " (default: %(default)s)"
        return cls(name, f"--{name.replace('_', '-')}", f"{help_line[:1].lower()}{help_line[1:]}{shown}")

    def add(self, words: Words) -> None:
        """Add the option to a parser, or to a group of one."""
        default: Any = DEFAULTS[self.name]
        if isinstance(default, bool):
            words.add_argument(self.word, action="store_true", help=self.help)
            return
        default = math.degrees(default) if self.is_angle else default
        told = {"metavar": self.metavar, "help": self.help}
        words.add_argument(self.word, type=type(default), default=default, **told)

    def value(self, options: argparse.Namespace) -> Any:
        """The value of the setting."""
        value, default = getattr(options, self.word.lstrip("-").replace("-", "_")), DEFAULTS[self.name]
        if isinstance(default, bool):
            return value != default
        return math.radians(value) if self.is_angle else value


_WORDS = (
    Word("step", "--step", "solve every N-th frame, slerp between (default: %(default)s)", "frames"),
    Word(
        "preroll",
        "--preroll",
        "solve N frames before the first too, without keys: planted bones may have come down there "
        "(default: %(default)s)",
        "frames",
    ),
    Word(
        "smoothness",
        "--smoothness",
        "smooth sudden turns between frames, 0 to 1000; 0: each frame for itself (default: %(default)s)",
        "frames",
    ),
    Word(
        "reduce_angle",
        "--reduce-angle",
        "leave out keys where each bone stays this near to the full motion (default: 0, keep all)",
        "keys",
        "DEGREES",
        is_angle=True,
    ),
    Word(
        "reduce_error",
        "--reduce-error",
        "leave out keys where the end of each chain stays this near to it (default: 0, keep all)",
        "keys",
        "METRES",
    ),
    Word(
        "switch_to_fk",
        "--keep-switches",
        "do not key the rig's switches between IK and FK to FK where baked bones would move nothing",
    ),
    Word(
        "verify",
        "--no-verify",
        "do not evaluate the frames once more after the bake to see what really plays",
    ),
)
_NAMED = {*(each.name for each in _WORDS), "error_reduction"}  # which is the armature's alone
WORDS = (*_WORDS, *(Word.of(name) for name in PLAIN if name not in _NAMED))
"""The options of settings that are numbers and switches."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the words after `ccd_rig`; `command` of the options is the command's name.

    Raises:
        SystemExit: the words are wrong or ask for help; errors and help are printed.
    """
    words: list[str] = []
    for word in argv:
        # "--frames=-10-250" is one word: argparse would take a second word with a minus for an option.
        if words and words[-1] == "--frames" and re.match(r"-\d", word):
            words[-1] = f"--frames={word}"
        else:
            words.append(word)
    return _parser().parse_args(words)


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
            **{word.name: word.value(options) for word in WORDS},
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


def non_default(options: argparse.Namespace, adders: Sequence[Add]) -> list[str]:
    """Names of the options added by `adders` that differ from their defaults."""
    probe = argparse.ArgumentParser(add_help=False)
    for add_options in adders:
        add_options(probe)
    defaults = vars(probe.parse_args([]))
    return [
        f"--{name.replace('_', '-')}" for name, value in defaults.items() if getattr(options, name) != value
    ]


# --- the parser ---------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.USAGE, f"{self.prog}: error: {printable(message)} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    look = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = _Parser(
        prog=COMMAND, description="Pose armatures by CCD and bake them to keys.", epilog=EPILOG, **look
    )
    commands = parser.add_subparsers(
        title="commands",
        dest="command",
        required=True,
        metavar="bake | check | figure | retarget | walk | farm",
    )
    for name, words in (
        ("bake", "bake the CCD constraints of an armature to keys"),
        ("check", "list what is wrong with the CCD constraints"),
    ):
        command = _add_command(commands, name, words, EXAMPLES[name], look)
        _add_file_arguments(command, name)
        if name == "bake":
            _add_frame_arguments(command)
            _add_key_arguments(command)
            _add_play_arguments(command)
            files.add_arguments(command, "FILE", "the baked keys", "the report")
            command.add_argument(
                "--strict", action="store_true", help="exit code 3 if some frames are not reached"
            )
    for name, module, words in (
        ("figure", figure_command, "recognise a figure and set it up"),
        ("retarget", retarget_command, "carry motion over to the armature of a file"),
        ("walk", walk_command, "walk along a curve over the ground"),
    ):
        module.add_arguments(_add_command(commands, name, words, module.EXAMPLES, look))
    _add_farm_commands(commands, look)
    return parser


def _add_command(
    commands: Any, name: str, words: str, examples: str, look: dict[str, Any]
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=words, description=f"{words[0].upper()}{words[1:]}.", epilog=examples + EPILOG, **look
    )
    return command


def _add_file_arguments(command: argparse.ArgumentParser, name: str) -> None:
    """Add the file, its armature and the constraints."""
    add = command.add_argument
    add("file", nargs="?", metavar="FILE", help="the .blend file (default: the one that is open)")
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--armature",
        type=_name,
        metavar="NAME",
        help="armature object (needed if several have constraints)",
    )
    if name == "bake":
        which.add_argument(
            "--all",
            action="store_true",
            help="bake every armature of the scene that has constraints, in one pass",
        )
    _add_constraint_argument(command)
    files.add_trust_argument(command, "FILE")
    add("--quiet", action="store_true", help="only errors and warnings")


def _add_constraint_argument(command: Words) -> None:
    command.add_argument(
        "--constraint",
        type=_name,
        action="append",
        default=[],
        metavar="NAME",
        help="only this constraint; may be given several times (default: all that are enabled)",
    )


def _add_frame_arguments(command: Words) -> None:
    """Add the frames and the settings of their solves."""
    add = command.add_argument
    add(
        "--frames",
        type=_frame_range,
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


def _add_key_arguments(command: Words) -> None:
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
        type=_name,
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


def _add_play_arguments(command: Words) -> None:
    """Add the check of the playback, the handling of IK/FK switches, and what belongs to no other group."""
    _add_options(command, "play")


def _add_options(command: Words, group: str) -> None:
    """Add the words of a group of the bake's options."""
    for word in WORDS:
        if word.group == group:
            word.add(command)


def _add_chunk_argument(command: Words) -> None:
    command.add_argument(
        "--chunk",
        type=_count,
        default=0,
        metavar="N",
        help="share longer shots out in chunks of at most N frames (default: each shot is one task)",
    )


FARM_BAKE_ARGUMENTS: tuple[Add, ...] = (
    _add_chunk_argument,
    _add_constraint_argument,
    _add_frame_arguments,
    _add_key_arguments,
    _add_play_arguments,
)
"""Functions that add the options of a farm's bakes."""


def _add_farm_commands(commands: Any, look: dict[str, Any]) -> None:
    """Add `farm` and the commands of its tasks to the parser's commands.

    Args:
        commands: the parser's subparsers.
        look: keyword arguments that all parsers share.
    """
    farm = _add_command(
        commands,
        FARM,
        "write a job for a render farm that bakes .blend files, or puts clips onto an armature",
        FARM_EXAMPLES,
        look,
    )
    farm.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="the .blend files, with --retarget clips or folders of them; none is changed",
    )
    _add_job_arguments(farm)
    farm.add_argument(
        "--armature",
        type=_name,
        metavar="NAME",
        help="armature object (default: all that have constraints; with --retarget the only one of TARGET)",
    )
    baking = farm.add_argument_group("how shots are baked")
    for add_options in FARM_BAKE_ARGUMENTS:
        add_options(baking)
    retarget_command.add_choice_arguments(
        farm.add_argument_group("how clips are carried over, with --retarget")
    )
    for name, words in TASKS.items():
        task = commands.add_parser(name, description=f"As a job does: {words}.", epilog=EPILOG, **look)
        if name == "farm-retarget":
            task.add_argument("clip", type=Path, metavar="CLIP", help="the file with the motion")
            task.add_argument("target", type=Path, metavar="TARGET", help="the .blend file with the armature")
        elif name != "farm-table":
            task.add_argument("shot", type=Path, metavar="FILE", help="the .blend file")
        if name == "farm-bake":
            task.add_argument("--part", type=int, required=True, metavar="K", help="of its chunks, from 1")
        task.add_argument("--settings", type=Path, required=True, metavar="FILE", help="of the bundle")
        task.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the results")


def _add_job_arguments(farm: argparse.ArgumentParser) -> None:
    farm.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the job bundle")
    farm.add_argument(
        "--retarget",
        type=Path,
        metavar="TARGET",
        help="put clips onto the armature of this .blend file instead of baking",
    )
    farm.add_argument(
        "--program",
        metavar="PROGRAM",
        help="what runs a task on the farm (default: blender, or python where this is python)",
    )
    farm.add_argument(
        "--jobs",
        type=_count,
        default=0,
        metavar="N",
        help="run the job here too, N tasks at once, each in a Blender of its own",
    )
    farm.add_argument("--quiet", action="store_true", help="only errors and warnings")


# --- values -------------------------------------------------------------------------------------------------


def _name(words: str) -> str:
    """Accept a name in UTF-8, as .blend files have them."""
    try:
        words.encode()
    except UnicodeEncodeError:  # bytes of another encoding
        raise argparse.ArgumentTypeError(f"{words!a} is not a name in UTF-8") from None
    return words


def _count(words: str) -> int:
    if not words.isdecimal():
        raise argparse.ArgumentTypeError(f"'{words}' is not a whole number of 0 or more")
    return int(words)


def _frame_range(words: str) -> tuple[int, int]:
    match = re.fullmatch(r"\s*([+-]?\d+)\s*[-:]\s*([+-]?\d+)\s*", words)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{words}' is not a frame range such as 1-250, -10-250 or 1:250")
    return int(match[1]), int(match[2])
