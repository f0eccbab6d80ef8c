"""Write the manual's reference: settings.md and operators.md from what the extension registers, names.md from
the public names of the solver.

Runs where Blender's module is installed; `python3 dev.py docs --reference` calls it.
"""

from __future__ import annotations

import enum
import inspect
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from math import degrees
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/reference"
MADE_OF_NAMES = "<!-- Made by `python3 dev.py docs --reference` from the docstrings: do not edit. -->"
MADE = "<!-- Made by `python3 dev.py docs --reference` from what the extension registers: do not edit. -->"
UNBOUNDED = 1e9  # numbers from here on stand for none
COLUMNS = 125  # of a line that is no row of a table

# Title and introduction of each group of settings, in the order of the page. Titles are their anchors too.
GROUPS = {
    "constraint": ("Constraint", "Settings of one entry of the list: `object.ccd_rig.constraints`."),
    "joint": ("Bone", "Settings of the active bone: `pose_bone.ccd_rig`."),
    "limit": ("Limit", "The rotations that a bone may have: `pose_bone.ccd_rig.limit`, `.comfort.region`."),
    "comfort": ("Comfort", "The rotations that a bone prefers: `pose_bone.ccd_rig.comfort`."),
    "coupled-offset": ("Coupled offset", "Shifts that follow a hinge: `pose_bone.ccd_rig.coupled_offsets`."),
    "offset-point": ("Offset point", "A point of its curve: `points` of a coupled offset."),
    "armature": ("Armature", "Settings of the whole rig: `object.ccd_rig`."),
    "solver": ("Solver", "How the rig is solved: `object.ccd_rig.solver`."),
    "bake": ("Bake", "Options of the next bake: `object.ccd_rig.bake`."),
    "retarget": ("Retarget", "Motion of another armature on this one: `object.ccd_rig.retarget`."),
    "bone-pair": ("Bone pair", "One pair of the map: `object.ccd_rig.retarget.pairs`."),
    "ground": ("Ground", "What the rig stands on: `object.ccd_rig.ground`."),
    "walk": ("Walk Along", "A cycle along a curve: `object.ccd_rig.walk`."),
    "report": ("Report", "What the last bake has reported, for reading: `object.ccd_rig.report`."),
    "pose": ("Pose", "One entry of the pose library: `object.ccd_rig.poses`."),
    "pose-bone": ("Pose bone", "One bone of a pose: its `rotations`."),
    "preferences": ("Preferences", "*Edit > Preferences > Add-ons > CCD Rig*, the same for all files."),
    "new-rigs": ("New rigs", "What new rigs and constraints get: `new_rigs` of the preferences."),
    "new-figure": ("New figure", "What Set Up Figure makes at first: `new_rigs.figure` of the preferences."),
}
# Title of each group of public names, its names, and the methods that scripts need.
NAMES = {
    "Skeletons": ("Skeleton", "Skeleton.index", "Skeleton.chain", "Skeleton.replace", "Joint", "Slide",
        "CoupledOffset", "CoupledOffset.shift", "Comfort"),
    "Poses": ("Pose", "Pose.rest", "Pose.with_rotations", "PoseEntry", "Transform", "Transform.point",
        "forward_kinematics"),
    "Limits": ("Hinge", "SwingTwist", "Cone", "Ellipse", "EulerBox", "Limit", "clamp", "contains",
        "sample"),
    "Goals": ("PositionGoal", "OrientationGoal", "DirectionGoal", "PoleGoal", "BalanceGoal", "Goal",
        "measure", "GoalError"),
    "Settings": ("SolverSettings", "Solver", "Sweep", "PRESETS"),
    "Solves": ("solve", "iterate", "SolveResult", "SolveStatus", "solve_many", "ManyResult",
        "ManyResult.pose"),
    "Closed forms": ("two_bone", "TwoBoneOptions", "target_triangle"),
    "Drags": ("drag", "Drag", "Drag.to", "Grab", "Pin", "Support"),
    "Other bases and joints": ("reroot", "restore_root", "planar_chain", "split_ball"),
    "Errors": ("CCDRigError", "InvalidInput", "RigError"),
}  # fmt: skip
UNITS = {"ROTATION": "degrees", "LENGTH": "length", "TIME": "frames"}
KINDS = {"STRING": "text", "BOOLEAN": "on or off"}
HEADER = ("| name | what it does | default | range | unit |", "|---|---|---|---|---|")


def pages(manual: ModuleType, core: ModuleType) -> dict[str, str]:
    """File name -> text of each page.

    Args:
        manual: the registered extension's module `viewport.online_manual`.
        core: the package of the solver.
    """
    import bpy

    groups = {manual.anchor(group.identifier): group for group in manual.groups()}
    if set(groups) != set(GROUPS):
        odd = ", ".join(sorted(set(groups) ^ set(GROUPS)))
        raise LookupError(f"devtools/reference.py and the extension disagree about the groups {odd}")
    settings = {kind: manual.fields(group) for kind, group in groups.items()}
    commands = {name: getattr(bpy.ops.ccd_rig, name).get_rna_type() for name in dir(bpy.ops.ccd_rig)}
    options = {name: manual.fields(command) for name, command in commands.items()}
    stored = {each.identifier for each in settings["bake"]}
    options["bake"] = [each for each in options["bake"] if each.identifier not in stored]
    return {
        "settings.md": "\n".join(_settings(settings)) + "\n",
        "operators.md": "\n".join(_operators(commands, options)) + "\n",
        "names.md": "\n".join(_names(core)) + "\n",
    }


def _settings(settings: dict[str, list[Any]]) -> Iterator[str]:
    yield from ("# Settings", "", MADE, "")
    yield from _paragraph(
        "Everything that the panels show and that scripts may set. Angles are in degrees on this page and in "
        "radians in scripts. Lengths are in the scene's unit."
    )
    for kind, (title, text) in GROUPS.items():
        anchors = "" if title.lower().replace(" ", "-") == kind else f'<a id="{kind}"></a>'
        yield from ("", f"## {title}", "", anchors + text, "")
        yield from _table(settings[kind], kind)


def _operators(commands: dict[str, Any], options: dict[str, list[Any]]) -> Iterator[str]:
    yield from ("# Commands", "", MADE, "")
    yield from _paragraph(
        "All buttons and menu entries, by name. In scripts each is `bpy.ops.ccd_rig.` and its short name. "
        "Search (F3) finds them by their full name."
    )
    for name, command in sorted(commands.items(), key=lambda item: item[1].name):
        yield from ("", f"## {command.name}", "")
        yield from _paragraph(f'<a id="{name}"></a>`{name}`: {_words(command)}.')
        if options[name]:
            yield from ("", *_table(options[name], name))
        if name == "bake":
            yield from (
                "",
                "It also has the [options of the panel](settings.md#bake), with the same defaults.",
            )


def _names(core: ModuleType) -> Iterator[str]:
    listed = {name for names in NAMES.values() for name in names if "." not in name}
    if odd := listed ^ set(core.__all__):
        raise LookupError(
            f"devtools/reference.py and ccd_rig.__all__ disagree about {', '.join(sorted(odd))}"
        )
    yield from ("# Names", "", MADE_OF_NAMES, "")
    yield from _paragraph(
        "All names that `ccd_rig` exports. [Scripting](scripting.md#the-solver-alone) has examples, units "
        "and the import path inside Blender. For a `Vector` or `Triple` any three numbers do, for a "
        "`Quaternion` any four (w, x, y, z). Results have those of `mathutils`."
    )
    for title, names in NAMES.items():
        yield from ("", f"## {title}")
        for name in names:
            yield from _name(core, name)


def _name(core: ModuleType, name: str) -> Iterator[str]:
    """The entry of a public name, or of a method."""
    value: Any = core
    for part in name.split("."):
        value = getattr(value, part)
    yield from ("", f"### {name}", "")
    if isinstance(value, type) and issubclass(value, enum.Enum):
        yield from _paragraph(_escaped(inspect.getdoc(value) or ""))
        yield from ("", f"One of {', '.join(f'`{each.name}`' for each in value)}.")
    elif not callable(value):
        yield f"Settings by name: {', '.join(f'`{each}`' for each in value)}."
    else:
        if parameters := _signature(name, value):
            yield from ("```text", *parameters, "```", "")
        text = inspect.getdoc(value) or ""
        # Of a class that scripts do not make, the fields are inner ones.
        yield from list(_docstring(text.partition("\n\n")[0] if inspect.isabstract(value) else text))[:-1]


def _signature(name: str, value: Any) -> list[str]:
    """The call of a class or function, a line for each parameter where one line is too short."""
    if isinstance(value, type) and (issubclass(value, Exception) or inspect.isabstract(value)):
        return []
    signature = inspect.signature(value)
    words, has_stars = [], False
    for each in signature.parameters.values():
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not has_stars:
            words.append("*")
            has_stars = True
        default = "" if each.default is each.empty else f" = {_default(each.default)}"
        words.append(f"{each.name}: {_type(each.annotation)}{default}")
    result = "" if isinstance(value, type) else f" -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(words)}){result}"
    return [line] if len(line) <= COLUMNS else [f"{name}(", *(f"    {each}," for each in words), f"){result}"]


def _type(annotation: Any) -> str:
    words = str(getattr(annotation, "__forward_arg__", annotation))
    return re.sub(r"Annotated\[(\w+), _\w+\]", r"\1", words)  # without how it is read from JSON


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, float):
        return f"{value:.6g}" if value % 1.0 else f"{value:.1f}"
    return "rest" if repr(value) == "<factory>" else repr(value)


def _docstring(text: str) -> Iterator[str]:
    """The paragraphs of a docstring, and its sections as lists."""
    for paragraph in text.split("\n\n"):
        title, _, entries = paragraph.partition("\n")
        if title not in ("Args:", "Attributes:", "Returns:", "Raises:"):
            yield from (*_paragraph(_escaped(paragraph)), "")
            continue
        if title in ("Returns:", "Raises:"):
            yield from (*_paragraph(f"**{title}** {_escaped(entries)}"), "")
            continue
        for entry in re.split(r"\n(?= {4}\S)", entries):
            names, _, words = entry.strip().partition(": ")
            quoted = ", ".join(f"`{each}`" for each in names.split(", "))
            yield from textwrap.wrap(
                f"- {quoted}: {_escaped(words)}", COLUMNS, subsequent_indent="  ", break_long_words=False,
                break_on_hyphens=False,
            )  # fmt: skip
        yield ""


def _escaped(words: str) -> str:
    """Words of a docstring for a page: what is not in backquotes means no markup."""
    quoted = re.split(r"(`[^`]*`)", " ".join(words.split()))
    return "".join(part if part[:1] == "`" else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in quoted)


def _paragraph(words: str) -> list[str]:
    return textwrap.wrap(words, COLUMNS, break_long_words=False, break_on_hyphens=False)


def _table(fields: list[Any], prefix: str) -> Iterator[str]:
    yield from HEADER
    for each in fields:
        anchor = f'<a id="{prefix}-{each.identifier}"></a>'
        cells = (f"{anchor}{_cell(each.name)}<br>`{each.identifier}`", _what(each), *_values(each))
        yield f"| {' | '.join(cells)} |"


def _what(each: Any) -> str:
    words = f"{_words(each)}."
    if each.type != "ENUM":
        return words
    choices = [f"<br>*{_cell(item.name)}* (`{item.identifier}`): {_words(item)}." for item in each.enum_items]
    return words + "".join(choices)


def _words(thing: Any) -> str:
    return _cell(thing.description or thing.name).rstrip(".")


def _cell(words: str) -> str:
    """Words that a cell of a table may hold."""
    return " ".join(words.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _values(each: Any) -> tuple[str, str, str]:
    """Default, range and unit in words."""
    if each.type == "POINTER":
        return "none", _cell(each.fixed_type.name).lower(), ""
    if each.type == "COLLECTION":
        return "empty", "", ""
    if each.type == "ENUM":
        chosen = [item for item in each.enum_items if item.identifier == each.default]
        default = f"{_cell(chosen[0].name)}<br>`{chosen[0].identifier}`" if chosen else ""
        return default, "one of these" if len(each.enum_items) else "", ""
    several = getattr(each, "is_array", False)
    default = (
        ", ".join(_value(each, v) for v in each.default_array) if several else _value(each, each.default)
    )
    if each.type in KINDS:
        return default, KINDS[each.type], ""
    return default, _range(each), UNITS.get(each.unit, "")


def _value(each: Any, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return _cell(value) or "empty"
    return f"{degrees(value) if each.unit == 'ROTATION' else value:.4g}"


def _range(each: Any) -> str:
    lower = None if each.hard_min <= -UNBOUNDED else _value(each, each.hard_min)
    upper = None if each.hard_max >= UNBOUNDED else _value(each, each.hard_max)
    if lower is not None and upper is not None:
        return f"{lower} to {upper}"
    if lower is None and upper is None:
        return "any"
    return f"from {lower}" if upper is None else f"up to {upper}"


def main() -> None:
    """Write the pages."""
    os.environ["BLENDER_USER_RESOURCES"] = tempfile.mkdtemp(prefix="ccd_rig_reference_")
    sys.path.insert(0, str(ROOT))
    from devtools import extension

    extension.load()
    manual = sys.modules[f"{extension.NAME}.viewport.online_manual"]
    core = sys.modules[f"{extension.NAME}.ccd_rig"]
    for name, text in pages(manual, core).items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"wrote {(FOLDER / name).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # Blender's own shutdown inside a Python process can crash (4.2) or hang (4.5)
