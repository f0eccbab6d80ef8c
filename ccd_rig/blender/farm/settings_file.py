# SPDX-License-Identifier: GPL-3.0-or-later
"""`settings.json` of a bundle, which says what a job does; shots and clips have a format each."""

from __future__ import annotations

import dataclasses
import enum
import json
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ... import json_text
from ...errors import InvalidInput, RigError
from ..whole_files import read_text

T = TypeVar("T")
LONGEST = 200
"""Letters of a reason that a message shows."""


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
        raise RigError(f"{wrong} ({json_text.shown(str(error), LONGEST)})") from error


def decoded(kind: Any, value: Any, name: str = "content") -> Any:
    """A value of a type, from what JSON has for it: dataclasses are objects, tuples lists, enums names.

    Args:
        kind: a type, as annotations name it.
        value: of the JSON.
        name: of the field.

    Raises:
        TypeError, KeyError: it is none of this type; names the field.
    """
    origin, kinds = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        for each in kinds:
            try:
                return decoded(each, value, name)
            except (TypeError, KeyError):
                continue
    elif dataclasses.is_dataclass(kind) and isinstance(value, dict):
        known = get_type_hints(kind)
        return kind(**{key: decoded(known.get(key), each, key) for key, each in value.items()})  # type: ignore[operator]
    elif origin is Mapping and isinstance(value, dict):
        return {decoded(kinds[0], key, name): decoded(kinds[1], each, key) for key, each in value.items()}
    elif origin is tuple and isinstance(value, list):
        each_of = kinds[:1] * len(value) if kinds[-1] is Ellipsis else kinds
        if len(each_of) == len(value):
            return tuple(decoded(each, part, name) for each, part in zip(each_of, value, strict=True))
    elif isinstance(kind, type):
        if issubclass(kind, enum.Enum) and isinstance(value, str):
            return kind[value]
        if type(value) is kind or (kind is float and type(value) is int):
            return value
    raise TypeError(f"{name} must not be {json_text.shown(json.dumps(value))}")
