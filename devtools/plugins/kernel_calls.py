"""A plugin of pytest: keeps what tests call of the compiled kernel, in the file that CCD_RIG_CALLS names.

All calls of a test are kept where one of them is among the first `MOST` of its kind. The file is a compressed
pickle of built-in types: `tests/systems/replay.py` makes the calls again in a Python that has no NumPy.
"""

from __future__ import annotations

import collections
import functools
import importlib
import os
import pickle
import sys
import types
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devtools import kernel

MOST = 300
ARRAYS = (np.ndarray, array, memoryview)
FORMATS = {"l": "q"} | {each: each for each in "dfqibB?"}
"""What the module `struct` calls types of arrays here, and on all systems."""


class _NoFormError(Exception):
    """A value has no form in built-in types."""


class _Calls:
    """The calls of the present test, and those that are kept."""

    def __init__(self) -> None:
        self.kept: list[tuple[Any, ...]] = []
        self.of_test: list[tuple[Any, ...]] = []
        self.is_whole = True  # whether all calls of the test could be noted
        self.counts = collections.Counter[str]()
        self.problems = set[int]()  # numbers of those whose calls are kept from the first on

    def make(
        self, entry: str, function: Callable[..., Any], number: int, arguments: Any, named: dict[str, Any]
    ) -> Any:
        """Call `function`, and note the arguments, the outcome, and arrays afterwards."""
        arrays: dict[int, Any] = {}
        try:
            before = [_encode(each, arrays) for each in arguments]
            by_name = {name: _encode(each, arrays) for name, each in named.items()}
        except _NoFormError:
            self.is_whole = False
            return function(*arguments, **named)
        outcome: list[Any] = []
        try:
            result = function(*arguments, **named)
            outcome = [result]
            return result
        except Exception as error:
            outcome = [type(error).__name__, str(error)]
            raise
        finally:
            after = [each.tobytes() for each in (*arguments, *named.values()) if isinstance(each, ARRAYS)]
            self.of_test.append((entry, number, before, by_name, outcome, after))

    def end_test(self) -> None:
        """Keep the test's calls or forget them."""
        calls, is_whole = self.of_test, self.is_whole
        self.of_test, self.is_whole = [], True
        made = {number for entry, number, *_ in calls if entry == "Problem"}
        used = {number for entry, number, *_ in calls if number}
        is_whole = is_whole and used - made <= self.problems
        if is_whole and any(self.counts[entry] < MOST for entry, *_ in calls):
            self.kept += calls
            self.problems |= made
            self.counts.update(entry for entry, *_ in calls)


_module: Any = importlib.import_module(kernel.module_name())
_calls = _Calls()


class _Problem(_module.Problem):
    """A problem of the kernel that has a number; 0 before it is made."""

    last = number = 0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        if not self.number:
            _Problem.last += 1
            self.number = _Problem.last
        _calls.make("Problem", super().__init__, self.number, arguments, named)


def _encode(value: Any, arrays: dict[int, Any]) -> Any:
    """Return a value in built-in types; `arrays` has those of the call, by identity."""
    if isinstance(value, ARRAYS):
        view = memoryview(value)
        if view.format not in FORMATS or not view.c_contiguous:
            raise _NoFormError
        form = ("array", FORMATS[view.format], view.shape, view.tobytes())
        return arrays.setdefault(id(value), form)
    if isinstance(value, _Problem) and value.number:
        return ("problem", value.number)
    if isinstance(value, dict):
        return ("table", {name: _encode(each, arrays) for name, each in value.items()})
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise _NoFormError


def _entry(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        problems = (each.number for each in arguments if isinstance(each, _Problem))
        return _calls.make(name, function, next(problems, 0), arguments, named)

    return call


def _install() -> None:
    """Put entries that note their calls where the product imports the kernel from."""
    noting = types.ModuleType(_module.__name__)
    vars(noting).update(vars(_module), Problem=_Problem)
    for name, value in vars(_module).items():
        if isinstance(value, types.BuiltinFunctionType):
            setattr(noting, name, _entry(name, value))
    sys.modules[_module.__name__] = noting


_install()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    _calls.end_test()


def pytest_sessionfinish() -> None:
    content = pickle.dumps((_module.__name__, _calls.kept))
    Path(os.environ["CCD_RIG_CALLS"]).write_bytes(zlib.compress(content, 1))
