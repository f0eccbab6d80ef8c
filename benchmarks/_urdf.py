"""Reads a URDF robot as a skeleton: fixed joints merged, revolute ones hinges, prismatic ones slides.

A robot has one end, or several on joints that they may share: arms, fingers.

URDF: http://wiki.ros.org/urdf/XML/joint. Lengths in metres, angles in radians, `rpy` about the fixed axes X,
Y, Z in turn. Each joint of the skeleton carries the name of its URDF joint. A joint's bone ends where its
child's frame begins; the frame of a link that hangs on it with fixed joints is given as a point and a
rotation in the joint's frame (`Robot.ends`).
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
class End:
    """A link that hangs on a joint with fixed joints.

    Attributes:
        joint: its index.
        point: the link's origin in the joint's frame, metres.
        turn: the link's frame in the joint's frame.
    """

    joint: int
    point: Vector
    turn: Quaternion


@dataclass(frozen=True)
class Robot:
    """Chains of a robot from one link to others.

    Attributes:
        skeleton: one joint per joint that moves, parents first.
        ends: the other links.
        continuous: names of the joints that turn without end.
        links: names of all links on the way, `base` first.
    """

    skeleton: Skeleton
    ends: tuple[End, ...]
    continuous: tuple[str, ...]
    links: tuple[str, ...]


def read(path: Path, base: str, *tips: str) -> Robot:
    """The chains from link `base` to links `tips` of the robot in the file.

    Raises:
        ValueError: there is no such link or chain, or a joint of a kind that is not known here.
    """
    by_child = {
        joint.find("child").get("link"): joint  # type: ignore[union-attr]
        for joint in ElementTree.parse(path).getroot().iter("joint")
        if joint.find("child") is not None
    }
    joints: list[Joint] = []
    continuous: list[str] = []
    ends = {base: End(-1, Vector(), Quaternion())}

    def place(link: str, tip: str) -> End:
        """Return the end of a link, and add the joints up to it."""
        if link in ends:
            return ends[link]
        if link not in by_child:
            raise ValueError(
                f"{path.name}: no chain from link '{base}' to link '{tip}': '{link}' has no parent"
            )
        element = by_child[link]
        before = place(element.find("parent").get("link"), tip)  # type: ignore[union-attr,arg-type]
        origin = element.find("origin")
        point = before.point + before.turn @ Vector(_numbers(origin, "xyz", (0.0, 0.0, 0.0)))
        angles = _numbers(origin, "rpy", (0.0, 0.0, 0.0))
        turn = (before.turn @ Euler(angles, "XYZ").to_quaternion()).normalized()
        kind, name = element.get("type", ""), element.get("name", "")
        if kind == "fixed":
            ends[link] = End(before.joint, point, turn)
            return ends[link]
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
        joints.append(Joint(name, before.joint, point, turn, limit=limit, slides=slides, length=0.0))
        ends[link] = End(len(joints) - 1, Vector(), Quaternion())
        return ends[link]

    reached = tuple(place(tip, tip) for tip in tips)
    return Robot(Skeleton(joints), reached, tuple(continuous), tuple(ends))


def _numbers(element: ElementTree.Element | None, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
    text = element.get(name) if element is not None else None
    return tuple(float(part) for part in text.split()) if text else default
