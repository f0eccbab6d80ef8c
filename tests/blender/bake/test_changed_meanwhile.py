"""The file is changed while a bake is under way, by a script, undo or another file: a sentence, never a bug.

And what fails at the very end takes everything back."""

from __future__ import annotations

import gc
import sys

import bpy
import pytest
import rigs
from rigs import keyed, reach
from whole_file import differences, dump


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


@pytest.mark.parametrize("at", [1, 4, 6, 7, 9, 12, 15])
@pytest.mark.parametrize("part", [0.0, 0.05])
@pytest.mark.parametrize("change", CHANGES)
def test_it_is_told_in_a_sentence(ext, bake, errors, monkeypatch, rig, change, part, at):
    """`at` of all items, with one for each piece of work or each frame."""
    monkeypatch.setattr(ext.module("ccd_rig.solvers.motion"), "CHUNK_SECONDS", part)
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


def move_key():
    goal = bpy.data.objects["Goal"]
    goal.location.x = 1.2
    goal.keyframe_insert("location", index=0, frame=4)


def set_limit():
    limit = bpy.data.objects["Rig"].pose.bones["bone_2"].ccd_rig.limit
    limit.kind, limit.cone_radius = "CONE", 0.1


def move_parent():
    bpy.data.objects["Carrier"].location.z = 0.3


EDITS = {"key of the target": move_key, "limit": set_limit, "what carries the target": move_parent}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_in_another_window_while_frames_are_read_is_told(bake, errors, rig, edit):
    """Else some frames would be of the target before, and some of that after."""
    bpy.data.objects["Goal"].parent = rigs.empty("Carrier")
    rigs.update()
    before = dump()
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, 6))
    while (item := next(steps)).verb != "evaluated" or item.frame < 3:
        pass
    EDITS[edit]()
    rigs.update()
    edited = dump()
    assert edited != before
    with pytest.raises(
        errors.RigError, match="Armature 'Rig' was changed while it was baked: bake once more"
    ):
        list(steps)
    assert len(bpy.data.scenes) == 1 and rig.animation_data is None


def test_a_script_that_moves_a_target_at_each_frame_is_no_edit(bake, rig):
    goal = rigs.empty("Led")
    rig.ccd_rig.constraints[0].target = goal

    def lead(scene, *_):
        goal.location = (0.2 * scene.frame_current, 0.5, 2.0)

    bpy.app.handlers.frame_change_post.append(lead)
    try:
        report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 6))
    finally:
        bpy.app.handlers.frame_change_post.remove(lead)
    assert report.solved_count() == 6


def test_another_frame_shown_meanwhile_changes_nothing(bake, channels, rig):
    """As where another window plays the scene."""

    def keys():
        return [[tuple(point.co) for point in curve.keyframe_points] for curve in channels.fcurves_of(rig)]

    settings = bake.BakeSettings(1, 6, start=bake.Start.REST)
    bake.bake(bpy.context.scene, rig, settings)
    expected = keys()
    steps = bake.bake_steps(bpy.context.scene, rig, settings)
    for k, _ in enumerate(steps):
        bpy.context.scene.frame_set(1 + k % 5)
    assert keys() == expected


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


class Fault(BaseException):
    """As if Ctrl-C were pressed there."""


class Faults:
    """Counts events of the extension's code while it bakes, and raises at one of them.

    Attributes:
        event: "call" of a function, or "line".
        functions: in which lines count; calls count from the first one of these on.
        places: of the events so far, a line of code each.
    """

    def __init__(self, event, *functions):
        self.event, self.functions, self.places, self.at = event, functions, [], -1

    def trace(self, frame, event, _argument):
        code = frame.f_code
        if "user_default" not in code.co_filename:
            return None
        counts = code.co_name in self.functions or (self.event == "call" and self.places)
        if counts and event == self.event:
            self.places.append((code.co_filename, frame.f_lineno))
            if len(self.places) == self.at:
                raise Fault
        return self.trace if counts and self.event == "line" else None

    def bake(self, bake, rig, at=-1):
        """Whether a bake that fails at an event ended there."""
        self.at = at
        self.places.clear()
        before = sys.gettrace()  # what measures which lines are run
        sys.settrace(self.trace)
        try:
            bake.run(bake.bake_in_shared_scene(bpy.context.scene, rig, bake.BakeSettings(1, 3), None))
        except Fault:
            return True
        finally:
            sys.settrace(before)
        return False


def test_a_fault_in_any_call_after_solving_takes_all_back(bake, rig, tmp_path):
    rigs.forget_names(rig)
    path, faults = str(tmp_path / "before.blend"), Faults("call", "keyed_motion")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    assert not faults.bake(bake, rig)
    last = len(faults.places)
    for at in sorted({*range(1, last, last // 8), *range(last - 10, last + 1)}):
        bpy.ops.wm.open_mainfile(filepath=path)
        before = dump()
        if faults.bake(bake, bpy.data.objects["Rig"], at):  # else it was in a generator that Python closed
            assert differences(before, dump()) == [], faults.places[-1]


def test_a_fault_in_any_line_of_the_scene_aside_leaves_none(bake, rig):
    """Nor one in a line that cleans up: it is done once more."""
    faults = Faults("line", "shared_scene", "remove_left")
    assert not faults.bake(bake, rig)
    places = list(faults.places)
    for at in sorted({places.index(place) for place in places}):
        assert faults.bake(bake, rig, at + 1)
        gc.collect()
        assert [scene.name for scene in bpy.data.scenes] == ["Scene"], places[at]


def test_a_scene_aside_in_a_file_saved_while_one_was_there_is_removed(bake, rig, tmp_path):
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, 6))
    while next(steps).verb != "evaluated":
        pass
    assert len(bpy.data.scenes) == 2
    path = str(tmp_path / "meanwhile.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path, copy=True)
    steps.close()
    bpy.ops.wm.open_mainfile(filepath=path)
    assert [scene.name for scene in bpy.data.scenes] == ["Scene"]
    assert sorted(thing.name for thing in bpy.data.objects) == ["Goal", "Rig"]


def test_a_users_scene_of_that_name_stays(bake, rig):
    own = bpy.data.scenes.new("CCD Rig Evaluation")
    own.collection.objects.link(bpy.data.objects["Goal"])
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert len(bpy.data.scenes) == 2


def test_what_is_gone_has_no_names(bake, rig):
    """Also where something else fails because of it: the sentence tells of the armature then."""
    names = bake._names(bpy.context.scene, rig)
    assert names[1] == "Armature 'Rig'" and names[2] == tuple(f"bone_{i}" for i in range(4))
    bpy.data.objects.remove(rig)
    assert bake._names(bpy.context.scene, rig) == ("", "The armature")


BEGINNINGS = {
    "bake": lambda bake, bake_all, *what: bake.bake_steps(*what),
    "bake of what was solved": lambda bake, bake_all, *what: bake.bake_steps(*what, None),
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
    while (item := next(steps)).verb != "evaluated" or not item.done:
        pass
    next(steps)
    CHANGES["armature removed"]()
    with pytest.raises(errors.RigError, match="'Rig' was changed while it was baked"):
        list(steps)
