"""What the tests of the core need: mathutils, which comes with bpy, and the project root on the path.

No add-on is registered here, and nothing of bpy but its side effect is used.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import bpy  # noqa: F401  (first of all: importing it makes mathutils importable)
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


@pytest.fixture
def no_silent_nan() -> Iterator[None]:
    """NumPy raises where it would make what is no number."""
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        yield
