"""Makes mutants in a copy of the project, one after the other, lets tests judge them, and keeps the verdicts.

Runs where cosmic-ray is installed: `python -m devtools.mutation.worker JOB`; `campaign` writes the job. A
session of cosmic-ray holds the results; a mutant that has one is not made again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult

from devtools.mutation import choosing, drawing
from devtools.mutation.choosing import Suite

QUICK = 8.0  # [s] of tests, as measured, that run before all others
SLOWER = 6.0  # times as long as measured may tests take, beside START, both of a processor
START = 20.0  # [s] for Blender to start and the extension to be installed
MOST_ALARMS = 3600.0  # [s] for all tests that have failed, once more and without mutants
NOBODY = "no test runs this line"


class Verdict(NamedTuple):
    """What became of a mutant.

    Attributes:
        outcome: "killed", "timed out" or "survived".
        by: the test that failed, or why none did.
        seconds: that it took.
    """

    outcome: str
    by: str
    seconds: float


class Tests:
    """A folder of tests in the copy of the project, and the process that runs them; see `warm`."""

    def __init__(self, suite: Suite, tree: Path, python: str) -> None:
        self.suite = suite
        self.files = tree.with_name(f"tests-{suite.name}")
        self.files.mkdir(exist_ok=True)
        command = [python, "-P", str(Path(__file__).with_name("warm.py")), str(self.files / "user")]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        with open(self.files / "warm.log", "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                command,
                cwd=tree,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def run(
        self, tests: Sequence[str], seconds: float, package: Path, *options: str
    ) -> tuple[int, list[str]]:
        """Exit code of pytest, and the tests that failed, until the first of them unless `options` differ.

        Raises:
            RuntimeError: the process that runs them has ended.
        """
        names, log, scratch = self.files / "tests.txt", self.files / "tests.log", self.files / "scratch"
        names.write_text("\n".join(tests), encoding="utf-8")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        job = {
            "arguments": ["-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", *options, f"@{names}"],
            "environment": {"CCD_RIG_ZIP": str(package), "TMPDIR": str(scratch), **self.suite.environment},
            "seconds": seconds,
            "log": str(log),
        }
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None and answers is not None
        asked.write(json.dumps(job) + "\n")
        asked.flush()
        answer = answers.readline()
        if not answer:
            raise RuntimeError(f"the process that runs tests has ended: see {self.files / 'warm.log'}")
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()
        failed = [line.split(" - ")[0] for line in said if line.startswith(("FAILED ", "ERROR "))]
        return int(answer), failed

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


class Judge:
    """Runs tests on the copy of the project."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.tree = Path(job["tree"])
        self.package = Path(job["package"])
        # Bytecode that goes by the source's hash: a mutant may be as long and as old, to a second, as what it
        # was made of.
        hashed = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", str(self.tree / "ccd_rig")]
        subprocess.run([job["python"], *hashed], check=True)
        suites = [Suite.read(name, Path(path)) for name, path in job["maps"].items()]
        self.tests = [Tests(suite, self.tree, job["python"]) for suite in suites]
        self.changed: dict[str, list[str]] = job["changed"]
        self.judges: dict[str, list[str]] = job["files"]
        self.most: float = job["most"]

    def judge(self, mutation: MutationSpec) -> Verdict:
        """Put a mutant in its place, run the tests that matter, and put the file back."""
        started = time.monotonic()
        file = mutation.module_path.as_posix()
        source = (self.tree / file).read_text(encoding="utf-8")
        place = choosing.statement(source, mutation.start_pos[0])
        left_out, run = 0, 0
        with self._in_place(file, drawing.mutated(source, mutation)) as package:
            for tests in self.tests:
                suite = tests.suite
                if suite.name not in self.judges[file]:
                    continue
                choice = suite.choose(file, place, self.most, self.changed.get(suite.name, ()))
                left_out += choice.left_out
                for names, seconds in choice.parts(QUICK):
                    run += len(names)
                    code, failed = tests.run(names, START + SLOWER * seconds, package, "-x")
                    if code == 124:
                        return Verdict("timed out", names[0], time.monotonic() - started)
                    if code:
                        words = failed[0] if failed else f"exit code {code}"
                        return Verdict("killed", words, time.monotonic() - started)
        words = f"{run} tests passed" + (f", {left_out} slower ones were not run" if left_out else "")
        return Verdict("survived", words if run else NOBODY, time.monotonic() - started)

    @contextmanager
    def _in_place(self, file: str, text: str) -> Iterator[Path]:
        """The changed file in the copy, and in a package of it; the file as it was when the block ends."""
        path, package = self.tree / file, self.package.with_name("mutant.zip")
        before = path.read_bytes()
        with zipfile.ZipFile(self.package) as whole, zipfile.ZipFile(package, "w") as copy:
            for entry in whole.infolist():
                copy.writestr(entry, text if entry.filename == file else whole.read(entry))
        path.write_text(text, encoding="utf-8")
        try:
            yield package
        finally:
            path.write_bytes(before)

    def false_alarms(self, killers: set[str]) -> set[str]:
        """Those of some tests that have failed with a mutant that fail without one too."""
        found: set[str] = set()
        for tests in self.tests:
            chosen = tests.suite.order(killers)
            if chosen:
                found.update(tests.run(chosen, MOST_ALARMS, self.package)[1])
        return found

    def close(self) -> None:
        """End the processes that run tests."""
        for tests in self.tests:
            tests.close()


def main(path: str) -> int:
    """Judge what a job has drawn and has no result yet; tell it when all have one."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    tree = Path(job["tree"])
    drawn = drawing.draw(tree, sorted(job["files"]), job["seed"], job["count"])
    judge = Judge(job)
    with use_db(job["session"], WorkDB.Mode.create) as session:
        known = {item.job_id for item in session.work_items}
        session.add_work_items(item for item in drawn if item.job_id not in known)
        results = dict(session.results)
        pending = [
            item
            for item in drawn
            if item.job_id not in results
            or (job["again"] and verdict_of(results[item.job_id]).outcome == "survived")
        ]
        for number, item in enumerate(pending, 1):
            verdict = judge.judge(item.mutations[0])
            session.set_result(item.job_id, _result(verdict, _change(tree, item)))
            print(f"[mutate] {number} of {len(pending)}: {_words(item)}: {verdict.outcome}", flush=True)
        results = dict(session.results)
        verdicts = {item.job_id: verdict_of(results[item.job_id]) for item in drawn}
        false = judge.false_alarms({verdict.by for verdict in verdicts.values()})
        judge.close()
        if false:
            raise RuntimeError(
                f"fails without a mutant too, and so tells nothing: {', '.join(sorted(false))}"
            )
        told = [_told(item, results[item.job_id]) for item in drawn]
    Path(job["results"]).write_text(json.dumps(told, indent=1), encoding="utf-8")
    return 0


def verdict_of(result: WorkResult) -> Verdict:
    """What a session has kept of a mutant."""
    return Verdict(*json.loads(result.output or "[]"))


def _result(verdict: Verdict, change: tuple[str, str]) -> WorkResult:
    outcome = TestOutcome.SURVIVED if verdict.outcome == "survived" else TestOutcome.KILLED
    return WorkResult(WorkerOutcome.NORMAL, json.dumps(verdict), outcome, "\n".join(change))


def _change(tree: Path, item: WorkItem) -> tuple[str, str]:
    """The line as it was, and as the mutant has it."""
    (mutation,) = item.mutations
    source = (tree / mutation.module_path).read_text(encoding="utf-8")
    old, new = source.splitlines(), drawing.mutated(source, mutation).splitlines()
    pairs = [(a.strip(), b.strip()) for a, b in zip(old, new, strict=False) if a != b]
    return pairs[0] if pairs else ("", "")


def _told(item: WorkItem, result: WorkResult) -> dict[str, Any]:
    (mutation,) = item.mutations
    was, mutant = (result.diff or "\n").split("\n")
    return {
        "file": mutation.module_path.as_posix(),
        "line": mutation.start_pos[0],
        "was": was,
        "mutant": mutant,
        **verdict_of(result)._asdict(),
    }


def _words(item: WorkItem) -> str:
    (mutation,) = item.mutations
    return f"{mutation.module_path.as_posix()}:{mutation.start_pos[0]} {mutation.operator_name.split('/')[1]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
