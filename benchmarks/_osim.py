"""Reads OpenSim models (.osim) and marker files (.trc): bodies, joints, coordinates and markers.

The layout of the files is that of OpenSim 2 to 4: a joint lies in its body, or in a set of its own. What is
known: Pin, Weld and Custom joints, whose functions are constants, linear ones, splines and multiples of these
(`SimmSpline`: the cubic spline of Forsythe, Malcolm and Moler 1977, whose end conditions come from divided
differences). Lengths in metres, angles in radians.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Element = ElementTree.Element

KINDS = ("CustomJoint", "PinJoint", "WeldJoint")


@dataclass(frozen=True)
class Function:
    """A function of one coordinate, or a constant.

    Attributes:
        coordinate: its name; empty for a constant.
        slope, constant: of a linear one.
        knots, values, slopes: of a spline; None for others.
    """

    coordinate: str = ""
    slope: float = 0.0
    constant: float = 0.0
    knots: Array | None = None
    values: Array | None = None
    slopes: Array | None = None

    def __call__(self, coordinates: dict[str, float]) -> float:
        if not self.coordinate:
            return self.constant
        x = coordinates[self.coordinate]
        if self.knots is None:
            return self.slope * x + self.constant
        assert self.values is not None
        assert self.slopes is not None
        k = int(np.clip(np.searchsorted(self.knots, x, side="right") - 1, 0, len(self.knots) - 2))
        inside = float(np.clip(x, self.knots[0], self.knots[-1]))
        width = self.knots[k + 1] - self.knots[k]
        t = (inside - self.knots[k]) / width
        a, b = self.values[k], self.values[k + 1]
        first, last = width * self.slopes[k], width * self.slopes[k + 1]
        value = (2 * t**3 - 3 * t**2 + 1) * a + (t**3 - 2 * t**2 + t) * first
        value += (3 * t**2 - 2 * t**3) * b + (t**3 - t**2) * last
        end = self.slopes[0] if x < inside else self.slopes[-1]
        return float(value + end * (x - inside))


@dataclass(frozen=True)
class Coordinate:
    """A degree of freedom: its range counts where it is clamped; a locked one stays at its default."""

    name: str
    default: float
    lower: float
    upper: float
    clamped: bool
    locked: bool


@dataclass(frozen=True)
class OsimJoint:
    """A joint of the model.

    Attributes:
        name: of the joint.
        parent, body: names of the bodies that it connects.
        at, turn: the joint's frame in the parent's: location, and body-fixed angles about X, Y, Z in turn.
        body_at, body_turn: the same in the body.
        rotations: (axis, function), the first about the parent's axes.
        translations: (axis, function), along the parent's axes.
    """

    name: str
    parent: str
    body: str
    at: Array
    turn: Array
    body_at: Array
    body_turn: Array
    rotations: tuple[tuple[Array, Function], ...]
    translations: tuple[tuple[Array, Function], ...]


@dataclass(frozen=True)
class Marker:
    """A point of a body."""

    name: str
    body: str
    at: Array


@dataclass(frozen=True)
class Model:
    """Model read from a file."""

    joints: tuple[OsimJoint, ...]  # parents first
    coordinates: dict[str, Coordinate]
    markers: tuple[Marker, ...]


@dataclass(frozen=True)
class Motion:
    """Markers over time: names, and (frames, markers, 3) metres; NaN where one is hidden."""

    names: tuple[str, ...]
    points: Array = field(repr=False)


def read(path: Path, markers: Path | None = None) -> Model:
    """The model of a file; `markers`: a file whose marker set counts instead of the model's own.

    Raises:
        ValueError: a kind of joint or function that is not known here, or no marker.
    """
    root = _parsed(path)
    joints = [_joint(element) for element in _joints(root)]
    coordinates = {each.name: each for each in map(_coordinate, root.iter("Coordinate"))}
    marker_set = tuple(map(_marker, (root if markers is None else _parsed(markers)).iter("Marker")))
    if not marker_set:
        raise ValueError(f"{path.name}: it has no markers; name a file with a marker set")
    return Model(_in_order(joints, {marker.body for marker in marker_set}), coordinates, marker_set)


def read_trc(path: Path) -> Motion:
    """The markers of a .trc file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    facts = dict(zip(lines[1].split("\t"), lines[2].split("\t"), strict=False))
    scale = {"mm": 1e-3, "m": 1.0}[facts["Units"].strip()]
    names = tuple(name.strip() for name in lines[3].split("\t")[2:] if name.strip())
    rows = []
    for line in lines[5:]:
        cells = line.split("\t")
        if len(cells) > 3 and cells[0].strip():
            numbers = [float(cell) if cell.strip() else np.nan for cell in cells[2 : 2 + 3 * len(names)]]
            rows.append(numbers + [np.nan] * (3 * len(names) - len(numbers)))
    return Motion(names, scale * np.array(rows).reshape(len(rows), len(names), 3))


def read_weights(path: Path) -> dict[str, float]:
    """Weights of the marker tasks of an inverse kinematics task file; those that do not apply have 0."""
    weights = {}
    for task in _parsed(path).iter("IKMarkerTask"):
        applies = _text(task, "apply") == "true"
        weights[task.get("name", "")] = float(_text(task, "weight")) if applies else 0.0
    return weights


def rotation(angles: Array) -> Array:
    """The matrix of body-fixed angles about X, Y and Z in turn."""
    x, y, z = (about(axis, angle) for axis, angle in zip(np.eye(3), angles, strict=True))
    return np.asarray(x @ y @ z)


def about(axis: Array, angle: float) -> Array:
    """The matrix of a rotation about an axis (Rodrigues)."""
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross)


def simm_slopes(x: Array, y: Array) -> Array:
    """Slopes at the knots of a SimmSpline: its third derivative at each end is that of the cubic through the
    four points there."""
    n = len(x)
    width, chord = np.diff(x), np.diff(y) / np.diff(x)
    if n == 2:
        return np.array((chord[0], chord[0]))
    # Unknowns: a sixth of the second derivatives at the knots.
    system, right = np.zeros((n, n)), np.zeros(n)
    for k in range(1, n - 1):
        system[k, k - 1 : k + 2] = width[k - 1], 2.0 * (width[k - 1] + width[k]), width[k]
        right[k] = chord[k] - chord[k - 1]
    system[0, :2], system[-1, -2:] = (-width[0], width[0]), (width[-1], -width[-1])
    if n > 3:
        third = [
            (
                (chord[k + 2] - chord[k + 1]) / (x[k + 3] - x[k + 1])
                - (chord[k + 1] - chord[k]) / (x[k + 2] - x[k])
            )
            / (x[k + 3] - x[k])
            for k in (0, n - 4)
        ]
        right[0], right[-1] = width[0] ** 2 * third[0], -(width[-1] ** 2) * third[1]
    second = np.linalg.solve(system, right)
    slopes = chord - width * (second[1:] + 2.0 * second[:-1])
    last = chord[-1] + width[-1] * (second[-2] + 2.0 * second[-1])
    return np.append(slopes, last)


def _parsed(path: Path) -> Element:
    # OpenSim writes names with colons and comments that are not well-formed: neither is of use here.
    text = re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return ElementTree.fromstring(re.sub(r"(</?\w+)::", r"\1.", text))


def _text(element: Element, name: str, default: str = "") -> str:
    child = element.find(name)
    return (child.text or "").strip() if child is not None else default


def _vector(text: str) -> Array:
    return np.array([float(part) for part in text.split()] or [0.0, 0.0, 0.0])


def _joints(root: Element) -> Iterator[tuple[Element, str]]:
    """Each joint with the body that it moves: OpenSim 2 and 3; later files say it in the joint (empty)."""
    for body in root.iter("Body"):
        for joint in body.findall("Joint/*"):
            yield joint, body.get("name", "")
    for joint in root.findall(".//JointSet/objects/*"):
        yield joint, ""


def _joint(described: tuple[Element, str]) -> OsimJoint:
    element, body = described
    if element.tag not in KINDS:
        raise ValueError(f"joint '{element.get('name')}' is a {element.tag}; known are {', '.join(KINDS)}")
    if body:
        parent = _text(element, "parent_body")
        frames = [_vector(_text(element, name)) for name in ("location_in_parent", "orientation_in_parent")]
        frames += [_vector(_text(element, name)) for name in ("location", "orientation")]
    else:
        (parent, *first), (body, *second) = (
            _frame(element, _text(element, name)) for name in ("socket_parent_frame", "socket_child_frame")
        )
        frames = [*first, *second]
    rotations, translations = [], []
    if element.tag == "PinJoint":
        (coordinate,) = element.iter("Coordinate")
        rotations.append((np.array((0.0, 0.0, 1.0)), Function(coordinate.get("name", ""), 1.0)))
    for axis in element.iter("TransformAxis"):
        into = rotations if axis.get("name", "").startswith("rotation") else translations
        into.append((_vector(_text(axis, "axis")), _function(axis)))
    name = element.get("name", "")
    return OsimJoint(name, parent, body, *frames, tuple(rotations), tuple(translations))


def _frame(joint: Element, name: str) -> tuple[str, Array, Array]:
    """The body that a frame of a joint is fixed on, and where."""
    for frame in joint.iter("PhysicalOffsetFrame"):
        if frame.get("name") == name.split("/")[-1]:
            at, turn = _vector(_text(frame, "translation")), _vector(_text(frame, "orientation"))
            return _text(frame, "socket_parent").split("/")[-1], at, turn
    return name.split("/")[-1], np.zeros(3), np.zeros(3)


def _function(axis: Element) -> Function:
    function = axis.find("function")
    element = function[0] if function is not None else next(child for child in axis if child.tag in FUNCTIONS)
    scale = 1.0
    while element.tag == "MultiplierFunction":
        scale *= float(_text(element, "scale"))
        inner = element.find("function")
        assert inner is not None
        element = inner[0]
    coordinate = _text(axis, "coordinates")
    if element.tag == "Constant":
        return Function(constant=scale * float(_text(element, "value")))
    if element.tag == "LinearFunction":
        slope, constant = scale * _vector(_text(element, "coefficients"))
        return Function(coordinate, slope, constant)
    if element.tag != "SimmSpline":
        raise ValueError(f"function {element.tag} is not known; known are {', '.join(FUNCTIONS)}")
    x, y = _vector(_text(element, "x")), scale * _vector(_text(element, "y"))
    return Function(coordinate, knots=x, values=y, slopes=simm_slopes(x, y))


FUNCTIONS = ("Constant", "LinearFunction", "MultiplierFunction", "SimmSpline")


def _coordinate(element: Element) -> Coordinate:
    lower, upper = _vector(_text(element, "range"))
    return Coordinate(
        element.get("name", ""),
        float(_text(element, "default_value", "0") or 0.0),
        float(lower),
        float(upper),
        _text(element, "clamped") == "true",
        _text(element, "locked") == "true",
    )


def _marker(element: Element) -> Marker:
    body = _text(element, "body") or _text(element, "socket_parent_frame").split("/")[-1]
    return Marker(element.get("name", ""), body, _vector(_text(element, "location")))


def _in_order(joints: list[OsimJoint], bodies: set[str]) -> tuple[OsimJoint, ...]:
    """The joints that move these bodies, parents first."""
    moving = {joint.body: joint for joint in joints}
    ordered: dict[str, OsimJoint] = {}

    def add(body: str) -> None:
        if body in moving and body not in ordered:
            add(moving[body].parent)
            ordered[body] = moving[body]

    for joint in joints:  # in the order of the file
        if joint.body in bodies:
            add(joint.body)
    return tuple(ordered.values())


# A marker fit independent of CCD Rig: the model's kinematics, and SciPy's least squares over its coordinates.


def bounds(model: Model) -> tuple[list[str], Array, Array]:
    """Names of the coordinates that move, and their bounds."""
    used = {
        function.coordinate
        for joint in model.joints
        for _, function in (*joint.rotations, *joint.translations)
        if function.coordinate
    }
    names = [name for name, each in model.coordinates.items() if name in used and not each.locked]
    lower = np.array([c.lower if (c := model.coordinates[name]).clamped else -math.inf for name in names])
    upper = np.array([c.upper if (c := model.coordinates[name]).clamped else math.inf for name in names])
    return names, lower, upper


def places(model: Model, coordinates: dict[str, float]) -> Array:
    """(markers, 3) in the ground's frame."""
    frames = {"ground": (np.eye(3), np.zeros(3))}
    for joint in model.joints:
        turn, at = frames[joint.parent]
        at = at + turn @ joint.at
        turn = turn @ rotation(joint.turn)
        for axis, function in joint.translations:
            at = at + function(coordinates) * (turn @ axis)
        for axis, function in joint.rotations:
            turn = turn @ about(axis, function(coordinates))
        turn = turn @ rotation(joint.body_turn).T
        frames[joint.body] = turn, at - turn @ joint.body_at
    return np.array([frames[m.body][1] + frames[m.body][0] @ m.at for m in model.markers])


def fit(model: Model, targets: Array, weights: Array, start: Array) -> Array:
    """The coordinates (names of `bounds`) with the least weighted square error, from a start."""
    from scipy.optimize import least_squares

    names, lower, upper = bounds(model)
    fixed = {name: each.default for name, each in model.coordinates.items()}

    def residual(values: Array) -> Array:
        fitted = places(model, fixed | dict(zip(names, values.tolist(), strict=True)))
        return np.asarray((np.sqrt(weights)[:, None] * (fitted - targets)).ravel())

    tolerances = dict.fromkeys(("ftol", "xtol", "gtol"), 1e-12)
    inside = np.clip(start, lower + 1e-9, upper - 1e-9)
    return np.asarray(least_squares(residual, inside, "3-point", (lower, upper), **tolerances).x)
