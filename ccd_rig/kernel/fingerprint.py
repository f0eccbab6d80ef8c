"""Sources of the compiled kernel, and the name of the module made of them.

Standard library only, and readable by Python 3.9: the tools that build the kernel load this file by itself.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

PREFIX = "ccd_rig_kernel_"
LEFT_OUT = ("__init__.py", "fingerprint.py", "loading.py", "plain.py")
"""Modules that are not compiled."""


def source_files(folder: Path) -> list[Path]:
    """Modules that are compiled, and the files with their C types, by name."""
    files = [file for file in folder.iterdir() if file.suffix in (".py", ".pxd")]
    return sorted((file for file in files if file.name not in LEFT_OUT), key=lambda file: file.name)


def fingerprint(folder: Path) -> str:
    """Hash of all sources, 12 hexadecimal digits; ends of lines do not count."""
    digest = hashlib.sha256()
    for file in source_files(folder):
        content = file.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{file.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def module_name(folder: Path) -> str:
    """The name of the module compiled from these sources.

    Modules of other sources have other names. Two versions never meet: neither in a Blender that runs during
    an update, nor where Windows keeps a file that is in use.
    """
    return PREFIX + fingerprint(folder)
