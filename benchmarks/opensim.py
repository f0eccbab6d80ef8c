"""Markers on an OpenSim model as weighted goals: the fit beside an optimum that was worked out apart.

    CCD_RIG_OSIM=gait2392.osim CCD_RIG_TRC=walk.trc python3 dev.py bench opensim
    CCD_RIG_OSIM=gait2392.osim python3 dev.py bench opensim -- --frames 20 --noise 0.01
    CCD_RIG_OSIM=gait2392.osim CCD_RIG_TRC=walk.trc python3 dev.py bench opensim -- --blender

Environment: `CCD_RIG_OSIM` names the model, `CCD_RIG_OSIM_MARKERS` a file with its marker set where the
model has none, `CCD_RIG_OSIM_TASKS` inverse kinematics tasks with weights, `CCD_RIG_TRC` recorded markers.
None of these comes with CCD Rig. Without recorded markers they are made: coordinates sway inside their
ranges, and each marker is off by a normal error, always the same on its body and anew in each frame.

Root mean squares are of the distances of all markers that are seen, weighted as the goals are, sqrt(sum w d^2
/ sum w), and plain. "apart" is a Levenberg-Marquardt fit by numpy alone over the model's own coordinates,
from several starts (`_osim.fit`). Frames are solved by `solve_many`, and baked in Blender: markers are
constraints with effector offsets and weights, joints that roll have coupled offsets. Both are done once more
with joints that do not roll.

With `--blender` only `solve_many` and the bake are done, and compared frame by frame: what Blender plays, and
what the bake's report says. It fails where they are more than 0.1 mm apart.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import _osim as osim
import _product as product
import bpy
import numpy as np
from _osim import Array
from _osim_skeleton import Figure, figure
from mathutils import Matrix, Vector

from ccd_rig import EulerBox, Hinge, Pose, SolverSettings, forward_kinematics, solve_many

MODEL, MARKERS, TASKS, TRC = "CCD_RIG_OSIM", "CCD_RIG_OSIM_MARKERS", "CCD_RIG_OSIM_TASKS", "CCD_RIG_TRC"
BONE = 0.05  # metres, of the bones that show joints
NEAR = 1e-5  # metres
ALIKE = 1e-4  # metres


def named_file(variable: str) -> Path | None:
    """The file that a variable names."""
    return Path(os.environ[variable]) if os.environ.get(variable) else None


def made(model: osim.Model, frames: int, noise: float, seed: int) -> Array:
    """(frames, markers, 3) of a body that sways, seen with errors."""
    rng = np.random.default_rng(seed)
    names, _, _ = osim.bounds(model)
    each = [model.coordinates[name] for name in names]
    middle = np.array([0.5 * (c.lower + c.upper) for c in each])
    half = np.array([min(0.4 * (c.upper - c.lower), 0.6) for c in each])
    phase, pace = rng.uniform(0.0, 2.0 * np.pi, len(names)), rng.uniform(0.5, 1.5, len(names))
    fixed = {name: c.default for name, c in model.coordinates.items()}
    offsets = rng.normal(0.0, noise, (len(model.markers), 3))
    frames_made = []
    for frame in range(frames):
        values = middle + half * np.sin(2.0 * np.pi * pace * frame / max(frames, 2) + phase)
        places = osim.places(model, fixed | dict(zip(names, values.tolist(), strict=True)))
        frames_made.append(places + offsets + rng.normal(0.0, 0.2 * noise, offsets.shape))
    return np.array(frames_made)


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
    """(frames, markers, 3) of the fits by numpy alone: each on from the frame before, the first from many."""
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
    report = product.bake(bpy.context.scene, rig, product.BakeSettings(1, len(targets)))
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


def compared(body: Figure, targets: Array, weights: Array) -> int:
    """Prints the fits of `solve_many` and of a bake in Blender frame by frame; how many are not alike."""
    positions, _, seconds = solved(body, targets, weights)
    line("solve_many", positions, targets, weights, seconds)
    core = by_frame(positions, targets, weights)
    positions, report = baked(body, targets, weights)
    line("baked in Blender", positions, targets, weights, report.seconds)
    played = by_frame(positions, targets, weights)
    told = dict.fromkeys(range(1, len(targets) + 1), 0.0)
    told |= {each.frame: each.rms for each in report.fit.frames} if report.fit is not None else {}
    print(f"{'':34} {'solve_many':>10} {'played':>10} {'reported':>10}   weighted RMS, mm")
    apart = 0
    for k, (each, plays) in enumerate(zip(core.tolist(), played.tolist(), strict=True)):
        values = (each, plays, told[k + 1])
        print(f"{f'frame {k + 1}':34}" + "".join(f" {1e3 * value:10.4f}" for value in values))
        apart += max(values) - min(values) > ALIKE
    print(f"    {report.summary()}")
    if apart:
        print(f"    {apart} frames are more than {1e3 * ALIKE:g} mm apart")
    return apart


def line(name: str, positions: Array, targets: Array, weights: Array, seconds: float | None = None) -> None:
    """Prints one row: root mean squares and the worst frame's, millimetres."""
    square, frames = ((positions - targets) ** 2).sum(2), by_frame(positions, targets, weights)
    weighted = float(np.sqrt((frames**2).mean()))
    plain = float(np.sqrt(square.mean()))
    took = "" if seconds is None else f"{seconds:8.2f} s"
    print(
        f"{name:34} {1e3 * weighted:10.4f} {1e3 * plain:10.4f} {1e3 * frames.max():10.4f} "
        f"(frame {int(frames.argmax()) + 1}){took}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=20, help="most frames (20)")
    parser.add_argument("--noise", type=float, default=0.01, help="of made markers, metres (0.01)")
    parser.add_argument("--starts", type=int, default=10, help="other starts of the first frame, apart (10)")
    parser.add_argument("--blender", action="store_true", help="solve_many and the bake alone, by frame")
    options = parser.parse_args()
    path = named_file(MODEL)
    if path is None:
        print(f"no model: name an .osim file in {MODEL}")
        return 0
    model = osim.read(path, named_file(MARKERS))
    trc, tasks = named_file(TRC), named_file(TASKS)
    if trc is None:
        targets = made(model, options.frames, options.noise, 1)
    else:
        model, targets = seen(model, osim.read_trc(trc))
        targets = targets[: options.frames]
    by_name = {} if tasks is None else osim.read_weights(tasks)
    weights = np.array([by_name.get(marker.name, 0.0 if tasks else 1.0) for marker in model.markers])
    weighted = np.flatnonzero(weights)
    model = osim.Model(model.joints, model.coordinates, tuple(model.markers[n] for n in weighted))
    targets, weights = targets[:, weighted], weights[weighted]
    body, stiff = figure(model), figure(model, rolls=False)
    print(
        f"{path.name}: {len(body.skeleton)} joints, {len(osim.bounds(model)[0])} coordinates, "
        f"{sum(len(joint.slides) for joint in body.skeleton.joints)} slides, "
        f"{len(body.skeleton.couplings)} coupled offsets, {len(weights)} markers, {len(targets)} frames"
    )
    print(f"{'':34} {'weighted':>10} {'plain':>10} {'worst':>10}   RMS, mm")
    if options.blender:
        return 1 if compared(body, targets, weights) else 0
    line("numpy apart", apart(model, targets, weights, options.starts), targets, weights)
    positions, result, seconds = solved(body, targets, weights)
    line("solve_many", positions, targets, weights, seconds)
    print("    " + ", ".join(sorted({status.name for status in result.statuses})))
    positions, report = baked(body, targets, weights)
    line("baked in Blender", positions, targets, weights, report.seconds)
    print(f"    {report.summary()}")
    positions, _, seconds = solved(stiff, targets, weights)
    line("solve_many, joints do not roll", positions, targets, weights, seconds)
    positions, report = baked(stiff, targets, weights)
    line("baked in Blender, do not roll", positions, targets, weights, report.seconds)
    print(f"    {report.summary()}")
    return 0


if __name__ == "__main__":
    product.run(main)
