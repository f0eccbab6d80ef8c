"""The benchmark's OpenSim reader: models of both layouts, their skeletons, and marker files."""

from __future__ import annotations

import importlib
import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from chains import FLOAT32
from mathutils import Euler, Quaternion, Vector

from ccd_rig.limits.shapes import EulerBox, Hinge
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose

NAMES = ("_osim", "_osim_skeleton")


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    folder = str(Path(__file__).resolve().parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    yield {name: importlib.import_module(name) for name in NAMES}
    sys.path.remove(folder)
    for name in NAMES:
        del sys.modules[name]


def axis(name: str, direction: str, coordinate: str = "", function: str = "") -> str:
    function = function or (
        "<LinearFunction><coefficients>1 0</coefficients></LinearFunction>"
        if coordinate
        else "<Constant><value>0</value></Constant>"
    )
    return (
        f"<TransformAxis name='{name}'><coordinates>{coordinate}</coordinates><axis>{direction}</axis>"
        f"<function>{function}</function></TransformAxis>"
    )


def coordinate(name: str, lower: float, upper: float) -> str:
    return (
        f"<Coordinate name='{name}'><default_value>0</default_value><range>{lower} {upper}</range>"
        "<clamped>true</clamped><locked>false</locked></Coordinate>"
    )


ROOT = "".join(
    [
        *(
            axis(f"rotation{n}", d, c)
            for n, d, c in ((1, "0 0 1", "a"), (2, "-1 0 0", "b"), (3, "0 1 0", "c"))
        ),
        *(axis(f"translation{n}", d, f"t{n}") for n, d in ((1, "1 0 0"), (2, "0 1 0"), (3, "0 0 1"))),
    ]
)
ROOT_RANGES = "".join(coordinate(name, -1.0, 0.8) for name in ("a", "b", "c", "t1", "t2", "t3"))
SPLINE = "<SimmSpline><x>-2 -1 -0.5 0 0.2</x><y>0.01 0.04 0.02 0 -0.01</y></SimmSpline>"
SCALED = f"<MultiplierFunction><function>{SPLINE}</function><scale>2</scale></MultiplierFunction>"
KNEE = "".join(
    [
        axis("rotation1", "0 0 1", "knee"),
        axis("rotation2", "0 1 0"),
        axis("rotation3", "1 0 0"),
        axis("translation1", "1 0 0", "knee", SPLINE),
        axis("translation2", "0 1 0", "knee", SCALED),
        axis("translation3", "0 0 1", "", "<Constant><value>0.03</value></Constant>"),
    ]
)
KNEE_RANGE = coordinate("knee", -2.0, 0.2)
ANKLE_RANGE = coordinate("ankle", -0.5, 0.5)
MARKERS = (
    ("hip", "pelvis", "0.1 0.02 0.13"),
    ("shank", "tibia", "0.02 -0.2 0.05"),
    ("toe", "foot", "0.2 -0.03 0.01"),
)


def nested() -> str:
    """The layout of OpenSim 2 and 3."""

    def body(name: str, parent: str, kind: str, frames: str, coordinates: str, transform: str) -> str:
        at, turn, own_at, own_turn = frames.split(";")
        return (
            f"<Body name='{name}'><Joint><{kind} name='to_{name}'><parent_body>{parent}</parent_body>"
            f"<location_in_parent>{at}</location_in_parent>"
            f"<orientation_in_parent>{turn}</orientation_in_parent>"
            f"<location>{own_at}</location><orientation>{own_turn}</orientation>"
            f"<CoordinateSet><objects>{coordinates}</objects></CoordinateSet>"
            f"<SpatialTransform>{transform}</SpatialTransform></{kind}></Joint></Body>"
        )

    still = "0 0 0;0 0 0;0 0 0;0 0 0"
    bodies = [
        "<Body name='ground'><Joint/></Body>",
        body("pelvis", "ground", "CustomJoint", still, ROOT_RANGES, ROOT),
        body("tibia", "pelvis", "CustomJoint", "0.1 -0.4 0;0.1 0.2 0.3;0 0 0;0 0 0", KNEE_RANGE, KNEE),
        body("foot", "tibia", "PinJoint", "0 -0.4 0;0.3 0 0;0.01 0.02 0;0 0.4 0", ANKLE_RANGE, ""),
    ]
    markers = "".join(
        f"<Marker name='{name}'><body> {on} </body><location>{at}</location></Marker>"
        for name, on, at in MARKERS
    )
    return (
        f"<OpenSimDocument Version='30000'><!-- a -- comment --><Model><BodySet><objects>{''.join(bodies)}"
        f"</objects></BodySet><MarkerSet><objects>{markers}</objects></MarkerSet></Model></OpenSimDocument>"
    )


def flat() -> str:
    """The layout of OpenSim 4."""

    def joint(name: str, parent: str, kind: str, frames: str, coordinates: str, transform: str) -> str:
        at, turn, own_at, own_turn = frames.split(";")
        return (
            f"<{kind} name='to_{name}'><socket_parent_frame>{parent}_offset</socket_parent_frame>"
            f"<socket_child_frame>{name}_offset</socket_child_frame><coordinates>{coordinates}</coordinates>"
            f"<frames><PhysicalOffsetFrame name='{parent}_offset'>"
            f"<socket_parent>/bodyset/{parent}</socket_parent><translation>{at}</translation>"
            f"<orientation>{turn}</orientation></PhysicalOffsetFrame>"
            f"<PhysicalOffsetFrame name='{name}_offset'><socket_parent>/bodyset/{name}</socket_parent>"
            f"<translation>{own_at}</translation><orientation>{own_turn}</orientation>"
            f"</PhysicalOffsetFrame></frames><SpatialTransform>{transform}</SpatialTransform></{kind}>"
        )

    still = "0 0 0;0 0 0;0 0 0;0 0 0"
    joints = [
        joint("pelvis", "ground", "CustomJoint", still, ROOT_RANGES, ROOT),
        joint("tibia", "pelvis", "CustomJoint", "0.1 -0.4 0;0.1 0.2 0.3;0 0 0;0 0 0", KNEE_RANGE, KNEE),
        joint("foot", "tibia", "PinJoint", "0 -0.4 0;0.3 0 0;0.01 0.02 0;0 0.4 0", ANKLE_RANGE, ""),
    ]
    markers = "".join(
        f"<Marker name='{name}'><socket_parent_frame>/bodyset/{on}</socket_parent_frame>"
        f"<location>{at}</location></Marker>"
        for name, on, at in MARKERS
    )
    return (
        f"<OpenSimDocument Version='40000'><Model><JointSet><objects>{''.join(joints)}</objects></JointSet>"
        f"<MarkerSet><objects>{markers}</objects></MarkerSet></Model></OpenSimDocument>"
    )


@pytest.fixture(params=[nested, flat])
def model(modules: dict[str, ModuleType], tmp_path: Path, request: pytest.FixtureRequest) -> object:
    path = tmp_path / "model.osim"
    path.write_text(request.param())
    return modules["_osim"].read(path)


def test_a_skeleton_has_slides_offsets_and_limits(modules: dict[str, ModuleType], model: object) -> None:
    skeleton = modules["_osim_skeleton"].figure(model).skeleton
    pelvis, tibia, foot = skeleton.joints
    assert [slide.axis for slide in pelvis.slides] == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    # Blender's order: first about Y, last about Z; the second axis points the other way.
    assert pelvis.limit == EulerBox("YXZ", (-0.8, -1.0, -1.0), (1.0, 0.8, 0.8))
    assert tibia.limit == Hinge((0, 0, 1), -2.0, 0.2)
    assert [(each.hinge, each.axis) for each in tibia.coupled_offsets] == [
        ("tibia", (1, 0, 0)),
        ("tibia", (0, 1, 0)),
    ]
    assert tibia.coupled_offsets[1].shifts == (0.02, 0.08, 0.04, 0.0, -0.02)
    assert foot.limit == Hinge((0, 0, 1), -0.5, 0.5)
    stiff = modules["_osim_skeleton"].figure(model, rolls=False).skeleton
    assert stiff.couplings == ()


@pytest.mark.parametrize("seed", range(5))
def test_markers_are_where_the_model_has_them(
    modules: dict[str, ModuleType], model: object, seed: int
) -> None:
    rng = random.Random(seed)
    names, lower, upper = modules["_osim"].bounds(model)
    values = {n: rng.uniform(a, b) for n, a, b in zip(names, lower, upper, strict=True)}
    body = modules["_osim_skeleton"].figure(model)
    turned = Euler((-values["b"], values["c"], values["a"]), "YXZ").to_quaternion()
    rotations = (turned, Quaternion((0, 0, 1), values["knee"]), Quaternion((0, 0, 1), values["ankle"]))
    shift = Vector((values["t1"], values["t2"], values["t3"]))
    transforms = forward_kinematics(body.skeleton, Pose(rotations, (shift, Vector(), Vector())))
    found = [transforms[body.skeleton.index(name)].point(at)[:] for name, at in body.points]
    assert np.array(found) == pytest.approx(modules["_osim"].places(model, values), abs=FLOAT32)


def test_a_spline_of_a_cubic_is_that_cubic(modules: dict[str, ModuleType]) -> None:
    x = np.array((-2.0, -1.0, 0.5, 1.0, 3.0))
    slopes = modules["_osim"].simm_slopes(x, x**3 - 2.0 * x)
    assert slopes == pytest.approx(3.0 * x**2 - 2.0, abs=1e-9)


def test_marker_files_and_weights_are_read(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    trc = tmp_path / "walk.trc"
    trc.write_text(
        "PathFileType\t4\t(X/Y/Z)\twalk.trc\nDataRate\tUnits\n60\tmm\nFrame#\tTime\tA\t\t\tB\t\t\n"
        "\t\tX1\tY1\tZ1\tX2\tY2\tZ2\n\n1\t0.0\t100\t200\t300\t1\t2\t3\n2\t0.1\t110\t210\t310\t\t\t\n"
    )
    motion = modules["_osim"].read_trc(trc)
    assert motion.names == ("A", "B")
    assert motion.points[0] == pytest.approx(np.array(((0.1, 0.2, 0.3), (0.001, 0.002, 0.003))))
    assert np.isnan(motion.points[1, 1]).all() and math.isclose(motion.points[1, 0, 2], 0.31)
    tasks = tmp_path / "tasks.xml"
    tasks.write_text(
        "<IKTaskSet><IKMarkerTask name='A'><apply> true </apply><weight> 2.5 </weight></IKMarkerTask>"
        "<IKMarkerTask name='B'><apply>false</apply><weight>3</weight></IKMarkerTask></IKTaskSet>"
    )
    assert modules["_osim"].read_weights(tasks) == {"A": 2.5, "B": 0.0}


def test_what_is_not_known_is_refused(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    path = tmp_path / "model.osim"
    path.write_text(nested().replace("PinJoint", "BallJoint"))
    with pytest.raises(ValueError, match="'to_foot' is a BallJoint; known are CustomJoint"):
        modules["_osim"].read(path)
    path.write_text(nested().replace(axis("rotation3", "1 0 0"), axis("rotation3", "1 0 0", "knee", SPLINE)))
    model = modules["_osim"].read(path)
    with pytest.raises(ValueError, match=r"'to_tibia': a rotation about .* follows another"):
        modules["_osim_skeleton"].figure(model)
    path.write_text("<OpenSimDocument><Model/></OpenSimDocument>")
    with pytest.raises(ValueError, match="no markers"):
        modules["_osim"].read(path)
