# SPDX-License-Identifier: GPL-3.0-or-later
"""Atomic writing of files, and reading of text."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ..errors import CCDRigError, RigError

T = TypeVar("T")
PREFIX = ".ccd_rig_"
LONGEST_SUFFIX = 16
"""Number of letters of a file's suffix that its temporary file has."""


class WriteError(CCDRigError):
    """A file could not be written; the message names it. No partial file is left."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file atomically: yields a temporary file in the same folder, which replaces `path` at the end.

    If the block raises, `path` is not changed.

    Raises:
        WriteError: the folder cannot be written, or the disk is full.
    """
    target = require_writable(path)  # a link stays a link
    try:
        # A short name, since that of the file may have the longest allowed length.
        descriptor, name = tempfile.mkstemp(
            dir=target.parent, prefix=PREFIX, suffix=target.suffix[:LONGEST_SUFFIX]
        )
        os.close(descriptor)
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror}") from error
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("r+b") as written:  # Windows flushes only what is open for writing
            os.fsync(written.fileno())  # a full disk may be reported only here, before the rename
        temporary.chmod(_mode(target))
        temporary.replace(target)
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def real_path(path: str | os.PathLike[str]) -> Path:
    """Resolve all links in the path of a file to write.

    Raises:
        WriteError: no file can be written there: a cycle of links, too long a name, a missing folder, or not
            a file.
    """
    try:
        target = Path(path).resolve()
        mode = target.lstat().st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise WriteError(f"cannot write {path}: there is no folder {target.parent}") from None
        return target
    except RuntimeError as error:  # Python 3.11 raises it for a cycle of links
        raise WriteError(f"cannot write {path}: {os.strerror(errno.ELOOP)}") from error
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error
    if stat.S_ISLNK(mode):  # Python 3.13 returns a cycle of links unresolved
        raise WriteError(f"cannot write {path}: {os.strerror(errno.ELOOP)}")
    if not stat.S_ISREG(mode):
        raise WriteError(f"cannot write {target}: it is {'a folder' if stat.S_ISDIR(mode) else 'not a file'}")
    return target


def real_folder(path: str | os.PathLike[str]) -> Path:
    """Resolve the links in the path of a file to read, except the file itself, which may be a link.

    Blender finds what a file names beside the link that it was opened by, and farms stage files as links.
    """
    path = Path(path)
    return path.parent.resolve() / path.name


def require_writable(path: str | os.PathLike[str]) -> Path:
    """Resolve the path of a file to write, see `real_path`, and check that it can be written.

    Raises:
        WriteError: as `real_path`, or the folder or the present file is read-only.
    """
    target = real_path(path)
    try:
        # A file is created, since permissions do not tell of everything that forbids it.
        with tempfile.TemporaryFile(dir=target.parent, prefix=PREFIX):
            pass
        if target.exists():  # replacing it needs permissions of the folder alone; require the file's too
            target.open("r+b").close()
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error
    return target


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, through any links, whether it exists or not."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def read(path: str | os.PathLike[str], parse: Callable[[str], T]) -> T:
    """Return what `parse` makes of a text file; raises RigError, which names the file and the error in it."""
    text = read_text(path)
    try:
        return parse(text)
    except CCDRigError as error:
        raise RigError(f"{path}: {error}") from error


def read_text(path: str | os.PathLike[str]) -> str:
    """Read the UTF-8 text of a file or pipe.

    Raises:
        RigError: names the file, which cannot be read, is a device (it may have no end), or is not text.
    """
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise RigError(f"cannot read {path}: it is a device, not a file")
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise RigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RigError(f"cannot read {path}: it is not text") from error


def _mode(path: Path) -> int:
    """Return the permissions of a present file, or of a new one; a temporary file has fewer."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
