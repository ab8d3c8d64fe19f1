"""Writing files so that nothing is lost: beside the old one, then renamed."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """A new file to write into, which takes the place of ``path`` when all went well.

    After an error, a full disk or a crash, ``path`` is as it was. A link stays a link.

    Raises:
        OSError: when the file cannot be written, or when ``path`` is no regular file.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is not a regular file")
    beside = target.with_name(f".carolus-{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write_file(path: str | Path, data: bytes) -> None:
    """Write a whole file; see `replacing`."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: str | Path, data: Any) -> None:
    """Write readable JSON; see `replacing`."""
    write_file(path, (json.dumps(data, indent=1) + "\n").encode())
