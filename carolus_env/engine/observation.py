"""Observations of a player: everything, from its own seat, with the Emperor's region first.

Seats, teams and regions are counted from the viewer's seat, the viewer's team and the Emperor's
region, clockwise, as the actions are. So the numbers depend neither on the seat nor on the rotation
of the circle. A block is declared once, in `layout`, and written to ``out[at.NAME]`` and the
entries after it, in `write_game`, `write_seat` or `write_regions`.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine import rules, state
from carolus_env.engine.kernels import courts, regions
from carolus_env.system.arrays import F32, I8, I64, U8, Bits, Int, Records, int64, uint64
from carolus_env.system.compiler import entry, kernel, separate
from carolus_env.system.options import array
from carolus_env.system.untrusted import shown

VERSION: Final = 1
"""Number of the layout, written into models: a changed layout gets a new one."""

ROUND_LIMIT: Final = 100  # rounds are counted up to here, to fit a byte and a scale
COUNTABLE: Final = 48  # with at most this many paladins of each clan, every strength fits a byte
LAST_SEAT: Final = rules.MAX_PLAYERS - 1
assert rules.CLANS * COUNTABLE + rules.TERRITORIES <= 255

_FIRST = np.array(
    [(1 << 8 * min(n, regions.WORD)) - 1 for n in range(rules.TERRITORIES + 1)], np.uint64
)
"""``_FIRST[n]`` keeps the first n counts of a word, at most all."""
_1, _63 = uint64(1), uint64(63)


class Block(NamedTuple):
    """A run of entries: ``shape`` values from 0 to ``high``, divided by ``scale`` as float32."""

    name: str
    shape: tuple[int, ...]
    high: int
    scale: float
    meaning: str


def check_players(players: int) -> None:
    """Check a number of players."""
    if players not in (2, 3, 4):
        raise ValueError(f"players must be 2, 3 or 4, got {players!r}")


@cache
def layout(players: int) -> tuple[Block, ...]:
    """Return the blocks of an observation in games of 2, 3 or 4 players, in order."""
    check_players(players)
    p, r, clans, discs = players, rules.TERRITORIES, rules.CLANS, rules.DISCS
    teams, dice, reserve = rules.TEAMS[p], rules.DICE[p], rules.RESERVE[p]
    most = {field.name: field.high for field in state.FIELDS}
    # fmt: off
    return (
        Block("phase", (4,), 1, 1, "one-hot: crown, disc, place, move; all 0 in other phases"),
        Block("to_move", (p,), 1, 1, "one-hot: seat that decides or rolls; all 0 when the game is over"),
        Block("placements_left", (), dice, dice, "paladins still to play"),
        Block("round", (), ROUND_LIMIT, ROUND_LIMIT, "rounds begun, counted up to 100"),
        Block("rounds_left", (), ROUND_LIMIT, ROUND_LIMIT, "rounds left before the cut-off, this one included, counted up to 100"),
        Block("crown_deferred", (), 1, 1, "option crown_choice is deferred"),
        Block("supply", (clans,), most["supply"], 40, "paladins of each clan in the supply"),
        Block("partner", (p,), 1, 1, "seat is on the viewer's team (the viewer too)"),
        Block("turn_order", (p, p), 1, 1, "one-hot for each seat: its place in `order`"),
        Block("disc_played", (p, discs), 1, 1, "one-hot for each seat: disc of this round"),
        Block("discs_in_hand", (p, discs), 1, 1, "1 for each disc in the hand of the seat"),
        Block("crowns", (p,), most["crowns"], reserve, "undecided crowns of each seat"),
        Block("reserves", (p, clans), most["reserves"], reserve, "paladins in each reserve"),
        Block("courts", (p, clans), most["courts"], 10, "paladins in each court"),
        Block("control", (p, clans), 1, 1, "1 where the seat controls the clan"),
        Block("castles", (teams,), most["castles"], rules.CASTLES_TO_WIN[p], "castles in play of each team"),
        Block("region_exists", (r,), 1, 1, "1 for each region in the circle"),
        Block("region_castles", (teams, r), most["region_castles"], 4, "castles by team and region"),
        Block("region_paladins", (clans, r), most["region_paladins"], 5, "paladins by clan and region"),
        Block("region_strength", (teams, r), 255, 10, "strength by team and region, counted up to 255 (0 where no region is)"),
    )
    # fmt: on


def slices_of(blocks: Iterable[Any]) -> dict[str, slice]:
    """Return the slice of each block, which has a ``name`` and a ``shape``."""
    places, start = {}, 0
    for block in blocks:
        places[block.name] = slice(start, start + math.prod(block.shape))
        start = places[block.name].stop
    return places


def slices(players: int) -> dict[str, slice]:
    """Return the slice of each block in the observation."""
    return slices_of(layout(players))


def length_of(blocks: Iterable[Any]) -> int:
    """Return the number of entries of blocks."""
    return sum(math.prod(block.shape) for block in blocks)


@cache
def length(players: int) -> int:
    """Return the number of entries."""
    return length_of(layout(players))


def highs(players: int) -> npt.NDArray[np.uint8]:
    """Return each entry's largest value as an integer, ``(length,)`` uint8; the smallest is 0."""
    return _each_entry(players, "high").astype(np.uint8)


def scales(players: int) -> npt.NDArray[np.float32]:
    """Return each entry's factor as float32, ``(length,)``."""
    return (1.0 / _each_entry(players, "scale")).astype(np.float32)


kept_scales = cache(scales)  # not to be changed


def _each_entry(players: int, attribute: str) -> npt.NDArray[np.float64]:
    blocks = layout(players)
    counts = [math.prod(block.shape) for block in blocks]
    return np.repeat([float(getattr(block, attribute)) for block in blocks], counts)


_namedtuple: Any = namedtuple  # Any: type checkers cannot know the fields
Offsets = _namedtuple("Offsets", ["players", "teams", "length", *slices(2)])
"""The sizes of an observation, and the first entry of each block by name."""


def offsets(players: int) -> Any:
    """Return the `Offsets` of games of 2, 3 or 4 players."""
    starts = {name: where.start for name, where in slices(players).items()}
    return Offsets(players=players, teams=rules.TEAMS[players], length=length(players), **starts)


# Constants of the kernels: the compiler knows where each entry lies.
OFFSETS_2, OFFSETS_3, OFFSETS_4 = offsets(2), offsets(3), offsets(4)


def unpack(observation: npt.NDArray[Any], players: int) -> dict[str, npt.NDArray[Any]]:
    """Return the named blocks of one observation or a batch, as views of the right shape."""
    batch, where = observation.shape[:-1], slices(players)
    return {
        block.name: observation[..., where[block.name]].reshape(batch + block.shape)
        for block in layout(players)
    }


# ------------------------------------------------------------------------------------ observing


def observe(
    states: state.States,
    viewers: state.Ints | None = None,
    *,
    dtype: npt.DTypeLike = np.uint8,
    rows: state.Ints | None = None,
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Encode games with the same number of players: ``(M, length(players))`` of ``dtype``.

    Args:
        states: ``(N,)`` games.
        viewers: ``(M,)`` observing seats; None: the seat to move (seat 0 when a game is over).
        dtype: uint8 for the integers of `layout`, float32 for the scaled ones.
        rows: ``(M,)`` games to observe; None: all.
        out: an array to write into, and to return, instead of a new one.
    """
    states = state.as_states(states)
    rows = state.check_rows(rows, len(states))
    players = state.common_players(states, "observations")
    dtype = observation_dtype("dtype", dtype)
    shape = (len(rows), length(players))
    if out is None:
        out = np.empty(shape, dtype)
    else:
        state.check_buffer("out", out, shape, dtype)
    if viewers is None:
        seats = states["player"][rows].astype(np.int64)
    else:
        values = array("viewers", viewers)
        integral = values.dtype.kind in "iu"
        if values.shape != shape[:1] or not integral or ((values < 0) | (values >= players)).any():
            raise ValueError(f"viewers must be {len(rows)} seats from 0 to {players - 1}")
        seats = np.array(values, np.int64)
    if dtype == np.uint8:
        _observe(states, rows, seats, out, None, None)
    else:
        _observe(states, rows, seats, np.empty((1, shape[1]), np.uint8), kept_scales(players), out)
    return out


def observation_dtype(name: str, dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the dtype of observations."""
    try:
        result = np.dtype(dtype)
    except (TypeError, ValueError):
        result = None
    if dtype is None or result not in (np.uint8, np.float32):
        raise ValueError(f"{name} must be uint8 or float32, got {shown(dtype)}")
    return result


@entry
def _observe(
    states: Records, rows: I64, viewers: I64, raw: U8, scales: F32 | None, scaled: F32 | None
) -> None:
    for i in range(rows.shape[0]):
        write_observation(states[rows[i]], viewers[i], i, raw, scales, scaled)


@kernel
def fits(s: np.void, raw: U8 | None) -> bool:
    """Return whether the observation of a game is as long as the rows it would be written to."""
    if raw is None:
        return True
    length = OFFSETS_2.length if s["players"] == 2 else OFFSETS_3.length
    return raw.shape[1] == (OFFSETS_4.length if s["players"] == 4 else length)


@kernel
def write_observation(
    s: np.void, viewer: Int, row: Int, raw: U8, scales: Any, scaled: F32 | None
) -> None:
    """Write the blocks of `layout` into ``raw[row]``; or, by way of ``raw[0]``, ``scaled[row]``."""
    out = raw[row if scaled is None else 0]
    if s["players"] == 2:
        write_blocks(s, viewer, OFFSETS_2, out)
    elif s["players"] == 3:
        write_blocks(s, viewer, OFFSETS_3, out)
    else:
        write_blocks(s, viewer, OFFSETS_4, out)
    if scaled is not None:
        for i in range(scaled.shape[1]):
            scaled[row, i] = np.float32(out[i]) * scales[i]


@kernel
def write_blocks(s: np.void, viewer: Int, at: Any, out: U8) -> None:
    """Write all blocks; ``at`` holds the offsets of `layout`, and entries not written are 0."""
    viewer = int64(viewer) & LAST_SEAT
    for i in range(at.region_exists):  # all that follow are written
        out[i] = 0
    write_game(s, viewer, at, out)
    seat = viewer
    for k in range(at.players):
        write_seat(s, viewer, seat, k, at, out)
        seat = (seat + 1 if seat + 1 < at.players else 0) & LAST_SEAT
    write_regions(s, viewer, at, out)
    if s["paladins_per_clan"] > COUNTABLE:
        write_large_strengths(s, viewer, at, out)


@kernel
def write_game(s: np.void, viewer: Int, at: Any, out: U8) -> None:
    """Write the blocks that are about the whole game or about teams."""
    phase, own_team = int64(s["phase"]), int64(s["team"][viewer])
    for k in range(4):
        out[at.phase + k] = phase == k + 1
    out[at.to_move + clockwise_from(viewer, int64(s["player"]), at.players)] = phase != rules.OVER
    out[at.placements_left] = s["placements_left"]
    out[at.round] = min(int64(s["round"]), ROUND_LIMIT)
    out[at.rounds_left] = rounds_left(s)
    out[at.crown_deferred] = s["crown_deferred"]
    for clan in range(rules.CLANS):
        out[at.supply + clan] = s["supply"][clan]
    for place in range(at.players):
        k = clockwise_from(viewer, int64(s["order"][place]), at.players)
        out[at.turn_order + k * at.players + place] = 1
    for k in range(at.teams):
        out[at.castles + k] = s["castles"][team_at(own_team, k, at.teams)]


@kernel
def write_seat(s: np.void, viewer: Int, seat: Int, k: Int, at: Any, out: U8) -> None:
    """Write the entries of one seat, which sits ``k`` clockwise from the viewer."""
    out[at.partner + k] = s["team"][seat] == s["team"][viewer]
    out[at.crowns + k] = s["crowns"][seat]
    disc, hand = int64(s["discs_played"][seat]), int64(s["discs_in_hand"][seat])
    out[at.disc_played + k * rules.DISCS + max(disc - 1, 0)] = disc > 0
    for i in range(rules.DISCS):
        out[at.discs_in_hand + k * rules.DISCS + i] = hand >> i & 1
    for clan in range(rules.CLANS):
        out[at.reserves + k * rules.CLANS + clan] = s["reserves"][seat, clan]
        out[at.courts + k * rules.CLANS + clan] = s["courts"][seat, clan]
        out[at.control + k * rules.CLANS + clan] = int64(s["control"][clan]) == seat


@kernel
def write_regions(s: np.void, viewer: Int, at: Any, out: U8) -> None:
    """Write the blocks of the regions, which are the last."""
    own_team, clans = int64(s["team"][viewer]), courts.NOTHING
    for seat in range(at.players):  # bit k of count c: clan c is held by the k-th team
        k = clockwise_from(own_team, int64(s["team"][seat]), at.teams)
        clans |= courts.clans_held(s, seat) << uint64(k)
    write_all_regions(s, own_team, clans, at.teams, out, at.region_exists)


@separate
def write_all_regions(s: np.void, own_team: Int, clans: Bits, teams: Int, out: U8, to: Int) -> None:
    """Write the first eight regions, then the last eight of 15, from entry ``to`` on."""
    for half in range(2):
        write_eight_regions(
            s, own_team, clans, (rules.TERRITORIES - regions.WORD) * half, teams, out, to
        )


@kernel
def write_eight_regions(
    s: np.void, own_team: Int, clans: Bits, first: Int, teams: Int, out: U8, to: Int
) -> None:
    """Write the entries of eight regions, from the one ``first`` steps from the Emperor's on.

    Two thirds of all entries are of regions. With a plain loop over regions, clans and teams here,
    rollouts with observations are slower by nearly a third.
    """
    count = int64(s["regions"])
    region = regions.region_at(s, first) if first < count else 0
    exist = _FIRST[max(count - first, 0)]
    paladins = (
        eight_regions(s["region_paladins"][0], region, count) & exist,
        eight_regions(s["region_paladins"][1], region, count) & exist,
        eight_regions(s["region_paladins"][2], region, count) & exist,
        eight_regions(s["region_paladins"][3], region, count) & exist,
        eight_regions(s["region_paladins"][4], region, count) & exist,
    )
    owners = eight_regions(s["region_owner"], region, count)
    castles = eight_regions(s["region_castles"], region, count) & exist
    castles_to = to + rules.TERRITORIES + first
    paladins_to = castles_to + rules.TERRITORIES * teams
    strengths_to = paladins_to + rules.TERRITORIES * rules.CLANS
    regions.write_eight(exist & courts.EACH_COUNT, out, to + first)
    for clan in range(rules.CLANS):
        regions.write_eight(paladins[clan], out, paladins_to + rules.TERRITORIES * clan)
    for k in range(rules.MAX_TEAMS):
        if k < 2 or k < teams:  # known for the first two
            power = castles & courts.lanes(courts.where_equal(owners, team_at(own_team, k, teams)))
            regions.write_eight(power, out, castles_to + rules.TERRITORIES * k)
            for clan in range(rules.CLANS):
                power += paladins[clan] & regions.all_if(clans, 8 * clan + k)
            regions.write_eight(power, out, strengths_to + rules.TERRITORIES * k)


@kernel
def eight_regions(counts: U8 | I8, region: Int, count: Int) -> Bits:
    """Return the word of eight regions clockwise from ``region`` on, in a circle of ``count``.

    Region 0 comes after the last. Where there are fewer than eight, the rest is undefined.
    """
    low, high = regions.eight_counts(counts, 0), regions.eight_counts(counts, regions.WORD)
    rest = count - region  # region 0 comes that many places after `region`
    far, wraps_late = uint64(region >> 3) * regions.ALL_BITS, uint64(rest >> 3) * regions.ALL_BITS
    start, behind = (low & ~far) | (high & far), high & ~far
    bits = uint64(8 * (region & 7))
    ahead = (start >> bits) | ((behind << _1) << (_63 - bits))
    return ahead | ((low & ~wraps_late) << uint64(8 * (rest & 7)))


@separate
def write_large_strengths(s: np.void, viewer: Int, at: Any, out: U8) -> None:
    """Write the strengths again, in games where one may be more than a byte holds."""
    for k in range(at.teams):
        team = team_at(int64(s["team"][viewer]), k, at.teams)
        for i in range(rules.TERRITORIES):
            power = (
                regions.strength(s, regions.region_at(s, i), team) if i < int64(s["regions"]) else 0
            )
            out[at.region_strength + k * rules.TERRITORIES + i] = min(power, 255)


@kernel
def team_at(own_team: Int, k: Int, teams: Int) -> Int:
    """Return the ``k``-th team, counted from the viewer's."""
    team = own_team + k
    return team - teams * int64(team >= teams)


@kernel
def clockwise_from(start: Int, end: Int, count: Int) -> Int:
    """Return the places clockwise from ``start`` to ``end`` in a circle of ``count``."""
    steps = end - int64(start)
    return steps if steps >= 0 else steps + count


@kernel
def rounds_left(s: np.void) -> Int:
    """Return the rounds until the cut-off, this one included; at most ROUND_LIMIT."""
    if s["max_rounds"] == 0:
        return ROUND_LIMIT
    return min(int64(s["max_rounds"]) - max(int64(s["round"]), 1) + 1, ROUND_LIMIT)
