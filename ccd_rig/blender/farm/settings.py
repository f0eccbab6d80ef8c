# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults of jobs."""

PROGRAM = "blender"
"""Executable that runs a task, unless the job names another."""
CHUNK = 0
"""Most frames of a chunk of a shot; 0: the shot is baked whole."""
