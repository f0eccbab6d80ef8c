"""A plugin of pytest: durations of tests are seconds of the processor, on a busy machine too."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest

SPENT = pytest.StashKey[float]()


def _timed(item: pytest.Item) -> Generator[None, Any, Any]:
    began = time.process_time()
    try:
        return (yield)
    finally:
        item.stash[SPENT] = time.process_time() - began


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
