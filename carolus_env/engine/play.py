"""Decisions in thousands of games in one call: what is legal, a step, results.

Every function takes a batch of games, ``(N,)`` of dtype `engine.state.STATE`, and works in place
where it changes something. ``rows`` are the indices of ``M`` games, each at most once; None: all.
All input is checked first: after an error every game is as it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine import rules
from carolus_env.engine import state as layout
from carolus_env.engine.chance import check_streams
from carolus_env.engine.kernels import legal, regions, turns
from carolus_env.engine.state import Ints, States, as_states, check_rows, check_states, single
from carolus_env.engine.stepping import play_out_once
from carolus_env.system.arrays import F32, F64, I8, I64, U64, Int, Records, int64
from carolus_env.system.compiler import entry
from carolus_env.system.machine import check_threads, runs, together
from carolus_env.system.options import INT64_MAX, array, whole_number


class IllegalActionError(ValueError):
    """An action that the rules do not allow now.

    Attributes:
        game: row of the game in the batch.
        player: seat to move.
        action: the given action number.
        legal: the legal action numbers, ascending.
    """

    game: int
    player: int
    action: int
    legal: list[int]

    def __init__(self, text: object, **attributes: Any) -> None:
        super().__init__(str(text))
        # An error in place of the text, as Gymnasium's AsyncVectorEnv raises it again, has them.
        vars(self).update(getattr(text, "__dict__", {}), **attributes)


def _ranges(numbers: list[int]) -> str:
    """Format ``[0, 1, 2, 5]`` as ``'0-2, 5'``."""
    parts = []
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        parts.append(f"{members[0]}-{members[-1]}" if len(members) > 1 else str(members[0]))
    return ", ".join(parts)


# ------------------------------------------------------------------------------------ decisions


def legal_masks(
    states: States, *, rows: Ints | None = None, out: npt.NDArray[np.int8] | None = None
) -> npt.NDArray[np.int8]:
    """Return masks of the legal actions, ``(M, 95)`` int8: ``out`` where it was given.

    They are all 0 where a roll is due or the game is over.
    """
    states = as_states(states)
    rows = check_rows(rows, len(states))
    shape = (len(rows), rules.ACTIONS)
    if out is None:
        out = np.empty(shape, np.int8)
    else:
        layout.check_buffer("out", out, shape, np.int8)
    _write_masks(states, rows, out)
    return out


@entry
def _write_masks(states: Records, rows: I64, masks: I8) -> None:
    for i in range(rows.shape[0]):
        legal.write_mask(legal.legal_set(states[rows[i]]), masks, i)


def legal_actions(state: np.void | States) -> npt.NDArray[np.int64]:
    """Return one game's legal actions, ascending: of a record ``states[i]`` or a batch of one."""
    return np.flatnonzero(legal_masks(single(state))[0])


def are_legal(
    states: States, actions: npt.NDArray[np.integer[Any]], *, rows: Ints | None = None
) -> npt.NDArray[np.bool_]:
    """Return whether each game's action, any integer, is legal: ``(M,)`` bool."""
    masks = legal_masks(states, rows=rows)
    actions = whole_numbers(actions, "actions", len(masks))
    inside = (actions >= 0) & (actions < rules.ACTIONS)
    return inside & (masks[np.arange(len(masks)), np.where(inside, actions, 0)] == 1)


def step(states: States, actions: Ints, *, rows: Ints | None = None, roll: bool = True) -> None:
    """Play one decision in each game, then roll where a roll is due.

    Args:
        states: ``(N,)`` games, changed in place.
        actions: ``(M,)`` action numbers, of any integer dtype.
        rows: ``(M,)`` games that decide; None: all.
        roll: True rolls by each game's own generator until the next decision or the end; False
            stops at a roll, for `apply_roll`.

    Raises:
        IllegalActionError: for an illegal action. Then no game has changed.
        ValueError: when a game is over or waits for a roll.
    """
    check_states(states)
    rows = check_rows(rows, len(states))
    actions = whole_numbers(actions, "actions", len(rows))
    wrong = play_all(states, rows, actions, roll)
    if wrong >= 0:
        raise refusal(states, int(rows[wrong]), int(actions[wrong]))


@entry
def play_all(states: Records, rows: I64, actions: I64, roll: bool) -> Int:
    """Play the actions if all are legal; return the index of one that is not, or -1."""
    for i in range(rows.shape[0]):
        if not legal.is_legal(states[rows[i]], actions[i]):
            return i
    for i in range(rows.shape[0]):
        turns.play(states[rows[i]], actions[i])
        if roll:
            turns.roll_on(states[rows[i]])
    return -1


def refusal(states: States, game: int, action: int) -> ValueError:
    """Return the error to raise for ``action`` in ``game``, which says why it cannot be played."""
    state = states[game]
    if state["phase"] == rules.OVER:
        return ValueError(f"game {game} is over: no action can be played, got {action}")
    if state["phase"] == rules.ROLL:
        return ValueError(
            f"game {game} waits for a roll of {state['dice_due']} dice by player "
            f"{state['player']}, not for action {action}"
        )
    player, legal = int(state["player"]), legal_actions(state).tolist()
    meaning = f" ({rules.action_text(action)})" if 0 <= action < rules.ACTIONS else ""
    return IllegalActionError(
        f"game {game}: player {player} may not play action {action}{meaning} "
        f"in phase {rules.PHASE_NAMES[state['phase']]}; legal are {_ranges(legal)}",
        game=game, player=player, action=action, legal=legal,
    )  # fmt: skip


def random_actions(
    states: States, generators: npt.NDArray[np.uint64], *, rows: Ints | None = None
) -> npt.NDArray[np.int64]:
    """Sample a legal action for each game, uniformly: ``(M,)`` int64, -1 where none is due.

    ``generators`` are ``(N,)`` uint64, one stream a game (see `new_streams`), advanced in place.
    """
    states = as_states(states)
    rows = check_rows(rows, len(states))
    check_streams(generators, states)
    actions = np.empty(len(rows), np.int64)
    _random_actions(states, rows, generators, actions)
    return actions


@entry
def _random_actions(states: Records, rows: I64, generators: U64, actions: I64) -> None:
    for i in range(rows.shape[0]):
        g = rows[i]
        actions[i] = legal.draw_action(legal.legal_set(states[g]), generators, g)


def strengths(state: np.void) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the strength of each team on each region, clockwise from the Emperor's.

    These are ``(regions, teams)`` int64, and ``(regions,)`` int64 the strictly strongest team,
    `NOBODY` where there is none.
    """
    game = single(state)
    powers = np.zeros((int(game["regions"][0]), int(game["teams"][0])), np.int64)
    strongest = np.zeros(len(powers), np.int64)
    _write_strengths(game, powers, strongest)
    return powers, strongest


@entry
def _write_strengths(states: Records, powers: I64, strongest: I64) -> None:
    s = states[0]
    for k in range(powers.shape[0]):
        region = regions.region_at(s, k)
        strongest[k] = regions.strongest_team(s, region)
        for team in range(powers.shape[1]):
            powers[k, team] = regions.strength(s, region, team)


# ------------------------------------------------------------------------------------ the end


def is_over(states: States) -> npt.NDArray[np.bool_]:
    """Return a mask of the games ended by the rules, `max_rounds` or forfeit: ``(N,)`` bool."""
    return as_states(states)["phase"] == rules.OVER


def returns(states: States) -> npt.NDArray[np.float64]:
    """Return each seat's payoff, 0 until the game is over: ``(N, players)`` float64, rows sum to 0.

    ``(n s - 1) / (n - 1)`` with s the seat's win share and n the number of teams. There are as many
    columns as any of the games has players; two where there are no games.
    """
    return _of_seats(states, _write_returns)


def win_shares(states: States) -> npt.NDArray[np.float64]:
    """Return the win share of each seat: ``(N, players)`` float64, rows sum to 1.

    Winning teams share evenly, and partners split their team's share. While nobody has won (the
    game is not over, or was cut off), every team has the same share.
    """
    return _of_seats(states, _write_win_shares)


def _of_seats(
    states: States, write: Callable[[States, npt.NDArray[np.float64]], None]
) -> npt.NDArray[np.float64]:
    """Return an array ``(N, players)`` float64 that an entry writes, a number for each seat."""
    states = as_states(states)
    result = np.zeros((len(states), rules.MAX_PLAYERS))
    write(states, result)
    return result[:, : states["players"].max(initial=2)]


@entry
def _write_returns(states: Records, payoffs: F64) -> None:
    for g in range(states.shape[0]):
        turns.add_returns(states[g], payoffs, g)


@entry
def _write_win_shares(states: Records, shares: F64) -> None:
    for g in range(states.shape[0]):
        s = states[g]
        partners = int64(s["players"]) // int64(s["teams"])
        for seat in range(int64(s["players"])):
            shares[g, seat] = turns.team_win_share(s, int64(s["team"][seat])) / partners


def forfeit(states: States, *, rows: Ints | None = None) -> None:
    """End games by forfeit: the team to move loses and the others share the win.

    Not a rule of the game: an option of environments for illegal actions.
    """
    check_states(states)
    rows = check_rows(rows, len(states))
    if (states["phase"][rows] == rules.OVER).any():
        raise ValueError("a finished game cannot be forfeited")
    _forfeit(states, rows)


@entry
def _forfeit(states: Records, rows: I64) -> None:
    for i in range(rows.shape[0]):
        turns.forfeit(states[rows[i]])


# ------------------------------------------------------------------------------------ playouts


class Playouts(NamedTuple):
    """The results of playouts.

    Attributes:
        returns: ``(N, players)`` float32, mean payoff of each seat over the repeats.
        decisions: ``(N,)`` int64, decisions played in all repeats.
    """

    returns: npt.NDArray[np.float32]
    decisions: npt.NDArray[np.int64]


def playout(
    states: States,
    generators: npt.NDArray[np.uint64],
    *,
    repeats: int = 1,
    most_decisions: int = 100_000,
    threads: int = 1,
) -> Playouts:
    """Play each game to its end at random.

    Args:
        states: ``(N,)`` games at any point, all with the same number of players; unchanged. For
            the ``states`` of a `GameBatch` on a GPU the results are there, too.
        generators: ``(N,)`` uint64, one stream a game (see `new_streams`), advanced in place. Dice
            and choices come from it, so each repeat and each call plays differently.
        repeats: playouts of each game, at most 4,194,304.
        most_decisions: a playout that takes more is cut off and counts 0 for every seat: without
            ``max_rounds`` a game may never end.
        threads: threads that share the work; the results are the same.
    """
    check_threads(threads)
    repeats = whole_number("repeats", repeats, 1, 1 << 22)  # quarters that float32 counts exactly
    most_decisions = whole_number("most_decisions", most_decisions, 1)
    games: Any = states
    if getattr(games, "on_gpu", False):
        return Playouts(*games.play_out(generators, repeats, most_decisions))
    states = as_states(states)
    check_streams(generators, states)
    payoffs = np.zeros((len(states), layout.common_players(states, "returns")), np.float32)
    decisions = np.zeros(len(states), np.int64)

    def play_out(rows: slice) -> None:
        results = np.zeros(1, layout.STATE), payoffs[rows], decisions[rows]
        _play_out(states[rows], generators[rows], repeats, most_decisions, *results)

    together(play_out, runs(len(states), threads))
    return Playouts(payoffs, decisions)


@entry
def _play_out(
    states: Records, generators: U64, repeats: Int, most_decisions: Int,
    scratch: Records, payoffs: F32, decisions: I64,
) -> None:  # fmt: skip
    for g in range(states.shape[0]):
        for _ in range(repeats):
            scratch[0] = states[g]
            play_out_once(scratch[0], generators, most_decisions, payoffs, decisions, g)
        for seat in range(payoffs.shape[1]):
            payoffs[g, seat] /= repeats


# ------------------------------------------------------------------------------------ input checks


def whole_numbers(values: npt.ArrayLike, what: str, count: int) -> npt.NDArray[np.int64]:
    """Check ``count`` integers; return them as a contiguous int64 array."""
    numbers = array(what, values)
    if numbers.dtype.kind not in "iu":
        nan = " with NaN" if numbers.dtype.kind == "f" and np.isnan(numbers).any() else ""
        raise TypeError(f"{what} must be integers, got dtype {numbers.dtype}{nan}")
    if numbers.shape != (count,):
        raise ValueError(f"{what} must be one a game, shape ({count},), got {numbers.shape}")
    if numbers.dtype == np.int64 and numbers.flags.carray:
        return numbers
    if numbers.dtype == np.uint64 and (numbers > INT64_MAX).any():
        raise ValueError(f"{what} must be below 2^63, got {numbers.max()}")
    return np.array(numbers, np.int64, order="C")
