"""Rules for every test run: nothing is skipped unless it is declared here, and no test is a stopwatch."""

from __future__ import annotations

import gc
import os
import shutil
import sys

import hypothesis
import pytest

# Speed is measured in benchmarks/; the same examples on every run make a failure repeatable.
hypothesis.settings.register_profile("project", deadline=None, derandomize=True)
hypothesis.settings.load_profile("project")

# The reasons for which a test may be skipped or expected to fail, word for word. There are none, and each new
# one has to be argued for here.
DECLARED_SKIPS: frozenset[str] = frozenset()


def pytest_collection_finish() -> None:
    """Keep collections of garbage from visiting all that was imported: a tenth of the processor time."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail)
    if isinstance(report.longrepr, tuple):  # (path, line, reason)
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(report.longrepr)


def _refuse_undeclared_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    # `report.skipped` covers skips, skips of whole modules and expected failures alike.
    if not report.skipped or (reason := _reason(report)) in DECLARED_SKIPS:
        return
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid}: skipped without being declared in tests/conftest.py: {reason}"
    if hasattr(report, "wasxfail"):
        del report.wasxfail


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    outcome = yield
    _refuse_undeclared_skip(outcome.get_result())


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_make_collect_report():
    outcome = yield
    _refuse_undeclared_skip(outcome.get_result())


_EXIT_STATUS = pytest.StashKey[int]()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[_EXIT_STATUS] = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave without the shutdown of a bpy that was imported, which can crash (4.2) or hang (4.5).

    A clean exit is tested on its own, in tests/blender/test_kernel.py.
    """
    bpy = sys.modules.get("bpy")
    if bpy is not None and not bpy.app.binary_path:  # Blender itself ends as it does for users
        if "CCD_RIG_SCRATCH" in os.environ:
            shutil.rmtree(os.environ["CCD_RIG_SCRATCH"], ignore_errors=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(config.stash.get(_EXIT_STATUS, 1))
