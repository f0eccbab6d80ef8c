# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve, bake and what the last bake came to; its options, and the way from FK to IK, folded away."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import bpy

from ..ccd_rig.blender.bake import staleness
from ..ccd_rig.blender.bake.bake_all import rigs
from ..ccd_rig.blender.bake.report import Finding, Fix, Trouble, from_json
from ..ccd_rig.blender.languages.translation import translated
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.kernel import why_plain
from .sidebar import LINE, Sidebar, draw_ground, draw_words, wrapped

PADDING = 8  # [pixels] on either side of a button's words at scale 1
SHOWN = 30
"""Findings that the panel shows; markers show all."""
FOLDED = 7
"""Lines of a folded report, below which what stands further down in the tab would be out of sight."""
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
}
FIXES = {  # short: a narrow sidebar has little room
    Fix.EXTENSION: "Reach 0.98",
    Fix.SOFT: "Softness 0.05",
    Fix.POLE: "Add Pole",
    Fix.LEAST_SQUARES: "Smooth",
    Fix.FK: "Switch to FK",
}
TOLD = {
    "worst ": set(Trouble),
    " turns ": {Trouble.JUMP},
    " slide ": {Trouble.SLIDE},
    " climbs ": {Trouble.CLIMB},
    " sinks ": {Trouble.SINK},
    " tips by ": {Trouble.TIP},
    " floats, held ": {Trouble.FLOAT},
}
"""Parts of the summary that findings of these sorts tell better."""


class Part(NamedTuple):
    """A part of the report.

    Attributes:
        lines: its words, wrapped.
        icon: beside the first of them.
        finding: which one it is; -1 for none.
        fix: of the finding.
    """

    lines: list[str]
    icon: str
    finding: int = -1
    fix: Fix = Fix.NONE

    @property
    def height(self) -> int:
        """How many lines it takes, a button counted as two."""
        return len(self.lines) + (2 if self.fix else 0)


def draw_report(layout: bpy.types.UILayout, context: bpy.types.Context, armature_object: Any) -> None:
    """The last bake's report, folded to a few lines; grey once it is out of date, nothing before the first
    bake."""
    report = armature_object.ccd_rig.report
    if not report.words:
        return
    box = layout.box()
    if staleness.is_stale(armature_object):
        draw_words(box, context, "Changed since: bake again", "FILE_REFRESH")
        box = box.column()
        box.active = False
    parts = report_parts(context, report)
    shown = parts if report.show_all else folded(parts)
    lines = box.column(align=True)
    for part in shown:
        _draw_part(lines, part)
    count = sum(part.finding >= 0 for part in parts)
    if count or len(parts) > len(folded(parts)):
        _draw_foot(box, report, len(parts) - len(shown), count)


def report_parts(context: bpy.types.Context, report: Any) -> list[Part]:
    """All parts of a report: the head, what was found, and what the bake says of itself."""
    found = from_json(report.findings)
    head, _, rest = report.words.partition("; ")
    parts = [Part(wrapped(context, head), _icon_of_head(report, found))]
    check = [Part(wrapped(context, report.check), "ERROR" if report.mismatches else "CHECKMARK")]
    if report.mismatches:
        parts += check
    for index, each in enumerate(found[:SHOWN]):
        parts.append(Part(wrapped(context, each.words(), PADDING), ICONS[each.trouble], index, each.fix))
    sorts = {each.trouble for each in found}
    for words in rest.split("; "):
        if not any(part in words and sorts & better for part, better in TOLD.items()):
            parts.append(
                Part(wrapped(context, words[:1].upper() + words[1:]), _icon_of(words, report.unsolved > 0))
            )
    return parts if report.mismatches or not report.check else [*parts, *check]


def _icon_of_head(report: Any, found: Sequence[Finding]) -> str:
    """A check mark only for a bake without faults, however many frames are reached."""
    # That a limit holds a bone is no fault, nor that a bone leaps as its target does.
    faults = {each.trouble for each in found if not each.follows} - {Trouble.LIMIT}
    return "ERROR" if report.unsolved or report.mismatches or faults else "CHECKMARK"


def folded(parts: Sequence[Part]) -> list[Part]:
    """The first parts, as many as fit into a few lines, two in any case."""
    shown: list[Part] = []
    for part in parts:
        if len(shown) >= 2 and sum(each.height for each in shown) + part.height > FOLDED:
            break
        shown.append(part)
    return shown


def _draw_part(lines: bpy.types.UILayout, part: Part) -> None:
    """Its words; those of a finding go to its frame, and the button that helps stands below them."""
    for i, words in enumerate(part.lines):
        line = lines.row()
        line.alignment, line.scale_y = "LEFT", LINE
        icon = "BLANK1" if i else part.icon
        if part.finding < 0:
            line.label(text=words, icon=icon, translate=False)
        else:
            line.operator("ccd_rig.go_to_frame", text=words, icon=icon, emboss=False).finding = part.finding
    if part.fix:
        line = lines.row()
        line.label(text="", icon="BLANK1")
        line.operator("ccd_rig.report_fix", text=FIXES[part.fix]).finding = part.finding


def _draw_foot(box: bpy.types.UILayout, report: Any, hidden: int, count: int) -> None:
    """Markers of what was found, and the rest of the report."""
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
    """Of a part of the summary of a bake that has missed targets, or has not."""
    if not missed and (words.startswith("worst ") or " slide " in words):
        return "INFO"  # a slide that is seen is told as a finding
    if words.endswith("kept"):
        return "KEYFRAME"
    quiet = (" follows planted bones", " so that legs reach", " walks on by ", "closes", "witched to FK")
    return "INFO" if any(part in words for part in quiet) else "ERROR"


class CCD_RIG_PT_bake(Sidebar, bpy.types.Panel):
    bl_label = "Solve and Bake"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        armature_object = active_rig(context)
        return armature_object is not None and len(armature_object.ccd_rig.constraints) > 0

    def draw(self, context: bpy.types.Context) -> None:
        buttons = self.layout.column(align=True)
        buttons.operator("ccd_rig.solve", icon="POSE_HLT")
        scene = context.scene
        if scene.use_preview_range:
            words = f"Bake Preview {scene.frame_preview_start}–{scene.frame_preview_end}"
        else:
            words = f"Bake {scene.frame_start}–{scene.frame_end}"
        buttons.operator("ccd_rig.bake", text=translated(words), icon="ACTION")
        if len(rigs(scene)) > 1:
            buttons.operator("ccd_rig.bake_all", icon="ARMATURE_DATA")
        if words := why_plain():
            draw_words(self.layout, context, words, "INFO")
        draw_report(self.layout, context, active_rig(context))


class CCD_RIG_PT_bake_options(Sidebar, bpy.types.Panel):
    bl_label = "Bake Options"
    bl_parent_id = "CCD_RIG_PT_bake"
    bl_options = {"DEFAULT_CLOSED"}

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


class CCD_RIG_PT_bake_more(Sidebar, bpy.types.Panel):
    bl_label = "More"
    bl_parent_id = "CCD_RIG_PT_bake_options"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.fields()
        options = active_rig(context).ccd_rig.bake
        fewer = layout.column()
        fewer.active = options.keys == "EVERY_FRAME"
        fewer.label(text="Reduce Keys")  # whole labels would be cut to the same letters in a narrow sidebar
        fewer.prop(options, "reduce_angle", text="Angle")
        fewer.prop(options, "reduce_error", text="Distance")
        layout.prop(options, "smoothness")
        if active_rig(context).ccd_rig.solver.solver == "CCD":
            layout.prop(options, "error_reduction")
        layout.prop(options, "switch_to_fk")
        layout.prop(options, "verify")


class CCD_RIG_PT_fk_ik(Sidebar, bpy.types.Panel):
    bl_label = "FK to IK"
    bl_parent_id = "CCD_RIG_PT_bake"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, _context: bpy.types.Context) -> None:
        lines = self.layout.column(align=True)
        lines.operator("ccd_rig.targets_match", icon="SNAP_ON")
        lines.operator("ccd_rig.targets_from_motion", icon="CON_FOLLOWPATH")
