"""Files that are written as a whole or not at all, and text that is read."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import CCDRigError, RigError

PREFIX = ".ccd_rig_"
LONGEST_SUFFIX = 16
"""Letters of a file's ending that a temporary file keeps."""


class WriteError(CCDRigError):
    """A file could not be written; the message names it. Nothing half-written is left behind."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file as a whole or not at all.

    Gives the path of a temporary file in the same folder; when the block ends well it takes the place of
    `path`.

    Raises:
        WriteError: the folder cannot be written, or the disk is full.
    """
    target = require_writable(path)  # a link stays a link
    try:
        # A name of its own, however long that of the file is.
        descriptor, name = tempfile.mkstemp(
            dir=target.parent, prefix=PREFIX, suffix=target.suffix[:LONGEST_SUFFIX]
        )
        os.close(descriptor)
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror}") from error
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())  # a disk that fills up late says so here, not after the rename
        temporary.chmod(_mode(target))
        temporary.replace(target)
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def real_path(path: str | os.PathLike[str]) -> Path:
    """Where a file that is to be written really lies, with no link on the way.

    Raises:
        WriteError: no file can be written there: links go round, a name is too long, there is no such
            folder, or something else lies there.
    """
    try:
        target = Path(path).resolve()
        mode = target.lstat().st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise WriteError(f"cannot write {path}: there is no folder {target.parent}") from None
        return target
    except RuntimeError as error:  # how Python 3.11 names a circle of links
        raise WriteError(f"cannot write {path}: {os.strerror(errno.ELOOP)}") from error
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error
    if stat.S_ISLNK(mode):  # Python 3.13 leaves a circle as it is
        raise WriteError(f"cannot write {path}: {os.strerror(errno.ELOOP)}")
    if not stat.S_ISREG(mode):
        raise WriteError(f"cannot write {target}: it is {'a folder' if stat.S_ISDIR(mode) else 'not a file'}")
    return target


def require_writable(path: str | os.PathLike[str]) -> Path:
    """Where a file that is to be written really lies, see `real_path`; nothing is written yet.

    Raises:
        WriteError: as `real_path`, or the folder or the file that is there is read-only.
    """
    target = real_path(path)
    try:
        # Tried, since who asks for permissions is not told of all that forbids it.
        with tempfile.TemporaryFile(dir=target.parent, prefix=PREFIX):
            pass
        if target.exists():  # a new file takes its place, for which its folder alone would be asked
            target.open("r+b").close()
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error
    return target


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, by whatever links, or will once it is written."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file or pipe in UTF-8.

    Raises:
        RigError: it cannot be read, is a device, which may have no end, or holds no text; names the file.
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
    """Permissions of the file that is replaced, or of a new one; those of a temporary file are narrower."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
