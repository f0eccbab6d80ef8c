"""Sources read from files into the open one, with their own rate of frames."""

from __future__ import annotations

import io
import json
import struct

import bpy
import pytest
import rigs
from operator_calls import fails
from retargeting import as_fbx

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


def test_a_rig_that_was_hidden_in_pose_mode_is_said(hero, clip):
    """Importers work in Object Mode, and Blender leaves no mode of a hidden object."""
    hero.hide_viewport = True
    before = set(bpy.data.objects)
    fails(
        bpy.ops.ccd_rig.retarget_source_import,
        f"'{hero.name}' is hidden or not in this view layer: show it first",
        filepath=str(clip),
    )
    assert set(bpy.data.objects) == before and bpy.context.object == hero


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


def without_frames():
    return BVH.partition("Frames: 3")[0] + "Frames: 0\nFrame Time: 0.0166667\n"


def everything():
    return sorted(map(repr, bpy.data.user_map()))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot be read: it is damaged, or no .bvh file"),
        (BVH.replace("0 90 1 0 5 0 0 0 0", "0 90 1"), "it is damaged, or no .bvh file"),
        (BVH.replace("0.0166667", "0,0166667"), "it is damaged, or no .bvh file"),
        # Its importer fails when it has made the armature.
        (without_frames(), r"odd\.bvh: cannot be read: it has no frames"),
    ],
    ids=["empty", "a short row", "a comma", "no frames"],
)
def test_a_damaged_bvh_file_is_named_and_leaves_nothing(hero, tmp_path, text, words):
    path = tmp_path / "odd.bvh"
    path.write_text(text)
    before = everything()
    with pytest.raises(RuntimeError, match=words):
        bpy.ops.ccd_rig.retarget_source_import(filepath=str(path))
    assert everything() == before
    assert list(bpy.context.view_layer.objects) == [hero]
    assert bpy.context.object is hero
    assert bpy.context.mode == "POSE"


def test_an_importer_that_ends_half_way_leaves_nothing(ext, hero, tmp_path, monkeypatch):
    """It has linked an armature when it fails: the view layer is not to know of it any more."""
    clips = ext.module("ccd_rig.blender.retarget.clips")
    path = tmp_path / "odd.bvh"
    path.write_text(without_frames())
    monkeypatch.setattr(clips, "_bvh_motion", lambda clip: None)
    before = everything()
    with pytest.raises(RuntimeError, match=r"it is damaged, or no \.bvh file"):
        bpy.ops.ccd_rig.retarget_source_import(filepath=str(path))
    assert everything() == before
    assert list(bpy.context.view_layer.objects) == [hero]


def test_a_blend_file_of_two_armatures_is_refused_and_leaves_nothing(hero, tmp_path):
    path = tmp_path / "two.blend"
    bpy.ops.object.mode_set(mode="OBJECT")
    lamp = rigs.link(bpy.data.lights.new("Lamp", "POINT"), "Lamp")
    eye = rigs.link(bpy.data.cameras.new("Eye"), "Eye")
    other = rigs.chain(2, name="Other")
    bpy.data.libraries.write(str(path), {hero, other, lamp, eye})
    rigs.activate(hero)
    before = everything()
    with pytest.raises(RuntimeError, match=r"two\.blend must have one armature"):
        bpy.ops.ccd_rig.retarget_source_import(filepath=str(path))
    assert everything() == before


def told(operator, **options):
    """What an operator says as it ends well: its words are told on standard output alone."""
    said = []
    kind = getattr(bpy.types, operator)
    tell = kind.tell

    def noted(self, level, words):
        said.append((level, words))
        tell(self, level, words)

    kind.tell = noted
    try:
        module, _, name = operator.partition("_OT_")
        assert getattr(getattr(bpy.ops, module.lower()), name)(**options) == {"FINISHED"}
    finally:
        del kind.tell
    return said


def doubts(path):
    said = told("CCD_RIG_OT_retarget_source_import", filepath=str(path))
    return [words for level, words in said if level == "WARNING"]


def glb(bones, animations):
    """A glTF file of a chain of bones, with animations as they are in it."""
    nodes = [{"name": f"bone_{i}", "translation": [0, 1, 0], "children": [i + 1]} for i in range(bones)]
    del nodes[-1]["children"]
    content = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": nodes,
        "skins": [{"joints": list(range(bones))}],
        "animations": animations,
    }
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    head = b"glTF" + struct.pack("<II", 2, 20 + len(text)) + struct.pack("<I", len(text)) + b"JSON"
    return io.BytesIO(head + text).getvalue()


@pytest.mark.parametrize("kind", ["one frame", "the same frames", "gltf", "fbx", "blend"])
def test_a_file_without_motion_is_taken_and_said(hero, tmp_path, kind):
    path = tmp_path / "still.bvh"
    rows = BVH.splitlines(keepends=True)
    if kind == "one frame":
        path.write_text("".join(rows[:-2]).replace("Frames: 3", "Frames: 1"))
    elif kind == "the same frames":
        path.write_text("".join([*rows[:-2], rows[-3], rows[-3]]))
    elif kind == "gltf":
        path = path.with_suffix(".glb")
        path.write_bytes(glb(2, []))
    else:
        bpy.ops.object.mode_set(mode="OBJECT")
        path = path.with_suffix(".fbx" if kind == "fbx" else ".blend")
        if kind == "fbx":
            as_fbx(path, tmp_path, moves=False)
        else:
            bpy.data.libraries.write(str(path), {hero})
    (words,) = doubts(path)
    source = hero.ccd_rig.retarget.source
    assert source is not None
    assert words.startswith(f"{path.name} has no motion: '{source.name}' stands still")


@pytest.mark.parametrize("name", ["step.bvh", "Schritt ü 歩く.BVH", "Ordner ü/Schritt.bvh"])
def test_a_file_with_motion_is_not_doubted(hero, tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(BVH)
    assert doubts(path) == []
    assert hero.ccd_rig.retarget.source_fps == pytest.approx(60.0, abs=0.01)


def test_a_rate_of_film_keeps_the_digits_that_tell_it_from_others(hero, tmp_path):
    path = tmp_path / "film.bvh"
    path.write_text(BVH.replace("0.0166667", "0.0417083"))
    assert doubts(path) == []
    assert hero.ccd_rig.retarget.source_fps == pytest.approx(24000 / 1001, abs=1e-3)


def test_what_moves_by_constraints_is_not_doubted(hero, tmp_path):
    hero.pose.bones["bone_1"].constraints.new("COPY_ROTATION")
    bpy.ops.object.mode_set(mode="OBJECT")
    path = tmp_path / "moved.blend"
    bpy.data.libraries.write(str(path), {hero})
    assert doubts(path) == []


@pytest.mark.parametrize("time", ["0", "-0.01", "nan", "1e400", "1e300", "1e-300"])
def test_a_time_of_frames_that_is_none_is_said(hero, tmp_path, time):
    path = tmp_path / "odd.bvh"
    path.write_text(BVH.replace("0.0166667", time))
    assert doubts(path) == [f"odd.bvh: Frame Time {time} is not the time of a frame: set Source Rate"]
    assert hero.ccd_rig.retarget.source_fps == 0.0


def test_the_words_of_a_bvh_file_are_read_in_lower_case_too(hero, tmp_path):
    path = tmp_path / "lower.bvh"
    path.write_text(BVH.replace("Frame Time:", "frame time:").replace("MOTION", "Motion"))
    assert doubts(path) == []
    assert hero.ccd_rig.retarget.source_fps == pytest.approx(60.0, abs=0.01)


def test_files_beside_a_gltf_are_those_that_it_names(ext, tmp_path):
    """Not what it holds itself, which may be long, nor what is not there; names may be quoted."""
    clips = ext.module("ccd_rig.blender.retarget.clips")
    for name in ("step.bin", "grün 1.png", "other.bin"):
        (tmp_path / name).write_bytes(b"")
    inside = "data:application/octet-stream;base64," + "A" * 5000
    buffers = [{"uri": uri} for uri in ("step.bin", inside, "gone.bin")] + [{"byteLength": 4}]
    content = {"buffers": buffers, "images": [{"uri": "gr%C3%BCn%201.png"}, {"uri": "step.bin"}]}
    clip = tmp_path / "step.gltf"
    clip.write_text(json.dumps(content))
    assert clips.files_beside(clip) == [tmp_path / "grün 1.png", tmp_path / "step.bin"]
    assert clips.files_beside(tmp_path / "step.glb") == []
    for text in ("[]", "{", '{"buffers": 5}', '{"buffers": [5]}'):
        clip.write_text(text)
        assert clips.files_beside(clip) == []


def test_the_rate_of_a_file_goes_with_its_source(hero, clip):
    bpy.ops.ccd_rig.retarget_source_import(filepath=str(clip))
    group = hero.ccd_rig.retarget
    assert group.source_fps == pytest.approx(60.0, abs=0.01)
    group.source = rigs.chain(2, name="Other")
    assert group.source_fps == 0.0


def test_the_context_knows_the_scene_of_the_file_that_is_open(ext, hero):
    """Blender 4.2 keeps the scene of the file before, which is freed: importers would crash."""
    scenes = [bpy.context.layer_collection.id_data.session_uid]
    bpy.ops.wm.read_homefile(use_empty=True)
    scenes.append(bpy.context.scene.session_uid)
    ext.module("ccd_rig.blender.retarget.clips").renew_context()
    owner = bpy.context.window.id_data
    assert scenes[0] != scenes[1]
    assert owner in (None, bpy.context.scene, *bpy.data.window_managers)
