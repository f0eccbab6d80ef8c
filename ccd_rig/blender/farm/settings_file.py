# SPDX-License-Identifier: GPL-3.0-or-later
"""`settings.json` of a bundle, which says what a job does; shots and clips have a format each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ... import json_text
from ...errors import InvalidInput, RigError
from ..whole_files import read_text

T = TypeVar("T")


def read_settings(path: Path, kind: tuple[str, int], made_of: Callable[[dict[str, Any]], T]) -> T:
    """What a settings file says.

    Args:
        path: of the file.
        kind: format and version that it must have.
        made_of: what its content comes to; may raise what a wrong content leads to.

    Raises:
        RigError: the file cannot be read, or is none of this version's.
    """
    wrong = f"{path} is no settings file of this version of CCD Rig: write the bundle anew"
    try:
        content = json_text.parse(read_text(path))
        if (content["format"], content["version"]) != kind:
            raise RigError(wrong)
        return made_of(content)
    except (ValueError, KeyError, TypeError, AttributeError, InvalidInput) as error:
        raise RigError(f"{wrong} ({error})") from error
