"""Mutation testing: which lines belong to a change, and what each part is judged by."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from devtools import mutation
from devtools.environments import ROOT

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


@lru_cache(maxsize=2)
def kept():
    return 1
'''


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        (4, ()),  # a constant over several lines
        (9, ()),  # decorator, head and defaults run on import
        (11, ()),
        (14, (13, 14)),  # a condition without its block
        (15, (15, 15)),
        (18, (17, 20)),
        (21, (21, 21)),  # what is caught
        (22, (22, 22)),
        (26, ()),
        (29, (29, 29)),
        (34, ()),  # which only the first call runs
    ],
)
def test_the_statement_around_a_line(line, lines):
    """None of a constant or of a function's head, which run on import: any test of the file may tell."""
    result = mutation.statement(SOURCE, line)
    assert (result[0], result[-1]) == lines if lines else not result


def test_each_part_has_sources_and_tests():
    for sources, without, tests in mutation.PARTS.values():
        files = [file.relative_to(ROOT).as_posix() for file in Path(ROOT).glob(sources)]
        assert any(not re.search(without, file) for file in files)
        assert any(Path(ROOT, tests).rglob("test_*.py"))
    core, kernel = mutation.PARTS["core"], mutation.PARTS["kernel"]
    assert re.search(core[1], "ccd_rig/blender/bake/shot.py") and re.search(core[1], "ccd_rig/kernel/ccd.py")
    assert not re.search(core[1], "ccd_rig/limits/shapes.py")
    assert re.search(kernel[1], "ccd_rig/kernel/plain.py") and not re.search(
        kernel[1], "ccd_rig/kernel/pose.py"
    )


@pytest.mark.parametrize(
    ("line", "name"), [(3, ""), (10, "bent"), (17, "bent"), (26, "Bone"), (29, "Bone.turn"), (34, "kept")]
)
def test_the_function_around_a_line(line, name):
    assert mutation.function_of(SOURCE, line) == name


def test_each_reason_is_about_a_line_that_there_is():
    """In its file and its function: a line of the same text elsewhere is no answer."""
    for each in json.loads(mutation.HARMLESS.read_text(encoding="utf-8")):
        source = Path(ROOT, each["file"]).read_text(encoding="utf-8")
        places = [k for k, line in enumerate(source.splitlines(), 1) if line.strip() == each["was"]]
        assert each["function"] in {mutation.function_of(source, place) for place in places}, each
        assert each["was"] != each["mutant"] and each["reason"], each
