# SPDX-License-Identifier: GPL-3.0-or-later
"""Set-up of a figure in one step: constraints, targets, poles, ranges of joints.

Roles of bones and choices of the user -> planned constraints -> constraints with targets.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import bpy
from mathutils import Vector

from ..errors import CCDRigError, RigError
from ..limits.fitting import loosened
from ..limits.shapes import Hinge
from ..solvers.soft_reach import SOFTNESS
from ..solvers.stepping import result_of
from . import checks
from .bake import target_motion
from .figures import control_bones, recognition, rigify
from .figures.choices import Choices, Group, Ranges
from .figures.recognition import RIGIFY
from .figures.role import (
    FRONT_PARTS,
    LEG_PARTS,
    SIDES,
    Figure,
    Kind,
    Part,
    RestBone,
    Role,
    Side,
    SkeletonTree,
)
from .figures.structure import ANKLE, IN_LINE, halves, size_of
from .keys import channels
from .limit_sources import blender_limits, presets
from .properties import constraint_list, new_constraints
from .properties.constraint_values import Holds
from .properties.limits import store_limits
from .properties.names import named, sentence
from .properties.new_constraints import NewTarget, Target, make_stiff, make_targets
from .properties.solver_settings import solver_settings
from .rig import clamps
from .scene.evaluation import shown_range
from .scene.targets import orthonormal

PAW = 0.1
"""Largest height of an animal's toe that stands on the ground, in the leg's height."""


SINGULAR = {Group.HANDS: "hand", Group.FEET: "foot", Group.WINGS: "wing"}
"""Words for one of a group."""
CHAINS = {Part.TAIL: Group.TAIL, Part.TRUNK: Group.TRUNK, Part.WING: Group.WINGS}
"""Parts that are rows of bones without joints of their own."""
TAILS = (Group.TAIL, Group.TRUNK)
"""Groups with the ranges of a tail."""


@dataclass(frozen=True)
class PlannedRow:
    """Constraint to make."""

    group: Group  # of the figure
    role: Role  # of its bone
    tip: str  # name of its bone
    top: str  # name of the first bone of its chain
    use_tail: bool = False  # whether the tail of the bone reaches the target, or its head
    copies_rotation: bool = True  # whether the bone copies the target's rotation
    bend: str = ""  # bone that starts at the knee or elbow; empty for chains without a pole
    reaches: bool = True  # whether the end of the bone reaches the target
    slides: bool = False  # whether the bone also slides, as the root of a figure


def planned_rows(figure: Figure, bones: Sequence[RestBone]) -> list[PlannedRow]:
    """Plan the constraints of a figure; none without known roles.

    Args:
        bones: all bones of the armature, in a space whose Z points up.
    """
    tree = SkeletonTree(bones)
    rows = [*_hips(figure, tree), *_head(figure, tree), *_arms(figure, tree), *_legs(figure, tree)]
    rows += _many_legs(figure)
    for part, group in CHAINS.items():
        rows += _chains(figure, tree, part, group)
    return [row for row in rows if tree.path(row.top, row.tip)]


def _hips(figure: Figure, tree: SkeletonTree) -> Iterator[PlannedRow]:
    """Plan a constraint for the bone above legs and head, which slides."""
    hips = figure.bones(Part.HIPS)[:1]
    if figure.kind is Kind.CHAIN or not hips:
        return
    carrier = hips[0]
    if figure.family != RIGIFY:
        for above in (*figure.bones(Part.SPINE)[:1], *figure.bones(Part.HEAD)[:1]):
            carrier = tree.common(carrier, above) or carrier
        free = (name for name in tree.ancestors(carrier) if not tree.bones[name].connected)
        carrier = next(free, carrier)
    yield PlannedRow(Group.HIPS, figure.roles[hips[0]], carrier, carrier, slides=True)


def _head(figure: Figure, tree: SkeletonTree) -> Iterator[PlannedRow]:
    for name, role in figure.roles.items():
        if role.part is not Part.HEAD:
            continue
        neck = [*figure.bones(Part.NECK, role.side, role.number), name]
        if role == Role(Part.HEAD):  # heads beside it leave the spine to it
            neck = [*figure.bones(Part.SPINE), *neck]
        above = [bone for bone in neck if tree.is_below(name, bone)]
        # A generated neck is no parent of its head. A head alone takes the body along.
        hips = figure.bones(Part.HIPS)[:1]
        is_carried = any(tree.is_below(name, each) for each in hips) and name not in hips
        reaches = figure.family != RIGIFY and (above[0] != name or is_carried)
        top = above[0] if reaches else name
        yield PlannedRow(Group.HEAD, figure.roles[name], name, top, reaches=reaches)


def _arms(figure: Figure, tree: SkeletonTree) -> Iterator[PlannedRow]:
    numbers = sorted({role.number for role in figure.roles.values() if role.part is Part.UPPER_ARM})
    for number in numbers:
        for side in SIDES:
            upper, lower, hand = (
                figure.bones(part, side, number) for part in (Part.UPPER_ARM, Part.LOWER_ARM, Part.HAND)
            )
            if upper and hand:
                bend = lower[0] if lower else ""
                yield PlannedRow(Group.HANDS, figure.roles[hand[0]], hand[0], upper[0], bend=bend)
            elif upper and lower and figure.roles.keys() >= {*tree.children[lower[-1]]}:
                # The arm ends here: a hand whose role was taken away is to have no constraint.
                yield _reach_of_end(figure, Group.HANDS, lower[-1], upper[0], lower[0])


def _legs(figure: Figure, tree: SkeletonTree) -> Iterator[PlannedRow]:
    for pieces in (LEG_PARTS[1:], FRONT_PARTS):
        for side in SIDES:
            thigh, shin, foot, toe = (figure.bones(part, side) for part in pieces)
            if thigh and foot:
                flat = figure.kind is Kind.HUMAN and _is_flat(tree, thigh[0], foot[0], toe)
                tip = foot[0] if flat else _paw(tree, thigh[0], foot[0], toe)
                bend = shin[0] if shin else ""
                yield PlannedRow(Group.FEET, figure.roles[tip], tip, thigh[0], bend=bend)
            elif thigh and shin:
                yield _reach_of_end(figure, Group.FEET, shin[-1], thigh[0], shin[0])


def _paw(tree: SkeletonTree, thigh: str, foot: str, toes: Sequence[str]) -> str:
    """Bone of an animal's foot that stands on the ground: the foot bone's heel is above it."""
    low = [toe for toe in toes if _height(tree, toe) <= PAW * _height(tree, thigh)]
    hanging = [toe for toe in (*low[:1], *reversed(toes)) if tree.path(foot, toe)]
    return hanging[0] if hanging else foot


def _is_flat(tree: SkeletonTree, thigh: str, foot: str, toes: Sequence[str]) -> bool:
    """Whether a foot extends its leg by little, in any orientation: else its heel is above the ground."""
    leg, whole = (
        Vector(tree.bones[end].head) - Vector(tree.bones[thigh].head) for end in (foot, (foot, *toes)[-1])
    )
    along: float = whole.dot(leg.normalized())
    return leg.length > (1.0 - ANKLE) * along


def _height(tree: SkeletonTree, name: str) -> float:
    """Height of a bone's head above the lowest head."""
    return tree.bones[name].head[2] - min(bone.head[2] for bone in tree.bones.values())


def _many_legs(figure: Figure) -> Iterator[PlannedRow]:
    numbers = sorted({role.number for role in figure.roles.values() if role.part is Part.LEG})
    for number in numbers:
        for side in SIDES:
            leg = figure.bones(Part.LEG, side, number)
            if len(leg) > 1:
                yield _reach_of_end(figure, Group.FEET, leg[-1], leg[0], leg[1])


def _chains(figure: Figure, tree: SkeletonTree, part: Part, group: Group) -> Iterator[PlannedRow]:
    keys = sorted({(role.number, role.side) for role in figure.roles.values() if role.part is part})
    for number, side in keys:
        whole = figure.bones(part, side, number)
        # Parents of a generated rig's controls may be no controls, which ends a row early.
        rows = [[name for name in whole[: k + 1] if tree.is_below(whole[k], name)] for k in range(len(whole))]
        row = max(reversed(rows), key=len)
        if len(row) > 1:
            yield _reach_of_end(figure, group, row[-1], row[0])


def _reach_of_end(figure: Figure, group: Group, tip: str, top: str, bend: str = "") -> PlannedRow:
    """Plan a constraint for the end of a limb's last bone, which turns as the limb does."""
    return PlannedRow(group, figure.roles[tip], tip, top, use_tail=True, copies_rotation=False, bend=bend)


@dataclass
class SetUpResult:
    """Result of a set-up."""

    kind: Kind  # of the figure
    family: str  # of its bones' names; empty if it was recognised by structure
    available: tuple[Group, ...] = ()  # groups of the figure
    carrier: str = ""  # name of the figure's root bone; empty if there is none
    rows: dict[Group, list[str]] = field(default_factory=dict)  # {group: names of its new constraints}
    poles: int = 0  # number of new poles
    is_planted: bool = False  # whether planted feet shift the hips
    notes: list[str] = field(default_factory=list)  # warnings to the user, without a full stop
    following: str = ""  # what was keyed along the motion, as a message; empty for nothing
    # {bone: (words of its role, words of the recognised role)}; empty words for none. Of generated rigs
    # controls with a role alone.
    roles: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def messages(self) -> list[str]:
        """What the user is told beside `words`, without a full stop."""
        return [*([self.following] if self.following else []), *self.notes]

    def words(self) -> str:
        """Summary, such as "Mixamo human: 2 hands, 2 feet, head, hips, 4 poles"."""
        counts = [_counted(group, len(names)) for group, names in self.rows.items()]
        if self.poles:
            counts.append(f"{self.poles} pole{'' if self.poles == 1 else 's'}")
        name = f"{self.family} {self.kind}".strip()
        return f"{name[:1].upper()}{name[1:]}: {', '.join(counts)}"


def _counted(group: Group, count: int) -> str:
    if group in SINGULAR:
        return f"{count} {SINGULAR[group] if count == 1 else group}"
    return str(group) if count == 1 else f"{count} {group}s"


# Ranges of joints -------------------------------------------------------------------------------------------

PRESETS = {Kind.HUMAN: "HUMAN", Kind.QUADRUPED: "QUADRUPED"}
ASIDE = math.radians(30.0)
"""Radians of sideways swing that a hinge gets if its bone copies a target's rotation."""
HINGES = (Part.LOWER_ARM, Part.SHIN, Part.FRONT_SHIN)
"""Parts whose first joint is an elbow or a knee."""


def apply(
    armature_object: bpy.types.Object, figure: Figure, rows: Sequence[PlannedRow], ranges: Ranges
) -> list[str]:
    """Give ranges to bones of the rows' chains without ranges, and return notes.

    The ranges contain the present pose and the playing motion.
    """
    notes = []
    if figure.kind in PRESETS:
        limbs = [row for row in rows if row.group not in (Group.HIPS, *TAILS)]
        names = [bone.name for row in limbs for bone in _chain(armature_object, row)]
        if ranges is Ranges.HINGES:
            names = [name for name in names if name in figure.roles and figure.roles[name].part in HINGES]
        turned = {row.tip for row in limbs if row.copies_rotation}
        notes += _apply(armature_object, names, turned, PRESETS[figure.kind], ranges)
    tails = [row for row in rows if row.group in TAILS and ranges is not Ranges.HINGES]
    names = [bone.name for row in tails for bone in _chain(armature_object, row)]
    return notes + _apply(armature_object, names, set(), "TAIL", ranges)


def _apply(
    armature_object: bpy.types.Object,
    names: Collection[str],
    turned: Collection[str],
    preset: str,
    ranges: Ranges,
) -> list[str]:
    bones = [
        bone
        for bone in armature_object.pose.bones
        if bone.name in names and bone.ccd_rig.limit.kind == bone.ccd_rig.comfort.region.kind == "NONE"
    ]
    if not bones:
        return []
    try:
        limits, notes = presets.preset_limits(bones, preset)
    except RigError as error:
        return [f"No ranges of joints: {error}"]
    for bone, limit in limits.items():
        if bone.name in turned and isinstance(limit, Hinge):
            # A paw cannot copy a target's rotation about a single axis.
            limits[bone] = loosened(limit, ASIDE) or limit
    limits, for_pose = presets.widened_limits(limits, presets.present_rotations(bones), "the present pose")
    limits, for_motion = presets.widened_limits(limits, blender_limits.played_rotations(bones), "the motion")
    if ranges is Ranges.COMFORT:
        store_limits({}, limits)
    else:
        store_limits(limits)
    return [*notes, *for_pose, *for_motion]


def _chain(armature_object: bpy.types.Object, row: PlannedRow) -> list[bpy.types.PoseBone]:
    """Return the bones of a planned chain, tip first."""
    bones = list(constraint_list.chain(armature_object, row.tip))
    return bones[: [bone.name for bone in bones].index(row.top) + 1]


def follow(context: bpy.types.Context, armature_object: bpy.types.Object, result: SetUpResult) -> None:
    """Key the targets of a set-up along the figure's motion, if it has one, and say so in the result.

    Planted rows have no targets, and do not change.
    """
    rows = armature_object.ccd_rig.constraints
    names = [name for group in result.rows.values() for name in group if rows[name].target is not None]
    chains = (constraint_list.chain_of(armature_object, rows[name]) for name in names)
    starts = tuple({bone.path_from_id() + "." for chain in chains for bone in chain})
    if not any(path.startswith(starts) for path in channels.played_paths(armature_object)):
        return
    context.view_layer.update()
    try:
        count = key_targets(context.scene, armature_object, names)
    except CCDRigError as error:
        result.notes.append(f"Targets stand still: {error}")
        return
    result.following = f"Targets follow the motion at {count} frame{'' if count == 1 else 's'}"


def key_targets(scene: bpy.types.Scene, armature_object: bpy.types.Object, names: Sequence[str]) -> int:
    """Key targets and poles of constraints along the motion, over the scene's range.

    Where the motion is shorter, and nothing moves outside of it, only its own frames get keys.

    Returns:
        The number of keyed frames.

    Raises:
        RigError: they cannot be keyed; no key was set.
    """
    first, last = shown_range(scene)
    frames = [float(frame) for frame in range(first, last + 1)]
    with ExitStack() as undo:
        ready = result_of(checks.require(armature_object, scene, names))
        solver = solver_settings(armature_object)
        keyed = target_motion.key_targets(
            scene, armature_object, ready.constraints, frames, solver, undo, trims=True
        )
        undo.pop_all()
    return keyed.frames


BENT = math.sin(math.radians(2.0))
"""Smallest offset of a knee, in the limb's length, that tells the pole's side."""
STRAIGHT = 0.0025
"""Offset below which a limb is straight: a bend of 0.6 degrees, see `solvers.problem_tables.STRAIGHT`."""
ONE_WAY = 0.6
"""Smallest sum of bends, in the largest bend, of a limb with one side; legs of animals bend to both sides."""
KNEES = (Part.SHIN, Part.FOOT, Part.TOE)
"""Ends of limbs that bend to the front, as a human's leg; arms and front legs bend to the back."""
DISTANCE = 0.75
"""Distance of a pole from the knee or elbow, in the limb's length."""


def pole_place(evaluated: bpy.types.Object, row: PlannedRow, front: Vector | None) -> Vector | None:
    """Return the world position of a pole; None for a limb that bends to both sides, or has no known side.

    The pole is on the side of the sum of all bends, as in `skeleton.kinematics.chain_bend`.

    Args:
        front: direction that the figure faces, world space, for straight limbs.
    """
    line, asides = _bends(evaluated, row)
    if not asides:
        return None
    aside: Vector = sum(asides, Vector())
    largest = max(each.length for each in asides)
    if largest < BENT * line.length:
        if front is None:
            return None
        knee = _knee(row, front)
        aside = knee - knee.project(line)
    elif aside.length < ONE_WAY * largest:
        return None
    knee_place = evaluated.matrix_world @ evaluated.pose.bones[row.bend].head
    return knee_place + DISTANCE * line.length * aside.normalized() if aside.length > 1e-9 else None


def needs_pole(evaluated: bpy.types.Object, row: PlannedRow, front: Vector | None) -> bool:
    """Whether a limb is straight, or bends by little to the wrong side.

    A front leg bends to either side: the joint may be an animal's elbow, or its wrist below.
    """
    line, asides = _bends(evaluated, row)
    largest = max((each.length for each in asides), default=0.0)
    if largest < STRAIGHT * line.length:
        return True
    if front is None or largest >= BENT * line.length or row.role.part in FRONT_PARTS:
        return False
    aside: Vector = sum(asides, Vector())
    return aside.dot(_knee(row, front)) <= 0.0


def _knee(row: PlannedRow, front: Vector) -> Vector:
    """Direction of a limb's knee or elbow, for the direction that the figure faces."""
    return front if row.role.part in KNEES else -front


def _bends(evaluated: bpy.types.Object, row: PlannedRow) -> tuple[Vector, list[Vector]]:
    """Return the line from a limb's root to its end and the inner joints' offsets from it, world space."""
    world, tip = evaluated.matrix_world, evaluated.pose.bones[row.tip]
    heads = [world @ bone.head for bone in reversed(_chain(evaluated, row))]
    start, end = heads[0], world @ (tip.tail if row.use_tail else tip.head)
    line = end - start
    if line.length < 1e-9:
        return line, []
    inner = heads[1:] if row.use_tail else heads[1:-1]
    return line, [(place - start) - (place - start).project(line) for place in inner]


def front_of(figure: Figure, evaluated: bpy.types.Object) -> Vector | None:
    """Return the direction that a figure faces, world space; None without a pair of legs or arms."""
    bones, world = evaluated.pose.bones, evaluated.matrix_world.to_3x3()
    up = Vector((0.0, 0.0, 1.0))
    hips, head = figure.bones(Part.HIPS), figure.bones(Part.HEAD)
    if figure.kind is Kind.HUMAN and hips and head:
        up = world @ (bones[head[0]].head - bones[hips[0]].head)
    for part in (Part.THIGH, Part.UPPER_ARM, Part.LEG):
        pair = [figure.bones(part, side) for side in (Side.LEFT, Side.RIGHT)]
        if all(pair):
            left, right = (bones[names[0]].head for names in pair)
            front: Any = (world @ (left - right)).cross(up)
            if world.is_negative:  # a mirrored figure's left is on the other side
                front.negate()
            return front.normalized() if front.length > 1e-9 else None
    return None


PIECES = (Part.UPPER_ARM, Part.LOWER_ARM, Part.THIGH, Part.SHIN, Part.FRONT_THIGH, Part.FRONT_SHIN)


def keyed_at_or_above(armature_object: bpy.types.Object, name: str) -> str:
    """Nearest ancestor, or the bone itself, with keys in the playing animation; empty for none."""
    paths = channels.played_paths(armature_object)
    bone = armature_object.pose.bones[name]
    for each in (bone, *bone.parent_recursive):
        start = each.path_from_id() + "."
        if any(path.startswith(start) for path in paths):
            return str(each.name)
    return ""


def stiffen(armature_object: bpy.types.Object, figure: Figure, rows: Sequence[PlannedRow]) -> list[str]:
    """Lock pieces of one thigh, shin or arm that are in line at rest, by Stiffness 1, and return notes."""
    pairs = (pair for row in rows for pair in pairwise(_chain(armature_object, row)))
    pieces = [bone for following, bone in pairs if _is_piece(figure, bone, following)]
    make_stiff(armature_object, pieces, 1.0)
    locked = [bone.name for bone in pieces]
    return [f"Kept in line with the bone before (Stiffness 1): {named(locked)}"] if locked else []


def hold_pelvis(armature_object: bpy.types.Object, figure: Figure, rows: Sequence[PlannedRow]) -> list[str]:
    """Lock the pelvis above legs by Stiffness 1, which bodies that help would turn, and return notes."""
    above = [bone for row in rows for bone in armature_object.pose.bones[row.top].parent_recursive]
    pelvis = {bone.name: bone for bone in above if figure.is_pelvis(bone.name)}
    free = [bone for bone in pelvis.values() if not bone.ccd_rig.stiffness]
    make_stiff(armature_object, free, 1.0)
    return [f"Held by the hips (Stiffness 1): {named([bone.name for bone in free])}"] if free else []


def _is_piece(figure: Figure, bone: bpy.types.PoseBone, following: bpy.types.PoseBone) -> bool:
    """Whether a bone is in line with the bone before it, of the same part of a limb."""
    role = figure.roles.get(bone.name)
    if role is None or role.part not in PIECES or role.index == 0:
        return False
    before = figure.bones(role.part, role.side, role.number)[role.index - 1]
    start = bone.bone.head_local
    way: Vector = start - bone.id_data.data.bones[before].head_local
    return bool(way.angle(following.bone.head_local - start, 0.0) < IN_LINE)


def switch_to_fk(armature_object: bpy.types.Object, rows: Sequence[PlannedRow]) -> list[str]:
    """Switch the limbs of a generated rig to FK, and return notes."""
    switched, animated = [], []
    driven = {curve.data_path for curve in channels.drivers_of(armature_object)}
    paths = channels.played_paths(armature_object) | driven
    for row in rows:
        switch = armature_object.pose.bones.get(row.top.replace("_fk", "_parent", 1))
        if switch is None or not isinstance(switch.get(rigify.IK_FK), bool | int | float):
            continue
        path = f'{switch.path_from_id()}["{rigify.IK_FK}"]'
        if path in paths:
            animated.append(switch.name)
        elif switch[rigify.IK_FK] < 1.0:
            switch[rigify.IK_FK] = 1.0
            switched.append(switch.name)
            armature_object.update_tag()  # drivers need it to see the custom property
    notes = [f"{rigify.IK_FK} set to FK on {named(switched)}"] if switched else []
    if animated:
        notes.append(f"{rigify.IK_FK} is animated on {named(animated)}: set it to 1 for the frames to bake")
    return notes


ROOM = 1.0
"""Range of the root bone's slide, in the figure's size."""
PRECISION = 1e-4
"""Largest position tolerance, in the figure's size: bones move in steps of a tolerance, as it were."""


def fit_tolerance(armature_object: bpy.types.Object) -> None:
    """Lower the position tolerance for a small figure, unless it was chosen."""
    solver = armature_object.ccd_rig.solver
    scale = abs(armature_object.matrix_world.determinant()) ** (1.0 / 3.0)
    finest = PRECISION * scale * _size(armature_object)
    if finest < solver.position_tolerance and not solver.is_property_set("position_tolerance"):
        solver.position_tolerance = finest


def _size(armature_object: bpy.types.Object) -> float:
    bones = armature_object.data.bones
    return size_of([point for each in bones for point in (each.head_local, each.tail_local)])


def add_row(armature_object: bpy.types.Object, planned: PlannedRow, plants: bool) -> Any:
    """Add a constraint without its target."""
    row = constraint_list.add(armature_object, planned.tip, planned.tip)
    armature_object.ccd_rig.active_index = 0  # with the new row: alone it would count as a user's choice
    row.chain_length = len(_chain(armature_object, planned))
    row.use_tail, row.use_position = planned.use_tail, planned.reaches
    row.soft = SOFTNESS if planned.reaches and not planned.slides else 0.0
    if planned.copies_rotation:
        row.rotation = "ORIENTATION"
    if planned.slides and not plants:  # planted feet shift the root bone
        room = ROOM * _size(armature_object)
        joint = armature_object.pose.bones[planned.tip].ccd_rig
        joint.slide_is_made = not any(joint.use_slide)
        joint.use_slide = (True, True, True)
        joint.slide_lower, joint.slide_upper = (-room,) * 3, (room,) * 3
    return row


def new_target(evaluated: bpy.types.Object, planned: PlannedRow, carrier: Target | int | None) -> NewTarget:
    """Describe a target at the bone of a constraint, with the bone's rotation."""
    bone = evaluated.pose.bones[planned.tip]
    axes: Any = (evaluated.matrix_world @ bone.matrix).to_3x3()
    return NewTarget(
        f"Target {planned.tip}",
        planned.tip,
        evaluated.matrix_world @ (bone.tail if planned.use_tail else bone.head),
        orthonormal(axes) if planned.copies_rotation else None,
        "CUBE" if planned.copies_rotation else "SPHERE",  # a cube shows its rotation
        planned.role.side,
        carrier=carrier,
    )


WANTED = {
    Kind.HUMAN: (Group.HANDS, Group.FEET, Group.HEAD, Group.HIPS),
    Kind.QUADRUPED: (Group.FEET, Group.HEAD, Group.HIPS),
    Kind.BIPED: (Group.HANDS, Group.FEET, Group.HEAD, Group.HIPS),
    Kind.BIRD: (Group.FEET, Group.WINGS, Group.HEAD, Group.HIPS),
    Kind.MANY_LEGS: (Group.FEET,),
    Kind.FISH: (Group.HEAD,),
}
ENDS = (Part.FOOT, Part.TOE, Part.FRONT_FOOT, Part.FRONT_TOE, *CHAINS, Part.HAND, Part.HEAD, Part.LEG)
"""Parts whose descendants are details."""


def refusal(armature_object: bpy.types.Object, bones: Sequence[RestBone]) -> str:
    """Return the message why an armature is no figure, with the bones that were considered."""
    tree = SkeletonTree(bones)
    no_figure = f"'{armature_object.name}' is no figure that is known"
    split = halves(tree)
    partners = split.partners if split else {}
    pairs = [name for name in partners if tree.bones[name].parent not in partners]
    ends = [name for name in tree.bones if not tree.children[name]]
    if not bones:
        return f"{no_figure}: it has no bones. Add bones to it"
    if pairs:
        return (
            f"{no_figure}: {named(pairs)} mirror each other, but none of them begins a limb, long and of two "
            "bones or more, and they hang on no single row. Select a bone and add a constraint for it"
        )
    return (
        f"{no_figure}: its rows of bones end at {named(ends)}, none of them is the mirror image of another "
        "one, and they are no single row of three bones or more. Select a bone and add a constraint for it"
    )


def unknown_bones(armature_object: bpy.types.Object, figure: Figure, groups: Collection[Group]) -> list[str]:
    """Return notes of missing groups, and of rows of bones without a role.

    Args:
        groups: of the figure with the roles that were recognised, and with those that it has.
    """
    missing = [group for group in WANTED.get(figure.kind, ()) if group not in groups]
    notes = [f"Not recognised: {', '.join(missing)}"] if missing else []
    if figure.family != RIGIFY:
        odd = [bone.name for bone in armature_object.data.bones if _begins_odd_row(bone, figure)]
        notes += [f"Left as they are: {named(odd)}"] if odd else []
    return notes


def _begins_odd_row(bone: bpy.types.Bone, figure: Figure) -> bool:
    """Whether a deforming bone begins a row of bones without roles, which are no details."""
    parent = bone.parent
    if not bone.use_deform or not bone.children or bone.name in figure.roles or parent is None:
        return False
    begins = parent.name in figure.roles or parent.parent is None
    above = [figure.roles.get(each.name) for each in bone.parent_recursive]
    details = any(role is not None and role.part in ENDS for role in above) or _is_along(bone, parent)
    return begins and not details and not any(each.name in figure.roles for each in bone.children_recursive)


ALONG = 0.1
"""Largest distance of bones that twist with another one from its axis, and from its ends, in its length."""


def _is_along(bone: bpy.types.Bone, parent: bpy.types.Bone) -> bool:
    """Whether a row of bones begins and goes on along its parent, as those that share out its twist."""
    way = parent.tail_local - parent.head_local
    for each in (bone, *bone.children_recursive):
        place = each.head_local - parent.head_local
        share = place.dot(way) / way.length_squared
        aside = (place - share * way).length
        if not -ALONG <= share <= 1.0 + ALONG or aside > ALONG * way.length:
            return False
    return True


CARRIED = (Group.HEAD, Group.HANDS, *CHAINS.values())
"""Groups whose targets follow the hips."""


@dataclass(frozen=True)
class Guess:
    """The roles that Set Up Figure recognises."""

    # By bone, the words of its role; empty for none. Of a generated rig only controls with one.
    roles: dict[str, str]
    groups: tuple[Group, ...]  # that the figure has
    # Names of bones at which limbs end whose role no name tells, see `recognition.untold`.
    unsure: tuple[str, ...]

    def words(self) -> str:
        """Words on the roles to look at first."""
        return f"No name tells the role of {named(self.unsure)}: see whether the colours in the viewport fit"


def groups_of(figure: Figure, bones: Sequence[RestBone]) -> tuple[Group, ...]:
    """Return the groups of a figure that can be set up; arguments as of `planned_rows`."""
    return tuple(dict.fromkeys(row.group for row in planned_rows(figure, bones)))


def groups_with(armature_object: bpy.types.Object, changes: Mapping[str, str]) -> tuple[Group, ...]:
    """Return the groups of an armature's figure with other roles, as of `recognition.with_roles`."""
    bones = recognition.rest_bones(armature_object)
    figure = recognition.with_roles(
        recognition.figure_of(armature_object), [bone.name for bone in bones], changes
    )
    return groups_of(figure, bones)


def guess(armature_object: bpy.types.Object) -> Guess:
    """Recognise an armature; nothing is made."""
    bones = recognition.rest_bones(armature_object)
    figure = recognition.recognise(bones, rigify.is_generated(armature_object.data))
    groups = groups_of(figure, bones)
    listed = figure.roles if figure.family == RIGIFY else [bone.name for bone in bones]
    unsure = recognition.untold(figure, bones) if groups else ()
    return Guess({name: _role_words(figure, name) for name in listed}, groups, unsure)


def set_up(context: bpy.types.Context, armature_object: bpy.types.Object, choices: Choices) -> SetUpResult:
    """Make the chosen constraints. Bones with a constraint keep it.

    Raises:
        RigError: no figure is recognised, or no constraint is left to make; nothing was changed.
    """
    bones = recognition.rest_bones(armature_object)
    recognised = recognition.recognise(bones, rigify.is_generated(armature_object.data))
    figure = recognition.with_roles(recognised, [bone.name for bone in bones], choices.roles)
    planned = [_with_sure_end(armature_object, row) for row in planned_rows(figure, bones)]
    if not planned:
        raise RigError(refusal(armature_object, bones))
    carrier = next((row.tip for row in planned if row.group is Group.HIPS), "")
    result = SetUpResult(figure.kind, figure.family, groups_of(figure, bones), carrier)
    controls = {**recognised.roles, **figure.roles}
    listed = controls if figure.family == RIGIFY else [bone.name for bone in bones]
    result.roles = {name: (_role_words(figure, name), _role_words(recognised, name)) for name in listed}
    if uneven := checks.uneven_scale(armature_object.matrix_world, armature_object.name):
        result.notes.append(sentence(uneven))
    rows = _left(armature_object, planned, choices, result)
    if not rows:
        nothing = (
            f"'{armature_object.name}': nothing is left to set up: choose other parts, or remove constraints "
            "that are to be made anew"
        )
        raise RigError(". ".join([nothing, *result.notes]))
    if choices.control_bones:
        control_bones.require_editable(context, armature_object)
    planted = [row for row in rows if choices.plant and row.group is Group.FEET]
    if planted:
        names = new_constraints.plant(armature_object, [row.tip for row in planted], Holds()).names
        armature_object.ccd_rig.active_index = 0
        result.rows[Group.FEET] = list(names)
        result.is_planted = True
        result.notes.append("Feet are planted where they are, and the hips follow them")
    _add_rows(context, armature_object, figure, [row for row in rows if row not in planted], choices, result)
    if choices.ranges is not Ranges.NONE:
        result.notes += apply(armature_object, figure, rows, choices.ranges)
    result.notes += stiffen(armature_object, figure, rows)
    result.notes += hold_pelvis(armature_object, figure, rows)
    if rigify.is_generated(armature_object.data):
        result.notes += switch_to_fk(armature_object, rows)
        if choices.control_bones:
            result.notes.append(
                "Rigify's Re-Generate Rig removes control bones: take empties for rigs that change"
            )
    armature_object.ccd_rig.body_helps = True
    fit_tolerance(armature_object)
    known = groups_of(recognised, bones)  # what the user has taken away was recognised
    result.notes += unknown_bones(armature_object, figure, (*known, *result.available))
    return result


def _add_rows(
    context: bpy.types.Context,
    armature_object: bpy.types.Object,
    figure: Figure,
    rows: Sequence[PlannedRow],
    choices: Choices,
    result: SetUpResult,
) -> None:
    """Add constraints with targets. Poles of knees follow the feet, other targets and poles the hips.

    Targets of hands have the hands' rotations, whether or not hands copy them.

    If planted feet shift the hips, and these have no target, targets stay in the world: a descendant of a
    chain cannot be its target.
    """
    evaluated = armature_object.evaluated_get(context.evaluated_depsgraph_get())
    front = front_of(figure, evaluated)
    known = (
        each for each in armature_object.ccd_rig.constraints if each.tip == result.carrier and each.target
    )
    carrier: Target | int | None = next((Target(each.target, each.target_bone) for each in known), None)
    if carrier is None and result.carrier and not result.is_planted:
        carrier = Target(armature_object, result.carrier)
    wanted: list[NewTarget] = []
    users: list[tuple[str, str]] = []  # of each target: name of its constraint, and "target" or "pole"
    for row in rows:
        added = add_row(armature_object, row, choices.plant)
        result.rows.setdefault(row.group, []).append(added.name)
        if row.group is Group.HIPS:
            carrier = len(wanted)
        if row.group is Group.HANDS and not choices.turn_hands:
            added.rotation = "NONE"
        place_of_target = len(wanted)
        wanted.append(new_target(evaluated, row, carrier if row.group in CARRIED else None))
        users.append((added.name, "target"))
        bends = row.bend and (choices.poles or needs_pole(evaluated, row, front))
        place = pole_place(evaluated, row, front) if bends else None
        if place is not None:
            # At rest the pole is beside the bone that begins at the knee or elbow.
            above = place_of_target if row.role.part in (*KNEES, *FRONT_PARTS) else carrier
            side, name = row.role.side, f"Pole {row.tip}"
            wanted.append(NewTarget(name, row.tip, place, None, "PLAIN_AXES", side, row.bend, above))
            users.append((added.name, "pole"))
            result.poles += 1
    for target, (name, what) in zip(
        make_targets(context, armature_object, wanted, choices.control_bones), users, strict=True
    ):
        row = armature_object.ccd_rig.constraints[name]
        setattr(row, "target" if what == "target" else "pole_target", target.obj)
        setattr(row, f"{what}_bone", target.bone)


def _role_words(figure: Figure, name: str) -> str:
    return figure.roles[name].words() if name in figure.roles else ""


def _with_sure_end(armature_object: bpy.types.Object, row: PlannedRow) -> PlannedRow:
    """Let a bone reach with its head if an importer has guessed its tail, as Add does."""
    tip = armature_object.pose.bones[row.tip]
    is_guess = row.use_tail and row.top != row.tip and constraint_list.has_guessed_tail(tip)
    return replace(row, use_tail=False) if is_guess else row


def _left(
    armature_object: bpy.types.Object, planned: Sequence[PlannedRow], choices: Choices, result: SetUpResult
) -> list[PlannedRow]:
    """Return the chosen rows whose bones have no constraint, and add notes about the others."""
    taken = {row.tip for row in armature_object.ccd_rig.constraints}
    rows = []
    for row in planned:
        if row.group not in choices.groups:
            continue
        if row.slides and (keyed := keyed_at_or_above(armature_object, row.tip)):
            without = (
                f"'{row.tip}' keeps its animation and got no target"
                if keyed == row.tip
                else f"'{keyed}' keeps its animation, so '{row.tip}' got no target"
            )
            result.notes.append(without)
        elif row.group in CHAINS.values() and any(
            any(clamps.acting_constraints(bone)) for bone in _chain(armature_object, row)
        ):
            result.notes.append(f"'{row.tip}' got no target: constraints of the rig turn its chain")
        elif row.tip in taken:
            result.notes.append(f"'{row.tip}' keeps the constraint that it has")
        else:
            rows.append(row)
    return rows
