"""Make recorded calls of the kernel again, and compare every bit: `python replay.py FOLDER CALLS`.

FOLDER holds the compiled kernel of this system, CALLS is what `devtools/plugins/kernel_calls.py` wrote. Needs
Python 3.11 and its standard library alone. Prints one line for each entry, and the first calls that differ.
"""

from __future__ import annotations

import collections
import ctypes
import importlib
import pickle
import sys
import zlib
from array import array
from pathlib import Path
from typing import Any

SHOWN = 5


def main() -> int:
    folder, file = sys.argv[1:]
    sys.path.insert(0, folder)
    name, calls = pickle.loads(zlib.decompress(Path(file).read_bytes()))
    module = importlib.import_module(name)
    assert Path(module.__file__).parent.resolve() == Path(folder).resolve(), module.__file__
    problems: dict[int, Any] = {}
    counts, wrong = collections.Counter[str](), 0
    for entry, number, before, by_name, outcome, after in calls:
        arrays: dict[int, Any] = {}
        arguments = [decoded(each, arrays, problems) for each in before]
        named = {name: decoded(each, arrays, problems) for name, each in by_name.items()}
        if entry == "Problem":
            call = problems.setdefault(number, module.Problem.__new__(module.Problem)).__init__
        else:
            call = getattr(module, entry)
        try:
            ended = [call(*arguments, **named)]
        except Exception as error:
            ended = [type(error).__name__, str(error)]
        left = [bytes(each) for each in (*arguments, *named.values()) if isinstance(each, memoryview)]
        counts[entry] += 1
        if repr(ended) != repr(outcome) or left != after:
            wrong += 1
            if wrong <= SHOWN:
                print(f"{entry}, call {counts[entry]}: {ended}, recorded {outcome}")
    for entry, count in sorted(counts.items()):
        print(f"{count} {entry}")
    print(f"{wrong} of {len(calls)} differ")
    return int(bool(wrong) or not calls)


def decoded(form: Any, arrays: dict[int, Any], problems: dict[int, Any]) -> Any:
    """Return the value of a recorded form; one form is one array in all of a call."""
    if not isinstance(form, tuple):
        return form
    kind, *content = form
    if kind == "problem":
        return problems[content[0]]
    if kind == "table":
        return {name: decoded(each, arrays, problems) for name, each in content[0].items()}
    if id(form) not in arrays:
        arrays[id(form)] = array_of(*content)
    return arrays[id(form)]


def array_of(code: str, shape: tuple[int, ...], numbers: bytes) -> Any:
    """Return what the kernel takes for an array."""
    if all(shape):
        return memoryview(bytearray(numbers)).cast(code, shape)
    if len(shape) == 1:
        return memoryview(array(code))
    empty: Any = {"d": ctypes.c_double, "i": ctypes.c_int, "b": ctypes.c_byte}[code]
    for size in reversed(shape):  # a cast has no size of 0
        empty *= size
    return memoryview(empty())


if __name__ == "__main__":
    sys.exit(main())
