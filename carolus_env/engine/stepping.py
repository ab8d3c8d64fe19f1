"""What plays on in compiled code: a decision, the dice, and all that follows, for `games`.

`games.Game` calls `play_one`, `games.GameBatch` the entries for batches, of which ``rows`` are a
worker's games. Entries take plain arrays, since a NamedTuple costs at every call from Python, and
pack them for the kernels. `play_on` is the loop that plays a game by kernels that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.observation import fits, write_observation
from carolus_env.engine.rules import BY_MAX_ROUNDS, OVER
from carolus_env.system.arrays import F32, F64, I8, I64, U8, U64, Bits, Int, Records, int64
from carolus_env.system.compiler import entry, inlined, kernel, separate
from carolus_env.system.options import INT64_MAX


class Views(NamedTuple):
    """Buffers that the kernels write the legal actions and observations to."""

    masks: npt.NDArray[np.int8] | None  # (n, 95), or None: not wanted
    raw: npt.NDArray[np.uint8] | None  # (n, length) observations; (1, length) scratch if scaled
    scales: npt.NDArray[np.float32] | None  # (length,), for float32 observations
    scaled: npt.NDArray[np.float32] | None  # (n, length) float32 observations


class Outcomes(NamedTuple):
    """Buffers that the kernels write the outcomes of a step to, each game in its row."""

    rewards: npt.NDArray[np.float32]  # (n, players)
    terminated: npt.NDArray[np.bool_]  # (n,)
    truncated: npt.NDArray[np.bool_]  # (n,)


# ------------------------------------------------------------------------------------ kernels


@kernel
def write_views(s: np.void, g: Int, views: Views) -> Int:
    """Write the row of game ``g`` in every view; returns the row of its legal set."""
    legal_row = legal.legal_set(s)
    _write_mask(legal_row, g, views.masks)
    _observe(s, g, views.raw, views.scales, views.scaled)
    return legal_row


@kernel
def _write_mask(legal_row: Int, g: Int, masks: I8 | None) -> None:
    if masks is not None:
        legal.write_mask(legal_row, masks, g)


@kernel
def _observe(s: np.void, g: Int, raw: U8 | None, scales: Any, scaled: F32 | None) -> None:
    if raw is not None:
        write_observation(s, int64(s["player"]), g, raw, scales, scaled)


@separate
def start_anew(states: Records, g: Int, blank: Records) -> None:
    """Start the next game with the rules of ``blank[0]``, from the generator on."""
    bits = states[g]["generator"]
    states[g] = blank[0]
    states[g]["generator"] = bits
    turns.set_up(states[g])


@kernel
def note_outcome(s: np.void, g: Int, outcomes: Outcomes) -> None:
    """Write rewards and flags after a step."""
    for seat in range(outcomes.rewards.shape[1]):
        outcomes.rewards[g, seat] = 0.0
    outcomes.truncated[g] = s["reason"] == BY_MAX_ROUNDS
    outcomes.terminated[g] = (s["phase"] == OVER) & (s["reason"] != BY_MAX_ROUNDS)
    if s["phase"] == OVER:
        turns.add_returns(s, outcomes.rewards, g)


@kernel
def play_random_decision(s: np.void, legal_row: Int, generators: U64, g: Int) -> None:
    """Play a random member of a legal set, drawn from stream ``g``, and roll the dice."""
    turns.play(s, legal.draw_action(legal_row, generators, g))
    turns.roll_on(s)


@kernel
def game_of(rows: I64, i: Int) -> Int:
    """Return ``rows[i]``, so that the compiler knows that it does not count from the end."""
    return rows[i] & INT64_MAX


# ------------------------------------------------------------------------------------ one game

# What `play_one` returns: `ILLEGAL`, or phase, player and row of the legal set in one number.
ILLEGAL: Final = -1  # an action, or a game of other observations
DUE_BITS: Final = 3  # of the phase, and of the player
DUE_MASK: Final = (1 << DUE_BITS) - 1


@entry
def play_one(
    states: Records, action: Int, raw: U8 | None, scales: F32 | None, scaled: F32 | None
) -> Int:
    """Play ``action`` (a negative one: nothing), roll, and observe; returns what is due next."""
    s = states[0]
    if not fits(s, raw) or (action >= 0 and not legal.is_legal(s, action)):
        return ILLEGAL
    if action >= 0:
        turns.play(s, action)
    turns.roll_on(s)
    legal_row = write_views(s, 0, Views(None, raw, scales, scaled))
    return int64(s["phase"]) | int64(s["player"]) << DUE_BITS | legal_row << 2 * DUE_BITS


# ------------------------------------------------------------------------------------ batches


@entry
def find_illegal(states: Records, rows: I64, actions: I64, players: Int) -> Int:
    """Return the first game that does not allow its action, or is of other players, or -1."""
    for i in range(rows.shape[0]):
        g = game_of(rows, i)
        if states[g]["players"] != players or not legal.is_legal(states[g], actions[g]):
            return g
    return -1


@entry
def play_batch(
    states: Records, rows: I64, actions: I64, blank: Records,
    rewards: Any, terminated: Any, truncated: Any,
    legal_rows: I64, masks: Any, raw: Any, scales: Any, scaled: Any,
) -> None:  # fmt: skip
    """Play a legal action (-1: none) in every game, with dice, outcomes, new games and views."""
    outcomes, views = Outcomes(rewards, terminated, truncated), Views(masks, raw, scales, scaled)
    for i in range(rows.shape[0]):
        g = game_of(rows, i)
        s = states[g]
        if actions[g] >= 0:
            turns.play(s, actions[g])
        turns.roll_on(s)
        if actions[g] >= 0:
            note_outcome(s, g, outcomes)
        if s["phase"] == OVER:
            start_anew(states, g, blank)
        legal_rows[g] = write_views(s, g, views)


@entry
def sample(rows: I64, legal_rows: I64, generators: U64, actions: I64) -> None:
    """Draw a legal action for each game, all equally likely."""
    for i in range(rows.shape[0]):
        g = game_of(rows, i)
        actions[g] = legal.draw_action(legal_rows[g], generators, g)


@entry
def rollout(
    states: Records, rows: I64, generators: U64, decisions: Int, blank: Records, totals: F64,
    legal_rows: I64, masks: Any, raw: Any, scales: Any, scaled: Any,
) -> Int:  # fmt: skip
    """Play random decisions in every game, all views written at each; returns games that ended."""
    views, ended = Views(masks, raw, scales, scaled), 0
    for _ in range(decisions):
        for i in range(rows.shape[0]):
            g = game_of(rows, i)
            s = states[g]
            play_random_decision(s, write_views(s, g, views), generators, g)
            if s["phase"] == OVER:
                ended += 1
                turns.add_returns(s, totals, 0)
                start_anew(states, g, blank)
    for i in range(rows.shape[0]):
        g = game_of(rows, i)
        legal_rows[g] = write_views(states[g], g, views)
    return ended


# ------------------------------------------------------------------------------------ the loop


@inlined
def play_on(
    act: Callable[..., Any], roll: Callable[..., Any], s: np.void, carried: Any, context: Any
) -> tuple[Int, Any]:
    """Play a game on, until it is over or `act` stops it; return how often it went on, and carried.

    ``act(s, count, carried, context) -> (goes_on, carried)`` carries out a decision, or a whole
    plan, the one number ``count`` from 0 on; or it does nothing and returns False. ``roll(s, count,
    carried, context) -> carried`` does all that follows: the dice that are due. ``carried`` changes
    from decision to decision, such as a random stream; ``context`` is what else both need.
    """
    count = 0
    while s["phase"] != OVER:
        goes_on, carried = act(s, count, carried, context)
        if not goes_on:
            break
        carried = roll(s, count, carried, context)
        count += 1
    return count, carried


@kernel
def roll_own(s: np.void, count: Int, carried: Any, context: Any) -> Any:
    """Roll by the game's own generator: a ``roll`` of `play_on`."""
    turns.roll_on(s)
    return carried


@kernel
def _act_at_random(s: np.void, count: Int, bits: Bits, most: Int) -> tuple[bool, Bits]:
    if count == most:
        return False, bits
    bits = generator.step(bits)
    turns.play(s, legal.random_action(legal.legal_set(s), generator.mix(bits)))
    return True, bits


@separate
def play_at_random(s: np.void, bits: Bits, most: Int) -> tuple[Int, Bits]:
    """Take random decisions, ``most`` at most; return their number, and the stream ``bits``."""
    return play_on(_act_at_random, roll_own, s, bits, most)


@kernel
def play_out_once(
    s: np.void, generators: U64, most_decisions: Int, payoffs: F32, decisions: I64, g: Int
) -> None:
    """Play a game to its end by stream ``g``; add payoffs and decisions to row ``g``."""
    bits = generator.step(generators[g])
    s["generator"] = generator.mix(bits)
    turns.roll_on(s)
    played, generators[g] = play_at_random(s, bits, most_decisions)
    turns.add_returns(s, payoffs, g)
    decisions[g] += played
