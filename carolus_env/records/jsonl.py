"""Files of game records: JSON Lines, plain or gzip, one record a line; untrusted data."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from carolus_env.records.record import Record, RecordError, check_record
from carolus_env.system.files import reading, replacing
from carolus_env.system.untrusted import DataError, parse_json

MAX_LINE: Final = 64 * 2**20
"""Bytes of the longest line that is read or written; a game of 65,535 rounds takes a third."""


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write a file of records, one a line; compressed when the name ends in ``.gz``.

    After any error a file that was already there is unchanged. ``-`` is the standard output.

    Raises:
        RecordError: for something that `read_records` would not read back.
        OSError: when the file cannot be written.
    """
    with replacing(path) as file:
        if is_gzip(path):
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as zipped:
                zipped.writelines(map(record_line, records))
        else:
            file.writelines(map(record_line, records))


def record_line(record: Record) -> bytes:
    """Return a record as its line of a file; a `RecordError` where it could not be read back."""
    check_record(record)
    try:
        text = json.dumps(record, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"the record cannot be written as JSON: {error}") from None
    if len(text) >= MAX_LINE:
        raise RecordError(f"the record takes {len(text):,} bytes, more than {MAX_LINE:,}")
    return text.encode() + b"\n"


def is_gzip(path: str | Path) -> bool:
    """Return whether a file's name says that it is compressed."""
    return os.fspath(path).lower().endswith(".gz")


def read_records(path: str | Path) -> Iterator[tuple[int, Record]]:
    """Yield the line number (from 1) and the record of each game in a file, plain or gzip.

    Blank lines are skipped; ``-`` is the standard input. If the file is cut short, every complete
    game is read before the error is raised.

    Raises:
        RecordError: at the first line that is not a record, with path, line and reason.
        OSError: when the file cannot be opened or read.
    """
    for line, entry in scan_records(path):
        if isinstance(entry, RecordError):
            raise entry
        yield line, entry


def scan_records(path: str | Path) -> Iterator[tuple[int, Record | RecordError]]:
    """Yield `read_records` that continues after errors, which it yields instead of raising.

    Reading ends at damaged gzip data and at a line longer than `MAX_LINE`.
    """
    with reading(path) as file:
        name, plain = os.fspath(path), io.BufferedReader(file)  # type: ignore[type-var]
        packed = is_gzip(name) or plain.peek(2)[:2] == b"\x1f\x8b"
        content: Any = gzip.GzipFile(fileobj=plain) if packed else plain
        for number in itertools.count(1):
            damage, line = "", b""
            try:
                line = content.readline(MAX_LINE + 1)
            except EOFError:
                damage = "the gzip data is cut short"
            except (gzip.BadGzipFile, zlib.error) as error:
                damage = f"damaged gzip data ({error})"
            if len(line) > MAX_LINE:
                damage = f"the line is longer than {MAX_LINE:,} bytes: reading ends here"
            if damage:
                yield number, RecordError(damage, name, number)
            if damage or not line:
                return
            if not line.isspace():
                yield number, _parsed(line, name, number)


def _parsed(line: bytes, name: str, number: int) -> Record | RecordError:
    try:
        record: Record = parse_json(line)
        check_record(record)
        return record
    except DataError as error:
        no_end = (
            "" if line.endswith(b"\n") else " (the last line has no end: the file may be cut short)"
        )
        return RecordError(f"{error}{no_end}", name, number)
    except RecordError as error:
        return RecordError(error.reason, name, number)
