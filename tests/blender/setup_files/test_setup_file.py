"""Set-ups written to files come back: on the same rig, on one with other names, and never by half."""

from __future__ import annotations

import json
import math
import random
import re
import time
from dataclasses import replace

import bpy
import pytest
import rigs
from limit_tools import value
from mathutils import Matrix, Quaternion, Vector
from operator_calls import fails

BALL = 'Ball "1"'


def dressed(name="Rig"):
    """A rig with something of every kind to lose."""
    rig = rigs.chain(4, name=name, connect=False)
    ball = rigs.empty(BALL)
    one, two, three = (rig.pose.bones[f"bone_{i}"].ccd_rig for i in (1, 2, 3))
    one.limit.kind, one.limit.axis, one.limit.hinge_upper = "HINGE", (0.0, 0.6, 0.8), 2.1
    one.stiffness, one.mass, one.use_slide = 0.3, 2.5, (True, False, True)
    two.limit.kind, two.limit.x_upper, two.limit.use_twist = "ELLIPSE", 1.1, True
    two.comfort.tolerance, two.comfort.region.kind = 0.1, "ELLIPSE"
    offset = three.coupled_offsets.add()
    offset.driver, offset.axis = "bone_1", (1.0, 0.0, 0.0)
    for angle, shift in ((0.0, 0.0), (1.0, 0.02)):
        point = offset.points.add()
        point.angle, point.shift = angle, shift
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.chain_length, row.target, row.influence = "Hand", "bone_3", 3, ball, 0.7
    row.rotation, row.offset, row.use_tail = "ORIENTATION", (0.1, 0.2, 0.3), False
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.kind, row.balance_axes = "Stand", "bone_0", "BALANCE", (True, False, True)
    row.target, row.target_bone = rig, "bone_0"
    rig.ccd_rig.solver.max_iterations, rig.ccd_rig.solver.sweep = 77, "ALTERNATING"
    rigs.activate(rig)
    return rig


def stored(thing):
    """All that Blender has stored of a group, or of a rig's groups, read field by field."""
    if isinstance(thing, bpy.types.Object):
        group = thing.ccd_rig
        bones = {bone.name: stored(bone.ccd_rig) for bone in thing.pose.bones}
        return bones, [stored(row) for row in group.constraints], stored(group.solver), group.body
    if isinstance(thing, bpy.types.PropertyGroup):
        values = {}
        for prop in thing.bl_rna.properties:
            value = getattr(thing, prop.identifier)
            if prop.type == "POINTER" and isinstance(value, bpy.types.ID):
                values[prop.identifier] = value.name
            elif prop.identifier != "rna_type":
                values[prop.identifier] = stored(value)
        return values
    if isinstance(thing, (str, int, float, bool, type(None))):
        return thing
    return [stored(each) for each in thing]


def test_a_rig_gets_all_of_it_back(ext, tmp_path):
    rig = dressed()
    path = str(tmp_path / "rig.json")
    before = stored(rig)
    assert before[0]["bone_1"]["limit"]["hinge_upper"] == pytest.approx(2.1)
    assert bpy.ops.ccd_rig.setup_save(filepath=path) == {"FINISHED"}
    for bone in rig.pose.bones:
        bone.property_unset("ccd_rig")
    rig.property_unset("ccd_rig")
    assert stored(rig) != before
    assert bpy.ops.ccd_rig.setup_load(filepath=path) == {"FINISHED"}
    assert stored(rig) == before
    bpy.ops.ccd_rig.setup_load(filepath=path)  # once more: constraints of the same name are replaced
    assert stored(rig) == before


def test_a_file_that_does_not_tell_where_bones_go_on_gives_all_of_it_back(ext, tmp_path):
    """As files before that field were."""
    rig = dressed()
    path = tmp_path / "rig.json"
    before = stored(rig)
    bpy.ops.ccd_rig.setup_save(filepath=str(path))
    data = json.loads(path.read_text(encoding="utf-8"))
    for bone in data["bones"].values():
        del bone["along"]
    path.write_text(json.dumps(data), encoding="utf-8")
    for bone in rig.pose.bones:
        bone.property_unset("ccd_rig")
    rig.property_unset("ccd_rig")
    assert bpy.ops.ccd_rig.setup_load(filepath=str(path)) == {"FINISHED"}
    assert stored(rig) == before


def test_targets_on_the_rig_itself_stay_on_the_rig(ext, tmp_path):
    rig = dressed()
    bpy.ops.ccd_rig.setup_save(filepath=str(tmp_path / "rig.json"))
    other = rigs.chain(4, name="Other")
    bpy.ops.ccd_rig.setup_load(filepath=str(tmp_path / "rig.json"))
    assert [row.target for row in other.ccd_rig.constraints] == [rig.ccd_rig.constraints[0].target, other]


def test_what_is_not_there_is_said(ext, tmp_path, capfd):
    path = str(tmp_path / "rig.json")
    dressed()
    bpy.ops.ccd_rig.setup_save(filepath=path)
    bpy.data.objects.remove(bpy.data.objects[BALL])
    rigs.update()
    long = rigs.chain(4, name="Long")
    bpy.ops.ccd_rig.setup_load(filepath=path)
    assert f"Constraint 'Hand': there is no object '{BALL}'" in capfd.readouterr().out
    assert len(long.ccd_rig.constraints) == 2
    short = rigs.chain(3, name="Short")
    bpy.ops.ccd_rig.setup_load(filepath=path)
    said = capfd.readouterr().out
    assert "no bone for 'bone_3'" in said
    assert [row.name for row in short.ccd_rig.constraints] == ["Stand"]
    assert "1 constraint set" in said
    rigs.armature([rigs.B("other", (0, 0, 0), (0, 0, 1))], "Other")
    fails(bpy.ops.ccd_rig.setup_load, "has none of the set-up's bones", filepath=path)


TRUNK = ("Hips", "Spine", "Spine1", "Spine2", "Neck", "Head")
LIMBS = {
    "thigh": "UpLeg",
    "shin": "Leg",
    "foot": "Foot",
    "toe": "ToeBase",
    "shoulder": "Shoulder",
    "upper_arm": "Arm",
    "forearm": "ForeArm",
    "hand": "Hand",
}


def mixamo():
    """A human with Mixamo's names, and limbs rolled by a quarter turn beside Rigify's."""
    human = rigs.metarig("basic_human")
    trunk = {f"spine.00{i}" if i else "spine": name for i, name in enumerate(TRUNK)}
    with rigs.edit_bones(human) as bones:
        for bone in bones:
            stem, side = bone.name[:-2], {"L": "Left", "R": "Right"}.get(bone.name[-1], "")
            if bone.name in trunk:
                bone.name = f"mixamorig:{trunk[bone.name]}"
            elif stem in LIMBS:
                bone.name = f"mixamorig:{side}{LIMBS[stem]}"
                bone.roll += math.pi / 2
    human.name = "Mixamo"
    return human


def test_a_rig_with_other_names_takes_it_by_roles(ext, tmp_path, capfd):
    rig = rigs.metarig("basic_human")
    for name, kind in (("shin.L", "HINGE"), ("upper_arm.R", "ELLIPSE"), ("foot.R", "CONE")):
        rig.pose.bones[name].ccd_rig.limit.kind = kind
    rig.pose.bones["shin.L"].ccd_rig.limit.axis = (0.6, 0.0, 0.8)
    rig.pose.bones["upper_arm.R"].ccd_rig.limit.x_upper = 1.3
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.chain_length = "Foot L", "foot.L", 3
    path = tmp_path / "human.json"
    bpy.ops.ccd_rig.setup_save(filepath=str(path))
    assert json.loads(path.read_text(encoding="utf-8"))["roles"]["shin.L"] == ["shin", "L", 0, 0]
    other = mixamo()
    bpy.ops.ccd_rig.setup_load(filepath=str(path))
    assert "left out" not in capfd.readouterr().out
    assert other.ccd_rig.constraints[0].tip == "mixamorig:LeftFoot"
    violation = ext.module("ccd_rig.limits.shapes").violation
    for name, theirs in {"shin.L": "LeftLeg", "upper_arm.R": "RightArm", "foot.R": "RightFoot"}.items():
        bone, its = rig.pose.bones[name], other.pose.bones[f"mixamorig:{theirs}"]
        turn = its.bone.matrix_local.to_quaternion().conjugated() @ bone.bone.matrix_local.to_quaternion()
        rng = random.Random(3)
        for _ in range(40):  # the same motion of the body is allowed alike
            rotation = rigs.random_rotation(rng)
            there = turn @ rotation @ turn.conjugated()
            expected = violation(value(ext, bone), rotation)
            assert violation(value(ext, its), there) == pytest.approx(expected, abs=1e-3)


def reshaped(name, bend=None, roll=0.0, size=1.0):
    """A chain of four bones along Z, whose rest is turned as a whole, rolled and scaled."""
    rig = rigs.chain(4, name=name, connect=False)
    with rigs.edit_bones(rig) as bones:
        for bone in bones:
            if bend is not None:
                bone.transform(bend.to_matrix().to_4x4(), roll=True)
            bone.transform(Matrix.Scale(size, 4))
            bone.roll += roll
    return rig


def in_armature(rig, bone, vector):
    """A vector along the axes of a bone at rest."""
    return rig.data.bones[bone].matrix_local.to_3x3() @ Vector(vector)


def carried(ext, rig, other):
    files = ext.module("ccd_rig.blender.setup_files")
    return files.apply(other, files.from_json(files.to_json(files.setup_of(rig))))


@pytest.mark.parametrize("degrees", [90, -90, 180])
def test_the_same_names_with_other_axes_and_sizes_take_the_same_set_up(ext, degrees):
    """Known: a shift has the same direction in the armature, and is twice as far in a rig twice as large."""
    rig, other = dressed(), reshaped("Other", roll=math.radians(degrees), size=2.0)
    rig.pose.bones["bone_1"].ccd_rig.slide_lower = (-0.1, 0.0, -0.3)
    rig.pose.bones["bone_1"].ccd_rig.slide_upper = (0.2, 0.0, 0.5)
    hand, stand = rig.ccd_rig.constraints
    hand.effector_offset, hand.rotation, hand.bone_axis = (0.1, 0.2, 0.3), "DIRECTION", "POS_X"
    stand.offset = (0.4, 0.5, 0.6)
    assert carried(ext, rig, other).notes == ()

    def agree(bone, there, here, scale=2.0):
        there, here = in_armature(other, bone, there), scale * in_armature(rig, bone, here)
        assert (there - here).length < 1e-5

    violation = ext.module("ccd_rig.limits.shapes").violation
    for name in ("bone_1", "bone_2"):
        one, its = rig.pose.bones[name], other.pose.bones[name]
        turn = its.bone.matrix_local.to_quaternion().conjugated() @ one.bone.matrix_local.to_quaternion()
        rng = random.Random(3)
        for _ in range(40):
            rotation = rigs.random_rotation(rng)
            there = turn @ rotation @ turn.conjugated()
            expected = violation(value(ext, one), rotation)
            assert violation(value(ext, its), there) == pytest.approx(expected, abs=1e-3)
    offsets = [each.pose.bones["bone_3"].ccd_rig.coupled_offsets[0] for each in (rig, other)]
    agree("bone_3", offsets[1].axis, offsets[0].axis, 1.0)
    assert [point.shift for point in offsets[1].points] == pytest.approx([0.0, 0.04])
    agree("bone_3", other.ccd_rig.constraints[0].effector_offset, hand.effector_offset)
    agree("bone_0", other.ccd_rig.constraints[1].offset, stand.offset)
    assert other.ccd_rig.constraints[0].offset[:] == hand.offset[:]  # along the axes of an object
    axes = ext.module("ccd_rig.blender.properties.constraint_values").AXES
    agree("bone_3", axes[other.ccd_rig.constraints[0].bone_axis], axes["POS_X"], 1.0)
    ends = []
    for each, bone in ((rig, "bone_1"), (other, "bone_1")):
        group = each.pose.bones[bone].ccd_rig
        shifts = [
            in_armature(each, bone, [end[k] * (m == k) for m in range(3)])
            for k in range(3)
            if group.use_slide[k]
            for end in (group.slide_lower, group.slide_upper)
        ]
        ends.append(sorted(tuple(round(x, 4) + 0.0 for x in shift) for shift in shifts))
    assert ends[1] == [tuple(round(2.0 * x, 4) for x in shift) for shift in ends[0]]


@pytest.mark.parametrize("axis", [(0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.3, 0.5, 0.8)])
@pytest.mark.parametrize("angle", [0.7, math.pi / 2])
def test_another_rest_pose_is_no_other_axis(ext, axis, angle):
    """An elbow that rests with its arm lowered bends about the same axis of its own."""
    rig = dressed()
    shortest = Vector((0.0, 0.0, 1.0)).rotation_difference(Quaternion(axis, angle) @ Vector((0.0, 0.0, 1.0)))
    other = reshaped("Other", shortest)
    assert carried(ext, rig, other).notes == ()
    ours, theirs = ([*stored(each)[0].values()] for each in (rig, other))
    for group in (*ours, *theirs):
        group.pop("known_as")
    assert theirs == pytest.approx(ours) or all(near(one, two) for one, two in zip(ours, theirs, strict=True))


def near(one, other):
    """Whether stored values are equal but for rounding."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(near(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(near(*pair) for pair in zip(one, other, strict=True))
    return one == (pytest.approx(other, abs=2e-3) if isinstance(one, float) else other)


def test_a_figure_that_lies_in_its_file_takes_the_set_up_of_one_that_stands(ext):
    """The same bones, with Y up instead of Z: nothing changes along their own axes."""
    rig = dressed()
    with rigs.edit_bones(rig) as bones:  # something that points another way
        bones["bone_3"].tail = bones["bone_3"].head + Vector((1.0, 0.0, 0.0))
    rigs.activate(rig)
    other = rigs.chain(4, name="Other", connect=False)
    with rigs.edit_bones(other) as bones:
        bones["bone_3"].tail = bones["bone_3"].head + Vector((1.0, 0.0, 0.0))
        for bone in bones:
            bone.transform(Quaternion((1.0, 0.0, 0.0), -math.pi / 2).to_matrix().to_4x4(), roll=True)
    rigs.activate(other)
    assert carried(ext, rig, other).notes == ()
    for name in ("bone_1", "bone_2", "bone_3"):
        assert near(stored(rig.pose.bones[name].ccd_rig), stored(other.pose.bones[name].ccd_rig))


def test_a_figure_that_looks_the_other_way_takes_it_too(ext):
    """All of the rest turned by half a turn about the vertical; its spine stays as it is."""
    rig, other = dressed(), None
    for each in (rig, rigs.chain(4, name="Other", connect=False)):
        with rigs.edit_bones(each) as bones:
            for k in (1, 2, 3):  # limbs to the side of a spine
                bones[f"bone_{k}"].parent = bones["bone_0"]
                bones[f"bone_{k}"].tail = bones[f"bone_{k}"].head + Vector((1.0, 0.2 * k, 0.0))
            if each != rig:
                half = Quaternion((0.0, 0.0, 1.0), math.pi).to_matrix().to_4x4()
                for bone in bones:
                    bone.transform(half, roll=True)
        other = each
    rigs.activate(rig)
    assert carried(ext, rig, other).notes == ()
    for name in ("bone_1", "bone_2", "bone_3"):
        assert near(stored(rig.pose.bones[name].ccd_rig), stored(other.pose.bones[name].ccd_rig))


def test_what_would_lie_askew_is_left_out_by_name(ext, capfd):
    rig, other = dressed(), reshaped("Other", roll=0.5)
    hand = rig.ccd_rig.constraints["Hand"]
    hand.rotation, hand.bone_axis = "DIRECTION", "POS_Z"
    notes = "; ".join(carried(ext, rig, other).notes)
    assert "the slide of 'bone_1' is left out: its rest has other axes" in notes
    assert "the limit of 'bone_2' is left out: its rest has other axes" in notes
    assert "constraint 'Hand': Bone Axis is as it was, but the bone has other axes; choose one" in notes
    assert not any(other.pose.bones["bone_1"].ccd_rig.use_slide)


def test_undo_takes_a_loaded_set_up_back(ext, tmp_path):
    dressed()
    bpy.ops.ccd_rig.setup_save(filepath=str(tmp_path / "rig.json"))
    rigs.chain(4, name="Other")
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.ccd_rig.setup_load(filepath=str(tmp_path / "rig.json"))
    bpy.ops.ed.undo_push(message="after")
    bpy.ops.ed.undo()
    assert len(bpy.data.objects["Other"].ccd_rig.constraints) == 0
    assert bpy.data.objects["Other"].pose.bones["bone_1"].ccd_rig.limit.kind == "NONE"


def joint(data, number=1):
    return data["bones"][f"bone_{number}"]["joint"]


BROKEN = [
    (lambda d: d.update(format="x"), 'the set-up: \'format\' must be "ccd_rig.setup", not "x"'),
    (lambda d: d.update(version=9), "'version' is 9"),
    (lambda d: d.pop("bones"), "the field 'bones' is missing"),
    (lambda d: d["bones"]["bone_1"].pop("rest"), "bones['bone_1']: the field 'rest' is missing"),
    (
        lambda d: d["bones"]["bone_1"].update(rest=[1, 0, 0]),
        "bones['bone_1'].rest must be a list of 4, not [1, 0, 0]",
    ),
    (lambda d: d["bones"]["bone_1"].update(along=[0, 0, 0]), "along must be a vector"),
    (lambda d: d["bones"]["bone_1"].update(along=[1e200, 0, 0]), "along must be a vector"),
    (lambda d: joint(d).update(mass=10**200), "joint.mass must be 0 to "),
    (lambda d: d["constraints"][1].update(chain_length=10**200), "constraints[1].chain_length must be 0 to "),
    (
        lambda d: d.update(roles={"bone_1": ["shin", "L", 1.5, 0]}),
        "roles['bone_1'][2] must be a whole number, not 1.5",
    ),
    (lambda d: joint(d).update(stiff=1), "'stiff' is not known to this version"),
    (lambda d: joint(d).update(stiffness=2.0), "joint.stiffness must be 0 to 1, not 2.0"),
    (lambda d: joint(d).update(stiffness="a"), "joint.stiffness must be a number"),
    (lambda d: joint(d).update(mass=True), "joint.mass must be a number, not true"),
    (lambda d: joint(d, 2)["limit"].update(kind="BALL"), "limit.kind must be one of NONE"),
    (lambda d: joint(d)["limit"].update(axis=[1, 0]), "limit.axis must be a list of 3"),
    (lambda d: joint(d)["limit"].update(axis=[1, 0, None]), "limit.axis[2] must be a number, not null"),
    (lambda d: joint(d, 3).update(coupled_offsets={}), "must be a list"),
    (lambda d: d["constraints"][0].update(target="Ball"), "constraints[0].target must be null or"),
    (lambda d: d["constraints"][1].update(chain_length=1.5), "constraints[1].chain_length must be a whole"),
    (lambda d: d["rig"].update(report={}), "rig: 'report' is no part of a set-up"),
    (lambda d: d.update(roles={"bone_1": ["knee", "L", 0, 0]}), "roles['bone_1'][0] must be one of hips"),
]


@pytest.mark.parametrize(("change", "words"), BROKEN, ids=[words for _, words in BROKEN])
def test_a_broken_file_changes_nothing(ext, tmp_path, change, words):
    rig = dressed()
    path = tmp_path / "rig.json"
    bpy.ops.ccd_rig.setup_save(filepath=str(path))
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    before = stored(rig)
    fails(bpy.ops.ccd_rig.setup_load, words, filepath=str(path))
    assert stored(rig) == before


@pytest.mark.parametrize(
    "version",
    ["9" * 100_000, ["9"] * 100_000, {"n" * 100_000: 1}],
    ids=["text", "list", "object"],
)
def test_a_long_version_makes_a_short_message(ext, version):
    files = ext.module("ccd_rig.blender.setup_files")
    with pytest.raises(ext.core.InvalidInput, match="'version' is ") as told:
        files.from_json(json.dumps({"format": files.FORMAT, "version": version}))
    assert len(str(told.value)) < 200


def test_thousands_of_constraints_are_set_in_little_more_time_than_they_take_to_make(ext):
    """Some thirty times as long where Python compares each row with all others."""
    files = ext.module("ccd_rig.blender.setup_files")
    names = [f"Row {k}" for k in range(2000)]
    rig = rigs.chain(2)
    began = time.process_time()
    for name in names:
        row = rig.ccd_rig.constraints.add()
        row.name, row.tip = name, "bone_1"
    plain = time.process_time() - began
    rig = rigs.chain(2, name="Other")
    rows = tuple({"name": name, "tip": "bone_1"} for name in names)
    began = time.process_time()
    applied = files.apply(rig, files.Setup(rig.name, {}, rows))
    took = time.process_time() - began
    assert took < 15.0 * plain
    assert applied.constraints == tuple(names)
    assert files.apply(rig, files.Setup(rig.name, {}, rows[:2])).constraints == ("Row 0", "Row 1")
    assert len(rig.ccd_rig.constraints) == len(rows)


@pytest.mark.parametrize("content", [b"[1, 2", b"\xff\xfe\x00", b"[]", b'{"format": NaN}'])
def test_what_is_no_set_up_is_refused_by_the_name_of_the_file(ext, tmp_path, content):
    rigs.chain(2)
    (tmp_path / "other.json").write_bytes(content)
    fails(bpy.ops.ccd_rig.setup_load, "other.json", filepath=str(tmp_path / "other.json"))
    fails(bpy.ops.ccd_rig.setup_load, "cannot read", filepath=str(tmp_path / "none.json"))


def test_a_value_that_is_no_number_is_not_written(ext, tmp_path):
    rig = dressed()
    rig.pose.bones["bone_1"].ccd_rig.limit.axis = (math.nan, 0.0, 0.0)
    fails(bpy.ops.ccd_rig.setup_save, "holds a value that is not a number", filepath=str(tmp_path / "a.json"))
    assert list(tmp_path.iterdir()) == []


def influence_keys(channels, rig, name):
    """(frame, value, interpolation, handle) of the keys of a constraint's influence."""
    path = f"{rig.ccd_rig.constraints[name].path_from_id()}.influence"
    points = [p for c in channels.fcurves_of(rig) if c.data_path == path for p in c.keyframe_points]
    return [(p.co[0], round(p.co[1], 5), p.interpolation, tuple(p.handle_right)) for p in points]


ARM = {"Clavicle": (0.03, 0.15), "UpperArm": (0.17, 0.45), "Forearm": (0.45, 0.7), "Hand": (0.7, 0.8)}


def human(name, count, words=None, arm=ARM):
    """Hips, `count` bones of a spine, neck, head and arms: {bone of an arm: its ends from the middle}."""
    words = words or {}
    joints = [1.0, *(1.1 + 0.5 * k / count for k in range(count + 1)), 1.7, 1.9]
    trunk = ["Hips", *(f"Spine.{k}" for k in range(count)), "Neck", "Head"]
    bones = [
        rigs.B(words.get(bone, bone), (0, 0, low), (0, 0, high), words.get(above, above))
        for bone, above, low, high in zip(trunk, ["", *trunk], joints, joints[1:], strict=False)
    ]
    for side, way in (("L", 1), ("R", -1)):
        above = trunk[count]
        for bone, ends in arm.items():
            head, tail = ((way * x, 0.02 * (x == 0.45), 1.55) for x in ends)
            bones.append(rigs.B(f"{side}_{bone}", head, tail, above))
            above = f"{side}_{bone}"
    return rigs.armature(bones, name)


def test_chains_begin_at_the_same_part_of_a_rig_with_more_bones(ext):
    names = ("Clavicle", "UpperArm", "Twist", "Forearm", "Hand")
    arm = {name: ARM.get(name, (0.31, 0.45)) for name in names}
    rig, other = human("Two", 2), human("Four", 4, {"Spine.0": "Chest"}, arm)
    for tip, count in (("Head", 4), ("L_Hand", 3), ("Neck", 0), ("Spine.1", 9)):
        rigs.reach(rig, tip, rigs.empty(f"Target {tip}"), name=tip, chain_length=count)
    files = ext.module("ccd_rig.blender.setup_files")
    setup = files.from_json(files.to_json(files.with_roles(rig, files.setup_of(rig))))
    assert files.apply(other, setup).notes == ()
    lengths = {row.name: row.chain_length for row in other.ccd_rig.constraints}
    assert lengths == {"Head": 6, "L_Hand": 4, "Neck": 0, "Spine.1": 9}
    begins = setup.chains | {"Head": "Tail"}
    notes = files.apply(other, replace(setup, chains=begins)).notes
    assert notes == (
        "constraint 'Head': its chain began at 'Tail', which has no counterpart above it: look at Chain "
        "Length",
    )
    before = stored(rig)
    files.apply(rig, setup)
    assert stored(rig) == before


def test_two_constraints_of_one_name_are_refused(ext):
    files = ext.module("ccd_rig.blender.setup_files")
    data = json.loads(files.to_json(files.setup_of(dressed())))
    data["constraints"].append({"name": "Hand", "tip": "bone_2"})
    with pytest.raises(ext.core.InvalidInput, match=r"constraints\[0\] and .*\[2\] are both"):
        files.from_json(json.dumps(data))


def key_influence(rig, name, values):
    row = rig.ccd_rig.constraints[name]
    for frame, influence in values:
        row.influence = influence
        row.keyframe_insert("influence", frame=frame)


def test_keys_of_influence_go_along_and_take_the_place_of_others(ext, tmp_path, channels):
    rig = dressed()
    key_influence(rig, "Hand", ((1, 0.0), (7.5, 1.0), (20, 0.25)))
    (curve,) = channels.fcurves_of(rig)
    curve.keyframe_points[0].interpolation = "CONSTANT"
    kept = influence_keys(channels, rig, "Hand")
    file = str(tmp_path / "setup.json")
    assert bpy.ops.ccd_rig.setup_save(filepath=file) == {"FINISHED"}
    other = dressed("Other")
    key_influence(other, "Hand", ((3, 0.5), (50, 0.1)))
    assert bpy.ops.ccd_rig.setup_load(filepath=file) == {"FINISHED"}
    assert influence_keys(channels, other, "Hand") == kept
    assert influence_keys(channels, other, "Stand") == []
    assert influence_keys(channels, rig, "Hand") == kept


def test_keys_of_other_settings_are_told_where_they_stay_behind(ext, tmp_path, capfd):
    rig = dressed()
    for name in ("Hand", "Stand"):
        rig.ccd_rig.constraints[name].keyframe_insert("weight", frame=1)
    rig.ccd_rig.constraints["Hand"].driver_add("offset", 0)
    key_influence(rig, "Hand", ((1, 0.0), (9, 1.0)))
    assert bpy.ops.ccd_rig.setup_save(filepath=str(tmp_path / "setup.json")) == {"FINISHED"}
    said = capfd.readouterr().out
    assert "What moves 'Weight' of 'Hand', 'Stand', keys or a driver, is not in the file" in said
    assert "What moves 'Target Offset' of 'Hand', keys or a driver, is not in the file" in said
    assert "Influence" not in said


def test_what_overrules_the_file_is_named(ext, tmp_path, capfd):
    dressed()
    file = str(tmp_path / "setup.json")
    bpy.ops.ccd_rig.setup_save(filepath=file)
    other = dressed("Other")
    key_influence(other, "Hand", ((1, 0.0), (9, 0.0)))
    other.ccd_rig.constraints["Stand"].driver_add("weight")
    capfd.readouterr()
    bpy.ops.ccd_rig.setup_load(filepath=file)
    said = capfd.readouterr().out
    assert "What moves 'Influence' of 'Hand', keys or a driver, stays and overrules the file" in said
    assert "What moves 'Weight' of 'Stand', keys or a driver, stays and overrules the file" in said


def test_keys_that_cannot_be_set_are_named(ext, tmp_path, capfd):
    rig = dressed()
    key_influence(rig, "Hand", ((1, 0.0), (9, 1.0)))
    file = str(tmp_path / "setup.json")
    bpy.ops.ccd_rig.setup_save(filepath=file)
    other = dressed("Other")
    other.ccd_rig.constraints["Hand"].driver_add("influence")
    assert bpy.ops.ccd_rig.setup_load(filepath=file) == {"FINISHED"}
    assert "Keys are left out: Constraint 'Hand': Influence has a driver" in capfd.readouterr().out
    bpy.ops.ccd_rig.setup_save(filepath=str(tmp_path / "driven.json"))
    assert "The driver of Influence of 'Hand' is not in the file" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda keys: keys[0].pop("easing"), "the field 'easing' is missing"),
        (lambda keys: keys[0].update(value="half"), "value must be a number"),
        (lambda keys: keys[0].update(handle_left=[1.0]), "handle_left must be a list of 2, not [1.0]"),
        (lambda keys: keys[0].update(interpolation="SOFT"), "interpolation must be one of CONSTANT"),
        (lambda keys: keys.clear(), "must be a list of keys"),
        (lambda keys: keys[1].update(frame=1.005), "keys[0] and keys[1] are both at frame 1: remove"),
        (lambda keys: keys[1].update(frame=1e30), "frame must be -1048574 to 1048574"),
        (lambda keys: keys[1].update(value=1e300), "value must be -3.4e+38 to 3.4e+38"),
    ],
)
def test_spoilt_keys_are_refused_and_nothing_changes(ext, tmp_path, spoil, words, channels):
    rig = dressed()
    key_influence(rig, "Hand", ((1, 0.0), (9, 1.0)))
    file = tmp_path / "setup.json"
    bpy.ops.ccd_rig.setup_save(filepath=str(file))
    data = json.loads(file.read_text())
    spoil(data["influence"]["Hand"]["keys"])
    file.write_text(json.dumps(data))
    before = stored(rig), influence_keys(channels, rig, "Hand")
    fails(bpy.ops.ccd_rig.setup_load, words, filepath=str(file))
    assert (stored(rig), influence_keys(channels, rig, "Hand")) == before


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("constraints", 0, "x" * 5000), 1),
        (("rig", "x" * 5000), 1),
        (("bones", "x" * 5000), 1),
        (("roles", "bone_1"), "x" * 5000),
        (("influence", "x" * 5000), 1),
    ],
)
def test_what_is_wrong_is_shown_in_short(ext, place, value):
    module, errors = ext.module("ccd_rig.blender.setup_files"), ext.module("ccd_rig.errors")
    rig = rigs.chain(2)
    rigs.reach(rig, "bone_1", rigs.empty("Goal"))
    content = json.loads(module.to_json(module.setup_of(rig)))
    part = content
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    with pytest.raises(errors.InvalidInput) as told:
        module.from_json(json.dumps(content))
    assert len(str(told.value)) < 300


NUMBERS = ["1e400", "-1e400", "1" * 400, "NaN", "Infinity"]


@pytest.mark.parametrize("number", NUMBERS, ids=["1e400", "-1e400", "400 digits", "NaN", "Infinity"])
@pytest.mark.parametrize(
    "place", ['"stiffness": ', '"frame": ', '"rest": [', '["shin", "L", ', '"version": ']
)
def test_numbers_that_are_none_are_told(ext, number, place):
    files, errors = ext.module("ccd_rig.blender.setup_files"), ext.module("ccd_rig.errors")
    rig = dressed()
    key_influence(rig, "Hand", ((1, 0.0), (9, 1.0)))
    roles = {"bone_1": files.Role(files.Part.SHIN, files.Side.LEFT, 0, 0)}
    text = " ".join(files.to_json(replace(files.setup_of(rig), roles=roles)).split())
    text = text.replace("[ ", "[")
    assert place in text
    start = text.index(place) + len(place)
    spoilt = text[:start] + number + re.sub(r"^[-0-9.e]+", "", text[start:])
    with pytest.raises(
        errors.InvalidInput, match=r"the set-up is not JSON: .*(no number|too large|too many)"
    ):
        files.from_json(spoilt)


def test_influence_beyond_its_range_and_keys_at_one_frame_come_back(ext, channels):
    """As an animator may leave them in the Graph Editor; Blender merges such keys as soon as one is moved."""
    rig = dressed()
    key_influence(rig, "Hand", ((1, 0.0), (9, 1.0), (12, 0.5)))
    files = ext.module("ccd_rig.blender.setup_files")
    curve = files.constraint_list.influence_curve(rig.ccd_rig.constraints["Hand"])
    curve.keyframe_points[1].co.y = 1.25
    curve.keyframe_points[2].co.x = 9.004
    kept = influence_keys(channels, rig, "Hand")
    carried(ext, rig, rig)
    assert [key[:2] for key in influence_keys(channels, rig, "Hand")] == [kept[0][:2], kept[2][:2]]
    curve.keyframe_points[1].co.x = 12.0
    curve.keyframe_points[1].co.y = 1.25
    curve.update()
    kept = influence_keys(channels, rig, "Hand")
    carried(ext, rig, rig)
    assert influence_keys(channels, rig, "Hand") == kept


def test_keys_of_a_strip_that_is_tweaked_are_neither_written_nor_replaced(ext, tmp_path, capfd, channels):
    """They have the time of the strip's action. Known: the strip begins twenty frames later."""
    rig = dressed()
    key_influence(rig, "Hand", ((1, 0.0), (9, 1.0)))
    file = str(tmp_path / "setup.json")
    bpy.ops.ccd_rig.setup_save(filepath=file)
    kept = influence_keys(channels, rig, "Hand")
    rigs.tweak(rig, start=21)
    fails(bpy.ops.ccd_rig.setup_save, "leave tweak mode", filepath=str(tmp_path / "tweaked.json"))
    assert not (tmp_path / "tweaked.json").exists()
    assert bpy.ops.ccd_rig.setup_load(filepath=file) == {"FINISHED"}
    assert "Keys are left out: Armature 'Rig': an NLA strip is being tweaked" in capfd.readouterr().out
    assert influence_keys(channels, rig, "Hand") == kept


@pytest.mark.parametrize("turn", [0.0, 0.7])
def test_what_a_converted_chain_starts_from_goes_along(ext, tmp_path, turn):
    """On a rig whose bones have other rolls it is turned into their axes: joints come to lie alike."""
    path = str(tmp_path / "rig.json")
    start = Quaternion((0.9, 0.3, -0.2, 0.1)).normalized()
    rig = rigs.chain(3, name="One")
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Hand", "bone_2", rigs.empty("Goal", (1.0, 1.0, 1.0))
    ext.module("ccd_rig.blender.properties.new_constraints").start_from(rig, {"bone_1": start})
    rigs.update()
    wanted = rig.pose.bones["bone_1"].tail.copy()
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.setup_save(filepath=path) == {"FINISHED"}
    bones = [
        rigs.B(f"bone_{i}", (0, 0, i), (0, 0, i + 1), f"bone_{i - 1}" if i else "", turn) for i in range(3)
    ]
    other = rigs.armature(bones, "Two")
    rigs.activate(other)
    assert bpy.ops.ccd_rig.setup_load(filepath=path) == {"FINISHED"}
    rigs.update()
    bone = other.pose.bones["bone_1"]
    assert any(bone.ccd_rig.start_rotation) and any(bone.ccd_rig.start_before)
    assert (bone.tail - wanted).length < 1e-5
    spoiled = json.loads((tmp_path / "rig.json").read_text())
    spoiled["bones"]["bone_1"]["joint"]["start_rotation"] = [0.0, 0.0, 0.0, 2.0]
    (tmp_path / "rig.json").write_text(json.dumps(spoiled))
    fails(bpy.ops.ccd_rig.setup_load, "start_rotation must be a unit quaternion", filepath=path)


def test_beside_a_file_that_was_never_saved_nothing_is_written(ext, tmp_path, monkeypatch):
    """A path that begins with // led to the folder in which Blender was started."""
    monkeypatch.chdir(tmp_path)
    rig = dressed()
    assert not bpy.data.filepath
    where = "'//rig.json' lies beside the .blend file, which is not saved yet"
    fails(bpy.ops.ccd_rig.setup_save, where, filepath="//rig.json")
    fails(bpy.ops.ccd_rig.setup_load, where, filepath="//rig.json")
    assert not any(tmp_path.iterdir())
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "here.blend"))
    rigs.activate(bpy.data.objects[rig.name])
    assert bpy.ops.ccd_rig.setup_save(filepath="//rig.json") == {"FINISHED"}
    assert (tmp_path / "rig.json").is_file()


@pytest.mark.parametrize(("side", "along"), [(1.0, (0.0, 1.0, 0.0)), (-1.0, (0.0, 0.0, 1.0))])
def test_a_bone_leads_to_the_middle_of_its_children_unless_that_is_its_head(ext, side, along):
    """Its tail is at +Z, as importers make it up; children begin at +Y, or at both ends of a bar."""
    rig = rigs.chain(3)
    with rigs.edit_bones(rig) as bones:
        one, other = bones["bone_1"], bones["bone_2"]
        other.parent, one.use_connect, other.use_connect = bones["bone_0"], False, False
        for bone, place in ((one, (0.0, 1.0, 0.0)), (other, (0.0, side, 0.0))):
            bone.head, bone.tail = place, (place[0], place[1], 0.5)
    bone = rig.pose.bones["bone_0"]
    assert bone.bone.tail_local[:] == (0.0, 0.0, 1.0)
    files = ext.module("ccd_rig.blender.setup_files")
    assert files.along_of(bone) == pytest.approx(along)
