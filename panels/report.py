# SPDX-License-Identifier: GPL-3.0-or-later
"""What the last bake came to, as an animator reads it: what is wrong at which frames, and what helps."""

from typing import Any

import bpy

from ..ccd_rig.blender.bake import finding, staleness
from ..ccd_rig.blender.bake.finding import Finding, Fix, Trouble
from .sidebar import LINE, draw_words, wrapped

PADDING = 8  # [pixels] on either side of a button's words at scale 1
SHOWN = 6
"""Findings that the panel shows; markers show all."""
ICONS = {
    Trouble.SHORT: "ERROR",
    Trouble.OFF: "ERROR",
    Trouble.JUMP: "SHARPCURVE",
    Trouble.SLIDE: "PINNED",
    Trouble.GROUND: "TRIA_DOWN_BAR",
    Trouble.LIMIT: "DRIVER_ROTATIONAL_DIFFERENCE",
    Trouble.LOOP: "FILE_REFRESH",
    Trouble.IK: "UNLINKED",
}
FIXES = {  # short: a narrow sidebar has little room
    Fix.EXTENSION: "Reach 0.98",
    Fix.SOFT: "Softness 0.05",
    Fix.POLE: "Add Pole",
    Fix.LEAST_SQUARES: "Smooth",
    Fix.BOTH_WAYS: "Both Ways",
    Fix.FK: "Switch to FK",
}
TOLD = {"worst ": set(Trouble), " turns ": {Trouble.JUMP}, " slide ": {Trouble.SLIDE}}
"""Parts of the summary that findings of these sorts tell better."""


def draw_report(layout: bpy.types.UILayout, context: bpy.types.Context, armature_object: Any) -> None:
    """The last bake's report; grey once it is out of date, nothing before the first bake."""
    report = armature_object.ccd_rig.report
    if not report.words:
        return
    box = layout.box()
    if staleness.is_stale(armature_object):
        draw_words(box, context, "Changed since: bake again", "FILE_REFRESH")
        box = box.column()
        box.active = False
    found = finding.from_json(report.findings)
    head, _, rest = report.words.partition("; ")
    draw_words(box, context, head, "ERROR" if report.unsolved else "CHECKMARK")
    lines = box.column(align=True)
    for index, each in enumerate(found[:SHOWN]):
        _draw_finding(lines, context, each, index)
    if found:
        buttons = box.row(align=True)
        more = f" ({len(found) - SHOWN} more)" if len(found) > SHOWN else ""
        buttons.operator("ccd_rig.report_markers", text=f"Markers{more}", icon="MARKER_HLT")
        buttons.operator("ccd_rig.report_markers", text="", icon="X").clear = True
    sorts = {each.trouble for each in found}
    for words in rest.split("; "):
        if not any(part in words and sorts & better for part, better in TOLD.items()):
            draw_words(box, context, words[:1].upper() + words[1:], _icon_of(words))
    if report.check:
        draw_words(box, context, report.check, "ERROR" if report.mismatches else "CHECKMARK")


def _draw_finding(lines: bpy.types.UILayout, context: bpy.types.Context, found: Finding, index: int) -> None:
    """Its words, each line of which goes to the frame, and below them the button that helps."""
    for i, words in enumerate(wrapped(context, found.words(), PADDING)):
        line = lines.row()
        line.alignment, line.scale_y = "LEFT", LINE
        icon = "BLANK1" if i else ICONS[found.trouble]
        line.operator("ccd_rig.go_to_frame", text=words, icon=icon, emboss=False).finding = index
    if found.fix:
        line = lines.row()
        line.label(text="", icon="BLANK1")
        line.operator("ccd_rig.report_fix", text=FIXES[found.fix]).finding = index


def _icon_of(words: str) -> str:
    """Of a part of the summary."""
    if words.endswith("kept"):
        return "KEYFRAME"
    quiet = (" follows planted bones", " so that legs reach", " walks on by ", "closes", "witched to FK")
    return "INFO" if any(part in words for part in quiet) else "ERROR"
