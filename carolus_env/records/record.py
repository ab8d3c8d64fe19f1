"""Game records: checked, made from games, and games set up and played from them.

A record holds every chance result and every decision of a game as JSON. It replays without a
random generator, on any implementation of the rules (docs/formats.md has the format). Records are
untrusted data (`carolus_env.system.untrusted` has the threat model), so their shape is checked key
by key before anything is played.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

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
from carolus_env.engine.state import STATE, States, as_states, single
from carolus_env.records import position
from carolus_env.records.validity import are_set_ups
from carolus_env.system import options
from carolus_env.system.untrusted import (
    DataError,
    check,
    expect,
    get,
    integer,
    integers,
    is_a,
    only,
    shown,
)

FORMAT: Final = "carolus-record"
VERSION: Final = 1

RESULT_KEYS: Final = ("reason", "winners", "castles", "regions", "rounds", "returns")
ROLL_KEYS: Final = ("roll", "player")
ACTION_KEYS: Final = ("action", "player", "legal", "state")

STATE_KEYS: Final = (
    "round", "phase", "player", "regions", "courts", "control", "reserves", "crowns", "supply",
    "discs_in_hand", "discs_played", "castles", "placements_left",
)  # fmt: skip
"""The keys of an event's ``state``: those of `position.to_dict` that all implementations share."""

LONGEST_NAME: Final = 40
"""Maximum length of a seat's name."""

Record = dict[str, Any]
"""A game record: the object that a line of JSON holds (docs/formats.md)."""


class RecordError(ValueError):
    """A file or an object that is not a game record.

    Attributes:
        reason: a description of what is wrong, and where in the record.
        path: the file; None for an object that was not read from one.
        line: line number, counted from 1; None likewise.
    """

    def __init__(self, reason: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(reason if path is None else f"{path}, line {line}: {reason}")
        self.reason, self.path, self.line = reason, path, line


class Setup(NamedTuple):
    """Start of a record's game."""

    rules: Rules
    territories: list[int]
    first_player: int


# ------------------------------------------------------------------------------------ checking


def check_record(record: object) -> None:
    """Refuse what does not have the shape of a record.

    Unknown keys are accepted at the top only (the players' names, say): in an event one could be
    a misspelt ``legal``, which would then not be compared. Whether the rules allow the game is
    for `carolus_env.records.replay` to say.

    Raises:
        RecordError: naming the first thing wrong and the index of its event.
    """
    try:
        data = check(record, dict, "a game record")
        expect(data, format=FORMAT, version=VERSION)
        _setup(data)
        for index, event in enumerate(get(data, "events", list)):
            try:
                _check_event(event)
            except DataError as error:
                raise DataError(f"event {index}: {error}") from None
        if "result" not in data or data["result"] is not None:
            _check_result(get(data, "result", dict))
    except DataError as error:
        raise RecordError(str(error)) from None


def read_setup(record: Record) -> Setup:
    """Read the rules and the set-up of a record; its events are ignored."""
    try:
        return _setup(record)
    except DataError as error:
        raise RecordError(str(error)) from None


def _setup(record: Record) -> Setup:
    rules = position.read_rules(get(record, "rules", dict))
    setup = get(record, "setup", dict)
    only(setup, ("territories", "first_player"), "setup")
    territories = integers(setup, "territories", "setup")
    if sorted(territories) != [clan for clan in range(CLANS) for _ in range(PALADINS_LAID_OUT)]:
        raise DataError(
            f"setup.territories must hold each clan 0 to {CLANS - 1} exactly "
            f"{PALADINS_LAID_OUT} times, got {shown(territories)}"
        )
    return Setup(rules, territories, integer(setup, "first_player", 0, rules.players - 1, "setup"))


def _check_event(event: object) -> None:
    if not isinstance(event, dict) or ("roll" in event) == ("action" in event):
        raise DataError(f"an event is an object with either 'roll' or 'action', got {shown(event)}")
    get(event, "player", int)
    if "roll" in event:
        only(event, ROLL_KEYS)
        integers(event, "roll")
        return
    only(event, ACTION_KEYS)
    get(event, "action", int)
    if "legal" in event:
        integers(event, "legal")
    if "state" in event:
        get(event, "state", dict)


def _check_result(result: Record) -> None:
    only(result, RESULT_KEYS, "result")
    get(result, "reason", str, "result")
    for key in ("winners", "castles"):
        integers(result, key, "result")
    for key in ("regions", "rounds"):
        get(result, key, int, "result")
    for value in get(result, "returns", list, "result"):
        if not is_a(value, float):
            raise DataError(f"result.returns must hold numbers, got {shown(value)}")


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
    for index, action in enumerate(
        options.instance("actions", actions, Iterable, "action numbers")
    ):
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
    `carolus_env.records.replay`, which can return the positions too.

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


# ------------------------------------------------------------------------------------ playing


class Played(NamedTuple):
    """An event that was played.

    Attributes:
        number: number of the event, from 0.
        event: the event given.
        before: ``(1,)`` the game that waited for it.
        after: ``(1,)`` the game just after it; the next roll is a separate event.
    """

    number: int
    event: Mapping[str, Any]
    before: States
    after: States


def play_event(game: States, event: Mapping[str, Any]) -> None:
    """Play one event in place: a given roll or a decision. No dice are rolled.

    Args:
        game: ``(1,)`` a game that waits for the event.
        event: ``{"roll": faces}`` or ``{"action": number}``, with the ``player`` if it is known.

    Raises:
        ValueError: when it is not due, of another player, or against the rules. The game has not
            changed.
        TypeError: when the action is not an integer of at most 64 bits; likewise.
    """
    seat = int(game["player"][0])
    if event.get("player", seat) != seat:
        raise ValueError(f"it is the turn of player {seat}, not of player {event['player']}")
    if "roll" in event:
        chance.apply_roll(game, event["roll"])
    else:
        engine.step(game, np.array([event["action"]]), roll=False)


def play_events(start: States, events: Iterable[Mapping[str, Any]]) -> Iterator[Played]:
    """Play events one after another, each on a copy of the game; ``start`` does not change.

    Raises:
        ValueError, TypeError: see `play_event`; a note names the event.
    """
    game = as_states(start, "start")
    if len(game) != 1:
        raise ValueError(f"start must be a batch of one game, got {len(game)}")
    for number, event in enumerate(events):
        before, game = game, engine.copy(game)
        try:
            play_event(game, event)
        except (ValueError, TypeError) as error:
            error.add_note(f"It is event {number} of the game.")
            raise
        yield Played(number, event, before, game)
