"""Files of game records: JSON Lines, plain or gzip, one record a line.

The files are untrusted data; `carolus_env.system.untrusted` has the threat model.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from carolus_env.records.check import Record, RecordError, check_record
from carolus_env.system.files import replacing
from carolus_env.system.untrusted import DataError, parse_json

MAX_LINE: Final = 64 * 2**20
"""Bytes of the longest line that is read or written; a game of 65,535 rounds takes a third."""

# ------------------------------------------------------------------------------------ writing


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write a file of records, one a line; compressed when the name ends in ``.gz``.

    The file is written under another name and renamed when it is complete. After any error, a
    file that was already there is unchanged.

    Raises:
        RecordError: for something that `read_records` would not read back.
        OSError: when the file cannot be written.
    """
    with replacing(path) as file:
        if _is_gz(path):
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as zipped:
                zipped.writelines(map(record_line, records))
        else:
            file.writelines(map(record_line, records))


def record_line(record: Record) -> bytes:
    """A record as its line of a file.

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


def _is_gz(path: str | Path) -> bool:
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
    """`read_records` that continues after errors, which it yields instead of raising.

    Reading ends at damaged gzip data and at a line longer than `MAX_LINE`.

    Raises:
        OSError: when the file cannot be opened or read.
    """
    with Path(path).open("rb") as file:
        yield from scan_file(file, os.fspath(path))


def scan_file(
    file: BinaryIO, name: str, *, most: int | None = None
) -> Iterator[tuple[int, Record | RecordError]]:
    """`scan_records` of an open file.

    Args:
        file: positioned where its content begins.
        name: of the file, for errors; a name in ``.gz`` says that it is gzip.
        most: bytes of unpacked content after which reading ends; None: no limit.
    """
    content = _content(file, _is_gz(name))
    lines = _lines(content if most is None else _at_most(content, most), MAX_LINE)
    for number, line, damage in lines:
        record = None
        if line:
            try:
                record = _parsed(line)
            except RecordError as error:
                damage = damage or error.reason
        if record is not None:
            yield number, record
        if damage:
            yield number, RecordError(damage, name, number)


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


def _lines(chunks: Iterator[bytes], longest: int) -> Iterator[tuple[int, bytes, str | None]]:
    """The lines that are not blank, each with its number, from 1, and None.

    At damage, what was read of the last line, with the reason. Blank lines are passed over many at
    a time: a small gzip file can hold millions of them.
    """
    line, number, blank = bytearray(), 1, True  # whether what was read of the line is blank
    try:
        for chunk in chunks:
            place = 0
            while place < len(chunk):
                if blank:
                    found = _TEXT.search(chunk, place)
                    text = len(chunk) if found is None else found.start()
                    if (begins := chunk.rfind(b"\n", place, text) + 1) > 0:
                        number += chunk.count(b"\n", place, begins)
                        place = begins
                        line.clear()
                    blank = found is None
                end = chunk.find(b"\n", place) + 1 or len(chunk)
                line += chunk[place:end]
                place = end
                if len(line) > longest:
                    line.clear()
                    raise _DamageError(
                        f"the line is longer than {longest:,} bytes: reading ends here"
                    )
                if line.endswith(b"\n"):
                    yield number, bytes(line), None
                    line.clear()
                    number, blank = number + 1, True
    except _DamageError as damage:
        yield number, b"" if blank else bytes(line), str(damage)
        return
    if not blank:
        yield number, bytes(line), None


def _at_most(chunks: Iterator[bytes], most: int) -> Iterator[bytes]:
    left = most
    for chunk in chunks:
        yield chunk[:left]
        left -= len(chunk)
        if left < 0:
            raise _DamageError(f"there are more than {most:,} bytes: reading ends here")


_CHUNK: Final = 2**16
_TEXT: Final = re.compile(rb"\S")


def _content(file: BinaryIO, gz: bool) -> Iterator[bytes]:
    """A file's content in chunks; unpacked if its first bytes or its name (``gz``) say gzip.

    `gzip.open` is not used because it loses up to a buffer of content before damaged data.
    """
    data = file.read(_CHUNK)
    if not gz and not data.startswith(b"\x1f\x8b"):
        while data:
            yield data
            data = file.read(_CHUNK)
        return
    unzip = zlib.decompressobj(wbits=31)
    while data:
        if unzip.eof:  # gzip files may be concatenated
            unzip = zlib.decompressobj(wbits=31)
        before = unzip.copy()
        try:
            yield unzip.decompress(data, _CHUNK)
        except zlib.error as error:
            yield _undamaged(before, data)
            raise _DamageError(f"damaged gzip data ({error})") from None
        data = (unzip.unused_data if unzip.eof else unzip.unconsumed_tail) or file.read(_CHUNK)
    with contextlib.suppress(zlib.error):
        yield unzip.flush()
    if not unzip.eof:
        raise _DamageError("the gzip data is cut short")


def _undamaged(unzip: zlib._Decompress, data: bytes) -> bytes:
    """The content before the damage; byte by byte, as an error loses the output of its step."""
    content = bytearray()
    with contextlib.suppress(zlib.error):
        for byte in range(len(data)):
            content += unzip.decompress(data[byte : byte + 1])
    return bytes(content)
