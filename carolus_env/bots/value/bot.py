"""``value`` plays by a trained value network: it compares choices by what follows them.

Models are files (`networks.network`): your own, or ``2p``, ``3p`` and ``4p`` of the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import Agent, Opinion
from carolus_env.bots.compiled import CompiledByTurns, Entries
from carolus_env.bots.errors import error, errors_option, with_errors
from carolus_env.bots.models import Models, parse_model
from carolus_env.bots.options import BotOptions
from carolus_env.bots.value.ahead import COMPARED, Ahead, discs_option, value_discs
from carolus_env.bots.value.choice import CandidateSelector, value_choices
from carolus_env.bots.value.follow import MOST, Follower, best_by_following
from carolus_env.engine.kernels.turns import disc_of
from carolus_env.engine.rules import ACTIONS, DISC, MAX_TEAMS, TEAMS
from carolus_env.engine.state import States, common_players
from carolus_env.networks.forward import Network, Weights, reset_accumulator, write_value
from carolus_env.networks.network import NetworkModel
from carolus_env.planning.choices import EVERY, list_choices
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import WIDTHS, first_of, play_plan
from carolus_env.system.arrays import F64, I64, Bits, Int, Records, int64
from carolus_env.system.compiler import entry, separate
from carolus_env.system.options import option

PLANS: Final = {2: "one", 3: "stop"}
"""Default destinations of paladins, the strongest ones measured, by number of teams."""


@dataclass(frozen=True)
class ValueOptions(BotOptions):
    """Options of `ValueBot`; see docs/bots.md."""

    bot = "value"

    candidates: int = option(
        64,
        "turns that the network compares, the planner's best ones",
        among=(1, EVERY),
    )
    plans: str = option(
        "auto",
        "where paladins may go in the turn to play, see the planner; looking ahead it is stop; "
        "auto: one with two teams, stop with three",
        among=("auto", *WIDTHS),
    )
    discs: str = discs_option()
    follow: int = option(
        0,
        "choices, the best ones, that are followed through samples of the dice and of the turns "
        "to come; 0: none; 8: stronger, in over ten times the time",
        among=(0, MOST),
    )
    samples: int = option(
        2,
        "samples of each; the better half then gets twice as many, until one is left",
        among=(1, 64),
    )
    turns: int = option(0, "turns in a sample; 0: as many as there are teams", among=(0, 64))
    errors: float = errors_option()


class Player(NamedTuple):
    """Context of the bot's kernels."""

    selector: CandidateSelector
    """The network, and the selector of choices."""
    ahead: Ahead
    """Parameters and scratch of looking ahead at discs."""
    follower: Follower
    """Parameters and scratch of following choices."""
    looks_ahead: bool
    """True if the bot looks ahead at discs."""
    errors: float
    """Probability of a random move."""

    @classmethod
    def of(cls, players: int, weights: Weights, options: ValueOptions) -> Player:
        """Return a player with scratch of its own; the weights are shared."""
        net, listing = Network.of(players, weights), all_weights()[players].copy()
        candidates, teams = int(options.candidates), TEAMS[players]
        plans = PLANS[teams] if options.plans == "auto" else options.plans
        ahead = Ahead.of(players, weights, min(candidates, COMPARED[teams]))
        most, samples = int(options.follow), int(options.samples)
        return cls(
            CandidateSelector.of(net, WIDTHS.index(plans), listing, candidates),
            ahead,
            Follower.of(players, weights, ahead, most, samples, int(options.turns) or teams),
            options.discs == "turn",
            float(options.errors),
        )


@separate
def _value_discs(s: np.void, player: Player, count: Int) -> Int:
    """Write the value of each listed disc by looking ahead; returns the best one's index."""
    values, choices = player.selector.values, player.selector.proposals.choices
    team, best = int64(s["team"][s["player"]]), 0
    value_discs(s, player.ahead)
    for k in range(count):
        values[k] = player.ahead.discs.values[disc_of(first_of(choices[k])) - 1, team]
        best = k if values[k] > values[best] else best
    return best


@separate
def decide(s: np.void, player: Player) -> Int:
    """Return the bot's choice, a plan."""
    selector = player.selector
    count = list_choices(s, selector.proposals)
    if s["phase"] == DISC and player.looks_ahead:
        best = _value_discs(s, player, count)
    else:
        best = value_choices(s, selector, count)
    if player.follower.most > 0:
        return best_by_following(s, selector, count, player.follower)
    return selector.proposals.choices[best]


@separate
def choose(s: np.void, rest: Int, bits: Bits, player: Player) -> tuple[Int, Bits]:
    """Return the bot's plan, ``rest`` if it has one, and the stream, drawn from only for errors."""
    wrong, bits = error(s, bits, player.errors)
    if wrong >= 0:
        return wrong + 1, bits  # a plan of one action
    return rest if rest != 0 else decide(s, player), bits


class ValueBot(CompiledByTurns):
    """Plays what leads to the best position by a value network.

    Args:
        model: a model for ``model.size.players`` players; None: the models of the package, each
            read when it is first needed.
        options: the bot's options; by default those of `ValueOptions`.
    """

    name = "value"
    entries = Entries.of_plans(choose)

    def __init__(
        self, model: NetworkModel | None = None, options: ValueOptions | None = None
    ) -> None:
        super().__init__()
        self.options = options or ValueOptions()
        self._models = Models("value", model)

    def context_of(self, players: int) -> Player:
        """Return the context of the bot's kernels for games of ``players`` players.

        Raises:
            AgentError: for another number of players than the model was trained for.
        """
        return Player.of(players, self._models.weights(self.name, players), self.options)

    def opinion(self, states: States, generators: npt.NDArray[np.uint64]) -> Opinion:
        """Return the choice, and the network's value after it."""
        players = common_players(states, "opinions")
        player = self.context_of(players)._replace(errors=0.0)
        choices, values = np.empty(len(states), np.int64), np.zeros((len(states), MAX_TEAMS))
        _think(states, player, choices, values)
        chosen = with_errors(np.eye(ACTIONS)[choices], states, self.options.errors)
        return Opinion(chosen, values[:, : TEAMS[players]])


@entry
def _think(states: Records, player: Player, actions: I64, values: F64) -> None:
    """Write each game's first action of the choice, and the value after the whole choice."""
    after = player.selector.after[0]
    for g in range(states.shape[0]):
        s = states[g]
        choice = decide(s, player)
        actions[g] = first_of(choice)
        if s["phase"] == DISC and player.looks_ahead:
            for team in range(values.shape[1]):
                values[g, team] = player.ahead.discs.values[disc_of(actions[g]) - 1, team]
        else:
            player.selector.after[0] = s
            play_plan(after, choice)
            reset_accumulator(player.selector.net)
            write_value(after, player.selector.net, values[g])


def make_value(argument: str) -> Agent:
    """Make ``value:ARGUMENT``: a model's name or path or nothing, then options."""
    return ValueBot(*parse_model("value", argument, ValueOptions, "value"))
