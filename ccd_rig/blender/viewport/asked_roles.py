# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles of bones that are shown in the viewport while a dialog asks for them, before anything is made."""

from __future__ import annotations

from collections.abc import Mapping

asked: dict[str, Mapping[str, str]] = {}
"""By the name of an armature object the words of its bones' roles, as they are in the dialog now."""
