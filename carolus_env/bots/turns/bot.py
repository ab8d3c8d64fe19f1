"""``ppo`` plays by a policy over whole turns; it does not need PyTorch.

Models are files (`bots.turns.model`): your own, or ``2p``, ``3p`` and ``4p`` of the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy import float32, int64

from carolus_env.bots.agent import Agent, Opinion
from carolus_env.bots.compiled import CompiledByPlayers, Entries, choose_in_all, play_games_on
from carolus_env.bots.model_files import ByPlayers, parsed
from carolus_env.bots.options import check
from carolus_env.bots.planner.choices import EVERY, list_choices
from carolus_env.bots.planner.plans import WIDTHS, first_of
from carolus_env.bots.turns.inference import Head, Judge, drawn, judge_all, log_odds, soften
from carolus_env.bots.turns.model import TurnModel
from carolus_env.bots.value.ahead import COMPARED, LOOKS, Ahead, value_discs
from carolus_env.bots.value.inference import ValueWeights
from carolus_env.engine.kernels import generator
from carolus_env.engine.kernels.actions import disc_of
from carolus_env.engine.rules import ACTIONS, DISC, DISCS, MAX_TEAMS, TEAMS
from carolus_env.engine.state import States, common_players
from carolus_env.system.compiler import entry, rare
from carolus_env.system.options import option


@dataclass(frozen=True)
class TurnPolicyOptions:
    """How `TurnPolicy` plays.

    Raises:
        AgentError: for a value that is not allowed, with the option and its allowed values.
    """

    temperature: float = option(
        0.0,
        "0: the likeliest candidate; 1: drawn from the policy; higher: flatter",
        among=(0, 100),
    )
    candidates: int = option(
        16, "turns that are scored, the planner's best ones", among=(DISCS, EVERY)
    )
    plans: str = option("stop", "where paladins may go, see the planner", among=WIDTHS)
    discs: str = option(
        "turn",
        "value of a disc: now, or after all answers and the turn of the first player to act",
        among=LOOKS,
    )

    def __post_init__(self) -> None:
        check("ppo", self)


class Player(NamedTuple):
    """What the kernels of the bot need."""

    judge: Judge
    """The policy."""
    ahead: Ahead
    """How it looks ahead at discs."""
    looks: bool
    """Whether it does."""
    discs: npt.NDArray[np.float64]
    """``(5, 3)`` float64, scratch: the values of the discs."""
    temperature: float
    """0: the likeliest candidate."""


@rare
def consider(s, player):
    """List and judge the candidates in ``s``; returns how many there are.

    Where the bot looks ahead at discs, what it sees there decides: the residual has learnt what is
    better than the value *now*.
    """
    judge = player.judge
    if s["phase"] != DISC or not player.looks:
        return judge_all(s, judge)
    count = list_choices(s, judge.lister)
    value_discs(s, player.ahead, player.discs)
    team = int64(s["team"][s["player"]])
    for k in range(count):
        disc = disc_of(first_of(judge.lister.choices[k]))
        for other in range(judge.values.shape[1]):
            judge.values[k, other] = player.discs[disc - 1, other]
        judge.odds[k] = log_odds(judge.values[k, team])
        judge.logits[k] = judge.head.sharpness[0] * judge.odds[k]
    return count


@rare
def decide(s, bits, player):
    """The bot's choice, a plan, and the stream, which is drawn from unless the temperature is 0."""
    judge = player.judge
    count = consider(s, player)
    best = 0
    for k in range(1, count):
        best = k if judge.logits[k] > judge.logits[best] else best
    if player.temperature > 0:
        bits = generator.step(bits)
        most = judge.logits[best]
        for k in range(count):
            judge.logits[k] = (judge.logits[k] - most) / float32(player.temperature)
        soften(count, judge.logits, judge.probabilities)
        best = drawn(count, judge.probabilities, generator.fraction(generator.mix(bits)))
    return judge.lister.choices[best], bits


@rare
def choose(s, bits, player):
    """The bot's decision, and the stream."""
    choice, bits = decide(s, bits, player)
    return first_of(choice), bits


@entry
def _act(states, generators, actions, player):
    choose_in_all(choose, states, generators, actions, player)


@entry
def _play_on(states, generators, seating, place, rows, player):
    return play_games_on(choose, states, generators, seating, place, rows, player)


class TurnPolicy(CompiledByPlayers):
    """Plays by a policy over whole turns.

    Each placement of a turn is chosen anew, among the turns that begin from there.

    Args:
        policy: a model, for games of ``policy.size.players`` players; None: the models of the
            package, each read when it is first needed.
        options: see `TurnPolicyOptions`.
    """

    name = "ppo"
    entries = Entries(_act, _play_on)

    def __init__(
        self, policy: TurnModel | None = None, options: TurnPolicyOptions | None = None
    ) -> None:
        self.options = options or TurnPolicyOptions()
        self._weights = ByPlayers(
            policy,
            TurnModel.shipped,
            lambda found: (ValueWeights.of(found.weights), Head.of(found.weights)),
        )

    def player(self, players: int) -> Player:
        """What the choice needs in games of ``players`` players.

        Raises:
            AgentError: for another number of players than the model was trained for.
        """
        weights, head = self._weights.of(self.name, players)
        options = self.options
        plans, most = WIDTHS.index(options.plans), int(options.candidates)
        return Player(
            Judge.of(players, weights, head, plans, most),
            Ahead.of(players, weights, min(most, COMPARED[TEAMS[players]])),
            options.discs == "turn",
            np.zeros((DISCS, MAX_TEAMS)),
            float(options.temperature),
        )

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Its policy over first actions, and what it expects: the mean of the values after each."""
        players = common_players(states, "opinions")
        policy, values = np.zeros((len(states), ACTIONS)), np.zeros((len(states), MAX_TEAMS))
        _think(states, self.player(players), policy, values)
        return Opinion(policy, values[:, : TEAMS[players]])


@entry
def _think(states, player, policy, values):
    judge = player.judge
    for g in range(states.shape[0]):
        count = consider(states[g], player)
        soften(count, judge.logits, judge.probabilities)
        for k in range(count):
            policy[g, first_of(judge.lister.choices[k])] += judge.probabilities[k]
            for team in range(values.shape[1]):
                values[g, team] += judge.probabilities[k] * judge.values[k, team]


def make_ppo(argument: str) -> Agent:
    """Make ``ppo:ARGUMENT``: a model's name or path or nothing, then options."""
    policy, options = parsed("ppo", argument, TurnPolicyOptions, TurnModel.find)
    return TurnPolicy(policy, options)
