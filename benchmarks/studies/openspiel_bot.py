"""OpenSpiel's tree search as the agent ``openspiel``, for the study ``referee``.

It plays `carolus_env.integrations.openspiel`'s game. Importing this module registers the agent:
``openspiel:sims=50,c=2,rollouts=theirs``. OpenSpiel is not a dependency of this project; see
`INSTALL` in referee.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from open_spiel.python.algorithms.mcts import MCTSBot, RandomRolloutEvaluator, SearchNode

from carolus_env import bots, engine
from carolus_env.bots.options import check, option, parse
from carolus_env.engine.state import States, as_states
from carolus_env.engine.streams import check_streams, random_bits
from carolus_env.integrations.openspiel import game_of
from carolus_env.integrations.openspiel_bots import PlayoutEvaluator

CHOICES: Final = {"uct": SearchNode.uct_value, "puct": SearchNode.puct_value}
ROLLOUTS: Final = ("theirs", "ours")
TIES: Final = ("shuffled", "first")


@dataclass(frozen=True)
class OpenSpielOptions:
    """How `OpenSpielBot` searches.

    Raises:
        ValueError: for a value that is not allowed.
    """

    sims: int = option(50, "simulations a decision", among=(2, 1_000_000))
    choice: str = option("uct", "selection in the tree; puct: equal priors", among=tuple(CHOICES))
    c: float = option(2.0, "uct_c, for payoffs from -1 to 1", among=(0.0, 1000.0))
    ties: str = option(
        "shuffled",
        "ties: broken at random (OpenSpiel's way), or the lowest action",
        among=TIES,
    )
    rollouts: str = option(
        "theirs", "random games: by OpenSpiel's loop, or by our playout", among=ROLLOUTS
    )

    def __post_init__(self) -> None:
        check("openspiel", self)


class OpenSpielBot(bots.Agent):
    """OpenSpiel's ``MCTSBot``: UCT or PUCT with its solver, a node for each roll, random rollouts.

    Attributes:
        simulations: done so far.
    """

    name = "openspiel"

    def __init__(self, options: OpenSpielOptions | None = None) -> None:
        self.options = options or OpenSpielOptions()
        self.simulations = 0

    def act(self, states: States, generators: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        as_states(states)
        check_streams(generators, states)
        seeds = random_bits(generators)
        return np.array([self._choice(*pair) for pair in zip(states, seeds, strict=True)], np.int64)

    def _choice(self, state: np.void, seed: np.uint64) -> int:
        legal = engine.legal_actions(state)
        if len(legal) == 1:
            return int(legal[0])
        return int(self.search(state, seed).best_child().action)

    def search(self, state: np.void, seed: np.uint64) -> SearchNode:
        """The root of a search from a game ``states[i]`` with a decision."""
        game = game_of(engine.rules_of(state))
        kind = np.random.RandomState if self.options.ties == "shuffled" else Unshuffled
        random_state = kind(np.random.MT19937(int(seed)))
        evaluator = RandomRolloutEvaluator(1, random_state)
        if self.options.rollouts == "ours":
            evaluator = PlayoutEvaluator(seed=int(seed))
        search = MCTSBot(
            game,
            self.options.c,
            self.options.sims,
            evaluator,
            random_state=random_state,
            child_selection_fn=CHOICES[self.options.choice],
        )
        root = search.mcts_search(game.state_of(state))
        self.simulations += root.explore_count
        return root


class Unshuffled(np.random.RandomState):
    """Keeps choices in the order of their numbers, where the search would shuffle them."""

    def shuffle(self, x: Any) -> None:
        """Do nothing."""


bots.register(
    "openspiel",
    lambda argument: OpenSpielBot(parse("openspiel", OpenSpielOptions, argument)),
    "OpenSpiel's tree search with random rollouts: openspiel:sims=50",
)
