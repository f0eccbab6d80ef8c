"""Set-ups with targets that Blender moves in every way that it has, and a scene that is heavy beside them."""

from __future__ import annotations

import math

import bpy
import rigs


def key(thing, path, values, first=1, gap=7):
    for number, value in enumerate(values):
        setattr(thing, path, value)
        thing.keyframe_insert(path, frame=first + gap * number)


def arm():
    """Eight bones on a keyed base that is no part of the chain."""
    rig = rigs.chain(9, 0.5)
    base = rig.pose.bones["bone_0"]
    key(base, "rotation_quaternion", [(1, 0, 0, 0), (0.98, 0.1, -0.1, 0.1), (1, -0.1, 0, 0.1), (1, 0, 0, 0)])
    return rig


def reach(rig, target, bone="", **fields):
    return rigs.reach(rig, "bone_8", target, "Hand", chain_length=8, target_bone=bone, **fields)


def surface(name="Surface"):
    """A bumpy grid of 4 by 4 metres at height 2.2, kept in motion by a keyed armature of its own."""
    leader = rigs.armature([rigs.B("lead", (0, 0, 0), (0, 0, 1))], f"{name} Leader")
    key(leader.pose.bones["lead"], "location", [(0, 0, 0), (0.4, 0.2, -0.3), (-0.3, -0.2, 0.2), (0, 0.1, 0)])
    side = range(-10, 11)
    points = [(0.2 * x, 0.2 * y, 2.2 + 0.1 * math.sin(x) * math.cos(2 * y)) for x in side for y in side]
    count = len(side)
    faces = [
        (r * count + c, r * count + c + 1, (r + 1) * count + c + 1, (r + 1) * count + c)
        for r in range(count - 1)
        for c in range(count - 1)
    ]
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(points, [], faces)
    made = rigs.link(mesh, name)
    made.vertex_groups.new(name="lead").add(range(len(points)), 1.0, "REPLACE")
    made.modifiers.new("Armature", "ARMATURE").object = leader
    wave = made.modifiers.new("Wave", "WAVE")  # moves with time
    wave.height, wave.width, wave.speed = 0.1, 1.0, 0.1
    return made


def plain(rig):
    target = rigs.empty("Target", (1, 1, 2))
    key(target, "location", [(1.5, 0.5, 2.5), (1.2, -0.8, 2), (-0.8, -1, 2.4), (0.5, 1, 2.8)])
    return target, ""


def on_a_vertex(rig):
    target = rigs.empty("Target", (0, 0, 0.1))
    ground = surface()
    target.parent, target.parent_type, target.parent_vertices = ground, "VERTEX", (250, 0, 0)
    return target, ""


def on_a_triangle(rig):
    target = rigs.empty("Target", (0, 0, 0.1))
    target.parent, target.parent_type, target.parent_vertices = surface(), "VERTEX_3", (250, 251, 272)
    return target, ""


def shrinkwrapped(kind):
    def set_up(rig):
        target, _ = plain(rig)
        constraint = target.constraints.new("SHRINKWRAP")
        constraint.target, constraint.shrinkwrap_type = surface(), kind
        if kind == "PROJECT":
            constraint.project_axis, constraint.use_project_opposite = "NEG_Z", True
            constraint.project_axis_space = "WORLD"
        return target, ""

    set_up.__name__ = f"shrinkwrapped_{kind}"
    return set_up


def shrinkwrapped_to_a_hidden_one(rig):
    target, _ = shrinkwrapped("NEAREST_SURFACE")(rig)
    bpy.data.objects["Surface"].hide_viewport = True
    return target, ""


def shrinkwrapped_to_a_simplified_one(rig):
    target, _ = shrinkwrapped("NEAREST_VERTEX")(rig)
    bpy.data.objects["Surface"].modifiers.new("Smooth", "SUBSURF").levels = 2
    bpy.context.scene.render.use_simplify, bpy.context.scene.render.simplify_subdivision = True, 0
    return target, ""


def copies_a_vertex_group(rig):
    """Copy Location of a vertex group: the middle of evaluated vertices."""
    ground, target = surface(), rigs.empty("Target")
    ground.vertex_groups.new(name="spot").add([230, 231, 251], 1.0, "REPLACE")
    constraint = target.constraints.new("COPY_LOCATION")
    constraint.target, constraint.subtarget = ground, "spot"
    return target, ""


def hooked_path(rig):
    """Along a curve that a hook bends."""
    hook = rigs.empty("Hook", (1, 0, 2))
    key(hook, "location", [(1, 0, 2), (1, 0.4, 2.1), (1, -0.4, 1.9), (1.1, 0, 2)])
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.dimensions = "3D"
    spline = curve.splines.new("POLY")
    spline.points.add(2)
    for point, place in zip(spline.points, ((0.5, -1, 1), (1, 0, 1), (0.5, 1, 1)), strict=True):
        point.co = (*place, 1)
    path = rigs.link(curve, "Path")
    modifier = path.modifiers.new("Hook", "HOOK")
    modifier.object = hook
    modifier.vertex_indices_set([1])
    target = rigs.empty("Target")
    follow = target.constraints.new("FOLLOW_PATH")
    follow.target, follow.use_fixed_location = path, True
    for frame, factor in ((1, 0.1), (20, 0.9)):
        follow.offset_factor = factor
        follow.keyframe_insert("offset_factor", frame=frame)
    return target, ""


def nla_blend(rig):
    """Two strips with blending and influence, one of them over the other, and the action on top."""
    target, _ = plain(rig)
    data = target.animation_data
    for name, blend, values in (
        ("Below", "REPLACE", [(1, 0.5, 2), (1, -0.5, 2.4)]),
        ("Above", "ADD", [(0, 0.1, 0), (0.2, 0.3, 0.1)]),
    ):
        data.action = None
        key(target, "location", values, gap=15)
        strip = data.nla_tracks.new().strips.new(name, 1, data.action)
        strip.blend_type, strip.extrapolation = blend, "HOLD"
        if hasattr(strip, "action_slot"):
            strip.action_slot = data.action_slot
        strip.blend_in = 6
    data.action = None
    return target, ""


def nla_on_the_base(rig):
    """The chain's own parent is moved by a strip, not by the action."""
    data = rig.animation_data
    strip = data.nla_tracks.new().strips.new("Base", 3, data.action)
    if hasattr(strip, "action_slot"):
        strip.action_slot = data.action_slot
    strip.scale = 0.8
    data.action = None
    return plain(rig)


def driven_base(rig):
    """The chain's parent turns by a driver, and another bone's constraint moves the object that drives it."""
    lead = rigs.empty("Lead")
    key(lead, "location", [(0, 0, 0), (0.3, 0, 0), (-0.2, 0, 0), (0.1, 0, 0)])
    base = rig.pose.bones["bone_0"]
    base.rotation_mode = "XYZ"
    driver = base.driver_add("rotation_euler", 0).driver
    variable = driver.variables.new()
    variable.name, variable.type = "way", "TRANSFORMS"
    variable.targets[0].id, variable.targets[0].transform_type = lead, "LOC_X"
    driver.expression = "way + 0.005 * frame"
    return plain(rig)


def constrained_base(rig):
    """The chain's parent follows an object by Blender's own constraints."""
    lead = rigs.empty("Lead", (1, 0, 3))
    key(lead, "location", [(1, 0, 3), (0.5, 0.5, 3), (0.2, -0.5, 3), (0, 0, 3)])
    rig.pose.bones["bone_0"].constraints.new("DAMPED_TRACK").target = lead
    copied = rig.pose.bones["bone_0"].constraints.new("COPY_LOCATION")
    copied.target, copied.influence = lead, 0.1
    return plain(rig)


def base_under_ik(rig):
    """Blender's IK at a bone beside the chain turns the chain's parent."""
    with rigs.edit_bones(rig) as bones:
        beside = bones.new("beside")
        beside.head, beside.tail, beside.parent = (0, 0, 0.5), (0.5, 0, 0.5), bones["bone_0"]
    lead = rigs.empty("Lead", (0.4, 0, 0.6))
    key(lead, "location", [(0.4, 0, 0.6), (0.4, 0.2, 0.5), (0.3, -0.2, 0.6), (0.5, 0, 0.5)])
    ik = rig.pose.bones["beside"].constraints.new("IK")
    ik.target, ik.chain_count = lead, 2
    return plain(rig)


def on_a_bone(rig):
    """A bone that Blender's IK moves, in a rig with much beside it: more IK, and a spline IK."""
    other = rigs.armature(
        [
            rigs.B(f"{arm}_{i}", (x, 0.1 * (i % 2), 0.5 * i), (x, 0.1 * ((i + 1) % 2), 0.5 * i + 0.5), parent)
            for x, arm in ((0.5, "left"), (1.5, "right"), (2.5, "tail"))
            for i, parent in enumerate(("", f"{arm}_0", f"{arm}_1", f"{arm}_2"))
        ],
        "Other",
    )
    for x, arm in ((0.8, "left"), (1.2, "right")):
        lead = rigs.empty(f"Lead {arm}", (x, 0, 1.5))
        key(lead, "location", [(x, 0, 1.5), (x, 0.4, 1.2), (x, -0.4, 1.6), (x, 0, 1.4)])
        ik = other.pose.bones[f"{arm}_3"].constraints.new("IK")
        ik.target, ik.chain_count = lead, 3
    curve = bpy.data.curves.new("Way", "CURVE")
    curve.splines.new("POLY").points.add(2)
    for point, place in zip(curve.splines[0].points, ((2.5, 0, 0), (2, 0.5, 1), (2.5, 0, 2)), strict=True):
        point.co = (*place, 1)
    spline = other.pose.bones["tail_3"].constraints.new("SPLINE_IK")
    spline.target, spline.chain_count = rigs.link(curve, "Way"), 3
    return other, "left_2"


def custom_property(rig):
    """A driver reads a keyed property of another object, through a second driver."""
    panel, target = rigs.empty("Panel"), rigs.empty("Target", (1, 0, 2))
    panel["way"] = 0.0
    for frame, value in ((1, 0.0), (10, 1.0), (20, -0.5)):
        panel["way"] = value
        panel.keyframe_insert('["way"]', frame=frame)
    for thing, path, index, source, data_path in (
        (panel, "location", 2, panel, '["way"]'),
        (target, "location", 1, panel, "location[2]"),
    ):
        driver = thing.driver_add(path, index).driver
        driver.type = "SUM"
        variable = driver.variables.new()
        variable.targets[0].id, variable.targets[0].data_path = source, data_path
    return target, ""


SET_UPS = (
    plain,
    on_a_vertex,
    on_a_triangle,
    shrinkwrapped("NEAREST_SURFACE"),
    shrinkwrapped("PROJECT"),
    shrinkwrapped("NEAREST_VERTEX"),
    shrinkwrapped_to_a_hidden_one,
    shrinkwrapped_to_a_simplified_one,
    copies_a_vertex_group,
    hooked_path,
    nla_blend,
    nla_on_the_base,
    driven_base,
    constrained_base,
    base_under_ik,
    on_a_bone,
    custom_property,
)


def weigh_down(rig):
    """What a scene holds beside: a skin with modifiers, and objects with keys, drivers and constraints."""
    points = [(0.1 * math.cos(k), 0.1 * math.sin(k), 0.1 * r) for r in range(46) for k in range(6)]
    mesh = bpy.data.meshes.new("Skin")
    mesh.from_pydata(points, [], [(6 * r, 6 * r + 1, 6 * r + 7, 6 * r + 6) for r in range(45)])
    skin = rigs.link(mesh, "Skin")
    for number, bone in enumerate(rig.data.bones):
        skin.vertex_groups.new(name=bone.name).add(range(30 * number, 30 * number + 30), 1.0, "REPLACE")
    skin.modifiers.new("Armature", "ARMATURE").object = rig
    skin.modifiers.new("Subdivision", "SUBSURF").levels = 2
    skin.modifiers.new("Smooth", "CORRECTIVE_SMOOTH").iterations = 5
    for number in range(12):
        other = rigs.empty(f"Other {number}")
        key(other, "location", [(number, 0, 0), (0, number, 1)])
        other.driver_add("rotation_euler", 2).driver.expression = "sin(frame)"
        follow = other.constraints.new("COPY_ROTATION")
        follow.target, follow.subtarget = rig, "bone_5"
