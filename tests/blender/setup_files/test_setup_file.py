"""Set-ups written to files come back: on the same rig, on one with other names, and never by half."""

from __future__ import annotations

import json
import math
import random
import time

import bpy
import pytest
import rigs
from limit_tools import value
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
    short = rigs.chain(3, name="Short")
    bpy.ops.ccd_rig.setup_load(filepath=path)
    said = capfd.readouterr().out
    assert "no bone for 'bone_3'" in said
    assert f"Constraint 'Hand': there is no object '{BALL}'" in said
    assert short.ccd_rig.constraints[0].tip == "bone_3"  # the checks name it, with its remedy
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
    (lambda d: d.update(format="x"), "no set-up of CCD Rig"),
    (lambda d: d.update(version=9), "'version' is 9"),
    (lambda d: d.pop("bones"), "the field 'bones' is missing"),
    (lambda d: d["bones"]["bone_1"].pop("rest"), "bones['bone_1'] must have the fields"),
    (lambda d: d["bones"]["bone_1"].update(rest=[1, 0, 0]), "rest must be a unit quaternion"),
    (lambda d: joint(d).update(stiff=1), "'stiff' is not known to this version"),
    (lambda d: joint(d).update(stiffness=2.0), "'stiffness' must be 0 to 1, not 2.0"),
    (lambda d: joint(d).update(stiffness="a"), "'stiffness' must be a number"),
    (lambda d: joint(d).update(mass=True), "'mass' must be a number, not true"),
    (lambda d: joint(d, 2)["limit"].update(kind="BALL"), "'kind' must be one of NONE"),
    (lambda d: joint(d)["limit"].update(axis=[1, 0]), "'axis' must be a list of 3"),
    (lambda d: joint(d)["limit"].update(axis=[1, 0, None]), "'axis' must be a number"),
    (lambda d: joint(d, 3).update(coupled_offsets={}), "must be a list"),
    (lambda d: d["constraints"][0].update(target="Ball"), "'target' must be null or"),
    (lambda d: d["constraints"][1].update(chain_length=1.5), "'chain_length' must be a whole"),
    (lambda d: d["rig"].update(report={}), "rig: 'report' is no part of a set-up"),
    (lambda d: d.update(roles={"bone_1": ["knee", "L", 0, 0]}), "roles['bone_1'] must be"),
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
    with pytest.raises(ext.core.RigError, match="'version' is ") as told:
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


def influence_keys(rig, name):
    """(frame, value, interpolation) of the keys of a constraint's influence."""
    path = f"{rig.ccd_rig.constraints[name].path_from_id()}.influence"
    animation = rig.animation_data
    if animation is None or animation.action is None:
        return []
    action = animation.action
    bags = [bag for each in getattr(action, "layers", ()) for s in each.strips for bag in s.channelbags]
    curves = (
        [curve for bag in bags for curve in bag.fcurves] if bags else list(getattr(action, "fcurves", ()))
    )
    found = next((curve for curve in curves if curve.data_path == path), None)
    points = [] if found is None else found.keyframe_points
    return [(p.co[0], round(p.co[1], 5), p.interpolation, tuple(p.handle_right)) for p in points]


def key_influence(rig, name, values):
    row = rig.ccd_rig.constraints[name]
    for frame, influence in values:
        row.influence = influence
        row.keyframe_insert("influence", frame=frame)


def test_keys_of_influence_go_along_and_take_the_place_of_others(ext, tmp_path):
    rig = dressed()
    key_influence(rig, "Hand", ((1, 0.0), (7.5, 1.0), (20, 0.25)))
    action = rig.animation_data.action
    bags = [bag for each in getattr(action, "layers", ()) for s in each.strips for bag in s.channelbags]
    (curve,) = bags[0].fcurves if bags else action.fcurves
    curve.keyframe_points[0].interpolation = "CONSTANT"
    kept = influence_keys(rig, "Hand")
    file = str(tmp_path / "setup.json")
    assert bpy.ops.ccd_rig.setup_save(filepath=file) == {"FINISHED"}
    other = dressed("Other")
    key_influence(other, "Hand", ((3, 0.5), (50, 0.1)))
    assert bpy.ops.ccd_rig.setup_load(filepath=file) == {"FINISHED"}
    assert influence_keys(other, "Hand") == kept
    assert influence_keys(other, "Stand") == []
    assert influence_keys(rig, "Hand") == kept


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
        (lambda keys: keys[0].pop("easing"), "must have the fields"),
        (lambda keys: keys[0].update(value="half"), "value must be a number"),
        (lambda keys: keys[0].update(handle_left=[1.0]), "handle_left must be a number"),
        (lambda keys: keys[0].update(interpolation="SOFT"), "interpolation is 'SOFT'; give one of"),
        (lambda keys: keys.clear(), "must be a list of keys"),
    ],
)
def test_spoilt_keys_are_refused_and_nothing_changes(ext, tmp_path, spoil, words):
    rig = dressed()
    key_influence(rig, "Hand", ((1, 0.0), (9, 1.0)))
    file = tmp_path / "setup.json"
    bpy.ops.ccd_rig.setup_save(filepath=str(file))
    data = json.loads(file.read_text())
    spoil(data["influence"]["Hand"]["keys"])
    file.write_text(json.dumps(data))
    before = stored(rig), influence_keys(rig, "Hand")
    fails(bpy.ops.ccd_rig.setup_load, words, filepath=str(file))
    assert (stored(rig), influence_keys(rig, "Hand")) == before


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
    with pytest.raises(errors.RigError) as told:
        module.from_json(json.dumps(content))
    assert len(str(told.value)) < 300
