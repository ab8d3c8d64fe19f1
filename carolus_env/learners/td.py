"""TD(lambda) of a value network, in self-play: positions after decisions, before the dice.

A game's positions are learnt from when it is over, the last one first: it is worth the result, and
each earlier one a mixture of the value after the best next decision and of the target there
(Sutton, Machine Learning 3, 1988; after-states as in Tesauro, CACM 38, 1995). Where a decision was
random, the target before it is that value: exploration teaches nothing about earlier positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots.network import Selector, ValueBot, value_candidates
from carolus_env.engine.chance import Deals
from carolus_env.engine.kernels import generator, turns
from carolus_env.engine.rules import MAX_TEAMS, OVER
from carolus_env.engine.state import STATE, States
from carolus_env.engine.stepping import play_on, roll_own
from carolus_env.learners.run import FLAT, Arrays, algorithm, every, rate
from carolus_env.learners.selfplay import SelfPlayConfig, SelfPlayLearner, Stats, Task
from carolus_env.networks import network
from carolus_env.networks.inputs import InputArrays, keep_inputs, restore_inputs
from carolus_env.networks.network import NetworkModel, Weights
from carolus_env.planning.plans import list_candidates
from carolus_env.system.arrays import F32, F64, U64, Bits, Int, Records, float32, int64
from carolus_env.system.compiler import entry, inlined, separate
from carolus_env.system.options import option

LONGEST: Final = 1024  # most positions kept of a game; a longer one is learnt from in part


@dataclass
class TdConfig(SelfPlayConfig):
    """The hyperparameters of TD(lambda)."""

    learner_name: ClassVar[str] = "value"
    unit: ClassVar[str] = "games"
    length: ClassVar[str] = "games"

    games: int = option(50_000, "games to learn from, in all", among=(1, None))
    games_per_round: int = algorithm(
        20, "games of each worker between two exchanges of weights", among=(1, None)
    )
    learning_rate: float = rate(
        0.03,
        "initial learning rate of Adagrad; stays for the share `flat` of the run, then decays "
        "geometrically to learning_rate_end",
    )
    learning_rate_end: float = rate(0.0009, "learning rate at the end", "algorithm")
    flat: float = algorithm(0.4, FLAT, among=(0, None), below=1)
    trace: float = algorithm(
        0.5,
        "lambda: the weight of the target after the next decision against its value",
        among=(0, 1),
    )
    exploration: float = algorithm(0.03, "probability of a random decision", among=(0, 1))
    eval_every: int = every(20_000, "games")
    curve_every: int = every(500, "games", "points of the curve")

    def round_size(self, done: int) -> int:
        games = self.workers * self.games_per_round
        return games if self.minutes is not None else min(games, self.games - done)


class Memory(NamedTuple):
    """Context of a worker's kernels. Nothing in it is shared with another worker."""

    selector: Selector  # the network, and the selector of choices
    squares: Weights  # the sum of the squares of each weight's gradients
    # The T positions after the decisions of the game under way:
    inputs: InputArrays  # the network's inputs; none where the game is over
    values: F64  # (T, 3) the value after the best decision, by team
    followed: npt.NDArray[np.bool_]  # (T,) that was the decision
    # Scratch:
    deltas: network.Deltas  # gradients of the layers' outputs
    hidden: F32  # (hidden, width - LINEAR) a stage's hidden layer, transposed
    target: F64  # (3,) the target, or a value, by team
    state: States  # (1,) STATE: the game under way


@inlined
def _decide(s: np.void, count: Any, bits: Bits, player: Any) -> Any:
    """Take a decision, and remember the position after it: an ``act`` of `play_on`."""
    memory, exploration = player
    selector = memory.selector
    net, after = selector.net, selector.after[0]
    plans = selector.candidates.plans
    candidates = list_candidates(s, selector.candidates)
    best = value_candidates(s, selector, candidates)
    bits = generator.step(bits)
    chosen = best
    if generator.fraction(generator.mix(bits)) < exploration:
        bits = generator.step(bits)
        chosen = generator.below(generator.mix(bits), candidates)
    t = count % LONGEST  # a longer game is learnt from as if it began later
    memory.followed[t] = chosen == best
    network.reset_accumulator(net)
    network.value_after(s, plans[best], net, selector.after, memory.values[t])
    if chosen != best:
        network.value_after(s, plans[chosen], net, selector.after, memory.target)
    memory.state[0] = after
    if after["phase"] == OVER:
        memory.inputs.lengths[t] = 0
    else:
        keep_inputs(after, net.inputs, memory.inputs, t)
    return True, bits


@separate
def update(memory: Memory, first_team: Int, rate: np.float32) -> float:
    """Move the value of the position in the network's inputs towards ``memory.target``.

    This is one step down the cross-entropy, by Adagrad; returns the cross-entropy before it.
    ``first_team`` is the team with role 0.
    """
    net, squares, deltas, target = memory.selector.net, memory.squares, memory.deltas, memory.target
    weights, inputs, activations = net.weights, net.inputs, net.activations
    stage, teams, loss = inputs.stage[0], activations.values.shape[0], 0.0
    network.add_up(weights, inputs, activations.sums)
    network.apply_layers(weights, stage, activations)
    for role in range(teams):
        wanted = target[(first_team + role) % teams]
        loss -= wanted * np.log(max(float(activations.values[role]), 1e-9))
        deltas.scores[role] = activations.values[role] - float32(wanted)
    network.transpose(weights.hidden[stage], memory.hidden)
    network.backpropagate(weights, stage, memory.hidden, activations, deltas)
    network.learn_layers(network.adagrad, weights, squares, stage, activations, deltas, rate)
    network.learn_inputs(network.adagrad, weights, squares, inputs, deltas, rate)
    return loss


@inlined
def _learn_from_game(memory: Memory, positions: Any, trace: float, rate: np.float32) -> Any:
    """Learn from the game that is over, its last position first; returns the sum of losses."""
    s, kept, target = memory.state[0], memory.inputs, memory.target
    teams, loss = int64(s["teams"]), 0.0
    for team in range(teams):
        target[team] = turns.team_win_share(s, team)
    for t in range(positions - 1, -1, -1):
        if kept.lengths[t] > 0:  # else the game is over there, and the value known
            restore_inputs(kept, t, memory.selector.net.inputs)
            loss += update(memory, kept.first_team[t], rate)
        decay = trace if memory.followed[t] else 0.0
        for team in range(teams):
            target[team] = decay * target[team] + (1.0 - decay) * memory.values[t, team]
    return loss


@entry
def learn(
    starts: Records,
    streams: U64,
    memory: Memory,
    exploration: float,
    trace: float,
    rate: np.float32,
    stats: F64,
) -> None:
    """Play games from their starts, one after the other, and learn from each.

    ``streams`` are those of the games' exploration; ``stats`` are games, their rounds, positions
    learnt from, and the sum of their losses.
    """
    for g in range(starts.shape[0]):
        memory.state[0] = starts[g]
        count, _ = play_on(_decide, roll_own, memory.state[0], streams[g], (memory, exploration))
        positions = (count - 1) % LONGEST + 1  # kept of the game
        stats[0] += 1
        stats[2] += positions - int64(memory.inputs.lengths[positions - 1] == 0)
        stats[3] += _learn_from_game(memory, positions, trace, rate)
        stats[1] += int64(memory.state[0]["round"])


class TdLearner(SelfPlayLearner[TdConfig]):
    """A worker: it learns game by game."""

    Config = TdConfig
    stats = ("games", "rounds", "positions", "loss")

    def __init__(self, config: TdConfig) -> None:
        super().__init__(config)
        selector = self.selector()
        self._memory = Memory(
            selector,
            self.grouped("squares"),
            InputArrays.new(LONGEST, config.players),
            np.zeros((LONGEST, MAX_TEAMS)),
            np.zeros(LONGEST, np.bool_),
            network.Deltas.new(selector.net.activations),
            np.zeros(self.weights.hidden.shape[:0:-1], np.float32),
            np.zeros(MAX_TEAMS),
            np.zeros(1, STATE),
        )

    def learn(self, own: Arrays, task: Task, stats: Stats) -> None:
        config = self.config
        deals = Deals.of(config.seed, np.arange(task.first, task.first + task.size))
        starts, streams = deals.games(config.rules), deals.streams()[:, 0].copy()
        options = config.exploration, config.trace, np.float32(task.rate)
        learn(starts, streams, self._memory, *options, stats)

    @staticmethod
    def metrics(sums: Mapping[str, float]) -> dict[str, float]:
        return {
            "loss": sums["loss"] / max(sums["positions"], 1),
            "rounds": sums["rounds"] / max(sums["games"], 1),
        }

    @staticmethod
    def agent(config: TdConfig, model: NetworkModel) -> ValueBot:
        return ValueBot(model)
