"""What is stored on an armature stays: saved, disabled and enabled, and overridden."""

from __future__ import annotations

import shutil

import bpy
import pytest
import rigs
from installed import PACKAGE, leftovers
from linked_rigs import character, collected, overridden, override_of


@pytest.fixture
def rig():
    return rigs.chain(3)


def stored(rig):
    """All that the extension has stored on an armature, as plain values."""

    def plain(group):
        found = {}
        for name, prop in group.bl_rna.properties.items():
            if name == "rna_type":
                continue
            value = getattr(group, name)
            if prop.type == "COLLECTION":
                value = [plain(each) for each in value]
            elif prop.type == "POINTER":
                value = (
                    value.name if isinstance(value, bpy.types.ID | None) and value else value and plain(value)
                )
            elif getattr(prop, "is_array", False):
                value = tuple(value)
            found[name] = value
        return found

    return plain(rig.ccd_rig), [plain(bone.ccd_rig) for bone in rig.pose.bones]


def fill(rig, rows):
    """Something else than the default in every property."""
    things = (rigs.empty("Goal"), bpy.data.actions.new("Some"), bpy.data.collections.new("Some"))
    rigs.update()  # it is the active object: the list would follow it

    def change(group):
        for name, prop in group.bl_rna.properties.items():
            if name == "rna_type" or prop.type == "COLLECTION" or prop.is_skip_save:
                continue
            if prop.type == "POINTER":
                thing = next((each for each in things if each.bl_rna == prop.fixed_type), None)
                if thing is not None:
                    setattr(group, name, thing)
                else:
                    change(getattr(group, name))
            elif prop.type == "BOOLEAN":
                flipped = [not each for each in prop.default_array] if prop.is_array else not prop.default
                setattr(group, name, flipped)
            elif prop.type == "ENUM":
                setattr(group, name, prop.enum_items[-1].identifier)
            elif prop.type == "STRING":
                setattr(group, name, f"some {name}")
            elif prop.type == "INT":
                setattr(group, name, 7)
            else:
                value = prop.hard_min + (min(prop.hard_max, prop.hard_min + 10.0) - prop.hard_min) * 0.3
                setattr(group, name, (value,) * prop.array_length if prop.is_array else value)

    for name in ("One", "Two"):
        change(rows.add(rig, name, "bone_2"))
    for bone in rig.pose.bones:
        change(bone.ccd_rig)
    change(rig.ccd_rig)


def test_everything_is_saved_with_the_file(rows, rig, tmp_path):
    before = stored(rig)
    fill(rig, rows)
    filled = stored(rig)
    assert filled != before
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "rig.blend"))
    assert stored(bpy.data.objects["Rig"]) == filled


def test_everything_survives_disabling_and_enabling(rows, rig):
    fill(rig, rows)
    filled = stored(rig)
    bpy.ops.preferences.addon_disable(module=PACKAGE)
    assert leftovers() == []
    assert not hasattr(rig, "ccd_rig")
    bpy.ops.preferences.addon_enable(module=PACKAGE)
    assert stored(bpy.data.objects["Rig"]) == filled


def test_register_and_unregister_twenty_times(ext):
    bpy.ops.preferences.addon_disable(module=PACKAGE)
    try:
        root = ext.module("operators").__package__.rpartition(".")[0]
        assert root == PACKAGE
        shell = __import__(PACKAGE, fromlist=["register"])
        for _ in range(20):
            shell.register()
            assert leftovers() != []
            shell.unregister()
            assert leftovers() == []
    finally:
        bpy.ops.preferences.addon_enable(module=PACKAGE)


@pytest.fixture
def override(rows, rig, tmp_path):
    """A library override of an armature with two constraints, linked from another file."""
    goal = rigs.empty("Goal")
    for name in ("One", "Two"):
        rows.add(rig, name, "bone_2").target = goal
    return overridden(rig, tmp_path)


def test_an_override_keeps_changes_and_added_rows(rows, override, tmp_path):
    assert [row.name for row in override.ccd_rig.constraints] == ["One", "Two"]
    override.ccd_rig.constraints["One"].influence = 0.5
    override.ccd_rig.constraints["Two"].enabled = False
    override.ccd_rig.solver.max_iterations = 33
    override.pose.bones["bone_1"].ccd_rig.limit.kind = "CONE"
    override.pose.bones["bone_1"].ccd_rig.limit.cone_radius = 0.25
    override.ccd_rig.constraints["One"].rotation = "DIRECTION"
    override.ccd_rig.constraints["One"].rotation_bone = "bone_1"
    override.ccd_rig.constraints["One"].effector_offset = (0.5, 0.0, -0.25)
    override.ccd_rig.constraints["One"].pole_target = rigs.empty("Pole")
    override.ccd_rig.constraints["Two"].kind = "BALANCE"
    override.ccd_rig.constraints["Two"].balance_axes = (False, True, False)
    override.pose.bones["bone_0"].ccd_rig.use_slide = (True, False, True)
    override.pose.bones["bone_0"].ccd_rig.slide_lower = (-0.5, -0.25, 0.0)
    override.pose.bones["bone_2"].ccd_rig.mass = 4.0
    for name in ("Mine", "Mine too"):
        rows.add(override, name, "bone_1").target = bpy.data.objects["Goal"]
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (again,) = [each for each in bpy.data.objects if each.override_library and each.type == "ARMATURE"]
    listed = again.ccd_rig.constraints
    assert [row.name for row in listed] == ["One", "Two", "Mine", "Mine too"]
    assert (listed[0].influence, listed[1].enabled, listed[2].tip) == (0.5, False, "bone_1")
    assert listed[2].target.name == "Goal"
    assert again.ccd_rig.solver.max_iterations == 33
    assert again.pose.bones["bone_1"].ccd_rig.limit.kind == "CONE"
    assert again.pose.bones["bone_1"].ccd_rig.limit.cone_radius == 0.25
    assert (listed[0].rotation, listed[0].pole_target.name) == ("DIRECTION", "Pole")
    assert (listed[0].rotation_bone, tuple(listed[0].effector_offset)) == ("bone_1", (0.5, 0.0, -0.25))
    assert (listed[1].kind, tuple(listed[1].balance_axes)) == ("BALANCE", (False, True, False))
    assert tuple(again.pose.bones["bone_0"].ccd_rig.use_slide) == (True, False, True)
    assert tuple(again.pose.bones["bone_0"].ccd_rig.slide_lower) == (-0.5, -0.25, 0.0)
    assert again.pose.bones["bone_2"].ccd_rig.mass == 4.0


def test_an_override_of_a_rig_that_never_knew_the_extension(rows, rig, tmp_path):
    """Its library holds no group at all to compare with."""
    made = character(collected(rig), tmp_path)
    goal = rigs.empty("Goal")
    rows.add(made, "Mine", "bone_2").target = goal
    made.ccd_rig.solver.max_iterations = 33
    made.pose.bones["bone_1"].ccd_rig.comfort.region.kind = "HINGE"
    bpy.ops.ed.undo_push(message="a comparison before the file is saved")
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    for _ in ("opened", "resynchronised"):
        (again,) = [each for each in bpy.data.objects if each.override_library]
        assert [(row.name, row.target.name) for row in again.ccd_rig.constraints] == [("Mine", "Goal")]
        assert again.ccd_rig.solver.max_iterations == 33
        assert again.pose.bones["bone_1"].ccd_rig.comfort.region.kind == "HINGE"
        again.override_library.resync(bpy.context.scene, view_layer=bpy.context.view_layer)


@pytest.fixture
def reopened(rows, rig, tmp_path):
    """Opens the shot with an override again after its library and the override itself were changed."""

    def opened(change_library, change_override):
        for name in ("One", "Two", "Three"):
            rows.add(rig, name, "bone_2")
        made = overridden(rig, tmp_path)
        rows.add(made, "Mine", "bone_1")
        change_override(made)
        library, shot = str(tmp_path / "library.blend"), str(tmp_path / "shot.blend")
        bpy.ops.wm.save_as_mainfile(filepath=shot)
        bpy.ops.wm.open_mainfile(filepath=library)
        theirs = bpy.data.objects["Rig"]
        bpy.context.scene.collection.objects.link(theirs)
        change_library(theirs)
        bpy.ops.wm.save_as_mainfile(filepath=library)
        bpy.ops.wm.open_mainfile(filepath=shot)
        (made,) = [each for each in bpy.data.objects if each.override_library]
        return made

    return opened


def test_keys_of_an_override_follow_constraints_that_the_library_has_moved(channels, rows, reopened):
    values = {"One": 0.1, "Two": 0.2, "Three": 0.3, "Mine": 0.4}

    def key(made):
        for name, value in values.items():
            made.ccd_rig.constraints[name].influence = value
            made.ccd_rig.constraints[name].keyframe_insert("influence", frame=1)

    def move(theirs):
        rows.remove(theirs, 1)
        rows.move(theirs, 0, 1)
        rows.add(theirs, "New", "bone_0")

    made = reopened(move, key)
    assert set(made.ccd_rig.constraints.keys()) == {"Three", "One", "New", "Mine"}
    keyed = {
        made.path_resolve(curve.data_path.rpartition(".")[0]).name: curve.evaluate(1)
        for curve in channels.fcurves_of(made)
    }
    del values["Two"]
    assert keyed == pytest.approx(values)


@pytest.mark.parametrize("way", ["evaluated", "saved"])
def test_keys_of_an_override_follow_constraints_once_its_library_is_reloaded(ext, rows, rig, tmp_path, way):
    """In the same session, or before a save notes the new order; a user's own rename is none."""
    for name in ("One", "Two", "Three"):
        rows.add(rig, name, "bone_2")
    library = tmp_path / "library.blend"
    bpy.data.libraries.write(str(library), {rig})
    rows.remove(rig, 1)
    rows.move(rig, 0, 1)
    bpy.data.libraries.write(str(tmp_path / "changed.blend"), {rig})
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(str(library), link=True) as (_, wanted):
        wanted.objects = ["Rig"]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    made = override_of(wanted.objects[0])
    rows.add(made, "Mine", "bone_1")
    values = {"One": 0.1, "Two": 0.2, "Three": 0.3, "Mine": 0.4}
    for name, value in values.items():
        made.ccd_rig.constraints[name].influence = value
        made.ccd_rig.constraints[name].keyframe_insert("influence", frame=1)
    rigs.update()
    made.ccd_rig.constraints["Mine"].name = "Own"
    rigs.update()
    shutil.copy(tmp_path / "changed.blend", library)
    bpy.data.libraries[0].reload()
    if way == "evaluated":
        rigs.update()
    else:
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    (made,) = [each for each in bpy.data.objects if each.override_library]
    assert set(made.ccd_rig.constraints.keys()) == {"Three", "One", "Own"}
    keyed = {
        made.path_resolve(curve.data_path.rpartition(".")[0]).name: curve.evaluate(1)
        for curve in ext.module("ccd_rig.blender.keys.channels").fcurves_of(made)
    }
    assert keyed == pytest.approx({"One": 0.1, "Three": 0.3, "Own": 0.4})


def test_a_name_that_the_library_gets_too_is_numbered_in_the_override(
    ext, channels, rows, reopened, tmp_path
):
    """Both had one name: keys went to the library's, which lost its values to the other at the next save."""

    def key(made):
        mine = made.ccd_rig.constraints["Mine"]
        mine.weight, mine.influence = 0.9, 0.5
        mine.keyframe_insert("influence", frame=1)

    def add(theirs):
        rows.add(theirs, "Mine", "bone_0").weight = 0.3

    made = reopened(add, key)
    for _ in range(2):
        listed = {row.name: (row.tip, round(row.weight, 3)) for row in made.ccd_rig.constraints}
        assert listed["Mine"] == ("bone_0", 0.3) and listed["Mine.001"] == ("bone_1", 0.9)
        assert len(listed) == len(made.ccd_rig.constraints) == 5
        (curve,) = channels.fcurves_of(made)
        assert made.path_resolve(curve.data_path.rpartition(".")[0]).name == "Mine.001"
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
        (made,) = [each for each in bpy.data.objects if each.override_library]
    rows.remove(made, made.ccd_rig.constraints.find("Mine.001"))


def test_rows_of_an_override_are_told_from_those_that_its_library_gets_later(ext, rows, reopened):
    """Blender puts the library's new row after the override's own."""
    made = reopened(lambda theirs: rows.add(theirs, "New", "bone_0"), lambda made: None)
    names = made.ccd_rig.constraints.keys()
    assert set(names) == {"One", "Two", "Three", "New", "Mine"}
    with pytest.raises(ext.core.RigError, match="constraint 'New' comes from the library"):
        rows.remove(made, names.index("New"))
    rows.remove(made, names.index("Mine"))
    assert set(made.ccd_rig.constraints.keys()) == {"One", "Two", "Three", "New"}


def test_offsets_of_an_override_are_told_from_those_that_its_library_gets_later(ext, reopened):
    joints = ext.module("ccd_rig.blender.properties.joints")

    def add(rig, angle):
        joints.add(rig.pose.bones["bone_1"]).points[1].angle = angle

    made = reopened(lambda theirs: add(theirs, 1.5), lambda made: add(made, 0.5))
    bone = made.pose.bones["bone_1"]
    angles = [row.points[1].angle for row in bone.ccd_rig.coupled_offsets]
    assert sorted(angles) == [0.5, 1.5]
    for remove in (joints.remove, lambda bone, row: joints.remove_point(bone, row, 0)):
        joints.add_point(bone, angles.index(1.5))
        with pytest.raises(ext.core.RigError, match="comes from the library"):
            remove(bone, angles.index(1.5))
    joints.remove(bone, angles.index(0.5))
    assert [row.points[1].angle for row in bone.ccd_rig.coupled_offsets] == [1.5]


def test_rows_from_a_library_keep_their_names_and_come_once(reopened):
    def rename(made):
        made.ccd_rig.constraints["Two"].name = "Another"
        made.ccd_rig.constraints["Three"].name = "One"
        made.ccd_rig.constraints["Mine"].name = "Own"

    made = reopened(lambda theirs: None, rename)
    assert made.ccd_rig.constraints.keys() == ["One", "Two", "Three", "Own"]


def test_rows_of_an_override_are_moved_only_among_the_added_ones(ext, rows, override):
    for name in ("Mine", "Mine too"):
        rows.add(override, name, "bone_1")
    rows.move(override, 2, 3)
    assert [row.name for row in override.ccd_rig.constraints] == ["One", "Two", "Mine too", "Mine"]
    for change in (lambda: rows.move(override, 1, 2), lambda: rows.remove(override, 0)):
        with pytest.raises(ext.core.RigError, match="comes from the library"):
            change()
    rows.remove(override, 2)
    assert [row.name for row in override.ccd_rig.constraints] == ["One", "Two", "Mine"]
