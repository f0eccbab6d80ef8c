"""Captured motion as a shot: a BVH clip, whose hands, feet and head are to be where the clip has them.

The rest pose is the clip's first frame, since that of a recorded skeleton often is no pose of a body. Knees
and elbows are rolled so that they bend about X. A compact rig has the body's bones alone: no twist bones, no
fingers, no face. Metres, degrees, Z up.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
import sys
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import bpy

# isort: split
import addon_utils  # comes with bpy
import numpy as np
from _bake_pairs import between, played
from _bake_scenes import Limit, Reach, Shot, cone, continuous, hinge, key_all, keyed_empty
from mathutils import Matrix, Quaternion, Vector

from ccd_rig.blender.keys.channels import fcurves_of
from ccd_rig.skeleton.kinematics import chain_bend

LIMBS: dict[str, tuple[str, ...]] = {  # from the tip to the chain's root: Reallusion's names
    f"{part} {side}": tuple(f"CC_Base_{side}_{bone}" for bone in bones)
    for part, bones in (("hand", ("Hand", "Forearm", "Upperarm")), ("foot", ("Foot", "Calf", "Thigh")))
    for side in "LR"
} | {"head": ("CC_Base_Head", "CC_Base_NeckTwist02", "CC_Base_NeckTwist01")}
KNEES = tuple(chain[1] for name, chain in LIMBS.items() if name != "head")
BEND = (-45.0, 150.0)  # of a knee or an elbow, from the first frame's
BODY = (
    "RL_BoneRoot",
    *(f"CC_Base_{bone}" for bone in ("Hip", "Pelvis", "Waist", "Spine01", "Spine02")),
    *(f"CC_Base_{side}_Clavicle" for side in "LR"),
    *(f"CC_Base_{side}_ToeBase" for side in "LR"),
    *(bone for limb in LIMBS.values() for bone in limb),
)
CONES = (40.0, 0.0, 90.0)  # of a hand or foot, (a knee), an upper arm or thigh; half as much for the neck
FAR = 0.3  # of a limb's length that a target is out of reach at most
MOVED = 0.03  # of a limb's length


@dataclasses.dataclass(frozen=True)
class Clip:
    """Names, rest and motion of F frames and J bones, parents first, in armature space."""

    names: tuple[str, ...]
    parents: tuple[int, ...]
    lengths: tuple[float, ...]
    matrices: np.ndarray  # (F, J, 4, 4)


def captured(
    file: Path,
    frames: int = 0,
    moved: float = 0.0,
    rotation: bool = False,
    pole: bool = False,
    limits: bool = False,
    far: float = 0.0,
    tails: bool = False,
    rebuilt: bool = False,
    raised: float = 0.0,
    measured: bool = False,
) -> Shot:
    """The clip's skeleton with its motion, and targets at wrists, ankles and the top of the head.

    Args:
        file: a BVH file in centimetres.
        frames: at most; 0 for all.
        moved: how far targets are above the motion, in lengths of their limbs.
        rotation: whether hands, feet and head are to be turned as in the clip.
        pole: whether elbows and knees have poles where the clip bends them, as our pole goal sees bends.
        limits: whether knees and elbows are hinges and all else has a cone.
        far: the part of the frames in which targets are out of reach, about the middle of the clip.
        tails: whether targets are at the ends of hands and feet instead: three bones reach for them.
        rebuilt: whether the rig is compact and its limbs rest: hips and torso alone play, head included.
        raised: metres by which hands alone are above the motion, on a compact rig.
        measured: whether limits just hold all rotations of the motion: the ranges of its Euler angles.
    """
    is_compact = rebuilt or raised > 0.0
    clip = _body(_clip(file)) if is_compact else _clip(file)
    limbs = {name: limb for name, limb in LIMBS.items() if not (is_compact and name == "head")}
    shown = np.arange(len(clip.matrices))[: frames or None]
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = _rig(clip, clip.matrices[shown])
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, len(shown)
    seen = _played(rig, len(shown))
    reaches = []
    for name, limb in limbs.items():
        bones = [rig.pose.bones[bone] for bone in limb]
        matrices = [seen[:, rig.pose.bones.find(bone)].copy() for bone in limb]
        use_tail = tails or name == "head"
        joints = [matrix[:, :3, 3] for matrix in matrices]
        if use_tail:
            joints.insert(0, joints[0] + matrices[0][:, :3, 1] * bones[0].length)
        length = sum(np.linalg.norm(a[0] - b[0]) for a, b in pairwise(joints))
        places = joints[0].copy()
        if far:
            places += _outwards(joints, length, far)
        places[:, 2] += moved * length + raised * name.startswith("hand")
        target = keyed_empty(name, places, matrices[0] if rotation else None)
        aim = None
        if pole and name != "head":
            middle = 0.5 * (joints[0] + joints[-1])
            aim = keyed_empty(
                f"{name} pole", middle + length * _bend(joints, matrices[-1][:, :3, :3], length)
            )
        reaches.append(Reach(limb[0], len(limb), target, use_tail, rotation, aim))
    scene.frame_set(1)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    bones = tuple(bone for limb in limbs.values() for bone in reversed(limb))
    bounds = tuple(_limit(bone) if limits else None for bone in bones)
    shot = Shot(rig, tuple(reaches), bones, bounds, hinges=KNEES)
    shot = dataclasses.replace(shot, clip=played(shot, len(shown)).rotations)
    shot = _measured_limits(shot) if measured else shot
    return _resting(shot) if rebuilt else shot


def _measured_limits(shot: Shot) -> Shot:
    """The same with limits that just hold all rotations of the clip."""
    rotations, limits = shot.clip, []
    for j in range(len(shot.bones)):
        angles, before = [], None
        for rotation in rotations[:, j]:
            turned = Quaternion(rotation)
            before = turned.to_euler("XYZ", before) if before else turned.to_euler("XYZ")
            angles.append(np.degrees(before))
        limits.append(Limit("EULER", tuple(np.min(angles, axis=0)), tuple(np.max(angles, axis=0))))
    return dataclasses.replace(shot, limits=tuple(limits))


def _resting(shot: Shot) -> Shot:
    """The same with limbs whose keys hold them at rest: only the torso plays, and goals ask for the limbs."""
    paths = {f'pose.bones["{bone}"].rotation_quaternion' for bone in shot.bones}
    for curve in fcurves_of(shot.rig):
        if curve.data_path in paths:
            keys = np.empty(2 * len(curve.keyframe_points), dtype=np.float32)
            curve.keyframe_points.foreach_get("co", keys)
            keys[1::2] = float(curve.array_index == 0)
            curve.keyframe_points.foreach_set("co", keys)
            curve.update()
    return shot


def _limit(bone: str) -> Limit:
    limb = next(limb for limb in LIMBS.values() if bone in limb)
    if bone in KNEES:
        return hinge(*BEND)
    radius = CONES[limb.index(bone)] if limb != LIMBS["head"] else CONES[0] / 2.0
    return cone(radius, twist=radius)


def _bend(joints: Sequence[np.ndarray], root: np.ndarray, length: float) -> np.ndarray:
    """(F, 3) unit vectors by which a limb bends, as a pole goal sees it: `skeleton.kinematics.chain_bend`.

    That is how far the joints between are from the line from root to end. Where the limb is nearly straight
    it goes over into its bend at rest, about an axis that the first bone, with axes (F, 3, 3), carries.
    """
    line, heads = joints[0] - joints[-1], list(reversed(joints[1:]))
    axis = np.cross(sum(head - heads[0] for head in heads[1:])[0], line[0])
    axes = root @ (root[0].T @ (axis / np.linalg.norm(axis)))
    bends = []
    for f, (end, around) in enumerate(zip(joints[0].tolist(), axes.tolist(), strict=True)):
        points = [Vector(head[f].tolist()) for head in heads]
        scale = float((len(joints) - 2) * length)
        bends.append(chain_bend(points, Vector(end), Vector(around), scale).normalized()[:])
    return np.array(bends)


def _outwards(joints: Sequence[np.ndarray], length: float, far: float) -> np.ndarray:
    """Move targets out along the limb and back, so that this part of the frames is out of reach."""
    frames = len(joints[0])
    way = joints[0] - joints[-1]
    distance = np.linalg.norm(way, axis=-1, keepdims=True)
    bump = np.ones((frames, 1))
    if far < 1.0:  # a Gaussian that is above one half in these frames
        bump[:, 0] = np.exp(-math.log(2.0) * ((np.arange(frames) - frames / 2.0) / (0.5 * far * frames)) ** 2)
    missing = np.maximum(length - distance, 0.0)
    return (
        way / distance * (np.minimum(2.0 * bump, 1.0) * missing + FAR * length * (2.0 * bump - 1.0).clip(0.0))
    )


def _body(clip: Clip) -> Clip:
    """The same with the body's bones alone."""

    def kept(j: int) -> int:
        return j if j < 0 or clip.names[j] in BODY else kept(clip.parents[j])

    rows = [j for j, name in enumerate(clip.names) if name in BODY]
    parents = (kept(clip.parents[j]) for j in rows)
    return Clip(
        tuple(clip.names[j] for j in rows),
        tuple(rows.index(j) if j >= 0 else -1 for j in parents),
        tuple(clip.lengths[j] for j in rows),
        clip.matrices[:, rows],
    )


@cache
def _clip(file: Path) -> Clip:
    """Read the file with Blender's importer; the open file is lost."""
    bpy.ops.wm.read_homefile(use_empty=True)
    with contextlib.redirect_stdout(io.StringIO()):  # it tells of each bone without a length
        addon_utils.enable("io_anim_bvh", default_set=True)
        bpy.ops.import_anim.bvh(
            filepath=str(file),
            global_scale=0.01,
            rotate_mode="QUATERNION",
            update_scene_duration=True,
            axis_forward="Y",
            axis_up="Z",
        )
    rig = bpy.context.object
    names = [bone.name for bone in rig.pose.bones]
    missing = [bone for limb in LIMBS.values() for bone in limb if bone not in names]
    if missing:
        sys.exit(f"{file.name}: there is no bone {missing[0]}: only Reallusion's names are known here")
    matrices = _played(rig, int(rig.animation_data.action.frame_range[1]))
    for limb in LIMBS.values():
        if limb[1] in KNEES:
            middle, upper = (names.index(bone) for bone in limb[1:])
            matrices[:, middle] = matrices[:, middle] @ _roll(matrices[:, upper], matrices[:, middle])
    lengths = dict(zip(names, (bone.length for bone in rig.pose.bones), strict=True))
    for limb in LIMBS.values():  # a bone ends where the next one of the limb begins
        for below, bone in pairwise(limb):
            lengths[bone] = (rig.pose.bones[below].head - rig.pose.bones[bone].head).length
    parents = tuple(-1 if bone.parent is None else names.index(bone.parent.name) for bone in rig.pose.bones)
    return Clip(tuple(names), parents, tuple(lengths.values()), matrices)


def _roll(upper: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """The roll after which a joint that bends does so about X, forwards."""
    bends = np.linalg.inv(upper) @ middle
    local = np.linalg.inv(bends[0]) @ bends
    rotations = np.array([tuple(Matrix(each).to_quaternion()) for each in local])
    vectors = between(np.broadcast_to((1.0, 0.0, 0.0, 0.0), rotations.shape), rotations)
    vectors[:, 1] = 0.0  # a roll leaves Y as it is
    axis = np.linalg.svd(vectors, full_matrices=False)[2][0]
    axis *= np.sign(np.sum(vectors @ axis) or 1.0)
    return np.array(Matrix.Rotation(math.atan2(-axis[2], axis[0]), 4, "Y"))


def _played(rig: bpy.types.Object, frames: int) -> np.ndarray:
    """(F, J, 4, 4) of all bones, armature space."""
    matrices_of_frames = np.empty((frames, len(rig.pose.bones), 16), dtype=np.float32)
    for f in range(frames):
        bpy.context.scene.frame_set(f + 1)
        rig.pose.bones.foreach_get("matrix", matrices_of_frames[f].ravel())
    return matrices_of_frames.reshape(frames, -1, 4, 4).swapaxes(-1, -2).astype(float)


def _rig(clip: Clip, matrices: np.ndarray) -> bpy.types.Object:
    """An armature that rests as in the first frame of the clip, with keys for these frames."""
    data = bpy.data.armatures.new("Captured")
    rig = bpy.data.objects.new("Captured", data)
    bpy.context.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    made = []
    for name, parent, length, matrix in zip(
        clip.names, clip.parents, clip.lengths, clip.matrices[0], strict=True
    ):
        bone = data.edit_bones.new(name)
        bone.tail = Vector((0.0, length, 0.0))
        bone.matrix = Matrix(matrix)
        bone.parent = made[parent] if parent >= 0 else None
        made.append(bone)
    bpy.ops.object.mode_set(mode="OBJECT")
    rest = np.array([rig.data.bones[name].matrix_local for name in clip.names])
    channels = {}
    for j, (name, parent) in enumerate(zip(clip.names, clip.parents, strict=True)):
        way, home = matrices[:, j], rest[j]
        if parent >= 0:
            way, home = np.linalg.inv(matrices[:, parent]) @ way, np.linalg.inv(rest[parent]) @ home
        local = np.linalg.inv(home) @ way
        path = f'pose.bones["{name}"].'
        turned = continuous([Matrix(each).to_quaternion() for each in local])
        channels[path + "rotation_quaternion"] = turned
        if parent < 0:
            channels[path + "location"] = local[:, :3, 3]
    key_all(rig, channels)
    return rig
