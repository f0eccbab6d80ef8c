# SPDX-License-Identifier: GPL-3.0-or-later
"""A drag of an armature's bones, from the press to its end: controls, chains, solve and channels.

A bone is placed by its channels, or by Blender's constraints. In the second case the bone that it follows is
moved instead, if there is only one. A chain ends below a bone that constraints place.

The pose at the press is read once, and every update solves from it: the result depends on the pointer's
place, not on its path. A drag adds no constraint and no target, and keys by Auto Keying alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import bpy
from mathutils import Matrix, Vector

from ...errors import CCDRigError, RigError
from ...limits.shapes import Slide
from ...settings import SolveResult, SolveStatus
from ...solvers import drag
from ...solvers.soft_reach import SOFTNESS
from ..figures import roles
from ..figures.role import Figure, Part
from ..limit_sources import blender_limits
from ..properties import constraint_list
from ..properties.joints import joint_settings, masses
from ..properties.names import named
from ..rig import armature, clamps
from ..rig.rotation_modes import rotation_channel
from ..scene import dependence
from . import pins as pinned

ON_TOP = {"COPY_SCALE", "LIMIT_SCALE", "MAINTAIN_VOLUME", "LIMIT_ROTATION", "LIMIT_LOCATION"}
"""Constraints that do not place a bone."""
BOUNDS_OF_PLACE = {"LIMIT_LOCATION"}
"""Constraints of `ON_TOP` that prevent shifts."""
TURNING = {*ON_TOP, "COPY_ROTATION", "DAMPED_TRACK", "LOCKED_TRACK", "TRACK_TO", "STRETCH_TO"}
"""Constraints that do not move a bone's head relative to its parent."""
IKS = {"IK", "SPLINE_IK"}


class Controls:
    """Bones of an armature as controls or followers, read for each drag."""

    def __init__(self, armature_object: bpy.types.Object) -> None:
        self.armature_object = armature_object
        self._iks: dict[str, tuple[str, Any]] = {}
        self._ik_ends: set[str] = set()
        for bone in armature_object.pose.bones:
            for constraint in bone.constraints:
                if constraint.type in IKS and _acts(constraint):
                    turned = (bone, *bone.parent_recursive)[: constraint.chain_count or None]
                    self._iks.update({each.name: (bone.name, constraint) for each in turned})
                    self._ik_ends.update(
                        name for thing, name in _ends(constraint) if thing == armature_object
                    )
        self._drivers = dependence.drivers_by_bone(armature_object)

    @cached_property
    def figure(self) -> Figure:
        """Figure with the roles of the bones."""
        return roles.figure_of(self.armature_object)

    def placing(self, bone: bpy.types.PoseBone) -> str:
        """Message about what places a bone instead of its channels; empty if its channels do."""
        if any(clamps.kind_of(each) and each.influence > 0.0 for each in bone.constraints):
            return f"Live poses bone '{bone.name}': switch Live off to drag it"
        if bone.name in self._iks:
            owner, constraint = self._iks[bone.name]
            return (
                f"Bone '{bone.name}' is turned by Blender's constraint '{constraint.name}' on bone '{owner}'"
            )
        for constraint in _placing(bone):
            return f"Bone '{bone.name}' is placed by Blender's constraint '{constraint.name}'"
        return ""

    def turns(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone can be turned by its channels."""
        return not all(bone.lock_rotation) and not self._is_driven(bone, rotation_channel(bone)[0])

    def shifts(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone can be shifted by its location."""
        if bone.parent is not None and bone.bone.use_connect:
            return False
        bounded = any(each.type in BOUNDS_OF_PLACE and _acts(each) for each in bone.constraints)
        return not (all(bone.lock_location) or bounded or self._is_driven(bone, "location"))

    def moves(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone is moved by its location, not by rotations of its chain.

        These are hips, and targets and poles of Blender's IK with their ancestors. Others have no ancestor
        that can be turned, or locks that prevent swings, such as tweaks.
        """
        if not self.shifts(bone):
            return False
        if bone.lock_rotation[0] and bone.lock_rotation[2]:
            return True
        role = self.figure.roles.get(bone.name)
        if role is not None and role.part is Part.HIPS:
            return True
        if self._leads_ik(bone):
            return True
        return not any(self.turns(each) and not self.placing(each) for each in bone.parent_recursive)

    def control_of(self, bone: bpy.types.PoseBone) -> bpy.types.PoseBone:
        """Return the bone to move for a pulled one: itself, an ancestor, or the bone that it follows.

        Raises:
            RigError: there is none, or more than one; names the bone.
        """
        return self._control_of(bone, bone, set())

    def line(self, bone: bpy.types.PoseBone) -> list[bpy.types.PoseBone]:
        """Return a bone and its ancestors, up to one that constraints place, left out."""
        line = [bone]
        for above in bone.parent_recursive:
            if self.placing(above):
                break
            line.append(above)
        return line

    def limb(self, bone: bpy.types.PoseBone) -> int:
        """Default number of turning bones in a bone's chain: up to the beginning of its limb."""
        if self.moves(bone):
            return 1
        line = self.line(bone)
        length = constraint_list.limb_length(bone.id_data, bone.name) or len(line)
        return max(1, sum(1 for each in line[:length] if self.turns(each)))

    def chain_length(self, bone: bpy.types.PoseBone, turning: int) -> int:
        """Length of a chain with a number of turning bones, from its tip."""
        turned = 0
        line = self.line(bone)
        for count, each in enumerate(line, 1):
            turned += self.turns(each)
            if turned >= turning:
                return count
        return len(line)

    def _leads_ik(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone is or carries a target or pole of IK, and no bone that IK turns."""
        below = {bone.name, *(each.name for each in bone.children_recursive)}
        return not self._ik_ends.isdisjoint(below) and below.isdisjoint(self._iks)

    def _is_driven(self, bone: bpy.types.PoseBone, channel: str) -> bool:
        path = bone.path_from_id()
        return any(curve.data_path == f"{path}.{channel}" for curve in self._drivers.get(path, ()))

    def _control_of(
        self, bone: bpy.types.PoseBone, pulled: bpy.types.PoseBone, seen: set[str]
    ) -> bpy.types.PoseBone:
        if bone.name in seen:
            raise RigError(f"Bone '{pulled.name}' follows bones in a circle: drag another bone")
        seen.add(bone.name)
        words = self.placing(bone)
        if not words:
            return self._carrier_of(bone)
        if words.startswith("Live"):
            raise RigError(words)
        controls = {}
        for thing, name in self._followed(bone):
            source = thing.pose.bones.get(name) if thing == self.armature_object else None
            if source is None:
                raise RigError(f"{words}: move '{thing.name}', which it follows")
            control = self._control_of(source, pulled, set(seen))
            controls[control.name] = control
        if len(controls) > 1:
            raise RigError(f"{words} and follows several bones: drag one of {named(sorted(controls))}")
        if not controls:
            raise RigError(f"{words}, which follows nothing that could be dragged: mute it")
        return next(iter(controls.values()))

    def _carrier_of(self, bone: bpy.types.PoseBone) -> bpy.types.PoseBone:
        """Return a bone if its channels move it; else its nearest ancestor that moves it, or an IK control.

        Mechanisms between an IK control and its target may be turned by constraints, such as a foot roll.
        """
        carrying = []
        for each in (bone, *bone.parent_recursive):
            if each.name in self._iks or any(c.type not in TURNING for c in _placing(each)):
                break
            if not any(_placing(each)) and (self.turns(each) or self.moves(each)):
                carrying.append(each)
        if not carrying:
            message = f"Bone '{bone.name}' is locked, and so is what carries it"
            raise RigError(f"{message}: unlock its rotation")
        control = carrying[0]
        if control == bone:
            return control
        for each in carrying[1:]:
            if not self._leads_ik(each):
                break
            control = each
        return control

    def _followed(self, bone: bpy.types.PoseBone) -> list[tuple[bpy.types.Object, str]]:
        """Targets that a bone follows by constraints, as (object, name of the bone or empty)."""
        if bone.name in self._iks:
            constraint = self._iks[bone.name][1]
            return [] if constraint.target is None else [(constraint.target, _subtarget(constraint))]
        followed: list[tuple[bpy.types.Object, str]] = []
        for constraint in reversed(list(_placing(bone))):
            followed += _ends(constraint)
            if constraint.type == "COPY_TRANSFORMS" and constraint.influence >= 1.0:
                break  # what stands before it has no effect
        return followed


def _acts(constraint: Any) -> bool:
    return not constraint.mute and constraint.influence > 0.0


def _placing(bone: bpy.types.PoseBone) -> Iterator[Any]:
    """The user's constraints that place a bone."""
    for constraint in clamps.user_constraints(bone):
        if constraint.type not in ON_TOP and _acts(constraint):
            yield constraint


def _subtarget(constraint: Any) -> str:
    return str(getattr(constraint, "subtarget", ""))


def _ends(constraint: Any) -> list[tuple[bpy.types.Object, str]]:
    """Targets and pole of a constraint, as (object, name of the bone or empty)."""
    several = [(each.target, each.subtarget) for each in getattr(constraint, "targets", ())]
    target = (getattr(constraint, "target", None), _subtarget(constraint))
    pole = (getattr(constraint, "pole_target", None), str(getattr(constraint, "pole_subtarget", "")))
    return [(thing, name) for thing, name in (*several, target, pole) if thing is not None]


FAR = 1e6
"""Range of free shifts, in lengths of the bone."""
CHANNELS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle")
TURNED = 1e-7
"""Largest change of a quaternion's component that counts as none: noise of the solve."""
UPRIGHT = 1.0 - 1e-6
"""Least cosine between the vertical and a vertical axis of an armature."""
FLIP = Matrix.Diagonal((-1.0, 1.0, 1.0, 1.0))


class Pulled(NamedTuple):
    """A bone that the user pulls.

    Attributes:
        bone: its name.
        point: pulled point of the bone, in world space.
    """

    bone: str
    point: Vector


@dataclass(frozen=True)
class _Grab:
    """A bone that moves for a pulled one.

    Attributes:
        control: name of the moved bone.
        place: pulled point, in armature space.
        mirrored: whether its motion mirrors the pointer's.
    """

    control: str
    place: Vector
    mirrored: bool = False


class Session:
    """A drag in progress.

    Attributes:
        result: of the last update; None before the first.
        turning: number of turning bones in the chain of the pulled bone. most: its maximum.
        pins: {pinned bone in reach: whether its rotation is pinned too}.
        far_pins: names of pins out of reach.
    """

    def __init__(
        self,
        armature_object: bpy.types.Object,
        depsgraph: bpy.types.Depsgraph,
        pulled: Sequence[Pulled],
        turning: int = 0,
    ) -> None:
        """Begin a drag, without changes.

        Args:
            armature_object: the original object, in Pose Position.
            depsgraph: evaluated.
            pulled: the bone under the pointer, then further pulled bones.
            turning: number of turning bones in a chain; 0: those of the limb.

        Raises:
            CCDRigError: a bone cannot be moved; names it.
        """
        _refuse(armature_object, pulled)
        self.armature_object = armature_object
        self.result: SolveResult | None = None
        self._depsgraph = depsgraph
        self._world = self._evaluated.matrix_world.copy()
        if abs(self._world.determinant()) < 1e-18:
            raise RigError(f"'{armature_object.name}' has zero scale: give it a scale other than 0")
        self._controls = Controls(armature_object)
        self._grabs = self._grabs_of(pulled)
        self._names = tuple(grab.control for grab in self._grabs)
        self._press: dict[str, dict[str, tuple[float, ...]]] = {}
        self._written: dict[str, set[str]] = {}
        self._find_pins()
        self.most = self._most(self.name)
        self.turning = min(turning or self._usual(self.name), self.most)
        self._prepare()

    @property
    def name(self) -> str:
        """Name of the bone that moves for the one under the pointer."""
        return self._grabs[0].control

    @property
    def starts(self) -> tuple[Vector, ...]:
        """Pulled points at the press, in world space, the point under the pointer first."""
        return tuple(self._world @ start for start in self._drag.starts)

    @property
    def chain(self) -> tuple[str, ...]:
        """Names of the movable bones."""
        names = self._reading.bones
        return tuple(names[j] for j in self._drag.movable)

    def lengthen(self, turning: int, delta: Sequence[float]) -> bool:
        """Change the number of turning bones in the chains, and update the pose.

        Args:
            turning: the number, clamped to the possible range.
            delta: motion of the pointer since the press, in world space.

        Returns:
            Whether the number has changed.

        Raises:
            CCDRigError: a bone of the longer chain cannot be moved; names it. The chain does not change.
        """
        turning = min(max(turning, 1), self.most)
        if turning == self.turning:
            return False
        before = self.turning
        self.cancel()
        self._depsgraph.update()  # parents of the chain may have moved
        try:
            self.turning = turning
            self._prepare()
        except CCDRigError:
            self.turning = before
            raise
        finally:
            self.move(delta)
        return True

    def move(self, delta: Sequence[float]) -> SolveResult:
        """Pose the bones for a motion of the pointer since the press, in world space.

        Raises:
            CCDRigError: the motion is no vector of finite numbers; nothing was changed.
        """
        local = self._world.to_3x3().inverted() @ Vector(delta)
        points = [
            start + (FLIP.to_3x3() @ local if grab.mirrored else local)
            for grab, start in zip(self._grabs, self._drag.starts, strict=True)
        ]
        result = self._drag.to(points)
        self.cancel()
        self._write(result)
        self.result = result
        return result

    def cancel(self) -> None:
        """Restore the channels' values at the press, to the bit."""
        bones = self.armature_object.pose.bones
        for name, channels in self._written.items():
            for channel in channels:
                setattr(bones[name], channel, self._press[name][channel])
        self._written = {}

    def written(self) -> list[tuple[bpy.types.PoseBone, str]]:
        """Channels that differ from the press, for Auto Keying."""
        bones = self.armature_object.pose.bones
        return [
            (bones[name], channel)
            for name, channels in self._written.items()
            for channel in sorted(channels)
            if tuple(getattr(bones[name], channel)) != self._press[name][channel]
        ]

    def is_reached(self) -> bool:
        """Whether the pulled points reach the pointer."""
        return self.result is None or self.result.status is SolveStatus.CONVERGED

    @property
    def _evaluated(self) -> bpy.types.Object:
        return self.armature_object.evaluated_get(self._depsgraph)

    # What is moved ----------------------------------------------------------------------------------

    def _bone(self, name: str) -> bpy.types.PoseBone:
        return self.armature_object.pose.bones[name]

    def _grabs_of(self, pulled: Sequence[Pulled]) -> list[_Grab]:
        """Grabs for the pulled bones, one per line of ancestors, and with X Mirror on the other side too."""
        inverse = self._world.inverted()
        grabs: list[_Grab] = []
        for bone, point in pulled:
            control = self._controls.control_of(self._bone(bone))
            if not any(self._are_in_line(control.name, other.control) for other in grabs):
                grabs.append(_Grab(control.name, inverse @ Vector(point)))
        if self.armature_object.pose.use_mirror_x:
            names = self.armature_object.pose.bones.keys()
            for grab in grabs[:]:
                other = roles.partner_in(self._controls.figure, names, grab.control)
                if not other or any(self._are_in_line(other, each.control) for each in grabs):
                    continue
                across = self._bone(other)
                if self._controls.control_of(across) == across:
                    grabs.append(_Grab(other, self._across(grab, across), True))
        return grabs

    def _across(self, grab: _Grab, bone: bpy.types.PoseBone) -> Vector:
        """Point of the other side's bone that mirrors a grabbed point at rest."""
        this, other = self._evaluated.pose.bones[grab.control], self._evaluated.pose.bones[bone.name]
        at_rest = this.bone.matrix_local @ this.matrix.inverted_safe() @ grab.place
        return other.matrix @ other.bone.matrix_local.inverted_safe() @ (FLIP @ at_rest)

    def _are_in_line(self, one: str, other: str) -> bool:
        """Whether one bone is the other or its ancestor."""
        a, b = self._bone(one), self._bone(other)
        return a == b or a in b.parent_recursive or b in a.parent_recursive

    def _find_pins(self) -> None:
        """Divide pins into those below the pulled bone's root, which are in reach, and others."""
        controls, bones = self._controls, self.armature_object.pose.bones
        wanted = pinned.pins_of(self.armature_object)
        if self.armature_object.ccd_rig.pin_feet:
            wanted = pinned.standing_feet(self.armature_object, controls.figure) | wanted
        wanted = {name: held for name, held in wanted.items() if name not in self._names}
        line = controls.line(bones[self.name])
        body = next((bone for bone in line if controls.moves(bone)), None) if wanted else None
        self.pins = {name: held for name, held in wanted.items() if body in controls.line(bones[name])}
        self.far_pins = sorted(wanted.keys() - self.pins.keys())
        self._body = body if self.pins else None

    def _usual(self, name: str) -> int:
        """Default number of turning bones in a bone's chain; with pins it reaches up to the body."""
        bone = self._bone(name)
        return self._most(name) if self.pins else self._controls.limb(bone)

    def _most(self, name: str) -> int:
        """Maximum of turning bones in a bone's chain."""
        line = self._controls.line(self._bone(name))
        if self._body in line:
            line = line[: line.index(self._body) + 1]
        return max(1, sum(self._controls.turns(bone) for bone in line))

    def _length(self, name: str) -> int:
        """Present length of a bone's chain, locked bones included."""
        turning = self._usual(name) + self.turning - self._usual(self.name)
        return self._controls.chain_length(self._bone(name), min(max(turning, 1), self._most(name)))

    def _prepare(self) -> None:
        """Prepare the solve for chains of the present lengths, from the pose at the press."""
        controls, bones, body = self._controls, self.armature_object.pose.bones, self._body
        lengths = {name: self._length(name) for name in self._names}
        chains = list(lengths.items())
        for name in (*self._names, *self.pins) if body is not None else ():
            line = controls.line(bones[name])
            if body in line:
                chains.append((name, line.index(body) + 1))
        moving = {name for name in self._names if lengths[name] == 1 and controls.moves(bones[name])}
        sliding = moving if body is None else moving | {body.name}
        members = list(dict.fromkeys(b.name for tip, n in chains for b in controls.line(bones[tip])[:n]))
        settings = joint_settings(self.armature_object, members)
        for name in members:
            settings[name] |= self._changed_settings(bones[name], settings[name], name in sliding)
        balances = self.armature_object.ccd_rig.keep_balance and bool(self.pins)
        carried = self._masses() if balances else None
        for name, mass in (carried or {}).items():
            if name in settings:
                settings[name] |= {"mass": mass}
        reading = armature.layout(self._evaluated, chains, settings, carried).read(self._evaluated)
        grabs = []
        for grab in self._grabs:
            matrix = self._evaluated.pose.bones[grab.control].matrix
            point = matrix.to_quaternion().inverted() @ (grab.place - matrix.translation)
            slides = grab.control in moving
            grabs.append(drag.Grab(grab.control, point, lengths[grab.control], slides, SOFTNESS))
        held = [drag.Pin(*each) for each in self.pins.items()]
        support = self._support() if balances else None
        made = drag.Drag(reading.skeleton, reading.pose, grabs, held, support=support)
        if not made.movable:
            raise RigError(f"Bone '{self.name}' cannot turn: unlock its rotation, or lower its stiffness")
        self._reading, self._drag = reading, made
        for name in reading.bones:
            self._press[name] = {channel: tuple(getattr(bones[name], channel)) for channel in CHANNELS}

    def _masses(self) -> dict[str, float]:
        """Masses of bones for the balance; lengths of deforming bones if none has a mass."""
        by_bone = masses(self.armature_object)
        if by_bone:
            return by_bone
        return {bone.name: bone.bone.length for bone in self._evaluated.pose.bones if bone.bone.use_deform}

    def _support(self) -> drag.Support:
        """What the figure stands on: ends of pinned bones, and all of those whose rotation is pinned, with
        what hangs on them.

        Raises:
            RigError: no axis of the armature is vertical.
        """
        heights = self._world.to_3x3().row[2].normalized()
        up = max(range(3), key=lambda k: abs(heights[k]))
        if abs(heights[up]) < UPRIGHT:
            raise RigError(
                f"'{self.armature_object.name}' is tilted: turn the object upright, or switch Keep Balance "
                "off"
            )
        points: list[Vector] = []
        for name, is_held in self.pins.items():
            bone = self._evaluated.pose.bones[name]
            points.append(bone.tail)
            if is_held:
                points += [
                    bone.head,
                    *(end for each in bone.children_recursive for end in (each.head, each.tail)),
                ]
        return drag.Support(tuple(points), up)

    def _changed_settings(
        self, bone: bpy.types.PoseBone, settings: Mapping[str, Any], slides: bool
    ) -> dict[str, Any]:
        """Settings of a bone's joint that differ in a drag."""
        if slides:
            far = FAR * bone.bone.length
            held = [abs(value) for value in bone.location]
            free = [axis for axis in range(3) if not bone.lock_location[axis]]
            axes = [tuple(float(axis == k) for k in range(3)) for axis in free]
            return {"slides": tuple(Slide(axis, -far - max(held), far + max(held)) for axis in axes)}
        if not self._controls.turns(bone):
            return {"stiffness": 1.0, "limit": None, "comfort": None}
        constraint = blender_limits.constraint_of(bone)
        if settings["limit"] is None and constraint is not None and not constraint.mute:
            return {"limit": blender_limits.box(bone, constraint), "comfort": None}
        return {}

    def _write(self, result: SolveResult) -> None:
        """Write the channels that differ from the pose at the press."""
        reading, before = self._reading, self._reading.pose
        rotated, located = [], []
        bones = self.armature_object.pose.bones
        for j in self._drag.movable:
            pairs = zip(result.pose.rotations[j], before.rotations[j], strict=True)
            turns = self._controls.turns(bones[reading.bones[j]])
            if turns and max(abs(a - b) for a, b in pairs) > TURNED:
                rotated.append(j)
            if result.pose.translations[j] != before.translations[j]:
                located.append(j)
        for j in rotated:
            name = reading.bones[j]
            self._written.setdefault(name, set()).add(rotation_channel(bones[name])[0])
        # Coupled offsets follow angles, so the channels of their bones may change too.
        locations = armature.location_channels(reading, result.pose, {*rotated, *located})
        for j in locations:
            self._written.setdefault(reading.bones[j], set()).add("location")
        armature.apply(self.armature_object, reading, result.pose, rotated, locations)


def _refuse(armature_object: bpy.types.Object, pulled: Sequence[Pulled]) -> None:
    """Raise RigError unless these bones of an armature can be posed."""
    if not armature_object.is_editable:
        raise RigError(
            f"'{armature_object.name}' is linked from a library: make a library override of it first"
        )
    if not pulled:
        raise RigError("There is no bone to drag: select one, or press on one")
    for bone, _ in pulled:
        if bone not in armature_object.pose.bones:
            raise RigError(f"armature '{armature_object.name}' has no bone '{bone}'")
