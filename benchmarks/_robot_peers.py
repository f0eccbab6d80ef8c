"""Poses of `robots.py` solved by other libraries: reads a case on the standard input, as JSON.

Runs in an environment that has pinocchio, pink and mink, and neither Blender nor CCD Rig. Prints, by solver,
how many poses were solved, as the solver's own library measures it, and each one's seconds of processor time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import mink
import mujoco
import numpy as np
import pink
import pinocchio as pin

STEPS, DAMPING, SOLVER = 100, 1e-6, "daqp"
PER_ERROR = 0.01  # damping in parts of the squared error (Chan & Lawrence 1988): the best of 0, 0.01, 0.1, 1
Array = np.ndarray[Any, Any]
Attempt = Callable[[Array, Sequence[Any]], bool]


def near(case: dict[str, Any], position: Array, rotation: Array) -> bool:
    """Whether an error, metres and radians, is within the tolerances."""
    is_near = np.linalg.norm(position) <= case["tolerance"]
    return bool(is_near and (not case["turned"] or np.linalg.norm(rotation) <= case["angle"]))


def in_turn(
    case: dict[str, Any], start: Array, bounds: tuple[Array, Array], attempt: Attempt, targets: Any
) -> Any:
    """Return the number of solved poses, with random starts after the first attempt, and seconds per pose."""
    rng, solved, times = np.random.default_rng(1), 0, []
    for target in targets:
        began = time.process_time()
        q = start
        for _ in range(case["restarts"] + 1):
            if attempt(q.copy(), target):
                solved += 1
                break
            q = rng.uniform(*bounds)
        times.append(time.process_time() - began)
    return solved, times


def pinocchio_and_pink(case: dict[str, Any]) -> dict[str, Any]:
    """Damped least squares over pinocchio, and pink."""
    model = pin.buildModelFromXML(case["urdf"])
    data = model.createData()
    start = np.array([case["start"][name] for name in model.names[1:]])
    bounds = model.lowerPositionLimit, model.upperPositionLimit
    frames = [model.getFrameId(tip) for tip in case["tips"]]
    targets = [
        [pin.XYZQUATToSE3(np.array([*each[:3], *each[4:], each[3]])) for each in target]
        for target in case["targets"]
    ]

    def damped(q: Array, target: Sequence[Any]) -> bool:
        for _ in range(STEPS):
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacements(model, data)
            errors, slopes, met = [], [], True
            for frame, wanted in zip(frames, target, strict=True):
                if case["turned"]:
                    way = data.oMf[frame].actInv(wanted)
                    error = pin.log6(way).vector
                    slope = pin.Jlog6(way.inverse()) @ pin.getFrameJacobian(model, data, frame, pin.LOCAL)
                else:
                    error = wanted.translation - data.oMf[frame].translation
                    slope = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)[:3]
                met = met and near(case, error[:3], error[3:])
                errors.append(error)
                slopes.append(slope)
            if met:
                return True
            jacobian = np.vstack(slopes)
            normal = jacobian @ jacobian.T
            error = np.concatenate(errors)
            normal[np.diag_indices_from(normal)] += DAMPING + PER_ERROR * error @ error
            q = np.clip(q + jacobian.T @ np.linalg.solve(normal, error), *bounds)
        return False

    limits = [pink.limits.ConfigurationLimit(model)]
    tasks = [pink.tasks.FrameTask(tip, 1.0, float(case["turned"])) for tip in case["tips"]]

    def by_pink(q: Array, target: Sequence[Any]) -> bool:
        return followed(case, pink, pink.Configuration(model, data, q), tasks, limits, target)

    return {
        "pinocchio": in_turn(case, start, bounds, damped, targets),
        "pink": in_turn(case, start, bounds, by_pink, targets),
    }


def followed(
    case: dict[str, Any],
    library: Any,
    configuration: Any,
    tasks: Sequence[Any],
    limits: Sequence[Any],
    target: Sequence[Any],
) -> bool:
    """Whether steps of pink or mink, which copies it, lead a configuration to all targets."""
    for task, wanted in zip(tasks, target, strict=True):
        task.set_target(wanted)
    for _ in range(STEPS):
        errors = [task.compute_error(configuration) for task in tasks]
        if all(near(case, error[:3], error[3:]) for error in errors):
            return True
        velocity = library.solve_ik(
            configuration, tasks, 1.0, SOLVER, damping=DAMPING, limits=limits, safety_break=False
        )
        configuration.integrate_inplace(velocity, 1.0)
    return False


def by_mink(case: dict[str, Any]) -> dict[str, Any]:
    """The poses by mink."""
    model = mujoco.MjModel.from_xml_string(case["urdf"])
    names = [model.joint(j).name for j in range(model.njnt)]
    start = np.array([case["start"][name] for name in names])
    bounds = model.jnt_range[:, 0].copy(), model.jnt_range[:, 1].copy()
    limits = [mink.ConfigurationLimit(model)]
    tasks = [mink.FrameTask(tip, "body", 1.0, float(case["turned"])) for tip in case["tips"]]
    targets = [[mink.SE3(np.array([*each[3:], *each[:3]])) for each in target] for target in case["targets"]]
    configuration = mink.Configuration(model)

    def attempt(q: Array, target: Sequence[Any]) -> bool:
        configuration.update(q)
        return followed(case, mink, configuration, tasks, limits, target)

    return {"mink": in_turn(case, start, bounds, attempt, targets)}


def main() -> None:
    case = json.load(sys.stdin)
    print(json.dumps(pinocchio_and_pink(case) | by_mink(case)))


if __name__ == "__main__":
    main()
