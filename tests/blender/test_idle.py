"""What the extension does where nothing concerns it: it listens to little, and makes nothing."""

from __future__ import annotations

import bpy
import pytest
import rigs
from installed import PACKAGE
from rigs import reach

IDLE = {"load_post": {"listening.look"}}
"""What listens where nothing of the extension is used."""
if bpy.app.background:  # where timers do not run
    IDLE["save_pre"] = {"listening.look"}
USED = {
    "depsgraph_update_post": {"evaluations.notify", "active_row.follow"},
    "frame_change_post": {"live.end_copies_of_frame"},
}
"""What listens to evaluations where something is used, but no rig is live and no report is shown."""
EVALUATIONS = ("depsgraph_update_pre", "depsgraph_update_post", "frame_change_pre", "frame_change_post")


def listening(names=None):
    found = {}
    for name in names or [each for each in dir(bpy.app.handlers) if not each.startswith("_")]:
        listed = getattr(bpy.app.handlers, name)
        ours = [h for h in listed if h.__module__.startswith(PACKAGE)] if isinstance(listed, list) else []
        told = {f"{h.__module__.rpartition('.')[2]}.{h.__name__}" for h in ours}
        assert len(ours) == len(told)
        if told:
            found[name] = told
    return found


@pytest.fixture
def rig(ext):
    made = rigs.chain(4)
    reach(made, "bone_3", rigs.empty("Goal", (1.0, 0.5, 2.0)))
    rigs.activate(made)
    return made


def generated():
    metarig = rigs.metarig("basic_human")
    rigs.activate(metarig)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.rigify_generate()
    rig = metarig.data.rigify_target_rig
    bpy.ops.object.mode_set(mode="OBJECT")
    rigs.activate(rig)
    return rig


def test_nothing_listens_before_the_first_use(ext):
    """Not while others use their rigs, whatever the views and panels ask."""
    rig = generated()
    for mode in ("EDIT", "POSE", "OBJECT"):
        bpy.ops.object.mode_set(mode=mode)
        rig.location.x += 0.1
        rigs.update()
        for command in ("bake", "solve", "bake_all", "figure_set_up"):
            getattr(bpy.ops.ccd_rig, command).poll()
    assert listening() == IDLE
    assert not any(bone.is_property_set("ccd_rig") for bone in rig.pose.bones)


@pytest.mark.parametrize("way", ["constraint", "limit", "command", "button", "file", "view", "command line"])
def test_the_first_use_is_noticed(ext, tmp_path, way):
    rig = rigs.chain(3)
    if way == "constraint":
        rig.ccd_rig.constraints.add().tip = "bone_2"
    elif way == "limit":
        rig.pose.bones["bone_1"].ccd_rig.limit.kind = "CONE"
    elif way == "command":
        rigs.activate(rig)
        bpy.ops.object.mode_set(mode="POSE")
        rig.data.bones.active = rig.data.bones["bone_2"]
        bpy.ops.ccd_rig.constraint_add()
    elif way == "button":
        rig.ccd_rig.solver.max_iterations = 9  # as data from another file
        rigs.activate(rig)
        bpy.ops.ccd_rig.bake.poll()
    elif way == "view":
        views = ext.module("ccd_rig.blender.listening")
        views.notice()
        rig.ccd_rig.solver.max_iterations = 9
        views.notice()
        assert listening() == IDLE  # no armature has come
        rigs.chain(2, name="Other")
        views.notice()
    elif way == "file":
        path = str(tmp_path / "rig.blend")
        rig.pose.bones["bone_1"].ccd_rig.stiffness = 0.5
        bpy.ops.wm.save_as_mainfile(filepath=path)
        bpy.ops.wm.read_homefile(use_empty=True)
        assert listening() == IDLE
        bpy.ops.wm.open_mainfile(filepath=path)
    else:
        ext.module("ccd_rig.blender.cli.command_line").main(["check"])
    assert listening(EVALUATIONS) == USED
    bpy.ops.wm.read_homefile(use_empty=True)
    assert listening() == IDLE


def test_live_listens_from_the_first_rig_to_the_next_file(ext, rig):
    assert listening(EVALUATIONS) == USED
    for _ in range(2):
        bpy.ops.ccd_rig.live()
        rigs.update()
    before = {"depsgraph_update_pre": {"live.let_go"}, "frame_change_pre": {"live.let_go"}}
    assert listening(EVALUATIONS) == before | {name: told | {"live.follow"} for name, told in USED.items()}
    bpy.ops.wm.read_homefile(use_empty=True)
    assert listening() == IDLE


def test_reports_listen_once_they_are_looked_at(ext, bake, rig):
    staleness = ext.module("ccd_rig.blender.bake.staleness")
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert not staleness.is_stale(rig)
    assert "staleness._forget_changed" in listening()["depsgraph_update_post"]
    rig.ccd_rig.constraints[0].target.location.x += 0.5
    rigs.update()
    assert staleness.is_stale(rig)
    bpy.ops.wm.read_homefile(use_empty=True)
    assert listening() == IDLE


def test_looking_for_the_rig_of_an_object_makes_nothing(ext):
    """Each panel and each operator asks which armature reaches for the active object."""
    rig, other = rigs.chain(3), rigs.empty("Other")
    rigs.activate(other)
    assert not bpy.ops.ccd_rig.bake.poll()
    assert not rig.is_property_set("ccd_rig")
    rigs.reach(rig, "bone_2", other)
    rigs.activate(other)
    assert ext.module("ccd_rig.blender.properties.active_rig").active_rig(bpy.context) == rig


def test_live_makes_nothing_on_bones_outside_its_chains(ext):
    rig = rigs.chain(5)
    rigs.reach(rig, "bone_2", rigs.empty("Goal", (1.0, 0.0, 1.5)))
    rigs.activate(rig)
    bpy.ops.ccd_rig.live()
    rigs.update()
    assert not any(rig.pose.bones[name].is_property_set("ccd_rig") for name in ("bone_3", "bone_4"))
    bpy.ops.ccd_rig.live()


def test_a_generated_rig_is_read_once_each_time_it_is_edited(ext, monkeypatch):
    regeneration = ext.module("ccd_rig.blender.setup_files")
    rig = generated()
    rig.pose.bones["torso"].ccd_rig.limit.kind = "CONE"
    calls, keep = [], regeneration.keep
    monkeypatch.setattr(regeneration, "keep", lambda thing: (calls.append(thing.name), keep(thing)))
    for times in (1, 2):
        bpy.ops.object.mode_set(mode="EDIT")
        for number in range(3):
            rig.data.edit_bones[0].roll = 0.1 * number
            rig.data.update_tag()
            rigs.update()
        assert calls == [rig.name] * times
        bpy.ops.object.mode_set(mode="POSE")
        rigs.update()
    assert rig.pose.bones["torso"].ccd_rig.limit.kind == "CONE"


def test_bones_are_looked_through_once(ext, rig, monkeypatch):
    renamed_bones = ext.module("ccd_rig.blender.properties.renamed_bones")
    rigs.update()
    calls, follow = [], renamed_bones.follow
    monkeypatch.setattr(renamed_bones, "follow", lambda thing: (calls.append(thing.name), follow(thing)))
    bpy.ops.object.mode_set(mode="EDIT")
    for number in range(3):
        rig.data.edit_bones[0].roll = 0.1 * number
        rig.data.update_tag()
        rigs.update()
    calls.clear()
    rig.data.update_tag()
    rigs.update()
    assert calls == []
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones["bone_3"].name = "hand"
    rigs.update()
    assert calls == ["Rig"]
    assert rig.ccd_rig.constraints[0].tip == "hand"


@pytest.mark.parametrize("way", ["append", "undo", "script"])
def test_what_comes_later_is_not_missed(ext, rig, tmp_path, way):
    """Rigs of ours that come after evaluations without any: their renamed bones are followed."""
    if way == "append":
        path = str(tmp_path / "rig.blend")
        bpy.ops.wm.save_as_mainfile(filepath=path)
        bpy.ops.wm.read_homefile(use_empty=True)
        rigs.link(bpy.data.cameras.new("Other"), "Other")
        rigs.update()
        with bpy.data.libraries.load(path, link=False) as (_, here):
            here.objects = ["Rig"]
        bpy.context.scene.collection.objects.link(bpy.data.objects["Rig"])
        ext.module("ccd_rig.blender.listening").notice()  # as a redraw of a view does
    elif way == "undo":
        bpy.ops.ed.undo_push(message="with")
        rig.ccd_rig.constraints.clear()
        for bone in rig.pose.bones:
            bone.property_unset("ccd_rig")
        rigs.update()
        bpy.ops.ed.undo_push(message="without")
        bpy.ops.ed.undo()
    else:
        rig.ccd_rig.constraints.clear()
        for bone in rig.pose.bones:
            bone.property_unset("ccd_rig")
        rig.data.update_tag()
        rigs.update()
        rig.ccd_rig.constraints.add().tip = "bone_3"
    rig = bpy.data.objects["Rig"]
    rigs.update()
    rig.data.bones["bone_3"].name = "hand"
    rigs.update()
    assert rig.ccd_rig.constraints[0].tip == "hand"


def test_each_armature_is_looked_at_once_where_none_is_live(ext, rig, monkeypatch):
    """Copies of live rigs are looked for as long as one is live; else one look at each is enough."""
    clamps = ext.module("ccd_rig.blender.rig.clamps")
    look, looks = clamps.clamps_of, []
    monkeypatch.setattr(clamps, "clamps_of", lambda thing: (looks.append(thing.name), look(thing))[1])
    for _ in range(3):
        rig.update_tag()
        rigs.update()
    assert looks.count("Rig") <= 1
    other = rigs.chain(2, name="Other")
    rigs.activate(rig)
    bpy.ops.ccd_rig.live()
    looks.clear()
    for _ in range(3):
        other.update_tag()
        rigs.update()
    assert looks.count("Other") >= 2


@pytest.fixture
def calls(ext):
    """Armatures of which the callbacks of evaluations were told."""
    evaluations, told = ext.module("ccd_rig.blender.evaluations"), []

    def callback(_scene, _depsgraph, armatures):
        told.extend(each.name for each in armatures)

    evaluations.wake()
    evaluations.add(callback, lambda _armature_object: True)
    yield told
    evaluations.remove(callback)
    evaluations.wake()


def turn(rig):
    """Evaluate a rig in a pose that it did not have yet, twice: the first look at it may tell."""
    for _ in range(2):
        rig.pose.bones[0].location.x += 0.1
        rigs.update()


@pytest.mark.parametrize("is_used", [False, True])
def test_nothing_is_told_of_rigs_of_others_until_something_changes(ext, calls, is_used):
    """Neither before the first use nor after it, once the rig that it was for is gone."""
    if is_used:
        first = rigs.chain(3, name="First")
        reach(first, "bone_2", rigs.empty("Goal", (1.0, 0.5, 2.0)))
        rigs.update()
        bpy.data.objects.remove(first)
    rig = rigs.chain(3)
    turn(rig)
    calls.clear()
    turn(rig)
    assert calls == []
    for mode in ("POSE", "EDIT", "OBJECT"):
        bpy.ops.object.mode_set(mode=mode)
        rig.data.update_tag()
        rigs.update()
        assert rig.name in calls
        calls.clear()
    turn(rig)
    calls.clear()
    rigs.chain(2, name="Other")
    rigs.update()
    assert "Other" in calls


@pytest.mark.parametrize("way", ["constraint", "live", "undo", "file"])
def test_rigs_of_ours_wake_the_callbacks(ext, calls, tmp_path, way):
    rig = rigs.chain(3)
    bpy.ops.ed.undo_push(message="before")
    turn(rig)
    calls.clear()
    if way == "undo":
        rig.location.x = 1.0
        bpy.ops.ed.undo_push(message="after")
        bpy.ops.ed.undo()
        rig = bpy.data.objects["Rig"]
    elif way == "file":
        path = str(tmp_path / "rig.blend")
        bpy.ops.wm.save_as_mainfile(filepath=path)
        bpy.ops.wm.open_mainfile(filepath=path)
        rig = bpy.data.objects["Rig"]
    else:
        rigs.reach(rig, "bone_2", rigs.empty("Goal", (1.0, 0.5, 2.0)))
        if way == "live":
            rigs.activate(rig)
            bpy.ops.ccd_rig.live()
    calls.clear()
    rig.pose.bones[0].location.x += 0.1
    rigs.update()
    assert calls == ["Rig"]
    if way in ("constraint", "live"):  # it goes on being told of
        calls.clear()
        turn(rig)
        assert calls == ["Rig", "Rig"]


def test_a_removed_armature_is_forgotten(ext, calls):
    rig, other = rigs.chain(3), rigs.chain(2, name="Other")
    turn(rig)
    bpy.data.objects.remove(other)
    calls.clear()
    turn(rig)
    rigs.reach(rig, "bone_2", rigs.empty("Goal", (1.0, 0.5, 2.0)))
    rigs.update()
    rig.data.bones["bone_2"].name = "hand"
    turn(rig)
    assert rig.ccd_rig.constraints[0].tip == "hand"
