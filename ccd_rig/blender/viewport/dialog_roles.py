# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles in the dialog of Set Up Figure, shown in the viewport before anything is made."""

from __future__ import annotations

from collections.abc import Mapping

dialog_roles: dict[str, Mapping[str, str]] = {}
"""Name of an armature object -> bone -> its role in the open dialog, in words."""
