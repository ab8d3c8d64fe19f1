"""A game as plain text: the circle of territories with the courts inside it."""

from __future__ import annotations

from typing import Final

import numpy as np

from carolus_env.engine import rules_of
from carolus_env.rules import (
    CLANS,
    DISCS,
    MOVE,
    NOBODY,
    OVER,
    PHASE_NAMES,
    PLACE,
    REASON_NAMES,
    ROLL,
    TERRITORIES,
)
from carolus_env.state import winning_teams

CLAN_LETTERS: Final = "rpbyg"  # red, pink, blue, yellow, green
TEAM_LETTERS: Final = "ABC"
_WIDTH, _COLUMNS = 16, 5  # of a cell, and cells in the top and bottom rows
_INSIDE = _WIDTH * (_COLUMNS - 2) - 2

# Where territory t is drawn: clockwise from the top left, (row, column) of cells.
_PLACES = (
    *((0, column) for column in range(5)),
    *((row, 4) for row in (1, 2)),
    *((3, column) for column in range(4, -1, -1)),
    *((row, 0) for row in (2.34, 1.67, 1)),
)


def board_text(state: np.void) -> str:
    """Draw one game (``states[i]``) with letters and digits, 80 columns wide.

    Each region shows at its first territory ``number``, castles (``A2``: two of team A), ``E``
    for the Emperor, and its paladins (``r2 g1``); the other territories of a merged region show
    ``=``. In a court an upper-case letter means that the player controls the clan. ``+2`` in a
    reserve: two crowns that are not decided yet.
    """
    rules = rules_of(state)
    lines = [[" "] * (_WIDTH * _COLUMNS) for _ in range(14)]

    def write(line: int, column: int, text: str) -> None:
        lines[line][column : column + len(text)] = text

    for territory, (head, body) in enumerate(_cells(state)):
        row, column = _PLACES[territory]
        write(round(row * 4), column * _WIDTH, _fit(head, _WIDTH - 1))
        write(round(row * 4) + 1, column * _WIDTH, _fit(body, _WIDTH - 1))
    inside = [situation(state), ""]
    inside += ["    team court               reserve"]
    for seat in range(rules.players):
        inside.append(_player(state, seat))
    inside.append("  supply " + _paladins(state["supply"]))
    for i, text in enumerate(inside):
        write(3 + i, _WIDTH + 1, _fit(text, _INSIDE))
    return "\n".join("".join(line).rstrip() for line in lines) + "\n" + _discs(state)


def _fit(text: str, width: int) -> str:
    """Cut what is too long, and show that it was cut."""
    return text if len(text) <= width else text[: width - 1] + "~"


def _cells(state: np.void) -> list[tuple[str, str]]:
    """Two short lines for each territory, 0 to 14."""
    cells = [("", "")] * TERRITORIES
    count = int(state["regions"])
    firsts = state["region_first"][:count].astype(int)
    for region in range(count):
        owner = int(state["region_owner"][region])
        castles = (
            "" if owner == NOBODY else f" {TEAM_LETTERS[owner]}{state['region_castles'][region]}"
        )
        emperor = " E" if region == state["emperor"] else ""
        first = int(firsts[region])
        size = (firsts[(region + 1) % count] - first) % TERRITORIES
        paladins = [
            f"{CLAN_LETTERS[clan]}{number}"
            for clan, number in enumerate(state["region_paladins"][:, region])
            if number
        ]
        body = " ".join(paladins)
        if len(body) >= _WIDTH:
            body = "".join(paladins)
        cells[first] = (f"[{first}]{castles}{emperor}", body)
        for k in range(1, int(size)):
            cells[(first + k) % TERRITORIES] = (f"[{(first + k) % TERRITORIES}] = {first}", "")
    return cells


def situation(state: np.void) -> str:
    """What is due, or how it ended: ``round 7, player 1: place (2 left)``."""
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


def _player(state: np.void, seat: int) -> str:
    to_move = ">" if state["phase"] != OVER and seat == state["player"] else " "
    team = TEAM_LETTERS[int(state["team"][seat])]
    held = [
        CLAN_LETTERS[clan].upper() if state["control"][clan] == seat else CLAN_LETTERS[clan]
        for clan in range(CLANS)
    ]
    court = _paladins(state["courts"][seat], "".join(held))
    crowns = f"+{state['crowns'][seat]}" if state["crowns"][seat] else ""
    reserve = "".join(f"{CLAN_LETTERS[c]}{n}" for c, n in enumerate(state["reserves"][seat]) if n)
    castles = state["castles"][state["team"][seat]]
    return f"{to_move} {seat} {team}{castles:<4}{court:19} {reserve}{crowns}"


def _paladins(numbers: np.ndarray, letters: str = CLAN_LETTERS) -> str:
    return " ".join(f"{letter}{number}" for letter, number in zip(letters, numbers, strict=True))


def _discs(state: np.void) -> str:
    lines = ["discs in playing order"]
    for seat in state["order"][: int(state["players"])]:
        hand = [d for d in range(1, DISCS + 1) if state["discs_in_hand"][seat] >> (d - 1) & 1]
        played = state["discs_played"][seat] or "-"
        held = " ".join(map(str, hand)) or "none"
        lines.append(f"  player {seat} played {played}, holds {held}")
    return "\n".join(lines) + "\n"
