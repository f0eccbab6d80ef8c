"""What an animator would see in a bake: ranges of frames, the worst of them, and the setting that helps."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
import rigs
from finding_bakes import FRAMES, of, run
from mathutils import Quaternion, Vector


@pytest.fixture
def finding(ext):
    return ext.module("ccd_rig.blender.bake.report")


def test_frames_out_of_reach_are_one_range(bake, channels):
    """Constant keys: the target is 0.5 m too far from frame 10 to 15."""
    rig = rigs.chain(3)
    target = rigs.keyed(rigs.empty("Goal"), {1: (2, 0, 1.5), 10: (3.5, 0, 0), 16: (2, 0, 1.5)})
    rigs.interpolate(channels.fcurves_of(target), "CONSTANT")
    rigs.reach(rig, "bone_2", target, "tail.tip")
    report = run(bake, rig, 30)
    (short,) = of(report, "SHORT")
    assert (short.frame_start, short.frame_end) == (10, 15)
    assert short.distance == pytest.approx(0.5, abs=1e-3)
    assert short.words() == "10-15 tail.tip 0.5 m out of reach"
    assert [each["words"] for each in json.loads(report.to_json())["findings"]][:1] == [short.words()]
    told = "a target is out of reach: bring it nearer to its chain, or the figure to it"
    assert f"(tail.tip); {told}" in report.summary()


LENGTHS = {
    *("residual", "keyed_residual", "tolerance", "distance", "played_distance", "deviation"),
    *("leg", "rms", "mean", "worst", "travel"),
}


def numbers_of(content, place=()):
    """(place, number) of all that a report tells in JSON, without words and seconds."""
    if isinstance(content, dict):
        for name, value in content.items():
            if name not in ("words", "summary", "seconds"):
                yield from numbers_of(value, (*place, name))
    elif isinstance(content, list):
        for value in content:
            yield from numbers_of(value, place)
    elif isinstance(content, int | float):
        yield place, content


def test_lengths_are_metres_by_the_unit_scale(bake, capfd):
    """Of all numbers, in a scene in centimetres, exactly the lengths are a hundredth."""
    rig = rigs.armature(rigs.biped())
    hips = rig.pose.bones["hips"]
    for frame, rise in ((1, 0.0), (10, 0.6)):
        hips.location.y = rise
        hips.keyframe_insert("location", frame=frame)
    rigs.reach(rig, "foot.L", None, "Foot", kind="PLANT", chain_length=4)
    for name, x in (("A", 3.0), ("B", 3.5)):  # both out of reach, and in conflict
        rigs.reach(rig, "spine", rigs.empty(name, (x, 0.0, 1.0)), name, chain_length=1)
    rigs.activate(rig)
    scene, tables, words = bpy.context.scene, [], []
    for scale, start in ((1.0, bake.Start.ACTION), (0.01, bake.Start.ORIGINAL)):
        scene.unit_settings.scale_length = scale
        report = run(bake, rig, 10, start=start)
        tables.append(list(numbers_of(json.loads(report.to_json()))))
        assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
        words.append(capfd.readouterr().out)
    changed = set()
    for (place, value), (also, other) in zip(*tables, strict=True):
        assert place == also
        is_length = place[-1] in LENGTHS or place[-2:] in (("rise", "amount"), ("hover", "amount"))
        assert other == pytest.approx((0.01 if is_length else 1.0) * value, rel=1e-6, abs=1e-12), place
        if is_length and value:
            changed.add(place[-1])
    assert {"residual", "keyed_residual", "tolerance", "distance", "leg", "rms", "amount"} <= changed
    metres, centimetres = (float(re.search(r"([0-9.]+) m .*off at worst", each)[1]) for each in words)
    assert centimetres == pytest.approx(0.01 * metres, rel=0.05)


def leaping(channels, path):
    """A bone that reaches for a target which leaps from place to place, at frames."""
    rig = rigs.chain(1)
    target = rigs.keyed(rigs.empty("Goal"), path)
    rigs.interpolate(channels.fcurves_of(target), "CONSTANT")
    return rig, rigs.reach(rig, "bone_0", target, "Hand")


@pytest.mark.parametrize("keys", ["EVERY_FRAME", "SOLVED_FRAMES"])
@pytest.mark.parametrize("influence", [1.0, 0.5])
def test_targets_that_are_missed_between_solves_alone(ext, bake, keys, influence, channels):
    """The bone stands up at both solves, and its target lies a quarter of a turn off from frame 5 to 6."""
    rig, row = leaping(channels, {1: (0, 0, 1), 5: (1, 0, 0), 7: (0, 0, 1)})
    row.influence = influence
    report = run(bake, rig, 11, step=10, keys=bake.Keys[keys])
    assert report.unsolved_count() == 0
    between = of(report, "BETWEEN")
    assert [(each.frame_start, each.frame_end, each.bone) for each in between] == [(5, 6, "bone_0")]
    assert between[0].distance == pytest.approx(math.sqrt(2.0), abs=1e-3)
    assert not report.is_sound
    assert not report.reaches_all
    assert between[0].words() in report.summary()
    shot, farm = SimpleNamespace(name="shot", spans=lambda: [()]), ext.module("ccd_rig.blender.farm.results")
    assert farm.row_of(shot, report)["worst"] == pytest.approx(between[0].distance, abs=1e-6)


@pytest.mark.parametrize("most", [0.9, 1.0])
@pytest.mark.parametrize("parent", ["", "moves", "scaled"])
def test_an_influence_that_changes_between_solves_alone(bake, parent, most):
    """The target lies a quarter of a turn off, of which the keys ask for a fifth, and the influence for more.

    The parent has keys of its own, at every frame.
    """
    rig = rigs.chain(2 if parent else 1)
    tip = rig.pose.bones[-1]
    for frame in range(1, 12) if parent else ():
        rig.pose.bones[0].rotation_quaternion = Quaternion((0, 0, 1), 0.4 * (frame % 3))
        rig.pose.bones[0].keyframe_insert("rotation_quaternion", frame=frame)
        if parent == "scaled":
            rig.pose.bones[0].scale = (1.0 + 0.1 * (frame % 4),) * 3
            rig.pose.bones[0].keyframe_insert("scale", frame=frame)
    target = rigs.empty("Goal", (1.0, 0.0, 0.0))
    if parent:
        target.parent, target.parent_type, target.parent_bone = rig, "BONE", "bone_0"
    row = rigs.reach(rig, tip.name, target, chain_length=1)
    for frame, influence in ((1, 0.2), (6, most), (11, 0.2)):
        row.influence = influence
        row.keyframe_insert("influence", frame=frame)
    settings = {"step": 10, "start": bake.Start.REST}
    (between,) = of(run(bake, rig, 11, keys=bake.Keys.SOLVED_FRAMES, **settings), "BETWEEN")
    assert between.frame == 6
    turn = math.radians(90.0) * (most - 0.2)
    size = 1.2 if parent == "scaled" else 1.0  # of frame 6
    assert between.distance == pytest.approx(size * 2.0 * math.sin(0.5 * turn), rel=0.01)
    assert of(run(bake, rig, 11, **settings), "BETWEEN") == []


def test_between_solves_nothing_is_missed_on_the_way_of_the_slerps(bake, channels):
    """A target goes a quarter round the bone's head, steadily: every pose between is met."""
    quarter = np.radians(90.0) / 10.0
    path = {1 + k: (math.sin(k * quarter), 0, math.cos(k * quarter)) for k in range(11)}
    rig, _ = leaping(channels, path)
    report = run(bake, rig, 11, step=5)
    assert report.is_sound
    assert report.reaches_all


def test_what_solved_frames_miss_is_not_missed_between_them(bake, channels):
    """The target is out of reach by as much at all frames."""
    rig, _ = leaping(channels, {1: (0, 0, 3)})
    report = run(bake, rig, 11, step=5)
    assert [each.trouble for each in report.findings] == ["SHORT"]


def test_a_rotation_that_is_missed_where_the_target_is_reached_is_not_out_of_reach(bake):
    """The target is too far away by less than the tolerance, and asks for a roll that hinges do not have."""
    rig = rigs.chain(2)
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind = "HINGE"
    target = rigs.empty("Goal", (0.0, 0.0, 2.0 + 0.5 * rig.ccd_rig.solver.position_tolerance))
    target.rotation_euler = (math.pi / 2, 0.0, 1.0)
    rigs.reach(rig, "bone_1", target, rotation="ORIENTATION")
    report = run(bake, rig, 5)
    assert of(report, "SHORT") == []
    (off,) = of(report, "OFF")
    assert off.distance == 0.0 and off.angle == pytest.approx(1.0, abs=0.01)
    assert "out of reach" not in report.summary()


def test_a_run_that_misses_nothing_hides_no_later_one(ext):
    """Frames 2 and 3 are only served after others, within tolerance; at 7 and 8 the target is missed."""
    findings = ext.module("ccd_rig.blender.bake.findings")
    distances = np.zeros((10, 1))
    distances[6:8, 0] = 0.2, 0.5
    baked = _missing(findings, distances, np.zeros((10, 1)), rows=(1, 2, 6, 7))
    (result,) = findings._missed(baked)
    assert (result.frame_start, result.frame_end, result.frame, result.distance) == (7, 8, 8, 0.5)


def _missing(findings, distances, angles, rows):
    """A bake of ten frames with misses of one constraint, within 0.1 mm and 0.01 rad; it stalls at `rows`."""
    states = {row: {0: "STALLED" if row in rows else "CONVERGED"} for row in range(10)}
    ended = np.array([[findings.STATUSES.index(each[0])] for each in states.values()])
    return SimpleNamespace(
        bake_frames=SimpleNamespace(
            states=states,
            frames=np.arange(1.0, 11.0),
            constraints=(SimpleNamespace(name="Hand", tip="hand", kind=None),),
        ),
        misses=(distances, angles),
        ended=ended,
        solver=SimpleNamespace(position_tolerance=1e-4, angle_tolerance=1e-2),
        chains=((),),
        targets=lambda _: np.zeros((10, 3)),
        reached=lambda _: np.zeros((10, 3)),
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [((5e-3, 0.02), (1e-3, 0.09)), ((5e-4, 0.3), (1e-3, 0.01))],  # 50 or 30 tolerances, and 10
)
def test_the_worst_frame_is_the_one_that_is_most_tolerances_off(ext, first, second):
    """In each pair the second frame is farther off in what is smaller by its tolerance."""
    findings = ext.module("ccd_rig.blender.bake.findings")
    distances, angles = np.zeros((10, 1)), np.zeros((10, 1))
    (distances[4, 0], angles[4, 0]), (distances[5, 0], angles[5, 0]) = first, second
    (result,) = findings._missed(_missing(findings, distances, angles, rows=(4, 5)))
    assert (result.frame_start, result.frame_end, result.frame) == (5, 6, 5)
    assert (result.distance, result.angle) == first


@pytest.mark.parametrize(("in_force", "span"), [((3, 8), (4, 8)), ((0, 0), (5, 5)), ((6, 9), (5, 5))])
def test_a_slip_is_told_with_the_frames_while_its_bone_is_planted_or_alone(ext, in_force, span):
    findings = ext.module("ccd_rig.blender.bake.findings")
    kind = ext.module("ccd_rig.blender.properties.constraint_kinds").KINDS
    influences = np.zeros((10, 1))
    influences[slice(*in_force)] = 1.0
    baked = SimpleNamespace(
        bake_frames=SimpleNamespace(
            frames=np.arange(1.0, 11.0),
            influences=influences,
            constraints=(SimpleNamespace(name="Foot", tip="foot", kind=kind["PLANT"]),),
            targets=SimpleNamespace(points=np.zeros((10, 1, 3))),
        ),
        world=lambda points: points,
        solver=SimpleNamespace(position_tolerance=1e-4),
        sizes=[1.0],
    )
    slip = SimpleNamespace(constraint="Foot", frame=5.0, played_distance=0.3)
    (result,) = findings._slides(baked, [slip])
    assert ((result.frame_start, result.frame_end), result.frame, result.distance) == (span, 5.0, 0.3)


def test_a_target_that_limits_keep_it_from_is_off_not_short(bake):
    rig = rigs.chain(2)
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind = "CONE"
        bone.ccd_rig.limit.cone_radius = 0.1
    rigs.reach(rig, "bone_1", rigs.empty("Goal", (1.0, 0.0, 0.0)))
    report = run(bake, rig, 5)
    (off,) = of(report, "OFF")
    assert (off.frame_start, off.frame_end) == (1, 5)
    assert off.words().startswith("1-5 bone_1 ") and off.words().endswith(" off")


def test_a_jump_is_relative_to_the_motions_own_speed(bake):
    """A target that circles fast is no jump; one that leaps in the midst of a slow motion is."""
    rig = rigs.chain(3)
    circle = {f: (1.5 * math.cos(0.4 * f), 1.5 * math.sin(0.4 * f), 1.0) for f in range(1, FRAMES + 1)}
    rigs.reach(rig, "bone_2", rigs.keyed(rigs.empty("Goal"), circle))
    assert of(run(bake, rig), "JUMP") == []
    target = rig.ccd_rig.constraints[0].target
    target.animation_data_clear()
    slow = {f: (1.5, 0.01 * f + (1.0 if f >= 20 else 0.0), 1.0) for f in range(1, FRAMES + 1)}
    rigs.keyed(target, slow)
    for start in (bake.Start.REST, bake.Start.REST, bake.Start.ACTION):
        jumps = of(run(bake, rig, start=start), "JUMP")
        assert [(each.frame, each.follows, each.fix) for each in jumps] == [(20, True, "")]
        assert jumps[0].words().endswith(", as its target does")


def test_a_speed_is_sudden_by_the_frames_around(ext):
    jumps = ext.module("ccd_rig.blender.bake.findings")
    speeds = np.full((40, 3), 0.05)
    speeds[20, 0] = 0.6  # a spike
    speeds[20:, 1] = 0.6  # a motion that starts and goes on
    speeds[:, 2] = 0.6  # one that is fast throughout
    result = jumps.is_sudden(speeds, math.radians(5.0))
    assert [tuple(at) for at in np.argwhere(result)] == [(20, 0)]
    assert not jumps.is_sudden(np.zeros((1, 2)), 0.1).any()
    first = np.zeros((12, 1))
    first[0] = 0.6
    assert np.argwhere(jumps.is_sudden(first, 0.1)).tolist() == [[0, 0]]


def test_a_held_foot_that_slides(bake):
    """The body of a leg with influence 0.5 moves, its target stands still."""
    rig = rigs.chain(3)
    foot = rigs.reach(rig, "bone_2", rigs.empty("Goal", (1.5, 0.0, 1.5)))
    for frame, angle in ((1, -0.5), (FRAMES, 0.5)):
        rig.pose.bones["bone_0"].rotation_quaternion = Quaternion((0, 0, 1), angle)
        rig.pose.bones["bone_0"].keyframe_insert("rotation_quaternion", frame=frame)
    assert of(run(bake, rig), "SLIDE") == []
    foot.influence = 0.5
    (slide,) = of(run(bake, rig, start=bake.Start.ORIGINAL), "SLIDE")
    assert (slide.frame_start, slide.frame_end, slide.constraint) == (1, FRAMES, "bone_2")
    assert slide.distance > 0.02 and " slides " in slide.words()


@pytest.mark.parametrize(("lowest", "count"), [(-0.5, 1), (-1.7, 2)])
def test_bones_below_the_ground_are_counted(bake, lowest, count):
    rig = rigs.chain(3)
    rig.location.z = 1.0
    rigs.reach(rig, "bone_2", rigs.empty("Goal", (1.0, 0.0, lowest)))
    (below,) = of(run(bake, rig, 3, ground=0.0), "GROUND")
    bpy.context.scene.frame_set(2)
    ends = [(rig.matrix_world @ end).z for bone in rig.pose.bones for end in (bone.head, bone.tail)]
    under = [min(pair) < -0.01 for pair in zip(ends[::2], ends[1::2], strict=True)]
    assert (sum(under), below.more) == (count, count - 1)


def test_bones_below_the_ground(bake, errors):
    rig = rigs.chain(3)
    rig.location.z = 1.0
    path = {1: (2.0, 0.0, 1.5), 24: (2.0, 0.0, -0.5), 48: (2.0, 0.0, 1.5)}
    rigs.reach(rig, "bone_2", rigs.keyed(rigs.empty("Goal"), path))
    assert of(run(bake, rig), "GROUND") == []
    (below,) = of(run(bake, rig, ground=0.0), "GROUND")
    assert below.bone == "bone_2" and below.frame == 24
    assert below.distance == pytest.approx(0.5, abs=1e-3)
    assert 10 < below.frame_start < 24 < below.frame_end < 40
    assert of(run(bake, rig, ground=-1.0), "GROUND") == []
    with pytest.raises(errors.InvalidInput, match="ground"):
        bake.BakeSettings(1, 2, ground=math.nan)


def hill(x, y, wide=20.0, name="Hill"):
    """A plane that rises along X by a third, with its middle at 0.2 m."""
    return rigs.ground(lambda a, b: 0.2 + a / 3.0, (x - wide, x + wide), (y - wide, y + wide), name)


def dipping():
    """A chain whose end goes from 1.5 m down to half a metre below 0, at X = 2, and up again."""
    rig = rigs.chain(3)
    rig.location.z = 1.0
    path = {1: (2.0, 0.0, 1.5), 24: (2.0, 0.0, -0.5), 48: (2.0, 0.0, 1.5)}
    rigs.reach(rig, "bone_2", rigs.keyed(rigs.empty("Goal"), path))
    return rig


def test_bones_are_above_the_ground_of_the_rig(bake):
    """A height, a slope, several objects: the deepest point is as far below what is below it. A height of the
    bake's own goes before."""
    rig = dipping()
    ground = rig.ccd_rig.ground
    ground.height, ground.object = 0.25, hill(0.0, 0.0)
    assert of(run(bake, rig), "GROUND") == []
    ground.kind = "HEIGHT"
    (below,) = of(run(bake, rig), "GROUND")
    assert (below.bone, below.frame) == ("bone_2", 24)
    assert below.distance == pytest.approx(0.75, abs=1e-3)
    assert of(run(bake, rig, ground=-1.0), "GROUND") == []
    ground.kind = "OBJECT"
    (below,) = of(run(bake, rig), "GROUND")
    assert (below.bone, below.frame) == ("bone_2", 24)
    assert below.distance == pytest.approx(0.5 + 0.2 + 2.0 / 3.0, abs=1e-3)
    ground.kind, ground.collection = "COLLECTION", bpy.data.collections.new("Set")
    bpy.context.scene.collection.children.link(ground.collection)
    ground.collection.objects.link(hill(0.0, 0.0, name="Copy"))
    ground.collection.objects.link(hill(0.0, 0.0, name="Roof"))
    bpy.data.objects["Roof"].location.z = 8.0
    (same,) = of(run(bake, rig), "GROUND")
    assert same == below, "what is above the figure is no ground"


def test_a_figure_that_is_all_below_the_ground_is_below_it(bake):
    rig = dipping()
    rig.ccd_rig.ground.kind, rig.ccd_rig.ground.object = "OBJECT", hill(0.0, 0.0)
    rig.ccd_rig.ground.object.location.z = 30.0
    (below,) = of(run(bake, rig), "GROUND")
    assert (below.frame_start, below.frame_end) == (1, FRAMES)
    assert below.distance == pytest.approx(30.0 + 0.5 + 0.2 + 2.0 / 3.0, abs=1e-3)


def test_the_ground_of_the_rig_is_that_of_the_frame(bake):
    """It comes up by 3 m, from 2 m below, while the chain is down; and where none is, nothing is below it."""
    rig = dipping()
    lift = hill(0.0, 0.0)
    rig.ccd_rig.ground.kind, rig.ccd_rig.ground.object = "OBJECT", lift
    rigs.keyed(lift, {1: (0.0, 0.0, -5.0), 30: (0.0, 0.0, -5.0), 31: (0.0, 0.0, 0.0)})
    (below,) = of(run(bake, rig), "GROUND")
    assert (below.frame_start, below.frame) == (31, 31)
    lift.animation_data_clear()
    lift.location = (200.0, 0.0, 0.0)
    assert of(run(bake, rig), "GROUND") == []


@pytest.mark.parametrize("kind", ["OBJECT", "COLLECTION"])
def test_a_ground_that_is_not_chosen_is_said_before_anything_is_solved(bake, errors, kind):
    rig = dipping()
    rig.ccd_rig.ground.kind = kind
    with pytest.raises(errors.RigError, match=f"Ground is {kind.title()}, and none is chosen"):
        run(bake, rig)
    rig.ccd_rig.ground.kind, rig.ccd_rig.ground.object = "OBJECT", rigs.empty("Nothing")
    with pytest.raises(errors.RigError, match="'Nothing' has no faces"):
        run(bake, rig)
    assert rig.animation_data is None
    run(bake, rig, ground=0.0)


def test_a_limit_that_holds_for_more_than_a_second(bake):
    rig = rigs.chain(2)
    limit = rig.pose.bones["bone_0"].ccd_rig.limit
    limit.kind, limit.axis, limit.hinge_lower, limit.hinge_upper = "HINGE", (1, 0, 0), -0.1, 0.1
    target = rigs.keyed(rigs.empty("Goal"), {1: (0.0, -0.1, 1.9), 12: (0.0, -1.2, 1.0), 40: (0.0, -1.3, 0.9)})
    rigs.reach(rig, "bone_1", target)
    (held,) = of(run(bake, rig), "LIMIT")
    assert held.bone == "bone_0" and held.frame_end - held.frame_start >= 24
    assert held.words().endswith("bone_0 held by its limit")
    bpy.context.scene.render.fps = 120
    assert of(run(bake, rig, start=bake.Start.ORIGINAL), "LIMIT") == []


@pytest.mark.parametrize(
    ("kind", "values", "turn"),
    [
        ("CONE", {"cone_radius": 0.5}, Quaternion((1, 0, 0), 0.5)),
        (
            "ELLIPSE",
            {"x_lower": -0.2, "x_upper": 0.6, "z_lower": -0.3, "z_upper": 0.3},
            Quaternion((1, 0, 0), 0.6),
        ),
        ("EULER", {"euler_lower": (-0.3,) * 3, "euler_upper": (0.3,) * 3}, Quaternion((0, 0, 1), 0.3)),
        ("HINGE", {"axis": (1, 0, 0), "hinge_lower": 0.2, "hinge_upper": 0.9}, Quaternion((1, 0, 0), 0.2)),
    ],
)
def test_at_its_limit(ext, kind, values, turn):
    findings, joints = (
        ext.module("ccd_rig.blender.bake.findings"),
        ext.module("ccd_rig.blender.properties.joints"),
    )
    rig = rigs.chain(1)
    limit = rig.pose.bones["bone_0"].ccd_rig.limit
    limit.kind = kind
    for name, value in values.items():
        setattr(limit, name, value)
    result = joints.joint_settings(rig, ["bone_0"])["bone_0"]["limit"]
    middle = turn.copy()
    middle.angle = turn.angle * (0.5 if kind != "HINGE" else 2.5)
    rotations = np.array([turn[:], middle[:], (-turn)[:]])
    assert findings.is_at_limit(result, rotations).tolist() == [True, False, True]


def test_a_loop_is_found_and_said(bake):
    """The target comes back to where it began, and so do the bones."""
    rig = rigs.chain(4)
    turns = np.linspace(0.0, 2.0 * math.pi, FRAMES)
    path = {f + 1: (2.0 * math.cos(a), 2.0 * math.sin(a), 1.0) for f, a in enumerate(turns.tolist())}
    rigs.reach(rig, "bone_3", rigs.keyed(rigs.empty("Goal"), path))
    report = run(bake, rig)
    assert (report.loop.frame_start, report.loop.frame_end) == (1, FRAMES)
    assert report.loop.closes and of(report, "LOOP") == []
    assert f"loop of frames 1 to {FRAMES} closes" in report.summary()
    assert json.loads(report.to_json())["loop"]["frame_end"] == FRAMES
    assert run(bake, rig, FRAMES - 2).loop is None  # two frames short of it
    still = rigs.chain(2, name="Still")
    rigs.reach(still, "bone_1", rigs.empty("There", (1.0, 0.0, 1.0)))
    assert run(bake, still).loop is None  # nothing moves


@pytest.mark.parametrize("solver", ["CCD", "CCD_LEAST_SQUARES"])
def test_the_next_round_may_begin_after_the_range(bake, solver):
    """As cycles for games are cut. A second bake, with keys of the first one below, says the same."""
    rig = rigs.chain(4)
    rig.ccd_rig.solver.solver = solver
    turns = np.linspace(0.0, 2.0 * math.pi, 25)
    path = {f + 1: (2.0 * math.cos(a), 2.0 * math.sin(a), 1.0) for f, a in enumerate(turns.tolist())}
    rigs.reach(rig, "bone_3", rigs.keyed(rigs.empty("Goal"), path))
    for destination in (bake.Destination.NEW_ACTION, bake.Destination.CURRENT_ACTION):
        report = run(bake, rig, 24, destination=destination)
        assert report.loop.repeats_after and report.loop.closes and of(report, "LOOP") == []
        assert "loop of frames 1 to 24 (25 is 1 again) closes" in report.summary()
    assert json.loads(report.to_json())["loop"]["repeats_after"]


@pytest.mark.parametrize("last", [48, 47])
def test_no_loop_is_kept_open_by_its_history(bake, last):
    """The elbow's animation bends it to one side at both ends, and far to the other one between them.

    Both solvers come back with the animation: each frame goes from its base pose.
    """
    rig = rigs.chain(2)
    elbow = rig.pose.bones["bone_1"]
    limit = elbow.ccd_rig.limit
    limit.kind, limit.axis, limit.hinge_lower, limit.hinge_upper = "HINGE", (1, 0, 0), -2.5, 2.5
    for frame, angle in ((1, 0.02), (24, -1.2), (48, 0.02)):
        elbow.rotation_quaternion = Quaternion((1, 0, 0), angle)
        elbow.keyframe_insert("rotation_quaternion", frame=frame)
    path = {1: (0.0, 0.0, 1.2), 16: (0.0, 0.0, 1.9), 24: (0.0, 0.0, 1.2), 48: (0.0, 0.0, 1.2)}
    rigs.reach(rig, "bone_1", rigs.keyed(rigs.empty("Goal"), path))
    for number, solver in enumerate(("CCD", "CCD_LEAST_SQUARES")):
        rig.ccd_rig.solver.solver = solver
        report = run(bake, rig, last, start=bake.Start.ORIGINAL if number else bake.Start.ACTION)
        assert report.loop.closes and report.loop.repeats_after == (last == 47)
        assert of(report, "LOOP") == []


def test_words_of_a_loop_that_does_not_close(ext):
    parts = ext.module("ccd_rig.blender.bake.report")
    open_loop = parts.Loop(1, 48, "tail", math.radians(4.2))
    assert not open_loop.closes
    assert open_loop.words() == "loop of frames 1 to 48 does not close: 'tail' ends 4.2 degrees off"


def test_findings_are_kept_with_the_armature(finding, bake):
    rig = rigs.chain(3)
    rigs.reach(rig, "bone_2", rigs.empty("Goal", (9.0, 0.0, 0.0)))
    report = run(bake, rig, 5)
    assert report.findings and finding.from_json(rig.ccd_rig.report.findings) == report.findings
    assert finding.from_json("") == ()


def test_frames_of_seven_digits_are_written_out(bake):
    """Blender has frames up to 1,048,574: they were 1.05e+06, all of them."""
    rig = rigs.chain(3)
    goal = rigs.keyed(rigs.empty("Goal"), {1048560: (2.0, 0.0, 1.5), 1048574: (4.0, 0.0, 1.0)})
    rigs.reach(rig, "bone_2", goal)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1048560, 1048574))
    words = [report.summary(), *(each.words() for each in report.findings)]
    assert "at frame 1048574" in words[0] and words[1].endswith("out of reach")
    assert "-1048574 bone_2" in words[1]
    assert "e+06" not in f"{words} {report.check.words()}"


def test_words(finding):
    result = finding.Finding(finding.Trouble.SHORT, "Hand", "hand", 57, 57, 57, distance=0.0021)
    assert result.words() == "57 Hand 2.1 mm out of reach"
    turned = finding.Finding(finding.Trouble.OFF, "Hand", "hand", 1, 9, 4, angle=math.radians(12.0))
    assert turned.words() == "1-9 Hand turned 12° off"
    limit = finding.Finding(finding.Trouble.LIMIT, "Leg", "shin", 1, 40, 1, more=2)
    assert limit.words() == "1-40 shin held by its limit (and 2 more)"


@pytest.mark.parametrize(
    ("kind", "taken"),
    [("met", True), ("planted", True), ("far before", False), ("off", False), ("too", False)],
)
def test_constraints_that_are_not_baked_are_told_if_the_bake_takes_them_off(bake, kind, taken):
    """The lower bone turns by a right angle: the end of the upper one goes from (0, 0, 2) to (2, 0, 0).

    From a target that is far off before, most of the way is not the bake's.
    """
    rig = rigs.chain(2, connect=False)
    rigs.reach(rig, "bone_0", rigs.empty("Low", (1.0, 0.0, 0.0)), "Low", chain_length=1)
    if kind == "planted":
        row = rigs.reach(rig, "bone_1", None, "High", kind="PLANT", chain_length=1)
    else:
        goal = rigs.empty("High", (0.0, 0.0, 2.0) if kind != "far before" else (-1.0, 0.0, 5.0))
        row = rigs.reach(rig, "bone_1", goal, "High", chain_length=1)
    row.enabled = kind != "off"
    report = run(bake, rig, 3, constraints=("Low", "High") if kind == "too" else ("Low",))
    findings = of(report, "TAKEN")
    assert bool(findings) == taken
    if taken:
        ((first, last, far, bone),) = [(f.frame_start, f.frame_end, f.distance, f.bone) for f in findings]
        assert (first, last, bone) == (1, 3, "bone_1")
        # The bone's end, or of a planted bone its head.
        assert far == pytest.approx(math.sqrt(2.0) * (1.0 if kind == "planted" else 2.0), abs=1e-4)
        assert not report.is_sound
        assert not report.reaches_all
        assert findings[0].words() in report.summary()
    elif kind != "too":
        assert report.is_sound


@pytest.mark.parametrize(
    ("last", "shown", "preview", "ends"),
    [
        (20, (1, 40), None, [10, 21]),
        (20, (10, 40), None, [21]),
        (20, (10, 20), None, []),
        (20, (10, 20), (5, 15), [10]),
        (20, (1, 40), (10, 20), [10, 21]),
        (10, (1, 40), None, [10, 11]),
    ],
)
@pytest.mark.parametrize(
    ("kind", "verify"), [("", True), ("mirrored", True), ("apart", True), ("", False), ("euler", False)]
)
def test_a_jump_at_an_end_of_the_range(bake, kind, verify, last, shown, preview, ends):
    """Before and after, the two bones point up; in the range each is bent by 30 degrees.

    Without inherited rotation the second turns by both angles.
    """
    rig, turn = rigs.chain(2), 60.0 if kind == "apart" else 30.0
    if kind == "mirrored":
        rig.pose.bones[1].scale.x = -1.0
    if kind == "apart":
        rig.data.bones[1].use_inherit_rotation = False
    for bone in rig.pose.bones:
        bone.rotation_mode = "ZXY" if kind == "euler" else "QUATERNION"
        for frame in (1, 40):
            bone.keyframe_insert("rotation_euler" if kind == "euler" else "rotation_quaternion", frame=frame)
    bent_to(rig)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = shown
    if preview is not None:
        scene.use_preview_range = True
        scene.frame_preview_start, scene.frame_preview_end = preview
    for _ in range(2):  # a second bake keeps the motion, and tells the same
        report = bake.bake(scene, rig, bake.BakeSettings(10, last, verify=verify))
        jumps = of(report, "JUMP")
        assert [each.frame for each in jumps] == ends
        assert all(math.degrees(each.angle) == pytest.approx(turn, abs=1.0) for each in jumps)
        assert report.is_sound != bool(ends)


def test_a_jump_where_an_influence_begins_or_ends_at_once(bake, channels):
    """Before and after, the two bones point up; meanwhile each is bent by 30 degrees."""
    rig = rigs.chain(2)
    bent_to(rig)
    row = rig.ccd_rig.constraints[0]
    for frame, influence in ((1, 0.0), (10, 1.0), (21, 0.0)):
        row.influence = influence
        row.keyframe_insert("influence", frame=frame)
    rigs.interpolate(channels.fcurves_of(rig), "CONSTANT")
    report = run(bake, rig, 40)
    assert [each.frame for each in of(report, "JUMP")] == [10, 21]
    assert not report.is_sound


def test_a_jump_where_the_second_constraint_of_a_chain_ends_at_once(bake, channels):
    """The first hands over to it while the target rests, and has no influence at the jump."""
    rig = rigs.chain(2)
    bent_to(rig)
    rigs.reach(rig, "bone_1", bpy.data.objects["Goal"], "Second")
    for row, keys in zip(
        rig.ccd_rig.constraints, (((1, 1), (15, 0)), ((1, 0), (15, 1), (30, 0))), strict=True
    ):
        for frame, influence in keys:
            row.influence = influence
            row.keyframe_insert("influence", frame=frame)
    rigs.interpolate(channels.fcurves_of(rig), "CONSTANT")
    report = run(bake, rig, 40, verify=False)
    assert [(each.frame, each.constraint) for each in of(report, "JUMP")] == [(30, "Second")]


def sliding(size=1.0):
    """A bone that slides along itself, and a target half a bone too far."""
    rig = rigs.chain(1)
    rig.scale = (size,) * 3
    bone = rig.pose.bones[0].ccd_rig
    bone.use_slide, bone.slide_upper = (False, True, False), (0.0, 1.0, 0.0)
    rigs.reach(rig, "bone_0", rigs.empty("Goal", (0.0, 0.0, 1.5 * size)))
    rigs.update()
    return rig


@pytest.mark.parametrize("size", [1.0, 3.0])
def test_a_jump_of_a_slide(bake, size, channels):
    """The bone moves by half a bone as the influence begins, and turns by nothing."""
    rig = sliding(size)
    row = rig.ccd_rig.constraints[0]
    for frame, influence in ((1, 0.0), (10, 1.0)):
        row.influence = influence
        row.keyframe_insert("influence", frame=frame)
    rigs.interpolate(channels.fcurves_of(rig), "CONSTANT")
    report = run(bake, rig, 20, verify=False)
    (jump,) = of(report, "JUMP")
    assert (jump.frame, jump.bone, jump.angle, jump.follows) == (10, "bone_0", 0.0, False)
    assert jump.distance == pytest.approx(0.5 * size, rel=0.02)
    assert jump.words() == f"10 bone_0 jumps {0.5 * size:.2g} m"
    assert report.advice() == f"'bone_0' moves {jump.distance:.4f} m at frame 10"
    assert not report.is_sound


@pytest.mark.parametrize("verify", [True, False])
def test_a_jump_of_a_slide_at_the_ends_of_the_range(bake, verify):
    """Keys of the location before and after have the bone at rest."""
    rig = sliding()
    for frame in (1, 40):
        rig.pose.bones[0].keyframe_insert("location", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(10, 20, verify=verify))
    jumps = of(report, "JUMP")
    assert [(each.frame, each.angle) for each in jumps] == [(10, 0.0), (21, 0.0)]
    assert all(each.distance == pytest.approx(0.5, rel=0.02) for each in jumps)


def test_a_jump_of_the_root_over_a_locked_leg(bake, channels):
    """The leg is locked and turns at once about its root, which gives way for the foot by a chord."""
    rig, turn = rigs.chain(2), math.radians(30.0)
    root = rig.pose.bones[0]
    for bone in rig.pose.bones:
        bone.lock_rotation = (True, True, True)
        bone.lock_rotation_w = bone.lock_rotations_4d = True
    for frame, angle in ((1, 0.0), (10, turn)):
        root.rotation_quaternion = Quaternion((1, 0, 0), angle)
        root.keyframe_insert("rotation_quaternion", frame=frame)
    rigs.interpolate(channels.fcurves_of(rig), "CONSTANT")
    rigs.reach(rig, "bone_1", None, "Foot", kind="PLANT")
    (jump,) = of(run(bake, rig, 20), "JUMP")
    assert (jump.frame, jump.bone, jump.constraint) == (10, "bone_0", "Foot")
    assert jump.distance == pytest.approx(2.0 * math.sin(turn / 2.0), rel=0.02)


def test_a_slide_that_follows_its_animation_does_not_jump(bake, channels):
    """The location itself jumps, and the target with it."""
    rig = sliding()
    for frame, y in ((1, 0.5), (10, 0.0)):
        rig.pose.bones[0].location.y = y
        rig.pose.bones[0].keyframe_insert("location", frame=frame)
    rigs.keyed(bpy.data.objects["Goal"], {1: (0.0, 0.0, 1.5), 10: (0.0, 0.0, 1.0)})
    for thing in (rig, bpy.data.objects["Goal"]):
        rigs.interpolate(channels.fcurves_of(thing), "CONSTANT")
    assert of(run(bake, rig, 20, verify=False), "JUMP") == []


@pytest.mark.parametrize("verify", [True, False])
def test_a_body_that_jumps_from_its_planted_foot_to_its_animation(bake, verify, channels):
    """The foot holds it at the origin to frame 10. Its animation goes by 2 m from frame 1 to 40."""
    rig = rigs.armature(
        [
            rigs.B("hips", (0.0, 0.0, 1.0), (0.0, 0.0, 1.3)),
            rigs.B("thigh", (0.0, 0.0, 1.0), (0.0, -0.05, 0.55), "hips"),
            rigs.B("shin", (0.0, -0.05, 0.55), (0.0, 0.0, 0.1), "thigh", connect=True),
            rigs.B("foot", (0.0, 0.0, 0.1), (0.0, -0.2, 0.0), "shin", connect=True),
        ]
    )
    hips = rig.pose.bones["hips"]
    for frame, x in ((1, 0.0), (40, 2.0)):
        hips.location.x = x
        hips.keyframe_insert("location", frame=frame)
    rigs.interpolate(channels.fcurves_of(rig), "LINEAR")
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.kind, row.chain_length = "Foot", "foot", "PLANT", 4
    report = run(bake, rig, 10, body="FOLLOW_FEET", verify=verify)
    (jump,) = of(report, "JUMP")
    assert (jump.frame, jump.bone, jump.angle) == (11, "hips", 0.0)
    assert jump.distance == pytest.approx(2.0 * 10.0 / 39.0, rel=1e-3)
    assert not report.is_sound


def bent_to(rig):
    """Let a chain of two bones reach where both are bent by 30 degrees about Y."""
    angles = math.radians(30.0), math.radians(60.0)
    goal = (0.0, sum(map(math.sin, angles)), sum(map(math.cos, angles)))
    rigs.reach(rig, "bone_1", rigs.empty("Goal", goal))
    rigs.update()


@pytest.mark.parametrize("single", [False, True])
def test_a_range_without_keys_around_it_has_no_jump_at_its_ends(bake, single):
    """The channels hold their first and last keys."""
    rig = rigs.chain(2)
    bent_to(rig)
    scene = bpy.context.scene
    report = bake.bake(scene, rig, bake.BakeSettings(10, 10 if single else 20))
    assert (scene.frame_start, scene.frame_end) == (1, 250)
    assert of(report, "JUMP") == []
    assert report.is_sound


def test_a_motion_that_is_as_fast_beside_the_range_as_in_it_has_no_jump_at_its_ends(bake):
    """The bone turns by 12 degrees a frame throughout, and the target goes with its end."""
    rig = rigs.chain(1)
    bone, path = rig.pose.bones[0], {}
    for frame in range(1, 31):
        angle = math.radians(12.0 * frame)
        bone.rotation_quaternion = Quaternion((1, 0, 0), angle)
        bone.keyframe_insert("rotation_quaternion", frame=frame)
        turn = bone.bone.matrix_local.to_quaternion() @ bone.rotation_quaternion
        path[frame] = (turn @ Vector((0, 1, 0)))[:]
    rigs.reach(rig, "bone_0", rigs.keyed(rigs.empty("Goal"), path))
    rigs.update()
    for start in ("ACTION", "REST"):
        report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(10, 20, start=bake.Start[start]))
        assert of(report, "JUMP") == []
        assert report.is_sound


def test_a_jump_to_the_motion_of_another_strip(bake):
    """The strip of the bake ends where that of the rest pose goes on."""
    rig = rigs.chain(2)
    for bone in rig.pose.bones:
        bone.keyframe_insert("rotation_quaternion", frame=1)
        bone.keyframe_insert("rotation_quaternion", frame=40)
    data = rig.animation_data
    data.nla_tracks.new().strips.new("Rest", 1, data.action)
    data.action = None
    bent_to(rig)
    settings = bake.BakeSettings(10, 20, destination=bake.Destination.NLA_STRIP)
    report = bake.bake(bpy.context.scene, rig, settings)
    strip = data.nla_tracks[-1].strips[0]
    jumps = [each.frame for each in of(report, "JUMP")]
    assert (strip.extrapolation, jumps) == ("NOTHING", [10, 21])
