"""Live rigs that look at one another, while everything around them changes in random order.

No handler may fail, and nothing of a preview may stay: in files, copies and what others link, nor where the
extension is disabled. Constraints of the user's stay, whatever their names are.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
from collections.abc import Callable
from typing import Any

import bpy
import installed  # of tests/blender
import rigs  # of tests/blender

from devtools.fuzz import Outcome, played
from devtools.fuzz.rigs import prepare as prepare
from devtools.fuzz.shots import module, printed, tracebacks


class Session:
    """A file in which previews run; each method is something that a user or a script does."""

    def __init__(self, rng: random.Random, folder: str) -> None:
        self.rng, self.folder, self.faults = rng, folder, list[str]()
        self.files = 0
        bpy.ops.wm.read_homefile(use_empty=True)
        made = [rigs.chain(rng.choice((2, 3, 4)), 0.5, f"Rig{k}") for k in range(rng.choice((2, 2, 3, 4)))]
        for k, rig in enumerate(made):
            rig.location = (0.8 * k, 0.0, 0.0)
            self._add_row(rig)
        made[0].pose.bones[0].constraints.new("COPY_SCALE").name = "CCD Rig Live"  # the user's
        rigs.update()

    def lost(self) -> list[str]:
        """The user's constraint, if it is gone."""
        rig = bpy.data.objects.get("Rig0")
        if rig is None or any(
            each.type == "COPY_SCALE" for bone in rig.pose.bones for each in bone.constraints
        ):
            return []
        return ["a constraint of the user's is gone"]

    @property
    def on(self) -> bool:
        return hasattr(bpy.types.Object, "ccd_rig")

    def _rig(self, overrides: bool = False) -> Any:
        """One of the file's own armatures, or None; with `overrides` perhaps one of them."""
        candidates = [each for each in bpy.data.objects if each.type == "ARMATURE" and each.is_editable]
        candidates = [each for each in candidates if overrides or each.override_library is None]
        return self.rng.choice(candidates) if candidates else None

    def _add_row(self, rig: Any) -> None:
        others = [each for each in bpy.data.objects if each.type == "ARMATURE" and each != rig]
        tip = rig.pose.bones[-1].name
        if others and self.rng.random() < 0.7:
            other = self.rng.choice(others)
            rigs.reach(rig, tip, other, target_bone=self.rng.choice(other.pose.bones).name)
        else:
            rigs.reach(rig, tip, rigs.empty("Goal", [self.rng.uniform(-1.0, 1.0) for _ in range(3)]))

    def switch(self) -> None:
        """Switch Live on or off."""
        rig = self._rig()
        if self.on and rig is not None:
            rig.ccd_rig.live = not rig.ccd_rig.live

    def frame(self) -> None:
        bpy.context.scene.frame_set(self.rng.randrange(9))

    def move(self) -> None:
        """Move any object, or turn a bone."""
        thing = self.rng.choice([*bpy.data.objects] or [None])
        if thing is not None and thing.is_editable:
            thing.location.x += self.rng.uniform(-0.5, 0.5)
            if thing.pose is not None:
                bone = self.rng.choice(thing.pose.bones)
                bone.rotation_quaternion = rigs.random_rotation(self.rng)

    def rows(self) -> None:
        """Edit the constraints of a rig."""
        rig = self._rig()
        if not self.on or rig is None:
            return
        rows = rig.ccd_rig.constraints
        if not len(rows) or self.rng.random() < 0.3:
            self._add_row(rig)
            return
        row, which = self.rng.choice(rows), self.rng.randrange(5)
        if which == 0:
            rows.remove(self.rng.randrange(len(rows)))
        elif which == 1:
            rows.move(0, len(rows) - 1)
        elif which == 2:
            row.influence = self.rng.choice((0.0, 0.5, 1.0))
        elif which == 3:
            row.target = self.rng.choice((None, *bpy.data.objects))
        else:
            row.chain_length = self.rng.randrange(4)

    def undo(self) -> None:
        bpy.ops.ed.undo()

    def redo(self) -> None:
        bpy.ops.ed.redo()

    def toggle(self) -> None:
        """Disable or enable the extension."""
        if not self.on:
            bpy.ops.preferences.addon_enable(module=installed.PACKAGE)
            return
        bpy.ops.preferences.addon_disable(module=installed.PACKAGE)
        self.faults += [f"disabled, but there is {words}" for words in installed.leftovers()[:2]]
        self.faults += [f"disabled, {words}" for words in played.left_behind()]

    def copy(self) -> None:
        """Copy an armature object."""
        rig = self._rig()
        if rig is not None:
            bpy.context.scene.collection.objects.link(rig.copy())

    def remove(self) -> None:
        if len(bpy.data.objects) > 2:
            bpy.data.objects.remove(self.rng.choice(bpy.data.objects))

    def rename(self) -> None:
        rig = self._rig()
        if rig is not None:
            self.rng.choice(rig.data.bones).name = self.rng.choice(("neu", "bone_0", "ÄÖ"))

    def edit(self) -> None:
        """Enter Edit Mode, remove the last bone perhaps, and leave."""
        rig = self._rig()
        if rig is not None and rig.visible_get():
            with rigs.edit_bones(rig) as bones:
                if len(bones) > 2 and self.rng.random() < 0.5:
                    bones.remove(bones[-1])

    def hide(self) -> None:
        thing = self.rng.choice([*bpy.data.objects] or [None])
        if thing is not None:
            thing.hide_viewport = not thing.hide_viewport

    def bake(self) -> None:
        """Bake a rig while others are live."""
        rig = self._rig()
        if self.on and rig is not None:
            bake, errors = module("blender.bake.bake"), module("errors")
            with contextlib.suppress(errors.CCDRigError):
                bake.bake(bpy.context.scene, rig, bake.BakeSettings(0, 3))

    def save(self) -> None:
        """Save, and look what the file holds; perhaps open it."""
        path = self._path()
        bpy.ops.wm.save_as_mainfile(filepath=path)
        if self.on:  # what undo brings back while the extension is disabled, it cannot take away
            self.faults += [f"saved, {words}" for words in played.ask({"file": path})]
        if self.on and self.rng.random() < 0.3:
            bpy.ops.wm.open_mainfile(filepath=path)
            self.faults += [f"opened, {words}" for words in played.left_behind()]

    def library(self) -> None:
        """Write a rig to a library, or an override of one, and append, link or override it."""
        rig = self._rig(overrides=True)
        if not self.on or rig is None:
            return
        path, link = self._path(), self.rng.random() < 0.5
        bpy.data.libraries.write(path, {rig})
        with bpy.data.libraries.load(path, link=link) as (there, here):
            here.objects = there.objects[:1]
        for made in here.objects:
            bpy.context.scene.collection.objects.link(made)
            if link and self.rng.random() < 0.5:
                made.override_create(remap_local_usages=True)

    def _path(self) -> str:
        self.files += 1
        return os.path.join(self.folder, f"file{self.files}.blend")


WAYS: tuple[Callable[[Session], None], ...] = (
    *(Session.switch,) * 5,
    *(Session.frame, Session.move, Session.undo, Session.undo) * 2,
    Session.redo,
    *(Session.rows, Session.toggle, Session.save) * 2,
    *(Session.copy, Session.remove, Session.rename, Session.edit, Session.hide, Session.bake),
    Session.library,
)


def run(seed: int) -> Outcome:
    """Let things happen to live rigs, in an order that is drawn."""
    rng = random.Random(seed)
    outcome, steps = Outcome("live"), list[str]()
    with tempfile.TemporaryDirectory() as folder, printed() as text:
        session = Session(rng, folder)
        bpy.ops.ed.undo_push(message="made")
        try:
            for _ in range(rng.randrange(5, 30)):
                way = rng.choice(WAYS)
                steps.append(way.__name__)
                _do(way, session)
                bpy.context.view_layer.update()
                if way not in (Session.undo, Session.redo):
                    bpy.ops.ed.undo_push(message=way.__name__)
                session.faults += tracebacks(text()) + session.lost()
                if session.faults:
                    break
        finally:
            if not session.on:
                bpy.ops.preferences.addon_enable(module=installed.PACKAGE)
    outcome.faults = [f"{words} ({' '.join(steps)})" for words in session.faults[:2]]
    return outcome


def _do(way: Callable[[Session], None], session: Session) -> None:
    try:
        way(session)
    except RuntimeError as error:  # an operator that cannot run now; Blender prints what is wrong in one
        session.faults += tracebacks(str(error))
