"""Safe writing: a file is written beside and renamed, or grows by whole blocks, under a lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import stat
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, Self, TypeAlias

PathLike: TypeAlias = str | os.PathLike[str]


def expanded(path: PathLike) -> Path:
    """Return a path with the home folder for ``~``; an unknown user's stays as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path's raises RuntimeError for those


@contextmanager
def naming(path: PathLike, hidden: Path | None = None) -> Iterator[None]:
    """Let an OSError of the block name a file where it names none, or a hidden one."""
    try:
        yield
    except OSError as error:
        if error.filename in (None, str(hidden)):
            error.strerror = error.strerror or str(error) or "the file system failed"
            error.errno = error.errno or errno.EIO
            error.filename, error.filename2 = os.fspath(path), None
        raise


@contextmanager
def replacing(path: PathLike) -> Iterator[IO[bytes]]:
    """Yield a new file to write into, which replaces ``path`` once all is written.

    After an error or a crash ``path`` is as it was; symbolic links, mode and group stay. The
    standard output (``-``, ``/dev/stdout``), a pipe and a device are written into instead.
    """
    target, old = _target(path)
    if target is None:
        is_output = old is None or _is_output(old)
        if is_output:
            sys.stdout.flush()
        with naming(path), open(1 if is_output else path, "wb", closefd=not is_output) as file:
            yield file
        return
    with _beside(target, path) as beside:
        with beside.open("xb") as file:
            if old is not None:
                _keep_rights(file, old)
            yield file
            file.flush()
            _sync(file.fileno(), target)
        beside.replace(target)


_WITHOUT_SYNC: Final = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP)


def _sync(file: int, path: Path) -> None:
    """Wait until a file is on the disk; a file system that cannot tell gets one warning."""
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _WITHOUT_SYNC:
            raise
        _warn_unsynced(path.parent, error.strerror)


@cache
def _warn_unsynced(folder: Path, reason: str) -> None:
    text = f"{folder}: this file system has no fsync ({reason}): a crash of the machine may cut "
    warnings.warn(text + "files there", stacklevel=4)


def _keep_rights(file: IO[bytes], old: os.stat_result) -> None:
    """Give a new file the mode and group of the old one, and root its owner too."""
    mode = old.st_mode & 0o777
    try:
        os.fchown(file.fileno(), old.st_uid if os.geteuid() == 0 else -1, old.st_gid)
    except OSError:  # the mode was meant for the members of another group
        mode &= 0o707
    with contextlib.suppress(OSError):  # a file system without modes
        os.fchmod(file.fileno(), mode)


@contextmanager
def _beside(target: Path, path: PathLike) -> Iterator[Path]:
    """Yield the name of a file beside ``target``, which goes; an OSError of it names ``path``."""
    beside = target.with_name(f".carolus-{secrets.token_hex(8)}.part")
    try:
        with naming(path, beside):
            yield beside
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def write_file(path: PathLike, data: bytes) -> None:
    """Write a whole file; see `replacing`."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: PathLike, data: Any) -> None:
    """Write readable JSON; see `replacing`."""
    write_file(path, (json.dumps(data, indent=1) + "\n").encode())


def check_writable(path: PathLike) -> None:
    """Fail now, not after hours of work, if a file cannot be written."""
    target, old = _target(path)
    if old is not None and not os.access(path, os.W_OK):
        raise OSError(errno.EACCES, "may not be overwritten", os.fspath(path))
    if target is None:
        return
    if not target.parent.is_dir():
        raise OSError(errno.ENOENT, f"there is no folder {target.parent}", os.fspath(path))
    with _beside(target, path) as beside:
        beside.write_bytes(b" " * 65536)  # a full disk shows here


class BusyError(ValueError):
    """Someone else writes a file or folder; the text names both."""


@contextmanager
def locked(path: PathLike) -> Iterator[None]:
    """Keep others from writing a file or folder while the ``with`` block runs.

    The lock is the system's, on a hidden file: a killed process leaves none. Where the file system
    has none, a warning says so, and only other blocks of this process are kept out.
    """
    target, old = _resolved(path)
    is_folder = old is not None and stat.S_ISDIR(old.st_mode)
    lock = target / ".lock" if is_folder else target.with_name(f".{target.name}.lock")
    own = object()
    if _held.setdefault(str(lock), own) is not own:
        raise BusyError(f"{os.fspath(path)}: is written by this process already")
    try:
        with _locked_file(lock, os.fspath(path)) as file:
            with contextlib.suppress(OSError):  # a full disk
                file.truncate(0)
                file.write(b"%d\n" % os.getpid())
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    lock.unlink()
    finally:
        del _held[str(lock)]


_held: dict[str, object] = {}
"""The locks of this process: those of the system keep out other processes only."""
_WITHOUT_LOCKS: Final = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP)
_TAKEN: Final = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


def _locked_file(lock: Path, name: str) -> IO[bytes]:
    """Open a lock's file and lock it; a file system without locks gets a warning instead."""
    while True:
        with naming(name, lock):
            file = lock.open("a+b", buffering=0)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _WITHOUT_LOCKS:
                text = f"{name}: this file system has no locks ({error.strerror}): nothing keeps "
                warnings.warn(text + "another process from writing there, too", stacklevel=4)
                return file
            file.seek(0)
            holder = file.read().decode(errors="replace").strip() or "of unknown number"
            file.close()
            if error.errno in _TAKEN:
                raise BusyError(f"{name}: process {holder} writes there now") from None
            with naming(name):
                raise
        with contextlib.suppress(FileNotFoundError):  # its last holder has just removed it
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                return file
        file.close()


def _resolved(path: PathLike) -> tuple[Path, os.stat_result | None]:
    """Return a path without symbolic links, and what is there; a loop of links is an OSError."""
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        found = None
    return Path(os.path.realpath(path)), found


def _target(path: PathLike) -> tuple[Path | None, os.stat_result | None]:
    """Return the file to replace, None where a stream is written into, and what is there."""
    if is_standard(path):
        return None, None
    target, old = _resolved(path)
    if old is None or stat.S_ISREG(old.st_mode):
        return (None if old is not None and _is_output(old) else target), old
    if stat.S_ISDIR(old.st_mode):
        raise OSError(errno.EISDIR, "is a folder, a file is needed", os.fspath(path))
    if not (stat.S_ISFIFO(old.st_mode) or stat.S_ISCHR(old.st_mode)):
        raise OSError(errno.EINVAL, "neither a regular file nor a stream", os.fspath(path))
    return None, old


# ------------------------------------------------------------------------------------ streams


def is_standard(path: PathLike) -> bool:
    """Return whether a path is ``-``, which stands for the standard input or output."""
    return os.fspath(path) == "-"


def reading(path: PathLike) -> BinaryIO:
    """Open a file to read it; ``-`` is the standard input."""
    return open(0, "rb", closefd=False) if is_standard(path) else Path(path).open("rb")


def _is_output(found: os.stat_result) -> bool:
    with contextlib.suppress(OSError):  # it is closed
        return os.path.samestat(found, os.fstat(1))
    return False


# ------------------------------------------------------------------------------------ logs


def json_line(entry: Any) -> bytes:
    """Return a value as one line of JSON, in few bytes; NaN and infinities are a ValueError."""
    return json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def read_lines(path: PathLike) -> tuple[list[bytes], int, bool]:
    """Return a file's whole lines without ends, their bytes in it, and if a cut line follows."""
    data = Path(path).read_bytes()
    size = data.rfind(b"\n") + 1
    return data[:size].split(b"\n")[:-1], size, size < len(data)


class Log(contextlib.AbstractContextManager["Log"]):
    """A file that is added to, block by block; a context manager.

    A block is on the disk when `append` returns. When that fails (the disk is full, Ctrl-C), the
    file ends where the block before it ended. Lock the file (`files.locked`) while it is open.
    """

    def __init__(self, path: PathLike, size: int | None = None) -> None:
        self.path = Path(path)
        self._file = self.path.open("r+b", buffering=0)
        with naming(self.path):
            if size is not None:
                self._file.truncate(size)
            self._size = self._file.seek(0, os.SEEK_END)

    @classmethod
    def create(cls, path: PathLike, block: bytes = b"") -> Self:
        """Create a file that holds its first block from the moment when it appears."""
        if _target(path)[0] is None:
            raise OSError(errno.EINVAL, "a regular file is needed", os.fspath(path))
        if Path(path).exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
        write_file(path, block)
        return cls(path)

    def append(self, block: bytes) -> None:
        """Write a block of whole lines, and make sure that it reaches the disk."""
        try:
            with naming(self.path):
                remaining = memoryview(block)
                while remaining:  # the system may write a part
                    written = os.write(self._file.fileno(), remaining)
                    if not written:
                        raise OSError(errno.EIO, "nothing was written")
                    remaining = remaining[written:]
                _sync(self._file.fileno(), self.path)
        except BaseException:
            with contextlib.suppress(OSError):  # then its last line is cut, which readers leave out
                self._file.truncate(self._size)
                self._file.seek(self._size)
            raise
        self._size += len(block)

    def close(self) -> None:
        """Close the file; what was appended stays."""
        self._file.close()

    def __exit__(self, *_: object) -> None:
        self.close()
