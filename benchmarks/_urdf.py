"""Reads a URDF robot as a skeleton: fixed joints merged, revolute ones hinges, prismatic ones slides.

URDF: http://wiki.ros.org/urdf/XML/joint. Lengths in metres, angles in radians, `rpy` about the fixed axes X,
Y, Z in turn. Each joint of the skeleton carries the name of its URDF joint. A joint's bone ends where its
child's frame begins; the frame of a link that hangs on it with fixed joints is given as a point and a
rotation in the joint's frame (`Robot.end`).
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from mathutils import Euler, Quaternion, Vector

from ccd_rig.limits.shapes import Cone, Hinge, Limit, Slide, SwingTwist
from ccd_rig.skeleton.joints import Joint, Skeleton

TURNING = ("revolute", "continuous")
MOVING = (*TURNING, "prismatic")


@dataclass(frozen=True)
class Robot:
    """A chain of a robot from one link to another.

    Attributes:
        skeleton: one joint per joint that moves, root first.
        point: the last link's origin in the last joint's frame, metres.
        turn: the last link's frame in the last joint's frame.
        continuous: names of the joints that turn without end.
    """

    skeleton: Skeleton
    point: Vector
    turn: Quaternion
    continuous: tuple[str, ...]


def read(path: Path, base: str, tip: str) -> Robot:
    """The chain from link `base` to link `tip` of the robot in the file.

    Raises:
        ValueError: there is no such link or chain, or a joint of a kind that is not known here.
    """
    by_child = {
        joint.find("child").get("link"): joint  # type: ignore[union-attr]
        for joint in ElementTree.parse(path).getroot().iter("joint")
        if joint.find("child") is not None
    }
    elements, link = [], tip
    while link != base:
        if link not in by_child:
            raise ValueError(
                f"{path.name}: no chain from link '{base}' to link '{tip}': '{link}' has no parent"
            )
        elements.append(by_child[link])
        link = by_child[link].find("parent").get("link")  # type: ignore[union-attr,assignment]
    joints: list[Joint] = []
    continuous: list[str] = []
    # What fixed joints add between the last moving joint and the next.
    point, turn = Vector(), Quaternion()
    for element in reversed(elements):
        origin = element.find("origin")
        shift = _numbers(origin, "xyz", (0.0, 0.0, 0.0))
        angles = _numbers(origin, "rpy", (0.0, 0.0, 0.0))
        point = point + turn @ Vector(shift)
        turn = (turn @ Euler(angles, "XYZ").to_quaternion()).normalized()
        kind, name = element.get("type", ""), element.get("name", "")
        if kind == "fixed":
            continue
        if kind not in MOVING:
            raise ValueError(
                f"{path.name}: joint '{name}' is of kind '{kind}'; "
                f"this reader knows fixed, {', '.join(MOVING)}"
            )
        axis = _numbers(element.find("axis"), "xyz", (1.0, 0.0, 0.0))
        bounds = element.find("limit")
        lower, upper = (
            float(bounds.get(side, 0.0)) if bounds is not None else 0.0 for side in ("lower", "upper")
        )
        limit: Limit
        slides: tuple[Slide, ...] = ()
        if kind == "prismatic":
            limit, slides = SwingTwist(Cone(0.0), (0.0, 0.0)), (Slide(axis, lower, upper),)
        elif kind == "continuous":
            limit = Hinge(axis, -math.pi, math.pi)
            continuous.append(name)
        else:
            limit = Hinge(axis, lower, upper)
        joints.append(Joint(name, len(joints) - 1, point, turn, limit=limit, slides=slides, length=0.0))
        point, turn = Vector(), Quaternion()
    return Robot(Skeleton(joints), point, turn, tuple(continuous))


def _numbers(element: ElementTree.Element | None, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
    text = element.get(name) if element is not None else None
    return tuple(float(part) for part in text.split()) if text else default
