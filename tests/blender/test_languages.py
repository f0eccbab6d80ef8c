"""The interface in its languages, on the installed extension: what is registered, and real messages.

The wheels have no locales, so the language is set where the extension asks Blender for it; a visit to a
window does the same by Blender's preferences.
"""

from __future__ import annotations

import re
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import bpy
import pytest
import rigs
from bad_input_cases import CASES
from installed import PACKAGE, ROOT
from sound_rig import hand, sound_rig, spoil

LANGUAGES = ("de_DE", "es", "fr_FR", "ja_JP", "zh_HANS")
PROPER = {
    "Blender",
    "NOISE",
    "LINEAR",
    "MULTIPLY",
    "COMBINE",
    "Hand",
}  # names of programs and of Blender's values
SECONDS = 0.5  # to register: a guard against reading anything twice, measured it takes a tenth


@pytest.fixture
def rig(ext):
    return sound_rig(ext)


@pytest.fixture
def translation(ext):
    return ext.module("ccd_rig.blender.languages.translation")


@pytest.fixture(params=LANGUAGES)
def language(request, translation):
    """Speak a language wherever Blender has none of its own."""
    translation._catalogues[bpy.app.translations.locale] = translation._catalogues[request.param]
    yield request.param
    del translation._catalogues[bpy.app.translations.locale]


def unknown(words: str, message: str) -> list[str]:
    """English words of a message that stand in its translation too, outside names in quotes."""
    plain = re.compile(r"(?<![\w./'])[A-Za-z]{4,}(?![\w.(\[/])")
    names = " ".join(re.findall(r"'([^']*)'", message))
    before = set(plain.findall(re.sub(r"'[^']*'", "", message)))
    after = set(plain.findall(re.sub(r"'[^']*'", "", words)))
    return sorted(word for word in before & after if word not in names and word not in PROPER)


def test_everything_registered_has_its_words(ext, translation):
    sys.path.insert(0, str(ROOT))
    from devtools import languages

    texts = languages.registered(PACKAGE)
    assert len(texts) > 400
    for locale in LANGUAGES:
        assert texts - set(translation._catalogues[locale].texts) == set(), locale


def test_nothing_is_left_over(ext, translation):
    sys.path.insert(0, str(ROOT))
    from devtools import languages

    texts = languages.registered(PACKAGE) | set(languages.texts(Path(ext.core.__file__).parents[1]))
    for locale in LANGUAGES:
        assert set(translation._catalogues[locale].texts) - texts == set(), "python3 dev.py languages"


def test_the_language_is_looked_at_in_each_file(translation):
    """Blender tells nobody any more that the language changes, once a file was opened."""
    present = list(translation._locale)
    translation._locale[:] = ["xx"]  # of the file before
    bpy.ops.wm.read_homefile(use_empty=True)
    assert translation._locale == present


@pytest.mark.parametrize(
    "words", ["left hand", "spine 2", "left wing 3", "1st left leg", "3rd right leg, bone 2", "2nd head", ""]
)
def test_roles_are_listed_and_typed_in_the_language(ext, language, words):
    """The dialog listed English roles beside labels in the language."""
    bpy.context.preferences.view.use_translate_interface = True
    module = ext.module("ccd_rig.blender.figures.role_words")
    shown = module.in_language(words)
    assert not words or shown != words
    assert module.in_english(shown) == words
    assert module.in_english(words) == words, "English is taken as well"
    assert module.in_english("xyz") == "xyz"
    assert module.in_english("xyz 2") == "xyz 2"


def test_a_role_typed_in_the_language_is_set_up(ext, language):
    bpy.context.preferences.view.use_translate_interface = True
    rig = rigs.armature(rigs.biped())
    words = ext.module("ccd_rig.blender.figures.role_words").in_language("left hand")
    bpy.ops.ccd_rig.figure_set_up(roles=[{"name": "toe.L", "role": words}, {"name": "foot.L", "role": ""}])
    assert all(row.tip != "foot.L" for row in rig.ccd_rig.constraints)


HOMONYMS = {"Feet", "Head", "Tail", "Extension", "World", "Map", "Cycle", "Twist"}
"""Labels that mean another thing in Blender's catalogues: units, ends of bones, file names, a link of UVs."""


def test_words_with_another_meaning_in_blender_are_ours(ext, translation):
    """Blender's own translations come first: in Japanese and Chinese, Set Up Figure had the unit for feet."""
    wrong = []
    pending = [bpy.types.Operator, bpy.types.PropertyGroup]
    while pending:
        each = pending.pop()
        pending += each.__subclasses__()
        if not each.__module__.startswith(PACKAGE) or not hasattr(each, "bl_rna"):
            continue
        rna = each.bl_rna
        if issubclass(each, bpy.types.Operator):
            rna = getattr(bpy.ops.ccd_rig, each.bl_idname.partition(".")[2]).get_rna_type()
        for prop in rna.properties:
            shown = {prop.name, *(item.name for item in getattr(prop, "enum_items", ()))}
            if shown & HOMONYMS and prop.translation_context != translation.CONTEXT:
                wrong.append(f"{each.__name__}.{prop.identifier}")
    assert wrong == []


def test_english_without_a_language(translation):
    assert translation.translated("Choose a pose in the list") == "Choose a pose in the list"


def test_the_preferences_are_respected(language, translation):
    view = bpy.context.preferences.view
    english = "Choose a pose in the list"
    for what in (translation.INTERFACE, translation.TOOLTIPS, translation.REPORTS):
        setattr(view, f"use_translate_{what}", True)
        assert translation.translated(english, what) != english
        setattr(view, f"use_translate_{what}", False)
        assert translation.translated(english, what) == english
        setattr(view, f"use_translate_{what}", True)


def test_refusals_are_in_the_language(rig, language):
    for word in ("solve", "bake"):
        hand(rig).target = None
        with pytest.raises(RuntimeError) as caught:
            getattr(bpy.ops.ccd_rig, word)()
        assert "has no target" not in str(caught.value)
        assert "'Hand'" in str(caught.value)


def test_a_report_is_in_the_language(rig, language):
    bpy.ops.ccd_rig.bake()
    assert " reached; worst " in rig.ccd_rig.report.words  # the file keeps English
    translation_of = sys.modules[f"{PACKAGE}.ccd_rig.blender.languages.translation"].translated
    words = translation_of(rig.ccd_rig.report.words)
    french = words.replace("frames atteintes", "").replace("lissé à frames", "")
    assert not re.search(r"\b(reached|worst|at frame|frames)\b", french)


@pytest.mark.parametrize("case", [case for case in CASES if set(case.ways) & {"solve", "bake"}])
def test_every_refusal_is_found(rig, tmp_path, translation, case):
    """Each refusal of test_bad_input; in Japanese and Chinese, where an English word stands out.

    All languages have the same texts, so what is found in these is found in all.
    """
    spoil(case.spoil, rig, tmp_path)
    rigs.update()
    active = bpy.context.temp_override(object=rig) if case.outside else nullcontext()
    operator = bpy.ops.ccd_rig.bake if "bake" in case.ways else bpy.ops.ccd_rig.solve
    with active, pytest.raises(RuntimeError) as caught:
        operator(**case.options)
    for line in str(caught.value).strip().splitlines():
        message = re.sub(r"^(Error: |Warning: |Operator bpy\S+ )+", "", line)
        for locale in ("ja_JP", "zh_HANS"):
            words = translation._catalogues[locale].translated(message)
            assert unknown(words, message) == [], words


BAKED = (
    "0 of 30 frames reached, targets give way in 25 by up to 0.1705 m; worst 0.5322 m at frame 2 "
    "(Hand); "
    "the body helps at frames 1 to 25 (Hand): 'spine' turns by up to 102 degrees, 'hips' is shifted by up to "
    "0.0200 m, Head, Foot up to 0.1705 m off for it; action 'Rig CCD'",
    "30 of 30 frames reached; worst below 0.0001 m / below 0.1 degrees at frame 4 (Hand); action 'Rig CCD'",
    "the body helps at frame 3 (Hand): 'spine' turns by up to 12 degrees, Head up to 0.1705 m off for it",
    "29 of 30 frames reached; worst 0.5322 m at frame 2 (Hand); 'hips' turns 72 degrees at frame 15",
    "30 of 30 frames reached; worst below 0.0001 m at frame 2 (Hand); 'hips' moves 0.0200 m at frame 15",
    "Hand: smoothed at frames 2 to 12, up to 117 degrees off the pose of each frame alone, which Solve has "
    "there",
)


@pytest.mark.parametrize("message", BAKED)
def test_what_a_bake_comes_to_is_told_in_whole_sentences(translation, message):
    """Values are beside the words that they belong to, and no clause stays English."""
    for locale in ("ja_JP", "zh_HANS"):
        words = translation._catalogues[locale].translated(message)
        assert [word for word in unknown(words, message) if word not in ("Head", "Foot")] == [], words
    words = translation._catalogues["de_DE"].translated(message)
    assert not re.search(r"\b(of|reached|worst|turns|moves|shifted|off|action|degrees|frames?)\b", words), (
        words
    )
    for name, value in (("spine'", "102 Grad"), ("hips'", "0.0200 m"), ("Foot", "0.1705 m")):
        if name in words and value in words:
            assert re.search(rf"{name} [^,;]*{value}", words), words


def test_registering_is_quick(translation):
    translation.unregister()
    start = time.process_time()
    translation.register()
    assert time.process_time() - start < SECONDS


def test_names_of_bones_are_never_translated(language, translation):
    made = rigs.chain(2, 0.5)
    bone = made.pose.bones[0]
    for name in ("Target", "human", "Bone", "no target"):
        bone.name = name
        words = translation.translated(f"bone '{bone.name}' has zero scale: give it a scale other than 0")
        assert f"'{name}'" in words
        assert "zero scale" not in words
