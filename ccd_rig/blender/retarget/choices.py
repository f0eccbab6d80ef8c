# SPDX-License-Identifier: GPL-3.0-or-later
"""Choices of a retargeting: files with motion, and the frame of a source that is its reference."""

import enum

CLIPS = (".blend", ".bvh", ".fbx", ".glb", ".gltf")
"""Endings of files that are read."""


class ReferenceFrame(enum.Enum):
    """Choice of the frame of a source that is its reference."""

    FIRST = "FIRST"
    CURRENT = "CURRENT"
    STRAIGHTEST = "STRAIGHTEST"
