"""The rules on an NVIDIA GPU: the engine's kernels, each game in a thread.

A block of threads copies the records of its games into its shared memory, plays there, and copies
them back. So every access to global memory is to neighbouring bytes; and since a record has an odd
number of bytes, threads that read the same field of their games rarely read from the same bank.
Shared memory holds the block's records, a blank record, and the block's observations.

`games.cuda` launches the kernels. This module needs the extra ``gpu``. With
``NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1`` it is ordinary Python in Numba's simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numba import cuda

from carolus_env.engine import observation, stepping
from carolus_env.engine.kernels import legal, turns
from carolus_env.engine.rules import ACTIONS, OVER
from carolus_env.engine.state import STATE
from carolus_env.engine.stepping import Outcomes
from carolus_env.system.arrays import F32, F64, I8, I64, U8, U64, Int
from carolus_env.system.compiler import keep_gpu_code

_RECORD, _RECORD_BYTES = numba.from_dtype(STATE), STATE.itemsize
WARP: Final = 32  # threads that run in step
MOST_THREADS: Final = 128  # of a block; arrays of records have room for full blocks of that size
WORD: Final = 8  # bytes that a thread copies at a time
BLANK_BYTES: Final = -(-_RECORD_BYTES // WORD) * WORD  # of the blank record in shared memory

# What ``refused`` holds, the step and the code of an illegal action, while there is none.
NO_REFUSAL: Final = np.full(2, np.iinfo(np.int64).max)
MOST_SHOWN: Final = 9999  # illegal actions are reported up to this number, with either sign
_GAME_SHIFT = 15


class Views(NamedTuple):
    """What the kernels write about games: `stepping.Views` on the GPU.

    Rows of ``raw`` are whole words, so it has some for the games that the last block lacks.
    """

    legal_rows: I64  # (n,) the games' legal sets
    table: I8  # `LEGAL_SETS`: in constant memory, threads would read one after another
    masks: I8  # (n, 95)
    raw: U64  # uint8 observations as words
    scales: F32  # (length,), for float32 observations
    scaled: F32  # (n, length) float32 observations


class Entries(NamedTuple):
    """Kernels for a number of players and a kind of observations."""

    threads: int  # of a block
    shared: int  # bytes of shared memory of a block
    refresh: Callable[..., None]
    play: Callable[..., None]
    rollout: Callable[..., None]


@cuda.jit(device=True)
def _load(words: U64) -> None:
    """Copy the block's records into shared memory."""
    threads = cuda.blockDim.x
    tile, size = cuda.shared.array(0, numba.uint64), threads * _RECORD_BYTES // WORD
    for i in range(cuda.threadIdx.x, size, threads):
        tile[i] = words[cuda.blockIdx.x * size + i]
    cuda.syncthreads()


@cuda.jit(device=True)
def _store(words: U64) -> None:
    """Copy the block's records back."""
    threads = cuda.blockDim.x
    tile, size = cuda.shared.array(0, numba.uint64), threads * _RECORD_BYTES // WORD
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, size, threads):
        words[cuda.blockIdx.x * size + i] = tile[i]


@cuda.jit(device=True)
def _load_blank(blank: U8) -> None:
    """Copy the blank record into shared memory, behind the block's."""
    threads = cuda.blockDim.x
    copied = cuda.shared.array(0, numba.uint8)
    for i in range(cuda.threadIdx.x, _RECORD_BYTES, threads):
        copied[threads * _RECORD_BYTES + i] = blank[i]
    cuda.syncthreads()


@cuda.jit(device=True)
def _allows(table: I8, legal_row: Int, action: Int) -> bool:
    """Return whether a legal set holds ``action``, any integer."""
    return 0 <= action < ACTIONS and table[legal_row, action] == 1


@cuda.jit(device=True)
def _refuse(refused: I64, step: Int, g: Int, action: Int) -> None:
    """Note an illegal action of this step; of several, the first game's is kept."""
    cuda.atomic.min(refused, 0, step)
    shown = min(max(action, -MOST_SHOWN), MOST_SHOWN) + MOST_SHOWN
    cuda.atomic.min(refused, 1, (g << _GAME_SHIFT) + shown)


def read_refusal(code: int) -> tuple[int, int]:
    """Return the game and the action of ``refused[1]``."""
    game, shown = divmod(code, 1 << _GAME_SHIFT)
    return game, shown - MOST_SHOWN


@cuda.jit(device=True)
def _clear(outcomes: Outcomes) -> None:
    g = cuda.grid(1)
    if g < outcomes.terminated.shape[0]:
        outcomes.terminated[g] = outcomes.truncated[g] = False
        for seat in range(outcomes.rewards.shape[1]):
            outcomes.rewards[g, seat] = 0.0


def full_blocks(games: int) -> int:
    """Return the rows of arrays that hold full blocks of so many games."""
    return -(-games // MOST_THREADS) * MOST_THREADS


def shared_bytes(threads: int, length: int = 0) -> int:
    """Return the bytes of a block's shared memory, with observations of a length."""
    return threads * (_RECORD_BYTES + length) + BLANK_BYTES


@cache
def entries(players: int, kind: str | None, threads: int = WARP) -> Entries:
    """Return the kernels for a number of players and observations of a dtype, or None."""
    at = observation.offsets(players)
    raw, scaled = kind == "uint8", kind == "float32"
    length = at.length
    shared = shared_bytes(threads, length if kind else 0)
    seen_start, seen_words = shared_bytes(threads), threads * length // WORD
    totals_row = (1, players + 1)  # a sum for each seat, and the number of games

    @cuda.jit(device=True)
    def write_views(views: Views) -> None:
        """Write the views of the block's games; the threads of a warp write each row together."""
        g, thread, lane = cuda.grid(1), cuda.threadIdx.x, cuda.threadIdx.x % WARP
        games, n = cuda.shared.array(0, _RECORD), views.legal_rows.shape[0]
        seen = cuda.shared.array(0, numba.uint8)
        if g < n:
            s = games[thread]
            views.legal_rows[g] = legal.legal_set(s)
            if raw or scaled:
                start = seen_start + thread * length
                observation.write_blocks(s, s["player"], at, seen[start : start + length])
        cuda.syncthreads()
        for row in range(g - lane, min(g - lane + WARP, n)):
            legal_row = views.legal_rows[row]
            for action in range(lane, ACTIONS, WARP):
                views.masks[row, action] = views.table[legal_row, action]
        if raw:
            words = cuda.shared.array(0, numba.uint64)
            for i in range(thread, seen_words, threads):
                views.raw[cuda.blockIdx.x * seen_words + i] = words[seen_start // WORD + i]
        if scaled:
            for k in range(min(WARP, n - g + lane)):
                start, row = seen_start + (thread - lane + k) * length, g - lane + k
                for i in range(lane, length, WARP):
                    views.scaled[row, i] = np.float32(seen[start + i]) * views.scales[i]
        cuda.syncthreads()

    @cuda.jit
    def refresh(
        records: U64, generators: U64, anew: Int, blank: U8, outcomes: Outcomes, views: Views
    ) -> None:
        """Roll what is due, and start the next game where one is over; write all views.

        With ``anew`` start a game everywhere, by its generator, and clear the outcomes.
        """
        thread, g = cuda.threadIdx.x, cuda.grid(1)
        games = cuda.shared.array(0, _RECORD)
        _load_blank(blank)
        _load(records)
        if g < generators.shape[0]:
            s = games[thread]
            if anew:
                s["generator"] = generators[g]
                s["phase"] = OVER
            turns.roll_on(s)
            if s["phase"] == OVER:
                stepping.start_anew(games, thread, games[threads : threads + 1])
        if anew:
            _clear(outcomes)
        write_views(views)
        _store(records)

    @cuda.jit
    def play(
        records: U64, actions: I64, step: Int, refused: I64, blank: U8, outcomes: Outcomes,
        views: Views,
    ) -> None:  # fmt: skip
        """Play an action in every game, with dice, outcomes, new games and views.

        A game that does not allow its action stays as it is, and `_refuse` notes it; then later
        steps do nothing.
        """
        thread, g = cuda.threadIdx.x, cuda.grid(1)
        games = cuda.shared.array(0, _RECORD)
        if refused[0] < step:
            return
        _load_blank(blank)
        _load(records)
        if g < actions.shape[0]:
            s = games[thread]
            if _allows(views.table, views.legal_rows[g], actions[g]):
                turns.play(s, actions[g])
                turns.roll_on(s)
            else:
                _refuse(refused, step, g, actions[g])
            stepping.note_outcome(s, g, outcomes)
            if s["phase"] == OVER:
                stepping.start_anew(games, thread, games[threads : threads + 1])
        write_views(views)
        _store(records)

    @cuda.jit
    def rollout(
        records: U64, generators: U64, decisions: Int, blank: U8, totals: F64, outcomes: Outcomes,
        views: Views,
    ) -> None:  # fmt: skip
        """Play random decisions in every game, all views written at each.

        Adds the payoffs of games that end, then their number, to ``totals``; clears the outcomes.
        """
        thread, g = cuda.threadIdx.x, cuda.grid(1)
        games = cuda.shared.array(0, _RECORD)
        own = cuda.local.array(totals_row, numba.float64)
        for k in range(players + 1):
            own[0, k] = 0.0
        _load_blank(blank)
        _load(records)
        for _ in range(decisions):
            write_views(views)
            if g < generators.shape[0]:
                s = games[thread]
                stepping.play_random_decision(s, views.legal_rows[g], generators, g)
                if s["phase"] == OVER:
                    turns.add_returns(s, own, 0)
                    own[0, players] += 1.0
                    stepping.start_anew(games, thread, games[threads : threads + 1])
            cuda.syncthreads()
        write_views(views)
        _clear(outcomes)
        for k in range(players + 1):
            cuda.atomic.add(totals, k, own[0, k])
        _store(records)

    for kernel in (refresh, play, rollout):
        keep_gpu_code(kernel, (players, kind, threads))
    return Entries(threads, shared, refresh, play, rollout)


@cuda.jit
def find_illegal(actions: I64, legal_rows: I64, table: I8, wrong: I64) -> None:
    """Write the first game that does not allow its action to ``wrong[0]``, if there is one."""
    g = cuda.grid(1)
    if g < actions.shape[0] and not _allows(table, legal_rows[g], actions[g]):
        cuda.atomic.min(wrong, 0, g)


@cuda.jit
def sample(legal_rows: I64, generators: U64, actions: I64) -> None:
    """Draw a legal action for each game, all equally likely."""
    g = cuda.grid(1)
    if g < legal_rows.shape[0]:
        actions[g] = legal.draw_action(legal_rows[g], generators, g)


@cuda.jit
def play_out(
    records: U64, generators: U64, repeats: Int, most: Int, payoffs: F32, decisions: I64
) -> None:
    """Play each game to its end at random, see `play.playout`; ``records`` stay as they are."""
    games, g = cuda.shared.array(0, _RECORD), cuda.grid(1)
    for _ in range(repeats):
        _load(records)
        if g < decisions.shape[0]:
            stepping.play_out_once(games[cuda.threadIdx.x], generators, most, payoffs, decisions, g)
        cuda.syncthreads()
    if g < decisions.shape[0]:
        for seat in range(payoffs.shape[1]):
            payoffs[g, seat] /= repeats


@cuda.jit
def as_int64(numbers: Any, result: I64) -> None:
    """Convert integers of any dtype."""
    g = cuda.grid(1)
    if g < result.shape[0]:
        result[g] = numbers[g]


for _kernel in (find_illegal, sample, play_out, as_int64):
    keep_gpu_code(_kernel, ())
