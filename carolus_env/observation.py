"""What a player sees: everything, from the own seat, with the Emperor's region first.

Perfect information, seen ego-centrically: seats, teams and regions are counted from the viewer's
seat (clockwise), the viewer's team and the Emperor's region (clockwise, as the actions are). So
neither the seat nor the rotation of the circle is left in the numbers. `layout` is the one
description of the entries; spaces, scales and the documentation table are made from it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import int64

from carolus_env.compiler import entry, kernel
from carolus_env.kernels.courts import clans_held
from carolus_env.kernels.packed import ROOM, clan_word, lanes, put, spread, sum_of
from carolus_env.rules import (
    CASTLES_TO_WIN,
    CLANS,
    CROWN_CHOICE,
    DICE,
    DISCS,
    MAX_PLAYERS,
    MOVE,
    OVER,
    RESERVE,
    TEAMS,
    TERRITORIES,
)
from carolus_env.state import ALL_ROWS, Ints, States, as_states, check_rows, count_rows

VERSION: Final = 1
"""Of the layout; a trained model says which one it was made for."""

ROUND_LIMIT: Final = 100  # rounds are counted up to here, so that they fit a byte and a scale


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
        Block("phase", (4,), 1, 1, "one-hot: crown, disc, place, move; none while nobody decides"),
        Block(
            "to_move",
            seats,
            1,
            1,
            "one-hot: seat that decides or rolls; none when the game is over",
        ),
        Block("placements_left", (), DICE[players], DICE[players], "paladins still to play"),
        Block("round", (), ROUND_LIMIT, ROUND_LIMIT, "rounds begun, counted up to 100"),
        Block(
            "rounds_left",
            (),
            ROUND_LIMIT,
            ROUND_LIMIT,
            "rounds until the game is cut off, this one included, counted up to 100",
        ),
        Block("crown_deferred", (), 1, 1, "option crown_choice is deferred"),
        Block("supply", (CLANS,), 197, 40, "paladins of each clan in the supply"),
        Block("partner", seats, 1, 1, "seat is on the viewer's team (the viewer too)"),
        Block(
            "turn_order", (players, players), 1, 1, "one-hot for each seat: its place in `order`"
        ),
        Block("disc_played", (players, DISCS), 1, 1, "one-hot for each seat: disc of this round"),
        Block("discs_in_hand", (players, DISCS), 1, 1, "1 for each disc in the hand of the seat"),
        Block("crowns", seats, 9, RESERVE[players], "crowns of each seat not decided yet"),
        Block("reserves", (players, CLANS), 9, RESERVE[players], "paladins in each reserve"),
        Block("courts", (players, CLANS), 197, 10, "paladins in each court"),
        Block("control", (players, CLANS), 1, 1, "1 where the seat controls the clan"),
        Block("castles", (teams,), TERRITORIES, goal, "castles in play of each team"),
        Block("region_exists", regions, 1, 1, "1 for each region in the circle"),
        Block("region_castles", (TERRITORIES, teams), TERRITORIES, 4, "castles by region and team"),
        Block("region_paladins", (TERRITORIES, CLANS), 200, 5, "paladins by region and clan"),
        Block(
            "region_strength",
            (TERRITORIES, teams),
            255,
            10,
            "strength by region and team, counted up to 255 (all 0 where no region is)",
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
        viewers: ``(M,)`` seats that look; None: the seat to move (seat 0 when a game is over).
        dtype: uint8 for the integers of `layout`, float32 for the scaled ones.
        rows: ``(M,)`` games to look at; None: all.
        out: ``(M, length)`` of that dtype to write into instead of a new array.

    Returns:
        ``(M, length(players))`` of ``dtype``; ``out`` where it was given.

    Raises:
        ValueError: for mixed numbers of players, or a viewer, dtype or ``out`` that does not fit.
    """
    as_states(states)
    picked = check_rows(rows, len(states))
    count = count_rows(picked, states)
    players = int(states["players"][0]) if len(states) else 2
    if (states["players"] != players).any():
        raise ValueError("games of different numbers of players have different observations")
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


def observe_one(states: States, viewer: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """`observe` for a batch of one game, quickly: ``(length,)``, a fresh array.

    Raises:
        ValueError: when the game has no such seat, or for another dtype.
    """
    players = int(states["players"][0])
    if not 0 <= viewer < players:
        raise ValueError(f"viewer must be a seat from 0 to {players - 1}, got {viewer!r}")
    whole = np.empty((1, length(players)), np.uint8)
    if dtype == np.uint8:
        _observe(states, ALL_ROWS, _SEATS[viewer], whole)
        return whole[0]
    if dtype != np.float32:
        raise ValueError(f"an observation is of dtype uint8 or float32, not {dtype}")
    out = np.empty(whole.shape, np.float32)
    _observe_scaled(states, ALL_ROWS, _SEATS[viewer], scales(players), whole, out)
    return out[0]


_SEATS = tuple(np.array([seat]) for seat in range(MAX_PLAYERS))


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
    """Write the blocks of `layout`, one after the other, into ``out[row]``."""
    players = int64(s["players"])
    teams = int64(s["teams"])
    own_team = int64(s["team"][viewer])
    for i in range(out.shape[1]):
        out[row, i] = 0

    at = 0  # phase, to_move
    if s["phase"] >= CROWN_CHOICE and s["phase"] <= MOVE:
        out[row, at + s["phase"] - CROWN_CHOICE] = 1
    at += 4
    if s["phase"] != OVER:
        out[row, at + clockwise_from(viewer, int64(s["player"]), players)] = 1
    at += players
    out[row, at] = s["placements_left"]
    out[row, at + 1] = min(int64(s["round"]), ROUND_LIMIT)
    out[row, at + 2] = rounds_left(s)
    out[row, at + 3] = s["crown_deferred"]
    at += 4
    for clan in range(CLANS):
        out[row, at + clan] = s["supply"][clan]
    at += CLANS

    order_at = at + players  # partner, turn_order, disc_played, discs_in_hand, crowns
    disc_at = order_at + players * players
    hand_at = disc_at + players * DISCS
    crowns_at = hand_at + players * DISCS
    reserves_at = crowns_at + players  # reserves, courts, control
    courts_at = reserves_at + players * CLANS
    control_at = courts_at + players * CLANS
    seat = int64(viewer)
    clans, next_clans, third_clans = 0, 0, 0  # of the own team and of those after it
    for k in range(players):
        held = clans_held(s, seat)
        side = clockwise_from(own_team, int64(s["team"][seat]), teams)
        clans |= held if side == 0 else 0
        next_clans |= held if side == 1 else 0
        third_clans |= held if side == 2 else 0
        out[row, at + k] = side == 0
        place_of = clockwise_from(viewer, int64(s["order"][k]), players)
        out[row, order_at + place_of * players + k] = 1
        put((1 << 8 * int64(s["discs_played"][seat])) >> 8, out, row, disc_at + k * DISCS)
        put(spread(int64(s["discs_in_hand"][seat])), out, row, hand_at + k * DISCS)
        out[row, crowns_at + k] = s["crowns"][seat]
        put(clan_word(s["reserves"], seat), out, row, reserves_at + k * CLANS)
        put(clan_word(s["courts"], seat), out, row, courts_at + k * CLANS)
        put(spread(held), out, row, control_at + k * CLANS)
        seat = next_in_circle(seat, players)

    castles_at = control_at + players * CLANS  # castles
    next_team = next_in_circle(own_team, teams)
    third_team = next_in_circle(next_team, teams)
    out[row, castles_at] = s["castles"][own_team]
    out[row, castles_at + 1] = s["castles"][next_team]
    if teams == 3:
        out[row, castles_at + 2] = s["castles"][third_team]

    exists_at = castles_at + teams  # regions: exists, castles, paladins, strength
    standing_at = exists_at + TERRITORIES
    paladins_at = standing_at + TERRITORIES * teams
    strength_at = paladins_at + TERRITORIES * CLANS
    clans, next_clans, third_clans = lanes(clans), lanes(next_clans), lanes(third_clans)
    count = int64(s["regions"])
    emperor = int64(s["emperor"])
    for region in range(count):
        r = clockwise_from(emperor, region, count)
        paladins = clan_word(s["region_paladins"], region)
        owner = int64(s["region_owner"][region])
        castles = int64(s["region_castles"][region])
        out[row, (exists_at + r) & ROOM] = 1
        put(paladins, out, row, paladins_at + r * CLANS)
        own = castles if owner == own_team else 0
        out[row, (standing_at + r * teams) & ROOM] = own
        out[row, (strength_at + r * teams) & ROOM] = min(own + sum_of(paladins & clans), 255)
        own = castles if owner == next_team else 0
        out[row, (standing_at + r * teams + 1) & ROOM] = own
        out[row, (strength_at + r * teams + 1) & ROOM] = min(
            own + sum_of(paladins & next_clans), 255
        )
        if teams == 3:
            own = castles if owner == third_team else 0
            out[row, (standing_at + r * teams + 2) & ROOM] = own
            out[row, (strength_at + r * teams + 2) & ROOM] = min(
                own + sum_of(paladins & third_clans), 255
            )


@kernel
def next_in_circle(place, count):
    return place + 1 if place + 1 < count else 0


@kernel
def clockwise_from(start, place, count):
    """How many places clockwise from ``start`` in a circle of ``count`` is ``place``."""
    steps = place - int64(start)
    return steps if steps >= 0 else steps + count


@kernel
def rounds_left(s):
    """Rounds until the cut-off, the running one included; ROUND_LIMIT for that many or never."""
    if s["max_rounds"] == 0:
        return ROUND_LIMIT
    return min(int64(s["max_rounds"]) - max(int64(s["round"]), 1) + 1, ROUND_LIMIT)
