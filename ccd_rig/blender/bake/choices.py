# SPDX-License-Identifier: GPL-3.0-or-later
"""Choices of a bake: keyed frames and base poses."""

import enum


class Keys(enum.Enum):
    """Choice of keyed frames."""

    EVERY_FRAME = "EVERY_FRAME"
    """All frames, with slerps between solved ones; linear between keys."""
    SOLVED_FRAMES = "SOLVED_FRAMES"
    """Solved frames; Blender interpolates between them (Bezier), and limits hold at the keys."""
    TARGET_KEYS = "TARGET_KEYS"
    """Frames at which targets, poles or their movers have keys; solved there, and Bezier between."""
    REFERENCE_KEYS = "REFERENCE_KEYS"
    """Frames at which another object, or a bone of it, has keys; solved there, and Bezier between."""

    @property
    def is_sparse(self) -> bool:
        """Whether Blender interpolates between solved frames."""
        return self is not Keys.EVERY_FRAME


class Start(enum.Enum):
    """Choice of the base pose of each frame, for bones that constraints move."""

    ACTION = "ACTION"
    """The animation; rest for bones without animation, whatever their present pose.

    Bones of converted IK start from the pose that this had.
    """
    ORIGINAL = "ORIGINAL"
    """The animation before the first bake of the action."""
    REST = "REST"
    """The rest pose."""
    POSE = "POSE"
    """The present pose, at every frame."""
