"""What tests of limits over a batch share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _no_silent_nan() -> Iterator[None]:
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        yield
