"""Parsing of whole turns in the notation, with errors in the game's words.

A *turn* here is what a player decides in a row: a disc; or the crowns after a roll; or (deferred
crowns,) the paladins and the Emperor. No dice are rolled in between, so one text can hold it:

    >>> read_turn(state, "2 red>court, blue>7, E+2")
    [15, 15, 55, 11]
"""

from __future__ import annotations

import re

import numpy as np

from carolus_env import engine
from carolus_env.engine.rules import (
    CLAN_NAMES,
    CROWN_CHOICE,
    DISC,
    DISCS,
    MOVE,
    PLACE,
)
from carolus_env.engine.state import States, single
from carolus_env.notation import NotationError, legal_text, read_move
from carolus_env.notation.vocabulary import counted
from carolus_env.system.untrusted import shown

LONGEST = 400
"""Characters of a turn's text; the longest that the notation writes has less than 200."""


def goes_on(game: States, start: np.void) -> bool:
    """Return whether the turn that began in ``start`` continues in ``game``, ``(1,)``."""
    state = game[0]
    return bool(
        start["phase"] != DISC
        and state["phase"] in (CROWN_CHOICE, PLACE, MOVE)
        and state["player"] == start["player"]
        and state["round"] == start["round"]
    )


# ------------------------------------------------------------------------------------ reading


def read_turn(state: np.void, text: str) -> list[int]:
    """Parse the actions of a whole turn.

    Outcomes (``!``, ``A takes 4-6``) may be left out, but a wrong one is refused.

    Args:
        state: the game in which the turn begins; it does not change.
        text: moves in the notation, separated by commas, in the order in which they are played.

    Raises:
        NotationError: for a turn that is not complete, too long, or against the rules; the text
            says which move it is and why.
    """
    if len(text) > LONGEST:
        raise NotationError(
            f"a turn is a few moves such as 'red>court, E+1', got {len(text)} characters"
        )
    game, actions = single(state), list[int]()
    for move in filter(str.strip, re.split(r"[,;\n]", text)):
        if actions and not goes_on(game, state):
            raise NotationError(f"{shown(move.strip())} is one move too many: {_complete(state)}")
        result = read_one(game[0], move)
        for action in result:
            engine.step(game, np.array([action]), roll=False)
        actions += result
    if not actions:
        raise NotationError(f"there is no move in the answer; {_missing(state)}")
    if goes_on(game, state):
        raise NotationError(f"the turn is not complete: {_missing(game[0])}")
    return actions


def read_one(state: np.void, text: str) -> list[int]:
    """Parse a move by `notation.read_move`; errors also name the rule against the move.

    Raises:
        NotationError: for a text that is not a move, or not one that can be played now.
    """
    try:
        return read_move(state, text)
    except NotationError:
        reason = _why_not(state, text)
        if reason is None:
            raise
        move = shown(text.strip())
        raise NotationError(f"move {move}: {reason}; legal now: {legal_text(state)}") from None


_KINDS = (
    (DISC, re.compile(r"\s*d\s*(?P<number>[0-9]{1,3})\b", re.IGNORECASE)),
    (MOVE, re.compile(r"\s*e\s*\+\s*(?P<number>[0-9]{1,3})\b", re.IGNORECASE)),
    (CROWN_CHOICE, re.compile(r"\s*([0-9]{1,2}\s*)?crown\s*=\s*(?P<clan>[a-z]+)", re.IGNORECASE)),
    (PLACE, re.compile(r"\s*(?P<times>[0-9]{1,2}\s)?\s*(?P<clan>[a-z]+)\s*>", re.IGNORECASE)),
)


def _why_not(state: np.void, text: str) -> str | None:
    """Return the rule that forbids a move, in the game's words; None if it is not a rule."""
    phase, seat = int(state["phase"]), int(state["player"])
    typed = ((kind, pattern.match(text)) for kind, pattern in _KINDS)
    kind, result = next(((kind, result) for kind, result in typed if result), (phase, None))
    if kind != phase:
        return _out_of_order(state)
    if result is None:
        return None
    if phase == DISC:
        return _no_such_disc(state, seat, int(result["number"]))
    if phase == MOVE:
        most = int(state["discs_played"][seat])
        if not 1 <= int(result["number"]) <= most:
            return f"you played disc {most}, so the Emperor moves 1 to {most} steps"
        return None
    clan = next((c for c, n in enumerate(CLAN_NAMES) if n.startswith(result["clan"].lower())), None)
    if clan is None:
        return None
    if phase == CROWN_CHOICE:
        taken = state["supply"][clan] > 0 or state["courts"][: state["players"], clan].all()
        name = CLAN_NAMES[clan]
        return None if taken else f"neither the supply nor every court holds a {name} paladin"
    held, times = int(state["reserves"][seat][clan]), int(result["times"] or 1)
    remaining = int(state["placements_left"])
    if held < times:
        return f"your reserve holds {held} {CLAN_NAMES[clan]}"
    if remaining < times:
        verb = "is" if remaining == 1 else "are"
        return f"{counted(remaining, 'paladin')} of this turn {verb} left"
    return None


def _out_of_order(state: np.void) -> str:
    """Return a text on the decision that is due first, or instead."""
    if state["phase"] == PLACE:
        remaining = counted(int(state["placements_left"]), "paladin")
        return f"the paladins come first, {remaining} still to be played"
    if state["phase"] == MOVE:
        return "all paladins of this turn are played, now the Emperor moves"
    return "a disc is to be played now" if state["phase"] == DISC else "the crowns come first"


def _no_such_disc(state: np.void, seat: int, number: int) -> str | None:
    hand = int(state["discs_in_hand"][seat])
    if not (1 <= number <= DISCS and hand >> number - 1 & 1):
        return f"disc {number} is not in your hand"
    for other in range(int(state["players"])):
        if state["discs_played"][other] == number:
            return f"player {other} has played {number} this round, and you hold another number"
    return None


def _complete(state: np.void) -> str:
    if state["phase"] == DISC:
        return "one disc is played"
    if state["phase"] == CROWN_CHOICE and not state["crown_deferred"]:
        return "all crowns are decided"
    return "a turn ends with the Emperor's move"


def _missing(state: np.void) -> str:
    if state["phase"] == PLACE:
        remaining = counted(int(state["placements_left"]), "paladin")
        return f"{remaining} still to be played, and then the Emperor's move"
    if state["phase"] == MOVE:
        return "the Emperor's move is missing"
    return "a disc is missing" if state["phase"] == DISC else "a crown is still to be decided"
