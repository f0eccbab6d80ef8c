# SPDX-License-Identifier: GPL-3.0-or-later
"""Destination of the keys of a bake."""

from enum import Enum


class Destination(Enum):
    """Destination of keys."""

    NEW_ACTION = "NEW_ACTION"
    CURRENT_ACTION = "CURRENT_ACTION"
    NLA_STRIP = "NLA_STRIP"
