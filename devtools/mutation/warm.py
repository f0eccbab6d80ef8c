"""A process that has imported Blender, NumPy and pytest, and runs tests in copies of itself: a run then pays
for neither. What a mutant changes, the product and its tests, is imported in the copy.

    python -P warm.py FOLDER

Blender's user files of a run lie in FOLDER, which is emptied after it. Each line of the input asks for a run,
as JSON: `arguments` for pytest, `environment`, `seconds` of a processor that it may take, and `log`, the file
for its output. The answer is a line with its exit code: 124 where it was ended after its time. That time is
of the processor, since the clock runs on while others use the machine.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STEP = 0.02  # [s] between two looks at a run
ASLEEP = 10.0  # times as long as that of a processor, by the clock: what waits for ever uses no processor


def main(folder: Path) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # before bpy, which may say something when it starts
    _import()
    for line in sys.stdin:
        code = _run(json.loads(line))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        answers.write(f"{code}\n")
        answers.flush()


def _import() -> None:
    """Import what no run is to wait for; bpy before mathutils, and after the variable that it reads once."""
    os.environ["BLENDER_USER_RESOURCES"] = sys.argv[1]
    import bpy  # noqa: F401
    import hypothesis  # noqa: F401
    import mathutils  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401


def _run(job: dict[str, Any]) -> int:
    until = time.monotonic() + ASLEEP * job["seconds"]
    child = os.fork()
    if not child:
        _be_the_run(job)
    ended, status = 0, 0
    while not ended and time.monotonic() < until:
        time.sleep(STEP)
        ended, status = os.waitpid(child, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it started, and itself if its time is over
    if not ended:
        os.waitpid(child, 0)
        return 124
    code = os.waitstatus_to_exitcode(status)
    return 124 if code == -signal.SIGXCPU else code


def _be_the_run(job: dict[str, Any]) -> None:
    os.setsid()
    most = math.ceil(job["seconds"])
    resource.setrlimit(
        resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY)
    )  # of what it starts too, each for itself
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(job["environment"])
    tempfile.tempdir = None  # chosen anew, from the environment
    sys.dont_write_bytecode = False  # of tests, and of what is no mutant: see `worker.Judge`
    import pytest

    code = 1
    try:
        code = int(pytest.main(job["arguments"]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
