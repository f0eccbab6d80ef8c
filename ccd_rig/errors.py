"""Errors in the user's words: a message names the joint, bone or field and says what to do."""

from __future__ import annotations

from collections.abc import Callable


class CCDRigError(Exception):
    """Root of all errors that CCD Rig raises on purpose."""


class InvalidInput(CCDRigError):
    """A value that the core cannot take: the message names the field and what would be right.

    Args:
        words: the message; or, where it tells lengths, a function of the metres of a unit of length.
    """

    def __init__(self, words: str | Callable[[float], str]) -> None:
        super().__init__(words if isinstance(words, str) else words(1.0))
        self._words = words

    def told(self, metres: float) -> str:
        """Return the message in metres, by the metres of a unit of length."""
        return self._words if isinstance(self._words, str) else self._words(metres)


class RigError(CCDRigError):
    """A state of the Blender file that cannot be worked with: the message names the bone or object."""
