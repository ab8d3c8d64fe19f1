"""Moves, rolls and whole games in text that reads like the game; docs/notation.md has the grammar.

    >>> move_text(state, 11)
    'E+2 A takes 4-6 forming 3-6'
    >>> read_move(state, "2 blue>7-9")
    [49, 49]

A region is named by its territories, first to last clockwise, so its name does not change when the
Emperor moves. What a decision brings about (a castle, control, the end) is written behind it; it
may be left out when typed, and is refused when it is not what would happen.
"""

from __future__ import annotations

import itertools
import operator
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env import chance, engine
from carolus_env.position_text import from_text, to_line
from carolus_env.rules import (
    ACTIONS,
    CLAN_NAMES,
    CROWN,
    CROWN_CHOICE,
    DESTINATIONS,
    DISC,
    FIRST_CROWN,
    FIRST_DISC,
    FIRST_MOVE,
    FIRST_PLACE,
    MOVE,
    NOBODY,
    OVER,
    PLACE,
    ROLL,
    TERRITORIES,
    action_text,
)
from carolus_env.state import STATE, States, as_states
from carolus_env.text import TEAM_LETTERS, situation
from carolus_env.validity import PositionError

FACE_NAMES: Final = (*CLAN_NAMES, "crown")
assert FACE_NAMES[CROWN] == "crown"


class NotationError(ValueError):
    """A text that is no move, or none that can be played now; it says what is expected."""


# ------------------------------------------------------------------------------------ writing


def region_text(state: np.void, region: int) -> str:
    """The territories of a region, counted clockwise from the Emperor's: ``7``, ``7-9``, ``14-0``.

    Raises:
        ValueError: for a region that the circle does not have.
    """
    count = int(state["regions"])
    if not 0 <= region < count:
        raise ValueError(f"region must be from 0 to {count - 1}, got {region!r}")
    i = (int(state["emperor"]) + region) % count
    first = int(state["region_first"][i])
    last = (int(state["region_first"][(i + 1) % count]) - 1) % TERRITORIES
    return str(first) if first == last else f"{first}-{last}"


def move_text(state: np.void, action: int, times: int = 1) -> str:
    """A decision of the player to move in game ``states[i]``, with what comes of it.

    Args:
        state: one game; it stays as it is.
        action: a legal action.
        times: so many paladins, or crowns, alike in a row.

    Raises:
        IllegalActionError: when the action is illegal, or cannot be played so often.
        ValueError: when nobody is to decide, or ``times`` is impossible.
    """
    action = operator.index(action)
    repeatable = FIRST_CROWN <= action < FIRST_MOVE or action >= FIRST_PLACE
    if times < 1 or (times > 1 and not repeatable):
        what = f" ({action_text(action)})" if 0 <= action < ACTIONS else ""
        raise ValueError(f"action {action}{what} cannot be played {times} times in a row")
    game = _one(state)
    for _ in range(times):
        engine.step(game, np.array([action]), roll=False)
    number = f"{times} " if times > 1 else ""
    return number + _decision(state, action) + _outcome(state, action, game[0])


def roll_text(faces: Iterable[int]) -> str:
    """What dice show, e.g. ``rolls red blue crown``; their order is kept.

    Raises:
        ValueError: for a face that no die has.
    """
    names = []
    for face in faces:
        if not 0 <= face <= CROWN:
            raise ValueError(f"a die shows 0 to {CROWN}, got {face!r}")
        names.append(FACE_NAMES[face])
    return " ".join(["rolls", *names])


def legal_text(state: np.void) -> str:
    """All that may be decided now, in short: ``red, blue > court, 7-9, 10``; else what is due."""
    actions = engine.legal_actions(state).tolist()
    if not actions:
        return situation(state)
    if actions[0] < FIRST_PLACE:
        return ", ".join(_decision(state, action) for action in actions)
    clans = sorted({(action - FIRST_PLACE) // DESTINATIONS for action in actions})
    targets = [region_text(state, k) for k in range(int(state["regions"]))]
    return f"{', '.join(CLAN_NAMES[clan] for clan in clans)} > {', '.join(['court', *targets])}"


def _one(state: np.void) -> States:
    """The game as a batch of one, to play on."""
    return np.array(state, STATE).reshape(1)


def _decision(state: np.void, action: int) -> str:
    if action >= FIRST_PLACE:
        clan, destination = divmod(action - FIRST_PLACE, DESTINATIONS)
        where = "court" if destination == 0 else region_text(state, destination - 1)
        return f"{CLAN_NAMES[clan]}>{where}"
    if action >= FIRST_MOVE:
        return f"E+{action - FIRST_MOVE + 1}"
    if action >= FIRST_CROWN:
        return f"crown={CLAN_NAMES[action - FIRST_CROWN]}"
    return f"d{action - FIRST_DISC + 1}"


def _outcome(before: np.void, action: int, after: np.void) -> str:
    """What an action (once or several times) has brought about, as it is written behind it."""
    said = ""
    if action >= FIRST_PLACE:
        clan, player = (action - FIRST_PLACE) // DESTINATIONS, before["player"]
        if after["control"][clan] == player != before["control"][clan]:
            said = "!"
    elif action >= FIRST_MOVE:
        steps = action - FIRST_MOVE + 1
        region = steps % int(before["regions"])
        at = (int(before["emperor"]) + region) % int(before["regions"])
        name = region_text(before, region)
        owner, heir = before["region_owner"][at], after["region_owner"][after["emperor"]]
        if heir == owner:
            said = f" at {name}"
        else:
            verb = "builds" if owner == NOBODY else "takes"
            said = f" {TEAM_LETTERS[heir]} {verb} {name}"
            if after["regions"] < before["regions"]:
                said += f" forming {region_text(after, 0)}"
    return said + ("#" if after["phase"] == OVER else "")


# ------------------------------------------------------------------------------------ reading

_TOKEN = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")
_TIMES = r"(?:(?P<times>[0-9]{1,2}) )?"
_REST = r"(?: (?P<rest>.*))?"


class _Form(NamedTuple):
    """How the decisions of a phase are written: the tokens with one space between them."""

    pattern: re.Pattern[str]
    expected: str


_FORMS: Final = {
    DISC: _Form(re.compile(rf"d (?P<number>[0-9]{{1,2}}){_REST}"), "a disc such as 'd3'"),
    CROWN_CHOICE: _Form(
        re.compile(rf"{_TIMES}crown = (?P<clan>[a-z]+){_REST}"), "a crown such as 'crown=red'"
    ),
    PLACE: _Form(
        re.compile(
            rf"{_TIMES}(?P<clan>[a-z]+) > (?P<where>court|[0-9]{{1,2}}(?: - [0-9]{{1,2}})?){_REST}"
        ),
        "a paladin such as 'red>court', 'blue>7' or '2 blue>7-9'",
    ),
    MOVE: _Form(re.compile(rf"e \+ (?P<number>[0-9]{{1,2}}){_REST}"), "a move such as 'E+2'"),
}


def read_move(state: np.void, text: str) -> list[int]:
    """The actions that a text stands for: one, or several alike for ``2 blue>7-9``.

    Case and spaces do not matter; a clan may be cut short (``b>7``), and any one territory of a
    region names it. What comes of the move may be left out, but not half of it.

    Args:
        state: the game in which it is to be played; it stays as it is.
        text: a move of the player to move.

    Raises:
        NotationError: with what was expected and what is legal.
    """
    phase = int(state["phase"])
    if phase not in _FORMS:
        raise _refused(text, "nobody is to decide now")
    form = _FORMS[phase]
    found = form.pattern.fullmatch(_plain(text))
    if not found:
        raise _refused(text, f"expected {form.expected}; {_legal(state)}")
    said = found.groupdict()
    times = int(said.get("times") or 1)
    if phase in (DISC, MOVE):
        number = int(said["number"])
        action = -1 if number == 0 else (FIRST_DISC if phase == DISC else FIRST_MOVE) + number - 1
    else:
        clan = _named(CLAN_NAMES, said["clan"])
        if clan is None:
            names = ", ".join(CLAN_NAMES)
            raise _refused(text, f"expected one of {names}, got {said['clan']!r}")
        action = FIRST_CROWN + clan
        if phase == PLACE:
            action = FIRST_PLACE + DESTINATIONS * clan + _destination(state, said["where"], text)
    if action not in engine.legal_actions(state):
        raise _refused(text, f"player {state['player']} may not play that now; {_legal(state)}")
    most = _most(state, action)
    if not 1 <= times <= most:
        raise _refused(text, f"expected a number from 1 to {most}, got {times}")
    whole = move_text(state, action, times)
    rest = whole.removeprefix(f"{times} " if times > 1 else "")
    rest = rest.removeprefix(_decision(state, action))
    if said["rest"] and said["rest"] != _plain(rest):
        raise _refused(text, f"what would happen is {whole!r}")
    return [action] * times


def read_moves(state: np.void, text: str) -> list[int]:
    """The actions of several moves, divided by commas: ``r>court, 2 blue>7-9, E+2``.

    Raises:
        NotationError: for the first that cannot be read or played after those before it.
    """
    game, actions = _one(state), []
    for move in text.split(","):
        for action in read_move(game[0], move):
            engine.step(game, np.array([action]), roll=False)
            actions.append(action)
    return actions


def read_roll(text: str) -> list[int]:
    """The faces of ``rolls red blue crown``, which may be cut short: ``rolls r b c``.

    Raises:
        NotationError: when it is none.
    """
    word, *names = _plain(text).split(" ")
    if word != "rolls" or not names:
        raise _refused(text, "expected a roll such as 'rolls red blue crown'")
    faces = [_named(FACE_NAMES, name) for name in names]
    if None in faces:
        wrong = names[faces.index(None)]
        raise _refused(text, f"a die shows {', '.join(FACE_NAMES)}, got {wrong!r}")
    return [face for face in faces if face is not None]


def _plain(text: str) -> str:
    """The words, numbers and signs of a text in lower case, one space between them."""
    return " ".join(_TOKEN.findall(text.lower()))


def _refused(text: str, why: str) -> NotationError:
    return NotationError(f"move {reprlib.repr(text.strip())}: {why}")


def _legal(state: np.void) -> str:
    return f"legal now: {legal_text(state)}"


def _named(names: Sequence[str], word: str) -> int | None:
    """Which of ``names`` is meant; no two begin with the same letter."""
    return next((k for k, name in enumerate(names) if name.startswith(word)), None)


def _destination(state: np.void, where: str, text: str) -> int:
    """0 for the court, or 1 and the region, counted from the Emperor's."""
    if where == "court":
        return 0
    names = [region_text(state, k) for k in range(int(state["regions"]))]
    where = where.replace(" ", "")
    if where in names:
        return 1 + names.index(where)
    if "-" not in where and int(where) < TERRITORIES:
        for k, name in enumerate(names):
            first, last = map(int, (name.split("-") * 2)[:2])
            if (int(where) - first) % TERRITORIES <= (last - first) % TERRITORIES:
                return 1 + k
    raise _refused(text, f"there is no region {where}; there are {', '.join(names)}")


def _most(state: np.void, action: int) -> int:
    """How often a legal action can be played in a row."""
    game, times, player = _one(state), 0, int(state["player"])
    repeatable = state["phase"] in (PLACE, CROWN_CHOICE)
    while times == 0 or (repeatable and _can(game, action, player)):
        engine.step(game, np.array([action]), roll=False)
        times += 1
    return times


def _can(game: States, action: int, player: int) -> bool:
    return bool(game["player"][0] == player and engine.are_legal(game, np.array([action]))[0])


# ------------------------------------------------------------------------------------ games


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
    for told, _ in _told(start, events):
        yield told


def tell_turns(start: States, events: Iterable[Mapping[str, Any]]) -> Iterator[Told]:
    """What `tell` says, a text for each player's turn; several alike become ``2 blue>7-9``.

    A turn is a disc, the paladins, Emperor and dice of one player, or a roll of the set-up.
    """
    turns = itertools.groupby(_numbered(_told(start, events)), lambda pair: pair[0])
    for _, turn in turns:
        done = [entry for _, entry in turn]
        first, texts = done[0][0], []
        for _, run in itertools.groupby(done, lambda entry: (_alike(*entry), entry[1][1])):
            alike = list(run)
            told, (before, action) = alike[0]
            once = len(alike) == 1
            texts.append(told.text if once else move_text(before, action, len(alike)))
        yield first._replace(text=", ".join(texts))


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
    faces = read_roll(text)
    if len(faces) != state["dice_due"]:
        raise _refused(text, f"expected {state['dice_due']} dice, got {len(faces)}")
    return [{"roll": faces}]


_Entry = tuple[Told, tuple[np.void, int]]
"""An event in text, with the game before it and the action, or -1."""


def _told(start: States, events: Iterable[Mapping[str, Any]]) -> Iterator[_Entry]:
    game = as_states(start).copy()
    if len(game) != 1:
        raise ValueError(f"start must be a batch of one game, got {len(game)}")
    for index, event in enumerate(events):
        before = game[0].copy()
        _carry_out(game, event, index)
        action = event.get("action", -1)
        if action >= 0:
            text = _decision(before, action) + _outcome(before, action, game[0])
        else:
            text = roll_text(event["roll"])
        yield Told(index, int(before["round"]), int(before["player"]), text), (before, action)


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


def _numbered(entries: Iterable[_Entry]) -> Iterator[tuple[int, _Entry]]:
    """Each event with the number of the turn that it is part of."""
    turn, last = 0, None
    for told, (before, action) in entries:
        now = told.round, told.seat, before["phase"] == DISC
        turn += now != last
        last = now
        yield turn, (told, (before, action))


def _alike(told: Told, made: tuple[np.void, int]) -> int:
    """The same for events that are written as one: paladins, and crowns; else its own."""
    before, _ = made
    return -1 if before["phase"] in (PLACE, CROWN_CHOICE) else told.event
