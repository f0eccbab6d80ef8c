"""`ccd_rig bake` and `ccd_rig check`: the same words after `blender -b FILE --command` and `python -m`."""

from __future__ import annotations

import argparse
import contextlib
import enum
import math
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import bpy

from ..errors import CCDRigError, InvalidInput, RigError
from . import checks, report
from .bake import BakeSettings, Keys, Order, Progress, bake
from .obstacles import Destination

COMMAND = "ccd_rig"

SLOW = 1.0  # [s] a bake that takes longer shows its progress
REDRAW = 0.1  # [s] from one progress line to the next on a terminal
RELOG = 10.0  # [s] the same where standard error goes to a file


class Exit(enum.IntEnum):
    """Exit codes; `--help` lists them."""

    DONE = 0
    PROBLEMS = 1
    USAGE = 2
    NOT_REACHED = 3
    NOT_WRITTEN = 4
    INTERRUPTED = 130


KEYS = {
    "every": Keys.EVERY_FRAME,
    "solved": Keys.SOLVED_FRAMES,
    "targets": Keys.TARGET_KEYS,
    "holder": Keys.HOLDER_KEYS,
}

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

_handles: list[Any] = []  # what Blender gave for the registered command; it is needed to take it away again


def register() -> None:
    """Make `blender --command ccd_rig` known."""
    _handles.append(bpy.utils.register_cli_command(COMMAND, main))


def unregister() -> None:
    """Take the command away again."""
    while _handles:
        bpy.utils.unregister_cli_command(_handles.pop())


def main(argv: Sequence[str]) -> int:
    """Run one command.

    Args:
        argv: the words after `ccd_rig`.

    Returns:
        The exit code, see `Exit`.
    """
    try:
        options = _parser().parse_args(_joined(argv))
    except SystemExit as end:  # argparse has already said why, or has shown the help
        return int(end.code or 0)
    # A Blender program in the background answers Ctrl-C by ending at once, with exit code 0.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _open(options)
        return int(options.run(options))
    except KeyboardInterrupt:
        return _fail("interrupted, nothing is written", Exit.INTERRUPTED)
    except _UsageError as error:
        return _fail(str(error), Exit.USAGE)
    except report.WriteError as error:
        return _fail(str(error), Exit.NOT_WRITTEN)
    except CCDRigError as error:
        return _fail(str(error), Exit.PROBLEMS)
    finally:
        if (
            before is not None
        ):  # None: Blender's own, which Python cannot put back; the command ends the program
            signal.signal(signal.SIGINT, before)


class _UsageError(Exception):
    """What was asked for makes no sense, whatever the set-up in the file is."""


# --- arguments ----------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.USAGE, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    look = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = _Parser(
        prog=COMMAND, description="Pose armatures by CCD and bake them to keys.", epilog=EPILOG, **look
    )
    commands = parser.add_subparsers(title="commands", dest="command", required=True, metavar="bake | check")
    for name, run, words in (
        ("bake", _bake, "bake the CCD constraints of an armature to keys"),
        ("check", _check, "list what is wrong with the CCD constraints"),
    ):
        command = commands.add_parser(
            name,
            help=words,
            description=f"{words[0].upper()}{words[1:]}.",
            epilog=EXAMPLES[name] + EPILOG,
            **look,
        )
        command.set_defaults(run=run)
        command.add_argument(
            "file", nargs="?", metavar="FILE", help="the .blend file (default: the one that is open)"
        )
        command.add_argument(
            "--armature", metavar="NAME", help="armature object (needed if several have constraints)"
        )
        command.add_argument(
            "--constraint",
            action="append",
            default=[],
            metavar="NAME",
            help="only this constraint; may be given several times (default: all that are enabled)",
        )
        if name == "bake":
            _add_bake_arguments(command)
        command.add_argument(
            "--enable-autoexec",
            action="store_true",
            help="run scripted drivers in FILE; only for files you trust",
        )
        command.add_argument("--quiet", action="store_true", help="only errors and warnings")
    return parser


def _add_bake_arguments(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--frames",
        type=_frame_range,
        metavar="FIRST-LAST",
        help="frames to bake, as 1-250, -10-250 or 1:250 (default: the scene's frame range)",
    )
    add(
        "--step",
        type=int,
        default=1,
        metavar="N",
        help="solve every N-th frame, slerp between (default: %(default)s)",
    )
    add(
        "--keys",
        choices=tuple(KEYS),
        default="every",
        help="keys on every frame, on solved frames only, where targets have keys, or where --key-holder has "
        "some (default: %(default)s)",
    )
    add(
        "--key-holder",
        metavar="OBJECT[/BONE]",
        help="with --keys holder: the object, or bone of it, whose keys say where to key",
    )
    add(
        "--preroll",
        type=int,
        default=0,
        metavar="N",
        help="solve N frames before the first too, without keys (default: %(default)s)",
    )
    add(
        "--order",
        choices=[order.name.lower() for order in Order],
        default=BakeSettings.order.name.lower(),
        help="in which order frames are solved (default: %(default)s)",
    )
    where = command.add_mutually_exclusive_group()
    where.add_argument(
        "--current-action",
        action="store_true",
        help="write into the present action (default: a new one; the old one stays in the file)",
    )
    where.add_argument(
        "--nla-strip",
        action="store_true",
        help="write a new action into an NLA strip above all others; what is there plays on below it",
    )
    add(
        "--reduce-angle",
        type=float,
        default=0.0,
        metavar="DEGREES",
        help="leave out keys where each bone stays this near to the full motion (default: 0, keep all)",
    )
    add(
        "--reduce-error",
        type=float,
        default=0.0,
        metavar="METRES",
        help="leave out keys where the end of each chain stays this near to it (default: 0, keep all)",
    )
    add(
        "--from-original",
        action="store_true",
        help="of a baked action, start from the motion before it was first baked",
    )
    add(
        "--no-verify",
        action="store_true",
        help="do not evaluate the frames once more after the bake to see what really plays",
    )
    add("--output", type=Path, metavar="FILE", help="where to save the .blend file with the baked keys")
    add("--report", type=Path, metavar="FILE", help="where to save the report as JSON")
    add("--strict", action="store_true", help="exit code 3 if some frames are not reached")


def _joined(argv: Sequence[str]) -> list[str]:
    """`--frames -10-250` as one word: argparse would take a word with a leading minus for an option."""
    words: list[str] = []
    for word in argv:
        if words and words[-1] == "--frames" and re.match(r"-\d", word):
            words[-1] = f"--frames={word}"
        else:
            words.append(word)
    return words


def _frame_range(words: str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*([+-]?\d+)\s*[-:]\s*([+-]?\d+)\s*", words)
    if found is None:
        raise argparse.ArgumentTypeError(f"'{words}' is not a frame range such as 1-250, -10-250 or 1:250")
    return int(found[1]), int(found[2])


# --- commands -----------------------------------------------------------------------------------------------


def _open(options: argparse.Namespace) -> None:
    """Open FILE, if one was named."""
    if options.file is None:
        if not bpy.data.filepath:
            raise _UsageError("no file is open: name the .blend file to work on")
        return
    path = Path(options.file)
    if not path.is_file():
        raise _UsageError(f"there is no file {path}")
    trust = {"use_scripts": True} if options.enable_autoexec else {}
    try:
        bpy.ops.wm.open_mainfile(filepath=str(path.resolve()), load_ui=False, **trust)
    except RuntimeError as error:  # how Blender's operators report; the first line says why
        raise _UsageError(f"cannot open {path}: {_first_line(error)}{_newer(error)}") from error
    if bpy.app.autoexec_fail:
        what = bpy.app.autoexec_fail_message
        _warn(f"{path}: {what} was not run; use --enable-autoexec if you trust the file")


def _bake(options: argparse.Namespace) -> Exit:
    if options.output is None and options.report is None:
        raise _UsageError("nothing would be kept: name --output, --report or both")
    for path in (options.output, options.report):
        if path is not None and not path.resolve().parent.is_dir():  # better said now than after a long bake
            raise report.WriteError(f"cannot write {path}: there is no folder {path.resolve().parent}")
    scene = bpy.context.scene
    first, last = options.frames or (scene.frame_start, scene.frame_end)
    try:
        settings = BakeSettings(
            frame_start=first,
            frame_end=last,
            step=options.step,
            keys=KEYS[options.keys],
            **_holder(options),
            destination=_destination(options),
            constraints=tuple(options.constraint),
            preroll=options.preroll,
            order=Order[options.order.upper()],
            verify=not options.no_verify,
            from_original=options.from_original,
            reduce_angle=math.radians(options.reduce_angle),
            reduce_error=options.reduce_error,
        )
    except InvalidInput as error:
        raise _UsageError(str(error)) from error
    armature_object = _armature(scene, options.armature)
    for problem in checks.problems(armature_object, scene, settings.constraints, settings.destination):
        if problem.severity == "WARNING":
            _warn(problem.message)
    with _progress_line(options.quiet) as progress:
        result = bake(scene, armature_object, settings, progress)
    if options.output is not None:
        _save(options.output)
    if options.report is not None:
        report.save(result, options.report)
    for fault in result.check.faults() if result.check is not None else ():
        _warn(f"{armature_object.name}: {fault}")
    missed = result.unsolved_count()
    if missed:
        _warn(f"{armature_object.name}: {result.summary()}")
    elif not options.quiet:
        print(f"{armature_object.name}: {result.summary()}", flush=True)
    if not options.quiet:
        print(f"{armature_object.name}: {_times(result)}", flush=True)
    return Exit.NOT_REACHED if missed and options.strict else Exit.DONE


def _check(options: argparse.Namespace) -> Exit:
    scene = bpy.context.scene
    armatures = [_armature(scene, options.armature)] if options.armature else _rigged(scene)
    if not armatures:
        raise RigError(_none_rigged())
    errors = 0
    for armature_object in armatures:
        problems = checks.problems(armature_object, scene, tuple(options.constraint))
        for problem in problems:
            print(f"{problem.severity}: {armature_object.name}: {problem.message}", flush=True)
        if not problems and not options.quiet:
            print(f"{armature_object.name}: no problems", flush=True)
        errors += sum(problem.severity == "ERROR" for problem in problems)
    return Exit.PROBLEMS if errors else Exit.DONE


def _times(result: report.BakeReport) -> str:
    """What the check came to, and how long everything took."""
    baked = f"baked in {result.seconds:.1f} s"
    if result.check is None:
        return baked
    return f"{result.check.words()}; {baked}, checked in {result.check.seconds:.1f} s"


def _holder(options: argparse.Namespace) -> dict[str, str]:
    """The key holder, and its bone after a stroke; an object's own name may hold strokes."""
    if (options.key_holder is None) == (options.keys == "holder"):
        raise _UsageError("--keys holder needs --key-holder OBJECT, and the other way round")
    name = options.key_holder or ""
    if name in bpy.data.objects or "/" not in name:
        return {"holder": name}
    holder, _, bone = name.rpartition("/")
    return {"holder": holder, "holder_bone": bone}


def _destination(options: argparse.Namespace) -> Destination:
    if options.nla_strip:
        return Destination.NLA_STRIP
    return Destination.CURRENT_ACTION if options.current_action else Destination.NEW_ACTION


def _rigged(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """Armature objects of the scene that carry constraints."""
    return [o for o in scene.objects if o.type == "ARMATURE" and len(o.ccd_rig.constraints)]


def _none_rigged() -> str:
    return "no armature in the file's active scene has CCD constraints: add one in the CCD Rig panel"


def _armature(scene: bpy.types.Scene, name: str | None) -> bpy.types.Object:
    """The armature object called `name`, or the only one with constraints."""
    rigged = _rigged(scene)
    names = ", ".join(o.name for o in rigged)
    if name is None:
        if not rigged:
            raise RigError(_none_rigged())
        if len(rigged) > 1:
            raise _UsageError(f"several armatures have CCD constraints ({names}): name one with --armature")
        return rigged[0]
    found = scene.objects.get(name)
    if found is None or found.type != "ARMATURE":
        raise RigError(
            f"there is no armature object '{name}' in the scene; with CCD constraints: {names or 'none'}"
        )
    return found


def _save(path: Path) -> None:
    """Save the open file under another name, as a whole or not at all."""
    with report.replacing(path) as temporary:
        temporary.unlink()  # Blender would keep the empty file as a backup
        leftover = temporary.with_name(f"{temporary.name}@")  # where Blender writes before it renames
        try:
            bpy.ops.wm.save_as_mainfile(
                filepath=str(temporary.resolve()), copy=True, compress=_is_compressed(bpy.data.filepath)
            )
        except RuntimeError as error:
            # Blender's own reason may be that of a later step ("No such file"): likely ones are said first.
            reason = f"is the disk full, or the folder read-only? Blender says: {_first_line(error)}"
            raise report.WriteError(f"cannot write {path}: {reason}") from error
        finally:
            leftover.unlink(missing_ok=True)
        if not _is_whole(temporary):
            raise report.WriteError(f"cannot write {path}: is the disk full? Only a part of it was saved")


def _is_whole(path: Path) -> bool:
    """Whether a .blend file was saved to its end; of compressed files Blender does not notice it if not.

    They end with the magic number of a Zstandard seek table, others with the block ENDB, of at most 32 bytes.
    """
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 32))
        end = file.read()
    return end.endswith(b"\xb1\xea\x92\x8f") or b"ENDB" in end


def _is_compressed(path: str) -> bool:
    """Whether a .blend file is compressed, with Zstandard or, before Blender 3.0, with gzip."""
    with open(path, "rb") as file:
        return file.read(4).startswith((b"\x28\xb5\x2f\xfd", b"\x1f\x8b"))


# --- words --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _progress_line(quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Gives a function for `bake`'s progress: it shows how far a slow bake is, on standard error."""
    terminal = sys.stderr.isatty()
    pause = REDRAW if terminal else RELOG
    started = time.monotonic()
    shown = started + SLOW - pause
    drawn, verb = False, "solved"

    def show(progress: Progress) -> None:
        nonlocal shown, drawn, started, verb
        now = time.monotonic()
        if progress.verb != verb:  # each part of a bake has its own pace
            started, verb = now, progress.verb
        if quiet or now - shown < pause:
            return
        line = progress.words(now - started)
        print(
            f"\r\x1b[K{line}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True
        )
        shown, drawn = now, terminal

    try:
        yield show
    finally:
        if drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _first_line(error: Exception) -> str:
    """Blender's operators raise "Error: reason" with more lines below."""
    words = str(error).strip().splitlines() or ["unknown reason"]
    return words[0].removeprefix("Error: ")


def _newer(error: Exception) -> str:
    # Blender before 5.0 does not know the header that later ones write.
    return " (or one of a newer Blender than this)" if "not a blend file" in str(error) else ""


def _warn(words: str) -> None:
    print(f"{COMMAND}: warning: {words}", file=sys.stderr, flush=True)


def _fail(words: str, code: Exit) -> Exit:
    print(f"{COMMAND}: error: {words}", file=sys.stderr, flush=True)
    return code
