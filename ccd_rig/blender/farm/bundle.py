# SPDX-License-Identifier: GPL-3.0-or-later
"""Job bundles of Open Job Description, version 2023-09: template, values and assets; messages of tasks.

Specification: https://github.com/OpenJobDescription/openjd-specifications/wiki/2023-09-Template-Schemas
"""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import RigError
from ...json_text import printable, shown
from ..atomic_write import WriteError, replacing
from ..bake.progress import PERCENT, Pace, Progress
from .shots import Clips, Shot, to_json


class Names(NamedTuple):
    """Names of the files, all in the folder of the results."""

    blend: str  # the baked file
    report: str  # of the bake or the retargeting
    record: str  # what both were made from, see `Record`


def names(name: str) -> Names:
    """The files of a shot or clip of this name."""
    return Names(f"{name}.blend", f"{name}.json", f"{name}.record.json")


SETTINGS, TEMPLATE = "settings.json", "template.json"
BAKED = "baked"
"""Folder of the results, inside the bundle's unless the job names another."""
MOST_TASKS = 1024
"""Tasks of a step: the specification's largest list of values."""
LONGEST = 1024
"""Characters of a value, by the specification."""
MODULE = ("-m", "ccd_rig")
BLENDER = ("-b", "--disable-autoexec", "--offline-mode", "--command", "ccd_rig")
"""Words after the program: scripts of .blend files never run, and nothing is fetched."""


@dataclass(frozen=True)
class Step:
    """Tasks of one kind. They run when the tasks of the steps before are finished."""

    name: str  # such as "Bake", which runs the command `farm-bake`
    # Arguments of the command beside settings and output; they may contain `parameter(name)`.
    words: tuple[str, ...] = ()
    # {parameter: its value in each task}; a step without parameters has a single task.
    values: Mapping[str, Sequence[Path | int]] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """Command that its tasks run."""
        return f"farm-{self.name.lower()}"

    @property
    def count(self) -> int:
        """Number of its tasks."""
        return max((len(values) for values in self.values.values()), default=1)

    def tasks(self) -> list[list[str]]:
        """Arguments of each task."""
        tasks = [list(self.words) for _ in range(self.count)]
        for name, values in self.values.items():
            for words, value in zip(tasks, values, strict=True):
                words[:] = [word.replace(parameter(name), str(value)) for word in words]
        return tasks


def parameter(name: str) -> str:
    """Placeholder of a task's parameter in the words of a step."""
    return f"{{{{Task.Param.{name}}}}}"


@dataclass(frozen=True)
class Job:
    """Content of a bundle."""

    title: str  # of the job
    description: str  # its work in a sentence
    settings: str  # content of the settings file
    paths: Sequence[Path]  # absolute paths of the shots or clips. A result has the name of its file.
    assets: Sequence[Path]  # absolute paths of further files that tasks read
    steps: Sequence[Step]  # all but the last, which writes the table
    program: str  # executable that runs a task
    is_module: bool  # whether the program is Python with the bpy module; else it is Blender

    def all_steps(self) -> list[Step]:
        """Steps in the order they run; the last writes the table."""
        return [*self.steps, Step("Table")]

    def words(self, *words: str) -> list[str]:
        """Arguments of the program that run a command of CCD Rig."""
        return [*(MODULE if self.is_module else BLENDER), *words]


def write(job: Job, folder: Path) -> None:
    """Write a bundle into a folder, and make the folder if it is missing.

    Raises:
        RigError: the specification does not allow the job; the message says what to do.
        WriteError: the folder cannot be written.
    """
    require_possible(job)
    try:
        str(folder.resolve()).encode()
    except UnicodeEncodeError:  # Python's stand-ins for bytes of another encoding
        raise WriteError(f"cannot write {folder}: its path is not in UTF-8, which jobs are in") from None
    assets = sorted({str(path) for path in (*job.paths, *job.assets)})
    inputs = {"filenames": assets, "directories": []}
    outputs = {"directories": [str((folder / BAKED).resolve())]}
    files = {
        SETTINGS: job.settings,
        "parameter_values.json": _text({"parameterValues": [{"name": "Program", "value": job.program}]}),
        "asset_references.json": _text({"assetReferences": {"inputs": inputs, "outputs": outputs}}),
        TEMPLATE: _text(template(job)),
    }
    try:
        (folder / BAKED).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {folder}: {error.strerror}") from error
    for name, text in files.items():
        with replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def require_possible(job: Job) -> None:
    """Raise RigError if the specification does not allow a job."""
    _require_apart(job.paths)
    values = [value for step in job.steps for values in step.values.values() for value in values]
    for path in dict.fromkeys(value for value in values if isinstance(value, Path)):
        where = printable(str(path))  # spaces of other kinds look like a space
        if where != str(path):
            raise RigError(
                f"{where}: a job cannot name this path: it has line breaks, or spaces of another kind: "
                "rename it"
            )
        if "{{" in where:
            raise RigError(f"{where}: a job cannot name this path: it has '{{{{': rename it")
        if len(where) > LONGEST:
            raise RigError(
                f"{shown(where)}: a job cannot name this path of {len(where)} letters: give one of at most "
                f"{LONGEST}"
            )
    count = max(step.count for step in job.steps)
    if count > MOST_TASKS:
        raise RigError(
            f"{count} tasks are more than the {MOST_TASKS} that a step may have: use a larger "
            "--chunk, or several jobs"
        )


def _require_apart(paths: Sequence[Path]) -> None:
    """Raise RigError if results of two files would have one name, letters' case disregarded."""
    written: dict[str, int] = {}
    for k, path in enumerate(paths):
        for name in names(path.stem):
            folded = unicodedata.normalize("NFC", name).casefold()
            other = written.setdefault(folded, k)
            if other != k:
                raise RigError(
                    f"results of {paths[other]} and {path} would be written to the same file, {name}: "
                    "rename one, or put them into two jobs"
                )


def template(job: Job) -> dict[str, Any]:
    """Return the job template."""
    *before, table = [_step(job, step) for step in job.all_steps()]
    for earlier, later in pairwise(before):
        later["dependencies"] = [{"dependsOn": earlier["name"]}]
    table["dependencies"] = [{"dependsOn": step["name"]} for step in before]
    return {
        "specificationVersion": "jobtemplate-2023-09",
        "name": job.title,
        "description": job.description[:2048],
        "parameterDefinitions": _parameters(job),
        "steps": [*before, table],
    }


def _parameters(job: Job) -> list[dict[str, Any]]:
    program = "Python with the bpy module and CCD Rig" if job.is_module else "Blender with CCD Rig enabled"
    return [
        {"name": "Program", "type": "STRING", "default": job.program, "description": program},
        {
            "name": "Settings",
            "type": "PATH",
            "objectType": "FILE",
            "dataFlow": "IN",
            "default": SETTINGS,
            "description": "What is done with each file",
        },
        {
            "name": "OutputDir",
            "type": "PATH",
            "objectType": "DIRECTORY",
            "dataFlow": "INOUT",
            "default": BAKED,
            "description": "Folder of the results; what is done there already is skipped",
        },
    ]


def _step(job: Job, step: Step) -> dict[str, Any]:
    args = job.words(
        step.command, "--settings={{Param.Settings}}", "--output={{Param.OutputDir}}", *step.words
    )
    content: dict[str, Any] = {"name": step.name}
    content["script"] = {"actions": {"onRun": {"command": "{{Param.Program}}", "args": args}}}
    if step.values:
        definitions: list[dict[str, Any]] = []
        for name, values in step.values.items():
            is_path = isinstance(values[0], Path)
            listed = [str(value) for value in values] if is_path else list(values)
            definitions.append({"name": name, "type": "PATH" if is_path else "INT", "range": listed})
        space: dict[str, Any] = {"taskParameterDefinitions": definitions}
        if len(definitions) > 1:  # the first values together, the second ones, and so on
            space["combination"] = f"({', '.join(step.values)})"
        content["parameterSpace"] = space
    return content


def _text(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def bundle_job(
    shots: Sequence[Shot], paths: Sequence[Path], assets: Sequence[Path], program: str, is_module: bool
) -> Job:
    """Return the job that bakes shots.

    Args:
        shots: with the settings of their bakes.
        paths: absolute, of the shots' files.
        assets: absolute, of the files that they link.
        program, is_module: as in `Job`.
    """
    pairs = list(zip(paths, shots, strict=True))
    files = [path for path, shot in pairs for _ in shot.spans()]
    numbers = [number for shot in shots for number, _ in enumerate(shot.spans(), 1)]
    shot_word = parameter("Shot")
    steps = [Step("Bake", (f"--part={parameter('Part')}", shot_word), {"Shot": files, "Part": numbers})]
    joins = [path for path, shot in pairs if shot.is_split]
    if joins:
        steps.append(Step("Join", (shot_word,), {"Shot": joins}))
    description = f"Bakes CCD constraints to keys: {', '.join(shot.name for shot in shots)}"
    return Job("CCD Rig bake", description, to_json(shots), paths, assets, steps, program, is_module)


def bundle_clips(
    clips: Clips,
    paths: Sequence[Path],
    target: Path,
    assets: Sequence[Path],
    program: str,
    is_module: bool,
) -> Job:
    """Return the job that retargets clips at `paths` to the armature of `target`; see `bundle_job`."""
    words = (parameter("Clip"), parameter("Target"))
    step = Step("Retarget", words, {"Clip": list(paths), "Target": [target] * len(paths)})
    names = ", ".join(path.stem for path in paths)
    title, description = "CCD Rig retarget", f"Puts clips onto '{clips.armature}' of {clips.target}: {names}"
    files = target, *assets
    return Job(title, description, clips.to_json(), paths, files, (step,), program, is_module)


PAUSE = 1.0
"""Seconds between two messages."""


def status(words: str) -> None:
    """Tell the farm the present work of a task."""
    print(f"openjd_status: {_line(words)}", flush=True)


def fail(words: str) -> None:
    """Tell the farm why a task has failed."""
    print(f"openjd_fail: {_line(words)}", flush=True)


def progress(percent: float) -> None:
    """Tell the farm the share of a task that is done."""
    print(f"openjd_progress: {percent:.1f}", flush=True)


class ProgressMessages:
    """Prints the progress of a bake, a message per `PAUSE` at most; `check` is called before each item."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._next, self._pace, self._check = 0.0, Pace(), check

    def __call__(self, step: Progress) -> None:
        """Take the next item."""
        self._check()
        self._pace.take(step)
        now = time.monotonic()
        if now < self._next or step.verb not in PERCENT:
            return
        progress(self._pace.percent)
        status(self._pace.words(step))
        self._next = now + PAUSE


def _line(words: str) -> str:
    return printable(" ".join(words.split()))
