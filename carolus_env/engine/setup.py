"""New games: by seed, with given territories and a given first player, or dealt (`Deals`).

Every function returns a batch of games, ``(N,)`` of dtype `carolus_env.engine.state.STATE`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine import chance
from carolus_env.engine.chance import branches, seed_generators
from carolus_env.engine.kernels import turns
from carolus_env.engine.rules import CLANS, MAX_PLAYERS, PALADINS_LAID_OUT, TERRITORIES, Rules
from carolus_env.engine.state import (
    KEPT_FIELDS,
    OPTION_FIELDS,
    STATE,
    Ints,
    States,
    as_states,
    single,
)
from carolus_env.system.arrays import I64, Records
from carolus_env.system.compiler import entry
from carolus_env.system.options import array, instance, whole_number


def new_games(
    rules: Rules,
    n: int = 1,
    *,
    seed: int | Ints | None = None,
    territories: npt.ArrayLike | None = None,
    first_player: npt.ArrayLike | None = None,
    roll: bool = True,
) -> States:
    """Set up ``n`` games.

    Args:
        rules: number of players and options, the same for the whole batch.
        n: number of games.
        seed: one number: game ``i`` takes ``seed + i``; or ``(n,)`` numbers, 0 to 2^64 - 1. A game
            depends on its own seed alone, not on the batch. None: from the operating system.
        territories: clan of the paladin on each territory, ``(15,)`` or ``(n, 15)``, three of
            each clan. None: shuffled by the game's generator.
        first_player: seat, or ``(n,)`` seats. None: drawn by the game's generator.
        roll: True rolls the set-up, up to the first decision; False stops before its first roll.
    """
    n = whole_number("n, the number of games,", n, 0)
    states = blank_games(rules, n)
    states["generator"] = seed_generators(seed, n)
    if territories is not None:
        states["region_first"][:, :TERRITORIES] = _territories(territories, n)
    seats = np.full(n, -1)
    if first_player is not None:
        seats[:] = _first_players(first_player, n, rules.players)
    _set_up(states, territories is None, seats)
    if roll:  # a separate entry, compiled only when needed
        chance.roll(states)
    return states


@entry
def _set_up(states: Records, shuffle: bool, first_players: I64) -> None:
    for g in range(states.shape[0]):
        s = states[g]
        if shuffle:
            turns.shuffle_territories(s)
        turns.lay_out(s)
        seat = first_players[g]
        turns.seat_players(s, seat if seat >= 0 else turns.draw_first_player(s))


def _territories(value: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    clans = array("territories", value)
    if clans.dtype.kind not in "iu" or clans.shape not in ((TERRITORIES,), (n, TERRITORIES)):
        raise ValueError(
            f"territories must be whole numbers of shape ({TERRITORIES},) or "
            f"({n}, {TERRITORIES}), got shape {clans.shape} and dtype {clans.dtype}"
        )
    for row in np.atleast_2d(clans):
        if not np.array_equal(np.sort(row), np.repeat(np.arange(CLANS), PALADINS_LAID_OUT)):
            raise ValueError(
                f"territories must hold each clan 0 to {CLANS - 1} exactly "
                f"{PALADINS_LAID_OUT} times, got {row.tolist()}"
            )
    return clans


def _first_players(value: npt.ArrayLike, n: int, players: int) -> npt.NDArray[np.int64]:
    seats = array("first_player", value)
    if seats.dtype.kind not in "iu" or seats.shape not in ((), (n,)):
        raise ValueError(
            f"first_player must be a seat or {n} seats, "
            f"got shape {seats.shape} and dtype {seats.dtype}"
        )
    if ((seats < 0) | (seats >= players)).any():
        raise ValueError(f"first_player must be from 0 to {players - 1}, got {value!r}")
    return seats


def blank_games(rules: Rules, n: int) -> States:
    """Return ``n`` records that hold only the rules, without a set-up."""
    instance("rules", rules, Rules, "carolus_env.Rules")
    states = np.zeros(n, STATE)
    for option, code in rules.to_codes().items():
        states[OPTION_FIELDS[option]] = code
    states["teams"] = rules.teams
    states["team"][:, : rules.players] = [rules.team(seat) for seat in range(rules.players)]
    return states


def next_games(states: States) -> States:
    """Return new games with the rules and generators of ``states``, at the first decision."""
    fresh = np.zeros(len(as_states(states)), STATE)
    for name in KEPT_FIELDS:
        fresh[name] = states[name]
    _set_up(fresh, True, np.full(len(states), -1))
    chance.roll(fresh)
    return fresh


def rules_of(state: np.void) -> Rules:
    """Return the rules of one game, e.g. ``rules_of(states[0])``."""
    state = single(state)[0]
    return Rules.from_codes({option: state[name] for option, name in OPTION_FIELDS.items()})


# ------------------------------------------------------------------------------------ deals


class Deals(NamedTuple):
    """``G`` deals: all that is random in a game, by a seed and a number.

    The set-up, each seat's dice and each seat's agent have random streams of their own, all derived
    from one root. So games of one deal have the same dice, whatever is decided. Roots mix the seed
    and the number: other than in `new_games`, where game ``i`` takes ``seed + i``, no two seeds
    share a deal, however near they are.
    """

    # ``(G,)``: each seeds a game, and all its streams are branches of it
    roots: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, seed: int, numbers: Ints) -> Deals:
        """Return the deals of a seed, 0 to 2^64 - 1, with these numbers, ``(G,)``."""
        return cls(branches(seed_generators(seed, 1), numbers))

    def games(self, rules: Rules, *, roll: bool = True) -> States:
        """Set up a game of each deal, see `new_games`."""
        return new_games(rules, len(self.roots), seed=self.roots, roll=roll)

    def dice(self) -> npt.NDArray[np.uint64]:
        """Return the generators by which the seats roll: ``(G, 4)``, see `chance.roll_dealt`."""
        return branches(self.roots[:, None], np.arange(MAX_PLAYERS))

    def streams(
        self, seatings: Ints | None = None, meetings: Ints | None = None
    ) -> npt.NDArray[np.uint64]:
        """Return the random stream of the agent at each seat: ``(G, 4)``.

        Games of one deal, seating and meeting have the same ones. All others have streams of their
        own, so that nothing an agent stores under a stream can belong to two games.
        """
        seating = np.zeros(len(self.roots), np.int64) if seatings is None else seatings
        # Branches 0 to 3 are the dice.
        numbers = MAX_PLAYERS * (1 + seating[:, None]) + np.arange(MAX_PLAYERS)
        streams = branches(self.roots[:, None], numbers)
        if meetings is not None:
            later = meetings > 0
            streams[later] = branches(streams[later], meetings[later][:, None])
        return streams


def derived_seed(seed: int, number: int) -> int:
    """Return a seed of its own for each seed and number, for a part of what a seed plays."""
    return int(branches(seed_generators(seed, 1), number)[0])
