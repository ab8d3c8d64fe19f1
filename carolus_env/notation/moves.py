"""Moves and rolls in text.

    >>> move_text(state, 11)
    'E+2 A takes 4-6 forming 3-6'
    >>> read_move(state, "2 blue>7-9")
    [49, 49]

A region is named by its territories, first to last clockwise, so its name does not change when the
Emperor moves. What a decision brings about (a castle, control, the end) is written behind it; it
may be left out when typed, and is refused when it is not what would happen.
"""

from __future__ import annotations

import operator
import re
import reprlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import (
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
    TERRITORIES,
    action_text,
)
from carolus_env.engine.state import STATE, States
from carolus_env.notation.words import TEAM_LETTERS, situation, span_text

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
    return span_text(first, last)


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
    return number + decision_text(state, action) + outcome_text(state, action, game[0])


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
        return ", ".join(decision_text(state, action) for action in actions)
    clans = sorted({(action - FIRST_PLACE) // DESTINATIONS for action in actions})
    targets = [region_text(state, k) for k in range(int(state["regions"]))]
    return f"{', '.join(CLAN_NAMES[clan] for clan in clans)} > {', '.join(['court', *targets])}"


def _one(state: np.void) -> States:
    """The game as a batch of one, to play on."""
    return np.array(state, STATE).reshape(1)


def decision_text(state: np.void, action: int) -> str:
    """An action without what comes of it."""
    if action >= FIRST_PLACE:
        clan, destination = divmod(action - FIRST_PLACE, DESTINATIONS)
        where = "court" if destination == 0 else region_text(state, destination - 1)
        return f"{CLAN_NAMES[clan]}>{where}"
    if action >= FIRST_MOVE:
        return f"E+{action - FIRST_MOVE + 1}"
    if action >= FIRST_CROWN:
        return f"crown={CLAN_NAMES[action - FIRST_CROWN]}"
    return f"d{action - FIRST_DISC + 1}"


def outcome_text(before: np.void, action: int, after: np.void) -> str:
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
    rest = rest.removeprefix(decision_text(state, action))
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


def read_roll(text: str, dice: int | None = None) -> list[int]:
    """The faces of ``rolls red blue crown``, which may be cut short: ``rolls r b c``.

    Raises:
        NotationError: when it is none, or not of so many ``dice``.
    """
    word, *names = _plain(text).split(" ")
    if word != "rolls" or not names:
        raise _refused(text, "expected a roll such as 'rolls red blue crown'")
    faces = [_named(FACE_NAMES, name) for name in names]
    if None in faces:
        wrong = names[faces.index(None)]
        raise _refused(text, f"a die shows {', '.join(FACE_NAMES)}, got {wrong!r}")
    if dice is not None and len(faces) != dice:
        raise _refused(text, f"expected {dice} dice, got {len(faces)}")
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
