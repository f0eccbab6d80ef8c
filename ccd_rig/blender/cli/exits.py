# SPDX-License-Identifier: GPL-3.0-or-later
"""How a command ends."""

import enum


class Exit(enum.IntEnum):
    """Exit codes; `--help` lists them."""

    DONE = 0
    PROBLEMS = 1
    USAGE = 2
    NOT_REACHED = 3
    NOT_WRITTEN = 4
    INTERRUPTED = 130


class UsageError(Exception):
    """What was asked for makes no sense, whatever the set-up in the file is."""
