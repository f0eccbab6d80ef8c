"""Errors in the user's words: a message names the joint, bone or field and says what to do."""


class CCDRigError(Exception):
    """Root of all errors that CCD Rig raises on purpose."""


class InvalidInput(CCDRigError):
    """A value that the core cannot take: the message names the field and what would be right."""


class RigError(CCDRigError):
    """A state of the Blender file that cannot be worked with: the message names the bone or object."""
