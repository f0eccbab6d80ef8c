"""How much of a motion a bake keeps, and how much it depends on what should not matter, beside Blender's IK.

    python3 dev.py bench fidelity
    python3 dev.py bench fidelity -- --case loop range --clip walk.bvh

Cases:
    exact    targets are where the motion has them already: how many joints move at all, and by more than 0.1;
             by how much (mean, largest)
    moved    targets are raised by 3 % of the limb's length: departure from the motion (mean, largest), and
             rotational jerk, the RMS third difference of rotations, in parts of the motion's own
    twist    the same, with limits as well: by how much thighs, calves and feet are twisted about themselves
             beside the motion, largest. It is asked for only where a rotation is that a foot's limit forbids
    loop     motion and targets end as they began: the last pose to the first, largest
    range    the same frames baked alone, in chunks, after Solve: largest difference to one bake
    order    constraints in another order; each of eight legs alone: largest difference
    tails    free chains, two rounds of the target: largest bend over the mean bend of any frame, largest
             twist of a bone about itself in any frame and in the last one
    ranges   limits that just hold the clip: frames reached, limits broken, largest turn per frame
    legal    the same limits, limbs that rest and a torso that plays: a legal pose meets all goals in every
             frame; frames reached, limits broken, largest turn per frame
    far      processor time of a bake with all targets out of reach, in parts of one with all in reach

All angles are in degrees. Set-ups are those of `characters.py`. In Blender's IK each frame stands for itself,
so what is about ranges and orders is measured on ours alone, but for one check that it is so. Its limits have
another shape than ours: in `ranges` it is told the same ranges, but does not hold the clip.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import bpy
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import _bake_characters as characters  # noqa: E402
import _bake_scenes as scenes  # noqa: E402
import _product as product  # noqa: E402
from _bake_captured import LIMBS, MOVED, NoClip, captured, measured_limits, resting  # noqa: E402
from _bake_pairs import (  # noqa: E402
    Cost,
    Played,
    add_iks,
    add_rows,
    between,
    machine,
    played,
    time_blenders,
    time_ours,
)
from characters import FRAMES, add_clip, clip_of, line, reached, rule  # noqa: E402

Make = Callable[[], scenes.Shot]

HEADS, WIDTHS = ("what", "case", "ours", "Blender", "motion"), (28, 20, 30, 30, 16)
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


def _row(what: str, case: str, ours: str, its: str = "", motion: str = "") -> None:
    line((what, case, ours, its, motion), WIDTHS)


# --- bakes --------------------------------------------------------------------------------------------------


def _ours(make: Make, change: Callable[[scenes.Shot, int], None] | None = None) -> Played:
    """What our bake of all frames gives, or what `change` does instead of it."""
    shot = make()
    frames = bpy.context.scene.frame_end
    bpy.context.scene.frame_set(1)
    add_rows(shot)
    if change is None:
        time_ours(shot, frames)
    else:
        change(shot, frames)
    return played(shot, frames)


def _its(make: Make, first: int = 1, last: int = 0) -> Played:
    """What Blender's bake gives."""
    return _cost_of_its(make, first, last)[1]


def _cost_of_its(make: Make, first: int = 1, last: int = 0) -> tuple[Cost, Played]:
    shot = make()
    frames = bpy.context.scene.frame_end
    bpy.context.scene.frame_set(1)
    add_iks(shot)
    return time_blenders(last or frames, first), played(shot, frames)


def _cost_of_ours(make: Make) -> tuple[Cost, Played]:
    costs: list[Cost] = []
    keys = _ours(make, lambda shot, frames: costs.append(time_ours(shot, frames)))
    return costs[0], keys


def _base(make: Make) -> Played:
    """What plays before a bake."""
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
            some, more = (int(np.sum(np.any(apart > least, axis=0))) for least in (0.0, 0.1))
            return f"{some} / {more}; {apart.mean():.3g}; {apart.max():.3g}"

        _row("joints / by 0.1; mean; most", name, words(_ours(make)), words(_its(make)))


def case_moved(clip: Path | None) -> None:
    for name, fields in GOALS.items() if clip else ():
        make = partial(captured, clip, moved=MOVED, **fields)
        base, ours, its = _base(make), _ours(make), _its(make)
        away = [_departure(keys, base) for keys in (ours, its)]
        _row("departure: mean; largest", name, *(f"{each.mean():.2f}; {each.max():.1f}" for each in away))
        jerks = [_jerk(keys) / _jerk(base) for keys in (ours, its)]
        _row("jerk, of the motion's", name, *(f"{jerk:.2f}" for jerk in jerks), f"{_jerk(base):.3g} deg")


def _jerk(keys: Played) -> float:
    """RMS third difference of rotations, degrees per frame cubed."""
    steps = between(keys.rotations[:-1], keys.rotations[1:])
    return float(np.sqrt(np.mean(np.sum(np.diff(steps, n=2, axis=0) ** 2, axis=-1))))


def case_twist(clip: Path | None) -> None:
    for name, fields in GOALS.items() if clip else ():
        for limits in (False, True):
            make = partial(captured, clip, moved=MOVED, limits=limits, **fields)
            bones = make().bones
            base = _base(make)
            cells = []
            for keys in (_ours(make), _its(make)):
                most = _spin(base.rotations, keys.rotations).max(axis=0)
                legs = zip(
                    *(most[[bones.index(b) for b in LIMBS[f"foot {side}"]]] for side in "LR"), strict=True
                )
                cells.append("; ".join(f"{max(both):.2f}" for both in reversed(list(legs))))
            _row("twist: thigh; calf; foot", f"{name}, limits" if limits else name, *cells)


def _spin(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(F, J) degrees by which bones are twisted about their length from rotations (F, J, 4) to others."""
    w = np.sum(before * after, axis=-1)
    y = before[..., 0] * after[..., 2] - after[..., 0] * before[..., 2]
    y -= before[..., 3] * after[..., 1] - before[..., 1] * after[..., 3]
    return np.degrees(2.0 * np.abs(np.arctan2(np.where(w < 0.0, -y, y), np.abs(w))))


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
    product.solve_current(bpy.context.evaluated_depsgraph_get(), shot.rig)
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


def case_tails(_clip: Path | None) -> None:
    for bones in BONES:
        make = partial(scenes.chain, bones, 2 * int(scenes.TURN) + 1)
        cells = []
        for keys in (_ours(make), _its(make)):
            w, x, y, z = np.moveaxis(keys.rotations, -1, 0)
            bend = 2.0 * np.degrees(np.arctan2(np.hypot(x, z), np.hypot(w, y)))[:, 1:]
            twist = np.degrees(np.abs(2.0 * np.arctan2(np.where(w < 0.0, -y, y), np.abs(w))))
            folded = np.max(bend.max(axis=1) / bend.mean(axis=1))
            cells.append(f"{folded:.2f}; {twist.max():.1f}; {twist[-1].max():.1f}")
        _row("bend over mean; twist; at end", f"{bones} bones", *cells)


def case_ranges(clip: Path | None) -> None:
    for name, moved in (("exact", 0.0), ("moved", MOVED)) if clip else ():
        for goals, fields in GOALS.items():
            make = partial(_measured, clip, moved=moved, **fields)
            base, ours, its = _base(make), _ours(make), _its(make)
            frames = len(base.errors)
            case = f"{name}, {goals}"
            _row("reached", case, *(f"{reached(keys) / frames:.0%}" for keys in (ours, its)))
            _row("limits broken", case, f"{ours.broken:.2g}")
            _row("largest turn", case, *(f"{keys.turns.max():.1f}" for keys in (ours, its, base)))


def case_legal(clip: Path | None) -> None:
    for goals, fields in GOALS.items() if clip else ():
        make = partial(_measured, clip, rest=True, **fields)
        motion, ours, its = _base(partial(captured, clip)), _ours(make), _its(make)
        frames = len(motion.errors)
        _row("reached", goals, *(f"{reached(keys) / frames:.1%}" for keys in (ours, its)))
        _row("limits broken", goals, f"{ours.broken:.2g}")
        _row("largest turn", goals, *(f"{keys.turns.max():.1f}" for keys in (ours, its, motion)))


def _measured(clip: Path, rest: bool = False, **fields: object) -> scenes.Shot:
    shot = captured(clip, **fields)
    shot = measured_limits(shot, bpy.context.scene.frame_end)
    return resting(shot) if rest else shot


def case_far(clip: Path | None) -> None:
    makes: dict[str, tuple[Make, Make]] = {}
    for name, limits in (("20 bones", (None,)), ("20 bones, cones", (scenes.cone(30.0),))):
        near = partial(scenes.chain, 20, FRAMES, limits)
        makes[name] = (near, partial(_beyond, near))
    for name, fields in GOALS.items() if clip else ():
        near = partial(captured, clip, **fields)
        makes[f"captured, {name}"] = (near, partial(near, far=1.0))
    for name, (near, far) in makes.items():
        cells = []
        for side in (_cost_of_ours, _cost_of_its):
            (cheap, _), (dear, keys) = side(near), side(far)
            cells.append(f"{dear.cpu / cheap.cpu:.1f}" if not reached(keys) else "some are reached")
        _row("cost, out of reach", name, *cells)


def _beyond(make: Make) -> scenes.Shot:
    """All targets three times as far away."""
    shot = make()
    centre = bpy.data.objects.new("Centre", None)
    bpy.context.scene.collection.objects.link(centre)
    centre.scale = (3.0, 3.0, 3.0)
    for reach in shot.reaches:
        reach.target.parent = centre
    return shot


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
    product.register()
    try:
        clip = clip_of(chosen)
        with_clip = f"; {clip.name}" if clip else ""
        print(f"Blender {bpy.app.version_string}; {machine()}{with_clip}. Degrees.\n")
        line(HEADS, WIDTHS)
        rule(WIDTHS)
        for case in chosen.case:
            CASES[case](clip)
    except NoClip as problem:
        print(problem, file=sys.stderr)
        return 1
    finally:
        bpy.ops.wm.read_homefile(use_empty=True)
        product.unregister()
    return 0


if __name__ == "__main__":
    product.leave(main())
