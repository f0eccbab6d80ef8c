"""What the catalogues of ccd_rig/blender/languages lack, and what they hold in vain.

Runs where the bpy wheel is installed: `python devtools/languages.py [--fill FILE]` prints a JSON object from
each language's file name to its missing texts, with Blender's own translation where a catalogue of Blender is
found, else an empty one. The same object, filled in, goes into the catalogues with `--fill`; texts that stand
in no source any more are dropped then.
"""

from __future__ import annotations

import argparse
import gettext
import importlib.util
import json
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from devtools import messages  # noqa: E402

FOLDER = ROOT / "ccd_rig/blender/languages"
PACKAGE = "ccd_rig_extension"
BLENDER = ROOT / ".cache/window-root/usr/share/locale"  # of `dev.py test --window`


def wanted() -> set[str]:
    """All English texts of the extension: those of the sources, and those that it registers with Blender."""
    spec = importlib.util.spec_from_file_location(
        PACKAGE, ROOT / "__init__.py", submodule_search_locations=[str(ROOT)]
    )
    assert spec is not None and spec.loader is not None
    extension = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = extension
    spec.loader.exec_module(extension)
    extension.register()
    try:
        return set(messages.texts(ROOT)) | messages.registered(PACKAGE)
    finally:
        extension.unregister()


def catalogues() -> dict[str, dict[str, str]]:
    """The present catalogues by the names of their files."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.json"))}


def missing(texts: set[str]) -> dict[str, dict[str, str]]:
    """What each catalogue lacks, with Blender's own words where it has them."""
    return {
        name: {text: _of_blender(name, text) for text in sorted(texts - set(own))}
        for name, own in catalogues().items()
    }


def fill(texts: set[str], filled: dict[str, dict[str, str]]) -> None:
    """Write the catalogues anew with what was filled in."""
    for name, own in catalogues().items():
        given = {text: words for text, words in filled.get(name, {}).items() if words}
        kept = {text: words for text, words in sorted((own | given).items()) if text in texts}
        (FOLDER / f"{name}.json").write_text(
            json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )


def _of_blender(name: str, text: str) -> str:
    """What Blender's own catalogue says for a text, or nothing."""
    known = _catalogue_of_blender(name)
    words = known.gettext(text)
    for context in ("Operator", "Action", "Armature"):
        words = words if words != text else known.pgettext(context, text)
    return "" if words == text else words


@cache
def _catalogue_of_blender(name: str) -> gettext.NullTranslations:
    file = BLENDER / name / "LC_MESSAGES/blender.mo"
    if not file.is_file():
        return gettext.NullTranslations()
    with file.open("rb") as stream:
        return gettext.GNUTranslations(stream)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fill", type=Path, metavar="FILE", help="put the texts of this JSON file in")
    options = parser.parse_args()
    texts = wanted()
    if options.fill:
        fill(texts, json.loads(options.fill.read_text(encoding="utf-8")))
    print(json.dumps(missing(texts), ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
