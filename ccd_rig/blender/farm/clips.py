# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that puts clips onto an armature: they and how it is done, as `settings.json` of a bundle holds them.

Each clip is one task: where feet are down and how far the figure goes hang on the whole of it.
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
from ..retarget.retarget import RetargetChoice
from ..whole_files import read_text
from .bundle import Job, Step, parameter
from .job import LONGEST, decoded, read_settings

FORMAT, VERSION = "ccd_rig.farm_clips", 1


@dataclass(frozen=True)
class Clips:
    """What a job puts onto an armature.

    Attributes:
        files: names of the clips, without their folders; unique in a job but for their endings.
        target: name of the .blend file with the armature, without its folder.
        armature: name of the armature object that gets the motion.
        source_armature: name of that in each clip; None for the only one.
        choice: how it is done.
    """

    files: tuple[str, ...]
    target: str
    armature: str
    source_armature: str | None
    choice: RetargetChoice

    def content(self, file: str) -> dict[str, Any]:
        """What the result of one clip hangs on, as JSON takes it."""
        return {"file": file, **self._shared()}

    def to_json(self) -> str:
        """The text of `settings.json`."""
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
    clips: Clips, paths: Sequence[Path], target: Path, assets: Sequence[Path], how: tuple[str, bool]
) -> Job:
    """The job of a bundle.

    Args:
        clips: what is done.
        paths: of the clips, absolute.
        target: the .blend file, absolute.
        assets: of what these read beside, absolute.
        how: `program` and `is_module` of `Job`.
    """
    words = (parameter("Clip"), parameter("Target"))
    step = Step("Retarget", words, {"Clip": list(paths), "Target": [target] * len(paths)})
    names = ", ".join(path.stem for path in paths)
    description = f"Puts clips onto '{clips.armature}' of {clips.target}: {names}"
    return Job("CCD Rig retarget", description, clips.to_json(), paths, (target, *assets), (step,), *how)


def is_one(path: Path) -> bool:
    """Whether a settings file is that of a job of clips.

    Raises:
        RigError: the file cannot be read.
    """
    try:
        content = json_text.parse(read_text(path))
    except json_text.NotJson:
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT


def read(path: Path) -> Clips:
    """The clips of a job.

    Raises:
        RigError: the file cannot be read, or is none of this version's.
    """
    return read_settings(path, (FORMAT, VERSION), _clips)


def _clips(content: Mapping[str, Any]) -> Clips:
    read: Clips = decoded(Clips, {each.name: content[each.name] for each in fields(Clips)})
    return read
