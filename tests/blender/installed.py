"""The extension as it was installed: its modules, its package file, and what of it Blender knows."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import bpy

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "bl_ext.user_default.ccd_rig"
AS_MODULE = not bpy.app.binary_path  # the wheel in a Python process, not a Blender that runs Python
BUILD_TIMEOUT = 1800  # [s] the kernel may have to be compiled


class Extension:
    """The installed package's modules."""

    package = PACKAGE

    def module(self, name: str) -> ModuleType:
        """Import a module by its path inside the extension, such as "ccd_rig.blender.bake"."""
        return importlib.import_module(f"{PACKAGE}.{name}")

    @property
    def core(self) -> ModuleType:
        """The solver's public names, what `ccd_rig` is outside Blender."""
        return self.module("ccd_rig")

    @property
    def blender(self) -> ModuleType:
        """The package `ccd_rig.blender`; a module of it: ext.module("ccd_rig.blender.bake.bake")."""
        return self.module("ccd_rig.blender")

    @property
    def zip(self) -> Path:
        """The package file that was installed."""
        return package_file()


def package_file() -> Path:
    """The zip named by CCD_RIG_ZIP, or one built now."""
    if "CCD_RIG_ZIP" not in os.environ:
        command = [
            sys.executable,
            str(ROOT / "devtools/packaging.py"),
            "--here",
            tempfile.mkdtemp(prefix="ccd_rig_zip_"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        os.environ["CCD_RIG_ZIP"] = done.stdout.split()[-1]
    return Path(os.environ["CCD_RIG_ZIP"])


def visit(source: str, tmp_path: Path, *words: object, is_told: bool = False) -> str:
    """Run a script in a process of its own, with a user folder that is empty at first.

    Returns what it writes to standard error, or if `is_told` to standard output.
    """
    arguments = list(map(str, words))
    if AS_MODULE:
        command = [sys.executable, "-c", source, *arguments]
    else:
        script = tmp_path / "visit.py"
        script.write_text(source)
        command = [bpy.app.binary_path, "--background", "--python", str(script), "--", *arguments]
    environment = {**os.environ, "BLENDER_USER_RESOURCES": str(tmp_path / "user")}
    (tmp_path / "user").mkdir(exist_ok=True)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert "VISITED" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout if is_told else done.stderr


def leftovers() -> list[str]:
    """What of the extension is known to Blender: empty before it is enabled and after it is disabled."""
    found = []
    for base in (
        bpy.types.bpy_struct,
        bpy.types.Operator,
        bpy.types.Panel,
        bpy.types.UIList,
        bpy.types.Menu,
        bpy.types.PropertyGroup,
    ):
        stack = [base]
        while stack:
            kind = stack.pop()
            stack += kind.__subclasses__()
            # A class has its own `bl_rna` as long as it is registered; gizmos have no `is_registered`.
            if kind.__module__.startswith(PACKAGE) and "bl_rna" in vars(kind):
                found.append(f"class {kind.__module__}.{kind.__name__}")
    found += [f"bpy.ops.ccd_rig.{name}" for name in dir(bpy.ops.ccd_rig)]
    for name in ("Object", "PoseBone", "Bone", "Armature", "Scene", "WindowManager", "Action"):
        kind = getattr(bpy.types, name)
        properties = [p.identifier for p in kind.bl_rna.properties]
        found += [f"property {name}.{p}" for p in properties if p.startswith("ccd_rig")]
    for name in dir(bpy.app.handlers):
        handlers = getattr(bpy.app.handlers, name)
        if isinstance(handlers, list):
            ours = [h for h in handlers if getattr(h, "__module__", "").startswith(PACKAGE)]
            found += [f"handler {name}: {h!r}" for h in ours]
    for name in dir(bpy.types):
        functions = getattr(getattr(getattr(bpy.types, name), "draw", None), "_draw_funcs", ())
        found += [
            f"menu {name}: {f!r}" for f in functions if getattr(f, "__module__", "").startswith(PACKAGE)
        ]
    hooks = bpy.utils._manual_map
    found += [f"manual {h!r}" for h in hooks if h.__module__.startswith(PACKAGE)]
    configuration = bpy.context.window_manager.keyconfigs.addon
    if configuration is not None:
        for keymap in configuration.keymaps:
            ours = [i.idname for i in keymap.keymap_items if i.idname.startswith("ccd_rig.")]
            found += [f"shortcut {keymap.name}: {idname}" for idname in ours]
    return sorted(set(found))
