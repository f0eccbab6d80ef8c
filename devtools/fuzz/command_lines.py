"""Faults about the command line: signals, and names of files."""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import bpy

from devtools.fuzz import Outcome, contents
from devtools.fuzz.rigs import prepare as prepare
from devtools.fuzz.shots import clip_and_figure, module, printed, saved, tracebacks

LAST = 300
"""Frame at which a bake that gets a signal ends."""
EARLIEST = 0.05  # [s] after its start at which a command gets a signal
PATIENCE = 10.0  # [s] after the end of a job's process in which its tasks end
SWALLOWED = 0.4
"""Part of its time that a command may go on after Ctrl-C, as what is left of it."""
INTERRUPTED = 130
SAID = "ccd_rig: error: interrupted, nothing is written"
OURS = f"{os.sep}ccd_rig{os.sep}"
"""In the paths of the package."""
OLD = b"old"
NAMES = (
    *("a", "A", "a.record", "a.json", "a.0-4", "table", "settings", "é", "e\u0301", "ß", "SS", "con", "."),
    *(
        "=1+1",
        "@x",
        "-x",
        "--help",
        " a",
        "a ",
        "a.",
        "a b",
        "$HOME",
        "`x`",
        "%PATH%",
        "'\"",
        "a;b",
        "骨",
        "😀",
    ),
    *(
        "a\nb",
        "a\rb",
        "\x1b[31m",
        "{{Task.Param.Shot}}",
        "{x}",
        "\\",
        "x" * 240,
        "x" * 200,
        b"\xff".decode(errors="surrogateescape"),
    ),
)
"""Names of shots, of the kinds that collide or are taken for something else."""
BLENDERS = ("Read blend:", "Info:", "Warning:", "Error:")
"""How lines begin that Blender prints."""
FORMULA = ("=", "+", "-", "@")


def _command(*words: object, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ccd_rig", *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **options
    )


def _is_whole(path: Path) -> bool:
    """Whether Blender opens a file, with the keys of a bake in it."""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    return contents.is_baked()


# Names ------------------------------------------------------------------------------------------------------


def run_outputs(seed: int) -> Outcome:
    """Write a job of shots whose names are hostile or collide, and run its tasks as a farm does."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder, shots = Path(name), dict[Path, int]()
        job = folder / "jobs" / (rng.choice(NAMES) if rng.random() < 0.2 else "job")
        for number in range(rng.randrange(1, 4)):
            place = folder / f"shots{rng.choice((0, number))}"
            place.mkdir(exist_ok=True)
            path = place / f"{rng.choice(NAMES)}{rng.choice(('.blend', '.blend', '.BLEND', '.blend1'))}"
            shutil.copy(_marked(number), path)
            shots[path] = number
        before = {path: path.read_bytes() for path in shots}
        words = ["farm", *map(str, shots), f"--output={job}", f"--chunk={rng.choice((0, 4))}", "--quiet"]
        code, said = run_here(words)
        faults = tracebacks(said) + _unprintable(said)
        if code:
            if not said.strip() or (job / "template.json").exists():
                faults.append(f"refused with code {code}, but: {said.strip()[-100:]!r}")
            outcome = Outcome("refused")
        else:
            outcome = Outcome("run")
            for task in tasks_of(job):
                code, said = run_here(task)
                faults += tracebacks(said) + _unprintable(said)
                if code:
                    faults.append(f"{task[0]} ends with code {code}: {said.strip()[-200:]}")
            faults += wrong_results(job / "baked", {path.stem: number for path, number in shots.items()})
            times = {path: path.stat().st_mtime_ns for path in (job / "baked").rglob("*.*")}
            for task in tasks_of(job)[:-1]:
                run_here(task)
            again = {path: path.stat().st_mtime_ns for path in (job / "baked").rglob("*.*")}
            if times.items() - again.items():
                faults.append("done before, but done again")
        faults += [f"{path} has changed" for path in shots if path.read_bytes() != before[path]]
        known = {"jobs", *(path.parent.name for path in shots)}
        faults += [f"left behind: {each.name!r}" for each in folder.iterdir() if each.name not in known]
        names = [f"{path.parent.name}/{path.name}"[:40] for path in shots]
        outcome.faults = [f"{words} ({names!a}, {job.name[:40]!a})" for words in faults[:3]]
        return outcome


@cache
def _marked(number: int) -> Path:
    """A shot that is told from others by a property of its scene."""
    path = saved(Path(tempfile.mkdtemp(prefix="ccd_rig_fuzz_shot_")) / "shot.blend")
    bpy.context.scene["kept"] = number
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def run_here(words: list[str]) -> tuple[int, str]:
    """Exit code of a command in this process, and what it has printed."""
    with printed() as text:
        return int(module("blender.cli.command_line").main(words)), text()


def tasks_of(job: Path) -> list[list[str]]:
    """The words of all tasks, as a farm makes them of a template."""
    tasks = []
    for step in json.loads((job / "template.json").read_text(encoding="utf-8"))["steps"]:
        args = step["script"]["actions"]["onRun"]["args"]
        space = step.get("parameterSpace", {"taskParameterDefinitions": []})["taskParameterDefinitions"]
        for values in zip(*(each["range"] for each in space), strict=True) if space else [()]:
            params = {f"Task.Param.{each['name']}": v for each, v in zip(space, values, strict=True)}
            params |= {"Param.Settings": job / "settings.json", "Param.OutputDir": job / "baked"}
            words = args[args.index("ccd_rig") + 1 :]
            for name, value in params.items():
                words = [word.replace(f"{{{{{name}}}}}", str(value)) for word in words]
            tasks.append(words)
    return tasks


def _unprintable(said: str) -> list[str]:
    """Escape sequences from names, but for those that Blender prints itself."""
    ours = (line for line in said.split("\n") if not line.startswith(BLENDERS))
    odd = {letter for line in ours for letter in line if not letter.isprintable() and letter != "\ufffd"}
    return [f"printed: {sorted(odd)}"] if odd else []


def wrong_results(folder: Path, shots: Mapping[str, int]) -> list[str]:
    """Return the faults of a job's results; `shots` is {name: mark}."""
    faults = []
    for name, number in shots.items():
        path = folder / f"{name}.blend"
        if not path.exists() or not _is_whole(path) or bpy.context.scene["kept"] != number:
            faults.append(f"{name[:40]!a} has not its own result")
        for ending in ("json", "record.json"):
            if not (folder / f"{name}.{ending}").exists():
                faults.append(f"{name[:40]!a} has no {ending}")
    table = folder / "table.csv"
    if not table.exists():
        return [*faults, "there is no table"]
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    if (
        len(rows) != len(shots)
        or len((folder / "table.txt").read_text("utf-8").splitlines()) != len(shots) + 1
    ):
        faults.append(f"the table has {len(rows)} rows")
    return faults + [f"a formula: {row[0]!a}" for row in rows if row[0].lstrip().startswith(FORMULA)]


# Signals ----------------------------------------------------------------------------------------------------


def run_signals(seed: int) -> Outcome:
    """Send a signal to a bake, a farm's job or a retargeting, at any time from its first moments on."""
    rng = random.Random(seed)
    kind, sent = (
        rng.choice(("bake", "bake", "retarget", "retarget", "farm")),  # a farm's case costs 20 others
        rng.choice((signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)),
    )
    part = rng.choice((rng.random(), 0.3 * rng.random()))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in _sources().iterdir():
            shutil.copy(path, folder)
        sources = {path: path.read_bytes() for path in folder.iterdir()}
        output = folder / "out.blend"
        words, takes = _words(kind, folder), _seconds(kind)
        output.write_bytes(OLD)
        process = _command(*words)
        time.sleep(EARLIEST + part * takes)
        process.send_signal(sent)
        began = time.monotonic()
        err = process.communicate()[1]
        went_on = (time.monotonic() - began) / takes
        faults = wrong_end(sent, process.returncode, err, min(went_on, 1.0 - part))
        faults += [f"{path.name} has changed" for path, old in sources.items() if path.read_bytes() != old]
        if process.returncode == INTERRUPTED and output.read_bytes() != OLD:
            faults.append("says that nothing is written, but it is")
        if kind == "farm":
            faults += _wrong_job(folder, words)
        elif output.read_bytes() != OLD and not (_is_whole(output) if kind == "bake" else _opens(output)):
            faults.append("the output is torn")
        left = {each.name for each in folder.iterdir()} - {path.name for path in (*sources, output)} - {"job"}
        if sent is signal.SIGINT and left:
            faults.append(f"left behind: {sorted(left)}")
        where = f"{kind}, {sent.name} after {EARLIEST + part * takes:.2f} of {takes:.1f} s"
        return Outcome(f"{kind}, {sent.name}", [f"{where}: {words}" for words in faults])


def wrong_end(sent: signal.Signals, code: int, err: str, went_on: float) -> list[str]:
    """Return the faults in the end of a command.

    Args:
        sent: the signal.
        code: of the command's exit.
        err: what it wrote to standard error.
        went_on: part of its time that it went on since.
    """
    faults = tracebacks(err)
    if faults and OURS not in err and sent is signal.SIGINT:
        return []  # Python itself was starting, and nobody can listen yet
    allowed = {0, -sent} | ({INTERRUPTED} if sent is signal.SIGINT else set())
    if code not in allowed:
        faults.append(f"exit code {code}: {err.strip()[-200:]}")
    if (SAID in err) != (code == INTERRUPTED):
        faults.append(f"exit code {code}, but standard error says: {err.strip()[-200:]!r}")
    if sent is signal.SIGINT and code == 0 and went_on > SWALLOWED:
        faults.append("the signal is swallowed")
    return faults


@cache
def _sources() -> Path:
    """A folder with what the commands read."""
    folder = Path(tempfile.mkdtemp(prefix="ccd_rig_fuzz_signals_"))
    clip_and_figure(folder, last=LAST // 3)
    saved(folder / "shot.blend", LAST)
    return folder


def _words(kind: str, folder: Path) -> list[Any]:
    if kind == "bake":
        return ["bake", folder / "shot.blend", "--output", folder / "out.blend"]
    if kind == "retarget":
        return ["retarget", folder / "clip.bvh", folder / "figure.blend", "--output", folder / "out.blend"]
    return ["farm", folder / "shot.blend", "--output", folder / "job", f"--chunk={LAST // 2}", "--jobs", 2]


@cache
def _seconds(kind: str) -> float:
    """Seconds that a command takes which nobody interrupts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in _sources().iterdir():
            shutil.copy(path, folder)
        began = time.monotonic()
        process = _command(*_words(kind, folder))
        said = process.communicate()
        assert process.returncode == 0, said
        return time.monotonic() - began


def _wrong_job(folder: Path, words: list[Any]) -> list[str]:
    """Return the faults of a job whose process has ended: running tasks, and the result of a second run."""
    until = time.monotonic() + PATIENCE
    while (running := _processes(str(folder))) and time.monotonic() < until:
        time.sleep(0.2)
    faults = [f"still there: {each[:200]}" for each in running]
    process = _command(*words)
    said = process.communicate()[1]
    if process.returncode:
        faults.append(f"a second run ends with code {process.returncode}: {said[-200:]}")
    elif not _is_whole(folder / "job/baked/shot.blend"):
        faults.append("the result of a second run is torn")
    return faults


def _processes(word: str) -> list[str]:
    """Command lines that hold a word."""
    running = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended
            continue
        if word in line and path.parent.name != str(os.getpid()):
            running.append(line)
    return running


def _opens(path: Path) -> bool:
    """Whether Blender opens a file, with an action of the clip."""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    return any(action.name.startswith("clip") for action in bpy.data.actions)
