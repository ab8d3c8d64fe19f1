"""Files that grow by blocks of whole lines, and end with a whole line after any failure."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Any, NamedTuple, Self

from carolus_env.system.files import naming, write_file


class Lines(NamedTuple):
    """The whole lines of a file, without their ends.

    Attributes:
        lines: the lines.
        size: their bytes in the file, with their ends: where `Log` goes on.
        cut: something follows that has no end, as after a power failure.
    """

    lines: list[bytes]
    size: int
    cut: bool


def json_line(entry: Any) -> bytes:
    """Return a value as one line of JSON, in few bytes; NaN and infinities are a ValueError."""
    return json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def read_lines(path: str | os.PathLike[str]) -> Lines:
    """Read the whole lines of a file.

    Raises:
        OSError: when it cannot be read.
    """
    data = Path(path).read_bytes()
    size = data.rfind(b"\n") + 1
    return Lines(data[:size].split(b"\n")[:-1], size, size < len(data))


class Log:
    """A file that is added to, block by block; a context manager.

    A block is on the disk when `append` returns. When that fails (the disk is full, Ctrl-C), the
    file ends where the block before it ended, and goes on from there. Lock the file
    (`files.locked`) while it is open.

    Args:
        path: a file that exists.
        size: the bytes to keep, as `read_lines` counted them; the rest is dropped. None: all.

    Raises:
        OSError: when it cannot be opened or cut, naming it.
    """

    def __init__(self, path: str | os.PathLike[str], size: int | None = None) -> None:
        self.path = Path(path)
        self._file = self.path.open("r+b", buffering=0)
        with naming(self.path):
            if size is not None:
                self._file.truncate(size)
            self._size = self._file.seek(0, os.SEEK_END)

    @classmethod
    def create(cls, path: str | os.PathLike[str], block: bytes = b"") -> Self:
        """Create a file that holds its first block from the moment when it appears.

        Raises:
            FileExistsError: when it exists.
            OSError: when it cannot be written, naming it.
        """
        if Path(path).exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
        write_file(path, block)
        return cls(path)

    def append(self, block: bytes) -> None:
        """Write a block of whole lines, and make sure that it reaches the disk.

        Raises:
            OSError: when all of it cannot be written, naming the file.
        """
        try:
            with naming(self.path):
                remaining = memoryview(block)
                while remaining:  # the system may write a part
                    written = os.write(self._file.fileno(), remaining)
                    if not written:
                        raise OSError(errno.EIO, "nothing was written")
                    remaining = remaining[written:]
                os.fsync(self._file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):  # then its last line is cut, which readers leave out
                self._file.truncate(self._size)
                self._file.seek(self._size)
            raise
        self._size += len(block)

    def close(self) -> None:
        """Close the file; what was appended stays."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
