# SPDX-License-Identifier: GPL-3.0-or-later
"""`ccd_rig retarget`: clips onto the armature of a .blend file, one action each, and a table of results."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import addon_utils
import bpy

from ...errors import CCDRigError, InvalidInput, RigError
from ...motion.retargeting.settings import HandSpace, RetargetSettings
from ..bake.report import write
from ..retarget import bone_map, report
from ..retarget.retarget import RetargetChoice, Retargeted, retarget_motion
from ..retarget.sampling import Reference
from . import blend_files, places
from .exits import Exit, UsageError

IMPORTERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    ".bvh": ("io_anim_bvh", lambda path: bpy.ops.import_anim.bvh(filepath=path, global_scale=0.01)),
    ".fbx": ("io_scene_fbx", lambda path: bpy.ops.import_scene.fbx(filepath=path)),
    ".glb": ("io_scene_gltf2", lambda path: bpy.ops.import_scene.gltf(filepath=path)),
    ".gltf": ("io_scene_gltf2", lambda path: bpy.ops.import_scene.gltf(filepath=path)),
}
"""By ending: the add-on that reads such files, and how."""
CLIPS = (".blend", *IMPORTERS)

EXAMPLES = """\
examples:
  python -m ccd_rig retarget walk.bvh hero.blend --reference frame --output hero_walk.blend
  python -m ccd_rig retarget clips/ hero.blend --map hero.json --output hero_clips.blend --report table.json

Each clip becomes an action of the armature in TARGET, named as its file; the last one is assigned.

"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The words after `ccd_rig retarget`."""
    add = command.add_argument
    add("source", type=Path, metavar="SOURCE", help=f"a clip ({', '.join(CLIPS)}), or a folder of them")
    add("target", type=Path, metavar="TARGET", help="the .blend file with the armature that gets the motion")
    add("--armature", metavar="NAME", help="armature object in TARGET (needed if there are several)")
    add("--source-armature", metavar="NAME", help="armature object in SOURCE (needed if there are several)")
    add("--map", type=Path, metavar="FILE", help="JSON file of pairs of bones, before those found by role")
    add(
        "--reference",
        choices=[each.name.lower() for each in Reference],
        default=Reference.REST.name.lower(),
        help="the source's pose that is brought in line with the target's rest pose: its rest, or a frame of "
        "the motion where the rest is no pose of a body (default: %(default)s)",
    )
    add("--reference-frame", type=float, metavar="N", help="which frame (default: the first)")
    add("--source-fps", type=float, default=0.0, metavar="N", help="of the keys (default: the file's rate)")
    add("--in-place", action="store_true", help="take the mean velocity along the ground off")
    add("--scale", type=float, default=RetargetSettings.scale, help="of the way (default: by the legs)")
    add("--hands-in-world", action="store_true", help="hands where the source has them in the world, scaled")
    add("--no-contacts", action="store_true", help="do not lock feet that are down")
    add("--output", type=Path, metavar="FILE", help="where to save the .blend file with the actions")
    add("--report", type=Path, metavar="FILE", help="where to save the results as JSON")
    add(
        "--allow-data-loss",
        action="store_true",
        help="save the output even if a newer Blender has saved TARGET, without what this one does not know",
    )
    add("--enable-autoexec", action="store_true", help="run scripted drivers in TARGET; only if you trust it")
    add("--quiet", action="store_true", help="only errors and warnings")


def run(options: argparse.Namespace, warn: Callable[[str], None]) -> Exit:
    """Carry the clips over, save, and print the table."""
    if options.output is None and options.report is None:
        raise UsageError("nothing would be kept: name --output, --report or both")
    clips = _clips(options.source)
    skipped = blend_files.open_file(options.target, options.enable_autoexec)
    read = dict.fromkeys(clips, "a clip") | ({} if options.map is None else {options.map: "the map"})
    places.require(options.target, options, read)
    if skipped is not None:
        warn(f"{options.target}: {skipped} was not run; use --enable-autoexec if you trust the file")
    target = _armature(list(bpy.context.scene.objects), options.armature, str(options.target))
    results: dict[str, Any] = {}
    failed = False
    for clip in clips:
        try:
            done = _carried_over(clip, target, options)
        except CCDRigError as error:
            warn(f"{clip.name}: {error}")
            results[clip.name], failed = {"error": str(error)}, True
            continue
        results[clip.name] = report.as_values(done)
        for warning in report.warnings(done):
            warn(f"{clip.name}: {warning}")
    done_some = any("error" not in each for each in results.values())
    if options.output is not None and done_some:
        blend_files.save_as(options.output)
    if options.report is not None:
        write(json.dumps(results, indent=2) + "\n", options.report)
    if not options.quiet:
        print("\n".join(_table(results)), flush=True)
    return Exit.PROBLEMS if failed else Exit.DONE


def _clips(source: Path) -> list[Path]:
    if source.is_dir():
        found = sorted(file for file in source.iterdir() if file.suffix.lower() in CLIPS)
        if not found:
            raise UsageError(f"there is no clip ({', '.join(CLIPS)}) in {source}")
        return found
    if not source.is_file():
        raise UsageError(f"there is no file {source}")
    if source.suffix.lower() not in CLIPS:
        raise UsageError(f"{source} is no clip: give one of {', '.join(CLIPS)}")
    return [source]


def _choice(options: argparse.Namespace, clip: Path) -> RetargetChoice:
    try:
        settings = RetargetSettings(
            scale=options.scale,
            in_place=options.in_place,
            hand_space=HandSpace.WORLD if options.hands_in_world else HandSpace.LIMB,
            contacts=not options.no_contacts,
        )
    except InvalidInput as error:
        raise UsageError(str(error)) from error
    return RetargetChoice(
        source_fps=options.source_fps or _rate(clip),
        reference=Reference[options.reference.upper()],
        reference_frame=options.reference_frame,
        bones=bone_map.read_map(options.map) if options.map is not None else {},
        settings=settings,
    )


def _carried_over(clip: Path, target: bpy.types.Object, options: argparse.Namespace) -> Retargeted:
    with _imported(clip) as objects:
        source = _armature(objects, options.source_armature, str(clip))
        done = retarget_motion(bpy.context.scene, source, target, _choice(options, clip))
        assert done.action is not None
        done.action.name, done.action.use_fake_user = clip.stem, True
    return done


@contextlib.contextmanager
def _imported(clip: Path) -> Iterator[list[bpy.types.Object]]:
    """The objects of a clip, in the open file until the block ends."""
    before = set(_data())
    rate = bpy.context.scene.render.fps, bpy.context.scene.render.fps_base
    made: set[Any] = set()
    try:
        try:
            _read(clip)
        finally:
            made = set(_data()) - before
        yield [thing for thing in made if isinstance(thing, bpy.types.Object)]
    finally:
        bpy.context.scene.render.fps, bpy.context.scene.render.fps_base = rate
        bpy.data.batch_remove(made)


def _data() -> Iterator[Any]:
    """All that an importer may make."""
    data = bpy.data
    yield from (*data.objects, *data.armatures, *data.actions, *data.meshes)
    yield from (*data.materials, *data.images, *data.collections)


def _read(clip: Path) -> None:
    ending = clip.suffix.lower()
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            if ending == ".blend":
                with bpy.data.libraries.load(str(clip.resolve())) as (there, here):
                    here.objects = there.objects
                for thing in here.objects:
                    bpy.context.scene.collection.objects.link(thing)
                return
            addon, read = IMPORTERS[ending]
            addon_utils.enable(addon)
            read(str(clip.resolve()))
        except (RuntimeError, OSError, AttributeError) as error:
            said = [line for line in str(error).strip().splitlines() if line and "Location:" not in line]
            raise RigError(f"cannot be read: {said[-1] if said else 'unknown reason'}") from error


def _rate(clip: Path) -> float:
    """Frames per second of a BVH file; 0 for others, which Blender brings to the scene's rate."""
    if clip.suffix.lower() != ".bvh":
        return 0.0
    found = re.search(r"Frame Time:\s*([0-9.eE+-]+)", clip.read_text(encoding="utf-8", errors="replace"))
    seconds = float(found[1]) if found else 0.0
    return round(1.0 / seconds, 3) if seconds > 0.0 else 0.0


def _armature(objects: Sequence[bpy.types.Object], name: str | None, where: str) -> bpy.types.Object:
    """The armature object called `name`, or the only one."""
    armatures = {thing.name: thing for thing in objects if thing.type == "ARMATURE"}
    names = ", ".join(sorted(armatures)) or "none"
    if name is not None:
        if name not in armatures:
            raise RigError(f"{where} has no armature '{name}'; it has: {names}")
        return armatures[name]
    if len(armatures) != 1:
        raise RigError(f"{where} must have one armature, or name one: it has {names}")
    return next(iter(armatures.values()))


def _table(results: dict[str, Any]) -> Iterator[str]:
    yield f"{'clip':<24} frames contacts drift, mm slide, mm/s off, % hips, mm"
    for name, found in results.items():
        if "error" in found:
            yield f"{name:<24} failed: {found['error']}"
            continue
        stances = found["stances"]
        drift = 1000.0 * max((each["drift"] for each in stances), default=0.0)
        slide = 1000.0 * sum(each["slide"] for each in stances) / max(len(stances), 1)
        off = 100.0 * max(found["errors"].values(), default=0.0)
        yield (
            f"{name:<24} {found['frames']:>6} {len(stances):>8} {drift:>9.1f} {slide:>11.1f} {off:>6.2f} "
            f"{1000.0 * found['sunk']:>8.1f}"
        )
