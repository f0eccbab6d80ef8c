# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a job that retargets clips to an armature, as `settings.json` of a bundle.

A clip is one task: its contacts and the figure's travel depend on all of its frames.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ... import json_text
from ...errors import RigError
from ...json_text import shown
from ...motion.retargeting.settings import SPACES
from ..atomic_write import read_text
from ..retarget.retarget import RetargetChoice
from .bundle import Job, Step, parameter
from .shots import LONGEST, decoded, read_settings

FORMAT, VERSION = "ccd_rig.farm_clips", 1


@dataclass(frozen=True)
class Clips:
    """Clips and the armature that they are retargeted to.

    Attributes:
        files: names of the clips, without folders; their stems are unique in a job.
        target: name of the .blend file with the armature, without its folder.
        armature: name of the armature object that gets the motion.
        source_armature: name of the armature in each clip; None for the only one.
        choice: settings of the retargeting.
    """

    files: tuple[str, ...]
    target: str
    armature: str
    source_armature: str | None
    choice: RetargetChoice

    def content(self, file: str) -> dict[str, Any]:
        """Settings that the result of one clip depends on, as JSON values."""
        return {"file": file, **self._shared()}

    def to_json(self) -> str:
        """Text of `settings.json`."""
        content = {"format": FORMAT, "version": VERSION, "files": list(self.files), **self._shared()}
        return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def require(self, clip: Path) -> None:
        """Raise RigError if the job has no such clip."""
        if clip.name not in self.files:
            raise RigError(f"{clip.name} is no clip of this job: {shown(', '.join(self.files), LONGEST)}")

    def _shared(self) -> dict[str, Any]:
        choice = asdict(self.choice)
        choice["reference"] = self.choice.reference.name
        choice["settings"].update((name, getattr(self.choice.settings, name).name) for name in SPACES)
        return {
            "target": self.target,
            "armature": self.armature,
            "source_armature": self.source_armature,
            "choice": choice,
        }


def bundle_job(
    clips: Clips,
    paths: Sequence[Path],
    target: Path,
    assets: Sequence[Path],
    program: str,
    is_module: bool,
) -> Job:
    """Return the job that retargets clips.

    Args:
        clips: with the settings of the retargeting.
        paths: absolute, of the clips.
        target: absolute, of the .blend file with the armature.
        assets: absolute, of further files that clips and target read.
        program, is_module: as in `Job`.
    """
    words = (parameter("Clip"), parameter("Target"))
    step = Step("Retarget", words, {"Clip": list(paths), "Target": [target] * len(paths)})
    names = ", ".join(path.stem for path in paths)
    description = f"Puts clips onto '{clips.armature}' of {clips.target}: {names}"
    return Job(
        "CCD Rig retarget",
        description,
        clips.to_json(),
        paths,
        (target, *assets),
        (step,),
        program,
        is_module,
    )


def is_clips_job(path: Path) -> bool:
    """Whether a settings file is of a job that retargets clips.

    Raises:
        RigError: the file cannot be read.
    """
    try:
        content = json_text.parse(read_text(path))
    except json_text.NotJson:
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT


def read(path: Path) -> Clips:
    """Read the clips of a job.

    Raises:
        RigError: the file cannot be read, or another version has written it.
    """

    def clips(content: Mapping[str, Any]) -> Clips:
        values: Clips = decoded(Clips, {field.name: content[field.name] for field in fields(Clips)})
        return values

    return read_settings(path, (FORMAT, VERSION), clips)
