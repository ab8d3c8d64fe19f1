"""The events of a record, played on the engine: nothing else in the package plays them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.state import States, as_states


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
