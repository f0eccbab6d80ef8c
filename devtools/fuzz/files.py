"""Each file and text that is read from outside, with bytes or values spoilt.

What is read is taken, or refused in a message; then nothing in the file has changed. Chunks and records that
are spoilt are made anew. No traceback, and nothing that takes for ever.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import bpy
from installed import PACKAGE  # of tests/blender

from devtools.fuzz import Outcome, contents, watch
from devtools.fuzz.command_lines import run_here, tasks_of
from devtools.fuzz.rigs import prepare as prepare
from devtools.fuzz.shots import clip_and_figure, module, printed, saved, shot, tracebacks

LONGEST_WORDS = 700
"""Letters of a message."""
MOST = 30.0  # [s] of the processor that a case may take
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        1.5,
        1e400,
        10**30,
        "",
        "x" * 1000,
        [],
        {},
        [[]],
        {"a": {}},
        "\ud800",
        "\0",
        "\x1b[2J",
    ),
    [1] * 9,
)


class Reader(NamedTuple):
    """What reads a file.

    Attributes:
        name: of its sound copy, see `_sound`.
        read: reads one; the message with which it refuses it, or nothing.
        opens: whether the command opens another file, so that what was open is no measure.
    """

    name: str
    read: Callable[[Path], str]
    opens: bool = False


def run(seed: int) -> Outcome:
    """Spoil a file and let it be read."""
    rng = random.Random(seed)
    kind = rng.choice((*READERS, "chunk or record"))
    watch(MOST)
    try:
        faults = _healed(rng) if kind == "chunk or record" else _read(rng, READERS[kind])
    finally:
        watch(0.0)
    return Outcome(kind, [f"{kind}: {words}" for words in faults])


def _read(rng: random.Random, reader: Reader) -> list[str]:
    sound = _sound() / reader.name
    bpy.ops.wm.read_homefile(use_empty=True)
    shot()
    bpy.ops.object.mode_set(mode="POSE")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / sound.name
        path.write_bytes(spoilt(rng, sound.read_bytes()))
        return tried(reader, path)


def tried(reader: Reader, path: Path) -> list[str]:
    """What is wrong where a file is read."""
    before = [] if reader.opens else [contents.content(), contents.stored()]
    with printed() as text:
        refusal = reader.read(path)
        faults = tracebacks(text() + refusal)
    if len(refusal) > LONGEST_WORDS:
        faults.append(f"a refusal of {len(refusal)} letters")
    if refusal and before:
        after = [contents.content(), contents.stored()]
        words = [each for k in (0, 1) for each in contents.changed(before[k], after[k])]
        faults += [f"refused ({refusal[:80]}), but changed: {words[:3]}"] if words else []
    return faults


def spoilt(rng: random.Random, content: bytes) -> bytes:
    """A file's content with something wrong: values where it is JSON, else bytes."""
    if content.startswith(b"{") and rng.random() < 0.5:
        data = json.loads(content)
        for _ in range(rng.randrange(1, 4)):
            _spoil_value(rng, data)
        return json.dumps(data).encode(errors="surrogatepass")
    for _ in range(rng.choice((1, 1, 2, 8))):
        at, size = rng.randrange(len(content) + 1), rng.choice((1, 1, 4, 100))
        piece: bytes = rng.choice(
            (
                b"",
                b"",
                rng.randbytes(size),
                b"{",
                b"[" * 5000,
                b'"',
                b"9" * 6000,
                b"\\ud8",
                b"\0",
                b"-",
                b"1e",
            )
        )
        content = content[:at] + piece + content[at + rng.choice((0, size)) :]
    if rng.random() < 0.2:
        content = content[: rng.randrange(len(content) + 1)]
    return content


def _spoil_value(rng: random.Random, data: Any) -> None:
    """Put something odd anywhere into what JSON says."""
    while True:
        keys = list(data) if isinstance(data, dict) else range(len(data))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(data[key], (dict, list)) or not data[key] or rng.random() < 0.2:
            break
        data = data[key]
    if isinstance(data, dict) and rng.random() < 0.2:
        data[rng.choice(("", "rna_type", "x" * 300))] = data.pop(key)
    else:
        data[key] = copy.deepcopy(rng.choice(ODD))


# Readers ----------------------------------------------------------------------------------------------------


def _operator(name: str, **fields: Any) -> Callable[[Path], str]:
    """Lets an operator read a file."""

    def read(path: Path) -> str:
        try:
            getattr(bpy.ops.ccd_rig, name)(filepath=str(path), **fields)
        except RuntimeError as error:
            return str(error)
        return ""

    return read


def _command(*words: str) -> Callable[[Path], str]:
    """Lets a command read a file, which stands for {}; the sound files' folder stands for {sound}."""

    def read(path: Path) -> str:
        places = {"sound": str(_sound()), "out": str(path.with_name("out.json"))}
        code, said = run_here([word.format(str(path), **places) for word in words])
        if code and not said.strip():
            return f"Traceback (most recent call last):\nexit code {code} without a word"
        return max(said.splitlines(), key=len) if code else ""

    return read


def _stored_report(path: Path) -> str:
    """Lets the panel and its buttons read a report that stands in the file."""
    rig = bpy.context.object
    rig.ccd_rig.report.words = "9 of 9 frames reached"
    rig.ccd_rig.report.findings = path.read_bytes().decode(errors="ignore").replace("\0", "")
    window = bpy.context.window_manager.windows[0]
    area = next(each for each in window.screen.areas if each.type == "VIEW_3D")
    with bpy.context.temp_override(window=window, area=area, region=area.regions[-1]):
        import_module(f"{PACKAGE}.panels.bake").report_entries(bpy.context, rig.ccd_rig.report)
    refusals = ""
    for name, fields in (("report_markers", {}), ("report_fix", {}), ("go_to_frame", {"finding": 0})):
        try:
            getattr(bpy.ops.ccd_rig, name)(**fields)
        except RuntimeError as error:
            refusals += str(error)
    return refusals if tracebacks(refusals) else ""


def _kept_set_up(path: Path) -> str:
    """Lets the set-up be read that a metarig keeps."""
    setup_file, errors = module("blender.setup_files"), module("errors")
    try:
        setup_file.from_json(path.read_bytes().decode(errors="ignore").replace("\0", ""))
    except errors.CCDRigError as error:
        return str(error)
    return ""


TASK = ("--settings={}", "--output={sound}/nowhere")
READERS = {
    "pose library": Reader("poses.json", _operator("poses_import")),
    "set-up": Reader("set_up.json", _operator("setup_load")),
    "kept set-up": Reader("set_up.json", _kept_set_up),
    "map": Reader("map.json", _operator("retarget_map_load")),
    "limit preset": Reader("preset.py", _operator("limit_preset_apply")),
    "report": Reader("findings.json", _stored_report),
    "clip": Reader(
        "clip.bvh", _command("retarget", "{}", "{sound}/figure.blend", "--report", "{out}"), opens=True
    ),
    "map of a command": Reader(
        "map.json",
        _command("retarget", "{sound}/clip.bvh", "{sound}/figure.blend", "--map", "{}", "--report", "{out}"),
        opens=True,
    ),
    "settings of shots": Reader(
        "shots.json", _command("farm-bake", "--part=1", "{sound}/shot.blend", *TASK), opens=True
    ),
    "settings of clips": Reader(
        "clips.json",
        _command("farm-retarget", "{sound}/clip.bvh", "{sound}/figure.blend", *TASK),
        opens=True,
    ),
}


@cache
def _sound() -> Path:
    """A folder with sound files of each kind, and a job that is done."""
    folder = Path(tempfile.mkdtemp(prefix="ccd_rig_fuzz_files_"))
    clip_and_figure(folder)
    saved(folder / "shot.blend")
    rig = bpy.context.object
    limit = rig.pose.bones["bone_1"].ccd_rig.limit
    limit.kind, limit.cone_radius = "CONE", 0.5
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.ccd_rig.pose_capture()
    bpy.ops.ccd_rig.poses_export(filepath=str(folder / "poses.json"))
    bpy.ops.ccd_rig.setup_save(filepath=str(folder / "set_up.json"))
    finding = module("blender.bake.report")
    findings = [
        finding.Finding(finding.Trouble.SHORT, "Hand", "bone_3", 1, 4, 2, 0.5, fix=finding.Fix.POLE)
    ] * 2
    (folder / "findings.json").write_text(finding.to_json(findings))
    (folder / "map.json").write_text('{"bones": {"thigh.L": "thigh.L", "shin.L": "shin.L"}}')
    names = module("blender.limit_sources.preset_files").VALUES
    bpy.context.object.data.bones.active = rig.data.bones["bone_1"]
    lines = [f"{name} = {_python(eval(name))}" for name in names]
    (folder / "preset.py").write_text("import bpy\n" + "\n".join(lines) + "\n")
    assert run_here(["farm", str(folder / "shot.blend"), f"--output={folder / 'job'}", "--chunk=4"])[0] == 0
    words = ["farm", str(folder / "clip.bvh"), f"--retarget={folder / 'figure.blend'}"]
    assert run_here([*words, f"--output={folder / 'clips'}"])[0] == 0
    for name, job in (("shots", "job"), ("clips", "clips")):
        shutil.copy(folder / job / "settings.json", folder / f"{name}.json")
    assert not any(code for code, _ in map(run_here, tasks_of(folder / "job")))
    return folder


def _python(value: Any) -> str:
    return repr(value[:] if hasattr(value, "__len__") and not isinstance(value, str) else value)


def _healed(rng: random.Random) -> list[str]:
    """Spoil chunks and records of a job that is done, and run its tasks again."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(shutil.copytree(_sound() / "job", Path(folder) / "job"))
        baked = job / "baked"
        files = [*(baked / "chunks").iterdir(), baked / "shot.record.json"]
        if rng.random() < 0.5:
            (baked / "shot.blend").write_bytes(b"")
        for path in rng.sample(files, rng.randrange(1, len(files) + 1)):
            path.write_bytes(spoilt(rng, path.read_bytes()))
        faults = []
        for words in [*tasks_of(job)[-2:-1], *tasks_of(job)]:
            code, said = run_here(words)
            faults += tracebacks(said)
            if code and "openjd_fail" not in said:
                faults.append(f"{words[0]} ends with code {code} and does not say why")
        if code:
            faults.append(f"does not heal: {said.strip()[-200:]}")
        bpy.ops.wm.open_mainfile(filepath=str(baked / "shot.blend"))
        return faults + ([] if contents.is_baked() else ["the result is torn"])
