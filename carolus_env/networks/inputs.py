"""The inputs of a network for a position: rows of tables, and the planner's features.

A position picks one row of a table for each region, each clan, each hand and so on (`TABLES`). The
network adds the rows up (`network`), so a position costs as many additions as it has rows, however
long the tables are. All is from the point of view of the player to move:

- a *role* is a player: 0 the player to move, then the others clockwise. Of four players, 2 is the
  partner, 1 and 3 are the opponents, clockwise;
- a *team role* is a team: 0 the team of the player to move, then the others clockwise.
"""

from __future__ import annotations

import math
from collections import namedtuple
from functools import cache
from itertools import accumulate
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from carolus_env.engine import rules
from carolus_env.engine.kernels.courts import controlling_team, most_elsewhere, reserve_size
from carolus_env.engine.kernels.regions import count_at, heir_of, paladins_out, strengths
from carolus_env.engine.kernels.turns import acts_this_round, write_seats
from carolus_env.engine.rules import CLANS, DISC, DISCS, MAX_PLAYERS, NOBODY
from carolus_env.planning.heuristic import FEATURES, HIGHEST_DISC, write_features
from carolus_env.system.arrays import F32, F64, I16, I32, I64, Int, allocate, float32, int64
from carolus_env.system.compiler import inlined, kernel, separate

HANDS: Final = 1 << DISCS
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
    per: str  # what looks a row up; ``view``, ``role``, ``pair`` and ``rival`` have a table each
    keys: tuple[tuple[str, int], ...]  # and their numbers of values; 0: the teams and nobody
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
    Table("disc", "role", (("kind", KINDS), ("place", MAX_PLAYERS), ("number", DISCS + 1), ("acts", 2)),
          "the disc played, the place in the order, and whether the player is still to act this round"),
    Table("discs", "pair", (("kind", KINDS), ("number", DISCS + 1), ("other's", DISCS + 1), ("acts", 2), ("other acts", 2)),
          "the discs played by the player to move and another, and whether they are still to act"),
    Table("paladins", "role", (("reserve", 13), ("crowns", 4), ("acts", 2)),
          "paladins and crowns in the reserve, and whether the player is still to act this round"),
    Table("castles", "rival", (("castles", MOST_CASTLES), ("other's", MOST_CASTLES)),
          "castles in play of the team and of another team"),
    Table("circle", "position", (("regions", rules.TERRITORIES + 1), ("lead", 3)),
          "regions in the circle, and whether the team has more castles than every other, as many, or fewer"),
    Table("moment", "position", (("phase", len(rules.PHASE_NAMES)), ("place", MAX_PLAYERS), ("round", DISCS)),
          "what is due, the place of the player to move in the order, and the round since hands were full"),
)
# fmt: on


_NAMES = [*(table.name for table in TABLES), "rows"]
Layout: Any = namedtuple("Layout", _NAMES)  # type: ignore[misc]
"""Starts of the tables by name, and the number of all rows; see `layout`."""
SMALLER: Final = (13, 10, 7, 5)  # a stage of the game begins when the circle has so many regions
STAGES: Final = 2 * (len(SMALLER) + 1)
"""Stages with layers of their own: by the size of the circle, and with a disc due or not."""


def table_rows(table: Table, teams: int) -> int:
    """Return the rows of one table."""
    return math.prod(size or teams + 1 for _, size in table.keys)


def copies(table: Table, players: int) -> int:
    """Return the number of copies of the table: for each role, for each team's view and so on."""
    teams, last = rules.TEAMS[players], table.per.split()[-1]
    views = teams if teams > 2 else 1  # of two teams one's lead is the other's lag
    return {"view": views, "role": players, "pair": players - 1, "rival": teams - 1}.get(last, 1)


def lookups(table: Table, players: int) -> int:
    """Return the most rows that a position picks of the table and its copies."""
    per = table.per.split()[0]
    return {"region": rules.TERRITORIES, "clan": CLANS}.get(per, 1) * copies(table, players)


MOST_ROWS: Final = max(sum(lookups(table, p) for table in TABLES) for p in (2, 3, 4))
"""The most rows of a position."""


@cache
def layout(players: int) -> Any:
    """Return the start of each table in games of that number of players."""
    teams = rules.TEAMS[players]
    sizes = (copies(table, players) * table_rows(table, teams) for table in TABLES)
    return Layout(*accumulate(sizes, initial=0))


# ------------------------------------------------------------------------------------ one position

_SCALES = np.array([feature.scale for feature in FEATURES], np.float32)
_CANNOT = -1000  # below all that is compared with it


class Inputs(NamedTuple):
    """The inputs of the network for one position, and scratch to compute them."""

    length: Annotated[I64, 1]  # number of rows
    rows: Annotated[I32, MOST_ROWS]  # the rows
    stage: Annotated[I64, 1]  # stage of the game, from 0 to `STAGES` - 1
    features: Annotated[F32, rules.MAX_TEAMS * len(FEATURES)]  # the planner's, scaled, by role
    team_features: Annotated[F64, rules.MAX_TEAMS + 1, len(FEATURES)]  # scratch: of each team
    seats: Annotated[I64, MAX_PLAYERS]  # scratch: the seat of each role
    discs: Annotated[I64, MAX_PLAYERS, 2]  # scratch: by role, kind of reach and its disc
    # Scratch: what each role can add to a region's strength in a turn: after it took a clan,
    # besides that clan's paladins there, and at last by its own clans.
    spare: Annotated[I64, MAX_PLAYERS, CLANS + 1]
    taken: Annotated[I64, CLANS]  # scratch: growth of a margin by a paladin of a clan taken


# The rows of a copy of each table that has several; none of these depends on the number of teams.
_COPY: Any = Layout._make([*(table_rows(table, 2) for table in TABLES), 0])


@kernel
def team_role(s: np.void, team: Int) -> Int:
    """Return the team's role; NOBODY stays NOBODY."""
    teams = int64(s["teams"])
    role = (team - int64(s["team"][s["player"]]) + teams) % teams
    return NOBODY if team == NOBODY else role


@kernel
def team_in_role(s: np.void, role: Int) -> Int:
    """Return the team that has the role."""
    return (int64(s["team"][s["player"]]) + role) % int64(s["teams"])


@kernel
def _within(number: Int, most: Int) -> Int:
    """Return the number, between ``-most`` and ``most``."""
    return min(max(number, -most), most)


# ------------------------------------------------------------------------------------ rows


@kernel
def _put(inputs: Inputs, count: Int, row: Int) -> Int:
    """Add a row; returns the count."""
    inputs.rows[count] = row
    return count + 1


@inlined
def _write_turns(s: np.void, inputs: Inputs) -> None:
    """Write what each player can do in its next turn: ``discs``, ``spare`` and ``taken``."""
    players, phase = int64(s["players"]), s["phase"]
    dice = rules.DICE[players]
    for clan in range(CLANS):  # what one of two teams loses the other gains
        inputs.taken[clan] = 1 + int64(s["teams"] == 2 and s["control"][clan] != NOBODY)
    for place in range(players):
        seat = int64(s["order"][place])
        role = 0
        while inputs.seats[role] != seat:
            role += 1
        hand = int64(s["discs_in_hand"][seat])
        highest = HIGHEST_DISC[hand] if hand > 0 else DISCS
        played = int64(s["discs_played"][seat])
        acts = s["round"] > 0 and (acts_this_round(s, place) or (phase == DISC and played > 0))
        inputs.discs[role, 0] = NOW if acts else (CHOOSING if phase == DISC else LATER)
        inputs.discs[role, 1] = played if acts else highest
    for role in range(players):
        seat = inputs.seats[role]
        team = int64(s["team"][seat])
        own = 0
        for clan in range(CLANS):
            if controlling_team(s, clan) == team:
                own += int64(s["reserves"][seat, clan])
        inputs.spare[role, CLANS] = min(dice, own)
        for clan in range(CLANS):
            inputs.spare[role, clan] = _CANNOT
            at_hand = int64(s["reserves"][seat, clan])
            if at_hand == 0 or controlling_team(s, clan) == team:
                continue
            most, _ = most_elsewhere(s, seat, clan)
            needed = max(most + 1 - int64(s["courts"][seat, clan]), 1)
            if needed <= min(at_hand, dice):
                inputs.spare[role, clan] = min(dice - needed, own + at_hand - needed)


@inlined
def _write_region_rows(s: np.void, layout: Any, inputs: Inputs, count: Int) -> Any:
    """Write rows of the tables region, reach and border; return the count."""
    players, teams = int64(s["players"]), int64(s["teams"])
    n, emperor = int64(s["regions"]), int64(s["emperor"])
    views = teams if teams > 2 else 1
    most_sizes = MOST_SIZES if teams == 2 else FEWER_SIZES
    most_margin = MOST_MARGIN if teams == 2 else FEWER_MARGIN
    circle_0 = strengths(s, team_in_role(s, 0))
    circle_1 = strengths(s, team_in_role(s, 1))
    circle_2 = strengths(s, team_in_role(s, 2)) if teams > 2 else circle_1
    owner_before = team_role(s, int64(s["region_owner"][emperor]))
    for steps in range(1, n + 1):
        region = emperor + steps
        region = region - n if region >= n else region
        owner = team_role(s, int64(s["region_owner"][region]))
        castles = int64(s["region_castles"][region])
        size = min(castles, most_sizes)
        power_0 = count_at(circle_0, region) + castles * int64(owner == 0)
        power_1 = count_at(circle_1, region) + castles * int64(owner == 1)
        power_2 = 0
        if teams > 2:
            power_2 = count_at(circle_2, region) + castles * int64(owner == 2)
        margin_0 = power_0 - max(power_1, power_2)
        margin_1 = power_1 - max(power_0, power_2)
        margin_2 = power_2 - max(power_0, power_1)
        distance = steps - 1
        distance = MOST_AHEAD if steps > MOST_AHEAD else distance
        distance = MOST_AHEAD + 1 if steps > MOST_AHEAD + 3 else distance
        distance = MOST_AHEAD + 2 if steps == n else distance
        for view in range(views):
            margin = margin_0 if view == 0 else (margin_1 if view == 1 else margin_2)
            owned = size + (0 if owner in (view, NOBODY) else MOST_SIZES)
            row = distance * MARGINS + _within(margin, most_margin) + MOST_MARGIN
            row = row * OWNERS + owned
            count = _put(inputs, count, layout.region + view * _COPY.region + row)
        for role in range(players):
            view = team_role(s, int64(s["team"][inputs.seats[role]]))
            margin = margin_0 if view == 0 else (margin_1 if view == 1 else margin_2)
            most = inputs.spare[role, CLANS]
            for clan in range(CLANS):
                there = int64(s["region_paladins"][clan, region])
                most = max(most, inputs.taken[clan] * there + inputs.spare[role, clan])
            reach = inputs.discs[role, 0] if steps <= inputs.discs[role, 1] else NOT
            owned = size + (0 if owner in (view, NOBODY) else MOST_SIZES)
            after_turn = min(max(margin + most, LOST), WON) - LOST
            row = (reach * AFTERS + after_turn) * OWNERS + owned
            count = _put(inputs, count, layout.reach + role * _COPY.reach + row)
        strongest = heir_of(owner, power_0, power_1, power_2)
        after = region + 1
        after = 0 if after == n else after
        owner_after = team_role(s, int64(s["region_owner"][after]))
        row, each = int64(steps <= DISCS), teams + 1
        row = (row * each + owner + 1) * each + strongest + 1
        row = (row * each + owner_before + 1) * each + owner_after + 1
        count = _put(inputs, count, layout.border + row)
        owner_before = owner
    return count


@inlined
def _write_clan_rows(s: np.void, layout: Any, inputs: Inputs, count: Int) -> Any:
    """Write rows of the table clan; return the count."""
    players = int64(s["players"])
    most_lead = MOST_LEAD if s["teams"] == 2 else FEWER_LEAD
    for clan in range(CLANS):
        out = min(paladins_out(s, clan) // 4, 3)
        holder = int64(s["control"][clan])
        for role in range(players):
            seat = inputs.seats[role]
            team = int64(s["team"][seat])
            most, threat = most_elsewhere(s, seat, clan)
            held = 0
            if holder != NOBODY:
                held = 1 if holder == seat else (2 if int64(s["team"][holder]) == team else 3)
            lead = _within(int64(s["courts"][seat, clan]) - most, most_lead)
            reserve = min(int64(s["reserves"][seat, clan]), 3)
            row = (held * LEADS + lead + MOST_LEAD) * 4 + reserve
            row = (row * 3 + min(threat, 2)) * 4 + out
            count = _put(inputs, count, layout.clan + role * _COPY.clan + row)
    return count


@inlined
def _write_player_rows(s: np.void, layout: Any, inputs: Inputs, count: Int) -> Any:
    """Write rows of the tables about hands, discs and reserves; return the count."""
    players = int64(s["players"])
    kind = OPENING if s["phase"] == DISC else ACTION
    kind = SET_UP if s["round"] == 0 else kind
    hand_0 = int64(s["discs_in_hand"][inputs.seats[0]])
    disc_0 = int64(s["discs_played"][inputs.seats[0]])
    acts_0 = int64(inputs.discs[0, 0] == NOW)
    for role in range(players):
        seat = inputs.seats[role]
        hand, disc = int64(s["discs_in_hand"][seat]), int64(s["discs_played"][seat])
        acts = int64(inputs.discs[role, 0] == NOW)
        place = 0
        while int64(s["order"][place]) != seat:
            place += 1
        row = layout.hand + role * _COPY.hand + hand * 2 + int64(disc > 0)
        count = _put(inputs, count, row)
        row = ((kind * MAX_PLAYERS + place) * (DISCS + 1) + disc) * 2 + acts
        count = _put(inputs, count, layout.disc + role * _COPY.disc + row)
        row = min(reserve_size(s, seat), 12) * 4 + min(int64(s["crowns"][seat]), 3)
        count = _put(inputs, count, layout.paladins + role * _COPY.paladins + row * 2 + acts)
        if role > 0:
            row = layout.hands + (role - 1) * _COPY.hands + hand_0 * HANDS + hand
            count = _put(inputs, count, row)
            row = ((kind * (DISCS + 1) + disc_0) * (DISCS + 1) + disc) * 4 + acts_0 * 2 + acts
            count = _put(inputs, count, layout.discs + (role - 1) * _COPY.discs + row)
    return count


@inlined
def _write_position_rows(s: np.void, layout: Any, inputs: Inputs, count: Int) -> Any:
    """Write rows of the tables castles, circle and moment; return the count."""
    most, own = 0, min(int64(s["castles"][team_in_role(s, 0)]), MOST_CASTLES - 1)
    for rival in range(1, int64(s["teams"])):
        castles = min(int64(s["castles"][team_in_role(s, rival)]), MOST_CASTLES - 1)
        most = max(most, castles)
        row = layout.castles + (rival - 1) * _COPY.castles + own * MOST_CASTLES + castles
        count = _put(inputs, count, row)
    lead = 1 + int64(own > most) - int64(own < most)
    count = _put(inputs, count, layout.circle + int64(s["regions"]) * 3 + lead)
    row = int64(s["phase"]) * MAX_PLAYERS + int64(s["turn"])
    return _put(inputs, count, layout.moment + row * DISCS + int64(s["round"]) % DISCS)


@separate
def encode(s: np.void, layout: Any, inputs: Inputs) -> None:
    """Write the inputs of the network for ``s``, a game that is not over."""
    write_seats(s, int64(s["player"]), inputs.seats)
    _write_turns(s, inputs)
    count = _write_clan_rows(s, layout, inputs, 0)
    count = _write_player_rows(s, layout, inputs, count)
    count = _write_position_rows(s, layout, inputs, count)
    inputs.length[0] = _write_region_rows(s, layout, inputs, count)  # last: their number changes
    inputs.stage[0] = int64(s["phase"] == DISC) * (len(SMALLER) + 1)
    for regions in SMALLER:
        inputs.stage[0] += int64(s["regions"] <= regions)
    write_features(s, inputs.team_features)
    width = _SCALES.shape[0]
    for role in range(int64(s["teams"])):
        team = team_in_role(s, role)
        for k in range(width):
            inputs.features[role * width + k] = _SCALES[k] * float32(inputs.team_features[team, k])


@kernel
def copy_inputs(count: Int, rows: Any, features: F32, to_rows: Any, to_features: F32) -> None:
    """Copy rows and features, as many as both have."""
    for k in range(count):
        to_rows[k] = rows[k]
    for k in range(min(features.shape[0], to_features.shape[0])):
        to_features[k] = features[k]


class InputArrays(NamedTuple):
    """The inputs of the network for N positions."""

    lengths: Annotated[I64, "n"]  # number of rows; 0: the game is over there, or nothing was kept
    rows: Annotated[I16, "n", MOST_ROWS]  # the rows
    features: Annotated[F32, "n", "features"]  # the planner's, scaled, of each team role
    stages: Annotated[I64, "n"]  # the stage of the game
    first_team: Annotated[I64, "n"]  # the team with role 0

    @classmethod
    def new(cls, n: int, players: int) -> InputArrays:
        """Allocate memory for ``n`` positions of games with that number of players."""
        return allocate(cls, n=n, features=rules.TEAMS[players] * len(FEATURES))


assert all(layout(players).rows < 2**15 for players in (2, 3, 4)), "rows are kept as int16"


@separate
def keep_inputs(s: np.void, inputs: Inputs, kept: InputArrays, i: Int) -> None:
    """Copy the inputs for ``s``, which were written last, to position ``i``."""
    kept.lengths[i], kept.stages[i] = inputs.length[0], inputs.stage[0]
    kept.first_team[i] = int64(s["team"][s["player"]])
    copy_inputs(inputs.length[0], inputs.rows, inputs.features, kept.rows[i], kept.features[i])


@separate
def restore_inputs(kept: InputArrays, i: Int, inputs: Inputs) -> None:
    """Copy back what `keep_inputs` has kept at position ``i``."""
    inputs.length[0], inputs.stage[0] = kept.lengths[i], kept.stages[i]
    copy_inputs(kept.lengths[i], kept.rows[i], kept.features[i], inputs.rows, inputs.features)
