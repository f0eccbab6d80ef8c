"""The interface in each of its languages: panels, menus, preferences, a report and an error, photographed.

Runs as drive.py says, and by its helpers.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import bpy

sys.path.insert(0, str(Path(__file__).resolve().parent))

from drive import (
    PACKAGE,
    REDRAW,
    buttons,
    click,
    install,
    make_rig,
    note,
    open_tab,
    photograph,
    rig,
    sh,
    start,
    view,
)

LANGUAGES = ("de_DE", "fr_FR", "es", "ja_JP", "zh_HANS", "en_US")  # English last: switched back while running
SOLVE = "bpy.ops.ccd_rig.solve("


def prepare() -> None:
    """A constraint that is sound, one without a target, a bone with a limit, and a report with findings."""
    make_rig()
    bpy.ops.ccd_rig.constraint_add()
    bpy.context.preferences.addons[PACKAGE].preferences.follow_selection = False  # the lost one stays active
    armature = rig()
    lost = armature.ccd_rig.constraints.add()
    lost.name, lost.tip = "Lost", "Bone3"
    bone = armature.pose.bones["Bone7"]
    bone.ccd_rig.limit.kind = "ELLIPSE"
    sort = importlib.import_module(f"{PACKAGE}.ccd_rig.blender.bake.report")
    trouble, report = sort.Trouble, armature.ccd_rig.report
    found = [
        sort.Finding(trouble.SHORT, "Bone7", "Bone7", 12, 14, 13, distance=0.1),
        sort.Finding(trouble.JUMP, "Bone7", "Bone7", 9, 9, 9, angle=0.6, more=2, fix=sort.Fix.EXTENSION),
        sort.Finding(trouble.LIMIT, "Bone7", "Bone7", 3, 20, 5),
    ]
    report.words = (
        "21 of 24 frames reached; worst 0.1000 m at frame 13 (Bone7); 'Bone7' turns 34 degrees at frame 9; "
        "96 of 192 keys kept"
    )
    report.check = "Plays as baked: at most 0.0003 m at frame 13 (Bone7)"
    report.unsolved, report.findings, report.show_all = 3, sort.to_json(found), True


def scroll(lines: int) -> None:
    """Move the sidebar's panels up by so many lines, or down."""
    window, area, region = view()
    with bpy.context.temp_override(window=window, area=area, region=region):
        for _ in range(abs(lines)):
            (bpy.ops.view2d.scroll_down if lines > 0 else bpy.ops.view2d.scroll_up)(deltay=40)


def translations() -> dict[str, str]:
    """What Blender and the extension make of some texts."""
    module = importlib.import_module(f"{PACKAGE}.ccd_rig.blender.languages.translation")
    iface, tip = bpy.app.translations.pgettext_iface, bpy.app.translations.pgettext_tip
    return {
        "button": iface("Bake to Action", "Operator"),
        "label": iface("Even Bend"),
        "tooltip": tip("The object that the bone should reach"),
        "message": module.translated("Constraint 'Lost' has no target: choose the object to reach"),
        "report": module.translated("21 of 24 frames reached; 'Bone7' turns 34 degrees at frame 9"),
    }


def pointer(x: float, y: float) -> None:
    """Put the pointer at a part of the 3D view, counted from its upper left corner."""
    window, area, _ = view()
    sh(
        "xdotool",
        "mousemove",
        area.x + round(area.width * x),
        window.height - area.y - round(area.height * (1 - y)),
    )


def menus(language: str) -> Iterator[float]:
    for menu, short in (("CCD_RIG_MT_pose", "pose_menu"), ("CCD_RIG_MT_limits", "limits_menu")):
        window, area, _ = view()
        pointer(0.3, 0.4)
        yield 0.3
        main = next(each for each in area.regions if each.type == "WINDOW")
        with bpy.context.temp_override(window=window, area=area, region=main):
            bpy.ops.wm.call_menu("INVOKE_DEFAULT", name=menu)
        yield 2 * REDRAW
        photograph(f"{language}_{short}")
        sh("xdotool", "key", "Escape")
        yield REDRAW


def error(language: str, found: dict[str, tuple[int, int]]) -> Iterator[float]:
    """Press the button that solves: the constraint without a target is refused beside the pointer."""
    yield from click(found, SOLVE)
    yield REDRAW
    photograph(f"{language}_error")
    sh("xdotool", "key", "Escape")
    pointer(0.05, 0.9)
    yield REDRAW


def preferences(language: str) -> Iterator[float]:
    manager = bpy.context.window_manager
    before = set(manager.windows)
    bpy.ops.screen.userpref_show("INVOKE_DEFAULT")
    bpy.context.preferences.active_section = "ADDONS"
    manager.addon_search = "CCD Rig"
    yield 2 * REDRAW
    photograph(f"{language}_preferences")
    window = next(iter(set(manager.windows) - before), None)
    if window is not None:
        with bpy.context.temp_override(window=window):
            bpy.ops.wm.window_close()
    yield REDRAW


def run() -> Iterator[float]:
    install()
    prepare()
    yield REDRAW
    yield from open_tab()
    found: dict[str, tuple[int, int]] = {}
    yield from buttons(SOLVE, found, (90, 170))
    bpy.ops.preferences.addon_expand(module=PACKAGE)
    chosen = bpy.context.preferences.view
    for language in LANGUAGES:
        chosen.language = language
        yield 2 * REDRAW
        note(language, **translations(), locale=bpy.app.translations.locale)
        if language == "en_US":
            continue
        rig().ccd_rig.active_index = 1
        yield REDRAW
        photograph(f"{language}_constraints")
        yield from error(language, found)
        yield from menus(language)
        scroll(10)
        yield 2 * REDRAW
        photograph(f"{language}_bone")
        scroll(-10)
        yield REDRAW
        yield from preferences(language)
    chosen.language = "de_DE"
    bpy.ops.preferences.addon_disable(module=PACKAGE)
    left = bpy.app.translations.pgettext_iface("Bake to Action", "Operator")
    note("disabled", button=left)


if __name__ == "__main__":
    start(run())
