"""Motion capture on other figures: how feet slide, what limbs miss, how smooth it is, and what it costs.

    python3 dev.py bench retarget -- --data FOLDER
    python3 dev.py bench retarget -- --data FOLDER --plot docs/images/retarget.png
    python3 dev.py bench retarget --blender 5.2 -- --data FOLDER --clips 002_01 --targets human

FOLDER holds cmu/*.bvh (60 frames per second, centimetres), makehuman/walk1.bvh, cesiumman/CesiumMan.glb and
mesh2motion/rig-human.glb; what is not there is left out by name. Targets are these two and Rigify's human
and basic human metarigs. Played at 30 frames per second.

Three ways:
    copied       rotations carried over from the same reference poses, hips scaled by the length of the leg
    Blender IK   the same, then Blender's IK on both legs to the source's ankles, scaled, feet turned as
                 carried over, and Blender's own visual bake
    retarget     the product's default settings

Measured on what Blender plays, apart from the product's own report. A stance is a run of at least 0.1 s in
which the source's ball of the foot is slower than 0.3 m/s, over ground that moves as it does under a figure
that walks in place, and lower than a tenth of a leg above the lowest place of that step. Drift: largest
distance of the target's ball from its mean place in a stance, along the ground. Slide: its mean speed there,
and that of heels before it and of the ends of toes after it, while the source's are slow and below its ball.
Miss: mean distance of ankles from the middle of the hips and of wrists from the shoulders, from where the
source has them, in lengths of the limb, frames outside of all these for ankles. Turn: largest turn of a
mapped bone from frame to frame, and jerk: 99th percentile of the third differences of ankles and wrists in
lengths of the limb, both over the source's. Pops: turns above 20 degrees and three times the source's
largest. Depth: of the ball of the foot below its height at rest, in
stances. Times are of the processor. Sides: frames in which a knee or elbow bends to the other side than the
source's.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import bpy

# isort: split
import addon_utils  # comes with bpy
import numpy as np
from _bake_pairs import count_pops
from _script import Table, run_benchmark
from mathutils import Matrix, Vector

from ccd_rig.blender.retarget.retarget import (
    Reference,
    RetargetChoice,
    Retargeted,
    retarget_motion,
)
from ccd_rig.blender.scene.isolation import isolated_scene, set_frame
from ccd_rig.motion.contacts import ground_velocity
from ccd_rig.motion.settings import RetargetSettings

FPS = 30
SLOW, SHORTEST, LOW = 0.3, 0.1, 0.1  # m/s, s, legs
HEEL, TOES = 0.3, 0.5  # of the foot from ankle to ball, along the ground
HEADS = (
    "clip      | target      | way        | stances | drift, mean / largest, mm | slide, heel and toes, mm/s"
    " | miss, % of limb | depth, mm | turn, jerk over source's | pops | sides | limits | ms per frame"
)


@dataclass
class Played:
    """Heads (F, 3) and rotations (F, 3, 3) in the world, by bone."""

    heads: dict[str, np.ndarray]
    turns: dict[str, np.ndarray]

    @classmethod
    def of(cls, rig: bpy.types.Object, names: list[str], frames: list[float]) -> Played:
        with isolated_scene(bpy.context.scene, rig, [(rig, name) for name in names], ()) as scene:
            matrices = np.empty((len(frames), len(names), 4, 4))
            for f, frame in enumerate(frames):
                evaluated = rig.evaluated_get(set_frame(scene, frame))
                for j, name in enumerate(names):
                    matrices[f, j] = evaluated.matrix_world @ evaluated.pose.bones[name].matrix
        axes = matrices[..., :3, :3] / np.linalg.norm(matrices[..., :3, :3], axis=-2, keepdims=True)
        return cls(
            {name: matrices[:, j, :3, 3] for j, name in enumerate(names)},
            {name: axes[:, j] for j, name in enumerate(names)},
        )

    def upright(self, hips: np.ndarray) -> Played:
        """Turned so that the axis of the world nearest to `hips` points up."""
        k = int(np.argmax(np.abs(hips) + np.array((0.0, 0.0, 0.3)) * np.linalg.norm(hips)))
        up = Vector(np.eye(3)[k] * np.sign(hips[k]))
        turn = np.array(up.rotation_difference(Vector((0.0, 0.0, 1.0))).to_matrix())
        return Played(
            {name: heads @ turn.T for name, heads in self.heads.items()},
            {name: turn @ turns for name, turns in self.turns.items()},
        )


def length(played: Played, names: list[str]) -> float:
    """Return the length of a limb, from its first to its third joint."""
    heads = [played.heads[name] for name in names[:3]]
    return float(sum(np.linalg.norm(b - a, axis=1).mean() for a, b in pairwise(heads)))


def stances(ball: np.ndarray, leg: float, velocity: np.ndarray, metre: float) -> list[tuple[int, int]]:
    """First and last row of each."""
    speed = np.linalg.norm(np.gradient(ball, 1.0 / FPS, axis=0) - velocity, axis=1)
    slow = np.concatenate(([False], speed < SLOW * metre, [False])).astype(int)
    edges = np.flatnonzero(np.diff(slow))
    runs = []
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        around = ball[max(0, first - FPS // 2) : end + FPS // 2, 2]
        low = ball[first:end, 2].mean() - around.min() < LOW * leg
        if low and (end - first) / FPS >= SHORTEST:
            runs.append((int(first), int(end) - 1))
    return runs


def sole_point(
    played: Played, names: list[str], stance: tuple[int, int], step: int, height: float
) -> np.ndarray:
    """(F, 3) the heel for -1, the end of the toes for 1, `height` below the ball.

    It is fixed to its bone as the foot lies where its ankle is lowest in a stance, as far behind the ankle,
    or before the ball, as parts of the foot's length.
    """
    ankle, ball = played.heads[names[2]], played.heads[names[3]]
    flat = stance[0] + int(np.argmin(ankle[stance[0] : stance[1] + 1, 2]))
    foot = (ball[flat] - ankle[flat]) * (1.0, 1.0, 0.0)
    start, bone, way = (ankle, names[2], -HEEL * foot) if step < 0 else (ball, names[3], TOES * foot)
    point = start[flat] + way
    point[2] = ball[flat, 2] - height
    local = played.turns[bone][flat].T @ (point - start[flat])
    return start + played.turns[bone] @ local


def rolls(
    point: np.ndarray, ball: np.ndarray, edge: tuple[int, int], velocity: np.ndarray, metre: float
) -> list[int]:
    """Rows beyond a stance in which the heel or the toes are slow and lower than the ball."""
    speed = np.linalg.norm(np.gradient(point, 1.0 / FPS, axis=0) - velocity, axis=1)
    row, points = edge[0] + edge[1], []
    while 0 <= row < len(ball) and speed[row] < SLOW * metre and point[row, 2] < ball[row, 2]:
        points.append(row)
        row += edge[1]
    return points


def measured(source: Played, ours: Played, limbs: dict[str, tuple[list[str], list[str]]], rest: dict) -> dict:
    """Numbers of one way; `limbs` has the names of joints of the source and the target, `rest` heights."""
    legs = {name: pair for name, pair in limbs.items() if "leg" in name}
    leg = np.mean([length(source, pair[0]) for pair in legs.values()])
    scale = np.mean([length(ours, pair[1]) / length(source, pair[0]) for pair in legs.values()])
    count = len(next(iter(source.heads.values())))
    times = np.arange(count) / FPS
    feet = [source.heads[pair[0][-1]] for pair in legs.values()]
    thresholds = RetargetSettings().thresholds
    velocity = ground_velocity(feet, times, float(leg), thresholds, moves=True)
    if np.linalg.norm(velocity) < SLOW * leg:
        velocity = np.zeros(3)
    drifts, slides, ends, misses, depths, sides, jerks, own_jerks = [], [], [], [], [], 0, [], []
    for name, (theirs, names) in limbs.items():
        sizes = length(source, theirs), length(ours, names)
        free = np.ones(count, bool)
        starts = ([source.heads[theirs[0]]], [ours.heads[names[0]]])
        if name in legs:
            starts = tuple(
                [p.heads[pair[k][0]] for pair in legs.values()] for k, p in enumerate((source, ours))
            )
            ball = ours.heads[names[-1]]
            for first, last in stances(source.heads[theirs[-1]], leg, velocity, leg / 0.9):
                rows = slice(first, last + 1)
                for edge, step in ((first, -1), (last, 1)) if len(names) > 3 else ():
                    points = [
                        sole_point(p, n, (first, last), step, height)
                        for p, n, height in ((source, theirs, 0.0), (ours, names, rest[names[-1]]))
                    ]
                    rolled = rolls(points[0], source.heads[theirs[-1]], (edge, step), velocity, leg / 0.9)
                    free[rolled] = False
                    along = (points[1] - scale * velocity * times[:, None])[sorted((edge, *rolled)), :2]
                    ends += (np.linalg.norm(np.diff(along, axis=0), axis=1) * FPS).tolist()
                free[rows] = False
                along = (ball[rows] - scale * velocity * times[rows, None])[:, :2]
                drifts.append(np.linalg.norm(along - along.mean(0), axis=1).max())
                slides.append(np.linalg.norm(np.diff(along, axis=0), axis=1).mean() * FPS)
                depths.append(rest[names[-1]] - ball[rows, 2].min())
        start, own_start = np.mean(starts[1], axis=0), np.mean(starts[0], axis=0)
        off = (ours.heads[names[2]] - start) / sizes[1] - (source.heads[theirs[2]] - own_start) / sizes[0]
        misses.append(np.linalg.norm(off, axis=1)[free].mean() if free.any() else 0.0)
        bends = [
            np.cross(p.heads[n[1]] - p.heads[n[0]], p.heads[n[2]] - p.heads[n[1]]) / size**2
            for p, n, size in ((source, theirs, sizes[0]), (ours, names, sizes[1]))
        ]
        clear = np.minimum(*[np.linalg.norm(bend, axis=1) for bend in bends]) > 0.0125
        sides += int((clear & ((bends[0] * bends[1]).sum(1) < 0.0)).sum())
        own_jerks.append(np.linalg.norm(np.diff(source.heads[theirs[2]], 3, axis=0), axis=1) / sizes[0])
        jerks.append(np.linalg.norm(np.diff(ours.heads[names[2]], 3, axis=0), axis=1) / sizes[1])
    return {
        "stances": len(drifts),
        "drift": 1000 * np.mean(drifts) if drifts else 0.0,
        "worst": 1000 * max(drifts, default=0.0),
        "slide": 1000 * np.mean(slides) if slides else 0.0,
        "ends": 1000 * np.mean(ends) if ends else 0.0,
        "miss": 100 * np.mean(misses),
        "depth": max(0.0, 1000 * max(depths, default=0.0)),
        "turn": turns(ours).max() / turns(source).max(),
        "pops": count_pops(turns(ours), turns(source)),
        "jerk": np.percentile(np.concatenate(jerks), 99) / np.percentile(np.concatenate(own_jerks), 99),
        "sides": sides,
    }


def turns(played: Played) -> np.ndarray:
    """(B, F - 1) degrees from frame to frame."""
    axes = np.stack(list(played.turns.values()))
    traces = np.einsum("bfij,bfij->bf", axes[:, 1:], axes[:, :-1])
    return np.degrees(np.arccos(np.clip((traces - 1.0) / 2.0, -1.0, 1.0)))


# Clips, figures and ways ------------------------------------------------------------------------------------

CLIPS = {
    "002_01": ("cmu/002_01.bvh", 60.0, Reference.FRAME),
    "002_04": ("cmu/002_04.bvh", 60.0, Reference.FRAME),
    "003_01": ("cmu/003_01.bvh", 60.0, Reference.FRAME),
    "walk1": ("makehuman/walk1.bvh", 24.0, Reference.FRAME),
    "CesiumMan": ("cesiumman/CesiumMan.glb", 24.0, Reference.REST),
}
TARGETS = {
    "human": "armature_human_metarig_add",
    "basic human": "armature_basic_human_metarig_add",
    "CesiumMan": "cesiumman/CesiumMan.glb",
    "mesh2motion": "mesh2motion/rig-human.glb",
}
TAILS_LEAD_NOWHERE = {"CesiumMan"}  # as its glTF file has them: Blender's IK moves tails
COPIED = RetargetSettings(feet=0.0, hands=0.0, contacts=False)
WAYS = ("copied", "Blender IK", "retarget")


# Figures ------------------------------------------------------------------------------------------


def loaded(file: Path) -> bpy.types.Object:
    before = set(bpy.data.objects)
    with contextlib.redirect_stdout(io.StringIO()):
        if file.suffix == ".bvh":
            bpy.ops.import_anim.bvh(filepath=str(file), global_scale=0.01)
        else:
            bpy.ops.import_scene.gltf(filepath=str(file))
    return next(thing for thing in set(bpy.data.objects) - before if thing.type == "ARMATURE")


def made(name: str, data: Path) -> bpy.types.Object:
    if TARGETS[name].endswith("_add"):
        getattr(bpy.ops.object, TARGETS[name])()
        return bpy.context.object
    rig = loaded(data / TARGETS[name])
    rig.animation_data_clear()
    return rig


# Blender's way ------------------------------------------------------------------------------------


def blender_ik(copied: Retargeted, source: bpy.types.Object, target: bpy.types.Object, ankles: dict) -> None:
    """IK on both legs to where ankles are to be, feet turned as they are, baked by Blender."""
    frames = [int(frame) for frame in copied.frames]
    roles = {
        f"{role.part} {role.side}": name
        for name, role in copied.bone_map.figure.roles.items()
        if not role.index
    }
    for side in "LR":
        foot, shin = roles[f"foot {side}"], roles[f"shin {side}"]
        goal = bpy.data.objects.new(f"goal {side}", None)
        bpy.context.scene.collection.objects.link(goal)
        goal.rotation_mode = "QUATERNION"
        turns = Played.of(target, [foot], [float(f) for f in frames]).turns[foot]
        for frame, place, turn in zip(frames, ankles[foot], turns, strict=True):
            matrix = np.eye(4)
            matrix[:3, :3], matrix[:3, 3] = turn, place
            goal.matrix_world = Matrix(matrix)
            goal.keyframe_insert("location", frame=frame)
            goal.keyframe_insert("rotation_quaternion", frame=frame)
        reach = target.pose.bones[shin].constraints.new("IK")
        reach.target, reach.chain_count = goal, 2
        turned = target.pose.bones[foot].constraints.new("COPY_ROTATION")
        turned.target = goal
    bpy.context.view_layer.objects.active = target
    target.select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.nla.bake(
        frame_start=frames[0],
        frame_end=frames[-1],
        only_selected=False,
        visual_keying=True,
        clear_constraints=True,
        use_current_action=True,
        bake_types={"POSE"},
    )
    bpy.ops.object.mode_set(mode="OBJECT")


# One row ------------------------------------------------------------------------------------------


def limbs_of(done: Retargeted) -> dict[str, tuple[list[str], list[str]]]:
    bones_of_limbs = {"leg": ("thigh", "shin", "foot", "toe"), "arm": ("upper arm", "lower arm", "hand")}
    roles = {
        (str(role.part), str(role.side), role.index, role.number): name
        for name, role in done.bone_map.figure.roles.items()
    }
    limbs = {}
    for kind, names in bones_of_limbs.items():
        for side in "LR":
            ours = [roles[name, side, 0, 0] for name in names if (name, side, 0, 0) in roles]
            ours = [name for name in ours if name in done.bone_map.bones]
            limbs[f"{kind} {side}"] = [done.bone_map.bones[name] for name in ours], ours
    return limbs


def row(data: Path, clip: str, target_name: str, way: str) -> dict:
    file, fps, reference = CLIPS[clip]
    bpy.ops.wm.read_homefile(use_empty=True)
    scene = bpy.context.scene
    scene.render.fps = FPS
    source = loaded(data / file)
    scene.render.fps = FPS
    target = made(target_name, data)
    rest = {bone.name: (target.matrix_world @ bone.head_local).z for bone in target.data.bones}
    settings = RetargetSettings() if way == "retarget" else COPIED
    started = time.process_time()
    done = retarget_motion(
        scene, source, target, RetargetChoice(source_fps=fps, reference=reference, settings=settings)
    )
    seconds = time.process_time() - started
    limbs = limbs_of(done)
    names = list(done.bone_map.bones)
    frames = [float(frame) for frame in done.frames]
    own_frames = [frames[0] + k * fps / FPS for k in range(len(frames))]
    source_played = Played.of(source, [done.bone_map.bones[name] for name in names], own_frames)
    hips = np.mean([source_played.heads[limbs[f"leg {side}"][0][0]][0] for side in "LR"], axis=0)
    source_played = source_played.upright(
        np.mean([source_played.heads[limbs[f"arm {side}"][0][0]][0] for side in "LR"], axis=0) - hips
    )
    if way == "Blender IK":
        ours = Played.of(target, names, frames)
        scale = np.mean(
            [length(ours, limbs[f"leg {s}"][1]) / length(source_played, limbs[f"leg {s}"][0]) for s in "LR"]
        )
        middle = [
            np.mean([p.heads[limbs[f"leg {s}"][k][0]] for s in "LR"], axis=0)
            for k, p in enumerate((source_played, ours))
        ]
        ankles = {
            limbs[f"leg {s}"][1][2]: middle[1]
            + scale * (source_played.heads[limbs[f"leg {s}"][0][2]] - middle[0])
            for s in "LR"
        }
        started = time.process_time()
        blender_ik(done, source, target, ankles)
        seconds += time.process_time() - started
    ours = Played.of(target, names, frames)
    measures = measured(source_played, ours, limbs, rest)
    return {**measures, "ms": 1000 * seconds / len(frames), "limits": done.measures.broken}


# The picture --------------------------------------------------------------------------------------


def picture(data: Path, file: Path) -> None:
    """002_01 on Rigify's human, copied and retargeted."""
    from _plots import RetargetLines, draw_retarget

    drawn = {}
    for settings in (COPIED, RetargetSettings()):
        bpy.ops.wm.read_homefile(use_empty=True)
        source, target = loaded(data / CLIPS["002_01"][0]), made("human", data)
        bpy.context.scene.render.fps = FPS
        choice = RetargetChoice(source_fps=60.0, reference=Reference.FRAME, settings=settings)
        done = retarget_motion(bpy.context.scene, source, target, choice)
        frames = [float(frame) for frame in done.frames]
        own_frames = [frames[0] + 2.0 * k for k in range(len(frames))]
        body = {n: other for n, other in done.bone_map.bones.items() if not n.startswith(("f_", "thumb"))}
        for name, rig, used, times in (
            ("own", source, set(body.values()), own_frames),
            (settings, target, set(body), frames),
        ):
            drawn[name] = RetargetLines(*_lines(rig, used, times, limbs_of(done)["leg L"][rig is target]))
        spans = [(each.first, each.last) for each in done.measures.stances if each.leg == "left leg"]
    draw_retarget(drawn["own"], drawn[COPIED], drawn[RetargetSettings()], spans, file)


def _lines(rig: bpy.types.Object, used: set[str], frames: list[float], leg: list[str]) -> tuple:
    """Lines from each used bone to the used one above it, by name; and ankle, ball and toes of a leg."""
    played = Played.of(rig, sorted(used), frames)
    bones = {}
    for name in used:
        above = next((bone.name for bone in rig.data.bones[name].parent_recursive if bone.name in used), None)
        if above is not None:
            side = "L" if ".L" in name or "_L_" in name else "R" if ".R" in name or "_R_" in name else ""
            bones[name] = side, np.stack((played.heads[above], played.heads[name]), axis=1)
    ankle, ball = played.heads[leg[2]], played.heads[leg[3]]
    toe = rig.data.bones[leg[3]]
    tip = ball + played.turns[leg[3]][:, :, 1] * min(toe.length, 0.08)
    return bones, [ankle, ball, tip]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the clips and figures")
    parser.add_argument("--clips", nargs="+", default=list(CLIPS), choices=CLIPS)
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=TARGETS)
    parser.add_argument("--plot", type=Path, help="draw 002_01 on Rigify's human into this file instead")
    options = parser.parse_args()
    addon_utils.enable("io_anim_bvh")
    addon_utils.enable("io_scene_gltf2")
    with contextlib.redirect_stdout(io.StringIO()):
        addon_utils.enable("rigify", default_set=True)
    if options.plot is not None:
        picture(options.data, options.plot)
        return
    table = Table(HEADS)
    pops = dict.fromkeys(WAYS, 0)
    for clip in options.clips:
        for target in options.targets:
            files = [CLIPS[clip][0], *([TARGETS[target]] if "/" in TARGETS[target] else [])]
            if missing := [file for file in files if not (options.data / file).is_file()]:
                print(f"{clip}, {target}: left out, there is no {', '.join(missing)}")
                continue
            for way in WAYS:
                if way == "Blender IK" and target in TAILS_LEAD_NOWHERE:
                    print(f"{clip}, {target}, {way}: left out, shins do not end at the ankles")
                    continue
                with contextlib.redirect_stdout(io.StringIO()):
                    m = row(options.data, clip, target, way)
                table.row(
                    clip,
                    target,
                    way,
                    m["stances"],
                    f"{m['drift']:.1f} / {m['worst']:.1f}",
                    f"{m['slide']:.1f}, {m['ends']:.1f}",
                    f"{m['miss']:.2f}",
                    f"{m['depth']:.1f}",
                    f"{m['turn']:.2f}, {m['jerk']:.2f}",
                    m["pops"],
                    m["sides"],
                    m["limits"],
                    f"{m['ms']:.2f}",
                )
                pops[way] += m["pops"]
    print("\npops of all motions: " + ", ".join(f"{way} {count}" for way, count in pops.items()))


if __name__ == "__main__":
    run_benchmark(main)
