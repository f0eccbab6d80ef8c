# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that bakes shots: a step of one task per shot or chunk, and one of a task per shot that has chunks to
be joined."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .bundle import Job, Step, parameter
from .job import Shot, to_json


def bundle_job(
    shots: Sequence[Shot], paths: Sequence[Path], assets: Sequence[Path], program: str, is_module: bool
) -> Job:
    """The job of a bundle.

    Args:
        shots: what is baked.
        paths: of the shots' files, absolute.
        assets: of what they link, absolute.
        program, is_module: as in `Job`.
    """
    pairs = list(zip(paths, shots, strict=True))
    parts = [(path, k) for path, shot in pairs for k, _ in enumerate(shot.spans(), 1)]
    word = parameter("Shot")
    files, places = ([part[k] for part in parts] for k in range(2))
    steps = [Step("Bake", (f"--part={parameter('Part')}", word), {"Shot": files, "Part": places})]
    joins = [path for path, shot in pairs if shot.is_split]
    if joins:
        steps.append(Step("Join", (word,), {"Shot": joins}))
    description = f"Bakes CCD constraints to keys: {', '.join(shot.name for shot in shots)}"
    return Job("CCD Rig bake", description, to_json(shots), paths, assets, steps, program, is_module)
