"""Games played on from given positions: side by side, with dice of their own.

Game number ``i`` is played by the dice and streams of deal ``i`` (`engine.setup`). So games of
the same number, played from different positions, have the same dice: what differs between them is
what was decided, not what was rolled. Games can be left before their end, valued by a `Value`: a
fixed estimate of each team's win probability, whose ``version`` says exactly which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import bots, engine
from carolus_env.bots import AgentLike, lockstep
from carolus_env.bots.models import find
from carolus_env.bots.value import values_ahead
from carolus_env.engine.chance import apply_roll, chance_outcomes, draw_faces, roll_dealt
from carolus_env.engine.rules import DICE, DISC, MAX_PLAYERS, OVER, ROLL, TEAMS
from carolus_env.engine.setup import Deals
from carolus_env.engine.state import States, as_states, common_players, pick
from carolus_env.networks.forward import Weights
from carolus_env.planning.heuristic import all_weights, chances
from carolus_env.system import cancellation
from carolus_env.system.arrays import F64
from carolus_env.system.options import (
    REQUIRED,
    check_fields,
    instance,
    option,
    whole_number,
    whole_numbers,
)
from carolus_env.system.threads import MOST_THREADS, runs, together
from carolus_env.system.untrusted import shown, unknown


class Played(NamedTuple):
    """``G`` games that were played on.

    Attributes:
        shares: ``(G, teams)`` float64, each team's win share, or its value where the game
            was left before its end.
        decisions: decisions taken in all games.
    """

    shares: F64
    decisions: int


@dataclass(frozen=True)
class Sampler:
    """A sampler that plays games on."""

    base: AgentLike = option(
        REQUIRED, "the player of every seat: a spec, made once a thread, or an agent", kind=object
    )
    seed: int = option(REQUIRED, "the seed of all games", kind=int, among=(0, 2**64 - 1))
    value: Value | None = option(None, "the value of games that are left", kind=object)
    rounds: int | None = option(
        None, "rounds until a game is left, the present one included", kind=int, among=(1, None)
    )
    stratified: bool = option(True, "first rolls of games played together come in proportion")
    threads: int = option(1, "results do not depend on them", among=(1, MOST_THREADS))

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rounds is not None and not isinstance(self.value, Value):
            raise ValueError(f"value must be a sampling.Value, got {shown(self.value)}")

    def play(self, starts: States, numbers: npt.NDArray[np.int64]) -> Played:
        """Play games to their end, or for `rounds`; can be stopped (`system.cancellation`)."""
        common_players(as_states(starts, "starts"), "shares")
        numbers = whole_numbers("numbers", numbers, (len(starts),)).astype(np.int64)
        whole_number("numbers", int(numbers.min(initial=0)), 0)
        first = self._first_rolls(numbers) if self.stratified else None
        stop = cancellation.current()

        def played(rows: slice) -> Played:
            games = pick(starts, np.arange(rows.start, rows.stop))
            with stop.watched():  # in the other threads, too
                return self._part(games, numbers[rows], None if first is None else first[rows])

        parts = together(played, runs(len(starts), self.threads))
        return Played(
            np.concatenate([part.shares for part in parts]),
            sum(part.decisions for part in parts),
        )

    def _first_rolls(self, numbers: npt.NDArray[np.int64]) -> F64:
        """Return for each game a number from 0 to 1 that picks its first roll, stratified.

        Places are shuffled, so that a game's first roll says nothing about its other dice.
        """
        different, strata = np.unique(numbers, return_inverse=True)
        places = len(different)
        chance = np.random.default_rng([self.seed, int(numbers.min(initial=0))])
        spread: F64 = (chance.permutation(places) + chance.random(places)) / max(places, 1)
        return spread[strata]

    def _part(self, states: States, numbers: npt.NDArray[np.int64], first: F64 | None) -> Played:
        """Play some of the games that `play` is given, in this thread."""
        states = np.require(states, requirements="W")
        games = len(states)
        players = int(states["players"].max(initial=2))
        deals = Deals.of(self.seed, numbers)
        dice, streams = deals.dice(), deals.streams()
        last = states["round"].astype(np.int64) + (self.rounds or 0)
        waiting = np.full(games, first is not None)  # for the first roll

        def roll(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            if first is not None:
                _roll_first(states, rows[waiting[rows]], dice, first, waiting)
            roll_dealt(states, dice, rows)
            if self.rounds is None:
                return rows
            # Between two rounds nothing is under way that a value would have to foresee.
            begins = (states["phase"][rows] == DISC) & (states["turn"][rows] == 0)
            return rows[~(begins & (states["round"][rows] >= last[rows]))]

        tables = np.zeros((games, players), np.int64)
        steps = lockstep.play(lockstep.Games(states, tables, streams), [bots.make(self.base)], roll)
        decisions = sum(len(step.rows) for step in steps)
        over = states["phase"] == OVER
        shares = np.zeros((games, TEAMS[players]))
        seats = states["team"][:, :players].astype(np.int64)
        np.add.at(
            shares, (np.arange(games)[:, None], seats), engine.win_shares(states)[:, :players]
        )
        if self.value is not None and not over.all():
            unfinished = np.flatnonzero(~over)
            shares[unfinished] = self.value(pick(states, unfinished))
        return Played(shares, decisions)


def _roll_first(
    states: States,
    rows: npt.NDArray[np.int64],
    dice: npt.NDArray[np.uint64],
    heights: F64,
    waiting: npt.NDArray[np.bool_],
) -> None:
    """Make the first roll of these games, by ``heights`` if usual; dice advance as by any roll."""
    rows = rows[states["phase"][rows] == ROLL]
    for due in np.unique(states["dice_due"][rows]).tolist():
        alike = rows[states["dice_due"][rows] == due]
        seat = states["player"][alike]
        states["generator"][alike] = dice[alike, seat]
        faces = draw_faces(states, rows=alike)
        dice[alike, seat] = states["generator"][alike]
        if due == DICE[int(states["players"][alike[0]])]:
            faces = _roll_at(heights[alike], due)
        waiting[alike] = False
        apply_roll(states, faces, rows=alike)


def _roll_at(heights: npt.NDArray[np.float64], dice: int) -> npt.NDArray[np.uint8]:
    """Return the rolls at these heights, 0 to 1, of the rolls' cumulative probabilities."""
    outcomes = chance_outcomes(dice)
    ends = np.cumsum(outcomes.probabilities)[:-1]
    faces: npt.NDArray[np.uint8] = outcomes.faces[np.searchsorted(ends, heights, side="right")]
    return faces


# ------------------------------------------------------------------------------------ values

KNOWN: Final = "planner, ppo, value, ppo:MODEL or value:MODEL"


@dataclass(frozen=True)
class Value:
    """A named function of positions."""

    name: str  # the spec that makes it again, see `value_function`
    version: str  # twelve hexadecimal digits that change with its weights
    players: int  # number of players of the games that it is for
    _of: Callable[[States], F64]

    def __call__(self, states: States) -> F64:
        """Return each team's win probability."""
        players = common_players(as_states(states), "values")
        if len(states) and players != self.players:
            raise ValueError(
                f"value function {self.name!r} is for {self.players} players, not for {players}"
            )
        return self._of(states)[:, : TEAMS[self.players]]


def value_function(spec: str, players: int) -> Value:
    """Make a value function."""
    instance("spec", spec, str, f"the spec of a value function: {KNOWN}")
    players = whole_number("players", players, 2, MAX_PLAYERS)
    name, _, argument = spec.partition(":")
    if spec == "planner":
        return Value(spec, _version(all_weights()[players].tobytes()), players, chances)
    if name not in ("ppo", "value") or "," in argument:
        raise ValueError(
            unknown("unknown value function", spec, ("planner", "ppo", "value"), KNOWN)
        )
    model = find("ppo" if name == "ppo" else "value", argument or f"{players}p")
    if model.size.players != players:
        raise ValueError(
            f"value function {spec!r} is for {model.size.players} players, not for {players}"
        )
    version = _version(b"".join(model.weights[key].tobytes() for key in sorted(model.weights)))
    weights = Weights.of(model.weights)

    def ahead(states: States) -> F64:
        result = values_ahead(states, weights)
        shares: F64 = result / result.sum(axis=1, keepdims=True)  # the network's are float32
        return shares

    return Value(spec, version, players, ahead)


def _version(weights: bytes) -> str:
    return hashlib.sha256(weights).hexdigest()[:12]
