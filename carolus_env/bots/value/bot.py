"""``value`` plays by a trained value network: whole turns, discs and crowns by what follows.

Models are files (`networks.network`): your own, or ``2p``, ``3p`` and ``4p`` of the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import Agent, Opinion
from carolus_env.bots.compiled import CompiledByPlayers, Entries
from carolus_env.bots.errors import error, errors_option, with_errors
from carolus_env.bots.models import Models, parse_model
from carolus_env.bots.options import BotOptions
from carolus_env.bots.value.ahead import COMPARED, LATE, Ahead, best_turn, discs_option, value_discs
from carolus_env.bots.value.choice import CandidateSelector, best_choice
from carolus_env.engine.kernels.actions import disc_of
from carolus_env.engine.rules import ACTIONS, DISC, MAX_TEAMS, TEAMS
from carolus_env.engine.state import States, common_players
from carolus_env.networks.forward import Network, Weights, reset_accumulator, write_value
from carolus_env.networks.network import NetworkModel
from carolus_env.planning.choices import EVERY, in_turn
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import WIDTHS, first_of, play_plan
from carolus_env.system.arrays import F64, I64, Bits, Int, Records
from carolus_env.system.compiler import entry, rare
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
    next: int = option(
        2,
        "turns, the best ones, that are followed through the dice to the next player's best "
        f"choice; three times as many with {LATE} regions or fewer",
        among=(0, 16),
    )
    rolls: int = option(
        2,
        f"rolls sampled for each of them, twice as many with {LATE} regions or fewer; 0: every "
        "roll, by its probability",
        among=(0, 16),
    )
    errors: float = errors_option()


class Player(NamedTuple):
    """Context of the bot's kernels."""

    selector: CandidateSelector
    """The network, and the selector of choices."""
    ahead: Ahead
    """Parameters and scratch of looking ahead."""
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
        compared = min(candidates, COMPARED[teams])
        return cls(
            CandidateSelector.of(net, WIDTHS.index(plans), listing, candidates),
            Ahead.of(players, weights, compared, int(options.next), int(options.rolls)),
            options.discs == "turn",
            float(options.errors),
        )


@rare
def decide(s: np.void, player: Player) -> Int:
    """Return the bot's choice, a plan."""
    if s["phase"] == DISC and player.looks_ahead:
        return value_discs(s, player.ahead) + 1  # a plan of one action
    if player.ahead.best > 0 and in_turn(s):
        return best_turn(s, player.selector, player.ahead)
    return best_choice(s, player.selector)


@rare
def choose(s: np.void, bits: Bits, player: Player) -> tuple[Int, Bits]:
    """Return the bot's decision, and the stream, from which only errors are drawn."""
    chosen, bits = error(s, bits, player.errors)
    if chosen >= 0:
        return chosen, bits
    return first_of(decide(s, player)), bits


class ValueBot(CompiledByPlayers):
    """Plays what leads to the best position by a value network.

    Args:
        model: a model for ``model.size.players`` players; None: the models of the package, each
            read when it is first needed.
        options: the bot's options; by default those of `ValueOptions`.
    """

    name = "value"
    entries = Entries.of(choose)

    def __init__(
        self, model: NetworkModel | None = None, options: ValueOptions | None = None
    ) -> None:
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
