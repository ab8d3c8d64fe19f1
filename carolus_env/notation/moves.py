"""Moves, rolls, turns and games in text; moves are read, too: ``E+2 A takes 4-6 forming 3-6``.

A region is named by its territories, first to last clockwise, so that its name stays the same when
the Emperor moves. The outcome of a decision (a castle, control, the end) is written after it. When
typed, the outcome may be left out, but a wrong one is refused.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from carolus_env import engine
from carolus_env.engine import rules
from carolus_env.engine.rules import CLAN_NAMES, NOBODY, TERRITORIES, action_parts
from carolus_env.engine.state import States, single, winning_teams
from carolus_env.notation.positions import TEAM_LETTERS, to_line
from carolus_env.records import play_events
from carolus_env.system.untrusted import shown

FACE_NAMES: Final = (*CLAN_NAMES, "crown")
assert FACE_NAMES[rules.CROWN] == "crown"
REPEATABLE: Final = (rules.PLACE, rules.CROWN_CHOICE)
"""The phases whose decisions can be played several times in a row."""


class NotationError(ValueError):
    """A text that is not a move, or not one that can be played now; it says what is expected."""


# ------------------------------------------------------------------------------------ writing


def region_text(state: np.void, region: int) -> str:
    """Return the territories of a region, counted from the Emperor's: ``7``, ``7-9``, ``14-0``."""
    count = int(state["regions"])
    if not 0 <= region < count:
        raise ValueError(f"region must be from 0 to {count - 1}, got {region!r}")
    i = (int(state["emperor"]) + region) % count
    first = int(state["region_first"][i])
    last = (int(state["region_first"][(i + 1) % count]) - 1) % TERRITORIES
    return str(first) if first == last else f"{first}-{last}"


def move_text(state: np.void, action: int, times: int = 1) -> str:
    """Return a decision of the player to move in game ``states[i]``, with its outcome.

    Crowns and paladins can be played several ``times`` in a row; the game does not change. What
    cannot be played, or not so often, is an `IllegalActionError` or another ValueError.
    """
    action = operator.index(action)
    if times != 1 and (times < 1 or action_parts(action).kind not in ("crown", "place")):
        raise ValueError(
            f"action {action} ({rules.action_text(action)}) cannot be played {times} times in a row"
        )
    game = single(state)
    if not 0 <= action < rules.ACTIONS:  # it may be longer than 64 bits
        raise engine.refusal(game, 0, action)
    for _ in range(times):
        engine.step(game, np.array([action]), roll=False)
    return event_text(state, {"action": action}, game[0], times)


def event_text(before: np.void, event: Mapping[str, Any], after: np.void, times: int = 1) -> str:
    """Return the text of a record's event between two games: see `move_text`, `roll_text`.

    ``after`` is the game after the last of several equal decisions.
    """
    if "roll" in event:
        return roll_text(event["roll"])
    action, number = event["action"], f"{times} " if times > 1 else ""
    return number + decision_text(before, action) + outcome_text(before, action, after)


def roll_text(faces: Sequence[int]) -> str:
    """Return the faces of a roll in their order, e.g. ``rolls red blue crown``."""
    for face in faces:
        if not 0 <= face <= rules.CROWN:
            raise ValueError(f"a die shows 0 to {rules.CROWN}, got {face!r}")
    return " ".join(["rolls", *(FACE_NAMES[face] for face in faces)])


def legal_text(state: np.void) -> str:
    """Return all legal actions, ``red, blue > court, 7-9, 10``; without any, what is due."""
    actions = engine.legal_actions(state).tolist()
    if not actions:
        return situation(state)
    if state["phase"] != rules.PLACE:
        return ", ".join(decision_text(state, action) for action in actions)
    clans = sorted({action_parts(action).clan for action in actions})
    targets = [region_text(state, k) for k in range(int(state["regions"]))]
    return f"{', '.join(CLAN_NAMES[clan] for clan in clans)} > {', '.join(['court', *targets])}"


def decision_text(state: np.void, action: int) -> str:
    """Return an action without its outcome."""
    kind, number, clan, destination = action_parts(action)
    if kind == "place":
        where = "court" if destination == 0 else region_text(state, destination - 1)
        return f"{CLAN_NAMES[clan]}>{where}"
    if kind == "crown":
        return f"crown={CLAN_NAMES[clan]}"
    return f"E+{number}" if kind == "move" else f"d{number}"


def outcome_text(before: np.void, action: int, after: np.void) -> str:
    """Return the effects of an action, played once or several times, as text after the decision."""
    kind, steps, clan, _ = action_parts(action)
    outcome = ""
    if kind == "place":
        if after["control"][clan] == before["player"] != before["control"][clan]:
            outcome = "!"
    elif kind == "move":
        region = steps % int(before["regions"])
        at = (int(before["emperor"]) + region) % int(before["regions"])
        name = region_text(before, region)
        owner, heir = before["region_owner"][at], after["region_owner"][after["emperor"]]
        if heir == owner:
            outcome = f" at {name}"
        else:
            verb = "builds" if owner == NOBODY else "takes"
            outcome = f" {TEAM_LETTERS[heir]} {verb} {name}"
            if after["regions"] < before["regions"]:
                outcome += f" forming {region_text(after, 0)}"
    return outcome + ("#" if after["phase"] == rules.OVER else "")


# ------------------------------------------------------------------------------------ games


class TurnText(NamedTuple):
    """Events of a game by one player, in text."""

    event: int  # index of the (first) event
    round: int  # 0 in the set-up
    seat: int  # of the player
    text: str  # its `move_text` or `roll_text`; several are separated by commas


def turn_texts(start: States, events: Iterable[Mapping[str, Any]]) -> Iterator[TurnText]:
    """Yield a text for each player's turn; equal moves become ``2 blue>7-9``.

    A turn is a disc, the paladins, Emperor and dice of one player, or a roll of the set-up.
    ``start`` is the game before the first event: of a record ``records.start_of(it)``, or any
    position; an event that cannot be played is an error of `records.play_events`.
    """
    events = [*events]
    return _texts(events, play_events(start, events))


def game_text(start: States, events: Iterable[Mapping[str, Any]]) -> str:
    """Return a whole game: start, each of `turn_texts` in a line, and what is due or the ending."""
    events = [*events]
    states = play_events(start, events)
    lines, current = [to_line(states[0])], None
    for turn in _texts(events, states):
        if turn.round != current:
            current = turn.round
            lines.append(f"round {current}")
        team = TEAM_LETTERS[int(states["team"][0, turn.seat])]
        lines.append(f"  {turn.seat} {team}  {turn.text}")
    return "\n".join([*lines, situation(states[-1])]) + "\n"


def _texts(events: Sequence[Mapping[str, Any]], states: States) -> Iterator[TurnText]:
    def turn_of(at: int) -> tuple[int, ...]:  # a disc is a turn itself
        before = states[at]
        return int(before["round"]), int(before["player"]), int(before["phase"] == rules.DISC)

    def run_of(at: int) -> tuple[int, int]:  # equal paladins or crowns are written as one
        return (events[at]["action"], -1) if states["phase"][at] in REPEATABLE else (-1, at)

    for (round_now, seat, _), turn in itertools.groupby(range(len(events)), turn_of):
        runs = [[*run] for _, run in itertools.groupby(turn, run_of)]
        texts = (
            event_text(states[run[0]], events[run[0]], states[run[-1] + 1], len(run))
            for run in runs
        )
        yield TurnText(runs[0][0], round_now, seat, ", ".join(texts))


# ------------------------------------------------------------------------------------ what is due


def counted(number: int, what: str) -> str:
    """Count in words: ``1 step``, ``2 steps``; ``1 die``, ``2 dice``."""
    if number == 1:
        return f"1 {what}"
    return f"{number} dice" if what == "die" else f"{number} {what}s"


def due(state: np.void) -> str:
    """Return what is due as it follows the name of the player to move: ``plays 3 paladins``."""
    return {
        rules.DISC: "plays a disc",
        rules.CROWN_CHOICE: "decides a crown",
        rules.PLACE: f"plays {counted(int(state['placements_left']), 'paladin')}",
        rules.MOVE: "moves the Emperor",
        rules.ROLL: f"rolls {counted(int(state['dice_due']), 'die')}",
    }[int(state["phase"])]


def situation(state: np.void) -> str:
    """Return what is due, or the ending: ``round 7, player 1 plays 2 paladins``."""
    if state["phase"] == rules.OVER:
        winners = " and ".join(TEAM_LETTERS[team] for team in winning_teams(state)) or "nobody"
        return f"over ({rules.REASON_NAMES[int(state['reason'])]}): {winners} won"
    return f"round {state['round']}, player {state['player']} {due(state)}"


# ------------------------------------------------------------------------------------ reading

_TOKEN = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")
_TIMES = r"(?:(?P<times>[0-9]{1,2}) )?"
_REST = r"(?: (?P<rest>.*))?"


# By phase: the kind of action, a pattern with one space between tokens, and what is expected.
_FORMS: Final = {
    rules.DISC: ("disc", rf"d (?P<number>[0-9]{{1,2}}){_REST}", "a disc such as 'd3'"),
    rules.CROWN_CHOICE: (
        "crown", rf"{_TIMES}crown = (?P<clan>[a-z]+){_REST}", "a crown such as 'crown=red'",
    ),
    rules.PLACE: (
        "place",
        rf"{_TIMES}(?P<clan>[a-z]+) > (?P<where>court|[0-9]{{1,2}}(?: - [0-9]{{1,2}})?){_REST}",
        "a paladin such as 'red>court', 'blue>7' or '2 blue>7-9'",
    ),
    rules.MOVE: ("move", rf"e \+ (?P<number>[0-9]{{1,2}}){_REST}", "a move such as 'E+2'"),
}  # fmt: skip


def read_move(state: np.void, text: str) -> list[int]:
    """Parse the actions of a text: one, or several equal ones for ``2 blue>7-9``.

    Case and spaces do not matter; a clan may be abbreviated (``b>7``), and any one territory of a
    region names it. The outcome of the move may be left out, but not in part. A `NotationError`
    says what was expected and what is legal.
    """
    phase = int(state["phase"])
    if phase not in _FORMS:
        raise _refused(text, "no decision is due")
    kind, pattern, expected = _FORMS[phase]
    result = re.fullmatch(pattern, _plain(text))
    if not result:
        raise _refused(text, f"expected {expected}", state)
    typed = result.groupdict("")
    clan = destination = NOBODY
    if word := typed.get("clan"):  # no two clans begin with the same letter
        clan = next((k for k, name in enumerate(CLAN_NAMES) if name.startswith(word)), NOBODY)
        if clan == NOBODY:
            names = ", ".join(CLAN_NAMES)
            raise _refused(text, f"expected one of {names}, got {shown(word)}")
    if where := typed.get("where"):
        destination = 0 if where == "court" else 1 + _region(state, where, text)
    wanted = (kind, int(typed.get("number", 0)), clan, destination)
    actions = engine.legal_actions(state).tolist()
    action = next((action for action in actions if action_parts(action) == wanted), None)
    if action is None:
        raise _refused(text, f"player {state['player']} may not play that now", state)
    times, most = int(typed.get("times") or 1), _most(state, action)
    if not 1 <= times <= most:
        raise _refused(text, f"expected a number from 1 to {most}, got {times}")
    full = move_text(state, action, times)
    outcome = full.partition(decision_text(state, action))[2]
    if typed["rest"] and typed["rest"] != _plain(outcome):
        raise _refused(text, f"what would happen is {full!r}")
    return [action] * times


def read_moves(state: np.void, text: str, *, roll: bool = False) -> list[int]:
    """Parse the actions of several moves, separated by commas: ``r>court, 2 blue>7-9, E+2``.

    With ``roll`` the game's own generator rolls between them, otherwise a due roll ends them. The
    first that cannot be read, or played after those before it, is a `NotationError`.
    """
    game, actions = single(state), []
    for move in text.split(","):
        for action in read_move(game[0], move):
            engine.step(game, np.array([action]), roll=roll)
            actions.append(action)
    return actions


def _plain(text: str) -> str:
    """Return the words, numbers and signs of a text in lower case, with one space between them."""
    return " ".join(_TOKEN.findall(text.lower()))


def _refused(text: str, why: str, state: np.void | None = None) -> NotationError:
    """Return an error, which lists the legal moves of a state."""
    legal = "" if state is None else f"; legal now: {legal_text(state)}"
    return NotationError(f"move {shown(text.strip())}: {why}{legal}")


def _region(state: np.void, where: str, text: str) -> int:
    """Return the region that is named, counted from the Emperor's."""
    names = [region_text(state, k) for k in range(int(state["regions"]))]
    where = where.replace(" ", "")
    if where in names:
        return names.index(where)
    if "-" not in where and int(where) < TERRITORIES:
        for k, name in enumerate(names):
            first, last = map(int, (name.split("-") * 2)[:2])
            if (int(where) - first) % TERRITORIES <= (last - first) % TERRITORIES:
                return k
    raise _refused(text, f"there is no region {where}; there are {', '.join(names)}")


def _most(state: np.void, action: int) -> int:
    """Return the number of times that a legal action can be played in a row."""
    game, times = single(state), 0
    while times == 0 or (
        state["phase"] in REPEATABLE
        and game["player"][0] == state["player"]
        and engine.are_legal(game, np.array([action]))[0]
    ):
        engine.step(game, np.array([action]), roll=False)
        times += 1
    return times
