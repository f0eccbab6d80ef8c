"""Which tests run which lines: a plugin of pytest, for Python 3.12 and newer.

`sys.monitoring` tells of each line once per test and is then silent about it, so that a run takes hardly
longer than without; coverage.py's contexts take several times as long.

    LINE_MAP=out.json python -m pytest -p line_map tests/core
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

INSTALLED = f"extensions{os.sep}user_default{os.sep}ccd_rig{os.sep}"
"""Folders at whose end the extension lies as tests/blender install it."""
PACKAGE = f"ccd_rig{os.sep}"
NAME = "line map"


class LineMap:
    """Takes down lines while tests run.

    Attributes:
        tests: names of those that passed, in the order of their bits.
        seconds: of a processor that each of them took, set-up and what it started included.
        lines: {file from the project's root: {line: one bit for each test that ran it}}
    """

    def __init__(self, root: Path) -> None:
        self.root = f"{root}{os.sep}"
        self.tests: list[str] = []
        self.seconds: list[float] = []
        self.lines: dict[str, dict[int, int]] = {}
        self._files: dict[str, str | None] = {}
        self._now: set[tuple[str, int]] = set()
        self._passed = True
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.COVERAGE_ID, NAME)
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, self._line)
        monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE)

    def _line(self, code: CodeType, line: int) -> Any:
        try:
            file = self._files[code.co_filename]
        except KeyError:
            file = self._files[code.co_filename] = self._relative(code.co_filename)
        if file is not None:
            self._now.add((file, line))
        return sys.monitoring.DISABLE

    def _relative(self, path: str) -> str | None:
        """A file of the product, from the project's root."""
        _, installed, inside = path.rpartition(INSTALLED)
        if not installed:
            inside = path.removeprefix(self.root) if path.startswith(self.root) else ""
        return Path(inside).as_posix() if inside.startswith(PACKAGE) else None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._now, self._passed = set(), True
        sys.monitoring.restart_events()
        started = _processor_seconds()
        yield
        taken = _processor_seconds() - started
        found, self._now = self._now, set()
        if not self._passed:
            return
        bit = 1 << len(self.tests)
        self.tests.append(item.nodeid)
        self.seconds.append(round(taken, 4))
        for file, line in found:
            bits = self.lines.setdefault(file, {})
            bits[line] = bits.get(line, 0) | bit

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._passed = self._passed and not report.failed

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        content = {
            "tests": self.tests,
            "seconds": self.seconds,
            "lines": {f: {str(n): f"{bits:x}" for n, bits in rows.items()} for f, rows in self.lines.items()},
        }
        Path(os.environ["LINE_MAP"]).write_text(json.dumps(content), encoding="utf-8")


def _processor_seconds() -> float:
    """Of this process and of those that it has waited for: other work on the machine adds nothing."""
    return sum(os.times()[:4])


def pytest_configure(config: pytest.Config) -> None:
    """Start with pytest."""
    config.pluginmanager.register(LineMap(config.rootpath))
