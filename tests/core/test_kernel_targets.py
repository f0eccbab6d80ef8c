"""Targets of constraints from matrices: beside products of NumPy, for each combination of uses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from mathutils import Matrix

from ccd_rig.kernel import write_targets

SINGLE = 1e-5
USES = list(itertools.product((-1, 0, 1, 2), (0, 1, 2), (0, 1, 2), (0, 1)))
"""(pole, rotation, space of the offset, whether it is keyed)"""


def affine(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """(*shape, 4, 4) matrices that turn, scale, shear and mirror."""
    matrices = np.zeros((*shape, 4, 4))
    matrices[..., :3, :] = rng.normal(size=(*shape, 3, 4))
    matrices[..., 3, 3] = 1.0
    return matrices


@pytest.mark.parametrize("above_each", [True, False])
def test_targets_are_those_of_matrix_products(above_each: bool) -> None:
    rng, rows, number, count = np.random.default_rng(907), 3, 3, len(USES)
    world, to_armature = affine(rng, rows, number), affine(rng, rows if above_each else 1)
    are_local = np.array([0, 1, 0], np.int32)
    at = np.arange(count) % number
    uses = np.array([(t, *use) for t, use in zip(at.tolist(), USES, strict=True)], np.int32)
    axes, offsets = rng.normal(size=(count, 3)), rng.normal(size=(count, 3))
    targets = rng.normal(size=(rows, count, 16)).astype(np.float32)
    before, matrices = targets.astype(np.float64), world.reshape(rows, -1).copy()
    flat = targets.reshape(rows, -1)
    write_targets(matrices, are_local, to_armature.reshape(-1, 16), uses, axes, offsets, flat)
    below = np.where(are_local[:, None, None] == 1, world, to_armature[:, None] @ world)
    assert matrices.reshape(rows, number, 4, 4) == pytest.approx(below, abs=1e-12)
    for k, (c, (pole, rotation, space, is_keyed)) in itertools.product(range(rows), enumerate(USES)):
        matrix, expected = below[k, at[c]], before[k, c].copy()
        shift = before[k, c, 13:] if is_keyed else offsets[c]
        turn = (matrix, np.eye(4), to_armature[k if above_each else 0])[space]
        expected[:3] = matrix[:3, 3] + turn[:3, :3] @ shift
        if rotation == 1:
            expected[3:7] = along(matrix)
        if rotation == 2:
            expected[7:10] = matrix[:3, :3] @ axes[c] / np.linalg.norm(matrix[:3, :3] @ axes[c])
        if pole >= 0:
            expected[10:13] = below[k, pole, :3, 3]
        assert targets[k, c] == pytest.approx(expected, abs=SINGLE, rel=SINGLE), (k, c)


def along(matrix: np.ndarray) -> np.ndarray:
    """The quaternion whose Y axis is the matrix's, with Z in the plane of both axes."""
    y = matrix[:3, 1] / np.linalg.norm(matrix[:3, 1])
    x = np.cross(y, matrix[:3, 2])
    x /= np.linalg.norm(x)
    return np.array(Matrix(np.array([x, y, np.cross(x, y)]).T.tolist()).to_quaternion())


def test_planted_bones_without_a_target_have_their_point_at_the_origin() -> None:
    targets, uses = np.ones((1, 16), np.float32), np.array([[-1, -1, 1, 0, 0]], np.int32)
    flat = np.eye(4).reshape(1, 16)
    write_targets(flat.copy(), np.zeros(1, np.int32), flat, uses, np.ones((1, 3)), np.ones((1, 3)), targets)
    assert targets[0].tolist() == [0.0] * 3 + [1.0] * 13


def test_an_axis_without_length_is_no_direction() -> None:
    """The caller looks for numbers that are not finite, and names the constraint."""
    targets, uses = np.ones((1, 16), np.float32), np.array([[0, -1, 2, 0, 0]], np.int32)
    flat = np.eye(4).reshape(1, 16)
    write_targets(flat.copy(), np.zeros(1, np.int32), flat, uses, np.zeros((1, 3)), np.zeros((1, 3)), targets)
    assert np.isnan(targets[0, 7:10]).all()


@pytest.mark.parametrize("far", [0.0, 1e6, 1e12, 1e15])
def test_the_direction_of_a_target_does_not_depend_on_its_place(far: float) -> None:
    rng, targets = np.random.default_rng(908), np.ones((1, 16), np.float32)
    matrix, uses, axis = affine(rng), np.array([[0, -1, 2, 0, 0]], np.int32), rng.normal(size=(1, 3))
    matrix[:3, 3] = (far, -far, 0.5 * far)
    local, flat = np.ones(1, np.int32), np.eye(4).reshape(1, 16)
    write_targets(matrix.reshape(1, 16).copy(), local, flat, uses, axis, np.zeros((1, 3)), targets)
    expected = matrix[:3, :3] @ axis[0]
    assert targets[0, 7:10] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-7)
