"""Re-root a skeleton: another bone becomes the base, as a walker's planted foot.

Kenwright 2012, section 13 (articulated characters): the base is swapped from foot to foot. The hierarchy is
rebuilt from the new base while the pose stays in place.

Reversing a joint: let joint k hang on bone p, `R_k = R_p rest_k q_k`, its head at `offset_k + rest_k t_k` in
p's frame. Seen from k the same joint turns p:

    R_p = R_k q_k^-1 rest_k^-1 = R_k rest_k^-1 (rest_k q_k^-1 rest_k^-1)

The reversed joint has the rest rotation `rest_k^-1` and the rotation `rest_k q_k^-1 rest_k^-1`. It sits at
the head of k, where p and k meet. Bone p is fixed on it, with the offset that brings its frame back to p's
head. Two entries of the skeleton thus stand for one joint: the reversed joint, which turns, and the bone,
which is locked. Every bone keeps its name, frame (head, +Y towards the tail), length and mass, and a goal on
it keeps its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mathutils import Quaternion, Vector

from ..errors import InvalidInput
from ..limits.shapes import Comfort, Ellipse, Hinge, Limit, ReversedLimit, Slide, SwingTwist
from ..maths.rotations import angle_of
from .joints import Joint, Skeleton
from .kinematics import forward_kinematics
from .pose import Pose, check_pose

SUFFIX = " (reversed)"
_IDENTITY = Quaternion((1.0, 0.0, 0.0, 0.0))
_NO_TURN = Hinge((0.0, 1.0, 0.0), 0.0, 0.0)
"""The limit of a bone that slides on its reversed joint without turning."""


def reversed_name(name: str) -> str:
    """The name of joint `name` after its reversal (its bone keeps the name)."""
    return name + SUFFIX


def reverse_limit(limit: Limit | None, frame: Quaternion) -> Limit | None:
    """The limit of a reversed joint, {q : (frame^-1 q frame)^-1 inside `limit`}, as the simplest kind.

    A hinge and a swing of the same size in all directions stay of their kind, about the opposite of the axis
    turned by `frame`. Reversing a `ReversedLimit` back gives the limit inside. All else is a `ReversedLimit`.
    """
    if limit is None:
        return None
    if isinstance(limit, Hinge):
        return Hinge(_opposite(frame, limit.axis), limit.lower, limit.upper)
    if isinstance(limit, SwingTwist) and not isinstance(limit.swing, Ellipse):
        # (swing twist)^-1 = (twist^-1 swing^-1 twist) twist^-1: as far a swing, the opposite twist.
        return SwingTwist(limit.swing, limit.twist, _opposite(frame, limit.axis))
    if isinstance(limit, ReversedLimit) and angle_of(frame @ Quaternion(limit.frame)) <= 1e-6:
        return limit.limit
    return ReversedLimit(limit, _four(frame))


def reroot(
    skeleton: Skeleton, pose: Pose, joint: str, *, base_stiffness: float = 1.0
) -> tuple[Skeleton, Pose]:
    """The same bones in the same model-space pose, with the bone of `joint` as the base.

    Every bone keeps its name, head, tail and orientation in model space, at rest and in the pose, to float32
    rounding. Every joint keeps its limit, comfort, stiffness, max_step and slides. Joints off the path from
    `joint` to its old root, and all other trees, stay the same. The new skeleton does not depend on the
    pose's rotations and translations.

    Each joint on the path is reversed. The reversed joint is named `reversed_name(...)` and has length and
    mass 0. It sits at the head of its bone and turns the bone that was its parent. That bone follows it as a
    locked joint of the old name: `chain_length` and `extension_joints` of a goal count both. Path joints come
    first in the new order, then all others in their old order; look them up by name.

    The new base replaces the joint between the old root and the world. Limit, comfort, stiffness, max_step
    and slides of the old root are dropped, and the base is locked unless `base_stiffness` is below 1.
    Re-rooting back to the old root restores skeleton and pose but for these five values and the order of
    joints.

    Source: Kenwright 2012, section 13; the formulas stand at the head of this module.

    Args:
        skeleton: the joints.
        pose: of `skeleton`.
        joint: name of the joint whose bone becomes the base. Naming the present root only locks it.
        base_stiffness: of the base: 1 locks it, 0 lets it turn about its head.

    Returns:
        The new skeleton, and the pose of it.

    Raises:
        InvalidInput: no such joint; the pose is for another skeleton; a joint on the path does not inherit
            rotation, so that nothing ties its bone to its parent's orientation; a name that a reversed joint
            needs is taken; a joint has coupled offsets, whose hinge might be reversed.
    """
    check_pose(skeleton, pose)
    for coupling in skeleton.couplings:
        raise InvalidInput(
            f"joint '{skeleton.joints[coupling.joint].name}' has coupled offsets, which re-rooting does not "
            "keep: take them away, or keep the root"
        )
    path = list(reversed(skeleton.chain(joint)))
    entries = [_base(skeleton, pose, path[0], base_stiffness)]
    below = 0
    while below < len(path) - 1:
        child = path[below]
        if _is_carried(skeleton, child):
            # A bone fixed on a reversed joint: reversing that joint again gives back the plain one.
            entries.append(_restored(skeleton, pose, child, path[below + 1], path[below + 2]))
            below += 2
        else:
            _check_reversible(skeleton, child)
            entries.extend(_reversal(skeleton, pose, child, path[below + 1]))
            below += 1
    on_path = {entry.joint.name for entry in entries} | {skeleton.joints[i].name for i in path}
    for i, other in enumerate(skeleton.joints):
        if other.name not in on_path:
            parent = skeleton.joints[other.parent].name if other.parent != -1 else None
            entries.append(_Entry(other, parent, pose.rotations[i], pose.translations[i]))
    indices = {entry.joint.name: i for i, entry in enumerate(entries)}
    rerooted = Skeleton(
        replace(entry.joint, parent=-1 if entry.parent is None else indices[entry.parent])
        for entry in entries
    )
    return rerooted, Pose(tuple(e.rotation for e in entries), tuple(e.translation for e in entries))


def restore_root(skeleton: Skeleton, rerooted: Skeleton, pose: Pose) -> Pose:
    """Convert a pose of a re-rooted skeleton to the original skeleton; all bones stay in place.

    Args:
        skeleton: the original, without reversed joints.
        rerooted: `reroot(skeleton, ...)[0]`.
        pose: of `rerooted`.

    Returns:
        The pose of `skeleton`. Rotation and translation of the old root follow from the base and the path.
        Joints off the path have the rotations of `pose`, to the bit.

    Raises:
        InvalidInput: the pose is for another skeleton; `rerooted` is no result of `reroot` for `skeleton`.
    """
    check_pose(rerooted, pose)
    rotations, translations = [], []
    transforms = forward_kinematics(rerooted, pose)
    for joint in skeleton.joints:
        here = rerooted.index(joint.name)
        rotation, translation = pose.rotations[here], pose.translations[here]
        frame = joint.rest_rotation
        if joint.parent == -1:
            same = rerooted.joints[here]
            if (same.parent, same.offset, same.rest_rotation) != (-1, joint.offset, frame):
                rotation = (frame.conjugated() @ transforms[here].rotation).normalized()
                translation = frame.conjugated() @ (transforms[here].translation - joint.offset)
        else:
            carried, name = rerooted.index(skeleton.joints[joint.parent].name), reversed_name(joint.name)
            turning = rerooted.joints[carried].parent
            if turning != -1 and rerooted.joints[turning].name == name:
                turned = frame.conjugated() @ pose.rotations[turning].conjugated() @ frame
                rotation = turned.normalized()
                translation = -(frame.conjugated() @ pose.translations[carried])
        rotations.append(rotation)
        translations.append(translation)
    return Pose(tuple(rotations), tuple(translations))


@dataclass(frozen=True)
class _Entry:
    """A joint of the new skeleton, its parent by name, and its rotation and translation in the pose."""

    joint: Joint
    parent: str | None
    rotation: Quaternion
    translation: Vector


def _base(skeleton: Skeleton, pose: Pose, i: int, stiffness: float) -> _Entry:
    """Joint `i` as the root of the new skeleton, at the place of its bone."""
    posed = forward_kinematics(skeleton, pose)[i]
    rest = forward_kinematics(skeleton, Pose.rest(skeleton))[i]
    base = replace(
        _unhinged(skeleton.joints[i]),
        parent=-1,
        offset=_triple(rest.translation),
        rest_rotation=_four(rest.rotation),
        stiffness=stiffness,
        inherit_rotation=True,
    )
    to_rest = rest.rotation.conjugated()
    shift = to_rest @ (posed.translation - rest.translation)
    return _Entry(base, None, to_rest @ posed.rotation, shift)


def _reversal(skeleton: Skeleton, pose: Pose, k: int, p: int) -> tuple[_Entry, _Entry]:
    """Reverse joint `k`, and fix its old parent's bone `p` on it."""
    joint, bone = skeleton.joints[k], skeleton.joints[p]
    frame = joint.rest_rotation
    limit, comfort = _seen_from_child(joint, frame)
    turning = replace(
        _unhinged(bone),
        name=reversed_name(joint.name),
        offset=(0.0, 0.0, 0.0),
        rest_rotation=_four(frame.conjugated()),
        length=0.0,
        limit=limit,
        comfort=comfort,
        stiffness=joint.stiffness,
        max_step=joint.max_step,
        mass=0.0,
        inherit_rotation=True,
    )
    fixed = replace(
        _unhinged(bone),
        offset=_triple(-joint.offset),
        rest_rotation=(1.0, 0.0, 0.0, 0.0),
        stiffness=1.0,
        inherit_rotation=True,
    )
    if joint.slides:
        # Slides are fixed in p's frame, so above the turn: p slides, and its limit keeps it from turning.
        slides = _reversed_slides(joint.slides, frame)
        fixed = replace(
            fixed, slides=slides, limit=_NO_TURN, stiffness=joint.stiffness, max_step=joint.max_step
        )
    rotation = (frame @ pose.rotations[k].conjugated() @ frame.conjugated()).normalized()
    return (
        _Entry(turning, joint.name, rotation, Vector()),
        _Entry(fixed, turning.name, _IDENTITY, -(frame @ pose.translations[k])),
    )


def _restored(skeleton: Skeleton, pose: Pose, p: int, turning: int, k: int) -> _Entry:
    """Put bone `k` back on bone `p`, which was fixed on the reversed joint `turning` of `k`."""
    joint, bone, carried = skeleton.joints[turning], skeleton.joints[k], skeleton.joints[p]
    frame = joint.rest_rotation
    limit, comfort = _seen_from_child(joint, frame)
    plain = replace(
        bone,
        offset=_triple(-carried.offset),
        rest_rotation=_four(frame.conjugated()),
        limit=limit,
        comfort=comfort,
        stiffness=joint.stiffness,
        max_step=joint.max_step,
        slides=_reversed_slides(carried.slides, frame),
        inherit_rotation=True,
    )
    rotation = (frame @ pose.rotations[turning].conjugated() @ frame.conjugated()).normalized()
    return _Entry(plain, carried.name, rotation, -(frame @ pose.translations[p]))


def _is_carried(skeleton: Skeleton, i: int) -> bool:
    """Whether joint `i` is a bone fixed on a reversed joint, as `_reversal` makes it."""
    joints = skeleton.joints
    turning = joints[i].parent
    if turning == -1 or joints[turning].parent == -1:
        return False
    return (
        joints[turning].name == reversed_name(joints[joints[turning].parent].name)
        and joints[turning].offset.length == 0.0
        and (joints[i].stiffness >= 1.0 or joints[i].limit == _NO_TURN)
        and joints[i].rest_rotation == _IDENTITY
        and sum(joint.parent == turning for joint in joints) == 1
    )


def _unhinged(joint: Joint) -> Joint:
    """`joint` without limit, comfort and slides: a bone fixed on another joint."""
    return replace(joint, limit=None, comfort=None, max_step=Joint.max_step, slides=())


def _seen_from_child(joint: Joint, frame: Quaternion) -> tuple[Limit | None, Comfort | None]:
    """Limit and comfort of `joint` reversed, both of the same kind of limit."""
    limit, comfort = reverse_limit(joint.limit, frame), joint.comfort
    if comfort is None or comfort.region is None:
        return limit, comfort
    region = reverse_limit(comfort.region, frame)
    if joint.limit is not None and type(limit) is not type(region):
        numbers = _four(frame)
        limit, region = ReversedLimit(joint.limit, numbers), ReversedLimit(comfort.region, numbers)
    return limit, replace(comfort, region=region)


def _reversed_slides(slides: Sequence[Slide], frame: Quaternion) -> tuple[Slide, ...]:
    return tuple(Slide(_opposite(frame, slide.axis), slide.lower, slide.upper) for slide in slides)


def _triple(vector: Vector) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z


def _four(rotation: Quaternion) -> tuple[float, float, float, float]:
    return rotation.w, rotation.x, rotation.y, rotation.z


def _opposite(frame: Quaternion, axis: tuple[float, float, float]) -> tuple[float, float, float]:
    return _triple(-(frame @ Vector(axis)))


def _check_reversible(skeleton: Skeleton, k: int) -> None:
    """Raise InvalidInput if joint `k` cannot be reversed."""
    joint = skeleton.joints[k]
    if not joint.inherit_rotation:
        raise InvalidInput(
            f"joint '{joint.name}' does not inherit rotation, so its parent cannot be hung on it: "
            f"let it inherit rotation, or choose another base"
        )
    wanted = reversed_name(joint.name)
    if any(other.name == wanted for other in skeleton.joints):
        raise InvalidInput(
            f"joint '{wanted}' has the name that re-rooting needs for '{joint.name}'; rename it"
        )
