"""Words and letters that notation, pictures and pages share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from carolus_env.engine.rules import (
    MOVE,
    OVER,
    PHASE_NAMES,
    PLACE,
    REASON_NAMES,
    ROLL,
    Rules,
)
from carolus_env.engine.state import winning_teams

CLAN_LETTERS: Final = "rpbyg"  # red, pink, blue, yellow, green
TEAM_LETTERS: Final = "ABC"


def situation(state: np.void) -> str:
    """Return what is due, or the ending: ``round 7, player 1: place (2 left)``."""
    phase = int(state["phase"])
    if phase == OVER:
        winners = [TEAM_LETTERS[team] for team in winning_teams(state)]
        who = " and ".join(winners) or "nobody"
        return f"over ({REASON_NAMES[int(state['reason'])]}): {who} won"
    due = PHASE_NAMES[phase]
    if phase == PLACE:
        due += f" ({state['placements_left']} left)"
    elif phase == MOVE:
        due += f" (1 to {state['discs_played'][state['player']]} steps)"
    elif phase == ROLL:
        due += f" ({state['dice_due']} dice)"
    return f"round {state['round']}, player {state['player']}: {due}"


def span_text(first: int, last: int) -> str:
    """Return a region's territories, clockwise: ``7``, ``7-9``, ``14-0``."""
    return str(first) if first == last else f"{first}-{last}"


def counted(number: int, what: str) -> str:
    """Count in words: ``1 step``, ``2 steps``; ``1 die``, ``2 dice``."""
    if number == 1:
        return f"1 {what}"
    return f"{number} dice" if what == "die" else f"{number} {what}s"


def team_names(rules: Rules, names: Sequence[str]) -> list[str]:
    """Return a name for each team: its members', given those of the seats."""
    return [
        " and ".join(names[seat] for seat in range(rules.players) if rules.team(seat) == team)
        for team in range(rules.teams)
    ]
