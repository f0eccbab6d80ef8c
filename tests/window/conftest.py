"""The visit that the tests of a file judge: one Blender for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from visits import go, told_errors


@pytest.fixture(scope="module")
def visit(request: pytest.FixtureRequest) -> Iterator[dict]:
    """What the module's `SCRIPT` saw, step by step, in a window driven once.

    After the module's tests: the visit came to its end, no exception was printed, and no operator gave up
    but with the words that the module lists as its `ERRORS`.
    """
    seen = go(request.module.SCRIPT)
    yield seen
    assert seen.get("finished"), seen.get("error", seen["output"])
    assert "Traceback" not in seen["output"], seen["output"]
    expected = getattr(request.module, "ERRORS", ())
    surprises = [line for line in told_errors(seen) if not any(words in line for words in expected)]
    assert not surprises, seen["output"]
