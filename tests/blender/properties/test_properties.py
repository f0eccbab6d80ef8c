"""What the file stores: defaults, names, angles, ranges, and the way to the core's values."""

from __future__ import annotations

import dataclasses
import math
import types

import bpy
import pytest
import rigs

FLOAT32 = 1e-6  # Blender stores float32
GROUPS = ("constraint", "limit", "comfort", "joint", "solver", "report", "pose_bone", "pose", "armature")


@pytest.fixture
def properties(ext):
    """The modules that the tests below ask, as one."""
    names = ("joints", "limits", "solver_settings", "constraint_values", "constraint_kinds", "armature_data")
    modules = [ext.module(f"ccd_rig.blender.properties.{name}") for name in names]
    return types.SimpleNamespace(**{key: value for module in modules for key, value in vars(module).items()})


@pytest.fixture
def rig():
    return rigs.chain(3)


def group_class(properties, name):
    return next(kind for kind in properties.CLASSES if kind.__name__ == f"CCD_RIG_PG_{name}")


def fields(kind):
    """The properties of a group; all have Blender's own `name` as well, which only a constraint uses."""
    ours = {"rna_type"} if "name" in kind.__annotations__ else {"rna_type", "name"}
    return {name: prop for name, prop in kind.bl_rna.properties.items() if name not in ours}


def curves(ext, rig):
    return {(c.data_path, c.array_index) for c in ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)}


@pytest.mark.parametrize("name", GROUPS)
def test_every_property_has_a_tooltip_and_can_be_overridden(properties, name):
    assert fields(group_class(properties, name))
    for identifier, prop in fields(group_class(properties, name)).items():
        assert len(prop.description) > 5, identifier
        assert not prop.description.endswith("."), identifier
        assert prop.description[0].isupper(), identifier
        assert prop.name, identifier
        assert prop.is_overridable, identifier


def test_every_operator_option_has_a_tooltip(ext):
    for name in dir(bpy.ops.ccd_rig):
        kind = getattr(bpy.ops.ccd_rig, name).get_rna_type()
        assert len(kind.description) > 20, name
        for identifier, prop in fields_of(kind):
            assert len(prop.description) > 5, f"{name}.{identifier}"
            assert not prop.description.endswith("."), f"{name}.{identifier}"


def test_no_two_choices_are_stored_as_one_number(ext, properties):
    groups = [(kind.__name__, kind.bl_rna) for kind in properties.CLASSES]
    groups += [(name, getattr(bpy.ops.ccd_rig, name).get_rna_type()) for name in dir(bpy.ops.ccd_rig)]
    groups.append(("bake", ext.module("ccd_rig.blender.bake.settings").CCD_RIG_PG_bake.bl_rna))
    choices = 0
    for owner, kind in groups:
        for name, prop in fields_of(kind):
            if prop.type == "ENUM":
                numbers = [item.value for item in prop.enum_items_static]
                assert len(set(numbers)) == len(numbers), f"{owner}.{name}"
                choices += 1
    assert choices > 20


def fields_of(kind):
    return [(name, prop) for name, prop in kind.properties.items() if name != "rna_type"]


def test_solver_group_is_the_core_settings(ext, properties, rig):
    settings = ext.module("ccd_rig.settings").SolverSettings
    assert set(fields(properties.CCD_RIG_PG_solver)) == {f.name for f in dataclasses.fields(settings)}
    read, default = properties.solver_settings(rig), settings()
    for field in dataclasses.fields(settings):
        stored, wanted = getattr(read, field.name), getattr(default, field.name)
        same = stored == pytest.approx(wanted, rel=FLOAT32) if isinstance(wanted, float) else stored is wanted
        assert same or stored == wanted, field.name


def test_the_core_takes_the_ends_of_every_solver_slider(properties, rig):
    for name, prop in fields(properties.CCD_RIG_PG_solver).items():
        if prop.type not in {"INT", "FLOAT"}:
            continue
        for end in (prop.hard_min, prop.hard_max):
            setattr(rig.ccd_rig.solver, name, end)
            assert getattr(properties.solver_settings(rig), name) == pytest.approx(end, rel=FLOAT32)
        rig.ccd_rig.solver.property_unset(name)


def test_every_sweep_can_be_chosen(ext, properties, rig):
    for sweep in ext.module("ccd_rig.settings").Sweep:
        rig.ccd_rig.solver.sweep = sweep.name
        assert properties.solver_settings(rig).sweep is sweep


def test_every_solver_can_be_chosen(ext, properties, rig):
    for solver in ext.module("ccd_rig.settings").Solver:
        rig.ccd_rig.solver.solver = solver.name
        assert properties.solver_settings(rig).solver is solver


def test_a_new_joint_is_the_core_joint(ext, properties, rig):
    joint = ext.module("ccd_rig.skeleton.joints").Joint("any")
    keywords = properties.joint_settings(rig, ["bone_1"])["bone_1"]
    for name, value in keywords.items():
        assert value == pytest.approx(getattr(joint, name)), name


def test_constraint_values(properties, rows, rig):
    target = rigs.empty("Goal")
    row = rows.add(rig, "Arm", "bone_2")
    row.chain_length, row.target, row.offset = 2, target, (0.5, -1.0, 2.0)
    row.influence, row.weight, row.enabled, row.use_tail = 0.25, 2.0, False, False
    assert properties.constraints(rig) == (
        properties.Constraint(
            "Arm",
            "bone_2",
            2,
            "Goal",
            "",
            (0.5, -1.0, 2.0),
            0.25,
            2.0,
            False,
            False,
            properties.KINDS["REACH"],
        ),
    )


def test_values_are_kept_in_range(rows, rig):
    row = rows.add(rig, "Arm", "bone_2")
    row.influence, row.weight, row.chain_length = 7.0, -3.0, -2
    assert row.influence == 1.0
    assert row.weight > 0.0
    assert row.chain_length == 0


def test_names_are_unique(rows, rig):
    names = [rows.add(rig, name, "bone_2").name for name in ("Arm", "Arm", "Arm.001", "", "Arm", "")]
    assert names == ["Arm", "Arm.001", "Arm.002", "CCD", "Arm.003", "CCD.001"]
    rig.ccd_rig.constraints[0].name = "CCD"
    assert rig.ccd_rig.constraints[0].name == "CCD.002"
    rig.ccd_rig.constraints[0].name = "CCD.002"
    assert rig.ccd_rig.constraints[0].name == "CCD.002"
    other = rigs.chain(1, name="Other")
    assert rows.add(other, "Arm", "bone_0").name == "Arm"  # unique on its own armature only


@pytest.mark.parametrize("kind", ["HINGE", "CONE", "ELLIPSE", "TWIST", "EULER"])
def test_limits_reach_the_core(ext, properties, rig, kind):
    limits = ext.module("ccd_rig.limits.shapes")
    group = rig.pose.bones["bone_1"].ccd_rig.limit
    group.kind, group.axis = kind, (0.0, 0.0, 1.0)
    group.hinge_lower, group.hinge_upper = math.radians(10), math.radians(200)
    group.cone_radius, group.use_twist = math.radians(30), True
    group.x_lower, group.x_upper, group.z_lower, group.z_upper = -0.1, 0.2, -0.3, 0.4
    group.twist_lower, group.twist_upper = -0.5, 0.6
    group.euler_order, group.euler_lower, group.euler_upper = "ZXY", (-0.1, -0.2, -0.3), (0.1, 0.2, 0.3)
    twist = (pytest.approx(-0.5), pytest.approx(0.6))
    limit = properties.joint_settings(rig, ["bone_1"])["bone_1"]["limit"]
    if kind == "HINGE":
        assert isinstance(limit, limits.Hinge)
        assert limit.axis == (0.0, 0.0, 1.0)
        assert (limit.lower, limit.upper) == pytest.approx((math.radians(10), math.radians(200)))
    elif kind == "EULER":
        assert (limit.order, limit.lower, limit.upper) == (
            "ZXY",
            pytest.approx((-0.1, -0.2, -0.3)),
            pytest.approx((0.1, 0.2, 0.3)),
        )
    else:
        assert limit.twist == twist
        swing = {"CONE": limits.Cone, "ELLIPSE": limits.Ellipse, "TWIST": type(None)}[kind]
        assert isinstance(limit.swing, swing)
    if kind == "CONE":
        assert limit.swing.radius == pytest.approx(math.radians(30))
    if kind == "ELLIPSE":
        assert dataclasses.astuple(limit.swing) == pytest.approx((-0.1, 0.2, -0.3, 0.4))


def test_the_core_takes_the_ends_of_every_limit_slider(properties, rig):
    group = rig.pose.bones["bone_1"].ccd_rig.limit
    group.use_twist = True
    for name, prop in fields(properties.CCD_RIG_PG_limit).items():
        if prop.type == "FLOAT":
            end = prop.hard_min if name.endswith("_lower") else prop.hard_max
            setattr(group, name, [1.0 if name == "axis" else end] * 3 if prop.is_array else end)
    for kind in ("HINGE", "CONE", "ELLIPSE", "TWIST", "EULER"):
        group.kind = kind
        assert properties.joint_settings(rig, ["bone_1"])["bone_1"]["limit"] is not None


def test_twist_is_free_until_it_is_switched_on(properties, rig):
    group = rig.pose.bones["bone_1"].ccd_rig.limit
    for kind in ("CONE", "ELLIPSE"):
        group.kind = kind
        assert properties.joint_settings(rig, ["bone_1"])["bone_1"]["limit"].twist is None


def test_comfort_uses_the_same_limits(ext, properties, rig):
    group = rig.pose.bones["bone_1"].ccd_rig.comfort
    assert properties.joint_settings(rig, ["bone_1"])["bone_1"]["comfort"] is None
    group.tolerance = math.radians(10)
    group.region.kind = "CONE"
    comfort = properties.joint_settings(rig, ["bone_1"])["bone_1"]["comfort"]
    assert comfort.tolerance == pytest.approx(math.radians(10))
    assert isinstance(comfort.region.swing, ext.module("ccd_rig.limits.shapes").Cone)


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (
            "HINGE",
            {"hinge_lower": math.radians(40), "hinge_upper": math.radians(30)},
            "Min (40°) is above Max (30°)",
        ),
        ("HINGE", {"axis": (0.0, 0.0, 0.0)}, "axis is zero"),
        (
            "EULER",
            {"euler_lower": (0, 1, 0), "euler_upper": (1, 0.5, 1)},
            "Y Min (57.3°) is above Y Max (28.65°)",
        ),
        ("CONE", {"use_twist": True, "twist_lower": 1.0, "twist_upper": 0.5}, "twist Min"),
        ("TWIST", {"twist_lower": 1.0, "twist_upper": 0.5}, "twist Min"),
    ],
)
@pytest.mark.parametrize("place", ["limit", "comfort region"])
def test_contradictions_name_bone_and_field(ext, properties, rig, kind, changes, words, place):
    joint = rig.pose.bones["bone_1"].ccd_rig
    group = joint.limit if place == "limit" else joint.comfort.region
    group.kind = kind
    for name, value in changes.items():
        setattr(group, name, value)
    with pytest.raises(ext.core.RigError) as caught:
        properties.joint_settings(rig, ["bone_0", "bone_1"])
    assert "'bone_1'" in str(caught.value)
    assert place in str(caught.value)
    assert words in str(caught.value)
    assert "Hinge" not in str(caught.value), "the panel has no such word"


def test_a_missing_bone_is_named(ext, properties, rig):
    with pytest.raises(ext.core.RigError, match="'nowhere'"):
        properties.joint_settings(rig, ["nowhere"])


def test_moving_and_removing_rows_takes_their_animation_along(ext, rows, rig):
    for name in ("A", "B", "C"):
        rows.add(rig, name, "bone_2")
    listed = rig.ccd_rig.constraints
    listed[1].keyframe_insert("influence", frame=1)
    listed[1].keyframe_insert("influence", frame=9)
    listed[2].keyframe_insert("offset", frame=1)
    listed[2].driver_add("weight")

    rows.move(rig, 1, 2)
    assert [row.name for row in listed] == ["A", "C", "B"]
    offset = {("ccd_rig.constraints[1].offset", i) for i in range(3)}
    assert curves(ext, rig) == {("ccd_rig.constraints[2].influence", 0)} | offset
    assert [d.data_path for d in rig.animation_data.drivers] == ["ccd_rig.constraints[1].weight"]

    rows.remove(rig, 1)
    assert [row.name for row in listed] == ["A", "B"]
    assert curves(ext, rig) == {("ccd_rig.constraints[1].influence", 0)}
    assert len(rig.animation_data.drivers) == 0

    rows.remove(rig, 0)
    assert curves(ext, rig) == {("ccd_rig.constraints[0].influence", 0)}
    rows.remove(rig, 0)
    assert rig.animation_data.action is None or curves(ext, rig) == set()
    assert rig.ccd_rig.active_index == 0


def influences(rig):
    """What plays at frame 1."""
    for row in rig.ccd_rig.constraints:
        row.influence = 1.0
    for frame in (2, 1):
        bpy.context.scene.frame_set(frame)
    return {row.name: round(row.influence, 3) for row in rig.ccd_rig.constraints}


def in_a_strip(rig):
    """Return a function that lets the rig's keys play as before."""
    animation = rig.animation_data
    action, animation.action = animation.action, None
    animation.nla_tracks.new().strips.new("Strip", 1, action)
    return lambda: None


def in_a_muted_strip(rig):
    in_a_strip(rig)
    track = rig.animation_data.nla_tracks[0]
    track.mute = True
    return lambda: setattr(track, "mute", False)


def in_tweak_mode(rig):
    """The rig's own action stands aside while that of a strip is edited."""
    animation, action = rig.animation_data, rig.animation_data.action
    strip = animation.nla_tracks.new().strips.new("Strip", 1, bpy.data.actions.new("Other"))
    animation.nla_tracks[0].select = animation.nla_tracks[0].is_solo = False
    strip.select = True
    animation.nla_tracks.active = animation.nla_tracks[0]
    animation.use_tweak_mode = True
    assert animation.action != action
    return lambda: setattr(animation, "use_tweak_mode", False)


def unused(rig):
    animation, action = rig.animation_data, rig.animation_data.action
    slot = getattr(animation, "action_slot", None)
    action.use_fake_user, animation.action = True, None

    def play():
        animation.action = action
        if slot is not None:
            animation.action_slot = action.slots[0]

    return play


@pytest.mark.parametrize("put", [in_a_strip, in_a_muted_strip, in_tweak_mode, unused])
def test_keys_that_do_not_play_from_the_present_action_go_along_too(rows, rig, put):
    for name, value in (("A", 0.125), ("B", 0.25), ("C", 0.5)):
        row = rows.add(rig, name, "bone_2")
        row.influence = value
        row.keyframe_insert("influence", frame=1)
    before = influences(rig)
    assert before == {"A": 0.125, "B": 0.25, "C": 0.5}
    play = put(rig)
    assert rows.move(rig, 2, 1) == []
    assert rows.remove(rig, 0) == []
    play()
    assert influences(rig) == {"B": 0.25, "C": 0.5}


def test_keys_that_may_be_another_rigs_stay_and_are_told(channels, rows, rig):
    for name in ("A", "B"):
        rows.add(rig, name, "bone_2").keyframe_insert("influence", frame=1)
    action = rig.animation_data.action
    slots = getattr(action, "slots", None)
    if slots is not None:
        slots[0].name_display = "Legacy Slot"
    unused(rig)
    rows.add(rigs.chain(3, name="Second"), "A", "bone_2")
    assert rows.remove(rig, 0) == [action.name]
    curves = channels.fcurves_for(action, rig)
    assert sorted(curve.data_path for curve in curves) == [
        "ccd_rig.constraints[0].influence",
        "ccd_rig.constraints[1].influence",
    ]
    assert f"'{action.name}'" in rows.order_kept_in([action.name])


def test_removing_a_row_takes_curves_with_modifiers_along(channels, rows, rig):
    """Blender keeps an F-curve whose keys are gone, if it has modifiers."""
    for name in ("A", "B"):
        rows.add(rig, name, "bone_2")
        rig.ccd_rig.constraints[-1].keyframe_insert("influence", frame=1)
        rig.ccd_rig.constraints[-1].keyframe_insert("weight", frame=1)
    fcurves_of = channels.fcurves_of
    for curve in fcurves_of(rig):
        curve.modifiers.new("NOISE")
        if curve.data_path.endswith("weight"):
            curve.keyframe_points.clear()
    rows.remove(rig, 0)
    left = sorted(curve.data_path for curve in fcurves_of(rig))
    assert left == ["ccd_rig.constraints[0].influence", "ccd_rig.constraints[0].weight"]


def test_influence_is_animated(rows, rig):
    rows.add(rig, "A", "bone_2")
    rig.ccd_rig.constraints[0].influence = 0.0
    rig.ccd_rig.constraints[0].keyframe_insert("influence", frame=1)
    rig.ccd_rig.constraints[0].influence = 1.0
    rig.ccd_rig.constraints[0].keyframe_insert("influence", frame=11)
    bpy.context.scene.frame_set(1)
    assert rig.ccd_rig.constraints[0].influence == 0.0
    bpy.context.scene.frame_set(11)
    assert rig.ccd_rig.constraints[0].influence == 1.0


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_drivers_of_a_removed_constraint_go_with_it(rows, rig, axes):
    """Blender frees all drivers of a path at once: what still points to one would crash."""
    for name in ("A", "B"):
        rows.add(rig, name, "bone_2")
    for k in range(axes):
        rig.ccd_rig.constraints[0].driver_add("offset", k)
    rig.ccd_rig.constraints[0].driver_add("weight")
    rig.ccd_rig.constraints[1].driver_add("weight")
    rigs.update()
    rows.remove(rig, 0)
    rigs.update()
    assert [each.data_path for each in rig.animation_data.drivers] == ["ccd_rig.constraints[0].weight"]


def test_a_constraint_without_a_bone_has_no_limb(rows, rig):
    assert rows.limb_length(rig, "gone") == 0
