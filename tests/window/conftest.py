"""The visit that the tests of a file judge: one Blender for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from visits import SCREEN, go, told_errors


@pytest.fixture(scope="module")
def visit(request: pytest.FixtureRequest) -> Iterator[dict]:
    """What the module's `SCRIPT` saw, step by step, in a window of `SIZE` pixels driven once.

    After the module's tests: the visit came to its end, and no exception was printed. Of a module with
    `ERRORS` no other errors were printed than those with such words.
    """
    seen = go(request.module.SCRIPT, getattr(request.module, "SIZE", SCREEN))
    yield seen
    assert seen.get("finished"), seen.get("error", seen["output"])
    assert "Traceback" not in seen["output"], seen["output"]
    expected = getattr(request.module, "ERRORS", None)
    if expected is not None:
        surprises = [line for line in told_errors(seen) if not any(words in line for words in expected)]
        assert not surprises, seen["output"]
