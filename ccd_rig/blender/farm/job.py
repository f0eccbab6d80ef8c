# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job bakes: its shots with the settings of their bakes, as `settings.json` of a bundle holds them."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...errors import RigError
from ...json_text import shown
from ..bake.settings import BakeSettings
from .settings_file import LONGEST, decoded, read_settings
from .spans import Span, spans

FORMAT, VERSION = "ccd_rig.farm_settings", 1


@dataclass(frozen=True)
class Shot:
    """One .blend file and what is baked in it.

    Attributes:
        file: name of the file, without its folder; unique in a job, in capitals or not.
        armatures: {name of the armature object: its settings}; all of them have one range.
        chunk: most frames of a chunk; 0: the shot is baked whole.
    """

    file: str
    armatures: Mapping[str, BakeSettings]
    chunk: int = 0

    @property
    def name(self) -> str:
        """Of the shot, and of what is written for it."""
        return Path(self.file).stem

    @property
    def settings(self) -> BakeSettings:
        """Those of the first armature."""
        return next(iter(self.armatures.values()))

    def spans(self) -> list[Span]:
        """Its chunks; a shot that is baked whole has one."""
        settings = self.settings
        return spans(settings.frame_start, settings.frame_end, self.chunk)

    @property
    def is_split(self) -> bool:
        """Whether it has several chunks, which have to be joined."""
        return len(self.spans()) > 1

    def content(self) -> dict[str, Any]:
        """As JSON takes it."""
        armatures = {name: _settings_content(each) for name, each in self.armatures.items()}
        return {"file": self.file, "chunk": self.chunk, "armatures": armatures}


def to_json(shots: Sequence[Shot]) -> str:
    """The text of `settings.json`."""
    content = {"format": FORMAT, "version": VERSION, "shots": [shot.content() for shot in shots]}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read(path: Path) -> list[Shot]:
    """The shots of a job.

    Raises:
        RigError: the file cannot be read, or is none of this version's.
    """
    return read_settings(path, (FORMAT, VERSION), lambda content: list(map(_shot, content["shots"])))


def _shot(content: Mapping[str, Any]) -> Shot:
    for settings in content["armatures"].values():
        settings.pop("order", None)  # of earlier versions; frames are solved each for itself
    read: Shot = decoded(Shot, content)
    return read


def shot_of(shots: Sequence[Shot], path: Path) -> Shot:
    """The shot of a file, wherever a farm has put it.

    Raises:
        RigError: the job has none.
    """
    for shot in shots:
        if shot.file == path.name:
            return shot
    raise RigError(
        f"{path.name} is no shot of this job: {shown(', '.join(shot.file for shot in shots), LONGEST)}"
    )


def _settings_content(settings: BakeSettings) -> dict[str, Any]:
    plain = asdict(settings)
    return {name: value.name if isinstance(value, enum.Enum) else value for name, value in plain.items()}
