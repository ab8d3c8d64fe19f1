"""Safe writing: a file is written beside and renamed; what is written over time is locked."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a new file to write into, which replaces ``path`` once all is written.

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


class BusyError(ValueError):
    """Another process writes a file or folder; the text names both."""


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Keep others from writing a file or folder while the ``with`` block runs.

    The lock is one of the operating system on a hidden file, so that a killed process leaves none.

    Args:
        path: the file or folder; it need not exist, but the folder above it must.

    Raises:
        BusyError: when another block, mostly of another process, holds it.
    """
    target = Path(path).resolve()
    lock = target / ".lock" if target.is_dir() else target.with_name(f".{target.name}.lock")
    if lock in _held:
        raise BusyError(f"{os.fspath(path)}: is written by this process already")
    with _locked_file(lock, os.fspath(path)) as file:
        _held.add(lock)
        try:
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            yield
        finally:
            _held.discard(lock)
            with contextlib.suppress(OSError):
                lock.unlink()


_held: set[Path] = set()
"""The locks of this process: those of the system keep out other processes only."""


def _locked_file(lock: Path, name: str) -> IO[str]:
    while True:
        file = lock.open("a+")
        try:
            _lock(file)
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                return file
        except FileNotFoundError:  # its last holder has just removed it
            pass
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "of unknown number"
            file.close()
            raise BusyError(f"{name}: process {holder} writes there now") from None
        file.close()


def _lock(file: IO[str]) -> None:
    """Lock a file at once, or raise OSError."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _target(path: str | os.PathLike[str]) -> Path:
    target = Path(path).resolve()
    if target.is_dir():
        raise OSError(errno.EISDIR, "is a folder, a file is needed", os.fspath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return target
