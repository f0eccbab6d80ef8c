"""Walks along curves over hills and stairs: slide, penetration, floating, smoothness and time.

    python3 dev.py bench walk -- --data FOLDER
    python3 dev.py bench walk -- --data FOLDER --plot docs/images/walk.png
    python3 dev.py bench walk -- --data FOLDER --figures human --ways hills --side 708
    python3 dev.py bench walk --blender 5.2 -- --figures cat,spider
    python3 dev.py bench walk -- --data FOLDER --figures all --ways up,down,across,kerb,drop,valley,ridge

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
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import bpy

# isort: split
import addon_utils  # comes with bpy
import gaits
import numpy as np
import rigs
from _script import Table, run_benchmark

from ccd_rig.blender.retarget import retarget
from ccd_rig.blender.retarget.sampling import Reference
from ccd_rig.blender.walk import walk
from ccd_rig.blender.walk.walk import walking_map
from ccd_rig.motion.walking.cycle import WalkLeg
from ccd_rig.motion.walking.settings import WalkSettings

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
    joints, figure, reading = retarget.figure_to_move(rig, walking_map(rig))
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
    joints, figure, _ = retarget.figure_to_move(rig, walking_map(rig))
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


def row(figure: str, way: str, case: Case) -> tuple[list[str], walk.Walked, bpy.types.Object | None]:
    path, ground, stride = WAYS[way](case)
    choice = walk.WalkChoice(
        cycle=case.cycle, meshes=() if ground is None else (ground,), settings=WalkSettings(stride=stride)
    )
    spent = {"_measured": 0.0, "_ground": 0.0}
    plain = {name: getattr(walk, name) for name in spent}

    def measured(*arguments: object) -> object:
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
    cells = [figure, way, str(frames)]
    cells += [f"{1000.0 * each:.2f}" for each in (measures.slide, measures.penetration, measures.floating)]
    cells += [str(measures.stretched), str(measures.flipped)]
    pairs = (
        (measures.turn, measures.cycle_turn),
        (measures.bend, measures.cycle_bend),
        (measures.jerk, measures.cycle_jerk),
    )
    cells += [f"{walked / cycled:.2f}" for walked, cycled in pairs]
    cells += [f"{1000.0 * each / frames:.2f}" for each in (whole, spent["_measured"])]
    cells.append(f"{spent['_ground']:.2f}")
    return cells, done, ground


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with cmu/002_01.bvh")
    parser.add_argument("--figures", default=TABLE[0])
    parser.add_argument("--ways", default=TABLE[1])
    parser.add_argument("--plot", type=Path, help="write the picture of the manual here")
    parser.add_argument("--side", type=int, default=SIDE, help="places along each side of the mesh of hills")
    options = parser.parse_args()
    globals()["SIDE"] = options.side
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
            cells, done, ground = row(name, way, each)
            table.row(*cells)
            if options.plot is not None:
                import _plots

                drawn.append(_plots.WalkLines.of(f"{name}, {way}", each.rig, done, ground, each.leg))
    if options.plot is not None:
        import _plots

        _plots.draw_walk(drawn, options.plot)


if __name__ == "__main__":
    run_benchmark(main)
