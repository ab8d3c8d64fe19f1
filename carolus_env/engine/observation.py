"""What a player observes: everything, from its own seat, with the Emperor's region first.

Perfect information, ego-centric: seats, teams and regions are counted from the viewer's
seat (clockwise), the viewer's team and the Emperor's region (clockwise, as the actions are). So
the numbers depend neither on the seat nor on the rotation of the circle. `layout` is the one
description of the entries; spaces, scales and the documentation table are made from it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import int64, uint64

from carolus_env.engine.kernels.courts import held_by
from carolus_env.engine.kernels.packed import (
    NOTHING,
    all_if,
    clan_word,
    lanes,
    one_hot,
    ones_of,
    place_in_word,
    put,
    put_circle,
    put_clans,
    put_last_circle,
    put_one,
    spread,
    turn_to,
    turned,
    where_equal,
)
from carolus_env.engine.kernels.regions import region_at, strength
from carolus_env.engine.rules import (
    CASTLES_TO_WIN,
    CLANS,
    DICE,
    DISCS,
    MAX_PLAYERS,
    OVER,
    RESERVE,
    TEAMS,
    TERRITORIES,
)
from carolus_env.engine.state import Ints, States, as_states, check_rows, common_players, count_rows
from carolus_env.system.compiler import entry, kernel, rare

VERSION: Final = 2
"""Of the layout; a trained model names the one it was made for.

Version 1 had `region_castles`, `region_paladins` and `region_strength` region by region; version 2
has them team by team and clan by clan.
"""

ROUND_LIMIT: Final = 100  # rounds are counted up to here, to fit a byte and a scale
COUNTABLE: Final = 48  # with at most this many paladins of each clan, every strength fits a byte
LAST_SEAT: Final = MAX_PLAYERS - 1
assert CLANS * COUNTABLE + TERRITORIES <= 255


class Block(NamedTuple):
    """A run of entries: ``shape`` values from 0 to ``high``, divided by ``scale`` as float32."""

    name: str
    shape: tuple[int, ...]
    high: int
    scale: float
    meaning: str


@cache
def layout(players: int) -> tuple[Block, ...]:
    """The observation of a game of 2, 3 or 4 players, block by block, in order."""
    if players not in (2, 3, 4):
        raise ValueError(f"players must be 2, 3 or 4, got {players!r}")
    teams, seats = TEAMS[players], (players,)
    regions, goal = (TERRITORIES,), CASTLES_TO_WIN[players]
    return (
        Block("phase", (4,), 1, 1, "one-hot: crown, disc, place, move; all 0 in other phases"),
        Block(
            "to_move",
            seats,
            1,
            1,
            "one-hot: seat that decides or rolls; all 0 when the game is over",
        ),
        Block("placements_left", (), DICE[players], DICE[players], "paladins still to play"),
        Block("round", (), ROUND_LIMIT, ROUND_LIMIT, "rounds begun, counted up to 100"),
        Block(
            "rounds_left",
            (),
            ROUND_LIMIT,
            ROUND_LIMIT,
            "rounds left before the cut-off, this one included, counted up to 100",
        ),
        Block("crown_deferred", (), 1, 1, "option crown_choice is deferred"),
        Block("supply", (CLANS,), 197, 40, "paladins of each clan in the supply"),
        Block("partner", seats, 1, 1, "seat is on the viewer's team (the viewer too)"),
        Block(
            "turn_order", (players, players), 1, 1, "one-hot for each seat: its place in `order`"
        ),
        Block("disc_played", (players, DISCS), 1, 1, "one-hot for each seat: disc of this round"),
        Block("discs_in_hand", (players, DISCS), 1, 1, "1 for each disc in the hand of the seat"),
        Block("crowns", seats, 9, RESERVE[players], "undecided crowns of each seat"),
        Block("reserves", (players, CLANS), 9, RESERVE[players], "paladins in each reserve"),
        Block("courts", (players, CLANS), 197, 10, "paladins in each court"),
        Block("control", (players, CLANS), 1, 1, "1 where the seat controls the clan"),
        Block("castles", (teams,), TERRITORIES, goal, "castles in play of each team"),
        Block("region_exists", regions, 1, 1, "1 for each region in the circle"),
        Block("region_castles", (teams, TERRITORIES), TERRITORIES, 4, "castles by team and region"),
        Block("region_paladins", (CLANS, TERRITORIES), 200, 5, "paladins by clan and region"),
        Block(
            "region_strength",
            (teams, TERRITORIES),
            255,
            10,
            "strength by team and region, counted up to 255 (0 where no region is)",
        ),
    )


@cache
def slices(players: int) -> dict[str, slice]:
    """Where each block lies in the observation."""
    found, start = {}, 0
    for block in layout(players):
        stop = start + int(np.prod(block.shape))
        found[block.name] = slice(start, stop)
        start = stop
    return found


@cache
def length(players: int) -> int:
    """Number of entries."""
    return sum(int(np.prod(block.shape)) for block in layout(players))


@cache
def highs(players: int) -> npt.NDArray[np.uint8]:
    """Largest value of each entry as an integer, ``(length,)`` uint8; the smallest is 0."""
    return _each_entry(players, "high").astype(np.uint8)


@cache
def scales(players: int) -> npt.NDArray[np.float32]:
    """What each entry is multiplied by as float32, ``(length,)``."""
    return (1.0 / _each_entry(players, "scale")).astype(np.float32)


def _each_entry(players: int, attribute: str) -> npt.NDArray[np.float64]:
    return np.concatenate(
        [np.full(int(np.prod(b.shape)), getattr(b, attribute), float) for b in layout(players)]
    )


def unpack(observation: npt.NDArray[Any], players: int) -> dict[str, npt.NDArray[Any]]:
    """The named blocks of one observation or a batch of them, as views of the right shape."""
    batch = observation.shape[:-1]
    return {
        block.name: observation[..., slices(players)[block.name]].reshape(batch + block.shape)
        for block in layout(players)
    }


def layout_table(players: int) -> str:
    """The layout as a Markdown table (docs/observation.md holds it; a test compares)."""
    lines = ["| entries | block | shape | range | scale | meaning |", "| --- |" + " --- |" * 5]
    for block in layout(players):
        where = slices(players)[block.name]
        entries = f"{where.start}-{where.stop - 1}" if block.shape else str(where.start)
        shape = "x".join(map(str, block.shape)) or "-"
        lines.append(
            f"| {entries} | `{block.name}` | {shape} | 0 to {block.high} | "
            f"/ {block.scale:g} | {block.meaning} |"
        )
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------ observing


def observe(
    states: States,
    viewers: Ints | None = None,
    *,
    dtype: npt.DTypeLike = np.uint8,
    rows: Ints | None = None,
    out: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Observations of games with the same number of players.

    Args:
        states: ``(N,)`` games.
        viewers: ``(M,)`` observing seats; None: the seat to move (seat 0 when a game is over).
        dtype: uint8 for the integers of `layout`, float32 for the scaled ones.
        rows: ``(M,)`` games to observe; None: all.
        out: ``(M, length)`` of that dtype to write into instead of a new array.

    Returns:
        ``(M, length(players))`` of ``dtype``; ``out`` where it was given.

    Raises:
        ValueError: for mixed numbers of players, or a viewer, dtype or ``out`` that does not fit.
    """
    as_states(states)
    picked = check_rows(rows, len(states))
    count = count_rows(picked, states)
    players = common_players(states, "observations")
    dtype = np.dtype(dtype)
    if dtype not in (np.uint8, np.float32):
        raise ValueError(f"an observation is of dtype uint8 or float32, not {dtype}")
    shape = (count, length(players))
    if out is None:
        out = np.empty(shape, dtype)
    elif out.shape != shape or out.dtype != dtype or not out.flags.carray:
        raise ValueError(
            f"out must be a contiguous, writeable {dtype} array of shape {shape}, "
            f"got shape {out.shape} and dtype {out.dtype}"
        )
    if viewers is None:
        seats = (states["player"] if rows is None else states["player"][picked]).astype(np.int64)
    else:
        given = np.asarray(viewers)
        numbers = given.dtype.kind in "iu" or not given.size
        if given.shape != (count,) or not numbers or ((given < 0) | (given >= players)).any():
            raise ValueError(f"viewers must be {count} seats from 0 to {players - 1}")
        seats = np.array(given, np.int64)
    if dtype == np.uint8:
        _observe(states, picked, seats, out)
    else:
        one_row = np.empty((1, shape[1]), np.uint8)
        _observe_scaled(states, picked, seats, scales(players), one_row, out)
    return out


@entry
def _observe(states, rows, viewers, out):
    for i in range(out.shape[0]):
        g = rows[i] if rows.shape[0] > 0 else i
        write_observation(states[g], viewers[i], out, i)


@entry
def _observe_scaled(states, rows, viewers, scale, whole, out):
    for i in range(out.shape[0]):
        g = rows[i] if rows.shape[0] > 0 else i
        write_observation(states[g], viewers[i], whole, 0)
        scale_observation(whole, 0, scale, out, i)


@kernel
def scale_observation(whole, whole_row, scale, out, row):
    """``out[row]`` is the row of whole numbers times its scales."""
    for i in range(out.shape[1]):
        out[row, i] = np.float32(whole[whole_row, i]) * scale[i]


@kernel
def write_observation(s, viewer, out, row):
    """Write the blocks of `layout` into ``out[row]``."""
    if s["players"] == 2:  # three times the same, so that the compiler knows where each block lies
        write_blocks(s, viewer, 2, 2, out, row)
    elif s["players"] == 3:
        write_blocks(s, viewer, 3, 3, out, row)
    else:
        write_blocks(s, viewer, 4, 2, out, row)
    if s["paladins_per_clan"] > COUNTABLE:
        write_strengths(s, viewer, out, row)


@kernel
def write_blocks(s, viewer, players, teams, out, row):
    """The blocks, one after the other.

    A block of few entries is written as eight, of which the last belong to the blocks after it;
    these come later.
    """
    viewer = int64(viewer) & LAST_SEAT
    put(one_hot(int64(s["phase"])), out, row, 0)
    at = 4
    steps = clockwise_from(viewer, int64(s["player"]), players)
    put(one_hot(0 if s["phase"] == OVER else steps + 1), out, row, at)
    at += players

    word = place_in_word(s["placements_left"], 0)
    word |= place_in_word(min(int64(s["round"]), ROUND_LIMIT), 1)
    word |= place_in_word(rounds_left(s), 2)
    put(word | place_in_word(s["crown_deferred"], 3), out, row, at)
    at += 4
    put(clan_word(s["supply"]), out, row, at)
    at += CLANS

    partner_at = at  # partner, turn_order, disc_played, discs_in_hand, crowns
    order_at = partner_at + players
    disc_at = order_at + players * players
    hand_at = disc_at + players * DISCS
    crowns_at = hand_at + players * DISCS
    reserves_at = crowns_at + players  # reserves, courts, control
    courts_at = reserves_at + players * CLANS
    control_at = courts_at + players * CLANS
    put(NOTHING, out, row, order_at)
    put(NOTHING, out, row, order_at + 8)
    own_team = int64(s["team"][viewer])
    control = clan_word(s["control"])
    clans = NOTHING  # bit k of each count: the clan is held by team k, counted from the viewer's
    seat = viewer
    for k in range(players):
        side = clockwise_from(own_team, int64(s["team"][seat]), teams)
        held = held_by(control, seat)
        clans |= held << uint64(side)
        put_one(uint64(side == 0), out, row, partner_at + k)
        place_of = clockwise_from(viewer, int64(s["order"][k]), players)
        put_one(one_hot(1), out, row, order_at + place_of * players + k)
        put_clans(one_hot(int64(s["discs_played"][seat])), out, row, disc_at + k * DISCS)
        put_clans(spread(s["discs_in_hand"][seat]), out, row, hand_at + k * DISCS)
        put_one(uint64(s["crowns"][seat]), out, row, crowns_at + k)
        put_clans(clan_word(s["reserves"][seat]), out, row, reserves_at + k * CLANS)
        put_clans(clan_word(s["courts"][seat]), out, row, courts_at + k * CLANS)
        put_clans(held, out, row, control_at + k * CLANS)
        seat = next_in_circle(seat, players) & LAST_SEAT
    at = control_at + players * CLANS

    next_team = next_in_circle(own_team, teams)
    word = place_in_word(s["castles"][own_team], 0) | place_in_word(s["castles"][next_team], 1)
    if teams == 3:
        word |= place_in_word(s["castles"][next_in_circle(next_team, teams)], 2)
    put(word, out, row, at)
    at += teams

    count = int64(s["regions"])
    turn = turn_to(int64(s["emperor"]), count)
    put_circle(ones_of(count), out, row, at)
    at += TERRITORIES
    owners = turned(s["region_owner"], turn)
    castles = turned(s["region_castles"], turn)
    own = castles_of_team(castles, owners, own_team)
    others = without(castles, own)
    third = others
    put_circle(own, out, row, at)
    if teams == 3:
        others = castles_of_team(castles, owners, next_team)
        third = without(third, others)
        put_circle(others, out, row, at + TERRITORIES)
        put_circle(third, out, row, at + 2 * TERRITORIES)
    else:
        put_circle(others, out, row, at + TERRITORIES)
    at += teams * TERRITORIES

    if s["paladins_per_clan"] > COUNTABLE:
        clans = NOTHING  # a sum could be more than a byte holds: `write_strengths` writes them
    for clan in range(CLANS):
        paladins = turned(s["region_paladins"][clan], turn)
        put_circle(paladins, out, row, at)
        at += TERRITORIES
        own = joined(own, paladins, all_if(clans, 8 * clan))
        others = joined(others, paladins, all_if(clans, 8 * clan + 1))
        third = joined(third, paladins, all_if(clans, 8 * clan + 2))
    put_circle(own, out, row, at)
    if teams == 3:
        put_circle(others, out, row, at + TERRITORIES)
        put_last_circle(third, out, row, at + 2 * TERRITORIES)
    else:
        put_last_circle(others, out, row, at + TERRITORIES)


@kernel
def castles_of_team(castles, owners, team):
    """A circle of the team's castles only."""
    return (
        castles[0] & lanes(where_equal(owners[0], team)),
        castles[1] & lanes(where_equal(owners[1], team)),
    )


@kernel
def joined(circle, more, kept):
    """The sums of two circles' counts; of the second one only what ``kept`` keeps."""
    return circle[0] + (more[0] & kept), circle[1] + (more[1] & kept)


@kernel
def without(circle, part):
    """The circle without a part of its counts."""
    return circle[0] ^ part[0], circle[1] ^ part[1]


@rare
def write_strengths(s, viewer, out, row):
    """The last block again, for games in which a strength may be more than a byte holds."""
    teams = int64(s["teams"])
    at = out.shape[1] - teams * TERRITORIES
    for k in range(teams):
        team = (int64(s["team"][viewer]) + k) % teams
        for i in range(int64(s["regions"])):
            power = strength(s, region_at(s, i), team)
            out[row, at + k * TERRITORIES + i] = min(power, 255)


@kernel
def next_in_circle(place, count):
    """The place after ``place`` in a circle of ``count``."""
    return place + 1 if place + 1 < count else 0


@kernel
def clockwise_from(start, place, count):
    """How many places clockwise from ``start`` in a circle of ``count`` is ``place``."""
    steps = place - int64(start)
    return steps if steps >= 0 else steps + count


@kernel
def rounds_left(s):
    """Rounds until the cut-off, the current one included; ROUND_LIMIT for that many or never."""
    if s["max_rounds"] == 0:
        return ROUND_LIMIT
    return min(int64(s["max_rounds"]) - max(int64(s["round"]), 1) + 1, ROUND_LIMIT)
