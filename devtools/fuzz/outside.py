"""Faults from outside: what fails, is killed, full or changed meanwhile, nothing is left half done.

Exceptions at any step of a bake; disks that are full, links, two processes on one file; files, undo and the
extension itself pulled away in mid-bake; values that no property takes.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import bpy

from devtools.fuzz import command_lines, inside_blender, rigs
from devtools.fuzz.outcome import Outcome

KINDS: dict[str, Callable[[random.Random], list[str]]] = {
    "exception in a bake": inside_blender.injected,
    "file changed in mid-bake": inside_blender.changed_meanwhile,
    "disabled and enabled": inside_blender.on_and_off,
    "values out of range": inside_blender.out_of_range,
    "full disk": command_lines.full,
    "two processes on one file": command_lines.two_at_once,
    "a stranger's file": inside_blender.stranger,
}


def prepare() -> None:
    """Install the extension."""
    rigs.prepare()


def run(seed: int) -> Outcome:
    """Try one kind of fault."""
    rng = random.Random(seed)
    kind = rng.choice(list(KINDS))
    bpy.ops.wm.read_homefile(use_empty=True)
    return Outcome(kind, [f"{kind}: {words}" for words in KINDS[kind](rng)])
