# SPDX-License-Identifier: GPL-3.0-or-later
"""Several armatures baked in one pass: each frame of the scene is evaluated once.

The bakes run side by side, each a generator (`bake.bake_in_shared_scene`). Armatures whose targets hang on
others are baked after these. Either everything is written or nothing.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import bpy

from ...errors import CCDRigError, RigError
from ...solvers.stepping import Items
from .. import checks
from ..keys import channels
from ..keys.destination import Destination
from ..properties import constraint_list, joints, renamed_bones
from ..rig import clamps
from ..scene import dependence
from ..scene.isolation import shared_scene
from .bake import bake_in_shared_scene, require_there
from .progress import Progress, Steps, run
from .report import BakeReport
from .settings import BakeSettings

CHUNK = 4096
"""Most frames, over all armatures, that wait in memory to be solved; more at once saves no time."""


def bake_all(
    scene: bpy.types.Scene,
    settings: Mapping[bpy.types.Object, BakeSettings],
    progress: Callable[[Progress], None] | None = None,
) -> list[BakeReport]:
    """Bake several armatures.

    Args:
        scene: where targets and armatures are evaluated; its frame and everything in it stay as they are.
        settings: what to bake of each armature object.
        progress: called now and then; may raise to cancel.

    Raises:
        CCDRigError: one of them cannot be baked; the message names it. Nothing has changed then.
    """
    return run(bake_all_steps(scene, settings), progress)


def bake_all_steps(
    scene: bpy.types.Scene, settings: Mapping[bpy.types.Object, BakeSettings]
) -> Steps[list[BakeReport]]:
    """Like `bake_all`, as a generator of progress. Close it to cancel: everything written is taken back."""
    if not settings:
        raise RigError("No armature of the scene has enabled CCD constraints: add one in the CCD Rig panel")
    require_there(scene, *settings)
    _refuse_shared_keys(settings)
    for each in settings:
        renamed_bones.follow(each)
    reports: dict[bpy.types.Object, BakeReport] = {}
    with clamps.suspended(), ExitStack() as kept:
        ready: list[tuple[bpy.types.Object, Steps[BakeReport]]] = []
        overall = _Overall(len(settings))
        for wave in waves(settings):
            for chunk in _chunks({each: settings[each] for each in wave}):
                ready += yield from _side_by_side(scene, chunk, overall, kept)
        for armature_object, steps in ready:  # each has written its keys and cannot fail
            items = Items(steps)
            assert not [*items], "a bake went on after its last item"
            reports[armature_object] = items.result
    return [reports[each] for each in settings]


def _refuse_shared_keys(settings: Mapping[bpy.types.Object, BakeSettings]) -> None:
    """Raise RigError if keys in the present action of an armature would move another one that is baked."""
    names = {each.name_full: each.name for each in settings}
    for armature_object, bake in settings.items():
        if bake.destination is not Destination.CURRENT_ACTION:
            continue
        for user in channels.shared_users(armature_object):
            if user in names:
                raise RigError(
                    f"Armatures '{armature_object.name}' and '{names[user]}' share an action, and what is "
                    "baked for one would move the other: choose New Action for both"
                )


def waves(settings: Mapping[bpy.types.Object, BakeSettings]) -> list[list[bpy.types.Object]]:
    """Armatures in groups that can be baked side by side; each group waits for the groups before it.

    Raises:
        RigError: bakes of armatures move each other's targets in a circle; names them.
    """
    rows = {each: checks.chosen_rows(each, bake.constraints) for each, bake in settings.items()}
    moved = {each: _moved_bones(each, rows[each], bake) for each, bake in settings.items()}
    carriers = {
        each: {
            mover.data_block
            for mover in dependence.all_movers(each, rows[each])
            if mover.data_block != each and mover.bone in moved.get(mover.data_block, ())
        }
        for each in settings
    }
    ordered: list[list[bpy.types.Object]] = []
    left = list(settings)
    while left:
        free = [each for each in left if carriers[each].isdisjoint(left)]
        if not free:
            *before, last = [f"'{each.name}'" for each in _circle(carriers, left)]
            names = " and ".join((", ".join(before), last))
            raise RigError(f"Armatures {names} move each other's targets: bake them one after the other")
        ordered.append(free)
        left = [each for each in left if each not in free]
    return ordered


def _moved_bones(armature_object: bpy.types.Object, rows: Sequence[Any], settings: BakeSettings) -> set[str]:
    """Names of the bones that get keys, or may get some where the body helps."""
    chains = [constraint_list.chain_of(armature_object, row) for row in rows]
    helps = armature_object.ccd_rig.body_helps if settings.body_helps is None else settings.body_helps
    end = checks.common_carrier([chain[-1] for chain in chains if chain]) if helps else ""
    bones = set[str]()
    for row, chain in zip(rows, chains, strict=True):
        whole = [bone.name for bone in constraint_list.chain(armature_object, row.tip)]
        bones.update(whole[: whole.index(end) + 1 if end else len(chain)])
    return bones | set(joints.followers(armature_object, bones))


def _circle(
    carriers: Mapping[bpy.types.Object, set[bpy.types.Object]], left: Sequence[bpy.types.Object]
) -> list[bpy.types.Object]:
    """A circle of armatures, each carried by the next; every armature of `left` is carried by another."""
    path: list[bpy.types.Object] = []
    here = left[0]
    while here not in path:
        path.append(here)
        here = next(each for each in left if each in carriers[here])
    return path[path.index(here) :]


def _chunks(settings: Mapping[bpy.types.Object, BakeSettings]) -> list[dict[bpy.types.Object, BakeSettings]]:
    """Bakes in chunks of at most `CHUNK` frames; a longer bake is a chunk by itself."""
    chunks: list[dict[bpy.types.Object, BakeSettings]] = []
    size = CHUNK
    for armature_object, each in settings.items():
        count = each.frame_end - each.frame_start + 1 + each.preroll
        size += count
        if size > CHUNK:
            chunks.append({})
            size = count
        chunks[-1][armature_object] = each
    return chunks


class _Overall:
    """Progress of all bakes together, each with equal weight."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._shares: dict[str, dict[bpy.types.Object, float]] = {}  # done of each stage, by its verb

    def take(self, armature_object: bpy.types.Object, item: Progress) -> None:
        """Take the next item of a bake; its last one completes all stages."""
        done = self._shares.setdefault(item.verb, {})
        done[armature_object] = max(done.get(armature_object, 0.0), item.done / max(item.total, 1))
        if item.is_last:
            for shares in self._shares.values():
                shares.update({armature_object: 1.0} if armature_object in shares else {})

    def shown(self, item: Progress) -> Progress:
        """The progress of all bakes at the stage of an item."""
        total = self._count * item.total
        done = int(item.total * sum(self._shares[item.verb].values()) + 1e-6)
        return item._replace(done=done, total=total, is_last=False)


def _side_by_side(
    scene: bpy.types.Scene,
    settings: Mapping[bpy.types.Object, BakeSettings],
    overall: _Overall,
    kept: ExitStack,
) -> Steps[list[tuple[bpy.types.Object, Steps[BakeReport]]]]:
    """Bake armatures until their keys are written; closing `kept` takes these back."""
    ready: list[tuple[bpy.types.Object, Steps[BakeReport]]] = []
    with shared_scene(scene) as shared:
        bakes = []  # a list, as a removed armature object is no key any more
        for armature_object, each in settings.items():
            steps = bake_in_shared_scene(scene, armature_object, each, shared)
            bakes.append((armature_object, armature_object.name, kept.enter_context(closing(steps))))
        going = dict.fromkeys(range(len(bakes)), -math.inf)  # by bake, the frame that it evaluates next
        while going:
            frame = min(going.values())
            with shared.unchanged(), _no_collection():
                for k in [k for k, each in going.items() if each == frame]:
                    armature_object, name, steps = bakes[k]
                    item = _next(name, steps)
                    overall.take(armature_object, item)
                    going[k] = item.next_frame
                    if item.is_last:
                        del going[k]
                        ready.append((armature_object, steps))
                    if frame == -math.inf:
                        break
            yield overall.shown(item)
    return ready


@contextmanager
def _no_collection() -> Iterator[None]:
    """Garbage collection off: waiting frames make no garbage, but each collection visits them all."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _next(name: str, steps: Steps[BakeReport]) -> Progress:
    """The next item of a bake; its errors name the armature, which may be gone by then."""
    try:
        return next(steps)
    except CCDRigError as error:
        # Bones and objects may have the same name.
        before, quoted, _ = str(error).partition(f"'{name}'")
        is_named = bool(quoted) and (not before or before.lower().endswith("armature "))
        if is_named or str(error).startswith(f"{name}: "):
            raise
        raise RigError(f"{name}: {error}") from error
