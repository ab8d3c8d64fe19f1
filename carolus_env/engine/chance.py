"""New games, and all that is random in a game: set-ups, rolls, streams, deals.

`engine.step` rolls by each game's own generator. Search, records and tests need explicit dice:
``states["dice_due"]`` says how many are due, `chance_outcomes` lists what they can show with the
probabilities, `apply_roll` applies a chosen roll.

A stream is a uint64 that kernels advance (`engine.kernels.generator`): one for each game, one for
each game's bots. It belongs to a seed, not to a place in a batch.
"""

from __future__ import annotations

import itertools
import math
import secrets
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine import state as layout
from carolus_env.engine.kernels import generator, turns
from carolus_env.engine.rules import CLANS, FACES, MAX_PLAYERS, ROLL, TERRITORIES, Rules
from carolus_env.engine.state import Ints, States, as_states, check_rows, check_states
from carolus_env.system.arrays import I64, U8, U64, Bits, Records
from carolus_env.system.compiler import entry, kernel
from carolus_env.system.options import instance, whole_number, whole_numbers

# ------------------------------------------------------------------------------------ new games


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
        clans = whole_numbers("territories", territories, (TERRITORIES,), (n, TERRITORIES))
        each = TERRITORIES // CLANS
        wrong = (np.sort(clans) != np.repeat(np.arange(CLANS), each)).any(axis=-1)
        if wrong.any():
            raise ValueError(
                f"territories must hold each clan 0 to {CLANS - 1} exactly {each} times, "
                f"got {np.atleast_2d(clans)[np.argmax(wrong)].tolist()}"
            )
        states["region_first"][:, :TERRITORIES] = clans
    seats = np.full(n, -1)
    if first_player is not None:
        seats[:] = whole_numbers("first_player", first_player, (), (n,))
        if ((seats < 0) | (seats >= rules.players)).any():
            raise ValueError(
                f"first_player must be from 0 to {rules.players - 1}, got {first_player!r}"
            )
    _set_up(states, territories is None, seats)
    if roll:  # a separate entry, compiled only when needed
        _roll_on(states, check_rows(None, n))
    return states


@entry
def _set_up(states: Records, shuffle: bool, first_players: I64) -> None:
    for g in range(states.shape[0]):
        s = states[g]
        if shuffle:
            turns.shuffle_territories(s)
        turns.lay_out(s)
        turns.seat_players(s, first_players[g])


def blank_games(rules: Rules, n: int) -> States:
    """Return ``n`` records that hold only the rules, without a set-up."""
    instance("rules", rules, Rules, "carolus_env.Rules")
    states = np.zeros(n, layout.STATE)
    for option, code in rules.to_codes().items():
        states[layout.OPTION_FIELDS[option]] = code
    states["teams"] = rules.teams
    states["team"][:, : rules.players] = [rules.team(seat) for seat in range(rules.players)]
    return states


def next_games(states: States) -> States:
    """Return new games with the rules and generators of ``states``, at the first decision."""
    states, kept = as_states(states), [*layout.KEPT_FIELDS]
    fresh = np.zeros(len(states), layout.STATE)
    fresh[kept] = states[kept]
    _set_up(fresh, True, np.full(len(states), -1))
    roll(fresh)
    return fresh


def rules_of(state: np.void) -> Rules:
    """Return the rules of one game, e.g. ``rules_of(states[0])``."""
    state = layout.single(state)[0]
    return Rules.from_codes({option: state[name] for option, name in layout.OPTION_FIELDS.items()})


# ------------------------------------------------------------------------------------ rolls


class Outcomes(NamedTuple):
    """The outcomes of a number of dice, as multisets: the order of dice never matters.

    Attributes:
        faces: ``(K, dice)`` uint8, each row ascending; 0-4 are the clans, 5 is the crown.
        ways: ``(K,)`` int64, how many of the ``6**dice`` ordered rolls show that multiset.
        probabilities: ``(K,)`` float64, ``ways / 6**dice``.
    """

    faces: npt.NDArray[np.uint8]
    ways: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float64]


def chance_outcomes(dice: int) -> Outcomes:
    """Return all outcomes of ``dice`` (1 to 9) dice: 56 for 3, 126 for 4, 792 for 7, 2,002 for 9.

    ``states["dice_due"]`` is the number of dice that a game waits for.
    """
    return _outcomes(whole_number("dice", dice, 1, 9))  # a plain int: 6**dice overflows a uint8


@cache
def _outcomes(dice: int) -> Outcomes:
    multisets = list(itertools.combinations_with_replacement(range(FACES), dice))
    ways = [
        math.factorial(dice) // math.prod(math.factorial(roll.count(face)) for face in range(FACES))
        for roll in multisets
    ]
    outcomes = Outcomes(
        np.array(multisets, np.uint8), np.array(ways, np.int64), np.array(ways) / FACES**dice
    )
    for column in outcomes:
        column.flags.writeable = False
    return outcomes


def roll_due(states: States) -> npt.NDArray[np.bool_]:
    """Return a mask of the games that wait for a roll: ``(N,)`` bool."""
    return as_states(states)["phase"] == ROLL


def draw_faces(states: States, *, rows: Ints | None = None) -> npt.NDArray[np.uint8]:
    """Draw the next roll from each game's own generator, without applying it: ``(M, dice)`` uint8.

    ``apply_roll(states, draw_faces(states))`` is what `step` does. All games must wait for a roll
    of the same number of dice.
    """
    check_states(states)
    rows = check_rows(rows, len(states))
    faces = np.empty((len(rows), _dice_due(states, rows)), np.uint8)
    _draw_faces(states, rows, faces)
    return faces


@entry
def _draw_faces(states: Records, rows: I64, faces: U8) -> None:
    for i in range(rows.shape[0]):
        turns.draw_faces(states[rows[i]], faces, i)


def apply_roll(states: States, faces: npt.ArrayLike, *, rows: Ints | None = None) -> None:
    """Apply a given roll in each game; then the next decision or roll is due.

    All games must wait for a roll of the same number of dice. ``faces`` are ``(M, dice)``, or
    ``(dice,)`` for every game; 0-4 are the clans, 5 the crown. After an error no game has changed.
    """
    check_states(states)
    rows = check_rows(rows, len(states))
    shape = (len(rows), _dice_due(states, rows))
    if shape[0] == 0:
        return
    values = whole_numbers("faces", faces, shape, shape[1:])
    if ((values < 0) | (values >= FACES)).any():
        raise ValueError(f"faces must be from 0 to {FACES - 1}, got {values.tolist()}")
    _apply_roll(states, rows, np.array(np.broadcast_to(values, shape), np.uint8, order="C"))


@entry
def _apply_roll(states: Records, rows: I64, faces: U8) -> None:
    for i in range(rows.shape[0]):
        turns.take_roll(states[rows[i]], faces, i)


def roll(states: States, *, rows: Ints | None = None) -> None:
    """Roll by each game's own generator where a roll is due, up to the next decision."""
    check_states(states)
    _roll_on(states, check_rows(rows, len(states)))


@entry
def _roll_on(states: Records, rows: I64) -> None:
    for i in range(rows.shape[0]):
        turns.roll_on(states[rows[i]])


def roll_dealt(states: States, dice: npt.NDArray[np.uint64], rows: Ints) -> None:
    """Roll up to the next decision, each seat by a generator of its own.

    Then a seat's rolls do not depend on anyone's decisions. ``dice`` are ``(N, 4)`` generators,
    advanced in place; the games' own become 0.
    """
    check_states(states)
    layout.check_buffer("dice", dice, (len(states), MAX_PLAYERS), np.uint64)
    _roll_dealt(states, dice, check_rows(rows, len(states)))


@entry
def _roll_dealt(states: Records, dice: U64, rows: I64) -> None:
    for i in range(rows.shape[0]):
        turns.roll_dealt(states[rows[i]], dice, rows[i])


def _dice_due(states: States, rows: npt.NDArray[np.int64]) -> int:
    due = states["dice_due"][rows]
    if len(due) == 0:
        return 0
    if (due == 0).any() or (due != due[0]).any():
        raise ValueError(
            "every game must wait for a roll of the same number of dice, "
            f"but {np.unique(due).tolist()} are due (0: none)"
        )
    return int(due[0])


# ------------------------------------------------------------------------------------ streams


def new_streams(seed: int | Ints | None, n: int) -> npt.NDArray[np.uint64]:
    """Return ``n`` generators (uint64) for bots, independent of those of games with the same seeds.

    Stream ``i`` belongs to ``seed + i`` (or ``seed[i]``), for any ``n``.
    """
    return seed_generators(seed, n, for_bots=True)


def check_streams(generators: npt.NDArray[np.uint64], states: States) -> None:
    """Check that there is one stream for each game, which a kernel can advance."""
    layout.check_buffer("generators", generators, states.shape, np.uint64)


def random_bits(generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Draw 64 random bits from each stream, in place: ``(N,)`` uint64."""
    layout.check_buffer("generators", generators, np.shape(generators), np.uint64)
    bits = np.empty_like(generators)
    _random_bits(generators, bits)
    return bits


@entry
def _random_bits(generators: U64, bits: U64) -> None:
    for i in range(generators.shape[0]):
        generators[i] = generator.step(generators[i])
        bits[i] = generator.mix(generators[i])


@entry
def _seed_all(seeds: U64, for_bots: bool) -> None:
    for i in range(seeds.shape[0]):
        seeds[i] = generator.mix(generator.step(seeds[i]))
        if for_bots:
            seeds[i] = generator.mix(~seeds[i])


def seed_generators(
    seed: int | Ints | None, n: int, *, for_bots: bool = False
) -> npt.NDArray[np.uint64]:
    """Return ``n`` generators that start far apart, also for consecutive seeds."""
    n = whole_number("n, the number of streams,", n, 0)
    if seed is None:
        seed = secrets.randbits(63)
    if isinstance(seed, np.ndarray) and seed.ndim > 0:
        seeds = whole_numbers("seed", seed, (n,)).astype(np.uint64)
        if (seed < 0).any():
            raise ValueError(f"seeds must not be negative, got {seed.min()}")
    else:
        first = whole_number("seed", seed, 0, 2**64 - 1)
        seeds = np.uint64(first) + np.arange(n, dtype=np.uint64)
    _seed_all(seeds, for_bots)
    return seeds


def branches(streams: npt.ArrayLike, numbers: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Return derived streams, one for each of ``streams`` with each of ``numbers`` (broadcast).

    The same stream and number give the same branch; the stream is not advanced.
    """
    roots, names = np.broadcast_arrays(
        np.asarray(streams, np.uint64), np.asarray(numbers, np.uint64)
    )
    result = np.empty(roots.shape, np.uint64)
    _branch_all(np.array(roots).ravel(), np.array(names).ravel(), result.reshape(-1))
    return result


@kernel
def branch(stream: Bits, number: Bits) -> Bits:
    """Return the start of a stream that belongs to ``stream`` and a number (uint64).

    Seeds are scattered by the same ``mix``, so the stream is mixed once more: otherwise seed 1's
    branch 2 would be seed 2's branch 1. Numbers count something: one that is itself a stream would
    share its branch with the other stream.
    """
    scattered = generator.mix(generator.step(stream))
    return generator.mix(~(scattered ^ generator.mix(generator.step(number))))


@entry
def _branch_all(streams: U64, numbers: U64, out: U64) -> None:
    for i in range(out.shape[0]):
        out[i] = branch(streams[i], numbers[i])


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
