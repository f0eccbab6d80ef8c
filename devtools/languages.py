"""English texts of the interface, read from the sources, and the catalogues that translate them.

`message_templates` reads the texts of a source file; here it is decided which files and texts count.

Runs where the bpy wheel is installed: `python devtools/languages.py [--fill FILE]` prints a JSON object from
each language's file name to its missing texts, with Blender's own translation where a catalogue of Blender is
found, else an empty one. The same object, filled in, goes into the catalogues with `--fill`; texts that stand
in no source any more are dropped then.
"""

from __future__ import annotations

import argparse
import ast
import gettext
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":  # a script has its own folder on the path
    sys.path.insert(0, str(ROOT))

from devtools import drawing, extension  # noqa: E402
from devtools.message_templates import SourceTexts, is_text  # noqa: E402

FOLDER = ROOT / "ccd_rig/blender/languages"
BLENDER = ROOT / ".cache/window-root/usr/share/locale"  # of `dev.py test --window`


FOLDERS = ("ccd_rig", "operators", "panels", "viewport")
CORE = (
    "ccd_rig/json_text.py",
    "ccd_rig/kernel/loading.py",
    "ccd_rig/limits/body_motions.py",
    "ccd_rig/limits/fitting.py",
    "ccd_rig/limits/shapes.py",
    "ccd_rig/maths/validation.py",
    "ccd_rig/motion/interpolation.py",
    "ccd_rig/settings.py",
    "ccd_rig/motion/ground.py",
    "ccd_rig/motion/retargeting/over_ground.py",
    "ccd_rig/motion/walking/cycle.py",
    "ccd_rig/motion/walking/path.py",
    "ccd_rig/motion/walking/steps.py",
    "ccd_rig/motion/walking/timeline.py",
    "ccd_rig/skeleton/joints.py",
    "ccd_rig/skeleton/pose_library.py",
    "ccd_rig/skeleton/rerooting.py",
    "ccd_rig/solvers/closed_forms.py",
)
"""Modules of the core whose messages a panel may show; others have messages for programs."""
ENGLISH = (
    "ccd_rig/blender/cli/",
    "ccd_rig/blender/farm/bundle.py",
    "ccd_rig/blender/figures/words.py",
    "ccd_rig/blender/languages/",
    "ccd_rig/blender/limit_sources/joint_ranges.py",
)
"""Modules without translated texts: the command line and farms are English."""
FIGURES = ("human", "quadruped", "bird", "two-legged animal", "many-legged animal", "fish", "chain")
"""Kinds of figures in what a set-up comes to, see `figures.role.Kind`."""
MORE = (
    *("prepared", "evaluated", "solved", "reduced", "keyed", "measured", "checked"),
    *("target", "pole", "pole target", "target {*mover}", "pole {*mover}"),
    *("shoulder", "arm", "front leg", "{value} contact", "{value} contacts"),
    *("knee of the {*limb}", "elbow of the {*limb}"),
    *("slide", "limit", "comfort", "location", "rotation", "scale", "angle", "twist"),
    *("{*first} and {*last}", "{*first} or {*last}", "; ", ". ", ": ", ", "),
    *(f"{kind}: {{*parts}}" for kind in FIGURES),
    *(f"{{family}} {kind}: {{*parts}}" for kind in FIGURES),
    *("{*count} hands", "{*count} feet", "{*count} wings"),
    *("1st {*limb}", "2nd {*limb}", "3rd {*limb}", "{count}th {*limb}"),
)
"""Words that become parts of messages as arguments, and separators of sentences and lists."""
FOR_PROGRAMS = (
    r"(FitSettings|SwingTwist|Reversed|Comfort|Ellipse|CoupledOffset)\..*|swing_axes: .*",
    r"(rotations? (must|mode|of|\{)|previous must|frames (must|are)|frame \{outside|wanted|step must) .*",
    r"(the rotation of joint|a joint needs|a pose (entry|library) (needs|holds)|chain length must) .*",
    r"(two_bone:|target_triangle:?) .*",
    r"there is no joint .*|(preroll|smoothness|error_reduction|ground|body) must .*",
    r".*: (given twice|interpolation .*)",
    r"joint '.*(parent|offset|rest_rotation|stands twice|a tuple of|None, not).*",
    r"\{clip\} is no clip of this job: .*",
    r".* docstring does not say .*|.*needs \(F,\) frames.*|keys of .*|there are no keys to write",
    r".*: frames (must increase by|outside) .*|.*a frame or a value is not a finite number",
)
"""Messages that wrong arguments of programs cause alone."""
NAMES = (
    r"CCD Rig (Live|Evaluation).*|Targets? (of )?\{\*?\w+\}|Pole \{tip\}|\{\*?\w+\} (CCD|Rest)|Look \{.*",
    r"[A-Z]{2}[A-Z_]*|[\w.\[\]{}*'\"]*[._\[][\w.\[\]{}*'\"]+|Legacy Slot|Object Transforms|CCD:",
    r"3D View Tool: .*|\W*\{\*?\w+\}\W*|\{\*head\},[^}]*\{\*entries\}[^}]*\}\}|\(\{.*\} is .*|slide \(.*",
    r"(un)?lock a joint .*|joints that can turn|make chain_length .*|(joint|bone) '|use solve",
    r"worst|turns|smoothed at|the body helps at|switched to FK",
    r"follows planted bones|so that legs reach|walks on by",
    r"Unique name used in the code and scripting",
)
"""Strings that are no texts: names of data-blocks, paths of properties, parts of texts."""


def texts(root: Path) -> dict[str, str]:
    """Return {English text: its first place, such as "operators/bake.py:24"}."""
    places: dict[str, str] = {}
    keys = _constants(root / "ccd_rig/blender/limit_sources/joint_ranges.py")
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            name = file.relative_to(root).as_posix()
            if name.startswith(ENGLISH) or (_is_core(name) and name not in CORE):
                continue
            for line, text in SourceTexts(drawing.tree(file)).texts():
                if text not in keys and not _is_left_out(text):
                    places.setdefault(_in_panel_words(text, name, root), f"{name}:{line}")
    return places | dict.fromkeys(MORE, "devtools/languages.py:1")


def _is_left_out(text: str) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in (*NAMES, *FOR_PROGRAMS))


def _is_core(name: str) -> bool:
    return name.startswith("ccd_rig/") and not name.startswith("ccd_rig/blender/")


def _constants(file: Path) -> set[str]:
    tree = drawing.tree(file)
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and is_text(node)}


def _in_panel_words(text: str, name: str, root: Path) -> str:
    """Return a message of the core as the functions `panel_words` and `of_bones` change it."""
    if name == "ccd_rig/solvers/closed_forms.py":
        tree = drawing.tree(root / "ccd_rig/blender/solve/methods.py")
        function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "panel_words")
        loop = next(n for n in function.body if isinstance(n, ast.For))
        for core, panel in ast.literal_eval(loop.iter):
            text = text.replace(core, panel)
    return text.replace("joint '", "bone '") if _is_core(name) else text


def registered(package: str) -> set[str]:
    """Return the labels and tooltips that an enabled extension has registered.

    Args:
        package: the extension's name as a Python package.
    """
    import bpy

    words: set[str] = set()
    bases = ("Operator", "Panel", "Menu", "PropertyGroup", "AddonPreferences", "GizmoGroup")
    pending = [getattr(bpy.types, base) for base in bases]
    while pending:
        class_ = pending.pop()
        pending += class_.__subclasses__()
        if not class_.__module__.startswith(package) or not hasattr(class_, "bl_rna"):
            continue
        is_shown = not issubclass(class_, bpy.types.PropertyGroup | bpy.types.AddonPreferences)
        if is_shown:
            words |= {getattr(class_, "bl_label", ""), getattr(class_, "bl_description", "")}
        declaring = [base for base in class_.__mro__ if base.__module__.startswith(package)]
        names = {name for base in declaring for name in base.__dict__.get("__annotations__", {})}
        rna = class_.bl_rna
        if issubclass(class_, bpy.types.Operator):  # whose options only its command has
            rna = getattr(bpy.ops.ccd_rig, class_.bl_idname.partition(".")[2]).get_rna_type()
        words |= {text for each in rna.properties if each.identifier in names for text in _shown(each)}
    for owner in (bpy.types.Object, bpy.types.PoseBone):
        words |= {
            text for each in owner.bl_rna.properties if each.identifier == "ccd_rig" for text in _shown(each)
        }
    # A group's own field `name` may be hidden by Blender's.
    words -= {text for each in bpy.types.PropertyGroup.bl_rna.properties for text in _shown(each)}
    return {text for text in words if re.search("[A-Za-z]{2}", text) and not _is_left_out(text)}


def _shown(prop: Any) -> Iterator[str]:
    """Texts that Blender shows of a property."""
    yield from (prop.name, prop.description)
    if prop.type == "ENUM":
        for item in prop.enum_items:
            yield from (item.name, item.description)


def wanted() -> set[str]:
    """Return all English texts of the extension, of its sources and of its registered classes."""
    module = extension.load()
    try:
        return set(texts(ROOT)) | registered(extension.NAME)
    finally:
        module.unregister()


def catalogues() -> dict[str, dict[str, str]]:
    """Return {file name: catalogue}."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.json"))}


def missing(texts: set[str]) -> dict[str, dict[str, str]]:
    """Return the missing texts of each catalogue, with Blender's translations where it has them."""
    return {
        name: {text: _of_blender(name, text) for text in sorted(texts - set(catalogue))}
        for name, catalogue in catalogues().items()
    }


def fill(texts: set[str], filled: dict[str, dict[str, str]]) -> None:
    """Write the catalogues with new translations, and without unused texts."""
    for name, catalogue in catalogues().items():
        new = {text: words for text, words in filled.get(name, {}).items() if words}
        kept = {text: words for text, words in sorted((catalogue | new).items()) if text in texts}
        (FOLDER / f"{name}.json").write_text(
            json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )


def _of_blender(name: str, text: str) -> str:
    """Translate a text by Blender's catalogue; empty if it has no translation."""
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
