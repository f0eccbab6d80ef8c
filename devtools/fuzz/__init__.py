"""Random set-ups, far from any that a person makes, and judges that share no code with the product.

`python3 dev.py fuzz` starts it; see `campaign`.
"""

from __future__ import annotations

import hashlib
import signal
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """What became of one set-up.

    Attributes:
        kind: what was made of it: "refused", or what was done.
        faults: what is wrong, in words; it should be nothing.
        digest: of all that came out; the same in every process.
    """

    kind: str = ""
    faults: list[str] = field(default_factory=list)
    digest: str = ""

    def note(self, *values: object) -> None:
        """Let the digest depend on values too."""
        self.digest = hashlib.sha256((self.digest + repr(values)).encode()).hexdigest()[:16]


def watch(seconds: float) -> None:
    """End the process after so many seconds of computing, also in compiled loops; 0: no longer."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
