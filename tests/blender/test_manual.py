"""The manual's reference is what the extension registers, and Blender's Online Manual finds its entries."""

from __future__ import annotations

import importlib.util
import re
import zipfile
from functools import cache
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit
from urllib.request import url2pathname

import bpy
import pytest
from installed import ROOT

ADVICE = "run `python3 dev.py docs --reference`"


@pytest.fixture
def manual(ext) -> ModuleType:
    return ext.module("viewport.online_manual")


@pytest.fixture
def reference() -> ModuleType:
    """devtools/reference.py, which is no part of the extension."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "devtools/reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def page(name: str) -> str:
    return (ROOT / "docs/reference" / name).read_text(encoding="utf-8")


def resolved(doc_id: str) -> str | None:
    """The address that Blender opens for a button or field: `class.field`, or `ccd_rig.command`."""
    wm = importlib.import_module("bl_operators.wm")
    name = wm._wm_doc_get_id(doc_id, do_url=False)
    return None if name is None else wm.WM_OT_doc_view_manual._lookup_rna_url(name, verbose=False)


def has_entry(address: str, base: str) -> bool:
    """Whether the reference has what an address of the site points at."""
    found = re.fullmatch(re.escape(base) + r"reference/(\w+)\.html#([\w-]+)", address)
    return found is not None and f'<a id="{found[2]}"></a>' in page(f"{found[1]}.md")


@pytest.mark.parametrize("name", ["settings.md", "operators.md", "names.md"])
def test_the_reference_is_what_is_registered(ext, manual, reference, name):
    made, kept = reference.pages(manual, ext.core)[name].splitlines(), page(name).splitlines()
    odd = [f"made now: {line}" for line in made if line not in kept]
    odd += [f"in docs/: {line}" for line in kept if line not in made]
    assert made == kept, f"docs/reference/{name} is out of date, {ADVICE}:\n" + "\n".join(odd)


def test_every_command_has_its_entry(manual):
    commands = dir(bpy.ops.ccd_rig)
    assert {"bake", "solve", "figure_set_up"} <= set(commands)
    for name in commands:
        address = resolved(f"ccd_rig.{name}")
        assert address is not None, f"no manual for bpy.ops.ccd_rig.{name}"
        assert address.endswith(f"#{name}")
        assert has_entry(address, manual.BASE), f"{address} is not in docs/reference: {ADVICE}"


def test_every_field_has_its_entry(manual):
    seen = set()
    for group in manual.groups():
        for field in manual.fields(group):
            if field.identifier == "name":  # all groups have it, and Blender does not tell of which one it is
                continue
            if group.identifier == "CCD_RIG_preferences":  # Blender 4.2 does not look these up by itself
                address = (
                    manual.BASE
                    + dict(manual.addresses()[1])[f"bpy.types.ccd_rig_preferences.{field.identifier}"]
                )
            else:
                address = resolved(f"{group.identifier}.{field.identifier}")
            assert address is not None, f"no manual for {group.identifier}.{field.identifier}"
            assert has_entry(address, manual.BASE), f"{address} is not in docs/reference: {ADVICE}"
            seen.add(address.partition("#")[2])
    assert {
        "constraint-tip",
        "limit-kind",
        "solver-restarts",
        "bake-start",
        "preferences-show_overlay",
    } <= seen


def test_an_option_of_a_command_leads_to_the_command(manual):
    assert resolved("CCD_RIG_OT_bake.frame_start") == f"{manual.BASE}reference/operators.html#bake"


def test_the_package_holds_the_pages_and_nothing_that_makes_them(ext):
    with zipfile.ZipFile(ext.zip) as package:
        names = package.namelist()
    assert {"manual/index.html", "manual/search/search_index.js"} <= set(names)
    assert [name for name in names if name.startswith(("docs", "mkdocs", "examples"))] == []


def test_the_pages_are_installed_with_the_extension(manual):
    assert manual.FOLDER.parent == Path(manual.__file__).parents[1]
    assert Path(url2pathname(urlsplit(manual.HOME).path)).is_file()
    for name in ("bake", "retarget"):
        address = urlsplit(resolved(f"ccd_rig.{name}"))
        text = Path(url2pathname(address.path)).read_text(encoding="utf-8")
        assert f'id="{address.fragment}"' in text


def test_what_is_blenders_stays_blenders(manual):
    address = resolved("Object.location")
    assert address is not None
    assert not address.startswith(manual.BASE)


def test_the_preferences_open_the_manual(ext, manual, monkeypatch):
    """The button's address, as a layout that writes down what it is given has it."""

    class Layout:
        urls: list[object] = []

        def __getattr__(self, _name):
            return lambda *_arguments, **_options: Layout()

        def panel(self, *_arguments, **_options):
            return Layout(), Layout()

        def operator(self, name, **_options):
            given = type("Given", (), {})()
            if name == "wm.url_open":
                self.urls.append(given)
            return given

    choices = ext.module("viewport.preferences").CCD_RIG_preferences
    monkeypatch.setattr(choices, "layout", Layout(), raising=False)
    choices.draw(bpy.context.preferences.addons[ext.package].preferences, bpy.context)
    assert [given.url for given in Layout.urls] == [manual.HOME]
