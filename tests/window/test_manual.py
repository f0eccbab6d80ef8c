"""A visit to a real Blender window: Online Manual opens the entries of the reference."""

from __future__ import annotations

import pytest
from visits import colours, photographs, saw

SCRIPT = "drive_manual.py"


def test_the_tab_is_cut_out_for_the_manual(visit):
    saw(visit, "tab")
    assert colours(photographs(SCRIPT) / "manual_tab.png") > 40


@pytest.mark.parametrize(
    ("step", "entry"),
    [
        ("command", "reference/operators.html#bake"),
        ("field", "reference/settings.html#constraint-chain_length"),
    ],
)
def test_the_entry_of_what_is_below_the_pointer_is_opened(visit, step, entry):
    (address,) = saw(visit, step)["opened"]
    assert address.partition("?")[0].partition("#")[0].endswith(entry.partition("#")[0])
    assert address.endswith(f"#{entry.partition('#')[2]}")
