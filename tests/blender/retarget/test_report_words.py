"""What the report of a retargeting says of its measures, in words and numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
import rigs


@pytest.fixture
def told(ext, retarget):
    """The lines and warnings of a report with these measures; everything else is in order."""
    measures = ext.module("ccd_rig.motion.retargeting.measures")

    def of(frames=(1.0, 2.0, 3.0), missing=(), is_still=False, turned=(), left=(), **values):
        usual = {
            "errors": {}, "followed": frozenset(), "stances": [stance()], "penetration": 0.0, "hover": 0.0,
            "ground": 0.25, "turn": math.radians(12.0), "source_turn": math.radians(10.0), "jerk": 3.0,
            "source_jerk": 2.0, "flipped": 0, "broken": 0, "moved_frames": 0, "moved": 0.0,
        }  # fmt: skip
        done = SimpleNamespace(
            frames=frames,
            bone_map=SimpleNamespace(bones={"hips": "Hips", "head": "Head"}, hips="hips", missing=missing),
            is_still=is_still,
            turned=[retarget.TurnedBone(*each) for each in turned],
            left=left,
            measures=measures.Measures(**usual | values),
        )
        return retarget.lines(done), retarget.warnings(done)

    return of


def stance(slide=0.002, source_slide=0.004, drift=0.0015):
    return SimpleNamespace(slide=slide, source_slide=source_slide, drift=drift)


def test_what_is_in_order(told, retarget):
    lines, warnings = told()
    assert lines == (
        "3 frames, 1 to 3; 2 bones follow",
        "1 contact: feet drift 1.5 mm at most and slide 2 mm/s, the source's 4 mm/s",
        "Ground at a height of 0.250 m: soles get 0.0 mm below it at most",
        "Hips are where the source has them",
        "Largest turn 12.0° a frame, the source's 10.0°",
        "Jerk of hands and feet 1.50 of the source's",
        "No knee or elbow bends to another side, and no limit is broken",
    )
    assert warnings == ()
    assert told(frames=(7.0,))[0][0] == "1 frame, 7 to 7; 2 bones follow"
    assert told(source_jerk=0.0)[0][5] == "Jerk of hands and feet is as the source's"
    assert told(is_still=True)[1] == (retarget.STILL,)


def test_of_bones_that_constraints_turn_the_worst_is_told(told):
    words = "Bone 'shin': Blender's constraint 'Copy' turns it after its keys, by 29° at most"
    for turned, more in (
        ([("shin", "Copy", 0.5)], ""),
        ([("shin", "Copy", 0.5), ("a", "b", 0.1)], " (and 1 more)"),
    ):
        lines, warnings = told(turned=turned)
        assert warnings == (f"{words}{more}: mute it, and press again",) and lines[1] == warnings[0]


def test_a_bone_that_is_right_in_the_world_or_to_its_parent_plays_its_keys(retarget):
    """Both bones have a constraint that may turn them, by 30 degrees about X."""
    rig = rigs.chain(2)
    for bone in rig.pose.bones:
        bone.constraints.new("COPY_ROTATION").target = rigs.empty(f"Lead {bone.name}")
    joints = [SimpleNamespace(name=f"bone_{i}", parent=i - 1) for i in range(2)]
    figure = SimpleNamespace(skeleton=SimpleNamespace(joints=joints))
    still, turn = (1.0, 0.0, 0.0, 0.0), (math.cos(math.pi / 12), math.sin(math.pi / 12), 0.0, 0.0)
    for played, expected in (
        ((turn, turn), ["bone_0"]),
        ((turn, still), ["bone_0"]),
        ((still, turn), ["bone_1"]),
        ((still, still), []),
    ):
        told = retarget.turned_after_keys(rig, figure, np.array([[still, still]]), np.array([played]))
        assert [each.bone for each in told] == expected
        assert all(each.angle == pytest.approx(math.pi / 6) for each in told)


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, "a"), (4, "a, b, c, d"), (5, "a, b, c, d and 1 more"), (7, "a, b, c, d and 3 more")],
)
def test_of_missing_bones_four_are_named(told, count, expected):
    assert told(missing=tuple("abcdefg"[:count]))[0][1] == f"Nothing to follow for: {expected}"


def test_contacts_are_summed_up(told):
    stances = [stance(), stance(slide=0.004, source_slide=0.01, drift=0.0002)]
    expected = "2 contacts: feet drift 1.5 mm at most and slide 3 mm/s, the source's 7 mm/s"
    assert told(stances=stances)[0][1] == expected
    lines, warnings = told(stances=[])
    assert lines[1] == "No foot is ever down" and warnings[0].startswith("No foot is ever down: raise Speed")


def test_figures_without_legs_have_no_ground(told, retarget):
    lines, warnings = told(has_legs=False, stances=[])
    assert lines[1] == retarget.NO_LEGS and warnings == (retarget.NO_LEGS,)
    assert not any("Ground" in each or "Hips" in each for each in lines)


def test_errors_are_told_by_limb_and_warned_of_where_they_are_followed(told):
    errors = {
        "left foot": 0.02,
        "right foot": 0.431,
        "knee left": 0.01,
        "knee right": 0.05,
        "head tip": 0.004,
    }
    lines, warnings = told(errors=errors, followed=frozenset({"left foot", "right foot"}))
    assert lines[2] == (
        "Off the source's, in parts of the limb: left foot: 2.0 %, right foot: 43.1 %, worse knee: 5.0 %, "
        "the head: 0.4 %"
    )
    assert warnings == ("right foot: 43.1 % of the limb's length off the source's",)


def test_soles_above_and_below_the_ground(told):
    assert told(penetration=0.9123)[0][2].endswith("soles get 912.3 mm below it at most")
    assert told(hover=0.0005)[0][2].endswith("soles get 0.0 mm below it at most")
    assert told(hover=0.9234)[0][2].endswith("soles stay 923.4 mm above it at least")


def test_hips_that_move_and_joints_that_are_wrong(told):
    assert told(moved_frames=1, moved=0.9876)[0][3] == (
        "Hips are moved in 1 frame, by 987.6 mm at most, for legs to reach"
    )
    lines, warnings = told(flipped=2, broken=1)
    assert lines[-2:] == ("Knees and elbows bend to another side in 2 frames", "Limits are broken 1 time")
    assert warnings == ("A knee or elbow bends to another side in 2 frames",)
    assert told(flipped=1)[0][-1] == "Knees and elbows bend to another side in 1 frame"
    assert told(broken=3)[0][-1] == "Limits are broken 3 times" and told(broken=3)[1] == ()


def test_the_report_is_in_metres_by_the_scale_of_units(retarget, source, target):
    choice, tables = retarget.RetargetChoice(frames=(1, 25)), []
    for scale in (1.0, 0.01):
        bpy.context.scene.unit_settings.scale_length = scale
        done = retarget.retarget_motion(bpy.context.scene, source, target, choice)
        tables.append(retarget.as_values(done))
    for name in ("moved", "penetration", "hover", "ground"):
        assert tables[1][name] == pytest.approx(0.01 * tables[0][name], abs=1e-9)
    one, other = (values["stances"][0] for values in tables)
    for name in ("drift", "slide", "source_slide"):
        assert other[name] == pytest.approx(0.01 * one[name], abs=1e-9)
    assert tables[1]["errors"] == pytest.approx(tables[0]["errors"])
