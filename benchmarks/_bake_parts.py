"""Where a bake's time goes, and the least that the same result could take.

Timers are put around functions of the product from outside, for as long as one bake runs; a timer inside
another takes its time out of the outer one, so the parts add up to the whole. A function that is not there
any more is named below the table, and its time stands in the part around it.
"""

from __future__ import annotations

import inspect
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import bpy
import numpy as np
from _bake_pairs import HAS_CHECK, add_rows, time_ours
from _bake_scenes import Shot, fcurve_maker

from ccd_rig.blender.bake import bake, bake_frames, frame_solver, measuring, outcome, recorder
from ccd_rig.blender.checks import setup
from ccd_rig.blender.rig import armature
from ccd_rig.blender.scene import evaluation, isolation

PARTS: tuple[tuple[str, Any, str], ...] = (
    ("checks", setup, "require"),
    ("a scene aside", evaluation, "shared_scene"),
    ("evaluation", isolation.SharedScene, "at"),
    ("reading", evaluation, "frames"),
    ("taking down", recorder.FrameRecorder, "store"),
    ("taking down", bake_frames.BakeFrames, "store_solution"),
    ("taking down", bake_frames.BakeFrames, "store_batch"),
    ("solving", frame_solver, "solve_batches"),
    ("slerp and limits", bake, "keyed_motion"),
    ("report", measuring, "residuals"),
    ("report", outcome, "_entries"),
    ("report", outcome, "weighted_fit"),
    ("report", bake, "store_report"),
    ("writing: values", armature, "channel_values"),
    ("writing: obstacles", bake, "_refuse_obstacles"),
    ("writing: keys", bake, "write_keys"),
)
REST = "the rest"


class _Clock:
    """Seconds per part; the part that runs is the innermost one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[list[Any]] = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        inside = [0.0]
        self._open.append(inside)
        began = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - began
            self._open.pop()
            self.seconds[name] = self.seconds.get(name, 0.0) + took - inside[0]
            if self._open:
                self._open[-1][0] += took


@contextmanager
def _timed(clock: _Clock) -> Iterator[list[str]]:
    """The product's functions with timers around them; names those that are not there."""
    missing = []
    with ExitStack() as undo:
        for name, owner, attribute in PARTS:
            plain = getattr(owner, attribute, None)
            if plain is None:
                missing.append(f"{owner.__name__}.{attribute}")
                continue
            setattr(owner, attribute, _with_timer(plain, clock, name))
            undo.callback(setattr, owner, attribute, plain)
        yield missing


def _with_timer(plain: Callable[..., Any], clock: _Clock, name: str) -> Callable[..., Any]:
    inner = inspect.unwrap(plain)
    if inner is not plain and inspect.isgeneratorfunction(inner):  # a context manager

        @contextmanager
        def timed(*args: Any, **keywords: Any) -> Iterator[Any]:
            with ExitStack() as stack:
                with clock.part(name):
                    given = stack.enter_context(plain(*args, **keywords))
                yield _with_timer(given, clock, name) if callable(given) else given
                with clock.part(name):
                    stack.close()
    elif inspect.isgeneratorfunction(plain):

        def timed(*args: Any, **keywords: Any) -> Iterator[Any]:
            items, answer = plain(*args, **keywords), None
            while True:
                with clock.part(name):
                    try:
                        item = items.send(answer)
                    except StopIteration as end:
                        return end.value
                answer = yield item
    else:

        def timed(*args: Any, **keywords: Any) -> Any:
            with clock.part(name):
                return plain(*args, **keywords)

    return timed


def tell(make: Callable[[], Shot], frames: int, runs: int) -> None:
    """Print the parts of a bake, medians over the runs, and how the whole compares with the floor."""
    plain, found, floors, checked = [], [], [], []
    for _ in range(runs):
        made = make()
        add_rows(made)
        plain.append(time_ours(made, frames).wall)
        if HAS_CHECK:
            made = make()
            add_rows(made)
            checked.append(time_ours(made, frames, verify=True).wall)
        made = make()
        add_rows(made)
        clock = _Clock()
        with _timed(clock) as missing, clock.part(REST):
            time_ours(made, frames)
        found.append(clock.seconds)
        floors.append(floor(make(), frames))
    whole = statistics.median(plain)
    names = dict.fromkeys((*(name for name, _, _ in PARTS), REST))
    taken = {name: statistics.median(run.get(name, 0.0) for run in found) for name in names}
    total = sum(taken.values())
    print(f"{'part':24s}{'ms':>9s}{'share':>8s}")
    for name, seconds in taken.items():
        print(f"{name:24s}{seconds * 1e3:9.2f}{seconds / total:8.1%}")
    print(f"{'with timers':24s}{total * 1e3:9.2f}")
    print(f"{'without':24s}{whole * 1e3:9.2f}")
    sampling, writing = (statistics.median(each) for each in zip(*floors, strict=True))
    if checked:
        print(f"{'the check after it':24s}{(statistics.median(checked) - whole) * 1e3:9.2f}")
    if missing:
        print(f"not there any more: {', '.join(missing)}")
    print("The floor:")
    print(f"{'target sampling':24s}{sampling * 1e3:9.2f}")
    print(f"{'bulk key writing':24s}{writing * 1e3:9.2f}")
    print(f"the bake takes {whole / (sampling + writing):.2f} times the floor", flush=True)


def floor(shot: Shot, frames: int) -> tuple[float, float]:
    """Seconds to sample the targets in a scene of their own, and to write as many keys as the bake does."""
    alone = bpy.data.scenes.new("Targets")
    for reach in shot.reaches:
        alone.collection.objects.link(reach.target)
    places = np.empty((frames, len(shot.reaches), 3))
    alone.frame_set(1)
    began = time.perf_counter()
    for f in range(frames):
        alone.frame_set(f + 1)
        depsgraph = alone.view_layers[0].depsgraph
        for c, reach in enumerate(shot.reaches):
            places[f, c] = reach.target.evaluated_get(depsgraph).matrix_world.translation
    sampled = time.perf_counter() - began
    keys = np.empty((frames, 2), dtype=np.float32)
    keys[:, 0], keys[:, 1] = np.arange(1, frames + 1), 0.5
    linear = np.full(frames, 1, dtype=np.int32)
    began = time.perf_counter()
    new = fcurve_maker(shot.rig)
    for bone in shot.bones:
        for index in range(4):
            curve = new(f'pose.bones["{bone}"].rotation_quaternion', index)
            curve.keyframe_points.add(frames)
            curve.keyframe_points.foreach_set("co", keys.ravel())
            curve.keyframe_points.foreach_set("interpolation", linear)
            curve.update()
    return sampled, time.perf_counter() - began
