"""PPO over whole turns, in self-play: a decision is a disc, a crown or a whole turn.

The planner lists the best plans of a turn, and the policy chooses one of them. All decisions of all
seats are learnt from. Values are win probabilities by team, so what the next position promises,
whichever team moves there, tells every team what a decision was worth, and no sign is flipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.bots import network as bot
from carolus_env.bots.network import Selector
from carolus_env.engine.chance import Deals
from carolus_env.engine.kernels import generator, turns
from carolus_env.engine.rules import MAX_TEAMS, OVER, TEAMS
from carolus_env.engine.state import STATE, States
from carolus_env.engine.stepping import play_on, start_anew
from carolus_env.learners.run import Arrays, algorithm, every, rate
from carolus_env.learners.selfplay import SelfPlayConfig, SelfPlayLearner, Stats, Task
from carolus_env.networks import network
from carolus_env.networks.inputs import InputArrays, keep_inputs, restore_inputs
from carolus_env.networks.network import NetworkModel, Weights
from carolus_env.planning.heuristic import FEATURES, softmax
from carolus_env.planning.plans import list_candidates, play_plan
from carolus_env.system import arrays
from carolus_env.system.arrays import F32, F64, I64, U64, Bits, Int, Records, float32, int64
from carolus_env.system.compiler import entry, inlined, kernel, separate
from carolus_env.system.options import option


@dataclass
class PpoConfig(SelfPlayConfig):
    """The hyperparameters of PPO over whole turns."""

    learner_name: ClassVar[str] = "ppo"
    unit: ClassVar[str] = "decisions"
    policy: ClassVar[bool] = True
    length: ClassVar[str] = "steps"
    hint: ClassVar[str] = "for the same training time --learner value is stronger"

    steps: int = option(
        3_600_000,
        "decisions to learn from, in all: a decision is a disc, a crown or a whole turn",
        among=(1, None),
    )
    envs: int = algorithm(32, "games that each worker plays side by side", among=(1, None))
    rollout: int = algorithm(
        32, "decisions in each game between two updates of the network", among=(1, None)
    )
    batch: int = algorithm(16, "decisions in a gradient step of a worker", among=(1, None))
    epochs: int = algorithm(1, "passes over the decisions of a rollout", among=(1, None))
    learning_rate: float = rate(
        0.03, "initial learning rate of Adagrad; decays geometrically to learning_rate_end"
    )
    learning_rate_end: float = rate(0.0009, "learning rate at the end", "algorithm")
    policy_square: float = algorithm(
        100.0, "as first_square, of the policy head: it learns more slowly", among=(1e-9, 1e6)
    )
    square_decay: float = algorithm(
        1.0,
        "factor of a weight's sum of squared gradients before one is added; below 1 (RMSProp) "
        "rates do not fall with experience",
        among=(0, 1),
    )
    gae_lambda: float = algorithm(
        0.9,
        "lambda of generalised advantage estimation, over the decisions of all seats",
        among=(0, 1),
    )
    trace: float = algorithm(0.5, "lambda of the values' targets", among=(0, 1))
    entropy: float = algorithm(0.003, "weight of the entropy bonus", among=(0, 100))
    policy_weight: float = algorithm(
        0.25, "weight of the policy's loss, entropy bonus included", among=(0, 100)
    )
    clip: float = algorithm(0.2, "PPO's clip range", among=(None, 1), above=0)
    eval_every: int = every(1_200_000, "decisions")
    curve_every: int = every(50_000, "decisions", "points of the curve")

    @property
    def memory(self) -> int:
        one = Experience.new(1, 1, self.candidates, self.players)
        return self.round_size(0) * sum(array.nbytes for array in (*one[:-1], *one.inputs))

    def round_size(self, done: int) -> int:
        return self.workers * self.envs * self.rollout


# ------------------------------------------------------------------------------------ rollouts


class Experience(NamedTuple):
    """The D decisions of N games in a rollout; those of a game are consecutive rows, one a step.

    Of a decision the first of K candidates count; the inputs of candidate k of decision d are
    number ``d * K + k``.
    """

    counts: Annotated[I64, "D"]  # the number of candidates
    chosen: Annotated[I64, "D"]  # the candidate that was chosen
    team: Annotated[I64, "D"]  # the team that chose
    log_probs: Annotated[F32, "D"]  # the log probability of the choice
    advantages: Annotated[F32, "D"]  # of the team that chose
    win_shares: Annotated[F32, "D", MAX_TEAMS]  # each team's where the game was over after it
    expected: Annotated[F32, "D", MAX_TEAMS]  # win probabilities by the policy before the choice
    targets: Annotated[F32, "D", MAX_TEAMS]  # the target of the value after the choice, by team
    ends: Annotated[npt.NDArray[np.bool_], "D"]  # the game was over after it
    last: Annotated[F32, "N", MAX_TEAMS]  # `expected` after the last decision of each game
    result: Annotated[F32, "D", "K"]  # the win share where a candidate ends the game, else -1
    inputs: InputArrays  # the network's inputs after the candidates: D times K positions

    @classmethod
    def new(cls, games: int, steps: int, candidates: int, players: int) -> Experience:
        d, features = games * steps, TEAMS[players] * len(FEATURES)
        sizes = {"N": games, "D": d, "K": candidates, "n": d * candidates}
        return arrays.allocate(cls, **sizes, features=features)


@separate
def _evaluate_and_keep(s: np.void, policy: Selector, experience: Experience, d: Int) -> Int:
    """List and evaluate the candidates, and keep their inputs; returns how many there are."""
    team = int64(s["team"][s["player"]])
    after, first = policy.after[0], d * experience.result.shape[1]
    network.reset_accumulator(policy.net)
    count = list_candidates(s, policy.candidates)
    for k in range(count):
        bot.evaluate_candidate(s, k, policy)
        if after["phase"] == OVER:
            experience.result[d, k] = policy.values[k, team]
        else:
            experience.result[d, k] = -1
            keep_inputs(after, policy.net.inputs, experience.inputs, first + k)
    return count


@kernel
def _expect(count: Int, policy: Selector, expected: F32) -> np.float32:
    """Write each team's win probability that the policy expects; returns the log of the sum."""
    most, total = softmax(count, policy.logits, policy.probabilities)
    for team in range(expected.shape[0]):
        mean = 0.0
        for k in range(count):
            mean += policy.probabilities[k] * policy.values[k, team]
        expected[team] = mean
    return most + np.log(total)


class SelfPlay(NamedTuple):
    """Context of a game of a rollout; see `play_rollout`."""

    states: States
    game: int  # its number
    steps: int  # decisions to play
    blank: States  # see `start_anew`
    policy: Selector
    experience: Experience
    stats: F64


@inlined
def _decide(s: np.void, t: Any, stream: Bits, player: Any) -> Any:
    """Draw a decision by the policy and note it: an ``act`` of `play_on`."""
    if t == player.steps:
        return False, stream
    policy, experience, d = player.policy, player.experience, player.game * player.steps + t
    count = _evaluate_and_keep(s, policy, experience, d)
    total = _expect(count, policy, experience.expected[d])
    stream = generator.step(stream)
    chosen = bot.sample(count, policy.probabilities, generator.fraction(generator.mix(stream)))
    experience.counts[d], experience.chosen[d] = count, chosen
    experience.team[d] = int64(s["team"][s["player"]])
    experience.log_probs[d] = policy.logits[chosen] - total
    play_plan(s, policy.candidates.plans[chosen])
    return True, stream


@inlined
def _roll(s: np.void, t: Any, stream: Bits, player: Any) -> Any:
    """Roll, and start a game that is over anew: a ``roll`` of `play_on`."""
    experience, stats, d = player.experience, player.stats, player.game * player.steps + t
    turns.roll_on(s)
    experience.ends[d] = s["phase"] == OVER
    if s["phase"] == OVER:
        for team in range(int64(s["teams"])):
            experience.win_shares[d, team] = turns.team_win_share(s, team)
        stats[0] += 1
        stats[1] += int64(s["round"])
        start_anew(player.states, player.game, player.blank)
    return stream


@entry
def play_rollout(
    states: Records,
    streams: U64,
    blank: Records,
    policy: Selector,
    experience: Experience,
    stats: F64,
) -> None:
    """Play the same number of decisions in every game, whose streams choose, and note them.

    Games that end start anew; they are counted in ``stats[0]``, their rounds in ``stats[1]``.
    """
    steps = experience.counts.shape[0] // states.shape[0]
    for g in range(states.shape[0]):
        player = SelfPlay(states, g, steps, blank, policy, experience, stats)
        streams[g] = play_on(_decide, _roll, states[g], streams[g], player)[1]
        _expect(bot.evaluate_candidates(states[g], policy), policy, experience.last[g])


@entry
def estimate(experience: Experience, trace: np.float32, gae_lambda: np.float32) -> None:
    """Write targets, by lambda ``trace``, and advantages, from the last decision backwards.

    Generalised advantage estimation (Schulman et al., arXiv:1506.02438), with values that belong to
    the position *after* a candidate: a position is worth what the policy expects of its candidates.
    """
    games = experience.last.shape[0]
    steps = experience.counts.shape[0] // games
    for g in range(games):
        for team in range(experience.last.shape[1]):
            target = experience.last[g, team]
            outcome, expected = target, target
            for t in range(steps - 1, -1, -1):
                d = g * steps + t
                target = trace * target + (float32(1) - trace) * expected
                outcome = gae_lambda * outcome + (float32(1) - gae_lambda) * expected
                if experience.ends[d]:
                    target, outcome = experience.win_shares[d, team], experience.win_shares[d, team]
                expected = experience.expected[d, team]
                experience.targets[d, team] = target
                if experience.team[d] == team:
                    experience.advantages[d] = outcome - expected


# ------------------------------------------------------------------------------------ the loss


class Loss(NamedTuple):
    """The weights and limits of the loss.

    The loss of a decision is PPO's clipped one (Schulman et al., arXiv:1707.06347) less a bonus for
    entropy, and the cross-entropy between the value after the choice and its target. The value
    steers the logits, too (`networks.network`), but does not learn from that: there it is taken as
    given.
    """

    clip: np.float32  # maximum distance of the ratio of probabilities from 1
    entropy: np.float32  # weight of the entropy
    policy: np.float32  # weight of these two
    mean: np.float32  # mean of the advantages, which is subtracted from them
    scale: np.float32  # factor of the advantages after that


class Batch(NamedTuple):
    """Scratch: activations for each candidate of a decision, gradients, and their sums."""

    layers: network.Activations  # as for one position, with a first axis for the candidates
    values: F32  # (K,) the win probability of the team that chooses
    logits: F32  # (K,) gradients of the logits
    sums: F32  # (K, width) gradients of the first layer's outputs
    deltas: network.Deltas  # gradients of the layers' outputs for one candidate
    hidden: F32  # (stages, hidden, width - LINEAR) the hidden layers, transposed
    gradients: Weights  # the sum of the gradients since the last step
    touched: npt.NDArray[np.bool_]  # (rows,) the rows that any of them is about

    @classmethod
    def new(cls, policy: Selector) -> Batch:
        most, net = len(policy.logits), policy.net
        single, weights = net.activations, net.weights
        return cls(
            network.Activations(*(np.zeros((most, len(layer)), np.float32) for layer in single)),
            np.zeros(most, np.float32),
            np.zeros(most, np.float32),
            np.zeros((most, len(single.sums)), np.float32),
            network.Deltas.new(single),
            np.zeros_like(weights.hidden.swapaxes(1, 2), order="C"),
            Weights(*map(np.zeros_like, weights)),
            np.zeros(len(weights.rows), np.bool_),
        )


@kernel
def _layers_of(batch: Batch, k: Int) -> network.Activations:
    layers = batch.layers
    return network.Activations(
        layers.sums[k], layers.first[k], layers.second[k], layers.scores[k], layers.values[k]
    )


@separate
def _evaluate_again(
    kept: InputArrays, i: Int, net: network.Network, layers: network.Activations
) -> None:
    """Write the activations for kept inputs, by the present weights."""
    restore_inputs(kept, i, net.inputs)
    network.update_sums(net.weights, net.inputs, net.accumulator, net.activations.sums)
    for j in range(layers.sums.shape[0]):
        layers.sums[j] = net.activations.sums[j]
    network.apply_layers(net.weights, kept.stages[i], layers)


@separate
def _backpropagate(stage: Int, k: Int, is_choice: bool, weights: Weights, batch: Batch) -> None:
    """Add the gradient of one candidate; that of the first layer is left in ``batch.sums``."""
    layers, deltas = _layers_of(batch, k), batch.deltas
    teams = layers.values.shape[0]
    deltas.scores[teams] = batch.logits[k]
    if not is_choice:  # only the value after the choice has a target
        for role in range(teams):
            deltas.scores[role] = 0
    network.backpropagate(weights, stage, batch.hidden[stage], layers, deltas)
    network.learn_layers(
        network.accumulate, batch.gradients, batch.gradients, stage, layers, deltas, float32(0)
    )
    for j in range(deltas.sums.shape[0]):
        batch.sums[k, j] = deltas.sums[j]


@separate
def _add_input_gradients(experience: Experience, d: Int, batch: Batch) -> None:
    """Add the gradients of the first layer, of all candidates of a decision together.

    Candidates share most rows. A row that consecutive candidates have learns from the sum of
    their gradients, so each candidate only visits what is new: where `update_sums` adds a row, its
    gradient and all later ones are added, and where it takes one away, they are taken back.
    """
    own, sums = batch.gradients, batch.sums
    first, last = d * experience.result.shape[1], (d + 1) * experience.result.shape[1]
    lengths, rows = experience.inputs.lengths[first:last], experience.inputs.rows[first:last]
    features, width, later = experience.inputs.features[first:last], sums.shape[1], -1
    for k in range(experience.counts[d] - 1, -1, -1):
        if experience.result[d, k] < 0:
            if later >= 0:
                for j in range(width):
                    sums[k, j] += sums[later, j]
            later = k
    before, length_before = -1, 0
    for k in range(experience.counts[d]):
        if experience.result[d, k] >= 0:
            continue
        g, length = sums[k], lengths[k]
        if before < 0:
            network.accumulate(own.bias, own.bias, float32(1), g, float32(0))
        for i in range(max(length, length_before)):
            new = rows[k, i] if i < length else -1
            old = rows[before, i] if i < length_before else -1
            if new != old:
                if old >= 0:
                    network.accumulate(own.rows[old], own.rows[old], float32(-1), g, float32(0))
                if new >= 0:
                    network.accumulate(own.rows[new], own.rows[new], float32(1), g, float32(0))
                    batch.touched[new] = True
        for i in range(features.shape[1]):
            growth = features[k, i] - (features[before, i] if before >= 0 else float32(0))
            if growth != 0:
                network.accumulate(own.features[i], own.features[i], growth, g, float32(0))
        before, length_before = k, length


@inlined
def _evaluate_decision(experience: Experience, d: Int, policy: Selector, batch: Batch) -> None:
    """Write the values, log odds and logits of a decision's candidates by the present weights."""
    team, teams, net = experience.team[d], batch.layers.values.shape[1], policy.net
    kept, first = experience.inputs, d * experience.result.shape[1]
    network.reset_accumulator(net)
    for k in range(experience.counts[d]):
        residual = float32(0)
        batch.values[k] = experience.result[d, k]
        if batch.values[k] < 0:
            _evaluate_again(kept, first + k, net, _layers_of(batch, k))
            residual = batch.layers.scores[k, teams]
            role = (team - kept.first_team[first + k] + teams) % teams
            batch.values[k] = batch.layers.values[k, role]
        policy.odds[k] = network.log_odds(batch.values[k])
        policy.logits[k] = residual + net.weights.sharpness[0] * policy.odds[k]


@inlined
def _logit_gradients(
    experience: Experience, d: Int, policy: Selector, batch: Batch, loss: Loss, stats: F64
) -> None:
    """Write the gradient of the policy's loss with respect to each candidate's logit."""
    count, choice, p = experience.counts[d], experience.chosen[d], policy.probabilities
    most, total = softmax(count, policy.logits, p)
    log_total = most + np.log(total)
    entropy = float32(0)
    for k in range(count):
        entropy -= p[k] * (policy.logits[k] - log_total)
    change = policy.logits[choice] - log_total - experience.log_probs[d]
    ratio = np.exp(change)
    advantage = (experience.advantages[d] - loss.mean) * loss.scale
    clipped = ratio > 1 + loss.clip if advantage > 0 else ratio < 1 - loss.clip
    stats[2] += 1
    stats[3] += entropy
    stats[4] += 1.0 if clipped else 0.0
    stats[7] += ratio - 1 - change
    for k in range(count):
        g = loss.entropy * p[k] * (policy.logits[k] - log_total + entropy)
        if not clipped:
            g -= advantage * ratio * ((float32(1) if k == choice else float32(0)) - p[k])
        batch.logits[k] = g * loss.policy


@separate
def add_gradients(
    chosen: I64, experience: Experience, policy: Selector, batch: Batch, loss: Loss, stats: F64
) -> None:
    """Add the gradients of the chosen decisions to those of the batch.

    ``stats`` from 2 on are decisions, their entropy, how many were clipped, values that were
    learnt, their cross-entropy, and the Kullback-Leibler distance from the policy that decided.
    """
    layers, scores = batch.layers, batch.deltas.scores
    kept, weights, teams = experience.inputs, policy.net.weights, layers.values.shape[1]
    for stage in range(batch.hidden.shape[0]):
        network.transpose(weights.hidden[stage], batch.hidden[stage])
    for i in range(chosen.shape[0]):
        d = chosen[i]
        _evaluate_decision(experience, d, policy, batch)
        _logit_gradients(experience, d, policy, batch, loss, stats)
        for k in range(experience.counts[d]):
            batch.gradients.sharpness[0] += batch.logits[k] * policy.odds[k]
            if experience.result[d, k] >= 0:
                continue  # nothing to learn: the network was not evaluated
            i, is_choice = d * experience.result.shape[1] + k, k == experience.chosen[d]
            if is_choice:
                stats[5] += 1
                for role in range(teams):
                    target = experience.targets[d, (kept.first_team[i] + role) % teams]
                    value = layers.values[k, role]
                    stats[6] -= target * np.log(max(value, float32(1e-9)))
                    scores[role] = value - target
            _backpropagate(kept.stages[i], k, is_choice, weights, batch)
        _add_input_gradients(experience, d, batch)


Rates: TypeAlias = tuple[np.float32, np.float32]
"""The learning rate, and the factor of a sum of squares before a squared gradient is added."""
_SMALLEST = float32(1e-20)  # sum of squares that forgets: at 0 a step would be infinite


@kernel
def _use(weights: F32, squares: F32, gradients: F32, rates: Rates) -> None:
    """Take a step by gradients; then there are none."""
    numbers, sums, (rate, decay) = squares.reshape(-1), gradients.reshape(-1), rates
    for i in range(numbers.shape[0]):
        numbers[i] = max(numbers[i] * (decay if sums[i] != 0 else float32(1)), _SMALLEST)
    network.adagrad(weights.reshape(-1), numbers, float32(1), sums, rate)
    sums[:] = float32(0)


@separate
def step(weights: Weights, squares: Weights, batch: Batch, rates: Rates) -> None:
    """Take a step of Adagrad by the sums of gradients; rows that have none stay as they are."""
    w, q, g, touched = weights, squares, batch.gradients, batch.touched
    for row in range(touched.shape[0]):
        if touched[row]:
            touched[row] = False
            _use(w.rows[row], q.rows[row], g.rows[row], rates)
    _use(w.features, q.features, g.features, rates)
    _use(w.bias, q.bias, g.bias, rates)
    _use(w.hidden, q.hidden, g.hidden, rates)
    _use(w.hidden_bias, q.hidden_bias, g.hidden_bias, rates)
    _use(w.out, q.out, g.out, rates)
    _use(w.out_bias, q.out_bias, g.out_bias, rates)
    _use(w.sharpness, q.sharpness, g.sharpness, rates)


@entry
def learn(
    order: I64, size: Int, experience: Experience, policy: Selector, squares: Weights, batch: Batch,
    loss: Loss, rates: Rates, stats: F64,
) -> None:  # fmt: skip
    """Learn from decisions in that order, so many in a step; for ``stats`` see `add_gradients`."""
    for first in range(0, order.shape[0], size):
        add_gradients(order[first : first + size], experience, policy, batch, loss, stats)
        step(policy.net.weights, squares, batch, rates)


class PpoLearner(SelfPlayLearner[PpoConfig]):
    """A worker: it plays a rollout of its own games, and learns from it in batches."""

    Config = PpoConfig
    stats = ("games", "rounds", "decisions", "entropy", "clipped", "values", "loss", "kl")

    def __init__(self, config: PpoConfig) -> None:
        super().__init__(config)
        self._policy = policy = self.selector()
        self._batch = Batch.new(self._policy)
        self._squares = self.grouped("squares")
        self._blank = engine.blank_games(config.rules, 1)
        sizes = config.envs, config.rollout, len(policy.logits), config.players
        self._experience = Experience.new(*sizes)

    def optimiser(self) -> Arrays:
        squares = super().optimiser()
        for name in ("out", "out_bias"):
            squares[f"squares/{name}"][:, -1] = self.config.policy_square
        return squares

    def own(self, index: int) -> Arrays:
        config, numbers = self.config, np.arange(self.config.envs)
        deals = Deals.of(config.seed, index * config.envs + numbers)
        states, streams = deals.games(config.rules), deals.streams()[:, 0].copy()
        return {"states": states.view(np.uint8).reshape(len(states), -1), "streams": streams}

    def learn(self, own: Arrays, task: Task, stats: Stats) -> None:
        config, policy, experience = self.config, self._policy, self._experience
        states = own["states"].view(STATE).reshape(-1)
        play_rollout(states, own["streams"], self._blank, policy, experience, stats)
        estimate(experience, np.float32(config.trace), np.float32(config.gae_lambda))
        loss = self._loss(experience.advantages)
        rates = np.float32(task.rate), np.float32(config.square_decay)
        context = experience, policy, self._squares, self._batch, loss, rates, stats
        random = np.random.default_rng((config.seed, task.first))
        for _ in range(config.epochs):
            learn(random.permutation(len(experience.counts)), config.batch, *context)

    def _loss(self, advantages: F32) -> Loss:
        config = self.config
        mean, scale = float(advantages.mean()), 1 / (float(advantages.std()) + 1e-6)
        numbers = config.clip, config.entropy, config.policy_weight, mean, scale
        return Loss(*map(np.float32, numbers))

    @staticmethod
    def metrics(sums: Mapping[str, float]) -> dict[str, float]:
        decisions = max(sums["decisions"], 1)
        return {
            "loss": sums["loss"] / max(sums["values"], 1),
            "entropy": sums["entropy"] / decisions,
            "clip_fraction": sums["clipped"] / decisions,
            "approx_kl": sums["kl"] / decisions,
            "rounds": sums["rounds"] / max(sums["games"], 1),
        }

    @staticmethod
    def agent(config: PpoConfig, model: NetworkModel) -> bot.PpoBot:
        return bot.PpoBot(model)
