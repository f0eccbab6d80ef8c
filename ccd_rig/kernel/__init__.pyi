"""Types of what the kernel's `__init__.py` takes from its modules, compiled or plain."""

from typing import Any

ENTRIES: tuple[tuple[str, tuple[str, ...]], ...]

LIMIT_WIDTH: int
TARGET_WIDTH: int
USE_WIDTH: int
FULL_EASING: float
LEVER: float
LONGEST: float
POLE_NOISE: float

def why_plain() -> str: ...
def atan2(y: float, x: float) -> float: ...
def cos(x: float) -> float: ...
def sin(x: float) -> float: ...

class Problem:
    joints: int
    goals: int
    rows: int
    columns: int
    moving_count: int
    def __init__(
        self, tables: dict[str, Any], reach: float, position_tolerance: float, angle_tolerance: float
    ) -> None: ...

def place_joints(
    parent: Any,
    inherits: Any,
    offsets: Any,
    rests: Any,
    rotations: Any,
    translations: Any,
    heads: Any,
    frames: Any,
) -> None: ...
def set_search(
    p: Problem,
    order: int,
    fraction: float,
    feedback: float,
    reduction: float,
    stall: float,
    most: int,
    budget: int,
    only_ccd: bool,
    stays_local: bool,
    starts_at_reference: bool,
    rounds: bool,
) -> None: ...
def solve_poses(
    p: Problem,
    rotations: Any,
    translations: Any,
    targets: Any,
    weights: Any,
    pole_angles: Any,
    offsets: Any,
    rests: Any,
    tolerances: Any,
    reference_rotations: Any,
    reference_translations: Any,
    side_rotations: Any,
    start_rotations: Any,
    start_translations: Any,
    start_is_turn: Any,
    statuses: Any,
    steps: Any,
    distances: Any,
    misses: Any,
    is_retry: bool,
) -> None: ...
def ease_limbs(
    places: Any, rests: Any, ends: Any, softs: Any, factors: Any, points: Any, limbs: Any
) -> int: ...
def soften(distances: Any, lengths: Any, softs: Any, bases: Any, apart: Any, eased: Any) -> None: ...
def write_targets(
    matrices: Any, are_local: Any, to_armature: Any, uses: Any, axes: Any, offsets: Any, targets: Any
) -> None: ...
def write_locations(shifts: Any, translations: Any, locations: Any) -> None: ...
def write_rotated(rotations: Any, vectors: Any, rotated: Any) -> None: ...
def write_units(rows: Any, units: Any) -> None: ...
def write_rotations(matrices: Any, rotations: Any, are_skewed: bool) -> None: ...
def solve_two_bones(
    p: Problem,
    rotations: Any,
    translations: Any,
    offsets: Any,
    rests: Any,
    target: Any,
    pole: Any,
    pole_angle: float,
    soft: float,
    extension: float,
    part: float,
    keeps_limited: bool,
) -> None: ...
def solve_target_triangles(
    p: Problem,
    rotations: Any,
    translations: Any,
    offsets: Any,
    rests: Any,
    target: Any,
    omegas: Any,
) -> None: ...
def measure_placed(
    p: Problem, heads: Any, frames: Any, targets: Any, pole_angles: Any, distances: Any, misses: Any
) -> None: ...
def carry_departures(base: Any, moves: Any, joints: Any, rows: Any, turned: Any, carried: Any) -> None: ...
def sum_departures(
    p: Problem,
    base: Any,
    shifts: Any,
    moves: Any,
    joints: Any,
    before: Any,
    after: Any,
    smoothness: Any,
    turned: Any,
    rows: Any,
    rotations: Any,
    translations: Any,
    sums: Any,
) -> None: ...
def sweep_departures(
    turned: Any,
    moves: Any,
    before: Any,
    after: Any,
    smoothness: Any,
    relaxes: bool,
    rows: Any,
    swept: Any,
) -> None: ...
def write_departures(base: Any, moves: Any, joints: Any, rows: Any, rotations: Any, turned: Any) -> None: ...
def write_largest_angles(a: Any, b: Any, largest: Any) -> None: ...
def evaluate_spline(knots: Any, angles: Any, values: Any, slopes: Any) -> None: ...
def measure_bend(points: Any, axis: Any, scale: float, bend: Any) -> None: ...
def evaluate_at(
    p: Problem, rotations: Any, translations: Any, targets: Any, residual: Any, slope: Any
) -> None: ...
def project_rotation(
    row: Any, w: float, x: float, y: float, z: float
) -> tuple[float, float, float, float] | None: ...
def nearest_of_many(rows: Any, numbers: Any, rotations: Any, nearest: Any, outside: Any) -> int: ...
def borders_at(row: Any, rotation: Any, margin: float, normals: Any) -> int: ...
