"""Which file a newer Blender has saved."""

from __future__ import annotations

from types import SimpleNamespace

import pytest


@pytest.mark.parametrize(
    ("saved", "told"),
    [
        ((402, 1, 0), None),
        ((402, 64, 0), None),
        ((402, 64, 1), ("402.64.1", "402.64.0")),
        ((500, 0, 0), ("500.0.0", "402.64.0")),
    ],
)
def test_a_file_is_newer_by_its_own_version(ext, monkeypatch, saved, told):
    module = ext.module("ccd_rig.blender.keys.channels")
    blender = SimpleNamespace(
        app=SimpleNamespace(version_file=(402, 64, 0)), data=SimpleNamespace(version=saved)
    )
    monkeypatch.setattr(module, "bpy", blender)
    assert module.newer_than_blender() == told
