"""The English texts that a person may see, read from the sources: what every language's catalogue translates.

`message_templates` reads those of one file. Here stands which files and texts count, and what Blender has
been told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from devtools.message_templates import SourceTexts, is_text

FOLDERS = ("ccd_rig", "operators", "panels", "viewport")
CORE = (
    "ccd_rig/kernel/loading.py",
    "ccd_rig/limits/body_motions.py",
    "ccd_rig/limits/shapes.py",
    "ccd_rig/limits/fitting.py",
    "ccd_rig/limits/mirroring.py",
    "ccd_rig/limits/outlines.py",
    "ccd_rig/limits/shapes.py",
    "ccd_rig/maths/validation.py",
    "ccd_rig/motion/interpolation.py",
    "ccd_rig/settings.py",
    "ccd_rig/skeleton/coupled_offset.py",
    "ccd_rig/motion/ground.py",
    "ccd_rig/motion/walking/cycle.py",
    "ccd_rig/motion/walking/path.py",
    "ccd_rig/motion/walking/profile.py",
    "ccd_rig/motion/walking/steps.py",
    "ccd_rig/motion/walking/timeline.py",
    "ccd_rig/skeleton/joints.py",
    "ccd_rig/skeleton/pose_library.py",
    "ccd_rig/skeleton/rerooting.py",
    "ccd_rig/solvers/analytic/single_pass.py",
)
"""Of the core what a panel may show: the rest of its messages is for programs that call it."""
ENGLISH = (
    "ccd_rig/blender/cli/",
    "ccd_rig/blender/farm/bundle.py",
    "ccd_rig/blender/farm/clips.py",
    "ccd_rig/blender/figures/families.py",
    "ccd_rig/blender/languages/",
    "ccd_rig/blender/limit_sources/joint_ranges.py",
)
"""The command line and farms speak English; names of bones and keys of tables are no texts."""
MORE = (
    *("prepared", "evaluated", "solved", "reduced", "keyed", "measured", "checked"),
    *("target", "pole", "pole target", "target {*mover}", "pole {*mover}"),
    *("shoulder", "arm", "front leg", "{value} contact", "{value} contacts"),
    *("knee of the {*limb}", "elbow of the {*limb}"),
    *("slide", "limit", "comfort", "location", "rotation", "scale", "angle", "twist"),
    *("{*first} and {*last}", "{*first} or {*last}", "; ", ". ", ": ", ", "),
)
"""Words that reach a message as a function's argument, and what joins sentences and lists."""
FOR_PROGRAMS = (
    r"(FitSettings|SwingTwist|Reversed|Comfort|Ellipse|CoupledOffset)\..*|swing_axes: .*",
    r"(rotations? (must|mode|of|\{)|previous must|frames (must|are)|frame \{outside|wanted|step must) .*",
    r"(the rotation of joint|a joint needs|a pose (entry|library) (needs|holds)|chain length must) .*",
    r"there is no joint .*|(preroll|smoothness|error_reduction|ground|body) must .*",
    r".*: (given twice|interpolation .*)",
    r"joint '.*(parent|offset|rest_rotation|stands twice|a tuple of|None, not).*",
    r".* docstring does not say .*|.*needs \(F,\) frames.*|keys of .*|there are no keys to write",
    r".*: frames (must increase by|outside) .*|.*a frame or a value is not a finite number",
)
"""Of the messages what only a program can bring about, by wrong arguments."""
NAMES = (
    r"CCD Rig (Live|Evaluation).*|Targets? (of )?\{\*?\w+\}|Pole \{tip\}|\{\*?\w+\} (CCD|Rest)|Look \{.*",
    r"[A-Z]{2}[A-Z_]*|[\w.\[\]{}*'\"]*[._\[][\w.\[\]{}*'\"]+|Legacy Slot|Object Transforms|CCD:",
    r"3D View Tool: .*|\W*\{\*?\w+\}\W*|\{\*head\},[^}]*\{\*entries\}[^}]*\}\}|\(\{.*\} is .*|slide \(.*",
    r"(un)?lock a joint .*|joints that can turn|make chain_length .*|(joint|bone) '|use solve",
    r"worst|turns|witched to FK|follows planted bones|so that legs reach|walks on by",
    r"Unique name used in the code and scripting",
)
"""What is no text: names of data blocks, which scripts look up, paths to properties, parts of texts."""


def texts(root: Path) -> dict[str, str]:
    """Each English text with the place where it stands first, such as "operators/bake.py:24"."""
    found: dict[str, str] = {}
    keys = _constants(root / "ccd_rig/blender/limit_sources/joint_ranges.py")
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            name = file.relative_to(root).as_posix()
            if name.startswith(ENGLISH) or (_is_core(name) and name not in CORE):
                continue
            for line, text in SourceTexts(ast.parse(file.read_text(encoding="utf-8"))).texts():
                if text not in keys and not _is_left_out(text):
                    for each in _in_panel_words(text, name, root):
                        found.setdefault(each, f"{name}:{line}")
    return found | dict.fromkeys(MORE, "devtools/messages.py:1")


def _is_left_out(text: str) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in (*NAMES, *FOR_PROGRAMS))


def _is_core(name: str) -> bool:
    return name.startswith("ccd_rig/") and not name.startswith("ccd_rig/blender/")


def _constants(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and is_text(node)}


def _in_panel_words(text: str, name: str, root: Path) -> tuple[str, ...]:
    """A message of the core as the function `panel_words` changes it."""
    if "/analytic/" not in name:
        return (text,)
    tree = ast.parse((root / "ccd_rig/blender/solve/methods.py").read_text(encoding="utf-8"))
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "panel_words")
    loop = next(n for n in function.body if isinstance(n, ast.For))
    for core, panel in ast.literal_eval(loop.iter):
        text = text.replace(core, panel)
    return (text,)


def registered(package: str) -> set[str]:
    """The labels and tooltips that an enabled extension has registered with Blender.

    Args:
        package: the extension's name as a Python package.
    """
    import bpy

    found: set[str] = set()
    bases = ("Operator", "Panel", "Menu", "PropertyGroup", "AddonPreferences", "GizmoGroup")
    pending = [getattr(bpy.types, base) for base in bases]
    while pending:
        class_ = pending.pop()
        pending += class_.__subclasses__()
        if not class_.__module__.startswith(package) or not hasattr(class_, "bl_rna"):
            continue
        is_shown = not issubclass(class_, bpy.types.PropertyGroup | bpy.types.AddonPreferences)
        if is_shown:
            found |= {getattr(class_, "bl_label", ""), getattr(class_, "bl_description", "")}
        names = set(getattr(class_, "__annotations__", {}))
        found |= {
            text for each in class_.bl_rna.properties if each.identifier in names for text in _shown(each)
        }
    for owner in (bpy.types.Object, bpy.types.PoseBone):
        found |= {
            text for each in owner.bl_rna.properties if each.identifier == "ccd_rig" for text in _shown(each)
        }
    # A group's own field `name` may be hidden by Blender's.
    found -= {text for each in bpy.types.PropertyGroup.bl_rna.properties for text in _shown(each)}
    return {text for text in found if re.search("[A-Za-z]{2}", text) and not _is_left_out(text)}


def _shown(prop: Any) -> Iterator[str]:
    """What Blender shows of one property."""
    yield from (prop.name, prop.description)
    if prop.type == "ENUM":
        for item in prop.enum_items:
            yield from (item.name, item.description)
