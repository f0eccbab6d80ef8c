"""Recorded markers on an OpenSim model as weighted goals: the fit beside an optimum that SciPy works out.

    CCD_RIG_OSIM=gait2392.osim CCD_RIG_TRC=walk.trc python3 dev.py bench opensim -- --frames 3

Environment: `CCD_RIG_OSIM` names the model, `CCD_RIG_TRC` the recorded markers, `CCD_RIG_OSIM_MARKERS` a file
with the marker set where the model has none, `CCD_RIG_OSIM_TASKS` inverse kinematics tasks with weights. None
of these comes with CCD Rig.

Root mean squares are of the distances of all markers that are seen, weighted as the goals are, sqrt(sum w d^2
/ sum w), and plain. "apart" is a fit by `scipy.optimize.least_squares` over the model's own coordinates, from
several starts (`_osim.fit`). Frames are solved by `solve_many`, and baked in Blender: markers are constraints
with effector offsets and weights, joints that roll have coupled offsets. Both are done once more with joints
that do not roll. At last each frame is compared: `solve_many`, what Blender plays, and what the bake's report
says. It fails where they are more than 0.1 mm apart.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import _osim as osim
import bpy
import numpy as np
from _osim import Array
from _osim_skeleton import Figure, figure
from _script import Table, run_benchmark
from mathutils import Matrix, Vector

from ccd_rig import EulerBox, Hinge, Pose, SolverSettings, forward_kinematics, solve_many
from ccd_rig.blender.bake.bake import bake
from ccd_rig.blender.bake.settings import BakeSettings

MODEL, MARKERS, TASKS, TRC = "CCD_RIG_OSIM", "CCD_RIG_OSIM_MARKERS", "CCD_RIG_OSIM_TASKS", "CCD_RIG_TRC"
BONE = 0.05  # metres, of the bones that show joints
NEAR = 1e-5  # metres
ALIKE = 1e-4  # metres


def named_file(variable: str) -> Path | None:
    """The file that a variable names."""
    return Path(os.environ[variable]) if os.environ.get(variable) else None


def seen(model: osim.Model, motion: osim.Motion) -> tuple[osim.Model, Array]:
    """The model with the markers that were recorded in all frames, and these (frames, markers, 3)."""
    whole = np.isfinite(motion.points).all((0, 2))
    known = {name: n for n, name in enumerate(motion.names) if whole[n]}
    kept = tuple(marker for marker in model.markers if marker.name in known)
    return (
        osim.Model(model.joints, model.coordinates, kept),
        motion.points[:, [known[marker.name] for marker in kept]],
    )


def apart(model: osim.Model, targets: Array, weights: Array, starts: int) -> Array:
    """(frames, markers, 3) of the fits by SciPy: each on from the frame before, the first from many."""
    names, lower, upper = osim.bounds(model)
    default = np.array([model.coordinates[name].default for name in names])
    rng = np.random.default_rng(1)
    optima, start = [], default
    fixed = {name: c.default for name, c in model.coordinates.items()}
    for frame, points in enumerate(targets):
        tries = [start]
        if frame == 0:
            tries += [default + rng.normal(0.0, 0.5, len(names)) for _ in range(starts)]
        fits = [osim.fit(model, points, weights, each) for each in tries]
        places = [osim.places(model, fixed | dict(zip(names, f.tolist(), strict=True))) for f in fits]
        errors = [float((weights * ((p - points) ** 2).sum(1)).sum()) for p in places]
        best = int(np.argmin(errors))
        start = fits[best]
        optima.append(places[best])
    assert all(np.all((f >= lower) & (f <= upper)) for f in fits)
    return np.array(optima)


def solved(body: Figure, targets: Array, weights: Array) -> tuple[Array, Any, float]:
    """(frames, markers, 3) by `solve_many`, its result, and the seconds it took."""
    rest = Pose.rest(body.skeleton)
    settings = SolverSettings(position_tolerance=NEAR, max_iterations=500, restarts=4)
    started = time.perf_counter()
    result = solve_many(
        body.skeleton,
        [rest] * len(targets),
        body.goals(weights),
        settings,
        targets=[targets[:, n] for n in range(targets.shape[1])],
    )
    seconds = time.perf_counter() - started
    index = {joint.name: n for n, joint in enumerate(body.skeleton.joints)}
    coordinates = []
    for k in range(len(targets)):
        transforms = forward_kinematics(body.skeleton, result.pose(k))
        coordinates.append([transforms[index[name]].point(at)[:] for name, at in body.points])
    return np.array(coordinates), result, seconds


def rig_of(body: Figure) -> bpy.types.Object:
    """An armature whose bones at rest have the frames of the joints."""
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    rest = forward_kinematics(body.skeleton, Pose.rest(body.skeleton))
    for joint, place in zip(body.skeleton.joints, rest, strict=True):
        bone = rig.data.edit_bones.new(joint.name)
        bone.length = BONE
        bone.matrix = Matrix.Translation(place.translation) @ place.rotation.to_matrix().to_4x4()
        if joint.parent != -1:
            bone.parent = rig.data.edit_bones[body.skeleton.joints[joint.parent].name]
    bpy.ops.object.mode_set(mode="OBJECT")
    for joint in body.skeleton.joints:
        group = rig.pose.bones[joint.name].ccd_rig
        limit = joint.limit
        if isinstance(limit, Hinge):
            group.limit.kind, group.limit.axis = "HINGE", limit.axis
            group.limit.hinge_lower, group.limit.hinge_upper = limit.lower, limit.upper
        elif isinstance(limit, EulerBox):
            group.limit.kind, group.limit.euler_order = "EULER", limit.order
            group.limit.euler_lower, group.limit.euler_upper = limit.lower, limit.upper
        else:
            group.stiffness = 1.0
        for slide in joint.slides:
            k = int(np.argmax(np.abs(slide.axis)))
            group.use_slide[k], group.slide_lower[k], group.slide_upper[k] = True, slide.lower, slide.upper
        for offset in joint.coupled_offsets:
            row = group.coupled_offsets.add()
            row.driver, row.axis, row.use_slopes = offset.hinge, offset.axis, True
            for angle, shift, slope in offset.knots.reshape(-1, 3).tolist():
                point = row.points.add()
                # The bone at rest is drawn where the offset has it at angle 0.
                point.angle, point.shift, point.slope = angle, shift - offset.shift(0.0), slope
    return rig


def baked(body: Figure, targets: Array, weights: Array) -> tuple[Array, Any]:
    """(frames, markers, 3) as Blender plays the bake, and its report."""
    rig = rig_of(body)
    for n, ((bone, at), weight) in enumerate(zip(body.points, weights.tolist(), strict=True)):
        empty = bpy.data.objects.new(f"marker {n}", None)
        bpy.context.scene.collection.objects.link(empty)
        for frame, point in enumerate(targets[:, n].tolist(), start=1):
            empty.location = point
            empty.keyframe_insert("location", frame=frame)
        row = rig.ccd_rig.constraints.add()
        row.name, row.tip, row.target = f"marker {n}", bone, empty
        row.use_tail, row.effector_offset, row.weight = False, at, weight
    report = bake(bpy.context.scene, rig, BakeSettings(1, len(targets)))
    positions = []
    for frame in range(1, len(targets) + 1):
        bpy.context.scene.frame_set(frame)
        played = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
        positions.append([(played[bone].matrix @ Vector(at))[:] for bone, at in body.points])
    return np.array(positions), report


def by_frame(positions: Array, targets: Array, weights: Array) -> Array:
    """(frames,) weighted root mean squares, metres."""
    square = ((positions - targets) ** 2).sum(2)
    return np.asarray(np.sqrt((square * weights).sum(1) / weights.sum()))


def compared(core: Array, played: Array, report: Any) -> int:
    """Prints the fits frame by frame, (frames,) by `solve_many` and as played; how many are not alike."""
    reported = {each.frame: each.rms for each in report.fit.frames} if report.fit is not None else {}
    print("\nWeighted root mean square of each frame, mm:\n")
    table, apart = Table("frame | solve_many | played | reported"), 0
    for frame, (solved, plays) in enumerate(zip(core.tolist(), played.tolist(), strict=True), 1):
        values = solved, plays, reported.get(frame, 0.0)
        table.row(frame, *(f"{1e3 * value:.4f}" for value in values))
        apart += max(values) - min(values) > ALIKE
    if apart:
        print(f"{apart} frames are more than {1e3 * ALIKE:g} mm apart")
    return apart


def line(
    table: Table, name: str, positions: Array, targets: Array, weights: Array, seconds: float | None = None
) -> None:
    """Prints one row: root mean squares and the worst frame's, millimetres."""
    square, frames = ((positions - targets) ** 2).sum(2), by_frame(positions, targets, weights)
    values = np.sqrt((frames**2).mean()), np.sqrt(square.mean()), frames.max()
    took = "" if seconds is None else f"{seconds:.2f}"
    table.row(name, *(f"{1e3 * float(value):.4f}" for value in values), int(frames.argmax()) + 1, took)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=20, help="most frames (20)")
    parser.add_argument("--starts", type=int, default=10, help="other starts of the first frame, apart (10)")
    options = parser.parse_args()
    path, trc, tasks = named_file(MODEL), named_file(TRC), named_file(TASKS)
    if path is None or trc is None:
        print(f"nothing to fit: name an .osim file in {MODEL} and a .trc file in {TRC}")
        return 0
    model, targets = seen(osim.read(path, named_file(MARKERS)), osim.read_trc(trc))
    by_name = {} if tasks is None else osim.read_weights(tasks)
    weights = np.array([by_name.get(marker.name, 0.0 if tasks else 1.0) for marker in model.markers])
    weighted = np.flatnonzero(weights)
    model = osim.Model(model.joints, model.coordinates, tuple(model.markers[n] for n in weighted))
    targets, weights = targets[: options.frames, weighted], weights[weighted]
    body = figure(model)
    print(
        f"{path.name}: {len(body.skeleton)} joints, {len(osim.bounds(model)[0])} coordinates, "
        f"{sum(len(joint.slides) for joint in body.skeleton.joints)} slides, "
        f"{len(body.skeleton.couplings)} coupled offsets, {len(weights)} markers, {len(targets)} frames\n"
    )
    table = Table(f"{'RMS, mm':36} | weighted | plain | worst | in frame | seconds")
    line(table, "SciPy apart", apart(model, targets, weights, options.starts), targets, weights)
    fits, summary = [], ""
    for words, each in (("", body), (", joints do not roll", figure(model, rolls=False))):
        positions, _, seconds = solved(each, targets, weights)
        line(table, f"solve_many{words}", positions, targets, weights, seconds)
        played, report = baked(each, targets, weights)
        line(table, f"baked in Blender{words}", played, targets, weights, report.seconds)
        fits.append((by_frame(positions, targets, weights), by_frame(played, targets, weights), report))
        summary += f"\n{report.summary()}"
    print(summary)
    return 1 if compared(*fits[0]) else 0


if __name__ == "__main__":
    run_benchmark(main)
