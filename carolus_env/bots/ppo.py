"""``ppo`` plays by a policy over whole turns: it compares the positions after each candidate.

`networks.network` describes the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import AgentError, Opinion
from carolus_env.bots.compiled import CompiledAgent, Entries
from carolus_env.bots.models import Models
from carolus_env.bots.options import BotOptions
from carolus_env.bots.value import Ahead, CandidateSelector, discs_option, looks_ahead, value_discs
from carolus_env.engine.kernels import generator
from carolus_env.engine.rules import ACTIONS, DISCS, MAX_TEAMS, OVER, TEAMS
from carolus_env.engine.state import States, common_players
from carolus_env.networks.forward import Weights, log_odds, reset_accumulator, softmax, value_after
from carolus_env.networks.network import NetworkModel
from carolus_env.planning.plans import MOST_PLANS, WIDTHS, first_of, list_candidates
from carolus_env.system.arrays import F32, F64, Bits, Int, Records, float32, int64
from carolus_env.system.compiler import entry, kernel, separate
from carolus_env.system.options import option


class Policy(NamedTuple):
    """A policy as kernels take it: candidates with their values, logits, and scratch."""

    selector: CandidateSelector  # K candidates at most; its network has a policy head
    odds: F32  # (K,) the log odds of the team that chooses
    logits: F32  # (K,)
    probabilities: F32  # (K,)

    @classmethod
    def of(cls, players: int, weights: Weights, width: int, most: int) -> Policy:
        """Return a policy with scratch of its own, as `CandidateSelector.of`."""
        selector = CandidateSelector.of(players, weights, width, most)
        return cls(selector, *(np.zeros(len(selector.values), np.float32) for _ in range(3)))


@separate
def evaluate_candidate(s: np.void, k: Int, policy: Policy) -> None:
    """Write the values, log odds and logit of the listed candidate ``k``.

    ``selector.after`` is then the position after it, and ``selector.net`` holds its inputs, unless
    the game is over there. Candidates are evaluated one after the other, the accumulator reset
    before the first.
    """
    selector = policy.selector
    net, after, plan = selector.net, selector.after, selector.candidates.plans[k]
    value_after(s, plan, net, after, selector.values[k])
    residual = float32(0)
    if after[0]["phase"] != OVER:
        residual = net.activations.scores[net.activations.values.shape[0]]
    _write_logit(s, k, residual, policy)


@kernel
def _write_logit(s: np.void, k: Int, residual: np.float32, policy: Policy) -> None:
    """Write the log odds and the logit of a candidate, whose values are known."""
    selector = policy.selector
    policy.odds[k] = log_odds(selector.values[k, int64(s["team"][s["player"]])])
    policy.logits[k] = residual + selector.net.weights.sharpness[0] * policy.odds[k]


@separate
def evaluate_candidates(s: np.void, policy: Policy) -> Int:
    """List and evaluate the candidates in ``s``; returns how many there are."""
    reset_accumulator(policy.selector.net)
    count = list_candidates(s, policy.selector.candidates)
    for k in range(count):
        evaluate_candidate(s, k, policy)
    return count


@kernel
def sample(count: Int, probabilities: F32, fraction: float) -> Int:
    """Return the index that a fraction from 0 to 1 draws."""
    chosen, remaining = 0, float32(fraction)
    while chosen < count - 1 and remaining >= probabilities[chosen]:
        remaining -= probabilities[chosen]
        chosen += 1
    return chosen


@dataclass(frozen=True)
class PpoOptions(BotOptions):
    """Options of `PpoBot`."""

    bot = "ppo"

    temperature: float = option(
        0.0, "0: the likeliest candidate; 1: drawn from the policy; higher: flatter", among=(0, 100)
    )
    candidates: int = option(
        16, "turns that are scored, the planner's best ones", among=(DISCS, MOST_PLANS)
    )
    plans: str = option("stop", "where paladins may go, see the planner", among=WIDTHS)
    discs: str = discs_option()


class PpoContext(NamedTuple):
    """Context of the bot's kernels."""

    policy: Policy
    ahead: Ahead
    temperature: float  # 0: the likeliest candidate


@separate
def consider(s: np.void, context: PpoContext) -> Int:
    """List and evaluate the candidates in ``s``; returns how many there are.

    Where the bot looks ahead at discs, the values there decide: the residual corrects the value
    *now*.
    """
    policy = context.policy
    if not looks_ahead(s, context.ahead):
        return evaluate_candidates(s, policy)
    count = value_discs(s, policy.selector, context.ahead)
    for k in range(count):
        _write_logit(s, k, float32(0), policy)
    return count


@separate
def choose(s: np.void, rest: Int, bits: Bits, context: PpoContext) -> tuple[Int, Int, Bits]:
    """Return the chosen candidate's first action, no plan, and the stream.

    The stream is drawn from unless the temperature is 0.
    """
    policy = context.policy
    count = consider(s, context)
    best = 0
    for k in range(1, count):
        best = k if policy.logits[k] > policy.logits[best] else best
    if context.temperature > 0:
        bits = generator.step(bits)
        most = policy.logits[best]
        for k in range(count):
            policy.logits[k] = (policy.logits[k] - most) / float32(context.temperature)
        softmax(count, policy.logits, policy.probabilities)
        best = sample(count, policy.probabilities, generator.fraction(generator.mix(bits)))
    return first_of(policy.selector.candidates.plans[best]), 0, bits


class PpoBot(CompiledAgent):
    """Plays by a policy over whole turns.

    Each placement of a turn is chosen anew, among the turns that begin from there.

    Args:
        model: a model for ``model.size.players`` players with a policy head; None: the models of
            the package, each read when it is first needed.
        options: the bot's options; None: those of `PpoOptions`.

    Raises:
        AgentError: for a model without a policy head.
    """

    name = "ppo"
    entries = Entries.of(choose)

    def __init__(
        self, model: NetworkModel | None = None, options: PpoOptions | None = None
    ) -> None:
        if model is not None and not model.size.policy:
            raise AgentError(self.name, "needs a model with a policy head")
        self.options = options or PpoOptions()
        self._models = Models("ppo", model)

    def context(self, players: int) -> PpoContext:
        weights, options = self._models.weights(self.name, players), self.options
        plans = WIDTHS.index(options.plans)
        policy = Policy.of(players, weights, plans, options.candidates)
        return PpoContext(policy, Ahead.of(players, weights, options), float(options.temperature))

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Return the policy over first actions, and the mean value after each."""
        players = common_players(states, "opinions")
        probabilities = np.zeros((len(states), ACTIONS))
        values = np.zeros((len(states), MAX_TEAMS))
        _think(states, self.context(players), probabilities, values)
        return Opinion(probabilities, values[:, : TEAMS[players]])


@entry
def _think(states: Records, context: PpoContext, probabilities: F64, values: F64) -> None:
    policy, selector = context.policy, context.policy.selector
    for g in range(states.shape[0]):
        count = consider(states[g], context)
        softmax(count, policy.logits, policy.probabilities)
        for k in range(count):
            probability = policy.probabilities[k]
            probabilities[g, first_of(selector.candidates.plans[k])] += probability
            for team in range(values.shape[1]):
                values[g, team] += probability * selector.values[k, team]
