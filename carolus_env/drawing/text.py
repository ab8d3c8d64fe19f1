"""The board as plain text: the circle of territories with the players inside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from carolus_env.engine.rules import CLANS, NOBODY
from carolus_env.notation.moves import situation
from carolus_env.notation.positions import CLAN_LETTERS, TEAM_LETTERS
from carolus_env.records import position

_WIDTH, _COLUMNS = 16, 5  # a cell's width, and cells in the top and bottom rows
_INSIDE = _WIDTH * (_COLUMNS - 2) - 2

# (line, column) of each territory's cell, clockwise from the top left.
_PLACES = (
    *((0, column) for column in range(5)),
    *((line, 4) for line in (4, 8)),
    *((12, column) for column in range(4, -1, -1)),
    *((line, 0) for line in (9, 7, 4)),
)


def board_text(state: np.void) -> str:
    """Draw one game (``states[i]``) with letters and digits, 80 columns wide.

    The first territory of a region shows its number, castles (``A2``: two of team A), ``E`` for the
    Emperor, and paladins (``r2 g1``). The other territories of the region show ``=`` and the number
    of the first. In a court, an upper-case letter means that the player controls the clan. ``+2``
    in a reserve stands for two undecided crowns.
    """
    data = position.to_dict(state)
    lines = [[" "] * (_WIDTH * _COLUMNS) for _ in range(14)]

    def write(line: int, column: int, text: str, width: int = _WIDTH - 1) -> None:
        if len(text) > width:  # a tilde marks the cut
            text = text[: width - 1] + "~"
        lines[line][column : column + len(text)] = text

    for k, region in enumerate(data["regions"]):
        first, *others = region["territories"]
        for territory in others:
            line, column = _PLACES[territory]
            write(line, column * _WIDTH, f"[{territory}] = {first}")
        head, owner = [f"[{first}]"], region["owner"]
        if owner != NOBODY:
            head.append(f"{TEAM_LETTERS[owner]}{region['castles']}")
        head += ["E"] * (k == 0)
        paladins = _held(region["paladins"])
        gap = " " if sum(len(text) + 1 for text in paladins) <= _WIDTH else ""
        line, column = _PLACES[first]
        write(line, column * _WIDTH, " ".join(head))
        write(line + 1, column * _WIDTH, gap.join(paladins))
    inside = [situation(state), "", "    team court               reserve"]
    inside += [_player(data, *seat) for seat in enumerate(state["team"][: state["players"]])]
    inside.append("  supply " + " ".join(_paladins(data["supply"])))
    for i, text in enumerate(inside):
        write(3 + i, _WIDTH + 1, text, _INSIDE)
    drawn = [*("".join(line).rstrip() for line in lines), "discs in playing order"]
    for seat in data["order"]:
        hand = " ".join(map(str, data["discs_in_hand"][seat])) or "none"
        drawn.append(f"  player {seat} played {data['discs_played'][seat] or '-'}, holds {hand}")
    return "\n".join(drawn) + "\n"


def _player(data: dict[str, Any], seat: int, team: int) -> str:
    castles = f"{TEAM_LETTERS[team]}{data['castles'][team]}"
    court = _paladins(data["courts"][seat], [holder == seat for holder in data["control"]])
    crowns = f"+{data['crowns'][seat]}" if data["crowns"][seat] else ""
    held = "".join(_held(data["reserves"][seat])) + crowns
    return f"{' >'[seat == data['player']]} {seat} {castles:5}{' '.join(court):19} {held}"


def _held(numbers: Sequence[int]) -> list[str]:
    """Return `_paladins` without the clans that there are none of."""
    return [text for text, number in zip(_paladins(numbers), numbers, strict=True) if number]


def _paladins(numbers: Sequence[int], controlled: Sequence[bool] = (False,) * CLANS) -> list[str]:
    """Return ``r3`` for each clan; one that is controlled has an upper-case letter."""
    clans = zip(CLAN_LETTERS, numbers, controlled, strict=True)
    return [f"{letter.upper() if own else letter}{number}" for letter, number, own in clans]
