"""The log of a game: each event in the notation and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from carolus_env.engine.rules import CLAN_NAMES, action_parts
from carolus_env.notation import event_text, region_text
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
        what: the same for a page that shows it: ``kind``, and what it needs of ``clan``, ``disc``,
            ``faces``, ``to`` (a region; None: the court) and ``taken`` (the region whose castles
            changed hands; None: none did).
    """

    event: int
    seat: int
    round: int
    text: str
    words: str
    what: dict[str, Any]


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
        what: dict[str, Any] = {"kind": "roll", "faces": faces}
    else:
        words, what = _decision(before, after, event["action"], teams)
    return LogLine(index, event["player"], int(before["round"]), text, words, what)


def _decision(
    before: np.void, after: np.void, action: int, teams: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """A decision and its result in words, and what a page shows of it."""
    words = third_person(action_words(before, action))
    kind, number, clan, destination = action_parts(action)
    if kind == "disc":
        return words, {"kind": kind, "disc": number}
    if kind == "crown":
        return words, {"kind": kind, "clan": CLAN_NAMES[clan]}
    if kind == "place":
        to = region_text(before, destination - 1) if destination else None
        if after["control"][clan] != before["control"][clan]:
            words += f", gaining control of {CLAN_NAMES[clan]}"
        return words, {"kind": kind, "clan": CLAN_NAMES[clan], "to": to}
    step = emperor_step(before, after, action)
    taken = region_text(after, 0) if step.owner != step.owner_before else None
    words += f": {step.text(teams)}"
    return words, {"kind": kind, "to": step.territories, "taken": taken}
