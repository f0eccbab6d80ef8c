# SPDX-License-Identifier: GPL-3.0-or-later
"""Job bundles of Open Job Description, version 2023-09: template, parameter values and asset references.

The template has a step of one task per shot or chunk, one of a task per shot that has chunks to be joined,
and one that writes the table. Specification:
https://github.com/OpenJobDescription/openjd-specifications/wiki/2023-09-Template-Schemas
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import RigError
from ..whole_files import WriteError, replacing
from .job import Shot, to_json

SETTINGS, TEMPLATE = "settings.json", "template.json"
BAKED = "baked"
"""Folder of the results, in that of the bundle unless a job says otherwise."""
MOST_TASKS = 1024
"""Of a step: the specification's largest list of values."""
LONGEST = 1024
"""Characters of a value."""
PROGRAM = "blender"
"""What runs a task, unless a job says otherwise."""
MODULE = ("-m", "ccd_rig")
BLENDER = ("-b", "--disable-autoexec", "--offline-mode", "--command", "ccd_rig")
"""Words after the program: scripts of .blend files never run, and nothing is fetched."""


@dataclass(frozen=True)
class Job:
    """What a bundle says.

    Attributes:
        shots: what is baked.
        paths: of the shots' files, absolute.
        assets: of what they link, absolute.
        program: runs a task.
        is_module: whether the program is Python with the bpy module; else it is Blender.
    """

    shots: Sequence[Shot]
    paths: Sequence[Path]
    assets: Sequence[Path]
    program: str
    is_module: bool

    def tasks(self) -> list[tuple[Path, int]]:
        """Of each task that bakes: its file, and which part of it, counted from 1."""
        pairs = zip(self.paths, self.shots, strict=True)
        return [(path, k) for path, shot in pairs for k, _ in enumerate(shot.spans(), 1)]

    def joins(self) -> list[Path]:
        """Files whose chunks are joined."""
        return [path for path, shot in zip(self.paths, self.shots, strict=True) if shot.is_split]

    def words(self, *words: str) -> list[str]:
        """What follows the program, to run a command."""
        return [*(MODULE if self.is_module else BLENDER), *words]


def write(job: Job, folder: Path) -> None:
    """Write a bundle into a folder, which is made if need be.

    Raises:
        RigError: the job is none that the specification allows; the message says what to do.
        WriteError: the folder cannot be written.
    """
    require_possible(job)
    files = {
        SETTINGS: to_json(job.shots),
        "parameter_values.json": _text({"parameterValues": [{"name": "Program", "value": job.program}]}),
        "asset_references.json": _text(_assets(job, folder)),
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
    seen: dict[str, Path] = {}
    for path in job.paths:
        if (other := seen.setdefault(path.stem.casefold(), path)) != path or job.paths.count(path) > 1:
            raise RigError(f"{other} and {path} would be written to the same file: bake them in two jobs")
        if "{{" in str(path) or len(str(path)) > LONGEST or not str(path).isprintable():
            raise RigError(
                f"{path}: a job cannot name this path: it is too long, or has '{{{{' or line breaks"
            )
    if len(job.tasks()) > MOST_TASKS:
        raise RigError(
            f"{len(job.tasks())} tasks are more than the {MOST_TASKS} that a step may have: use a larger "
            "--chunk, or several jobs"
        )


def template(job: Job) -> dict[str, Any]:
    """The job template."""
    tasks, joins = job.tasks(), job.joins()
    parts = [
        _paths(path for path, _ in tasks),
        {"name": "Part", "type": "INT", "range": [k for _, k in tasks]},
    ]
    steps = [_step(job, "Bake", ["--part={{Task.Param.Part}}", "{{Task.Param.Shot}}"])]
    steps[0]["parameterSpace"] = {"taskParameterDefinitions": parts, "combination": "(Shot, Part)"}
    if joins:
        steps.append(_step(job, "Join", ["{{Task.Param.Shot}}"], "Bake"))
        steps[1]["parameterSpace"] = {"taskParameterDefinitions": [_paths(joins)]}
    steps.append(_step(job, "Table", [], *(step["name"] for step in steps)))
    names = ", ".join(shot.name for shot in job.shots)
    return {
        "specificationVersion": "jobtemplate-2023-09",
        "name": "CCD Rig bake",
        "description": f"Bakes CCD constraints to keys: {names}"[:2048],
        "parameterDefinitions": _parameters(job),
        "steps": steps,
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
            "description": "What is baked in each shot",
        },
        {
            "name": "OutputDir",
            "type": "PATH",
            "objectType": "DIRECTORY",
            "dataFlow": "INOUT",
            "default": BAKED,
            "description": "Folder of the baked files; what is done there already is skipped",
        },
    ]


def _paths(paths: Any) -> dict[str, Any]:
    return {"name": "Shot", "type": "PATH", "range": [str(path) for path in paths]}


def _step(job: Job, name: str, words: Sequence[str], *after: str) -> dict[str, Any]:
    command = f"farm-{name.lower()}"
    args = job.words(command, "--settings={{Param.Settings}}", "--output={{Param.OutputDir}}", *words)
    step: dict[str, Any] = {"name": name}
    if after:
        step["dependencies"] = [{"dependsOn": each} for each in after]
    step["script"] = {"actions": {"onRun": {"command": "{{Param.Program}}", "args": args}}}
    return step


def _assets(job: Job, folder: Path) -> dict[str, Any]:
    files = sorted({str(path) for path in (*job.paths, *job.assets)})
    output = str((folder / BAKED).resolve())
    return {
        "assetReferences": {
            "inputs": {"filenames": files, "directories": []},
            "outputs": {"directories": [output]},
        }
    }


def _text(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
