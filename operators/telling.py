# SPDX-License-Identifier: GPL-3.0-or-later
"""What operators tell the user, in the user's language."""

import bpy

from ..ccd_rig.blender.languages.translation import REPORTS, translated


def tell(operator: bpy.types.Operator, level: set[str], words: str) -> None:
    """Show a message in Blender's status bar, and an error beside the pointer.

    The status bar shows what comes last: tell what was done first, then what to look at.

    Args:
        operator: whose message it is.
        level: one of INFO, WARNING and ERROR.
        words: the English message.
    """
    operator.report(level, translated(words, REPORTS))
