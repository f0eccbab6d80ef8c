"""Settings of contacts of feet with the ground, see `contacts`."""

from __future__ import annotations

from dataclasses import dataclass

from ..maths.validation import ranged, require_ranges


@dataclass(frozen=True)
class ContactThresholds:
    """Thresholds of contacts; lengths are in leg lengths, for figures of any size.

    Of feet that go fast the speed is higher, see above, and the times are shorter, see `shortest_contact`.

    Attributes:
        speed: a contact begins where the bone is slower than this, in lengths of its leg per second.
        height: a contact begins where the bone is nearer than this to the ground, in lengths of its leg.
        release: a contact ends at this many times Speed or Height, so that noise does not break it.
        shortest: shorter gaps between contacts are closed, and shorter contacts are left out [seconds].

    Raises:
        InvalidInput: names the field.
    """

    speed: float = ranged(0.4, 0.001)
    height: float = ranged(0.1, 0.001)
    release: float = ranged(1.5, 1.0)
    shortest: float = ranged(0.1, 0.0)

    def __post_init__(self) -> None:
        require_ranges(self)
