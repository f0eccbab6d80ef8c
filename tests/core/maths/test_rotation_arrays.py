"""Rotations as arrays: against their definitions, and alike wherever the components are."""

import numpy as np
import pytest

from ccd_rig.maths import batch

EXACT = 1e-12


def random_rotations(seed, *shape):
    values = np.random.default_rng(seed).normal(size=(*shape, 4))
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def product(a, b):
    """Hamilton product, written from its definition by scalar and vector parts."""
    v = a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
    return np.array([a[0] * b[0] - np.dot(a[1:], b[1:]), *v])


def test_multiply_is_the_hamilton_product():
    a, b = random_rotations(1, 2, 50)
    for each, p, q in zip(batch.multiply(a, b, axis=-1), a, b, strict=True):
        assert np.abs(each - product(p, q)).max() < EXACT


def test_products_have_the_same_bits_however_many_they_are():
    a, b = np.moveaxis(random_rotations(11, 2, 500), -1, 1)
    whole = batch.multiply(a, b)
    for size in (1, 2, 7, 64):
        assert np.array_equal(batch.multiply(a[:, :size], b[:, :size]), whole[:, :size])


def test_matrices_of_one_and_of_many_agree():
    rotations = random_rotations(12, 20)
    many = batch.matrices(rotations.T)
    for k, rotation in enumerate(rotations):
        assert np.abs(batch.matrices(rotation) - many[..., k]).max() < EXACT


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-12, 1e-4, 0.5, 3.0, np.pi - 1e-4, np.pi - 1e-9])
def test_exponential_and_logarithm_are_inverse(angle):
    axis = random_rotations(13, 30)[:, 1:].T
    vectors = angle * axis / np.linalg.norm(axis, axis=0)
    assert np.abs(batch.logarithm(batch.exponential(vectors)) - vectors).max() < 1e-7


def test_rotate_is_the_sandwich_product():
    rotations, vectors = random_rotations(4, 50), np.random.default_rng(4).normal(size=(50, 3))
    for q, v, rotated in zip(rotations, vectors, batch.rotate(rotations, vectors, axis=-1), strict=True):
        expected = product(product(q, np.array([0.0, *v])), q * [1, -1, -1, -1])[1:]
        assert np.abs(rotated - expected).max() < EXACT


@pytest.mark.parametrize("axis", [1, -1])
def test_components_may_stand_anywhere(axis):
    a, b = random_rotations(7, 2, 5, 3)  # (5, 3, 4)
    vectors = np.random.default_rng(8).normal(size=(5, 3, 3))
    first = [np.moveaxis(each, -1, 0) for each in (a, b, vectors)]
    moved = [np.moveaxis(each, -1, axis) for each in (a, b, vectors)]
    parts = np.random.default_rng(9).random((5, 3))
    for function, arguments in (
        (batch.multiply, (0, 1)),
        (batch.rotate, (0, 2)),
        (batch.unit, (2,)),
    ):
        expected = function(*(first[k] for k in arguments))
        found = function(*(moved[k] for k in arguments), axis=axis)
        assert np.array_equal(np.moveaxis(found, axis, 0), expected)
    slerped = batch.slerp(moved[0], moved[1], parts, axis=axis)
    assert np.array_equal(np.moveaxis(slerped, axis, 0), batch.slerp(first[0], first[1], parts))
    for function in (batch.dot, batch.angles_between):
        assert np.array_equal(function(moved[0], moved[1], axis=axis), function(first[0], first[1]))


def test_angles_between_take_the_shorter_way():
    a, angle = random_rotations(2, 40), np.linspace(0.0, np.pi, 40)
    turn = np.stack((np.cos(0.5 * angle), np.sin(0.5 * angle), 0.0 * angle, 0.0 * angle), axis=-1)
    b = batch.multiply(a, turn, axis=-1)
    assert np.abs(batch.angles_between(a, b, axis=-1) - angle).max() < 1e-7
    assert np.abs(batch.angles_between(a, -b, axis=-1) - angle).max() < 1e-7


def test_quaternions_of_matrices():
    rotations = np.random.default_rng(3).normal(size=(1000, 4))
    rotations[:7] = [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [0, 1, 1, 0],
        [1e-9, 1, 0, 0],
        [0, 1, -1, 1],
    ]
    rotations = batch.unit(rotations.T)
    again = batch.quaternions(batch.matrices(rotations))
    assert np.abs(np.abs((again * rotations).sum(0)) - 1.0).max() < 1e-14
    assert (again[0] >= 0.0).all()


@pytest.mark.parametrize("stretch", [0.0, 1e-6, 0.1, 0.6])
def test_nearest_rotations_are_those_of_the_singular_value_decomposition(stretch):
    """Of R S with S symmetric and positive it is R; with shear too it is U V^T."""
    draw = np.random.default_rng(5)
    rotations = batch.matrices(np.moveaxis(random_rotations(3, 200), -1, 0))
    shears = np.eye(3)[..., None] + stretch * draw.uniform(-0.5, 0.5, (3, 3, 200))
    scaled = np.einsum("ij...,jk...->ik...", rotations, shears) * draw.uniform(0.01, 100.0, 200)
    left, _, right = np.linalg.svd(np.moveaxis(scaled, -1, 0))
    nearest = batch.nearest_rotations(scaled)
    assert np.abs(np.moveaxis(left @ right, 0, -1) - nearest).max() < EXACT
    if stretch == 0.0:
        assert np.abs(rotations - nearest).max() < EXACT


def test_nearest_rotations_have_the_same_bits_alone():
    scaled = np.random.default_rng(2).normal(size=(3, 3, 300))
    scaled *= np.sign(np.linalg.det(np.moveaxis(scaled, -1, 0)))
    whole = batch.nearest_rotations(scaled)
    for k in range(40):
        assert (batch.nearest_rotations(scaled[..., k : k + 1]) == whole[..., k : k + 1]).all()


def test_a_flat_matrix_has_no_nearest_rotation():
    assert np.isnan(batch.nearest_rotations(np.diag((1.0, 1.0, 0.0))[..., None])).all()
