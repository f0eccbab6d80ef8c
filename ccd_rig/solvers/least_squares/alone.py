"""Where the base pose of each frame alone would lead, beside what a sequence of frames ended as."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...maths.batch import Array, Indices, Mask
from .departures import departures, largest_changes, neighbours
from .frames import Frames, put
from .requests import Search, solving
from .residuals import Pole
from .solve import Solved

SAME = 1.5e-4
"""Radians by which joints of poses that went the same way may differ."""
ABOUT = 64
"""Frames within which others may lead elsewhere too."""
OF_POLES = 4
"""Of so many frames one is asked. Where a pole is behind a chain its base pose leads round one side or the
other, for a few frames in a row."""
KINK, KINK_PARTS = 0.02, 3.0
"""Radians by which a joint changes from frame to frame beside its base, and parts of the changes before and
after, above which another way may begin there."""


@dataclass(frozen=True)
class Alone:
    """What frames end as when each is solved from its base pose alone, as far as that is known.

    Attributes:
        known: (F,) of which frames.
        solved: of all frames; of those that are not known it means nothing.
    """

    known: Mask
    solved: Solved

    def noted(self, some: Indices, solved: Solved) -> Alone:
        """The same, knowing some more frames."""
        known = self.known.copy()
        known[some] = True
        return Alone(known, put(self.solved, some, solved))

    def differences(self, frames: Frames, found: Solved) -> Array:
        """(F,) radians from what was found to where base poses lead, the largest of a joint.

        0 where that is the same or not known, and for frames that miss their goals or are fixed.
        """
        asked = np.flatnonzero(self.known & ~frames.fixed & (found.excess <= 1.0))
        given, layout = frames.given.at(asked), frames.problem.layout
        theirs = departures(layout, given, self.solved.state.at(asked))
        changes = largest_changes(departures(layout, given, found.state.at(asked)), theirs)
        found_changes = np.zeros(len(self.known))
        found_changes[asked] = np.where(changes > SAME, changes, 0.0)
        return found_changes

    def led(self, frames: Frames, found: Solved) -> tuple[Mask, Array]:
        """(F,) frames that meet their goals, but not where their base poses alone lead; and (F,) radians from
        there to where these lead, if goals are met there too, else 0.

        What is not known counts as ending where its base pose alone leads.
        """
        differences = self.differences(frames, found)
        return differences > 0.0, np.where(self.solved.excess <= 1.0, differences, 0.0)


def where_bases_lead(frames: Frames, found: Solved, alone: Alone) -> Search[Alone]:
    """What frames end as alone, known of all that may have gone another way because of those beside them.

    What is not known is seen by solving from base poses: frames beside a kink, one in `OF_POLES` where there
    are poles, and all about those that lead elsewhere. Every frame is solved once at most.
    """
    asked = _beside_kinks(frames, found)
    if any(isinstance(block, Pole) for block in frames.problem.blocks):
        asked |= frames.times % OF_POLES == 0.0
    while True:
        asked |= _about(alone.differences(frames, found) > 0.0)
        rows = np.flatnonzero(asked & ~alone.known & ~frames.fixed)
        if not len(rows):
            return alone
        given, base, limits = frames.given.at(rows), frames.base.at(rows), frames.limits.at(rows)
        alone = alone.noted(rows, (yield from solving(frames.problem, given, base, limits)))


def _beside_kinks(frames: Frames, found: Solved) -> Mask:
    """(F,) frames before and after a change that is far larger than those before and after it."""
    departed = departures(frames.problem.layout, frames.given, found.state)
    changes = largest_changes(*neighbours(departed))
    beside = np.maximum(np.append(0.0, changes[:-1]), np.append(changes[1:], 0.0))
    kinks = changes > np.maximum(KINK, KINK_PARTS * beside)
    return np.asarray(np.append(kinks, False) | np.append(False, kinks))


def _about(marked: Mask) -> Mask:
    """(F,) frames at most `ABOUT` before or after a marked one."""
    count = np.append(0, np.cumsum(marked))
    places = np.arange(len(marked))
    first, end = np.maximum(places - ABOUT, 0), np.minimum(places + ABOUT + 1, len(marked))
    return np.asarray(count[end] > count[first])
