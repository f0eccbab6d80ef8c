"""Walk Along, as Blender plays it."""

from __future__ import annotations

import dataclasses
import math
import time

import bpy
import numpy as np
import pytest
import rigs
import walks
from mathutils import Quaternion
from walking import beast, contents, curve, refused, spider, stairs, terrain, walk_along

LINE = ((0.0, 0.0, 0.0), (0.0, -4.0, 0.0))
BALLS = ("toe.L", "toe.R")
FPS = 24.0


@pytest.fixture
def walk(ext):
    return ext.module("ccd_rig.blender.walk")


def done_of(walk, rig, path=None, choice=None):
    """A walk along a curve with the rig's choices, or with others."""
    rig.ccd_rig.walk.curve = path = path or rig.ccd_rig.walk.curve
    return walk.walk_along(bpy.context.scene, rig, path, choice or walk.choice_of(rig))


def play(channels, rig, action):
    channels.assign(rig, action, channels.slot_for(action, rig))


def frames_of(rig):
    first, last = rig.animation_data.action.frame_range
    return range(int(first), int(last) + 1)


def balls(rig):
    """(F, 2, 3) of the joints at both balls."""
    return walks.heads(rig, BALLS, frames_of(rig))


def rests(points, low):
    """Runs of rows of at least 5 frames in which a point (F, 3) is lower than `low` (F,) and still."""
    speed = np.linalg.norm(np.diff(points, axis=0, append=points[-1:]), axis=1) * FPS
    down = np.concatenate(([False], (speed < 0.005) & (points[:, 2] < low), [False])).astype(int)
    edges = np.flatnonzero(np.diff(down))
    return [slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= 5]


def largest_slide(points, runs):
    """Farthest that a point goes along an axis in one of these runs of rows."""
    return max(np.ptp(points[rows], axis=0).max() for rows in runs)


def test_a_figure_walks_along_a_line_and_its_feet_rest(ext):
    rig = walks.walk(ext)
    cycle = rig.animation_data.action
    walk_along(rig, curve(*LINE))
    action = rig.animation_data.action
    assert action != cycle and cycle.use_fake_user and rig.ccd_rig.walk.cycle == cycle
    hips = walks.heads(rig, ("hips",), frames_of(rig))[:, 0]
    gone = hips[0, 1] - hips[-1, 1]
    assert 3.2 < gone < 4.05
    speeds = -np.diff(hips[:, 1]) * FPS
    assert speeds[len(speeds) // 2] == pytest.approx(walks.STRIDE * FPS / walks.PERIOD, rel=0.15)
    assert abs(speeds[0]) < 0.05 and abs(speeds[-1]) < 0.05
    for k in range(2):
        found = rests(balls(rig)[:, k], np.full(len(hips), 0.03))
        assert len(found) >= 5
        assert largest_slide(balls(rig)[:, k], found) < 5e-4
    assert "footfalls" in rig.ccd_rig.walk.report


def same_walk(plain, rig, off):
    """Walk both along a line, and require their bones at the same places, metres."""
    path, names = curve(*LINE), [bone.name for bone in plain.data.bones]
    for each in (plain, rig):
        walk_along(each, path)
    expected, seen = (walks.heads(each, names, frames_of(plain)) for each in (plain, rig))
    np.testing.assert_allclose(seen, expected, atol=off)


@pytest.mark.parametrize("connected", [True, False])
def test_legs_and_spine_that_hang_beside_each_other_walk_together(ext, connected):
    """As in many motion files: the bone that carries both is moved, connected or not."""
    rig = walks.hung_beside(walks.familiar(walks.walk(ext)), connected)
    same_walk(walks.familiar(walks.walk(ext)), rig, 0.005)  # the pivot turns about another point
    assert "carried" not in rig.ccd_rig.walk.report


@pytest.mark.parametrize("is_controlled", [False, True])
def test_hips_that_are_connected_are_moved_by_the_bone_above(ext, is_controlled):
    rig = walks.stood_on(walks.familiar(walks.walk(ext)))
    if is_controlled:
        rig.pose.bones["CC_Base_Head"].constraints.new("LIMIT_ROTATION")
    same_walk(walks.familiar(walks.walk(ext)), rig, 1e-4)
    assert rig.pose.bones["mast"].rotation_quaternion == Quaternion()


@pytest.mark.parametrize("is_controlled", [False, True])
def test_what_hangs_on_another_root_is_left_behind_and_told(ext, walk, is_controlled):
    rig = walks.hung_beside(walks.familiar(walks.walk(ext)), False)
    with walks.edited(rig) as bones:
        bones[walks.WAIST].parent = None
    if is_controlled:  # by what moves it a rig of controls may carry it, or not, as here
        rig.pose.bones[walks.WAIST].constraints.new("LIMIT_ROTATION")
    done = done_of(walk, rig, curve(*LINE))
    assert done.left == (walks.WAIST,)
    words = (
        f"Not carried along with '{done.cycle.figure_map.hips}': '{walks.WAIST}'; parent them and it to one"
    )
    for sentences in (walk.lines(done), walk.warnings(done)):
        assert f"{words} bone" in sentences
    assert walk.as_values(done)["left_behind"] == [walks.WAIST]


def test_done_again_the_same_keys_come_out(ext, channels):
    def keys():
        curves = {(each.data_path, each.array_index): each for each in channels.fcurves_of(rig)}
        return {name: [tuple(point.co) for point in each.keyframe_points] for name, each in curves.items()}

    rig, path = walks.walk(ext), curve(*LINE)
    walk_along(rig, path)
    first = keys()
    walk_along(rig, path, stride=0.7)
    assert keys() != first
    walk_along(rig, path, stride=1.0)
    again = keys()
    assert again.keys() == first.keys()
    for name, points in first.items():  # bones that the cycle has no keys for hold what they held: rounded
        np.testing.assert_allclose(again[name], points, atol=1e-6)


def test_done_again_the_walk_takes_the_place_of_the_one_before(ext, channels):
    rig, path = walks.walk(ext), curve(*LINE)
    cycle = rig.animation_data.action
    walk_along(rig, path)
    name, count = rig.animation_data.action.name, len(bpy.data.actions)
    assert "instead" not in rig.ccd_rig.walk.report
    walk_along(rig, path, stride=0.7)
    assert (rig.animation_data.action.name, len(bpy.data.actions)) == (name, count)
    assert "instead of the walk made before" in rig.ccd_rig.walk.report
    play(channels, rig, cycle)  # to look at it between
    walk_along(rig, path)
    assert (rig.animation_data.action.name, len(bpy.data.actions)) == (name, count)
    walk_along(rig, curve((0.0, 0.0, 0.0), (3.0, -3.0, 0.0), name="Other"))
    assert len(bpy.data.actions) == count + 1 and name in bpy.data.actions


def test_a_walk_that_is_kept_or_used_elsewhere_stays(ext):
    rig, path = walks.walk(ext), curve(*LINE)
    walk_along(rig, path)
    kept = rig.animation_data.action
    kept.use_fake_user = True
    walk_along(rig, path, stride=0.7)
    used = rig.animation_data.action
    assert used != kept and kept.name in bpy.data.actions
    track = rig.animation_data.nla_tracks.new()
    track.strips.new("Walk", 1, used)
    track.mute = True
    walk_along(rig, path, stride=0.8)
    assert rig.animation_data.action not in (kept, used)
    assert {kept.name, used.name} <= set(bpy.data.actions.keys())


def test_it_stands_as_in_the_first_frame_of_an_action(ext, channels):
    rig, path = walks.walk(ext), curve(*LINE)
    cycle = rig.animation_data.action
    rig.animation_data.action = None
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
    rigs.set_rotation(rig.pose.bones["thigh.L"], Quaternion((0.0, 0.0, 1.0), 0.2))
    rigs.set_rotation(rig.pose.bones["spine"], Quaternion((1.0, 0.0, 0.0), 0.3))
    for bone in rig.pose.bones:
        bone.keyframe_insert("rotation_quaternion", frame=7)
    idle = rig.animation_data.action
    rigs.update()
    stood = walks.heads(rig, ("hips", "head", "foot.L", "foot.R"), (7,))[0]
    play(channels, rig, cycle)
    walk_along(rig, path, stands="ACTION", stand_action=idle)
    first, *_, last = frames_of(rig)
    for frame in (first, last):
        seen = walks.heads(rig, ("hips", "head", "foot.L", "foot.R"), (frame,))[0]
        np.testing.assert_allclose((seen - seen[0])[:, :2], (stood - stood[0])[:, :2], atol=0.02)
    walk_along(rig, path, stands="REST")
    rest = [
        rig.data.bones[name].head_local - rig.data.bones["hips"].head_local for name in ("head", "foot.L")
    ]
    seen = walks.heads(rig, ("hips", "head", "foot.L"), (first,))[0]
    np.testing.assert_allclose(seen[1:] - seen[0], np.array(rest), atol=0.02)
    refused("none is chosen", rig, path, stands="ACTION", stand_action=None)


def test_steps_fit_steps_unless_that_is_off(ext):
    rig = walks.walk(ext)
    ground = stairs(0.15, 0.25, 6, -0.9)
    walk_along(rig, curve(*LINE), ground=ground)
    assert "On stairs and in bends steps are" in rig.ccd_rig.walk.report
    fitted = len(frames_of(rig))
    walk_along(rig, curve(*LINE), ground=ground, fit_steps=False)
    assert "On stairs" not in rig.ccd_rig.walk.report
    assert len(frames_of(rig)) < fitted


def test_it_walks_over_hills_of_a_mesh_with_modifiers(ext):
    rig = walks.walk(ext)
    ground = terrain(lambda x, y: 0.15 * math.sin(1.5 * y))
    ground.modifiers.new("Up", "DISPLACE").strength = 0.2
    ground.modifiers["Up"].direction = "Z"
    ground.modifiers["Up"].mid_level = 0.0
    walk_along(rig, curve(*LINE), ground=ground)
    points = balls(rig)
    below = 0.2 + 0.15 * np.sin(1.5 * points[..., 1])
    for k in range(2):
        found = rests(points[:, k], below[:, k] + 0.04)
        assert len(found) >= 5
        heights = np.concatenate([(points[rows, k, 2] - below[rows, k]) for rows in found])
        # The ball's joint is 2 cm above the ground; facets are up to 5 mm off the wave.
        assert heights.min() > 0.013 and heights.max() < 0.029
        assert largest_slide(points[:, k], found) < 5e-4


def test_feet_go_up_with_a_lift(ext):
    rig = walks.walk(ext)
    ground = rigs.keyed(terrain(lambda x, y: 0.0, count=4), {1: (0.0, 0.0, 0.0), 150: (0.0, 0.0, 0.6)})
    walk_along(rig, curve(*LINE), ground=ground)
    frames = frames_of(rig)
    heights = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        heights.append(ground.matrix_world.translation.z)
    above = balls(rig)[..., 2] - np.array(heights)[:, None]
    assert above.min() > 0.019 and np.sort(above, axis=0)[len(above) // 3].max() < 0.021


def is_raised(rig):
    """Planted balls are on a ground that is 0.2 m high all over."""
    points = balls(rig)[..., 2]
    assert points.min() == pytest.approx(0.22, abs=1e-3)
    assert (np.abs(np.sort(points, axis=0)[: len(points) // 3] - 0.22) < 1e-3).all()


def geometry_nodes(name):
    """A node group, and where its geometry comes in and goes out."""
    group = bpy.data.node_groups.new(name, "GeometryNodeTree")
    for side in ("INPUT", "OUTPUT"):
        group.interface.new_socket("Geometry", in_out=side, socket_type="NodeSocketGeometry")
    return group, group.nodes.new("NodeGroupInput"), group.nodes.new("NodeGroupOutput")


def on_points(tile):
    """A node group that shows an object at each vertex."""
    group, source, end = geometry_nodes("Tiles")
    join = group.links.new
    at, shown = (group.nodes.new(f"GeometryNode{kind}") for kind in ("InstanceOnPoints", "ObjectInfo"))
    shown.inputs["Object"].default_value = tile
    join(source.outputs[0], at.inputs["Points"])
    join(shown.outputs["Geometry"], at.inputs["Instance"])
    join(at.outputs[0], end.inputs[0])
    return group


def instance_of(collection, height=0.0):
    """An empty that shows a collection."""
    shown = bpy.data.objects.new("Shown", None)
    shown.instance_type, shown.instance_collection, shown.location.z = "COLLECTION", collection, height
    return shown


@pytest.mark.parametrize("kind", ["collection", "nested", "points"])
def test_instances_are_ground(ext, kind):
    """Of a collection that an empty shows, of one that shows another, and of modifiers."""
    rig, tile = walks.walk(ext), terrain(lambda x, y: 0.0, "Tile", -1.0, 1.0, 3)
    bpy.context.scene.collection.objects.unlink(tile)
    places = [(2.0 * i, 2.0 * j, 0.2) for i in range(-2, 3) for j in range(-4, 3)]
    if kind == "points":
        data = bpy.data.meshes.new("Points")
        data.from_pydata(places, [], [])
        ground = rigs.link(data, "Points")
        ground.modifiers.new("Tiles", "NODES").node_group = on_points(tile)
    else:
        tiles, floors = bpy.data.collections.new("Tiles"), bpy.data.collections.new("Floors")
        for place in places:
            each = tile.copy()
            each.location.xy = place[:2]
            tiles.objects.link(each)
        floors.objects.link(instance_of(tiles))
        ground = instance_of(floors if kind == "nested" else tiles, 0.2)
        bpy.context.scene.collection.objects.link(ground)
    walk_along(rig, curve(*LINE), ground=ground)
    is_raised(rig)


def test_a_collection_of_instances_is_ground(ext):
    rig, floor = walks.walk(ext), terrain(lambda x, y: 0.0, "Floor")
    inside, grounds = bpy.data.collections.new("Inside"), bpy.data.collections.new("Grounds")
    bpy.context.scene.collection.objects.unlink(floor)
    inside.objects.link(floor)
    shown = instance_of(inside, 0.2)
    grounds.objects.link(shown)
    bpy.context.scene.collection.children.link(grounds)
    rig.ccd_rig.ground.kind, rig.ccd_rig.ground.collection = "COLLECTION", grounds
    walk_along(rig, curve(*LINE))
    is_raised(rig)
    shown.hide_viewport = True
    refused("'Shown' is hidden", rig, curve(*LINE))
    shown.hide_viewport = False
    inside.objects.unlink(floor)
    refused("'Shown' has no faces", rig, curve(*LINE))


def test_a_moving_ground_of_many_faces_is_read_by_the_frame_and_may_be_cancelled(ext, walk):
    """It had a search tree for every frame, and did not end in five minutes."""
    rig, path = walks.walk(ext), curve(*LINE)
    ground = terrain(lambda x, y: 0.02 * math.sin(3.0 * y), count=201)
    rigs.keyed(ground, {1: (0.0, 0.0, 0.0), 150: (0.0, 0.0, 0.3)})
    choice, before = walk.WalkChoice(meshes=(ground,)), contents(rig)
    steps = walk.walk_steps(bpy.context.scene, rig, path, choice)
    first = next(steps)
    read = [next(steps)]
    while read[-1].done < 20:
        read.append(next(steps))
    assert {item.verb for item in read} == {"evaluated"} and first.done == 0 and read[-1].total > 100
    assert len(read) > 20
    steps.close()
    assert contents(rig) == before
    start = time.process_time()
    done = done_of(walk, rig, path, choice)
    assert time.process_time() - start < 0.1 * len(done.frames)
    assert done.measures.penetration < 2e-3 and done.measures.floating < 2e-3


def test_closed_in_any_part_nothing_is_left(ext, walk):
    rig, path, ground = walks.walk(ext), curve(*LINE), terrain(lambda x, y: 0.0, count=5)
    choice, before = walk.WalkChoice(cycle=rig.animation_data.action, meshes=(ground,)), contents(rig)
    for verb in ("evaluated", "solved", "checked"):  # how often each is told depends on the time
        steps = walk.walk_steps(bpy.context.scene, rig, path, choice)
        while next(steps).verb != verb:
            pass
        steps.close()
        assert contents(rig) == before


def test_a_closed_curve_is_gone_round(ext):
    rig = walks.walk(ext)
    ring = [(2.0 - 2.0 * math.cos(a), -2.0 * math.sin(a), 0.0) for a in np.linspace(0, 2 * math.pi, 65)[:-1]]
    walk_along(rig, curve(*ring, closed=True))
    hips = walks.heads(rig, ("hips",), frames_of(rig))[:, 0]
    assert np.abs(np.linalg.norm(hips[:, :2] - (2.0, 0.0), axis=1) - 2.0).max() < 0.08
    assert np.linalg.norm(hips[-1, :2] - hips[0, :2]) < 0.8


@pytest.mark.parametrize("moved", [None, 0, 20])
def test_as_the_curves_evaluation_time_is_keyed(ext, moved):
    """In an action, or in a strip of it that is moved by some frames."""
    rig, path = walks.walk(ext), curve(*LINE)
    for frame, at in ((11, 0.0), (150, 60.0), (190, 60.0)):
        path.data.eval_time = at
        path.data.keyframe_insert("eval_time", frame=frame - (moved or 0))
    if moved is not None:
        data = path.data.animation_data
        strip = data.nla_tracks.new().strips.new("Time", 11, data.action)
        data.action = None
        assert (strip.frame_start, strip.frame_end) == (11, 190)
    walk_along(rig, path, speed="CURVE")
    assert frames_of(rig) == range(11, 191)
    hips = walks.heads(rig, ("hips",), (11, 150, 170, 190))[:, 0, 1]
    assert hips[0] - hips[1] == pytest.approx(0.6 * 4.0, abs=0.05)
    assert np.ptp(hips[1:]) < 1e-4


def test_eight_legs(ext):
    rig = spider()
    walk_along(rig, curve((0.0, 0.0, 0.0), (0.0, -3.0, 0.0)))
    assert "8 legs" in rig.ccd_rig.walk.report
    tips = [f"leg{leg}_3.{side}" for leg in range(4) for side in "LR"]
    frames = frames_of(rig)
    points = np.empty((len(frames), 8, 3))
    for f, frame in enumerate(frames):
        bpy.context.scene.frame_set(frame)
        points[f] = [rig.matrix_world @ rig.pose.bones[name].tail for name in tips]
    assert points[..., 2].min() > -2e-3
    for k in range(8):
        found = rests(points[:, k], np.full(len(points), 0.01))
        assert len(found) >= 3
        assert largest_slide(points[:, k], found) < 5e-4


def test_a_body_whose_feet_are_far_apart_lies_across_a_slope(ext):
    rig = spider()
    slope = terrain(lambda x, y: 0.3 * x)
    walk_along(rig, curve((0.0, 0.0, 0.0), (0.0, -3.0, 0.0)), ground=slope)
    body = rig.pose.bones["body"]
    rest = body.bone.matrix_local.to_3x3().inverted()
    for frame in frames_of(rig)[10:-10:5]:
        bpy.context.scene.frame_set(frame)
        up = (body.matrix.to_3x3() @ rest).col[2]
        assert math.atan2(-up.x, up.z) == pytest.approx(math.atan(0.3), abs=0.02)


def test_a_long_body_sinks_at_the_end_whose_legs_are_too_short(ext):
    """In a valley front legs come down where it falls while hind ones are on its way up, and the reverse."""
    rig = beast()
    legs = [(f"thigh.{side}", f"foot.{side}") for side in "LR"]

    def shortest(frames):
        lengths = []
        for frame in frames:
            bpy.context.scene.frame_set(frame)
            heads = [[rig.pose.bones[name].head.copy() for name in leg] for leg in legs]
            lengths += [(a - b).length for a, b in heads]
        return min(lengths)

    alone = shortest(range(1, 26))
    ground = terrain(lambda x, y: 0.2 * math.sin(2.6 * y), count=241)
    walk_along(rig, curve((0.0, 0.0, 0.0), (0.0, -6.0, 0.0)), ground=ground)
    least = shortest(frames_of(rig))
    assert least > 0.86 * alone


def test_a_vertex_that_is_no_number_is_told_by_its_own_index(ext):
    rig, ground = spider(), terrain(lambda x, y: 0.0)
    ground.data.vertices[1500].co.z = math.nan
    refused("'Terrain': vertex 1500 of", rig, curve(*LINE), ground=ground)


def test_a_long_body_low_above_feet_that_are_far_aside_walks(ext):
    """It was taken for one that lies: its feet are farther from where its bone starts than that is high."""
    rig = spider()
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones["body"].head.y += 4.0
    bpy.ops.object.mode_set(mode="OBJECT")
    walk_along(rig, curve(*LINE))


def test_a_foot_that_slides_in_the_cycle_is_planted(walk):
    """It goes back faster than the ground of the others: drawn walks have such feet."""
    done = done_of(walk, spider(wide="leg1.L", wider=3.0), curve((0.0, 0.0, 0.0), (0.0, -3.0, 0.0)))
    assert all(len(foot.stances) == 1 for foot in done.cycle.feet.values())
    assert done.measures.slide < 5e-4
    assert not any("Never down" in each for each in walk.warnings(done))


def test_long_legs_that_take_small_steps_leave_the_ground(walk):
    """Feet were never faster than a leg's length in 3 seconds, and so "never leaves the ground"."""
    rig = spider(swing=0.06, most=0.08)
    done = done_of(walk, rig, curve((0.0, 0.0, 0.0), (0.0, -2.0, 0.0)))
    assert all(len(foot.stances) == 1 for foot in done.cycle.feet.values())
    assert done.measures.slide < 5e-4


def test_bones_that_turn_much_faster_than_in_the_cycle_are_told(walk):
    """With how long feet are down in it, which is 0.6 of the time, and what helps."""
    done = done_of(walk, spider(), curve((0.0, 0.0, 0.0), (0.0, -3.0, 0.0)))
    assert not walk.warnings(done)
    cycle_turn, cycle_jerk = done.measures.cycle_turn, done.measures.cycle_jerk
    for changed, words in (
        ({"turn": 4.11 * cycle_turn}, "Bones turn 4.1 times as fast as in the cycle"),
        ({"jerk": 2.31 * cycle_jerk}, "feet jerk 2.3 times as much"),
    ):
        measures = dataclasses.replace(done.measures, **changed)
        (told,) = walk.warnings(dataclasses.replace(done, measures=measures))
        assert words in told and "lower Stride, choose a slower cycle" in told
        assert float(told.split("down ")[1].split(" %")[0]) == pytest.approx(60.0, abs=6.0)


def test_a_foot_that_is_never_down_is_told(walk):
    rig = spider(wide="leg1.L", wider=3.0, raised=0.9)
    done = done_of(walk, rig, curve((0.0, 0.0, 0.0), (0.0, -3.0, 0.0)))
    never = [name for name, foot in done.cycle.feet.items() if not foot.stances]
    assert never == ["left leg 2"]
    assert "Never down in the cycle, and so never planted: 'left leg 2'" in walk.warnings(done)


def test_a_metarig_of_rigify_on_a_moving_turned_and_scaled_object(ext):
    source = walks.walk(ext, cycles=2, in_place=False)
    rig = rigs.metarig("basic_human")
    rig.ccd_rig.retarget.source = source
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.retarget() == {"FINISHED"}
    rig.location, rig.scale = (3.0, 1.0, 0.0), (0.5, 0.5, 0.5)
    rig.rotation_euler.z = 1.0
    rigs.update()
    walk_along(rig, curve((1.0, 1.0, 0.0), (1.0, -2.0, 0.0)))
    points = balls(rig)
    assert np.abs(points[:, :, 0] - 1.0).max() < 0.2
    assert np.ptp(points[:, 0, 1]) > 2.0
    for k in range(2):
        low = float(points[:, k, 2].min())
        found = rests(points[:, k], np.full(len(points), low + 0.002))
        assert largest_slide(points[:, k], found) < 5e-4


def moving_object(channels, rig, speed):
    """The armature object moved ahead by its own keys, in the action that plays."""
    for frame in (1, walks.PERIOD + 1):
        rig.location.y = -speed * (frame - 1)
        rig.keyframe_insert("location", frame=frame)
    rigs.interpolate((c for c in channels.fcurves_of(rig) if c.data_path == "location"), "LINEAR")


def test_root_motion_of_the_object_is_that_of_the_hips(ext, channels):
    """The same cycle through the world, moved by its object or by its hips, walks the same."""
    found = []
    for by_object in (False, True):
        rig = walks.walk(ext, in_place=by_object)
        if by_object:
            moving_object(channels, rig, walks.STRIDE / walks.PERIOD)
        walk_along(rig, curve(*LINE))
        found.append(walks.heads(rig, ("hips", *BALLS), frames_of(rig)))
    np.testing.assert_allclose(found[1], found[0], atol=2e-3)


@pytest.mark.parametrize("shown", [1, 20])
def test_where_an_object_with_keys_is_shown_does_not_matter(ext, shown):
    rig = walks.walk(ext)
    bpy.context.scene.frame_set(1)
    walk_along(rig, curve(*LINE))
    expected = balls(rig)
    cycle = rig.ccd_rig.walk.cycle
    rig.animation_data.action = None  # another action shows it elsewhere
    for frame, place in ((1, (0.0, 0.0, 0.0)), (20, (1.0, 2.0, 0.5))):
        rig.location = place
        rig.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(shown)
    walk_along(rig, bpy.data.objects["Path"], cycle=cycle)
    np.testing.assert_allclose(balls(rig), expected, atol=1e-3)


# Refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (((0.0, 0.0, 0.0), (0.0, 0.0, 3.0)), "'Path': the curve has no length"),
        (((0.0, 0.0, 0.0), (0.0, -0.3, 0.0)), "too short|shorter"),
        (((0.0, 0.0, 0.0), (0.0, float("nan"), 0.0)), "not a number"),
    ],
)
def test_bad_curves_are_refused(ext, points, words):
    refused(words, walks.walk(ext), curve(*points))


def test_bad_grounds_are_refused(ext):
    rig, path = walks.walk(ext), curve(*LINE)
    refused("nowhere near the curve", rig, path, ground=terrain(lambda x, y: 0.0, "Far", 50.0, 60.0, 3))
    holed = terrain(lambda x, y: 0.0, "Holed", count=25)
    mesh = holed.data
    faces = [list(f.vertices) for f in mesh.polygons if abs(f.center.y + 2.0) > 0.6]
    vertices = [tuple(v.co) for v in mesh.vertices]
    mesh.clear_geometry()
    mesh.from_pydata(vertices, [], faces)
    refused("no ground at", rig, path, ground=holed)
    refused("rises by", rig, path, ground=terrain(lambda x, y: 4.0 * (y < -2.0), "Wall", count=121))
    spoilt = terrain(lambda x, y: 0.0, "Spoilt", count=5)
    spoilt.data.vertices[7].co.z = float("nan")
    refused("not a number", rig, path, ground=spoilt)
    empty = rigs.link(bpy.data.meshes.new("Empty"), "Empty")
    refused("has no faces", rig, path, ground=empty)
    rig.ccd_rig.ground.object = None
    refused("none is chosen", rig, path)


def test_ground_whose_faces_change_is_named(ext):
    rig, ground = walks.walk(ext), terrain(lambda x, y: 0.0, count=21)
    modifier = ground.modifiers.new("Fewer", "DECIMATE")
    for frame, ratio in ((1, 1.0), (60, 0.3)):
        modifier.ratio = ratio
        modifier.keyframe_insert("ratio", frame=frame)
    refused("'Terrain' has other faces at frame 2", rig, curve(*LINE), ground=ground)


def test_what_moves_the_figure_besides_is_refused(ext):
    """By name: the walk would be told of feet that something else moves."""
    path = curve(*LINE)
    rig = walks.walk(ext)
    ik = rig.pose.bones["shin.L"].constraints.new("IK")
    ik.target, ik.chain_count = rigs.empty("Goal", (0.1, 0.0, 0.1)), 2
    refused("Bone 'shin.L': Blender's constraint 'IK' turns bone", rig, path)
    ik.mute = True
    carrier = rigs.keyed(rigs.empty("Carrier"), {1: (0.0, 0.0, 0.0), 40: (1.0, 0.0, 0.0)})
    rig.parent = carrier
    rigs.update()
    refused("moves as an object from frame 1 to 25, by its parent", rig, path)
    rig.parent = None
    rig.rotation_euler.x = 0.5 * math.pi
    rigs.update()
    refused("does not stand at rest", rig, path)


def test_a_rest_that_is_no_pose_is_told_from_a_figure_that_lies(ext):
    """Legs that lead up at rest, as in many motion files: no turn of the object puts feet below the hips."""
    rig = walks.legs_up(walks.familiar(walks.walk(ext)))
    words = (
        "rest pose of 'Walker' is no pose of a body: 'CC_Base_L_Foot' is above the hips; retarget its motion"
    )
    refused(words, rig, curve(*LINE))


def on_bone(thing, rig):
    thing.parent, thing.parent_type, thing.parent_bone = rig, "BONE", "hips"


def constrained(thing, rig):
    copy = thing.constraints.new("COPY_LOCATION")
    copy.target, copy.subtarget = rig, "toe.L"


def hooked(thing, rig):
    hook = thing.modifiers.new("Hook", "HOOK")
    hook.object, hook.subtarget = rig, "hips"


@pytest.mark.parametrize(
    ("hang", "words"),
    [
        (on_bone, "is parented to bone 'hips'"),
        (constrained, "follows by its constraint 'Copy Location' bone 'toe.L'"),
        (hooked, "deformed by bone 'hips'"),
    ],
)
@pytest.mark.parametrize("what", ["curve", "ground"])
def test_what_hangs_on_the_bones_that_walk_is_refused(ext, hang, words, what):
    """It would move with the walk that is led by it. On the object of the rig it may hang."""
    rig, path, ground = walks.walk(ext), curve(*LINE), terrain(lambda x, y: 0.0, count=5)
    thing = path if what == "curve" else ground
    hang(thing, rig)
    rigs.update()
    refused(f"{what} '{thing.name}' .*{words} of 'Walker', which the walk moves", rig, path, ground=ground)
    thing.parent_type, thing.parent_bone = "OBJECT", ""
    thing.constraints.clear()
    thing.modifiers.clear()
    rigs.update()
    walk_along(rig, path, ground=ground)


@pytest.mark.parametrize("bone", ["thigh.L", "shin.R"])
def test_a_locked_bone_of_a_leg_is_named(ext, bone):
    rig = walks.walk(ext)
    rig.pose.bones[bone].lock_rotation = (True, True, True)
    rig.pose.bones[bone].lock_rotation_w = True
    rigs.update()
    side = "left" if bone.endswith("L") else "right"
    refused(f"bone '{bone}' of the {side} leg is locked: unlock", rig, curve(*LINE))


def test_curves_of_no_spline_and_of_several_are_refused(ext):
    rig, path = walks.walk(ext), curve(*LINE)
    path.data.splines.new("POLY")
    refused("has 2 splines: leave it one", rig, path)
    path.data.splines.clear()
    refused("has no spline", rig, path)


def test_a_cycle_of_one_frame_is_told(ext):
    rig, path = walks.walk(ext), curve(*LINE)
    refused("the cycle has one frame, 5", rig, path, use_range=True, cycle_start=5, cycle_end=5)
    for end, count in ((6, 2), (7, 3)):
        words = f"frames 5 to {end} of the cycle are {count}, and a walk needs 4: choose more"
        refused(words, rig, path, cycle_end=end)


def test_a_curve_is_walked_as_its_object_and_hooks_have_it(ext):
    """Scaled, mirrored, sheared by its parent, with points in one place, and bent by a hook."""
    rig = walks.walk(ext)
    path = curve((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, -1.0, 0.0), (1.0, -1.5, 0.0))
    path.parent = rigs.empty("Parent")
    path.parent.scale, path.rotation_euler.z, path.scale = (1.5, 3.0, 1.0), 0.4, (-1.0, 1.0, 2.0)
    moved = rigs.empty("Hooked", (0.0, 0.0, 0.0))
    hook = path.modifiers.new("Hook", "HOOK")
    hook.object = moved
    hook.vertex_indices_set([4])
    rigs.update()
    hook.matrix_inverse = moved.matrix_world.inverted() @ path.matrix_world
    moved.location = (0.3, -1.0, 0.0)
    rigs.update()
    seen = path.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = seen.to_mesh()
    end = seen.matrix_world @ mesh.vertices[4].co
    seen.to_mesh_clear()
    unhooked = path.matrix_world @ path.data.splines[0].points[4].co.to_3d()
    assert (end - unhooked).length > 0.5
    walk_along(rig, path, stop=False)
    last = balls(rig)[-1].mean(axis=0)[:2]
    assert np.linalg.norm(last - np.array(end[:2])) < 0.7
    assert np.linalg.norm(last - np.array(unhooked[:2])) > np.linalg.norm(last - np.array(end[:2]))


@pytest.mark.parametrize(
    ("points", "choices", "words"),
    [
        ((*LINE, (0.0, -1e20, 0.0)), {}, "not a number, or farther"),
        (LINE, {"frame_start": 1_048_570}, "Blender has frames up to"),
        (((0.0, 0.0, 0.0), (1e7, 0.0, 0.0)), {}, "at most"),
    ],
)
def test_ways_without_end_are_refused(ext, points, choices, words):
    refused(words, walks.walk(ext), curve(*points), **choices)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({1: 0.0, 40: 60.0, 80: 30.0}, "'Path' goes back after frame 4[0-2]: let it only grow"),
        ({1: 0.0, 80: 130.0}, "'Path' is 0 to 130, and its path 0 to 100: key it inside"),
        ({1: -20.0, 80: 80.0}, "'Path' is -20 to 80, and its path 0 to 100: key it inside"),
    ],
    ids=["back", "beyond", "before"],
)
def test_an_evaluation_time_outside_the_path_is_refused(ext, keys, words):
    path = curve(*LINE)
    for frame, value in keys.items():
        path.data.eval_time = value
        path.data.keyframe_insert("eval_time", frame=frame)
    refused(words, walks.walk(ext), path, speed="CURVE")


def test_an_end_before_the_first_step_is_named(ext):
    refused(
        "frames 1 to 20 are too few for a step", walks.walk(ext), curve(*LINE), use_end=True, frame_end=20
    )


def test_what_is_no_cycle_is_refused(ext):
    rig, path = walks.walk(ext), curve(*LINE)
    refused("too few|does not repeat|four frames", rig, path, use_range=True, cycle_start=1, cycle_end=9)
    refused("no keys of its Evaluation Time", rig, path, use_range=False, speed="CURVE")
    rig.animation_data_clear()
    refused("has no action", rig, path, speed="CYCLE")
    chain = rigs.chain(3, name="Chain")
    refused("no leg", chain, path)


def test_without_a_curve_the_button_is_grey(ext):
    rig = walks.walk(ext)
    rigs.activate(rig)
    assert not bpy.ops.ccd_rig.walk_along.poll()
    rig.ccd_rig.walk.curve = curve(*LINE)
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.walk_along.poll()


def influences(channels, rig, last):
    """(F, feet) which are planted at frames 1 to `last`, as found anew."""
    assert bpy.ops.ccd_rig.contacts_find(frame_start=1, frame_end=last) == {"FINISHED"}
    paths = [f"{row.path_from_id()}.influence" for row in rig.ccd_rig.constraints]
    curves = {each.data_path: each for each in channels.fcurves_of(rig)}
    return np.array([[curves[path].evaluate(f) for path in paths] for f in range(1, last + 1)]) > 0.5


@pytest.mark.parametrize("name", ["hills", "stairs"])
def test_contacts_on_hills_and_stairs_are_found_above_the_ground(ext, channels, name):
    """Of a walk over them: a ball is down where it is still, whether or not the other foot is planted too."""
    heights = {"hills": lambda y: 0.3 * math.sin(1.5 * y), "stairs": lambda y: 0.15 * math.floor(-y / 0.35)}
    rig = walks.walk(ext)
    ground = terrain(lambda x, y: heights[name](y), low=-7.0, high=3.0, count=401)
    walk_along(rig, curve(*LINE), ground=ground, fit_steps=False)
    last = frames_of(rig)[-1]
    slow = np.linalg.norm(np.diff(balls(rig), axis=0), axis=2) * FPS < 0.08
    still = np.pad(slow[1:] & slow[:-1], ((1, 1), (0, 0)), mode="edge")
    walks.select(ext, rig, *BALLS)
    assert bpy.ops.ccd_rig.feet_plant() == {"FINISHED"}
    both = influences(channels, rig, last)
    steps = int(both[0].sum() + (np.diff(both.astype(int), axis=0) == 1).sum())
    # Up to two frames about touch-down and lift-off are slow and low.
    assert both[still].all() and (both & ~still).sum() <= 4 * steps
    if name == "hills":  # on stairs each tread is a level of its own, with or without the ground
        rig.ccd_rig.ground.kind = "REST"
        assert influences(channels, rig, last)[still].mean() < 0.85, "whole steps are taken for lifted feet"
        rig.ccd_rig.ground.kind = "OBJECT"
    rig.ccd_rig.constraints.remove(1)
    assert influences(channels, rig, last)[still[:, 0], 0].all()


def test_contacts_far_from_the_ground_are_refused(ext, channels):
    rig = walks.walk(ext)
    last = frames_of(rig)[-1]
    rig.ccd_rig.ground.kind, rig.ccd_rig.ground.object = "OBJECT", terrain(lambda x, y: 0.0)
    walks.select(ext, rig, *BALLS)
    assert bpy.ops.ccd_rig.feet_plant() == {"FINISHED"}
    before = influences(channels, rig, last)
    rig.ccd_rig.ground.kind = "HEIGHT"
    assert (influences(channels, rig, last) == before).all()
    rig.ccd_rig.ground.kind = "REST"
    assert (influences(channels, rig, last) == before).all()
    rig.ccd_rig.ground.kind, rig.ccd_rig.ground.object.location.x = "OBJECT", 40.0
    with pytest.raises(RuntimeError, match="no ground is below its feet in frames 1 to"):
        influences(channels, rig, last)


def test_a_walk_of_some_cycles_ends_at_the_last_key_at_most(ext, channels):
    rig, path = walks.walk(ext), curve((0.0, 0.0, 0.0), (0.0, -10.0, 0.0))
    walk_along(rig, path, cycles=3.0, use_end=True, frame_end=400)
    whole = frames_of(rig)[-1]
    assert 3 * walks.PERIOD < whole < 4 * walks.PERIOD  # beginning and end are eased
    play(channels, rig, rig.ccd_rig.walk.cycle)
    walk_along(rig, path, cycles=3.0, use_end=True, frame_end=60)
    assert 60 - walks.PERIOD < frames_of(rig)[-1] <= 60  # it ends on both feet


def test_the_report_is_in_metres_by_the_scale_of_units(ext, walk):
    """The same scene in centimetres: what was 2 m is 2 cm."""
    rig = walks.walk(ext)
    rig.ccd_rig.walk.cycle = rig.animation_data.action
    rig.ccd_rig.walk.curve = curve((0.0, 0.0, 0.0), (0.0, -2.0, 0.0))
    tables = []
    for scale in (1.0, 0.01):
        bpy.context.scene.unit_settings.scale_length = scale
        done = done_of(walk, rig)
        tables.append(walk.as_values(done))
        hips = walks.heads(rig, ("hips",), frames_of(rig))[:, 0]
        assert done.length == pytest.approx(scale * (hips[0, 1] - hips[-1, 1]), rel=0.05)
        assert f"{scale * walks.STRIDE * FPS / walks.PERIOD:.2f} m/s" in walk.lines(done)[1]
    for name in ("length", "speed", "slide", "penetration", "floating", "missed", "moved"):
        assert tables[1][name] == pytest.approx(0.01 * tables[0][name], rel=1e-3, abs=1e-9)
    for name in ("footfalls", "shortest", "turn", "stretched"):
        assert tables[1][name] == pytest.approx(tables[0][name])


@pytest.mark.parametrize(
    ("points", "choices", "words"),
    [
        (((0.0, 0.0, 0.0), (0.0, -0.3, 0.0)), {}, r"the curve is 0\.003 m long"),
        (LINE, {"offset": 5.0}, r"Begin At is 0\.05 m, beyond the end of curve 'Path' of 0\.04 m"),
        (LINE, {"cycles": 9.0}, r"9 cycles go 0\.063\d* m, the curve 0\.04 m"),
    ],
    ids=["curve", "offset", "cycles"],
)
def test_refusals_are_in_metres_by_the_scale_of_units(ext, points, choices, words):
    """A scene in centimetres."""
    bpy.context.scene.unit_settings.scale_length = 0.01
    refused(words, walks.walk(ext), curve(*points), **choices)


@pytest.mark.parametrize("slot", ["none", "empty"])
def test_a_cycle_that_plays_without_its_slot_is_walked(ext, channels, slot):
    """Since 4.4: assigned by the action alone, or in a slot of other things."""
    rig = walks.walk(ext)
    animation, action = rig.animation_data, rig.animation_data.action
    if channels.has_slots():
        animation.action_slot = action.slots.new("OBJECT", "Other") if slot == "empty" else None
    walk_along(rig, curve(*LINE), cycle=action)
    hips = walks.heads(rig, ("hips",), frames_of(rig))[:, 0]
    assert 3.2 < hips[0, 1] - hips[-1, 1] < 4.05


def test_a_constraint_that_turns_a_walking_bone_is_named(ext, walk):
    rig = walks.walk(ext)
    limit = rig.pose.bones["shin.L"].constraints.new("LIMIT_ROTATION")
    rig.ccd_rig.walk.curve = curve(*LINE)
    for most, names in ((3.0, []), (0.3, ["shin.L"])):
        limit.use_limit_x, limit.min_x, limit.max_x, limit.owner_space = True, -3.0, most, "LOCAL"
        rig.ccd_rig.walk.cycle = rig.ccd_rig.walk.cycle or rig.animation_data.action
        done = done_of(walk, rig)
        assert [each.bone for each in done.turned] == names
    assert "'shin.L': Blender's constraint 'Limit Rotation' turns it" in walk.warnings(done)[0]


def test_strips_before_a_walk_are_not_hidden(ext):
    """A walk of the action of a strip goes on with its track muted."""
    rig = walks.walk(ext)
    animation, cycle = rig.animation_data, rig.animation_data.action
    track = animation.nla_tracks.new()
    track.strips.new("walk", 1, cycle)
    animation.action, path = None, curve(*LINE)
    words = "would hide its NLA strips at frames before or after it: mute their tracks, and choose actions"
    refused(words, rig, path, frame_start=100)
    track.mute = True
    walk_along(rig, path, cycle=cycle)
    assert frames_of(rig)[0] == 100


def test_a_refused_walk_of_a_chosen_cycle_leaves_no_animation_data(ext):
    rig = walks.walk(ext)
    cycle = rig.animation_data.action
    cycle.use_fake_user = True
    rig.animation_data_clear()
    refused("9 cycles go", rig, curve(*LINE), cycle=cycle, cycles=9.0)
    assert rig.animation_data is None


def test_a_cycle_of_strips_is_walked_again(ext, channels):
    """With the playing walk as the cycle, a second run would walk the first."""
    rig = walks.walk(ext)
    animation = rig.animation_data
    animation.nla_tracks.new().strips.new("walk", 1, animation.action)
    animation.action = None
    path = curve(*LINE)
    walk_along(rig, path)
    once = rig.ccd_rig.walk.report.splitlines()
    assert rig.ccd_rig.walk.cycle is None
    walk_along(rig, path)
    again = rig.ccd_rig.walk.report.splitlines()
    assert again[1:] == once[1:] and again[0] == f"{once[0]}, instead of the walk made before"


def test_another_action_is_not_played_while_a_strip_is_tweaked(ext):
    rig = walks.walk(ext)
    animation, action = rig.animation_data, rig.animation_data.action
    rigs.tweak(rig)
    refused("an NLA strip is being tweaked: leave tweak mode", rig, curve(*LINE), cycle=action.copy())
    assert animation.use_tweak_mode


def test_the_walk_begins_on_the_floor_below_the_curve(ext):
    """A ramp leads to an upper floor, above a lower one that is everywhere."""
    rig, path = walks.walk(ext), curve((0, 0, 0), (0, -3, 0), (0, -9, 3), (0, -15, 3))
    mesh = bpy.data.meshes.new("Floors")
    lower, ramp = [(-3, 3, 0), (3, 3, 0), (3, -20, 0), (-3, -20, 0)], [(-1, -3, 0), (1, -3, 0)]
    upper = [(1, -9, 3), (-1, -9, 3), (-1, -20, 3), (1, -20, 3)]
    mesh.from_pydata([*lower, *ramp, *upper], [], [(0, 1, 2, 3), (4, 5, 6, 7), (7, 6, 9, 8)])
    walk_along(rig, path, ground=rigs.link(mesh, "Floors"), offset=10.5)
    assert balls(rig)[:, :, 2].min() == pytest.approx(3.0, abs=0.02)


def test_feet_of_an_even_cycle_are_not_said_to_be_in_the_air(ext, walk):
    """One foot is put down a frame after the other is let go, and easing shows what is between."""
    done = done_of(walk, walks.walk(ext), curve(*LINE))
    assert not walk.warnings(done)
    assert done.measures.airborne == done.measures.cycle_airborne


@pytest.mark.parametrize("stands", ["CYCLE", "ACTION"])
def test_an_object_that_turns_between_cycle_and_walk_walks_the_same(ext, walk, channels, stands):
    """Keys of the object turn it after the cycle; the walk begins where it rests again."""
    rig, feet = walks.walk(ext), []
    cycle, group = rig.animation_data.action, rig.ccd_rig.walk
    group.curve, group.cycle, group.frame_start = curve(*LINE), cycle, 100
    group.use_range, group.cycle_start, group.cycle_end = True, 1, 25
    group.stands, group.stand_action = stands, cycle
    for turn in (0.0, 1.2):
        play(channels, rig, cycle)
        for frame, angle in ((1, 0.0), (25, 0.0), (60, turn), (400, turn)):
            rig.rotation_euler.z = angle
            rig.keyframe_insert("rotation_euler", frame=frame)
        done = done_of(walk, rig)
        assert not walk.warnings(done)
        hips, *seen = np.moveaxis(walks.heads(rig, ("hips", *BALLS), frames_of(rig)), 1, 0)
        feet.append([np.ptp(foot[:, 0] - hips[:, 0]) for foot in seen])  # across the way
        feet[-1] += [done.cycle.feet[leg.limb.name].before for leg in done.cycle.legs]
    assert feet[1] == pytest.approx(feet[0], abs=2e-3)


FRAMES = tuple(map(float, range(1, 26)))
"""Of ground whose motion repeats: it is the same in the first, the middle and the last."""


def heights_of(ext, thing):
    """(F,) heights of a ground at the origin."""
    found = ext.module("ccd_rig.blender.scene.ground").mesh_ground(
        bpy.context.scene, [thing], FRAMES, np.zeros((1, 2)), 2.0
    )
    ground = ext.module("ccd_rig.solvers.stepping").result_of(found)
    return ground.below(np.tile([0.0, 0.0, 5.0], (len(FRAMES), 1)), np.arange(len(FRAMES)))[0]


def shown_heights(thing):
    """(F,) heights of a ground's first vertex as Blender shows it."""
    heights = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(int(frame))
        shown = thing.evaluated_get(bpy.context.evaluated_depsgraph_get())
        heights.append((shown.matrix_world @ shown.data.vertices[0].co).z)
    return heights


def deforming_armature(floor):
    lift = rigs.chain(1, name="Lift")
    floor.vertex_groups.new(name="bone_0").add(range(len(floor.data.vertices)), 1.0, "REPLACE")
    floor.modifiers.new("Lift", "ARMATURE").object = lift
    for frame, place in ((1, 0.0), (7, 1.0), (13, 0.0), (19, 1.0), (25, 0.0)):
        lift.pose.bones["bone_0"].location = (0.0, place, 0.0)
        lift.pose.bones["bone_0"].keyframe_insert("location", frame=frame)


def deforming_hook(floor):
    thing = rigs.empty("Hook", (0.0, 0.0, 0.0))
    hook = floor.modifiers.new("Hook", "HOOK")
    hook.object = thing
    hook.vertex_indices_set(range(len(floor.data.vertices)))
    for frame in (1, 7, 13, 19, 25):
        thing.location.z = 1.0 if frame in (7, 19) else 0.0
        thing.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(1)


def deforming_nodes(floor):
    """Up by the square of a sine of the scene's frame, with a period of 12 frames."""
    tree, start, end = geometry_nodes("Lift")
    time, shift = tree.nodes.new("GeometryNodeInputSceneTime"), tree.nodes.new("ShaderNodeCombineXYZ")
    turn, sine, square = (tree.nodes.new("ShaderNodeMath") for _ in range(3))
    place = tree.nodes.new("GeometryNodeSetPosition")
    turn.operation, sine.operation, square.operation = "MULTIPLY_ADD", "SINE", "MULTIPLY"
    turn.inputs[1].default_value, turn.inputs[2].default_value = np.pi / 12.0, -np.pi / 12.0
    link = tree.links.new
    link(time.outputs["Frame"], turn.inputs[0])
    link(turn.outputs[0], sine.inputs[0])
    for k in range(2):
        link(sine.outputs[0], square.inputs[k])
    link(square.outputs[0], shift.inputs["Z"])
    link(start.outputs[0], place.inputs["Geometry"])
    link(shift.outputs[0], place.inputs["Offset"])
    link(place.outputs[0], end.inputs[0])
    floor.modifiers.new("Lift", "NODES").node_group = tree


@pytest.mark.parametrize("deform", [deforming_armature, deforming_hook, deforming_nodes])
def test_ground_moves_that_other_things_deform(ext, deform):
    floor = rigs.ground(lambda x, y: 0.0, [-2.0, 0.0, 2.0], name="Floor")
    deform(floor)
    wanted = shown_heights(floor)
    assert max(wanted) > 0.5 and abs(wanted[0] - wanted[12]) < 1e-5 > abs(wanted[0] - wanted[24])
    assert heights_of(ext, floor) == pytest.approx(wanted, abs=1e-5)
