"""The examples of the README and of docs/, run as they stand there."""

from __future__ import annotations

import re
from math import isclose

import bpy
import rigs
from installed import PACKAGE, ROOT

PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
EXAMPLES = [
    (name, code)
    for name, text in PAGES.items()
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)
]
WORDS = (  # a part of each example that no other has
    "bpy.ops.ccd_rig.bake(frame_start=1, frame_end=250",
    "arm = Skeleton(",
    "bpy.ops.ccd_rig.solve()",
    'destination="NLA_STRIP"',
    "DirectionGoal(",
    "in iterate(",
    "= solve_many(",
    "= drag(",
    "CoupledOffset(",
    "coupled_offsets.add()",
)


def run(words: str) -> dict:
    """Run the one example with these words in it; what its names then hold."""
    ((name, code),) = ((name, code) for name, code in EXAMPLES if words in code)
    # Inside Blender the package has a prefix; docs/reference/scripting.md says so in words.
    code = code.replace("from ccd_rig import", f"from {PACKAGE}.ccd_rig import")
    space: dict = {}
    exec(compile(code, name, "exec"), space)
    return space


def limb():
    """An arm of three bones, active, and a target that moves near it."""
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
    return rig


def test_every_example_is_run_here():
    assert sorted(code for _, code in EXAMPLES) == sorted(
        code for words in WORDS for _, code in EXAMPLES if words in code
    )


def test_the_scripted_bake(channels, capsys):
    rig = limb()
    run("bpy.ops.ccd_rig.bake(frame_start=1, frame_end=250")
    assert capsys.readouterr().out.strip().splitlines()[-1] == rig.ccd_rig.report.words
    assert "250 of 250 frames reached" in rig.ccd_rig.report.words
    limit = rig.pose.bones["forearm.L"].ccd_rig.limit
    assert limit.kind == "HINGE"
    assert isclose(limit.hinge_upper, 2.6, rel_tol=1e-6)
    keyed = [c.data_path for c in channels.fcurves_for(rig.animation_data.action, rig)]
    assert any("hand.L" in path for path in keyed)


def test_the_scripted_solve_and_a_bake_into_a_strip(ext, capsys):
    rigs.empty("Pole", (0.0, 3.0, 1.5))
    rig = limb()
    run("bpy.ops.ccd_rig.solve()")
    assert "FINISHED" in capsys.readouterr().out
    bpy.context.view_layer.update()
    tip = rig.matrix_world @ rig.pose.bones["hand.L"].tail
    assert (tip - bpy.data.objects["Ball"].matrix_world.translation).length < 1e-4
    run('destination="NLA_STRIP"')
    words, check = capsys.readouterr().out.strip().splitlines()[-2:]
    assert "50 of 50 frames reached" in words
    assert words.endswith("keys kept")
    assert check.startswith("Plays as baked")
    assert len(rig.animation_data.nla_tracks) > 0


def test_the_solver_alone(ext, capsys):
    assert run("arm = Skeleton(")["result"].status is ext.core.SolveStatus.CONVERGED
    assert "CONVERGED" in capsys.readouterr().out


def test_several_goals(ext, capsys):
    result = run("DirectionGoal(")["result"]
    assert result.status is ext.core.SolveStatus.CONVERGED
    assert result.errors[0].distance < 1e-5
    assert "CONVERGED" in capsys.readouterr().out


def test_one_result_per_iteration(ext, capsys):
    result = run("in iterate(")["result"]
    assert result.status is ext.core.SolveStatus.CONVERGED
    assert len(capsys.readouterr().out.splitlines()) >= result.iterations


def test_many_poses_at_once(ext, capsys):
    many = run("= solve_many(")["many"]
    assert set(many.statuses) == {ext.core.SolveStatus.CONVERGED}
    assert many.distances.max() < 1e-4
    assert "CONVERGED" in capsys.readouterr().out


def test_bones_are_dragged(ext, capsys):
    space = run("= drag(")
    assert space["result"].status.name == "CONVERGED"
    assert max(error.distance for error in space["result"].errors) < 1e-4
    assert capsys.readouterr().out.startswith("SolveStatus.CONVERGED")


def test_a_knee_that_rolls(ext, capsys):
    result = run("CoupledOffset(")["result"]
    assert result.status is ext.core.SolveStatus.CONVERGED
    assert any(result.pose.translations[0])
    assert "CONVERGED" in capsys.readouterr().out


def test_a_knee_rolls(ext):
    shins = [rigs.B("thigh.L", (0, 0, 1), (0, 0, 0.5)), rigs.B("shin.L", (0, 0, 0.5), (0, 0, 0), "thigh.L")]
    rig = rigs.armature(shins)
    run("coupled_offsets.add()")
    settings = ext.module("ccd_rig.blender.properties.joints").joint_settings(rig, ["shin.L"])["shin.L"]
    (offset,) = settings["coupled_offsets"]
    assert (offset.hinge, offset.axis) == ("shin.L", (0.0, 0.0, 1.0))
    assert isclose(offset.shift(1.2), -0.004, abs_tol=1e-7)
