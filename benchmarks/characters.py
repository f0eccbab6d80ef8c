"""Characters and captured motion beside Blender's own IK with its own bake, in the same process and run.

    python3 dev.py bench characters
    python3 dev.py bench characters -- --case walk captured-poles --runs 5 --clip walk.bvh

Cases, some 250 frames each:
    captured-*       a BVH clip with a moving root; hands, feet and head are to be where the clip has them
        exact            wrists, ankles, top of the head: position only
        moved            all of these raised by 3 % of the limb's length; so in the following ones
        tails            the ends of hands and feet: chains of three bones
        rotation         hands, feet and head turned as in the clip
        poles            elbows and knees bent as in the clip
        all              rotation and poles
        *-limits         knees and elbows are hinges, all else has a cone; one frame in ten is out of reach
    walk             feet stand by Plant; Blender's by IK and hips that are moved
    legs             eight legs of five bones on a body that walks
    spine            a spine shared by the head and two hands
    conflict-*       two hands that can't both have what they want, by weight, by priority (Blender: weights)
    chain-*          20 bones: long (10,000 frames), pole, rotation, slides (Blender: stretch), comfort
                     (Blender: none); position alone, and limits, are cases of `bake.py`
    biped, -poles    a figure of 16 bones that walks on the spot; hands and feet have targets
    figure           the demo's figure
    rebuilt-*        the clip on a rig of its 25 body bones: root and torso play, the limbs rest
        position, turned, limits, all       positions; rotations and poles; limits that just hold the clip
    near-*           the clip on that rig, hands raised by 3 cm: position, poles, limits

Ours: `ccd_rig.blender.bake` with default settings, without the check after it. Blender's: IK constraints
and `bpy.ops.nla.bake(visual_keying=True)` as its dialog comes, but into the current action. Where feet and
hands are to be turned, IK goes to the ankle or wrist, and Copy Rotation does the rest. Ratios are ours /
Blender's, medians of pairs, in processor time (all threads) and in wall time. A frame is reached where all
positions are within 1 mm and all rotations within half a degree; poles are no part of it. Errors are
distances from the targets over all frames. How far bends are off their poles is a mean over frames in which
the limb is not straight. The column of limits says how far outside a joint is at worst: Blender's Copy
Rotation knows no limits, and its IK has limits of another shape. Departures are from the clip, which no side
has seen where limbs rest: mean and largest of a bone in a frame. Off hinge: how far elbows and knees turn
about other axes than their bend, mean and largest. Pops are turns of a bone from a frame to the next by more
than 20 degrees and three times the clip's largest.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import _bake_characters as characters
import _bake_scenes as scenes
import bpy
import numpy as np
from _bake_captured import MOVED, captured
from _bake_pairs import Pairs, Played, measure
from _script import Table, machine, run_benchmark

FRAMES = 250
MANY = 10_000
NEAR, ALIGNED = 1e-3, 0.5  # metres and degrees within which a goal is reached
CLIP = "CCD_RIG_CLIP"  # the variable that may name the clip

RAISED = 0.03  # metres
HEADS = (
    "case                     | frames | reached | mean error, mm | worst, mm | worst, deg | pole off, deg"
    " | turn a frame, deg | limits, deg | departure, deg | off hinge, deg | pops | ratio, cpu | ratio, wall"
)


def cases(clip: Path | None) -> dict[str, Callable[[int], scenes.Shot]]:
    """Return {case: function that makes its shot for a number of frames}; captured motion needs a clip."""
    shots: dict[str, Callable[[int], scenes.Shot]] = {}
    if clip is not None:
        free = {
            "exact": {"moved": 0.0},
            "moved": {},
            "tails": {"tails": True},
            "rotation": {"rotation": True},
            "poles": {"pole": True},
            "all": {"rotation": True, "pole": True},
        }
        hard = {"limits": True, "far": 0.1}
        every = free | {f"{name}-limits": fields | hard for name, fields in list(free.items())[1:]}
        for name, fields in every.items():
            shots[f"captured-{name}"] = partial(captured, clip, **{"moved": MOVED, **fields})
        rebuilt = {
            "position": {},
            "turned": {"rotation": True, "pole": True},
            "limits": {"measured": True},
            "all": {"rotation": True, "pole": True, "measured": True},
        }
        near = {"position": {}, "poles": {"pole": True}, "limits": {"measured": True}}
        for name, fields in rebuilt.items():
            shots[f"rebuilt-{name}"] = partial(captured, clip, rebuilt=True, **fields)
        for name, fields in near.items():
            shots[f"near-{name}"] = partial(captured, clip, raised=RAISED, **fields)
    return shots | {
        "walk": characters.walk,
        "legs": characters.legs,
        "spine": characters.spine,
        "conflict-weight": partial(characters.conflict, weight=(1.0, 0.2)),
        "conflict-priority": partial(characters.conflict, weight=(1.0, 0.2), priority=(0, 1)),
        "chain-long": lambda _: scenes.chain(characters.LONG, MANY),
        "chain-pole": characters.chain_pole,
        "chain-rotation": characters.chain_rotation,
        "chain-slides": characters.chain_slides,
        "chain-comfort": characters.chain_comfort,
        "biped": characters.biped,
        "biped-poles": partial(characters.biped, poles=True),
        "figure": characters.figure,
    }


def length_of(make: Callable[[int], scenes.Shot]) -> int:
    """Return the number of frames of a case."""
    make(FRAMES)
    return bpy.context.scene.frame_end


def reached(keys: Played) -> int:
    """In how many frames all goals are."""
    return int(np.sum(np.all((keys.errors <= NEAR) & (keys.angles <= ALIGNED), axis=1)))


def _cells(name: str, frames: int, measured: Pairs) -> list[str]:
    ours, its, base = measured.our_keys, measured.its_keys, measured.base
    angles = (np.max(keys.angles) for keys in (ours, its))
    poles = [keys.poles[np.isfinite(keys.poles)] for keys in (ours, its)]
    broken = [keys.broken for keys in (ours, its)]
    return [
        name,
        str(frames),
        f"{reached(ours)} / {reached(its)}",
        " / ".join(f"{1e3 * keys.errors.mean():.3g}" for keys in (ours, its)),
        " / ".join(f"{1e3 * keys.errors.max():.3g}" for keys in (ours, its)),
        " / ".join(f"{angle:.1f}" for angle in angles) if ours.angles.any() else "",
        " / ".join(f"{each.mean():.1f}" for each in poles) if len(poles[0]) else "",
        " / ".join(f"{keys.turns.max():.1f}" for keys in (ours, its, base)),
        "" if np.isnan(broken).any() else " / ".join(f"{each:.1f}" for each in broken),
        _mean_and_largest(ours.departures, its.departures),
        _mean_and_largest(ours.off_hinges, its.off_hinges),
        f"{ours.pops} / {its.pops}",
        f"{measured.ratio_cpu:.2f}",
        f"{measured.ratio:.2f}",
    ]


def _mean_and_largest(*sides: np.ndarray) -> str:
    """Format mean and largest value of each array; empty arrays are left out."""
    return " / ".join(f"{each.mean():.2f}, {each.max():.0f}" for each in sides if each.size)


def add_clip(parser: argparse.ArgumentParser) -> None:
    """The option that names the captured motion."""
    default = os.environ.get(CLIP)
    parser.add_argument(
        "--clip",
        type=Path,
        default=Path(default) if default else None,
        help=f"BVH file with Reallusion's names, centimetres (default: ${CLIP}, or no captured motion)",
    )


def clip_of(chosen: argparse.Namespace) -> Path | None:
    """The clip, if it is there; says so in one line if it is not."""
    if chosen.clip is None or not chosen.clip.is_file():
        why = f"there is no file {chosen.clip}" if chosen.clip else f"name one with --clip or ${CLIP}"
        print(f"captured motion is left out: {why}")
        return None
    return chosen.clip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs="+", default=[], help="names, or their beginnings; default: all")
    parser.add_argument("--runs", type=int, default=3, help="pairs")
    add_clip(parser)
    chosen = parser.parse_args()
    clip = clip_of(chosen)
    known = cases(clip)
    names = [n for n in known if not chosen.case or any(n.startswith(case) for case in chosen.case)]
    if not names:
        parser.error(f"no such case; there are: {', '.join(known)}")
    with_clip = f"; {clip.name}" if clip else ""
    print(f"Blender {bpy.app.version_string}; {machine()}; {chosen.runs} pairs{with_clip}.")
    print("Ours / Blender's; turns: ours / Blender's / before the bake.\n")
    measure(partial(scenes.chain, 20, 20), 20, 1)  # what is loaded once is not counted
    table = Table(HEADS)
    ratios, pops = [], np.zeros(2, int)
    for name in names:
        frames = length_of(known[name])
        measured = measure(partial(known[name], FRAMES), frames, chosen.runs, alike=False)
        ratios.append(measured.ratio_cpu)
        pops += measured.our_keys.pops, measured.its_keys.pops
        table.row(*_cells(name, frames, measured))
    if len(ratios) > 1:
        median, worst = statistics.median(ratios), max(ratios)
        print(f"\nratio in processor time: median {median:.2f}, worst {worst:.2f}")
        print(f"pops of {len(ratios)} motions: ours {pops[0]}, Blender's {pops[1]}")
    return 0


if __name__ == "__main__":
    run_benchmark(main)
