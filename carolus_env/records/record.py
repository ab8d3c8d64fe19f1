"""Game records: written, read, checked, made from games, played, and compared with the engine.

A record holds every chance result and every decision of a game as JSON, so it replays without a
random generator, on any implementation of the rules (docs/formats.md has the format). Records are
untrusted data (`carolus_env.system.untrusted`): they are checked before anything is played.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine import chance, rules
from carolus_env.engine.rules import Rules
from carolus_env.engine.state import STATE, States, single
from carolus_env.records import position
from carolus_env.system import files, options, untrusted
from carolus_env.system.untrusted import DataError, get, integer, integers, only, shown

FORMAT: Final = "carolus-record"
VERSION: Final = 1
LONGEST_NAME: Final = 40
"""Maximum length of a seat's name."""
MAX_LINE: Final = 64 * 2**20
"""Bytes of the longest line that is read or written; a game of 65,535 rounds takes a third."""

Record = dict[str, Any]
"""A game record: the object that a line of JSON holds (docs/formats.md)."""


class RecordError(ValueError):
    """A file or an object that is not a game record."""

    def __init__(self, reason: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(reason if path is None else f"{path}, line {line}: {reason}")
        self.reason = reason  # what is wrong, and where in the record
        self.path, self.line = path, line  # the file, and the line from 1; None without a file


# ------------------------------------------------------------------------------------ checking


def check_record(record: object) -> Record:
    """Return what has the shape of a record, and refuse all else with a `RecordError`.

    Unknown keys are accepted at the top only (the players' names, say): in an event one could be
    a misspelt ``legal``, which would then not be compared. Whether the rules allow the game is
    for `carolus_env.records.replay` to say.
    """
    try:
        data: Record = untrusted.check(record, dict, "a game record")
        untrusted.expect(data, format=FORMAT, version=VERSION)
        read_setup(data)
        for index, event in enumerate(get(data, "events", list)):
            try:
                _check_event(event)
            except DataError as error:
                raise DataError(f"event {index}: {error}") from None
        if "result" not in data or data["result"] is not None:
            _check_result(get(data, "result", dict))
        return data
    except DataError as error:
        raise RecordError(str(error)) from None


def read_setup(record: Record) -> tuple[Rules, list[int], int]:
    """Return the rules, the clans on the territories and the first player of a record."""
    try:
        kind, setup = position.read_rules(get(record, "rules", dict)), get(record, "setup", dict)
        only(setup, ("territories", "first_player"), "setup")
        territories = integers(setup, "territories", "setup")
        if sorted(territories) != sorted([*range(rules.CLANS)] * rules.PALADINS_LAID_OUT):
            raise DataError(
                f"setup.territories must hold each clan 0 to {rules.CLANS - 1} exactly "
                f"{rules.PALADINS_LAID_OUT} times, got {shown(territories)}"
            )
        return kind, territories, integer(setup, "first_player", 0, kind.players - 1, "setup")
    except DataError as error:
        raise RecordError(str(error)) from None


def _check_event(event: object) -> None:
    if not isinstance(event, dict) or ("roll" in event) == ("action" in event):
        raise DataError(f"an event is an object with either 'roll' or 'action', got {shown(event)}")
    get(event, "player", int)
    if "roll" in event:
        only(event, ("roll", "player"))
        integers(event, "roll")
        return
    only(event, ("action", "player", "legal", "state"))
    get(event, "action", int)
    if "legal" in event:
        integers(event, "legal")
    if "state" in event:
        get(event, "state", dict)


def _check_result(result: Record) -> None:
    only(result, ("reason", "winners", "castles", "regions", "rounds", "returns"), "result")
    get(result, "reason", str, "result")
    for key in ("winners", "castles"):
        integers(result, key, "result")
    for key in ("regions", "rounds"):
        get(result, key, int, "result")
    for value in get(result, "returns", list, "result"):
        if not untrusted.is_a(value, float):
            raise DataError(f"result.returns must hold numbers, got {shown(value)}")


# ------------------------------------------------------------------------------------ files


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write a file of records, one a line; compressed when the name ends in ``.gz``.

    ``-`` is the standard output. What `read_records` would not read back is a `RecordError`; after
    any error a file that was already there is unchanged.
    """
    with files.replacing(path) as file:
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

    Blank lines are skipped; ``-`` is the standard input. The first line that is not a record is a
    `RecordError` with path, line and reason, after the games before it, as in a file cut short.
    """
    for line, entry in scan_records(path):
        if isinstance(entry, RecordError):
            raise entry
        yield line, entry


def scan_records(path: str | Path) -> Iterator[tuple[int, Record | RecordError]]:
    """Yield `read_records` that continues after errors, which it yields instead of raising.

    Reading ends at damaged gzip data and at a line longer than `MAX_LINE`.
    """
    with files.reading(path) as file:
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
        return check_record(untrusted.parse_json(line))
    except RecordError as error:
        return RecordError(error.reason, name, number)
    except DataError as error:
        cut_off = not line.endswith(b"\n")
        end = " (the last line has no end: the file may be cut short)" if cut_off else ""
        return RecordError(f"{error}{end}", name, number)


# ------------------------------------------------------------------------------------ making


def make_record(
    start: States,
    actions: Iterable[int],
    *,
    legal: bool = False,
    state: bool = False,
    dice: npt.NDArray[np.uint64] | None = None,
) -> Record:
    """Make the record of the game that ``actions`` lead to from ``start``, a JSON-ready dict.

    The dice come from the generator in ``start``, so they are those of the game that was played.
    Rolls due after the last action are part of the record, as `engine.step` rolls them too. A
    forfeit is neither an event nor a result: its ``result`` is None.

    Args:
        start: one game, as ``engine.new_games(..., roll=False)`` gives it.
        legal, state: note the legal actions, and the state, before each action.
        dice: ``(players,)`` uint64, the generators of a game in which each seat rolled with a
            separate one (`kernels.turns.roll_dealt`). None: all rolled with that in ``start``.

    Raises:
        ValueError: when ``start`` is no such game, or an action is illegal (`IllegalActionError`)
            or comes after the end; a note names its index in ``actions``.
    """
    game = single(start, "start")
    if not position.are_set_ups(game)[0]:
        phase = rules.PHASE_NAMES[game["phase"][0]]
        raise ValueError(
            "start must be a game before its first roll, as new_games(..., roll=False) gives it; "
            f"this one is in round {game['round'][0]}, phase {phase}"
        )
    first_player = int(game["order"][0, 0])
    territories = game["region_paladins"][0, :, : rules.TERRITORIES].argmax(axis=0).tolist()
    dice = (game["generator"] if dice is None else dice).copy()
    events = _rolled(game, dice)
    options.instance("actions", actions, Iterable, "action numbers")
    for index, action in enumerate(actions):
        number = options.integer(f"actions[{index}]", action)
        event: dict[str, Any] = {"action": number, "player": int(game["player"][0])}
        if legal:
            event["legal"] = engine.legal_actions(game).tolist()
        if state:
            event["state"] = state_of(game)
        try:
            play_event(game, event)
        except (ValueError, TypeError) as error:
            error.add_note(f"It is actions[{index}] of the record to be made.")
            raise
        events += [event, *_rolled(game, dice)]
    return {
        "format": FORMAT,
        "version": VERSION,
        "rules": engine.rules_of(game[0]).to_dict(),
        "setup": {"territories": territories, "first_player": first_player},
        "events": events,
        "result": result_of(game),
    }


def _rolled(game: States, dice: npt.NDArray[np.uint64]) -> list[dict[str, Any]]:
    """Play the rolls that are due by the generators of the seats, or of all, and return events."""
    events: list[dict[str, Any]] = []
    while chance.roll_due(game)[0]:
        player = int(game["player"][0])
        own = player if len(dice) > 1 else 0
        game["generator"] = dice[own]
        events.append({"roll": chance.draw_faces(game)[0].tolist(), "player": player})
        dice[own] = game["generator"][0]
        play_event(game, events[-1])
    return events


def state_of(game: np.void | States) -> dict[str, Any]:
    """Return the ``state`` object of a record's event: ``states[i]`` or a batch of one."""
    full = position.to_dict(single(game)[0])
    return {key: full[key] for key in position.STATE_KEYS}


def result_of(game: np.void | States) -> dict[str, Any] | None:
    """Return the ``result`` object of a record: None for an unfinished or forfeited game."""
    states = single(game)
    over = states[0]
    if over["phase"] != rules.OVER or over["reason"] == rules.BY_FORFEIT:
        return None
    return {
        **position.to_dict(over)["result"],
        "castles": over["castles"][: over["teams"]].tolist(),
        "regions": int(over["regions"]),
        "rounds": int(over["round"]),
        "returns": engine.returns(states)[0].tolist(),
    }


def start_of(record: Record, *, seed: int = 0) -> States:
    """Set up the game of a record before its first roll, a batch of one; its events are ignored.

    A record holds no generator: ``seed`` is that of the dice, should the game be played on. Rules
    or a set-up that are missing or impossible are a `RecordError`.
    """
    kind, territories, first_player = read_setup(record)
    return engine.new_games(
        kind, 1, seed=seed, territories=territories, first_player=first_player, roll=False
    )


def positions(record: Record) -> States:
    """Return the game of a record before each event, and after the last, ``(events + 1,)``.

    The events' ``legal`` and ``state`` and the result are not compared: see `replay`. What is no
    record, or has an event that is not due or against the rules, is a `RecordError`.
    """
    return play_events(start_of(check_record(record)), record["events"])


def names_of(record: Record) -> tuple[str, ...]:
    """Return a printable name for each seat: from ``names`` or ``agents``, else ``player 0``..."""
    players = Rules.from_dict(record["rules"]).players
    names: list[str] = [""] * players
    for key in ("agents", "names"):
        given: Any = record.get(key)
        if isinstance(given, list) and [*map(type, given)] == [str] * players:
            names = given
    shown_as = (
        "".join(c if c.isprintable() else "?" for c in name[:LONGEST_NAME]).strip()
        for name in names
    )
    return tuple(name or f"player {seat}" for seat, name in enumerate(shown_as))


# ------------------------------------------------------------------------------------ playing


def play_event(game: States, event: Mapping[str, Any]) -> None:
    """Play one event in place in a game, ``(1,)``: a given roll or a decision. No dice are rolled.

    An event is ``{"roll": faces}`` or ``{"action": number}``, with the ``player`` if it is known.
    One that is not due, of another player, or against the rules is a ValueError, an action that is
    no integer of 64 bits a TypeError. Then the game has not changed.
    """
    seat = int(game["player"][0])
    if event.get("player", seat) != seat:
        raise ValueError(f"it is the turn of player {seat}, not of player {event['player']}")
    if "roll" in event:
        chance.apply_roll(game, event["roll"])
    else:
        engine.step(game, np.array([event["action"]]), roll=False)


def play_events(start: States, events: Iterable[Mapping[str, Any]]) -> States:
    """Return a game before each of some events, and after the last, ``(events + 1,)``.

    The first that `play_event` refuses is a `RecordError`, which says its number.
    """
    game = single(start, "start")
    passed = bytearray(game.tobytes())
    for number, event in enumerate(events):
        try:
            play_event(game, event)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RecordError(f"event {number}: {error}") from None
        passed += game.tobytes()
    return np.frombuffer(passed, STATE)


# ------------------------------------------------------------------------------------ comparing


@dataclass(frozen=True, slots=True)
class Difference:
    """One comparison of a record with the engine that failed."""

    event: int  # index in the record's ``events``; for the result, the number of events
    what: str  # ``due``, ``player``, ``legal``, ``state``, ``action``, ``roll`` or ``result``
    expected: Any  # the record's value; of a state or a result, only the keys that differ
    got: Any  # the engine's, likewise; a key that the engine does not know is missing

    def __str__(self) -> str:
        lines = [f"event {self.event}: {self.what}"]
        if isinstance(self.expected, dict) and isinstance(self.got, dict):
            for key, value in self.expected.items():
                got = _text(self.got[key]) if key in self.got else "no such key"
                lines += [f"    {_text(key)}", f"        record: {_text(value)}"]
                lines += [f"        engine: {got}"]
        else:
            lines += [f"    record: {_text(self.expected)}", f"    engine: {_text(self.got)}"]
        return "\n".join(lines)


def _text(value: Any) -> str:
    """Return a value in full, unlike `untrusted.shown`: both sides are there to be compared."""
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except (RecursionError, ValueError):
        text = shown(value)
    return untrusted.cut(text, 10_000)  # no true one is longer


def replay(record: Record) -> list[Difference]:
    """Play a record's events on the engine and compare; empty when the engine agrees throughout.

    Each event must be the one that is due, by the player to move; legal actions, states and the
    result in the record must equal the engine's. An event that cannot be played is one
    difference, and the last: neither the events after it nor the result are compared.
    What is no record is a `RecordError`.
    """
    events, result = check_record(record)["events"], list[Difference]()
    game = start_of(record)
    for index, event in enumerate(events):
        result += [Difference(index, *each) for each in _compared(game, event)]
        if result and result[-1].event == index and result[-1].what in ("due", "roll", "action"):
            return result
        # A wrong player is a difference, but does not keep the event from being played.
        play_event(game, {**event, "player": int(game["player"][0])})
    expected, got = record["result"], result_of(game)
    if expected and got:
        wrong = [key for key in expected if expected[key] != got[key]]
        expected, got = ({key: of[key] for key in wrong} for of in (expected, got))
    if expected != got:
        result.append(Difference(len(events), "result", expected, got))
    return result


def _compared(game: States, event: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what differs: what, expected, got; last that which keeps it from being played."""
    phase, player = game["phase"][0], int(game["player"][0])
    legal: list[int] = engine.legal_actions(game).tolist()
    due = f"a roll of {game['dice_due'][0]} dice" if phase == rules.ROLL else "a decision"
    offered = f"a roll of {len(event['roll'])} dice" if "roll" in event else "a decision"
    if phase == rules.OVER or due != offered:
        due = "nothing: the game is over" if phase == rules.OVER else f"{due} by player {player}"
        yield "due", f"{offered} by player {event['player']}", due
        return
    if event["player"] != player:
        yield "player", event["player"], player
    if "legal" in event and event["legal"] != legal:
        yield "legal", event["legal"], legal
    if "state" in event:
        expected, got = event["state"], state_of(game)
        wrong = [k for k in expected if k not in got or not _same(expected[k], got[k])]
        if wrong:
            known = {key: got[key] for key in wrong if key in got}
            yield "state", {key: expected[key] for key in wrong}, known
    if "roll" in event and not all(0 <= face < rules.FACES for face in event["roll"]):
        yield "roll", event["roll"], f"a die shows 0 to {rules.FACES - 1}"
    if "action" in event and (action := event["action"]) not in legal:
        meaning = f" ({rules.action_text(action)})" if 0 <= action < rules.ACTIONS else ""
        yield "action", f"{action}{meaning} is played", f"illegal; legal are {legal}"


def _same(expected: Any, got: Any) -> bool:
    """Compare by an equality for which true is not 1, nor 1.0."""
    if type(expected) is not type(got):
        return False
    if isinstance(got, list):
        return len(expected) == len(got) and all(map(_same, expected, got))
    if isinstance(got, dict):
        return expected.keys() == got.keys() and all(_same(expected[key], got[key]) for key in got)
    return bool(expected == got)
