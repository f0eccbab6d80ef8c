"""Walks along curves over hills and stairs: slide, penetration, floating, smoothness and time.

    python3 dev.py bench walk -- --data FOLDER
    python3 dev.py bench walk -- --data FOLDER --plot docs/images/walk.png
    python3 dev.py bench walk --blender 5.2 -- --figures cat,spider
    python3 dev.py bench walk -- --data FOLDER --figures all --ways up,down,across,kerb,drop,valley,ridge
    python3 dev.py bench walk -- --data FOLDER --figures human,cat --peer

FOLDER holds cmu/002_01.bvh (60 frames per second, centimetres); without it the human is left out by name.

Figures:
    human    Rigify's human metarig with CMU's walk 002_01, retargeted at 30 frames per second
    cat      Rigify's cat metarig with a walk of four beats: paws go back evenly for 0.65 of the period and
             swing ahead on an arc
    spider   eight legs of four bones that take turns, two groups of four
    insect   the same with six legs
    bird, wolf, horse   Rigify's metarigs with walks like the cat's, the bird's of two beats

The first three are those of the manual's table, and so are the first four ways; --figures all takes all.

Ways:
    line     a straight level line, four strides and more
    circle   a closed circle with a radius of two body heights: once round
    hills    an S of six strides over waves with slopes to 25 degrees, 2.8 strides or legs long, what is more
    stairs   up six stairs of 18 cm, 30 cm deep for a human with legs of 0.9 m, others in proportion to their
             legs
    up, down, across   six strides on slopes of 20 degrees
    kerb, drop         a step up or down of a fifth of a leg
    valley, ridge      down and up, or up and down, slopes of 20 degrees

Measured on what Blender plays, by the product's own measures (`motion/walking/measures`), lengths in mm: how
far a planted ball gets from where it came down, how deep soles get into the ground in any frame, how far a
planted sole stays above it, frames in which a planted foot is out of reach and in which a knee bends to the
other side, the largest turn of a bone in the world and of a joint against the one above it, and the 99th
percentile of the third differences of feet, over the cycle's. Processor time of all threads: ms for each
frame, reading the cycle and writing keys included; beside it for each frame the check, which lets Blender
play all of them; and seconds for the ground, which is read once: 57,600 quads for hills.

With --peer each walk stands beside what Blender alone does, as `by_constraints` sets it up: Follow Path,
Shrinkwrap, IK on feet and a visual bake, of the same cycle at the same speed. It is measured alike. Its
processor time is that of the bake. How far its legs fall short is not known, nor how high its soles are where
they leave the ground that our walk has read.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import bpy

# isort: split
import addon_utils  # comes with bpy
import gaits
import numpy as np
import rigs
from _script import Table, run_benchmark
from mathutils import Vector

from ccd_rig.blender import walk
from ccd_rig.blender.keys.channels import fcurves_of
from ccd_rig.blender.retarget import retarget
from ccd_rig.blender.retarget.sampling import Reference
from ccd_rig.blender.walk import walking_map
from ccd_rig.motion.settings import WalkSettings
from ccd_rig.motion.walking.cycle import Cycle, WalkLeg
from ccd_rig.motion.walking.measures import WalkMeasures

FPS = 30
SLOPE = math.radians(25.0)
GRADE, KERB = math.tan(math.radians(20.0)), 0.2
SIDE = 241  # places along each side of the mesh of hills
STAIR, TREAD, STAIRS, LEG = 0.18, 0.3, 6, 0.9  # [m] of a human with legs of that length
HEADS = (
    "figure | way    | frames | slide | in | above | reach | knees | turn | joint | jerk | ms | check, ms"
    " | ground, s"
)


@dataclass
class Case:
    """A figure with its cycle; lengths in metres."""

    rig: bpy.types.Object
    cycle: bpy.types.Action
    leg: float
    height: float
    stride: float


# Figures ------------------------------------------------------------------------------------------


def human(data: Path | None) -> Case:
    clip = data / "cmu/002_01.bvh" if data is not None else None
    if clip is None or not clip.exists():
        raise FileNotFoundError("CMU's 002_01.bvh")
    addon_utils.enable("io_anim_bvh")
    before = set(bpy.data.objects)
    with contextlib.redirect_stdout(io.StringIO()):
        bpy.ops.import_anim.bvh(filepath=str(clip), global_scale=0.01)
    source = next(iter(set(bpy.data.objects) - before))
    rig = rigs.metarig("human")
    choice = retarget.RetargetChoice(source_fps=2.0 * FPS, reference=Reference.FRAME)
    done = retarget.retarget_motion(bpy.context.scene, source, rig, choice)
    bpy.data.objects.remove(source)
    rigs.update()
    assert done.action is not None
    return case(rig, done.action, 1.4)


def four_legs(kind: str, _data: Path | None) -> Case:
    starts = {"left leg": 0.0, "left front leg": 0.25, "right leg": 0.5, "right front leg": 0.75}
    return made(rigs.metarig(kind), starts, frames=24, stride=0.9, duty=0.65, lift=0.15, sink=0.08)


def bird(_data: Path | None) -> Case:
    starts = {"left leg": 0.0, "right leg": 0.5}
    return made(rigs.metarig("bird"), starts, frames=24, stride=0.8, duty=0.6, lift=0.15, sink=0.06)


def many_legs(pairs: int, _data: Path | None) -> Case:
    rig = rigs.armature(rigs.spider(pairs), "Spider")
    groups = {
        f"{side} leg {k + 1}": 0.5 * ((k + (side == "right")) % 2)
        for k in range(pairs)
        for side in ("left", "right")
    }
    return made(rig, groups, frames=20, stride=0.5, duty=0.6, lift=0.15, sink=0.05)


def made(rig: bpy.types.Object, starts: dict[str, float], **of_leg: float) -> Case:
    """A figure with a cycle of `gaits`; stride, lift and sink in lengths of its shortest leg."""
    joints, figure, reading = retarget.figure_to_move(rig, rig.matrix_world, walking_map(rig))
    leg = min(WalkLeg.of(figure, limb, len(joints.legs) <= 4).length for limb in joints.legs)
    frames = int(of_leg.pop("frames"))
    duty = of_leg.pop("duty")
    lengths = {name: leg * part for name, part in of_leg.items()}
    pose = gaits.pose(figure, joints, starts, frames=frames, duty=duty, ahead=(0.0, -1.0, 0.0), **lengths)
    at = 1.0 + np.arange(frames + 1)
    keys = retarget.channels_of_motion(bpy.context.scene, rig, joints, figure, reading, at, pose)
    with contextlib.ExitStack() as undo:
        action = retarget.write_motion(bpy.context.scene, rig, keys, at, "Cycle", undo)
        undo.pop_all()
    return case(rig, action, lengths["stride"])


def case(rig: bpy.types.Object, action: bpy.types.Action, stride: float) -> Case:
    joints, figure, _ = retarget.figure_to_move(rig, rig.matrix_world, walking_map(rig))
    leg = min(WalkLeg.of(figure, limb, len(joints.legs) <= 4).length for limb in joints.legs)
    top = max(float((rig.matrix_world @ bone.tail_local).z) for bone in rig.data.bones)
    return Case(rig, action, leg, top, stride)


# Ways ---------------------------------------------------------------------------------------------


def line(case: Case) -> tuple[bpy.types.Object, bpy.types.Object | None, float]:
    return curve([(0.0, 0.0), (0.0, -6.0 * case.stride)]), None, 1.0


def circle(case: Case) -> tuple[bpy.types.Object, bpy.types.Object | None, float]:
    radius = 2.0 * case.height
    angles = np.linspace(0.0, 2.0 * math.pi, 129)[:-1]
    points = [(radius - radius * math.cos(a), -radius * math.sin(a)) for a in angles]
    return curve(points, closed=True), None, 1.0


def hills(case: Case) -> tuple[bpy.types.Object, bpy.types.Object | None, float]:
    wave, length = 2.8 * max(case.stride, case.leg), 6.0 * case.stride
    size = math.tan(SLOPE) * wave / (2.0 * math.pi)
    lines = np.linspace(0.0, 1.0, 181)
    points = [(0.6 * case.stride * math.sin(2.0 * math.pi * u), -length * u) for u in lines]
    low, high = (-3.0 * case.stride, -9.0 * case.stride), (3.0 * case.stride, 3.0 * case.stride)
    return curve(points), surface(low, high, lambda x, y: size * math.sin(2.0 * math.pi * y / wave)), 1.0


def stairs(case: Case) -> tuple[bpy.types.Object, bpy.types.Object | None, float]:
    scale = case.leg / LEG
    rise, tread, start = STAIR * scale, TREAD * scale, 1.5 * case.leg
    edges = [-9.0 * case.leg, *(start + tread * k for k in range(STAIRS)), start + 12.0 * case.leg]
    wide = 4.0 * case.leg
    corners, faces = [], []
    for k in range(STAIRS + 1):
        at = len(corners)
        corners += [(x, -y, rise * k) for y in edges[k : k + 2] for x in (-wide, wide)]
        faces += [(at, at + 1, at + 3, at + 2)]
        if k:
            corners += [(x, -edges[k], rise * (k - 1)) for x in (-wide, wide)]
            faces += [(at, at + 1, at + 5, at + 4)]
    end = -(start + tread * STAIRS + 2.5 * case.leg)
    return curve([(0.0, 0.0), (0.0, end)]), mesh(corners, faces), 1.0


def rough(
    height: Callable[[Case, float, float], float], case: Case
) -> tuple[bpy.types.Object, bpy.types.Object | None, float]:
    """Six strides straight on, over the height at a place."""
    length, wide = 6.0 * case.stride, 4.0 * max(case.stride, case.leg)
    side, lines = wide + 2.0 * case.stride, np.linspace(0.0, 1.0, 61)
    ground = surface((-side, -length - wide), (side, wide), lambda x, y: height(case, x, y))
    return curve([(0.0, -length * u) for u in lines]), ground, 1.0


def curve(points: list[tuple[float, float]], closed: bool = False) -> bpy.types.Object:
    data = bpy.data.curves.new("Way", "CURVE")
    data.dimensions = "3D"
    spline = data.splines.new("POLY")
    spline.points.add(len(points) - 1)
    for point, place in zip(spline.points, points, strict=True):
        point.co = (*place, 0.0, 1.0)
    spline.use_cyclic_u = closed
    return rigs.link(data, "Way")


def surface(
    low: tuple[float, float],
    high: tuple[float, float],
    height: Callable[[float, float], float],
) -> bpy.types.Object:
    return rigs.ground(height, *(np.linspace(a, b, SIDE).tolist() for a, b in zip(low, high, strict=True)))


def mesh(corners: list[tuple[float, ...]], faces: list[tuple[int, ...]]) -> bpy.types.Object:
    data = bpy.data.meshes.new("Ground")
    data.from_pydata(corners, [], faces)
    return rigs.link(data, "Ground")


FIGURES = {
    "human": human,
    "cat": partial(four_legs, "cat"),
    "spider": partial(many_legs, 4),
    "insect": partial(many_legs, 3),
    "bird": bird,
    "wolf": partial(four_legs, "wolf"),
    "horse": partial(four_legs, "horse"),
}
WAYS = {
    "line": line,
    "circle": circle,
    "hills": hills,
    "stairs": stairs,
    "up": partial(rough, lambda _, x, y: -GRADE * y),
    "down": partial(rough, lambda _, x, y: GRADE * y),
    "across": partial(rough, lambda _, x, y: GRADE * x),
    "kerb": partial(rough, lambda case, x, y: KERB * case.leg * (y < -2.37 * case.stride)),
    "drop": partial(rough, lambda case, x, y: -KERB * case.leg * (y < -2.37 * case.stride)),
    "valley": partial(rough, lambda case, x, y: GRADE * abs(y + 3.0 * case.stride)),
    "ridge": partial(rough, lambda case, x, y: -GRADE * abs(y + 3.0 * case.stride)),
}
TABLE = "human,cat,spider", "line,circle,hills,stairs"


# One row ------------------------------------------------------------------------------------------


Measured = tuple[bpy.types.Scene, bpy.types.Object, Any, Any, np.ndarray]
"""Arguments of `walk._measured`."""


def row(
    figure: str, way: str, case: Case, peer: bool = False
) -> tuple[list[list[str]], walk.Walked, bpy.types.Object | None]:
    """Cells of a walk, and of Blender's own if that is asked for; the walk and its ground."""
    path, ground, stride = WAYS[way](case)
    seen: list[Measured] = []
    choice = walk.WalkChoice(
        cycle=case.cycle, meshes=() if ground is None else (ground,), settings=WalkSettings(stride=stride)
    )
    spent = {"_measured": 0.0, "_ground": 0.0}
    plain = {name: getattr(walk, name) for name in spent}

    def measured(*arguments: Any) -> object:
        seen.append(arguments)
        start = time.process_time()
        result = plain["_measured"](*arguments)
        spent["_measured"] = time.process_time() - start
        return result

    def read(*arguments: object) -> Generator[float, None, object]:
        start = time.process_time()
        result = yield from plain["_ground"](*arguments)
        spent["_ground"] = time.process_time() - start
        return result

    try:
        walk._measured, walk._ground = measured, read
        start = time.process_time()
        done = walk.walk_along(bpy.context.scene, case.rig, path, choice)
        whole = time.process_time() - start - sum(spent.values())
    finally:
        for name, function in plain.items():
            setattr(walk, name, function)
    measures, frames = done.measures, len(done.frames)
    cells = [figure, way, str(frames), *cells_of(measures, str(measures.stretched))]
    cells += [f"{1000.0 * each / frames:.2f}" for each in (whole, spent["_measured"])]
    cells.append(f"{spent['_ground']:.2f}")
    if not peer:
        return [cells], done, ground
    beside = by_constraints(case, path, ground, done, seen[0])
    return [cells, ["Blender", way, str(frames), *beside]], done, ground


def cells_of(measures: WalkMeasures, reach: str) -> list[str]:
    """Cells of measures, from slide to jerk."""
    lengths = measures.slide, measures.penetration, measures.floating
    pairs = (
        (measures.turn, measures.cycle_turn),
        (measures.bend, measures.cycle_bend),
        (measures.jerk, measures.cycle_jerk),
    )
    ratios = [f"{walked / cycled:.2f}" for walked, cycled in pairs]
    cells = [f"{1000.0 * each:.2f}" if math.isfinite(each) else "-" for each in lengths]
    return [*cells, reach, str(measures.flipped), *ratios]


# Blender alone ------------------------------------------------------------------------------------


def by_constraints(
    case: Case,
    path: bpy.types.Object,
    ground: bpy.types.Object | None,
    walked: walk.Walked,
    measured: Measured,
) -> list[str]:
    """Cells of a walk that Blender's constraints make.

    An empty follows the path and, by Shrinkwrap, the ground. It carries two copies of the figure in which the
    cycle plays in place. Legs of the second copy reach by IK for the feet of the first, which Shrinkwrap
    keeps above the ground. The figure copies the second copy's bones and is baked.
    """
    scene, rig, done, _, frames = measured
    cycle, (first, last) = walked.cycle, walked.cycle_frames
    start, drift = _drift(scene, case, cycle.figure_map.hips, first, last)
    path.data.use_path = True
    carrier = rigs.empty("Carrier")
    follow = carrier.constraints.new("FOLLOW_PATH")
    follow.target, follow.forward_axis, follow.up_axis = path, "TRACK_NEGATIVE_Y", "UP_Z"
    follow.use_fixed_location = follow.use_curve_follow = True
    seconds = (frames[-1] - frames[0]) * cycle.step
    for frame, part in ((frames[0], 0.0), (frames[-1], cycle.speed * seconds / _length(path))):
        follow.offset_factor = part
        carrier.keyframe_insert(f'constraints["{follow.name}"].offset_factor', frame=frame)
    for fcurve in fcurves_of(carrier):
        for key in fcurve.keyframe_points:
            key.interpolation = "LINEAR"
    if ground is not None:
        _shrink(carrier, ground, "PROJECT", 0.0)
    model, mover = (
        _in_place(rig, case.cycle, carrier, frames, (first, last), start, drift) for _ in range(2)
    )
    aims = []
    for leg in cycle.legs:
        end = leg.limb.end
        above = leg.limb.joints[: leg.limb.joints.index(end)]
        aim = rigs.empty(f"Foot {end}")
        aims.append(aim)
        copied = aim.constraints.new("COPY_LOCATION")
        copied.target, copied.subtarget = model, end
        if ground is not None:
            _shrink(aim, ground, "NEAREST_SURFACE", rig.data.bones[end].head_local.z)
        reach = mover.pose.bones[above[-1]].constraints.new("IK")
        reach.target, reach.chain_count = aim, len(above)
        turned = mover.pose.bones[end].constraints.new("COPY_ROTATION")
        turned.target, turned.subtarget = model, end
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        whole = bone.constraints.new("COPY_TRANSFORMS")
        whole.target, whole.subtarget = mover, bone.name
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    begun = time.process_time()
    bpy.ops.nla.bake(
        frame_start=int(frames[0]),
        frame_end=int(frames[-1]),
        only_selected=False,
        visual_keying=True,
        clear_constraints=True,
        bake_types={"POSE"},
    )
    spent = time.process_time() - begun
    bpy.ops.object.mode_set(mode="OBJECT")
    at = (frames - frames[0]) * cycle.step
    feet = {name: replace(foot, down=_down(cycle, name, at)) for name, foot in done.plan.feet.items()}
    measures, *_ = walk._measured(
        scene, rig, replace(done, plan=replace(done.plan, feet=feet)), *measured[3:]
    )
    for thing in (model, mover, carrier, *aims):
        bpy.data.objects.remove(thing)
    return [*cells_of(measures, reach="-"), f"{1000.0 * spent / len(frames):.2f}", "-", "-"]


def _drift(scene: bpy.types.Scene, case: Case, hips: str, first: float, last: float) -> tuple[Vector, Vector]:
    """Where the hips are on the level when the cycle begins, and how far it takes them."""
    case.rig.animation_data_create().action = case.cycle
    places = []
    for frame in (first, last):
        scene.frame_set(int(frame))
        places.append(case.rig.matrix_world @ case.rig.pose.bones[hips].head)
    start, drift = places[0], places[1] - places[0]
    return Vector((start.x, start.y, 0.0)), Vector((drift.x, drift.y, 0.0))


def _in_place(
    rig: bpy.types.Object,
    cycle: bpy.types.Action,
    carrier: bpy.types.Object,
    frames: np.ndarray,
    period: tuple[float, float],
    start: Vector,
    drift: Vector,
) -> bpy.types.Object:
    """A copy of the figure that a carrier takes along, in which the cycle repeats without its own way."""
    copy = rig.copy()
    bpy.context.collection.objects.link(copy)
    copy.animation_data_clear()
    copy.parent = carrier
    count = period[1] - period[0]
    for frame in frames.tolist():
        copy.location = -start - drift * (((frame - frames[0]) % count) / count)
        copy.keyframe_insert("location", frame=frame)
    copy.animation_data.action_blend_type = "COMBINE"
    strip = copy.animation_data.nla_tracks.new().strips.new("Cycle", int(frames[0]), cycle)
    strip.action_frame_start, strip.action_frame_end = period
    strip.repeat = len(frames) / count + 1.0
    return copy


def _shrink(thing: bpy.types.Object, ground: bpy.types.Object, kind: str, distance: float) -> None:
    """Keep a thing on the ground below or above it, or at a distance outside its nearest face."""
    kept = thing.constraints.new("SHRINKWRAP")
    kept.target, kept.shrinkwrap_type, kept.distance = ground, kind, distance
    if kind == "PROJECT":
        kept.project_axis, kept.project_axis_space, kept.use_project_opposite = "NEG_Z", "WORLD", True
    else:
        kept.wrap_mode = "OUTSIDE"


def _length(path: bpy.types.Object) -> float:
    return sum(spline.calc_length() for spline in path.data.splines)


def _down(cycle: Cycle, leg: str, at: np.ndarray) -> np.ndarray:
    """(F,) number of a leg's stance at seconds of the walk, -1 in the air."""
    down = np.full(len(at), -1)
    for stance in cycle.feet[leg].stances:
        since = (at - stance.first) % cycle.period
        is_down = since <= stance.last - stance.first + 1e-6
        down[is_down] = 2 * np.round((at - since) / cycle.period)[is_down].astype(int) + 2
    return down


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with cmu/002_01.bvh")
    parser.add_argument("--figures", default=TABLE[0])
    parser.add_argument("--ways", default=TABLE[1])
    parser.add_argument("--peer", action="store_true", help="beside what Blender's constraints do")
    parser.add_argument("--plot", type=Path, help="write the picture of the manual here")
    options = parser.parse_args()
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.context.scene.render.fps = FPS
    table = Table(HEADS)
    drawn = []
    for name in FIGURES if options.figures == "all" else options.figures.split(","):
        try:
            each = FIGURES[name](options.data)
        except FileNotFoundError as missing:
            print(f"{name}: left out, {missing} is not there")
            continue
        for way in options.ways.split(","):
            lines, done, ground = row(name, way, each, options.peer)
            for cells in lines:
                table.row(*cells)
            if options.plot is not None:
                import _plots

                drawn.append(_plots.WalkLines.of(f"{name}, {way}", each.rig, done, ground, each.leg))
    if options.plot is not None:
        import _plots

        _plots.draw_walk(drawn, options.plot)


if __name__ == "__main__":
    run_benchmark(main)
