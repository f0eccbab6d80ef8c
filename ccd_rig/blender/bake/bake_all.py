# SPDX-License-Identifier: GPL-3.0-or-later
"""Several armatures baked in one pass: each frame of the scene is evaluated once, and what is alike is solved
together.

The bakes go on side by side, each a generator (`bake.one_of_many`). What they ask for is answered for all at
once: figures of the same shape with the same constraints are solved as one batch over figures and frames.
Armatures whose targets hang on others are baked after those. All is written, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing

import bpy

from ...errors import CCDRigError, RigError
from ...solvers.least_squares.requests import Request
from ...solvers.least_squares.solve import Solved
from ..rig import clamps
from ..scene import dependence
from ..scene.isolation import shared_scene
from .bake import Shares, one_of_many
from .progress import Answers, Clock, Progress, Steps, run, solved
from .report import BakeReport
from .settings import BakeSettings

AT_ONCE = 128
"""Most armatures that are baked side by side: their frames wait in memory until they are solved."""


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
    """Like `bake_all`, an item now and then. Close the generator to cancel: all that was written is taken
    back."""
    if not settings:
        raise RigError("No armature of the scene has enabled CCD constraints: add one in the CCD Rig panel")
    found: dict[bpy.types.Object, BakeReport] = {}
    with clamps.suspended(), ExitStack() as kept:
        ready: list[tuple[bpy.types.Object, Steps[BakeReport]]] = []
        for wave in waves(list(settings)):
            for first in range(0, len(wave), AT_ONCE):
                some = {each: settings[each] for each in wave[first : first + AT_ONCE]}
                baked = yield from _side_by_side(scene, some, (first, len(settings)), kept)
                ready += baked
        for armature_object, steps in ready:  # nothing fails any more
            found[armature_object] = _end(steps)
    return [found[each] for each in settings]


def rigs(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """Armature objects of a scene with enabled constraints."""
    return [
        each
        for each in scene.objects
        if each.type == "ARMATURE" and any(row.enabled for row in each.ccd_rig.constraints)
    ]


def waves(armatures: Sequence[bpy.types.Object]) -> list[list[bpy.types.Object]]:
    """Armatures in lists whose members do not wait for one another; each list waits for those before it.

    Raises:
        RigError: two hang on each other.
    """
    known = set(armatures)
    carriers = {
        each: {mover.thing for mover in dependence.all_movers(each) if mover.bone} & known - {each}
        for each in armatures
    }
    found: list[list[bpy.types.Object]] = []
    left = list(armatures)
    while left:
        free = [each for each in left if carriers[each].isdisjoint(left)]
        if not free:
            names = " and ".join(f"'{each.name}'" for each in left[:2])
            raise RigError(f"Armatures {names} move each other's targets: bake them one after the other")
        found.append(free)
        left = [each for each in left if each not in free]
    return found


def _side_by_side(
    scene: bpy.types.Scene,
    settings: Mapping[bpy.types.Object, BakeSettings],
    count: tuple[int, int],
    kept: ExitStack,
) -> Steps[list[tuple[bpy.types.Object, Steps[BakeReport]]]]:
    """Bake armatures up to where nothing may fail any more; what is written is taken back with `kept`."""
    ready: list[tuple[bpy.types.Object, Steps[BakeReport]]] = []
    with shared_scene(scene) as shared:
        bakes = {}
        for armature_object, own in settings.items():
            shares = Shares(shared)
            steps = kept.enter_context(closing(one_of_many(scene, armature_object, own, shares)))
            bakes[armature_object] = steps, shares
        answers: dict[bpy.types.Object, Answers] = dict.fromkeys(bakes)
        while answers:
            asked: dict[bpy.types.Object, tuple[Request, ...]] = {}
            item: Progress | None = None
            for armature_object, answer in answers.items():
                item = _next(armature_object, bakes[armature_object][0], answer)
                if item.is_last:
                    ready.append((armature_object, bakes[armature_object][0]))
                else:
                    asked[armature_object] = item.requests
            assert item is not None
            yield item._replace(requests=(), is_last=False)
            whole = item._replace(
                requests=tuple(each for own in asked.values() for each in own), is_last=False
            )
            clock = Clock()
            found = yield from clock.run(solved(whole))
            answers = _shared_out(asked, found)
            _charge(asked, {each: shares for each, (_, shares) in bakes.items()}, clock.seconds)
    return ready


def _next(armature_object: bpy.types.Object, steps: Steps[BakeReport], answer: Answers) -> Progress:
    try:
        return steps.send(answer)
    except CCDRigError as error:
        if armature_object.name in str(error):
            raise
        raise RigError(f"{armature_object.name}: {error}") from error


def _shared_out(
    asked: Mapping[bpy.types.Object, tuple[Request, ...]], solved: Sequence[Solved]
) -> dict[bpy.types.Object, Answers]:
    """Of what was solved for all, what each bake asked for."""
    left = iter(solved)
    return {each: tuple(next(left) for _ in requests) or None for each, requests in asked.items()}


def _charge(
    asked: Mapping[bpy.types.Object, tuple[Request, ...]],
    shares: Mapping[bpy.types.Object, Shares],
    seconds: float,
) -> None:
    """Add to the time of each bake its part of what it took to solve for all."""
    sizes = {each: sum(request.start.size for request in requests) for each, requests in asked.items()}
    total = max(sum(sizes.values()), 1)
    for armature_object, size in sizes.items():
        shares[armature_object].clock.seconds += seconds * size / total


def _end(steps: Steps[BakeReport]) -> BakeReport:
    """What a bake comes to that has nothing left to do but to keep what it wrote."""
    try:
        next(steps)
    except StopIteration as end:
        report: BakeReport = end.value
        return report
    raise AssertionError("a bake went on after its last item")
