"""``search``: tree search by the values of a trained network, or of an `Evaluator` of yours.

The planner only lists the plans of a turn. The position after each choice is valued before any
dice; priors are the softmax of these values, as log odds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.bots.agent import AgentError
from carolus_env.bots.models import Models, parse_model
from carolus_env.bots.search.forest import CHOICES, CROWNS, Forest, Settings, tree_of
from carolus_env.bots.search.mcts import TreeOptions, TreeSearch, root_width
from carolus_env.bots.search.tree import begin, go_down, grow, write_shares
from carolus_env.engine.rules import MAX_TEAMS, OVER, TEAMS
from carolus_env.engine.state import STATE, States
from carolus_env.networks.forward import Network, values
from carolus_env.networks.network import NetworkModel
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import play_plan
from carolus_env.system.arrays import F64, U64, Records
from carolus_env.system.compiler import entry
from carolus_env.system.options import option

AUTO: Final = "auto"
_WIDE: Final = 32  # plans of a later turn
_NARROW: Final = 12  # the same with a time limit, for 1.5 times as many simulations


class Evaluator(ABC):
    """A function that values positions for a search, such as a network of yours.

    It is called once per simulation with the new positions of all games that are searched side by
    side: those after each choice (a whole turn, a disc or a crown) of the new nodes.
    """

    @abstractmethod
    def evaluate(self, states: States) -> npt.NDArray[np.floating[Any]]:
        """Evaluate each team's win probability in each position.

        Args:
            states: ``(N,)`` games of one number of players, none of them over. After the last
                choice of a turn dice may be due, and have not been rolled. Must not be changed.

        Returns:
            ``(N, teams)``; each row sums to 1.
        """


@dataclass(frozen=True)
class SearchOptions(TreeOptions):
    """Options of `SearchBot`.

    Where the clock ends a search, ``width`` and ``crowns`` have defaults that make more of a
    second.
    """

    bot = "search"

    width: int = option(
        0,
        "most plans considered in a later turn, the best ones; 0: 32, or 12 with `seconds`",
        among=(0, 4096),
    )
    root_width: int = root_width(128)
    crowns: str = option(
        AUTO,
        "what chooses crowns inside the tree: the evaluation or the network; auto: planner, or "
        "value with `seconds`",
        among=(AUTO, *CROWNS),
    )

    def settings(self, leaf: int) -> Settings:
        timed = self.seconds > 0
        width = self.width or (_NARROW if timed else _WIDE)
        crowns = CROWNS[timed] if self.crowns == AUTO else self.crowns
        result = TreeOptions.settings(replace(self, width=width), leaf)
        return result._replace(crowns=CROWNS.index(crowns))


class SearchBot(TreeSearch):
    """Searches a tree by the win probabilities after each choice.

    A value network runs inside the compiled search. An `Evaluator` is called from Python with the
    positions of all games together. Both give the same tree where they give the same values.

    Args:
        value: a model, for games of ``value.size.players`` players; an `Evaluator`; or None: the
            models of the package, each read when it is first needed.
        options: the bot's options. With an `Evaluator` the planner chooses the crowns inside the
            tree.

    Raises:
        AgentError: for ``crowns="value"`` with an `Evaluator`.
    """

    name = "search"

    def __init__(
        self,
        value: NetworkModel | Evaluator | None = None,
        options: SearchOptions | None = None,
    ) -> None:
        options = options or SearchOptions()
        self._evaluator = value if isinstance(value, Evaluator) else None
        if self._evaluator is not None:
            if options.crowns == "value":
                raise AgentError(
                    self.name, "an Evaluator chooses no crowns: crowns must be auto or planner"
                )
            options = replace(options, crowns="planner")
        self._models = Models("value", None if isinstance(value, Evaluator) else value)
        super().__init__(options, options.settings(CHOICES), all_weights().copy())

    def _network(self, players: int) -> Network:
        return Network.of(players, self._models.weights(self.name, players))

    def _values(self, states: States) -> npt.NDArray[np.float64]:
        if self._evaluator is not None:
            return self._evaluated(states)
        return values(states, self._models.weights(self.name, int(states["players"][0])))

    def _groups(
        self, states: States, rows: npt.NDArray[np.int64]
    ) -> Iterable[npt.NDArray[np.int64]]:
        if self._evaluator is None:
            return super()._groups(states, rows)
        players = states["players"][rows]
        return [rows[players == number] for number in np.unique(players)]

    def _simulate(
        self, states: States, generators: npt.NDArray[np.uint64], forest: Forest, sims: int
    ) -> None:
        if self._evaluator is None:
            super()._simulate(states, generators, forest, sims)
            return
        for _ in range(max(sims, 1)):
            _go_down(states, self._settings, self._weights, forest, generators, sims == 0)
            leaves = forest.leaf[: len(states)]
            listed = np.where(leaves["phase"] == OVER, 0, forest.listed[: len(states)])
            after = np.zeros(listed.sum(), STATE)
            outcomes = np.zeros((len(after), MAX_TEAMS))
            _list_after(forest, listed, after, outcomes)
            open_ = np.flatnonzero(after["phase"] != OVER)
            if len(open_):
                outcomes[open_, : TEAMS[int(states["players"][0])]] = self._evaluated(after[open_])
            _grow(self._settings, self._weights, forest, listed, outcomes)

    def _evaluated(self, states: States) -> npt.NDArray[np.float64]:
        assert self._evaluator is not None
        result = np.asarray(self._evaluator.evaluate(states), np.float64)
        shape = (len(states), TEAMS[int(states["players"][0])])
        if result.shape != shape or not np.isfinite(result).all():
            raise ValueError(
                f"{type(self._evaluator).__name__}.evaluate of {shape[0]} positions must return "
                f"finite numbers of shape {shape}, got shape {result.shape}"
                + (" with NaN or infinity" if result.shape == shape else "")
            )
        return result


@entry
def _go_down(
    states: Records, settings: Settings, weights: Any, forest: Forest, generators: U64, begins: Any
) -> None:
    """Go to the next leaf in every game, or begin the searches."""
    for g in range(states.shape[0]):
        s = states[g]
        own, tree = weights[s["players"]], tree_of(forest, g)
        if begins:
            begin(s, settings, own, tree, generators[g])
        else:
            generators[g] = go_down(s, settings, own, tree, generators[g], None)


@entry
def _list_after(forest: Forest, listed: Any, after: Any, outcomes: F64) -> None:
    """Write the positions after the choices of every leaf, and the results of those that are over.

    Args:
        forest: a `Forest`.
        listed: ``(G,)`` int64, the number of choices of each game's leaf.
        after: ``(N,)`` STATE, written: N is the sum of ``listed``.
        outcomes: ``(N, 3)`` float64, written where a position is over.
    """
    row = 0
    for g in range(listed.shape[0]):
        for k in range(listed[g]):
            after[row] = forest.leaf[g]
            play_plan(after[row], forest.plans[g, k])
            if after[row]["phase"] == OVER:
                write_shares(after[row], outcomes[row])
            row += 1


@entry
def _grow(settings: Settings, weights: Any, forest: Forest, listed: Any, outcomes: F64) -> None:
    """Add the leaves to the trees; ``listed`` and ``outcomes`` are those of `_list_after`."""
    row = 0
    for g in range(listed.shape[0]):
        tree = tree_of(forest, g)
        for k in range(listed[g]):
            for team in range(outcomes.shape[1]):
                tree.outcomes[k, team] = outcomes[row, team]
            row += 1
        grow(settings, weights[tree.leaf[0]["players"]], tree, 0, None)


def make_search(argument: str) -> SearchBot:
    """Make ``search:ARGUMENT``: a model's name or path or nothing, then options."""
    return SearchBot(*parse_model("search", argument, SearchOptions, "value"))
