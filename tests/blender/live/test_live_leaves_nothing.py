"""The live preview: nothing of it stays in files, copies, keys and overrides."""

from __future__ import annotations

import bpy
import pytest
import rigs
from linked_rigs import overridden
from mathutils import Vector
from shown import REACHED, SHOWN, off, shows, switch_live


def test_files_hold_nothing_of_it(rig, live, clamps, tmp_path):
    switch_live()
    path = str(tmp_path / "rig.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path, copy=True)
    rigs.update()
    assert rig.ccd_rig.live
    assert off(rig) < REACHED
    with bpy.data.libraries.load(path, link=False) as (there, here):
        here.objects = there.objects
    stored = next(thing for thing in here.objects if thing.type == "ARMATURE")
    assert not stored.ccd_rig.is_property_set("live")
    assert not any(len(bone.constraints) for bone in stored.pose.bones)
    bpy.ops.wm.open_mainfile(filepath=path)
    assert live._previews == {}
    assert not bpy.data.objects["Rig"].ccd_rig.live


def test_a_library_written_while_live(ext, rig, live, clamps, tmp_path):
    switch_live()
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {rig})
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(path, link=False) as (_, here):
        here.objects = ["Rig"]
    (made,) = here.objects
    bpy.context.scene.collection.objects.link(made)
    ext.module("ccd_rig.blender.listening").notice()  # as a redraw of a view does
    rigs.update()
    assert not made.ccd_rig.live
    assert list(clamps.clamps_of(made)) == []
    bpy.ops.wm.open_mainfile(filepath=path)
    assert not any(len(bone.constraints) for bone in bpy.data.objects["Rig"].pose.bones)


def test_a_rig_linked_from_a_library_written_while_live(ext, rig, live, clamps, tmp_path):
    """Each time the library is read: clamps would hold the pose that they showed for good."""
    switch_live()
    path, shot = str(tmp_path / "library.blend"), str(tmp_path / "shot.blend")
    bpy.data.libraries.write(path, {rig})
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(path, link=True) as (_, here):
        here.objects = ["Rig"]
    (linked,) = here.objects
    bpy.context.scene.collection.objects.link(linked)
    for reopened in (False, True):
        if reopened:
            bpy.ops.wm.save_as_mainfile(filepath=shot)
            bpy.ops.wm.open_mainfile(filepath=shot)
            rigs.update()
        else:
            ext.module("ccd_rig.blender.listening").notice()  # as a redraw of a view does
            bpy.context.scene.frame_set(2)  # the first evaluation
        linked = bpy.data.objects["Rig"]
        assert linked.library is not None
        assert list(clamps.clamps_of(linked)) == []
        assert not linked.ccd_rig.live
        assert (shows(linked) - Vector((0.0, 0.0, 4.0))).length < SHOWN
    made = linked.override_create(remap_local_usages=True)
    rigs.update()
    assert list(clamps.clamps_of(made)) == []


def test_copies_are_not_live(rig, live, clamps):
    switch_live()
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.ops.object.duplicate()
    copy = bpy.context.object
    rigs.update()
    assert copy != rig
    assert not copy.ccd_rig.live
    assert list(clamps.clamps_of(copy)) == []
    assert (shows(copy) - Vector((0.0, 0.0, 4.0))).length < SHOWN
    assert rig.ccd_rig.live
    assert off(rig) < REACHED


def test_clamps_that_are_copied_to_another_rig_go(rig, live, clamps):
    """As by Copy Constraints, from a bone of a live rig."""
    other = rigs.chain(4, name="Other")
    rigs.activate(rig)
    switch_live()
    other.update_tag()
    rigs.update()
    clamp = rig.pose.bones["bone_1"].constraints[0]
    other.pose.bones["bone_1"].constraints.copy(clamp)
    assert len(list(clamps.clamps_of(other))) == 1
    other.update_tag()
    rigs.update()
    assert list(clamps.clamps_of(other)) == []
    assert not other.is_property_set("ccd_rig")
    assert off(rig) < REACHED


def test_a_script_that_takes_the_property_away_ends_it(rig, live, clamps):
    switch_live()
    assert off(rig) < REACHED
    rig.ccd_rig.property_unset("live")
    rig.update_tag()
    rigs.update()
    assert list(clamps.clamps_of(rig)) == []
    assert (shows(rig) - Vector((0.0, 0.0, 4.0))).length < SHOWN


def test_undo_and_redo(rig, live, clamps):
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.ccd_rig.live()
    bpy.ops.ed.undo_push(message="live")
    rigs.update()
    bpy.data.objects["Target bone_3"].location = (0.0, 1.0, 2.0)
    rigs.update()
    bpy.ops.ed.undo_push(message="moved")
    bpy.ops.ed.undo()
    rigs.update()
    rig = bpy.data.objects["Rig"]
    assert bpy.data.objects["Target bone_3"].location.y == 0.5
    assert rig.ccd_rig.live
    assert off(rig) < REACHED
    bpy.ops.ed.undo()
    rig = bpy.data.objects["Rig"]
    rigs.update()
    assert not rig.ccd_rig.live
    assert list(clamps.clamps_of(rig)) == []
    assert (shows(rig) - Vector((0.0, 0.0, 4.0))).length < SHOWN
    bpy.ops.ed.redo()
    rigs.update()
    assert off(bpy.data.objects["Rig"]) < REACHED


def test_keys_hold_the_channels(rig, live):
    rig.pose.bones["bone_1"].rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
    switch_live()
    rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=1)
    assert tuple(rig.pose.bones["bone_1"].rotation_quaternion) == pytest.approx((0.8, 0.6, 0.0, 0.0))
    bpy.context.scene.frame_set(1)
    assert tuple(rig.pose.bones["bone_1"].rotation_quaternion) == pytest.approx((0.8, 0.6, 0.0, 0.0))


def test_an_override_keeps_nothing(rig, live, clamps, tmp_path):
    bpy.ops.object.mode_set(mode="OBJECT")
    library, path = str(tmp_path / "library.blend"), str(tmp_path / "shot.blend")
    bpy.ops.wm.save_as_mainfile(filepath=library)
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(library, link=True) as (_, here):
        here.objects = ["Rig"]
    (linked,) = here.objects
    bpy.context.scene.collection.objects.link(linked)
    made = linked.override_create(remap_local_usages=True)
    made.ccd_rig.constraints[0].target = rigs.empty("Goal", (1.0, 0.5, 2.0))
    rigs.activate(made)
    rigs.update()
    switch_live()
    assert off(made, target="Goal") < REACHED
    bpy.ops.wm.save_as_mainfile(filepath=path)
    rigs.update()
    assert off(made, target="Goal") < REACHED
    bpy.ops.wm.open_mainfile(filepath=path)
    made = next(thing for thing in bpy.data.objects if thing.override_library)
    paths = [each.rna_path for each in made.override_library.properties]
    assert not made.ccd_rig.live
    assert not any(len(bone.constraints) for bone in made.pose.bones)
    assert not any("live" in each or "pose.bones" in each for each in paths), paths


def test_disabling_the_extension_ends_it(ext, rig, live):
    """With its timers: one that is left runs code that is gone."""
    switch_live()
    timers = (live.catch_up, live.end_left)
    for timer in timers:
        bpy.app.timers.register(timer)
    bpy.ops.preferences.addon_disable(module=ext.package)
    assert not any(map(bpy.app.timers.is_registered, timers))
    assert not any(len(bone.constraints) for bone in rig.pose.bones)
    bpy.ops.preferences.addon_enable(module=ext.package)


def stored(rig):
    return [constraint.name for bone in rig.pose.bones for constraint in bone.constraints]


@pytest.fixture
def undone_while_disabled(ext, rig, live):
    """A rig that was live; undo has brought that back while the extension was disabled. It is enabled now."""
    bpy.ops.ed.undo_push(message="before")
    switch_live()
    bpy.ops.ed.undo_push(message="live")
    bpy.data.objects["Target bone_3"].location = (0.0, 1.0, 2.0)
    rigs.update()
    bpy.ops.ed.undo_push(message="moved")
    bpy.ops.preferences.addon_disable(module=ext.package)
    bpy.ops.ed.undo()
    rigs.update()
    rig = bpy.data.objects["Rig"]
    assert stored(rig) == ["CCD Rig Live"] * 4
    bpy.ops.preferences.addon_enable(module=ext.package)
    return rig


def test_enabling_takes_away_what_undo_brought_back(ext, undone_while_disabled, live):
    rig, listening = undone_while_disabled, ext.module("ccd_rig.blender.listening")
    assert bpy.app.timers.is_registered(listening.look) is not bpy.app.background
    listening.look()
    assert bpy.app.timers.is_registered(live.end_left) is not bpy.app.background
    live.end_left()
    rigs.update()
    assert stored(rig) == []
    assert not rig.ccd_rig.live
    assert (shows(rig) - Vector((0.0, 0.0, 4.0))).length < SHOWN
    switch_live()
    assert off(rig) < REACHED


def test_an_evaluation_takes_it_away_where_no_timer_runs(ext, undone_while_disabled):
    ext.module("ccd_rig.blender.registration").use()
    undone_while_disabled.data.update_tag()
    rigs.update()
    assert stored(undone_while_disabled) == []


def test_a_file_that_is_saved_then_has_nothing_of_it(undone_while_disabled, tmp_path):
    path = str(tmp_path / "rig.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path, copy=True)
    with bpy.data.libraries.load(path, link=False) as (_, here):
        here.objects = ["Rig"]
    (there,) = here.objects
    assert stored(there) == []
    assert not there.ccd_rig.is_property_set("live")


def test_constraints_of_the_same_name_stay(rig, live, clamps, tmp_path):
    """Those of other types, and a limit that leaves room."""
    copy = rig.pose.bones["bone_0"].constraints.new("COPY_ROTATION")
    limit = rig.pose.bones["bone_1"].constraints.new("LIMIT_ROTATION")
    limit.owner_space, limit.max_x = "LOCAL", 3.0
    limit.use_limit_x = limit.use_limit_y = limit.use_limit_z = True
    limit.min_x, limit.min_y, limit.max_y, limit.min_z, limit.max_z = -3.0, -3.0, 3.0, -3.0, 3.0
    for each in (copy, limit):
        each.name = clamps.ROTATION
    path = str(tmp_path / "rig.blend")
    for _ in range(2):
        switch_live()
        assert off(rig) < REACHED
        assert len(stored(rig)) == 6
        bpy.ops.wm.save_as_mainfile(filepath=path, copy=True)
        rigs.update()
        assert len(stored(rig)) == 6
        switch_live()
        assert stored(rig) == [clamps.ROTATION] * 2
        assert list(clamps.clamps_of(rig)) == []
    bpy.ops.wm.open_mainfile(filepath=path)
    bones = bpy.data.objects["Rig"].pose.bones
    assert [each.type for bone in bones for each in bone.constraints] == ["COPY_ROTATION", "LIMIT_ROTATION"]


def test_undo_of_something_else_leaves_it_shown(rig, live):
    other = rigs.empty("Other")
    rigs.activate(rig)
    switch_live()
    bpy.ops.ed.undo_push(message="live")
    other.location.x = 1.0
    rigs.update()
    bpy.ops.ed.undo_push(message="moved")
    bpy.ops.ed.undo()
    rig = bpy.data.objects["Rig"]
    assert off(rig) < REACHED
    assert live.preview_of(rig).sample is not None


def test_a_file_that_links_an_override_can_be_saved_and_opened(rig, live, tmp_path, capfd):
    path = str(tmp_path / "shot.blend")
    overridden(rig, tmp_path)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "layout.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(str(tmp_path / "layout.blend"), link=True) as (_, here):
        here.objects = ["Rig"]
    assert here.objects[0].override_library.reference is not None
    bpy.context.scene.collection.objects.link(here.objects[0])
    capfd.readouterr()
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    assert "Traceback" not in "".join(capfd.readouterr())


def test_an_override_whose_linked_rig_is_removed_can_be_saved(rig, live, tmp_path, capfd):
    made = overridden(rig, tmp_path)
    bpy.data.objects.remove(made.override_library.reference)
    capfd.readouterr()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    assert "Traceback" not in "".join(capfd.readouterr())
