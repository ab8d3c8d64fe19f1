"""Records, of any implementation of the rules, compared with the engine.

Each event must be the one that is due, by the player to move. Legal actions, states and the result
in the record must equal the engine's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import ACTIONS, FACES, OVER, ROLL, action_text
from carolus_env.engine.state import STATE, States
from carolus_env.records.record import (
    Record,
    check_record,
    play_event,
    result_of,
    start_of,
    state_of,
)
from carolus_env.system.untrusted import cut, shown


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


_LONGEST: Final = 10_000  # characters of a value; no true one is longer


def _text(value: Any) -> str:
    """Return a value in full, unlike `untrusted.shown`: both sides are there to be compared."""
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except (RecursionError, ValueError):
        text = shown(value)
    return cut(text, _LONGEST)


def replay(record: Record) -> list[Difference]:
    """Play a record's events on the engine and compare; empty when the engine agrees throughout.

    An event that cannot be played is one difference, and the last: neither the events after it
    nor the result are compared.

    Raises:
        RecordError: when ``record`` is not a record.
    """
    return replayed(record)[0]


def replayed(record: Record) -> tuple[list[Difference], States]:
    """Return what `replay` does, and the positions before each event and after the last.

    Where an event cannot be played, the positions end with the one before it.
    """
    check_record(record)
    game, events = start_of(record), record["events"]
    result: list[Difference] = []
    passed = bytearray(game.tobytes())
    for index, event in enumerate(events):
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
        expected, got = record["result"], result_of(game)
        if expected != got:
            if expected and got:
                wrong = [key for key in expected if expected[key] != got[key]]
                expected, got = ({key: of[key] for key in wrong} for of in (expected, got))
            result.append(Difference(len(events), "result", expected, got))
    return result, np.frombuffer(passed, STATE)


def _obstacle(game: States, event: dict[str, Any]) -> tuple[str, Any, Any] | None:
    """Return the reason why an event cannot be played: what, expected, got."""
    phase, player = game["phase"][0], game["player"][0]
    due = f"a roll of {game['dice_due'][0]} dice" if phase == ROLL else "a decision"
    offered = f"a roll of {len(event['roll'])} dice" if "roll" in event else "a decision"
    if phase == OVER or due != offered:
        due = "nothing: the game is over" if phase == OVER else f"{due} by player {player}"
        return "due", f"{offered} by player {event['player']}", due
    if "roll" in event:
        if not all(0 <= face < FACES for face in event["roll"]):
            return "roll", event["roll"], f"a die shows 0 to {FACES - 1}"
        return None
    action, legal = event["action"], engine.legal_actions(game).tolist()
    if action not in legal:
        meaning = f" ({action_text(action)})" if 0 <= action < ACTIONS else ""
        return "action", f"{action}{meaning} is played", f"illegal; legal are {legal}"
    return None


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
