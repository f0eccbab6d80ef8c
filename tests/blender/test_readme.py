"""The README's examples, run as they stand there."""

from __future__ import annotations

import re
from math import isclose

import rigs
from installed import PACKAGE, ROOT

EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M
)


def example(words: str) -> str:
    """The one example with these words in it."""
    (found,) = (each for each in EXAMPLES if words in each)
    return found


def test_every_example_is_run_here():
    assert len(EXAMPLES) == 2


def test_the_scripted_bake(ext, capsys):
    ball = rigs.empty("Ball")
    for frame, z in ((1, 1.2), (250, 1.6)):
        ball.location = (0.1, 0.5, z)
        ball.keyframe_insert("location", frame=frame)
    arm = (("upper_arm.L", 1.0, 1.5), ("forearm.L", 1.5, 2.0), ("hand.L", 2.0, 2.2))
    parents = ("", "upper_arm.L", "forearm.L")
    rig = rigs.armature(
        [
            rigs.B(name, (0, 0, low), (0, 0, high), parent, connect=bool(parent))
            for (name, low, high), parent in zip(arm, parents, strict=True)
        ]
    )
    rigs.activate(rig)
    exec(compile(example("bpy.ops.ccd_rig.bake"), "README.md", "exec"), {})
    assert capsys.readouterr().out.strip().splitlines()[-1] == rig.ccd_rig.report.words
    assert "250 of 250 frames reached" in rig.ccd_rig.report.words
    limit = rig.pose.bones["forearm.L"].ccd_rig.limit
    assert limit.kind == "HINGE"
    assert isclose(limit.hinge_upper, 2.6, rel_tol=1e-6)
    keyed = [
        c.data_path
        for c in ext.module("ccd_rig.blender.keys.channels").fcurves_for(rig.animation_data.action, rig)
    ]
    assert any("hand.L" in path for path in keyed)


def test_the_solver_alone(ext, capsys):
    # Outside Blender's extension the package has no prefix; the README says so in words.
    code = example("arm = Skeleton(").replace("from ccd_rig import", f"from {PACKAGE}.ccd_rig import")
    assert code != example("arm = Skeleton(")
    space: dict = {}
    exec(compile(code, "README.md", "exec"), space)
    assert space["result"].status is ext.core.SolveStatus.CONVERGED
    assert "CONVERGED" in capsys.readouterr().out
