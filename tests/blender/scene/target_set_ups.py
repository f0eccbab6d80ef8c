"""What a target can be, and how it can be hidden.

Each set-up makes a target, and returns it and its bone.
"""

from __future__ import annotations

import math

import bpy
import rigs
from mathutils import Matrix
from target_scenes import animate


def plain(rig):
    target = rigs.empty("Target", (1, 2, 3))
    animate(target, "location", seed=1, spread=3)
    return target, ""


def with_offset_scale_and_rotation(rig):
    target, _ = plain(rig)
    animate(target, "rotation_euler", seed=2)
    target.scale = (2, 0.5, -1)
    return target, ""


def parented(rig):
    grandparent, parent = rigs.empty("Grandparent", (1, 0, 0)), rigs.empty("Parent", (0, 1, 0))
    target = rigs.empty("Target", (0, 0, 1))
    for index, thing in enumerate((grandparent, parent, target)):
        animate(thing, "location", seed=index)
        animate(thing, "rotation_euler", seed=index + 7)
    parent.parent, target.parent = grandparent, parent
    target.matrix_parent_inverse = Matrix.Translation((0.1, 0.2, 0.3))
    return target, ""


def constrained(rig):
    other, target = rigs.empty("Other", (1, 1, 1)), rigs.empty("Target", (2, 0, 1))
    animate(other, "location", seed=3)
    animate(other, "rotation_euler", seed=4)
    target.constraints.new("COPY_LOCATION").target = other
    child_of = target.constraints.new("CHILD_OF")
    child_of.target, child_of.influence = other, 0.4
    return target, ""


def on_a_path(rig):
    """The curve itself is needed, not only where it is."""
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.dimensions = "3D"
    spline = curve.splines.new("BEZIER")
    spline.bezier_points.add(3)
    for index, point in enumerate(spline.bezier_points):
        point.co = (index, index % 2, 0.5 * index)
        point.handle_left_type = point.handle_right_type = "AUTO"
    path = rigs.link(curve, "Path")
    path.location = (0.2, 0.1, 0.3)
    target = rigs.empty("Target")
    follow = target.constraints.new("FOLLOW_PATH")
    follow.target, follow.use_fixed_location = path, True
    for frame, offset in ((-5, 0.0), (12, 1.0)):
        follow.offset_factor = offset
        follow.keyframe_insert("offset_factor", frame=frame)
    return target, ""


def on_a_vertex(rig):
    """Parented to a vertex of a mesh that another armature deforms."""
    other = rigs.chain(2, name="Deformer")
    animate(other.pose.bones["bone_0"], "rotation_quaternion", seed=8)
    mesh = bpy.data.meshes.new("Surface")
    mesh.from_pydata([(0, 0, 1), (1, 0, 1), (0, 1, 1)], [], [(0, 1, 2)])
    surface = rigs.link(mesh, "Surface")
    surface.vertex_groups.new(name="bone_0").add([0, 1, 2], 1.0, "REPLACE")
    surface.modifiers.new("Armature", "ARMATURE").object = other
    target = rigs.empty("Target", (0, 0, 0.2))
    target.parent, target.parent_type, target.parent_vertices = surface, "VERTEX", (1, 0, 0)
    return target, ""


def driven(rig):
    other, target = rigs.empty("Other"), rigs.empty("Target", (1, 1, 1))
    animate(other, "location", seed=5)
    for axis, expression in enumerate(("source * 2", "frame / 10", "source + sin(frame)")):
        driver = target.driver_add("location", axis).driver
        variable = driver.variables.new()
        variable.name, variable.type = "source", "TRANSFORMS"
        variable.targets[0].id, variable.targets[0].transform_type = other, "LOC_X"
        driver.expression = expression
    return target, ""


def scene_driver(target, axis, kind, path, expression="{}"):
    """A driver that reads a property of the scene, by name or as the active one."""
    driver = target.driver_add("location", axis).driver
    variable = driver.variables.new()
    variable.type = kind
    if kind == "SINGLE_PROP":
        variable.targets[0].id_type = "SCENE"
        variable.targets[0].id = bpy.context.scene
    variable.targets[0].data_path = path
    driver.expression = expression.format(variable.name)


def driven_by_the_scene(rig):
    bpy.context.scene["way"], bpy.context.scene["here"] = 1.75, 0.625
    target = rigs.empty("Target", (1, 1, 1))
    scene_driver(target, 0, "SINGLE_PROP", '["way"]')
    scene_driver(target, 1, "CONTEXT_PROP", '["here"]', "{} * frame")
    scene_driver(target, 2, "CONTEXT_PROP", "frame_current", "{} / 4")
    return target, ""


def driven_by_arrays_of_the_scene(rig):
    scene = bpy.context.scene
    scene["ways"], scene["group"] = [0.25, -0.0625, 1.0], {"far": [0.5, 0.75], "near": 0.125}
    target = rigs.empty("Target", (1, 1, 1))
    scene_driver(target, 0, "CONTEXT_PROP", '["ways"][1]', "{} * frame")
    scene_driver(target, 1, "CONTEXT_PROP", '["group"]["far"][1]', "{} * frame / 8")
    scene_driver(target, 2, "CONTEXT_PROP", '["group"]["near"]', "1 + {} * frame / 2")
    return target, ""


def delta_transforms(rig):
    target, _ = plain(rig)
    target.delta_location, target.delta_rotation_euler = (0.3, -0.4, 0.5), (0.2, 0.3, 0.4)
    animate(target, "delta_location", seed=6)
    return target, ""


def nla(rig):
    target, _ = plain(rig)
    action = target.animation_data.action
    track = target.animation_data.nla_tracks.new()
    strip = track.strips.new("Strip", 2, action)
    strip.scale, strip.repeat = 0.7, 2.0
    if hasattr(strip, "action_slot"):
        strip.action_slot = target.animation_data.action_slot
    target.animation_data.action = None
    return target, ""


def bone_of_another_armature(rig):
    other = rigs.chain(3, name="Leader")
    parent = rigs.empty("Parent", (0.5, 0.5, 0))
    animate(parent, "location", seed=9)
    other.parent, other.scale = parent, (1.5, 1.5, 1.5)
    for index, bone in enumerate(other.pose.bones):
        animate(bone, "rotation_quaternion", seed=10 + index)
    return other, "bone_2"


def bone_outside_the_chain(rig):
    animate(rig.pose.bones["aside"], "location", seed=12)
    return rig, "aside"


def bone_by_ik(rig):
    """The target's bone is moved by Blender's own IK, towards an animated object."""
    lead = rigs.empty("Lead", (1, 1, 1))
    animate(lead, "location", seed=13)
    other = rigs.chain(4, name="Leader", length=0.5)
    other.pose.bones["bone_3"].constraints.new("IK").target = lead
    return other, "bone_2"


def mirrored_rig(rig):
    rig.scale = (-1, 1.5, 2)
    return plain(rig)


def rig_with_animated_scale(rig):
    for frame, scale in ((-5, (1, 1, 1)), (12, (2, 0.3, -1.5))):
        rig.scale = scale
        rig.keyframe_insert("scale", frame=frame)
    # Blender's scale passes through zero between two signs, not at the frames looked at.
    return plain(rig)


def rig_under_a_parent(rig):
    parent = rigs.empty("Parent", (3, 2, 1))
    animate(parent, "rotation_euler", seed=14)
    parent.scale = (1, 2, 3)
    rig.parent = parent
    target, _ = plain(rig)
    target.parent = rig
    return target, ""


def other_frame_rates(rig):
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = 30, 1.001
    scene.render.frame_map_old, scene.render.frame_map_new = 80, 200
    return plain(rig)


SET_UPS = (
    plain,
    with_offset_scale_and_rotation,
    parented,
    constrained,
    on_a_path,
    on_a_vertex,
    driven,
    driven_by_the_scene,
    driven_by_arrays_of_the_scene,
    delta_transforms,
    nla,
    bone_of_another_armature,
    bone_outside_the_chain,
    bone_by_ik,
    mirrored_rig,
    rig_with_animated_scale,
    rig_under_a_parent,
    other_frame_rates,
)


def hide_viewport(thing):
    thing.hide_viewport = True
    return lambda: setattr(thing, "hide_viewport", False)


def hide_set(thing):
    thing.hide_set(True)
    return lambda: thing.hide_set(False)


def excluded_collection(thing):
    collection = bpy.data.collections.new("Excluded")
    bpy.context.scene.collection.children.link(collection)
    collection.objects.link(thing)
    bpy.context.scene.collection.objects.unlink(thing)
    bpy.context.view_layer.layer_collection.children["Excluded"].exclude = True
    return lambda: setattr(bpy.context.view_layer.layer_collection.children["Excluded"], "exclude", False)


def hidden_collection(thing):
    undo = excluded_collection(thing)
    undo()
    bpy.data.collections["Excluded"].hide_viewport = True
    return lambda: setattr(bpy.data.collections["Excluded"], "hide_viewport", False)


def no_collection(thing):
    bpy.context.scene.collection.objects.unlink(thing)
    return lambda: bpy.context.scene.collection.objects.link(thing)


def other_scene(thing):
    scene = bpy.data.scenes.new("Elsewhere")
    scene.frame_set(77)
    scene.collection.objects.link(thing)
    bpy.context.scene.collection.objects.unlink(thing)
    return lambda: bpy.context.scene.collection.objects.link(thing)


def keyed_hide_viewport(thing):
    thing.hide_viewport = True
    thing.keyframe_insert("hide_viewport", frame=1)

    def show():
        thing.keyframe_delete("hide_viewport", frame=1)
        thing.hide_viewport = False

    return show


HIDINGS = (
    hide_viewport,
    keyed_hide_viewport,
    hide_set,
    excluded_collection,
    hidden_collection,
    no_collection,
    other_scene,
)


def nan_target(rig, row):
    row.target.location = (0, math.nan, 0)
