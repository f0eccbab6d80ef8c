"""How constraints stand at frames, kept as arrays: objects of a crowd would fill the memory.

Knows nothing of Blender.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ...settings import SolveStatus
from .report_parts import SLERPED, Entry, number

Floats = NDArray[np.float64]
STATUSES = (*(status.name for status in SolveStatus), SLERPED)
"""What `Entry.status` may be."""
_NOT_MISSED = [STATUSES.index(name) for name in (SolveStatus.CONVERGED.name, SLERPED)]


@dataclass(frozen=True, eq=False)
class Entries(Sequence[Entry]):
    """Entries, made as they are asked for. E counts them.

    Attributes:
        names: of the constraints.
        frame: (E,) as in `Entry`, as are those below.
        constraint: (E,) indices in `names`.
        status: (E,) indices in `STATUSES`.
        residual, keyed_residual, influence, angle, keyed_angle: (E,).
    """

    names: tuple[str, ...]
    frame: Floats
    constraint: NDArray[np.int16]
    status: NDArray[np.uint8]
    residual: Floats
    keyed_residual: Floats
    influence: Floats
    angle: Floats
    keyed_angle: Floats

    def __len__(self) -> int:
        return len(self.frame)

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Entry, ...]: ...
    def __getitem__(self, place: int | slice) -> Entry | tuple[Entry, ...]:
        if isinstance(place, slice):
            return tuple(self._made(place))
        return next(self._made([range(len(self))[place]]))

    def __iter__(self) -> Iterator[Entry]:
        return self._made(slice(None))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entries) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as of all that holds arrays

    def worst(self, tolerance: float, angle_tolerance: float) -> Entry:
        """The one that is farthest off, in tolerances; the earliest of equals."""
        off = np.maximum(self.residual / tolerance, self.angle / angle_tolerance)
        return self[int(np.argmax(off))]

    def missed(self) -> tuple[Entry, ...]:
        """Those of solved frames that are not within the tolerances."""
        return tuple(self._made(np.flatnonzero(self._is_missed())))

    def missed_frames(self) -> int:
        """How many frames miss at least one constraint."""
        return len(np.unique(self.frame[self._is_missed()]))

    def solved_frames(self) -> int:
        """How many frames were solved."""
        return len(np.unique(self.frame[self.status != STATUSES.index(SLERPED)]))

    def _is_missed(self) -> NDArray[np.bool_]:
        return ~np.isin(self.status, _NOT_MISSED)

    def _made(self, places: Any) -> Iterator[Entry]:
        columns = [getattr(self, each.name)[places].tolist() for each in fields(self)[1:]]
        for frame, constraint, status, *numbers in zip(*columns, strict=True):
            yield Entry(number(frame), self.names[constraint], STATUSES[status], *numbers)
