"""Process of a campaign: tries seeds in turn, and writes a line about each into its journal.

python -m devtools.fuzz.worker FUNCTION JOURNAL SECONDS FIRST  from a seed on, until the time is over
python -m devtools.fuzz.worker FUNCTION JOURNAL SECONDS @SEEDS the seeds in a file, one a line
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from devtools.fuzz import Outcome

if not sys.argv[1].startswith("kernel"):  # whose sanitizers want to be loaded without Blender
    import bpy  # noqa: F401 - brings mathutils


def main(function: str, journal: str, seconds: float, which: str) -> int:
    name, _, attempt = function.partition(".")
    module = importlib.import_module(f"devtools.fuzz.{name}")
    seeds: Iterable[int] = (
        map(int, Path(which[1:]).read_text().split())
        if which.startswith("@")
        else itertools.count(int(which))
    )
    with open(journal, "a", encoding="utf-8") as lines:

        def write(**line: Any) -> None:
            lines.write(json.dumps(line) + "\n")
            lines.flush()

        module.prepare()
        warnings.simplefilter("error", RuntimeWarning)  # of NumPy: what a division by 0 gives is no result
        until = time.monotonic() + seconds
        for seed in seeds:
            if time.monotonic() >= until:
                break
            write(begun=seed)
            started = time.monotonic()
            outcome = _tried(getattr(module, attempt), seed)
            took = round(time.monotonic() - started, 2)
            write(seed=seed, kind=outcome.kind, faults=outcome.faults, digest=outcome.digest, seconds=took)
    return 0


def _tried(attempt: Callable[[int], Outcome], seed: int) -> Outcome:
    try:
        outcome = attempt(seed)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        words = f"{type(error).__name__}: {str(error)[:200]} ({Path(where.filename).name}:{where.lineno})"
        return Outcome("raised", [words])
    return outcome


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Blender's own shutdown inside a Python process can crash (4.2) or hang (4.5)
