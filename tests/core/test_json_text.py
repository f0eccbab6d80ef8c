"""JSON from outside: whatever is wrong with it is told in a short line."""

from __future__ import annotations

import json

import pytest

from ccd_rig.json_text import LONGEST, NotJson, parse, printable, shown


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
