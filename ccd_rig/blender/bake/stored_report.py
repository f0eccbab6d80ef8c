# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bake came to, as the file keeps it for the panel."""

from __future__ import annotations

import contextlib

import bpy

from ...solvers.stepping import Work
from . import finding, staleness
from .report import BakeReport


def store_report(
    armature_object: bpy.types.Object, report: BakeReport, undo: contextlib.ExitStack
) -> Work[None]:
    """Keep what a bake came to, in words, for the panel; `undo` gets what takes that back."""
    group, worst = armature_object.ccd_rig.report, report.worst()
    stored = {
        "words": report.summary(),
        "worst_frame": worst.frame,
        "worst_constraint": worst.constraint,
        "unsolved": report.unsolved_count(),
        "check": "" if report.check is None else report.check.words(),
        "mismatches": 0 if report.check is None else len(report.check.mismatches()),
        "findings": finding.to_json(report.findings),
    }
    undo.callback(_restore_fields, group, {name: _stored(group, name) for name in (*stored, "state")})
    for name, value in stored.items():
        setattr(group, name, value)
    staleness.forget()
    yield
    group.state = yield from staleness.state_of(armature_object)


def _stored(group: bpy.types.PropertyGroup, name: str) -> object:
    return getattr(group, name) if group.is_property_set(name) else None


def _restore_fields(group: bpy.types.PropertyGroup, fields: dict[str, object]) -> None:
    for name, value in fields.items():
        if value is None:
            group.property_unset(name)
        else:
            setattr(group, name, value)
