"""The words of `ccd_rig farm`, and of the commands that its jobs run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FARM = "farm"
TASKS = ("farm-bake", "farm-join", "farm-table")
"""Commands that a job runs; people do so to find out why a task fails."""

EXAMPLES = """\
examples:
  blender -b --command ccd_rig farm shots/*.blend --output job --chunk 500
  python -m ccd_rig farm shot_010.blend shot_020.blend --output job --frames 1-250
  python -m ccd_rig farm long.blend --output job --chunk 500 --jobs 2

"""

_Add = Callable[[argparse.ArgumentParser], None]


def add(commands: Any, look: dict[str, Any], bake_arguments: Sequence[_Add], epilog: str) -> None:
    """Add the commands.

    Args:
        commands: the parser's.
        look: what all commands are made with.
        bake_arguments: add the options of a bake.
        epilog: of the help.
    """
    words = "write a job for a render farm that bakes .blend files"
    farm = commands.add_parser(
        FARM, help=words, description=f"{words[0].upper()}{words[1:]}.", epilog=EXAMPLES + epilog, **look
    )
    farm.add_argument("files", nargs="+", type=Path, metavar="FILE", help="the .blend files; none is changed")
    _add_job_arguments(farm)
    for each in bake_arguments:
        each(farm)
    for name, words in zip(
        TASKS, ("bake one part of a job", "join the chunks of a shot", "write the table"), strict=False
    ):
        task = commands.add_parser(name, description=f"As a job does: {words}.", epilog=epilog, **look)
        if name != "farm-table":
            task.add_argument("shot", type=Path, metavar="FILE", help="the .blend file")
        if name == "farm-bake":
            task.add_argument("--part", type=int, required=True, metavar="K", help="of its chunks, from 1")
        task.add_argument("--settings", type=Path, required=True, metavar="FILE", help="of the bundle")
        task.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the results")


def _add_job_arguments(farm: argparse.ArgumentParser) -> None:
    farm.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the job bundle")
    farm.add_argument(
        "--chunk",
        type=_count,
        default=0,
        metavar="N",
        help="share longer shots out in chunks of at most N frames (default: each shot is one task)",
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


def _count(words: str) -> int:
    if not words.isdecimal():
        raise argparse.ArgumentTypeError(f"'{words}' is not a whole number of 0 or more")
    return int(words)
