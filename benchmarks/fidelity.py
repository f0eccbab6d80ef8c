"""Fidelity of a bake to a motion, and its dependence on irrelevant settings, beside Blender's IK.

    python3 dev.py bench fidelity
    python3 dev.py bench fidelity -- --case loop range --clip walk.bvh

Cases:
    exact    targets are where the motion has them already: how many joints move at all, and by more than 0.1;
             by how much (mean, largest)
    loop     motion and targets end as they began: the last pose to the first, largest
    range    the same frames baked alone, in chunks, after Solve: largest difference to one bake
    order    constraints in another order; each of eight legs alone: largest difference
    smooth   a straight chain of twelve bones whose target goes through its rest axis, the tutorial's tail:
             largest turn in a frame, smoothed and each frame for itself; mean departure from rest, beside
             each frame for itself

All angles are in degrees. Set-ups are those of `characters.py`, its pops too: those of a row's bakes of
all frames. In Blender's IK each frame stands for itself, so what is about ranges and
orders is measured on ours alone, but for one check that it is so.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path

import _bake_characters as characters
import _bake_scenes as scenes
import bpy
import numpy as np
from _bake_captured import MOVED, captured
from _bake_pairs import (
    Played,
    add_iks,
    add_rows,
    between,
    played,
    time_blenders,
    time_ours,
)
from _script import Table, machine, run_benchmark
from characters import FRAMES, add_clip, clip_of

from ccd_rig.blender.bake.bake import solve_current

Make = Callable[[], scenes.Shot]

HEADS = (
    "what                      | case                | ours              | Blender           "
    " | motion, or each frame alone | pops"
)
REST = np.array((1.0, 0.0, 0.0, 0.0))
GOALS = {
    "position": {},
    "rotation": {"rotation": True},
    "poles": {"pole": True},
    "all": {"rotation": True, "pole": True},
}
INSIDE = (101, 150)  # frames that are baked alone as well
CHUNK = 50  # frames
SOLVED = 60  # a frame that is solved before the bake
BONES = (5, 20, 50)  # of a free chain


table: list[Table] = []
baked: dict[str, list[int]] = {"ours": [], "Blender's": []}
"""Pops of each bake of all frames, as it is by default."""
told: dict[str, int] = dict.fromkeys(baked, 0)
"""How many of them a row has told of."""


def _row(what: str, case: str, ours: str, its: str = "", motion: str = "") -> None:
    """Print a row, with the pops of all bakes of whole motions since the row before."""
    new = {side: pops[told[side] :] for side, pops in baked.items()}
    told.update({side: len(pops) for side, pops in baked.items()})
    counts = " / ".join(str(sum(pops)) for pops in new.values() if pops)
    table[0].row(what, case, ours, its, motion, counts)


# --- bakes --------------------------------------------------------------------------------------------------


def _ours(make: Make, bake: Callable[[scenes.Shot, int], object] = time_ours) -> Played:
    """Return the playback of our bake of all frames, or of `bake` instead."""
    shot = make()
    frames = bpy.context.scene.frame_end
    bpy.context.scene.frame_set(1)
    add_rows(shot)
    bake(shot, frames)
    keys = played(shot, frames)
    if bake is time_ours:
        baked["ours"].append(keys.pops)
    return keys


def _its(make: Make, first: int = 1, last: int = 0) -> Played:
    """Return the playback of Blender's bake."""
    shot = make()
    frames = bpy.context.scene.frame_end
    bpy.context.scene.frame_set(1)
    add_iks(shot)
    time_blenders(last or frames, first)
    keys = played(shot, frames)
    if not last:
        baked["Blender's"].append(keys.pops)
    return keys


def _base(make: Make) -> Played:
    """Return the playback before a bake."""
    shot = make()
    return played(shot, bpy.context.scene.frame_end)


def _departure(keys: Played, base: Played) -> np.ndarray:
    """(F, J) degrees between two motions."""
    return np.linalg.norm(between(base.rotations, keys.rotations), axis=-1)


def _largest(a: Played, b: Played, frames: slice | None = None) -> str:
    """The largest difference between two motions in these frames, in words."""
    first, second = (keys.rotations[frames or slice(None)] for keys in (a, b))
    if np.array_equal(first, second):
        return "equal, bit for bit"
    return f"{np.max(np.linalg.norm(between(first, second), axis=-1)):.3g}"


# --- cases --------------------------------------------------------------------------------------------------


def case_exact(clip: Path | None) -> None:
    for name, fields in GOALS.items() if clip else ():
        make = partial(captured, clip, **fields)
        base = _base(make)

        def words(keys: Played, base: Played = base) -> str:
            apart = _departure(keys, base)
            changed, changed_more = (int(np.sum(np.any(apart > least, axis=0))) for least in (0.0, 0.1))
            return f"{changed} / {changed_more}; {apart.mean():.3g}; {apart.max():.3g}"

        _row("joints / by 0.1; mean; most", name, words(_ours(make)), words(_its(make)))


def case_loop(clip: Path | None) -> None:
    makes: dict[str, Make] = {
        f"{bones} bones": partial(scenes.chain, bones, int(scenes.TURN) + 1) for bones in BONES
    }
    for name, fields in GOALS.items() if clip else ():
        makes[f"captured, {name}"] = partial(captured, clip, moved=MOVED, loop=True, **fields)
    for name, make in makes.items():
        ends = [
            np.max(np.linalg.norm(between(keys.rotations[0], keys.rotations[-1]), axis=-1))
            for keys in (_ours(make), _its(make), _base(make))
        ]
        _row("last pose to first", name, *(f"{end:.3g}" for end in ends))


def case_range(clip: Path | None) -> None:
    makes: dict[str, Make] = {
        "20 bones": partial(scenes.chain, 20, FRAMES),
        "20 bones, pole": partial(characters.chain_pole, FRAMES),
        "eight legs": partial(characters.legs, FRAMES),
    }
    for name, fields in GOALS.items() if clip else ():
        makes[f"captured, {name}"] = partial(captured, clip, moved=MOVED, **fields)
    inside = slice(INSIDE[0] - 1, INSIDE[1])
    for name, make in makes.items():
        whole = _ours(make)
        alone = _ours(make, lambda shot, _: time_ours(shot, INSIDE[1], first=INSIDE[0]))
        its = _largest(_its(make), _its(make, *INSIDE), inside)
        _row("frames alone", name, _largest(whole, alone, inside), its)
        _row("in chunks", name, _largest(whole, _ours(make, _in_chunks)))
        _row("solved before", name, _largest(whole, _ours(make, _after_solve)))


def _in_chunks(shot: scenes.Shot, frames: int) -> None:
    for first in range(1, frames + 1, CHUNK):
        time_ours(shot, min(first + CHUNK - 1, frames), first=first)


def _after_solve(shot: scenes.Shot, frames: int) -> None:
    bpy.context.scene.frame_set(SOLVED)
    solve_current(bpy.context.evaluated_depsgraph_get(), shot.rig)
    time_ours(shot, frames)


def case_order(clip: Path | None) -> None:
    makes: dict[str, Make] = {
        "eight legs": partial(characters.legs, FRAMES),
        "shared spine": partial(characters.spine, FRAMES),
    }
    for name, fields in GOALS.items() if clip else ():
        makes[f"captured, {name}"] = partial(captured, clip, moved=MOVED, **fields)
    for name, make in makes.items():
        _row("constraints in reverse", name, _largest(_ours(make), _ours(partial(_reversed, make))))
    together = _ours(makes["eight legs"])
    worst = 0.0
    for number in range(8):
        alone = _ours(partial(characters.legs, FRAMES, number))
        worst = max(worst, float(_departure(alone, together)[:, 5 * number : 5 * number + 5].max()))
    _row("each leg alone", "eight legs", f"{worst:.3g}" if worst else "equal")


def _reversed(make: Make) -> scenes.Shot:
    shot = make()
    return dataclasses.replace(shot, reaches=shot.reaches[::-1])


def case_smooth(_clip: Path | None) -> None:
    for name, make in (
        ("12 bones, eight", partial(scenes.eight, 60)),
        ("tutorial's tail", partial(scenes.eight, 72, tail=True)),
    ):
        smooth, its = _ours(make), _its(make)
        lone = _ours(make, partial(time_ours, smoothness=0.0))
        _row("largest turn", name, *(f"{keys.turns.max():.1f}" for keys in (smooth, its, lone)))
        departures = [np.linalg.norm(between(REST, keys.rotations), axis=-1) for keys in (smooth, its, lone)]
        _row(
            "departure: mean; largest", name, *(f"{each.mean():.2f}; {each.max():.1f}" for each in departures)
        )


CASES: dict[str, Callable[[Path | None], None]] = {
    name.removeprefix("case_"): function
    for name, function in list(globals().items())
    if name.startswith("case_")
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    add_clip(parser)
    chosen = parser.parse_args()
    clip = clip_of(chosen)
    with_clip = f"; {clip.name}" if clip else ""
    print(f"Blender {bpy.app.version_string}; {machine()}{with_clip}. Degrees.\n")
    table.append(Table(HEADS))
    for case in chosen.case:
        CASES[case](clip)
    print(
        ", ".join(f"{side} {sum(pops)} of {len(pops)}" for side, pops in baked.items()).join(
            ("\npops of all bakes: ", "")
        )
    )
    return 0


if __name__ == "__main__":
    run_benchmark(main)
