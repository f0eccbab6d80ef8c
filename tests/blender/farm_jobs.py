"""Jobs for farms in a folder, whose tasks are run one by one."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import bpy
from installed import AS_MODULE, ROOT

AGREE = math.radians(0.01)  # what chunks and the whole may differ by, as the manual says
TIMEOUT = 120  # [s]
SHORT, LONG = 30, 400  # [frames]


class Job:
    """A job in a folder, whose tasks are run one by one."""

    def __init__(self, cli, folder, *files, words=()):
        self.cli, self.folder, self.files = cli, folder, files
        self.baked = folder / "baked"
        self.code = cli.main(["farm", *map(str, files), "--output", str(folder), "--quiet", *words])

    def words(self, command, *more):
        settings = self.folder / "settings.json"
        return [command, f"--settings={settings}", f"--output={self.baked}", *map(str, more)]

    def bake(self, file, part=1):
        return self.cli.main(self.words("farm-bake", f"--part={part}", file))

    def carry_over(self, clip, target):
        return self.cli.main(self.words("farm-retarget", clip, target))

    def join(self, file):
        return self.cli.main(self.words("farm-join", file))

    def table(self):
        return self.cli.main(self.words("farm-table"))

    def template(self):
        return json.loads((self.folder / "template.json").read_text())

    def parts(self):
        (step,) = [step for step in self.template()["steps"] if step["name"] == "Bake"]
        shots, parts = (each["range"] for each in step["parameterSpace"]["taskParameterDefinitions"])
        return list(zip(shots, parts, strict=True))

    def run_all(self):
        assert all(self.bake(file, part) == 0 for file, part in self.parts())
        split = {file for file, part in self.parts() if part > 1}
        assert all(self.join(file) == 0 for file in split)
        assert self.table() == 0


def process(job, *words, **options):
    """Start a command as a farm does, in a process of its own."""
    program = [sys.executable, "-m", "ccd_rig"]
    if not AS_MODULE:
        program = [bpy.app.binary_path, "--background", "--disable-autoexec", "--command", "ccd_rig"]
    return subprocess.Popen(
        [*program, *job.words(*words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def listing(folder):
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
