"""Whole games in text: a line for each player's turn, read back event by event."""

from __future__ import annotations

import itertools
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.rules import CROWN_CHOICE, DISC, OVER, PLACE, ROLL
from carolus_env.engine.state import States, as_states
from carolus_env.notation.moves import (
    NotationError,
    decision_text,
    move_text,
    outcome_text,
    read_move,
    read_roll,
    roll_text,
)
from carolus_env.notation.positions import from_text, to_line
from carolus_env.notation.words import TEAM_LETTERS, situation
from carolus_env.records.validity import PositionError


class Told(NamedTuple):
    """An event of a game, or several of one player, in text.

    Attributes:
        event: index of the (first) event.
        round: 0 in the set-up.
        seat: whose it is.
        text: see `move_text` and `roll_text`; several are divided by commas.
    """

    event: int
    round: int
    seat: int
    text: str


def tell(start: States, events: Iterable[Mapping[str, Any]]) -> Iterator[Told]:
    """Each event of a game in text.

    Args:
        start: ``(1,)`` the game before its first event: of a record ``record.start_of(it)``, or
            any position. It stays as it is.
        events: as records have them: ``{"roll": faces}`` or ``{"action": number}``.

    Raises:
        ValueError: for an event that is not due or cannot be, with its index.
    """
    for played in _played(start, events):
        yield _told(played, played.text)


def tell_turns(start: States, events: Iterable[Mapping[str, Any]]) -> Iterator[Told]:
    """What `tell` says, a text for each player's turn; several alike become ``2 blue>7-9``.

    A turn is a disc, the paladins, Emperor and dice of one player, or a roll of the set-up.
    """
    for _, turn in itertools.groupby(_played(start, events), _turn_of):
        texts, first = [], None
        for _, run in itertools.groupby(turn, _run_of):
            alike = list(run)
            one = alike[0]
            first = first or one
            again = len(alike) > 1
            texts.append(move_text(one.before, one.action, len(alike)) if again else one.text)
        assert first is not None
        yield _told(first, ", ".join(texts))


def game_text(start: States, events: Iterable[Mapping[str, Any]]) -> str:
    """A whole game, a line for each player's turn; the first line is where it starts.

    Raises:
        ValueError: see `tell`.
    """
    events = list(events)
    state, lines, begun = as_states(start)[0], [to_line(start[0])], None
    for told in tell_turns(start, events):
        if told.round != begun:
            begun = told.round
            lines.append(f"round {begun}")
        team = TEAM_LETTERS[int(state["team"][told.seat])]
        lines.append(f"  {told.seat} {team}  {told.text}")
    end = start.copy()
    for index, event in enumerate(events):
        _carry_out(end, event, index)
    return "\n".join([*lines, situation(end[0])]) + "\n"


_TURN = re.compile(r"(?P<seat>[0-3]) (?P<team>[A-C]) (?P<moves>.+)", re.IGNORECASE)


def read_game(text: str) -> tuple[States, list[dict[str, Any]]]:
    """The start and the events of a game that `game_text` wrote, or somebody typed.

    Headings, the last line and comments (from a ``;`` on) may be left out.

    Returns:
        ``(1,)`` the game before its first event, and the events as records have them.

    Raises:
        PositionError: when the first line is no position.
        NotationError: for a line that cannot be read or played, with its number.
    """
    lines = [
        (number, " ".join(line.partition(";")[0].split()))
        for number, line in enumerate(text.splitlines(), 1)
    ]
    lines = [(number, line) for number, line in lines if line]
    if not lines:
        raise PositionError("position: the text of a game begins with one, got nothing")
    start = from_text(lines[0][1])
    game, events = start.copy(), list[dict[str, Any]]()
    for number, line in lines[1:]:
        try:
            events += _read_line(game, line)
        except NotationError as error:
            raise NotationError(f"line {number}: {error}") from None
    return start, events


def _read_line(game: States, line: str) -> Iterator[dict[str, Any]]:
    """Play what a line says and yield the events."""
    state = game[0]
    found = _TURN.fullmatch(line)
    if not found:
        heading = re.fullmatch(r"round ([0-9]{1,10})", line, re.IGNORECASE)
        if (heading and int(heading[1]) == state["round"]) or line == situation(state):
            return
        raise NotationError(
            f"expected a turn such as '0 A  red>court, E+2', 'round {state['round']}' or "
            f"{situation(state)!r}, got {reprlib.repr(line)}"
        )
    for move in found["moves"].split(","):
        seat = int(state["player"])
        team = TEAM_LETTERS[int(state["team"][seat])]
        if state["phase"] == OVER or found["seat"] + found["team"].upper() != f"{seat}{team}":
            raise NotationError(
                f"move {reprlib.repr(move.strip())} of player {found['seat']} {found['team']}, "
                f"but it is {situation(state)}"
            )
        for event in _read_event(state, move):
            _carry_out(game, event, 0)
            yield {**event, "player": seat}


def _read_event(state: np.void, text: str) -> list[dict[str, Any]]:
    if state["phase"] != ROLL:
        return [{"action": action} for action in read_move(state, text)]
    return [{"roll": read_roll(text, int(state["dice_due"]))}]


class _Played(NamedTuple):
    """An event that was carried out: the game before it, and the action (of a roll -1)."""

    event: int
    before: np.void
    action: int
    text: str


def _played(start: States, events: Iterable[Mapping[str, Any]]) -> Iterator[_Played]:
    game = as_states(start).copy()
    if len(game) != 1:
        raise ValueError(f"start must be a batch of one game, got {len(game)}")
    for index, event in enumerate(events):
        before = game[0].copy()
        _carry_out(game, event, index)
        action = event.get("action", -1)
        if action < 0:
            text = roll_text(event["roll"])
        else:
            text = decision_text(before, action) + outcome_text(before, action, game[0])
        yield _Played(index, before, action, text)


def _told(played: _Played, text: str) -> Told:
    return Told(played.event, int(played.before["round"]), int(played.before["player"]), text)


def _turn_of(played: _Played) -> tuple[int, ...]:
    """The same for the events of a turn; a disc is one of its own."""
    before = played.before
    return int(before["round"]), int(before["player"]), int(before["phase"] == DISC)


def _run_of(played: _Played) -> tuple[int, int]:
    """The same for events of a turn that are written as one: paladins and crowns alike."""
    alike = played.before["phase"] in (PLACE, CROWN_CHOICE)
    return played.action, -1 if alike else played.event


def _carry_out(game: States, event: Mapping[str, Any], index: int) -> None:
    seat = int(game["player"][0])
    if event.get("player", seat) != seat:
        raise ValueError(f"event {index}: it is player {seat}'s, not player {event['player']}'s")
    try:
        if "roll" in event:
            chance.apply_roll(game, event["roll"])
        else:
            engine.step(game, np.array([event["action"]]), roll=False)
    except ValueError as error:
        error.add_note(f"It is event {index} of the game to be told.")
        raise
