# SPDX-License-Identifier: GPL-3.0-or-later
"""One drag of an armature's bones, from the press to its end.

The pose at the press is read once. Each update solves from it, so that channels hold what the pointer asks
for, wherever it was before. Nothing is left behind: no constraint, no target, no key but by Auto Keying.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import bpy
from mathutils import Matrix, Vector

from ...errors import CCDRigError, RigError
from ...limits.shapes import Slide
from ...settings import SolveResult, SolveStatus
from ...solvers import drag
from ..figures import roles
from ..limit_sources import blender_limits
from ..properties.joints import joint_settings
from ..rig import armature
from ..rig.rotation_modes import rotation_channel
from . import pins as pinned
from .controls import Controls

FAR = 1e6
"""A bone that may be shifted freely is kept within so many lengths of itself."""
CHANNELS = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle")
TURNED = 1e-7
"""Change of a component of a quaternion up to which a bone has not turned: noise of the solve."""
FLIP = Matrix.Diagonal((-1.0, 1.0, 1.0, 1.0))


class Pulled(NamedTuple):
    """A bone that is pulled, as the user sees it.

    Attributes:
        bone: its name.
        point: the place on it that is pulled, in the world.
    """

    bone: str
    point: Vector


@dataclass(frozen=True)
class _Grab:
    """A bone that is pulled, as it is moved.

    Attributes:
        control: name of the bone that is moved.
        place: what is pulled, in armature space.
        mirrored: whether it moves as the mirror image of the pointer's motion.
    """

    control: str
    place: Vector
    mirrored: bool = False


class Session:
    """A drag under way.

    Attributes:
        result: of the last update; None before the first.
        turning: how many bones that turn the chain of the pulled bone has. most: how many it may have.
        pins: those that are in reach, by name; whether their rotation is held too.
        far_pins: names of pins that are not in reach.
    """

    def __init__(
        self,
        armature_object: bpy.types.Object,
        depsgraph: bpy.types.Depsgraph,
        pulled: Sequence[Pulled],
        turning: int = 0,
    ) -> None:
        """Begin a drag; nothing is changed.

        Args:
            armature_object: the original object, in Pose Position.
            depsgraph: evaluated.
            pulled: the bone under the pointer, then others that are pulled together with it.
            turning: how many bones that turn a chain has; 0: as many as the limb has.

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
        """The bone that is moved for the one under the pointer."""
        return self._grabs[0].control

    @property
    def starts(self) -> tuple[Vector, ...]:
        """Where the pulled points were at the press, in the world; that under the pointer first."""
        return tuple(self._world @ start for start in self._drag.starts)

    @property
    def chain(self) -> tuple[str, ...]:
        """Names of the bones that may move."""
        names = self._reading.bones
        return tuple(names[j] for j in self._drag.movable)

    def lengthen(self, turning: int, delta: Sequence[float]) -> bool:
        """Let the chains have so many bones that turn, and bring the pose up to date.

        Args:
            turning: how many; brought into the possible range.
            delta: the pointer's motion so far, in the world.

        Returns:
            Whether this is another length than before.

        Raises:
            CCDRigError: a bone of the longer chain cannot be moved; names it. The chain stays as it was.
        """
        turning = min(max(turning, 1), self.most)
        if turning == self.turning:
            return False
        before = self.turning
        self.cancel()
        self._depsgraph.update()  # the chain's bones stand on parents that may have moved
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
        """Pose the bones as if the pointer had moved by so much in the world since the press.

        Raises:
            CCDRigError: the motion is no vector of finite numbers. Nothing has changed then.
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
        """Give all channels back what they held at the press, to the bit."""
        bones = self.armature_object.pose.bones
        for name, channels in self._written.items():
            for channel in channels:
                setattr(bones[name], channel, self._press[name][channel])
        self._written = {}

    def written(self) -> list[tuple[bpy.types.PoseBone, str]]:
        """The channels that differ from the press, for Auto Keying."""
        bones = self.armature_object.pose.bones
        return [
            (bones[name], channel)
            for name, channels in self._written.items()
            for channel in sorted(channels)
            if tuple(getattr(bones[name], channel)) != self._press[name][channel]
        ]

    def is_reached(self) -> bool:
        """Whether the pulled points are where the pointer is."""
        return self.result is None or self.result.status is SolveStatus.CONVERGED

    @property
    def _evaluated(self) -> bpy.types.Object:
        return self.armature_object.evaluated_get(self._depsgraph)

    # What is moved ----------------------------------------------------------------------------------

    def _bone(self, name: str) -> bpy.types.PoseBone:
        return self.armature_object.pose.bones[name]

    def _grabs_of(self, pulled: Sequence[Pulled]) -> list[_Grab]:
        """What is moved for the pulled bones, one grab per line of bones, and on the other side too."""
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
        """The place on the bone of the other side that is at the mirror image of a grabbed one at rest."""
        this, other = self._evaluated.pose.bones[grab.control], self._evaluated.pose.bones[bone.name]
        at_rest = this.bone.matrix_local @ this.matrix.inverted_safe() @ grab.place
        return other.matrix @ other.bone.matrix_local.inverted_safe() @ (FLIP @ at_rest)

    def _are_in_line(self, one: str, other: str) -> bool:
        """Whether one bone carries the other, or they are the same."""
        a, b = self._bone(one), self._bone(other)
        return a == b or a in b.parent_recursive or b in a.parent_recursive

    def _find_pins(self) -> None:
        """Which pins are in reach: those that hang on the bone that carries the pulled one."""
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
        """How many bones that turn the chain of a bone has by itself: with pins it goes up to the body."""
        bone = self._bone(name)
        return self._most(name) if self.pins else self._controls.limb(bone)

    def _most(self, name: str) -> int:
        """How many it may have."""
        line = self._controls.line(self._bone(name))
        if self._body in line:
            line = line[: line.index(self._body) + 1]
        return max(1, sum(self._controls.turns(bone) for bone in line))

    def _length(self, name: str) -> int:
        """How many bones its chain has now, those included that do not turn; counted from the bone itself."""
        turning = self._usual(name) + self.turning - self._usual(self.name)
        return self._controls.chain_length(self._bone(name), min(max(turning, 1), self._most(name)))

    def _prepare(self) -> None:
        """Make the solve ready for chains of the present length, from the pose at the press."""
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
        reading = armature.layout(self._evaluated, chains, settings).read(self._evaluated)
        grabs = []
        for grab in self._grabs:
            matrix = self._evaluated.pose.bones[grab.control].matrix
            point = matrix.to_quaternion().inverted() @ (grab.place - matrix.translation)
            grabs.append(drag.Grab(grab.control, point, lengths[grab.control], grab.control in moving))
        made = drag.Drag(
            reading.skeleton, reading.pose, grabs, [drag.Pin(*each) for each in self.pins.items()]
        )
        if not made.movable:
            raise RigError(f"Bone '{self.name}' cannot turn: unlock its rotation, or lower its stiffness")
        self._reading, self._drag = reading, made
        for name in reading.bones:
            self._press[name] = {channel: tuple(getattr(bones[name], channel)) for channel in CHANNELS}

    def _changed_settings(
        self, bone: bpy.types.PoseBone, settings: Mapping[str, Any], slides: bool
    ) -> dict[str, Any]:
        """What differs in a drag from the settings of a bone's joint."""
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
        """Write what differs from the pose at the press."""
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
        locations = armature.locations(reading, result.pose, {*rotated, *located})
        for j in locations:
            self._written.setdefault(reading.bones[j], set()).add("location")
        armature.apply(self.armature_object, reading, result.pose, rotated, locations)


def _refuse(armature_object: bpy.types.Object, pulled: Sequence[Pulled]) -> None:
    """Raises RigError unless these bones of an armature may be posed."""
    if not armature_object.is_editable:
        raise RigError(
            f"'{armature_object.name}' is linked from a library: make a library override of it first"
        )
    if not pulled:
        raise RigError("There is no bone to drag: select one, or press on one")
    for bone, _ in pulled:
        if bone not in armature_object.pose.bones:
            raise RigError(f"armature '{armature_object.name}' has no bone '{bone}'")
