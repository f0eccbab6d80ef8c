# SPDX-License-Identifier: GPL-3.0-or-later
"""Walk of an armature's cycle along a curve and over the ground, as keys.

action -> SourceMotion -> Cycle    curve -> Way    height or meshes -> Ground
-> solvers.walk -> channels of bones -> keys.writer -> what plays -> measures
"""

from __future__ import annotations

import enum
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ..errors import InvalidInput, RigError
from ..maths.batch import Array
from ..motion.ground import Ground, LevelGround, MovingGround
from ..motion.retargeting.figures import FigureMap, Limb, SourceMotion, TargetFigure
from ..motion.settings import WalkSettings
from ..motion.walking.cycle import FEWEST, Cycle, Standing, cycle_of, standing_of, with_stride
from ..motion.walking.measures import WalkMeasures, walk_measures
from ..motion.walking.path import Strides, Way, fitted_strides, height_at, way_along
from ..motion.walking.steps import WalkPlan
from ..motion.walking.timeline import Timeline, timeline
from ..solvers.walk import Walk, walk_work
from .bake.frame_selection import key_time, times_of_curves
from .bake.progress import Progress, Steps, paced, run, shown
from .checks import ik_problems
from .figures.role import Figure, Part, Side
from .keys import channels
from .properties.constraint_list import require_no_tweak
from .properties.names import named
from .properties.retarget_group import LAST_FRAME
from .retarget import sampling
from .retarget.bone_map import bone_map, figure_map, told_left_behind
from .retarget.retarget import (
    MOST_FRAMES,
    TurnedBone,
    carrier_of,
    channels_of_motion,
    figure_to_move,
    keyed_range,
    not_carried,
    require_animated,
    require_writable,
    told_turned,
    turned_after_keys,
    write_motion,
)
from .retarget.sampling import SourceChoice, source_motion
from .scene.dependence import trail_to_bones
from .scene.evaluation import metres_per_unit
from .scene.ground import first_ground, ground_of_rig, moving_ground, with_instanced
from .scene.isolation import set_frame, shared_scene

LYING = 0.25
"""Smallest height of the starts of legs above feet, on average, in the length of the longest leg."""
SHORTEST = 0.5
"""Smallest length of a curve, in leg lengths."""
MADE_OF = "ccd_rig_walk"
"""Custom property of a walk's action: names of its armature, cycle and curve."""
DEFORMING = frozenset(
    {
        *("ARMATURE", "CAST", "CURVE", "HOOK", "LATTICE", "MESH_DEFORM", "SHRINKWRAP", "SIMPLE_DEFORM"),
        *("SMOOTH", "WARP", "WAVE"),
    }
)
"""Modifiers of curves that move their points, and make none."""
STILL = 5e-6
"""Largest change of a component of a rotation that is no motion: what single precision makes of a bone at
rest."""
BESIDE = 1.0
"""Distance around feet for which ground is read, in leg lengths."""


class Stands(enum.Enum):
    """Pose of a figure before and after a walk."""

    CYCLE = "CYCLE"
    REST = "REST"
    ACTION = "ACTION"


@dataclass(frozen=True, kw_only=True)
class WalkChoice:
    """Choices of the user."""

    cycle: bpy.types.Action | None = None  # action with the cycle; None for the playing one
    # First and last frame of the cycle; None to search for a period in all frames.
    cycle_frames: tuple[int, int] | None = None
    # Of the ground without meshes, world metres; None: where the armature stands at rest.
    height: float | None = None
    meshes: Sequence[bpy.types.Object] = ()  # objects of the ground
    start: int = 1  # scene frame of the first key
    end: int | None = None  # scene frame of the last key at most; None for as many as the path takes
    stands: Stands = Stands.CYCLE  # pose before and after the walk
    # Action with that pose in its first frame, for `Stands.ACTION`.
    stand_action: bpy.types.Action | None = None
    # Whether the keyed Evaluation Time of the curve tells the figure's place; `start`, `end` and
    # `settings.cycles` have no effect then.
    keyed: bool = False
    settings: WalkSettings = field(default_factory=WalkSettings)  # of the walk


@dataclass(frozen=True, eq=False)
class Walked:
    """Result of a walk."""

    action: bpy.types.Action  # with the keys
    frames: Array  # (F,) scene frames of the keys
    cycle: Cycle
    cycle_frames: tuple[float, float]  # first and last frame of its period
    length: float  # of the walk, metres
    speed: float  # of the cycle, metres per second
    shortest: float  # shortest step, in steps of the cycle
    replaced: bool  # whether the action replaces the one of an earlier walk
    plan: WalkPlan  # footfalls and motion of the hips
    measures: WalkMeasures  # of the playing result, in metres
    turned: Sequence[TurnedBone]  # bones that constraints turn after their keys, the worst first
    left: Sequence[str]  # bones that do not hang on the hips, and stay where they are


def walk_along(
    scene: bpy.types.Scene, rig: bpy.types.Object, curve: bpy.types.Object, choice: WalkChoice
) -> Walked:
    """Do `walk_steps` to their end."""
    return run(walk_steps(scene, rig, curve, choice))


def walk_steps(
    scene: bpy.types.Scene, rig: bpy.types.Object, curve: bpy.types.Object, choice: WalkChoice
) -> Steps[Walked]:
    """Write the cycle along the curve as a new action of the armature; all of it, or nothing after an error.

    It replaces the action of an earlier walk of the same cycle and curve, unless that has other users or a
    fake user. Closing the steps cancels it.

    Raises:
        RigError: names the armature, bone, curve, ground or field and what to do; nothing was changed.
    """
    if rig is None or rig.type != "ARMATURE":
        raise RigError("Walk Along needs an armature: select one")
    if curve.type != "CURVE":
        raise RigError(f"'{curve.name}' is no curve: choose a curve to walk along")
    start, shares = keyed_places(scene, curve) if choice.keyed else (choice.start, None)
    if not -LAST_FRAME <= start <= LAST_FRAME:
        raise RigError(f"first key at frame {start}: Blender has frames up to {LAST_FRAME}")
    world = sampling.place_at(scene, rig, start).world
    joints, figure, reading = figure_to_move(rig, world, walking_map(rig))
    carrier = rig.data.bones[carrier_of(rig, joints)]
    _require_upright(rig, world, joints)
    _require_free_legs(joints, figure)
    moved = {*joints.sources, *(bone.name for bone in carrier.children_recursive)}
    grounds = (("ground", shown) for mesh in choice.meshes for shown in with_instanced(mesh))
    for word, obj in (("curve", curve), *grounds):
        if trail := trail_to_bones(obj, word, rig, moved):
            raise RigError(f"{trail}, which the walk moves: take it off there, or choose another {word}")
    for problem in ik_problems(rig, set(joints.sources)):
        raise RigError(problem.message)
    action = cycle_action(rig, choice.cycle)
    with _playing(rig, action):
        require_animated(rig)
        first, last = choice.cycle_frames or keyed_range(scene, rig)
        if last < first:
            raise RigError(f"frames {first:.7g} to {last:.7g} of the cycle: the end lies before the start")
        if last - first >= MOST_FRAMES:
            raise RigError(f"frames {first:.7g} to {last:.7g} of the cycle: at most {MOST_FRAMES}")
        if last - first < 1.0:
            raise RigError(
                f"the cycle has one frame, {first:.7g}: choose an action that walks, or more frames"
            )
        seconds = scene.render.fps_base / scene.render.fps
        # Keys of imported clips are between frames: equal steps from the first key, nearly of a frame.
        sampled = np.linspace(first, last, max(1, round(last - first)) + 1)
        if len(sampled) < FEWEST:
            raise RigError(
                f"frames {first:.7g} to {last:.7g} of the cycle are {len(sampled)}, and a walk needs "
                f"{FEWEST}: choose more frames, or scale the keys of so fast a cycle"
            )
        step = float(sampled[1] - sampled[0])
        chosen = SourceChoice(sampled.tolist(), step * seconds, stays=True, world=world)
        played = source_motion(scene, rig, joints, chosen)
        clip = rig.name if action is None else str(action.name)
    points, closed = curve_points(scene, curve, float(start))
    metres = metres_per_unit(scene)
    try:
        cycle = cycle_of(joints, figure, played, choice.settings.thresholds)
        cycle = with_stride(cycle, choice.settings.stride)
        try:
            # A full turn in a stride, in which feet before or behind the body swing twice as fast as it goes.
            far = max(abs(foot.before) for foot in cycle.feet.values())
            sharpest = 2.0 / max(cycle.stride / math.pi, far)
            way = way_along(points, closed, SHORTEST * cycle.leg, sharpest)
        except InvalidInput as error:
            raise RigError(f"'{curve.name}': {error.told(metres)}") from error
        ways, settings = None, choice.settings
        if shares is not None:
            ways = shares * way.length
            settings = replace(settings, offset=float(ways[0]), cycles=0.0)
        if settings.offset >= way.length and not closed:
            offset, length = metres * settings.offset, metres * way.length
            raise RigError(
                f"Begin At is {offset:.3g} m, beyond the end of curve '{curve.name}' of {length:.3g} m: "
                "lower it"
            )
        length = way.length - (0.0 if closed else settings.offset)
        if closed and settings.cycles > 0.0:
            length = max(length, 1.001 * settings.cycles * cycle.speed * cycle.period)
        frames, time = _frames(cycle, choice, start, seconds, (length, ways), settings)
        height = height_at(points, closed, settings.offset / way.length)
        progress = Progress(float(frames[0]), 0, len(frames), "evaluated")
        yield progress
        part = settings.offset, settings.offset + cycle.speed * float(time.phases[-1] - time.phases[0])
        ground = yield from shown(_ground(scene, choice, frames, (way, *part), cycle, figure), progress)
        strides = Strides.even(settings.offset)
        if settings.fit_steps:
            strides = fitted_strides(cycle, way, height, ground, *part)
        if strides.shortest < 1.0:
            length = float(strides.line_at(np.array(settings.offset + length)))
            ways = None if ways is None else strides.line_at(ways)
            frames, time = _frames(cycle, choice, start, seconds, (length, ways), settings)
        require_writable(scene, rig, joints, reading, frames)
        progress = progress._replace(total=len(frames))
        yield progress
        if isinstance(ground, MovingGround):
            line = cycle.speed * (time.phases - time.phases[0])
            places, room = _near(way, cycle, strides.along_at(line))
            moving = moving_ground(scene, choice.meshes, frames.tolist(), places, room, ground)
            ground = _require_near((yield from shown(moving, progress)))
        standing = _standing(scene, rig, world, (joints, figure, cycle), choice)
        progress = progress._replace(verb="solved")
        yield progress
        done = yield from paced(
            walk_work(cycle, way, height, ground, time, settings, strides, standing), progress
        )
    except InvalidInput as error:
        raise RigError(error.told(metres)) from error
    pose = done.rotations, done.translations
    # The action that an earlier walk made of the same, if nothing but its armature needs it.
    present, made_of = channels.action_of(rig), [rig.name, clip, curve.name]
    alike = (each for each in bpy.data.actions if each.get(MADE_OF) == made_of and not each.use_fake_user)
    earlier = next((each for each in alike if each.users <= int(each == present)), None)
    keys = {
        bone: (rotations[:1] if np.abs(rotations - rotations[0]).max() <= STILL else rotations, location)
        for bone, (rotations, location) in channels_of_motion(
            scene, rig, joints, figure, reading, frames, pose
        ).items()
    }
    yield Progress(float(frames[0]), 0, len(frames), "checked")
    with ExitStack() as undo:
        made = write_motion(scene, rig, keys, frames, f"{clip} along {curve.name}", undo)
        measures, heads, rotations = _measured(scene, rig, done, ground, frames)
        keyed_heads, keyed = figure.world(*pose)
        turned = turned_after_keys(rig, figure, keyed, rotations)
        left = not_carried(rig, joints, figure, reading, keyed_heads, heads)
        undo.pop_all()
    made[MADE_OF] = made_of
    if earlier is not None:
        name = earlier.name
        bpy.data.actions.remove(earlier)
        made.name = name
    replaced = earlier is not None
    period = round(first + step * cycle.frames[0], 3), round(first + step * cycle.frames[1], 3)
    gone, speed = metres * float(done.plan.along[-1] - done.plan.along[0]), metres * cycle.speed
    return Walked(
        made,
        frames,
        cycle,
        period,
        gone,
        speed,
        strides.shortest,
        replaced,
        done.plan,
        measures.scaled(metres),
        turned,
        left,
    )


def _frames(
    cycle: Cycle,
    choice: WalkChoice,
    start: int,
    seconds: float,
    way: tuple[float, Array | None],
    settings: WalkSettings,
) -> tuple[Array, Timeline]:
    """(F,) scene frames and what is shown in them.

    Args:
        seconds: from one frame to the next.
        way: metres of the cycle's straight line that there are, and (F,) those gone at each frame or None.
    """
    length, ways = way
    time = timeline(cycle, length, seconds, settings, ways)
    if choice.end is not None and ways is None and start + len(time.times) - 1 > choice.end:
        eased = 0.5 * settings.ease * (settings.start + settings.stop)
        left = (choice.end - choice.start) * seconds - eased
        words = f"frames {choice.start} to {choice.end} are too few for a step: give a later end frame"
        if left <= cycle.step:
            raise InvalidInput(words)
        try:  # it ends before the cycles do
            time = timeline(cycle, cycle.speed * left, seconds, replace(settings, cycles=0.0))
        except InvalidInput as error:
            raise InvalidInput(words) from error
    frames = start + np.arange(len(time.times), dtype=np.float64)
    if len(frames) > MOST_FRAMES:
        raise InvalidInput(f"the way takes {len(frames)} frames: at most {MOST_FRAMES}")
    if frames[-1] > LAST_FRAME:
        raise InvalidInput(f"the walk ends at frame {frames[-1]:.7g}: Blender has frames up to {LAST_FRAME}")
    return frames, time


def _standing(
    scene: bpy.types.Scene,
    rig: bpy.types.Object,
    world: Matrix,
    figure: tuple[FigureMap, TargetFigure, Cycle],
    choice: WalkChoice,
) -> Standing | None:
    """How the figure stands before and after; None for as in the cycle on average.

    `world` is armature space to world as the walk begins.
    """
    joints, target, cycle = figure
    if choice.stands is Stands.CYCLE:
        return None
    if choice.stands is Stands.REST:
        names = tuple(joint.name for joint in target.skeleton.joints)
        heads, rotations = (each[None] for each in target.reference)
        themselves = replace(cycle.figure_map, sources={name: name for name in names})
        rest = SourceMotion(names, np.zeros(1), heads, rotations, *target.reference)
        return standing_of(replace(cycle, figure_map=themselves), rest)
    action = choice.stand_action
    if action is None:
        raise RigError("Stand is Action, and none is chosen: choose an action whose first frame is the pose")
    with _playing(rig, action):
        first, _ = keyed_range(scene, rig)
        pose = source_motion(scene, rig, joints, SourceChoice([first], 1.0, stays=True, world=world))
    return standing_of(cycle, pose)


def cycle_action(rig: bpy.types.Object, chosen: bpy.types.Action | None) -> bpy.types.Action | None:
    """The action with the cycle: the chosen or the playing one; None for strips alone.

    While a walk plays, it is the action of which the walk was made.
    """
    if chosen is not None or rig.animation_data is None:
        return chosen
    action = rig.animation_data.action
    walks: set[bpy.types.Action] = set()
    while action is not None and action not in walks:
        made_of: Any = action.get(MADE_OF)
        if made_of is None or made_of[0] != rig.name:
            break
        walks.add(action)
        action = bpy.data.actions.get(made_of[1])
    return action


def _require_upright(rig: bpy.types.Object, world: Matrix, joints: FigureMap) -> None:
    """Raise RigError unless legs lead down from the body at rest; `world`: armature space to world."""
    bones = rig.data.bones
    ways = []
    for leg in joints.legs:
        ends = (world @ each for each in (bones[leg.end].head_local, bones[leg.end].tail_local))
        ways.append(world @ bones[leg.upper].head_local - min(ends, key=_height))
    if not sum(map(_height, ways)) / len(ways) > LYING * max(way.length for way in ways):
        if foot := sampling.raised_foot_of(rig, world, joints):
            raise RigError(
                f"the rest pose of '{rig.name}' is no pose of a body: '{foot}' is above the hips; retarget "
                "its motion to a rig that stands at rest, and let that one walk"
            )
        raise RigError(
            f"'{rig.name}' does not stand at rest: its feet are not below '{joints.hips}' in the world; turn "
            "the object upright"
        )


def _require_free_legs(joints: FigureMap, figure: TargetFigure) -> None:
    """Raise RigError if a bone that bends a leg is locked."""
    for leg in joints.legs:
        for name in (leg.upper, leg.middle, *leg.bends):
            if figure.skeleton.joints[figure.index(name)].locked:
                raise RigError(
                    f"bone '{name}' of the {leg.name} is locked: unlock its rotation in the tab Item of the "
                    "sidebar"
                )


def _height(point: Vector) -> float:
    return float(point.z)


@contextmanager
def _playing(rig: bpy.types.Object, action: bpy.types.Action | None) -> Iterator[None]:
    """Let the armature play an action within the block; None: its strips alone."""
    animation = rig.animation_data
    if action == channels.action_of(rig) and (action is None or channels.bag_of(rig) is not None):
        yield
        return
    require_no_tweak(rig)
    chosen = None if action is None else channels.slot_for(action, rig)
    before, slot = channels.action_of(rig), channels.slot_of(animation)
    if animation is None:
        rig.animation_data_create()
    channels.assign(rig, action, chosen)
    try:
        yield
    finally:
        channels.assign(rig, before, slot)
        if animation is None:
            rig.animation_data_clear()


def _near(way: Way, cycle: Cycle, along: Array) -> tuple[Array, float]:
    """(..., P, 2) places of the world near which ground counts for bodies at metres (...,), and metres around
    them."""
    aside = max(float(np.abs(foot.balls[:, 1]).max()) for foot in cycle.feet.values())
    room = BESIDE * cycle.leg + aside
    beyond = cycle.speed * cycle.period + room
    line = along[..., None] + np.arange(-beyond, beyond, 0.5 * room)
    befores = {foot.before for foot in cycle.feet.values()}
    under = [way.bent(line + each, np.zeros_like(line), each)[0] for each in sorted({0.0, *befores})]
    return np.concatenate(under, axis=-2), room


def _ground(
    scene: bpy.types.Scene,
    choice: WalkChoice,
    frames: Array,
    gone: tuple[Way, float, float],
    cycle: Cycle,
    figure: TargetFigure,
) -> Generator[float, None, Ground]:
    """The ground along a part of a way, metres, at the first frame alone if it may move later."""
    if not choice.meshes:
        return LevelGround(figure.ground if choice.height is None else choice.height)
    way, start, end = gone
    places, room = _near(way, cycle, np.arange(start, end + cycle.leg, cycle.leg))
    first = first_ground(scene, choice.meshes, frames.tolist(), places.reshape(-1, 2), room)
    return _require_near((yield from first))


def _require_near(ground: Ground | None) -> Ground:
    if ground is None:
        raise RigError("the ground is nowhere near the curve: move one of them, or choose another ground")
    return ground


def _measured(
    scene: bpy.types.Scene, rig: bpy.types.Object, done: Walk, ground: Ground, frames: Array
) -> tuple[WalkMeasures, Array, Array]:
    """Return measures of the playing result, and its (F, n, 3) heads and (F, n, 4) rotations, world."""
    target = done.cycle.target
    names = [joint.name for joint in target.skeleton.joints]
    seen = replace(done.cycle.figure_map, sources={name: name for name in names})
    seconds = scene.render.fps_base / scene.render.fps
    played = source_motion(scene, rig, seen, SourceChoice(frames.tolist(), seconds, stays=True))
    order = [played.index(name) for name in names]
    heads, rotations = played.heads[:, order] + target.shift, played.rotations[:, order]
    return walk_measures(done.cycle, done.plan, ground, heads, rotations), heads, rotations


# The curve, as points in world space ------------------------------------------------------------------------


def curve_points(scene: bpy.types.Scene, obj: bpy.types.Object, frame: float) -> tuple[Array, bool]:
    """Return (P, 3) world points of a curve object at a frame, and whether it is cyclic.

    Its bevel is left out, and so are modifiers that make other points, such as arrays.

    Raises:
        RigError: the curve has no spline or several.
    """
    splines = obj.data.splines
    if not len(splines):
        raise RigError(f"curve '{obj.name}' has no spline: draw one, or choose another curve")
    if len(splines) > 1:
        raise RigError(f"curve '{obj.name}' has {len(splines)} splines: leave it one")
    closed = bool(splines[0].use_cyclic_u)
    data = obj.data.copy()
    bare: Any = obj.copy()
    try:
        bare.data = data
        for modifier in [each for each in bare.modifiers if each.type not in DEFORMING]:
            bare.modifiers.remove(modifier)
        data.bevel_depth = data.extrude = data.offset = 0.0
        data.bevel_object = data.taper_object = None
        data.use_path = data.use_fill_caps = False
        if data.dimensions == "2D":
            data.fill_mode = "NONE"
        with shared_scene(scene) as shared:
            shared.isolated.collection.objects.link(bare)
            evaluated = bare.evaluated_get(set_frame(shared.isolated, frame))
            world = np.array([row[:] for row in evaluated.matrix_world])
            mesh = evaluated.to_mesh()
            points = np.empty(3 * len(mesh.vertices), np.float32)
            mesh.vertices.foreach_get("co", points)
            evaluated.to_mesh_clear()
    finally:
        bpy.data.objects.remove(bare)
        bpy.data.curves.remove(data)
    if len(points) < 6:
        raise RigError(f"curve '{obj.name}' has no length: give it two points or more")
    return points.reshape(-1, 3).astype(np.float64) @ world[:3, :3].T + world[:3, 3], closed


def keyed_places(scene: bpy.types.Scene, obj: bpy.types.Object) -> tuple[int, Array]:
    """Return the first keyed frame of a curve's Evaluation Time, and (F,) parts of the curve up to the last.

    Raises:
        RigError: it has fewer than two keys.
    """
    keys = times_of_curves(obj.data, lambda curve: curve.data_path == "eval_time")
    times = np.unique(np.concatenate([np.zeros(0), *keys]))
    if len(times) < 2:
        raise RigError(
            f"curve '{obj.name}' has no keys of its Evaluation Time: key it, or take the cycle's speed"
        )
    first, last = (round(each / key_time(scene)) for each in (times[0], times[-1]))
    whole = max(float(obj.data.path_duration), 1.0)
    with shared_scene(scene) as shared:
        shared.isolated.collection.objects.link(obj)
        shown = (set_frame(shared.isolated, frame) for frame in range(first, last + 1))
        values = np.array([float(obj.evaluated_get(depsgraph).data.eval_time) for depsgraph in shown])
    back = np.flatnonzero(np.diff(values) < -1e-9 * whole)
    if len(back):
        raise RigError(
            f"the Evaluation Time of curve '{obj.name}' goes back after frame {first + back[0]}: let it "
            "only grow"
        )
    if obj.data.splines and obj.data.splines[0].use_cyclic_u:
        return first, values / whole - math.floor(values[0] / whole)
    if not -1e-6 <= values[0] / whole <= values[-1] / whole <= 1.0 + 1e-6:
        raise RigError(
            f"the Evaluation Time of curve '{obj.name}' is {values[0]:g} to {values[-1]:g}, and its path "
            f"0 to {whole:g}: key it inside, or raise Path Duration"
        )
    return first, np.clip(values / whole, 0.0, 1.0)


# The figure on itself, with any number of legs --------------------------------------------------------------


def walking_map(rig: bpy.types.Object) -> FigureMap:
    """Map an armature on itself, with its legs.

    All descendants of the hips are mapped; of control rigs those with a role alone.

    Raises:
        RigError: no leg is recognised.
    """
    on_itself = bone_map(rig, rig)
    legs = many_legs(on_itself.figure)
    mapped = figure_map(on_itself)
    if legs:
        mapped = _with_legs(mapped, legs, rig)
    if not mapped.legs:
        raise RigError(
            f"'{rig.name}': no leg is recognised: open Set Up Figure and choose what its bones are there"
        )
    if sampling.is_controlled(rig, mapped):
        return mapped
    below = [bone.name for bone in rig.data.bones[mapped.hips].children_recursive]
    whole = replace(mapped, sources={**mapped.sources, **{name: name for name in below}})
    return mapped if sampling.is_controlled(rig, whole) else whole


def many_legs(figure: Figure) -> tuple[Limb, ...]:
    """Return the legs of a figure with more than four legs."""
    groups = sorted(
        {(role.side, role.number) for role in figure.roles.values() if role.part is Part.LEG},
        key=lambda each: (each[1], each[0]),
    )
    limbs = []
    for side, number in groups:
        bones = figure.bones(Part.LEG, side, number)
        if len(bones) < 2:
            continue
        words = {Side.LEFT: "left", Side.RIGHT: "right", Side.MIDDLE: "middle"}[side]
        upper, middle, end = bones[0], bones[len(bones) // 2 if len(bones) > 2 else 1], bones[-1]
        between = tuple(bone for bone in bones[1:-1] if bone != middle)
        is_right = side is not Side.LEFT
        limbs.append(Limb(f"{words} leg {number + 1}", upper, middle, end, "", "", is_right, between))
    return tuple(limbs)


def _with_legs(mapped: FigureMap, legs: tuple[Limb, ...], rig: bpy.types.Object) -> FigureMap:
    names = [name for leg in legs for name in (*leg.joints, *leg.bends)]
    hips = mapped.hips
    above = [rig.data.bones[leg.upper].parent_recursive for leg in legs]
    if not all(hips in [bone.name for bone in line] for line in above):
        common = [bone.name for bone in above[0] if all(bone in line for line in above)]
        if not common:
            raise RigError(f"'{rig.name}': its legs hang on no bone in common: parent them to the body")
        hips = common[0]
    sources = {**mapped.sources, hips: hips, **{name: name for name in names}}
    return replace(mapped, sources=sources, hips=hips, legs=legs, arms=())


# Stored settings, as values ---------------------------------------------------------------------------------


STORED = (
    *("start", "stop", "ease", "cycles", "stride", "fit_steps", "offset"),
    *("steepest", "clearance", "extension"),
)
"""Fields of `WalkSettings` that an armature stores."""


def choice_of(rig: bpy.types.Object) -> WalkChoice:
    """Read the choices of an armature.

    Raises:
        RigError: a number is out of range, or no ground is chosen.
    """
    group: Any = rig.ccd_rig.walk
    try:
        settings = WalkSettings(**{name: getattr(group, name) for name in STORED})
    except InvalidInput as error:
        raise RigError(str(error)) from error
    height, meshes = ground_of_rig(rig)
    return WalkChoice(
        cycle=group.cycle,
        cycle_frames=(group.cycle_start, group.cycle_end) if group.use_range else None,
        height=height,
        meshes=meshes,
        start=group.frame_start,
        end=group.frame_end if group.use_end else None,
        stands=Stands(group.stands),
        stand_action=group.stand_action,
        keyed=group.speed == "CURVE",
        settings=settings,
    )


# Report -----------------------------------------------------------------------------------------------------

SLIDES, SINKS = 5e-4, 2e-3
"""Metres of a slide, and of a sole in or above the ground, that cause a warning."""
FASTER = 1.5
"""Turns and jerk beside those of the cycle that cause one: half as much again is seen as another motion."""


def lines(done: Walked) -> tuple[str, ...]:
    """Return the sentences of the report, the most important first."""
    measures, cycle = done.measures, done.cycle
    first, last = done.frames[0], done.frames[-1]
    start, end = done.cycle_frames
    walked = (
        f"{len(done.frames)} frames, {first:.7g} to {last:.7g}: {done.length:.2f} m in "
        f"{measures.footfalls} footfalls"
    )
    return (
        f"{walked}, instead of the walk made before" if done.replaced else walked,
        f"Cycle of frames {start:.7g} to {end:.7g}: {done.speed:.2f} m/s, {len(cycle.legs)} legs",
        *told_turned(done.turned),
        *told_left_behind(done.left, cycle.figure_map.hips),
        *(
            (f"On stairs and in bends steps are {100.0 * done.shortest:.0f} % as long, at least",)
            if done.shortest < 1.0
            else ()
        ),
        f"Planted balls slide {1000.0 * measures.slide:.2f} mm at most",
        f"Soles get {1000.0 * measures.penetration:.1f} mm into the ground at most, planted ones stay "
        f"{1000.0 * measures.floating:.1f} mm above it",
        _reach(done),
        f"Knees bend to the other side in {measures.flipped} frames",
        f"Beside the cycle: largest turn {_ratio(measures.turn, measures.cycle_turn)}, of a joint "
        f"{_ratio(measures.bend, measures.cycle_bend)}, jerk of feet "
        f"{_ratio(measures.jerk, measures.cycle_jerk)}",
    )


def warnings(done: Walked) -> tuple[str, ...]:
    """Return warnings to the user."""
    measures = done.measures
    told = [*told_turned(done.turned), *told_left_behind(done.left, done.cycle.figure_map.hips)]
    if measures.stretched:
        told.append(
            f"Legs are too short for their feet in {measures.stretched} frames, by "
            f"{1000.0 * measures.missed:.0f} mm at most: lower Stride, or make the way flatter"
        )
    pairs = (measures.turn, measures.cycle_turn), (measures.bend, measures.cycle_bend)
    most = max((each / usual for each, usual in pairs if usual > 0.0), default=0.0)
    jerk = measures.jerk / measures.cycle_jerk if measures.cycle_jerk > 0.0 else 0.0
    if max(most, jerk) > FASTER:
        told.append(
            f"Bones turn {most:.1f} times as fast as in the cycle, feet jerk {jerk:.1f} times as much; in it "
            f"feet are down {100.0 * done.cycle.down:.0f} % of the time: lower Stride, choose a slower cycle "
            "or one whose feet are down longer, or lead the curve over flatter ground"
        )
    if measures.slide > SLIDES:
        told.append(f"Planted balls slide {1000.0 * measures.slide:.1f} mm")
    if max(measures.penetration, measures.floating) > SINKS:
        told.append(
            f"Soles get {1000.0 * measures.penetration:.0f} mm into the ground, planted ones stay "
            f"{1000.0 * measures.floating:.0f} mm above it: lower Stride, or lead the curve over evener "
            "ground"
        )
    if never := [leg.limb.name for leg in done.cycle.legs if not done.cycle.feet[leg.limb.name].stances]:
        told.append(f"Never down in the cycle, and so never planted: {named(never)}")
    if measures.airborne > measures.cycle_airborne:
        told.append(
            f"{measures.airborne} feet are in the air at once, in the cycle {measures.cycle_airborne}: "
            "lower Stride or Ease"
        )
    if measures.flipped:
        told.append(f"Knees bend to the other side in {measures.flipped} frames")
    return tuple(told)


def as_values(done: Walked) -> Mapping[str, Any]:
    """Return the report for a JSON file: metres, degrees, seconds."""
    measures = dict(vars(done.measures))
    turns = ("turn", "cycle_turn", "bend", "cycle_bend")
    return {
        "frames": [float(done.frames[0]), float(done.frames[-1])],
        "length": done.length,
        "shortest": done.shortest,
        "cycle": list(done.cycle_frames),
        "speed": done.speed,
        "legs": [leg.limb.name for leg in done.cycle.legs],
        **measures,
        "turned": {each.bone: math.degrees(each.angle) for each in done.turned},
        "left_behind": list(done.left),
        **{name: math.degrees(measures[name]) for name in turns},
    }


def _reach(done: Walked) -> str:
    measures = done.measures
    hips = f"hips are lowered or shifted {1000.0 * measures.moved:.0f} mm at most"
    if not measures.stretched:
        return f"All legs reach their feet; {hips}"
    missed = f"{1000.0 * measures.missed:.1f} mm at most"
    return f"Legs are too short in {measures.stretched} frames, by {missed}; {hips}"


def _ratio(value: float, of_cycle: float) -> str:
    return f"{value / of_cycle:.2f}" if of_cycle > 0.0 else "-"
