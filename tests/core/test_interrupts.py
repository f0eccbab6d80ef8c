"""Who listens to Ctrl-C from the start: the program alone, never what imports the package."""

from __future__ import annotations

import pytest

from ccd_rig.interrupts import is_program


@pytest.mark.parametrize(
    ("first", "words", "listens"),
    [
        ("-m", ["python", "-m", "ccd_rig", "bake"], True),
        ("-m", ["python", "-X", "dev", "-m", "ccd_rig", "bake"], True),
        ("-m", ["python", "-I", "-mccd_rig"], True),
        ("-m", ["python", "-m", "pytest", "-m", "ccd_rig"], False),
        ("-m", ["python", "-m", "ccd_rig_tools"], False),
        ("script.py", ["python", "script.py", "-m", "ccd_rig"], False),
        ("-c", ["python", "-c", "import ccd_rig"], False),
        ("", ["python"], False),
        ("", [], False),
    ],
)
def test_only_the_program_listens(first: str, words: list[str], listens: bool) -> None:
    assert is_program(first, words) == listens
