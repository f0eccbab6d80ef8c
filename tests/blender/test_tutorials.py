"""The tutorials of the manual: their steps, as the pages have them, done on the installed extension."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from types import ModuleType

import bpy
import pytest
from installed import ROOT
from mathutils import Vector

pytestmark = pytest.mark.mass  # takes long

PAGES = ROOT / "docs/tutorials"
FOLDERS = (ROOT / "examples", ROOT / "examples/tutorials")
TIMEOUT = 120  # [s] one command
SOLVE = 1e-4  # [m]
# A module of examples/tutorials -> the page that it stands behind, and what its last bake comes to.
TUTORIALS = {
    "tail": ("tail", "72 of 72 frames reached"),
    "arm": ("arm", "59 of 59 frames reached"),
    "quadruped": ("quadruped", "72 of 72 frames reached"),
    "spider": ("spider", "48 of 48 frames reached"),
    "planted_walk": ("planted_walk", "76 of 76 frames reached"),
    "generated": ("rigify", "60 of 60 frames reached"),
    "motion_capture": ("motion_capture", "53 of 53 frames reached"),
}
KEYED_BY_HAND = ("arm", "quadruped", "generated", "motion_capture")
"""Those whose pages tell each frame that gets a key; the others have cycles of many."""


@pytest.fixture
def tutorial(monkeypatch: pytest.MonkeyPatch):
    """A module of examples/tutorials by its name, with its rig built."""
    for folder in FOLDERS:
        monkeypatch.syspath_prepend(str(folder))

    def get(name: str) -> tuple[ModuleType, bpy.types.Object]:
        module = importlib.import_module(name)
        return module, module.build()

    return get


@pytest.fixture
def done(tutorial, keyed, capfd):
    """Does the steps of a tutorial; the rig, once all that the page quotes was said."""

    def do(name: str) -> bpy.types.Object:
        module, rig = tutorial(name)
        module.steps(rig)
        check(name, rig, capfd.readouterr().out, keyed)
        return rig

    return do


@pytest.fixture
def keyed(tutorial, monkeypatch) -> set[int]:
    """The frames at which a tutorial keys something, in as far as it has done its steps."""
    common = importlib.import_module("common")
    frames: set[int] = set()
    key = common.key

    def noted(thing, field, values):
        frames.update(values)
        key(thing, field, values)

    monkeypatch.setattr(common, "key", noted)
    return frames


def text_of(page: str) -> str:
    return " ".join((PAGES / f"{page}.md").read_text(encoding="utf-8").split())


def check(name: str, rig: bpy.types.Object, said: str, keyed: set[int]) -> None:
    """Whether the last bake came to what it should, and the page has its words, its range and its keys."""
    page, words = TUTORIALS[name]
    assert rig.ccd_rig.report.words.startswith(words), rig.ccd_rig.report.words
    assert rig.ccd_rig.report.check.startswith("Plays as baked")
    text, scene = text_of(page), bpy.context.scene
    assert re.search(rf"range to (the \w+: )?{scene.frame_start} to {scene.frame_end}\b", text)
    if name in KEYED_BY_HAND:
        assert {frame for frame in keyed if not re.search(rf"\b{frame}\b", text)} == set()
    quoted = re.findall(r'"([^"]+)"', text)
    assert words in quoted
    assert [quote for quote in quoted if quote not in said] == [], said


def place(rig: bpy.types.Object, bone: str, frame: int, end: str = "head") -> Vector:
    """Where an end of a bone is in the world at a frame, as Blender plays it."""
    bpy.context.scene.frame_set(frame)
    seen = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return seen.matrix_world @ getattr(seen.pose.bones[bone], end)


FRONT, RIGHT = Vector((0.0, -1.0, 0.0)), Vector((-1.0, 0.0, 0.0))
LEG = ("thigh", "shin", "foot")


def bend(
    rig: bpy.types.Object, side: str, frame: int, limb: tuple[str, str, str] = LEG, way: Vector = FRONT
) -> float:
    """How far a knee or elbow stands, some way, from the line between the ends of its limb, in metres."""
    start, middle, end = (place(rig, f"{bone}.{side}", frame) for bone in limb)
    along = (end - start).normalized()
    off = middle - start
    return (off - off.dot(along) * along).dot(way)


def test_a_tail(ext, done):
    rig = done("tail")
    target = rig.ccd_rig.constraints[0].target
    for frame in (1, 25, 61):
        assert (place(rig, "tail.12", frame, "tail") - target.matrix_world.translation).length < SOLVE
    assert {bone.ccd_rig.limit.kind for bone in rig.pose.bones} == {"CONE"}
    rest = rig.matrix_world @ rig.data.bones["tail.12"].tail_local
    places = []
    for frame in (1, 19):
        bpy.context.scene.frame_set(frame)
        places.append(target.matrix_world.translation - rest)
    text = text_of("tail")
    assert f"moved {-places[0].y:.2f} m nearer to the root and {places[0].z:.2f} m up" in text
    assert f"{places[1].x:.2f} m to each side" in text


def test_an_arm_with_a_prop(ext, done):
    rig = done("arm")
    grip = bpy.data.objects["Grip"]
    before = place(rig, "hand.R", 1, "tail")
    assert (before - grip.matrix_world.translation).length > 0.1, "with Influence 0 the arm hangs"
    for frame in (22, 36, 60):
        assert (place(rig, "hand.R", frame, "tail") - grip.matrix_world.translation).length < SOLVE
        fingers = (place(rig, "hand.R", frame, "tail") - place(rig, "hand.R", frame)).normalized()
        assert fingers.dot(grip.matrix_world.col[1].xyz.normalized()) > 0.999
        arm = ("upper_arm", "forearm", "hand")
        assert bend(rig, "R", frame, arm, RIGHT - FRONT) > 0.05, "the elbow stands outside and behind"


def test_a_quadruped(ext, done):
    rig = done("quadruped")
    assert place(rig, "front_toe.R", 36).z > place(rig, "front_toe.R", 1).z + 0.1
    for foot in ("front_toe.L", "toe.L", "toe.R"):
        assert (place(rig, foot, 36) - place(rig, foot, 1)).length < 10 * SOLVE
    for frame in (20, 36):
        assert bend(rig, "L", frame) > 0.02, "stifles stand in front"
        assert bend(rig, "L", frame, ("front_thigh", "front_shin", "front_foot")) < -0.02, (
            "elbows stand behind"
        )


def test_a_spider(ext, done):
    rig = done("spider")
    assert len(rig.ccd_rig.constraints) == 9
    legs = importlib.import_module("spider").leg
    for number in range(1, 5):
        for side in "LR":
            for frame in (7, 19):
                knee, ankle = (place(rig, bone, frame) for bone in legs(number, side)[1:])
                assert min(knee.z, ankle.z) > 0.1, "legs are arched"
    assert place(rig, "body", 48).y < place(rig, "body", 1).y - 0.5


def test_a_walk_with_planted_feet(ext, done):
    rig = done("planted_walk")
    assert rig.ccd_rig.body == "WALK_ON"
    row = rig.ccd_rig.constraints["toe.L"]
    held = []
    for frame in range(29, 43):
        bpy.context.scene.frame_set(frame)
        if row.influence > 0.5:
            held.append(place(rig, "toe.L", frame))
    assert len(held) > 10
    assert max((each - held[0]).xy.length for each in held) < SOLVE
    assert place(rig, "spine", 79).y < place(rig, "spine", 1).y - 3.0
    assert all(bend(rig, side, frame) > -0.01 for side in "LR" for frame in range(1, 27, 3)), (
        "knees to the front"
    )


def test_a_walk_over_hills(ext, tutorial):
    module, rig = tutorial("walk_along")
    module.steps(rig)
    text = text_of("walk_along")
    told = rig.ccd_rig.walk.report.split("\n")
    assert told[0] in text
    assert all(quote in told for quote in re.findall(r'"([^"]+)"', text))
    first, last = (int(frame) for frame in rig.animation_data.action.frame_range)
    assert place(rig, "spine", last).y < place(rig, "spine", first).y - 7.0
    assert all(bend(rig, side, frame) > -0.01 for side in "LR" for frame in range(first, last, 9)), (
        "knees to the front"
    )


def test_a_generated_rigify_rig(ext, done):
    rig = done("generated")
    for side in "LR":
        assert rig.pose.bones[f"thigh_parent.{side}"]["IK_FK"] == 1.0
        assert bend(rig, side, 24, ("DEF-thigh", "DEF-shin", "DEF-foot")) > 0.1, "what deforms goes along"


def test_motion_capture(ext, tutorial, keyed, capfd):
    module, rig = tutorial("motion_capture")
    module.carry_over(rig)
    assert "the source's 153 mm/s" in rig.ccd_rig.retarget.report, "as the page says"
    capture = module.capture()
    hips = [
        place(each, bone, 53) - place(each, bone, 1) for each, bone in ((rig, "spine"), (capture, "Hips"))
    ]
    assert hips[0].length > 2.5
    assert hips[0].length * module.SIZE == pytest.approx(hips[1].length, rel=0.02)
    frames = (1, 12, 33, 53)
    hands = {side: [place(rig, f"hand.{side}", frame) for frame in frames] for side in "LR"}
    feet = [place(rig, f"foot.{side}", frame) for side in "LR" for frame in frames]
    keyed.clear()  # of the captured person
    module.lift_hand(rig)
    check("motion_capture", rig, capfd.readouterr().out, keyed)
    for frame, left, right in zip(frames, hands["L"], hands["R"], strict=True):
        assert (place(rig, "hand.L", frame) - left).length < 10 * SOLVE, "what has not been moved stays"
        lifted = place(rig, "hand.R", frame).z - right.z
        assert (lifted > 0.6) if frame == 33 else (abs(lifted) < 0.01)
    after = [place(rig, f"foot.{side}", frame) for side in "LR" for frame in frames]
    assert max((a - b).length for a, b in zip(feet, after, strict=True)) < 10 * SOLVE


NOISE = re.compile(r"(below [\d.]+ m) at frame \d+")
"""Which of the frames that are all below what is shown is worst, is a matter of the last bits."""


def test_headless(ext, tutorial, tmp_path):
    """The commands of the page, run where the tail of the first tutorial is stored."""
    module, rig = tutorial("tail")
    module.set_up(rig)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    text = (PAGES / "headless.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\s*python -m (ccd_rig .*)$", text, re.M)
    assert [command.split()[1] for command in commands] == ["check", "bake", "bake"]
    said = ""
    for command in commands:
        run = subprocess.run(
            [sys.executable, "-m", *shlex.split(command)],
            cwd=tmp_path,
            env={**{k: v for k, v in os.environ.items() if k != "OCIO"}, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        said += run.stdout
    told = NOISE.sub(r"\1", said)
    for line in re.findall(r"^\s*(Tail: .*)$", text, re.M):
        assert NOISE.sub(r"\1", line.partition("; baked in")[0]) in told, f"the page says {line!r}"
    assert {"baked.blend", "report.json", "part.blend"} <= {file.name for file in tmp_path.iterdir()}


def test_every_tutorial_has_a_page_a_script_and_a_test():
    pages = {page.stem for page in PAGES.glob("*.md")} - {"index"}
    assert pages == {page for page, _ in TUTORIALS.values()} | {"headless", "walk_along"}
    scripts = {file.stem for file in FOLDERS[1].glob("*.py")}
    assert {*TUTORIALS, "walk_along"} <= scripts
    for name, (page, _) in TUTORIALS.items():
        assert f"tutorial_{name}.png" in (PAGES / f"{page}.md").read_text(encoding="utf-8")
