"""What the kernel's entry points refuse, compiled and plain: one line names what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mathutils import Quaternion

from ccd_rig import kernel

COMPILED = SimpleNamespace(
    **{name: getattr(kernel, name) for _, names in kernel.ENTRIES for name in names},
)
PLAIN = SimpleNamespace(
    **{
        name: getattr(import_module(f"ccd_rig.kernel.{module}"), name)
        for module, names in kernel.ENTRIES
        for name in names
    }
)
WAYS = pytest.mark.parametrize("way", [COMPILED, PLAIN], ids=["compiled", "plain"])
LIMIT = kernel.LIMIT_WIDTH
JOINTS = 2
SIZES = {"reach": 2.0, "position_tolerance": 1e-4, "angle_tolerance": 1e-3}
SEARCH = {
    "order": 1,
    "fraction": 0.9,
    "feedback": 0.0,
    "reduction": 0.0,
    "stall": 1e-6,
    "most": 20,
    "budget": 20,
    "only_ccd": False,
    "stays_local": False,
    "starts_at_reference": False,
    "rounds": False,
}


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def doubles(*values: float) -> np.ndarray:
    return np.array(values, np.float64)


def hinge_rows() -> np.ndarray:
    """The rows of a hinge about z, -1 to 1 radian, and of a joint without limit."""
    row = np.zeros(LIMIT)
    row[:3] = 1.0
    round_ = (math.cos(0.5), math.sin(0.5))
    row[6:19] = (0.0, 0.0, 1.0, 1.0, 0.0, *round_, 1.0, 0.0, 1.0, 0.0, -1.0, 1.0)
    return np.concatenate([row, np.zeros(LIMIT)])


def tables() -> dict[str, Any]:
    """A hinge and a ball joint that slides along the hinge's offset; goals of position and direction."""
    return {
        "parent": ints(-1, 0),
        "inherits": ints(1, 1),
        "offset": doubles(0, 0, 0, 0, 1, 0),
        "rest": doubles(1, 0, 0, 0, 1, 0, 0, 0),
        "limit": hinge_rows(),
        "region": np.zeros(JOINTS * LIMIT),
        "width": ints(1, 3),
        "metric": doubles(1, 0, 0, 0, 1, 0, 0, 0),
        "mobility": np.ones(6),
        "max_step": np.full(2, 4.0),
        "comfort": np.zeros(2),
        "mass": np.ones(2),
        "mass_point": np.zeros(6),
        "first_slide": ints(0, 0, 1),
        "slide_axis": doubles(0, 1, 0),
        "slide_range": doubles(-1, 1),
        "coupled_joint": ints(1),
        "coupled_driver": ints(0),
        "coupled_axis": doubles(1, 0, 0),
        "first_knot": ints(0, 2),
        "knots": doubles(-1, 0, 0, 1, 0, 0),
        "goal_kind": ints(0, 2),
        "goal_joint": ints(1, 1),
        "goal_root": ints(0, 0),
        "goal_rank": ints(0, 1),
        "goal_point": doubles(0, 1, 0, 0, 0, 0),
        "goal_weight": np.ones(2),
        "goal_axis": doubles(0, 1, 0, 0, 1, 0),
        "goal_axis_joint": ints(1, 1),
        "goal_scale": np.full(2, 2.0),
        "goal_angle": np.zeros(2),
        "goal_tip": ints(0, 0),
        "serves": ints(1, 1, 1, 1),
    }


def arrays() -> dict[str, Any]:
    """One pose, and one other start."""
    turned = doubles(1, 0, 0, 0, 1, 0, 0, 0)[None]
    return {
        "rotations": turned.copy(),
        "translations": np.zeros((1, 6)),
        "targets": doubles(1, 1, 0, 0, 1, 0, 0, 0)[None].copy(),
        "weights": np.ones((1, 2)),
        "pole_angles": np.zeros((1, 2)),
        "offsets": doubles(0, 0, 0, 0, 1, 0)[None].copy(),
        "rests": turned.copy(),
        "tolerances": np.full(1, 1e-4),
        "reference_rotations": turned.copy(),
        "reference_translations": np.zeros((1, 6)),
        "side_rotations": turned.copy(),
        "start_rotations": turned.copy(),
        "start_translations": np.zeros((1, 6)),
        "start_is_turn": np.ones((1, 2), np.int32),
        "statuses": ints(1),
        "steps": ints(0),
        "distances": np.zeros((1, 2)),
        "misses": np.zeros((1, 2)),
    }


def problem_of(way: Any, **settings: Any) -> Any:
    problem = way.Problem(tables(), **SIZES)
    way.set_search(problem, *{**SEARCH, **settings}.values())
    return problem


@WAYS
def test_sound_tables_are_solved(way: Any) -> None:
    problem, poses = problem_of(way), arrays()
    for is_retry in (False, True):
        way.solve_poses(problem, *poses.values(), is_retry)
    assert np.isfinite(poses["rotations"]).all()
    assert not np.isnan(poses["distances"]).any()
    assert (problem.joints, problem.goals, problem.rows, problem.columns) == (2, 2, 5, 5)


@WAYS
@pytest.mark.parametrize("name", tables())
def test_each_table_has_its_type_and_length(way: Any, name: str) -> None:
    sound = tables()
    kind, count = ("doubles", "ints")[sound[name].dtype == np.int32], len(sound[name])
    other = sound[name].astype(np.float32 if kind == "doubles" else np.int64)
    spread = np.repeat(sound[name], 2)[::2]
    for bad in (other, spread) if count > 1 else (other,):
        with pytest.raises((ValueError, TypeError), match=rf"^kernel: {name} must be {count} {kind}$"):
            way.Problem({**sound, name: bad}, **SIZES)
    for bad in (sound[name][:-1].copy(), np.concatenate([sound[name], sound[name]])):
        with pytest.raises(ValueError, match=r"^kernel: "):
            way.Problem({**sound, name: bad}, **SIZES)
    for bad in (None, 3.0):
        with pytest.raises(TypeError):
            way.Problem({**sound, name: bad}, **SIZES)


@WAYS
@pytest.mark.parametrize("name", [name for name, values in tables().items() if values.dtype == np.float64])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e300])
def test_each_number_of_a_table_is_finite(way: Any, name: str, number: float) -> None:
    bad = tables()
    bad[name][-1] = number
    with pytest.raises(ValueError, match=rf"^kernel: {name} must be finite, and at most 1e\+60$"):
        way.Problem(bad, **SIZES)


WRONG: tuple[tuple[str, int, float, str], ...] = (
    ("parent", 1, 2, "parent must be -1 to 1, not 2"),
    ("parent", 1, 1, "parents must come before their children"),
    ("parent", 0, -2, "parent must be -1 to 1, not -2"),
    ("inherits", 0, 2, "inherits must be 0 to 1, not 2"),
    ("rest", 0, 0.5, "rows of rest must have length 1"),
    ("limit", 0, 7, "limit has a row of an unknown kind"),
    ("region", 0, 0.5, "region has a row of an unknown kind"),
    ("width", 0, 4, "width must be 0 to 3, not 4"),
    ("width", 0, 2, "width must be 0, 1 for a hinge, or 3"),
    ("width", 1, 1, "width must be 0, 1 for a hinge, or 3"),
    ("metric", 4, 0, "rows of metric must have length 1"),
    ("mobility", 0, 0, "mobility of what moves must be 1e-30 to 1"),
    ("mobility", 5, 1.5, "mobility of what moves must be 1e-30 to 1"),
    ("max_step", 0, -1, "max_step must be 0 or more"),
    ("comfort", 0, -1, "comfort must be 0 or more"),
    ("mass", 0, -1, "mass must be 0 or more"),
    ("first_slide", 0, 1, "first_slide must go from 0 to 1"),
    ("first_slide", 2, 0, "first_slide must go from 0 to 1"),
    ("first_slide", 1, 2, "first_slide must be 0 to 1, not 2"),
    ("slide_axis", 1, 2, "rows of slide_axis must have length 1"),
    ("slide_range", 0, 2, "slide_range must rise"),
    ("coupled_joint", 0, 2, "coupled_joint must be 0 to 1, not 2"),
    ("coupled_driver", 0, -1, "coupled_driver must be 0 to 1, not -1"),
    ("coupled_driver", 0, 1, "coupled_driver must be a hinge"),
    ("coupled_axis", 0, 0, "rows of coupled_axis must have length 1"),
    ("first_knot", 1, 1, "first_knot must go from 0 to 2"),
    ("knots", 3, -1, "the angles of knots must rise"),
    ("goal_kind", 0, 6, "goal_kind must be 0 to 5, not 6"),
    ("goal_joint", 0, 2, "goal_joint must be 0 to 1, not 2"),
    ("goal_root", 0, -1, "goal_root must be 0 to 1, not -1"),
    ("goal_rank", 1, 2, "goal_rank must count from 0 without gaps"),
    ("goal_rank", 1, 3, "goal_rank must be -1 to 2, not 3"),
    ("goal_weight", 0, 0, "goal_weight must be 1e-30 or more"),
    ("goal_weight", 0, -1, "goal_weight must be 0 or more"),
    ("goal_axis", 4, 0, "goal_axis of a direction or a balance must have length 1"),
    ("goal_axis_joint", 0, 2, "goal_axis_joint must be 0 to 1, not 2"),
    ("goal_scale", 0, -1, "goal_scale must be 0 or more"),
    ("goal_tip", 0, 3, "goal_tip must be 0 to 2, not 3"),
    ("serves", 0, 2, "serves must be 0 to 1, not 2"),
)


@WAYS
@pytest.mark.parametrize(("name", "at", "number", "words"), WRONG)
def test_tables_that_do_not_fit_are_named(way: Any, name: str, at: int, number: float, words: str) -> None:
    bad = tables()
    bad[name][at] = number
    with pytest.raises(ValueError, match=r"^kernel: ") as refusal:
        way.Problem(bad, **SIZES)
    assert str(refusal.value) == f"kernel: {words}"


@WAYS
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"goal_kind": ints(5, 2)}, "goal_rank must count from 0 without gaps"),
        ({"goal_kind": ints(5, 2), "goal_rank": ints(1, 0)}, "goal_rank must be -1 for reach windows"),
        ({"goal_rank": ints(-1, 0)}, "goal_rank must count from 0 without gaps"),
        ({"goal_kind": ints(4, 2), "mass": np.zeros(2)}, "balance needs a mass"),
        ({"goal_kind": ints(4, 2), "mass": np.full(2, 5e-324)}, "balance needs a mass"),
        (
            {"goal_kind": ints(4, 2), "goal_axis": doubles(1, 1, 1, 0, 1, 0)},
            "goal_axis of a direction or a balance",
        ),
        ({"goal_joint": ints(0, 1), "goal_root": ints(1, 0)}, "goal_root must be goal_joint or an ancestor"),
        ({"parent": ints(-1, -1)}, "goal_root must be goal_joint or an ancestor"),
        ({"first_knot": ints(0, 1), "knots": doubles(0, 0, 0)}, "a coupled offset needs two knots"),
        ({"goal_joint": ints(1)}, "goal_joint must be 2 ints"),
    ],
)
def test_tables_that_contradict_each_other_are_named(way: Any, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=rf"^kernel: {words}"):
        way.Problem({**tables(), **changes}, **SIZES)


@WAYS
@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_neither_none_nor_huge(way: Any, name: str) -> None:
    for bad in (0.0, -1.0, 5e-324, 1e300, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"^kernel: reach and tolerances must be 1e-30 to 1e\+60$"):
            way.Problem(tables(), **{**SIZES, name: bad})
    for wrong in (None, "long", [1.0]):
        with pytest.raises(TypeError):
            way.Problem(tables(), **{**SIZES, name: wrong})


@WAYS
def test_a_missing_table_is_named(way: Any) -> None:
    for name in tables():
        bad = tables()
        del bad[name]
        with pytest.raises(KeyError, match=name):
            way.Problem(bad, **SIZES)


@WAYS
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"order": -1}, "unknown order of joints"),
        ({"order": 7}, "unknown order of joints"),
        ({"most": -1}, "steps must be 0 to 2147483647"),
        ({"most": 2**31}, "steps must be 0 to 2147483647"),
        ({"budget": -1}, "steps must be 0 to 2147483647"),
        ({"budget": 2**63 - 1}, "steps must be 0 to 2147483647"),
        ({"fraction": 2.1}, "settings of steps are out of range"),
        ({"fraction": math.nan}, "settings of steps are out of range"),
        ({"feedback": -0.1}, "settings of steps are out of range"),
        ({"reduction": 1.0}, "settings of steps are out of range"),
        ({"stall": math.inf}, "settings of steps are out of range"),
    ],
)
def test_settings_are_in_their_ranges(way: Any, changes: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, OverflowError)) as refusal:
        problem_of(way, **changes)
    if isinstance(refusal.value, ValueError):
        assert str(refusal.value) == f"kernel: {words}"


@WAYS
@pytest.mark.parametrize("steps", ["most", "budget"])
def test_no_step_at_all_is_allowed(way: Any, steps: str) -> None:
    problem, sound = problem_of(way, **{steps: 0}), arrays()
    way.solve_poses(problem, *sound.values(), False)
    assert sound["steps"].tolist() == [0] * len(sound["steps"])


@WAYS
@pytest.mark.parametrize("name", arrays())
def test_arrays_fit_the_problem(way: Any, name: str) -> None:
    problem, sound = problem_of(way), arrays()
    shape = list(sound[name].shape)
    shape[-1] += 1
    with pytest.raises(ValueError, match=r"^kernel: the arrays do not fit the problem$"):
        way.solve_poses(problem, *{**sound, name: np.zeros(shape, sound[name].dtype)}.values(), False)
    more = np.concatenate([sound[name]] * 3)
    with pytest.raises(ValueError, match=r"^kernel: the arrays do not fit the problem$"):
        way.solve_poses(problem, *{**sound, name: more}.values(), False)
    way.solve_poses(problem, *sound.values(), False)  # a refusal leaves the problem as it was


@WAYS
def test_results_are_rounded_to_single_precision(way: Any) -> None:
    exact, rounded = arrays(), arrays()
    for each, rounds in ((exact, False), (rounded, True)):
        each["translations"][:] = 0.1
        way.solve_poses(problem_of(way, rounds=rounds), *each.values(), True)
    for name in ("rotations", "translations"):
        assert np.array_equal(rounded[name], exact[name].astype(np.float32))
        assert not np.array_equal(rounded[name], exact[name])


UNITS = ("rotations", "rests", "reference_rotations", "side_rotations", "start_rotations")


@WAYS
@pytest.mark.parametrize(
    "name", [name for name, values in arrays().items() if values.ndim == 2 and "is_turn" not in name][:11]
)
def test_numbers_of_poses_are_finite(way: Any, name: str) -> None:
    problem, words = problem_of(way), name.replace("_", " ")
    for number in (math.nan, math.inf, -math.inf, 1e300):
        bad = arrays()
        bad[name][0, -1] = number
        with pytest.raises(ValueError, match=rf"^kernel: {words} must be finite, and at most 1e\+60$"):
            way.solve_poses(problem, *bad.values(), False)
    if name in UNITS:
        bad = arrays()
        bad[name][0, 4] = 0.5
        with pytest.raises(ValueError, match=rf"^kernel: {words} must have length 1$"):
            way.solve_poses(problem, *bad.values(), False)


@WAYS
@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_weights_are_above_0(way: Any, weight: float) -> None:
    bad = arrays()
    bad["weights"][0, 1] = weight
    with pytest.raises(ValueError, match=r"^kernel: weights must be 1e-\d+ or more$"):
        way.solve_poses(problem_of(way), *bad.values(), False)


@WAYS
@pytest.mark.parametrize("tolerance", [0.0, -1.0, math.nan, math.inf])
def test_tolerances_of_poses_are_above_0(way: Any, tolerance: float) -> None:
    bad = {**arrays(), "tolerances": np.full(1, tolerance)}
    with pytest.raises(ValueError, match=r"^kernel: tolerances must be 1e-\d+ to 1e\+60$"):
        way.solve_poses(problem_of(way), *bad.values(), False)


@WAYS
def test_targets_of_directions_have_length_1(way: Any) -> None:
    bad = arrays()
    bad["targets"][0, 4] = 2.0
    with pytest.raises(
        ValueError, match=r"^kernel: targets of orientations and directions must have length 1$"
    ):
        way.solve_poses(problem_of(way), *bad.values(), False)


@WAYS
def test_what_is_no_problem_is_refused(way: Any) -> None:
    calls: tuple[Callable[[Any], Any], ...] = (
        lambda p: way.set_search(p, *SEARCH.values()),
        lambda p: way.solve_poses(p, *arrays().values(), False),
        lambda p: way.sum_departures(p, *frames().values()),
        lambda p: way.evaluate_at(
            p, np.zeros((1, 0)), np.zeros((1, 0)), np.zeros((1, 0)), np.zeros(0), np.zeros((0, 0))
        ),
    )
    for call in calls:
        with pytest.raises(TypeError, match=r"^kernel: give a Problem that was made$"):
            call(way.Problem.__new__(way.Problem))
        for other in (None, object()):
            with pytest.raises(TypeError):
                call(other)


@WAYS
def test_a_problem_is_made_once(way: Any) -> None:
    problem = problem_of(way)
    with pytest.raises(ValueError, match=r"^kernel: a Problem is made once$"):
        problem.__init__(tables(), **SIZES)


@WAYS
def test_a_problem_whose_making_failed_is_refused(way: Any) -> None:
    problem = way.Problem.__new__(way.Problem)
    with pytest.raises(ValueError, match="serves must be 4 ints"):
        problem.__init__({**tables(), "serves": ints(1)}, **SIZES)
    with pytest.raises(TypeError, match=r"^kernel: give a Problem that was made$"):
        way.set_search(problem, *SEARCH.values())


@WAYS
def test_results_of_a_look_fit_the_problem(way: Any) -> None:
    problem, sound = problem_of(way), list(arrays().values())[:3]
    rows, columns = problem.rows, problem.columns
    way.evaluate_at(problem, *sound, np.zeros(rows), np.zeros((rows, columns)))
    results = ((rows - 1, rows, columns), (rows, rows - 1, columns), (rows, rows, columns - 1))
    for length, high, wide in results:
        with pytest.raises(ValueError, match=r"^kernel: the arrays do not fit the problem$"):
            way.evaluate_at(problem, *sound, np.zeros(length), np.zeros((high, wide)))


@WAYS
def test_limits_refuse_what_does_not_fit(way: Any) -> None:
    rows, normals = hinge_rows(), np.zeros(9)
    still = doubles(1, 0, 0, 0)
    sound = (rows, ints(0), still, np.zeros(4), np.zeros(1, np.uint8))
    bad: tuple[tuple[int, np.ndarray, str], ...] = (
        (0, rows[:-1].copy(), "incomplete, not finite or of no known kind"),
        (0, np.full(LIMIT, math.nan), "incomplete, not finite or of no known kind"),
        (0, np.full(LIMIT, 9.0), "incomplete, not finite or of no known kind"),
        (1, ints(2), "number has no row"),
        (1, ints(-2), "number has no row"),
        (1, ints(), "not as many as rotations"),
        (1, ints(0, 0), "not as many as rotations"),
        (2, np.zeros(3), "different lengths"),
        (3, np.zeros(5), "different lengths"),
    )
    for at, values, words in bad:
        with pytest.raises(ValueError, match=words):
            way.nearest_of_many(*sound[:at], values, *sound[at + 1 :])
    with pytest.raises(ValueError, match="another length"):
        way.project_rotation(rows, 1.0, 0.0, 0.0, 0.0)
    for arguments in (
        (rows, still, normals),
        (rows[:LIMIT], still[:3], normals),
        (rows[:LIMIT], still, still),
    ):
        with pytest.raises(ValueError, match="another length"):
            way.borders_at(*arguments[:2], 1e-4, arguments[2])
    with pytest.raises(ValueError, match="not finite or of no known kind"):
        way.borders_at(np.full(LIMIT, 9.0), still, 1e-4, normals)


@WAYS
def test_placed_joints_refuse_what_does_not_fit(way: Any) -> None:
    still = doubles(1, 0, 0, 0, 1, 0, 0, 0)
    sound = {
        "parent": ints(-1, 0),
        "inherits": ints(1, 1),
        "offsets": np.zeros((1, 6)),
        "rests": still.reshape(1, 8),
        "rotations": np.tile(still, (3, 1)),
        "translations": np.zeros((3, 6)),
        "heads": np.zeros((3, 6)),
        "frames": np.zeros((3, 8)),
    }
    way.place_joints(*sound.values())
    assert (sound["frames"] == still).all()
    fit, order, finite = "do not fit the joints", "before their children", "must be finite"
    bad: tuple[tuple[str, np.ndarray, str], ...] = (
        ("parent", ints(-1, 1), order),
        ("parent", ints(-2, 0), order),
        ("parent", ints(-1), fit),
        ("inherits", ints(1, 1, 1), fit),
        ("offsets", np.zeros((2, 6)), fit),
        ("rests", np.zeros((1, 7)), fit),
        ("rotations", np.zeros((0, 8)), fit),
        ("translations", np.full((1, 6), math.nan), finite),
        ("rotations", np.full((3, 8), math.inf), finite),
        ("heads", np.zeros((3, 5)), fit),
        ("frames", np.zeros((2, 8)), fit),
    )
    for name, values, words in bad:
        with pytest.raises(ValueError, match=words):
            way.place_joints(*{**sound, name: values}.values())


@WAYS
def test_a_bend_refuses_what_is_no_chain(way: Any) -> None:
    points, axis, bend = doubles(0, 0, 0, 0, 1, 1, 0, 2, 0), doubles(1, 0, 0), np.zeros(3)
    way.measure_bend(points, axis, 2.0, bend)
    assert bend.tolist() == [0.0, 0.0, 1.0]
    size, finite = "two points or more", "must be finite"
    bad: tuple[tuple[Any, Any, float, Any, str], ...] = (
        (points[:3], axis, 2.0, bend, size),
        (points[:8], axis, 2.0, bend, size),
        (points, points, 2.0, bend, size),
        (points, axis, 2.0, np.zeros(2), size),
        (np.full(9, math.nan), axis, 2.0, bend, finite),
        (points, np.full(3, math.inf), 2.0, bend, finite),
        (points, axis, math.nan, bend, finite),
        (points, axis, -1.0, bend, finite),
    )
    for *arguments, words in bad:
        with pytest.raises(ValueError, match=words):
            way.measure_bend(*arguments)


@WAYS
def test_a_spline_refuses_what_is_none(way: Any) -> None:
    knots, angles, values, slopes = doubles(0, 0, 1, 1, 1, 1), doubles(-1, 0.5, 3), np.zeros(3), np.zeros(3)
    way.evaluate_spline(knots, angles, values, slopes)
    assert values.tolist() == angles.tolist()
    assert slopes.tolist() == [1.0, 1.0, 1.0]
    size, finite, rise = "two knots or more", "must be finite", "must rise"
    bad: tuple[tuple[Any, Any, Any, Any, str], ...] = (
        (knots[:3], angles, values, slopes, size),
        (knots[:5], angles, values, slopes, size),
        (knots, angles, values[:2], slopes, size),
        (knots, angles, values, np.zeros(4), size),
        (np.full(6, math.nan), angles, values, slopes, finite),
        (knots, np.full(3, math.inf), values, slopes, finite),
        (doubles(1, 0, 1, 1, 1, 1), angles, values, slopes, rise),
    )
    for *arguments, words in bad:
        with pytest.raises(ValueError, match=words):
            way.evaluate_spline(*arguments)


def chain_arrays() -> dict[str, Any]:
    """The chain of `tables` without its slide, for a closed form."""
    turned = doubles(1, 0, 0, 0, 1, 0, 0, 0)[None]
    return {
        "rotations": turned.copy(),
        "translations": np.zeros((1, 6)),
        "offsets": doubles(0, 0, 0, 0, 1, 0)[None].copy(),
        "rests": turned.copy(),
        "target": doubles(1, 0.5, 0)[None].copy(),
    }


BONES = {"pole": np.zeros((0, 3)), "angle": 0.0, "soft": 0.0, "extension": 1.0, "part": 1.0, "keeps": False}
OMEGAS = {"omegas": np.full((1, JOINTS), math.pi)}
FORMS = (("solve_two_bones", BONES), ("solve_target_triangles", OMEGAS))


def chain_problem(way: Any, **changes: Any) -> Any:
    unslid = {"first_slide": ints(0, 0, 0), "slide_axis": doubles(), "slide_range": doubles()}
    return way.Problem({**tables(), **unslid, **changes}, **SIZES)


@WAYS
@pytest.mark.parametrize(("form", "more"), FORMS)
def test_arrays_fit_the_closed_form(way: Any, form: str, more: dict[str, Any]) -> None:
    problem, sound = chain_problem(way), chain_arrays()
    solve = getattr(way, form)
    for name, values in sound.items():
        for bad in (values[:, :-1].copy(), np.concatenate([values, values])):
            with pytest.raises(ValueError, match=r"^kernel: the arrays do not fit the problem$"):
                solve(problem, *{**sound, name: bad}.values(), *more.values())
        for number in (math.nan, math.inf, 1e300):
            bad = values.copy()
            bad[0, -1] = number
            with pytest.raises(ValueError, match=r"^kernel: .* must be finite, and at most 1e\+60$"):
                solve(problem, *{**sound, name: bad}.values(), *more.values())
    solve(problem, *sound.values(), *more.values())  # a refusal leaves the problem as it was
    assert not np.array_equal(sound["rotations"], chain_arrays()["rotations"])


@WAYS
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pole": np.zeros((1, 2))}, "the arrays do not fit the problem"),
        ({"pole": np.full((1, 3), math.nan)}, "poles must be finite, and at most 1e+60"),
        ({"angle": math.inf}, "the pole's angle must be finite"),
        ({"soft": 1.1}, "parts of a chain or turn must be 0 to 1"),
        ({"extension": math.nan}, "parts of a chain or turn must be 0 to 1"),
        ({"part": -0.1}, "parts of a chain or turn must be 0 to 1"),
    ],
)
def test_options_of_two_bones_are_in_their_ranges(way: Any, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=r"^kernel: ") as refusal:
        way.solve_two_bones(chain_problem(way), *chain_arrays().values(), *{**BONES, **changes}.values())
    assert str(refusal.value) == f"kernel: {words}"


@WAYS
def test_closed_forms_need_joints_that_turn_and_move_the_point(way: Any) -> None:
    chain = chain_arrays().values()
    with pytest.raises(ValueError, match=r"^kernel: a closed form needs a position and 2 joints that move$"):
        way.solve_two_bones(chain_problem(way, width=ints(1, 0)), *chain, *BONES.values())
    with pytest.raises(ValueError, match=r"^kernel: a closed form needs a position and 1 joints that move$"):
        way.solve_target_triangles(chain_problem(way, goal_kind=ints(2, 0)), *chain, *OMEGAS.values())
    with pytest.raises(ValueError, match=r"^kernel: the joints of a closed form must turn"):
        way.solve_two_bones(chain_problem(way, serves=ints(1, 0, 1, 1)), *chain, *BONES.values())
    with pytest.raises(ValueError, match=r"^kernel: omega must be finite, and 0 or more$"):
        way.solve_target_triangles(chain_problem(way), *chain, np.full((1, 2), math.nan))


@WAYS
def test_softness_is_as_many_and_finite(way: Any) -> None:
    with pytest.raises(ValueError, match=r"^kernel: distances, lengths and softness must be as many$"):
        way.soften(np.ones(2), np.ones(2), np.ones(1), np.ones(2), np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match=r"^kernel: distances, lengths and softness must be finite"):
        way.soften(np.ones(1), np.ones(1), np.full(1, math.nan), np.ones(1), np.ones(1), np.ones(1))


LIMB = {
    "places": np.ones((2, 9)),
    "rests": np.ones((2, 3)),
    "ends": np.ones((2, 3)),
    "softs": np.ones(2),
    "factors": np.ones(2),
    "points": np.ones((2, 3)),
    "limbs": np.ones((2, 3)),
}


@WAYS
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("places", np.ones((2, 3))),
        ("places", np.ones((2, 8))),
        ("places", np.ones((1, 9))),
        ("rests", np.ones((2, 4))),
        ("rests", np.ones((1, 3))),
        ("ends", np.ones((2, 4))),
        ("ends", np.ones((1, 3))),
        ("softs", np.ones(3)),
        ("factors", np.ones(3)),
        ("points", np.ones((3, 3))),
        ("points", np.ones((1, 3))),
        ("limbs", np.ones((2, 2))),
        ("places", np.full((2, 9), math.nan)),
        ("rests", np.full((2, 3), math.nan)),
        ("ends", np.full((2, 3), math.inf)),
        ("points", np.full((2, 3), math.nan)),
        ("softs", np.full(2, math.nan)),
        ("factors", np.full(2, math.inf)),
    ],
)
def test_limbs_fit_their_targets(way: Any, name: str, values: Any) -> None:
    way.ease_limbs(*LIMB.values())
    with pytest.raises(ValueError, match=r"^kernel: "):
        way.ease_limbs(*{**LIMB, name: values}.values())


@WAYS
def test_matrices_fit_their_rotations(way: Any) -> None:
    for matrices, rotations in ((8, (2, 4)), (9, (2, 3)), (9, (1, 4))):
        with pytest.raises(ValueError, match=r"^kernel: matrices and rotations must be as many$"):
            way.write_rotations(np.ones((2, matrices)), np.ones(rotations), True)


TARGETS = {
    "matrices": np.tile(np.eye(4).ravel(), (2, 3)),
    "are_local": ints(0, 1, 0),
    "to_armature": np.eye(4).reshape(1, 16),
    "uses": np.array([[0, 2, 1, 0, 0], [1, -1, 2, 2, 1], [-1, -1, 0, 1, 0]], np.int32),
    "axes": np.ones((3, 3)),
    "offsets": np.ones((3, 3)),
    "targets": np.zeros((2, 48), np.float32),
}


@WAYS
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("matrices", np.ones((1, 48))),
        ("matrices", np.ones((2, 32))),
        ("are_local", ints(0, 1)),
        ("to_armature", np.ones((3, 16))),
        ("to_armature", np.ones((1, 12))),
        ("uses", np.zeros((3, 4), np.int32)),
        ("uses", np.zeros((2, 5), np.int32)),
        ("axes", np.ones((3, 2))),
        ("axes", np.ones((2, 3))),
        ("offsets", np.ones((3, 4))),
        ("offsets", np.ones((4, 3))),
        ("targets", np.zeros((2, 47), np.float32)),
        ("targets", np.zeros((3, 48), np.float32)),
        *(
            ("uses", np.array([[0, 2, 1, 0, 0], row, row], np.int32))
            for row in ((3, -1, 0, 0, 0), (-2, -1, 0, 0, 0), (0, 3, 0, 0, 0), (0, -2, 0, 0, 0))
        ),
        *(
            ("uses", np.array([[0, 2, 1, 0, 0], row, row], np.int32))
            for row in ((0, -1, 3, 0, 0), (0, -1, -1, 0, 0), (0, -1, 0, 3, 0), (0, -1, 0, -1, 0))
        ),
    ],
)
def test_targets_fit_their_matrices(way: Any, name: str, values: Any) -> None:
    way.write_targets(*(each.copy() for each in TARGETS.values()))
    with pytest.raises(ValueError, match=r"^kernel: the (arrays do not fit the|uses of) targets"):
        way.write_targets(*(each.copy() for each in {**TARGETS, name: values}.values()))


FRAMES: dict[str, Any] = {
    "base": np.tile(doubles(1, 0, 0, 0), (3, 2)),
    "moves": np.ones((3, 1), np.uint8),
    "joints": np.array([1]),
    "rows": np.array([2, 0]),
    "poses": np.tile(doubles(1, 0, 0, 0), (2, 2)),
    "turned": np.tile(doubles(1, 0, 0, 0), (3, 1)),
    "part": np.tile(doubles(1, 0, 0, 0), (2, 1)),
    "before": np.array([-1, 0, 1]),
    "after": np.array([1, 2, -1]),
    "smoothness": np.ones(3),
    "relaxes": True,
    "numbers": np.zeros(2),
}
"""Frames of a motion: three frames of two joints, one of which moves, and two of the frames."""
USES = {
    "write_departures": ("base", "moves", "joints", "rows", "poses", "part"),
    "carry_departures": ("base", "moves", "joints", "rows", "part", "poses"),
    "sweep_departures": ("turned", "moves", "before", "after", "smoothness", "relaxes", "rows", "part"),
    "write_largest_angles": ("part", "part", "numbers"),
}


def misfits(name: str, sound: np.ndarray) -> list[np.ndarray]:
    """Arrays of a motion that are too long, too wide, or have numbers out of range."""
    spoilt = [np.concatenate((sound, sound[:1]))]
    if sound.ndim == 2:
        spoilt.append(np.hstack((sound, sound)))
    if name in ("joints", "rows", "before", "after"):
        spoilt += [np.full_like(sound, -2), np.full_like(sound, 3)]
    return spoilt


@WAYS
@pytest.mark.parametrize("function", USES)
def test_frames_of_a_motion_fit_each_other(way: Any, function: str) -> None:
    def run(place: int = -1, array: Any = None) -> None:
        arrays = [copy(FRAMES[name]) for name in USES[function]]
        if array is not None:
            arrays[place] = array
        getattr(way, function)(*arrays)

    run()
    for place, name in enumerate(USES[function]):
        sound = FRAMES[name]
        if not isinstance(sound, np.ndarray):
            continue
        for each in misfits(name, sound):
            with pytest.raises(ValueError, match=r"^kernel: the arrays do not fit the motion$"):
                run(place, each)


def frames() -> dict[str, Any]:
    """Three frames of the problem's joints, of which both turn, and poses of two of the frames."""
    both = FRAMES["part"]
    return {
        "base": FRAMES["base"].copy(),
        "shifts": np.zeros((3, 6)),
        "moves": np.ones((3, 2), np.uint8),
        "joints": np.array([1, 0]),
        **{name: FRAMES[name].copy() for name in ("before", "after", "smoothness")},
        "turned": FRAMES["base"].copy(),
        "rows": FRAMES["rows"].copy(),
        "rotations": np.hstack((both, both)),
        "translations": np.zeros((2, 6)),
        "sums": np.zeros(2),
    }


@pytest.mark.parametrize("seed", range(5))
def test_summed_departures_are_squares_in_parts_of_the_mobilities(seed: int) -> None:
    """By the quaternions of mathutils: a hinge about z, and a ball joint that slides along y."""
    draw = np.random.default_rng(seed)

    def drawn(rows: int) -> tuple[Any, list[list[Quaternion]]]:
        turns = [Quaternion((0.0, 0.0, 1.0), draw.uniform(-0.9, 0.9)) for _ in range(rows)]
        balls = [Quaternion(draw.normal(size=3), draw.uniform(0.1, 1.5)) for _ in range(rows)]
        pairs = [list(pair) for pair in zip(turns, balls, strict=True)]
        return np.array([[each[:] for each in pair] for pair in pairs]).reshape(rows, 8), pairs

    metric, mobility = Quaternion(draw.normal(size=3), 1.0), draw.uniform(0.1, 1.0, 6)
    (base, starts), (turned, departures), (rotations, poses) = drawn(3), drawn(3), drawn(2)
    shifts, translations = draw.normal(size=(3, 6)), draw.normal(size=(2, 6))
    changed = {
        "mobility": mobility,
        "metric": doubles(1, 0, 0, 0, *metric),
    }
    values = frames()
    values["joints"] = np.array([0, 1])
    values["moves"][1, 1] = 0
    values["smoothness"] = doubles(1, 2, 4)
    values.update(base=base, turned=turned, rotations=rotations, shifts=shifts, translations=translations)

    def square(joint: int, rotation: Quaternion, reference: Quaternion) -> float:
        turn = rotation @ reference.inverted()
        axis, angle = turn.to_axis_angle()
        v = math.remainder(angle, 2.0 * math.pi) * axis
        if joint == 0:
            return float((v.z / mobility[0]) ** 2)
        v.rotate(metric.inverted())
        return float(sum((each / m) ** 2 for each, m in zip(v, mobility[3:], strict=True)))

    expected = []
    for r, row in enumerate(values["rows"]):
        total = ((translations[r, 4] - shifts[row, 4]) / (SIZES["reach"] * mobility[3])) ** 2
        for joint in range(2):
            total += square(joint, poses[r][joint], starts[row][joint])
            for beside in (row - 1, row + 1):
                if 0 <= beside < 3 and values["moves"][beside, joint]:
                    share = max(values["smoothness"][[row, beside]])
                    near = starts[row][joint] @ departures[beside][joint]
                    total += share * square(joint, poses[r][joint], near)
        expected.append(total)
    results = []
    for way in (COMPILED, PLAIN):
        problem = way.Problem({**tables(), **changed}, **SIZES)
        way.set_search(problem, *SEARCH.values())
        way.sum_departures(problem, *values.values())
        assert values["sums"] == pytest.approx(expected, rel=1e-5)
        results.append(values["sums"].tobytes())
    assert results[0] == results[1]


@WAYS
@pytest.mark.parametrize("name", frames())
def test_frames_whose_departures_are_summed_fit_the_problem(way: Any, name: str) -> None:
    problem = problem_of(way)
    way.sum_departures(problem, *frames().values())
    for each in misfits(name, frames()[name]):
        with pytest.raises(ValueError, match=r"^kernel: the arrays do not fit the motion$"):
            way.sum_departures(problem, *{**frames(), name: each}.values())
    way.sum_departures(problem, *frames().values())  # a refusal leaves the problem as it was


@WAYS
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("base", "base rotations"),
        ("shifts", "base translations"),
        ("turned", "departures"),
        ("rotations", "rotations"),
        ("translations", "translations"),
        ("smoothness", "smoothness"),
    ],
)
def test_numbers_whose_departures_are_summed_are_finite(way: Any, name: str, words: str) -> None:
    for number in (math.nan, math.inf, -math.inf, 1e300):
        bad = frames()
        bad[name].ravel()[:] = number
        with pytest.raises(ValueError, match=rf"^kernel: {words} must be (finite|0 to 1e\+60)"):
            way.sum_departures(problem_of(way), *bad.values())


@WAYS
def test_rows_fit_their_units_and_locations(way: Any) -> None:
    for shape in ((1, 4), (2, 3)):
        with pytest.raises(ValueError, match=r"^kernel: rows and unit rows must be as many$"):
            way.write_units(np.ones((2, 4)), np.ones(shape))
    sizes = {"shifts": (2, 9), "translations": (2, 3), "locations": (2, 3)}
    for name, size in (
        ("shifts", (2, 8)),
        ("translations", (2, 4)),
        ("locations", (2, 2)),
        ("shifts", (1, 9)),
    ):
        with pytest.raises(ValueError, match=r"^kernel: shifts, translations and locations must be as many$"):
            way.write_locations(*map(np.ones, {**sizes, name: size}.values()))
    with pytest.raises(ValueError, match=r"^kernel: shifts, translations and locations must be as many$"):
        way.write_locations(np.ones((2, 9)), np.ones((1, 3)), np.ones((2, 3)))


@WAYS
def test_rotations_fit_their_vectors(way: Any) -> None:
    sizes = {"rotations": (2, 4), "vectors": (2, 3), "rotated": (2, 3)}
    way.write_rotated(*map(np.ones, sizes.values()))
    for name in sizes:
        for size in ((2, 5), (1, sizes[name][1])):
            with pytest.raises(ValueError, match=r"^kernel: rotations and vectors must be as many$"):
                way.write_rotated(*map(np.ones, {**sizes, name: size}.values()))


@WAYS
def test_what_has_no_length_or_volume_is_no_number(way: Any) -> None:
    units, locations, turned = np.zeros((2, 4)), np.zeros((2, 3)), np.zeros((3, 4))
    way.write_units(np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 4.0]]), units)
    assert np.isnan(units[0]).all()
    assert units[1].tolist() == [0.0, 0.6, 0.0, 0.8]
    shifts = np.array([np.ones(9), 2.0 * np.eye(3).ravel()])
    way.write_locations(shifts, np.ones((2, 3)), locations)
    assert np.isnan(locations[0]).all()
    assert locations[1].tolist() == [0.5, 0.5, 0.5]
    flat = np.array([np.zeros(9), np.ones(9), [3.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, -2.0]])
    way.write_rotations(flat, turned, True)
    assert np.isnan(turned[:2]).all()
    assert not np.isnan(turned[2]).any()
