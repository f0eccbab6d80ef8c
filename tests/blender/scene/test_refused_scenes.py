"""What cannot be evaluated beside the user's scene is refused by name, and leaves no trace."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
from target_scenes import add_row, file_state, make_rig, sample_once
from target_set_ups import nan_target, scene_driver


def no_target(rig, row):
    row.target = None


def no_bone(rig, row):
    row.target_bone = "gone"


def missing_row(rig, row):
    row.name = "Renamed"


def zero_scale(rig, row):
    rig.scale = (1, 0, 1)


def simulated(rig, row):
    mesh = bpy.data.meshes.new("Ball")
    mesh.from_pydata(
        [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [], [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    )
    ball = rigs.link(mesh, "Ball")
    bpy.ops.rigidbody.world_add()
    bpy.ops.rigidbody.object_add()
    row.target.parent = ball


def animate_scene():
    for frame in (1, 9):
        bpy.context.scene["way"] = float(frame)
        bpy.context.scene.keyframe_insert('["way"]', frame=frame)


def scene_frame_driver(rig, row):
    scene_driver(row.target, 1, "SINGLE_PROP", "frame_current")


def animated_scene_driver(rig, row):
    animate_scene()
    row.target.parent = rigs.empty("Parent")
    scene_driver(row.target.parent, 1, "SINGLE_PROP", '["way"]')


def active_scene_driver(rig, row):
    animate_scene()
    scene_driver(row.target, 1, "CONTEXT_PROP", '["way"]')


def animated_array_driver(rig, row):
    bpy.context.scene["ways"] = [1.0, 2.0, 3.0]
    for frame in (1, 9):
        bpy.context.scene["ways"][1] = float(frame)
        bpy.context.scene.keyframe_insert('["ways"]', index=1, frame=frame)
    scene_driver(row.target, 1, "CONTEXT_PROP", '["ways"][1]')


def active_scene_setting_driver(rig, row):
    scene_driver(row.target, 1, "CONTEXT_PROP", "render.resolution_x")


def simulated_base(rig, row):
    """The bone that the chain stands on follows a simulated object."""
    row.target = rigs.empty("Still")
    lead = rigs.empty("Target")
    simulated(rig, type("Row", (), {"target": lead}))
    rig.pose.bones["base"].constraints.new("COPY_LOCATION").target = lead


def bones_in_edit_mode(rig, row):
    """The target hangs on a bone, which Edit Mode shows at rest."""
    other = rigs.chain(2, name="Other")
    row.target.parent, row.target.parent_type, row.target.parent_bone = other, "BONE", "bone_1"
    rigs.activate(other)
    bpy.ops.object.mode_set(mode="EDIT")


def rig_data_in_edit_mode(rig, row):
    """Another object with the same armature is edited."""
    rigs.activate(rigs.link(rig.data, "Twin"))
    bpy.ops.object.mode_set(mode="EDIT")


def points_in_edit_mode(rig, row):
    """The target hangs on a vertex, which Edit Mode shows without modifiers and shape keys."""
    floor = rigs.ground(lambda x, y: 0.0, [-1.0, 1.0], name="Floor")
    row.target.parent, row.target.parent_type, row.target.parent_vertices = floor, "VERTEX", (0, 0, 0)
    bpy.ops.object.mode_set(mode="EDIT")
    return floor


def displaced_points_in_edit_mode(rig, row):
    points_in_edit_mode(rig, row).modifiers.new("Up", "DISPLACE")


def keyed_points_in_edit_mode(rig, row):
    floor = points_in_edit_mode(rig, row)
    bpy.ops.object.mode_set(mode="OBJECT")
    floor.shape_key_add(name="Basis")
    bpy.ops.object.mode_set(mode="EDIT")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (bones_in_edit_mode, ["Reach", "'Target' follows bone 'bone_1' of 'Other'", "leave Edit Mode"]),
        (rig_data_in_edit_mode, ["Reach", "bone 'tip' of 'Rig'", "leave Edit Mode"]),
        (displaced_points_in_edit_mode, ["Reach", "'Target' follows 'Floor'", "leave Edit Mode"]),
        (keyed_points_in_edit_mode, ["Reach", "'Target' follows 'Floor'", "leave Edit Mode"]),
        (no_target, ["Reach", "no target"]),
        (no_bone, ["Reach", "'Target' has no bone 'gone'"]),
        (missing_row, ["'Rig'", "no constraint 'Reach'"]),
        (zero_scale, ["Armature 'Rig'", "scale of 0", "frame 3"]),
        (nan_target, ["Reach", "'Target'", "not a number", "frame 3"]),
        (simulated, ["Reach", "'Target'", "rigid body", "'Ball'", "Bake To Keyframes"]),
        (simulated_base, ["Reach", "bone 'tip'", "rigid body", "'Ball'", "Bake To Keyframes"]),
        (scene_frame_driver, ["Reach", "'Target'", "frame_current", "the word frame"]),
        (animated_scene_driver, ["Reach", "'Target'", "location of 'Parent'", '["way"]']),
        (active_scene_driver, ["Reach", "'Target'", '["way"]']),
        (animated_array_driver, ["Reach", "'Target'", '["ways"][1]']),
        (active_scene_setting_driver, ["Reach", "'Target'", "render.resolution_x"]),
    ],
)
def test_refused(evaluation, constraints_of, errors, spoil, words):
    rig = make_rig()
    row = add_row(rig, rigs.empty("Target", (1, 2, 3)))
    kept = constraints_of(rig)
    spoil(rig, row)
    rows = kept if spoil is missing_row else constraints_of(rig)
    rigs.update()
    before = file_state()
    with pytest.raises(errors.RigError) as caught:
        sample_once(evaluation, rig, rows, 3)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert repr(file_state()) == repr(before)  # NaN differs from itself


def test_scale_that_becomes_zero(evaluation, constraints_of, errors):
    rig = rigs.chain(2)
    add_row(rig, rigs.empty("Target", (1, 2, 3)), tip="bone_1")
    for frame, size in ((1, 1.0), (5, 0.0)):
        rig.scale = (size, size, size)
        rig.keyframe_insert("scale", frame=frame)
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        assert sample(4.5).matrix_world.to_scale().length > 0
        with pytest.raises(errors.RigError, match="'Rig' has a scale of 0 at frame 5"):
            sample(5)
        assert sample(1).matrix_world.to_scale()[:] == pytest.approx((1.0, 1.0, 1.0))


def test_simulated_but_not_used(evaluation, constraints_of):
    """Rigid bodies that stand still or go by their keys are evaluated as anything else."""
    rig = make_rig()
    row = add_row(rig, rigs.empty("Target", (1, 2, 3)))
    simulated(rig, row)
    row.target.parent.rigid_body.kinematic = True
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        sample(3)


def test_points_in_edit_mode_that_show_as_they_play(evaluation, constraints_of):
    rig = make_rig()
    row = add_row(rig, rigs.empty("Target", (1, 2, 3)))
    points_in_edit_mode(rig, row)
    rigs.update()
    with evaluation.frames(bpy.context.scene, rig, constraints_of(rig)) as sample:
        sample(3)


def simulation_nodes():
    """A node group that shifts its geometry along X at each frame, by its state of the frame before."""
    group = bpy.data.node_groups.new("Drift", "GeometryNodeTree")
    for side in ("INPUT", "OUTPUT"):
        group.interface.new_socket("Geometry", in_out=side, socket_type="NodeSocketGeometry")
    add, join = group.nodes.new, group.links.new
    source, end, shift = add("NodeGroupInput"), add("NodeGroupOutput"), add("GeometryNodeSetPosition")
    first, last = add("GeometryNodeSimulationInput"), add("GeometryNodeSimulationOutput")
    first.pair_with_output(last)
    shift.inputs["Offset"].default_value = (0.05, 0.0, 0.0)
    join(source.outputs[0], first.inputs["Geometry"])
    join(first.outputs["Geometry"], shift.inputs["Geometry"])
    join(shift.outputs["Geometry"], last.inputs["Geometry"])
    join(last.outputs["Geometry"], end.inputs[0])
    return group


def on_points_of(row, group):
    """The target hangs on a vertex of a mesh with a node group."""
    mesh = bpy.data.meshes.new("Sheet")
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
    sheet = rigs.link(mesh, "Sheet")
    modifier = sheet.modifiers.new("Nodes", "NODES")
    modifier.node_group = group
    row.target.parent, row.target.parent_type, row.target.parent_vertices = sheet, "VERTEX", (0, 0, 0)
    rigs.update()
    return sheet, modifier


@pytest.mark.parametrize("nested", [False, True])
def test_simulation_nodes_are_refused(evaluation, constraints_of, errors, nested):
    """Blender steps them only as it plays the user's scene: there the mesh drifts, elsewhere it is still."""
    rig = make_rig()
    row = add_row(rig, rigs.empty("Target", (1, 1, 1)))
    group = simulation_nodes()
    if nested:
        outer = bpy.data.node_groups.new("Outer", "GeometryNodeTree")
        outer.nodes.new("GeometryNodeGroup").node_tree = group
        group = outer
    _, modifier = on_points_of(row, group)
    with pytest.raises(errors.RigError, match="'Sheet', which the simulation nodes 'Nodes' move: bake them"):
        sample_once(evaluation, rig, constraints_of(rig), 3)
    modifier.show_viewport = False
    sample_once(evaluation, rig, constraints_of(rig), 3)


def test_simulation_nodes_that_are_baked_to_disk(evaluation, constraints_of, errors, tmp_path):
    rig = make_rig()
    row, scene = add_row(rig, rigs.empty("Target", (1, 1, 1))), bpy.context.scene
    sheet, modifier = on_points_of(row, simulation_nodes())
    scene.frame_start, scene.frame_end = 1, 5
    scene.frame_set(1)
    if hasattr(modifier, "bake_target"):
        modifier.bake_target = "DISK"
    (bake,) = modifier.bakes
    bake.use_custom_path, bake.directory = True, str(tmp_path)
    with pytest.raises(errors.RigError, match="simulation nodes"):
        sample_once(evaluation, rig, constraints_of(rig), 3)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))  # Blender bakes for saved files alone
    bpy.ops.object.geometry_node_bake_single(
        session_uid=sheet.session_uid, modifier_name=modifier.name, bake_id=bake.bake_id
    )
    sample_once(evaluation, rig, constraints_of(rig), 3)


# The ground ---------------------------------------------------------------------------------------


def falling_ground(floor):
    simulated(None, type("Row", (), {"target": floor}))


def cloth_ground(floor):
    floor.modifiers.new("Sheet", "CLOTH")


def cloth_below(floor):
    """The ground lies on the surface of a cloth."""
    sheet = rigs.ground(lambda x, y: 0.0, [-1.0, 1.0], name="Sheet")
    cloth_ground(sheet)
    floor.constraints.new("SHRINKWRAP").target = sheet


def instanced_cloth(floor):
    """The ground is an empty that shows a collection with the cloth."""
    shown = bpy.data.collections.new("Shown")
    cloth_ground(floor)
    shown.objects.link(floor)
    empty = rigs.empty("Instance")
    empty.instance_type, empty.instance_collection = "COLLECTION", shown
    return empty


GROUNDS = [
    (falling_ground, "ground 'Floor' is moved by a rigid body simulation by way of 'Ball': turn it into"),
    (cloth_ground, "ground 'Floor' follows points of 'Floor', which the cloth 'Sheet' moves: bake its cache"),
    (cloth_below, "of 'Sheet', which the cloth 'Sheet' moves: bake its cache"),
    (instanced_cloth, "ground 'Floor' follows points of 'Floor', which the cloth 'Sheet' moves"),
]


@pytest.mark.parametrize(("spoil", "words"), GROUNDS)
def test_a_ground_that_a_simulation_moves_is_refused_as_targets_are(ext, bake, errors, spoil, words):
    rig = make_rig()
    add_row(rig, rigs.empty("Target", (1, 2, 3)))
    floor = rigs.ground(lambda x, y: 0.0, [-1.0, 1.0], name="Floor")
    rig.ccd_rig.ground.kind, rig.ccd_rig.ground.object = "OBJECT", spoil(floor) or floor
    rigs.update()
    before = file_state()
    with pytest.raises(errors.RigError) as caught:
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert words in str(caught.value)
    read = ext.module("ccd_rig.blender.scene.ground").rig_ground
    with pytest.raises(errors.RigError) as caught:
        read(bpy.context.scene, rig, [1.0], np.zeros((1, 3)), 1.0)
    assert words in str(caught.value)
    assert file_state() == before


def test_a_ground_whose_simulation_is_off_is_taken(ext):
    rig = make_rig()
    floor = rigs.ground(lambda x, y: 0.25, [-1.0, 1.0], name="Floor")
    simulated(None, type("Row", (), {"target": floor}))
    floor.parent.rigid_body.kinematic = True
    floor.modifiers.new("Sheet", "CLOTH").show_viewport = False
    rig.ccd_rig.ground.kind, rig.ccd_rig.ground.object = "OBJECT", floor
    rigs.update()
    read = ext.module("ccd_rig.blender.scene.ground").rig_ground
    seen = read(bpy.context.scene, rig, [1.0], np.zeros((1, 3)), 1.0)
    assert seen.vertices[:, 2] == pytest.approx(0.25)
