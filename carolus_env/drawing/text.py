"""The board as plain text: the circle of territories with the players inside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from carolus_env.engine import rules_of
from carolus_env.engine.rules import DISCS, NOBODY, OVER, TERRITORIES
from carolus_env.notation.vocabulary import CLAN_LETTERS, TEAM_LETTERS, situation

_WIDTH, _COLUMNS = 16, 5  # a cell's width, and cells in the top and bottom rows
_INSIDE = _WIDTH * (_COLUMNS - 2) - 2

# (row, column) of each territory's cell, clockwise from the top left.
_PLACES = (
    *((0, column) for column in range(5)),
    *((row, 4) for row in (1, 2)),
    *((3, column) for column in range(4, -1, -1)),
    *((row, 0) for row in (2.34, 1.67, 1)),
)

# Terminal styles as SGR parameters, from the 256 colours those that can be read on black and white.
CLAN_STYLES: Final = ("38;5;160", "38;5;169", "38;5;33", "38;5;136", "38;5;28")
TEAM_STYLES: Final = ("38;5;231;48;5;238", "38;5;16;48;5;255", "38;5;16;48;5;247")
EMPEROR_LOOK: Final = "38;5;16;48;5;214"
_BOLD, _END = "1", "\x1b[0m"
_UNIT = re.compile(r"(?:\x1b\[[0-9;]+m)*[^\x1b](?:\x1b\[0m)*")  # a character with its style

Paint = Callable[[str, str], str]
"""Styles a text, or returns it unchanged."""


def painted(text: str, look: str) -> str:
    """Return a text in a terminal style, given as SGR parameters: ``"1"`` is bold."""
    return f"\x1b[{look}m{text}{_END}" if text.strip() else text


def _plain(text: str, look: str) -> str:
    return text


def board_text(state: np.void, *, colour: bool = False) -> str:
    """Draw one game (``states[i]``) with letters and digits, 80 columns wide.

    The first territory of a region shows its number, castles (``A2``: two of team A), ``E`` for the
    Emperor, and paladins (``r2 g1``). The other territories of the region show ``=`` and the number
    of the first. In a court, an upper-case letter means that the player controls the clan. ``+2``
    in a reserve stands for two undecided crowns.

    Args:
        state: the game.
        colour: give clans, teams and the Emperor the colours of a terminal, which add no width.

    Returns:
        Lines that each end with a line break.
    """
    paint = painted if colour else _plain
    rules = rules_of(state)
    lines = [[" "] * (_WIDTH * _COLUMNS) for _ in range(14)]

    def write(line: int, column: int, text: str) -> None:
        units = _UNIT.findall(text)
        lines[line][column : column + len(units)] = units

    for territory, (head, body) in enumerate(_cells(state, paint)):
        row, column = _PLACES[territory]
        write(round(row * 4), column * _WIDTH, _fit(head, _WIDTH - 1))
        write(round(row * 4) + 1, column * _WIDTH, _fit(body, _WIDTH - 1))
    inside = [paint(situation(state), _BOLD), ""]
    inside += ["    team court               reserve"]
    for seat in range(rules.players):
        inside.append(_player(state, seat, paint))
    inside.append("  supply " + " ".join(_paladins(state["supply"], paint)))
    for i, text in enumerate(inside):
        write(3 + i, _WIDTH + 1, _fit(text, _INSIDE))
    return "\n".join("".join(line).rstrip() for line in lines) + "\n" + _discs(state)


def _fit(text: str, width: int) -> str:
    """Cut a text that is too long; a tilde marks the cut."""
    units = _UNIT.findall(text)
    if len(units) <= width:
        return text
    return "".join(units[: width - 1]) + (_END if "\x1b" in text else "") + "~"


def _width(text: str) -> int:
    return len(_UNIT.findall(text))


def _cells(state: np.void, paint: Paint) -> list[tuple[str, str]]:
    """Return two short lines for each territory, 0 to 14."""
    cells = [("", "")] * TERRITORIES
    count = int(state["regions"])
    firsts = state["region_first"][:count].astype(int)
    for region in range(count):
        owner, castles = int(state["region_owner"][region]), ""
        if owner != NOBODY:
            castles = f"{TEAM_LETTERS[owner]}{state['region_castles'][region]}"
            castles = " " + paint(castles, TEAM_STYLES[owner])
        emperor = " " + paint("E", EMPEROR_LOOK) if region == state["emperor"] else ""
        first = int(firsts[region])
        size = (firsts[(region + 1) % count] - first) % TERRITORIES
        numbers = state["region_paladins"][:, region]
        paladins = [
            text for text, number in zip(_paladins(numbers, paint), numbers, strict=True) if number
        ]
        body = " ".join(paladins)
        if _width(body) >= _WIDTH:
            body = "".join(paladins)
        cells[first] = (f"[{first}]{castles}{emperor}", body)
        for k in range(1, int(size)):
            cells[(first + k) % TERRITORIES] = (f"[{(first + k) % TERRITORIES}] = {first}", "")
    return cells


def _player(state: np.void, seat: int, paint: Paint) -> str:
    to_move = ">" if state["phase"] != OVER and seat == state["player"] else " "
    team = int(state["team"][seat])
    castles = f"{TEAM_LETTERS[team]}{state['castles'][team]}"
    court = " ".join(_paladins(state["courts"][seat], paint, state["control"] == seat))
    crowns = f"+{state['crowns'][seat]}" if state["crowns"][seat] else ""
    numbers = state["reserves"][seat]
    reserve = "".join(
        text for text, number in zip(_paladins(numbers, paint), numbers, strict=True) if number
    )
    castles = paint(castles, TEAM_STYLES[team]) + " " * (5 - len(castles))
    court += " " * (19 - _width(court))
    return f"{paint(to_move, _BOLD)} {seat} {castles}{court} {reserve}{crowns}"


def _paladins(numbers: np.ndarray, paint: Paint, held: np.ndarray | None = None) -> list[str]:
    """Return ``r3`` for each clan; a clan that is ``held`` has a bold upper-case letter."""
    words = []
    for clan, number in enumerate(numbers):
        holds = held is not None and held[clan]
        letter = CLAN_LETTERS[clan].upper() if holds else CLAN_LETTERS[clan]
        words.append(
            paint(
                f"{letter}{number}", f"{_BOLD};{CLAN_STYLES[clan]}" if holds else CLAN_STYLES[clan]
            )
        )
    return words


def _discs(state: np.void) -> str:
    lines = ["discs in playing order"]
    for seat in state["order"][: int(state["players"])]:
        hand = [d for d in range(1, DISCS + 1) if state["discs_in_hand"][seat] >> (d - 1) & 1]
        played = state["discs_played"][seat] or "-"
        held = " ".join(map(str, hand)) or "none"
        lines.append(f"  player {seat} played {played}, holds {held}")
    return "\n".join(lines) + "\n"
