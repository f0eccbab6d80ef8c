"""Selection of keyed and solved frames: every n-th frame, or the frames at which something else has keys.

Frames are scene frames and may be fractional. A scene that remaps time (Time Stretching in the Output
properties) shows at a frame the keys at `key_time` times the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence

import bpy
import numpy as np
from numpy.typing import NDArray

from ...errors import RigError
from ..keys import keyframes
from ..keys.channels import animated_components, fcurves_of, plays, strip_key_times
from ..properties.constraint_values import Constraint
from ..scene.dependence import movers, movers_by_drivers
from ..scene.evaluation import evaluated_influences
from ..scene.targets import objects_of, target_sources
from .settings import BakeSettings, Keys

Array = NDArray[np.float64]


def key_time(scene: bpy.types.Scene) -> float:
    """Factor from scene frames to the time of keys."""
    return scene.render.frame_map_old / scene.render.frame_map_new


def frames(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    settings: BakeSettings,
    ends: Collection[int] = (),
) -> tuple[list[float], list[float]]:
    """The frames to solve, and the frames to key, both increasing.

    Args:
        ends: frames that every few frames would leave out and that are solved too, see `influence_ends`.

    Raises:
        RigError: frames are taken from keys, and there are none in the range; names the keyed object.
    """
    span = f"frames {settings.frame_start} to {settings.frame_end}"
    if settings.keys is Keys.TARGET_KEYS:
        times = _joined(_times_of_targets(armature_object, constraints))
        key_frames = _in_range(times, scene, settings)
        if not len(key_frames):
            targets = [name for row in constraints for name in (row.target, row.pole_target) if name]
            names = ", ".join(f"'{name}'" for name in dict.fromkeys(targets))
            if not names:
                raise RigError(
                    f"No constraint has a target, and no Influence has keys in {span}: key Influence, or "
                    "choose other keys for the bake"
                )
            raise RigError(
                f"No target ({names}) has keys in {span}: key one, or choose other keys for the bake"
            )
    elif settings.keys is Keys.REFERENCE_KEYS:
        label, times = _reference_times(settings)
        key_frames = _in_range(times, scene, settings)
        if not len(key_frames):
            raise RigError(f"{label} has no keys in {span}: key it, or choose another Reference Object")
    else:
        solved = sorted({*settings.solved_frames(), *ends})
        every_frame = range(settings.frame_start, settings.frame_end + 1)
        keyed = solved if settings.keys is Keys.SOLVED_FRAMES else every_frame
        return [float(frame) for frame in solved], [float(frame) for frame in keyed]
    chosen = [float(settings.frame_start)]
    # Keys that Blender would merge are one; the ends of the range always stay.
    for frame in key_frames.tolist():
        if frame - chosen[-1] >= 2 * keyframes.MERGE_DISTANCE:
            chosen.append(frame)
    end = float(settings.frame_end)
    while len(chosen) > 1 and end - chosen[-1] < 2 * keyframes.MERGE_DISTANCE:
        chosen.pop()
    if end > chosen[-1]:
        chosen.append(end)
    return chosen, list(chosen)


def influence_ends(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    constraints: Sequence[Constraint],
    settings: BakeSettings,
) -> Generator[float, None, set[int]]:
    """Return the frames on both sides of where an influence leaves or reaches 0, if a step skips frames.

    Yields counts of evaluated frames.
    """
    rows = armature_object.ccd_rig.constraints
    paths = {f"{rows[each.name].path_from_id()}.influence" for each in constraints}
    animated = {path for path, _ in animated_components(armature_object)}
    is_regular = settings.keys in (Keys.EVERY_FRAME, Keys.SOLVED_FRAMES)
    if settings.step == 1 or not is_regular or animated.isdisjoint(paths):
        return set()
    numbers = range(settings.frame_start, settings.frame_end + 1)
    active = (yield from evaluated_influences(scene, armature_object, constraints, numbers)) > 0.0
    changes = np.flatnonzero((active[1:] != active[:-1]).any(axis=1)) + settings.frame_start
    return {*changes.tolist(), *(changes + 1).tolist()}


def _in_range(times: Array, scene: bpy.types.Scene, settings: BakeSettings) -> Array:
    """Scene frames of keys inside the range, increasing."""
    frames = np.unique(np.round(times / key_time(scene), 4))  # a float32 key at frame 1000 is right to 1e-4
    return np.asarray(frames[(frames >= settings.frame_start) & (frames <= settings.frame_end)])


def _joined(times: Iterator[Array]) -> Array:
    return np.concatenate([np.zeros(0), *times])


def _times_of_targets(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint]
) -> Iterator[Array]:
    """Times of keys of targets and poles, of everything that moves them, and of keyed and driven settings."""
    sources = target_sources(armature_object, constraints)
    paths = {
        f"ccd_rig.constraints[{source.place}].{field}"
        for source in sources
        for field in (*source.keyed, "influence")
    }
    yield from times_of_curves(armature_object, lambda curve: curve.data_path in paths)
    moving = [*movers_by_drivers(armature_object, paths)]
    for obj, bone in objects_of(sources):
        moving += movers(obj, bone, armature_object)
    for data_block, bone in dict.fromkeys((mover.data_block, mover.bone) for mover in moving):
        yield from _times_of(data_block, bone)


def _times_of(data_block: bpy.types.ID, bone: str, whole: bool = False) -> Iterator[Array]:
    """Times of keys of a bone, or of an object without its bones (`whole`: with them), in strips too."""
    prefix: str = data_block.pose.bones[bone].path_from_id() + "." if bone else ""  # type: ignore[attr-defined]

    def belongs(curve: bpy.types.FCurve) -> bool:
        path = curve.data_path
        return whole or (path.startswith(prefix) if bone else not path.startswith("pose.bones["))

    yield from times_of_curves(data_block, belongs)


def times_of_curves(data_block: bpy.types.ID, counts: Callable[[bpy.types.FCurve], bool]) -> Iterator[Array]:
    """Times of keys of the playing F-curves of data that count, in strips too."""

    def is_played(curve: bpy.types.FCurve) -> bool:
        return plays(curve) and counts(curve)

    yield from (
        keyframes.times(curve).astype(np.float64) for curve in fcurves_of(data_block) if is_played(curve)
    )
    animation = data_block.animation_data
    if animation is not None:
        yield from strip_key_times(animation, is_played)


def _reference_times(settings: BakeSettings) -> tuple[str, Array]:
    """Name of the reference object for messages, and the times of its keys."""
    if not settings.reference_object:
        raise RigError("There is no Reference Object: choose the object whose keys say where to key")
    reference = bpy.data.objects.get(settings.reference_object)
    if reference is None:
        raise RigError(
            f"Reference Object: there is no object '{settings.reference_object}' (renamed or deleted?)"
        )
    if not settings.reference_bone:
        return f"Reference Object '{reference.name}'", _joined(_times_of(reference, "", whole=True))
    if reference.pose is None or settings.reference_bone not in reference.pose.bones:
        bone = f"bone '{settings.reference_bone}'"
        raise RigError(f"Reference Object '{reference.name}' has no {bone}: choose another bone")
    name = f"Reference Object bone '{settings.reference_bone}' of '{reference.name}'"
    return name, _joined(_times_of(reference, settings.reference_bone))
