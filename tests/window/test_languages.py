"""A visit to a real Blender window: the interface in each of its languages, photographed."""

from __future__ import annotations

import pytest
from visits import colours, photographs, saw

SCRIPT = "drive_languages.py"
LANGUAGES = ("de_DE", "fr_FR", "es", "ja_JP", "zh_HANS")
PICTURES = ("constraints", "error", "pose_menu", "limits_menu", "bone", "preferences")


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_tooltips_and_messages_are_in_the_language(visit, language):
    seen, english = dict(saw(visit, language)), dict(saw(visit, "en_US"))
    assert seen.pop("locale") == language
    english.pop("locale")
    assert english["button"] == "Bake to Action"
    assert english["message"] == "Constraint 'Lost' has no target: choose the object to reach"
    for name, words in seen.items():
        assert words != english[name], name
    assert "'Lost'" in seen["message"]
    assert "Bone7" in seen["report"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_pictures_show_something(visit, language):
    for name in PICTURES:
        assert colours(photographs(SCRIPT) / f"{language}_{name}.png") > 100


def test_nothing_is_left_of_a_disabled_extension(visit):
    assert saw(visit, "disabled")["button"] == "Bake to Action"
