"""The tab as far as it goes without a window: where panels stand, when they show, what the first steps say.

What they look like, and that they draw, is looked at in a real window: tests/window.
"""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import linked_rigs
import pytest
import rigs

MODULES = {
    "constraints": ("constraints", "rotation", "pole", "importance", "effector"),
    "bone": ("bone", "comfort", "slide", "mass", "coupled_offsets"),
    "solver": ("solver", "solver_steps", "pose_library"),
    "bake": ("bake", "bake_options", "bake_more", "fk_ik"),
}
PANELS = tuple(name for names in MODULES.values() for name in names)


@pytest.fixture
def rig(ext):
    made = rigs.chain(3)
    bpy.ops.object.mode_set(mode="POSE")
    made.data.bones.active = made.data.bones["bone_2"]
    return made


def panel(ext, name):
    module = next(module for module, names in MODULES.items() if name in names)
    return getattr(ext.module(f"panels.{module}"), f"CCD_RIG_PT_{name}")


def shown(ext):
    """Names of the panels that show now; a panel without a poll shows always, a sub-panel with its parent."""
    found = [n for n in PANELS if not hasattr(panel(ext, n), "poll") or panel(ext, n).poll(bpy.context)]
    parents = {n: getattr(panel(ext, n), "bl_parent_id", "").removeprefix("CCD_RIG_PT_") for n in found}
    return [n for n in found if all(each in found for each in above(n, parents))]


def above(name, parents):
    """The panels that a panel lies in."""
    while parents.get(name):
        name = parents[name]
        yield name


@pytest.mark.parametrize("name", PANELS)
def test_panels_stand_in_the_tab(ext, name):
    kind = panel(ext, name)
    assert kind.is_registered
    assert (kind.bl_space_type, kind.bl_region_type, kind.bl_category) == ("VIEW_3D", "UI", "CCD Rig")
    assert kind.bl_label
    if hasattr(kind, "bl_parent_id"):
        assert getattr(bpy.types, kind.bl_parent_id).is_registered


def test_which_panels_show(ext):
    assert shown(ext) == ["constraints"]
    rigs.empty("Thing")
    assert shown(ext) == ["constraints"]
    rig = rigs.chain(2)
    assert shown(ext) == ["constraints"]
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones["bone_1"]
    assert shown(ext) == ["constraints", *MODULES["bone"]]
    bpy.ops.ccd_rig.constraint_add()
    assert shown(ext) == list(PANELS)
    rig.ccd_rig.constraints[0].kind = "BALANCE"
    assert shown(ext) == [n for n in PANELS if n not in ("rotation", "pole", "effector")]
    bpy.ops.object.mode_set(mode="OBJECT")
    assert shown(ext) == [
        "constraints",
        "importance",
        *MODULES["solver"],
        *MODULES["bake"],
    ]


def test_a_linked_rig_says_why_it_is_grey(ext, tmp_path):
    words = ext.module("ccd_rig.blender.properties.active_rig").linked
    rig = linked_rigs.linked(rigs.chain(2), tmp_path)
    assert words(rig) == "'Rig' is linked from a library: make a library override of it first"
    override = linked_rigs.override_of(rig)
    assert words(override) == ""
    override.override_library.is_system_override = True
    editable = "'Rig' is an override that is not editable: use Library Override > Make > Selected first"
    assert words(override) == editable


def test_advanced_settings_are_folded_away(ext):
    for name in PANELS:
        if hasattr(panel(ext, name), "bl_parent_id"):
            assert "DEFAULT_CLOSED" in panel(ext, name).bl_options, name


@pytest.mark.parametrize(
    ("trouble", "icon"), [("", "CHECKMARK"), ("LIMIT", "CHECKMARK"), ("JUMP", "ERROR"), ("SLIDE", "ERROR")]
)
def test_only_a_bake_without_faults_gets_a_check_mark(ext, trouble, icon):
    """All frames may be reached, and a bone flips in one of them."""
    report, finding = ext.module("panels.bake"), ext.module("ccd_rig.blender.bake.report")
    rig = rigs.chain(2)
    stored = rig.ccd_rig.report
    stored.unsolved = stored.mismatches = 0
    sorts = [finding.Trouble[trouble]] if trouble else []
    found = [finding.Finding(each, "Hand", "bone_1", 3, 4, 3) for each in sorts]
    assert report.head_icon(stored, found) == icon
    stored.mismatches = 1
    assert report.head_icon(stored, found) == "ERROR"


def test_a_report_says_nothing_twice(ext):
    """The summary names the first finding of some kinds, which has a line of its own."""
    panel, report = ext.module("panels.bake"), ext.module("ccd_rig.blender.bake.report")
    depths = [report.Finding(report.Trouble.GROUND, "Foot", "foot", 3, 4, 3, far) for far in (0.5, 0.25)]
    words = f"5 of 5 frames reached; {depths[0].words()} and 1 more; loop of frames 1 to 5 closes"
    stored = SimpleNamespace(
        words=words, findings=report.to_json(depths), unsolved=0, mismatches=0, check="Plays as baked"
    )
    wide = SimpleNamespace(preferences=bpy.context.preferences, region=SimpleNamespace(width=10_000))
    said = [" ".join(each.lines) for each in panel.report_entries(wide, stored)]
    assert said == [
        "5 of 5 frames reached",
        *(each.words() for each in depths),
        "Loop of frames 1 to 5 closes",
        "Plays as baked",
    ]


def test_a_report_begins_with_what_is_missed(ext):
    """Slides of the body for a hand that is out of reach came before it; a loop was told twice."""
    panel, report = ext.module("panels.bake"), ext.module("ccd_rig.blender.bake.report")
    slides = report.Finding(report.Trouble.SLIDE, "Hips", "hips", 1, 40, 20, 0.83)
    jumps = report.Finding(report.Trouble.JUMP, "Hand", "arm", 8, 8, 8, angle=0.5)
    misses = report.Finding(report.Trouble.SHORT, "Hand", "hand", 8, 33, 20, 1.7)
    opens = report.Finding(report.Trouble.LOOP, "", "arm", 1, 40, 40, angle=0.02)
    words = "4 of 40 frames reached; loop of frames 1 to 40 does not close: 'arm' ends 1 degrees off"
    stored = SimpleNamespace(
        words=words,
        findings=report.to_json([slides, jumps, misses, opens]),
        unsolved=36,
        mismatches=0,
        check="",
    )
    wide = SimpleNamespace(preferences=bpy.context.preferences, region=SimpleNamespace(width=10_000))
    entries = panel.report_entries(wide, stored)
    assert [entry.finding for entry in entries] == [-1, 2, 0, 1, 3]
    assert entries[1].lines == [misses.words()]


def test_a_long_report_is_folded(ext):
    """To seven lines, a button counted as two, but never to less than the head and the first thing found."""
    report = ext.module("panels.bake")
    fix = ext.module("ccd_rig.blender.bake.report").Fix.POLE
    head, two, four, button = (
        report.Entry(["word"] * count, "NONE", index, found)
        for count, index, found in ((1, -1, ""), (2, 0, ""), (4, 1, ""), (3, 2, fix))
    )
    for parts, count in (
        ([head], 1),
        ([head, two, two, two], 4),
        ([head, two, two, two, head], 4),
        ([head, two, four, head], 3),
        ([head, two, button], 2),
        ([four, button, head], 2),
        ([head, button, head, head], 3),
    ):
        assert report.folded(parts) == parts[:count]


@pytest.mark.parametrize(
    ("words", "missed", "icon"),
    [
        ("worst 0.0040 m at frame 57 (Hand)", True, "ERROR"),
        ("worst below 0.0001 m at frame 57 (Hand)", False, "INFO"),
        ("planted bones slide below 0.0001 m", False, "INFO"),
        ("planted bones slide 0.2000 m", True, "ERROR"),
        ("smoothed at frames 40 to 58 (hand.L)", False, "INFO"),
        ("the body helps at frame 4 (hand.L): 'spine' turns by up to 12 degrees", False, "INFO"),
    ],
)
def test_a_report_warns_of_what_is_missed_alone(ext, words, missed, icon):
    assert ext.module("panels.bake")._icon_of(words, missed) == icon


def done(ext):
    steps = ext.module("panels.constraints").first_steps(bpy.context)
    assert [words for _, words in steps] == [
        "Select an armature",
        "Go to Pose Mode",
        "Select the bone to move",
        "Add a constraint for it",
    ]
    return [is_done for is_done, _ in steps]


def test_first_steps_are_ticked_one_by_one(ext):
    assert done(ext) == [False, False, False, False]
    rigs.empty("Thing")
    assert done(ext) == [False, False, False, False]
    rig = rigs.chain(2)
    rig.data.bones.active = None
    assert done(ext) == [True, False, False, False]
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = None
    assert done(ext) == [True, True, False, False]
    rig.data.bones.active = rig.data.bones["bone_1"]
    assert done(ext) == [True, True, True, False]


def test_a_linked_character_that_is_an_instance_is_seen(ext, tmp_path):
    """File > Link gives an empty that shows a collection: the steps only said to select an armature."""
    rig = linked_rigs.linked(rigs.chain(2), tmp_path)
    collection = bpy.data.collections.new("Character")
    collection.objects.link(rig)
    thing = rigs.empty("Character")
    panel_module = ext.module("panels.constraints")
    context = SimpleNamespace(object=thing)
    assert panel_module.instanced_rig(context) is None
    thing.instance_type, thing.instance_collection = "COLLECTION", collection
    assert panel_module.instanced_rig(context) == rig
    assert "make a library override" in panel_module.linked(rig)
    assert panel_module.instanced_rig(SimpleNamespace(object=None)) is None


class _Layout:
    """Takes what is drawn and keeps its labels."""

    def __init__(self):
        self.labels = []

    def column(self, **_):
        return self

    def label(self, *, text, icon, translate=True):
        self.labels.append((text, icon))

    def operator(self, *_, **__):
        return None


def test_first_steps_are_broken_to_a_narrow_sidebar(ext):
    """They were cut off at its edge."""
    preferences = SimpleNamespace(
        system=SimpleNamespace(ui_scale=1.0),
        ui_styles=bpy.context.preferences.ui_styles,
        view=bpy.context.preferences.view,
    )
    lines = {}
    for width in (280, 160):
        region = SimpleNamespace(width=width)
        context = SimpleNamespace(object=None, mode="OBJECT", region=region, preferences=preferences)
        layout = _Layout()
        ext.module("panels.constraints")._draw_first_steps(layout, context)
        lines[width] = layout.labels
    assert [text for text, _ in lines[280]][1:3] == ["Go to Pose Mode", "Select the bone to move"]
    assert len(lines[160]) > 4
    assert " ".join(text for text, _ in lines[160]) == " ".join(text for text, _ in lines[280])
    assert sum(icon != "BLANK1" for _, icon in lines[160]) == 4


def test_a_problem_is_found_for_the_list(checks, rig):
    """What the list's icon and the box below it show."""
    bpy.ops.ccd_rig.constraint_add()
    row, scene = rig.ccd_rig.constraints[0], bpy.context.scene
    assert list(checks.constraint_problems(rig, row, scene)) == []
    row.influence = 0.0
    assert [p.severity for p in checks.constraint_problems(rig, row, scene)] == ["WARNING"]
    row.target = None
    row.tip = "bone_3"
    found = list(checks.constraint_problems(rig, row, scene))
    assert [p.severity for p in found] == ["ERROR", "ERROR", "WARNING"]
    assert "'bone_3' is not in armature 'Rig'" in found[0].message
    assert "'bone_2'" in found[0].message


def test_no_label_has_two_meanings(ext):
    """What stands beside a field tells it from all others in panels; Min and Max stand by their kind."""
    modules = {
        "constraint_kinds": ("CCD_RIG_PG_constraint",),
        "solver_settings": ("CCD_RIG_PG_solver",),
        "limits": ("CCD_RIG_PG_limit",),
        "joints": ("CCD_RIG_PG_joint", "CCD_RIG_PG_comfort"),
    }
    groups = [
        getattr(ext.module(f"ccd_rig.blender.properties.{module}"), name)
        for module, names in modules.items()
        for name in names
    ]
    groups.append(ext.module("ccd_rig.blender.bake.settings").CCD_RIG_PG_bake)
    fields = {}
    for group in groups:
        for name, field in group.bl_rna.properties.items():
            if name not in ("rna_type", "name") and field.type != "POINTER":
                fields.setdefault(field.name, set()).add((name, field.description))
    # A bake has its own value of what a pass removes.
    same = {"Min", "Max", "Even Bend"}
    assert {label: those for label, those in fields.items() if len(those) > 1 and label not in same} == {}


def test_when_a_foot_is_planted(ext, channels):
    rig = rigs.chain(3)
    row = rigs.reach(rig, "bone_2", rigs.empty("Target"))
    row.kind = "PLANT"
    when_planted = ext.module("panels.constraints").when_planted

    def words(row):
        return when_planted(row, 1.0)

    assert words(row) == "in all frames"
    row.influence = 0.0
    assert words(row) == "in no frame"
    for frame, influence in ((1, 1.0), (10, 0.0), (20, 1.0)):
        row.influence = influence
        row.keyframe_insert("influence", frame=frame)
    assert words(row) == "1–9, 20–"
    assert when_planted(row, 0.5) == "2–19, 40–"
    row.influence = 1.0
    (curve,) = channels.fcurves_of(rig)
    for point in curve.keyframe_points:
        point.co[1] = 0.0
    assert words(row) == "in no frame"


def test_the_mechanism_of_a_generated_rig_is_not_offered_for_conversion(ext):
    offered = ext.module("ccd_rig.blender.convert").is_offered
    rig = rigs.generated("basic_human")
    mechanism = ext.module("ccd_rig.blender.convert").candidates(rig)
    assert any(constraint.type == "IK" for _, constraint in mechanism)
    assert not offered(rig)
    rig.pose.bones["spine_fk"].constraints.new("IK")
    assert offered(rig)
