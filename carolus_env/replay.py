"""Replay game records and compare them with the engine.

    python -m carolus_env.replay FILE...

Each event must be the one that is due, by the player to move. Legal actions, states and the result
in the record must equal the engine's. The record may come from any implementation of the rules.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import ACTIONS, FACES, OVER, ROLL, action_text
from carolus_env.engine.state import STATE, States
from carolus_env.notation import game_text
from carolus_env.records import (
    Record,
    RecordError,
    check_record,
    result_of,
    scan_records,
    start_of,
    state_of,
)
from carolus_env.records.record import play_event
from carolus_env.system.command import USER_ERROR, command, parse
from carolus_env.system.options import REQUIRED, option
from carolus_env.system.untrusted import cut, shown

# ------------------------------------------------------------------------------------ comparing


@dataclass(frozen=True, slots=True)
class Difference:
    """One comparison of a record with the engine that failed.

    Attributes:
        event: index in the record's ``events``; for the result, the number of events.
        what: kind of difference: ``due``, ``player``, ``legal``, ``state``, ``action``, ``roll``
            or ``result``.
        expected: the record's value; of a state or a result, only the keys that differ.
        got: the engine's value, likewise. A key that the engine does not know is missing.
    """

    event: int
    what: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return "\n".join([f"event {self.event}: {self.what}", *self._lines()])

    def _lines(self) -> Iterator[str]:
        if not (isinstance(self.expected, dict) and isinstance(self.got, dict)):
            yield from _both(self.expected, self.got, "    ")
            return
        for key in self.expected:
            yield f"    {_whole(key)}"
            yield from _both(self.expected[key], self.got.get(key, _UNKNOWN), "        ")


_UNKNOWN = object()
_LONGEST = 10_000  # characters of a value; no true one is longer


def _both(expected: Any, got: Any, indent: str) -> Iterator[str]:
    yield f"{indent}record: {_whole(expected)}"
    yield f"{indent}engine: {_whole(got)}"


def _whole(value: Any) -> str:
    """Return a value in full, unlike `untrusted.shown`: both sides are there to be compared."""
    if value is _UNKNOWN:
        return "no such key"
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except (RecursionError, ValueError):
        text = shown(value)
    return cut(text, _LONGEST)


def replay(record: Record) -> list[Difference]:
    """Play a record's events on the engine and compare; empty when the engine agrees throughout.

    See `replayed`, which returns the positions too.
    """
    return replayed(record)[0]


def replayed(record: Record) -> tuple[list[Difference], States]:
    """Play a record's events on the engine, once: the differences, and the positions passed.

    An event that cannot be played is one difference, and the last: neither the events after it
    nor the result are compared.

    Returns:
        The differences, and the positions: ``(events + 1,)`` of dtype `STATE`, before each event
        and after the last. Where an event cannot be played, they end with the one before it.

    Raises:
        RecordError: when ``record`` is not a record.
    """
    check_record(record)
    game = start_of(record)
    result: list[Difference] = []
    passed = bytearray(game.tobytes())
    for index, event in enumerate(record["events"]):
        obstacle = _obstacle(game, event)
        if obstacle is None or obstacle[0] != "due":  # else there is nothing to compare with
            result += [Difference(index, *rest) for rest in _compared(game, event)]
        if obstacle is not None:
            result.append(Difference(index, *obstacle))
            break
        # A wrong player is a difference, but does not keep the event from being played.
        play_event(game, {**event, "player": int(game["player"][0])})
        passed += game.tobytes()
    else:
        result += _compared_result(game, record, len(record["events"]))
    return result, np.frombuffer(passed, STATE)


def _obstacle(game: States, event: dict[str, Any]) -> tuple[str, Any, Any] | None:
    """Return the reason why an event cannot be played: what, expected, got."""
    due, offered = _due(game), "a decision"
    if "roll" in event:
        offered = f"a roll of {len(event['roll'])} dice"
    if due != offered:
        whose = "" if due == _NOTHING else f" by player {game['player'][0]}"
        return "due", f"{offered} by player {event['player']}", due + whose
    if "roll" in event:
        if not all(0 <= face < FACES for face in event["roll"]):
            return "roll", event["roll"], f"a die shows 0 to {FACES - 1}"
        return None
    action, legal = event["action"], engine.legal_actions(game).tolist()
    if action not in legal:
        meaning = f" ({action_text(action)})" if 0 <= action < ACTIONS else ""
        return "action", f"{action}{meaning} is played", f"illegal; legal are {legal}"
    return None


_NOTHING = "nothing: the game is over"


def _due(game: States) -> str:
    if game["phase"][0] == OVER:
        return _NOTHING
    if game["phase"][0] == ROLL:
        return f"a roll of {game['dice_due'][0]} dice"
    return "a decision"


def _compared(game: States, event: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the comparisons of an event that fail: what, expected, got."""
    player = int(game["player"][0])
    if event["player"] != player:
        yield "player", event["player"], player
    if "legal" in event and event["legal"] != (legal := engine.legal_actions(game).tolist()):
        yield "legal", event["legal"], legal
    if "state" in event:
        expected, got = event["state"], state_of(game)
        wrong = [k for k in expected if k not in got or not _same(expected[k], got[k])]
        if wrong:
            known = {key: got[key] for key in wrong if key in got}
            yield "state", {key: expected[key] for key in wrong}, known


def _same(expected: Any, got: Any) -> bool:
    """Compare by an equality for which true is not 1, nor 1.0."""
    if type(expected) is not type(got):
        return False
    if isinstance(got, list):
        return len(expected) == len(got) and all(map(_same, expected, got))
    if isinstance(got, dict):
        return expected.keys() == got.keys() and all(_same(expected[key], got[key]) for key in got)
    return bool(expected == got)


def _compared_result(game: States, record: Record, event: int) -> Iterator[Difference]:
    expected, got = record["result"], result_of(game)
    if expected == got:
        return
    if expected and got:
        wrong = [key for key in expected if expected[key] != got[key]]
        expected, got = ({key: of[key] for key in wrong} for of in (expected, got))
    yield Difference(event, "result", expected, got)


# ------------------------------------------------------------------------------------ command line


_ABOUT: Final = """Replay game records (JSON Lines, plain or gzip) and compare them with the engine:
player to move, dice, legal actions, states, results.

Exit code: 0: no difference; 1: a difference; 2: a file that is missing, cannot be read or is not a
record (the other games are still replayed)."""


@dataclass(frozen=True)
class ReplayOptions:
    """The options of the command."""

    files: tuple[str, ...] = option(
        REQUIRED, "a file of game records", kind=tuple, positional=True, metavar="FILE"
    )
    quiet: bool = option(False, "do not show the first difference")
    text: bool = option(False, "print the games in notation (docs/notation.md)")


@command("python -m carolus_env.replay", failed=USER_ERROR)
def main(arguments: Sequence[str], program: str) -> int:
    """Run the command; returns the exit code."""
    options = parse(ReplayOptions, arguments, program, _ABOUT).options
    return _replay_files(options.files, options.quiet, options.text)


def _replay_files(paths: Sequence[str], quiet: bool, text: bool) -> int:
    games = differences = problems = 0
    for path in paths:
        for line, entry in _entries(path):
            if isinstance(entry, str):
                print(entry, file=sys.stderr)
                problems += 1
                continue
            result = replay(entry)
            if text and not result:
                print(game_text(start_of(entry), entry["events"]))
            if result and not differences and not quiet:
                print(f"{path}, line {line}, {result[0]}")
            games += 1
            differences += len(result)
    print(f"{games} games, {differences} differences", flush=True)
    return 2 if problems else 1 if differences else 0


def _entries(path: str) -> Iterator[tuple[int, Record | str]]:
    """Yield each game of a file with its line, and each thing wrong with the file as text."""
    errors: list[tuple[int, RecordError]] | None = []  # those before the first record
    try:
        for line, entry in scan_records(path):
            if isinstance(entry, RecordError) and errors is not None:
                errors.append((line, entry))
                continue
            yield from ((number, str(error)) for number, error in errors or ())
            errors = None
            yield line, str(entry) if isinstance(entry, RecordError) else entry
    except OSError as error:
        yield 0, f"{path}: {error.strerror or error}"
        return
    if errors is not None:
        reason = "".join(f": line {line}: {error.reason}" for line, error in errors[:1])
        yield 0, f"{path}: holds no game record{reason}"


if __name__ == "__main__":
    sys.exit(main())
