"""A target goes from the scene to its key through the containers of the table in the architecture page."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

import bpy
import numpy as np
import rigs
from mathutils import Matrix

PAGE = Path(__file__).resolve().parents[3] / "docs/development/architecture.md"
PLACES = {1: (0.731, 0.2, 2.0), 4: (0.352, 0.4, 1.9)}
NEAR = 2e-6  # of single precision


def holds(value, number):
    """Whether a field is, or is made of, arrays or matrices with a number in them."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool((np.abs(value - number) < NEAR).any())
    if isinstance(value, Matrix):
        return holds(np.array(value), number)
    if isinstance(value, list) or type(value) is tuple or type(value).__name__ == "TargetRows":
        return any(holds(each, number) for each in value)
    return False


def containers(package, numbers, work):
    """Names of the classes whose instances have held all the numbers while something was done."""
    seen = defaultdict(set)

    def look(value):
        kind = type(value)
        if not kind.__module__.startswith(package) or kind.__name__ == "TargetRows":
            return
        fields = value._asdict() if hasattr(value, "_asdict") else getattr(value, "__dict__", {})
        for number in numbers:
            if any(holds(each, number) for each in fields.values()):
                seen[kind].add(number)

    def profile(frame, event, result):
        if event == "return" and frame.f_globals.get("__name__", "").startswith(package):
            for value in (result, *frame.f_locals.values()):
                for each in value[:9] if isinstance(value, list) else (value,):
                    look(each)

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    names = (f"{kind.__module__}.{kind.__name__}" for kind, held in seen.items() if len(held) == len(numbers))
    return {name.partition("ccd_rig.ccd_rig.")[2].removeprefix("blender.") for name in names}


def test_a_target_goes_through_the_containers_of_the_table(bake, channels):
    rig, settings = rigs.chain(4), bake.BakeSettings(1, 4, verify=False)
    bpy.context.scene.frame_end = 4  # no frame is shown beside the range, so nothing is played afterwards
    rigs.reach(rig, "bone_3", rigs.keyed(rigs.empty("Goal"), PLACES), chain_length=0)

    def baked():
        rig.animation_data_clear()
        bake.bake(bpy.context.scene, rig, settings)

    baked()
    path = 'pose.bones["bone_1"].rotation_quaternion'
    curves = {(each.data_path, each.array_index): each for each in channels.fcurves_of(rig)}
    keys = [curves[path, 3].evaluate(frame) for frame in PLACES]
    package = bake.__name__.partition(".blender.")[0]
    targets = containers(package, [place[0] for place in PLACES.values()], baked)
    poses = containers(package, keys, baked)
    table = PAGE.read_text(encoding="utf-8").partition("## The way of a target")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE)
    assert {*named} == targets | poses
    assert len(named) <= 8
