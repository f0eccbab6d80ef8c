"""Bad input: Solve, Bake and the command line say what is wrong, by name, and what to do; nothing changes.

Each case spoils a sound set-up in one way. A full disk and Ctrl-C are in cli/, and Esc is in tests/window,
where there is a keyboard.
"""

from __future__ import annotations

from contextlib import nullcontext

import bpy
import pytest
import rigs
from bad_input_cases import CASES
from sound_rig import sound_rig, spoil
from whole_file import differences, dump, fill_caches


@pytest.fixture
def rig(ext):
    return sound_rig(ext)


def _labels():
    return [
        f"{case.spoil.__name__}{'-' + '-'.join(case.arguments) if case.arguments else ''}-{way}"
        for case in CASES
        for way in case.ways
    ]


@pytest.mark.parametrize(("case", "way"), [(case, way) for case in CASES for way in case.ways], ids=_labels())
def test_it_is_said_and_nothing_changes(ext, rig, tmp_path, capfd, case, way):
    spoil(case.spoil, rig, tmp_path)
    rigs.update()
    run = {"solve": by_operator, "bake": by_operator, "cli": by_command_line}[way]
    said = run(ext, rig, case, way, tmp_path, capfd)
    for word in case.said.get(way, case.words):
        assert word in said


def by_operator(_ext, rig, case, way, _folder, _capfd):
    """Run Solve or Bake, which must fail; gives the message."""
    operator = getattr(bpy.ops.ccd_rig, way)
    fill_caches()
    before = dump()
    active = bpy.context.temp_override(object=rig) if case.outside else nullcontext()
    with active, pytest.raises(RuntimeError) as caught:
        operator(**case.options)
    assert differences(before, dump()) == []
    return str(caught.value)


def by_command_line(ext, _rig, case, _way, folder, capfd):
    """Save the file and bake it, which must fail; gives the message."""
    path = folder / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))
    fill_caches()
    before, stored = dump(), path.read_bytes()
    names = {each.name for each in folder.iterdir()}
    outputs = ("--output", str(folder / "out.blend"), "--report", str(folder / "out.json"))
    capfd.readouterr()
    code = ext.module("ccd_rig.blender.cli.command_line").main(["bake", str(path), *outputs, *case.arguments])
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("ccd_rig")]
    complaints = [line for line in said if line.startswith("ccd_rig: error: ")]
    assert code == case.code, said
    assert len(complaints) == 1, said
    assert path.read_bytes() == stored
    assert {each.name for each in folder.iterdir()} == names
    assert differences(before, dump()) == []
    return complaints[0]
