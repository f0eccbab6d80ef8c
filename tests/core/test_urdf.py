"""The benchmark's URDF reader, held against matrices put together from the file's own numbers."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from chains import FLOAT32
from mathutils import Quaternion, Vector

from ccd_rig.limits.shapes import Hinge, Slide
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose

ROBOT = """<robot name="r">
<link name="base"/><link name="a"/><link name="b"/><link name="c"/><link name="d"/><link name="tool"/>
<joint name="turn" type="revolute"><origin xyz="0.1 0.2 0.3" rpy="0.4 -0.5 0.6"/>
  <parent link="base"/><child link="a"/>
  <axis xyz="0 0 2"/><limit lower="-1" upper="2" effort="1" velocity="1"/></joint>
<joint name="plate" type="fixed"><origin xyz="0 0 0.5" rpy="1.5707963 0 0"/>
  <parent link="a"/><child link="b"/></joint>
<joint name="lift" type="prismatic"><origin xyz="0.3 0 0"/><parent link="b"/><child link="c"/>
  <axis xyz="0 1 0"/><limit lower="0" upper="0.4" effort="1" velocity="1"/></joint>
<joint name="roll" type="continuous"><origin rpy="0 0 0.7"/><parent link="c"/><child link="d"/></joint>
<joint name="flange" type="fixed"><origin xyz="0 0 0.107" rpy="0.1 0.2 0.3"/>
  <parent link="d"/><child link="tool"/></joint>
<transmission name="t"><joint name="turn"/></transmission>
</robot>"""


@pytest.fixture(scope="module")
def urdf() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "_urdf.py"
    spec = importlib.util.spec_from_file_location("_urdf", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "r.urdf"
    path.write_text(ROBOT)
    return path


def frame(xyz: tuple[float, ...] = (0.0, 0.0, 0.0), rpy: tuple[float, ...] = (0.0, 0.0, 0.0)) -> np.ndarray:
    """URDF: rotations about the fixed X, then Y, then Z."""
    (r, p, y), found = rpy, np.eye(4)
    about_x = np.array(((1, 0, 0), (0, math.cos(r), -math.sin(r)), (0, math.sin(r), math.cos(r))))
    about_y = np.array(((math.cos(p), 0, math.sin(p)), (0, 1, 0), (-math.sin(p), 0, math.cos(p))))
    about_z = np.array(((math.cos(y), -math.sin(y), 0), (math.sin(y), math.cos(y), 0), (0, 0, 1)))
    found[:3, :3] = about_z @ about_y @ about_x
    found[:3, 3] = xyz
    return found


@pytest.mark.parametrize(("turn", "lift", "roll"), [(0.0, 0.0, 0.0), (1.3, 0.2, -2.0), (-0.8, 0.4, 3.0)])
def test_tool_stands_where_the_file_says(
    urdf: ModuleType, file: Path, turn: float, lift: float, roll: float
) -> None:
    robot = urdf.read(file, "base", "tool")
    pose = Pose(
        (Quaternion((0.0, 0.0, 1.0), turn), Quaternion(), Quaternion((1.0, 0.0, 0.0), roll)),
        (Vector(), Vector((0.0, lift, 0.0)), Vector()),
    )
    last = forward_kinematics(robot.skeleton, pose)[-1]
    wanted = (
        frame((0.1, 0.2, 0.3), (0.4, -0.5, 0.6))
        @ frame(rpy=(0.0, 0.0, turn))
        @ frame((0.0, 0.0, 0.5), (1.5707963, 0.0, 0.0))
        @ frame((0.3, lift, 0.0))
        @ frame(rpy=(0.0, 0.0, 0.7))
        @ frame(rpy=(roll, 0.0, 0.0))
        @ frame((0.0, 0.0, 0.107), (0.1, 0.2, 0.3))
    )
    (end,) = robot.ends
    assert end.joint == 2
    np.testing.assert_allclose(last.point(end.point), wanted[:3, 3], atol=FLOAT32)
    turned = (last.rotation @ end.turn).to_matrix()
    np.testing.assert_allclose(np.array(turned), wanted[:3, :3], atol=FLOAT32)


def test_joints_and_limits(urdf: ModuleType, file: Path) -> None:
    robot = urdf.read(file, "base", "tool")
    assert [joint.name for joint in robot.skeleton.joints] == ["turn", "lift", "roll"]
    assert robot.continuous == ("roll",)
    turn, lift, roll = robot.skeleton.joints
    assert turn.limit == Hinge((0.0, 0.0, 1.0), -1.0, 2.0)
    assert lift.slides == (Slide((0.0, 1.0, 0.0), 0.0, 0.4),)
    assert roll.limit == Hinge((1.0, 0.0, 0.0), -math.pi, math.pi)
    assert [joint.name for joint in urdf.read(file, "b", "d").skeleton.joints] == ["lift", "roll"]


def test_ends_share_the_joints_on_their_way(urdf: ModuleType, file: Path) -> None:
    robot = urdf.read(file, "base", "tool", "c")
    assert [joint.parent for joint in robot.skeleton.joints] == [-1, 0, 1]
    assert [end.joint for end in robot.ends] == [2, 1]
    assert robot.links == ("base", "a", "b", "c", "d", "tool")
    two = ROBOT.replace('<parent link="c"/><child link="d"/>', '<parent link="a"/><child link="d"/>')
    file.write_text(two)
    robot = urdf.read(file, "base", "c", "tool")
    assert [(joint.name, joint.parent) for joint in robot.skeleton.joints] == [
        ("turn", -1),
        ("lift", 0),
        ("roll", 0),
    ]


def test_what_is_not_there_is_named(urdf: ModuleType, file: Path) -> None:
    with pytest.raises(ValueError, match=r"'base'.*'hand'"):
        urdf.read(file, "base", "hand")
    file.write_text(ROBOT.replace('type="prismatic"', 'type="planar"'))
    with pytest.raises(ValueError, match=r"'lift'.*'planar'"):
        urdf.read(file, "base", "tool")
