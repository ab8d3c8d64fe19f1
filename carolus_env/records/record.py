"""Game records: every chance result and every decision of a game, as one line of JSON.

A record replays without a random generator, on any implementation of the rules (docs/rules.md has
the format). To write one, an environment keeps the very start of its game and the actions played:

    >>> start = ce.new_games(ce.Rules(players=3), seed=7, roll=False)
    >>> ...                                    # play on a copy, noting each action
    >>> write_records("games.jsonl.gz", [make_record(start, actions)])

A stranger's file is data: it is parsed, checked and refused with a `RecordError`, never run.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import math
import operator
import os
import reprlib
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.rules import (
    BY_FORFEIT,
    CLANS,
    OVER,
    PALADINS_LAID_OUT,
    PHASE_NAMES,
    TERRITORIES,
    Rules,
)
from carolus_env.engine.state import STATE, States, as_states
from carolus_env.records import position
from carolus_env.system.files import replacing

FORMAT: Final = "carolus-record"
VERSION: Final = 1
MAX_LINE: Final = 64 * 2**20
"""Bytes of the longest line that is read or written; a game of 65,535 rounds takes a third."""

STATE_KEYS: Final = (
    "round", "phase", "player", "regions", "courts", "control", "reserves", "crowns", "supply",
    "discs_in_hand", "discs_played", "castles", "placements_left",
)  # fmt: skip
"""The keys of an event's ``state``: those of `position.to_dict` that all implementations share."""

Record = dict[str, Any]

_RESULT_KEYS: Final = ("reason", "winners", "castles", "regions", "rounds", "returns")
_EVENT_KEYS: Final = {
    "roll": ("roll", "player"),
    "action": ("action", "player", "legal", "state"),
}


class RecordError(ValueError):
    """A file or an object that is no game record.

    Attributes:
        reason: what is wrong, and where in the record.
        path: the file, None for an object that came from none.
        line: its line, counted from 1; None likewise.
    """

    def __init__(self, reason: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(reason if path is None else f"{path}, line {line}: {reason}")
        self.reason, self.path, self.line = reason, path, line


# ------------------------------------------------------------------------------------ making


def make_record(
    start: States,
    actions: Iterable[int],
    *,
    legal: bool = False,
    state: bool = False,
    dice: npt.NDArray[np.uint64] | None = None,
) -> Record:
    """The record of the game that ``actions`` make of ``start``.

    The dice come from the generator in ``start``, so they are those of the game that was played.
    Rolls due after the last action are part of the record, as `engine.step` rolls them too.

    A forfeit is no event and no result of the game: the record of a forfeited game holds what was
    played before, and its ``result`` is None.

    Args:
        start: a batch of one game, as ``engine.new_games(..., roll=False)`` gives it.
        actions: the action numbers played, in order.
        legal: note the legal set before each action.
        state: note the state before each action.
        dice: ``(players,)`` uint64, for a game in which each seat rolled by a generator of its
            own (`kernels.turns.roll_dealt`): where they stood at the start. None: the one in
            ``start`` rolled for all.

    Returns:
        A JSON-ready dict.

    Raises:
        ValueError: when ``start`` is no game before its first roll, or an action comes after the
            end of the game.
        IllegalActionError: when an action is illegal. A note names its index in ``actions``.
    """
    record = _begun(start)
    events: list[dict[str, Any]] = record["events"]
    game = start.copy()
    dice = None if dice is None else dice.copy()
    _roll_on(game, events, dice)
    for index, given in enumerate(actions):
        action = operator.index(given)
        event: dict[str, Any] = {"action": action, "player": int(game["player"][0])}
        if legal:
            event["legal"] = engine.legal_actions(game).tolist()
        if state:
            event["state"] = state_of(game)
        try:
            engine.step(game, np.array([action]), roll=False)
        except (ValueError, TypeError) as error:  # TypeError: too big for an array
            error.add_note(f"It is actions[{index}] of the record to be made.")
            raise
        events.append(event)
        _roll_on(game, events, dice)
    record["result"] = result_of(game)
    return record


def _begun(start: States) -> Record:
    """A record without events, made sure to set up the very game ``start``."""
    if len(as_states(start, "start")) != 1:
        raise ValueError(f"start must be a batch of one game, got {len(start)}")
    on_regions = start["region_paladins"][0]
    record: Record = {
        "format": FORMAT,
        "version": VERSION,
        "rules": engine.rules_of(start[0]).to_dict(),
        "setup": {
            "territories": on_regions[:, :TERRITORIES].argmax(axis=0).tolist(),
            "first_player": int(start["order"][0, 0]),
        },
        "events": [],
        "result": None,
    }
    try:
        again = start_of(record)
        again["generator"] = start["generator"]
        fresh = again.tobytes() == start.tobytes()
    except RecordError:
        fresh = False
    if not fresh:
        raise ValueError(
            "start must be a game before its first roll, as new_games(..., roll=False) gives it; "
            f"this one is in round {start['round'][0]}, phase {PHASE_NAMES[start['phase'][0]]}"
        )
    return record


def _roll_on(
    game: States, events: list[dict[str, Any]], dice: npt.NDArray[np.uint64] | None
) -> None:
    while chance.roll_due(game)[0]:
        player = int(game["player"][0])
        if dice is not None:
            game["generator"] = dice[player]
        faces = chance.draw_faces(game)
        if dice is not None:
            dice[player] = game["generator"][0]
        chance.apply_roll(game, faces)
        events.append({"roll": faces[0].tolist(), "player": player})


def state_of(game: np.void | States) -> dict[str, Any]:
    """The ``state`` object of a record's event: a game (``states[i]`` or a batch of one) now."""
    full = position.to_dict(_one(game)[0])
    return {key: full[key] for key in STATE_KEYS}


def result_of(game: np.void | States) -> dict[str, Any] | None:
    """The ``result`` object of a record: None for a game that is not over, or was forfeited."""
    states = _one(game)
    over = states[0]
    if over["phase"] != OVER or over["reason"] == BY_FORFEIT:
        return None
    return {
        **position.to_dict(over)["result"],
        "castles": over["castles"][: over["teams"]].tolist(),
        "regions": int(over["regions"]),
        "rounds": int(over["round"]),
        "returns": engine.returns(states)[0].tolist(),
    }


def _one(game: np.void | States) -> States:
    return np.array(game, STATE).reshape(1)


def start_of(record: Record, *, seed: int = 0) -> States:
    """Set up the game of a record, before its first roll.

    Args:
        record: a record; its events are not looked at.
        seed: for dice that the record does not hold (it holds no generator), should the game be
            played on.

    Returns:
        A batch of one game.

    Raises:
        RecordError: when its rules or its set-up are none.
    """
    rules, territories, first_player = _read_start(record)
    return engine.new_games(
        rules, 1, seed=seed, territories=territories, first_player=first_player, roll=False
    )


def positions(record: Record) -> States:
    """The game of a record before each event, and after the last.

    Returns:
        ``(events + 1,)`` of dtype `STATE`; they share no memory with the record.

    Raises:
        RecordError: when it is no record, or at the first event that is not due, of another
            player, or against the rules. What the events say besides (``legal``, ``state``) and
            the result are not compared: see `carolus_env.replay`.
    """
    check_record(record)
    game = start_of(record)
    seen = [game.tobytes()]
    for index, event in enumerate(record["events"]):
        if event["player"] != game["player"][0]:
            raise RecordError(f"event {index}: it is the turn of player {game['player'][0]}")
        try:
            if "roll" in event:
                chance.apply_roll(game, event["roll"])
            else:
                engine.legal_actions(game)  # refuses a game that waits for a roll
                engine.step(game, np.array([event["action"]]), roll=False)
        except (ValueError, TypeError, OverflowError) as error:
            raise RecordError(f"event {index}: {error}") from None
        seen.append(game.tobytes())
    return np.frombuffer(bytearray(b"".join(seen)), STATE)


# ------------------------------------------------------------------------------------ checking


def check_record(record: object) -> None:
    """Refuse what does not have the shape of a record.

    Keys that the format does not know are let pass at the top only (say, the players' names): in
    an event they could be a misspelt ``legal``, which nobody would compare. Whether the game can
    have gone that way is the question of `carolus_env.replay`.

    Raises:
        RecordError: naming the first thing wrong and the index of its event.
    """
    if not isinstance(record, dict):
        raise RecordError(f"a game record is an object, got {_short(record)}")
    form = _get(record, "format", str)
    if form != FORMAT:
        raise RecordError(f"format must be {FORMAT!r}, got {_short(form)}")
    version = _get(record, "version", int)
    if version != VERSION:
        raise RecordError(f"version must be {VERSION}, got {_short(version)}")
    _read_start(record)
    for index, event in enumerate(_get(record, "events", list)):
        _check_event(event, f"event {index}: ")
    if "result" not in record or record["result"] is not None:
        _check_result(_get(record, "result", dict))


def _read_start(record: Record) -> tuple[Rules, list[int], int]:
    try:
        rules = Rules.from_dict(_get(record, "rules", dict))
    except RecordError:
        raise
    except ValueError as error:
        raise RecordError(_cut(str(error))) from None
    except RecursionError:  # the text of the error was to show the value in full
        raise RecordError("rules: nested too deeply") from None
    setup = _get(record, "setup", dict)
    _only(setup, ("territories", "first_player"), "setup: ")
    territories = _numbers(setup, "territories", "setup: ")
    if sorted(territories) != [clan for clan in range(CLANS) for _ in range(PALADINS_LAID_OUT)]:
        raise RecordError(
            f"setup: territories must hold each clan 0 to {CLANS - 1} exactly "
            f"{PALADINS_LAID_OUT} times, got {_short(territories)}"
        )
    first_player: int = _get(setup, "first_player", int, "setup: ")
    if not 0 <= first_player < rules.players:
        raise RecordError(
            f"setup: first_player must be from 0 to {rules.players - 1}, got {_short(first_player)}"
        )
    return rules, territories, first_player


def _check_event(event: object, where: str) -> None:
    if not isinstance(event, dict) or ("roll" in event) == ("action" in event):
        raise RecordError(
            f"{where}an event is an object with either 'roll' or 'action', got {_short(event)}"
        )
    kind = "roll" if "roll" in event else "action"
    _only(event, _EVENT_KEYS[kind], where)
    _get(event, "player", int, where)
    if kind == "roll":
        _numbers(event, "roll", where)
        return
    _get(event, "action", int, where)
    if "legal" in event:
        _numbers(event, "legal", where)
    if "state" in event:
        _get(event, "state", dict, where)


def _check_result(result: dict[str, Any]) -> None:
    where = "result: "
    _only(result, _RESULT_KEYS, where)
    _get(result, "reason", str, where)
    for key in ("winners", "castles"):
        _numbers(result, key, where)
    for key in ("regions", "rounds"):
        _get(result, key, int, where)
    for value in _get(result, "returns", list, where):
        # math.isfinite cannot take every int
        if type(value) is not int and not (type(value) is float and math.isfinite(value)):
            raise RecordError(f"{where}returns must hold numbers, got {_short(value)}")


_KIND_NAMES: Final = {int: "a whole number", str: "a text", list: "a list", dict: "an object"}


def _get(data: dict[str, Any], key: str, kind: type, where: str = "") -> Any:
    if key not in data:
        raise RecordError(f"{where}{key} is missing")
    value = data[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise RecordError(f"{where}{key} must be {_KIND_NAMES[kind]}, got {_short(value)}")
    return value


def _numbers(data: dict[str, Any], key: str, where: str) -> list[int]:
    values: list[int] = _get(data, key, list, where)
    for index, value in enumerate(values):
        if type(value) is not int:
            raise RecordError(f"{where}{key}[{index}] must be a whole number, got {_short(value)}")
    return values


def _only(data: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in data:
        if key not in known:
            raise RecordError(f"{where}unknown key {_short(key)}, known are {', '.join(known)}")


def _short(value: object) -> str:
    """A stranger's value, cut to what fits in a message."""
    return _cut(reprlib.repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= 300 else text[:300] + " ..."


# ------------------------------------------------------------------------------------ writing


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write a file of records, one a line; compressed when the name ends in ``.gz``.

    The file appears only when it is complete: it is written beside ``path`` and renamed. After
    any error there is no new file, and one that was there is as before.

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
    """Yield line number (from 1) and record of each game in a file, plain or gzip.

    Blank lines are skipped. Of a file that was cut short, every complete game is read before the
    error is raised.

    Raises:
        RecordError: at the first line that is no record, with path, line and reason.
        OSError: when the file cannot be opened or read.
    """
    for line, entry in scan_records(path):
        if isinstance(entry, RecordError):
            raise entry
        yield line, entry


def scan_records(path: str | Path) -> Iterator[tuple[int, Record | RecordError]]:
    """`read_records` that goes on: what is no record is yielded as the error, not raised.

    After damaged gzip data or a line longer than `MAX_LINE` nothing more is read.
    """
    with Path(path).open("rb") as file:
        yield from scan_file(file, os.fspath(path))


def scan_file(
    file: BinaryIO, name: str, *, most: int | None = None
) -> Iterator[tuple[int, Record | RecordError]]:
    """`scan_records` of an open file; ``name`` is what errors call it.

    Args:
        most: bytes, unpacked, after which nothing more is read; None: there is no end to it.
    """
    content = _content(file, _is_gz(name))
    lines = _lines(content if most is None else _at_most(content, most), MAX_LINE)
    for number, (line, damage) in enumerate(lines, 1):
        record = None
        if line.strip():
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
        record: Record = json.loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = f"not JSON: {error}"
        if isinstance(error, json.JSONDecodeError):  # its own text counts lines, always 1 here
            reason = f"not JSON: {error.msg}, column {error.colno}"
        elif isinstance(error, UnicodeDecodeError):
            reason = f"not UTF-8: byte {error.start + 1} of the line"
        elif isinstance(error, RecursionError):
            reason = "nested too deeply"
        if not line.endswith(b"\n"):
            reason += " (the last line has no end: the file may be cut short)"
        raise RecordError(_cut(reason)) from None
    check_record(record)
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


class _DamageError(Exception):
    """The rest of a file cannot be read."""


def _lines(chunks: Iterator[bytes], longest: int) -> Iterator[tuple[bytes, str | None]]:
    """Whole lines, each with None; at damage what there is of the last one, with the reason."""
    line = bytearray()
    try:
        for chunk in chunks:
            for part in io.BytesIO(chunk):
                line += part
                if len(line) > longest:
                    line.clear()
                    raise _DamageError(
                        f"the line is longer than {longest:,} bytes: reading ends here"
                    )
                if part.endswith(b"\n"):
                    yield bytes(line), None
                    line.clear()
    except _DamageError as damage:
        yield bytes(line), str(damage)
        return
    if line:
        yield bytes(line), None


def _at_most(chunks: Iterator[bytes], most: int) -> Iterator[bytes]:
    left = most
    for chunk in chunks:
        yield chunk[:left]
        left -= len(chunk)
        if left < 0:
            raise _DamageError(f"there are more than {most:,} bytes: reading ends here")


_CHUNK: Final = 2**16


def _content(file: BinaryIO, gz: bool) -> Iterator[bytes]:
    """A file's bytes, unpacked where it is gzip by its first bytes or by its name (``gz``).

    `gzip.open` would drop up to a buffer of whole lines before the place where the data ends.
    """
    data = file.read(_CHUNK)
    if not gz and not data.startswith(b"\x1f\x8b"):
        while data:
            yield data
            data = file.read(_CHUNK)
        return
    unzip = zlib.decompressobj(wbits=31)
    while data:
        if unzip.eof:  # gzip files may be joined end to end
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
    """What comes out before the damage: an error in one step hides all that the step gave."""
    content = bytearray()
    with contextlib.suppress(zlib.error):
        for byte in range(len(data)):
            content += unzip.decompress(data[byte : byte + 1])
    return bytes(content)
