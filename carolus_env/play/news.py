"""What the others did since a player's own last turn: which events, and each turn in a sentence."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from carolus_env.engine.rules import CLAN_NAMES, action_parts
from carolus_env.notation import region_text
from carolus_env.play.preview import emperor_step
from carolus_env.play.words import joined

Event = dict[str, Any]


class TurnTold(NamedTuple):
    """A turn of a player, or a disc: its first event, and words that follow the name."""

    event: int
    seat: int
    words: str


def onlooker(events: Sequence[Event], people: Sequence[int], player: int | None) -> int | None:
    """The seat for which news are told; None: no person plays.

    Args:
        events: of the record so far.
        people: seats of persons.
        player: the seat to move; None: the game is over.
    """
    if player in people:
        return player
    decided = (event["player"] for event in reversed(events) if "action" in event)
    return next((seat for seat in decided if seat in people), people[0] if people else None)


def news(events: Sequence[Event], start: int, seat: int) -> list[int]:
    """Indices of the others' events since a player's own last turn, the oldest first.

    Args:
        events: of the record so far.
        start: index of the first event after the set-up.
        seat: the player's.
    """
    own = [
        index
        for index in range(start, len(events))
        if events[index]["player"] == seat and _is_move(events[index])
    ]
    since = own[-1] if own else start
    return [index for index in range(since, len(events)) if events[index]["player"] != seat]


def last_turn(events: Sequence[Event], start: int, seat: int) -> list[int]:
    """`news`, and where these hold no whole turn, the last one of the others before them."""
    found = news(events, start, seat)
    if any(_is_move(events[index]) for index in found):
        return found
    moves = [i for i in range(start, len(events)) if _is_move(events[i])]
    others = [index for index in moves if events[index]["player"] != seat]
    if not others:
        return found
    first = others[-1]
    while first > start and _same_turn(events[first - 1], events[others[-1]]):
        first -= 1
    return [index for index in range(first, len(events)) if events[index]["player"] != seat]


def _is_move(event: Event) -> bool:
    return "action" in event and action_parts(event["action"]).kind == "move"


def _same_turn(event: Event, move: Event) -> bool:
    """Whether an event before a move of the Emperor belongs to the same turn."""
    kinds = ("place", "crown")
    is_part = "action" in event and action_parts(event["action"]).kind in kinds
    return is_part and event["player"] == move["player"]


def told(
    events: Sequence[Event], states: Sequence[np.void], indices: Iterable[int], teams: Sequence[str]
) -> list[TurnTold]:
    """Turns in words; dice are left out, as they touch only the reserve.

    Args:
        events: of the record.
        states: the game before each event and after the last.
        indices: of the events to be told, ascending.
        teams: names.
    """
    decided = [index for index in indices if "action" in events[index]]

    def turn_of(index: int) -> tuple[int, int, bool]:
        kind = action_parts(events[index]["action"]).kind
        return int(states[index]["round"]), events[index]["player"], kind == "disc"

    turns = []
    for (_, seat, _), run in itertools.groupby(decided, turn_of):
        indices = list(run)
        words = _turn_words(events, states, indices, teams)
        if words:
            turns.append(TurnTold(indices[0], seat, words))
    return turns


def _turn_words(
    events: Sequence[Event], states: Sequence[np.void], indices: list[int], teams: Sequence[str]
) -> str:
    said: list[str] = []
    placed: dict[str, list[int]] = {}  # clans by place, in the order in which places were chosen
    gained = []
    for index in indices:
        before, after, action = states[index], states[index + 1], events[index]["action"]
        kind, number, clan, destination = action_parts(action)
        if kind == "disc":
            said.append(f"plays disc {number}")
        elif kind == "place":
            where = f"in {region_text(before, destination - 1)}" if destination else "at court"
            placed.setdefault(where, []).append(clan)
            if after["control"][clan] != before["control"][clan]:
                gained.append(CLAN_NAMES[clan])
        elif kind == "move":
            step = emperor_step(before, after, action)
            said.append(f"moves the Emperor to {step.territories}: {step.change(teams)}")
    if gained:
        said.insert(0, f"gains control of {joined(gained)}")
    if placed:
        places = [f"{_clans(clans)} {where}" for where, clans in placed.items()]
        said.insert(0, f"places {joined(places)}")
    return "; ".join(said)


def _clans(clans: Sequence[int]) -> str:
    """``2 red and 1 blue``."""
    return joined([f"{clans.count(clan)} {CLAN_NAMES[clan]}" for clan in sorted(set(clans))])
