"""The file is changed while a bake is under way, by a script, undo or another file: a sentence, never a bug.

And what fails at the very end takes everything back."""

from __future__ import annotations

import bpy
import pytest
import rigs
from rigs import keyed, reach
from whole_file import dump


@pytest.fixture
def rig():
    made = rigs.chain(4)
    reach(made, "bone_3", keyed(rigs.empty("Goal"), {1: (1.0, 0.5, 2.0), 6: (1.5, -0.5, 2.0)}))
    rigs.activate(made)
    return made


def remove_bone(bone):
    def change():
        with rigs.edit_bones(bpy.data.objects["Rig"]) as bones:
            bones.remove(bones[bone])

    return change


def rename_bone():
    bpy.data.objects["Rig"].data.bones["bone_2"].name = "elbow"


CHANGES = {
    "tip removed": remove_bone("bone_3"),
    "root removed": remove_bone("bone_0"),
    "bone renamed": rename_bone,
    "target removed": lambda: bpy.data.objects.remove(bpy.data.objects["Goal"]),
    "armature removed": lambda: bpy.data.objects.remove(bpy.data.objects["Rig"]),
    "armature's data removed": lambda: bpy.data.armatures.remove(bpy.data.armatures["Rig"]),
    "constraints removed": lambda: bpy.data.objects["Rig"].ccd_rig.constraints.clear(),
    "another file": lambda: bpy.ops.wm.read_homefile(use_empty=True),
    "undo": lambda: bpy.ops.ed.undo(),
    "edit mode": lambda: bpy.ops.object.mode_set(mode="EDIT"),
}


@pytest.mark.parametrize("at", [1, 4, 6, 7, 9])
@pytest.mark.parametrize("change", CHANGES)
def test_it_is_told_in_a_sentence(bake, errors, rig, change, at):
    """`at` of 12 items: six frames solved, six checked."""
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.ed.undo_push(message="once more")
    scenes, actions = len(bpy.data.scenes), len(bpy.data.actions)
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, 6))
    for _ in range(at):
        next(steps)
    CHANGES[change]()
    words = ""
    try:
        for _ in steps:
            pass
    except errors.CCDRigError as error:
        words = str(error)
    assert len(words) < 300
    assert not words or len(bpy.data.actions) <= actions
    assert len(bpy.data.scenes) == (1 if change == "another file" else scenes)


@pytest.mark.parametrize("at", ["store_report", "state_of", "note"])
def test_what_fails_at_the_end_takes_all_back(ext, bake, rig, monkeypatch, at):
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    bpy.data.objects["Goal"].location.x += 0.0
    before = dump()
    staleness = ext.module("ccd_rig.blender.bake.staleness")
    module = {"store_report": bake, "state_of": staleness, "note": bake.renamed_bones}[at]

    def fail(*_):
        raise MemoryError("as if there were none left")

    monkeypatch.setattr(module, at, fail)
    with pytest.raises(MemoryError):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 6))
    monkeypatch.undo()
    assert dump() == before


def test_what_is_gone_has_no_names(bake, rig):
    """Also where something else fails because of it: the sentence tells of the armature then."""
    names = bake._names(bpy.context.scene, rig)
    assert names[1] == "Armature 'Rig'" and names[2] == tuple(f"bone_{i}" for i in range(4))
    bpy.data.objects.remove(rig)
    assert bake._names(bpy.context.scene, rig) == ("", "The armature")


BEGINNINGS = {
    "bake": lambda bake, bake_all, *what: bake.bake_steps(*what),
    "bake of what was solved": lambda bake, bake_all, *what: bake.bake_solved_steps(*what, None),
    "solve": lambda bake, bake_all, *what: bake.solve_steps(*what),
    "all": lambda bake, bake_all, scene, rig, settings: bake_all.bake_all_steps(scene, {rig: settings}),
}


@pytest.mark.parametrize("what", BEGINNINGS)
@pytest.mark.parametrize("change", ["armature removed", "another file", "scene removed"])
def test_gone_before_the_first_item(ext, bake, errors, rig, what, change):
    bake_all = ext.module("ccd_rig.blender.bake.bake_all")
    scene = bpy.data.scenes.new("Other")
    scene.collection.objects.link(rig)
    steps = BEGINNINGS[what](bake, bake_all, scene, rig, bake.BakeSettings(1, 6))
    if change == "scene removed":
        bpy.data.scenes.remove(scene)
    else:
        CHANGES[change]()
    with pytest.raises(errors.RigError, match="not in the file any more: choose one"):
        next(steps)


def test_an_armature_removed_while_several_are_baked(ext, bake, errors, rig):
    bake_all = ext.module("ccd_rig.blender.bake.bake_all")
    steps = bake_all.bake_all_steps(bpy.context.scene, {rig: bake.BakeSettings(1, 6)})
    for _ in range(4):
        next(steps)
    CHANGES["armature removed"]()
    with pytest.raises(errors.RigError, match="'Rig' was changed while it was baked"):
        list(steps)
