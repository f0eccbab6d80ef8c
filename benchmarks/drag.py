"""Cost of a drag's update beside Blender's evaluation of the same rig, and evenness of the bones' turns.

    python3 dev.py bench drag
    python3 dev.py bench drag -- --case snake --runs 5

Protocol: a bone is pulled round a circle, tilted against the ground, through its place at the press, in 100
steps, or along a straight line of 0.7 of the chain's reach. An update is the solve and the write, processor
time of all threads; beside it stands Blender's evaluation of the rig after that write. The shortest of the
runs counts for each step. The unit of the ratios is the median of Blender's.

A step of a bone above the pulled one is its turn, in model space, from one update to the next. A move of the
pointer by s explains a turn by s / r, where r is the lever: from the bone's head to the pulled place. Bones
with a lever below a twentieth of the chain's reach are left out. *turn* is the largest quotient of both; the
aim is 1.5.

*least* is the largest quotient that no arm avoids whose point follows the pointer exactly, by the law of
cosines: a pull along the line from the shoulder turns the upper arm by cot b of what it explains, b the angle
at the pulled point between that line and the forearm. It is below 1.5 where the elbow is bent by more than
67 degrees, for bones of equal length.

The budget: Blender's evaluation left aside, the median at most a frame of 60 a second, the 95th percentile at
most two.

Cases:
    fk, ik      a hand of the human that Rigify generates, by FK controls (elbow bent) and by its IK control
    straight    as fk with the arm as it is at rest, nearly straight: half of the circle is out of reach
    pins        as ik, both feet pinned: the torso takes part
    pins-fk     as fk, both feet pinned
    head        the head of the same rig, both feet pinned: torso, spine and neck take part
    human       a hand of Rigify's human metarig, both feet pinned: hips and spine take part
    balance     as human, with the centre of mass kept above the feet
    spider      the body of a spider whose eight legs are pinned
    snake       the end of a snake of 30 bones with limits
    hands       both hands of Rigify's human metarig at rest, feet pinned, to each other along a straight line
    apart       the same away from each other: most of the line is out of reach
    stretched   its head, feet pinned, straight up: most of the line is out of reach
    bowed       its head, feet pinned, straight to the front
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import bpy
import numpy as np
import rigs
from _script import Table, machine, run_benchmark
from mathutils import Quaternion, Vector

from ccd_rig.blender.drag.session import Pulled, Session

STEPS = 100
RADIUS = 0.15  # of the circle, in parts of the chain's reach
SHORT = 0.05  # levers below this part of the reach are left out
FRAME, LATE = 1000.0 / 60.0, 2000.0 / 60.0  # [ms] the budget
HEADS = (
    "case     | bones | Blender, ms | update, ms | 95th, ms | ratio | 95th | reached | turn | least | within"
)
LIMB = 3
"""Number of bones of a chain that is an arm and its hand."""

Made = tuple[bpy.types.Object, str]
"""An armature, and the bone that is pulled."""
LINES = {
    "hands": (-1.0, 0.0, 0.0),
    "apart": (1.0, 0.0, 0.0),
    "stretched": (0.0, 0.0, 1.0),
    "bowed": (0.0, -1.0, 0.0),
}
"""Directions of cases with straight lines."""
LINE = 0.7
"""Length of a line, in parts of the chain's reach."""


def generated(hand: str, switch: float, elbow: float = 0.0) -> Made:
    rig = rigs.generated("human")
    rig.pose.bones["upper_arm_parent.L"]["IK_FK"] = switch
    rigs.set_rotation(rig.pose.bones["forearm_fk.L"], Quaternion((1.0, 0.0, 0.0), elbow))
    return rig, hand


def standing(hand: str, switch: float, elbow: float = 0.0) -> Made:
    rig, pulled = generated(hand, switch, elbow)
    rig.ccd_rig.pin_feet = True
    return rig, pulled


def nodding() -> Made:
    """The generated human's head, bowed, above a lowered torso."""
    rig, pulled = standing("head", 0.0)
    for name, angle in (("chest", 0.5), ("neck", 0.3)):
        rigs.set_rotation(rig.pose.bones[name], Quaternion((1.0, 0.0, 0.0), angle))
    rig.pose.bones["torso"].location.z = -0.15
    return rig, pulled


def human() -> Made:
    rig = rigs.metarig("human")
    rig.ccd_rig.pin_feet = True
    for side in "LR":
        rigs.set_rotation(rig.pose.bones[f"thigh.{side}"], Quaternion((1.0, 0.0, 0.0), -0.3))
        rigs.set_rotation(rig.pose.bones[f"shin.{side}"], Quaternion((1.0, 0.0, 0.0), 0.6))
    return rig, "hand.L"


def upright(pulled: str) -> Made:
    rig = rigs.metarig("human")
    rig.ccd_rig.pin_feet = True
    rig.pose.use_mirror_x = True
    return rig, pulled


def balance() -> Made:
    rig, pulled = human()
    rig.ccd_rig.keep_balance = True
    return rig, pulled


def spider() -> Made:
    rig = rigs.armature(rigs.spider())
    for bone in rig.pose.bones:
        if "_3." in bone.name:
            bone.ccd_rig.pin = "PLACE"
    return rig, "body"


def snake() -> Made:
    rig = rigs.chain(30, 0.1)
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, Quaternion((1.0, 0.0, 0.0), 0.1))
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", math.radians(35.0)
    rig.pose.bones["bone_0"].lock_location = (True,) * 3
    return rig, "bone_29"


CASES: dict[str, Callable[[], Made]] = {
    "fk": lambda: generated("hand_fk.L", 1.0, 1.2),
    "straight": lambda: generated("hand_fk.L", 1.0),
    "ik": lambda: generated("hand_ik.L", 0.0),
    "pins": lambda: standing("hand_ik.L", 0.0),
    "pins-fk": lambda: standing("hand_fk.L", 1.0, 1.2),
    "head": nodding,
    "human": human,
    "balance": balance,
    "spider": spider,
    "snake": snake,
    "hands": lambda: upright("hand.L"),
    "apart": lambda: upright("hand.L"),
    "stretched": lambda: upright("spine.006"),
    "bowed": lambda: upright("spine.006"),
}


def path(name: str, reach: float) -> list[Vector]:
    """Return the pointer's motions since the press in a case, small ones first."""
    if name in LINES:
        return [LINE * reach * k / STEPS * Vector(LINES[name]) for k in range(1, STEPS + 1)]
    circle = []
    for k in range(1, STEPS + 1):
        angle = 2.0 * math.pi * k / STEPS
        side = RADIUS * reach * math.sin(angle)
        circle.append(Vector((side, RADIUS * reach * (math.cos(angle) - 1.0), 0.5 * side)))
    return circle


def reach_of(rig: bpy.types.Object, session: Session, place: Vector) -> float:
    """The longest lever of the bones that may move, or the bone's length where it is moved alone."""
    heads = [rig.matrix_world @ rig.pose.bones[name].head for name in session.chain]
    return max([(place - head).length for head in heads] + [rig.pose.bones[session.name].length])


def least_turn(shoulder: Vector, elbow: Vector, place: Vector, move: Vector) -> float:
    """The larger quotient of upper arm and forearm of a move that the end of the arm follows exactly."""
    line, upper, lower = place - shoulder, elbow - shoulder, place - elbow
    normal = upper.cross(line).normalized()
    along, across, aside = (
        move.dot(line.normalized()),
        move.dot(normal.cross(line).normalized()),
        move.dot(normal),
    )
    at_shoulder, at_place = 1.0 / math.tan(upper.angle(line)), 1.0 / math.tan(lower.angle(line))
    first = math.hypot(at_place * along + across, aside)
    second = math.hypot(across - at_shoulder * along, aside) * lower.length / line.length
    return max(first, second) / move.length


def run(case: str, rig: bpy.types.Object, pulled: str) -> dict[str, np.ndarray]:
    """Milliseconds of our updates and of Blender's, whether points were reached, and the turns' quotients."""
    rigs.update()
    bones = rig.pose.bones
    place = rig.matrix_world @ bones[pulled].tail
    session = Session(rig, bpy.context.evaluated_depsgraph_get(), [Pulled(pulled, place)])
    reach = reach_of(rig, session, place)
    above = [bone.name for bone in (bones[session.name], *bones[session.name].parent_recursive)]
    chain = [name for name in session.chain if name in {*above, session.body}]
    seen: dict[str, list[float]] = {name: [] for name in ("ours", "blender", "reached", "turn", "least")}
    before, last = None, Vector()
    for delta in path(case, reach):
        started = time.process_time()
        session.move(delta)
        solved = time.process_time()
        rigs.update()
        seen["ours"].append(1e3 * (solved - started))
        seen["blender"].append(1e3 * (time.process_time() - solved))
        seen["reached"].append(session.is_reached())
        now = {name: bones[name].matrix.to_quaternion() for name in chain}
        moved = (delta - last).length
        for name in chain if before is not None else ():
            lever = (place + delta - rig.matrix_world @ bones[name].head).length
            angle = before[name].rotation_difference(now[name]).angle
            if lever > SHORT * reach:
                seen["turn"].append(min(angle, 2.0 * math.pi - angle) * lever / moved)
        if len(chain) == LIMB and before is not None and seen["reached"][-1] and seen["reached"][-2]:
            shoulder, elbow = (
                rig.matrix_world @ bones[name].head for name in sorted(chain, key=above.index)[:0:-1]
            )
            seen["least"].append(least_turn(shoulder, elbow, place + delta, delta - last))
        before, last = now, delta
    session.cancel()
    rigs.update()
    return {name: np.array(values or [0.0]) for name, values in seen.items()}


def measure(name: str, runs: int) -> tuple[list[str], bool]:
    """A line of the table, and whether the budget is kept."""
    bpy.ops.wm.read_homefile(use_empty=True)
    rig, pulled = CASES[name]()
    done = [run(name, rig, pulled) for _ in range(runs)]
    ours, blender = (np.min([each[key] for each in done], axis=0) for key in ("ours", "blender"))
    unit, late = float(np.median(blender)), float(np.percentile(ours, 95))
    median = float(np.median(ours))
    within = median <= FRAME and late <= LATE
    numbers = [f"{unit:.2f}", f"{median:.2f}", f"{late:.2f}", f"{median / unit:.2f}", f"{late / unit:.2f}"]
    shown = [name, str(len(rig.pose.bones)), *numbers, f"{done[0]['reached'].mean():.0%}"]
    least = f"{done[0]['least'].max():.2f}" if done[0]["least"].any() else "-"
    return [*shown, f"{done[0]['turn'].max():.2f}", least, "yes" if within else "NO"], within


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    print(machine())
    table = Table(HEADS)
    kept = []
    for name in chosen.case:
        cells, within = measure(name, chosen.runs)
        kept.append(within)
        table.row(*cells)
    return 0 if all(kept) else 1


if __name__ == "__main__":
    run_benchmark(main)
