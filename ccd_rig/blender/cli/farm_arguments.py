"""The words of `ccd_rig farm`, and of the commands that its jobs run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from . import retarget_command
from .retarget_command import Words

FARM = "farm"
TASKS = {
    "farm-bake": "bake one part of a job",
    "farm-join": "join the chunks of a shot",
    "farm-retarget": "put a clip onto an armature",
    "farm-table": "write the table",
}
"""Commands that a job runs, and what they do; people run them to find out why a task fails."""

EXAMPLES = """\
examples:
  blender -b --command ccd_rig farm shots/*.blend --output job --chunk 500
  python -m ccd_rig farm shot_010.blend shot_020.blend --output job --frames 1-250
  python -m ccd_rig farm long.blend --output job --chunk 500 --jobs 2
  python -m ccd_rig farm clips/ more/walk.bvh --retarget hero.blend --output job --reference frame

"""

Add: TypeAlias = Callable[[Words], None]


def add(
    commands: Any, look: dict[str, Any], add_armature: Add, bake_arguments: Sequence[Add], epilog: str
) -> None:
    """Add the commands.

    Args:
        commands: the parser's.
        look: what all commands are made with.
        add_armature: adds the option that names it.
        bake_arguments: add the options of a bake.
        epilog: of the help.
    """
    words = "write a job for a render farm that bakes .blend files, or puts clips onto an armature"
    farm = commands.add_parser(
        FARM, help=words, description=f"{words[0].upper()}{words[1:]}.", epilog=EXAMPLES + epilog, **look
    )
    farm.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="the .blend files, with --retarget clips or folders of them; none is changed",
    )
    _add_job_arguments(farm)
    add_armature(farm)
    baking = farm.add_argument_group("how shots are baked")
    for each in bake_arguments:
        each(baking)
    retarget_command.add_choice_arguments(
        farm.add_argument_group("how clips are carried over, with --retarget")
    )
    for name, words in TASKS.items():
        task = commands.add_parser(name, description=f"As a job does: {words}.", epilog=epilog, **look)
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


def given(options: argparse.Namespace, adders: Sequence[Add]) -> list[str]:
    """Of the options that some functions add, those that are not as they are without words."""
    probe = argparse.ArgumentParser(add_help=False)
    for each in adders:
        each(probe)
    defaults = vars(probe.parse_args([]))
    return [
        f"--{name.replace('_', '-')}" for name, value in defaults.items() if getattr(options, name) != value
    ]


def add_chunk_argument(command: Words) -> None:
    """How a shot is shared out."""
    command.add_argument(
        "--chunk",
        type=_count,
        default=0,
        metavar="N",
        help="share longer shots out in chunks of at most N frames (default: each shot is one task)",
    )


def _count(words: str) -> int:
    if not words.isdecimal():
        raise argparse.ArgumentTypeError(f"'{words}' is not a whole number of 0 or more")
    return int(words)
