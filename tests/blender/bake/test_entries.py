"""How constraints stand at frames: entries made of arrays are what they would be as objects."""

from __future__ import annotations

import numpy as np
import pytest

ROWS = [
    # frame, constraint, status, residual, keyed residual, influence, angle, keyed angle
    (1.0, "Hand", "CONVERGED", 0.0, 0.0, 1.0, 0.0, 0.0),
    (1.0, "Foot", "OPTIMAL", 0.2, 0.25, 0.5, 0.0, 0.1),
    (2.5, "Hand", "SLERPED", 0.3, 0.3, 1.0, 0.0, 0.0),
    (3.0, "Hand", "STALLED", 0.0, 0.0, 1.0, 0.6, 0.6),
    (3.0, "Foot", "OPTIMAL", 0.3, 0.3, 1.0, 0.0, 0.0),
]


@pytest.fixture
def entries(ext):
    module = ext.module("ccd_rig.blender.bake.report")
    names = ("Hand", "Foot")
    columns = list(zip(*ROWS, strict=True))
    return module.Entries(
        names,
        np.array(columns[0]),
        np.array([names.index(name) for name in columns[1]], np.int16),
        np.array([module.STATUSES.index(name) for name in columns[2]], np.uint8),
        *(np.array(column) for column in columns[3:]),
    )


def test_they_are_a_sequence_of_what_they_were_made_of(entries):
    assert [tuple(entry) for entry in entries] == ROWS
    assert len(entries) == len(ROWS)
    assert tuple(entries[-1]) == ROWS[-1]
    assert [tuple(entry) for entry in entries[1:3]] == ROWS[1:3]
    with pytest.raises(IndexError):
        entries[len(ROWS)]
    # Whole frames are written as whole numbers, and all numbers are those that JSON knows.
    assert [type(value) for value in entries[1]] == [int, str, str, float, float, float, float, float]
    assert type(entries[2].frame) is float


def test_the_worst_is_the_first_that_is_farthest_off_in_tolerances(entries):
    assert entries.worst(1e-3, 1.0).frame == 2.5
    assert entries.worst(1.0, 1e-3).status == "STALLED"


def test_what_gave_way_to_the_body_is_the_worst_only_where_all_did(ext):
    module = ext.module("ccd_rig.blender.bake.report")

    def worst(*rows):
        statuses = np.array([module.STATUSES.index(status) for status, _ in rows], np.uint8)
        off, nothing = np.array([residual for _, residual in rows]), np.zeros(len(rows))
        entries = module.Entries(
            ("Hand",), np.arange(len(rows)), nothing.astype(np.int16), statuses, off, off, *[nothing] * 3
        )
        return entries.worst(1e-3, 1e-3).frame

    assert worst((module.GAVE_WAY, 0.2), ("OPTIMAL", 0.1)) == 1
    assert worst((module.GAVE_WAY, 0.2), ("CONVERGED", 0.0)) == 1
    assert worst((module.GAVE_WAY, 0.1), (module.GAVE_WAY, 0.2)) == 1


def test_frames_between_solved_ones_miss_nothing(entries):
    assert [(entry.frame, entry.constraint) for entry in entries.missed()] == [
        (1, "Foot"),
        (3, "Hand"),
        (3, "Foot"),
    ]
    assert entries.missed_frames() == 2
    assert entries.solved_frames() == 2


def test_those_of_another_bake_are_others(entries, ext):
    same = type(entries)(*(getattr(entries, name) for name in entries.__dataclass_fields__))
    assert same == entries
    assert entries != tuple(entries)
