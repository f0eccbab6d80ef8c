"""Ground that moves, beside the same ground at each row."""

from __future__ import annotations

import numpy as np
import pytest

from ccd_rig.errors import InvalidInput
from ccd_rig.motion.ground import GroundBlock, MovingGround, TriangleGround

ROWS = 12


def waves(random, count=14, wide=1.0):
    """(R, V, 3) vertices of a grid that travels and waves, uneven, and its (T, 3) triangles."""
    line = np.linspace(0.0, wide, count)
    x, y = (each.ravel() for each in np.meshgrid(line, line))
    x, y = (each + random.uniform(-0.3, 0.3, len(x)) * wide / count for each in (x, y))
    rows = np.arange(ROWS)[:, None]
    z = 0.1 * np.sin(7.0 * x + 0.3 * rows) + random.uniform(0.0, 0.02, len(x))
    at = np.arange(count * count).reshape(count, count)
    a, b, c, d = (each.ravel() for each in (at[:-1, :-1], at[:-1, 1:], at[1:, 1:], at[1:, :-1]))
    faces = np.concatenate((np.stack((a, b, c), 1), np.stack((a, c, d), 1)))
    return np.stack((x + 0.04 * rows, y - 0.02 * rows, z), axis=-1), faces


def blocks_of(vertices, faces, size):
    every = np.arange(len(faces))
    return MovingGround(
        [GroundBlock(vertices[k : k + size], faces, every) for k in range(0, len(vertices), size)]
    )


@pytest.mark.parametrize("size", [1, 5, ROWS])
def test_it_is_in_every_row_as_ground_that_stands_still(size):
    random = np.random.default_rng(7)
    vertices, faces = waves(random)
    big = np.array(((-9.0, -9.0, -1.0), (9.0, -9.0, -1.0), (0.0, 9.0, -1.0)))  # one below all, far larger
    count = vertices.shape[1]
    vertices = np.concatenate((vertices, np.broadcast_to(big, (ROWS, 3, 3))), axis=1)
    faces = np.concatenate((faces, [[count, count + 1, count + 2]]))
    ground = blocks_of(vertices, faces, size)
    rows = random.integers(-1, ROWS + 1, 900)
    points = random.uniform((-0.2, -0.4, -0.3), (1.6, 1.1, 0.4), (900, 3))
    points[::7, 2] = np.inf
    heights, normals = ground.below(points, rows)
    still = [TriangleGround(each, faces) for each in vertices]
    for k, row in enumerate(rows.clip(0, ROWS - 1).tolist()):
        height, normal = still[row].below(points[k : k + 1], np.array([0]))
        np.testing.assert_allclose(heights[k], height[0], atol=2e-6)
        if np.isfinite(height[0]):
            np.testing.assert_allclose(normals[k], normal[0], atol=1e-4)
    ends = points + random.uniform(-0.5, 0.5, (900, 3))
    for k, row in enumerate(rows[:300].clip(0, ROWS - 1).tolist()):
        if np.isfinite(points[k, 2]):
            ways = points[k : k + 1], ends[k : k + 1]
            assert ground.blocked(*ways, row)[0] == still[row].blocked(*ways, 0)[0]


def test_a_point_of_the_surface_goes_along_with_it_and_turns():
    vertices, faces = waves(np.random.default_rng(3))
    angles = 0.1 * np.arange(ROWS)
    turned = np.stack(
        (
            np.cos(angles)[:, None] * vertices[0, :, 0] - np.sin(angles)[:, None] * vertices[0, :, 1],
            np.sin(angles)[:, None] * vertices[0, :, 0] + np.cos(angles)[:, None] * vertices[0, :, 1],
            np.broadcast_to(vertices[0, :, 2], (ROWS, vertices.shape[1])),
        ),
        axis=-1,
    )
    ground = blocks_of(turned, faces, 5)
    point = turned[0][faces[30]].mean(axis=0)
    places, turns = ground.carried(point, 0, np.arange(ROWS))
    np.testing.assert_allclose(places, turned[:, faces[30]].mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(turns[:, 0], np.cos(0.5 * angles), atol=1e-9)
    np.testing.assert_allclose(turns[:, 3], np.sin(0.5 * angles), atol=1e-9)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_point_above_the_surface_goes_along_with_the_nearest_triangle_in_any_unit(unit):
    """A hand a meter above ground that is lifted and shifted, in a scene of millimetres too."""
    vertices, faces = waves(np.random.default_rng(9))
    shift = np.linspace(0.0, 1.0, ROWS)[:, None] * (0.2, -0.1, 0.05)
    ground = blocks_of(unit * (vertices[:1] + shift[:, None]), faces, 4)
    point = unit * np.array((0.4, 0.5, 1.0))
    places, turns = ground.carried(point, 0, np.arange(ROWS))
    np.testing.assert_allclose(places, point + unit * shift, atol=1e-9 * unit)
    np.testing.assert_allclose(np.abs(turns[:, 0]), 1.0, atol=1e-12)


def test_what_leaves_the_ground_that_is_kept_is_told():
    vertices, faces = waves(np.random.default_rng(5))
    some = np.arange(len(faces) - 1)
    ground = MovingGround(
        [
            GroundBlock(vertices[:6], faces, np.arange(len(faces))),
            GroundBlock(vertices[6:], faces[some], some),
        ]
    )
    with pytest.raises(InvalidInput, match="carries what stands on it"):
        ground.carried(vertices[0][faces[-1]].mean(axis=0), 0, np.arange(ROWS))
    bare = MovingGround([GroundBlock(vertices[:6], faces[:0], np.arange(0))])
    with pytest.raises(InvalidInput, match="no ground is near"):
        bare.carried(np.zeros(3), 0, np.arange(6))
    vertices[3, 2, 1] = np.nan
    with pytest.raises(InvalidInput, match="vertex 2 of the ground is not a number"):
        blocks_of(vertices, faces, 4)
