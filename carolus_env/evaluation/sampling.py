"""Games played on from given positions, side by side, with dice of their own.

Game number ``i`` is played by the dice and streams of deal ``i`` (`engine.setup`). So games of one
number, from different positions, have the same dice: what differs between them is what was
decided. Games can be left before their end, valued by a `Value`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from carolus_env import bots, engine
from carolus_env.bots import lockstep
from carolus_env.bots.network import find, values_ahead
from carolus_env.engine import chance
from carolus_env.engine.rules import DICE, DISC, MAX_PLAYERS, OVER, ROLL, TEAMS
from carolus_env.engine.setup import Deals
from carolus_env.engine.state import States, as_states, common_players, copy, pick
from carolus_env.networks.network import Weights
from carolus_env.planning import heuristic
from carolus_env.system import cancellation, options, threads
from carolus_env.system.arrays import F64, I64
from carolus_env.system.options import REQUIRED, option, whole_number, whole_numbers
from carolus_env.system.untrusted import shown, unknown


@dataclass(frozen=True)
class Sampler:
    """A player of games from positions on."""

    base: bots.AgentLike = option(
        REQUIRED, "the player of every seat: a spec, made once a thread, or an agent", kind=object
    )
    seed: int = option(REQUIRED, "the seed of all games", kind=int, among=(0, 2**64 - 1))
    value: Value | None = option(None, "the value of games that are left", kind=object)
    rounds: int | None = option(
        None, "rounds until a game is left, the present one included", kind=int, among=(1, None)
    )
    stratified: bool = option(True, "first rolls of games played together come in proportion")
    threads: int = option(1, "results do not depend on them", among=(1, threads.MOST_THREADS))

    def __post_init__(self) -> None:
        options.check_fields(self)
        if self.rounds is not None and not isinstance(self.value, Value):
            raise ValueError(f"value must be a sampling.Value, got {shown(self.value)}")

    def play(self, starts: States, numbers: I64) -> tuple[F64, int]:
        """Play games to their end, or for `rounds`; can be stopped (`system.cancellation`).

        Each game begins at one of ``starts``, at any point, and has a number, from 0 on: that of
        its dice and streams. Returns ``(G, teams)`` float64, the win shares, or values where a game
        was left before its end; and the number of decisions in all games.
        """
        players = common_players(as_states(starts, "starts"), "shares")
        numbers = whole_numbers("numbers", numbers, (len(starts),)).astype(np.int64)
        whole_number("numbers", int(numbers.min(initial=0)), 0)
        heights = self._heights(numbers) if self.stratified else np.full(len(numbers), np.nan)
        stop = cancellation.current()

        def played(rows: slice) -> tuple[F64, int]:
            with stop.watched():  # in the other threads, too
                return self._play(copy(starts[rows]), players, numbers[rows], heights[rows])

        parts = threads.together(played, threads.runs(len(starts), self.threads))
        return np.concatenate([shares for shares, _ in parts]), sum(count for _, count in parts)

    def _heights(self, numbers: I64) -> F64:
        """Return where first rolls lie among all rolls, 0 to 1: a stratum a number, shuffled."""
        different, strata = np.unique(numbers, return_inverse=True)
        random = np.random.default_rng([self.seed, *different[:1].tolist()])
        places = random.permutation(len(different)) + random.random(len(different))
        heights: F64 = (places / max(len(different), 1))[strata]
        return heights

    def _play(self, states: States, players: int, numbers: I64, heights: F64) -> tuple[F64, int]:
        """Play some of the games in this thread, in place; no height: the first roll is rolled."""
        deals = Deals.of(self.seed, numbers)
        dice, waiting = deals.dice(), ~np.isnan(heights)  # for the first roll
        last = states["round"].astype(np.int64) + (self.rounds or 0)
        rolls = chance.chance_outcomes(DICE[players])
        ends = np.cumsum(rolls.probabilities)[:-1]

        def roll(rows: I64) -> I64:
            first = rows[waiting[rows] & (states["phase"][rows] == ROLL)]
            waiting[first] = False
            usual = first[states["dice_due"][first] == DICE[players]]
            if len(usual):
                seats = states["player"][usual]
                states["generator"][usual] = dice[usual, seats]
                chance.draw_faces(states, rows=usual)  # the dice advance as by any roll
                dice[usual, seats] = states["generator"][usual]
                faces = rolls.faces[np.searchsorted(ends, heights[usual], side="right")]
                chance.apply_roll(states, faces, rows=usual)
            chance.roll_dealt(states, dice, rows)
            if self.rounds is None:
                return rows
            # Between two rounds nothing is under way that a value would have to foresee.
            begins = (states["phase"][rows] == DISC) & (states["turn"][rows] == 0)
            return rows[~(begins & (states["round"][rows] >= last[rows]))]

        games = lockstep.Games(states, np.zeros((len(states), players), np.int64), deals.streams())
        steps = lockstep.play(games, [bots.make(self.base)], roll)
        decisions = sum(len(step.rows) for step in steps)
        shares = np.zeros((len(states), TEAMS[players]))
        teams = states["team"][:, :players].astype(np.int64)
        won = engine.win_shares(states)[:, :players]
        np.add.at(shares, (np.arange(len(states))[:, None], teams), won)
        left = np.flatnonzero(states["phase"] != OVER)
        if self.value is not None and len(left):
            shares[left] = self.value(pick(states, left))
        return shares, decisions


def choose(
    agent: bots.Agent, states: States, numbers: npt.NDArray[np.integer], seed: int = 0
) -> tuple[list[tuple[int, ...]], States]:
    """Let an agent decide in every position; in a turn, until the turn is over.

    A position's number and the seed decide the agent's random stream, so answers do not depend on
    other positions. Returns the actions of each choice, and ``(N,)`` the positions after them,
    before any dice, with generator 0.
    """
    options.instance("agent", agent, bots.Agent, "an agent (carolus_env.make makes one)")
    agent = agent if isinstance(agent, bots.Checked) else bots.Checked(agent)
    after = copy(states)
    if np.isin(after["phase"], (ROLL, OVER)).any():
        raise ValueError("states must be games in which a decision is due")
    numbers = whole_numbers("numbers", numbers, (len(after),))
    streams = Deals.of(whole_number("seed", seed, 0, 2**64 - 1), numbers).roots[:, None]
    left = 2 + after["placements_left"].astype(np.int64)  # calls of `go_on`: one is before all

    def go_on(rows: I64) -> I64:
        left[rows] -= 1
        return rows[left[rows] > 0]

    actions: list[tuple[int, ...]] = [()] * len(after)
    games = lockstep.Games(after, np.zeros((len(after), MAX_PLAYERS), np.int64), streams)
    for step in lockstep.play(games, [agent], go_on):
        for row, action in zip(step.rows.tolist(), step.actions.tolist(), strict=True):
            actions[row] += (action,)
    after["generator"] = 0
    return actions, after


# ------------------------------------------------------------------------------------ values

KNOWN: Final = "planner, ppo, value, ppo:MODEL or value:MODEL"


@dataclass(frozen=True)
class Value:
    """A named estimate of each team's win probability."""

    name: str  # the spec that makes it again, see `value_function`
    version: str  # twelve hexadecimal digits that change with its weights
    players: int  # of the games that it is for
    _of: Callable[[States], F64]

    def __call__(self, states: States) -> F64:
        """Return ``(N, teams)`` float64, rows sum to 1; the real shares where a game is over."""
        players = common_players(as_states(states), "values")
        if len(states) and players != self.players:
            raise ValueError(
                f"value function {self.name!r} is for {self.players} players, not for {players}"
            )
        return self._of(states)[:, : TEAMS[self.players]]


def value_function(spec: str, players: int) -> Value:
    """Make a value function.

    ``planner`` is the planner's evaluation; ``value`` the package's value network for that number
    of players, after the best next choice; ``ppo`` the same by the value of a policy. These two
    take a model, as ``value:PATH``.
    """
    options.instance("spec", spec, str, f"the spec of a value function: {KNOWN}")
    players = whole_number("players", players, 2, MAX_PLAYERS)
    name, _, argument = spec.partition(":")
    if spec == "planner":
        weights = heuristic.all_weights()[players].tobytes()
        return Value(spec, _version(weights), players, heuristic.chances)
    if name not in ("ppo", "value") or "," in argument:
        raise ValueError(
            unknown("unknown value function", spec, ("planner", "ppo", "value"), KNOWN)
        )
    model = find("ppo" if name == "ppo" else "value", argument or f"{players}p")
    if model.size.players != players:
        raise ValueError(
            f"value function {spec!r} is for {model.size.players} players, not for {players}"
        )
    network = Weights.of(model.weights)

    def ahead(states: States) -> F64:
        result = values_ahead(states, network)
        shares: F64 = result / result.sum(axis=1, keepdims=True)  # the network's are float32
        return shares

    weights = b"".join(model.weights[key].tobytes() for key in sorted(model.weights))
    return Value(spec, _version(weights), players, ahead)


def _version(weights: bytes) -> str:
    return hashlib.sha256(weights).hexdigest()[:12]
