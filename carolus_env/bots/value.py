"""``value`` plays by a trained value network: it takes one look at each candidate.

A candidate is a whole turn, a disc or a crown. Of a turn the planner lists the best plans by its
evaluation, the network values the position after each of them, before the dice, and the best is
played. Discs are valued a turn further on: every answer of the players after a disc is tried
(`planning.discs`), the first player to act plays its best turn, and that position is valued. No
dice lie in between, so this is exact as far as the values are. `bots.search` looks further.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import Opinion
from carolus_env.bots.compiled import CompiledAgent, Entries, error, errors_option, with_errors
from carolus_env.bots.models import Models
from carolus_env.bots.options import BotOptions
from carolus_env.engine.kernels import legal
from carolus_env.engine.kernels.turns import disc_of
from carolus_env.engine.rules import ACTIONS, CROWN_CHOICE, DISC, MAX_TEAMS, OVER, ROLL, TEAMS
from carolus_env.engine.state import STATE, States, as_states, common_players
from carolus_env.networks import forward
from carolus_env.networks.forward import Network, Weights
from carolus_env.networks.network import NetworkModel
from carolus_env.planning.discs import DiscScratch, search_discs
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import (
    MOST_PLANS,
    STOP,
    WIDTHS,
    CandidateList,
    first_of,
    list_candidates,
    play_plan,
    rest_of,
)
from carolus_env.system.arrays import F64, I64, Bits, Int, Records, allocate, int64
from carolus_env.system.compiler import entry, inlined, kernel, separate
from carolus_env.system.options import option

PLANS: Final = {2: "one", 3: "stop"}
"""Default destinations of paladins, the strongest ones measured, by number of teams."""
PLANS_AHEAD: Final = {2: 16, 3: 8}
"""Maximum number of turns compared in positions ahead, by number of teams."""
ROLLOUT_PLANS: Final = 8
"""Number of a turn's plans that `RolloutPolicy` compares, the planner's best ones."""


# ------------------------------------------------------------------------------------ candidates


class CandidateSelector(NamedTuple):
    """Candidates with their values by a network: parameters, results and scratch."""

    net: Network
    candidates: CandidateList  # K of them at most
    values: npt.NDArray[np.float64]  # (K, 3) each team's win probability after each candidate
    after: States  # (1,) the position after a candidate

    @classmethod
    def of(cls, players: int, weights: Weights, width: int, most: int) -> CandidateSelector:
        """Return a selector with scratch of its own; the weights are shared."""
        candidates = CandidateList.of(width, all_weights()[players].copy(), most)
        values = np.zeros((len(candidates.plans), MAX_TEAMS))
        return cls(Network.of(players, weights), candidates, values, np.zeros(1, STATE))


@separate
def value_candidates(s: np.void, selector: CandidateSelector, count: Int) -> Int:
    """Write the values after the listed candidates; returns the best one's index."""
    plans, values = selector.candidates.plans, selector.values
    forward.value_plans(s, plans, count, selector.net, selector.after, values)
    return best_of(values, s, count)


@kernel
def best_of(values: F64, s: np.void, count: Int) -> Int:
    """Return the index of the best of the first candidates for the team to move."""
    team, best = int64(s["team"][s["player"]]), 0
    for k in range(1, count):
        best = k if values[k, team] > values[best, team] else best
    return best


@separate
def best_candidate(s: np.void, selector: CandidateSelector) -> Int:
    """Return the best candidate by the position after it, a plan."""
    count = list_candidates(s, selector.candidates)
    return selector.candidates.plans[value_candidates(s, selector, count)]


# ------------------------------------------------------------------------------------ discs


class Ahead(NamedTuple):
    """Parameters and scratch of looking ahead at discs."""

    looks: bool  # False: discs are valued as all else
    selector: CandidateSelector  # in positions ahead; its scratch is not the asking player's
    discs: DiscScratch  # its ``values`` are the win probabilities after each disc

    @classmethod
    def of(cls, players: int, weights: Weights, options: Any) -> Ahead:
        """Allocate scratch for a bot with the options ``candidates`` and ``discs``."""
        most = min(options.candidates, PLANS_AHEAD[TEAMS[players]])
        selector = CandidateSelector.of(players, weights, STOP, most)
        return cls(options.discs == "turn", selector, allocate(DiscScratch))


@separate
def value_next(s: np.void, selector: CandidateSelector, values: F64) -> None:
    """Play the best next candidate, and write each team's win probability after it.

    The player's crowns, if there are any, come first.
    """
    while s["phase"] == CROWN_CHOICE:
        play_plan(s, best_candidate(s, selector))
    if s["phase"] != OVER and s["phase"] != ROLL:
        play_plan(s, best_candidate(s, selector))
    forward.reset_accumulator(selector.net)
    forward.write_value(s, selector.net, values)


@inlined
def looks_ahead(s: np.void, ahead: Ahead) -> bool:
    """Return whether the candidates in ``s`` are discs to look ahead at."""
    return s["phase"] == DISC and ahead.looks


@separate
def value_discs(s: np.void, selector: CandidateSelector, ahead: Ahead) -> Int:
    """List the discs and write the values after them, by looking ahead; returns how many."""
    plans, values = selector.candidates.plans, selector.values
    count = list_candidates(s, selector.candidates)
    search_discs(s, legal.playable_discs, value_next, ahead.selector, ahead.discs)
    for k in range(count):
        disc = disc_of(first_of(plans[k]))
        for team in range(values.shape[1]):
            values[k, team] = ahead.discs.values[disc - 1, team]
    return count


def values_ahead(states: States, weights: Weights, candidates: int = 32) -> npt.NDArray[np.float64]:
    """Return each team's win probability after the best next candidate: ``(N, teams)`` float64.

    The network has learnt positions in which dice are due. After a roll this is the better value,
    as it includes the best reply to it.

    Args:
        states: ``(N,)`` games of one number of players, at any point.
        weights: the weights of a network for that number of players.
        candidates: number of turns to compare, the planner's best ones.
    """
    players = common_players(as_states(states), "values")
    result = np.zeros((len(states), MAX_TEAMS))
    selector = CandidateSelector.of(players, weights, STOP, candidates)
    _values_ahead(states, selector, np.zeros(1, STATE), result)
    return result[:, : TEAMS[players]]


@entry
def _values_ahead(states: Records, selector: CandidateSelector, spare: Any, out: Any) -> None:
    for g in range(states.shape[0]):
        spare[0] = states[g]
        value_next(spare[0], selector, out[g])


# ------------------------------------------------------------------------------------ the bot


def discs_option() -> str:
    """Return the field ``discs`` of a bot's options."""
    return option(
        "turn",
        "value of a disc: now, or after all answers and the turn of the first player to act",
        among=("now", "turn"),
    )


@dataclass(frozen=True)
class ValueOptions(BotOptions):
    """Options of `ValueBot`; see docs/bots.md."""

    bot = "value"

    candidates: int = option(
        64, "turns that the network compares, the planner's best ones", among=(1, MOST_PLANS)
    )
    plans: str = option(
        "auto",
        "where paladins may go in the turn to play, see the planner; looking ahead it is stop; "
        "auto: one with two teams, stop with three",
        among=("auto", *WIDTHS),
    )
    discs: str = discs_option()
    errors: float = errors_option()


class ValueContext(NamedTuple):
    """Context of the bot's kernels."""

    selector: CandidateSelector
    ahead: Ahead
    errors: float  # probability of a random move


@separate
def decide(s: np.void, context: ValueContext) -> Int:
    """Return the bot's choice, a plan."""
    selector = context.selector
    if not looks_ahead(s, context.ahead):
        return best_candidate(s, selector)
    count = value_discs(s, selector, context.ahead)
    return selector.candidates.plans[best_of(selector.values, s, count)]


@separate
def choose(s: np.void, rest: Int, bits: Bits, context: ValueContext) -> tuple[Int, Int, Bits]:
    """Return the next action of the bot's plan, the rest, and the stream, drawn from for errors."""
    wrong, bits = error(s, bits, context.errors)
    if wrong >= 0:
        return wrong, 0, bits
    plan = rest if rest != 0 else decide(s, context)
    return first_of(plan), rest_of(plan), bits


class ValueBot(CompiledAgent):
    """Plays what leads to the best position by a value network.

    Args:
        model: a model for ``model.size.players`` players; None: the models of the package, each
            read when it is first needed.
        options: the bot's options; None: those of `ValueOptions`.
    """

    name = "value"
    entries = Entries.of(choose)

    def __init__(
        self, model: NetworkModel | None = None, options: ValueOptions | None = None
    ) -> None:
        self.options = options or ValueOptions()
        self._models = Models("value", model)

    def context(self, players: int) -> ValueContext:
        weights, options = self._models.weights(self.name, players), self.options
        plans = PLANS[TEAMS[players]] if options.plans == "auto" else options.plans
        selector = CandidateSelector.of(players, weights, WIDTHS.index(plans), options.candidates)
        return ValueContext(selector, Ahead.of(players, weights, options), float(options.errors))

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Return the choice, and the network's value after it."""
        players = common_players(states, "opinions")
        choices, values = np.empty(len(states), np.int64), np.zeros((len(states), MAX_TEAMS))
        _think(states, self.context(players), choices, values)
        chosen = with_errors(np.eye(ACTIONS)[choices], states, self.options.errors)
        return Opinion(chosen, values[:, : TEAMS[players]])


@entry
def _think(states: Records, context: ValueContext, actions: I64, values: F64) -> None:
    """Write each game's first action of the choice, and the value after the whole choice."""
    selector, ahead = context.selector, context.ahead
    for g in range(states.shape[0]):
        s = states[g]
        choice = decide(s, context)
        actions[g] = first_of(choice)
        if looks_ahead(s, ahead):
            for team in range(values.shape[1]):
                values[g, team] = ahead.discs.values[disc_of(actions[g]) - 1, team]
        else:
            forward.reset_accumulator(selector.net)
            forward.value_after(s, choice, selector.net, selector.after, values[g])


# ------------------------------------------------------------------------------------ rollouts


@separate
def choose_quickly(
    s: np.void, rest: Int, bits: Bits, selector: CandidateSelector
) -> tuple[Int, Int, Bits]:
    """Return the next action of the best plan by the position after it, as `choose`."""
    plan = rest if rest != 0 else best_candidate(s, selector)
    return first_of(plan), rest_of(plan), bits


class RolloutPolicy(CompiledAgent):
    """Plays discs, crowns and one of eight whole turns by the package's value network.

    Labels of positions rest on the play of rollouts, so this is a bot of its own: the options of
    `ValueBot` and their defaults can change without it.
    """

    name = "rollout_policy"
    entries = Entries.of(choose_quickly)

    def __init__(self) -> None:
        self._models = Models("value", None)

    def context(self, players: int) -> CandidateSelector:
        weights = self._models.weights(self.name, players)
        return CandidateSelector.of(players, weights, STOP, ROLLOUT_PLANS)
