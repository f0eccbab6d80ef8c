# SPDX-License-Identifier: GPL-3.0-or-later
"""Input, output, messages and exit codes of all commands, and the arguments that they share."""

from __future__ import annotations

import argparse
import contextlib
import enum
import errno
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import bpy

from ...json_text import printable
from .. import atomic_write
from ..bake import report
from ..farm import results
from ..keys.channels import newer_than_blender
from ..languages.translation import of_bones
from ..registration import field_help

COMMAND = "ccd_rig"
Words: TypeAlias = argparse.ArgumentParser | argparse._ArgumentGroup
"""A parser, or a group of its arguments."""
LOOK: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
"""Keyword arguments that all parsers share."""


class Exit(enum.IntEnum):
    """Exit codes; `--help` lists them."""

    DONE = 0
    PROBLEMS = 1
    USAGE = 2
    NOT_REACHED = 3
    NOT_WRITTEN = 4
    INTERRUPTED = 130


EPILOG = """\
exit codes:
  0    done (bake: also when frames are not reached, with a warning; see --strict)
  1    check: found errors; others: FILE lacks what is named or cannot be worked on, nothing is written
       (retarget: but the clips that could be carried over)
  2    wrong arguments, FILE cannot be opened, or it has several armatures and none is named
  3    bake --strict: written, but targets are missed, or keys do not play as baked or move nothing
  4    the output or the report could not be written
  130  interrupted, nothing is written
"""


class UsageError(Exception):
    """Arguments that no set-up in the file makes valid."""


def say(words: str) -> None:
    """Print lines on standard output."""
    print(_lines(words), flush=True)


@contextlib.contextmanager
def report_alone(options: argparse.Namespace) -> Iterator[None]:
    """Send all else, Blender's words too, to standard error if the report goes to /dev/stdout."""
    path = getattr(options, "report", None)
    try:
        is_there = path is not None and os.path.samestat(os.stat(path), os.fstat(1))
    except OSError:  # it is a new file, or there is no standard output
        is_there = False
    if not is_there:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    options.report = kept
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def complain(words: str) -> None:
    """Print lines on standard error."""
    print(_lines(of_bones(words)), file=sys.stderr, flush=True)


def warn(words: str) -> None:
    """Print a warning on standard error."""
    complain(f"{COMMAND}: warning: {words}")


def _lines(words: str) -> str:
    return "\n".join(map(printable, words.split("\n")))


LONGEST_PATH = 1023
"""Largest length of a path in Blender, in bytes."""
_NO_TEXT = "its path is not in UTF-8, and Blender takes no other"
_TOO_LONG = f"its path is longer than the {LONGEST_PATH} bytes that Blender keeps"


def open_file(path: Path, trust: bool) -> str | None:
    """Open a file; `trust` lets its scripts run.

    Returns:
        Blender's name of a script that was not run; None if there is no such script.

    Raises:
        UsageError: the file is missing, or not one that this Blender reads.
    """
    try:
        path.resolve(strict=True)
        place = atomic_write.real_folder(path)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except OSError as error:
        raise UsageError(f"cannot open {path}: {error.strerror}") from error
    except RuntimeError as error:  # how Python 3.11 names a circle of links
        raise UsageError(f"cannot open {path}: {os.strerror(errno.ELOOP)}") from error
    if not place.is_file():
        raise UsageError(f"cannot open {path}: it is not a file")
    require_text(place)
    if _is_too_long(place):
        raise UsageError(f"cannot open {path}: {_TOO_LONG}")
    scripts = {"use_scripts": True} if trust else {}
    try:
        bpy.ops.wm.open_mainfile(filepath=str(place), load_ui=False, **scripts)
    except RuntimeError as error:  # how Blender's operators report; the first line says why
        # Blender before 5.0 does not know the header that later ones write.
        is_newer = "not a blend file" in str(error)
        hint = " (or one of a newer Blender than this)" if is_newer else ""
        raise UsageError(f"cannot open {path}: {_first_line(error)}{hint}") from error
    return bpy.app.autoexec_fail_message if bpy.app.autoexec_fail else None


def open_input(path: Path, options: argparse.Namespace) -> None:
    """Open the file of a command as `open_file` does, with a warning of scripts that are not run."""
    skipped = open_file(path, options.enable_autoexec)
    if skipped is not None:
        warn(f"{path}: {skipped} was not run; use --enable-autoexec if you trust the file")


def lost_in(path: Path) -> str:
    """Say that a newer Blender has saved the open file; empty if none has."""
    if (versions := newer_than_blender()) is None:
        return ""
    saved, here = versions
    return (
        f"{path} is of file version {saved}, that of this Blender is {here}: what this Blender does not know "
        "would be lost"
    )


def end(options: argparse.Namespace, content: Any, lines: Iterable[str]) -> None:
    """Write the content of the report as JSON, if one is wanted, and print lines, unless they are not."""
    if options.report is not None:
        report.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n", options.report)
    if not options.quiet:
        say("\n".join(lines))


def require_text(path: Path) -> None:
    """Raise UsageError if a path is not in UTF-8, which Blender needs."""
    if not _is_text(path):
        raise UsageError(f"cannot open {path}: {_NO_TEXT}")


def save_as(path: Path) -> None:
    """Save the open file under another name, atomically.

    Raises:
        WriteError: the folder cannot be written, or the disk is full.
    """
    with atomic_write.replacing(path) as temporary:
        if not _is_text(temporary):
            raise atomic_write.WriteError(f"cannot write {path}: {_NO_TEXT}")
        if _is_too_long(temporary):
            raise atomic_write.WriteError(f"cannot write {path}: {_TOO_LONG}")
        temporary.unlink()  # Blender would keep the empty file as a backup
        leftover = temporary.with_name(f"{temporary.name}@")  # Blender writes it, and then renames it
        with open(bpy.data.filepath, "rb") as file:  # magic numbers of Zstandard; of gzip before Blender 3.0
            is_compressed = file.read(4).startswith((b"\x28\xb5\x2f\xfd", b"\x1f\x8b"))
        try:
            bpy.ops.wm.save_as_mainfile(filepath=str(temporary.resolve()), copy=True, compress=is_compressed)
        except RuntimeError as error:
            # Blender's reason may be of a later step ("No such file"): likely reasons come first.
            reason = f"is the disk full, or the folder read-only? Blender says: {_first_line(error)}"
            raise atomic_write.WriteError(f"cannot write {path}: {reason}") from error
        finally:
            leftover.unlink(missing_ok=True)
        if not _is_whole(temporary):
            raise atomic_write.WriteError(
                f"cannot write {path}: is the disk full? Only a part of it was saved"
            )


def _is_text(path: Path) -> bool:
    """Whether a path is in UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:  # Python's stand-ins for bytes of another encoding
        return False
    return True


def _is_too_long(path: Path) -> bool:
    # Blender truncates longer paths, and then opens or writes another file. It adds "@" when it saves.
    return len(os.fsencode(path)) + len("@") > LONGEST_PATH


def _is_whole(path: Path) -> bool:
    """Whether a .blend file was saved to its end. Blender does not notice truncated compressed files.

    Compressed files end with the magic number of a Zstandard seek table. Others end with the block ENDB, of
    at most 32 bytes.
    """
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 32))
        end = file.read()
    return end.endswith(b"\xb1\xea\x92\x8f") or b"ENDB" in end


def _first_line(error: Exception) -> str:
    """Reason of an error of Blender's operators: "Error: reason", with more lines below."""
    words = str(error).strip().splitlines() or ["unknown reason"]
    return words[0].removeprefix("Error: ")


def add_trust_arguments(command: argparse.ArgumentParser, file: str) -> None:
    """Add --enable-autoexec, see `open_input`, and --quiet; `file` is the file's metavar."""
    add = command.add_argument
    trust = f"run scripted drivers in {file}; only for files you trust"
    add("--enable-autoexec", action="store_true", help=trust)
    add("--quiet", action="store_true", help="only errors and warnings")


def add_arguments(command: argparse.ArgumentParser, file: str, result: str, reported: str) -> None:
    """Add --output, --report and --allow-data-loss, and those of `add_trust_arguments`.

    Args:
        file: metavar of the file that is changed.
        result: content of the output, in words.
        reported: content of the report, in words.
    """
    add = command.add_argument
    add("--output", type=Path, metavar="FILE", help=f"where to save the .blend file with {result}")
    add("--report", type=Path, metavar="FILE", help=f"where to save {reported} as JSON")
    add(
        "--allow-data-loss",
        action="store_true",
        help=f"save the output even if a newer Blender has saved {file}, without what this one does not know",
    )
    add_trust_arguments(command, file)


class Option(NamedTuple):
    """An option of a command for a number or switch among settings. Its default is the field's."""

    settings: Any  # the dataclass of the settings
    name: str  # of the field
    help: str = ""  # of the option; empty: the field's line of help
    group: str = ""  # of options that stand together in the help
    metavar: str | None = None  # for its value; None: its name
    unit: str = ""  # of its value; a field whose option takes "degrees" has radians
    word: str = ""  # without its hyphens; empty: the field's name, after "no" if the field is on by default

    @property
    def default(self) -> Any:
        """Default of the setting."""
        return next(each.default for each in fields(self.settings) if each.name == self.name)

    @property
    def key(self) -> str:
        """Name of the option among those that were parsed."""
        return self.word or (f"no_{self.name}" if self.default is True else self.name)

    def add(self, words: Words) -> None:
        """Add the option to a parser, or to a group of one."""
        default, text = self.default, self.help
        if not text:
            text = field_help(self.settings, self.name)
            text = f"switch off: {text}" if default is True else f"{text[:1].lower()}{text[1:]}"
            text += f", {self.unit}" if self.unit else ""
        word = f"--{self.key.replace('_', '-')}"
        if isinstance(default, bool):
            words.add_argument(word, action="store_true", help=text)
            return
        default = math.degrees(default) if self.unit == "degrees" else default
        if "default" not in text:
            text += " (default: %(default).3g)"
        words.add_argument(word, type=type(default), default=default, metavar=self.metavar, help=text)

    def value(self, options: argparse.Namespace) -> Any:
        """The value of the setting."""
        value = getattr(options, self.key)
        if isinstance(self.default, bool):
            return value != self.default
        return math.radians(value) if self.unit == "degrees" else value


def require(file: Path, options: argparse.Namespace, read: Mapping[Path, str] | None = None) -> None:
    """Check before the work that output and report can be written, and overwrite no other file.

    Args:
        file: path of the open file. The output may replace it.
        read: {path: its description} of further files that the command reads. None may be overwritten.

    Raises:
        UsageError: output or report would overwrite an input, or the report the output; or a newer Blender
            has saved the file, whose unknown data the output would lack.
        WriteError: a path cannot be written.
    """
    also = {**dict.fromkeys(results.linked_files(), "a file that it uses"), **(read or {})}
    if options.output is not None:
        _require_place(options.output, "output", also)
        if not options.allow_data_loss and (lost := lost_in(file)):
            advice = "use a Blender as new as the file, or allow it by --allow-data-loss"
            raise UsageError(f"{lost} in the output; {advice}")
    if options.report is None or report.is_stream(options.report):
        return
    also |= {file: "the file"} | ({} if options.output is None else {options.output: "the output"})
    _require_place(options.report, "report", also)


def _require_place(path: Path, name: str, others: Mapping[Path, str]) -> None:
    place = atomic_write.require_writable(path)
    for other, words in others.items():
        if atomic_write.is_same(place, other):
            raise UsageError(
                f"the {name} would take the place of {words}, {other}: give --{name} another path"
            )


Check = Callable[[], None]
"""Raises KeyboardInterrupt if the command is to end."""
Run = Callable[[argparse.Namespace, Check], Exit]
"""Runs a command with its options."""


def add_command(commands: Any, name: str, words: str, examples: str, run: Run) -> argparse.ArgumentParser:
    """Add a command to the subparsers of the parser, described by `words`; the options have its `run`."""
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=words, description=f"{words[0].upper()}{words[1:]}.", epilog=examples + EPILOG, **LOOK
    )
    command.set_defaults(run=run)
    return command


def frame_range(words: str) -> tuple[int, int]:
    """Accept first and last frame, such as 1-250, -10-250 or 1:250."""
    match = re.fullmatch(r"\s*([+-]?\d+)\s*[-:]\s*([+-]?\d+)\s*", words)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{words}' is not a frame range such as 1-250, -10-250 or 1:250")
    return int(match[1]), int(match[2])


def valid_name(words: str) -> str:
    """Accept a name in UTF-8, as .blend files have them."""
    try:
        words.encode()
    except UnicodeEncodeError:  # bytes of another encoding
        raise argparse.ArgumentTypeError(f"{words!a} is not a name in UTF-8") from None
    return words
