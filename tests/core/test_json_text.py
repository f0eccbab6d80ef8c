"""JSON from outside: whatever is wrong with it is told in a short line."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import pytest

from ccd_rig.errors import InvalidInput
from ccd_rig.json_text import LONGEST, NotJson, decoded, parse, printable, read, shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[" * 100_000, "too deep"),
        ('{"a":' * 100_000, "too deep"),
        ("[" + "1" * 5_000 + "]", "too many digits"),
        ("[NaN]", "NaN is no number"),
        ("[-Infinity]", "-Infinity is no number"),
        ("[1e400]", "1e400 is too large a number"),
        ("[-" + "1" * 400 + "]", "too many digits"),
        ("[" + "9" * 100_000 + ".0]", "9... is too large a number"),
        ('{"a": 1, "b": {"c": 1, "c": 1}}', 'the field "c" stands twice'),
        ('{"' + "n" * 100_000 + '": 1, "' + "n" * 100_000 + '": 2}', "stands twice"),
        ('["\\udc80"]', "no letter"),
        ('{"\\ud800": 1}', "no letter"),
    ],
)
def test_what_is_no_json(text: str, words: str) -> None:
    with pytest.raises(NotJson, match=words) as told:
        parse(text)
    assert len(str(told.value)) < 200
    assert "\n" not in str(told.value)


def test_what_is_json() -> None:
    content = {"a": [1, 2.5, -3e30, True, None, {"a": "ü𝄞\t"}], "b": ""}
    assert parse(json.dumps(content)) == content
    assert parse(json.dumps(content, ensure_ascii=False)) == content


def test_the_beginning_of_a_long_text_is_shown() -> None:
    assert shown("n" * LONGEST) == "n" * LONGEST
    assert shown("n" * 100_000) == "n" * LONGEST + "..."


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Hand.L ü 手 𝄞", "Hand.L ü 手 𝄞"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x1b[31mred\x9b2J", r"\x1b[31mred\x9b2J"),
        ("one\u2028two\u202ethree", r"one\u2028two\u202ethree"),
        ("\udcff", r"\udcff"),
    ],
)
def test_text_without_glyphs_is_shown_by_number(text: str, line: str) -> None:
    assert printable(text) == line


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Size(enum.StrEnum):
    SMALL = "small"
    LARGE = "large"


def even(value: object, place: str) -> int:
    number: int = decoded(int, value, place)
    if number % 2:
        raise InvalidInput(f"{place} must be even")
    return number


@dataclass(frozen=True)
class Leaf:
    width: float
    pair: tuple[int, int] | None = None
    count: Annotated[int, even] = 0


@dataclass(frozen=True)
class Tree:
    color: Color
    size: Size
    leaves: tuple[Leaf, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    weight: float | tuple[float, float] = 1.0


def tree(**fields: object) -> Tree:
    content = {"format": "trees", "version": 3, "color": "RED", "size": "small", "note": 7, **fields}
    return read(json.dumps(content), Tree, "the tree", ("trees", 3))


def test_a_schema_is_read() -> None:
    leaves = [{"width": 2}, {"width": 0.5, "pair": [1, 2], "count": 4}, {"width": 1.0, "pair": None}]
    read_tree = tree(color="BLUE", size="large", leaves=leaves, names={"a": "b"}, weight=[0.5, 1])
    expected = (Leaf(2), Leaf(0.5, (1, 2), 4), Leaf(1.0))
    assert read_tree == Tree(Color.BLUE, Size.LARGE, expected, {"a": "b"}, (0.5, 1))
    assert tree() == Tree(Color.RED, Size.SMALL)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 4}, "the tree: 'version' is 4, but this CCD Rig reads 3; save it with the same version"),
        ({"format": None}, "the tree: 'format' must be \"trees\", not null"),
        ({"color": "GREEN"}, 'color must be one of RED, BLUE, not "GREEN"'),
        ({"color": ["RED"]}, 'color must be one of RED, BLUE, not ["RED"]'),
        ({"size": {}}, "size must be one of small, large, not {}"),
        ({"leaves": {}}, "leaves must be a list, not {}"),
        ({"leaves": [3]}, "leaves[0] must be an object with fields, not 3"),
        ({"leaves": [{}]}, "leaves[0]: the field 'width' is missing"),
        ({"leaves": [{"width": True}]}, "leaves[0].width must be a number, not true"),
        ({"leaves": [{"width": 1, "pair": [1]}]}, "leaves[0].pair must be a list of 2, not [1]"),
        ({"leaves": [{"width": 1, "pair": [1, 1.5]}]}, "leaves[0].pair[1] must be a whole number, not 1.5"),
        ({"leaves": [{"width": 1}, {"width": 1, "count": 3}]}, "leaves[1].count must be even"),
        (
            {"leaves": [{"width": 1, "hue": 1}]},
            "leaves[0]: 'hue' is not known to this version: update CCD Rig, or remove it",
        ),
        ({"names": {"a": 1}}, "names['a'] must be text, not 1"),
        ({"weight": "x"}, 'weight must be a number, not "x"'),
    ],
)
def test_a_damaged_file_has_one_message_with_the_place(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as told:
        tree(**fields)
    assert str(told.value) == message


@pytest.mark.parametrize(
    ("text", "message"), [("[", "the tree is not JSON: "), ("[]", "the tree must be an")]
)
def test_a_text_that_is_no_object(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read(text, Tree, "the tree")
