"""Random set-ups, far from any that a person makes, and judges that share no code with the product.

`python3 dev.py fuzz` starts it; see `campaign`.
"""

from __future__ import annotations

import hashlib
import signal
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """Outcome of a case.

    Attributes:
        kind: "refused", or the kind of result, for the table.
        faults: messages; none are expected.
        digest: of all results, equal in every process.
    """

    kind: str = ""
    faults: list[str] = field(default_factory=list)
    digest: str = ""

    def note(self, *values: object) -> None:
        """Add values to the digest."""
        self.digest = hashlib.sha256((self.digest + repr(values)).encode()).hexdigest()[:16]


def watch(seconds: float) -> None:
    """End the process after seconds of processor time, even in compiled loops; 0 switches this off."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
