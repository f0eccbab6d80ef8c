"""How `dev.py test` deals tests out: which Blender runs which, and what processes with one queue take."""

from __future__ import annotations

import collections
import os
import platform
import subprocess
import sys

import pytest

from devtools import checks, environments
from devtools.fuzz import campaign, kernel

CONFTEST = """
import pathlib, pytest
@pytest.fixture(scope="module")
def module(request):
    return request.module.__name__
@pytest.fixture
def log(module):
    def write(*words):
        with open(pathlib.Path(__file__).with_name("log"), "a") as file:
            print(module, *words, file=file)
    return write
"""
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
TESTS = """
import pytest
@pytest.mark.parametrize("k", range(9))
def test_a(k, log): log("a", k)
@pytest.mark.parametrize("k", range(9))
def test_b(k, log): log("b", k)
"""


def test_the_oldest_and_the_newest_blender_run_everything():
    versions = list(environments.BLENDERS)
    for suite in checks.suites_of(versions, [], mass=False):
        if suite.layer:
            paths = [word for word in suite.command if word.startswith("tests/")]
            is_between = suite.version not in (versions[0], versions[-1])
            assert (paths == [f"tests/{suite.layer}"]) is not is_between, suite.name
            assert all((checks.ROOT / path).exists() for path in paths), suite.name
            left_out = [word.partition("=")[2] for word in suite.command if word.startswith("--ignore=")]
            is_once = suite.layer == "core" and suite.version != versions[0]
            assert len(left_out) == (len(checks.OF_SOURCES) if is_once else 0), suite.name
            assert all((checks.ROOT / path).exists() for path in left_out), suite.name


def test_tests_that_are_named_run_or_are_refused():
    def names(*paths: str) -> list[str]:
        return [suite.name for suite in checks.suites_of(["4.2"], [*paths, "-x"], mass=False)]

    assert names("tests/core/test_goals.py", "tests/docs") == ["tests/core, Blender 4.2", "tests/docs"]
    assert names("tests/systems") == (["tests/systems"] if platform.machine() == "x86_64" else [])
    for path in ("tests/window/test_drag.py", "tests/seeds.py", "tests"):
        with pytest.raises(environments.SetupError, match=rf"^{path} would not run here: "):
            names("tests/core/test_goals.py", path)


def test_each_commit_has_fuzz_cases_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    assert checks.first_case() == 0
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    dated = {**os.environ, "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"}
    subprocess.run([*git, "init", "-q"], check=True)
    firsts = []
    for words in ("one", "two"):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", words], env=dated, check=True)
        firsts.append(checks.first_case())
        assert checks.first_case() == firsts[-1]
    assert len({*firsts}) == 2
    for first in firsts:
        part = campaign.Part("test", "0.0", first)
        assert part.state["next"] == first
        assert not part.file.exists()
        assert first % checks.FUZZ_CASES == first % kernel.MEMORY == first % campaign.AGAIN == 0


def test_processes_with_one_queue_run_each_test_once(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in ("one", "two", "three"):
        (tmp_path / f"test_{name}.py").write_text(TESTS)
    queue = tmp_path / "queue"
    queue.mkdir()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "shared_queue", f"--rootdir={tmp_path}"]
    environment = {**os.environ, "PYTHONPATH": str(checks.PLUGINS), "CCD_RIG_QUEUE": str(queue), **ALONE}
    both = [
        subprocess.Popen([*command, str(tmp_path)], cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60)[0].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    lines = collections.Counter((tmp_path / "log").read_text().splitlines())
    assert len(lines) == 3 * 2 * 9
    assert set(lines.values()) == {1}
