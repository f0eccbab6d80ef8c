"""Coupled offsets over many poses: where they shift joints, and what that adds to the columns of hinges.

A coupled offset moves what a slide of its joint would move. Its shift is no unknown but a function of a
hinge's angle, so its derivative belongs to the column of that hinge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...limits.shapes import Hinge
from ...maths.batch import Array, matrices
from ...skeleton.coupled_offset import coupled_angles
from ...skeleton.joints import Coupling, Skeleton


@dataclass(frozen=True)
class CoupledRow:
    """A coupled offset in a layout.

    Attributes:
        coupling: in the skeleton.
        row: of the joint that is shifted. driver: of the joint whose angle counts.
        parent: row of the parent of the joint that is shifted, -1 for a root.
        column: of the hinge, -1 where it does not move.
        sign: -1 where the column counts angles about the opposite axis, else 1.
    """

    coupling: Coupling
    row: int
    driver: int
    parent: int
    column: int
    sign: float

    def shift(self, rotations: Array, rests: Array) -> Array:
        """(3, B) the shift in the parent's frame, of rotations (4, rows, B) and rests (4, rows, B or 1)."""
        angles = coupled_angles(self.coupling.hinge, rotations[:, self.driver])
        return self._along(rests) * self.coupling.offset.evaluate(angles)[0]

    def rate(self, rotations: Array, rests: Array, transforms: Array) -> Array:
        """(3, B) model units by which a radian of the column shifts the joint, model space.

        Args:
            rotations, rests: as above.
            transforms: (rows, 3, 4, B) model space.
        """
        angles = coupled_angles(self.coupling.hinge, rotations[:, self.driver])
        rate = self.sign * self._along(rests) * self.coupling.offset.evaluate(angles)[1]
        if self.parent == -1:
            return np.asarray(rate)
        return np.asarray(np.einsum("ijb,jb->ib", transforms[self.parent, :, :3], rate))

    def _along(self, rests: Array) -> Array:
        """(3, B or 1) the direction of the shift in the parent's frame."""
        turn = matrices(rests[:, self.row])
        return np.asarray(np.einsum("ijb,j->ib", turn, np.array(self.coupling.offset.axis)))


def coupled_rows(
    skeleton: Skeleton, row: dict[int, int], hinges: list[Hinge], hinge_joints: list[int]
) -> list[CoupledRow]:
    """The coupled offsets of the joints that matter.

    Args:
        skeleton: the joints.
        row: of each joint that matters.
        hinges, hinge_joints: of each hinge column, and the joint that it turns.
    """
    found = []
    for coupling in skeleton.couplings:
        if coupling.joint not in row:
            continue
        column, sign = -1, 1.0
        if hinge_joints.count(coupling.driver) == 1:
            column = hinge_joints.index(coupling.driver)
            own, wanted = hinges[column].axis, coupling.hinge.axis
            sign = 1.0 if sum(a * b for a, b in zip(own, wanted, strict=True)) > 0.0 else -1.0
        parent = skeleton.joints[coupling.joint].parent
        found.append(
            CoupledRow(coupling, row[coupling.joint], row[coupling.driver], row.get(parent, -1), column, sign)
        )
    return found
