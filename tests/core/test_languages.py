"""Catalogues of the interface's languages: nothing missing, nothing left over; messages find their texts."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from ccd_rig.blender.languages.catalogue import HOLE, Catalogue, broken, holes, read
from devtools import languages

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "ccd_rig/blender/languages"
LANGUAGES = ("de", "es", "fr", "ja", "zh_HANS")
EVERYWHERE = {"CCD Rig", "CCD: {*label}", "EulerBox {name}", "{*value} mm"}
SAME = {  # texts that a language has in common with English
    "de": {
        *("Animation", "Balance", "CCD Live", "Ellipse", "Finger", "Live", "Name", "Position", "Radius"),
        *("Rotation", "Max", "Min", "X Max", "X Min", "X max", "X min", "Z Max", "Z Min", "Z max", "Z min"),
        *("Pose", "Stand", "{name} Max", "{name} Min"),
    },
    "es": {"Manual", "Pose", "Roles", "pelvis"},
    "fr": {
        *(
            "Action",
            "Angle",
            "Animation",
            "Armature",
            "Axes",
            "Direction",
            "Distance",
            "Ellipse",
            "Frames",
            "Influence",
            "Menu",
        ),
        *("Collection", "Cycle", "Cycles"),
        *("Percentile", "Point", "Points", "Pose", "Position", "Rotation", "Rotations", "angle", "rotation"),
        *("Max", "Min", "X max", "X min", "Z max", "Z min", "Armature '{armature_object}'"),
        *("action '{action}'", "frame {frame_start}", "{*count} frame", "{*count} frames"),
        *("Distance", "Extension", "Frame", "Options", "Source", "interpolation"),
        *("{value} contact", "{value} contacts"),
    },
    "ja": set(),
    "zh_HANS": set(),
}
GERMAN = Catalogue(
    {
        "bone '{name}' has zero scale": "Knochen '{name}' hat Gr\u00f6\u00dfe 0",
        "frame {frame}: {*error}": "Bild {frame}: {*error}",
        "{*reached} of {*solved} frames reached": "{*reached} von {*solved} Bildern erreicht",
        "{bone} jumps {*wide}": "{bone} springt um {*wide}",
        "Constraint '{constraint}' turns bone '{name}'": "Knochen '{name}' wird von '{constraint}' gedreht",
        "human": "Mensch",
        "it is a {*kind}": "es ist ein {*kind}",
        "{*first} and {*last}": "{*first} und {*last}",
        "bones {*names} are left": "Knochen {*names} bleiben",
        'must be {{"object": name}}, not {value}': 'muss {{"object": name}} sein, nicht {value}',
        "nothing was changed": "nichts wurde ge\u00e4ndert",
    }
)


@cache
def english() -> dict[str, str]:
    return languages.texts(ROOT)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_of_the_sources_has_its_words(language):
    own = read(FOLDER / f"{language}.json")
    missing = {text: place for text, place in english().items() if text not in own}
    assert not missing, "python3 dev.py languages lists them"


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_are_sound(language):
    for text, words in read(FOLDER / f"{language}.json").items():
        assert words.strip() or not text.strip(), text
        assert set(HOLE.findall(words)) == set(HOLE.findall(text)), (text, words)
        is_words = re.search("[A-Za-z]{2}", HOLE.sub("", text))
        assert words != text or not is_words or text in EVERYWHERE | SAME[language], text


@pytest.mark.parametrize("language", LANGUAGES)
def test_files_are_sorted_and_end_with_a_line_feed(language):
    text = (FOLDER / f"{language}.json").read_text(encoding="utf-8")
    own = json.loads(text)
    assert list(own) == sorted(own)
    assert text == json.dumps(own, ensure_ascii=False, indent=1) + "\n"


def test_all_catalogues_have_the_same_texts():
    first, *others = (set(read(FOLDER / f"{language}.json")) for language in LANGUAGES)
    assert all(other == first for other in others)
    assert sorted(file.stem for file in FOLDER.glob("*.json")) == sorted(LANGUAGES)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("bone 'x' has zero scale", "Knochen 'x' hat Gr\u00f6\u00dfe 0"),
        ("Bone 'x' has zero scale", "Knochen 'x' hat Gr\u00f6\u00dfe 0"),
        ("Frame 3: bone 'human' has zero scale", "Bild 3: Knochen 'human' hat Gr\u00f6\u00dfe 0"),
        (
            "3 of 4 frames reached; Arm.L jumps 30\u00b0",
            "3 von 4 Bildern erreicht; Arm.L springt um 30\u00b0",
        ),
        ("Constraint 'a turns b' turns bone 'c'", "Knochen 'c' wird von 'a turns b' gedreht"),
        ("it is a human", "es ist ein Mensch"),
        ("bones 'a', 'human' are left", "Knochen 'a', 'human' bleiben"),
        ("farm/a.json: Nothing was changed", "farm/a.json: Nichts wurde ge\u00e4ndert"),
        ('must be {"object": name}, not 3', 'muss {"object": name} sein, nicht 3'),
        ("a text that nobody knows", "a text that nobody knows"),
        ("", ""),
    ],
)
def test_a_message_finds_its_words(message, words):
    assert GERMAN.translated(message) == words


REPORTS = (  # real ones; no word of them may be left but names
    "0 of 20 frames reached; worst 0.2 m / below 0.1 degrees at frame 1 (Again); planted bones slide 0.2 m",
    "118 of 120 solved frames reached; worst below 0.0001 m at frame 57 (Hand, between solved frames)",
    "weighted fit of 3 frames: RMS 0.0012 m, at most 0.0020 m at frame 4; 49 of 726 keys kept",
    "1 of 1 frame reached; worst 3.0000 m at frame 1 (Far); 'hips' moved at 12 frames so that legs reach "
    "(at most 0.1000 m, frame 3); smoothed at 40-58 (Tail) and 2 more",
    "11 of 11 frames reached; worst below 0.0001 m at frame 30 (Hand); 'x' turns 45 degrees at frame 31; "
    "action 'x'",
    "loop of frames 1 to 24 (25 is 1 again) does not close: 'x' ends 3 degrees off; 'y' and 2 more posed "
    "without keys, baked from rest; switched to FK: Arm",
    "1-47 loop does not close: Arm 147\u00b0 off",
    "1-9 Hand 0.48 m out of reach, turned 12\u00b0 off",
    "57 Hand jumps 34\u00b0 (and 2 more), as its target does",
    "112-120 Hand held by its limit",
    "3 Hand 0.5 m below the ground",
    "11-20 Hand taken 0.47 m off: it is not baked too",
    "2-40 Hand 0.5 m / 12\u00b0 off between solved frames",
    "Constraint 'Hand' does not play as baked (0.1000 m off at frame 3): something else moves bone 'x'; "
    "constraint 'c' of bone 'b' acts on bone 'm': mute it",
    "Plays as baked: at most 0.0003 m at frame 13 (Hand) and 2 degrees at frame 3 (Hand)",
    "Bake to Action, frame 30: 30 of 120 solved, about 4 s left. Esc cancels, and nothing is changed",
    "Walk Along, frame 30: 30 of 120 checked. Esc cancels, and nothing is changed",
    "Walk Along cancelled: nothing was changed",
    "Nothing to follow for: left shoulder, right shoulder",
    "1 contact: feet drift 0.0 mm at most and slide 0 mm/s, the source's 2 mm/s",
    "Off the source's, in parts of the limb: left leg: 0.0 %, right leg: 0.1 %, left arm: 0.2 %",
    "Bird: hips, head, 2 feet, 2 wings, tail",
    "Arm human: head, 2 hands, 1 foot, 4 poles",
    "Many-legged animal: hips, 6 feet, tail, 4 wings",
    "Not recognised: hands, hips",
    "1st left leg",
    "12th right finger",
    "2nd head",
)


@pytest.mark.parametrize("message", REPORTS)
@pytest.mark.parametrize("language", ["ja", "zh_HANS"])
def test_reports_are_wholly_in_the_language(message, language):
    words = Catalogue(read(FOLDER / f"{language}.json")).translated(message)
    left = set(re.findall(r"[A-Za-z]{2,}", re.sub(r"'[^']*'", "", words)))
    assert left <= {"Again", "Hand", "Far", "Tail", "Arm", "FK", "RMS", "Esc", "mm"}, words


def test_names_stay():
    """A bone may be called like any word of a message."""
    assert GERMAN.translated("human jumps 3\u00b0") == "human springt um 3\u00b0"
    assert GERMAN.translated("human") == "Mensch"  # a label


def test_holes_are_read():
    assert list(holes("{a} and {*b}, {{c}}")) == ["a", "b"]


def test_lines_break_at_spaces_and_between_signs():
    assert broken("one two three", lambda text: len(text) <= 7) == ["one two", "three"]
    assert broken("abcdefgh", lambda text: len(text) <= 3) == ["abc", "def", "gh"]
    assert broken("\u7ea6\u675f\u7684\u9aa8\u9abc\u3002", lambda text: len(text) <= 3) == [
        "\u7ea6\u675f\u7684",
        "\u9aa8\u9abc\u3002",
    ]
    assert broken("\u9aa8 Bone1\u9aa8", lambda text: len(text) <= 7) == ["\u9aa8 Bone1", "\u9aa8"]
    assert broken("", lambda text: True) == []


def test_messages_are_read_from_a_source(tmp_path):
    """Parts are put in where they are used, choices give a text each, names are no words."""
    (tmp_path / "ccd_rig/blender/limit_sources").mkdir(parents=True)
    (tmp_path / "ccd_rig/blender/limit_sources/joint_ranges.py").write_text("")
    (tmp_path / "ccd_rig/blender/x.py").write_text(
        "def f(row, count, why):\n"
        "    where = f\"Row '{row.name}'\"\n"
        "    message = f\"{where} has {count} key{'' if count == 1 else 's'}\"\n"
        "    raise ValueError(f'{message}: {why}')\n"
    )
    assert set(languages.texts(tmp_path)) - set(languages.MORE) == {
        "Row '{row}' has {*count} key: {*why}",
        "Row '{row}' has {*count} keys: {*why}",
    }
