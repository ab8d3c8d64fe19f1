"""``ppo`` plays by a policy over whole turns: it compares the positions after each candidate.

`networks.network` describes the network. Models are files of your own, or ``2p``, ``3p`` and ``4p``
of the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import Agent, AgentError, Opinion
from carolus_env.bots.compiled import CompiledByPlayers, Entries
from carolus_env.bots.models import Models, parse_model
from carolus_env.bots.options import BotOptions
from carolus_env.bots.value.ahead import COMPARED, Ahead, discs_option, value_discs
from carolus_env.engine.kernels import generator
from carolus_env.engine.kernels.turns import disc_of
from carolus_env.engine.rules import ACTIONS, DISC, DISCS, MAX_TEAMS, OVER, TEAMS
from carolus_env.engine.state import STATE, States, common_players
from carolus_env.networks.forward import (
    Network,
    Weights,
    log_odds,
    reset_accumulator,
    softmax,
    write_value,
)
from carolus_env.networks.network import NetworkModel
from carolus_env.planning.choices import EVERY, CandidateGenerator, list_choices
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import WIDTHS, first_of, play_plan
from carolus_env.system.arrays import F32, F64, Bits, Int, Records, float32, int64
from carolus_env.system.compiler import entry, kernel, separate
from carolus_env.system.options import option


class Policy(NamedTuple):
    """A policy as kernels take it: how candidates are listed, the network, and scratch."""

    proposals: CandidateGenerator
    """The candidate list; K of them at most."""
    net: Network
    """The network, with a policy head."""
    values: npt.NDArray[np.float64]
    """``(K, 3)`` float64: each team's win probability after each candidate."""
    odds: F32
    """``(K,)`` float32: the log odds of the team that chooses."""
    logits: F32
    """``(K,)`` float32."""
    probabilities: F32
    """``(K,)`` float32."""
    after: States
    """``(1,)`` STATE: the position after a candidate."""

    @classmethod
    def of(cls, players: int, weights: Weights, plans: int, candidates: int) -> Policy:
        """Return a policy with scratch of its own; the weights are shared.

        Args:
            players: number of players.
            weights: the network's weights.
            plans: an index into `plans.WIDTHS`: where paladins may go.
            candidates: the number of a turn's plans to compare, the planner's best ones.
        """
        proposals = CandidateGenerator.of(plans, all_weights()[players].copy(), candidates)
        most = len(proposals.choices)
        return cls(
            proposals,
            Network.of(players, weights),
            np.zeros((most, MAX_TEAMS)),
            np.zeros(most, np.float32),
            np.zeros(most, np.float32),
            np.zeros(most, np.float32),
            np.zeros(1, STATE),
        )


@kernel
def list_candidates(s: np.void, policy: Policy) -> Int:
    """List the candidates in ``s``, to be evaluated one after the other; returns how many."""
    reset_accumulator(policy.net)
    return list_choices(s, policy.proposals)


@separate
def evaluate_candidate(s: np.void, k: Int, policy: Policy) -> None:
    """Write the values, log odds and logit of the listed candidate ``k``.

    ``policy.after`` is then the position after it, and ``policy.net`` holds its inputs, unless the
    game is over there.
    """
    after, net = policy.after[0], policy.net
    policy.after[0] = s
    play_plan(after, policy.proposals.choices[k])
    write_value(after, net, policy.values[k])
    residual = float32(0)
    if after["phase"] != OVER:
        residual = net.activations.scores[net.activations.values.shape[0]]
    policy.odds[k] = log_odds(policy.values[k, int64(s["team"][s["player"]])])
    policy.logits[k] = residual + net.weights.sharpness[0] * policy.odds[k]


@separate
def evaluate_candidates(s: np.void, policy: Policy) -> Int:
    """List and evaluate the candidates in ``s``; returns how many there are."""
    count = list_candidates(s, policy)
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
        0.0,
        "0: the likeliest candidate; 1: drawn from the policy; higher: flatter",
        among=(0, 100),
    )
    candidates: int = option(
        16, "turns that are scored, the planner's best ones", among=(DISCS, EVERY)
    )
    plans: str = option("stop", "where paladins may go, see the planner", among=WIDTHS)
    discs: str = discs_option()


class Player(NamedTuple):
    """Context of the bot's kernels."""

    policy: Policy
    """The policy."""
    ahead: Ahead
    """Parameters and scratch of looking ahead at discs."""
    looks_ahead: bool
    """True if the bot looks ahead at discs."""
    temperature: float
    """Sampling temperature; 0: the likeliest candidate."""


@separate
def consider(s: np.void, player: Player) -> Int:
    """List and evaluate the candidates in ``s``; returns how many there are.

    Where the bot looks ahead at discs, the values there decide: the residual corrects the value
    *now*.
    """
    policy = player.policy
    if s["phase"] != DISC or not player.looks_ahead:
        return evaluate_candidates(s, policy)
    count = list_choices(s, policy.proposals)
    value_discs(s, player.ahead)
    team = int64(s["team"][s["player"]])
    for k in range(count):
        disc = disc_of(first_of(policy.proposals.choices[k]))
        for other in range(policy.values.shape[1]):
            policy.values[k, other] = player.ahead.discs.values[disc - 1, other]
        policy.odds[k] = log_odds(policy.values[k, team])
        policy.logits[k] = policy.net.weights.sharpness[0] * policy.odds[k]
    return count


@separate
def decide(s: np.void, bits: Bits, player: Player) -> tuple[Int, Bits]:
    """Return the chosen candidate and the stream, drawn from unless the temperature is 0."""
    policy = player.policy
    count = consider(s, player)
    best = 0
    for k in range(1, count):
        best = k if policy.logits[k] > policy.logits[best] else best
    if player.temperature > 0:
        bits = generator.step(bits)
        most = policy.logits[best]
        for k in range(count):
            policy.logits[k] = (policy.logits[k] - most) / float32(player.temperature)
        softmax(count, policy.logits, policy.probabilities)
        best = sample(count, policy.probabilities, generator.fraction(generator.mix(bits)))
    return policy.proposals.choices[best], bits


@separate
def choose(s: np.void, bits: Bits, player: Player) -> tuple[Int, Bits]:
    """Return the bot's decision, and the stream."""
    choice, bits = decide(s, bits, player)
    return first_of(choice), bits


class PpoBot(CompiledByPlayers):
    """Plays by a policy over whole turns.

    Each placement of a turn is chosen anew, among the turns that begin from there.

    Args:
        model: a model for ``model.size.players`` players with a policy head; None: the models of
            the package, each read when it is first needed.
        options: the bot's options; by default those of `PpoOptions`.

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

    def context_of(self, players: int) -> Player:
        """Return the context of the bot's kernels for games of ``players`` players.

        Raises:
            AgentError: for another number of players than the model was trained for.
        """
        weights, options = self._models.weights(self.name, players), self.options
        plans, most = WIDTHS.index(options.plans), int(options.candidates)
        return Player(
            Policy.of(players, weights, plans, most),
            Ahead.of(players, weights, min(most, COMPARED[TEAMS[players]])),
            options.discs == "turn",
            float(options.temperature),
        )

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Return the policy over first actions, and the mean value after each."""
        players = common_players(states, "opinions")
        probabilities = np.zeros((len(states), ACTIONS))
        values = np.zeros((len(states), MAX_TEAMS))
        _think(states, self.context_of(players), probabilities, values)
        return Opinion(probabilities, values[:, : TEAMS[players]])


@entry
def _think(states: Records, player: Player, probabilities: F64, values: F64) -> None:
    policy = player.policy
    for g in range(states.shape[0]):
        count = consider(states[g], player)
        softmax(count, policy.logits, policy.probabilities)
        for k in range(count):
            probabilities[g, first_of(policy.proposals.choices[k])] += policy.probabilities[k]
            for team in range(values.shape[1]):
                values[g, team] += policy.probabilities[k] * policy.values[k, team]


def make_ppo(argument: str) -> Agent:
    """Make ``ppo:ARGUMENT``: a model's name or path or nothing, then options."""
    return PpoBot(*parse_model("ppo", argument, PpoOptions, "ppo"))
