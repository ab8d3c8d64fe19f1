"""The board as plain text: the circle of territories with the players inside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

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

# Terminal styles as SGR parameters, from the 256 colours those that can be read on black and white.
CLAN_STYLES: Final = ("38;5;160", "38;5;169", "38;5;33", "38;5;136", "38;5;28")
TEAM_STYLES: Final = ("38;5;231;48;5;238", "38;5;16;48;5;255", "38;5;16;48;5;247")
EMPEROR_LOOK: Final = "38;5;16;48;5;214"
_BOLD, _END = "1", "\x1b[0m"
_UNIT = re.compile(r"(?:\x1b\[[0-9;]+m)*[^\x1b](?:\x1b\[0m)*")  # a character with its style

Paint = Callable[[str, str], str]  # styles a text, or returns it unchanged


def painted(text: str, look: str) -> str:
    """Return a text in a terminal style, given as SGR parameters: ``"1"`` is bold."""
    return f"\x1b[{look}m{text}{_END}" if text.strip() else text


def board_text(state: np.void, *, colour: bool = False) -> str:
    """Draw one game (``states[i]``) with letters and digits, 80 columns wide.

    The first territory of a region shows its number, castles (``A2``: two of team A), ``E`` for the
    Emperor, and paladins (``r2 g1``). The other territories of the region show ``=`` and the number
    of the first. In a court, an upper-case letter means that the player controls the clan. ``+2``
    in a reserve stands for two undecided crowns.
    """
    paint: Paint = painted if colour else lambda text, look: text
    data = position.to_dict(state)
    lines = [[" "] * (_WIDTH * _COLUMNS) for _ in range(14)]

    def write(line: int, column: int, text: str, width: int = _WIDTH - 1) -> None:
        units = _UNIT.findall(text)
        if len(units) > width:  # a tilde marks the cut
            units = [*units[: width - 2], units[width - 2] + _END * ("\x1b" in text), "~"]
        lines[line][column : column + len(units)] = units

    for k, region in enumerate(data["regions"]):
        first, *others = region["territories"]
        for territory in others:
            line, column = _PLACES[territory]
            write(line, column * _WIDTH, f"[{territory}] = {first}")
        head, owner = [f"[{first}]"], region["owner"]
        if owner != NOBODY:
            head.append(paint(f"{TEAM_LETTERS[owner]}{region['castles']}", TEAM_STYLES[owner]))
        if k == 0:
            head.append(paint("E", EMPEROR_LOOK))
        paladins = _held(region["paladins"], paint)
        gap = " " if sum(len(_UNIT.findall(text)) + 1 for text in paladins) <= _WIDTH else ""
        line, column = _PLACES[first]
        write(line, column * _WIDTH, " ".join(head))
        write(line + 1, column * _WIDTH, gap.join(paladins))
    inside = [paint(situation(state), _BOLD), "", "    team court               reserve"]
    for seat, team in enumerate(state["team"][: state["players"]].tolist()):
        inside.append(_player(data, seat, team, paint))
    inside.append("  supply " + " ".join(_paladins(data["supply"], paint)))
    for i, text in enumerate(inside):
        write(3 + i, _WIDTH + 1, text, _INSIDE)
    drawn = [*("".join(line).rstrip() for line in lines), "discs in playing order"]
    for seat in data["order"]:
        hand = " ".join(map(str, data["discs_in_hand"][seat])) or "none"
        drawn.append(f"  player {seat} played {data['discs_played'][seat] or '-'}, holds {hand}")
    return "\n".join(drawn) + "\n"


def _player(data: dict[str, Any], seat: int, team: int, paint: Paint) -> str:
    to_move = ">" if seat == data["player"] else " "
    castles = f"{TEAM_LETTERS[team]}{data['castles'][team]}"
    controlled = [holder == seat for holder in data["control"]]
    court = " ".join(_paladins(data["courts"][seat], paint, controlled))
    crowns = f"+{data['crowns'][seat]}" if data["crowns"][seat] else ""
    reserve = "".join(_held(data["reserves"][seat], paint))
    castles = paint(castles, TEAM_STYLES[team]) + " " * (5 - len(castles))
    court += " " * (19 - len(_UNIT.findall(court)))
    return f"{paint(to_move, _BOLD)} {seat} {castles}{court} {reserve}{crowns}"


def _held(numbers: Sequence[int], paint: Paint) -> list[str]:
    """Return `_paladins` without the clans that there are none of."""
    return [text for text, number in zip(_paladins(numbers, paint), numbers, strict=True) if number]


def _paladins(
    numbers: Sequence[int], paint: Paint, controlled: Sequence[bool] = (False,) * CLANS
) -> list[str]:
    """Return ``r3`` for each clan; one that is controlled has a bold upper-case letter."""
    words = []
    clans = zip(CLAN_LETTERS, numbers, CLAN_STYLES, controlled, strict=True)
    for letter, number, look, own in clans:
        word = f"{letter.upper() if own else letter}{number}"
        words.append(paint(word, f"{_BOLD};{look}" if own else look))
    return words
