"""A plugin of pytest: durations are seconds of the processor, with those of processes that tests start."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from typing import Any

import pytest

SPENT = pytest.StashKey[float]()


def _spent() -> float:
    """Processor time of this process and of those that it has waited for, seconds."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _timed(item: pytest.Item) -> Generator[None, Any, Any]:
    began = _spent()
    try:
        return (yield)
    finally:
        item.stash[SPENT] = _spent() - began


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _timed(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _timed(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _timed(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    report.duration = item.stash.get(SPENT, report.duration)
    return report
