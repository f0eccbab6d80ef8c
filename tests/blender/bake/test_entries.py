"""How constraints stand at frames."""

from __future__ import annotations

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
    return module.Entries(module.Entry(module.number(frame), *rest) for frame, *rest in ROWS)


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
        entries = module.Entries(
            module.Entry(frame, "Hand", status, residual, residual, 1.0, 0.0, 0.0)
            for frame, (status, residual) in enumerate(rows)
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
    same = type(entries)(entry._replace() for entry in entries)
    assert same == entries
    assert type(entries)([entries[0]._replace(residual=0.5), *entries[1:]]) != entries


def test_lengths_alone_are_of_another_unit(entries):
    scaled = entries.scaled(100.0)
    assert type(scaled) is type(entries)
    assert [entry.residual for entry in scaled] == [100.0 * row[3] for row in ROWS]
    assert [entry.keyed_residual for entry in scaled] == [100.0 * row[4] for row in ROWS]
    assert [(*entry[:3], *entry[5:]) for entry in scaled] == [(*row[:3], *row[5:]) for row in ROWS]
