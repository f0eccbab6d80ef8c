"""Sources read from files into the open one, with their own rate of frames."""

from __future__ import annotations

import bpy
import pytest
import rigs

BVH = """HIERARCHY
ROOT Hips
{
\tOFFSET 0 0 0
\tCHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
\tJOINT Spine
\t{
\t\tOFFSET 0 20 0
\t\tCHANNELS 3 Zrotation Xrotation Yrotation
\t\tEnd Site
\t\t{
\t\t\tOFFSET 0 20 0
\t\t}
\t}
}
MOTION
Frames: 3
Frame Time: 0.0166667
0 90 0 0 0 0 0 0 0
0 90 1 0 5 0 0 0 0
0 90 2 0 10 0 0 0 0
"""


@pytest.fixture
def hero(ext):
    rig = rigs.chain(3, 0.5)
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    return rig


@pytest.fixture
def clip(tmp_path):
    path = tmp_path / "step.bvh"
    path.write_text(BVH)
    return path


def test_a_bvh_file_becomes_the_source_with_its_rate(hero, clip):
    scene = bpy.context.scene
    scene.render.fps = 24
    assert bpy.ops.ccd_rig.retarget_source_import(filepath=str(clip)) == {"FINISHED"}
    group = hero.ccd_rig.retarget
    assert set(group.source.data.bones.keys()) == {"Hips", "Spine"}
    assert group.source_fps == pytest.approx(60.0, abs=0.01)
    assert scene.render.fps == 24
    # The figure is worked on as before.
    assert bpy.context.object is hero
    assert bpy.context.mode == "POSE"
    assert bpy.context.selected_objects == [hero]


def test_a_blend_file_keeps_the_rate_of_the_scene(hero, tmp_path):
    path = tmp_path / "other.blend"
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.data.libraries.write(str(path), {hero})
    assert bpy.ops.ccd_rig.retarget_source_import(filepath=str(path)) == {"FINISHED"}
    assert hero.ccd_rig.retarget.source is not hero
    assert hero.ccd_rig.retarget.source_fps == 0.0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("no.bvh", None, "there is no file"),
        ("no.txt", "words", "is no clip"),
        ("no.bvh", "MOTION", "no.bvh|cannot be read|must have one armature"),
        ("", None, "is a folder"),
    ],
)
def test_what_is_no_clip_changes_nothing(hero, tmp_path, name, text, words):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    before = [sorted(thing.name for thing in data) for data in (bpy.data.objects, bpy.data.actions)]
    with pytest.raises(RuntimeError, match=words):
        bpy.ops.ccd_rig.retarget_source_import(filepath=str(path))
    assert hero.ccd_rig.retarget.source is None
    assert [sorted(thing.name for thing in data) for data in (bpy.data.objects, bpy.data.actions)] == before
    assert bpy.context.object is hero
    assert bpy.context.mode == "POSE"
