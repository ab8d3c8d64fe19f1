"""Bots that play by a trained network: ``value``, ``ppo``, ``rollout_policy`` and ``decisions``.

The first three value the position after each candidate (a disc, a crown, or one of the planner's
best plans of a turn), before the dice. A disc is valued a turn further on: every answer of later
players is tried (`plans.search_discs`), the first player to act plays its best turn, and that
position is valued. No dice lie in between, so this is exact as far as the values are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots.agent import Agent, AgentError, BotOptions, Opinion
from carolus_env.bots.compiled import CompiledAgent, Entries, error, errors_option, with_errors
from carolus_env.engine import rules
from carolus_env.engine.chance import check_streams
from carolus_env.engine.kernels import generator, legal
from carolus_env.engine.observation import observe
from carolus_env.engine.rules import ACTIONS, DISC, MAX_TEAMS, OVER, TEAMS
from carolus_env.engine.state import STATE, Ints, States, as_states, common_players, copy
from carolus_env.networks import decisions, network
from carolus_env.networks.decisions import DecisionModel
from carolus_env.networks.files import Kind, Model, ModelError, path_of
from carolus_env.networks.network import Network, NetworkModel, Weights
from carolus_env.planning import plans
from carolus_env.planning.heuristic import all_weights, softmax
from carolus_env.planning.plans import MOST_PLANS, WIDTHS, CandidateList, first_of
from carolus_env.system.arrays import F32, F64, U64, Bits, Int, Records, allocate, float32, int64
from carolus_env.system.compiler import entry, kernel, separate
from carolus_env.system.options import instance, option

PLANS: Final = {2: "one", 3: "stop"}
"""Default destinations of paladins, the strongest ones measured, by number of teams."""
PLANS_AHEAD: Final = {2: 16, 3: 8}
"""Maximum number of turns compared in positions ahead, by number of teams."""
ROLLOUT_PLANS: Final = 8
"""Number of a turn's plans that `RolloutPolicy` compares, the planner's best ones."""
TYPES: Final[dict[str, type[Model[Any]]]] = {
    "value": NetworkModel,
    "ppo": NetworkModel,
    "decisions": DecisionModel,
}
"""The class of each kind's models."""


def find(kind: Kind, name: str) -> Model[Any]:
    """Read a model: of the package, by ``2p``, ``3p`` or ``4p``, or your own file."""
    model = TYPES[kind].load(path_of(kind, name))
    if kind == "ppo" and not model.size.policy:
        raise ModelError(f"{name}: the model has no policy head; the bots value and search use it")
    return model


class Models:
    """The weights that a bot plays by: of one model, or of the package (read when needed)."""

    def __init__(self, kind: Kind, model: Model[Any] | None) -> None:
        wanted = TYPES[kind]
        instance("model", model, (wanted, type(None)), f"a {wanted.__name__} or None")
        self._kind, self._only = kind, None if model is None else model.size.players
        self._weights: dict[int, Any] = {}
        if model is not None:
            self._weights[model.size.players] = self._prepared(model)

    def weights(self, bot: str, players: int) -> Any:
        """Return the weights for games of ``players`` players: `Weights`, or arrays by name."""
        if players not in self._weights:
            if self._only is not None:
                raise AgentError(bot, f"has a model for {self._only} players, not for {players}")
            self._weights[players] = self._prepared(find(self._kind, f"{players}p"))
        return self._weights[players]

    def _prepared(self, model: Model[Any]) -> Any:
        return model.weights if self._kind == "decisions" else Weights.of(model.weights)


# ------------------------------------------------------------------------------------ candidates


class Selector(NamedTuple):
    """A decision's candidates, their values by a network and a policy over them."""

    net: Network
    candidates: CandidateList  # K of them at most
    ahead: int  # maximum number of a turn's plans that are compared in positions ahead
    after: States  # (1,) the position after a candidate
    values: F64  # (K, 3) each team's win probability after each candidate
    discs: plans.DiscScratch  # its ``values`` are the win probabilities after each disc
    odds: F32  # (K,) the log odds of the team that chooses; these three are a policy's
    logits: F32  # (K,)
    probabilities: F32  # (K,)
    looks: bool  # whether discs are valued by looking ahead
    errors: float  # probability of a random move
    temperature: float  # of a policy; 0: the likeliest candidate

    @classmethod
    def of(
        cls, players: int, weights: Weights, width: int, most: int,
        *, looks: bool = False, errors: float = 0.0, temperature: float = 0.0, policy: bool = False,
    ) -> Selector:  # fmt: skip
        """Return a selector with scratch of its own; the weights (of a ``policy``?) are shared."""
        if policy and len(weights.sharpness) == 0:
            raise ValueError("a policy needs weights that have a policy head")
        candidates = CandidateList.of(width, all_weights()[players].copy(), most)
        count, ahead = len(candidates.plans), min(most, PLANS_AHEAD[TEAMS[players]])
        odds, logits, probabilities = np.zeros((3, count), np.float32)
        return cls(
            Network.of(players, weights), candidates, ahead, np.zeros(1, STATE),
            np.zeros((count, MAX_TEAMS)), allocate(plans.DiscScratch),
            odds, logits, probabilities, looks, errors, temperature,
        )  # fmt: skip


@separate
def value_candidates(s: np.void, selector: Selector, count: Int) -> Int:
    """Write the values after the listed candidates; returns the best one's index."""
    listed, values, net = selector.candidates.plans, selector.values, selector.net
    network.value_plans(s, listed, count, net, selector.after, values)
    return best_of(values, s, count)


@kernel
def best_of(values: F64, s: np.void, count: Int) -> Int:
    """Return the index of the best of the first candidates for the team to move."""
    team, best = int64(s["team"][s["player"]]), 0
    for k in range(1, count):
        best = k if values[k, team] > values[best, team] else best
    return best


@separate
def best_candidate(s: np.void, candidates: CandidateList, selector: Selector) -> Int:
    """Return the best candidate by the position after it, a plan."""
    count = plans.list_candidates(s, candidates)
    return candidates.plans[value_candidates(s, selector, count)]


@separate
def value_next(s: np.void, selector: Selector, values: F64) -> None:
    """Play crowns and the best next candidate, and write each team's win probability after it."""
    own = selector.candidates
    ahead = CandidateList(
        int64(plans.STOP), own.weights, selector.ahead, own.scratch, own.plans, own.scores
    )
    while s["phase"] == rules.CROWN_CHOICE:
        plans.play_plan(s, best_candidate(s, ahead, selector))
    if s["phase"] != OVER and s["phase"] != rules.ROLL:
        plans.play_plan(s, best_candidate(s, ahead, selector))
    network.reset_accumulator(selector.net)
    network.write_value(s, selector.net, values)


@kernel
def looks_ahead(s: np.void, selector: Selector) -> bool:
    """Return whether the candidates in ``s`` are discs to look ahead at."""
    return s["phase"] == DISC and selector.looks


@separate
def value_discs(s: np.void, selector: Selector) -> Int:
    """List the discs and write the values after them, by looking ahead; returns how many."""
    plans.search_discs(s, legal.playable_discs, value_next, selector, selector.discs)
    count = plans.list_candidates(s, selector.candidates)
    for k in range(count):
        disc = first_of(selector.candidates.plans[k]) - rules.FIRST_DISC
        for team in range(selector.values.shape[1]):
            selector.values[k, team] = selector.discs.values[disc, team]
    return count


def values_ahead(states: States, weights: Weights, candidates: int = 32) -> F64:
    """Return each team's win probability after the best next candidate: ``(N, teams)`` float64.

    The network has learnt positions in which dice are due. After a roll this is the better value,
    as it includes the best reply to it. ``states`` are of the number of players of the weights.
    """
    players = common_players(as_states(states), "values")
    result = np.zeros((len(states), MAX_TEAMS))
    selector = Selector.of(players, weights, plans.STOP, candidates)
    _values_ahead(copy(states), selector._replace(ahead=candidates), result)
    return result[:, : TEAMS[players]]


@entry
def _values_ahead(states: Records, selector: Selector, values: Any) -> None:
    for g in range(states.shape[0]):
        value_next(states[g], selector, values[g])


# ------------------------------------------------------------------------------------ a policy


@separate
def evaluate_candidate(s: np.void, k: Int, selector: Selector) -> None:
    """Write the values, log odds and logit of the listed candidate ``k``.

    ``after`` is then the position after it, and ``net`` holds its inputs, unless the game is over
    there. Candidates are evaluated one after the other, the accumulator reset before the first.
    """
    net, after, plan = selector.net, selector.after, selector.candidates.plans[k]
    network.value_after(s, plan, net, after, selector.values[k])
    residual = float32(0)
    if after[0]["phase"] != OVER:
        residual = net.activations.scores[net.activations.values.shape[0]]
    _write_logit(s, k, residual, selector)


@kernel
def _write_logit(s: np.void, k: Int, residual: np.float32, selector: Selector) -> None:
    """Write the log odds and the logit of a candidate, whose values are known."""
    selector.odds[k] = network.log_odds(selector.values[k, int64(s["team"][s["player"]])])
    selector.logits[k] = residual + selector.net.weights.sharpness[0] * selector.odds[k]


@separate
def evaluate_candidates(s: np.void, selector: Selector) -> Int:
    """List and evaluate the candidates in ``s``; returns how many there are."""
    network.reset_accumulator(selector.net)
    count = plans.list_candidates(s, selector.candidates)
    for k in range(count):
        evaluate_candidate(s, k, selector)
    return count


@kernel
def sample(count: Int, probabilities: F32, fraction: float) -> Int:
    """Return the index that a fraction from 0 to 1 draws."""
    chosen, remaining = 0, float32(fraction)
    while chosen < count - 1 and remaining >= probabilities[chosen]:
        remaining -= probabilities[chosen]
        chosen += 1
    return chosen


@separate
def decide(s: np.void, selector: Selector) -> Int:
    """Return the choice by values, a plan."""
    if not looks_ahead(s, selector):
        return best_candidate(s, selector.candidates, selector)
    count = value_discs(s, selector)
    return selector.candidates.plans[best_of(selector.values, s, count)]


@separate
def choose(s: np.void, rest: Int, bits: Bits, selector: Selector) -> tuple[Int, Int, Bits]:
    """Return the next action of the plan, the rest, and the stream, drawn from for errors."""
    wrong, bits = error(s, bits, selector.errors)
    if wrong >= 0:
        return wrong, 0, bits
    plan = rest if rest != 0 else decide(s, selector)
    return first_of(plan), plans.rest_of(plan), bits


@separate
def consider(s: np.void, selector: Selector) -> Int:
    """List the candidates and write their values and logits; returns how many there are.

    Of discs looked ahead at the values there decide: the residual corrects the value *now*.
    """
    if not looks_ahead(s, selector):
        return evaluate_candidates(s, selector)
    count = value_discs(s, selector)
    for k in range(count):
        _write_logit(s, k, float32(0), selector)
    return count


@separate
def decide_by_policy(s: np.void, bits: Bits, selector: Selector) -> tuple[Int, Bits]:
    """Return the candidate, a plan, and the stream; temperature 0 draws nothing."""
    logits, count, best = selector.logits, consider(s, selector), 0
    for k in range(1, count):
        best = k if logits[k] > logits[best] else best
    temperature = float32(selector.temperature)  # 0 for the least ones
    if temperature > 0:
        bits = generator.step(bits)
        most = logits[best]
        for k in range(count):
            logits[k] = (logits[k] - most) / temperature
        softmax(count, logits, selector.probabilities)
        best = sample(count, selector.probabilities, generator.fraction(generator.mix(bits)))
    return selector.candidates.plans[best], bits


@separate
def choose_by_policy(
    s: np.void, rest: Int, bits: Bits, selector: Selector
) -> tuple[Int, Int, Bits]:
    """Return the next action of the plan, the rest, and the stream."""
    plan = rest
    if rest == 0:
        plan, bits = decide_by_policy(s, bits, selector)
    return first_of(plan), plans.rest_of(plan), bits


# ------------------------------------------------------------------------------------ the bots


@dataclass(frozen=True)
class _ComparisonOptions(BotOptions):
    """What is compared."""

    candidates: int = option(
        64, "turns that the network compares, the planner's best ones", among=(1, MOST_PLANS)
    )
    plans: str = option(
        "auto",
        "where paladins may go in the turn to play, see the planner; looking ahead it is stop; "
        "auto: one with two teams, stop with three",
        among=("auto", *WIDTHS),
    )
    discs: str = option(
        "turn",
        "value of a disc: now, or after all answers and the turn of the first player to act",
        among=("now", "turn"),
    )


@dataclass(frozen=True)
class ValueOptions(_ComparisonOptions):
    """Options of `ValueBot`; see docs/bots.md."""

    bot = "value"

    errors: float = errors_option()


@dataclass(frozen=True)
class PpoOptions(_ComparisonOptions):
    """Options of `PpoBot`; see docs/bots.md."""

    bot = "ppo"

    temperature: float = option(
        0.0, "0: the likeliest candidate; 1: drawn from the policy; higher: flatter", among=(0, 100)
    )


class _NetworkBot(CompiledAgent):
    """Base of the bots that compare candidates by a network."""

    options: Any
    _models: Models

    def context(self, players: int) -> Selector:
        weights, options = self._models.weights(self.name, players), vars(self.options)
        width = PLANS[TEAMS[players]] if options["plans"] == "auto" else options["plans"]
        numbers: dict[str, Any] = {n: float(options.get(n, 0)) for n in ("errors", "temperature")}
        where, looks = WIDTHS.index(width), options["discs"] == "turn"
        return Selector.of(players, weights, where, options["candidates"], looks=looks, **numbers)

    def opinion(self, states: States, generators: U64) -> Opinion:
        """Return the choice or the policy over first actions, and the mean value after them."""
        states = as_states(states)
        teams = TEAMS[common_players(states, "opinions")]
        chances, values = np.zeros((len(states), ACTIONS)), np.zeros((len(states), teams))
        choices, streams = np.zeros((2, len(states)), np.int64), generators.copy()
        for part, players, context in self._portions(states["players"]):
            asked = context._replace(errors=0.0, temperature=1.0)
            for g in range(part.start, part.stop):
                asked.probabilities[:] = 0
                self.entries.act(states, streams, choices, g, g + 1, players, asked)
                for k, probability in self._probabilities(asked, *choices[:, g].tolist()):
                    chances[g, plans.actions_of(int(asked.candidates.plans[k]))[0]] += probability
                    values[g] += probability * asked.values[k, :teams]
        return Opinion(with_errors(chances, states, vars(self.options).get("errors", 0.0)), values)

    @abstractmethod
    def _probabilities(self, asked: Selector, action: int, rest: int) -> Iterable[tuple[int, Any]]:
        """Return the candidates' indices and probabilities, after a choice has listed them."""


class ValueBot(_NetworkBot):
    """Plays what leads to the best position by a value network.

    Its model is for ``model.size.players`` players; None: the models of the package, each read when
    it is first needed.
    """

    name = "value"
    entries = Entries.of(choose)

    def __init__(
        self, model: NetworkModel | None = None, options: ValueOptions | None = None
    ) -> None:
        self.options, self._models = options or ValueOptions(), Models("value", model)

    def _probabilities(self, asked: Selector, action: int, rest: int) -> Iterable[tuple[int, Any]]:
        plan = plans.plan_of([action, *plans.actions_of(rest)])
        return [(asked.candidates.plans.tolist().index(plan), 1.0)]


class RolloutPolicy(ValueBot):
    """Plays rollouts: labels of positions rest on it, so it does not follow `ValueOptions`."""

    name = "rollout_policy"

    def __init__(self) -> None:
        super().__init__(None, ValueOptions(ROLLOUT_PLANS, "stop", "now", errors=0.0))


class PpoBot(_NetworkBot):
    """Plays by a policy over whole turns.

    The model, as for `ValueBot`, must have a policy head, else AgentError.
    """

    name = "ppo"
    entries = Entries.of(choose_by_policy)

    def __init__(
        self, model: NetworkModel | None = None, options: PpoOptions | None = None
    ) -> None:
        self.options, self._models = options or PpoOptions(), Models("ppo", model)
        if model is not None and not model.size.policy:
            raise AgentError(self.name, "needs a model with a policy head")

    def _probabilities(self, asked: Selector, action: int, rest: int) -> Iterable[tuple[int, Any]]:
        shares = asked.probabilities.astype(np.float64)  # of float32 the sum may be 0.999999
        return ((k, share) for k, share in enumerate(shares / shares.sum()) if share > 0)


class DecisionsBot(Agent):
    """Plays the likeliest legal action by a policy over single decisions (`networks.decisions`)."""

    name = "decisions"

    def __init__(self, model: DecisionModel | None = None) -> None:
        self._models = Models("decisions", model)

    def act(self, states: States, generators: U64) -> Ints:
        players = as_states(states)["players"]
        check_streams(generators, states)
        actions = np.zeros(len(states), np.int64)
        for count in np.unique(players).tolist():
            actions[players == count] = self._answer(states[players == count])[0].argmax(axis=1)
        return actions

    def opinion(self, states: States, generators: U64) -> Opinion:
        """Return the policy, and win probabilities from what it expects each seat to be paid."""
        players = common_players(states, "opinions")
        logits, values = (answer.astype(np.float64) for answer in self._answer(states))
        each, teams = np.arange(len(states))[:, None], TEAMS[players]
        payoffs = np.zeros((len(states), teams))  # of partners the same
        seats = (states["player"][:, None] + np.arange(players)) % players
        payoffs[each, states["team"][each, seats]] = values
        shares = np.maximum((teams - 1) * payoffs + 1, 1e-6)
        probabilities = decisions.softmax(logits, np)
        return Opinion(probabilities, shares / shares.sum(axis=1, keepdims=True))

    def _answer(self, states: States) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return logits, those of illegal actions minus infinity, and values."""
        if len(states) == 0:
            return np.zeros((0, ACTIONS), np.float32), np.zeros((0, 2), np.float32)
        players = int(states["players"][0])
        weights = self._models.weights(self.name, players)
        observations = observe(states).astype(np.float32)
        logits, values = decisions.forward(weights, observations, players, np)
        return np.where(engine.legal_masks(states) == 1, logits, -np.inf), values
