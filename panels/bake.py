# SPDX-License-Identifier: GPL-3.0-or-later
"""Panels of Solve and Bake: commands, the last report, options of bakes, and FK to IK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import bpy

from ..ccd_rig.blender.bake.settings import OPTIONS
from ..ccd_rig.blender.bake.trouble import Fix, Trouble
from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.properties.active_rig import active_rig, rigs_to_bake
from .sidebar import LINE, Folded, Sidebar, draw_ground, draw_words, wrapped

if TYPE_CHECKING:
    from ..ccd_rig.blender.bake.report import Finding

PADDING = 8  # [pixels] on either side of a button's words at scale 1
SHOWN = 30
"""Maximum of findings in the panel; markers show all."""
FOLDED = 7
"""Maximum of lines of a folded report, so that the panels below stay in sight."""
ICONS = {
    Trouble.SHORT: "ERROR",
    Trouble.OFF: "ERROR",
    Trouble.JUMP: "SHARPCURVE",
    Trouble.SLIDE: "PINNED",
    Trouble.GROUND: "TRIA_DOWN_BAR",
    Trouble.LIMIT: "DRIVER_ROTATIONAL_DIFFERENCE",
    Trouble.LOOP: "FILE_REFRESH",
    Trouble.CLIMB: "TRIA_UP",
    Trouble.SINK: "TRIA_DOWN",
    Trouble.TIP: "ORIENTATION_GIMBAL",
    Trouble.FLOAT: "TRIA_UP_BAR",
    Trouble.IK: "UNLINKED",
    Trouble.BETWEEN: "IPO_LINEAR",
    Trouble.TAKEN: "UNPINNED",
}
FIXES = {  # short: a narrow sidebar has little room
    Fix.EXTENSION: "Reach 0.98",
    Fix.SOFT: "Softness 0.05",
    Fix.POLE: "Add Pole",
    Fix.LEAST_SQUARES: "Smooth",
    Fix.FK: "Switch to FK",
}
MISSES = {Trouble.SHORT, Trouble.OFF}
DETAILED = {
    "worst ": set(Trouble),
    " turns ": {Trouble.JUMP},
    " slide ": {Trouble.SLIDE},
    " climbs ": {Trouble.CLIMB},
    " sinks ": {Trouble.SINK},
    " tips by ": {Trouble.TIP},
    " floats, held ": {Trouble.FLOAT},
    " does not close: ": {Trouble.LOOP},
}
"""{words of the summary: findings that say the same in detail}"""


PLACED = ("step", "reduce_angle", "reduce_error", "smoothness", "error_reduction")
"""Options of a bake whose place or presence depends on others."""


class Entry(NamedTuple):
    """Entry of the report in the panel."""

    lines: list[str]  # wrapped words
    icon: str  # beside the first line
    finding: int = -1  # index of the finding; -1 if it is none
    fix: Fix = Fix.NONE  # of the finding

    @property
    def height(self) -> int:
        """Height in lines; a button counts as two."""
        return len(self.lines) + (2 if self.fix else 0)


def draw_report(layout: bpy.types.UILayout, context: bpy.types.Context, armature_object: Any) -> None:
    """Draw the last bake's report, folded to a few lines, and grey if it is out of date."""
    from ..ccd_rig.blender.bake import staleness

    report = armature_object.ccd_rig.report
    if not report.words:
        return
    box = layout.box()
    if staleness.is_stale(armature_object):
        draw_words(box, context, "Changed since: bake again", "FILE_REFRESH")
        box = box.column()
        box.active = False
    entries = report_entries(context, report)
    shown = entries if report.show_all else folded(entries)
    lines = box.column(align=True)
    for entry in shown:
        _draw_entry(lines, entry)
    count = sum(entry.finding >= 0 for entry in entries)
    if count or len(entries) > len(folded(entries)):
        _draw_foot(box, report, len(entries) - len(shown), count)


def report_entries(context: bpy.types.Context, report: Any) -> list[Entry]:
    """Entries of a report: the head, the findings, and the rest of the summary."""
    from ..ccd_rig.blender.bake.report import from_json

    findings = from_json(report.findings)
    head, _, rest = report.words.partition("; ")
    entries = [Entry(wrapped(context, head), head_icon(report, findings))]
    check = [Entry(wrapped(context, report.check), "ERROR" if report.mismatches else "CHECKMARK")]
    if report.mismatches:
        entries += check
    # Targets that are missed come first: slides and jumps often end with them.
    shown = sorted(enumerate(findings), key=lambda each: each[1].trouble not in MISSES)[:SHOWN]
    for index, finding in shown:
        lines = wrapped(context, finding.words(), PADDING)
        entries.append(Entry(lines, ICONS[finding.trouble], index, finding.fix))
    troubles = {finding.trouble for finding in findings}
    for words in rest.split("; "):
        is_told = any(words.startswith(finding.words()) for _, finding in shown)
        is_detailed = any(phrase in words and troubles & better for phrase, better in DETAILED.items())
        if not is_told and not is_detailed:
            lines = wrapped(context, words[:1].upper() + words[1:])
            entries.append(Entry(lines, _icon_of(words, report.unsolved > 0)))
    return entries if report.mismatches or not report.check else [*entries, *check]


def head_icon(report: Any, findings: Sequence[Finding]) -> str:
    """Icon of the head: a check mark if all frames are reached and there are no faults."""
    from ..ccd_rig.blender.bake.report import is_sound

    return "CHECKMARK" if is_sound(report.unsolved, report.mismatches, findings) else "ERROR"


def folded(entries: Sequence[Entry]) -> list[Entry]:
    """First entries, as many as fit into `FOLDED` lines, but at least two."""
    shown: list[Entry] = []
    for entry in entries:
        if len(shown) >= 2 and sum(before.height for before in shown) + entry.height > FOLDED:
            break
        shown.append(entry)
    return shown


def _draw_entry(lines: bpy.types.UILayout, entry: Entry) -> None:
    """Draw words, which for a finding are a button to its frame, and the button of its fix below."""
    for i, words in enumerate(entry.lines):
        line = lines.row()
        line.alignment, line.scale_y = "LEFT", LINE
        icon = "BLANK1" if i else entry.icon
        if entry.finding < 0:
            line.label(text=words, icon=icon, translate=False)
        else:
            line.operator("ccd_rig.go_to_frame", text=words, icon=icon, emboss=False).finding = entry.finding
    if entry.fix:
        line = lines.row()
        line.label(text="", icon="BLANK1")
        line.operator("ccd_rig.report_fix", text=FIXES[entry.fix]).finding = entry.finding


def _draw_foot(box: bpy.types.UILayout, report: Any, hidden: int, count: int) -> None:
    """Draw the buttons for markers and for the rest of the report."""
    buttons = box.row(align=True)
    if count:
        more = f" ({count})" if hidden or count > SHOWN else ""
        words = translated(f"Markers{more}")
        buttons.operator("ccd_rig.report_markers", text=words, icon="MARKER_HLT")
        buttons.operator("ccd_rig.report_markers", text="", icon="X").clear = True
    if hidden or report.show_all:
        icon = "DISCLOSURE_TRI_DOWN" if report.show_all else "DISCLOSURE_TRI_RIGHT"
        words = "Less" if report.show_all else f"{hidden} more"
        buttons.prop(report, "show_all", text=translated(words), icon=icon, toggle=True)


def _icon_of(words: str, missed: bool) -> str:
    """Icon of a sentence of the summary; `missed`: whether the bake has missed targets."""
    if not missed and (words.startswith("worst ") or " slide " in words):
        return "INFO"  # visible slides are findings
    if words.endswith("kept"):
        return "KEYFRAME"
    quiet = (
        *("smoothed at ", "the body helps at ", "switched to FK"),
        *(" follows planted bones", " so that legs reach", " walks on by ", "closes"),
    )
    return "INFO" if any(phrase in words for phrase in quiet) else "ERROR"


class CCD_RIG_PT_bake(Sidebar, bpy.types.Panel):
    bl_label = "Solve and Bake"

    needs_constraints = True

    def draw(self, context: bpy.types.Context) -> None:
        from ..ccd_rig.kernel import why_plain

        buttons = self.layout.column(align=True)
        buttons.operator("ccd_rig.solve", icon="POSE_HLT")
        scene = context.scene
        if scene.use_preview_range:
            words = f"Bake Preview {scene.frame_preview_start}–{scene.frame_preview_end}"
        else:
            words = f"Bake {scene.frame_start}–{scene.frame_end}"
        buttons.operator("ccd_rig.bake", text=translated(words), icon="ACTION")
        if len(rigs_to_bake(scene)) > 1:
            buttons.operator("ccd_rig.bake_all", icon="ARMATURE_DATA")
        if words := why_plain():
            draw_words(self.layout, context, words, "INFO")
        draw_report(self.layout, context, active_rig(context))


class CCD_RIG_PT_bake_options(Folded, bpy.types.Panel):
    bl_label = "Bake Options"
    bl_parent_id = "CCD_RIG_PT_bake"

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.fields()
        options = active_rig(context).ccd_rig.bake
        layout.prop(options, "destination")
        layout.prop(options, "start")
        layout.prop(options, "keys")
        if options.keys in ("EVERY_FRAME", "SOLVED_FRAMES"):
            layout.prop(options, "step")
        if options.keys == "REFERENCE_KEYS":
            layout.prop_search(options, "reference_object", bpy.data, "objects")
            reference = bpy.data.objects.get(options.reference_object)
            if reference is not None and reference.pose is not None:
                layout.prop_search(options, "reference_bone", reference.pose, "bones", text="Bone")
        layout.prop(options, "only_selected")
        draw_ground(layout, options)


class CCD_RIG_PT_bake_more(Folded, bpy.types.Panel):
    bl_label = "More"
    bl_parent_id = "CCD_RIG_PT_bake_options"

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.fields()
        options = active_rig(context).ccd_rig.bake
        reduction = layout.column()
        reduction.active = options.keys == "EVERY_FRAME"
        reduction.label(
            text="Reduce Keys"
        )  # full labels would be cut to the same letters in a narrow sidebar
        reduction.prop(options, "reduce_angle", text="Angle")
        reduction.prop(options, "reduce_error", text="Distance")
        layout.prop(options, "smoothness")
        if active_rig(context).ccd_rig.solver.solver == "CCD":
            layout.prop(options, "error_reduction")
        for name in reversed(OPTIONS):
            if name not in PLACED:
                layout.prop(options, name)


class CCD_RIG_PT_fk_ik(Folded, bpy.types.Panel):
    bl_label = "FK to IK"
    bl_parent_id = "CCD_RIG_PT_bake"

    def draw(self, _context: bpy.types.Context) -> None:
        lines = self.layout.column(align=True)
        lines.operator("ccd_rig.targets_match", icon="SNAP_ON")
        lines.operator("ccd_rig.targets_from_motion", icon="CON_FOLLOWPATH")
