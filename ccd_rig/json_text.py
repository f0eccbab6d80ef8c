"""Strict reading of JSON from outside, and text from outside in messages.

The schema of a file is a dataclass. Its annotations say what each field holds: numbers, text, enums, tuples
for lists, mappings for objects with any names, dataclasses for objects with these fields. A field with a
default may be missing. `Annotated[T, reader]` calls `reader(value, place)`, which returns a T or raises
InvalidInput.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import math
import types
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Annotated, Any, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from .errors import InvalidInput

T = TypeVar("T")
LONGEST = 60
"""Letters of a text from outside that a message shows."""
MOST_DIGITS = 300
"""Most digits of a whole number, so that each is one as a float."""


class NotJson(ValueError):
    """A text is no JSON; the message says why in a short line."""


def parse(text: str) -> Any:
    """Read JSON strictly.

    Raises:
        NotJson: it is no JSON, nests too deep, holds a number of more digits than are read, NaN or infinity,
            a field twice in one object, or text that no file can hold.
    """
    import json

    try:
        data: Any = json.loads(
            text, object_pairs_hook=_object, parse_constant=_no_number, parse_int=_whole, parse_float=_finite
        )
    except RecursionError:
        raise NotJson("it nests too deep") from None
    except json.JSONDecodeError as error:
        raise NotJson(str(error)) from None
    try:
        # Escapes can spell halves of letters (surrogates), which no UTF-8 holds.
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise NotJson(f"text holds {error.object[error.start : error.end]!a}, which is no letter") from None
    return data


def read(text: str, kind: type[T], what: str, mark: tuple[str, int] | None = None) -> T:
    """Read a file's content as a dataclass; further fields of the outermost object are ignored.

    Args:
        what: name of the content in messages.
        mark: 'format' and 'version' that it must have.

    Raises:
        InvalidInput: names the place and what would be right there.
    """
    try:
        content = parse(text)
    except NotJson as error:
        raise InvalidInput(f"{what} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{what} must be an object with fields, not {as_json(content)}")
    if mark is not None:
        name, number = mark
        if content.get("format") != name:
            raise InvalidInput(f"{what}: 'format' must be \"{name}\", not {as_json(content.get('format'))}")
        if (version := content.get("version")) != number or version is True:
            raise InvalidInput(
                f"{what}: 'version' is {as_json(version)}, but this CCD Rig reads {number}; save it with the "
                "same version"
            )
    names = {field.name for field in dataclasses.fields(cast(Any, kind))}
    fields = {name: value for name, value in content.items() if name in names}
    result: T = _record(kind, fields, what, "")
    return result


def decoded(kind: Any, value: Any, place: str) -> Any:
    """Return a JSON value as a value of an annotated type.

    Raises:
        InvalidInput: it is not of this type; names the place.
    """
    origin, kinds = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        return kind.__metadata__[0](value, place)
    if origin in (Union, types.UnionType):
        others = [each for each in kinds if each is not types.NoneType]
        if value is None and len(others) < len(kinds):
            return None
        for each in others[1:]:
            with contextlib.suppress(InvalidInput):
                return decoded(each, value, place)
        return decoded(others[0], value, place)
    if dataclasses.is_dataclass(kind):
        return _record(kind, _of_type(value, dict, "an object with fields", place), place, f"{place}.")
    if origin in (dict, Mapping):
        names = _of_type(value, dict, "an object", place)
        return {name: decoded(kinds[1], each, f"{place}['{shown(name)}']") for name, each in names.items()}
    if origin is tuple:
        listed = _of_type(value, list, "a list", place)
        each_of = kinds[:1] * len(listed) if kinds[-1] is Ellipsis else kinds
        if len(each_of) != len(listed):
            raise InvalidInput(f"{place} must be a list of {len(each_of)}, not {as_json(value)}")
        return tuple(
            decoded(each, part, f"{place}[{k}]")
            for k, (each, part) in enumerate(zip(each_of, listed, strict=True))
        )
    if issubclass(kind, enum.StrEnum):
        try:
            return kind(value)
        except ValueError:
            return kind(choice(value, [*map(str, kind)], place))
    if issubclass(kind, enum.Enum):
        return kind[choice(value, kind.__members__, place)]
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}[kind]
    return value if kind is float and type(value) is int else _of_type(value, kind, words, place)


def encoded(value: Any) -> Any:
    """Return a value as `decoded` reads it: enums by name, dataclasses as objects, tuples as lists."""
    if dataclasses.is_dataclass(value):
        return {field.name: encoded(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: encoded(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [encoded(each) for each in value]
    return value.name if isinstance(value, enum.Enum) and not isinstance(value, str) else value


def choice(value: Any, names: Collection[str], place: str) -> str:
    """Return a value that is one of these texts; raises InvalidInput."""
    if not isinstance(value, str) or value not in names:
        raise InvalidInput(f"{place} must be one of {', '.join(names)}, not {as_json(value)}")
    return value


def within(value: float, least: float, most: float, place: str, slack: float = 0.0) -> float:
    """Return a number of this range; raises InvalidInput."""
    if not least - slack <= value <= most + slack:
        raise InvalidInput(f"{place} must be {least:.7g} to {most:.7g}, not {as_json(value)}")
    return value


def unknown(name: str, place: str) -> InvalidInput:
    """Error of a field that nothing reads."""
    name = shown(name)
    return InvalidInput(f"{place}: '{name}' is not known to this version: update CCD Rig, or remove it")


def as_json(value: object) -> str:
    """A JSON value for a message."""
    import json

    return shown(json.dumps(value, default=str))


def shown(text: str, longest: int = LONGEST) -> str:
    """A text for a message: the beginning of a long one."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def printable(text: str) -> str:
    """A text as one line: characters without a glyph (line breaks, escapes) as numbers, such as \\x1b."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "surrogatepass").decode()
        for letter in text
    )


def _of_type(value: Any, kind: type, words: str, place: str) -> Any:
    if type(value) is not kind:
        raise InvalidInput(f"{place} must be {words}, not {as_json(value)}")
    return value


def _record(kind: Any, content: Mapping[str, Any], where: str, inside: str) -> Any:
    """Return an object of fields as a dataclass; `inside` begins the places of its fields."""
    hints = _hints(kind)
    for name in content:
        if name not in hints:
            raise unknown(name, where)
    for field in dataclasses.fields(kind):
        has_default = not (field.default is field.default_factory is dataclasses.MISSING)
        if not has_default and field.name not in content:
            raise InvalidInput(f"{where}: the field '{field.name}' is missing")
    return kind(**{name: decoded(hints[name], value, inside + name) for name, value in content.items()})


@lru_cache(maxsize=64)
def _hints(kind: Any) -> dict[str, Any]:
    """Types of a dataclass's fields, with their readers."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    import json

    content: dict[str, object] = {}
    for name, value in pairs:
        if name in content:
            raise NotJson(f"the field {shown(json.dumps(name))} stands twice in one object")
        content[name] = value
    return content


def _whole(word: str) -> int:
    if len(word) > MOST_DIGITS:
        raise NotJson("a number has too many digits")
    return int(word)


def _finite(word: str) -> float:
    if math.isinf(number := float(word)):
        raise NotJson(f"{shown(word)} is too large a number")
    return number


def _no_number(word: str) -> NoReturn:
    raise NotJson(f"{word} is no number")
