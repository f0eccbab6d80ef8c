"""The kernel's entry points, called with arrays: random problems, and tables that nobody should give it.

A hostile case is a sound one with a few things spoilt: sizes, types, indices, numbers. It is fine if it is
refused by a ValueError or TypeError that names what is wrong. Else results have to be finite and inside their
limits, as those of sound cases. Faults are a crash of the process, an index that a variant of the module
finds out of range, a sanitizer's report, and a case that takes too long.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.machinery
import importlib.util
import math
import os
import random
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from devtools.fuzz import Outcome, watch

MODULE = "CCD_RIG_FUZZED_KERNEL"
"""The environment variable that holds the path of the compiled module."""
SECONDS = "CCD_RIG_FUZZED_SECONDS"
"""The one that holds how long a case may compute."""
HANGS = 3.0
"""Times as long, and the process ends."""
WIDTH = 32
"""Numbers of a limit's row."""
BALANCE, WINDOW = 4, 5
LAST_STATUS = 5
"""The greatest number that says how a solve ended."""
ROWS = (3, 3, 2, 1, 3, 1)
"""Rows of the residual by kind of goal."""
LAST_WORD = 12.0
"""Passes that goals of earlier ranks may take after each of later ones."""
BOUNCES = (3, 4, 5)
"""Orders that visit each joint many times in a pass."""
MOST_WORK = 5e7
"""Products of numbers that a sound case may need for its steps: larger ones get fewer steps."""
INSIDE = 1e-5
"""Radians, or parts of the reach, that a result may be outside."""
ROUNDING = 1e-15
"""Part of a translation that may be left along a slide when what lies across is far longer."""
LONGEST_WORDS = 200
"""Letters of a refusal."""
MEMORY = 20_000
"""One seed of so many looks whether problems leave memory behind, in the variant `bounds`."""
DROPPED = 20_000
"""Problems that are made and dropped."""
GROWTH = 5e6
"""Bytes by which the process may grow meanwhile."""

REFUSALS = (ValueError, TypeError, OverflowError, BufferError)
"""OverflowError: an int beyond C's; BufferError: what is not writable, or no buffer at all."""

kernel: ModuleType
_told: list[str] = []


class Case(NamedTuple):
    """The arguments of a problem, of its search and of a solve; `spoilt` says what is wrong with them."""

    tables: dict[str, Any]
    sizes: dict[str, Any]
    search: dict[str, Any]
    arrays: dict[str, Any]
    spoilt: list[str]


def prepare() -> None:
    """Load the module, and note what its functions cannot raise."""
    global kernel
    path = os.environ[MODULE]
    name = Path(path).name.split(".")[0]
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    kernel = importlib.util.module_from_spec(spec)
    loader.exec_module(kernel)
    sys.unraisablehook = lambda what: _told.append(f"{what.exc_value!r} in {what.object}")


def run(seed: int) -> Outcome:
    """Draw a case, give it to the entry points, and judge."""
    if seed % MEMORY == 0 and not os.environ.get("LD_PRELOAD"):
        return _run_memory()
    watch(HANGS * _longest())
    try:
        return _run(seed)
    finally:
        watch(0.0)


POSES = ("rotations", "translations", "targets")


def _longest() -> float:
    """Seconds that a case may compute."""
    return float(os.environ.get(SECONDS, "2"))


def _run_memory() -> Outcome:
    """Make and drop problems: the process must not grow. Some are refused, some solve a pose."""
    outcome, rng = Outcome("memory"), random.Random(1)
    cases: list[Case] = []
    while len(cases) < 4:
        case = _case(rng)
        if len(case.tables["parent"]) in (1, 2) and len(case.tables["goal_kind"]) < 3:
            cases.append(case)
    for count in (2000, DROPPED):  # first what is kept once and for all
        before = _resident()
        for number in range(count):
            case = cases[number % 4]
            problem = kernel.Problem(case.tables, **case.sizes)
            if number % 16 < 4:
                kernel.set_search(problem, *case.search.values())
                kernel.solve_poses(problem, *case.arrays.values(), True)
                with contextlib.suppress(ValueError):
                    kernel.Problem({**case.tables, "serves": b""}, **case.sizes)
        growth = _resident() - before
    if growth > GROWTH:
        outcome.faults.append(f"{DROPPED} problems leave {growth / 1e6:.1f} MB behind")
    return outcome


def _resident() -> float:
    """Bytes of this process that are in memory; without Linux's /proc the most there ever were."""
    gc.collect()
    if Path("/proc/self/statm").exists():
        return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    try:
        import resource
    except ImportError:
        return 0.0
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # bytes on macOS


def _run(seed: int) -> Outcome:
    rng = random.Random(seed)
    outcome = Outcome("sound")
    _told.clear()
    started = time.thread_time()
    if rng.random() < 0.15:
        _run_limits(rng, outcome)
    elif rng.random() < 0.03:
        _run_unready(rng, outcome)
    elif rng.random() < 0.15:
        _run_closed_forms(rng, outcome)
    else:
        _run_problem(rng, outcome)
    took = time.thread_time() - started
    if took > _longest():
        outcome.faults.append(f"took {took:.1f} s")
    outcome.faults += [f"told, not raised: {words}" for words in _told[:3]]
    return outcome


def _run_problem(rng: random.Random, outcome: Outcome) -> None:
    case = _case(rng)
    if rng.random() < 0.6:
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            _spoil(rng, case)
        outcome.kind = "hostile"
    with np.errstate(all="ignore"):
        _call(outcome, case, lambda: _solve(rng, case, outcome))


def _call(outcome: Outcome, case: Case, action: Callable[[], None]) -> None:
    """Let something be done that may be refused if something is spoilt."""
    try:
        action()
    except REFUSALS as error:
        words = str(error)
        outcome.note(words)
        if not case.spoilt:
            outcome.faults.append(f"a sound case is refused: {words[:200]}")
        elif not 0 < len(words) <= LONGEST_WORDS:
            outcome.faults.append(f"a refusal of {len(words)} letters")
        outcome.kind = f"{outcome.kind}, refused"
        return
    if case.spoilt:
        outcome.faults = [f"{each} (spoilt: {', '.join(case.spoilt)})" for each in outcome.faults]
        outcome.kind = f"{outcome.kind}, solved"


def _solve(rng: random.Random, case: Case, outcome: Outcome) -> None:
    problem = kernel.Problem(case.tables, **case.sizes)
    kernel.set_search(problem, *case.search.values())
    shifts = [np.array(case.arrays[name]) for name in ("translations", "reference_translations")]
    kernel.solve_poses(problem, *case.arrays.values(), False)
    longest = max(float(np.abs(each).max(initial=0.0)) for each in shifts)
    results = ("rotations", "translations", "distances", "misses")
    outcome.note(*(np.asarray(case.arrays[name]).tolist() for name in results))
    _judge(case, problem, outcome, "", longest)
    if rng.random() < 0.5:
        kernel.solve_poses(problem, *case.arrays.values(), True)
        outcome.note(*(np.asarray(case.arrays[name]).tolist() for name in results))
        _judge(case, problem, outcome, "going on: ", longest)
    kernel.set_search(problem, *{**case.search, "rounds": True}.values())
    kernel.solve_poses(problem, *case.arrays.values(), True)
    outcome.note(*(np.asarray(case.arrays[name]).tolist() for name in results))
    _sum(rng, case, problem, outcome)
    residual, slope = np.zeros(problem.rows), np.zeros((problem.rows, problem.columns))
    poses = [np.asarray(case.arrays[name])[:1] for name in POSES]
    if len(poses[0]):
        kernel.evaluate_at(problem, *poses, residual, slope)
        if not (np.isfinite(residual).all() and np.isfinite(slope).all()):
            outcome.faults.append("residual or slope is not finite")
        short = [residual, slope]
        at = rng.randrange(2)
        short[at] = (
            short[at][:-1] if rng.random() < 0.5 or at == 0 else slope[:, : problem.columns // 2].copy()
        )
        if short[at].shape != (residual, slope)[at].shape:
            try:
                kernel.evaluate_at(problem, *poses, *short)
            except ValueError:
                pass
            except IndexError:
                outcome.faults.append("evaluate_at does not check the sizes of its results")
            else:
                outcome.faults.append("evaluate_at writes to arrays that are too short")


def _sum(rng: random.Random, case: Case, problem: Any, outcome: Outcome) -> None:
    """Sum departures of a motion's frames, some of which are spoilt."""
    draw = np.random.default_rng(rng.randrange(2**32))
    arrays, spoilt = _frames(draw, rng, problem.joints), []
    if rng.random() < 0.5:
        _spoil_array(rng, arrays, spoilt)
    try:
        kernel.sum_departures(problem, *arrays.values())
    except REFUSALS as error:
        outcome.note(str(error))
        if not (spoilt or case.spoilt):
            outcome.faults.append(f"sound frames are refused: {error}")
        return
    sums = np.asarray(arrays["sums"])
    outcome.note(sums.tolist())
    if not (spoilt or case.spoilt or (np.isfinite(sums).all() and (sums >= 0.0).all())):
        outcome.faults.append("sums are not finite, or below 0")


def _frames(draw: np.random.Generator, rng: random.Random, joints: int) -> dict[str, Any]:
    """Arrays of a motion's frames, and of poses of some of them, for a problem of some joints."""
    motion, count = _motion(draw, rng, joints), rng.choice((0, 1, 4))
    frames = len(motion["base"])
    order = "moves", "joints", "before", "after", "smoothness", "turned"
    return {
        "base": motion["base"],
        "shifts": draw.normal(size=(frames, 3 * joints)),
        **{name: motion[name] for name in order},
        "rows": draw.integers(0, frames, count).astype(np.intp),
        "rotations": _rotations(draw, (count, joints)),
        "translations": draw.normal(size=(count, 3 * joints)),
        "sums": np.zeros(count),
    }


def _judge(case: Case, problem: Any, outcome: Outcome, when: str, longest: float) -> None:
    """Return the faults of results; the longest of the shifts that were given bounds their rounding."""
    faults = outcome.faults
    arrays = {
        name: np.asarray(case.arrays[name]) for name in ("rotations", "translations", "distances", "misses")
    }
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            faults.append(f"{when}{name} are not finite")
            return
    statuses = np.asarray(case.arrays["statuses"])
    if len(statuses) and (statuses.min() < 0 or statuses.max() > LAST_STATUS):
        faults.append(f"{when}statuses {statuses.min()} to {statuses.max()}")
    width = np.asarray(case.tables["width"]).reshape(-1)
    rows = np.asarray(case.tables["limit"]).reshape(-1, WIDTH)
    moving = [i for i in range(problem.joints) if width[i]]
    if any(each.startswith("limit ") for each in case.spoilt):
        moving = []  # numbers drawn at random have no inside
    poses = len(arrays["rotations"])
    for pose in arrays["rotations"].reshape(poses, problem.joints, 4):
        for i in moving:
            nearest = kernel.project_rotation(rows[i], *pose[i])
            if nearest is not None:
                off = min(np.abs(pose[i] - nearest).max(), np.abs(pose[i] + nearest).max())
                if off > INSIDE * max(1.0, np.abs(pose[i]).max()):
                    faults.append(f"{when}joint {i} is outside its limit by {off:.1e}")
                    return
    first = np.asarray(case.tables["first_slide"]).reshape(-1)
    axes = np.asarray(case.tables["slide_axis"]).reshape(-1, 3)
    ranges = np.asarray(case.tables["slide_range"]).reshape(-1, 2)
    for i in range(problem.joints):
        for slide in range(first[i], first[i + 1]):
            if first[i + 1] - first[i] > 1:
                continue  # several slides of a joint need not be at right angles
            places = arrays["translations"].reshape(poses, problem.joints, 3)[:, i]
            along = places @ axes[slide]
            slack = INSIDE * (problem.reach + np.abs(ranges[slide]).max())
            slack += ROUNDING * longest  # of what lies across
            if len(along) and not (
                ranges[slide, 0] - slack <= along.min() and along.max() <= ranges[slide, 1] + slack
            ):
                faults.append(f"{when}joint {i} slides out of its range")
                return


def _run_closed_forms(rng: random.Random, outcome: Outcome) -> None:
    """Two bones and target triangles: the chain of a position, one pose."""
    outcome.kind = "closed form"
    case = _case(rng)
    kinds = case.tables["goal_kind"]
    if not len(kinds) or kinds[0] != 0:
        return
    joints, tables = len(case.tables["parent"]), dict(case.tables)
    tables["width"] = tables["width"] * tables["serves"][:joints]
    for name in ("slide_axis", "slide_range"):
        tables[name] = np.zeros(0)
    tables["first_slide"] = np.zeros(joints + 1, np.int32)
    draw = np.random.default_rng(rng.randrange(2**32))
    size = case.sizes["reach"]
    chain: dict[str, Any] = {
        "rotations": _rotations(draw, (1, joints)),
        "translations": np.zeros((1, 3 * joints)),
        "offsets": tables["offset"].reshape(1, -1).copy(),
        "rests": tables["rest"].reshape(1, -1).copy(),
        "target": size * draw.normal(size=(1, 3)) * rng.choice((0.0, 0.3, 1.0)),
    }
    bones: dict[str, Any] = {
        "pole": size * draw.normal(size=(rng.choice((0, 1)), 3)),
        "pole_angle": rng.choice((0.0, rng.uniform(-4.0, 4.0))),
        "soft": rng.choice((0.0, rng.random())),
        "extension": rng.choice((1.0, rng.random())),
        "part": rng.choice((0.0, 1.0, rng.random())),
        "keeps_limited": rng.random() < 0.3,
    }
    links: dict[str, Any] = {"omegas": np.full((1, joints), rng.choice((math.pi, 0.3, 0.0)))}
    if rng.random() < 0.5:
        for _ in range(rng.choice((1, 1, 3))):
            for each in (chain, chain, bones, links):
                if each is not bones or rng.random() < 0.5:
                    _spoil_array(rng, each, case.spoilt)
                else:
                    name = rng.choice([name for name in bones if name != "pole"])
                    bones[name] = rng.choice((*STRANGE, None, "long", 7))
                    case.spoilt.append(f"{name} = {bones[name]}")
        outcome.kind = "closed form, hostile"
    few = int((tables["width"] > 0).sum())
    for least, solve, more in (
        (2, kernel.solve_two_bones, bones),
        (1, kernel.solve_target_triangles, links),
    ):
        problem = kernel.Problem(tables, **case.sizes)
        arrays = {
            name: each.copy() if isinstance(each, np.ndarray) and each.flags.writeable else each
            for name, each in chain.items()
        }
        try:
            solve(problem, *arrays.values(), *more.values())
        except REFUSALS as error:
            outcome.note(str(error))
            if not case.spoilt and few >= least:
                outcome.faults.append(f"a sound chain is refused: {error}")
            continue
        if few < least:
            outcome.faults.append(f"a chain of {few} joints is solved")
        results = {
            "rotations": arrays["rotations"],
            "translations": np.zeros((1, 3 * joints)),
            "distances": np.zeros((1, 1)),
            "misses": np.zeros((1, 1)),
            "statuses": np.zeros(1, np.int32),
        }
        outcome.note(np.asarray(arrays["rotations"]).tolist())
        _judge(case._replace(tables=tables, arrays=results), problem, outcome, "closed form: ", 0.0)
    if case.spoilt:
        outcome.faults = [f"{each} (spoilt: {', '.join(case.spoilt)})" for each in outcome.faults]


def _run_unready(rng: random.Random, outcome: Outcome) -> None:
    """Problems that were never made, or whose making failed, and what is no problem."""
    outcome.kind = "unready"
    case = _case(rng)
    which = rng.randrange(5)
    problem: Any = None
    if which == 1:
        problem = kernel.Problem.__new__(kernel.Problem)
    elif which == 2:
        problem = object()
    elif which >= 3:
        # Made, and made anew with other tables, of which one is wrong.
        problem = kernel.Problem(case.tables, **case.sizes)
        kernel.set_search(problem, *case.search.values())
        other = _case(rng) if which == 3 else case
        tables = dict(other.tables)
        spoilt = rng.choice([name for name in tables if len(tables[name])] or ["rest"])
        tables[spoilt] = tables[spoilt][:-1]
        try:
            problem.__init__(tables, **other.sizes)
        except (ValueError, TypeError, IndexError):
            pass
        else:
            outcome.faults.append(f"{spoilt} is too short")
        case = other if rng.random() < 0.5 else case
    arrays, draw = dict(case.arrays), np.random.default_rng(rng.randrange(2**32))
    if which < 3:  # of no joints
        for name, values in arrays.items():
            arrays[name] = np.zeros((2, 0), values.dtype) if values.ndim == 2 else np.zeros(2, values.dtype)
        for name in ("start_rotations", "start_translations", "start_is_turn"):
            arrays[name] = arrays[name][:0]
    calls: tuple[Callable[[], Any], ...] = (
        lambda: kernel.set_search(problem, *case.search.values()),
        lambda: kernel.solve_poses(problem, *arrays.values(), False),
        lambda: kernel.solve_poses(problem, *arrays.values(), True),
        lambda: kernel.evaluate_at(
            problem,
            *[arrays[name] for name in POSES],
            np.zeros(0),
            np.zeros((0, 0)),
        ),
        lambda: kernel.sum_departures(problem, *_frames(draw, rng, len(case.tables["parent"])).values()),
    )
    for call in calls:
        try:
            call()
        except REFUSALS as error:
            outcome.note(str(error))


# Sound cases ------------------------------------------------------------------------------------------------


def _case(rng: random.Random) -> Case:
    joints = rng.choice((0, 1, 1, 2, 3, 3, 4, 5, 6, 8, 12, 20, 60, rng.randrange(300), 300))
    goals = rng.choice((1, 1, 1, 2, 2, 3, 4, 6, 10, 40, rng.randrange(1, 120)))
    if rng.random() < 0.01:
        goals = 150
    if not joints:
        goals = 0
    draw = np.random.default_rng(rng.randrange(2**32))
    size = rng.choice((1.0, 1.0, 1.0, 0.01, 100.0, 1e-5, 1e6))
    tables = _joints(rng, draw, joints, size)
    tables.update(_goals(rng, draw, tables, goals, size))
    kinds = tables["goal_kind"]
    rows = sum(ROWS[kind] for kind in kinds)
    columns = int(tables["width"].sum()) + len(tables["slide_range"]) // 2
    windows = int((kinds == WINDOW).sum())
    work = 1.0 + (6.0 + windows) * rows * rows * (rows + columns)
    order, only_ccd = rng.randrange(7), rng.random() < 0.4
    one_pass = 30.0 * joints * (joints + 10.0) * (1.0 + len(kinds))
    one_pass *= LAST_WORD if len(kinds) and tables["goal_rank"].max() > 0 else 1.0
    if order in BOUNCES and one_pass * joints > 0.1 * MOST_WORK:
        order %= 3
    work += one_pass * (0.5 * joints + 1.0 if order in BOUNCES else 1.0)
    poses = rng.choice((0, 1, 1, 1, 2, 5))
    starts = rng.choice((0, 0, 0, 1, 3))
    if work > 0.02 * MOST_WORK:
        poses, starts = min(poses, 1), 0
    most = rng.choice((0, 1, 5, 20, 100, 300))
    budget = int(max(2.0, min(4.0 * most, MOST_WORK / (work * max(poses, 1)))))
    search = {
        "order": order,
        "fraction": rng.choice((0.9, 1.0, rng.uniform(0.1, 1.3))),
        "feedback": rng.choice((0.0, 1.0)),
        "reduction": rng.choice((0.0, 0.0, 0.9)),
        "stall": rng.choice((1e-6, 0.0, 1e-3)),
        "most": most,
        "budget": rng.choice((budget, budget, 0)),
        "only_ccd": only_ccd,
        "stays_local": rng.random() < 0.1,
        "starts_at_reference": rng.random() < 0.5,
        "rounds": False,
    }
    sizes = {
        "reach": size * rng.choice((1.0, 5.0)),
        "position_tolerance": size * rng.choice((1e-3, 1e-4, 1e-9, 10.0)),
        "angle_tolerance": rng.choice((1e-3, 1e-4, 1e-9, 3.0)),
    }
    count = len(kinds)
    references, bones = rng.choice((0, poses)), rng.choice((poses, 1))
    arrays = {
        "rotations": _rotations(draw, (poses, joints)),
        "translations": size * 0.3 * draw.normal(size=(poses, 3 * joints)) * (rng.random() < 0.5),
        "targets": _targets(draw, tables, rng.choice((poses, 1)), size),
        "weights": 10.0 ** draw.uniform(-3.0, 3.0, (rng.choice((poses, 1)), count)),
        "pole_angles": draw.uniform(-4.0, 4.0, (rng.choice((poses, 1)), count)),
        "offsets": size * draw.normal(size=(bones, 3 * joints)),
        "rests": _rotations(draw, (bones, joints)),
        "tolerances": size * 10.0 ** draw.uniform(-6.0, -1.0, rng.choice((poses, 1))),
        "reference_rotations": _rotations(draw, (references, joints)),
        "reference_translations": np.zeros((references, 3 * joints)),
        "side_rotations": _rotations(draw, (rng.choice((poses, 0)), joints)),
        "start_rotations": _rotations(draw, (starts, joints)),
        "start_translations": np.zeros((starts, 3 * joints)),
        "start_is_turn": draw.integers(0, 2, (starts, joints), dtype=np.int32),
        "statuses": np.ones(poses, np.int32),
        "steps": np.zeros(poses, np.int32),
        "distances": np.zeros((poses, count)),
        "misses": np.zeros((poses, count)),
    }
    return Case(tables, sizes, search, arrays, [])


def _joints(rng: random.Random, draw: np.random.Generator, joints: int, size: float) -> dict[str, Any]:
    tree = rng.choice((0.0, 0.2, 1.0))
    parent = [rng.randrange(-1, i) if rng.random() < tree else i - 1 for i in range(joints)]
    rows = [_row(rng) for _ in range(joints)]
    moving = rng.choice((0.3, 0.9, 1.0))
    width = [(1 if _is_hinge(row) else 3) if rng.random() < moving else 0 for row in rows]
    slides = [rng.choice((1, 1, 2, 3)) if rng.random() < rng.choice((0.0, 0.2)) else 0 for _ in range(joints)]
    count = sum(slides)
    lower = -size * draw.random(count)
    ranges = np.column_stack([lower, np.where(draw.random(count) < 0.3, lower, lower + size)])
    hinges = [i for i in range(joints) if _is_hinge(rows[i])]
    couplings = rng.choice((0, 0, 0, 1, 3)) if hinges else 0
    knots = [rng.choice((2, 3, 7)) for _ in range(couplings)]
    table = [
        np.column_stack(
            [np.cumsum(0.1 + draw.random(n)) - 1.0, size * draw.normal(size=n), size * draw.normal(size=n)]
        )
        for n in knots
    ]
    stiff = rng.random() < 0.3
    mobility = np.where(stiff & (draw.random(joints) < 0.5), 0.05 + 0.9 * draw.random(joints), 1.0)
    apart = np.repeat(mobility, 3)
    metric = np.tile((1.0, 0.0, 0.0, 0.0), joints)
    if rng.random() < 0.2:
        apart, metric = 0.05 + 0.95 * draw.random(3 * joints), _rotations(draw, (1, joints))[0]
    mass = draw.random(joints) * (draw.random(joints) < 0.7)
    likes = rng.random() < 0.15
    return {
        "parent": np.array(parent, np.int32),
        "inherits": (draw.random(joints) < rng.choice((0.8, 1.0))).astype(np.int32),
        "offset": size * draw.normal(size=3 * joints) * rng.choice((1.0, 1.0, 0.0)),
        "rest": _rotations(draw, (1, joints))[0],
        "limit": np.array(rows, np.float64).reshape(-1),
        "region": np.array([_row(rng) if likes else [0.0] * WIDTH for _ in rows], np.float64).reshape(-1),
        "width": np.array(width, np.int32),
        "metric": metric,
        "mobility": apart,
        "max_step": np.where(draw.random(joints) < 0.2, 0.1, math.pi),
        "comfort": np.where(draw.random(joints) < 0.5, 0.1, 0.0) * (rng.random() < 0.1),
        "mass": mass,
        "mass_point": size * draw.normal(size=3 * joints),
        "first_slide": np.cumsum([0, *slides]).astype(np.int32),
        "slide_axis": _units(draw, count),
        "slide_range": ranges.reshape(-1),
        "coupled_joint": draw.integers(0, max(joints, 1), couplings, dtype=np.int32),
        "coupled_driver": np.array([rng.choice(hinges) for _ in range(couplings)], np.int32),
        "coupled_axis": _units(draw, couplings),
        "first_knot": np.cumsum([0, *knots]).astype(np.int32),
        "knots": np.concatenate(table).reshape(-1) if table else np.zeros(0),
    }


def _goals(
    rng: random.Random, draw: np.random.Generator, tables: dict[str, Any], goals: int, size: float
) -> dict[str, Any]:
    joints, parent = len(tables["parent"]), tables["parent"]
    kinds, ends, roots, bends, ranks = [], [], [], [], []
    most = rng.choice((1, 1, 2, 5))
    serves = np.zeros((goals, joints), np.int32)
    for k in range(goals):
        end = rng.randrange(joints)
        chain = [end]
        while parent[chain[-1]] >= 0:
            chain.append(parent[chain[-1]])
        kind = rng.choice((0, 0, 0, 1, 2, 3, BALANCE, WINDOW))
        if kind == BALANCE and not tables["mass"].sum() > 0.0:
            kind = 0
        kinds.append(kind)
        ends.append(end)
        root = rng.choice(chain)
        roots.append(root)
        bends.append(rng.choice(chain))
        ranks.append(-1 if kind == WINDOW else rng.randrange(min(most, goals)))
        serving = chain if rng.random() < 0.7 else chain[: rng.randrange(len(chain)) + 1]
        serves[k, serving if kind != BALANCE else range(joints)] = 1
    known = sorted({rank for rank in ranks if rank >= 0})
    return {
        "goal_kind": np.array(kinds, np.int32),
        "goal_joint": np.array(ends, np.int32),
        "goal_root": np.array(roots, np.int32),
        "goal_rank": np.array([known.index(rank) if rank >= 0 else -1 for rank in ranks], np.int32),
        "goal_point": size * draw.normal(size=3 * goals) * rng.choice((0.0, 1.0)),
        "goal_weight": 10.0 ** draw.uniform(-2.0, 2.0, goals) if rng.random() < 0.5 else np.ones(goals),
        "goal_axis": _units(draw, goals),
        "goal_axis_joint": np.array(bends, np.int32),
        "goal_scale": np.where(np.array(kinds) == BALANCE, 1.0, size * rng.choice((3.0, 10.0))),
        "goal_angle": draw.normal(size=goals) * rng.choice((0.0, 1.0)),
        "goal_tip": (draw.choice(3, goals, p=(0.7, 0.15, 0.15)) * (np.array(kinds) == 0)).astype(np.int32),
        "serves": serves.reshape(-1),
    }


def _targets(draw: np.random.Generator, tables: dict[str, Any], poses: int, size: float) -> Any:
    kinds = tables["goal_kind"]
    targets = size * 3.0 * draw.normal(size=(poses, len(kinds), 4))
    for k, kind in enumerate(kinds):
        if kind == 1:
            targets[:, k] = _rotations(draw, (poses, 1))
        elif kind == 2:
            targets[:, k, :3] = _units(draw, poses).reshape(-1, 3)
            targets[:, k, 3] = 0.0
        elif kind == WINDOW:
            targets[:, k, 0] = size * draw.random(poses) * 3.0
    return targets.reshape(poses, 4 * len(kinds))


def _rotations(draw: np.random.Generator, shape: tuple[int, int]) -> Any:
    """(B, 4J) of unit quaternions."""
    values = draw.normal(size=(*shape, 4))
    return (values / np.sqrt((values * values).sum(2, keepdims=True))).reshape(shape[0], 4 * shape[1])


def _units(draw: np.random.Generator, count: int) -> Any:
    """(3N) of unit vectors."""
    values = draw.normal(size=(count, 3))
    return (values / np.sqrt((values * values).sum(1, keepdims=True))).reshape(-1)


def _is_hinge(row: list[float]) -> bool:
    return row[0] == 1.0 and row[14] == 0.0


def _row(rng: random.Random) -> list[float]:
    """A row of a limit of any kind, as `ccd_rig.limits.shapes` makes it; some are reversed."""
    kind = rng.choice((0, 1, 1, 2, 3, 4))
    side, frame = 1.0, [1.0, 0.0, 0.0, 0.0]
    if kind and rng.random() < 0.2:
        side, frame = -1.0, _unit(rng, 4)
    if kind == 4:  # a hinge
        side, frame = 1.0, [1.0, 0.0, 0.0, 0.0]
    lower = rng.choice((0.0, -math.pi, rng.uniform(-7.0, 7.0)))
    upper = lower + rng.choice((0.0, 1e-6, rng.uniform(0.0, 3.0), math.pi, 2.0 * math.pi, 9.0))
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    round_ = (math.cos(0.5 * half), math.sin(0.5 * half)) if half < math.pi else (0.0, 1.0)
    rest = 0.5 * min(max(middle - 2.0 * math.pi * math.floor(middle / (2.0 * math.pi) + 0.5), lower), upper)
    radius = {1: rng.choice((1e-6, rng.uniform(0.0, 3.0), math.pi)), 4: 0.0}.get(kind, math.pi)
    cone = (math.cos(0.5 * radius), math.sin(0.5 * radius)) if radius < math.pi else (0.0, 1.0)
    axis = _unit(rng, 3)
    swings = [*axis, math.cos(0.5 * middle), math.sin(0.5 * middle), *round_, *cone]
    swings += [math.cos(rest), math.sin(rest), lower, upper]
    if kind == 0:
        numbers = []
    elif kind == 3:
        order = rng.choice(((0, 1, 2, 1.0), (1, 2, 0, 1.0), (2, 0, 1, 1.0), (0, 2, 1, -1.0), (1, 0, 2, -1.0)))
        numbers = [*order]
        for _ in range(3):
            low = rng.uniform(-4.0, 1.0)
            numbers += [low, low + rng.choice((0.0, rng.uniform(0.0, 3.0), 7.0))]
    elif kind == 2:
        numbers = swings
        away = _unit(rng, 3)
        along = sum(a * b for a, b in zip(axis, away, strict=True))
        first = [b - along * a for a, b in zip(axis, away, strict=True)]
        size = math.sqrt(sum(a * a for a in first))
        a = [each / size for each in first]
        n = axis
        b = [a[1] * n[2] - a[2] * n[1], a[2] * n[0] - a[0] * n[2], a[0] * n[1] - a[1] * n[0]]
        sides = [rng.choice((0.0, rng.uniform(0.01, math.pi), math.pi)) for _ in range(4)]
        numbers = [*swings, *a, *b, *sides]
    else:
        numbers = swings
    row = [float({4: 1}.get(kind, kind)), side, *frame, *map(float, numbers)]
    return row + [0.0] * (WIDTH - len(row))


def _unit(rng: random.Random, count: int) -> list[float]:
    values = [rng.gauss(0.0, 1.0) for _ in range(count)]
    size = math.sqrt(sum(value * value for value in values))
    return [value / size for value in values]


# What spoils them -------------------------------------------------------------------------------------------

STRANGE = (
    0.0,
    -1.0,
    -1e-9,
    5e-324,
    1e-300,
    1e-30,
    1e30,
    1e154,
    1e300,
    1.7e308,
    math.inf,
    -math.inf,
    math.nan,
)
WHOLE = (-1, -2, 0, 1, 2, 3, 4, 6, 7, 300, 2**30, 2**31 - 1, -(2**31))


def _spoil(rng: random.Random, case: Case) -> None:
    """Make one thing wrong, or at least strange."""
    kind = rng.randrange(20)
    if kind == 0:
        name = rng.choice(list(case.sizes))
        case.sizes[name] = rng.choice((*STRANGE, None, "long", [1.0], 10**400))
        case.spoilt.append(f"{name} = {str(case.sizes[name])[:20]}")
    elif kind == 1:
        name = rng.choice(list(case.search))
        value = rng.choice((*STRANGE, 0, -1, 7, 2**31 - 1, 2**63 - 1, -(2**63), 2**64, None, "often"))
        if name in ("most", "budget") and isinstance(value, int) and value > 10**6:
            case.search.update(most=rng.choice((5, value)))
        case.search[name] = value
        case.spoilt.append(f"{name} = {value}")
    elif kind < 6:
        _spoil_array(rng, case.arrays, case.spoilt)
    elif kind == 6:
        name = rng.choice(list(case.tables))
        del case.tables[name]
        case.tables[name] = rng.choice((None, [], [0.0], 3.0, "table", b"", b"12345678"))
        case.spoilt.append(f"{name} = {case.tables[name]!r}")
    else:
        _spoil_array(rng, case.tables, case.spoilt)


def _spoil_array(rng: random.Random, arrays: dict[str, Any], spoilt: list[str]) -> None:
    """Spoil one of several arrays."""
    name = rng.choice(list(arrays))
    values = arrays[name]
    if not isinstance(values, np.ndarray):
        return
    kind = rng.randrange(14)
    if kind == 0:
        arrays[name], how = values[: max(len(values) - rng.choice((1, 1, 2, 3, 4)), 0)].copy(), "short"
    elif kind == 1:
        arrays[name], how = (
            np.concatenate([values, values[-1:], values[-1:]])[: len(values) + rng.choice((1, 2))],
            "long",
        )
    elif kind == 2:
        arrays[name], how = values[:0].copy(), "empty"
    elif kind == 3:
        types = (
            np.float32,
            np.int64,
            np.int8,
            np.uint32,
            ">f8",
            ">i4",
            np.complex128,
            object,
            "S8",
            np.bool_,
        )
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of complex numbers from a change before this one
            try:
                arrays[name], how = values.astype(rng.choice(types)), "of another type"
            except ValueError:  # text from a change before this one
                return
    elif kind == 4:
        arrays[name], how = np.repeat(values, 2, axis=values.ndim - 1)[..., ::2], "not contiguous"
    elif kind == 5:
        arrays[name], how = (
            values.reshape(rng.choice(((-1, 1), (1, -1), (1, 1, -1)))) if values.size else values,
            "of another shape",
        )
    elif kind == 6:
        arrays[name] = rng.choice((None, values.tolist(), values.tobytes(), memoryview(values), 0, "array"))
        how = f"a {type(arrays[name]).__name__}"
    elif kind == 7:
        arrays[name], how = values.copy(), "read-only"
        arrays[name].setflags(write=False)
    elif values.size == 0:
        return
    else:
        flat = values.reshape(-1).copy()
        at = rng.randrange(len(flat))
        value = rng.choice(STRANGE if flat.dtype == np.float64 else WHOLE)
        if kind == 8:
            flat[:] = value
            how = f"all {value}"
        elif kind == 9 and len(flat) > 1:
            flat[:] = flat[::-1].copy()
            how = "backwards"
        elif kind == 10:
            flat[at : at + 4] = value
            how = f"{value} from {at} on"
        elif kind == 11 and flat.dtype == np.float64:
            with np.errstate(all="ignore"):
                flat *= abs(value)
            how = f"times {value}"
        else:
            flat[at] = value
            how = f"{value} at {at}"
        arrays[name] = flat.reshape(values.shape)
    spoilt.append(f"{name} {how}")


# Limits -----------------------------------------------------------------------------------------------------


def _run_limits(rng: random.Random, outcome: Outcome) -> None:
    """The small entry points: limits, bends of chains, splines, frames of a motion."""
    draw = np.random.default_rng(rng.randrange(2**32))
    kinds, count = rng.choice((0, 1, 3, 9)), rng.choice((0, 1, 3, 40))
    rows = np.array([_row(rng) for _ in range(kinds)], np.float64).reshape(-1)
    parts = rng.choice((1, max(count, 1)))
    count *= rng.choice((1, 3)) if parts == max(count, 1) else 1
    arrays: dict[str, Any] = {
        "rows": rows,
        "numbers": np.array([rng.randrange(-1, kinds) for _ in range(parts)], np.int32),
        "rotations": _rotations(draw, (1, count))[0].reshape(-1, 4).T.reshape(-1).copy(),
        "nearest": np.zeros(4 * count),
        "outside": np.zeros(count, np.uint8),
    }
    single: dict[str, Any] = {
        "row": np.array(_row(rng)),
        "rotation": np.array(_unit(rng, 4)),
        "margin": rng.choice((1e-7, 1e-4, 0.1)),
        "normals": np.zeros(9),
    }
    chain: dict[str, Any] = {
        "points": draw.normal(size=3 * rng.randrange(2, 6)),
        "axis": np.array(_unit(rng, 3)),
        "scale": rng.choice((0.0, 1e-6, 2.0)),
        "bend": np.zeros(3),
    }
    knots, angles = draw.normal(size=(rng.randrange(2, 6), 3)), rng.choice((0, 1, 7))
    knots[:, 0].sort()
    spline: dict[str, Any] = {
        "knots": knots.reshape(-1),
        "angles": draw.normal(size=angles),
        "values": np.zeros(angles),
        "slopes": np.zeros(angles),
    }
    reaches: dict[str, Any] = {
        "distances": draw.random(angles),
        "lengths": draw.random(angles),
        "softs": draw.random(angles),
        "bases": draw.random(angles),
        "apart": draw.random(angles),
        "eased": np.zeros(angles),
    }
    limb: dict[str, Any] = {
        "places": draw.normal(size=(angles, 12)),
        "rests": draw.normal(size=(angles, 3)),
        "ends": draw.normal(size=(angles, 3)),
        "softs": draw.random(angles),
        "factors": draw.random(angles),
        "points": draw.normal(size=(angles, 3)),
        "limbs": np.zeros((angles, 3)),
    }
    turned: dict[str, Any] = {
        "matrices": draw.normal(size=(angles, 9)),
        "rotations": np.zeros((angles, 4)),
        "are_skewed": rng.random() < 0.5,
    }
    units: dict[str, Any] = {"rows": draw.normal(size=(angles, 4)), "units": np.zeros((angles, 4))}
    located: dict[str, Any] = {
        "shifts": draw.normal(size=(angles, 9)),
        "translations": draw.normal(size=(angles, 3)),
        "locations": np.zeros((angles, 3)),
    }
    carried: dict[str, Any] = {
        "rotations": draw.normal(size=(angles, 4)),
        "vectors": draw.normal(size=(angles, 3)),
        "rotated": np.zeros((angles, 3)),
    }
    swept, placed = _motion(draw, rng, rng.choice((1, 3))), _placed_targets(draw)
    spoilt: list[str] = []
    outcome.kind = "limits"
    if rng.random() < 0.6:
        for _ in range(rng.choice((1, 1, 2))):
            for group in (
                arrays,
                single,
                chain,
                spline,
                reaches,
                limb,
                turned,
                units,
                located,
                carried,
                placed,
                swept,
            ):
                _spoil_array(rng, group, spoilt)
            if rng.random() < 0.2:
                single["margin"] = rng.choice(STRANGE)
                spoilt.append("margin")
        outcome.kind = "limits, hostile"
    calls: tuple[tuple[Callable[..., Any], dict[str, Any], tuple[str, ...]], ...] = (
        (kernel.nearest_of_many, arrays, ("nearest", "outside")),
        (kernel.borders_at, single, ("normals",)),
        (_project, single, ()),
        (kernel.measure_bend, chain, ("bend",)),
        (kernel.evaluate_spline, spline, ("values", "slopes")),
        (kernel.soften, reaches, ("eased",)),
        (kernel.ease_limbs, limb, ("points", "limbs")),
        (kernel.write_rotations, turned, ("rotations",)),
        (kernel.write_units, units, ("units",)),
        (kernel.write_rotated, carried, ("rotated",)),
        (kernel.write_locations, located, ("locations",)),
        (kernel.write_targets, placed, ("matrices", "targets")),
        *(
            (getattr(kernel, function), {name: swept[name] for name in names}, (names[-1],))
            for function, names in MOTION_ARRAYS.items()
        ),
    )
    told: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        for function, group, results in calls:
            try:
                told[function.__name__] = function(*group.values())
            except REFUSALS as error:
                outcome.note(str(error))
                if not spoilt:
                    outcome.faults.append(f"sound limits are refused: {error}")
            else:
                outcome.note(told[function.__name__], *(np.asarray(group[name]).tolist() for name in results))
        total = told.get("nearest_of_many")
        noted = arrays["outside"]
        if total is not None and total != (0 if noted is None else np.asarray(noted).sum()):
            outcome.faults.append(f"{total} were outside, not as many as noted")
        if not spoilt and not np.isfinite(arrays["nearest"]).all():
            outcome.faults.append("nearest are not finite")
        if not 0 <= told.get("borders_at", 0) % 8 <= 3:
            outcome.faults.append(f"{told['borders_at'] % 8} borders")
    if spoilt:
        outcome.faults = [f"{each} (spoilt: {', '.join(spoilt)})" for each in outcome.faults]


MOTION_ARRAYS = {
    "write_departures": ("base", "moves", "joints", "rows", "poses", "departed"),
    "carry_departures": ("base", "moves", "joints", "rows", "part", "carried"),
    "sweep_departures": ("turned", "moves", "before", "after", "smoothness", "relaxes", "rows", "swept"),
    "write_largest_angles": ("part", "other", "largest"),
}
"""The entry points for frames of a motion, with the names of their arguments in `_motion`."""


def _placed_targets(draw: np.random.Generator) -> dict[str, Any]:
    """Matrices of targets, and constraints that use them."""
    frames, matrices, count = (int(draw.integers(0, most)) for most in (4, 5, 6))
    ends = (-1, matrices), (-1, matrices), (0, 3), (0, 3), (0, 2)
    return {
        "matrices": draw.normal(size=(frames, 16 * matrices)),
        "are_local": draw.integers(0, 2, matrices, dtype=np.int32),
        "to_armature": draw.normal(size=(frames if draw.random() < 0.5 else 1, 16)),
        "uses": np.stack([draw.integers(*each, count, dtype=np.int32) for each in ends], axis=1),
        "axes": draw.normal(size=(count, 3)),
        "offsets": draw.normal(size=(count, 3)),
        "targets": draw.normal(size=(frames, 16 * count)).astype(np.float32),
    }


def _motion(draw: np.random.Generator, rng: random.Random, joints: int) -> dict[str, Any]:
    """Arrays of a motion's frames and of some of them."""
    frames, some = rng.choice((1, 2, 9)), rng.choice((0, 1, 4))
    moving = rng.randrange(joints + 1)

    def rotations(rows: int, count: int) -> np.ndarray:
        return _rotations(draw, (rows, count)).reshape(rows, 4 * count).copy()

    return {
        "base": rotations(frames, joints),
        "moves": draw.integers(0, 2, (frames, moving)).astype(np.uint8),
        "joints": draw.permutation(joints)[:moving].astype(np.intp),
        "rows": draw.integers(0, frames, some).astype(np.intp),
        "poses": rotations(some, joints),
        "departed": np.zeros((some, 4 * moving)),
        "part": rotations(some, moving),
        "other": rotations(some, moving),
        "carried": np.zeros((some, 4 * joints)),
        "turned": rotations(frames, moving),
        "before": draw.integers(-1, frames, frames).astype(np.intp),
        "after": draw.integers(-1, frames, frames).astype(np.intp),
        "smoothness": draw.random(frames),
        "relaxes": rng.random() < 0.5,
        "swept": np.zeros((some, 4 * moving)),
        "largest": np.zeros(some),
    }


def _project(row: Any, rotation: Any, *_: Any) -> Any:
    return kernel.project_rotation(row, *np.asarray(rotation).reshape(-1).tolist())
