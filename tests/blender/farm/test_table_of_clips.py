"""Rows of clips in the table of a job."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


def test_only_what_follows_the_source_counts_as_off(ext, monkeypatch):
    """A head that is free to be elsewhere is no miss, here as in the table of `ccd_rig retarget`."""
    table = ext.module("ccd_rig.blender.farm.results")
    monkeypatch.setattr(table, "warnings", lambda _result: ())
    measures = SimpleNamespace(
        errors={"left leg": 0.02, "the head": 0.3}, followed={"left leg"}, stances=(), moved=0.0
    )
    result = SimpleNamespace(measures=measures, frames=np.arange(1.0, 4.0))
    assert table.row_of_clip("walk", "Rig", result, 1.0)["off"] == 0.02
    measures.followed = set()
    assert table.row_of_clip("walk", "Rig", result, 1.0)["off"] == 0.0
