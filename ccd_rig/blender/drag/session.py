# SPDX-License-Identifier: GPL-3.0-or-later
"""A drag of an armature's bones, from the press to its end: controls, chains, pins, solve and channels.

The pose at the press is read once, and every update solves from it: the result depends on the pointer's
place, not on its path. A session adds no constraint, moves no target and sets no key.

Limbs that hang on a body by constraints, as generated rigs have them, are joined to one skeleton with it. A
limb by FK is turned by its controls. A limb by IK is turned by Blender: its joints are solved with the
others, so that the body takes its part of a pull and stays in reach, but nothing is written to them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import bpy
from mathutils import Matrix, Quaternion, Vector

from ...errors import CCDRigError, RigError
from ...json_text import printable
from ...limits.shapes import EulerBox, Slide
from ...settings import SolveResult
from ...skeleton.joints import Joint, Skeleton
from ...skeleton.kinematics import forward_kinematics
from ...skeleton.pose import Pose
from ...solvers import drag
from ...solvers.soft_reach import SOFTNESS
from ..figures import recognition, rigify
from ..figures.role import CLAVICLE_MOBILITY, Figure, Part
from ..limit_sources import blender_limits
from ..properties.active_rig import linked, with_settings
from ..properties.joints import PINS, joint_settings, masses
from ..rig import armature, clamps
from ..rig.armature import RigReading
from ..rig.rotation_modes import WIDTHS, rotation_channel
from .controls import MEETING, TURNING, Controls, ends_of, placing_constraints

ARM_MASS, UPPER_MASS = 0.049, 0.41
"""Parts of a body's mass: an arm, and all above the middle of the spine (de Leva 1996, "Adjustments to
Zatsiorsky-Seluyanov's segment inertia parameters").

Turns and shifts of spine and body are counted by the root of the mass that they move, beside an arm's."""
FAR = 1e6
"""Range of free shifts, in lengths of the bone."""
TURNED = 1e-7
"""Largest change of a quaternion's component that counts as none: noise of the solve."""
SEEN = 0.01
"""Distance from the pointer, in lengths of the pulled bone, from which it counts as missed."""
UPRIGHT = 1.0 - 1e-6
"""Least cosine between the vertical and a vertical axis of an armature."""
FLIP = Matrix.Diagonal((-1.0, 1.0, 1.0, 1.0))


class Pulled(NamedTuple):
    """A bone that the user pulls."""

    bone: str  # its name
    point: Vector  # pulled point of the bone, in world space


@dataclass(frozen=True)
class _Grab:
    """A bone that moves for a pulled one."""

    control: str  # name of the moved bone
    place: Vector  # pulled point, in armature space
    mirrored: bool = False  # whether its motion mirrors the pointer's


class Session:
    """A drag in progress.

    Attributes:
        result: of the last update; None before the first.
        turning: number of turning bones in the chain of the pulled bone.
        most: maximum of `turning`.
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
        if reason := linked(armature_object):
            raise RigError(reason)
        if not pulled:
            raise RigError("There is no bone to drag: select one, or press on one")
        for bone, _ in pulled:
            if bone not in armature_object.pose.bones:
                raise RigError(f"armature '{armature_object.name}' has no bone '{printable(bone)}'")
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
        self.turning = turning
        self._plan()

    @property
    def name(self) -> str:
        """Name of the bone that moves for the one under the pointer."""
        return self._grabs[0].control

    @property
    def starts(self) -> tuple[Vector, ...]:
        """Pulled points at the press, in world space, the point under the pointer first."""
        return tuple(self._world @ grab.place for grab in self._grabs)

    @property
    def body(self) -> str:
        """Name of the bone that moves the whole body; empty if pins do not take it along."""
        bone = self._body if self._carrier is None else self._carrier.body
        return "" if bone is None else bone.name

    @property
    def chain(self) -> tuple[str, ...]:
        """Names of the movable bones."""
        names = self._reading.bones
        return tuple(names[j] for j in (*self._moved, *self._shifted))

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
            self._plan()
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
        pose = result.pose if self._joined is None else self._joined.read(result.pose)
        if self._turned and result.pose is not self._drag.pose:
            pose = self._beside_turned(pose)
        if self._shifted:  # controls of pulled IK limbs
            # With a balance they stay as solved: Blender's IK would stretch limbs to the pointer.
            places = self._drag.places(result.pose) if self._drag.support else points
            translations = list(pose.translations)
            for j, grab in self._shifted.items():
                shift = places[grab] - self._drag.starts[grab]
                rest = self._reading.skeleton.joints[j].rest_rotation
                translations[j] = translations[j] + rest.inverted() @ shift
            pose = Pose(pose.rotations, tuple(translations))
        self.cancel()
        self._write(pose)
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
        """Whether the pulled points reach the pointer, as far as can be seen."""
        return self.result is None or all(
            error.distance <= SEEN * self._bone(grab.control).length
            for error, grab in zip(self.result.errors, self._grabs, strict=False)
        )

    @property
    def _evaluated(self) -> bpy.types.Object:
        return self.armature_object.evaluated_get(self._depsgraph)

    # What is moved ----------------------------------------------------------------------------------

    def _bone(self, name: str) -> bpy.types.PoseBone:
        return self.armature_object.pose.bones[name]

    def _grabs_of(self, pulled: Sequence[Pulled]) -> list[_Grab]:
        """Grabs for the pulled bones, one per line of ancestors.

        With X Mirror on the other side too, unless the bone there is pinned.
        """
        inverse = self._world.inverted()
        grabs: list[_Grab] = []
        for bone, point in pulled:
            control = self._controls.control_of(self._bone(bone))
            if not any(self._are_in_line(control.name, other.control) for other in grabs):
                grabs.append(_Grab(control.name, inverse @ Vector(point)))
        if self.armature_object.pose.use_mirror_x:
            names = set(self.armature_object.pose.bones.keys())
            pinned = pins_of(self.armature_object)
            for grab in grabs[:]:
                other = recognition.partner_in(self._controls.figure, names, grab.control)
                if not other or other in pinned:
                    continue
                if any(self._are_in_line(other, each.control) for each in grabs):
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
        wanted = pins_of(self.armature_object)
        if self.armature_object.ccd_rig.pin_feet:
            wanted = standing_feet(self.armature_object, controls.figure) | wanted
        wanted = {name: held for name, held in wanted.items() if name not in self._names}
        line = controls.line(bones[self.name])
        if controls.is_tweak(line[0]):
            wanted = {}
        body = controls.body(line) if wanted else None
        self.pins = {name: held for name, held in wanted.items() if body in controls.line(bones[name])}
        self._body = body if self.pins else None
        self._carrier, self._hung = None, {}
        far = wanted.keys() - self.pins.keys()
        carrier = Carrier.of(controls) if far else None
        if carrier is not None:
            hung = {name: carrier.hung(bones[name]) for name in (*self._names, *wanted)}
            ways = {name: way for name, way in hung.items() if way is not None}
            turned_alone = [name for name in self._names if name in ways and ways[name].control != name]
            for name in turned_alone:  # such as a heel's control: it moves no limb
                del ways[name]
            pinned_ways = {name: ways[name] for name in wanted if name in ways}
            held = {name: wanted[name] for name, way in pinned_ways.items() if way.control not in self._names}
            if all(name in ways for name in self._names) and len(held) > len(self.pins):
                self.pins, self._body, self._carrier, self._hung = held, None, carrier, ways
                far = wanted.keys() - pinned_ways.keys()
        self.far_pins = sorted(far)

    def _usual(self, name: str) -> int:
        """Default number of turning bones in a bone's chain; with pins it reaches up to the body."""
        bone = self._bone(name)
        return self._most(name) if self.pins else self._controls.limb(bone)

    def _most(self, name: str) -> int:
        """Maximum of turning bones in a bone's chain."""
        line = self._controls.line(self._bone(name))
        body = self._controls.armature_object.pose.bones.get(self.body)
        if body in line:
            line = line[: line.index(body) + 1]
        turning = 1 + sum(self._controls.turns(bone) for bone in line[1:])
        return turning + 1 if self._carrier is not None and body not in line else turning

    def _length(self, name: str) -> int:
        """Present length of a bone's chain, locked bones included."""
        turning = self._usual(name) + self.turning - self._usual(self.name)
        return self._controls.chain_length(self._bone(name), min(max(turning, 1), self._most(name)))

    def _plan(self) -> None:
        """Find pins and chains and prepare the solve, anew if chains follow what others move."""
        while True:
            self._find_pins()
            self.most = self._most(self.name)
            self.turning = min(self.turning or self._usual(self.name), self.most)
            self._prepare()
            if not self._controls.ends_at_moved(self.chain, self._reading.bones):
                return

    def _prepare(self) -> None:
        """Prepare the solve for chains of the present lengths, from the pose at the press."""
        self._joined: Joined | None = None
        self._shifted: dict[int, int] = {}
        if self._carrier is not None and self.turning == self.most:
            self._prepare_carried(self._carrier)
            return
        controls, bones, body = self._controls, self.armature_object.pose.bones, self._body
        lengths = {name: self._length(name) for name in self._names}
        chains = list(lengths.items())
        for name in (*self._names, *self.pins) if body is not None else ():
            line = controls.line(bones[name])
            if body in line:
                chains.append((name, line.index(body) + 1))
        moving = {name for name in self._names if lengths[name] == 1 and controls.moves(bones[name])}
        sliding = moving if body is None else moving | {body.name}
        balances = body is not None and self.armature_object.ccd_rig.keep_balance
        carried = self._masses() if balances else None
        # The balance shifts the body by its mass already.
        heavy = "" if body is None or balances else body.name
        reading = self._read(chains, sliding, heavy, carried)
        grabs = [
            drag.Grab(name, local, lengths[name], name in moving, SOFTNESS)
            for name, local in self._locals(reading)
        ]
        held = self._held(reading) if body is not None else []
        support = self._support() if balances else None
        made = drag.Drag(reading.skeleton, reading.pose, grabs, held, support=support, is_even=bool(held))
        self._begin(reading, made, made.movable)

    def _prepare_carried(self, carrier: Carrier) -> None:
        """Prepare the solve of limbs that hang on the body's control by constraints."""
        controls, bones, body = self._controls, self.armature_object.pose.bones, carrier.body
        chains, sliding = [(body.name, 1)], {body.name}
        pulled: set[bpy.types.PoseBone] = set()
        roots: dict[str, bool] = {}
        limbs: dict[str, tuple[tuple[str, ...], str]] = {}
        for name in (*self._names, *self.pins):
            way = self._hung[name]
            if way.ik:
                limbs[way.control] = way.ik, way.carrier
                line = controls.line(bones[way.carrier])
                line = line[: line.index(body) + 1]
                chains.append((way.carrier, len(line)))
                if name in self._names:
                    chains.append((name, 1))
                    sliding.add(name)
                    pulled |= {*line}
                continue
            line = controls.line(bones[way.control])
            if body in line:
                line = line[: line.index(body) + 1]
            else:
                roots[line[-1].name] = way.inherits
            chains.append((way.control, len(line)))
            if name in self._names:
                pulled |= {*line}
        # The trunk does not give way to pins, but to pulls.
        trunk = {bones[tip] for tip, _ in chains}.union(*(bones[tip].parent_recursive for tip, _ in chains))
        still = {bone.name for bone in trunk - pulled if controls.is_trunk(bone)}
        balances = self.armature_object.ccd_rig.keep_balance
        reading = self._read(chains, sliding, "" if balances else body.name, still=still)
        shown = self._evaluated.pose.bones
        joined = Joined.of(reading, body.name, roots, limbs.values(), shown)
        if balances:
            leading = {name: limbs[name][0][-1] for name in self._names if name in limbs}
            joined = joined.with_masses(self._lumps(joined, leading))
        grabs = []
        for name, local in self._locals(reading):
            ik = limbs.get(name)
            if ik is None:
                grabs.append(drag.Grab(name, local, 0, name == body.name, SOFTNESS))
            else:
                grabs.append(drag.Grab(ik[0][-1]))
                self._shifted[reading.bones.index(name)] = len(grabs) - 1
        held: dict[str, drag.Pin] = {}
        for name, is_held in self.pins.items():
            control = self._hung[name].control
            joint = limbs[control][0][-1] if control in limbs else control
            held.setdefault(joint, drag.Pin(joint, is_held and control not in limbs))
        support = self._support() if balances else None
        # Pulled IK controls are at the pointer: the body brings their limbs there.
        is_even = not self._shifted
        made = drag.Drag(joined.skeleton, joined.pose, grabs, held.values(), None, support, is_even)
        self._joined = joined
        moved = [joined.order[j] for j in made.movable if j < len(joined.order)]
        self._begin(reading, made, [j for j in moved if j not in self._shifted])

    def _masses(self) -> Mapping[str, float]:
        """Masses by bone: those that are set, or else lengths of the bones that deform."""
        return masses(self.armature_object) or armature.mass_lengths(self.armature_object.data)

    def _lumps(self, joined: Joined, leading: Mapping[str, str]) -> dict[str, list[tuple[float, Vector]]]:
        """{joint: masses that it takes along, with their places in armature space}; "": those that stay.

        Args:
            leading: {pulled control of an IK limb: last joint of the limb}.
        """
        names = {joint.name for joint in joined.skeleton.joints}
        lumps: dict[str, list[tuple[float, Vector]]] = {}
        for name, mass in self._masses().items():
            place = armature.mass_middle(self._evaluated.pose.bones[name])
            for carrier, part, at in self._controls.carriers_in(self._bone(name), names, place):
                lumps.setdefault(leading.get(carrier, carrier), []).append((part * mass, at))
        return lumps

    def _locals(self, reading: armature.RigReading) -> list[tuple[str, Vector]]:
        """The pulled bones, each with the pulled point in the frame of its joint."""
        joints, places = forward_kinematics(reading.skeleton, reading.pose), []
        for grab in self._grabs:
            joint = joints[reading.bones.index(grab.control)]
            places.append((grab.control, joint.rotation.inverted() @ (grab.place - joint.translation)))
        return places

    def _held(self, reading: armature.RigReading) -> list[drag.Pin]:
        """The pins, each with the end of its bone where tails say nothing."""
        ends = armature.handle_ends(self.armature_object.data)
        if not ends:
            return [drag.Pin(*each) for each in self.pins.items()]
        joints, held = forward_kinematics(reading.skeleton, reading.pose), []
        for name, turns_too in self.pins.items():
            joint = joints[reading.bones.index(name)]
            end = self._evaluated.pose.bones[name].matrix @ ends[name]
            held.append(drag.Pin(name, turns_too, joint.rotation.inverted() @ (end - joint.translation)))
        return held

    def _read(
        self,
        chains: Sequence[tuple[str, int]],
        sliding: set[str],
        heavy: str,
        carried: Mapping[str, float] | None = None,
        still: Collection[str] = (),
    ) -> armature.RigReading:
        """Read chains: (tip, number of bones).

        Args:
            heavy: the body, if its mass counts against its motion.
            carried: masses for the balance.
        """
        controls, bones = self._controls, self.armature_object.pose.bones
        members = list(dict.fromkeys(b.name for tip, n in chains for b in controls.line(bones[tip])[:n]))
        settings = joint_settings(self.armature_object, members)
        for name in members:
            settings[name] |= self._changed_settings(bones[name], settings[name], name in sliding)
            if name in still:
                settings[name] |= {"stiffness": 1.0, "limit": None, "comfort": None}
        if heavy in settings:
            mobility = math.sqrt(ARM_MASS) * (1.0 - settings[heavy]["stiffness"])
            settings[heavy] |= {"stiffness": 1.0 - mobility}
        for name, mass in (carried or {}).items():
            if name in settings:
                settings[name] |= {"mass": mass}
        above = {each for name in members for each in bones[name].parent_recursive}
        placed = [bone.name for bone in above if controls.placing(bone)]
        reading = armature.layout(self._evaluated, chains, settings, carried, placed).read(self._evaluated)
        return self._as_limits_show(self._carried_by_constraints(reading))

    def _carried_by_constraints(self, reading: armature.RigReading) -> armature.RigReading:
        """The reading with bones where constraints carry them as parents do."""
        places = {}
        for j, joint in enumerate(reading.skeleton.joints):
            bone = self._evaluated.pose.bones[reading.bones[j]]
            if joint.parent >= 0 or not self._controls.parented(self._bone(bone.name)):
                continue
            pose = reading.pose
            rest = (_shown_rotation(bone) @ pose.rotations[j].inverted()).normalized()
            places[j] = (bone.head - rest @ pose.translations[j]).freeze(), rest.freeze()
        return replace(reading, skeleton=reading.skeleton.moved(places)) if places else reading

    def _as_limits_show(self, reading: armature.RigReading) -> armature.RigReading:
        """The reading with bones as Limit Rotation shows them: Blender leaves their channels outside."""
        rotations, whole = list(reading.pose.rotations), list[Quaternion]()
        for j, (name, joint) in enumerate(zip(reading.bones, reading.skeleton.joints, strict=True)):
            rest = joint.rest_rotation
            if joint.parent >= 0 and joint.inherit_rotation:
                rest = whole[joint.parent] @ rest
            if _acting_limit(self._bone(name)) is not None:
                shown = (rest.inverted() @ _shown_rotation(self._evaluated.pose.bones[name])).normalized()
                if abs(shown.dot(rotations[j])) < 1.0 - TURNED:
                    rotations[j] = shown.freeze()
            whole.append(rest @ rotations[j])
        return replace(reading, pose=Pose.trusted(tuple(rotations), reading.pose.translations))

    def _begin(self, reading: armature.RigReading, made: drag.Drag, moved: Iterable[int]) -> None:
        """Take over a prepared drag; `moved`: joints of the reading that it may move."""
        if not made.movable:
            raise RigError(
                f"Bone '{printable(self.name)}' cannot turn: unlock its rotation, or lower its stiffness"
            )
        self._reading, self._drag, self._moved = reading, made, tuple(moved)
        self._turned = Turned.of(self._controls, reading, self._evaluated.pose.bones)
        bones = self.armature_object.pose.bones
        for name in reading.bones:
            self._press[name] = {channel: tuple(getattr(bones[name], channel)) for channel in WIDTHS}

    def _beside_turned(self, pose: Pose) -> Pose:
        """The pose whose bones stand as solved, with mechanisms above them that copy rotations."""
        joints, solved = self._reading.skeleton.joints, forward_kinematics(self._reading.skeleton, pose)
        rotations, real = list(pose.rotations), [each.rotation for each in solved]
        changed: set[int] = set()
        for j, joint in enumerate(joints):
            if j not in self._turned and joint.parent not in changed:
                continue
            above = real[joint.parent] @ joint.rest_rotation
            if j in self._turned:
                real[j] = self._turned[j].rotation(above, real)
                rotations[j] = (above.inverted() @ real[j]).normalized()
                changed.add(j)
            elif j in self._moved:
                rotations[j] = (above.inverted() @ real[j]).normalized()
            else:
                real[j] = above @ rotations[j]
                changed.add(j)
        return Pose(tuple(rotations), pose.translations)

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
        ends = armature.bone_ends(self.armature_object.data)

        def end(bone: bpy.types.PoseBone) -> Vector:
            return bone.matrix @ ends[bone.name].place if ends else bone.tail

        for name, is_held in self.pins.items():
            bone = self._evaluated.pose.bones[name]
            points.append(end(bone))
            if is_held:
                points.append(bone.head)
                points += [place for each in bone.children_recursive for place in (each.head, end(each))]
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
        changed: dict[str, Any] = {}
        figure = self._controls.figure
        if not settings["stiffness"]:
            if self._controls.is_trunk(bone):
                changed["stiffness"] = 1.0 - math.sqrt(ARM_MASS / UPPER_MASS)
            elif figure.is_clavicle(bone.name):
                changed["stiffness"] = 1.0 - CLAVICLE_MOBILITY
            elif figure.is_pelvis(bone.name) and bone.name not in self._names:
                changed["stiffness"] = 1.0
        limit = _acting_limit(bone)
        if settings["limit"] is None and limit is not None:
            changed |= {"limit": limit, "comfort": None}
        return changed

    def _write(self, pose: Pose) -> None:
        """Write the channels that differ from the pose at the press."""
        reading, before = self._reading, self._reading.pose
        rotated, located = [], []
        bones = self.armature_object.pose.bones
        for j in (*self._moved, *self._shifted):
            pairs = zip(pose.rotations[j], before.rotations[j], strict=True)
            turns = self._controls.turns(bones[reading.bones[j]])
            if turns and max(abs(a - b) for a, b in pairs) > TURNED:
                rotated.append(j)
            if pose.translations[j] != before.translations[j]:
                located.append(j)
        for j in rotated:
            name = reading.bones[j]
            self._written.setdefault(name, set()).add(rotation_channel(bones[name])[0])
        # Coupled offsets follow angles, so the channels of their bones may change too.
        locations = armature.location_channels(reading, pose, {*rotated, *located})
        for j in locations:
            self._written.setdefault(reading.bones[j], set()).add("location")
        armature.apply(self.armature_object, reading, pose, rotated, locations)


def _shown_rotation(bone: bpy.types.PoseBone) -> Quaternion:
    """Rotation of an evaluated bone in armature space; a scale that mirrors the bone is no turn of it."""
    mirrored = Matrix.Diagonal([math.copysign(1.0, each) for each in bone.scale])
    return (bone.matrix.to_3x3() @ mirrored).to_quaternion()


def _acting_limit(bone: bpy.types.PoseBone) -> EulerBox | None:
    """The range of the first Limit Rotation in force, cut to locked angles; None if it is in other axes.

    Such a constraint acts on top of what is solved.
    """
    acting = (each for each in clamps.acting_constraints(bone) if each.type == "LIMIT_ROTATION")
    constraint = next(acting, None)
    try:
        limit = None if constraint is None else blender_limits.box(bone, constraint)
    except RigError:
        return None
    is_cut = limit is not None and any(bone.lock_rotation) and limit.order != bone.rotation_mode
    return None if is_cut else limit


# Limbs that hang on a body by constraints -------------------------------------------------------------------


@dataclass(frozen=True)
class Hung:
    """A limb that hangs on the body's control."""

    control: str  # bone that is dragged or pinned
    inherits: bool = True  # whether the limb's first bone turns with the body
    # Bones that Blender's IK turns to `control`, from the body; empty for a limb by FK.
    ik: tuple[str, ...] = ()
    carrier: str = ""  # the bone, in a line with the body, that carries the first of `ik`


class Carrier:
    """The control of a figure's body, and the limbs that follow it.

    Attributes:
        body: the control.
    """

    def __init__(self, controls: Controls, body: bpy.types.PoseBone) -> None:
        self.controls, self.body = controls, body
        self._carried: dict[str, bool] = {body.name: True}

    @classmethod
    def of(cls, controls: Controls) -> Carrier | None:
        """The carrier of an armature; None if no control of the hips is moved by its channels."""
        bones = controls.armature_object.pose.bones
        for name, role in controls.figure.roles.items():
            if role.part is Part.HIPS and name in bones:
                body = bones[name]
                if not controls.placing(body) and controls.shifts(body):
                    return cls(controls, body)
        return None

    def hung(self, bone: bpy.types.PoseBone) -> Hung | None:
        """How a bone hangs on the body; None if it does not, or not as a whole."""
        controls = self.controls
        try:
            control = bone if not controls.placing(bone) else controls.control_of(bone)
        except RigError:
            return None
        line = controls.line(control)
        if self.body in line:
            return Hung(control.name)
        leading = self._leading(control)
        if leading is not None:
            ik = self._ik_limbs[leading.name]
            first = controls.armature_object.pose.bones[ik[0]]
            is_free = not any(leading.lock_location) and not self._is_carried(leading)
            if is_free and self._head_is_carried(first):
                return Hung(leading.name, True, ik, self._carrier_of(first).name)
            return None
        if controls.moves(control) or not self._head_is_carried(line[-1]):
            return None
        return Hung(control.name, line[-1].parent is not None and self._is_carried(line[-1].parent))

    def _carrier_of(self, bone: bpy.types.PoseBone) -> bpy.types.PoseBone:
        """The lowest bone in a line with the body that takes a bone's head along."""
        below = bone
        for above in bone.parent_recursive:
            if self.body in self.controls.line(above) and above in self.controls.line(below):
                return above
            if any(each.type not in TURNING for each in placing_constraints(above)) or not _meet(
                below, above
            ):
                break
            below = above
        return self.body

    def _leading(self, control: bpy.types.PoseBone) -> bpy.types.PoseBone | None:
        """The control that an IK limb follows: the bone, or what carries it, as a foot its heel."""
        for bone in (control, *control.parent_recursive):
            if self.controls.is_in_ik(bone):
                return self._leading(self.controls.control_of(bone))
            if bone.name in self._ik_limbs and self.controls.moves(bone):
                return bone
        return None

    @cached_property
    def _ik_limbs(self) -> dict[str, tuple[str, ...]]:
        """{control of a limb: bones that Blender's IK turns to it, from the body}."""
        limbs: dict[str, tuple[str, ...]] = {}
        for tip, bones in self.controls.ik_chains().items():
            try:
                control = self.controls.control_of(self.controls.armature_object.pose.bones[tip])
            except RigError:
                continue
            limbs.setdefault(control.name, bones)
        return limbs

    def _is_carried(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone moves with the body as one: all that places it does."""
        if bone.name not in self._carried:
            self._carried[bone.name] = False  # of bones that follow each other in a circle
            self._carried[bone.name] = not self.controls.is_in_ik(bone) and self._follows(bone, ())
        return self._carried[bone.name]

    def _head_is_carried(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone's head moves with the body; constraints may turn the bone about it."""
        return self._follows(bone, TURNING)

    def _follows(self, bone: bpy.types.PoseBone, ignored: Collection[str]) -> bool:
        sources: list[tuple[Any, str]] = []
        parent = bone.parent
        for constraint in reversed(list(placing_constraints(bone))):
            if constraint.type in ignored:
                continue
            sources += ends_of(constraint)
            if constraint.type == "COPY_TRANSFORMS" and constraint.influence >= 1.0:
                parent = None  # what stands before it has no effect
                break
        rig = self.controls.armature_object
        carried = [
            obj == rig
            and name in rig.pose.bones
            and name not in self.controls.moved
            and self._is_carried(rig.pose.bones[name])
            for obj, name in sources
        ]
        if parent is not None:
            meets = bool(ignored) and _meet(bone, parent)
            carried.append(self._is_carried(parent) or (meets and self._head_is_carried(parent)))
        return bool(carried) and all(carried)


def _meet(bone: bpy.types.PoseBone, parent: bpy.types.PoseBone) -> bool:
    """Whether a bone's head is at that of its parent."""
    return (bone.bone.head_local - parent.bone.head_local).length <= MEETING * parent.bone.length


@dataclass(frozen=True)
class Turned:
    """A mechanism between controls that copies the rotation of another bone."""

    basis: Quaternion  # rotation of its channels
    influence: float  # of the copied rotation, 0 to 1
    source: int  # joint that carries the other bone; -1 if none does
    copied: Quaternion  # the other bone's rotation relative to that joint, or in armature space
    error: Quaternion  # shown rotation at the press, relative to that by these values

    @classmethod
    def of(cls, controls: Controls, reading: RigReading, bones: Any) -> dict[int, Turned]:
        """{joint: mechanism} of a reading; `bones`: evaluated pose bones."""
        turned: dict[int, Turned] = {}
        real = [each.rotation for each in forward_kinematics(reading.skeleton, reading.pose)]
        for j, name in enumerate(reading.bones):
            parent = reading.skeleton.joints[j].parent
            copy = controls.turned_by(controls.armature_object.pose.bones[name])
            if copy is None or parent < 0:
                continue
            followed = bones[copy.subtarget]
            copied, source = followed.matrix.to_quaternion(), -1
            for each in controls.line(controls.armature_object.pose.bones[copy.subtarget]):
                if each.name in reading.bones:
                    source = reading.bones.index(each.name)
                    copied = real[source].inverted() @ copied
                    break
            basis = bones[name].matrix_basis.to_quaternion()
            made = cls(basis, copy.influence, source, copied, Quaternion())
            by_values = made.rotation(real[parent] @ reading.skeleton.joints[j].rest_rotation, real)
            turned[j] = replace(made, error=(by_values.inverted() @ real[j]).normalized())
        return turned

    def rotation(self, rest: Quaternion, real: Sequence[Quaternion]) -> Quaternion:
        """Its rotation in armature space, where it has the rotation `rest` without channels."""
        copied = self.copied if self.source < 0 else real[self.source] @ self.copied
        return (rest @ self.basis).slerp(copied, self.influence) @ self.error


@dataclass(frozen=True)
class Joined:
    """Limbs joined to the body that carries them."""

    skeleton: Skeleton  # the body, the bones that were read, and those that Blender's IK turns
    pose: Pose  # at the press
    order: tuple[int, ...]  # index in the reading of each joint that was read

    @classmethod
    def of(
        cls,
        reading: RigReading,
        body: str,
        hung: Mapping[str, bool],
        limbs: Iterable[tuple[tuple[str, ...], str]],
        bones: Any,
    ) -> Joined:
        """Join limbs to a body.

        Args:
            reading: of the body, which has no parent in it, and of limbs by FK.
            body: its bone.
            hung: {first bone of a limb by FK: whether it turns with the body}.
            limbs: bones that Blender's IK turns, from the body, of each limb, and the bone that carries them.
            bones: evaluated pose bones.
        """
        first = reading.bones.index(body)
        order = (first, *(j for j in range(len(reading.bones)) if j != first))
        places = {j: k for k, j in enumerate(order)}
        transforms = forward_kinematics(reading.skeleton, reading.pose)
        base = transforms[first]
        back = base.rotation.inverted()
        joints: list[Joint] = []
        for j in order:
            joint = reading.skeleton.joints[j]
            parent = places[joint.parent] if joint.parent >= 0 else -1
            if reading.bones[j] in hung and parent < 0:
                turned = back @ joint.rest_rotation if hung[reading.bones[j]] else joint.rest_rotation
                joint = replace(
                    joint,
                    parent=0,
                    offset=back @ (joint.offset - base.translation),
                    rest_rotation=turned,
                    inherit_rotation=hung[reading.bones[j]],
                )
            else:
                joint = replace(joint, parent=parent)
            joints.append(joint)
        for limb, carrier in limbs:
            j = reading.bones.index(carrier)
            frames = [(transforms[j].translation, transforms[j].rotation, places[j])]
            for name in limb:
                head, rotation = bones[name].head.copy(), bones[name].matrix.to_quaternion()
                at, turned, parent = frames[-1]
                offset = turned.inverted() @ (head - at)
                length = (bones[name].tail - head).length
                joints.append(Joint(name, parent, offset, turned.inverted() @ rotation, length))
                frames.append((head, rotation, len(joints) - 1))
        still = Pose.rest(Skeleton(joints))
        count = len(order)
        pose = Pose(
            (*(reading.pose.rotations[j] for j in order), *still.rotations[count:]),
            (*(reading.pose.translations[j] for j in order), *still.translations[count:]),
        )
        return cls(Skeleton(joints), pose, order)

    def with_masses(self, lumps: Mapping[str, Sequence[tuple[float, Vector]]]) -> Joined:
        """The same with masses: {joint: [(mass, its place in armature space)]}; "": those that stay."""
        transforms, joints = forward_kinematics(self.skeleton, self.pose), list(self.skeleton.joints)
        rotations, translations = self.pose.rotations, self.pose.translations
        for name, several in lumps.items():
            mass = math.fsum(each for each, _ in several)
            if mass == 0.0:
                continue
            middle = sum((each * place for each, place in several), Vector()) / mass
            if name:
                i = self.skeleton.index(name)
                point = transforms[i].rotation.inverted() @ (middle - transforms[i].translation)
                joints[i] = replace(joints[i], mass=mass, mass_point=point)
            else:
                still = max((joint.name for joint in joints), key=len) + "-"
                joints.append(Joint(still, -1, middle, length=0.0, stiffness=1.0, mass=mass))
                rotations, translations = (*rotations, Quaternion()), (*translations, Vector())
        return replace(self, skeleton=Skeleton(joints), pose=Pose(rotations, translations))

    def read(self, pose: Pose) -> Pose:
        """The pose of the reading."""
        places = {j: k for k, j in enumerate(self.order)}
        joints = range(len(self.order))
        return Pose.trusted(
            tuple(pose.rotations[places[j]] for j in joints),
            tuple(pose.translations[places[j]] for j in joints),
        )


# Pins, which pose bones store -------------------------------------------------------------------------------


STANDING = 0.05
"""Largest height of a standing foot above the lowest one, in the figure's height."""
FEET = (Part.FOOT, Part.FRONT_FOOT)

NEXT_PIN = {name: PINS[(k + 1) % len(PINS)][0] for k, (name, *_) in enumerate(PINS)}
"""{kind of a pin: kind after the next press of its key}"""


def pins_of(armature_object: bpy.types.Object) -> dict[str, bool]:
    """Return {pinned bone: whether its rotation is pinned too}."""
    kinds = {bone.name: bone.ccd_rig.pin for bone in with_settings(armature_object.pose.bones)}
    return {name: kind == "ROTATION" for name, kind in kinds.items() if kind in ("PLACE", "ROTATION")}


def standing_feet(armature_object: bpy.types.Object, figure: Figure) -> dict[str, bool]:
    """Return pins of feet on the ground in the present pose: the feet least above their rest.

    At rest all feet stand: a paw may begin at the wrist, beside a foot with toes. Feet are pinned with their
    rotations, last bones of many legs by their places alone. On rigs that Rigify has generated they are the
    copies of the metarig's bones, which follow IK or FK controls.
    """
    world, bones = armature_object.matrix_world, armature_object.pose.bones
    feet = {name: True for name, role in figure.roles.items() if role.part in FEET}
    legs = dict.fromkeys((each.side, each.number) for each in figure.roles.values() if each.part is Part.LEG)
    feet |= {figure.bones(Part.LEG, *leg)[-1]: False for leg in legs}
    if rigify.is_generated(armature_object.data):
        feet = {rigify.original_of(name): held for name, held in feet.items()}
    feet = {name: held for name, held in feet.items() if name in bones}
    if not feet:
        return {}
    lifted = {name: _lowest(world, bones[name]) - _lowest(world, bones[name].bone) for name in feet}
    heights = [(world @ end).z for bone in bones for end in (bone.head, bone.tail)]
    reach = STANDING * (max(heights) - min(heights))
    ground = min(lifted.values())
    return {name: held for name, held in feet.items() if lifted[name] <= ground + reach}


def _lowest(world: Any, bone: bpy.types.PoseBone | bpy.types.Bone) -> float:
    """Height of the lowest end of a bone and its children, world space: posed, or at rest."""
    every = (bone, *bone.children_recursive)
    if isinstance(bone, bpy.types.Bone):
        ends = [end for each in every for end in (each.head_local, each.tail_local)]
    else:
        ends = [end for each in every for end in (each.head, each.tail)]
    return float(min((world @ end).z for end in ends))


def pin_words(pins: Mapping[str, bool]) -> str:
    """Return the number of pins as text, for a status line."""
    return f"{len(pins)} pin{'' if len(pins) == 1 else 's'}"
