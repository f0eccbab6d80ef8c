"""Mutation testing: which tests judge a changed line, and what is told of the verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ccd_rig.kernel.loading import SWITCH
from devtools.mutation import campaign, choosing
from devtools.mutation.choosing import Statement, Suite

SOURCE = '''\
import math

LIMIT = (
    1.0,
    2.0,
)


@keep
def bent(a, b=2,
         c=3):
    """Words."""
    if (a
            and b):
        return a
    try:
        return [
            math.cos(b),
            c,
        ]
    except ValueError:
        return 0


class Bone:
    length = 1.0

    def turn(self):
        return self.length
'''


@pytest.mark.parametrize(
    ("line", "lines", "on_import"),
    [
        (4, (3, 6), True),  # a constant over several lines
        (9, (9, 11), True),  # decorator, head and defaults run on import
        (11, (9, 11), True),
        (14, (13, 14), False),  # a condition without its block
        (15, (15, 15), False),
        (18, (17, 20), False),
        (21, (21, 21), False),  # what is caught
        (22, (22, 22), False),
        (26, (26, 26), True),
        (29, (29, 29), False),
    ],
)
def test_the_statement_around_a_line(line, lines, on_import):
    assert choosing.statement(SOURCE, line) == Statement(range(lines[0], lines[1] + 1), on_import)


FILE = "ccd_rig/limits/batch.py"
TESTS = {
    "tests/core/limits/test_batch.py::slow": (9.0, {10, 11}),
    "tests/core/test_all.py::quick": (0.1, {10}),
    "tests/core/limits/test_batch.py::quick": (2.0, {11}),
    "tests/core/limits/test_other.py::none": (0.5, set()),
    "tests/core/test_last.py::long": (50.0, {10}),
}


@pytest.fixture
def suite():
    lines: dict[str, str] = {}
    for line in (10, 11):
        bits = sum(1 << k for k, (_, ran) in enumerate(TESTS.values()) if line in ran)
        lines[str(line)] = f"{bits:x}"
    seconds = [each for each, _ in TESTS.values()]
    content = {"tests": list(TESTS), "seconds": seconds, "lines": {FILE: lines}}
    return Suite("core", {**content, "folder": "tests/core", "environment": {}})


def test_those_of_the_folder_come_first_then_the_quick_ones(suite):
    choice = suite.choose(FILE, Statement(range(10, 12), False), 100.0)
    names = [name.removeprefix("tests/core/") for name in choice.tests]
    assert names == [
        "limits/test_batch.py::quick",
        "limits/test_batch.py::slow",
        "test_all.py::quick",
        "test_last.py::long",
    ]
    assert choice.left_out == 0


def test_no_more_time_than_allowed_is_spent(suite):
    choice = suite.choose(FILE, Statement(range(10, 12), False), 12.0)
    assert (len(choice.tests), choice.left_out) == (3, 1)
    assert sum(choice.seconds) == pytest.approx(11.1)


def test_of_a_line_only_the_tests_that_run_it(suite):
    choice = suite.choose(FILE, Statement(range(11, 12), False), 100.0)
    assert [name.rpartition("::")[2] for name in choice.tests] == ["quick", "slow"]
    assert suite.choose(FILE, Statement(range(12, 13), False), 100.0).tests == ()


def test_what_runs_on_import_is_judged_by_the_tests_of_its_file_or_all(suite):
    assert len(suite.choose(FILE, Statement(range(1, 2), True), 100.0).tests) == 4
    assert len(suite.choose("ccd_rig/maths/rotations.py", Statement(range(1, 2), True), 100.0).tests) == 5


def test_files_that_have_changed_are_run_first_and_whole(suite):
    changed = ["tests/core/limits/test_new.py", "tests/core/maths/test_new.py", "tests/core/test_all.py"]
    choice = suite.choose(FILE, Statement(range(10, 12), False), 100.0, changed)
    names = [name.removeprefix("tests/core/") for name in choice.tests]
    assert names[:2] == ["limits/test_new.py", "test_all.py"]
    assert names[2:] == ["limits/test_batch.py::quick", "limits/test_batch.py::slow", "test_last.py::long"]


def test_quick_tests_are_a_part_of_their_own(suite):
    choice = suite.choose(FILE, Statement(range(10, 12), False), 100.0)
    first, second = choice.parts(5.0)
    assert (len(first[0]), first[1]) == (1, 2.0)
    assert (len(second[0]), second[1]) == (3, pytest.approx(59.1))
    assert [len(tests) for tests, _ in choice.parts(1000.0)] == [4]
    assert suite.choose(FILE, Statement(range(12, 13), False), 100.0).parts(5.0) == []


@pytest.fixture
def warm(tmp_path):
    """Runs the body of a test in a copy of a warm process; its exit code."""
    folder = tmp_path / "user"
    script = Path(campaign.__file__).with_name("warm.py")
    with subprocess.Popen(
        [sys.executable, "-P", str(script), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def run(body, seconds):
            file = tmp_path / "test_body.py"
            file.write_text(f"import time\n\n\ndef test_body():\n    {body}\n")
            arguments = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", f"--rootdir={tmp_path}", str(file)]
            job = {
                "arguments": arguments,
                "environment": {},
                "seconds": seconds,
                "log": str(tmp_path / "log"),
            }
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield run
        process.kill()


def test_a_run_is_ended_after_its_time_of_a_processor_and_not_of_the_clock(warm):
    assert warm("time.sleep(1.5)", 1.0) == 0  # as on a machine that others use
    assert warm("assert False", 1.0) == 1
    assert warm("while True: pass", 1.0) == 124
    assert warm("time.sleep(1e3)", 0.15) == 124  # what waits for ever is ended too


def result(line, outcome, was="a", mutant="b"):
    return {
        "file": FILE,
        "line": line,
        "was": was,
        "mutant": mutant,
        "outcome": outcome,
        "by": "",
        "seconds": 1,
    }


def test_a_survivor_needs_a_reason(capsys, monkeypatch, tmp_path):
    reasons = tmp_path / "harmless.json"
    monkeypatch.setattr(campaign, "HARMLESS", reasons)
    monkeypatch.setattr(campaign, "ROOT", tmp_path)
    reasons.write_text(json.dumps([{"file": FILE, "was": "x", "mutant": "y", "reason": "Why"}]))
    noticed = [result(1, "killed"), result(2, "timed out")]
    assert campaign._tell(noticed) == 0
    assert campaign._tell([*noticed, result(3, "survived", "x", "y")]) == 0
    said = capsys.readouterr().out
    assert f"{FILE}:3 (Why)" in said and "2 of 3 noticed (66.7 %)" in said
    assert campaign._tell([*noticed, result(3, "survived", "x", "z")]) == 1
    table = capsys.readouterr().out.splitlines()
    (row,) = [line for line in table if line.startswith("ccd_rig/limits ")]
    assert row.split()[1:] == ["1", "1", "1"]


def test_each_part_has_its_files():
    files = {part: set(campaign.files_of(part)) for part in campaign.PARTS}
    assert "ccd_rig/limits/shapes.py" in files["core"] and "ccd_rig/blender/bake/shot.py" in files["bake"]
    assert {file.rpartition("/")[0] for file in files["kernel"]} == {"ccd_rig/kernel"}
    assert "ccd_rig/kernel/pose.py" in files["kernel"] and "ccd_rig/kernel/loading.py" not in files["kernel"]
    assert all(f"ccd_rig/blender/{part}/__init__.py" in files[part] for part in ("keys", "live", "retarget"))
    assert sum(map(len, files.values())) == len(set().union(*files.values()))
    assert not any("blender" in file for file in files["core"])


def test_the_kernel_is_judged_by_tests_that_run_its_plain_modules():
    assert campaign.PARTS["kernel"] == ("plain",)
    assert campaign.environment("plain") == {SWITCH: "plain"}
    assert not any(campaign.environment(suite) for suite in ("core", "blender"))
