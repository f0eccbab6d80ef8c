"""How many frames of a search are solved, counted while it goes on."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Count:
    """The poses of one group of goals.

    Attributes:
        poses: how many there are.
        share: what each of them is of a frame: 1 where the group is all there is to solve.
        ended: how many have ended: they meet their goals, win nothing more, or have had all their iterations.
        beside: how many were solved besides: some ahead of all, and some once more.
    """

    poses: int
    share: float
    ended: int = 0
    beside: int = 0

    def note(self, poses: int, is_first: bool = True) -> None:
        """So many poses more have ended, of all or besides."""
        if is_first:
            self.ended = min(self.ended + poses, self.poses)
        else:
            self.beside += poses

    def finish(self) -> None:
        """All have ended."""
        self.ended = self.poses


@dataclass
class Tally:
    """How many frames are solved: those of the parts of a search that are over, and of the present one.

    Attributes:
        parts: searches beside one another that share each frame.
    """

    parts: int = 1
    _over: int = 0
    _frames: int = 0
    _counts: list[Count] = field(default_factory=list)

    def begin(self, frames: int) -> None:
        """The next frames are solved."""
        self._frames, self._counts, self.parts = frames, [], 1

    def count(self, poses: int, groups: int) -> Count:
        """The count of one of the groups that make up some of these frames."""
        self._counts.append(Count(poses, 1.0 / (self.parts * groups)))
        return self._counts[-1]

    def end(self) -> None:
        """All of them are solved, and nothing is left to do about them."""
        self._over, self._frames, self._counts = self._over + self._frames, 0, []

    @property
    def done(self) -> int:
        """Frames that are solved; the last of those begun counts when nothing is left to do about any."""
        ended = sum(count.ended * count.share for count in self._counts)
        return self._over + max(min(int(ended + 1e-6), self._frames - 1), 0)

    @property
    def beside(self) -> int:
        """How often poses were solved beside those of the present frames."""
        return sum(count.beside for count in self._counts)
