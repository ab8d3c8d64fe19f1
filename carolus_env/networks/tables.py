"""The tables of rows of the value network's inputs, as data.

`inputs` picks the rows of a position; the numbers of rows and the checks are made from
`TABLES`. What roles and views are, `inputs` says.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

from carolus_env.engine import rules

HANDS: Final = 1 << rules.DISCS
MOST_SIZES, MOST_MARGIN, MOST_LEAD, MOST_AHEAD = 8, 7, 4, 5
FEWER_SIZES, FEWER_MARGIN, FEWER_LEAD = 4, 5, 3
"""Maximum castles, margins and leads told apart with three teams."""
OWNERS: Final = 1 + 2 * MOST_SIZES  # none; own or others' castles, by their number
MARGINS: Final = 2 * MOST_MARGIN + 1
LEADS: Final = 2 * MOST_LEAD + 1
DISTANCES: Final = MOST_AHEAD + 3  # 1 to 5 steps, 6 to 8, 9 and more; the Emperor's region
WON, LOST = 4, -3  # margins after a turn, at most and at least
AFTERS: Final = WON - LOST + 1
REACHES: Final = 4
NOT, NOW, CHOOSING, LATER = range(REACHES)
HELD: Final = 4  # a clan's holder: nobody, the player, its partner, an opponent
KINDS: Final = 3
SET_UP, OPENING, ACTION = range(KINDS)  # kinds of rounds
MOST_CASTLES: Final = max(rules.CASTLES_TO_WIN) + 1


class Table(NamedTuple):
    """A table of rows."""

    name: str
    # Unit that looks a row up; ``view``, ``role``, ``pair`` and ``rival`` have a table each
    per: str
    # Keys of a row, with the number of their values; ``0``: the teams and nobody
    keys: tuple[tuple[str, int], ...]
    meaning: str


# fmt: off
TABLES: Final = (
    Table("region", "region and view", (("distance", DISTANCES), ("margin", MARGINS), ("castles", OWNERS)),
          "who owns the region, with how many castles, by how much the team is stronger there than every other, and how far ahead of the Emperor it lies"),
    Table("reach", "region and role", (("reach", REACHES), ("after", AFTERS), ("castles", OWNERS)),
          "the margin that the player's team can have there after a turn of the player, paladins for the court considered, and whether the player's disc gets there: not, this round, by a disc still to be chosen this round, in a later round"),
    Table("border", "region", (("near", 2), ("owner", 0), ("strongest", 0), ("before", 0), ("after", 0)),
          "the owner, the strongest team, and the owners of both neighbours: what merges with what; near: the Emperor can stop there"),
    Table("clan", "clan and role", (("holder", HELD), ("lead", LEADS), ("reserve", 4), ("others", 3), ("out", 4)),
          "who controls the clan, the player's lead in court over all others, the paladins of the clan in the player's reserve and the most in an opponent's, a quarter of those on the regions"),
    Table("hand", "role", (("discs", HANDS), ("chosen", 2)),
          "the discs in hand, and whether the player has chosen one this round"),
    Table("hands", "pair", (("discs", HANDS), ("other's", HANDS)),
          "the discs in two hands: of the player to move and of another"),
    Table("disc", "role", (("kind", KINDS), ("place", rules.MAX_PLAYERS), ("number", rules.DISCS + 1), ("acts", 2)),
          "the disc played, the place in the order, and whether the player is still to act this round"),
    Table("discs", "pair", (("kind", KINDS), ("number", rules.DISCS + 1), ("other's", rules.DISCS + 1), ("acts", 2), ("other acts", 2)),
          "the discs played by the player to move and another, and whether they are still to act"),
    Table("paladins", "role", (("reserve", 13), ("crowns", 4), ("acts", 2)),
          "paladins and crowns in the reserve, and whether the player is still to act this round"),
    Table("castles", "rival", (("castles", MOST_CASTLES), ("other's", MOST_CASTLES)),
          "castles in play of the team and of another team"),
    Table("circle", "position", (("regions", rules.TERRITORIES + 1), ("lead", 3)),
          "regions in the circle, and whether the team has more castles than every other, as many, or fewer"),
    Table("moment", "position", (("phase", len(rules.PHASE_NAMES)), ("place", rules.MAX_PLAYERS), ("round", rules.DISCS)),
          "what is due, the place of the player to move in the order, and the round since hands were full"),
)
# fmt: on


class Layout(NamedTuple):
    """Starts of the tables, the last is the number of all rows; see `layout`."""

    region: int
    reach: int
    border: int
    clan: int
    hand: int
    hands: int
    disc: int
    discs: int
    paladins: int
    castles: int
    circle: int
    moment: int
    rows: int


SMALLER: Final = (13, 10, 7, 5)
"""A stage of the game begins when the circle has so many regions."""
STAGES: Final = 2 * (len(SMALLER) + 1)
"""Stages with layers of their own: by the size of the circle, and with a disc due or not."""

# ------------------------------------------------------------------------------------ sizes


def table_rows(table: Table, teams: int) -> int:
    """Return the rows of one table."""
    return math.prod(size or teams + 1 for _, size in table.keys)


def copies(table: Table, players: int) -> int:
    """Return the number of copies of the table: one for each role, for each team's view and so on.

    Of two teams one is as much stronger as the other is weaker: one view is enough.
    """
    teams, last = rules.TEAMS[players], table.per.split()[-1]
    views = teams if teams > 2 else 1
    return {"view": views, "role": players, "pair": players - 1, "rival": teams - 1}.get(last, 1)


def lookups(table: Table, players: int) -> int:
    """Return the most rows that a position picks of the table and its copies."""
    per = table.per.split()[0]
    return {"region": rules.TERRITORIES, "clan": rules.CLANS}.get(per, 1) * copies(table, players)


MOST_ROWS: Final = max(sum(lookups(table, p) for table in TABLES) for p in (2, 3, 4))
"""The most rows of a position."""


@cache
def layout(players: int) -> Layout:
    """Return the start of each table in games of that number of players."""
    firsts = [0]
    for table in TABLES:
        firsts.append(firsts[-1] + copies(table, players) * table_rows(table, rules.TEAMS[players]))
    return Layout(*firsts)
