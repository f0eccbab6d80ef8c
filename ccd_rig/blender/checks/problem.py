"""One thing that is wrong with a set-up. Every check gives these."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        severity: "ERROR" keeps the armature from being solved; "WARNING" does not, but what plays afterwards
            may surprise.
        where: name of the constraint, bone or object.
        message: what is wrong and what to do, with the name.
    """

    severity: str
    where: str
    message: str
