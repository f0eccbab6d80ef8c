"""A plugin of pytest: processes that are given the same tests run each of them once, and end together.

The folder that CCD_RIG_QUEUE names, empty at first, is what they share: it gets a file for each test taken.
A process takes whole files as long as there are any that none has begun, then the last tests of those begun.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

import pytest


def _take(name: str) -> bool:
    """Whether no process had taken a test or file of this name before."""
    place = Path(os.environ["CCD_RIG_QUEUE"], hashlib.sha256(name.encode()).hexdigest())
    try:
        os.close(os.open(place, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _taken(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Tests for this process, taken one by one; large files first, since they tend to last longest."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    order = sorted(files, key=lambda path: (-path.stat().st_size, path))
    for path in order:
        if _take(str(path)):
            yield from (item for item in files[path] if _take(item.nodeid))
    for path in reversed(order):
        yield from (item for item in reversed(files[path]) if _take(item.nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if session.testsfailed or session.config.option.collectonly:
        return None  # a file could not be read: pytest tells which
    # A test needs to know the next one: fixtures that both use stay.
    for item, following in pairwise(chain(_taken(session.items), [None])):
        assert item is not None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
    return True
