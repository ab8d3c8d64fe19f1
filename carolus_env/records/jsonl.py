"""Files of game records: JSON Lines, plain or gzip, one record a line.

The files are untrusted data; `carolus_env.system.untrusted` has the threat model.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from carolus_env.records.record import Record, RecordError, check_record
from carolus_env.system.files import reading, replacing
from carolus_env.system.untrusted import DataError, parse_json

MAX_LINE: Final = 64 * 2**20
"""Bytes of the longest line that is read or written; a game of 65,535 rounds takes a third."""

# ------------------------------------------------------------------------------------ writing


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write a file of records, one a line; compressed when the name ends in ``.gz``.

    The file is written under another name and renamed when it is complete. After any error, a
    file that was already there is unchanged. ``-`` is the standard output.

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
    """Return a record as its line of a file.

    Raises:
        RecordError: for something that `read_records` would not read back.
    """
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


# ------------------------------------------------------------------------------------ reading


def read_records(path: str | Path) -> Iterator[tuple[int, Record]]:
    """Yield the line number (from 1) and the record of each game in a file, plain or gzip.

    Blank lines are skipped. If the file is cut short, every complete game is read before the
    error is raised.

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

    Reading ends at damaged gzip data and at a line longer than `MAX_LINE`. ``-`` is the standard
    input.

    Raises:
        OSError: when the file cannot be opened or read.
    """
    with reading(path) as file:
        yield from _scanned(file, os.fspath(path))


def _scanned(file: BinaryIO, name: str) -> Iterator[tuple[int, Record | RecordError]]:
    plain = io.BufferedReader(file)  # type: ignore[type-var]  # an open file will do
    packed = is_gzip(name) or plain.peek(2)[:2] == b"\x1f\x8b"
    content: Any = gzip.GzipFile(fileobj=plain) if packed else plain
    for number in itertools.count(1):
        try:
            line = _next_line(content)
        except _DamageError as damage:
            yield number, RecordError(str(damage), name, number)
            return
        if not line:
            return
        if line.isspace():
            continue
        try:
            yield number, _parsed(line)
        except RecordError as error:
            yield number, RecordError(error.reason, name, number)


def _next_line(content: BinaryIO | gzip.GzipFile) -> bytes:
    """Return the next line; empty at the end."""
    try:
        line = content.readline(MAX_LINE + 1)
    except EOFError:
        raise _DamageError("the gzip data is cut short") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _DamageError(f"damaged gzip data ({error})") from None
    if len(line) > MAX_LINE:
        raise _DamageError(f"the line is longer than {MAX_LINE:,} bytes: reading ends here")
    return line


def _parsed(line: bytes) -> Record:
    try:
        record: Record = parse_json(line)
    except DataError as error:
        no_end = " (the last line has no end: the file may be cut short)"
        raise RecordError(str(error) + ("" if line.endswith(b"\n") else no_end)) from None
    check_record(record)
    return record


class _DamageError(Exception):
    """The rest of a file cannot be read."""
