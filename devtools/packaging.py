"""Build the extension's zip with Blender's own tool, then check what that tool lets through.

Runs where the bpy wheel is installed: `python devtools/packaging.py [OUTPUT_DIR]` prints the path of the zip.
With `--platforms` it builds one zip for each system instead, with the kernel for that alone; with `--here`
only that for this machine, or the one for all where the machine has no kernel.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import io
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from devtools import compiled, environments, kernel  # noqa: E402

TOOL_TIMEOUT = 120  # [s]

# The manifest's keys in schema 1.0.0; Blender's tool passes over any other without a word.
KEYS = {
    "": {
        "schema_version", "id", "version", "name", "tagline", "maintainer", "type", "website", "tags",
        "blender_version_min", "blender_version_max", "license", "copyright", "platforms", "wheels",
        "permissions", "build",
    },
    "permissions": {"files", "network", "clipboard", "camera", "microphone"},
    "build": {"paths", "paths_exclude_pattern"},
}  # fmt: skip

# What the package holds: these files, below these folders Python sources only, the interface's languages, and
# the manual as a site.
PACKAGE_FILES = {"__init__.py", "blender_manifest.toml", "LICENSE", "README.md", "ccd_rig/py.typed"}
PACKAGE_FOLDERS = {"ccd_rig", "operators", "panels", "viewport"}
KERNEL = r"ccd_rig/kernel/\w+\.(pxd|pyi)"
WHEELS = "wheels"
MOST = 2_000_000
"""Bytes that a zip for one system has at most, beside the manual."""
PLATFORMS = {
    "manylinux_2_17_x86_64": "linux-x64",
    "manylinux_2_17_aarch64": "linux-arm64",
    "win_amd64": "windows-x64",
    "win_arm64": "windows-arm64",
    "macosx_11_0_x86_64": "macos-x64",
    "macosx_11_0_arm64": "macos-arm64",
}
"""What Blender's extensions call the systems of wheels."""
NO_WHEELS = re.compile(r"^wheels = \[\]$", re.MULTILINE)
"""The line of the manifest that the package has wheels in. Their names change with the kernel's sources."""
CATALOGUES = r"ccd_rig/blender/languages/\w+\.json"
MANUAL = r"manual/.+\.(html|css|js|png)"
MANUAL_PAGES = {"manual/index.html", "manual/reference/operators.html", "manual/reference/settings.html"}


class PackagingError(Exception):
    """The package breaks a rule of Blender's extensions; the message says which, and where."""


def build(output_dir: Path, target: kernel.Target | None = None) -> Path:
    """Build, validate and check the zip; returns its path.

    Args:
        output_dir: where it goes.
        target: the system that it is for alone; None: one zip for all.

    Raises:
        PackagingError: Blender's tool or one of our own checks refused.
        SetupError: the kernel cannot be compiled.
    """
    manifest = tomllib.loads((ROOT / "blender_manifest.toml").read_text(encoding="utf-8"))
    fail_on(manifest_problems(manifest))
    output_dir.mkdir(parents=True, exist_ok=True)
    platform = "" if target is None else PLATFORMS[target.tag]
    name = "-".join(filter(None, (manifest["id"], manifest["version"], platform)))
    package = output_dir / f"{name}.zip"
    targets = kernel.TARGETS if target is None else (target,)
    wheels = compiled.wheels(targets)
    # Beside its place, so that it is moved there in one step; a folder of its own, so that two builds at once
    # do not write to the same file.
    with tempfile.TemporaryDirectory(prefix="unchecked-", dir=output_dir) as scratch:
        unchecked = Path(scratch) / package.name
        sources = stage(Path(scratch) / "sources", wheels, platform)
        _tool("build", f"--source-dir={sources}", f"--output-filepath={unchecked}", f"--valid-tags={_tags()}")
        _tool("validate", f"--valid-tags={_tags()}", str(unchecked))
        with zipfile.ZipFile(unchecked) as archive:
            members = [each for each in archive.infolist() if not each.is_dir()]
            problems = content_problems({m.filename: archive.read(m) for m in members}, targets)
            size = sum(each.compress_size for each in members if not each.filename.startswith("manual/"))
        if target is not None and size > MOST:
            problems.append(f"{package.name} has {size:,} bytes beside the manual, more than {MOST:,}")
        fail_on(problems)
        return unchecked.replace(package)  # only a checked package gets its name


def stage(folder: Path, wheels: list[Path], platform: str = "") -> Path:
    """Copy what the package holds, with wheels that the manifest lists; returns the folder.

    `platform` is the system that the manifest names; empty: it names none, and the package is for all.
    """
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("manual", *PACKAGE_FOLDERS):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in PACKAGE_FILES - {"blender_manifest.toml"}:
        shutil.copy2(ROOT / name, folder / name)
    (folder / WHEELS).mkdir()
    for wheel in wheels:
        shutil.copy2(wheel, folder / WHEELS)
    lines = ["wheels = [", *(f'  "./{WHEELS}/{wheel.name}",' for wheel in wheels), "]"]
    if platform:
        lines.insert(0, f'platforms = ["{platform}"]')
    words = (ROOT / "blender_manifest.toml").read_text(encoding="utf-8")
    words = NO_WHEELS.sub("\n".join(lines), words)
    (folder / "blender_manifest.toml").write_text(words, encoding="utf-8", newline="\n")
    return folder


def fail_on(problems: list[str]) -> None:
    if problems:
        raise PackagingError("; ".join(problems))


def manifest_problems(manifest: dict[str, object]) -> list[str]:
    """Return faults that Blender's validator does not notice: unknown keys, licences without SPDX, wheels."""
    problems = []
    for table, known in KEYS.items():
        values = manifest.get(table, {}) if table else manifest
        if not isinstance(values, dict):
            problems.append(f"blender_manifest.toml: [{table}] must be a table")
            continue
        problems += [
            f"blender_manifest.toml: unknown key {key!r} in [{table}]" for key in sorted(set(values) - known)
        ]
    licenses = manifest.get("license", [])
    for license_ in licenses if isinstance(licenses, list) else [licenses]:
        if not str(license_).startswith("SPDX:"):
            problems.append(f"blender_manifest.toml: license {license_!r} lacks the prefix 'SPDX:'")
    tagline = str(manifest.get("tagline", ""))
    if not 0 < len(tagline) <= 64 or not tagline[-1].isalnum():
        problems.append(
            "blender_manifest.toml: tagline must have 1 to 64 characters and no closing punctuation"
        )
    if not NO_WHEELS.search((ROOT / "blender_manifest.toml").read_text(encoding="utf-8")):
        problems.append("blender_manifest.toml: the line 'wheels = []', which building fills in, is missing")
    return problems


def content_problems(files: dict[str, bytes], targets: Sequence[kernel.Target] = kernel.TARGETS) -> list[str]:
    """Return missing and superfluous files of a package, and violations of the platform's rules."""
    problems = [f"{name} is missing from the package" for name in sorted(PACKAGE_FILES - set(files))]
    problems += wheel_problems(files, targets)
    if MANUAL_PAGES - set(files):
        problems.append("the manual is missing from the package: run `python3 dev.py docs`")
    for folder in sorted(PACKAGE_FOLDERS):
        if f"{folder}/__init__.py" not in files:
            problems.append(f"{folder}/__init__.py is missing from the package")
    for name, content in sorted(files.items()):
        folder = name.split("/")[0] if "/" in name else ""
        is_source = folder in PACKAGE_FOLDERS and name.endswith(".py")
        if folder == WHEELS:
            continue
        if not (name in PACKAGE_FILES or is_source or re.fullmatch(f"{CATALOGUES}|{KERNEL}|{MANUAL}", name)):
            problems.append(f"{name} does not belong in the package")
        elif name.endswith(".py"):
            problems += _source_problems(name, content)
    return problems


def wheel_problems(files: dict[str, bytes], targets: Sequence[kernel.Target] = kernel.TARGETS) -> list[str]:
    """Return faults of a package's wheels: every system needs one, made of the package's sources.

    Args:
        files: content of the package, by name.
        targets: the systems that it is for.
    """
    manifest = tomllib.loads(files.get("blender_manifest.toml", b"").decode())
    listed = {str(name).removeprefix("./") for name in manifest.get("wheels", [])}
    problems = [
        f"{name} is listed in the manifest, but not in the package" for name in sorted(listed - set(files))
    ]
    there = {name for name in files if name.startswith(f"{WHEELS}/")}
    problems += [
        f"{name} is in the package, but not listed in the manifest" for name in sorted(there - listed)
    ]
    with tempfile.TemporaryDirectory() as scratch:
        for name in files:
            if name.startswith("ccd_rig/kernel/"):
                (Path(scratch) / Path(name).name).write_bytes(files[name])
        module, version = kernel.module_name(Path(scratch)), kernel.wheel_version()
    for target in targets:
        wheel = f"{WHEELS}/{kernel.DISTRIBUTION}-{version}-{kernel.PYTHON_TAG}-{target.tag}.whl"
        if wheel not in there:
            problems.append(f"{wheel} is missing from the package")
            continue
        there.remove(wheel)
        with zipfile.ZipFile(io.BytesIO(files[wheel])) as archive:
            if module + target.suffix not in archive.namelist():
                problems.append(
                    f"{wheel} was compiled from other sources: {module}{target.suffix} is missing"
                )
            elif machine_of(archive.read(module + target.suffix)) != (target.system, target.machines[0]):
                problems.append(f"{wheel} is for another system than its name says")
    return problems + [f"{name} is for no system that is known" for name in sorted(there & listed)]


def machine_of(content: bytes) -> tuple[str, str]:
    """The system and processor that a module's file format names."""
    words = struct.unpack_from("<II", content)
    if content[:4] == b"\x7fELF":
        return "Linux", {62: "x86_64", 183: "aarch64"}.get(struct.unpack_from("<H", content, 18)[0], "")
    if words[0] == 0xFEEDFACF:  # Mach-O, 64 bits
        return "Darwin", {0x01000007: "x86_64", 0x0100000C: "aarch64"}.get(words[1], "")
    at = struct.unpack_from("<I", content, 60)[0] if content[:2] == b"MZ" else 0
    if at and content[at : at + 4] == b"PE\0\0":
        machine = struct.unpack_from("<H", content, at + 4)[0]
        return "Windows", {0x8664: "x86_64", 0xAA64: "aarch64"}.get(machine, "")
    return "", ""


def _source_problems(name: str, content: bytes) -> list[str]:
    problems = []
    for node in ast.walk(ast.parse(content, name)):
        if isinstance(node, ast.Name) and node.id == "bl_info":
            problems.append(f"{name}:{node.lineno}: bl_info belongs to legacy add-ons")
        modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            modules = [node.module or ""]
        for module in modules:
            if module.split(".")[0] in PACKAGE_FOLDERS:
                problems.append(
                    f"{name}:{node.lineno}: import {module!r} must be relative inside the extension"
                )
    return problems


def _scripts() -> Path:
    spec = importlib.util.find_spec("bpy")
    if spec is None or spec.origin is None:
        raise PackagingError("the bpy wheel is not installed in this Python: run `python3 dev.py build`")
    folders = sorted(Path(spec.origin).parent.glob("*/scripts"))
    if not folders:
        raise PackagingError(f"no scripts folder beside {spec.origin}")
    return folders[-1]


def _tags() -> Path:
    return _scripts() / "modules/_bpy_internal/extensions/tags.py"


def _tool(*arguments: str) -> None:
    """Run Blender's extension tool, which needs no Blender; it reports some faults with exit code 0."""
    tool = _scripts() / "addons_core/bl_pkg/cli/blender_ext.py"
    done = subprocess.run(
        [sys.executable, str(tool), *arguments],
        capture_output=True,
        text=True,
        timeout=TOOL_TIMEOUT,
        check=False,
    )
    output = done.stdout + done.stderr
    if done.returncode or re.search(r"\b(error|warning)\b", output, re.IGNORECASE):
        raise PackagingError(f"blender_ext.py {arguments[0]}: {output.strip()}")


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("output_dir", nargs="?", type=Path, default=ROOT / "dist")
    options.add_argument("--platforms", action="store_true")
    options.add_argument("--here", action="store_true")
    chosen = options.parse_args()
    here = kernel.target_of_this_machine() if chosen.here else None
    try:
        for each in kernel.TARGETS if chosen.platforms else (here,):
            print(build(chosen.output_dir, each))
    except (PackagingError, environments.SetupError) as error:
        sys.exit(f"packaging: {error}")
