"""Whole games in text: a line for each player's turn, read back event by event."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from carolus_env.engine.rules import CROWN_CHOICE, DISC, OVER, PLACE, ROLL
from carolus_env.engine.state import States, as_states, copy, single
from carolus_env.notation.moves import NotationError, event_text, read_move, read_roll, run_text
from carolus_env.notation.positions import from_text, to_line
from carolus_env.notation.vocabulary import TEAM_LETTERS, situation
from carolus_env.records import Played, PositionError, play_event, play_events
from carolus_env.system.untrusted import shown


class TurnText(NamedTuple):
    """Events of a game by one player, in text.

    Attributes:
        event: index of the (first) event.
        round: 0 in the set-up.
        seat: the player's seat.
        text: its `move_text` or `roll_text`; several are separated by commas.
    """

    event: int
    round: int
    seat: int
    text: str


def turn_texts(start: States, events: Iterable[Mapping[str, Any]]) -> Iterator[TurnText]:
    """Yield a text for each player's turn; equal moves become ``2 blue>7-9``.

    A turn is a disc, the paladins, Emperor and dice of one player, or a roll of the set-up.

    Args:
        start: ``(1,)`` the game before its first event: of a record ``records.start_of(it)``, or
            any position. It does not change.
        events: events of a record: ``{"roll": faces}`` or ``{"action": number}``.

    Raises:
        ValueError, TypeError: for an event that cannot be played; see `records.play_events`.
    """
    for turn in _turns(start, events):
        yield _as_text(turn)


def game_text(start: States, events: Iterable[Mapping[str, Any]]) -> str:
    """Return a whole game: start, a line for each player's turn, and what is due or the ending.

    Raises:
        ValueError, TypeError: see `turn_texts`.
    """
    end = as_states(start, "start")
    lines, current = [to_line(end[0])], None
    for turn in _turns(start, events):
        text = _as_text(turn)
        if text.round != current:
            current = text.round
            lines.append(f"round {current}")
        end = turn[-1].after
        team = TEAM_LETTERS[int(end["team"][0, text.seat])]
        lines.append(f"  {text.seat} {team}  {text.text}")
    return "\n".join([*lines, situation(end[0])]) + "\n"


_TURN = re.compile(r"(?P<seat>[0-3]) (?P<team>[A-C]) (?P<moves>.+)", re.IGNORECASE)


def read_game(text: str) -> tuple[States, list[dict[str, Any]]]:
    """Parse the start and the events of a game that `game_text` wrote, or that a person typed.

    Round headings and the last line may be missing; a comment runs from ``;`` to the end of a line.

    Returns:
        ``(1,)`` the game before its first event, and the events as records have them.

    Raises:
        PositionError: when the first line is not a position.
        NotationError: for a line that cannot be read or played, with its number.
    """
    lines = [
        (number, " ".join(line.partition(";")[0].split()))
        for number, line in enumerate(text.splitlines(), 1)
    ]
    lines = [(number, line) for number, line in lines if line]
    if not lines:
        raise PositionError("position: the text of a game begins with one, but it is empty")
    start = from_text(lines[0][1])
    game, events = copy(start), list[dict[str, Any]]()
    for number, line in lines[1:]:
        try:
            events += _read_line(game, line)
        except NotationError as error:
            raise NotationError(f"line {number}: {error}") from None
    return start, events


def _read_line(game: States, line: str) -> Iterator[dict[str, Any]]:
    """Play the moves of a line and yield their events."""
    state = game[0]
    result = _TURN.fullmatch(line)
    if not result:
        heading = re.fullmatch(r"round ([0-9]{1,10})", line, re.IGNORECASE)
        if (heading and int(heading[1]) == state["round"]) or line == situation(state):
            return
        raise NotationError(
            f"expected a turn such as '0 A  red>court, E+2', 'round {state['round']}' or "
            f"{situation(state)!r}, got {shown(line)}"
        )
    for move in result["moves"].split(","):
        seat = int(state["player"])
        team = TEAM_LETTERS[int(state["team"][seat])]
        if state["phase"] == OVER or result["seat"] + result["team"].upper() != f"{seat}{team}":
            raise NotationError(
                f"move {shown(move.strip())} of player {result['seat']} {result['team']}, "
                f"but it is {situation(state)}"
            )
        for event in _read_event(state, move):
            play_event(game, event)
            yield {**event, "player": seat}


def _read_event(state: np.void, text: str) -> list[dict[str, Any]]:
    if state["phase"] != ROLL:
        return [{"action": action} for action in read_move(state, text)]
    return [{"roll": read_roll(text, int(state["dice_due"]))}]


def _turns(start: States, events: Iterable[Mapping[str, Any]]) -> Iterator[list[Played]]:
    for _, turn in itertools.groupby(play_events(start, events), _turn_of):
        yield list(turn)


def turn_text(state: np.void, actions: Iterable[int]) -> str:
    """Return the text of a player's actions in a row: ``2 red>court!, E+2 A takes 4-6``.

    Raises:
        ValueError: when they cannot be played one after the other.
    """
    return _turn_text(list(play_events(single(state), [{"action": a} for a in actions])))


def _turn_text(turn: list[Played]) -> str:
    return ", ".join(_run(list(run)) for _, run in itertools.groupby(turn, _run_of))


def _run(alike: list[Played]) -> str:
    """Return the text of one event, or of several equal ones in a row."""
    first, last = alike[0], alike[-1].after[0]
    if len(alike) == 1:
        return event_text(first.before[0], first.event, last)
    return run_text(first.before[0], first.event["action"], last, len(alike))


def _as_text(turn: list[Played]) -> TurnText:
    before = turn[0].before[0]
    return TurnText(turn[0].number, int(before["round"]), int(before["player"]), _turn_text(turn))


def _turn_of(played: Played) -> tuple[int, ...]:
    """Return the same for the events of a turn; a disc is a turn by itself."""
    before = played.before[0]
    return int(before["round"]), int(before["player"]), int(before["phase"] == DISC)


def _run_of(played: Played) -> tuple[int, int]:
    """Return a key shared by the events that are written as one: equal paladins or crowns."""
    repeatable = played.before["phase"][0] in (PLACE, CROWN_CHOICE)
    return (played.event["action"], -1) if repeatable else (-1, played.number)
