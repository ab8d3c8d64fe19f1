"""Game records made from games, and games set up and played from records.

A record holds every chance result and every decision of a game as JSON. It replays without a
random generator, on any implementation of the rules (docs/formats.md has the format).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.rules import BY_FORFEIT, OVER, PHASE_NAMES, TERRITORIES, Rules
from carolus_env.engine.state import STATE, States, as_states, single
from carolus_env.records import position
from carolus_env.records.check import (
    FORMAT,
    VERSION,
    Record,
    RecordError,
    check_record,
    read_setup,
)
from carolus_env.records.events import play_event, play_events
from carolus_env.records.validity import are_set_ups
from carolus_env.system.options import instance, integer

STATE_KEYS: Final = (
    "round", "phase", "player", "regions", "courts", "control", "reserves", "crowns", "supply",
    "discs_in_hand", "discs_played", "castles", "placements_left",
)  # fmt: skip
"""The keys of an event's ``state``: those of `position.to_dict` that all implementations share."""

LONGEST_NAME: Final = 40
"""Maximum length of a seat's name."""

# ------------------------------------------------------------------------------------ making


def make_record(
    start: States,
    actions: Iterable[int],
    *,
    legal: bool = False,
    state: bool = False,
    dice: npt.NDArray[np.uint64] | None = None,
) -> Record:
    """Make the record of the game that ``actions`` lead to from ``start``.

    The dice come from the generator in ``start``, so they are those of the game that was played.
    Rolls due after the last action are part of the record, as `engine.step` rolls them too.

    A forfeit is neither an event nor a result: the record of a forfeited game holds what was
    played before it, and its ``result`` is None.

    Args:
        start: a batch of one game, as ``engine.new_games(..., roll=False)`` gives it.
        actions: the action numbers played, in order.
        legal: note the legal actions before each action.
        state: note the state before each action.
        dice: ``(players,)`` uint64, for a game in which each seat rolled with a separate generator
            (`kernels.turns.roll_dealt`): the generators at the start. None: all rolled with
            the one in ``start``.

    Returns:
        A JSON-ready dict.

    Raises:
        ValueError: when ``start`` is not a game before its first roll, or an action comes after
            the end of the game.
        IllegalActionError: when an action is illegal. A note names its index in ``actions``.
        TypeError: when an action is not an integer.
    """
    record = _without_events(start)
    events: list[dict[str, Any]] = record["events"]
    game = start.copy()
    dice = None if dice is None else dice.copy()
    _roll_on(game, events, dice)
    for index, action in enumerate(instance("actions", actions, Iterable, "action numbers")):
        number = integer(f"actions[{index}]", action)
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
        events.append(event)
        _roll_on(game, events, dice)
    record["result"] = result_of(game)
    return record


def _without_events(start: States) -> Record:
    """Return the record that sets up ``start``, without events; refuses any other position."""
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
    if not are_set_ups(start)[0]:
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
        events.append({"roll": faces[0].tolist(), "player": player})
        play_event(game, events[-1])


def state_of(game: np.void | States) -> dict[str, Any]:
    """Return the ``state`` object of a record's event: ``states[i]`` or a batch of one."""
    full = position.to_dict(single(game)[0])
    return {key: full[key] for key in STATE_KEYS}


def result_of(game: np.void | States) -> dict[str, Any] | None:
    """Return the ``result`` object of a record: None for an unfinished or forfeited game."""
    states = single(game)
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


def start_of(record: Record, *, seed: int = 0) -> States:
    """Set up the game of a record, before its first roll.

    Args:
        record: a record; its events are ignored.
        seed: seed of the dice, should the game be played on: a record holds no generator.

    Returns:
        A batch of one game.

    Raises:
        RecordError: when its rules or its set-up are missing or impossible.
    """
    rules, territories, first_player = read_setup(record)
    return engine.new_games(
        rules, 1, seed=seed, territories=territories, first_player=first_player, roll=False
    )


def positions(record: Record) -> States:
    """Return the game of a record before each event, and after the last.

    The events' ``legal`` and ``state`` and the result are not compared: see
    `carolus_env.replay`, which can return the positions too.

    Returns:
        ``(events + 1,)`` of dtype `STATE`.

    Raises:
        RecordError: when it is not a record, or at the first event that is not due, of another
            player, or against the rules.
    """
    check_record(record)
    start = start_of(record)
    passed = bytearray(start.tobytes())
    try:
        for played in play_events(start, record["events"]):
            passed += played.after.tobytes()
    except (ValueError, TypeError) as error:
        raise RecordError(f"event {len(passed) // STATE.itemsize - 1}: {error}") from None
    return np.frombuffer(passed, STATE)


def names_of(record: Record) -> tuple[str, ...]:
    """Return a printable name for each seat: from ``names`` or ``agents``, else ``player 0``..."""
    players = Rules.from_dict(record["rules"]).players
    for key in ("names", "agents"):
        value: Any = record.get(key)
        if (
            isinstance(value, list)
            and len(value) == players
            and all(isinstance(name, str) for name in value)
        ):
            return tuple(printable(name) or f"player {seat}" for seat, name in enumerate(value))
    return tuple(f"player {seat}" for seat in range(players))


def printable(text: str) -> str:
    """Return untrusted text without control characters, as long as a name may be."""
    letters = [letter if letter.isprintable() else "?" for letter in text[:LONGEST_NAME]]
    return "".join(letters).strip()
