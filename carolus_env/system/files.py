"""Safe writing: a new file is written next to the old one, then renamed."""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file to write into, which replaces ``path`` once all is written.

    After an error, a full disk or a crash, ``path`` is as it was. A link stays a link.

    Raises:
        OSError: when the file cannot be written, or when ``path`` is not a regular file.
    """
    target = _target(path)
    beside = target.with_name(f".carolus-{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file; see `replacing`."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: str | os.PathLike[str], data: Any) -> None:
    """Write readable JSON; see `replacing`."""
    write_file(path, (json.dumps(data, indent=1) + "\n").encode())


def check_writable(path: str | os.PathLike[str]) -> None:
    """Fail now, not after hours of work, if a file cannot be written.

    Raises:
        OSError: with the reason as its ``strerror``.
    """
    target = _target(path)
    if not target.parent.is_dir():
        raise OSError(errno.ENOENT, f"there is no folder {target.parent}", os.fspath(path))
    if target.exists() and not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, "may not be overwritten", os.fspath(path))
    beside = target.with_name(f".carolus-{secrets.token_hex(8)}.part")
    try:
        beside.write_bytes(b" " * 65536)  # a full disk shows here
    finally:
        beside.unlink(missing_ok=True)


def _target(path: str | os.PathLike[str]) -> Path:
    target = Path(path).resolve()
    if target.is_dir():
        raise OSError(errno.EISDIR, "is a folder, a file is needed", os.fspath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return target
