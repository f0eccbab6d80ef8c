"""Names that modules do not have are found by `dev.py lint`, in the product as in tests and tools."""

from __future__ import annotations

import pytest

from devtools import references

FILES = {
    "ccd_rig/__init__.py": "",
    "ccd_rig/goals.py": "from math import pi\nclass Goal: ...\nTIGHT: float = pi\n",
    "ccd_rig/blender/__init__.py": "",
    "ccd_rig/blender/bake.py": "def bake(): ...\n",
    "ccd_rig/kernel/__init__.py": "globals().update(solve=1)\n",
    "tests/core/chains.py": "def chain(): ...\n",
}
SOUND = """
import math
import chains
from ccd_rig import goals, kernel
from ccd_rig.goals import Goal, TIGHT
from chains import chain
PACKAGE = "installed"
BLENDER = "ccd_rig.blender"
def f(ext, goals_of):
    math.nothing, goals.Goal, goals.pi, kernel.solve, kernel.anything
    ext.module("ccd_rig.blender.bake").bake, ext.module("blender.bake").bake
    ext.module(f"{BLENDER}.bake").bake
    import_module(f"{PACKAGE}.ccd_rig.goals").Goal
    goals = goals_of(ext)
    goals.anything
def g(goals): goals.anything
h = lambda goals: goals.anything
"""
BROKEN = {
    "from ccd_rig.goals import Gaol": "ccd_rig.goals has no Gaol",
    "from ccd_rig import gaols": "ccd_rig has no gaols",
    "from chains import chian": "chains has no chian",
    "from ccd_rig import goals\ngoals.Gaol": "ccd_rig/goals.py has no Gaol",
    "from ccd_rig import goals as g\ndef f():\n    return lambda: g.Gaol": "ccd_rig/goals.py has no Gaol",
    "x.module('ccd_rig.gaols')": "there is no module 'ccd_rig.gaols'",
    "x.module('blender.bake').back": "ccd_rig/blender/bake.py has no back",
    "PACKAGE = 'there'\nimport_module(f'{PACKAGE}.ccd_rig.gaols')": "there is no module",
    "def f(ext):\n    bake = ext.module('ccd_rig.blender.bake')\n    bake.back()": "bake.py has no back",
}


@pytest.fixture
def missing(tmp_path):
    def of(text: str) -> list[str]:
        for name, content in {**FILES, "tests/core/test_it.py": text}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        return references.missing(tmp_path)

    return of


def test_sound_references_are_left_alone(missing):
    assert missing(SOUND) == []


@pytest.mark.parametrize("text", BROKEN)
def test_a_name_that_is_not_there(missing, text):
    (line,) = missing(text)
    assert line.startswith(f"tests/core/test_it.py:{text.count(chr(10)) + 1}: ")
    assert BROKEN[text] in line
