"""The log of a game: each event in the notation and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from carolus_env.engine.rules import CLAN_NAMES, action_parts
from carolus_env.notation import event_text
from carolus_env.play.preview import emperor_step
from carolus_env.play.words import action_words, third_person


class LogLine(NamedTuple):
    """An event of a game.

    Attributes:
        event: its index in the record.
        seat: the player's.
        round: 0 is the set-up.
        text: in the notation.
        words: in words that follow the player's name.
    """

    event: int
    seat: int
    round: int
    text: str
    words: str


def log_line(
    before: np.void, after: np.void, index: int, event: Mapping[str, Any], teams: Sequence[str]
) -> LogLine:
    """An event of a record as a line of the log.

    Args:
        before, after: the game without it and with it.
        index: of the event in the record.
        event: a roll or a decision.
        teams: their names.
    """
    text = event_text(before, event, after)
    if "roll" in event:
        verb, *faces = text.split()
        words = f"{verb} {', '.join(faces)}"
    else:
        words = _decision_words(before, after, event["action"], teams)
    return LogLine(index, event["player"], int(before["round"]), text, words)


def _decision_words(before: np.void, after: np.void, action: int, teams: Sequence[str]) -> str:
    """A decision and its result."""
    words = third_person(action_words(before, action))
    kind, _, clan, _ = action_parts(action)
    if kind == "move":
        return f"{words}: {emperor_step(before, after, action).text(teams)}"
    if kind == "place" and after["control"][clan] != before["control"][clan]:
        return f"{words}, gaining control of {CLAN_NAMES[clan]}"
    return words
