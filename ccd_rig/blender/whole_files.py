"""Files that are written as a whole or not at all, and text that is read."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import CCDRigError, RigError


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
    target = Path(path).resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        raise WriteError(f"cannot write {target}: it is {'a folder' if target.is_dir() else 'not a file'}")
    try:
        descriptor, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=target.suffix
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


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file in UTF-8; raises RigError, which names the file, if it cannot be read or is none."""
    try:
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
